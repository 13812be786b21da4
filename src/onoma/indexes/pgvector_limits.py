"""What a table of pgvector can hold, and what its graph can give."""

from __future__ import annotations

from typing import Literal, TypeAlias

from onoma.errors import ConfigError, did_you_mean
from onoma.indexes.scoring import checked_candidates

TablePrecision: TypeAlias = Literal["fp32", "fp16"]
COLUMN_TYPES: dict[TablePrecision, str] = {"fp32": "vector", "fp16": "halfvec"}
MOST_COMPONENTS = 16_000
"""Of a vector in a table."""
MOST_CANDIDATES = 1000
"""The limit of ``hnsw.ef_search``. Where more would be needed, all rows are compared."""

_WIDEST_GRAPH: dict[TablePrecision, int] = {"fp32": 2000, "fp16": 4000}


def check_choices(width: int, approximate: str | None, precision: str, candidates: int | None) -> TablePrecision:
    """The precision, if all that was chosen goes together.

    Raises:
        ConfigError: it does not.
        InputError: there are fewer candidates than one.
    """
    if approximate not in (None, "hnsw"):
        raise ConfigError(f"an index in PostgreSQL is exact (None) or approximate by 'hnsw'; found '{approximate}'.")
    chosen = next((known for known in COLUMN_TYPES if known == precision), None)
    if chosen is None:
        raise ConfigError(
            f"PostgreSQL stores vectors in {' or '.join(COLUMN_TYPES)}; found '{precision}'."
            f"{did_you_mean(precision, COLUMN_TYPES)}"
        )
    check_candidate_number(candidates, approximate=approximate)
    if width > MOST_COMPONENTS:
        raise ConfigError(f"pgvector stores vectors of at most {MOST_COMPONENTS:,} components; these have {width:,}.")
    widest = _WIDEST_GRAPH[chosen]
    if approximate is not None and width > widest:
        others = "store them as fp16 (up to 4,000), or " if width <= _WIDEST_GRAPH["fp16"] else ""
        raise ConfigError(
            f"pgvector's HNSW takes vectors of at most {widest:,} components in {chosen}; these have "
            f"{width:,}. To mend it: {others}build an exact index."
        )
    return chosen


def check_candidate_number(candidates: int | None, *, approximate: str | None) -> None:
    """Refuse candidates where there are none to choose, or too many.

    Raises:
        ConfigError: so it is.
        InputError: fewer than one.
    """
    if candidates is None:
        return
    checked_candidates(candidates)
    if approximate is None:
        raise ConfigError("an exact index has no candidates: leave them out, or choose approximate='hnsw'.")
    if candidates > MOST_CANDIDATES:
        raise ConfigError(f"pgvector's graph gives at most {MOST_CANDIDATES:,} candidates; found {candidates:,}.")
