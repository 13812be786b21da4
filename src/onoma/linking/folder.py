"""A linker's folder: what lies in it, and how its parts are opened.

======================== ============================================================================================
files                    content
======================== ============================================================================================
settings.json            stages, and what was learned for them (`onoma.linking.settings`)
texts, entries, concepts the names and concepts (`onoma.linking.dictionary`)
*_order.npy              for look-up (`onoma.linking.lookup`)
words.*                  which words the texts have, to put misspelt ones right (`onoma.linking.spelling`)
facts.json and others    for filters (`onoma.linking.facts`)
vectors.npy and others   vectors of the texts and their index (`onoma.indexes`); only with an encoder
table.json               the table of the vectors, where they lie in PostgreSQL
char_ngrams.*            index of character n-grams, if it was asked for
encoder/                 an encoder's folder, with its ONNX model alone
reranker/                a cross-encoder's folder, if one was added
prior.npy                how often each concept is meant, if that was counted (`onoma.linking.prior`)
======================== ============================================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onoma.artifacts import Manifest, open_artifact, read_manifest
from onoma.artifacts.system import is_of_system
from onoma.encoders import Encoder, cross_encoder, open_encoder
from onoma.encoders.catalogue import known_names
from onoma.errors import ConfigError, DamagedArtifactError, InputError, MismatchError, checked_path, first_line
from onoma.indexes import char_ngrams
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.indexes.opening import open_index
from onoma.indexes.pgvector_folder import TABLE_FILE
from onoma.indexes.protocol import StoredIndex
from onoma.linking.components import Components
from onoma.linking.dictionary import NAMES_FILES, NameDictionary
from onoma.linking.facts import TerminologyFacts
from onoma.linking.lookup import NameLookup
from onoma.linking.prior import open_prior
from onoma.linking.reranking import Reranker
from onoma.linking.settings import LinkerSettings
from onoma.linking.spelling import WORDS_FILES, NameWords

KIND = "linker"
FORMAT_VERSION = 6
ENCODER_FOLDER, RERANKER_FOLDER = "encoder", "reranker"


def checked_folder(path: object) -> Path:
    """Where a linker lies.

    Raises:
        InputError: this is no path, or the name of an encoder.
    """
    folder = checked_path(path).absolute()
    if not folder.exists() and str(path) in known_names():
        raise InputError(
            f"{path} is the name of an encoder, and a linker's folder is needed",
            fix=f"build one: onoma linker build -t TERMINOLOGY -e {path} -o LINKER",
        )
    return folder


def open_manifest(folder: Path) -> Manifest:
    """The manifest of a linker's folder that is whole and of this format; errors as of `open_artifact`."""
    return open_artifact(folder, KIND, format_version=FORMAT_VERSION, oldest=FORMAT_VERSION)


def open_settings(path: str | Path) -> LinkerSettings:
    """The settings of a linker, of which neither models nor a database are opened."""
    folder = checked_folder(path)
    open_manifest(folder)
    return LinkerSettings.open(folder)


def open_components(folder: Path, manifest: Manifest, *, database: str | None = None) -> Components:
    """Open all that lies in a linker's folder; large files are mapped, not read.

    Args:
        folder: The folder.
        manifest: Its manifest, checked.
        database: Connection string, where its vectors lie in PostgreSQL; unset: the environment's.

    Raises:
        ArtifactError: a file or the table cannot be read, or does not fit the others.
        MismatchError: the encoder inside is not the one that made the vectors, or the table has other vectors.
        ConfigError: a stage is on that the folder does not have; a database is missing, or not needed.
        InputError: the calibration cannot be read, or the database does not have the table.
        UnavailableError: PostgreSQL, or what is needed to talk to it, is missing or refuses.
        OSError: the system does not let a file be read.
    """
    if database is not None and TABLE_FILE not in manifest.files:
        raise ConfigError(f"{folder} has its vectors in files, not in a database: leave the database out.")
    encoder = _open_encoder(folder, manifest)
    index: StoredIndex | None = None
    try:
        dictionary = NameDictionary.open(folder, normalisation=str(manifest.config["normalisation"]))
        if encoder is not None:
            checksums = {name: entry.sha256 for name, entry in manifest.files.items()}
            index = open_index(folder, database=database, checksums=checksums)
            _check_shape(folder, (len(index), index.width), (dictionary.n_texts, encoder.width))
        components = Components(
            dictionary=dictionary,
            settings=LinkerSettings.open(folder),
            lookup=NameLookup.open(folder, dictionary.texts),
            encoder=encoder,
            index=index,
            ngrams=_open_ngrams(folder, manifest, n_texts=dictionary.n_texts),
            facts=TerminologyFacts.open(folder, dictionary),
            reranker=_open_reranker(folder, manifest),
            prior=open_prior(folder, dictionary),
            words=NameWords.open(folder),
        )
        components.check_settings()
        return components
    except KeyError as error:
        raise DamagedArtifactError(f"{folder}: its manifest does not say {error}. Build the linker again.") from None
    except (OSError, ValueError, RecursionError) as error:
        if is_of_system(error):
            raise
        raise DamagedArtifactError(f"{folder} cannot be read ({first_line(error)}). Build the linker again.") from None


