"""TOML files that lie in the package, recipes and grids: read by their name, or from a path of the user's."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from onoma.errors import InputError, checked_path, did_you_mean

COMMANDS = {
    "recipe": "onoma train",
    "biosyn-recipe": "onoma train-biosyn",
    "reranking-recipe": "onoma reranker train",
    "distillation-recipe": "onoma distil",
}
"""What takes recipes of each kind."""


def shipped_names(kind: str) -> list[str]:
    """Names of the files of a kind (``"recipe"``, ``"grid"``, ...), sorted."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files("onoma.training").joinpath(f"{kind}s").iterdir()
        if entry.name.endswith(".toml")
    )


def read_shipped(kind: str, name: str) -> dict[str, Any]:
    """The content of a shipped file, or of a ``.toml`` file of the user's.

    Raises:
        InputError: there is none, or it is not TOML.
    """
    path = checked_path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise InputError(f"there is no such {kind} file", path=path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"the {kind} is not text in UTF-8: {error}", path=path) from None
    elif name in shipped_names(kind):
        text = resources.files("onoma.training").joinpath(f"{kind}s", f"{name}.toml").read_text(encoding="utf-8")
    else:
        names = shipped_names(kind)
        commands = {**COMMANDS, "grid": "onoma recipes grid RECIPE, or onoma train RECIPE --grid"}
        elsewhere = [command for other, command in commands.items() if name in shipped_names(other)]
        raise InputError(
            f"there is no {kind} '{name}'.{did_you_mean(name, names)} Shipped {kind}s: {', '.join(names)}",
            fix=f"name one of these; '{name}' is for {elsewhere[0]}"
            if elsewhere
            else "name one of these, or the path of a .toml file",
        )
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of a number with thousands of digits, of brackets in brackets
        raise InputError(f"the {kind} is not valid TOML: {error}", path=name) from None
