"""JSON documents of any size, a value at a time.

Of a document such as ``{"graphs": [{"nodes": [{...}, {...}], "edges": [...]}]}`` the containers down to some depth are
walked through, and each value below is decoded by itself, so that memory grows with the largest value and not with the
file. What is not JSON cannot be read past the place: that ends the import whatever ``on_error`` says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.decoding import TextDecoder
from onoma.files.reading import Reading
from onoma.files.text_files import read_bytes

MAX_VALUE_CHARACTERS = 64 << 20
"""A longer value at the depth asked for is no term but another kind of file."""

BLOCK_BYTES = 4 << 20
_MOST_SHOWN = 200
_WHITE = re.compile(r"[ \t\n\r]*")
_MARGIN = 64
"""An error this near to the end of what was read may be one of reading too little."""

Place: TypeAlias = tuple[str | int, ...]
"""Keys and positions that lead to a value."""
ModelT = TypeVar("ModelT")


@dataclass(frozen=True)
class JsonValue:
    """A value in a document.

    Attributes:
        place: Keys and positions that lead to it.
        line: 1-based line where it begins.
        value: Decoded.
    """

    place: Place
    line: int
    value: Any


def shown_place(place: Place) -> str:
    """The place as one would write it.

    Example:
        >>> shown_place(("graphs", 0, "nodes", 17, "meta"))
        'graphs[0].nodes[17].meta'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def shown_json(value: object) -> str:
    """The beginning of a value as JSON, for errors."""
    try:
        return json.dumps(value, ensure_ascii=False)[:_MOST_SHOWN]
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def validated(
    model: TypeAdapter[ModelT], value: JsonValue, problem: str, *, file: SourceFile, reading: Reading
) -> ModelT | None:
    """A value as a model; one that is not as the model has it is rejected for its first fault.

    Args:
        model: What it must be.
        value: In the document.
        problem: What is wrong with one that is not so.
        file: For errors.
        reading: Where it goes.

    Raises:
        InputError: under "strict", if it is not so.
    """
    try:
        return model.validate_python(value.value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = (*value.place, *(part for part in first["loc"] if not isinstance(part, str) or part.isidentifier()))
        reading.reject(
            problem,
            path=file.path,
            line=value.line,
            text=f"{shown_place(place)}: {shown_json(first['input'])}",
            field=shown_place(tuple(part for part in place if isinstance(part, str))),
            expected=first["msg"].removeprefix("Input should be ").lower(),
        )
        return None


def json_values(
    file: SourceFile, reading: Reading, *, depth: int | Callable[[Place], bool], has_several: bool = False
) -> Iterator[JsonValue]:
    """Yield the values at a depth, and those above it that are no containers.

    Args:
        file: Plain or gzip, on disk or in an archive; UTF-8.
        reading: Told of the file and the progress.
        depth: Of the values: how many keys and positions lead to them; or, for values at several depths, whether at
            some place there is one.
        has_several: The file has documents one after the other (JSON Lines), whose number begins each place.

    Raises:
        InputError: no UTF-8, no JSON, cut off, nested too deeply, or a value of more than `MAX_VALUE_CHARACTERS`.
    """
    reading.files.append(file.container)
    walk = _Walk(file, reading)
    is_value = depth if callable(depth) else lambda place: len(place) == depth
    if has_several:
        number = 0
        while walk.next_character():
            yield from _values(walk, (number,), is_value)
            number += 1
        return
    yield from _values(walk, (), is_value)
    if walk.next_character():
        walk.refuse("more than one JSON value", expected="the end of the file")


def _values(walk: _Walk, place: Place, is_value: Callable[[Place], bool]) -> Iterator[JsonValue]:
    opening = walk.next_character()
    if opening not in {"{", "["} or is_value(place):
        line = walk.line()
        yield JsonValue(place, line, walk.decode())
        return
    walk.skip()
    closing = "}" if opening == "{" else "]"
    if walk.next_character() == closing:
        walk.skip()
        return
    position = 0
    while True:
        key: str | int = position
        if opening == "{":
            if walk.next_character() != '"':
                walk.refuse("this is not JSON", expected="a key in double quotes")
            key = walk.decode()
            if walk.next_character() != ":":
                walk.refuse("this is not JSON", expected="':' after a key")
            walk.skip()
        yield from _values(walk, (*place, key), is_value)
        position += 1
        divider = walk.next_character()
        if divider not in {",", closing}:
            walk.refuse("this is not JSON", expected=f"',' or '{closing}'")
        walk.skip()
        if divider == closing:
            return


class _Walk:
    """A position in the text of a file, of which only a part is held."""

    def __init__(self, file: SourceFile, reading: Reading) -> None:
        self._file, self._reading = file, reading
        self._blocks = read_bytes(file, block_bytes=BLOCK_BYTES)
        self._decoder = TextDecoder(file.path)
        self._text, self._position, self._is_whole = "", 0, False
        self._n_lines_before, self._counted_to = 0, 0
        self._n_values = 0
        self._scan = json.JSONDecoder()

    def next_character(self) -> str:
        """What comes after white space, without passing it; "" at the end of the file."""
        while True:
            match = _WHITE.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read_on():
                return ""

    def skip(self) -> None:
        """Pass one character."""
        self._position += 1

    def line(self) -> int:
        """1-based number of the line of the position."""
        self._n_lines_before += self._text.count("\n", self._counted_to, self._position)
        self._counted_to = self._position
        return self._n_lines_before + 1

    def decode(self) -> Any:
        """The value at the position, which is passed."""
        wanted = _MARGIN
        while True:
            while not self._is_whole and len(self._text) - self._position < wanted:
                self._read_on()
            try:
                value, end = self._scan.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:
                if self._may_be_cut(error):
                    wanted = 2 * (len(self._text) - self._position) + _MARGIN
                    if wanted > MAX_VALUE_CHARACTERS:
                        self.refuse(f"a value of more than {MAX_VALUE_CHARACTERS >> 20} MiB", expected="smaller ones")
                    continue
                self._position = error.pos
                cut_off = error.pos >= len(self._text.rstrip()) or error.msg.startswith("Unterminated string")
                self.refuse("the JSON is cut off" if cut_off else f"this is not JSON ({error.msg})")
            except RecursionError:
                self.refuse("the JSON is nested too deeply")
            except ValueError as error:  # an integer of thousands of digits
                self.refuse(f"a number that cannot be ({error})")
            if isinstance(value, int | float) and not self._is_whole and len(self._text) - end < _MARGIN:
                wanted = 2 * (len(self._text) - self._position) + _MARGIN
                continue
            self._position = end
            self._n_values += 1
            return value

    def refuse(self, problem: str, *, expected: str | None = None) -> NoReturn:
        """Tell what is wrong at the position.

        Raises:
            InputError: always.
        """
        found = self._text[self._position : self._position + 40]
        raise InputError(
            problem,
            path=self._file.path,
            line=self.line(),
            expected=expected,
            found=repr(found)[1:-1] if found else "the end of the file",
            fix="get the file again",
        )

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        near_the_end = error.pos >= len(self._text) - _MARGIN
        return not self._is_whole and (near_the_end or error.msg.startswith("Unterminated string"))

    def _read_on(self) -> bool:
        """Hold more of the file, and less of what was passed; ``False`` if there is no more."""
        if self._is_whole:
            return False
        block = next(self._blocks, None)
        text = self._decoder.decode(b"" if block is None else block.data, is_last=block is None)
        self.line()
        self._text = self._text[self._position :] + text
        self._counted_to = self._position = 0
        if block is None:
            self._is_whole = True
            self._reading.tell(self._n_values, self._n_values, self._file.base, last=True)
            return False
        self._reading.tell_share(self._n_values, block.share, self._file.base)
        return True
