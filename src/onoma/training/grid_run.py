"""Train all combinations of a grid, one after the other.

Below ``OUT``, each combination has an encoder folder of its own, and ``grid.csv`` and ``grid.json`` have a line for
each, best first; both are rewritten after every combination. The same call resumes after a stop: finished encoders are
kept, an unfinished run resumes from its checkpoint. Combinations that differ only in how they train share their pairs,
which are kept in ``OUT/.pairs`` until the grid is finished.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock, Timeout

from onoma.artifacts import MANIFEST_NAME, ensure_named, sha256_file
from onoma.artifacts.locking import check_system
from onoma.encoders import locate_encoder
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    InputError,
    MismatchError,
    OnomaError,
    TrainingError,
    checked_path,
)
from onoma.files.encodings import checked_encoding
from onoma.files.text_files import check_is_file
from onoma.pairs import MentionFormat, PairSet
from onoma.pairs.languages import check_languages
from onoma.quantities import quantity
from onoma.terminology import Terminology
from onoma.training.alignment_config import SETTINGS_OF_PAIRS, Recipe, TrainingConfig
from onoma.training.alignment_step import StepReport
from onoma.training.distributed import PeerError, broadcast, by_main, is_main, processes, world_size
from onoma.training.grid import Combination, Grid, combinations
from onoma.training.grid_table import (
    BEGUN,
    DONE,
    FAILED,
    REPORT_NAME,
    WAITING,
    Trained,
    best_first,
    earlier_tries,
    read_report,
    state_of,
    write_table,
)
from onoma.training.run import check_run, train_on_pairs, train_on_terminology
from onoma.training.run_config import without_path
from onoma.training.run_folder import remove_saved_run
from onoma.training.tuning import check_base
from onoma.training.watching import Watching
from onoma.types import Tell

_OF_A_TRY = ("status", "why", "tries")
"""Fields of `Trained` that outlast a call that did not come to an end."""
_PAIRS = ".pairs"
_BASES = "bases"
_OF_NAMES = ("normalisation", "max_tokens")
_OF_PAIRS = (*SETTINGS_OF_PAIRS, *_OF_NAMES, "base", "seed")
"""Combinations that agree in these share their pairs."""
_OF_BASE = {*_OF_NAMES, "base", "pooling", "tuning", "matryoshka", "device", "compile"}
"""What a base is tried with; combinations that agree in these are tried once."""


Watch: TypeAlias = Callable[[], contextlib.AbstractContextManager[Watching[StepReport]]]
"""Called for each run; gives who follows it besides those that follow the grid."""


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
    mention_format: MentionFormat | None = None,
    trackers: Sequence[str] = (),
    watch: Watch | None = None,
    on_event: Tell | None = None,
) -> list[Trained]:
    """Train a recipe with every combination of a grid, on a terminology or on pairs.

    Values that no recipe allows, and a width that its encoder does not have, are refused before the first combination
    is trained. A combination that fails (it diverges, memory does not suffice) is recorded, and the others continue;
    the next call tries it again.

    Args:
        recipe: See `Recipe.load`.
        grid: See `onoma.training.grid.load_grid`.
        out: Where everything is written.
        overrides: Settings of all combinations, as `Recipe.load` takes them.
        terminology: Train on its synonyms; or
        pairs: train on these.
        development_synonyms: As in `train_on_terminology`.
        development: As there.
        development_terminology: As there.
        mention_format: As there.
        trackers: As there.
        watch: See `Watch`.
        on_event: Called with sentences worth reporting.

    Returns:
        The table, best first: by the mean acc@1 on development data, without such data by loss.

    Raises:
        ArtifactExistsError: there is something else at ``out``.
        ConfigError: a combination cannot be trained, not exactly one of ``terminology`` and ``pairs`` is given, or the
            name ``out`` is a dash.
        InputError: what is to be trained or measured on cannot be used.
        MismatchError: there is a grid on other data at ``out``, or an encoder of that name with other settings; or the
            pairs were tokenised with another tokeniser than that of a base.
        TrainingError: another process works on this grid.
        UnavailableError: a base encoder, or the package of a tracker, is not available.
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
            {"trackers": trackers},
            hides=development_synonyms > 0,
            on_pairs=pairs is not None,
        )
    configs = [combination.recipe.config for combination in found]
    for config in {config.model_dump_json(include=_OF_BASE): config for config in configs}.values():
        check_base(config)
    made = None if pairs is None else PairSet.open(pairs)
    bases: dict[str, str] = {}
    for base in dict.fromkeys(combination.recipe.config.base for combination in found):
        located = locate_encoder(base)
        bases[base] = located.fingerprint
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
    look: Watch = watch or (lambda: contextlib.nullcontext(Watching()))

    def train(made: Recipe, encoder: Path, pairs_folder: Path) -> None:
        with look() as of_run:
            watching: Watching[StepReport] = {**of_run, "trackers": trackers, "on_event": on_event}
            if terminology is not None:
                train_on_terminology(
                    made,
                    terminology,
                    encoder,
                    development_synonyms=development_synonyms,
                    development=development,
                    development_terminology=development_terminology,
                    mention_format=mention_format,
                    pairs_folder=pairs_folder,
                    **watching,
                )
            elif pairs is not None:
                train_on_pairs(
                    made,
                    pairs,
                    encoder,
                    development=development,
                    development_terminology=development_terminology,
                    mention_format=mention_format,
                    **watching,
                )

    made_from = {
        "terminology": None if terminology is None else Terminology.open(terminology).manifest.fingerprint,
        "pairs": None if pairs is None else PairSet.open(pairs).manifest.fingerprint,
        "hidden synonyms": development_synonyms,
        "development data": {Path(file).name: sha256_file(Path(file)) for file in development},
        **_how_written(mention_format),
        "development terminology": None
        if development_terminology is None
        else Terminology.open(development_terminology).manifest.fingerprint,
        _BASES: bases,
    }
    return train_combinations(found, out, train, made_from=made_from, on_event=on_event)


