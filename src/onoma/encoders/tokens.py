"""Text to token ids, with the tokenizers library alone.

Token ids of many names are kept ragged: name ``i`` has ``ids[offsets[i]:offsets[i + 1]]``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, normalizers
from tokenizers.models import BPE, Unigram, WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel

from onoma.encoders.json_files import read_json
from onoma.errors import InputError, first_line, missing_extra
from onoma.types import DoubleArray

WANTS_CODE = "trust_remote_code"
"""Stands in the error of transformers where a folder has a program of its own, which is never run here."""
BRINGS_CODE = "this encoder brings code of its own, which Onoma never runs"
NO_CODE = "take an encoder of a family that transformers have"
_KIND_OF_FAMILY = {
    "bert": "BertTokenizer",
    "distilbert": "DistilBertTokenizer",
    "electra": "ElectraTokenizer",
    "mpnet": "MPNetTokenizer",
    "roberta": "RobertaTokenizer",
}
"""What transformers take the tokeniser of a model's family for, where the folder does not say."""
_BERT_LIKE = frozenset({"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MPNetTokenizer"})
_IN_NO_VOCABULARY = "\U00013000"
"""A hieroglyph: a letter, which no tokeniser leaves out as a mark or control character."""


def load_tokenizer(folder: Path, *, alone: bool = False) -> Tokenizer:
    """The tokeniser of a model folder, without truncation or padding.

    Reads ``tokenizer.json``. Where ``tokenizer_config.json`` contradicts it, the latter holds, also in what it leaves
    unsaid and where it is missing, as in transformers. An older folder without ``tokenizer.json`` (``vocab.txt``,
    ``sentencepiece.bpe.model``) is converted by transformers, which must then be installed.

    Args:
        folder: With ``config.json``.
        alone: ``tokenizer.json`` holds whatever else there is, as in a reranker's folder.

    Raises:
        InputError: there is no tokeniser, it is not readable, fails at what it does not know, or the two files put
            other tokens around a text.
        UnavailableError: it needs converting and transformers is not installed.
    """
    file = folder / "tokenizer.json"
    if file.is_file():
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exception for anything it cannot read
            raise InputError(f"the tokeniser is not readable ({error})", path=file) from None
    else:
        tokenizer = _convert(folder)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    configured = folder / "tokenizer_config.json"
    if file.is_file() and not alone:
        try:
            _follow(tokenizer, read_json(configured, missing_is_empty=True), folder)
        except (AttributeError, TypeError) as error:
            raise InputError(f"these are no settings of a tokeniser ({error})", path=configured) from None
    try:
        tokenizer.encode(_IN_NO_VOCABULARY)
    except Exception as error:  # bare again
        raise InputError(
            f"the tokeniser cannot read what its vocabulary does not have ({error})",
            path=file if file.is_file() else folder,
            fix="get the encoder again: the token for the unknown, such as [UNK], is part of its vocabulary",
        ) from None
    return tokenizer


def _follow(tokenizer: Tokenizer, said: dict[str, Any], folder: Path) -> None:
    """Set a tokeniser as ``tokenizer_config.json`` says.

    For some kinds transformers 5 take from ``tokenizer.json`` only the vocabulary. In the class of each kind stands
    what it makes of the settings, and what it does where they say nothing. A vocabulary of another kind than the class
    has, of which it could make nothing, stays with the rules beside it.

    Raises:
        InputError: other tokens are to be put around a text than the tokeniser puts there.
        AttributeError, TypeError: a setting is of another kind than it should be.
    """
    config = read_json(folder / "config.json", missing_is_empty=True)
    kind = said.get("tokenizer_class") or config.get("tokenizer_class")
    kind = str(kind or _KIND_OF_FAMILY.get(config.get("model_type"))).removesuffix("Fast")
    if kind in _BERT_LIKE and isinstance(tokenizer.model, WordPiece):
        tokenizer.normalizer = normalizers.BertNormalizer(
            handle_chinese_chars=said.get("tokenize_chinese_chars", True),
            strip_accents=said.get("strip_accents"),
            lowercase=said.get("do_lower_case", True),
        )
        tokenizer.pre_tokenizer = BertPreTokenizer()
    elif kind == "RobertaTokenizer" and isinstance(tokenizer.model, BPE):
        tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=said.get("add_prefix_space", False))
    else:
        return
    around = tokenizer.encode("a").tokens
    for name, found in (("cls_token", around[0]), ("sep_token", around[-1])):
        token = said.get(name)
        token = token.get("content") if isinstance(token, dict) else token
        if token not in {None, found}:
            raise InputError(
                f"{name} is {token!r} here, and tokenizer.json puts {found!r} there",
                path=folder / "tokenizer_config.json",
                fix="take the two files of one tokeniser",
            )


def has_tokenizer(folder: Path) -> bool:
    """Whether a model folder has a tokeniser, or what one is converted from."""
    names = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
    return any((folder / name).is_file() for name in names)


