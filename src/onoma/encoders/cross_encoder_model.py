"""The trainable cross-encoder: a packed encoder over pairs and a linear layer that makes a score of each vector."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional

from onoma.artifacts import open_artifact
from onoma.encoders.architectures import read_architecture
from onoma.encoders.cross_encoder import (
    HEAD_NAME,
    MODEL_FOLDER,
    RERANKER_KIND,
    CrossEncoderAbout,
    read_about,
)
from onoma.encoders.cross_encoder_tokens import PairRows, add_marks
from onoma.encoders.folders import read_folder
from onoma.encoders.loading import load_folder
from onoma.encoders.packed import PackedBatch, PackedEncoder, pack
from onoma.encoders.sources import locate_encoder
from onoma.errors import ConfigError, DamagedArtifactError
from onoma.types import RowArray

_HEAD_STD = 0.02
"""Of the fresh head's weights: BERT's."""


class PackedCrossEncoder(nn.Module):
    """Pairs to scores without padding.

    The head has no bias: the scores of a mention's candidates are only compared with each other, and with 0.

    Args:
        encoder: Runs over the pairs; its pooled vectors are of whole pairs.

    Raises:
        ConfigError: the encoder's family does not run packed.
    """

    def __init__(self, encoder: PackedEncoder) -> None:
        super().__init__()
        if encoder.architecture is None or not encoder.runs_packed:
            raise ConfigError(
                "the base of a reranker must be of the family of BERT (bert, roberta, xlm-roberta, camembert, mpnet, "
                "distilbert), pooled by cls or mean."
            )
        self.encoder = encoder
        self.head = nn.Linear(encoder.width, 1, bias=False)
        nn.init.normal_(self.head.weight, std=_HEAD_STD)

    def forward(self, batch: PackedBatch) -> torch.Tensor:
        """Scores in the caller's order, fp32, shape (N,).

        Args:
            batch: Of pairs, with their token types.
        """
        return self.scores_of(self.encoder(batch))

    def scores_of(self, vectors: torch.Tensor) -> torch.Tensor:
        """Scores of pairs whose pooled vectors these are, (N, D) to fp32 (N,)."""
        # The head costs nothing, and its sums decide.
        with torch.autocast(vectors.device.type, enabled=False):
            return functional.linear(vectors.float(), self.head.weight).squeeze(1)


def new_cross_encoder(
    base: str | Path,
    *,
    pooling: Literal["cls", "mean"],
    max_tokens: int,
    dropout: float | None,
    contexts: bool,
) -> tuple[PackedCrossEncoder, Tokenizer]:
    """A cross-encoder with a fresh head, and the tokeniser that belongs to it.

    Args:
        base: The encoder to begin with: folder, catalogue name or hub id.
        pooling: Which token vectors make a pair's.
        max_tokens: Longest pair.
        dropout: As in `onoma.encoders.loading.load_packed`.
        contexts: Give the tokeniser the marks of mentions in a context, with fresh embeddings.

    Raises:
        ConfigError: the base cannot be used for it, or has no positions for so many tokens.
        InputError: there is no such encoder.
        UnavailableError: the encoder or transformers is not on this machine.
    """
    folder = locate_encoder(base, pooling=pooling, max_tokens=max_tokens)
    tokenizer = folder.load_tokenizer()
    encoder = load_folder(folder, dropout=dropout)
    if contexts:
        tokenizer = add_marks(tokenizer)
        if tokenizer.get_vocab_size() > encoder.model.config.vocab_size:
            encoder.model.resize_token_embeddings(tokenizer.get_vocab_size(), mean_resizing=False)
            encoder.architecture = read_architecture(encoder.model)
    return PackedCrossEncoder(encoder), tokenizer


def load_cross_encoder(path: str | Path) -> tuple[PackedCrossEncoder, CrossEncoderAbout]:
    """The trained cross-encoder of a folder, with torch, in fp32 and in evaluation mode.

    Raises:
        InputError: there is nothing at ``path``.
        ArtifactError: it is no reranker, damaged, or written by a newer Onoma.
        UnavailableError: transformers is not on this machine.
    """
    folder = Path(path)
    open_artifact(folder, RERANKER_KIND)
    about = read_about(folder)
    source = read_folder(folder / MODEL_FOLDER, pooling=about.pooling, max_tokens=about.max_tokens)
    model = PackedCrossEncoder(load_folder(dataclasses.replace(source, name=about.name)))
    try:
        model.load_state_dict({**model.state_dict(), **load_file(folder / HEAD_NAME)})
    except (SafetensorError, RuntimeError) as error:
        raise DamagedArtifactError(f"{folder / HEAD_NAME} is not the head of this reranker ({error}).") from None
    return model.eval(), about


def score_pairs(
    model: PackedCrossEncoder, pairs: PairRows, rows: RowArray
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Scores of some pairs by the model as it is, in their order; under the caller's autocast and modes."""
    device = model.head.weight.device
    batch = pack(pairs.offsets, pairs.ids, rows=rows, types=pairs.types).to(device)
    scores: np.ndarray[tuple[int], np.dtype[np.float32]] = model(batch).cpu().numpy()
    return scores
