from __future__ import annotations

import contextlib
import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported

from onoma.errors import InputError
from onoma.files import rdf_guards, rdf_stream
from onoma.files.archives import SourceFile
from onoma.files.text_files import ByteBlock, read_bytes
from onoma.terminology import ImportReport, Terminology, import_terminology

PREFIXES = {
    "obo": "http://purl.obolibrary.org/obo/",
    "oio": "http://www.geneontology.org/formats/oboInOwl#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}
TURTLE_HEAD = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items())
XML_HEAD = "<rdf:RDF " + " ".join(f'xmlns:{prefix}="{iri}"' for prefix, iri in PREFIXES.items()) + ">\n"


def read(
    tmp_path: Path, text: str, name: str = "x.ttl", *, on_error: str = "strict", **options: str
) -> tuple[Terminology, ImportReport]:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    return imported("owl", tmp_path / name, tmp_path / "out", on_error=on_error, **options)


def names(terminology: Terminology) -> list[tuple[object, ...]]:
    return terminology.names().select("concept_row", "term_type", "text", "language").collect().rows()


def relations(terminology: Terminology) -> list[tuple[object, ...]]:
    return terminology.relations().select("head_row", "relation", "tail_row").collect().rows()


ONTOLOGY = (
    TURTLE_HEAD
    + """
obo:x.owl a owl:Ontology ; oio:default-namespace "common" .
owl:Thing a owl:Class ; rdfs:label "Thing" .
obo:BFO_0000050 a owl:ObjectProperty ; rdfs:label "part of" ; oio:shorthand "part_of" .
obo:RO_0000001 a owl:ObjectProperty ; rdfs:label "stammt von"@de , "derives from"@en .
obo:X_1 a owl:Class ; rdfs:label "Herzinfarkt"@de , "heart attack"@en-US , "cardiac infarction"@en ;
  oio:hasExactSynonym "MI" , "myocardial infarction" ; oio:hasBroadSynonym "heart disease" ;
  oio:hasNarrowSynonym "STEMI" ; oio:hasRelatedSynonym "angina" ; skos:altLabel "infarto"@pt-BR ;
  obo:IAO_0000118 "coronary" ; skos:hiddenLabel "hart atack" ;
  obo:IAO_0000115 "Tod"@de , "Death" ; oio:hasOBONamespace "own" ;
  oio:hasDbXref "MESH:D1" , "UMLS:C2" , "DOID:3" ; skos:closeMatch <http://identifiers.org/mesh/D4> ;
  oio:hasAlternativeId "X:9" ; oio:consider obo:X_3 ;
  rdfs:subClassOf obo:X_3 , owl:Thing ,
    [ a owl:Restriction ; owl:onProperty obo:BFO_0000050 ; owl:someValuesFrom obo:X_3 ] ,
    [ a owl:Restriction ; owl:someValuesFrom obo:X_3 ; owl:onProperty obo:RO_0000001 ] ,
    [ a owl:Restriction ; owl:onProperty obo:RO_0000002 ; owl:someValuesFrom obo:X_3 ] ,
    [ a owl:Restriction ; owl:onProperty obo:BFO_0000050 ; owl:allValuesFrom obo:X_3 ] ,
    [ a owl:Restriction ; owl:onProperty obo:BFO_0000050 ; owl:someValuesFrom [ a owl:Class ] ] ;
  owl:equivalentClass obo:X_3 , <http://example.org/9> , [ a owl:Class ; owl:intersectionOf ( obo:X_3 ) ] .
obo:X_2 a owl:Class ; owl:deprecated true ; obo:IAO_0100001 obo:X_1 , "X:3" .
obo:X_3 a owl:Class , skos:Concept ; skos:prefLabel "three" ; rdfs:label "drei"@de .
obo:X_4 a owl:Class .
obo:X_5 a owl:NamedIndividual ; rdfs:label "thing" .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasExactSynonym ; owl:annotatedTarget "MI" ;
  oio:hasDbXref "DOID:1" ; oio:hasSynonymType <http://purl.obolibrary.org/obo/mondo#ABBREVIATION> .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasDbXref ; owl:annotatedTarget "MESH:D1" ;
  oio:source "DOID:7" , "MONDO:equivalentTo" .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasDbXref ; owl:annotatedTarget "UMLS:C2" ;
  oio:source "DOID:7" .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty rdfs:label ; owl:annotatedTarget "MI" ;
  oio:source "MONDO:equivalentTo" .
"""
)


