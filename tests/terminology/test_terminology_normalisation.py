from __future__ import annotations

import re
import unicodedata
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onoma.errors import ConfigError, InputError
from onoma.terminology import NORMALISATION_PRESETS, normalise, normalise_expr

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2007\u2028\u2029\u202f\u3000"
AWKWARD = [
    "",
    " ",
    SPACES,
    "\0",
    "a\0 B",
    "\u0301",
    " \u0301a\u0301",
    "İstanbul ISPARTA ıI",
    "ΑΣΘΜΑ ΑΣ, ΑΣ.",
    "Straße ẞ",
    "ﬁbrosis Ⅳ ½ ㎎",
    "\u1c89\ua7cb\U00010d50",  # lower-case in newer Unicode only
    "\x1fA\x1cB\x1d",
    "A\n\nB\r\n",
    "ᾳͅΐ",
    "a\u00adb\u200bc",
    "e\u200d\u0301 \U000e0101x\ufe0f",  # what is dropped stands between a letter and its mark
    "i\u00ad\u0307 I\u0307\u0301",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "日本　語。",
]


@pytest.mark.parametrize("preset", NORMALISATION_PRESETS)
@settings(max_examples=200)
@given(texts=st.lists(st.one_of(TEXT, st.text(SPACES + "aB-́Σ", max_size=12)), max_size=8))
@example(texts=AWKWARD)
def test_column_and_text_agree(preset: str, texts: list[str]) -> None:
    column = pl.DataFrame({"x": [*texts, None]}, schema={"x": pl.String})
    found = column.select(normalise_expr(pl.col("x"), preset))["x"].to_list()
    assert found == [*(normalise(text, preset) for text in texts), None]


@pytest.mark.parametrize("preset", NORMALISATION_PRESETS)
@settings(max_examples=300)
@given(text=TEXT)
def test_idempotent(preset: str, text: str) -> None:
    once = normalise(text, preset)
    assert normalise(once, preset) == once


