"""Misspelt words of a mention corrected, by the words of the linker's own names.

A word is misspelt if no name has it and the encoder's tokeniser does not have it whole, which keeps common words
("belly", "still") that a terminology happens to lack. It becomes a word of the names that begins with the same letter
and differs by one letter: one too many, missing, wrong or swapped with the next. Of several such words, the one that
most names have is used. Only one letter: with two, "prednisone" would become "prednisolone" if a list has only that.

Files: ``words.utf8``, ``words.offsets.npy`` and ``words.counts.npy`` in the linker's folder, how many names have each
word.

A correction can still be wrong, above all with a short list of names: it is off by default, and shown with the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

import numpy as np

from onoma.artifacts.arrays import load_array
from onoma.errors import DamagedArtifactError, check_several
from onoma.linking.strings import StringColumn
from onoma.types import RowArray

MIN_LETTERS = 5
"""Shorter words are left: many are abbreviations, and most are one letter away from some other word."""
MIN_CAPITALS = 7
"""The same for words in capitals."""
_WORD = re.compile(r"(?<![\u0300-\u036f])\b[^\W\d_]+\b(?![\u0300-\u036f])")
"""Words whose letters are whole: one that takes an accent as a character of its own even when composed is left."""
_WORDS = "words"
WORDS_FILES = "words."
"""What the names of the files begin with."""
_COUNTS_FILE = "words.counts.npy"
_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class Correction:
    """A misspelt word of a mention.

    Attributes:
        written: As the mention has it.
        read: What was put in its place.
    """

    written: str
    read: str


@dataclass(frozen=True, eq=False)
class NameWords:
    """How many names have each word that is long enough, in scripts that write words by letters with a case.

    Attributes:
        words: In lower case, ascending.
        counts: Of names, int64, shape (number of words,).
    """

    words: Sequence[str]
    counts: RowArray

    @classmethod
    def of(cls, names: Iterable[str]) -> NameWords:
        """Those of some names.

        Args:
            names: Any number; memory is that of their distinct words.

        Raises:
            InputError: ``names`` is one string.
        """
        check_several(names, "names")
        counter: Counter[str] = Counter()
        for name in names:  # without polars, whose threads a process that was forked waits for without end
            counter.update(_long_words(name))
        words = sorted(counter)
        return cls(words, np.array([counter[word] for word in words], np.int64))

    @classmethod
    def open(cls, folder: Path) -> NameWords:
        """What `save` wrote, memory-mapped.

        Raises:
            DamagedArtifactError: there are not as many counts as words.
        """
        words, counts = StringColumn.open(folder, _WORDS), load_array(folder / _COUNTS_FILE, (np.int64,), 1)
        if counts.shape != (len(words),):
            raise DamagedArtifactError(f"{folder}: its words and their counts are not of one build. Build it again.")
        return cls(words, np.asarray(counts))

    def save(self, folder: Path) -> None:
        """Write them into ``folder``."""
        StringColumn.from_strings(self.words).save(folder, _WORDS)
        np.save(folder / _COUNTS_FILE, self.counts)

    def as_dict(self) -> dict[str, int]:
        """Each word with its count."""
        return dict(zip(self.words, self.counts.tolist(), strict=True))


class Spelling:
    """Corrections by the words of some names.

    Args:
        words: How many names have each word, in lower case.
        is_known: Whether a word in lower case is right although no name has it; unset: none is.
        as_in_names: The form that a word in lower case has in names, as normalisation may change it; unset: its own.

    Example:
        >>> spelling = Spelling.of_names(["heart attack", "heart failure", "panic attack"])
        >>> spelling.correct("Heart attak")
        ('Heart attack', (Correction(written='attak', read='attack'),))
    """

    def __init__(
        self,
        words: Mapping[str, int],
        is_known: Callable[[str], bool] | None = None,
        as_in_names: Callable[[str], str] | None = None,
    ) -> None:
        self._words, self._is_known, self._as_in_names = words, is_known, as_in_names
        self._letters = "".join(sorted({letter for word in words for letter in word}))
        self._longest = max(map(len, words), default=0)
        self._nearest = lru_cache(_REMEMBERED)(self._find_nearest)

    @classmethod
    def of_names(
        cls,
        names: Iterable[str],
        *,
        is_known: Callable[[str], bool] | None = None,
        as_in_names: Callable[[str], str] | None = None,
    ) -> Spelling:
        """By the words of these names; see `NameWords.of`."""
        return cls(NameWords.of(names).as_dict(), is_known, as_in_names)

    def correct(self, mention: str) -> tuple[str, tuple[Correction, ...]]:
        """The mention with its misspelt words put right, and which these were; capitals stay where they were.

        A mention without any comes back as it was, else in Unicode's composed form (NFC).
        """
        composed = unicodedata.normalize("NFC", mention)
        corrections = dict[Correction, None]()

        def replace(match: re.Match[str]) -> str:
            written = match.group()
            read = self._reading(written)
            if read != written:
                corrections[Correction(written, read)] = None
            return read

        corrected = _WORD.sub(replace, composed)
        return (corrected, tuple(corrections)) if corrections else (mention, ())

    def _reading(self, written: str) -> str:
        if len(written) < (MIN_CAPITALS if written.isupper() else MIN_LETTERS):
            return written
        word = written.lower()
        read = self._nearest(word)
        if read == word:
            return written
        return read.upper() if written.isupper() else _with_capitals(read, written)

    def _find_nearest(self, word: str) -> str:
        if len(word) > self._longest + 1 or not all(unicodedata.category(letter) == "Ll" for letter in word):
            return word  # none of the words of names
        if word in self._words or (self._is_known is not None and self._is_known(word)):
            return word
        if self._as_in_names is not None and self._as_in_names(word) in self._words:
            return word
        near = {other for other in self._one_off(word) if other in self._words}
        return min(near, key=lambda other: (-self._words[other], other), default=word)

    def _one_off(self, word: str) -> Iterator[str]:
        """What the word may be with one letter put right, except the first."""
        for place in range(1, len(word)):
            before, after = word[:place], word[place:]
            yield before + after[1:]
            if len(after) > 1:
                yield before + after[1] + after[0] + after[2:]
            for letter in self._letters:
                yield before + letter + after[1:]
                yield before + letter + after
        yield from (word + letter for letter in self._letters)


class _Kinds(dict[int, str]):
    """For `str.translate`: small letters stay, other characters of words become "0", and those between words blanks.

    Characters of words are those that UTS #18 has for word boundaries: alphabetic ones, marks, digits and joiners.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Ll":
            kind = character
        elif category[0] in "LM" or category in {"Nd", "Nl", "Pc"} or _OTHERS_OF_WORDS.match(character):
            kind = "0"
        else:
            kind = " "
        self[code] = kind
        return kind


_OTHERS_OF_WORDS = re.compile(
    "[\u200c\u200d\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]"
)
"""Joiners, and letters in circles and squares, which are alphabetic and no letters by category."""
_KINDS = _Kinds()


def _long_words(name: str) -> set[str]:
    """Words of a name in lower case that are long enough, of small letters alone: of scripts that have a case."""
    text = unicodedata.normalize("NFC", name).lower()
    return {word for word in text.translate(_KINDS).split() if len(word) >= MIN_LETTERS - 1 and "0" not in word}


def _with_capitals(read: str, written: str) -> str:
    """A word with the letters that it shares with what was written, at both ends, as they stand there."""
    lower = written.lower()  # of as many letters: İ alone has more in lower case, and is never read otherwise
    shared = _n_equal(lower, read)
    left = _n_equal(lower[shared:][::-1], read[shared:][::-1])
    return written[:shared] + read[shared : len(read) - left] + written[len(written) - left :]


def _n_equal(one: str, other: str) -> int:
    """Letters with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
