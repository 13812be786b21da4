"""Readers against spoilt input: whatever the bytes, a reader ends well or with an `OnomaError`.

    python tests/terminology/fuzz_readers.py --minutes 60 --processes 2

Every sample of the compliance suite is spoilt in a few places, by hypothesis: bytes changed, removed, repeated, cut
off, lines swapped, words that mean something to some format put in (dividers, quotes, tags, entities, lone continuation
bytes, huge numbers), JSON values replaced by values of another type; inside compressed files and archives as well as on
their outside. Each input is read under "strict" and under "skip", assembled, and the tables are checked. What fails is
made smaller by hypothesis and kept in ``fuzz-failures/``.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gzip
import importlib
import io
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning

from onoma.errors import OnomaError
from onoma.files.reading import Reading
from onoma.terminology.assembly import assemble
from onoma.terminology.formats import get_format
from onoma.terminology.readers.options import parse_options
from onoma.terminology.tables import check_tables

sys.path.append(str(Path(__file__).parents[1]))  # where pytest finds what the samples are made with

from sample import Sample
from terminology_samples import SAMPLES

SECONDS_PER_INPUT = 30
WORDS = [
    *(b"|", b"||", b"\t", b"\n", b"\r\n", b"\r", b",", b";", b'"', b"'", b"#", b"!", b"\\", b"{", b"}", b"[", b"]"),
    *(
        b"<",
        b">",
        b"&",
        b"&amp;",
        b"&x;",
        b"<!--",
        b"]]>",
        b"<![CDATA[",
        b"<?",
        b"</",
        b"/>",
        b":",
        b"_",
        b"/",
        b" ",
        b"",
    ),
    *(
        b"\0",
        b"\xff",
        b"\x80",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xc3\xa9",
        b"\xe2\x80\xa8",
        b"\xf0\x9f\x92\x8a",
    ),
    *(
        b"null",
        b"true",
        b"-1",
        b"0",
        b"1e999",
        b"NaN",
        b"99999999999999999999",
        b"\\u0000",
        b"\\ud800",
        b"..",
        b"../../x",
    ),
    *(b"X:1", b"X:2", b"id: ", b"[Term]\n", b"replaced_by: ", b"is_a: ", b"xmlns:a='b' ", b"rdf:about='x'", b"x" * 300),
]
JSON_VALUES: list[Any] = [None, True, 0, -1, 1.5, 1 << 70, "", "x", "\ud800", [], {}, [None], {"x": None}, [["x"]]]


@st.composite
def spoilt(draw: st.DrawFn, files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a sample, one to four places of them spoilt."""
    files = dict(files)
    for _ in range(draw(st.integers(1, 4))):
        # Without its __init__.py a package would not be found, and the one that is installed be read.
        names = sorted(name for name in files if not name.endswith("__init__.py"))
        name = draw(st.sampled_from(names))
        if draw(st.integers(0, 40)) == 0 and len(names) > 1:
            del files[name]
        else:
            files[name] = draw(_spoilt_file(files[name]))
    return files


@st.composite
def _spoilt_file(draw: st.DrawFn, data: bytes) -> bytes:
    inside = draw(st.integers(0, 4))  # of compressed data mostly the content: on the outside a checksum finds it
    if inside and data[:2] == b"\x1f\x8b":
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return gzip.compress(draw(_spoilt_file(gzip.decompress(data))), 1, mtime=0)
    if inside and data[:4] == b"\x28\xb5\x2f\xfd":
        with contextlib.suppress(zstandard.ZstdError):
            return zstandard.compress(draw(_spoilt_file(zstandard.decompress(data, max_output_size=1 << 24))))
    if inside and data[:4] == b"PK\x03\x04":
        with contextlib.suppress(Exception):
            return _rezipped(data, lambda members: draw(spoilt(members)))
    if inside and data[:1] in b"{[":
        with contextlib.suppress(ValueError, RecursionError):
            return _spoilt_json(draw, json.loads(data))
    return draw(_spoilt_bytes(data))


@st.composite
def _spoilt_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    place = draw(st.integers(0, max(len(data) - 1, 0)))
    length = draw(st.sampled_from([1, 1, 2, 5, 20, 100, 1000]))
    match draw(st.sampled_from(["word", "word", "replace", "remove", "repeat", "flip", "cut", "swap"])):
        case "word":
            return data[:place] + draw(st.sampled_from(WORDS)) + data[place:]
        case "replace":
            return data[:place] + draw(st.sampled_from(WORDS)) + data[place + length :]
        case "remove":
            return data[:place] + data[place + length :]
        case "repeat":
            times = draw(st.sampled_from([1, 2, 50]))
            return data[:place] + data[place : place + length] * times + data[place:]
        case "flip":
            return data[:place] + bytes([draw(st.integers(0, 255))]) + data[place + 1 :]
        case "cut":
            return data[:place]
        case _:
            lines = data.split(b"\n")
            first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            lines[first], lines[second] = lines[second], lines[first]
            return b"\n".join(lines)


