"""Queries to nearest rows, behind one protocol.

An index answers: which rows of this matrix have the highest dot product with these queries? `Index` is the
protocol, `ExactIndex` the exhaustive answer that every other index is measured against. `build_index` writes vectors
and an index over them into a folder, `open_index` opens it.
"""

from onoma.indexes.approximate import ApproximateIndex
from onoma.indexes.exact import ExactIndex
from onoma.indexes.opening import build_index, open_index
from onoma.indexes.protocol import Index
from onoma.indexes.recall import measure_recall
from onoma.indexes.records import IndexKind, IndexRecord, read_index_record
from onoma.indexes.sign_bits import SignBitIndex
from onoma.indexes.vector_store import VectorPrecision, VectorStore, write_vectors

__all__ = [
    "ApproximateIndex",
    "ExactIndex",
    "Index",
    "IndexKind",
    "IndexRecord",
    "SignBitIndex",
    "VectorPrecision",
    "VectorStore",
    "build_index",
    "measure_recall",
    "open_index",
    "read_index_record",
    "write_vectors",
]
