"""Hidden synonyms keep the rules, whatever the terminology and the seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.pairs import hold_out_synonyms, names_of_mentions, training_names
from onoma.terminology import Terminology, normalise
from tiny import Name, make_terminology


def spare_names(concepts: dict[str, list[str]]) -> dict[str, set[str]]:
    """By loops: normalised names of each concept that may be hidden."""
    owners: dict[str, set[str]] = {}
    for concept, names in concepts.items():
        for name in names:
            owners.setdefault(normalise(name), set()).add(concept)
    spare = {}
    for concept, names in concepts.items():
        distinct = {normalise(name) for name in names} - {""}
        allowed = {text for text in distinct - {normalise(names[0])} if owners[text] == {concept}}
        if len(distinct) >= 3 and allowed:
            spare[concept] = allowed
    return spare


names_of_concepts = st.lists(
    st.lists(st.sampled_from(["a", "A", "b", " b", "c", "d", "D", "e", "f", "g", "", "h"]), min_size=1, max_size=6),
    min_size=1,
    max_size=6,
)


@given(names_of_concepts, st.integers(0, 1000))
@settings(max_examples=30)
def test_hidden_synonyms_keep_the_rules(
    tmp_path_factory: pytest.TempPathFactory, names: list[list[str]], seed: int
) -> None:
    concepts = {f"C:{number}": own for number, own in enumerate(names)}
    terminology = make_terminology(tmp_path_factory.mktemp("t") / "t", concepts)
    spare = spare_names(concepts)
    if not spare:
        with pytest.raises(InputError):
            hold_out_synonyms(terminology, n_names=1, seed=seed)
        return
    n_names = 1 + seed % len(spare)
    hidden = hold_out_synonyms(terminology, n_names=n_names, seed=seed)
    assert len(hidden.texts) == len(hidden.concept_ids) == n_names
    assert len(set(hidden.concept_ids)) == n_names
    assert list(hidden.concept_ids) == sorted(hidden.concept_ids, key=list(concepts).index)
    flat = [(concept, name) for concept, own in concepts.items() for name in own]
    for text, concept in zip(hidden.texts, hidden.concept_ids, strict=True):
        assert text in concepts[concept]
        assert normalise(text) in spare[concept]
    expected = {
        row
        for row, (concept, name) in enumerate(flat)
        for text, own in zip(hidden.texts, hidden.concept_ids, strict=True)
        if own == concept and normalise(name) == normalise(text)
    }
    assert hidden.name_rows.tolist() == sorted(expected)
    left = training_names(terminology, hidden_names=hidden.name_rows)
    remaining = Counter(left["concept_row"])
    assert all(remaining[list(concepts).index(concept)] >= 2 for concept in hidden.concept_ids)
    texts = set(left["text"])
    assert not {normalise(text) for text in hidden.texts} & texts


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Terminology:
    concepts: dict[str, list[str | Name]] = {
        f"C:{number}": [f"name {number}", f"other {number}", Name(f"autre {number}", language="fr"), f"last {number}"]
        for number in range(60)
    }
    return make_terminology(tmp_path_factory.mktemp("t") / "t", concepts, obsolete={"C:0"})


def test_a_notebook_shows_how_many_are_hidden(terminology: Terminology) -> None:
    hidden = hold_out_synonyms(terminology, n_names=40)
    assert repr(hidden) == "HeldOut(40 synonyms, 40 rows of names)"


def test_the_seed_decides(terminology: Terminology) -> None:
    first = hold_out_synonyms(terminology, n_names=20, seed=1)
    again = hold_out_synonyms(terminology, n_names=20, seed=1)
    other = hold_out_synonyms(terminology, n_names=20, seed=2)
    assert first.texts == again.texts
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != other.fingerprint


def test_concepts_and_their_synonyms_are_chosen_evenly(terminology: Terminology) -> None:
    chosen = Counter(text for seed in range(60) for text in hold_out_synonyms(terminology, n_names=30, seed=seed).texts)
    kinds: Counter[str] = Counter()
    for text, count in chosen.items():
        kinds[text.split()[0]] += count
    assert set(kinds) == {"other", "autre", "last"}
    assert all(abs(count - 600) < 120 for count in kinds.values()), kinds
    per_concept: Counter[str] = Counter()
    for text, count in chosen.items():
        per_concept[text.split()[1]] += count
    assert len(per_concept) == 59
    assert all(12 < count < 50 for count in per_concept.values())


def test_languages_limit_what_is_hidden(terminology: Terminology) -> None:
    hidden = hold_out_synonyms(terminology, n_names=59, languages=["en"])
    assert not any(text.startswith("autre") for text in hidden.texts)


@pytest.mark.parametrize("n_names", [0, -1, 60, 2.5, "3"])
def test_asking_for_more_than_there_are_is_refused(terminology: Terminology, n_names: Any) -> None:
    with pytest.raises(InputError, match="1 to 59"):
        hold_out_synonyms(terminology, n_names=n_names)


def test_suppressed_names_neither_count_nor_hide(tmp_path: Path) -> None:
    suppressed = Name("third", is_suppressed=True)
    with pytest.raises(InputError, match=r"three different names.*To mend it: give a file of queries"):
        hold_out_synonyms(make_terminology(tmp_path / "t", {"C": ["first", "second", suppressed]}), n_names=1)


@pytest.mark.parametrize("seed", range(4))
def test_a_text_that_is_hidden_already_is_not_chosen_in_another_spelling(tmp_path: Path, seed: int) -> None:
    terminology = make_terminology(tmp_path / "t", {"A": ["a one", "Heart Attack", "heart attack", "b two"]})
    assert hold_out_synonyms(terminology, n_names=1, seed=seed, hidden_names=[1]).texts == ("b two",)


def test_concepts_with_many_synonyms_are_no_likelier(tmp_path: Path) -> None:
    letters = [f"{a}{b}" for a in "abcdefghij" for b in "abcdefghij"]
    concepts = {f"M:{n}": [f"m{n} {letter}" for letter in letters[:22]] for n in range(100)}
    concepts |= {f"F:{n}": [f"f{n} {letter}" for letter in letters[:3]] for n in range(100)}
    held_out = hold_out_synonyms(make_terminology(tmp_path / "t", concepts), n_names=100, seed=0)
    of_many = sum(concept_id.startswith("M") for concept_id in held_out.concept_ids)
    assert 30 < of_many < 70  # 50 expected, standard deviation 3.5


def test_two_other_names_remain_in_the_languages(tmp_path: Path) -> None:
    concepts: dict[str, list[str | Name]] = {
        f"E{number}": [f"a{number}", f"b{number}", f"c{number}", Name(f"d{number}", language="es")]
        for number in range(3)
    }
    concepts["S"] = ["heart", *(Name(text, language="es") for text in ("corazon", "cardio", "cor"))]
    made = make_terminology(tmp_path / "t", concepts)
    assert hold_out_synonyms(made, n_names=1, languages=["es"]).concept_ids == ("S",)
    assert len(hold_out_synonyms(made, n_names=3, languages=["en"]).texts) == 3
    with pytest.raises(InputError, match="1 to 3"):
        hold_out_synonyms(made, n_names=4, languages=["en"])


def test_a_language_is_in_a_list_and_there(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D1": ["a", "b", "c"]})
    assert hold_out_synonyms(tmp_path / "t", n_names=1, languages=["en"]).concept_ids == ("D1",)
    with pytest.raises(InputError, match="put it in a list"):
        hold_out_synonyms(tmp_path / "t", n_names=1, languages="en")
    with pytest.raises(InputError, match="no name is of the language 'xx'"):
        hold_out_synonyms(tmp_path / "t", n_names=1, languages=["xx"])


@settings(max_examples=30)
@given(
    concepts=names_of_concepts, mentions=st.lists(st.sampled_from(["A", "b ", "e", "zz", " "]), min_size=1, max_size=4)
)
def test_names_that_are_mentions_are_found(
    concepts: list[list[str]], mentions: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("mentions")
    terminology = make_terminology(folder / "t", {f"X:{n}": names for n, names in enumerate(concepts)})
    rows = "".join(f'"{mention}",anything\n' for mention in mentions if mention.strip())
    (folder / "m.csv").write_text(f"mention,concept_id\n{rows}zz,X:0\n")
    (folder / "n.txt").write_text("X:1||g\nX:1|X:2||h|C\n")
    asked = {normalise(mention) for mention in [*mentions, "zz", "g", "h", "c"]} - {""}
    texts = terminology.names().collect()["text"].to_list()
    expected = [row for row, text in enumerate(texts) if normalise(text) in asked]
    assert names_of_mentions(terminology, [folder / "m.csv", folder / "n.txt"]).tolist() == expected


def test_one_file_is_not_several(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"X:1": ["a", "b"]})
    with pytest.raises(InputError, match="files"):
        names_of_mentions(tmp_path / "t", "m.csv")
    assert names_of_mentions(tmp_path / "t", []).tolist() == []
    (tmp_path / "m.txt").write_text("X:1||A\n")
    assert names_of_mentions(tmp_path / "t", [tmp_path / "m.txt"], normalisation="exact").tolist() == []
