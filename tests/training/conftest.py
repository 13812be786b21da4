from __future__ import annotations

import signal
from collections.abc import Iterator
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


@pytest.fixture
def signals_as_usual() -> Iterator[None]:
    """Also where the tests run in the background of a shell, which ignores SIGINT."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
