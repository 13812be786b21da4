"""Settings of distillation, and recipes with values for them (``training/distillation-recipes``)."""

from __future__ import annotations

from pydantic import Field

from onoma.training.run_config import EncoderRunConfig
from onoma.training.settings import NamedSettings

FEWEST_NAMES = 3
"""With two, each is the other's only neighbour, which any student knows."""


class DistillationConfig(EncoderRunConfig):
    """Settings of an encoder that learns from a linker's vectors which names are near one another."""

    languages: None = Field(default=None, description="not for distillation: the linker says which names there are")

    batch_names: int = Field(
        default=512,
        ge=FEWEST_NAMES,
        description="approximate number of names in a batch: a name drawn twice is taken once",
    )
    neighbours: int = Field(
        default=5,
        ge=0,
        description="names added for each name of a batch, drawn from those that the linker finds nearest to it",
    )
    nearest: int = Field(default=16, ge=1, description="how many of the nearest names they are drawn from")
    temperature: float = Field(
        default=0.05, gt=0, description="cosine units per factor e; smaller considers only nearer neighbours"
    )

    def _check(self) -> None:
        super()._check()
        if self.neighbours >= self.batch_names:
            raise ValueError(
                f"a name and its {self.neighbours} neighbours do not fit into a batch of {self.batch_names} names; set "
                "neighbours below batch_names"
            )
        if self.batch_names // (1 + self.neighbours) * (1 + self.neighbours) < FEWEST_NAMES:
            raise ValueError(
                f"batches of two names teach nothing, as each has but one other; set batch_names to "
                f"{2 * (1 + self.neighbours)} at least, or neighbours to 0"
            )
        if self.neighbours > self.nearest:
            raise ValueError(
                f"{self.neighbours} neighbours cannot be drawn from the {self.nearest} nearest names; set neighbours "
                "to nearest at most"
            )


class DistillationRecipe(NamedSettings[DistillationConfig]):
    """A recipe of distillation.

    `load` and `names` are those of `onoma.training.settings.NamedSettings`.

    Example:
        >>> DistillationRecipe.load("distil", {"steps": "100"}).config.steps
        100
    """

    kind = "distillation-recipe"
