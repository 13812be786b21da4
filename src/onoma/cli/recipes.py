"""``onoma recipes``: what `onoma train` and its siblings can be told to do, and grids."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onoma.cli.commands import Commands
from onoma.cli.options import Settings, parse_assignments
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.training.settings import NamedSettings

app = Commands(help="Show the training recipes included with Onoma.", no_args_is_help=True)


@app.command("list")
def list_recipes() -> None:
    """List the recipes and the grids that vary them.

    To train a grid: onoma train RECIPE --grid GRID.
    """
    from onoma.cli import show
    from onoma.training.grid import grid_names, load_grid
    from onoma.training.shipped import COMMANDS

    for kind in _kinds():
        of = "" if kind.kind == "recipe" else f" of {COMMANDS[kind.kind]}"
        show.table([f"recipe{of}", "what it is"], [[name, kind.load(name).description] for name in kind.names()])
        show.out.print()
    show.table(["grid", "what it varies"], [[name, load_grid(name).description] for name in grid_names()])


@app.command("show")
def show_recipe(
    name: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe's name, the path of a .toml file, or the folder of a trained encoder or reranker.",
        ),
    ],
    as_toml: Annotated[
        bool, typer.Option("--toml", help="Print it as a .toml file, to change it or to repeat the training.")
    ] = False,
) -> None:
    """Show and explain the settings of a recipe or encoder.

    RECIPE may also be the folder of a trained encoder or reranker.
    """
    from onoma.artifacts import MANIFEST_NAME
    from onoma.cli import show
    from onoma.errors import InputError, did_you_mean
    from onoma.training.grid import grid_names
    from onoma.training.settings import settings_of, settings_of_other_choices
    from onoma.training.shipped import COMMANDS, read_shipped

    kinds = _kinds()
    trained: NamedSettings[Any] | None = None
    is_shipped = any(name in kind.names() for kind in kinds)
    if not is_shipped and (Path(name) / MANIFEST_NAME).is_file():
        for kind in kinds:
            with contextlib.suppress(InputError):
                trained = trained or kind.of_folder(name)
        if trained is None:
            kinds[0].of_folder(name)  # says why
    if not is_shipped and trained is None and name in grid_names():
        raise InputError(
            f"'{name}' is a grid, which varies a recipe's settings",
            fix=f"see what it trains: onoma recipes grid RECIPE {name}",
        )
    if not is_shipped and trained is None and not name.endswith(".toml"):
        names = [shipped for kind in kinds for shipped in kind.names()]
        raise InputError(
            f"there is no recipe '{name}'.{did_you_mean(name, names)} Shipped recipes: {', '.join(names)}",
            fix="name one of these, the path of a .toml file, or the folder of what was trained",
        )
    if name.endswith(".toml"):  # of the first kind that has all its settings
        keys = read_shipped("recipe", name).keys() - {"description"}
        fitting = [kind for kind in kinds if keys <= kind.settings_class().model_fields.keys()] or kinds[:1]
        if others := [COMMANDS[kind.kind] for kind in fitting[1:]]:
            *first, last = others
            words = f"{', '.join(first)} and {last}" if first else last
            show.remark(f"as {COMMANDS[fitting[0].kind]} reads it; {words} would read it with other defaults")
    else:
        fitting = [kind for kind in kinds if name in kind.names()] or kinds[:1]
    recipe = fitting[0].load(name) if trained is None else trained
    if as_toml:
        show.out.print(recipe.as_toml(), end="")
        return
    show.out.print(f"{recipe.name}: {recipe.description}\n")
    show.table(["setting", "value", "meaning"], [list(row) for row in settings_of(recipe.config)])
    if elsewhere := settings_of_other_choices(recipe.config):
        show.out.print("\nand with other choices:\n")
        show.table(["setting", "value", "with", "meaning"], [list(row) for row in elsewhere])


@app.command("grid")
def show_grid(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, or the path of a .toml file.")],
    grid: Annotated[str, typer.Argument(metavar="GRID", help="A grid's name, or the path of a .toml file.")],
    settings: Settings = None,
) -> None:
    """Check and show what a grid would train.

    Shows what onoma train RECIPE --grid GRID would train, without training.
    """
    from onoma.cli import show
    from onoma.training.grid import combinations, load_grid

    loaded = load_grid(grid)
    found = combinations(recipe, loaded, parse_assignments(settings or []))
    show.out.print(f"{loaded.name}: {loaded.description}\n")
    show.table(["combination"], [[combination.name] for combination in found])
    show.remark(quantity(len(found), "combination"))


def _kinds() -> list[type[NamedSettings[Any]]]:
    from onoma.training.alignment_config import Recipe
    from onoma.training.biosyn_config import BiosynRecipe
    from onoma.training.distillation_config import DistillationRecipe
    from onoma.training.reranking_config import RerankingRecipe

    return [Recipe, BiosynRecipe, RerankingRecipe, DistillationRecipe]
