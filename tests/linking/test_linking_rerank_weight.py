"""The share of the cross-encoder in the final score: learned for the linker as it is, kept, applied."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from linking_data import write_letter_linker
from scipy.optimize import minimize

from onoma.encoders.cross_encoder import CrossEncoder
from onoma.errors import ConfigError, MismatchError
from onoma.linking import Linker, Reranker, add_reranker, tune_linker
from onoma.linking.likelihood import LabelledPool
from onoma.linking.reranking import learn_share
from onoma.linking.updating import update_linker
from tiny import tiny_encoder
from tiny_rerankers import write_reranker

SYLLABLES = ["car", "di", "o", "my", "pa", "thy", "neu", "ro", "der", "ma", "ti", "hep", "al", "gia", "ne", "phro"]
DEPTH = 5
STAGES = ["exact", "sparse", "rerank"]


def make_data() -> tuple[dict[str, list[str]], pl.DataFrame]:
    """Concepts, and mentions of them: misspelt, twisted, spelt right; some mean nothing, or two that share a name."""
    letters = random.Random(5)
    concepts = {f"C{row}": [" ".join("".join(letters.choices(SYLLABLES, k=3)) for _ in "ab")] for row in range(60)}
    concepts["C1"].append("shared name")
    concepts["C0"].append("shared name")
    rows = [("shared name", "C1"), ("shared name", "C0"), ("nowhere", "NIL"), ("nothing", "X9")]
    for code, names in concepts.items():
        place = letters.randrange(len(names[0]) - 3)
        rows += [(names[0][:place] + "xy" + names[0][place + 3 :], code)] * letters.choice([1, 1, 3])
        rows.append(("".join(letters.sample(names[0], len(names[0]))), code))
    return concepts, pl.DataFrame(rows, schema=["mention", "concept_id"], orient="row")


CONCEPTS, MENTIONS = make_data()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rerank-weight")
    write_letter_linker(folder, CONCEPTS)
    base = tiny_encoder(folder / "bert", weight_std=0.3)
    for seed in (3, 4):
        write_reranker(folder / f"r{seed}", base, seed=seed, depth=DEPTH, weight=1.0)
    add_reranker(folder / "linker", folder / "r3")
    return folder


def negative_likelihood(weights: Sequence[float], pools: Sequence[LabelledPool]) -> float:
    total = 0.0
    for pool in pools:
        odds = np.exp(pool.scores @ np.asarray(weights))
        total -= pool.n * np.log(odds[pool.is_right].sum() / odds.sum())
    return total / sum(pool.n for pool in pools) + 0.5e-6 * float(np.square(weights).sum())


def most_likely_share(pools: Sequence[LabelledPool]) -> float:
    told = [pool for pool in pools if pool.is_right.any() and not pool.is_right.all()]
    best = minimize(
        negative_likelihood, [1.0, 1.0], args=(told,), bounds=[(0, None)] * 2, options={"ftol": 1e-15, "gtol": 1e-10}
    ).x
    return float(best[1] / best.sum())


def pools_of(linker: Linker, stages: list[str], mentions: pl.DataFrame) -> list[LabelledPool]:
    """Scores by the searches alone, and probabilities by the cross-encoder alone, of what look-up does not find."""
    assert linker.reranker is not None
    names = {name for names in CONCEPTS.values() for name in names}
    rows = [row for row in mentions.iter_rows() if row[0] not in names and row[1] in CONCEPTS]
    asked = [mention for mention, _ in rows]
    found = linker.link(asked, stages=[stage for stage in stages if stage != "rerank"], top_k=DEPTH)
    pools = []
    for (_, code), links, anew in zip(rows, found, linker.reranker.rerank(asked, found, weight=1.0), strict=True):
        probability = {link.concept_id: link.score for link in anew.links}
        scores = np.array([[link.score, probability[link.concept_id]] for link in links])
        pools.append(LabelledPool(scores, np.array([link.concept_id == code for link in links])))
    return pools


def test_the_share_is_the_most_likely_one() -> None:
    rng = np.random.default_rng(0)
    pools = []
    for _ in range(80):
        scores = rng.random((6, 2))
        odds = np.exp(scores @ [6.0, 3.0])
        pools.append(LabelledPool(scores, np.arange(6) == rng.choice(6, p=odds / odds.sum()), int(rng.integers(1, 4))))
    found = learn_share(pools)
    assert found is not None
    assert 0.05 < found < 0.95
    assert found == pytest.approx(most_likely_share(pools), abs=1e-4)
    assert learn_share([]) is None
    against = [LabelledPool(np.array([[0.9, 0.1], [0.5, 0.8]]), np.array([True, False]))] * 3
    assert learn_share(against) == 0


@pytest.mark.parametrize("stages", [STAGES, ["exact", "dense", "rerank"], ["dense", "rerank"]], ids="+".join)
def test_tuning_learns_it_from_what_each_says_alone(linker: Path, stages: list[str]) -> None:
    opened, done = Linker.open(linker), list[tuple[int, int]]()
    report = tune_linker(linker, MENTIONS, stages=stages, calibrate=False, progress=lambda *state: done.append(state))
    if "exact" in stages:  # else those that are names are learned from too
        assert report.rerank_weight == pytest.approx(most_likely_share(pools_of(opened, stages, MENTIONS)), abs=2e-3)
    assert (done[-1][0], done) == (done[-1][1], sorted(done))
    assert list(report.accuracy) == ["before", "without stage rerank", "after"]
    kept = Linker.open(linker)
    assert kept.settings.rerank_weight == report.rerank_weight
    assert kept.manifest.config["tuning"]["rerank_weight"] == report.rerank_weight
    known = MENTIONS.filter(pl.col("concept_id") != "NIL")
    plain = opened.link(known["mention"].to_list(), stages=[stage for stage in stages if stage != "rerank"], top_k=1)
    right = sum(links[0].concept_id == code for links, code in zip(plain, known["concept_id"], strict=True) if links)
    assert report.accuracy["without stage rerank"].at_1 == pytest.approx(right / len(known))


def test_it_is_reported_by_mentions_that_it_was_not_learned_from(linker: Path) -> None:
    """Each fold of texts with a share of its own, which none of its mentions had a say in."""
    opened = Linker.open(linker)
    shuffled = sorted(set(MENTIONS["mention"]), key=lambda text: hashlib.sha256(text.encode()).digest())
    n_right, shares = 0, set[float]()
    for fold in (0, 1):
        here = pl.col("mention").is_in(shuffled[fold::2])
        share = learn_share(pools_of(opened, STAGES, MENTIONS.filter(~here)))
        tried = opened.tuned(opened.settings.replaced(rerank_weight=share))
        asked = MENTIONS.filter(here)
        found = tried.link(asked["mention"].to_list(), stages=STAGES, top_k=1)
        n_right += sum(links[0].concept_id == code for links, code in zip(found, asked["concept_id"], strict=True))
        shares.add(round(share or 0.0, 3))
    report = tune_linker(linker, MENTIONS, stages=STAGES, calibrate=False, n_folds=2)
    assert report.accuracy["after"].at_1 == pytest.approx(n_right / (len(MENTIONS) - 1)), "one means nothing"
    assert len({*shares, round(report.rerank_weight or 0.0, 3)}) == 3


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_answers_and_explanations_have_it(place: Path, share: float) -> None:
    linker = Linker.open(place / "linker")
    assert linker.reranker is not None
    tuned = linker.tuned(linker.settings.replaced(rerank_weight=share))
    asked = [mention for mention in MENTIONS["mention"].unique(maintain_order=True) if mention != "shared name"][:20]
    plain = linker.link(asked, stages=["sparse"], top_k=DEPTH)
    expected = [anew.links for anew in linker.reranker.rerank(asked, plain, weight=share)]
    found = tuned.link(asked, stages=["sparse", "rerank"], top_k=DEPTH)
    assert [[(link.concept_id, link.score) for link in links] for links in found] == [
        [(link.concept_id, link.score) for link in links] for links in expected
    ]
    for mention, links in zip(asked, found, strict=True):
        explained = tuned.explain(mention, stages=["sparse", "rerank"])
        assert [reason.concept_id for reason in explained.links] == [link.concept_id for link in links]
        for reason in explained.links:
            assert sum(reason.contributions.values()) == pytest.approx(reason.score, abs=3e-6)
            assert (reason.contributions["rerank"] == 0) == (share == 0)
    homonyms = [tuned.link(["shared name"], stages=["exact", "rerank"])[0][0].concept_id]
    homonyms.append(linker.link(["shared name"], stages=["exact"])[0][0].concept_id)
    assert (homonyms[0] == homonyms[1]) or share, "a share of nought leaves homonyms as they are"


def test_all_that_is_learned_goes_together(linker: Path) -> None:
    """Weights of the searches, what the prior counts for, the share: progress ends where it said it would."""
    prior = pl.DataFrame({"mention": [f"w{row}" for row in range(60)], "concept_id": [f"C{row}" for row in range(60)]})
    prior = pl.concat([prior, prior.head(20), prior.head(5)])
    done = list[tuple[int, int]]()
    report = tune_linker(linker, MENTIONS, prior=prior, calibrate=False, progress=lambda *state: done.append(state))
    assert (done[-1][0], done) == (done[-1][1], sorted(done))
    assert list(report.accuracy)[-4:] == ["without stage prior", "with stage prior", "without stage rerank", "after"]
    assert report.rerank_weight is not None
    assert report.weights is not None
    again = tune_linker(linker, MENTIONS, calibrate=False)
    for row in ("dense alone", "sparse alone", "reciprocal ranks"):
        assert again.accuracy[row] == report.accuracy[row], "of the searches, whatever the share was"
    searches = tune_linker(linker, MENTIONS, stages=["exact", "dense", "sparse"], calibrate=False)
    assert searches.accuracy["sparse alone"] == report.accuracy["sparse alone"]
    without = tune_linker(linker, MENTIONS, stages=["exact", "dense"], calibrate=False)
    assert without.rerank_weight is None
    assert "without stage rerank" not in without.accuracy
    assert Linker.open(linker).settings.rerank_weight is None, "what was learned for other stages is gone"


def test_every_pair_is_read_once(linker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, scores = list[tuple[str, str]](), CrossEncoder.scores

    def spy(model: CrossEncoder, mentions: list[str], names: list[str], *arguments: Any, **options: Any) -> Any:
        read.extend(zip(mentions, names, strict=True))
        return scores(model, mentions, names, *arguments, **options)

    monkeypatch.setattr(CrossEncoder, "scores", spy)
    tune_linker(linker, MENTIONS, stages=STAGES, calibrate=False)
    assert read
    assert len(read) == len(set(read))


@pytest.mark.parametrize("contexts", [None, ["is a", None, "is another a", "is a"]])
def test_one_that_remembers_says_the_same(place: Path, tmp_path: Path, contexts: list[str | None] | None) -> None:
    if contexts is not None:
        write_reranker(tmp_path / "r", place / "bert", contexts=True)
    reranker = Reranker.open(place / "r3" if contexts is None else tmp_path / "r")
    remembering = reranker.remembering()
    assert (remembering.fingerprint, remembering.about) == (reranker.fingerprint, reranker.about)
    mentions, names = ["a", "b", "a", "a"], ["cardi", "cardi", "neuro", "cardi"]
    for _ in "12":
        expected = reranker.scores(mentions, names, contexts)
        np.testing.assert_array_equal(remembering.scores(mentions, names, contexts), expected)
    assert remembering.scores([], []).shape == (0,)
    told: list[tuple[int, int]] = []
    remembering.scores(["a", "c"], ["cardi", "cardi"], contexts and contexts[:2], progress=lambda *at: told.append(at))
    assert told[-1] == (1, 1), "of those that are new"


def test_another_cross_encoder_has_its_own(place: Path, linker: Path) -> None:
    tune_linker(linker, MENTIONS, stages=STAGES, calibrate=False)
    learned = Linker.open(linker).settings.rerank_weight
    assert learned is not None
    assert add_reranker(linker, place / "r3").settings.rerank_weight == learned, "the same"
    assert add_reranker(linker, place / "r4").settings.rerank_weight is None
    with pytest.raises(MismatchError, match="is not this linker's cross-encoder"):
        Linker.open(linker).reranking_with(Reranker.open(place / "r3"))
    own = Reranker.open(place / "r4").remembering()
    exchanged = Linker.open(linker).reranking_with(own)
    assert exchanged.reranker is own
    assert exchanged.link(["cardio"]) == Linker.open(linker).link(["cardio"])


def test_an_update_keeps_it(place: Path, linker: Path, tmp_path: Path) -> None:
    tune_linker(linker, MENTIONS, stages=STAGES, calibrate=False)
    report = update_linker(linker, place / "t", out=tmp_path / "updated")
    assert Linker.open(tmp_path / "updated").settings == Linker.open(linker).settings
    assert report is not None


def test_a_linker_has_the_share_of_its_cross_encoder(linker: Path) -> None:
    opened = Linker.open(linker)
    asked = MENTIONS["mention"].to_list()[4:12]
    own = opened.link(asked, stages=["sparse", "rerank"])
    assert own == opened.tuned(opened.settings.replaced(rerank_weight=1.0)).link(asked, stages=["sparse", "rerank"])
    assert own != opened.tuned(opened.settings.replaced(rerank_weight=0.0)).link(asked, stages=["sparse", "rerank"])
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigError, match="rerank_weight"):
            opened.settings.replaced(rerank_weight=wrong)
