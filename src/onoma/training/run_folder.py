"""Where an unfinished run lies, ``OUT.run`` beside the encoder ``OUT`` it will become.

It holds ``run.json`` (what the run is and how long), ``checkpoint.safetensors``, ``log.jsonl`` (a line for each step)
and the pairs, if the run made them. One process at a time works in it; when the run is finished it disappears.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from onoma.artifacts import write_text_atomically
from onoma.errors import MismatchError, TrainingError
from onoma.training.checkpoints import CHECKPOINT_NAME

RUN_NAME = "run.json"
LOG_NAME = "log.jsonl"


def run_folder(out: Path) -> Path:
    """Where the unfinished run of the encoder ``out`` lies."""
    return out.with_name(out.name + ".run")


@contextlib.contextmanager
def unfinished_run(out: Path) -> Iterator[Path]:
    """The run folder, made if need be, for this process alone; removed if the block ends well.

    Raises:
        TrainingError: another process works in it.
    """
    run = run_folder(out)
    run.mkdir(parents=True, exist_ok=True)
    lock = FileLock(run / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise TrainingError(
            f"another process is training {out} just now; wait for it, or write to another place."
        ) from None
    try:
        yield run
        spent = run.with_name(f".{run.name}.spent")
        shutil.rmtree(spent, ignore_errors=True)  # what such a kill left
        run.rename(spent)  # so that a kill in the next line leaves nothing that looks like an unfinished run
    finally:
        lock.release()
    shutil.rmtree(spent)


def planned_steps(run: Path, identity: dict[str, Any]) -> int | None:
    """Number of steps of the run begun in this folder, None if it is new.

    Raises:
        MismatchError: a run with another identity (config, pairs, base, device, precision) was begun here.
    """
    file = run / RUN_NAME
    if not file.exists():
        return None
    known = json.loads(file.read_text(encoding="utf-8"))
    if not (run / CHECKPOINT_NAME).exists() and known != {**identity, "total_steps": known["total_steps"]}:
        return None  # nothing was reached with the other settings
    differing = [
        f"{key} (begun with {known['config'].get(key)!r}, now {value!r})"
        for key, value in identity["config"].items()
        if known["config"].get(key) != value
    ]
    differing += [f"the {key}" for key in ("pairs", "base", "device", "precision") if known.get(key) != identity[key]]
    if differing:
        raise MismatchError(
            f"{run} holds an unfinished run with other settings: {', '.join(differing)}. "
            "Go on with the old settings, write to another place, or remove that folder to begin anew."
        )
    return int(known["total_steps"])


def begin_run(run: Path, identity: dict[str, Any], total_steps: int) -> None:
    """Write down what the run is."""
    write_text_atomically(run / RUN_NAME, json.dumps({**identity, "total_steps": total_steps}, indent=1))


def cut_log(run: Path, done: int) -> list[dict[str, Any]]:
    """The log up to the checkpoint; later steps were lost with their process and will be done again."""
    file = run / LOG_NAME
    lines = file.read_text(encoding="utf-8").splitlines()[:done] if file.exists() else []
    write_text_atomically(file, "".join(f"{line}\n" for line in lines))
    return [json.loads(line) for line in lines]
