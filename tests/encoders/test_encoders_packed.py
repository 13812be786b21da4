"""The packed encoder against Hugging Face's own forward, name by name and padded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_encoders import FAMILIES, MAX_TOKENS, tiny_model, write_tiny

from onoma.encoders.loading import load_packed
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.packing import pack_lists
from onoma.errors import ConfigError

ROWS = [
    [2, *np.random.default_rng(length * 31 + copy).integers(10, 300, length - 1).tolist()]
    for length in range(1, MAX_TOKENS + 1)
    for copy in range(2)
]
SHUFFLED = [ROWS[row] for row in np.random.default_rng(0).permutation(len(ROWS))]


def hidden(encoder: PackedEncoder, row: list[int]) -> torch.Tensor:
    """Every token's vector of one name by Hugging Face, alone in its batch."""
    output: torch.Tensor = encoder.model(input_ids=torch.tensor([row])).last_hidden_state[0]
    return output


def pooled(encoder: PackedEncoder, row: list[int]) -> torch.Tensor:
    states = hidden(encoder, row)
    return states[0] if encoder.pooling == "cls" else states.mean(0)


@pytest.mark.parametrize("family", [*FAMILIES, "camembert", "albert"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_every_length_equals_hugging_face(family: str, pooling: str) -> None:
    encoder = PackedEncoder(tiny_model(family), pooling=pooling, max_tokens=MAX_TOKENS).eval()  # type: ignore[arg-type]
    assert encoder.runs_packed == (family != "albert")
    with torch.no_grad():
        found = encoder(pack_lists(SHUFFLED))
        expected = torch.stack([pooled(encoder, row) for row in SHUFFLED])
        inferred = torch.inference_mode()(encoder)(pack_lists(SHUFFLED))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(inferred, expected, atol=1e-5, rtol=0)
    assert found.std(0).min() > 0.05


@pytest.mark.parametrize("family", [*FAMILIES, "albert"])
def test_every_position_of_every_length_equals_hugging_face(family: str) -> None:
    encoder = PackedEncoder(tiny_model(family), pooling="mean", max_tokens=MAX_TOKENS).eval()
    with torch.no_grad():
        found = encoder.token_vectors(pack_lists(ROWS))
        expected = torch.cat([hidden(encoder, row) for row in ROWS])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_training_attention_equals_inference_attention(family: str) -> None:
    encoder = PackedEncoder(tiny_model(family), pooling="mean", max_tokens=MAX_TOKENS).eval()
    with_gradient = encoder(pack_lists(SHUFFLED))
    assert with_gradient.requires_grad
    with torch.inference_mode():
        without = encoder(pack_lists(SHUFFLED))
    torch.testing.assert_close(with_gradient.detach(), without, atol=1e-5, rtol=0)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_equal_those_of_the_padded_model(family: str, pooling: str) -> None:
    encoder = PackedEncoder(tiny_model(family), pooling=pooling, max_tokens=MAX_TOKENS).eval()  # type: ignore[arg-type]
    weight = torch.randn(len(SHUFFLED), 32, generator=torch.Generator().manual_seed(1))
    (encoder(pack_lists(SHUFFLED)) * weight).sum().backward()
    ours = {name: parameter.grad for name, parameter in encoder.model.named_parameters()}
    encoder.zero_grad(set_to_none=True)

    width = max(map(len, SHUFFLED))
    padding = encoder.padding_id
    ids = torch.tensor([row + [padding] * (width - len(row)) for row in SHUFFLED])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in SHUFFLED])
    states = encoder.model(input_ids=ids, attention_mask=mask).last_hidden_state
    vectors = states[:, 0] if pooling == "cls" else (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    (vectors * weight).sum().backward()
    parameters = dict(encoder.model.named_parameters())
    for name, parameter in parameters.items():
        if "pooler" in name:
            assert ours[name] is None
            continue
        theirs, mine = parameter.grad, ours[name]
        assert theirs is not None, name
        assert mine is not None, name
        # The gradient of a key's bias is zero: what is left of it is the rounding of sums as large as its weight's.
        is_key_bias = name.endswith(("key.bias", "k_lin.bias"))
        beside = parameters[f"{name.removesuffix('bias')}weight"].grad if is_key_bias else theirs
        assert beside is not None, name
        scale = float(beside.abs().max())
        torch.testing.assert_close(mine, theirs, atol=1e-5 * max(1.0, scale), rtol=0, msg=name)


def test_mean_all_averages_padding_as_the_released_code_does() -> None:
    encoder = PackedEncoder(tiny_model("bert"), pooling="mean-all", max_tokens=MAX_TOKENS).eval()
    with torch.no_grad():
        found = encoder(pack_lists(SHUFFLED))
        for vector, row in zip(found, SHUFFLED, strict=True):
            ids = torch.tensor([row + [0] * (MAX_TOKENS - len(row))])
            mask = torch.tensor([[1] * len(row) + [0] * (MAX_TOKENS - len(row))])
            expected = encoder.model(input_ids=ids, attention_mask=mask).last_hidden_state.mean(1)[0]
            torch.testing.assert_close(vector, expected, atol=1e-5, rtol=0)


def test_padding_token_written_in_a_name_has_hugging_faces_position() -> None:
    encoder = PackedEncoder(tiny_model("roberta"), pooling="mean", max_tokens=MAX_TOKENS).eval()
    row = [0, 50, 1, 1, 60, 2]
    with torch.no_grad():
        found = encoder(pack_lists([row, [0, 7, 2]]))[0]
        ids = torch.tensor([row])
        expected = encoder.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.mean(1)[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_batch_of_one_and_company_give_the_same_vector() -> None:
    encoder = PackedEncoder(tiny_model("bert"), pooling="cls", max_tokens=MAX_TOKENS).eval()
    with torch.no_grad():
        together = encoder(pack_lists(SHUFFLED))
        for row, vector in zip(SHUFFLED, together, strict=True):
            torch.testing.assert_close(encoder(pack_lists([row]))[0], vector, atol=1e-5, rtol=0)


def test_no_names_give_no_vectors() -> None:
    encoder = PackedEncoder(tiny_model("bert"), pooling="cls", max_tokens=MAX_TOKENS)
    assert encoder(pack_lists([])).shape == (0, 32)


def test_bf16_autocast_stays_near_and_trains_every_weight() -> None:
    encoder = PackedEncoder(tiny_model("bert"), pooling="mean", max_tokens=MAX_TOKENS).train()
    for parameter in encoder.parameters():
        assert parameter.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vectors = encoder(pack_lists(SHUFFLED))
    vectors.float().square().sum().backward()
    for name, parameter in encoder.model.named_parameters():
        if "pooler" not in name:
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name


def test_dropout_acts_in_training_only_and_follows_the_seed(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny", "bert")
    encoder = load_packed(folder, dropout=0.5).train()
    batch = pack_lists(SHUFFLED)
    torch.manual_seed(1)
    first = encoder(batch)
    second = encoder(batch)
    torch.manual_seed(1)
    again = encoder(batch)
    assert torch.equal(first, again)
    assert not torch.allclose(first, second)
    encoder.eval()
    assert torch.equal(encoder(batch), encoder(batch))
    still = load_packed(folder, dropout=0.0).train()
    torch.testing.assert_close(still(batch), encoder(batch))


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_of_the_configuration_stands_when_none_is_given(tmp_path: Path, family: str) -> None:
    encoder = load_packed(write_tiny(tmp_path / "tiny", family))
    assert encoder.architecture is not None
    assert encoder.architecture.hidden_dropout.p == 0.1
    assert encoder.architecture.attention_dropout.p == 0.1


def test_pooler_is_kept_but_never_trained(tmp_path: Path) -> None:
    encoder = load_packed(write_tiny(tmp_path / "tiny", "bert"))
    frozen = [name for name, parameter in encoder.model.named_parameters() if not parameter.requires_grad]
    assert frozen == ["pooler.dense.weight", "pooler.dense.bias"]


def test_an_encoder_made_in_memory_has_no_fingerprint() -> None:
    encoder = PackedEncoder(tiny_model("bert"), pooling="cls", max_tokens=MAX_TOKENS)
    with pytest.raises(ConfigError, match="made in memory"):
        _ = encoder.fingerprint
