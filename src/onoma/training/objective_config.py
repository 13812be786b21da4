"""What a recipe can say under ``[mining]`` and ``[loss]``; only data, so that recipes are read without torch.

The names of the fields are the keyword arguments of the functions in `onoma.objectives` that
`onoma.training.objective` calls. ``loss = "circle"`` is short for ``loss = {name = "circle"}`` with its defaults, which
are the settings of SapBERT's comparison of losses (Liu et al. 2021, appendix B.2).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class _Choice(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class HardTriplets(_Choice):
    """Pairs of triplets whose negative is no further than the positive plus a margin (SapBERT)."""

    name: Literal["hard-triplet"] = "hard-triplet"
    margin: float = Field(0.2, ge=0, le=2, description="in Euclidean distance of unit vectors")


class MultiSimilarityMining(_Choice):
    """Pairs that the hardest pair of the other kind makes informative (CODER)."""

    name: Literal["multi-similarity"] = "multi-similarity"
    margin: float = Field(0.1, ge=0, le=2, description="in cosine units")


class SemiHardTriplets(_Choice):
    """Pairs of triplets whose negative is further than the positive, but not by the margin (FaceNet)."""

    name: Literal["semi-hard"] = "semi-hard"
    margin: float = Field(0.2, ge=0, le=2, description="in Euclidean distance of unit vectors")


class NoMining(_Choice):
    """No mining: all pairs of the batch."""

    name: Literal["all"] = "all"


class MultiSimilarity(_Choice):
    """Multi-similarity loss (Wang et al. 2019), the choice of SapBERT and CODER."""

    name: Literal["multi-similarity"] = "multi-similarity"
    positive_scale: float = Field(2.0, gt=0, description="weight of too distant synonyms")
    negative_scale: float = Field(50.0, gt=0, description="weight of too close other names")
    offset: float = Field(0.5, ge=-1, le=1, description="the cosine where both are neutral")


class Circle(_Choice):
    """Circle loss (Sun et al. 2020)."""

    name: Literal["circle"] = "circle"
    margin: float = Field(0.25, ge=-1, le=1, description="in cosine units")
    scale: float = Field(256.0, gt=0, description="sharpness, gamma in the paper")


class InfoNce(_Choice):
    """InfoNCE (van den Oord et al. 2018)."""

    name: Literal["info-nce"] = "info-nce"
    temperature: float = Field(0.07, gt=0, description="cosine units per factor e; smaller is sharper")


class Nca(_Choice):
    """Neighbourhood component analysis (Goldberger et al. 2005)."""

    name: Literal["nca"] = "nca"
    distance_scale: float = Field(20.0, gt=0, description="factor of the squared distance")


class LiftedStructure(_Choice):
    """Lifted structure loss (Oh Song et al. 2016)."""

    name: Literal["lifted-structure"] = "lifted-structure"
    margin: float = Field(0.5, ge=0, le=2, description="in Euclidean distance of unit vectors")


class Triplet(_Choice):
    """Max-margin triplet loss (Basaldella et al. 2020)."""

    name: Literal["triplet"] = "triplet"
    margin: float = Field(0.2, ge=0, le=2, description="in Euclidean distance of unit vectors")


class Cosine(_Choice):
    """Cosine loss: each pair on its own."""

    name: Literal["cosine"] = "cosine"
    margin: float = Field(0.0, ge=-1, le=1, description="in cosine units")


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Mining: TypeAlias = Annotated[
    HardTriplets | MultiSimilarityMining | SemiHardTriplets | NoMining,
    Field(discriminator="name"),
    BeforeValidator(_named),
]
Loss: TypeAlias = Annotated[
    MultiSimilarity | Circle | InfoNce | Nca | LiftedStructure | Triplet | Cosine,
    Field(discriminator="name"),
    BeforeValidator(_named),
]
