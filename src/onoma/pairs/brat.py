"""Corpora in brat's standoff format, and in that of the BioNLP shared tasks, from which it comes.

NEREL-BIO, PHAEDRA, QUAERO, CANTEMIST, PharmaCoNER, Bacteria Biotope, CADEC and others have this format; specification:
https://brat.nlplab.org/standoff.html. Beside each text ``NAME.txt`` lie its annotations, ``NAME.ann``, or ``NAME.a1``
with the mentions and ``NAME.a2`` with their codes::

    T1<tab>Disorder 9 16;22 26<tab>chronic pain
    N1<tab>Reference T1 UMLS:C0150055<tab>chronic pain
    N2<tab>OntoBiotope Annotation:T2 Referent:OBT:001480
    #1<tab>AnnotatorNotes T3<tab>C0025794

A mention may be in pieces. Its codes are in normalisations (N), in notes (#: QUAERO, CANTEMIST, PharmaCoNER), or where
else its type is (CADEC: ``271782001 | Drowsy | 9 19``). Other lines (relations, events, attributes) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.reading import Reading
from onoma.files.text_files import EmptyFileError, read_bytes, text_lines
from onoma.pairs.annotations import NO_CODE, Annotation, Document, codes_of, known_codes

NOTES, TYPE = "notes", "type"
"""Where codes may be besides normalisations."""
SUFFIXES = (".ann", ".a1")
"""Of the files that hold the mentions; in small or capital letters."""
ENDINGS = (*SUFFIXES, ".a2", ".txt")
_OTHER_LINES = "lines of relations, events, attributes and the like, which are not read"
_TRIGGERS = "triggers of events, left out"
_OF_NO_MENTION = "codes of what is no mention, left out"
_MENTION = re.compile(r"(?P<type>\S.*?)[\s|]+(?P<pieces>[0-9]+ [0-9]+(?:;[0-9]+ [0-9]+)*)\s*")
_NORMALISATION = re.compile(r"(?:Reference (\S+) (\S+)|(\S+) Annotation:(\S+) Referent:(\S+))\s*")
_NOTE = re.compile(r"\S+ (\S+)\s*")
_TRIGGER = re.compile(r"[^\s:]+:(\S+)")
_NEXT_CODE = re.compile(r"\s*\|?\s*(?:[+/]|\bor\b)\s*(?=[0-9]{5})")


@dataclass
class _Lines:
    """The lines of a document's annotations."""

    mentions: dict[str, tuple[int, str, re.Match[str], str]] = field(default_factory=dict)
    """Of an id: number of the line, line, type and pieces, text."""
    codes: dict[str, list[str]] = field(default_factory=dict)
    triggers: set[str] = field(default_factory=set)


def brat_annotations(
    files: Sequence[SourceFile], reading: Reading, *, path: Path, codes_in: str
) -> Iterator[Annotation]:
    """Every mention of a corpus in brat's format, by document and in the order of its annotations.

    Args:
        files: Texts and annotations, each plain or gzip.
        reading: Where bad lines go; its encoding is that of all files.
        path: What an error about all files calls them.
        codes_in: "notes", "type", or the resource of the normalisations to read, such as "UMLS". Empty: normalisations
            of any resource.

    Raises:
        InputError: a file is no text, or no mention has a code; under "strict" also a text that is missing or in
            another encoding, a bad line, or a mention outside its text.
    """
    by_name = {_name_of(file): file for file in files}
    is_coded = is_mentioned = False
    annotated = [file for name, file in by_name.items() if name.endswith(SUFFIXES)]
    for file in reading.each(annotated, path.name):
        stem = str(PurePosixPath(_name_of(file)).with_suffix(""))
        text = _text(by_name, stem, file, reading)
        if text is None:
            continue
        lines = _Lines()
        _read_lines(file, lines, reading, codes_in)
        if stem + ".a2" in by_name:
            _read_lines(by_name[stem + ".a2"], lines, reading, codes_in)
        reading.note(_OF_NO_MENTION, len(lines.codes.keys() - lines.mentions.keys()))
        document = Document(stem, _passages(text))
        for name, (number, line, found, mention) in lines.mentions.items():
            codes = lines.codes.get(name)
            if name in lines.triggers:
                reading.note(_TRIGGERS, 1)
                continue
            is_mentioned = True
            if codes is None:
                reading.note(NO_CODE, 1)
                continue
            is_coded = True
            places = [document.place(*piece.split(" ")) for piece in found["pieces"].split(";")]
            pieces = [place for place in places if place is not None]
            if len(pieces) < len(places):
                problem = "a place outside the document"
                reading.reject(problem, path=file.path, line=number, text=line, expected=document.places)
                continue
            yield document.annotation(
                pieces,
                mention,
                types=() if codes_in == TYPE else (found["type"],),
                codes=known_codes(codes),
                line=number,
            )
    if is_mentioned and not is_coded:
        place = "a note" if codes_in == NOTES else "a line N"
        raise InputError(
            "no mention has a code",
            path=path,
            expected=f"{place} for it" + (f" of {codes_in}" if codes_in not in ("", NOTES) else ""),
            fix="say where the codes are (codes_in, --codes-in): notes, type, or the resource of lines N",
        )


