"""Confidence in first answers, and from what confidence on there is an answer at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onoma.errors import ConfigError
from onoma.linking.calibration import Calibration
from onoma.linking.confidence_features import MentionEvidence, confidence_features
from onoma.linking.settings import LinkerSettings, Stage

TUNE = "Calibrate it: onoma linker tune (with annotated mentions) or onoma linker calibrate (without)."


@dataclass(frozen=True)
class Confidence:
    """A calibration and what it holds for.

    Attributes:
        calibration: What was fitted.
        stages: Those that were on: with others, scores mean something else.
        no_concept_below: Confidence that an answer needs where nothing else is asked for; unset: none.
    """

    calibration: Calibration
    stages: tuple[Stage, ...]
    no_concept_below: float | None

    @classmethod
    def of(cls, settings: LinkerSettings) -> Confidence | None:
        """What a linker's settings say; ``None`` if it is not calibrated.

        Raises:
            InputError: the calibration cannot be read.
        """
        if settings.calibration is None:
            return None
        calibration = Calibration.from_json(settings.calibration)
        return cls(calibration, settings.calibrated_stages, settings.no_concept_below)

    def of_answers(self, evidence: Sequence[MentionEvidence]) -> list[float]:
        """Probability that each mention's first answer is right."""
        confidences: list[float] = self.calibration.confidence(confidence_features(evidence)).tolist()
        return confidences


def threshold(confidence: Confidence | None, stages: tuple[Stage, ...], wished: float | None) -> float | None:
    """The confidence that an answer needs; ``None`` if none is needed.

    Args:
        confidence: Of the linker.
        stages: Those that are on.
        wished: What was asked for; unset: what the linker's settings say, if they hold for the stages.

    Raises:
        ConfigError: something was asked for that is no probability, or the linker is not calibrated for the stages.
    """
    if wished is None:
        return confidence.no_concept_below if confidence is not None and confidence.stages == stages else None
    if isinstance(wished, bool) or not isinstance(wished, int | float | np.number) or not 0 <= wished <= 1:
        raise ConfigError(f"no_concept_below is a confidence, from 0 to 1; found {wished!r}.")
    if confidence is None:
        raise ConfigError(f"this linker is not calibrated, so that no confidence can be asked for. {TUNE}")
    if confidence.stages != stages:
        raise ConfigError(
            f"this linker is calibrated for the stages {', '.join(confidence.stages)}, not for {', '.join(stages)}, so "
            f"that no confidence can be asked for. {TUNE}"
        )
    return wished
