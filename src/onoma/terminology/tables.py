"""The tables of a terminology folder: their columns, what holds between them, how they are written.

================ ========= =========================================================================================
concepts         (C rows)  concept_id, preferred_name, semantic_types, status ("active" or "obsolete"), replaced_by
names            (N rows)  concept_row, text, language, source, term_type, is_preferred, is_suppressed
relations        (R rows)  head_row, relation, tail_row, source; "head relation tail" reads as a sentence
definitions      (D rows)  concept_row, text, source; the file exists only if the source has definitions
cross_references (X rows)  concept_row, code, relation, source; likewise. What another vocabulary calls the concept:
                           ``code`` is of that vocabulary, as the source writes it ("MESH:D009203"); ``relation`` is
                           SKOS's exactMatch, closeMatch, broadMatch, narrowMatch or relatedMatch (the other is
                           broader, narrower), or "xref" if the source does not say
================ ========= =========================================================================================

A row number is a position, from 0. ``names`` is sorted by ``concept_row``, so the names of a concept are together, its
preferred name first, then the order of the source. A concept without any name has ``preferred_name`` "" and is usually
obsolete (a retired code). ``replaced_by`` may name a concept of another terminology.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from onoma.artifacts import Manifest, Parent, read_manifest, write_artifact
from onoma.errors import InputError, check_several
from onoma.files.reading import REJECTS
from onoma.quantities import quantity
from onoma.terminology.languages import spellings

KIND = "terminology"
FORMAT_VERSION = 1

CONCEPTS = pl.Schema(
    {
        "concept_id": pl.String(),
        "preferred_name": pl.String(),
        "semantic_types": pl.List(pl.String()),
        "status": pl.String(),
        "replaced_by": pl.String(),
    }
)
NAMES = pl.Schema(
    {
        "concept_row": pl.UInt32(),
        "text": pl.String(),
        "language": pl.String(),
        "source": pl.String(),
        "term_type": pl.String(),
        "is_preferred": pl.Boolean(),
        "is_suppressed": pl.Boolean(),
    }
)
CHOICE_RELATIONS = (
    "consider",
    "same_as",
    "replaced_by",
    "possibly_equivalent_to",
    "possibly_replaced_by",
    "partially_equivalent_to",
    "alternative",
)
"""Relations from a retired concept to one that may be used instead: of the OBO formats and SNOMED CT."""
OTHER_SCOPE = "^(broad|narrow|related)_synonym"
"""Term types of names that mean something else than just their concept (`onoma.terminology.iris.synonym_type`)."""
RELATIONS = pl.Schema(
    {"head_row": pl.UInt32(), "relation": pl.String(), "tail_row": pl.UInt32(), "source": pl.String()}
)
DEFINITIONS = pl.Schema({"concept_row": pl.UInt32(), "text": pl.String(), "source": pl.String()})
CROSS_REFERENCES = pl.Schema(
    {"concept_row": pl.UInt32(), "code": pl.String(), "relation": pl.String(), "source": pl.String()}
)
MAPPING_RELATIONS = ("exactMatch", "closeMatch", "broadMatch", "narrowMatch", "relatedMatch", "xref")
SCHEMAS = {
    "concepts": CONCEPTS,
    "names": NAMES,
    "relations": RELATIONS,
    "definitions": DEFINITIONS,
    "cross_references": CROSS_REFERENCES,
}
REQUIRED = ("concepts", "names", "relations")
ACTIVE, OBSOLETE = "active", "obsolete"


@dataclass(frozen=True)
class TerminologyTables:
    """The content of a terminology folder, in memory; columns as in the module's table."""

    concepts: pl.DataFrame
    names: pl.DataFrame
    relations: pl.DataFrame
    definitions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=DEFINITIONS))
    cross_references: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CROSS_REFERENCES))

    def counts(self) -> dict[str, int]:
        """The fields of `TableCounts`."""
        return {
            **{f"n_{name}": len(getattr(self, name)) for name in SCHEMAS},
            "n_obsolete": int((self.concepts["status"] == OBSOLETE).sum()),
        }


