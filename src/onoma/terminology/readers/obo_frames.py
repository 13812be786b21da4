"""The frames of an OBO file, as the parser (fastobo) has them: read a few MiB at a time, mended where they are not OBO.

A clause that nothing is read from is skipped where it is not OBO, and so are the references behind a text; blanks in
namespaces are taken as escaped; what OBO 1.2 allowed is written as OBO 1.4 has it. Any other clause that is not OBO is
rejected, and the frame with it if it says which term this is.
"""

from __future__ import annotations

import bisect
import contextlib
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.files.archives import SourceFile
from onoma.files.reading import Reading
from onoma.files.text_files import marked_lines, read_blocks, reject_line


@dataclass(frozen=True)
class Part:
    """Whole frames of the file, in the first part after the header; ``first_line`` counts from 1."""

    path: Path
    lines: list[str]
    first_line: int


def parts(file: SourceFile, reading: Reading) -> Iterator[Part]:
    """The file a few MiB at a time: the parsed frames of a whole one take ten times its size."""
    pending: list[str] = []
    first_line = 1
    bad: dict[int, tuple[bytes, str]] = {}
    for block in read_blocks(file, reading):
        lines, bad_here = marked_lines(block, reading.encoding)
        bad |= bad_here
        last_frame = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].startswith("[")), None)
        if last_frame is None:
            pending += lines
            continue
        yield _without_bad(Part(file.path, [*pending, *lines[:last_frame]], first_line), bad, reading)
        pending, first_line = lines[last_frame:], block.first_line + last_frame
    yield _without_bad(Part(file.path, pending, first_line), bad, reading)


def _without_bad(part: Part, bad: dict[int, tuple[bytes, str]], reading: Reading) -> Part:
    """The part without the frames that have a line which is no text, and without such lines of the header."""
    lines = part.lines
    here = [number for number in bad if number < part.first_line + len(lines)]
    starts = [row for row, line in enumerate(lines) if line.startswith("[")] if here else []
    ends = [*starts[1:], len(lines)]
    left_out = dict[int, int]()
    for number in here:
        reject_line(reading, part.path, number, *bad.pop(number))
        at = number - part.first_line
        frame = bisect.bisect(starts, at)
        begin, end = (starts[frame - 1], ends[frame - 1]) if frame else (at, at + 1)
        left_out[begin] = end
    for begin, end in left_out.items():
        lines[begin:end] = [""] * (end - begin)
    return part


def repeated_ids(file: SourceFile, reading: Reading) -> set[str]:
    """Ids that several frames of the file have, whatever frames they are."""
    seen, repeated = set[bytes](), set[bytes]()
    for block in read_blocks(file, Reading(encoding=reading.encoding)):
        for found in _ID_BYTES.findall(block.data):
            (repeated if found in seen else seen).add(found)
    return {_ESCAPE.sub(r"\1", found.decode("utf-8", "replace")) for found in repeated}


def frames(part: Part, reading: Reading) -> Iterator[Any]:
    """The header, if it is here, and each frame that is OBO; the others are rejected."""
    import fastobo

    try:
        with _panic_as_syntax_error():
            reader = fastobo.iter(io.BytesIO(_document(part.lines)), ordered=True)
            found = [reader.header(), *reader]
    except SyntaxError:
        if _rewrite_old_ways(part.lines, reading):
            yield from frames(part, reading)
            return
        yield from _frames_one_by_one(part, reading)
    else:
        yield from found if found[0] else found[1:]


def _rewrite_old_ways(lines: list[str], reading: Reading) -> bool:
    """Write what OBO 1.2 allows and the parser does not take as OBO 1.4 has it; whether there was any."""
    is_rewritten = False
    for at, line in enumerate(lines):
        if found := _WITHOUT_SCOPE.match(line):
            tag, text = found.groups()
            scope = "RELATED" if tag == "synonym" else tag.removesuffix("_synonym").upper()
            lines[at] = f"synonym: {text} {scope} {line[found.end() :]}"
            reading.note("synonyms without a scope, which counts as RELATED", tag == "synonym")
        elif found := _OLD_TAG.match(line):
            lines[at] = f"{_OLD_TAGS[found[1]]}:{line[found.end() :]}"
        is_rewritten |= found is not None
    return is_rewritten


