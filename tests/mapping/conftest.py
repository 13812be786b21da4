from __future__ import annotations

from pathlib import Path

import pytest
from mapping_data import make_linker, make_parts_small


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_linker(tmp_path_factory.mktemp("linker"))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    make_parts_small(monkeypatch)
