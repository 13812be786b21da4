"""What annotated mentions are worth: all of them become names, whatever form the codes of their concepts have."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from onoma.linking import build_linker
from tiny import make_terminology

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import corrections


def test_mentions_become_names_of_the_concepts_that_they_mean(tmp_path: Path) -> None:
    concepts = {"D1": ["cold"], "D2|7": ["flu"], "7|8": ["gout"], "K|9": ["ague"]}
    make_terminology(tmp_path / "t", concepts)
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    rows = [("coryza", "D1"), ("grippe", "D2"), ("seven", "7"), ("both", "D1|8"), ("shivers", "K|9"), ("other", "D9")]
    mentions = pl.DataFrame([*rows, *rows], schema=["mention", "concept_id"], orient="row")
    knowing = corrections.with_names(tmp_path / "linker", tmp_path / "t", mentions, tmp_path)
    asked = [mention for mention, _ in rows]
    answers = zip(asked, knowing.link(asked), strict=True)
    assert {
        mention: {link.concept_id for link in links if link.matched_name == mention} for mention, links in answers
    } == {
        "coryza": {"D1"},
        "grippe": {"D2|7"},
        "seven": {"D2|7", "7|8"},
        "both": {"D1", "7|8"},
        "shivers": {"K|9"},
        "other": set(),
    }
