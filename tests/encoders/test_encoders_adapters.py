"""Bottleneck adapters and LoRA inside an encoder: sizes, formulas, packed against Hugging Face's own forward."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
import transformers
from tiny_encoders import FAMILIES, MAX_TOKENS, tiny_model
from torch import nn
from torch.nn import functional

from onoma.encoders.adapters import AdaptedNorm, Coupling, adapter_tensors, insert_adapters, insert_saved
from onoma.encoders.lora import insert_lora, lora_tensors, merged
from onoma.encoders.onnx_graph import write_graph
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.packing import pack_lists
from onoma.errors import ConfigError, MismatchError, UnavailableError

ROWS = [[2, *(10 + (7 * place + length) % 200 for place in range(length - 1))] for length in (1, 2, 2, 5, 9, 9, 24)]


def shake(tensors: dict[str, torch.Tensor]) -> None:
    """Move freshly inserted weights away from their start, as training would."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for tensor in tensors.values():
            tensor.add_(0.3 * torch.randn(tensor.shape, generator=generator))


def adapted(family: str, *, reduction: int = 4, invertible: bool = True) -> Any:
    model = tiny_model(family)
    insert_adapters(model, reduction=reduction, invertible=invertible)
    shake(adapter_tensors(model))
    return model


def with_lora(family: str) -> Any:
    model = tiny_model(family)
    insert_lora(model, rank=4, alpha=8.0, dropout=0.0)
    shake(lora_tensors(model))
    return model


@pytest.mark.parametrize(
    ("reduction", "invertible", "parameters", "share"),
    [
        (1, True, 14_470_272, "13.22"),  # SapBERT, table 7: 14.47 M, 13.22 %
        (16, True, 1_190_592, "1.09"),  # SapBERT, table 7: 1.09 %; the 0.60 M beside it is half of this number
        (1, False, 14_174_208, "12.95"),
        (16, False, 894_528, "0.82"),
    ],
)
def test_sizes_are_those_of_the_paper(reduction: int, invertible: bool, parameters: int, share: str) -> None:
    with torch.device("meta"):
        model = transformers.BertModel(transformers.BertConfig()).requires_grad_(False)
    whole = sum(parameter.numel() for parameter in model.parameters())
    assert f"{whole / 1e6:.2f}" == "109.48"
    with torch.device("meta"):
        insert_adapters(model, reduction=reduction, invertible=invertible)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    assert trained == parameters == sum(tensor.numel() for tensor in adapter_tensors(model).values())
    assert f"{100 * trained / whole:.2f}" == share
    if (reduction, invertible) == (1, True):
        assert f"{trained / 1e6:.2f}" == "14.47"
    if (reduction, invertible) == (16, True):
        assert f"{trained / 2 / 1e6:.2f}" == "0.60"


def test_the_norm_with_an_adapter_is_pfeiffers() -> None:
    torch.manual_seed(0)
    norm = nn.LayerNorm(6)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    adapted_norm = AdaptedNorm(norm, 3)
    shake(dict(adapted_norm.adapter.named_parameters()))
    down, up = adapted_norm.adapter.down, adapted_norm.adapter.up
    went_in, came_out = torch.randn(5, 6), torch.randn(5, 6)
    # Its adapter looks at the normed sum, adds to what came out of the block, and the sum is made and normed again.
    seen = functional.layer_norm(came_out + went_in, (6,), norm.weight, norm.bias)
    moved = torch.relu(seen @ down.weight.T + down.bias) @ up.weight.T + up.bias + came_out
    expected = functional.layer_norm(moved + went_in, (6,), norm.weight, norm.bias)
    torch.testing.assert_close(adapted_norm(came_out + went_in), expected)
    assert adapted_norm.weight is norm.weight


def test_the_coupling_can_be_undone() -> None:
    torch.manual_seed(0)
    coupling = Coupling(8)
    shake(dict(coupling.named_parameters()))
    states = torch.randn(3, 8)
    first, second = coupling(states).split(4, -1)
    second = second - coupling.second(first)
    first = first - coupling.first(second)
    torch.testing.assert_close(torch.cat([first, second], -1), states)
    assert not torch.allclose(coupling(states), states, atol=0.1)


@pytest.mark.parametrize("family", [*FAMILIES, "albert"])
def test_fresh_adapters_change_nothing(family: str) -> None:
    ids = torch.tensor([ROWS[-1]])
    before = tiny_model(family)(input_ids=ids).last_hidden_state
    for invertible in (True, False):
        model = tiny_model(family)
        insert_adapters(model, reduction=4, invertible=invertible)
        assert torch.equal(model(input_ids=ids).last_hidden_state, before)
    model = tiny_model(family)
    insert_lora(model, rank=4, alpha=8.0, dropout=0.0)
    assert torch.equal(model(input_ids=ids).last_hidden_state, before)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("make", [adapted, with_lora])
