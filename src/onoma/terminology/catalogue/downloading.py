"""Downloading one file over HTTP into ``NAME.part``: resumed where it was cut, tried again when it fails.

What the bytes so far are of stands in ``NAME.part.json``: the address, and the ETag or date by which the server tells
versions of the file apart. The next attempt, in this run or a later one, asks for the rest of exactly that version
(``Range`` with ``If-Range``). A server that knows no ranges, or has another version by now, sends the whole file, and
the download begins again; where the server names neither ETag nor date it always begins again, since nothing could
show that the two halves belong together.

The bytes are kept as the server has them: no content encoding is asked for. If one is used all the same, it is undone,
except for a name ending in ``.gz``, where the "encoding" is the file itself.
"""

from __future__ import annotations

import datetime
import email.utils
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from onoma._version import __version__
from onoma.errors import UnavailableError
from onoma.terminology.catalogue.part_files import Begun, PartFile, Version
from onoma.types import Progress

if TYPE_CHECKING:
    import httpx2  # imported where it is used: it takes longer to load than everything else that a terminology needs


_MAX_REDIRECTS = 10
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAX_WAIT_S = 60.0
"""A server that asks for a longer pause is not waited for."""
_SECONDS_BETWEEN_PROGRESS = 0.1


@dataclass(frozen=True)
class Download:
    """A download that is whole.

    Attributes:
        final_url: Where redirects led.
        version: Of the file on the server.
        n_received: Bytes that came in this run.
        resumed_from: Bytes that an earlier run had left.
        n_retries: How often it was tried again.
        is_end_known: Whether the server said how large the file is or where it ends, so that a cut is seen.
        is_unchanged: The server still has the version asked about, and sent nothing.
    """

    final_url: str
    version: Version
    n_received: int = 0
    resumed_from: int = 0
    n_retries: int = 0
    is_end_known: bool = True
    is_unchanged: bool = False


class _TryAgainError(Exception):
    """What may be gone at the next attempt."""

    def __init__(self, problem: str, *, wait_s: float | None = None) -> None:
        super().__init__(problem)
        self.wait_s = wait_s


def without_secrets(url: str) -> str:
    """The address without user, password and query, which may hold keys.

    Example:
        >>> without_secrets("https://me:secret@example.org:8443/a.obo?key=1")
        'https://example.org:8443/a.obo'
    """
    parsed = urlsplit(url)
    return parsed._replace(netloc=parsed.netloc.rpartition("@")[2], query="", fragment="").geturl()


def download(
    url: str,
    part: PartFile,
    *,
    known: Version | None = None,
    progress: Progress,
    timeout_s: float = 60.0,
    n_retries: int = 3,
    first_wait_s: float = 1.0,
) -> Download:
    """Download into a part, until it is whole.

    Args:
        url: http or https; redirects within those are followed.
        part: From `exclusive_part`.
        known: The version that lies at its path already; if the server still has it, nothing is downloaded.
        progress: Told of every tenth of a second.
        timeout_s: Longest silence of the server.
        n_retries: Attempts after a failure; counted anew whenever one brought the download further than ever before.
        first_wait_s: Pause before the first of them; it doubles each time. ``Retry-After`` is honoured instead.

    Raises:
        UnavailableError: the server cannot be reached, refuses, or fails too often. What came stays for the next run.
        InputError: the disk cannot take it.
    """
    attempt = _Attempt(url, part, known, progress)
    n_failures = n_all = 0
    furthest = part.size
    with _client(timeout_s) as client:
        while True:
            try:
                done = attempt.run(client)
            except _TryAgainError as trouble:
                size = part.size
                n_failures = 1 if size > furthest else n_failures + 1
                furthest, n_all = max(furthest, size), n_all + 1
                if n_failures > n_retries:
                    tries = f", {n_failures} times" if n_failures > 1 else ""
                    raise UnavailableError(f"{without_secrets(url)}: {trouble}{tries}.") from None
                wait_s = first_wait_s * 2 ** (n_failures - 1) if trouble.wait_s is None else trouble.wait_s
                if wait_s > _MAX_WAIT_S:
                    raise UnavailableError(
                        f"{without_secrets(url)}: {trouble}, and the server asks to come back in {wait_s:,.0f} s."
                    ) from None
                progress(size, None, f"{part.path.name}: {trouble}; again in {wait_s:.0f} s")
                sleep(wait_s)
            else:
                return replace(done, n_retries=n_all)


