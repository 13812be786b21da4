"""Training all combinations of a grid, one after the other, and the table of how they did.

Below ``OUT`` each combination has an encoder folder of its own, and ``grid.csv`` and ``grid.json`` have a line for
each, best first; both are written anew after every one. The same call goes on where it was stopped: finished encoders
are kept, an unfinished run goes on from its checkpoint. Combinations that differ only in how they train share their
pairs, which lie in ``OUT/.pairs`` until the grid is finished.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock, Timeout

from onoma.artifacts import open_artifact, sha256_file, write_text_atomically
from onoma.encoders import locate_encoder
from onoma.encoders.model_card import TRAIN_NAME
from onoma.errors import ArtifactExistsError, ConfigError, InputError, MismatchError, OnomaError, TrainingError
from onoma.pairs import PairSet
from onoma.pairs.languages import check_languages
from onoma.terminology import Terminology
from onoma.terminology.files.text_files import check_is_file
from onoma.training.config import Recipe, TrainingConfig
from onoma.training.distributed import PeerError, broadcast, is_main, processes, world_size
from onoma.training.evaluating import Evaluation
from onoma.training.grid import Combination, Grid, combinations
from onoma.training.run import SETTINGS_OF_PAIRS, check_run, train_on_pairs, train_on_terminology
from onoma.training.run_folder import remove_saved_run
from onoma.training.settings import settings_of

TABLE_NAME, REPORT_NAME = "grid.csv", "grid.json"
DONE, FAILED, WAITING, BEGUN = "done", "failed", "waiting", "begun"
_MEASURED = {
    "last_loss": "loss",
    "trained_steps": "steps",
    "seconds": "seconds",
    "names_per_second": "names_per_second",
    "why": "why",
}
"""Column of the table -> field of `Trained`; ``loss`` and ``steps`` are settings that a grid may vary."""
_OF_A_TRY = ("status", "why", "tries")
"""Fields of `Trained` that outlast a call that did not come to an end."""
_OF_NAMES = ("normalisation", "max_tokens")
_OF_PAIRS = (*SETTINGS_OF_PAIRS, *_OF_NAMES, "base", "seed")
"""Combinations that agree in these share their pairs."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A line of the table."""

    name: str
    """Of the combination, and of its encoder's folder."""
    settings: Mapping[str, str]
    """Its values of all settings that the grid varies; empty where it has no such setting."""
    tables: tuple[int, ...]
    """See `Combination`."""
    status: str = WAITING
    """``done``, ``failed`` or ``waiting``; ``begun`` if one of several processes ended all without a word."""
    why: str = ""
    """Of a failure."""
    tries: int = 0
    """How often it was begun by several processes and not finished."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """On development data, by name; larger is better, and the first decides which combination is best."""
    loss: float | None = None
    """Mean of the last steps; comparable only between combinations of one loss, mining and batch size."""
    steps: int | None = None
    seconds: float | None = None
    names_per_second: float | None = None


Watch: TypeAlias = Callable[[], contextlib.AbstractContextManager[tuple[Callable[..., None], ...]]]
"""Called for each run; gives what is to be called after a step, after an evaluation, and as ``progress`` before."""


def train_grid(
    recipe: str,
    grid: Grid,
    out: str | Path,
    *,
    overrides: Mapping[str, Any] | None = None,
    terminology: str | Path | None = None,
    pairs: str | Path | None = None,
    development_synonyms: int = 0,
    development: Sequence[str | Path] = (),
    development_terminology: str | Path | None = None,
    trackers: Sequence[str] = (),
    watch: Watch | None = None,
    on_event: Callable[[str], None] | None = None,
) -> list[Trained]:
    """Train a recipe with every combination of a grid, on a terminology or on pairs.

    What no recipe can say is refused before the first combination is trained. One that fails (it diverges, memory does
    not suffice, its encoder has no such width) is written down, and the others go on; the next call tries it again.

    Args:
        recipe: See `load_recipe`.
        grid: See `onoma.training.grid.load_grid`.
        out: Where everything is written.
        overrides: Settings of all combinations, as `load_recipe` takes them.
        terminology: Train on its synonyms; or
        pairs: train on these.
        development_synonyms: As in `train_on_terminology`.
        development: As there.
        development_terminology: As there.
        trackers: As there.
        watch: See `Watch`.
        on_event: Called with sentences worth telling.

    Returns:
        The table, best first: by the mean acc@1 on development data, without such data by loss.

    Raises:
        ArtifactExistsError: something else lies at ``out``.
        ConfigError: a combination cannot be trained so, or not one of ``terminology`` and ``pairs`` is given.
        InputError: what is to be trained or measured on cannot be used.
        MismatchError: a grid on other data lies at ``out``, or an encoder of that name with other settings; or the
            pairs were tokenised with another tokeniser than that of a base.
        TrainingError: another process works on this grid.
        UnavailableError: a base encoder, or the package of a tracker, is not to be had.
    """
    if (terminology is None) == (pairs is None):
        raise ConfigError("give either a terminology or pairs.")
    settled = sorted({key for table in grid.tables for key in table} & {*SETTINGS_OF_PAIRS, *_OF_NAMES})
    if pairs is not None and settled:
        raise ConfigError(f"{grid.name} varies {', '.join(settled)}, which pairs made before have settled already.")
    found = combinations(recipe, grid, overrides)
    for combination in found:
        check_run(
            combination.recipe.config,
            development,
            development_terminology,
            trackers,
            hides=development_synonyms > 0,
            on_pairs=pairs is not None,
        )
    made = None if pairs is None else PairSet.open(pairs)
    for base in dict.fromkeys(combination.recipe.config.base for combination in found):
        located = locate_encoder(base)
        if made is not None and located.tokenizer_fingerprint != made.tokenizer_fingerprint:
            raise MismatchError(
                f"{made.path} was tokenised with another tokeniser than that of {base}; take bases that share one, or "
                "give the terminology in place of pairs."
            )
    if terminology is not None:
        opened = Terminology.open(terminology)
        for languages in dict.fromkeys(combination.recipe.config.languages for combination in found):
            check_languages(opened, languages)
    for file in development:
        check_is_file(Path(file))
    look: Watch = watch or (lambda: contextlib.nullcontext((lambda *_: None,) * 3))

    def train(made: Recipe, encoder: Path, pairs_folder: Path) -> None:
        with look() as (on_step, on_evaluation, progress):
            if terminology is not None:
                train_on_terminology(
                    made,
                    terminology,
                    encoder,
                    development_synonyms=development_synonyms,
                    development=development,
                    development_terminology=development_terminology,
                    trackers=trackers,
                    pairs_folder=pairs_folder,
                    on_step=on_step,
                    on_evaluation=on_evaluation,
                    on_event=on_event,
                    progress=progress,
                )
            elif pairs is not None:
                train_on_pairs(
                    made,
                    pairs,
                    encoder,
                    development=development,
                    development_terminology=development_terminology,
                    trackers=trackers,
                    on_step=on_step,
                    on_evaluation=on_evaluation,
                    on_event=on_event,
                )

    made_from = {
        "terminology": None if terminology is None else Terminology.open(terminology).manifest.fingerprint,
        "pairs": None if pairs is None else PairSet.open(pairs).manifest.fingerprint,
        "hidden synonyms": development_synonyms,
        "development data": {Path(file).name: sha256_file(Path(file)) for file in development},
        "development terminology": None
        if development_terminology is None
        else Terminology.open(development_terminology).manifest.fingerprint,
    }
    return train_combinations(found, out, train, made_from=made_from, on_event=on_event)


def train_combinations(
    found: Sequence[Combination],
    out: str | Path,
    train: Callable[[Recipe, Path, Path], object],
    *,
    made_from: Mapping[str, Any],
    on_event: Callable[[str], None] | None = None,
) -> list[Trained]:
    """Train every combination that is not finished yet, for `train_grid`.

    Args:
        found: From `onoma.training.grid.combinations`.
        out: Where everything is written.
        train: Trains a recipe into an encoder folder; the third argument is the folder for its pairs, which other
            combinations may have made.
        made_from: On what all combinations are trained and measured, JSON-serialisable. A grid is not continued on
            something else.
        on_event: Called with sentences worth telling.

    Returns, Raises:
        As `train_grid`.
    """
    out = Path(out)
    keys = list(dict.fromkeys(key for combination in found for key in combination.settings))
    with processes(found[0].recipe.config.device), _alone(out, made_from):
        tell = on_event if on_event is not None and is_main() else lambda _: None
        table = {made.name: made for made in broadcast([_known(out, combination, keys) for combination in found])}
        finished = sum(made.status == DONE for made in table.values())
        tell(f"{len(table)} combinations in {out}, {finished} of them finished")
        earlier = broadcast(_earlier(out))
        if others := len(earlier.keys() - table.keys()):
            tell(f"{others} combinations of an earlier grid in {out} are not in its table any more")
        for name, made in table.items():
            before = earlier.get(name, {})
            if made.status == WAITING and before.get("status") in (FAILED, BEGUN):
                table[name] = replace(made, **{key: before[key] for key in _OF_A_TRY if key in before})
        _write(out, made_from, table)
        refused: list[OnomaError] = []
        # One that ends all processes each time must not keep those behind it from their turn.
        in_order = sorted(found, key=lambda one: (table[one.name].tries, table[one.name].status in (FAILED, BEGUN)))
        for number, combination in enumerate(in_order, start=1):
            if table[combination.name].status == DONE:
                remove_saved_run(out / combination.name)
                continue
            tell(f"{number}/{len(found)}  {combination.name}")
            folder = out / combination.name
            if world_size() > 1:  # one of the processes may end all of them before this one can tell why
                tried = table[combination.name]
                _write(
                    out, made_from, table | {tried.name: replace(tried, status=BEGUN, why="", tries=tried.tries + 1)}
                )
            try:
                train(combination.recipe, folder, _pairs_folder(out, combination.recipe.config))
            except PeerError:
                raise
            except (ConfigError, InputError, TrainingError) as error:  # base and names may not allow what is asked
                refused += [error] * isinstance(error, ConfigError | InputError)
                tell(f"failed: {error}")
                tried = table[combination.name]
                tries = tried.tries + (world_size() > 1)
                table[tried.name] = replace(tried, status=FAILED, why=str(error), tries=tries)
                if world_size() > 1:  # the others may not have failed, and would wait
                    _write(out, made_from, table)
                    raise
            except BaseException:  # it was interrupted, and goes on first
                _write(out, made_from, table)
                raise
            else:
                table[combination.name] = broadcast(_known(out, combination, keys))
            _write(out, made_from, table)
        if refused and len(refused) == len(found):  # the data suit none of them: nothing has begun
            _write(out, made_from, {name: replace(made, status=WAITING, why="") for name, made in table.items()})
            raise refused[0]
        if is_main() and all(made.status == DONE for made in table.values()):
            shutil.rmtree(out / ".pairs", ignore_errors=True)
    return best_first(table.values())


def _earlier(out: Path) -> dict[str, dict[str, Any]]:
    """What a call before has written down of combinations that it began, by name."""
    report = out / REPORT_NAME
    if not is_main() or not report.exists():
        return {}
    combinations = json.loads(report.read_text(encoding="utf-8")).get("combinations", [])
    return {one["name"]: one for one in combinations if "name" in one and one.get("status", WAITING) != WAITING}


def best_first(table: Iterable[Trained]) -> list[Trained]:
    """By the first development score, then the mean MRR; where there are none, by loss. Unfinished ones come last."""

    def order(made: Trained) -> tuple[bool, float, float, float]:
        mrr = [value for name, value in made.scores.items() if name.endswith("/mrr")]
        by_loss = 0.0 if made.scores else float("inf") if made.loss is None else made.loss
        return made.status != DONE, -next(iter(made.scores.values()), 0.0), -sum(mrr), by_loss

    return sorted(table, key=order)


@contextlib.contextmanager
def _alone(out: Path, made_from: Mapping[str, Any]) -> Iterator[None]:
    """The grid's folder, for this process (and those that train with it) alone.

    Raises:
        ArtifactExistsError: the folder holds something else.
        MismatchError: it is a grid on other data.
        TrainingError: another process works in it.
    """
    if not is_main():
        yield
        return
    report = out / REPORT_NAME
    if report.exists():
        try:
            written = json.loads(report.read_text(encoding="utf-8"))
            known = dict(written["made_from"])
            has_begun = any(out.glob("*.run")) or any(one["status"] != WAITING for one in written["combinations"])
        except (KeyError, TypeError, ValueError):
            raise ArtifactExistsError(
                f"{out} holds a {REPORT_NAME} that is no grid's, or a damaged one; write to another place."
            ) from None
        if has_begun and known != json.loads(json.dumps(made_from)):
            differing = sorted(key for key in {*known, *made_from} if known.get(key) != made_from.get(key))
            raise MismatchError(
                f"{out} holds a grid on something else ({', '.join(differing)}). Write to another place, or remove it."
            )
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ArtifactExistsError(f"{out} holds something that is no grid; write to another place.")
    out.mkdir(parents=True, exist_ok=True)
    lock = FileLock(out / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise TrainingError(f"another process is training the grid {out} just now; wait for it.") from None
    try:
        yield
    finally:
        lock.release()


def _known(out: Path, combination: Combination, keys: Sequence[str]) -> Trained:
    """What there is of a combination.

    Raises:
        MismatchError: an encoder that was trained with other settings lies in its place.
    """
    waiting = Trained(combination.name, _values(combination, keys), combination.tables)
    folder = out / combination.name
    if not folder.exists():
        return waiting
    config = combination.recipe.config
    if config.completed(open_artifact(folder, "encoder").config.get("training", {})) != config.model_dump(mode="json"):
        raise MismatchError(
            f"{folder} holds an encoder that was trained with other settings. Write to another place, or remove it."
        )
    report = json.loads((folder / TRAIN_NAME).read_text(encoding="utf-8"))
    return replace(
        waiting,
        status=DONE,
        scores=_scores(report),
        loss=report["last_loss"],
        steps=report["steps"],
        seconds=report["seconds"],
        names_per_second=report["names_per_second"],
    )


def _scores(report: Mapping[str, Any]) -> dict[str, float]:
    """What the saved weights reached, by ``train.json``; empty without development data."""
    saved = [line for line in report["evaluations"] if line["step"] == report["saved_step"]]
    return Evaluation.from_json(saved[-1]).figures() if saved else {}


def _values(combination: Combination, keys: Sequence[str]) -> dict[str, str]:
    values = {key: value for key, value, _ in settings_of(combination.recipe.config)}
    return {key: values.get(key, "") for key in keys}


def _pairs_folder(out: Path, config: TrainingConfig) -> Path:
    values = config.model_dump(mode="json")
    digest = hashlib.sha256(json.dumps({key: values[key] for key in _OF_PAIRS}).encode()).hexdigest()
    return out / ".pairs" / digest[:12]


def _write(out: Path, made_from: Mapping[str, Any], table: Mapping[str, Trained]) -> None:
    if not is_main():
        return
    lines = best_first(table.values())
    report = {"made_from": made_from, "combinations": [asdict(made) for made in lines]}
    write_text_atomically(out / REPORT_NAME, json.dumps(report, indent=1))
    rows = [
        {
            "name": made.name,
            **made.settings,
            "status": made.status,
            **{name: made.scores.get(name) for scored in lines for name in scored.scores},
            **{column: getattr(made, key) for column, key in _MEASURED.items()},
        }
        for made in lines
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text_atomically(out / TABLE_NAME, text.getvalue())