def _text(by_name: Mapping[str, SourceFile], stem: str, annotations: SourceFile, reading: Reading) -> str | None:
    """The text that annotations are about, as it stands, for places count its line ends too."""
    file = by_name.get(stem + ".txt")
    if file is None:
        reading.reject(
            "there is no text beside the annotations",
            path=annotations.path,
            expected=PurePosixPath(stem).name + ".txt",
            found="",
            fix="put the texts into the folder of the annotations",
        )
        return None
    try:
        data = b"".join(block.data for block in read_bytes(file))
    except EmptyFileError:
        return ""
    try:
        return data.decode(reading.encoding or "utf-8")
    except UnicodeDecodeError as error:
        reading.reject(
            f"not {reading.encoding or 'UTF-8'} (byte 0x{data[error.start]:02x})",
            path=file.path,
            line=data.count(b"\n", 0, error.start) + 1,
            fix=reading.how_to_decode,
        )
        return None


def _name_of(file: SourceFile) -> str:
    """Its name, with the ending in small letters."""
    stem, dot, ending = file.name.rpartition(".")
    return stem + dot + ending.lower()


def _passages(text: str) -> tuple[tuple[int, str], ...]:
    """The lines of a text and where they begin."""
    places, at = [], 0
    for line in text.split("\n"):
        places.append((at, line))
        at += len(line) + 1
    return tuple(places)


def _read_lines(file: SourceFile, into: _Lines, reading: Reading, codes_in: str) -> None:
    """Sort the lines of a file of annotations; mentions are only read of the first file of a document."""
    has_mentions = _name_of(file).endswith(SUFFIXES)
    try:
        for begin, lines in text_lines(file, reading):
            for number, line in enumerate(lines, begin):
                name, *rest = line.split("\t")
                kind = name[:1]
                if not line.strip():
                    continue
                problem = ""
                if kind == "T":
                    if not has_mentions:
                        reading.note(_TRIGGERS, 1)
                    else:
                        problem = _add_mention(into, name, rest, number, line, codes_in)
                elif kind == "N":
                    problem = _add_normalisation(into, rest, codes_in)
                elif kind == "#" and codes_in == NOTES:
                    problem = _add_note(into, rest)
                elif kind and kind in "RE*AM#":
                    reading.note(_OTHER_LINES, 1)
                    trigger = _TRIGGER.match(rest[0]) if kind == "E" and rest else None
                    into.triggers.update(trigger.groups() if trigger else ())
                else:
                    problem = "an id: T, N, R, E, A, M, # or *, and a number"
                if problem:
                    reading.reject("no line of brat's format", path=file.path, line=number, text=line, expected=problem)
    except EmptyFileError:
        return


def _add_mention(into: _Lines, name: str, rest: list[str], number: int, line: str, codes_in: str) -> str:
    """What would have been right, if it is not."""
    found = _MENTION.fullmatch(rest[0]) if len(rest) > 1 and rest[1].strip() else None
    if found is None:
        return "ID, TYPE START END and the text with tabs between"
    if name in into.mentions:
        return "an id that no line before has"
    into.mentions[name] = number, line, found, rest[1].strip()
    if codes_in == TYPE:
        codes = (one.split("|")[0].split()[0] for one in _NEXT_CODE.split(found["type"]))
        into.codes[name] = list(codes)
    return ""


def _add_normalisation(into: _Lines, rest: list[str], codes_in: str) -> str:
    found = _NORMALISATION.fullmatch(rest[0]) if rest else None
    if found is None:
        return "ID, tab, Reference MENTION RESOURCE:CODE (or RESOURCE Annotation:MENTION Referent:CODE)"
    mention, code = found[1] or found[4], found[2] or found[5]
    resource = found[3] or code.partition(":")[0]
    if codes_in in ("", resource):
        into.codes.setdefault(mention, []).extend(codes_of(code))
    return ""


def _add_note(into: _Lines, rest: list[str]) -> str:
    found = _NOTE.fullmatch(rest[0]) if rest else None
    if found is None:
        return "ID, KIND MENTION and the note with tabs between"
    said = rest[1].split() if len(rest) > 1 else []
    into.codes.setdefault(found[1], []).extend(code for one in said for code in codes_of(one))
    return ""
