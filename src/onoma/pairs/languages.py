"""Sets of languages to train on, as cross-lingual SapBERT names them (Liu et al. 2021, table 4).

=========  ============================================================================================
set        names that are trained on
=========  ============================================================================================
all        every name, whatever its language
en         names of one language, English or another
en+es      names of both; so for any number of languages
=========  ============================================================================================

A set chooses names. All names of a concept that are chosen are paired with each other: under "en+es" English with
English, English with Spanish, Spanish with Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from onoma.errors import ConfigError, InputError, check_several
from onoma.terminology import Terminology
from onoma.terminology.languages import tidy_language
from onoma.terminology.tables import of_languages


def parse_languages(text: str) -> tuple[str, ...] | None:
    """A set of languages from its name.

    Args:
        text: "all", or BCP 47 tags joined by ``+`` (or commas).

    Returns:
        The tags; ``None`` for all languages.

    Raises:
        ConfigError: this is no set of languages.

    Example:
        >>> parse_languages("en+pt-BR"), parse_languages("all")
        (('en', 'pt-BR'), None)
    """
    if text.strip().lower() == "all":
        return None
    try:
        tags = tuple(tidy_language(part.strip()) for part in re.split(r"[+,]", text))
    except ValueError:
        tags = ()
    if not tags or "all" in tags:
        raise ConfigError(
            f"languages: '{text}' is no set of languages. Give 'all', one BCP 47 tag ('en'), or several joined by + "
            "('en+es')."
        )
    return tags


def check_languages(terminology: Terminology, languages: Sequence[str] | None) -> None:
    """Refuse a language that no name of the terminology is of: it would be missing from training without a word.

    Raises:
        InputError: naming it, and those that there are.
    """
    check_several([] if languages is None else languages, "languages")
    known = pl.DataFrame()
    for language in () if languages is None else languages:
        if known.is_empty():
            known = terminology.names().select(pl.col("language").unique().sort()).collect()
        if known.filter(of_languages([language])).is_empty():
            raise InputError(
                f"no name is of the language '{language}'",
                path=terminology.path,
                field="languages",
                expected=f"some of {', '.join(known['language'])}" if len(known) else None,
                found=language,
            )
