from __future__ import annotations

from pathlib import Path

import pytest

from onoma.pairs import PairSet
from tiny import disease_pairs, tiny_encoder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert")


@pytest.fixture(scope="module")
def pairs(base: Path, tmp_path_factory: pytest.TempPathFactory) -> PairSet:
    return disease_pairs(base, tmp_path_factory.mktemp("pairs"))
