"""Importing a terminology: read, assemble, write, report."""

from __future__ import annotations

import collections
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from onoma.artifacts import ensure_writable, sha256_file
from onoma.errors import one_of
from onoma.files.reading import OnError, Reading
from onoma.terminology.assembly import SourceTables, assemble
from onoma.terminology.catalogue.fetching import fetched_licence
from onoma.terminology.formats import get_format
from onoma.terminology.readers.options import parse_options
from onoma.terminology.tables import KIND, TableCounts, TerminologyTables, write_terminology
from onoma.types import Progress, no_progress


def _names_below(source: Path, files: Sequence[Path]) -> dict[str, Path]:
    """Files by their names, those of one name by their places below the source."""
    times = collections.Counter(file.name for file in files)
    places = {
        file: file.relative_to(source) if times[file.name] > 1 and file.is_relative_to(source) else Path(file.name)
        for file in files
    }
    return {_text(place.as_posix()): file for file, place in places.items()}


def _text(name: str) -> str:
    """What a command line gave, such as a file's name, which may be any bytes, as a manifest can hold it."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class ImportReport(TableCounts):
    """What an import did; ``str()`` is a text for people. Has the counts of `TableCounts` too.

    Attributes:
        format: Name of the format.
        source: What was read.
        path: The terminology's folder.
        n_rejected: Rows left out, listed in ``rejects.parquet`` of the folder.
        rejected: Their number for each reason, most frequent first.
        notes: Counts of what is not an error but worth knowing.
        seconds: Wall time.
    """

    format: str
    source: str
    path: Path
    n_rejected: int
    rejected: dict[str, int]
    notes: dict[str, int]
    seconds: float

    def __str__(self) -> str:
        counts = self.counts_in_words()
        lines = [f"{self.path}: {counts} from {self.format} {self.source} in {self.seconds:.1f} s"]
        lines += [f"  {what}: {count:,}" for what, count in self.notes.items()]
        if self.n_rejected:
            rows = "row" if self.n_rejected == 1 else "rows"
            lines.append(f"  {self.n_rejected:,} {rows} rejected, listed in {self.path / 'rejects.parquet'}:")
            lines += [f"    {count:,} x {reason}" for reason, count in self.rejected.items()]
        return "\n".join(lines)


def import_terminology(
    format: str,
    source: str | Path,
    out: str | Path,
    *,
    on_error: OnError = "strict",
    overwrite: bool = False,
    options: Mapping[str, object] | None = None,
    licence: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Read a terminology of some format into a folder that `Terminology` opens.

    Args:
        format: One of `onoma.terminology.known_formats`.
        source: What the format calls SOURCE: a file, a folder, or a name it knows.
        out: Where to write the folder. It appears complete or not at all.
        on_error: "strict": the first bad row ends the import. "skip": bad rows are left out, counted, and listed in
            ``rejects.parquet``.
        overwrite: Replace a terminology at ``out``.
        options: Of the format, as text or typed.
        licence: The licence for its use, in SPDX's words or your own; what is made of it says so too. Unset: what the
            source itself says (ontologies do), else what the record beside a fetched file says, else that none was
            stated, and what is usual for the format.
        progress: Called with (rows done, rows in all or ``None``, what is read).

    Raises:
        ConfigError: no such format, option or value.
        InputError: the source cannot be read, or, under "strict", has a bad row.
        UnavailableError: the format reads from a package that is not installed.
        ArtifactExistsError: ``out`` is taken.
    """
    started = time.perf_counter()
    chosen = get_format(format)
    policies: tuple[OnError, ...] = get_args(OnError)
    policy = one_of(on_error, policies, "on_error")
    parsed = parse_options(chosen.options, options or {}, format)
    ensure_writable(out, KIND, overwrite=overwrite)
    reading = Reading(on_error=policy, progress=progress or no_progress)
    found = chosen.read(str(source), parsed, reading)
    # Hashing leaves Python's lock alone, so that it costs no time of its own.
    with ThreadPoolExecutor(1, "sha256") as executor:
        files = _names_below(Path(source), list(dict.fromkeys(reading.files)))
        hashes = {name: executor.submit(sha256_file, path) for name, path in files.items()}
        tables = assemble(found, reading)
    rejects = reading.rejects
    licence = licence or found.licence or fetched_licence(Path(source))
    write_terminology(
        out,
        tables,
        config={
            "format": format,
            # The name only: the same release gives the same manifest wherever it lies.
            "source": _text(Path(source).name or Path(source).resolve().name),
            "source_files": {name: hashed.result() for name, hashed in hashes.items()},
            "options": parsed.model_dump(mode="json"),
            **_terms(chosen.licence, licence, found, tables),
            "on_error": on_error,
            "n_rejected": len(rejects),
        },
        rejects=rejects,
        overwrite=overwrite,
    )
    counted = rejects["reason"].value_counts(sort=True)
    return ImportReport(
        format=format,
        source=str(source),
        path=Path(out),
        **tables.counts(),
        n_rejected=len(rejects),
        rejected=dict(counted.iter_rows()),
        notes=dict(reading.notes),
        seconds=time.perf_counter() - started,
    )


def _terms(usual_licence: str, licence: str | None, found: SourceTables, tables: TerminologyTables) -> dict[str, Any]:
    """What the manifest says of licences and of whose content is in the tables."""
    said = {} if licence is None or not licence.strip() else {"licence": _text(" ".join(licence.split()))}
    if found.origins:
        return {"origins": [{**one, **said} for one in found.origins]}
    with_sources = (tables.names, tables.relations, tables.definitions, tables.cross_references)
    used = {source for table in with_sources for source in table["source"].unique()}
    known = [dict(one) for one in found.source_vocabularies if one["source"] in used]
    said |= {"release": found.release} if found.release else {}
    return {**said, "usual_licence": usual_licence, **({"source_vocabularies": known} if known else {})}