def _frames_one_by_one(part: Part, reading: Reading) -> Iterator[Any]:
    starts = [number for number, line in enumerate(part.lines) if line.startswith("[")]
    for begin, end in itertools.pairwise([0, *starts, len(part.lines)]):
        document = _frame(part, range(begin, end), reading)
        if document is None:
            continue
        if document.header:
            yield document.header
        yield from document


def _frame(part: Part, rows: range, reading: Reading) -> Any:
    """The frame that these rows are, without clauses that are not OBO; ``None``: it is rejected as a whole.

    A clause that nothing is read from is passed over, and so are the references behind a text; another one is rejected,
    and the frame with it if it says which term this is.

    The parser stops at the first clause that is not OBO. Of a long frame, the clauses after it are parsed a few at a
    time, then more, so that it is not parsed anew for each bad clause.
    """
    written = part.lines[rows.start : rows.stop]
    tags_mended: dict[int, str] = {}
    clauses = _clauses(part, rows)
    beginning = range(rows.start, clauses.start)
    n_parsed, n_next = 0, len(clauses)
    while True:
        asked = clauses[n_parsed:][:n_next]
        while asked.stop < clauses.stop and _GOES_ON.search(part.lines[asked[-1]]):
            asked = range(asked.start, asked.stop + 1)
        try:
            frame = _parsed(part, [*beginning, *asked])
        except SyntaxError as caught:
            if asked.stop < clauses.stop and _is_of_open_quote(caught):
                n_next *= 2  # it may be closed in a later line
                continue
            row, error = _first_error(part, beginning, asked, caught)
        else:
            if len(asked) == len(clauses):
                for tag in tags_mended.values():
                    reading.note(f"clauses that are not quite OBO ({tag}), read anyway", 1)
                return frame
            is_rest = asked.stop == clauses.stop
            n_parsed, n_next = (0, len(clauses)) if is_rest else (n_parsed + len(asked), 2 * n_next)
            continue
        line, said = part.lines[row], written[row - rows.start]
        tag = _tag(line) if error.lineno else ""
        if _KIND_OF_NO_TERM.match(written[0]):
            reading.note("Typedef and Instance frames that are not OBO, left out", 1)
            return None
        if tag in _NOT_READ:
            reading.note(f"clauses that are not OBO, from which nothing is read ({tag}), skipped", 1)
            part.lines[row] = ""
        elif tag and (mended := _mended(line)) != line:
            tags_mended[row] = tag
            part.lines[row] = mended
        else:
            tags_mended.pop(row, None)
            is_clause = bool(tag) and tag not in _OF_THE_WHOLE
            _reject_syntax(error, part, row, said, reading, what="clause" if is_clause else "frame")
            if not is_clause:
                return None
            part.lines[row] = ""
        if len(clauses) > _FEW_CLAUSES:
            n_parsed, n_next = max(row - clauses.start, 0), _FEW_CLAUSES


def _clauses(part: Part, rows: range) -> range:
    """The rows of a frame whose clauses can be parsed a few at a time, after the rows that begin it."""
    if not part.lines[rows.start].startswith("["):
        return rows  # the header, any clauses of which are one
    of_id = next((row for row in rows if _tag(part.lines[row]) == "id"), rows.stop - 1)
    return range(of_id + 1, rows.stop)


def _parsed(part: Part, rows: Sequence[int]) -> Any:
    """The frame that these rows are."""
    import fastobo

    with _panic_as_syntax_error():
        return fastobo.load(io.BytesIO(_document([part.lines[row] for row in rows])), threads=1)


