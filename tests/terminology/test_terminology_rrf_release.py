from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_rrf import MRCONSO, RXNCONSO, TABLES, cut, full_release

from onoma.errors import InputError
from onoma.terminology import Terminology, import_terminology
from tiny import zipped


def n_names(source: Path, out: Path, format: str = "umls") -> int:
    return import_terminology(format, source, out, overwrite=True).n_names


def lay(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


@pytest.mark.parametrize("place", ["", "META/", "2024AA/META/"])
@pytest.mark.parametrize("is_zip", [False, True])
def test_where_the_files_may_lie(place: str, is_zip: bool, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{place}{name}.RRF": text for name, text in TABLES.items()}
    source = lay(tmp_path / "in", files)
    if is_zip:
        source = lay(tmp_path, {"in.zip": zipped(files)}) / "in.zip"
    report = import_terminology("umls", source, tmp_path / "out")
    assert (report.n_names, report.n_relations, report.n_definitions) == (7, 1, 1)
    files_read = Terminology.open(tmp_path / "out").manifest.config["source_files"]
    assert set(files_read) == ({"in.zip"} if is_zip else {f"{name}.RRF" for name in TABLES})


def test_archive_of_mrconso_alone(tmp_path: Path) -> None:
    lay(tmp_path, {"umls-2024AA-mrconso.zip": zipped({"MRCONSO.RRF": MRCONSO})})
    report = import_terminology("umls", tmp_path / "umls-2024AA-mrconso.zip", tmp_path / "out")
    assert (report.n_names, report.n_relations) == (7, 0)
    assert len(report.notes) == 3


def test_mrconso_named_by_itself_brings_its_neighbours(tmp_path: Path) -> None:
    folder = lay(tmp_path / "in", {f"{name}.RRF": text for name, text in TABLES.items()})
    assert import_terminology("umls", folder / "MRCONSO.RRF", tmp_path / "out").n_relations == 1
    with pytest.raises(InputError, match="no folder or archive with a release of the UMLS"):
        import_terminology("umls", folder / "MRREL.RRF", tmp_path / "out2")


def test_full_release_as_folder_and_as_single_archive(tmp_path: Path) -> None:
    folder = lay(tmp_path / "in", dict(full_release()))
    assert n_names(folder, tmp_path / "out") == 7
    # Only the archive with the names: the relations are in the other.
    report = import_terminology("umls", folder / "2024AA-full" / "2024aa-1-meta.nlm", tmp_path / "out2")
    assert (report.n_names, report.n_relations, report.n_definitions) == (7, 0, 1)
    assert report.notes["files that the release does not have: MRREL.RRF"] == 1


def test_rows_of_pieces_are_counted_through(tmp_path: Path) -> None:
    bad = MRCONSO + "X:4|ENG|P|\n"
    folder = lay(tmp_path / "in", dict(cut("MRCONSO", bad, 5)))
    with pytest.raises(InputError, match="wrong number of fields") as caught:
        n_names(folder, tmp_path / "out")
    assert (caught.value.path, caught.value.line) == (folder / "2024AA" / "META" / "MRCONSO.RRF", 8)
    archive = lay(tmp_path, {"r.zip": zipped(full_release({**TABLES, "MRCONSO": bad}))}) / "r.zip"
    with pytest.raises(InputError, match="wrong number of fields") as caught:
        n_names(archive, tmp_path / "out")
    inside = Path("2024AA-full/2024aa-1-meta.nlm/2024AA/META/MRCONSO.RRF")
    assert (caught.value.path, caught.value.line) == (archive / inside, 8)


@settings(max_examples=10)
@given(n_pieces=st.integers(1, 26), is_plain=st.booleans())
def test_any_number_of_pieces(n_pieces: int, is_plain: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    tmp_path = tmp_path_factory.mktemp("pieces")
    files: dict[str, str | bytes] = dict(cut("MRCONSO", MRCONSO, n_pieces))
    if is_plain:
        files = {
            name.removesuffix(".gz"): gzip.decompress(bytes(data)) for name, data in cut("MRCONSO", MRCONSO).items()
        }
    assert n_names(lay(tmp_path / "in", files), tmp_path / "out") == 7


@pytest.mark.parametrize("missing", ["aa", "ab", "ad"])
def test_pieces_with_a_gap(missing: str, tmp_path: Path) -> None:
    files = cut("MRCONSO", MRCONSO, 5)
    del files[f"2024AA/META/MRCONSO.RRF.{missing}.gz"]
    with pytest.raises(InputError, match=rf"'\.{missing}' is missing"):
        n_names(lay(tmp_path / "in", dict(files)), tmp_path / "out")


def test_damaged_piece(tmp_path: Path) -> None:
    for name, spoil in (("ab", lambda data: data[:-5]), ("ac", lambda data: data[:-5]), ("ab", lambda _: b"")):
        files = cut("MRCONSO", MRCONSO)
        files[f"2024AA/META/MRCONSO.RRF.{name}.gz"] = spoil(files[f"2024AA/META/MRCONSO.RRF.{name}.gz"])
        with pytest.raises(InputError):
            n_names(lay(tmp_path / "in", dict(files)), tmp_path / "out")


def test_whole_file_before_pieces_and_plain_before_gzip(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        name.removeprefix("2024AA/META/"): data for name, data in cut("MRCONSO", MRCONSO).items()
    }
    first, *_ = MRCONSO.splitlines(keepends=True)
    folder = lay(tmp_path / "in", files)
    assert n_names(folder, tmp_path / "out") == 7
    lay(folder, {"MRCONSO.RRF.gz": gzip.compress((first + first.replace("Myo", "myo")).encode())})
    assert n_names(folder, tmp_path / "out") == 2
    lay(folder, {"MRCONSO.RRF": first})
    assert n_names(folder, tmp_path / "out") == 1


def test_two_releases_side_by_side(tmp_path: Path) -> None:
    folder = lay(tmp_path / "in", {"2023AB/META/MRCONSO.RRF": MRCONSO, "2024AA/META/MRCONSO.RRF": MRCONSO})
    with pytest.raises(InputError, match="2 releases here: 2023AB/META, 2024AA/META"):
        n_names(folder, tmp_path / "out")
    assert n_names(folder / "2024AA", tmp_path / "out") == 7


def test_higher_release_is_taken(tmp_path: Path) -> None:
    folder = lay(tmp_path / "in", {"rrf/RXNCONSO.RRF": RXNCONSO, "prescribe/rrf/RXNCONSO.RRF": "not read\n"})
    assert n_names(folder, tmp_path / "out", "rxnorm") == 7
    with pytest.raises(InputError, match="wrong number of fields"):
        n_names(folder / "prescribe", tmp_path / "out", "rxnorm")


def test_tables_of_the_other_family_are_not_taken(tmp_path: Path) -> None:
    folder = lay(tmp_path / "in", {"RXNCONSO.RRF": RXNCONSO})
    with pytest.raises(InputError, match=r"there is no MRCONSO\.RRF here"):
        n_names(folder, tmp_path / "out")


def test_inner_archive_that_is_none(tmp_path: Path) -> None:
    archive = lay(tmp_path, {"r.zip": zipped({"2024aa-1-meta.nlm": "no zip"})}) / "r.zip"
    with pytest.raises(InputError, match="damaged or cut off") as caught:
        n_names(archive, tmp_path / "out")
    assert caught.value.path == archive / "2024aa-1-meta.nlm"


def test_piece_that_two_inner_archives_have(tmp_path: Path) -> None:
    inner = zipped(cut("MRCONSO", MRCONSO))
    archive = lay(tmp_path, {"r.zip": zipped({"2024aa-1-meta.nlm": inner, "2024aa-2-meta.nlm": inner})}) / "r.zip"
    with pytest.raises(InputError, match="holds this file twice"):
        n_names(archive, tmp_path / "out")
