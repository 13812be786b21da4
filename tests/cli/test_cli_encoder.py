"""``onoma encoder``: info, export, join, average, centre, card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file

from commands import run
from onoma.artifacts import verify_artifact
from onoma.encoders import export_encoder, locate_encoder, open_encoder, rewriting, save_encoder
from onoma.encoders.adapter_folders import save_adapter
from onoma.encoders.loading import load_packed
from onoma.encoders.packed import pack_lists
from onoma.errors import ArtifactExistsError, ConfigError, InputError, MismatchError, OnomaError
from onoma.training.config_parts import Adapter
from onoma.training.tuning import tune
from tiny import make_terminology, tiny_encoder

WORDS = ["heart", "lung", "liver", "bone", "skin", "eye", "ear", "brain", "hand", "knee"]
KINDS = ["attack", "disease", "Pain", "cancer", "failure", "cyst", "infection", "injury", "defect", "ulcer", "stone"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A trained encoder and the terminology that its manifest names."""
    names = {f"X:{word}": [f"{word} {kind}" for kind in KINDS] for word in WORDS}
    terminology = make_terminology(tmp_path / "terminology", names)
    model = load_packed(tiny_encoder(tmp_path / "base", weight_std=0.3), pooling="cls", max_tokens=12)
    training: dict[str, Any] = {"normalisation": "sapbert", "base": "base"}
    config = {"training": training, "terminology": [terminology.manifest.fingerprint]}
    save_encoder(model, tmp_path / "encoder", config=config, seed=1)
    return tmp_path


def test_info_says_that_the_weight_of_a_biosyn_checkpoint_is_not_read(place: Path) -> None:
    folder = tiny_encoder(place / "released", weight_std=0.3)
    assert "weight of n-grams" not in run("encoder", "info", folder)
    (folder / "sparse_weight.pt").write_bytes(b"")
    assert "BioSyn's pickles is not read; onoma linker tune learns it anew" in run("encoder", "info", folder)


def test_export_measures_on_a_terminology_and_info_tells_it(place: Path) -> None:
    encoder = place / "encoder"
    told = run("encoder",
        "export", encoder, "--precision", "int8", "--precision", "fp16-weights", "-t", place / "terminology",
        "--threads", "1",
    )  # fmt: skip
    assert [line.split()[0] for line in told.splitlines()] == ["precision", "fp32", "int8", "fp16-weights"]
    verify_artifact(encoder)
    found = json.loads(run("encoder", "info", encoder, "--json"))
    assert found["agreements"].keys() == {"int8", "fp16-weights"}
    assert found["agreements"]["int8"]["n_names"] == len(WORDS) * len(KINDS)
    assert (found["width"], found["pooling"], found["max_tokens"]) == (16, "cls", 12)
    assert found["fingerprint"] == locate_encoder(encoder).fingerprint
    assert found["files"]["onnx/model_int8.onnx"] == (encoder / "onnx/model_int8.onnx").stat().st_size
    shown = run("encoder", "info", encoder)
    for piece in ("bert, 2 layers", "16 numbers", "12 tokens", "sapbert", "onnx/model_int8.onnx", "same neighbour"):
        assert piece in shown


def test_a_folder_of_a_lower_precision_alone_is_shown_and_described(place: Path, tmp_path: Path) -> None:
    run("encoder", "export", place / "encoder", "--precision", "int8", "-t", place / "terminology", "--threads", "1")
    alone = tmp_path / "alone"
    export_encoder(locate_encoder(place / "encoder", precision="int8"), alone, onnx_only=True)
    found = json.loads(run("encoder", "info", alone, "--json"))
    assert found["precision"] == "int8"
    assert found["fingerprint"] == open_encoder(place / "encoder", precision="int8").fingerprint
    assert "int8, no fp32" in run("encoder", "info", alone)
    run("encoder", "card", alone, "--licence", "mit")
    assert "license: mit" in (alone / "README.md").read_text()
    assert open_encoder(alone, precision="int8").fingerprint == found["fingerprint"]
    with pytest.raises(InputError, match=r"in int8 only.*--precision int8.*made from"):
        run(
            "encoder",
            "export",
            alone,
            "--precision",
            "int8-weights",
            "-t",
            place / "terminology",
            "-o",
            tmp_path / "more",
        )


