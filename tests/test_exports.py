"""What packages say they give is there."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import onoma

PACKAGES = ["onoma", *(f"onoma.{found.name}" for found in pkgutil.iter_modules(onoma.__path__) if found.ispkg)]


def test_who_checks_types_is_told_the_same() -> None:
    """What is loaded when it is first used is declared besides."""
    tree = ast.parse(Path(onoma.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in ast.walk(block) if isinstance(node, ast.ImportFrom)]
    declared = [(node.module, name.name) for node in imports for name in node.names]
    assert sorted(name for module, name in declared if module == "onoma") == sorted(onoma._ROOMS)
    assert {name: module for module, name in declared if module != "onoma"} == onoma._HOME


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package: str) -> None:
    opened = importlib.import_module(package)
    missing = [name for name in getattr(opened, "__all__", ()) if not hasattr(opened, name)]
    assert not missing
