"""What the folder of an encoder says about itself, whoever wrote it.

Three kinds are read alike: folders that Onoma wrote (artefact kind ``encoder``), sentence-transformers folders, and
plain Hugging Face folders. Nothing here loads weights or imports torch.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from tokenizers import Tokenizer

from onoma.artifacts import MANIFEST_NAME, Manifest, open_artifact, read_manifest, sha256_file
from onoma.encoders.json_files import read_json
from onoma.encoders.onnx_files import has_its_weights, with_weights_beside
from onoma.encoders.pooling import Pooling, checked_pooling
from onoma.encoders.seen_files import SeenFile, see_files
from onoma.encoders.sentence_folders import read_sentence_settings
from onoma.encoders.tokens import load_tokenizer, special_tokens_around, tokenizer_fingerprint
from onoma.encoders.weight_files import weight_files
from onoma.errors import (
    ConfigError,
    DamagedArtifactError,
    InputError,
    MismatchError,
    NotAnArtifactError,
    OnomaError,
    UnavailableError,
)

ENCODER_KIND = "encoder"
ADAPTER_KIND = "adapter"
ABOUT_NAME = "encoder.json"
"""In a folder that Onoma wrote: what the files of sentence-transformers have no place for."""
ONNX_NAME = "onnx/model.onnx"
OnnxPrecision = Literal["fp32", "fp16-weights", "int8-weights", "int8"]
"""Of an ONNX model: fp32, or with ``-weights`` weights kept in so many bits and arithmetic in fp32, or both in int8."""

Precision = Literal["fp32", "bf16", "fp16-weights", "int8-weights", "int8"]
"""Numbers that vectors are computed with: of an ONNX model, or ``"bf16"``, which torch multiplies in."""

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
LOWER_PRECISIONS: tuple[OnnxPrecision, ...] = get_args(OnnxPrecision)[1:]
"""Those that a folder has an ONNX model of only where one was asked for."""
ADAPTED_PREFIX = "onoma-adapted-"
"""Before the family's name in ``config.json`` of an encoder with bottleneck adapters inside, so that tools which would
leave them out refuse it; see `onoma.encoders.adapters`."""
_TOKENIZER_NAMES = ("tokenizer.json", "tokenizer_config.json")
"""The files that decide how a text is tokenised."""
DEFAULT_MAX_TOKENS = 25
"""For folders that do not say: SapBERT's setting; 0.5 % of biomedical names are longer."""


@dataclass(frozen=True)
class Origin:
    """Where an encoder comes from, as far as that is known; kept in ``encoder.json``."""

    hub_id: str | None = None
    """Of these very weights."""
    licence: str | None = None
    """Of these very weights; SPDX where there is such a name."""
    base: str | None = None
    """Name of the encoder that training began with; None where nothing was trained."""
    base_hub_id: str | None = None
    """Of that one, where it is known."""
    base_licence: str | None = None
    """Of that one, where it is known."""
    ancestor_hub_id: str | None = None
    """Of the nearest encoder on the hub that the base was trained from, if the base is not there itself."""
    ancestor_licence: str | None = None
    """Of that one, where it is known."""

    def nearest_on_hub(self) -> tuple[str | None, str | None]:
        """Hub id and licence of the nearest encoder there that these weights were trained from, if they were."""
        if self.hub_id:
            return None, None
        return (
            (self.base_hub_id, self.base_licence) if self.base_hub_id else (self.ancestor_hub_id, self.ancestor_licence)
        )


