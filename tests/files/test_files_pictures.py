"""Pictures: which files, and that a drawing gives the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from onoma.errors import ArtifactExistsError, InputError, UnavailableError
from onoma.files.pictures import check_picture, save_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw() -> Figure:
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_subplot()
    axes.bar(["a", "b"], [1, 2], label="both", hatch="/")
    axes.legend()
    return figure


@pytest.mark.parametrize("ending", [".png", ".svg", ".PDF"])
def test_the_same_drawing_gives_the_same_bytes(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / f"{number}{ending}" for number in (1, 2)]
    for file in files:
        save_picture(file, draw)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert b"Date" not in files[0].read_bytes()


def test_what_cannot_be_drawn_is_refused_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.png"
    with pytest.raises(InputError, match=r"ending in \.png, \.svg, \.pdf"):
        check_picture(tmp_path / "x.jpg")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"pip install 'onoma\[plot\]'"):
        save_picture(file, draw)
    file.touch()
    with pytest.raises(ArtifactExistsError):
        check_picture(file)
    assert list(tmp_path.iterdir()) == [file]
