"""Folders of other tools: what they say is done, what is damaged is told; and what Onoma's own say stays with them."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny_encoders import write_tiny
from tokenizers import Tokenizer

from onoma.encoders import open_encoder
from onoma.encoders.folders import Origin, read_folder
from onoma.encoders.information import encoder_info
from onoma.encoders.loading import load_packed, quiet_transformers
from onoma.encoders.packed import pack_lists
from onoma.encoders.rewriting import add_precisions
from onoma.encoders.saving import export_encoder, save_encoder
from onoma.encoders.tokens import load_tokenizer
from onoma.encoders.weight_files import count_parameters
from onoma.errors import DamagedArtifactError, InputError, MismatchError, OnomaError, TrainingError
from onoma.training.alignment_config import Recipe
from onoma.training.tuning import check_base
from tiny import small_tokenizer, tiny_encoder

LONG = "heart disease " * 20
NAMES = [f"heart disease {number}" for number in range(120)]


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder as sentence-transformers writes it."""
    save_encoder(load_packed(tiny_encoder(tmp_path / "base", weight_std=0.3), max_tokens=14), tmp_path / "theirs")
    for own in ("onoma.json", "encoder.json"):
        (tmp_path / "theirs" / own).unlink()
    return tmp_path / "theirs"


def changed(file: Path, **values: Any) -> None:
    about = json.loads(file.read_text()) if file.exists() else {}
    about |= values
    file.write_text(json.dumps({key: value for key, value in about.items() if value is not None}))


def test_the_length_that_a_tokeniser_says(theirs: Path) -> None:
    assert read_folder(theirs).max_tokens == 14
    changed(theirs / "sentence_bert_config.json", max_seq_length=None)  # as from version 6 on
    changed(theirs / "tokenizer_config.json", model_max_length=9)
    assert read_folder(theirs).max_tokens == 9
    changed(theirs / "tokenizer_config.json", model_max_length=10**30)  # transformers' word for no limit
    positions = json.loads((theirs / "config.json").read_text())["max_position_embeddings"]
    assert read_folder(theirs).max_tokens == positions
    (theirs / "modules.json").unlink()  # transformers' own folders are cut as SapBERT cuts names
    assert read_folder(theirs).max_tokens == min(25, positions)


