"""Update of a linker: equal to a rebuild, only new texts encoded."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linking_data import CONCEPTS, WIDTH, small_terminology
from updating_data import MENTIONS, NEW, contents, letters, new_release, prepared, release, vectors_of

from onoma.artifacts import MANIFEST_NAME, amend_artifact, read_manifest, sha256_file, verify_artifact
from onoma.encoders import export_encoder
from onoma.errors import (
    ConfigError,
)
from onoma.indexes.row_sums import row_sums
from onoma.linking import Linker, LinkerSettings, add_prior, add_reranker, build_linker, known_vectors
from onoma.linking.folder import FORMAT_VERSION
from onoma.linking.known_vectors import KnownVectors
from onoma.linking.updating import update_linker
from onoma.terminology import Terminology
from tiny import Name, make_terminology, tiny_encoder
from tiny_rerankers import write_reranker


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("updating"))


@pytest.mark.parametrize("kind", ["exact", "sign-bits", "approximate"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int16", "int8"])
def test_equals_a_rebuild(
    place: Path, tmp_path: Path, kind: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_vectors, "PART_ROWS", 3)
    options: dict[str, Any] = {"index": kind, "vectors": precision, "sparse": True, "ngrams": (2, 3)}
    options["normalisation"] = "loose"
    before = build_linker(place / "t", letters(place), tmp_path / "linker", **options)
    encoder = letters(place)
    report = update_linker(tmp_path / "linker", place / "new", encoder=encoder)
    rebuilt = build_linker(place / "new", letters(place), tmp_path / "rebuilt", **options)
    updated = Linker.open(tmp_path / "linker")
    mine, theirs = contents(updated.path), contents(rebuilt.path)
    said, would_be = (json.loads(files.pop("index.json")) for files in (mine, theirs))
    assert mine == theirs
    figures = {side: (one.pop("recall"), one.pop("agreement")) for side, one in (("said", said), ("true", would_be))}
    assert said == would_be
    if precision == "fp32":
        assert figures["said"] == figures["true"]
    configs = [dict(one.manifest.config) for one in (updated, rebuilt)]
    indexes = [config.pop("index") for config in configs]
    assert configs[0] == configs[1]
    assert [set(index) for index in indexes] == [set(indexes[0])] * 2
    assert (indexes[0]["recall"], indexes[0]["agreement"]) == figures["said"]
    assert updated.manifest.parents == rebuilt.manifest.parents
    assert updated.encoder.fingerprint == rebuilt.encoder.fingerprint
    old, new = set(before.dictionary.texts), set(rebuilt.dictionary.texts)
    assert set(encoder.texts) >= new - old
    if not precision.startswith("int"):
        assert sorted(encoder.texts) == sorted(new - old)
    assert report.n_encoded == len(encoder.texts)
    assert (report.n_kept, report.n_texts) == (len(old & new), (len(old), len(new)))
    verify_artifact(updated.path)


def random_release(folder: Path, rng: random.Random) -> Terminology:
    texts = ["cold", "Cold", "head cold", "flu", "lung", "a lung", "心臓", "γ", "b12", "heart attack", "x", "sugar"]
    codes = ["A", *rng.sample("BCDEFGH", rng.randint(1, 7))]
    concepts = {
        code: [Name(rng.choice(texts), is_suppressed=rng.random() < 0.2) for _ in range(rng.randint(1, 4))]
        for code in codes
    }
    concepts["A"][0] = Name("always there")
    obsolete = [code for code in codes[1:] if rng.random() < 0.3]
    return release(folder, concepts, obsolete=obsolete)


@settings(max_examples=3)
@given(seed=st.integers(0, 10_000))
def test_any_change_equals_a_rebuild(seed: int, place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng, folder = random.Random(seed), tmp_path_factory.mktemp("any")
    releases = [random_release(folder / name, rng) for name in ("t1", "t2", "t3")]
    precision = rng.choice(["fp32", "fp16"])
    options: dict[str, Any] = {"index": "sign-bits", "vectors": precision, "sparse": True}
    first, *others = releases
    texts = set(build_linker(first, letters(place), folder / "linker", **options).dictionary.texts)
    for number, terminology in enumerate(others):
        encoder = letters(place)
        update_linker(folder / "linker", terminology, encoder=encoder)
        rebuilt = build_linker(terminology, letters(place), folder / f"rebuilt{number}", **options)
        mine, theirs = contents(folder / "linker"), contents(rebuilt.path)
        if precision != "fp32":
            del mine["index.json"], theirs["index.json"]
        assert mine == theirs
        new = set(rebuilt.dictionary.texts)
        assert sorted(encoder.texts) == sorted(new - texts)
        texts = new


def test_with_an_encoder_that_rounds_by_the_batch(tmp_path: Path) -> None:
    """Copied vectors are the very bytes, the others within rounding, and the answers are a rebuild's."""
    export_encoder(tiny_encoder(tmp_path / "bert", weight_std=0.3), tmp_path / "encoder")
    small_terminology(tmp_path / "t")
    new_release(tmp_path / "new")
    before = vectors_of(build_linker(tmp_path / "t", tmp_path / "encoder", tmp_path / "linker", sparse=True))
    rebuilt = build_linker(tmp_path / "new", tmp_path / "encoder", tmp_path / "rebuilt", sparse=True)
    update_linker(tmp_path / "linker", tmp_path / "new")
    updated = Linker.open(tmp_path / "linker")
    found, expected = vectors_of(updated), vectors_of(rebuilt)
    assert list(found) == list(expected)
    for text, vector in found.items():
        np.testing.assert_allclose(vector, expected[text], atol=1e-6)
        if text in before:
            assert vector.tobytes() == before[text].tobytes()
    mentions = ["cold", "common colds", "diabetes", "brr", "low temp", "lung disease", "心臓", ""]
    for mine, theirs in zip(updated.link(mentions), rebuilt.link(mentions), strict=True):
        assert [link.concept_id for link in mine] == [link.concept_id for link in theirs]
        np.testing.assert_allclose([link.score for link in mine], [link.score for link in theirs], atol=2e-6)
    files, expected_files = contents(updated.path), contents(rebuilt.path)
    assert files.keys() == expected_files.keys()
    assert {name for name in files if files[name] != expected_files[name]} <= {"vectors.npy", "index.json"}
    # What wrote the vectors again was nothing but copying: back on the old release they are as they were.
    update_linker(tmp_path / "linker", tmp_path / "t")
    again = vectors_of(Linker.open(tmp_path / "linker"))
    assert all(again[text].tobytes() == before[text].tobytes() for text in found if text in before)