@dataclass(frozen=True)
class TableCounts:
    """How much of everything a terminology has.

    Attributes:
        n_concepts: In all.
        n_obsolete: Of them obsolete.
        n_names: Rows of the table of names.
        n_relations: Between concepts that are there.
        n_definitions: Texts.
        n_cross_references: Codes of other vocabularies.
    """

    n_concepts: int
    n_obsolete: int
    n_names: int
    n_relations: int
    n_definitions: int
    n_cross_references: int

    def counts_in_words(self) -> str:
        """As a text for people."""
        obsolete = f" ({self.n_obsolete:,} of them obsolete)" if self.n_obsolete else ""
        return (
            f"{quantity(self.n_concepts, 'concept')}{obsolete}, {quantity(self.n_names, 'name')}, "
            f"{quantity(self.n_relations, 'relation')}, {quantity(self.n_definitions, 'definition')}, "
            f"{quantity(self.n_cross_references, 'cross-reference')}"
        )


def write_terminology(
    path: str | Path,
    tables: TerminologyTables,
    *,
    config: Mapping[str, Any] | None = None,
    parents: Sequence[Parent] = (),
    rejects: pl.DataFrame | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write a terminology folder, completely or not at all.

    Args:
        path: Where to write it.
        tables: The content; it is checked.
        config: What made it, JSON-serialisable, for the manifest.
        parents: Artefacts it was made from.
        rejects: Rows left out: file, line (1-based, null if none), reason, text.
        overwrite: Replace a terminology at ``path``.

    Raises:
        InputError: the tables are inconsistent.
        ArtifactExistsError: ``path`` is taken.
    """
    check_tables(tables)
    frames: dict[str, pl.DataFrame] = {name: getattr(tables, name) for name in SCHEMAS}
    frames = {name: frame for name, frame in frames.items() if name in REQUIRED or not frame.is_empty()}
    if rejects is not None and not rejects.is_empty():
        frames["rejects"] = rejects.select(REJECTS.names())
    with write_artifact(
        path, KIND, format_version=FORMAT_VERSION, config=config, parents=parents, overwrite=overwrite
    ) as aside:
        for name, frame in frames.items():
            # Small groups with statistics: the names of one concept are found without reading the others.
            frame.write_parquet(
                aside / f"{name}.parquet", compression="zstd", compression_level=1, row_group_size=1 << 17
            )
    return read_manifest(path)


def check_tables(tables: TerminologyTables) -> None:
    """Check columns, types, and that every row number and status is possible.

    Raises:
        InputError: naming the table and column that is wrong.
    """
    for name, schema in SCHEMAS.items():
        frame: pl.DataFrame = getattr(tables, name)
        if frame.schema != schema:
            _refuse(name, "the columns are not those of a terminology", expected=str(schema), found=str(frame.schema))
        for column in schema:
            if column != "replaced_by" and frame[column].null_count():
                _refuse(name, "a value is missing", column)
    concepts, names = tables.concepts, tables.names
    ids = concepts["concept_id"]
    if ids.n_unique() != len(ids):
        _refuse("concepts", "a concept_id occurs twice", "concept_id", found=str(ids.filter(ids.is_duplicated())[0]))
    if not concepts["status"].is_in([ACTIVE, OBSOLETE]).all():
        _refuse("concepts", "unknown status", "status", expected=f"{ACTIVE} or {OBSOLETE}")
    if not tables.cross_references["relation"].is_in(MAPPING_RELATIONS).all():
        _refuse("cross_references", "unknown relation", "relation", expected=", ".join(MAPPING_RELATIONS))
    if not names["concept_row"].is_sorted():
        _refuse("names", "the rows are not sorted by concept", "concept_row")
    for name, schema in SCHEMAS.items():
        for column in (column for column in schema if column.endswith("_row")):
            largest = getattr(tables, name)[column].max()
            if largest is not None and largest >= len(concepts):
                _refuse(name, "a row points to a concept that is not there", column, found=str(largest))


def of_languages(languages: Sequence[str] | None) -> pl.Expr:
    """Whether a row's ``language`` is one of these; ``en`` includes ``en-GB``, but not ``enm``. None: all.

    Raises:
        InputError: it is one string instead of a list.
    """
    if languages is None:
        return pl.lit(True)
    check_several(languages, "languages")
    tag = pl.col("language").str.to_lowercase() + "-"
    asked = [spelling for language in languages for spelling in spellings(language)]
    return pl.any_horizontal(pl.lit(False), *(tag.str.starts_with(spelling + "-") for spelling in asked))


def _refuse(
    table: str, problem: str, column: str | None = None, *, expected: str | None = None, found: str | None = None
) -> None:
    raise InputError(f"table {table}: {problem}", field=column, expected=expected, found=found)
