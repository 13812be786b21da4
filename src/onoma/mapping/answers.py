"""Second stage: links of the mentions, a task at a time; and looking them up again.

A task is a part of the range of keys. Whoever works on it, and wherever, writes the same files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl

from onoma.errors import InputError, first_line
from onoma.linking import Link, Linker
from onoma.linking.mentions import PreparedMention
from onoma.mapping.keyed_texts import KeyedTexts
from onoma.mapping.keys import CONTEXT, MENTION, KeyArray, find_keys, rows_of_task, task_bounds
from onoma.mapping.work_folder import WorkFolder
from onoma.types import DoubleArray

ANSWER_TYPES = {
    "read_as": pl.String(),
    "concept_id": pl.String(),
    "preferred_name": pl.String(),
    "matched_name": pl.String(),
    "score": pl.Float64(),
    "confidence": pl.Float64(),
    "rank": pl.Int32(),
}
"""Columns that answers can have, as `onoma.linking.Link` calls them."""
_LINKS = "links"
_LINKS_TYPE = pl.List(pl.Struct(ANSWER_TYPES))
_CONFIDENCE = "confidence"
_CONFIDENCES_TYPE = pl.List(pl.Struct({_CONFIDENCE: ANSWER_TYPES[_CONFIDENCE]}))
_MENTIONS_AT_ONCE, _LINKS_AT_ONCE = 1 << 12, 1 << 16
"""Between two reports of progress, at most."""


def link_task(
    linker: Linker, work: WorkFolder, task: int, *, progress: Callable[[int], object] = lambda _: None
) -> int:
    """Link the mentions of a task and write its files.

    Args:
        linker: See `onoma.linking.Linker`.
        work: Where mentions lie and answers go.
        task: From 0.
        progress: Called with how many mentions were linked since the last call.

    Returns:
        How many mentions there were, each counted once.
    """
    name = work.answers(task)
    read, settings = work.reading, work.begun
    if read is None:
        raise work.removed()
    columns = (MENTION,) if settings.context is None else (MENTION, CONTEXT)
    keys, texts = _of_task(work, task, columns, n_parts=read.n_parts, n_tasks=read.n_tasks)
    answers: list[str] = []
    expected_types = work.asking.expected_types
    at_once = max(1, min(_MENTIONS_AT_ONCE, _LINKS_AT_ONCE // settings.top_k))
    for start in range(0, len(keys), at_once):
        some = {column: values[start : start + at_once] for column, values in texts.items()}
        contexts = [text or None for text in some[CONTEXT]] if CONTEXT in some else None
        prepared = linker.prepare(some[MENTION], contexts=contexts)
        found = linker.link(prepared, top_k=settings.top_k, expected_types=expected_types)
        answers += [_as_json(*of_one) for of_one in zip(prepared, found, strict=True)]
        progress(len(answers) - start)
    KeyedTexts.write(name, keys, {_LINKS: answers})
    return len(keys)


def _of_task(
    work: WorkFolder, task: int, columns: Sequence[str], *, n_parts: int, n_tasks: int
) -> tuple[KeyArray, dict[str, list[str]]]:
    """Keys of a task's mentions, sorted, each once, and the texts in these columns."""
    bounds = task_bounds(n_tasks)
    keys: list[KeyArray] = []
    texts: dict[str, list[str]] = {column: [] for column in columns}
    for part in range(n_parts):
        file = KeyedTexts(work.mentions(part), fix=work.fix)
        rows = rows_of_task(file.keys, bounds, task)
        keys.append(np.array(file.keys[rows]))
        for column in columns:
            texts[column] += file.read(column, rows)
    distinct, first = np.unique(np.concatenate(keys), return_index=True)
    return distinct, {column: [values[row] for row in first.tolist()] for column, values in texts.items()}


def _as_json(mention: PreparedMention, links: list[Link]) -> str:
    """The links of a mention; a part without any has a record that says at most how it was read."""
    records: list[dict[str, object]] = []
    for read_as, of_part in mention.by_part(links):
        answers = [{name: getattr(link, name) for name in ANSWER_TYPES} for link in of_part] or [{"read_as": read_as}]
        records += [{name: value for name, value in answer.items() if value is not None} for answer in answers]
    return json.dumps(records, ensure_ascii=False, separators=(",", ":"))


class AnswerFiles:
    """Links of mentions, looked up by key in the files of all tasks.

    Args:
        work: Where the files lie.
        n_tasks: How many.
    """

    def __init__(self, work: WorkFolder, n_tasks: int) -> None:
        self._work, self._n_tasks = work, n_tasks
        self._bounds = task_bounds(n_tasks)

    def links_of(self, keys: KeyArray) -> pl.Series:
        """Links of each mention, best first: a list of structs with the fields of `ANSWER_TYPES`.

        Of a mention that was split, the links of each part. A part, or a mention, without any has a struct without a
        ``concept_id``.

        Args:
            keys: Sorted, each once.

        Raises:
            InputError: there is a mention that was not there when the input was read.
        """
        found: list[str] = []
        for task in range(self._n_tasks):
            wanted = keys[rows_of_task(keys, self._bounds, task)]
            if len(wanted):
                file = KeyedTexts(self._work.answers(task), fix=self._work.fix)
                positions, is_there = find_keys(file.keys, wanted)
                if not is_there.all():
                    raise InputError(
                        "there are mentions that were not there before: the input was changed while it was mapped",
                        fix="run the command again",
                    )
                found += file.read(_LINKS, positions.tolist())
        return self._decoded(pl.Series(found, dtype=pl.String), _LINKS_TYPE)

    def confidences(self) -> Iterator[tuple[int, DoubleArray]]:
        """Of each task: how many mentions, and the confidences of the best link of each, or of each of its parts."""
        for task in range(self._n_tasks):
            file = KeyedTexts(self._work.answers(task), fix=self._work.fix)
            links = pl.Series(file.read(_LINKS, slice(None)), dtype=pl.String)
            # The best links alone have one; of linkers that give none nothing is decoded, which takes long.
            having = links.filter(links.str.contains(f'"{_CONFIDENCE}":', literal=True))
            decoded = self._decoded(having, _CONFIDENCES_TYPE).explode().struct.field(_CONFIDENCE)
            yield len(links), decoded.drop_nulls().to_numpy()

    def _decoded(self, links: pl.Series, dtype: pl.List) -> pl.Series:
        """What `_as_json` wrote."""
        try:
            return links.str.json_decode(dtype)
        except pl.exceptions.ComputeError as error:
            raise self._work.damaged(self._work.answers(0).parent, first_line(error)) from None
