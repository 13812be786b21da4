"""Adapters on disk: alone, on their base, inside a whole encoder folder, and in other tools."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from tiny_encoders import write_tiny

from manifests import refit
from onoma.artifacts import open_artifact, verify_artifact
from onoma.encoders import add_to_card, export_encoder, locate_encoder, open_encoder, save_encoder
from onoma.encoders.adapter_folders import (
    ADAPTER_ABOUT_NAME,
    SUBFOLDER,
    join_adapter,
    load_adapter,
    read_adapter,
    save_adapter,
)
from onoma.encoders.adapters import adapter_tensors
from onoma.encoders.loading import load_packed
from onoma.encoders.lora import lora_tensors
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.packing import pack_lists
from onoma.encoders.torch_encoder import TorchEncoder
from onoma.errors import (
    ConfigError,
    DamagedArtifactError,
    InputError,
    MismatchError,
    NotAnArtifactError,
    UnavailableError,
)
from onoma.training.config_parts import Adapter, Lora, Tuning
from onoma.training.tuning import tune

NAMES = ["heart attack", "", "Diabetes mellitus, type 2", "fever", "心肌梗死", "x" * 400]
BATCH = pack_lists([[2, 10, 11, 3], [2, 3], [2, 40, 41, 42, 3]])
TUNINGS: dict[str, Tuning] = {"bottleneck": Adapter(reduction=4), "lora": Lora(rank=4, alpha=8.0)}
KINDS = pytest.mark.parametrize("kind", ["bottleneck", "lora"])


def trained(base: Path, kind: str, **options: Any) -> PackedEncoder:
    encoder = load_packed(base, **options)
    torch.manual_seed(3)
    tune(encoder, TUNINGS[kind])
    with torch.no_grad():
        for parameter in encoder.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return encoder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "base", "bert")


@KINDS
@pytest.mark.parametrize("pooling", ["cls", "mean", "mean-nospec", "mean-all"])
def test_a_whole_encoder_folder_opens_everywhere_with_equal_vectors(
    base: Path, tmp_path: Path, kind: str, pooling: Any
) -> None:
    encoder = trained(base, kind, pooling=pooling)
    save_encoder(encoder, tmp_path / "e")
    expected = TorchEncoder(encoder).encode(NAMES)
    by_torch = open_encoder(tmp_path / "e", backend="torch").encode(NAMES)
    by_onnx = open_encoder(tmp_path / "e", backend="onnx").encode(NAMES)
    np.testing.assert_allclose(by_torch, expected, atol=1e-5)
    np.testing.assert_allclose(by_onnx, expected, atol=1e-5)
    assert np.abs(open_encoder(base, backend="torch", pooling=pooling).encode(NAMES) - expected).max() > 0.05
    export_encoder(tmp_path / "e", tmp_path / "small", onnx_only=True)
    np.testing.assert_array_equal(open_encoder(tmp_path / "small").encode(NAMES), by_onnx)


@pytest.mark.parametrize("family", ["roberta", "mpnet", "distilbert"])
def test_other_families_too(tmp_path: Path, family: str) -> None:
    encoder = trained(write_tiny(tmp_path / "base", family), "bottleneck")
    save_encoder(encoder, tmp_path / "e")
    again = load_packed(tmp_path / "e")
    assert again.max_tokens == encoder.max_tokens
    for mine, theirs in zip(again.parameters(), encoder.parameters(), strict=True):
        mine.requires_grad = theirs.requires_grad  # torch's attention rounds otherwise where MPNet's bias is frozen
    assert torch.equal(again(BATCH), encoder(BATCH))
    np.testing.assert_allclose(
        open_encoder(tmp_path / "e", backend="onnx").encode(NAMES), TorchEncoder(encoder).encode(NAMES), atol=1e-5
    )


@pytest.mark.slow  # torch's exporter takes ten seconds
@KINDS
def test_a_family_that_is_traced(tmp_path: Path, kind: str) -> None:
    encoder = trained(write_tiny(tmp_path / "base", "albert"), kind)
    save_encoder(encoder, tmp_path / "e")
    np.testing.assert_allclose(
        open_encoder(tmp_path / "e", backend="onnx").encode(NAMES), TorchEncoder(encoder).encode(NAMES), atol=1e-5
    )


def test_tools_that_know_no_adapters_refuse_the_folder(base: Path, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    save_encoder(trained(base, "bottleneck"), tmp_path / "e")
    with pytest.raises(ValueError, match="onoma-adapted-bert"):
        sentence_transformers.SentenceTransformer(str(tmp_path / "e"), device="cpu")
    automatic: Any = transformers.AutoModel
    with pytest.raises(ValueError, match="onoma-adapted-bert"):
        automatic.from_pretrained(tmp_path / "e")


def test_sentence_transformers_loads_merged_lora_with_equal_vectors(base: Path, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    encoder = trained(base, "lora")
    save_encoder(encoder, tmp_path / "e")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "e"), device="cpu")
    expected = TorchEncoder(encoder).encode(NAMES[:4])
    np.testing.assert_allclose(theirs.encode(NAMES[:4]), expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # PEFT asks transformers for it
def test_peft_loads_the_lora_with_equal_vectors(base: Path, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    encoder = trained(base, "lora")
    about = save_adapter(encoder, tmp_path / "a")
    automatic: Any = transformers.AutoModel
    theirs = peft.PeftModel.from_pretrained(automatic.from_pretrained(base), str(tmp_path / "a")).eval()
    ids = torch.tensor([[2, 40, 41, 42, 3]])
    torch.testing.assert_close(
        theirs(input_ids=ids).last_hidden_state[0, 0], encoder(pack_lists(ids.tolist()))[0], atol=1e-5, rtol=0
    )
    assert about.settings == {"rank": 4, "alpha": 8.0}


@KINDS
def test_an_adapter_alone_goes_back_on_its_base(base: Path, tmp_path: Path, kind: str) -> None:
    encoder = trained(base, kind, pooling="mean", max_tokens=9)
    about = save_adapter(encoder, tmp_path / "a", name="mine", sparse_weight=0.25, config={"learning_rate": 1}, seed=5)
    assert read_adapter(tmp_path / "a") == about
    assert (about.kind, about.base, about.pooling, about.max_tokens, about.width) == (kind, "base", "mean", 9, 32)
    weights = load_file(tmp_path / "a" / "adapter_model.safetensors")
    own = adapter_tensors(encoder.model) if kind == "bottleneck" else lora_tensors(encoder.model)
    assert all(torch.equal(weights[name], tensor) for name, tensor in own.items())
    assert weights.keys() == own.keys()
    assert about.parameters == sum(tensor.numel() for tensor in own.values())
    card = (tmp_path / "a" / "README.md").read_text()
    assert "# mine\n" in card
    assert about.base_weights_sha256 in card
    assert "onoma encoder join ADAPTER --base BASE -o ENCODER" in card
    again = load_adapter(tmp_path / "a", base)
    assert (again.pooling, again.max_tokens) == ("mean", 9)
    torch.testing.assert_close(again(BATCH), encoder(BATCH), atol=1e-5, rtol=0)
    assert again.fingerprint != load_packed(base, pooling="mean", max_tokens=9).fingerprint
    joined = join_adapter(tmp_path / "a", tmp_path / "whole", base=base)
    manifest = open_artifact(tmp_path / "whole", "encoder")
    assert (joined.name, manifest.config, manifest.seed) == ("mine", {"learning_rate": 1}, 5)
    assert joined.sparse_weight == 0.25
    assert [parent.kind for parent in manifest.parents] == ["adapter"]
    torch.testing.assert_close(load_packed(tmp_path / "whole")(BATCH), encoder(BATCH), atol=1e-5, rtol=0)


@KINDS
def test_names_are_cut_alike_by_an_encoder_and_the_adapter_in_it(base: Path, tmp_path: Path, kind: str) -> None:
    encoder = trained(base, kind, max_tokens=12)
    save_encoder(encoder, tmp_path / "e", max_tokens=7)
    joined = join_adapter(tmp_path / "e", tmp_path / "joined", base=base)
    assert read_adapter(tmp_path / "e" / SUBFOLDER).max_tokens == joined.max_tokens == 7


@KINDS
def test_a_trained_encoder_folder_has_its_adapter_inside(base: Path, tmp_path: Path, kind: str) -> None:
    encoder = trained(base, kind)
    save_encoder(encoder, tmp_path / "e", config={"x": 1})
    assert open_artifact(tmp_path / "e" / "adapter", "adapter").config == {"x": 1}
    torch.testing.assert_close(load_adapter(tmp_path / "e", base)(BATCH), encoder(BATCH), atol=1e-5, rtol=0)
    # Saved again, the encoder is whole still, but what its base was is not known any more.
    save_encoder(load_packed(tmp_path / "e"), tmp_path / "again")
    assert not (tmp_path / "again" / "adapter").exists()
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (
        tmp_path / "e" / "model.safetensors"
    ).read_bytes()


def test_the_frozen_weights_in_the_folder_are_the_bases(base: Path, tmp_path: Path) -> None:
    save_encoder(trained(base, "bottleneck"), tmp_path / "e")
    before, after = load_file(base / "model.safetensors"), load_file(tmp_path / "e" / "model.safetensors")
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert len(after) > len(before)


@KINDS
def test_an_adapter_is_refused_on_another_base(base: Path, tmp_path: Path, kind: str) -> None:
    save_adapter(trained(base, kind), tmp_path / "a")
    other = write_tiny(tmp_path / "other", "bert", n_layers=3)
    with pytest.raises(MismatchError, match=r"trained on base, and .*other has other weights"):
        load_adapter(tmp_path / "a", other)
    tokenizer = json.loads((base / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (base / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(MismatchError, match="another tokeniser"):
        load_adapter(tmp_path / "a", base)


def test_an_adapter_of_an_unknown_base_asks_for_it(base: Path, tmp_path: Path) -> None:
    save_adapter(trained(base, "bottleneck"), tmp_path / "a")
    about = json.loads((tmp_path / "a" / "adapter.json").read_text())
    assert about["base"] == "base"
    with pytest.raises(InputError, match="no such encoder"):
        load_adapter(tmp_path / "a", tmp_path / "nowhere")


def test_what_is_no_adapter_is_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAnArtifactError):
        load_adapter(base, base)
    save_adapter(trained(base, "bottleneck"), tmp_path / "a")
    weights = tmp_path / "a" / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    with pytest.raises(DamagedArtifactError):
        load_adapter(tmp_path / "a", base)


@pytest.mark.parametrize("config", ["[]", '"x"', "{", '{"peft_type": "LORA", "layers_pattern": "x"}'])
def test_a_configuration_that_peft_cannot_use_is_refused(base: Path, tmp_path: Path, config: str) -> None:
    save_adapter(trained(base, "lora"), tmp_path / "a")
    (tmp_path / "a" / "adapter_config.json").write_text(config)
    refit(tmp_path / "a")
    with pytest.raises(DamagedArtifactError, match=r"adapter_config\.json does not say how LoRA was trained"):
        load_adapter(tmp_path / "a", base)


@pytest.mark.parametrize("change", [{"lora_alpha": 16}, {"use_rslora": True}])
def test_updates_that_are_scaled_otherwise_than_they_were_trained_are_refused(
    base: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    save_adapter(trained(base, "lora"), tmp_path / "a")
    file = tmp_path / "a" / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    refit(tmp_path / "a")
    with pytest.raises(DamagedArtifactError, match=r"scales the updates by 4\.0, and they were trained with 2\.0"):
        load_adapter(tmp_path / "a", base)


@KINDS
def test_the_base_lower_cases_as_it_did_in_training(base: Path, tmp_path: Path, kind: str) -> None:
    """The setting is none of the tokeniser's, and a copy of the base may lack it."""
    (base / "sentence_bert_config.json").write_text('{"do_lower_case": true, "max_seq_length": 12}')
    encoder = trained(base, kind)
    save_adapter(encoder, tmp_path / "a")
    (base / "sentence_bert_config.json").unlink()
    again = load_adapter(tmp_path / "a", base)
    assert again.source is not None
    assert (again.source.lower_case, again.max_tokens) == (True, 12)
    assert join_adapter(tmp_path / "a", tmp_path / "whole", base=base).lower_case


