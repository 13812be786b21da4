"""Relationships of SNOMED CT and OMOP: their names, and which lead from a retired concept to its successor."""

from __future__ import annotations

import re

import polars as pl


def name_of_relationship(words: str) -> str:
    """The name of a relation from its words: "Finding site" to "finding_site".

    Example:
        >>> name_of_relationship("Is a")
        'is_a'
    """
    return re.sub(r"\W+", "_", words.lower()).strip("_")


def clear_successors(links: pl.DataFrame) -> pl.DataFrame:
    """The one successor of each retired concept, where there is just one.

    Args:
        links: ``old``, ``new``, ``rank``: what is said to replace what; of several kinds of link the one of lowest rank
            that names a single successor counts.

    Returns:
        ``old``, ``new``, ``rank``, each ``old`` once.
    """
    return (
        links.filter(pl.col("old") != pl.col("new"))
        .group_by("old", "rank")
        .agg(pl.col("new").first(), n_new=pl.col("new").n_unique())
        .filter(pl.col("n_new") == 1)
        .sort("old", "rank")
        .unique("old", keep="first", maintain_order=True)
        .select("old", "new", "rank")
    )
