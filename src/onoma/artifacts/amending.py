"""Changing a part of an artefact folder without copying the rest."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onoma._version import __version__
from onoma.artifacts.files import write_text_atomically
from onoma.artifacts.manifest import CARD_NAME, MANIFEST_NAME, Manifest, open_artifact, read_manifest
from onoma.artifacts.system import naming_what_is_written
from onoma.artifacts.writing import finish_files, now, replacing
from onoma.errors import ArtifactExistsError, OnomaError


@contextlib.contextmanager
def amend_artifact(
    path: str | Path,
    kind: str,
    *,
    format_version: int = 1,
    config: Mapping[str, Any] | None = None,
    dropping: Sequence[str] = (),
    expected: Manifest | None = None,
) -> Iterator[Path]:
    """Give an empty folder for what changes in an artefact; on leaving the block it and all else becomes the artefact.

    What does not change is neither read nor copied: the new folder has hard links to it (copies where the file
    system knows none). Whoever has the old files open, or mapped, keeps them as they were. Killed at any moment
    this leaves the old folder or the new one, as `write_artifact` does.

    Args:
        path: The artefact.
        kind: What it must be.
        format_version: Of the folder as it will be.
        config: Settings that are added, or replaced, in the manifest.
        dropping: Beginnings of names ("reranker/") of files that shall not stay.
        expected: What the changes were worked out for; unset: whatever is there now.

    Yields:
        The folder to write into. A file written there takes the place of the one of the same name.

    Raises:
        InputError: there is nothing at ``path``.
        ArtifactError: it is not a whole artefact of this kind, is not what was expected, or has changed meanwhile.
    """
    target = Path(path).resolve()
    before = open_artifact(target, kind, format_version=format_version)
    if expected is not None and before != expected:
        raise changed_meanwhile(target)

    def check(folder: Path) -> None:
        if read_manifest(folder) != before:
            raise changed_meanwhile(target)

    with (
        telling_of_changes(target, before),
        naming_what_is_written(path),
        replacing(target, kind, overwrite=True, check=check) as aside,
    ):
        yield aside
        files = finish_files(aside)
        for name, entry in before.files.items():
            if name not in files and not name.startswith(tuple(dropping)):
                if name == CARD_NAME and (target / name).is_symlink():
                    continue  # no checksum of it was looked at: it may lead wherever somebody likes
                _link_or_copy(target / name, aside / name)
                files[name] = entry
        amended = before.model_copy(
            update={
                "format_version": format_version,
                "onoma_version": __version__,
                "created": now(),
                "files": dict(sorted(files.items())),
                "config": {**before.config, **(config or {})},
            }
        )
        write_text_atomically(aside / MANIFEST_NAME, amended.as_text())
        check(target)


@contextlib.contextmanager
def telling_of_changes(target: Path, before: Manifest) -> Iterator[None]:
    """Say so where something fails since another process has replaced the folder that is read.

    Raises:
        ArtifactExistsError: it did, and the folder has another manifest than it had before.
    """
    try:
        yield
    except (OSError, OnomaError):
        if read_manifest(target) != before:
            raise changed_meanwhile(target) from None
        raise


def changed_meanwhile(target: Path) -> ArtifactExistsError:
    """The error where a folder that is about to be replaced is not the one that was read."""
    return ArtifactExistsError(f"{target} was changed by another process meanwhile; try again.")


def _link_or_copy(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        shutil.copyfile(source, destination)
        return
    try:
        os.link(source, destination)
    except OSError:  # the file system has no hard links
        shutil.copy2(source, destination)
