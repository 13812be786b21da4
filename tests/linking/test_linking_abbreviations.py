"""Short forms found in documents, by Schwartz-Hearst and by Ab3P."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onoma.errors import ConfigError, UnavailableError
from onoma.linking import abbreviations
from onoma.linking.abbreviations import (
    find_abbreviations,
    find_abbreviations_ab3p,
    finder_named,
)

FOUND = [
    # both patterns
    ("the heat shock transcription factor (HSF) binds", {"HSF": "heat shock transcription factor"}),
    ("HSF (heat shock transcription factor) binds", {"HSF": "heat shock transcription factor"}),
    ("FED (fish-eye disease) is rare", {"FED": "fish-eye disease"}),
    ("Gcn5-related N-acetyltransferase (GNAT)", {"GNAT": "Gcn5-related N-acetyltransferase"}),
    ("adenomatous polyposis coli [APC]", {"APC": "adenomatous polyposis coli"}),
    # the first character begins a word, the others stand anywhere in order, case aside
    ("non-Hodgkin lymphoma (HL)", {"HL": "non-Hodgkin lymphoma"}),
    ("prolactin (PRL)", {"PRL": "prolactin"}),
    ("whole phenylalanine hydroxylase (PaH)", {"PaH": "phenylalanine hydroxylase"}),
    ("thalassaemia (HA)", {}),
    # the shortest long form, which is not always the right one
    ("RNA polymerase I (Pol I)", {"Pol I": "polymerase I"}),
    ("hereditary hemochromatosis (HH)", {"HH": "hemochromatosis"}),
    # what the algorithm cannot find: skipped and reordered characters
    ("cyclophilin seven suppressor (CNS1)", {}),
    ("anterior thalamus (ATN)", {}),
    # validity: length 2 to 10, at most two words, a letter, first character alphanumeric
    ("tumour (T)", {}),
    ("alpha beta gamma delta (ABGDEFGHIJK)", {}),
    ("a study of nine patients (1998)", {}),
    ("hepatocellular carcinoma (-HCC)", {}),
    ("type two diabetes (T 2 D)", {}),
    ("type 2 diabetes (T2 D)", {"T2 D": "type 2 diabetes"}),
    # the long form is longer than the short one and does not contain it
    ("AB C (ABC)", {"ABC": "AB C"}),
    ("abc (ABC)", {}),
    ("HCC hepatocellular carcinoma of HCC (HCC)", {}),
    # at most min(n + 5, 2n) words, in the same sentence
    ("apple b c d x (AX)", {}),
    ("apple b c x (AX)", {"AX": "apple b c x"}),
    ("It was acute. Patients were treated (APT)", {}),
    ("The cause was hepatitis e.g. Cirrhosis (HC)", {"HC": "hepatitis e.g. Cirrhosis"}),
    ("Acute title words\n\nTested here (ATH)", {}),
    ("Acute title words\nTested here (ATH)", {"ATH": "Acute title words Tested here"}),
    # additions, quotation marks, nested and unbalanced brackets
    ("Huntington's disease (HD; MIM 143100)", {"HD": "Huntington's disease"}),
    ("Huntington disease (HD [MIM 143100])", {"HD": "Huntington disease"}),
    ("Huntington disease (HD, chorea)", {"HD": "Huntington disease"}),
    (
        "Huntington disease (HD; see ref. 12) and fish-eye disease (FED).",
        {"HD": "Huntington disease", "FED": "fish-eye disease"},
    ),
    ("Huntington disease (HD; E. C. 1. 1. [No. 4])", {"HD": "Huntington disease"}),
    ("It was seen (here. Fish-eye disease (FED) is rare.", {"FED": "Fish-eye disease"}),
    ("fish-eye (of old.\n\nNow a disease) (FED)", {}),
    ('fish-eye disease ("FED")', {"FED": "fish-eye disease"}),
    ('"myocardial infarction" (MI)', {"MI": "myocardial infarction"}),
    ("“myocardial infarction” ((MI))", {"MI": "myocardial infarction"}),
    ("myocardial infarction [ (MI) ]", {"MI": "myocardial infarction"}),
    ("myocardial infarction, (MI), heart block: (HB)", {"MI": "myocardial infarction", "HB": "heart block"}),
    ("myocardial infarction – (MI)", {"MI": "myocardial infarction"}),
    ("MI (myocardial infarction.)", {"MI": "myocardial infarction"}),
    ("antibody to ER (+) (AER)", {"AER": "antibody to ER (+)"}),
    ("a protein (also heat shock factor (HSF))", {"HSF": "heat shock factor"}),
    ("(heat shock factor [HSF])", {"HSF": "heat shock factor"}),
    ("heat shock factor (HSF", {}),
    ("(HSF) heat shock factor", {}),
    ("()", {}),
    ("He carried HBV (HBV)", {}),
    ("CD4+ (CD4+)", {}),
    ("Tumours were ER positive (ER+).", {"ER+": "ER positive"}),
    ("HIV positive (HIV+) or HIV negative (HIV-)", {"HIV+": "HIV positive", "HIV-": "HIV negative"}),
    ("He carried HB virus (HB virus)", {}),
    ("an HB virus D HD A (HB virus)", {}),
    # any script
    ("сахарный диабет (СД) и ЖКБ (желчнокаменная болезнь)", {"СД": "сахарный диабет", "ЖКБ": "желчнокаменная болезнь"}),
    ("maladie de Ménière (MDM)", {"MDM": "maladie de Ménière"}),
    ("Ödeme im Sprunggelenk (öS)", {"öS": "Ödeme im Sprunggelenk"}),
    # accents that a short form lacks, or has as signs of their own; brackets of full width
    ("électroencéphalogramme (EEG)", {"EEG": "électroencéphalogramme"}),
    ("épilepsie partielle (EP)", {"EP": "épilepsie partielle"}),
    ("Έμφραγμα Μυοκαρδίου (ΕΜ)", {"ΕΜ": "Έμφραγμα Μυοκαρδίου"}),
    ("iskemik kalp hastalığı (İKH)", {"İKH": "iskemik kalp hastalığı"}),
    ("ısı kaybı (IK)", {"IK": "ısı kaybı"}),
    ("A\u0308ußere Sehne (A\u0308S)", {"ÄS": "Äußere Sehne"}),
    ("diabetes mellitus（DM）", {"DM": "diabetes mellitus"}),
    # several definitions
    (
        "Breast cancer (BC) and ovarian cancer (OC). Bowel cyst (BC), bowel  cyst (BC).",
        {"BC": "Bowel cyst", "OC": "ovarian cancer"},
    ),
    ("Breast cancer (BC). Bowel cyst (BC).", {"BC": "Breast cancer"}),
    ("hepatocellular\n carcinoma\t(HCC)", {"HCC": "hepatocellular carcinoma"}),
]


@pytest.mark.parametrize(("document", "expected"), FOUND)
def test_found_in_a_document(document: str, expected: dict[str, str]) -> None:
    assert find_abbreviations(document) == expected


WORDS = st.text(st.sampled_from("abcABC-é "), max_size=30)


@given(candidate=WORDS, short=st.text(st.sampled_from("abcABCé-1"), min_size=2, max_size=5))
def test_shortest_long_form_against_all_beginnings(candidate: str, short: str) -> None:
    """An oracle that tries every beginning of a word, from the right, with a plain test for a subsequence."""
    candidate = " ".join(candidate.split())
    if not short[0].isalnum():
        short = f"a{short}"
    without_accents = str.maketrans("éÉ", "ee")
    wanted = [character for character in short.casefold().translate(without_accents) if character.isalnum()]
    letters = candidate.casefold().translate(without_accents)
    expected = None
    for begin in reversed(range(len(candidate))):
        begins_word = begin == 0 or not candidate[begin - 1].isalnum()
        rest = iter(letters[begin + 1 :])
        if begins_word and letters[begin] == wanted[0] and all(one in rest for one in wanted[1:]):
            expected = candidate[candidate.rfind(" ", 0, begin) + 1 :]
            break
    assert abbreviations._shortest_long_form(short, candidate) == expected


@given(st.text(st.sampled_from('abHC ().[];,é\n"1'), max_size=80))
@example("(" * 200)
def test_finding_never_fails_and_gives_valid_pairs(document: str) -> None:
    for short, long in find_abbreviations(document).items():
        assert 2 <= len(short) <= 10
        assert len(long.split()) <= min(len(short) + 5, 2 * len(short))
        assert short in " ".join(document.split())
        letters = iter(long.casefold())
        assert all(letter in letters for letter in short.casefold() if letter.isalnum())


def test_finders_by_name() -> None:
    assert finder_named("schwartz-hearst") is find_abbreviations
    with pytest.raises(ConfigError, match="Did you mean 'ab3p'"):
        finder_named("ab3")


def test_ab3p() -> None:
    pytest.importorskip("pyab3p")
    document = (
        "Three sisters have fish-eye disease (FED).\nHereditary  hemochromatosis (HH) was_not seen; HH (x) neither."
    )
    found = find_abbreviations_ab3p(document)
    assert found == {"FED": "fish-eye disease", "HH": "Hereditary hemochromatosis"}
    # the same as our own where both apply; better where first letters should win
    assert find_abbreviations(document) == {"FED": "fish-eye disease", "HH": "hemochromatosis"}
    assert find_abbreviations_ab3p("") == {}


@pytest.mark.parametrize(
    "document",
    [
        "a" * 3_000 + " (AA)",
        "x " * 60_000 + "(HCC)",
        "hepatocellular carcinoma (HCC) and " * 4_000,
        "(" * 2_000 + ")" * 2_000,
        "ab (" + "b" * 80 + " " + "c" * 80 + ") c (AB)",
        "heat shock \0 factor (HSF) \ud800",
    ],
)
def test_ab3p_is_given_what_its_buffers_hold(document: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyab3p")
    find_abbreviations_ab3p(document)
    assert capfd.readouterr() == ("", "")


def test_ab3p_without_its_word_lists(tmp_path: Path) -> None:
    installed = Path(pytest.importorskip("pyab3p").__file__)
    shutil.copy(installed, tmp_path)
    (tmp_path / "word_data").mkdir()
    for file in (installed.parent / "word_data").iterdir():
        if file.is_file():  # as in the package's source: what Git LFS leaves in place of a file
            placeholder = (
                "" if file.name == "__init__.py" else "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
            )
            (tmp_path / "word_data" / file.name).write_text(placeholder)
    script = "from onoma.linking.abbreviations import find_abbreviations_ab3p as find; find('fish-eye disease (FED)')"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert "UnavailableError: the package pyab3p that is installed lacks its word lists" in done.stderr


def test_ab3p_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_ab3p(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pyab3p":
            raise ImportError(name=name)
        return real_import(name, *args, **kwargs)

    abbreviations._ab3p.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without_ab3p)
    with pytest.raises(UnavailableError, match=r"onoma\[abbreviations\]"):
        find_abbreviations_ab3p("fish-eye disease (FED)")
