"""Add to a finished encoder folder: ONNX models in lower precisions, scores, what the card shall say.

A finished folder is never edited. It is checked byte by byte, copied aside, added to, and renamed into place with a new
manifest, as every folder is written: who opens it meanwhile sees the old one or the new, and `onoma verify` holds for
both. What it was made from, its settings and its fingerprint as an encoder stay, so linkers made with it go on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from onoma.artifacts import (
    CARD_NAME,
    MANIFEST_NAME,
    Manifest,
    copy_files,
    open_artifact,
    read_manifest,
    verify_artifact,
    write_artifact,
)
from onoma.encoders.agreement import Agreement, measure_agreement, write_agreements
from onoma.encoders.folders import (
    ABOUT_NAME,
    ENCODER_KIND,
    LOWER_PRECISIONS,
    ONNX_NAME,
    EncoderFolder,
    OnnxPrecision,
    onnx_name,
    read_about,
)
from onoma.encoders.json_files import write_json
from onoma.encoders.model_card import RESULTS_FOLDER, RESULTS_FORMAT, RESULTS_KIND, RESULTS_NAME, write_card
from onoma.encoders.onnx_encoder import OnnxEncoder
from onoma.encoders.saving import fill_folder
from onoma.encoders.sources import locate_encoder
from onoma.errors import ConfigError, InputError, MismatchError, checked_path, first_line, missing_extra, one_of
from onoma.types import CountProgress

if TYPE_CHECKING:
    from onnx import ModelProto


def add_precisions(
    source: str | Path,
    precisions: Sequence[OnnxPrecision],
    names: Sequence[str],
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: CountProgress | None = None,
) -> list[Agreement]:
    """Make ONNX models in lower precisions beside the one in fp32, and measure how well each agrees with it.

    Args:
        source: An encoder's folder, a catalogue name or a hub id.
        precisions: See `onoma.encoders.onnx_precision`.
        names: To measure on, prepared as they will be: best those of the dictionary that will be searched.
        out: The folder to write; the source itself if not given, which must then be a folder (no name) that Onoma
            wrote.
        overwrite: Replace an encoder at ``out``.
        threads: To measure with; all usable processors if not given.
        progress: Called with (names done, names in all).

    Returns:
        What was measured; the folder keeps it in ``onnx/agreement.json`` and tells it in its card.

    Raises:
        ConfigError: there is no such precision, or the source is no folder to add to.
        InputError: too few names, or the source is no encoder.
        ArtifactError: the source is damaged, or ``out`` is taken.
        MismatchError: vectors in a lower precision are no numbers. Whatever is raised, nothing is written.
        UnavailableError: the package onnx is not installed.
    """
    for precision in precisions:
        one_of(precision, LOWER_PRECISIONS, "lower precision")
    found = locate_encoder(source)
    with _rewritten(source, found, out, overwrite=overwrite) as folder:
        model = _load_model(folder / ONNX_NAME)
        exact = OnnxEncoder(dataclasses.replace(found, onnx=folder / ONNX_NAME, is_own=True), threads=threads)
        lowered = []
        for precision in dict.fromkeys(precisions):
            file = folder / onnx_name(precision)
            _write_lower(model, precision, file)
            written = dataclasses.replace(found, onnx=file, is_own=True, precision=precision)
            lowered.append(OnnxEncoder(written, threads=threads))
        measured = measure_agreement(exact, lowered, names, progress=progress)
        write_agreements(folder, measured)
    return measured


def add_to_card(
    source: str | Path,
    *,
    results: Sequence[str | Path] = (),
    licence: str | None = None,
    overwrite: bool = False,
) -> EncoderFolder:
    """Write the card of an encoder's folder anew, with more to tell.

    Args:
        source: A folder that Onoma wrote.
        results: ``results.json`` of benchmark runs with this encoder, or the folders they lie in. Of one task and
            precision, with n-grams or without, the newest given stays.
        licence: Of the encoder; SPDX where there is such a name. Unset: what was said stays; "": it is taken back.
        overwrite: Write over a card that was edited.

    Raises:
        InputError: a file is no benchmark's result.
        MismatchError: results of another encoder.
        ConfigError: the source is no folder that Onoma wrote, or the licence is not that of weights that are another's.
        ArtifactError: the source is damaged, or a folder of results is, or that is of another Onoma's format.
    """
    found = locate_encoder(source, precision=None)
    read = [_read_result(checked_path(file), found) for file in results]
    with _rewritten(source, found, None, overwrite=True, card_may_differ=overwrite) as folder:
        for result in read:
            (folder / RESULTS_FOLDER).mkdir(exist_ok=True)
            with_ngrams = ["n-grams"] if "sparse_weight" in result["model"] else []
            name = "-".join((*_file_name_parts(result), result["precision"], *with_ngrams))
            write_json(folder / RESULTS_FOLDER / f"{name}.json", result)
        about = read_about(folder)
        if licence is not None:
            about["origin"] = _with_licence(about.get("origin", {}), licence.strip() or None, found)
        write_json(folder / ABOUT_NAME, about)
    return locate_encoder(source, precision=found.precision)


def _with_licence(origin: Mapping[str, Any], licence: str | None, found: EncoderFolder) -> dict[str, Any]:
    """The origin of a folder with another licence; that of weights that are another's stays theirs."""
    theirs = origin.get("licence")
    if theirs is not None and licence != theirs and origin.get("base") is None:
        raise ConfigError(
            f"the weights of {found.path} are those of {origin.get('hub_id') or found.name}, unchanged, and under its "
            f"licence: {theirs}. A licence of your own is for what you trained."
        )
    return {**origin, "licence": licence}


