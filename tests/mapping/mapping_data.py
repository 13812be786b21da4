"""Tables to map, and what should come of them, by plain loops."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from linking_data import small_terminology, write_letter_encoder, write_letter_linker

from onoma.linking import Link, Linker, build_linker
from onoma.mapping import collecting, parts

Row = dict[str, Any]
WORDS = [
    "cold",
    "sugar disease",
    "diabetes mellitus",
    "COLD temperature",
    "chronic lung",
    "心臓発作",
    'a "quoted", one',
]


def make_linker(place: Path) -> Path:
    """Folder of a linker of a dozen names."""
    write_letter_encoder(place / "letters")
    build_linker(small_terminology(place / "terminology"), place / "letters", place / "linker")
    return place / "linker"


def make_linker_of(place: Path, concepts: Mapping[str, Sequence[str]]) -> Path:
    """Folder of a linker of these names by id."""
    write_letter_linker(place, concepts)
    return place / "linker"


def make_parts_small(patch: pytest.MonkeyPatch) -> None:
    """Parts of 7 rows and tasks of about 5 mentions."""
    patch.setattr(parts, "PART_ROWS", 7)
    patch.setattr(collecting, "TASK_MENTIONS", 5)


def rows_of(n_rows: int, *, n_different: int = 12) -> list[Row]:
    """Rows with codes, mentions that repeat, some of them blank, and notes with everything that a CSV may hold."""
    made = []
    for row in range(n_rows):
        kind = row * 7 % n_different
        mention: str | None = f"{WORDS[kind % len(WORDS)]} {kind}" if kind >= len(WORDS) else WORDS[kind]
        if row % 11 == 3:
            mention = None
        if row % 13 == 5:
            mention = "   "
        notes = [None, "plain", 'with "quotes"', "two\nlines", "comma, and é"]
        made.append({"id": f"{row:05}", "mention": mention, "note": notes[row % 5]})
    return made


def write_table(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows in the format of the path."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String)).write_parquet(path)
        return path
    text = io.StringIO(newline="")
    if name.endswith(".csv"):
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    elif name.endswith(".tsv"):  # which has no quotes
        table = [list(rows[0]), *([(value or "").replace("\n", " ") for value in row.values()] for row in rows)]
        text.write("".join("\t".join(cells) + "\n" for cells in table))
    else:
        text.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read_table(path: Path) -> list[Row]:
    """Rows of an output; of a CSV or TSV, which has no types, scores and ranks as numbers and empty cells as None."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    numbers = {"score": float, "confidence": float, "rank": int}
    with path.open(encoding="utf-8", newline="") as lines:
        if path.suffix == ".tsv":
            header, *cells = (line.removesuffix("\n").split("\t") for line in lines)
            records = [dict(zip(header, row, strict=True)) for row in cells]
        else:
            records = list(csv.DictReader(lines))
    return [{name: numbers.get(name, str)(value) if value else None for name, value in row.items()} for row in records]


def expected_rows(rows: Sequence[Row], linker: Path, *, top_k: int = 1, column: str = "mention") -> list[Row]:
    """The oracle: each row linked by itself."""
    opened = Linker.open(linker)
    names = ["concept_id", "preferred_name", "matched_name", "score", *(["rank"] if top_k > 1 else [])]
    links_of: dict[str | None, list[Link]] = {}
    made = []
    for row in rows:
        mention = row[column]
        if mention not in links_of:
            (links_of[mention],) = opened.link([mention], top_k=top_k) if mention and mention.strip() else [[]]
        links = links_of[mention]
        answers = [{name: getattr(link, name) for name in names} for link in links] or [dict.fromkeys(names)]
        made += [{**row, **answer} for answer in answers]
    return made


def assert_same(found: Path | Sequence[Row], expected: Path | Sequence[Row]) -> None:
    """The same rows; scores may differ by what an encoder's batches leave to chance in the last decimal."""
    tables = [read_table(table) if isinstance(table, Path) else table for table in (found, expected)]
    scores = [[row["score"] for row in rows] for rows in tables]
    assert [{**row, "score": None} for row in tables[0]] == [{**row, "score": None} for row in tables[1]]
    for one, other in zip(*scores, strict=True):
        assert one == other or abs(one - other) < 2.5e-6
