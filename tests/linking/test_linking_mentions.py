"""Mentions made ready: expansion and splitting together, alone and as stages of a linker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from linking_data import write_letter_encoder

from onoma.errors import ConfigError, InputError
from onoma.linking import Linker, LinkerSettings, add_reranker, build_linker
from onoma.linking.abbreviations import Finder
from onoma.linking.expansion import AbbreviationTable, Expansion, expand
from onoma.linking.links import checked_mentions
from onoma.linking.mentions import Preparation, PreparedMention
from onoma.linking.pipeline import runs
from onoma.linking.questions import Question, questions_of
from onoma.linking.spelling import Spelling
from tiny import make_terminology, tiny_encoder
from tiny_rerankers import write_reranker

DOCUMENT = "Duchenne muscular dystrophy (DMD) and Becker muscular dystrophy (BMD) are not multiple sclerosis (MS)."
TABLE = AbbreviationTable({"MS": "mitral stenosis", "MI": "myocardial infarction"}, {"HD": ("a", "b")})
FINDER: Finder = "schwartz-hearst"


def texts(prepared: list[PreparedMention]) -> list[str]:
    return [mention.text for mention in prepared]


def test_the_context_goes_before_the_table() -> None:
    mentions = ["MS", "MI", "HD", "MS"]
    both = Preparation(table=TABLE, finder=FINDER)
    prepared = both.prepare(mentions, contexts=[DOCUMENT] * 4)
    assert texts(prepared) == ["multiple sclerosis", "myocardial infarction", "HD", "multiple sclerosis"]
    sources = [[expansion.source for expansion in mention.expansions] for mention in prepared]
    assert sources == [["context"], ["table"], [], ["context"]]
    assert [mention.context for mention in prepared] == [DOCUMENT] * 4
    # each mention has its own context
    assert texts(both.prepare(mentions, contexts=[None, DOCUMENT, "", DOCUMENT]))[::3] == [
        "mitral stenosis",
        "multiple sclerosis",
    ]
    assert texts(both.prepare(mentions))[0] == "mitral stenosis"
    assert texts(Preparation(table=TABLE).prepare(mentions, contexts=[DOCUMENT] * 4))[0] == "mitral stenosis"
    assert texts(Preparation().prepare(iter(mentions))) == mentions
    assert both.prepare([]) == []


def test_marks_are_no_part_of_a_context() -> None:
    context = "She has fish-eye disease (<tgt>FED</tgt>)."
    (prepared,) = Preparation(finder=FINDER).prepare(["FED"], contexts=[context])
    assert (prepared.text, prepared.context) == ("fish-eye disease", context)


def test_expanded_then_split() -> None:
    (prepared,) = Preparation(finder=FINDER, composites=True).prepare(["DMD/BMD"], contexts=[DOCUMENT])
    assert prepared == PreparedMention(
        original="DMD/BMD",
        text="Duchenne muscular dystrophy/Becker muscular dystrophy",
        parts=("Duchenne muscular dystrophy", "Becker muscular dystrophy"),
        expansions=(
            Expansion("DMD", "Duchenne muscular dystrophy", "context"),
            Expansion("BMD", "Becker muscular dystrophy", "context"),
        ),
        context=DOCUMENT,
    )
    (whole,) = Preparation(finder=FINDER).prepare(["DMD/BMD"], contexts=[DOCUMENT])
    assert whole.parts == (whole.text,)


def test_long_forms_stay_whole() -> None:
    long = "attention-deficit/hyperactivity disorder"
    preparing = Preparation(table=AbbreviationTable({"ADHD": long}), composites=True)
    assert [one.parts for one in preparing.prepare(["ADHD", "ADHD and ataxia", long])] == [
        (long,),
        (long, "ataxia"),
        ("attention-deficit disorder", "hyperactivity disorder"),  # nobody said that this is one name
    ]


def test_misspelt_long_forms_stay_whole() -> None:
    table = AbbreviationTable({"SJP": "stiffnes and joint pain"})
    preparing = Preparation(table=table, composites=True, spelling=True)
    (prepared,) = preparing.prepare(["SJP"], spelling=Spelling.of_names(["stiffness", "joint pain"]))
    assert prepared.parts == ("stiffness and joint pain",)


def test_names_of_the_terminology_stay_whole() -> None:
    mention, preparation = "spinal and bulbar muscular atrophy", Preparation(composites=True)
    (split,) = preparation.prepare([mention])
    assert split.parts == ("spinal muscular atrophy", "bulbar muscular atrophy")
    (whole,) = preparation.prepare([mention], is_name=lambda text: text == mention)
    assert whole.parts == (mention,)


def test_what_is_a_name_is_neither_shortened_nor_put_right() -> None:
    names = {"enzyme (ace) high in blood", "ace", "große fraktur", "graves病"}
    preparation = Preparation(finder="schwartz-hearst", spelling=True)
    spelling = Spelling.of_names(["enzyme", "grobe fraktur", "graves"])

    def read(mention: str, context: str | None = None) -> str:
        return preparation.prepare(
            [mention], contexts=[context], is_name=lambda text: text.lower() in names, spelling=spelling
        )[0].text

    context = "Angiotensin converting enzyme (ACE) was high: enzyme (ACE) high in blood."
    assert expand("enzyme (ACE) high in blood", {"ACE": "enzyme"}) == "enzyme high in blood"
    mention = "angiotensin converting enzyme (ACE) high"
    assert read(mention, context) == "angiotensin converting enzyme high"
    names.add(mention.lower())
    assert read(mention, context) == mention
    assert read("ACE", context) == "Angiotensin converting enzyme"  # a name that tells no long form
    assert read("Große Fraktur") == "Große Fraktur"
    assert read("Große Fraktur!") == "Grobe Fraktur!"


@pytest.mark.parametrize(
    ("mention", "found"),
    [
        (None, "found None. To mend it: where there is none, give ''; it gets no link"),
        (float("nan"), "found nan. To mend it: where there is none, give ''; it gets no link"),
        (3, "found int"),
        (b"Secret", "found bytes"),
        (["Secret"], "found list"),
    ],
)
def test_what_is_no_text_is_named_and_not_shown(mention: Any, found: str) -> None:
    """It may be of a patient, and errors end in logs."""
    with pytest.raises(InputError, match=rf"field mentions\[1\]: a mention is not text; {re.escape(found)}\.$"):
        checked_mentions(["fever", mention])


def test_half_a_character_is_told_by_its_place() -> None:
    with pytest.raises(InputError, match=r"half of a surrogate pair.*ud800' at character 8 of 8") as caught:
        checked_mentions(["Secret \ud800"])
    assert "Secret" not in str(caught.value)


def test_refused() -> None:
    with pytest.raises(ConfigError, match="schwartz-hearst"):
        Preparation(finder="schwarz-hearst")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="spelling is True or False; found 'no'"):
        Preparation(spelling="no")  # type: ignore[arg-type]
    wrong: Any = 1
    with pytest.raises(ConfigError, match="strengths is True or False; found 1"):
        Preparation(strengths=wrong)
    with pytest.raises(ConfigError, match="codes is True or False; found 1"):
        Preparation(codes=wrong)
    with pytest.raises(ConfigError, match=r"codes are those of a linker's concepts.*Linker\.preparing"):
        Preparation(codes=True).prepare(["MS"])
    with pytest.raises(InputError, match="not one"):
        Preparation().prepare("MS")
    with pytest.raises(InputError, match="found None"):
        Preparation().prepare(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"mentions\[1\]"):
        Preparation().prepare(["MS", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="one context for each mention; expected 2; found 1"):
        Preparation().prepare(["MS", "MI"], contexts=["x"])
    with pytest.raises(InputError, match="several are meant here, not one"):
        Preparation().prepare(["M", "S"], contexts="xy")
    with pytest.raises(InputError, match=r"contexts\[1\]: a context is not text"):
        Preparation().prepare(["MS", "MI"], contexts=["x", 3])  # type: ignore[list-item]
    missing: Any = ["x", float("nan")]  # as pandas has it
    with pytest.raises(InputError, match=r"contexts\[1\]: .* found nan\. To mend it: where there is none, give None\."):
        Preparation().prepare(["MS", "MI"], contexts=missing)
    with pytest.raises(InputError, match=r"contexts\[0\]: a context is not valid Unicode"):
        Preparation(finder="schwartz-hearst").prepare(["FED"], contexts=["fish\udcff-eye disease (FED)"])


CONCEPTS = {
    "D1": ["Diabetes Mellitus", "sugar disease"],
    "D2": ["colorectal cancer"],
    "D3": ["ovarian cancer"],
    "D4": ["spinal and bulbar muscular atrophy"],
    "D5": ["Hepatitis B"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mentions")
    write_letter_encoder(folder / "letters")
    make_terminology(folder / "t", CONCEPTS, semantic_types={"D4": ["own type"]})
    build_linker(folder / "t", folder / "letters", folder / "linker")
    return folder


@pytest.fixture(scope="module")
def linker(place: Path) -> Linker:
    return Linker.open(place / "linker")


EVERYTHING = Preparation(
    table=AbbreviationTable({"DM": "diabetes mellitus", "OC": "ovarian cancer"}, {}), finder=FINDER, composites=True
)
MENTIONS = ["DM", "cold", "colorectal and ovarian cancer", "SBMA", "OC and sugar disease", " ", "DM"]
CONTEXT = "It was spinal and bulbar muscular atrophy (SBMA), or ductal melanoma (DM)."


def test_each_part_is_linked_as_a_mention_of_its_own(linker: Linker) -> None:
    parts = [
        ["diabetes mellitus"],
        ["cold"],
        ["colorectal cancer", "ovarian cancer"],
        ["spinal and bulbar muscular atrophy"],
        ["ovarian cancer", "sugar disease"],
        [" "],
        ["ductal melanoma"],
    ]
    contexts = [None, CONTEXT, None, CONTEXT, "nothing", CONTEXT, CONTEXT]
    preparing = linker.preparing(EVERYTHING)
    answers = preparing.link(MENTIONS, contexts=contexts, top_k=2)
    for mention, names, links in zip(MENTIONS, parts, answers, strict=True):
        expected = [link for name in names for link in linker.link([name], top_k=2)[0]]
        assert [link.rank for link in links] == [link.rank for link in expected]
        assert [(link.concept_id, link.matched_name) for link in links] == [
            (link.concept_id, link.matched_name) for link in expected
        ]
        read = [name for name in names for link in linker.link([name], top_k=2)[0]]
        assert [link.read_as for link in links] == [None if name == mention else name for name in read]
    assert preparing.link(preparing.prepare(MENTIONS, contexts=contexts), top_k=2) == answers
    assert preparing.link(MENTIONS, contexts=pl.Series(contexts), top_k=2) == answers  # as mentions, typed so too
    assert preparing.prepare(iter(MENTIONS), contexts=iter(contexts)) == preparing.prepare(MENTIONS, contexts=contexts)
    with pytest.raises(InputError, match=r"mentions: .* go with no others"):
        preparing.link([*preparing.prepare(["DM"]), "cold"])
    with pytest.raises(InputError, match=r"contexts: .* have their contexts already"):
        preparing.link(preparing.prepare(["DM"]), contexts=[CONTEXT])
    # the linker that it was made from is as it was
    assert linker.link(["DM"], top_k=1)[0][0].read_as is None


def test_names_that_cannot_be_an_answer_do_not_keep_a_mention_whole(linker: Linker) -> None:
    mention = "Spinal and bulbar muscular atrophy"  # a name after normalisation
    preparing = linker.preparing(Preparation(composites=True))
    assert preparing.prepare([mention])[0].parts == (mention,)
    assert preparing.only(semantic_types="own type").prepare([mention])[0].parts == (mention,)
    unknown = preparing.without([linker.dictionary.preferred_names.index("spinal and bulbar muscular atrophy") + 1])
    assert unknown.prepare([mention])[0].parts == ("Spinal muscular atrophy", "bulbar muscular atrophy")


def test_a_name_is_what_the_stages_that_are_asked_for_look_up(linker: Linker) -> None:
    whole = "spinal, and bulbar muscular atrophy"  # a name where look-up is loose
    preparing = linker.preparing(Preparation(composites=True))
    loose, exact = ("exact", "loose", "dense"), ("exact", "dense")
    built = preparing.tuned(LinkerSettings(stages=loose))
    opened: Linker
    stages: tuple[str, ...] | None
    for opened, stages in ((preparing, loose), (built, None)):
        assert opened.prepare([whole], stages=stages)[0].parts == (whole,)
        (links,) = opened.link([whole], stages=stages, top_k=1)
        assert [(link.concept_id, link.read_as) for link in links] == [("D4", None)]
        assert opened.link(opened.prepare([whole], stages=stages), stages=stages, top_k=1) == [links]
        assert opened.explain(whole, stages=stages).parts == ()
    for opened, stages in ((preparing, None), (built, exact)):
        assert len(opened.prepare([whole], stages=stages)[0].parts) == 2
        assert len(opened.link([whole], stages=stages, top_k=1)[0]) == 2
    with pytest.raises(ConfigError, match="sparse"):
        preparing.prepare([whole], stages=["sparse"])


def test_a_part_without_an_answer(linker: Linker) -> None:
    preparing = linker.preparing(EVERYTHING).tuned(LinkerSettings(stages=("exact",)))
    prepared = preparing.prepare(["OC and hepatitis E", "hepatitis E"])
    found = preparing.link(prepared)
    assert [[link.concept_id for link in links] for links in found] == [["D3"], []]
    by_part = [mention.by_part(links) for mention, links in zip(prepared, found, strict=True)]
    assert by_part == [[("ovarian cancer", found[0]), ("hepatitis E", [])], [(None, [])]]


def test_explanations_say_what_was_read_and_where_it_is_defined(linker: Linker) -> None:
    preparing = linker.preparing(EVERYTHING)
    explained = preparing.explain("DM")
    assert explained.outcome.startswith("'DM' was read as 'diabetes mellitus' (defined in the table). D1 (Diabetes M")
    assert (explained.mention, explained.text, explained.parts) == ("DM", "diabetes mellitus", ())
    assert explained.expansions == (Expansion("DM", "diabetes mellitus", "table"),)
    explained = preparing.explain("SBMA", context=CONTEXT)
    assert "(defined in the context). D4 (spinal and bulbar muscular atrophy): the mention is a" in explained.outcome
    explained = preparing.explain("colorectal cancer and DM", top_k=1, near_misses=1)
    assert explained.outcome == (
        "'DM' was read as 'diabetes mellitus' (defined in the table). "
        "It stands for several names: 'colorectal cancer'; 'diabetes mellitus'."
    )
    assert (explained.text, explained.links) == ("colorectal cancer and diabetes mellitus", ())
    assert list(explained.parts) == [
        linker.explain(part, top_k=1, near_misses=1) for part in ("colorectal cancer", "diabetes mellitus")
    ]
    assert str(explained) == f"colorectal cancer and DM: {explained.outcome}\n" + "\n\n".join(map(str, explained.parts))
    with pytest.raises(InputError, match="near misses"):
        preparing.explain("DM", near_misses=-1)


def test_contexts_are_refused_where_nothing_reads_them(place: Path, linker: Linker, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"read contexts.*found stages exact, variants, dense\. .*--expand schwartz-hearst"
    ):
        linker.preparing(Preparation(table=TABLE, composites=True)).link(["a"], contexts=["an a"])
    base = tiny_encoder(tmp_path / "bert", weight_std=0.3)
    for reads in (True, False):
        write_reranker(tmp_path / f"reranker-{reads}", base, contexts=reads)
        build_linker(place / "t", place / "letters", tmp_path / f"linker-{reads}")
        reranked = add_reranker(tmp_path / f"linker-{reads}", tmp_path / f"reranker-{reads}")
        if reads:
            reranked.check_contexts()
            assert reranked.link(["sugar"], contexts=["much sugar"]) != reranked.link(["sugar"])
        else:
            with pytest.raises(
                InputError, match=r"found a cross-encoder trained without contexts, stages exact, variants"
            ):
                reranked.link(["sugar"], contexts=["much sugar"])
            with pytest.raises(InputError, match="does not read contexts"):
                reranked.check_contexts()
            # where short forms are looked for, the context is not for the cross-encoder
            preparing = reranked.preparing(EVERYTHING)
            assert preparing.link(["sugar"], contexts=["much sugar"]) == reranked.link(["sugar"])
        with pytest.raises(InputError, match=r"found stages exact\."):
            reranked.link(["sugar"], contexts=["much sugar"], stages=["exact"])


def test_a_cross_encoder_finds_the_mention_that_was_read_otherwise(place: Path, tmp_path: Path) -> None:
    write_reranker(tmp_path / "reranker", tiny_encoder(tmp_path / "bert", weight_std=0.3), contexts=True)
    build_linker(place / "t", place / "letters", tmp_path / "linker")
    linker = add_reranker(tmp_path / "linker", tmp_path / "reranker").preparing(EVERYTHING)
    context = "He has diabetic muscles (DM); the OC and sugar disease are old."
    prepared = linker.prepare(["DM", "OC and sugar disease", "old"], contexts=[context] * 3)
    asked = [
        questions_of(one, normalisation="sapbert", reranker=linker.reranker, with_variants=False) for one in prepared
    ]
    in_context = "He has diabetic muscles (DM); the <tgt>OC and sugar disease</tgt> are old."
    assert asked == [
        [
            Question(
                "diabetic muscles",
                "diabetic muscles",
                "He has diabetic muscles (<tgt>DM</tgt>); the OC and sugar disease are old.",
            )
        ],
        [
            Question("ovarian cancer", "ovarian cancer", in_context),
            Question("sugar disease", "sugar disease", in_context),
        ],
        [Question("old", "old", context)],
    ]
    assert linker.link(prepared) == linker.link(["DM", "OC and sugar disease", "old"], contexts=[context] * 3)


CODED = {
    "HP:0001250": ["Seizure", "fit"],
    "MONDO:5": ["Heart attack", "HP:0000001"],
    "e11.9": ["diabetes"],
    "X_1": ["cold"],
    "a|b": ["flu", "influenza"],
    "7": ["277", "flu"],
}


@pytest.mark.parametrize(
    ("mention", "concept"),
    [
        ("HP:0001250", "HP:0001250"),
        ("hp:0001250", "HP:0001250"),
        (" HP_0001250 ", "HP:0001250"),
        ("hp_0001250", "HP:0001250"),
        ("http://purl.obolibrary.org/obo/HP_0001250", "HP:0001250"),
        ("mondo:5", "MONDO:5"),
        ("e11.9", "e11.9"),
        ("X_1", "X_1"),
        ("a|b", "a|b"),
        ("7", "7"),
        ("HP:0000001", None),  # a name, whatever else it may be
        ("277", None),
        ("E11.9", None),  # in small letters here
        ("HP:000125", None),
        ("HP", None),
        ("fit", None),
        (" ", None),
    ],
)
def test_a_mention_that_is_a_code(mention: str, concept: str | None, tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", CODED)
    plain = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    linker = plain.preparing(Preparation(codes=True, strengths=True, composites=True, table=TABLE))
    (prepared,) = linker.prepare([mention], contexts=["She has it."])
    assert prepared.code == concept
    assert prepared.original == mention
    (links,) = linker.link([mention])
    if concept is None:
        assert not prepared.is_changed
        assert links == plain.link([mention])[0]
    else:
        name = CODED[concept][0]
        assert (prepared.text, prepared.parts, prepared.context) == (name, (name,), "She has it.")
        assert (links[0].concept_id, links[0].read_as, links[0].score) == (concept, name, 1.0)
        explained = linker.explain(mention)
        assert explained.code == concept
        assert explained.outcome.startswith(f"It is the code {concept}, of '{name}'. {concept} ({name})")
        assert plain.explain(mention).code is None


@pytest.mark.parametrize("stages", [["exact", "sparse"], ["sparse"], ["exact", "sparse", "rerank"]], ids="-".join)
def test_a_code_is_one_of_several_concepts_of_its_name(stages: list[str], tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D:1": ["asthma"], "M:1": ["asthma", "wheeze"], "M:2": ["Asthma"]})
    built = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    if "rerank" in stages:
        write_reranker(tmp_path / "reranker", tiny_encoder(tmp_path / "tiny"))
        built = add_reranker(tmp_path / "linker", tmp_path / "reranker")
    codes, answers = ["D:1", "M:1", "M:2"], dict[str, list[str]]()
    linker = built.with_prior([0, 0, 3]).preparing(Preparation(codes=True))
    for mention, links in zip([*codes, "asthma"], linker.link([*codes, "asthma"], stages=stages), strict=True):
        assert sorted(link.concept_id for link in links) == codes
        answers[mention] = [link.concept_id for link in links]
    assert [answers[code][0] for code in codes] == codes
    assert answers["asthma"] == ["M:2", "D:1", "M:1"]  # as it is without codes
    assert linker.explain("D:1", stages=stages).links[0].concept_id == "D:1"
    # A concept that may not be an answer is read by its name all the same.
    assert linker.without([0]).link(["D:1"], stages=stages)[0][0].concept_id == "M:2"


def test_a_code_is_as_sure_as_a_name_of_one_concept(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D:1": ["asthma"], "M:1": ["asthma"]})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    questions = [Question("asthma", code="M:1"), Question("asthma")]
    ((asked, run),) = runs(linker._components, questions, stages=("exact",), top_k=1)
    evidence = [run.evidence(place, asked[place], answer) for place, answer in enumerate(run.answers(asked))]
    assert [one.n_homonyms for one in evidence] == [1, 2]


def test_other_stages_leave_a_code_alone(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"MS/MI": ["stenosis"], "MI": ["myocardial infarction", "infarct"]})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    every = Preparation(codes=True, table=TABLE, composites=True, spelling=True)
    prepared = linker.preparing(every).prepare(["MS/MI", "MI", "infarct"])
    assert [(one.text, one.code, one.expansions) for one in prepared] == [
        ("stenosis", "MS/MI", ()),
        ("myocardial infarction", "MI", ()),
        ("infarct", None, ()),
    ]
    assert str(every) == "codes, abbreviations, spelling, composites"