def test_the_report(place: Path, linker: Path) -> None:
    told: list[tuple[int, int | None, str]] = []
    report = update_linker(linker, place / "new", progress=lambda *what: told.append(what))
    assert report.concepts.rows() == [
        ("D9", "added", None, "Low Temperature", None, None),
        ("D6", "replaced", "Cold Temperature", "Cold Temperature", "D9", None),
        ("D8", "retired", "心臓発作", "心臓発作", None, None),
        ("D2", "unnamed", "Cold", "Cold", None, None),
        ("D1", "renamed", "Diabetes Mellitus", "Diabetes", None, None),
    ]
    assert report.counts == {"added": 1, "replaced": 1, "retired": 1, "removed": 0, "unnamed": 1, "renamed": 1} | {
        "respelled": 0
    }
    assert (report.n_concepts, report.n_texts, report.n_kept, report.n_encoded) == ((6, 4), (7, 10), 4, 6)
    assert told[-1] == (10, 10, "encoding")
    assert told[0] == (4, 10, "encoding"), "copied ones are done"
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert json.loads(json.dumps(report.figures()))["n_texts_gone"] == 3
    for words in (
        "6 -> 4 concepts, 7 -> 10 texts (4 kept, 6 new, 3 gone), 6 encoded",
        "D6 Cold Temperature -> D9",
        "D1: Diabetes Mellitus -> Diabetes",
        "D9 Low Temperature",
    ):
        assert words in str(report)
    assert "tune" not in str(report)
    gone = update_linker(linker, place / "t").concepts
    assert ("D9", "removed", "Low Temperature", None, None, None) in gone.rows()


def test_a_successor_that_was_replaced_in_turn_is_passed_over(linker: Path, tmp_path: Path) -> None:
    """Annotations that are rewritten by the report must not get codes that are retired, too."""
    add_prior(linker, pl.DataFrame({"mention": ["cool", "dis"], "concept_id": ["D6", "D8"]}))
    replaced_by = {"D6": "D5", "D5": "D9", "D8": "D2", "D4": "X:1"}
    new = release(tmp_path / "new", NEW, obsolete=["D2", "D4", "D5", "D6", "D8"], replaced_by=replaced_by)
    answered = ["D6", "D8", "D4"]
    report = update_linker(linker, new, tmp_path / "out", mentions=["sugar disease"] * 3, answered=answered)
    told = report.concepts.filter(pl.col("change") != "renamed").select("concept_id", "change", "replaced_by")
    became = {code: (change, to) for code, change, to in told.rows()}
    expected = {"D6": ("replaced", "D9"), "D8": ("retired", None), "D4": ("replaced", "X:1"), "D2": ("retired", None)}
    assert became == {**expected, "D9": ("added", None)}
    assert report.prior is not None
    assert (report.prior.n_moved, report.prior.n_gone) == (1, 1), "counts follow the same successors"
    assert report.answers is not None
    lost = report.answers.changed.filter(pl.col("new_concept_id").is_null() & pl.col("old_score").is_null())
    assert dict(lost.select("old_concept_id", pl.struct("reason", "replaced_by")).rows()) == {
        code: {"reason": expected[code][0], "replaced_by": expected[code][1]} for code in answered
    }


