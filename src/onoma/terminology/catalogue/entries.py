"""The catalogue of vocabularies: where each is published, under which licence, and how it is imported.

The entries are data, in ``catalogue.toml`` beside this module.
"""

from __future__ import annotations

import functools
import shlex
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, Field, model_validator

from onoma.errors import ConfigError, did_you_mean


class CatalogueEntry(BaseModel):
    """A vocabulary that can be fetched, or that a person must get."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="as the command line takes it")
    title: str = Field(description="what it is")
    page: str = Field(pattern=r"^https?://", description="where its publisher describes it")
    url: str | None = Field(default=None, pattern=r"^https?://", description="the file; unset: it is got by hand")
    by_hand: str | None = Field(default=None, description="how a person gets it, where it cannot be fetched")
    n_bytes: int | None = Field(default=None, gt=0, description="of the file, about")
    format: str = Field(description="one of `onoma.terminology.known_formats`")
    options: Mapping[str, str] = Field(default={}, description="of the format")
    licence: str = Field(description="SPDX where there is such a name, else in words")
    note: str | None = Field(default=None, description="what is worth knowing")

    @model_validator(mode="after")
    def _fetched_or_by_hand(self) -> CatalogueEntry:
        if (self.url is None) == (self.by_hand is None):
            raise ValueError("an entry has either url or by_hand")
        return self

    def import_command(self, source: str | Path) -> str:
        """The command that imports it, for a shell.

        Args:
            source: The file that was fetched.

        Example:
            >>> print(known_vocabularies()["doid"].import_command("doid.obo"))
            onoma terminology import obo doid.obo -o doid --set prefixes=DOID
        """
        words = ["onoma", "terminology", "import", self.format, str(source), "-o", self.name]
        for option, value in self.options.items():
            words += ["--set", f"{option}={value}"]
        return shlex.join(words)


@functools.cache
def known_vocabularies() -> Mapping[str, CatalogueEntry]:
    """All entries of the catalogue by name.

    Example:
        >>> known_vocabularies()["doid"].licence
        'CC0-1.0'
    """
    text = resources.files("onoma.terminology.catalogue").joinpath("catalogue.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text).items()
    return MappingProxyType({name: CatalogueEntry(name=name, **fields) for name, fields in entries})


def get_vocabulary(name: str) -> CatalogueEntry:
    """The entry of this name.

    Raises:
        ConfigError: there is none.
    """
    known = known_vocabularies()
    if name not in known:
        raise ConfigError(
            f"The catalogue has no vocabulary '{name}'.{did_you_mean(name, known)} All of them: onoma terminology list."
        )
    return known[name]
