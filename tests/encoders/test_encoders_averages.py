"""The average of several encoders' weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from onoma.artifacts import read_manifest, verify_artifact
from onoma.encoders import locate_encoder, open_encoder, save_encoder
from onoma.encoders.averages import average_encoders
from onoma.encoders.centring import centre_encoder
from onoma.encoders.loading import load_packed
from onoma.errors import ArtifactExistsError, ConfigError, InputError, MismatchError
from onoma.training.config_parts import Adapter
from onoma.training.tuning import tune
from tiny import tiny_encoder


@pytest.fixture
def trained(tmp_path: Path) -> Callable[..., Path]:
    """Writes an encoder that began as ``base`` and moved a little."""
    tiny_encoder(tmp_path / "base", weight_std=0.3)

    def make(name: str, seed: int, *, settings: dict[str, Any] | None = None, **options: Any) -> Path:
        encoder = load_packed(tmp_path / "base", pooling=options.pop("pooling", "cls"), max_tokens=12)
        torch.manual_seed(seed)
        with torch.no_grad():
            for weight in encoder.model.parameters():
                weight.add_(0.03 * torch.randn_like(weight))
        config = {
            "training": {"normalisation": "sapbert", "batch_pairs": 8, **(settings or {})},
            "recipe": {"name": "onoma-mini", "overridden": sorted(settings or {})},
            "terminology": [name],
        }
        save_encoder(encoder, tmp_path / name, config=config, seed=seed, **options)
        return tmp_path / name

    return make


def test_each_weight_is_the_mean_by_shares(trained: Callable[..., Path], tmp_path: Path) -> None:
    folders = [
        trained("a", 1, settings={"seed": 1}, sparse_weight=0.1),
        trained("b", 2, settings={"seed": 2}, sparse_weight=0.2),
        trained("c", 3, settings={"seed": 3}, sparse_weight=0.6),
    ]
    made = average_encoders(folders, tmp_path / "out", shares=[2, 1, 1])
    verify_artifact(tmp_path / "out")
    parts = [load_file(folder / "model.safetensors") for folder in folders]
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found.keys() == parts[0].keys()
    for name, weight in found.items():
        expected = sum(
            share * part[name].double().numpy() for share, part in zip((0.5, 0.25, 0.25), parts, strict=True)
        )
        np.testing.assert_allclose(weight.numpy(), expected, atol=1e-6, err_msg=name)
    assert made.sparse_weight == pytest.approx(0.25)
    assert (made.name, made.origin.base, made.normalisation) == ("out", "base", "sapbert")
    manifest = read_manifest(tmp_path / "out")
    assert [parent.fingerprint for parent in manifest.parents] == [locate_encoder(one).fingerprint for one in folders]
    assert manifest.config == {
        "averaged": [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.25}, {"name": "c", "share": 0.25}],
        "training": {"normalisation": "sapbert", "batch_pairs": 8},
        "recipe": {"name": "onoma-mini", "overridden": ["seed"]},
        "terminology": ["a", "b", "c"],
    }
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| average of | a (0.5), b (0.25), c (0.25) |" in card
    assert "Settings that all averaged encoders have" in card
    torch_vectors = open_encoder(tmp_path / "out", backend="torch").encode(["heart attack", "flu"])
    np.testing.assert_allclose(open_encoder(tmp_path / "out").encode(["heart attack", "flu"]), torch_vectors, atol=1e-5)


def test_shares_are_equal_unless_said_and_their_sum_does_not_matter(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    folders = [trained("a", 1), trained("b", 2)]
    one = average_encoders(folders, tmp_path / "one")
    two = average_encoders(folders, tmp_path / "two", shares=[1e308, 1e308])
    assert one.weights_sha256 == two.weights_sha256
    with pytest.raises(ArtifactExistsError):
        average_encoders(folders, tmp_path / "one")
    assert (
        average_encoders(folders, tmp_path / "one", shares=[1, 3], overwrite=True).weights_sha256 != one.weights_sha256
    )


def test_a_trained_encoder_is_drawn_back_to_the_one_it_began_as(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained("a", 1, sparse_weight=0.4)
    untrained = load_packed(tmp_path / "base", pooling="cls", max_tokens=20)
    save_encoder(untrained, tmp_path / "before")
    made = average_encoders([folder, tmp_path / "before"], tmp_path / "out", shares=[1, 3])
    assert "recipe" not in read_manifest(tmp_path / "out").config  # of one of them alone
    assert made.max_tokens == 12
    assert made.sparse_weight == pytest.approx(0.1)
    [after, before, found] = (load_file(tmp_path / name / "model.safetensors") for name in ("a", "before", "out"))
    for name, weight in found.items():
        torch.testing.assert_close(weight, after[name] / 4 + before[name] * 3 / 4, msg=name)
    assert average_encoders([tmp_path / "before"] * 2, tmp_path / "two").sparse_weight is None


def test_files_beside_the_weights_are_those_of_the_first(trained: Callable[..., Path], tmp_path: Path) -> None:
    first, of_base = trained("a", 1), tmp_path / "base" / "tokenizer_config.json"
    of_base.write_text(json.dumps({**json.loads(of_base.read_text()), "said_by": "b"}))
    second = trained("b", 2)
    for sources, expected in (([first, second], None), ([second, first], "b")):
        made = average_encoders(sources, tmp_path / "out", overwrite=True).path
        assert json.loads((made / "tokenizer_config.json").read_text()).get("said_by") == expected


def test_the_card_tells_what_each_was_trained_on(trained: Callable[..., Path], tmp_path: Path) -> None:
    """Also where one of them was not trained, so that they have no setting in common."""
    folders = []
    for name, caps in (("a", [10]), ("b", [10, 20])):
        encoder = load_packed(trained(f"{name}0", len(caps)), pooling="cls", max_tokens=12)
        sets = [{"max_pairs_per_concept": cap} for cap in caps]
        pairs = sets[0] if len(sets) == 1 else {"merged": sets}
        config = {"training": {"steps": len(caps)}, "pairs": pairs, "terminology": [f"abc{name}"]}
        save_encoder(encoder, tmp_path / name, config=config)
        folders.append(tmp_path / name)
    before = load_packed(tmp_path / "base", pooling="cls", max_tokens=12)
    save_encoder(before, tmp_path / "before")
    average_encoders([*folders, tmp_path / "before"], tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "## What it was trained on" in card
    assert "| merged from | 2 sets of pairs |" in card
    assert "| set 2: pairs per concept, at most | 20 |" in card
    assert all(f"| fingerprint of the terminology | `abc{name}` |" in card for name in "ab")


def test_widths_that_all_were_trained_for_stay(trained: Callable[..., Path], tmp_path: Path) -> None:
    for name, widths in (("a", [4, 8, 16]), ("b", [2, 4, 16])):
        encoder = load_packed(trained(f"before-{name}", 1))
        save_encoder(encoder, tmp_path / name, config={"trained_dimensions": widths})
    assert average_encoders([tmp_path / "a", tmp_path / "b"], tmp_path / "out").trained_dimensions == (4, 16)


def test_the_average_of_an_encoder_with_itself_is_itself(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained("a", 1)
    made = average_encoders([folder, folder], tmp_path / "out")
    expected = load_file(folder / "model.safetensors")
    for name, weight in load_file(tmp_path / "out" / "model.safetensors").items():
        torch.testing.assert_close(weight, expected[name], msg=name)
    assert made.width == 16


def test_the_average_of_equal_encoders_is_not_taken_for_what_they_were_trained_from(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    folder = trained("a", 1)
    origin = locate_encoder(folder).origin
    made = average_encoders([folder, folder], tmp_path / "out")
    assert made.weights_sha256 == locate_encoder(folder).weights_sha256
    assert origin.base == "base"
    assert made.origin == origin


def test_bottlenecks_are_averaged_too(tmp_path: Path) -> None:
    tiny_encoder(tmp_path / "base", weight_std=0.3)
    for name, drawn, seed in (("1", 0, 1), ("2", 0, 2), ("stranger", 3, 3)):
        encoder = load_packed(tmp_path / "base", pooling="cls", max_tokens=12)
        torch.manual_seed(drawn)
        tune(encoder, Adapter(reduction=4))
        torch.manual_seed(seed)
        with torch.no_grad():
            for weight in encoder.model.parameters():
                if weight.requires_grad:
                    weight.add_(0.003 * torch.randn_like(weight))
        save_encoder(encoder, tmp_path / name)
    average_encoders([tmp_path / "1", tmp_path / "2"], tmp_path / "out")
    one, two, both = (load_file(tmp_path / name / "model.safetensors") for name in ("1", "2", "out"))
    assert any("adapter" in name for name in both)
    for name, weight in both.items():
        torch.testing.assert_close(weight, (one[name] + two[name]) / 2, msg=name)
    open_encoder(tmp_path / "out").encode(["heart attack"])
    with pytest.raises(MismatchError, match=r"adapters began from different random weights \(cosine -?0\.\d\d\)"):
        average_encoders([tmp_path / "1", tmp_path / "stranger"], tmp_path / "none")


def test_what_cannot_be_averaged_is_refused(trained: Callable[..., Path], tmp_path: Path) -> None:
    a = trained("a", 1)
    with pytest.raises(ConfigError, match="two encoders or more"):
        average_encoders([a], tmp_path / "out")
    for shares in ([1.0], [1.0, 0.0], [1.0, float("nan")], [1.0, -1.0]):
        with pytest.raises(ConfigError, match="shares are positive numbers"):
            average_encoders([a, a], tmp_path / "out", shares=shares)
    with pytest.raises(InputError, match="written over one of its encoders"):
        average_encoders([a, trained("b", 2)], a, overwrite=True)
    stranger = load_packed(tiny_encoder(tmp_path / "x", weight_std=0.3, seed=5), pooling="cls", max_tokens=12)
    save_encoder(stranger, tmp_path / "stranger")
    with pytest.raises(MismatchError, match=r"not trained from one encoder \(cosine of their weights -?0\.\d\d;"):
        average_encoders([a, tmp_path / "stranger"], tmp_path / "out")
    wider = load_packed(tiny_encoder(tmp_path / "y", intermediate_size=64), pooling="cls", max_tokens=12)
    save_encoder(wider, tmp_path / "wider")
    with pytest.raises(MismatchError, match="differ in architecture"):
        average_encoders([a, tmp_path / "wider"], tmp_path / "out")
    for what, options in (
        ("poolings", {"pooling": "mean"}),
        ("preparations of names", {"settings": {"normalisation": "biosyn"}}),
    ):
        other = trained(what, 2, **options)
        with pytest.raises(MismatchError, match=f"cannot be averaged: they differ in {what}"):
            average_encoders([a, other], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_average_with_the_base_has_the_origin_of_what_the_base_was_trained_from(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    """Whichever comes first, and with what each of them learned."""
    base = trained("first", 1)
    encoder = load_packed(base)
    with torch.no_grad():
        next(encoder.model.parameters()).add_(0.01)
    config = {"training": {"normalisation": "sapbert"}, "corpora": ["BC5CDR"], "teacher": "large"}
    further = save_encoder(encoder, tmp_path / "further", config=config, licence="MIT").path
    for number, both in enumerate([[base, further], [further, base]]):
        made = average_encoders(both, tmp_path / f"out-{number}")
        assert made.origin.base == "first"
        about = read_manifest(made.path).config
        assert (about["corpora"], about["teacher"]) == (["BC5CDR"], "large")
        assert "annotated mentions of | BC5CDR" in (made.path / "README.md").read_text()


def test_an_average_with_the_untrained_base_is_trained_from_it(trained: Callable[..., Path], tmp_path: Path) -> None:
    """The base says nothing of how names are prepared, so that nothing differs: they are as for the other."""
    further = trained("exact", 1, settings={"normalisation": "exact"})
    for number, both in enumerate([[tmp_path / "base", further], [further, tmp_path / "base"]]):
        made = average_encoders(both, tmp_path / f"out-{number}")
        assert (made.origin.base, made.trained_on) == ("base", "exact")
    with pytest.raises(MismatchError, match=r"preparations of names \(exact; sapbert\)"):
        average_encoders([further, trained("lower", 2)], tmp_path / "other")


def test_the_card_says_which_one_was_centred(trained: Callable[..., Path], tmp_path: Path) -> None:
    first = trained("a", 1)
    centred = centre_encoder(first, [f"name {number}" for number in range(200)], tmp_path / "c").folder
    made = average_encoders([centred.path, trained("b", 2)], tmp_path / "out")
    assert "| average of | c (centred, 0.5), b (0.5) |" in (made.path / "README.md").read_text()


def test_a_centred_encoder_that_nobody_trained_says_so(trained: Callable[..., Path], tmp_path: Path) -> None:
    made = centre_encoder(tmp_path / "base", [f"name {number}" for number in range(200)], tmp_path / "c").folder
    text = (made.path / "README.md").read_text()
    assert "| made from | base |" in text
    assert "trained" not in text.replace("pretrained", "")
    assert "preset" not in text
    assert made.trained_on is None
