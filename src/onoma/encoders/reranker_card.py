"""The model card ``README.md`` of a reranker's folder; see `onoma.encoders.model_card` for that of an encoder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from onoma.artifacts import Parent
from onoma.encoders.cross_encoder import CrossEncoderAbout
from onoma.encoders.folders import Origin
from onoma.encoders.markdown import plain, table
from onoma.encoders.model_card import data_section, known_as, scores_section, training_section

_READ = {"matched": "the name that was found", "both": "the name that was found and the preferred name"}


def reranker_card(
    about: CrossEncoderAbout,
    base: Origin,
    *,
    parameters: int,
    config: Mapping[str, Any],
    report: Mapping[str, Any],
    parents: Sequence[Parent],
    seed: int | None,
) -> str:
    """The card of a reranker.

    Args:
        about: What its folder says.
        base: Of the encoder that training began with.
        parameters: Numbers in its weights.
        config: Of its manifest.
        report: Of its training (``train.json``); may be empty.
        parents: Of its manifest.
        seed: Of its manifest.
    """
    head = ["pipeline_tag: text-ranking", "tags:"]
    head += [f"- {tag}" for tag in ("onoma", "reranker", "cross-encoder", "biomedical", "entity-linking")]
    ancestor, its_licence = base.nearest_on_hub()
    if on_hub := base.hub_id or ancestor:
        head.append(f"base_model: {json.dumps(on_hub)}")
    rows = [
        ("base", known_as(about.base, base.hub_id, base.licence)),
        *([("which goes back to", known_as(ancestor, None, its_licence))] if ancestor else []),
        ("parameters", f"{parameters:,}"),
        ("read of a candidate", _READ[about.candidate_text]),
        ("contexts", "read, with the mention marked in them" if about.contexts else "not read"),
        ("texts are prepared by", f"the preset `{about.normalisation}`"),
        ("candidates of a mention", f"the first {about.depth}"),
        ("share of the final score", f"{about.weight:.4g}"),
        ("no such concept", "may be its answer" if about.nil_score is not None else "is never its answer"),
        ("longest pair, longest name", f"{about.max_tokens}, {about.max_name_tokens} tokens; what lies beyond is cut"),
    ]
    sections = [
        "\n".join(["---", *head, "---"]),
        f"# {plain(about.name)}",
        "A cross-encoder: it reads a mention together with the name of a candidate that a linker has found, and ranks "
        "the candidates anew.",
        table(("", ""), rows),
        "## How to use it",
        "Put it into a linker of Onoma, which needs no torch then:",
        "    onoma linker add-reranker LINKER RERANKER\n    onoma linker tune LINKER --mentions DEVELOPMENT",
        data_section(config, report, parents),
        training_section(config, report, seed),
        scores_section(report),
        "\n".join(
            [
                "## Limits",
                "",
                "* Its share of the final score fits the linker it was trained with; tuning finds another's.",
                "* A score compares the candidates of one mention, and is no probability of being right.",
                "* What is not among the scores above was not measured.",
            ]
        ),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"
