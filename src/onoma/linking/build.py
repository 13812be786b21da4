"""Make a linker: the names of a terminology, their vectors, and the encoder, in one folder."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from onoma.artifacts import Parent, ensure_writable, verify_artifact, write_artifact
from onoma.encoders import Encoder, ProgressCallback, export_encoder, open_encoder
from onoma.errors import InputError
from onoma.linking.dictionary import NameDictionary, build_dictionary
from onoma.linking.linker import ENCODER_FOLDER, FORMAT_VERSION, KIND, MAX_NORM, VECTORS_FILE, Linker
from onoma.terminology import Terminology

_NAMES_AT_ONCE = 1 << 16


def build_linker(
    terminology: Terminology | str | Path,
    encoder: Encoder | str | Path,
    out: str | Path,
    *,
    normalisation: str | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Linker:
    """Encode the names of a terminology and write a linker.

    Active concepts with their names that are not suppressed, each distinct normalised text once. The folder
    is self-contained and may be moved: it carries what linking needs of terminology and encoder.

    Args:
        terminology: Terminology, or its folder.
        encoder: Encoder, or what `open_encoder` takes. One opened in a lower precision of ONNX goes into the folder in
            that precision, and mentions are encoded in it too.
        out: Where the linker's folder shall lie.
        normalisation: Preset that names and mentions go through; unset: the one that the encoder was trained with.
        overwrite: Replace a linker at ``out``.
        progress: Called with names encoded so far and in all.

    Raises:
        DamagedArtifactError: the terminology is not what was written.
        InputError: there is no name to link to, or the encoder gives vectors that cannot be compared.
        ArtifactExistsError: ``out`` is taken.
    """
    ensure_writable(out, KIND, overwrite=overwrite)
    names_of = Terminology.open(terminology) if isinstance(terminology, str | Path) else terminology
    opened = open_encoder(encoder) if isinstance(encoder, str | Path) else encoder
    verify_artifact(names_of.path)
    preset = normalisation or opened.folder.normalisation
    dictionary = build_dictionary(names_of, normalisation=preset)
    with write_artifact(
        out,
        KIND,
        format_version=FORMAT_VERSION,
        config={
            "normalisation": preset,
            "encoder_name": opened.name,
            "encoder_fingerprint": opened.fingerprint,
            "precision": opened.folder.precision,
            "n_concepts": dictionary.n_concepts,
            "n_texts": dictionary.n_texts,
        },
        parents=[names_of.manifest.as_parent(), Parent(kind="encoder", fingerprint=opened.fingerprint)],
        overwrite=overwrite,
    ) as folder:
        export_encoder(opened.folder, folder / ENCODER_FOLDER, onnx_only=True)
        dictionary.save(folder)
        _write_vectors(folder / VECTORS_FILE, dictionary, opened, progress)
    return Linker.open(out)


def _write_vectors(path: Path, dictionary: NameDictionary, encoder: Encoder, progress: ProgressCallback | None) -> None:
    """Encode all texts straight into the file, a part at a time, so that memory stays bounded."""
    n_texts = dictionary.n_texts
    vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_texts, encoder.width))
    for start in range(0, n_texts, _NAMES_AT_ONCE):
        texts = dictionary.texts[start : start + _NAMES_AT_ONCE]
        report = None if progress is None else functools.partial(_report, progress, start, n_texts)
        part = encoder.encode(texts, progress=report)
        lengths = np.linalg.norm(part, axis=1)
        # A text without a single token has the vector zero, and so the score 0 with every mention.
        wrong = np.flatnonzero(~((np.abs(lengths - 1) <= MAX_NORM - 1) | (lengths == 0)))
        if len(wrong):
            raise InputError(
                "the encoder gives a vector that is not of unit length",
                field=texts[wrong[0]],
                found=f"length {lengths[wrong[0]]}",
                fix="use another encoder; this one's training may have diverged",
            )
        vectors[start : start + len(texts)] = part
    vectors.flush()


def _report(progress: ProgressCallback, done_before: int, total: int, done: int, _total: int) -> None:
    """Progress within one part, told as progress within the whole."""
    progress(done_before + done, total)
