"""The answer to a mention, and the protocol of anything that links."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from onoma.errors import InputError, check_several, whole_number


@dataclass(frozen=True, slots=True)
class Link:
    """One concept that a mention may mean. ``dataclasses.asdict`` makes it ready for JSON.

    Attributes:
        concept_id: The user's own code.
        preferred_name: Of the concept, as the terminology spells it.
        matched_name: The concept's name nearest to the mention, as the terminology spells it.
        score: What the ranking used, to six decimals; 1.0 if look-up found the mention. Otherwise, with one search, the
            cosine similarity of mention and matched name, -1..1; see `onoma.linking.fusion` for two searches, and
            `onoma.linking.prior` and `onoma.linking.reranking` for what these stages make of it.
        rank: 1 for the best; in a composite mention that was split, for the best of each part.
        confidence: Probability that the first link is right; unset for the others, and if the linker is not calibrated.
        read_as: What was linked in place of the mention: the preferred name of the concept whose code it is; the
            mention without strengths, with short forms replaced and misspelt words corrected; or one of its parts.
            Unset if that is the mention itself.

    Example:
        >>> from dataclasses import asdict
        >>> asdict(Link("D009203", "Myocardial Infarction", "Heart Attack", 0.9, 1))["matched_name"]
        'Heart Attack'
    """

    concept_id: str
    preferred_name: str
    matched_name: str
    score: float
    rank: int
    confidence: float | None = None
    read_as: str | None = None


class MentionLinker(Protocol):
    """Anything that ranks concepts for mentions."""

    def link(self, mentions: Iterable[str], *, top_k: int = 5) -> list[list[Link]]:
        """The ``top_k`` best concepts of each mention, best first; order and number of mentions are kept."""


def checked_mentions(mentions: Iterable[str]) -> list[str]:
    """The mentions as a list.

    Raises:
        InputError: one string instead of several, or something that is not text.
    """
    check_several(mentions, "mentions")
    checked = list(mentions)
    for position, mention in enumerate(checked):
        check_text(mention, "a mention", field=f"mentions[{position}]", instead="''; it gets no link")
    return checked


def check_text(text: object, what: str, *, field: str, instead: str | None = None) -> None:
    """Refuse what is not text.

    Args:
        text: To be checked.
        what: Of what the error speaks: "a mention".
        field: And where it says this was.
        instead: What to give where there is none, a missing value of a table.

    Raises:
        InputError: it is no string, or not valid Unicode.
    """
    if not isinstance(text, str):
        is_missing = text is None or (isinstance(text, float) and math.isnan(text))
        raise InputError(
            f"{what} is not text",
            field=field,
            found=repr(text) if is_missing else type(text).__name__,
            fix=f"where there is none, give {instead}" if is_missing and instead else None,
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} is not valid Unicode (half of a surrogate pair)",
            field=field,
            found=f"{text[error.start]!a} at character {error.start + 1} of {len(text)}",
            fix="read the text with its right encoding",
        ) from None


def checked_top_k(top_k: int) -> int:
    """A number of answers.

    Raises:
        InputError: it is below 1.
    """
    return whole_number(top_k, "top_k", "too few answers asked for")
