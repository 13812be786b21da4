"""Where the files of a release in Rich Release Format are: the same for the UMLS and RxNorm.

A table such as MRCONSO may be ``MRCONSO.RRF``, ``MRCONSO.RRF.gz``, or in pieces (``MRCONSO.RRF.aa``, ``.ab``, ..., or
``.aa.gz``, ``.ab.gz``, ...), each of which begins where the previous one ends, even in the middle of a line. The
release is the folder with the main table; of several, the highest one (RxNorm's ``rrf`` before ``prescribe/rrf``). If
there is none, archives named ``*meta.nlm`` are searched, in which the full release of the UMLS has its tables: some in
``*-1-meta.nlm``, the others in ``*-2-meta.nlm``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePosixPath
from string import ascii_lowercase
from typing import TypeAlias

import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile, archives_opened, is_zip, joined, source_files
from onoma.files.delimited import read_delimited
from onoma.files.reading import Check, Reading

_TABLE = re.compile(r"(?P<table>[A-Z]+)\.RRF(\.(?!gz$)(?P<piece>[a-z]{2}))?(?P<gzip>\.gz)?")
_PIECES = ["".join(letters) for letters in product(ascii_lowercase, repeat=2)]
_FIELDS = {
    name: tuple(fields.split())
    for name, fields in {
        "CONSO": "CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF",
        "STY": "CUI TUI STN STY ATUI CVF",
        "REL": "CUI1 AUI1 STYPE1 REL CUI2 AUI2 STYPE2 RELA RUI SRUI SAB SL RG DIR SUPPRESS CVF",
        "DEF": "CUI AUI ATUI SATUI SAB DEF SUPPRESS CVF",
        "CUI": "CUI1 VER REL RELA MAPREASON CUI2 MAPIN",
        "RANK": "RANK SAB TTY SUPPRESS",
        "SAB": "VCUI RCUI VSAB RSAB SON SF SVER VSTART VEND IMETA RMETA SLC SCC SRL TFR CFR CXTY TTYL ATNL LAT CENC "
        "CURVER SABIN SSN SCIT",
        "ATOMARCHIVE": "AUI METAUI STR ARCHIVE_TIMESTAMP CREATED_TIMESTAMP UPDATED_TIMESTAMP CODE IS_BRAND LAT "
        "LAST_RELEASED SAUI VSAB CUI SAB TTY MERGED_TO_CUI",
    }.items()
}


@dataclass(frozen=True)
class Family:
    """What the UMLS and RxNorm have of their own.

    Attributes:
        name: For people.
        prefix: Of the names of tables, e.g. ``MR``: MRCONSO.
        id_prefix: Of the names of columns with identifiers, e.g. ``RX``: RXCUI.
        tables: Those with content that are read, without prefix; the first has the names and must be there.
        extras: Further ones that are read, if they are there.
    """

    name: str
    prefix: str
    id_prefix: str
    tables: tuple[str, ...]
    extras: tuple[str, ...] = ()

    def column(self, name: str) -> str:
        """What the specification calls a column, e.g. RXCUI for CUI."""
        return re.sub(r"(?<![A-Z])[CA]UI", rf"{self.id_prefix}\g<0>", name)


@dataclass(frozen=True)
class Release:
    """The tables of a release, by name without prefix; those that are not there are missing."""

    family: Family
    files: dict[str, SourceFile]

    def __contains__(self, table: str) -> bool:
        return table in self.files

    def path(self, table: str) -> Path:
        """What errors call a table."""
        return self.files[table].path

    def rows(
        self, table: str, keep: Iterable[str], reading: Reading, checks: Sequence[Check] = ()
    ) -> Iterator[pl.DataFrame]:
        """Blocks of rows that pass the checks, with the columns ``line`` and ``keep``, called as in the UMLS.

        A table that is not there has none; nor has one of no bytes, as subsets have it, unless it is the main one.
        """
        file = self.files.get(table)
        if file is None or (table != self.family.tables[0] and not file.size()):
            return
        columns = {self.family.column(name): name for name in _FIELDS[table]}
        blocks = read_delimited(
            file,
            reading,
            separator="|",
            fields=list(columns),
            keep=[self.family.column(name) for name in keep],
            ends_with_separator=True,
        )
        for block in blocks:
            rows = block.rename(columns, strict=False) if self.family.id_prefix else block
            yield reading.keep_valid(rows, checks, path=file.path) if checks else rows


@contextmanager
def open_release(source: str, family: Family, reading: Reading) -> Iterator[Release]:
    """Find the release in a folder or archive; or the one of which ``source`` is the main table.

    Args:
        source: As the module says.
        family: Whose tables.
        reading: Told which tables are not there.

    Raises:
        InputError: no main table, two releases side by side, pieces with a gap, or an archive that cannot be trusted.
    """
    path, main = Path(source), f"{family.prefix}{family.tables[0]}.RRF"
    advice = f"get the release in full, or say which folder or archive holds {main}"
    if path.is_file() and not is_zip(path):
        if not path.name.startswith(main):
            raise InputError(f"this is no folder or archive with a release of {family.name}", path=path, fix=advice)
        files: Iterable[SourceFile] = (SourceFile(near.name, near) for near in path.parent.iterdir() if near.is_file())
    else:
        files = source_files(path)
    found = _highest(tuple(files), family, path)
    with archives_opened(() if found else tuple(files), lambda file: file.base.endswith("meta.nlm")) as opened:
        found = found or _highest(opened, family, path)
        if not found:
            raise InputError(f"there is no {main} here", path=path, fix=advice)
        for table in family.tables:
            if table not in found:
                reading.note(f"files that the release does not have: {family.prefix}{table}.RRF", 1)
        yield Release(family, found)


_Variants: TypeAlias = list[tuple[re.Match[str], SourceFile]]


def _highest(files: Iterable[SourceFile], family: Family, source: Path) -> dict[str, SourceFile]:
    """The tables in the highest folder that has the main one."""
    known = {f"{family.prefix}{table}": table for table in (*family.tables, *family.extras)}
    folders: dict[str, dict[str, _Variants]] = {}
    for file in files:
        match = _TABLE.fullmatch(file.base)
        if match and match["table"] in known:
            folders.setdefault(file.folder, {}).setdefault(known[match["table"]], []).append((match, file))
    depths = {
        folder: len(PurePosixPath(folder).parts) for folder, tables in folders.items() if family.tables[0] in tables
    }
    if not depths:
        return {}
    highest = sorted(folder for folder, depth in depths.items() if depth == min(depths.values()))
    if len(highest) > 1:
        raise InputError(
            f"there are {len(highest)} releases here: {', '.join(highest[:5])}", path=source, fix="name one of them"
        )
    return {table: _whole(variants) for table, variants in folders[highest[0]].items()}


def _whole(variants: _Variants) -> SourceFile:
    """The table out of the ways in which it lies there: whole before pieces, plain before gzip."""
    ways: dict[tuple[bool, bool], dict[str, SourceFile]] = {}
    for match, file in variants:
        piece = match["piece"] or ""
        pieces = ways.setdefault((bool(piece), match["gzip"] is not None), {})
        if piece in pieces:
            raise InputError("the release holds this file twice", path=file.path, fix="keep one of them")
        pieces[piece] = file
    (in_pieces, _), pieces = min(ways.items(), key=lambda item: item[0])
    if not in_pieces:
        return pieces[""]
    found, expected = sorted(pieces), _PIECES[: len(pieces)]
    name = PurePosixPath(pieces[found[0]].name).with_name(f"{variants[0][0]['table']}.RRF").as_posix()
    whole = joined(name, [pieces[piece] for piece in found])
    if found != expected:
        missing = next(piece for piece in expected if piece not in pieces)
        raise InputError(
            f"the file lies here in pieces, of which '.{missing}' is missing",
            path=whole.path,
            expected="pieces .aa, .ab and so on without a gap",
            found=", ".join(f".{piece}" for piece in found),
            fix="get the release again",
        )
    return whole
