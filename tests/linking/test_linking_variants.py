"""Other ways to write a mention: which there are, and that the linker takes the right one."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linking_data import write_letter_encoder, write_letter_linker

from onoma.linking import Linker, LinkerSettings, Preparation, add_reranker, build_linker, tune_linker
from onoma.linking.variants import Variant, variants_of
from onoma.pairs import read_mentions
from onoma.training.reranking_data import _ways_without_own_names
from tiny import make_terminology, tiny_encoder
from tiny_rerankers import write_reranker

CONCEPTS = {
    "D1": ["Diabetes Mellitus type 2", "sugar disease"],
    "D2": ["Diabetes Mellitus type 1"],
    "D3": ["Seckel syndrome"],
    "D4": ["Seckel syndrome type 6"],
    "D5": ["β thalassaemia"],
    "D6": ["fibroma", "Alzheimer's disease"],
    "D7": ["mitochondrial complex I deficiency, nuclear type 4"],
    "D8": ["HLA-B27+"],
    "D9": ["HLA-B27-"],
    "D10": ["trisomy 10"],
}


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    folder = tmp_path_factory.mktemp("variants")
    write_letter_linker(folder, CONCEPTS)
    return Linker.open(folder / "linker")


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        ("heart attack", []),
        ("Diabetes type II", ["Diabetes type 2"]),
        ("diabetes type ii", ["diabetes type 2"]),
        ("type 2 diabetes", ["type II diabetes"]),
        ("type two diabetes", ["type 2 diabetes", "type II diabetes"]),
        ("two diabetes", []),
        ("mucopolysaccharidosis type IIIA", ["mucopolysaccharidosis type 3A"]),
        ("type 2b", ["type IIb"]),
        ("Diabetes Typ IIa", ["Diabetes Typ 2a"]),
        ("factores tipo X", ["factores tipo 10"]),
        ("subtypes X", ["subtypes 10"]),
        ("prototype 2a", []),
        ("MEN 2b", []),
        ("PAP-1", []),
        ("IV", []),
        ("IVC filter", []),
        ("failed IVF", []),
        ("via", []),
        ("integrin alpha V", ["integrin α V"]),
        ("alpha(5) integrin", ["α(5) integrin"]),
        ("complex I of alpha", ["complex 1 of α", "complex I of α", "complex 1 of alpha"]),
        ("vitamin D", []),
        ("IF", []),
        ("factor X", ["factor 10"]),
        ("collagen 10", ["collagen X"]),
        ("trisomy X", []),
        ("partial deletion of chromosome type 10", []),
        ("X cells", []),
        ("type 21", []),
        ("aspirin 10 mg", []),
        ("aspirin 5mg", []),
        ("5 % saline", []),
        ("2 µl", ["2 μl"]),
        ("2-methylpropane", []),
        ("Phase 2/3", []),
        ("vitamin 1.5", []),
        ("46,XX", []),
        ("1.5", []),
        ("BRCA1", []),
        ("α-synuclein", ["alpha-synuclein"]),
        ("alpha-synuclein", ["α-synuclein"]),
        ("TNFα", ["TNFalpha"]),
        ("καρκίνος", []),
        ("5 μg", []),
        ("pi", []),
        ("ﬁbroma", ["fibroma"]),
        ("ＩｇＡ腎症", ["IgA腎症"]),
        ("Alzheimer’s disease", ["Alzheimer's disease"]),
        ("Wolff–Parkinson‐White", ["Wolff-Parkinson-White"]),
        ("hyper\u00adtension", ["hypertension"]),
        ("Ca²⁺", ["Ca2+"]),
        ("H₂O", ["H2O"]),
        ("syndrome 1²", []),
        ("long QT syndrome²", []),
        ("10⁵ cells", []),
        ("deafness 1½", []),
        ("diabetes ①", []),
        ("A™", []),
        ("ﬁve mg™", ["five mg™"]),
        ("carci- noma", ["carcinoma", "carci-noma"]),
        ("T- cell", []),
        ("pre- and postnatal", []),
        ("types 1 and 2", ["types I and II", "types 1 and II", "types I and 2"]),
        ("1 2 3 4", []),
        ("", []),
        ("type 2 " * 100, []),
    ],
)
def test_ways(mention: str, expected: list[str]) -> None:
    assert [variant.text for variant in variants_of(mention)] == expected


def test_a_variant_is_in_a_name_that_has_its_words() -> None:
    numeral, greek, signs = Variant("type 2", frozenset({"2"})), Variant("TNFα", frozenset({"α"})), Variant("fi")
    assert [numeral.is_in(name) for name in ("diabetes type-2", "type 2a", "type 12", "diabetes")] == [True] + 3 * [
        False
    ]
    assert [greek.is_in(name) for name in ("TNFΑ", "TNF-α", "TNF")] == [True, True, False]
    spelled = Variant("eta", frozenset({"eta"}))
    assert [spelled.is_in(name) for name in ("eta-thalassaemia", "beta-thalassaemia")] == [True, False]
    assert signs.is_in("anything")


@given(st.text(alphabet="iIvVxX12 -.,αβalphtypeﬁ’β\u00ad", max_size=30))
def test_properties(mention: str) -> None:
    variants = variants_of(mention)
    texts = [variant.text for variant in variants]
    assert mention not in texts
    assert len(set(variants)) == len(variants) <= 8
    glued = [variant.text for variant in variants if variant.words and not variant.is_in(variant.text)]
    assert all(re.search(r"[^\W_](alpha|beta)|(alpha|beta)[^\W_]", text) for text in glued)


@pytest.mark.parametrize(
    ("mention", "code"),
    [
        ("diabetes mellitus TYPE II", "D1"),
        ("Seckel syndrome type VI", "D4"),
        ("Beta thalassaemia", "D5"),
        ("ﬁbroma", "D6"),
        ("Alzheimer’s disease", "D6"),
        ("mitochondrial complex 1 deficiency, nuclear type IV", "D7"),
        ("HLA–B27–", "D9"),
    ],
)
@pytest.mark.parametrize("stages", [None, ["exact", "variants"], ["exact", "variants", "dense", "sparse"]])
def test_a_name_that_is_written_otherwise_is_that_name(
    linker: Linker, mention: str, code: str, stages: list[str] | None
) -> None:
    (link,) = linker.link([mention], top_k=1, stages=stages)[0]
    assert (link.concept_id, link.score, link.read_as) == (code, 1, None)


def test_look_up_of_the_mention_as_it_is_comes_first(tmp_path: Path) -> None:
    write_letter_linker(tmp_path, {"A": ["type 2"], "B": ["type II"]})
    linker = Linker.open(tmp_path / "linker")
    assert [links[0].concept_id for links in linker.link(["Type 2", "Type ii", "type two"], top_k=1)] == ["A", "B", "A"]


def test_what_is_not_looked_up_is_as_near_as_with_the_other_numeral(linker: Linker) -> None:
    """The searches give the answers that they give to the mention in the way of the names."""
    for stages in (["dense"], ["sparse"], ["dense", "sparse"], ["exact", "dense"]):
        (found,) = linker.link(["the Seckel syndromes type VI"], stages=[*stages, "variants"], top_k=5)
        assert found == linker.link(["the Seckel syndromes type 6"], stages=stages, top_k=5)[0]
        assert found[0].concept_id == "D4"


def test_a_way_that_no_near_name_has_changes_nothing(linker: Linker) -> None:
    for mention in ("fibroma stage IV", "trisomy X", "cold"):
        plain = linker.link([mention], stages=["exact", "dense"])
        assert linker.link([mention], stages=["exact", "variants", "dense"]) == plain


def test_answers_depend_on_nothing_else_that_is_asked(linker: Linker) -> None:
    mentions = ["Seckel syndromes type VI", "ﬁbromas", "type II", "cold", "Alzheimer’s", "diabetes mellitus type II"]
    alone = [linker.link([mention], top_k=3)[0] for mention in mentions]
    assert linker.link(mentions, top_k=3) == alone
    assert linker.link(mentions[::-1], top_k=3) == alone[::-1]
    firsts = linker.link(mentions, top_k=1)
    assert firsts == [links[:1] for links in alone]


def test_explanations_say_how_the_mention_was_read(linker: Linker) -> None:
    explained = linker.explain("diabetes mellitus type II")
    assert explained.text == "diabetes mellitus type ii"
    assert explained.written == "diabetes mellitus type 2"
    assert explained.outcome.startswith(
        "In another spelling it is 'diabetes mellitus type 2'. D1 (Diabetes Mellitus type 2)"
    )
    assert explained.links[0].stage == "exact"
    for mention in ("sugar disease", "Seckel syndromes type VI"):
        links, explained = linker.link([mention])[0], linker.explain(mention)
        assert [link.concept_id for link in links] == [reason.concept_id for reason in explained.links]
        assert [link.score for link in links] == [reason.score for reason in explained.links]
        assert (explained.written is None) == (mention == "sugar disease")


def test_filters_leave_the_way_of_the_mention_if_another_way_is_no_answer(linker: Linker) -> None:
    rows = [row for row, name in enumerate(linker.dictionary.entry_names) if name == "Diabetes Mellitus type 2"]
    without = linker.without(linker.dictionary.entry_name_rows[rows])
    assert without.link(["diabetes mellitus type II"], stages=["exact", "variants"]) == [[]]


def test_names_in_composites_may_be_written_otherwise(linker: Linker) -> None:
    preparing = linker.preparing(Preparation(composites=True))
    links = preparing.link(["Seckel syndrome type VI and ﬁbroma"], top_k=1)[0]
    assert [(link.concept_id, link.score) for link in links] == [("D4", 1), ("D6", 1)]


def test_with_loose_look_up_too(tmp_path: Path) -> None:
    write_letter_linker(tmp_path, {"A": ["Seckel-syndrome (type 6)"]})
    linker = Linker.open(tmp_path / "linker")
    (links,) = linker.link(["SECKEL syndrome type VI"], stages=["exact", "loose", "variants"])
    assert [(link.concept_id, link.score) for link in links] == [("A", 1)]
    assert linker.link(["SECKEL syndrome type VI"], stages=["exact", "loose"]) == [[]]


def test_on_by_itself_and_off_where_stages_are_named(linker: Linker, tmp_path: Path) -> None:
    assert linker.settings.stages == ("exact", "variants", "dense", "sparse")
    make_terminology(tmp_path / "t", CONCEPTS)
    write_letter_encoder(tmp_path / "letters")
    named = build_linker(tmp_path / "t", tmp_path / "letters", tmp_path / "l", stages=["exact", "dense"])
    assert named.settings.stages == ("exact", "dense")
    assert LinkerSettings(stages=("exact", "dense")).look_ups == ("exact",)
    assert LinkerSettings(stages=("variants", "dense")).look_ups == ()
    assert LinkerSettings().look_ups == ("exact", "variants")


def test_every_combination_of_stages_answers(linker: Linker) -> None:
    stages = ["exact", "loose", "dense", "sparse"]
    for n in range(1, 5):
        for subset in itertools.combinations(stages, n):
            (links,) = linker.link(["seckel syndrome type vi"], stages=[*subset, "variants"])
            assert links[0].concept_id == "D4"
            assert (links[0].score == 1) == (links == linker.link(["seckel syndrome type 6"], stages=subset)[0])


@pytest.mark.parametrize("preset", ["exact", "loose", "biosyn", "coder"])
def test_ways_are_of_the_mention_as_it_is_written_whatever_the_normalisation(tmp_path: Path, preset: str) -> None:
    make_terminology(tmp_path / "t", {"A": ["carcinoma"], "B": ["vitamin I V"], "C": ["46 20"], "D": ["grade 4"]})
    linker = build_linker(tmp_path / "t", None, tmp_path / "l", sparse=True, normalisation=preset)
    stages = ["exact", "variants"]
    found = linker.link(["carci- noma", "vitamin 1.5", "46,XX", "grade IV"], stages=stages)
    assert [[link.concept_id for link in links] for links in found] == [["A"], [], [], ["D"]]


def test_a_cross_encoder_reads_the_way_that_was_found_unless_the_mention_is_marked(tmp_path: Path) -> None:
    names = {"A": ["Seckel syndrome type 6"], "B": ["Seckel syndrome type 6", "dwarfism"], "C": ["Seckel syndrome"]}
    write_letter_linker(tmp_path, names)
    base = tiny_encoder(tmp_path / "bert", weight_std=0.3)
    for contexts in (False, True):
        write_reranker(tmp_path / f"r-{contexts}", base, contexts=contexts)
        shutil.copytree(tmp_path / "linker", tmp_path / f"l-{contexts}")
        linker = add_reranker(tmp_path / f"l-{contexts}", tmp_path / f"r-{contexts}")
        stages = ["exact", "variants", "dense", "rerank"]
        plain = linker.link(["Seckel syndrome type 6"], stages=stages)
        assert linker.link(["Seckel syndrome type VI"], stages=stages) == plain
        explained = linker.explain("Seckel syndrome type VI", stages=stages)
        assert [reason.concept_id for reason in explained.links] == [link.concept_id for link in plain[0]]


def test_tuning_learns_from_the_ways_that_are_searched_for(tmp_path: Path) -> None:
    """The same mentions, with numerals as the names have them or not, teach the same."""
    kinds = ["anaemia", "ataxia", "asthma", "dystonia", "epilepsy", "fever", "goitre", "myopathy"]
    names = {f"{kind}{n}": [f"{kind} type {n}"] for kind in kinds for n in (2, 3, 4, 6)}
    write_letter_linker(tmp_path, names)
    numeral = {"2": "II", "3": "III", "4": "IV", "6": "VI"}
    settings = []
    for number, written in enumerate([{}, numeral]):
        folder = tmp_path / f"l{number}"
        shutil.copytree(tmp_path / "linker", folder)
        mentions = [
            (f"{a} {kind}s type {written.get(code[-1], code[-1])}", code)
            for code in names
            for kind in [code[:-1]]
            for a in ("the", "some")
        ]
        table = pl.DataFrame(mentions, schema=["mention", "concept_id"], orient="row")
        table.write_csv(tmp_path / "m.csv")
        tuned = tune_linker(folder, read_mentions(tmp_path / "m.csv"), calibrate=False)
        settings.append((tuned.accuracy["after"], Linker.open(folder).settings.weights))
    assert settings[0] == settings[1]


def test_a_linker_s_own_names_are_hidden_in_every_way_to_write_them(linker: Linker) -> None:
    ways = _ways_without_own_names(linker, ["Seckel syndrome type VI"], keep_too=False)
    (without,) = [asked for asked, rows in ways if rows == [0] and asked is not linker]
    assert isinstance(without, Linker)
    (links,) = without.link(["Seckel syndrome type VI"], stages=["exact", "variants", "dense"])
    assert all(link.matched_name != "Seckel syndrome type 6" for link in links)