def test_another_spelling_is_no_other_name(linker: Path, tmp_path: Path) -> None:
    new = release(tmp_path / "new", {**CONCEPTS, "D1": ["diabetes  mellitus"], "D2": ["Colds"]}, obsolete=["D5"])
    report = update_linker(linker, new, tmp_path / "out")
    told = report.concepts.select("concept_id", "change", "old", "new").rows()
    assert told == [
        ("D2", "renamed", "Cold", "Colds"),
        ("D1", "respelled", "Diabetes Mellitus", "diabetes  mellitus"),
    ]
    assert "D1: Diabetes Mellitus -> diabetes  mellitus" in str(report)


def test_what_to_consider_is_told_where_nothing_replaces_a_concept(linker: Path, tmp_path: Path) -> None:
    advice = [("D8", "possibly_equivalent_to", "D9"), ("D8", "same_as", "D1")]  # as SNOMED CT has it
    advice += [(code, "consider", other) for code in ("D6", "D1") for other in ("D9", "D1")]
    obsolete = ["D2", "D5", "D6", "D8"]
    new = release(tmp_path / "new", NEW, obsolete=obsolete, replaced_by={"D6": "D9"}, relations=advice)
    assert new.to_consider() == {"D8": ("D9", "D1")}
    report = update_linker(linker, new, tmp_path / "out", mentions=["心臓発作", "dis"], answered=["D8", "D6"])
    told = dict(report.concepts.select("concept_id", "consider").drop_nulls().rows())
    assert told == {"D8": "D9|D1"}
    assert "D8 心臓発作 (consider D9, D1)" in str(report)
    assert report.answers is not None
    assert {
        (row["old_concept_id"], row["replaced_by"], row["consider"]) for row in report.answers.changed.to_dicts()
    } == {
        ("D8", None, "D9|D1"),
        ("D6", "D9", None),
    }


@pytest.mark.parametrize(("n_before", "n_gone", "is_told"), [(100, 20, True), (100, 19, False), (400, 20, False)])
def test_many_concepts_that_are_not_there_at_all_are_told(
    n_before: int, n_gone: int, is_told: bool, tmp_path: Path
) -> None:
    """As where a linker over two terminologies, merged, is updated with one of them."""
    names = {f"X{row}": [f"name {row}"] for row in range(n_before)}
    make_terminology(tmp_path / "t", names)
    make_terminology(tmp_path / "new", dict(list(names.items())[n_gone:]))
    build_linker(tmp_path / "t", None, tmp_path / "l", sparse=True)
    said = str(update_linker(tmp_path / "l", tmp_path / "new"))
    assert (f"{n_gone} of {n_before} concepts are not in this terminology at all" in said) == is_told


def test_settings_stay_and_what_was_learned_is_marked(place: Path, linker: Path) -> None:
    learned = LinkerSettings(stages=("exact", "dense", "sparse"), pool=7, weights={"dense": 0.25, "sparse": 0.75})
    first = read_manifest(place / "t").fingerprint
    with amend_artifact(
        linker, "linker", format_version=FORMAT_VERSION, config={"tuning": {"n_mentions": 60}}
    ) as folder:
        learned.save(folder)
    report = update_linker(linker, place / "new")
    assert report.is_tuned
    assert report.figures()["tuned_with_earlier_terminology"] is True
    assert "onoma linker tune" in str(report)
    updated = Linker.open(linker)
    assert updated.settings == learned
    assert updated.manifest.config["tuning"] == {"n_mentions": 60, "terminology": first}
    again = update_linker(linker, place / "new")
    assert (again.is_current, again.is_tuned) == (True, True)
    back = update_linker(linker, place / "t")
    assert (back.is_tuned, Linker.open(linker).manifest.config["tuning"]) == (False, {"n_mentions": 60})
    update_linker(linker, place / "new")
    assert Linker.open(linker).manifest.config["tuning"]["terminology"] == first, "that it was tuned with"


