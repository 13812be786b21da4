"""Options of the SNOMED CT reader, and the ids behind the names in SNOMED CT's own metadata."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from onoma.terminology.readers.options import LanguageTags, ReaderOptions, Words

SOURCE = "SNOMEDCT"
ROOT = 138875005
IS_A = 116680003
FULLY_SPECIFIED_NAME, SYNONYM, DEFINITION = 900000000000003001, 900000000000013009, 900000000000550004
PREFERRED = 900000000000548007
INFERRED = 900000000000011006
SAME_AS, REPLACED_BY, MOVED_FROM = 900000000000527005, 900000000000526001, 900000000000525002
ASSOCIATIONS = {
    SAME_AS: "same_as",
    REPLACED_BY: "replaced_by",
    900000000000523009: "possibly_equivalent_to",
    1186924009: "partially_equivalent_to",
    1186921001: "possibly_replaced_by",
    900000000000530003: "alternative",
    900000000000528000: "was_a",
    900000000000529008: "similar_to",
}
UNITED_KINGDOM = (
    999001261000000100, 999000691000001104, 999000671000001103, 999000681000001101, 999001251000000103,
)  # fmt: skip
LANGUAGE_REFSETS = {
    "da-DK": (554461000005103,), "de": (722130004,), "en-AU": (32570271000036106,), "en-CA": (19491000087109,),
    "en-GB": (900000000000508004, *UNITED_KINGDOM), "en-IE": (21000220103,), "en-NZ": (271000210107,),
    "en-US": (900000000000509007,), "es": (448879004, 450828004), "es-UY": (5641000179103,), "et-EE": (71000181105,),
    "fr": (722131000,), "fr-BE": (21000172104,), "fr-CA": (20581000087109,), "ja": (722129009,),
    "nb-NO": (61000202103,), "nl-BE": (31000172101,), "nl-NL": (31000146106,), "nn-NO": (91000202106,),
    "sv-SE": (46011000052107,), "zh": (722128001,),
}  # fmt: skip
"""Names of language reference sets; others are chosen by id."""
MAP_PREFIXES = {
    447562003: "ICD10", 999002271000000101: "ICD10", 6011000124106: "ICD10CM", 447563008: "ICD9CM", 446608001: "ICDO",
    900000000000497000: "CTV3", 1126441000000105: "OPCS4", 1382401000000109: "OPCS4",
}  # fmt: skip
CORRELATIONS = {
    "447557004": "exactMatch", "447558009": "broadMatch", "447559001": "narrowMatch", "447560006": "relatedMatch",
    "1193548004": "exactMatch", "1193549007": "broadMatch", "1193547009": "narrowMatch", "1193550007": "relatedMatch",
}  # fmt: skip
"""Between source and target of a map; both generations of the codes."""
NOT_MAPPABLE = ("447556008", "1193551006")


def _checked_day(text: str) -> str:
    try:
        day = datetime.strptime(text, "%Y%m%d").strftime("%Y%m%d")
    except ValueError:
        day = ""
    if day != text:
        raise ValueError(f"'{text}' is no day, written YYYYMMDD")
    return text


class SnomedOptions(ReaderOptions):
    """Options of the SNOMED CT reader. An empty filter keeps all."""

    release: Literal["auto", "snapshot", "full"] = Field(
        default="auto", description="which files to read: snapshot, full, or auto (the snapshot if there is one)"
    )
    date: Annotated[str, AfterValidator(_checked_day)] | None = Field(
        default=None, description="read the state on this day (YYYYMMDD); needs a Full release; unset: the latest"
    )
    languages: LanguageTags = Field(default=(), description="keep names in these languages, e.g. en,es; empty: all")
    language_refset: Words = Field(
        default=(),
        description="keep names of these language reference sets, by name (en-US) or id; the first says which name is "
        "preferred; empty: all names",
    )
    semantic_types: Words = Field(
        default=(), description="keep concepts with these semantic tags, e.g. disorder,finding; empty: all"
    )
    fully_specified_names: bool = Field(
        default=True, description="keep fully specified names, such as 'Ague (disorder)', as names (yes or no)"
    )
    inactive_descriptions: bool = Field(
        default=False, description="keep inactive descriptions as suppressed names (yes or no)"
    )
    relations: bool = Field(default=True, description="read sct2_Relationship (yes or no)")
    maps: bool = Field(default=True, description="read maps to other vocabularies as cross-references (yes or no)")

    @property
    def filters_names(self) -> bool:
        """Whether names, and so concepts that had no other, may be left out."""
        return bool(self.languages or self.language_refset)
