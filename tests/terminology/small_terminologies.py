"""Random little terminologies over few codes and names, so that several of them have much in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from hypothesis import strategies as st

from onoma.terminology import Terminology, TerminologyTables, write_terminology
from onoma.terminology.tables import CONCEPTS, CROSS_REFERENCES, DEFINITIONS, MAPPING_RELATIONS, NAMES, RELATIONS

CODES = ["A:1", "A:2", "B:1", "B:2", "C:1"]
TABLES = ("concepts", "names", "relations", "definitions", "cross_references")


class Name(NamedTuple):
    """A row of the table of names, without row and preference."""

    text: str
    language: str = "en"
    source: str = "S"
    term_type: str = "T"
    is_suppressed: bool = False


class Record(NamedTuple):
    """A concept with all that hangs on it."""

    code: str
    names: Sequence[Name] = ()
    types: Sequence[str] = ()
    status: str = "active"
    replaced_by: str | None = None
    relations: Sequence[tuple[str, str, str]] = ()
    """relation, tail, source"""
    definitions: Sequence[tuple[str, str]] = ()
    references: Sequence[tuple[str, str, str]] = ()
    """code, relation, source"""

    @property
    def preferred_name(self) -> str:
        return self.names[0].text if self.names else ""


def record(code: str, *names: str, **others: object) -> Record:
    """A concept with names that differ in their text only."""
    return Record(code, [Name(name) for name in names], **others)  # type: ignore[arg-type]


def tables(records: Sequence[Record]) -> TerminologyTables:
    """The tables that hold these concepts; relations to a code that is not there are left out."""
    rows: Mapping[str, int] = {entry.code: row for row, entry in enumerate(records)}

    def frame(content: list[tuple[object, ...]], schema: pl.Schema) -> pl.DataFrame:
        return pl.DataFrame(content, schema=schema, orient="row")

    return TerminologyTables(
        concepts=frame(
            [(r.code, r.preferred_name, list(r.types), r.status, r.replaced_by) for r in records],
            CONCEPTS,
        ),
        names=frame(
            [
                (row, name.text, name.language, name.source, name.term_type, position == 0, name.is_suppressed)
                for row, r in enumerate(records)
                for position, name in enumerate(r.names)
            ],
            NAMES,
        ),
        relations=frame(
            [
                (row, relation, rows[tail], source)
                for row, r in enumerate(records)
                for relation, tail, source in r.relations
                if tail in rows
            ],
            RELATIONS,
        ),
        definitions=frame([(row, *entry) for row, r in enumerate(records) for entry in r.definitions], DEFINITIONS),
        cross_references=frame(
            [(row, *entry) for row, r in enumerate(records) for entry in r.references], CROSS_REFERENCES
        ),
    )


def write(path: Path, records: Sequence[Record], *, format_: str | None = None) -> Path:
    """Write them as a terminology folder, as if imported from this format."""
    write_terminology(path, tables(records), config={"made": "by hand"} if format_ is None else {"format": format_})
    return path


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables of a folder."""
    terminology = Terminology.open(path)
    return {name: getattr(terminology, name)().collect().rows() for name in TABLES}


_few = st.sampled_from
_names = st.builds(
    Name, _few(["x", "X", "y z", "y  z", "w"]), _few(["en", "de"]), _few(["S", "R"]), _few(["T", "U"]), st.booleans()
)


@st.composite
def small_terminologies(draw: st.DrawFn, codes: Sequence[str] = CODES) -> list[Record]:
    """Concepts whose successors come later in ``codes``, so that no two of them succeed each other."""

    def one(code: str) -> Record:
        successors = [None, "ELSE:1", *codes[codes.index(code) + 1 :]]
        return Record(
            code,
            draw(st.lists(_names, max_size=3)),
            draw(st.lists(_few(["t", "u", "v"]), max_size=2, unique=True)),
            draw(_few(["active", "active", "obsolete"])),
            draw(_few(successors)),
            draw(
                st.lists(st.tuples(_few(["is_a", "part_of"]), _few(codes), _few(["S", "R"])), max_size=2, unique=True)
            ),
            draw(st.lists(st.tuples(_few(["d", "e"]), _few(["S", "R"])), max_size=2)),
            draw(
                st.lists(
                    st.tuples(_few([*codes, "a:1", "Z:9"]), _few(MAPPING_RELATIONS), _few(["S", "R"])),
                    max_size=3,
                    unique=True,
                )
            ),
        )

    return [one(code) for code in draw(st.lists(_few(codes), min_size=1, max_size=len(codes), unique=True))]