def test_the_sample_is_the_same_every_time(place: Path) -> None:
    file = place / "names.txt"
    file.write_text("\n".join(f"{word}  {kind}" for word in WORDS for kind in KINDS) + "\n\n", encoding="utf-8")
    sums = []
    for out in ("one", "two"):
        told = run("encoder",
            "export", place / "encoder", "--precision", "int8-weights", "--names", file, "--sample", "100",
            "-o", place / out, "--json",
        )  # fmt: skip
        [one] = json.loads(told)
        assert one["n_names"] == 100
        sums.append(one["names_sha256"])
    assert sums[0] == sums[1]
    smaller = (
        "export",
        place / "encoder",
        "--precision",
        "int8-weights",
        "--names",
        file,
        "-o",
        place / "one",
        "--json",
    )
    with pytest.raises(ArtifactExistsError):
        run("encoder", *smaller)
    assert json.loads(run("encoder", *smaller, "--force"))[0]["n_names"] == 110
    assert locate_encoder(place / "encoder").lower_precisions == ()


def test_what_export_refuses(place: Path) -> None:
    encoder, terminology = place / "encoder", place / "terminology"
    with pytest.raises(ConfigError, match="either --terminology DIR or --names FILE"):
        run("encoder", "export", encoder, "--precision", "int8")
    with pytest.raises(ConfigError, match="either --terminology DIR or --names FILE"):
        run("encoder", "export", encoder, "--precision", "int8", "-t", terminology, "--names", place / "names.txt")
    with pytest.raises(ConfigError, match="Known: fp16-weights, int8-weights, int8"):
        run("encoder", "export", encoder, "--precision", "bf16", "-t", terminology)
    with pytest.raises(ConfigError, match="-o ENCODER"):
        run("encoder", "export", place / "base", "--precision", "int8", "-t", terminology)
    (place / "few.txt").write_text("fever\n")
    with pytest.raises(InputError, match="too few names"):
        run("encoder", "export", encoder, "--precision", "int8", "--names", place / "few.txt")
    assert locate_encoder(encoder).lower_precisions == ()


def test_info_of_what_another_tool_wrote(place: Path) -> None:
    there = {file.name: file.stat().st_size for file in (place / "base").iterdir()}
    (place / "base" / "__pycache__").mkdir()
    (place / "base" / "__pycache__" / "own.pyc").write_bytes(b"1")
    found = json.loads(run("encoder", "info", place / "base", "--json"))
    assert (found["name"], found["created"], found["normalisation"]) == ("base", None, None)
    assert found["files"] == there
    assert "model.safetensors" in there
    assert "base" in run("encoder", "info", place / "base")


def test_card_with_scores_and_licence(place: Path) -> None:
    encoder = place / "encoder"
    result = {
        "task": "ncbi-disease",
        "acc@1": 0.9,
        "n_queries": 10,
        "n_dictionary": 20,
        "model": {"kind": "encoder", "fingerprint": locate_encoder(encoder).fingerprint},
    }
    (place / "results.json").write_text(json.dumps(result))
    told = run("encoder", "card", encoder, "--results", place / "results.json", "--licence", "cc-by-4.0")
    assert told.strip().endswith("README.md")
    text = (encoder / "README.md").read_text()
    head: Any = ModelCard(text).data
    assert head.license == "cc-by-4.0"
    assert "| ncbi-disease | fp32 |" in text
    assert "not prepared by `sapbert` get other vectors" in text
    assert str(place) not in text
    assert "ncbi-disease-fp32" in run("encoder", "info", encoder)
    (encoder / "README.md").write_text(f"{text}edited\n")
    with pytest.raises(OnomaError, match="--force"):
        run("encoder", "card", encoder)
    run("encoder", "card", encoder, "--force")
    assert (encoder / "README.md").read_text() == text
    with pytest.raises(ConfigError, match="not a folder that you wrote with Onoma"):
        run("encoder", "card", place / "base")


def test_an_adapter_and_its_base_are_joined(tmp_path: Path) -> None:
    encoder = load_packed(tiny_encoder(tmp_path / "base", weight_std=0.3), pooling="cls", max_tokens=12)
    tune(encoder, Adapter(reduction=4))
    save_adapter(encoder, tmp_path / "adapter", name="tiny")
    other = tiny_encoder(tmp_path / "other", weight_std=0.3, seed=1)
    with pytest.raises(MismatchError, match="other weights"):
        run("encoder", "join", tmp_path / "adapter", "--base", other, "-o", tmp_path / "joined")
    join: list[str | Path] = ["join", tmp_path / "adapter", "-o", tmp_path / "joined", "--base", tmp_path / "base"]
    run("encoder", *join)
    with pytest.raises(ArtifactExistsError):
        run("encoder", *join)
    run("encoder", *join, "--force")
    joined = open_encoder(tmp_path / "joined", threads=1)
    with torch.inference_mode():
        expected = encoder.eval()(pack_lists([joined.folder.load_tokenizer().encode("heart attack").ids]))[0].numpy()
    np.testing.assert_allclose(joined.encode(["heart attack"])[0], expected / np.linalg.norm(expected), atol=1e-5)


