"""The protocol of every index, and the vectors that score what it finds."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from onoma.types import FloatArray, RowArray


class Index(Protocol):
    """Nearest rows by dot product, which is cosine similarity for unit vectors.

    Shapes: Q queries, N vectors, W their width, K the smaller of ``k`` and N.
    """

    @property
    def width(self) -> int:
        """W, the number of components of a vector."""

    @property
    def is_approximate(self) -> bool:
        """Whether it may miss more rows than its recall says if other rows than the nearest ones are wanted."""

    def __len__(self) -> int:
        """N, the number of vectors."""

    def search(self, queries: FloatArray, *, k: int = 5) -> tuple[RowArray, FloatArray]:
        """The ``k`` best rows of each query.

        The answer to a query depends only on that query and the vectors: not on the other queries of the call, on their
        number, or on the number of threads.

        Args:
            queries: Shape (Q, W). No rows: an empty answer.
            k: How many rows to return; if there are fewer vectors, all of them.

        Returns:
            Rows, int64, and their scores, float32, both of shape (Q, K): higher score first, and among equal scores the
            lower row first.

        Raises:
            ShapeError: the queries have another width, or are not a matrix.
            InputError: a query is not finite, or ``k`` is less than 1.
        """


@runtime_checkable
class NarrowableIndex(Index, Protocol):
    """An index that can be searched in part."""

    def among(self, rows: RowArray) -> Index:
        """The same search among some of the rows, which keep their numbers; N is then how many these are.

        Args:
            rows: Each once, ascending, shape (n,).
        """


class StoredVectors(Protocol):
    """Vectors by their rows, wherever they lie."""

    @property
    def width(self) -> int:
        """Components of a vector."""

    @property
    def max_norm(self) -> float:
        """Upper bound of the vectors' lengths."""

    def take(self, rows: RowArray) -> FloatArray:
        """Vectors of these rows, float32, shape (n, W)."""


class StoredIndex(Index, Protocol):
    """An index that gives the vectors that it searches."""

    @property
    def vectors(self) -> StoredVectors:
        """By the rows that `search` finds."""
