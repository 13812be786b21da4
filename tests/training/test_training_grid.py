from __future__ import annotations

import csv
import itertools
import json
import re
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from filelock import FileLock

from onoma.artifacts import write_artifact
from onoma.cli import show
from onoma.encoders import locate_tokenizer
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    DamagedArtifactError,
    InputError,
    MismatchError,
    OnomaError,
    TrainingError,
)
from onoma.files.pictures import COLOURS, MARKERS
from onoma.pairs import build_pairs
from onoma.terminology import Terminology
from onoma.training.alignment_config import Recipe
from onoma.training.alignment_step import StepReport
from onoma.training.distributed import PeerError
from onoma.training.grid import Combination, Grid, combinations, grid_names, load_grid
from onoma.training.grid_plot import draw_grid, plot_grid
from onoma.training.grid_run import train_combinations, train_grid
from onoma.training.grid_table import Trained, best_first
from onoma.training.settings import settings_of
from tiny import WORDS, Name, make_terminology, tiny_encoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def written(folder: Path, text: str) -> str:
    file = folder / "mine.toml"
    file.write_text(text)
    return str(file)


def names_of(grid: Grid, recipe: str = "quickstart", **overrides: str) -> list[str]:
    return [combination.name for combination in combinations(recipe, grid, overrides)]


class TestFiles:
    def test_each_table_is_a_product_and_the_grid_their_union(self, tmp_path: Path) -> None:
        grid = load_grid(
            written(
                tmp_path,
                'description = "d"\n[[vary]]\nlearning_rate = [1e-5, 2e-5]\nloss = ["circle", "nca"]\n'
                '[[vary]]\n"mining.margin" = [0.1, 0.2]\n[[vary]]\nmatryoshka = [[4, 8]]\ndecay_all = [true]\n',
            )
        )
        assert (grid.name, grid.description) == ("mine", "d")
        found = combinations("quickstart", grid)
        product = itertools.product([1e-5, 2e-5], ["circle", "nca"])
        assert [(c.recipe.config.learning_rate, c.recipe.config.loss.name) for c in found[:4]] == list(product)
        assert [c.name for c in found[4:]] == [
            "mining.margin=0.1",
            "mining.margin=0.2",
            "matryoshka=4+8,decay_all=true",
        ]
        assert found[-1].recipe.config.matryoshka == (4, 8)
        assert found[-1].recipe.config.decay_all

    def test_a_combination_of_several_tables_is_trained_once(self) -> None:
        grid = Grid("g", "", ({"learning_rate": ("1e-4", "1e-5")}, {"batch_pairs": ("256", "128")}))
        found = combinations("quickstart", grid)  # which has 1e-4 and 256
        assert [(c.name, c.tables, c.places) for c in found] == [
            ("learning_rate=1e-4", (0, 1), (0, 0)),
            ("learning_rate=1e-5", (0,), (1,)),
            ("batch_pairs=128", (1,), (1,)),
        ]

    def test_overrides_are_of_all_combinations(self) -> None:
        grid = Grid("g", "", ({"seed": ("1", "2")},))
        assert {c.recipe.config.steps for c in combinations("quickstart", grid, {"steps": "7"})} == {7}
        with pytest.raises(ConfigError, match="varies seed; leave it out of --set"):
            combinations("quickstart", grid, {"seed": "3"})

    def test_a_part_and_its_name_are_one_setting(self) -> None:
        with pytest.raises(ConfigError, match="varies loss; leave it out of --set"):
            combinations("quickstart", Grid("g", "", ({"loss": ("nca", "triplet")},)), {"loss.name": "circle"})
        with pytest.raises(ConfigError, match=r"tuning and tuning\.name are one setting"):
            combinations("quickstart", Grid("g", "", ({"tuning": ("lora",), "tuning.name": ("all",)},)))

    def test_names_are_good_for_folders_and_differ(self) -> None:
        grid = Grid("g", "", ({"base": ("a/b", "a:b", "A/B", "x" * 200)},))
        names = names_of(grid)
        assert names[0] == "base=a-b"
        assert len({name.lower() for name in names}) == 4
        assert all(len(name) < 120 and "/" not in name for name in names)

    def test_a_base_in_a_folder_gets_no_path_into_a_name(self, tmp_path: Path) -> None:
        """What is trained is called so, in its card too."""
        bases = tuple(str(tmp_path / place / "mine") for place in ("one", "other"))
        first, second = names_of(Grid("g", "", ({"base": bases},)))
        assert re.fullmatch(r"base=mine-[0-9a-f]{8}", first)
        assert re.fullmatch(r"base=mine-[0-9a-f]{8}", second)
        assert first != second
        assert names_of(Grid("g", "", ({"base": bases[::-1]},))) == [second, first]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[[vary]]\nlearning_rat = [1]", r"combination learning_rat=1.*Did you mean 'learning_rate'"),
            ("[[vary]]\nlearning_rate = [1e-5, -1.0]", r"combination learning_rate=-1\.0.*learning_rate"),
            ('[[vary]]\nloss = ["nca"]\n"loss.margin" = [1]', r"loss = nca has no setting 'margin'"),
            ("[[vary]]\nsteps = [1]\nepochs = [1]", "exactly one of steps, epochs and minutes"),
            ("[[vary]]\nlearning_rate = 1e-5", r"learning_rate takes a list of values.*found 1e-05"),
            ("[[vary]]\nlearning_rate = []", "takes a list of values"),
            ("[[vary]]\nloss.margin = [1]", r'in quotes: "loss\.margin" = '),
            ('[[vary]]\nloss = [{name = "nca"}]', "takes plain values"),
            ("seed = [1]\n[[vary]]\nsteps = [1]", "found 'seed' outside"),
            ("description = ''", "one or more"),
            ("[[vary]]", "one or more"),
            ("vary = 3", "one or more"),
        ],
    )
    def test_what_cannot_be_is_refused(self, tmp_path: Path, text: str, said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            combinations("quickstart", load_grid(written(tmp_path, text)))

    def test_unknown_grids_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"no grid 'sapbert-gri'\. Did you mean 'sapbert-grid'"):
            load_grid("sapbert-gri")
        with pytest.raises(InputError, match="no such grid file"):
            load_grid(str(tmp_path / "no.toml"))
        with pytest.raises(InputError, match="not valid TOML"):
            load_grid(written(tmp_path, "[[vary"))
        (tmp_path / "pixels.toml").write_bytes(b"\xff\xfe")
        with pytest.raises(InputError, match="not text in UTF-8"):
            load_grid(str(tmp_path / "pixels.toml"))

    @pytest.mark.parametrize("name", grid_names())
    def test_shipped_grids_fit_their_recipes_and_have_its_values(self, name: str) -> None:
        grid = load_grid(name)
        recipe = "sapbert-paper" if name == "sapbert-grid" else name.removesuffix("-grid")
        assert recipe in grid.description
        assert Recipe.load(recipe).config in [c.recipe.config for c in combinations(recipe, grid)]

    def test_the_papers_table(self) -> None:
        """Table 9 of Liu et al. 2021, with batches in pairs."""
        tables = [dict(table) for table in load_grid("sapbert-grid").tables]
        assert {key: [float(v) for v in values] for table in tables[:9] for key, values in table.items()} == {
            "learning_rate": [1e-4, 2e-5, 5e-5, 1e-5, 1e-6],
            "batch_pairs": [64, 128, 256, 512],
            "steps": [10_000, 20_000, 30_000, 40_000],
            "epochs": [1, 2],
            "max_tokens": [15, 20, 25, 30],
            "mining.margin": [0.05, 0.1, 0.2, 0.3],
            "loss.positive_scale": [1, 2, 3],
            "loss.negative_scale": [40, 50, 60],
            "loss.offset": [0.5, 1],
        }
        assert tables[9:] == [
            {"loss": ("triplet",), "loss.margin": ("0.05", "0.1", "0.2", "0.3")},
            {"loss": ("nca",), "loss.distance_scale": ("1", "5", "10", "20", "30")},
            {"loss": ("lifted-structure",), "loss.margin": ("0.5", "1")},
            {"loss": ("info-nce",), "loss.temperature": ("0.07", "0.5")},
            {"loss": ("circle",), "loss.margin": ("0.25", "0.4"), "loss.scale": ("80", "256")},
        ]
        for name, epochs in {"scientific": "1235", "askapatient": (5, 10, 15, 20), "cometa": (5, 10, 15, 20)}.items():
            rates, lengths = load_grid(f"sapbert-finetune-{name}-grid").tables
            assert rates == tables[0]
            assert lengths == {"epochs": tuple(str(length) for length in epochs)}


