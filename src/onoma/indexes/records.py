"""What an index in a folder says about itself: the file ``index.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from onoma.errors import DamagedArtifactError, FormatVersionError, InputError, checked_path, first_line
from onoma.indexes.approximate import LEAST_VECTORS, EarlyStop
from onoma.indexes.candidate_search import EXHAUSTIVE_SHARE
from onoma.indexes.recall import Recall
from onoma.indexes.vector_store import VectorPrecision

IndexKind: TypeAlias = Literal["exact", "sign-bits", "approximate"]
"""Of indexes whose vectors lie in the folder."""
TableKind: TypeAlias = Literal["pgvector", "pgvector-hnsw"]
"""Of indexes whose vectors lie in a table of PostgreSQL."""
RECORD_FILE = "index.json"
FORMAT_VERSION = 2


class PrecisionAgreement(BaseModel):
    """How far stored vectors are from those given: over all of a table, else over at most 10,000, evenly spaced."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean_cosine: float
    lowest_cosine: float


class IndexRecord(BaseModel):
    """What an index says about itself. It has no dates and no places: equal content, equal file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: int = Field(ge=1)
    kind: IndexKind | TableKind
    precision: VectorPrecision
    n_vectors: int = Field(ge=0)
    width: int = Field(ge=1)
    max_norm: float = Field(ge=0, allow_inf_nan=False)
    """Bound of the lengths of the stored vectors."""
    candidates: int | None = Field(ge=1)
    """Rows scored exactly for each query; none for an exact index."""
    agreement: PrecisionAgreement
    recall: Recall
    early_stop: EarlyStop | None = None
    """Of an approximate index."""
    fingerprint: str | None = None
    """Of the vectors, where they lie in a table; see `PgVectorRecord`."""

    @model_validator(mode="after")
    def _check_candidates(self) -> IndexRecord:
        needed = {"exact": False, "sign-bits": True, "approximate": True}.get(self.kind)
        if needed is not None and needed != (self.candidates is not None):
            raise ValueError(f"an index of the kind {self.kind} and {self.candidates} candidates do not go together")
        return self

    @property
    def n_scored(self) -> int | None:
        """Rows scored exactly for a query of one result: all where so many are `candidates`, or too few for lists."""
        if self.candidates is None:
            return None
        compares_all = self.candidates * EXHAUSTIVE_SHARE >= self.n_vectors
        if compares_all or (self.kind == "approximate" and self.n_vectors < LEAST_VECTORS):
            return self.n_vectors
        return self.candidates


def write_index_record(folder: str | Path, record: IndexRecord) -> None:
    """Write ``index.json``."""
    left_out = {name for name in ("early_stop", "fingerprint") if getattr(record, name) is None}
    text = record.model_dump_json(indent=1, exclude=left_out)
    (Path(folder) / RECORD_FILE).write_text(text + "\n", encoding="utf-8")


def read_index_record(folder: str | Path) -> IndexRecord:
    """What an index says about itself.

    Raises:
        InputError: there is no index.
        DamagedArtifactError: the file is not what `build_index` writes.
        FormatVersionError: written by a newer Onoma.
    """
    file = checked_path(folder) / RECORD_FILE
    if not file.is_file():
        raise InputError("there is no index here", path=file.parent, expected=f"a file {RECORD_FILE}", fix="build it")
    try:
        raw = file.read_text(encoding="utf-8")
        version = json.loads(raw).get("format_version")
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise FormatVersionError(
                f"{file} is of format {version}; this Onoma reads up to {FORMAT_VERSION}. Update Onoma, or build the "
                "index again."
            )
        return IndexRecord.model_validate_json(raw)
    except (ValidationError, ValueError, AttributeError, RecursionError) as error:
        raise DamagedArtifactError(f"{file} is not readable ({first_line(error)}). Build the index again.") from None
