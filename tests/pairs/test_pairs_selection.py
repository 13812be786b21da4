"""Which names are trained on, against a plain reading of the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import ConfigError, InputError
from onoma.pairs import rows_fingerprint, selection, training_names
from onoma.terminology import Terminology
from onoma.terminology.tables import of_languages
from tiny import Name, make_terminology

CONCEPTS: dict[str, list[str | Name]] = {
    "C:1": ["Heart attack", "heart  ATTACK", "Myocardial infarction", Name("MI", is_suppressed=True), "  "],
    "C:2": ["Cold", Name("Erkältung", language="de"), Name("Cold", language="en-GB"), Name("colds", language="enm")],
    "C:3": ["Old disease", "gone"],
    "C:4": ["COLD", "Chronic obstructive lung disease", Name("froid", language="fr")],
}


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Terminology:
    return make_terminology(tmp_path_factory.mktemp("t") / "t", CONCEPTS, obsolete={"C:3"})


def rows(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = table.select(columns).rows()
    return found


def test_distinct_normalised_names_of_active_concepts(terminology: Terminology) -> None:
    table = training_names(terminology, ambiguous="keep")
    assert rows(table, "concept_row", "name_row", "text") == [
        (0, 0, "heart attack"),
        (0, 2, "myocardial infarction"),
        (1, 5, "cold"),
        (1, 6, "erkältung"),
        (1, 8, "colds"),
        (3, 11, "cold"),
        (3, 12, "chronic obstructive lung disease"),
        (3, 13, "froid"),
    ]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", "c", "", "ä"])), max_size=40), st.booleans())
def test_the_first_of_equal_names_stays(rows_found: list[tuple[int, str]], hashes_collide: bool) -> None:
    rows_found = sorted(rows_found, key=lambda row: row[0])
    table = pl.DataFrame(rows_found, schema={"concept_row": pl.Int32, "text": pl.String}, orient="row")
    table = table.with_columns(name_row=pl.int_range(pl.len(), dtype=pl.Int32))
    expected, seen = [], set()
    for number, row in enumerate(rows_found):
        if row not in seen:
            expected.append((*row, number))
            seen.add(row)
    with pytest.MonkeyPatch.context() as patched:
        if hashes_collide:
            patched.setattr(pl.Series, "hash", lambda series: pl.Series([0] * len(series), dtype=pl.UInt64))
        assert selection._distinct(table).rows() == expected


def test_suppressed_names_on_request(terminology: Terminology) -> None:
    without = set(training_names(terminology, ambiguous="keep").rows())
    everything = set(training_names(terminology, ambiguous="keep", include_suppressed=True).rows())
    assert everything - without == {(0, 3, "mi")}
    assert without < everything


def test_names_that_several_concepts_share_are_dropped(terminology: Terminology) -> None:
    dropped = training_names(terminology, ambiguous="drop")
    assert "cold" not in dropped["text"]
    assert len(dropped) == 6


def test_folders_of_before_may_have_other_codes_of_a_language(tmp_path: Path) -> None:
    names = [Name(f"name {tag.lower()}", language=tag) for tag in ("en", "eng", "en-GB", "he", "iw", "heb", "enm")]
    terminology = make_terminology(tmp_path / "t", {"C": list(names)})
    for asked, expected in (("en", "en eng en-GB"), ("eng", "en eng en-GB"), ("he", "he iw heb"), ("iw", "he iw heb")):
        found = terminology.names().filter(of_languages([asked])).select("text").collect()["text"]
        assert list(found) == [f"name {tag.lower()}" for tag in expected.split()]
        assert set(training_names(terminology, languages=[asked])["text"]) == set(found)


def test_a_language_takes_its_regional_variants_and_no_longer_tags(terminology: Terminology) -> None:
    texts = training_names(terminology, languages=["EN"], ambiguous="keep")["text"].to_list()
    assert "erkältung" not in texts
    assert "colds" not in texts, "enm is another tag than en"
    assert texts.count("cold") == 2
    both = training_names(terminology, languages=["de", "fr"], ambiguous="keep")
    assert both["text"].to_list() == ["erkältung", "froid"]
    assert training_names(terminology, languages=["en-gb"])["text"].to_list() == ["cold"]
    assert training_names(terminology, languages=[]).is_empty()


def test_hidden_names_are_left_out(terminology: Terminology) -> None:
    # row 0 is hidden, but row 1 is the same name spelt otherwise
    assert rows(training_names(terminology, hidden_names=[0]), "name_row", "text")[0] == (1, "heart attack")
    texts = training_names(terminology, hidden_names=np.array([0, 1, 13], np.uint32))["text"].to_list()
    assert "heart attack" not in texts
    assert "froid" not in texts


def test_hidden_names_must_exist(terminology: Terminology) -> None:
    with pytest.raises(InputError, match="hidden"):
        training_names(terminology, hidden_names=[14])


def test_what_becomes_of_homonyms_is_one_of_three(terminology: Terminology) -> None:
    with pytest.raises(ConfigError, match="keep, drop, mark"):
        training_names(terminology, ambiguous="forget")  # type: ignore[arg-type]


def test_fingerprints_are_of_sets_of_rows() -> None:
    assert rows_fingerprint(None) is None
    assert rows_fingerprint([]) is None
    assert rows_fingerprint([3, 1]) == rows_fingerprint(np.array([1, 3, 3], np.uint32))
    assert rows_fingerprint([3, 1]) != rows_fingerprint([3, 2])


def test_a_terminology_without_names(tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {})
    assert training_names(terminology).is_empty()
