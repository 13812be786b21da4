"""Map a table: every row of a file linked, written to another file."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from onoma._version import __version__
from onoma.artifacts import ensure_file_writable, is_same, sha256_file, write_file
from onoma.artifacts.files import ensure_free
from onoma.errors import ConfigError, InputError, checked_path, one_of, whole_number
from onoma.files.encodings import checked_encoding
from onoma.files.table_rows import NO_ENCODING, check_is_table
from onoma.linking import Linker
from onoma.linking.asking import Asking
from onoma.linking.links import checked_top_k
from onoma.linking.mentions import Preparation
from onoma.mapping import collecting, parts
from onoma.mapping.answers import ANSWER_TYPES, AnswerFiles, link_task
from onoma.mapping.collecting import collect_mentions
from onoma.mapping.json_tables import JsonLinesTable
from onoma.mapping.keyed_texts import KeyedTexts
from onoma.mapping.outputs import FORMATS, answered, check_cells, check_ids, check_types, join_parts, write_part
from onoma.mapping.parquet_tables import ParquetTable
from onoma.mapping.parts import UNHELD, InputTable, Wanted, parts_of, slices
from onoma.mapping.process_pool import link_in_processes
from onoma.mapping.ray_engine import check_ray, link_on_ray
from onoma.mapping.text_tables import Quoting, TextTable
from onoma.mapping.work_folder import WorkFolder
from onoma.mapping.work_records import Counts, ReadInput, Settings, WrittenPart
from onoma.types import Progress, no_progress

Engine: TypeAlias = Literal["local", "ray"]
"""Where mentions are linked: in processes of this machine, or on a Ray cluster."""
_INPUT_FORMATS = (".csv", ".tsv", ".parquet", ".jsonl")


@dataclass(frozen=True)
class MapReport(Counts):
    """What became of a table: its counts, and how long it took.

    Attributes:
        no_concept_below: Confidence below which the linker, as it was tuned, gives no link; unset: it always does.
        development_confidence: What ``mean_confidence`` is on the mentions that the linker was calibrated on; if it is
            far from that, the table's mentions are unlike them. Unset under filters too.
        answers_nil: Its cross-encoder may answer that no concept is meant.
        seconds: That this run took.
        linker_fingerprint: Of what the answers depend on.
        input_sha256: Of the input.
        onoma: Version.
    """

    no_concept_below: float | None
    development_confidence: float | None
    answers_nil: bool
    seconds: float
    linker_fingerprint: str
    input_sha256: str
    onoma: str


def map_table(
    linker: str | Path,
    input: str | Path,
    output: str | Path,
    *,
    column: str,
    context: str | None = None,
    encoding: str = "utf-8",
    quoting: Quoting = "auto",
    top_k: int = 1,
    answer_prefix: str = "",
    preparation: Preparation | None = None,
    asking: Asking | None = None,
    workers: int | None = None,
    engine: Engine = "local",
    address: str | None = None,
    database: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> MapReport:
    """Link a column of a table and write the table with the answers to another file.

    Every row and every column is kept, in order. The answers' columns come after them: ``concept_id``,
    ``preferred_name``, ``matched_name``, ``score``; ``confidence``, if the linker is calibrated; ``rank``, if ``top_k``
    is above 1. A row with several links becomes as many rows, best first. A row without any is kept, with nulls in
    these columns: its mention is missing, blank, or of no use to the linker, or the linker was tuned to withhold
    uncertain answers.

    With a ``preparation``, the first of these columns is ``read_as``: what was linked in place of the mention, null if
    that is the mention itself. A composite mention that was split has the rows of its parts; a part without a link has
    one row.

    Memory is bounded whatever the size of the table, and each distinct mention (with its context, if given) is linked
    once in the whole run.
    Until the output is complete, finished work is kept in ``.OUTPUT.map`` beside it. A run that was stopped, however,
    resumes from there when it is called again, and its output is the same to the byte.

    Args:
        linker: A linker's folder.
        input: ``.csv``, ``.tsv`` (all columns are text; semicolons may separate them too), ``.parquet``, ``.jsonl``;
            all but Parquet may be gzip (``.csv.gz``).
        output: ``.parquet``, ``.csv``, ``.tsv``, ``.jsonl``.
        column: The column with the mentions.
        context: The column with the text around each mention, for a cross-encoder that reads it, and for the short
            forms that it defines.
        encoding: Of an input that is text, such as ``cp1252`` or ``utf-16``; the output is UTF-8.
        quoting: Whether cells of an input that is text may be in double quotes; "auto": unless tabs separate them.
        top_k: Links per mention, at most, or per part of it; from 1.
        answer_prefix: Put before the names of the answers' columns, for a table that has a ``concept_id`` of its own.
        preparation: What mentions go through before they are linked.
        asking: Stages, confidence, filters and expected types in place of the linker's own settings.
        workers: Processes (unset: this one alone) or actors of the cluster (unset: one for each of its processors).
        engine: See `Engine`.
        address: Of a Ray cluster.
        database: For a linker with its vectors in PostgreSQL, see `Linker.open`. On a cluster it is the environment
            variable of each node.
        overwrite: Replace ``output``, and discard unfinished work with other settings.
        progress: Called with how much of a stage is done, how much there is to do, and the stage: "reading" and
            "writing" (rows; lines while text is read), "linking" (mentions, without those that an earlier run linked)
            and "counting" (mentions again, to sum up their confidences).

    Raises:
        InputError: input and output are one file or of an unknown kind; the input cannot be read (giving the line),
            lacks the column, or has one with the name of an answer's column; nothing reads the contexts; ``top_k`` or
            ``workers`` is below 1; or ``answer_prefix`` has control characters.
        ConfigError: a setting has a value that is not allowed, or a stage or confidence is requested that the linker
            lacks.
        OnomaError: the linker cannot be opened, see `Linker.open`.
        ArtifactExistsError: ``output`` exists.
        MismatchError: there is unfinished work for this output with other settings.
        UnavailableError: another process works on this output; a worker died; there is no Ray.

    Example:
        >>> from onoma.mapping import map_table                                          # doctest: +SKIP
        >>> map_table("medic", "notes.parquet", "linked.parquet", column="diagnosis")    # doctest: +SKIP
        MapReport(n_rows=120000, n_mentions=8211, n_linked=119204, n_written=120000, n_quoted=0, ...)
    """
    started = time.monotonic()
    top_k, workers = checked_top_k(top_k), None if workers is None else whole_number(workers, "workers", "too few")
    _check_options(engine, address, database)
    for name, value in (("column", column), ("context", context)):
        if not isinstance(value, str) and (value is not None or name == "column"):
            raise InputError("the name of a column is meant here", field=name, found=repr(value))
    if not isinstance(answer_prefix, str) or not answer_prefix.isprintable():
        raise InputError(
            "not a prefix for names of columns",
            field="answer_prefix",
            expected="a text without tabs, line breaks and other control characters, such as onoma_",
            found=repr(answer_prefix),
        )
    source, target = checked_path(input), checked_path(output)
    ensure_free(target, overwrite=True)  # by the name that was given: that of a pipe says nothing
    if target.is_symlink():  # what it points to is replaced, not the link
        target = target.resolve()
    formats = _format_of(source, _INPUT_FORMATS, may_be_gzip=True), _format_of(target, FORMATS)
    decoded_from = checked_encoding(encoding)
    if decoded_from is not None and formats[0] == ".parquet":
        raise InputError(NO_ENCODING, path=source, field="encoding", found=encoding, fix="leave it out")
    one_of(quoting, get_args(Quoting), "quoting")
    if quoting != "auto" and formats[0] not in {".csv", ".tsv"}:
        raise InputError("only tables of text have quotes", path=source, field="quoting", fix="leave it out")
    if is_same(target, source):
        raise InputError("input and output are the same file", path=target, fix="choose another output")
    work = WorkFolder.beside(target)
    if work.finished(target) is None:
        ensure_file_writable(target, overwrite=overwrite)
    preparation = Preparation() if preparation is None else preparation
    plain = Linker.open(linker, database=database)
    asking = Asking() if asking is None else asking
    if not isinstance(asking, Asking):
        raise ConfigError(f"asking is an onoma.linking.Asking(stages=..., ...); found {type(asking).__name__}.")
    opened = asking.applied(plain).preparing(preparation)
    check_ids(opened.concept_ids, formats[1], Path(linker))
    if context is not None:
        opened.check_contexts()
    elif preparation.finder is not None:
        raise InputError(
            "short forms are looked for in contexts, and there are none",
            field="context",
            expected="the column of the text around each mention",
            fix="name it (--context), or look for no short forms",
        )
    left_out = {"read_as": not preparation.is_on, "confidence": not opened.is_calibrated, "rank": top_k == 1}
    answers = {name: f"{answer_prefix}{name}" for name in ANSWER_TYPES if not left_out.get(name)}
    # It decides how small tasks must be, and there are not more links. Where one has no rank, two have.
    top_k = min(top_k, max(2, opened.n_concepts))
    table = _open_table(source, formats, Wanted(column, context, tuple(answers.values())), decoded_from, quoting)
    tell = progress or no_progress
    definitions = None if preparation.table is None else json.dumps(preparation.table.definitions, sort_keys=True)
    least = opened.settings.no_concept_below if opened.is_calibrated else None  # nothing lies below 0

    def report(counts: Counts, settings: Settings) -> MapReport:
        return MapReport(
            **asdict(counts),
            no_concept_below=least or None,
            development_confidence=opened.development_confidence,
            answers_nil=opened.answers_nil,
            seconds=time.monotonic() - started,
            linker_fingerprint=settings.linker,
            input_sha256=settings.input,
            onoma=settings.onoma,
        )

    with work.locked():
        before = source.stat()
        settings = Settings(
            input=sha256_file(source),
            linker=plain.fingerprint,
            column=column,
            context=context,
            encoding=decoded_from,
            quoting=quoting,
            top_k=top_k,
            answer_prefix=answer_prefix,
            abbreviations=None if definitions is None else hashlib.sha256(definitions.encode()).hexdigest(),
            finder=preparation.finder,
            composites=preparation.composites,
            spelling=preparation.spelling,
            strengths=preparation.strengths,
            codes=preparation.codes,
            asking=None if asking == Asking() else json.dumps(asdict(asking), sort_keys=True),
            input_format=formats[0],
            output_format=formats[1],
            onoma=__version__,
            polars=pl.__version__,
            sizes=f"{parts.PART_ROWS}/{parts.PART_BYTES}/{parts.TEXT_CELL_BYTES}/{collecting.task_sizes()}",
        )
        finished = work.finished(target)  # all but taking the folder away
        if finished is not None and finished.settings == settings:
            work.remove()
            return report(finished.counts, settings)
        if finished is not None and not overwrite:
            work.remove()
        ensure_file_writable(target, overwrite=overwrite)  # whoever worked here until now may have written it
        work.begin(settings, abbreviations=definitions, discard=overwrite)
        read = work.reading or _read(
            table, work, tell, formats[1], top_k=top_k, is_reranked="rerank" in opened.settings.stages
        )
        todo = [task for task in range(read.n_tasks) if not KeyedTexts.exists(work.answers(task))]
        if todo:
            count = _Count(tell, "linking", round(read.n_mentions * len(todo) / read.n_tasks))
            if engine == "ray":
                link_on_ray(Path(linker), work, todo, n_workers=workers, address=address, progress=count)
            elif workers is not None and workers > 1:
                link_in_processes(Path(linker), work, todo, n_workers=workers, database=database, progress=count)
            else:
                for task in todo:
                    link_task(opened, work, task, progress=count)
        if isinstance(table, JsonLinesTable):
            table = table.with_columns(read.columns)
        try:
            written = _write(table, work, read, answers, formats[1], tell, top_k=top_k)
        except InputError:
            _ensure_unchanged(source, before, work)  # which explains it better
            raise
        _ensure_unchanged(source, before, work)
        ensure_file_writable(target, overwrite=overwrite)
        count = _Count(tell, "counting", read.n_mentions)
        n_mentions, mean_confidence, n_by_confidence = _confidences(AnswerFiles(work, read.n_tasks), count)
        counts = Counts(
            n_rows=read.n_rows,
            n_mentions=n_mentions,
            n_linked=sum(part.n_linked for part in written),
            n_written=sum(part.n_written for part in written),
            n_quoted=table.n_quoted if isinstance(table, TextTable) else 0,
            mean_confidence=mean_confidence,
            n_by_confidence=n_by_confidence,
        )
        work.put_in_place(target, settings, counts, readable_as=before, overwrite=overwrite)
    return report(counts, settings)


def _check_options(engine: str, address: str | None, database: str | None) -> None:
    one_of(engine, get_args(Engine), "engine")
    if address is not None and engine != "ray":
        raise ConfigError("address is that of a Ray cluster; it needs the engine 'ray' (--engine ray).")
    if engine == "ray":
        check_ray(address)
    if database is not None and engine == "ray":  # it may hold a password, and Ray shows what its actors are given
        raise ConfigError(
            "leave the database out, and set ONOMA_DATABASE in the environment of each node of the cluster."
        )


def _format_of(path: Path, known: tuple[str, ...], *, may_be_gzip: bool = False) -> str:
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz") if may_be_gzip else name).suffix
    check_is_table(suffix, path)
    if suffix not in known or (suffix == ".parquet" and name.endswith(".gz")):
        raise InputError(
            "unknown kind of table",
            path=path,
            expected=f"a name ending in {', '.join(known)}"
            + (" (or .csv.gz, .tsv.gz, .jsonl.gz)" if may_be_gzip else ""),
            fix="name it .tsv if tabs divide its columns, .csv if other signs do"
            if suffix == ".txt" and may_be_gzip
            else None,
        )
    return suffix


def _open_table(
    source: Path, formats: tuple[str, str], wanted: Wanted, encoding: str | None, quoting: Quoting
) -> InputTable:
    if formats[0] == ".parquet":
        table = ParquetTable(source, wanted)
        check_types(table.schema, formats[1], source)
        return table
    if formats[0] == ".jsonl":
        unheld = UNHELD.get(formats[1], ())
        return JsonLinesTable(source, wanted, is_raw=formats[1] == ".jsonl", unheld=unheld, encoding=encoding)
    return TextTable(source, wanted, encoding=encoding, quoting=quoting)


def _ensure_unchanged(source: Path, before: os.stat_result, work: WorkFolder) -> None:
    """Refuse to go on with another input, for which nothing of the work is of use."""
    after = source.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        work.remove()
        raise InputError("the file was changed while it was mapped", path=source, fix="run the command again")


def _read(
    table: InputTable, work: WorkFolder, tell: Progress, output_format: str, *, top_k: int, is_reranked: bool
) -> ReadInput:
    def told(done: int, total: int | None, _: str) -> None:
        tell(done, total, "reading")

    def check(rows: pl.DataFrame, n_before: int) -> None:
        check_cells(rows, output_format, table.path, n_before)

    try:
        return collect_mentions(table, work, told, check=check, top_k=top_k, is_reranked=is_reranked)
    except InputError:
        work.remove()  # once the input is mended, this is not its work any more
        raise


def _write(
    table: InputTable,
    work: WorkFolder,
    read: ReadInput,
    answers: Mapping[str, str],
    output_format: str,
    tell: Progress,
    *,
    top_k: int,
) -> list[WrittenPart]:
    """Write all parts of the output that are not there yet, and put them together."""
    files = AnswerFiles(work, read.n_tasks)
    written: list[WrittenPart] = []
    count = _Count(tell, "writing", read.n_rows)
    pieces = itertools.chain.from_iterable(slices(part, top_k) for part in parts_of(table, no_progress))
    for number, part in enumerate(pieces):
        there = work.written_part(number)
        if there is None:
            rows, n_linked = answered(part, files, answers)
            file = work.written(number, output_format)
            with write_file(file, overwrite=True) as aside:
                write_part(rows, aside, output_format, tuple(answers.values()), is_first=number == 0)
            there = WrittenPart(part.rows.height, n_linked, rows.height, file.stat().st_size)
            work.finish_part(number, there)
        count(there.n_rows)
        written.append(there)
    if sum(part.n_rows for part in written) != read.n_rows:
        raise InputError("the file was changed while it was mapped", path=table.path, fix="run the command again")
    if not work.whole.exists():
        with write_file(work.whole, overwrite=True) as aside:
            join_parts(
                [work.whole_part(number, output_format, part) for number, part in enumerate(written)],
                aside,
                output_format,
            )
    return written


def _confidences(files: AnswerFiles, count: _Count) -> tuple[int, float | None, list[int]]:
    """Different mentions, and of their best links the mean confidence and how many lie in each tenth."""
    n_mentions, total, n_by_confidence = 0, 0.0, np.zeros(10, np.int64)
    for n_of_task, confidences in files.confidences():
        count(n_of_task)
        n_mentions += n_of_task
        total += float(confidences.sum())
        n_by_confidence += np.bincount(np.minimum((10 * confidences).astype(np.int64), 9), minlength=10)
    n_links = int(n_by_confidence.sum())
    return n_mentions, total / n_links if n_links else None, n_by_confidence.tolist()


class _Count:
    """Adds up what was done and tells it."""

    def __init__(self, tell: Progress, stage: str, total: int) -> None:
        self._tell, self._stage, self._total, self._done = tell, stage, total, 0
        tell(0, total, stage)

    def __call__(self, more: int) -> None:
        # The total counts some mentions twice that were done once, see `ReadInput.n_mentions`.
        self._done += more
        self._tell(self._done, max(self._total, self._done), self._stage)
