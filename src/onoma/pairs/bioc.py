"""Corpora in the BioC format, as XML and as JSON.

BC5CDR, BioRED, NLM-Chem, NLM-Gene, GNormPlus and what PubTator 3 gives have this format (Comeau et al. 2013,
https://doi.org/10.1093/database/bat064; http://bioc.sourceforge.net). A collection has documents, these have passages
with a text (or sentences with one each) and the place where it begins, and an annotation has locations that count from
the beginning of the document, its text, and infons: its type, and under a key that each corpus chooses its code::

    <annotation id="3"><infon key="type">Disease</infon><infon key="identifier">MESH:D003922</infon>
      <location offset="12" length="15"/><text>type 1 diabetes</text></annotation>

JSON is a collection (``documents``), a list of documents or of collections, what PubTator 3 sends (``PubTator3``), or
JSON Lines of documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.json_lines import BadLineError, json_object, json_objects, json_records, json_text
from onoma.files.json_stream import json_values
from onoma.files.reading import Reading
from onoma.files.text_files import start_of_text
from onoma.files.xml_files import Element, line_of, xml_elements
from onoma.pairs.annotations import NO_CODE, NUMBER, RELATIONS, Annotation, Document, codes_of, reject_document

CODE_KEYS = ("identifier", "MESH", "NCBI Gene identifier")
"""Infons that hold the codes in BioRED, NLM-Chem and PubTator, in BC5CDR, and in NLM-Gene. GNormPlus has them under
what is the annotation's type."""
_NO_PLACE = "annotations without a place in the text, not read"
_EXPECTED = "an object with id and passages (offset, text, annotations with infons, locations and text)"
_COLLECTION_KEYS = ("documents", "PubTator3")


