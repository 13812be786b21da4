"""The mean of names' vectors, taken off inside an encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from onoma.artifacts import read_manifest, verify_artifact
from onoma.encoders import locate_encoder, open_encoder, save_encoder
from onoma.encoders.centring import centre_encoder
from onoma.encoders.loading import load_packed
from onoma.encoders.pooling import Pooling
from onoma.errors import ArtifactExistsError, ConfigError, InputError
from onoma.training.config_parts import Adapter, Lora
from onoma.training.tuning import tune
from tiny import small_tokenizer, tiny_encoder

WORDS = ("heart", "attack", "of", "the", "disease", "syndrome", "fever", "pain", "a", "b", "c", "d")
NAMES = [f"{one} {other}" for one in WORDS for other in WORDS]


def raw(folder: Path, names: list[str]) -> np.ndarray:
    return open_encoder(folder, threads=1).encode(names, unit_length=False).astype(np.float64)


@pytest.mark.parametrize("pooling", ["cls", "mean", "mean-nospec", "mean-all"])
def test_all_vectors_are_moved_by_the_mean(tmp_path: Path, pooling: Pooling) -> None:
    tiny_encoder(tmp_path / "base", weight_std=0.3)
    config = {"training": {"normalisation": "sapbert", "seed": 3}, "terminology": ["t"]}
    encoder = load_packed(tmp_path / "base", pooling=pooling, max_tokens=12)
    with torch.no_grad():
        for weight in encoder.model.parameters():
            weight.mul_(1.1)
    save_encoder(encoder, tmp_path / "trained", config=config, sparse_weight=0.1)
    names = [*NAMES, *NAMES[5:], "", "  "]
    made = centre_encoder(tmp_path / "trained", names, tmp_path / "out")
    verify_artifact(tmp_path / "out")
    asked = [*NAMES[:20], "heart attack of the heart", "x", ""]
    before, after = raw(tmp_path / "trained", asked), raw(tmp_path / "out", asked)
    mean = raw(tmp_path / "trained", NAMES).mean(axis=0)
    np.testing.assert_allclose(after, before - mean, atol=2e-5)
    np.testing.assert_allclose(raw(tmp_path / "out", NAMES).mean(axis=0), 0, atol=1e-5)
    lengths = np.linalg.norm(raw(tmp_path / "trained", NAMES), axis=1)
    assert made.share == pytest.approx(np.linalg.norm(mean) / lengths.mean(), rel=1e-4)
    assert made.n_names == len(NAMES)
    folder = locate_encoder(tmp_path / "out")
    assert (folder.pooling, folder.max_tokens, folder.normalisation) == (pooling, 12, "sapbert")
    assert (folder.name, folder.origin.base, folder.sparse_weight) == ("out", "base", None)
    manifest = read_manifest(tmp_path / "out")
    assert manifest.config == config | {"centred": {"names": len(NAMES), "share": round(made.share, 4)}}
    assert [parent.fingerprint for parent in manifest.parents] == [locate_encoder(tmp_path / "trained").fingerprint]
    assert f"the mean of {len(NAMES)} names' vectors is taken off" in (tmp_path / "out" / "README.md").read_text()


def test_a_second_time_nothing_is_left_to_take_off(tmp_path: Path) -> None:
    tiny_encoder(tmp_path / "base", weight_std=0.3)
    first = centre_encoder(tmp_path / "base", NAMES, tmp_path / "one")
    again = centre_encoder(tmp_path / "one", NAMES, tmp_path / "two")
    assert first.share > 0.01
    assert again.share < 1e-5
    np.testing.assert_allclose(raw(tmp_path / "two", NAMES), raw(tmp_path / "one", NAMES), atol=1e-5)


def distilbert(vocabulary: int) -> PreTrainedModel:
    from transformers import DistilBertConfig, DistilBertModel

    return DistilBertModel(
        DistilBertConfig(
            vocab_size=vocabulary, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=32
        )
    )


SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}


def deberta(vocabulary: int) -> PreTrainedModel:
    from transformers import DebertaV2Config, DebertaV2Model

    config = DebertaV2Config(
        vocab_size=vocabulary,
        **SIZES,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
    )
    config.norm_rel_ebd = "layer_norm"  # the last layer norm by its place, and not the last that data pass
    return DebertaV2Model(config)


def modernbert(vocabulary: int) -> PreTrainedModel:
    from transformers import ModernBertConfig, ModernBertModel

    return ModernBertModel(  # its last norm has no bias
        ModernBertConfig(
            vocab_size=vocabulary,
            **SIZES,
            pad_token_id=0,
            cls_token_id=2,
            sep_token_id=3,
        )
    )


def saved(make: Callable[[int], PreTrainedModel], folder: Path) -> Path:
    tokenizer = small_tokenizer()
    torch.manual_seed(0)
    make(tokenizer.get_vocab_size()).save_pretrained(folder)
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("family", [distilbert, deberta])
def test_other_families(tmp_path: Path, family: Callable[[int], PreTrainedModel]) -> None:
    base = saved(family, tmp_path / "base")
    centre_encoder(base, NAMES, tmp_path / "out")
    before = AutoModel.from_pretrained(base).state_dict()
    after = AutoModel.from_pretrained(tmp_path / "out").state_dict()
    changed = [name for name, weight in after.items() if not torch.equal(weight, before[name])]
    assert len(changed) == 1
    assert changed[0].endswith(("output_layer_norm.bias", "1.output.LayerNorm.bias"))
    np.testing.assert_allclose(raw(tmp_path / "out", NAMES).mean(axis=0), 0, atol=1e-5)


def test_an_encoder_without_such_a_bias_is_refused(tmp_path: Path) -> None:
    base = saved(modernbert, tmp_path / "base")
    with pytest.raises(ConfigError, match="does not end in a layer norm with a bias"):
        centre_encoder(base, NAMES, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_adapters_are_refused_but_for_merged_ones(tmp_path: Path) -> None:
    tiny_encoder(tmp_path / "base", weight_std=0.3)
    for name, tuning in (("bottleneck", Adapter(reduction=4)), ("lora", Lora(rank=2))):
        encoder = load_packed(tmp_path / "base")
        tune(encoder, tuning)
        save_encoder(encoder, tmp_path / name)
    with pytest.raises(ConfigError, match="has adapters inside"):
        centre_encoder(tmp_path / "bottleneck", NAMES, tmp_path / "out")
    centre_encoder(tmp_path / "lora", NAMES, tmp_path / "out")
    assert not (tmp_path / "out" / "adapter").exists()
    np.testing.assert_allclose(raw(tmp_path / "out", NAMES).mean(axis=0), 0, atol=1e-5)


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base")
    with pytest.raises(ConfigError, match="100 different names or more; found 99"):
        centre_encoder(base, [*NAMES[:99], NAMES[0], ""], tmp_path / "out")
    with pytest.raises(InputError, match="written over its source"):
        centre_encoder(base, NAMES, base, overwrite=True)
    with pytest.raises(InputError, match="several are meant"):
        centre_encoder(base, "heart attack", tmp_path / "out")
    centre_encoder(base, NAMES, tmp_path / "out")
    with pytest.raises(ArtifactExistsError):  # said before anything is encoded
        centre_encoder(base, NAMES, tmp_path / "out", progress=lambda *_: pytest.fail("encoded"))
    centre_encoder(base, NAMES, tmp_path / "out", overwrite=True)


def test_a_diverged_encoder_is_called_so(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base")
    weights = load_file(base / "model.safetensors")
    weights["encoder.layer.1.output.LayerNorm.bias"][0] = float("nan")
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="its training has diverged"):
        centre_encoder(base, NAMES, tmp_path / "out")
