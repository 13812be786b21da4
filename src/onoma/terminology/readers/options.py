"""Options of readers: typed and frozen. An unknown one is refused; the error suggests the nearest name."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from onoma.errors import ConfigError, did_you_mean
from onoma.terminology.languages import tidy_language


class ReaderOptions(BaseModel):
    """Base of the options of a reader; each field has a description for people."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def split_words(value: Any) -> Any:
    """Split text at its commas into words, as a line of CSV; return anything else unchanged.

    Example:
        >>> split_words('a, "b, c"')
        ('a', 'b, c')
    """
    cells = split_cells(value)
    return tuple(filter(None, cells)) if isinstance(value, str) else cells


def split_cells(value: Any) -> Any:
    """The same, with an empty text where nothing stands between two commas.

    Example:
        >>> split_cells("a,,b")
        ('a', '', 'b')
    """
    if isinstance(value, str):
        (parts,) = csv.reader([re.sub(r"[\r\n]+", " ", value)], skipinitialspace=True) if value else ([],)
        return tuple(part.strip() for part in parts)
    return value


Words = Annotated[tuple[str, ...], BeforeValidator(split_words)]
"""Several words, on the command line separated by commas; one that contains a comma is in double quotes."""

LanguageTag = Annotated[str, AfterValidator(tidy_language)]
"""One BCP 47 tag, e.g. the language of names if the format does not say it."""

LanguageTags = Annotated[tuple[LanguageTag, ...], BeforeValidator(split_words)]
"""Several BCP 47 tags, e.g. the languages to keep."""


def _sign(value: str) -> str:
    if value.isalnum() and value != "tab":
        raise ValueError(f"names are divided by a sign, such as | or ;, or by a tab (tab), not by '{value}'")
    return "\t" if value == "tab" else value


Separator = Annotated[str, Field(min_length=1), AfterValidator(_sign)]
"""What separates several names in one cell or line."""

OptionsT = TypeVar("OptionsT", bound=ReaderOptions)


def parse_options(options_type: type[OptionsT], given: Mapping[str, object], format_name: str) -> OptionsT:
    """Make the options of a reader from names and values; text is converted ("a,b" to a tuple, "yes" to true).

    Raises:
        ConfigError: an option is unknown or missing, or its value is not allowed.
    """
    known = options_type.model_fields
    if not isinstance(given, Mapping):
        raise ConfigError(f'options are a mapping, e.g. {{"id": "code"}}; found {type(given).__name__}.')
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
            raise ConfigError(
                f"Format {format_name} needs the option '{name}': {known[name].description} (--set {name}=...)."
            ) from None
        problem = first["msg"].removeprefix("Value error, ")
        if first["type"] == "bool_parsing":
            problem = "expected yes or no"
        found = repr(first["input"])
        told = problem if found in problem else f"{problem}; found {found}"
        raise ConfigError(f"Format {format_name}, option '{name}': {told}.") from None


def describe_options(options_type: type[ReaderOptions]) -> list[tuple[str, str, str]]:
    """(name, default as a user would write it, description) of each option."""
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
