"""The table of results of a grid's combinations: ``grid.csv`` and ``grid.json``, best first."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from onoma.artifacts import open_artifact, write_text_atomically
from onoma.encoders.model_card import TRAIN_NAME
from onoma.errors import DamagedArtifactError, MismatchError, first_line
from onoma.training.distributed import is_main
from onoma.training.evaluating import Evaluation
from onoma.training.grid import Combination
from onoma.training.settings import settings_of

TABLE_NAME, REPORT_NAME = "grid.csv", "grid.json"
DONE, FAILED, WAITING, BEGUN = "done", "failed", "waiting", "begun"
_MEASURED = {
    "last_loss": "loss",
    "trained_steps": "steps",
    "seconds": "seconds",
    "names_per_second": "names_per_second",
    "why": "why",
}
"""Column of the table -> field of `Trained`; ``loss`` and ``steps`` are settings that a grid may vary."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A line of the table."""

    name: str
    """Of the combination, and of its encoder's folder."""
    settings: Mapping[str, str]
    """Its values of all settings that the grid varies; empty where it has no such setting."""
    tables: tuple[int, ...]
    """See `Combination`."""
    status: str = WAITING
    """``done``, ``failed`` or ``waiting``; ``begun`` if one of several processes ended all without a word."""
    why: str = ""
    """Of a failure."""
    tries: int = 0
    """How often it was begun by several processes and not finished."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """On development data, by name; larger is better, and the first decides which combination is best."""
    untrained: Mapping[str, float] = field(default_factory=dict)
    """The same scores before the first step; empty where they were not measured."""
    queries: Mapping[str, int] = field(default_factory=dict)
    """How many there are in each development set, by its name."""
    loss: float | None = None
    """Mean of the last steps; comparable only between combinations of one loss, mining and batch size."""
    steps: int | None = None
    seconds: float | None = None
    names_per_second: float | None = None
    places: tuple[int, ...] = ()
    """See `Combination`."""


class Try(BaseModel):
    """What ``grid.json`` says of a combination that outlasts a call."""

    name: str
    status: Literal["done", "failed", "waiting", "begun"]
    why: str = ""
    tries: int = 0


class GridReport(BaseModel):
    """What is read again of ``grid.json``."""

    made_from: dict[str, Any]
    combinations: list[Try]


def read_report(file: Path) -> GridReport:
    """Read ``grid.json``.

    Raises:
        ValidationError: it is another file, or damaged.
    """
    return GridReport.model_validate_json(file.read_bytes())


class _TrainReport(BaseModel):
    """What the table tells of ``train.json``."""

    saved_step: int
    evaluations: list[Evaluation]
    last_loss: float
    steps: int
    seconds: float
    names_per_second: float

    def after(self, step: int) -> Evaluation | None:
        """What was measured after so many steps; None without development data."""
        found = [one for one in self.evaluations if one.step == step]
        return found[-1] if found else None


def earlier_tries(out: Path) -> dict[str, dict[str, Any]]:
    """What a call before has written down of combinations that it began, by name.

    Only the main process reads it; to others there is nothing.
    """
    report = out / REPORT_NAME
    if not is_main() or not report.exists():
        return {}
    begun = [one for one in read_report(report).combinations if one.status != WAITING]
    return {one.name: one.model_dump() for one in begun}


def best_first(table: Iterable[Trained]) -> list[Trained]:
    """By the first development score, then the mean MRR; where there are none, by loss. Unfinished ones come last."""

    def order(made: Trained) -> tuple[bool, float, float, float]:
        mrr = [value for name, value in made.scores.items() if name.endswith("/mrr")]
        by_loss = 0.0 if made.scores else float("inf") if made.loss is None else made.loss
        return made.status != DONE, -next(iter(made.scores.values()), 0.0), -sum(mrr), by_loss

    return sorted(table, key=order)


def state_of(out: Path, combination: Combination, keys: Sequence[str]) -> Trained:
    """What there is of a combination: its encoder's scores and times, or that it waits.

    Args:
        out: The grid's folder.
        combination: One of its grid's.
        keys: The settings that the grid varies.

    Raises:
        MismatchError: an encoder that was trained with other settings lies in its place.
        DamagedArtifactError: the encoder's ``train.json`` cannot be read.
    """
    waiting = Trained(combination.name, _values(combination, keys), combination.tables, places=combination.places)
    folder = out / combination.name
    if not folder.exists():
        return waiting
    known = open_artifact(folder, "encoder").config.get("training")
    known = known if isinstance(known, Mapping) else {}
    wanted = combination.recipe.config.to_publish()
    other = [f"{key} ({known.get(key)}, now {wanted.get(key)})" for key in wanted if known.get(key) != wanted.get(key)]
    if other or known.keys() != wanted.keys():
        raise MismatchError(
            f"{folder} holds an encoder that was trained with other settings{': ' if other else ''}{', '.join(other)}. "
            "Write to another place, or remove it."
        )
    try:
        report = _TrainReport.model_validate_json((folder / TRAIN_NAME).read_bytes())
    except (FileNotFoundError, ValidationError) as error:
        why = "it is missing" if isinstance(error, FileNotFoundError) else first_line(error)
        raise DamagedArtifactError(
            f"{folder / TRAIN_NAME} does not say how training went ({why}). Remove {folder} to train it again."
        ) from None
    saved, untrained = report.after(report.saved_step), report.after(0)
    return replace(
        waiting,
        status=DONE,
        scores=saved.figures() if saved else {},
        untrained=untrained.figures() if untrained else {},
        queries={name: scores.n_queries for name, scores in saved.sets.items()} if saved else {},
        loss=report.last_loss,
        steps=report.steps,
        seconds=report.seconds,
        names_per_second=report.names_per_second,
    )


def _values(combination: Combination, keys: Sequence[str]) -> dict[str, str]:
    values = {key: value for key, value, _ in settings_of(combination.recipe.config)}
    return {key: values.get(key, "") for key in keys}


def write_table(out: Path, made_from: Mapping[str, Any], table: Mapping[str, Trained]) -> None:
    """Write both files anew, in the main process.

    Args:
        out: The grid's folder.
        made_from: On what all combinations are trained and measured, JSON-serialisable.
        table: The lines by name, one at least.
    """
    if not is_main():
        return
    lines = best_first(table.values())
    report = {"made_from": made_from, "combinations": [asdict(made) for made in lines]}
    write_text_atomically(out / REPORT_NAME, json.dumps(report, indent=1))
    rows = [
        {
            "name": made.name,
            **made.settings,
            "status": made.status,
            **{name: made.scores.get(name) for scored in lines for name in scored.scores},
            **{f"untrained/{name}": made.untrained.get(name) for scored in lines for name in scored.untrained},
            **{f"{name}/queries": made.queries.get(name) for scored in lines for name in scored.queries},
            **{column: getattr(made, key) for column, key in _MEASURED.items()},
        }
        for made in lines
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text_atomically(out / TABLE_NAME, text.getvalue())