@pytest.mark.parametrize("family", [*FAMILIES, "albert"])
def test_packed_equals_hugging_faces_forward(family: str, make: Any, pooling: Any) -> None:
    encoder = PackedEncoder(make(family), pooling=pooling, max_tokens=MAX_TOKENS).eval()
    plain = PackedEncoder(tiny_model(family), pooling=pooling, max_tokens=MAX_TOKENS).eval()
    assert encoder.runs_packed == (family != "albert")
    found = encoder(pack_lists(ROWS))
    with torch.no_grad():
        states = [encoder.model(input_ids=torch.tensor([row])).last_hidden_state[0] for row in ROWS]
        expected = torch.stack([one[0] if pooling == "cls" else one.mean(0) for one in states])
        assert (plain(pack_lists(ROWS)) - expected).abs().max() > 0.1
    torch.testing.assert_close(found.detach(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", [*FAMILIES, "albert"])
def test_the_names_of_the_encoders_own_weights_stay(family: str) -> None:
    model = adapted(family)
    own = {name for name in model.state_dict() if name not in adapter_tensors(model)}
    assert own == tiny_model(family).state_dict().keys()
    norms = sum(isinstance(module, AdaptedNorm) for module in model.modules())
    assert norms == (1 if family == "albert" else 2)  # ALBERT's layers share their weights, and so their adapter


def test_lora_is_on_queries_and_values_only() -> None:
    model = with_lora("bert")
    changed = {name.rsplit(".lora_", 1)[0].rpartition(".")[2] for name in lora_tensors(model)}
    assert changed == {"query", "value"}
    assert sum(tensor.numel() for tensor in lora_tensors(model).values()) == 2 * 2 * 2 * 4 * 32


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert"])
def test_merged_lora_is_an_ordinary_model_with_the_same_vectors(family: str) -> None:
    model = with_lora(family)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    whole = merged(model)
    assert whole.state_dict().keys() == tiny_model(family).state_dict().keys()
    ids = torch.tensor([ROWS[-1]])
    torch.testing.assert_close(
        whole(input_ids=ids).last_hidden_state, model(input_ids=ids).last_hidden_state, atol=1e-5, rtol=0
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert merged(whole) is whole


def test_a_graph_of_unmerged_lora_is_refused() -> None:
    parts = PackedEncoder(with_lora("bert"), pooling="cls", max_tokens=MAX_TOKENS).architecture
    assert parts is not None
    with pytest.raises(ConfigError, match="must be merged"):
        write_graph(parts, pooling="cls")


def pre_norm() -> Any:
    config = transformers.RobertaPreLayerNormConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    return transformers.RobertaPreLayerNormModel(config)


def test_layers_that_do_not_end_in_a_norm_are_refused() -> None:
    with pytest.raises(ConfigError, match="roberta-prelayernorm do not"):
        insert_adapters(pre_norm(), reduction=4, invertible=False)


def test_lora_needs_projections_of_their_own() -> None:
    with pytest.raises(ConfigError, match="query and a value projection"):
        insert_lora(transformers.FNetModel(fnet_config()), rank=2, alpha=2.0, dropout=0.0)


def fnet_config() -> Any:
    return transformers.FNetConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=1, intermediate_size=64, pad_token_id=0
    )


def test_a_reduction_that_does_not_divide_the_width_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not divide the encoder's width of 32; 4 does"):
        insert_adapters(tiny_model("bert"), reduction=5, invertible=True)


def test_second_adapters_are_refused() -> None:
    with pytest.raises(ConfigError, match="has adapters already"):
        insert_adapters(adapted("bert"), reduction=4, invertible=True)


def test_saved_adapters_fit_their_own_encoder_only() -> None:
    model = adapted("bert")
    tensors = {name: tensor.detach().clone() for name, tensor in adapter_tensors(model).items()}
    again = tiny_model("bert")
    insert_saved(again, tensors)
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in model.state_dict().items())
    with pytest.raises(MismatchError, match="does not fit"):
        insert_saved(tiny_model("distilbert"), tensors)
    del tensors["encoder.layer.1.output.LayerNorm.adapter.up.bias"]
    with pytest.raises(MismatchError, match="other names or sizes"):
        insert_saved(tiny_model("bert"), tensors)


def test_without_peft_lora_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UnavailableError, match=r"onoma\[lora\]"):
        insert_lora(tiny_model("bert"), rank=2, alpha=2.0, dropout=0.0)
