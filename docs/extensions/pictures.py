"""MkDocs hook: the pictures of ``objectives.md``, drawn from Onoma's own functions whenever the site is built."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torch
from matplotlib import rc_context
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from mkdocs.structure.files import File, Files

from onoma import objectives
from onoma.objectives import PairMasks

LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "multi-similarity": objectives.multi_similarity_loss,
    "circle": objectives.circle_loss,
    "info-nce": objectives.info_nce_loss,
    "nca": objectives.nca_loss,
    "lifted-structure": objectives.lifted_structure_loss,
    "triplet": objectives.triplet_loss,
    "cosine": objectives.cosine_loss,
}
MINERS: dict[str, Callable[..., PairMasks]] = {
    "hard-triplet": objectives.hard_triplet_masks,
    "semi-hard": objectives.semi_hard_masks,
    "multi-similarity": objectives.multi_similarity_masks,
    "all": lambda _similarity, labels: objectives.all_pair_masks(labels),
}
_SIMILARITIES = torch.linspace(-0.2, 0.99, 120).tolist()
_PLANE = torch.linspace(-0.2, 1, 192).tolist()
"""No margin is a multiple of its step: rounding would draw a boundary through grid points with jogs."""
_RIVALS = (0.3, 0.6, 0.9)
_GREY, _LINES, _MINED = "#808080", ("#4c9be8", "#2a9d6f", "#d1653a"), "#2a9d6f"
_STYLE = {
    "svg.hashsalt": "onoma",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "text.color"), _GREY),
}
"""A grey that is legible on the light and on the dark page; there is no background."""


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Called by MkDocs with the files of the site."""
    for name in LOSSES:
        files.append(File.generated(config, f"assets/objectives/{name}.svg", content=weight_picture(name)))
    files.append(File.generated(config, "assets/objectives/mining.svg", content=mining_picture()))
    return files


def weights(loss: str, synonym: float, other: float) -> tuple[float, float]:
    """|d loss / d similarity| of an anchor's only synonym and of its only other name, at these similarities."""
    similarity = _similarity(synonym, other).requires_grad_()
    masks = objectives.all_pair_masks(torch.tensor([0, 0, 1]))
    LOSSES[loss](similarity, masks)[0].backward()
    assert similarity.grad is not None
    return abs(float(similarity.grad[0, 1])), abs(float(similarity.grad[0, 2]))


def weight_picture(loss: str) -> str:
    """SVG: on the left the pull on the synonym over its similarity, on the right the push on the other name."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(7.6, 2.7), layout="constrained")
        panels = figure.subplots(1, 2)
        for rival, colour, width in zip(_RIVALS, _LINES, (4.5, 2.8, 1.2), strict=True):  # equal lines all show
            pull = [weights(loss, similarity, rival)[0] for similarity in _SIMILARITIES]
            push = [weights(loss, rival, similarity)[1] for similarity in _SIMILARITIES]
            for panel, heights in zip(panels, (pull, push), strict=True):
                panel.plot(_SIMILARITIES, heights, color=colour, label=f"{rival}", linewidth=width)
        for panel, title, rivals in (
            (panels[0], "weight of a synonym", "the other name at"),
            (panels[1], "weight of another name", "the synonym at"),
        ):
            panel.set_title(title, loc="left", size=9)
            panel.set_xlabel("its similarity to the anchor")
            panel.set_xlim(_SIMILARITIES[0], 1)
            panel.set_ylim(0, max(panel.get_ylim()[1], 0.1))
            panel.spines[["top", "right"]].set_visible(False)
            panel.legend(title=rivals, frameon=False, fontsize=8, title_fontsize=8)
        return _svg(figure)


def mined_plane(mining: str) -> torch.Tensor:
    """Whether the pair of anchor and other name counts, over both similarities (`_PLANE`), other names along rows."""
    columns = []
    for synonym in _PLANE:
        # All others at once, each of a concept of its own: whether one counts depends on the synonym, not on the rest.
        similarity = torch.eye(2 + len(_PLANE))
        similarity[0, 1:] = torch.tensor([synonym, *_PLANE])
        labels = torch.tensor([0, *range(1 + len(_PLANE))])
        columns.append(MINERS[mining](similarity, labels).negatives[0, 2:])
    return torch.stack(columns, 1)


def mining_picture() -> str:
    """SVG: for each mining, where in the plane of the two similarities the pairs of one triplet count."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(7.6, 2.4), layout="constrained")
        panels = figure.subplots(1, len(MINERS), sharey=True)
        for panel, name in zip(panels, MINERS, strict=True):
            mined = mined_plane(name).numpy()
            panel.contourf(_PLANE, _PLANE, mined, levels=[0.5, 1.5], cmap=ListedColormap([_MINED]), alpha=0.45)
            panel.plot([_PLANE[0], 1], [_PLANE[0], 1], color=_GREY, linewidth=0.8, linestyle=":")
            panel.set_title(name, loc="left", size=9)
            panel.set_aspect("equal")
            panel.set_xlabel("synonym")
            panel.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("other name")
        return _svg(figure)


def _similarity(synonym: float, other: float) -> torch.Tensor:
    """Anchor, its synonym, another name; these two are as similar to each other as anchor and other name are."""
    return torch.tensor([[1.0, synonym, other], [synonym, 1.0, other], [other, other, 1.0]])


def _svg(figure: Figure) -> str:
    written = io.StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return written.getvalue()
