from __future__ import annotations

import contextlib
import zipfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported

from onoma.errors import ConfigError, InputError
from onoma.terminology import ImportReport, Terminology, import_terminology

COLUMNS = "source_language translation_language subject_id predicate_id source_value translation_value"
HEADER = f"{COLUMNS} translation_status".replace(" ", "\t") + "\n"


def row(
    code: str, predicate: str, translation: str, status: str = "OFFICIAL", *, language: str = "fr", source: str = "x"
) -> str:
    return "\t".join(["en", language, code, predicate, source, translation, status]) + "\n"


def read(
    tmp_path: Path, files: str | dict[str, str], *, on_error: str = "strict", **options: str
) -> tuple[Terminology, ImportReport]:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    if isinstance(files, str):
        (folder / "hp-fr.babelon.tsv").write_text(files, encoding="utf-8", newline="")
        source = folder / "hp-fr.babelon.tsv"
    else:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
        source = folder
    return imported("babelon", source, tmp_path / "out", on_error=on_error, **options)


def names(terminology: Terminology) -> list[tuple[object, ...]]:
    return terminology.names().select("concept_row", "language", "term_type", "text").collect().rows()


PROFILE = HEADER + "".join(
    [
        row("HP:1", "oio:hasExactSynonym", "synonyme"),
        row("HP:1", "rdfs:label", "candidat", "CANDIDATE"),
        row("HP:1", "rdfs:label", "officiel", source="Label, one"),
        row("HP:1", "oboInOwl:hasBroadSynonym", "large", "UNDER_REVIEW"),
        row("HP:1", "IAO:0000115", "Une définition"),
        row("HP:2", "http://www.w3.org/2000/01/rdf-schema#label", "deux", ""),
        row("HP:2", "rdfs:label", "two", "NOT_TRANSLATED"),
        row("HP:2", "rdfs:comment", "remarque"),
        row("HP:3", "rdfs:label", "", "not_translated"),
        row("HP:4", "http://purl.obolibrary.org/obo/IAO_0000115", "sans nom"),
    ]
)


def test_a_profile(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, PROFILE)
    assert names(terminology) == [
        (0, "fr", "label", "officiel"),
        (0, "fr", "exact_synonym", "synonyme"),
        (0, "fr", "label", "candidat"),
        (0, "fr", "broad_synonym", "large"),
        (1, "fr", "label", "deux"),
    ]
    assert terminology.concepts().collect()["concept_id"].to_list() == ["HP:1", "HP:2"]
    assert terminology.definitions().select("concept_row", "text", "source").collect().rows() == [
        (0, "Une définition", "HP")
    ]
    assert report.notes == {
        "translations of another status, left out": 2,
        "translations of other properties, left out": 1,
        "definitions to or from terms that are not among the concepts, left out": 1,
    }


def test_a_label_that_is_a_synonym_too_is_the_label(tmp_path: Path) -> None:
    rows = (
        row("HP:1", "oio:hasExactSynonym", "nom"),
        row("HP:1", "rdfs:label", "autre", "CANDIDATE"),
        row("HP:1", "rdfs:label", "nom"),
    )
    terminology, report = read(tmp_path, HEADER + "".join(rows))
    assert names(terminology) == [(0, "fr", "label", "nom"), (0, "fr", "label", "autre")]
    assert report.notes == {"names given more than once": 1}


def test_names_of_the_source(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, PROFILE, source_names="yes", statuses="official")
    assert names(terminology) == [
        (0, "en", "label", "Label, one"),
        (0, "en", "exact_synonym", "x"),
        (0, "fr", "exact_synonym", "synonyme"),
        (0, "fr", "label", "officiel"),
    ]


def test_precision(tmp_path: Path) -> None:
    text = HEADER.replace("\n", "\ttranslation_precision\n") + "".join(
        row("HP:1", predicate, translation).replace("\n", f"\t{precision}\n")
        for predicate, translation, precision in (
            ("rdfs:label", "a", "EXACT"),
            ("rdfs:label", "b", "BROADER"),
            ("oio:hasExactSynonym", "c", "NARROWER"),
            ("skos:altLabel", "d", "CLOSE"),
            ("oio:hasRelatedSynonym", "e", "CLOSE"),
            ("rdfs:label", "f", ""),
        )
    )
    terminology, _ = read(tmp_path, text)
    assert {(text, kind) for _, _, kind, text in names(terminology)} == {
        ("a", "label"),
        ("b", "broad_synonym"),
        ("c", "narrow_synonym"),
        ("d", "related_synonym"),
        ("e", "related_synonym"),
        ("f", "label"),
    }


SYNONYMS = "subject_id\ttranslation_value\tcomment\n"
FOLDER = {
    "hp-fr.babelon.tsv": HEADER + row("HP:1", "rdfs:label", '"Label ""quoted"""') + row("HP:2", "rdfs:label", "deux"),
    "hp-fr.synonyms.tsv": "subject_id\ttranslation_value\tcomment\tStatus\tLine number\n"
    "HP:1\tun|une | |un\tsynonyms of HP:1\tOFFICIAL\t7\n",
    "hp-cs.synonyms.tsv": SYNONYMS + "ID\tAL oboInOwl:hasExactSynonym@cs\t\nHP:2\tdva\tOFFICIAL\n",
    "hp-nl.synonyms.tsv": SYNONYMS + "HP:1\teen\tCANDIDATE\nHP:1\tone\tNOT_TRANSLATED\nHP:2\ttwee\ta remark\n",
    "hp-es.synonyms.tsv": SYNONYMS + "ID\tAL oboInOwl:hasExactSynonym@es\t",
    "other.tsv": "a\tb\n",
    "empty.tsv": "",
    "README.md": "# nothing",
}


