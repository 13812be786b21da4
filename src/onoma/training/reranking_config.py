"""What can be set about training a reranker, and the recipes that set it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from onoma.training.run_config import RunConfig
from onoma.training.settings import NamedSettings


class RerankingConfig(RunConfig):
    """Settings of a cross-encoder that ranks the candidates of a linker anew."""

    pooling: Literal["cls", "mean"] = Field(
        default="cls",
        description="which token vectors make the vector of mention and name: that of [CLS], or the mean of all",
    )
    languages: None = Field(default=None, description="not for rerankers: the linker says which names there are")
    max_tokens: int = Field(
        default=96,
        ge=16,
        le=512,
        description="mention, context and name together, special tokens included; contexts are cut",
    )
    max_name_tokens: int = Field(default=40, ge=4, description="longer names are cut")
    chunk_names: int | None = Field(
        default=None,
        ge=2,
        description="pairs of mention and name taken through the model at a time, for long contexts in little memory: "
        "each is taken through it twice, and the gradient is that of the whole batch; unset: all at once",
    )

    depth: int = Field(
        default=10,
        ge=2,
        description="candidates of a mention, in training and in use; what is measured in training looks no further",
    )
    candidate_text: Literal["matched", "both"] = Field(
        default="both",
        description="what is read of a candidate: the name that matched, or it and the preferred name, which alone "
        "tells homonyms apart",
    )
    own_names: Literal["hide", "keep", "both"] = Field(
        default="both",
        description="training mentions that are a name of the linker, spelt alike: hide that name from their "
        "candidates, keep it, or take such mentions both ways",
    )
    nil: bool = Field(
        default=False,
        description="learn to say that none of the candidates is meant, from mentions of which none is; how readily it "
        "is said is chosen on development mentions, as the weight is",
    )
    batch_mentions: int = Field(default=16, ge=1, description="mentions in a batch, each with all its candidates")
    head_learning_rate: float = Field(
        default=1e-3, gt=0, description="of the layer that makes a score of a vector, which begins at random"
    )
    weight: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="share of the reranker in the final score, 0 to 1; unset: the best on development mentions, 0.5 "
        "without any",
    )


class RerankingRecipe(NamedSettings[RerankingConfig]):
    """A recipe of a reranker.

    `load` and `names` are those of `onoma.training.settings.NamedSettings`.

    Example:
        >>> RerankingRecipe.load("reranker", {"steps": "100"}).config.steps
        100
    """

    kind = "reranking-recipe"
