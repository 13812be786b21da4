"""Tuning a linker on development mentions, and what its confidences then do."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from linking_data import made_up, misspelt, write_letter_linker
from scipy.stats import beta

from onoma.artifacts import amend_artifact, open_artifact, verify_artifact
from onoma.benchmarks import run_benchmark
from onoma.encoders.cross_encoder import CrossEncoder
from onoma.errors import ArtifactExistsError, ConfigError, InputError
from onoma.linking import Linker, add_prior, add_reranker, build_linker, confidence, tune_linker
from onoma.linking.calibration import MIN_OF_EACH, Calibration
from onoma.linking.confidence_features import MentionEvidence, confidence_features
from onoma.linking.confidence_metrics import threshold_in_words
from onoma.linking.folder import FORMAT_VERSION
from onoma.linking.likelihood import LabelledPool
from onoma.linking.settings import LinkerSettings, Stage
from onoma.linking.trials import Accuracies
from onoma.terminology import normalise
from onoma.types import DoubleArray
from tiny import make_terminology, tiny_encoder
from tiny_rerankers import write_reranker


def write_mentions() -> tuple[dict[str, list[str]], pl.DataFrame]:
    """Concepts, and mentions of them: misspelt, spelt right, of no concept, of unknown ones."""
    letters = random.Random(1)
    concepts = {f"C{row}": [made_up(letters) for _ in range(2)] for row in range(70)}
    rows = []
    for code, names in concepts.items():
        rows += [(misspelt(name, letters), code) for name in names]
        # Of a twisted name hardly anything is left: what tells right answers from wrong ones.
        rows.append(("".join(letters.sample(names[0], len(names[0]))), code))
    rows += [(names[0].upper(), code) for code, names in list(concepts.items())[:20]]
    rows += [(made_up(letters), "NIL") for _ in range(20)] + [(made_up(letters), "CUI-less")]
    rows += [(made_up(letters), "X1"), (made_up(letters), "X2|X3"), ("   ", "C1"), (rows[0][0], "C0|X9")]
    return concepts, pl.DataFrame(rows, schema=["mention", "concept_id"], orient="row")


CONCEPTS, MENTIONS = write_mentions()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuning")
    write_letter_linker(folder, CONCEPTS)
    shutil.copytree(folder / "linker", folder / "untuned")
    tune_linker(folder / "linker", MENTIONS)
    return folder


def test_a_name_that_the_encoder_cannot_read_equals_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its vector is zero, which shall not count against what look-up has found."""
    write_letter_linker(tmp_path, {**CONCEPTS, "C0": [*CONCEPTS["C0"], "癌症"]})
    tune_linker(tmp_path / "linker", MENTIONS)
    judged: list[MentionEvidence] = []
    by_features = confidence_features

    def watched(evidence: Sequence[MentionEvidence]) -> DoubleArray:
        judged.extend(evidence)
        return by_features(evidence)

    monkeypatch.setattr(confidence, "confidence_features", watched)
    [[link, *_], _] = Linker.open(tmp_path / "linker").link(["癌症", CONCEPTS["C1"][0]])
    assert (link.concept_id, link.score) == ("C0", 1.0)
    assert [evidence.dense_score for evidence in judged] == [pytest.approx(1), pytest.approx(1)]


