"""What can be set about a training run, and the recipes that set it.

A recipe is a TOML file: a ``description`` and values for fields of `TrainingConfig`. Those shipped with
Onoma lie in ``training/recipes``; a path to a file of your own works in their place. Resolution order:
defaults < recipe < ``--set key=value``.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from onoma.errors import ConfigError, did_you_mean
from onoma.pairs import parse_languages
from onoma.terminology import normalise
from onoma.training.config_parts import (
    Batches,
    Everything,
    HardTriplets,
    Loss,
    Mining,
    MultiSimilarity,
    NeighbourBatches,
    RandomBatches,
    Tuning,
)
from onoma.training.shipped import read_shipped, shipped_names


class TrainingConfig(BaseModel):
    """Settings of one self-alignment run (SapBERT, Liu et al. 2021).

    Exactly one of ``steps``, ``epochs`` and ``minutes`` says how long to train.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    base: str = Field("all-MiniLM-L6-v2", description="encoder to start from: folder, catalogue name or hub id")
    pooling: Literal["cls", "mean", "mean-nospec", "mean-all"] | None = Field(
        None,
        description="which token vectors make the name's vector: that of [CLS], the mean of all, of all but special "
        "tokens, of all and padding; unset: as the base encoder does",
    )

    tuning: Tuning = Field(default_factory=Everything, description="what is trained: all, adapter or lora")

    normalisation: str = Field("sapbert", description="preset of name normalisation, for training and use alike")
    languages: tuple[str, ...] | None = Field(
        None, description="BCP 47 languages to train on: en, or en+es, or all; unset: all"
    )
    include_suppressed: bool = Field(
        False, description="train on suppressed names too, as the papers' preparation of the UMLS did"
    )
    max_pairs_per_concept: int = Field(50, ge=1, description="random cap of synonym pairs per concept")
    ambiguous: Literal["keep", "mark", "drop"] = Field(
        "keep",
        description="equal names of different concepts: negatives (keep), never negatives (mark), left out (drop)",
    )
    max_tokens: int = Field(25, ge=3, le=512, description="longer names are cut, special tokens included")

    batch_pairs: int = Field(256, ge=2, description="pairs per step; a batch has twice as many names")
    batches: Batches = Field(
        default_factory=RandomBatches, description="which pairs come together: random, or neighbours"
    )
    accumulation: int = Field(1, ge=1, description="batches whose gradients are averaged for one optimiser step")
    chunk_names: int | None = Field(
        None,
        ge=2,
        description="names encoded at a time, for large batches in little memory: each is encoded twice, and the "
        "gradient is that of the whole batch (GradCache); unset: all at once",
    )
    steps: int | None = Field(None, ge=1, description="optimiser steps")
    epochs: float | None = Field(None, gt=0, description="passes over the pairs")
    minutes: float | None = Field(
        None, gt=0, description="wall-clock budget: the number of steps is set from the speed measured at the start"
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
        (), description="also train the first so many numbers of each vector, e.g. [64, 128]; unset: whole vectors only"
    )

    learning_rate: float = Field(2e-5, gt=0, description="of AdamW, at its highest")
    schedule: Literal["constant", "linear"] = Field(
        "constant", description="after warm-up: constant, or linear to zero"
    )
    warmup_steps: int = Field(0, ge=0, description="steps of linear warm-up")
    weight_decay: float = Field(0.01, ge=0, description="of AdamW")
    decay_all: bool = Field(False, description="decay biases and layer norms too, as the released SapBERT code does")
    max_gradient_norm: float | None = Field(None, gt=0, description="clip the gradient's norm; unset: no clipping")
    dropout: float | None = Field(None, ge=0, lt=1, description="unset: as in the base encoder")
    average: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="keep a moving average of the weights with this decay (0.999), evaluate and save it; unset: no",
    )
    precision: Literal["auto", "bf16", "fp16", "fp32"] = Field(
        "auto", description="of the forward pass; auto: bf16 where the processor multiplies it natively"
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: the first GPU if there is one")

    checkpoint_minutes: float = Field(5.0, gt=0, description="time between checkpoints")
    checkpoint_steps: int | None = Field(None, ge=1, description="also after so many steps; unset: by time only")

    evaluate_steps: int | None = Field(
        None, ge=1, description="steps between evaluations on development data; unset: a tenth of the run"
    )
    keep: Literal["last", "best"] = Field(
        "last", description="which weights are saved: of the last step, or those best on development data"
    )
    patience: int | None = Field(
        None, ge=1, description="stop after so many evaluations without a better one; unset: train to the end"
    )
    seed: int = Field(0, ge=0, description="of pairs, batches and dropout")

    @field_validator("languages", mode="before")
    @classmethod
    def _language_set(cls, value: Any) -> Any:
        if isinstance(value, str):
            return parse_languages(value)
        return tuple(value) if isinstance(value, list) else value

    @field_validator("normalisation")
    @classmethod
    def _known_preset(cls, value: str) -> str:
        normalise("", value)
        return value

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

    @model_validator(mode="after")
    def _neighbours_fit(self) -> TrainingConfig:
        if isinstance(self.batches, NeighbourBatches) and self.batches.neighbours >= self.batch_pairs:
            raise ValueError(
                f"a pair and its {self.batches.neighbours} neighbours do not fit into a batch of {self.batch_pairs} "
                "pairs; set batches.neighbours below batch_pairs"
            )
        return self

    @model_validator(mode="after")
    def _one_length(self) -> TrainingConfig:
        given = [name for name in ("steps", "epochs", "minutes") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"exactly one of steps, epochs and minutes must be set; {' and '.join(given) if given else 'none'} is"
            )
        return self


class Recipe(BaseModel):
    """A named configuration with a sentence about it."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    config: TrainingConfig


def recipe_names() -> list[str]:
    """Names of the recipes shipped with Onoma.

    Example:
        >>> "sapbert-paper" in recipe_names()
        True
    """
    return shipped_names("recipe")


def load_recipe(name: str, overrides: Mapping[str, str] | None = None) -> Recipe:
    """Load a recipe by name or path and apply ``key=value`` overrides.

    Args:
        name: A shipped recipe, or the path of a ``.toml`` file.
        overrides: Values as text, in TOML or plain words (``"5e-5"``, ``"true"``, ``"cls"``, ``"none"``); a key with a
            dot is a setting of a part (``loss.scale``).
            Setting one of ``steps``, ``epochs`` and ``minutes`` unsets the other two.

    Raises:
        InputError: no such recipe, or the file is not TOML.
        ConfigError: an unknown key or a value that it cannot have.

    Example:
        >>> load_recipe("sapbert-paper", {"learning_rate": "5e-5", "steps": "100"}).config.learning_rate
        5e-05
    """
    values = read_shipped("recipe", name)
    description = str(values.pop("description", ""))
    if overrides:
        given = dict(overrides)
        if given.keys() & _LENGTHS:
            for length in _LENGTHS:
                values.pop(length, None)
        for key, text in sorted(given.items(), key=lambda item: "." in item[0]):  # a part before its settings
            _set(values, key, _parse(text))
    return Recipe(name=Path(name).stem, description=description, config=resolve_config(values, source=name))


_LENGTHS = {"steps", "epochs", "minutes"}
_PARTS = {"tuning", "batches", "mining", "loss"}


def resolve_config(values: Mapping[str, Any], *, source: str = "training settings") -> TrainingConfig:
    """Validate settings; `ConfigError` names the key, what it may be, and the nearest known key."""
    for key in values:
        if key not in TrainingConfig.model_fields:
            raise ConfigError(
                f"{source}: there is no setting '{key}'.{did_you_mean(key, TrainingConfig.model_fields)} "
                f"Known: {', '.join(sorted(TrainingConfig.model_fields))}."
            )
    try:
        # TOML has dates, which are words here: base = 2024-05-01 is a folder.
        return TrainingConfig.model_validate_json(json.dumps(dict(values), default=str))
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            key = ".".join(str(part) for part in problem["loc"])
            if problem["type"] == "extra_forbidden":
                known = _fields_of_part(str(problem["loc"][0]), str(problem["loc"][1]))
                lines.append(
                    f"{problem['loc'][0]} = {problem['loc'][1]} has no setting '{problem['loc'][-1]}'."
                    f"{did_you_mean(str(problem['loc'][-1]), known)} Known: {', '.join(known) or 'none'}"
                )
                continue
            if problem["type"] == "union_tag_invalid":
                context = problem["ctx"]
                names = [name.strip(" '") for name in str(context["expected_tags"]).split(",")]
                lines.append(
                    f"{key}: there is no '{context['tag']}'.{did_you_mean(str(context['tag']), names)} "
                    f"Known: {', '.join(names)}"
                )
                continue
            found = f" (found {problem['input']!r})" if key else ""
            lines.append(f"{key + ': ' if key else ''}{problem['msg'].removeprefix('Value error, ')}{found}")
        raise ConfigError(f"{source}: " + "; ".join(lines) + ".") from None


def settings_of(config: TrainingConfig) -> list[tuple[str, str, str]]:
    """(key, value, description) of every setting as ``--set`` takes them, those of mining and loss with a dot."""
    rows: list[tuple[str, str, str]] = []
    for key, field in TrainingConfig.model_fields.items():
        value = getattr(config, key)
        if isinstance(value, BaseModel):
            rows.append((key, value.model_dump()["name"], field.description or ""))
            rows += [
                (f"{key}.{name}", _shown(getattr(value, name)), part.description or "")
                for name, part in type(value).model_fields.items()
                if name != "name"
            ]
        else:
            rows.append((key, _shown(value), field.description or ""))
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return str(list(value)) if value and isinstance(value[0], int) else "+".join(value)
    return "" if value is None else str(value)


def _fields_of_part(part: str, name: str) -> list[str]:
    """Settings of a loss or a miner by its name."""
    choice = getattr(resolve_config({"steps": 1, part: name}), part)
    return [field for field in type(choice).model_fields if field != "name"]


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    part, dot, name = key.partition(".")
    if not dot or part not in _PARTS:
        values[key] = value
        return
    former = values.get(part, TrainingConfig.model_fields[part].get_default(call_default_factory=True).name)
    values[part] = {**({"name": former} if isinstance(former, str) else former), name: value}


def _parse(text: str) -> Any:
    """Text of ``--set`` to a value: a TOML value where it is one, else the words themselves."""
    if text.lower() in {"none", "null", ""}:
        return None
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
