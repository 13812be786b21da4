"""The command line: parse, call one plain function, show."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from onoma.cli.printing import printable

_TRAIN_PACKAGES = {"torch", "transformers", "safetensors", "filelock", "onnx", "onnxscript"}
"""What the extra ``onoma[train]`` brings."""

_GO_ON = "Make room if the disk is full, and give the same command again."
_LARGER = "Allow larger files (ulimit -f), or write to a disk that takes them, and give the same command again."

_OPEN_MORE = "Let more files be open at once (ulimit -n 4096), and give the same command again."

_MORE_MEMORY = (
    "End other programs, or let this one have more (ulimit -v, the limit of the container or the job), and give the "
    "same command again."
)

_STOPPED = (
    "\nonoma: stopped. No half-written output passes for complete. Give the same command again: training, encode, "
    "linker build and update, map, quickstart and fetch resume from what they have saved.\n"
)


def main() -> None:
    """Entry point of the ``onoma`` command.

    Leaves with 0 when all went well, 1 on an error that Onoma explains in one sentence, 2 on wrong usage,
    3 where ``linker update --check`` finds a linker of another release, 130 when interrupted, 143 or 129 when asked to
    end (SIGTERM, SIGHUP), 141 (as of SIGPIPE) where who reads its output leaves before it is all written.
    """
    from onoma.errors import OnomaError, missing_extra

    warnings.formatwarning = warning_in_words
    _open_streams()
    _end_in_order()
    try:
        from onoma.cli.app import app  # within: it takes long enough to be interrupted

        app()
    except OnomaError as error:
        sys.stderr.write(f"onoma: {printable(str(error), keep=_OF_MESSAGES)}\n")
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name not in _TRAIN_PACKAGES:
            raise
        sys.stderr.write(f"onoma: {missing_extra(error.name, 'train', 'This command')}\n")
        sys.exit(1)
    except OSError as error:
        try:
            sys.stderr.write(f"onoma: {_in_words(error)}\n")
            sys.stderr.flush()
        except OSError:  # the terminal was closed
            os._exit(_left_with(error) or 1)
        _forget_what_is_unwritten()
        sys.exit(1)
    except SystemExit as leaving:
        if leaving.code in (129, 130, 143):
            try:
                sys.stderr.write(_STOPPED)
                sys.stderr.flush()
            except OSError:
                os._exit(leaving.code)
        if leaving.code == 1 and _reader_left(leaving):
            sys.exit(_READER_LEFT)
        raise
    except Exception as error:
        if (status := _ended_by(error)) is not None:
            sys.stderr.write(_STOPPED)
            sys.exit(status)
        if _is_short_of_memory(error):
            sys.stderr.write(f"onoma: {_too_little_memory(error)}\n")
            sys.exit(1)
        from onoma.artifacts.system import NO_ROOM, error_number

        # Of Polars for some ways to write, and of a package that need not be installed.
        if (number := error_number(error)) is not None:
            words = " ".join(str(error).split())[:300]
            told = _no_room(words, number) if number in NO_ROOM else f"a file cannot be read or written: {words}."
            sys.stderr.write(f"onoma: {told}\n")
            sys.exit(1)
        if type(error).__name__ != "SafetensorError":
            raise
        sys.stderr.write(f"onoma: a file of weights cannot be read or written: {error}. {_GO_ON}\n")
        sys.exit(1)
    except BaseException as error:  # a panic of Polars, within which the signal came
        if (status := _ended_by(error)) is None:
            raise
        sys.stderr.write(_STOPPED)
        sys.exit(status)


_READER_LEFT = 128 + 13  # SIGPIPE, which not every system has
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_OF_MESSAGES = "\n\t"

_asked_by: list[int] = []
"""The signal by which this command was asked to end, if it was: a library may make another error of what it raises."""


def _end_in_order() -> None:
    """Have the first request to end, of a batch system or a closed terminal, undo and say what an interruption does."""

    def leave(number: int, _: FrameType | None) -> None:
        _asked_by.append(number)
        signal.signal(number, signal.SIG_DFL)  # asked again, it ends at once, also within a library
        raise SystemExit(128 + number)

    if os.environ.get("WORLD_SIZE", "1") != "1":
        return  # torchrun ends processes that may wait for one another
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, leave)


def _open_streams() -> None:
    """Streams that take anything: a terminal that knows few characters gets escapes, a closed one nothing."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end of the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
            if stream is getattr(sys, f"__{name}__") and isinstance(stream.buffer, io.RawIOBase):
                # PYTHONUNBUFFERED is set: Python does not look whether a full disk took all that is written at once.
                setattr(sys, name, _by_lines(stream, stream.buffer))


def _by_lines(stream: io.TextIOWrapper, raw: io.RawIOBase) -> io.TextIOWrapper:
    """A stream to the same file that writes whole lines, and all of them."""
    buffered = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffered, encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def _forget_what_is_unwritten() -> None:
    """Leave nothing in standard output that a full disk did not take: Python would try again as it ends, with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it came of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _reader_left(error: BaseException) -> bool:
    """Whether a command leaves because its output is a pipe that nobody reads: what prints says only that it failed."""
    return any(isinstance(one, BrokenPipeError) for one in _behind(error))


def _ended_by(error: BaseException) -> int | None:
    """The status to leave with if a signal is behind an error."""
    if _asked_by:
        return 128 + _asked_by[0]
    is_panic = type(error).__name__ == "PanicException" and "KeyboardInterrupt" in str(error)
    return 130 if is_panic or _was_interrupted(error) else None


def _was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error, as where a native library was being imported."""
    return any(isinstance(one, KeyboardInterrupt) for one in _behind(error))


def _left_with(error: BaseException) -> int | None:
    """With which status a command was leaving when the error came, as where a progress bar could not be taken away."""
    code = next((one.code for one in _behind(error) if isinstance(one, SystemExit)), None)
    return code if isinstance(code, int) else None


def _in_words(error: OSError) -> str:
    from onoma.artifacts.system import NO_ROOM, error_number

    number = error_number(error)
    place = error.filename if error.filename2 is None else error.filename2  # where a file was to be copied to
    if number == errno.ENOMEM:
        return _too_little_memory(error)
    if number in NO_ROOM:
        return _no_room(f"{place}: {error.strerror}" if place else error.strerror or str(error), number)
    if number == errno.ENOENT and place is None and not _stands_somewhere():
        return "the folder in which this command was given is gone. Give it in one that is there."
    told = f"{place or 'a file'} cannot be read or written: {error.strerror or error}."
    return f"{told} {_OPEN_MORE}" if number in _NO_DESCRIPTORS else told


def _stands_somewhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _is_short_of_memory(error: Exception) -> bool:
    if isinstance(error, ImportError):  # of a library for which there was no room
        words = str(error)
        is_forbidden = "not permitted" in words  # by the file system that it lies on
        return "bad_alloc" in words or ("failed to map segment" in words and not is_forbidden)
    return isinstance(error, MemoryError)


def _too_little_memory(error: Exception) -> str:
    words = " ".join(str(error).split())[:300]
    return f"there is too little memory{words and f' ({words})'}. {_MORE_MEMORY}"


def _no_room(words: str, number: int | None) -> str:
    return f"there is no room left to write to ({words}). {_LARGER if number == errno.EFBIG else _GO_ON}"


def warning_in_words(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Our own warnings are for who gave the command, without a line of the program; others are as Python has them."""
    if Path(filename).is_relative_to(Path(__file__).parents[1]):
        return f"onoma: {message}\n"
    return _formatted(message, category, filename, lineno, line)


_formatted = warnings.formatwarning
