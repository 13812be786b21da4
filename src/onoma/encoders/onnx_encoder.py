"""Encoding with ONNX Runtime: no torch, a cold start of a fraction of a second."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.encoders.encoding import FolderEncoder, checked_names, encode_names
from onoma.encoders.folders import EncoderFolder
from onoma.encoders.onnx_session import ATTENTION_MASK, INPUT_IDS, NAME_VECTORS, TOKEN_TYPES, OnnxSession
from onoma.errors import ConfigError, InputError
from onoma.types import CountProgress, FloatArray, RowArray

BATCH_TOKENS = 1_024
"""Tokens per call of the session, so that a batch's intermediate results stay in the processor's cache."""


class OnnxEncoder(FolderEncoder):
    """Names to vectors by ONNX Runtime, in the precision of the folder's model.

    Runs the graphs that Onoma writes, which pool inside, and those other tools export, which give the vectors of all
    tokens (``last_hidden_state`` or ``token_embeddings``) to be pooled here.

    Args:
        folder: An encoder's folder with an ONNX model.
        threads: For one call; all processors this process may use if not given.
    """

    def __init__(self, folder: EncoderFolder, *, threads: int | None = None) -> None:
        if folder.onnx is None:
            raise InputError("this encoder has no ONNX model", path=folder.path, expected="onnx/model.onnx")
        super().__init__(folder)
        keeps_weights_small = folder.precision.endswith("-weights")
        self._session = OnnxSession(folder.onnx, threads=threads, unpacks_weights=keeps_weights_small)
        outputs = self._session.outputs
        self._pools_inside = NAME_VECTORS in outputs
        token_outputs = [name for name in outputs if name in {"last_hidden_state", "token_embeddings"}]
        if not self._pools_inside and not token_outputs:
            raise InputError(
                "this ONNX model has no output that Onoma can use",
                path=folder.onnx,
                expected=f"{NAME_VECTORS}, last_hidden_state or token_embeddings",
                found=", ".join(outputs),
            )
        if self._pools_inside and folder.said_pooling not in (None, folder.pooling):
            raise ConfigError(
                f"the ONNX model of {folder.name} pools by '{folder.said_pooling}', not '{folder.pooling}'. Open it "
                "with backend='torch'."
            )
        self._output = NAME_VECTORS if self._pools_inside else token_outputs[0]

    def encode(
        self, texts: Iterable[str], *, progress: CountProgress | None = None, unit_length: bool = True
    ) -> FloatArray:
        """Vectors of names, shape (n, width); see `onoma.encoders.Encoder.encode`."""
        return encode_names(
            checked_names(texts),
            self._folder,
            self._tokenizer,
            self._run,
            batch_tokens=BATCH_TOKENS,
            padded=True,
            progress=progress,
            unit_length=unit_length,
        )

    def _run(self, offsets: npt.NDArray[np.int64], ids: npt.NDArray[np.int32], rows: RowArray) -> FloatArray:
        pads_all = self._folder.pooling == "mean-all"
        padded, mask = padded_rows(
            offsets,
            ids,
            rows,
            padding_id=self._folder.padding_id,
            min_tokens=self._folder.max_tokens if pads_all else 0,
        )
        feeds: dict[str, Any] = {INPUT_IDS: padded, ATTENTION_MASK: mask}
        if TOKEN_TYPES in self._session.inputs:
            feeds[TOKEN_TYPES] = np.zeros_like(padded)
        found: FloatArray = self._session.run(self._output, feeds)
        if self._pools_inside:
            return found
        if self._folder.pooling == "cls":
            return found[:, 0]
        if pads_all:
            return np.asarray(found.mean(1), np.float32)
        if self._folder.pooling == "mean-nospec":
            mask = text_mask(mask, *self._folder.special_tokens)
        return np.asarray((found * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True), np.float32)


def text_mask(mask: npt.NDArray[np.int64], before: int, after: int) -> npt.NDArray[np.int64]:
    """An attention mask without special tokens; a name that has no others keeps them.

    Example:
        >>> text_mask(np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]), 1, 1).tolist()
        [[0, 1, 1, 0, 0], [1, 1, 0, 0, 0]]
    """
    n_tokens = mask.sum(1, keepdims=True)
    columns = np.arange(mask.shape[1])
    text = ((columns >= before) & (columns < n_tokens - after)).astype(np.int64)
    return np.where(n_tokens > before + after, text, mask)


def padded_rows(
    offsets: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int32],
    rows: RowArray,
    *,
    padding_id: int,
    min_tokens: int = 0,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Ragged rows as a rectangle: ids and attention mask, int64, both of shape (len(rows), longest).

    Example:
        >>> padded_rows(np.array([0, 2, 5]), np.array([7, 8, 1, 2, 3]), np.array([0, 1]), padding_id=0)[0].tolist()
        [[7, 8, 0], [1, 2, 3]]
    """
    first, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    columns = np.arange(max(int(lengths.max()), min_tokens))
    real = columns < lengths[:, None]
    padded = np.full(real.shape, padding_id, np.int64)
    padded[real] = ids[(first[:, None] + columns)[real]]
    return padded, real.astype(np.int64)
