"""Settings of training a reranker, and recipes with values for them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from onoma.training.run_config import RunConfig
from onoma.training.settings import NamedSettings


class RerankingConfig(RunConfig):
    """Settings of a cross-encoder that reranks the candidates of a linker."""

    pooling: Literal["cls", "mean"] = Field(
        default="cls",
        description="which token vectors make the vector of mention and name: that of [CLS], or the mean of all",
    )
    languages: None = Field(default=None, description="not for rerankers: the linker says which names there are")
    max_tokens: int = Field(
        default=96,
        ge=16,
        le=512,
        description="mention, context and name together, special tokens included; contexts are truncated",
    )
    max_name_tokens: int = Field(default=40, ge=4, description="longest name in tokens; longer ones are truncated")
    chunk_names: int | None = Field(
        default=None,
        ge=2,
        description="pairs of mention and name processed at a time, for long contexts in little memory: each is "
        "processed twice, and the gradient is that of the whole batch; unset: all at once",
    )

    depth: int = Field(
        default=10,
        ge=2,
        description="candidates per mention, in training and in use; evaluations in training consider no more",
    )
    candidate_text: Literal["matched", "both"] = Field(
        default="both",
        description="what is read of a candidate: the name that matched, or also the preferred name, without which "
        "homonyms cannot be told apart",
    )
    own_names: Literal["hide", "keep", "both"] = Field(
        default="both",
        description="for training mentions that are spelt like a name of the linker: hide that name from their "
        "candidates, keep it, or use such mentions both ways",
    )
    nil: bool = Field(
        default=False,
        description="learn to answer that no candidate is meant, from mentions for which none is; how readily is "
        "chosen on development mentions, as is the weight",
    )
    batch_mentions: int = Field(default=16, ge=1, description="mentions in a batch, each with all its candidates")
    head_learning_rate: float = Field(
        default=1e-3,
        gt=0,
        description="learning rate of the layer that turns a vector into a score, which starts at random",
    )
    weight: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="share of the reranker in the final score, 0 to 1; unset: the best on development mentions, or "
        "0.5 without any",
    )


class RerankingRecipe(NamedSettings[RerankingConfig]):
    """A recipe of a reranker.

    `load` and `names` are those of `onoma.training.settings.NamedSettings`.

    Example:
        >>> RerankingRecipe.load("reranker", {"steps": "100"}).config.steps
        100
    """

    kind = "reranking-recipe"