@dataclass(frozen=True)
class EncoderFolder:
    """An encoder on disk: where its parts lie and how its vectors are made."""

    path: Path
    model_path: Path
    """Where ``config.json``, weights and tokeniser lie; ``path`` or a folder in it."""
    name: str
    pooling: Pooling
    said_pooling: Pooling | None
    """What the folder itself says, before any override."""
    max_tokens: int
    """Longest name in tokens, special tokens included; longer ones are cut."""
    width: int
    """Numbers in a vector."""
    padding_id: int
    lower_case: bool
    """Whether text is lower-cased before tokenising (besides what the tokeniser does)."""
    weights: tuple[Path, ...]
    """The safetensors files; empty in a folder that holds only the ONNX model."""
    onnx: Path | None
    is_own: bool
    """Whether Onoma wrote the folder."""
    recorded_weights_sha256: str | None
    """As written by Onoma beside the weights, so that they need not be read to know them."""
    recorded_tokenizer_fingerprint: str | None = None
    """Likewise."""
    precision: OnnxPrecision = "fp32"
    """Of ``onnx``."""
    origin: Origin = Origin()
    """Where it comes from."""
    dimensions: int | None = None
    """Only the first so many numbers of a vector are kept; None: all ``width``."""
    sparse_weight: float | None = None
    """What the cosine of TF-IDF of character 1-2-grams is to be multiplied with before it is added to the cosine of
    vectors, where that was learned with the encoder (BioSyn) or chosen for it. Decides no vector."""
    trained_on: str | None = None
    """Preset of `onoma.terminology.normalise` that its training names went through, if the folder says so."""
    trained_dimensions: tuple[int, ...] = ()
    """How many first numbers of a vector were trained to be one of their own (matryoshka), if the folder says so."""
    trained_mentions: frozenset[str] = frozenset()
    """`onoma.pairs.mentions.mentions_fingerprint` of each set of mentions that it, its base or its teacher was trained
    on, if the folder says so."""
    seen: Mapping[Path, SeenFile] = field(default_factory=dict, compare=False, repr=False)
    """The files that decide a vector, as they were when the folder was read."""

    def check_unchanged(self, *files: Path) -> None:
        """Refuse to read on in a folder that another encoder has been put into since it was opened.

        Args:
            files: To be looked at; unset: all that decide a vector.

        Raises:
            MismatchError: one of them was changed or is gone.
        """
        # Of weights without a manifest the checksum is known if it was asked for.
        of_weights = self.__dict__.get("weights_sha256") if len(self.weights) == 1 else None
        for file in files or self.seen:
            if file in self.seen and not self.seen[file].is_still(file, of_weights if file in self.weights else None):
                raise MismatchError(
                    f"{self.path} is not what it was when this encoder was opened ({file.name} was changed or "
                    "removed): what is read of it now would not fit. Open it again, or give the command again."
                )

    def check_content(self, *files: Path) -> None:
        """Refuse files of a folder that Onoma wrote if any byte of them is another by now; large ones take a while.

        Args:
            files: To be read; unset: all that decide a vector.

        Raises:
            DamagedArtifactError: one of them is not what was written.
        """
        if not self.is_own:
            return
        written = read_manifest(self.path).files
        for file in files or self.seen:
            name = file.relative_to(self.path).as_posix()
            if name in written and file.is_file() and sha256_file(file) != written[name].sha256:
                raise DamagedArtifactError(f"{self.path}: the content of {name} has changed. Make the folder again.")

    @cached_property
    def weights_sha256(self) -> str:
        """SHA-256 of the weights file; of the list of such sums if there are several files."""
        if self.recorded_weights_sha256 is not None:
            return self.recorded_weights_sha256
        files = self.weights
        if not files:
            assert self.onnx is not None  # read_folder saw to it that there is something to run
            files = with_weights_beside(self.onnx)
        self.check_unchanged(*files)
        sums = [sha256_file(file) for file in files]
        return sums[0] if len(sums) == 1 else hashlib.sha256("\n".join(sums).encode()).hexdigest()

    @cached_property
    def tokenizer_fingerprint(self) -> str:
        """SHA-256 of the tokeniser; see `onoma.encoders.tokens.tokenizer_fingerprint`."""
        if self.is_own and self.recorded_tokenizer_fingerprint is not None:
            self.check_content(*(self.model_path / name for name in _TOKENIZER_NAMES))
            return self.recorded_tokenizer_fingerprint
        return tokenizer_fingerprint(self.load_tokenizer())

    @cached_property
    def special_tokens(self) -> tuple[int, int]:
        """How many special tokens the tokeniser puts before a name and after it."""
        return special_tokens_around(self.load_tokenizer())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides a name's vector: weights, tokeniser, pooling, ``max_tokens``, lower-casing.

        Of an ONNX model in a lower precision also that model, so that it is another fingerprint.
        """
        parts: tuple[str, ...] = (
            self.weights_sha256,
            self.tokenizer_fingerprint,
            self.pooling,
            str(self.max_tokens),
            str(self.lower_case),
        )
        if self.precision != "fp32":
            # Rounded so far that it is another encoder: what was built with one must not be queried with the other.
            if self.onnx is not None:
                self.check_unchanged(self.onnx)
            model = read_manifest(self.path).files[onnx_name(self.precision)]
            parts = (*parts, self.precision, model.sha256)
        if self.dimensions is not None:
            parts = (*parts, f"first {self.dimensions} numbers")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def cut(self, dimensions: int | None) -> EncoderFolder:
        """The same encoder, of whose vectors only the first so many numbers are kept; None: unchanged.

        Raises:
            ConfigError: it has fewer.
        """
        whole = self.dimensions or self.width
        if dimensions is None or dimensions == whole:
            return self
        if not 2 <= dimensions < whole:
            raise ConfigError(f"dimensions must be from 2 to {whole} for {self.name}; not {dimensions}.")
        return dataclasses.replace(self, dimensions=dimensions)

    @property
    def lower_precisions(self) -> tuple[OnnxPrecision, ...]:
        """Other precisions that the folder has an ONNX model of."""
        return _lower_precisions(self.path) if self.is_own else ()

    @property
    def normalisation(self) -> str:
        """Preset of `onoma.terminology.normalise` that its training names went through; "sapbert" where nobody says."""
        return self.trained_on or "sapbert"

    def load_tokenizer(self) -> Tokenizer:
        """The tokeniser, without truncation or padding."""
        self.check_unchanged(*(self.model_path / name for name in _TOKENIZER_NAMES))
        return load_tokenizer(self.model_path)


def read_folder(
    path: str | Path,
    *,
    name: str | None = None,
    pooling: Pooling | None = None,
    max_tokens: int | None = None,
    precision: OnnxPrecision | None = "fp32",
) -> EncoderFolder:
    """Read what a folder says about its encoder.

    Args:
        path: The folder.
        name: How to call it; the folder's own name if not given.
        pooling: Overrides what the folder says; a plain Hugging Face folder says nothing and takes ``"cls"``.
        max_tokens: Overrides the folder's; a plain Hugging Face folder takes `DEFAULT_MAX_TOKENS`.
        precision: Of the ONNX model; None: fp32, or in a folder that has its encoder in lower precisions only, the
            first of these.

    Raises:
        InputError: no encoder lies there, its weights are a pickle, or it does something Onoma does not.
        ArtifactError: Onoma wrote the folder and it is damaged, too new, or no encoder.
        ConfigError: an option has a value that this encoder cannot have.
    """
    try:
        return _read_folder(Path(path), name=name, pooling=pooling, max_tokens=max_tokens, precision=precision)
    except OnomaError:
        raise
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"the files of this encoder do not say what they should ({type(error).__name__}: {error})",
            path=Path(path),
            expected="a model as transformers or sentence-transformers save it",
            fix="get the folder again",
        ) from None


def _read_folder(
    folder: Path, *, name: str | None, pooling: Pooling | None, max_tokens: int | None, precision: OnnxPrecision | None
) -> EncoderFolder:
    about: dict[str, Any] = {}
    trained_dimensions: tuple[int, ...] = ()
    manifest: Manifest | None = None
    folder = folder.absolute()
    if (folder / MANIFEST_NAME).exists():
        try:
            manifest = open_artifact(folder, ENCODER_KIND)
        except NotAnArtifactError:
            if read_manifest(folder).kind != ADAPTER_KIND:
                raise
            raise NotAnArtifactError(
                f"{folder} is an adapter without its base. Put both together, and give ENCODER instead: onoma encoder "
                f"join {folder} -o ENCODER."
            ) from None
        about = read_about(folder)
        trained_dimensions = tuple(manifest.config.get("trained_dimensions", ()))
    elif (folder / ABOUT_NAME).exists():
        raise DamagedArtifactError(
            f"{folder} is an encoder that Onoma wrote, and its {MANIFEST_NAME} is missing, which says what the encoder "
            "needs. Copy the whole folder again."
        )
    settings = read_sentence_settings(folder)
    model_path = settings.model_path
    if not (model_path / "config.json").is_file():
        raise InputError("this is no encoder: it has no config.json", path=folder, expected="a Hugging Face model")
    config = read_json(model_path / "config.json")
    if not isinstance(config, dict):
        raise InputError("this is no configuration of a model", path=model_path / "config.json", expected="{...}")
    weights = weight_files(model_path)
    if precision is None:
        has_fp32 = weights or (folder / ONNX_NAME).is_file()
        lower = () if has_fp32 or not about else _lower_precisions(folder)
        precision = lower[0] if lower else "fp32"
    onnx = folder / onnx_name(precision)
    if precision != "fp32" and not (about and onnx.is_file()):
        raise ConfigError(
            f"{name or folder} has no ONNX model in {precision}. Make one, see how well it agrees on the names of a "
            f"terminology, and give ENCODER instead: onoma encoder export {name or folder} --precision {precision} "
            "--terminology DIR --out ENCODER."
        )
    if not weights and not onnx.is_file():
        raise _no_weights(model_path, folder)
    # RoBERTa's positions begin after the padding's.
    padding_id = int(config.get("pad_token_id") or 0)
    offset = padding_id + 1 if family_of(config) in COUNTS_FROM_PADDING else 0
    limit = int(config.get("max_position_embeddings") or 512) - offset
    return EncoderFolder(
        path=folder,
        model_path=model_path,
        name=name or str(about.get("name") or folder.resolve().name),
        pooling=checked_pooling(pooling) or settings.pooling or "cls",
        said_pooling=settings.pooling,
        max_tokens=_checked_max_tokens(max_tokens, settings.max_tokens, limit, folder),
        width=_width(config, model_path / "config.json"),
        padding_id=padding_id,
        lower_case=settings.lower_case,
        weights=weights,
        # One of the hub that is larger than 2 GB has its weights in another file, which was not fetched, or is a link.
        onnx=onnx if onnx.is_file() and (about or not weights or has_its_weights(onnx)) else None,
        is_own=bool(about),
        recorded_weights_sha256=about.get("weights_sha256"),
        recorded_tokenizer_fingerprint=about.get("tokenizer_fingerprint"),
        precision=precision,
        origin=Origin(**about.get("origin", {})),
        dimensions=about.get("dimensions"),
        sparse_weight=about.get("sparse_weight"),
        trained_on=about.get("normalisation"),
        trained_dimensions=trained_dimensions,
        trained_mentions=frozenset() if manifest is None else trained_mentions(manifest.config),
        seen=see_files(
            (
                model_path / "config.json",
                *weights,
                *with_weights_beside(onnx),
                *(model_path / name for name in _TOKENIZER_NAMES),
            ),
            folder,
            manifest,
        ),
    )


_TOLD = {
    "name": str,
    "weights_sha256": str,
    "tokenizer_fingerprint": str | None,
    "normalisation": str | None,
    "dimensions": int | None,
    "sparse_weight": float | int | None,
    "origin": dict | None,
}
"""What ``encoder.json`` holds."""


def read_about(folder: Path) -> dict[str, Any]:
    """What ``encoder.json`` of a folder of ours says.

    Raises:
        InputError: it is missing, or no JSON.
        DamagedArtifactError: it does not describe an encoder.
    """
    about: dict[str, Any] = read_json(folder / ABOUT_NAME)
    told = about if isinstance(about, dict) else {}
    strange = [key for key, kind in _TOLD.items() if not isinstance(told.get(key), kind)]
    origin = told.get("origin") or {}
    if not strange and not all(isinstance(value, str | None) for value in origin.values()):
        strange = ["origin"]
    if strange:
        raise DamagedArtifactError(
            f"{folder / ABOUT_NAME} does not describe an encoder: {strange[0]} is missing or of another kind. Get the "
            "folder again."
        )
    return about


def trained_mentions(config: Mapping[str, Any]) -> frozenset[str]:
    """`EncoderFolder.trained_mentions`, of a reranker too, by the ``config`` of its manifest."""
    pairs = config.get("pairs", {})
    own = {one.get("mentions_fingerprint") for one in (pairs, *pairs.get("merged", ()))} - {None}
    return frozenset({*own, *config.get("trained_mentions", ())})


def onnx_name(precision: OnnxPrecision) -> str:
    """Where a folder has its ONNX model in this precision.

    Example:
        >>> onnx_name("int8")
        'onnx/model_int8.onnx'
    """
    return ONNX_NAME if precision == "fp32" else f"onnx/model_{precision}.onnx"


def _lower_precisions(folder: Path) -> tuple[OnnxPrecision, ...]:
    return tuple(precision for precision in LOWER_PRECISIONS if (folder / onnx_name(precision)).is_file())


def family_of(config: Mapping[str, Any]) -> str:
    """The family that a ``config.json`` names, adapters or not."""
    return str(config.get("model_type", "")).removeprefix(ADAPTED_PREFIX)


def is_adapted(config: Mapping[str, Any]) -> bool:
    """Whether a ``config.json`` is of an encoder with bottleneck adapters inside."""
    return str(config.get("model_type", "")).startswith(ADAPTED_PREFIX)


def _width(config: Any, file: Path) -> int:
    for key in ("hidden_size", "dim", "emb_dim", "d_model"):  # BERT's and most, DistilBERT's, FlauBERT's, XLNet's
        if isinstance(config.get(key), int):
            if not 0 < config[key] < 1 << 31:
                raise ValueError(f"{key} is {config[key]}")
            return int(config[key])
    family = config.get("model_type") if isinstance(config, dict) else None
    raise InputError(
        "this file does not say how many numbers a vector has",
        path=file,
        expected="hidden_size, as encoders of one stack of layers have it",
        found=None if family is None else f"a model of the family '{family}'",
        fix="take an encoder of another family, such as BERT's",
    )


COUNTS_FROM_PADDING = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
"""Families whose positions begin after the padding id (fairseq's convention) instead of at zero."""


def _checked_max_tokens(asked: int | None, said: int | None, limit: int, folder: Path) -> int:
    if asked is None:
        found = min(DEFAULT_MAX_TOKENS if said is None else said, limit)
        if found < 3:
            raise ValueError(f"the longest text has {found} tokens, special ones included")
        return found
    if not 3 <= asked <= limit:
        raise ConfigError(
            f"max_tokens must be from 3 to {limit} for the encoder {folder}, special tokens included; not {asked}. "
            f"Set max_tokens={limit} or less, or take an encoder that reads longer names."
        )
    return asked


def _no_weights(folder: Path, whole: Path) -> InputError | UnavailableError:
    if others := _lower_precisions(whole):
        return InputError(
            f"this folder has its encoder in {' and '.join(others)} only",
            path=whole,
            fix=f"open it in that precision (--precision {others[0]}), or name the encoder that it was made from",
        )
    if (folder / "pytorch_model.bin").exists() or list(folder.glob("*.bin")):
        return InputError(
            "the weights are a pickle (.bin), which can run code when it is loaded; Onoma never does",
            path=folder,
            expected="model.safetensors",
            fix="convert them once where you trust them, with "
            "transformers.AutoModel.from_pretrained(...).save_pretrained(...) into this same folder (if into another, "
            "save AutoTokenizer there too), or take a revision that has safetensors",
        )
    return InputError(
        "this folder has no weights",
        path=folder,
        expected=f"model.safetensors or {ONNX_NAME}",
        fix="if it came from the hub, its repository has only a pickle (.bin), which Onoma never fetches: name a "
        "revision or copy that was converted to safetensors",
    )
