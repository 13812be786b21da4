"""A linker whose cross-encoder may answer that none of the candidates is meant (NIL)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from linking_data import small_terminology, write_letter_encoder

from onoma.linking import Link, Linker, Reranker, add_reranker, build_linker, tune_linker
from tiny import make_terminology, tiny_encoder
from tiny_rerankers import write_reranker

NEAR = ["the common cold", "sugar", "zzz", "lung disease chronic", "diabetes"]
"""Names of nothing."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float | None], Linker]:
    """Linkers of one terminology with one cross-encoder, but for the score of NIL."""
    folder = tmp_path_factory.mktemp("nil")
    write_letter_encoder(folder / "letters")
    small_terminology(folder / "t")
    base = tiny_encoder(folder / "bert", weight_std=0.3)

    def make(nil_score: float | None) -> Linker:
        name = f"{nil_score}"
        if not (folder / name).exists():
            build_linker(folder / "t", folder / "letters", folder / name)
            write_reranker(folder / f"r{name}", base, nil_score=nil_score, depth=3)
            add_reranker(folder / name, folder / f"r{name}")
        return Linker.open(folder / name)

    return make


def between(reranker: Reranker, mentions: Sequence[str], candidates: Sequence[Sequence[Link]]) -> float:
    """A score of NIL that the candidates of some mentions together exceed and those of others do not."""
    sums = [
        np.exp(reranker.scores([mention] * len(links), [link.matched_name for link in links])).sum()
        for mention, links in zip(mentions, candidates, strict=True)
    ]
    return float(np.log(np.median(sums))) + 1e-3


def test_mentions_of_no_concept_get_no_links(made: Callable[[float | None], Linker]) -> None:
    assert made(50.0).link(NEAR) == [[]] * len(NEAR)
    assert made(-50.0).link(NEAR) == made(None).link(NEAR)
    assert all(made(None).link(NEAR))


def test_it_is_the_answer_where_it_is_more_probable_than_all_others(made: Callable[[float | None], Linker]) -> None:
    searched = made(None)
    assert searched.reranker is not None
    # The cross-encoder sees what was ranked for it: as many as it reads.
    candidates = searched.link(NEAR, top_k=3, stages=["exact", "dense"])
    linker = made(between(searched.reranker, NEAR, candidates))
    assert linker.reranker is not None
    answers, found = linker.link(NEAR, top_k=2), linker.reranker.rerank(NEAR, candidates)
    assert [not answer for answer in answers] == [one.is_nil for one in found]
    assert 0 < sum(one.is_nil for one in found) < len(NEAR)
    assert [[link.concept_id for link in answer] for answer in answers if answer] == [
        [link.concept_id for link in one.links[:2]] for one in found if not one.is_nil
    ]
    for mention, one in zip(NEAR, found, strict=True):
        explained = linker.explain(mention)
        assert explained.no_concept == one.no_concept
        assert bool(explained.links) != one.is_nil
        assert explained.outcome.startswith("No such concept: the cross-encoder gives a probability of") == one.is_nil
        for reason in (*explained.links, *explained.near_misses):
            assert sum(reason.contributions.values()) == pytest.approx(reason.score, abs=2e-6)


def test_what_is_a_name_is_never_nil(made: Callable[[float | None], Linker]) -> None:
    names = ["cold", "COLD", "diabetes mellitus", "sugar disease"]  # homonyms and others
    assert made(50.0).link(names, top_k=3) == made(None).link(names, top_k=3)
    assert made(50.0).explain("cold").no_concept is None


def test_without_its_stage_nothing_is_said(made: Callable[[float | None], Linker]) -> None:
    stages = ["exact", "dense"]
    assert made(50.0).link(NEAR, stages=stages) == made(None).link(NEAR, stages=stages)


def test_a_single_candidate_can_be_none_as_well(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D1": ["fever"]})
    write_letter_encoder(tmp_path / "letters")
    build_linker(tmp_path / "t", tmp_path / "letters", tmp_path / "linker")
    base = tiny_encoder(tmp_path / "bert", weight_std=0.3)
    for nil_score, n_links in ((50.0, 0), (-50.0, 1)):
        write_reranker(tmp_path / f"r{n_links}", base, nil_score=nil_score)
        linker = add_reranker(tmp_path / "linker", tmp_path / f"r{n_links}")
        assert len(linker.link(["fevers"])[0]) == n_links
        (reason,) = (*linker.explain("fevers").links, *linker.explain("fevers").near_misses)
        assert sum(reason.contributions.values()) == pytest.approx(reason.score, abs=2e-6)
        assert reason.stage == "dense", "there is nothing to put it before"


def test_confidences_are_of_answers_that_are_given(tmp_path: Path) -> None:
    names = {
        f"D{row}": [f"{a}{b}{a} {b}{a}"] for row, (a, b) in enumerate((a, b) for a in "bcdfgklmp" for b in "aeiou")
    }
    make_terminology(tmp_path / "t", names)
    write_letter_encoder(tmp_path / "letters")
    build_linker(tmp_path / "t", tmp_path / "letters", tmp_path / "linker")
    table = pl.DataFrame(
        [
            (f"{text}{end}", "D0" if end == "zz" else code)  # some mean what no linker would find
            for code, (text,) in names.items()
            for end in ("x", " qua", "zz")
        ],
        schema=["mention", "concept_id"],
        orient="row",
    )
    mentions, base = table["mention"].to_list(), tiny_encoder(tmp_path / "bert", weight_std=0.3)
    write_reranker(tmp_path / "r", base, weight=0.1)
    candidates = Linker.open(tmp_path / "linker").link(mentions, top_k=4)
    nil_score = between(Reranker.open(tmp_path / "r"), mentions, candidates)
    write_reranker(tmp_path / "nil", base, weight=0.1, nil_score=nil_score)
    answers = add_reranker(tmp_path / "linker", tmp_path / "nil").link(mentions, top_k=5)
    n_given = sum(1 for answer in answers if answer)
    assert 0 < n_given < len(answers)
    report = tune_linker(tmp_path / "linker", table)
    assert report.calibration is not None
    assert report.calibration.n_answers == n_given
    right = [
        bool(answer) and answer[0].concept_id == code
        for answer, code in zip(answers, table["concept_id"].to_list(), strict=True)
    ]
    assert report.accuracy["after"].at_1 == pytest.approx(sum(right) / len(right))
    tuned = Linker.open(tmp_path / "linker")
    explained = next(
        tuned.explain(mention) for mention, answer in zip(table["mention"], answers, strict=True) if not answer
    )
    assert explained.confidence is None
    meant_by = [("NIL", "X9")[at % 2] if text.endswith("zz") else code for at, (text, code) in enumerate(table.rows())]
    report = tune_linker(tmp_path / "linker", table.with_columns(concept_id=pl.Series(meant_by)), calibrate=False)
    assert report.answers_nil
    for name, stages in (("after", None), ("without stage rerank", ["exact", "dense"])):
        found = [links[0].concept_id if links else None for links in tuned.link(mentions, stages=stages)]
        right = [one == (code if code in names else None) for one, code in zip(found, meant_by, strict=True)]
        assert report.accuracy[name].right == pytest.approx(sum(right) / len(right))
