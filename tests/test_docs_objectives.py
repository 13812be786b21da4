"""The page on losses and mining: complete, and its pictures show what the formulas say."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
import torch

from onoma.training import config_parts

DOCS = Path(__file__).parent.parent / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not part of the package")


def extension(name: str) -> ModuleType:
    pytest.importorskip("matplotlib")
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location(name, DOCS / "extensions" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def choices(union: object) -> dict[str, dict[str, float]]:
    """Names and defaults of all losses, or of all minings."""
    made = [choice() for choice in get_args(get_args(union)[0])]
    return {choice.name: choice.model_dump(exclude={"name"}) for choice in made}


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize(("synonym", "other"), [(0.3, 0.6), (0.9, 0.2), (0.5, 0.45)])
def test_weights_are_the_slopes_of_the_formulas(synonym: float, other: float) -> None:
    weights = extension("pictures").weights
    expected = {
        "multi-similarity": (sigmoid(-2 * (synonym - 0.5)), sigmoid(50 * (other - 0.5))),
        "info-nce": (sigmoid((other - synonym) / 0.07) / 0.07,) * 2,
        "nca": (40 * sigmoid(40 * (other - synonym)),) * 2,
        "cosine": (1.0, 1.0),
    }
    distances = [math.sqrt(2 - 2 * similarity) for similarity in (synonym, other)]
    violated = distances[0] - distances[1] + 0.2 > 0
    expected["triplet"] = (violated / distances[0], violated / distances[1])
    pull, push = 256 * (1.25 - synonym), 256 * (other + 0.25)
    apart = sigmoid(push * (other - 0.25) - pull * (synonym - 0.75))
    expected["circle"] = (pull * apart, push * apart)
    # Both ends have the same negative, so that the two sums are equal; of the three distances one is the anchor's own.
    violation = max(0.0, distances[0] + math.log(2) + 0.5 - distances[1])
    expected["lifted-structure"] = (violation / distances[0], violation / 2 / distances[1])
    assert expected.keys() == extension("pictures").LOSSES.keys()
    for loss, (on_synonym, on_other) in expected.items():
        assert weights(loss, synonym, other) == pytest.approx((on_synonym, on_other), rel=1e-3, abs=1e-6), loss


def test_the_page_has_every_loss_and_mining_with_its_defaults() -> None:
    page = (DOCS / "objectives.md").read_text(encoding="utf-8")
    losses, minings = choices(config_parts.Loss), choices(config_parts.Mining)
    for name in losses:
        assert f"### `{name}` {{ #{name} }}" in page
        assert f"(assets/objectives/{name}.svg)" in page
    on_losses, on_mining = page.split("## Mining")
    for part, known in ((on_losses, losses), (on_mining, minings)):
        rows = {row.group(1): row.group(0) for row in re.finditer(r"^\| \[?`([\w-]+)`.*$", part, re.MULTILINE)}
        assert rows.keys() - {"loss", "mining"} == known.keys()
        for name, settings in known.items():
            for setting, value in settings.items():
                assert f"`{setting}` {value:g}" in rows[name]


def test_the_page_says_where_semi_hard_mining_differs_from_its_source() -> None:
    page = (DOCS / "objectives.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `semi-hard`.*$", page, re.MULTILINE)
    assert "squared distances" in row
    (limit,) = re.findall(r"cosines below some ([\d.]+)", page)
    # Two names of one similarity, whose distances add up to 1: there both margins are equal.
    assert math.sqrt(2 - 2 * float(limit)) == pytest.approx(0.5, abs=0.02)


def test_the_boundaries_of_the_mining_picture_have_no_jogs() -> None:
    pictures = extension("pictures")
    plane = pictures._PLANE
    planes = {name: pictures.mined_plane(name) for name in pictures.MINERS}
    lowest = [int(column.nonzero()[0]) for column in planes["multi-similarity"].T]
    below = {place - low for place, low in enumerate(lowest) if low > 0}
    assert len(below) == 1, "always as many points below the diagonal"
    assert below.pop() * (plane[1] - plane[0]) == pytest.approx(0.1, abs=plane[1] - plane[0])
    for row, column in ((0, 47), (0, 48), (95, 96), (95, 110), (190, 191), (150, 30)):
        alone = pictures._similarity(plane[column], plane[row])
        for name, mine in pictures.MINERS.items():
            found = mine(alone, torch.tensor([0, 0, 1])).negatives[0, 2]
            assert bool(planes[name][row, column]) == bool(found), name


def test_pictures_are_the_same_each_time() -> None:
    pictures = extension("pictures")
    drawn = pictures.weight_picture("cosine")
    assert "weight of a synonym" in drawn
    assert pictures.weight_picture("cosine") == drawn


def test_formulas_become_drawings_with_their_words() -> None:
    on_page = extension("formulas").on_page_markdown
    made = on_page("a\n\n```formula\nx < y\n\\frac{1}{2}\n```\n\nb `c`\n")
    assert made.count("<svg") == 2
    assert 'aria-label="x &lt; y"' in made
    assert "currentColor" in made
    assert made.startswith("a\n\n<div")
    assert made.endswith("b `c`\n")
    assert on_page("```toml\nx = 1\n```\n") == "```toml\nx = 1\n```\n"
