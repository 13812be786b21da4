"""A file server for the tests of fetching, and nothing else of the network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from file_server import FileServer, running

from onoma.terminology.catalogue import downloading


@pytest.fixture(scope="session")
def running_server() -> Iterator[FileServer]:
    with running() as server:
        yield server


@pytest.fixture
def server(running_server: FileServer) -> FileServer:
    """Without answers and requests of other tests."""
    running_server.answers.clear()
    running_server.requests.clear()
    return running_server


@pytest.fixture
def only_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxies, and no connection but to 127.0.0.1."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    connect = socket.create_connection

    def checked(address: tuple[str, int], *arguments: Any, **options: Any) -> socket.socket:
        assert address[0] == "127.0.0.1"
        return connect(address, *arguments, **options)

    monkeypatch.setattr(socket, "create_connection", checked)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that would have been waited."""
    waited: list[float] = []
    monkeypatch.setattr(downloading, "sleep", waited.append)
    return waited
