"""Onoma: from any biomedical name to the concept it means.

The public library. Everything here is loaded when it is first used, so that ``import onoma`` costs nothing
and loads no torch::

    import onoma

    onoma.import_terminology("cellxgene", "MONDO", "mondo")
    linker = onoma.build_linker("mondo", "all-MiniLM-L6-v2", "linker")
    linker.link(["heart attack"])[0][0].concept_id
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onoma._version import __version__ as __version__
from onoma.lazy import lazily
from onoma.reporting import report_nothing

if TYPE_CHECKING:
    from onoma import artifacts as artifacts
    from onoma import benchmarks as benchmarks
    from onoma import encoders as encoders
    from onoma import errors as errors
    from onoma import indexes as indexes
    from onoma import linking as linking
    from onoma import mapping as mapping
    from onoma import objectives as objectives
    from onoma import pairs as pairs
    from onoma import terminology as terminology
    from onoma import training as training
    from onoma.benchmarks import run_benchmark as run_benchmark
    from onoma.encoders import Encoder as Encoder
    from onoma.encoders import open_encoder as open_encoder
    from onoma.errors import OnomaError as OnomaError
    from onoma.linking import ExactMatcher as ExactMatcher
    from onoma.linking import Link as Link
    from onoma.linking import Linker as Linker
    from onoma.linking import build_linker as build_linker
    from onoma.pairs import PairSet as PairSet
    from onoma.pairs import build_pairs as build_pairs
    from onoma.pairs import hold_out_synonyms as hold_out_synonyms
    from onoma.terminology import Concept as Concept
    from onoma.terminology import Terminology as Terminology
    from onoma.terminology import import_terminology as import_terminology
    from onoma.terminology import normalise as normalise
    from onoma.training.alignment import train_encoder as train_encoder
    from onoma.training.alignment_config import Recipe as Recipe
    from onoma.training.alignment_config import TrainingConfig as TrainingConfig
    from onoma.training.biosyn import train_biosyn as train_biosyn
    from onoma.training.biosyn_config import BiosynRecipe as BiosynRecipe
    from onoma.training.distillation import distil_encoder as distil_encoder
    from onoma.training.distillation_config import DistillationRecipe as DistillationRecipe
    from onoma.training.run import train_on_terminology as train_on_terminology


report_nothing()


if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "onoma.benchmarks": ["run_benchmark"],
            "onoma.encoders": ["Encoder", "open_encoder"],
            "onoma.errors": ["OnomaError"],
            "onoma.linking": ["ExactMatcher", "Link", "Linker", "build_linker"],
            "onoma.pairs": ["PairSet", "build_pairs", "hold_out_synonyms"],
            "onoma.terminology": ["Concept", "Terminology", "import_terminology", "normalise"],
            "onoma.training.alignment": ["train_encoder"],
            "onoma.training.alignment_config": ["Recipe", "TrainingConfig"],
            "onoma.training.biosyn": ["train_biosyn"],
            "onoma.training.biosyn_config": ["BiosynRecipe"],
            "onoma.training.distillation": ["distil_encoder"],
            "onoma.training.distillation_config": ["DistillationRecipe"],
            "onoma.training.run": ["train_on_terminology"],
        },
        rooms=[
            "artifacts",
            "benchmarks",
            "encoders",
            "errors",
            "indexes",
            "linking",
            "mapping",
            "objectives",
            "pairs",
            "terminology",
            "training",
        ],
    )
