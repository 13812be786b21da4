"""What every reader is given: where rejected rows go, how progress is told, what is worth a remark.

The rule for bad rows is in one place, `Reading.reject`: under "strict" the first one ends the import with file, line,
field, what was expected and what was found; under "skip" it is left out, counted and listed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias

import polars as pl

from onoma.errors import InputError, did_you_mean
from onoma.files.archives import SourceFile
from onoma.files.encodings import OTHERS
from onoma.types import Progress, no_progress

OnError: TypeAlias = Literal["strict", "skip"]

REJECTS = pl.Schema({"file": pl.String(), "line": pl.UInt32(), "reason": pl.String(), "text": pl.String()})
"""Of rows that were left out."""
_KEPT_TEXT = 500
_MOST_WAITING = 1 << 14
_SECONDS_BETWEEN_PROGRESS = 0.1


@dataclass(frozen=True)
class Check:
    """What must hold for every row.

    Attributes:
        holds: An expression; null counts as no.
        field: The column it is about.
        expected: What would be right.
        shown: The column to show of a row that fails; if it is another, an error tells what stands in both.
        problem: What is wrong with it.
    """

    holds: pl.Expr
    field: str | None
    expected: str
    shown: str
    problem: str = "not a value that this field can have"


@dataclass
class Reading:
    """One run of a reader."""

    on_error: OnError = "strict"
    progress: Progress = no_progress
    notes: dict[str, int] = field(default_factory=dict)
    """Counts of things that are no errors and still worth knowing, by description."""
    files: list[Path] = field(default_factory=list)
    """Files that were read, for the checksums in the manifest."""
    may_skip: bool = True
    """Whether the caller could choose "skip", which an error under "strict" then advises."""
    encoding: str | None = None
    """Of files that are read line by line (`onoma.files.encodings`); unset: UTF-8."""
    encoding_option: str | None = None
    """What a person writes before the name of the encoding, where it can be said, such as ``--encoding ``."""
    comment: str | None = None
    """What lines begin with that count as blank, in files that are read line by line; unset: there are none."""
    quotes: bool = True
    """Whether an error shows the row that it is about; unset for mentions, which may be of patients, as errors end in
    logs: file, line and problem are told."""
    _rejects: list[pl.DataFrame] = field(default_factory=list)
    _waiting: list[tuple[str, int | None, str, str]] = field(default_factory=list)
    """Rows of it that came one by one, of which a table each would take a hundred times as long."""
    _last_progress: float = 0.0

    @property
    def how_to_decode(self) -> str:
        """What to do about bytes that are no text."""
        if self.encoding is not None:
            return "name the encoding that the file is in, or get it again"
        if self.encoding_option is None:
            return "convert the file to UTF-8"
        return (
            f"name its encoding, e.g. {self.encoding_option}cp1252 (Western Europe; {OTHERS}), look at some names "
            "afterwards, or convert the file to UTF-8"
        )

    def note(self, what: str, count: int) -> None:
        """Add to the count of something worth knowing."""
        if count:
            self.notes[what] = self.notes.get(what, 0) + count

    def tell(self, done: int, total: int | None, what: str, *, last: bool = False) -> None:
        """Tell progress, but not more than ten times a second."""
        now = time.monotonic()
        if last or now - self._last_progress >= _SECONDS_BETWEEN_PROGRESS:
            self._last_progress = now
            self.progress(done, total, what)

    def tell_share(self, done: int, share: float, what: str) -> None:
        """Tell progress by the share of the file that was read, from which follows how much there is in all."""
        self.tell(done, max(done, round(done / max(share, 1e-9))), what)

    def each(self, files: Sequence[SourceFile], what: str) -> Iterator[SourceFile]:
        """Each of several files to be read; until the next one, what its reader tells becomes bytes of all files."""
        sizes = [file.size() for file in files]
        progress, before, total = self.progress, 0, sum(sizes)
        try:
            for file, size in zip(files, sizes, strict=True):
                self.progress = _as_bytes(progress, before, size, total, what)
                yield file
                before += size
        finally:
            self.progress = progress

    def reject(
        self,
        problem: str,
        *,
        path: str | Path,
        line: int | None = None,
        text: str = "",
        field: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        fix: str | None = None,
    ) -> None:
        """Raise under "strict"; leave out, count and list under "skip".

        Args:
            problem: What is wrong.
            path: The file.
            line: 1-based; for Parquet the row.
            text: The row, as far as it is text.
            field: Column or tag.
            expected: What would have been right.
            found: What stood there; unset: ``text``.
            fix: What to do besides leaving the row out.

        Raises:
            InputError: under "strict".
        """
        shown = _printable(text)
        if self.on_error == "strict":
            self._refuse(line, shown, problem, path=path, field=field, expected=expected, found=found, fix=fix)
        self._waiting.append((Path(path).name, line, _reason(problem, field, expected), shown[:_KEPT_TEXT]))
        if len(self._waiting) >= _MOST_WAITING:
            self._gather()

    def reject_rows(
        self,
        rows: pl.DataFrame,
        problem: str,
        *,
        path: str | Path,
        field: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        fix: str | None = None,
    ) -> None:
        """The same for many rows with the same problem: columns ``line`` and ``text``, in the order of the file."""
        if rows.is_empty():
            return
        if self.on_error == "strict":
            line, text = rows.select("line", "text").row(0)
            self._refuse(line, text, problem, path=path, field=field, expected=expected, found=found, fix=fix)
        self._gather()
        self._rejects.append(
            rows.select(
                file=pl.lit(Path(path).name),
                line=pl.col("line").cast(pl.UInt32),
                reason=pl.lit(_reason(problem, field, expected)),
                text=pl.col("text").str.slice(0, _KEPT_TEXT),
            )
        )

    def _refuse(
        self,
        line: int | None,
        text: str,
        problem: str,
        *,
        path: str | Path,
        field: str | None,
        expected: str | None,
        found: str | None,
        fix: str | None,
    ) -> NoReturn:
        skip = "leave such rows out with on_error='skip' (--on-error skip); they are counted and listed"
        ways = [fix, skip if self.may_skip else None if fix else "correct the line"]
        raise InputError(
            problem,
            path=path,
            line=line,
            field=field,
            expected=expected,
            found=found if found is not None else self._shown(text),
            fix=", or ".join(way for way in ways if way),
        )

    def _gather(self) -> None:
        if self._waiting:
            self._rejects.append(pl.DataFrame(self._waiting, schema=REJECTS, orient="row"))
            self._waiting.clear()

    def keep_valid(
        self, rows: pl.DataFrame, checks: Sequence[Check], *, path: str | Path, line_column: str = "line"
    ) -> pl.DataFrame:
        """Keep the rows that pass every check, and reject each other one for the first that it fails.

        Args:
            rows: With a column of the numbers of lines.
            checks: What must hold.
            path: The file.
            line_column: What that column is called.

        Raises:
            InputError: under "strict", for the first row that fails a check.
        """
        if rows.select(pl.all_horizontal(check.holds.fill_null(False) for check in checks).all()).item():
            return rows
        failed = rows.select(
            pl.coalesce(
                pl.when(check.holds.fill_null(False)).then(None).otherwise(pl.lit(number))
                for number, check in enumerate(checks)
            )
        ).to_series()
        is_bad = failed.is_not_null()
        for number in failed.drop_nulls().unique(maintain_order=True):  # by the first row of each: strict ends there
            check = checks[number]
            bad = rows.filter(failed.eq_missing(number))
            shown = bad.select(line=line_column, text=pl.col(check.shown).fill_null(""))
            found = _found(bad, check) if self.quotes else None
            self.reject_rows(shown, check.problem, path=path, field=check.field, expected=check.expected, found=found)
        return rows.filter(~is_bad)

    def _shown(self, text: str) -> str | None:
        if not text.strip():
            return "nothing"
        return _on_one_line(text) if self.quotes else None

    @property
    def rejects(self) -> pl.DataFrame:
        """What was rejected: file, line, reason, text."""
        self._gather()
        return pl.concat([pl.DataFrame(schema=REJECTS), *self._rejects])


def first_of_each(
    rows: pl.DataFrame, key: str, *, place: Sequence[str] = ("line",)
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Part rows whose key occurred before from the others.

    Args:
        rows: In the order of the file.
        key: What should occur once.
        place: Columns that say where a row stands, not what it says.

    Returns:
        The first row of each key; later rows that say something else than the first; the number of those that say the
        same.
    """
    is_first = rows[key].is_first_distinct()
    if is_first.all():
        return rows, rows.clear(), 0
    first, again = rows.filter(is_first), rows.filter(~is_first)
    content = [name for name in rows.columns if name not in place]
    differing = again.join(first, on=content, how="anti", nulls_equal=True, maintain_order="left")
    return first, differing, len(again) - len(differing)


