"""ClaML, the Classification Markup Language: the XML in which the WHO publishes ICD-10, and others theirs.

Conventions: EN ISO 13120:2013 (before: CEN/TS 14463:2007), and ``ClaML.dtd``, which comes with the files. ICD-10 of
the WHO and its translations, ICD-10-GM and OPS of the German BfArM, ICF and others are in it. The file may be plain,
gzip, or in the archive that it is published in.

====================  ==============================================================================================
element               becomes
====================  ==============================================================================================
Class                 a concept with its code as it is; ``kinds=category`` leaves out chapters and blocks
Rubric preferredLong  the preferred name, term type "label", such as "Malignant neoplasm: Hard palate"
Rubric preferred      the preferred name if there is no longer one, else a name, "preferred". Some of these are names
                      by themselves ("Liver cell carcinoma"), some are not ("Hard palate")
Rubric inclusion      a name, "inclusion". Some are synonyms of the title, some are narrower conditions that are coded
                      here. Those of chapters and blocks are their contents and are not read
other rubrics         names if ``names`` has their kind: ``names=preferred,inclusion`` is the default, ``names=`` leaves
                      the titles alone
Rubric definition     the definition, in the first language that has one
Label xml:lang        the language of the name. Titles in the first of ``languages``, or in that of the file, are the
                      preferred names
Fragment              several are one name: "Tuberculosis of:", "hip" become "Tuberculosis of hip"
Reference             left out of names if it is in brackets or of a dagger or an asterisk; else part of the sentence
SuperClass            ``is_a``; SubClass only of a class that has no SuperClass
top class             its title is the semantic type of everything below; of several superclasses the first counts
ModifiedBy            codes of a class and a value of a modifier, which the file does not list: E11 and .9 give E11.9,
                      called "Type 2 diabetes mellitus: Without complications". A class inherits the modifiers of
                      those above it, unless it has ExcludeModifier; they are added where nothing else is below. Several
                      are added one after the other (E11, E11.7, E11.72), without what excludeOnPrecedingModifier says.
                      A code that the file lists, or that was made before, is not made again. A rubric modifierlink
                      counts where a category has no ModifiedBy (M13 of the WHO). ``modifiers=no`` leaves these codes
                      out, ``without_modifiers`` those of some, with what further modifiers would add to them
Title                 the release (version, else date); name is the source of the names, unless ``source`` says another
====================  ==============================================================================================

A code of three characters and a fifth gets an X between them (M45 and 1 are M45.X1), as the WHO advises.

Not read: exclusions, coding hints, notes (these are not names of the code), what a code includes by its modifier (F11.2
would be called "Chronic alcoholism", which is of F10.2), dagger and asterisk, Meta.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from onoma.errors import InputError
from onoma.files.reading import Reading, check_chosen
from onoma.files.xml_files import Element, XmlFile, find_xml, xml_elements
from onoma.terminology.assembly import SourceTables
from onoma.terminology.languages import LANGUAGE_TAG, tidy_language
from onoma.terminology.readers.claml_classes import ClamlClass, ClassReader, ModifierClass
from onoma.terminology.readers.claml_modifiers import modified_codes, modifiers_of
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import LABEL, OntologyTerm, Synonym, tables_from_terms
from onoma.terminology.readers.options import LanguageTags, ReaderOptions, Words

_ROOT = "ClaML"
_CHAPTER = "chapter"
MOST_MADE = 1_000_000
"""Codes that modifiers may make; in those that are published they make some ten thousand."""
_TITLE = "a rubric preferred or preferredLong with a label"


class ClamlOptions(ReaderOptions):
    """Options of the ClaML reader."""

    modifiers: bool = Field(
        default=True, description="include codes that are made with modifiers, e.g. E11.9 of E11 and .9 (yes or no)"
    )
    without_modifiers: Words = Field(
        default=(),
        description="leave out the codes that have these modifiers, e.g. S20V01T_5 (activity; ICD-10 of the WHO)",
    )
    names: Words = Field(
        default=("preferred", "inclusion"),
        description="kinds of rubrics whose labels are names besides the titles; empty: none",
    )
    kinds: Words = Field(default=(), description="keep only classes of these kinds, e.g. category; empty: all")
    languages: LanguageTags = Field(
        default=(), description="keep these languages, e.g. nl,en; the first gives the preferred name; empty: all"
    )
    source: str = Field(default="", description="source vocabulary of the names; empty: the name in the file's title")


def read_claml(source: str, options: ClamlOptions, reading: Reading) -> SourceTables:
    """Read a classification.

    Args:
        source: The ClaML file (plain, gzip or zip), or the folder or zip archive that it was published in.
        options: Which codes and names.
        reading: Where bad classes go.

    Raises:
        InputError: no such file, not ClaML, two of them, a filter that names what it does not have, or more modifiers
            or codes of them than any classification has; under "strict" also a class without code or title, one that
            occurred before, is above itself or refers to a class or a modifier that is not there, and a blank name.
    """
    files = find_xml(Path(source), (_ROOT,))
    if len(files) > 1:
        raise InputError(
            "two classifications", path=files[1].path, found=str(files[0].path), fix="name the one that you want"
        )
    path = files[0].path
    classification = _Classification(files[0], options, reading)
    tables = tables_from_terms(
        classification.terms(),
        path=path,
        language=classification.language,
        reading=reading,
        source=options.source or classification.name,
    )
    return replace(tables, release=classification.release)


class _Classification:
    """What a file says, once it has been read.

    Attributes:
        name, release: Of its title.
        language: Of labels that do not say theirs.
    """

    def __init__(self, file: XmlFile, options: ClamlOptions, reading: Reading) -> None:
        self._path, self._options, self._reading = file.path, options, reading
        self._without = frozenset(options.without_modifiers)
        self._classes: dict[str, ClamlClass] = {}
        self._modifiers: dict[str, dict[str, ModifierClass]] = {}
        self.name = self.release = ""
        self.language = options.languages[0] if options.languages else "und"
        self._read(file)
        self._in_order = self._link()

    def terms(self) -> Iterator[OntologyTerm]:
        """All concepts: those of the file in its order, each followed by what modifiers make of it."""
        modified_by = modifiers_of(self._in_order, self._path) if self._options.modifiers else {}
        tops: dict[str, ClamlClass] = {}
        kept_above: dict[str, list[str]] = {}
        for found in self._in_order:
            tops[found.code] = tops[found.above[0]] if found.above else found
            kept_above[found.code] = self._nearest_kept(found, kept_above)
        has_below = {code for found in self._in_order for code in found.above}
        taken = set(self._classes)
        for found in filter(self._is_concept, self._classes.values()):
            top = tops[found.code]
            types = list(top.titles.values())[:1] if top is not found or found.kind == _CHAPTER else []
            term = OntologyTerm(found.code, definition=found.definition, semantic_types=types, line=found.line)
            term.relations = [("is_a", code) for code in kept_above[found.code]]
            _add_titles(term, found.titles)
            term.synonyms += found.names
            yield term
            if found.code in has_below:
                continue
            told = itertools.takewhile(lambda told: told.modifier not in self._without, modified_by.get(found.code, []))
            for made in modified_codes(found, told, self._modifiers, taken):
                if len(taken) > len(self._classes) + MOST_MADE:
                    raise self._too_many(found)
                term = OntologyTerm(made.code, semantic_types=types, line=found.line)
                term.relations = [("is_a", made.above)]
                _add_titles(term, made.titles)
                yield term

    def _too_many(self, found: ClamlClass) -> InputError:
        return InputError(
            f"modifiers make more than {MOST_MADE:,} codes (a bomb?)",
            path=self._path,
            line=found.line,
            field="ModifiedBy",
            found=found.code,
            fix="get the file from its publisher, or leave modifiers out (--set modifiers=no)",
        )

    def _is_concept(self, found: ClamlClass) -> bool:
        return bool(found.titles) and (not self._options.kinds or found.kind in self._options.kinds)

    def _nearest_kept(self, found: ClamlClass, kept_above: Mapping[str, list[str]]) -> list[str]:
        """The nearest classes above that are concepts; ``kept_above``: of the classes above."""
        nearest: dict[str, None] = {}
        for code in found.above:
            nearest.update(dict.fromkeys([code] if self._is_concept(self._classes[code]) else kept_above[code]))
        return list(nearest)

    def _read(self, file: XmlFile) -> None:
        options, reader = self._options, None
        for element in xml_elements(file.file, ("Modifier", "ModifierClass", "Class"), self._reading):
            if reader is None:
                self._read_title(element.getparent())
                reader = ClassReader(options.languages, self.language, options.names, self._reading)
            if element.tag == "Class":
                self._add_class(reader.read_class(element))
            elif element.tag == "Modifier":
                self._modifiers.setdefault(str(element.get("code")).strip(), {})
            else:
                self._add_modifier_class(reader.read_modifier_class(element))
        if reader is None:
            return
        kinds = {found.kind for found in self._classes.values()}
        for option, wanted, there in (
            ("languages", options.languages, reader.languages),
            ("kinds", options.kinds, kinds),
            ("without_modifiers", options.without_modifiers, self._modifiers),
            ("names", options.names if "names" in options.model_fields_set else (), reader.rubrics),
        ):
            check_chosen(option, wanted, there, path=self._path, among="the file")

    def _read_title(self, root: Element | None) -> None:
        if root is None:
            return
        title, meta = root.find("Title"), root.find("Meta[@name='lang']")
        if title is not None:
            self.name = (title.get("name") or "").strip()
            self.release = (title.get("version") or title.get("date") or "").strip()
        language = "" if meta is None else (meta.get("value") or "").strip()
        if re.fullmatch(LANGUAGE_TAG, language):
            self.language = tidy_language(language)

    def _add_class(self, found: ClamlClass) -> None:
        first = self._classes.get(found.code)
        if not found.code:
            self._reject("a class without a code", found.line, next(iter(found.titles.values()), ""), "code")
        elif first is not None:
            expected = f"each code once (the first is on line {first.line})"
            self._reject("a class that occurred before", found.line, found.code, "code", expected=expected)
        else:
            self._classes[found.code] = found
            if not found.is_titled:
                self._reject("a class without a title", found.line, found.code, "Rubric", expected=_TITLE)
            self._note_untitled(found)

    def _add_modifier_class(self, found: ModifierClass) -> None:
        values = self._modifiers.setdefault(found.modifier, {}) if found.modifier else {}
        shown = f"{found.modifier} {found.code}"
        if not found.code or not found.modifier:
            self._reject("a modifier class without a code or a modifier", found.line, shown, "ModifierClass")
        elif found.code in values:
            self._reject("a modifier class that occurred before", found.line, shown, "code")
        elif not found.is_titled:
            self._reject("a modifier class without a title", found.line, shown, "Rubric", expected=_TITLE)
        else:
            self._note_untitled(found)
            if found.titles:
                values[found.code] = found

    def _note_untitled(self, found: ClamlClass | ModifierClass) -> None:
        what = "classes and values of modifiers that have no title in these languages, left out"
        self._reading.note(what, found.is_titled and not found.titles)

    def _link(self) -> list[ClamlClass]:
        """Take off links that lead nowhere or round in a circle, and sort the classes parents first."""
        tops = {code for code, found in self._classes.items() if not found.above}
        for found in self._classes.values():
            for code in found.below:
                if code in tops:
                    self._classes[code].above.append(found.code)
        for found in self._classes.values():
            for code in [code for code in found.above if code not in self._classes]:
                found.above.remove(code)
                self._reject("a superclass that the file does not have", found.line, code, "SuperClass", of=found.code)
            found.modified_by += [told for told in found.linked if told.modifier in self._modifiers]
            for told in [told for told in found.modified_by if told.modifier not in self._modifiers]:
                found.modified_by.remove(told)
                self._reject(
                    "a modifier that the file does not have", found.line, told.modifier, "ModifiedBy", of=found.code
                )
            for told in found.modified_by:
                there = self._modifiers.get(told.modifier, {}).keys()
                n_absent = len((told.valid or frozenset()) - there)
                self._reading.note("values that a class names and its modifier does not have, left out", n_absent)
        order: list[ClamlClass] = []
        done: set[str] = set()
        for first in self._classes.values():
            self._visit(first, order, done)
        return order

    def _visit(self, first: ClamlClass, order: list[ClamlClass], done: set[str]) -> None:
        """Add a class to the order, what is above it first."""
        path = [(first, iter(list(first.above)))] if first.code not in done else []
        on_path = {first.code}
        while path:
            found, waiting = path[-1]
            above = next((code for code in waiting if code not in done), None)
            if above is None:
                path.pop()
                on_path.discard(found.code)
                done.add(found.code)
                order.append(found)
            elif above in on_path:
                found.above.remove(above)
                self._reject("a class above itself", found.line, above, "SuperClass", of=found.code)
            else:
                on_path.add(above)
                path.append((self._classes[above], iter(list(self._classes[above].above))))

    def _reject(
        self,
        problem: str,
        line: int | None,
        text: str,
        field: str,
        *,
        expected: str | None = None,
        of: str = "",
    ) -> None:
        found = f"{text} (of {of})" if of else text
        self._reading.reject(problem, path=self._path, line=line, text=found, field=field, expected=expected)


def _add_titles(term: OntologyTerm, titles: Mapping[str, str]) -> None:
    (term.label_language, label), *others = titles.items()
    term.labels = [label]
    term.synonyms = [Synonym(text, LABEL, language) for language, text in others]


FORMAT = Format(
    name="claml",
    description="ClaML, the XML of ICD-10 (WHO, ICD-10-GM, translations), OPS, ICF and other classifications",
    source="icd102019en.xml, icd10gm2024syst_claml_20230915.xml (plain, gzip or zip), or the zip or folder it came in",
    obtain="https://icd.who.int/browse10 ('Info', 'Download area'), https://www.bfarm.de ('Kodiersysteme'): no account",
    licence="the WHO's (ICD-10, ICF), BfArM's (ICD-10-GM, OPS), which come with the files",
    options=ClamlOptions,
    read=read_claml,
)
