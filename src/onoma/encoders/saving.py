"""Write an encoder as a folder that every tool opens.

The folder is a sentence-transformers model, with an ONNX model and Onoma's manifest beside it::

    onoma.json                   manifest: checksums, parents, settings, seed
    encoder.json                 name, SHA-256 of the weights, where they come from
    modules.json                 the steps that sentence-transformers runs
    config.json                  the Hugging Face model's configuration
    model.safetensors            its weights
    tokenizer.json ...           its tokeniser
    sentence_bert_config.json    max_tokens
    1_Pooling/config.json        pooling
    onnx/model.onnx              the same encoder for ONNX Runtime, pooling inside
    onnx/model_PRECISION.onnx    the same in a lower precision (onoma.encoders.rewriting), where one was asked for
    README.md                    model card (onoma.encoders.model_card)
    adapter/                     what was trained beside a frozen base, on its own (onoma.encoders.adapter_folders)

A folder with pooling ``"mean-nospec"`` or ``"mean-all"`` names it in ``1_Pooling/config.json``; sentence-transformers,
which can neither leave special tokens out nor average over padding, then refuses the folder instead of giving other
vectors. It refuses an encoder with bottleneck adapters too, which ``config.json`` calls by another family's name; LoRA
is merged, and such a folder is an ordinary one.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onoma.artifacts import CARD_NAME, Parent, read_manifest, sha256_file, write_artifact
from onoma.encoders.agreement import read_agreements, write_agreements
from onoma.encoders.folders import (
    ABOUT_NAME,
    ENCODER_KIND,
    LOWER_PRECISIONS,
    ONNX_NAME,
    EncoderFolder,
    OnnxPrecision,
    Origin,
    onnx_name,
)
from onoma.encoders.json_files import read_json, write_json
from onoma.encoders.model_card import TRAIN_NAME, write_card
from onoma.encoders.sources import locate_encoder
from onoma.encoders.tokens import load_tokenizer, tokenizer_fingerprint
from onoma.encoders.weight_files import WEIGHTS_INDEX
from onoma.errors import ConfigError, InputError, missing_extra

if TYPE_CHECKING:
    from onoma.encoders.packed import PackedEncoder

_TOKENIZER_FILES = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
)
"""Copied as they are; ``tokenizer.json`` is written of the tokeniser that was loaded."""
_HAVE_PADDING = frozenset(
    f"{family}Tokenizer{fast}"
    for family in (
        "Albert",
        "Bert",
        "Camembert",
        "DebertaV2",
        "DistilBert",
        "Electra",
        "MPNet",
        "Roberta",
        "XLMRoberta",
    )
    for fast in ("", "Fast")
)
"""Kinds of tokenisers that transformers gives a token for padding where none is named."""


def save_encoder(
    encoder: PackedEncoder,
    out: str | Path,
    *,
    name: str | None = None,
    max_tokens: int | None = None,
    config: Mapping[str, Any] | None = None,
    parents: Sequence[Parent] = (),
    seed: int | None = None,
    files: Mapping[str, str] | None = None,
    sparse_weight: float | None = None,
    licence: str | None = None,
    overwrite: bool = False,
) -> EncoderFolder:
    """Save an encoder with its present weights.

    Args:
        encoder: Loaded by `onoma.encoders.loading.load_packed`; its tokeniser is taken from the folder it came from.
        out: The folder to write.
        name: Its name; the name of ``out`` if not given.
        max_tokens: Where names are truncated; as in the encoder if not given.
        config: The settings that made it, for the manifest.
        parents: What it was made from.
        seed: Of every random choice made.
        files: Small text files to add, relative path -> content (``train.json``; a ``README.md`` replaces the model
            card).
        sparse_weight: See `onoma.encoders.folders.EncoderFolder`.
        licence: Of the weights; unset: that of the encoder's folder, if they are unchanged.
        overwrite: Replace an encoder that is there.

    Returns:
        The folder written.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: the encoder came from no folder, or one of ``files`` would be outside the folder.
        MismatchError: the ONNX model does not agree with torch; nothing is written.
    """
    from onoma.encoders.adapter_folders import write_model
    from onoma.encoders.packed import PackedEncoder

    if encoder.source is None:
        raise ConfigError("an encoder made in memory has no tokeniser to save; load it with load_packed.")
    source = dataclasses.replace(
        encoder.source,
        max_tokens=max_tokens or encoder.max_tokens,
        dimensions=None,
        sparse_weight=sparse_weight,
    )
    training: Mapping[str, Any] = (config or {}).get("training", {})
    with write_artifact(out, ENCODER_KIND, config=config, parents=parents, seed=seed, overwrite=overwrite) as folder:
        title = name or Path(out).name
        model = write_model(
            encoder,
            folder,
            name=title,
            max_tokens=source.max_tokens,
            sparse_weight=sparse_weight,
            config=config,
            parents=parents,
            seed=seed,
        )
        origin = _origin_of_saved(folder, encoder.source, is_trained=bool(training))
        _write_rest(
            folder,
            source,
            name=title,
            origin=origin if licence is None else dataclasses.replace(origin, licence=licence),
            normalisation=training.get("normalisation", source.trained_on),
        )
        _add_files(folder, files or {})
        cutting = PackedEncoder(model, pooling=encoder.pooling, max_tokens=source.max_tokens, source=source)
        _write_onnx(cutting.train(encoder.training), source, folder / ONNX_NAME)  # its model is the encoder's own
        if not (folder / CARD_NAME).exists():
            write_card(folder, source, config=config or {}, parents=parents, seed=seed)
    return locate_encoder(Path(out))


def export_encoder(
    source: str | Path | EncoderFolder,
    out: str | Path,
    *,
    onnx_only: bool = False,
    overwrite: bool = False,
) -> EncoderFolder:
    """Make an Onoma encoder folder, ONNX model included, of any other encoder; its weights stay as they are.

    Torch is needed only if the source has no ONNX model that Onoma wrote.

    Args:
        source: A folder, catalogue name, hub id, or the ``folder`` of an open encoder; if that one runs in a lower
            precision, its ONNX model goes with it (with ``onnx_only``: it alone).
        out: The folder to write; movable, it refers to nothing outside.
        onnx_only: Leave the safetensors weights out. Such a folder runs in ONNX Runtime only and takes half the room.
        overwrite: Replace an encoder that is there.

    Returns:
        The folder written; its fingerprint is the source's.

    Raises:
        InputError: the source is no encoder.
        ConfigError: it keeps a part of each vector only, and the weights shall be written.
        ArtifactExistsError: ``out`` is taken.
        UnavailableError: the source, or torch, is not on this machine.
        MismatchError: the source is an open encoder's folder, and another encoder was put there since.
    """
    found = source if isinstance(source, EncoderFolder) else locate_encoder(source)
    manifest = read_manifest(found.path) if found.is_own else None
    config = manifest.config if manifest else {}
    parents = manifest.parents if manifest else ()
    seed = manifest.seed if manifest else None
    with write_artifact(out, ENCODER_KIND, config=config, parents=parents, seed=seed, overwrite=overwrite) as folder:
        fill_folder(folder, found, onnx_only=onnx_only)
        if found.is_own and (found.path / TRAIN_NAME).is_file():
            shutil.copyfile(found.path / TRAIN_NAME, folder / TRAIN_NAME)
        write_card(folder, found, config=config, parents=parents, seed=seed)
    return locate_encoder(Path(out), precision=found.precision)


def fill_folder(folder: Path, found: EncoderFolder, *, onnx_only: bool = False) -> None:
    """Write all files of an encoder but manifest and card into a folder; see `export_encoder`."""
    if found.dimensions is not None and not onnx_only:
        raise ConfigError(
            f"{found.name} keeps the first {found.dimensions} numbers of each vector, and other tools would take its "
            "weights for those of an encoder that keeps all. Write it with onnx_only, or whole."
        )
    check_links(found)
    found.check_unchanged()
    found.check_content()  # the copy gets checksums of its own, which would vouch for what is damaged
    _write_config(folder, found)
    if not onnx_only:
        index = found.model_path / WEIGHTS_INDEX
        for file in (*found.weights, *([index] if len(found.weights) > 1 else [])):
            shutil.copyfile(file, folder / file.name)
    _write_rest(folder, found, name=found.name, origin=found.origin, normalisation=found.trained_on)
    precisions: set[OnnxPrecision] = {found.precision} if onnx_only else {"fp32", found.precision}
    for precision in sorted(precisions):
        file = found.path / onnx_name(precision)
        if found.is_own and file.is_file() and found.pooling == found.said_pooling:
            (folder / "onnx").mkdir(exist_ok=True)
            for part in (file, file.with_name(f"{file.name}.data")):
                if part.is_file():
                    shutil.copyfile(part, folder / "onnx" / part.name)
        else:
            _write_onnx(_load(found), found, folder / ONNX_NAME)
    found.check_unchanged()  # nor was it while it was copied
    measured = read_agreements(found.path).get(found.precision)
    if measured is not None:
        write_agreements(folder, [measured])


def _write_config(folder: Path, found: EncoderFolder) -> None:
    """The configuration as it is; of weights in half precision transformers compute in fp32, as Onoma does."""
    config = read_json(found.model_path / "config.json")
    if {config.get("dtype"), config.get("torch_dtype")} <= {None, "float32"}:
        shutil.copyfile(found.model_path / "config.json", folder / "config.json")
    else:
        kept = {key: value for key, value in config.items() if key != "torch_dtype"}
        write_json(folder / "config.json", {**kept, "dtype": "float32"})


def _origin_of_saved(folder: Path, source: EncoderFolder, *, is_trained: bool) -> Origin:
    """Of weights just written, which were loaded from ``source`` and trained since, or not."""
    weights = folder / "model.safetensors"
    known = source.origin
    is_copy = weights.exists() and sha256_file(weights) == source.weights_sha256
    if is_copy and not (is_trained and known.base):  # where a run kept a trained base as it was, the base is named
        return known
    ancestor, its_licence = known.nearest_on_hub()
    return Origin(
        base=source.name,
        base_hub_id=known.hub_id,
        base_licence=known.licence,
        ancestor_hub_id=ancestor,
        ancestor_licence=its_licence,
    )


def check_links(found: EncoderFolder) -> None:
    """Refuse links out of an encoder's folder where a file is copied that nothing has read; a folder may be another's.

    Those of the hub's cache to its blobs are none. Weights and ``tokenizer.json`` may lie wherever one likes: they are
    read as what they are.

    Raises:
        InputError: there is one.
    """
    root = found.path.resolve()
    allowed = [root, *(above.parent / "blobs" for above in root.parents if above.name == "snapshots")]
    parts = (found.path / f"{onnx_name(precision)}.data" for precision in ("fp32", *LOWER_PRECISIONS))
    tokenizer = (found.model_path / name for name in _TOKENIZER_FILES)
    for file in (*tokenizer, *parts, found.path / TRAIN_NAME):
        if file.is_file() and not any(map(file.resolve().is_relative_to, allowed)):
            raise InputError("this is a link out of the encoder's folder", path=file, fix="put the file itself there")


def _write_rest(folder: Path, source: EncoderFolder, *, name: str, origin: Origin, normalisation: str | None) -> None:
    """All but weights, configuration and graph."""
    check_links(source)
    for file in _TOKENIZER_FILES:
        if (source.model_path / file).is_file():
            shutil.copyfile(source.model_path / file, folder / file)
    source.load_tokenizer().save(str(folder / "tokenizer.json"))
    _pad_and_cut_behind(folder)
    _name_padding(folder, source)
    steps = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    write_json(
        folder / "modules.json",
        [
            {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for index, (path, kind) in enumerate(steps)
        ],
    )
    write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": source.max_tokens, "do_lower_case": source.lower_case},
    )
    (folder / "1_Pooling").mkdir()
    write_json(
        folder / "1_Pooling" / "config.json",
        {"word_embedding_dimension": source.width, **_pooling_config(source)},
    )
    weights = folder / "model.safetensors"
    write_json(
        folder / ABOUT_NAME,
        {
            "name": name,
            "weights_sha256": sha256_file(weights) if weights.exists() else source.weights_sha256,
            "tokenizer_fingerprint": tokenizer_fingerprint(load_tokenizer(folder)),
            **({} if normalisation is None else {"normalisation": normalisation}),
            **({} if source.dimensions is None else {"dimensions": source.dimensions}),
            **({} if source.sparse_weight is None else {"sparse_weight": source.sparse_weight}),
            "origin": {key: value for key, value in dataclasses.asdict(origin).items() if value is not None},
        },
    )


def _pad_and_cut_behind(folder: Path) -> None:
    """Padding comes behind a name, as here: before it, other tools would count positions otherwise. So is it cut."""
    file = folder / "tokenizer_config.json"
    if file.is_file():
        said = read_json(file)
        others = {side: "right" for side in ("padding_side", "truncation_side") if said.get(side, "right") != "right"}
        if others:
            write_json(file, {**said, **others})


def _name_padding(folder: Path, source: EncoderFolder) -> None:
    """Name a token for padding where nothing names one: other tools refuse to pad without, whichever it is."""
    file = folder / "tokenizer_config.json"
    said = [read_json(one) for one in (file, folder / "special_tokens_map.json") if one.is_file()]
    if not file.is_file() or any(one.get("pad_token") for one in said):
        return
    if said[0].get("tokenizer_class") not in _HAVE_PADDING:
        token = source.load_tokenizer().id_to_token(source.padding_id)
        if token is not None:
            write_json(file, {**said[0], "pad_token": token})


def _add_files(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        added = folder / path
        if folder.resolve() not in added.resolve().parents:
            raise ConfigError(f"files are added to the encoder's own folder; '{path}' is outside of it, or no file.")
        added.parent.mkdir(parents=True, exist_ok=True)
        added.write_text(text, encoding="utf-8")


def _pooling_config(source: EncoderFolder) -> dict[str, Any]:
    if source.pooling in {"mean-nospec", "mean-all"}:
        return {"pooling_mode": source.pooling}
    return {
        "pooling_mode_cls_token": source.pooling == "cls",
        "pooling_mode_mean_tokens": source.pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }


def _write_onnx(encoder: PackedEncoder, source: EncoderFolder, file: Path) -> None:
    from onoma.encoders.onnx_export import write_onnx

    write_onnx(encoder, file, tokenizer=source.load_tokenizer())


def _load(source: EncoderFolder) -> PackedEncoder:
    try:
        from onoma.encoders.loading import load_folder
    except ImportError:
        raise missing_extra("torch", "train", f"Writing the ONNX model of {source.name}") from None
    return load_folder(source)
