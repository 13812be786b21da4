"""Pairs for fine-tuning: annotated mentions with the names of the concept they mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts import carried_origins, ensure_writable
from onoma.code_columns import codes_of_concept_expr, meant_codes_expr
from onoma.codes import NO_CONCEPT, other_forms, other_forms_in_words
from onoma.encoders.tokens import tokenizer_fingerprint
from onoma.errors import ConfigError, InputError, checked_path, one_of
from onoma.pairs.labelled_names import counts_in_words
from onoma.pairs.languages import check_languages
from onoma.pairs.mentions import check_mentions, mentions_fingerprint
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

    A mention becomes a training name of its concept, so that neither the concept's names nor its other mentions are its
    negatives. A mention of several concepts (``D001|D002``) becomes one of each. Nothing is paired with itself: a
    mention that is spelt like a name of its concept is that name.

    Args:
        terminology: What the mentions are linked to. Its active concepts and names that are not suppressed are used,
            only those of the mentioned concepts.
        mentions: Columns ``mention`` and ``concept_id`` (String), a row for each annotation; several codes are
            separated by ``|``, both in the table and in the terminology. A mention of several parts must be split
            beforehand: annotations rarely say which part means what.
        tokenizer: The base encoder's tokeniser or its ``tokenizer.json``.
        out: The folder to write. Its manifest counts the mentions (``config["mentions"]``): in all, of no concept
            (`onoma.codes.NO_CONCEPT`: there is nothing to pair them with), of unknown concepts, blank after
            normalisation, and of concepts without a name to pair with.
        max_tokens: Longest name, special tokens included; longer ones are truncated.
        normalisation: Preset by which names and mentions are normalised, see `onoma.terminology.normalise`.
        max_pairs_per_mention: Random cap. Unset: all names, as SapBERT does.
        languages: BCP 47 tags of the names to pair with, see `onoma.pairs.languages`. Unset: all.
        ambiguous: What becomes of a text that several of these concepts have, see `training_names`.
        on_unknown: "refuse" ends at the first mention of a concept that is not there (or retired), "skip" leaves such
            mentions out and counts them; of the concepts of a mention ("D1|D2"), those that are there are used.
        rejects: Lines that were left out as ``mentions`` were read (`Reading.rejects`); kept in ``rejects.parquet``.
        seed: Of the sample of pairs.
        overwrite: Replace a pair set that is there.
        tell: Called with a sentence on codes that the terminology has in another form.
        progress: See `Progress`.

    Raises:
        InputError: the table has other columns, a concept is unknown, or no pair is left.
        ConfigError: a setting has a value that is not allowed.
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
        terminology,
        normalisation=normalisation,
        languages=languages,
        ambiguous="keep",
    ).join(linked, on="concept_row", how="semi")
    named = linked.join(concept_names, on="concept_row", how="semi")
    counts["without_names"] = linked.join(named, on="mention_row", how="anti")["mention_row"].n_unique()
    linked = linked.select("concept_row", "text").unique(maintain_order=True)
    names = treat_ambiguous(_names_and_mentions(concept_names, linked), ambiguous)
    pairs = _pairs(names, max_pairs_per_mention, seed)
    if len(pairs) == 0:
        raise InputError(
            "no mention has a name to be paired with",
            path=terminology.path,
            expected="mentions of active concepts with a name that is spelt otherwise",
            found=counts_in_words({what: count for what, count in counts.items() if count}),
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
            **carried_origins(terminology.manifest.config),
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
    """(mention_row, concept_row, text) in the order of the mentions, counts of what was left out, on other forms."""
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
    return linked.filter(pl.col("text") != "").select("mention_row", "concept_row", "text"), counts, said


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
