"""Where parts end, and what is asked of a linker."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mapping_data import Row, read_table, write_table

from onoma.artifacts.parquet import scan_parquet
from onoma.linking import Link, Linker
from onoma.linking.mentions import Preparation, PreparedMention
from onoma.mapping import map_table, parts
from onoma.mapping.json_tables import JsonLinesTable
from onoma.mapping.parts import Part, Wanted, parts_of, slices

WANTED = Wanted("m", "c", ())


@dataclasses.dataclass
class Frames:
    """A table that comes in given pieces."""

    pieces: Sequence[pl.DataFrame]
    path: Path = Path("table")

    @property
    def columns(self) -> list[str]:
        return ["m", "c"]

    def frames(self, progress: Callable[[int, int | None, str], None]) -> Iterator[pl.DataFrame]:
        yield WANTED.with_texts(pl.DataFrame(schema={"m": pl.String, "c": pl.String}))
        for piece in self.pieces:
            yield WANTED.with_texts(piece)


def cut(table: pl.DataFrame, places: Sequence[int]) -> list[pl.DataFrame]:
    bounds = [0, *sorted(min(place, table.height) for place in places), table.height]
    return [table[begin:end] for begin, end in itertools.pairwise(bounds)]


@given(
    rows=st.lists(st.tuples(st.none() | st.sampled_from(["", " ", "a", "é" * 9]), st.none() | st.text(max_size=3))),
    one=st.lists(st.integers(0, 30), max_size=5),
    other=st.lists(st.integers(0, 30), max_size=5),
    max_rows=st.integers(1, 9),
    max_bytes=st.integers(1, 90),
)
def test_parts_do_not_depend_on_how_the_table_is_read(
    rows: list[tuple[str | None, str | None]], one: list[int], other: list[int], max_rows: int, max_bytes: int
) -> None:
    rows = [(mention, text and text.encode("utf-8", "replace").decode()) for mention, text in rows]
    table = pl.DataFrame(rows, schema={"m": pl.String, "c": pl.String}, orient="row")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_ROWS", max_rows)
        patch.setattr(parts, "PART_BYTES", max_bytes)
        found, again = (list(parts_of(Frames(cut(table, places)), lambda *_: None)) for places in (one, other))
    assert [part.rows.rows() for part in found] == [part.rows.rows() for part in again]
    assert pl.concat([part.rows for part in found]).equals(table)
    assert all(1 <= part.rows.height <= max_rows for part in found) or len(found) == 1
    for part in found:  # every row but the last of a part lies within the bound
        texts = [[text or "" for text in row] for row in part.rows.hstack(part.texts).rows()]
        assert sum(len(text.encode()) for row in texts[:-1] for text in row) < max_bytes
    expected = [(mention if mention and mention.strip() else None, text or "") for mention, text in rows]
    assert pl.concat([part.texts for part in found]).rows() == expected


@given(st.lists(st.text(max_size=9), max_size=20), st.integers(1, 9), st.integers(1, 30), st.integers(1, 90))
def test_slices_are_the_part_within_its_bounds(names: list[str], n_copies: int, max_rows: int, max_bytes: int) -> None:
    rows = pl.DataFrame({"m": names}, schema={"m": pl.String})
    part = Part(rows, rows.rename({"m": "mention"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_ROWS", max_rows)
        patch.setattr(parts, "PART_BYTES", max_bytes)
        found = list(slices(part, n_copies))
    assert pl.concat([one.rows for one in found]).equals(part.rows)
    assert pl.concat([one.texts for one in found]).equals(part.texts)
    assert all(one.rows.height == 1 or one.rows.height * n_copies <= max(max_rows, n_copies) for one in found)
    n_bytes = sum(len(name.encode()) for name in names)
    assert len(found) >= min(len(names), n_bytes * n_copies // max_bytes)
    assert len(found) == 1 or min(one.rows.height for one in found) > 0


@pytest.mark.parametrize("has_context", [True, False])
def test_contexts_and_confidence(
    has_context: bool, linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a linker is told that reads contexts and has a calibration, and what becomes of its answers."""
    asked: list[tuple[str, str | None]] = []

    def link(_self: Linker, mentions: Sequence[PreparedMention], *, top_k: int, **_: object) -> list[list[Link]]:
        pairs = [(mention.original, mention.context) for mention in mentions]
        asked.extend(pairs)
        return [
            [Link("D1", "Diabetes", f"{mention}/{context}", 0.5, rank, 0.25 if rank == 1 else None) for rank in (1, 2)]
            for mention, context in pairs
        ]

    monkeypatch.setattr(Linker, "link", link)
    monkeypatch.setattr(Linker, "is_calibrated", True)
    rows: list[Row] = [
        {"m": "a", "c": "one"},
        {"m": "a", "c": "two"},
        {"m": "a", "c": "one"},
        {"m": "b", "c": None},
        {"m": "b", "c": ""},
        {"m": None, "c": "one"},
    ]
    source, context = write_table(tmp_path / "x.jsonl", rows), "c" if has_context else None
    preparation = Preparation(finder="schwartz-hearst") if has_context else None
    report = map_table(
        linker, source, tmp_path / "y.csv", column="m", context=context, preparation=preparation, top_k=2
    )
    mapped = read_table(tmp_path / "y.csv")
    columns = ["concept_id", "preferred_name", "matched_name", "score", "confidence", "rank"]
    assert list(mapped[0])[2:] == ["read_as"] * has_context + columns
    assert [row["confidence"] for row in mapped] == [0.25, None] * 5 + [None]
    assert [row["rank"] for row in mapped] == [1, 2] * 5 + [None]
    if has_context:
        assert sorted(asked, key=str) == [("a", "one"), ("a", "two"), ("b", None)]
        assert [row["matched_name"] for row in mapped[::2]] == ["a/one", "a/two", "a/one", "b/None", "b/None", None]
    else:
        assert sorted(asked) == [("a", None), ("b", None)]
    assert report.n_mentions == len(asked)


