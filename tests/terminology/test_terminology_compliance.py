"""Every reader gives the same concepts, names and relations for the same ontology, and fails in the same way."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from importing import imported
from sample import DEFINITION, NAMES, Sample
from terminology_samples import SAMPLES, TEXT_SAMPLES

from onoma.errors import ArtifactExistsError, ConfigError, InputError, OnomaError
from onoma.terminology import ImportReport, Terminology, describe_options, formats, import_terminology, known_formats


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Sample:
    return SAMPLES[request.param]


@pytest.fixture(params=TEXT_SAMPLES)
def text_sample(request: pytest.FixtureRequest) -> Sample:
    return TEXT_SAMPLES[request.param]


def run(sample: Sample, source: str, out: Path, on_error: Any = "strict") -> ImportReport:
    return import_terminology(sample.format, source, out, on_error=on_error, options=sample.options)


def written(sample: Sample, tmp_path: Path) -> tuple[str, Path]:
    """SOURCE and the text file in it."""
    folder = tmp_path / "in"
    folder.mkdir()
    source = sample.write(folder)
    return source, folder / (sample.text_file or "")


def named(terminology: Terminology, sample: Sample) -> dict[str, list[str]]:
    concepts = terminology.concepts().with_row_index("concept_row")
    rows = (
        terminology.names()
        .join(concepts, on="concept_row", maintain_order="left")
        .filter(pl.col("status") == "active")
        .select("concept_id", "text")
        .collect()
    )
    found: dict[str, list[str]] = {}
    for concept_id, text in rows.iter_rows():
        found.setdefault(sample.codes.get(concept_id, concept_id), []).append(text)
    return found


def test_same_content(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = written(sample, tmp_path)
    if sample.package:
        monkeypatch.syspath_prepend(tmp_path / "in")
        monkeypatch.delitem(sys.modules, sample.package, raising=False)
    report = run(sample, source, tmp_path / "out")
    terminology = Terminology.open(tmp_path / "out")

    assert named(terminology, sample) == NAMES
    concepts = terminology.concepts().collect()
    if sample.codes:
        concepts = concepts.with_columns(pl.col("concept_id", "replaced_by").replace(sample.codes))
    assert concepts["concept_id"].to_list() == [*sample.order, *(["X:4"] if sample.has_obsolete else [])]
    assert concepts["preferred_name"].to_list()[:3] == [NAMES[code][0] for code in sample.order]
    if sample.has_obsolete:
        assert concepts.row(3, named=True) == {
            "concept_id": "X:4",
            "preferred_name": "obsolete coronary",
            "semantic_types": ["disease"] if sample.has_types else [],
            "status": "obsolete",
            "replaced_by": "X:1",
        }
    assert concepts["semantic_types"].to_list()[:3] == [["disease"] if sample.has_types else []] * 3
    names = terminology.names().collect()
    assert names["is_preferred"].sum() == len(concepts)
    assert names.filter("is_preferred")["concept_row"].to_list() == list(range(len(concepts)))
    relations = terminology.relations().select("head_row", "relation", "tail_row").collect().rows()
    attack, disease = sample.order.index("X:1"), sample.order.index("X:2")
    assert relations == ([(attack, "is_a", disease)] if sample.has_relations else [])
    definitions = terminology.definitions().select("concept_row", "text").collect().rows()
    has_definitions = sample.has_relations if sample.has_definitions is None else sample.has_definitions
    assert definitions == ([(attack, DEFINITION)] if has_definitions else [])

    assert (report.n_concepts, report.n_names, report.n_relations, report.n_definitions) == (
        terminology.n_concepts,
        terminology.n_names,
        terminology.n_relations,
        terminology.n_definitions,
    )
    assert report.n_rejected == 0
    assert not (tmp_path / "out" / "rejects.parquet").exists()
    assert str(report).startswith(str(tmp_path / "out"))
    assert terminology.manifest.config["format"] == sample.format
    assert all(str(tmp_path) not in str(value) for value in terminology.manifest.config.values())
    assert terminology.manifest.config["source_files"]


def test_same_source_gives_same_fingerprint(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = written(sample, tmp_path)
    if sample.package:
        monkeypatch.syspath_prepend(tmp_path / "in")
    for name in ("a", "b"):
        run(sample, source, tmp_path / name)
    first, second = (Terminology.open(tmp_path / name).manifest for name in ("a", "b"))
    assert first.fingerprint == second.fingerprint
    assert first.config == second.config


@pytest.mark.parametrize("spoil", ["gzip", "crlf", "bom", "no-final-newline", "bom-crlf-gzip"])
def test_dress_of_the_file_does_not_matter(text_sample: Sample, spoil: str, tmp_path: Path) -> None:
    source, file = written(text_sample, tmp_path)
    data = file.read_bytes()
    if "crlf" in spoil:
        data = data.replace(b"\n", b"\r\n")
    if "bom" in spoil:
        data = b"\xef\xbb\xbf" + data
    if spoil == "no-final-newline":
        data = data.rstrip(b"\n")
    if "gzip" in spoil:
        file.unlink()
        file = file.with_name(file.name + ".gz")
        data = gzip.compress(data)
        source = source if Path(source).is_dir() else str(file)
    file.write_bytes(data)
    run(text_sample, source, tmp_path / "out")
    assert named(Terminology.open(tmp_path / "out"), text_sample) == NAMES


@pytest.mark.parametrize(
    ("bad", "problem"), [(b"\xe9", "not UTF-8 (byte 0xe9"), (b"\0", "NUL byte"), (b"\xed\xa0\x80", "not UTF-8")]
)
def test_bad_bytes(text_sample: Sample, bad: bytes, problem: str, tmp_path: Path) -> None:
    source, file = written(text_sample, tmp_path)
    lines = file.read_bytes().split(b"\n")
    lines[text_sample.first_line - 1] = lines[text_sample.first_line - 1].replace(b"e", bad, 1)
    n_lines = len(lines)
    assert bad in b"\n".join(lines)
    file.write_bytes(b"\n".join(lines))
    if text_sample.format == "umls":
        for name in ("MRREL", "MRSTY", "MRDEF"):
            (file.parent / f"{name}.RRF").unlink()
    for on_error in ("strict", "skip") if text_sample.is_document else ("strict",):
        with pytest.raises(InputError) as caught:
            run(text_sample, source, tmp_path / "out", on_error=on_error)
        assert caught.value.line == text_sample.first_line <= n_lines
        assert caught.value.path == file
        assert problem in str(caught.value)
        assert ("--on-error skip" in str(caught.value)) is not text_sample.is_document
        assert not (tmp_path / "out").exists()
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
    if text_sample.is_document:
        return

    report = run(text_sample, source, tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    assert list(report.rejected.values()) == [1]
    assert str(report).count(problem.partition(" (")[0]) == 1
    rejects = pl.read_parquet(tmp_path / "out" / "rejects.parquet")
    assert rejects.select("file", "line").rows() == [(file.name, text_sample.first_line)]
    assert rejects["text"][0]
    left = named(Terminology.open(tmp_path / "out"), text_sample)
    assert left["X:2"] == NAMES["X:2"]
    assert Terminology.open(tmp_path / "out").manifest.config["n_rejected"] == 1


def test_file_that_cannot_be_read_at_all(text_sample: Sample, tmp_path: Path) -> None:
    source, file = written(text_sample, tmp_path)
    data = file.read_bytes()

    def refused(content: bytes) -> str:
        file.write_bytes(content)
        for on_error in ("strict", "skip"):
            with pytest.raises(InputError) as caught:
                run(text_sample, source, tmp_path / "out", on_error=on_error)
            assert not (tmp_path / "out").exists()
        assert caught.value.path == file
        return str(caught.value)

    assert "empty" in refused(b"")
    assert "UTF-16" in refused(data.decode().encode("utf-16"))
    assert "damaged or cut off (" in refused(gzip.compress(data)[:-9])
    assert "damaged or cut off" in refused(gzip.compress(data)[:20] + b"\xff" * 20)
    file.unlink()
    with pytest.raises(InputError, match=r"no such file|there is no"):
        run(text_sample, source, tmp_path / "out")


def test_options_that_do_not_exist(sample: Sample, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no option 'languagee'"):
        import_terminology(sample.format, "nowhere", tmp_path / "out", options={**sample.options, "languagee": "en"})


def test_progress(text_sample: Sample, tmp_path: Path) -> None:
    source, _ = written(text_sample, tmp_path)
    told: list[tuple[int, int | None, str]] = []
    import_terminology(
        text_sample.format,
        source,
        tmp_path / "out",
        options=text_sample.options,
        progress=lambda done, total, what: told.append((done, total, what)),
    )
    assert told
    assert all(total is None or 0 <= done <= total for done, total, _ in told)
    assert all(what for _, _, what in told)


def test_place_is_taken(tmp_path: Path) -> None:
    sample = SAMPLES["biosyn"]
    source, _ = written(sample, tmp_path)
    run(sample, source, tmp_path / "out")
    with pytest.raises(ArtifactExistsError):
        run(sample, source, tmp_path / "out")
    import_terminology(sample.format, source, tmp_path / "out", overwrite=True)


def test_unknown_format_and_policy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'umls'"):
        import_terminology("ulms", "x", tmp_path / "out")
    with pytest.raises(ConfigError, match="Known: strict, skip"):
        import_terminology("biosyn", "x", tmp_path / "out", on_error="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("skos", "owl"),
        ("RDF/XML", "owl"),
        ("ttl", "owl"),
        ("json-ld", "owl"),
        ("obojson", "obographs"),
        ("tsv", "table"),
        ("ICD-10-GM", "claml"),
        ("CodeSystem", "fhir"),
    ],
)
def test_other_names_of_what_a_format_reads(name: str, format: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"there is no format '{name}': that is read by format '{format}'"):
        import_terminology(name, "x", tmp_path / "out")


def test_every_other_name_is_of_a_format() -> None:
    assert set(formats._READ_BY.values()) <= set(known_formats())
    assert not set(formats._READ_BY) & set(known_formats())


def test_every_format_describes_itself() -> None:
    for name, entry in known_formats().items():
        assert name == entry.name
        assert all((entry.description, entry.source, entry.obtain, entry.licence))
        assert len(entry.description) <= 100
        for option, _, description in describe_options(entry.options):
            assert option
            assert description
    assert ("scopes", "exact") in [row[:2] for row in describe_options(known_formats()["obo"].options)]
    assert ("id", "required") in [row[:2] for row in describe_options(known_formats()["table"].options)]


def test_everything_is_an_onoma_error(sample: Sample, tmp_path: Path) -> None:
    with pytest.raises(OnomaError):
        run(sample, str(tmp_path), tmp_path / "out")


_IAO, _EFO = "http://purl.obolibrary.org/obo/IAO_0000118", "http://www.ebi.ac.uk/efo/alternative_term"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_ALTERNATIVE = {
    "x.obo": 'format-version: 1.4\n\n[Term]\nid: X:1\nname: a\nproperty_value: IAO:0000118 "b \\"c\\"" xsd:string\n'
    f'property_value: {_IAO} "d" xsd:string\nproperty_value: skos:altLabel " e" xsd:string\n'
    'property_value: EFO:alternative_term "f" xsd:string\nproperty_value: skos:hiddenLabel "g" xsd:string\n'
    'property_value: IAO:0000112 "an example of usage" xsd:string\nproperty_value: IAO:0000118 X:2\n',
    "x.json": json.dumps(
        {
            "graphs": [
                {
                    "nodes": [
                        {
                            "id": "http://purl.obolibrary.org/obo/X_1",
                            "lbl": "a",
                            "type": "CLASS",
                            "meta": {
                                "basicPropertyValues": [
                                    {"pred": _IAO, "val": 'b "c"'},
                                    {"pred": _IAO, "val": "d"},
                                    {"pred": _SKOS + "altLabel", "val": " e"},
                                    {"pred": _EFO, "val": "f"},
                                    {"pred": _SKOS + "hiddenLabel", "val": "g"},
                                    {"pred": _IAO.replace("118", "112"), "val": "an example of usage"},
                                ]
                            },
                        }
                    ]
                }
            ]
        }
    ),
    "x.ttl": f"<http://purl.obolibrary.org/obo/X_1> a <http://www.w3.org/2002/07/owl#Class> ; "
    f'<http://www.w3.org/2000/01/rdf-schema#label> "a" ; <{_IAO}> """b "c\\"""" , "d" ; <{_SKOS}altLabel> " e" ; '
    f'<{_EFO}> "f" ; <{_SKOS}hiddenLabel> "g" ; <{_IAO.replace("118", "112")}> "an example of usage" .',
}


@pytest.mark.parametrize("file", _ALTERNATIVE)
@pytest.mark.parametrize(("scopes", "more"), [("all", [("related_synonym", "g")]), ("exact", [])])
def test_alternative_terms_are_names_in_every_form_of_an_ontology(
    file: str, scopes: str, more: list[tuple[str, str]], tmp_path: Path
) -> None:
    (tmp_path / file).write_text(_ALTERNATIVE[file], encoding="utf-8")
    kind = {"x.obo": "obo", "x.json": "obographs", "x.ttl": "owl"}[file]
    terminology, _ = imported(kind, tmp_path / file, tmp_path / "out", scopes=scopes)
    exact = [("exact_synonym", text) for text in ('b "c"', "d", "e", "f")]
    names = terminology.names().select("term_type", "text").collect().rows()
    assert sorted(names) == sorted([("label", "a"), *exact, *more])


_TYPED_OBO = """\
format-version: 1.4

