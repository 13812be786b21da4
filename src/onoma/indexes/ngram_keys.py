"""Character n-grams as numbers, many texts at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onoma.errors import InputError, is_whole
from onoma.indexes.postings import KeyArray
from onoma.types import RowArray

_WHITE_SPACE = re.compile(r"\s\s+")


@dataclass(frozen=True)
class NgramKeys:
    """What number each n-gram is.

    An n-gram is a number in base A + 2, with A the distinct characters of the names: digits 1 to A are these
    characters, A + 1 is any other. There is no digit 0, so that n-grams of different lengths are different numbers.

    Attributes:
        alphabet: Code points of the characters of the names, uint32, shape (A,), ascending.
        ngrams: Shortest and longest n-gram.
    """

    alphabet: npt.NDArray[np.uint32]
    ngrams: tuple[int, int]

    @classmethod
    def fit(cls, parts: Iterable[Sequence[str]], ngrams: tuple[int, int]) -> NgramKeys:
        """For the characters of some prepared texts.

        Raises:
            InputError: the lengths are none, or there are too many characters for them.
        """
        checked = checked_ngrams(ngrams)
        characters: set[str] = set()
        for part in parts:
            characters.update("".join(part))
        keys = cls(np.array(sorted(map(ord, characters)), np.uint32), checked)
        if checked[1] > 64 or keys.base ** checked[1] > 1 << 64:  # the base is 2 or more
            raise InputError(
                f"the names have {len(characters):,} distinct characters, too many for n-grams of {checked[1]}",
                field="ngrams",
                fix="take shorter n-grams",
            )
        return keys

    @property
    def base(self) -> int:
        """A + 2."""
        return len(self.alphabet) + 2

    def occurrences(self, texts: Sequence[str]) -> tuple[KeyArray, RowArray]:
        """Every n-gram of every prepared text, and the place of its text, each as often as it occurs."""
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        rows = np.repeat(np.arange(len(texts)), np.diff(ends, prepend=0))
        left = ends[rows] - np.arange(len(points))  # characters from here to the end of the text
        digits = np.searchsorted(self.alphabet, points)
        is_known = digits < len(self.alphabet)
        is_known[is_known] = self.alphabet[digits[is_known]] == points[is_known]
        digits_of = np.where(is_known, digits + 1, len(self.alphabet) + 1).astype(np.uint64)
        keys, base, found = digits_of, np.uint64(self.base), []
        for length in range(1, self.ngrams[1] + 1):
            if length > 1:
                keys = keys[:-1] * base + digits_of[length - 1 :]
            if length >= self.ngrams[0]:
                is_whole = left[: len(keys)] >= length
                found.append((keys[is_whole], rows[: len(keys)][is_whole]))
        return np.concatenate([keys for keys, _ in found]), np.concatenate([rows for _, rows in found])

    def ngram(self, key: int) -> str:
        """The n-gram that a number is."""
        characters = []
        while key:
            key, digit = divmod(key, self.base)
            characters.append(chr(self.alphabet[digit - 1]))
        return "".join(reversed(characters))


def prepared(text: str) -> str:
    """In lower case and without repeated white space, as scikit-learn's `TfidfVectorizer` prepares a text."""
    return _WHITE_SPACE.sub(" ", text.lower())


def checked_ngrams(ngrams: Sequence[int]) -> tuple[int, int]:
    """Shortest and longest n-gram.

    Raises:
        InputError: they are none.
    """
    if (
        not isinstance(ngrams, Sequence)
        or len(ngrams) != 2
        or not all(map(is_whole, ngrams))
        or not 1 <= ngrams[0] <= ngrams[1]
    ):
        raise InputError(
            "no lengths of n-grams",
            field="ngrams",
            expected="the shortest, from 1, and the longest, such as (1, 2)",
            found=repr(ngrams),
        )
    return int(ngrams[0]), int(ngrams[1])
