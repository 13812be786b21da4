"""How a linker links: its stages and what was learned for them, in ``settings.json`` of its folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, model_validator

from onoma.errors import ConfigError, DamagedArtifactError, checked_path, first_line, one_of

SETTINGS_FILE = "settings.json"
Stage: TypeAlias = Literal["exact", "loose", "variants", "dense", "sparse", "prior", "rerank"]
"""What can be switched: look-up, more loosely; other ways to write a mention; search by vectors, by character n-grams;
how often concepts are meant; the cross-encoder."""
STAGES: tuple[Stage, ...] = get_args(Stage)
LOOK_UPS: tuple[Stage, ...] = ("exact", "loose")
SEARCHES: tuple[Stage, ...] = ("dense", "sparse")
_ORDERING: tuple[Stage, ...] = ("prior", "rerank")
DEFAULT_STAGES: tuple[Stage, ...] = ("exact", "variants", "dense")
"""Of a new linker with vectors."""


class LinkerSettings(BaseModel):
    """Settings of a linker; each has a default.

    Attributes:
        stages: Those that are on by default, in the order of `STAGES`.
        pool: If two searches are fused: how many of the best texts of each are candidates.
        weights: Of the searches' scores, learned, from 0, summing to 1. Unset: reciprocal ranks are fused.
        prior_weight: The weight of how often a concept is meant, learned (`onoma.linking.prior`). Unset: none.
        rerank_weight: Share of the cross-encoder in the final score, learned for this linker. Unset: the one that was
            chosen when the cross-encoder was trained.
        calibration: What `onoma.linking.calibration.Calibration.to_json` gave; unset: there is no confidence.
        calibrated_stages: The stages that it was fitted for: with others on, answers have no confidence.
        no_concept_below: Confidence below which a mention is answered with "no such concept".

    Raises:
        ConfigError: there is no such setting, or a value is not allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stages: tuple[Stage, ...] = DEFAULT_STAGES
    pool: int = Field(default=100, ge=1)
    weights: dict[Stage, float] | None = None
    prior_weight: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    rerank_weight: float | None = Field(default=None, ge=0, le=1)
    calibration: str | None = Field(default=None, repr=False)
    calibrated_stages: tuple[Stage, ...] = ()
    no_concept_below: float | None = Field(default=None, ge=0, le=1)

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, values: Any, check: ModelWrapValidatorHandler[LinkerSettings]) -> LinkerSettings:
        try:
            settings = check(values)
            settings._check()
        except ValueError as error:  # pydantic's own is one
            raise ConfigError(f"settings of a linker: {first_line(error)}.") from None
        return settings

    def _check(self) -> None:
        if self.stages != ordered_stages(self.stages):
            raise ValueError(f"stages must be in the order {', '.join(STAGES)}, each once, and one at least")
        if self.weights is not None:
            if set(self.weights) != set(SEARCHES) or min(self.weights.values()) < 0:
                raise ValueError(f"weights must be given for {' and '.join(SEARCHES)}, from 0")
            if not abs(sum(self.weights.values()) - 1) <= 1e-9:  # nor if one of them is NaN
                raise ValueError("weights must have the sum 1")
        if self.no_concept_below is not None and self.calibration is None:
            raise ValueError("no_concept_below is a confidence and needs a calibration")

    def save(self, folder: Path) -> None:
        """Write ``settings.json`` into ``folder``."""
        (folder / SETTINGS_FILE).write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def open(cls, folder: str | Path) -> LinkerSettings:
        """Read what `save` wrote.

        Raises:
            InputError: this is not a path.
            DamagedArtifactError: the file cannot be read.
        """
        file = checked_path(folder) / SETTINGS_FILE
        try:
            return cls.model_validate_json(file.read_text(encoding="utf-8"))
        except (ConfigError, ValueError) as error:
            reason = first_line(error)
            raise DamagedArtifactError(
                f"{file} cannot be read ({reason}). If a newer Onoma wrote it, update this one; else build the linker "
                "again."
            ) from None

    @property
    def look_ups(self) -> tuple[Stage, ...]:
        """Those of the stages that look a mention up, including by other spellings; none if none does."""
        if not any(stage in LOOK_UPS for stage in self.stages):
            return ()
        return tuple(stage for stage in self.stages if stage in (*LOOK_UPS, "variants"))

    def of_first_stages(self) -> LinkerSettings:
        """Look-up and searches alone, without what reorders or withholds their answers: prior, reranker, threshold."""
        stages = tuple(stage for stage in self.stages if stage not in _ORDERING)
        return self.replaced(stages=stages, no_concept_below=None)

    def replaced(self, **changes: Any) -> LinkerSettings:
        """These settings with some changed, checked.

        A calibration is dropped if other weights change its scores, unless ``changes`` has one.

        Raises:
            ConfigError: a value is not allowed.
        """
        changed = type(self).model_validate({**self.model_dump(), **changes})
        if "calibration" in changes or self._scores_as(changed):
            return changed
        without = {"calibration": None, "calibrated_stages": (), "no_concept_below": changes.get("no_concept_below")}
        return changed.replaced(**without)

    def _scores_as(self, other: LinkerSettings) -> bool:
        """Whether scores by the stages of the calibration are the same."""
        stages = self.calibrated_stages
        fused = (self.weights, self.pool) == (other.weights, other.pool) or not set(SEARCHES) <= set(stages)
        prior = self.prior_weight == other.prior_weight or "prior" not in stages
        return fused and prior and (self.rerank_weight == other.rerank_weight or "rerank" not in stages)


def ordered_stages(stages: Iterable[str]) -> tuple[Stage, ...]:
    """Stages in the order in which they run, each once.

    Raises:
        ConfigError: one is not a stage, or none is given.

    Example:
        >>> ordered_stages(["dense", "exact"])
        ('exact', 'dense')
    """
    if not isinstance(stages, Iterable):
        raise ConfigError(f"stages are some of {', '.join(STAGES)}; found {stages!r}.")
    wanted = {stages} if isinstance(stages, str) else set(stages)
    for stage in sorted(wanted - set(STAGES), key=str):
        one_of(stage, STAGES, "stage")
    if not wanted.intersection((*LOOK_UPS, *SEARCHES)):
        raise ConfigError("no stage that finds concepts is on: give one of exact, loose, dense, sparse.")
    return tuple(stage for stage in STAGES if stage in wanted)
