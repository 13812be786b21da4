"""Settings of training by BioSyn, and recipes with values for them (``training/biosyn-recipes``)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from onoma.training.config_parts import Choice, named
from onoma.training.run_config import RunConfig
from onoma.training.settings import NamedSettings


class Dot(Choice):
    """The dot product of the unscaled vectors, as in the paper."""

    name: Literal["dot"] = "dot"


class Cosine(Choice):
    """The cosine of the vectors, by which linkers compare."""

    name: Literal["cosine"] = "cosine"
    scale: float = Field(default=20.0, gt=0, description="factor of all scores before the softmax; larger is sharper")


Similarity: TypeAlias = Annotated[Dot | Cosine, Field(discriminator="name"), BeforeValidator(named)]


class BiosynConfig(RunConfig):
    """Settings of one run of BioSyn (Sung et al. 2020)."""

    normalisation: str = Field(default="biosyn", description="preset of name normalisation, for training and use alike")
    learning_rate: float = Field(default=1e-5, gt=0, description="highest learning rate of Adam")
    weight_decay: float = Field(
        default=0.01,
        ge=0,
        description="weight decay of Adam, as part of the gradient (L2), on all of the encoder's weights",
    )
    evaluate_steps: int | None = Field(
        default=None, ge=1, description="steps between evaluations on development data; unset: once per pass"
    )

    similarity: Similarity = Field(
        default_factory=Cosine, description="how vectors are compared: cosine, or dot as in the paper"
    )
    batch_queries: int = Field(default=16, ge=1, description="queries in a batch")
    candidates: int = Field(default=20, ge=2, description="names that a query is compared with")
    sparse_candidates: int = Field(default=10, ge=0, description="how many of them the sparse search proposes")
    sparse_weight: float = Field(default=0.0, ge=0, description="initial weight of the sparse score; it is learned")
    sparse_learning_rate: float = Field(
        default=0.01, ge=0, description="highest learning rate of the sparse weight; 0 keeps the weight fixed"
    )

    def _check(self) -> None:
        super()._check()
        if self.sparse_candidates > self.candidates:
            raise ValueError(
                f"sparse_candidates ({self.sparse_candidates}) are part of the {self.candidates} candidates, not more"
            )


class BiosynRecipe(NamedSettings[BiosynConfig]):
    """A recipe of BioSyn.

    `load` and `names` are those of `onoma.training.settings.NamedSettings`.

    Example:
        >>> BiosynRecipe.load("biosyn-paper", {"similarity": "cosine"}).config.similarity.name
        'cosine'
    """

    kind = "biosyn-recipe"
