"""Short forms in a mention replaced by their long forms, as a document or a table defines them.

BioSyn did this to the published queries of NCBI-disease and BC5CDR before any look-up (Sung et al. 2020, "Biomedical
entity representations with synonym marginalization", ACL). Rules for case, plurals and mentions that define their own
short form are added.
"""

from __future__ import annotations

import csv
import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from onoma.errors import InputError, checked_path
from onoma.files.byte_order_marks import without_byte_order_mark
from onoma.files.csv_problems import csv_problem
from onoma.linking.abbreviations import BRACKETS, one_line
from onoma.linking.links import check_text

_MAX_WORDS = 6
_MAX_CHARACTERS = 100
_MAX_ROUNDS = 8
_MAX_EXPANDED_LENGTH = 10_000
_VOWELS = frozenset("aeiouy")
_CLOSED = re.compile(r"\s*(?:[;,][^()\[\]]*)?[)\]]")
_FIRST_WORD = re.compile(r"\s+(\w+)(?!\w)")


@dataclass(frozen=True)
class AbbreviationTable:
    """Short forms that mean the same in every document, such as a hospital's or project's own list.

    Attributes:
        definitions: Long forms by short form.
        ambiguous: Short forms with several long forms, and which. They are never expanded: a table cannot know which
            one is meant.

    Raises:
        InputError: a form is not text, or is blank.
    """

    definitions: dict[str, str]
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.definitions, Mapping):
            raise InputError(
                "this is no table of short forms",
                field="definitions",
                expected="a mapping of each short form to its long form",
                found=repr(self.definitions),
                fix="read a file by AbbreviationTable.from_file",
            )
        for short, long in self.definitions.items():
            where = f"definitions[{short!r}]"
            for form in (short, long):
                check_text(form, "a form", field=where)
                if not form.strip():
                    raise InputError("a form without text", field=where, expected="a short form and its long form")

    @classmethod
    def from_file(cls, path: str | Path) -> AbbreviationTable:
        """Read ``short<TAB>long`` lines, or ``short,long`` or ``short;long`` from a file whose name ends in ``.csv``.

        UTF-8, plain, gzip or alone in a zip. Empty lines are skipped, and so are the words "short, long" before all
        definitions; "long, short" there say that the long forms come first. Outer white space is dropped, inner white
        space collapsed. A definition may be repeated (ignoring the case of the long form); two different long forms
        make the short form ambiguous, which is not an error.

        Raises:
            InputError: the file cannot be read, a line does not have two filled fields, a short form has no letter or
                digit at its beginning or more than six words, or a long form contains its short form as a word. File
                and line are named.
        """
        file = checked_path(path)
        long_forms: dict[str, dict[str, str]] = {}
        for line, fields in _table_lines(file):
            short, long = _checked_definition(fields, file, line)
            long_forms.setdefault(short, {}).setdefault(long.casefold(), long)
        if not long_forms:
            expected = f"short{',' if _is_csv(file) else '<TAB>'}long on each line"
            raise InputError("the table has no definitions", path=file, expected=expected)
        return cls(
            definitions={short: next(iter(longs.values())) for short, longs in long_forms.items() if len(longs) == 1},
            ambiguous={short: tuple(longs.values()) for short, longs in long_forms.items() if len(longs) > 1},
        )


@dataclass(frozen=True, slots=True)
class Expansion:
    """A short form in a mention, and what replaced it.

    Attributes:
        short_form: As the definitions spell it.
        long_form: As the definitions spell it.
        source: Where it is defined: in the mention's "context" or in a "table"; unset if unknown.
    """

    short_form: str
    long_form: str
    source: Literal["context", "table"] | None = None


def expand(mention: str, definitions: Mapping[str, str]) -> str:
    """The mention with its short forms replaced; see `expand_with_trace`.

    Example:
        >>> expand("HCC patients", {"HCC": "hepatocellular carcinoma"})
        'hepatocellular carcinoma patients'
    """
    return expand_with_trace(mention, definitions)[0]