def check_chosen(
    field: str, wanted: Iterable[str], there: Iterable[str], *, path: str | Path, among: str = "the release"
) -> None:
    """Refuse a filter that names what the source does not have: it would leave everything out, unnoticed.

    Args:
        field: The option.
        wanted: What it names.
        there: What there is.
        path: The source.
        among: What of it was looked at.

    Raises:
        InputError: with the nearest of what is there.
    """
    known = sorted(set(there))
    for word in wanted:
        if word not in known:
            raise InputError(
                f"{among} has nothing of '{word}'.{did_you_mean(word, known)}".rstrip("."),
                path=path,
                field=field,
                expected=f"some of {', '.join(known[:40])}" if known else f"no {field}, as {among} has none",
            )


def _as_bytes(progress: Progress, before: int, size: int, total: int, what: str) -> Progress:
    def tell(done: int, of: int | None, _: str) -> None:
        progress(before + (size * done // of if of else 0), total, what)

    return tell


def _found(rows: pl.DataFrame, check: Check) -> str | None:
    """What stands in the field in the first of the rows, where another column is shown; ``None``: what is shown."""
    column, *others = check.holds.meta.root_names()
    is_text = rows.schema[column] in (pl.String, pl.List(pl.String))
    if check.field is None or check.shown in (column, *others) or not is_text:
        return None
    value, shown = rows.select(column, check.shown).row(0)
    text = ", ".join(value) if isinstance(value, list) else str(value or "")
    return f"{_printable(text)[:30].strip() or 'nothing'} (in the row of '{shown[:30]}')"


def _reason(problem: str, field: str | None, expected: str | None) -> str:
    return problem + (f"; field {field}" if field else "") + (f"; expected {expected}" if expected else "")


def _printable(text: str) -> str:
    return text[:_KEPT_TEXT].encode("utf-8", "backslashreplace").decode()


def _on_one_line(text: str) -> str:
    """Text on one line; what stands there escaped already is not escaped again."""
    return repr(text)[1:-1].replace("\\\\", "\\")
