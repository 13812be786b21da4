"""Fetch a vocabulary of the catalogue, checked and recorded.

    from onoma.terminology import fetch

    print(fetch("doid", "downloads"))

The file is checked against a checksum that the user gives (SHA-256, or the MD5 that some publishers print on their
page), else against the size that the server states. Beside ``doid.obo``, ``doid.obo.fetch.json`` says where it came
from and when, its size, SHA-256 and licence. Another machine that is given this SHA-256 gets the same file or an error.

If a file is fetched again, the server is asked whether it has a newer version; if not, nothing is downloaded. A file
appears complete or not at all; an earlier one stays until a newer one is complete and checked. A file that was not
fetched, or was changed since, is not touched.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from onoma._version import __version__
from onoma.artifacts import ensure_named, ensure_outside, sha256_file, write_text_atomically
from onoma.artifacts.locking import check_system
from onoma.errors import ArtifactExistsError, ConfigError, InputError, OnomaError, UnavailableError, checked_path
from onoma.files.sizes import size_in_words
from onoma.terminology.catalogue.downloading import Download, download, without_secrets
from onoma.terminology.catalogue.entries import CatalogueEntry, get_vocabulary
from onoma.terminology.catalogue.part_files import Version, exclusive_part
from onoma.types import Progress, no_progress

_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_FIRST_BYTES = {".zip": b"PK", ".gz": b"\x1f\x8b"}
_LENGTHS = {"sha256": 64, "md5": 32}


class FetchRecord(BaseModel):
    """Where a file came from (``NAME.fetch.json``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vocabulary: str
    url: str
    final_url: str
    fetched: str
    n_bytes: int
    sha256: str
    replaced_sha256: str | None = None
    """Of the fetched file whose place this one takes."""
    etag: str | None
    last_modified: str | None
    licence: str
    page: str
    onoma_version: str


@dataclass(frozen=True)
class FetchReport:
    """What a fetch did; ``str()`` is a text for people.

    Attributes:
        vocabulary: Name in the catalogue.
        path: The file.
        url: Where it came from, without anything that may hold keys.
        n_bytes: Of the file.
        sha256: Of the file.
        is_unchanged: The same file was there before.
        n_received: Bytes received now.
        resumed_from: Bytes kept from an earlier, interrupted run.
        n_retries: How many times it was retried.
        notes: What is worth knowing.
        import_command: What to do next.
        seconds: Wall time.
    """

    vocabulary: str
    path: Path
    url: str
    n_bytes: int
    sha256: str
    is_unchanged: bool
    n_received: int
    resumed_from: int
    n_retries: int
    notes: tuple[str, ...]
    import_command: str
    seconds: float

    def __str__(self) -> str:
        if self.is_unchanged:
            first = f"{self.path}: already there, unchanged, {size_in_words(self.n_bytes)}"
        else:
            first = f"{self.path}: {size_in_words(self.n_bytes)} from {self.url} in {self.seconds:.1f} s"
            if self.resumed_from:
                first += f", of it {size_in_words(self.resumed_from)} from an earlier run"
        lines = [first, f"  sha256 {self.sha256}", *(f"  {note}" for note in self.notes)]
        return "\n".join([*lines, f"  next: {self.import_command}"])


def fetch(
    name: str,
    out_folder: str | Path = ".",
    *,
    url: str | None = None,
    sha256: str | None = None,
    md5: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    timeout_s: float = 60.0,
    n_retries: int = 3,
    first_wait_s: float = 1.0,
) -> FetchReport:
    """Fetch the file of a vocabulary from its publisher.

    Args:
        name: One of `onoma.terminology.known_vocabularies`.
        out_folder: Where to write the file and its record; made if missing.
        url: Another address of it: a mirror, or a release that the catalogue does not have.
        sha256: The checksum that the file must have.
        md5: The same as an MD5, if a publisher gives that.
        overwrite: Replace a file that was not fetched, or was changed since.
        progress: Called with (bytes there, bytes in all or ``None``, what is being done).
        timeout_s: Longest silence of the server.
        n_retries: Attempts after a failure that brought nothing new.
        first_wait_s: Pause before the first of them; it doubles each time.

    Raises:
        ConfigError: no such vocabulary, an impossible address or checksum, or the folder's name is a dash.
        UnavailableError: it must be obtained by hand, or the server cannot be reached, refuses or fails; says what to
            do.
        InputError: what came is not the file (another checksum, a web page), the disk cannot take it, or ``out_folder``
            is not a path.
        ArtifactExistsError: there is a file that was not fetched, or was changed since.
    """
    started = time.perf_counter()
    entry = get_vocabulary(name)
    address = _address(entry, url)
    checksums = _checksums(sha256=sha256, md5=md5)
    path = checked_path(out_folder) / _file_name(address)
    ensure_named(path.parent, "folder")
    ensure_outside(path)
    there = _what_is_there(path)
    if there is not None and checksums and _meets(path, there, checksums):
        return _report(entry, path, there, None, started, is_unchanged=True)
    if there is not None and not there.is_fetched and not overwrite:
        raise ArtifactExistsError(
            f"{path} exists already, and was not fetched, or was changed since. "
            "Move it away or choose another folder (-o), or allow replacing it (--force, overwrite=True)."
        )
    known = None
    if there is not None and not checksums:
        known = there.version_from(address)
    check_system()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder cannot be made ({error.strerror})", path=path.parent, fix="choose another folder (-o)"
        ) from None
    with exclusive_part(path) as part:
        try:
            done = download(
                address,
                part,
                known=known,
                progress=progress or no_progress,
                timeout_s=timeout_s,
                n_retries=n_retries,
                first_wait_s=first_wait_s,
            )
        except UnavailableError as error:
            raise UnavailableError(f"{error} {_advice(entry, path, there)}") from None
        if done.is_unchanged and there is not None:
            return _report(entry, path, there, done, started, is_unchanged=True)
        try:
            found = _check(part.part_path, path, entry, checksums)
        except OnomaError:
            part.forget()
            raise
        record = FetchRecord(
            vocabulary=entry.name,
            url=without_secrets(address),
            final_url=done.final_url,
            fetched=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            n_bytes=part.size,
            sha256=found,
            replaced_sha256=there.sha256 if there is not None and there.is_fetched else None,
            etag=done.version.etag,
            last_modified=done.version.last_modified,
            licence=entry.licence,
            page=entry.page,
            onoma_version=__version__,
        )
        left_out = {"replaced_sha256"} if record.replaced_sha256 is None else None
        write_text_atomically(record_path(path), record.model_dump_json(indent=1, exclude=left_out) + "\n")
        part.finish()
    is_unchanged = there is not None and there.sha256 == found
    return _report(entry, path, _There(found, record), done, started, is_unchanged=is_unchanged)