@dataclass(frozen=True, slots=True)
class _Mention:
    """An annotation as it stands in the file; numbers as texts."""

    infons: Mapping[str, str]
    locations: tuple[tuple[str, str], ...]
    text: str
    line: int | None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A document as it stands in the file."""

    name: str
    passages: tuple[tuple[str, str], ...]
    mentions: tuple[_Mention, ...]
    n_relations: int
    line: int | None


def bioc_annotations(file: SourceFile, reading: Reading, *, is_xml: bool, code_key: str) -> Iterator[Annotation]:
    """Every mention of a corpus in the BioC format, in its order.

    Args:
        file: Plain or gzip.
        reading: Where bad documents and annotations go.
        is_xml: Whether it is XML; else JSON.
        code_key: Of the infon that holds codes. Empty: the first of `CODE_KEYS` that an annotation has, or else that
            which is called as its type is.

    Raises:
        InputError: no XML or JSON, or no annotation has a code; under "strict" also a document without an id or without
            places, an annotation outside its document, or without a text.
    """
    keys = (code_key,) if code_key else CODE_KEYS
    seen: set[str] = set()
    has_codes = False
    for entry in _xml_entries(file, reading) if is_xml else _json_entries(file, reading):
        reading.note(RELATIONS, entry.n_relations)
        document = _document(entry, file, reading)
        if document is None:
            continue
        for one in entry.mentions:
            kind = one.infons.get("type", "")
            said = next((one.infons[key] for key in (*keys, *(() if code_key else (kind,))) if key in one.infons), None)
            if not one.locations:
                reading.note(_NO_PLACE, 1)
                continue
            if said is None:
                seen.update(one.infons)
                reading.note(NO_CODE, 1)
                continue
            has_codes = True
            pieces = [_place(document, *location) for location in one.locations]
            places = [piece for piece in pieces if piece is not None]
            if len(places) < len(pieces) or not one.text.strip():
                is_blank = len(places) == len(pieces)
                reading.reject(
                    "a blank mention" if is_blank else "a place outside the document",
                    path=file.path,
                    line=one.line,
                    text=f"document {entry.name}: {one.text}",
                    expected="a text"
                    if is_blank
                    else f"offset and length of a place in it, which ends at {document.end}",
                )
                continue
            types = (kind,) if kind else ()
            yield document.annotation(places, one.text, types=types, codes=codes_of(said), line=one.line)
    if seen and not has_codes:
        raise InputError(
            "no annotation has a code",
            path=file.path,
            field="infon",
            expected="one with the key " + " or ".join(keys),
            found="the keys " + ", ".join(sorted(seen)),
            fix="say which key holds the codes (codes_in, --codes-in KEY)",
        )


def _document(entry: _Entry, file: SourceFile, reading: Reading) -> Document | None:
    passages = [(offset, text) for offset, text in entry.passages if text]
    wrong = [offset for offset, _ in passages if not NUMBER.fullmatch(offset)]
    if entry.name and not wrong:
        return Document(entry.name, tuple(sorted((int(offset), text) for offset, text in passages)))
    reading.reject(
        "a document that cannot be read",
        path=file.path,
        line=entry.line,
        text=f"document {entry.name}",
        field="offset" if entry.name else "id",
        expected="a number for each passage" if entry.name else "an id",
        found=wrong[0] if entry.name else "",
    )
    return None


def _place(document: Document, offset: str, length: str) -> tuple[int, int] | None:
    if not (NUMBER.fullmatch(offset) and NUMBER.fullmatch(length)):
        return None
    return document.place(offset, str(int(offset) + int(length)))


def _xml_entries(file: SourceFile, reading: Reading) -> Iterator[_Entry]:
    for document in xml_elements(file, "document", reading):
        yield _Entry(
            name=_text(document, "id").strip(),
            passages=tuple(
                (_text(one, "offset").strip(), _text(one, "text"))
                for passage in document.iterfind("passage")
                for one in passage.findall("sentence") or (passage,)
            ),
            mentions=tuple(
                _Mention(
                    {str(infon.get("key")): (infon.text or "").strip() for infon in one.iterfind("infon")},
                    tuple((str(at.get("offset")), str(at.get("length"))) for at in one.iterfind("location")),
                    _text(one, "text"),
                    line_of(one),
                )
                for one in document.iter("annotation")
            ),
            n_relations=sum(1 for _ in document.iter("relation")),
            line=line_of(document),
        )


def _text(element: Element, tag: str) -> str:
    """The text as it stands, for places count its spaces and line ends too."""
    return element.findtext(tag) or ""


def _json_entries(file: SourceFile, reading: Reading) -> Iterator[_Entry]:
    for line, document in _json_documents(file, reading):
        try:
            entry = _json_entry(document, line)
        except (BadLineError, KeyError) as error:
            reject_document(error, "as BioC has them", _EXPECTED, file, line, reading)
            continue
        yield entry


def _json_documents(file: SourceFile, reading: Reading) -> Iterator[tuple[int, Any]]:
    """Line and document."""
    first_line = start_of_text(file).partition(b"\n")[0]
    if first_line.startswith(b"["):
        for found in json_values(file, reading, depth=1):
            is_collection = isinstance(found.value, dict) and isinstance(found.value.get("documents"), list)
            yield from ((found.line, one) for one in (found.value["documents"] if is_collection else [found.value]))
    elif _is_document(first_line):
        yield from json_records(file, reading)
    else:
        keys: set[str | int] = set()
        for found in json_values(file, reading, depth=2):
            keys.add(found.place[0])
            if found.place[0] in _COLLECTION_KEYS:
                yield found.line, found.value
        if "passages" in keys:  # one document on several lines
            yield from ((found.line, found.value) for found in json_values(file, reading, depth=0))


def _is_document(line: bytes) -> bool:
    """Whether a line holds a document by itself."""
    try:
        return "passages" in json_object(line.decode())
    except (BadLineError, UnicodeDecodeError):
        return False


def _json_entry(found: object, line: int) -> _Entry:
    [document] = json_objects([found], "documents")
    if "document_id" in document:
        raise BadLineError("a document in BigBIO's schema, which belongs on one line, or in a list of such")
    passages = json_objects(document["passages"], "passages")
    sentences = [json_objects(passage.get("sentences"), "sentences") for passage in passages]
    holders = [document, *passages, *(one for several in sentences for one in several)]
    return _Entry(
        name=json_text(document["id"], "id").strip(),
        passages=tuple(
            (json_text(one["offset"], "offset"), json_text(one.get("text"), "text"))
            for passage, several in zip(passages, sentences, strict=True)
            for one in several or (passage,)
        ),
        mentions=tuple(
            _Mention(
                _json_infons(one["infons"]),
                tuple(
                    (json_text(at["offset"], "offset"), json_text(at["length"], "length"))
                    for at in json_objects(one.get("locations"), "locations")
                ),
                json_text(one.get("text"), "text"),
                line,
            )
            for holder in holders
            for one in json_objects(holder.get("annotations"), "annotations")
        ),
        n_relations=sum(len(json_objects(holder.get("relations"), "relations")) for holder in holders),
        line=line,
    )


def _json_infons(found: object) -> dict[str, str]:
    """Those that are one value: PubTator 3 has lists among them, which repeat it."""
    [infons] = json_objects([found or {}], "infons")
    return {key: json_text(one, key).strip() for key, one in infons.items() if not isinstance(one, list | dict)}
