"""A drive of Windows as WSL sees it: a folder in which a file is open cannot be renamed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest


def in_use(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let nothing of this name be renamed."""
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name == name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
