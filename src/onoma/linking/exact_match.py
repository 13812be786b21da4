"""Linking by look-up alone: the baseline that every learned linker must beat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onoma.errors import InputError
from onoma.linking.dictionary import NameDictionary
from onoma.linking.links import Link, checked_mentions, checked_top_k
from onoma.linking.lookup import NameLookup
from onoma.terminology import normalise
from onoma.types import RowArray

if TYPE_CHECKING:  # whoever links does without terminologies
    from onoma.terminology import Terminology


class ExactMatcher:
    """Links a mention to the concepts that have it as a name, after normalisation of both.

    Concepts are ranked as by a `Linker` that knows nothing more: first those whose preferred name the text is, then by
    their order in the terminology. A mention that is no concept's name has no links.

    Args:
        dictionary: The names (`build_dictionary`).

    Raises:
        InputError: these are not names.
    """

    def __init__(self, dictionary: NameDictionary) -> None:
        if not isinstance(dictionary, NameDictionary):
            raise InputError(
                "names are looked up in a dictionary",
                expected="a NameDictionary",
                found=repr(dictionary),
                fix="of a terminology: ExactMatcher.from_terminology; of a linker: linker.dictionary",
            )
        self.dictionary = dictionary

    def __repr__(self) -> str:
        return f"ExactMatcher({self.dictionary!r})"

    @classmethod
    def from_terminology(
        cls,
        terminology: Terminology | str | Path,
        *,
        normalisation: str = "sapbert",
        hidden_names: Sequence[int] | RowArray | None = None,
    ) -> ExactMatcher:
        """A matcher over the active concepts of a terminology; arguments as in `build_dictionary`."""
        from onoma.linking.dictionary_building import build_dictionary

        return cls(build_dictionary(terminology, normalisation=normalisation, hidden_names=hidden_names))

    @cached_property
    def _lookup(self) -> NameLookup:
        return NameLookup(self.dictionary.texts)

    def link(self, mentions: Iterable[str], *, top_k: int = 5) -> list[list[Link]]:
        """The concepts that have exactly this name, with score 1.0, for each mention.

        Raises:
            InputError: a mention is not text, or ``top_k`` is less than 1.
        """
        answers, top_k = [], checked_top_k(top_k)
        for mention in checked_mentions(mentions):
            found = self._lookup.exact(normalise(mention, self.dictionary.normalisation))
            links = self.dictionary.rank_concepts(found, np.ones(len(found), np.float32), top_k=top_k)
            answers.append(links or [])
        return answers
