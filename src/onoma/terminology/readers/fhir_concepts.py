"""A concept of a FHIR code system or expansion: its members, and what its properties say.

Properties of the standard are described at https://hl7.org/fhir/R4/codesystem-concept-properties.html (R5 has more).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter

from onoma.terminology.readers.fhir_resources import Resource

_STANDARD = "http://hl7.org/fhir/concept-properties#"
_OTHER_NAMES = {"subsumedby": "parent", "synonymcode": "synonym"}
_GONE = frozenset({"deprecated", "retired", "inactive", "obsolete", "withdrawn"})
_USES = {
    "900000000000003001": "fully_specified_name",
    "900000000000013009": "synonym",
    "900000000000548007": "preferred",
    "preferredForLanguage": "preferred",
}


def _no_null(value: Any) -> Any:
    return [] if value is None else value


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Use(_Model):
    code: str | None = None
    display: str | None = None


class Designation(_Model):
    """A further name of a concept, or another text that its ``use`` says it to be."""

    language: str | None = None
    use: _Use | None = None
    value: str

    @property
    def is_definition(self) -> bool:
        """Whether it is no name."""
        return self.use is not None and (self.use.code or "").lower() == "definition"

    @property
    def term_type(self) -> str:
        """Its use in a word: its code, or the display of one that is a number; "designation" without any."""
        code, display = (self.use.code or "", self.use.display or "") if self.use else ("", "")
        told = display if code.isdecimal() and display else code or display
        return _USES.get(code) or " ".join(told.split()) or "designation"


class Concept(_Model):
    """A concept without those within it."""

    code: str | None = None
    system: str | None = None
    display: str | None = None
    definition: str | None = None
    designation: Annotated[list[Designation], BeforeValidator(_no_null)] = []
    property: Annotated[list[dict[str, Any]], BeforeValidator(_no_null)] = []
    inactive: bool | None = None
    abstract: bool | None = None


CONCEPT = TypeAdapter(Concept)


class Property(NamedTuple):
    """A property of a concept.

    Attributes:
        name: As the code system calls it.
        standard: The standard one that it is, in small letters without signs ("parent", "notselectable"); else its
            name in these.
        kind: Of the value: "Code", "String", "Boolean", ...
        value: As text; of a Coding the code.
    """

    name: str
    standard: str
    kind: str
    value: str


def standard_names(resource: Resource) -> dict[str, str]:
    """Of the properties that a code system or expansion says to be standard ones by their URIs."""
    declared = resource.members.get("property") or resource.expansion.get("property")
    found = {}
    for one in declared if isinstance(declared, list) else []:
        if isinstance(one, dict) and str(one.get("uri")).startswith(_STANDARD) and isinstance(one.get("code"), str):
            found[one["code"]] = _plain(one["uri"].removeprefix(_STANDARD))
    return found


def properties_of(concept: Concept, standard: Mapping[str, str]) -> Iterator[Property]:
    """The properties that have a value; ``standard`` is of `standard_names`."""
    for one in concept.property:
        name = one.get("code")
        for member, value in one.items():
            if not isinstance(name, str) or not member.startswith("value") or value is None:
                continue
            told = value.get("code") or value.get("display") if isinstance(value, dict) else value
            text = str(told).lower() if isinstance(told, bool) else str(told or "").strip()
            if text:
                yield Property(name, standard.get(name) or _plain(name), member.removeprefix("value"), text)


def is_obsolete(concept: Concept, properties: Sequence[Property]) -> bool:
    """Whether it is said in one way or another that a concept is not to be used any more."""
    values = {one.standard: one.value.lower() for one in properties}
    has_ended = "status" not in values and bool({"deprecationdate", "retirementdate"} & values.keys())
    return (
        bool(concept.inactive)
        or values.get("inactive") == "true"
        or values.get("status") in _GONE
        or values.get("deprecated", "false") != "false"
        or has_ended
    )


def only_groups(concept: Concept, properties: Sequence[Property]) -> bool:
    """Whether a concept is not to be chosen itself."""
    said = [one.value for one in properties if one.standard in {"notselectable", "abstract"}]
    return bool(concept.abstract) or "true" in said


def one_line(text: str | None) -> str:
    """A name without white space around it, and with a space where a line ends."""
    return re.sub(r"\s*[\r\n]\s*", " ", (text or "").strip())


def _plain(name: str) -> str:
    plain = re.sub(r"[^a-z]", "", name.lower())
    return _OTHER_NAMES.get(plain, plain)
