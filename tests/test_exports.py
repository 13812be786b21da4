"""What packages say they give is there."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import onoma

PACKAGES = ["onoma", *(f"onoma.{found.name}" for found in pkgutil.iter_modules(onoma.__path__) if found.ispkg)]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package: str) -> None:
    opened = importlib.import_module(package)
    missing = [name for name in getattr(opened, "__all__", ()) if not hasattr(opened, name)]
    assert not missing
