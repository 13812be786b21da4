"""FHIR code systems: the CodeSystem resources and expanded value sets of terminology servers and FHIR packages.

Specification: https://hl7.org/fhir/R4/codesystem.html (R4, R4B, R5 are read alike), with the properties of
https://hl7.org/fhir/R4/codesystem-concept-properties.html, and https://hl7.org/fhir/R4/valueset.html.

The resources may be in JSON, XML (up to 64 MiB unpacked) or NDJSON, by themselves or in a Bundle, each plain or gzip,
in a folder, a zip archive or a FHIR package (``package.tgz``). One code system is read; where there are several, option
``code_system`` says which. Value sets count if there is no code system with concepts, or if they are named.

===========================  ======================================================================================
of a concept                 becomes
===========================  ======================================================================================
code                         the code as it is; codes that differ in case differ
display                      the preferred name, term type "label"
designation                  a name in its language (else that of the resource). Term type: its ``use``, by the code
                             ("fully_specified_name", "synonym", "preferred" for those of SNOMED CT and HL7), or by the
                             display of a code that is a number; "designation" without a use. A use "definition" is no
                             name: such are counted. Without a display, one of them is the preferred name
definition                   a definition
concept, contains (nested)   a relation of the inner to the outer concept: "part_of" if ``hierarchyMeaning`` is part-of,
                             else "is_a"
property parent, child,      the same relation; whatever a property is called whose ``uri`` is that of the standard one
subsumedBy
property partOf              a relation "part_of"
property status, inactive,   status "obsolete": a status deprecated, retired, inactive, obsolete or withdrawn; inactive
deprecated,                  is true; deprecated is there and not false; a date of deprecation or retirement without a
deprecationDate, ...         status
property replacedBy          ``replaced_by``; several are choices
property synonym             a name of term type "synonym" if it is a string; a code (also synonymCode) is a further
                             code of the concept: an obsolete one, replaced by it
notSelectable, abstract      with ``not_selectable=no`` such concepts are left out
other properties             semantic types, if option ``semantic_types`` names them
===========================  ======================================================================================

Supplements (``content: supplement``) of a code system add their displays, as term type "display", and designations to
its concepts; without the code system, they are read by themselves: `merge` them with it. A code that stands in an
expansion several times is one. The names' ``source`` is the resource's name (of an expansion, the end of the system's
URL). ``version`` is the release, ``copyright`` the licence. The language of the names is option ``language``, else that
of the expansion or resource, else English.

Not read: extensions (such as translations of a display), filters, the narrative, ``compose`` of a value set, concept
maps. Value sets without an expansion list codes only; a terminology server expands them (``$expand``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import Field

from onoma.errors import InputError
from onoma.files.json_stream import JsonValue, shown_json, shown_place, validated
from onoma.files.reading import Reading, check_chosen
from onoma.terminology.assembly import SOURCE_RELATIONS, SourceTables
from onoma.terminology.languages import tidy_language
from onoma.terminology.readers.fhir_choice import Chosen, choose
from onoma.terminology.readers.fhir_concepts import (
    CONCEPT,
    Concept,
    Property,
    is_obsolete,
    one_line,
    only_groups,
    properties_of,
    standard_names,
)
from onoma.terminology.readers.fhir_resources import CONCEPTS, Resource, files_of, resources_of
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import Columns, OntologyTerm, Synonym, tables_from_terms, text_problem
from onoma.terminology.readers.options import LanguageTag, LanguageTags, ReaderOptions, Words

_UNLIKE = "this is not as FHIR has it"


class FhirOptions(ReaderOptions):
    """Options of the FHIR reader."""

    code_system: str = Field(
        default="",
        description="which code system to read if there are several: its url, url|version, id or name "
        "(of an expansion also the system)",
    )
    language: LanguageTag | None = Field(
        default=None,
        description="language of names that do not say theirs (BCP 47); empty: that of the resource, else English",
    )
    languages: LanguageTags = Field(
        default=(), description="keep names in these languages, e.g. de,en (de is de-CH too); empty: all"
    )
    semantic_types: Words = Field(
        default=(), description="properties whose values become semantic types, e.g. CLASS for LOINC"
    )
    not_selectable: bool = Field(
        default=True, description="include concepts that only group others (notSelectable, abstract; yes or no)"
    )


def read_fhir(source: str, options: FhirOptions, reading: Reading) -> SourceTables:
    """Read a code system.

    Args:
        source: A resource, Bundle or NDJSON, plain or gzip, or a folder, zip archive or FHIR package of them.
        options: Which code system, and what of it.
        reading: Where bad concepts go.

    Raises:
        InputError: no such file, no FHIR, no code system with concepts, or several of them; under "strict" also a
            concept without a code or with one that occurred before, and one below a concept that is not there.
    """
    path = Path(source)
    with files_of(path) as files:
        is_single = len(files) == 1 and not path.is_dir()
        resources = [one for file in files for one in resources_of(file, reading, is_single=is_single)]
        chosen = choose(resources, path, options.code_system)
        return _CodeSystem(chosen, options, reading).tables()


@dataclass
class _Supplemented:
    """What supplements add to a concept."""

    names: list[Synonym] = field(default_factory=list)
    definition: str = ""


class _CodeSystem:
    """One run through a code system."""

    def __init__(self, chosen: Chosen, options: FhirOptions, reading: Reading) -> None:
        self._chosen, self._options, self._reading = chosen, options, reading
        self._language = self._language_of(chosen.first)
        self._hierarchy = "part_of" if chosen.first.text("hierarchyMeaning") == "part-of" else "is_a"
        self._standard = standard_names(chosen.first)
        self._added: dict[str, _Supplemented] = {}
        self._relations = Columns(SOURCE_RELATIONS)
        self._seen: set[str] = set()
        self._left_out: list[str] = []
        self._types_there: set[str] = set()
        self._languages_there: set[str] = set()
        self._tags: dict[str, str] = {}
        end = re.split(r"[/:#]", chosen.url.rstrip("/"))[-1]
        own = [] if chosen.system else [chosen.first.text(member) for member in ("name", "id")]
        names = (*own, end)
        self._source = next((name for name in names if not text_problem(name)), "FHIR")

    def tables(self) -> SourceTables:
        """All tables."""
        chosen, reading = self._chosen, self._reading
        first, path = chosen.first, chosen.first.file.path
        for supplement in chosen.supplements:
            self._read_supplement(supplement)
        reading.note("supplements of other versions of the code system, left out", chosen.n_left_out)
        found = tables_from_terms(
            self._terms(), path=path, language=self._language, reading=reading, source=self._source
        )
        reading.note("codes of supplements that the code system does not have, left out", len(self._added))
        check_chosen("semantic_types", self._options.semantic_types, self._types_there, path=path)
        check_chosen("languages", self._options.languages, self._languages_there, path=path)
        content = first.text("content")
        if content in {"fragment", "example"}:
            reading.note(f"concepts of what is only a part of the code system (content: {content})", len(self._seen))
        if content == "supplement":
            reading.note(f"concepts of a supplement to {chosen.url}, to be merged with it", len(self._seen))
        is_whole = first.kind == "CodeSystem" and content not in {"fragment", "example", "supplement"}
        self._note_missing()
        relations = pl.concat([found.relations, self._relations.frame()])
        relations = relations.unique(["head", "relation", "tail"], keep="first", maintain_order=True)
        return replace(
            found,
            relations=self._without_circles(relations),
            known_elsewhere=pl.Series("concept_id", self._left_out, dtype=pl.String),
            may_refer_outside=not is_whole,
            release="" if text_problem(chosen.version) else chosen.version,
            licence="" if text_problem(first.text("copyright")) else first.text("copyright"),
        )

    def _without_circles(self, relations: pl.DataFrame) -> pl.DataFrame:
        """Reject what makes a concept stand below itself."""
        in_circle = _circular(relations.filter(pl.col("relation") == self._hierarchy).select("head", "tail").rows())
        if not in_circle:
            return relations
        ends = pl.struct("head", "tail").is_in([{"head": head, "tail": tail} for head, tail in in_circle])
        is_bad = ends & (pl.col("relation") == self._hierarchy)
        self._reading.reject_rows(
            relations.filter(is_bad).select("line", text=pl.concat_str("head", "relation", "tail", separator=" ")),
            "concepts stand below each other in a circle",
            path=self._chosen.first.file.path,
            field="parent",
            expected="no concept below itself",
        )
        return relations.filter(~is_bad)

    def _note_missing(self) -> None:
        """Tell of concepts that the resource counts and does not have, such as those on other pages."""
        first = self._chosen.first
        is_expansion = first.kind == "ValueSet"
        told = first.expansion.get("total") if is_expansion else first.members.get("count")
        text = str(told)
        n_there = sum(part.n_concepts for part in self._chosen.parts)
        if re.fullmatch(r"\d{1,9}", text) and first.text("content") in {"", "complete"}:
            what = "concepts that the code system counts and does not have"
            if is_expansion:
                what = "concepts that the expansion counts and does not have (other pages of it?)"
            self._reading.note(what, max(0, int(text) - n_there))

    def _language_of(self, resource: Resource) -> str:
        if self._options.language is not None:
            return self._options.language
        parameters = resource.expansion.get("parameter")
        said = [one for one in parameters if isinstance(one, dict)] if isinstance(parameters, list) else []
        said = [one for one in said if one.get("name") == "displayLanguage"]
        of_expansion = next((value for one in said for name, value in one.items() if name.startswith("value")), None)
        told = of_expansion or resource.members.get("language")
        if told is None:
            self._reading.note("resources that do not say their language, taken as English (option language)", 1)
            return "en"
        try:
            return tidy_language(re.split("[,;]", str(told))[0].strip())
        except ValueError:
            raise InputError(
                "this is no language",
                path=resource.file.path,
                line=resource.line,
                field="language",
                expected="a BCP 47 tag, e.g. de",
                found=shown_json(told),
                fix="say the language yourself (--set language=de)",
            ) from None

    def _read_supplement(self, supplement: Resource) -> None:
        language = self._language_of(supplement)
        for place, value, line, _ in self._all_in(supplement):
            concept = self._validated(supplement, JsonValue(place, line, value))
            if concept is None:
                continue
            added = self._added.setdefault(concept.code or "", _Supplemented())
            if display := one_line(concept.display):
                added.names.append(Synonym(display, "display", language))
            for name in self._designations(concept, supplement, place, line):
                added.names.append(name if name.language else name._replace(language=language))
            added.definition = added.definition or (concept.definition or "").strip()

    def _all_in(self, resource: Resource) -> Iterator[tuple[tuple[str | int, ...], Any, int, str | None]]:
        """Place, value, line and the code of the outer concept, of all concepts, outer ones first."""
        inner = CONCEPTS[resource.kind][-1]
        for outermost in resource.concepts(self._reading):
            waiting: list[tuple[tuple[str | int, ...], Any, str | None]] = [(outermost.place, outermost.value, None)]
            while waiting:
                place, value, outer = waiting.pop()
                yield place, value, outermost.line, outer
                if not isinstance(value, dict):
                    continue
                within = value.get(inner)
                if within is not None and not isinstance(within, list):
                    self._reject_value(resource, (*place, inner), within, outermost.line, f"an array of {inner}")
                    continue
                code = value.get("code")
                code = code if isinstance(code, str) and self._is_of_system(value) else None
                places = [((*place, inner, number), one, code) for number, one in enumerate(within or ())]
                waiting += reversed(places)

    def _is_of_system(self, value: Mapping[str, Any]) -> bool:
        return not self._chosen.system or value.get("system") == self._chosen.system

    def _validated(self, resource: Resource, value: JsonValue) -> Concept | None:
        concept = validated(CONCEPT, value, _UNLIKE, file=resource.file, reading=self._reading)
        if concept is not None and text_problem(concept.code or ""):
            if not concept.code and resource.kind == "ValueSet":
                self._reading.note("groups of an expansion, which have no code, left out", 1)
            else:
                self._reject_value(resource, (*value.place, "code"), concept.code, value.line, "a code")
            return None
        return concept

    def _reject_value(
        self,
        resource: Resource,
        place: tuple[str | int, ...],
        found: Any,
        line: int,
        expected: str,
        problem: str = _UNLIKE,
    ) -> None:
        self._reading.reject(
            problem,
            path=resource.file.path,
            line=line,
            text=f"{shown_place(place)}: {shown_json(found)}",
            field=shown_place(tuple(part for part in place if isinstance(part, str))),
            expected=expected,
        )

    def _terms(self) -> Iterator[OntologyTerm]:
        for part in self._chosen.parts:
            for place, value, line, outer in self._all_in(part):
                if isinstance(value, dict) and value.get("code") and not self._is_of_system(value):
                    self._reading.note("concepts of other code systems, left out", 1)
                    continue
                concept = self._validated(part, JsonValue(place, line, value))
                term = self._term(concept, part, place, line, outer) if concept else None
                if term is not None:
                    yield term

    def _term(
        self, concept: Concept, part: Resource, place: tuple[str | int, ...], line: int, outer: str | None
    ) -> OntologyTerm | None:
        code = concept.code or ""
        if code in self._seen and part.kind == "ValueSet":  # one for each concept that it is below, or on two pages
            self._reading.note("concepts that stand in an expansion again", 1)
            if outer is not None:
                self._relations.add(code, self._hierarchy, outer, self._source, line)
            return None
        if code in self._seen:
            problem = "a code that occurred before"
            self._reject_value(part, (*place, "code"), code, line, "each code once", problem)
            return None
        self._seen.add(code)
        properties = list(properties_of(concept, self._standard))
        added = self._added.pop(code, _Supplemented())
        if not self._options.not_selectable and only_groups(concept, properties):
            self._reading.note("concepts that only group others, left out", 1)
            self._left_out.append(code)
            return None
        term = OntologyTerm(code, is_obsolete=is_obsolete(concept, properties), line=line)
        term.definition = (concept.definition or "").strip() or added.definition
        self._add_properties(term, properties)
        if outer is not None:
            term.relations.insert(0, (self._hierarchy, outer))
        self._add_names(term, concept, [*self._designations(concept, part, place, line), *added.names])
        if not term.labels and not term.is_obsolete:
            of_language = " in these languages" if self._options.languages else ""
            self._reading.note(f"concepts without a display or designation{of_language}, left out", 1)
            self._left_out.append(code)
            return None
        return term

    def _add_properties(self, term: OntologyTerm, properties: Sequence[Property]) -> None:
        for name, standard, kind, value in properties:
            self._types_there.add(name)
            if name in self._options.semantic_types:
                term.semantic_types.append(value)
            if standard == "parent":
                term.relations.append((self._hierarchy, value))
            elif standard == "child":
                if not text_problem(value):
                    self._relations.add(value, self._hierarchy, term.term_id, self._source, term.line)
            elif standard == "partof":
                term.relations.append(("part_of", value))
            elif standard == "replacedby":
                term.replaced_by.append(value)
            elif standard == "synonym" and kind == "String":
                term.synonyms.append(Synonym(one_line(value), "synonym"))
            elif standard == "synonym":
                term.alternative_ids.append(value)

    def _designations(
        self, concept: Concept, resource: Resource, place: tuple[str | int, ...], line: int
    ) -> Iterator[Synonym]:
        for number, one in enumerate(concept.designation):
            if one.is_definition:
                self._reading.note("designations that are definitions, left out", 1)
                continue
            language = ""
            if one.language and one.language.strip():
                try:
                    language = self._tags.get(one.language) or tidy_language(one.language.strip())
                except ValueError:
                    where = (*place, "designation", number, "language")
                    self._reject_value(
                        resource, where, one.language, line, "a BCP 47 tag, e.g. de", "this is no language"
                    )
                    continue
                self._tags[one.language] = language
            yield Synonym(one_line(one.value), one.term_type, language)

    def _add_names(self, term: OntologyTerm, concept: Concept, designations: Sequence[Synonym]) -> None:
        """The names in the languages wanted; the label is the display, else the likeliest of the others."""
        others = [name for name in (*designations, *term.synonyms) if self._wants(name)]
        display = Synonym(one_line(concept.display), "")
        if display.text and self._wants(display):
            term.labels, term.synonyms = [display.text], others
            return
        usable = [name for name in others if not text_problem(name.text)]
        if usable:
            label = min(usable, key=self._distance)
            others.remove(label)
            term.labels, term.label_language = [label.text], label.language
        term.synonyms = others

    def _distance(self, name: Synonym) -> tuple[bool, bool]:
        """From what a display would be: in the language of the resource, and preferred."""
        return (name.language not in {"", self._language}, name.term_type not in {"preferred", "display"})

    def _wants(self, name: Synonym) -> bool:
        wanted = self._options.languages
        if not wanted:
            return True
        language = name.language or self._language
        self._languages_there.update((language, language.partition("-")[0]))
        is_wanted = any(language == one or language.startswith(f"{one}-") for one in wanted)
        self._reading.note("names in other languages, left out", not is_wanted)
        return is_wanted


def _circular(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of (inner, outer) that are on a circle, or on the way from one to another."""
    for inner, outer in ((0, 1), (1, 0)):  # first from the outermost inwards, then from the innermost outwards
        within: dict[str, list[str]] = {}
        n_above: dict[str, int] = {}
        for pair in pairs:
            within.setdefault(pair[outer], []).append(pair[inner])
            n_above[pair[inner]] = n_above.get(pair[inner], 0) + 1
        settled = [code for code in within if code not in n_above]
        for code in settled:  # which grows
            for other in within.get(code, ()):
                n_above[other] -= 1
                if not n_above[other]:
                    settled.append(other)
        done = set(settled)
        pairs = [pair for pair in pairs if pair[0] not in done and pair[1] not in done]
    return list(pairs)


FORMAT = Format(
    name="fhir",
    description="FHIR code systems: CodeSystem resources and expanded value sets (R4, R4B, R5)",
    source="a CodeSystem, ValueSet/$expand or Bundle (JSON, XML, NDJSON), or a folder, zip or package.tgz of them",
    obtain="a terminology server (GET CodeSystem/ID, ValueSet/$expand) or a FHIR package, https://packages.fhir.org",
    licence="each code system's own",
    options=FhirOptions,
    read=read_fhir,
)
