"""Write the ONNX model of an encoder and check it against torch before anybody relies on it."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import math
import tempfile
import warnings
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import torch
from tokenizers import Tokenizer
from torch.onnx import OnnxExporterError

from onoma.encoders.encoding import unit_rows
from onoma.encoders.folders import family_of
from onoma.encoders.onnx_encoder import padded_rows
from onoma.encoders.onnx_graph import OPSET, can_write_graph, write_graph
from onoma.encoders.onnx_precision import save_onnx
from onoma.encoders.onnx_session import ATTENTION_MASK, INPUT_IDS, NAME_VECTORS, OnnxSession
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.packing import pack, pack_lists
from onoma.encoders.tokens import tokenise
from onoma.errors import ConfigError, MismatchError, OnomaError, TrainingError
from onoma.types import FloatArray, RowArray

TOLERANCE = 1e-4
"""Largest allowed difference of any number of a unit vector between ONNX Runtime and torch; usual is 1e-6."""

_CHECKED_NAMES = (
    "",
    "fever",
    "Diabetes mellitus, type 2",
    "心肌梗死",
    "α-synuclein/β-amyloid",
    "acute disseminated encephalomyelitis following infection with an unidentified organism, unspecified",
)


_Names: TypeAlias = tuple[RowArray, npt.NDArray[np.int32], RowArray]
"""Where the tokens of each name begin, the tokens, and which names have any."""


def write_onnx(encoder: PackedEncoder, file: Path, *, tokenizer: Tokenizer) -> None:
    """Write an encoder as ONNX, with free axes for names and tokens, and compare it with torch on a few names.

    Args:
        encoder: Its present weights are written, in fp32.
        file: Where to; its folder is made.
        tokenizer: For the comparison.

    Raises:
        ConfigError: torch cannot export an encoder of this family, or what it exports, or the encoder, does not run.
        MismatchError: ONNX Runtime computes other vectors than torch; the file is removed.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    parts = encoder.architecture
    was_training = encoder.training
    encoder.eval()
    try:
        checked = _checked_names(encoder, tokenizer)
        expected = _vectors(encoder, checked)  # first: what does not run here need not be traced
        if parts is not None and can_write_graph(parts):
            model = write_graph(parts, pooling=encoder.pooling, special_tokens=encoder.special_tokens)
        else:
            model = _traced(encoder)
        save_onnx(model, file)
        del model  # all weights once more, while ONNX Runtime reads them
        difference = _largest_difference(encoder, file, checked, expected)
    except (OSError, MemoryError, OnomaError):
        raise
    except Exception as error:  # torch and ONNX Runtime have many kinds
        if parts is not None:
            raise
        file.unlink(missing_ok=True)
        family, said = family_of(encoder.model.config.to_dict()), " ".join(str(error).split())[:200]
        raise ConfigError(
            f"an encoder of the family '{family}' does not run on all names, or not in ONNX Runtime ({said}). "
            "Take a base of another family."
        ) from None
    finally:
        encoder.train(was_training)
    if math.isnan(difference) and not _is_finite(encoder):
        file.unlink()
        raise TrainingError(
            "the weights of this encoder are not all numbers: its training has diverged. Remove its .run folder, "
            "if there is one, and begin it anew with a lower learning_rate or max_gradient_norm=1."
        )
    if not difference <= TOLERANCE:
        file.unlink()
        raise MismatchError(
            f"the ONNX model written of this encoder gives other vectors than torch: they differ by {difference:.1e}, "
            f"where {TOLERANCE:.0e} is allowed. It was removed; please report this with the encoder's config.json."
        )


def check_exportable(encoder: PackedEncoder) -> None:
    """Refuse an encoder of which no ONNX model can be written; one of a family that is not ours is tried.

    Raises:
        ConfigError: torch cannot export it, or what it exports gives other vectors.
    """
    if encoder.architecture is not None and can_write_graph(encoder.architecture):
        return
    assert encoder.source is not None  # it was loaded from a folder
    with tempfile.TemporaryDirectory() as place:
        try:
            write_onnx(encoder, Path(place) / "model.onnx", tokenizer=encoder.source.load_tokenizer())
        except MismatchError:
            family = family_of(encoder.model.config.to_dict())
            way = "Take a base of another family"
            if encoder.pooling == "mean-all":
                way = "Take another pooling than mean-all, which averages padding too, or a base of another family"
            raise ConfigError(
                f"{encoder.source.name} is of the family '{family}', whose vectors depend on how names are padded, or "
                f"which torch exports wrongly: no ONNX model can be written of it. {way}."
            ) from None