@pytest.mark.parametrize("lower_cases", [False, True])
def test_an_adapter_that_does_not_say_it_lower_cases_as_its_base(base: Path, tmp_path: Path, lower_cases: bool) -> None:
    (base / "sentence_bert_config.json").write_text(json.dumps({"do_lower_case": lower_cases}))
    save_adapter(trained(base, "lora"), tmp_path / "a")
    file = tmp_path / "a" / ADAPTER_ABOUT_NAME
    said = json.loads(file.read_text())
    assert said.pop("lower_case") is lower_cases
    file.write_text(json.dumps(said))
    refit(tmp_path / "a")
    again = load_adapter(tmp_path / "a", base)
    assert again.source is not None
    assert again.source.lower_case is lower_cases


def test_an_adapter_json_that_describes_none_is_refused_in_a_line(base: Path, tmp_path: Path) -> None:
    save_adapter(trained(base, "lora"), tmp_path / "a")
    (tmp_path / "a" / ADAPTER_ABOUT_NAME).write_text('{"kind": "other"}')
    refit(tmp_path / "a")
    with pytest.raises(DamagedArtifactError, match=r"^[^\n]*does not describe an adapter \(name: Field required\)"):
        load_adapter(tmp_path / "a", base)


@pytest.mark.parametrize(("number", "error"), [(errno.EMFILE, OSError), (errno.EINVAL, DamagedArtifactError)])
def test_a_system_that_lets_no_file_be_read_is_not_told_as_damage(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == ADAPTER_ABOUT_NAME:
            raise OSError(number, os.strerror(number))
        return read(path)

    save_adapter(trained(base, "bottleneck"), tmp_path / "a")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(error, match=os.strerror(number)):
        load_adapter(tmp_path / "a", base)


def test_an_encoder_without_adapter_has_none_to_save(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tuning=adapter or tuning=lora"):
        save_adapter(load_packed(base), tmp_path / "a")


def test_a_joined_encoder_is_not_taken_for_its_base(base: Path, tmp_path: Path) -> None:
    export_encoder(base, tmp_path / "own")
    save_adapter(trained(base, "bottleneck"), tmp_path / "a")
    loaded = load_adapter(tmp_path / "a", tmp_path / "own")
    assert loaded.source is not None
    with pytest.raises(InputError, match="put together in memory"):
        export_encoder(loaded.source, tmp_path / "e")


def test_a_joined_encoder_is_not_written_over_what_it_is_made_of(base: Path, tmp_path: Path) -> None:
    export_encoder(base, tmp_path / "own")
    save_encoder(trained(tmp_path / "own", "lora"), tmp_path / "e")
    for place in (tmp_path / "own", tmp_path / "e", tmp_path / "e" / "adapter"):
        with pytest.raises(InputError, match="over the adapter or its base"):
            join_adapter(tmp_path / "e", place, base=tmp_path / "own", overwrite=True)
        verify_artifact(place)
    with pytest.raises(InputError, match="over the adapter or its base"):  # which lies in what would be replaced
        join_adapter(tmp_path / "e" / "adapter", tmp_path / "e", base=tmp_path / "own", overwrite=True)
    verify_artifact(tmp_path / "e" / "adapter")
    join_adapter(tmp_path / "e", tmp_path / "joined", base=tmp_path / "own")


def test_an_adapter_alone_is_no_encoder(base: Path, tmp_path: Path) -> None:
    save_adapter(trained(base, "lora"), tmp_path / "a")
    with pytest.raises(NotAnArtifactError, match=f"onoma encoder join {re.escape(str(tmp_path / 'a'))} -o ENCODER"):
        locate_encoder(tmp_path / "a")


@pytest.mark.parametrize("kind", ["bottleneck", "lora"])
def test_the_card_of_a_joined_encoder_is_that_of_its_folder(base: Path, tmp_path: Path, kind: str) -> None:
    save_adapter(trained(base, kind), tmp_path / "a")
    join_adapter(tmp_path / "a", tmp_path / "joined", base=base)
    written = (tmp_path / "joined" / "README.md").read_text(encoding="utf-8")
    assert "ONNX model only" not in written
    assert ("SentenceTransformer(" in written) == (kind == "lora")
    add_to_card(tmp_path / "joined")
    assert (tmp_path / "joined" / "README.md").read_text(encoding="utf-8") == written


def test_a_base_that_is_not_found_is_asked_for(base: Path, tmp_path: Path) -> None:
    save_adapter(trained(base, "bottleneck"), tmp_path / "a")
    with pytest.raises(UnavailableError, match=r"trained on .*--base"):
        load_adapter(tmp_path / "a")


def test_lora_on_an_encoder_with_adapters(base: Path, tmp_path: Path) -> None:
    save_encoder(trained(base, "bottleneck"), tmp_path / "e")
    encoder = trained(tmp_path / "e", "lora")
    save_encoder(encoder, tmp_path / "both")
    torch.testing.assert_close(load_packed(tmp_path / "both")(BATCH), encoder(BATCH), atol=1e-5, rtol=0)
    assert read_adapter(tmp_path / "both" / "adapter").kind == "lora"
    torch.testing.assert_close(
        load_adapter(tmp_path / "both", tmp_path / "e")(BATCH), encoder(BATCH), atol=1e-5, rtol=0
    )
