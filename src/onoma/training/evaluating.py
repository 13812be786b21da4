"""When an encoder under training is measured, which of its weights were the best, and when to stop."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from onoma.errors import ConfigError, check_several
from onoma.training.averaging import WeightAverage, put_weights, trained_weights
from onoma.training.distributed import broadcast
from onoma.training.measuring import EncodeRows, Scores, WatchedEncodeRows
from onoma.training.run_config import RunConfig
from onoma.types import CountProgress, Progress, no_count, no_progress

HIDE_OR_GIVE = (
    "hide some synonyms from training (development_synonyms, --hide N) or give a file of queries (development, "
    "--development FILE)"
)
"""Where development data of synonyms come from."""

GIVE_WITH_TERMINOLOGY = (
    "give a file of queries and the terminology to look for them in (development and development_terminology, "
    "--development FILE --development-terminology DIR)"
)
"""Where they come from when trained on pairs that were made before, from which nothing can be hidden."""

_EVALUATIONS = 10
"""In a run, besides the one before it, unless the recipe says otherwise."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One measurement; handed to ``on_evaluation`` and written to the run's ``evaluations.jsonl``."""

    step: int
    """Steps done; 0 is before training."""
    at_1: float
    """Mean acc@1 over the development sets: what decides."""
    sets: dict[str, Scores]
    """By the name of the set."""
    seconds: float
    """Time that it took."""

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Evaluation:
        """From what `dataclasses.asdict` makes of it."""
        sets = {name: Scores(**scores) for name, scores in line["sets"].items()}
        return cls(step=line["step"], at_1=line["at_1"], sets=sets, seconds=line["seconds"])

    def figures(self) -> dict[str, float]:
        """For trackers: ``NAME/acc@1`` and so on, and the mean that decides."""
        values = {"development/acc@1": self.at_1}
        for name, scores in self.sets.items():
            values |= {f"{name}/acc@1": scores.at_1, f"{name}/acc@5": scores.at_5, f"{name}/mrr": scores.mrr}
        return values

    def __str__(self) -> str:
        sets = "; ".join(f"{name} acc@1 {s.at_1:.4f}, acc@5 {s.at_5:.4f}" for name, s in self.sets.items())
        return f"step {self.step:,}: {sets} ({self.seconds:,.1f} s)"