[Term]
id: X:1
name: heart attack
synonym: "MI" EXACT ABBREVIATION []
synonym: "infarct" EXACT OMO:0003001 []
synonym: "coronary" BROAD dubious []
synonym: "cardiac infarction" EXACT []
"""
_TYPED_OWL = """\
@prefix obo: <http://purl.obolibrary.org/obo/> .
@prefix oio: <http://www.geneontology.org/formats/oboInOwl#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
obo:X_1 a owl:Class ; <http://www.w3.org/2000/01/rdf-schema#label> "heart attack" ;
    oio:hasExactSynonym "MI", "infarct", "cardiac infarction" ; oio:hasBroadSynonym "coronary" .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasExactSynonym ; owl:annotatedTarget "MI" ;
    oio:hasSynonymType <http://purl.obolibrary.org/obo/mondo#ABBREVIATION> .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasExactSynonym ;
    owl:annotatedTarget "infarct" ; oio:hasSynonymType obo:OMO_0003001 .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasBroadSynonym ;
    owl:annotatedTarget "coronary" ; oio:hasSynonymType <http://purl.obolibrary.org/obo/mondo#dubious> .
"""
_TYPED_GRAPHS = json.dumps(
    {
        "graphs": [
            {
                "nodes": [
                    {
                        "id": "http://purl.obolibrary.org/obo/X_1",
                        "lbl": "heart attack",
                        "type": "CLASS",
                        "meta": {
                            "synonyms": [
                                {"pred": "hasExactSynonym", "val": "MI", "synonymType": "ABBREVIATION"},
                                {"pred": "hasExactSynonym", "val": "infarct", "synonymType": "OMO:0003001"},
                                {"pred": "hasBroadSynonym", "val": "coronary", "synonymType": "dubious"},
                                {"pred": "hasExactSynonym", "val": "cardiac infarction"},
                            ]
                        },
                    }
                ]
            }
        ]
    }
)


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [("obo", "x.obo", _TYPED_OBO), ("owl", "x.ttl", _TYPED_OWL), ("obographs", "x.json", _TYPED_GRAPHS)],
)
def test_synonyms_of_unwanted_types_are_left_out(name: str, file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)

    def names(**options: str) -> tuple[set[str], ImportReport]:
        terminology, report = imported(name, tmp_path / file, tmp_path / "out", **options)
        return set(terminology.names().collect()["text"]), report

    everything = {"heart attack", "MI", "infarct", "coronary", "cardiac infarction"}
    left_out = "synonyms of types to leave out"
    found, report = names(scopes="all")
    assert found == everything
    assert left_out not in report.notes
    found, report = names(scopes="all", without_types="abbreviation, Ambiguous")
    assert found == everything - {"MI", "infarct"}
    assert report.notes[left_out] == 2
    assert names(without_types="ambiguous")[0] == everything - {"infarct", "coronary"}
    with pytest.raises(
        InputError, match=r"nothing of 'abbreviaton'.*'abbreviation'.*abbreviation, ambiguous"
    ) as caught:
        names(without_types="abbreviaton")
    assert (caught.value.path, caught.value.field) == (tmp_path / file, "without_types")
    with pytest.raises(InputError, match="what scopes and prefixes keep of the release has nothing of 'ambiguous'"):
        names(scopes="narrow", without_types="ambiguous")