def check_ontology(terminology: Terminology, report: ImportReport) -> None:
    concepts = terminology.concepts().select("concept_id", "preferred_name", "status", "replaced_by").collect().rows()
    assert concepts == [
        ("X:1", "heart attack", "active", None),
        ("X:2", "", "obsolete", None),
        ("X:3", "three", "active", None),
        ("X:9", "", "obsolete", "X:1"),
    ]
    assert sorted(map(str, names(terminology))) == sorted(
        map(
            str,
            [
                (0, "label", "heart attack", "en-US"),
                (0, "label", "cardiac infarction", "en"),
                (0, "label", "Herzinfarkt", "de"),
                (0, "exact_synonym/abbreviation", "MI", "en"),
                (0, "exact_synonym", "myocardial infarction", "en"),
                (0, "broad_synonym", "heart disease", "en"),
                (0, "narrow_synonym", "STEMI", "en"),
                (0, "related_synonym", "angina", "en"),
                (0, "exact_synonym", "infarto", "pt-BR"),
                (0, "exact_synonym", "coronary", "en"),
                (0, "related_synonym", "hart atack", "en"),
                (2, "label", "three", "en"),
                (2, "label", "drei", "de"),
            ],
        )
    )
    assert terminology.concept("X:1").semantic_types == ("own",)
    assert terminology.concept("X:3").semantic_types == ("common",)
    assert set(relations(terminology)) == {
        (0, "is_a", 2),
        (0, "consider", 2),
        (0, "part_of", 2),
        (0, "derives from", 2),
        (0, "RO:0000002", 2),
        (0, "equivalent_to", 2),
        (1, "consider", 0),
        (1, "consider", 2),
    }
    references = terminology.cross_references().select("concept_row", "relation", "code").collect().rows()
    assert set(references) == {
        (0, "exactMatch", "MESH:D1"),
        (0, "xref", "UMLS:C2"),
        (0, "xref", "DOID:3"),
        (0, "closeMatch", "MESH:D4"),
        (0, "exactMatch", "http://example.org/9"),
    }
    assert terminology.definitions().select("concept_row", "text").collect().rows() == [(0, "Death")]
    assert report.notes == {
        "class expressions that say no relation between two classes, left out": 2,
        "second and further definitions of a term, left out": 1,
        "terms without a name (only referred to), left out": 1,
        "relations to or from terms that are not among the concepts, left out": 1,
        "concepts without a name (retired codes)": 2,
        "obsolete concepts with several successors, which are shown as choices (the first: X:2)": 1,
    }


def test_everything_that_an_ontology_says(tmp_path: Path) -> None:
    check_ontology(*read(tmp_path, ONTOLOGY, scopes="all"))


@pytest.mark.parametrize("name", ["x.nt", "x.owl", "x.jsonld", "x.trig", "x.nq", "x.rdf.gz"])
def test_other_syntaxes(name: str, tmp_path: Path) -> None:
    format = pyoxigraph.RdfFormat.from_extension(name.split(".")[1].replace("owl", "rdf"))
    assert format
    triples = list(pyoxigraph.parse(ONTOLOGY.encode(), format=pyoxigraph.RdfFormat.TURTLE))
    data = pyoxigraph.serialize(triples, format=format)
    assert data
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    report = import_terminology("owl", tmp_path / name, tmp_path / "out", options={"scopes": "all"})
    check_ontology(Terminology.open(tmp_path / "out"), report)


def test_vocabularies_by_https(tmp_path: Path) -> None:
    secure = ONTOLOGY.replace("<http://", "<https://")
    check_ontology(*read(tmp_path, secure.replace("<https://example.org", "<http://example.org"), scopes="all"))


def test_triples_in_any_order(tmp_path: Path) -> None:
    triples = list(pyoxigraph.parse(ONTOLOGY.encode(), format=pyoxigraph.RdfFormat.TURTLE))
    first = [triple for triple in triples if "X_" in str(triple.subject) and "type" in str(triple.predicate)]
    others = [triple for triple in triples if triple not in first]
    labels = [triple for triple in others if "abel" in str(triple.predicate) or "IAO_0100001" in str(triple.predicate)]
    others = [triple for triple in others if triple not in labels]
    random.Random(0).shuffle(others)
    shuffled = [*others[::2], *labels, *first, *others[1::2]]
    text = "".join(f"{triple} .\n" for triple in shuffled)
    check_ontology(*read(tmp_path, text, "x.nt", scopes="all"))


def test_thesaurus(tmp_path: Path) -> None:
    text = (
        TURTLE_HEAD
        + """
@prefix t: <http://example.org/t#> .
t:1 a skos:Concept ; skos:prefLabel "maladie"@fr , "Krankheit"@de ; skos:narrower t:2 ; skos:related t:3 .
t:2 a skos:Concept ; skos:prefLabel "grippe"@fr ; skos:altLabel "influenza"@fr ; skos:broader t:1 .
t:3 a skos:Concept ; skos:prefLabel "malade"@fr ; skos:definition "Qui est malade."@fr .
"""
    )
    terminology, report = read(tmp_path, text, language="fr", iri_prefixes="T=http://example.org/t#")
    assert terminology.concepts().collect()["concept_id"].to_list() == ["T:1", "T:2", "T:3"]
    assert names(terminology) == [
        (0, "label", "maladie", "fr"),
        (0, "label", "Krankheit", "de"),
        (1, "label", "grippe", "fr"),
        (1, "exact_synonym", "influenza", "fr"),
        (2, "label", "malade", "fr"),
    ]
    assert sorted(relations(terminology)) == [(0, "related", 2), (1, "broader", 0)]
    assert report.n_definitions == 1