@contextlib.contextmanager
def _rewritten(
    source: str | Path, found: EncoderFolder, out: str | Path | None, *, overwrite: bool, card_may_differ: bool = False
) -> Iterator[Path]:
    """A copy of an encoder's folder to add to; on leaving, it gets a card and takes its place at ``out``."""
    # A name stands for a folder that all on this machine share.
    if out is None and not (found.is_own and Path(source).is_dir()):
        raise ConfigError(
            f"{found.name} is not a folder that you wrote with Onoma, so nothing is added to it. Write one with "
            "onoma encoder export and -o ENCODER, and go on with that."
        )
    # Verified, or damage would be given a fresh checksum.
    manifest: Manifest | None = verify_artifact(found.path, card_may_differ=card_may_differ) if found.is_own else None
    config = manifest.config if manifest else {}
    parents = manifest.parents if manifest else ()
    seed = manifest.seed if manifest else None
    with write_artifact(
        out or found.path,
        ENCODER_KIND,
        config=config,
        parents=parents,
        seed=seed,
        overwrite=overwrite or out is None,
        on_replaced=None if out is not None or manifest is None else partial(_check_unchanged, manifest=manifest),
    ) as folder:
        if manifest is None:
            fill_folder(folder, found)
        else:
            copy_files(manifest.files.keys() - {CARD_NAME}, found.path, folder)
        yield folder
        write_card(folder, found, config=config, parents=parents, seed=seed)


def _check_unchanged(old: Path, *, manifest: Manifest) -> None:
    """Refuse to replace a folder that is another one by now: what was added to it would be lost."""
    if read_manifest(old) != manifest:
        raise MismatchError(
            "the encoder was changed by another process meanwhile; nothing was added to it. Give the command again."
        )


def _load_model(file: Path) -> ModelProto:
    try:
        import onnx
    except ImportError:
        raise missing_extra("onnx", "train", "Writing an ONNX model in a lower precision") from None
    if not file.is_file():
        raise InputError("this folder has no ONNX model in fp32 to make another of", path=file)
    return onnx.load(file)


def _write_lower(model: ModelProto, precision: OnnxPrecision, file: Path) -> None:
    from onoma.encoders.onnx_precision import lower_precision, save_onnx

    save_onnx(lower_precision(model, precision), file)


_Share = Annotated[float, Field(ge=0, le=1)]


class _MeasuredModel(BaseModel):
    model_config = ConfigDict(strict=True)

    kind: str
    fingerprint: str
    precision: str | None = None


class _Result(BaseModel):
    """What a card tells of a benchmark's result."""

    model_config = ConfigDict(strict=True)

    task: str
    split: str | None = None
    protocol: str = ""
    n_queries: int
    n_dictionary: int
    at_1: _Share = Field(alias="acc@1")
    at_5: _Share = Field(default=0.0, alias="acc@5")
    confidence_interval_95: dict[str, tuple[_Share, _Share]] = Field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    model: _MeasuredModel


def _read_result(path: Path, found: EncoderFolder) -> dict[str, Any]:
    """A benchmark's result with the precision of this encoder that it is of.

    Without the values of a column of one's own mentions, which may be names of people and stand in no card.
    """
    file = path / RESULTS_NAME if path.is_dir() else path
    if file.name == RESULTS_NAME and (file.parent / MANIFEST_NAME).is_file():
        open_artifact(file.parent, RESULTS_KIND, format_version=RESULTS_FORMAT, oldest=RESULTS_FORMAT)
    try:
        result: dict[str, Any] = json.loads(file.read_text("utf-8"))
        told = _Result.model_validate_json(json.dumps(result))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"this is no result of a benchmark ({first_line(error)})", path=file) from None
    kind, fingerprint, measured_in = told.model.kind, told.model.fingerprint, told.model.precision
    if strange := [part for part in _file_name_parts(result) if not re.fullmatch(r"\w[\w.+-]*", part)]:
        raise InputError("this is no result of a benchmark", path=file, found=strange[0])
    if kind != ENCODER_KIND:
        raise MismatchError(f"{file} was measured with a {kind}; a card tells what was measured with its encoder.")
    precisions: tuple[OnnxPrecision, ...] = ("fp32", *found.lower_precisions)
    for precision in precisions:
        if dataclasses.replace(found, precision=precision).fingerprint == fingerprint:
            # bf16 is no other encoder, and other arithmetic.
            kept = {key: value for key, value in result.items() if key != "by_group"}
            return {**kept, "precision": "bf16" if measured_in == "bf16" else precision}
    raise MismatchError(
        f"{file} was measured with another encoder ({fingerprint[:12]}) than {found.path} ({found.fingerprint[:12]})."
    )


def _file_name_parts(result: Mapping[str, Any]) -> list[str]:
    return [str(result[key]) for key in ("task", "split") if result.get(key) is not None]