RATES = Grid("rates", "", ({"learning_rate": ("1e-4", "1e-5", "1e-6")},))
MADE_FROM = {"terminology": "t"}


def pretend(
    losses: dict[float, float],
    scores: dict[float, float] | None = None,
    calls: list[str] | None = None,
    untrained: float | None = None,
) -> Callable[[Recipe, Path, Path], None]:
    """Writes an encoder folder with a report and nothing else; a loss that is not given is a failure."""

    def evaluation(step: int, at_1: float | None) -> dict[str, object]:
        reached = {"at_1": at_1, "at_5": 1.0, "mrr": 1.0, "n_queries": 9}
        return {"step": step, "at_1": at_1, "sets": {"dev": reached}, "seconds": 1.0}

    def train(recipe: Recipe, out: Path, _pairs: Path) -> None:
        rate = recipe.config.learning_rate
        if calls is not None:
            calls.append(out.name)
        if rate not in losses:
            raise TrainingError(f"diverged at {rate}")
        evaluations = [evaluation(4, scores.get(rate))] if scores else []
        if untrained is not None:
            evaluations.insert(0, evaluation(0, untrained))
        report = {
            "last_loss": losses[rate],
            "steps": 4,
            "seconds": 2.0,
            "names_per_second": 8.0,
            "saved_step": 4,
            "evaluations": evaluations,
        }
        with write_artifact(out, "encoder", config={"training": recipe.config.model_dump(mode="json")}) as folder:
            (folder / "train.json").write_text(json.dumps(report))

    return train


def cells(grid: Grid = RATES) -> list[Combination]:
    return combinations("quickstart", grid)