def test_a_beginning_of_iris_that_none_has_is_refused(tmp_path: Path) -> None:
    concept = '<{}> a skos:Concept ; skos:prefLabel "a" ; skos:exactMatch <http://example.net/9> .\n'
    iris = ("http://example.org/t/1", "http://example.org/t/2", "urn:t:3", "http://purl.obolibrary.org/obo/X_1")
    text = TURTLE_HEAD + 'owl:Thing a owl:Class ; rdfs:label "Thing" .\n' + "".join(map(concept.format, iris))
    with pytest.raises(InputError, match=r"field iri_prefixes: .*nothing of 'https://example\.org/t/'") as caught:
        read(tmp_path, text, iri_prefixes="U=urn:t:,T=https://example.org/t/", prefixes="T")
    shown = "http://example.org/t/, http://purl.obolibrary.org/obo/, urn:t:"
    assert caught.value.expected == f"some of {shown}"
    terminology, _ = read(tmp_path, text, iri_prefixes="U=urn:t:,T=http://example.org/t/,N=http://example.net/")
    assert terminology.concepts().collect()["concept_id"].to_list() == ["T:1", "T:2", "U:3", "X:1"]
    assert set(terminology.cross_references().collect()["code"]) == {"N:9"}


def test_two_labels_in_one_language(tmp_path: Path) -> None:
    text = TURTLE_HEAD + 'obo:X_1 a owl:Class ; rdfs:label "one" , "two" ; skos:prefLabel "one" .'
    terminology, report = read(tmp_path, text)
    assert terminology.concept("X:1").names == ("one", "two")
    assert report.notes == {
        "labels besides another of their language, kept as names": 1,
        "synonyms spelled as another name of their term, left out": 1,
    }


def test_ways_to_say_that_a_class_is_deprecated(tmp_path: Path) -> None:
    said = {
        "1": "a owl:DeprecatedClass ;",
        "2": "a owl:Class , owl:DeprecatedClass ;",
        "3": 'a owl:Class ; owl:deprecated "True" ;',
        "4": "a owl:Class ; owl:deprecated 1 ;",
        "5": 'a owl:Class ; owl:deprecated " true\\n" ;',
        "6": "a owl:Class ; rdfs:subClassOf oio:ObsoleteClass ;",
        "7": "a owl:Class ; owl:deprecated false ;",
    }
    classes = "".join(f'obo:X_{number} {words} rdfs:label "x" .\n' for number, words in said.items())
    parent = 'oio:ObsoleteClass a owl:Class ; rdfs:label "Obsolete Class" .\n'
    terminology, _ = read(tmp_path, TURTLE_HEAD + parent + classes)
    assert terminology.concepts().collect()["status"].to_list() == ["obsolete"] * 6 + ["active"]
    assert relations(terminology) == []


def test_a_successor_in_dublin_core(tmp_path: Path) -> None:
    head = TURTLE_HEAD + "@prefix dct: <http://purl.org/dc/terms/> .\n"
    old = 'obo:X_1 a skos:Concept ; skos:prefLabel "old" ; owl:deprecated true ; dct:isReplacedBy obo:X_2 .\n'
    terminology, _ = read(tmp_path, head + old + 'obo:X_2 a skos:Concept ; skos:prefLabel "new" .')
    concepts = terminology.concepts().select("concept_id", "status", "replaced_by").collect().rows()
    assert concepts == [("X:1", "obsolete", "X:2"), ("X:2", "active", None)]


def test_names_and_definitions_that_are_nodes_of_their_own(tmp_path: Path) -> None:
    """SKOS allows that for definitions (SKOS reference, section 7); oboInOwl had synonyms so in its first years."""
    text = """<http://x/o> a owl:Ontology ; <http://purl.org/dc/terms/license> [ rdfs:label "free" ] , <http://x/free> .
obo:X_1 a owl:Class ; rdfs:label "one" , <http://x/label> ; oio:hasExactSynonym [ a oio:Synonym ; rdfs:label "I" ] ;
  skos:altLabel "first" ; skos:definition [ rdf:value "a number" ] , <http://x/definition> .
obo:X_2 a owl:Class ; rdfs:label "two" ; skos:definition <http://x/definition> , "a number too" .
"""
    terminology, report = read(tmp_path, TURTLE_HEAD + text)
    assert [name[2] for name in names(terminology)] == ["one", "first", "two"]
    assert terminology.definitions().collect()["text"].to_list() == ["a number too"]
    assert report.notes["names and definitions that are nodes of their own and no texts, left out"] == 5
    assert terminology.manifest.config["licence"] == "http://x/free"


