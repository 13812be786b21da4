"""Codes, names and languages come through as they are, whichever format they come in."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from onoma.errors import ArtifactExistsError, ConfigError, InputError
from onoma.terminology import Terminology, enrich_terminology, export_terminology, import_terminology
from onoma.terminology.readers.ontology import source_of

PREFIXES = """\
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix obo: <http://purl.obolibrary.org/obo/> .
@prefix e: <http://example.org/> .
"""
TABLE = {"id": "id", "name": "name"}


def imported(place: Path, format: str, file: str, text: str | bytes, **options: str) -> Terminology:
    source = place / file
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    out = place / f"{file}-read"
    import_terminology(format, source, out, options=options)
    return Terminology.open(out)


def ids(terminology: Terminology) -> list[str]:
    return terminology.concepts().collect()["concept_id"].to_list()


@pytest.mark.parametrize("code", ["APOLLO_SV:00000008", "NCBITaxon_Union:0000023", "HP:0000001"])
def test_prefixes_with_an_underscore(code: str, tmp_path: Path) -> None:
    in_owl = f'{PREFIXES}obo:{code.replace(":", "_")} a owl:Class ; rdfs:label "infection" .\n'
    in_obo = f"format-version: 1.2\n\n[Term]\nid: {code}\nname: infection\n"
    prefix = code.partition(":")[0]
    for format, name, text in (("owl", "a.ttl", in_owl), ("obo", "a.obo", in_obo)):
        read = imported(tmp_path, format, name, text, prefixes=prefix)
        assert ids(read) == [code]
        assert read.names().collect()["source"].to_list() == [prefix]


@pytest.mark.parametrize(
    ("term_id", "source"),
    [
        *[("HP:1", "HP"), ("CVCL_0001", "CVCL"), ("A_B:1", "A_B"), ("A_B_1", "A_B"), ("A_b_c", "A"), ("C1", "")],
        *[("http://example.org/a_1", ""), ("A:b_1", "A"), ("_1", "")],
    ],
)
def test_the_source_of_an_id(term_id: str, source: str) -> None:
    assert source_of(term_id) == source


def test_the_disease_ontology_as_ctd_refers_to_it(tmp_path: Path) -> None:
    fields = "DiseaseName\tDiseaseID\tAltDiseaseIDs\tDefinition\tParentIDs\tTreeNumbers\tParentTreeNumbers\tSynonyms"
    row = "Angiosarcoma\tMESH:D006394\tDO:DOID:0001816\t\t\t\t\tHemangiosarcoma\tCancer"
    ctd = imported(tmp_path, "ctd", "CTD_diseases.tsv", f"# Fields:\n# {fields}\tSlimMappings\n#\n{row}\n")
    doid = imported(tmp_path, "table", "d.tsv", "id\tname\nDOID:0001816\tsarcoma of x\n", **TABLE)
    enrich_terminology(doid.path, [ctd.path], tmp_path / "enriched", by=("code",))
    texts = Terminology.open(tmp_path / "enriched").names().collect()["text"].to_list()
    assert texts == ["sarcoma of x", "Angiosarcoma", "Hemangiosarcoma"]


def test_a_blank_label_does_not_cost_the_concept(tmp_path: Path) -> None:
    text = f'{PREFIXES}e:h a owl:Class ; rdfs:label ""@en , "influenza"@en .\n'
    with pytest.raises(InputError, match="a blank name"):
        imported(tmp_path, "owl", "a.ttl", text)
    import_terminology("owl", tmp_path / "a.ttl", tmp_path / "out", on_error="skip")
    assert Terminology.open(tmp_path / "out").names().collect()["text"].to_list() == ["influenza"]


def test_languages_of_every_form_come_through(tmp_path: Path) -> None:
    text = 'e:a a skos:Concept ; skos:prefLabel "flu"@en ; skos:altLabel "grippe"@x-lay, "qul"@i-klingon .\n'
    read = imported(tmp_path, "owl", "x.ttl", PREFIXES + text)
    export_terminology(read, "csv", tmp_path / "csv")
    names = tmp_path / "csv" / "names.csv"
    names.write_text(names.read_text().replace(",en,", ",en_us,"))  # as POSIX writes it
    (tmp_path / "csv" / "onoma.json").unlink()
    import_terminology("csv", tmp_path / "csv", tmp_path / "again")
    found = Terminology.open(tmp_path / "again").names().collect()
    assert dict(found.select("text", "language").rows()) == {"flu": "en-US", "grippe": "x-lay", "qul": "i-klingon"}


@pytest.mark.parametrize("dtype", [pl.Struct({"text": pl.String}), pl.List(pl.String), pl.Float64, pl.Date])
def test_lists_of_what_is_no_text_are_refused(dtype: pl.DataType, tmp_path: Path) -> None:
    pl.DataFrame({"id": ["C1"], "name": [[None]]}, schema={"id": pl.String, "name": pl.List(dtype)}).write_parquet(
        tmp_path / "a.parquet"
    )
    with pytest.raises(InputError, match="a column of a type that is no text") as caught:
        import_terminology("table", tmp_path / "a.parquet", tmp_path / "out", options=TABLE)
    assert caught.value.field == "name"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", b"id\tline\nC1\tHeLa\n\tx\n"),
        ("a.csv", b'id,line\nC1,"HeLa"\n,"77"\n'),
        ("a.csv", b'id,line\n"C1","He\nLa"\n,"77"\n'),
        ("a.jsonl", b'{"id": "C1", "line": "HeLa"}\n{"line": "77"}\n'),
        ("a.parquet", b""),
    ],
)
def test_a_column_may_be_called_line(name: str, text: bytes, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pl.DataFrame({"id": ["C1", ""], "line": ["HeLa", "77"]}).write_parquet(tmp_path / name)
        text = (tmp_path / name).read_bytes()
    with pytest.raises(InputError, match="not a value that this field can have") as caught:
        imported(tmp_path, "table", name, text, id="id", name="line", semantic_type="line")
    bad = 2 if name in {"a.parquet", "a.jsonl"} else text.count(b"\n")
    assert (caught.value.line, caught.value.field) == (bad, "id")
    options = {"id": "id", "name": "line", "semantic_type": "line"}
    import_terminology("table", tmp_path / name, tmp_path / "out", options=options, on_error="skip")
    found = Terminology.open(tmp_path / "out")
    assert [one.replace("\n", "") for one in found.names().collect()["text"].to_list()] == ["HeLa"]


def test_a_header_with_a_carriage_return(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="carriage return"):
        imported(tmp_path, "table", "a.csv", b"id,name\r1,a\r", **TABLE)
    pl.DataFrame({"id": ["C1"], "name": ["flu"], "note\rx": ["y"]}).write_parquet(tmp_path / "a.parquet")
    import_terminology("table", tmp_path / "a.parquet", tmp_path / "b", options=TABLE)  # nobody asks for that one


@pytest.mark.parametrize("code", ["utf-32", "utf-32-be", "utf-16"])
def test_other_unicode_is_called_by_its_name(code: str, tmp_path: Path) -> None:
    mark = "\ufeff".encode(code) if code.endswith("be") else b""
    with pytest.raises(InputError, match=f"the file is {code[:6].upper()}") as caught:
        imported(tmp_path, "table", "x.csv", mark + "id,name\nC1,flu\n".encode(code), **TABLE)
    assert f"iconv -f {code[:6].upper()}" in str(caught.value)


def test_every_source_file_is_in_the_manifest(tmp_path: Path) -> None:
    header = "source_language\ttranslation_language\tsubject_id\tpredicate_id\tsource_value\ttranslation_value"
    for number, folder in enumerate(("a", "b")):
        row = f"en\tfr\tHP:000000{number}\trdfs:label\tcough{number}\ttoux{number}"
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "hp.babelon.tsv").write_text(
            f"{header}\ttranslation_status\n{row}\tOFFICIAL\n", encoding="utf-8"
        )
    import_terminology("babelon", tmp_path / "in", tmp_path / "out")
    config = Terminology.open(tmp_path / "out").manifest.config
    assert sorted(config["source_files"]) == ["a/hp.babelon.tsv", "b/hp.babelon.tsv"]


def test_names_of_files_that_are_no_text(tmp_path: Path) -> None:
    source = tmp_path / os.fsdecode(b"caf\xe9.tsv")
    source.write_text("id\tname\nC1\tflu\n", encoding="utf-8")
    import_terminology("table", source, tmp_path / "out", options=TABLE)
    assert list(Terminology.open(tmp_path / "out").manifest.config["source_files"]) == ["caf\\xe9.tsv"]
    with pytest.raises(ConfigError, match="is no name in UTF-8"):
        import_terminology("table", source, tmp_path / os.fsdecode(b"out\xe9"), options=TABLE)


def test_no_file_is_written_into_a_folder_of_onoma(tmp_path: Path) -> None:
    read = imported(tmp_path, "table", "a.tsv", "id\tname\nC1\tflu\n", **TABLE)
    for name in ("x.txt", "names.parquet"):
        with pytest.raises(ArtifactExistsError, match="a folder that Onoma wrote"):
            export_terminology(read, "biosyn", read.path / name, overwrite=True)
