"""Misspelt words put right, against the edit distance of another library and over a linker's names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linking_data import write_letter_encoder
from rapidfuzz.distance import OSA
from tokenizers import Tokenizer, models, pre_tokenizers

from onoma.encoders.tokens import is_one_token
from onoma.errors import ConfigError, DamagedArtifactError, InputError
from onoma.linking import Linker, build_linker
from onoma.linking.mentions import Preparation
from onoma.linking.spelling import Correction, NameWords, Spelling
from tiny import make_terminology

NAMES = ["heart attack", "panic attack", "attach", "Sjögren syndrome", "Болезнь Паркинсона", "νεφρική ανεπάρκεια"]


def read(spelling: Spelling, mention: str) -> str:
    return spelling.correct(mention)[0]


@pytest.fixture(scope="module")
def spelling() -> Spelling:
    return Spelling.of_names(NAMES)


@pytest.mark.parametrize("mention", ["acgt" * 2500, "x" * 100])
def test_words_far_longer_than_all_names_are_left_alone(
    spelling: Spelling, mention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spelling, "_one_off", lambda word: pytest.fail(f"{len(word)} letters"))
    assert read(spelling, mention) == mention


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        ("heart attak", "heart attack"),  # missing
        ("heart attackk", "heart attack"),  # too many
        ("heart atteck", "heart attack"),  # wrong
        ("haert attack", "heart attack"),  # swapped
        ("heart attcka", "heart attcka"),  # two letters
        ("geart attack", "geart attack"),  # the first letter
        ("attac", "attack"),  # two names have that, one has "attach"
        ("Heart ATTTACK, Sjogren", "Heart ATTACK, Sjögren"),
        ("sever ATTAK", "sever ATTAK"),  # short, in capitals
        ("HeArt AtTak, sjÖGRn", "HeArt AtTack, sjÖGRen"),
        ("attak2 attak_b attak-b", "attak2 attak_b attack-b"),
        ("heart  attak's", "heart  attack's"),
        ("Болезнь Паркинсна", "Болезнь Паркинсона"),
        ("νεφρικη ανεπάρκεια", "νεφρική ανεπάρκεια"),
        ("心臓発作 hart", "心臓発作 hart"),
        ("", ""),
        ("   ", "   "),
    ],
)
def test_words_one_letter_off(spelling: Spelling, mention: str, expected: str) -> None:
    assert read(spelling, mention) == expected


def test_each_correction_is_told_once(spelling: Spelling) -> None:
    assert spelling.correct("attak, ATTACCK or attak") == (
        "attack, ATTACK or attack",
        (Correction("attak", "attack"), Correction("ATTACCK", "ATTACK")),
    )


def test_decomposed_letters(spelling: Spelling) -> None:
    right, wrong = (unicodedata.normalize("NFD", text) for text in ("Sjögren syndrome", "Sjögren syndrom"))
    assert spelling.correct(right) == (right, ())
    assert read(spelling, wrong) == "Sjögren syndrome"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_with_decomposed_letters(form: Literal["NFC", "NFD"]) -> None:
    spelling = Spelling.of_names([unicodedata.normalize("NFD", "cancer du côlon"), "colon irritable", "Colon"])
    mention = unicodedata.normalize(form, "cancer du côlon")
    assert spelling.correct(mention) == (mention, ())
    assert read(spelling, "cancre du còlon") == "cancer du colon"


def test_any_script_with_a_case_and_no_letters_that_cannot_be_composed() -> None:
    spelling = Spelling.of_names(["ինֆարկտ", "attack", "x\u0304ttack"])
    assert read(spelling, "ինֆարկտտ") == "ինֆարկտ"
    assert read(spelling, "atta\u0304k attak\u0304 \u0304attak") == "atta\u0304k attak\u0304 \u0304attak"


def test_words_that_names_cannot_have_stay() -> None:
    spelling = Spelling.of_names(["iletişim gecikmesi", "graves hastalığı", "hautkrebs", "sisufos"])
    for mention in ("İletişim", "Graves病", "Hautkrebs²"):
        assert spelling.correct(mention) == (mention, ())
    assert spelling.correct("iletişin gecikmesi")[0] == "iletişim gecikmesi"
    folded = Spelling.of_names(["grosse fraktur", "grobe"], as_in_names=str.casefold)
    assert folded.correct("Große Fraktue")[0] == "Große Fraktur"


def test_known_words_stay() -> None:
    spelling = Spelling.of_names(NAMES, is_known={"attacks"}.__contains__)
    assert read(spelling, "attacks and attak") == "attacks and attack"
    assert read(Spelling({}), "heart attak") == "heart attak"


LETTERS = st.text("abä", min_size=1, max_size=8)
WORDS = st.builds("".join, st.tuples(LETTERS, LETTERS))


@given(names=st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=8), written=WORDS)
def test_as_by_the_edit_distance(names: list[list[str]], written: str) -> None:
    counts = Counter(word for name in names for word in {*name} if len(word) >= 4)
    expected = written
    if len(written) >= 5 and written not in counts:
        near = [word for word in counts if word[0] == written[0] and OSA.distance(written, word) == 1]
        expected = min(near, key=lambda word: (-counts[word], word), default=written)
    assert read(Spelling.of_names([" ".join(name) for name in names]), written) == expected


def test_names_may_be_an_iterator() -> None:
    spelling = Spelling.of_names(iter([*NAMES, "attach", "attach"]))
    assert read(spelling, "attac") == "attach"


@pytest.mark.parametrize("prefix", ["", "Ġ"])
def test_whole_tokens(prefix: str) -> None:
    letters = {letter: row for row, letter in enumerate(["[UNK]", "a", "##b", "b", f"{prefix}b", f"{prefix}ab", "##a"])}
    if prefix:
        merges = [("a", "b"), ("Ġ", "b"), ("Ġ", "ab")]
        vocabulary = {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġb": 4, "Ġab": 5}
        tokenizer = Tokenizer(models.BPE(vocabulary, merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer = Tokenizer(models.WordPiece(letters, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    assert is_one_token(tokenizer, "ab")
    assert not is_one_token(tokenizer, "abb")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spelling")
    write_letter_encoder(folder / "letters")
    make_terminology(folder / "t", {"D1": ["Heart Attack", "myocardial infarction"], "D2": ["Angina"]})
    return folder


@pytest.mark.parametrize("encoder", ["letters", None])
def test_a_linker_reads_by_its_own_names(place: Path, encoder: str | None) -> None:
    source = None if encoder is None else place / encoder
    linker = build_linker(place / "t", source, place / f"linker-{encoder}", sparse=encoder is None)
    reading = linker.preparing(Preparation(spelling=True))
    links = reading.link(["heart attak", "heart attack", "Agina and infarctoin"], top_k=1)
    assert [(one.concept_id, one.read_as) for (one,) in links[:2]] == [("D1", "heart attack"), ("D1", None)]
    assert links[0][0].score == 1
    assert links[2][0].read_as == "Angina and infarction"
    explained = reading.explain("heart attak")
    assert explained.outcome.startswith("'attak' was read as 'attack'. D1 (Heart Attack): the mention is a name")
    assert explained.corrections == (Correction("attak", "attack"),)
    # by names that can be an answer alone
    unknown = reading.without([linker.dictionary.entry_names.index("Heart Attack")])
    assert unknown.prepare(["heart attak, agina"])[0].text == "heart attak, angina"


def test_with_the_other_stages(place: Path) -> None:
    linker = build_linker(place / "t", place / "letters", place / "linker-all")
    everything = Preparation(finder="schwartz-hearst", composites=True, spelling=True)
    (prepared,) = linker.preparing(everything).prepare(
        ["HA and angine"], contexts=["A heart atack (HA) followed by angina."]
    )
    assert prepared.parts == ("heart attack", "angina")
    assert prepared.corrections == (Correction("atack", "attack"), Correction("angine", "angina"))
    assert [one.long_form for one in prepared.expansions] == ["heart atack"]
    assert str(everything) == "short forms (schwartz-hearst), spelling, composites"
    assert (str(Preparation()), Preparation(spelling=True).is_on) == ("", True)


def test_words_are_counted_when_a_linker_is_built(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_linker(place / "t", None, tmp_path / "linker", sparse=True)
    words = NameWords.open(tmp_path / "linker")
    assert list(words.words) == sorted(words.words)
    assert words.as_dict() == {"angina": 1, "attack": 1, "heart": 1, "infarction": 1, "myocardial": 1}
    with monkeypatch.context() as patch:
        patch.setattr(NameWords, "of", lambda names: pytest.fail("counted again"))
        opened = Linker.open(tmp_path / "linker").preparing(Preparation(spelling=True))
        assert opened.prepare(["heart attak"])[0].text == "heart attack"


def test_counts_of_other_words_are_refused(tmp_path: Path) -> None:
    NameWords.of(["heart attack"]).save(tmp_path)
    np.save(tmp_path / "words.counts.npy", np.ones(3, np.int64))
    with pytest.raises(DamagedArtifactError, match="not of one build"):
        NameWords.open(tmp_path)


def test_common_words_of_the_tokeniser_stay(place: Path) -> None:
    write_letter_encoder(place / "words", words=["angine"])
    linker = build_linker(place / "t", place / "words", place / "linker-words")
    reading = linker.preparing(Preparation(spelling=True))
    assert [one.text for one in reading.prepare(["angine", "Angine", "agina"])] == ["angine", "Angine", "angina"]


def test_alone_it_has_no_words() -> None:
    with pytest.raises(ConfigError, match=r"needs the words of a linker's names.*Linker\.preparing"):
        Preparation(spelling=True).prepare(["heart attak"])


def test_names_are_several() -> None:
    with pytest.raises(InputError, match="put it in a list"):
        Spelling.of_names("heart attack")


def test_the_tokeniser_is_the_one_that_was_opened(tmp_path: Path) -> None:
    """Its folder may be another linker's by the time of the first mention."""
    write_letter_encoder(tmp_path / "letters")
    terminology = make_terminology(tmp_path / "t", {"D1": ["heart attack"]})
    linker = build_linker(terminology, tmp_path / "letters", tmp_path / "l").preparing(Preparation(spelling=True))
    shutil.rmtree(tmp_path / "l")
    assert linker.prepare(["heart attak"])[0].parts == ("heart attack",)


