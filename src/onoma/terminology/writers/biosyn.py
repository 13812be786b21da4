"""BioSyn dictionaries: one line ``id||name`` for each name; format and reader: `onoma.terminology.readers.biosyn`.

Concepts are in their order, the preferred name of each first; a name that a concept has several times (in several
languages, from several sources) is written once. There is no place for anything else.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from onoma.files.reading import Check
from onoma.terminology.tables import OBSOLETE
from onoma.terminology.writers.writing import Content, Writing, without

_LINE_END = r"[\n\r]"
_IDS = (
    without("concept_id", r"\|\|", "'||'"),
    without("concept_id", r"\|$", "'|' at its end"),
    without("concept_id", _LINE_END, "a line end"),
    without("concept_id", "^\ufeff", "a byte order mark at its beginning"),
    Check(
        pl.col("concept_id") == pl.col("concept_id").str.strip_chars(),
        "concept_id",
        "none around it",
        "concept_id",
        "white space around a code, which this format cannot hold",
    ),
)


def write_biosyn(content: Content, file: Path, writing: Writing) -> Content:
    """Write the dictionary.

    Args:
        content: The terminology.
        file: Where to.
        writing: Where what cannot be written goes.

    Returns:
        What was written.

    Raises:
        InputError: under "strict", for a code with ``||`` or a name with a line end.
    """
    content = writing.keep_concepts(content, _IDS)
    names = writing.keep_writable(content.names, "names", [without("text", _LINE_END, "a line end")])
    written = names.unique(("row", "text"), keep="first", maintain_order=True)
    concepts = content.concepts.filter(pl.col("row").is_in(written["row"].implode()))
    for what, count in (
        ("concepts without a name", len(content.concepts) - len(concepts)),
        ("concepts that are obsolete; their names are there", int((concepts["status"] == OBSOLETE).sum())),
        ("what replaced a concept", len(concepts) - concepts["replaced_by"].null_count()),
        ("names that differ in language, source or term type alone", len(names) - len(written)),
        ("languages of names", int((written["language"] != "und").sum())),
        ("sources of names", int((written["source"] != "").sum())),
        ("term types of names", int((written["term_type"] != "").sum())),
        ("marks that a name is suppressed; it is there", int(written["is_suppressed"].sum())),
        ("semantic types", len(content.semantic_types)),
        ("relations", len(content.relations)),
        ("definitions", len(content.definitions)),
        ("cross-references", len(content.cross_references)),
    ):
        writing.lose(what, count)
    lines = written.select(pl.concat_str("concept_id", pl.lit("||"), "text"))
    lines.write_csv(file, include_header=False, quote_style="never", line_terminator="\n")
    return replace(
        content,
        concepts=concepts,
        names=written,
        semantic_types=content.semantic_types.clear(),
        relations=content.relations.clear(),
        definitions=content.definitions.clear(),
        cross_references=content.cross_references.clear(),
    )
