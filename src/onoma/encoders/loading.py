"""Encoders read from a folder with torch: from safetensors, in fp32, with their adapters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from onoma.encoders.adapters import insert_saved, is_adapter_name
from onoma.encoders.architectures import BERT_LIKE
from onoma.encoders.folders import EncoderFolder, family_of, is_adapted
from onoma.encoders.json_files import read_json
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.packing import pack_lists
from onoma.encoders.pooling import Pooling
from onoma.encoders.sources import locate_encoder
from onoma.encoders.tokens import BRINGS_CODE, NO_CODE, WANTS_CODE
from onoma.errors import InputError, missing_extra

__all__ = ["load_folder", "load_model", "load_packed", "quiet_transformers"]

_DROPOUT_NUMBERS = ("attention_dropout", "dropout")
"""Attributes in which some families keep it as a number: ModernBERT the first; XLM, FlauBERT and ESM the second."""
_OTHER_SIZES = "ignore_mismatched_sizes"
"""Stands in the error of transformers where weights do not fit their configuration."""


def load_packed(
    source: str | Path,
    *,
    pooling: Pooling | None = None,
    dropout: float | None = None,
    max_tokens: int | None = None,
) -> PackedEncoder:
    """Load an encoder for training, or to run it with torch.

    Args:
        source: A folder, a catalogue name or a hub id; see `onoma.encoders.sources.locate_encoder`.
        pooling: As the folder says if not given.
        dropout: Of hidden states and attention weights, in training; as the model's configuration says if not given.
        max_tokens: As the folder says if not given.

    Returns:
        The encoder in fp32, in evaluation mode.

    Raises:
        InputError: no encoder lies there, its weights are a pickle, transformers cannot load them, its tokeniser has
            tokens that they do not know, or the token it pools by does not see the others.
        UnavailableError: the encoder or transformers is not on this machine.
    """
    return load_folder(locate_encoder(source, pooling=pooling, max_tokens=max_tokens), dropout=dropout)


def load_folder(folder: EncoderFolder, *, dropout: float | None = None) -> PackedEncoder:
    """Load the encoder of a folder that was read before; see `load_packed`."""
    model = load_model(folder)
    if dropout is not None:
        modules: Iterable[Any] = model.modules()
        for module in modules:
            if isinstance(module, nn.Dropout):
                module.p = dropout
            for name in _DROPOUT_NUMBERS:
                if isinstance(getattr(module, name, None), int | float):
                    setattr(module, name, dropout)
    encoder = PackedEncoder(model, pooling=folder.pooling, max_tokens=folder.max_tokens, source=folder).eval()
    if folder.pooling == "cls" and encoder.architecture is None and not _first_token_sees_all(encoder):
        raise InputError(
            "this encoder reads from left to right, as decoders do: its first token, by which it pools ('cls'), sees "
            "nothing of the name",
            path=folder.path,
            fix="pool by the mean: --set pooling=mean in training, pooling='mean' in Python, or an encoder trained so",
        )
    return encoder


def load_model(folder: EncoderFolder) -> nn.Module:
    """The Hugging Face model of a folder in fp32, from safetensors only.

    A pooler (the extra layer over [CLS] that BERT's pretraining used) is kept if the weights have one, frozen: no
    vector depends on it, but tools that open the saved encoder expect to find it again.

    Raises:
        InputError: there are no weights, they are not those of the configured model, or the tokeniser has tokens that
            they do not know.
        DamagedArtifactError: they are not what Onoma wrote.
        UnavailableError: transformers is not installed.
    """
    try:
        from transformers import AutoConfig, AutoModel
    except ImportError:
        raise missing_extra("transformers", "train", f"Running the encoder {folder.name} with torch") from None
    if not folder.weights and folder.onnx is None:
        raise InputError(
            "this encoder was put together in memory and lies in no folder",
            path=folder.path,
            fix="save it with save_encoder and name that folder",
        )
    if not folder.weights:
        raise InputError(
            "this folder holds only the ONNX model, without the weights that torch needs",
            path=folder.path,
            fix="open it with backend='onnx', or name the encoder that it was made from",
        )
    folder.check_content(*folder.weights)
    raw = read_json(folder.model_path / "config.json")
    adapted = is_adapted(raw)
    options: dict[str, Any] = {}
    model: nn.Module
    try:
        if family_of(raw) in BERT_LIKE - {"distilbert"}:
            options["add_pooling_layer"] = _has_pooler(folder)
        config: Any = (
            AutoConfig.for_model(family_of(raw), **{key: value for key, value in raw.items() if key != "model_type"})
            if adapted
            else AutoConfig.from_pretrained(str(folder.model_path), local_files_only=True, trust_remote_code=False)
        )
        with quiet_transformers():
            model, loading = AutoModel.from_pretrained(
                str(folder.model_path),
                config=config,
                dtype=torch.float32,
                local_files_only=True,
                trust_remote_code=False,  # unset, transformers ask whoever sits at the terminal
                use_safetensors=True,
                output_loading_info=True,
                **options,
            )
    except Exception as error:  # transformers and the libraries below have many kinds
        if WANTS_CODE in str(error):
            raise InputError(BRINGS_CODE, path=folder.model_path, fix=NO_CODE) from None
        if _OTHER_SIZES in str(error):  # it refers to a report that is not shown
            raise InputError(
                "these weights are not of the sizes that config.json says",
                path=folder.model_path,
                fix="take weights and config.json of one model",
            ) from None
        raise InputError(
            f"transformers cannot load this encoder ({' '.join(str(error).split())[:300]})", path=folder.model_path
        ) from None
    # What the file does not have, transformers makes up at random: other vectors each time.
    missing = sorted(name for name in loading["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise InputError(
            f"these weights are not those of the encoder that config.json describes: {missing[0]} is not among them",
            path=folder.model_path,
            fix="take a copy saved by transformers' save_pretrained",
        )
    table = _token_table(model)
    tokenizer = folder.load_tokenizer()
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    # A special one, such as for padding, is in no name, but for those around each.
    tokens = {token: number for token, number in tokenizer.get_vocab().items() if token not in special}
    around = tokenizer.encode("a")
    tokens.update(zip(around.tokens, around.ids, strict=True))
    if isinstance(table, nn.Embedding) and max(tokens.values(), default=0) >= table.num_embeddings:
        raise InputError(
            f"the tokeniser has the token {max(tokens, key=tokens.__getitem__)!r} with the number "
            f"{max(tokens.values()):,}, and the weights know {table.num_embeddings:,} tokens, 0 to "
            f"{table.num_embeddings - 1:,}",
            path=folder.model_path,
            fix="take the tokeniser that belongs to these weights, or add embeddings for what was added to it "
            "(transformers: model.resize_token_embeddings(len(tokenizer)), and save both)",
        )
    if adapted:
        insert_saved(model, _adapter_weights(folder))
    pooler = getattr(model, "pooler", None)
    if isinstance(pooler, nn.Module):
        pooler.requires_grad_(False)
    return model


def _token_table(model: nn.Module) -> nn.Module | None:
    """The embeddings of tokens; None in families that have none, as CANINE, which hashes characters."""
    from transformers import PreTrainedModel

    with contextlib.suppress(NotImplementedError):
        return model.get_input_embeddings() if isinstance(model, PreTrainedModel) else None
    return None


def _first_token_sees_all(encoder: PackedEncoder) -> bool:
    """Whether the first token's vector depends on the last one.

    Several last tokens are tried, all over the table: some may have equal embeddings, as of tokens never trained.

    Raises:
        InputError: the model cannot be run on tokens alone.
    """
    try:
        table = _token_table(encoder.model)
        n_tokens = table.num_embeddings if isinstance(table, nn.Embedding) else 5
        ids = [one for one in range(0, n_tokens, max(1, n_tokens // 16)) if one != encoder.padding_id]
        with torch.inference_mode():
            vectors = encoder(pack_lists([[*ids[:2], last] for last in ids[1:]]))
    except MemoryError:
        raise
    except Exception as error:  # transformers has many kinds
        raise InputError(
            f"this encoder does not run on names alone ({' '.join(str(error).split())[:300]})",
            path=None if encoder.source is None else encoder.source.path,
            fix="take one of another family, such as BERT's",
        ) from None
    return not torch.equal(vectors[1:], vectors[:1].expand_as(vectors[1:]))


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bars and remarks on standard error while it loads or saves."""
    import transformers

    logging: Any = transformers.utils.logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _adapter_weights(folder: EncoderFolder) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for file in folder.weights:
        with safe_open(file, framework="pt") as tensors:
            found |= {name: tensors.get_tensor(name) for name in filter(is_adapter_name, tensors.keys())}
    return found


def _has_pooler(folder: EncoderFolder) -> bool:
    for file in folder.weights:
        with safe_open(file, framework="pt") as tensors:
            if "pooler." in "\n".join(tensors.keys()):
                return True
    return False
