"""Files of SNOMED CT's Release Format 2: which there are, and the current state of the components in them.

Every row of RF2 is the state of a component (concept, description, relationship, member of a reference set) from a
date on: ``id, effectiveTime, active, moduleId, ...``. A Snapshot has the last state of each, a Full release all states,
a Delta only those since the previous release. The state at a date is, for each id, the row with the greatest
effectiveTime up to that date.
Specification: https://docs.snomed.org/snomed-ct-specifications/snomed-ct-release-file-specification
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile, source_files
from onoma.files.delimited import read_tabbed_columns
from onoma.files.reading import Check, Reading, first_of_each

SCTID = r"^[1-9][0-9]{5,17}$"
"""6 to 18 digits: an id fits into 64 bits."""
_MEMBER_KINDS = {
    "Language": re.compile("Language"),
    "Association": re.compile("Association"),
    "Map": re.compile("(Simple|Extended|Complex)Map(?!To)"),  # a SimpleMapToSCT goes the other way
}
_FILE_NAME = re.compile(
    # File type, content type, content subtype (a summary, the type of release, a language), country and date.
    r"x?(?:sct2_(?P<component>Concept|Description|TextDefinition|Relationship)|der2_[a-z]*Refset)"
    r"_(?P<summary>[A-Za-z0-9]*?)(?P<release>Snapshot|Full|Delta)(?![A-Za-z0-9]).*\.txt(?:\.gz)?"
)
_AFTER_EDITION = re.compile(r"(_[0-9]{8}.*|\.txt(\.gz)?)$")
_EDITION_AND_DAY = re.compile(r"_([A-Za-z0-9]+_[0-9]{8})")
_WHAT_TO_GIVE = "give the release zip, its unpacked folder, or its Snapshot or Full folder"


@dataclass(frozen=True)
class Release:
    """The files of one kind of release.

    Attributes:
        kind: "snapshot" or "full".
        files: By what they hold: Concept, Description, TextDefinition, Relationship, Language, Association, Map; each
            may be in several files (one per language, edition, extension).
    """

    kind: str
    files: dict[str, tuple[SourceFile, ...]]

    def of(self, *contents: str) -> tuple[SourceFile, ...]:
        """The files with these contents."""
        return tuple(file for content in contents for file in self.files.get(content, ()))

    def named(self) -> str:
        """Editions and days as the names of the files of concepts say them, "INT_20260101"; "" if they do not."""
        found = [_EDITION_AND_DAY.search(file.base) for file in self.of("Concept")]
        return ", ".join(sorted({match[1] for match in found if match}))


def find_release(source: Path, wanted: str, reading: Reading) -> Release:
    """Find the files of a release below a folder or in an archive.

    Args:
        source: Folder or zip archive.
        wanted: "snapshot", "full", or "auto": the snapshot if it is there.
        reading: Told of editions that are there as another kind of release alone.

    Raises:
        InputError: there is none, or nothing but a Delta; under "auto" also an edition of another kind alone.
    """
    found: dict[str, dict[str, list[SourceFile]]] = {"Snapshot": {}, "Full": {}, "Delta": {}}
    for file in source_files(source):
        named = _content(file.base)
        if named:
            release, content = named
            found[release].setdefault(content, []).append(file)
    order = ("Snapshot", "Full") if wanted == "auto" else (wanted.capitalize(),)
    for release in order:
        if "Concept" in found[release] and "Description" in found[release]:
            files = {content: tuple(files) for content, files in found[release].items()}
            chosen = {_edition(file.base) for file in files["Concept"]}
            others = [one for kind in found.values() for one in kind.get("Concept", ())]
            left_out = [file for file in others if _edition(file.base) not in chosen]
            if left_out and wanted == "auto":
                raise InputError(
                    f"an edition or extension is not here as a {release}, as the others are",
                    path=left_out[0].path,
                    expected=f"a sct2_Concept file of it of the type {release}",
                    fix=f"give the {release} of it too, or choose with release=snapshot or release=full what is read",
                )
            for file in left_out:
                reading.note(f"editions that are not here as a {release}, left out: {file.base}", 1)
            return Release(release.lower(), files)
    there = [release for release, files in found.items() if "Concept" in files]
    if there == ["Delta"]:
        raise InputError(
            "this is a Delta, which has only what changed since the release before",
            path=source,
            expected="a Snapshot or Full release",
            fix=_WHAT_TO_GIVE,
        )
    for release in order:
        if "Concept" in found[release]:
            raise InputError(f"there is no sct2_Description_{release} file here", path=source, fix=_WHAT_TO_GIVE)
    raise InputError(
        f"there is no {' or '.join(f'sct2_Concept_{release}' for release in order)} file here or below",
        path=source,
        found=f"a {there[0]} release" if there else "no file of a SNOMED CT release in Release Format 2",
        fix=_WHAT_TO_GIVE,
    )


def _edition(name: str) -> tuple[str, str]:
    """Which edition or extension a file is of: what its name says, type of release, date and ending aside."""
    match = _FILE_NAME.fullmatch(name)
    assert match is not None
    return match["summary"], _AFTER_EDITION.sub("", name[match.end("release") :])


def _content(name: str) -> tuple[str, str] | None:
    """(type of release, what it holds) by the name of a file."""
    match = _FILE_NAME.fullmatch(name)
    if not match:
        return None
    if match["component"]:
        return match["release"], match["component"]
    for kind, pattern in _MEMBER_KINDS.items():
        if pattern.search(match["summary"]):
            return match["release"], kind
    return None


def read_state(
    files: Sequence[SourceFile],
    reading: Reading,
    *,
    codes: Sequence[str] = (),
    texts: Sequence[str] = (),
    optional: Sequence[str] = (),
    checks: Sequence[Check] = (),
    date: str | None = None,
) -> pl.DataFrame:
    """The latest row of each component of several files of one kind.

    Args:
        files: Those with the component.
        reading: Where bad rows go.
        codes: Columns with ids of components.
        texts: Columns with text.
        optional: Columns with text that a file may not have ("" there).
        checks: What must hold for the texts.
        date: The state at that day (YYYYMMDD); ``None``: the last.

    Returns:
        ``id`` (Int64; text for members of reference sets), ``active``, ``codes`` (Int64), ``texts``, ``optional``,
        ``line`` and ``file`` (number in ``files``), in the order of the files.

    Raises:
        InputError: as `onoma.files.delimited.read_tabbed_columns`; under "strict" also a bad row, and two rows of one
            id and date that differ.
    """
    is_member = bool(files) and files[0].base.removeprefix("x").startswith("der2")
    id_check = (
        Check(pl.col("id").str.strip_chars() != "", "id", "the id of a member", "id")
        if is_member
        else _code_check("id")
    )
    all_checks = (
        id_check,
        Check(pl.col("effectiveTime").str.contains("^[0-9]{8}$"), "effectiveTime", "a day, YYYYMMDD", "effectiveTime"),
        Check(pl.col("active").is_in(["0", "1"]), "active", "0 or 1", "active"),
        *(_code_check(code) for code in codes),
        *checks,
    )
    parts = [pl.DataFrame(schema=_schema(is_member, codes, [*texts, *optional]))]
    columns = ("id", "effectiveTime", "active", *codes, *texts)
    for number, file in enumerate(files):
        for block in read_tabbed_columns(file, reading, columns=columns, optional=optional):
            rows = reading.keep_valid(block, all_checks, path=file.path)
            rows = rows.with_columns(
                *(pl.col(code).cast(pl.Int64) for code in (codes if is_member else ["id", *codes])),
                pl.col("effectiveTime").cast(pl.Int32),
                pl.col("active") == "1",
                file=pl.lit(number, dtype=pl.UInt16),
            )
            if date:
                rows = rows.filter(pl.col("effectiveTime") <= int(date))
            parts.append(rows.select(parts[0].columns))
    return _latest(pl.concat(parts), files, reading)


def _schema(is_member: bool, codes: Sequence[str], texts: Sequence[str]) -> dict[str, pl.DataType]:
    return {
        "id": pl.String() if is_member else pl.Int64(),
        "effectiveTime": pl.Int32(),
        "active": pl.Boolean(),
        **{code: pl.Int64() for code in codes},
        **{text: pl.String() for text in texts},
        "line": pl.UInt32(),
        "file": pl.UInt16(),
    }


def _code_check(field: str) -> Check:
    return Check(pl.col(field).str.contains(SCTID), field, "an id of 6 to 18 digits", field)


def _latest(rows: pl.DataFrame, files: Sequence[SourceFile], reading: Reading) -> pl.DataFrame:
    if rows["id"].n_unique() == len(rows):  # as in the snapshot of one edition
        return rows.drop("effectiveTime")
    last = rows.filter(pl.col("effectiveTime") == pl.col("effectiveTime").max().over("id"))
    kept, differing, n_same = first_of_each(last, "id", place=("line", "file"))
    reading.note("rows that stand in several files or twice, kept once", n_same)
    reject_in_files(
        differing.with_columns(text=pl.col("id").cast(pl.String)),
        files,
        reading,
        problem="this component has two states from one day on (the first is kept)",
        field="id",
        expected="one row for each id and effectiveTime",
    )
    return kept.drop("effectiveTime")


def reject_in_files(
    rows: pl.DataFrame,
    files: Sequence[SourceFile],
    reading: Reading,
    *,
    problem: str,
    field: str,
    expected: str,
) -> None:
    """Reject rows (``line``, ``text``, ``file``) of several files."""
    for number in rows["file"].unique().sort():
        of_file = rows.filter(pl.col("file") == number)
        reading.reject_rows(of_file, problem, path=files[number].path, field=field, expected=expected)


def as_text(column: str) -> pl.Expr:
    """A column of ids as the text that they were."""
    return pl.col(column).cast(pl.String)


REFERS_TO_CONCEPT = pl.col("referencedComponentId") // 10 % 10 == 0
"""Whether a member of a reference set is about a concept: the last but one digit says what kind of component it is."""


class KnownConcepts:
    """The concepts of a release, and what to do with what refers to others.

    Attributes:
        is_whole: Whether the root is there. Without it this is an extension, which refers to concepts of its edition.
    """

    def __init__(self, ids: pl.Series, root: int, reading: Reading) -> None:
        self._ids, self._reading = ids, reading
        self.is_whole = root in ids
        if not self.is_whole:
            reading.note("editions without the root concept (an extension, read without what it extends)", 1)

    def only(self, rows: pl.DataFrame, what: str, files: tuple[SourceFile, ...], *columns: str) -> pl.DataFrame:
        """Rows whose columns name concepts of the release; in a whole edition others are errors."""
        is_known = rows.select(pl.all_horizontal(pl.col(name).is_in(self._ids.implode()) for name in columns))
        unknown = rows.filter(~is_known.to_series())
        if unknown.is_empty():
            return rows
        if self.is_whole:
            reject_in_files(
                unknown.with_columns(text=pl.concat_str([as_text(name) for name in columns], separator=" ")),
                files,
                self._reading,
                problem="this refers to a concept that the release does not have",
                field=columns[0],
                expected="a concept of sct2_Concept",
            )
        else:
            self._reading.note(f"{what} of concepts outside the extension, left out", len(unknown))
        return rows.filter(is_known.to_series())
