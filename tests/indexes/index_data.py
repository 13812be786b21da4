"""What tests of indexes share."""

from __future__ import annotations

import numpy as np

from onoma.indexes import VectorStore
from onoma.indexes.vector_store import check_precision, rounded
from onoma.types import FloatArray


def unit_vectors(n: int, width: int = 8, seed: int = 0) -> FloatArray:
    vectors = np.random.default_rng(seed).standard_normal((n, width)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def in_precision(precision: str, vectors: FloatArray) -> VectorStore:
    return VectorStore(*rounded(vectors, check_precision(precision)))
