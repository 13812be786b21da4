"""Every combination of stages against an oracle of plain loops; what each stage promises."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linking_data import write_letter_linker

from onoma.encoders import open_encoder
from onoma.errors import ConfigError, InputError
from onoma.indexes.vector_store import VectorPrecision
from onoma.linking import Linker, LinkerSettings, Reranker, build_linker, pipeline
from onoma.terminology import normalise
from tiny import make_terminology

CONCEPTS = {
    "D1": ["Diabetes Mellitus", "sugar disease", "type-1 diabetes"],
    "D2": ["Cold"],
    "D3": ["Chronic Obstructive Lung Disease", "COLD", "copd"],
    "D4": ["Common Cold", "cold", "head cold"],
    "D5": ["Type 1 Diabetes"],
    "D6": ["Cold Temperature", "cold"],
    "D7": ["β thalassaemia", "alpha-thalassaemia"],
    "D8": ["γ thalassaemia", "thalassaemia"],
    "D9": ["lung cancer", "cancer of the lung"],
}
TYPES = {"D2": ["Phenomenon"], "D4": ["Disease"], "D3": ["Disease"], "D6": ["Phenomenon"]}
TEXTS = list(dict.fromkeys(normalise(name, "sapbert") for names in CONCEPTS.values() for name in names))
MENTIONS = ["cold", "Type 1 diabetes", "type 1  DIABETES!", "the colds", "diabetis", "γ thalassaemia", "cancer", "?"]
SUBSETS = [subset for n in range(1, 5) for subset in itertools.combinations(["exact", "loose", "dense", "sparse"], n)]
WEIGHTS = {"dense": 0.25, "sparse": 0.75}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stages")
    write_letter_linker(folder, CONCEPTS, semantic_types=TYPES)
    return folder


@pytest.fixture(scope="module")
def linker(place: Path) -> Linker:
    return Linker.open(place / "linker")


@pytest.fixture(scope="module")
def dense_of(place: Path) -> dict[str, np.ndarray[Any, Any]]:
    encoder = open_encoder(place / "letters", backend="onnx")
    tokenizer = encoder.folder.load_tokenizer()
    found = {}
    for text in dict.fromkeys([*TEXTS, *(normalise(mention, "sapbert") for mention in MENTIONS)]):
        tokens = tokenizer.encode(text, add_special_tokens=False).tokens
        is_read = 2 * tokens.count("[UNK]") < len(tokens)
        found[text] = encoder.encode([text])[0].astype(float) * is_read
    assert not found["?"].any()
    return found


def ngrams_of(text: str) -> Counter[str]:
    return Counter([*text, *(a + b for a, b in itertools.pairwise(text))])


FREQUENCY = Counter(ngram for text in TEXTS for ngram in set(ngrams_of(text)))


def tfidf(text: str) -> dict[str, float]:
    raw = {ngram: n * (math.log((1 + len(TEXTS)) / (1 + FREQUENCY[ngram])) + 1) for ngram, n in ngrams_of(text).items()}
    length = math.sqrt(sum(weight**2 for weight in raw.values()))
    return {ngram: weight / length for ngram, weight in raw.items() if ngram in FREQUENCY}


def sparse_score(mention: str, text: str) -> float:
    ours, theirs = tfidf(mention), tfidf(text)
    return sum(weight * theirs.get(ngram, 0.0) for ngram, weight in ours.items())


def answer_by_loops(
    mention: str,
    stages: tuple[str, ...],
    dense_of: dict[str, Any],
    *,
    weights: dict[str, float] | None,
    pool: list[int],
) -> list[tuple[str, float]]:
    """The oracle: hits first, then every candidate text of every concept, a plain sort."""
    text = normalise(mention, "sapbert")
    hits = [other for other in TEXTS if "exact" in stages and other == text]
    if not hits and "loose" in stages and normalise(text, "loose"):
        hits = [other for other in TEXTS if normalise(other, "loose") == normalise(text, "loose")]
    by_search: dict[str, dict[str, float]] = {}
    if "dense" in stages:
        by_search["dense"] = {other: float(dense_of[text] @ dense_of[other]) for other in TEXTS}
    if "sparse" in stages:
        by_search["sparse"] = {other: sparse_score(text, other) for other in TEXTS}
    means_something = any(any(scores.values()) for scores in by_search.values())
    tiers: dict[str, int] = {}
    if means_something:
        sizes = pool if len(by_search) > 1 else [len(TEXTS)]
        for tier, size in enumerate(sizes):
            for scores in by_search.values():
                # The search's own scores are of single precision, and of equal ones the earlier text is taken.
                nearest = sorted(TEXTS, key=lambda t: (-float(np.float32(scores[t])), TEXTS.index(t)))[:size]
                for candidate in nearest:
                    tiers.setdefault(candidate, tier)
    if len(by_search) > 1 and (weights is not None or max(by_search["dense"].values()) > 0):
        dense, sparse = by_search["dense"], by_search["sparse"]
        by_search["dense"] = {other: dense[other] if dense[other] != 0 else sparse[other] for other in TEXTS}
    fused: dict[str, float] = {}
    for candidate, tier in tiers.items():
        total = 0.0
        for search, scores in by_search.items():
            if len(by_search) == 1:
                total += scores[candidate]
            elif weights is not None:
                total += weights[search] * scores[candidate]
            else:
                mine = round(scores[candidate], 5)
                better = sum(1 for c, t in tiers.items() if t < tier or (t == tier and round(scores[c], 5) > mine))
                total += 61 / (61 + better) / len(by_search) if max(scores.values()) > 0 else 0
        fused[candidate] = total
    groups, least = [dict.fromkeys(hits, 1.0)], math.inf
    for tier in sorted(set(tiers.values())):
        own = {candidate: score for candidate, score in fused.items() if tiers[candidate] == tier}
        fall = max(0.0, max(own.values()) - (least - 2e-6))
        groups.append({candidate: score - fall for candidate, score in own.items()})
        least = min(groups[-1].values())
    ordered: list[tuple[int, float, int, str]] = []
    for group, scores in enumerate(groups):
        best: dict[str, tuple[float, int]] = {}
        for candidate, score in scores.items():
            for concept, names in CONCEPTS.items():
                for name in names:
                    if normalise(name, "sapbert") == candidate:
                        key = (-round(score, 5), 0 if name == names[0] else 1)
                        best[concept] = min(key, best.get(concept, key))
        known = {concept for _, _, _, concept in ordered}
        ordered += sorted(
            (group, score, preferred, concept) for concept, (score, preferred) in best.items() if concept not in known
        )
    return [(concept, -score) for _, score, _, concept in sorted(ordered)]


@pytest.mark.parametrize("stages", SUBSETS, ids="+".join)
def test_equals_loops(linker: Linker, dense_of: dict[str, Any], stages: tuple[str, ...]) -> None:
    answers = linker.link(MENTIONS, stages=stages, top_k=20)
    for mention, links in zip(MENTIONS, answers, strict=True):
        expected = answer_by_loops(mention, stages, dense_of, weights=None, pool=[100])
        assert [link.concept_id for link in links] == [concept for concept, _ in expected], mention
        np.testing.assert_allclose([link.score for link in links], [score for _, score in expected], atol=2e-5)
        assert [link.rank for link in links] == list(range(1, len(links) + 1))
        assert all(link.confidence is None for link in links)


@pytest.mark.parametrize("pool", [1, 2, 4, 100])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["ranks", "weights"])
def test_fusion_equals_loops(
    linker: Linker, dense_of: dict[str, Any], pool: int, weights: dict[str, float] | None
) -> None:
    """The candidates are the best of each search; where they stand for too few concepts, more come behind them."""
    tuned = linker.tuned(LinkerSettings(stages=("dense", "sparse"), pool=pool, weights=weights))
    for mention in MENTIONS:
        for top_k in (1, 3, 8):
            sizes = [pool]
            while True:
                expected = answer_by_loops(mention, ("dense", "sparse"), dense_of, weights=weights, pool=sizes)
                if len(expected) >= top_k or sizes[-1] >= len(TEXTS):
                    break
                sizes.append(4 * sizes[-1])
            links = tuned.link([mention], top_k=top_k)[0]
            assert [link.concept_id for link in links] == [concept for concept, _ in expected[:top_k]], mention
            np.testing.assert_allclose(
                [link.score for link in links], [score for _, score in expected[:top_k]], atol=2e-5
            )


@settings(max_examples=60)
@given(
    mention=st.sampled_from(MENTIONS) | st.text("acdehlorst 1-", min_size=1, max_size=12),
    stages=st.sampled_from(SUBSETS),
    pool=st.integers(1, 9),
    dense=st.none() | st.floats(0, 1),
)
def test_a_longer_answer_begins_with_the_shorter(
    linker: Linker, mention: str, stages: tuple[str, ...], pool: int, dense: float | None
) -> None:
    weights = None if dense is None else {"dense": dense, "sparse": 1 - dense}
    tuned = linker.tuned(LinkerSettings(stages=stages, pool=pool, weights=weights))
    longest = tuned.link([mention], top_k=len(CONCEPTS))[0]
    assert [link.score for link in longest] == sorted((link.score for link in longest), reverse=True)
    for top_k in range(1, len(CONCEPTS)):
        assert tuned.link([mention], top_k=top_k)[0] == longest[:top_k]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["ranks", "weights"])
def test_what_a_larger_pool_brought_is_explained(linker: Linker, weights: dict[str, float] | None) -> None:
    tuned = linker.tuned(LinkerSettings(stages=("dense", "sparse"), pool=1, weights=weights))
    for mention in [*MENTIONS[:-1], "γ"]:  # which the encoder cannot read, so that it has no rank by vectors
        explanation = tuned.explain(mention, top_k=8)
        assert explanation.links
        assert [reason.score for reason in explanation.links] == [
            link.score for link in tuned.link([mention], top_k=8)[0]
        ]
        for reason in (*explanation.links, *explanation.near_misses):
            assert sum(reason.contributions.values()) == pytest.approx(reason.score, abs=2e-6)
            if weights is None:
                parts = [61 / (60 + rank) / 2 for rank in reason.ranks.values()]
                assert sum(parts) == pytest.approx(reason.score, abs=2e-6)


@pytest.mark.parametrize("stages", SUBSETS, ids="+".join)
def test_answers_do_not_depend_on_the_batch(
    linker: Linker, stages: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    mentions = [*MENTIONS, *(f"{mention} of the lung" for mention in MENTIONS), "x" * 400]
    together = linker.link(mentions, stages=stages)
    assert linker.link(reversed(mentions), stages=stages) == together[::-1]
    alone = [linker.link([mention], stages=stages)[0] for mention in mentions]
    monkeypatch.setattr(pipeline, "_MENTIONS_AT_ONCE", 5)
    for others in (alone, linker.link(mentions, stages=stages)):
        for links, other in zip(together, others, strict=True):
            assert [link.concept_id for link in links] == [link.concept_id for link in other]
            # An encoder rounds by the shape of its batch.
            np.testing.assert_allclose([link.score for link in links], [link.score for link in other], atol=2e-6)


@pytest.mark.parametrize("stages", SUBSETS, ids="+".join)
def test_an_explanation_is_of_the_answer_and_adds_up(linker: Linker, stages: tuple[str, ...]) -> None:
    for weights in (None, WEIGHTS):
        tuned = linker.tuned(LinkerSettings(weights=weights))
        for mention in MENTIONS:
            explained = tuned.explain(mention, stages=stages, top_k=2, near_misses=3)
            (links,) = tuned.link([mention], stages=stages, top_k=2)
            assert [(reason.concept_id, reason.score) for reason in explained.links] == [
                (link.concept_id, link.score) for link in links
            ]
            assert [reason.matched_name for reason in explained.links] == [link.matched_name for link in links]
            assert explained.stages == stages
            for place, reason in enumerate([*explained.links, *explained.near_misses], 1):
                assert reason.rank == place
                assert sum(reason.contributions.values()) == pytest.approx(reason.score, abs=2e-6)
                assert normalise(reason.matched_name, "sapbert") == reason.matched_text
                assert set(reason.scores) == set(stages) - {"exact", "loose"}
            assert explained.outcome
            beyond = tuned.link([mention], stages=stages, top_k=5)[0][len(links) :]
            assert [reason.concept_id for reason in explained.near_misses] == [link.concept_id for link in beyond]


def test_an_explanation_says_which_stage_and_why(linker: Linker) -> None:
    def first(mention: str) -> tuple[str, str]:
        explained = linker.explain(mention, stages=["exact", "loose", "dense", "sparse"])
        return explained.links[0].stage, explained.outcome

    assert first("COLD") == (
        "exact",
        "D2 (Cold): the mention is a name of it ('Cold'). 3 other concepts have that name.",
    )
    assert first("copd!")[0] == "loose"
    assert first("colds")[0] == "fusion"
    assert linker.explain("colds", stages=["dense"]).links[0].stage == "dense"
    reason = linker.explain("COLD").links[0]
    assert reason.homonyms == ("D3", "D4", "D6")
    assert reason.contributions == {"exact": 1.0}
    assert reason.scores["dense"] == pytest.approx(1, abs=1e-6)
    assert "normalisation leaves nothing" in linker.explain("   ").outcome
    assert "could be searched for" in linker.explain("qqqqq", stages=["exact"]).outcome


@pytest.mark.parametrize("hidden", [[], [8]], ids=["all", "but a homonym"])  # row 8 is "cold" of D4
def test_what_a_confidence_is_judged_by_equals_loops(
    linker: Linker, dense_of: dict[str, Any], hidden: list[int]
) -> None:
    tuned = linker.tuned(LinkerSettings(stages=("exact", "loose", "dense", "sparse"), weights=WEIGHTS)).without(hidden)
    names = [(concept, normalise(name, "sapbert")) for concept, names in CONCEPTS.items() for name in names]
    left = [pair for row, pair in enumerate(names) if row not in hidden]
    n_judged = 0
    for asked, run in tuned.runs(MENTIONS, top_k=2):
        for place, (question, answer) in enumerate(zip(asked, run.answers(asked), strict=True)):
            (links,) = tuned.link([question.text], top_k=2)
            if not links:
                continue
            found, text = run.evidence(place, question, answer), normalise(links[0].matched_name, "sapbert")
            assert (found.mention, found.scores) == (question.text, [link.score for link in links])
            assert found.is_exact == (normalise(question.text, "loose") == normalise(text, "loose"))
            assert found.dense_score == pytest.approx(dense_of[question.text] @ dense_of[text], abs=1e-6)
            assert found.ngram_score == pytest.approx(sparse_score(question.text, text), abs=1e-6)
            assert found.n_homonyms == sum(name == text for _, name in left)
            n_judged += 1
    assert n_judged == len(MENTIONS) - 1


def test_a_mention_that_is_a_name_never_loses_to_a_near_one(linker: Linker) -> None:
    """The tokeniser does not know Greek letters: the two thalassaemias have one vector."""
    dense = linker.link(["γ thalassaemia"], stages=["dense"], top_k=1)[0][0]
    assert (dense.concept_id, dense.score) == ("D7", 1.0)
    for stages in (["exact", "dense"], ["exact", "dense", "sparse"]):
        assert linker.link(["γ thalassaemia"], stages=stages, top_k=1)[0][0].concept_id == "D8"
    for weights in (None, {"dense": 1.0, "sparse": 0.0}):
        answers = linker.tuned(LinkerSettings(weights=weights, stages=("exact", "dense", "sparse"))).link(
            TEXTS, top_k=1
        )
        for text, (link,) in zip(TEXTS, answers, strict=True):
            assert normalise(link.matched_name, "sapbert") == text
            assert link.score == 1


def test_the_looser_look_up_is_asked_only_where_the_exact_one_has_nothing(linker: Linker) -> None:
    def hits(mention: str) -> list[str]:
        return [link.concept_id for link in linker.link([mention], stages=["exact", "loose"])[0]]

    assert hits("type 1 diabetes") == ["D5"]
    assert hits("type-1 diabetes") == ["D1"]
    assert hits("(Type 1) diabetes") == ["D5", "D1"], "preferred name first"
    assert hits("type one diabetes") == []


def test_all_homonyms_are_counted(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {f"D{row}": ["cold"] for row in range(30)})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    explained = linker.explain("cold")
    assert "29 other concepts have that name" in explained.outcome
    assert explained.links[0].n_homonyms == 29
    assert explained.links[0].homonyms == tuple(f"D{row}" for row in range(1, 21))


def test_expected_types_order_homonyms_and_leave_nothing_out(linker: Linker) -> None:
    def ids(mention: str, **asked: Any) -> list[str]:
        return [link.concept_id for link in linker.link([mention], top_k=4, **asked)[0]]

    assert ids("cold") == ["D2", "D3", "D4", "D6"]
    assert ids("cold", expected_types="Disease") == ["D3", "D4", "D2", "D6"]
    assert ids("cold", expected_types=["phenomenon"]) == ["D2", "D6", "D3", "D4"]
    assert ids("colds", stages=["dense"], expected_types="Disease")[:4] == ["D3", "D4", "D2", "D6"]
    assert ids("common cold", expected_types="Phenomenon")[0] == "D4", "of equal scores only"
    with pytest.raises(InputError, match="Did you mean 'Disease'"):
        ids("cold", expected_types="Diseas")


def test_stages_that_are_not_there(place: Path, linker: Linker, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no stage 'dens'\. Did you mean 'dense'"):
        linker.link(["cold"], stages=["dens"])
    with pytest.raises(ConfigError, match=r"no stage 'rerank'.*add-reranker"):
        linker.link(["cold"], stages=["dense", "rerank"])
    with pytest.raises(ConfigError, match="no stage that finds concepts"):
        linker.link(["cold"], stages=[])
    with pytest.raises(ConfigError, match="no stage that finds concepts"):
        linker.link(["cold"], stages=["rerank"])
    plain = build_linker(place / "t", place / "letters", tmp_path / "plain")
    assert plain.settings.stages == ("exact", "variants", "dense")
    with pytest.raises(ConfigError, match=r"no stage 'sparse'; it has exact, loose, variants, dense.*--sparse"):
        plain.link(["cold"], stages=["sparse"])
    with pytest.raises(ConfigError, match="is not calibrated"):
        plain.link(["cold"], no_concept_below=0.5)
    with pytest.raises(ConfigError, match="would have no stage sparse"):
        build_linker(place / "t", place / "letters", tmp_path / "none", stages=["sparse"])
    with pytest.raises(ConfigError, match="needs a search"):
        build_linker(place / "t", None, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_linker_without_an_encoder(place: Path, tmp_path: Path) -> None:
    linker = build_linker(place / "t", None, tmp_path / "linker", sparse=True)
    assert linker.stages == ("exact", "loose", "variants", "sparse")
    assert linker.settings.stages == ("exact", "variants", "sparse")
    assert linker.link(["diabetis mellitus"], top_k=1)[0][0].concept_id == "D1"
    assert linker.link(["心"]) == [[]], "it shares no character with any name"
    with pytest.raises(InputError, match="without an encoder"):
        linker.encoder  # noqa: B018 - the access is what is tested
    with pytest.raises(ConfigError, match=r"no stage 'dense'.*--encoder"):
        linker.link(["cold"], stages=["dense"])
    assert linker.fingerprint == build_linker(place / "t", None, tmp_path / "again", sparse=True).fingerprint
    assert {file.name for file in (tmp_path / "linker").iterdir()}.isdisjoint({"encoder", "vectors.npy"})


@pytest.mark.parametrize("options", [{"index": "sign-bits"}, {"vectors": "int8"}, {"ngrams": (2, 4)}])
def test_options_of_a_search_that_there_is_not(place: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    has_ngrams = "ngrams" not in options
    encoder = None if has_ngrams else place / "letters"
    with pytest.raises(ConfigError, match="encoder" if has_ngrams else "--sparse"):
        build_linker(place / "t", encoder, tmp_path / "linker", sparse=has_ngrams, **options)


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_no_score_is_above_1_though_a_rounded_vector_is_longer(
    place: Path, tmp_path: Path, precision: VectorPrecision
) -> None:
    """The vectors of "type 1 diabetes" and "type-1 diabetes" are equal: what look-up found would else come second."""
    linker = build_linker(place / "t", place / "letters", tmp_path / "linker", sparse=True, vectors=precision)
    for stages in (["dense"], ["exact", "dense"], ["dense", "sparse"]):
        for links in linker.tuned(linker.settings.replaced(weights=WEIGHTS)).link(TEXTS, stages=stages):
            scores = [link.score for link in links]
            assert scores == sorted(scores, reverse=True)
            assert scores[0] <= 1


class FirstLetters:
    """A cross-encoder that likes names by a table; what it was asked is kept."""

    def __init__(self, likes: dict[str, float], *, depth: int = 3, weight: float = 0.5) -> None:
        self.likes, self.asked = likes, list[tuple[str, str, str | None]]()
        about = {"depth": depth, "weight": weight, "candidate_text": "both", "contexts": True, "nil_score": None}
        self.about = type("About", (), about)()

    def scores(
        self, mentions: list[str], names: list[str], contexts: list[str | None] | None = None, *, progress: Any = None
    ) -> Any:
        self.asked += list(zip(mentions, names, contexts or [None] * len(names), strict=True))
        return np.array(
            [max((v for k, v in self.likes.items() if k in name), default=0.0) for name in names], np.float32
        )


def with_reranker(linker: Linker, model: FirstLetters) -> Linker:
    return linker._with(dataclasses.replace(linker._components, reranker=Reranker(model)))  # type: ignore[arg-type]


def test_the_cross_encoder_orders_what_look_up_did_not_decide(linker: Linker) -> None:
    (before,) = linker.link(["lung canser"], stages=["exact", "dense"], top_k=4)
    favourite = before[2]
    model = FirstLetters({favourite.matched_name: 9.0})
    reranked = with_reranker(linker, model)
    (after,) = reranked.link(["lung canser"], stages=["exact", "dense", "rerank"], top_k=4)
    assert after[0].concept_id == favourite.concept_id
    assert sorted(link.concept_id for link in after[:3]) == sorted(link.concept_id for link in before[:3])
    assert after[3].concept_id == before[3].concept_id, "it looks at three"
    assert after[3].score == pytest.approx(before[3].score / 2, abs=1e-6)
    odds = math.exp(9) / (math.exp(9) + 2)
    assert after[0].score == pytest.approx(favourite.score / 2 + odds / 2, abs=1e-6)
    assert {mention for mention, _, _ in model.asked} == {"lung canser"}
    (only,) = reranked.link(["lung canser"], stages=["exact", "dense", "rerank"], top_k=1)
    assert only == after[:1], "it looks at three whatever is asked for"


def test_the_cross_encoder_orders_homonyms_and_leaves_a_single_hit_alone(linker: Linker) -> None:
    model = FirstLetters({"Temperature": 5.0}, depth=10)
    reranked, stages = with_reranker(linker, model), ["exact", "dense", "rerank"]
    (links,) = reranked.link(["cold"], stages=stages, top_k=6)
    assert [link.concept_id for link in links[:4]] == ["D6", "D2", "D3", "D4"]
    assert [link.score for link in links[:4]] == [1.0] * 4
    assert reranked.link(["cold"], stages=stages, top_k=1)[0] == links[:1]
    (links,) = reranked.link(["cold"], stages=stages, top_k=4, expected_types="Disease")
    assert [link.concept_id for link in links] == ["D3", "D4", "D6", "D2"]
    model.asked.clear()
    (links,) = reranked.link(["lung cancer"], stages=stages, top_k=3)
    assert links == linker.link(["lung cancer"], stages=["exact", "dense"], top_k=3)[0]
    assert model.asked == []


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_a_longer_answer_begins_with_the_shorter_one(linker: Linker, weight: float) -> None:
    """Behind what the cross-encoder looked at all scores are 0 where it alone decides: equal, and not to be sorted."""
    reranked = with_reranker(linker, FirstLetters({"cancer": 2.0}, depth=2, weight=weight))
    for mention, types in itertools.product(["lung canser", "diabetis", "colds"], ["Disease", "Phenomenon"]):
        asked: dict[str, Any] = {"stages": ["dense", "rerank"], "expected_types": types}
        (longest,) = reranked.link([mention], top_k=9, **asked)
        for top_k in range(1, 9):
            assert reranked.link([mention], top_k=top_k, **asked) == [longest[:top_k]]
        explained = reranked.explain(mention, top_k=3, near_misses=4, **asked)
        assert [reason.concept_id for reason in explained.links] == [link.concept_id for link in longest[:3]]


def test_contexts_are_for_the_cross_encoder(linker: Linker) -> None:
    model = FirstLetters({"Lung": 1.0})
    reranked, stages = with_reranker(linker, model), ["dense", "rerank"]
    reranked.link(["colds", "colds"], contexts=["many colds", None], stages=stages, top_k=1)
    assert {context for _, _, context in model.asked} == {"many colds", None}
    with pytest.raises(InputError, match="one context for each mention"):
        reranked.link(["a", "b"], contexts=["x"], stages=stages)
    with pytest.raises(InputError, match="does not read contexts"):
        linker.link(["a"], contexts=["an a"])
    assert linker.link(["cold"], contexts=[None]) == linker.link(["cold"])


def test_a_reranked_explanation_adds_up(linker: Linker) -> None:
    reranked = with_reranker(linker, FirstLetters({"Cancer": 2.0, "cancer": 2.0}, depth=2, weight=0.3))
    for stages in (["dense", "rerank"], ["dense", "sparse", "rerank"], ["exact", "dense", "rerank"]):
        for mention in ("lung canser", "cold", "lung cancer"):
            explained = reranked.explain(mention, stages=stages, top_k=3)
            for reason in [*explained.links, *explained.near_misses]:
                assert sum(reason.contributions.values()) == pytest.approx(reason.score, abs=2e-6)


def test_the_cross_encoder_is_named_where_it_has_changed_the_order(linker: Linker) -> None:
    reranked = with_reranker(linker, FirstLetters({"Cancer": 2.0, "cancer": 2.0}, depth=3, weight=0.6))
    stages_seen = set()
    for mention in ("lung canser", "cold", "lung cancer", "sugar"):
        plain = {link.concept_id: link.score for link in linker.link([mention], stages=["dense"], top_k=100)[0]}
        explained = reranked.explain(mention, stages=["dense", "rerank"], top_k=3)
        order = [reason.concept_id for reason in (*explained.links, *explained.near_misses)]
        for place, reason in enumerate((*explained.links, *explained.near_misses)):
            before = plain[reason.concept_id]
            is_moved = any(plain[other] < before - 2e-6 for other in order[:place])
            is_moved |= any(plain[other] > before + 2e-6 for other in order[place:])
            assert reason.stage == ("rerank" if is_moved else "dense")
        first = explained.links[0]
        stages_seen.add(first.stage)
        said = "the cross-encoder prefers it" if first.stage == "rerank" else "both before and after the cross-encoder"
        assert said in explained.outcome
    assert stages_seen == {"rerank", "dense"}


def test_weights_are_numbers() -> None:
    with pytest.raises(ConfigError, match="settings of a linker: weights must have the sum 1"):
        LinkerSettings(stages=("dense", "sparse"), weights={"dense": float("nan"), "sparse": 1.0})
