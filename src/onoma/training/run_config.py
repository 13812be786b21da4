"""Settings of every training run, whatever it trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from onoma.errors import ConfigError
from onoma.pairs import parse_languages
from onoma.terminology import normalise
from onoma.training.config_parts import Everything, Tuning
from onoma.training.settings import problems_in_words


class RunConfig(BaseModel):
    """Settings that all kinds of training share; each kind has a subclass of its own.

    Exactly one of ``steps``, ``epochs`` and ``minutes`` says how long to train.

    Raises:
        ConfigError: there is no such setting, or a value is not allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    base: str = Field(
        default="all-MiniLM-L6-v2", min_length=1, description="encoder to start from: folder, catalogue name or hub id"
    )
    pooling: Literal["cls", "mean", "mean-nospec", "mean-all"] | None = Field(
        default=None,
        description="which token vectors make the name's vector: cls ([CLS]), mean (of all), mean-nospec (of all but "
        "special tokens), mean-all (of all and padding); unset: as in the base encoder",
    )

    tuning: Tuning = Field(default_factory=Everything, description="what is trained: all, layers, adapter or lora")

    normalisation: str = Field(
        default="sapbert", description="preset of name normalisation, for training and use alike"
    )
    languages: tuple[str, ...] | None = Field(
        default=None, description="BCP 47 languages to train on: en, or en+es, or all; unset: all"
    )
    max_tokens: int = Field(
        default=25, ge=3, le=512, description="longest name in tokens, special ones included; longer ones are truncated"
    )

    accumulation: int = Field(
        default=1, ge=1, description="batches whose gradients are averaged for one optimiser step"
    )
    chunk_names: int | None = Field(
        default=None,
        ge=2,
        description="names encoded at a time, for large batches in little memory: each is encoded twice, and the "
        "gradient is that of the whole batch (GradCache); unset: all at once",
    )
    steps: int | None = Field(default=None, ge=1, description="optimiser steps")
    epochs: float | None = Field(default=None, gt=0, description="passes over the training data")
    minutes: float | None = Field(
        default=None,
        gt=0,
        description="wall-clock budget: the number of steps is set from the speed measured at the start",
    )

    learning_rate: float = Field(default=2e-5, gt=0, description="highest learning rate of AdamW")
    schedule: Literal["constant", "linear"] = Field(
        default="constant", description="after warm-up: constant, or linear to zero"
    )
    warmup_steps: int = Field(default=0, ge=0, description="steps of linear warm-up")
    weight_decay: float = Field(default=0.01, ge=0, description="weight decay of AdamW")
    max_gradient_norm: float | None = Field(
        default=None, gt=0, description="clip the gradient's norm; unset: no clipping"
    )
    dropout: float | None = Field(default=None, ge=0, lt=1, description="dropout; unset: as in the base encoder")
    average: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="decay of a moving average of the weights, e.g. 0.999 (at first (1 + t) / (10 + t)), which is "
        "evaluated and saved; unset: none",
    )
    precision: Literal["auto", "bf16", "fp16", "fp32"] = Field(
        default="auto", description="precision of the forward pass; auto: bf16 if the processor multiplies it natively"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="where to train; auto: the first GPU, if any"
    )
    compile: bool = Field(
        default=False,
        description="GPU only: compile layers (torch.compile) at each start; for families that run packed: "
        "BERT, RoBERTa, XLM-R, CamemBERT, MPNet, DistilBERT",
    )

    checkpoint_minutes: float = Field(default=5.0, gt=0, description="time between checkpoints")
    checkpoint_steps: int | None = Field(
        default=None, ge=1, description="also save one after this many steps; unset: by time only"
    )

    evaluate_steps: int | None = Field(
        default=None, ge=1, description="steps between evaluations on development data; unset: a tenth of the run"
    )
    keep: Literal["last", "best"] = Field(
        default="last", description="weights to save: those of the last step, or the best on development data"
    )
    patience: int | None = Field(
        default=None, ge=1, description="stop after this many evaluations without improvement; unset: train to the end"
    )
    seed: int = Field(default=0, ge=0, lt=2**64, description="seed of sampled training data, batches and dropout")

    @field_validator("languages", mode="before")
    @classmethod
    def _language_set(cls, value: Any) -> Any:
        if isinstance(value, str):
            return parse_languages(value)
        if isinstance(value, list | tuple) and not value:
            raise ValueError("no language is named; leave it unset for all")
        return tuple(value) if isinstance(value, list) else value

    @field_validator("normalisation")
    @classmethod
    def _known_preset(cls, value: str) -> str:
        normalise("", value)
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, values: Any, check: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """The context of ``info`` is where the settings are from."""
        try:
            config = check(values)
            config._check()
        except ValueError as error:  # pydantic's own is one
            problems = problems_in_words(cls, error) if isinstance(error, ValidationError) else str(error)
            raise ConfigError(f"{info.context or 'training settings'}: {problems}.") from None
        return config

    def _check(self) -> None:
        """Whether the settings fit one another.

        Raises:
            ValueError: they do not.
        """
        given = [name for name in ("steps", "epochs", "minutes") if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"{' and '.join(given)} are" if given else "none is"
            raise ValueError(f"exactly one of steps, epochs and minutes must be set; {found}")

    def to_publish(self) -> dict[str, Any]:
        """The settings to publish with what is trained: for a base in a folder only its name, no path of a user's."""
        return {**self.model_dump(mode="json"), "base": without_path(self.base)}


class EncoderRunConfig(RunConfig):
    """Settings of runs that train only an encoder, by AdamW."""

    base_share: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="share of the weights before training in those evaluated and saved; keeps more of what the base "
        "knows about other texts",
    )
    decay_all: bool = Field(
        default=False, description="decay biases and layer norms too, as the released SapBERT code does"
    )


def without_path(base: str) -> str:
    """What a base is called by what is trained from it: by the name of its folder, or as it is, if it is in none."""
    place = Path(base).expanduser()
    return place.resolve().name if place.is_absolute() or place.is_dir() else base
