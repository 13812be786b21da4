"""The little ontology of `sample` as an Athena download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sample import NAMES, Sample

COLUMNS = {
    "CONCEPT": "concept_id concept_name domain_id vocabulary_id concept_class_id standard_concept concept_code"
    " valid_start_date valid_end_date invalid_reason",
    "CONCEPT_SYNONYM": "concept_id concept_synonym_name language_concept_id",
    "CONCEPT_RELATIONSHIP": "concept_id_1 concept_id_2 relationship_id valid_start_date valid_end_date invalid_reason",
}
ENGLISH, SPANISH = "4180186", "4182511"
Row = Sequence[str]


def concept(
    id: str,
    name: str,
    vocabulary: str,
    code: str,
    *,
    domain: str = "disease",
    kind: str = "Disorder",
    standard: str = "S",
    invalid: str = "",
) -> Row:
    return id, name, domain, vocabulary, kind, standard, code, "19700101", "20991231", invalid


def link(first: str, relationship: str, second: str, invalid: str = "") -> Row:
    return first, second, relationship, "19700101", "20991231", invalid


def write_omop(folder: Path, contents: Mapping[str, Sequence[Row]]) -> Path:
    for name, rows in contents.items():
        lines = ["\t".join(COLUMNS[name].split()), *("\t".join(row) for row in rows)]
        (folder / f"{name}.csv").write_bytes("".join(line + "\n" for line in lines).encode())
    return folder


CONTENT: dict[str, list[Row]] = {
    "CONCEPT": [
        concept("312327", "Heart attack", "X", "1"),
        concept("321588", "Heart disease", "X", "2"),
        concept("78162", NAMES["X:3"][0], "X", "3"),
        concept("9999999", "obsolete coronary", "X", "4", standard="", invalid="U"),
    ],
    "CONCEPT_SYNONYM": [
        ("312327", "Myocardial infarction", ENGLISH),
        ("312327", "Heart attack", ENGLISH),
        ("321588", "Cardiopathy", ENGLISH),
        ("312327", "MI", ENGLISH),
        ("78162", NAMES["X:3"][1], "0"),
    ],
    "CONCEPT_RELATIONSHIP": [
        link("312327", "Is a", "321588"),
        link("321588", "Subsumes", "312327"),
        link("321588", "Is a", "312327", "D"),
        link("9999999", "Concept replaced by", "312327"),
        link("9999999", "Maps to", "312327"),
        link("312327", "Maps to", "312327"),
    ],
}


def _write(folder: Path) -> str:
    return str(write_omop(folder, CONTENT))


SAMPLES = {
    "omop": Sample(
        "omop",
        _write,
        {"codes": "vocabulary:code"},
        "CONCEPT.csv",
        2,
        has_relations=True,
        has_definitions=False,
        has_types=True,
        has_obsolete=True,
    )
}