def test_a_cross_encoder_stays(place: Path, linker: Path, tmp_path: Path) -> None:
    write_reranker(tmp_path / "reranker", tiny_encoder(tmp_path / "bert", weight_std=0.3))
    before = add_reranker(linker, tmp_path / "reranker")
    models = {name: file for name, file in contents(linker).items() if name.startswith("reranker/")}
    update_linker(linker, place / "new", tmp_path / "out")
    updated = Linker.open(tmp_path / "out")
    assert updated.settings == before.settings
    assert updated.settings.stages[-1] == "rerank"
    assert updated.manifest.config["reranker"] == before.manifest.config["reranker"]
    assert {name: file for name, file in contents(updated.path).items() if name.startswith("reranker/")} == models
    assert updated.link(["lung illness"])
    rebuilt = build_linker(place / "new", place / "letters", tmp_path / "rebuilt", sparse=True)
    rebuilt = add_reranker(rebuilt.path, tmp_path / "reranker")
    assert contents(updated.path).keys() == contents(rebuilt.path).keys()
    assert updated.link(MENTIONS) == rebuilt.link(MENTIONS)


def test_without_an_encoder(place: Path, tmp_path: Path) -> None:
    build_linker(place / "t", None, tmp_path / "linker", sparse=True, stages=["sparse"])
    report = update_linker(tmp_path / "linker", place / "new")
    rebuilt = build_linker(place / "new", None, tmp_path / "rebuilt", sparse=True, stages=["sparse"])
    assert contents(tmp_path / "linker") == contents(rebuilt.path)
    assert Linker.open(tmp_path / "linker").fingerprint == rebuilt.fingerprint
    assert (report.n_encoded, report.n_kept) == (0, 4)
    with pytest.raises(ConfigError, match="without an encoder"):
        update_linker(tmp_path / "linker", place / "t", encoder=place / "letters")


@pytest.fixture
def int8(place: Path, tmp_path: Path) -> Path:
    return build_linker(place / "t", letters(place), tmp_path / "int8", vectors="int8").path


def test_a_scale_that_would_not_come_back_is_encoded_again(place: Path, int8: Path) -> None:
    """Of vectors this narrow some would get another last bit; here one is made so by hand."""
    texts = list(Linker.open(int8).dictionary.texts)
    encoder = letters(place)
    whole = np.load(int8 / "vectors.npy")
    scales = np.load(int8 / "scales.npy")
    rng = np.random.default_rng(0)
    whole[2], whole[2, 0] = 0, 127
    np.save(int8 / "vectors.npy", whole)
    for _ in range(10_000):  # a scale that rounding does not give back
        scale = np.float32(rng.uniform(0.003, 0.006))
        vector = whole[2].astype(np.float32) * scale
        length = np.sqrt(np.square(vector, dtype=np.float64).sum())
        if np.float32(length / np.sqrt(np.square(whole[2], dtype=np.float64).sum())) != scale:
            break
    else:
        pytest.fail("no such scale")
    scales[2] = scale
    np.save(int8 / "scales.npy", scales)
    np.save(int8 / "vectors.sums.npy", row_sums(whole, scales))
    known = KnownVectors(int8, texts, written_with=encoder, encodes_with=encoder)
    vectors = known.encode(texts)
    assert encoder.texts == [texts[2]]
    assert (known.n_copied, known.n_encoded) == (len(texts) - 1, 1)
    assert vectors.shape == (len(texts), WIDTH)


def test_in_a_lower_precision_the_figures_are_the_lower_ones(place: Path, int8: Path) -> None:
    def rewrite(**figures: Any) -> None:
        record = json.loads((int8 / "index.json").read_text())
        for name, changed in figures.items():
            record[name] |= changed
        with amend_artifact(int8, "linker", format_version=FORMAT_VERSION) as folder:
            (folder / "index.json").write_text(json.dumps(record))

    rewrite(recall={"at_1": 0.5, "at_10": 0.75}, agreement={"lowest_cosine": 0.25})
    update_linker(int8, place / "new")
    record = json.loads((int8 / "index.json").read_text())
    assert (record["recall"]["at_1"], record["recall"]["at_10"]) == (0.5, 0.75)
    assert record["agreement"]["lowest_cosine"] == 0.25
    assert record["recall"]["n_queries"] == 10
    rewrite(recall={"at_1": 1.0}, agreement={"lowest_cosine": 1.0})
    update_linker(int8, place / "t")
    assert json.loads((int8 / "index.json").read_text())["agreement"]["lowest_cosine"] < 1


def test_the_manifest_has_the_checksums_of_what_lies_there(place: Path, linker: Path) -> None:
    update_linker(linker, place / "new")
    manifest = read_manifest(linker)
    files = {file.relative_to(linker).as_posix(): file for file in linker.rglob("*") if file.is_file()}
    del files[MANIFEST_NAME]
    assert {name: sha256_file(file) for name, file in files.items()} == {
        name: entry.sha256 for name, entry in manifest.files.items()
    }
