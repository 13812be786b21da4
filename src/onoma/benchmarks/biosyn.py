"""The two files of BioSyn's evaluation: queries and dictionary, ``id(s)||text`` per line.

Dictionary lines are ``id[|altid]||name``. Query lines are ``id(s)||mention(s)``: several ids, joined by
``|`` or ``+``, and a composite mention ("breast and ovarian cancer") as several texts joined by the same
signs. Both may be gzip. BioSyn itself has a file of queries for each document, ``processed_SPLIT/*.concept``, never
gzip, with lines ``document||start|end||class||mention(s)||id(s)``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from onoma.artifacts import write_file
from onoma.codes import meant_codes, split_codes
from onoma.errors import InputError, check_several
from onoma.files.reading import Reading
from onoma.files.text_files import only_file, text_lines
from onoma.pairs.mentions import cased_alike

_SUBFOLDER = "biosyn"

Asked: TypeAlias = str | tuple[str, str]
"""What a system is asked: a text, or one with its context."""


@dataclass(frozen=True, slots=True)
class Query:
    """A mention to link.

    Attributes:
        text: As in the file.
        parts: The texts of a composite mention; one text otherwise.
        gold: All right ids of the line; they are not told apart by part, as annotations give no order.
        cluster: What it shares with queries that it is not independent of, such as a document; unset: it is so of equal
            mentions.
        context: The text around it, for a linker that reads it.
        group: What it is of that is measured apart, such as a section.
        label: The codes as one's own file writes them, which may be one concept's own code, with a ``|`` in it
            (`onoma.codes`); unset: they are several.

    Raises:
        InputError: ``parts`` is one text, or empty.
    """

    text: str
    parts: tuple[str, ...]
    gold: frozenset[str]
    cluster: str | None = None
    context: str | None = None
    group: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        check_several(self.parts, "parts")
        if not self.parts:
            raise InputError("a query without a mention", field="parts", expected="a text, or several", found="none")

    @property
    def asked(self) -> tuple[Asked, ...]:
        """What is asked of each part."""
        return self.parts if self.context is None else tuple((part, self.context) for part in self.parts)

    @property
    def cluster_key(self) -> str:
        """Equal for queries that are not independent of each other, as equal mentions have equal answers."""
        return cased_alike(self.text) if self.cluster is None else self.cluster

    def led_on(self, successors: Mapping[str, str]) -> Query:
        """The same with what has replaced its retired codes."""
        if self.label is None:
            return replace(self, gold=frozenset(successors.get(code, code) for code in self.gold))
        one = successors.get(self.label.strip())
        codes = [one] if one else [successors.get(code, code) for code in split_codes(self.label)]
        return self if self.gold == set(codes) else replace(self, gold=frozenset(codes), label="|".join(codes))

    def meant_among(self, concept_ids: Container[str]) -> Query:
        """The same, with the code of one of these concepts if its label is that."""
        return self if self.label is None else replace(self, gold=frozenset(meant_codes(self.label, concept_ids)))


@dataclass(frozen=True, slots=True)
class DictionaryLine:
    """A name and the ids that carry it; of a terminology the codes of its concepts as they are (``a|b``)."""

    name: str
    ids: tuple[str, ...]


def read_queries(path: Path) -> list[Query]:
    """All queries of a file.

    Raises:
        InputError: a line is not ``id(s)||mention(s)``, or, in a file of one document (``.concept``), not as there; or
            the file is empty. File and line are named.
    """
    queries = []
    for number, ids, text in _fields(path):
        gold, parts = [part.strip() for part in re.split(r"[|+]", ids)], re.split(r"[|+]", text)
        for field, values, found in (("ids", gold, ids), ("mention", parts, text)):
            if not all(value.strip() for value in values):
                raise InputError(
                    "an empty part between separators",
                    path=path,
                    line=number,
                    field=field,
                    expected="| and + between several, as in composite mentions, and nowhere else",
                    found=found,
                )
        queries.append(Query(text=text, parts=tuple(parts), gold=frozenset(gold)))
    return queries


def read_dictionary(path: Path) -> list[DictionaryLine]:
    """All lines of a dictionary, in the order of the file.

    Ids are split on ``|`` only: the released evaluation takes ``D001|D002`` as two ids of a name and
    ``D001+D002`` as one id of its own, which no query has.

    Raises:
        InputError: a line is not ``id[|altid]||name`` (file and line are named), or the file is empty.
    """
    lines = []
    for number, ids, name in _fields(path):
        split = tuple(one.strip() for one in ids.split("|"))
        if not all(split):
            raise InputError("an empty part between separators", path=path, line=number, field="ids", found=ids)
        lines.append(DictionaryLine(name=name, ids=split))
    return lines


def read_mentions_as_names(path: Path) -> list[DictionaryLine]:
    """The mentions of a file of queries as names of a dictionary, as BioSyn adds training mentions.

    A composite mention is one name, its parts with a space between. Ids are split as in `read_dictionary`.

    Raises:
        InputError: as `read_queries`.
    """
    read_queries(path)  # refuses what is wrong
    return [
        DictionaryLine(" ".join(re.sub(r"[|+]", " ", text).split()), tuple(one.strip() for one in ids.split("|")))
        for _, ids, text in _fields(path)
    ]


def write_dictionary(lines: Iterable[DictionaryLine], path: str | Path, *, overwrite: bool = False) -> None:
    """Write names as lines ``id|id||name``, which `read_dictionary` reads.

    Raises:
        ArtifactExistsError: ``path`` is taken.
    """
    with write_file(path, overwrite=overwrite) as aside:
        text = "".join(f"{'|'.join(line.ids)}||{line.name}\n" for line in lines)
        aside.write_text(text, encoding="utf-8", newline="\n")


def merged(lines: Iterable[DictionaryLine]) -> list[DictionaryLine]:
    """One line for each name, with all ids that it has, in the order in which names and ids come first.

    Example:
        >>> merged([DictionaryLine("cold", ("D1",)), DictionaryLine("flu", ("D2",)), DictionaryLine("cold", ("D3",))])
        [DictionaryLine(name='cold', ids=('D1', 'D3')), DictionaryLine(name='flu', ids=('D2',))]

    Source:
        BioSyn's ``preprocess/dictionary_preprocess.py``, which makes the published dictionaries.
    """
    ids: dict[str, dict[str, None]] = {}
    for line in lines:
        ids.setdefault(line.name, {}).update(dict.fromkeys(line.ids))
    return [DictionaryLine(name, tuple(of_name)) for name, of_name in ids.items()]


def find_file(folder: Path, name: str, *, subfolder: str = _SUBFOLDER, instead: str = "") -> Path:
    """``name`` or ``name.gz`` in ``folder`` or its subfolder.

    Args:
        folder: Of the benchmark's data.
        name: The file's.
        subfolder: Where it may lie as well.
        instead: What would do as well, for who has neither.

    Raises:
        InputError: it is in none of these places.
    """
    if not folder.is_dir():
        raise InputError("this is not a folder", path=folder, fix="give the folder that holds the benchmark's data")
    found = _place_of(folder, name, subfolder)
    if found is None:
        raise InputError(
            f"the benchmark's file {name} is not here",
            path=folder,
            expected=f"{name} or {name}.gz, here or in {subfolder}/{instead and f', or {instead}'}",
            fix="give the folder that holds the benchmark's data",
        )
    return found


def query_files(folder: Path, split: str, *, instead: str = "") -> list[Path]:
    """``SPLIT_queries.txt``, or the files of all documents in ``processed_SPLIT``, by name; arguments of `find_file`.

    Raises:
        InputError: neither is there.
    """
    name, documents = f"{split}_queries.txt", f"processed_{split}"
    if not has_file(folder, name):
        for place in (folder / documents, folder / _SUBFOLDER / documents):
            documents_there = [file for file in sorted(place.glob("*.concept")) if not file.name.startswith(".")]
            # A document without mentions has an empty file.
            if found := [file for file in documents_there if file.read_bytes().strip()]:
                return found
    return [find_file(folder, name, instead=f"{documents}/*.concept" + (instead and f", or {instead}"))]


def ontology_file(folder: Path, *, instead: str = "") -> Path:
    """``dictionary.txt``, the names of the ontology alone, or ``train_dictionary.txt``, as BioSyn calls it.

    Raises:
        InputError: neither is there; ``instead`` says what would do as well.
    """
    if not has_file(folder, "dictionary.txt") and has_file(folder, "train_dictionary.txt"):
        return find_file(folder, "train_dictionary.txt")
    return find_file(folder, "dictionary.txt", instead="train_dictionary.txt" + (instead and f", or {instead}"))


def has_file(folder: Path, name: str) -> bool:
    """Whether `find_file` would find it."""
    return _place_of(folder, name, _SUBFOLDER) is not None


def _place_of(folder: Path, name: str, subfolder: str) -> Path | None:
    candidates = [place / file for place in (folder, folder / subfolder) for file in (name, f"{name}.gz")]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _fields(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, what stands before and what stands after ``||``."""
    of_document = path.suffix == ".concept"
    expected = "document||start|end||class||mention||id" if of_document else "id||name"
    for first_line, lines in text_lines(only_file(path), Reading(may_skip=False)):
        for number, text in enumerate(lines, first_line):
            fields = fields_of(text, "||", 5 if of_document else 2, path=path, line=number, expected=expected)
            yield (number, fields[4].strip(), fields[3].strip()) if of_document else (number, fields[0], fields[1])


def fields_of(text: str, separator: str, n_fields: int, *, path: Path, line: int, expected: str) -> list[str]:
    """The fields of a line.

    Raises:
        InputError: there are more or fewer, or one is blank.
    """
    fields = text.split(separator)
    if len(fields) != n_fields or not all(field.strip() for field in fields):
        found = text.strip() or "a blank line"
        raise InputError("a line of another form", path=path, line=line, expected=expected, found=found)
    return fields
