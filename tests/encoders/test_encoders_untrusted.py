"""Encoders' folders that somebody else made: nothing in them runs, and nothing outside them is read or copied."""

from __future__ import annotations

import builtins
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from onoma.encoders import export_encoder, locate_tokenizer, open_encoder
from onoma.encoders.weight_files import count_parameters
from onoma.errors import DamagedArtifactError, InputError
from onoma.linking import build_linker
from onoma.training.alignment_config import Recipe
from onoma.training.tuning import check_base
from tiny import make_terminology, tiny_encoder

PROGRAM = """
from pathlib import Path
from typing import Any
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
    if not has_tokenizer:
        with pytest.raises(InputError, match="brings code of its own, which Onoma never runs"):
            locate_tokenizer(foreign)
    assert not asked
    assert not mark.exists()


def test_no_model_of_a_known_configuration_is_run_either(
    foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    (foreign / "own.py").write_text(PROGRAM.format(mark=mark))
    config = json.loads((foreign / "config.json").read_text())
    about = {"model_type": "blip_text_model", "auto_map": {"AutoModel": "own.OwnModel"}}
    (foreign / "config.json").write_text(json.dumps({**config, **about}))
    monkeypatch.setattr(builtins, "input", lambda _="": "y")
    with pytest.raises(InputError):
        open_encoder(foreign, backend="torch").encode(["a"])
    assert not mark.exists()


@pytest.mark.parametrize(
    ("file", "content", "settings"),
    [
        ("spiece.model", b"no model", {}),
        ("vocab.txt", b"[PAD]\n[UNK]\n\xff\n", {"tokenizer_class": "BertTokenizer"}),
        ("vocab.txt", b"[PAD]\n[UNK]\na\n", {"tokenizer_class": "BertTokenizer", "do_lower_case": 7}),
        ("vocab.txt", b"[PAD]\n[UNK]\na\n", {"tokenizer_class": {}}),
    ],
)
def test_a_tokeniser_that_cannot_be_converted_is_told(
    file: str, content: bytes, settings: dict[str, Any], foreign: Path
) -> None:
    (foreign / "tokenizer.json").unlink()
    (foreign / "vocab.txt").unlink(missing_ok=True)
    (foreign / file).write_bytes(content)
    if settings:
        (foreign / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match=r"the tokeniser cannot be converted to tokenizer\.json"):
        locate_tokenizer(foreign)


def test_a_tokeniser_without_a_token_for_the_unknown_is_refused(foreign: Path) -> None:
    rules = json.loads((foreign / "tokenizer.json").read_text())
    del rules["model"]["vocab"]["[UNK]"]
    rules["added_tokens"] = [token for token in rules["added_tokens"] if token["content"] != "[UNK]"]
    (foreign / "tokenizer.json").write_text(json.dumps(rules))
    with pytest.raises(InputError, match=r"tokenizer\.json: .* cannot read what its vocabulary does not have"):
        locate_tokenizer(foreign)


LINK = "a link out of the encoder's folder"


@pytest.mark.parametrize("name", ["merges.txt", "added_tokens.json"])
def test_links_out_of_a_folder_are_not_copied(foreign: Path, name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("password")
    (foreign / name).symlink_to(secret)
    with pytest.raises(InputError, match=LINK):
        export_encoder(foreign, tmp_path / "out")
    make_terminology(tmp_path / "t", {"D1": ["cold"]})
    with pytest.raises(InputError, match=LINK):
        build_linker(tmp_path / "t", open_encoder(foreign), tmp_path / "linker")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "linker").exists()


def test_a_folder_that_is_no_snapshot_has_no_blobs_beside_it(foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "secret.txt").write_text("password")
    own = shutil.copytree(foreign, tmp_path / "encoders" / "own")
    (own / "merges.txt").symlink_to(tmp_path / "blobs" / "secret.txt")
    with pytest.raises(InputError, match=LINK):
        export_encoder(own, tmp_path / "out")


@pytest.mark.parametrize("name", ["onnx/model.onnx.data", "train.json"])
def test_links_beside_what_a_manifest_lists_are_not_copied(foreign: Path, name: str, tmp_path: Path) -> None:
    export_encoder(foreign, tmp_path / "own")
    (tmp_path / "secret.txt").write_text("password")
    (tmp_path / "own" / name).symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InputError, match=LINK):
        export_encoder(tmp_path / "own", tmp_path / "out")


def test_a_folder_of_a_model_that_is_a_link_lies_elsewhere(foreign: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    (foreign / "merges.txt").write_text("password")
    steps = [("Transformer", "0_T"), ("Pooling", "1_Pooling")]
    listed = [{"path": place, "type": f"sentence_transformers.models.{kind}"} for kind, place in steps]
    (outer / "modules.json").write_text(json.dumps(listed))
    (outer / "1_Pooling").mkdir()
    (outer / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (outer / "0_T").symlink_to(foreign)
    with pytest.raises(InputError, match=LINK):
        export_encoder(outer, tmp_path / "out")


def test_a_list_of_weights_beside_whole_ones_is_not_copied(foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("password")
    (foreign / "model.safetensors.index.json").symlink_to(tmp_path / "secret.txt")
    export_encoder(foreign, tmp_path / "out")
    assert not any("password" in file.read_text(errors="replace") for file in (tmp_path / "out").glob("*.json"))


def test_what_is_read_as_what_it_is_may_be_a_link(foreign: Path, tmp_path: Path) -> None:
    """As data-version tools have large files; links within a folder lead nowhere else."""
    for name in ("tokenizer.json", "model.safetensors"):
        (foreign / name).rename(tmp_path / name)
        (foreign / name).symlink_to(tmp_path / name)
    (foreign / "vocabulary").write_text("a")
    (foreign / "merges.txt").symlink_to("vocabulary")
    made = export_encoder(foreign, tmp_path / "out")
    assert made.fingerprint == open_encoder(foreign).fingerprint


def test_training_refuses_links_before_it_begins(foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("password")
    (foreign / "merges.txt").symlink_to(tmp_path / "secret.txt")
    config = Recipe.load("quickstart", {"base": str(foreign), "steps": 1, "max_tokens": 16}).config
    with pytest.raises(InputError, match=LINK):
        check_base(config)


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


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json"])
def test_json_of_a_tokeniser_that_is_nested_without_end(foreign: Path, name: str, tmp_path: Path) -> None:
    (foreign / name).write_text('{"a":' * 200_000)
    with pytest.raises(InputError, match="this file is not JSON"):
        export_encoder(foreign, tmp_path / "out")


def test_weights_whose_header_is_nested_without_end(foreign: Path) -> None:
    header = b'{"a":' * 200_000
    (foreign / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(InputError, match="no weights in safetensors"):
        count_parameters(foreign)


def test_a_manifest_that_is_nested_without_end(tmp_path: Path) -> None:
    encoder = tiny_encoder(tmp_path / "tiny")
    (encoder / "onoma.json").write_text('{"a":' * 200_000)
    with pytest.raises(DamagedArtifactError, match="not readable as JSON"):
        open_encoder(encoder)
