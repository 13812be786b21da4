"""Settings for linking many mentions: those of a table or a benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field

from onoma.errors import ConfigError
from onoma.linking.filters import Filters, filter_words
from onoma.linking.linker import Linker
from onoma.linking.settings import ordered_stages


@dataclass(frozen=True)
class Asking:
    """What to use in place of a linker's own settings; unset: these.

    Attributes:
        stages: Those to use, as in `Linker.link`.
        no_concept_below: Confidence below which a mention gets no link, as in `Linker.link`.
        filters: What links must be, as in `Linker.only`.
        expected_types: What concepts are more likely to be: among equal scores these come first, as in `Linker.link`.

    Stages and words are kept in one order, in whichever they were given.

    Example:
        >>> asking = Asking(stages=("exact", "dense"), filters=Filters.of(under="MESH:D009369"))
        >>> map_table("medic", "notes.csv", "linked.csv", column="diagnosis", asking=asking)    # doctest: +SKIP
    """

    stages: tuple[str, ...] | None = None
    no_concept_below: float | None = None
    filters: Filters = field(default_factory=Filters)
    expected_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            ConfigError: a stage is none, or the filters are no `Filters`.
        """
        if not isinstance(self.filters, Filters):
            raise ConfigError(
                f"filters are onoma.linking.filters.Filters.of(sources=..., ...); found {type(self.filters).__name__}."
            )
        if self.stages is not None:
            object.__setattr__(self, "stages", ordered_stages(self.stages))
        words = {name: sorted({*filter_words(said, name)}) for name, said in vars(self.filters).items()}
        object.__setattr__(self, "filters", Filters.of(**words))
        types = sorted({*filter_words(self.expected_types, "expected_types")})
        object.__setattr__(self, "expected_types", tuple(types))

    def applied(self, linker: Linker) -> Linker:
        """The same linker with these settings as its own; only `expected_types` must still be given when linking.

        Raises:
            InputError: as `Linker.only`.
            ConfigError: as `Linker.link`.
        """
        if self == Asking():
            return linker
        linker.link(  # refuses what cannot be
            [], stages=self.stages, no_concept_below=self.no_concept_below, expected_types=self.expected_types
        )
        asked = {"stages": self.stages, "no_concept_below": self.no_concept_below}
        settings = linker.settings.replaced(**{name: value for name, value in asked.items() if value is not None})
        return linker.tuned(settings).only(**vars(self.filters))
