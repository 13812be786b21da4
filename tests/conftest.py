"""The same examples each time, if no others are asked for; and no waiting for the disk, or with a watch in hand."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.load_profile("ci")  # Hypothesis' own: no random seed, no deadline, no complaint of a slow machine
settings.register_profile("others", settings.get_profile("ci"), derandomize=False)  # of `make test-all`


@pytest.fixture(scope="session", autouse=True)
def disk_is_not_waited_for() -> Iterator[None]:
    """A tenth to a third of the time of these tests, which write thousands of small folders and cut no power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
