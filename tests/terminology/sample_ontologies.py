"""The little ontology of `sample` as OBO Graphs JSON, OWL in two syntaxes, and Babelon translations."""

from __future__ import annotations

import json

from sample import DEFINITION, NAMES, Sample, write_text

_OBO = "http://purl.obolibrary.org/obo/"
_OBO_IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"


def _node(code: str, label: str, *synonyms: str, **meta: object) -> str:
    written = [{"pred": "hasExactSynonym", "val": text, "xrefs": []} for text in synonyms]
    node = {
        "id": _OBO + code.replace(":", "_"),
        "lbl": label,
        "type": "CLASS",
        "meta": {
            "synonyms": written,
            "basicPropertyValues": [{"pred": f"{_OBO_IN_OWL}hasOBONamespace", "val": "disease"}],
            **meta,
        },
    }
    return json.dumps(node, ensure_ascii=False)


_RETIRED = {
    "deprecated": True,
    "basicPropertyValues": [
        {"pred": f"{_OBO_IN_OWL}hasOBONamespace", "val": "disease"},
        {"pred": f"{_OBO}IAO_0100001", "val": f"{_OBO}X_1"},
    ],
}
OBOGRAPHS = f"""\
{{"graphs": [{{"id": "{_OBO}x.owl", "nodes": [
{_node("X:1", *NAMES["X:1"], definition={"val": DEFINITION, "xrefs": ["PMID:1"]})},
{_node("X:2", *NAMES["X:2"])},
{_node("X:3", *NAMES["X:3"])},
{_node("X:4", "obsolete coronary", **_RETIRED)}
], "edges": [
{{"sub": "{_OBO}X_1", "pred": "is_a", "obj": "{_OBO}X_2"}}
]}}]}}
"""

OWL_XML = f"""\
<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ <!ENTITY obo "{_OBO}" > ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
  xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:obo="{_OBO}" xmlns:oboInOwl="{_OBO_IN_OWL}">
<owl:Ontology rdf:about="&obo;x.owl"><oboInOwl:default-namespace>disease</oboInOwl:default-namespace></owl:Ontology>
<owl:Class rdf:about="&obo;X_1">
<rdfs:label>
Heart attack</rdfs:label>
<oboInOwl:hasExactSynonym>Myocardial infarction</oboInOwl:hasExactSynonym>
<oboInOwl:hasExactSynonym>MI</oboInOwl:hasExactSynonym>
<obo:IAO_0000115>Death of "heart" muscle.</obo:IAO_0000115>
<rdfs:subClassOf rdf:resource="&obo;X_2"/>
</owl:Class>
<owl:Class rdf:about="&obo;X_2">
<rdfs:label>Heart disease</rdfs:label>
<oboInOwl:hasExactSynonym>Cardiopathy</oboInOwl:hasExactSynonym>
</owl:Class>
<owl:Class rdf:about="&obo;X_3">
<rdfs:label>Ménière's "vertigo" #2</rdfs:label>
<oboInOwl:hasExactSynonym>メニエール病</oboInOwl:hasExactSynonym>
</owl:Class>
<owl:Class rdf:about="&obo;X_4">
<rdfs:label>obsolete coronary</rdfs:label>
<owl:deprecated rdf:datatype="http://www.w3.org/2001/XMLSchema#boolean">true</owl:deprecated>
<obo:IAO_0100001 rdf:resource="&obo;X_1"/>
</owl:Class>
</rdf:RDF>
"""

OWL_TURTLE = f"""\
@prefix obo: <{_OBO}> .
@prefix oio: <{_OBO_IN_OWL}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
obo:X_1 a owl:Class ; skos:altLabel
"Myocardial infarction"@en , "MI" ; rdfs:label "Heart attack"@en ; rdfs:subClassOf obo:X_2 .
obo:X_2 a owl:Class ; skos:prefLabel "Heart disease" ; oio:hasExactSynonym "Cardiopathy" .
obo:X_3 a skos:Concept ; rdfs:label "Ménière's \\"vertigo\\" #2"@fr , "メニエール病"@ja .
obo:X_4 a owl:Class ; rdfs:label "obsolete coronary" ; owl:deprecated true ; obo:IAO_0100001 obo:X_1 .
obo:X_1 obo:IAO_0000115 "Death of \\"heart\\" muscle." ; oio:hasOBONamespace "disease" .
obo:X_2 oio:hasOBONamespace "disease" .
obo:X_3 oio:hasOBONamespace "disease" .
obo:X_4 oio:hasOBONamespace "disease" .
"""


def _babelon() -> str:
    lines = [
        "subject_id\tsource_language\ttranslation_language\tpredicate_id\tsource_value\ttranslation_status\ttranslation_value"
    ]
    for code, names in NAMES.items():
        for number, name in enumerate(names):
            predicate = "oio:hasExactSynonym" if number else "rdfs:label"
            quoted = '"' + name.replace('"', '""') + '"' if '"' in name else name
            lines.append(f"{code}\ten\tfr\t{predicate}\tX\tOFFICIAL\t{quoted}")
    return "\n".join(lines) + "\n"


def _sample(format: str, name: str, text: str, first_line: int) -> Sample:
    return Sample(format, write_text(name, text), {}, name, first_line, True, True, True, is_document=True)


SAMPLES = {
    "obographs": _sample("obographs", "x.json", OBOGRAPHS, 2),
    "owl-rdfxml": _sample("owl", "x.owl", OWL_XML, 8),
    "owl-turtle": _sample("owl", "x.ttl", OWL_TURTLE, 7),
    "babelon": Sample("babelon", write_text("x-fr.babelon.tsv", _babelon()), {}, "x-fr.babelon.tsv", 3),
}
