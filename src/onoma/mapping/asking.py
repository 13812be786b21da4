"""How a linker is asked for the links of a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from onoma.errors import ConfigError
from onoma.linking import Linker
from onoma.linking.filters import Filters
from onoma.linking.settings import ordered_stages


@dataclass(frozen=True)
class Asking:
    """What is asked for in place of a linker's own settings; unset: these.

    Attributes:
        stages: Those to use, as in `Linker.link`.
        no_concept_below: Confidence below which a mention gets no link, as in `Linker.link`.
        filters: What links must be, as in `Linker.only`.

    Example:
        >>> asking = Asking(stages=("exact", "dense"), filters=Filters.of(under="MESH:D009369"))
        >>> map_table("medic", "notes.csv", "linked.csv", column="diagnosis", asking=asking)    # doctest: +SKIP
    """

    stages: tuple[str, ...] | None = None
    no_concept_below: float | None = None
    filters: Filters = field(default_factory=Filters)

    def __post_init__(self) -> None:
        """Refuse filters of another kind.

        Raises:
            ConfigError: they are no `Filters`.
        """
        if not isinstance(self.filters, Filters):
            raise ConfigError(
                f"filters are onoma.linking.filters.Filters.of(sources=..., ...); found {type(self.filters).__name__}."
            )

    def applied(self, linker: Linker) -> Linker:
        """The same linker, which answers so by itself.

        Raises:
            InputError: as `Linker.only`.
            ConfigError: as `Linker.link`.
        """
        if self == Asking():
            return linker
        stages = None if self.stages is None else ordered_stages(self.stages)
        linker.link([], stages=stages, no_concept_below=self.no_concept_below)  # refuses what cannot be
        settings = linker.settings
        if stages is not None:
            settings = settings.replaced(stages=stages)
        if self.no_concept_below is not None:
            settings = settings.replaced(no_concept_below=self.no_concept_below)
        asked = linker if settings == linker.settings else linker.tuned(settings)
        filters = self.filters
        return asked.only(
            semantic_types=filters.semantic_types,
            sources=filters.sources,
            languages=filters.languages,
            under=filters.under,
        )