class TestTable:
    def test_best_first_by_development_score_else_by_loss(self, tmp_path: Path) -> None:
        losses = {1e-4: 0.3, 1e-5: 0.1, 1e-6: 0.2}
        by_loss = train_combinations(cells(), tmp_path / "a", pretend(losses), made_from=MADE_FROM)
        assert [made.loss for made in by_loss] == [0.1, 0.2, 0.3]
        scores = {1e-4: 0.7, 1e-5: 0.5, 1e-6: 0.9}
        by_score = train_combinations(cells(), tmp_path / "b", pretend(losses, scores), made_from=MADE_FROM)
        assert [made.scores["development/acc@1"] for made in by_score] == [0.9, 0.7, 0.5]
        with (tmp_path / "b" / "grid.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [row["name"] for row in rows] == [f"learning_rate={rate}" for rate in ("1e-6", "1e-4", "1e-5")]
        assert rows[0] == {
            **{"name": "learning_rate=1e-6", "learning_rate": "1e-06", "status": "done", "why": "", "last_loss": "0.2"},
            **{"development/acc@1": "0.9", "dev/acc@1": "0.9", "dev/acc@5": "1.0", "dev/mrr": "1.0"},
            "dev/queries": "9",
            **{"trained_steps": "4", "seconds": "2.0", "names_per_second": "8.0"},
        }
        report = json.loads((tmp_path / "b" / "grid.json").read_text())
        assert report["made_from"] == MADE_FROM
        assert [made["name"] for made in report["combinations"]] == [row["name"] for row in rows]

    def test_scores_stand_beside_those_before_training(self, tmp_path: Path) -> None:
        train = pretend({1e-4: 0.3, 1e-5: 0.1, 1e-6: 0.2}, {1e-4: 0.2, 1e-5: 0.3, 1e-6: 0.1}, untrained=0.4)
        best = train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)[0]
        assert best.scores["development/acc@1"] < best.untrained["development/acc@1"] == 0.4
        assert best.queries == {"dev": 9}
        with (tmp_path / "grid.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [(row["development/acc@1"], row["untrained/development/acc@1"]) for row in rows] == [
            ("0.3", "0.4"),
            ("0.2", "0.4"),
            ("0.1", "0.4"),
        ]
        assert {row["untrained/dev/acc@1"] for row in rows} == {"0.4"}
        assert {row["dev/queries"] for row in rows} == {"9"}
        written = json.loads((tmp_path / "grid.json").read_text())["combinations"][0]
        assert (written["untrained"]["dev/acc@1"], written["queries"]) == (0.4, {"dev": 9})

    def test_a_grid_of_an_earlier_version_goes_on(self, tmp_path: Path) -> None:
        """Neither its table nor its encoders may say what was scored before training."""
        scores = {1e-4: 0.2, 1e-5: 0.3, 1e-6: 0.1}
        train_combinations(cells(), tmp_path, pretend({1e-4: 0.3}, scores), made_from=MADE_FROM)
        report = json.loads((tmp_path / "grid.json").read_text())
        for one in report["combinations"]:
            for key in ("untrained", "queries", "places"):
                del one[key]
        (tmp_path / "grid.json").write_text(json.dumps(report))
        train = pretend({1e-5: 0.1, 1e-6: 0.2}, scores, untrained=0.15)
        table = train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        assert [made.untrained.get("development/acc@1") for made in table] == [0.15, None, 0.15]
        with (tmp_path / "grid.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [row["untrained/development/acc@1"] for row in rows] == ["0.15", "", "0.15"]

    def test_the_loss_and_the_length_that_were_set_stand_beside_those_measured(self, tmp_path: Path) -> None:
        grid = Grid("g", "", ({"loss": ("nca", "circle"), "steps": ("7",)},))
        train_combinations(cells(grid), tmp_path, pretend({1e-4: 0.3}), made_from=MADE_FROM)
        with (tmp_path / "grid.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [(row["loss"], row["last_loss"], row["steps"], row["trained_steps"]) for row in rows] == [
            ("nca", "0.3", "7", "4"),
            ("circle", "0.3", "7", "4"),
        ]

    def test_what_one_encoder_does_not_allow_does_not_stop_the_others(self, tmp_path: Path) -> None:
        whole = pretend({1e-5: 0.3, 1e-6: 0.2})

        def train(recipe: Recipe, out: Path, pairs: Path) -> None:
            if recipe.config.learning_rate == 1e-4:
                raise ConfigError("not with this base")
            whole(recipe, out, pairs)

        table = train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        assert [(made.status, made.why) for made in table] == [
            ("done", ""),
            ("done", ""),
            ("failed", "not with this base"),
        ]

    def test_others_go_on_where_the_names_do_not_suffice_for_one(self, place: Path, tmp_path: Path) -> None:
        names = {word: [Name(f"{word} disease"), Name(f"ill {word}"), Name(word, language="es")] for word in WORDS}
        table = train_grid(
            "quickstart",
            Grid("g", "", ({"languages": ("es", "en")},)),
            tmp_path / "out",
            overrides=overrides(place),
            terminology=make_terminology(tmp_path / "t", names).path,
        )
        assert [(made.name, made.status) for made in table] == [("languages=en", "done"), ("languages=es", "failed")]
        assert "two names" in table[1].why

    def test_finished_ones_are_kept_and_failed_ones_tried_again(self, tmp_path: Path) -> None:
        calls: list[str] = []
        told: list[str] = []
        table = train_combinations(
            cells(), tmp_path, pretend({1e-4: 0.3, 1e-6: 0.2}, calls=calls), made_from=MADE_FROM, on_event=told.append
        )
        assert [(made.name, made.status) for made in table][-1] == ("learning_rate=1e-5", "failed")
        assert table[-1].why == "diverged at 1e-05"
        assert "failed: diverged at 1e-05" in told
        again: list[str] = []
        train = pretend({1e-4: 9.0, 1e-5: 0.1, 1e-6: 9.0}, calls=again)
        table = train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        assert len(calls) == 3
        assert again == ["learning_rate=1e-5"]
        assert [made.loss for made in table] == [0.1, 0.2, 0.3]

    def test_of_several_processes_a_failure_ends_them_and_comes_last_the_next_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The others may not have failed, and would wait; what comes after must be reached all the same."""
        monkeypatch.setattr("onoma.training.grid_run.world_size", lambda: 2)
        calls: list[str] = []
        for _ in range(2):
            with pytest.raises(TrainingError, match="diverged at 1e-05"):
                train_combinations(cells(), tmp_path, pretend({1e-4: 0.3, 1e-6: 0.2}, calls=calls), made_from=MADE_FROM)
        assert calls == [f"learning_rate={rate}" for rate in ("1e-4", "1e-5", "1e-6", "1e-5")]
        report = json.loads((tmp_path / "grid.json").read_text())
        assert [(one["status"], one["why"]) for one in report["combinations"]] == [
            ("done", ""),
            ("done", ""),
            ("failed", "diverged at 1e-05"),
        ]

    def test_of_several_processes_one_that_is_gone_leaves_no_reason_and_comes_last(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("onoma.training.grid_run.world_size", lambda: 2)
        calls: list[str] = []
        whole = pretend({1e-4: 0.3, 1e-5: 0.1, 1e-6: 0.2}, calls=calls)
        ends: list[BaseException] = [PeerError("another process has stopped"), KeyboardInterrupt()]

        def train(recipe: Recipe, out: Path, pairs: Path) -> None:
            if ends:
                raise ends.pop(0)
            whole(recipe, out, pairs)

        with pytest.raises(PeerError):
            train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        report = json.loads((tmp_path / "grid.json").read_text())
        assert [one["status"] for one in report["combinations"]] == ["begun", "waiting", "waiting"]
        with pytest.raises(KeyboardInterrupt):
            train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        assert calls == [f"learning_rate={rate}" for rate in ("1e-5", "1e-6", "1e-4")]

    def test_one_that_always_fails_keeps_no_other_of_several_processes_from_its_turn(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("onoma.training.grid_run.world_size", lambda: 2)
        calls: list[str] = []
        whole = pretend({1e-5: 0.1, 1e-6: 0.2}, calls=calls)
        ends: list[BaseException] = [PeerError("another process has stopped")]

        def train(recipe: Recipe, out: Path, pairs: Path) -> None:
            if recipe.config.learning_rate == 1e-4:
                calls.append("never")
                raise ConfigError("it cannot be")
            if ends:
                raise ends.pop()
            whole(recipe, out, pairs)

        for error in (ConfigError, PeerError, ConfigError, ConfigError):
            with pytest.raises(error):
                train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        assert calls == ["never", "learning_rate=1e-6", "never", "learning_rate=1e-5", "never"]
        report = json.loads((tmp_path / "grid.json").read_text())
        assert {one["status"]: one["tries"] for one in report["combinations"]} == {"done": 0, "failed": 3}

    def test_in_one_process_what_failed_comes_last(self, tmp_path: Path) -> None:
        calls: list[str] = []
        whole = pretend({1e-5: 0.1, 1e-6: 0.2}, calls=calls)

        def train(recipe: Recipe, out: Path, pairs: Path) -> None:
            if recipe.config.learning_rate == 1e-4:
                calls.append("fails")
                raise TrainingError("it diverged")
            if recipe.config.learning_rate == 1e-6 and calls.count("fails") == 1 and "stop" not in calls:
                calls.append("stop")
                raise KeyboardInterrupt
            whole(recipe, out, pairs)

        with pytest.raises(KeyboardInterrupt):
            train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        assert calls == ["fails", "learning_rate=1e-5", "stop", "learning_rate=1e-6", "fails"]

    def test_what_an_earlier_grid_left_is_told_of(self, tmp_path: Path) -> None:
        train_combinations(cells(), tmp_path, pretend({1e-4: 0.3, 1e-6: 0.2}), made_from=MADE_FROM)
        told: list[str] = []
        train_combinations(cells()[:1], tmp_path, pretend({}), made_from=MADE_FROM, on_event=told.append)
        assert f"2 combinations of an earlier grid in {tmp_path}, no longer in its table" in told

    def test_equal_scores_go_by_mrr_and_not_by_losses_that_cannot_be_compared(self) -> None:
        def trained(name: str, mrr: float, loss: float) -> Trained:
            scores = {"development/acc@1": 0.5, "a/mrr": mrr, "b/mrr": 0.5}
            return Trained(name, {}, (0,), "done", scores=scores, loss=loss)

        table = [trained("first", 0.6, 3.3), trained("better", 0.7, 9.0), trained("as the first", 0.6, 0.1)]
        assert [made.name for made in best_first(table)] == ["better", "first", "as the first"]

    def test_the_table_is_there_when_it_is_interrupted(self, tmp_path: Path) -> None:
        whole = pretend({1e-4: 0.3})

        def stop(recipe: Recipe, out: Path, pairs: Path) -> None:
            if recipe.config.learning_rate == 1e-5:
                raise KeyboardInterrupt
            whole(recipe, out, pairs)

        with pytest.raises(KeyboardInterrupt):
            train_combinations(cells(), tmp_path, stop, made_from=MADE_FROM)
        with (tmp_path / "grid.csv").open() as file:
            assert [row["status"] for row in csv.DictReader(file)] == ["done", "waiting", "waiting"]
        calls: list[str] = []
        train_combinations(cells(), tmp_path, pretend({1e-5: 1, 1e-6: 1}, calls=calls), made_from=MADE_FROM)
        assert calls == ["learning_rate=1e-5", "learning_rate=1e-6"]

    def test_other_data_other_settings_and_other_things_are_not_touched(self, tmp_path: Path) -> None:
        train = pretend({1e-4: 1, 1e-5: 1, 1e-6: 1})
        train_combinations(cells(), tmp_path / "g", train, made_from=MADE_FROM)
        with pytest.raises(MismatchError, match=r"a grid on something else \(terminology\)"):
            train_combinations(cells(), tmp_path / "g", train, made_from={"terminology": "u"})
        others = combinations("quickstart", RATES, {"steps": "3"})
        with pytest.raises(
            MismatchError,
            match=r"learning_rate=1e-4 holds an encoder that was trained with other settings: \w+ \(.*, now ",
        ):
            train_combinations(others, tmp_path / "g", train, made_from=MADE_FROM)
        (tmp_path / "h").mkdir()
        (tmp_path / "h" / "letter").write_text("dear")
        with pytest.raises(ArtifactExistsError, match="no grid"):
            train_combinations(cells(), tmp_path / "h", train, made_from=MADE_FROM)
        with FileLock(tmp_path / "g" / ".lock"), pytest.raises(TrainingError, match="another process"):
            train_combinations(cells(), tmp_path / "g", train, made_from=MADE_FROM)

    def test_a_grid_that_did_not_begin_may_be_on_other_data(self, tmp_path: Path) -> None:
        def refuse(*_: object) -> None:
            raise InputError("so many synonyms cannot be hidden")

        with pytest.raises(InputError):
            train_combinations(cells(), tmp_path, refuse, made_from={**MADE_FROM, "hide": 50})
        made = train_combinations(cells(), tmp_path, pretend({1e-4: 1, 1e-5: 1, 1e-6: 1}), made_from=MADE_FROM)
        assert {one.status for one in made} == {"done"}
        with pytest.raises(MismatchError, match="something else"):
            train_combinations(cells(), tmp_path, refuse, made_from={**MADE_FROM, "hide": 50})

    def test_what_every_combination_would_refuse_is_refused_at_once(self, place: Path, tmp_path: Path) -> None:
        (tmp_path / "dev.txt").write_text("X:heart||heart disease\n")
        grid = Grid("g", "", ({"seed": ("1", "2")},))
        for told, said in (
            ({"pairs": tmp_path / "pairs", "development": [tmp_path / "dev.txt"]}, "pairs do not say which names"),
            ({"terminology": tmp_path / "t", "development_terminology": tmp_path / "t"}, "and there are none"),
        ):
            with pytest.raises(ConfigError, match=said):
                train_grid("quickstart", grid, tmp_path / "out", overrides=overrides(place), **told)
            assert not (tmp_path / "out").exists()

    def test_a_grid_may_grow(self, tmp_path: Path) -> None:
        train = pretend({1e-4: 1, 1e-5: 1, 1e-6: 1, 0.5: 0.5})
        train_combinations(cells(), tmp_path, train, made_from=MADE_FROM)
        more = Grid("rates", "", ({"learning_rate": ("1e-4", "1e-5", "1e-6", "0.5")},))
        table = train_combinations(cells(more), tmp_path, train, made_from=MADE_FROM)
        assert table[0].name == "learning_rate=0.5"
        assert len(table) == 4

    def test_pairs_are_shared_by_those_that_have_the_same(self, tmp_path: Path) -> None:
        grid = Grid(
            "g", "", ({"learning_rate": ("1e-4", "1e-5"), "max_tokens": ("20", "25"), "loss": ("nca", "circle")},)
        )
        seen: dict[Path, set[int]] = {}

        def train(recipe: Recipe, _out: Path, pairs: Path) -> None:
            seen.setdefault(pairs, set()).add(recipe.config.max_tokens)
            raise TrainingError("enough")

        train_combinations(cells(grid), tmp_path, train, made_from=MADE_FROM)
        assert sorted(map(sorted, seen.values())) == [[20], [25]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grid")
    tiny_encoder(folder / "base")
    make_terminology(
        folder / "t", {f"X:{word}": [f"{word} disease", f"disease of {word}", f"{word} illness"] for word in WORDS}
    )
    return folder


def overrides(place: Path) -> dict[str, str]:
    return {"base": str(place / "base"), "steps": "2", "batch_pairs": "6", "max_tokens": "16", "precision": "fp32"}


def test_on_a_terminology_with_development_data(place: Path, tmp_path: Path) -> None:
    grid = Grid("g", "", ({"learning_rate": ("1e-3", "1e-4"), "loss": ("nca",)},))
    stepped: list[int] = []

    def go() -> list[Trained]:
        return train_grid(
            "quickstart",
            grid,
            tmp_path / "out",
            overrides={**overrides(place), "keep": "best"},
            terminology=place / "t",
            development_synonyms=1,
            watch=lambda: nullcontext({"on_step": on_step}),
        )

    def on_step(report: StepReport) -> None:
        stepped.append(report.step)
        pairs.append([path.name for path in (tmp_path / "out" / ".pairs").iterdir()])

    pairs: list[list[str]] = []
    table = go()
    assert stepped == [1, 2, 1, 2]
    assert pairs == [pairs[0]] * 4, "both train on the same"
    assert len(pairs[0]) == 1
    assert {made.name for made in table} == {"learning_rate=1e-3,loss=nca", "learning_rate=1e-4,loss=nca"}
    assert all(0 <= made.scores["hidden synonyms/acc@5"] <= 1 for made in table)
    assert table[0].untrained == table[1].untrained
    assert table[0].untrained.keys() == table[0].scores.keys()
    assert table[0].queries == {"hidden synonyms": 1}
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")) == [
        "grid.csv",
        "grid.json",
        "learning_rate=1e-3,loss=nca",
        "learning_rate=1e-4,loss=nca",
    ]
    assert not (tmp_path / "out" / ".pairs").exists()
    assert go() == table
    assert len(stepped) == 4


def test_a_grid_that_suited_nothing_may_begin_on_something_else(place: Path, tmp_path: Path) -> None:
    def go(matryoshka: str, hidden: int) -> list[Trained]:
        return train_grid(
            "quickstart",
            Grid("g", "", ({"matryoshka": (matryoshka,)},)),
            tmp_path / "out",
            overrides=overrides(place),
            terminology=place / "t",
            development_synonyms=hidden,
        )

    with pytest.raises(ConfigError, match="matryoshka"):
        go("[1000]", 4)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="cannot be hidden"):
        go("[8]", 10_000)
    assert (tmp_path / "out").exists()
    (made,) = go("[8]", 3)
    assert made.status == "done"
    # As after a kill between saving the encoder and writing the table.
    table = tmp_path / "out" / "grid.json"
    table.write_text(table.read_text().replace('"done"', '"waiting"'))
    with pytest.raises(MismatchError, match="holds a grid on something else"):
        go("[8]", 4)


@pytest.mark.parametrize("killed_in", ["rename", "rmtree"])
def test_what_a_combination_killed_after_saving_left_is_cleared(
    killed_in: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go() -> list[Trained]:
        grid = Grid("g", "", ({"learning_rate": ("1e-3",)},))
        return train_grid("quickstart", grid, tmp_path, overrides=overrides(place), terminology=place / "t")

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    remove = shutil.rmtree
    with monkeypatch.context() as patch:
        if killed_in == "rename":
            patch.setattr("onoma.training.run_folder._remove", kill)
        else:
            patch.setattr(
                shutil,
                "rmtree",
                lambda path, **options: kill() if str(path).endswith(".spent") else remove(path, **options),
            )
        with pytest.raises(KeyboardInterrupt):
            go()
    (left,) = tmp_path.glob("*.run*") if killed_in == "rename" else tmp_path.glob(".*.run.spent")
    assert any(left.iterdir())
    (made,) = go()
    assert made.status == "done"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "grid.csv", "grid.json", "learning_rate=1e-3"]


def test_what_no_combination_can_be_is_refused_before_anything_is_written(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    keep = Grid("g", "", ({"keep": ("last", "best")},))
    tokens = Grid("g", "", ({"max_tokens": ("16", "20"), "languages": ("en",)},))
    with pytest.raises(ConfigError, match="keep=best needs development data"):
        train_grid("quickstart", keep, out, overrides=overrides(place), terminology=place / "t")
    with pytest.raises(ConfigError, match="g varies languages, max_tokens, which pairs made before have settled"):
        train_grid("quickstart", tokens, out, pairs=place / "t")
    languages = Grid("g", "", ({"languages": ("all", "xx")},))
    with pytest.raises(InputError, match="no name is of the language 'xx'"):
        train_grid("quickstart", languages, out, overrides=overrides(place), terminology=place / "t")
    with pytest.raises(ConfigError, match="no tracker 'paper'"):
        train_grid("quickstart", RATES, out, overrides=overrides(place), terminology=place / "t", trackers=["paper"])
    with pytest.raises(ConfigError, match="either a terminology or pairs"):
        train_grid("quickstart", RATES, out)
    bases = Grid("g", "", ({"base": (str(place / "base"), "no/where")},))
    with pytest.raises(OnomaError, match="no/where"):
        train_grid("quickstart", bases, out, terminology=place / "t")
    with pytest.raises(InputError, match="there is no such file"):
        train_grid(
            "quickstart", RATES, out, overrides=overrides(place), terminology=place / "t", development=[out / "dev.txt"]
        )
    assert not out.exists()


def test_a_grid_does_not_go_on_from_another_base_of_that_name(place: Path, tmp_path: Path) -> None:
    def go(*rates: str, base: str) -> list[Trained]:
        return train_grid(
            "quickstart",
            Grid("g", "", ({"learning_rate": rates},)),
            tmp_path / "out",
            overrides=overrides(place) | {"base": str(tmp_path / base)},
            terminology=place / "t",
        )

    tiny_encoder(tmp_path / "base")
    tiny_encoder(tmp_path / "besides", seed=1)
    go("1e-3", base="base")
    go("1e-4", base="besides")
    tiny_encoder(tmp_path / "other", seed=2)
    shutil.rmtree(tmp_path / "base")
    (tmp_path / "other").rename(tmp_path / "base")
    with pytest.raises(MismatchError, match=r"a grid on something else \(the base .*base\)"):
        go("1e-2", base="base")
    go("1e-2", base="besides")
    tiny_encoder(tmp_path / "elsewhere" / "besides", seed=3)
    with pytest.raises(MismatchError, match=r"a grid on something else \(the base .*elsewhere/besides\)"):
        go("1e-2", base="elsewhere/besides")  # which what is trained from it would call by the same name
    shutil.copytree(tmp_path / "besides", tmp_path / "copied" / "besides")
    assert go("1e-2", base="copied/besides")[0].status == "done"


def test_a_grid_of_bases_goes_on_with_more_of_the_same_name(place: Path, tmp_path: Path) -> None:
    """Its combinations are told apart by their names."""
    bases = [str(tiny_encoder(tmp_path / where / "mine", seed=number)) for number, where in enumerate("abc")]
    for count in (1, 3):
        grid = Grid("g", "", ({"base": tuple(bases[:count])},))
        rest = {key: value for key, value in overrides(place).items() if key != "base"}
        made = train_grid("quickstart", grid, tmp_path / "out", overrides=rest, terminology=place / "t")
        assert [one.status for one in made] == ["done"] * count


def test_bases_that_the_pairs_do_not_fit_are_refused_before_anything_is_written(place: Path, tmp_path: Path) -> None:
    other = tiny_encoder(tmp_path / "other", extra_tokens=["extra"])
    pairs = build_pairs(Terminology.open(place / "t"), locate_tokenizer(str(place / "base")), tmp_path / "pairs")
    bases = Grid("g", "", ({"base": (str(place / "base"), str(other))},))
    with pytest.raises(MismatchError, match=r"tokenised with another tokeniser than that of .*other"):
        train_grid("quickstart", bases, tmp_path / "out", pairs=pairs.path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content",
    [
        '{"a": 1}',
        "xx",
        "[]",
        "[" * 100_000,
        '{"made_from": 3, "combinations": []}',
        '{"made_from": {}, "combinations": [{"name": "a", "status": "failed", "tries": "many"}]}',
    ],
)
def test_a_grid_json_that_is_no_grid(content: str, place: Path, tmp_path: Path) -> None:
    (tmp_path / "grid.json").write_text(content)
    with pytest.raises(ArtifactExistsError, match=r"grid\.json that is no grid's"):
        train_grid("quickstart", RATES, tmp_path, overrides=overrides(place), terminology=place / "t")
    assert (tmp_path / "grid.json").read_text() == content


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[", "Invalid JSON"),
        (b"\xff", "Invalid JSON"),
        (b'{"saved_step": 1}', "evaluations: "),
        (None, "it is missing"),
    ],
)
def test_a_finished_encoder_without_its_report_is_not_taken_for_one(
    place: Path, tmp_path: Path, content: bytes | None, said: str
) -> None:
    def go() -> list[Trained]:
        return train_combinations(found, tmp_path / "out", save, made_from={})

    def save(recipe: Recipe, folder: Path, _: Path) -> None:
        with write_artifact(folder, "encoder", config={"training": recipe.config.to_publish()}) as aside:
            if content is not None:
                (aside / "train.json").write_bytes(content)

    found = combinations("quickstart", Grid("g", "", ({"seed": ("1",)},)), overrides(place))
    with pytest.raises(DamagedArtifactError, match=rf"train\.json does not say how training went \({said}"):
        go()
    with pytest.raises(DamagedArtifactError, match=r"Remove .*seed=1 to train it again"):
        go()


def trained(name: str, tables: tuple[int, ...], score: float, **settings: str) -> Trained:
    return Trained(name, settings, tables, "done", scores={"development/acc@1": score}, loss=1 - score)


def test_the_picture_has_a_panel_for_each_table(tmp_path: Path) -> None:
    text_of = pytest.importorskip("matplotlib.text")
    grid = Grid("g", "", ({"rate": ("1e-5", "1e-4"), "loss": ("nca", "circle")}, {"kind": ("a$b$", "c")}))
    table = [
        trained("best", (0, 1), 0.9, rate="1e-05", loss="nca", kind="a$b$"),
        trained("2", (0,), 0.8, rate="1e-05", loss="circle", kind="a$b$"),
        trained("3", (0,), 0.7, rate="0.0001", loss="nca", kind="a$b$"),
        trained("4", (1,), 0.6, rate="1e-05", loss="nca", kind="c"),
        Trained("5", {"rate": "0.0001", "loss": "circle", "kind": "a$b$"}, (0,), "failed"),
    ]
    rates, kinds = draw_grid(grid, table).axes
    assert [label.get_text() for label in rates.get_xticklabels()] == ["1e-05", "0.0001"]
    lines = {line.get_label(): np.asarray(line.get_xydata()).tolist() for line in rates.get_lines()}
    assert lines["loss nca"] == [[0, 0.9], [1, 0.7]]
    assert lines["loss circle"] == [[0, 0.8]]
    assert [np.asarray(line.get_xydata()).tolist() for line in kinds.get_lines()] == [[[0, 0.9], [1, 0.6]], [[0, 0.9]]]
    plot_grid(grid, table, tmp_path / "grid.svg")
    written = (tmp_path / "grid.svg").read_text()
    assert ">a$b$<" in written, "words are words"
    assert "<dc:title>g</dc:title>" in written
    wordy = Grid("$g$", "", ({"$r$": ("$1$", "$2$"), "loss": ("$a$", "$b$")},))
    drawn = draw_grid(
        wordy,
        [
            Trained(
                f"{n}", {"$r$": f"${n}$", "loss": "$a$"}, (0,), "done", scores={"$d$/acc@1": 0.5}, queries={"$d$": 2}
            )
            for n in (1, 2)
        ],
    )
    shown = {text.get_text(): text.get_parse_math() for text in drawn.findobj(text_of.Text) if "$" in text.get_text()}
    assert len(shown) == 6
    assert not any(shown.values())
    assert "4 combinations, the best first. best: development/acc@1 0.9; 2: development/acc@1 0.8" in written
    with pytest.raises(InputError, match="no combination is finished"):
        plot_grid(grid, table[-1:], tmp_path / "none.svg")
    with pytest.raises(InputError, match="unknown kind of picture"):
        plot_grid(grid, table, tmp_path / "grid.txt")


LOSSES = ("multi-similarity", "circle", "nca", "triplet", "info-nce", "lifted-structure", "cosine")
SEEDS = ("0", "1", "2")


def drawn(
    grid: Grid, untrained: Callable[[Recipe], float] | None = None, failed: tuple[str, ...] = (), queries: int = 2000
) -> Figure:
    """Of all combinations with scores by chance."""
    random = np.random.default_rng(0)
    keys = list(dict.fromkeys(key for table in grid.tables for key in table))
    table = []
    for cell in cells(grid):
        values = {key: value for key, value, _ in settings_of(cell.recipe.config)}
        waiting = Trained(cell.name, {key: values.get(key, "") for key in keys}, cell.tables, places=cell.places)
        if cell.name in failed:
            table.append(replace(waiting, status="failed"))
            continue
        before = {} if untrained is None else {"development/acc@1": untrained(cell.recipe)}
        scores = {"development/acc@1": float(random.uniform(0.5, 0.9))}
        table.append(
            replace(waiting, status="done", scores=scores, loss=1.0, untrained=before, queries={"dev": queries})
        )
    figure = draw_grid(grid, best_first(table))
    figure.draw_without_rendering()
    return figure


def dashed(panel: Axes) -> list[list[list[float]]]:
    return [
        np.asarray(line.get_xydata()).tolist()
        for line in panel.get_lines()
        if line.is_dashed() and len(np.asarray(line.get_xdata()))
    ]


def entries(panel: Axes) -> list[str]:
    legend = panel.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts() if text.get_text() != "best"]


def colours(panel: Axes) -> list[object]:
    """Of the points, in the order of the legend."""
    by_label = {line.get_label(): line.get_color() for line in panel.get_lines()}
    return [by_label[label] for label in entries(panel) if label != "untrained"]


class TestPicture:
    @pytest.fixture(autouse=True)
    def _matplotlib(self) -> None:
        pytest.importorskip("matplotlib")

    def test_words_stand_as_in_the_file_and_are_not_joined(self) -> None:
        grid = Grid("g", "", ({"loss": LOSSES, "seed": ("2", "0", "1")},))
        failed = ("loss=multi-similarity,seed=2", "loss=circle,seed=0")
        (panel,) = drawn(grid, failed=failed).axes
        assert [label.get_text() for label in panel.get_xticklabels()] == list(LOSSES)
        assert entries(panel) == ["seed 2", "seed 0", "seed 1"]
        assert colours(panel) == list(COLOURS[:3])
        points = [line for line in panel.get_lines() if line.get_label() in entries(panel)]
        assert [line.get_marker() for line in points] == list(MARKERS[:3]), "told apart without colours too"
        legend = panel.get_legend()
        assert legend is not None
        assert "best" in [text.get_text() for text in legend.get_texts()]
        assert {line.get_linestyle() for line in points} == {"None"}
        places = [np.asarray(line.get_xdata()).round().tolist() for line in points]
        assert places == [[1, 2, 3, 4, 5, 6], [0, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]]

    def test_what_another_table_has_too_stands_at_its_place_in_each(self) -> None:
        grid = Grid("g", "", ({"seed": SEEDS}, {"loss": ("circle", "multi-similarity", "nca")}))
        seeds, losses = drawn(grid).axes
        assert [label.get_text() for label in losses.get_xticklabels()] == ["circle", "multi-similarity", "nca"]
        assert {line.get_linestyle() for line in seeds.get_lines()} == {"None"}, "seeds have no order either"

    def test_numbers_stand_by_size_and_are_joined(self) -> None:
        grid = Grid("g", "", ({"learning_rate": ("1e-4", "1e-6", "1e-5"), "loss": ("nca", "circle")},))
        (panel,) = drawn(grid).axes
        assert [label.get_text() for label in panel.get_xticklabels()] == ["1e-06", "1e-05", "0.0001"]
        assert entries(panel) == ["loss nca", "loss circle"]
        lines = [line for line in panel.get_lines() if line.get_label() in entries(panel)]
        assert [np.asarray(line.get_xdata()).tolist() for line in lines] == [[0, 1, 2]] * 2
        assert {line.get_linestyle() for line in lines} == {"-"}

    def test_an_untrained_score_that_all_share_is_one_dashed_line(self) -> None:
        grid = Grid("g", "", ({"loss": LOSSES, "seed": SEEDS}, {"learning_rate": ("1e-5", "1e-4")}))
        losses, rates = drawn(grid, lambda _: 0.25).axes
        assert dashed(losses) == [[[-0.5, 0.25], [6.5, 0.25]]]
        assert dashed(rates) == [[[-0.5, 0.25], [1.5, 0.25]]]
        assert entries(losses) == [*(f"seed {seed}" for seed in SEEDS), "untrained"]
        assert entries(rates) == ["untrained"]
        assert losses.get_ylim()[0] < 0.25
        (panel,) = drawn(Grid("g", "", ({"loss": LOSSES, "seed": SEEDS},))).axes
        assert dashed(panel) == []
        assert "untrained" not in entries(panel)

    def test_untrained_scores_that_differ_stand_at_their_combinations(self) -> None:
        before = {"cls": 0.1, "mean": 0.2, "mean-all": 0.3}
        grid = Grid("g", "", ({"pooling": tuple(before), "seed": ("0", "1")},))
        (panel,) = drawn(grid, lambda recipe: before[str(recipe.config.pooling)]).axes
        found = sorted((round(sum(x for x, _ in line) / 2), line[0][1], line[1][1]) for line in dashed(panel))
        assert found == [(place, height, height) for place, height in enumerate(before.values()) for _ in range(2)]
        assert entries(panel)[-1] == "untrained"

    def test_how_many_queries_there_are_is_written(self) -> None:
        (panel,) = drawn(Grid("g", "", ({"seed": SEEDS},))).axes
        assert panel.get_ylabel() == "development/acc@1\n2,000 queries"

    @pytest.mark.parametrize("n_tables", [1, 4])
    def test_nothing_overlaps_and_nothing_is_cut(self, n_tables: int) -> None:
        grid = Grid("g", "", tuple({"loss": LOSSES, "seed": SEEDS, "steps": (str(n),)} for n in range(1, n_tables + 1)))
        figure = drawn(grid, lambda recipe: 0.1 * recipe.config.seed)
        for panel in figure.axes[:n_tables]:
            ticks = panel.get_xticklabels()
            assert {tick.get_rotation() for tick in ticks} == {40.0}
            ends = [tick.get_window_extent().x1 for tick in ticks]  # with words turned, lines of them lie side by side
            assert min(right - left for left, right in itertools.pairwise(ends)) > ticks[0].get_fontsize()
            legend = panel.get_legend()
            assert legend is not None
            assert legend.get_window_extent().y0 >= panel.get_window_extent().y1, "no entry is taken for a point"
            for text in (panel.yaxis.label, panel.xaxis.label, legend, *ticks):
                box = text.get_window_extent()
                if box.width:
                    assert box.x0 >= 0.09 * figure.dpi
                    assert box.y0 >= 0.09 * figure.dpi
                    assert box.x1 <= figure.bbox.x1
                    assert box.y1 <= figure.bbox.y1
            assert panel.get_window_extent().height > 1.5 * figure.dpi
        (panel,) = drawn(Grid("g", "", ({"loss": ("nca", "circle")},))).axes
        assert {tick.get_rotation() for tick in panel.get_xticklabels()} == {0.0}

    def test_long_values_are_shortened_and_leave_the_panel_its_room(self) -> None:
        folders = tuple(f"/home/somebody/encoders/{n}/of-the-third-attempt-at-the-great-table" for n in range(3))
        grid = Grid("g", "", ({"learning_rate": ("1e-4", "1e-5"), "base": folders, "loss": LOSSES},))
        figure = drawn(grid, lambda recipe: len(recipe.config.loss.name) / 100)
        (panel,) = figure.axes
        assert panel.get_window_extent().height > 1.5 * figure.dpi
        assert max(len(line) for entry in entries(panel) for line in entry.splitlines()) <= 52
        (panel,) = drawn(Grid("g", "", ({"base": folders, "seed": SEEDS},))).axes
        assert {len(label.get_text()) for label in panel.get_xticklabels()} == {27}


def test_the_page_on_grids_says_what_a_grid_gives(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "training.md"
    if not page.exists():
        pytest.skip("the documentation is not part of the package")
    part = page.read_text(encoding="utf-8").split("\n## Grids\n")[1].split("\n## ")[0]
    found = combinations(
        "sapbert-paper", load_grid(written(tmp_path, part.split("```toml\n")[1].split("```")[0])), {"seed": "0"}
    )
    (shared,) = (combination for combination in found if len(combination.tables) > 1)
    assert shared.recipe.config.mining.model_dump()["margin"] == 0.2
    assert f"it is `{shared.name}`" in part
    train_combinations(cells(), tmp_path / "out", pretend(dict.fromkeys((1e-4, 1e-5, 1e-6), 1.0)), made_from=MADE_FROM)
    columns = (tmp_path / "out" / "grid.csv").read_text().splitlines()[0].split(",")
    assert "last_loss" in columns
    assert "`last_loss` is the mean of the last ten steps" in part
    assert f"The bar shows the mean of the last {show._RECENT_STEPS}" in part
    assert "`untrained/development/acc@1`" in part
