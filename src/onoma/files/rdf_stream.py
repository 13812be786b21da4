"""RDF of any size, a triple at a time: RDF/XML, Turtle, N-Triples, N-Quads, TriG, JSON-LD.

The parser is pyoxigraph's. A file that would make it swell or recurse without end is refused before it reaches the
parser (`onoma.files.rdf_guards`), and an RDF/XML file that just stops is told from one that is whole. What
is no RDF cannot be read past the place: that ends the import whatever ``on_error`` says; an IRI that breaks the rules
does not, nor (but in Turtle and its kin) a language tag. Nothing outside the file is ever read: no imports, no remote
contexts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, cast

import pyoxigraph
from pyoxigraph import Quad, RdfFormat

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.byte_order_marks import without_byte_order_mark
from onoma.files.decoding import TextDecoder
from onoma.files.rdf_guards import XmlTexts, guard_of
from onoma.files.reading import Reading
from onoma.files.text_files import read_bytes

_BY_EXTENSION = {
    ".ttl": RdfFormat.TURTLE,
    ".nt": RdfFormat.N_TRIPLES,
    ".nq": RdfFormat.N_QUADS,
    ".trig": RdfFormat.TRIG,
    ".jsonld": RdfFormat.JSON_LD,
}
_SNIFFED_BYTES = 1 << 16
_COMMENTS = re.compile(rb"\s+|#[^\n]*\n")
_XML_PROLOG = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE(?:[^\[>]|\[.*?\]\s*(?=>))*>", re.DOTALL)
_XML_ROOT = re.compile(rb"<((?:[\w.-]+:)?([\w.-]+))(?=[\s/>])")
_BLOCK_BYTES = 1 << 16
_TAIL_BYTES = 4 * _BLOCK_BYTES
_TRIPLES_PER_TELL = 1 << 12
_OTHER_SYNTAXES = (
    (re.compile(rb"(?:Prefix\s*\(|Ontology\s*\()"), "OWL functional syntax"),
    (re.compile(rb"(?:Prefix:|Ontology:)"), "OWL Manchester syntax"),
)
_CONVERT = "convert it with ROBOT: robot convert --input FILE --output FILE.ttl"


@dataclass(frozen=True)
class _Syntax:
    format: RdfFormat
    root: bytes = b""
    """Of XML: the name of the root element."""


def rdf_triples(file: SourceFile, reading: Reading) -> Iterator[Quad]:
    """Yield the triples of a file in their order; those of named graphs too.

    IRIs are as they are written, whether they may be written so or not (of many ontologies some link to a page has a
    space in it), and so are language tags of RDF/XML and JSON-LD.

    Args:
        file: Plain or gzip, on disk or in an archive. Its syntax is told by its extension (``.ttl``, ``.nt``, ``.nq``,
            ``.trig``, ``.jsonld``), else by its beginning.
        reading: Told of the file and the progress.

    Raises:
        InputError: no RDF, or in a syntax that is not read; damaged, cut off, or made to do harm.
    """
    reading.files.append(file.container)
    syntax = _syntax(file)
    feed = _Feed(file, syntax)
    n_triples = 0
    try:
        for triple in _parsed(feed, syntax):
            yield triple
            n_triples += 1
            if n_triples % _TRIPLES_PER_TELL == 0:
                reading.tell_share(n_triples, feed.share, file.base)
    except (SyntaxError, ValueError, OSError) as error:
        raise _syntax_error(error, file, syntax) from None
    reading.tell(n_triples, n_triples, file.base, last=True)


def line_of(file: SourceFile, is_meant: Callable[[Quad], bool]) -> int | None:
    """The line of the first triple that is meant, as far as it can be told (not where everything is on one line)."""
    syntax = _syntax(file)
    feed = _Feed(file, syntax, by_line=True)
    try:
        return next((feed.line for triple in _parsed(feed, syntax) if is_meant(triple)), None)
    except (SyntaxError, ValueError, OSError):
        return None


def _parsed(feed: _Feed, syntax: _Syntax) -> Iterator[Quad]:
    guard = feed.guard
    for triple in pyoxigraph.parse(cast(IO[bytes], feed), format=syntax.format, lenient=True):
        guard.has_triple = True
        yield triple


class _Feed:
    """The bytes of a file as pyoxigraph asks for them, looked at before it gets them."""

    def __init__(self, file: SourceFile, syntax: _Syntax, *, by_line: bool = False) -> None:
        self.share = 0.0
        self.line = 0
        """Number of the last line handed out, if it is done by line."""
        self.guard = guard_of(syntax.format)
        self._file, self._syntax, self._by_line = file, syntax, by_line
        self._texts = XmlTexts() if syntax.root else None
        self._blocks = read_bytes(file, block_bytes=_BLOCK_BYTES)
        self._data, self._n_taken = b"", 0
        self._ready, self._n_given = b"", 0
        self._tail = bytearray()
        self._decoder = TextDecoder(file.path)
        self._is_first = self._begins_line = True

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes; none at the end of the file."""
        while self._n_given == len(self._ready):
            piece = self._next()
            if not piece:
                return b""
            self._ready, self._n_given = piece if self._texts is None else self._texts.plain(piece), 0
            self._keep_tail()
            problem = self.guard.problem(self._ready) if self._ready else None
            if problem:
                raise InputError(problem, path=self._file.path, fix="get the file from its publisher")
        begin = self._n_given
        self._n_given = len(self._ready) if size < 0 else min(begin + size, len(self._ready))
        return self._ready[begin : self._n_given]

    def _next(self) -> bytes:
        """The next block, or the rest of its next line; none at the end of the file."""
        while self._n_taken == len(self._data):
            block = next(self._blocks, None)
            if block is None:
                self._decoder.decode(b"", is_last=True)
                self._check_end()
                return b""
            self._decoder.decode(block.data)
            self._data, self._n_taken, self.share = block.data, 0, block.share
            if self._is_first:
                self._data = without_byte_order_mark(self._data, self._file.path)
                self._is_first = False
        begin, end = self._n_taken, len(self._data)
        if self._by_line:
            end = (self._data.find(b"\n", begin) + 1) or end
            self.line += self._begins_line
        piece = self._data[begin:end]
        self._n_taken, self._begins_line = end, piece.endswith(b"\n")
        return piece

    def _keep_tail(self) -> None:
        """Keep the last bytes of the text without comments; of white space, which may follow at any length, some."""
        if self._ready.isspace() and self._tail[-1:].isspace():
            return
        self._tail += self._ready
        if len(self._tail) > 2 * _TAIL_BYTES:
            del self._tail[:-_TAIL_BYTES]

    def _check_end(self) -> None:
        root = self._syntax.root
        if not root:
            return
        tail = bytes(self._tail.rstrip())
        is_closed = re.search(rb"</" + re.escape(root) + rb"\s*>$", tail)
        is_open = self._texts is not None and self._texts.is_open
        if is_open or (not is_closed and not re.search(rb"<" + re.escape(root) + rb"(?:\s[^<]*)?/>$", tail)):
            raise InputError(
                "the XML is cut off",
                path=self._file.path,
                expected=f"</{root.decode()}> at the end",
                found=tail[-40:].decode("utf-8", "backslashreplace"),
                fix="get the file again",
            )


