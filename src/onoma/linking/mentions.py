"""Mentions made ready to be linked: short forms replaced, composites split."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from onoma.linking.abbreviations import finder_named
from onoma.linking.composites import split_composite
from onoma.linking.expansion import AbbreviationTable, Expansion, expand_with_trace
from onoma.linking.links import check_request


@dataclass(frozen=True, slots=True)
class PreparedMention:
    """What to link in place of a mention.

    Attributes:
        original: The mention as it was given.
        text: With its short forms replaced; the original where there was nothing to replace.
        parts: The names it stands for, at least one; ``(text,)`` unless it was split.
        expansions: Short forms that were replaced, and by what.
    """

    original: str
    text: str
    parts: tuple[str, ...]
    expansions: tuple[Expansion, ...]


def prepare_mentions(
    mentions: Iterable[str],
    *,
    document: str | None = None,
    table: AbbreviationTable | None = None,
    finder: str | None = "schwartz-hearst",
    split: bool = False,
    is_name: Callable[[str], bool] | None = None,
) -> list[PreparedMention]:
    """Expand the short forms of mentions, and split composite ones.

    What the document defines goes before what the table says.

    Args:
        mentions: Of one document, if that is given; order and number are kept.
        document: Text that defines short forms; without it only the table's are known.
        table: Definitions that hold in every document.
        finder: What reads the document, one of `FINDERS`; ``None`` to leave it unread.
        split: Whether to split composite mentions, after expansion.
        is_name: For splitting: whether a text is a name of the terminology; see `split_composite`.

    Raises:
        InputError: a mention is not text.
        ConfigError: there is no such finder.
        UnavailableError: Ab3P is asked for and not installed.

    Example:
        >>> prepared = prepare_mentions(["HCC and FED"], document="She has fish-eye disease (FED).", split=True)
        >>> prepared[0].text, prepared[0].parts
        ('HCC and fish-eye disease', ('HCC', 'fish-eye disease'))
    """
    find = None if finder is None else finder_named(finder)
    definitions = {
        **(table.definitions if table is not None else {}),
        **(find(document) if find is not None and document else {}),
    }
    prepared = []
    for mention in check_request(mentions, 1):
        text, expansions = expand_with_trace(mention, definitions)
        parts = split_composite(text, is_name=is_name) if split else [text]
        prepared.append(PreparedMention(mention, text, tuple(parts), expansions))
    return prepared