def test_encoders_are_averaged_by_shares(place: Path) -> None:
    encoder = load_packed(place / "encoder")
    with torch.no_grad():
        for weight in encoder.model.parameters():
            weight.mul_(1.1)
    save_encoder(encoder, place / "later")
    run("encoder", "average", place / "encoder", place / "later", "-o", place / "both", "--shares", "3,1")
    name = "encoder.layer.0.output.dense.weight"
    before, both = (load_file(place / folder / "model.safetensors")[name] for folder in ("encoder", "both"))
    torch.testing.assert_close(both, before * 1.025)
    assert "encoder (0.75), later (0.25)" in (place / "both" / "README.md").read_text()
    average = ("average", place / "encoder", place / "later", "-o", place / "both")
    with pytest.raises(ArtifactExistsError):
        run("encoder", *average)
    run("encoder", *average, "--force")
    torch.testing.assert_close(load_file(place / "both" / "model.safetensors")[name], before * 1.05)
    with pytest.raises(ConfigError, match=r"expected numbers divided by commas, such as 2,1,1; found '3;1'"):
        run("encoder", "average", place / "encoder", place / "later", "-o", place / "other", "--shares", "3;1")
    with pytest.raises(ConfigError, match="two encoders or more"):
        run("encoder", "average", place / "encoder", "-o", place / "other")


def test_an_encoder_is_centred_on_names(place: Path, tmp_path: Path) -> None:
    names = [f"{word} {kind}".lower() for word in WORDS for kind in KINDS]
    (tmp_path / "names.txt").write_text("\n".join([*names, "", names[0].upper()]))
    run("encoder", "centre", place / "encoder", "--names", tmp_path / "names.txt", "-o", tmp_path / "centred")
    run("encoder", "centre", place / "encoder", "-t", place / "terminology", "-o", tmp_path / "same")
    for folder in ("centred", "same"):
        assert "the mean of 110 names' vectors is taken off" in (tmp_path / folder / "README.md").read_text()
        vectors = open_encoder(tmp_path / folder, threads=1).encode(names, unit_length=False)
        np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-5)
    run(
        "encoder",
        "centre",
        place / "encoder",
        "-t",
        place / "terminology",
        "--sample",
        "100",
        "-o",
        tmp_path / "of-100",
    )
    assert "the mean of 100 names' vectors" in (tmp_path / "of-100" / "README.md").read_text()
    centre = ("centre", place / "encoder", "-t", place / "terminology", "-o", tmp_path / "of-100")
    with pytest.raises(ArtifactExistsError):
        run("encoder", *centre)
    run("encoder", *centre, "--force")
    assert "the mean of 110 names' vectors" in (tmp_path / "of-100" / "README.md").read_text()
    names_file, terminology = ("--names", tmp_path / "names.txt"), ("-t", place / "terminology")
    for options in ((), (*names_file, *terminology)):
        with pytest.raises(ConfigError, match="either --terminology DIR or --names FILE"):
            run("encoder", "centre", place / "encoder", *options, "-o", tmp_path / "none")


def test_what_a_name_stands_for_is_not_added_to(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All on the machine share it, and what is trained from it inherits what it says."""
    shared = locate_encoder(place / "encoder")
    before = {file: file.read_bytes() for file in shared.path.rglob("*") if file.is_file()}
    monkeypatch.setattr(rewriting, "locate_encoder", lambda _, **options: shared)
    with pytest.raises(ConfigError, match="not a folder that you wrote with Onoma"):
        rewriting.add_to_card("a-name", licence="cc0-1.0")
    with pytest.raises(ConfigError, match="not a folder that you wrote with Onoma"):
        rewriting.add_precisions("a-name", ["int8"], ["fever"])
    assert {file: file.read_bytes() for file in shared.path.rglob("*") if file.is_file()} == before
