"""When a run is measured, what it keeps, when it stops, and that going on changes none of it."""

from __future__ import annotations

import dataclasses
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import torch
from safetensors.torch import load_file
from training_runs import weights

from onoma.artifacts import open_artifact
from onoma.encoders import locate_tokenizer, open_encoder
from onoma.encoders.folders import read_folder
from onoma.encoders.torch_encoder import BATCH_TOKENS
from onoma.errors import ConfigError, InputError, MismatchError, TrainingError
from onoma.linking import build_linker
from onoma.pairs import PairSet, build_mention_pairs, hold_out_synonyms, read_mentions
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.alignment_step import Step, StepReport
from onoma.training.development import LEARNT_TOO, DevelopmentSet
from onoma.training.evaluating import Evaluation, Evaluations
from onoma.training.measuring import Measure, Scores
from onoma.training.planning import plan_steps
from onoma.training.run import train_on_pairs, train_on_terminology
from onoma.training.run_folder import EVALUATIONS_NAME, run_folder
from tiny import WORDS, make_terminology

DEVELOPMENT = DevelopmentSet(
    "ill",
    pl.DataFrame({"mention": [f"{word} ill" for word in WORDS], "concept_id": [f"X:{word}" for word in WORDS]}),
    pl.DataFrame(
        [(text, f"X:{word}") for word in WORDS for text in (f"{word} disease", f"disease of {word}")],
        schema=["text", "concept_id"],
        orient="row",
    ),
)


def config_for(base: Path, **changes: object) -> TrainingConfig:
    values = {
        "base": str(base),
        "steps": 6,
        "batch_pairs": 6,
        "max_tokens": 16,
        "pooling": "mean",  # vectors of [CLS] of so small an encoder hardly differ
        "learning_rate": 1e-3,
        "dropout": 0.1,
        "precision": "fp32",
        "device": "cpu",
    }
    return TrainingConfig.model_validate({**values, **changes})