def test_codes_in_literals(tmp_path: Path) -> None:
    """White space around one is no part of it, and words are no successor."""
    text = """obo:X_1 a owl:Class ; rdfs:label "one" ; oio:hasAlternativeId " X:9" ;
  oio:hasDbXref "MESH:D1\\n " .
obo:X_2 a owl:Class ; rdfs:label "two" ; owl:deprecated true ; obo:IAO_0100001 "use one or three" .
obo:X_3 a owl:Class ; rdfs:label "three" ; owl:deprecated true ; obo:IAO_0100001 "X:1 " , "see also two" .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasDbXref ; owl:annotatedTarget "MESH:D1\\n " ;
  oio:source "MONDO:equivalentTo" .
"""
    terminology, report = read(tmp_path, TURTLE_HEAD + text)
    assert terminology.concepts().select("concept_id", "replaced_by").collect().rows() == [
        ("X:1", None), ("X:2", None), ("X:3", "X:1"), ("X:9", "X:1"),
    ]  # fmt: skip
    references = terminology.cross_references().select("code", "relation").collect().rows()
    assert references == [("MESH:D1", "exactMatch")]
    assert report.notes["successors given in words, left out"] == 2


def test_private_language(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, TURTLE_HEAD + 'obo:X_1 a owl:Class ; rdfs:label "a"@x-mine , "b"@zh-hant-TW .')
    assert names(terminology) == [(0, "label", "a", "x-mine"), (0, "label", "b", "zh-Hant-TW")]


def test_links_that_break_the_rules_end_no_import(tmp_path: Path) -> None:
    terminology, report = read(
        tmp_path,
        XML_HEAD
        + '<owl:Ontology rdf:about=""/>'
        + '<owl:Class rdf:about="http://purl.obolibrary.org/obo/X_1"><rdfs:label xml:lang="">a</rdfs:label>'
        + '<rdfs:seeAlso rdf:resource="http://x/a page"/><rdfs:subClassOf rdf:resource="http://x/{b}"/></owl:Class>'
        + "</rdf:RDF>",
        "x.owl",
    )
    assert names(terminology) == [(0, "label", "a", "en")]
    assert report.notes == {"relations to or from terms that are not among the concepts, left out": 1}
    said = f'[{{"@id": "http://x/a", "@type": "{PREFIXES["owl"]}Class", "{PREFIXES["rdfs"]}label": '
    terminology, _ = read(tmp_path, said + '{"@value": "c", "@language": "en_US"}}]', "x.jsonld")
    assert names(terminology) == [(0, "label", "c", "en-US")]


@pytest.mark.parametrize("iri", ["http://x/{b}", "http://x/b ", " http://x/b", "http://x/a|b"])
def test_a_class_whose_iri_cannot_be_is_rejected(iri: str, tmp_path: Path) -> None:
    base = XML_HEAD.replace(">", ' xml:base="http://x.org/o">')
    about = '<owl:Class rdf:about="{}">\n<rdfs:label>{}</rdfs:label></owl:Class>\n'
    text = base + about.format("http://x/a", "a") + 2 * about.format(iri, "b") + "</rdf:RDF>"
    with pytest.raises(InputError, match="a class whose IRI has a sign that no IRI may have") as caught:
        read(tmp_path, text, "x.owl")
    assert caught.value.line == 4
    terminology, report = read(tmp_path, text, "x.owl", on_error="skip")
    assert (names(terminology), report.n_rejected) == ([(0, "label", "a", "en")], 1)
    (text,) = pl.read_parquet(report.path / "rejects.parquet")["text"]
    assert text.endswith(iri)
    assert not any("without a type" in note for note in report.notes)