def _spoilt_json(draw: st.DrawFn, value: Any) -> bytes:
    value = copy.deepcopy(value)
    holder: Any = {"": value}
    place: Any = ""
    while isinstance(holder[place], dict | list) and holder[place] and draw(st.integers(0, 4)):
        holder = holder[place]
        place = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    if isinstance(holder, dict) and draw(st.integers(0, 4)) == 0:
        del holder[place]
        return json.dumps(value).encode()
    replacement = draw(st.sampled_from(JSON_VALUES))
    if place == "":
        return json.dumps(replacement).encode()
    holder[place] = replacement
    return json.dumps(value).encode()


def _rezipped(data: bytes, spoil: Callable[[dict[str, bytes]], dict[str, bytes]]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in spoil(members).items():
            archive.writestr(name, content)
    return packed.getvalue()


def files_of(sample: Sample, folder: Path) -> tuple[str, dict[str, bytes]]:
    """SOURCE and the files of a sample that was written below ``folder``, by their names there."""
    source = sample.write(folder)
    return source, {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def read_spoilt(sample: Sample, source: str, files: dict[str, bytes], folder: Path) -> Counter[str]:
    """Read the files under both policies; anything but success and `OnomaError` comes out as an exception."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    folder.mkdir(parents=True, exist_ok=True)
    importlib.invalidate_caches()  # the package of a sample was written anew
    outcomes: Counter[str] = Counter()
    entry = get_format(sample.format)
    options = parse_options(entry.options, sample.options, sample.format)
    for on_error in ("strict", "skip"):
        reading = Reading(on_error=on_error)
        try:
            tables = assemble(entry.read(source, options, reading), reading)
        except OnomaError as error:
            if not str(error).strip():
                raise AssertionError("an error without words") from error
            outcomes[f"{on_error}: refused"] += 1
            continue
        check_tables(tables)
        if on_error == "strict" and len(reading.rejects):
            raise AssertionError("rejected rows under strict")
        outcomes[f"{on_error}: read"] += 1
    return outcomes


def fuzz(name: str, *, seconds: float, first_seed: int, keep: Path) -> Counter[str]:
    """Spoil one sample for so much processor time; return how many inputs there were and what became of them."""
    sample = SAMPLES[name]
    outcomes: Counter[str] = Counter()
    with _alarm(), tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "in"
        folder.mkdir()
        source, files = files_of(sample, folder)
        if sample.package:
            sys.path.insert(0, str(folder))
        end = time.process_time() + seconds
        number = first_seed
        while time.process_time() < end:

            @seed(number)
            @settings(
                max_examples=200,
                deadline=None,
                database=None,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            )
            @given(spoilt(files))
            def run(candidate: dict[str, bytes]) -> None:
                if time.process_time() > end:
                    return
                outcomes["inputs"] += 1
                signal.alarm(SECONDS_PER_INPUT)
                try:
                    outcomes.update(read_spoilt(sample, source, candidate, folder))
                finally:
                    signal.alarm(0)

            try:
                run()
            except BaseException as error:  # a panic of a Rust library is no Exception
                if isinstance(error, KeyboardInterrupt):
                    raise
                outcomes["failures"] += 1
                kept = keep / f"{name}-{number}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(folder, kept / "in")
                (kept / "error.txt").write_text(
                    f"{type(error).__name__}: {error}\n", encoding="utf-8", errors="replace"
                )
                print(f"{name}, seed {number}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            number += 1
    return outcomes


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"still reading after {SECONDS_PER_INPUT} s")

    former = signal.signal(signal.SIGALRM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, former)


def _work(job: tuple[str, float, int, Path]) -> tuple[str, Counter[str], float]:
    name, seconds, first_seed, keep = job
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", HypothesisWarning)  # that an input is too large to be shown
    outcomes = fuzz(name, seconds=seconds, first_seed=first_seed, keep=keep)
    return name, outcomes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    """Share the time among the samples, and say how many inputs there were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="processor minutes in all")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--samples", nargs="+", choices=SAMPLES, default=list(SAMPLES), metavar="SAMPLE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="where failing inputs go")
    arguments = parser.parse_args()
    seconds = arguments.minutes * 60 / len(arguments.samples)
    jobs = [(name, seconds, arguments.seed * 1_000_000, arguments.keep) for name in arguments.samples]
    total: Counter[str] = Counter()
    # A process for each sample: what a library does to the process (an abort, memory) shows where it belongs.
    with multiprocessing.get_context("spawn").Pool(arguments.processes, maxtasksperchild=1) as pool:
        for name, outcomes, gigabytes in pool.imap_unordered(_work, jobs):
            total.update(outcomes)
            told = ", ".join(f"{what} {count:,}" for what, count in sorted(outcomes.items()))
            print(f"{name:<20} {told}; {gigabytes:.2f} GB", flush=True)
    print(f"in all: {', '.join(f'{what} {count:,}' for what, count in sorted(total.items()))}")
    sys.exit(1 if total["failures"] else 0)


if __name__ == "__main__":
    main()