def tokenizer_fingerprint(tokenizer: Tokenizer) -> str:
    """SHA-256 of a tokeniser's vocabulary and rules, whatever truncation and padding are set.

    Two tokenisers with equal fingerprints give equal ids to every text.
    """
    bare = Tokenizer.from_str(tokenizer.to_str())
    bare.no_truncation()
    bare.no_padding()
    return hashlib.sha256(bare.to_str().encode()).hexdigest()


def special_tokens_around(tokenizer: Tokenizer) -> tuple[int, int]:
    """How many special tokens a tokeniser puts before a text and after it; [CLS] and [SEP] are one each.

    Cutting a text leaves them in place.
    """
    is_special = tokenizer.encode("a fever of 1").special_tokens_mask
    before = next((place for place, special in enumerate(is_special) if not special), 0)
    after = next((place for place, special in enumerate(reversed(is_special)) if not special), 0)
    return before, after


def known_shares(tokenizer: Tokenizer, texts: Sequence[str], unknown: int | None) -> DoubleArray:
    """How much of each text a tokeniser knows, 0..1, shape (n,).

    It is the share of the letters and digits that are in other tokens than the unknown one: a sign like an emoji
    beside words does not count. Where there are no letters and digits it is the share of the tokens; without
    tokens, 0.

    Args:
        tokenizer: As for `tokenise`.
        texts: As for `tokenise`.
        unknown: From `unknown_id`.

    Raises:
        InputError: an entry is not a string.
    """
    offsets, ids = tokenise(tokenizer, texts, special_tokens=False)
    lengths = np.diff(offsets)
    shares: DoubleArray = (lengths > 0).astype(np.float64)
    if unknown is not None:
        n_unknown = np.concatenate([[0], np.cumsum(ids == unknown)])
        for row in np.flatnonzero(n_unknown[offsets[1:]] > n_unknown[offsets[:-1]]).tolist():
            shares[row] = _known_share(tokenizer, _clean(texts[row], row), unknown)
    return shares


def _known_share(tokenizer: Tokenizer, text: str, unknown: int) -> float:
    encoding = tokenizer.encode(text, add_special_tokens=False)
    is_unknown = [token == unknown for token in encoding.ids]
    letters = [sum(map(str.isalnum, text[begin:end])) for begin, end in encoding.offsets]
    counts = letters if any(letters) else [1] * len(letters)
    return 1 - sum(itertools.compress(counts, is_unknown)) / sum(counts)


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """The id of the token that stands for what a tokeniser does not know; byte-level ones know everything."""
    if isinstance(tokenizer.model, Unigram):  # the library tells it only so
        found: int | None = json.loads(tokenizer.to_str())["model"].get("unk_id")
        return found
    token = getattr(tokenizer.model, "unk_token", None)
    return None if token is None else tokenizer.token_to_id(token)


def is_one_token(tokenizer: Tokenizer, word: str) -> bool:
    """Whether a tokeniser has a word whole, as the one behind a space that it is in most texts."""
    return len(tokenizer.encode(f"a {word}", add_special_tokens=False)) == 1 + len(
        tokenizer.encode("a", add_special_tokens=False)
    )


def tokenise(
    tokenizer: Tokenizer, texts: Sequence[str], *, special_tokens: bool = True
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Token ids of names, cut as the tokeniser is set to.

    Args:
        tokenizer: With truncation enabled where names may be long.
        texts: Names; anything a Python string can hold. A lone surrogate counts as U+FFFD.
        special_tokens: Whether a name has the special tokens around it that the tokeniser puts there.

    Returns:
        ``offsets``, shape (n + 1,), and ``ids``, shape (total tokens,).

    Raises:
        InputError: an entry is not a string.
    """
    cleaned = [_clean(text, row) for row, text in enumerate(texts)]
    encodings = tokenizer.encode_batch_fast(cleaned, add_special_tokens=special_tokens)
    rows = [encoding.ids for encoding in encodings]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=offsets[1:])
    return offsets, np.fromiter(itertools.chain.from_iterable(rows), np.int32, int(offsets[-1]))


def _clean(text: str, row: int) -> str:
    if not isinstance(text, str):
        raise InputError(f"name {row} is not text", expected="a string", found=repr(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _convert(folder: Path) -> Tokenizer:
    if not has_tokenizer(folder):
        raise InputError(
            "this folder has no tokeniser",
            path=folder,
            expected="tokenizer.json or vocab.txt, vocab.json, sentencepiece.bpe.model or spiece.model",
            fix="save the model's there: transformers.AutoTokenizer.from_pretrained(...).save_pretrained(...)",
        )
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise missing_extra(
            "transformers", "train", f"Reading the tokeniser of {folder}, which has no tokenizer.json,"
        ) from None
    try:
        converted = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except MemoryError:
        raise
    except Exception as error:  # transformers and the libraries below have many kinds
        if WANTS_CODE in str(error):
            raise InputError(BRINGS_CODE, path=folder, fix=NO_CODE) from None
        raise InputError(
            f"the tokeniser cannot be converted to tokenizer.json ({first_line(error)})", path=folder
        ) from None
    backend = getattr(converted, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise InputError("the tokeniser cannot be converted to tokenizer.json", path=folder)
    return Tokenizer.from_str(backend.to_str())