def _syntax(file: SourceFile) -> _Syntax:
    """What the file is written in.

    Raises:
        InputError: in what is not read.
    """
    start = b""
    for block in itertools.islice(read_bytes(file, block_bytes=_SNIFFED_BYTES), 16):
        start += block.data
        if len(start) >= 16 * _SNIFFED_BYTES or _XML_ROOT.match(start, _end_of(_XML_PROLOG, start)):
            break
    start = without_byte_order_mark(start, file.path)
    extension = re.sub(r"\.gz$", "", file.base.lower()).rpartition(".")[2]
    of_extension = _BY_EXTENSION.get(f".{extension}")
    root = _XML_ROOT.match(start, _end_of(_XML_PROLOG, start))
    if root and (of_extension is None or start.lstrip().startswith((b"<?", b"<!"))):
        return _xml_syntax(file, root)
    text = start[_end_of(_COMMENTS, start) :]
    for pattern, name in _OTHER_SYNTAXES:
        if pattern.match(text):
            raise InputError(f"{name} is not read", path=file.path, line=1, expected=_EXPECTED, fix=_CONVERT)
    if text.startswith((b"format-version:", b"[Term]")):
        raise InputError("this is an OBO file", path=file.path, line=1, expected=_EXPECTED, fix="use format obo")
    if of_extension:
        return _Syntax(of_extension)
    if text.startswith(b"{"):
        if re.search(rb'^\{\s*"(?:graphs|meta)"', text):
            raise InputError(
                "this is OBO Graphs JSON", path=file.path, line=1, expected=_EXPECTED, fix="use format obographs"
            )
        if re.match(rb'\{\s*"resourceType"', text):
            raise InputError(
                "this is a FHIR resource", path=file.path, line=1, expected=_EXPECTED, fix="use format fhir"
            )
        return _Syntax(RdfFormat.JSON_LD)
    if re.match(rb"\[\s*\{", text):
        return _Syntax(RdfFormat.JSON_LD)
    if re.match(rb"@prefix|@base|PREFIX\s|BASE\s|<|\[|_:", text, re.IGNORECASE):
        return _Syntax(RdfFormat.TRIG)  # TriG takes all of Turtle and N-Triples
    raise InputError(
        "this is no RDF",
        path=file.path,
        line=1,
        expected=_EXPECTED,
        found=text.partition(b"\n")[0].rstrip()[:40].decode("utf-8", "backslashreplace"),
        fix="check the file; what its extension says counts for .ttl, .nt, .nq, .trig and .jsonld",
    )


