"""``onoma recipes``: what `onoma train` can be told to do."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="The training recipes shipped with Onoma.", no_args_is_help=True)


@app.command("list")
def list_recipes() -> None:
    """List the recipes."""
    from onoma.cli import show
    from onoma.training.config import load_recipe, recipe_names

    show.table(["recipe", "what it is"], [[name, load_recipe(name).description] for name in recipe_names()])


@app.command("show")
def show_recipe(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, or the path of a .toml file.")],
) -> None:
    """Show every setting of a recipe, with what it means."""
    from onoma.cli import show
    from onoma.training.config import load_recipe, settings_of

    recipe = load_recipe(name)
    show.out.print(f"{recipe.name}: {recipe.description}\n", markup=False)
    show.table(["setting", "value", "meaning"], [list(row) for row in settings_of(recipe.config)])
