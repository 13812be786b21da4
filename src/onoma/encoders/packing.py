"""Names packed end to end: no padding, names of equal length side by side.

Biomedical names average nine tokens. Padding each to 25 makes 62 % of all arithmetic wasted; here a batch is one
long row of real tokens, shortest names first, so that attention can take every group of equally long names as a
full rectangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from onoma.errors import ShapeError
from onoma.types import RowArray


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """A batch of names without padding.

    Shapes: N names, T tokens over all names. Inside the batch names stand sorted by length; ``restore`` gives the
    caller's order back.
    """

    ids: torch.Tensor
    """Token ids, int64, shape (T,)."""
    positions: torch.Tensor
    """Position of each token in its name, from 0, int64, shape (T,)."""
    groups: tuple[tuple[int, int], ...]
    """(number of names, their common length in tokens), lengths ascending."""
    borders: torch.Tensor
    """Where each name begins in ``ids`` and where the last one ends, int64, shape (N + 1,)."""
    restore: torch.Tensor
    """``packed[restore]`` is in the caller's order, int64, shape (N,)."""
    types: torch.Tensor | None = None
    """Which side of a pair each token belongs to, 0 or 1, int64, shape (T,); None: names, which have one side."""

    @property
    def starts(self) -> torch.Tensor:
        """Where each name begins in ``ids``, int64, shape (N,)."""
        return self.borders[:-1]

    @property
    def n_names(self) -> int:
        """Number of names."""
        return self.borders.shape[0] - 1

    @property
    def n_tokens(self) -> int:
        """Number of tokens over all names."""
        return self.ids.shape[0]

    def to(self, device: torch.device | str) -> PackedBatch:
        """The same batch on another device, sent at once: a copy takes a GPU longer to begin than to do."""
        parts = [self.ids, self.positions, self.borders, self.restore, *([] if self.types is None else [self.types])]
        if self.ids.device != torch.device(device):
            together = torch.cat(parts).to(device, non_blocking=True)
            parts = list(together.split_with_sizes([len(part) for part in parts]))
        ids, positions, borders, restore, *types = parts
        return PackedBatch(
            ids=ids,
            positions=positions,
            groups=self.groups,
            borders=borders,
            restore=restore,
            types=types[0] if types else None,
        )


def pack(
    offsets: npt.NDArray[np.integer],
    ids: npt.NDArray[np.integer],
    *,
    rows: RowArray | None = None,
    types: npt.NDArray[np.integer] | None = None,
) -> PackedBatch:
    """Pack names given as ragged token arrays.

    Args:
        offsets: Name ``i`` has the tokens ``ids[offsets[i]:offsets[i + 1]]``, shape (n + 1,). May be memory-mapped.
        ids: Token ids of all names, special tokens included. May be memory-mapped; only the rows asked for are read.
        rows: Which names to take, in this order, repeats allowed; all of them if not given.
        types: Token types, ragged as ``ids``; see `PackedBatch.types`.

    Returns:
        The batch; ``n_names`` is 0 when there are no names.

    Raises:
        ShapeError: a name without tokens, or offsets that do not fit ``ids``.

    Example:
        >>> batch = pack(np.array([0, 3, 5, 8]), np.array([101, 7, 102, 101, 102, 101, 9, 102]))
        >>> batch.groups
        ((1, 2), (2, 3))
        >>> batch.ids.tolist()
        [101, 102, 101, 7, 102, 101, 9, 102]
        >>> batch.restore.tolist()
        [1, 0, 2]
    """
    if len(offsets) == 0 or int(offsets[0]) < 0 or int(offsets[-1]) > len(ids):
        raise ShapeError(f"offsets must lead from 0 to the number of token ids ({len(ids)}).")
    chosen = np.arange(len(offsets) - 1) if rows is None else np.asarray(rows, np.int64)
    first = np.asarray(offsets[chosen], np.int64)
    lengths = np.asarray(offsets[chosen + 1], np.int64) - first
    if len(lengths) and int(lengths.min()) < 1:
        raise ShapeError(f"name {int(chosen[int(lengths.argmin())])} has no tokens; every name needs at least one.")
    order = np.argsort(lengths, kind="stable")
    first, lengths = first[order], lengths[order]
    borders = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=borders[1:])
    positions = np.arange(borders[-1], dtype=np.int64) - np.repeat(borders[:-1], lengths)
    restore = np.empty_like(order)
    restore[order] = np.arange(len(order))
    values, counts = np.unique(lengths, return_counts=True)
    places = np.repeat(first, lengths) + positions
    return PackedBatch(
        ids=torch.from_numpy(np.asarray(ids[places], np.int64)),
        positions=torch.from_numpy(positions),
        groups=tuple(zip(counts.tolist(), values.tolist(), strict=True)),
        borders=torch.from_numpy(borders),
        restore=torch.from_numpy(restore),
        types=None if types is None else torch.from_numpy(np.asarray(types[places], np.int64)),
    )


def pack_lists(names: Sequence[Sequence[int] | npt.NDArray[np.integer]]) -> PackedBatch:
    """Pack names given as one list of token ids each; see `pack`.

    Example:
        >>> pack_lists([[101, 7, 102], [101, 102]]).groups
        ((1, 2), (1, 3))
    """
    offsets = np.zeros(len(names) + 1, np.int64)
    np.cumsum([len(name) for name in names], out=offsets[1:])
    ids = np.concatenate([np.asarray(name, np.int64) for name in names]) if names else np.empty(0, np.int64)
    return pack(offsets, ids)
