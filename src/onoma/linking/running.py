"""Distinct mentions through a linker's stages, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onoma.linking.parts import Parts
from onoma.linking.pipeline import Asked, Run
from onoma.linking.settings import Stage

_MENTIONS_AT_ONCE = 4096


def runs(
    parts: Parts,
    asked: Iterable[Asked],
    *,
    stages: tuple[Stage, ...],
    top_k: int,
    expected_types: str | Iterable[str] | None = None,
    spare: int | None = None,
) -> Iterator[tuple[list[Asked], Run]]:
    """What is asked, each once and without blanks, and the run that answers it.

    Args:
        parts: Of the linker.
        asked: Mentions made ready.
        stages: Those to use.
        top_k: Concepts wanted for each.
        expected_types: See `onoma.linking.Linker.link`.
        spare: See `Run`.

    Raises:
        InputError: there is no such semantic type.
    """
    expected = parts.expected(expected_types)
    distinct = [mention for mention in dict.fromkeys(asked) if mention.text]
    for start in range(0, len(distinct), _MENTIONS_AT_ONCE):
        run = Run(parts, stages=stages, top_k=top_k, expected=expected, spare=spare)
        yield distinct[start : start + _MENTIONS_AT_ONCE], run
