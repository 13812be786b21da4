"""Which of several equally good concepts comes first where annotated mentions say how often each is meant."""

from __future__ import annotations

import dataclasses
import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from linking_data import write_letter_encoder, write_small_linker

from onoma.artifacts import read_manifest, verify_artifact
from onoma.errors import ConfigError, DamagedArtifactError, InputError, ShapeError
from onoma.linking import Linker, add_reranker, build_linker, tune_linker
from onoma.linking.development import label_mentions
from onoma.linking.prior import save_prior
from onoma.linking.prior_counting import carry_prior, count_prior
from onoma.linking.strings import StringColumn
from onoma.linking.updating import update_linker
from onoma.pairs import build_mention_pairs
from onoma.training.reranking_data import find_candidates, without_concept
from tiny import make_terminology, small_tokenizer, tiny_encoder
from tiny_rerankers import write_reranker

CONCEPTS = ["D1", "D2", "D3", "D4", "D6", "D8"]
MEANT = [("a cold", "D4")] * 3 + [("a cold", "D6")] * 5 + [("MI", "D8|D9"), ("?", "NIL"), ("?", "X1")]


def mentions(rows: list[tuple[str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["mention", "concept_id"], orient="row")


def codes(linker: Linker, mention: str = "cold") -> list[str]:
    return [link.concept_id for link in linker.link([mention], top_k=6)[0]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prior")
    write_small_linker(folder)
    return folder


def tuning_mentions() -> pl.DataFrame:
    """Enough of them to tune, all different."""
    names = ["diabetes", "sugar", "common cold", "cold air", "lung disease"]
    concepts = ["D1", "D1", "D4", "D6", "D3"]
    return mentions([(f"{name} {n}", code) for n in range(12) for name, code in zip(names, concepts, strict=True)])


def test_counts(place: Path) -> None:
    counted = count_prior(Linker.open(place / "linker").dictionary, mentions(MEANT))
    assert dict(zip(CONCEPTS, counted.counts.tolist(), strict=True)) == {
        "D1": 0, "D2": 0, "D3": 0, "D4": 3, "D6": 5, "D8": 1
    }  # fmt: skip
    assert (counted.report.n_mentions, counted.report.n_unknown, counted.report.n_concepts) == (11, 2, 3)


def test_rows_that_count_more_often_than_once(place: Path) -> None:
    dictionary = Linker.open(place / "linker").dictionary
    times = [2, 0, 7, 1, 40, 10**12 - 1, 3, 5, 1, 6, 9]
    table = mentions(MEANT).with_columns(count=pl.Series(times))
    repeated = pl.concat([mentions([row] * min(n, 50)) for row, n in zip(MEANT, times, strict=True)])
    few = count_prior(dictionary, table.with_columns(pl.col("count").clip(upper_bound=50).cast(pl.UInt8)))
    assert few.counts.tolist() == count_prior(dictionary, repeated).counts.tolist()
    report, wanted = few.report, count_prior(dictionary, repeated).report
    assert (report.n_mentions, report.n_unknown, report.n_concepts) == (
        wanted.n_mentions, wanted.n_unknown, wanted.n_concepts,
    )  # fmt: skip
    assert count_prior(dictionary, table).counts.max() == 40 + 10**12 - 1 + 3 + 5 + 1
    for counts in ([-1] * 11, [None] * 11, [0.5] * 11, ["1"] * 11):
        with pytest.raises(InputError, match="a whole number from 0 in every row"):
            count_prior(dictionary, mentions(MEANT).with_columns(count=pl.Series(counts)))
    with pytest.raises(InputError, match="no mention is of a concept that the linker has"):
        count_prior(dictionary, mentions(MEANT).with_columns(count=0))


def test_own_codes_with_a_bar_are_told_apart(tmp_path: Path) -> None:
    """Counts, development mentions, update reports, pairs and candidates of a reranker: each code means its concept."""
    names = {f"LOC|{n}": [f"place {letters}"] for n, letters in enumerate(map("".join, permutations("abcdefgh", 2)))}
    terminology = make_terminology(tmp_path / "t", names)
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    counted = count_prior(linker.dictionary, mentions([("here", "LOC|7")] * 3 + [("there", "LOC|99")]))
    assert counted.counts.tolist() == [4 if code == "LOC|7" else 1 for code in names], (
        "LOC|99 is none, so it is several"
    )
    wrong = mentions([(name, f"LOC|{(n + 1) % len(names)}") for n, (name,) in enumerate(names.values())])
    labelled = label_mentions(linker, wrong, 2).mentions
    own = {name: row for row, (name,) in enumerate(names.values())}
    assert [one.concepts for one in labelled] == [frozenset([(own[one.text] + 1) % len(names)]) for one in labelled]
    assert not find_candidates(linker, wrong, depth=1, text="matched").is_right.any()
    assert not without_concept(linker, wrong).any()
    pairs = build_mention_pairs(terminology, wrong, small_tokenizer(), tmp_path / "pairs")
    assert len(pairs.pairs) == len(names), "each with the name of the concept that it is labelled with"
    make_terminology(tmp_path / "later", {code: name for code, name in names.items() if code != "LOC|7"})
    report = update_linker(tmp_path / "linker", tmp_path / "later", tmp_path / "n", mentions=["x"], answered=["LOC|7"])
    assert report.answers is not None
    lost = report.answers.changed.filter(pl.col("old_concept_id").str.contains("7"))
    assert lost.select("old_concept_id", "reason").rows() == [("LOC|7", "removed")]


def test_it_orders_equal_scores_and_no_others(place: Path) -> None:
    linker = Linker.open(place / "linker")
    assert codes(linker)[:4] == ["D2", "D3", "D4", "D6"]
    knowing = linker.with_prior(count_prior(linker.dictionary, mentions(MEANT)).counts)
    assert codes(knowing)[:4] == ["D6", "D4", "D2", "D3"]
    for stages in (["exact"], ["dense"], ["sparse"], ["dense", "sparse"]):
        plain = linker.link(["cold", "colds", "sugar disease"], top_k=6, stages=stages)
        ordered = knowing.link(["cold", "colds", "sugar disease"], top_k=6, stages=stages)
        for before, after in zip(plain, ordered, strict=True):
            assert [link.score for link in before] == [link.score for link in after]
            assert {link.concept_id for link in before} == {link.concept_id for link in after}
    assert codes(linker) == codes(knowing.with_prior(None))


def test_what_is_expected_comes_before_what_is_frequent(tmp_path: Path) -> None:
    write_letter_encoder(tmp_path / "letters")
    types = {"A": ["Disease"], "B": ["Phenomenon"]}
    terminology = make_terminology(tmp_path / "t", {"A": ["cold"], "B": ["cold"]}, semantic_types=types)
    linker = build_linker(terminology, tmp_path / "letters", tmp_path / "linker").with_prior(np.array([0, 7]))
    assert [link.concept_id for link in linker.link(["cold"])[0]] == ["B", "A"]
    assert [link.concept_id for link in linker.link(["cold"], expected_types="Disease")[0]] == ["A", "B"]


def test_tuning_counts_keeps_and_tells(linker: Path) -> None:
    plain = Linker.open(linker)
    report = tune_linker(linker, tuning_mentions(), prior=mentions(MEANT), calibrate=False)
    assert report.prior is not None
    assert report.prior.n_mentions == len(MEANT)
    tuned = Linker.open(linker)
    assert codes(tuned)[:4] == ["D6", "D4", "D2", "D3"]
    assert tuned.fingerprint != plain.fingerprint
    verify_artifact(linker)
    explained = tuned.explain("cold", top_k=2)
    assert explained.links[0].prior == 5
    assert explained.outcome.endswith("3 other concepts have that name. Annotated mentions mean D6 5 times.")
    assert plain.explain("cold", top_k=2).links[0].prior is None
    again = tune_linker(linker, tuning_mentions(), calibrate=False)
    assert again.prior is None
    assert codes(Linker.open(linker))[:4] == ["D6", "D4", "D2", "D3"]
    assert read_manifest(linker).config["prior"]["n_mentions"] == len(MEANT)


def test_before_is_without_and_after_is_with_it(linker: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(linker, tmp_path / "other"))
    development = mentions([*tuning_mentions().iter_rows(), ("cold", "D6")])
    without = tune_linker(other, development, calibrate=False).accuracy
    accuracy = tune_linker(linker, development, prior=mentions(MEANT), calibrate=False).accuracy
    assert accuracy["before"] == without["before"]
    assert accuracy["after"].at_1 > without["after"].at_1


def test_an_update_carries_it_by_code(place: Path, linker: Path, tmp_path: Path) -> None:
    tune_linker(linker, tuning_mentions(), prior=mentions(MEANT), calibrate=False)
    newer = {"D0": ["cold"], "D6": ["Cold Temperature", "cold"], "D4": ["Common Cold", "cold"], "D1": ["diabetes"]}
    make_terminology(tmp_path / "newer", newer)
    update_linker(linker, tmp_path / "newer", tmp_path / "updated")
    updated = Linker.open(tmp_path / "updated")
    assert updated.prior is not None
    assert updated.prior.tolist() == [0, 5, 3, 0]
    assert codes(updated)[:3] == ["D6", "D4", "D0"]
    build_linker(tmp_path / "newer", place / "letters", tmp_path / "rebuilt", sparse=True)
    rebuilt = Linker.open(tmp_path / "rebuilt")
    before = Linker.open(linker)
    assert before.prior is not None
    carried = carry_prior(before.prior, before.dictionary, rebuilt.dictionary, {}).counts
    asked = ["cold", "diabetes", "colds"]
    assert rebuilt.with_prior(carried).tuned(before.settings).link(asked) == updated.link(asked)


def test_counts_that_an_update_lost_are_told_and_a_way_back_is_no_return(
    place: Path, linker: Path, tmp_path: Path
) -> None:
    tune_linker(linker, tuning_mentions(), prior=mentions(MEANT))
    counted = Linker.open(linker).manifest.config["prior"]
    make_terminology(tmp_path / "fewer", {"D6": ["Cold Temperature", "cold"], "D1": ["diabetes"]})
    report = update_linker(linker, tmp_path / "fewer")
    assert report.figures()["counted_mentions"] == {"kept": 5, "moved": 0, "gone": 4}
    assert "of 9 meanings of counted mentions 4 were of concepts that are gone" in str(report)
    back = update_linker(linker, place / "t")
    assert back.figures()["counted_mentions"] == {"kept": 5, "moved": 0, "gone": 0}
    assert back.is_tuned, "its weights were learned with the counts that are gone"
    config = Linker.open(linker).manifest.config
    assert config["prior"] == counted | {"n_moved": 0, "n_gone": 4, "terminology": config["tuning"]["terminology"]}
    tune_linker(linker, tuning_mentions())  # with the counts that are left
    for release in (tmp_path / "fewer", place / "t"):
        report = update_linker(linker, release)
    assert not report.is_tuned, "no more were lost on the way"
    tune_linker(linker, tuning_mentions(), prior=mentions(MEANT))
    assert Linker.open(linker).manifest.config["prior"] == counted


def test_nothing_is_called_learned_where_nothing_was(linker: Path, tmp_path: Path) -> None:
    tune_linker(linker, tuning_mentions(), stages=["exact", "dense"], calibrate=False)
    make_terminology(tmp_path / "fewer", {"D6": ["Cold Temperature", "cold"], "D1": ["diabetes"]})
    assert not update_linker(linker, tmp_path / "fewer").is_tuned


def test_a_successor_has_the_counts_too(place: Path) -> None:
    dictionary = Linker.open(place / "linker").dictionary
    counts = count_prior(dictionary, mentions(MEANT)).counts
    fewer = dictionary.keeping(np.ones(len(dictionary.entry_names), np.bool_))
    fewer = dataclasses.replace(fewer, concept_ids=StringColumn.from_strings(["D1", "D2", "D3", "X", "D6", "Y"]))
    # What is there keeps its counts, and "D9" is not there.
    with_successors = carry_prior(counts, dictionary, fewer, {"D4": "D6", "D6": "X", "D8": "D9"})
    assert with_successors.counts.tolist() == [0, 0, 0, 0, 8, 0]
    assert (with_successors.n_moved, with_successors.n_gone) == (3, 1)
    without = carry_prior(counts, dictionary, fewer, {})
    assert (without.counts.tolist(), without.n_moved, without.n_gone) == ([0, 0, 0, 0, 5, 0], 0, 4)


def test_counts_go_with_alternative_codes(place: Path) -> None:
    dictionary = Linker.open(place / "linker").dictionary
    before = dataclasses.replace(
        dictionary, concept_ids=StringColumn.from_strings(["A", "B|b", "C|c", "D", "E|F", "G"])
    )
    after = dataclasses.replace(dictionary, concept_ids=StringColumn.from_strings(["A|a", "B", "c", "X|d", "E", "F"]))
    counts = np.array([1, 2, 4, 8, 16, 32])
    # E|F is two concepts now, and G is gone.
    carried = carry_prior(counts, before, after, {"D": "d"})
    assert (carried.counts.tolist(), carried.n_moved, carried.n_gone) == ([1, 2, 4, 8, 0, 0], 8, 48)
    assert carry_prior(counts, before, after, {"G": "C"}).counts.tolist() == [1, 2, 4, 0, 0, 0]


def test_a_cross_encoder_leaves_homonyms_so_unless_it_reads_a_context(linker: Path, tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "bert", weight_std=0.3)
    write_reranker(tmp_path / "reranker", base, contexts=True, weight=1.0)
    add_reranker(linker, tmp_path / "reranker")
    plain = Linker.open(linker)
    context = "It was cold outside."
    by_cross_encoder = [
        [link.concept_id for link in plain.link(["cold"], contexts=[told])[0]][:4] for told in (None, context)
    ]
    counts = np.zeros(plain.dictionary.n_concepts, np.int64)
    order = by_cross_encoder[0][::-1]
    for n, code in enumerate(order):
        counts[list(plain.concept_ids).index(code)] = 10 - n
    knowing = plain.with_prior(counts)
    assert codes(knowing)[:4] == order != by_cross_encoder[0]
    with_context = [link.concept_id for link in knowing.link(["cold"], contexts=[context])[0]][:4]
    assert with_context == by_cross_encoder[1]
    for nothing in (None, ""):
        assert [link.concept_id for link in knowing.link(["cold"], contexts=[nothing])[0]][:4] == order
    never_meant = plain.with_prior(np.zeros_like(counts))
    assert codes(never_meant)[:4] == by_cross_encoder[0]


def test_counts_without_a_sign(place: Path) -> None:
    linker = Linker.open(place / "linker")
    counts = count_prior(linker.dictionary, mentions(MEANT)).counts
    assert codes(linker.with_prior(counts.astype(np.uint64))) == codes(linker.with_prior(counts))


def test_bad_counts(place: Path, linker: Path) -> None:
    opened = Linker.open(linker)
    with pytest.raises(InputError, match="no mention is of a concept that the linker has"):
        tune_linker(linker, tuning_mentions(), prior=mentions([("x", "X1"), ("y", "NIL")]))
    with pytest.raises(InputError, match="another form in the linker: MESH:D1 is D1 there"):
        tune_linker(linker, tuning_mentions(), prior=mentions([("x", "MESH:D1"), ("y", "NIL")]))
    with pytest.raises(InputError, match="no mention is of a concept"):
        count_prior(opened.dictionary, mentions(MEANT).clear())
    for table in ({"concept_id": ["D1", None]}, {"concept_id": [1, 2]}, {"id": ["D1", "D2"]}):
        with pytest.raises(InputError, match="no table of mentions"):
            count_prior(opened.dictionary, pl.DataFrame({"mention": ["x", "y"], **table}))
    with pytest.raises(ConfigError, match="all of the mentions are among those of the prior"):
        tune_linker(linker, tuning_mentions(), prior=tuning_mentions())
    wrong: list[Any] = [np.zeros(5, np.int64), np.zeros(6)]
    for counts in wrong:
        with pytest.raises(ShapeError, match="whole number from 0 for each of 6 concepts"):
            opened.with_prior(counts)
    save_prior(linker, np.zeros(5, np.int64))
    with pytest.raises(DamagedArtifactError, match="6 concepts"):
        Linker.open(linker)


def test_counts_are_copied(tmp_path: Path) -> None:
    write_letter_encoder(tmp_path / "letters")
    terminology = make_terminology(tmp_path / "t", {"A": ["cold"], "B": ["Cold"]})
    counts = np.array([0, 7])
    linker = build_linker(terminology, tmp_path / "letters", tmp_path / "l").with_prior(counts)
    assert linker.link(["cold"], top_k=1)[0][0].concept_id == "B"
    counts[:] = 9, 0
    assert linker.link(["cold"], top_k=1)[0][0].concept_id == "B"
