"""Figures of a terminology against counting in loops, and the picture of its names per concept."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_terminology_tables import tables

from commands import run
from onoma.errors import ArtifactExistsError, InputError, UnavailableError
from onoma.terminology import Terminology, TerminologyInfo, normalise, write_terminology
from onoma.terminology.information import gather_information
from onoma.terminology.names_per_concept_plot import names_per_concept_bars, plot_names_per_concept
from onoma.terminology.tables import CROSS_REFERENCES
from tiny import Name, make_terminology

names_of_concepts = st.lists(
    st.lists(st.sampled_from(["a", "A", " a", "b", "B  b", "É", "é", "c", "d", "e"]), max_size=8), max_size=8
)


def information(concepts: list[list[str]], *, obsolete: frozenset[int] = frozenset()) -> TerminologyInfo:
    content = tables([(f"C{row}", names) for row, names in enumerate(concepts)])
    status = pl.Series(["obsolete" if row in obsolete else "active" for row in range(len(concepts))], dtype=pl.String)
    references = pl.LazyFrame(schema=CROSS_REFERENCES)
    return gather_information(
        content.concepts.with_columns(status=status).lazy(),
        content.names.lazy(),
        content.relations.lazy(),
        references,
        n_definitions=0,
    )


@settings(max_examples=60)
@given(concepts=names_of_concepts, obsolete=st.frozensets(st.integers(0, 7)))
def test_against_counting_in_loops(concepts: list[list[str]], obsolete: frozenset[int]) -> None:
    info = information(concepts, obsolete=obsolete)
    distinct = [{normalise(name) for name in names} for names in concepts]
    owners = Counter(text for row, texts in enumerate(distinct) if row not in obsolete for text in texts)
    assert info.n_names == sum(map(len, concepts))
    assert info.n_distinct_names == sum(map(len, distinct))
    assert info.n_homonyms == sum(count > 1 for count in owners.values())
    assert info.concepts_by_names == dict(sorted(Counter(map(len, distinct)).items()))
    sizes = sorted(len(texts) for texts in distinct if texts)
    for share in (0.0, 0.25, 0.5, 0.9, 1.0):
        enough = [size for size in sizes if sum(other <= size for other in sizes) >= share * len(sizes)]
        assert info.names_at(share) == (min(enough) if enough else 0)
    assert info.names_per_concept == pytest.approx(sum(sizes) / len(sizes) if sizes else 0.0)
    bars = names_per_concept_bars(info)
    assert sum(count for _, count in bars) == len(sizes)
    assert str(info).startswith("concepts ")


def test_every_line_of_the_text_begins_in_the_same_column(tmp_path: Path) -> None:
    content = tables([("A", ["a", "b"]), ("B", ["a"]), ("C", [])], types=["disease"])
    references = pl.DataFrame(
        [(0, "MESH:D1", "xref", ""), (1, "MESH:D2", "exactMatch", ""), (1, "9", "xref", "")],
        schema=CROSS_REFERENCES,
        orient="row",
    )
    write_terminology(tmp_path / "t", dataclasses.replace(content, cross_references=references))
    info = Terminology.open(tmp_path / "t").info()
    assert info.cross_references == {"MESH": 2, "": 1}
    lines = str(info).splitlines()
    assert len({line.index(line.split("  ", 1)[1].strip()) for line in lines}) == 1
    assert (
        "names per concept  1.50 distinct ones on average; median 1, 90 % have up to 2, 99 % up to 2, most 2" in lines
    )
    assert "without names      1 concept" in lines
    assert "cross-references   3: MESH 2, - 1" in lines


def test_bars_get_wider() -> None:
    info = dataclasses.replace(information([]), concepts_by_names={0: 9, 1: 5, 3: 2, 6: 1, 10: 1, 11: 1, 4000: 3})
    assert names_per_concept_bars(info)[:7] == [
        ("1", 5),
        ("2", 0),
        ("3", 2),
        ("4", 0),
        ("5", 0),
        ("6–10", 2),
        ("11–20", 1),
    ]
    assert names_per_concept_bars(info)[-1] == ("1,001 and more", 3)
    assert names_per_concept_bars(information([["a"]])) == [("1", 1)]


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_picture_of_each_kind(tmp_path: Path, kind: str, begins: bytes) -> None:
    pytest.importorskip("matplotlib")
    info = information([["a"], ["a", "b"], [f"{n}" for n in range(12)]])
    file = tmp_path / "new" / f"names.{kind}"
    plot_names_per_concept(info, file, title="a $vocabulary$ of_mine")
    assert file.read_bytes().startswith(begins)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    with pytest.raises(ArtifactExistsError):
        plot_names_per_concept(info, file)
    plot_names_per_concept(info, file, overwrite=True)


def test_what_cannot_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match=r"ending in \.png, \.svg, \.pdf"):
        plot_names_per_concept(information([["a"]]), tmp_path / "x.jpg")
    with pytest.raises(InputError, match="no concept has a name"):
        plot_names_per_concept(information([[]]), tmp_path / "x.png")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"pip install 'onoma\[plot\]'"):
        plot_names_per_concept(information([["a"]]), tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


def test_the_command_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_terminology(tmp_path / "t", tables([("A", ["a", "b"])]))
    assert "names per concept" in run("terminology", "info", tmp_path / "t", "--plot", tmp_path / "x.svg")
    assert "<svg" in (tmp_path / "x.svg").read_text()
    with pytest.raises(ArtifactExistsError):
        run("terminology", "info", tmp_path / "t", "--plot", tmp_path / "x.svg")


def test_a_source_does_nothing_to_the_terminal_that_it_is_shown_on(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"X:1": [Name("a", source="\x1b[31mred")]})
    shown = run("terminology", "info", tmp_path / "t")
    assert "\ufffd[31mred" in shown
    assert "\x1b" not in shown
    assert len(shown.splitlines()) > 3