def expand_with_trace(mention: str, *definitions: Mapping[str, str]) -> tuple[str, tuple[Expansion, ...]]:
    """The mention with its short forms replaced, and which these were.

    A short form is replaced if it is a word, that is, has no letter, digit or accent beside it ("BRCA1-linked",
    "DMD/BMD", "HD's", but never inside "BRCA12"). The longest one at a place wins. Rules:

    * Case counts. A word in lower case stands for a short form in capitals only if it has a digit or no vowel ("hcc",
      "g6pd"), or is the whole mention ("copd"), so that "all" and "was" stay words.
    * Plurals: "HCCs" is found by "HCC", and "HCC" by "HCCs"; the long form is inserted as it is defined.
    * If the mention defines its short form, "long form (SF)" or "SF (long form)", only the long form remains.
    * If the next word repeats the last one of the long form ("HD disease"), it is kept only once.

    Long forms are expanded too ("HDP": "HD protein"), so a second expansion changes nothing. A mention for which that
    would not end, because definitions refer to each other in a circle, is left unchanged.

    Args:
        mention: Any text.
        definitions: Long forms by short form; at each place the first mapping that has the short form, in whatever
            spelling, decides.
    """
    text, trace = mention, dict[Expansion, None]()
    for _ in range(_MAX_ROUNDS):
        expanded = _expand_once(text, definitions, trace)
        if expanded == text:
            return text, tuple(trace)
        if len(expanded) > max(_MAX_EXPANDED_LENGTH, len(mention)):
            break
        text = expanded
    return mention, ()


def _expand_once(text: str, definitions: Sequence[Mapping[str, str]], trace: dict[Expansion, None]) -> str:
    """Replace the short forms of ``text`` from left to right, the longest at each place."""
    pieces, done = [], 0
    for begin in _word_begins(text):
        found = _short_form_at(text, begin, definitions) if begin >= done else None
        if found is None:
            continue
        end, short, defined = found
        long = one_line(defined)
        start, end, replacement = _in_context(text, begin, end, long)
        if start < done or replacement == text[start:end]:
            continue
        pieces += [text[done:start], replacement]
        done = end
        trace[Expansion(short, long)] = None
    return "".join([*pieces, text[done:]])


def _word_begins(text: str) -> Iterator[int]:
    for position, character in enumerate(text):
        if character.isalnum() and not (position > 0 and _in_word(text[position - 1])):
            yield position


def _word_ends(text: str, begin: int) -> list[int]:
    """Where a short form that begins here may end, the farthest first: six words and 100 characters on at most."""
    ends = []
    n_words = 1
    for position in range(begin + 1, min(len(text), begin + _MAX_CHARACTERS) + 1):
        before, after = text[position - 1], text[position : position + 1]
        if before.isspace():
            n_words += not after.isspace()
            if n_words > _MAX_WORDS:
                break
        elif not (after and _in_word(after)):
            ends.append(position)
    return ends[::-1]


def _in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def _short_form_at(text: str, begin: int, definitions: Sequence[Mapping[str, str]]) -> tuple[int, str, str] | None:
    """Where the longest short form that begins here ends, how it is spelt where it is defined, and its long form."""
    ends = _word_ends(text, begin)
    length = len(text.strip()) if ends else 0
    for end in ends:
        alone = end - begin == length
        words = dict.fromkeys((_composed(text[begin:end]), one_line(text[begin:end])))
        spellings = [spelling for word in words for spelling in _spellings(word, alone=alone)]
        for defined, spelling in itertools.product(definitions, spellings):
            if spelling in defined:
                return end, spelling, defined[spelling]
    return None


def _composed(text: str) -> str:
    """On one line, each accent a part of its letter, as finders and tables have short forms."""
    return one_line(unicodedata.normalize("NFC", text))


def _spellings(word: str, *, alone: bool) -> Iterator[str]:
    """Short forms that the word may stand for, the likeliest first."""
    yield word
    stem = word[:-1] if len(word) > 2 and word.endswith("s") else ""
    if stem and not stem[-1].islower():
        yield stem
    if not word[-1].islower():
        yield f"{word}s"
    if word == word.lower() and (alone or not _VOWELS.intersection(word) or any(map(str.isdigit, word))):
        yield word.upper()
        yield f"{word.upper()}s"
        if stem:
            yield stem.upper()


