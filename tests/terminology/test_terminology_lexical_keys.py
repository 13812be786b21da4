"""Keys of names that say the same in another order, number or spelling."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.terminology.enriching.lexical_keys import ORDERING_WORDS, SMALL_WORDS, lexical_keys


def keys(*names: str | None) -> list[str | None]:
    return lexical_keys(pl.Series(names, dtype=pl.String)).to_list()


@pytest.mark.parametrize(
    "names",
    [
        ("Pain in lower limb", "Lower limb pain", "lower limb pains", "Pain, lower-limb"),
        ("Crohn's disease", "Crohn disease", "CROHN’S DISEASES"),
        ("Alzheimer's disease", "Alzheimers disease"),
        ("Oedema", "Edema, NOS", "œdemas"),
        ("vitamin B12", "B12 vitamin"),
        ("Haemorrhage of oesophagus", "Esophagus hemorrhages"),
        ("Diarrhoea", "diarrhea"),
        ("Tumour", "Tumors"),
        ("Generalised anxiety", "generalized anxieties"),
        ("Paralysed", "paralyzed"),
        ("Fibre", "fibers"),
        ("Sulphonamide", "sulfonamides"),
        ("Leucocytes", "Leukocyte"),
        ("Rash", "rashes"),
        ("Abscess", "abscesses"),
        ("Headache", "headaches"),
        ("Of the", "the of"),
    ],
)
def test_names_that_say_the_same_have_one_key(names: tuple[str, ...]) -> None:
    assert len(set(keys(*names))) == 1


@pytest.mark.parametrize(
    "names",
    [
        ("vitamin A", "vitamin"),
        ("protein S deficiency", "protein deficiency"),
        ("toe", "tee"),
        ("pain without cause", "pain with cause"),
        ("type 1", "type 1 1"),
        ("virus", "viru"),
        ("pelvis", "pelvi"),
        ("abscess", "absces"),
        ("hip", "hips and knees"),
        ("pain in four limbs", "pain in limbs"),
        ("protein 'S' deficiency", "protein deficiency"),
        ("amlodipine 5 mg, atorvastatin 10 mg", "amlodipine 10 mg, atorvastatin 5 mg"),
        ("2-isopropyl-5-methylphenol", "5-isopropyl-2-methylphenol"),
        ("migraine without aura with status", "migraine with aura without status"),
        ("anaemia due to kidney disease", "kidney disease due to anaemia"),
    ],
)
def test_names_that_say_something_else_have_others(names: tuple[str, str]) -> None:
    first, second = keys(*names)
    assert first != second


def test_blank_names_have_blank_keys() -> None:
    assert keys("", "  ", "...", None) == ["", "", "", None]


_letters = st.from_regex(r"[a-z]{1,9}", fullmatch=True).filter(lambda word: word not in ORDERING_WORDS)
_words = st.lists(_letters | st.sampled_from(["four", "hours"]), min_size=1, max_size=5)


@given(words=_words, data=st.data())
def test_order_case_and_small_words_make_no_difference(words: list[str], data: st.DataObject) -> None:
    small = data.draw(st.lists(st.sampled_from(SMALL_WORDS), max_size=3))
    large = [word for word in words if word not in SMALL_WORDS]
    mixed = data.draw(st.permutations([*(large or words), *(small if large else ())]))
    assert len(set(keys(" ".join(words), " ".join(mixed).upper()))) == 1
