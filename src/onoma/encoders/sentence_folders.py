"""What the files of sentence-transformers say of an encoder: which steps it has, how it pools, where it cuts.

A plain folder of transformers has none of these files and says nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.encoders.pooling import POOLINGS, Pooling
from onoma.errors import InputError

_RUNNABLE_STEPS = frozenset({"Transformer", "Pooling", "Normalize"})
_POOLING_FLAGS: dict[str, Pooling] = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True, slots=True)
class SentenceSettings:
    """What a folder says, as far as it does.

    Attributes:
        model_path: Where the transformer lies.
        pooling: Which token vectors make a text's vector.
        max_tokens: Longest text, special tokens included; it can be more than the model has positions.
        lower_case: Whether texts are lower-cased before they are tokenised.
    """

    model_path: Path
    pooling: Pooling | None
    max_tokens: int | None
    lower_case: bool


def read_sentence_settings(folder: Path) -> SentenceSettings:
    """Read what a folder says.

    Args:
        folder: Of any tool.

    Raises:
        InputError: a file is damaged, or the encoder does something that Onoma does not.
        AttributeError, KeyError, TypeError, ValueError: a file has not the form that sentence-transformers gives it.
    """
    steps = _steps(folder)
    _refuse_prompt(folder)
    model_path = folder / steps.get("Transformer", "")
    settings = read_json(model_path / "sentence_bert_config.json", missing_is_empty=True) or {}
    longest = settings.get("max_seq_length")
    if steps and "max_seq_length" not in settings:  # from version 6 on the tokeniser says it
        of_tokeniser = read_json(model_path / "tokenizer_config.json", missing_is_empty=True) or {}
        said = of_tokeniser.get("model_max_length")
        longest = said if isinstance(said, int) else None
    return SentenceSettings(
        model_path=model_path,
        pooling=_said_pooling(folder / steps["Pooling"]) if "Pooling" in steps else None,
        max_tokens=None if longest is None else int(longest),
        lower_case=bool(settings.get("do_lower_case", False)),
    )


def _steps(folder: Path) -> dict[str, str]:
    """Kind of each step of a sentence-transformers folder -> the folder it lies in."""
    steps = {}
    for step in read_json(folder / "modules.json", missing_is_empty=True) or []:
        kind = str(step["type"]).rpartition(".")[2]
        if kind not in _RUNNABLE_STEPS:
            raise InputError(
                f"this encoder has a step {kind}, which Onoma does not run",
                path=folder / "modules.json",
                expected=", ".join(sorted(_RUNNABLE_STEPS)),
            )
        steps[kind] = str(step.get("path", ""))
    return steps


def _said_pooling(folder: Path) -> Pooling:
    config = read_json(folder / "config.json")
    mode = config.get("pooling_mode")
    modes = (
        [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
        if mode is None
        else [mode]
        if isinstance(mode, str)
        else list(mode)
    )
    known: dict[str, Pooling] = {**_POOLING_FLAGS, **{pooling: pooling for pooling in POOLINGS}}
    if len(modes) != 1 or modes[0] not in known:
        raise InputError(
            "this encoder pools in a way that Onoma does not",
            path=folder / "config.json",
            expected=" or ".join(POOLINGS),
            found=", ".join(map(str, modes)) or "none",
        )
    return known[modes[0]]


def _refuse_prompt(folder: Path) -> None:
    """Refuse an encoder that sentence-transformers gives other texts than those it is asked for."""
    about = read_json(folder / "config_sentence_transformers.json", missing_is_empty=True) or {}
    prompt = (about.get("prompts") or {}).get(about.get("default_prompt_name"))
    if prompt:
        raise InputError(
            "this encoder puts a prompt before every text, which Onoma does not",
            path=folder / "config_sentence_transformers.json",
            found=repr(prompt),
            fix="take an encoder of names, or remove default_prompt_name if names are to go without",
        )


def read_json(file: Path, *, missing_is_empty: bool = False) -> Any:
    """What a file of JSON in an encoder's folder holds.

    Args:
        file: The file.
        missing_is_empty: Whether a file that is not there counts as ``{}``.

    Raises:
        InputError: it is missing, or no JSON.
    """
    if missing_is_empty and not file.is_file():
        return {}
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("this file is missing", path=file, fix="download the encoder again") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"this file is not JSON ({error})", path=file) from None
