"""ICD-10-CM: the tabular list in XML that NCHS and CMS publish each October and April.

Conventions: https://www.cms.gov/medicare/coding-billing/icd-10-codes, "ICD-10-CM Official Guidelines", section I.A; the
elements are described in ``icd10cm_tabular_YEAR.xsd`` of the same archive. The archive also holds the alphabetic index,
which is not read.

=====================  =============================================================================================
element                becomes
=====================  =============================================================================================
diag/name              a concept: the code with its dot, S72.001
diag/desc              the preferred name, term type "label"
inclusionTerm/note     a name, "inclusion_term". Some are synonyms of the title, some are narrower conditions that are
                       coded here ("other specified ...")
includes/note          a name of the category, "includes_note": likewise. ``inclusions=terms`` leaves out these,
                       ``none`` both
sevenChrDef/extension  a concept for each code that takes a seventh character: places up to the sixth are filled
                       with X (W00.0 and A give W00.0XXA); the name is that of the code and that of the extension,
                       joined by ", ", as in the published descriptions. These are the codes that are billed;
                       ``seventh_characters=no`` leaves them out. The nearest list above a code applies; the note at
                       S06 about characters that do not apply is respected
section, chapter       a concept with its range as code, A00-B99, so that the hierarchy is complete; ``headings=no``
                       leaves these out. A section of one category (B20) is that category
nesting                ``is_a``; a code with a seventh character is below the one without
chapter                its title is the semantic type of everything in it
=====================  =============================================================================================

Not read: what is excluded, coded first or coded in addition (these are not names of the code), includes notes of
chapters and sections (prose), the introduction. The file has current codes only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.files.xml_files import Element, XmlFile, find_xml, line_of, text_of, texts_of, xml_elements
from onoma.terminology.assembly import SourceTables
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import OntologyTerm, Synonym, tables_from_terms
from onoma.terminology.readers.options import ReaderOptions

SOURCE = "ICD10CM"
_ROOT = "ICD10CM.tabular"
_RANGE = re.compile(r"(.*\S)\s*\(([A-Z]\w\w(?:-[A-Z]\w\w)?)\)")
_N_BEFORE_SEVENTH = 6


class Icd10cmOptions(ReaderOptions):
    """Options of the ICD-10-CM reader."""

    seventh_characters: bool = Field(
        default=True, description="include codes with a seventh character, e.g. S72.001A (yes or no)"
    )
    inclusions: Literal["all", "terms", "none"] = Field(
        default="all", description="names besides the titles: all, inclusion terms only (terms), none"
    )
    headings: bool = Field(
        default=True, description="include chapters and sections as concepts, e.g. A00-B99 and A00-A09 (yes or no)"
    )


def read_icd10cm(source: str, options: Icd10cmOptions, reading: Reading) -> SourceTables:
    """Read the tabular list.

    Args:
        source: The tabular XML (plain, gzip or zip), or the folder or zip archive that it was published in.
        options: Which codes and names.
        reading: Where bad codes go.

    Raises:
        InputError: no such file, not the tabular list, or two of them; under "strict" also a code that occurred
            before or has no description, and a blank name.
    """
    files = find_xml(Path(source), (_ROOT,))
    if len(files) > 1:
        raise InputError(
            "two tabular lists", path=files[1].path, found=str(files[0].path), fix="name the one of the year you want"
        )
    tabular = _Tabular(files[0], options, reading)
    tables = tables_from_terms(tabular.terms(), path=files[0].path, language="en", reading=reading, source=SOURCE)
    return replace(tables, release=tabular.version)


@dataclass(frozen=True)
class _Seventh:
    """The seventh characters of the codes below a category.

    Attributes:
        extensions: (character, meaning).
        barred: Characters that do not apply where the sixth character is one of ``barred_after``.
        barred_after: Sixth characters.
    """

    extensions: tuple[tuple[str, str], ...]
    barred: frozenset[str] = frozenset()
    barred_after: frozenset[str] = frozenset()

    def of(self, code: str) -> list[tuple[str, str]]:
        """(full code, meaning) for a code."""
        filled = code.replace(".", "").ljust(_N_BEFORE_SEVENTH, "X")
        barred = self.barred if filled[-1] in self.barred_after else frozenset()
        stem = f"{filled[:3]}.{filled[3:]}"
        return [(stem + character, meaning) for character, meaning in self.extensions if character not in barred]


class _Tabular:
    """One run through the tabular list.

    Attributes:
        version: As the file says it, once its first chapter has been read; "" if it does not.
    """

    def __init__(self, file: XmlFile, options: Icd10cmOptions, reading: Reading) -> None:
        self._file, self._options, self._reading = file, options, reading
        self.version = ""

    def terms(self) -> Iterator[OntologyTerm]:
        """All concepts, parents first."""
        for chapter in xml_elements(self._file.file, "chapter", self._reading):
            if (parent := chapter.getparent()) is not None:  # of the first: what stood before a chapter goes with it
                self.version = self.version or text_of(parent, "version")
            title, code = _title_and_range(text_of(chapter, "desc"))
            code = code or text_of(chapter, "name")
            if self._options.headings:
                yield self._heading(chapter, code, title, None, title)
            for section in chapter.iterfind("section"):
                yield from self._section(section, code, title)
            for diagnosis in chapter.iterfind("diag"):
                yield from self._diagnosis(diagnosis, self._parent(code), title, None)

    def _section(self, section: Element, chapter_code: str, chapter: str) -> Iterator[OntologyTerm]:
        title, code = _title_and_range(text_of(section, "desc"))
        code = (section.get("id") or code).strip()
        diagnoses = section.findall("diag")
        if code in {"", chapter_code} or any(text_of(diagnosis, "name") == code for diagnosis in diagnoses):
            code = chapter_code
        elif self._options.headings:
            yield self._heading(section, code, title, chapter_code, chapter)
        for diagnosis in diagnoses:
            yield from self._diagnosis(diagnosis, self._parent(code), chapter, None)

    def _parent(self, heading: str) -> str | None:
        return heading if self._options.headings else None

    def _heading(self, element: Element, code: str, title: str, parent: str | None, chapter: str) -> OntologyTerm:
        return OntologyTerm(
            code,
            labels=[title] if title else [],
            semantic_types=[chapter] if chapter else [],
            relations=[("is_a", parent)] if parent else [],
            line=line_of(element),
        )

    def _diagnosis(
        self, element: Element, parent: str | None, chapter: str, inherited: _Seventh | None
    ) -> Iterator[OntologyTerm]:
        code, title, line = text_of(element, "name"), text_of(element, "desc"), line_of(element)
        if not title:
            self._reading.reject(
                "a code without a description",
                path=self._file.path,
                line=line,
                text=code,
                field="desc",
                found="nothing",
            )
        term = self._heading(element, code, title, parent, chapter)
        if self._options.inclusions != "none":
            term.synonyms += [Synonym(text, "inclusion_term") for text in texts_of(element, "inclusionTerm/note")]
        if self._options.inclusions == "all":
            term.synonyms += [Synonym(text, "includes_note") for text in texts_of(element, "includes/note")]
        seventh = self._seventh(element) or inherited
        below = element.findall("diag")
        if title:
            yield term
        if seventh is not None and not below and self._options.seventh_characters and title:
            if len(code.replace(".", "")) > _N_BEFORE_SEVENTH:
                self._reading.note("codes of seven characters below a list of seventh characters", 1)
            else:
                for full_code, meaning in seventh.of(code):
                    yield self._heading(element, full_code, f"{title}, {meaning}", code, chapter)
        for child in below:
            yield from self._diagnosis(child, code if title else parent, chapter, seventh)

    def _seventh(self, element: Element) -> _Seventh | None:
        definition = element.find("sevenChrDef")
        if definition is None:
            return None
        extensions = []
        for extension in definition.iterfind("extension"):
            character, meaning = (extension.get("char") or "").strip(), text_of(extension)
            if len(character) == 1 and character.isalnum() and meaning:
                extensions.append((character, meaning))
                continue
            self._reading.reject(
                "no seventh character with a meaning",
                path=self._file.path,
                line=line_of(extension),
                text=f"{character} {meaning}",
                field="extension",
                expected="one letter or digit, and what it says",
            )
        self._reading.note("notes among seventh characters, left out", len(texts_of(definition, "note")))
        for note in texts_of(element, "notes/note"):
            which, does_not, rest = note.partition(" not apply to codes ")
            after = rest.partition(" with 6th character ")[2]
            if does_not and after and which.startswith("7th character"):
                barred = frozenset(re.findall(r"\b\w\b", which))
                return _Seventh(tuple(extensions), barred, frozenset(re.findall(r"(?:^|\bor )(\w) -", after)))
        return _Seventh(tuple(extensions)) if extensions else None


def _title_and_range(text: str) -> tuple[str, str]:
    match = _RANGE.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")


FORMAT = Format(
    name="icd10cm",
    description="ICD-10-CM, the United States' diagnosis codes: the tabular list in XML",
    source="icd10cm_tabular_2025.xml (plain, gzip or zip), or the zip or folder it was published in",
    obtain="https://www.cms.gov/medicare/coding-billing/icd-10-codes: 'Code Tables, Tabular and Index' (no account)",
    licence="United States government work; ICD-10 itself is under copyright of the WHO",
    options=Icd10cmOptions,
    read=read_icd10cm,
)