def test_every_character_of_the_basic_plane() -> None:
    texts = [f"A{chr(code)}B" for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    column = pl.LazyFrame({"x": texts})
    for preset in NORMALISATION_PRESETS:
        found = column.select(normalise_expr(pl.col("x"), preset)).collect()["x"].to_list()
        assert found == [normalise(text, preset) for text in texts]
        assert [normalise(text, preset) for text in found] == found


@settings(max_examples=200)
@given(text=TEXT)
def test_what_the_presets_mean(text: str) -> None:
    assert normalise(text, "sapbert") == re.sub(r"\s+", " ", re.sub("i\u0307+", "i", text.lower())).strip()
    assert normalise(text, "exact") == text.strip()
    loose = normalise(text, "loose")
    assert not any(unicodedata.category(character)[0] in "PS" for character in loose)
    assert not any(unicodedata.category(character) == "Cf" for character in loose)
    assert loose == loose.casefold()
    assert "  " not in loose


def test_examples() -> None:
    assert normalise("  Non-Small\t Cell  ") == "non-small cell"
    assert normalise(" Non-Small\t Cell ", "exact") == "Non-Small\t Cell"
    assert normalise("Non-Small (Cell), ﬁbrosis!", "loose") == "non small cell fibrosis"
    assert normalise("STRASSE", "loose") == normalise("Straße", "loose") == "strasse"
    assert normalise("ＡＢＣ１２", "loose") == "abc12"
    assert normalise("İLETİŞİM", "loose") == normalise("iletişim", "loose") == "iletişim"
    for preset in ("sapbert", "biosyn", "coder"):
        assert normalise("İLETİŞİM", preset) == normalise("i\u0307letişi\u0307m", preset) == "iletişim"
        assert normalise("i\u0307\u0307", preset) == "i"
    assert normalise("ISPARTA", "loose") == normalise("ısparta", "loose") == "isparta"
    assert normalise("\ufeffMyo\u00adcardial\u200b in\u200dfarct\u200e", "loose") == "myocardial infarct"
    assert normalise("\u2764\ufe0f \u200b", "loose") == ""
    assert normalise("e\u034f\u0301", "loose") == "é"
    assert normalise("\ud800 A") == "\ud800 a"  # half a character from a damaged terminal is still an answer


def test_empty_column_and_name_of_the_column() -> None:
    empty = pl.DataFrame({"x": []}, schema={"x": pl.String}).with_columns(normalise_expr(pl.col("x")))
    assert empty.schema == {"x": pl.String}
    assert empty.is_empty()
    nulls = pl.DataFrame({"x": [None, "É"]}, schema={"x": pl.String}).with_columns(normalise_expr(pl.col("x")))
    assert nulls["x"].to_list() == [None, "é"]


def test_unknown_preset() -> None:
    for call in (lambda: normalise("x", "sapbrt"), lambda: normalise_expr(pl.col("x"), "sapbrt")):
        with pytest.raises(ConfigError, match="Did you mean 'sapbert'"):
            call()


def biosyn_by_description(text: str) -> str:
    """Lower case; a run of white space and ASCII punctuation divides words; words joined by single spaces."""
    words, word = [], ""
    for character in text.lower() + " ":
        if character.isspace() or character in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~":
            words.append(word)
            word = ""
        else:
            word += character
    return " ".join(word for word in words if word)


def coder_as_released(text: str) -> str:
    """One run: lower case, " nos " out, a bracket out to the nearest ")" of its line, hyphens to spaces, collapsed."""
    text = f" {text} ".lower().replace(" nos ", " ")
    kept, position = "", 0
    while position < len(text):
        end = text.find(")", position)
        if text[position] == "(" and end >= 0 and "\n" not in text[position:end]:
            position = end
        else:
            kept += text[position]
        position += 1
    return " ".join(kept.replace("-", " ").split())


@settings(max_examples=300)
@given(text=st.one_of(TEXT, st.text(SPACES + "aB!/:@[`{~_é—“", max_size=12)))
def test_biosyn_is_what_its_description_says(text: str) -> None:
    assert normalise(text, "biosyn") == biosyn_by_description(text)


@settings(max_examples=500)
@given(words=st.lists(st.sampled_from(["nos", "NOS", "(", ")", "-", " ", "\t", "x", "É", "nos ", " nos"]), max_size=12))
@example(words=["tumour-nos"])
@example(words=["nos nos"])
@example(words=["n(x)os"])
def test_coder_is_the_released_code_where_that_has_done_its_work(words: list[str]) -> None:
    text = "".join(words)
    once = coder_as_released(text)
    if coder_as_released(once) == once:
        assert normalise(text, "coder") == once
    while (again := coder_as_released(once)) != once:
        once = again
    assert normalise(text, "coder") == once


def test_names_as_biosyn_and_coder_prepare_them() -> None:
    assert (
        normalise("Ehlers-Danlos syndrome, type_IV (disorder)", "biosyn") == "ehlers danlos syndrome type iv disorder"
    )
    assert normalise("Crohn’s", "biosyn") == "crohn’s"  # no ASCII punctuation
    assert normalise("  Back Pain NOS [disease/finding] ", "coder") == "back pain [disease/finding]"
    assert normalise("Non-small cell lung cancer (NSCLC), NOS", "coder") == "non small cell lung cancer ,"
    assert normalise("a (b (c) d)", "coder") == "a d)"
    assert normalise("diagnosis", "coder") == "diagnosis"
    assert normalise("(disorder)", "coder") == ""
    assert normalise("(disorder\nof x) tumour-nos nos nos", "coder") == "tumour"


@pytest.mark.parametrize("missing", [None, float("nan"), b"flu"])
def test_what_is_no_text_is_refused(missing: Any) -> None:
    with pytest.raises(InputError, match="what shall be normalised is no text; found"):
        normalise(missing)
    with pytest.raises(ConfigError, match="there is no normalisation"):
        normalise("flu", missing)
