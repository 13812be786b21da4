"""A real HTTP server on 127.0.0.1 that answers as good and bad servers do, and counts the bytes it sends."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

from onoma.terminology import FetchReport, fetch

LAST_MODIFIED = "Mon, 05 Oct 2026 08:00:00 GMT"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    counted: Request

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        files = self.server.files
        answers = files.answers.get(self.path, [])
        self.counted = Request(self.path, self.headers)
        files.requests.append(self.counted)
        answer = answers.pop(0) if len(answers) > 1 else answers[0] if answers else status(404)
        with contextlib.suppress(ConnectionError):
            answer(self)

    def begin(self, code: int, **headers: str | None) -> None:
        """Status and headers; ``Content_Length="3"``."""
        self.send_response(code)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def body(self, data: bytes) -> None:
        """Bytes of the body."""
        self.counted.n_sent += len(data)  # before who asked can have it all
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


Answer: TypeAlias = Callable[[Handler], None]


@dataclass
class Request:
    """What was asked, and how many bytes of the body were sent."""

    path: str
    headers: Message
    n_sent: int = 0


@dataclass
class FileServer:
    """What is served: for each path the answers in turn, the last of them for ever."""

    url: str
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    @property
    def n_sent(self) -> int:
        return sum(request.n_sent for request in self.requests)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    files: FileServer


@contextlib.contextmanager
def running() -> Iterator[FileServer]:
    """A server, as long as the block lasts."""
    server = _Server(("127.0.0.1", 0), Handler)
    server.files = FileServer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.files
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def serve(
    data: bytes,
    *,
    etag: str | None = '"v1"',
    last_modified: str | None = None,
    has_ranges: bool = True,
    minds_if_range: bool = True,
    minds_conditions: bool = True,
    cut_at: int | None = None,
    shown_type: str = "application/octet-stream",
    encoding: str | None = None,
) -> Answer:
    """The file as a proper server sends it, except for what is asked for.

    Args:
        data: The file.
        etag: Of this version.
        last_modified: Date of this version.
        has_ranges: Whether parts can be asked for.
        minds_if_range: Whether it looks at the version before it sends a part.
        minds_conditions: Whether it answers 304.
        cut_at: The connection ends before this byte of the file.
        shown_type: Content-Type.
        encoding: Content-Encoding.
    """

    def answer(handler: Handler) -> None:
        asked = handler.headers
        validators = {"ETag": etag, "Last_Modified": last_modified, "Content_Type": shown_type}
        validators["Content_Encoding"] = encoding
        is_same = (etag is not None and asked.get("If-None-Match") == etag) or (
            last_modified is not None and asked.get("If-Modified-Since") == last_modified
        )
        if minds_conditions and is_same:
            handler.begin(304, **validators)
            return
        first = 0
        found = re.fullmatch(r"bytes=(\d+)-", asked.get("Range", ""))
        is_version = asked.get("If-Range") in {etag, last_modified} or not minds_if_range
        if found and has_ranges and is_version:
            first = int(found[1])
            if first >= len(data):
                handler.begin(416, Content_Range=f"bytes */{len(data)}", Content_Length="0")
                return
            length = str(len(data) - first)
            shown = f"bytes {first}-{len(data) - 1}/{len(data)}"
            handler.begin(206, Content_Length=length, Content_Range=shown, **validators)
        else:
            handler.begin(200, Content_Length=str(len(data)), **validators)
        end = len(data) if cut_at is None else max(first, cut_at)
        handler.body(data[first:end])
        handler.close_connection = end < len(data)

    return answer


def status(code: int, data: bytes = b"", **headers: str) -> Answer:
    """A status with headers."""

    def answer(handler: Handler) -> None:
        handler.begin(code, Content_Length=str(len(data)), **headers)
        handler.body(data)

    return answer


def redirect(to: str) -> Answer:
    """To another address."""
    return status(302, Location=to)


def get(server: FileServer, folder: Path, *answers: Answer, name: str = "x.obo", **options: Any) -> FetchReport:
    """Fetch from a path at which the server gives these answers in turn."""
    if answers:
        server.answers[f"/{name}"] = list(answers)
    return fetch("mondo", folder, url=f"{server.url}/{name}", **options)


def left(folder: Path) -> list[str]:
    """Names of the files in a folder."""
    return sorted(file.name for file in folder.iterdir())
