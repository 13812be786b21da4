from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import InputError, NotAnArtifactError, ShapeError
from onoma.linking import Link
from onoma.linking.reranking import Reranker
from tiny import tiny_encoder
from tiny_rerankers import links, write_reranker


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tiny_encoder(tmp_path_factory.mktemp("base") / "bert", weight_std=0.3)
    path = tmp_path_factory.mktemp("reranker") / "r"
    write_reranker(path, base, contexts=True)
    return path


@pytest.fixture(scope="module")
def reranker(folder: Path) -> Reranker:
    return Reranker.open(folder, threads=1)


FOUR = links(("A", "heart attack"), ("B", "lung"), ("C", "cold"), ("D", "fever"))


def ranked(reranker: Reranker, *arguments: Any, **options: Any) -> list[list[Link]]:
    """The links of each answer, NIL or not."""
    return [one.links for one in reranker.rerank(*arguments, **options)]


def codes(answer: Sequence[Link]) -> list[str]:
    return [link.concept_id for link in answer]


def test_a_weight_of_one_ranks_by_the_cross_encoder(reranker: Reranker) -> None:
    (answer,) = ranked(reranker, ["mi"], [FOUR], weight=1.0)
    scores = reranker.scores(["mi"] * 4, [link.matched_name for link in FOUR])
    assert codes(answer) == ["ABCD"[place] for place in np.argsort(-scores)]
    odds = np.exp(scores.astype(float))
    expected = np.sort(odds / odds.sum())[::-1]
    assert [link.score for link in answer] == pytest.approx(expected.tolist(), abs=1e-6)
    assert [link.rank for link in answer] == [1, 2, 3, 4]
    assert codes(answer) != list("ABCD")


def test_a_confidence_of_other_stages_is_not_kept(reranker: Reranker) -> None:
    sure = [dataclasses.replace(FOUR[0], confidence=0.9), *FOUR[1:]]
    (answer,) = ranked(reranker, ["mi"], [sure], weight=1.0)
    assert [link.confidence for link in answer] == [None] * 4


def test_a_weight_of_nought_is_the_linker_alone(reranker: Reranker) -> None:
    assert ranked(reranker, ["mi", "x"], [FOUR, []], weight=0.0) == [FOUR, []]


def test_says_what_it_is_and_that_it_is_not_sent_about(reranker: Reranker) -> None:
    assert repr(reranker).startswith(f"Reranker({reranker.about.name}: the first {reranker.about.depth} candidates")
    with pytest.raises(InputError, match=r"open is not copied .* Reranker\.open"):
        pickle.dumps(reranker)


def test_names_and_preferred_names_are_read(reranker: Reranker) -> None:
    homonyms = [Link("A", "Common Cold", "cold", 0.9, 1), Link("B", "Lung Disease", "cold", 0.9, 2)]
    (answer,) = ranked(reranker, ["cold"], [homonyms], weight=1.0)
    scores = reranker.scores(["cold"] * 2, ["cold ; common cold", "COLD ; lung  disease"])
    assert codes(answer) == (["A", "B"] if scores[0] > scores[1] else ["B", "A"])
    assert answer[0].score > answer[1].score


def test_equal_scores_stay_in_the_linkers_order(reranker: Reranker) -> None:
    same = links(("A", "lung", 0.9), ("B", "lung", 0.9), ("C", "lung", 0.9))
    (answer,) = ranked(reranker, ["mi"], [same])
    assert codes(answer) == ["A", "B", "C"]
    assert len({link.score for link in answer}) == 1


def test_what_lies_deeper_keeps_its_place_behind(reranker: Reranker) -> None:
    (all_of_them,) = ranked(reranker, ["mi"], [FOUR], depth=2, weight=0.75)
    (two,) = ranked(reranker, ["mi"], [FOUR[:2]], depth=4, weight=0.75)
    assert all_of_them[:2] == two
    assert codes(all_of_them[2:]) == ["C", "D"]
    assert [link.score for link in all_of_them[2:]] == pytest.approx([0.25 * 0.7, 0.25 * 0.6])
    assert [link.rank for link in all_of_them] == [1, 2, 3, 4]
    (by_default,) = ranked(reranker, ["mi"], [[*FOUR, *links(("E", "eye", 0.1))]])  # depth 4
    assert by_default[4].concept_id == "E"


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.sampled_from(FOUR), unique=True, max_size=4), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    st.integers(1, 5),
)
def test_the_answer_to_a_mention_does_not_depend_on_others(
    reranker: Reranker, candidates: list[list[Link]], weight: float, depth: int
) -> None:
    ordered = [sorted(part, key=lambda link: link.rank) for part in candidates]
    mentions = [f"m{row % 2}" for row in range(len(ordered))]
    together = ranked(reranker, mentions, ordered, weight=weight, depth=depth)
    for mention, part, answer in zip(mentions, ordered, together, strict=True):
        (alone,) = ranked(reranker, [mention], [part], weight=weight, depth=depth)
        assert codes(alone) == codes(answer)
        assert [link.score for link in alone] == pytest.approx([link.score for link in answer], abs=2e-6)
        assert sorted(codes(answer)) == sorted(codes(part))
        scores = [link.score for link in answer]
        assert scores == sorted(scores, reverse=True)


