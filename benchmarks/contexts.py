"""Annotated mentions with the documents that they stand in, as a table to train and measure rerankers on.

    python benchmarks/contexts.py FOLDER --split train -o train.csv

``FOLDER`` and ``--split`` are as of ``mentions.py``: a corpus in PubTator format and BioSyn's queries of it. Columns:
``mention`` as the query has it (short forms written out, spelling put right), ``concept_id``, ``context``: title and
abstract, with the mention marked and in the query's form. Mentions without a query and composite ones are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from mentions import align, find_file
from onoma.benchmarks.biosyn import read_queries


def main() -> None:
    """Read and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds the corpus and BioSyn's queries")
    parser.add_argument("--split", default="dev", help="part of the names of both files (default: dev)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="a .csv")
    options = parser.parse_args()
    queries = read_queries(find_file(options.folder, options.split, queries=True))
    rows = []
    for mention in align(find_file(options.folder, options.split, queries=False), queries):
        if mention.query is None or len(mention.query.parts) != 1:
            continue
        before, after = mention.document[: mention.start], mention.document[mention.start + len(mention.text) :]
        rows.append(
            {
                "mention": mention.query.text,
                "concept_id": "|".join(sorted(mention.query.gold)),
                "context": f"{before}<tgt> {mention.query.text} </tgt>{after}",
            }
        )
    table = pl.DataFrame(rows)
    table.write_csv(options.output)
    n_meanings = pl.col("concept_id").n_unique().over("mention")
    ambiguous = table.filter(n_meanings > 1).height
    print(f"{options.output}: {len(rows):,} mentions, {ambiguous:,} of a text that is annotated in several ways")


if __name__ == "__main__":
    main()