def test_the_report_is_what_happened(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    before = Linker.open(place / "untuned")
    done: list[tuple[int, int]] = []
    report = tune_linker(tmp_path / "linker", MENTIONS, progress=lambda *state: done.append(state))
    assert report.n_mentions == len(MENTIONS) - 1, "one is blank"
    assert (report.n_no_concept, report.n_unknown, report.unknown) == (21, 2, ("X1", "X2|X3"))
    assert report.are_concepts == ()
    assert report.n_distinct == report.n_mentions - 1, "one occurs twice: of its two codes one is unknown"
    searches = ["dense alone", "sparse alone", "reciprocal ranks", "learned weights"]
    assert list(report.accuracy) == ["before", *searches, "after"]
    assert report.accuracy["learned weights"] == report.accuracy["after"], "nothing else was learned"
    for dense, sparse, fused, better in ((0.5, 0.4, 0.6, None), (0.7, 0.4, 0.6, "dense"), (0.7, 0.8, 0.6, "sparse")):
        scores = {"dense alone": dense, "sparse alone": sparse, "learned weights": fused}
        tried = {name: Accuracies(score, 1.0, score) for name, score in scores.items()}
        assert dataclasses.replace(report, accuracy=tried).better_alone == better
    assert report.accuracy["before"] == report.accuracy["reciprocal ranks"], "nothing was learned before"
    known = MENTIONS.filter(
        ~pl.col("concept_id").is_in(["NIL", "CUI-less"]) & (pl.col("mention").str.strip_chars() != "")
    )
    for name, stages in (("dense alone", ["exact", "dense"]), ("sparse alone", ["exact", "sparse"])):
        found = before.link(known["mention"].to_list(), stages=stages)
        gold = [set(label.split("|")) for label in known["concept_id"]]
        for cutoff in (1, 5):
            right = sum(
                any(link.concept_id in ids for link in links[:cutoff]) for links, ids in zip(found, gold, strict=True)
            )
            assert getattr(report.accuracy[name], f"at_{cutoff}") == pytest.approx(right / len(known))
    assert report.accuracy["after"].at_1 >= report.accuracy["reciprocal ranks"].at_1
    assert report.weights is not None
    assert sum(report.weights.values()) == pytest.approx(1)
    assert done[-1][0] == done[-1][1]
    assert done == sorted(set(done)), "each says more than the one before"
    tuned = Linker.open(tmp_path / "linker")
    assert tuned.settings.weights == report.weights
    told = json.loads(json.dumps(dataclasses.asdict(report)))
    assert told.pop("prior") is None
    assert tuned.manifest.config["tuning"] == told


def test_where_a_concept_is_called_as_none_is_its_mentions_mean_it(tmp_path: Path) -> None:
    write_letter_linker(tmp_path, {**CONCEPTS, "NIL": ["vzq"]})
    report = tune_linker(tmp_path / "linker", MENTIONS)
    assert report.are_concepts == ("NIL",)
    assert report.n_no_concept == 1, "the one of CUI-less, which no concept is called"


def test_learning_again_or_in_another_order_gives_the_same(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    shuffled = MENTIONS.sample(fraction=1, shuffle=True, seed=3)
    report = tune_linker(tmp_path / "linker", shuffled)
    first = Linker.open(place / "linker").manifest.config["tuning"]
    assert report.weights == pytest.approx(first["weights"], abs=1e-9)
    assert {name: dataclasses.asdict(one) for name, one in report.accuracy.items()} == first["accuracy"]
    assert report.calibration is not None
    assert report.calibration.method == "platt"  # see docs/decisions/0014-confidence.md
    assert dataclasses.asdict(report.calibration) == pytest.approx(first["calibration"], abs=1e-6)
    again = tune_linker(tmp_path / "linker", MENTIONS)
    assert again.accuracy["after"] == report.accuracy["after"]
    assert again.accuracy["before"].at_1 >= report.accuracy["after"].at_1 - 0.02, "what was learned is there now"


def test_large_files_are_not_copied(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    inodes = {file: file.stat().st_ino for file in (tmp_path / "linker").rglob("*") if file.is_file()}
    mapped = Linker.open(tmp_path / "linker")
    answers = mapped.link(["cardi"])
    tune_linker(tmp_path / "linker", MENTIONS)
    changed = {file.name for file, inode in inodes.items() if file.stat().st_ino != inode}
    assert changed == {"settings.json", "onoma.json"}
    verify_artifact(tmp_path / "linker")
    assert mapped.link(["cardi"]) == answers, "a linker that is open stays as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["linker"]


def test_confidence_is_of_the_first_answer_and_rises_with_what_is_right(place: Path) -> None:
    linker = Linker.open(place / "linker")
    assert linker.is_calibrated
    mentions = MENTIONS["mention"].to_list()
    found = linker.link(mentions)
    right, wrong = list[float](), list[float]()
    for links, label in zip(found, MENTIONS["concept_id"], strict=True):
        assert all(link.confidence is None for link in links[1:])
        if links:
            assert links[0].confidence is not None
            (right if links[0].concept_id in label.split("|") else wrong).append(links[0].confidence)
    assert sum(right) / len(right) > sum(wrong) / len(wrong) + 0.2
    assert abs((sum(right) + sum(wrong)) / len(right + wrong) - len(right) / len(right + wrong)) < 0.05
    for top_k in (1, 2, 50):
        assert [links[0].confidence for links in linker.link(mentions[:9], top_k=top_k)] == [
            links[0].confidence for links in found[:9]
        ]
    (explained,) = [linker.explain(mentions[0])]
    assert explained.confidence == found[0][0].confidence


def test_no_such_concept(place: Path) -> None:
    linker = Linker.open(place / "linker")
    mentions = MENTIONS["mention"].to_list()
    sure = linker.link(mentions, no_concept_below=0.8)
    for links, every in zip(sure, linker.link(mentions), strict=True):
        assert links == (every if every and (every[0].confidence or 0) >= 0.8 else [])
    assert 0 < sum(map(bool, sure)) < len(sure)
    threshold = linker.threshold_for(0.9)
    answered = [
        links[0].concept_id in label.split("|")
        for links, label in zip(linker.link(mentions, no_concept_below=threshold), MENTIONS["concept_id"], strict=True)
        if links
    ]
    assert sum(answered) / len(answered) > 0.85
    unsure = next(mention for mention, links in zip(mentions, sure, strict=True) if not links and mention.strip())
    explained = linker.explain(unsure, no_concept_below=0.8)
    assert explained.links == ()
    assert explained.near_misses
    named = f"{explained.near_misses[0].concept_id} ({explained.near_misses[0].preferred_name})"
    assert f"No such concept: the best, {named}" in explained.outcome
    with pytest.raises(ConfigError, match="from 0 to 1"):
        linker.link(["x"], no_concept_below=1.5)


def test_confidence_holds_for_the_stages_it_was_learned_with(place: Path) -> None:
    linker = Linker.open(place / "linker")
    (links,) = linker.link(["cardi omy"], stages=["dense"])
    assert links[0].confidence is None
    with pytest.raises(ConfigError, match="calibrated for the stages exact, variants, dense, sparse, not for dense"):
        linker.link(["cardi omy"], stages=["dense"], no_concept_below=0.5)


def test_a_wished_precision_is_kept_to_from_then_on(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    report = tune_linker(
        tmp_path / "linker", MENTIONS, wished_precision=0.9, method="platt", stages=["exact", "sparse"]
    )
    linker = Linker.open(tmp_path / "linker")
    assert report.no_concept_below == linker.settings.no_concept_below == linker.threshold_for(0.9)
    assert report.stages == linker.settings.stages == ("exact", "sparse")
    assert list(report.accuracy) == ["before", "after"]
    assert report.weights is None
    mentions = MENTIONS["mention"].to_list()
    assert linker.link(mentions) == linker.link(mentions, no_concept_below=report.no_concept_below)
    assert sum(map(bool, linker.link(mentions, no_concept_below=0))) > sum(map(bool, linker.link(mentions)))


def test_the_certainty_of_a_wish(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    chosen: dict[str, Any] = {"method": "platt", "stages": ["exact", "sparse"]}
    plain = tune_linker(tmp_path / "linker", MENTIONS, wished_precision=0.8, **chosen)
    certain = tune_linker(tmp_path / "linker", MENTIONS, wished_precision=0.8, certainty=0.95, **chosen)
    calibration = Calibration.from_json(Linker.open(tmp_path / "linker").settings.calibration or "")
    assert plain.no_concept_below is not None
    assert certain.no_concept_below == calibration.threshold_for(0.8, certainty=0.95) > plain.no_concept_below
    told = []
    for report in (plain, certain):
        assert report.calibration is not None
        assert report.calibration.abstention is not None
        told.append(report.calibration.abstention)
        mentions = MENTIONS["mention"].to_list()
        linker = Linker.open(tmp_path / "linker")
        links = linker.link(mentions, top_k=1, no_concept_below=report.no_concept_below)
        answered = {
            normalise(mention, linker.normalisation) for mention, found in zip(mentions, links, strict=True) if found
        }
        assert told[-1].share_answered * report.n_distinct == pytest.approx(len(answered), abs=1)  # one text, two codes
    assert told[0].share_answered > told[1].share_answered > 0
    assert told[0].held_out_answered > told[1].held_out_answered > 0
    assert told[0].n_unfulfilled == 0
    curve = calibration.development
    pairs = zip(curve.n_kept, curve.n_right, strict=True)
    highest = max(float(beta.ppf(0.05, right, kept - right + 1)) for kept, right in pairs if kept >= MIN_OF_EACH)
    reached = tune_linker(
        tmp_path / "linker", MENTIONS, wished_precision=highest - 1e-6, certainty=0.95, **chosen
    ).calibration
    assert reached is not None
    assert reached.abstention is not None
    assert 1 <= reached.abstention.n_unfulfilled <= 5, "fewer mentions are less certain"
    with pytest.raises(InputError, match="is not reached at any threshold"):
        tune_linker(tmp_path / "linker", MENTIONS, wished_precision=highest + 1e-6, certainty=0.95, **chosen)
    least = tune_linker(tmp_path / "linker", MENTIONS, wished_precision=1e-9, **chosen).calibration
    assert least is not None
    assert least.abstention is not None
    assert least.abstention.share_answered == least.n_answers / plain.n_distinct
    # A few mentions may have less confidence than all that were seen.
    assert 0.9 < least.abstention.held_out_answered * plain.n_distinct / least.n_answers <= 1
    assert least.abstention.held_out_right == pytest.approx(least.share_right, abs=0.02)
    with pytest.raises(ConfigError, match=r"--certainty\) is that of a wished precision"):
        tune_linker(tmp_path / "linker", MENTIONS, certainty=0.95)
    told_nothing: list[int] = []
    for option, value, said in (
        *(("certainty", one, r"from 0\.5, below 1") for one in (0.4, 1.0, "0.9")),
        *(("wished_precision", one, "above 0, up to 1") for one in (0, 1.5, math.nan, "0.9", True)),
        ("method", "plat", "Did you mean 'platt'"),
    ):
        asked: dict[str, Any] = {"wished_precision": 0.8, option: value}
        with pytest.raises((InputError, ConfigError), match=said):
            tune_linker(tmp_path / "linker", MENTIONS, progress=lambda done, _: told_nothing.append(done), **asked)
    assert not told_nothing


def test_a_benchmark_tells_what_is_withheld(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    report = tune_linker(tmp_path / "linker", MENTIONS, wished_precision=0.8)
    known = MENTIONS.filter(pl.col("concept_id").is_in(list(CONCEPTS)) & (pl.col("mention").str.strip_chars() != ""))
    mentions, codes = (known[column].to_list() for column in ("mention", "concept_id"))
    lines = [f"{code}||{mention}" for mention, code in zip(mentions, codes, strict=True)]
    (tmp_path / "test_queries.txt").write_text("\n".join(lines) + "\n")
    linker = Linker.open(tmp_path / "linker")
    result = run_benchmark("ncbi-disease", tmp_path, linker=linker, out=tmp_path / "out")
    links = linker.link(mentions, top_k=1)
    n_right = sum(bool(found) and found[0].concept_id == code for found, code in zip(links, codes, strict=True))
    assert result.abstention is not None
    tuned = result.abstention.as_tuned
    assert tuned is not None
    assert tuned.threshold == report.no_concept_below
    assert tuned.coverage == sum(map(bool, links)) / len(known) < 1
    assert tuned.accuracy == n_right / len(known) < result.accuracy[1].value
    assert tuned.precision is not None
    counts = f"{tuned.n_answered}; {tuned.n_clusters} distinct mentions"
    share = f"{100 * tuned.coverage:.1f} % answered ({counts}), right {100 * tuned.precision:.1f} % of them"
    assert f"by the linker's own threshold, from confidence {threshold_in_words(tuned.threshold)}: {share}" in str(
        result
    )


def test_without_calibration(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "linker", tmp_path / "linker")
    report = tune_linker(tmp_path / "linker", MENTIONS, calibrate=False)
    assert report.calibration is None
    linker = Linker.open(tmp_path / "linker")
    assert not linker.is_calibrated
    assert linker.settings.weights == report.weights
    with pytest.raises(ConfigError, match="is not calibrated"):
        linker.threshold_for(0.9)


def test_what_cannot_be_tuned(place: Path, tmp_path: Path) -> None:
    folder = place / "untuned"
    few = MENTIONS.head(49)
    with pytest.raises(InputError, match=r"too few development mentions.*found 49"):
        tune_linker(folder, few)
    unknown = MENTIONS.with_columns(concept_id=pl.lit("MESH:") + pl.col("concept_id"))
    with pytest.raises(InputError, match="unknown codes: MESH:C"):
        tune_linker(folder, unknown)
    with pytest.raises(ConfigError, match="no stage 'rerank'"):
        tune_linker(folder, MENTIONS, stages=["dense", "rerank"])
    with pytest.raises(ConfigError, match="needs confidences"):
        tune_linker(folder, MENTIONS, calibrate=False, wished_precision=0.9)
    with pytest.raises(ConfigError, match="n_folds"):
        tune_linker(folder, MENTIONS, n_folds=1)
    exact = pl.DataFrame({"mention": [names[0] for names in CONCEPTS.values()], "concept_id": list(CONCEPTS)})
    with pytest.raises(InputError, match="too few examples"):
        tune_linker(folder, exact, stages=["exact", "sparse"])
    with pytest.raises(InputError, match="no weights can be learned"):
        tune_linker(folder, exact)
    assert open_artifact(folder, "linker", format_version=FORMAT_VERSION).config.get("tuning") is None


def test_settings_that_cannot_be(place: Path, tmp_path: Path) -> None:
    settings = LinkerSettings()
    for changes, said in (
        ({"pool": 0}, "pool"),
        ({"stages": ("dense", "exact")}, "in the order"),
        ({"weights": {"dense": 1.0}}, "dense and sparse"),
        ({"weights": {"dense": 1.0, "sparse": 1.0}}, "the sum 1"),
        ({"no_concept_below": 0.5}, "needs a calibration"),
        ({"surprise": 1}, "surprise"),
    ):
        with pytest.raises(ConfigError, match=said):
            settings.replaced(**changes)
    assert LinkerSettings.model_validate_json(settings.model_dump_json()) == settings


def test_a_cross_encoder_reads_mentions_as_they_are_written(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linker, read, scores = tmp_path / "linker", set[str](), CrossEncoder.scores
    shutil.copytree(place / "untuned", linker)
    write_reranker(tmp_path / "r", tiny_encoder(tmp_path / "bert", weight_std=0.3), depth=3)
    add_reranker(linker, tmp_path / "r")

    def spy(model: CrossEncoder, mentions: list[str], *arguments: Any, **options: Any) -> Any:
        read.update(mentions)
        return scores(model, mentions, *arguments, **options)

    monkeypatch.setattr(CrossEncoder, "scores", spy)
    written = MENTIONS.with_columns(pl.col("mention").str.to_titlecase())
    tune_linker(linker, written, calibrate=False)
    assert read
    assert read <= set(written["mention"])


def test_confidences_with_a_cross_encoder_go_with_it(place: Path, tmp_path: Path) -> None:
    linker, base = tmp_path / "linker", tiny_encoder(tmp_path / "bert", weight_std=0.3)
    shutil.copytree(place / "untuned", linker)
    for seed in (0, 1):
        write_reranker(tmp_path / f"r{seed}", base, seed=seed, depth=3)
    add_reranker(linker, tmp_path / "r0")
    tune_linker(linker, MENTIONS, wished_precision=0.2)
    add_reranker(linker, tmp_path / "r0")
    assert Linker.open(linker).is_calibrated, "the same"
    changed = add_reranker(linker, tmp_path / "r1")
    assert not changed.is_calibrated
    assert (changed.settings.no_concept_below, changed.settings.calibrated_stages) == (None, ())


@pytest.mark.parametrize("contexts", [True, False])
def test_a_cross_encoder_that_reads_contexts_is_told_to_be_tuned_without(
    contexts: bool, place: Path, tmp_path: Path
) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    write_reranker(tmp_path / "r", tiny_encoder(tmp_path / "bert", weight_std=0.3), depth=3, contexts=contexts)
    add_reranker(tmp_path / "linker", tmp_path / "r")
    assert tune_linker(tmp_path / "linker", MENTIONS, calibrate=False).without_contexts == contexts
    without = tune_linker(tmp_path / "linker", MENTIONS, calibrate=False, stages=["exact", "dense"])
    assert not without.without_contexts


def test_contexts_are_read_where_a_stage_reads_them(place: Path, tmp_path: Path) -> None:
    linker = tmp_path / "linker"
    shutil.copytree(place / "untuned", linker)
    with_contexts = pl.concat([MENTIONS.with_columns(context=pl.lit(text)) for text in ("a high fever", None)])
    with pytest.raises(InputError, match="does not read contexts"):
        tune_linker(linker, with_contexts)
    write_reranker(tmp_path / "r", tiny_encoder(tmp_path / "bert", weight_std=0.3), depth=5, weight=1.0, contexts=True)
    opened = add_reranker(linker, tmp_path / "r")
    done: list[tuple[int, int]] = []
    report = tune_linker(linker, with_contexts, stages=["dense", "rerank"], progress=lambda *state: done.append(state))
    assert not report.without_contexts
    assert done[-1][0] == done[-1][1]
    assert report.n_distinct == 2 * tune_linker(linker, MENTIONS, stages=["dense", "rerank"]).n_distinct
    known = with_contexts.filter(
        ~pl.col("concept_id").is_in(["NIL", "CUI-less"]) & (pl.col("mention").str.strip_chars() != "")
    )
    right = {}
    for name, contexts in (("with", known["context"].to_list()), ("without", None)):
        links = opened.link(known["mention"].to_list(), contexts=contexts, top_k=1)
        pairs = zip(links, known["concept_id"], strict=True)
        right[name] = sum(bool(found) and found[0].concept_id in code.split("|") for found, code in pairs)
    assert report.accuracy["before"].at_1 == pytest.approx(right["with"] / len(known))
    assert right["with"] != right["without"]


def test_a_linker_that_another_process_changes_meanwhile_is_kept(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    changed: list[str] = []

    def change(*_: object) -> None:
        if not changed:
            with amend_artifact(tmp_path / "linker", "linker", format_version=FORMAT_VERSION, config={"who": "other"}):
                changed.append("once")

    with pytest.raises(ArtifactExistsError, match="changed by another process"):
        tune_linker(tmp_path / "linker", MENTIONS, progress=change)
    assert "tuning" not in verify_artifact(tmp_path / "linker").config


def test_what_is_counted_is_not_learned_from(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    otherwise = MENTIONS.with_columns("  " + pl.col("mention").str.replace(" ", "   "), pl.col("concept_id") + " ")
    for prior in (
        MENTIONS.sample(fraction=1, shuffle=True, seed=1),
        pl.concat([MENTIONS, MENTIONS.head(1)]),
        otherwise,
    ):
        with pytest.raises(ConfigError, match="all of the mentions are among those of the prior"):
            tune_linker(tmp_path / "linker", MENTIONS, prior=prior)
    for wrong in ("dev.csv", {"mention": ["a"]}, MENTIONS.lazy()):
        with pytest.raises(InputError, match="no table of mentions"):
            tune_linker(tmp_path / "linker", wrong)  # type: ignore[arg-type]


def test_how_many_mentions_were_counted_too(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "untuned", tmp_path / "linker")
    known = MENTIONS.filter(pl.col("concept_id").is_in(list(CONCEPTS)) & (pl.col("mention").str.strip_chars() != ""))
    half = pl.concat([known.head(60), known.head(60), MENTIONS.filter(pl.col("concept_id") == "NIL")])
    asked: dict[str, Any] = {"stages": ["exact", "sparse"], "calibrate": False}
    report = tune_linker(tmp_path / "linker", MENTIONS, prior=half, **asked)
    assert (report.n_counted_too, report.may_be_counted) == (61, False)  # the first again, as C0|X9: X9 is unknown
    assert tune_linker(tmp_path / "linker", MENTIONS, **asked).may_be_counted is False
    add_prior(tmp_path / "linker", MENTIONS)
    again = tune_linker(tmp_path / "linker", MENTIONS, **asked)
    assert (again.n_counted_too, again.may_be_counted) == (None, True)


@pytest.mark.parametrize(
    ("changes", "stays"),
    [
        ({"weights": None}, False),
        ({"pool": 50}, False),
        ({"prior_weight": 0.5}, True),
        ({"rerank_weight": 0.5}, True),
        ({"stages": ("dense",)}, True),
        ({"no_concept_below": 0.5}, True),
    ],
    ids=str,
)
def test_confidences_are_dropped_where_scores_become_others(
    place: Path, changes: dict[str, Any], *, stays: bool
) -> None:
    settings = Linker.open(place / "linker").settings
    assert settings.calibrated_stages == ("exact", "variants", "dense", "sparse")
    changed = settings.replaced(**changes)
    assert (changed.calibration is not None) == stays
    assert bool(changed.calibrated_stages) == stays
    with_prior = settings.replaced(stages=("dense", "prior"), prior_weight=0.1)
    fitted = with_prior.replaced(calibration=settings.calibration, calibrated_stages=with_prior.stages)
    assert fitted.replaced(prior_weight=0.2, no_concept_below=None).calibration is None
    assert fitted.replaced(weights=None).calibration is not None
    reranked = settings.replaced(stages=("dense", "rerank"), rerank_weight=0.1)
    fitted = reranked.replaced(calibration=settings.calibration, calibrated_stages=reranked.stages)
    assert fitted.replaced(rerank_weight=0.2).calibration is None
    with pytest.raises(ConfigError, match="needs a calibration"):
        fitted.replaced(rerank_weight=0.2, no_concept_below=0.5)


def test_codes_that_lost_zeros_are_told(tmp_path: Path) -> None:
    codes = {f"{number:03}": [f"disease {number}"] for number in range(60)}
    make_terminology(tmp_path / "t", codes)
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True, stages=["exact", "sparse"])
    mentions = pl.DataFrame(
        {
            "mention": [*(f"a disease {number}" for number in range(60)), "disease five", "disease x"],
            "concept_id": [*codes, "5", "777"],
        }
    )
    report = tune_linker(tmp_path / "linker", mentions, calibrate=False)
    assert (report.n_unknown, report.other_forms) == (2, {"5": "005"})
    prefixed = mentions.with_columns(pl.concat_str(pl.lit("X:"), "concept_id").alias("concept_id"))
    with pytest.raises(InputError, match=r"found 0; unknown codes: X:.*; 61 of their codes .* X:000 is 000 there"):
        tune_linker(tmp_path / "linker", prefixed.with_columns(pl.col("concept_id").replace("X:777", "X:001")))


def test_weights_are_learned_from_ngrams_where_names_have_no_vector(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As these stand for the cosine when a linker answers."""
    signs = [chr(0x4E00 + 3 * number) for number in range(62)]
    names = [f"{a}{b}{c}" for a, b, c in zip(signs, signs[1:], signs[2:], strict=False)]
    make_terminology(tmp_path / "t", {f"D{row}": [name] for row, name in enumerate(names)} | {"D99": ["pneumonia"]})
    build_linker(tmp_path / "t", place / "letters", tmp_path / "linker", sparse=True)
    mentions = pl.DataFrame(
        {"mention": [f"{name[:2]} a" for name in names], "concept_id": [f"D{row}" for row in range(len(names))]}
    )
    seen: list[LabelledPool] = []

    def watched(pools: Sequence[LabelledPool]) -> dict[Stage, float]:
        seen.extend(pools)
        return {"dense": 0.9, "sparse": 0.1}

    monkeypatch.setattr("onoma.linking.tuning.learn_weights", watched)
    tune_linker(tmp_path / "linker", mentions, calibrate=False)
    assert seen
    for pool in seen:
        dense, sparse = pool.scores.T
        assert (dense[pool.is_right] == sparse[pool.is_right]).all()
        assert (sparse[pool.is_right] > 0).all()