def _how_written(mention_format: MentionFormat | None) -> dict[str, Any]:
    """What a file's checksum does not say of what is read from it; nothing where it is read as ever."""
    if mention_format is None:
        return {}
    how = {**asdict(mention_format), "encoding": checked_encoding(mention_format.encoding) or "utf-8"}
    return {"columns and encoding": how} if how != asdict(MentionFormat()) else {}


def train_combinations(
    found: Sequence[Combination],
    out: str | Path,
    train: Callable[[Recipe, Path, Path], object],
    *,
    made_from: Mapping[str, Any],
    on_event: Tell | None = None,
) -> list[Trained]:
    """Train every combination that is not finished yet, for `train_grid`.

    Args:
        found: From `onoma.training.grid.combinations`.
        out: Where everything is written.
        train: Trains a recipe into an encoder folder; the third argument is the folder for its pairs, which other
            combinations may have made.
        made_from: On what all combinations are trained and measured, JSON-serialisable. A grid is not continued on
            something else; of "bases", a fingerprint by name, it may have others besides.
        on_event: Called with sentences worth telling.

    Returns, Raises:
        As `train_grid`.
    """
    out = checked_path(out)
    ensure_named(out, "folder")
    keys = list(dict.fromkeys(key for combination in found for key in combination.settings))
    unnamed = {combination.recipe.config.base for combination in found if "base" not in combination.settings}
    with processes(found[0].recipe.config.device), _alone(out, made_from, unnamed) as recorded:
        tell = by_main(on_event)
        table = {made.name: made for made in broadcast([state_of(out, combination, keys) for combination in found])}
        finished = sum(made.status == DONE for made in table.values())
        tell(f"{quantity(len(table), 'combination')} in {out}, {finished} of them finished")
        earlier = broadcast(earlier_tries(out))
        if others := len(earlier.keys() - table.keys()):
            tell(f"{quantity(others, 'combination')} of an earlier grid in {out}, no longer in its table")
        for name, made in table.items():
            before = earlier.get(name, {})
            if made.status == WAITING and before.get("status") in (FAILED, BEGUN):
                table[name] = replace(made, **{key: before[key] for key in _OF_A_TRY if key in before})
        write_table(out, recorded, table)
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
                write_table(
                    out, recorded, table | {tried.name: replace(tried, status=BEGUN, why="", tries=tried.tries + 1)}
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
                    write_table(out, recorded, table)
                    raise
            except BaseException:  # it was interrupted, and goes on first
                write_table(out, recorded, table)
                raise
            else:
                table[combination.name] = broadcast(state_of(out, combination, keys))
            write_table(out, recorded, table)
        if refused and len(refused) == len(found):  # the data suit none of them: nothing has begun
            write_table(out, recorded, {name: replace(made, status=WAITING, why="") for name, made in table.items()})
            raise refused[0]
        if is_main() and all(made.status == DONE for made in table.values()):
            shutil.rmtree(out / _PAIRS, ignore_errors=True)
    return best_first(table.values())


@contextlib.contextmanager
def _alone(out: Path, made_from: Mapping[str, Any], unnamed: Set[str]) -> Iterator[Mapping[str, Any]]:
    """The grid's folder, for this process (and those that train with it) alone.

    Args:
        out: The folder.
        made_from: See `train_combinations`.
        unnamed: Bases that no name of a combination tells.

    Yields:
        ``made_from``, and bases of combinations that were in the grid's table before.

    Raises:
        ArtifactExistsError: the folder holds something else.
        MismatchError: it is a grid on other data.
        TrainingError: another process works in it.
    """
    if not is_main():
        yield made_from
        return
    report = out / REPORT_NAME
    differing: list[str] = []
    all_bases = made_from.get(_BASES, {})
    if report.exists():
        try:
            written = read_report(report)
            known = written.made_from
            all_bases = {**known.get(_BASES, {}), **all_bases}
            # What a combination that was killed after saving left is not in the table yet.
            is_there = any(out.glob("*.run")) or any(out.glob(f"*/{MANIFEST_NAME}"))
            has_begun = is_there or any(one.status != WAITING for one in written.combinations)
            differing = _differing(known, json.loads(json.dumps(made_from)), unnamed)
        except (AttributeError, TypeError, ValueError):
            raise ArtifactExistsError(
                f"{out} holds a {REPORT_NAME} that is no grid's, or a damaged one; write to another place."
            ) from None
        if has_begun and differing:
            raise MismatchError(
                f"{out} holds a grid on something else ({', '.join(differing)}). Write to another place, or remove it."
            )
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ArtifactExistsError(f"{out} holds something that is no grid; write to another place.")
    check_system()
    out.mkdir(parents=True, exist_ok=True)
    lock = FileLock(out / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise TrainingError(f"another process is training the grid {out} just now; wait for it.") from None
    try:
        if differing:  # nothing was trained on the pairs that were made from something else
            shutil.rmtree(out / _PAIRS, ignore_errors=True)
        yield {**made_from, _BASES: all_bases} if all_bases and not differing else made_from
    finally:
        lock.release()


def _differing(known: Mapping[str, Any], made_from: Mapping[str, Any], unnamed: Set[str]) -> list[str]:
    """What two grids are not on alike; a base that only one of them has is no difference.

    Unless it is ``unnamed`` and another was called so by what was trained from it: then nobody could tell which of the
    two that was.
    """
    keys = {*known, *made_from} - {_BASES}
    before = known.get(_BASES, {})
    called = {without_path(name): fingerprint for name, fingerprint in before.items()}
    bases = []
    for name, fingerprint in made_from.get(_BASES, {}).items():
        same_name = called.get(without_path(name), fingerprint) if name in unnamed else fingerprint
        if before.get(name, same_name) != fingerprint:
            bases.append(name)
    return sorted(key for key in keys if known.get(key) != made_from.get(key)) + [f"the base {name}" for name in bases]


def _pairs_folder(out: Path, config: TrainingConfig) -> Path:
    values = config.model_dump(mode="json")
    digest = hashlib.sha256(json.dumps({key: values[key] for key in _OF_PAIRS}).encode()).hexdigest()
    return out / _PAIRS / digest[:12]
