"""Baseline that averages the vectors of words, from files as word2vec, GloVe and fastText publish them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.files.text_files import line_problem, only_file, read_blocks
from onoma.indexes import ExactIndex
from onoma.linking.baselines.name_search import RankedNames, words_of
from onoma.types import MAX_NORM, FloatArray


class WordVectors:
    """Vectors of words in a text file, read as words are asked for.

    A line is a word and its numbers, divided by single spaces; word2vec and fastText put a line with the number of
    words and of numbers before them. Plain, gzip, or a zip archive of one file; UTF-8. Each new set of words is one
    pass through the file, and only vectors of words that were asked for are kept. Of a word that stands there twice
    the first vector counts.

    Args:
        path: The file.

    Attributes:
        path: The file.
        width: Numbers of a vector; 0 before the first pass.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.width = 0
        self._vectors: dict[str, FloatArray | None] = {}

    def look_up(self, words: Iterable[str]) -> None:
        """Read the vectors of words; those that were asked for before cost nothing.

        The number of fields of every line is checked, and the numbers of the lines that are kept.

        Raises:
            InputError: no such file, not UTF-8, cut off, without a vector, or a line has another form (file and line
                are named).
        """
        wanted = {word.encode(): word for word in words if word not in self._vectors}
        if not wanted:
            return
        found: dict[str, FloatArray] = {}
        n_announced: int | None = None
        n_lines, line_number = 0, 0
        for block in read_blocks(only_file(self.path), Reading()):
            for line_number, line in enumerate(block.lines(), block.first_line):
                if line_number == 1:
                    n_announced, self.width = self._first_line(line)
                    if n_announced is not None:
                        continue
                n_lines += 1
                bare = line.rstrip(b" ")  # word2vec ends its lines with a space
                if bare.count(b" ") != self.width:
                    self._check_width(bare, line_number)
                    continue  # a word of several, which is never asked for
                word = wanted.get(bare[: bare.index(b" ")])
                if word is not None and word not in found:
                    found[word] = self._numbers(bare, line_number)
        if n_announced is not None and n_announced != n_lines:
            raise InputError(
                "the file does not have as many words as its first line says",
                path=self.path,
                line=line_number,
                expected=f"{n_announced:,} words",
                found=f"{n_lines:,}",
                fix="get the file again",
            )
        if not n_lines:  # of as wide vectors as its first line says
            raise InputError("the file has no vector", path=self.path, fix="get the file again")
        for word in wanted.values():
            self._vectors[word] = found.get(word)

    def means(self, texts: Sequence[str]) -> FloatArray:
        """The mean of the vectors of each text's words, scaled to length 1; zero where no word is known.

        Returns:
            Shape (texts, width).
        """
        words = [words_of(text) for text in texts]
        self.look_up(word for of_text in words for word in of_text)
        means = np.zeros((len(texts), self.width), np.float32)
        for row, of_text in enumerate(words):
            known = [vector for word in of_text if (vector := self._vectors[word]) is not None]
            if known:
                total = np.sum(known, axis=0, dtype=np.float64)
                means[row] = total / (math.sqrt(np.square(total).sum()) or 1.0)
        return means

    def _first_line(self, line: bytes) -> tuple[int | None, int]:
        """How many words are announced, if it is such a line; and how many numbers a vector has."""
        fields = line.split()
        # Nothing has as many words or numbers as twenty digits say.
        if len(fields) == 2 and all(field.isdigit() and len(field) < 20 for field in fields) and int(fields[1]) > 0:
            return int(fields[0]), int(fields[1])
        if len(fields) < 2:
            raise self._bad(line, 1, "no vector", "a word and its numbers, or how many of both there are")
        return None, len(fields) - 1

    def _check_width(self, line: bytes, number: int) -> None:
        """Refuse a line with other than the right number of fields, but for a word with spaces in it."""
        problem = line_problem(line)
        if problem:
            raise self._bad(line, number, problem, "text in UTF-8")
        fields = line.split(b" ")
        surplus = fields[1 : len(fields) - self.width]
        if len(fields) <= self.width or all(_is_number(field) for field in surplus):
            raise self._bad(
                line, number, "a vector of another width", f"{self.width} numbers", f"{len(fields) - 1} after the word"
            )

    def _numbers(self, line: bytes, number: int) -> FloatArray:
        fields = line.split(b" ")[1:]
        for field in fields:
            if not _is_number(field):
                raise self._bad(line, number, "not a number", "finite numbers", field.decode("utf-8", "replace"))
        with np.errstate(over="ignore"):
            vector = np.array([float(field) for field in fields], np.float32)
        if not np.isfinite(vector).all():
            raise self._bad(line, number, "a number too large for single precision", "finite numbers")
        return vector

    def _bad(self, line: bytes, number: int, problem: str, expected: str, found: str | None = None) -> InputError:
        shown = line[:60].decode("utf-8", "replace") if found is None else found
        return InputError(problem, path=self.path, line=number, expected=expected, found=shown)


class WordVectorNames:
    """Names by the cosine of the means of their words' vectors. A name without a known word is never found.

    Args:
        names: The names.
        vectors: Of words.
    """

    def __init__(self, names: Sequence[str], vectors: WordVectors) -> None:
        self._vectors = vectors
        means = vectors.means(names)
        self._rows = np.flatnonzero(np.any(means != 0, axis=1))
        if not len(self._rows):
            raise InputError("the file has no vector for any word of the names", path=vectors.path)
        self._index = ExactIndex(means[self._rows], max_norm=MAX_NORM)

    def best(self, texts: Sequence[str], *, k: int) -> list[RankedNames]:
        """See `NameSearch.best`."""
        means = self._vectors.means(texts)
        has_vector = np.any(means != 0, axis=1)
        rows, scores = self._index.search(means[has_vector], k=k)
        found = iter(zip(self._rows[rows], scores, strict=True))
        nothing = np.empty(0, np.int64), np.empty(0, np.float32)
        return [next(found) if has_one else nothing for has_one in has_vector]


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field)) and b"_" not in field
    except ValueError:
        return False