def test_many_keys_of_which_each_line_has_few(linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells without a value take memory too: frames, parts and row groups are bounded by them."""
    monkeypatch.setattr(parts, "PART_BYTES", 16 * 40 * 7)
    monkeypatch.setattr("onoma.mapping.json_tables._CELLS_AT_ONCE", 120)
    monkeypatch.setattr("onoma.mapping.outputs._CELLS_OF_ROW_GROUP", 440)
    monkeypatch.setattr("onoma.mapping.outputs._LEAST_ROW_GROUP", 1)
    heights: list[int] = []
    write = pl.DataFrame.write_parquet

    def writing(self: pl.DataFrame, *args: Any, **options: Any) -> None:
        if "concept_id" in self.columns:
            heights.append(self.height)
        write(self, *args, **options)

    groups: list[int] = []
    sink = pl.LazyFrame.sink_parquet

    def sinking(self: pl.LazyFrame, *args: Any, **options: Any) -> Any:
        groups.extend([options["row_group_size"]] if options.get("row_group_size") else [])
        return sink(self, *args, **options)

    frames: list[int] = []
    frame = JsonLinesTable._frame

    def framing(self: JsonLinesTable, lines: Sequence[str], records: Sequence[Any]) -> pl.DataFrame:
        if self._columns:
            frames.append(len(records))
        return frame(self, lines, records)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", writing)
    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", sinking)
    monkeypatch.setattr(JsonLinesTable, "_frame", framing)
    records = [{"m": "cold", f"k{row % 40}": row} for row in range(100)]
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    map_table(linker, tmp_path / "x.jsonl", tmp_path / "y.parquet", column="m")
    assert sum(heights) == 100
    assert 5 <= max(heights) <= 8
    assert groups == [9]  # of 45 columns
    assert max(frames) == 2
    found = scan_parquet(tmp_path / "y.parquet").collect()
    assert list(found.columns)[:41] == ["m", *(f"k{number}" for number in range(40))]
    expected = [{name: str(record[name]) for name in record if name != "m"} for record in records]
    of_keys = found.select(pl.col("^k[0-9]+$")).iter_rows(named=True)
    assert [{name: value for name, value in row.items() if value is not None} for row in of_keys] == expected
