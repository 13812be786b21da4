"""Tiny random encoders of each family, with tokenisers made on the spot."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from onoma.encoders.loading import quiet_transformers

# Models this small lose more to the meeting of threads than these win.
torch.set_num_threads(1)

MAX_TOKENS = 24
FAMILIES = ("bert", "roberta", "xlm-roberta", "mpnet", "distilbert")
OTHER_FAMILIES: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 16},
    "electra": {"embedding_size": 16},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8},
    "modernbert": {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3},
    "flaubert": {"emb_dim": 32, "n_layers": 2, "n_heads": 4},
    "canine": {"num_hash_buckets": 64, "num_hash_functions": 4, "type_vocab_size": 4, "local_transformer_stride": 8},
}
"""Some that do not run packed, and what they need besides the shape. Of the last no ONNX model can be made."""

NAMES = [
    "heart attack",
    "",
    "   ",
    "Diabetes mellitus, type 2",
    "x" * 10_000,
    "heart attack " * 900,
    "心肌梗死",
    "инфаркт миокарда",
    "احتشاء عضلة القلب",
    "🧬🫀",
    "a\0b\0",
    "\0",
    "lone \ud800 surrogate",
    "heart attack",
    "e\u0301 and é",
    "fever",
    "tab\tand\nline",
]
"""Awkward names; the first and the fourteenth are the same."""


def wordpiece() -> Tokenizer:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789,.-"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "heart", "attack", "fever", "diabetes", "type"]
    vocabulary = [*words, *letters, *(f"##{letter}" for letter in letters)]
    tokenizer = Tokenizer(models.WordPiece({word: row for row, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def byte_level() -> Tokenizer:
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({word: row for row, word in enumerate(vocabulary)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def tiny_model(family: str, *, n_layers: int = 2) -> Any:
    """A random Hugging Face model of width 32, whose vectors differ well from name to name."""
    torch.manual_seed(len(family))
    common: dict[str, Any] = {"vocab_size": 300, "initializer_range": 0.25}
    shape: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": n_layers,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    }
    if family == "bert":
        config: Any = transformers.BertConfig(**common, **shape, max_position_embeddings=40)
    elif family in {"roberta", "xlm-roberta", "camembert"}:
        kind = {
            "roberta": transformers.RobertaConfig,
            "xlm-roberta": transformers.XLMRobertaConfig,
            "camembert": transformers.CamembertConfig,
        }[family]
        config = kind(**common, **shape, max_position_embeddings=42, pad_token_id=1, type_vocab_size=1)
    elif family == "mpnet":
        config = transformers.MPNetConfig(
            **common, **shape, max_position_embeddings=42, relative_attention_num_buckets=32
        )
    elif family in OTHER_FAMILIES:
        named = {} if "emb_dim" in OTHER_FAMILIES[family] else shape
        config = transformers.AutoConfig.for_model(
            family, **common, **named, max_position_embeddings=40, **OTHER_FAMILIES[family]
        )
    else:
        config = transformers.DistilBertConfig(
            **common, dim=32, n_layers=n_layers, n_heads=4, hidden_dim=64, max_position_embeddings=40
        )
    automatic: Any = transformers.AutoModel
    model = automatic.from_config(config)
    for name, parameter in model.named_parameters():
        # Freshly made biases are zero and norms one, which would hide a forgotten bias.
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, mean=1.0 if "norm" in name.lower() and "weight" in name else 0.0, std=0.1)
    return model.eval()


def write_tiny(folder: Path, family: str, *, n_layers: int = 2) -> Path:
    """A plain Hugging Face folder of a tiny random encoder."""
    roberta_like = family in {"roberta", "xlm-roberta", "mpnet"}
    words = (
        {"unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
        if roberta_like
        else {
            "unk_token": "[UNK]",
            "pad_token": "[PAD]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with quiet_transformers():
            tiny_model(family, n_layers=n_layers).save_pretrained(folder)
        tokenizer = byte_level() if roberta_like else wordpiece()
        fast: Any = transformers.PreTrainedTokenizerFast
        fast(tokenizer_object=tokenizer, **words).save_pretrained(folder)
    return folder
