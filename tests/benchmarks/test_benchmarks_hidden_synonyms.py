"""Scoring hidden names against a linker with known answers."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from onoma.benchmarks import score_hidden_synonyms
from onoma.errors import InputError, ShapeError
from onoma.linking import Link


class ListedLinker:
    """Answers from a table."""

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.answers = answers

    def link(self, mentions: Iterable[str], *, top_k: int = 5) -> list[list[Link]]:
        return [
            [Link(concept_id, "", "", 0.5, rank) for rank, concept_id in enumerate(self.answers[mention][:top_k], 1)]
            for mention in mentions
        ]


def test_scores() -> None:
    linker = ListedLinker({"a": ["1", "2"], "b": ["1", "2", "3", "4", "5", "6"], "c": [], "d": ["4"]})
    scores = score_hidden_synonyms(linker, ["a", "a", "b", "b", "c", "d"], ["1", "2", "5", "6", "1", "4"])
    assert scores.n_queries == 6
    assert scores.at_1.n_right == 2
    assert scores.at_5.n_right == 4
    assert scores.at_1.value == 2 / 6


def test_one_concept_per_name() -> None:
    with pytest.raises(ShapeError, match="2 hidden names"):
        score_hidden_synonyms(ListedLinker({}), ["a", "b"], ["1"])


def test_no_names() -> None:
    with pytest.raises(InputError, match="no hidden name"):
        score_hidden_synonyms(ListedLinker({}), [], [])
