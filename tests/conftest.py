"""The same examples each time, and no waiting: neither for the disk nor with a watch in hand."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.load_profile("ci")  # Hypothesis' own: no random seed, no deadline, no complaint of a slow machine


@pytest.fixture(scope="session", autouse=True)
def disk_is_not_waited_for() -> Iterator[None]:
    """A tenth to a third of the time of these tests, which write thousands of small folders and cut no power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
