"""Synonyms hidden from training and linking, to be searched for afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from onoma.errors import InputError, check_several, is_whole
from onoma.files.table_rows import is_table
from onoma.files.text_files import only_file
from onoma.pairs.languages import check_languages
from onoma.pairs.mention_format import MentionFormat
from onoma.pairs.mentions import read_mention_lines, read_mentions
from onoma.pairs.selection import normalised_names, rows_fingerprint, usable_names
from onoma.randomness import random_from
from onoma.terminology import Terminology, normalise_expr
from onoma.terminology.name_rows import checked_name_rows
from onoma.terminology.terminology import as_terminology
from onoma.types import RowArray


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Hidden synonyms, at most one per concept, in the order of the terminology."""

    texts: tuple[str, ...]
    """The hidden synonyms as the terminology spells them."""
    concept_ids: tuple[str, ...]
    """The concept of each."""
    name_rows: RowArray
    """Rows of the table of names to leave out, ascending. May be more than the synonyms: every name of the
    concept that normalises to the hidden text is one, suppressed names included."""

    def __repr__(self) -> str:
        return f"HeldOut({len(self.texts):,} synonyms, {len(self.name_rows):,} rows of names)"

    @property
    def fingerprint(self) -> str | None:
        """SHA-256 over the rows that are left out; None when nothing is hidden."""
        return rows_fingerprint(self.name_rows)


def hold_out_synonyms(
    terminology: Terminology | str | Path,
    *,
    n_names: int,
    seed: int = 0,
    normalisation: str = "sapbert",
    languages: Sequence[str] | None = None,
    hidden_names: npt.ArrayLike | None = None,
) -> HeldOut:
    """Choose synonyms to hide, at random and uniformly over the concepts that can spare one.

    A concept can spare a synonym if two other distinct normalised names, in the same languages, remain. Neither the
    preferred name nor a text that is also a name of another concept is ever hidden (nobody could say whose the latter
    is). At most one synonym per concept is hidden, so that the answers are independent of one another.

    Args:
        terminology: The terminology, or its folder.
        n_names: How many synonyms to hide.
        seed: Of the choice.
        normalisation: Preset under which texts count as equal.
        languages: BCP 47 tags to hide names of (``en`` includes ``en-GB``). Unset: all.
        hidden_names: Rows of names that are already hidden, for another purpose: as if the terminology did not have
            them. None of their texts is chosen for the same concept.

    Raises:
        InputError: a hidden name does not exist, no name is in one of the languages, fewer concepts than ``n_names``
            can spare one, or the seed is not a whole number from 0.
    """
    terminology = as_terminology(terminology)
    check_languages(terminology, languages)
    usable = usable_names(terminology)
    is_hidden = np.zeros(len(usable), np.bool_)
    is_hidden[checked_name_rows(hidden_names, len(usable))] = True
    names = normalised_names(terminology, usable & ~is_hidden, normalisation)
    elsewhere = normalised_names(terminology, is_hidden, normalisation)  # maybe spelt in another way here
    spare = _spare_texts(names, terminology, languages).join(
        elsewhere, on=["concept_row", "text"], how="anti", maintain_order="left"
    )
    random = random_from(seed)
    # First one text of each concept, then the concepts: a concept with many synonyms is no likelier than another.
    order = pl.Series("order", random.permutation(len(spare)))
    candidates = (
        spare.with_columns(order).sort("order").unique("concept_row", keep="first").sort("concept_row").drop("order")
    )
    if len(candidates) == 0:
        of_languages = f" of the languages {', '.join(languages)}" if languages is not None else ""
        raise InputError(
            "there is no synonym that could be hidden",
            path=terminology.path,
            expected=f"concepts with at least three different names, one of which{of_languages} is not preferred and "
            "is of no other concept",
            fix="give a file of queries to measure on instead, or import the vocabulary with its synonyms",
        )
    if not is_whole(n_names) or not 1 <= n_names <= len(candidates):
        raise InputError(
            "so many synonyms cannot be hidden",
            path=terminology.path,
            expected=f"1 to {len(candidates)}, the number of concepts that keep at least two other names",
            found=str(n_names),
        )
    chosen = candidates[np.sort(random.choice(len(candidates), n_names, replace=False))]
    first = names.join(chosen, on=["concept_row", "text"], how="semi").sort("name_row")
    first = first.unique("concept_row", keep="first", maintain_order=True)
    spelling = terminology.names().select("concept_row", "text").collect()
    # Suppressed names too: a recipe may train on them, and would then have seen the answer.
    of_chosen = np.isin(spelling["concept_row"].to_numpy(), chosen["concept_row"].to_numpy())
    hidden = normalised_names(terminology, of_chosen, normalisation).join(
        chosen, on=["concept_row", "text"], how="semi"
    )
    concept_ids = terminology.concepts().select("concept_id").collect()["concept_id"]
    return HeldOut(
        texts=tuple(spelling["text"].gather(first["name_row"])),
        concept_ids=tuple(concept_ids.gather(first["concept_row"])),
        name_rows=hidden["name_row"].sort().to_numpy().astype(np.int64),
    )


