"""The pair set: what it holds, and what happens when it is opened, made again, or cannot be made."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from pairs_oracles import tokens, tokens_of

from onoma.artifacts import verify_artifact
from onoma.encoders.tokens import tokenizer_fingerprint
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    DamagedArtifactError,
    InputError,
    MismatchError,
    NotAnArtifactError,
)
from onoma.pairs import PairSet, build_pairs, training_names
from onoma.terminology import Terminology
from tiny import Name, make_terminology, small_tokenizer

AWKWARD = ["'\"#||\\", "心臓発作", "a\0b", "e\u0301", "é", "ß", "x" * 10_000, "\u202eabc", "😀 heart"]


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Terminology:
    return make_terminology(
        tmp_path_factory.mktemp("t") / "t",
        {
            "C:1": ["Heart attack", "Heart attacks", "MI"],
            "C:2": ["single"],
            "C:3": ["MI", "Michigan", Name("michigane", language="fr")],
            "C:4": AWKWARD,
            "C:5": ["dead", "deader"],
        },
        obsolete={"C:5"},
    )


def test_names_tokens_labels_and_pairs_fit_together(terminology: Terminology, tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    built = build_pairs(
        terminology, small_tokenizer(), tmp_path / "p", seed=4, progress=lambda *args: calls.append(args)
    )
    names = training_names(terminology)
    texts = names["text"].to_list()
    assert names["concept_row"].to_list() == built.labels.tolist()
    assert tokens(built) == tokens_of(texts)
    expected = {(a, b) for a, b in itertools.combinations(range(len(texts)), 2) if built.labels[a] == built.labels[b]}
    assert {tuple(pair) for pair in built.pairs.tolist()} == expected
    assert built.pairs.dtype == built.labels.dtype == np.int32
    assert built.text_labels is not None
    by_tokens: dict[tuple[int, ...], int] = {}
    for row, (ids, label) in enumerate(zip(tokens(built), built.text_labels.tolist(), strict=True)):
        assert by_tokens.setdefault(tuple(ids), row) == label
    assert calls[-1] == (len(texts), len(texts), "tokenising names")
    assert built.tokenizer_fingerprint == tokenizer_fingerprint(small_tokenizer())
    assert built.manifest.seed == 4
    assert built.manifest.parents == (terminology.manifest.as_parent(),)
    verify_artifact(tmp_path / "p")


def test_names_of_one_vector_are_marked_as_one(tmp_path: Path) -> None:
    """An accent that the tokeniser drops, or words behind those that it keeps, make another text and one vector."""
    concepts = {
        "A": ["caf\u00e9 attack", "x"],
        "B": ["cafe attack", "y"],
        "C": [f"{'a ' * 30}b", "z"],
        "D": ["a " * 30],
    }
    terminology = make_terminology(tmp_path / "t", concepts)
    built = build_pairs(terminology, small_tokenizer(), tmp_path / "p", normalisation="sapbert")
    texts = training_names(terminology, normalisation="sapbert")["text"].to_list()
    assert built.text_labels is not None
    label = dict(zip(texts, built.text_labels.tolist(), strict=True))
    assert len(label) == 7
    assert len(set(label.values())) == 5
    assert label["caf\u00e9 attack"] == label["cafe attack"]


def test_names_go_through_the_preset_that_is_named(tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {"A": ["heart-attack", "heart attack", "x"]})
    for preset, texts in {"exact": ["heart-attack", "heart attack", "x"], "loose": ["heart attack", "x"]}.items():
        built = build_pairs(terminology, small_tokenizer(), tmp_path / preset, normalisation=preset)
        assert tokens(built) == tokens_of(texts)


def test_opened_again_it_is_the_same(terminology: Terminology, tmp_path: Path) -> None:
    built = build_pairs(terminology, small_tokenizer(), tmp_path / "p")
    (tmp_path / "p").rename(tmp_path / "moved")
    opened = PairSet.open(tmp_path / "moved")
    assert opened.manifest == built.manifest
    for name in ("pairs", "labels", "text_labels"):
        assert np.array_equal(getattr(opened, name), getattr(built, name))
    assert np.array_equal(opened.store.ids, built.store.ids)


def test_equal_arguments_make_equal_folders(terminology: Terminology, tmp_path: Path) -> None:
    tokenizer = small_tokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    first = build_pairs(terminology, tokenizer, tmp_path / "a", max_pairs_per_concept=2)
    second = build_pairs(terminology, tmp_path / "tokenizer.json", tmp_path / "b", max_pairs_per_concept=2)
    assert first.manifest.fingerprint == second.manifest.fingerprint
    other = build_pairs(terminology, tokenizer, tmp_path / "c", max_pairs_per_concept=2, seed=1)
    assert other.manifest.fingerprint != first.manifest.fingerprint


@pytest.mark.parametrize("ambiguous", ["keep", "drop"])
def test_text_labels_are_there_only_when_marked(terminology: Terminology, tmp_path: Path, ambiguous: str) -> None:
    built = build_pairs(terminology, small_tokenizer(), tmp_path / "p", ambiguous=ambiguous)  # type: ignore[arg-type]
    assert built.text_labels is None


def test_what_is_there_is_reused_refused_or_replaced(terminology: Terminology, tmp_path: Path) -> None:
    out = tmp_path / "p"
    built = build_pairs(terminology, small_tokenizer(), out, hidden_names=[1], languages=["en", "fr"], reuse=True)
    reused = build_pairs(terminology, small_tokenizer(), out, hidden_names=[1], languages=["fr", "en"], reuse=True)
    assert reused.manifest == built.manifest
    with pytest.raises(MismatchError, match=r"seed \(there 0, now 1\)"):
        build_pairs(terminology, small_tokenizer(), out, hidden_names=[1], languages=["en", "fr"], seed=1, reuse=True)
    with pytest.raises(MismatchError, match="other names hidden"):
        build_pairs(terminology, small_tokenizer(), out, hidden_names=[2], languages=["en", "fr"], reuse=True)
    other = make_terminology(tmp_path / "other", {"C": ["a", "b", "c"]})
    with pytest.raises(MismatchError, match="another terminology"):
        build_pairs(other, small_tokenizer(), out, hidden_names=[1], languages=["en", "fr"], reuse=True)
    with pytest.raises(ArtifactExistsError):
        build_pairs(terminology, small_tokenizer(), out)
    replaced = build_pairs(other, small_tokenizer(), out, overwrite=True)
    assert len(replaced.pairs) == 3
    with pytest.raises(NotAnArtifactError):
        PairSet.open(other.path)


@pytest.mark.parametrize(
    ("concepts", "options", "match"),
    [
        ({"C:1": ["one"], "C:2": ["One", " one "]}, {}, "2 usable names of 2 concepts"),
        ({"C:1": ["one", "two"]}, {"languages": ["de"]}, "no name is of the language 'de'; expected some of en"),
        ({"C:1": ["one"]}, {"languages": ["en"]}, "two names of the languages en, so"),
        ({"C:1": ["one", "two"]}, {"hidden_names": [1]}, "1 usable names"),
        ({}, {}, "0 usable names"),
        ({"C:1": ["one", "two"], "C:2": ["one"]}, {"ambiguous": "drop"}, "that no other concept has.*ambiguous=mark"),
    ],
)
def test_without_any_pair_the_error_says_why(
    tmp_path: Path, concepts: dict[str, list[str]], options: dict[str, object], match: str
) -> None:
    terminology = make_terminology(tmp_path / "t", concepts)
    with pytest.raises(InputError, match=match):
        build_pairs(terminology, small_tokenizer(), tmp_path / "p", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "p").exists()


def test_settings_that_cannot_be_leave_nothing_behind(terminology: Terminology, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="max_tokens"):
        build_pairs(terminology, small_tokenizer(), tmp_path / "p", max_tokens=2)
    with pytest.raises(ConfigError):
        build_pairs(terminology, small_tokenizer(), tmp_path / "p", max_pairs_per_concept=0)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_byte_is_noticed_however_large_the_file(
    terminology: Terminology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of folders that are not read whole, opening sees a sample of a large file, and here none."""
    built = build_pairs(terminology, small_tokenizer(), tmp_path / "p")
    monkeypatch.setattr("onoma.artifacts.manifest._ALWAYS_VERIFIED_BYTES", -1)
    for folder, file, open_folder in (
        (built.path, "pairs.npy", PairSet.open),
        (terminology.path, "names.parquet", Terminology.open),
    ):
        open_folder(folder)
        content = bytearray((folder / file).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / file).write_bytes(content)
        with pytest.raises(DamagedArtifactError, match=rf"{file} has changed"):
            open_folder(folder)
        content[len(content) // 2] ^= 1
        (folder / file).write_bytes(content)


def test_damage_is_noticed(terminology: Terminology, tmp_path: Path) -> None:
    built = build_pairs(terminology, small_tokenizer(), tmp_path / "p")
    ids = built.path / "names" / "ids.npy"
    whole = ids.read_bytes()
    ids.write_bytes(whole[:-4])
    with pytest.raises(DamagedArtifactError, match="bytes"):
        PairSet.open(built.path)
    ids.unlink()
    with pytest.raises(DamagedArtifactError, match="missing"):
        PairSet.open(built.path)
    run = tmp_path / "e.run"
    with pytest.raises(DamagedArtifactError, match=r"ids.npy is missing\. Remove .*e\.run to begin anew"):
        build_pairs(terminology, small_tokenizer(), built.path, reuse=True, part_of=run)
    (built.path / "onoma.json").unlink()
    with pytest.raises(DamagedArtifactError, match=r"no onoma\.json\. Remove .*e\.run to begin anew"):
        build_pairs(terminology, small_tokenizer(), built.path, reuse=True, part_of=run)
