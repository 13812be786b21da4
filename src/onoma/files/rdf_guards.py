"""What an RDF file may hold that would harm its parser, and texts of XML in the form that the parser wants.

Entities within entities swell, triples within triples and deep JSON make the parser recurse without end: such files are
refused before it sees them. Blocks of bytes are looked at as they come, in constant memory.
"""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
from pyoxigraph import RdfFormat

MAX_ENTITY_CHARACTERS = 400
"""Entities of ontologies stand for the beginnings of IRIs; a longer one is made to swell."""
MAX_TEXT_BYTES = 8 << 20
"""Without any tag between; with the entities in it, it may swell to a hundred times that. A tag has no more either."""
MAX_DEPTH = {"triples within triples": 100, "JSON": 100, "XML": 5000}

_ENTITY = re.compile(rb"<!ENTITY\s+(%?)\s*([\w.-]+)\s+(?:(SYSTEM|PUBLIC)|\"([^\"]*)\"|'([^']*)')", re.DOTALL)
_REFERENCE = re.compile(rb"&(?!#|lt;|gt;|amp;|quot;|apos;)")
_MOST_OF_AN_ENTITY = 1 << 10
_MISLEADING = re.compile(rb"<(?![^<>\"']*+(?:(?:\"[^\"<>]*+\"|'[^'<>]*+')[^<>\"']*+)*+>)|</[^>]*/>")
"""A tag, in a name or value of which are signs that seem to begin or end one."""
_TAG = re.compile(rb"<(?:!|\?[^>]*+>|/[^>]*+>|(?![!?/])(?:[^\"'>]++|\"[^\"]*+\"|'[^']*+')*+>)")
_EMPTY = re.compile(rb"<[^<>]*/>")
_LESS, _BRACKET = re.compile(b"<"), re.compile(b"[<>]")


class XmlTexts:
    """Texts in one piece, as the parser wants them: no comments or instructions, marked sections as other text."""

    _ENDS: ClassVar = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
    _BEGIN: ClassVar = re.compile(b"|".join(map(re.escape, _ENDS)))

    def __init__(self) -> None:
        self._begin, self._held = b"", b""
        self._is_at_start, self._is_declaration = True, False

    @property
    def is_open(self) -> bool:
        """Whether a comment, an instruction or a marked section goes on."""
        return bool(self._begin)

    def plain(self, data: bytes) -> bytes:
        """The next bytes; some are held back where they may be the beginning of a mark. May be longer than ``data``."""
        data = self._held + data
        pieces, position = [], 0
        while True:
            begin, end = self._next_mark(data, position)
            if begin < 0:
                break
            pieces.append(self._within(data[position:begin]))
            if self._begin:
                pieces.append(b"?>" if self._is_declaration else b"")
                self._begin, self._is_declaration = b"", False
            else:
                self._begin = data[begin:end]
                self._is_declaration = self._is_at_start and begin == 0 and self._begin == b"<?"
                pieces.append(b"<?" if self._is_declaration else b"")
            self._is_at_start = False
            position = end
        marks = [self._ENDS[self._begin]] if self._begin else list(self._ENDS)
        n_held = max(n for mark in marks for n in range(len(mark)) if data.endswith(mark[:n], position))
        rest = len(data) - n_held
        self._held = data[rest:]
        self._is_at_start &= not rest
        pieces.append(self._within(data[position:rest]))
        return b"".join(pieces)

    def _next_mark(self, data: bytes, position: int) -> tuple[int, int]:
        """Where the next mark that counts begins and ends; (-1, -1) if there is none."""
        if self._begin:
            end = self._ENDS[self._begin]
            begin = data.find(end, position)
            return (begin, begin + len(end)) if begin >= 0 else (-1, -1)
        found = self._BEGIN.search(data, position)
        return found.span() if found else (-1, -1)

    def _within(self, data: bytes) -> bytes:
        if self._begin == b"<!--" or (self._begin == b"<?" and not self._is_declaration):
            return b""
        if self._begin == b"<![CDATA[":
            return data.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")
        return data


class Guard:
    """Looks for nothing."""

    has_triple = False
    """To be set when the parser gives one."""

    def problem(self, data: bytes) -> str | None:
        """What is wrong with the next bytes of the file."""
        return None


