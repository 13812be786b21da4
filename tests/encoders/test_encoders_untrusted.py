"""Encoders' folders that somebody else made: nothing in them runs, and nothing outside them is read or copied."""

from __future__ import annotations

import builtins
import json
import os
import shutil
from pathlib import Path

import pytest

from onoma.encoders import export_encoder, open_encoder
from onoma.errors import DamagedArtifactError, InputError
from onoma.linking import build_linker
from tiny import make_terminology, tiny_encoder

PROGRAM = """
from pathlib import Path
from transformers import BertConfig, BertModel, BertTokenizer
Path(r"{mark}").touch()
class OwnConfig(BertConfig):
    model_type = "own"
class OwnModel(BertModel):
    config_class = OwnConfig
class OwnTokenizer(BertTokenizer):
    pass
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A plain folder of transformers."""
    return tiny_encoder(tmp_path / "foreign")


@pytest.mark.parametrize("has_tokenizer", [True, False])
def test_no_program_of_a_folder_is_run_whatever_is_answered(
    foreign: Path, has_tokenizer: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    (foreign / "own.py").write_text(PROGRAM.format(mark=mark))
    config = json.loads((foreign / "config.json").read_text())
    classes = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    (foreign / "config.json").write_text(json.dumps({**config, "model_type": "own", "auto_map": classes}))
    if not has_tokenizer:
        (foreign / "tokenizer.json").unlink()
        about = {"tokenizer_class": "OwnTokenizer", "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]}}
        (foreign / "tokenizer_config.json").write_text(json.dumps(about))
        (foreign / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    asked: list[str] = []

    def answer(question: str = "") -> str:
        asked.append(question)
        return "y"

    monkeypatch.setattr(builtins, "input", answer)
    with pytest.raises(InputError, match="brings code of its own, which Onoma never runs"):
        open_encoder(foreign, backend="torch").encode(["a"])
    assert not asked
    assert not mark.exists()


@pytest.mark.parametrize("name", ["merges.txt", "added_tokens.json"])
def test_links_out_of_a_folder_are_not_copied(foreign: Path, name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("password")
    (foreign / name).symlink_to(secret)
    with pytest.raises(InputError, match="a link out of the encoder's folder"):
        export_encoder(foreign, tmp_path / "out")
    make_terminology(tmp_path / "t", {"D1": ["cold"]})
    with pytest.raises(InputError, match="a link out of the encoder's folder"):
        build_linker(tmp_path / "t", open_encoder(foreign), tmp_path / "linker")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "linker").exists()


def test_links_within_the_hubs_cache_are_copied(foreign: Path, tmp_path: Path) -> None:
    cache = tmp_path / "models--a--b"
    (cache / "blobs").mkdir(parents=True)
    snapshot = cache / "snapshots" / "0"
    for file in [file for file in foreign.rglob("*") if file.is_file()]:
        blob = cache / "blobs" / "-".join(file.relative_to(foreign).parts)
        shutil.copyfile(file, blob)
        link = snapshot / file.relative_to(foreign)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    export_encoder(snapshot, tmp_path / "out")
    assert not any(file.is_symlink() for file in (tmp_path / "out").rglob("*"))


@pytest.mark.parametrize("path", ["../elsewhere", "/elsewhere"])
def test_parts_of_an_encoder_lie_within_its_folder(foreign: Path, path: str) -> None:
    kinds = {"Transformer": path, "Pooling": "1_Pooling"}
    steps = [{"path": place, "type": f"sentence_transformers.models.{kind}"} for kind, place in kinds.items()]
    (foreign / "modules.json").write_text(json.dumps(steps))
    with pytest.raises(InputError, match=r"modules\.json: '.*elsewhere' lies outside"):
        open_encoder(foreign)


def test_weights_lie_within_an_encoders_folder(foreign: Path, tmp_path: Path) -> None:
    (foreign / "model.safetensors").rename(tmp_path / "weights.safetensors")
    index = {"metadata": {}, "weight_map": {"a": "../weights.safetensors"}}
    (foreign / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"'\.\./weights\.safetensors' lies outside"):
        open_encoder(foreign, backend="torch")


@pytest.mark.parametrize("name", ["config.json", "modules.json"])
def test_json_that_is_nested_without_end(foreign: Path, name: str) -> None:
    (foreign / name).write_text('{"a":' * 200_000)
    with pytest.raises(InputError, match="this file is not JSON"):
        open_encoder(foreign)


def test_a_manifest_that_is_nested_without_end(tmp_path: Path) -> None:
    encoder = tiny_encoder(tmp_path / "tiny")
    (encoder / "onoma.json").write_text('{"a":' * 200_000)
    with pytest.raises(DamagedArtifactError, match="not readable as JSON"):
        open_encoder(encoder)