def test_vectors_equal_those_of_sentence_transformers(theirs: Path, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    loaded = sentence_transformers.SentenceTransformer(str(theirs), device="cpu")
    loaded.save(str(tmp_path / "saved"), create_model_card=False)
    found = open_encoder(tmp_path / "saved").encode([LONG, "lung"])
    np.testing.assert_allclose(found, loaded.encode([LONG, "lung"], normalize_embeddings=True), atol=1e-5)


LENGTHS: dict[str, tuple[dict[str, Any], int | None, int]] = {
    "a setting that is null": ({"max_seq_length": None, "x": 1}, None, 64),
    "nobody says": ({"x": 1}, None, 64),
    "a tokeniser without a limit": ({"x": 1}, 10**30, 64),
    "options of the tokeniser": ({"max_seq_length": 14, "tokenizer_args": {"model_max_length": 8}}, 9, 8),
    "options by both names": (
        {"tokenizer_args": {"model_max_length": 8}, "processor_kwargs": {"model_max_length": 12}},
        None,
        8,
    ),
    "options as they are called now": ({"max_seq_length": 14, "processor_kwargs": {"model_max_length": 8}}, 9, 8),
}


@pytest.mark.parametrize("file", ["sentence_bert_config.json", "sentence_roberta_config.json"])
@pytest.mark.parametrize(("settings", "of_tokeniser", "expected"), LENGTHS.values(), ids=LENGTHS)
def test_texts_are_cut_where_sentence_transformers_cuts_them(
    settings: dict[str, Any], of_tokeniser: int | None, expected: int, file: str, theirs: Path
) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    (theirs / "sentence_bert_config.json").unlink()
    (theirs / file).write_text(json.dumps({key: value for key, value in settings.items() if key != "x"}))
    changed(theirs / "tokenizer_config.json", model_max_length=of_tokeniser)
    positions = json.loads((theirs / "config.json").read_text())["max_position_embeddings"]
    assert read_folder(theirs).max_tokens == min(expected, positions)
    loaded = sentence_transformers.SentenceTransformer(str(theirs), device="cpu")
    found = open_encoder(theirs, backend="torch").encode([LONG, "lung"])
    np.testing.assert_allclose(found, loaded.encode([LONG, "lung"], normalize_embeddings=True), atol=1e-5)


def test_the_length_by_its_earlier_name(theirs: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    (theirs / "sentence_bert_config.json").write_text("{}")
    changed(theirs / "tokenizer_config.json", model_max_length=None, max_len=10)
    assert read_folder(theirs).max_tokens == 10
    loaded = sentence_transformers.SentenceTransformer(str(theirs), device="cpu")
    found = open_encoder(theirs, backend="torch").encode([LONG])
    np.testing.assert_allclose(found, loaded.encode([LONG], normalize_embeddings=True), atol=1e-5)


def test_case_is_that_of_sentence_transformers(theirs: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    tokenizer = json.loads((theirs / "tokenizer.json").read_text())
    tokenizer["normalizer"] = None
    (theirs / "tokenizer.json").write_text(json.dumps(tokenizer))
    changed(theirs / "sentence_bert_config.json", do_lower_case=True)
    loaded = sentence_transformers.SentenceTransformer(str(theirs), device="cpu")
    names = ["Heart disease", "LUNG", "[SEP] Lung", "\u039f\u0394\u039f\u03a3"]
    found = open_encoder(theirs, backend="torch").encode(names)
    np.testing.assert_allclose(found, loaded.encode(names, normalize_embeddings=True), atol=1e-5)
    lower = open_encoder(theirs, backend="torch").encode(["heart disease", "lung"])
    np.testing.assert_allclose(found[:2], lower, atol=1e-6)


CONTRADICTIONS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "case": ("bert", "BertTokenizer", {"do_lower_case": False}),
    "accents": ("bert", "BertTokenizerFast", {"strip_accents": False}),
    "accents alone": ("distilbert", "DistilBertTokenizer", {"do_lower_case": False, "strip_accents": True}),
    "Chinese": ("electra", "ElectraTokenizer", {"tokenize_chinese_chars": False}),
    "of no kind": ("bert", None, {"do_lower_case": False}),
    "of the kind for all": ("bert", "PreTrainedTokenizerFast", {"do_lower_case": False}),
    "space": ("roberta", "RobertaTokenizerFast", {"add_prefix_space": True}),
}


@pytest.mark.parametrize(("family", "kind", "settings"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_settings_of_a_tokeniser_hold_as_for_transformers(
    family: str, kind: str | None, settings: dict[str, Any], tmp_path: Path
) -> None:
    base = write_tiny(tmp_path / "base", family)
    changed(base / "tokenizer_config.json", tokenizer_class=kind, **settings)
    names = ["Heart ATTACK", "\u00e9 \u00c9", "heart \u5fc3\u809d"]
    expected = transformers.AutoTokenizer.from_pretrained(str(base))(names)["input_ids"]
    assert [row.ids for row in load_tokenizer(base).encode_batch(names)] == expected
    save_encoder(load_packed(base), tmp_path / "saved")
    alone = Tokenizer.from_file(str(tmp_path / "saved/tokenizer.json"))  # as the documentation shows it
    assert [row.ids for row in alone.encode_batch(names)] == expected


def test_settings_hold_where_they_say_nothing(tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "base", "bert")
    rules = json.loads((base / "tokenizer.json").read_text())
    as_trained = Tokenizer.from_str(json.dumps(rules)).encode("FEVER of 38.5").ids
    rules["normalizer"]["lowercase"] = False
    rules["pre_tokenizer"] = {"type": "WhitespaceSplit"}
    (base / "tokenizer.json").write_text(json.dumps(rules))
    changed(base / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    expected = transformers.AutoTokenizer.from_pretrained(str(base))("FEVER of 38.5")["input_ids"]
    assert load_tokenizer(base).encode("FEVER of 38.5").ids == expected == as_trained
    alone = Tokenizer.from_str(json.dumps(rules)).encode("FEVER of 38.5").ids
    assert (
        load_tokenizer(base, alone=True).encode("FEVER of 38.5").ids == alone != expected
    )  # as in a reranker's folder


@pytest.mark.parametrize("family", ["bert", "distilbert", "electra", "roberta"])
def test_without_settings_of_a_tokeniser_it_is_as_for_transformers(family: str, tmp_path: Path) -> None:
    """They lower the case of a BERT whose tokenizer.json keeps it."""
    base = write_tiny(tmp_path / "base", family)
    rules = json.loads((base / "tokenizer.json").read_text())
    if rules["normalizer"] is not None:
        rules["normalizer"]["lowercase"] = False
        (base / "tokenizer.json").write_text(json.dumps(rules))
    (base / "tokenizer_config.json").unlink()
    names = ["Heart ATTACK", "\u00e9 \u00c9", "fever"]
    expected = transformers.AutoTokenizer.from_pretrained(str(base))(names)["input_ids"]
    assert [row.ids for row in load_tokenizer(base).encode_batch(names)] == expected
    save_encoder(load_packed(base), tmp_path / "saved")
    assert transformers.AutoTokenizer.from_pretrained(str(tmp_path / "saved"))(names)["input_ids"] == expected


@pytest.mark.parametrize("kind", ["BertTokenizer", "RobertaTokenizer"])
def test_a_vocabulary_of_another_kind_than_the_settings_keeps_its_rules(kind: str, tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "base", "roberta" if kind == "BertTokenizer" else "bert")
    as_written = Tokenizer.from_file(str(base / "tokenizer.json")).encode("Heart ATTACK").ids
    changed(base / "tokenizer_config.json", tokenizer_class=kind)
    assert load_tokenizer(base).encode("Heart ATTACK").ids == as_written


def test_tokens_around_a_name_that_contradict_each_other_are_refused(theirs: Path) -> None:
    tokenizer = {"content": "[UNK]", "special": True}
    changed(theirs / "tokenizer_config.json", tokenizer_class="BertTokenizer", sep_token=tokenizer)
    with pytest.raises(InputError, match=r"sep_token is '\[UNK\]' here, and tokenizer.json puts '\[SEP\]' there"):
        open_encoder(theirs)


def test_settings_of_another_kind_are_told(theirs: Path) -> None:
    changed(theirs / "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case="no")
    with pytest.raises(InputError, match=r"tokenizer_config.json: these are no settings of a tokeniser"):
        open_encoder(theirs)


def test_vectors_that_other_tools_cut_are_refused(theirs: Path) -> None:
    changed(theirs / "config_sentence_transformers.json", truncate_dim=8)
    with pytest.raises(InputError, match=r"keep the first numbers only.*truncate_dim 8.*ask for so many dimensions"):
        read_folder(theirs)


@pytest.mark.parametrize("said_in", ["tokenizer_config.json", "tokenizer.json"])
def test_an_encoder_that_cuts_off_beginnings_cuts_off_ends_here(said_in: str, theirs: Path) -> None:
    """As of most names nothing is cut off, it is of use."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    before = open_encoder(theirs).encode([LONG, "lung"])
    if said_in == "tokenizer.json":
        cut = {"direction": "Left", "max_length": 7, "strategy": "LongestFirst", "stride": 0}
        changed(theirs / said_in, truncation=cut)
    else:
        changed(theirs / said_in, truncation_side="left")
    with pytest.warns(UserWarning, match=r"cut off the beginning \(truncation_side left\), Onoma the end"):
        found = open_encoder(theirs).encode([LONG, "lung"])
    np.testing.assert_array_equal(found, before)
    expected = sentence_transformers.SentenceTransformer(str(theirs), device="cpu").encode([LONG, "lung"])
    np.testing.assert_allclose(found[1], expected[1], atol=1e-5)
    assert np.abs(found[0] - expected[0]).max() > 1e-3
    changed(theirs / "sentence_bert_config.json", processor_kwargs={"truncation_side": "right"})
    assert read_folder(theirs).max_tokens == 14  # and says nothing


def test_long_names_are_cut_alike_by_who_opens_what_was_saved(tmp_path: Path) -> None:
    """Whatever the base, a plain folder of transformers, says of its own."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    base = write_tiny(tmp_path / "base", "bert")
    changed(base / "tokenizer_config.json", truncation_side="left")
    save_encoder(load_packed(base, max_tokens=9), tmp_path / "saved")
    names = ["heart attack", "fever and heart attack, diabetes of type 2 and more of it"]
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(names)
    np.testing.assert_allclose(theirs, open_encoder(tmp_path / "saved").encode(names), atol=1e-5)


def test_names_may_come_in_a_deque(theirs: Path) -> None:
    encoder = open_encoder(theirs)
    names = deque(["heart", "lung"])
    np.testing.assert_array_equal(encoder.encode(names), encoder.encode(list(names)))
    assert encoder.can_read(names).tolist() == [True, True]


def test_a_prompt_is_refused(theirs: Path) -> None:
    about = theirs / "config_sentence_transformers.json"
    changed(about, prompts={"query": "query: ", "document": ""}, default_prompt_name="query")
    with pytest.raises(InputError, match="puts a prompt before every text") as caught:
        read_folder(theirs)
    assert caught.value.found == "'query: '"
    changed(about, default_prompt_name="document")
    assert read_folder(theirs).max_tokens == 14


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", '{"a": 1}'),
        ("modules.json", '[{"idx": 0}]'),
        ("1_Pooling/config.json", "[]"),
        ("sentence_bert_config.json", "[1]"),
        ("sentence_bert_config.json", '{"max_seq_length": "x"}'),
        ("sentence_bert_config.json", '{"max_seq_length": 1}'),
        ("config.json", '{"model_type": "bert", "hidden_size": 16, "pad_token_id": Infinity}'),
        ("config.json", '{"model_type": "bert", "hidden_size": -16}'),
        ("config.json", '{"model_type": "bert", "hidden_size": 100000000000000000000}'),
        ("model.safetensors.index.json", "[]"),
    ],
)
def test_damaged_files_are_told(file: str, content: str, theirs: Path) -> None:
    if file == "model.safetensors.index.json":
        (theirs / "model.safetensors").unlink()
    (theirs / file).write_text(content)
    with pytest.raises(OnomaError, match="do not say what they should"):
        read_folder(theirs)


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"])
def test_weights_that_are_none_are_told(content: bytes, theirs: Path) -> None:
    (theirs / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="no weights in safetensors"):
        encoder_info(theirs)


def test_numbers_of_numpy_are_saved(theirs: Path, tmp_path: Path) -> None:
    numbers: dict[str, Any] = {"max_tokens": np.int64(9), "dimensions": np.int32(8)}
    encoder = open_encoder(theirs, **numbers)
    made = export_encoder(encoder.folder, tmp_path / "cut", onnx_only=True)
    assert (made.max_tokens, made.dimensions) == (9, 8)


def test_how_names_are_prepared_goes_with_every_copy(tmp_path: Path) -> None:
    base = load_packed(tiny_encoder(tmp_path / "base", weight_std=0.3))
    trained = save_encoder(base, tmp_path / "trained", config={"training": {"normalisation": "coder"}})
    copy = export_encoder(trained, tmp_path / "copy")
    assert trained.normalisation == copy.normalisation == "coder"
    assert export_encoder(copy, tmp_path / "thin", onnx_only=True).normalisation == "coder"
    assert save_encoder(load_packed(copy.path), tmp_path / "again").normalisation == "coder"
    (copy.path / "onoma.json").unlink()
    with pytest.raises(DamagedArtifactError, match=r"its onoma\.json is missing"):
        read_folder(copy.path)


def test_what_another_process_added_meanwhile_is_not_lost(tmp_path: Path) -> None:
    saved = save_encoder(load_packed(tiny_encoder(tmp_path / "base", weight_std=0.3)), tmp_path / "e").path
    begun: list[int] = []

    def meanwhile(*_: object) -> None:
        if not begun:
            begun.append(1)
            add_precisions(saved, ["fp16-weights"], NAMES)

    with pytest.raises(MismatchError, match="changed by another process meanwhile"):
        add_precisions(saved, ["int8"], NAMES, progress=meanwhile)
    assert begun
    assert read_folder(saved).lower_precisions == ("fp16-weights",)
    add_precisions(saved, ["int8"], NAMES)
    assert set(read_folder(saved).lower_precisions) == {"fp16-weights", "int8"}


def test_a_diverged_encoder_is_called_so(tmp_path: Path) -> None:
    encoder = load_packed(tiny_encoder(tmp_path / "base"))
    next(iter(encoder.parameters())).data.fill_(float("nan"))
    with pytest.raises(TrainingError, match="its training has diverged"):
        save_encoder(encoder, tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_licence_and_hub_id_are_those_of_the_base_alone(tmp_path: Path) -> None:
    first = save_encoder(load_packed(tiny_encoder(tmp_path / "base")), tmp_path / "first")
    encoder = load_packed(first.path)
    origin = Origin(base="all-MiniLM-L6-v2", base_hub_id="a/b", base_licence="Apache-2.0")
    encoder.source = dataclasses.replace(first, origin=origin)
    next(iter(encoder.parameters())).data.add_(1)
    second = save_encoder(encoder, tmp_path / "second")
    expected = Origin(base=first.name, ancestor_hub_id="a/b", ancestor_licence="Apache-2.0")
    assert second.origin == expected  # the hub can find that one alone


def decoder(folder: Path, kind: str) -> Path:
    """A tiny one, of a family of decoders or as BERT can be one."""
    write_tiny(folder, "bert")
    if kind == "bert":
        changed(folder / "config.json", is_decoder=True)
        return folder
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = transformers.AutoConfig.for_model(kind, vocab_size=300, initializer_range=0.5, **sizes)
    torch.manual_seed(0)
    with quiet_transformers():
        automatic: Any = transformers.AutoModel
        automatic.from_config(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["bert", "llama", "gpt_neox"])
def test_a_decoder_is_not_pooled_by_its_first_token(tmp_path: Path, kind: str) -> None:
    """All names would have one vector, and nothing could be learned."""
    base = decoder(tmp_path / "base", kind)
    with pytest.raises(InputError, match=r"its first token, by which it pools .* To mend it: pool by the mean"):
        open_encoder(base)
    with pytest.raises(InputError, match="from left to right"):
        check_base(Recipe.load("quickstart", {"base": str(base)}).config)
    first, second = open_encoder(base, pooling="mean").encode(["heart attack", "heart fever"])
    assert first @ second < 0.999


def test_an_encoder_that_wants_more_than_names_is_refused(tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "base", "bert")
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4, "hidden_size": 32}
    with quiet_transformers():
        automatic: Any = transformers.AutoModel
        automatic.from_config(transformers.AutoConfig.for_model("t5", vocab_size=300, **sizes)).save_pretrained(base)
    with pytest.raises(InputError, match=r"does not run on names alone \(.*such as BERT's"):
        open_encoder(base)


def test_tokens_that_an_onnx_model_does_not_know_are_told(theirs: Path) -> None:
    encoder = open_encoder(theirs, backend="onnx")
    encoder.encode(["plaquenil"])
    fast: Any = transformers.AutoTokenizer.from_pretrained(theirs)
    fast.add_tokens(["plaquenil", *(f"disease{number}" for number in range(2000))])
    fast.add_tokens(["zalcitabine"])
    fast.save_pretrained(theirs)
    beyond = open_encoder(theirs, backend="onnx")
    assert beyond.encode(["fever"]).shape == (1, encoder.width)
    with pytest.raises(MismatchError, match="has no embedding for a token of these names: the tokeniser beside it"):
        beyond.encode(["fever", "zalcitabine"])


def test_an_encoder_with_equal_embeddings_is_no_decoder(tmp_path: Path) -> None:
    """As of tokens that were never trained."""
    base = write_tiny(tmp_path / "base", "electra")
    weights = load_file(base / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][:40] = 0.5
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    assert open_encoder(base).encode(["heart attack"]).shape == (1, 32)


@pytest.mark.parametrize("number", [300, 400])
def test_tokens_around_each_name_that_the_weights_do_not_know_are_told_at_once(tmp_path: Path, number: int) -> None:
    base = write_tiny(tmp_path / "base", "bert")
    rules = json.loads((base / "tokenizer.json").read_text())
    rules["post_processor"]["cls"] = ["[CLS]", number]
    (base / "tokenizer.json").write_text(json.dumps(rules))
    with pytest.raises(InputError, match=f"the number {number}, and the weights know 300 tokens"):
        load_packed(base)


@pytest.mark.parametrize("runtime", ["packed", "other"])
def test_tokens_that_the_weights_do_not_know_are_told_at_once(tmp_path: Path, runtime: str) -> None:
    base = write_tiny(tmp_path / "base", "bert" if runtime == "packed" else "electra")
    fast: Any = transformers.AutoTokenizer.from_pretrained(base)
    fast.add_tokens([f"disease{number}" for number in range(300 - len(fast))])
    fast.save_pretrained(base)
    load_packed(base)  # as many as there are embeddings
    fast.add_special_tokens({"additional_special_tokens": ["[PADX]"]})
    fast.save_pretrained(base)
    load_packed(base)  # no name has it
    fast.add_tokens(["plaquenil"])
    fast.save_pretrained(base)
    with pytest.raises(
        InputError, match=r"token 'plaquenil' with the number 301, and the weights know 300 tokens, 0 to"
    ):
        load_packed(base)
    with pytest.raises(InputError, match="resize_token_embeddings"):
        open_encoder(base)


@pytest.mark.parametrize("said", ["nothing", "null", "another class"])
def test_a_token_for_padding_is_named_where_the_base_names_none(tmp_path: Path, said: str) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    base = write_tiny(tmp_path / "base", "bert")
    changed(base / "tokenizer_config.json", pad_token=None)
    if said != "nothing":
        file = base / "tokenizer_config.json"
        more = {"pad_token": None} if said == "null" else {"tokenizer_class": "LlamaTokenizerFast"}
        file.write_text(json.dumps({**json.loads(file.read_text()), **more}))
    (base / "special_tokens_map.json").unlink(missing_ok=True)
    encoder = load_packed(base)
    save_encoder(encoder, tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())["pad_token"] == "[PAD]"
    if said == "another class":  # which does not read this tokeniser
        return
    names = ["heart attack", "fever", "a much longer name of a disease"]
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(names)
    np.testing.assert_allclose(theirs, open_encoder(tmp_path / "saved").encode(names), atol=1e-5)


@pytest.mark.parametrize("family", ["modernbert", "flaubert", "esm"])
def test_dropout_reaches_modules_that_keep_it_as_a_number(tmp_path: Path, family: str) -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16}
    own: dict[str, Any] = {
        "modernbert": {"attention_dropout": 0.5, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1},
        "flaubert": {"dropout": 0.5, "attention_dropout": 0.5, "emb_dim": 16, "n_layers": 2, "n_heads": 2},
        "esm": {"attention_probs_dropout_prob": 0.5, "max_position_embeddings": 32},
    }[family]
    own |= {} if family == "flaubert" else {**sizes, "intermediate_size": 32}
    config = transformers.AutoConfig.for_model(family, **own, vocab_size=80, pad_token_id=0)
    automatic: Any = transformers.AutoModel
    automatic.from_config(config).save_pretrained(tmp_path)
    small_tokenizer().save(str(tmp_path / "tokenizer.json"))
    batch = pack_lists([[1, 5, 6, 7, 2], [1, 8, 2]])
    still, dropped = load_packed(tmp_path, dropout=0.0).train(), load_packed(tmp_path).train()
    assert torch.equal(still(batch), still(batch))
    assert not torch.equal(dropped(batch), dropped(batch))


def test_what_is_told_of_an_encoder(tmp_path: Path) -> None:
    saved = save_encoder(load_packed(tiny_encoder(tmp_path / "base")), tmp_path / "e")
    assert encoder_info(export_encoder(saved.cut(8), tmp_path / "cut", onnx_only=True).path).width == 8
    tensors = {"weight": torch.zeros(3, 5, dtype=torch.bfloat16), "position_ids": torch.zeros(7, dtype=torch.int64)}
    save_file(tensors, tmp_path / "model.safetensors")
    assert count_parameters(tmp_path) == 15  # positions are none
