"""Baselines by name, with their settings."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from onoma.artifacts import sha256_file
from onoma.errors import ConfigError, InputError, did_you_mean, one_of
from onoma.indexes.ngram_keys import checked_ngrams
from onoma.linking.baselines.fuzzy import FuzzyNames, Scorer
from onoma.linking.baselines.lexical import Bm25Names, EqualNames, TfidfNames
from onoma.linking.baselines.name_search import NameSearch, SearchLinker
from onoma.linking.baselines.word_vectors import WordVectorNames, WordVectors
from onoma.linking.dictionary import NameDictionary
from onoma.linking.links import MentionLinker
from onoma.terminology import normalise


class Baseline(BaseModel):
    """A baseline and its settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    name: ClassVar[str]

    normalisation: str = Field(default="sapbert", description="preset that names and mentions go through")

    @field_validator("normalisation")
    @classmethod
    def _is_preset(cls, preset: str) -> str:
        normalise("", preset)
        return preset

    @abstractmethod
    def search(self, names: Sequence[str]) -> NameSearch:
        """Index names, which are normalised already."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the answers depend on."""
        return ()

    @property
    def settings(self) -> dict[str, Any]:
        """As JSON has them."""
        return self.model_dump(mode="json")

    @property
    def fingerprint(self) -> str:
        """SHA-256 over name, settings and the content of the files."""
        known = {"name": self.name, **self.settings, "files": [sha256_file(file) for file in self.files]}
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


class ExactBaseline(Baseline):
    """Names equal to the mention."""

    name = "exact"

    def search(self, names: Sequence[str]) -> NameSearch:
        """See `Baseline.search`."""
        return EqualNames(names)


def _lengths(value: Any) -> Any:
    """``"2-4"`` to ``(2, 4)``; anything else as it is."""
    return tuple(value.split("-")) if isinstance(value, str) else value


class TfidfBaseline(Baseline):
    """Cosine of TF-IDF vectors of character n-grams."""

    name = "tfidf"
    ngrams: Annotated[tuple[int, int], BeforeValidator(_lengths)] = Field(
        default=(1, 2), description="shortest and longest n-gram, as 1-2"
    )

    @field_validator("ngrams")
    @classmethod
    def _are_lengths(cls, ngrams: tuple[int, int]) -> tuple[int, int]:
        try:
            return checked_ngrams(ngrams)
        except InputError as error:
            raise ValueError(f"expected {error.expected}") from None

    def search(self, names: Sequence[str]) -> NameSearch:
        """See `Baseline.search`."""
        return TfidfNames(names, ngrams=self.ngrams)


class Bm25Baseline(Baseline):
    """BM25 over words."""

    name = "bm25"
    k1: float = Field(default=1.2, ge=0, description="how much it counts that a name has a word more than once")
    b: float = Field(default=0.75, ge=0, le=1, description="how much longer names are marked down")

    def search(self, names: Sequence[str]) -> NameSearch:
        """See `Baseline.search`."""
        return Bm25Names(names, k1=self.k1, b=self.b)


class FuzzyBaseline(Baseline):
    """Similarity of whole strings by edits (extra ``fuzzy``)."""

    name = "fuzzy"
    scorer: Scorer = Field(default="wratio", description="wratio, ratio, jaro or jaro-winkler")

    def search(self, names: Sequence[str]) -> NameSearch:
        """See `Baseline.search`."""
        return FuzzyNames(names, scorer=self.scorer)


class WordVectorBaseline(Baseline):
    """Cosine of averaged word vectors."""

    name = "word-vectors"
    vectors: Path = Field(description="file of word vectors as text, as of word2vec, GloVe or fastText")

    def search(self, names: Sequence[str]) -> NameSearch:
        """See `Baseline.search`."""
        return WordVectorNames(names, WordVectors(self.vectors))

    @property
    def files(self) -> tuple[Path, ...]:
        """The vectors."""
        return (self.vectors,)

    @property
    def settings(self) -> dict[str, Any]:
        """Without the place of the file."""
        return self.model_dump(mode="json", exclude={"vectors"}) | {"vectors": self.vectors.name}


BASELINES: dict[str, type[Baseline]] = {
    kind.name: kind for kind in (ExactBaseline, TfidfBaseline, Bm25Baseline, FuzzyBaseline, WordVectorBaseline)
}
"""All baselines by name."""


def get_baseline(name: str, settings: Mapping[str, object] | None = None) -> Baseline:
    """A baseline from its name and settings; text is converted ("2-4" to two numbers).

    Raises:
        ConfigError: there is no such baseline or setting, one is missing, or a value cannot be.

    Example:
        >>> get_baseline("tfidf", {"ngrams": "2-4"}).settings
        {'normalisation': 'sapbert', 'ngrams': [2, 4]}
    """
    kind = BASELINES[one_of(name, BASELINES, "baseline")]
    for setting in settings or {}:
        if setting not in kind.model_fields:
            raise ConfigError(
                f"The baseline {name} has no setting '{setting}'.{did_you_mean(setting, kind.model_fields)} "
                f"Known: {', '.join(kind.model_fields)}."
            )
    try:
        return kind.model_validate(dict(settings or {}))
    except ValidationError as error:
        first = error.errors()[0]
        setting = str(first["loc"][0])
        described = kind.model_fields[setting].description
        if first["type"] == "missing" and len(first["loc"]) == 1:
            raise ConfigError(f"The baseline {name} needs the setting '{setting}': {described}.") from None
        problem = first["msg"].removeprefix("Value error, ").partition(", unable to")[0]
        found = (settings or {}).get(setting, first["input"])
        if len(first["loc"]) > 1:  # of a part of the value
            problem = f"expected {described}"
        raise ConfigError(f"Baseline {name}, setting '{setting}': {problem}; found {found!r}.") from None


def open_baseline(
    name: str,
    dictionary: NameDictionary,
    *,
    settings: Mapping[str, object] | None = None,
) -> MentionLinker:
    """A baseline that ranks the concepts of a dictionary.

    Args:
        name: One of `BASELINES`.
        dictionary: The names (`onoma.linking.build_dictionary`), whose normalisation is that of the baseline.
        settings: Others than the normalisation; see the baseline's class.

    Raises:
        ConfigError: see `get_baseline`.
        UnavailableError: a package is needed that is not installed.
        InputError: a file that is needed cannot be read.
    """
    baseline = get_baseline(name, {**(settings or {}), "normalisation": dictionary.normalisation})
    return SearchLinker(baseline.search(dictionary.texts), dictionary)
