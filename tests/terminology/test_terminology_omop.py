"""OMOP: fields without quoting, three kinds of code, filters, languages, successors and maps."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported
from sample_omop import COLUMNS, CONTENT, ENGLISH, SPANISH, Row, concept, link, write_omop
from small_terminologies import record
from small_terminologies import write as write_terminology

from onoma.errors import ConfigError, InputError
from onoma.terminology import Terminology, enrich_terminology, merge_terminologies

run = partial(imported, "omop")


def ids_of(terminology: Terminology) -> list[str]:
    return terminology.concepts().collect()["concept_id"].to_list()


def write(folder: Path, concepts: Sequence[Row], synonyms: Sequence[Row] = (), links: Sequence[Row] = ()) -> Path:
    folder.mkdir(exist_ok=True)
    return write_omop(folder, {"CONCEPT": concepts, "CONCEPT_SYNONYM": synonyms, "CONCEPT_RELATIONSHIP": links})


INFARCTION = concept("312327", "Acute myocardial infarction", "SNOMED", "57054005", domain="Condition")
HEART = concept("4217142", "Heart structure", "SNOMED", "80891009", domain="Spec Anatomic Site", kind="Body Structure")
ICD = concept(
    "45533436", "Acute myocardial infarction, unspecified", "ICD10CM", "I21.9", domain="Condition", standard=""
)
ASPIRIN = concept("1112807", "aspirin", "RxNorm", "1191", domain="Drug", kind="Ingredient")


def test_quotes_belong_to_names(tmp_path: Path) -> None:
    names = ['"Quoted"', 'inch 1/2" needle', '"', 'open "only', "it''s"]
    rows = [concept(str(number), name, "V", str(number)) for number, name in enumerate(names, 1)]
    found, _ = run(write(tmp_path / "in", rows, [("1", '"more" of it', ENGLISH)]), tmp_path / "out")
    assert found.names().collect()["text"].to_list() == [names[0], '"more" of it', *names[1:]]


@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0")).filter(
            lambda text: bool(text.strip()) and not text.startswith("\ufeff")
        ),
        min_size=1,
        max_size=5,
        unique=True,
    )
)
@settings(max_examples=8)
def test_any_text_is_a_name(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("omop")
    rows = [concept(str(number), name, "V", str(number)) for number, name in enumerate(names, 1)]
    found, _ = run(write(folder, rows), folder / "out")
    assert found.names().collect()["text"].to_list() == names


def test_concept_0_is_none(tmp_path: Path) -> None:
    none = concept("0", "No matching concept", "None", "No matching concept", domain="Metadata", standard="")
    links = [link("312327", "Is a", "0"), link("312327", "Maps to", "0")]
    found, report = run(write(tmp_path / "in", [none, INFARCTION], [("0", "none", ENGLISH)], links), tmp_path / "out")
    assert (ids_of(found), report.n_names, report.n_relations) == (["312327"], 1, 0)
    assert report.notes["concept 0 (No matching concept), left out"] == 1


def test_codes(tmp_path: Path) -> None:
    source = write(tmp_path / "in", [INFARCTION, ICD], links=[link("45533436", "Is a", "312327")])
    for codes, expected in (
        ("concept_id", ["312327", "45533436"]),
        ("concept_code", ["57054005", "I21.9"]),
        ("vocabulary:code", ["SNOMED:57054005", "ICD10CM:I21.9"]),
    ):
        found, report = run(source, tmp_path / "out", codes=codes)
        assert ids_of(found) == expected
        assert report.n_relations == 1
    with pytest.raises(ConfigError, match="codes"):
        run(source, tmp_path / "out", codes="code")


def test_code_of_several_concepts(tmp_path: Path) -> None:
    retired = concept("9", "old use of the code", "DRG", "1191", invalid="D")
    source = write(tmp_path / "in", [retired, ASPIRIN], [("9", "old synonym", ENGLISH)])
    found, report = run(source, tmp_path / "out", codes="concept_code")
    assert found.names().collect()["text"].to_list() == ["aspirin"]
    assert report.notes["retired concepts whose code another concept has, left out"] == 1
    other = concept("8", "something else", "DRG", "1191")
    source = write(tmp_path / "in", [retired, ASPIRIN, other])
    with pytest.raises(InputError, match="vocabulary:code") as caught:
        run(source, tmp_path / "out", codes="concept_code")
    assert caught.value.line == 4
    found, report = run(source, tmp_path / "out", codes="concept_code", on_error="skip")
    assert (report.n_rejected, found.names().collect()["text"].to_list()) == (1, ["aspirin"])
    assert len(ids_of(run(source, tmp_path / "out", codes="vocabulary:code", vocabularies="RxNorm")[0])) == 1
    source = write(tmp_path / "in", [other, concept("7", "a third thing", "DRG", "1191")])
    with pytest.raises(InputError, match="several concepts have this code") as caught:
        run(source, tmp_path / "out", codes="vocabulary:code")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"vocabularies": "SNOMED,RxNorm"}, ["312327", "4217142", "1112807"]),
        ({"domains": "Condition"}, ["312327", "45533436"]),
        ({"concept_classes": "Ingredient"}, ["1112807"]),
        ({"standard_only": "yes"}, ["312327", "4217142", "1112807"]),
        ({"vocabularies": "SNOMED", "domains": "Condition"}, ["312327"]),
        ({"languages": "es"}, ["312327"]),
    ],
)
def test_filters(options: dict[str, str], kept: list[str], tmp_path: Path) -> None:
    synonyms = [("312327", "infarto agudo de miocardio", SPANISH), ("1112807", "ASA", ENGLISH)]
    links = [link("312327", "Is a", "4217142"), link("45533436", "Is a", "312327")]
    source = write(tmp_path / "in", [INFARCTION, HEART, ICD, ASPIRIN], synonyms, links)
    found, report = run(source, tmp_path / "out", **options)
    assert ids_of(found) == kept
    left_out = sum(not {first, second} <= set(kept) for first, second, *_ in links)
    assert report.notes.get("relations to or from concepts that are not there or were filtered out", 0) == left_out


def test_filter_that_names_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "in", [INFARCTION], links=[link("312327", "Has finding site", "312327")])
    for options in ({"vocabularies": "SNOMEDCT"}, {"domains": "condition"}, {"relations": "Has finding sit"}):
        with pytest.raises(InputError, match="Did you mean"):
            run(source, tmp_path / "out", **options)


def test_languages_of_synonyms(tmp_path: Path) -> None:
    danish = concept("4180183", "Danish language", "SNOMED", "12345", domain="Language", kind="Qualifier Value")
    klingon = concept("77", "Klingon language", "SNOMED", "77", domain="Language", kind="Qualifier Value")
    synonyms = [
        ("312327", "infarto agudo de miocardio", SPANISH),
        ("312327", "akut hjerteinfarkt", "4180183"),
        ("312327", "tIq", "77"),
        ("312327", "AMI", "0"),
    ]
    source = write(tmp_path / "in", [INFARCTION, danish, klingon], synonyms)
    found, report = run(source, tmp_path / "out")
    rows = found.names().filter(pl.col("term_type") == "synonym").select("language", "text").collect().rows()
    assert rows == [
        ("es", "infarto agudo de miocardio"),
        ("da", "akut hjerteinfarkt"),
        ("und", "tIq"),
        ("und", "AMI"),
    ]
    assert report.notes["synonyms in a language that is not known (und)"] == 2
    both, _ = run(source, tmp_path / "out", languages="da,es", domains="Condition")
    assert both.names().collect()["text"].to_list() == ["infarto agudo de miocardio", "akut hjerteinfarkt"]
    source = write(tmp_path / "in", [INFARCTION, ASPIRIN], [("1112807", "aspirin", SPANISH)])
    assert ids_of(run(source, tmp_path / "out", languages="es")[0]) == ["1112807"]


def test_synonyms_that_are_blank(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in", [ASPIRIN], [("1112807", "", ENGLISH), ("1112807", " ", ENGLISH), ("1112807", "ASA", ENGLISH)]
    )
    found, report = run(source, tmp_path / "out")
    assert found.names().collect()["text"].to_list() == ["aspirin", "ASA"]
    assert report.notes["synonyms that are blank, left out"] == 2


def test_synonyms_of_nobody_and_repeated(tmp_path: Path) -> None:
    synonyms = [("5", "of nobody", ENGLISH), ("1112807", "aspirin", ENGLISH), ("1112807", "ASA", ENGLISH)] * 2
    found, report = run(write(tmp_path / "in", [ASPIRIN], synonyms), tmp_path / "out")
    assert found.names().collect()["text"].to_list() == ["aspirin", "ASA"]
    assert report.notes["synonyms of concepts that are not there or were filtered out"] == 2
    assert report.notes["synonyms spelled as another name of their concept, left out"] == 3


def test_a_name_of_two_languages_is_a_name_in_each(tmp_path: Path) -> None:
    synonyms = [("1112807", text, language) for text in ("aspirin", "ASA") for language in (ENGLISH, SPANISH)]
    found, report = run(write(tmp_path / "in", [ASPIRIN], synonyms), tmp_path / "out")
    assert found.names().select("language", "text").collect().rows() == [
        ("en", "aspirin"),
        ("es", "aspirin"),
        ("en", "ASA"),
        ("es", "ASA"),
    ]
    assert report.notes["synonyms spelled as another name of their concept, left out"] == 1


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([("1", "Concept replaced by", "2")], "2"),
        ([("1", "Concept replaced by", "2"), ("1", "Concept same_as to", "3")], "2"),
        ([("1", "Concept replaced by", "2"), ("1", "Concept replaced by", "3")], None),
        ([("1", "Concept replaced by", "2"), ("1", "Concept replaced by", "3"), ("1", "Concept same_as to", "3")], "3"),
        ([("1", "Concept same_as to", "3")], "3"),
        ([("1", "Maps to", "3")], None),
        ([("1", "Concept replaced by", "404")], None),  # not in the download
        ([("2", "Concept replaced by", "3")], None),  # 2 is valid
    ],
)
def test_successors(links: list[tuple[str, str, str]], expected: str | None, tmp_path: Path) -> None:
    rows = [concept("1", "old", "V", "a", invalid="U"), concept("2", "new", "V", "b"), concept("3", "newer", "W", "c")]
    source = write(tmp_path / "in", rows, links=[link(*entry) for entry in links])
    concepts = run(source, tmp_path / "out")[0].concepts().collect()
    assert concepts["status"].to_list() == ["obsolete", "active", "active"]
    assert concepts["replaced_by"].to_list() == [expected, None, None]
    # A successor that a filter left out is still named.
    found = run(source, tmp_path / "out", codes="vocabulary:code", vocabularies="V")[0].concepts().collect()
    names = {"2": "V:b", "3": "W:c", None: None}
    assert found["replaced_by"].to_list() == [names[expected], None]


@pytest.mark.parametrize("relations", ["no", "Is a", "all"])
def test_what_may_be_used_in_place_of_a_retired_one_is_told_where_nothing_replaces_it(
    relations: str, tmp_path: Path
) -> None:
    rows = [concept(str(n), f"name {n}", "V", str(n), invalid="" if n in (1, 2) else "U") for n in range(1, 9)]
    links = [
        link("3", "Concept replaced by", "2"),
        link("3", "Concept replaced by", "1"),
        link("4", "Concept poss_eq to", "1"),
        link("5", "Concept alt_to to", "3"),
        link("5", "Concept alt_to to", "5"),
        link("6", "Concept replaced by", "1"),
        link("6", "Concept poss_eq to", "2"),
        link("7", "Concept same_as to", "404"),
        link("7", "Concept same_as to", "2"),
        link("8", "Concept was_a to", "1"),
        link("8", "Concept poss_eq to", "1", "D"),
        link("1", "Is a", "2"),
    ]
    found, report = run(write(tmp_path / "in", rows, links=links), tmp_path / "out", relations=relations)
    assert found.to_consider() == {"3": ("2", "1"), "4": ("1",), "5": ("2", "1"), "7": ("2",)}
    assert found.successors() == {"6": "1"}
    n_named = {"no": 0, "Is a": 1, "all": 4}[relations]  # "all": 5 to itself, 6 and 8 too
    assert report.n_relations == 5 + n_named


def test_maps(tmp_path: Path) -> None:
    links = [
        link("45533436", "Maps to", "312327"),
        link("45533436", "Maps to", "404"),
        link("45533436", "Maps to", "4217142", "D"),
        link("312327", "Maps to", "312327"),
        link("312327", "Mapped from", "45533436"),
    ]
    source = write(tmp_path / "in", [INFARCTION, ICD, HEART], links=links)
    found, report = run(source, tmp_path / "out", vocabularies="ICD10CM")
    assert found.cross_references().select("code", "relation", "source").collect().rows() == [
        ("ICD10CM:I21.9", "exactMatch", "ICD10CM"),
        ("SNOMED:57054005", "xref", "ICD10CM"),
    ]
    assert report.notes["maps to concepts that are not there"] == 1
    assert run(source, tmp_path / "out", maps="no", codes="concept_code")[1].n_cross_references == 0


def test_others_meet_a_concept_by_the_code_of_its_vocabulary(tmp_path: Path) -> None:
    source = write(tmp_path / "in", [INFARCTION, ICD], links=[link("45533436", "Maps to", "312327")])
    omop, _ = run(source, tmp_path / "omop")
    assert [hit.concept_id for hit in omop.search("SNOMED:57054005")] == ["312327", "45533436"]
    hpo = record("HP:1", "Heart attack", "MI", references=[("SNOMEDCT_US:57054005", "xref", "HP")])
    read = record("Read:G30", "Attack - heart", references=[("SNOMED:57054005", "xref", "Read")])
    parts = [write_terminology(tmp_path / name, [entry]) for name, entry in (("hpo", hpo), ("read", read))]
    report = enrich_terminology(omop.path, parts, tmp_path / "enriched", by=["code"])
    assert report.matches.select("concept_id", "other_id").rows() == [("312327", "HP:1"), ("312327", "Read:G30")]
    merge_terminologies([omop.path, *parts], tmp_path / "merged", join_by_cross_references=["exactMatch", "xref"])
    merged = Terminology.open(tmp_path / "merged")
    assert ids_of(merged) == ["312327", "45533436"]
    assert set(merged.concept("312327").names) == {
        "Acute myocardial infarction",
        "Heart attack",
        "MI",
        "Attack - heart",
    }


def test_relations(tmp_path: Path) -> None:
    links = [
        link("312327", "Has finding site", "4217142"),
        link("4217142", "Finding site of", "312327"),
        link("312327", "Is a", "45533436"),
        link("312327", "Maps to", "4217142"),
        link("312327", "RxNorm - CVX", "4217142"),
        link("312327", "Is a", "700360"),  # CPT-4, whose names the download does not have
    ]
    source = write(tmp_path / "in", [INFARCTION, HEART, ICD], links=links)

    def relations(**options: str) -> set[str]:
        found = run(source, tmp_path / "out", **options)[0].relations().collect()
        return set(found["relation"])

    assert relations() == {"is_a"}
    assert relations(relations="Has finding site") == {"has_finding_site"}
    assert relations(relations="Is a, Has finding site") == {"is_a", "has_finding_site"}
    assert relations(relations="all") == {"is_a", "has_finding_site", "finding_site_of", "rxnorm_cvx"}
    assert relations(relations="no") == set()


def test_rows_that_stand_twice(tmp_path: Path) -> None:
    found, report = run(write(tmp_path / "in", [ASPIRIN, HEART, ASPIRIN]), tmp_path / "out")
    assert report.notes["rows of CONCEPT that stand there twice"] == 1
    assert ids_of(found) == ["1112807", "4217142"]
    other = concept("1112807", "something else", "RxNorm", "1191")
    source = write(tmp_path / "in", [ASPIRIN, HEART, other, ASPIRIN])
    with pytest.raises(InputError, match="occurred before") as caught:
        run(source, tmp_path / "out")
    assert caught.value.line == 4
    _, report = run(source, tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1


def test_zip_and_case_of_names(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", CONTENT["CONCEPT"], CONTENT["CONCEPT_SYNONYM"], CONTENT["CONCEPT_RELATIONSHIP"])
    with zipfile.ZipFile(tmp_path / "download.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.iterdir():
            archive.write(path, f"vocabulary/{path.name.lower()}")
    zipped, _ = run(tmp_path / "download.zip", tmp_path / "a")
    unpacked, _ = run(folder, tmp_path / "b")
    by_file, _ = run(folder / "CONCEPT.csv", tmp_path / "c")
    for other in (unpacked, by_file):
        assert zipped.names().collect().equals(other.names().collect())
        assert zipped.relations().collect().equals(other.relations().collect())


def _export(folder: Path, kind: str, *, upper: bool, nothing: str) -> Path:
    """The tables of `folder` as a database, R or Eunomia write them, in a folder beside it."""
    out = folder.parent / f"{folder.name}-{kind}"
    out.mkdir()
    for path in folder.iterdir():
        table = pl.read_csv(path, separator="\t", quote_char=None, infer_schema=False).fill_null("")
        table = table.with_columns(pl.col("^invalid_reason$").replace("", nothing))
        if upper:
            table.columns = [name.upper() for name in table.columns]
        if kind == "parquet":
            table.with_columns(pl.col("^(?i)concept_id.*$").cast(pl.Int32)).write_parquet(out / f"{path.stem}.parquet")
        else:
            table.write_csv(out / path.name, quote_style="always" if upper else "necessary")
    return out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("upper", "nothing"), [(False, ""), (True, "NA"), (True, r"\N"), (False, "NULL")])
def test_tables_of_a_cdm(kind: str, upper: bool, nothing: str, tmp_path: Path) -> None:
    odd = concept("77", 'Heart, "left" part', "X", "5")
    folder = write(
        tmp_path / "in", [*CONTENT["CONCEPT"], odd], CONTENT["CONCEPT_SYNONYM"], CONTENT["CONCEPT_RELATIONSHIP"]
    )
    exported = _export(folder, kind, upper=upper, nothing=nothing)
    athena, expected = run(folder, tmp_path / "a")
    cdm, report = run(exported, tmp_path / "b")
    assert report.notes == expected.notes
    assert 'Heart, "left" part' in cdm.names().collect()["text"]
    for table in ("concepts", "names", "relations", "cross_references"):
        assert getattr(cdm, table)().collect().equals(getattr(athena, table)().collect())
    alone, _ = run(exported / f"CONCEPT.{kind}", tmp_path / "c")
    assert alone.relations().collect().equals(athena.relations().collect())


def test_bad_tables_of_a_cdm(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", [ASPIRIN, concept("1.5", "x, y", "V", "1")])
    exported = _export(folder, "csv", upper=True, nothing="")
    with pytest.raises(InputError, match="a number") as caught:
        run(exported, tmp_path / "out")
    assert (caught.value.path, caught.value.line) == (exported / "CONCEPT.csv", 3)
    file = exported / "CONCEPT.csv"
    file.write_text(file.read_text() + '"5","never closed')
    with pytest.raises(InputError, match="never closed") as caught:
        run(exported, tmp_path / "out", on_error="skip")
    assert caught.value.line == 4
    both = _export(write(tmp_path / "other", [ASPIRIN]), "parquet", upper=False, nothing="")
    write_omop(both, {"CONCEPT": [ASPIRIN]})
    with pytest.raises(InputError, match=r"two files"):
        run(both, tmp_path / "out")
    (both / "CONCEPT.csv").unlink()
    table = pl.read_parquet(both / "CONCEPT.parquet")
    table.with_columns(concept_name=pl.lit("a\0b")).write_parquet(both / "CONCEPT.parquet")
    with pytest.raises(InputError, match="no NUL character") as caught:
        run(both, tmp_path / "out")
    assert (caught.value.path, caught.value.line, caught.value.field) == (both / "CONCEPT.parquet", 1, "concept_name")
    pl.read_parquet(both / "CONCEPT.parquet").drop("domain_id").write_parquet(both / "CONCEPT.parquet")
    with pytest.raises(InputError, match=r"no column 'domain_id'; .*, as in a CDM; found concept_id, ") as caught:
        run(both, tmp_path / "out")
    assert (caught.value.path, caught.value.line) == (both / "CONCEPT.parquet", None)
    (both / "CONCEPT.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="not a Parquet file, or a damaged one"):
        run(both, tmp_path / "out")


def test_parquet_tables_of_other_writers(tmp_path: Path) -> None:
    table = pl.DataFrame([concept("1", "aspirin", "V", "1")], schema=COLUMNS["CONCEPT"].split(), orient="row")
    table.with_columns(invalid_reason=None).write_parquet(tmp_path / "concept.pq")
    nothing = pl.DataFrame(
        schema=dict.fromkeys(COLUMNS["CONCEPT_SYNONYM"].split(), pl.Null)
    )  # as pandas writes no rows
    nothing.write_parquet(tmp_path / "concept_synonym.pq")
    terminology, report = run(tmp_path / "concept.pq", tmp_path / "out")
    assert terminology.names().collect()["text"].to_list() == ["aspirin"]
    assert list(report.notes) == ["tables that are missing: CONCEPT_RELATIONSHIP"]


def test_what_is_no_download(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"there is no CONCEPT\.csv"):
        run(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(InputError, match="there is nothing here"):
        run(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "names.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="no table CONCEPT"):
        run(tmp_path / "names.csv", tmp_path / "out")
    for name in ("a", "b"):
        write(tmp_path / "empty" / name, [ASPIRIN])
    with pytest.raises(InputError, match="two files"):
        run(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "both").mkdir()
    write(tmp_path / "both", [ASPIRIN])
    old = write(tmp_path / "both" / "old", [ASPIRIN], [("1191", "stale name", ENGLISH)])
    with pytest.raises(InputError, match="two files"):
        run(tmp_path / "both", tmp_path / "out")
    (tmp_path / "both" / "CONCEPT_SYNONYM.csv").unlink()
    for source in (tmp_path / "both" / "CONCEPT.csv", tmp_path / "both"):
        found, report = run(source, tmp_path / "out")  # what lies beside another CONCEPT.csv is not this one's
        assert found.names().collect()["text"].to_list() == ["aspirin"]
        assert "tables that are missing: CONCEPT_SYNONYM" in report.notes
        (old / "CONCEPT.csv").unlink(missing_ok=True)
    (tmp_path / "alone").mkdir()
    _, report = run(write_omop(tmp_path / "alone", {"CONCEPT": [ASPIRIN]}), tmp_path / "out")
    assert list(report.notes) == [
        "tables that are missing: CONCEPT_SYNONYM",
        "tables that are missing: CONCEPT_RELATIONSHIP",
    ]


def test_header_is_checked(tmp_path: Path) -> None:
    source = write(tmp_path / "in", [ASPIRIN])
    file = source / "CONCEPT.csv"
    good = file.read_text()
    file.write_text(good.replace("concept_code", "code"))
    with pytest.raises(InputError, match="no column 'concept_code'") as caught:
        run(source, tmp_path / "out")
    assert (caught.value.path, caught.value.line, caught.value.field) == (file, 1, "concept_code")
    file.write_text(good.replace("\t", ";"))
    with pytest.raises(InputError, match=r"divided by tabs.*found concept_id;concept_name"):
        run(source, tmp_path / "out")
    file.write_text(good.replace("\t", ",").replace("concept_code", "code"))
    with pytest.raises(InputError, match=r"no column 'concept_code'.*divided by tabs or commas") as caught:
        run(source, tmp_path / "out")
    assert (caught.value.path, caught.value.line, caught.value.field) == (file, 1, "concept_code")
    file.write_text(good.replace("concept_code", "CONCEPT_CODE"))
    assert ids_of(run(source, tmp_path / "out")[0]) == ["1112807"]
    file.write_text(good.splitlines()[0])
    with pytest.raises(InputError, match="no concept in it"):
        run(source, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        ("CONCEPT", concept("12.5", "x", "V", "1"), "a number"),
        ("CONCEPT", concept("-5", "x", "V", "1"), "a number"),
        ("CONCEPT", concept("9" * 19, "x", "V", "1"), "a number"),
        ("CONCEPT", concept("5", " ", "V", "1"), "a text"),
        ("CONCEPT", concept("5", "x", "", "1"), "a text"),
        ("CONCEPT_SYNONYM", ("1112807", "x", "en"), "a number"),
        ("CONCEPT_RELATIONSHIP", link("1112807", "", "1112807"), "a text"),
        ("CONCEPT_RELATIONSHIP", link("1112807", "Is a", ""), "a number"),
        ("CONCEPT_RELATIONSHIP", ("1112807", "Is a"), "6 fields divided by 'tab'"),
    ],
)
def test_bad_rows(name: str, row: Row, expected: str, tmp_path: Path) -> None:
    contents: dict[str, list[Row]] = {"CONCEPT": [ASPIRIN], "CONCEPT_SYNONYM": [], "CONCEPT_RELATIONSHIP": []}
    contents[name] = [*contents[name], row]
    (tmp_path / "in").mkdir()
    source = write_omop(tmp_path / "in", contents)
    with pytest.raises(InputError, match=expected) as caught:
        run(source, tmp_path / "out")
    assert (caught.value.path, caught.value.line) == (source / f"{name}.csv", len(contents[name]) + 1)
    found, report = run(source, tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    assert ids_of(found) == ["1112807"]


def test_a_successor_of_another_vocabulary_is_not_one_with_the_same_code(tmp_path: Path) -> None:
    rows = [
        concept("1", "dead", "SNOMED", "222", invalid="U"),
        concept("2", "disease", "SNOMED", "64"),
        concept("3", "a drug", "RxNorm", "64"),
        concept("4", "gone", "SNOMED", "333", invalid="U"),
    ]
    links = [link("1", "Concept replaced by", "3"), link("4", "Concept replaced by", "2")]
    source = write(tmp_path / "in", rows, links=links)
    concepts = run(source, tmp_path / "out", codes="concept_code", vocabularies="SNOMED")[0].concepts().collect()
    assert concepts.select("concept_id", "replaced_by").rows() == [("222", None), ("64", None), ("333", "64")]


def test_a_successor_whose_code_another_concept_has_is_none(tmp_path: Path) -> None:
    rows = [
        concept("10", "retired one", "SNOMED", "1", invalid="D"),
        concept("11", "another one", "ICD10CM", "1"),
        concept("12", "retired two", "SNOMED", "2", invalid="U"),
    ]
    source = write(tmp_path / "in", rows, links=[link("12", "Concept replaced by", "10")])
    found, report = run(source, tmp_path / "out", codes="concept_code")
    assert found.concepts().collect().select("concept_id", "replaced_by").rows() == [("1", None), ("2", None)]
    assert report.notes["concepts replaced by one whose code another concept has"] == 1
    found, report = run(source, tmp_path / "out", codes="vocabulary:code")
    assert ("SNOMED:2", "SNOMED:1") in found.concepts().collect().select("concept_id", "replaced_by").rows()


def test_a_language_that_is_not_there(tmp_path: Path) -> None:
    source = write(tmp_path / "in", [INFARCTION], [("312327", "infarto", SPANISH)])
    assert run(source, tmp_path / "out", languages="es,en")[0].n_names == 2
    with pytest.raises(InputError, match="nothing of 'fr'"):
        run(source, tmp_path / "french", languages="en,fr")