def _spare_texts(names: pl.DataFrame, terminology: Terminology, languages: Sequence[str] | None) -> pl.DataFrame:
    """(concept_row, text) that may be hidden, sorted."""
    about = terminology.names().select("is_preferred").collect()["is_preferred"].gather(names["name_row"])
    in_language = usable_names(terminology, languages=languages)
    return (
        names.with_columns(
            is_preferred=about,
            in_language=pl.Series(in_language[names["name_row"].to_numpy()]),
        )
        .group_by("concept_row", "text")
        .agg(pl.col("is_preferred").any(), pl.col("in_language").any())
        .filter(
            pl.col("in_language").sum().over("concept_row") >= 3,
            pl.len().over("text") == 1,
            ~pl.col("is_preferred"),
            pl.col("in_language"),
        )
        .select("concept_row", "text")
        .sort("concept_row", "text")
    )


def names_of_mentions(
    terminology: Terminology | str | Path,
    files: Iterable[str | Path],
    *,
    normalisation: str = "sapbert",
    mention_format: MentionFormat | None = None,
) -> RowArray:
    """Names that are written as mentions are, such as those of a test set, to be left out of training.

    Args:
        terminology: The terminology of the names.
        files: Annotated mentions, as `onoma.pairs.read_mentions` reads them, and the parts of composite ones. Their
            codes are ignored.
        normalisation: Preset by which names and mentions are normalised.
        mention_format: The names of columns in those files that are tables, and the encoding.

    Returns:
        Rows of the table of names, ascending, to be given as ``hidden_names``.

    Raises:
        InputError: a file cannot be read.
    """
    check_several(files, "files")
    written = mention_format or MentionFormat()
    read = [_texts_of(Path(file), written.fitting(file)) for file in files]
    mentions = pl.concat([pl.Series([], dtype=pl.String), *read]).rename("mention")
    texts = mentions.to_frame().lazy().select(text=normalise_expr(pl.col("mention"), normalisation))
    texts = texts.filter(pl.col("text") != "").unique()
    names = as_terminology(terminology).names().select(text=normalise_expr(pl.col("text"), normalisation))
    named_so = names.with_row_index("row").join(texts, on="text", how="semi").select(pl.col("row").cast(pl.Int64))
    rows: RowArray = named_so.collect()["row"].sort().to_numpy()
    return rows


def _texts_of(file: Path, written: MentionFormat) -> pl.Series:
    if file.is_dir() or is_table(found := only_file(file)):
        return read_mentions(file, written.reading(), mention_format=written)["mention"]
    return read_mention_lines(found, written.reading())["parts"].explode().rename("mention")
