"""Options of readers: typed, frozen; an unknown one is refused with the nearest name."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from onoma.errors import ConfigError, did_you_mean


class ReaderOptions(BaseModel):
    """Base of the options of a reader; each field has a description for people."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def split_words(value: Any) -> Any:
    """Text to the words between its commas, as a line of CSV is read; anything else as it is.

    Example:
        >>> split_words('a, "b, c"')
        ('a', 'b, c')
    """
    if isinstance(value, str):
        (parts,) = csv.reader([re.sub(r"[\r\n]+", " ", value)], skipinitialspace=True) if value else ([],)
        return tuple(part.strip() for part in parts if part.strip())
    return value


Words = Annotated[tuple[str, ...], BeforeValidator(split_words)]
"""Several words, which the command line gives divided by commas; one that has a comma in double quotes."""

LANGUAGE_TAG = r"^([A-Za-z]{2,8}|[xXiI][-_][A-Za-z0-9]{1,8})([-_][A-Za-z0-9]{1,8})*$"
"""The form of a BCP 47 tag, also of a private ("x-lay") or grandfathered one; "_" for "-" as POSIX writes it is taken
too."""


def tidy_language(tag: str) -> str:
    """A BCP 47 tag spelt as is usual: "-" between subtags, language "pt", script "Hant", region "BR".

    Example:
        >>> tidy_language("PT_br"), tidy_language("zh-hant-TW")
        ('pt-BR', 'zh-Hant-TW')
        >>> tidy_language("x-Lay")
        'x-Lay'

    Raises:
        ValueError: it is no tag.
    """
    if not re.fullmatch(LANGUAGE_TAG, tag):
        raise ValueError(f"'{tag}' is no language tag such as en or pt-BR")
    language, *subtags = tag.replace("_", "-").split("-")
    # What follows a single letter is private, or of an extension, and has no spelling of its own.
    n_known = next((place for place, part in enumerate(subtags) if len(part) == 1), len(subtags))
    n_known = 0 if len(language) == 1 else n_known
    capitals = {2: str.upper, 4: str.title}
    known = [capitals.get(len(part), str)(part) for part in subtags[:n_known]]
    return "-".join([language.lower(), *known, *subtags[n_known:]])


def _known_language(tag: str) -> str:
    """As `tidy_language`; but no language has a tag of more than three letters, and who gives one means its name."""
    tidy = tidy_language(tag)
    if len(tidy.partition("-")[0]) > 3:
        raise ValueError(f"'{tag}' is no language tag such as en or pt-BR")
    return tidy


LanguageTag = Annotated[str, AfterValidator(_known_language)]
"""One BCP 47 tag, e.g. for names of which the format does not say the language."""

LanguageTags = Annotated[tuple[LanguageTag, ...], BeforeValidator(split_words)]
"""Several of them, e.g. the languages to keep."""


def _sign(value: str) -> str:
    if value.isalnum() and value != "tab":
        raise ValueError(f"names are divided by a sign, such as | or ;, or by a tab (tab), not by '{value}'")
    return "\t" if value == "tab" else value


Separator = Annotated[str, Field(min_length=1), AfterValidator(_sign)]
"""What divides several names in one cell or line."""

OptionsT = TypeVar("OptionsT", bound=ReaderOptions)


def parse_options(options_type: type[OptionsT], given: Mapping[str, object], format_name: str) -> OptionsT:
    """Options of a reader from names and values; text is converted ("a,b" to a tuple, "yes" to true).

    Raises:
        ConfigError: there is no such option, one is missing, or a value cannot be.
    """
    known = options_type.model_fields
    for name in given:
        if name not in known:
            words = f"Known: {', '.join(known)}." if known else "It has none."
            raise ConfigError(f"Format {format_name} has no option '{name}'.{did_you_mean(name, known)} {words}")
    try:
        return options_type.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][:1]) or "options"
        if first["type"] == "missing":
            raise ConfigError(f"Format {format_name} needs the option '{name}': {known[name].description}.") from None
        problem = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"Format {format_name}, option '{name}': {problem}; found {first['input']!r}.") from None


def describe_options(options_type: type[ReaderOptions]) -> list[tuple[str, str, str]]:
    """(name, default as one would write it, description) of each option."""
    described = []
    for name, field in options_type.model_fields.items():
        default = "required" if field.is_required() else _shown(field.default)
        described.append((name, default, field.description or ""))
    return described


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
