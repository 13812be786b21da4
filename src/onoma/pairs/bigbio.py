"""Corpora in the schema ``bigbio_kb`` of BigBIO, as Parquet, JSON Lines or a JSON array; xMEN has its in it too.

A row is a document (Fries et al. 2022, https://arxiv.org/abs/2206.15076; ``dataset.to_parquet`` and ``dataset.to_json``
of Hugging Face's datasets write it): its passages, and entities with their type, pieces, and codes in databases::

    {"document_id": "227508", "passages": [{"text": ["Naloxone ..."], "offsets": [[0, 59]]}, ...],
     "entities": [{"type": "Chemical", "text": ["Naloxone"], "offsets": [[0, 8]],
                   "normalized": [{"db_name": "MESH", "db_id": "D009270"}]}, ...]}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.json_lines import BadLineError, json_object, json_objects, json_records, json_text, json_texts
from onoma.files.json_stream import json_values
from onoma.files.reading import Reading
from onoma.files.table_rows import PARQUET, ending_of, parquet_records
from onoma.files.text_files import start_of_text
from onoma.pairs.annotations import NO_CODE, NUMBER, Annotation, Document, codes_of, known_codes, reject_document

_EXPECTED = "document_id, passages (text, offsets) and entities (type, text, offsets, normalized)"
_KEY = "document_id"
"""BioC and other formats call it otherwise."""
_COLUMNS = (_KEY, "passages", "entities")


def is_bigbio(first_line: bytes) -> bool:
    """Whether a file of text that begins so is a corpus in this schema, as JSON Lines."""
    try:
        return _KEY in json_object(first_line.decode())
    except (BadLineError, UnicodeDecodeError):
        return False


def is_bigbio_array(file: SourceFile) -> bool:
    """Whether a file that is a JSON array is a corpus in this schema, by the first object in it.

    Raises:
        InputError: as `onoma.files.json_stream.json_values`, if that is so up to this object.
    """
    values = (found.value for found in json_values(file, Reading(), depth=1))
    return _KEY in next((value for value in values if isinstance(value, dict)), ())


def bigbio_annotations(file: SourceFile, reading: Reading, *, database: str) -> Iterator[Annotation]:
    """Every mention of a corpus in BigBIO's schema, in its order.

    Args:
        file: Parquet, or JSON Lines or a JSON array (plain or gzip).
        reading: Where bad documents and mentions go.
        database: Read only the codes in this one, such as "MESH". Empty: in all.

    Raises:
        InputError: a file that is damaged or no JSON, has no such columns, or no code in ``database``; under "strict"
            also a document that is not as the schema has it, a mention outside its document, or without a text.
    """
    databases: set[str] = set()
    has_codes = False
    for line, found_there in _records(file, reading):
        try:
            [record] = json_objects([found_there], "documents")
            document = _document(record)
            found = json_objects(record["entities"], "entities")
            entities = [_entity(document, entity, database, databases) for entity in found]
        except (BadLineError, KeyError) as error:
            reject_document(error, "in the schema bigbio_kb", _EXPECTED, file, line, reading)
            continue
        for mention, pieces, codes, types in entities:
            if codes is None:
                reading.note(NO_CODE, 1)
                continue
            has_codes = True
            places = [place for place in pieces if place is not None]
            if not mention.strip() or not places or len(places) < len(pieces):
                is_blank = not mention.strip()
                reading.reject(
                    "a blank mention" if is_blank else "a place outside the document",
                    path=file.path,
                    line=line,
                    text=f"document {document.name}: {mention}",
                    expected="a text" if is_blank else document.places,
                )
                continue
            yield document.annotation(places, mention, types=types, codes=codes, line=line)
    if databases and not has_codes:
        raise InputError(
            f"no mention has a code in {database}",
            path=file.path,
            field="db_name",
            expected=" or ".join(sorted(databases)),
            found=database,
            fix="name one of these (codes_in, --codes-in)",
        )


def _records(file: SourceFile, reading: Reading) -> Iterator[tuple[int, object]]:
    if ending_of(file) in PARQUET:
        yield from parquet_records(file, reading, columns=_COLUMNS)
    elif start_of_text(file).startswith(b"["):
        yield from ((found.line, found.value) for found in json_values(file, reading, depth=1))
    else:
        yield from json_records(file, reading)


def _document(record: Mapping[str, Any]) -> Document:
    name = json_text(record["document_id"], "document_id")
    if not name:
        raise BadLineError("no id", "document_id")
    passages: list[tuple[int, str]] = []
    for passage in json_objects(record["passages"], "passages"):
        texts, starts = json_texts(passage["text"], "text"), [start for start, _ in _offsets(passage["offsets"])]
        if len(texts) != len(starts) or not all(map(NUMBER.fullmatch, starts)):
            raise BadLineError("no number for each text, where it begins", "offsets")
        passages += zip(map(int, starts), texts, strict=True)
    return Document(name, tuple(sorted(passages)))


def _offsets(value: object) -> list[tuple[str, str]]:
    """The start and the end of each piece, as they stand there."""
    pairs = [json_texts(pair, "offsets") for pair in (value if isinstance(value, list) else [value])]
    if any(len(pair) != 2 for pair in pairs):
        raise BadLineError("no list of pairs START, END", "offsets")
    return [(start, end) for start, end in pairs]


def _entity(
    document: Document, entity: Mapping[str, Any], database: str, databases: set[str]
) -> tuple[str, list[tuple[int, int] | None], tuple[str, ...] | None, tuple[str, ...]]:
    """Text, pieces, codes (``None``: not given) and types of a mention."""
    normalized = [
        (json_text(one["db_name"], "db_name"), json_text(one["db_id"], "db_id"))
        for one in json_objects(entity["normalized"], "normalized")
    ]
    databases.update(name for name, _ in normalized)
    said = [code for name, code in normalized if database in ("", name)]
    codes = known_codes(code for one in said for code in codes_of(one)) if said else None
    pieces = [document.place(*pair) for pair in _offsets(entity["offsets"])]
    types = tuple(filter(None, json_texts(entity["type"], "type")))
    return " ".join(json_texts(entity["text"], "text")), pieces, codes, types
