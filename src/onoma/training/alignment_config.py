"""Settings of self-alignment, and recipes with values for them.

A recipe is a TOML file: a ``description`` and values for fields of `TrainingConfig`. Those shipped with
Onoma are in ``training/recipes``; you can give the path of a file of your own instead.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal

from pydantic import Field, field_validator

from onoma.training.config_parts import (
    Batches,
    HardTriplets,
    Loss,
    Mining,
    MultiSimilarity,
    NeighbourBatches,
    RandomBatches,
)
from onoma.training.run_config import EncoderRunConfig
from onoma.training.settings import NamedSettings

SETTINGS_OF_PAIRS = ("languages", "include_suppressed", "max_pairs_per_concept", "ambiguous")
"""Settings of a recipe that say which pairs are made; `onoma.training.run.train_on_pairs` takes pairs as they are."""


class TrainingConfig(EncoderRunConfig):
    """Settings of one self-alignment run (SapBERT, Liu et al. 2021); `Recipe.load` takes those of a recipe.

    Raises:
        ConfigError: there is no such setting, or a value is not allowed.
    """

    include_suppressed: bool = Field(
        default=False, description="train on suppressed names too, as the papers' preparation of the UMLS did"
    )
    max_pairs_per_concept: int = Field(default=50, ge=1, description="random cap of synonym pairs per concept")
    ambiguous: Literal["keep", "mark", "drop"] = Field(
        default="keep",
        description="equal names of different concepts: negatives (keep), never negatives (mark), or left out (drop)",
    )

    batch_pairs: int = Field(default=256, ge=2, description="pairs per step; a batch has twice as many names")
    batches: Batches = Field(
        default_factory=RandomBatches, description="which pairs share a batch: random, or neighbours"
    )
    mining: Mining = Field(
        default_factory=HardTriplets,
        description="which pairs of a batch count: hard-triplet, multi-similarity, semi-hard, or all (no mining)",
    )
    loss: Loss = Field(
        default_factory=MultiSimilarity,
        description="multi-similarity, circle, info-nce, nca, lifted-structure, triplet or cosine",
    )
    matryoshka: tuple[int, ...] = Field(
        default=(),
        description="also train vectors cut to this many first numbers, e.g. [64, 128]; unset: whole vectors only",
    )

    @field_validator("matryoshka", mode="before")
    @classmethod
    def _widths(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("write the widths as a list: [64, 128]")
        if value is None or isinstance(value, int):
            return () if value is None else (value,)
        return tuple(value) if isinstance(value, list) else value

    @field_validator("matryoshka")
    @classmethod
    def _ascending_widths(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(width < 2 for width in value) or any(b <= a for a, b in itertools.pairwise(value)):
            raise ValueError("widths must be 2 or more, in ascending order, each once")
        return value

    def _check(self) -> None:
        super()._check()
        if isinstance(self.batches, NeighbourBatches) and self.batches.neighbours >= self.batch_pairs:
            raise ValueError(
                f"a pair and its {self.batches.neighbours} neighbours do not fit into a batch of {self.batch_pairs} "
                "pairs; set batches.neighbours below batch_pairs"
            )


class Recipe(NamedSettings[TrainingConfig]):
    """A recipe of self-alignment.

    `load` and `names` are those of `onoma.training.settings.NamedSettings`.

    Example:
        >>> Recipe.load("sapbert-paper", {"learning_rate": "5e-5", "steps": "100"}).config.learning_rate
        5e-05
    """

    kind = "recipe"
