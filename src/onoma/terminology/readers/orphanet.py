"""Orphanet's nomenclature of rare diseases, as Orphadata publishes it in XML.

SOURCE is "Rare diseases and alignment with terminologies" (``en_product1.xml``, ``de_product1.xml``, ...) or the
nomenclature file of the yearly pack (``ORPHAnomenclature_en_2025.xml``), one language in each. If a folder or archive
has several, names are joined by code. The classifications (``en_product3_146.xml``, ...) give the hierarchy if they are
there too. Descriptions of both: https://www.orphadata.com/docs/ and https://www.orphadata.com/pack-nomenclature/.

=============================  =====================================================================================
element                        becomes
=============================  =====================================================================================
OrphaCode                      the concept: ORPHA:558, as Orphanet asks for it to be written; option ``prefix``
Name                           the preferred name, term type "label"; of several languages, that in the first of
                               ``languages``, English if unset
Synonym                        a name, "exact_synonym" (Orphanet's synonyms are equivalent to the name)
DisorderType                   semantic type ("Disease", "Clinical group"), in the first of the languages;
                               DisorderGroup or ClassificationLevel if it is missing
DisorderFlag, FlagValue        status "obsolete" if inactive: obsolete, deprecated, or not rare in Europe (bits 16, 32,
                               256, 1024, 8192). Their names begin with OBSOLETE: or NON RARE IN EUROPE: and are kept
DisorderDisorderAssociation    of an inactive entry: "Moved to" is ``replaced_by``, "Referred to" a relation
                               ``consider``
ExternalReference              a cross-reference, e.g. OMIM:230800, by DisorderMappingRelation: E is exactMatch, NTBT
                               (Orphanet's is narrower) broadMatch, BTNT narrowMatch, ND (not decided) xref; W (wrong)
                               is left out and counted
SummaryInformation             a definition, in the first language that has one
ClassificationNode             ``is_a`` the node around it, in any classification
=============================  =====================================================================================

Markup in texts, such as italics (``<i>``), is removed; line breaks (``<br>``, ``<p>``) become a space. Not read:
whether a mapping is validated, links, Orphadata's other products (genes, phenotypes, prevalence), which are counted if
they are in the folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from pydantic import Field

from onoma.errors import InputError
from onoma.files.reading import Reading, check_chosen
from onoma.files.xml_files import Element, XmlFile, find_xml, line_of, text_of, texts_of, xml_elements
from onoma.terminology.assembly import SOURCE_RELATIONS, SourceTables
from onoma.terminology.languages import LANGUAGE_TAG, tidy_language
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import Columns, OntologyTerm, Synonym, join_tables, tables_from_terms
from onoma.terminology.readers.options import LanguageTags, ReaderOptions

SOURCE = "ORPHA"
_ROOT = "JDBOR"
_INACTIVE = 16 | 32 | 256 | 1024 | 8192
"""Obsolete, not rare in Europe, deprecated, obsolete with resources, inactive."""
_MATCHES = {"E": "exactMatch", "NTBT": "broadMatch", "BTNT": "narrowMatch"}
_WRONG = "W"
_MOVED_TO = "21471"
_DEFINITION = "16907"
_MARKUP = re.compile(r"</?(?:i|b|u|em|strong|sub|sup)\s?/?>", re.IGNORECASE)
_BREAKS = re.compile(r"\s*(?:</?(?:br|p)\s?/?>\s*)+([.,;:!?)]?)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_PREFERENCE = 255


class OrphanetOptions(ReaderOptions):
    """Options of the Orphanet reader."""

    languages: LanguageTags = Field(
        default=(),
        description="keep these languages, e.g. de,en; the first gives the preferred name; empty: all, English first",
    )
    prefix: str = Field(default="ORPHA:", description="prefix of the number in a code; empty: only the number")


@dataclass(frozen=True)
class _Nomenclature:
    """A file of names, with its date and licence as it states them."""

    file: XmlFile
    language: str
    release: str
    licence: str


def read_orphanet(source: str, options: OrphanetOptions, reading: Reading) -> SourceTables:
    """Read Orphanet's nomenclature.

    Args:
        source: One file of names (plain, gzip or zip), or a folder or zip archive with those of several languages.
        options: Which languages, and how codes are written.
        reading: Where bad entries go.

    Raises:
        InputError: no such file, no file of names, two of one language, or a language that is not there; under
            "strict" also an entry without a number as code, without a name, or with a code that occurred before.
    """
    path = Path(source)
    names, classifications = _sorted_out(find_xml(path, (_ROOT,)), reading)
    if not names:
        raise InputError(
            "there is no nomenclature here",
            path=path,
            expected="product 1 (en_product1.xml) or the nomenclature file of the pack",
            found="another product of Orphadata",
            fix="get 'Rare diseases and alignment with terminologies' from https://www.orphadata.com",
        )
    parts: list[SourceTables] = []
    for rank, (language, file) in enumerate(_wanted(names, options, path).items()):
        terms = _terms(file, options, reading)
        part = tables_from_terms(terms, path=file.path, language=language, reading=reading, source=SOURCE)
        parts.append(_after(parts, part, rank))
    tables = join_tables(parts)
    return replace(
        tables,
        relations=pl.concat([tables.relations, _hierarchy(classifications, options, reading)]),
        release=next((found.release for found in names if found.release), ""),
        licence=next((found.licence for found in names if found.licence), ""),
    )


def _sorted_out(files: Sequence[XmlFile], reading: Reading) -> tuple[list[_Nomenclature], list[XmlFile]]:
    """Files of names and classifications, told apart by their first entry."""
    names: list[_Nomenclature] = []
    classifications: list[XmlFile] = []
    for file in files:
        # what is rejected here is rejected again when the file is read, and counted then
        first = next(xml_elements(file.file, "Disorder", Reading(on_error=reading.on_error)), None)
        parent = None if first is None else first.getparent()
        if first is not None and first.find("SynonymList") is not None:
            root = first.getroottree().getroot()
            licence = root.findtext("Availability/Licence/ShortIdentifier", "").strip()
            names.append(_Nomenclature(file, _language_of(first.find("Name")), root.get("date", "").strip(), licence))
        elif parent is not None and parent.tag == "ClassificationNode":
            classifications.append(file)
        else:
            reading.note("files of other products of Orphadata, not read", 1)
    return names, classifications


def _wanted(names: list[_Nomenclature], options: OrphanetOptions, path: Path) -> dict[str, XmlFile]:
    """Language to file, in order of preference."""
    file_of: dict[str, XmlFile] = {}
    for found in sorted(names, key=lambda found: found.language != "en"):
        other = file_of.setdefault(found.language, found.file)
        if other is not found.file:
            raise InputError(
                f"two files of names in the language '{found.language}'",
                path=found.file.path,
                found=str(other.path),
                fix="keep one",
            )
    check_chosen("languages", options.languages, file_of, path=path)
    return {language: file_of[language] for language in options.languages or file_of}


def _after(parts: Sequence[SourceTables], part: SourceTables, rank: int) -> SourceTables:
    """Of a further language the names, less preferred, and else only what no file before it said."""

    def new(table: pl.DataFrame, column: str, before: Sequence[pl.DataFrame]) -> pl.DataFrame:
        known = pl.concat([pl.Series("id", [], dtype=pl.String), *(other[column] for other in before)])
        return table.filter(~pl.col(column).is_in(known.implode()))

    concepts = [other.concepts for other in parts if other.concepts is not None]
    heads = [table.select(head="concept_id") for table in concepts]
    preference = (pl.col("preference").cast(pl.UInt32) + 2 * rank).clip(upper_bound=_MAX_PREFERENCE)
    return replace(
        part,
        names=part.names.with_columns(preference.cast(pl.UInt8)),
        semantic_types=new(part.semantic_types, "concept_id", concepts),
        relations=new(part.relations, "head", heads),
        cross_references=new(part.cross_references, "concept_id", concepts),
        definitions=new(part.definitions, "concept_id", [other.definitions for other in parts]),
    )


def _terms(file: XmlFile, options: OrphanetOptions, reading: Reading) -> Iterator[OntologyTerm]:
    for disorder in xml_elements(file.file, "Disorder", reading):
        flags = [*texts_of(disorder, "DisorderFlagList/DisorderFlag/Value"), *texts_of(disorder, "FlagValue")]
        problem = _problem(_number(disorder), text_of(disorder, "Name"), flags)
        if problem is None:
            yield _term(disorder, flags, options, reading)
            continue
        field, expected, found = problem
        reading.reject(
            "an entry that cannot be read",
            path=file.path,
            line=line_of(disorder),
            text=found,
            field=field,
            expected=expected,
        )


def _problem(number: str, name: str, flags: Sequence[str]) -> tuple[str, str, str] | None:
    """Field, expected and found, if the entry is not as it must be."""
    if not _NUMBER.fullmatch(number):
        return "OrphaCode", "a number", number
    if not name:
        return "Name", "a name", number
    wrong = [flag for flag in flags if not _NUMBER.fullmatch(flag)]
    return ("DisorderFlag", "a number", wrong[0]) if wrong else None


def _term(disorder: Element, flags: Sequence[str], options: OrphanetOptions, reading: Reading) -> OntologyTerm:
    number = _number(disorder)
    label = _plain(text_of(disorder, "Name"), reading)
    term = OntologyTerm(f"{options.prefix}{number}", labels=[label], line=line_of(disorder))
    term.label_language = _language_of(disorder.find("Name"))
    term.synonyms = [
        Synonym(_plain(text_of(synonym), reading), "exact_synonym", _language_of(synonym))
        for synonym in disorder.iterfind("SynonymList/Synonym")
    ]
    term.is_obsolete = any(int(flag) & _INACTIVE for flag in flags) or text_of(disorder, "Totalstatus").startswith(
        "Inactive"
    )
    kinds = ("DisorderType/Name", "DisorderGroup/Name", "ClassificationLevel/Name")
    term.semantic_types = [text for path in kinds if (text := text_of(disorder, path))][:1]
    term.definition = _plain(_definition(disorder), reading)
    for association in disorder.iterfind("DisorderDisorderAssociationList/DisorderDisorderAssociation"):
        target = association.find("TargetDisorder")
        other = "" if target is None else _number(target)
        if not other or other == number:
            continue  # seen from the other end: something was moved to this entry
        kind = text_of(association, "DisorderDisorderAssociationType/Name")
        kind_id = association.find("DisorderDisorderAssociationType")
        is_moved = kind == "Moved to" or (
            kind != "Referred to" and kind_id is not None and kind_id.get("id") == _MOVED_TO
        )
        if is_moved and term.is_obsolete:
            term.replaced_by.append(f"{options.prefix}{other}")
        else:
            term.relations.append(("consider", f"{options.prefix}{other}"))
    term.cross_references = list(_cross_references(disorder, reading))
    return term


def _number(element: Element) -> str:
    return text_of(element, "OrphaCode") or text_of(element, "OrphaNumber")


def _number_in(node: Element) -> str:
    disorder = node.find("Disorder")
    return "" if disorder is None else _number(disorder)


def _language_of(element: Element | None) -> str:
    tag = "" if element is None else element.get("lang") or ""
    return tidy_language(tag) if re.fullmatch(LANGUAGE_TAG, tag) else "und"


def _definition(disorder: Element) -> str:
    for section in disorder.iterfind("SummaryInformationList/SummaryInformation/TextSectionList/TextSection"):
        kind = section.find("TextSectionType")
        if kind is None or kind.get("id") == _DEFINITION or text_of(kind, "Name") == "Definition":
            return text_of(section, "Contents")
    return ""


def _cross_references(disorder: Element, reading: Reading) -> Iterator[tuple[str, str]]:
    for reference in disorder.iterfind("ExternalReferenceList/ExternalReference"):
        vocabulary, code = text_of(reference, "Source"), text_of(reference, "Reference")
        if not vocabulary or not code:
            reading.note("external references without a vocabulary or a code, left out", 1)
            continue
        # "NTBT/E": narrower, and spelled as a synonym there
        acronym = re.match(r"[A-Z]*", text_of(reference, "DisorderMappingRelation/Name"))
        relation = acronym[0] if acronym else ""
        if relation == _WRONG:
            reading.note("external references that Orphanet calls wrong, left out", 1)
            continue
        yield _MATCHES.get(relation, "xref"), f"{vocabulary}:{code}"


def _plain(text: str, reading: Reading) -> str:
    if "<" not in text:
        return text
    plain, n_marks = _MARKUP.subn("", text)
    plain, n_breaks = _BREAKS.subn(lambda found: found[1] or " ", plain)
    reading.note("texts with markup, taken out", bool(n_marks or n_breaks))
    return plain.strip() if n_breaks else plain


def _hierarchy(files: Sequence[XmlFile], options: OrphanetOptions, reading: Reading) -> pl.DataFrame:
    """``is_a`` of all classifications, each once."""
    lines: dict[tuple[str, str], int | None] = {}
    for file in files:
        for classification in xml_elements(file.file, "Classification", reading):
            for node in classification.iter("ClassificationNode"):
                parent = node.getparent()
                above = None if parent is None else parent.getparent()
                child, broader = _number_in(node), ""
                if above is not None and above.tag == "ClassificationNode":
                    broader = _number_in(above)
                if child and broader and child != broader:
                    lines.setdefault((f"{options.prefix}{child}", f"{options.prefix}{broader}"), line_of(node))
    rows = Columns(SOURCE_RELATIONS)
    for (child, broader), line in lines.items():
        rows.add(child, "is_a", broader, SOURCE, line)
    return rows.frame()


FORMAT = Format(
    name="orphanet",
    description="Orphanet's nomenclature of rare diseases (Orphadata product 1 or the pack), in several languages",
    source="en_product1.xml (plain, gzip or zip), or a folder or zip with those of several languages",
    obtain="https://www.orphadata.com: 'Rare diseases and alignment with terminologies' (XML, no account)",
    licence="CC BY 4.0, Orphanet and INSERM",
    options=OrphanetOptions,
    read=read_orphanet,
)
