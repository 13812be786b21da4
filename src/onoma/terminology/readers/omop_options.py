"""Options of the OMOP reader, and the languages of its synonyms."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from onoma.terminology.readers.options import LanguageTags, ReaderOptions, Words

LANGUAGES = {
    4180186: "en", 4182511: "es", 4180190: "fr", 4182504: "de", 4182507: "it", 4182503: "nl", 4181536: "pt",
    4182948: "zh", 4175771: "ko",
}  # fmt: skip
"""Concepts of languages that the vocabularies use for synonyms."""
LANGUAGE_NAMES = {
    "arabic": "ar", "basque": "eu", "bulgarian": "bg", "catalan": "ca", "chinese": "zh", "croatian": "hr",
    "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "estonian": "et", "finnish": "fi", "french": "fr",
    "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu", "icelandic": "is",
    "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja", "korean": "ko", "latin": "la",
    "latvian": "lv", "lithuanian": "lt", "malay": "ms", "norwegian": "no", "persian": "fa", "polish": "pl",
    "portuguese": "pt", "romanian": "ro", "russian": "ru", "serbian": "sr", "slovak": "sk", "slovenian": "sl",
    "spanish": "es", "swahili": "sw", "swedish": "sv", "thai": "th", "turkish": "tr", "ukrainian": "uk", "urdu": "ur",
    "vietnamese": "vi", "welsh": "cy",
}  # fmt: skip
"""Languages by the names of their concepts, which are in CONCEPT with the domain "Language"."""


class OmopOptions(ReaderOptions):
    """Options of the OMOP reader. An empty filter keeps all."""

    codes: Literal["concept_id", "concept_code", "vocabulary:code"] = Field(
        default="concept_id",
        description="what the code of a concept is: concept_id (OMOP's), concept_code (the vocabulary's own), or "
        "vocabulary:code, e.g. SNOMED:22298006 (with concept_id, that is a cross-reference)",
    )
    vocabularies: Words = Field(default=(), description="keep these vocabularies, e.g. SNOMED,RxNorm; empty: all")
    domains: Words = Field(default=(), description="keep these domains, e.g. Condition,Drug; empty: all")
    concept_classes: Words = Field(default=(), description="keep these concept classes, e.g. Ingredient; empty: all")
    standard_only: bool = Field(default=False, description="keep standard concepts only (yes or no)")
    languages: LanguageTags = Field(default=(), description="keep names in these languages, e.g. en,es; empty: all")
    semantic_type: Literal["domain", "class"] = Field(
        default="domain", description="what becomes the semantic type: domain or (concept) class"
    )
    relations: Words = Field(
        default=("Is a",), description="relationship_ids to read, e.g. Is a,Has finding site; or all; or no"
    )
    maps: bool = Field(default=True, description='read "Maps to" as cross-references (yes or no)')

    @property
    def reads_all_relations(self) -> bool:
        """Whether every relationship becomes a relation."""
        return "all" in self.relations

    @property
    def chosen_relations(self) -> tuple[str, ...]:
        """The relationship_ids that were named."""
        return tuple(word for word in self.relations if word not in ("all", "no"))
