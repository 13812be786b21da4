"""Forward and backward passes recorded once and played again (CUDA graphs).

A step on a GPU is some thousand kernels, each of a few microseconds for the 512 names of a batch, and handing them over
one by one takes the CPU three times as long as the GPU to do them. A recording hands them over at once. It is for a
fixed number of names and tokens, so the tokens of a batch are filled up to a rounded number, by some that belong to no
name, and there is a recording for each such number that comes up again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from onoma.encoders.packed import PackedBatch, PackedEncoder

_MOST_RECORDINGS = 8
"""Recordings at most, for each keeps a gradient of all weights. Batches of other sizes are not recorded."""
_MOST_TOKENS = 1 << 15
"""Tokens of the largest batch that is recorded: for more the GPU takes longer than the CPU in any case."""
_FINENESS = 32
"""Tokens are filled up by less than one in so many."""
_SIGHTS = 3
"""Batches of a size after which it is recorded: one of many sizes that hardly come again is not worth it."""
_WARM_UP = 2
"""Passes before a recording, which compile kernels and reserve memory."""


@dataclass(frozen=True, slots=True)
class _Recording:
    batch: PackedBatch
    vectors: Tensor
    of_vectors: Tensor
    gradients: tuple[Tensor | None, ...]
    forward: Any
    backward: Any


class RecordedPasses:
    """The passes of an encoder through batches that may be recorded.

    Args:
        encoder: On a GPU. Its weights stay where they are in memory, whatever is written to them; and no graph of
            autograd over them is alive when a batch comes up that is to be recorded.
        encode: What is recorded: vectors of a batch with their graph, shape (N, D).
    """

    def __init__(self, encoder: PackedEncoder, encode: Callable[[PackedBatch], Tensor]) -> None:
        self._encoder, self._encode = encoder, encode
        self._weights = [weight for weight in encoder.parameters() if weight.requires_grad]
        self._recordings: dict[tuple[int, int, int], _Recording] = {}
        self._sights: Counter[tuple[int, int, int]] = Counter()
        self._pool: Any = None

    def forward(self, batch: PackedBatch) -> tuple[Tensor, Callable[[Tensor], None]] | None:
        """Vectors and the way back, as `onoma.training.gradient_cache.forward_in_chunks` has them.

        The gradients that it leaves in the weights, which must have none, are overwritten by the next pass.

        Returns:
            None if a batch like this is not recorded, or not yet.
        """
        tile = self._encoder.recorded_tile(batch)
        if tile is None or batch.n_tokens > _MOST_TOKENS:
            return None
        n_tokens = _filled(batch.n_tokens)
        key = batch.n_names, n_tokens, tile
        if key not in self._recordings:
            self._sights[key] += 1
            if self._sights[key] < _SIGHTS or len(self._recordings) == _MOST_RECORDINGS:
                return None
            roomy = _spacious(batch, n_tokens, tile)
            _copy(batch, roomy)
            self._recordings[key] = self._record(roomy)
        recording = self._recordings[key]
        _copy(batch, recording.batch)
        recording.forward.replay()

        def backward(gradient: Tensor) -> None:
            recording.of_vectors.copy_(gradient)
            recording.backward.replay()
            for weight, found in zip(self._weights, recording.gradients, strict=True):
                weight.grad = found

        return recording.vectors, backward

    def _record(self, batch: PackedBatch) -> _Recording:
        device = batch.ids.device
        random_state = torch.cuda.get_rng_state(device)
        beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(beside):
            for _ in range(_WARM_UP):
                self._pass(batch)
        torch.cuda.current_stream(device).wait_stream(beside)
        forward, backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(forward, pool=self._pool, stream=beside):
            vectors = self._encode(batch)
        self._pool = forward.pool()  # one for all: none is played while another has been half played
        of_vectors = torch.zeros_like(vectors)
        with torch.cuda.graph(backward, pool=self._pool, stream=beside):
            gradients = self._gradients(vectors, of_vectors)
        torch.cuda.set_rng_state(random_state, device)
        return _Recording(batch, vectors.detach(), of_vectors, gradients, forward, backward)

    def _pass(self, batch: PackedBatch) -> None:
        vectors = self._encode(batch)
        self._gradients(vectors, torch.zeros_like(vectors))

    def _gradients(self, vectors: Tensor, of_vectors: Tensor) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(vectors, self._weights, of_vectors, allow_unused=True)


def _filled(n_tokens: int) -> int:
    step = 1 << max(0, (n_tokens // _FINENESS).bit_length() - 1)
    return -(-n_tokens // step) * step


def _spacious(batch: PackedBatch, n_tokens: int, longest: int) -> PackedBatch:
    """A batch of so many tokens, in which others can be put.

    Args:
        batch: Gives the number of names and the device.
        n_tokens: Of which the last belong to no name.
        longest: Tokens of the longest name that can be put in.
    """
    ids = batch.ids.new_zeros(n_tokens)
    return PackedBatch(
        ids=ids,
        positions=torch.zeros_like(ids),
        groups=((batch.n_names, longest),),
        borders=torch.zeros_like(batch.borders),
        restore=torch.zeros_like(batch.restore),
    )


def _copy(batch: PackedBatch, into: PackedBatch) -> None:
    for name in ("ids", "positions"):
        new, old = getattr(batch, name), getattr(into, name)
        old[: len(new)] = new
        old[len(new) :] = 0
    into.borders.copy_(batch.borders)
    into.restore.copy_(batch.restore)
