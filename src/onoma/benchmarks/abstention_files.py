"""Abstention as files: figures as JSON, and pictures where there is matplotlib."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from onoma.artifacts import write_text_atomically
from onoma.benchmarks.abstention import AbstentionResult
from onoma.benchmarks.abstention_plot import plot_precision_coverage, plot_reliability

RESULT_FILE = "abstention.json"


def write_abstention(folder: Path, result: AbstentionResult, *, title: str = "", pictures: bool | None = None) -> None:
    """Write ``abstention.json`` and the pictures of `onoma.benchmarks.abstention_plot` into a folder.

    Args:
        folder: Exists, e.g. the one that `write_artifact` gives; files of these names are replaced.
        result: What is written.
        title: What the pictures are of, e.g. task, split and linker.
        pictures: Whether to draw; unset: where matplotlib is installed.

    Raises:
        UnavailableError: pictures are asked for, and matplotlib is not installed.
    """
    text = json.dumps(result.as_json(), indent=1, allow_nan=False)
    write_text_atomically(folder / RESULT_FILE, text + "\n")
    if importlib.util.find_spec("matplotlib") is not None if pictures is None else pictures:
        for kind in ("png", "svg"):
            plot_reliability(result, folder / f"reliability.{kind}", title=title, overwrite=True)
            if result.curve:
                plot_precision_coverage(result, folder / f"precision-coverage.{kind}", title=title, overwrite=True)
