"""Objects of JSON, strictly: a line of JSON Lines without a key twice, numbers as they are spelt; what keys hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from onoma.files.archives import SourceFile
from onoma.files.reading import Reading
from onoma.files.text_files import text_lines


class BadLineError(Exception):
    """What is wrong with a line.

    Attributes:
        field: The key that it is about, if it is about one.
        fix: What to do, if more than leaving the line out.
    """

    def __init__(self, problem: str, field: str | None = None, fix: str | None = None) -> None:
        super().__init__(problem)
        self.field, self.fix = field, fix


class Number(str):
    """A number as it is spelt."""

    __slots__ = ()


def json_object(line: str) -> dict[str, Any]:
    """The object that a line holds; its numbers are `Number`.

    Raises:
        BadLineError: it holds something else, a key twice, or no JSON.
    """
    try:
        record = _DECODER.decode(line)
    except ValueError as error:
        raise BadLineError(f"not JSON ({error})") from None
    except RecursionError:
        raise BadLineError("JSON nested too deeply") from None
    if not isinstance(record, dict):
        raise BadLineError("a JSON value that is no object, where one is needed on each line")
    return record


def json_records(file: SourceFile, reading: Reading) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the object of each line that is not blank; bad ones are rejected.

    Raises:
        InputError: as `onoma.files.text_files.text_lines`; under "strict" also a line as of `json_object`.
    """
    for begin, lines in text_lines(file, reading):
        for number, line in enumerate(lines, begin):
            if not line.strip():
                continue
            try:
                yield number, json_object(line)
            except BadLineError as error:
                reading.reject(str(error), path=file.path, line=number, text=line, field=error.field)


def json_text(value: object, field: str) -> str:
    """A text, number or truth value as text; "" for null.

    Raises:
        BadLineError: it is something else, or half a character.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise BadLineError("an object or a list inside, where a text, number or null belongs", field)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise BadLineError("half a character (a lone surrogate)", field)
    return value


def json_texts(value: object, field: str) -> list[str]:
    """The texts of a list; a value by itself is one.

    Raises:
        BadLineError: as `json_text`, of one of them.
    """
    return [json_text(one, field) for one in (value if isinstance(value, list) else [value])]


def json_objects(value: object, field: str) -> list[dict[str, Any]]:
    """The objects of a list; none of null.

    Raises:
        BadLineError: it is no such list.
    """
    objects = [] if value is None else value
    if not isinstance(objects, list) or not all(isinstance(one, dict) for one in objects):
        raise BadLineError("no list of objects, where one belongs", field)
    return objects


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        keys = [key for key, _ in pairs]
        raise BadLineError("a key occurs twice", next(key for key in keys if keys.count(key) > 1))
    return record


def _refuse_constant(name: str) -> Any:
    raise BadLineError(f"not JSON ({name} is no value of it)")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats, parse_int=Number, parse_float=Number, parse_constant=_refuse_constant
)
