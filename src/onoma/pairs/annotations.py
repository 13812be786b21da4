"""Annotated mentions in their documents, as the readers of corpora (PubTator, BioC, brat, BigBIO) give them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from onoma.files.archives import SourceFile
from onoma.files.json_lines import BadLineError
from onoma.files.reading import Reading

LONGEST_TEXT = 20_000
"""Characters of a document that is the context of its mentions as a whole. Of a longer one it is `AROUND` a mention: an
article of 40,000 characters with 250 mentions would be written 250 times."""
AROUND = 2_000
"""Characters on either side of a mention: more than a cross-encoder reads."""
_LONGEST_WORD = 100

NO_CODE = "mentions without a code, nor said to be of no concept, left out"
RELATIONS = "relations, which are not read"

_NO_WHITE = MappingProxyType(dict.fromkeys(map(ord, "\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\ufeff"), " "))
"""A context is one line; what it has for these is as long, so that places stay right."""
_DIVIDES = re.compile(r"[|+,;]")
_VARIANT = re.compile(r"(?:HGVS:|(?:tmVar:)?[a-z]\|[A-Z]+\|)[^,;]*")
_OF_NOTHING = frozenset(("", "-", "-1", "NIL", "NULL", "None", "CUI-less", "CONCEPT_LESS"))
"""With or without a prefix."""
NUMBER = re.compile(r"[0-9]{1,9}")
"""Of a place."""


def codes_of(said: str) -> tuple[str, ...]:
    """The codes that an annotation gives, each once; none if it says that there is no concept.

    Several are divided by ``|``, ``+``, ``,`` or ``;``. Bars and plus signs within codes of variants divide nothing.

    Example:
        >>> codes_of("D003922|D003924"), codes_of("c|SUB|A|118|G"), codes_of("-1")
        (('D003922', 'D003924'), ('c|SUB|A|118|G',), ())
        >>> codes_of("MESH:-1")
        ()
    """
    said = said.strip()
    several = [said] if _VARIANT.fullmatch(said) else _DIVIDES.split(said)
    return known_codes(several)


def known_codes(several: Iterable[str]) -> tuple[str, ...]:
    """The same of codes that are divided already."""
    codes = tuple(dict.fromkeys(filter(None, map(str.strip, several))))
    return () if _OF_NOTHING.issuperset(code.rpartition(":")[2] for code in codes) else codes


@dataclass(frozen=True, slots=True)
class Annotation:
    """A mention in its document.

    Attributes:
        document: The document's id.
        text: The document as one line, or what is `AROUND` the mention, if the document is above `LONGEST_TEXT`.
        begin: Where ``text`` begins, as the corpus counts in the passage of the mention.
        pieces: Start and end of each piece of the mention, in characters from 0, as the corpus counts them.
        mention: The mention as the annotation has it.
        types: Of the concept: "Disease", or semantic types such as "T047".
        codes: As the annotation has them; none of a mention of no concept.
        parts: The texts of a composite mention, if the annotators wrote them out.
        line: Of the file.
        is_cut: Whether ``text`` is a part of the document.
    """

    document: str
    text: str
    begin: int
    pieces: tuple[tuple[int, int], ...]
    mention: str
    types: tuple[str, ...]
    codes: tuple[str, ...]
    parts: tuple[str, ...]
    line: int | None
    is_cut: bool

    @property
    def start(self) -> int:
        """Where the mention begins in the document."""
        return self.pieces[0][0]

    @property
    def end(self) -> int:
        """Where its last piece ends."""
        return self.pieces[-1][1]

    @property
    def is_in_place(self) -> bool:
        """Whether the mention stands where it should; line ends count as spaces, and pieces need none between."""
        if self.start < self.begin:
            return False
        there = "".join(self.text[start - self.begin : end - self.begin] for start, end in self.pieces)
        return "".join(there.split()) == "".join(self.mention.split())

    @property
    def marked_text(self) -> str:
        """The text with the mention (of one in pieces all from the first to the last) between marks, if in place."""
        if not self.is_in_place:
            return self.text
        start, end = self.start - self.begin, self.end - self.begin
        return f"{self.text[:start]}<tgt> {self.text[start:end]} </tgt>{self.text[end:]}"


@dataclass(frozen=True)
class Document:
    """A document of a corpus.

    Attributes:
        name: Its id.
        passages: Where each begins, as the corpus counts, and its text; in order.
    """

    name: str
    passages: tuple[tuple[int, str], ...]

    @cached_property
    def end(self) -> int:
        """Where the last passage ends."""
        return max((start + len(text) for start, text in self.passages), default=0)

    @cached_property
    def _text(self) -> str:
        return " ".join(text for _, text in self.passages).translate(_NO_WHITE)

    @cached_property
    def _offsets(self) -> list[int]:
        """Where each passage begins, as the corpus counts."""
        return [begin for begin, _ in self.passages]

    @cached_property
    def _begins(self) -> list[int]:
        """Where each passage begins in the text that they make together."""
        places, at = [], 0
        for _, text in self.passages:
            places.append(at)
            at += len(text) + 1
        return places

    def annotation(
        self,
        pieces: Iterable[tuple[int, int]],
        mention: str,
        *,
        types: tuple[str, ...] = (),
        codes: tuple[str, ...] = (),
        parts: tuple[str, ...] = (),
        line: int | None = None,
    ) -> Annotation:
        """A mention of this document, at places in it; for the arguments see `Annotation`."""
        in_order = tuple(sorted(pieces))
        number = max(bisect_right(self._offsets, in_order[0][0]) - 1, 0)
        shift = self._offsets[number] - self._begins[number]
        is_cut = len(self._text) > LONGEST_TEXT
        left, right = 0, len(self._text)
        if is_cut:
            left, right = self._around(in_order[0][0] - shift, in_order[-1][1] - shift)
        return Annotation(
            document=self.name,
            text=self._text[left:right] if is_cut else self._text,
            begin=left + shift,
            pieces=in_order,
            mention=mention,
            types=types,
            codes=codes,
            parts=parts,
            line=line,
            is_cut=is_cut,
        )

    def _around(self, start: int, end: int) -> tuple[int, int]:
        """What is `AROUND` a place in the text, where words have no more than `_LONGEST_WORD` characters whole ones."""
        left, right = max(start - AROUND, 0), end + AROUND
        if left:
            left = max(left, self._text.find(" ", left - 1, left + _LONGEST_WORD) + 1)
        if right < len(self._text):
            space = self._text.rfind(" ", right - _LONGEST_WORD, right + 1)
            right = right if space < 0 else space
        return left, right

    def place(self, start: str, end: str) -> tuple[int, int] | None:
        """A place in the document as numbers, if it is one."""
        if not (NUMBER.fullmatch(start) and NUMBER.fullmatch(end)):
            return None
        return (int(start), int(end)) if int(start) < int(end) <= self.end else None

    @property
    def places(self) -> str:
        """What a place in the document must be."""
        return f"START below END, and END at most {self.end}"


def reject_document(
    error: BadLineError | KeyError, what: str, expected: str, file: SourceFile, line: int, reading: Reading
) -> None:
    """Reject a document of JSON or Parquet that lacks a key or holds something else under it.

    Args:
        error: What reading it ended in.
        what: As what it should be.
        expected: What would have been right.
        file: It is in this one.
        line: Where it begins.
        reading: Told of it.

    Raises:
        InputError: under "strict".
    """
    reading.reject(
        f"a document that is not {what}",
        path=file.path,
        line=line,
        field=error.field if isinstance(error, BadLineError) else None,
        expected=expected,
        found=str(error) if isinstance(error, BadLineError) else f"the key {error} is not there",
    )
