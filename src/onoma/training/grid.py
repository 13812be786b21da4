"""A grid: one recipe with every combination of some of its settings.

A grid is a TOML file with a ``description`` and tables ``[[vary]]``. Each of these gives lists of values for settings
of a recipe, under the names that ``--set`` takes (those with a dot in quotes), and stands for all combinations of its
values; the grid is all of its tables together::

    description = "two losses, two rates"

    [[vary]]
    loss = ["multi-similarity", "circle"]
    learning_rate = [1e-5, 2e-5]

    [[vary]]
    "mining.margin" = [0.1, 0.3]

stands for four combinations and two more. Grids shipped with Onoma are in ``training/grids``; you can give the path of
a file of your own instead. `onoma.training.grid_run` trains them.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onoma.errors import ConfigError
from onoma.training.alignment_config import Recipe
from onoma.training.run_config import without_path
from onoma.training.settings import without_name
from onoma.training.shipped import read_shipped, shipped_names

_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Grid:
    """What is varied; values are texts as ``--set`` takes them."""

    name: str
    description: str
    tables: tuple[Mapping[str, tuple[str, ...]], ...]
    """For each ``[[vary]]``, the values of its settings."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One cell of a grid."""

    name: str
    """Of its folder: ``learning_rate=1e-05,loss=circle``."""
    settings: Mapping[str, str]
    """What the grid sets in it, texts as ``--set`` takes them."""
    recipe: Recipe
    """The recipe with these settings."""
    tables: tuple[int, ...]
    """Numbers of the ``[[vary]]`` tables that have it; the recipe's own values are often in several."""
    places: tuple[int, ...]
    """Its number among the combinations of each of these tables, in the order of the file."""


def grid_names() -> list[str]:
    """Names of the grids shipped with Onoma.

    Example:
        >>> "sapbert-grid" in grid_names()
        True
    """
    return shipped_names("grid")


def load_grid(name: str) -> Grid:
    """Load a grid by name or path.

    Args:
        name: A shipped grid, or the path of a ``.toml`` file.

    Raises:
        InputError: no such grid, or the file is not TOML.
        ConfigError: it is not written as a grid.
    """
    values = read_shipped("grid", name)
    tables = values.pop("vary", None)
    description = str(values.pop("description", ""))
    if values:
        raise ConfigError(
            f"{name}: a grid has a description and [[vary]] tables; found '{next(iter(values))}' outside of them."
        )
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) and table for table in tables):
        raise ConfigError(f"{name}: a grid has one or more [[vary]] tables with settings; found none.")
    return Grid(Path(name).stem, description, tuple(_texts(name, table) for table in tables))


def combinations(recipe: str, grid: Grid, overrides: Mapping[str, Any] | None = None) -> list[Combination]:
    """All combinations of a grid, each once, in the order of the file; every one is checked.

    Args:
        recipe: See `Recipe.load`.
        grid: See `load_grid`.
        overrides: Settings of all combinations, as `Recipe.load` takes them.

    Raises:
        InputError: there is no such recipe.
        ConfigError: a setting does not exist, has a value that is not allowed in one of the combinations, or is both
            varied and given in ``overrides``.

    Example:
        >>> grid = Grid("g", "", ({"learning_rate": ("1e-5", "2e-5"), "loss": ("nca",)}, {"seed": ("0", "1")}))
        >>> "; ".join(combination.name for combination in combinations("quickstart", grid))
        'learning_rate=1e-5,loss=nca; learning_rate=2e-5,loss=nca; seed=0; seed=1'
    """
    fixed = dict(overrides or {})
    found: dict[str, Combination] = {}
    for number, table in enumerate(grid.tables):
        if both := sorted(set(map(without_name, fixed)) & set(map(without_name, table))):
            raise ConfigError(f"{grid.name} varies {', '.join(both)}; leave it out of --set.")
        for place, values in enumerate(itertools.product(*table.values())):
            settings = dict(zip(table, values, strict=True))
            try:
                made = Recipe.load(recipe, {**fixed, **settings})
            except ConfigError as error:
                raise ConfigError(f"{grid.name}, combination {_words(settings)}: {error}") from None
            key = made.config.model_dump_json()
            words = _words(_without_paths(settings, made))
            known = found.setdefault(key, Combination(words, settings, made, (number,), (place,)))
            if number not in known.tables:
                found[key] = replace(known, tables=(*known.tables, number), places=(*known.places, place))
    return _with_folder_names(list(found.values()))


def _without_paths(settings: Mapping[str, str], made: Recipe) -> Mapping[str, str]:
    """The same, of a base in a folder its name alone and what tells it from others of that name.

    They name what is trained, and no path of a user's gets in there.
    """
    base = made.config.base
    told = without_path(base)
    if "base" not in settings or told == base:
        return settings
    return {**settings, "base": f"{told}-{hashlib.sha256(base.encode()).hexdigest()[:8]}"}


def _words(settings: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in settings.items())


def _with_folder_names(found: list[Combination]) -> list[Combination]:
    """The same, with names that are good for folders and differ, letters' case aside."""
    named: list[Combination] = []
    for combination in found:
        lists_as_sums = combination.name.replace(", ", "+").translate(str.maketrans("", "", "[]\"' "))
        name = re.sub(r"[^\w.=,+-]+", "-", lists_as_sums)
        taken = {other.name.lower() for other in named}
        if len(name) > _LONGEST_NAME or name.lower() in taken:
            digest = hashlib.sha256(json.dumps(dict(combination.settings)).encode()).hexdigest()
            name = f"{name[:_LONGEST_NAME]}-{digest[:8]}"
        named.append(replace(combination, name=name))
    return named


def _texts(name: str, table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    texts = {}
    for key, values in table.items():
        if isinstance(values, dict):
            raise ConfigError(
                f'{name}: put settings with a dot in quotes: "{key}.{next(iter(values), "...")}" = [...].'
            )
        if not isinstance(values, list) or not values:
            raise ConfigError(f"{name}: {key} takes a list of values, [a, b]; found {values!r}.")
        if any(isinstance(value, dict) for value in values):
            raise ConfigError(f'{name}: {key} takes plain values; vary its settings as "{key}.SETTING" = [...].')
        texts[key] = tuple(_text(value) for value in values)
    return texts


def _text(value: Any) -> str:
    """A value as ``--set`` would have it; TOML has dates, which are words here."""
    return str(value) if isinstance(value, str | datetime.date | datetime.time) else json.dumps(value, default=str)
