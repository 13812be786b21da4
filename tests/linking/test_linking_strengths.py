"""Strengths, dose forms, routes and directions left out of what a drug is called."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onoma.linking import Preparation
from onoma.linking.expansion import AbbreviationTable
from onoma.linking.spelling import Spelling
from onoma.linking.strengths import without_strengths

NAMES = {
    *("interleukin", "interleukin 1", "interleukin 2", "vitamin b 12"),
    *("effexor", "effexor xr", "lipitor", "augmentin", "norco", "tylenol", "lantus solostar", "calamine lotion"),
    *(
        "amoxicillin",
        "hypertonic saline 3 %",
        "metformin 500 mg oral tablet",
        "vitamin b",
        "coenzyme q",
        "polysorbate 80",
    ),
}


def is_name(text: str) -> bool:
    return text.lower() in NAMES


@pytest.mark.parametrize(
    ("mention", "left"),
    [
        ("plaquenil 200mg tab", "plaquenil"),
        ("Plaquenil200mg tabs", "Plaquenil"),
        ("metformin HCl 500 MG Oral Tablet", "metformin HCl"),
        ("24 HR metformin hydrochloride 500 MG Extended Release Oral Tablet", "metformin hydrochloride"),
        ("atorvastatin 10 MG Oral Tablet [Lipitor]", "atorvastatin"),
        ("0.25 ML leuprolide acetate 30 MG/ML Prefilled Syringe", "leuprolide acetate"),
        ("120 ACTUAT fluticasone 0.11 MG/ACTUAT Metered Dose Inhaler [Flovent]", "fluticasone"),
        ("lisinopril 20 mg / hydrochlorothiazide 12.5 mg tab", "lisinopril / hydrochlorothiazide"),
        ("sulfamethoxazole-trimethoprim 800 mg-160 mg tablet", "sulfamethoxazole-trimethoprim"),
        ("amlodipine-benazepril 5-10 mg cap", "amlodipine-benazepril"),
        ("paracetamol 500mg/5ml susp", "paracetamol"),
        ("insulin glargine 100 units/mL (3 mL) pen", "insulin glargine"),
        ("heparin 5,000 units sc q8h", "heparin"),
        ("penicillin G benzathine 1.2 million units IM", "penicillin G benzathine"),
        ("lidocaine 1% w/ epinephrine 1:100,000 inj", "lidocaine w/ epinephrine"),
        ("fentanyl 25 mcg/hr patch", "fentanyl"),
        ("hydrocortisone 1% cream, apply twice daily", "hydrocortisone"),
        ("inj. ceftriaxone 1 g i.v. q4-6h", "ceftriaxone"),
        ("prednisone 5 mg tabs #30", "prednisone"),
        ("prednisone 5 mg x 30", "prednisone"),
        ("clonazepam .5 mg", "clonazepam"),
        ("levothyroxin 0,05 mg", "levothyroxin"),
        ("Tylenol extra strength", "Tylenol"),
        ("vitamin D3 1000 IU", "vitamin D3"),
        ("vitamin A 5000 IU caps", "vitamin A"),
        ("B12 1000mcg inj", "B12"),
        ("coenzyme q10 100mg", "coenzyme q10"),
        ("omega-3 1000 mg", "omega-3"),
        ("5-FU 500 mg", "5-FU"),
        ("polyethylene glycol 3350 17 gram powder", "polyethylene glycol 3350"),
        ("factor VIII 250 IU", "factor VIII"),
        ("CEFTRIAXONE 1G INJ", "CEFTRIAXONE"),
        ("fluoxetine 20mg cap; lorazepam 1mg prn", "fluoxetine; lorazepam"),
        ("fluoxetine 20mg cap\nlorazepam 1mg tab", "fluoxetine\nlorazepam"),
        ("lisinopril 20mg tab, ramipril 5mg cap, qds", "lisinopril, ramipril"),
        ("metoprolol tartrate 25 mg tab + lisinopril 10 mg", "metoprolol tartrate + lisinopril"),
        ("amoxicillin; 500 mg; capsule, oral", "amoxicillin"),
        ("amlodipine 5 mg, 30 tabs", "amlodipine"),
        ("lisinopril-HCTZ 20 mg / 12.5 mg tab", "lisinopril-HCTZ"),
        ("calcium carbonate 600mg/vitamin D 400IU", "calcium carbonate/vitamin D"),
        ("Percocet 5/325", "Percocet"),
        ("vitamin C / E 400 IU", "vitamin C / E"),
        ("NaCl 0.9% + K 20 mEq", "NaCl + K"),
        ("fentanyl 25 mcg / hr patch", "fentanyl"),
        ("dopamine 5 mcg / kg / min", "dopamine"),
        ("insulin 100 units / ml", "insulin"),
        ("(-)-beta-elemene 5 mg", "(-)-beta-elemene"),
        ("nad+ 100 mg", "nad+"),
        ("5-l-glutamyl-l-cysteine 5 mg", "5-l-glutamyl-l-cysteine"),
        ("somatropin [rdna origin] 10 ml", "somatropin [rdna origin]"),
        ("metoprolol - 50 mg - tablet", "metoprolol"),
        ("amoxicillin 500 mg once a day x 7 days", "amoxicillin"),
        ("paracetamol 500mg tds", "paracetamol"),
        ("insulin 100 IE/ml", "insulin"),
        ("metformin 1'000 mg", "metformin"),
        ("METFORMIN 500MG TABLETS USP", "METFORMIN"),
        ("hydrocodone/APAP 10/325 tabs", "hydrocodone/APAP"),
        ("vancomycin 1 g/200 mL", "vancomycin"),
        ("sodium chloride 0.9% 1 L bag", "sodium chloride"),
    ],
)
def test_what_only_says_how_much_and_how_is_left_out(mention: str, left: str) -> None:
    assert without_strengths(mention) == left


@pytest.mark.parametrize(
    "mention",
    [
        *("calamine lotion", "amoxicillin capsules", "Lipitor 20", "Augmentin 875-125", "interleukin 2", "B 12"),
        *(
            "500 mg",
            "100 units/mL",
            "",
            " ",
            "Tylenol #3",
            "Tylenol #3 tabs",
            "type 2 diabetes",
            "stage 3 cancer",
            "HIV-1",
            "2,4-D",
        ),
        *(
            "h1n1",
            "vitamin D3 + K",
            "omega 3 / 6 / 9",
            "ataxia type 15/16",
            "type 2G",
            "SCNN1G",
            "5-l-oxoproline",
            "17-beta estradiol",
            "  heart   attack ",
            "10 year old",
            "1,25-dihydroxyvitamin D",
        ),
        "x" * 501 + " 5 mg",
    ],
)
def test_other_text_stays_as_it_is(mention: str) -> None:
    assert without_strengths(mention) == mention


@pytest.mark.parametrize(
    ("mention", "left"),
    [
        ("Effexor XR 37.5 mg cap", "Effexor XR"),  # the longest that is a name
        ("Effexor 37.5 mg cap", "Effexor"),
        ("Effexr XR 37.5 mg cap", "Effexr"),  # none is a name: as without names
        ("Lipitor 20", "Lipitor"),
        ("Lipitor®", "Lipitor"),
        ("Augmentin 875-125 tabs", "Augmentin"),
        ("Lantus SoloStar pen", "Lantus SoloStar"),
        ("amoxicillin capsules", "amoxicillin"),
        ("calamine lotion", "calamine lotion"),
        ("hypertonic saline 3 %", "hypertonic saline 3 %"),
        ("Metformin 500 MG Oral Tablet", "Metformin 500 MG Oral Tablet"),
        ("vitamin b 12", "vitamin b 12"),
        ("coenzyme q 10", "coenzyme q 10"),
        ("polysorbate 80", "polysorbate 80"),
        ("Tylenol #3", "Tylenol #3"),
        ("Tylenol 3", "Tylenol 3"),
        ("vitamin b 12 tablets", "vitamin b 12"),  # the number is the name's
        ("interleukin 2 vial", "interleukin 2"),
        ("interleukin 1 tab", "interleukin"),
        ("hypertonic saline 3 % solution", "hypertonic saline 3 %"),
        ("Norco 70/30 vial", "Norco"),
        ("Effexor XR 500", "Effexor XR"),
        ("amoxicillin SR 500 tabs", "amoxicillin"),
        ("Effexor 37.5 mg or 75 mg pen", "Effexor"),  # what stands before the first amount
        ("Effexor 37.5 mg w/ lipitor", "Effexor w/ lipitor"),
    ],
)
def test_a_terminology_knows_better(mention: str, left: str) -> None:
    assert without_strengths(mention, is_name=is_name) == left


@given(st.text(st.sampled_from("ab5. ,/-%()[]:#®mgltxIU"), max_size=40) | st.text(max_size=40))
@example("(5 mg)")
@example("a [b] 5 mg [")
def test_what_is_left_is_of_the_mention(mention: str) -> None:
    left = without_strengths(mention)
    assert left.strip() or not mention.strip()
    if left != mention:
        assert left == "\n".join(" ".join(line.split()) for line in left.split("\n"))
        assert any(map(str.isalpha, left))
        signs = iter(mention)
        assert all(sign in signs for sign in left if not sign.isspace())  # in their order


@pytest.mark.parametrize("part", ["1 to ", "a 5 mg ", "tab ", " ", "1,1", "(", "aaaa1", "5 mg/", "[a", "1 : "])
def test_text_that_has_many_readings_is_not_tried_for_ever(part: str) -> None:
    without_strengths((part * 500)[:500])
    assert without_strengths(part * 50_000) == part * 50_000


def test_before_short_forms_and_misspelt_words() -> None:
    preparation = Preparation(
        table=AbbreviationTable({"HCTZ": "hydrochlorothiazide"}), strengths=True, spelling=True, composites=True
    )
    spelling = Spelling.of_names(["paracetamol", "hydrochlorothiazide", "lisinopril"])
    mentions = ["hctz 25mg", "paracetmol 500 mg susp", "lisinopril 20 MG / HCTZ 12.5 MG", "paracetamol"]
    names = {"lisinopril", "hydrochlorothiazide"}
    prepared = preparation.prepare(mentions, spelling=spelling, is_name=names.__contains__)
    assert [one.without_strengths for one in prepared] == ["hctz", "paracetmol", "lisinopril / HCTZ", None]
    assert [one.parts for one in prepared] == [
        ("hydrochlorothiazide",),
        ("paracetamol",),
        ("lisinopril", "hydrochlorothiazide"),
        ("paracetamol",),
    ]
    assert [one.original for one in prepared] == mentions
    table = AbbreviationTable({"NaCl 0.9%": "normal saline"})
    (short,) = Preparation(table=table, strengths=True).prepare(["NaCl 0.9% 500 ml bag"])
    assert short.text == "normal saline"
    (whole,) = preparation.prepare(["HCTZ 25 mg"], is_name=lambda text: text == "HCTZ 25 mg", spelling=spelling)
    assert (whole.without_strengths, whole.text) == (None, "hydrochlorothiazide 25 mg")
