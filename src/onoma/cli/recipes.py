"""``onoma recipes``: what `onoma train` and its siblings can be told to do, and grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from onoma.cli.commands import Commands
from onoma.cli.options import Settings, parse_assignments

if TYPE_CHECKING:
    from onoma.training.alignment_config import Recipe
    from onoma.training.biosyn_config import BiosynRecipe
    from onoma.training.distillation_config import DistillationRecipe
    from onoma.training.reranking_config import RerankingRecipe
    from onoma.training.run_config import RunConfig

    _AnyRecipe = Recipe | BiosynRecipe | RerankingRecipe | DistillationRecipe

app = Commands(help="The training recipes shipped with Onoma.", no_args_is_help=True)


@app.command("list")
def list_recipes() -> None:
    """List the recipes, and the grids that vary them (onoma train --grid)."""
    from onoma.cli import show
    from onoma.training.alignment_config import load_recipe, recipe_names
    from onoma.training.biosyn_config import biosyn_recipe_names, load_biosyn_recipe
    from onoma.training.distillation_config import distillation_recipe_names, load_distillation_recipe
    from onoma.training.grid import grid_names, load_grid
    from onoma.training.reranking_config import load_reranking_recipe, reranking_recipe_names

    show.table(["recipe", "what it is"], [[name, load_recipe(name).description] for name in recipe_names()])
    show.out.print()
    show.table(
        ["recipe of onoma train-biosyn", "what it is"],
        [[name, load_biosyn_recipe(name).description] for name in biosyn_recipe_names()],
    )
    show.out.print()
    show.table(
        ["recipe of onoma reranker train", "what it is"],
        [[name, load_reranking_recipe(name).description] for name in reranking_recipe_names()],
    )
    show.out.print()
    show.table(
        ["recipe of onoma distil", "what it is"],
        [[name, load_distillation_recipe(name).description] for name in distillation_recipe_names()],
    )
    show.out.print()
    show.table(["grid", "what it varies"], [[name, load_grid(name).description] for name in grid_names()])


@app.command("show")
def show_recipe(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, or the path of a .toml file.")],
) -> None:
    """Show every setting of a recipe, with what it means."""
    from onoma.cli import show
    from onoma.training.alignment_config import TrainingConfig, load_recipe
    from onoma.training.biosyn_config import BiosynConfig, load_biosyn_recipe
    from onoma.training.distillation_config import DistillationConfig, load_distillation_recipe
    from onoma.training.reranking_config import RerankingConfig, load_reranking_recipe
    from onoma.training.settings import settings_of, settings_of_other_choices
    from onoma.training.shipped import read_shipped, shipped_names

    kinds: dict[str, tuple[str, type[RunConfig], Callable[[str], _AnyRecipe]]] = {
        "recipe": ("onoma train", TrainingConfig, load_recipe),
        "biosyn-recipe": ("onoma train-biosyn", BiosynConfig, load_biosyn_recipe),
        "reranking-recipe": ("onoma reranker train", RerankingConfig, load_reranking_recipe),
        "distillation-recipe": ("onoma distil", DistillationConfig, load_distillation_recipe),
    }
    if name.endswith(".toml"):  # of the first kind that has all its settings
        keys = read_shipped("recipe", name).keys() - {"description"}
        fitting = [kind for kind, (_, config, _) in kinds.items() if keys <= config.model_fields.keys()]
        kind = fitting[0] if fitting else "recipe"
        if len(fitting) > 1:
            *first, last = (kinds[other][0] for other in fitting[1:])
            others = f"{', '.join(first)} and {last}" if first else last
            show.remark(f"as {kinds[kind][0]} takes it; {others} would take it with defaults of their own")
    else:
        kind = next((kind for kind in kinds if name in shipped_names(kind)), "recipe")
    _, _, load = kinds[kind]
    recipe = load(name)
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
    """Show and check what onoma train RECIPE --grid GRID would train, without training."""
    from onoma.cli import show
    from onoma.training.grid import combinations, load_grid

    loaded = load_grid(grid)
    found = combinations(recipe, loaded, parse_assignments(settings or []))
    show.out.print(f"{loaded.name}: {loaded.description}\n")
    show.table(["combination"], [[combination.name] for combination in found])
    show.remark(show.count(len(found), "combination"))
