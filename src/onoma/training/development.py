"""Development data: queries whose answers are known, to be found in a dictionary while an encoder is trained.

They come from synonyms that are hidden from training (`hidden_synonyms`), or from a file of annotated mentions over the
names of a terminology (`read_development`). `onoma.training.measuring` asks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from onoma.artifacts import verify_artifact
from onoma.code_columns import codes_of_concept_expr, meant_codes_expr
from onoma.codes import other_forms, other_forms_in_words
from onoma.encoders.folders import EncoderFolder, trained_mentions
from onoma.errors import ConfigError, InputError
from onoma.files.reading import Reading
from onoma.pairs import HeldOut, MentionFormat, read_mentions
from onoma.pairs.languages import check_languages
from onoma.pairs.mentions import COMPOSITE, cased_alike, mentions_fingerprint
from onoma.pairs.selection import usable_names
from onoma.terminology import Terminology
from onoma.terminology.name_rows import checked_name_rows
from onoma.terminology.readers.biosyn import BiosynOptions, read_biosyn
from onoma.types import RowArray, Tell

Dictionary: TypeAlias = Terminology | str | Path
"""A terminology or its folder, or a file with a line ``id||name`` for each name."""
HIDDEN = "hidden synonyms"
"""Name of the development set that is made of them."""
LEARNT_TOO = "{}: all of these mentions are learned from: what is measured or chosen by them says nothing of others"
"""Of a development set."""
PARTLY_LEARNT_TOO = "{}: {:,} of {:,} mentions are written as ones that are learned from, and say less of new ones"
"""Likewise, with how many these are of how many."""
TRAINED_BEFORE = "{}: {} was trained on these very mentions: what is measured or chosen by them says nothing of others"
"""Of a development set, and an encoder that training begins with or learns from."""


@dataclass(frozen=True, slots=True, eq=False)
class DevelopmentSet:
    """Queries with known answers, over a dictionary.

    Texts are as people wrote them; they go through the normalisation of the recipe.
    """

    name: str
    """How to call it in logs and reports."""
    queries: pl.DataFrame
    """Columns ``mention`` and ``concept_id`` (String), a row for each query; ``|`` divides several right codes."""
    dictionary: pl.DataFrame
    """Columns ``text`` and ``concept_id`` (String), a row for each name, in the order that decides between equal
    scores. ``a|b`` is one concept that goes by both codes."""


def hidden_synonyms(
    terminology: Terminology,
    held_out: HeldOut,
    *,
    languages: Sequence[str] | None = None,
    hidden_names: npt.ArrayLike | None = None,
) -> DevelopmentSet:
    """Hidden synonyms as queries over all other names of their terminology.

    Args:
        terminology: Whose synonyms were hidden.
        held_out: From `onoma.pairs.hold_out_synonyms`.
        languages: BCP 47 tags of the names to choose from. Unset: all.
        hidden_names: Rows of names that are to be left out besides these.
    """
    hidden = np.union1d(held_out.name_rows, checked_name_rows(hidden_names, terminology.n_names))
    return DevelopmentSet(
        name=HIDDEN,
        queries=pl.DataFrame({"mention": held_out.texts, "concept_id": held_out.concept_ids}),
        dictionary=terminology_names(terminology, languages, hidden),
    )


def read_development(
    file: str | Path,
    terminology: Terminology,
    *,
    languages: Sequence[str] | None = None,
    hidden_names: npt.ArrayLike | None = None,
    mention_format: MentionFormat | None = None,
    tell: Tell | None = None,
) -> DevelopmentSet:
    """The queries of a file, over the names of a terminology.

    Args:
        file: A table (``.csv``, ``.tsv``, ``.parquet``, ``.jsonl``) with the columns ``mention`` and ``concept_id``, or
            lines ``id(s)||mention`` as BioSyn has them; several codes are divided by ``|``. Composite mentions are left
            out.
        terminology: Whose active concepts may be answers, by their names that are not suppressed.
        languages: BCP 47 tags of the names to choose from. Unset: all.
        hidden_names: Rows of names to leave out, as if the terminology did not have them.
        mention_format: How the file is written: other columns, if it is a table, or another encoding.
        tell: Called with a sentence on composite mentions, and on queries that have no answer in the terminology; such
            queries count as wrong.

    Raises:
        InputError: the file is not readable, a line is bad (file, line and field are named), or the terminology has the
            answer to none of the queries.
    """
    names = terminology_names(terminology, languages, checked_name_rows(hidden_names, terminology.n_names))
    return queries_over(file, names, source=terminology.path, mention_format=mention_format, tell=tell)


def queries_over(
    file: str | Path,
    dictionary: pl.DataFrame,
    *,
    source: Path,
    unknown: str = "they count as wrong",
    mention_format: MentionFormat | None = None,
    tell: Tell | None = None,
) -> DevelopmentSet:
    """The queries of a file, over a dictionary.

    Args:
        file: See `read_development`.
        dictionary: Columns ``text`` and ``concept_id``, see `DevelopmentSet`.
        source: Where the dictionary comes from, for messages.
        unknown: What becomes of queries that mean a concept which the dictionary does not have.
        mention_format: See `read_development`.
        tell: See `read_development`.

    Raises:
        InputError: see `read_development`.
    """
    path = Path(file)
    written = (mention_format or MentionFormat()).fitting(path)
    reading = written.reading()  # no line left out: a score must not come to be that of fewer queries
    queries = read_mentions(path, reading, mention_format=written)
    known = set(dictionary.select(codes_of_concept_expr().alias("code")).explode("code")["code"])
    answers = queries.select(meant_codes_expr(dictionary["concept_id"]).alias("codes"))["codes"].to_list()
    without = [row for row, codes in enumerate(answers) if known.isdisjoint(codes)]
    meant_by = other_forms({code for row in without for code in answers[row]}, known)
    said = f"; {other_forms_in_words(meant_by, where='the dictionary')}" if meant_by else ""
    if len(without) == len(queries):
        raise InputError(
            f"the dictionary {source} has the concept of none of the {len(queries):,} queries",
            path=path,
            field=written.concept_id,
            expected=f"codes like {dictionary['concept_id'][0]}" if len(dictionary) else "a dictionary with names",
            found=str(queries["concept_id"][0]),
            fix=f"give the terminology or dictionary that the mentions were annotated with{said}",
        )
    if tell is not None and without:
        tell(
            f"{path.name}: {len(without):,} of {len(queries):,} queries mean a concept that the dictionary does not "
            f"have ({queries['concept_id'][without[0]]}); {unknown}{said}"
        )
    if tell is not None and COMPOSITE in reading.notes:
        tell(f"{path.name}: {reading.notes[COMPOSITE]:,} {COMPOSITE}")
    return DevelopmentSet(name=path.name, queries=queries, dictionary=dictionary)


def tell_of_learnt(
    tables: Mapping[str, pl.DataFrame],
    tell: Tell,
    *,
    encoders: Iterable[EncoderFolder],
    mentions: pl.DataFrame | None = None,
    pairs: Mapping[str, Any] | None = None,
) -> None:
    """Tell of development mentions that are, or all of which were, learned from: of others they say little, or nothing.

    Args:
        tables: Of each development set, with the column ``mention``.
        tell: Called with a sentence on each such set.
        encoders: What training begins with, and its teacher.
        mentions: What is learned from, likewise.
        pairs: Or the ``config`` of the manifest of the pairs that are.
    """
    known = set() if mentions is None else {cased_alike(mention) for mention in mentions["mention"]}
    of_pairs = trained_mentions({"pairs": pairs or {}})
    before = list(encoders)
    for name, table in tables.items():
        fingerprint = mentions_fingerprint(table["mention"])
        n_known = sum(cased_alike(mention) in known for mention in table["mention"])
        if fingerprint in of_pairs or 0 < n_known == len(table):
            tell(LEARNT_TOO.format(name))
        elif n_known:
            tell(PARTLY_LEARNT_TOO.format(name, n_known, len(table)))
        for encoder in before:
            if fingerprint in encoder.trained_mentions:
                tell(TRAINED_BEFORE.format(name, encoder.name))


def read_dictionary(
    source: Terminology | str | Path, *, languages: Sequence[str] | None = None
) -> tuple[pl.DataFrame, Path]:
    """The names to choose from, and where they lie.

    Args:
        source: A terminology or its folder, of which the names of active concepts are taken that are not suppressed; or
            a file in the form of BioSyn's dictionaries, a line ``id||name`` for each name, several codes of a name
            divided by ``|``.
        languages: BCP 47 tags of the names to take. Unset: all.

    Raises:
        InputError: it cannot be read, or no name of the terminology is of one of the languages.
        ConfigError: languages are asked for of a file, which does not say of what language a name is.
    """
    if isinstance(source, Terminology) or not Path(source).is_file():
        terminology = source if isinstance(source, Terminology) else Terminology.open(source)
        verify_artifact(terminology.path)
        check_languages(terminology, languages)
        return terminology_names(terminology, languages), terminology.path
    path = Path(source)
    if languages is not None:
        raise ConfigError(
            f"{path} does not say of what language a name is; unset languages, or give a terminology folder."
        )
    return read_biosyn(str(path), BiosynOptions(), Reading(may_skip=False)).names.select("text", "concept_id"), path


def terminology_names(
    terminology: Terminology, languages: Sequence[str] | None, hidden: RowArray | None = None
) -> pl.DataFrame:
    """A dictionary: names of active concepts that are neither suppressed nor hidden, of these languages."""
    kept = usable_names(terminology, languages=languages)
    if hidden is not None:
        kept[hidden] = False
    names = terminology.names().select("concept_row", "text").filter(pl.lit(pl.Series(kept))).collect()
    concept_ids = terminology.concepts().select("concept_id").collect()["concept_id"]
    return names.select("text", concept_id=concept_ids.gather(names["concept_row"]))
