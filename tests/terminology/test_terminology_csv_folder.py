"""The folder of CSV files: what one may write by hand, and what is refused."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sample_tables import CSV_FOLDER, csv_text, write_csv_folder
from small_terminologies import content

from onoma.artifacts import verify_artifact
from onoma.errors import DamagedArtifactError, InputError
from onoma.terminology import Terminology, export_terminology, import_terminology


def read(
    tmp_path: Path, source: Path | None = None, on_error: Any = "strict", changes: Mapping[str, str] | None = None
) -> str:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    write_csv_folder(**(changes or {}))(folder)
    return str(import_terminology("csv", source or folder, tmp_path / "out", on_error=on_error, overwrite=True))


def test_folder_gzip_and_zip_are_the_same(tmp_path: Path) -> None:
    read(tmp_path)
    expected = content(tmp_path / "out")
    assert expected["concepts"][3] == ("X:4", "obsolete coronary", ["disease"], "obsolete", "X:1")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, rows in CSV_FOLDER.items():
            archive.writestr(f"export/{name}.csv", csv_text(rows))
    read(tmp_path, tmp_path / "x.zip")
    assert content(tmp_path / "out") == expected
    for file in (tmp_path / "in").glob("*.csv"):
        file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    import_terminology("csv", tmp_path / "in", tmp_path / "out", overwrite=True)
    assert content(tmp_path / "out") == expected


def test_texts_are_kept_as_they_stand(tmp_path: Path) -> None:
    nasty = ' "a"\r\nb\rc\n,\u2028 '
    rows = [*CSV_FOLDER["names"][:-1], ("", "X:1", nasty, "en", "", "", "false", "false")]
    read(tmp_path, changes={"names": csv_text(rows)})
    assert content(tmp_path / "out")["names"][3][1] == nasty


BAD = {
    "concepts": [
        ("X:1,active,\n", "occurred before"), ("X:9,dead,\n", "field status"), (",active,\n", "field concept_id"),
        ("X:9,active\n", "wrong number of fields"),
    ],
    "names": [
        (",X:9,x,en,,,true,false\n", "does not list"), (",X:1, ,en,,,true,false\n", "field text"),
        (",X:1,x,e n,,,true,false\n", "field language"), (",X:1,x,en,,,yes,false\n", "field is_preferred"),
        (",X:1,x,en,,,true,\n", "field is_suppressed"),
    ],
    "relations": [("X:1,is_a,X:9,\n", "does not have"), ("X:1,,X:2,\n", "field relation")],
    "semantic_types": [("X:9,x\n", "does not have"), ("X:1,\n", "field semantic_type")],
    "definitions": [("X:9,x,\n", "does not have"), ("X:1,,\n", "field text")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "line", "problem"), [(table, *bad) for table, all_bad in BAD.items() for bad in all_bad]
)
def test_bad_rows(table: str, line: str, problem: str, tmp_path: Path) -> None:
    text = csv_text(CSV_FOLDER[table])
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, changes={table: text + line})
    assert (caught.value.path, caught.value.line) == (tmp_path / "in" / f"{table}.csv", text.count("\n") + 1)
    assert "1 row rejected" in read(tmp_path, on_error="skip", changes={table: text + line})


def test_cross_references(tmp_path: Path) -> None:
    head = "concept_id,code,relation,source\n"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "cross_references.csv").write_text(head + "X:1,M:1,exactMatch,\n")
    read(tmp_path)
    assert content(tmp_path / "out")["cross_references"] == [(0, "M:1", "exactMatch", "")]
    (tmp_path / "in" / "cross_references.csv").write_text(head + "X:1,M:1,sameAs,\n")
    with pytest.raises(InputError, match="one of exactMatch"):
        read(tmp_path)


def test_what_is_no_such_folder(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="format table"):
        import_terminology("csv", tmp_path / "x.csv", tmp_path / "out")
    with pytest.raises(InputError, match=r"no column 'text'.*'texts'"):
        read(tmp_path, changes={"names": csv_text(CSV_FOLDER["names"]).replace("text", "texts", 1)})
    (tmp_path / "in" / "names.csv.gz").write_bytes(b"")
    with pytest.raises(InputError, match="two files"):
        read(tmp_path)
    (tmp_path / "in" / "names.csv.gz").unlink()
    (tmp_path / "in" / "concepts.csv").unlink()
    with pytest.raises(InputError, match=r"no concepts\.csv"):
        import_terminology("csv", tmp_path / "in", tmp_path / "out")


def test_files_of_other_names_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "concepts.csv").write_text('concept_id,status,replaced_by\n1,active,\n2,obsolete," "\n')
    header = "concept_id,text,language,source,term_type,is_preferred,is_suppressed\n"
    (folder / "names.csv").write_text(header + "1,a,en,,,false,false\n")
    (folder / "definition.csv").write_text("concept_id,text,source\n1,what it is,\n")
    (folder / "README.txt").write_text("made by hand")
    report = import_terminology("csv", folder, tmp_path / "out")
    assert Terminology.open(tmp_path / "out").concept("2").replaced_by is None
    told = [note for note in report.notes if "skipped" in note]
    assert len(told) == 1
    assert "definition.csv" in told[0]
    assert "definitions.csv" in told[0]


def test_a_successor_that_is_not_there_is_told(tmp_path: Path) -> None:
    told = "concepts replaced by one that is not among them"
    assert told not in read(tmp_path)
    assert f"{told}: 1" in read(tmp_path, changes={"concepts": csv_text(CSV_FOLDER["concepts"]) + "X:8,obsolete,Z:1\n"})


def test_an_export_that_is_not_as_it_was_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_csv_folder()(tmp_path / "in")
    import_terminology("csv", tmp_path / "in", tmp_path / "t")
    export_terminology(tmp_path / "t", "csv", tmp_path / "export")
    import_terminology("csv", tmp_path / "export", tmp_path / "back")
    assert content(tmp_path / "back") == content(tmp_path / "t")
    good = {file.name: file.read_bytes() for file in (tmp_path / "export").iterdir()}

    def refused(name: str, problem: str, files: Mapping[str, bytes]) -> None:
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with zipfile.ZipFile(tmp_path / "damaged.zip", "w") as archive:
            for file, data in files.items():
                (folder / file).write_bytes(data)
                archive.writestr(f"export/{file}", data)
        for source, place in ((folder, folder), (tmp_path / "damaged.zip", tmp_path / "damaged.zip" / "export")):
            with pytest.raises(InputError, match=rf"{problem}.*export again, or, .*delete onoma\.json") as caught:
                import_terminology("csv", source, tmp_path / "out")
            assert caught.value.path == place / name
        with pytest.raises(DamagedArtifactError):
            verify_artifact(folder)

    names = good["names.csv"]
    cut = names[: names.rindex(b"\n", 0, -1) + 1]
    changed = names.replace(b"Heart", b"Head ", 1)
    assert changed != names
    sizes = f"{len(cut)} bytes, and had {len(names)}"
    refused("names.csv", f"as it was exported: it has {sizes}", {**good, "names.csv": cut})
    refused("names.csv", "it has 0 bytes", {**good, "names.csv": b""})
    refused("names.csv", "its content has changed", {**good, "names.csv": changed})
    refused("onoma.json", "cannot be read", {**good, "onoma.json": good["onoma.json"][:-9]})
    missing = {name: data for name, data in good.items() if name != "relations.csv"}
    refused("relations.csv", "missing", missing)
    (tmp_path / "damaged" / "onoma.json").unlink()
    import_terminology("csv", tmp_path / "damaged", tmp_path / "out")  # edited on purpose
    (tmp_path / "export" / "names.csv").rename(tmp_path / "export" / "NAMES.csv")
    (tmp_path / "export" / "old").mkdir()
    (tmp_path / "export" / "old" / "onoma.json").write_bytes(good["onoma.json"])  # of files that are not read
    import_terminology("csv", tmp_path / "export", tmp_path / "back", overwrite=True)
    (tmp_path / "export" / "NAMES.csv").unlink()
    (tmp_path / "export" / "names.csv.gz").write_bytes(gzip.compress(names))
    (tmp_path / "export" / "onoma-notes.csv").write_text("mine")
    import_terminology("csv", tmp_path / "export", tmp_path / "back", overwrite=True)


def test_the_manifest_of_something_else_says_nothing_of_these_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_csv_folder()(tmp_path / "in")
    import_terminology("csv", tmp_path / "in", tmp_path / "in" / "t")
    (tmp_path / "in" / "t" / "names.parquet").unlink()
    import_terminology("csv", tmp_path / "in", tmp_path / "out")
