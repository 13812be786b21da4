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

from onoma._version import __version__
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
    from onoma.benchmarks import run_benchmark
    from onoma.encoders import Encoder, open_encoder
    from onoma.errors import OnomaError
    from onoma.linking import ExactMatcher, Link, Linker, build_linker
    from onoma.pairs import PairSet, build_pairs, hold_out_synonyms
    from onoma.terminology import Concept, Terminology, import_terminology, normalise
    from onoma.training.alignment import train_encoder
    from onoma.training.alignment_config import Recipe, TrainingConfig
    from onoma.training.biosyn import train_biosyn
    from onoma.training.biosyn_config import BiosynRecipe
    from onoma.training.distillation import distil_encoder
    from onoma.training.distillation_config import DistillationRecipe
    from onoma.training.run import train_on_terminology

__all__ = [
    "BiosynRecipe",
    "Concept",
    "DistillationRecipe",
    "Encoder",
    "ExactMatcher",
    "Link",
    "Linker",
    "OnomaError",
    "PairSet",
    "Recipe",
    "Terminology",
    "TrainingConfig",
    "__version__",
    "build_linker",
    "build_pairs",
    "distil_encoder",
    "hold_out_synonyms",
    "import_terminology",
    "normalise",
    "open_encoder",
    "run_benchmark",
    "train_biosyn",
    "train_encoder",
    "train_on_terminology",
]


report_nothing()


if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__ = lazily(
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
