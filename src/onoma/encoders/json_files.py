"""The JSON files of an encoder's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onoma.errors import InputError


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
    except (ValueError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"this file is not JSON ({error})", path=file) from None


def write_json(file: Path, content: Any) -> None:
    """As encoders' folders have it: a line for each value."""
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
