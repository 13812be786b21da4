"""An encoder that has the vectors of some texts already: they are copied, and only other texts are encoded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from onoma.encoders import Encoder, EncoderFolder
from onoma.encoders.kept_parts import KeptParts
from onoma.indexes.opening import open_index
from onoma.indexes.pgvector import PgVectorIndex
from onoma.indexes.vector_store import PART_ROWS, SCALES_FILE, VectorStore, rounded
from onoma.types import BoolArray, CountProgress, FloatArray, RowArray


class KnownVectors:
    """Vectors of names, copied from a linker's folder where it has them.

    What is stored again in the precision of that folder has the same bytes as there. A vector of whole numbers (int8,
    int16) can come out of that with another last bit of its scale (1 of 200,000 of width 16 or 24, none of so many of
    width 48 and more); such a text is encoded again, as in a rebuild.

    Args:
        folder: A linker's folder, with vectors.
        texts: Its texts, in the order of the vectors.
        written_with: The encoder that goes with the vectors.
        encodes_with: What encodes new texts; equal to the former but for rounding.
        kept: Where vectors of new texts are kept until they are not needed any more; unset: nowhere.
        database: Where the vectors lie in PostgreSQL, its connection string; unset: the environment's.

    Attributes:
        n_copied: Vectors copied so far.
        n_encoded: Texts encoded so far.
    """

    def __init__(
        self,
        folder: Path,
        texts: Sequence[str],
        *,
        written_with: Encoder,
        encodes_with: Encoder,
        kept: KeptParts | None = None,
        database: str | None = None,
    ) -> None:
        self._encoder = written_with
        self._encode = encodes_with.encode if kept is None else partial(kept.encode, encodes_with)
        self._vectors = open_index(folder, database=database).vectors
        has_scales = (folder / SCALES_FILE).exists()
        self._scales: FloatArray | None = np.load(folder / SCALES_FILE, mmap_mode="r") if has_scales else None
        self._texts = pl.DataFrame({"text": pl.Series(list(texts), dtype=pl.String)}).with_row_index("row")
        self.n_copied = self.n_encoded = 0

    @property
    def folder(self) -> EncoderFolder:
        """Where the encoder lies and how its vectors are made."""
        return self._encoder.folder

    @property
    def precision(self) -> str:
        """What its arithmetic is done in."""
        return self._encoder.precision

    @property
    def name(self) -> str:
        """How to call it in tables and logs."""
        return self._encoder.name

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return self._encoder.width

    @property
    def max_tokens(self) -> int:
        """Longest name in tokens; longer ones are cut."""
        return self._encoder.max_tokens

    @property
    def fingerprint(self) -> str:
        """See `onoma.encoders.Encoder.fingerprint`."""
        return self._encoder.fingerprint

    def can_read(self, texts: Sequence[str]) -> BoolArray:
        """See `onoma.encoders.Encoder.can_read`."""
        return self._encoder.can_read(texts)

    def has_whole(self, word: str) -> bool:
        """See `onoma.encoders.Encoder.has_whole`."""
        return self._encoder.has_whole(word)

    def verify(self) -> None:
        """Read vectors that lie in PostgreSQL, for which no manifest has a checksum, and compare their fingerprint.

        Raises:
            MismatchError: they are others than were written.
        """
        if isinstance(self._vectors, PgVectorIndex):
            self._vectors.verify()

    def encode(
        self, texts: Sequence[str], *, progress: CountProgress | None = None, unit_length: bool = True
    ) -> FloatArray:
        """Vectors of names, shape (n, width), of length 1; see `onoma.encoders.Encoder.encode`.

        Args:
            texts: Normalised as the linker's are, each once.
            progress: Called with (done, total); copied ones count as done from the beginning.
            unit_length: Must be set, since the vectors that are there are of length 1.
        """
        assert unit_length  # build_linker wants nothing else
        vectors = np.empty((len(texts), self.width), np.float32)
        rows = self._rows(texts)
        known = np.flatnonzero(rows >= 0)
        for start in range(0, len(known), PART_ROWS):
            places = known[start : start + PART_ROWS]
            vectors[places] = self._vectors.take(rows[places])
            rows[places[~self._survives(vectors[places], rows[places])]] = -1
        new = np.flatnonzero(rows < 0)
        n_copied = len(texts) - len(new)
        if progress is not None:
            progress(n_copied, len(texts))
        if len(new):
            report = None if progress is None else lambda done, _total: progress(n_copied + done, len(texts))
            wanted = [texts[place] for place in new.tolist()]
            vectors[new] = self._encode(wanted, progress=report)
        self.n_copied += n_copied
        self.n_encoded += len(new)
        return vectors

    def _rows(self, texts: Sequence[str]) -> RowArray:
        """Row of each text among those that have a vector, -1 where it has none."""
        asked = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).with_row_index("place")
        found = asked.join(self._texts, on="text")
        rows = np.full(len(texts), -1, np.int64)
        rows[found["place"].to_numpy()] = found["row"].to_numpy()
        return rows

    def _survives(self, vectors: FloatArray, rows: RowArray) -> BoolArray:
        """Of which vectors the stored bytes come back when they are rounded again.

        Those of fp32 and fp16 do, and so do whole numbers; it is their scale that is computed.
        """
        if self._scales is None or not isinstance(self._vectors, VectorStore):
            return np.ones(len(rows), np.bool_)
        scales = rounded(vectors, self._vectors.precision)[1]
        assert scales is not None
        return np.asarray(scales == self._scales[rows])
