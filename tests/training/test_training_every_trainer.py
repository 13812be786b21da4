"""What all four trainers promise of a run, checked on each: resuming, refusing, telling, keeping the best."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from biosyn_tasks import MENTIONS, NAMES, write_lines
from safetensors.torch import load_file
from training_runs import interrupt_at

from onoma.artifacts import open_artifact, verify_artifact
from onoma.encoders.loading import load_packed
from onoma.encoders.saving import save_encoder
from onoma.encoders.torch_encoder import BATCH_TOKENS
from onoma.errors import ArtifactExistsError, ConfigError, InputError, MismatchError, TrainingError, UnavailableError
from onoma.linking import build_linker
from onoma.pairs import build_pairs, read_mentions
from onoma.pairs.mentions import mentions_fingerprint
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.alignment_step import Step
from onoma.training.biosyn import train_biosyn
from onoma.training.biosyn_config import BiosynConfig, BiosynRecipe
from onoma.training.biosyn_step import BiosynStep
from onoma.training.development import TRAINED_BEFORE, DevelopmentSet
from onoma.training.distillation import distil_encoder
from onoma.training.distillation_config import DistillationConfig, DistillationRecipe
from onoma.training.distillation_step import DistillationStep
from onoma.training.evaluating import Evaluation
from onoma.training.report import TrainingReport
from onoma.training.reranking import train_reranker
from onoma.training.reranking_config import RerankingConfig, RerankingRecipe
from onoma.training.reranking_step import RerankingStep
from onoma.training.run_config import RunConfig
from onoma.training.run_folder import run_folder
from onoma.training.settings import NamedSettings
from tiny import WORDS, Name, disease_pairs, make_terminology, tiny_encoder
from tiny_rerankers import TableLinker, links

SHARED: dict[str, Any] = {
    "steps": 6,
    "max_tokens": 16,
    "learning_rate": 1e-3,
    "dropout": 0.1,
    "precision": "fp32",
    "device": "cpu",
    "checkpoint_minutes": 1e-9,
}


@dataclass(frozen=True)
class Trainer:
    """One of them on a small task."""

    kind: type[NamedSettings[Any]]
    config: type[RunConfig]
    values: Mapping[str, Any]
    """Settings in place of `SHARED`, or beside them."""
    run: Callable[..., TrainingReport]
    """Called with the recipe, the data, ``out`` and options."""
    data: Any
    other_data: Any
    """Of the same sort, to be told from them."""
    development: Any
    """Of one set, called ``ill``."""
    step: type
    of_step: frozenset[str]
    """What its steps say beside the loss, learning rate and speed."""
    data_name: str
    """What its data are called where they are others."""
    names_in_step: int
    """As words about memory have it."""
    artifact: str
    weights_in: tuple[str, ...] = ("model.safetensors",)

    def settings(self, **changes: Any) -> dict[str, Any]:
        return {**SHARED, **self.values, **changes}

    def train(self, out: Path, *, data: Any = None, develops: bool = False, **options: Any) -> TrainingReport:
        """Options that are settings change these, the others go to the trainer."""
        changes = {key: options.pop(key) for key in list(options) if key in self.config.model_fields}
        config = self.config.model_validate(self.settings(**changes))
        if develops:
            options["development"] = [self.development]
        return self.run(config, self.data if data is None else data, out, **options)

    def weights(self, folder: Path) -> dict[str, torch.Tensor]:
        return {
            f"{file}/{name}": tensor for file in self.weights_in for name, tensor in load_file(folder / file).items()
        }

    def equal(self, one: Path, other: Path) -> bool:
        first, second = self.weights(one), self.weights(other)
        return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def alignment(folder: Path, base: Path) -> Trainer:
    development = DevelopmentSet(
        "ill",
        pl.DataFrame(
            {"mention": [f"ill {word}" for word in WORDS], "concept_id": [f"D{n}" for n in range(len(WORDS))]}
        ),
        pl.DataFrame(
            [(f"{word} {what}", f"D{n}") for n, word in enumerate(WORDS) for what in ("disease", "ache")],
            schema=["text", "concept_id"],
            orient="row",
        ),
    )
    others = make_terminology(folder / "t", {f"X:{word}": [f"{word} pain", f"{word} ache"] for word in WORDS})
    return Trainer(
        Recipe,
        TrainingConfig,
        {"base": str(base), "batch_pairs": 6},
        train_encoder,
        disease_pairs(base, folder / "pairs"),
        build_pairs(others, base / "tokenizer.json", folder / "others", max_tokens=16, ambiguous="mark"),
        development,
        Step,
        frozenset({"hard_positives", "hard_negatives"}),
        "the pairs",
        12,
        "encoder",
    )


def biosyn(folder: Path, base: Path) -> Trainer:
    names = write_lines(folder / "names.txt", NAMES)
    files = write_lines(folder / "mentions.txt", MENTIONS), names
    return Trainer(
        BiosynRecipe,
        BiosynConfig,
        {"base": str(base), "batch_queries": 5, "candidates": 6, "sparse_candidates": 3},
        lambda recipe, data, out, **options: train_biosyn(recipe, data[0], data[1], out, **options),
        files,
        (write_lines(folder / "fewer.txt", MENTIONS[:20]), names),
        write_lines(folder / "ill", MENTIONS),
        BiosynStep,
        frozenset({"queries", "right_first", "sparse_weight"}),
        "the queries and dictionary",
        35,
        "encoder",
    )


def distillation(folder: Path, base: Path) -> Trainer:
    kinds = ("disease", "illness", "pain", "ache", "cancer")
    teacher = tiny_encoder(folder / "teacher", extra_tokens=[*WORDS, *kinds], seed=7, weight_std=0.25)
    concepts: dict[str, list[str | Name]] = {
        f"D{n}": [*(f"{word} {kind}" for kind in kinds[:-1]), Name(f"{word} {kinds[-1]}", language="de")]
        for n, word in enumerate(WORDS)
    }
    linker = build_linker(make_terminology(folder / "t", concepts), teacher, folder / "linker")
    return Trainer(
        DistillationRecipe,
        DistillationConfig,
        {"base": str(base), "batch_names": 12, "neighbours": 2, "nearest": 4},
        distil_encoder,
        linker,
        linker.only(languages="en"),
        write_lines(folder / "ill", [(f"bad {word}", f"D{n}") for n, word in enumerate(WORDS)]),
        DistillationStep,
        frozenset({"same_nearest"}),
        "the linker",
        12,
        "encoder",
    )


def reranking(folder: Path, base: Path) -> Trainer:
    answers = {
        f"{word} x": links((f"{word}-1", f"{word} y"), (f"{word}-2", f"{word} xx"), (word, f"ill {word}"))
        for word in WORDS
    }
    mentions = pl.DataFrame({"mention": list(answers), "concept_id": WORDS})
    others = {**answers, f"{WORDS[0]} x": answers[f"{WORDS[0]} x"][1:]}
    return Trainer(
        RerankingRecipe,
        RerankingConfig,
        {"base": str(base), "batch_mentions": 4, "max_tokens": 32, "max_name_tokens": 10, "own_names": "keep"},
        lambda recipe, data, out, **options: train_reranker(recipe, data[0], data[1], out, **options),
        (TableLinker(answers), mentions),
        (TableLinker(others), mentions),
        write_lines(folder / "ill", list(zip(answers, WORDS, strict=True))),
        RerankingStep,
        frozenset({"right_first"}),
        "the candidates",
        40,
        "reranker",
        ("model/model.safetensors", "head.safetensors"),
    )


@pytest.fixture(scope="module", params=[alignment, biosyn, distillation, reranking], ids=lambda make: make.__name__)
def trainer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    folder = tmp_path_factory.mktemp(request.param.__name__)
    made: Trainer = request.param(folder, tiny_encoder(folder / "base", extra_tokens=WORDS, weight_std=0.25))
    return made


@dataclass(frozen=True)
class Done:
    """A run that several tests compare theirs with."""

    out: Path
    report: TrainingReport


@pytest.fixture(scope="module")
def plain(trainer: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Without any options."""
    out = tmp_path_factory.mktemp("plain") / "e"
    return Done(out, trainer.train(out))


