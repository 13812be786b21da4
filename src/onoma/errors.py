"""Every error Onoma raises on purpose.

::

    OnomaError
    ├── InputError          what the user gave is wrong: file, line, field, what was expected, what to do
    ├── ConfigError         an option does not exist or has a value it cannot have
    ├── ArtifactError       a folder is not the whole, readable artefact it should be
    │   ├── NotAnArtifactError      no manifest, or a manifest of something else
    │   ├── DamagedArtifactError    a file is missing, truncated or changed
    │   ├── FormatVersionError      written by a newer Onoma
    │   └── ArtifactExistsError     the place to write to is taken
    ├── MismatchError       two artefacts do not belong together (linker and encoder, run and settings)
    ├── TrainingError       a training run that cannot go on (the loss is not a number, memory is spent)
    ├── UnavailableError    something that is not on this machine: an extra, a model, a hub
    └── ShapeError          arrays that do not fit one another

Catch ``OnomaError`` to catch them all; the command line prints its text and leaves with status 1.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from operator import index
from os import PathLike
from pathlib import Path
from typing import TypeGuard, TypeVar

Known = TypeVar("Known", bound=str)


class OnomaError(Exception):
    """Base of all errors raised on purpose; ``str(error)`` is a full sentence for a person."""


class InputError(OnomaError):
    """What the user gave cannot be used.

    Args:
        problem: What is wrong, as a sentence without the place.
        path: The file, if there is one.
        line: 1-based line number in that file.
        field: Column, tag or argument name.
        expected: What would have been right (shortened to 800 characters).
        found: What stood there instead (to 80).
        fix: What the user can do.

    Example:
        >>> print(InputError("wrong number of columns", path="MRCONSO.RRF", line=7,
        ...                  expected="18 fields", found="17", fix="download it again"))
        MRCONSO.RRF, line 7: wrong number of columns; expected 18 fields; found 17. To mend it: download it again.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.problem, self.path, self.line, self.field = problem, path, line, field
        self.expected, self.found, self.fix = expected, found, fix
        place = ", ".join(
            part
            for part in (
                str(path) if path is not None else "",
                f"line {line}" if line is not None else "",
                f"field {field}" if field is not None else "",
            )
            if part
        )
        text = f"{place}: {_bare(problem)}" if place else _bare(problem)
        if expected:
            text += _added(text, "expected", _shortened(_bare(expected), 800))
        if found:
            text += _added(text, "found", _shortened(found, 80))
        text = _bare(text)
        text += "" if text.endswith("?") else "."
        if fix:
            text += f" To mend it: {_bare(fix)}."
        super().__init__(text)


def _shortened(part: str, length: int) -> str:
    return part if len(part) <= length else part[: length - 1] + "…"


def _added(text: str, word: str, part: str) -> str:
    """A part to add to a problem, which may end with a question."""
    return f" {word.capitalize()} {part}" if text.endswith("?") else f"; {word} {part}"


def _bare(part: str) -> str:
    """The text without punctuation at its end, as more follows."""
    return part.rstrip(" .,;")


class ConfigError(OnomaError):
    """An option does not exist or has a value it cannot have."""


class ArtifactError(OnomaError):
    """A folder is not the whole, readable artefact it should be."""


class NotAnArtifactError(ArtifactError):
    """The folder has no manifest, or is an artefact of another kind."""


class DamagedArtifactError(ArtifactError):
    """A file of the artefact is missing, truncated or changed."""


class FormatVersionError(ArtifactError):
    """The artefact was written by a newer Onoma than this one."""


class ArtifactExistsError(ArtifactError):
    """The place to write to is taken."""


class MismatchError(OnomaError):
    """Two artefacts do not belong together."""


class TrainingError(OnomaError):
    """A training run that cannot go on."""


class UnavailableError(OnomaError):
    """Something needed is not on this machine: an optional package, a model, a hub."""


class ShapeError(OnomaError, ValueError):
    """Arrays that do not fit one another."""


