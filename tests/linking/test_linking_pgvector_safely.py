"""Linkers over PostgreSQL that are built anew, updated, stopped on the way: nothing is lost, nothing stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from updating_data import MENTIONS, contents, letters, prepared

from onoma.artifacts import amend_artifact, verify_artifact
from onoma.errors import ArtifactExistsError, InputError, MismatchError
from onoma.indexes import pgvector_folder
from onoma.indexes.pgvector_folder import DATABASE_VARIABLE, TABLE_FILE
from onoma.indexes.records import write_index_record
from onoma.linking import Linker, add_prior, build_linker
from onoma.linking.folder import FORMAT_VERSION
from onoma.linking.updating import update_linker

if TYPE_CHECKING:
    from postgres_database import Schema

pytest_plugins = ["postgres_database"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("pgvector"))


def build(place: Path, out: Path, schema: Schema, *, release: str = "t", **options: Any) -> Linker:
    """Name by name, so that a vector does not depend on the others."""
    chosen: dict[str, Any] = {"index": "pgvector", "sparse": True, "database": schema.string, **options}
    return build_linker(place / release, letters(place), out, **chosen)


def table_of(linker: Linker) -> str:
    return str(linker.manifest.config["index"]["table"])


def files_of(linker: Path) -> dict[str, bytes]:
    """All but what names the table."""
    files = contents(linker)
    assert TABLE_FILE in files
    return {name: content for name, content in files.items() if name != TABLE_FILE}


def left_beside(linker: Path) -> list[str]:
    return [file.name for file in linker.parent.iterdir() if file.name.startswith(".")]


# Built anew


def test_with_force_the_table_is_replaced(place: Path, tmp_path: Path, schema: Schema) -> None:
    first = build(place, tmp_path / "linker", schema)
    other = build(place, tmp_path / "other", schema)
    schema.run(f"CREATE TABLE {schema.name}.onoma_of_somebody_else (id int)")
    with pytest.raises(ArtifactExistsError, match="--force"):
        build(place, tmp_path / "linker", schema)
    assert len(schema.tables()) == 3
    second = build(place, tmp_path / "linker", schema, vectors="fp16", overwrite=True)
    assert table_of(second) != table_of(first)
    assert set(schema.tables()) == {table_of(second), table_of(other), f"{schema.name}.onoma_of_somebody_else"}
    assert Linker.open(tmp_path / "linker", database=schema.string).link(MENTIONS) == second.link(MENTIONS)
    assert left_beside(tmp_path / "linker") == []
    with pytest.raises(MismatchError, match="Open the index again"):
        first.link(["brr"])


def test_another_index_takes_its_place(
    place: Path, tmp_path: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the database is known, the table goes; where it is not, nothing is wrong but that it stays."""
    build(place, tmp_path / "linker", schema)
    build_linker(place / "t", letters(place), tmp_path / "linker", overwrite=True)
    assert len(schema.tables()) == 1
    schema.run(f"DROP TABLE {schema.tables()[0]}")
    build(place, tmp_path / "linker", schema, overwrite=True)
    monkeypatch.setenv(DATABASE_VARIABLE, schema.string)
    build_linker(place / "t", letters(place), tmp_path / "linker", overwrite=True)
    assert schema.tables() == []


def test_a_table_that_cannot_be_dropped_is_told(place: Path, tmp_path: Path, schema: Schema) -> None:
    first = table_of(build(place, tmp_path / "linker", schema))
    schema.run(f"CREATE VIEW {schema.name}.leaning AS SELECT id FROM {first}")
    with pytest.warns(RuntimeWarning, match=rf"{first}: no longer needed.*depend on it.*Drop it yourself") as told:
        second = build(place, tmp_path / "linker", schema, overwrite=True)
    assert schema.password not in str(told[0].message)
    assert set(schema.tables()) == {first, table_of(second)}
    assert Linker.open(tmp_path / "linker", database=schema.string).link(MENTIONS) == second.link(MENTIONS)


