"""Pairs for fine-tuning: mentions that people have annotated, with the names of the concept they mean.

Files of mentions are

* tables (``.csv``, ``.tsv``, ``.parquet``, ``.jsonl``) with the columns ``mention`` and ``concept_id``, or others that
  are named (`onoma.pairs.MentionFormat`); several codes of a mention are divided by ``|``;
* any other text in the form of BioSyn's queries: a line ``id||mention`` for each, several codes divided by ``|`` or
  ``+``. Composite mentions, several texts divided by ``|``, or by ``+`` as their codes are, are left out and counted,
  since they do not say which text means what. Where no ``+`` divides the codes, one divides no text ("CD4+ cell").
  A second ``||`` is refused: SapBERT's pairs and BioSyn's ``.concept`` files have such lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts import ensure_writable
from onoma.code_columns import codes_of_concept_expr, meant_codes_expr
from onoma.codes import NO_CONCEPT, other_forms, other_forms_in_words
from onoma.encoders.tokens import tokenizer_fingerprint
from onoma.errors import ConfigError, InputError, checked_path, one_of
from onoma.files.archives import SourceFile
from onoma.files.delimited import read_barred
from onoma.files.reading import Check, Reading
from onoma.files.table_rows import LINE, is_table, table_rows
from onoma.files.text_files import only_file
from onoma.pairs.languages import check_languages
from onoma.pairs.mention_format import LABELLED, MentionFormat, no_columns
from onoma.pairs.name_store import own_tokenizer
from onoma.pairs.pair_set import KIND, PairSet, write_pair_set
from onoma.pairs.selection import Ambiguous, check_ambiguous, training_names, treat_ambiguous
from onoma.randomness import random_from
from onoma.terminology import Terminology, normalise_expr
from onoma.terminology.tables import ACTIVE
from onoma.terminology.terminology import as_terminology
from onoma.types import Progress, Tell

OnUnknown: TypeAlias = Literal["refuse", "skip"]
"""What becomes of a mention of a concept that the terminology does not have: an error, or it is counted."""


COMPOSITE = "composite mentions left out"
"""The note that `read_mentions` makes of them."""
_BARRED = (
    "a second '||' in the line: lines CUI||name||name are SapBERT's pairs, for onoma pairs bitext --classes listed; of "
    ".concept files docs/benchmarks.md (ncbi-disease) makes lines id||mention"
)
_MENTION_LINES = pl.Schema(
    {"mention": pl.String(), "concept_id": pl.String(), "parts": pl.List(pl.String()), "line": pl.UInt32()}
)
_HAS_CODE = pl.col("concept_id").str.contains(r"[^|\s]")
"""Whether `onoma.codes.split_codes` finds a code."""


def read_mentions(
    file: str | Path,
    reading: Reading | None = None,
    *,
    context: str | None = None,
    cluster: str | None = None,
    mention_format: MentionFormat | None = None,
) -> pl.DataFrame:
    """Read annotated mentions, for `build_mention_pairs` and `onoma.linking.tune_linker`.

    Args:
        file: See the module; plain, gzip or alone in a zip.
        reading: Where bad lines go, the encoding, and the note on composite mentions (`COMPOSITE`). Unset: the first
            bad line is refused.
        context: A column of a table that says where each mention stands, to be read too; its cells may be empty.
        cluster: Likewise one that says what each mention is of, such as the document.
        mention_format: What the columns of a table are called, and the encoding.

    Returns:
        Columns ``mention`` and ``concept_id``, whatever the table calls them, and ``context`` and ``cluster`` if they
        were asked for, a row for each annotation.

    Raises:
        InputError: the file or a column is missing, columns are named of lines, or, under "strict", a line is bad; or
            there are no mentions.
        ConfigError: ``reading`` and ``mention_format`` say another encoding.
    """
    written = mention_format or MentionFormat()
    asked = written.reading(may_skip=True)
    reading = asked if reading is None else reading
    if asked.encoding not in (None, reading.encoding):
        raise ConfigError(f"mentions are in one encoding; found {asked.encoding} and {reading.encoding or 'utf-8'}.")
    more = {role: column for role, column in {"context": context, "cluster": cluster}.items() if column is not None}
    found = _read(checked_path(file), reading, written, more)
    if found.is_empty():
        composite = reading.notes.get(COMPOSITE, 0)
        raise InputError(
            "there are no mentions in the file",
            path=Path(file),
            expected="a line id||mention, or a row, for each",
            found=f"{composite:,} {COMPOSITE}" if composite else None,
        )
    return found


def mentions_fingerprint(mentions: Iterable[str]) -> str:
    """SHA-256 over the distinct texts, sorted, whatever their case and white space: the same mentions, however often.

    A text cannot be read from it, as it could be from a mark of each.
    """
    texts = {cased_alike(mention) for mention in mentions}
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()


def cased_alike(mention: str) -> str:
    """Equal for mentions that differ in case and white space alone."""
    return " ".join(mention.lower().split())


def refuse_concept_files(path: Path) -> None:
    """Say how a file of mentions is made of a folder of BioSyn's files, if it is one.

    Raises:
        InputError: it is.
    """
    if path.is_dir() and next(path.glob("*.concept"), None):
        raise InputError(
            "this is a folder of .concept files, as BioSyn has them",
            path=path,
            expected="one file of lines id||mention",
            fix="make it as docs/benchmarks.md says (ncbi-disease)",
        )


def _read(path: Path, reading: Reading, written: MentionFormat, more: Mapping[str, str]) -> pl.DataFrame:
    refuse_concept_files(path)
    file = only_file(path)
    if is_table(file):
        return _read_table(file, reading, {**dict(zip(LABELLED, written.columns, strict=True)), **more})
    if written.columns != LABELLED:
        raise no_columns(path, written)
    for role, column in more.items():
        raise InputError(
            f"lines of mentions have no {role}s",
            path=path,
            expected=f"a .csv, .tsv, .parquet or .jsonl with a column '{column}'",
        )
    lines = read_mention_lines(path, reading)
    reading.note(COMPOSITE, int((lines["parts"].list.len() > 1).sum()))
    return lines.filter(pl.col("parts").list.len() == 1).select(LABELLED)


def read_mention_lines(path: Path, reading: Reading) -> pl.DataFrame:
    """Lines ``id||mention``, composite mentions among them.

    Args:
        path: The file.
        reading: Where bad lines go.

    Returns:
        Columns ``mention``, ``concept_id`` (codes, divided by ``|``), ``parts`` (the texts of the mention, a list) and
        ``line`` (its number), a row for each line.

    Raises:
        InputError: there is no such file; under "strict" also where a line is bad.
    """
    checks = (
        Check(pl.col("mention").is_not_null(), None, "id||mention", "whole", "no '||' in the line"),
        Check(pl.col("concept_id").str.contains(r"[^|+\s]"), "id", "id||mention", "whole", "an empty id"),
        Check(pl.col("mention").str.strip_chars() != "", "mention", "id||mention", "whole", "an empty mention"),
        Check(~pl.col("mention").str.contains("||", literal=True), None, "id||mention", "whole", _BARRED),
    )
    divided_by_plus = pl.col("mention").str.replace_all("+", "|", literal=True).str.split("|")
    has_plus = pl.col("concept_id").str.contains("+", literal=True)
    parts = pl.when(has_plus).then(divided_by_plus).otherwise(pl.col("mention").str.split("|"))
    codes = pl.col("concept_id").str.replace_all("+", "|", literal=True)
    blocks = [
        reading.keep_valid(block, checks, path=path).select("mention", concept_id=codes, parts=parts, line="line")
        for block in read_barred(path, reading, ("concept_id", "mention"))
    ]
    return pl.concat([pl.DataFrame(schema=_MENTION_LINES), *blocks])


def _read_table(file: SourceFile, reading: Reading, columns: Mapping[str, str]) -> pl.DataFrame:
    """``columns``: what the table calls a column, by what it is called here."""
    try:
        blocks = list(table_rows(file, reading, columns=list(dict.fromkeys(columns.values()))))
    except InputError as error:
        role = next((role for role, column in columns.items() if column == error.field), None)
        if role is None:
            raise
        raise InputError(
            error.problem,
            path=error.path,
            line=error.line,
            field=error.field,
            expected=error.expected,
            found=error.found,
            fix=_how_to_name_column(error, role),
        ) from None
    checks = [
        Check(pl.col("mention").str.strip_chars() != "", columns["mention"], "text", "mention", "an empty cell"),
        Check(_HAS_CODE, columns["concept_id"], "a code", "concept_id", "an empty cell"),
    ]
    # Not by expressions, to which a name such as "*" would be a pattern; and a column may be asked for twice.
    rows = [
        pl.DataFrame([block[LINE], *(block[column].alias(role) for role, column in columns.items())])
        for block in blocks
    ]
    good = [reading.keep_valid(block, checks, path=file.path, line_column=LINE) for block in rows]
    parts = [part.select(*columns) for part in good]
    n_joined = sum(part.filter(pl.col("concept_id").str.contains("+", literal=True)).height for part in parts)
    reading.note("codes with a '+', which divides codes in lines id||mention alone", n_joined)
    return pl.concat([pl.DataFrame(schema=dict.fromkeys(columns, pl.String)), *parts])


_HOW_TO_NAME = {
    "mention": "name the column of mentions (--column)",
    "concept_id": "name the column of their codes (--code-column)",
    "context": "name the column of contexts (--context)",
    "cluster": "name the column of clusters (--cluster)",
}


def _how_to_name_column(error: InputError, role: str) -> str | None:
    """Instead of the options of terminologies, which mentions do not have."""
    if error.problem.startswith("two columns"):
        return "call one of them otherwise"
    is_missing = error.problem.startswith(("there is no column", "no line has the key"))
    return _HOW_TO_NAME[role] if is_missing else error.fix


def build_mention_pairs(
    terminology: Terminology | str | Path,
    mentions: pl.DataFrame,
    tokenizer: Tokenizer | str | Path,
    out: str | Path,
    *,
    max_tokens: int = 25,
    normalisation: str = "sapbert",
    max_pairs_per_mention: int | None = None,
    languages: Sequence[str] | None = None,
    ambiguous: Ambiguous = "mark",
    on_unknown: OnUnknown = "refuse",
    rejects: pl.DataFrame | None = None,
    seed: int = 0,
    overwrite: bool = False,
    tell: Tell | None = None,
    progress: Progress | None = None,
) -> PairSet:
    """Pair every mention with the names of its concept.

    A mention becomes a training name of its concept, so that neither the concept's names nor its other mentions
    are its negatives. A mention of several concepts (``D001|D002``) becomes one of each. Nothing is paired with
    itself: a mention that is spelt like a name of its concept is that name.

    Args:
        terminology: What the mentions are linked to. Active concepts and names that are not suppressed are taken,
            those of the mentioned concepts alone.
        mentions: Columns ``mention`` and ``concept_id`` (String), a row for each annotation; several codes are
            divided by ``|``, in the table and in the terminology alike. A mention of several parts must be
            taken apart before: annotations rarely say which part means what.
        tokenizer: The base encoder's tokeniser or its ``tokenizer.json``.
        out: The folder to write. Its manifest counts the mentions (``config["mentions"]``): in all, of no concept
            (`onoma.codes.NO_CONCEPT`: there is nothing to pair them with), of unknown concepts, blank after
            normalisation, and of concepts without a name to pair with.
        max_tokens: Longer names are cut, special tokens included.
        normalisation: Preset that names and mentions go through, see `onoma.terminology.normalise`.
        max_pairs_per_mention: Random cap. Unset: all names, as SapBERT does.
        languages: BCP 47 tags of the names to pair with, see `onoma.pairs.languages`. Unset: all.
        ambiguous: What becomes of a text that several of these concepts carry, see `training_names`.
        on_unknown: "refuse" ends at the first mention of a concept that is not there (or retired), "skip" leaves
            such mentions out and counts them; of the concepts of a mention ("D1|D2") those that are there are taken.
        rejects: Lines that were left out as ``mentions`` were read (`Reading.rejects`); kept in ``rejects.parquet``.
        seed: Of the sample of pairs.
        overwrite: Replace a pair set that is there.
        tell: Called with a sentence on codes that the terminology has in another form.
        progress: See `Progress`.

    Raises:
        InputError: the table has other columns, a concept is unknown, or no pair is left.
        ConfigError: a setting has a value it cannot have.
        ArtifactExistsError: ``out`` is taken.

    Source:
        SapBERT (Liu et al. 2021), section 4, fine-tuning: mentions with all synonyms of their concepts.
    """
    out = checked_path(out)
    check_ambiguous(ambiguous)
    one_of(on_unknown, get_args(OnUnknown), "on_unknown")
    if max_pairs_per_mention is not None and max_pairs_per_mention < 1:
        raise ConfigError(f"max_pairs_per_mention must be at least 1; found {max_pairs_per_mention}.")
    terminology = as_terminology(terminology)
    own = own_tokenizer(tokenizer)
    ensure_writable(out, KIND, overwrite=overwrite)
    check_languages(terminology, languages)
    linked, counts, said = _link_mentions(terminology, mentions, normalisation, on_unknown)
    if tell is not None and said:
        tell(said)
    concept_names = training_names(
        terminology.concepts(),
        terminology.names(),
        normalisation=normalisation,
        languages=languages,
        ambiguous="keep",
    ).join(linked, on="concept_row", how="semi")
    counts["without_names"] = linked.join(concept_names, on="concept_row", how="anti").height
    names = treat_ambiguous(_names_and_mentions(concept_names, linked), ambiguous)
    pairs = _pairs(names, max_pairs_per_mention, seed)
    if len(pairs) == 0:
        raise InputError(
            "no mention has a name to be paired with",
            path=terminology.path,
            expected="mentions of active concepts with a name that is spelt otherwise",
            found=", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in counts.items() if count),
            fix=f"take the terminology that the mentions were annotated with{f'; {said}' if said else ''}"
            if counts["unknown"]
            else None,
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
            "max_pairs_per_mention": max_pairs_per_mention,
            "languages": None if languages is None else sorted(languages),
            "ambiguous": ambiguous,
            "mentions": counts,
            "mentions_fingerprint": mentions_fingerprint(mentions["mention"]),
        },
        parents=[terminology.manifest.as_parent()],
        rejects=rejects,
        seed=seed,
        overwrite=overwrite,
        progress=progress,
    )


def _link_mentions(
    terminology: Terminology, mentions: pl.DataFrame, normalisation: str, on_unknown: OnUnknown
) -> tuple[pl.DataFrame, dict[str, int], str]:
    """Distinct (concept_row, text), in the order of the mentions, counts of what was left out, and on other forms."""
    check_mentions(mentions)
    concepts = (
        terminology.concepts()
        .select("concept_id", "status")
        .with_row_index("concept_row")
        .filter(pl.col("status") == ACTIVE)
        .select("concept_id", pl.col("concept_row").cast(pl.Int32), code=codes_of_concept_expr())
        .collect()
    )
    meant = meant_codes_expr(concepts["concept_id"])
    codes = concepts.select("concept_row", "code").explode("code")
    annotated = (
        mentions.select(text=normalise_expr(pl.col("mention"), normalisation), code=meant)
        .with_row_index("mention_row")
        .explode("code")
    )
    is_nil = pl.col("code").is_in([code for code in NO_CONCEPT if code not in codes["code"]])
    n_blank = int((annotated.unique("mention_row")["text"] == "").sum())
    n_nil = annotated.filter(is_nil.all().over("mention_row"))["mention_row"].n_unique()
    annotated = annotated.filter(~is_nil)
    unknown = annotated.join(codes, on="code", how="anti").sort("mention_row")
    concept_ids = terminology.concepts().select("concept_id").collect().to_series().to_list()
    meant_by = other_forms(unknown["code"].unique().to_list(), concept_ids)
    said = other_forms_in_words(meant_by, where="the terminology") if meant_by else ""
    if on_unknown == "refuse" and len(unknown):
        raise InputError(
            f"{unknown['mention_row'].n_unique():,} of {len(mentions):,} mentions mean a concept that the terminology "
            f"{terminology.path} does not have, or no longer",
            field="concept_id",
            found=", ".join(unknown["code"].unique(maintain_order=True).head(3)),
            fix="take the terminology that the mentions were annotated with, or leave such mentions out with "
            f"on_unknown='skip' (--on-unknown skip); they are counted{f'; {said}' if said else ''}",
        )
    linked = annotated.join(codes, on="code", maintain_order="left")
    counts = {
        "in_all": len(mentions),
        "of_no_concept": n_nil,
        "unknown": unknown.join(linked, on="mention_row", how="anti")["mention_row"].n_unique(),
        "partly_unknown": unknown.join(linked, on="mention_row", how="semi")["mention_row"].n_unique(),
        "blank": n_blank,
    }
    return linked.filter(pl.col("text") != "").select("concept_row", "text").unique(maintain_order=True), counts, said


def check_mentions(mentions: pl.DataFrame) -> None:
    """Refuse what has not the columns that `read_mentions` gives, of text and without empty rows.

    Raises:
        InputError: naming the first column.
    """
    if not isinstance(mentions, pl.DataFrame):
        raise InputError(
            "this is no table of mentions",
            expected="a polars DataFrame with the columns mention and concept_id",
            found=repr(mentions) if isinstance(mentions, str | Path) else type(mentions).__name__,
            fix="read a file by read_mentions",
        )
    for column in LABELLED:
        found = mentions.schema.get(column)
        if found != pl.String or mentions[column].null_count():
            raise InputError(
                "this is no table of mentions",
                field=column,
                expected="columns mention and concept_id, of text, every row filled",
                found="no such column" if found is None else "an empty row" if found == pl.String else str(found),
            )
    n_blank = mentions.filter(~_HAS_CODE).height
    if n_blank:
        raise InputError(
            "mentions without a code",
            field="concept_id",
            expected="a code in every row; NIL where a mention means no concept",
            found=f"{n_blank:,} blank ones",
            fix="leave out what nobody has labelled",
        )


def _names_and_mentions(concept_names: pl.DataFrame, linked: pl.DataFrame) -> pl.DataFrame:
    """By concept, names before mentions: label, text, is_name, is_mention; each (label, text) once."""
    parts = [
        table.select("concept_row", "text", is_name=pl.lit(is_name), is_mention=pl.lit(not is_name))
        for table, is_name in ((concept_names, True), (linked, False))
    ]
    return (
        pl.concat(parts)
        .group_by("concept_row", "text", maintain_order=True)
        .agg(pl.col("is_name", "is_mention").any())
        .sort("concept_row", maintain_order=True)
        .rename({"concept_row": "label"})
    )


def _pairs(names: pl.DataFrame, max_per_mention: int | None, seed: int) -> npt.NDArray[np.int32]:
    """(name, mention) or, where both are both, (earlier, later); each pair once."""
    rows = names.select("label", "is_name", "is_mention").with_row_index("row")
    pairs = (
        rows.filter("is_mention")
        .select("label", mention="row")
        .join(rows.filter("is_name").select("label", name="row"), on="label")
        .filter(pl.col("mention") != pl.col("name"))
        .sort("mention", "name")
    )
    if max_per_mention is not None and max_per_mention < len(pairs):
        order = pl.Series("order", random_from(seed).permutation(len(pairs)))
        pairs = pairs.with_columns(order).filter(pl.col("order").rank().over("mention") <= max_per_mention)
    distinct = (
        pairs.select(first=pl.min_horizontal("mention", "name"), second=pl.max_horizontal("mention", "name"))
        .unique()
        .sort("first", "second")
    )
    return distinct.to_numpy().astype(np.int32)
