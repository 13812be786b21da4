"""Pairs from files of them: translations, which teach an encoder languages that a terminology lacks, or synonyms.

Files are UTF-8 text, plain, gzip or zip, of one of three forms; most of their first lines tell which:

====================================  =======================================================================
``english<TAB>other[<TAB>class]``     Open Multilingual WordNet and the like; the class is e.g. the synset
``label||english||other``             the parallel data released with cross-lingual SapBERT; SapBERT's own training file
                                      is ``concept||name||name``
``english other``                     MUSE dictionaries: two words with a space between
====================================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts import ensure_writable
from onoma.encoders.tokens import tokenizer_fingerprint
from onoma.errors import ConfigError, InputError, checked_path, one_of
from onoma.files.archives import SourceFile
from onoma.files.delimited import filled_lines
from onoma.files.reading import Check, OnError, Reading
from onoma.files.text_files import only_file
from onoma.pairs.labelled_names import counts_in_words
from onoma.pairs.name_store import own_tokenizer
from onoma.pairs.pair_set import KIND, PairSet, write_pair_set
from onoma.pairs.selection import Ambiguous, check_ambiguous, treat_ambiguous
from onoma.pairs.synonyms import synonym_pairs
from onoma.terminology import normalise_expr
from onoma.types import Progress

Classes: TypeAlias = Literal["pair", "column", "listed"]
"""What makes a class: each pair one of its own, or what the file says in its class column; "listed": the same, and only
the pairs that the file lists."""
_PAIRS_PER_CLASS = 50
_LINES_THAT_TELL = 100
"""The first of a file may be a heading or a comment."""


def build_bitext_pairs(
    files: Sequence[str | Path],
    tokenizer: Tokenizer | str | Path,
    out: str | Path,
    *,
    classes: Classes = "pair",
    max_tokens: int = 25,
    normalisation: str = "sapbert",
    max_pairs_per_class: int | None = None,
    ambiguous: Ambiguous = "mark",
    on_error: OnError = "strict",
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> PairSet:
    """Make pairs of the two sides of translations, to train on after or (`merge_pairs`) with synonyms.

    With ``classes="pair"``, as in the paper, each translation pair is a class with two names; "the" with its
    translations "der" and "die" is two classes. In a batch, one "the" is then a negative of the other, unless equal
    names are marked (``ambiguous``). With "column", all texts of one class in the file(s), English or not, are names of
    one class: synonyms and translations alike, so that files of several languages meet. The same holds with "listed",
    but the pairs are only those of the lines, as in SapBERT's training file.

    Args:
        files: See `onoma.pairs.bitext`. A pair that occurs twice counts once; if it is a class, whichever side is
            first.
        tokenizer: The base encoder's tokeniser or its ``tokenizer.json``.
        out: The folder to write. Its manifest counts the lines (``config["lines"]``): in all, rejected, repeated, and
            with equal sides (nothing to learn from), and with "pair" those whose class an earlier one has, which are
            then negatives of it. Rejected ones are listed in ``rejects.parquet``.
        classes: "pair", "column" or "listed".
        max_tokens: Longest text, special tokens included; longer ones are truncated.
        normalisation: Preset by which all texts are normalised, see `onoma.terminology.normalise`.
        max_pairs_per_class: Random cap, see `synonym_pairs`, for classes that a column names. Unset: 50.
        ambiguous: What becomes of a text in several classes, see `training_names`.
        on_error: "strict" ends at the first bad line; "skip" leaves bad lines out, counts and lists them.
        seed: Of the sample of pairs.
        overwrite: Replace a pair set that is there.
        progress: See `Progress`.

    Raises:
        InputError: a file cannot be read, under "strict" a line is bad, or there is no pair.
        ConfigError: a setting has a value that is not allowed.
        ArtifactExistsError: ``out`` is taken.

    Source:
        Cross-lingual SapBERT (Liu et al. 2021, ACL), section 2.2.
    """
    out = checked_path(out)
    check_ambiguous(ambiguous)
    one_of(classes, get_args(Classes), "kind of classes")
    if max_pairs_per_class is not None and classes != "column":
        raise ConfigError(
            "A limit of pairs per class (--max-pairs) is for classes that are paired anew (--classes column); found "
            f"classes '{classes}', whose pairs are those that stand there."
        )
    per_class = _PAIRS_PER_CLASS if max_pairs_per_class is None else max_pairs_per_class
    own = own_tokenizer(tokenizer)
    ensure_writable(out, KIND, overwrite=overwrite)
    reading = Reading(on_error=on_error)
    blocks = [
        block.with_columns(normalise_expr(pl.col("english", "other"), normalisation))
        for file in files
        for block in read_bitext(only_file(Path(file)), reading, needs_class=classes != "pair")
    ]
    lines = pl.concat([pl.DataFrame(schema=dict.fromkeys(("english", "other", "class"), pl.String)), *blocks])
    counts = {"in_all": len(lines) + len(reading.rejects), "rejected": len(reading.rejects)}
    lines = lines.filter((pl.col("english") != "") & (pl.col("other") != ""))
    counts["blank"] = counts["in_all"] - counts["rejected"] - len(lines)
    key, line = ["class"], ["english", "other", "class"]
    if classes == "pair":  # whichever side stands first
        sides = pl.col("english", "other")
        lines = lines.with_columns(first=pl.min_horizontal(sides), second=pl.max_horizontal(sides))
        key = line = ["first", "second"]
    distinct = lines.unique(line, keep="first", maintain_order=True)
    counts["repeated"] = len(lines) - len(distinct)
    counts["equal_sides"] = int((distinct["english"] == distinct["other"]).sum())
    if classes == "pair":
        labelled = distinct.filter(pl.col("class") != "")["class"]
        counts["of_a_class_again"] = len(labelled) - labelled.n_unique()
    distinct = distinct.with_row_index("line").with_columns(label=pl.col("line").first().over(key))
    names = treat_ambiguous(_names(distinct), ambiguous)
    if classes == "listed":
        pairs = _listed_pairs(distinct, names)
    else:
        pairs = synonym_pairs(names["label"].to_numpy(), max_per_concept=per_class, seed=seed)
    if len(pairs) == 0:
        raise InputError(
            "there is no pair of different texts in the bitext",
            path=files[0] if files else None,
            found=counts_in_words(counts),
        )
    return write_pair_set(
        out,
        names,
        pairs,
        own,
        config={
            "tokenizer": tokenizer_fingerprint(own),
            "max_tokens": max_tokens,
            "normalisation": normalisation,
            "classes": classes,
            "max_pairs_per_class": per_class,
            "ambiguous": ambiguous,
            "files": [file.name for file in reading.files],
            "lines": counts,
        },
        rejects=reading.rejects,
        seed=seed,
        overwrite=overwrite,
        progress=progress,
    )


def read_bitext(file: SourceFile, reading: Reading, *, needs_class: bool = False) -> Iterator[pl.DataFrame]:
    """Yield blocks of translations: ``english``, ``other``, ``class`` ("" where the form has none).

    Args:
        file: See the module.
        reading: Where bad lines go.
        needs_class: Whether a line without class is bad.

    Raises:
        InputError: the file cannot be read; under "strict" also a line of another form.
    """
    split: Callable[[pl.Expr], pl.Expr] | None = None
    for lines in filled_lines(file, reading):
        if lines.is_empty():
            continue
        if split is None:
            split, expected, needed = _form(lines["whole"].head(_LINES_THAT_TELL))
        rows = lines.with_columns(parts=split(pl.col("whole")))
        rows = reading.keep_valid(
            rows,
            [Check(pl.col("parts").list.len().is_in(needed), None, expected, "whole", "a line of another form")],
            path=file.path,
        )
        rows = rows.with_columns(_columns(needed))
        checks = [
            Check(pl.col(side).str.strip_chars() != "", side, "text on both sides", "whole", "an empty side")
            for side in ("english", "other")
        ]
        if needs_class:
            checks.append(Check(pl.col("class") != "", "class", "a class on every line", "whole", "no class"))
        yield reading.keep_valid(rows, checks, path=file.path).select("english", "other", "class")


def _form(lines: pl.Series) -> tuple[Callable[[pl.Expr], pl.Expr], str, tuple[int, ...]]:
    """How to split lines of the form that most of these have, what it is, and how many parts it has."""
    if 2 * lines.str.contains("\t", literal=True).sum() >= len(lines):
        return lambda column: column.str.split("\t"), "english, tab, other[, tab, class]", (2, 3)
    if 2 * lines.str.contains("||", literal=True).sum() >= len(lines):
        return lambda column: column.str.split("||"), "label||english||other", (3,)
    return lambda column: column.str.strip_chars().str.split(" "), "two words with a space between", (2,)


def _columns(needed: tuple[int, ...]) -> list[pl.Expr]:
    parts = pl.col("parts")
    if needed == (3,):
        return [parts.list.get(1).alias("english"), parts.list.get(2).alias("other"), parts.list.get(0).alias("class")]
    return [
        parts.list.get(0).alias("english"),
        parts.list.get(1).alias("other"),
        parts.list.get(2, null_on_oob=True).fill_null("").str.strip_chars().alias("class"),
    ]


def _names(lines: pl.DataFrame) -> pl.DataFrame:
    """By class, in the order of the files: label (the class's first line), text; each once."""
    return (
        pl.concat([lines.select("label", text="english"), lines.select("label", text="other")])
        .unique(maintain_order=True)
        .sort("label", maintain_order=True)
    )


def _listed_pairs(lines: pl.DataFrame, names: pl.DataFrame) -> npt.NDArray[np.int32]:
    """The pairs of the lines, as `synonym_pairs` gives them: rows of names, each pair once, shape (P, 2)."""
    numbered = names.with_row_index("row").select("label", "text", pl.col("row").cast(pl.Int32))
    rows = lines.filter(pl.col("english") != pl.col("other")).select("label", "english", "other")
    for side in ("english", "other"):
        rows = rows.join(numbered.rename({"text": side, "row": f"{side}_row"}), on=["label", side]).drop(side)
    sides = pl.col("english_row", "other_row")
    found = (
        rows.select(first=pl.min_horizontal(sides), second=pl.max_horizontal(sides)).unique().sort("first", "second")
    )
    return found.to_numpy(writable=True)