@dataclass
class _Attempt:
    """Attempts at one file, in one run."""

    url: str
    part: PartFile
    known: Version | None
    progress: Progress
    n_received: int = 0
    resumed_from: int | None = None

    def run(self, client: httpx2.Client) -> Download:
        """One request, and the bytes it brings."""
        import httpx2

        begun, offset = self.part.begun(without_secrets(self.url))
        headers = {}
        if begun is not None:
            headers = {"Range": f"bytes={offset}-", "If-Range": begun.version.strong or ""}
        elif self.known is not None:
            headers = _conditions(self.known)
        try:
            with client.stream("GET", self.url, headers=headers) as response:
                if response.status_code == 304 and begun is None and self.known is not None:
                    return Download(without_secrets(str(response.url)), self.known, is_unchanged=True)
                return self._receive(response, begun, offset)
        except httpx2.TooManyRedirects:
            raise UnavailableError(
                f"{without_secrets(self.url)}: redirected more than {_MAX_REDIRECTS} times."
            ) from None
        except httpx2.UnsupportedProtocol:
            raise UnavailableError(
                f"{without_secrets(self.url)}: redirected to something that is neither http nor https; not followed."
            ) from None
        except httpx2.TimeoutException as error:
            raise _TryAgainError(f"no answer in time ({type(error).__name__})") from None
        except httpx2.ConnectError as error:
            raise _TryAgainError(f"{urlsplit(self.url).hostname} cannot be reached ({error})") from None
        except httpx2.RequestError as error:
            raise _TryAgainError(f"the connection failed ({error or type(error).__name__})") from None
        except httpx2.InvalidURL as error:
            raise UnavailableError(f"{without_secrets(self.url)} is not an address ({error}).") from None

    def _receive(self, response: httpx2.Response, begun: Begun | None, offset: int) -> Download:
        status = response.status_code
        version = Version(etag=response.headers.get("ETag"), last_modified=response.headers.get("Last-Modified"))
        is_kept_encoded = _is_kept_encoded(response, self.part.path)
        if status == 206 and begun is not None:
            begun = self._check_rest(response, begun, offset, version if is_kept_encoded else None)
            if self.resumed_from is None and not self.n_received:
                self.resumed_from = offset
        elif status == 416 and begun is not None:
            self.part.forget()
            raise _TryAgainError("the server has not the rest of the file (416)", wait_s=0.0)
        elif status == 200:
            self.resumed_from, offset = None, 0
            total = _content_length(response) if is_kept_encoded else None
            # What is unpacked on the way cannot be resumed: its bytes are not those that the server counts.
            begun = Begun(url=without_secrets(self.url), version=version if is_kept_encoded else Version(), total=total)
        else:
            _refuse_status(response)
        self.part.begin(begun, offset)
        size = self._write(response.iter_raw() if is_kept_encoded else response.iter_bytes(), offset, begun.total)
        if begun.total is not None and size != begun.total:
            self.part.forget()
            raise _TryAgainError(f"{size:,} bytes came of {begun.total:,}")
        return Download(
            final_url=without_secrets(str(response.url)),
            version=version,
            n_received=self.n_received,
            resumed_from=self.resumed_from or 0,
            is_end_known=_has_known_end(response),
        )

    def _check_rest(self, response: httpx2.Response, begun: Begun, offset: int, version: Version | None) -> Begun:
        """What was begun, if what comes is the rest of it; otherwise the whole file again."""
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip())
        total = int(found[2]) if found and found[2] != "*" else begun.total
        fits = found is not None and int(found[1]) == offset and begun.total in {None, total}
        if not fits or version is None or version.is_other_than(begun.version):
            self.part.forget()
            raise _TryAgainError("the rest is not of the same file; it begins again", wait_s=0.0)
        return begun.model_copy(update={"total": total})

    def _write(self, chunks: Iterator[bytes], size: int, total: int | None) -> int:
        last, name = 0.0, self.part.path.name
        for chunk in chunks:
            self.part.write(chunk)
            size, self.n_received = size + len(chunk), self.n_received + len(chunk)
            now = time.monotonic()
            if now - last >= _SECONDS_BETWEEN_PROGRESS:
                last = now
                self.progress(size, total, name)
        self.progress(size, total if total is not None else size, name)
        return size


def _client(timeout_s: float) -> httpx2.Client:
    """With the proxies that the environment names."""
    import httpx2

    headers = {"Accept-Encoding": "identity", "User-Agent": f"onoma/{__version__}"}
    try:
        return httpx2.Client(headers=headers, timeout=timeout_s, follow_redirects=True, max_redirects=_MAX_REDIRECTS)
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        raise UnavailableError(
            f"The proxy that the environment names (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) cannot be used: {error}"
        ) from None


def _conditions(known: Version) -> dict[str, str]:
    conditions = {}
    if known.etag:
        conditions["If-None-Match"] = known.etag
    if known.last_modified:
        conditions["If-Modified-Since"] = known.last_modified
    return conditions


def _is_kept_encoded(response: httpx2.Response, path: Path) -> bool:
    """Whether the bytes of the body are those of the file (see the module)."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in {"identity", ""} or (encoding in {"gzip", "x-gzip"} and path.suffix in {".gz", ".tgz"}):
        return True
    if encoding in {"gzip", "deflate"}:
        return False
    raise UnavailableError(
        f"{without_secrets(str(response.url))}: the server packs the file in a way it was not asked to ({encoding})."
    )


def _content_length(response: httpx2.Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isdecimal() else None


def _has_known_end(response: httpx2.Response) -> bool:
    return "Content-Length" in response.headers or "chunked" in response.headers.get("Transfer-Encoding", "").lower()


def _refuse_status(response: httpx2.Response) -> NoReturn:
    status = response.status_code
    words = f"{status} {response.reason_phrase}".strip()
    if status in _PASSING_STATUS:
        raise _TryAgainError(f"the server answers {words}", wait_s=_retry_after(response.headers.get("Retry-After")))
    meaning = {
        401: "it wants an account",
        403: "it refuses programs, or wants an account",
        404: "there is no such file",
        410: "the file is gone",
        407: "the proxy wants an account",
    }.get(status)
    raise UnavailableError(
        f"{without_secrets(str(response.url))}: the server answers {words}{f' ({meaning})' if meaning else ''}."
    )


def _retry_after(text: str | None) -> float | None:
    """Seconds from ``Retry-After``: a number, or a date."""
    if not text:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        until = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=datetime.UTC)
    return max(0.0, (until - datetime.datetime.now(datetime.UTC)).total_seconds())
