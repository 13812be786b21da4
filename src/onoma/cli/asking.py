"""Options for how a linker is asked: stages, filters, confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from onoma.cli.options import divided
from onoma.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onoma.linking import Linker
    from onoma.linking.settings import Stage

Stages = Annotated[
    str | None,
    typer.Option(
        metavar="STAGES",
        help="Stages to use, separated by commas: exact, loose, variants, dense, sparse, prior, rerank. Default: "
        "the linker's.",
    ),
]
SemanticTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--semantic-type",
        metavar="TYPE",
        help="Only concepts of this semantic type or UMLS group; may be repeated.",
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="SOURCE", help="Only names from this source; may be repeated."),
]
Languages = Annotated[
    list[str] | None,
    typer.Option("--language", metavar="TAG", help="Only names of this language (en); may be repeated."),
]
Under = Annotated[
    list[str] | None,
    typer.Option(metavar="CONCEPT", help="Only this concept and those below it in the hierarchy; may be repeated."),
]
ExpectTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--expect-type",
        metavar="TYPE",
        help="Among equal scores, put concepts of this semantic type first; may be repeated.",
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="P", help="Answer 'no such concept' below this confidence."),
]
MinPrecision = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        metavar="P",
        help="Answer 'no such concept' below the confidence from which this share of answers (above 0) was right "
        "in tuning or calibration.",
    ),
]
Certainty = Annotated[
    float | None,
    typer.Option(
        metavar="C",
        help="With --min-precision: how certain that precision must be, from 0.5, below 1; as in onoma linker tune.",
    ),
]


def asked_stages(stages: str | None) -> tuple[Stage, ...] | None:
    """The stages that ``--stages`` names, in the order in which they run.

    Raises:
        ConfigError: one is not a stage, or none of them finds concepts.
    """
    from onoma.linking.settings import ordered_stages

    wanted = divided(stages)
    return None if wanted is None else ordered_stages(wanted)


def least_confidence(
    linker: Linker, min_confidence: float | None, min_precision: float | None, certainty: float | None
) -> float | None:
    """What ``--min-confidence``, or ``--min-precision`` and ``--certainty``, come to.

    Raises:
        ConfigError: both are given, or a certainty alone, or the linker is not calibrated.
        InputError: no confidence reaches the precision.
    """
    if min_confidence is not None and min_precision is not None:
        raise ConfigError("give either --min-confidence or --min-precision.")
    if min_precision is None:
        if certainty is not None:
            raise ConfigError("a certainty (--certainty) is that of a wished precision (--min-precision): give both.")
        return min_confidence
    tuned_with = tuned_wish(linker.manifest.config).get("certainty")
    if certainty is None and tuned_with is not None:
        from onoma.cli import show

        show.remark(
            f"the linker's threshold was learned with a certainty of {tuned_with:g}: with --min-precision it counts "
            f"only if you give it here too (--certainty {tuned_with:g})"
        )
    return linker.threshold_for(min_precision, certainty=certainty)


def tuned_wish(config: Mapping[str, Any]) -> dict[str, float | None]:
    """Precision and certainty that a linker's threshold was learned for, by its record; empty without one."""
    calibration = config.get("tuning", {}).get("calibration") or {}
    wish: dict[str, float | None] = (calibration.get("abstention") or {}).get("wish", {})
    return wish
