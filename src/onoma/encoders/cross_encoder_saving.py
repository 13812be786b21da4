"""Write a trained cross-encoder as a folder, and make sure that its ONNX model agrees with torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from onoma.artifacts import CARD_NAME, Parent, write_artifact
from onoma.encoders.adapter_folders import write_weights
from onoma.encoders.architectures import read_architecture
from onoma.encoders.cross_encoder import (
    HEAD_NAME,
    MODEL_FOLDER,
    RERANKER_ABOUT_NAME,
    RERANKER_KIND,
    CrossEncoderAbout,
    pair_tokeniser,
    run_pairs,
)
from onoma.encoders.cross_encoder_model import PackedCrossEncoder, score_pairs
from onoma.encoders.folders import ONNX_NAME, Origin
from onoma.encoders.model_card import TRAIN_NAME
from onoma.encoders.onnx_graph import can_write_graph, write_graph
from onoma.encoders.onnx_precision import save_onnx
from onoma.encoders.onnx_session import OnnxSession
from onoma.encoders.reranker_card import reranker_card
from onoma.errors import ConfigError, MismatchError, TrainingError

TOLERANCE = 1e-4
"""Largest allowed difference of a score between ONNX Runtime and torch, in parts of the largest score or of 1."""

_CHECKED = (
    ("cold", "Common Cold"),
    ("", "fever"),
    ("mi", "Myocardial Infarction ; heart attack"),
    ("α-synuclein/β-amyloid", "心肌梗死"),
    ("acute disseminated encephalomyelitis following infection with an unidentified organism", "encephalomyelitis"),
)


def save_cross_encoder(
    model: PackedCrossEncoder,
    tokenizer: Tokenizer,
    about: CrossEncoderAbout,
    out: str | Path,
    *,
    prepare: Callable[[str], str],
    config: Mapping[str, Any] | None = None,
    parents: Sequence[Parent] = (),
    seed: int | None = None,
    report: str | None = None,
    overwrite: bool = False,
) -> None:
    """Save a cross-encoder with its present weights.

    Args:
        model: From `onoma.encoders.cross_encoder_model.new_cross_encoder`.
        tokenizer: Its tokeniser.
        about: What the folder shall say.
        out: The folder to write.
        prepare: The normalisation, for the comparison with torch.
        config: The settings that made it, for the manifest.
        parents: What it was made from.
        seed: Of every random choice made.
        report: Of its training, as ``train.json`` has it.
        overwrite: Replace a reranker that is there.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: no ONNX model can be written of it.
        MismatchError: the ONNX model does not agree with torch; nothing is written.
        TrainingError: the weights are not numbers; nothing is written.
    """
    check_savable(model)
    was_training = model.training
    model.eval()
    try:
        with write_artifact(
            out,
            RERANKER_KIND,
            config=config,
            parents=parents,
            seed=seed,
            overwrite=overwrite,
        ) as folder:
            inside = folder / MODEL_FOLDER
            inside.mkdir()
            # No adapter on its own: joined with its base it would be an encoder, and one for nothing.
            written = write_weights(model.encoder, inside)
            tokenizer.save(str(inside / "tokenizer.json"))
            save_file({"head.weight": model.head.weight.detach().cpu().contiguous()}, folder / HEAD_NAME)
            (folder / RERANKER_ABOUT_NAME).write_text(
                about.model_dump_json(indent=1, exclude_none=True) + "\n", encoding="utf-8"
            )
            (folder / ONNX_NAME).parent.mkdir()
            parts = read_architecture(written)  # LoRA is merged in it
            assert parts is not None
            graph = write_graph(
                parts, pooling=about.pooling, special_tokens=model.encoder.special_tokens, head=model.head
            )
            save_onnx(graph, folder / ONNX_NAME)
            if report is not None:
                (folder / TRAIN_NAME).write_text(report, encoding="utf-8")
            source = model.encoder.source
            card = reranker_card(
                about,
                source.origin if source else Origin(),
                parameters=sum(tensor.numel() for tensor in (*written.parameters(), *model.head.parameters())),
                config=config or {},
                report=json.loads(report or "{}"),
                parents=parents,
                seed=seed,
            )
            (folder / CARD_NAME).write_text(card, encoding="utf-8")
            _check(model, folder, about, prepare)
    finally:
        model.train(was_training)


def check_savable(model: PackedCrossEncoder) -> None:
    """Refuse, before it is trained, a model of which no folder could be written.

    Raises:
        ConfigError: no ONNX model can be written of it.
    """
    parts = model.encoder.architecture
    if parts is None or not can_write_graph(parts):
        raise ConfigError("no ONNX model can be written of a base with this activation; take another base.")


def _check(model: PackedCrossEncoder, folder: Path, about: CrossEncoderAbout, prepare: Callable[[str], str]) -> None:
    tokeniser = pair_tokeniser(folder, about, prepare=prepare)
    mentions, names = zip(*_CHECKED, strict=True)
    rows = np.arange(len(_CHECKED))
    pairs = tokeniser.pairs(tokeniser.mentions(mentions), rows, tokeniser.names(names), rows)
    session = OnnxSession(folder / ONNX_NAME)
    ours = run_pairs(session, pairs, rows, padding_id=about.padding_id)
    with torch.inference_mode(), torch.autocast(model.head.weight.device.type, enabled=False):
        theirs = score_pairs(model, pairs, rows)
    if not np.isfinite(theirs).all():
        raise TrainingError(
            "this reranker's scores are not numbers: its training has diverged. Nothing was written; remove the run's "
            "folder and begin anew with a lower learning_rate or max_gradient_norm=1."
        )
    difference = float(np.abs(ours - theirs).max() / max(1.0, float(np.abs(theirs).max())))
    if not difference <= TOLERANCE:
        raise MismatchError(
            f"the ONNX model written of this reranker gives other scores than torch: they differ by {difference:.1e}, "
            f"where {TOLERANCE:.0e} is allowed. Nothing was written; please report this with the base's config.json."
        )