def is_of_earlier_release(settings: LinkerSettings, config: Mapping[str, Any]) -> bool:
    """Whether a linker has what was learned with an earlier release.

    Args:
        settings: Of the linker; an update leaves them.
        config: Of the linker's manifest.
    """
    learned = (settings.weights, settings.prior_weight, settings.rerank_weight, settings.calibration)
    has_learned = any(one is not None for one in learned)
    return has_learned and "terminology" in config.get("tuning", {})


def fingerprint(manifest: Manifest, *, reranker: str | None) -> str:
    """SHA-256 over all that a linker's answers depend on: names, concepts, vectors, models, settings, prior.

    Args:
        manifest: Of the linker, whose encoder is the one that it says.
        reranker: The fingerprint of its reranker, if it has one.
    """
    encoder = manifest.config.get("encoder_fingerprint") or "no encoder"
    digest = hashlib.sha256(f"{KIND}/{manifest.format_version} {encoder}".encode())
    digest.update(str(manifest.config.get("normalisation")).encode())
    digest.update((reranker or "").encode())
    # The folders of models count by their fingerprints: their manifests have a date. So do vectors in a table: that of
    # another build has another name. Words are those of the texts.
    for name, entry in sorted(manifest.files.items()):
        if not name.startswith((f"{ENCODER_FOLDER}/", f"{RERANKER_FOLDER}/", TABLE_FILE, WORDS_FILES)):
            digest.update(f"\n{name} {entry.sha256}".encode())
    return digest.hexdigest()


def fingerprint_of_folder(folder: Path, manifest: Manifest) -> str:
    """The `fingerprint` of a linker whose models are not opened."""
    inside = folder / RERANKER_FOLDER
    if not _has_reranker(manifest):
        return fingerprint(manifest, reranker=None)
    of_reranker = cross_encoder.fingerprint_of(read_manifest(inside), cross_encoder.read_about(inside))
    return fingerprint(manifest, reranker=of_reranker)


def fingerprint_of_names(manifest: Manifest) -> str:
    """SHA-256 over which text is a name of which concept, in their order."""
    digest = hashlib.sha256()
    for name in NAMES_FILES:
        digest.update(manifest.files[name].sha256.encode())
    return digest.hexdigest()


def _open_encoder(folder: Path, manifest: Manifest) -> Encoder | None:
    """The encoder inside, if there is one.

    Raises:
        MismatchError: it is not the one that made the vectors.
    """
    made_by = manifest.config.get("encoder_fingerprint")
    if made_by is None:
        return None
    precision = manifest.config["precision"]
    encoder = open_encoder(folder / ENCODER_FOLDER, backend="onnx", precision=precision, in_full=False)
    if encoder.fingerprint != made_by:
        raise MismatchError(
            f"{folder}: its vectors were made by the encoder {str(made_by)[:12]}, but the encoder inside is "
            f"{encoder.fingerprint[:12]}. Build the linker again."
        )
    return encoder


def _check_shape(folder: Path, found: tuple[int, int], needed: tuple[int, int]) -> None:
    if found != needed:
        raise DamagedArtifactError(
            f"{folder}: its vectors have the shape {found}; {needed[0]} names and a width of {needed[1]} need "
            f"{needed}. Build the linker again."
        )


def _open_ngrams(folder: Path, manifest: Manifest, *, n_texts: int) -> CharNgramIndex | None:
    """The index of character n-grams, if there is one.

    Raises:
        DamagedArtifactError: it cannot be read, or is not of these texts.
    """
    if char_ngrams.ABOUT_FILE not in manifest.files:
        return None
    ngrams = CharNgramIndex.open(folder)
    if len(ngrams) != n_texts:
        raise DamagedArtifactError(f"{folder}: its n-grams are of other names. Build the linker again.")
    return ngrams.counting_unknown()


def _open_reranker(folder: Path, manifest: Manifest) -> Reranker | None:
    """The cross-encoder inside, if there is one."""
    return Reranker.open(folder / RERANKER_FOLDER) if _has_reranker(manifest) else None


def _has_reranker(manifest: Manifest) -> bool:
    return any(name.startswith(f"{RERANKER_FOLDER}/") for name in manifest.files)
