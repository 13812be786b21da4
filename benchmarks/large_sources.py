"""Write large files of other formats than the UMLS, and import them: seconds and peak memory.

    python benchmarks/large_sources.py obo FILE --times 25
    python benchmarks/large_sources.py omop --concepts 9000000

``obo`` writes an ontology that you name so many times into one file, each time with other prefixes. ``omop`` writes
CONCEPT, CONCEPT_SYNONYM and CONCEPT_RELATIONSHIP with the proportions of a whole Athena download; names are invented
words. Files lie in a temporary folder (``--folder``), which needs 4 GB for the 9,000,000 concepts of such a download.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from onoma.terminology import import_terminology

_ROOTS = ["hydro", "chloro", "meta", "para", "ortho", "cardio", "neuro", "hepato", "myo", "osteo", "gastro", "dermato"]
_ENDINGS = ["pathy", "itis", "osis", "oma", "line", "zine", "mide", "pril", "statin", "tomy"]
_VOCABULARIES = ["NDC", "SNOMED", "RxNorm", "LOINC", "ICD10CM", "MeSH", "dm+d", "SPL", "ICD10PCS", "Read"]
_DOMAINS = ["Drug", "Condition", "Procedure", "Measurement", "Observation", "Device"]
_RELATIONS = (("Is a", "Subsumes"), ("Maps to", "Mapped from"), ("Has ingredient", "Ingredient of"))


def write_obo(source: Path, out: Path, *, times: int) -> None:
    """Write the frames of an OBO file several times, the prefixes of their ids numbered."""
    header, _, frames = source.read_text(encoding="utf-8").partition("\n[Term]\n")
    prefix = re.search(r"^id: (\w+):", frames, flags=re.MULTILINE)
    if prefix is None:
        sys.exit(f"{source}: the first term has no id with a prefix")
    with out.open("w", encoding="utf-8") as file:
        file.write(header)
        for number in range(times):
            file.write("\n[Term]\n" + frames.replace(f"{prefix[1]}:", f"{prefix[1]}{number}:"))


def write_omop(folder: Path, *, n_concepts: int, seed: int = 0) -> None:
    """Write the three tables: half as many synonyms as concepts, 4.5 times as many relationships."""
    rng = np.random.default_rng(seed)
    words = np.array([root + ending for root in _ROOTS for ending in _ENDINGS])

    def names(n_names: int, n_words: int) -> pl.Series:
        columns = [pl.Series(words[rng.integers(0, len(words), n_names)]) for _ in range(n_words)]
        numbers = pl.Series(rng.integers(0, 1_000_000, n_names)).cast(pl.String)
        return pl.select(pl.concat_str([*columns, numbers], separator=" ")).to_series()

    def one_of(values: list[str], n_values: int) -> pl.Series:
        return pl.Series(np.array(values)[rng.integers(0, len(values), n_values)])

    ids = np.arange(n_concepts) * 5 + 1
    dates = {"valid_start_date": pl.lit("19700101"), "valid_end_date": pl.lit("20991231")}
    tables = {
        "CONCEPT": pl.DataFrame(
            {
                "concept_id": ids,
                "concept_name": names(n_concepts, 5),
                "domain_id": one_of(_DOMAINS, n_concepts),
                "vocabulary_id": one_of(_VOCABULARIES, n_concepts),
                "concept_class_id": one_of(_DOMAINS, n_concepts),
                "standard_concept": one_of(["S", "", ""], n_concepts),
                "concept_code": ids + 10_000_000,
                "invalid_reason": one_of(["", "", "", "", "D"], n_concepts),
            }
        ).with_columns(**dates)
    }
    n_synonyms, n_facts = n_concepts // 2, round(2.25 * n_concepts)
    tables["CONCEPT_SYNONYM"] = pl.DataFrame(
        {
            "concept_id": rng.choice(ids, n_synonyms),
            "concept_synonym_name": names(n_synonyms, 4),
            "language_concept_id": one_of(["4180186", "4180186", "4182511"], n_synonyms),
        }
    )
    heads, tails, kinds = rng.choice(ids, n_facts), rng.choice(ids, n_facts), rng.integers(0, len(_RELATIONS), n_facts)
    tables["CONCEPT_RELATIONSHIP"] = pl.concat(
        pl.DataFrame(
            {
                "concept_id_1": first,
                "concept_id_2": second,
                "relationship_id": np.array([pair[side] for pair in _RELATIONS])[kinds],
            }
        )
        for side, (first, second) in enumerate(((heads, tails), (tails, heads)))
    ).with_columns(**dates, invalid_reason=pl.lit(""))
    for name, table in tables.items():
        table.write_csv(folder / f"{name}.csv", separator="\t", quote_style="never")


def main() -> None:
    """Write, import, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the temporary folder shall lie")
    formats = parser.add_subparsers(dest="format", required=True)
    obo = formats.add_parser("obo")
    obo.add_argument("source", type=Path, help="an .obo file")
    obo.add_argument("--times", type=int, default=25)
    omop = formats.add_parser("omop")
    omop.add_argument("--concepts", type=int, default=9_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        source = folder / "athena" if arguments.format == "omop" else folder / "large.obo"
        if arguments.format == "omop":
            source.mkdir()
            write_omop(source, n_concepts=arguments.concepts)
        else:
            write_obo(arguments.source, source, times=arguments.times)
        size = sum(file.stat().st_size for file in ([source] if source.is_file() else source.iterdir()))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        report = import_terminology(arguments.format, source, folder / "terminology")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(report)
    print(f"{size / 1e9:.2f} GB of text: {report.seconds:.1f} s, peak memory {peak / 1e6:.2f} GB", end="")
    print(f" (writing the files took {before / 1e6:.2f} GB)")


if __name__ == "__main__":
    main()
