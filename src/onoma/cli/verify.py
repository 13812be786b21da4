"""``onoma verify``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onoma.cli.options import Database, Json
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.artifacts import Manifest

_LEARNERS = ("encoder", "adapter", "reranker")
"""Kinds of folders whose origins are those of names that were learned, and are not in them."""


def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Any folder written by Onoma.")],
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Check every file of a folder that Onoma wrote.

    Compares checksums, and says what the folder is made from: also which files and vocabularies the names in it, or
    those that it learned, came from, and under which licences.

    Vectors in PostgreSQL are read and compared too, if you name the database. With --json, the object of a folder that
    is not whole also has its problem.
    """
    from onoma.artifacts import manifests_within, origins_in_rows, origins_of, read_manifest, verify_artifact
    from onoma.cli import show
    from onoma.encoders.model_card import data_in_rows, data_of
    from onoma.errors import ArtifactError, ConfigError, InputError, MismatchError, OnomaError
    from onoma.files.sizes import size_in_words
    from onoma.indexes.pgvector_folder import TABLE_FILE, chosen_database, open_in_table
    from onoma.indexes.records import read_index_record

    in_table: tuple[int, str] | None = None
    try:
        manifest = verify_artifact(folder)
        has_table = TABLE_FILE in manifest.files
        if database is not None and not has_table:
            raise ConfigError(f"{folder} has nothing in a database: leave --database out.")
        if has_table and chosen_database(database) is not None:
            with open_in_table(folder, read_index_record(folder), database=database) as index:
                index.verify()
                in_table = len(index), index.record.fingerprint
    except (ArtifactError, InputError, MismatchError) as error:
        if as_json:
            found = None
            with contextlib.suppress(OnomaError, OSError):
                found = read_manifest(folder)
            show.json_document(_facts(folder, found, problem=str(error)))
        raise
    if as_json:
        facts = _facts(folder, manifest)
        if has_table:
            facts["n_rows_read_in_table"] = 0 if in_table is None else in_table[0]
        show.json_document(facts)
        return
    size = sum(entry.bytes for entry in manifest.files.values())
    show.out.print(
        f"{folder}: a whole {manifest.kind} (format {manifest.format_version}), "
        f"{quantity(len(manifest.files), 'file')}, {size_in_words(size)}, made {manifest.created} "
        f"by Onoma {manifest.onoma_version}, checksum of its files {manifest.fingerprint[:16]}",
    )
    for parent in manifest.parents:
        show.out.print(f"  made from: {parent.kind}, fingerprint {parent.fingerprint[:16]}")
    for name, inner in manifests_within(folder, manifest).items():
        learned = inner.kind in _LEARNERS
        told = [
            *(data_in_rows(data_of([inner.config])) if learned else ()),
            *origins_in_rows(origins_of(inner.config), "learned names of" if learned else "names of"),
        ]
        for label, text in told:
            show.out.print(show.plain(f"  {f'{name} {label}'.lstrip()}: {text}"))
    if in_table is not None:
        rows, mark = in_table
        show.out.print(f"  vectors in PostgreSQL: {quantity(rows, 'row')}, fingerprint {mark[:16]}")
    elif has_table:
        show.remark("its vectors are in PostgreSQL and were not read: give --database to read them")


def _facts(folder: Path, manifest: Manifest | None, *, problem: str | None = None) -> dict[str, Any]:
    """What there is to say; the manifests of a folder that is not whole may not be readable."""
    from onoma.artifacts import manifests_within, origins_of
    from onoma.encoders.model_card import data_of

    facts: dict[str, Any] = {"path": str(folder), "is_whole": problem is None}
    if problem is not None:
        facts["problem"] = problem
    if manifest is not None:
        facts |= {
            "kind": manifest.kind,
            "format_version": manifest.format_version,
            "n_files": len(manifest.files),
            "n_bytes": sum(entry.bytes for entry in manifest.files.values()),
            "files_fingerprint": manifest.fingerprint,
            "made_from": [parent.model_dump() for parent in manifest.parents],
            "created": manifest.created,
            "onoma": manifest.onoma_version,
        }
    if manifest is not None and problem is None:
        inner = manifests_within(folder, manifest)
        facts["origins"] = {name: origins for name, one in inner.items() if (origins := origins_of(one.config))}
        facts["learnt"] = {
            name: data for name, one in inner.items() if one.kind in _LEARNERS and (data := data_of([one.config]))
        }
    return facts
