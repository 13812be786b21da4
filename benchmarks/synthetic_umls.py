"""Write a UMLS-format release of any size, as awkward in shape as the real one and free of any licence.

    python benchmarks/synthetic_umls.py OUT --atoms 17000000

Names are invented words. What matters for speed and memory is as in UMLS 2020AA: four atoms a concept on average, some
with hundreds; seven atoms in ten English; the same name again in other case or from another source; one name under
several concepts; suppressed atoms; some names not ASCII; relations given in both directions. The same arguments write
the same bytes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import polars as pl

ATOMS_PER_CONCEPT = 4.0
RELATIONS_PER_ATOM = 0.6
CONCEPTS_AT_A_TIME = 100_000
LANGUAGES = {"ENG": 0.70, "SPA": 0.09, "FRE": 0.05, "JPN": 0.05, "POR": 0.04, "GER": 0.04, "RUS": 0.03}
SOURCES = ("SNOMEDCT_US", "MSH", "NCI", "RXNORM", "ICD10CM", "MDR", "CHV", "OMIM", "LNC", "HPO")
TERM_TYPES = ("PT", "SY", "AB", "FN", "LLT", "ET", "IN")
RELATIONS = (
    ("PAR", "inverse_isa", "CHD", "isa"),
    ("RO", "finding_site_of", "RO", "has_finding_site"),
    ("SY", "", "SY", ""),
)
SEMANTIC_TYPES = (("T047", "Disease or Syndrome"), ("T121", "Pharmacologic Substance"), ("T033", "Finding"))
SYLLABLES = (
    "ba be bi co car cy da de di en fo ga hem i ka lo ly ma me mi my na ne no o pa pe phy ra re ro sa si ta te ti to u "
    "va ze"
)


def write_release(folder: Path, *, n_atoms: int, seed: int = 0) -> dict[str, int]:
    """Write MRCONSO, MRSTY, MRREL and MRDEF; return how many rows each has, and how many concepts there are."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    words = _words(rng, 40_000)
    n_concepts = max(round(n_atoms / ATOMS_PER_CONCEPT), 1)
    sizes = _sizes(rng, n_concepts, n_atoms)
    counts = {"MRCONSO": 0, "MRSTY": 0, "MRREL": 0, "MRDEF": 0}
    with (
        (folder / "MRCONSO.RRF").open("wb") as conso,
        (folder / "MRSTY.RRF").open("wb") as types,
        (folder / "MRREL.RRF").open("wb") as relations,
        (folder / "MRDEF.RRF").open("wb") as definitions,
    ):
        for start in range(0, n_concepts, CONCEPTS_AT_A_TIME):
            concepts = np.arange(start, min(start + CONCEPTS_AT_A_TIME, n_concepts))
            counts["MRCONSO"] += _atoms(conso, rng, words, concepts, sizes[concepts], counts["MRCONSO"])
            counts["MRSTY"] += _types(types, rng, concepts)
            n_relations = round(RELATIONS_PER_ATOM * int(sizes[concepts].sum()) / 2)
            counts["MRREL"] += _relations(relations, rng, concepts, n_relations, n_concepts, counts["MRREL"])
            counts["MRDEF"] += _definitions(definitions, rng, words, concepts)
    return {**counts, "concepts": n_concepts}


def _words(rng: np.random.Generator, n_words: int) -> pl.Series:
    syllables = np.array(SYLLABLES.split())
    parts = pl.DataFrame({f"s{i}": syllables[rng.integers(0, len(syllables), n_words)] for i in range(4)})
    n_syllables = rng.integers(2, 5, n_words)
    kept = [pl.when(pl.lit(pl.Series(n_syllables > i))).then(pl.col(f"s{i}")).otherwise(pl.lit("")) for i in range(4)]
    words = parts.select(pl.concat_str(kept)).to_series()
    accented = words.str.replace("e", "é", literal=True)
    return words.zip_with(pl.Series(rng.random(n_words) > 0.02), accented)


