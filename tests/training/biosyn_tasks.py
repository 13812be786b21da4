"""Small tasks for BioSyn: mentions of the organs of `tiny.WORDS`, and names to find for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from onoma.encoders import locate_tokenizer
from onoma.training.biosyn_config import BiosynConfig, BiosynRecipe
from onoma.training.biosyn_data import RankingData, ranking_data
from onoma.training.development import DevelopmentSet
from tiny import WORDS

NAMES = [
    (f"{word} {what}", f"D{number}") for number, word in enumerate(WORDS) for what in ("disease", "illness", "pain")
]
MENTIONS = [(f"{what} {word}", f"D{number}") for number, word in enumerate(WORDS) for what in ("bad", "sick", "odd")]


def tables(mentions: Sequence[tuple[str, str]] = MENTIONS, names: Sequence[tuple[str, str]] = NAMES) -> DevelopmentSet:
    return DevelopmentSet(
        "tiny",
        pl.DataFrame(mentions, schema=["mention", "concept_id"], orient="row"),
        pl.DataFrame(names, schema=["text", "concept_id"], orient="row"),
    )


def data_of(base: Path, data: DevelopmentSet) -> RankingData:
    return ranking_data(data, locate_tokenizer(base), normalisation="biosyn", max_tokens=16)


def config_for(base: Path, **changes: Any) -> BiosynConfig:
    values: dict[str, Any] = {
        "base": str(base),
        "steps": 10,
        "batch_queries": 5,
        "candidates": 6,
        "sparse_candidates": 3,
        "max_tokens": 16,
        "learning_rate": 1e-3,
        "dropout": 0.0,
        "precision": "fp32",
        "device": "cpu",
    }
    return BiosynConfig.model_validate({**values, **changes})


def recipe_of(config: BiosynConfig) -> BiosynRecipe:
    return BiosynRecipe(name="tiny", description="", config=config)


def write_lines(file: Path, rows: Sequence[tuple[str, str]]) -> Path:
    """Rows of (text, ids) as lines ``ids||text``."""
    file.write_text("".join(f"{ids}||{text}\n" for text, ids in rows), encoding="utf-8")
    return file
