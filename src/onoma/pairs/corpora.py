"""Corpora of annotated mentions in PubTator's format, as tables of mentions.

MedMentions, BC5CDR, the NCBI disease corpus, BioRED, NLM-Chem and others have this format; specification:
https://www.ncbi.nlm.nih.gov/research/bionlp/Tools/pubtator. A document is its text and its annotations, in UTF-8::

    25763772|t|Title
    25763772|a|Abstract
    25763772<tab>0<tab>5<tab>DCTN4<tab>T103<tab>UMLS:C4308010

Positions count characters from 0, with one between the passages. A line whose second field begins with a letter is a
relation ("CID"), which is not read. Composite mentions have a seventh field, or several codes, separated by ``|``,
``+``, ``,`` or ``;``. The bars within tmVar's codes of variants, as in BioRED (``c|SUB|A|118|G``), separate no codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from onoma.errors import InputError, checked_path
from onoma.files.reading import Reading, check_chosen
from onoma.files.text_files import only_file, text_lines

NIL = "NIL"
"""The code of mentions of no concept."""
_SEVERAL = "mentions of several concepts, left out"
_ELSEWHERE = "mentions that do not stand where their annotation says, whose place in the context is not marked"
_PASSAGE = re.compile(r"([^|\t]+)\|(\w+)\|(.*)")
_PLACE = re.compile(r"[0-9]{1,9}")
_RELATION = re.compile(r"\s*[^\W\d_]")
_DIVIDES = re.compile(r"[|+,;]")
_VARIANT = re.compile(r"[a-z]\|[A-Z]+\|[^,;]*")
_OF_NOTHING = frozenset(("", "-", "-1", "NIL", "CUI-less"))
_TABLE = pl.Schema(
    {
        "mention": pl.String(),
        "concept_id": pl.String(),
        "type": pl.String(),
        "document": pl.String(),
        "start": pl.Int64(),
        "end": pl.Int64(),
        "context": pl.String(),
    }
)


@dataclass(frozen=True, slots=True)
class Annotation:
    """A mention in its document.

    Attributes:
        document: The document's id.
        text: Its passages, a space between.
        start: Where the mention begins in it, in characters from 0.
        end: Where it ends.
        mention: The mention as the annotation has it.
        types: Of the concept: "Disease", or semantic types such as "T047"; several are divided by commas in the file.
        codes: As in the file; none of a mention of no concept.
        parts: The texts of a composite mention, if the annotators wrote them out.
        line: Of the file.
    """

    document: str
    text: str
    start: int
    end: int
    mention: str
    types: tuple[str, ...]
    codes: tuple[str, ...]
    parts: tuple[str, ...]
    line: int

    @property
    def is_in_place(self) -> bool:
        """Whether the mention stands where it should."""
        return self.text[self.start : self.end] == self.mention


def read_corpus(
    file: str | Path,
    reading: Reading | None = None,
    *,
    types: Sequence[str] = (),
    strip_prefix: str = "",
    add_prefix: str = "",
) -> pl.DataFrame:
    """Read the mentions of a corpus, as `onoma.pairs.read_mentions` reads them from a table.

    Mentions of several concepts are left out and counted, because no single code is right.

    Args:
        file: In PubTator's format; plain, gzip or alone in a zip.
        reading: Where bad lines go, and the notes. Unset: the first bad line is refused.
        types: Keep only mentions of these types; empty: all.
        strip_prefix: Prefix to remove from codes that have it, such as "UMLS:".
        add_prefix: Prefix for codes that have no colon then, such as "MESH:".

    Returns:
        A row for each mention: mention, concept_id ("NIL": of no concept), type, document, start, end (Int64,
        characters of the document), context (the document, with the mention between ``<tgt>`` and ``</tgt>``).

    Raises:
        InputError: no such file, no mention, no mention of a type; under "strict" also if a line is bad.
    """
    path = checked_path(file)
    reading = Reading() if reading is None else reading
    rows: list[tuple[object, ...]] = []
    there: set[str] = set()
    for one in corpus_annotations(path, reading):
        there.update(one.types)
        if types and not set(types) & set(one.types):
            reading.note("mentions of other types, left out", 1)
            continue
        if len(one.codes) > 1 or len(one.parts) > 1:
            reading.note(_SEVERAL, 1)
            continue
        reading.note(_ELSEWHERE, not one.is_in_place)
        code = (one.codes[0].removeprefix(strip_prefix) if one.codes else "") or NIL
        if code != NIL and ":" not in code:
            code = add_prefix + code
        context = one.text
        if one.is_in_place:
            context = f"{context[: one.start]}<tgt> {one.mention} </tgt>{context[one.end :]}"
        rows.append((one.mention, code, ",".join(one.types), one.document, one.start, one.end, context))
    check_chosen("type", types, there, path=path)
    if not rows:
        raise InputError(
            "there is no mention of one concept in the file",
            path=path,
            expected="PubTator's format: lines ID|t|TITLE and ID|a|ABSTRACT, then one of six fields for each mention",
        )
    return pl.DataFrame(rows, schema=_TABLE, orient="row")


def corpus_annotations(file: str | Path, reading: Reading | None = None) -> Iterator[Annotation]:
    """Every mention of a corpus in PubTator's format, in its order; see the module.

    Args:
        file: Plain, gzip or alone in a zip.
        reading: Where bad lines go. Unset: the first is refused.

    Raises:
        InputError: no such file; under "strict" also a line that is none of the format, an annotation of another
            document or outside its text, or without a mention.
    """
    reading = Reading() if reading is None else reading
    source = only_file(checked_path(file))
    document = _Document()
    for begin, lines in text_lines(source, reading):
        for number, line in enumerate(lines, begin):
            if not line.strip():
                continue
            passage = _PASSAGE.fullmatch(line)
            if passage:
                document = document.with_passage(*passage.groups())
                continue
            fields = line.split("\t")
            if len(fields) > 2 and _RELATION.match(fields[1]):
                reading.note("relations, which are not read", 1)
                continue
            problem, expected = document.problem(fields)
            if problem:
                reading.reject(problem, path=source.path, line=number, text=line, expected=expected)
                continue
            said = fields[5].strip()
            several = [said] if _VARIANT.fullmatch(said) else _DIVIDES.split(said)
            codes = tuple(dict.fromkeys(filter(None, (code.strip() for code in several))))
            yield Annotation(
                document=document.name,
                text=document.text,
                start=int(fields[1]),
                end=int(fields[2]),
                mention=fields[3],
                types=tuple(filter(None, (name.strip() for name in fields[4].split(",")))),
                codes=() if _OF_NOTHING.issuperset(codes) else codes,
                parts=tuple(fields[6].split("|")) if len(fields) > 6 and fields[6].strip() else (),
                line=number,
            )


@dataclass(frozen=True, slots=True)
class _Document:
    name: str = ""
    passages: list[str] = field(default_factory=list)

    def with_passage(self, name: str, kind: str, passage: str) -> _Document:
        """This document and a passage of it, or the first of another one, as a title ("t") is."""
        is_further = name.strip() == self.name and kind != "t"
        return _Document(name.strip(), [*self.passages, passage] if is_further else [passage])

    @property
    def text(self) -> str:
        return " ".join(self.passages)

    def problem(self, fields: list[str]) -> tuple[str, str]:
        """What is wrong with an annotation, and what would have been right; both blank, if nothing is."""
        if len(fields) < 6:
            return (
                "no line of a corpus",
                "ID|t|TITLE, ID|a|ABSTRACT, or ID START END MENTION TYPE CODE with tabs between",
            )
        if fields[0].strip() != self.name:
            return "an annotation of another document", f"the document {self.name}" if self.name else "its title first"
        n_characters = sum(map(len, self.passages)) + len(self.passages) - 1
        start, end = fields[1].strip(), fields[2].strip()
        if not (_PLACE.fullmatch(start) and _PLACE.fullmatch(end) and int(start) < int(end) <= n_characters):
            return "a place outside the document", f"START below END, and END at most {n_characters}"
        if not fields[3].strip():
            return "a blank mention", "a text"
        return "", ""