def _is_of_open_quote(error: SyntaxError) -> bool:
    return (error.text or "")[(error.offset or 1) - 1 :].startswith('"')


def _first_error(part: Part, beginning: range, clauses: range, error: SyntaxError) -> tuple[int, SyntaxError]:
    """The row of the first clause that is not OBO, and its error; without a ``lineno``, one of the whole frame.

    The parser tells the row where it stops. If a quote is opened in an earlier row, it takes the text to go on up to
    the next quote, whichever row that is in.
    """
    rows = [*beginning, *clauses]
    while True:
        at = min(error.lineno or 1, len(rows)) - 1
        row, rows = rows[at], rows[:at]
        is_open = any(_ESCAPE.sub("", part.lines[before]).count('"') % 2 for before in rows)
        if at < len(beginning) or not is_open or _GOES_ON.search(part.lines[rows[-1]]):
            return row, error
        try:
            _parsed(part, rows)
        except SyntaxError as earlier:
            error = earlier
        else:
            return row, error


def _tag(line: str) -> str:
    found = _TAG.match(line)
    return found[1] if found else ""


def _mended(line: str) -> str:
    """A clause with what is often wrong and means one thing only put right; the same, where there is no such thing."""
    if found := _WITH_REFERENCES.match(line):  # nothing is read from them, nor from what stands behind
        return f"{found[1]} []"
    if found := _NAMESPACE.match(line):
        return found[1] + re.sub(r"(?<!\\) (?=\S)", r"\\ ", found[2])
    if found := _TRUTH.match(line):
        return found[0].lower()
    return line


def _document(lines: list[str]) -> bytes:
    r"""The lines as fastobo takes them.

    It knows no lines that are comments (OBO 1.2 has them anywhere), nor ``\W``, which is a space: a W to it. Of a
    default namespace it takes the first word alone.
    """
    texts = ("" if line.lstrip().startswith("!") else _with_spaces(line) for line in lines)
    return ("\n".join(texts) + "\n").encode()


def _with_spaces(line: str) -> str:
    r"""A line of which the text has spaces where it says ``\W``, and the default namespace has them escaped."""
    if line.startswith("default-namespace:"):
        return _mended(line)
    match = _TEXT.match(line) if "\\W" in line else None
    if match is None:
        return line
    return _ESCAPE.sub(_space_or_same, match[0]) + line[match.end() :]


def _space_or_same(escape: re.Match[str]) -> str:
    return " " if escape[1] == "W" else escape[0]


@contextlib.contextmanager
def _panic_as_syntax_error() -> Iterator[None]:
    """Fastobo panics on some bad values instead of raising; here that is a syntax error without a line."""
    try:
        yield
    except BaseException as error:  # the panics of a Rust library are no Exception, and have no name to import
        if type(error).__name__ != "PanicException":
            raise
        raise SyntaxError("a value that its tag can have") from None


def _reject_syntax(error: SyntaxError, part: Part, row: int, said: str, reading: Reading, *, what: str) -> None:
    """Reject a line that an error is about, or the frame that it is in."""
    reading.reject(
        f"this is not OBO; the {what} cannot be read",
        path=part.path,
        line=part.first_line + row,
        text=said,
        expected=_in_words(error),
        fix=None if any(text.startswith("[") for text in part.lines[: row + 1]) or part.first_line > 1 else _SEE_FORMAT,
    )


def _in_words(error: SyntaxError) -> str:
    """What the parser expects: it names rules of its grammar, which are told in words where files often break them."""
    rules = str(error.msg).removeprefix("expected ")
    if rules == "Comment" and error.offset == 1:
        return "an id: line first in its frame"
    return _WORDS.get(rules) or _WORDS.get(rules.rpartition(" ")[2]) or rules