def test_a_name_in_what_is_no_language(tmp_path: Path) -> None:
    about = '<owl:Class rdf:about="http://purl.obolibrary.org/obo/X_1"><rdfs:label>a</rdfs:label>'
    about += '<skos:altLabel xml:lang="pt_br">b</skos:altLabel><skos:altLabel xml:lang="lay term">c</skos:altLabel>'
    about += '<rdfs:comment xml:lang="lay term">d</rdfs:comment></owl:Class></rdf:RDF>'
    with pytest.raises(InputError, match=r"'lay term' is no language tag.*X_1: c"):
        read(tmp_path, XML_HEAD + about, "x.owl")
    terminology, report = read(tmp_path, XML_HEAD + about, "x.owl", on_error="skip")
    assert names(terminology) == [(0, "label", "a", "en"), (0, "exact_synonym", "b", "pt-BR")]
    assert report.n_rejected == 1


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("He<!-- of the body -->art", "Heart"),
        ("<!---->Heart<!-- <b>& -->", "Heart"),
        ("a <![CDATA[b & <c>]]> d", "a b & <c> d"),
        ("<![CDATA[<!-- a -->]]]]><![CDATA[> b]]>", "<!-- a -->]]> b"),
        ("a &lt;!-- b --&gt;", "a <!-- b -->"),
        ("<?foo <!-- <![CDATA[ ?>a<!-- <?b -->", "a"),
        ("He<?here?>art<?xml version='1.1'?>", "Heart"),
        ("<![CDATA[<?a]]>b", "<?ab"),
    ],
)
@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7, 1 << 16])
def test_comments_and_marked_sections_within_names(
    written: str, meant: str, n_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_feed = rdf_stream._Feed.read

    def read_and_measure(feed: rdf_stream._Feed, size: int = -1) -> bytes:
        found = read_feed(feed, size)
        assert size < 0 or len(found) <= size
        return found

    def in_small_blocks(file: SourceFile, *, block_bytes: int) -> Iterator[ByteBlock]:
        return read_bytes(file, block_bytes=min(block_bytes, n_bytes))

    monkeypatch.setattr(rdf_stream, "read_bytes", in_small_blocks)
    monkeypatch.setattr(rdf_stream._Feed, "read", read_and_measure)
    text = XML_HEAD + '<owl:Class rdf:about="http://purl.obolibrary.org/obo/X_1"><rdfs:label>' + written
    terminology, _ = read(tmp_path, text + "</rdfs:label></owl:Class></rdf:RDF>", "x.owl")
    assert names(terminology) == [(0, "label", meant, "en")]


def test_a_marked_section_that_swells(tmp_path: Path) -> None:
    name = "a & <b> " * 50_000
    text = XML_HEAD + '<owl:Class rdf:about="http://purl.obolibrary.org/obo/X_1"><rdfs:label>'
    terminology, _ = read(tmp_path, f"{text}<![CDATA[{name}]]></rdfs:label></owl:Class></rdf:RDF>", "x.owl")
    assert [row[2] for row in names(terminology)] == [name.strip()]


def test_line_of_an_error_after_comments_of_several_lines(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not RDF/XML") as caught:
        read(tmp_path, XML + "<!-- a\n\n b -->\n</rdf:x>\n</rdf:RDF>", "x.owl")
    assert caught.value.line == XML.count("\n") + 4


def test_line_of_an_error_in_a_long_file(tmp_path: Path) -> None:
    comments = "<!-- see <http://example.org> -->\n" * 9000
    read(tmp_path, XML + comments + "</rdf:RDF>", "x.owl")
    with pytest.raises(InputError, match="not RDF/XML") as caught:
        read(tmp_path, XML + comments + "</rdf:x>\n</rdf:RDF>", "x.owl")
    assert caught.value.line == 9005


def test_error_of_a_range_of_lines_is_told_without_the_parser(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found Unexpected end of file") as caught:
        read(tmp_path, TURTLE_HEAD + 'obo:X_1 a owl:Class ; rdfs:label "x\n')
    assert caught.value.line == TURTLE_HEAD.count("\n") + 1


def test_the_same_name_in_two_languages(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, TURTLE_HEAD + 'obo:X_1 a owl:Class ; rdfs:label "Diabetes"@en , "Diabetes"@de .')
    assert names(terminology) == [(0, "label", "Diabetes", "en"), (0, "label", "Diabetes", "de")]


def test_what_is_said_of_a_synonym_in_one_language(tmp_path: Path) -> None:
    synonyms = 'obo:X_1 a owl:Class ; rdfs:label "a"@en ; oio:hasExactSynonym "ABC"@en , "ABC"@de .\n'
    said = "[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasExactSynonym ; "
    said += 'owl:annotatedTarget "ABC"@de ; oio:hasSynonymType <http://purl.obolibrary.org/obo/hp#abbreviation> .'
    terminology, _ = read(tmp_path, TURTLE_HEAD + synonyms + said)
    assert set(names(terminology)[1:]) == {
        (0, "exact_synonym", "ABC", "en"),
        (0, "exact_synonym/abbreviation", "ABC", "de"),
    }


def test_labels_that_are_only_skos_xl_are_told(tmp_path: Path) -> None:
    head = TURTLE_HEAD + "@prefix skosxl: <http://www.w3.org/2008/05/skos-xl#> .\n"
    text = 'obo:X_1 a skos:Concept ; skosxl:prefLabel [ skosxl:literalForm "a"@en ] .\n'
    with pytest.raises(InputError, match=r"no concept has a name: .* SKOS-XL") as caught:
        read(tmp_path, head + text)
    assert caught.value.line == head.count("\n") + 1
    assert read(tmp_path, head + text + 'obo:X_2 a skos:Concept ; skos:prefLabel "b" .')[0].n_concepts == 1


def test_what_has_no_label_is_told_by_what_it_has(tmp_path: Path) -> None:
    text = TURTLE_HEAD + 'obo:X_1 a owl:Class ; rdfs:label "a" .\nobo:X_2 a owl:Class ; skos:altLabel "b"@en .\n'
    described = "".join(f'obo:Y_{n} a owl:Class ; obo:IAO_0000115 "c" .\n' for n in range(5))
    described += "obo:Z_1 a owl:Class ; rdfs:subClassOf obo:X_1 .\n"
    _, report = read(tmp_path, text + "obo:X_3 a owl:Class .\n" + described)
    assert report.notes == {
        "terms with synonyms but without a name, left out": 1,
        "terms without a name (only referred to), left out": 1,
        "terms described without a name (such as Y:0, Y:1, Y:2), left out": 6,
    }
    text += 'obo:X_4 a owl:Class ; rdfs:label "  "@en .\n'
    with pytest.raises(InputError, match="field label: a blank name"):
        read(tmp_path, text)
    terminology, report = read(tmp_path, text, on_error="skip")
    assert (terminology.n_concepts, report.n_rejected) == (1, 1)


@pytest.mark.parametrize(
    "after",
    [f"<!-- {'c' * 70_000} -->", " " * 70_000, "\n" * 140_000 + f"<?p {'d' * 70_000}?>\n"],
    ids=["comment", "spaces", "lines and an instruction"],
)
def test_much_may_follow_the_root(after: str, tmp_path: Path) -> None:
    assert read(tmp_path, XML + "</rdf:RDF>" + after, "x.owl")[0].n_concepts == 1
    with pytest.raises(InputError, match="the XML is cut off"):
        read(tmp_path, XML + after, "x.owl")


def test_prefixes_and_blank_names(tmp_path: Path) -> None:
    text = TURTLE_HEAD + 'obo:X_1 a owl:Class ; rdfs:label "a" ; oio:hasExactSynonym " " . '
    text += 'obo:Y_1 a owl:Class ; rdfs:label "b" .'
    with pytest.raises(InputError, match="a blank name"):
        read(tmp_path, text)
    terminology, report = read(tmp_path, text, on_error="skip", prefixes="X")
    assert (terminology.n_concepts, report.n_rejected) == (1, 1)
    assert report.notes == {"terms with other prefixes, left out": 1}
    with pytest.raises(InputError, match=r"field prefixes.*nothing of 'Z'.*some of X, Y"):
        read(tmp_path, text, on_error="skip", prefixes="X,Z")


XML = (
    XML_HEAD + '<owl:Class rdf:about="http://purl.obolibrary.org/obo/X_1">\n<rdfs:label>a</rdfs:label>\n</owl:Class>\n'
)
BAD = {
    "cut off after a term": ("x.owl", XML, None, "the XML is cut off"),
    "cut off in a tag": ("x.owl", XML + "<owl:Cla", None, "cut off|not RDF/XML"),
    "other end tag": ("x.owl", XML + "</owl:Class></rdf:RDF>", 5, "not RDF/XML"),
    "relative IRI": ("x.owl", XML + '\n<owl:Class rdf:about="x y"/>\n</rdf:RDF>', 6, "relative IRIs .* found x y"),
    "relative IRI in Turtle": ("x.ttl", TURTLE_HEAD + "<#a> a owl:Class .\n", 7, "relative IRIs"),
    "relative IRI in JSON-LD": ("x.jsonld", f'{{"@id": "a", "@type": "{PREFIXES["owl"]}Class"}}', 1, "relative IRIs"),
    "comment without end": ("x.owl", XML + "<!-- </rdf:RDF>", None, "cut off|not RDF/XML"),
    "marked section without end": ("x.owl", XML + "<owl:a><![CDATA[ </rdf:RDF>", None, "cut off|not RDF/XML"),
    "undeclared entity": ("x.owl", XML + "\n\n<owl:Class>&foo;</owl:Class></rdf:RDF>", 7, "not RDF/XML"),
    "latin-1": ("x.owl", '<?xml version="1.0" encoding="ISO-8859-1"?>' + XML + "</rdf:RDF>", None, 'encoding="UTF-8"'),
    "web page": ("x.owl", "<!DOCTYPE html>\n<html><body/></html>", None, "another kind of XML"),
    "OWL/XML": ("x.owl", '<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#"/>', None, "ROBOT"),
    "functional syntax": ("x.owl", "# c\nPrefix(:=<http://x>)\nOntology(<http://x>)\n", 1, "OWL functional syntax"),
    "Manchester syntax": ("x.omn", "Prefix: : <http://x>\nOntology: <http://x>\n", 1, "OWL Manchester syntax"),
    "OBO": ("x.owl", "format-version: 1.4\n\n[Term]\n", 1, "use format obo"),
    "OBO Graphs": ("x.json", '{\n  "graphs": []}', 1, "use format obographs"),
    "FHIR": ("x.json", '{\n  "resourceType": "CodeSystem"}', 1, "use format fhir"),
    "something else": ("x.txt", "code,name\nC1,a\n", 1, "this is no RDF; .*; found code,name. To mend"),
    "turtle": ("x.ttl", TURTLE_HEAD + 'obo:X_1 a owl:Class ;\n rdfs:label "a ', 8, "not Turtle"),
    "n-triples": ("x.nt", '<http://a> <http://b> "c" .\n<http://a> <http://b>\n', 3, "not N-Triples"),
    "remote context": ("x.jsonld", '{"@context": "http://example.org/c", "@id": "http://a"}', None, "not fetched"),
    "nothing in it": ("x.ttl", TURTLE_HEAD, None, "there is no concept with a name"),
    "entities": (
        "x.owl",
        '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>' + XML + "</rdf:RDF>",
        None,
        "a bomb",
    ),
    "long entity": ("x.owl", f'<!DOCTYPE r [<!ENTITY a "{"a" * 500}">]>' + XML + "</rdf:RDF>", None, "a bomb"),
    "hidden entities": (
        "x.owl",
        '<!DOCTYPE r [<!-- ]><rdf:RDF > --><!ENTITY a "aaa"><!ENTITY b "&a;">]>' + XML + "</rdf:RDF>",
        None,
        "a bomb",
    ),
    "file as an entity": ("x.owl", '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///x">]>' + XML + "</rdf:RDF>", None, "bomb"),
    "deep XML": (
        "x.owl",
        XML_HEAD + "<owl:a><owl:b>" * 20_000 + "</owl:b></owl:a>" * 20_000 + "</rdf:RDF>",
        None,
        "deep",
    ),
    "deep triples": (
        "x.nt",
        "<http://a> <http://b> " + "<<( <http://a> <http://b> " * 9999,
        None,
        "nested more than 100",
    ),
    "deep JSON": ("x.jsonld", '{"http://a":' * 999 + "1" + "}" * 999, None, "JSON nested more than 100"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case: str, tmp_path: Path) -> None:
    name, text, line, problem = BAD[case]
    for on_error in ("strict", "skip"):
        with pytest.raises(InputError, match=problem) as caught:
            read(tmp_path, text, name, on_error=on_error)
        assert caught.value.path == tmp_path / name
        assert line is None or caught.value.line == line
    assert not (tmp_path / "out").exists()


def test_a_text_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdf_guards, "MAX_TEXT_BYTES", 1 << 10)
    about = '<rdf:Description rdf:about="http://x"><rdfs:comment>{}</rdfs:comment></rdf:Description></rdf:RDF>'
    read(tmp_path, XML + about.format("x" * 1000), "x.owl")
    read(tmp_path, XML + f"<!-- {'x' * 1050} --></rdf:RDF>", "x.owl")  # which nobody sees
    for text in ("x" * 1050, f"<![CDATA[{'<' * 1050}]]>"):
        with pytest.raises(InputError, match="without a tag"):
            read(tmp_path, XML + about.format(text), "x.owl")


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 5])
def test_depth_is_counted_across_blocks(n_bytes: int) -> None:
    guard, texts = rdf_guards.XmlGuard(), rdf_guards.XmlTexts()
    said = b"<a><!-- <b><b> --><b/><c x='1' /><![CDATA[<d>]]><e></e></a>" * 300
    pieces = (texts.plain(said[at : at + n_bytes]) for at in range(0, len(said), n_bytes))
    assert not any(guard.problem(piece) for piece in pieces if piece)
    assert guard._depth == 0


@pytest.mark.parametrize(
    "end",
    [
        "</rdf:RDF>",
        "</rdf:RDF >\n",
        "</rdf:RDF><!-- <b/> -->\n",
        "</rdf:RDF>\n<!-- a -->\n",
        "</rdf:RDF>\n<?a <b/> ?>\n",
    ],
)
def test_ends_of_xml(end: str, tmp_path: Path) -> None:
    terminology, _ = read(
        tmp_path, '<!-- <a> -->\n<?x y?>\n<!DOCTYPE rdf:RDF [\n<!ENTITY o "http://o#">\n]>' + XML + end
    )
    assert terminology.n_concepts == 1


def test_brackets_in_texts_are_no_nesting(tmp_path: Path) -> None:
    text = "".join(f'<http://purl.obolibrary.org/obo/X_{n}> <{PREFIXES["rdfs"]}label> "{{[<<(" .\n' for n in range(300))
    text += f"<http://purl.obolibrary.org/obo/X_1> <{PREFIXES['rdf']}type> <{PREFIXES['owl']}Class> .\n"
    triples = list(pyoxigraph.parse(text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES))
    data = pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.JSON_LD)
    assert data
    terminology, _ = read(tmp_path, data.decode(), "x.jsonld")
    assert terminology.concept("X:1").names == ("{[<<(",)


