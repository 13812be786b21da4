"""Training: recipes, batches, steps, checkpoints, one loop (`onoma.training.loop`) for all kinds.

`onoma.training.alignment` aligns names by synonyms (SapBERT), `onoma.training.biosyn` ranks a dictionary's names for
annotated mentions (BioSyn), `onoma.training.reranking` the candidates of a linker, `onoma.training.distillation` passes
on what a linker's encoder knows. The modules of settings need no torch, the others do.
"""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.training import alignment as alignment
    from onoma.training import alignment_config as alignment_config
    from onoma.training import batches as batches
    from onoma.training import biosyn as biosyn
    from onoma.training import biosyn_config as biosyn_config
    from onoma.training import distillation as distillation
    from onoma.training import distillation_config as distillation_config
    from onoma.training import grid as grid
    from onoma.training import grid_plot as grid_plot
    from onoma.training import grid_run as grid_run
    from onoma.training import grid_table as grid_table
    from onoma.training import report as report
    from onoma.training import reranking as reranking
    from onoma.training import reranking_config as reranking_config
    from onoma.training import run as run
    from onoma.training import settings as settings
    from onoma.training import trackers as trackers
    from onoma.training import watching as watching


if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {},
        rooms=[
            "alignment",
            "alignment_config",
            "batches",
            "biosyn",
            "biosyn_config",
            "distillation",
            "distillation_config",
            "grid",
            "grid_plot",
            "grid_run",
            "grid_table",
            "report",
            "reranking",
            "reranking_config",
            "run",
            "settings",
            "trackers",
            "watching",
        ],
    )