@pytest.mark.parametrize("where", ["pgvector.write_record", "pgvector_folder.write_index_record"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_build_that_fails(
    place: Path, tmp_path: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch, where: str, is_there: bool
) -> None:
    """Before the table is committed, and after it."""
    before = table_of(build(place, tmp_path / "linker", schema)) if is_there else None

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"onoma.indexes.{where}", stop)
        with pytest.raises(KeyboardInterrupt):
            build(place, tmp_path / "linker", schema, overwrite=True)
    assert schema.tables() == ([before] if is_there else [])
    assert left_beside(tmp_path / "linker") == []
    assert (tmp_path / "linker").exists() == is_there
    if is_there:
        Linker.open(tmp_path / "linker", database=schema.string).link(MENTIONS)


def test_an_interrupt_while_the_replaced_folder_goes(
    place: Path, tmp_path: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new linker has its place already, so its table stays and the old one's goes."""
    before = table_of(build(place, tmp_path / "linker", schema))
    remove = shutil.rmtree

    def interrupted(path: Path, *args: Any, **options: Any) -> None:
        if str(path).endswith("-spent"):
            raise KeyboardInterrupt
        remove(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build(place, tmp_path / "linker", schema, overwrite=True)
    after = Linker.open(tmp_path / "linker", database=schema.string)
    assert schema.tables() == [table_of(after)] != [before]
    after.link(MENTIONS)


def test_what_is_at_the_place_in_the_end_is_replaced(
    place: Path, tmp_path: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a build was at work its place was moved away, to be kept, and another build finished there."""
    linker, kept = tmp_path / "linker", tmp_path / "kept"
    first = table_of(build(place, linker, schema))

    def meanwhile(*args: Any) -> None:
        write_index_record(*args)
        monkeypatch.setattr(pgvector_folder, "write_index_record", write_index_record)
        linker.rename(kept)
        build(place, linker, schema)

    monkeypatch.setattr(pgvector_folder, "write_index_record", meanwhile)
    last = build(place, linker, schema, overwrite=True)
    assert set(schema.tables()) == {first, table_of(last)}
    assert Linker.open(kept, database=schema.string).link(MENTIONS) == last.link(MENTIONS)
    assert left_beside(linker) == []


def test_the_table_of_a_folder_that_is_put_back_goes_too(place: Path, tmp_path: Path, schema: Schema) -> None:
    """A process was killed when it had moved the old linker away, and the new one had not its place yet."""
    build(place, tmp_path / "linker", schema)
    (tmp_path / "linker").rename(tmp_path / ".linker.partial-4999999-old")
    (tmp_path / ".linker.partial-4999999-abc").mkdir()
    linker = build(place, tmp_path / "linker", schema, overwrite=True)
    assert schema.tables() == [table_of(linker)]
    assert left_beside(tmp_path / "linker") == []


# Killed

_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:] = {path!r}
from onoma.artifacts import writing
from onoma.indexes import pgvector, pgvector_folder, pgvector_replacing
from onoma.linking.updating import update_linker
from onoma.linking import build_linker

module, _, name = {where!r}.rpartition(".")
call = getattr(globals()[module], name)

def kill(*args):
    if module != "writing" or args[0].parent.name.startswith(".linker."):
        os.kill(os.getpid(), signal.SIGKILL)
    return call(*args)

setattr(globals()[module], name, kill)
place, linker = Path({place!r}), Path({linker!r})
if {what!r} == "update":
    update_linker(linker, place / "new")
else:
    build_linker(place / "t", place / "letters", linker, index="pgvector", sparse=True, overwrite=True)
"""
MOMENTS = {
    "pgvector.write_record": "while the table is written",
    "pgvector_folder.write_index_record": "when it is written",
    "writing.write_text_atomically": "before the folder has a manifest",
}


def killed(place: Path, linker: Path, schema: Schema, what: str, where: str) -> None:
    code = _KILLED.format(path=sys.path, where=where, what=what, place=str(place), linker=str(linker))
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, env={**os.environ, DATABASE_VARIABLE: schema.string}
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("where", MOMENTS)
def test_a_killed_build(place: Path, tmp_path: Path, schema: Schema, where: str) -> None:
    killed(place, tmp_path / "linker", schema, "build", where)
    with pytest.raises(InputError, match="nothing here"):
        Linker.open(tmp_path / "linker", database=schema.string)
    assert len(left_beside(tmp_path / "linker")) == 1
    assert len(schema.tables()) == (where != "pgvector.write_record"), "what a transaction did is gone with it"
    linker = build(place, tmp_path / "linker", schema)
    assert schema.tables() == [table_of(linker)]
    assert left_beside(tmp_path / "linker") == []
    exact = Linker.open(place / "linker")
    assert linker.link(MENTIONS) == exact.link(MENTIONS)


def test_a_linker_that_is_amended_after_a_killed_update_leaves_no_table(
    place: Path, tmp_path: Path, schema: Schema
) -> None:
    linker = tmp_path / "linker"
    before = build(place, linker, schema)
    killed(place, linker, schema, "update", "pgvector_folder.write_index_record")
    assert len(schema.tables()) == 2
    add_prior(linker, pl.DataFrame({"mention": ["cold"], "concept_id": ["D2"]}), database=schema.string)
    assert schema.tables() == [table_of(before)]


@pytest.mark.parametrize("where", [*MOMENTS, "pgvector_replacing.drop_table"])
def test_a_killed_update(place: Path, tmp_path: Path, schema: Schema, where: str) -> None:
    """The last moment is when the new linker has its place, and the old table is about to go."""
    linker = tmp_path / "linker"
    before = build(place, linker, schema)
    old = files_of(linker)
    killed(place, linker, schema, "update", where)
    opened = Linker.open(linker, database=schema.string)
    verify_artifact(linker)
    if where == "pgvector_replacing.drop_table":
        assert files_of(linker) != old
        assert set(schema.tables()) == {table_of(before), table_of(opened)}
        return
    assert files_of(linker) == old
    assert opened.link(MENTIONS) == before.link(MENTIONS)
    report = update_linker(linker, place / "new", encoder=letters(place), database=schema.string)
    assert not report.is_current
    assert schema.tables() == [table_of(Linker.open(linker, database=schema.string))]
    assert left_beside(linker) == []


def test_a_table_in_use_is_not_taken_for_one_left_behind(place: Path, tmp_path: Path, schema: Schema) -> None:
    """A process was killed while it tuned a linker, which was then moved away: two leftovers name its table."""
    linker = build(place, tmp_path / "linker", schema)
    shutil.copytree(tmp_path / "linker", tmp_path / ".linker.partial-4999999-0123abcd-spent")
    shutil.copytree(tmp_path / "linker", tmp_path / ".linker.partial-4999999-0123abcd")
    (tmp_path / ".linker.partial-4999999-0123abcd" / "onoma.json").unlink()
    (tmp_path / "linker").rename(tmp_path / "moved")
    other = build(place, tmp_path / "linker", schema)
    assert left_beside(tmp_path / "linker") == []
    assert set(schema.tables()) == {table_of(linker), table_of(other)}
    Linker.open(tmp_path / "moved", database=schema.string).link(MENTIONS)


# Updated


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_an_update_equals_a_rebuild(place: Path, tmp_path: Path, schema: Schema, precision: str) -> None:
    linker = tmp_path / "linker"
    before = build(place, linker, schema, vectors=precision)
    encoder = letters(place)
    report = update_linker(linker, place / "new", encoder=encoder, mentions=MENTIONS, database=schema.string)
    rebuilt = build(place, tmp_path / "rebuilt", schema, release="new", vectors=precision)
    updated = Linker.open(linker, database=schema.string)
    mine, theirs = files_of(linker), files_of(rebuilt.path)
    if precision == "fp16":
        mine.pop("index.json"), theirs.pop("index.json")
        about = [one.manifest.config["index"] for one in (before, updated, rebuilt)]
        assert about[1]["fingerprint"] == about[2]["fingerprint"]
        assert about[1]["agreement"]["lowest_cosine"] <= about[0]["agreement"]["lowest_cosine"]
    assert mine == theirs
    assert updated.link(MENTIONS, top_k=6) == rebuilt.link(MENTIONS, top_k=6)
    old, new = set(before.dictionary.texts), set(rebuilt.dictionary.texts)
    assert sorted(encoder.texts) == sorted(new - old)
    assert report.answers is not None
    assert report.answers.n_changed > 0
    assert set(schema.tables()) == {table_of(updated), table_of(rebuilt)}, "the old one is gone"
    assert update_linker(linker, place / "new", database=schema.string).is_current


def test_an_update_elsewhere_leaves_the_old_one(place: Path, tmp_path: Path, schema: Schema) -> None:
    before = build(place, tmp_path / "linker", schema)
    expected = before.link(MENTIONS)
    update_linker(tmp_path / "linker", place / "new", tmp_path / "other", database=schema.string)
    other = Linker.open(tmp_path / "other", database=schema.string)
    assert set(schema.tables()) == {table_of(before), table_of(other)}
    assert before.link(MENTIONS) == expected
    assert Linker.open(tmp_path / "linker", database=schema.string).link(MENTIONS) == expected
    # Also where what is replaced is a copy of it, and so has the same table.
    shutil.copytree(tmp_path / "linker", tmp_path / "copy")
    update_linker(tmp_path / "linker", place / "new", tmp_path / "copy", database=schema.string, overwrite=True)
    assert Linker.open(tmp_path / "linker", database=schema.string).link(MENTIONS) == expected
    assert len(schema.tables()) == 3


def test_an_update_of_what_has_been_tampered_with(place: Path, tmp_path: Path, schema: Schema) -> None:
    """What opening does not see, since it does not read all; the damage would get a fingerprint of its own."""
    linker = build(place, tmp_path / "linker", schema)
    schema.run(f"UPDATE {table_of(linker)} SET embedding = embedding + embedding WHERE id = 2")
    Linker.open(tmp_path / "linker", database=schema.string)
    with pytest.raises(MismatchError, match="rows were changed, added or removed"):
        update_linker(tmp_path / "linker", place / "new", database=schema.string)
    assert schema.tables() == [table_of(linker)]


def test_an_update_that_fails_in_the_end(place: Path, tmp_path: Path, schema: Schema) -> None:
    before = build(place, tmp_path / "linker", schema)

    def progress(done: int, total: int | None, what: str) -> None:
        if done == total:  # another process tunes the linker
            with amend_artifact(tmp_path / "linker", "linker", format_version=FORMAT_VERSION, config={"tuning": {}}):
                pass

    with pytest.raises(ArtifactExistsError, match="another process meanwhile"):
        update_linker(tmp_path / "linker", place / "new", database=schema.string, progress=progress)
    assert schema.tables() == [table_of(before)]
    Linker.open(tmp_path / "linker", database=schema.string).link(MENTIONS)


def test_an_update_that_stops_when_its_table_is_written(
    place: Path, tmp_path: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build(place, tmp_path / "linker", schema)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("onoma.linking.updating.read_manifest", stop)
        with pytest.raises(KeyboardInterrupt):
            update_linker(tmp_path / "linker", place / "new", database=schema.string)
    assert schema.tables() == [table_of(before)]


def test_a_copy_of_the_folder_shares_the_table(place: Path, tmp_path: Path, schema: Schema) -> None:
    linker = build(place, tmp_path / "linker", schema)
    shutil.copytree(tmp_path / "linker", tmp_path / "copy")
    assert Linker.open(tmp_path / "copy", database=schema.string).link(MENTIONS) == linker.link(MENTIONS)
    update_linker(tmp_path / "linker", place / "new", database=schema.string)
    with pytest.raises(InputError, match=rf"there is no table '{table_of(linker)}'.*build it again"):
        Linker.open(tmp_path / "copy", database=schema.string)
