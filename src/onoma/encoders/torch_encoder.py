"""Encoding with torch: the packed encoder, in fp32 or bf16."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from onoma.encoders.encoding import FolderEncoder, checked_names, encode_names
from onoma.encoders.memory import keep_freed_memory, return_freed_memory
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.packing import pack
from onoma.errors import ConfigError
from onoma.types import CountProgress, FloatArray, RowArray

BATCH_TOKENS = {"cpu": 4_096, "cuda": 65_535}
"""Tokens per forward pass, by kind of device."""
_MANY_NAMES = 4_096
"""Names from which it pays to have the C library of the process keep what a pass frees until the last pass."""
_PROCESS = os.getpid()
"""That imported this; a forked one has another."""


class TorchEncoder(FolderEncoder):
    """Names to vectors by torch, without padding.

    Args:
        model: From `onoma.encoders.loading.load_packed`; it is put into evaluation mode while it encodes.
        precision: ``"bf16"`` turns the weights of a model that runs packed, and with them all states, into bfloat16;
            sums inside products, softmax, layer norms and pooling are in fp32. Other models run under autocast.
    """

    def __init__(self, model: PackedEncoder, *, precision: Literal["fp32", "bf16"] = "fp32") -> None:
        if model.source is None:
            raise ConfigError("an encoder made in memory has no tokeniser; save it and open the folder.")
        super().__init__(model.source)
        self._model = model
        self._precision = precision
        # The modules of other families may have no bf16 of their own, or lose too much by it (rotary positions).
        self._autocasts = precision == "bf16" and not model.runs_packed
        if precision == "bf16" and model.runs_packed:
            model.bfloat16()

    @property
    def precision(self) -> str:
        """What its arithmetic is done in."""
        return self._precision

    def encode(
        self, texts: Iterable[str], *, progress: CountProgress | None = None, unit_length: bool = True
    ) -> FloatArray:
        """Vectors of names, shape (n, width); see `onoma.encoders.Encoder.encode`. A forked process uses one thread."""
        texts = checked_names(texts)
        if os.getpid() != _PROCESS:  # torch would wait for threads of the process that this one was forked from
            torch.set_num_threads(1)
        was_training = self._model.training
        self._model.eval()
        device = next(self._model.parameters()).device.type
        is_large = device == "cpu" and len(texts) >= _MANY_NAMES
        if is_large:
            keep_freed_memory()
        autocast = torch.autocast(device, torch.bfloat16) if self._autocasts else contextlib.nullcontext()
        try:
            with torch.inference_mode(), autocast:
                return encode_names(
                    texts,
                    self._folder,
                    self._tokenizer,
                    self._run,
                    batch_tokens=BATCH_TOKENS.get(device, BATCH_TOKENS["cpu"]),
                    padded=False,
                    progress=progress,
                    unit_length=unit_length,
                )
        finally:
            self._model.train(was_training)
            if is_large:
                return_freed_memory()

    def _run(self, offsets: npt.NDArray[np.int64], ids: npt.NDArray[np.int32], rows: RowArray) -> FloatArray:
        batch = pack(offsets, ids, rows=rows).to(next(self._model.parameters()).device)
        vectors: FloatArray = self._model(batch).float().cpu().numpy()
        return vectors