class XmlGuard(Guard):
    """Entities that would swell, texts without end, and elements within elements; comments are gone already."""

    def __init__(self) -> None:
        self._n_without_tag, self._last = 0, b""
        self._depth, self._doctype_depth, self._open_tag = 0, 0, b""

    def problem(self, data: bytes) -> str | None:
        seen = self._last + data
        self._last = seen[-_MOST_OF_AN_ENTITY:]
        if b"<!ENTITY" in seen and not _entities_are_harmless(seen):
            return "an entity that stands for no beginning of an IRI (a bomb?)"
        tags = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("<"))
        longest = int(np.diff(tags).max()) if len(tags) > 1 else 0
        before = self._n_without_tag + (int(tags[0]) if len(tags) else len(data))
        self._n_without_tag = len(data) - int(tags[-1]) if len(tags) else before
        if max(longest, before, self._n_without_tag) > MAX_TEXT_BYTES:
            return f"a text of more than {MAX_TEXT_BYTES >> 20} MiB without a tag"
        data = self._open_tag + data
        if not self._count_at_once(data):
            return self._count_one_by_one(data)
        return _too_deep("XML", self._depth)

    def _count_at_once(self, data: bytes) -> bool:
        """Count the tags, if each "<" begins one which the next ">" ends; else nothing is done."""
        begin = data.rfind(b"<")
        whole, rest = (data[:begin], data[begin:]) if data.find(b">", begin) < 0 <= begin else (data, b"")
        if self._doctype_depth or b"<!" in whole or _MISLEADING.search(whole):
            return False
        n_tags = whole.count(b"<")
        has_more = n_tags != whole.count(b">")  # in texts
        n_empty = len(_EMPTY.findall(whole)) if has_more else whole.count(b"/>")
        n_closed = 2 * whole.count(b"</") + n_empty + whole.count(b"<?")
        self._depth, self._open_tag = self._depth + n_tags - n_closed, rest
        return True

    def _count_one_by_one(self, data: bytes) -> str | None:
        """Count the tags as the parser takes them, to which names and values of attributes may have any sign."""
        end, self._open_tag = 0, b""
        while True:
            found = (_BRACKET if self._doctype_depth else _LESS).search(data, end)
            if found is None:
                return None
            if self._doctype_depth:  # it ends where its brackets do, whatever else is in it
                self._doctype_depth += 1 if found[0] == b"<" else -1
                end = found.end()
                continue
            tag = _TAG.match(data, found.start())
            if tag is None:
                self._open_tag = data[found.start() :]
                is_long = len(self._open_tag) > MAX_TEXT_BYTES
                return f"a tag of more than {MAX_TEXT_BYTES >> 20} MiB" if is_long else None
            end = tag.end()
            if tag[0] == b"<!":
                self._doctype_depth = 1
            elif tag[0].startswith(b"</"):
                self._depth -= 1
            elif not tag[0].endswith(b"/>") and not tag[0].startswith(b"<?"):
                self._depth += 1
                if problem := _too_deep("XML", self._depth):
                    return problem


class TripleTermGuard(Guard):
    """Triples within triples (RDF 1.2), which the parser follows by recursion.

    What looks like the end of one may stand in a comment or a text. Hence all that begin count where the parser, which
    is done with what it got before, made no triple of them.
    """

    def __init__(self) -> None:
        self._depth, self._last, self._n_unfinished = 0, b"", 0

    def problem(self, data: bytes) -> str | None:
        if self.has_triple:
            self.has_triple, self._n_unfinished = False, 0
        elif problem := _too_deep("triples within triples", self._n_unfinished):
            return problem
        data = self._last + data
        end = 0
        deepest = self._depth
        for mark in re.finditer(rb"<<\(|\)>>", data):
            self._depth = max(self._depth + (1 if mark[0] == b"<<(" else -1), 0)
            self._n_unfinished += mark[0] == b"<<("
            deepest, end = max(deepest, self._depth), mark.end()
        self._last = data[max(end, len(data) - 2) :]
        return _too_deep("triples within triples", deepest)


class JsonGuard(Guard):
    """Containers within containers."""

    def __init__(self) -> None:
        self._depth, self._is_in_text, self._held = 0, False, b""

    def problem(self, data: bytes) -> str | None:
        data = self._held + data
        n_backslashes = len(data) - len(data.rstrip(b"\\"))
        self._held = data[len(data) - n_backslashes :]
        data = data[: len(data) - n_backslashes].replace(b"\\\\", b"__").replace(b'\\"', b"__")
        array = np.frombuffer(data, np.uint8)
        is_in_text = ((np.cumsum(array == ord('"')) + self._is_in_text) % 2).astype(np.bool_)
        steps = np.isin(array, np.frombuffer(b"{[", np.uint8)).astype(np.int64)
        steps -= np.isin(array, np.frombuffer(b"}]", np.uint8))
        depths = np.cumsum(np.where(is_in_text, 0, steps)) + self._depth
        if not len(array):
            return None
        self._is_in_text, self._depth = bool(is_in_text[-1]), int(depths[-1])
        return _too_deep("JSON", int(depths.max()))


def guard_of(format: RdfFormat) -> Guard:
    """What watches over the bytes of a syntax, in their order."""
    if format == RdfFormat.RDF_XML:
        return XmlGuard()
    return JsonGuard() if format == RdfFormat.JSON_LD else TripleTermGuard()


def _too_deep(what: str, depth: int) -> str | None:
    return f"{what} nested more than {MAX_DEPTH[what]} deep" if depth > MAX_DEPTH[what] else None


def _entities_are_harmless(data: bytes) -> bool:
    for begin in re.finditer(rb"<!ENTITY", data):
        entity = _ENTITY.match(data, begin.start())
        if entity is None:
            if len(data) - begin.start() > _MOST_OF_AN_ENTITY:
                return False
            continue  # it goes on in the next bytes, and is seen again with them
        value = entity[4] or entity[5] or b""
        if entity[1] or entity[3] or len(value) > MAX_ENTITY_CHARACTERS or _REFERENCE.search(value):
            return False
    return True
