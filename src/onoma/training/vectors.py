"""The encoder under training, put to use: vectors of names with the present weights."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from onoma.encoders.encoding import length_batches
from onoma.encoders.packed import PackedEncoder, pack
from onoma.encoders.torch_encoder import BATCH_TOKENS
from onoma.pairs import NameStore
from onoma.training.distributed import gather, share, world_size
from onoma.training.precision import autocast, diverged
from onoma.types import CountProgress, RowArray, no_count


def name_vectors(
    model: PackedEncoder,
    store: NameStore,
    rows: RowArray,
    *,
    precision: torch.dtype,
    unit: bool = True,
    progress: CountProgress = no_count,
) -> torch.Tensor:
    """Vectors of names, float32, on the encoder's device, shape (len(rows), D).

    Without dropout; the model's mode and the random state stay as they were. Several processes share the names out,
    and each gets all vectors.

    Args:
        model: The encoder.
        store: Tokens of the names.
        rows: Which names.
        precision: Of the forward pass, see `onoma.training.precision.training_precision`.
        unit: Scale them to length 1.
        progress: Called after each batch with (done, total) names; of several processes each counts as if the others
            were as far. What it raises ends the walk.

    Raises:
        TrainingError: a vector is not finite.
    """
    device = next(model.parameters()).device
    lengths = store.offsets[rows + 1] - store.offsets[rows]
    by_length = np.argsort(lengths, kind="stable")
    own = by_length[share(len(rows))]
    is_alone = world_size() == 1
    targets = own if is_alone else np.arange(len(own))
    vectors = torch.zeros(len(own), model.width, device=device)
    done = 0
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), autocast(device, precision):
            batch_tokens = BATCH_TOKENS.get(device.type, BATCH_TOKENS["cpu"])
            for places in length_batches(lengths[own], batch_tokens=batch_tokens, padded=False):
                batch = pack(store.offsets, store.ids, rows=rows[own[places]], types=store.types).to(device)
                part = model(batch).float()
                vectors[torch.from_numpy(targets[places]).to(device)] = (
                    functional.normalize(part, dim=1) if unit else part
                )
                done += len(places)
                progress(done * len(rows) // len(own), len(rows))
    finally:
        model.train(was_training)
    if not is_alone:
        vectors = gather(vectors, len(rows))[torch.from_numpy(np.argsort(by_length)).to(device)]
    if not torch.isfinite(vectors).all():
        raise diverged("the encoder's vectors are not numbers", precision)
    return vectors
