"""The one training loop: step by step through a run, resumable to the bit on a CPU.

Whatever is trained (`onoma.training.course`), between steps the encoder is measured on development data, if there are
some, and the state of the run is written down.

While a run is unfinished its state lies in ``OUT.run`` (`onoma.training.run_folder`); the same call goes on from there.
Two sittings of one run see the same batches and the same dropout. Several processes (`onoma.training.distributed`) all
run this loop; the main one alone writes files and speaks, and where a decision depends on time it tells the others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, NoReturn

import torch

from onoma.artifacts import sha256_file, verify_artifact
from onoma.encoders.memory import keep_freed_memory, return_freed_memory
from onoma.errors import ArtifactError, TrainingError, first_line
from onoma.processors import machine
from onoma.training.checkpoints import CHECKPOINT_NAME, Progress, load_checkpoint, save_checkpoint
from onoma.training.course import Course
from onoma.training.distributed import broadcast, by_main, is_main, processes
from onoma.training.evaluating import Evaluation
from onoma.training.optimiser_step import Done
from onoma.training.planning import plan_steps
from onoma.training.report import TrainingReport, mean_loss, versions
from onoma.training.run_config import RunConfig
from onoma.training.run_folder import RUN_NAME, RunLog, begin_run, is_saved, planned_steps, unfinished_run
from onoma.training.settings import NamedSettings
from onoma.training.stopping import StoppedError, StopRequest
from onoma.training.trackers import Trackers, open_trackers
from onoma.training.watching import Watching
from onoma.types import Tell


def take_course(
    make: Callable[[Path, Tell], Course[Any, Done]], recipe: NamedSettings[Any], out: Path, watching: Watching[Done]
) -> TrainingReport:
    """Begin a run, or go on with it, to its end, and save what it has made.

    Args:
        make: Makes the course from the run folder and what is to be called with sentences worth telling.
        recipe: Its settings.
        out: Where the encoder is written; what lies there is replaced.
        watching: Who follows it.

    Raises:
        MismatchError: ``OUT.run`` belongs to other settings or data.
        TrainingError: the loss is not a number, or memory does not suffice.
    """
    keep_freed_memory()
    with processes(recipe.config.device), unfinished_run(out, recipe.config) as run, torch_as_it_was():
        tell = by_main(watching.get("on_event"))
        course = make(run, tell)
        sitting = _Sitting(course, recipe.origin, run, watching)
        with _memory_errors_in_words(course, run):
            sitting.train(watching.get("trackers", ()))
        report = broadcast(sitting.save(out) if is_main() else None)
    assert report is not None
    return report


@contextlib.contextmanager
def torch_as_it_was() -> Iterator[None]:
    """Give back what a course sets for the whole process: random numbers of the CPU, precision of products."""
    precision = torch.get_float32_matmul_precision()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(precision)


class _Sitting(Generic[Done]):
    """One sitting of a run: how far it is, and what it has come to."""

    def __init__(
        self,
        course: Course[Any, Done],
        recipe: dict[str, Any] | None,
        run: Path,
        watching: Watching[Done],
    ) -> None:
        self._course, self._evaluations, self._run = course, course.evaluations, run
        self._config: RunConfig = course.config
        self._recipe = recipe
        self._stop = StopRequest()
        self._on_step = self._stop.tolerating(by_main(watching.get("on_step")))
        self._on_evaluation = self._stop.tolerating(by_main(watching.get("on_evaluation")))
        self._tell = self._stop.tolerating(by_main(watching.get("on_event")))
        self._progress = self._stop.tolerating(by_main(watching.get("progress")))
        self._evaluations.progress = self._measuring
        self._phases = {"prepare": 0.0, "evaluate": 0.0}

    def train(self, trackers: Sequence[str]) -> None:
        """Begin the run, or go on with it, to its end; ``trackers`` by name."""
        self._total_steps = self._begin_or_recall()
        if self._config.warmup_steps > self._total_steps:
            self._tell(
                f"the learning rate does not reach its maximum: warmup_steps={self._config.warmup_steps:,}, and the "
                f"run has {self._total_steps:,} {'step' if self._total_steps == 1 else 'steps'}"
            )
        self._run_id = broadcast(sha256_file(self._run / RUN_NAME) if is_main() else "")
        progress = self._resume()
        self._steps_done, self._seconds_before, self._phases_before = progress.step, progress.seconds, progress.phases
        self._resumed_at = progress.step or None
        self._started = time.perf_counter()
        with (
            RunLog(self._run, done=progress.step, evaluations=progress.evaluations) as self._log,
            self._opened(trackers if is_main() else (), progress.step) as self._trackers,
        ):
            self._started = time.perf_counter()  # trackers may have taken half a minute
            self._checkpointed = progress.step, self._started
            with self._stop:
                self._steps()
            if self._steps_done > self._checkpointed[0]:
                self._checkpoint()  # saving can fail: a full disk, a kill

    def save(self, out: Path) -> TrainingReport:
        """Write the encoder with the weights that the recipe wants kept, unless that was done before a kill."""
        report = self._report()
        if self._is_whole(out):
            self._tell(f"{out} was saved already")
            return report
        if self._config.keep == "best":
            self._evaluations.apply_best()
            if report.saved_step == 0:
                self._tell("no evaluation was better than that before training: saving the weights as they were then")
        elif self._course.average is not None:
            self._course.average.apply()
        self._tell(f"saving {out}")
        self._course.optimiser.state.clear()  # it is in the checkpoint, and saving needs room of its own
        return_freed_memory()
        self._course.save(out, report)
        return report

    def _is_whole(self, out: Path) -> bool:
        """Whether this run has been saved: what was added since (a card, precisions) would be lost by saving again."""
        if not is_saved(self._run, out):
            return False
        try:
            verify_artifact(out)
        except ArtifactError:
            return False
        return True

    def _begin_or_recall(self) -> int:
        """Steps of the run; what it is, is written down if it is new."""
        course, config = self._course, self._config
        identity = {"config": config.model_dump(mode="json"), **course.identity(), **course.ran_on}
        self._base = str(identity["base"])
        known = broadcast(planned_steps(self._run, identity) if is_main() else None)
        total_steps = known or plan_steps(config, course.batches, course.step, course.training_names, self._evaluations)
        course.batches.end_at(total_steps * config.accumulation)
        if known is None and is_main():
            (self._run / CHECKPOINT_NAME).unlink(missing_ok=True)
            begin_run(self._run, identity, total_steps)
        return total_steps

    def _resume(self) -> Progress:
        """Put everything back to where the checkpoint was written, if there is one."""
        course = self._course
        progress = load_checkpoint(self._run, course.model, course.optimiser, run=self._run_id, parts=course.parts())
        if broadcast(progress) != progress:
            raise TrainingError(
                f"the processes do not see the same checkpoint in {self._run}. Let it lie on a disk that all machines "
                "share."
            )
        if progress is not None:
            self._evaluations.done = [Evaluation.from_json(line) for line in progress.evaluations]
            self._tell(f"resuming from step {progress.step:,} of {self._total_steps:,} ({self._run})")
        self._tell(course.about(self._total_steps))
        return progress or Progress(step=0, seconds=0.0)

    def _steps(self) -> None:
        course, config, stop = self._course, self._config, self._stop
        if self._steps_done == 0 and self._evaluations.done:
            first = self._evaluations.done[0]  # planning had to know how long that takes
            self._phases["evaluate"] += first.seconds
            self._seconds_before += first.seconds
            self._show(first)
        elif self._evaluations.due(self._steps_done, self._total_steps):
            self._measure()
            if self._steps_done:  # the run was stopped in it, and shall not do it a third time
                self._checkpoint()
            if stop.signal is not None:
                self._leave()
        course.model.train()
        while self._steps_done < self._total_steps and self._evaluations.reason_to_stop() is None:
            with self._clock("prepare"):
                course.batches.prepare(self._steps_done * config.accumulation, course.training_names)
            done = course.step(self._steps_done, self._total_steps)
            self._steps_done = done.step
            if course.average is not None:
                course.average.update()
            self._log.step(asdict(done))
            self._trackers.log(done.figures(), done.step)
            self._on_step(done)
            if self._evaluations.due(done.step, self._total_steps):
                self._measure()
            if stop.signal is not None:
                self._leave()
            if self._checkpoint_due():
                self._checkpoint()
        if reason := self._stopped_early():
            self._tell(f"stopped {reason}")

    def _measure(self) -> None:
        try:
            with self._clock("evaluate"):
                evaluation = self._evaluations.measure(self._steps_done)
        except StoppedError:
            self._leave()
        self._show(evaluation)

    def _measuring(self, done: int, total: int | None, what: str) -> None:
        self._progress(done, total, what)
        self._stop.check()

    def _leave(self) -> NoReturn:
        """As the run was asked to; an evaluation that is due and not done is the first thing of the next sitting."""
        if self._steps_done == 0:
            self._tell("stopped before the first step: the same command starts anew")
        else:
            if self._steps_done > self._checkpointed[0]:
                self._checkpoint()
            self._tell(
                f"stopped at step {self._steps_done:,} of {self._total_steps:,}, with a checkpoint in {self._run}"
            )
        raise self._stop.as_error() from None

    def _show(self, evaluation: Evaluation) -> None:
        self._log.evaluation(asdict(evaluation))
        self._trackers.log(evaluation.figures(), evaluation.step)
        self._tell(str(evaluation))
        self._on_evaluation(evaluation)

    def _checkpoint_due(self) -> bool:
        every = self._config.checkpoint_steps
        if every is not None and self._steps_done % every == 0:
            return True
        return time.perf_counter() - self._checkpointed[1] > self._config.checkpoint_minutes * 60

    def _checkpoint(self) -> None:
        """Always after the evaluation of the same step, unless the run is asked to stop before that is done."""
        if is_main():
            course = self._course
            self._log.sync()
            self._trackers.flush()  # first: what a checkpoint holds is not done again
            progress = Progress(self._steps_done, self._seconds(), self._evaluations.as_json(), self._all_phases())
            save_checkpoint(self._run, course.model, course.optimiser, progress, run=self._run_id, parts=course.parts())
        self._checkpointed = self._steps_done, time.perf_counter()

    def _seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._started

    def _all_phases(self) -> dict[str, float]:
        here = {**self._phases, **self._course.step.phases}
        return {name: seconds + self._phases_before.get(name, 0.0) for name, seconds in here.items()}

    def _stopped_early(self) -> str | None:
        reason = self._evaluations.reason_to_stop()
        if reason is None or self._steps_done == self._total_steps:
            return None
        return f"at step {self._steps_done:,} of {self._total_steps:,}: {reason}"

    def _report(self) -> TrainingReport:
        log, best = self._log.steps, self._evaluations.best
        ends = min(10, max(1, len(log) // 2))  # as many steps at either end as do not overlap
        return TrainingReport(
            run=self._run_id,
            steps=self._steps_done,
            planned_steps=self._total_steps,
            stopped_early=self._stopped_early(),
            seconds=self._seconds(),
            names_per_second=sum(line["names"] for line in log) / sum(line["seconds"] for line in log),
            first_loss=mean_loss(log[:ends]),
            last_loss=mean_loss(log[-ends:]),
            best={"step": best.step, "at_1": best.at_1} if best else None,
            saved_step=best.step if best and self._config.keep == "best" else self._steps_done,
            evaluations=self._evaluations.as_json(),
            resumed_at=self._resumed_at,
            recipe=self._recipe,
            config=self._config.to_publish(),
            ran_on=self._course.ran_on,
            machine={**machine(), "threads": torch.get_num_threads()},
            base=self._base,
            versions=versions(),
            data=self._course.about_data(),
            phases=self._all_phases(),
            log=log,
        )

    @contextlib.contextmanager
    def _opened(self, trackers: Sequence[str], steps_done: int) -> Iterator[Trackers]:
        settings = {**self._config.to_publish(), **self._course.ran_on}
        opened = open_trackers(trackers, self._run, settings, steps_done=steps_done, tell=self._tell)
        try:
            yield opened
        except BaseException:
            opened.close(finished=False)
            raise
        opened.close(finished=True)

    @contextlib.contextmanager
    def _clock(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._phases[phase] += time.perf_counter() - started


@contextlib.contextmanager
def _memory_errors_in_words(course: Course[Any, Any], run: Path) -> Iterator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # On a CPU torch raises a plain RuntimeError that only its text tells from others.
        is_spent = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(
            sign in str(error) for sign in ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED")
        )
        if not is_spent:
            raise
        raise TrainingError(
            f"memory does not suffice for {course.names_in_step} names in a step; remove {run} and begin anew with a "
            f"smaller {course.batch_setting}, or with chunk_names, which encodes fewer names of the batch at a time. "
            f"({first_line(error)})"
        ) from None
