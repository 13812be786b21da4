"""Settings of a recipe under ``[loss]``, ``[mining]``, ``[tuning]`` and ``[batches]``.

Only data, so that recipes can be read without torch. ``loss = "circle"`` is short for ``loss = {name = "circle"}`` with
its defaults. Fields of losses and mining are the keyword arguments of the functions in `onoma.objectives` that
`onoma.training.objective` calls; their defaults are the settings of SapBERT's comparison of losses (Liu et al. 2021,
appendix B.2).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Choice(BaseModel):
    """One of several alternatives, identified by its ``name``, with settings of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class HardTriplets(Choice):
    """Pairs of triplets whose negative is no further than the positive plus a margin (SapBERT)."""

    name: Literal["hard-triplet"] = "hard-triplet"
    margin: float = Field(default=0.2, ge=0, le=2, description="margin, as Euclidean distance of unit vectors")


class MultiSimilarityMining(Choice):
    """Pairs that the hardest pair of the other kind makes informative (CODER)."""

    name: Literal["multi-similarity"] = "multi-similarity"
    margin: float = Field(default=0.1, ge=0, le=2, description="margin in cosine units")


class SemiHardTriplets(Choice):
    """Pairs of triplets whose negative is further than the positive, but not by the margin (FaceNet)."""

    name: Literal["semi-hard"] = "semi-hard"
    margin: float = Field(default=0.2, ge=0, le=2, description="margin, as Euclidean distance of unit vectors")


class NoMining(Choice):
    """No mining: all pairs of the batch."""

    name: Literal["all"] = "all"


class MultiSimilarity(Choice):
    """Multi-similarity loss (Wang et al. 2019), the choice of SapBERT and CODER."""

    name: Literal["multi-similarity"] = "multi-similarity"
    positive_scale: float = Field(default=2.0, gt=0, description="weight of too distant synonyms")
    negative_scale: float = Field(default=50.0, gt=0, description="weight of too close other names")
    offset: float = Field(default=0.5, ge=-1, le=1, description="cosine at which both are neutral")


class Circle(Choice):
    """Circle loss (Sun et al. 2020)."""

    name: Literal["circle"] = "circle"
    margin: float = Field(default=0.25, ge=-1, le=1, description="margin in cosine units")
    scale: float = Field(default=256.0, gt=0, description="sharpness, gamma in the paper")


class InfoNce(Choice):
    """InfoNCE (van den Oord et al. 2018)."""

    name: Literal["info-nce"] = "info-nce"
    temperature: float = Field(default=0.07, gt=0, description="cosine units per factor e; smaller is sharper")


class Nca(Choice):
    """Neighbourhood component analysis (Goldberger et al. 2005)."""

    name: Literal["nca"] = "nca"
    distance_scale: float = Field(default=20.0, gt=0, description="factor of the squared distance")


class LiftedStructure(Choice):
    """Lifted structure loss (Oh Song et al. 2016)."""

    name: Literal["lifted-structure"] = "lifted-structure"
    margin: float = Field(default=0.5, ge=0, le=2, description="margin, as Euclidean distance of unit vectors")


class Triplet(Choice):
    """Max-margin triplet loss (Basaldella et al. 2020)."""

    name: Literal["triplet"] = "triplet"
    margin: float = Field(default=0.2, ge=0, le=2, description="margin, as Euclidean distance of unit vectors")


class Cosine(Choice):
    """Cosine loss: each pair on its own."""

    name: Literal["cosine"] = "cosine"
    margin: float = Field(default=0.0, ge=-1, le=1, description="margin in cosine units")


class Everything(Choice):
    """All weights of the encoder are trained."""

    name: Literal["all"] = "all"


class Layers(Choice):
    """All weights except the tables of token, position and type vectors are trained."""

    name: Literal["layers"] = "layers"


class Adapter(Choice):
    """Bottlenecks after the layers' feed-forward blocks are trained, the encoder is frozen (Pfeiffer et al. 2020)."""

    name: Literal["adapter"] = "adapter"
    reduction: int = Field(
        default=16, ge=1, description="width of the encoder / width of the bottleneck (paper: 1 and 16)"
    )
    invertible: bool = Field(
        default=True, description="also an invertible adapter after the embeddings, as in the paper"
    )


class Lora(Choice):
    """Low-rank updates of the attention's projections are trained, the encoder is frozen (Hu et al. 2022)."""

    name: Literal["lora"] = "lora"
    rank: int = Field(default=16, ge=1, description="rank of the update")
    alpha: float = Field(default=32.0, gt=0, description="the update is scaled by alpha / rank")
    dropout: float = Field(default=0.0, ge=0, lt=1, description="dropout of the update's input")


class RandomBatches(Choice):
    """Pairs in random order."""

    name: Literal["random"] = "random"


class NeighbourBatches(Choice):
    """Each pair comes with pairs of other concepts whose names the encoder finds similar (the idea of CODER++)."""

    name: Literal["neighbours"] = "neighbours"
    neighbours: int = Field(default=3, ge=1, description="pairs of similar other concepts added for each pair")
    refresh_steps: int = Field(
        default=500, ge=1, description="steps after which all names are encoded and compared again"
    )
    warmup_steps: int = Field(default=0, ge=0, description="steps of random batches before the first comparison")


def named(value: Any) -> Any:
    """A choice without settings may be written as its name alone."""
    return {"name": value} if isinstance(value, str) else value


Mining: TypeAlias = Annotated[
    HardTriplets | MultiSimilarityMining | SemiHardTriplets | NoMining,
    Field(discriminator="name"),
    BeforeValidator(named),
]
Loss: TypeAlias = Annotated[
    MultiSimilarity | Circle | InfoNce | Nca | LiftedStructure | Triplet | Cosine,
    Field(discriminator="name"),
    BeforeValidator(named),
]
Tuning: TypeAlias = Annotated[Everything | Layers | Adapter | Lora, Field(discriminator="name"), BeforeValidator(named)]
Batches: TypeAlias = Annotated[RandomBatches | NeighbourBatches, Field(discriminator="name"), BeforeValidator(named)]
