from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def linker(place: Path, tmp_path: Path) -> Path:
    """A copy of the linker in the module's own folder, to change."""
    return Path(shutil.copytree(place / "linker", tmp_path / "linker"))
