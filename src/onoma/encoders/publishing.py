"""Make a published encoder of its base and the update that Onoma carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onoma.encoders.catalogue import PublishedEncoder
from onoma.encoders.loading import load_packed
from onoma.encoders.saving import save_encoder
from onoma.encoders.updates import add_update


def build_published(entry: PublishedEncoder, out: Path) -> None:
    """Write the encoder as a folder like those that training writes, ONNX model and card included.

    Raises:
        UnavailableError: the base's package, or transformers, is not installed.
        DamagedArtifactError: the base or the update is damaged.
        ArtifactExistsError: ``out`` is there.
    """
    encoder = load_packed(entry.base)
    about = add_update(encoder, entry.update)
    config: dict[str, Any] = about["config"]
    told = {"vocabularies": list(entry.vocabularies), "corpora": list(entry.corpora), "earlier": entry.earlier}
    save_encoder(
        encoder,
        out,
        name=entry.name,
        max_tokens=config["training"]["max_tokens"],
        config={**config, **told},
        seed=config["training"]["seed"],
        files={"train.json": about["train"]},
        sparse_weight=entry.sparse_weight,
        licence=entry.licence,
    )