def _sizes(rng: np.random.Generator, n_concepts: int, n_atoms: int) -> npt.NDArray[np.int64]:
    """Atoms of each concept: many of one or two, a few of hundreds; the sum is ``n_atoms``."""
    sizes: npt.NDArray[np.int64] = np.minimum(np.ceil(rng.pareto(1.9, n_concepts) * 3.2 + 0.2), 800).astype(np.int64)
    sizes = np.maximum((sizes * (n_atoms / sizes.sum())).astype(np.int64), 1)
    difference = n_atoms - int(sizes.sum())
    while difference > 0:
        chosen = rng.integers(0, n_concepts, difference)
        np.add.at(sizes, chosen, 1)
        difference = 0
    while difference < 0:
        large = np.flatnonzero(sizes > 1)
        cut = rng.permutation(large)[:-difference]
        sizes[cut] -= 1
        difference += len(cut)
    return sizes


def _texts(rng: np.random.Generator, words: pl.Series, n_names: int, most_words: int = 6) -> pl.Series:
    n_words = np.minimum(rng.geometric(0.33, n_names), most_words)
    frequency = (rng.random((most_words, n_names)) ** 2 * len(words)).astype(np.int64)  # some words are common
    columns = [words.gather(frequency[i]).alias(str(i)) for i in range(most_words)]
    columns = [column.set(pl.Series(n_words <= i), None) for i, column in enumerate(columns)]
    return pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)).to_series()


def _cuis(rows: npt.NDArray[np.int64]) -> pl.Series:
    return "C" + pl.Series(rows + 10_000_000).cast(pl.String).str.slice(1)


def _pick(rng: np.random.Generator, values: tuple[str, ...], n: int, p: list[float] | None = None) -> pl.Series:
    return pl.Series(values).gather(rng.choice(len(values), n, p=p))


def _atoms(
    file: BinaryIO,
    rng: np.random.Generator,
    words: pl.Series,
    concepts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    n_before: int,
) -> int:
    n = int(sizes.sum())
    owner = np.repeat(concepts, sizes)
    is_first = np.concatenate([[True], owner[1:] != owner[:-1]])
    texts = _texts(rng, words, n)
    again = pl.Series((rng.random(n) < 0.30) & ~is_first)  # the name before, from another source or in other case
    repeated = texts.shift(1)
    repeated = repeated.str.to_uppercase().zip_with(pl.Series(rng.random(n) < 0.3), repeated)
    texts = repeated.zip_with(again, texts).fill_null("x")
    atom = (pl.Series(np.arange(n_before, n_before + n)) + 100_000_000).cast(pl.String).str.slice(1)
    code = pl.Series(owner % 999_983).cast(pl.String)
    mark = pl.Series(is_first)
    empty = pl.Series([""]).new_from_index(0, n)
    frame = pl.DataFrame(
        {
            "CUI": _cuis(owner),
            "LAT": _pick(rng, tuple(LANGUAGES), n, list(LANGUAGES.values())),
            "TS": pl.Series(["P"]).new_from_index(0, n).zip_with(mark, pl.Series(["S"]).new_from_index(0, n)),
            "LUI": "L" + atom,
            "STT": pl.Series(["PF"]).new_from_index(0, n),
            "SUI": "S" + atom,
            "ISPREF": pl.Series(["Y"]).new_from_index(0, n).zip_with(mark, pl.Series(["N"]).new_from_index(0, n)),
            "AUI": "A" + atom,
            "SAUI": empty,
            "SCUI": code,
            "SDUI": empty,
            "SAB": _pick(rng, SOURCES, n),
            "TTY": _pick(rng, TERM_TYPES, n),
            "CODE": code,
            "STR": texts,
            "SRL": pl.Series(["0"]).new_from_index(0, n),
            "SUPPRESS": _pick(rng, ("N", "O", "Y", "E"), n, [0.92, 0.04, 0.03, 0.01]),
            "CVF": empty,
            "END": empty,
        }
    )
    return _write(file, frame)