def record_path(path: Path) -> Path:
    """Where the record of a fetched file lies."""
    return path.with_name(f"{path.name}.fetch.json")


def fetched_licence(path: Path) -> str | None:
    """The licence that the record beside a file names; none where there is no record, or it is of another file."""
    try:
        record = FetchRecord.model_validate_json(record_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record.licence if path.is_file() and sha256_file(path) == record.sha256 else None


@dataclass(frozen=True)
class _There:
    """A file that lies where the new one shall lie."""

    sha256: str
    record: FetchRecord | None

    @property
    def is_fetched(self) -> bool:
        """Whether it is what was fetched, or what was there before, if the process died between record and file."""
        return self.record is not None and self.sha256 in (self.record.sha256, self.record.replaced_sha256)

    def version_from(self, address: str) -> Version | None:
        """What the server of an address called it, if it came from there.

        What is not written down of an address, as its query, may name another release, which may be older: then a date
        says nothing.
        """
        written = without_secrets(address)
        if self.record is None or self.record.sha256 != self.sha256 or self.record.url != written:
            return None
        return Version(etag=self.record.etag, last_modified=self.record.last_modified if address == written else None)


def _address(entry: CatalogueEntry, given: str | None) -> str:
    if given is None:
        if entry.url is None:
            raise UnavailableError(
                f"{entry.title} is not fetched: it takes {entry.by_hand}. It is described at {entry.page}. "
                f"Then: {entry.import_command('FILE')}."
            )
        return entry.url
    try:
        parsed = urlsplit(given)
        is_address = parsed.scheme in {"http", "https"} and bool(parsed.hostname) and (parsed.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or any(not "!" <= character <= "~" for character in given):
        raise ConfigError(
            f"An address to fetch from begins with https:// or http:// and names a host; found '{given}'."
        )
    return given


def _checksums(**given: str | None) -> dict[str, str]:
    checksums = {}
    for algorithm, text in given.items():
        if text is None:
            continue
        digits = text.strip().lower()
        if not re.fullmatch(rf"[0-9a-f]{{{_LENGTHS[algorithm]}}}", digits):
            raise ConfigError(f"{algorithm} takes {_LENGTHS[algorithm]} hexadecimal digits; found '{text}'.")
        checksums[algorithm] = digits
    return checksums


def _file_name(address: str) -> str:
    """The last part of an address, as a harmless file name."""
    last = unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._+-]", "_", last).lstrip(".-") or "download"


def _what_is_there(path: Path) -> _There | None:
    if not path.exists():
        return None
    if not path.is_file():
        raise InputError("a folder lies where the file shall lie", path=path, fix="choose another folder (-o)")
    try:
        record = FetchRecord.model_validate_json(record_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, ValidationError):
        record = None
    return _There(sha256_file(path), record)


def _meets(path: Path, there: _There, checksums: dict[str, str]) -> bool:
    return all(expected == _digest(path, algorithm, there.sha256) for algorithm, expected in checksums.items())


def _digest(path: Path, algorithm: str, sha256: str) -> str:
    if algorithm == "sha256":
        return sha256
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _check(part: Path, path: Path, entry: CatalogueEntry, checksums: dict[str, str]) -> str:
    """SHA-256 of what came, if it is what was asked for."""
    size = part.stat().st_size
    with part.open("rb") as handle:
        beginning = handle.read(4096)
    expected_beginning = _FIRST_BYTES.get(path.suffix)
    if not beginning:
        raise InputError("the server sent an empty file", path=path, fix=f"see {entry.page}, or try again later")
    if _HTML.match(beginning.removeprefix(b"\xef\xbb\xbf")):
        raise InputError(
            "the server sent a web page instead of the file",
            path=path,
            found=repr(beginning[:60])[2:-1],
            fix=f"see {entry.page}; it may ask to sign in or to confirm, or the file has moved (then: --from URL)",
        )
    if expected_beginning and not beginning.startswith(expected_beginning):
        raise InputError(
            f"what came is no {path.suffix[1:]} file",
            path=path,
            found=repr(beginning[:60])[2:-1],
            fix=f"see {entry.page}, or try again later",
        )
    sha256 = sha256_file(part)
    for algorithm, expected in checksums.items():
        found = _digest(part, algorithm, sha256)
        if found != expected:
            raise InputError(
                f"what came has another {algorithm} and was removed",
                path=path,
                expected=expected,
                found=f"{found[:16]}… of {size:,} bytes",
                fix="fetch it again; if it stays so, the publisher has another version by now, or it was tampered with",
            )
    return sha256


def _advice(entry: CatalogueEntry, path: Path, there: _There | None) -> str:
    words = [f"See {entry.page}." if entry.note is None else f"See {entry.page}; {entry.note}."]
    words.append(
        "To go on: fetch from another address (--from URL), or get the file in another way, then: "
        f"{entry.import_command(path)}."
    )
    if there is not None and there.record is not None:
        words.append(f"The file that was fetched on {there.record.fetched[:10]} is still there.")
    return " ".join(words)


def _report(
    entry: CatalogueEntry, path: Path, there: _There, done: Download | None, started: float, *, is_unchanged: bool
) -> FetchReport:
    notes = []
    if done is not None and not done.is_end_known:
        notes.append("the server did not say how large the file is, so that a cut-off end would not be seen")
    return FetchReport(
        vocabulary=entry.name,
        path=path,
        url=there.record.url if there.record is not None else "",
        n_bytes=path.stat().st_size,
        sha256=there.sha256,
        is_unchanged=is_unchanged,
        n_received=0 if done is None else done.n_received,
        resumed_from=0 if done is None else done.resumed_from,
        n_retries=0 if done is None else done.n_retries,
        notes=tuple(notes),
        import_command=entry.import_command(path),
        seconds=time.perf_counter() - started,
    )
