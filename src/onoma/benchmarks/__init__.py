"""Measuring: tasks as declarations, published protocols, metrics with confidence intervals, results as files."""

from onoma.benchmarks.comparing import Comparison, Difference, changed_answers, compare_results
from onoma.benchmarks.hidden_synonyms import HiddenSynonymScores, score_hidden_synonyms
from onoma.benchmarks.metrics import (
    Accuracy,
    accuracy_at,
    bootstrap_interval,
    cluster_interval,
    composite_rank,
    first_hit_rank,
    macro_accuracy_at,
)
from onoma.benchmarks.own import own_task
from onoma.benchmarks.results import BenchmarkResult
from onoma.benchmarks.run import run_benchmark
from onoma.benchmarks.table import ResultTable, tabulate_results
from onoma.benchmarks.tasks import TASKS, BenchmarkTask, get_task

__all__ = [
    "TASKS",
    "Accuracy",
    "BenchmarkResult",
    "BenchmarkTask",
    "Comparison",
    "Difference",
    "HiddenSynonymScores",
    "ResultTable",
    "accuracy_at",
    "bootstrap_interval",
    "changed_answers",
    "cluster_interval",
    "compare_results",
    "composite_rank",
    "first_hit_rank",
    "get_task",
    "macro_accuracy_at",
    "own_task",
    "run_benchmark",
    "score_hidden_synonyms",
    "tabulate_results",
]
