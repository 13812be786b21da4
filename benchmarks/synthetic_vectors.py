"""Vectors that lie as those of biomedical names do, made part by part, for the benchmarks of search.

A name's vector is made as its name is, of words: some frequent, most rare (Zipf), some shared with the concepts of its
family, each more or less heard in this name than in another of the concept, and of something of its own. Names are
thus near one another for many reasons that cut across each other, and not in clusters apart, which inverted lists
would find too easily. All share a large mean.

How near they are to one another was set after MONDO and MEDIC as all-MiniLM-L6-v2 sees them; ``search.py`` prints it
for both (``--real FILE``).

A query is one more name of a stored concept that is not itself stored: a held-out synonym.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onoma.types import FloatArray, RowArray

PART_ROWS = 1 << 16
_ROWS_AT_ONCE = 1 << 11
"""So that what is in between stays in the processor's cache."""
_MEAN = 0.20
"""Share of a vector's squared length, here and below; the rest of 1 is the name's own."""
_WORDS, _CONCEPT = 0.66, 0.04
_OWN_SPREAD = 1.0
"""Of the logarithm of a name's own share: some are spelling variants, some have no near synonym."""
_VOCABULARY = 1 << 16
_MOST_WORDS, _FAMILY_WORDS = 6, 2
_CONCEPTS_PER_FAMILY, _NAMES_PER_CONCEPT = 30, 2.5
_SIZES_SHAPE = 1.0
"""Of the gamma distribution that sizes of families and concepts come from: the smaller, the more unequal."""


class NameVectors:
    """A deterministic source of unit vectors.

    Args:
        n_vectors: How many there are.
        width: Of each.
        seed: Another seed, other vectors.
    """

    def __init__(self, n_vectors: int, *, width: int = 384, seed: int = 0) -> None:
        self.n_vectors, self.width, self._seed = n_vectors, width, seed
        random = np.random.default_rng([seed, 0])
        rotation, _ = np.linalg.qr(random.standard_normal((width, width)))
        deviations = (1 + np.arange(width) / (0.05 * width)) ** -0.5
        deviations *= np.sqrt(1 / np.square(deviations).sum())
        self._colour = (deviations[:, None] * rotation).astype(np.float32)
        direction = random.standard_normal(width)
        self._mean = (np.sqrt(_MEAN) * direction / np.linalg.norm(direction)).astype(np.float32)
        self._words = random.standard_normal((_VOCABULARY, width), np.float32)
        # A frequent word says less.
        self._says = np.log(2 + np.arange(_VOCABULARY)).astype(np.float32)

    @property
    def n_parts(self) -> int:
        """In how many parts of `PART_ROWS` they come, the last one with what is left."""
        return -(-self.n_vectors // PART_ROWS)

    def part(self, number: int) -> FloatArray:
        """One part, whatever was asked for before."""
        n = min(PART_ROWS, self.n_vectors - number * PART_ROWS)
        random = np.random.default_rng([self._seed, 1, number])
        words, own, sizes = self._concepts(number)
        return self._names(words, own, _members(sizes, n, random), random)

    def parts(self) -> Iterator[FloatArray]:
        """All vectors, part by part."""
        return map(self.part, range(self.n_parts))

    def queries(self, n_queries: int) -> FloatArray:
        """Held-out names of concepts from all over, shape (n_queries, width)."""
        chosen = np.unique(np.linspace(0, self.n_parts - 1, min(self.n_parts, 8)).astype(int))
        found = []
        for part, numbers in zip(chosen, np.array_split(np.arange(n_queries), len(chosen)), strict=True):
            random = np.random.default_rng([self._seed, 2, int(part)])
            words, own, sizes = self._concepts(int(part))
            found.append(self._names(words, own, _members(sizes, len(numbers), random), random))
        return np.concatenate(found)

    def _concepts(self, part: int) -> tuple[RowArray, FloatArray, FloatArray]:
        """Words of the concepts of a part, shape (n, most words), -1 for none; what is their own; their sizes."""
        random = np.random.default_rng([self._seed, 3, part])
        n = max(1, round(min(PART_ROWS, self.n_vectors - part * PART_ROWS) / _NAMES_PER_CONCEPT))
        words = _zipf((n, _MOST_WORDS), random)
        families = _zipf((max(1, n // _CONCEPTS_PER_FAMILY), _FAMILY_WORDS), random)
        words[:, :_FAMILY_WORDS] = families[_members(_sizes(len(families), random), n, random)]
        n_words = random.integers(_FAMILY_WORDS + 1, _MOST_WORDS + 1, n)
        words[np.arange(_MOST_WORDS) >= n_words[:, None]] = -1
        return words, random.standard_normal((n, self.width), np.float32), _sizes(n, random)

    def _names(self, words: RowArray, own: FloatArray, rows: RowArray, random: np.random.Generator) -> FloatArray:
        heard = random.uniform(0.4, 1, (len(rows), _MOST_WORDS)).astype(np.float32)
        heard *= np.where(words[rows] < 0, 0, self._says[words[rows]])
        heard *= np.sqrt(_WORDS / np.square(heard).sum(axis=1, keepdims=True))
        spread = np.exp(_OWN_SPREAD * random.standard_normal(len(rows)) - _OWN_SPREAD**2 / 2)
        own_share = np.sqrt((1 - _MEAN - _WORDS - _CONCEPT) * spread).astype(np.float32)
        vectors = np.empty((len(rows), self.width), np.float32)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            here = slice(start, start + _ROWS_AT_ONCE)
            names = random.standard_normal((len(rows[here]), self.width), np.float32)
            names *= own_share[here, None]
            names += np.float32(np.sqrt(_CONCEPT)) * own[rows[here]]
            for place in range(_MOST_WORDS):
                names += heard[here, place, None] * self._words[words[rows[here], place]]
            np.matmul(names, self._colour, out=vectors[here])
            vectors[here] += self._mean
            vectors[here] /= np.linalg.norm(vectors[here], axis=1, keepdims=True)
        return vectors


def _zipf(shape: tuple[int, int], random: np.random.Generator) -> RowArray:
    """Words by Zipf's law: the n-th most frequent one n times as rare as the first."""
    return np.minimum(_VOCABULARY ** random.random(shape), _VOCABULARY - 1).astype(np.int64)


def _sizes(n_groups: int, random: np.random.Generator) -> FloatArray:
    """Relative sizes of families or concepts: a few are large and many small, as in terminologies."""
    return random.standard_gamma(_SIZES_SHAPE, n_groups, np.float32)


def _members(sizes: FloatArray, n_members: int, random: np.random.Generator) -> RowArray:
    """The group of each member, ascending."""
    bounds = np.cumsum(sizes, dtype=np.float64)
    return np.minimum(np.searchsorted(bounds, np.sort(random.uniform(0, bounds[-1], n_members))), len(sizes) - 1)
