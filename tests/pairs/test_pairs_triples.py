"""Relation triples against a plain reading of the rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs_oracles import texts_of

from manifests import read_fields, write_fields
from onoma.artifacts import verify_artifact
from onoma.errors import ArtifactExistsError, DamagedArtifactError, InputError, NotAnArtifactError
from onoma.pairs import PairSet, TripleSet, build_triples
from onoma.terminology import Terminology
from tiny import Name, make_terminology, small_tokenizer

CONCEPTS: dict[str, list[str | Name]] = {
    "A": ["heart", "Herz", Name("herz", "de")],
    "B": ["heart attack", "mi"],
    "C": ["gone"],
    "D": [Name("kalt", "de"), Name("cold", is_suppressed=True)],
    "E": ["mi"],
}
TEXTS = ["heart", "herz", "heart attack", "mi", "gone", "kalt"]
TYPES = {"A": ["organ", "part"], "B": ["disease"], "E": ["organ"]}


def make(folder: Path, relations: list[tuple[str, str, str]]) -> Terminology:
    return make_terminology(folder, CONCEPTS, obsolete={"C"}, semantic_types=TYPES, relations=relations)


@given(
    st.lists(
        st.tuples(st.sampled_from("ABCDE"), st.sampled_from(["isa", "finding site of", "ä"]), st.sampled_from("ABCDE")),
        max_size=12,
    ),
    st.sampled_from([None, ["isa"], ["ä", "isa"]]),
)
@settings(max_examples=50)
def test_relations_between_concepts_with_names(
    tmp_path_factory: pytest.TempPathFactory, relations: list[tuple[str, str, str]], wanted: list[str] | None
) -> None:
    folder = tmp_path_factory.mktemp("triples")
    terminology = make(folder / "t", relations)
    kinds = {what for _, what, _ in relations}
    if wanted is not None and not kinds.issuperset(wanted):
        with pytest.raises(InputError, match="there is no relation"):
            build_triples(terminology, small_tokenizer(), folder / "s", relations=wanted)
        return
    of_kind = [triple for triple in relations if wanted is None or triple[1] in wanted]
    named = [triple for triple in of_kind if "C" not in {triple[0], triple[2]}]
    others = [triple for triple in named if triple[0] != triple[2]]
    if not others:
        with pytest.raises(InputError, match="no relation to train on"):
            build_triples(terminology, small_tokenizer(), folder / "s", relations=wanted)
        return
    made = build_triples(terminology, small_tokenizer(), folder / "s", relations=wanted)
    found = [("ABCDE"[head], made.relation_names[what], "ABCDE"[tail]) for head, what, tail in made.triples.tolist()]
    assert len(found) == len(set(found))
    assert set(found) == set(others)
    assert list(made.relation_names) == sorted(kinds if wanted is None else wanted)
    assert made.manifest.config["relations_found"] == {
        "in_all": len(relations),
        "of_other_kinds": len(relations) - len(of_kind),
        "without_names": len(of_kind) - len(named),
        "to_itself": len(named) - len(others),
        "repeated": len(others) - len(set(others)),
    }


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Terminology:
    return make(tmp_path_factory.mktemp("t") / "t", [("A", "isa", "B"), ("B", "inverse_isa", "A"), ("D", "isa", "A")])


def test_names_and_semantic_types_of_every_concept(terminology: Terminology, tmp_path: Path) -> None:
    made = build_triples(terminology, small_tokenizer(), tmp_path / "s", max_tokens=32)
    texts = texts_of(made, TEXTS)
    by_concept = [
        texts[begin:end] for begin, end in zip(made.name_offsets.tolist(), made.name_offsets[1:].tolist(), strict=False)
    ]
    assert by_concept == [["heart", "herz"], ["heart attack", "mi"], [], ["kalt"], ["mi"]]
    assert made.labels.tolist() == [0, 0, 1, 1, 3, 4]
    assert made.text_labels is not None
    assert made.text_labels[3] == made.text_labels[5]
    types = [made.semantic_type_names[number] if number >= 0 else None for number in made.semantic_types]
    assert types == ["organ", "disease", None, None, "organ"]
    assert made.triples.dtype == np.int32
    assert isinstance(made.triples, np.memmap)
    assert made.manifest.parents == (terminology.manifest.as_parent(),)


def test_languages_and_hidden_names_take_their_relations_along(terminology: Terminology, tmp_path: Path) -> None:
    english = build_triples(terminology, small_tokenizer(), tmp_path / "en", languages=["en"])
    assert english.triples.tolist() == [[0, 1, 1], [1, 0, 0]]
    hidden = build_triples(terminology, small_tokenizer(), tmp_path / "h", hidden_names=[3, 4])
    assert hidden.triples.tolist() == [[3, 1, 0]]
    assert hidden.manifest.config["hidden_names"] is not None


def test_what_is_written_can_be_opened(terminology: Terminology, tmp_path: Path) -> None:
    made = build_triples(terminology, small_tokenizer(), tmp_path / "s")
    verify_artifact(made.path)
    opened = TripleSet.open(tmp_path / "s")
    assert opened.manifest == made.manifest
    assert repr(opened) == f"TripleSet('{tmp_path / 's'}': {len(opened.triples)} triples, {len(opened.store)} names)"
    assert repr(opened.store) == f"NameStore({len(opened.store)} names, {len(opened.store.ids)} tokens)"
    assert opened.relation_names == ("inverse_isa", "isa")
    assert opened.tokenizer_fingerprint == made.tokenizer_fingerprint
    again = build_triples(terminology, small_tokenizer(), tmp_path / "again")
    assert again.manifest.fingerprint == made.manifest.fingerprint
    with pytest.raises(ArtifactExistsError):
        build_triples(terminology, small_tokenizer(), tmp_path / "s")
    with pytest.raises(NotAnArtifactError):
        PairSet.open(tmp_path / "s")


def test_a_relation_that_is_not_there(terminology: Terminology, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no relation 'is_a'. Did you mean 'isa'.*some of inverse_isa, isa"):
        build_triples(terminology, small_tokenizer(), tmp_path / "s", relations=["is_a"])
    with pytest.raises(InputError, match="put it in a list"):
        build_triples(terminology, small_tokenizer(), tmp_path / "s", relations="isa")


def test_arrays_that_do_not_fit_are_noticed(terminology: Terminology, tmp_path: Path) -> None:
    made = build_triples(terminology, small_tokenizer(), tmp_path / "s")
    file = made.path / "semantic_types.npy"
    np.save(file, np.zeros(2, np.int32))
    manifest = read_fields(made.path)
    del manifest["files"]["semantic_types.npy"]
    write_fields(made.path, manifest)
    with pytest.raises(DamagedArtifactError, match="do not fit"):
        TripleSet.open(made.path)