SMALL = {
    "x.owl": '<!DOCTYPE rdf:RDF [<!ENTITY o "http://purl.obolibrary.org/obo/">]>\n'
    + XML
    + '<owl:Class rdf:about="&o;X_2"><rdfs:subClassOf rdf:resource="&o;X_1"/></owl:Class></rdf:RDF>',
    "x.ttl": TURTLE_HEAD + 'obo:X_1 a owl:Class ; rdfs:label "a"@en , "b" ; rdfs:subClassOf [ owl:onProperty obo:p ] .',
    "x.nt": f"<http://x> <{PREFIXES['rdf']}type> <{PREFIXES['owl']}Class> .\n"
    f'<http://x> <{PREFIXES["rdfs"]}label> "a" .\n',
    "x.jsonld": '{"@id": "http://x", "@type": ["http://www.w3.org/2002/07/owl#Class"], '
    '"http://www.w3.org/2000/01/rdf-schema#label": [{"@value": "a", "@language": "en"}]}',
}
PIECES = [
    "",
    '"',
    "<",
    ">",
    "/>",
    "<!--",
    "&a;",
    "]]>",
    "<![CDATA[",
    "\\u",
    "\\",
    "@en",
    "[",
    "{",
    "<<(",
    ".",
    "\n",
    "_:b",
    "\0",
]


