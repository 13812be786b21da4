"""An explanation as text: what ``onoma link --explain`` shows, and ``print(explanation)``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from onoma.plain_tables import aligned
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.linking.explanation import Explanation, Reason

NUMERIC_COLUMNS = ("rank", "score")
_COLUMNS = ["", "rank", "concept", "preferred name", "matched name", "by", "score", "made of"]
_SHOWN_CHARACTERS = 300


def cut(text: str) -> str:
    """A mention or name that would fill the screen, cut."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def sections(explanation: Explanation) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Lines and the rows of the table below them, headed by the names of its columns; of each part of a mention."""
    lines = [f"{cut(explanation.mention)}: {explanation.outcome}"]
    if explanation.parts:
        for of_part, rows in itertools.chain.from_iterable(map(sections, explanation.parts)):
            yield [*lines, *of_part], rows
            lines = []
        return
    fused = ""
    if explanation.weights is not None:
        shares = ", ".join(f"{weight:.3f} x {search}" for search, weight in explanation.weights.items())
        fused = f"; fused: {shares}"
    elif explanation.fusion is not None:
        fused = f"; fused: {explanation.fusion}"
    candidates = f" of {quantity(explanation.n_candidates, 'candidate')}" if explanation.n_candidates else ""
    confidence = "" if explanation.confidence is None else f"; confidence {explanation.confidence:.3f}"
    stages = f"stages {', '.join(explanation.stages)}{fused}{candidates}{confidence}"
    lines.append(f"  compared as '{cut(explanation.text)}'; {stages}")
    rows = [_row(reason, "answer") for reason in explanation.links]
    rows += [_row(reason, "near miss") for reason in explanation.near_misses]
    n_columns = len(_COLUMNS) if any(row[-1] for row in rows) else len(_COLUMNS) - 1
    yield lines, [row[:n_columns] for row in (_COLUMNS, *rows)] if rows else []


def in_words(explanation: Explanation) -> str:
    """The text, with a blank line between the parts of a split mention."""
    return "\n\n".join(
        "\n".join([*lines, aligned(rows, numeric=NUMERIC_COLUMNS)] if rows else lines)
        for lines, rows in sections(explanation)
    )


def _row(reason: Reason, what: str) -> list[str]:
    """Cells; the last is blank where the score is that of one search and nothing else."""
    made_of = " + ".join(f"{name} {part:.3f}" for name, part in reason.contributions.items())
    cosines = ", ".join(f"{search} {score:.3f}" for search, score in reason.scores.items())
    ranks = ", ".join(f"{search} {rank}." for search, rank in reason.ranks.items())
    details = "; ".join(part for part in (f"cosines {cosines}" if cosines else "", ranks) if part)
    is_plain = reason.contributions == reason.scores and list(reason.scores) == [reason.stage] and not ranks
    return [
        what,
        str(reason.rank),
        reason.concept_id,
        cut(reason.preferred_name),
        cut(reason.matched_name) + (" (broad, narrow or related)" if reason.is_other_scope else ""),
        reason.stage,
        f"{reason.score:.3f}",
        "" if is_plain else f"{made_of} ({details})" if details else made_of,
    ]
