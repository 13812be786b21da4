"""``onoma verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import Database


def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Any folder written by Onoma.")],
    database: Database = None,
) -> None:
    """Checksum every file of a folder that Onoma wrote, and say what it is made from.

    Vectors that lie in PostgreSQL are read and compared too, if a database is named.
    """
    from onoma.artifacts import verify_artifact
    from onoma.cli import show
    from onoma.errors import ConfigError
    from onoma.indexes.pgvector_folder import TABLE_FILE, chosen_database, open_in_table
    from onoma.indexes.records import read_index_record

    manifest = verify_artifact(folder)
    has_table = TABLE_FILE in manifest.files
    if database is not None and not has_table:
        raise ConfigError(f"{folder} has nothing in a database: leave --database out.")
    in_table: str | None = None
    if has_table and chosen_database(database) is not None:
        with open_in_table(folder, read_index_record(folder), database=database) as index:
            index.verify()
            rows, mark = show.count(len(index), "row"), index.record.fingerprint[:16]
            in_table = f"  vectors in PostgreSQL: {rows}, fingerprint {mark}"
    size = sum(entry.bytes for entry in manifest.files.values())
    show.out.print(
        f"{folder}: a whole {manifest.kind} (format {manifest.format_version}), "
        f"{show.count(len(manifest.files), 'file')}, {size / 1e6:,.1f} MB, made {manifest.created} "
        f"by Onoma {manifest.onoma_version}, fingerprint {manifest.fingerprint[:16]}",
    )
    for parent in manifest.parents:
        show.out.print(f"  made from: {parent.kind}, fingerprint {parent.fingerprint[:16]}")
    if in_table is not None:
        show.out.print(in_table)
    elif has_table:
        show.remark("its vectors lie in PostgreSQL, and were not read: give --database for that")
