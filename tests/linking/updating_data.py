"""Two releases of a small terminology, and what the tests of updates compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from linking_data import write_small_linker

from onoma.artifacts import MANIFEST_NAME
from onoma.encoders import Encoder, open_encoder
from onoma.linking import Linker
from onoma.terminology import Terminology, TerminologyTables, write_terminology
from tiny import Name, make_terminology

Concepts = Mapping[str, Sequence[str | Name]]

NEW: dict[str, list[str | Name]] = {
    "D1": ["Diabetes", "Diabetes Mellitus", "sugar illness"],  # another preferred name, other names
    "D2": [Name("Cold", is_suppressed=True)],  # active without a name
    "D3": ["Chronic Obstructive Lung Disease", "COLD"],
    "D4": ["Common Cold", "cold", "head cold"],  # a name is suppressed no more
    "D5": ["Old Diabetes", "sugar disease"],  # obsolete before and after
    "D6": ["Cold Temperature", "cold"],  # obsolete, replaced by D9
    "D8": ["心臓発作"],  # obsolete
    "D9": ["Low Temperature", "cold temperatures", "brrr"],  # new
}
# D7 is gone, but had no name before.

MENTIONS = [
    *(
        "cold",
        "Cold",
        "head cold",
        "the cold temperature",
        "brr",
        "brrr!",
        "sugar disease",
        "sugary disease",
        "diabetes",
    ),
    *("心臓発作", "発作", "chronic lung", "common", "cold", "low temp", "illness", "  ", "temperature", "dolc"),
]


class Counting:
    """An encoder that encodes name by name, so that a vector does not depend on the others, and remembers what."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self.texts = encoder, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, texts: Sequence[str], *, progress: Any = None, unit_length: bool = True) -> Any:
        self.texts += texts
        return np.concatenate([self._encoder.encode([text]) for text in texts])


def new_release(folder: Path) -> Terminology:
    """NEW, with what D6 was replaced by."""
    return release(folder, NEW, obsolete=["D5", "D6", "D8"], replaced_by={"D6": "D9"})


def release(
    folder: Path,
    concepts: Concepts,
    *,
    obsolete: Sequence[str] = (),
    replaced_by: Mapping[str, str] | None = None,
    relations: Sequence[tuple[str, str, str]] = (),
) -> Terminology:
    plain = make_terminology(folder.with_name(f"{folder.name}-plain"), concepts, obsolete=obsolete, relations=relations)
    code = pl.col("concept_id")
    tables = TerminologyTables(
        concepts=plain.concepts()
        .with_columns(replaced_by=code.replace_strict(dict(replaced_by or {}), default=None, return_dtype=pl.String))
        .collect(),
        names=plain.names().collect(),
        relations=plain.relations().collect(),
    )
    write_terminology(folder, tables)
    return Terminology.open(folder)


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the manifests, which have a date."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST_NAME)
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def vectors_of(linker: Linker) -> dict[str, Any]:
    vectors = np.load(linker.path / "vectors.npy")
    return dict(zip(linker.dictionary.texts, vectors, strict=True))


def letters(place: Path) -> Counting:
    return Counting(open_encoder(place / "letters"))


def prepared(folder: Path) -> Path:
    """An encoder, the old release and the new one, and a linker of the old."""
    write_small_linker(folder)
    new_release(folder / "new")
    return folder
