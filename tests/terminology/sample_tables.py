"""The little ontology as CTD writes it, as JSON Lines, and as a folder of CSV files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from sample import DEFINITION, NAMES, Sample, write_text

from tiny import tarred

CTD_HEAD = """\
# The Comparative Toxicogenomics Database (CTD) - http://ctdbase.org/
#   Copyright 2012-2024 NC State University. All rights reserved.
# Report created: Tue Oct 29 10:41:05 EDT 2024
# Fields:
# {}
#
"""
CTD_FIELDS = ["DiseaseName", "DiseaseID", "AltDiseaseIDs", "Definition", "ParentIDs", "TreeNumbers",
              "ParentTreeNumbers", "Synonyms", "SlimMappings"]  # fmt: skip


def _ctd_rows() -> list[list[str]]:
    return [
        [names[0], code, "OMIM:1|MESH:D2" if code == "X:1" else "", DEFINITION if code == "X:1" else "",
         "X:2" if code == "X:1" else "", "C14.1/X1|C14.2", "", "|".join(names[1:]), "disease"]
        for code, names in NAMES.items()
    ]  # fmt: skip


def csv_text(rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


CTD_TSV = CTD_HEAD.format("\t".join(CTD_FIELDS)) + "".join("\t".join(row) + "\n" for row in _ctd_rows())
CTD_CSV = CTD_HEAD.format(",".join(CTD_FIELDS)) + csv_text(_ctd_rows())
JSONL = "".join(
    json.dumps({"code": code, "label": names[0], "aliases": names[1:], "kind": "disease", "note": {"x": 1}}) + "\n"
    for code, names in NAMES.items()
)
CSV_FOLDER: dict[str, list[tuple[str, ...]]] = {
    "concepts": [
        ("concept_id", "status", "replaced_by"),
        *((code, "active", "") for code in NAMES),
        ("X:4", "obsolete", "X:1"),
    ],
    "names": [
        ("note", "concept_id", "text", "language", "source", "term_type", "is_preferred", "is_suppressed"),
        *(
            ("", code, name, "en", "S", "SY", "true" if name == names[0] else "false", "false")
            for code, names in NAMES.items()
            for name in names
        ),
        ("", "X:4", "obsolete coronary", "en", "", "", "true", "true"),
    ],
    "semantic_types": [("concept_id", "semantic_type"), *((code, "disease") for code in (*NAMES, "X:4"))],
    "relations": [("head", "relation", "tail", "source"), ("X:1", "is_a", "X:2", "S")],
    "definitions": [("concept_id", "text", "source"), ("X:1", DEFINITION, "")],
}


def write_csv_folder(**changes: str) -> Callable[[Path], str]:
    """A writer of the folder; some files may hold another text."""

    def write(folder: Path) -> str:
        for name, rows in CSV_FOLDER.items():
            (folder / f"{name}.csv").write_bytes(changes.get(name, csv_text(rows)).encode())
        return str(folder)

    return write


def dump(*rows: tuple[str, ...]) -> str:
    """A file of a taxonomy dump."""
    return "".join("\t|\t".join(row) + "\t|\n" for row in rows)


_RANKED = {"X:1": "X:2", "X:2": "X:2", "X:3": "X:3"}
TAXONOMY = {
    "names.dmp": dump(
        *((code, name, "", "synonym" if place else "scientific name")
          for code, names in NAMES.items() for place, name in enumerate(names)),
    ),
    "nodes.dmp": dump(*((code, parent, "disease", "XX", "0", "") for code, parent in _RANKED.items())),
}  # fmt: skip


def _write_taxonomy(folder: Path) -> str:
    for name, text in TAXONOMY.items():
        (folder / name).write_bytes(text.encode())
    return str(folder)


def _write_taxonomy_tar(folder: Path) -> str:
    (folder / "taxdump.tar.gz").write_bytes(tarred(TAXONOMY))
    return str(folder / "taxdump.tar.gz")


UNIPROT = "".join(
    f"ID   X_{code[2:]}\nAC   {code};\nDE   RecName: Full={names[0]};\n"
    + "".join(f"DE   AltName: Full={name};\n" for name in names[1:])
    + "OS   disease.\nOX   NCBI_TaxID=9606;\nSQ   SEQUENCE\n     MEEP\n//\n"
    for code, names in NAMES.items()
)
_COLUMNS = {"id": "code", "name": "label,aliases", "semantic_type": "kind"}
SAMPLES = {
    "ctd-tsv": Sample("ctd", write_text("CTD_diseases.tsv", CTD_TSV), {}, "CTD_diseases.tsv", 7, True, True),
    "ctd-csv": Sample("ctd", write_text("CTD_diseases.csv", CTD_CSV), {}, "CTD_diseases.csv", 7, True, True),
    "jsonl": Sample("table", write_text("names.jsonl", JSONL), _COLUMNS, "names.jsonl", 1, has_types=True),
    "taxonomy": Sample(
        "taxonomy", _write_taxonomy, {}, "names.dmp", 1, has_relations=True, has_types=True, has_definitions=False
    ),
    "taxonomy-tar": Sample(
        "taxonomy", _write_taxonomy_tar, {}, has_relations=True, has_types=True, has_definitions=False
    ),
    "uniprot": Sample("uniprot", write_text("x.dat", UNIPROT), {}, "x.dat", 3, has_types=True),
    "csv-folder": Sample("csv", write_csv_folder(), {}, "names.csv", 2, True, True, True),
}
