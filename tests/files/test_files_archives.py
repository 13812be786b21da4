from __future__ import annotations

import contextlib
import io
import random
import shutil
import struct
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.files import archives
from onoma.files.archives import SourceFile, archives_opened, files_opened, is_tar, is_zip, joined, source_files
from onoma.files.reading import Reading
from onoma.files.text_files import read_blocks
from tiny import tarred, zipped


def packed(tmp_path: Path, data: bytes, name: str = "a.zip") -> Path:
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


def content(file: SourceFile) -> bytes:
    with file.open() as handle:
        return handle.read()


def test_folder_zip_and_file_are_alike(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {"b/x.txt": "x", "a.txt": "a", "b/c/": "", "b/ü.txt": "ü"}
    archive = packed(tmp_path, zipped(members))
    folder = tmp_path / "folder"
    (folder / "b" / "c").mkdir(parents=True)
    for name in ("b/x.txt", "a.txt", "b/ü.txt"):
        (folder / name).write_bytes(str(members[name]).encode())
    for source in (archive, folder):
        files = source_files(source)
        assert [file.name for file in files] == ["a.txt", "b/x.txt", "b/ü.txt"]
        assert [content(file) for file in files] == [b"a", b"x", "ü".encode()]
        assert [file.size() for file in files] == [1, 1, 2]
        assert [file.base for file in files] == ["a.txt", "x.txt", "ü.txt"]
        assert [file.folder for file in files] == [".", "b", "b"]
        assert [file.path for file in files] == [source / "a.txt", source / "b" / "x.txt", source / "b" / "ü.txt"]
    assert {file.containers for file in source_files(archive)} == {(archive,)}
    (one,) = source_files(folder / "a.txt")
    assert (one.name, one.path, one.folder, content(one)) == ("a.txt", folder / "a.txt", ".", b"a")
    with pytest.raises(InputError, match="nothing here"):
        source_files(tmp_path / "none")


@pytest.mark.parametrize("is_gzip", [True, False])
def test_tar_archives(is_gzip: bool, tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {
        "./b/x.txt": "x" * 99,
        "a.txt": "a",
        "b/ü.txt": "ü",
        "._a.txt": "",
        "c.zip": zipped({"y": "y"}),
    }
    archive = packed(tmp_path, tarred(members, is_gzip=is_gzip), "a.tar.gz")
    assert is_tar(archive)
    assert not is_tar(packed(tmp_path, zipped({"a": "a"})))
    files = source_files(archive)
    assert [file.name for file in files] == ["a.txt", "b/x.txt", "b/ü.txt", "c.zip"]
    assert [file.folder for file in files] == [".", "b", "b", "."]
    assert [file.path for file in files][:2] == [archive / "a.txt", archive / "b" / "x.txt"]
    assert [file.size() for file in files][:3] == [1, 99, 2]
    with files_opened(archive) as opened:
        for of_both in (files, opened):
            assert [content(file) for file in reversed(of_both)][1:] == ["ü".encode(), b"x" * 99, b"a"]
    with archives_opened(files, lambda file: file.base == "c.zip") as unpacked:
        assert content(unpacked[-1]) == b"y"


def test_a_tar_archive_has_no_links_and_devices(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE):
            member = tarfile.TarInfo(f"of kind {kind!r}")
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        archive.addfile(tarfile.TarInfo("empty"))
    assert [file.name for file in source_files(tmp_path / "a.tar")] == ["empty"]


def test_damaged_tar_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tarred({"x": random.Random(1).randbytes(100_000), "y": "y" * 1000})
    for cut in (len(data) // 2, len(data) - 60):
        with pytest.raises(InputError, match=r"tar archive is damaged or cut off"):
            source_files(packed(tmp_path, data[:cut], "a.tar.gz"))
    plain = packed(tmp_path, tarred({"x": "some text\n" * 99}, is_gzip=False)[:900], "a.tar")
    with pytest.raises(InputError, match=r"damaged or cut off"):
        source_files(plain)
    for name, problem in (
        *(("../x", "outside itself"), ("/x", "outside itself")),
        *(("x", "two files named 'x'"), ("./x", "two files named 'x'")),
    ):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            for one in ("x", name):
                archive.addfile(tarfile.TarInfo(one))
        with pytest.raises(InputError, match=problem):
            source_files(packed(tmp_path, made.getvalue(), "a.tar"))
    monkeypatch.setattr(archives, "MAX_UNCHECKED_BYTES", 1 << 16)
    with pytest.raises(InputError, match=r"a.tar.gz: it would swell to more than [\d,]+ bytes \(a bomb"):
        source_files(packed(tmp_path, tarred({"x": bytes(4 << 20)}), "a.tar.gz"))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_tar_archive_with_a_long_header(kind: bytes, tmp_path: Path) -> None:
    def with_header(n_bytes: int) -> bytes:
        header = tarfile.TarInfo("header")
        header.type, header.size = kind, n_bytes
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("x"))
            archive.addfile(header, io.BytesIO(b"20 comment=01234567\n".ljust(n_bytes, b"\0")))
            archive.addfile(tarfile.TarInfo("y"))
        return made.getvalue()

    assert len(source_files(packed(tmp_path, with_header(1 << 15), "a.tar"))) == 2
    with pytest.raises(InputError, match=r"a header of 32,769 bytes"):
        source_files(packed(tmp_path, with_header((1 << 15) + 1), "a.tar"))


def test_file_that_is_read_twice_begins_anew(tmp_path: Path) -> None:
    (file,) = source_files(packed(tmp_path, zipped({"a.txt": "abc"})))
    with file.open() as handle:
        assert handle.read(2) == b"ab"
        handle.seek(0)
        assert handle.read() == b"abc"
    assert content(file) == b"abc"


HOSTILE_NAMES = ["../x", "a/../../x", "/etc/x", "C:/x", "c:x", "..\\x", "\\x", "//server/x"]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_archive_that_points_outside_itself(name: str, tmp_path: Path) -> None:
    archive = packed(tmp_path, zipped({"good.txt": "x", name: "x"}))
    with pytest.raises(InputError, match="outside itself") as caught:
        source_files(archive)
    assert caught.value.path == archive


def test_archive_with_nameless_member(tmp_path: Path) -> None:
    nameless = zipped({"\\": "x"}).replace(b"\\", b"\0")  # a name ends at the first NUL
    for data in (zipped({".": "x"}), nameless):
        with pytest.raises(InputError, match="without a name"):
            source_files(packed(tmp_path, data))


def test_archive_that_lists_a_name_twice(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x", "1")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("x", "2")
    with pytest.raises(InputError, match="two files named 'x'"):
        source_files(archive)


def test_archive_that_is_encrypted_or_packed_otherwise(tmp_path: Path) -> None:
    data = bytearray(zipped({"x": "1"}))
    entry = data.index(b"PK\x01\x02")
    data[entry + 8] |= 1
    with pytest.raises(InputError, match="encrypted"):
        source_files(packed(tmp_path, bytes(data)))
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("x", "1")
    with pytest.raises(InputError, match="other than deflate"):
        source_files(tmp_path / "b.zip")


def test_bomb_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_UNCHECKED_BYTES", 1 << 16)
    archive = packed(tmp_path, zipped({"x": bytes(1 << 20)}))
    assert archive.stat().st_size < 1 << 12
    with pytest.raises(InputError, match=r"would swell to 1,048,576 bytes from .* bomb"):
        source_files(archive)
    assert source_files(packed(tmp_path, zipped({"x": bytes(1 << 16)})))


def test_member_that_is_larger_than_it_says(tmp_path: Path) -> None:
    """It is cut off where it should end, and then its checksum does not fit."""
    data = zipped({"x": b"line\n" * 1000})
    lie = data.replace(struct.pack("<L", 5000), struct.pack("<L", 50))
    (file,) = source_files(packed(tmp_path, lie))
    with pytest.raises(InputError, match=r"damaged or cut off|cannot be unpacked"):
        list(read_blocks(file, Reading()))


def test_damaged_archives(tmp_path: Path) -> None:
    data = zipped({"x": b"some text that is long enough\n" * 99, "y": "y"})
    for cut in (len(data) - 1, len(data) // 2, 5):
        with pytest.raises(InputError, match="damaged or cut off") as caught:
            source_files(packed(tmp_path, data[:cut]))
        assert caught.value.path == tmp_path / "a.zip"
    spoilt = bytearray(data)
    spoilt[40:60] = b"\xff" * 20
    file, _ = source_files(packed(tmp_path, bytes(spoilt)))
    with pytest.raises(InputError, match=r"damaged or cut off|cannot be unpacked") as caught:
        list(read_blocks(file, Reading()))
    assert caught.value.path == tmp_path / "a.zip" / "x"


def test_archives_within_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = zipped({"META/x.txt": "x", "deeper.nlm": zipped({"y": "y"})})
    outer = packed(tmp_path, zipped({"r/1.nlm": inner, "r/readme": "read"}))
    opened: list[BinaryIO] = []
    make = tempfile.TemporaryFile

    def noted() -> BinaryIO:
        opened.append(cast(BinaryIO, make()))
        return opened[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    with archives_opened(source_files(outer), lambda file: file.base.endswith(".nlm")) as files:
        assert [file.name for file in files] == ["r/1.nlm/META/x.txt", "r/1.nlm/deeper.nlm", "r/readme"]
        assert [file.folder for file in files] == ["META", ".", "r"]
        assert files[0].path == outer / "r" / "1.nlm" / "META" / "x.txt"
        assert [content(file)[:4] for file in files] == [b"x", b"PK\x03\x04", b"read"]
        with files[0].open() as first, files[1].open() as second:  # both in one copy
            assert (second.read(2), first.read(), second.read(2)) == (b"PK", b"x", b"\x03\x04")
        assert files[0].size() == 1
        assert [file.closed for file in opened] == [False]
    assert [file.closed for file in opened] == [True]

    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "1.nlm").write_bytes(inner)
    with archives_opened(source_files(folder), lambda file: file.base.endswith(".nlm")) as files:
        assert [file.path for file in files] == [folder / "1.nlm" / "META" / "x.txt", folder / "1.nlm" / "deeper.nlm"]
        assert files[0].containers == (folder / "1.nlm",)
        assert content(files[0]) == b"x"
    assert len(opened) == 1


def test_archive_cut_off_behind_an_inner_one_is_not_taken_for_that(tmp_path: Path) -> None:
    inner = zipped({"META/x.txt": "x"})
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as file:
        file.writestr("r/readme", "read")
        file.writestr("r/1.nlm", inner)
        file.writestr("r/2.nlm", zipped({"META/y.txt": "y" * 99}))
    data = stream.getvalue()
    end = data.index(inner) + len(inner)
    for beyond in (0, 1, 40):
        with pytest.raises(
            InputError, match=r"the zip archive is damaged or cut off\. .* get the archive again"
        ) as caught:
            source_files(packed(tmp_path, data[: end + beyond]))
        assert caught.value.path == tmp_path / "a.zip"
    assert len(source_files(packed(tmp_path, data))) == 3
    assert len(source_files(packed(tmp_path, zipped({})))) == 0


def test_bad_archives_within_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_UNCHECKED_BYTES", 1 << 16)

    def refused(inner: bytes) -> str:
        outer = packed(tmp_path, zipped({"r/1.nlm": inner}))
        with (
            pytest.raises(InputError) as caught,
            archives_opened(source_files(outer), lambda file: file.base.endswith(".nlm")),
        ):
            pass
        assert caught.value.path == outer / "r" / "1.nlm"
        return str(caught.value)

    assert "outside itself" in refused(zipped({"../x": "x"}))
    assert "bomb" in refused(zipped({"x": bytes(1 << 20)}))
    assert "damaged or cut off" in refused(zipped({"x": "x"})[:-3])
    assert "damaged or cut off" in refused(b"no archive")
    assert "damaged or cut off" in refused(b"")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    assert "TMPDIR" in refused(zipped({"x": "x"}))


@settings(max_examples=50)
@given(parts=st.lists(st.binary(max_size=20), min_size=1, max_size=5), sizes=st.lists(st.integers(1, 30), max_size=20))
def test_pieces_read_as_one(parts: list[bytes], sizes: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    tmp_path = tmp_path_factory.mktemp("pieces")
    archive = packed(tmp_path, zipped({f"x.a{chr(97 + number)}": part for number, part in enumerate(parts)}))
    file = joined("x", source_files(archive))
    whole = io.BytesIO(b"".join(parts))
    assert file.size() == len(whole.getvalue())
    assert (file.path, file.containers) == (archive / "x", (archive,))
    with file.open() as handle:
        for size in sizes:
            assert handle.read(size) == whole.read(size)
            assert handle.tell() == whole.tell()
        handle.seek(0)
        assert handle.tell() == 0
        assert handle.read() == whole.getvalue()
        with pytest.raises(io.UnsupportedOperation):
            handle.seek(1)


def test_pieces_on_disk_are_all_counted_as_read(tmp_path: Path) -> None:
    for name, text in (("x.aa", "one\ntw"), ("x.ab", "o\n")):
        (tmp_path / name).write_text(text)
    reading = Reading()
    blocks = list(read_blocks(joined("x", source_files(tmp_path)), reading))
    assert [line for block in blocks for line in block.lines()] == [b"one", b"two"]
    assert reading.files == [tmp_path / "x.aa", tmp_path / "x.ab"]


@settings(max_examples=100)
@given(position=st.integers(0, 10_000), new=st.binary(min_size=1, max_size=4), cut=st.integers(0, 400))
def test_whatever_is_wrong_with_an_archive(
    position: int, new: bytes, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(zipped({"a/x.txt": "some text\n" * 20, "y.nlm": zipped({"z": "z\n"})}))
    position %= len(data)
    data[position : position + len(new)] = new
    archive = packed(tmp_path_factory.mktemp("fuzz"), bytes(data[: len(data) - cut] if cut < 100 else data))
    if not is_zip(archive):
        return
    with (
        contextlib.suppress(InputError),
        archives_opened(source_files(archive), lambda file: file.base.endswith(".nlm")) as files,
    ):
        for file in files:
            with contextlib.suppress(InputError):
                list(read_blocks(file, Reading()))


@settings(max_examples=100)
@given(
    position=st.integers(0, 10_000),
    new=st.binary(min_size=1, max_size=4),
    cut=st.integers(0, 3000),
    is_gzip=st.booleans(),
)
def test_whatever_is_wrong_with_a_tar_archive(
    position: int, new: bytes, cut: int, is_gzip: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(tarred({"a/x.txt": "some text\n" * 20, "y": "y" * 600}, is_gzip=is_gzip))
    position %= min(len(data), 2048)
    data[position : position + len(new)] = new
    archive = packed(tmp_path_factory.mktemp("fuzz"), bytes(data[: len(data) - cut] if cut < 2000 else data))
    with contextlib.suppress(InputError), files_opened(archive) as files:
        for file in files:
            with contextlib.suppress(InputError):
                list(read_blocks(file, Reading()))


def test_what_macos_adds_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.obo", "._a.obo", ".DS_Store"):
        (tmp_path / "in" / name).write_text("x")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("a.obo", "__MACOSX/._a.obo", ".DS_Store", "d/.DS_Store"):
            archive.writestr(name, "x")
    assert [file.name for file in source_files(tmp_path / "in")] == ["a.obo"]
    assert [file.name for file in source_files(tmp_path / "a.zip")] == ["a.obo"]


def test_links_to_folders_are_followed_and_not_in_circles(tmp_path: Path) -> None:
    real, source = tmp_path / "real", tmp_path / "source"
    real.mkdir()
    source.mkdir()
    (real / "b.txt").write_text("b")
    (source / "a.txt").write_text("a")
    (source / "META").symlink_to(real, target_is_directory=True)
    (real / "round").symlink_to(source, target_is_directory=True)
    assert [file.name for file in source_files(source)] == ["META/b.txt", "a.txt"]
