"""What a person wants to know about an encoder before using it; read from its files, without running it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.artifacts import Parent, origins_of, read_manifest
from onoma.encoders.agreement import Agreement, read_agreements
from onoma.encoders.folders import OnnxPrecision, Origin, family_of, is_adapted
from onoma.encoders.json_files import read_json
from onoma.encoders.model_card import RESULTS_FOLDER, data_of
from onoma.encoders.sources import locate_encoder
from onoma.encoders.weight_files import count_parameters


@dataclass(frozen=True)
class EncoderInfo:
    """Facts of an encoder.

    Attributes:
        name: How it is called.
        path: Where it lies.
        architecture: Family, number of layers, adapters.
        n_parameters: Of the safetensors weights; 0 if there are none.
        width: Numbers in a vector.
        pooling: Which token vectors make a name's.
        max_tokens: Longest name in tokens.
        sparse_weight: See `onoma.encoders.folders.EncoderFolder`.
        normalisation: Preset that its training names went through; None if nobody says.
        precision: fp32, or of a folder that has lower ones only, the first of these.
        fingerprint: In this precision.
        origin: Where it comes from.
        made_from: Kind and fingerprint of each of its parents.
        learnt_from: Files and vocabularies that its training names came from, see `onoma.artifacts.origins_of`.
        data: Of an encoder of the catalogue or one trained from it: "vocabularies" and "corpora" that it has learned.
        created: When Onoma wrote the folder; None if another tool did.
        files: Bytes of each file of the encoder.
        agreements: What was measured of each lower precision.
        results: Names of the benchmark results in the folder.
    """

    name: str
    path: Path
    architecture: str
    n_parameters: int
    width: int
    pooling: str
    max_tokens: int
    sparse_weight: float | None
    normalisation: str | None
    precision: OnnxPrecision
    fingerprint: str
    origin: Origin
    made_from: tuple[Parent, ...]
    learnt_from: list[dict[str, Any]]
    data: dict[str, list[str]]
    created: str | None
    files: dict[str, int]
    agreements: dict[str, Agreement]
    results: tuple[str, ...]


def encoder_info(source: str | Path) -> EncoderInfo:
    """Read what there is to know of an encoder.

    Args:
        source: A folder, a catalogue name or a hub id.

    Raises:
        InputError: there is no such encoder.
        ArtifactError: the folder is damaged.
        UnavailableError: the encoder is not on this machine.
    """
    found = locate_encoder(source, precision=None)
    manifest = read_manifest(found.path) if found.is_own else None
    config = read_json(found.model_path / "config.json")
    layers = config.get("num_hidden_layers") or config.get("n_layers")
    parts = [family_of(config), f"{layers} layers" if layers else "", "adapters inside" if is_adapted(config) else ""]
    files = (
        {file: entry.bytes for file, entry in manifest.files.items()}
        if manifest
        else {
            file.relative_to(found.path).as_posix(): file.stat().st_size
            for file in sorted(found.path.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }
    )
    return EncoderInfo(
        name=found.name,
        path=found.path,
        architecture=", ".join(part for part in parts if part),
        n_parameters=count_parameters(found.model_path),
        width=found.dimensions or found.width,
        pooling=found.pooling,
        max_tokens=found.max_tokens,
        sparse_weight=found.sparse_weight,
        normalisation=found.trained_on,
        precision=found.precision,
        fingerprint=found.fingerprint,
        origin=found.origin,
        made_from=tuple(manifest.parents) if manifest else (),
        learnt_from=origins_of(manifest.config) if manifest else [],
        data=data_of([manifest.config]) if manifest else {},
        created=manifest.created if manifest else None,
        files=files,
        agreements=read_agreements(found.path),
        results=tuple(sorted(file.stem for file in (found.path / RESULTS_FOLDER).glob("*.json"))),
    )
