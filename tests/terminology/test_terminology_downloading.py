"""Downloads from servers that cut, refuse, change and lie."""

from __future__ import annotations

import datetime
import email.utils
import gzip
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from file_server import LAST_MODIFIED, Answer, FileServer, Handler, get, left, redirect, serve, status
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import InputError, UnavailableError
from onoma.terminology import fetch
from onoma.terminology.catalogue.fetching import FetchRecord, record_path
from onoma.terminology.catalogue.part_files import exclusive_part, part_path

DATA = b"format-version: 1.2\n\n[Term]\nid: X:1\nname: heart attack\n" * 50
NEWER = b"format-version: 1.4\n\n[Term]\nid: X:2\nname: heart disease\n" * 60
pytestmark = pytest.mark.usefixtures("only_this_machine")


def test_whole_at_once(server: FileServer, tmp_path: Path) -> None:
    told: list[tuple[int, int | None, str]] = []
    report = get(server, tmp_path / "new" / "folder", serve(DATA), progress=lambda *what: told.append(what))
    assert report.path.read_bytes() == DATA
    assert left(tmp_path / "new" / "folder") == ["x.obo", "x.obo.fetch.json"]
    assert (report.n_bytes, report.n_received, report.resumed_from, report.n_retries) == (len(DATA), len(DATA), 0, 0)
    assert told[-1] == (len(DATA), len(DATA), "x.obo")
    (request,) = server.requests
    assert request.headers["Accept-Encoding"] == "identity"
    assert request.headers["User-Agent"].startswith("onoma/")