@settings(max_examples=25)
@given(
    name=st.sampled_from(list(SMALL)),
    start=st.integers(0, 700),
    length=st.integers(0, 40),
    text=st.one_of(st.sampled_from(PIECES), st.text(max_size=5)),
    on_error=st.sampled_from(["strict", "skip"]),
)
def test_whatever_stands_there(
    name: str, start: int, length: int, text: str, on_error: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = SMALL[name]
    start %= len(whole) + 1
    with contextlib.suppress(InputError):
        spoilt = (whole[:start] + text + whole[start + length :]).encode("utf-8", "replace").decode()
        terminology, _ = read(tmp_path_factory.mktemp("fuzz"), spoilt, name, on_error=on_error)
        assert terminology.n_names > 0


def test_the_inverse_of_a_property_is_no_relation(tmp_path: Path) -> None:
    text = """
obo:BFO_1 a owl:ObjectProperty ; rdfs:label "part of" .
obo:X_1 a owl:Class ; rdfs:label "a" ; rdfs:subClassOf
  [ a owl:Restriction ; owl:onProperty [ owl:inverseOf obo:BFO_1 ] ; owl:someValuesFrom obo:X_2 ] ,
  [ a owl:Restriction ; owl:onProperty obo:BFO_1 ; owl:someValuesFrom obo:X_3 ] .
obo:X_2 a owl:Class ; rdfs:label "b" .
obo:X_3 a owl:Class ; rdfs:label "c" .
"""
    terminology, report = read(tmp_path, TURTLE_HEAD + text)
    assert relations(terminology) == [(0, "part of", 2)]
    assert report.notes == {"class expressions that say no relation between two classes, left out": 1}


def test_what_has_a_name_and_is_no_concept_is_counted(tmp_path: Path) -> None:
    text = """
obo:x.owl a owl:Ontology ; rdfs:label "x" ; owl:imports <http://x/y.owl> , <http://x/z.owl> .
obo:X_1 a owl:Class ; rdfs:label "a" ; rdfs:subClassOf
  [ a owl:Restriction ; owl:onProperty obo:X_9 ; owl:someValuesFrom obo:X_1 ] , [ a owl:Class ] .
obo:X_2 rdfs:label "b" .
obo:X_3 skos:prefLabel "c"@de , "d"@en .
obo:X_4 rdfs:subClassOf obo:X_1 .
obo:X_5 rdfs:label "e" ; a owl:NamedIndividual .
obo:X_9 a owl:ObjectProperty ; rdfs:label "part of" .
[] a owl:Ontology ; owl:imports <http://x/zz.owl> .
obo:X_1 skos:narrower "j" .
[] a skos:Concept ; skos:prefLabel "f"@de , "g"@en .
[] skos:prefLabel "h" ; a owl:Class .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty rdfs:label ; owl:annotatedTarget "a" ;
  rdfs:label "i" .
"""
    for order, first in ((1, "http://x/y.owl"), (-1, "http://x/zz.owl")):
        statements = text.strip().removesuffix(" .").split(" .\n")[::order]
        terminology, report = read(tmp_path, TURTLE_HEAD + " .\n".join([*statements, ""]))
        assert terminology.n_concepts == 1
        assert report.notes == {
            "classes with a label but without an IRI (blank nodes), left out": 2,
            "subjects with a label but without a type, left out (such as http://purl.obolibrary.org/obo/X_2)": 2,
            f"imports that were not followed (the first: {first})": 3,
            "class expressions that say no relation between two classes, left out": 1,
        }


def test_one_spelling_with_several_scopes_is_as_its_closest(tmp_path: Path) -> None:
    text = 'obo:X_1 a owl:Class ; oio:hasRelatedSynonym "b" ; rdfs:label "a" ; oio:hasExactSynonym "b" .\n'
    terminology, _ = read(tmp_path, TURTLE_HEAD + text, scopes="all")
    assert [name[1:3] for name in names(terminology)] == [("label", "a"), ("exact_synonym", "b")]
