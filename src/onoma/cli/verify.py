"""``onoma verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def verify(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Any folder written by Onoma.")]) -> None:
    """Checksum every file of a folder that Onoma wrote, and say what it is made from."""
    from onoma.artifacts import verify_artifact
    from onoma.cli import show

    manifest = verify_artifact(folder)
    size = sum(entry.bytes for entry in manifest.files.values())
    show.out.print(
        f"{folder}: a whole {manifest.kind} (format {manifest.format_version}), "
        f"{show.count(len(manifest.files), 'file')}, {size / 1e6:,.1f} MB, made {manifest.created} "
        f"by Onoma {manifest.onoma_version}, fingerprint {manifest.fingerprint[:16]}",
        markup=False,
    )
    for parent in manifest.parents:
        show.out.print(f"  made from: {parent.kind}, fingerprint {parent.fingerprint[:16]}", markup=False)
