"""How the command line shows things: tables on standard output, progress and remarks on standard error."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from onoma.cli.printing import printable
from onoma.quantities import quantity

if TYPE_CHECKING:
    import polars as pl

    from onoma.encoders import Encoder
    from onoma.linking.settings import LinkerSettings
    from onoma.training.evaluating import Evaluation
    from onoma.training.optimiser_step import DoneStep
    from onoma.training.report import TrainingReport
    from onoma.training.watching import Watching

_NO_SCREEN = 1 << 16
"""Columns where standard output is no terminal: a row of a table is a line of a file, to be found by grep."""


class _Screen(Console):
    """What is printed on it may come from a file, and has the terminal obey nothing; lines stay lines."""

    def render_str(self, text: str, *args: Any, **settings: Any) -> Text:
        return super().render_str(printable(text, keep="\n\t"), *args, **settings)


out = _Screen(
    markup=False,
    highlight=False,
    emoji=False,
    soft_wrap=True,
    width=None if sys.stdout is not None and sys.stdout.isatty() else _NO_SCREEN,
)
err = _Screen(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _is_watched() -> bool:
    """Whether progress can be drawn over itself: a log is no screen, though variables (FORCE_COLOR) ask for colours."""
    return err.is_terminal and sys.stderr is not None and sys.stderr.isatty()


_RECENT_STEPS = 20
"""Steps whose mean the training bar shows."""
_LINE_SECONDS = 30.0
"""Between lines of progress where there is no terminal."""
_LINES_SHOWN = 20
"""Of those that were left out."""
_CODES_SHOWN = 5
"""Of concepts that were left out."""
LARGE_VECTORS = 1 << 29
"""Bytes: some 350,000 vectors of 384 numbers in single precision."""
_FORESEEABLE = 0.01
"""Share of the work from which on these say how long the rest will take."""


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Sequence[str] = (),
    whole: Sequence[str] = (),
) -> None:
    """Print a table.

    Args:
        columns: Their names.
        rows: A cell for each.
        numeric: Columns set flush right.
        whole: Columns whose cells, such as codes, are not broken, unless they take more than a quarter of the terminal.
    """
    made = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        longest = max((len(row[place]) for row in rows), default=0)
        made.add_column(
            column,
            justify="right" if column in numeric else "left",
            overflow="fold",
            min_width=min(longest, out.width // 4) if column in whole else None,
        )
    for row in rows:
        made.add_row(*(plain(cell) for cell in row))
    out.print(made, soft_wrap=False)


def plain(text: str) -> Text:
    """Text as it is: brackets are no markup, control characters are shown as U+FFFD and do nothing."""
    return Text(printable(text))


def result(found: object, record: object | None = None, *, as_json: bool) -> None:
    """Print what a command found.

    Args:
        found: In words it is for people.
        record: What stands for it in JSON; unset: itself.
        as_json: Which of both is printed.
    """
    if as_json:
        json_document(found if record is None else record)
    else:
        out.print(str(found))


def json_document(record: object) -> None:
    """Print what a command has to say as JSON, over several lines: all that it writes to standard output.

    A number that is not finite, as a loss may be, is null: JSON has no word for it.
    """
    finite = json.loads(json.dumps(record, default=_as_simple), parse_constant=lambda _: None)
    typer.echo(_as_json(finite, indent=2))


def json_line(record: object) -> None:
    """Print one of many records as a line of JSON."""
    typer.echo(_as_json(record, indent=None))


def _as_json(record: object, *, indent: int | None) -> str:
    """Letters as they are, or escaped where the output has no UTF-8 to write them in; never in colours."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    is_unicode = codecs.lookup(encoding).name == "utf-8"
    return json.dumps(record, ensure_ascii=not is_unicode, indent=indent, default=_as_simple, allow_nan=False)


def _as_simple(value: object) -> object:
    """What JSON has no word for: paths and reports."""
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no form in JSON")


@contextlib.contextmanager
def remarks_alone(*, if_so: bool = True) -> Iterator[None]:
    """Leave out what is meant for people on standard output, if it is told as JSON; remarks are shown all the same."""
    before, out.quiet = out.quiet, out.quiet or if_so
    try:
        yield
    finally:
        out.quiet = before


def in_words(field: str) -> str:
    """How a person reads the name of a field: ``in_words("n_concepts")`` is ``"concepts"``."""
    return field.removeprefix("n_").replace("_", " ")


def remark(text: str) -> None:
    """A line for the person at the terminal, not part of the result."""
    err.print(text)


def names_left_out(n: int, n_names: int) -> None:
    """That names are not learned from, as mentions are written so."""
    remark(f"{n:,} of {n_names:,} names are spelt like mentions to leave out, and are not learned from")


def left_out(rejects: pl.DataFrame, *, kept_in: Path | None = None) -> None:
    """The lines that were left out as files were read (`Reading.rejects`), the first of many.

    Args:
        rejects: Columns ``file``, ``line``, ``reason``.
        kept_in: A file that lists them all.
    """
    for file, line, reason in rejects.select("file", "line", "reason").head(_LINES_SHOWN).rows():
        remark(f"{file}, line {line}: left out: {reason}")
    if (more := len(rejects) - _LINES_SHOWN) > 0:
        remark(f"and {quantity(more, 'line')} more" + (f", all in {kept_in}" if kept_in else ""))


