"""Annotated mentions as a linker sees them, to be learned from.

What is not text to the linker is left out, equal texts of one meaning are one, and texts are dealt into folds.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl

from onoma.artifacts import read_manifest
from onoma.codes import NO_CONCEPT, other_forms, other_forms_in_words, split_codes
from onoma.encoders.folders import trained_mentions
from onoma.errors import InputError
from onoma.linking.folder import RERANKER_FOLDER
from onoma.linking.linker import Linker
from onoma.linking.settings import Stage
from onoma.pairs.mention_format import LABELLED
from onoma.terminology import normalise
from onoma.types import RowArray

MIN_MENTIONS = 50
"""Distinct mentions of known concepts below which nothing is learned."""
SHOWN = 5
"""Unknown codes that are named."""
Key: TypeAlias = tuple[str, str | None]
"""Normalised text and context of a mention."""


@dataclass(frozen=True)
class Labelled:
    """A distinct development mention: normalised text, context, rows of the right concepts, how often it occurs, fold.

    And how it is written, most often if in several ways: a cross-encoder prepares mentions in its own way.
    """

    text: str
    context: str | None
    concepts: frozenset[int]
    has_concept: bool
    n: int
    fold: int
    written: str

    @property
    def key(self) -> Key:
        """What an answer depends on."""
        return self.text, self.context


@dataclass(frozen=True)
class Development:
    """Development mentions, each with what it means."""

    mentions: list[Labelled]
    unknown: dict[str, int]
    """Codes of mentions of which the linker has no concept, and how often they occur."""
    are_concepts: tuple[str, ...] = ()
    """Those of `NO_CONCEPT` that mentions have and the linker has as concepts: they mean these."""


def label_mentions(linker: Linker, mentions: pl.DataFrame, n_folds: int) -> Development:
    """Annotated mentions as a linker sees them, with their contexts if there are any, dealt into folds by their text.

    Raises:
        InputError: too few are of concepts that the linker has.
    """
    contexts = pl.col("context") if "context" in mentions.columns else pl.lit(None, pl.String).alias("context")
    counted = Counter(mentions.select(*LABELLED, contexts).iter_rows())
    meant = linker.dictionary.meant_concepts({label for _, label, _ in counted})
    merged: Counter[tuple[str, str | None, frozenset[int], bool]] = Counter()
    unknown: Counter[str] = Counter()
    forms: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for (mention, label, context), n in counted.items():
        concepts, has_concept = meant[label]
        text = normalise(mention, linker.normalisation)
        if text:
            key = text, context or None
            merged[*key, concepts, has_concept] += n
            forms[key][mention] += n
            if has_concept and not concepts:
                unknown[label] += n
    fold_of = _folds({text for text, _ in forms}, n_folds)
    written = {key: min(counts, key=lambda form: (-counts[form], form)) for key, counts in forms.items()}
    labelled = [Labelled(*what, n=n, fold=fold_of[what[0]], written=written[what[:2]]) for what, n in merged.items()]
    labelled.sort(key=lambda one: (one.text, one.context or "", sorted(one.concepts), one.has_concept))
    n_known = len({(mention.text, mention.concepts) for mention in labelled if mention.concepts})
    if n_known < MIN_MENTIONS:
        meant_by = other_forms(unknown, linker.dictionary.concept_ids)
        said = f"; {other_forms_in_words(meant_by, where='the linker')}" if meant_by else ""
        raise InputError(
            "too few development mentions to learn from",
            field="mentions",
            expected=f"at least {MIN_MENTIONS} distinct ones of concepts that the linker has",
            found=f"{n_known}" + (f"; unknown codes: {', '.join(sorted(unknown)[:SHOWN])}" if unknown else ""),
            fix=f"take more mentions, or codes as the linker's terminology has them{said}",
        )
    is_used = {code for label in meant for code in split_codes(label)}.intersection(NO_CONCEPT)
    are_concepts = linker.dictionary.concept_rows(is_used).keys()
    return Development(labelled, dict(unknown), tuple(code for code in NO_CONCEPT if code in are_concepts))


def count_shared(linker: Linker, mentions: Development, others: pl.DataFrame) -> int:
    """How many of the mentions of known concepts stand among others too, in text and concept, each of these once."""
    meant = linker.dictionary.meant_concepts(others["concept_id"].unique())
    there: Counter[tuple[str, frozenset[int]]] = Counter()
    for (mention, label), n in Counter(others.select(LABELLED).iter_rows()).items():
        there[normalise(mention, linker.normalisation), meant[label][0]] += n
    here: Counter[tuple[str, frozenset[int]]] = Counter()
    for one in mentions.mentions:
        here[one.text, one.concepts] += one.n if one.concepts else 0
    return sum((here & there).values())


def are_counted(mentions: Development, counts: RowArray) -> bool:
    """Whether each concept is counted at least as often as these mentions mean it, as where they were counted."""
    meant = np.zeros_like(counts)
    for one in mentions.mentions:
        meant[list(one.concepts)] += one.n
    return bool((meant <= counts).all())


def _folds(texts: set[str], n_folds: int) -> dict[str, int]:
    """Texts dealt into folds in an order that says nothing about them and depends on them alone."""
    shuffled = sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())
    return {text: place % n_folds for place, text in enumerate(shuffled)}


def trained_on(linker: Linker, stages: Iterable[Stage], mentions: str) -> tuple[str, ...]:
    """What in a linker was trained on exactly these mentions, and is used by the stages.

    Args:
        linker: The linker.
        stages: Those that are on.
        mentions: Their fingerprint, see `onoma.pairs.mentions.mentions_fingerprint`.
    """
    on, found = set(stages), []
    if "dense" in on and mentions in linker.encoder.folder.trained_mentions:
        found.append(linker.encoder.name)
    reranker = linker.reranker if "rerank" in on else None
    if reranker and mentions in trained_mentions(read_manifest(linker.path / RERANKER_FOLDER).config):
        found.append(f"the reranker {reranker.about.name}")
    return tuple(found)
