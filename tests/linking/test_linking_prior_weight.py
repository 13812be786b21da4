"""The stage "prior": how much it counts for that a concept is meant often, learned and applied."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from linking_data import write_letter_encoder, write_letter_linker
from scipy.optimize import minimize_scalar

from manifests import refit
from onoma.artifacts import amend_artifact, read_manifest, verify_artifact
from onoma.errors import ConfigError, InputError, ShapeError
from onoma.linking import Linker, add_prior, add_reranker, build_linker, tune_linker
from onoma.linking.folder import FORMAT_VERSION
from onoma.linking.likelihood import LabelledPool
from onoma.linking.prior import PRIOR_DEPTH
from onoma.linking.prior_counting import count_prior, learn_prior_weight
from onoma.linking.updating import update_linker
from tiny import make_terminology, tiny_encoder
from tiny_rerankers import write_reranker

SYLLABLES = ["car", "di", "o", "my", "pa", "thy", "neu", "ro", "der", "ma", "ti", "hep", "al", "gia", "phro"]
N_FORMS, N_KINDS = 20, 4
SEARCHES = [("dense",), ("sparse",), ("dense", "sparse")]
WEIGHT = 0.03
SHARES = {"dense": 0.4, "sparse": 0.6}


def make_data() -> tuple[dict[str, list[str]], list[str], pl.DataFrame, pl.DataFrame]:
    """Diseases of several forms, one of which is meant again and again: concepts, what is asked, mentions."""
    letters = random.Random(4)
    kinds = ["alpha", "beta", "gamma", "delta"]
    bases = ["".join(letters.choices(SYLLABLES, k=4)) for _ in range(N_FORMS)]
    concepts = {f"C{row}{kind[0]}": [f"{base} {kind}"] for row, base in enumerate(bases) for kind in kinds}
    training, development, asked = [], [], []
    for row, base in enumerate(bases):
        often, seldom = letters.sample(kinds, 2)
        training += [(f"{base} {n}", f"C{row}{often[0]}") for n in range(9)] + [(base, f"C{row}{seldom[0]}")] * 2
        development += [(f"{base}{letter}", f"C{row}{often[0]}") for letter in "xyz"]
        development += [(f"{base} alpha", f"C{row}a"), (f"{base}w", f"C{row}{seldom[0]}")]
        asked += [base, f"{base}s", f"{base} {seldom}"]
    frames = [pl.DataFrame(rows, schema=["mention", "concept_id"], orient="row") for rows in (training, development)]
    return concepts, [*asked, "?", "alpha"], frames[0], frames[1]


CONCEPTS, ASKED, TRAINING, DEVELOPMENT = make_data()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prior-weight")
    write_letter_linker(folder, CONCEPTS)
    return folder


def knowing(linker: Linker, *, weight: float = WEIGHT) -> Linker:
    """With counts and their weight, and weights of the searches; no stage is switched on by that."""
    counted = linker.with_prior(count_prior(linker.dictionary, TRAINING).counts)
    return counted.tuned(counted.settings.replaced(weights=SHARES, prior_weight=weight))


@pytest.mark.parametrize("look_up", [(), ("exact",)], ids=["-", "exact"])
@pytest.mark.parametrize("searches", SEARCHES, ids="+".join)
def test_equals_the_formula(place: Path, searches: tuple[str, ...], look_up: tuple[str, ...]) -> None:
    linker = knowing(Linker.open(place / "linker"))
    assert PRIOR_DEPTH < len(CONCEPTS) == linker.dictionary.n_concepts
    assert linker.prior is not None
    counts = dict(zip(linker.concept_ids, linker.prior.tolist(), strict=True))
    highest = 1 + WEIGHT * math.log(1 + max(counts.values()))
    stages = [*look_up, *searches]
    plain = linker.link(ASKED, stages=stages, top_k=len(CONCEPTS))
    found = linker.link(ASKED, stages=[*stages, "prior"], top_k=len(CONCEPTS))
    n_moved = n_clear = 0
    for mention, before, after in zip(ASKED, plain, found, strict=True):
        if look_up and any(mention in names for names in CONCEPTS.values()):
            assert after == before
            continue
        scored = [
            ((link.score + WEIGHT * math.log(1 + counts[link.concept_id] * (place < PRIOR_DEPTH))) / highest, link)
            for place, link in enumerate(before)
        ]
        scored.sort(key=lambda one: -round(one[0], 6))
        expected = [score for score, _ in scored]
        np.testing.assert_allclose([link.score for link in after], expected, atol=1.5e-6)
        clear = all(a - b > 3e-6 for a, b in itertools.pairwise(expected[:5]))
        n_clear += clear
        if clear:
            assert [link.concept_id for link in after[:4]] == [link.concept_id for _, link in scored[:4]]
        n_moved += after[:1] != before[:1] and after[0].concept_id != before[0].concept_id
        assert sorted(link.concept_id for link in after) == sorted(link.concept_id for link in before)
    assert n_moved > 10
    assert n_clear > 10


@pytest.mark.parametrize("searches", SEARCHES, ids="+".join)
def test_a_longer_answer_begins_with_the_shorter(place: Path, searches: tuple[str, ...]) -> None:
    linker = knowing(Linker.open(place / "linker"))
    stages = ["exact", *searches, "prior"]
    longest = linker.link(ASKED, stages=stages, top_k=len(CONCEPTS))
    for links in longest:
        assert [link.score for link in links] == sorted((link.score for link in links), reverse=True)
    for top_k in (1, 2, PRIOR_DEPTH - 1, PRIOR_DEPTH, PRIOR_DEPTH + 1):
        assert linker.link(ASKED, stages=stages, top_k=top_k) == [links[:top_k] for links in longest]


def test_a_name_stays_first_and_one_is_the_highest_score(place: Path) -> None:
    linker = knowing(Linker.open(place / "linker"), weight=50.0)
    names = [name for names in CONCEPTS.values() for name in names]
    for code, links in zip(CONCEPTS, linker.link(names, stages=["exact", "dense", "prior"]), strict=True):
        assert (links[0].concept_id, links[0].score) == (code, 1.0)
    for links in linker.link(names, stages=["dense", "prior"], top_k=80):
        assert max(link.score for link in links) <= 1


@pytest.mark.parametrize("with_reranker", [False, True], ids=["-", "rerank"])
@pytest.mark.parametrize("searches", SEARCHES, ids="+".join)
def test_explanations_add_up(linker: Path, tmp_path: Path, searches: tuple[str, ...], with_reranker: bool) -> None:
    stages = [*searches, "prior"]
    if with_reranker:
        base = tiny_encoder(tmp_path / "bert", weight_std=0.3)
        write_reranker(tmp_path / "reranker", base, depth=PRIOR_DEPTH + 5, weight=0.5)
        add_reranker(linker, tmp_path / "reranker")
        stages.append("rerank")
    opened = knowing(Linker.open(linker))
    n_from_prior = 0
    for mention in ASKED[:9]:
        explained = opened.explain(mention, stages=stages, top_k=PRIOR_DEPTH, near_misses=10)
        (links,) = opened.link([mention], stages=stages, top_k=PRIOR_DEPTH)
        assert [reason.concept_id for reason in explained.links] == [link.concept_id for link in links]
        for reason in (*explained.links, *explained.near_misses):
            assert sum(reason.contributions.values()) == pytest.approx(reason.score, abs=3e-6)
            assert list(reason.contributions)[-1 - with_reranker :] == stages[len(searches) :]
            n_from_prior += reason.contributions["prior"] > 0
        if explained.links[0].contributions["prior"]:
            assert f"Annotated mentions mean {links[0].concept_id} " in explained.outcome
    assert n_from_prior > 9


def test_tuning_learns_it_and_switches_it_on(linker: Path) -> None:
    done: list[tuple[int, int]] = []
    report = tune_linker(linker, DEVELOPMENT, prior=TRAINING, calibrate=False, progress=lambda *at: done.append(at))
    assert done[-1][0] == done[-1][1]
    assert report.stages == ("exact", "variants", "dense", "sparse", "prior")
    assert list(report.accuracy)[-3:] == ["without stage prior", "with stage prior", "after"]
    assert report.accuracy["after"] == report.accuracy["with stage prior"]
    assert report.accuracy["after"].at_1 > report.accuracy["without stage prior"].at_1 + 0.2
    tuned = Linker.open(linker)
    assert tuned.settings.prior_weight == report.prior_weight is not None
    assert tuned.settings.stages == report.stages
    gold = DEVELOPMENT["concept_id"].to_list()
    found = tuned.link(DEVELOPMENT["mention"].to_list(), top_k=1)
    right = sum(links[0].concept_id == code for links, code in zip(found, gold, strict=True)) / len(gold)
    assert right >= report.accuracy["after"].at_1 - 0.02
    again = tune_linker(linker, DEVELOPMENT, calibrate=False)
    assert again.prior_weight == pytest.approx(report.prior_weight)
    assert again.accuracy["after"] == report.accuracy["after"]
    off = tune_linker(linker, DEVELOPMENT, stages=["exact", "dense"], calibrate=False)
    assert (off.prior_weight, off.stages) == (None, ("exact", "dense"))
    assert Linker.open(linker).stages == ("exact", "loose", "variants", "dense", "sparse")


def test_what_it_counts_for_is_that_of_single_searches_too(linker: Path) -> None:
    stages = ["exact", "dense", "prior"]
    report = tune_linker(linker, DEVELOPMENT, prior=TRAINING, stages=stages, calibrate=True, wished_precision=0.7)
    assert report.calibration is not None
    tuned = Linker.open(linker)
    assert tuned.settings.calibrated_stages == ("exact", "dense", "prior")
    found = tuned.link(["cardi", "hepalgia"], no_concept_below=0)
    assert all(links[0].confidence is not None for links in found)
    assert all(links[0].confidence is None for links in tuned.link(["cardi"], stages=["exact", "dense"]))


def test_where_it_is_good_for_nothing_it_stays_off(linker: Path) -> None:
    often = TRAINING["concept_id"].to_list()
    seldom = {code[:-1]: code for code in reversed(CONCEPTS) if code not in often}
    contrary = DEVELOPMENT.with_columns(pl.col("concept_id").str.head(-1).replace(seldom))
    report = tune_linker(linker, contrary, prior=TRAINING, calibrate=False)
    assert (report.prior_weight, report.stages) == (None, ("exact", "variants", "dense", "sparse"))
    assert report.prior is not None
    assert Linker.open(linker).prior is not None
    with pytest.raises(InputError, match="do not show that it counts how often"):
        tune_linker(linker, contrary, stages=["dense", "prior"], calibrate=False)


def test_where_all_is_right_without_it_it_stays_off(linker: Path) -> None:
    named = [(name, code) for code, (name,) in CONCEPTS.items() if code.endswith("a")]
    easy = [(f"{name}{letter}", code) for name, code in named for letter in "xyz"]
    meant, asked = (pl.DataFrame(rows, schema=["mention", "concept_id"], orient="row") for rows in (named * 9, easy))
    wished = tune_linker(linker, asked, prior=meant, stages=["sparse", "prior"], calibrate=False)
    assert wished.prior_weight is not None, "it makes what is right more probable"
    tune_linker(linker, asked, stages=["sparse"], calibrate=False)
    report = tune_linker(linker, asked, calibrate=False)
    assert report.accuracy["with stage prior"] == report.accuracy["without stage prior"]
    assert (report.prior_weight, report.stages) == (None, ("sparse",))


def test_the_weight_is_the_most_likely_one() -> None:
    rng = np.random.default_rng(0)
    pools = []
    for _ in range(300):
        scores, counts = rng.uniform(0.5, 1, 20), np.log1p(rng.integers(0, 40, 20) * (rng.random(20) < 0.3))
        odds = np.exp(20 * scores + 0.8 * counts)
        right = rng.choice(20, p=odds / odds.sum())
        pools.append(LabelledPool(np.stack([scores, counts], axis=1), np.arange(20) == right))
    learned = learn_prior_weight(pools)

    def surprise(weight: float) -> float:
        def at(scale: float) -> float:
            logits = [scale * (p.scores[:, 0] + weight * p.scores[:, 1]) for p in pools]
            return -sum(float((x - np.logaddexp.reduce(x))[p.is_right][0]) for x, p in zip(logits, pools, strict=True))

        return float(minimize_scalar(at, bounds=(0.1, 100), method="bounded").fun)

    best = minimize_scalar(surprise, bounds=(0.001, 0.5), method="bounded", options={"xatol": 1e-6}).x
    assert learned == pytest.approx(best, rel=1e-2)
    assert learned == pytest.approx(0.04, rel=0.3)
    backwards = [LabelledPool(pool.scores * np.array([1, 0]), pool.is_right) for pool in pools]
    assert learn_prior_weight(backwards) is None or learn_prior_weight(backwards) == pytest.approx(0, abs=1e-3)
    assert learn_prior_weight([LabelledPool(pools[0].scores, np.ones(20, np.bool_))]) is None
    assert learn_prior_weight([]) is None


def test_without_counts_there_is_no_such_stage(place: Path, linker: Path) -> None:
    opened = Linker.open(linker)
    for asked in (opened, opened.with_prior(np.ones(len(CONCEPTS), np.int64))):
        with pytest.raises(ConfigError, match=r"no stage 'prior'.*onoma linker tune --prior"):
            asked.link(["x"], stages=["dense", "prior"])
    with pytest.raises(ConfigError, match="no stage 'prior'"):
        tune_linker(linker, DEVELOPMENT, stages=["dense", "prior"], calibrate=False)
    with pytest.raises(ConfigError, match="no stage that finds concepts"):
        opened.link(["x"], stages=["prior", "rerank"])
    with pytest.raises(ConfigError, match="prior_weight"):
        opened.settings.replaced(prior_weight=0.0)
    with pytest.raises(ShapeError, match="from 0"):
        opened.with_prior(np.full(len(CONCEPTS), -1))
    tune_linker(linker, DEVELOPMENT, prior=TRAINING, calibrate=False)
    tuned = Linker.open(linker)
    without = tuned.with_prior(None)
    assert (without.prior, without.settings.stages) == (None, ("exact", "variants", "dense", "sparse"))
    never = tuned.with_prior(np.zeros(len(CONCEPTS), np.int64))
    assert never.link(ASKED) == without.link(ASKED), "of no concept there is more to say than of others"
    (linker / "prior.npy").unlink()
    refit(linker)
    with pytest.raises(ConfigError, match="no stage 'prior'"):
        Linker.open(linker)


def test_an_update_keeps_it(linker: Path, tmp_path: Path) -> None:
    tune_linker(linker, DEVELOPMENT, prior=TRAINING, calibrate=False)
    newer = {"C99": ["something new"], **dict(reversed(CONCEPTS.items()))}
    make_terminology(tmp_path / "newer", newer)
    update_linker(linker, tmp_path / "newer", tmp_path / "updated")
    before, after = Linker.open(linker), Linker.open(tmp_path / "updated")
    assert after.settings == before.settings
    firsts = [[links[0].concept_id for links in one.link(ASKED[:-2], top_k=1)] for one in (before, after)]
    assert firsts[0] == firsts[1]


def test_counts_are_replaced_and_what_they_count_for_stays(linker: Path) -> None:
    learned = tune_linker(linker, DEVELOPMENT, prior=TRAINING, wished_precision=0.7).prior_weight
    tuned = Linker.open(linker)
    everything = pl.concat([TRAINING, DEVELOPMENT])
    report = add_prior(linker, everything)
    assert report.n_mentions == len(everything)
    counted = Linker.open(linker)
    assert counted.settings == tuned.settings
    assert counted.settings.prior_weight == learned
    assert counted.prior is not None
    assert counted.prior.sum() == len(everything)
    assert tuned.with_prior(counted.prior).link(ASKED) == counted.link(ASKED)
    assert read_manifest(linker).config["prior"]["n_mentions"] == len(everything)
    assert read_manifest(linker).config["tuning"]["prior_weight"] == learned
    verify_artifact(linker)


def test_a_weight_can_be_given(place: Path, linker: Path) -> None:
    add_prior(linker, TRAINING)
    assert Linker.open(linker).stages == ("exact", "loose", "variants", "dense", "sparse")
    with pytest.raises(ConfigError, match="adds to cosines, and these stages fuse reciprocal ranks"):
        add_prior(linker, TRAINING, weight=WEIGHT)
    with amend_artifact(linker, "linker", format_version=FORMAT_VERSION) as folder:
        Linker.open(linker).settings.replaced(weights=SHARES).save(folder)
    add_prior(linker, TRAINING, weight=WEIGHT)
    opened = Linker.open(linker)
    assert opened.settings.stages == ("exact", "variants", "dense", "sparse", "prior")
    same = knowing(Linker.open(place / "linker")).link(ASKED, stages=opened.settings.stages)
    assert opened.link(ASKED) == same
    before = opened.fingerprint
    for weight in (0.0, -1.0, math.inf, math.nan, True, "a"):
        with pytest.raises(ConfigError, match=r"weight of a prior \(--weight\)"):
            add_prior(linker, TRAINING, weight=weight)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no mention is of a concept"):
        add_prior(linker, TRAINING.with_columns(concept_id=pl.lit("X")), weight=1.0)
    assert Linker.open(linker).fingerprint == before


def test_reciprocal_ranks_are_no_scores_to_add_to(place: Path) -> None:
    linker = knowing(Linker.open(place / "linker"))
    ranks = linker.tuned(linker.settings.replaced(weights=None))
    assert ranks.link(["cardi"], stages=["dense", "prior"]) == linker.link(["cardi"], stages=["dense", "prior"])
    with pytest.raises(ConfigError, match="fuse reciprocal ranks: learn weights"):
        ranks.link(["cardi"], stages=["dense", "sparse", "prior"])


def test_confidences_go_where_another_weight_comes(linker: Path) -> None:
    learned = tune_linker(linker, DEVELOPMENT, prior=TRAINING, wished_precision=0.7).prior_weight
    assert learned is not None
    add_prior(linker, TRAINING, weight=learned)
    assert Linker.open(linker).is_calibrated
    add_prior(linker, TRAINING, weight=2 * learned)
    changed = Linker.open(linker)
    assert not changed.is_calibrated
    assert (changed.settings.no_concept_below, changed.settings.calibrated_stages) == (None, ())
    tune_linker(linker, DEVELOPMENT, stages=["exact", "dense"], wished_precision=0.7)
    add_prior(linker, TRAINING, weight=learned)
    assert not Linker.open(linker).is_calibrated


def test_the_searches_order_is_told_from_the_priors(place: Path) -> None:
    linker = knowing(Linker.open(place / "linker"))
    stages = ["dense", "prior"]
    n_by_prior = 0
    for mention in ASKED[:-2]:
        nearest = linker.link([mention], stages=["dense"], top_k=1)[0][0]
        explained = linker.explain(mention, stages=stages, top_k=1, near_misses=len(CONCEPTS))
        first = explained.links[0]
        if first.scores["dense"] < nearest.score - 2e-6:
            n_by_prior += 1
            assert first.stage == "prior"
            assert "its name is near, and among near ones it is meant more often" in explained.outcome
        else:
            assert first.stage == "dense"
            assert "its name has the nearest vector" in explained.outcome
    assert n_by_prior > 10


def test_of_equally_near_concepts_the_expected_ones_stay_first(tmp_path: Path) -> None:
    write_letter_encoder(tmp_path / "letters")
    concepts = {"A": ["common cold"], "B": ["common cold"], "C": ["common cold"], "D": ["quite other"]}
    types = {"A": ["Disease"], "B": ["Phenomenon"], "C": ["Disease"], "D": ["Phenomenon"]}
    make_terminology(tmp_path / "t", concepts, semantic_types=types)
    linker = build_linker(tmp_path / "t", tmp_path / "letters", tmp_path / "linker")
    linker = linker.with_prior(np.array([1, 9, 0, 3]))
    linker = linker.tuned(linker.settings.replaced(stages=("exact", "dense", "prior"), prior_weight=WEIGHT))
    for mention in ("common cold", "common colds"):
        assert [link.concept_id for link in linker.link([mention])[0]][:3] == ["B", "A", "C"]
        (links,) = linker.link([mention], expected_types="Disease")
        assert [link.concept_id for link in links][:3] == ["A", "C", "B"]
        assert [link.score for link in links] == sorted((link.score for link in links), reverse=True)
        (only,) = linker.only(semantic_types="Phenomenon").link([mention])
        assert [link.concept_id for link in only][:1] == ["B"]
