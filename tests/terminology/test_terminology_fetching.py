"""What is checked, kept, replaced and recorded when a vocabulary is fetched."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from file_server import LAST_MODIFIED, FileServer, get, left, serve, status

from onoma.artifacts import write_artifact
from onoma.errors import ArtifactExistsError, ConfigError, InputError, UnavailableError
from onoma.terminology import fetch, get_vocabulary
from onoma.terminology.catalogue import part_files

DATA = b"format-version: 1.2\n\n[Term]\nid: MONDO:1\nname: heart attack\n"
NEWER = b"format-version: 1.2\n\n[Term]\nid: MONDO:1\nname: heart attack\n\n[Term]\nid: MONDO:2\nname: cold\n"
SHA256 = hashlib.sha256(DATA).hexdigest()
MD5 = hashlib.md5(DATA).hexdigest()
pytestmark = pytest.mark.usefixtures("only_this_machine")


def test_record(server: FileServer, tmp_path: Path) -> None:
    report = get(server, tmp_path, serve(DATA, last_modified=LAST_MODIFIED))
    record = json.loads((tmp_path / "x.obo.fetch.json").read_text())
    assert record.pop("fetched").startswith("20")
    assert record.pop("onoma_version")
    entry = get_vocabulary("mondo")
    assert record == {
        "vocabulary": "mondo",
        "url": f"{server.url}/x.obo",
        "final_url": f"{server.url}/x.obo",
        "n_bytes": len(DATA),
        "sha256": SHA256,
        "etag": '"v1"',
        "last_modified": LAST_MODIFIED,
        "licence": entry.licence,
        "page": entry.page,
    }
    assert report.sha256 == SHA256
    assert f"sha256 {SHA256}" in str(report)
    assert f"onoma terminology import obo {tmp_path}/x.obo -o mondo --set prefixes=MONDO" in str(report)


@pytest.mark.parametrize(("etag", "date"), [('"v1"', None), (None, LAST_MODIFIED), ('W/"v1"', LAST_MODIFIED)])
def test_second_run_downloads_nothing(server: FileServer, tmp_path: Path, etag: str | None, date: str | None) -> None:
    answer = serve(DATA, etag=etag, last_modified=date)
    get(server, tmp_path, answer)
    report = get(server, tmp_path, answer)
    assert report.is_unchanged
    assert (report.n_received, report.sha256) == (0, SHA256)
    assert "unchanged" in str(report)
    assert [request.n_sent for request in server.requests] == [len(DATA), 0]
    assert left(tmp_path) == ["x.obo", "x.obo.fetch.json"]


def test_second_run_where_the_server_cannot_tell(server: FileServer, tmp_path: Path) -> None:
    answer = serve(DATA, etag=None, minds_conditions=False)
    get(server, tmp_path, answer)
    report = get(server, tmp_path, answer)
    assert report.is_unchanged
    assert report.n_received == len(DATA)


@pytest.mark.parametrize("etag", ['"é"', '"\x7f"', '"' + "x" * 2_000 + '"'])
def test_an_etag_that_cannot_be_sent_back_is_none(server: FileServer, tmp_path: Path, etag: str) -> None:
    cut = serve(DATA, etag=etag, cut_at=20)
    with pytest.raises(UnavailableError, match="connection failed"):
        get(server, tmp_path, cut, n_retries=0)
    assert get(server, tmp_path, serve(DATA, etag=etag)).resumed_from == 0
    assert get(server, tmp_path, serve(DATA, etag=etag)).is_unchanged
    sent = [request.headers for request in server.requests]
    assert [headers.get("If-Range") or headers.get("If-None-Match") for headers in sent] == [None] * 3


def test_newer_version_replaces(server: FileServer, tmp_path: Path) -> None:
    get(server, tmp_path, serve(DATA))
    report = get(server, tmp_path, serve(NEWER, etag='"v2"'))
    assert not report.is_unchanged
    assert report.path.read_bytes() == NEWER
    assert hashlib.sha256(NEWER).hexdigest() in (tmp_path / "x.obo.fetch.json").read_text()


def test_old_file_stays_until_the_new_one_is_whole(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    get(server, tmp_path, serve(DATA))
    with pytest.raises(UnavailableError, match=r"fetched on 20\d\d-\d\d-\d\d is still there"):
        get(server, tmp_path, serve(NEWER, etag='"v2"', cut_at=30), n_retries=0)
    assert (tmp_path / "x.obo").read_bytes() == DATA
    report = get(server, tmp_path, serve(NEWER, etag='"v2"'))
    assert report.path.read_bytes() == NEWER
    assert report.resumed_from == 30


def test_another_address_is_asked_without_conditions(server: FileServer, tmp_path: Path) -> None:
    get(server, tmp_path, serve(DATA))
    server.answers["/mirror/x.obo"] = [serve(NEWER)]  # its "v1" is another file
    report = fetch("mondo", tmp_path, url=f"{server.url}/mirror/x.obo")
    assert report.path.read_bytes() == NEWER


def test_another_release_by_the_query_of_an_address(server: FileServer, tmp_path: Path) -> None:
    url = f"{server.url}/x.obo?release="
    server.answers["/x.obo?release=2"] = [serve(NEWER, etag=None, last_modified=LAST_MODIFIED)]
    server.answers["/x.obo?release=1"] = [serve(DATA, etag=None, last_modified=LAST_MODIFIED)]
    fetch("mondo", tmp_path, url=f"{url}2")
    report = fetch("mondo", tmp_path, url=f"{url}1")  # not newer than what is there
    assert report.path.read_bytes() == DATA
    assert not report.is_unchanged


@pytest.mark.parametrize("has_record", [True, False])
def test_what_was_not_fetched_is_not_touched(server: FileServer, tmp_path: Path, has_record: bool) -> None:
    if has_record:
        get(server, tmp_path, serve(DATA))
    (tmp_path / "x.obo").write_bytes(b"by hand")
    with pytest.raises(ArtifactExistsError, match=r"not fetched, or was changed since.*--force"):
        get(server, tmp_path, serve(DATA))
    assert (tmp_path / "x.obo").read_bytes() == b"by hand"
    assert get(server, tmp_path, overwrite=True).path.read_bytes() == DATA


def test_killed_between_record_and_file(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get(server, tmp_path, serve(DATA))
    with monkeypatch.context() as patch:
        patch.setattr(part_files.PartFile, "finish", lambda part: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            get(server, tmp_path, serve(NEWER, etag='"v2"'))
    assert (tmp_path / "x.obo").read_bytes() == DATA
    report = get(server, tmp_path, serve(NEWER, etag='"v2"'))
    assert (report.path.read_bytes(), report.is_unchanged) == (NEWER, False)
    assert get(server, tmp_path, serve(NEWER, etag='"v2"')).is_unchanged
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.obo", "x.obo.fetch.json"]


def test_not_into_a_folder_that_onoma_wrote(server: FileServer, tmp_path: Path) -> None:
    with write_artifact(tmp_path / "t", "terminology") as folder:
        (folder / "x").write_text("x")
    with pytest.raises(ArtifactExistsError, match="a folder that Onoma wrote"):
        get(server, tmp_path / "t", serve(DATA))


def test_folder_in_the_way(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "x.obo").mkdir()
    with pytest.raises(InputError, match="a folder lies where"):
        get(server, tmp_path, serve(DATA), overwrite=True)


@pytest.mark.parametrize("given", [{"sha256": SHA256}, {"md5": MD5.upper()}, {"sha256": f" {SHA256}\n", "md5": MD5}])
def test_right_checksum(server: FileServer, tmp_path: Path, given: dict[str, str]) -> None:
    assert get(server, tmp_path, serve(DATA), **given).path.read_bytes() == DATA
    again = get(server, tmp_path, status(500), **given)
    assert again.is_unchanged
    assert len(server.requests) == 1  # known to be right, so nobody is asked
    (tmp_path / "x.obo.fetch.json").unlink()
    assert get(server, tmp_path, status(500), **given).sha256 == SHA256


@pytest.mark.parametrize("given", [{"sha256": "0" * 64}, {"md5": "f" * 32}, {"sha256": SHA256, "md5": "0" * 32}])
def test_wrong_checksum(server: FileServer, tmp_path: Path, given: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"another (sha256|md5) and was removed"):
        get(server, tmp_path, serve(DATA), **given)
    assert left(tmp_path) == []


def test_wrong_checksum_keeps_what_was_there(server: FileServer, tmp_path: Path) -> None:
    get(server, tmp_path, serve(DATA))
    with pytest.raises(InputError, match="another sha256"):
        get(server, tmp_path, serve(DATA), sha256="0" * 64)
    assert (tmp_path / "x.obo").read_bytes() == DATA
    assert server.requests[1].headers["If-None-Match"] is None


@pytest.mark.parametrize("given", [{"sha256": "abc"}, {"sha256": MD5}, {"md5": "g" * 32}, {"md5": ""}])
def test_impossible_checksum(server: FileServer, tmp_path: Path, given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="hexadecimal digits"):
        get(server, tmp_path, serve(DATA), **given)
    assert server.requests == []


@pytest.mark.parametrize(
    "page",
    [
        b"<!DOCTYPE html>\n<p>Sign in",
        b"\n\n  <HTML><body>bad_url</body></HTML>",
        b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- a\npage -->\n<!doctype HTML PUBLIC "-//W3C//DTD XHTML 1.0//EN">',
    ],
)
def test_web_page_is_refused(server: FileServer, tmp_path: Path, page: bytes) -> None:
    with pytest.raises(InputError, match=r"a web page instead of the file.*mondo\.monarchinitiative\.org"):
        get(server, tmp_path, serve(page, shown_type="text/html"))
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    "data", [b"<?xml version='1.0'?><rdf:RDF/>", b"id\tname\n1\t<html>\n", b"<!-- x --><ICD10CM/>"]
)
def test_wrong_content_type_is_forgiven(server: FileServer, tmp_path: Path, data: bytes) -> None:
    assert get(server, tmp_path, serve(data, shown_type="text/html")).path.read_bytes() == data


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [("x.zip", b'{"error": 1}', "no zip file"), ("x.gz", b"id\tname", "no gz file"), ("x.obo", b"", "empty file")],
)
def test_what_is_plainly_not_the_file(server: FileServer, tmp_path: Path, name: str, data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        get(server, tmp_path, serve(data), name=name)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/b/desc2026.xml", "desc2026.xml"),
        ("/x.obo?version=2&key=secret", "x.obo"),
        ("/a%2F..%2F..%2Fetc%2Fx%20y.obo", "x_y.obo"),
        ("/..%2F..", "download"),
        ("/.hidden", "hidden"),
        ("/a/", "a"),
        ("/", "download"),
        ("", "download"),
    ],
)
def test_file_name_is_harmless(server: FileServer, tmp_path: Path, path: str, name: str) -> None:
    server.answers[path or "/"] = [serve(DATA)]
    assert fetch("mondo", tmp_path / "in", url=server.url + path).path == tmp_path / "in" / name


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/hostname",
        "ftp://127.0.0.1/x",
        "x.obo",
        "",
        "http://",
        "http://[::1/x",
        "http://h:99999/x",
        "http://h/ö",
    ],
)
def test_impossible_address(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="begins with https://"):
        fetch("mondo", tmp_path, url=url)


def test_secrets_are_used_and_not_written_down(server: FileServer, tmp_path: Path, waits: list[float]) -> None:
    server.answers["/x.obo?key=hunter2"] = [serve(DATA, cut_at=30), status(500)]
    address = server.url.replace("//", "//me:hunter2@") + "/x.obo?key=hunter2"
    with pytest.raises(UnavailableError) as caught:
        fetch("mondo", tmp_path, url=address, n_retries=1)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in (tmp_path / "x.obo.part.json").read_text()
    server.answers["/x.obo?key=hunter2"] = [serve(DATA)]
    report = fetch("mondo", tmp_path, url=address)
    assert report.resumed_from == 30
    assert "hunter2" not in str(report) + (tmp_path / "x.obo.fetch.json").read_text()
    assert server.requests[0].headers["Authorization"].startswith("Basic ")


def test_by_hand(tmp_path: Path, server: FileServer) -> None:
    with pytest.raises(UnavailableError) as caught:
        fetch("umls", tmp_path)
    words = str(caught.value)
    assert "https://uts.nlm.nih.gov/uts/" in words
    assert "onoma terminology import umls FILE -o umls" in words
    server.answers["/umls.zip"] = [serve(b"PK\x05\x06" + bytes(18))]  # someone's own mirror
    assert fetch("umls", tmp_path, url=f"{server.url}/umls.zip").path.name == "umls.zip"


def test_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'mondo'"):
        fetch("mond", tmp_path)
