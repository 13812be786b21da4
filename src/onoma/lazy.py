"""Packages whose names are loaded when they are first used: who links does not load what builds, trains and imports."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazily(
    package: str, homes: Mapping[str, Sequence[str]], *, rooms: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, the ``__dir__`` (PEP 562) and the ``__all__`` of a package.

    Args:
        package: Its name.
        homes: Names that it offers, by the module that has them.
        rooms: Modules of it that ``__dir__`` names too.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            # A module of the package, as if something had imported it already.
            if not name.startswith("__") and importlib.util.find_spec(f"{package}.{name}"):
                return importlib.import_module(f"{package}.{name}")
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(home_of[name]), name)
        setattr(sys.modules[package], name, found)  # so that it is asked for once
        return found

    def names() -> list[str]:
        own = {name for name in vars(sys.modules[package]) if name.startswith("__")}
        return sorted({*own, *home_of, *rooms})  # not what the package itself imports: an editor would offer it

    return load, names, sorted(home_of)
