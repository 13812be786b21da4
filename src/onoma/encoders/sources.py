"""From what a person writes (a folder, a catalogue name, a hub id) to a folder on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from pathlib import Path

from tokenizers import Tokenizer

from onoma.artifacts import MANIFEST_NAME, read_manifest
from onoma.encoders.catalogue import (
    find_in_catalogue,
    find_published,
    known_names,
    locate_packaged,
    locate_published,
)
from onoma.encoders.folders import EncoderFolder, OnnxPrecision, Origin, read_folder
from onoma.encoders.pooling import Pooling
from onoma.encoders.tokens import has_tokenizer
from onoma.encoders.weight_files import weight_files
from onoma.errors import InputError, UnavailableError, checked_path, did_you_mean, first_line, missing_extra

HUB_FILES = (
    "*.json",
    "*.txt",
    "*.model",
    "model*.safetensors",
    "onnx/model.onnx",
    "*/config.json",
)
"""What is fetched of a hub repository: configuration, tokeniser, safetensors, the plain ONNX model. Never a pickle.

Of one that Onoma wrote then also whatever else its manifest lists: without one of these files it would be damaged."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def locate_encoder(
    source: str | Path,
    *,
    pooling: Pooling | None = None,
    max_tokens: int | None = None,
    precision: OnnxPrecision | None = "fp32",
) -> EncoderFolder:
    """Find an encoder's folder, fetching it from the hub if it must be.

    Args:
        source: A folder; else a name of the catalogue; else a hub id, from the hub's cache on this machine if it is
            there with all that says how it is run.
        pooling: See `read_folder`.
        max_tokens: See `read_folder`.
        precision: See `read_folder`.

    Raises:
        InputError: it is none of these, or no encoder.
        UnavailableError: the catalogue's package is not installed, or the hub cannot be reached.
        ArtifactError: what is there is damaged.
    """
    text = str(source)
    path = checked_path(source).expanduser()
    name: str | None = None
    hub_id: str | None = None
    origin: Origin | None = None
    if path.is_dir():
        folder = path
    elif path.is_file():
        raise InputError("this is a file; an encoder is a folder", path=path)
    elif entry := find_in_catalogue(text):
        folder, name = locate_packaged(entry), entry.name
        origin = Origin(hub_id=entry.hub_id, licence=entry.licence)
    elif published := find_published(text):
        folder, name = locate_published(published), published.name
    elif isinstance(source, Path) or not _HUB_ID.fullmatch(text):
        raise InputError("there is no such encoder folder", path=path, fix=_offline_choices())
    else:
        folder, name, hub_id = _from_hub(text), text, text
    found = read_folder(folder, name=name, pooling=pooling, max_tokens=max_tokens, precision=precision)
    if hub_id is not None:
        origin = dataclasses.replace(found.origin, hub_id=hub_id)
    return found if origin is None else dataclasses.replace(found, origin=origin)


def locate_tokenizer(source: str | Path) -> Tokenizer:
    """The tokeniser of an encoder, without truncation or padding; finds the encoder as `locate_encoder` does."""
    return locate_encoder(source).load_tokenizer()


def _from_hub(hub_id: str) -> Path:
    suggestion = did_you_mean(hub_id, known_names())
    if suggestion and "/" not in hub_id:
        raise InputError(f"there is no encoder '{hub_id}'.{suggestion}".rstrip("."), fix=_offline_choices())
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise missing_extra("huggingface_hub", "train", f"Fetching the encoder {hub_id} from the hub") from None
    try:
        cached = Path(huggingface_hub.snapshot_download(hub_id, allow_patterns=list(HUB_FILES), local_files_only=True))
    except RuntimeError as error:  # no HOME, and a user that the system does not know
        if "home" not in str(error).lower():
            raise
        raise UnavailableError(
            f"encoders of the hub are kept in the home directory, and there is none, so '{hub_id}' cannot be had. Name "
            "a folder in the environment variable HF_HOME."
        ) from None
    except (errors.LocalEntryNotFoundError, errors.HFValidationError, OSError):
        cached = None
    if cached is not None and _is_whole(cached) and not _has_further_steps(hub_id, cached):
        return cached
    folder = _fetched(hub_id, list(HUB_FILES))
    listed = _listed_files(folder)
    return _fetched(hub_id, listed) if listed else folder


def _is_whole(cached: Path) -> bool:
    """Whether an encoder can be read from the cache; another tool, or a fetch that broke off, may have left a part."""
    if listed := _listed_files(cached):
        return all((cached / file).is_file() for file in listed)
    try:
        return (cached / "config.json").is_file() and has_tokenizer(cached) and bool(weight_files(cached))
    except (InputError, AttributeError, TypeError):  # a file of weights is missing, or their index damaged
        return False


def _has_further_steps(hub_id: str, cached: Path) -> bool:
    """Whether the hub says of a cached model how it pools and cuts, and the cache does not.

    transformers fetches the model alone, and without ``modules.json`` it would be read as one that says nothing. That
    the hub has none is kept in its cache; where it cannot be asked, the cache is believed.
    """
    import huggingface_hub

    if (cached / "modules.json").is_file() or (cached / MANIFEST_NAME).is_file():
        return False
    if huggingface_hub.try_to_load_from_cache(hub_id, "modules.json") is not None:  # known to be none
        return False
    with contextlib.suppress(Exception):  # no hub: every layer below has its own kinds
        if huggingface_hub.file_exists(hub_id, "modules.json"):  # which, other than fetching it, tries but once
            return True
        huggingface_hub.hf_hub_download(hub_id, "modules.json")  # keeps that there is none, and fails
    return False


def _listed_files(folder: Path) -> list[str]:
    """Of an encoder that Onoma wrote; none of others."""
    return list(read_manifest(folder).files) if (folder / MANIFEST_NAME).is_file() else []


def _fetched(hub_id: str, patterns: list[str]) -> Path:
    import huggingface_hub
    from huggingface_hub import errors

    try:
        return Path(huggingface_hub.snapshot_download(hub_id, allow_patterns=patterns))
    except errors.RepositoryNotFoundError:
        raise InputError(
            f"there is neither a folder '{hub_id}' here nor a public model of that name on the hub",
            fix=_offline_choices(),
        ) from None
    except errors.HFValidationError:
        raise InputError(f"'{hub_id}' is neither a folder nor a hub id", fix=_offline_choices()) from None
    except Exception as error:  # every layer below has its own kinds: no network, no name server, proxy, time-out
        raise UnavailableError(
            f"there is no folder '{hub_id}' here, and the model hub could not be reached to look for it "
            f"({type(error).__name__}: {first_line(error)}). Without a network: {_offline_choices()}; or copy the "
            f"model's folder to this machine and give its path, or put it into the hub's cache."
        ) from error


def _offline_choices() -> str:
    return f"name a folder, or {' or '.join(map(repr, known_names()))} (pip install 'onoma[quickstart]')"
