"""Pairs of translations against a plain reading of the rules."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs_oracles import texts_of

from onoma.artifacts import verify_artifact
from onoma.errors import ArtifactExistsError, ConfigError, InputError
from onoma.pairs import PairSet, build_bitext_pairs
from tiny import small_tokenizer

WORDS = ["heart", "herz", "corazon", "cold", "kalt", "a b"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def classes_of(made: PairSet) -> list[set[str]]:
    """The texts of each class, in order."""
    names = zip(made.labels.tolist(), texts_of(made, WORDS), strict=True)
    return [{text for _, text in group} for _, group in itertools.groupby(names, key=lambda name: name[0])]


def pairs_of(made: PairSet) -> set[tuple[int, frozenset[str]]]:
    texts = texts_of(made, WORDS)
    assert all(made.labels[a] == made.labels[b] for a, b in made.pairs.tolist())
    pairs = {(int(made.labels[a]), frozenset((texts[a], texts[b]))) for a, b in made.pairs.tolist()}
    assert len(pairs) == len(made.pairs)
    return pairs


@given(
    st.lists(
        st.tuples(st.sampled_from([*WORDS, "Heart "]), st.sampled_from(WORDS), st.sampled_from("xyz")), max_size=8
    ),
    st.sampled_from(["pair", "column"]),
)
@settings(max_examples=80)
def test_classes_and_pairs(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], classes: Any
) -> None:
    folder = tmp_path_factory.mktemp("bitext")
    files = [write(folder / "1.tsv", ["\t".join(row) for row in rows[:3]] or [""])]
    files.append(write(folder / "2.tsv", ["\t".join(row) for row in rows[3:]] or [""]))
    expected: dict[Any, set[str]] = {}
    for english, other, name in rows:
        pair = (english.strip().lower(), other)
        expected.setdefault(frozenset(pair) if classes == "pair" else name, set()).update(pair)
    if all(len(texts) == 1 for texts in expected.values()):
        with pytest.raises(InputError, match="no pair of different texts"):
            build_bitext_pairs(files, small_tokenizer(), folder / "p", classes=classes)
        return
    made = build_bitext_pairs(files, small_tokenizer(), folder / "p", classes=classes)
    assert classes_of(made) == list(expected.values())
    assert {pair for _, pair in pairs_of(made)} == {
        frozenset(pair) for texts in expected.values() for pair in itertools.combinations(texts, 2)
    }
    counts = made.manifest.config["lines"]
    sides = [(a.strip().lower(), b, name) for a, b, name in rows]
    distinct = {(frozenset((a, b)) if classes == "pair" else (a, b, name)): a == b for a, b, name in sides}
    assert counts["in_all"] == len(rows)
    assert counts["repeated"] == len(rows) - len(distinct)
    assert counts["equal_sides"] == sum(distinct.values())
    if classes == "pair":
        first = {frozenset((a, b)): name for a, b, name in reversed(sides)}
        assert counts["of_a_class_again"] == len(first) - len(set(first.values()))


def test_the_training_file_of_sapbert(tmp_path: Path) -> None:
    """Its pairs as they are, each once; read as translations, what is lost is counted."""
    lines = ["C1||heart||herz", "C2||cold||kalt", "C1||herz||corazon", "C1||Herz||heart", "C1||a b||A B"]
    file = write(tmp_path / "train.txt", lines)
    made = build_bitext_pairs([file], small_tokenizer(), tmp_path / "p", classes="listed")
    assert classes_of(made) == [{"heart", "herz", "corazon", "a b"}, {"cold", "kalt"}]
    assert {pair for _, pair in pairs_of(made)} == {
        frozenset(("heart", "herz")), frozenset(("herz", "corazon")), frozenset(("cold", "kalt"))
    }  # fmt: skip
    assert "of_a_class_again" not in made.manifest.config["lines"]
    anew = build_bitext_pairs([file], small_tokenizer(), tmp_path / "anew", classes="column")
    assert len(anew.pairs) == 6 + 1
    lost = build_bitext_pairs([file], small_tokenizer(), tmp_path / "lost")
    assert (len(classes_of(lost)), lost.manifest.config["lines"]["of_a_class_again"]) == (4, 2)
    dropped = build_bitext_pairs(
        [write(tmp_path / "more.txt", [*lines, "C3||kalt||a b"])],
        small_tokenizer(),
        tmp_path / "dropped",
        classes="listed",
        ambiguous="drop",
    )
    assert {pair for _, pair in pairs_of(dropped)} == {frozenset(("heart", "herz")), frozenset(("herz", "corazon"))}
    with pytest.raises(InputError, match="no class"):
        build_bitext_pairs(
            [write(tmp_path / "t.tsv", ["heart\therz"])], small_tokenizer(), tmp_path / "x", classes="listed"
        )


def test_one_word_with_two_translations_is_two_classes_and_marked(tmp_path: Path) -> None:
    file = write(tmp_path / "x.tsv", ["cold\tkalt", "cold\therz"])
    made = build_bitext_pairs([file], small_tokenizer(), tmp_path / "p")
    assert classes_of(made) == [{"cold", "kalt"}, {"cold", "herz"}]
    texts = texts_of(made, WORDS)
    assert made.text_labels is not None
    marks = [label for text, label in zip(texts, made.text_labels.tolist(), strict=True) if text == "cold"]
    assert marks[0] == marks[1]
    kept = build_bitext_pairs([file], small_tokenizer(), tmp_path / "k", ambiguous="keep")
    assert kept.text_labels is None
    assert len(kept.pairs) == 2
    with pytest.raises(InputError, match="no pair"):
        build_bitext_pairs([file], small_tokenizer(), tmp_path / "d", ambiguous="drop")


def test_every_form_of_file(tmp_path: Path) -> None:
    tabs = write(tmp_path / "a.tsv", ["heart\therz", "", "cold\tkalt\tc1"])
    released = write(tmp_path / "b.txt", ["MES0||heart||corazon"])
    words = tmp_path / "c.txt.gz"
    words.write_bytes(gzip.compress("\ufeffcold kalt\r\nheart herz\r\n".encode()))
    made = build_bitext_pairs([tabs, released, words], small_tokenizer(), tmp_path / "p")
    assert classes_of(made) == [{"heart", "herz"}, {"cold", "kalt"}, {"heart", "corazon"}]
    assert made.manifest.config["lines"] == {
        "in_all": 5,
        "rejected": 0,
        "blank": 0,
        "repeated": 2,
        "equal_sides": 0,
        "of_a_class_again": 0,
    }
    assert made.manifest.config["files"] == ["a.tsv", "b.txt", "c.txt.gz"]
    verify_artifact(made.path)
    assert np.array_equal(PairSet.open(made.path).pairs, made.pairs)


def test_blank_lines_do_not_tell_the_form(tmp_path: Path) -> None:
    """A line without an end is read by itself, after all that stand before it."""
    (tmp_path / "x.txt").write_text("\n\nX||heart||herz")
    made = build_bitext_pairs([tmp_path / "x.txt"], small_tokenizer(), tmp_path / "p", classes="column")
    assert classes_of(made) == [{"heart", "herz"}]


def test_what_is_there_is_replaced_only_if_asked(tmp_path: Path) -> None:
    first, second = (write(tmp_path / f"{text}.tsv", [f"heart\t{text}"]) for text in ("herz", "corazon"))
    build_bitext_pairs([first], small_tokenizer(), tmp_path / "p")
    with pytest.raises(ArtifactExistsError):
        build_bitext_pairs([second], small_tokenizer(), tmp_path / "p")
    assert classes_of(PairSet.open(tmp_path / "p")) == [{"heart", "herz"}]
    build_bitext_pairs([second], small_tokenizer(), tmp_path / "p", overwrite=True)
    assert classes_of(PairSet.open(tmp_path / "p")) == [{"heart", "corazon"}]


def test_a_heading_does_not_tell_the_form(tmp_path: Path) -> None:
    file = write(tmp_path / "x.tsv", ["# translations", "heart\therz", "cold\tkalt"])
    with pytest.raises(InputError, match="line 1: a line of another form; expected english, tab, other"):
        build_bitext_pairs([file], small_tokenizer(), tmp_path / "p")
    made = build_bitext_pairs([file], small_tokenizer(), tmp_path / "p", on_error="skip")
    assert pl.read_parquet(made.path / "rejects.parquet")["line"].to_list() == [1]
    assert len(made.pairs) == 2


@pytest.mark.parametrize(
    ("lines", "classes", "said"),
    [
        (["heart\therz", "cold"], "pair", r"line 2: a line of another form; expected english, tab, other"),
        (["heart\therz", "a\tb\tc\td"], "pair", "line 2: a line of another form"),
        (["heart\therz", "a\t \tc"], "pair", "line 2, field other: an empty side"),
        (["heart\therz\tx", "a\tb"], "column", "line 2, field class: no class"),
        (["X||heart||herz", "heart||herz"], "pair", r"line 2: a line of another form; expected label\|\|english"),
        (["heart herz", "heart attack herzinfarkt"], "pair", "line 2: a line of another form; expected two words"),
    ],
)
def test_bad_lines_are_refused_or_listed(tmp_path: Path, lines: list[str], classes: Any, said: str) -> None:
    file = write(tmp_path / "x.tsv", lines)
    with pytest.raises(InputError, match=said):
        build_bitext_pairs([file], small_tokenizer(), tmp_path / "p", classes=classes)
    made = build_bitext_pairs([file], small_tokenizer(), tmp_path / "p", classes=classes, on_error="skip")
    assert made.manifest.config["lines"]["rejected"] == 1
    assert pl.read_parquet(made.path / "rejects.parquet")["line"].to_list() == [2]
    assert len(made.pairs) == 1


def test_what_cannot_be_read_or_set(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        build_bitext_pairs([tmp_path / "x"], small_tokenizer(), tmp_path / "p")
    with pytest.raises(InputError, match="no pair"):
        build_bitext_pairs([], small_tokenizer(), tmp_path / "p")
    file = write(tmp_path / "x.tsv", ["heart\therz"])
    with pytest.raises(ConfigError, match="pair, column"):
        build_bitext_pairs([file], small_tokenizer(), tmp_path / "p", classes="synset")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="keep, drop, mark"):
        build_bitext_pairs([file], small_tokenizer(), tmp_path / "p", ambiguous="x")  # type: ignore[arg-type]
