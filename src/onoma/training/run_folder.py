"""Where an unfinished run lies, ``OUT.run`` beside the encoder ``OUT`` it will become.

It holds ``run.json`` (what the run is and how long), ``checkpoint.safetensors``, ``log.jsonl`` (a line for each step),
``evaluations.jsonl`` (one for each evaluation) and the pairs, if the run made them. One run at a time works in it, and
of several processes of a run the main one; when the run is finished it disappears.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from filelock import FileLock, Timeout

from onoma.artifacts import ensure_writable, is_same, remove_spent, sha256_file, write_text_atomically
from onoma.encoders.model_card import TRAIN_NAME
from onoma.errors import ArtifactExistsError, ConfigError, InputError, MismatchError, TrainingError
from onoma.training.checkpoints import CHECKPOINT_NAME
from onoma.training.distributed import is_main
from onoma.training.run_config import RunConfig

RUN_NAME = "run.json"
LOG_NAME = "log.jsonl"
EVALUATIONS_NAME = "evaluations.jsonl"
LOCK_NAME = ".lock"
_BEFORE_RUN_NAME = (LOCK_NAME, "pairs", "neighbours-*.npy", "candidates-*.npy", ".*.partial-*")
"""What a run may write before ``run.json``."""


def run_folder(out: Path) -> Path:
    """Where the unfinished run of the encoder ``out`` lies."""
    out = out.absolute()
    return out.with_name(out.name + ".run")


def ensure_encoder_writable(out: Path, kind: str, config: RunConfig, *, overwrite: bool) -> None:
    """As `onoma.artifacts.ensure_writable`, for what a run makes.

    An encoder whose run was killed between saving and cleaning up is no obstacle to the same settings: that run goes
    on and cleans up.

    Raises:
        ArtifactExistsError: something else lies there.
        ConfigError: it is the base: a run that was killed could not go on from what it replaced.
    """
    if is_same(out, Path(config.base)):
        raise ConfigError(f"{out} is the base encoder itself; write to another place.")
    if is_main() and out.name:
        remove_spent(_spent(run_folder(out)))  # what a kill in the last line of `_remove` left
    if not (out.name and _goes_on(out, config)):
        ensure_writable(out, kind, overwrite=overwrite)


@contextlib.contextmanager
def claimed_run(out: Path, config: RunConfig) -> Iterator[Path]:
    """The run folder, made if need be, for this run alone; may be nested.

    What a run with other settings left that was killed between saving and cleaning up is removed.

    Raises:
        ArtifactExistsError: something else lies there.
        TrainingError: another run works in it.
    """
    with _locked_run(out) as run:
        if is_main() and is_saved(run, out) and not _goes_on(out, config):
            _empty(run)
        was_empty = is_main() and all(path.name == LOCK_NAME for path in run.iterdir())
        try:
            yield run
        except (InputError, ConfigError):
            made_pairs_alone = was_empty and run.is_dir() and all(map(_is_before_run, run.iterdir()))
            if made_pairs_alone:
                _empty(run)
            raise


@contextlib.contextmanager
def _locked_run(out: Path) -> Iterator[Path]:
    run = run_folder(out)
    if not is_main():
        yield run
        return
    if run.is_symlink() or (run.exists() and not _may_be_run(run)):
        raise ArtifactExistsError(
            f"{run} is where the unfinished run would lie, and is something else; it will not be touched. Move it, or "
            "write to another place."
        )
    run.mkdir(parents=True, exist_ok=True)
    lock = FileLock(run / LOCK_NAME, timeout=0, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise TrainingError(
            f"another process is training {out} just now; wait for it, or write to another place."
        ) from None
    try:
        yield run
    except BaseException:
        if run.is_dir() and all(path.name == LOCK_NAME for path in run.iterdir()):  # it never began
            _remove(run)
        raise
    finally:
        lock.release()


def _is_before_run(path: Path) -> bool:
    return any(fnmatchcase(path.name, known) for known in _BEFORE_RUN_NAME)


def _may_be_run(path: Path) -> bool:
    """Whether a folder is empty or that of a run, which is removed whole when the run is finished."""
    if not path.is_dir():
        return False
    names = [entry.name for entry in path.iterdir()]
    return RUN_NAME in names or all(_is_before_run(path / name) for name in names)


@contextlib.contextmanager
def unfinished_run(out: Path, config: RunConfig) -> Iterator[Path]:
    """As `claimed_run`; the folder is removed if the block ends well."""
    with claimed_run(out, config) as run:
        yield run
        if is_main():
            _remove(run)


def remove_saved_run(out: Path) -> None:
    """Remove what the run that made ``out`` left if it was killed between saving and cleaning up; any other run stays.

    Raises:
        TrainingError: another run works in it.
    """
    run = run_folder(out)
    if is_main():
        remove_spent(_spent(run))
        if is_saved(run, out):
            with _locked_run(out):
                _remove(run)


def _remove(run: Path) -> None:
    spent = _spent(run)
    remove_spent(spent)  # what a kill in the last line left
    try:
        run.rename(spent)  # so that such a kill leaves nothing that looks like an unfinished run
    except PermissionError:  # a folder with open files, where the file system does not rename such (Windows' in WSL)
        with contextlib.suppress(OSError):
            _empty(run)
        spent = run
    remove_spent(spent)


def _spent(run: Path) -> Path:
    return run.with_name(f".{run.name}.spent")


def is_saved(run: Path, out: Path) -> bool:
    """Whether the encoder at ``out`` is what this very run has come to, whatever was added to it since."""
    try:
        report = json.loads((out / TRAIN_NAME).read_text(encoding="utf-8"))
        return bool(report.get("run") == sha256_file(run / RUN_NAME))
    except (OSError, ValueError):
        return False


def _goes_on(out: Path, config: RunConfig) -> bool:
    """Whether a run with these settings made the encoder at ``out`` and has only cleaning up left."""
    run = run_folder(out)
    if not is_saved(run, out):
        return False
    return not _other_settings(_begun(run)["config"], config.model_dump(mode="json"))


def _empty(run: Path) -> None:
    """Remove all but the lock; last what tells that there is nothing to keep."""
    for path in run.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in {LOCK_NAME, RUN_NAME}:
            path.unlink()
    (run / RUN_NAME).unlink(missing_ok=True)


def planned_steps(run: Path, identity: dict[str, Any]) -> int | None:
    """Number of steps of the run begun in this folder, None if it is new.

    Args:
        run: The folder.
        identity: What would be written down of the run.

    Raises:
        MismatchError: a run with another identity (config, pairs, base, device, ...) was begun here.
        TrainingError: what was written down cannot be read.
    """
    if not (run / RUN_NAME).exists():
        return None
    known = _begun(run)
    if not (run / CHECKPOINT_NAME).exists() and any(known.get(key) != value for key, value in identity.items()):
        return None  # nothing was reached with the other settings
    differing = _other_settings(known["config"], identity["config"])
    for key, value in identity.items():
        if key != "config" and known.get(key) != value:
            # Fingerprints say nothing to a person; what a run ran on does.
            told = isinstance(value, int) or key in {"device", "precision"}
            differing.append(f"the {key}" + (f" (begun with {known.get(key)}, now {value})" if told else ""))
    if differing:
        raise _another_run(run, differing)
    steps: int = known["total_steps"]
    return steps


def check_settings(run: Path, config: RunConfig) -> None:
    """Refuse other settings than those of the run that has come to a checkpoint here, before anything is made for it.

    Raises:
        MismatchError: they are others.
    """
    if (run / RUN_NAME).exists() and (run / CHECKPOINT_NAME).exists():
        known = _begun(run)
        if differing := _other_settings(known["config"], config.model_dump(mode="json")):
            raise _another_run(run, differing)


def _another_run(run: Path, differing: Sequence[str]) -> MismatchError:
    """The error for a run that differs from the one that was begun in this folder."""
    return MismatchError(
        f"{run} holds an unfinished run with other settings: {', '.join(differing)}. "
        "Go on with the old settings, write to another place, or remove that folder to begin anew."
    )


def _begun(run: Path) -> dict[str, Any]:
    file = run / RUN_NAME
    try:
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return {**known, "config": dict(known["config"]), "total_steps": int(known["total_steps"])}
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{file} is not readable ({error}). Remove {run} to begin anew.") from None


def _other_settings(known: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    return [
        f"{key} (begun with {known.get(key)!r}, now {value!r})"
        for key, value in asked.items()
        if known.get(key) != value
    ]


def begin_run(run: Path, identity: dict[str, Any], total_steps: int) -> None:
    """Write down what the run is, with a number that no other has."""
    about = {**identity, "total_steps": total_steps, "number": uuid.uuid4().hex}
    write_text_atomically(run / RUN_NAME, json.dumps(about, indent=1))


class RunLog:
    """The lines of ``log.jsonl`` and ``evaluations.jsonl``, for people and plots that follow the run.

    Opening cuts both at the checkpoint: what came after it was lost with its process and will be done again. Of several
    processes only the main one writes files.

    Args:
        run: The run folder.
        done: Steps done at the checkpoint.
        evaluations: What was measured up to it.

    Raises:
        TrainingError: the steps up to the checkpoint are not all there.
    """

    def __init__(self, run: Path, *, done: int, evaluations: Sequence[dict[str, Any]]) -> None:
        self.steps: list[dict[str, Any]] = []
        """A line for each step, over all sittings."""
        self._files: dict[str, IO[str]] = {}
        if not is_main():
            return
        file = run / LOG_NAME
        try:
            lines = file.read_text(encoding="utf-8").splitlines()[:done] if file.exists() else []
            self.steps += [json.loads(line) for line in lines]
            numbers = [line["step"] for line in self.steps]
            figures = [(line["names"], line["seconds"], line["loss"]) for line in self.steps]
            if not all(isinstance(figure, int | float) for of_step in figures for figure in of_step):
                raise ValueError("a step without its figures")
        except (ValueError, KeyError, TypeError) as error:
            raise TrainingError(f"{file} is not readable ({error}). Remove {run} to begin anew.") from None
        if numbers != list(range(1, done + 1)):
            raise TrainingError(
                f"{file} does not have the {done:,} steps of the checkpoint. Remove {run} to begin anew."
            )
        for name, kept in ((LOG_NAME, lines), (EVALUATIONS_NAME, [json.dumps(line) for line in evaluations])):
            write_text_atomically(run / name, "".join(f"{line}\n" for line in kept))
            self._files[name] = (run / name).open("a", encoding="utf-8")

    def step(self, line: dict[str, Any]) -> None:
        """Add a step."""
        self.steps.append(line)
        self._write(LOG_NAME, line)

    def evaluation(self, line: dict[str, Any]) -> None:
        """Add an evaluation."""
        self._write(EVALUATIONS_NAME, line)

    def sync(self) -> None:
        """Make sure that the lines are on the disk before a checkpoint is that counts on them."""
        for file in self._files.values():
            os.fsync(file.fileno())

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def _write(self, name: str, line: dict[str, Any]) -> None:
        if name in self._files:
            self._files[name].write(json.dumps(line) + "\n")
            self._files[name].flush()