def _is_finite(encoder: PackedEncoder) -> bool:
    """Whether weights, and vectors made with them, are numbers that fp32 has."""
    with torch.inference_mode():
        vectors = encoder(pack_lists([[0, 1]]).to(next(encoder.parameters()).device))
    return bool(torch.isfinite(vectors).all()) and all(bool(torch.isfinite(one).all()) for one in encoder.parameters())


def _checked_names(encoder: PackedEncoder, tokenizer: Tokenizer) -> _Names:
    """A few, cut as the encoder cuts names."""
    cutting = Tokenizer.from_str(tokenizer.to_str())
    cutting.enable_truncation(encoder.max_tokens)
    offsets, ids = tokenise(cutting, _CHECKED_NAMES)
    return offsets, ids, np.flatnonzero(np.diff(offsets))


def _vectors(encoder: PackedEncoder, names: _Names) -> FloatArray:
    """Unit vectors of names by torch."""
    offsets, ids, rows = names
    device = next(encoder.parameters()).device
    with torch.inference_mode(), torch.autocast(device.type, enabled=False):
        return unit_rows(encoder(pack(offsets, ids, rows=rows).to(device)).float().cpu().numpy())


def _largest_difference(encoder: PackedEncoder, file: Path, names: _Names, expected: FloatArray) -> float:
    """Of any number of a unit vector, between ONNX Runtime and what is expected."""
    offsets, ids, rows = names
    padded, mask = padded_rows(
        offsets,
        ids,
        rows,
        padding_id=encoder.padding_id,
        min_tokens=encoder.max_tokens if encoder.pooling == "mean-all" else 0,
    )
    found = OnnxSession(file).run(NAME_VECTORS, {INPUT_IDS: padded, ATTENTION_MASK: mask})
    return float(np.abs(unit_rows(found) - expected).max())


class _PaddedForward(torch.nn.Module):
    """An encoder of any family as torch's exporter wants it: two rectangles in, vectors out."""

    def __init__(self, encoder: PackedEncoder) -> None:
        super().__init__()
        self.model = encoder.model
        self.pooling = encoder.pooling
        self.special_tokens = encoder.special_tokens

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        if self.pooling == "cls":
            return hidden[:, 0]
        if self.pooling == "mean-all":
            return hidden.mean(1)
        counted = attention_mask
        if self.pooling == "mean-nospec":
            before, after = self.special_tokens
            n_tokens = attention_mask.sum(1, keepdim=True)
            place = attention_mask.cumsum(1)  # from 1
            text = ((place > before) & (place <= n_tokens - after)).to(attention_mask.dtype) * attention_mask
            counted = torch.where(n_tokens > before + after, text, attention_mask)
        real = counted.to(hidden.dtype)
        return (hidden * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)


def _traced(encoder: PackedEncoder) -> onnx.ModelProto:
    """The graph of a family that `write_graph` does not know, by torch's exporter."""
    ids = torch.ones((2, 5), dtype=torch.int64)
    axes = {0: torch.export.Dim("names"), 1: torch.export.Dim("tokens")}
    padded = _PaddedForward(encoder)
    # A copy, as `cpu` would move the encoder itself.
    copied = padded if next(padded.parameters()).device.type == "cpu" else copy.deepcopy(padded).cpu()
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    # The exporter speaks of operators of torchvision and of its own deprecated internals; neither concerns a user.
    unheard = io.StringIO()  # of what it cannot export it says hundreds of lines
    with warnings.catch_warnings(), contextlib.redirect_stdout(unheard), contextlib.redirect_stderr(unheard):
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", UserWarning)
        logger.setLevel(logging.ERROR)
        try:
            program = torch.onnx.export(
                copied,
                (ids, torch.ones_like(ids)),
                dynamo=True,
                opset_version=OPSET,
                input_names=[INPUT_IDS, ATTENTION_MASK],
                output_names=[NAME_VECTORS],
                dynamic_shapes={"input_ids": axes, "attention_mask": axes},
                verbose=False,
            )
        except OnnxExporterError as error:
            family = family_of(encoder.model.config.to_dict())
            raise ConfigError(
                f"torch cannot export an encoder of the family '{family}' to ONNX, and nothing here links without that "
                f"({type(error).__name__}). Take a base of another family."
            ) from None
        finally:
            logger.setLevel(level)
    assert program is not None  # dynamo=True returns a program
    model: onnx.ModelProto = program.model_proto
    return model