MEASURED: Mapping[str, Any] = {"develops": True, "evaluate_steps": 2, "keep": "best", "average": 0.9}


@pytest.fixture(scope="module")
def measured(trainer: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """With evaluations of several batches each."""
    out = tmp_path_factory.mktemp("measured") / "e"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BATCH_TOKENS, "cpu", 40)
        return Done(out, trainer.train(out, **MEASURED))


def test_a_run_is_repeatable_and_its_seed_counts(trainer: Trainer, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        trainer.train(tmp_path / name, steps=3, seed=seed)
    assert trainer.equal(tmp_path / "a", tmp_path / "b")
    assert not trainer.equal(tmp_path / "a", tmp_path / "c")
    verify_artifact(tmp_path / "a")
    trainer.train(tmp_path / "average", steps=3, average=0.5)
    assert not trainer.equal(tmp_path / "a", tmp_path / "average")


def test_development_mentions_that_the_base_was_trained_on_are_told(trainer: Trainer, tmp_path: Path) -> None:
    of_set = trainer.development.queries if trainer.kind is Recipe else read_mentions(trainer.development)
    config = {"trained_mentions": [mentions_fingerprint(of_set["mention"])]}
    save_encoder(load_packed(trainer.values["base"]), tmp_path / "before", config=config)
    told: list[str] = []
    for base in (trainer.values["base"], str(tmp_path / "before")):
        trainer.train(tmp_path / "e", base=base, steps=1, develops=True, overwrite=True, on_event=told.append)
    assert [line for line in told if "these very mentions" in line] == [TRAINED_BEFORE.format("ill", "before")]


def test_what_the_base_had_learnt_is_told(trainer: Trainer, tmp_path: Path) -> None:
    """Whoever measures it must know that it has seen a benchmark's mentions; and of the base's base too."""
    data = {"vocabularies": ["MeSH"], "corpora": ["BC5CDR"]}
    names = {"source": "ours.csv", "format": "table", "source_files": {"ours.csv": "a" * 64}, "licence": "ours"}
    config = {**data, "origins": [names]}
    base = save_encoder(load_packed(trainer.values["base"]), tmp_path / "base", config=config).path
    for out in (tmp_path / "first", tmp_path / "second"):
        trainer.train(out, base=str(base), steps=1)
        told = open_artifact(out, trainer.artifact).config
        assert told["before"] == data
        assert names in told["origins"]
        base = out if trainer.artifact == "encoder" else base


@pytest.mark.parametrize(
    ("stopped", "changes"),
    [
        ([1], {}),
        ([3, 5], {"average": 0.9}),
        ([4], {"accumulation": 2, "chunk_names": 5}),
        ([5], {"keep": "best", "evaluate_steps": 2}),
        ([2], {"tuning": "adapter", "schedule": "linear", "warmup_steps": 2, "max_gradient_norm": 0.5}),
        ([6], {"tuning": "layers", "base_share": 0.4, "keep": "best"}),
    ],
    ids=lambda value: "+".join(value) or "plain" if isinstance(value, dict) else None,
)
def test_a_stopped_run_goes_on_to_the_same_weights(
    trainer: Trainer, plain: Done, tmp_path: Path, stopped: list[int], changes: dict[str, Any]
) -> None:
    known = {key: value for key, value in changes.items() if key in trainer.config.model_fields}
    options = {**known, "develops": "keep" in changes}
    straight = Done(tmp_path / "straight", trainer.train(tmp_path / "straight", **options)) if changes else plain
    began = time.perf_counter()
    for step in stopped:
        with pytest.raises(KeyboardInterrupt):
            trainer.train(tmp_path / "stopped", on_step=interrupt_at(step), **options)
        assert not (tmp_path / "stopped").exists()
    resumed = trainer.train(tmp_path / "stopped", **options)
    assert resumed.resumed_at == (stopped[-1] - 1 or None)
    assert sum(line["seconds"] for line in resumed.log) <= resumed.seconds <= time.perf_counter() - began
    assert trainer.equal(straight.out, tmp_path / "stopped")
    of_both = [report.log for report in (straight.report, resumed)]
    assert [line["loss"] for line in of_both[0]] == [line["loss"] for line in of_both[1]]
    assert [line["step"] for line in of_both[1]] == list(range(1, 7))
    assert not run_folder(tmp_path / "stopped").exists()


@pytest.mark.usefixtures("signals_as_usual")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("n_before", [0, 1, 3])
def test_asked_to_stop_in_an_evaluation_it_leaves_that_to_the_next_sitting(
    trainer: Trainer,
    measured: Done,
    tmp_path: Path,
    n_before: int,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if n_before == 0 and trainer.kind is RerankingRecipe:
        pytest.skip("before its first step nothing is computed")
    monkeypatch.setitem(BATCH_TOKENS, "cpu", 40)
    evaluations, asked, told = list[Evaluation](), list[tuple[int, int | None]](), list[str]()

    def ask(done: int, total: int | None, what: str) -> None:
        if what == "measuring" and len(evaluations) == n_before:
            asked.append((done, total))
            if len(asked) == 2:
                signal.raise_signal(number)

    options = {**MEASURED, "on_evaluation": evaluations.append}
    # No checkpoint by itself, so that there is the one of the step that was asked to stop after.
    monkeypatch.setitem(SHARED, "checkpoint_minutes", 60.0)
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        trainer.train(tmp_path / "stopped", progress=ask, on_event=told.append, **options)
    assert len(asked) == 2
    assert asked[-1][0] < (asked[-1][1] or 0)
    run = run_folder(tmp_path / "stopped")
    assert (run / "checkpoint.safetensors").exists() == (n_before > 0)
    assert told[-1].startswith(f"stopped at step {2 * n_before} of 6" if n_before else "stopped before the first step")
    if n_before:
        # Killed before the next checkpoint, it does the evaluation once more.
        with pytest.raises(KeyboardInterrupt):
            trainer.train(tmp_path / "stopped", on_event=_interrupt_when(f"step {2 * n_before}: "), **options)
    resumed = trainer.train(tmp_path / "stopped", **options)
    assert resumed.resumed_at == (2 * n_before or None)
    assert trainer.equal(measured.out, tmp_path / "stopped")
    assert [evaluation.step for evaluation in evaluations] == [0, 2, 4, 6]
    of_both = [
        [{**line, "seconds": 0.0, "names_per_second": 0.0} for line in lines]
        for report in (measured.report, resumed)
        for lines in (report.log, report.evaluations)
    ]
    assert of_both[:2] == of_both[2:]
    assert (resumed.best, resumed.saved_step) == (measured.report.best, measured.report.saved_step)


@pytest.mark.usefixtures("signals_as_usual")
def test_asked_to_stop_after_the_first_evaluation_it_does_no_step(trainer: Trainer, tmp_path: Path) -> None:
    told: list[str] = []
    options: dict[str, Any] = {"on_evaluation": lambda _: signal.raise_signal(signal.SIGTERM), "on_event": told.append}
    with pytest.raises(SystemExit):
        trainer.train(tmp_path / "e", **MEASURED, **options)
    assert told[-1].startswith("stopped before the first step")


def _interrupt_when(told: str) -> Callable[[str], None]:
    def on_event(event: str) -> None:
        if event.startswith(told):
            raise KeyboardInterrupt

    return on_event


def test_an_error_of_who_follows_a_run_ends_it_and_it_goes_on(trainer: Trainer, plain: Done, tmp_path: Path) -> None:
    def fail(told: Any) -> None:
        if told.step == 4:
            raise InputError("full")  # not taken for a refusal, which would leave nothing of the run

    with pytest.raises(InputError, match="full"):
        trainer.train(tmp_path / "e", on_step=fail)
    assert trainer.train(tmp_path / "e").resumed_at == 3
    assert trainer.equal(plain.out, tmp_path / "e")


def test_a_budget_of_minutes_trains_as_its_steps_do(trainer: Trainer, tmp_path: Path) -> None:
    report = trainer.train(tmp_path / "budget", steps=None, minutes=0.002)
    trainer.train(tmp_path / "steps", steps=report.steps)
    assert trainer.equal(tmp_path / "budget", tmp_path / "steps")


def test_measuring_does_not_change_a_run(trainer: Trainer, plain: Done, tmp_path: Path) -> None:
    trainer.train(tmp_path / "measured", develops=True, evaluate_steps=1)
    assert trainer.equal(plain.out, tmp_path / "measured")


def test_other_settings_or_data_do_not_go_on_with_a_run(trainer: Trainer, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        trainer.train(tmp_path / "e", on_step=interrupt_at(3))
    before = sorted((file.name, file.stat().st_size) for file in run_folder(tmp_path / "e").iterdir() if file.is_file())
    with pytest.raises(MismatchError, match=r"learning_rate \(begun with 0\.001, now 0\.5\)"):
        trainer.train(tmp_path / "e", learning_rate=0.5)
    with pytest.raises(MismatchError, match=rf"with other settings: {trainer.data_name}\."):
        trainer.train(tmp_path / "e", data=trainer.other_data)
    after = sorted((file.name, file.stat().st_size) for file in run_folder(tmp_path / "e").iterdir() if file.is_file())
    assert after == before
    assert trainer.train(tmp_path / "e").resumed_at == 2


def test_what_is_there_is_kept_unless_it_shall_be_replaced(trainer: Trainer, tmp_path: Path) -> None:
    trainer.train(tmp_path / "e", steps=1)
    before = trainer.weights(tmp_path / "e")
    with pytest.raises(ArtifactExistsError):
        trainer.train(tmp_path / "e", steps=2)
    assert all(torch.equal(tensor, before[name]) for name, tensor in trainer.weights(tmp_path / "e").items())
    with pytest.raises(KeyboardInterrupt):
        trainer.train(tmp_path / "e", steps=2, overwrite=True, on_step=interrupt_at(2))
    assert all(torch.equal(tensor, before[name]) for name, tensor in trainer.weights(tmp_path / "e").items())
    assert trainer.train(tmp_path / "e", steps=2, overwrite=True).resumed_at == 1
    assert not all(torch.equal(tensor, before[name]) for name, tensor in trainer.weights(tmp_path / "e").items())
    (tmp_path / "file").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(ArtifactExistsError):
            trainer.train(tmp_path / "file", overwrite=overwrite)
    assert (tmp_path / "file").read_text() == "mine"


def test_the_base_is_not_written_over(trainer: Trainer) -> None:
    base = Path(trainer.values["base"])
    before = {file: file.read_bytes() for file in base.iterdir()}
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="is the base encoder itself"):
            trainer.train(base, overwrite=overwrite)
    assert {file: file.read_bytes() for file in base.iterdir()} == before


def test_all_is_told_of_a_run_and_written_down(trainer: Trainer, tmp_path: Path) -> None:
    steps, evaluations, events = list[Any](), list[Evaluation](), list[str]()
    recipe = trainer.kind(name="tiny", description="", config=trainer.config.model_validate(trainer.settings()))
    began = time.perf_counter()
    report = trainer.run(
        recipe,
        trainer.data,
        tmp_path / "e",
        development=[trainer.development],
        on_step=steps.append,
        on_evaluation=evaluations.append,
        on_event=events.append,
    )
    assert 0 < sum(report.phases.values()) < report.seconds < time.perf_counter() - began
    assert [step.step for step in steps] == [line["step"] for line in report.log] == list(range(1, 7))
    assert [step.loss for step in steps] == [line["loss"] for line in report.log]
    assert all(trainer.of_step <= line.keys() and math.isfinite(line["loss"]) for line in report.log)
    assert [evaluation.step for evaluation in evaluations][:: len(evaluations) - 1] == [0, 6]
    assert {name for evaluation in evaluations for name in evaluation.sets} == {"ill"}
    assert any("on the CPU" in event or "cpu" in event for event in events)
    written = json.loads((tmp_path / "e" / "train.json").read_text())
    assert written == json.loads(json.dumps(asdict(report)))
    assert written["recipe"]["name"] == "tiny"
    assert {"torch", "onoma"} <= written["versions"].keys()
    assert written["phases"]["forward"] > 0
    assert written["data"]["development"][0]["name"] == "ill"
    told = {**json.loads(recipe.config.model_dump_json()), "base": Path(recipe.config.base).name}  # no path of a user's
    assert open_artifact(tmp_path / "e", trainer.artifact).config["training"] == told


def test_trackers_get_steps_and_evaluations(trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []

    class Recorder:
        def log(self, values: Mapping[str, float], step: int) -> None:
            said.append((step, set(values)))

        def flush(self) -> None:
            said.append("flush")

        def close(self, *, finished: bool = True) -> None:
            said.append(("close", finished))

    monkeypatch.setattr("onoma.training.loop.open_trackers", lambda *_, **__: Recorder())
    trainer.train(tmp_path / "e", steps=1, develops=True, checkpoint_minutes=5.0)
    before, of_step, after, *end = said
    assert (before[0], of_step[0], after[0]) == (0, 1, 1)
    assert before[1] == after[1] == {"development/acc@1", "ill/acc@1", "ill/acc@5", "ill/mrr"}
    assert of_step[1] == {"loss", "learning_rate", "names_per_second", *trainer.of_step}
    assert end == ["flush", ("close", True)]
    with pytest.raises(KeyboardInterrupt):
        trainer.train(tmp_path / "f", on_step=interrupt_at(1))
    assert said[-1] == ("close", False)


def test_patience_ends_a_run_and_says_why(trainer: Trainer, tmp_path: Path) -> None:
    told: list[str] = []
    report = trainer.train(
        tmp_path / "e", steps=50, learning_rate=1e-12, develops=True, evaluate_steps=1, patience=2, on_event=told.append
    )
    at_1 = [line["at_1"] for line in report.evaluations]
    assert report.planned_steps == 50
    assert report.steps == len(report.log) == at_1.index(max(at_1)) + 2 < 50
    assert report.stopped_early is not None
    assert report.stopped_early.startswith(f"at step {report.steps} of 50: the last 2 evaluations were no better than")
    assert any(report.stopped_early in event for event in told)


def test_the_weights_of_the_best_evaluation_are_saved(trainer: Trainer, tmp_path: Path) -> None:
    report = trainer.train(tmp_path / "best", develops=True, evaluate_steps=1, keep="best", learning_rate=3e-3)
    at_1 = [line["at_1"] for line in report.evaluations]
    assert report.saved_step == at_1.index(max(at_1))  # of equal ones the first
    assert report.best == {"step": report.saved_step, "at_1": max(at_1)}
    if report.saved_step:
        trainer.train(tmp_path / "as-many", steps=report.saved_step, learning_rate=3e-3)
        assert trainer.equal(tmp_path / "best", tmp_path / "as-many")


def test_a_diverging_run_says_so_and_leaves_no_result(trainer: Trainer, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"not (a number|numbers)"):
        trainer.train(tmp_path / "e", learning_rate=1e30)
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("tried to allocate too much"), MemoryError()], ids=type)
def test_memory_that_does_not_suffice_is_told_in_words(
    error: Exception, trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(*_: object) -> None:
        raise error

    monkeypatch.setattr(trainer.step, "__call__", spent)
    batch = next(name for name in trainer.config.model_fields if name.startswith("batch_"))
    with pytest.raises(
        TrainingError, match=rf"memory does not suffice for {trainer.names_in_step} names .*{batch}.*chunk_names"
    ):
        trainer.train(tmp_path / "e")


def refusals(trainer: Trainer) -> Iterable[tuple[dict[str, Any], type[Exception], str]]:
    yield {"keep": "best"}, ConfigError, "keep=best needs development"
    yield {"patience": 3}, ConfigError, "patience needs development"
    yield {"evaluate_steps": 3}, ConfigError, "evaluate_steps needs development"
    yield {"trackers": ["tensorbord"]}, ConfigError, "no tracker 'tensorbord'.*tensorboard"
    yield {"trackers": "tensorboard"}, InputError, "trackers"
    yield {"on_stp": print}, TypeError, "no keyword 'on_stp'.*on_step"
    yield {"keep": "best", "developments": [trainer.development]}, TypeError, "no keyword 'developments'"
    yield {"base": "no-such-encoder-anywhere"}, UnavailableError, "no-such-encoder-anywhere"
    if not torch.cuda.is_available():
        yield {"device": "cuda"}, TrainingError, "cuda|GPU"


def test_what_cannot_be_is_refused_before_anything_is_written(trainer: Trainer, tmp_path: Path) -> None:
    for options, error, words in refusals(trainer):
        with pytest.raises(error, match=words):
            trainer.train(tmp_path / "e", **options)
        assert list(tmp_path.iterdir()) == [], options


def test_a_recipe_of_another_kind_is_refused(trainer: Trainer, tmp_path: Path) -> None:
    for other in (Recipe, BiosynRecipe, DistillationRecipe, RerankingRecipe):
        if other is trainer.kind:
            continue
        recipe = other.load(other.names()[0])
        for given in (recipe, recipe.config):
            with pytest.raises(
                ConfigError, match=rf"told by a {trainer.kind.__name__}, .*; found {type(given).__name__}"
            ):
                trainer.run(given, trainer.data, tmp_path / "e")
        with pytest.raises(InputError, match=f"there is no {trainer.kind.kind} .*is for onoma"):
            trainer.run(other.names()[0], trainer.data, tmp_path / "e")
    assert list(tmp_path.iterdir()) == []


def test_it_trains_outside_the_main_thread(trainer: Trainer, plain: Done, tmp_path: Path) -> None:
    thread = threading.Thread(target=trainer.train, args=(tmp_path / "threaded",))
    thread.start()
    thread.join()
    assert trainer.equal(plain.out, tmp_path / "threaded")


def test_it_leaves_torch_as_it_was(trainer: Trainer, tmp_path: Path) -> None:
    torch.manual_seed(7)
    before, precision = torch.get_rng_state(), torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        for name, tuning in {"e": {"name": "all"}, "adapted": {"name": "adapter", "reduction": 4}}.items():
            trainer.train(tmp_path / name, steps=2, tuning=tuning)  # of adapters the weights are drawn
            assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(precision)
