"""The artefact that training opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts import Manifest, Parent, open_artifact, write_artifact
from onoma.artifacts.arrays import load_array
from onoma.errors import DamagedArtifactError, checked_path
from onoma.pairs.labelled_names import open_labelled_names, write_labelled_names
from onoma.pairs.name_store import NameStore
from onoma.quantities import quantity
from onoma.types import Progress

KIND = "pairs"
REJECTS_FILE = "rejects.parquet"
"""In a pair set: lines of the files that were left out."""
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, eq=False)
class PairSet:
    """Training names, their tokens, and the pairs to train on; arrays are memory-mapped.

    Shapes: n training names, P pairs.
    """

    path: Path
    manifest: Manifest
    store: NameStore
    """Token ids of the n training names."""
    pairs: npt.NDArray[np.int32]
    """Rows of training names that mean the same, shape (P, 2); the batches shuffle."""
    labels: npt.NDArray[np.int32]
    """Class of each training name, shape (n,): names of one class are never negatives of each other. The row of
    the concept in its terminology, or the number of a translation."""
    text_labels: npt.NDArray[np.int32] | None
    """Training names with the same tokens share a number, shape (n,); None unless made with ``ambiguous="mark"``."""

    def __repr__(self) -> str:
        return (
            f"PairSet({str(self.path)!r}: {quantity(len(self.pairs), 'pair')} of {quantity(len(self.store), 'name')})"
        )

    @classmethod
    def open(cls, path: str | Path) -> PairSet:
        """Open what `build_pairs`, `build_mention_pairs`, `build_bitext_pairs` or `merge_pairs` wrote.

        Raises:
            InputError: there is nothing at ``path``.
            ArtifactError: it is not a whole pair set of a format this Onoma reads.
        """
        folder = checked_path(path)
        manifest = open_artifact(folder, KIND, format_version=FORMAT_VERSION, in_full=True)
        store, labels, text_labels = open_labelled_names(folder, manifest)
        pairs = load_array(folder / "pairs.npy", (np.int32,), 2)
        if pairs.shape[1] != 2:
            raise DamagedArtifactError(f"{folder}: pairs.npy has the shape {pairs.shape}. Make it again.")
        return cls(path=folder, manifest=manifest, store=store, pairs=pairs, labels=labels, text_labels=text_labels)

    @property
    def tokenizer_fingerprint(self) -> str:
        """Of the tokeniser that made the tokens, see `onoma.encoders.tokens.tokenizer_fingerprint`."""
        return str(self.manifest.config["tokenizer"])


def write_pair_set(
    out: Path,
    names: pl.DataFrame,
    pairs: npt.NDArray[np.int32],
    tokenizer: Tokenizer,
    *,
    config: Mapping[str, Any],
    parents: Sequence[Parent] = (),
    rejects: pl.DataFrame | None = None,
    seed: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> PairSet:
    """Tokenise the names, write everything as a folder, and open it.

    Args:
        out: The folder.
        names: See `write_labelled_names`.
        pairs: Rows of ``names``, shape (P, 2).
        tokenizer: The base encoder's.
        config: For the manifest; has ``max_tokens`` and ``ambiguous``.
        parents: What it was made from.
        rejects: Lines that were left out, see `onoma.files.reading.Reading.rejects`.
        seed: Of the sample of pairs.
        overwrite: Replace a pair set that is there.
        progress: See `Progress`.
    """
    with write_artifact(
        out, KIND, format_version=FORMAT_VERSION, config=config, parents=parents, seed=seed, overwrite=overwrite
    ) as aside:
        np.save(aside / "pairs.npy", pairs)
        if rejects is not None and not rejects.is_empty():
            rejects.write_parquet(aside / REJECTS_FILE)
        write_labelled_names(
            aside,
            names,
            tokenizer,
            max_tokens=config["max_tokens"],
            mark_equal=config["ambiguous"] == "mark",
            progress=progress,
        )
    return PairSet.open(out)
