"""What the files of sentence-transformers say of an encoder: which steps it has, how it pools, where it cuts.

A plain folder of transformers has none of these files and says nothing.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.encoders.json_files import read_json
from onoma.encoders.pooling import POOLINGS, Pooling
from onoma.errors import InputError

_RUNNABLE_STEPS = frozenset({"Transformer", "Pooling", "Normalize"})
_SETTINGS_FILES = tuple(
    f"sentence_{family}_config.json"
    for family in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Names that its settings have had; the first one that says anything holds."""
_NO_LIMIT = 1 << 30
"""More tokens than any model has positions for."""
_HEAD_BYTES = 1024
_CUT_LEFT = re.compile(rb'"truncation":\s*\{[^{}]*"direction":\s*"Left"')
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
    _refuse_prompt_and_cut(folder)
    model_path = folder / steps.get("Transformer", "")
    found = (read_json(model_path / file, missing_is_empty=True) for file in _SETTINGS_FILES)
    settings: dict[str, Any] = next((said for said in found if said), {})
    longest = _longest_text(model_path, settings) if steps else settings.get("max_seq_length")
    return SentenceSettings(
        model_path=model_path,
        pooling=_said_pooling(folder / steps["Pooling"]) if "Pooling" in steps else None,
        max_tokens=None if longest is None else int(longest),
        lower_case=bool(settings.get("do_lower_case", False)),
    )


def _longest_text(model_path: Path, settings: dict[str, Any]) -> int:
    """Where texts are cut, by the first that says it: options of the tokeniser, the setting, the tokeniser itself.

    Where nobody does, what the model has positions for is the limit. What is cut off is the end, whatever is said: who
    wants the beginning cut off is warned.
    """
    # The earlier name of the two takes the place of the later one.
    options = settings.get("tokenizer_args" if "tokenizer_args" in settings else "processor_kwargs") or {}
    of_tokeniser = read_json(model_path / "tokenizer_config.json", missing_is_empty=True) or {}
    side = options.get("truncation_side", of_tokeniser.get("truncation_side"))
    if side == "left" or (side is None and _cuts_beginnings(model_path / "tokenizer.json")):
        warnings.warn(
            f"{model_path / ('tokenizer.json' if side is None else 'tokenizer_config.json')}: of texts that are too "
            "long other tools cut off the beginning (truncation_side left), Onoma the end; vectors of these differ, "
            "all others are the same.",
            stacklevel=2,
        )
    for longest in (
        options.get("model_max_length"),
        settings.get("max_seq_length"),
        of_tokeniser.get("model_max_length", of_tokeniser.get("max_len")),
    ):
        if longest is not None:
            return int(min(longest, _NO_LIMIT))  # a tokeniser without a limit says 1e30
    return _NO_LIMIT


def _cuts_beginnings(tokenizer: Path) -> bool:
    """What is cut off stands before the vocabulary, which is large and need not be read."""
    if not tokenizer.is_file():
        return False
    with tokenizer.open("rb") as file:
        return _CUT_LEFT.search(file.read(_HEAD_BYTES)) is not None


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
        check_within(steps[kind], folder / "modules.json")
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


def _refuse_prompt_and_cut(folder: Path) -> None:
    """Refuse an encoder that other tools give other texts than it is asked for, or whose vectors they cut."""
    about = read_json(folder / "config_sentence_transformers.json", missing_is_empty=True) or {}
    prompt = (about.get("prompts") or {}).get(about.get("default_prompt_name"))
    if prompt:
        raise InputError(
            "this encoder puts a prompt before every text, which Onoma does not",
            path=folder / "config_sentence_transformers.json",
            found=repr(prompt),
            fix="take an encoder of names, or remove default_prompt_name if names are to go without",
        )
    if about.get("truncate_dim") is not None:
        raise InputError(
            "of this encoder's vectors other tools keep the first numbers only, unasked",
            path=folder / "config_sentence_transformers.json",
            found=f"truncate_dim {about['truncate_dim']}",
            fix="remove truncate_dim, and ask for so many dimensions when you open it or build with it",
        )


def check_within(name: str, named_in: Path) -> None:
    """Refuse a name in a foreign folder that leads out of it.

    Raises:
        InputError: it does.
    """
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise InputError(
            f"'{name}' lies outside of this encoder's folder", path=named_in, fix="take a whole copy of it"
        )