class NamedMeasure(Protocol):
    """What a model is measured by; `onoma.training.measuring.Measure` for encoders."""

    name: str

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that the scores depend on besides the model."""

    def about(self) -> dict[str, Any]:
        """What it is, for ``train.json``."""

    def __call__(self, encode: EncodeRows, progress: CountProgress = no_count) -> Scores:
        """How well the queries of one set are answered."""


class Evaluations:
    """The evaluations of a run, and the weights of the best.

    The best is the one with the highest mean acc@1 over the development sets, of equal ones the earliest. With a moving
    average it is the average that is measured and kept.

    Args:
        config: When to measure, what to keep, when to stop.
        measures: The development sets; none means that nothing is measured.
        encode: The encoder, see `onoma.training.measuring.WatchedEncodeRows`.
        model: Whose weights are kept.
        average: Of its weights, if there is one.
        interval: Steps between evaluations where the recipe does not say; unset: a tenth of the run.
        together: Measures all sets at once, where what is chosen by them is one thing for all; unset: one by one.

    Raises:
        ConfigError: a setting needs development data and there are none, or two sets have one name.
    """

    def __init__(
        self,
        config: RunConfig,
        measures: Sequence[NamedMeasure],
        encode: WatchedEncodeRows,
        model: nn.Module,
        average: WeightAverage | None,
        *,
        interval: int | None = None,
        together: Callable[[EncodeRows], dict[str, Scores]] | None = None,
    ) -> None:
        check_development(config, [measure.name for measure in measures])
        self._config, self._measures, self._encode, self._average = config, measures, encode, average
        self._together = together
        self._trained = trained_weights(model)
        self._interval = config.evaluate_steps or interval
        self._kept: dict[str, Tensor] = {}
        self.done: list[Evaluation] = []
        """So far, over all sittings."""
        self.progress: Progress = no_progress
        """Called with (done, total, what) as the model is measured; what it raises leaves the evaluation undone."""

    @property
    def best(self) -> Evaluation | None:
        """The best so far; None before the first."""
        return max(self.done, key=lambda evaluation: evaluation.at_1, default=None)  # of equal ones the first

    @property
    def wanted(self) -> bool:
        """Whether there is anything to measure on."""
        return bool(self._measures)

    def due(self, step: int, total_steps: int) -> bool:
        """Whether to measure after so many steps: before the first step, after the last, and regularly between."""
        if not self._measures or (self.done and self.done[-1].step >= step):
            return False
        interval = self._interval or math.ceil(total_steps / _EVALUATIONS)
        return step % interval == 0 or step == total_steps

    def measure(self, step: int) -> Evaluation:
        """Measure the encoder as it is after so many steps; keep its weights if they are the best and shall be kept."""
        started = time.perf_counter()
        encode: EncodeRows = partial(self._encode, progress=self._counting("measuring"))
        with self._average.in_use() if self._average else contextlib.nullcontext():
            if self._together is not None:
                sets = self._together(encode)
            else:
                sets = {measure.name: measure(encode, self._counting("ranking")) for measure in self._measures}
            at_1 = sum(scores.at_1 for scores in sets.values()) / len(sets)
            done = broadcast(Evaluation(step, at_1, sets, round(time.perf_counter() - started, 3)))
            self.done.append(done)
            if self._config.keep == "best" and self.best is done:
                self._kept = {name: weight.detach().cpu().clone() for name, weight in self._trained.items()}
        return done

    def _counting(self, what: str) -> CountProgress:
        return lambda done, total: self.progress(done, total, what)

    def reason_to_stop(self) -> str | None:
        """Why training should not go on; None while it should."""
        best = self.best
        if self._config.patience is None or best is None:
            return None
        since = len(self.done) - 1 - self.done.index(best)
        if since < self._config.patience:
            return None
        what = "the last evaluation was" if since == 1 else f"the last {since} evaluations were"
        return f"{what} no better than acc@1 {best.at_1:.4f} of step {best.step:,}"

    def cost(self, seconds_each: float) -> tuple[float, float]:
        """Seconds that the evaluations of a run take whatever its length, and those for each of its steps."""
        if self._interval is not None:
            return seconds_each, seconds_each / self._interval
        return (1 + _EVALUATIONS) * seconds_each, 0.0

    def apply_best(self) -> None:
        """Give the model the weights of the best evaluation for good."""
        put_weights(self._trained, self._kept)

    def state(self) -> dict[str, Tensor]:
        """The kept weights; what was measured is in the checkpoint's `Progress`."""
        return dict(self._kept)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        self._kept = dict(state)

    def as_json(self) -> list[dict[str, Any]]:
        """What was measured, for files."""
        return [asdict(evaluation) for evaluation in self.done]


def check_development(
    config: RunConfig,
    names: Sequence[str],
    *,
    fix: str = "give a file of mentions (development, --development FILE)",
) -> None:
    """Refuse settings that need development data where there are none, and sets that cannot be told apart.

    Args:
        config: When to measure, what to keep, when to stop.
        names: Of the sets.
        fix: Where such data come from.

    Raises:
        ConfigError: as it says.
    """
    given = {"keep=best": config.keep == "best", "patience": config.patience, "evaluate_steps": config.evaluate_steps}
    needing = [name for name, is_set in given.items() if is_set]
    if needing and not names:
        raise ConfigError(
            f"{' and '.join(needing)} need{'s' if len(needing) == 1 else ''} development data to measure on: {fix}."
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"two development sets are called '{twice[0]}'; give each a name of its own.")
    if len(names) > 1 and "development" in names:
        raise ConfigError("'development' is what the mean over all development sets is called: rename that one.")


def check_development_files(config: RunConfig, files: Sequence[str | Path], dictionary: object) -> None:
    """The same as `check_development` for files of mentions, and that there are some to look for in the dictionary.

    Args:
        config: See there.
        files: Of mentions.
        dictionary: Where they are looked for, if that is given (``development_dictionary``).

    Raises:
        ConfigError: as it says.
        InputError: ``files`` is one path.
    """
    check_several(files, "development")
    if dictionary is not None and not files:
        raise ConfigError("development_dictionary is where development files are looked for, and there are none.")
    check_development(config, [Path(file).name for file in files])
