"""Corpora in PubTator's format.

MedMentions, BC5CDR, the NCBI disease corpus, BioRED, NLM-Chem and others have this format; specification:
https://www.ncbi.nlm.nih.gov/research/bionlp/Tools/pubtator. A document is its text and its annotations, in UTF-8::

    25763772|t|Title
    25763772|a|Abstract
    25763772<tab>0<tab>5<tab>DCTN4<tab>T103<tab>UMLS:C4308010

Positions count characters from 0, with one between the passages. A line whose second field begins with a letter is a
relation ("CID"), which is not read. Composite mentions have a seventh field, or several codes. tmVar and PubTator 3
write what is known of a variant as several, of which one is read by its prefix::

    tmVar:p|SUB|V|600|E;HGVS:p.V600E;VariantGroup:0;CorrespondingGene:673;RS#:113488022;CA#:123643
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from onoma.files.archives import SourceFile
from onoma.files.reading import Reading, check_chosen
from onoma.files.text_files import text_lines
from onoma.pairs.annotations import NO_CODE, RELATIONS, Annotation, Document, codes_of, known_codes

EXPECTED = "lines ID|t|TITLE and ID|a|ABSTRACT, then one of six fields for each mention"
_PASSAGE = re.compile(r"([^|\t]+)\|(\w+)\|(.*)")
_RELATION = re.compile(r"\s*[^\W\d_]")


def pubtator_annotations(file: SourceFile, reading: Reading, *, prefix: str) -> Iterator[Annotation]:
    """Every mention of a corpus in PubTator's format, in its order.

    Args:
        file: Plain or gzip.
        reading: Where bad lines go.
        prefix: Read only the codes that have it, such as "MESH" or "RS#". Empty: all.

    Raises:
        InputError: the file is no text, or no code has ``prefix``; under "strict" also a line that is none of the
            format, an annotation of another document or outside its text, or without a mention.
    """
    document = Document("", ())
    prefixes: set[str] = set()
    for begin, lines in text_lines(file, reading):
        for number, line in enumerate(lines, begin):
            if not line.strip():
                continue
            passage = _PASSAGE.fullmatch(line)
            if passage:
                document = _with_passage(document, *passage.groups())
                continue
            fields = line.split("\t")
            if len(fields) > 2 and _RELATION.match(fields[1]):
                reading.note(RELATIONS, 1)
                continue
            problem, expected = _problem(document, fields)
            place = None if problem else document.place(fields[1].strip(), fields[2].strip())
            if place is None:
                reading.reject(
                    problem or "a place outside the document",
                    path=file.path,
                    line=number,
                    text=line,
                    expected=expected or document.places,
                )
                continue
            codes = codes_of(fields[5])
            if prefix and codes:
                by_prefix = _by_prefix(fields[5])
                prefixes |= by_prefix.keys()
                if prefix not in by_prefix:
                    reading.note(NO_CODE, 1)
                    continue
                codes = known_codes(by_prefix[prefix])
            yield document.annotation(
                [place],
                fields[3],
                types=tuple(filter(None, (name.strip() for name in fields[4].split(",")))),
                codes=codes,
                parts=tuple(fields[6].split("|")) if len(fields) > 6 and fields[6].strip() else (),
                line=number,
            )
    if prefixes:
        check_chosen("codes_in", [prefix], prefixes - {""}, path=file.path, among="the corpus")


def _with_passage(document: Document, name: str, kind: str, text: str) -> Document:
    """The document and a passage of it, or the first of another one, as a title ("t") is."""
    if name.strip() != document.name or kind == "t":
        return Document(name.strip(), ((0, text),))
    return Document(document.name, (*document.passages, (document.end + 1, text)))


def _by_prefix(said: str) -> dict[str, list[str]]:
    """The codes of an annotation by what is before their first colon; "" has those without."""
    codes: dict[str, list[str]] = {}
    for part in said.split(";"):
        for code in codes_of(part):
            before, colon, _ = code.partition(":")
            codes.setdefault(before if colon else "", []).append(code)
    return codes


def _problem(document: Document, fields: list[str]) -> tuple[str, str]:
    """What is wrong with an annotation but for its place, and what would have been right; both blank, if nothing is."""
    if len(fields) < 6:
        return "no line of a corpus", "ID|t|TITLE, ID|a|ABSTRACT, or ID START END MENTION TYPE CODE with tabs between"
    if fields[0].strip() != document.name:
        expected = f"the document {document.name}" if document.name else "its title first"
        return "an annotation of another document", expected
    if not fields[3].strip():
        return "a blank mention", "a text"
    return "", ""
