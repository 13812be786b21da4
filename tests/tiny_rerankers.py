"""Small rerankers, and linkers that answer by a table, for the tests of several rooms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from onoma.encoders.cross_encoder import CrossEncoderAbout
from onoma.encoders.cross_encoder_model import PackedCrossEncoder, new_cross_encoder
from onoma.encoders.cross_encoder_saving import save_cross_encoder
from onoma.linking import Link
from onoma.terminology import normalise

# Models this small lose more to the meeting of threads than these win.
torch.set_num_threads(1)


@dataclass
class TableLinker:
    """Answers every mention by what a table says; has the concepts of all answers."""

    answers: Mapping[str, Sequence[Link]]

    @property
    def concept_ids(self) -> list[str]:
        return sorted({link.concept_id for answer in self.answers.values() for link in answer})

    def link(self, mentions: Iterable[str], *, top_k: int = 5) -> list[list[Link]]:
        return [list(self.answers[mention][:top_k]) for mention in mentions]


def links(*concepts: tuple[str, str] | tuple[str, str, float]) -> list[Link]:
    """Links of (code, name[, score]), best first; scores fall from 0.9."""
    return [
        Link(concept[0], concept[1], concept[1], concept[2] if len(concept) == 3 else (9 - place) / 10, place + 1)
        for place, concept in enumerate(concepts)
    ]


def write_reranker(folder: Path, base: Path, *, seed: int = 0, **about: Any) -> PackedCrossEncoder:
    """The folder of an untrained cross-encoder, whose scores differ well from pair to pair; the model itself."""
    said = CrossEncoderAbout.model_validate(
        {
            "name": "tiny",
            "base": "tiny",
            "pooling": "cls",
            "normalisation": "sapbert",
            "candidate_text": "both",
            "contexts": False,
            "max_tokens": 32,
            "max_name_tokens": 10,
            "padding_id": 0,
            "depth": 4,
            "weight": 0.5,
            **about,
        }
    )
    torch.manual_seed(seed)
    model, tokenizer = new_cross_encoder(
        base, pooling=said.pooling, max_tokens=said.max_tokens, dropout=None, contexts=said.contexts
    )
    torch.nn.init.normal_(model.head.weight)
    prepare = partial(normalise, preset=said.normalisation)
    save_cross_encoder(model.eval(), tokenizer, said, folder, prepare=prepare)
    return model
