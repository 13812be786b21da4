"""Queries to nearest rows, behind one protocol.

An index answers: which rows of this matrix have the highest dot product with these queries? `Index` is the
protocol, `ExactIndex` the exhaustive answer that every other index is measured against.
"""

from onoma.indexes.exact import ExactIndex
from onoma.indexes.protocol import Index

__all__ = ["ExactIndex", "Index"]
