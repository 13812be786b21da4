"""Finding synonyms that were hidden: the measure that needs no corpus, only a terminology.

Some names of a terminology are left out of training and of the linker; each is then a mention whose concept
is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onoma.benchmarks.metrics import Accuracy, accuracy_at, first_hit_rank
from onoma.errors import InputError, ShapeError
from onoma.linking import MentionLinker


@dataclass(frozen=True, slots=True)
class HiddenSynonymScores:
    """How many hidden names were linked to their concept.

    Attributes:
        at_1: Concept in the first place.
        at_5: Concept among the first five.
    """

    at_1: Accuracy
    at_5: Accuracy

    @property
    def n_queries(self) -> int:
        """Number of hidden names."""
        return self.at_1.n_queries


def score_hidden_synonyms(
    linker: MentionLinker, texts: Sequence[str], concept_ids: Sequence[str], *, seed: int = 0
) -> HiddenSynonymScores:
    """Link hidden names and compare with the concepts they belong to.

    A text hidden for two concepts is two queries, each with its own answer.

    Args:
        linker: A `Linker` or `ExactMatcher` (exact match alone) built without the hidden names.
        texts: The hidden names.
        concept_ids: The concept of each.
        seed: Of the confidence intervals.

    Raises:
        ShapeError: not one concept per name.
        InputError: there is no hidden name.
    """
    if len(texts) != len(concept_ids):
        raise ShapeError(f"{len(texts)} hidden names, but {len(concept_ids)} concepts.")
    if len(texts) == 0:
        raise InputError("there is no hidden name to look for", field="texts")
    ranks = [
        first_hit_rank([{link.concept_id} for link in links], {concept_id})
        for links, concept_id in zip(linker.link(texts, top_k=5), concept_ids, strict=True)
    ]
    return HiddenSynonymScores(accuracy_at(ranks, 1, seed=seed), accuracy_at(ranks, 5, seed=seed))