def _in_context(text: str, begin: int, end: int, long: str) -> tuple[int, int, str]:
    """What to replace, and by what, where the mention holds some of the long form already."""
    before, after = text[:begin], text[end:]
    opened = before.rstrip()
    if opened.endswith(("(", "[")) and (closed := _CLOSED.match(after)):
        head = opened[:-1].rstrip()
        if _ends_with(head, long):  # long form (SF)
            return len(head), end + closed.end(), ""
    for pattern in BRACKETS:
        bracket = pattern.match(after.lstrip())
        if bracket is not None and one_line(bracket[1]).casefold() == long.casefold():  # SF (long form)
            return begin, end + len(after) - len(after.lstrip()) + bracket.end(), one_line(bracket[1])
    head, _, last = long.rpartition(" ")
    following = _FIRST_WORD.match(after)
    if head and following is not None and following[1].casefold() in {last.casefold(), f"{last.casefold()}s"}:
        return begin, end, head
    return begin, end, long


def _ends_with(text: str, long: str) -> bool:
    """Whether the text ends with these words, case and white space aside."""
    wanted = long.casefold().split()
    words = text.casefold().rsplit(maxsplit=len(wanted))
    return words[-len(wanted) :] == wanted


def _table_lines(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line that is neither blank nor the heading, the short form first."""
    from onoma.files.text_files import whole_file  # with polars, which linking does without

    lines = without_byte_order_mark(whole_file(file), file).splitlines()
    decoded = (_table_line(raw, number, file) for number, raw in enumerate(lines, 1))
    # In a .tsv a quote is an ordinary character.
    rows = (
        csv.reader(decoded, delimiter=_dividing_sign(lines), strict=True)
        if _is_csv(file)
        else csv.reader(decoded, delimiter="\t", quoting=csv.QUOTE_NONE)
    )
    is_first, long_first = True, False
    while True:
        number = rows.line_num + 1
        try:
            fields = next(rows, None)
        except UnicodeDecodeError:
            raise InputError(
                "the line cannot be read",
                path=file,
                line=rows.line_num + 1,
                expected="UTF-8, one definition a line",
                fix="save the file as UTF-8",
            ) from None
        except csv.Error as error:
            raise InputError(
                f"the line cannot be read: {csv_problem(error)}",
                path=file,
                line=number,
                expected="CSV, a short form and a long form",
                fix="close each quote, and double the quotes inside quoted fields",
            ) from None
        if fields is None:
            return
        cells = [_composed(field) for field in fields]
        if not any(cells):
            continue
        heading = [cell.lower() for cell in cells] if is_first else []
        is_first = False
        if sorted(heading) == ["long", "short"]:
            long_first = heading[0] == "long"
            continue
        yield number, cells[::-1] if long_first and len(cells) == 2 else cells


def _dividing_sign(lines: Sequence[bytes]) -> str:
    """A semicolon where the first line that says something is two fields by that sign, and no short form has it."""
    first = next((line.decode(errors="replace") for line in lines if line.strip()), "")
    by_comma, by_semicolon = (next(csv.reader([first], delimiter=sign)) for sign in ",;")
    return ";" if len(by_semicolon) == 2 and (len(by_comma) != 2 or ";" in by_comma[0]) else ","


def _table_line(raw: bytes, number: int, file: Path) -> str:
    if b"\0" in raw:
        raise InputError("NUL byte in a text file", path=file, line=number, fix="get the file again")
    return raw.decode() + "\n"


def _is_csv(file: Path) -> bool:
    return file.name.lower().removesuffix(".gz").removesuffix(".zip").endswith(".csv")


def _checked_definition(fields: list[str], file: Path, line: int) -> tuple[str, str]:
    separator = "a comma or semicolon" if _is_csv(file) else "a tab"
    if len(fields) != 2 or not all(fields):
        raise InputError(
            "not a definition",
            path=file,
            line=line,
            expected=f"a short form and a long form with {separator} between them",
            found=repr(fields),
        )
    short, long = fields
    if not short[0].isalnum() or len(short.split()) > _MAX_WORDS or len(short) > _MAX_CHARACTERS:
        raise InputError(
            "a short form that is never looked for",
            path=file,
            line=line,
            expected=f"at most {_MAX_WORDS} words and {_MAX_CHARACTERS} characters, beginning with a letter or digit",
            found=short,
        )
    if any(_short_form_at(long, begin, [{short: long}]) for begin in _word_begins(long)):
        raise InputError(
            "a long form that contains its short form",
            path=file,
            line=line,
            found=f"{short} = {long}",
            fix="write the long form out, or remove the line",
        )
    return short, long
