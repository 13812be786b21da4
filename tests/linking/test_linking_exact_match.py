"""Look-up alone, and what both linkers refuse."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from linking_data import small_terminology

from onoma.errors import InputError
from onoma.linking import ExactMatcher
from onoma.terminology import Terminology


@pytest.fixture
def terminology(tmp_path: Path) -> Terminology:
    return small_terminology(tmp_path / "terminology")


def linked_ids(matcher: ExactMatcher, mention: str, top_k: int = 5) -> list[str]:
    return [link.concept_id for link in matcher.link([mention], top_k=top_k)[0]]


def test_homonyms_by_preferred_name_then_place(terminology: Terminology) -> None:
    matcher = ExactMatcher.from_terminology(terminology)
    assert linked_ids(matcher, "COLD") == ["D2", "D3", "D4", "D6"]
    assert linked_ids(matcher, "cold", top_k=2) == ["D2", "D3"]
    hidden = ExactMatcher.from_terminology(terminology, hidden_names=[3, 5])
    assert linked_ids(hidden, "cold") == ["D4", "D6"]


def test_matched_name_is_spelled_as_in_the_terminology(terminology: Terminology) -> None:
    (links,) = ExactMatcher.from_terminology(terminology).link([" cold "], top_k=2)
    assert [link.matched_name for link in links] == ["Cold", "COLD"]
    assert [link.preferred_name for link in links] == ["Cold", "Chronic Obstructive Lung Disease"]
    assert [(link.score, link.rank) for link in links] == [(1.0, 1), (1.0, 2)]
    assert json.loads(json.dumps([dataclasses.asdict(link) for link in links]))[1]["concept_id"] == "D3"


@pytest.mark.parametrize("mention", ["", "  ", "nothing of the kind", "old diabetes", "only suppressed", "x" * 10_000])
def test_no_such_name(terminology: Terminology, mention: str) -> None:
    assert ExactMatcher.from_terminology(terminology).link([mention]) == [[]]


def test_order_and_number_are_kept(terminology: Terminology) -> None:
    matcher = ExactMatcher.from_terminology(terminology)
    answers = matcher.link(iter(["心臓発作", "?", "sugar disease", "心臓発作"]))
    assert [[link.concept_id for link in links] for links in answers] == [["D8"], [], ["D1"], ["D8"]]
    assert matcher.link([]) == []


@pytest.mark.parametrize("top_k", [0, -1, 1.5, True, "3"])
def test_bad_top_k(terminology: Terminology, top_k: Any) -> None:
    with pytest.raises(InputError, match="top_k"):
        ExactMatcher.from_terminology(terminology).link(["cold"], top_k=top_k)


@pytest.mark.parametrize("mentions", ["cold", b"cold", ["cold", None], ["cold", 3], ["cold", "\ud800"]])
def test_bad_mentions(terminology: Terminology, mentions: Any) -> None:
    with pytest.raises(InputError, match="mention"):
        ExactMatcher.from_terminology(terminology).link(mentions)