def _types(file: BinaryIO, rng: np.random.Generator, concepts: npt.NDArray[np.int64]) -> int:
    chosen = rng.integers(0, len(SEMANTIC_TYPES), len(concepts))
    frame = pl.DataFrame(
        {
            "CUI": _cuis(concepts),
            "TUI": pl.Series([tui for tui, _ in SEMANTIC_TYPES]).gather(chosen),
            "STN": pl.Series(["B2.2.1.2.1"]).new_from_index(0, len(concepts)),
            "STY": pl.Series([name for _, name in SEMANTIC_TYPES]).gather(chosen),
            "ATUI": "AT" + pl.Series(concepts).cast(pl.String),
            "CVF": pl.Series([""]).new_from_index(0, len(concepts)),
            "END": pl.Series([""]).new_from_index(0, len(concepts)),
        }
    )
    return _write(file, frame)


def _relations(
    file: BinaryIO, rng: np.random.Generator, concepts: npt.NDArray[np.int64], n: int, n_concepts: int, n_before: int
) -> int:
    first, second = _cuis(rng.choice(concepts, n)), _cuis(rng.integers(0, n_concepts, n))
    kind = rng.integers(0, len(RELATIONS), n)
    number = n_before
    for head, tail, column in ((first, second, 0), (second, first, 2)):
        empty = pl.Series([""]).new_from_index(0, n)
        cui = pl.Series(["CUI"]).new_from_index(0, n)
        source = _pick(rng, SOURCES, n)
        frame = pl.DataFrame(
            {
                "CUI1": head,
                "AUI1": empty,
                "STYPE1": cui,
                "REL": pl.Series([row[column] for row in RELATIONS]).gather(kind),
                "CUI2": tail,
                "AUI2": empty,
                "STYPE2": cui,
                "RELA": pl.Series([row[column + 1] for row in RELATIONS]).gather(kind),
                "RUI": "R" + (pl.Series(np.arange(number, number + n)) + 1_000_000_000).cast(pl.String),
                "SRUI": empty,
                "SAB": source,
                "SL": source,
                "RG": empty,
                "DIR": pl.Series(["Y"]).new_from_index(0, n),
                "SUPPRESS": pl.Series(["N"]).new_from_index(0, n),
                "CVF": empty,
                "END": empty,
            }
        )
        number += _write(file, frame)
    return number - n_before


def _definitions(file: BinaryIO, rng: np.random.Generator, words: pl.Series, concepts: npt.NDArray[np.int64]) -> int:
    defined = concepts[rng.random(len(concepts)) < 0.07]
    n = len(defined)
    empty = pl.Series([""]).new_from_index(0, n)
    frame = pl.DataFrame(
        {
            "CUI": _cuis(defined),
            "AUI": "A" + pl.Series(defined).cast(pl.String),
            "ATUI": "AT" + pl.Series(defined).cast(pl.String),
            "SATUI": empty,
            "SAB": _pick(rng, SOURCES, n),
            "DEF": _texts(rng, words, n) + ' is "' + _texts(rng, words, n) + '", in short.',
            "SUPPRESS": pl.Series(["N"]).new_from_index(0, n),
            "CVF": empty,
            "END": empty,
        }
    )
    return _write(file, frame)


def _write(file: BinaryIO, frame: pl.DataFrame) -> int:
    frame.write_csv(file, separator="|", include_header=False, quote_style="never", null_value="")
    return len(frame)


def main() -> None:
    """Write a release and say what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--atoms", type=int, default=17_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started = time.perf_counter()
    counts = write_release(arguments.out, n_atoms=arguments.atoms, seed=arguments.seed)
    size = sum(file.stat().st_size for file in arguments.out.glob("*.RRF"))
    print(f"{arguments.out}: {counts}, {size / 1e9:.2f} GB, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