def vectors_cut_untrained(encoder: Encoder) -> None:
    """Remark on vectors of which only the first numbers are kept, where the encoder was not trained for that."""
    folder = encoder.folder
    if folder.dimensions is not None and folder.dimensions not in folder.trained_dimensions:
        remark(
            f"nothing says that {encoder.name} was trained for vectors of {folder.dimensions} numbers (matryoshka): "
            "much of what it knows may be lost"
        )


def unread_names(linker: Path) -> None:
    """Remark on a linker's names whose vectors find nothing, as the encoder does not know their signs."""
    from onoma.artifacts import read_manifest

    config = read_manifest(linker).config
    if config.get("n_unread"):
        sparse = "" if config["ngrams"] else " (build it with --sparse)"
        names = f"{config['n_unread']:,} of {quantity(config['n_texts'], 'distinct name')}"
        remark(
            f"{names} are in characters that the encoder does not know: its vectors do not find them. Look-up does, "
            f"and so do character n-grams{sparse}"
        )


def many_compared(linker: Path) -> None:
    """Remark on a linker so large that comparing a mention with every vector is what takes its time."""
    from onoma.artifacts import read_manifest
    from onoma.files.sizes import size_in_words
    from onoma.indexes.vector_store import VECTORS_FILE

    index = read_manifest(linker).config.get("index")
    if index is None or index["kind"] != "exact" or (size := (linker / VECTORS_FILE).stat().st_size) < LARGE_VECTORS:
        return
    remark(
        f"each mention is compared with all vectors, {size_in_words(size)}; with --index sign-bits it is compared with "
        "a few thousand of them, and answered many times as fast"
    )


def nameless_concepts(linker: Path, terminology: Path) -> None:
    """Remark on active concepts of a linker's terminology that are never an answer, for want of a name."""
    from onoma.artifacts import read_manifest
    from onoma.linking.dictionary import NameDictionary
    from onoma.linking.dictionary_building import nameless_concepts
    from onoma.terminology import Terminology

    config = read_manifest(linker).config
    if not config["n_nameless"]:
        return
    names = NameDictionary.open(linker, normalisation=config["normalisation"])
    codes = nameless_concepts(Terminology.open(terminology), names)
    more = ", ..." if len(codes) > _CODES_SHOWN else ""
    remark(
        f"{quantity(len(codes), 'active concept')} will never be an answer, for want of a name: all names are "
        f"suppressed, or blank after normalisation {config['normalisation']} ({', '.join(codes[:_CODES_SHOWN])}{more})"
    )


def calibration_out_of_force(settings: LinkerSettings, stages: Sequence[str]) -> None:
    """Remark on a linker's confidences where they do not hold for the stages that are on, and so are not given."""
    from onoma.linking.confidence_metrics import threshold_in_words

    if settings.calibration is None or tuple(stages) == settings.calibrated_stages:
        return
    least = settings.no_concept_below
    withheld = "" if least is None else f", and nothing is 'no such concept' below {threshold_in_words(least)}"
    remark(
        f"no confidences are given{withheld}: they were learned for the stages "
        f"{', '.join(settings.calibrated_stages)} (onoma linker tune or calibrate learns them anew)"
    )


def confidences_under_filters(settings: LinkerSettings, stages: Sequence[str] | None) -> None:
    """Remark on confidences that were learned among all concepts, where some are left out."""
    if settings.calibration is not None and tuple(stages or settings.stages) == settings.calibrated_stages:
        remark(
            "confidences were learned without filters: if a filter leaves out the right concept, the next best one "
            "seems more certain than it is"
        )


@contextlib.contextmanager
def progress_bar(label: str, unit: str, **units: str) -> Iterator[Callable[..., None]]:
    """A bar with rate and time left; yields ``update(done, total, what=label)``.

    Where standard error is no terminal it gets a line each half minute instead. With the unit "MB" bytes are counted.
    Others of single stages are given by their labels.
    """
    scale, decimals, counts = (1e6, 1, DownloadColumn()) if unit == "MB" else (1, 0, MofNCompleteColumn())
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        counts,
        TextColumn("{task.fields[rate]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not _is_watched(),
    )
    last_line = time.monotonic()
    stage: str | None = None
    started = before = 0.0
    with bar:
        task = bar.add_task(label, total=None, rate="")

        def update(done: int, total: int | None = None, what: str | None = None) -> None:
            nonlocal last_line, stage, started, before
            now = time.monotonic()
            if (what or label) != stage:
                # What is done when a stage first says so may have been done by an earlier run.
                stage, started, before = what or label, now, done
            elapsed, counted_in = now - started, units.get(stage, unit)
            rate = f"{(done - before) / scale / elapsed:,.{decimals}f} {counted_in}/s" if elapsed > 1 else ""
            bar.update(task, completed=done, total=total, description=stage, rate=rate)
            if not _is_watched() and now - last_line >= _LINE_SECONDS:
                last_line = now
                counted = f"{done / scale:,.{decimals}f}" + (f" of {total / scale:,.{decimals}f}" if total else "")
                left = _left(elapsed, done - before, done, total)
                remark(_line(f"{stage}  {counted} {counted_in}", rate, left))

        yield update