def test_cut_and_resumed_in_one_run(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    report = get(server, tmp_path, serve(DATA, cut_at=1000), serve(DATA))
    assert report.path.read_bytes() == DATA
    assert (report.n_retries, report.resumed_from, waits) == (1, 0, [1.0])
    assert [request.n_sent for request in server.requests] == [1000, len(DATA) - 1000]
    assert server.requests[1].headers["Range"] == "bytes=1000-"
    assert server.requests[1].headers["If-Range"] == '"v1"'


def test_cut_and_resumed_in_a_later_run(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="connection failed"):
        get(server, tmp_path, serve(DATA, cut_at=1000), n_retries=0)
    assert left(tmp_path) == ["x.obo.part", "x.obo.part.json"]
    report = get(server, tmp_path, serve(DATA))
    assert report.path.read_bytes() == DATA
    assert (report.resumed_from, report.n_received) == (1000, len(DATA) - 1000)
    assert "from an earlier run" in str(report)
    assert server.n_sent == len(DATA)
    assert left(tmp_path) == ["x.obo", "x.obo.fetch.json"]


def test_server_without_ranges_sends_it_again(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    report = get(server, tmp_path, serve(DATA, cut_at=1000), serve(DATA, has_ranges=False))
    assert report.path.read_bytes() == DATA
    assert server.n_sent == 1000 + len(DATA)


def test_file_changed_between_the_halves(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    report = get(server, tmp_path, serve(DATA, cut_at=1000), serve(NEWER, etag='"v2"'))
    assert report.path.read_bytes() == NEWER
    assert [request.n_sent for request in server.requests] == [1000, len(NEWER)]


@pytest.mark.parametrize("newer", [NEWER, DATA.swapcase()])
@pytest.mark.parametrize("etag", ['"v2"', None])
def test_rest_of_another_version_is_not_glued_on(
    server: FileServer, tmp_path: Path, waits: list[float], newer: bytes, etag: str | None
) -> None:
    lying = serve(newer, etag=etag, last_modified="Tue, 06 Oct 2026 08:00:00 GMT", minds_if_range=False)
    report = get(server, tmp_path, serve(DATA, last_modified=LAST_MODIFIED, cut_at=1000), lying)
    assert report.path.read_bytes() == newer
    assert "Range" not in server.requests[2].headers


@pytest.mark.parametrize(
    ("etag", "date", "if_range"),
    [
        (None, None, None),
        ('W/"v1"', None, None),
        ('W/"v1"', LAST_MODIFIED, LAST_MODIFIED),
        ('"v1"', LAST_MODIFIED, '"v1"'),
    ],
)
def test_resumed_only_by_a_strong_sign(
    server: FileServer, tmp_path: Path, waits: list[float], etag: str | None, date: str | None, if_range: str | None
) -> None:
    report = get(
        server,
        tmp_path,
        serve(DATA, etag=etag, last_modified=date, cut_at=1000),
        serve(DATA, etag=etag, last_modified=date),
    )
    assert report.path.read_bytes() == DATA
    assert server.requests[1].headers.get("If-Range") == if_range
    assert server.n_sent == (len(DATA) if if_range else len(DATA) + 1000)


def test_progress_renews_the_attempts(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    cuts = range(100, len(DATA), 100)
    report = get(server, tmp_path, *(serve(DATA, cut_at=cut) for cut in cuts), serve(DATA), n_retries=1)
    assert report.path.read_bytes() == DATA
    assert report.n_retries == len(cuts)
    assert server.n_sent == len(DATA)
    assert set(waits) == {1.0}


def test_no_progress_ends(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    with pytest.raises(UnavailableError, match="4 times"):
        get(server, tmp_path, serve(DATA, has_ranges=False, cut_at=1000), n_retries=3)
    assert len(server.requests) == 4
    assert waits == [1.0, 2.0, 4.0]
    assert not (tmp_path / "x.obo").exists()


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_passing_trouble_passes(server: FileServer, tmp_path: Path, waits: list[float], code: int) -> None:
    report = get(server, tmp_path, status(code), status(code), serve(DATA))
    assert report.path.read_bytes() == DATA
    assert (report.n_retries, waits) == (2, [1.0, 2.0])


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 204, 300, 501])
def test_refusal_is_taken(server: FileServer, tmp_path: Path, waits: list[float], code: int) -> None:
    with pytest.raises(UnavailableError, match=rf"{code}.*mondo\.monarchinitiative\.org.*--from URL"):
        get(server, tmp_path, status(code) if code != 204 else lambda handler: handler.begin(204))
    assert len(server.requests) == 1
    assert left(tmp_path) == []


def test_retry_after(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    soon = email.utils.format_datetime(datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=20))
    gone = "Mon, 05 Oct 2015 08:00:00 -0000"
    after = [status(429, Retry_After=text) for text in ("7", soon, gone, "a while")]
    get(server, tmp_path, *after, serve(DATA), n_retries=4)
    assert waits[0] == 7.0
    assert 15 < waits[1] <= 20
    assert waits[2:] == [0.0, 8.0]


def test_long_retry_after_is_not_waited_for(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    with pytest.raises(UnavailableError, match="come back in 3,600 s"):
        get(server, tmp_path, status(503, Retry_After="3600"))
    assert waits == []


def test_redirects(server: FileServer, tmp_path: Path) -> None:
    server.answers["/there"] = [serve(DATA)]
    report = get(server, tmp_path, redirect("/there"))
    assert report.path == tmp_path / "x.obo"
    assert report.path.read_bytes() == DATA
    assert f'"final_url": "{server.url}/there"' in (tmp_path / "x.obo.fetch.json").read_text()


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("/x.obo", "more than 10 times"),
        ("file:///etc/hostname", "neither http nor https"),
        ("ftp://127.0.0.1/x.obo", "neither http nor https"),
        ("http://[::1", "connection failed"),
    ],
)
def test_bad_redirects(server: FileServer, tmp_path: Path, waits: list[float], to: str, words: str) -> None:
    with pytest.raises(UnavailableError, match=words):
        get(server, tmp_path, redirect(to))
    assert left(tmp_path) == []


def test_silence(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    def silent(handler: Handler) -> None:
        time.sleep(0.5)

    with pytest.raises(UnavailableError, match="no answer in time"):
        get(server, tmp_path, silent, timeout_s=0.1, n_retries=1)
    assert len(server.requests) == 2


def test_closed_port(tmp_path: Path, waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UnavailableError) as caught:
        fetch("doid", tmp_path, url=f"http://127.0.0.1:{port}/doid.obo")
    words = str(caught.value)
    assert "127.0.0.1 cannot be reached" in words
    assert "https://disease-ontology.org/" in words
    assert f"onoma terminology import obo {tmp_path}/doid.obo -o doid --set prefixes=DOID" in words
    assert len(waits) == 3
    assert left(tmp_path) == []


def test_no_size(server: FileServer, tmp_path: Path) -> None:
    def until_closed(handler: Handler) -> None:
        handler.begin(200, Connection="close")
        handler.body(DATA)
        handler.close_connection = True

    told: list[tuple[int, int | None, str]] = []
    report = get(server, tmp_path, until_closed, progress=lambda *what: told.append(what))
    assert report.path.read_bytes() == DATA
    assert told[0][1] is None
    assert "a cut-off end would not be seen" in str(report)


def chunked(*pieces: bytes, is_whole: bool = True) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(200, Transfer_Encoding="chunked", ETag='"v1"')
        for piece in pieces:
            handler.body(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        handler.body(b"0\r\n\r\n" if is_whole else b"")
        handler.close_connection = not is_whole

    return answer


def test_chunks_end_visibly(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    report = get(server, tmp_path, chunked(DATA[:1000], is_whole=False), chunked(DATA[:500], DATA[500:]))
    assert report.path.read_bytes() == DATA
    assert report.n_retries == 1
    assert report.notes == ()


def test_content_encoding_is_undone(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    packed = gzip.compress(DATA)
    cut = serve(packed, encoding="gzip", cut_at=len(packed) // 2)
    report = get(server, tmp_path, cut, serve(packed, encoding="gzip"))
    assert report.path.read_bytes() == DATA
    assert "Range" not in server.requests[1].headers


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", None])
def test_gz_is_kept_as_it_is(server: FileServer, tmp_path: Path, waits: list[float], encoding: str | None) -> None:
    packed = gzip.compress(os.urandom(2000))
    answers = [serve(packed, encoding=encoding, cut_at=1000), serve(packed, encoding=encoding)]
    report = get(server, tmp_path, *answers, name="x.obo.gz")
    assert report.path.read_bytes() == packed
    assert server.n_sent == len(packed)


def test_unasked_packing_is_refused(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="not asked to \\(br\\)"):
        get(server, tmp_path, serve(DATA, encoding="br"))
    assert left(tmp_path) == []


def test_interrupt_loses_nothing(server: FileServer, tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None, what: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(server, tmp_path, serve(DATA), progress=interrupt)
    there = part_path(tmp_path / "x.obo").stat().st_size
    assert there > 0
    report = get(server, tmp_path, serve(DATA))
    assert report.path.read_bytes() == DATA
    assert report.resumed_from == min(there, len(DATA) - 1)


def test_killed_before_it_was_renamed(server: FileServer, tmp_path: Path) -> None:
    """The whole file lies in .part: one byte is asked for, to see that the version is still the same."""
    with pytest.raises(UnavailableError):
        get(server, tmp_path, serve(DATA, cut_at=len(DATA) - 1), n_retries=0)
    part_path(tmp_path / "x.obo").write_bytes(DATA)
    report = get(server, tmp_path, serve(DATA))
    assert report.path.read_bytes() == DATA
    assert report.n_received == 1


@pytest.mark.parametrize("spoil", ["{", "[]", '{"url": 1}', ""])
def test_unreadable_note_on_the_part(server: FileServer, tmp_path: Path, spoil: str) -> None:
    with pytest.raises(UnavailableError):
        get(server, tmp_path, serve(DATA, cut_at=1000), n_retries=0)
    (tmp_path / "x.obo.part.json").write_text(spoil)
    assert get(server, tmp_path, serve(DATA)).path.read_bytes() == DATA
    assert "Range" not in server.requests[1].headers


def test_part_longer_than_the_file(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError):
        get(server, tmp_path, serve(DATA, cut_at=1000), n_retries=0)
    part_path(tmp_path / "x.obo").write_bytes(DATA + DATA)
    assert get(server, tmp_path, serve(DATA)).path.read_bytes() == DATA


def test_no_such_rest(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    report = get(server, tmp_path, serve(DATA, cut_at=1000), status(416), serve(DATA))
    assert report.path.read_bytes() == DATA
    assert "Range" not in server.requests[2].headers


def test_one_process_at_a_time(server: FileServer, tmp_path: Path) -> None:
    with exclusive_part(tmp_path / "x.obo"), pytest.raises(UnavailableError, match="Another process"):
        get(server, tmp_path, serve(DATA))
    assert get(server, tmp_path, serve(DATA)).path.read_bytes() == DATA


def test_the_part_of_the_next_process_is_left_alone(tmp_path: Path) -> None:
    """Once a file has its name, another process may begin to fetch it again before the first one has cleared up."""
    file = tmp_path / "x.obo"
    with ExitStack() as earlier, ExitStack() as later:
        first = earlier.enter_context(exclusive_part(file))
        first.write(b"old")
        first.finish()
        second = later.enter_context(exclusive_part(file))
        earlier.close()
        second.write(b"new")
        second.finish()
    assert file.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["x.obo"]


def test_no_room(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("usage", (), {"free": 10})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    with pytest.raises(InputError, match="no room"):
        get(server, tmp_path, serve(DATA))
    assert left(tmp_path) == []


def test_disk_refuses_while_writing(server: FileServer, tmp_path: Path) -> None:
    """A real refusal: a process that may write 1,000 bytes into a file."""
    server.answers["/x.obo"] = [serve(DATA)]
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from onoma.terminology import fetch\n"
        f"fetch('mondo', {str(tmp_path)!r}, url='{server.url}/x.obo')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "InputError" in done.stderr
    assert "cannot be written (File too large)" in done.stderr
    assert part_path(tmp_path / "x.obo").stat().st_size == 1000
    assert get(server, tmp_path).path.read_bytes() == DATA


def test_folder_that_cannot_be(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the folder cannot be made"):
        get(server, tmp_path / "file" / "folder", serve(DATA))


def test_read_only_folder(server: FileServer, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    if os.geteuid() == 0:
        locked = Path("/proc")  # where not even root can make a file
    with pytest.raises(InputError, match=r"cannot be written \("):
        get(server, locked, serve(DATA))


def test_proxy_of_the_environment(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "http://publisher.invalid/x.obo"
    monkeypatch.setenv("HTTP_PROXY", server.url)
    server.answers[address] = [serve(DATA)]
    assert fetch("mondo", tmp_path, url=address).path.read_bytes() == DATA


def test_impossible_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://127.0.0.1")
    with pytest.raises(UnavailableError, match="proxy"):
        fetch("mondo", tmp_path, url="http://publisher.invalid/x.obo")


VERSIONS = {0: DATA, 1: NEWER}


@st.composite
def troubles(draw: st.DrawFn) -> list[tuple[str, int, int, bool]]:
    kinds = st.tuples(
        st.sampled_from(["cut", "500", "416"]), st.sampled_from([0, 1]), st.integers(0, 2800), st.booleans()
    )
    return draw(st.lists(kinds, max_size=6))


@settings(max_examples=25)
@given(troubles=troubles(), last=st.sampled_from([0, 1]), has_ranges=st.booleans())
def test_whatever_happens_the_file_is_one_version(
    running_server: FileServer,
    tmp_path_factory: pytest.TempPathFactory,
    troubles: list[tuple[str, int, int, bool]],
    last: int,
    has_ranges: bool,
) -> None:
    folder = tmp_path_factory.mktemp("fetch")
    answers: list[Answer] = []
    for kind, version, cut_at, ranges in troubles:
        cut = serve(VERSIONS[version], etag=f'"{version}"', cut_at=cut_at, has_ranges=ranges)
        answers.append(cut if kind == "cut" else status(int(kind)))
    answers.append(serve(VERSIONS[last], etag=f'"{last}"', has_ranges=has_ranges))
    for _ in answers:  # each run ends at the first trouble
        try:
            report = get(running_server, folder, *answers, n_retries=0)
            break
        except UnavailableError:
            assert not (folder / "x.obo").exists()
            answers = running_server.answers["/x.obo"]
    record = FetchRecord.model_validate_json(record_path(report.path).read_text())
    assert report.path.read_bytes() == VERSIONS[int((record.etag or "").strip('"'))]
    assert left(folder) == ["x.obo", "x.obo.fetch.json"]
