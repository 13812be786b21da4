"""How often annotated mentions mean each concept, and the weight of that; see `onoma.linking.prior`.

w is the weight under which the right concepts of development mentions are most probable, where the probability of a
candidate is a softmax of ``a s + b log(1 + n)`` and w = b / a (`onoma.linking.likelihood`): with b = 1 that is Bayes'
rule with the counts, plus one each, as the prior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from onoma.codes import other_forms, other_forms_in_words, split_codes
from onoma.errors import InputError
from onoma.linking.dictionary import NameDictionary
from onoma.linking.likelihood import LabelledPool, maximise_likelihood
from onoma.pairs.mentions import check_mentions, mentions_fingerprint
from onoma.types import RowArray

_SHOWN = 5


@dataclass(frozen=True)
class PriorReport:
    """What annotated mentions said about how often concepts are meant.

    Attributes:
        n_mentions: All of them, each as often as it counts; of these
        n_unknown: those of concepts that the linker does not have, or of none.
        n_concepts: Concepts that are meant at least once.
        mentions_fingerprint: See `onoma.pairs.mentions.mentions_fingerprint`.
    """

    n_mentions: int
    n_unknown: int
    n_concepts: int
    mentions_fingerprint: str


@dataclass(frozen=True, eq=False)
class Prior:
    """Counts, int64, shape (C,), and what to say of them."""

    counts: RowArray
    report: PriorReport


@dataclass(frozen=True, eq=False)
class CarriedPrior:
    """Counts carried over to another release of the terminology.

    Attributes:
        counts: Of its concepts, int64, shape (C,).
        n_moved: Counts whose concept is gone and whose successor has them now; a mention of several concepts has one
            for each.
        n_gone: Those whose concept is gone without a successor.
    """

    counts: RowArray
    n_moved: int
    n_gone: int


def learn_prior_weight(pools: Sequence[LabelledPool]) -> float | None:
    """The weight w, from the candidates of development mentions: for each its score and log(1 + n), shape (n, 2).

    Returns:
        ``None`` if they do not show that counts, or scores, are of any use.
    """
    weights = maximise_likelihood(pools)
    if weights is None or not weights.all():
        return None
    return float(weights[1] / weights[0])


def count_prior(dictionary: NameDictionary, mentions: pl.DataFrame) -> Prior:
    """How often annotated mentions mean each concept.

    Args:
        dictionary: Of the linker.
        mentions: As `onoma.pairs.mentions.read_mentions` gives them, with or without a column ``count``. Several codes
            separated by ``|`` count for each of their concepts; a mention of no concept, or of an unknown one, counts
            for none.

    Raises:
        InputError: none is of a concept that the linker has, or this is not a table of mentions.
    """
    check_mentions(mentions)
    counted = _counted(mentions)
    counts = np.zeros(dictionary.n_concepts, np.int64)
    n_unknown = 0
    for label, (rows, _) in dictionary.meant_concepts(counted).items():
        n = counted[label]
        counts[list(rows)] += n
        n_unknown += 0 if rows else n
    if not counts.any():
        meant_by = other_forms({code for label in counted for code in split_codes(label)}, dictionary.concept_ids)
        said = f"; {other_forms_in_words(meant_by, where='the linker')}" if meant_by else ""
        raise InputError(
            "no mention is of a concept that the linker has, so that nothing is known of how often these are meant",
            field="prior",
            found=", ".join(sorted(counted)[:_SHOWN]) or "no mentions",
            fix=f"take codes as the linker's terminology has them{said}",
        )
    report = PriorReport(
        n_mentions=sum(counted.values()),
        n_unknown=n_unknown,
        n_concepts=int(np.count_nonzero(counts)),
        mentions_fingerprint=mentions_fingerprint(mentions["mention"]),
    )
    return Prior(counts, report)


def _counted(mentions: pl.DataFrame) -> dict[str, int]:
    """How often each label occurs."""
    if "count" not in mentions.columns:
        return Counter(mentions["concept_id"].to_list())
    counts = mentions["count"]
    if not counts.dtype.is_integer() or counts.null_count() or (counts < 0).any():
        raise InputError(
            "this is no table of mentions with counts", field="count", expected="a whole number from 0 in every row"
        )
    totals = mentions.group_by("concept_id", maintain_order=True).agg(pl.col("count").cast(pl.Int64).sum())
    return dict(totals.iter_rows())


def carry_prior(
    counts: RowArray, before: NameDictionary, after: NameDictionary, successors: Mapping[str, str]
) -> CarriedPrior:
    """The counts for another release of a terminology, by code.

    Args:
        counts: Of the concepts of ``before``.
        before: Names and concepts of the linker.
        after: Of the new release.
        successors: For concepts that are gone, the code of their successor (`Terminology.successors`), which also gets
            their counts. Those of concepts without a successor are left out. A concept whose alternative codes changed
            (``a``, now ``a|b``) keeps its counts, if its codes are those of one concept.
    """
    row_of = {code: row for row, code in enumerate(after.concept_ids)}
    carried, n_moved, n_gone = np.zeros(len(row_of), np.int64), 0, 0
    counted = (code for code, n in zip(before.concept_ids, counts.tolist(), strict=True) if n)
    unknown = {*counted, *successors.values()} - row_of.keys()
    alternative = after.concept_rows({part for code in unknown for part in split_codes(code)})
    for concept_id, n in zip(before.concept_ids, counts.tolist(), strict=True):
        code = concept_id if concept_id in row_of else successors.get(concept_id, concept_id)
        parts = () if code in row_of else split_codes(code)
        rows = {row_of[code]} if code in row_of else {row for part in parts for row in alternative.get(part, ())}
        if len(rows) == 1:
            carried[rows.pop()] += n
            n_moved += n if code != concept_id else 0
        else:
            n_gone += n
    return CarriedPrior(carried, n_moved, n_gone)