def first_line(error: BaseException) -> str:
    """What an error of another library says, to put into a sentence: its first line, or else its type.

    For an error of Pydantic: its first finding, after the name of the field.

    Example:
        >>> first_line(MemoryError())
        'MemoryError'
    """
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest known word, or an empty string.

    Example:
        >>> did_you_mean("margn", ["margin", "batch_pairs"])
        " Did you mean 'margin'?"
    """
    by_lower = {name.lower(): name for name in known}
    nearest = difflib.get_close_matches(word.lower(), list(by_lower), n=1) if isinstance(word, str) else []
    if not nearest:
        return ""
    found = by_lower[nearest[0]]
    if found.lower() != str(word).lower() and _visible(found) == _visible(str(word)):
        return f" Did you mean {found!a}? White space, invisible signs or how accents are written differ."
    return f" Did you mean '{found}'?"


def one_of(value: object, known: Iterable[Known], what: str) -> Known:
    """Return the known word that a value equals.

    Args:
        value: As given.
        known: Words to choose from.
        what: What the words are, as in "stage".

    Raises:
        ConfigError: the value is not a known word.

    Example:
        >>> one_of("sparce", ["dense", "sparse"], "stage")
        Traceback (most recent call last):
        ...
        onoma.errors.ConfigError: there is no stage 'sparce'. Did you mean 'sparse'? Known: dense, sparse.
    """
    words = tuple(known)
    for word in words:
        if isinstance(value, str) and value == word:
            return word
    raise ConfigError(f"there is no {what} '{value}'.{did_you_mean(value, words)} Known: {', '.join(words)}.")


def _visible(text: str) -> str:
    composed = unicodedata.normalize("NFC", text.lower())
    return "".join(sign for sign in composed if sign.isprintable() and not sign.isspace())


def check_several(values: object, field: str) -> None:
    """Refuse a value that is not several: one string or path, whose letters would be taken for values, or a table or
    mapping, whose names of columns or keys would be taken for them.

    Raises:
        InputError: it is one.
    """
    if isinstance(values, Mapping) or hasattr(type(values), "columns"):
        found, fix = type(values).__name__, "give one of its columns"
        raise InputError("a list or column is meant here, not a table", field=field, found=found, fix=fix)
    if isinstance(values, str | bytes | Path) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise InputError("several are meant here, not one", field=field, found=repr(values), fix="put it in a list")


def checked_path(value: object) -> Path:
    """A path as it was given: text or a `Path`, but no empty text, which would mean the current folder.

    Raises:
        InputError: it is no path (for instance, an environment variable is not set), or a link back to itself.
    """
    if (isinstance(value, PathLike) and isinstance(value.__fspath__(), str)) or (isinstance(value, str) and value):
        path = Path(value)
        if "\0" not in str(path):
            _refuse_circle(path)
            return path
    raise InputError("a path is needed", expected="text or a pathlib.Path", found=repr(value))


def _refuse_circle(path: Path) -> None:
    """Refuse links that lead back to themselves: each Python version raises another error for them."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(
                "this path is a link that leads back to itself, or lies behind one",
                path=path,
                fix="remove the link, or give another path",
            ) from None


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number, of numpy's kinds too."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def whole_number(value: object, field: str, message: str, *, least: int = 1) -> int:
    """A number of things, numpy's kinds of whole numbers included, as Python's, which does not overflow.

    Args:
        value: As given.
        field: What the error calls it.
        message: What is wrong if it is none.
        least: That it may be.

    Raises:
        InputError: it is no whole number, or below ``least``.
    """
    try:
        number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least:
        raise InputError(message, field=field, expected=f"a whole number from {least}", found=repr(value))
    return number


def real_number(value: object, field: str, message: str, *, expected: str, holds: Callable[[float], bool]) -> float:
    """A real number that can be; numpy's are numbers too, True and False are none.

    Args:
        value: As given.
        field: What the error calls it.
        message: What is wrong if it cannot be.
        expected: In words.
        holds: Whether it can be; NaN should not.

    Raises:
        InputError: it cannot be.
    """
    number = None
    if not isinstance(value, bool) and isinstance(value, Real):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if number is None or not holds(number):
        raise InputError(message, field=field, expected=expected, found=repr(value))
    return number


def missing_extra(package: str, extra: str, purpose: str) -> UnavailableError:
    """The error for an optional package that is not installed."""
    return UnavailableError(
        f"{purpose} needs the package '{package}', which is not installed. "
        f"Install it with: pip install 'onoma[{extra}]'."
    )