@pytest.mark.parametrize("is_zip", [False, True])
def test_several_languages(is_zip: bool, tmp_path: Path) -> None:
    terminology, report = read(tmp_path, FOLDER)
    if is_zip:
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            for name, text in FOLDER.items():
                archive.writestr(f"translations/{name}", text)
        report = import_terminology("babelon", tmp_path / "x.zip", tmp_path / "zip")
        terminology = Terminology.open(tmp_path / "zip")
    assert terminology.concepts().select("concept_id", "preferred_name").collect().rows() == [
        ("HP:2", "deux"),
        ("HP:1", 'Label "quoted"'),
    ]
    assert names(terminology) == [
        (0, "fr", "label", "deux"),
        (0, "cs", "exact_synonym", "dva"),
        (0, "nl", "exact_synonym", "twee"),
        (1, "fr", "label", 'Label "quoted"'),
        (1, "fr", "exact_synonym", "un"),
        (1, "fr", "exact_synonym", "une"),
        (1, "nl", "exact_synonym", "een"),
    ]
    assert report.notes == {
        "translations of another status, left out": 1,
        "names given more than once": 1,
        "files without any line, skipped": 1,
        "tables of something else, skipped": 1,
    }
    terminology, report = read(tmp_path, FOLDER, languages="nl,cs")
    assert {language for _, language, _, _ in names(terminology)} == {"nl", "cs"}


def test_a_status_of_synonyms_in_small_letters(tmp_path: Path) -> None:
    rows = "HP:1\teen\tofficial\nHP:1\tone\tNot_translated \nHP:1\tun\ta remark\n"
    terminology, report = read(tmp_path, {"hp-nl.synonyms.tsv": SYNONYMS + rows})
    assert [text for *_, text in names(terminology)] == ["een", "un"]
    assert report.notes == {"translations of another status, left out": 1}


BAD = {
    "no code": (row("", "rdfs:label", "a"), "field subject_id: .* expected a code"),
    "no predicate": (row("HP:2", "", "a"), "field predicate_id"),
    "no translation": (row("HP:2", "rdfs:label", " "), "field translation_value"),
    "unknown status": (row("HP:2", "rdfs:label", "a", "DONE"), "field translation_status: .*OFFICIAL"),
    "no language": (row("HP:2", "rdfs:label", "a", language=""), "field translation_language"),
    "odd language": (row("HP:2", "rdfs:label", "a", language="French (Canada)"), "field translation_language"),
    "too few fields": ("en\tfr\tHP:2\n", "expected 7 fields"),
    "quote out of place": (row("HP:2", "rdfs:label", '"a" b'), "not CSV"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows(case: str, tmp_path: Path) -> None:
    bad, problem = BAD[case]
    text = HEADER + row("HP:1", "rdfs:label", "un") + bad + row("HP:3", "rdfs:label", "trois")
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, text)
    assert caught.value.line == 3
    terminology, report = read(tmp_path, text, on_error="skip")
    assert report.n_rejected == 1
    assert pl.read_parquet(tmp_path / "out" / "rejects.parquet")["line"].to_list() == [3]
    assert terminology.concepts().collect()["concept_id"].to_list() == ["HP:1", "HP:3"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("x.tsv", "a\tb\n1\t2\n", "no table of translations"),
        ("x.tsv", SYNONYMS + "HP:1\ta\t\n", "nothing says the language"),
        ("hp-fr.babelon.tsv", HEADER.replace("source_value", "subject_id"), "two columns are called 'subject_id'"),
        ("hp-fr.babelon.tsv", HEADER, "no concept with a name"),
        ("hp-fr.babelon.tsv", HEADER + row("HP:1", "rdfs:label", '"a'), "never closed"),
        ("hp-fr.babelon.tsv", "", "empty"),
    ],
)
def test_files_that_cannot_be_read(name: str, text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    for on_error in ("strict", "skip"):
        with pytest.raises(InputError, match=problem):
            import_terminology("babelon", tmp_path / name, tmp_path / "out", on_error=on_error)
    with pytest.raises(InputError, match="no table of translations here"):
        read(tmp_path, {"other.tsv": "a\tb\n", "x.txt": ""})


def test_options_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="statuses"):
        read(tmp_path, PROFILE, statuses="OFICIAL")
    with pytest.raises(ConfigError, match="languages"):
        read(tmp_path, PROFILE, languages="French (Canada)")


@settings(max_examples=25)
@given(
    name=st.sampled_from(["hp-fr.babelon.tsv", "hp-fr.synonyms.tsv", "hp-cs.synonyms.tsv"]),
    start=st.integers(0, 150),
    length=st.integers(0, 20),
    text=st.one_of(st.text(max_size=5), st.sampled_from(["\t", "\n", '"', "|", "\0", "\r\n", "\u2028"])),
    on_error=st.sampled_from(["strict", "skip"]),
)
def test_whatever_stands_there(
    name: str, start: int, length: int, text: str, on_error: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = FOLDER[name]
    start %= len(whole) + 1
    spoilt = (whole[:start] + text + whole[start + length :]).encode("utf-8", "replace").decode()
    with contextlib.suppress(InputError):
        terminology, _ = read(tmp_path_factory.mktemp("fuzz"), {name: spoilt}, on_error=on_error)
        assert terminology.n_names > 0


def test_a_language_that_is_not_there(tmp_path: Path) -> None:
    assert read(tmp_path, PROFILE, languages="fr")[0].n_names > 0
    with pytest.raises(InputError, match="nothing of 'xx'"):
        read(tmp_path, PROFILE, languages="fr,xx")
