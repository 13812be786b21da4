"""First stage: which mentions are there?

Every part of the input gives a file of the mentions that no part before had. Those that were seen are remembered by
their keys, up to a bound; beyond it a mention can come twice, and is still linked once (`onoma.mapping.answers`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from onoma.mapping.keyed_texts import KeyedTexts
from onoma.mapping.keys import KEY_TYPE, MENTION, KeyArray, find_keys, keys_of
from onoma.mapping.parts import InputTable, parts_of
from onoma.mapping.work_folder import WorkFolder
from onoma.mapping.work_records import ReadInput
from onoma.types import Progress

MAX_REMEMBERED = 1 << 21
"""Keys (32 MiB)."""
TASK_MENTIONS = 1 << 14
"""About how many mentions are linked at a time, and lost when a process dies, at most: about a minute's worth."""
COSTLY_TASK_MENTIONS = 1 << 10
"""The same where a cross-encoder reads each mention with each of its candidates."""
MANY_TASKS, SMALL_TASK_MENTIONS = 1 << 6, 1 << 8
"""A short table is divided too, so that several processes have their share: up to so many tasks, one for every so
many mentions or a part of them."""
TASK_LINKS = 1 << 17
"""About how many links they get at most."""
TASK_BYTES = 1 << 26
"""About how much text they have at most, contexts included: as much memory as a process needs for them."""


def collect_mentions(
    table: InputTable,
    work: WorkFolder,
    progress: Progress,
    *,
    check: Callable[[pl.DataFrame, int], None],
    top_k: int,
    is_reranked: bool,
) -> ReadInput:
    """Read the input and write its mentions; parts that are there already are not written again.

    Args:
        table: The input.
        work: Where the files go.
        progress: Called with rows read and in all.
        check: Called with the rows of each part, and how many came before, to refuse them.
        top_k: Links that each mention may get.
        is_reranked: Whether a cross-encoder reads each mention with its candidates.

    Raises:
        InputError: the input cannot be read, saying the line.
    """
    known = np.empty(0, KEY_TYPE)
    n_rows = n_parts = n_mentions = n_bytes = 0
    for number, part in enumerate(parts_of(table, progress)):
        check(part.rows, n_rows)
        name = work.mentions(number)
        if KeyedTexts.exists(name):
            new = KeyedTexts(name, fix=work.fix).keys
        else:
            keys, distinct = distinct_mentions(part.texts)
            is_new = ~find_keys(known, keys)[1]
            new = keys[is_new]
            KeyedTexts.write(
                name, new, {column.name: column.to_list() for column in distinct.filter(pl.Series(is_new))}
            )
        if len(known) + len(new) <= MAX_REMEMBERED:
            known = np.insert(known, find_keys(known, new)[0], new)
        n_rows += part.texts.height
        n_parts += 1
        n_mentions += len(new)
        n_bytes += sum(KeyedTexts(name, fix=work.fix).n_bytes(column) for column in part.texts.columns)
    of_task = COSTLY_TASK_MENTIONS if is_reranked else TASK_MENTIONS
    read = ReadInput(
        n_rows=n_rows,
        n_parts=n_parts,
        n_mentions=n_mentions,
        n_tasks=max(
            1,
            min(MANY_TASKS, -(-n_mentions // SMALL_TASK_MENTIONS)),
            -(-n_mentions // of_task),
            -(-n_mentions * top_k // TASK_LINKS),
            -(-n_bytes // TASK_BYTES),
        ),
        columns=table.columns,
    )
    work.finish_reading(read)
    return read


def task_sizes() -> str:
    """All that decides what is in which task, in one line."""
    bounds = (
        TASK_MENTIONS,
        COSTLY_TASK_MENTIONS,
        MANY_TASKS,
        SMALL_TASK_MENTIONS,
        TASK_LINKS,
        TASK_BYTES,
        MAX_REMEMBERED,
    )
    return "/".join(map(str, bounds))


def distinct_mentions(texts: pl.DataFrame) -> tuple[KeyArray, pl.DataFrame]:
    """The mentions that occur, each once, and their keys, sorted by these.

    Args:
        texts: See `onoma.mapping.parts.Part`.
    """
    distinct = texts.filter(pl.col(MENTION).is_not_null()).unique()
    keys = keys_of(distinct)
    order = np.argsort(keys)
    return keys[order], distinct[order]
