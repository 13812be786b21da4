"""Manifests that say something else than what was written, and are whole by their own checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onoma.artifacts import MANIFEST_NAME
from onoma.artifacts.manifest import FileEntry


def read_fields(folder: Path) -> dict[str, Any]:
    """What a manifest says, to be changed and written again."""
    fields: dict[str, Any] = json.loads((folder / MANIFEST_NAME).read_text())
    return fields


def write_fields(folder: Path, fields: Mapping[str, Any]) -> None:
    """A manifest that says so, and that these are its words."""
    said = {name: value for name, value in fields.items() if name != "sha256"}
    checksum = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    (folder / MANIFEST_NAME).write_text(json.dumps({**said, "sha256": checksum}))


def refit(folder: Path, **config: Any) -> None:
    """Make the manifest fit the files that lie there now: damage that no checksum sees."""
    fields = read_fields(folder)
    fields["files"] = {
        file.relative_to(folder).as_posix(): FileEntry.of(file).model_dump(exclude_none=True)
        for file in folder.rglob("*")
        if file.is_file() and file != folder / MANIFEST_NAME
    }
    write_fields(folder, {**fields, "config": {**fields["config"], **config}})
