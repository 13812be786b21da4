"""Files as they were when a folder was read, to tell later whether they are still the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from onoma.artifacts import Manifest, sha256_file

_Stamp: TypeAlias = tuple[int, int] | None
"""Size in bytes and time of the last change in nanoseconds; none of a file that is gone."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as it was when its folder was read."""

    stamp: _Stamp
    sha256: str | None
    """Unset where only reading all of a large file would tell."""

    def is_still(self, file: Path, sha256: str | None = None) -> bool:
        """Whether a file has the content that was seen.

        Args:
            file: It may have been written anew.
            sha256: Of its content, if that became known while it was as it was seen.
        """
        stamp, known = _stamp(file), self.sha256 or sha256
        return stamp == self.stamp or (known is not None and stamp is not None and sha256_file(file) == known)


def see_files(files: Iterable[Path], folder: Path, manifest: Manifest | None) -> Mapping[Path, SeenFile]:
    """Those of some files of a folder that are there; checksums are its manifest's, or without one of JSON alone."""
    return {file: SeenFile(_stamp(file), _checksum(file, folder, manifest)) for file in files if file.is_file()}


def _checksum(file: Path, folder: Path, manifest: Manifest | None) -> str | None:
    if manifest is not None:
        entry = manifest.files.get(file.relative_to(folder).as_posix())
        return None if entry is None else entry.sha256
    return sha256_file(file) if file.suffix == ".json" else None


def _stamp(file: Path) -> _Stamp:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