def test_a_context_can_change_the_answer(reranker: Reranker) -> None:
    assert reranker.uses_contexts
    contexts = [None, "the lung and its cold", "a heart attack", "fever of the eye", "<tgt>x</tgt> in the brain"]
    answers = ranked(reranker, ["cold"] * 5, [FOUR] * 5, contexts=contexts, weight=1.0)
    assert len({tuple(link.score for link in answer) for answer in answers}) == 5
    assert answers[0] == ranked(reranker, ["cold"], [FOUR], weight=1.0)[0]


def with_nil(reranker: Reranker, nil_score: float) -> Reranker:
    """The same with NIL among the candidates."""
    changed = copy.copy(reranker)
    changed._model = copy.copy(reranker._model)
    changed._model.about = reranker.about.model_copy(update={"nil_score": nil_score})
    return changed


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.sampled_from(FOUR), unique=True, max_size=4), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(1, 4),
    st.floats(-4, 4),
)
def test_nil_is_the_answer_where_it_is_more_probable_than_all_others_together(
    reranker: Reranker, candidates: list[list[Link]], weight: float, depth: int, nil_score: float
) -> None:
    ordered = [sorted(part, key=lambda link: link.rank) for part in candidates]
    mentions = [f"m{row}" for row in range(len(ordered))]
    options: dict[str, Any] = {"weight": weight, "depth": depth}
    found = with_nil(reranker, nil_score).rerank(mentions, ordered, **options)
    for mention, part, one in zip(mentions, ordered, found, strict=True):
        first = part[:depth]
        odds = np.exp(reranker.scores([mention] * len(first), [link.matched_name for link in first]).astype(float))
        total = odds.sum() + np.exp(nil_score)
        assert one.no_concept == pytest.approx(np.exp(nil_score) / total, abs=2e-6)
        of_code = dict(zip(codes(first), odds / total, strict=True))
        for link, given_link in zip(
            one.links, [{x.concept_id: x for x in part}[c] for c in codes(one.links)], strict=True
        ):
            share = of_code.get(link.concept_id, 0.0)
            assert link.score == pytest.approx((1 - weight) * given_link.score + weight * share, abs=2e-6)
        of_nil = np.exp(nil_score) / total
        if abs(of_nil - 0.5) > 1e-5:
            assert one.is_nil == (of_nil > 0.5)


def test_without_nil_nothing_is_said_of_it(reranker: Reranker) -> None:
    (one,) = reranker.rerank(["mi"], [FOUR])
    assert (one.no_concept, one.is_nil, reranker.says_nil) == (None, False, False)
    never = with_nil(reranker, -300.0)
    assert never.says_nil
    assert ranked(never, ["mi", "x"], [FOUR, []]) == ranked(reranker, ["mi", "x"], [FOUR, []])


def test_a_folder_keeps_the_score_of_nil(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "bert", weight_std=0.3)
    for name, nil_score in (("plain", None), ("nil", 1.5)):
        write_reranker(tmp_path / name, base, nil_score=nil_score)
    opened = [Reranker.open(tmp_path / name) for name in ("plain", "nil")]
    assert [one.about.nil_score for one in opened] == [None, 1.5]
    assert opened[0].fingerprint != opened[1].fingerprint
    assert "nil_score" not in (tmp_path / "plain" / "reranker.json").read_text()


def test_bad_requests_are_refused(reranker: Reranker) -> None:
    with pytest.raises(InputError, match="too few candidates"):
        reranker.rerank(["a"], [FOUR], depth=0)
    with pytest.raises(InputError, match="no share of a score"):
        reranker.rerank(["a"], [FOUR], weight=1.5)
    with pytest.raises(InputError, match=r"from 1; found 1\.5"):
        reranker.rerank(["a"], [FOUR], depth=1.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="from 0 to 1; found '1'"):
        reranker.rerank(["a"], [FOUR], weight="1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="several are meant"):
        reranker.rerank("a", [FOUR])
    with pytest.raises(InputError, match="half of a surrogate pair"):
        reranker.rerank(["\ud800"], [FOUR])
    with pytest.raises(ShapeError, match="1 mentions need as many lists"):
        reranker.rerank(["a"], [FOUR, FOUR])
    with pytest.raises(ShapeError, match="and 2 contexts"):
        reranker.rerank(["a"], [FOUR], contexts=["a", "b"])


def test_it_says_what_it_is(reranker: Reranker, folder: Path, tmp_path: Path) -> None:
    assert reranker.path == folder
    assert (reranker.about.depth, reranker.about.weight) == (4, 0.5)
    assert reranker.fingerprint == Reranker.open(folder).fingerprint
    (tmp_path / "r").mkdir()
    with pytest.raises(NotAnArtifactError):
        Reranker.open(tmp_path / "r")