_EXPECTED = "RDF/XML, Turtle, N-Triples, TriG or JSON-LD"


def _xml_syntax(file: SourceFile, root: re.Match[bytes]) -> _Syntax:
    local = root[2].decode("utf-8", "replace")
    if local == "Ontology":
        raise InputError("OWL/XML is not read", path=file.path, expected=_EXPECTED, fix=_CONVERT)
    if local != "RDF":
        raise InputError(
            "this is another kind of XML file",
            path=file.path,
            expected="the root element <rdf:RDF>",
            found=f"<{root[1].decode('utf-8', 'replace')}>",
            fix="check that this is the file that is meant",
        )
    return _Syntax(RdfFormat.RDF_XML, root[1])


def _end_of(pattern: re.Pattern[bytes], data: bytes) -> int:
    """Where what the pattern matches, over and over, ends."""
    position = 0
    while match := pattern.match(data, position):
        position = match.end()
    return position


def _syntax_error(error: Exception, file: SourceFile, syntax: _Syntax) -> InputError:
    message = str(error)
    line: int | None = getattr(error, "lineno", None)
    if line is None and syntax.format == RdfFormat.RDF_XML:
        line = _line_of_error(file, syntax)
    problem = f"this is not {syntax.format.name}"
    found = re.sub(r"^Parser error (?:at|between) .*?: |\s*\(line \d+\)$", "", message, flags=re.DOTALL)
    fix = "get the file again"
    if "Only UTF-8 is supported" in message:
        problem, found = "the file says that it is not UTF-8", ""
        fix = 'convert it (e.g. iconv -f ISO-8859-1 -t UTF-8) and write encoding="UTF-8" into its first line'
    elif "LoadDocumentCallback" in message:
        problem, found = "the file refers to a context elsewhere, which is not fetched", ""
        fix = "get the file with its context inside, or in Turtle"
    return InputError(problem, path=file.path, line=line, found=found or None, fix=fix)


def _line_of_error(file: SourceFile, syntax: _Syntax) -> int | None:
    """The line at which the parser gives up, when it is fed by line (RDF/XML does not tell)."""
    feed = _Feed(file, syntax, by_line=True)
    try:
        for _ in _parsed(feed, syntax):
            pass
    except (SyntaxError, ValueError, OSError):
        return feed.line
    return None
