"""Options for how a linker is asked: stages, filters, confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from onoma.errors import ConfigError

if TYPE_CHECKING:
    from onoma.linking import Linker

Stages = Annotated[
    str | None,
    typer.Option(
        metavar="STAGES",
        help="Stages to use, divided by commas: exact, loose, variants, dense, sparse, prior, rerank. Unset: the "
        "linker's.",
    ),
]
SemanticTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--semantic-type",
        metavar="TYPE",
        help="Only concepts of this semantic type or UMLS group; may be given several times.",
    ),
]
Sources = Annotated[
    list[str] | None, typer.Option("--source", metavar="SOURCE", help="Only names from this source; several times.")
]
Languages = Annotated[
    list[str] | None,
    typer.Option("--language", metavar="TAG", help="Only names of this language (en); several times."),
]
Under = Annotated[
    list[str] | None,
    typer.Option(metavar="CONCEPT", help="Only this concept and those below it in the hierarchy; several times."),
]
ExpectTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--expect-type", metavar="TYPE", help="Of equal scores, concepts of this semantic type first; several times."
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
        help="The same, below the confidence from which so large a share of the answers, above 0, was right in tuning.",
    ),
]


def divided(stages: str | None) -> tuple[str, ...] | None:
    """The stages that ``--stages`` names."""
    return None if stages is None else tuple(stage.strip() for stage in stages.split(","))


def least_confidence(linker: Linker, min_confidence: float | None, min_precision: float | None) -> float | None:
    """What ``--min-confidence`` or ``--min-precision`` comes to.

    Raises:
        ConfigError: both are given, or the linker is not calibrated.
        InputError: no confidence reaches the precision.
    """
    if min_confidence is not None and min_precision is not None:
        raise ConfigError("give either --min-confidence or --min-precision.")
    return min_confidence if min_precision is None else linker.threshold_for(min_precision)