_FORKED_AFTER_POLARS = """
import os, signal, sys
import polars as pl
from onoma.linking import Linker
from onoma.linking.mentions import Preparation
pl.DataFrame({"a": range(100_000)}).group_by("a").len()  # polars has threads from now on
linker = Linker.open(sys.argv[1]).preparing(Preparation(spelling=True))
child = os.fork()
if child == 0:
    signal.alarm(20)
    ((link,),) = linker.only(languages="en").link(["heart attak"], top_k=1)
    os._exit(0 if link.read_as == "heart attack" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_corrects_under_filters_though_polars_worked_before(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D1": ["heart attack"], "D2": ["panic attack"]})
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    command = [sys.executable, "-c", _FORKED_AFTER_POLARS, str(tmp_path / "linker")]
    threads = {"POLARS_MAX_THREADS": "4"}  # one by itself works where it is asked, in a forked process too
    assert subprocess.run(command, timeout=60, check=False, env=os.environ | threads).returncode == 0


def test_words_of_names_are_those_of_another_library() -> None:
    known = [code for code in range(0x110000) if unicodedata.ucd_3_2_0.category(chr(code)) not in {"Cn", "Cs"}]
    names = [f"Abcd{chr(code)}defg hijk {chr(code)}lmno pqrs{chr(code)} tuv" for code in known]
    names += ["Cafe\u0301s ΚΑΦΈΣ", "naïve NAÏVE naïve", "ab_cd abcd", "", " "]
    words = (
        pl.Series("word", names, pl.String).str.normalize("NFC").str.to_lowercase().str.extract_all(r"\b\p{Ll}{4,}\b")
    )
    assert NameWords.of(names).as_dict() == Counter(word for of_name in words for word in set(of_name))
