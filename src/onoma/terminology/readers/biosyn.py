"""BioSyn dictionaries: one line ``id||name`` for each name, https://github.com/dmis-lab/BioSyn.

The id ends at the first ``||``. A name may contain ``||``; such lines, which SapBERT's training pairs and BioSyn's
``.concept`` files have, are counted in a note. An id may list several codes for one concept (``C567755|613097``); it is
kept whole. The lines of an id need not be together. The first name of an id is the preferred one. Blank lines are
skipped.

Some files of this family have all names of a concept in one line, ``id||name|name|name``: the MEDIC of 2012 that
BioSyn made its dictionary from, and the files to which the authors of BELB export their knowledge bases for BioSyn
(https://github.com/sg-wbi/belb-exp). Read these with ``separator=|``; outer white space of such names is stripped.
(BELB itself keeps knowledge bases in a database, and in newer releases as tables of id, label and aliases, which
format ``table`` reads.)
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from pydantic import Field

from onoma.files.delimited import read_barred
from onoma.files.reading import Check, Reading
from onoma.files.text_files import only_file
from onoma.terminology.assembly import SOURCE_NAMES, SourceTables
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.options import LanguageTag, ReaderOptions, Separator

_CHECKS = (
    Check(pl.col("text").is_not_null(), None, "id||name", "whole", "no '||' in the line"),
    Check(pl.col("concept_id") != "", None, "id||name", "whole", "an empty id"),
)
_BARRED = (
    "names with '||' in them, kept whole (lines CUI||name||name are SapBERT's pairs, for onoma pairs bitext --classes "
    "listed; .concept files hold annotated mentions: docs/benchmarks.md)"
)


class BiosynOptions(ReaderOptions):
    """Options of the BioSyn reader."""

    language: LanguageTag = Field(default="und", description="language of the names (BCP 47); the format does not say")
    source: str = Field(default="", description="source of the names, e.g. CTD")
    separator: Separator | None = Field(
        default=None, description="what separates several names in one line, e.g. | (MEDIC of 2012)"
    )


def read_biosyn(source: str, options: BiosynOptions, reading: Reading) -> SourceTables:
    """Read a BioSyn dictionary.

    Args:
        source: The file, plain or gzip.
        options: What the format does not say.
        reading: Where bad lines go.

    Raises:
        InputError: no such file, or nothing in it; under "strict" also a line that is not ``id||name``.
    """
    file = only_file(Path(source))
    text = pl.col("text")
    any_text = text.str.replace_all(options.separator, "", literal=True) if options.separator else text
    checks = (*_CHECKS, Check(any_text.str.strip_chars() != "", None, "id||name", "whole", "an empty name"))
    parts = [pl.DataFrame(schema={"concept_id": pl.String, "text": pl.String})]
    for block in read_barred(file, reading, ("concept_id", "text")):
        rows = block.with_columns(pl.col("concept_id").str.strip_chars())
        rows = reading.keep_valid(rows, checks, path=file.path).select("concept_id", "text")
        if options.separator:
            pieces = pl.col("text").str.split(options.separator).list.eval(pl.element().str.strip_chars())
            rows = rows.with_columns(pieces).explode("text").filter(pl.col("text") != "")
        parts.append(rows)
    texts = pl.concat(parts)
    reading.note(_BARRED, int(texts["text"].str.contains("||", literal=True).sum()))
    names = texts.with_columns(
        language=pl.lit(options.language),
        source=pl.lit(options.source),
        term_type=pl.lit(""),
        preference=pl.lit(0, dtype=pl.UInt8),
        is_suppressed=pl.lit(False),
    )
    return SourceTables(path=file.path, names=names.select(SOURCE_NAMES.names()))


FORMAT = Format(
    name="biosyn",
    description="dictionary of BioSyn or SapBERT: one line id||name for each name",
    source="a text file, plain or gzip",
    obtain="the authors' releases (https://github.com/dmis-lab/BioSyn), or any dictionary of your own in this form",
    licence="that of the vocabulary it was made from",
    options=BiosynOptions,
    read=read_biosyn,
)
