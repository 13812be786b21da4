"""The artefact that training opens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onoma.artifacts import Manifest, open_artifact
from onoma.errors import DamagedArtifactError
from onoma.pairs.name_store import NameStore, load_array

KIND = "pairs"
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
    """Rows of training names that are synonyms, shape (P, 2), by concept; the batches shuffle."""
    labels: npt.NDArray[np.int32]
    """Concept row of each training name, ascending, shape (n,)."""
    name_rows: npt.NDArray[np.int32]
    """Row of each training name in the terminology's table of names, shape (n,)."""
    text_labels: npt.NDArray[np.int32] | None
    """Training names with one text share a number, shape (n,); None unless made with ``ambiguous="mark"``."""

    @classmethod
    def open(cls, path: str | Path) -> PairSet:
        """Open what `build_pairs` wrote.

        Raises:
            InputError: there is nothing at ``path``.
            ArtifactError: it is not a whole pair set of a format this Onoma reads.
        """
        folder = Path(path)
        manifest = open_artifact(folder, KIND, format_version=FORMAT_VERSION)
        arrays = {
            name: np.asarray(load_array(folder / f"{name}.npy", np.int32, 2 if name == "pairs" else 1))
            for name in ("pairs", "labels", "name_rows", "text_labels")
            if f"{name}.npy" in manifest.files or name != "text_labels"
        }
        store = NameStore.open(folder / "names")
        for name, array in arrays.items():
            if (array.shape[1] != 2) if name == "pairs" else (len(array) != len(store)):
                raise DamagedArtifactError(
                    f"{folder}: {name}.npy of shape {array.shape} does not fit {len(store)} names. Make it again."
                )
        return cls(
            path=folder,
            manifest=manifest,
            store=store,
            pairs=arrays["pairs"],
            labels=arrays["labels"],
            name_rows=arrays["name_rows"],
            text_labels=arrays.get("text_labels"),
        )

    @property
    def tokenizer_fingerprint(self) -> str:
        """Of the tokeniser that made the tokens, see `onoma.encoders.tokens.tokenizer_fingerprint`."""
        return str(self.manifest.config["tokenizer"])
