"""The AskAPatient corpus: ten folds of ``concept<TAB>concept name<TAB>mention`` per line.

Mentions are what patients write of drugs, concepts are of SNOMED CT and the Australian Medicines Terminology
(Limsopatham and Collier 2016, ACL, https://doi.org/10.5281/zenodo.55013). The files are of no one encoding: lines that
are not UTF-8 are Windows-1252.
"""

from __future__ import annotations

from pathlib import Path

from onoma.benchmarks.biosyn import DictionaryLine, Query, fields_of, find_file
from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.files.text_files import only_file, read_blocks

N_FOLDS = 10
N_CONCEPTS = 1036
PARTS = ("train", "validation", "test")


def fold_file(folder: Path, fold: int, part: str) -> Path:
    """The file of a fold: part is "train", "validation" or "test".

    Raises:
        InputError: it is not there.
    """
    return find_file(folder, f"AskAPatient.fold-{fold}.{part}.txt", subfolder="askapatient")


def read_fold(path: Path) -> list[tuple[str, str, str]]:
    """(concept, its name, mention) of each line.

    Raises:
        InputError: the file is damaged, or a line has other fields (file and line are named).
    """
    rows = []
    for block in read_blocks(only_file(path), Reading(may_skip=False)):
        for number, line in enumerate(block.lines(), block.first_line):
            text = _decoded(line, path, number)
            fields = fields_of(text, "\t", 3, path=path, line=number, expected="concept, name and mention")
            concept, name, mention = map(str.strip, fields)
            if not concept.isdecimal():
                raise InputError(
                    "a line that does not begin with a concept of SNOMED CT or AMT",
                    path=path,
                    line=number,
                    expected="a number, such as 22253000",
                    found=concept,
                    fix="take the files as they are published, without a header",
                )
            rows.append((concept, name, mention))
    return rows


def concept_names(rows: list[tuple[str, str, str]]) -> list[DictionaryLine]:
    """A name for each concept, in the order of the codes."""
    names: dict[str, str] = {}
    for concept, name, _ in rows:
        names.setdefault(concept, name)
    return [DictionaryLine(names[concept], (concept,)) for concept in sorted(names)]


def as_queries(rows: list[tuple[str, str, str]]) -> list[Query]:
    """One query for each line; a mention that occurs often counts often, as in the published figures."""
    return [Query(text=mention, parts=(mention,), gold=frozenset({concept})) for concept, _, mention in rows]


def _decoded(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return line.decode("cp1252")
    except UnicodeDecodeError as error:
        raise InputError(
            "neither UTF-8 nor Windows-1252", path=path, line=number, found=f"byte {line[error.start]:#04x}"
        ) from None