def equal(first: Path, second: Path) -> bool:
    one, other = weights(first), weights(second)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def without_seconds(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give the evaluations of the coming runs these scores, whatever the encoder does."""

    def give(*scores: float) -> None:
        coming: Iterator[float] = iter(scores)
        monkeypatch.setattr(Measure, "__call__", lambda *_: Scores(next(coming), 1.0, 1.0, 8))

    return give


def test_evaluations_are_made_before_during_and_after(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    seen: list[Evaluation] = []
    report = train_encoder(
        config_for(base, steps=25), pairs, tmp_path / "e", development=[DEVELOPMENT], on_evaluation=seen.append
    )
    assert [evaluation.step for evaluation in seen] == [0, 3, 6, 9, 12, 15, 18, 21, 24, 25]
    assert [Evaluation.from_json(line) for line in report.evaluations] == seen
    assert all(evaluation.at_1 == evaluation.sets["ill"].at_1 for evaluation in seen)
    best = max(evaluation.at_1 for evaluation in seen)
    assert report.best == {"step": next(e.step for e in seen if e.at_1 == best), "at_1": best}
    assert (report.saved_step, report.stopped_early) == (25, None)
    written = json.loads((tmp_path / "e" / "train.json").read_text())
    assert written == json.loads(json.dumps(asdict(report)))
    assert written["data"]["pairs"] == len(pairs.pairs)
    assert (written["data"]["names"], written["data"]["concepts"]) == (24, 8)
    assert written["data"]["development"][0]["queries"] == 8
    assert written["data"]["development"] == open_artifact(tmp_path / "e", "encoder").config["development"]
    assert written["phases"]["evaluate"] > 0
    assert written["versions"]["torch"] == torch.__version__


def test_what_an_evaluation_takes_is_shown_as_it_goes(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BATCH_TOKENS, "cpu", 40)
    monkeypatch.setattr("onoma.training.measuring._SCORES_AT_ONCE", 64)  # four queries at a time
    told: list[tuple[int, int | None, str]] = []
    train_encoder(
        config_for(base, steps=1),
        pairs,
        tmp_path / "e",
        development=[DEVELOPMENT],
        progress=lambda *counted: told.append(counted),
    )
    once, n_texts = told[: len(told) // 2], 3 * len(WORDS)
    assert told == once + once  # before the step and after it
    measured = [done for done, total, what in once if (total, what) == (n_texts, "measuring")]
    assert len(measured) > 2
    assert measured == sorted(set(measured))
    assert measured[-1] == n_texts
    assert once[len(measured) :] == [(4, 8, "ranking"), (8, 8, "ranking")]


@pytest.mark.usefixtures("signals_as_usual")
def test_asked_to_stop_it_does_not_rank_to_the_end(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.training.measuring._SCORES_AT_ONCE", 64)
    told: list[int] = []

    def ask(done: int, _total: int | None, what: str) -> None:
        if what == "ranking":
            told.append(done)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_encoder(config_for(base), pairs, tmp_path / "e", development=[DEVELOPMENT], progress=ask)
    assert told == [4]


def test_the_last_evaluation_is_of_the_saved_encoder(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    report = train_encoder(config_for(base, average=0.5), pairs, tmp_path / "e", development=[DEVELOPMENT])
    saved = open_encoder(tmp_path / "e", backend="torch")
    names = DEVELOPMENT.dictionary["text"].to_list()
    similarity = saved.encode(DEVELOPMENT.queries["mention"].to_list()) @ saved.encode(names).T
    right = sum(WORDS[row // 2] == word for row, word in zip(similarity.argmax(1), WORDS, strict=True))
    assert report.evaluations[-1]["at_1"] == right / len(WORDS)


def test_several_sets_decide_by_their_mean(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    other = DevelopmentSet("other", DEVELOPMENT.queries.head(3), DEVELOPMENT.dictionary)
    report = train_encoder(config_for(base), pairs, tmp_path / "e", development=[DEVELOPMENT, other])
    for line in report.evaluations:
        assert line["at_1"] == pytest.approx((line["sets"]["ill"]["at_1"] + line["sets"]["other"]["at_1"]) / 2)


def test_the_best_weights_are_saved_and_of_equal_ones_the_earlier(
    base: Path, pairs: PairSet, tmp_path: Path, scored: Callable[..., None]
) -> None:
    scored(0.1, 0.2, 0.7, 0.7, 0.3)
    config = config_for(base, steps=4, evaluate_steps=1, keep="best")
    report = train_encoder(config, pairs, tmp_path / "best", development=[DEVELOPMENT])
    train_encoder(config_for(base, steps=2), pairs, tmp_path / "two")
    assert report.saved_step == 2
    assert equal(tmp_path / "best", tmp_path / "two")


def test_the_best_average_is_saved(base: Path, pairs: PairSet, tmp_path: Path, scored: Callable[..., None]) -> None:
    scored(0.1, 0.2, 0.7, 0.3)
    config = config_for(base, steps=3, evaluate_steps=1, keep="best", average=0.5)
    train_encoder(config, pairs, tmp_path / "best", development=[DEVELOPMENT])
    train_encoder(config_for(base, steps=2, average=0.5), pairs, tmp_path / "two")
    assert equal(tmp_path / "best", tmp_path / "two")


def test_a_run_that_never_gets_better_saves_its_base_and_says_so(
    base: Path, pairs: PairSet, tmp_path: Path, scored: Callable[..., None]
) -> None:
    scored(0.5, 0.5, 0.4)
    told: list[str] = []
    config = config_for(base, steps=2, evaluate_steps=1, keep="best")
    train_encoder(config, pairs, tmp_path / "e", development=[DEVELOPMENT], on_event=told.append)
    saved, before = weights(tmp_path / "e"), load_file(base / "model.safetensors")
    assert all(torch.equal(saved[name], before[name]) for name in saved)
    assert any("no evaluation was better than that before training" in event for event in told)


def test_widths_count_as_trained_where_a_step_of_it_is_kept(
    base: Path, pairs: PairSet, tmp_path: Path, scored: Callable[..., None]
) -> None:
    found = []
    for name, start, scores in (("learned", base, (0.1, 0.5)), ("kept", base, (0.5, 0.1)), ("again", None, (0.5, 0.1))):
        scored(*scores)
        widths = (8,) if start else (4,)  # the last begins with what has learned others
        config = config_for(start or tmp_path / "learned", steps=1, evaluate_steps=1, keep="best", matryoshka=widths)
        train_encoder(config, pairs, tmp_path / name, development=[DEVELOPMENT])
        found.append(read_folder(tmp_path / name).trained_dimensions)
    assert found == [(8,), (), (8,)]


def test_patience_ends_a_run_and_says_why(
    base: Path, pairs: PairSet, tmp_path: Path, scored: Callable[..., None]
) -> None:
    scored(0.1, 0.4, 0.3, 0.4)
    told: list[str] = []
    config = config_for(base, evaluate_steps=1, patience=2)
    report = train_encoder(config, pairs, tmp_path / "e", development=[DEVELOPMENT], on_event=told.append)
    assert (report.steps, report.planned_steps, len(report.log)) == (3, 6, 3)
    assert report.stopped_early == ("at step 3 of 6: the last 2 evaluations were no better than acc@1 0.4000 of step 1")
    assert f"stopped {report.stopped_early}" in told
    train_encoder(config_for(base, steps=3), pairs, tmp_path / "three")
    assert equal(tmp_path / "e", tmp_path / "three")


def test_a_run_that_stopped_early_and_could_not_be_saved_does_not_go_on(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scored: Callable[..., None]
) -> None:
    scored(0.5, 0.4)
    config = config_for(base, evaluate_steps=1, patience=1)

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("onoma.training.alignment.save_encoder", full)
        with pytest.raises(OSError, match="no space left"):
            train_encoder(config, pairs, tmp_path / "e", development=[DEVELOPMENT])
    report = train_encoder(config, pairs, tmp_path / "e", development=[DEVELOPMENT])
    assert (report.resumed_at, report.steps) == (1, 1)
    assert report.stopped_early is not None


@pytest.mark.parametrize("changes", [{"keep": "best"}, {"patience": 2}, {"evaluate_steps": 5}])
def test_settings_that_need_development_data_are_refused_without(
    base: Path, pairs: PairSet, tmp_path: Path, changes: dict[str, Any]
) -> None:
    needs = f"{next(iter(changes))}.* needs development data"
    recipe = Recipe(name="tiny", description="", config=config_for(base, **changes))
    with pytest.raises(ConfigError, match=f"{needs}.*development sets"):
        train_encoder(recipe, pairs, tmp_path / "e")
    with pytest.raises(ConfigError, match=f"{needs}.*--hide N"):
        train_on_terminology(recipe, tmp_path / "t", tmp_path / "e")
    with pytest.raises(ConfigError, match=f"{needs}.*give a file .*--development-terminology DIR"):
        train_on_pairs(recipe, pairs, tmp_path / "e")


def test_development_sets_must_be_told_apart(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two development sets are called 'ill'"):
        train_encoder(config_for(base), pairs, tmp_path / "e", development=[DEVELOPMENT, DEVELOPMENT])
    mean = dataclasses.replace(DEVELOPMENT, name="development")
    with pytest.raises(ConfigError, match="'development' is what the mean over all"):
        train_encoder(config_for(base), pairs, tmp_path / "e", development=[DEVELOPMENT, mean])


def test_an_unfinished_run_is_not_continued_on_other_development_data(
    base: Path, pairs: PairSet, tmp_path: Path
) -> None:
    interrupted(config_for(base, checkpoint_steps=1), pairs, tmp_path / "e", at=3)
    other = DevelopmentSet("ill", DEVELOPMENT.queries.head(3), DEVELOPMENT.dictionary)
    with pytest.raises(MismatchError, match="the development data"):
        train_encoder(config_for(base, checkpoint_steps=1), pairs, tmp_path / "e", development=[other])


def interrupted(config: TrainingConfig, pairs: PairSet, out: Path, *, at: int, evaluated: bool = False) -> None:
    """Kill a run in the step ``at``: before its evaluation, or between that and the checkpoint."""

    def kill(report: StepReport | Evaluation) -> None:
        if report.step == at:
            raise KeyboardInterrupt

    callbacks: dict[str, Any] = {"on_evaluation" if evaluated else "on_step": kill}
    with pytest.raises(KeyboardInterrupt):
        train_encoder(config, pairs, out, development=[DEVELOPMENT], **callbacks)


OPTIONS: dict[str, dict[str, Any]] = {
    "measured": {},
    "best": {"keep": "best", "patience": 3},
    "average": {"average": 0.9},
    "best average": {"keep": "best", "average": 0.9},
    "accumulation": {"accumulation": 2},
    "chunks": {"chunk_names": 5},
    "fp16": {"precision": "fp16"},
    "adapter": {"tuning": {"name": "adapter", "reduction": 4}, "average": 0.9, "keep": "best"},
    "neighbours": {"batches": {"name": "neighbours", "neighbours": 2, "refresh_steps": 3}},
    "matryoshka": {"matryoshka": (8,)},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_killed_anywhere_a_run_goes_on_to_the_same_weights(
    base: Path, pairs: PairSet, tmp_path: Path, name: str
) -> None:
    """Checkpoints after steps 2 and 4; killed in step 3, and again in step 6 between evaluation and checkpoint."""
    config = config_for(base, steps=7, evaluate_steps=2, checkpoint_steps=2, **OPTIONS[name])
    straight = train_encoder(config, pairs, tmp_path / "straight", development=[DEVELOPMENT])
    interrupted(config, pairs, tmp_path / "killed", at=3)
    interrupted(config, pairs, tmp_path / "killed", at=6, evaluated=True)
    resumed = train_encoder(config, pairs, tmp_path / "killed", development=[DEVELOPMENT])
    assert resumed.resumed_at == 4
    assert equal(tmp_path / "straight", tmp_path / "killed")
    assert without_seconds(resumed.evaluations) == without_seconds(straight.evaluations)
    assert [line["loss"] for line in resumed.log] == [line["loss"] for line in straight.log]
    assert (resumed.best, resumed.saved_step) == (straight.best, straight.saved_step)


def test_a_run_that_goes_on_knows_the_best_of_before(
    base: Path, pairs: PairSet, tmp_path: Path, scored: Callable[..., None]
) -> None:
    config = config_for(base, evaluate_steps=1, checkpoint_steps=1, keep="best", patience=4)
    scored(0.1, 0.2, 0.9, 0.3, 0.3)
    interrupted(config, pairs, tmp_path / "e", at=4)
    scored(0.3, 0.3, 0.3)
    report = train_encoder(config, pairs, tmp_path / "e", development=[DEVELOPMENT])
    train_encoder(config_for(base, steps=2), pairs, tmp_path / "two")
    assert (report.resumed_at, report.best, report.saved_step) == (3, {"step": 2, "at_1": 0.9}, 2)
    assert equal(tmp_path / "e", tmp_path / "two")


def test_evaluations_after_the_checkpoint_are_cut_from_the_file(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    config = config_for(base, evaluate_steps=1, checkpoint_steps=2)
    file = run_folder(tmp_path / "e") / EVALUATIONS_NAME

    def steps() -> list[int]:
        return [json.loads(line)["step"] for line in file.read_text().splitlines()]

    interrupted(config, pairs, tmp_path / "e", at=3, evaluated=True)
    assert steps() == [0, 1, 2, 3]
    interrupted(config, pairs, tmp_path / "e", at=3)
    assert steps() == [0, 1, 2]


def test_hidden_synonyms_are_not_trained_on_and_measured(base: Path, tmp_path: Path) -> None:
    """The score after the last step is the one that a linker with the finished encoder reaches."""
    concepts = {f"X:{word}": [f"{word} disease", f"disease of {word}", f"{word} ill", f"sick {word}"] for word in WORDS}
    terminology = make_terminology(tmp_path / "t", concepts)
    recipe = Recipe(name="tiny", description="", config=config_for(base, steps=3))
    shown = hold_out_synonyms(terminology, n_names=2, seed=5)
    report = train_on_terminology(
        recipe, terminology, tmp_path / "e", hidden_names=shown.name_rows, development_synonyms=6
    )
    assert report.evaluations[-1]["sets"]["hidden synonyms"]["n_queries"] == 6
    assert report.data["names"] == 4 * len(WORDS) - 2 - 6
    hidden = hold_out_synonyms(terminology, n_names=6, hidden_names=shown.name_rows)
    linker = build_linker(terminology, open_encoder(tmp_path / "e"), tmp_path / "linker")
    links = linker.without([*hidden.name_rows, *shown.name_rows]).link(hidden.texts, top_k=1)
    right = sum(link[0].concept_id == concept for link, concept in zip(links, hidden.concept_ids, strict=True))
    assert report.evaluations[-1]["at_1"] == right / 6


def test_files_of_queries_are_measured_on(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {f"X:{word}": [f"{word} disease", f"{word} ill"] for word in WORDS})
    (tmp_path / "dev.csv").write_text("mention,concept_id\nheart diseases,X:heart\n")
    (tmp_path / "dev.txt").write_text("X:skin||sick skin\nX:eye|X:ear||eyes\n")
    recipe = Recipe(name="tiny", description="", config=config_for(base, steps=1))
    files = [tmp_path / "dev.csv", tmp_path / "dev.txt"]
    with pytest.raises(ConfigError, match="give the terminology"):
        train_on_pairs(recipe, pairs, tmp_path / "a", development=files)
    by_pairs = train_on_pairs(recipe, pairs, tmp_path / "a", development=files, development_terminology=terminology)
    by_names = train_on_terminology(recipe, terminology, tmp_path / "b", development=files)
    assert by_pairs.evaluations[0]["sets"] == by_names.evaluations[0]["sets"]
    assert {name: s["n_queries"] for name, s in by_names.evaluations[0]["sets"].items()} == {"dev.csv": 1, "dev.txt": 2}
    mentions, tokenizer = read_mentions(files[1]), locate_tokenizer(base)
    of_mentions = build_mention_pairs(terminology, mentions, tokenizer, tmp_path / "mentions", max_tokens=16)
    told: list[str] = []
    given: dict[str, Any] = {"development": files, "development_terminology": terminology, "on_event": told.append}
    train_on_pairs(recipe, of_mentions, tmp_path / "d", **given)
    assert [line for line in told if "are learned from" in line] == [LEARNT_TOO.format("dev.txt")]
    with pytest.raises(InputError, match="put it in a list"):
        train_on_terminology(recipe, terminology, tmp_path / "c", development=str(files[0]))
    with pytest.raises(ConfigError, match="there are none"):
        train_on_terminology(recipe, terminology, tmp_path / "c", development_terminology=terminology)


def planned(
    config: TrainingConfig, *, each_step: float, each_evaluation: float, preparing: tuple[float, float] = (0.0, 0.0)
) -> int:
    """Steps of a run whose speed is known."""
    evaluations: Any = SimpleNamespace(
        wanted=each_evaluation > 0,
        measure=lambda step: Evaluation(step, 0.5, {}, each_evaluation),
        cost=lambda seconds: Evaluations.cost(SimpleNamespace(_interval=config.evaluate_steps), seconds),  # type: ignore[arg-type]
    )
    step: Any = SimpleNamespace(seconds_per_step=lambda: each_step / 1.1)
    batches: Any = SimpleNamespace(preparation_seconds=lambda _: preparing, steps_per_epoch=10)
    encode: Any = None
    return plan_steps(config, batches, step, encode, evaluations)


@pytest.mark.parametrize(("epochs", "n_steps"), [(0.7, 7), (0.71, 8), (3, 30), (0.01, 1)])
def test_epochs_become_steps(base: Path, epochs: float, n_steps: int) -> None:
    assert planned(config_for(base, steps=None, epochs=epochs), each_step=1, each_evaluation=0) == n_steps


def test_a_step_is_not_more_than_all_passes(base: Path) -> None:
    for epochs, n_steps in ((0.7, 1), (1.4, 2)):
        config = config_for(base, steps=None, epochs=epochs, accumulation=7)
        assert planned(config, each_step=1, each_evaluation=0) == n_steps
    with pytest.raises(TrainingError, match=r"one step takes 7 batches \(accumulation\), and 0.6 passes .* only 6\."):
        planned(config_for(base, steps=None, epochs=0.6, accumulation=7), each_step=1, each_evaluation=0)


def test_a_budget_of_minutes_pays_for_what_the_first_batch_needs(base: Path) -> None:
    config = config_for(base, steps=None, minutes=10)
    # 60 seconds however short the run, and a tenth of a second of each step's share in the next times
    assert planned(config, each_step=0.5, each_evaluation=0, preparing=(60, 0.1)) == 900
    assert planned(config, each_step=0.5, each_evaluation=10, preparing=(60, 0.1)) == int(430 / 0.6)
    # half of the time is for steps in any case
    assert planned(config, each_step=0.5, each_evaluation=0, preparing=(700, 0.1)) == 500


def test_a_budget_of_minutes_pays_for_the_evaluations(base: Path) -> None:
    minutes: dict[str, Any] = {"steps": None, "minutes": 10}
    assert planned(config_for(base, **minutes), each_step=0.5, each_evaluation=0) == 1200
    # eleven evaluations of ten seconds leave 490 seconds
    assert planned(config_for(base, **minutes), each_step=0.5, each_evaluation=10) == 980
    # a step and its share of an evaluation take 0.75 seconds, and the first evaluation ten
    config = config_for(base, **minutes, evaluate_steps=40)
    assert planned(config, each_step=0.5, each_evaluation=10) == int(590 / 0.75)
    with pytest.raises(TrainingError, match=r"takes 40 s.* more than half of the 10 minutes"):
        planned(config_for(base, **minutes), each_step=0.5, each_evaluation=40)
    # a step that takes longer than the budget is no fault of the evaluations
    assert planned(config_for(base, **minutes), each_step=700, each_evaluation=1) == 1


def test_a_run_of_minutes_begins_with_the_evaluation_that_was_timed(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scored: Callable[..., None]
) -> None:
    monkeypatch.setattr(Step, "seconds_per_step", lambda _: 1.0)
    scored(0.1, 0.2, 0.3, 0.4)
    config = config_for(base, steps=None, minutes=3.4 / 60, evaluate_steps=1)
    report = train_encoder(config, pairs, tmp_path / "e", development=[DEVELOPMENT])
    assert [line["at_1"] for line in report.evaluations] == [0.1, 0.2, 0.3, 0.4]
    assert report.steps == 3


def test_the_time_of_a_run_of_minutes_includes_the_evaluation_that_was_timed(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = Evaluations.measure

    def long(self: Evaluations, step: int) -> Evaluation:
        self.done[-1:] = [dataclasses.replace(measure(self, step), seconds=7.0 if step == 0 else 0.0)]
        return self.done[-1]

    monkeypatch.setattr(Step, "seconds_per_step", lambda _: 1.0)
    monkeypatch.setattr(Evaluations, "measure", long)
    config = config_for(base, steps=None, minutes=0.3, evaluate_steps=1000)
    report = train_encoder(config, pairs, tmp_path / "e", development=[DEVELOPMENT])
    assert report.steps == 9
    assert report.phases["evaluate"] >= 7
    assert report.seconds >= 7


def test_other_errors_are_not_told_as_a_lack_of_memory(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(*_: object) -> None:
        raise NotImplementedError("no such kernel")  # a kind of RuntimeError

    monkeypatch.setattr(Step, "__call__", unable)
    with pytest.raises(NotImplementedError, match="no such kernel"):
        train_encoder(config_for(base), pairs, tmp_path / "e")


def test_a_width_that_does_not_fit_is_refused_before_anything_is_measured(
    base: Path, pairs: PairSet, tmp_path: Path, scored: Callable[..., None]
) -> None:
    scored()
    with pytest.raises(ConfigError, match="matryoshka asks for 8, 16 of the 16 numbers"):
        train_encoder(config_for(base, matryoshka=(8, 16)), pairs, tmp_path / "e", development=[DEVELOPMENT])