def id_lines(part: Part) -> dict[str, list[int]]:
    """Where each id is given, 1-based; usually once."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(part.lines, part.first_line):
        if line.startswith("id:"):
            match = _ID.match(line)
            if match:
                found.setdefault(match[1], []).append(number)
    return found


_FEW_CLAUSES = 32
BEGINNING = "a line of the header, such as format-version: 1.4, or [Term]"
_SEE_FORMAT = "see that it is an OBO file (onoma terminology formats lists what else is read)"
_END_OF_LINE = "the end of the line: an id has no blank in it, and a comment has ! before it"
_WORDS = {
    "SynonymScopeSingle": (
        "EXACT, BROAD, NARROW or RELATED after the text, then references in brackets, [] where there are none"
    ),
    "XrefList": "references in brackets, without blanks in them and with commas between them; [] where there are none",
    "QuotedString": "a text in double quotes",
    "EOL or QuotedString": "an id without a blank in it; words about it stand in double quotes",
    "UnquotedPropertyValueTarget": "an id, or a text in double quotes",
    "UnquotedString": "a text, in which a { has a \\ before it",
    "Qualifier": 'NAME="VALUE" in braces; a { that belongs to the text has a \\ before it',
    "EOL": _END_OF_LINE,
    "Comment": _END_OF_LINE,
    "Id": "an id",
    "Boolean": "true or false",
    "CreationDate": "a date such as 2024-01-31",
    **dict.fromkeys(
        ("TermClause", "TypedefClause", "InstanceClause"),
        "a tag of OBO with its colon, such as name: or is_a:, and before each id: a line [Term]",
    ),
    "EntityFrame": "[Term], [Typedef] or [Instance] alone on its line",
    "HeaderClause": BEGINNING,
}
"""Rules of the parser, fastobo; of several it names the last one counts."""
_WITHOUT_SCOPE = re.compile(r'\s*((?:(?:exact|narrow|broad|related)_)?synonym):\s*("(?:[^"\\]|\\.)*")\s*(?=\[)')
_OLD_TAGS = {"use_term": "consider", **dict.fromkeys(("xref_analog", "xref_unk", "xref_unknown"), "xref")}
_OLD_TAG = re.compile(rf"\s*({'|'.join(_OLD_TAGS)}):")
_TAG = re.compile(r"\s*([\w-]+):")
_KIND_OF_NO_TERM = re.compile(r"\[(Typedef|Instance)\]")
_NOT_READ = frozenset(
    (
        "auto-generated-by", "builtin", "comment", "created_by", "creation_date", "date",
        "default-relationship-id-prefix", "disjoint_from", "id-mapping", "idspace", "intersection_of", "is_anonymous",
        "namespace-id-rule", "owl-axioms", "remark", "saved-by", "subset", "subsetdef", "synonymtypedef",
        "treat-xrefs-as-genus-differentia", "treat-xrefs-as-relationship", "treat-xrefs-as-reverse-genus-differentia",
        "union_of",
    )
)  # fmt: skip
"""Tags of the header and of terms."""
_OF_THE_WHOLE = frozenset(("id", "is_obsolete", "name"))
"""Tags without which a term would be another one."""
_WITH_REFERENCES = re.compile(r'(\s*(?:def|synonym):\s*"(?:[^"\\]|\\.)*"[^\[{]*?)\s*(?:\[.*)?$')
_NAMESPACE = re.compile(r"(\s*(?:default-)?namespace:\s*)([^!{]*[^!{\s])")
_TRUTH = re.compile(r"\s*is_obsolete:\s*(?i:true|false)\b")
_ID = re.compile(r"id:\s*(\S+)")
_ID_BYTES = re.compile(rb"^[ \t]*id:[ \t]*(\S+)", re.M)
_GOES_ON = re.compile(r"(?<!\\)(?:\\\\)*\\$")
"""A line that goes on in the next one."""
_TEXT = re.compile(r'\s*(?:name:.*|(?:synonym|def):\s*"(?:[^"\\]|\\.)*")')
_ESCAPE = re.compile(r"\\(.)")
