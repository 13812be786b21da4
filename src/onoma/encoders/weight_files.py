"""The safetensors files of a folder: which there are, and how much they hold."""

from __future__ import annotations

import json
import math
from pathlib import Path

from onoma.encoders.json_files import read_json
from onoma.encoders.sentence_folders import check_within
from onoma.errors import InputError

WEIGHTS_INDEX = "model.safetensors.index.json"
"""Says which weights are in which file, where there are several."""


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The weights of a model in one file or several; none if there are none in safetensors.

    Raises:
        InputError: the index names a file that is not there.
    """
    whole = folder / "model.safetensors"
    if whole.is_file():
        return (whole,)
    index = folder / WEIGHTS_INDEX
    if not index.is_file():
        return ()
    shards = sorted(set(read_json(index).get("weight_map", {}).values()))
    for shard in shards:
        check_within(str(shard), index)
    missing = [shard for shard in shards if not (folder / shard).is_file()]
    if missing:
        raise InputError(f"the weights file {missing[0]} is missing", path=folder, fix="download the encoder again")
    return tuple(folder / shard for shard in shards)


def count_parameters(folder: Path) -> int:
    """Numbers in the safetensors files of a folder, by their headers; 0 where there are none."""
    count = 0
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as handle:
            length = int.from_bytes(handle.read(8), "little")
            try:
                header = json.loads(handle.read(min(length, file.stat().st_size)))
                tensors = [entry for name, entry in header.items() if name != "__metadata__"]
                # Whole numbers are positions and the like, no parameters.
                count += sum(math.prod(entry["shape"]) for entry in tensors if "F" in entry["dtype"])
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
                raise InputError("these are no weights in safetensors, or damaged ones", path=file) from None
    return count