def _left(elapsed: float, done_here: float, done: int, total: int | None) -> float | None:
    """Seconds that the rest will take, once there is something to judge it by."""
    if not total or done_here <= 0 or done_here < _FORESEEABLE * (total - done + done_here):
        return None
    return elapsed * (total - done) / done_here


def _line(counted: str, rate: str, left: float | None) -> str:
    return "  ".join(filter(None, [counted, rate, "" if left is None else f"{duration(left)} left"]))


def duration(seconds: float) -> str:
    """``duration(75)`` is ``"1 min 15 s"``; from an hour on there are no seconds."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def training_report(report: TrainingReport, encoder: Path, *, as_json: bool = False) -> None:
    """What a finished run came to, in a line of the result or as JSON."""
    if as_json:
        json_document({"path": encoder, **report.figures()})
        return
    measured = {evaluation["step"]: evaluation["at_1"] for evaluation in report.evaluations}
    saved, best = measured.get(report.saved_step), report.best
    score = "" if saved is None else f", acc@1 {saved:.4f}"
    if saved is not None and report.saved_step != report.steps:
        score += f" at step {report.saved_step:,}, which is saved"
    if best is not None and (saved is None or best["at_1"] > saved):
        score += f"; the best was {best['at_1']:.4f} at step {best['step']:,}, which keep=best would have saved"
    out.print(
        f"{encoder}: trained {quantity(report.steps, 'step')} in {duration(report.seconds)} "
        f"({report.names_per_second:,.0f} names/s), loss {report.first_loss:.3f} -> {report.last_loss:.3f}{score}",
    )


@contextlib.contextmanager
def training_bar(trackers: Sequence[str] = ()) -> Iterator[Watching[Any]]:
    """A bar for training: names/s, loss, latest development score, what else a step has to say, time left.

    It, remarks and ``trackers`` are given as the keywords that trainers take.
    What is done before the first step and in evaluations has its rate and time left. Where standard error is no
    terminal, a line with the same after the first step, every half minute, and after the last, unless training stops
    early.
    """
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=err,
        transient=True,
        disable=not _is_watched(),
    )
    recent: deque[DoneStep] = deque(maxlen=_RECENT_STEPS)
    score = ""
    begun: tuple[int, float] | None = None
    last_line = time.monotonic()
    stage, started, before = "", 0.0, 0
    with bar:
        task = bar.add_task("preparing", total=None, figures="", left="")

        def on_progress(done: int, total: int | None = None, what: str | None = None) -> None:
            nonlocal last_line, stage, started, before
            now, what = time.monotonic(), what or "preparing"
            if what != stage or done < before:
                stage, started, before = what, now, done
            elapsed = now - started
            rate = f"{(done - before) / elapsed:,.0f}/s" if elapsed > 1 else ""
            seconds = _left(elapsed, done - before, done, total)
            left = "" if seconds is None else f"{duration(seconds)} left"
            bar.update(task, description=what, completed=done, total=total, figures=rate, left=left)
            if not _is_watched() and now - last_line >= _LINE_SECONDS:
                last_line = now
                remark(_line(f"{what}  {done:,}" + (f" of {total:,}" if total else ""), rate, seconds))

        def on_evaluation(evaluation: Evaluation) -> None:
            nonlocal score
            score = f"  acc@1 {evaluation.at_1:.4f}"

        def on_step(report: DoneStep) -> None:
            nonlocal last_line, stage, begun
            recent.append(report)
            stage = ""
            now, is_first = time.monotonic(), begun is None
            if begun is None:  # what the first step takes no other does
                begun = (report.step, now)
            seconds = sum(step.seconds for step in recent)
            loss = sum(step.loss for step in recent) / max(1, sum(step.names > 0 for step in recent))
            figures = (
                f"{sum(step.names for step in recent) / seconds:,.0f} names/s  loss {loss:.3f}{score}  "
                f"{report.in_words()}"
            )
            # Of all steps since the first one here, with evaluations and whatever else lies between them.
            each = (now - begun[1]) / (report.step - begun[0]) if report.step > begun[0] else report.seconds
            left = f"{duration((report.total_steps - report.step) * each)} left"
            bar.update(
                task,
                description="training",
                completed=report.step,
                total=report.total_steps,
                figures=figures,
                left=left,
            )
            is_told = is_first or now - last_line >= _LINE_SECONDS or report.step == report.total_steps
            if not _is_watched() and is_told:
                last_line = now
                remark(f"step {report.step:,} of {report.total_steps:,}  {figures}  {left}")

        yield {
            "trackers": trackers,
            "on_step": on_step,
            "on_evaluation": on_evaluation,
            "on_event": remark,
            "progress": on_progress,
        }
