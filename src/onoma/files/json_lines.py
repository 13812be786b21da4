"""A line of JSON Lines, strictly: an object, no key of it twice, numbers as they are spelt."""

from __future__ import annotations

import json
from typing import Any


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
