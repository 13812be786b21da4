"""The model card: all it says comes from the folder, whatever the names in it look like."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from tiny_encoders import MAX_TOKENS, write_tiny

from manifests import refit
from onoma.artifacts import Parent, read_manifest, verify_artifact, write_artifact
from onoma.encoders import (
    add_precisions,
    add_to_card,
    export_encoder,
    locate_encoder,
    open_encoder,
    save_encoder,
)
from onoma.encoders.information import encoder_info
from onoma.encoders.loading import load_packed
from onoma.encoders.model_card import RESULTS_FORMAT, RESULTS_KIND
from onoma.encoders.weight_files import count_parameters
from onoma.errors import ArtifactError, ConfigError, DamagedArtifactError, InputError, MismatchError

ODD = 'odd: "name" | <b>*x*</b> # `--- [a](b) \\ $1 & {é} ```'
TRAINING: dict[str, Any] = {
    "base": "/somewhere/on/this/machine/base",
    "normalisation": "sapbert",
    "learning_rate": 2e-5,
    "loss": {"name": "multi-similarity", "positive_scale": 2.0},
    "languages": ["en", "no"],
    "minutes": None,
    "decay_all": False,
    "seed": 3,
}
CONFIG: dict[str, Any] = {
    "recipe": {"name": "sapbert-paper", "overridden": ["seed", "steps"]},
    "training": TRAINING,
    "ran_on": {"device": "cpu", "precision": "fp32"},
    "pairs": {"languages": ["en", "no"], "max_pairs_per_concept": 50, "ambiguous": "mark", "hidden_names": "a" * 64},
    "terminology": ["c" * 64],
}
REPORT: dict[str, Any] = {
    "steps": 40,
    "planned_steps": 100,
    "stopped_early": "no better in 3 evaluations",
    "saved_step": 20,
    "first_loss": 1.25,
    "last_loss": 0.5,
    "seconds": 61.4,
    "names_per_second": 700.0,
    "best": {"step": 20, "at_1": 0.75},
    "evaluations": [
        {"step": step, "at_1": at_1, "sets": {"dev|set": {"at_1": at_1, "at_5": 0.9, "mrr": 0.8}}, "seconds": 1.0}
        for step, at_1 in ((0, 0.5), (10, 0.6), (20, 0.75), (40, 0.7))
    ],
    "data": {"pairs": 12_345, "names": 6_789, "concepts": 1_000},
    "versions": {"torch": "2.0"},
    "log": [{"step": 1, "loss": 1.25}],
}
PARENTS = (Parent(kind="pairs", fingerprint="b" * 64),)


def save(folder: Path, family: str = "bert", **options: Any) -> Path:
    """A trained encoder's folder below ``folder``, called `ODD`."""
    pooling = options.pop("pooling", "mean")
    model = load_packed(write_tiny(folder / "base", family), pooling=pooling, max_tokens=MAX_TOKENS)
    given = {"name": ODD, "config": CONFIG, "parents": PARENTS, "seed": 3, "files": {"train.json": json.dumps(REPORT)}}
    with torch.no_grad():
        next(model.parameters()).add_(0.01)
    save_encoder(model, folder / "encoder", **{**given, **options})
    return folder / "encoder"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be changed."""
    return save(tmp_path_factory.mktemp("card"))


def read_card(folder: Path) -> tuple[dict[str, Any], str]:
    """(head as the hub reads it, text) of a card."""
    card = ModelCard((folder / "README.md").read_text("utf-8"))
    data: Any = card.data
    return data.to_dict(), card.text


def row(text: str, label: str) -> str:
    """The second cell of the row of a table that begins with this label."""
    [line] = [line for line in text.splitlines() if line.startswith(f"| {label} |")]
    return line.split(" | ")[1].removesuffix(" |")


def test_head_is_yaml_of_what_is_known(trained: Path) -> None:
    head, _ = read_card(trained)
    assert head == {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["onoma", "feature-extraction", "biomedical", "entity-linking", "sentence-transformers"],
        "language": ["en", "no"],  # which plain YAML would read as false
    }


def test_everything_in_the_card_is_in_the_folder(trained: Path) -> None:
    _, text = read_card(trained)
    folder = locate_encoder(trained)
    assert row(text, "trained from") == "base"
    assert row(text, "parameters") == f"{count_parameters(trained):,}"
    assert row(text, "SHA-256 of the weights") == f"`{folder.weights_sha256}`"
    assert row(text, "longest name").startswith(f"{MAX_TOKENS} tokens")
    assert row(text, "pairs") == "12,345"
    assert row(text, "fingerprint of the pairs") == f"`{'b' * 64}`"
    assert row(text, "fingerprint of the terminology") == f"`{'c' * 64}`"
    assert row(text, "recipe") == "sapbert-paper, with other settings of seed, steps"
    assert row(text, "steps") == "40 of 100"
    assert row(text, "weights of step") == "20"
    assert row(text, "loss, first and last ten steps") == "1.2500, 0.5000"
    assert row(text, "learning\\_rate") == "2e-05"
    assert row(text, "loss.positive\\_scale") == "2.0"
    assert row(text, "decay\\_all") == "no"
    assert "minutes" not in text
    scores = re.findall(r"^\| (\d+) \| dev\\\|set \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert scores == [("0", "50.0", "90.0"), ("20", "75.0", "90.0"), ("40", "70.0", "90.0")]


def test_what_pairs_were_made_with_is_told_of_them_and_not_of_the_recipe(tmp_path: Path) -> None:
    of_recipe = {**TRAINING, "ambiguous": "keep", "include_suppressed": True, "max_pairs_per_concept": 50}
    merged = [{"ambiguous": "mark", "include_suppressed": False, "max_pairs_per_concept": 3}, {"ambiguous": "mark"}]
    config = {**CONFIG, "training": of_recipe, "pairs": {"max_tokens": MAX_TOKENS, "merged": merged}}
    _, text = read_card(save(tmp_path, config=config))
    assert row(text, "merged from") == "2 sets of pairs"
    assert row(text, "set 1: equal names of different concepts") == "mark"
    assert row(text, "set 1: pairs per concept, at most") == "3"
    assert row(text, "set 1: suppressed names too") == "no"
    assert row(text, "set 2: equal names of different concepts") == "mark"
    for of_pairs in ("ambiguous", "include\\_suppressed", "max\\_pairs"):
        assert f"| {of_pairs}" not in text
    _, text = read_card(save(tmp_path / "of no pairs", config={"training": of_recipe}))
    assert row(text, "ambiguous") == "keep"


def test_a_copy_says_how_names_are_prepared_as_well(tmp_path: Path) -> None:
    training = {**TRAINING, "normalisation": "loose"}
    own = save(tmp_path, config={**CONFIG, "training": training})
    export_encoder(own, tmp_path / "copy")
    for folder in (own, tmp_path / "copy"):
        _, text = read_card(folder)
        assert "`loose`" in row(text, "names are prepared by")
        assert 'onoma.normalise(name, "loose")' in text
        assert encoder_info(folder).normalisation == "loose"
    export_encoder(write_tiny(tmp_path / "untrained", "bert"), tmp_path / "u")
    assert encoder_info(tmp_path / "u").normalisation is None


def test_no_path_of_this_machine(trained: Path) -> None:
    text = (trained / "README.md").read_text()
    assert "/somewhere" not in text
    assert str(trained.parent) not in text


def test_the_same_folder_gives_the_same_card(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "encoder")
    before = (trained / "README.md").read_bytes()
    add_to_card(tmp_path / "encoder")
    assert (tmp_path / "encoder" / "README.md").read_bytes() == before
    manifest = verify_artifact(tmp_path / "encoder")
    assert (manifest.config, manifest.parents, manifest.seed) == (CONFIG, PARENTS, 3)
    assert manifest.files == read_manifest(trained).files


def test_tables_have_as_many_cells_as_columns_whatever_the_names(trained: Path) -> None:
    _, text = read_card(trained)
    assert text.count("```") % 2 == 0
    columns = 0
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        if cells and columns:
            assert cells == columns, line
        columns = cells


@pytest.mark.parametrize("name", ["a\nb: c\n---\n", "- x", "\0\x1b[2J", "{{x}}", "lone \ud800", "名前", "# head"])
def test_names_break_neither_yaml_nor_markdown(tmp_path: Path, name: str) -> None:
    folder = save(tmp_path, name=name)
    head, text = read_card(folder)
    assert head["pipeline_tag"] == "sentence-similarity"
    headings = [line for line in text.splitlines() if line.startswith("# ")]
    assert len(headings) == 1
    assert not any(character in text for character in "\0\x1b")
    verify_artifact(folder)
    assert open_encoder(folder).name == name


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_code_in_the_card_gives_our_vectors(tmp_path: Path, pooling: str) -> None:
    """Every piece of code is run as it stands."""
    folder = save(tmp_path, name="plain", pooling=pooling)
    _, text = read_card(folder)
    pieces = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(pieces) == 3
    expected = open_encoder(folder).encode(["heart attack", "myocardial infarction"])
    for piece in pieces:
        place: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the libraries about themselves
            exec(piece.replace('"path/to/plain"', repr(str(folder))), place)
        np.testing.assert_allclose(np.asarray(place["vectors"]), expected, atol=1e-5)


def test_the_card_of_a_lower_precision_alone_opens_it(tmp_path: Path) -> None:
    """As linkers have it that were built in one."""
    folder = save(tmp_path, name="whole", pooling="mean")
    add_precisions(folder, ["int8"], [f"heart {number}" for number in range(120)], threads=1)
    export_encoder(locate_encoder(folder, precision="int8"), tmp_path / "alone", onnx_only=True)
    _, text = read_card(tmp_path / "alone")
    (piece,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    place: dict[str, Any] = {}
    exec(piece.replace('"path/to/whole"', repr(str(tmp_path / "alone"))), place)
    expected = open_encoder(folder, precision="int8").encode(["heart attack", "myocardial infarction"])
    np.testing.assert_allclose(place["vectors"], expected, atol=1e-6)
    assert "in place of fp32" in text
    assert "beside the one in fp32" not in text
    assert "beside the one in fp32" in read_card(folder)[1]


def test_what_others_cannot_open_is_said(tmp_path: Path) -> None:
    head, text = read_card(save(tmp_path, pooling="mean-all"))
    assert "library_name" not in head
    assert "sentence-transformers" not in head["tags"]
    assert (
        "sentence-transformers does not open it: it does not know its pooling. transformers gives the vectors" in text
    )


def test_a_card_of_ones_own_stays_until_it_is_written_anew(tmp_path: Path) -> None:
    folder = save(tmp_path, files={"README.md": "mine"})
    assert (folder / "README.md").read_text() == "mine"


def test_an_untrained_encoder_claims_nothing(tmp_path: Path) -> None:
    write_tiny(tmp_path / "base", "bert")
    export_encoder(tmp_path / "base", tmp_path / "out")
    head, text = read_card(tmp_path / "out")
    assert "biomedical" not in head["tags"]
    assert "license" not in head
    assert "base_model" not in head
    assert "trained on" not in text
    assert "trained from" not in text
    assert "How it was trained" not in text
    assert "No score was recorded" in text


def test_a_base_of_the_catalogue_is_named_with_its_licence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onoma.encoders import catalogue

    package = tmp_path / "onoma_card_package"
    write_tiny(package / "model", "bert")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    known = catalogue.CatalogueEncoder(
        name="small",
        hub_id="somebody/small",
        licence="Apache-2.0",
        package="p",
        module="onoma_card_package",
        subfolder="model",
        weights_sha256=locate_encoder(package / "model").weights_sha256,
        extra="quickstart",
    )
    monkeypatch.setattr(catalogue, "CATALOGUE", (known,))
    export_encoder("small", tmp_path / "copy")
    head, text = read_card(tmp_path / "copy")
    assert (head["base_model"], head["license"]) == ("somebody/small", "apache-2.0")
    assert "those of somebody/small, licence Apache-2.0, unchanged" in text
    model = load_packed(tmp_path / "copy")
    with torch.no_grad():
        next(model.parameters()).add_(0.01)
    save_encoder(model, tmp_path / "first", config={"training": {"base": "copy"}})
    save_encoder(load_packed(tmp_path / "first"), tmp_path / "again")
    head, text = read_card(tmp_path / "first")
    assert head["base_model"] == "somebody/small"
    assert "license" not in head  # the base's licence is not the trained one's
    assert row(text, "trained from") == "small (somebody/small), licence Apache-2.0"
    assert locate_encoder(tmp_path / "again").origin == locate_encoder(tmp_path / "first").origin
    # A run of which nothing was kept (keep=best) began with "first", and its weights are those.
    save_encoder(load_packed(tmp_path / "first"), tmp_path / "kept", config={"training": {"base": "first"}})
    assert row(read_card(tmp_path / "kept")[1], "trained from") == "first"


# ---- results, terminologies, licence


def result_of(fingerprint: str, **more: Any) -> dict[str, Any]:
    return {
        "task": "ncbi-disease",
        "split": "test",
        "acc@1": 0.905,
        "acc@5": 0.952,
        "confidence_interval_95": {"acc@1": [0.886, 0.923], "acc@5": [0.938, 0.965]},
        "n_queries": 960,
        "n_dictionary": 73_024,
        "protocol": "biosyn: the rules",
        "model": {"kind": "encoder", "name": "x", "fingerprint": fingerprint},
        **more,
    }


def test_scores_of_this_encoder_and_no_other(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(trained, folder)
    add_precisions(folder, ["int8"], [f"{a} {b}" for a in range(12) for b in range(12)], threads=1)
    fingerprints = {"fp32": locate_encoder(folder).fingerprint}
    fingerprints["int8"] = locate_encoder(folder, precision="int8").fingerprint
    for precision, fingerprint in fingerprints.items():
        (tmp_path / precision).mkdir()
        (tmp_path / precision / "results.json").write_text(json.dumps(result_of(fingerprint)))
    add_to_card(folder, results=[tmp_path / "fp32", tmp_path / "int8" / "results.json"])
    verify_artifact(folder)
    _, text = read_card(folder)
    expected = "biosyn | 960 | 73,024 | 90.5 [88.6, 92.3] | 95.2 [93.8, 96.5] |"
    for precision in ("fp32", "int8"):
        line = f"| ncbi-disease, test | {precision} | {expected}"
        assert line.replace("[", "\\[").replace("]", "\\]") in text
    assert row(text, "int8").endswith("kB")
    by_annotator = {"column": "annotator", "values": {"Jane Doe": {"n_queries": 960, "acc@1": 0.905}}}
    with_ngrams = result_of(fingerprints["fp32"], **{"acc@1": 0.911, "by_group": by_annotator})
    with_ngrams["model"]["sparse_weight"] = "0.1"
    (tmp_path / "ngrams.json").write_text(json.dumps(with_ngrams))
    add_to_card(folder, results=[tmp_path / "ngrams.json"])
    _, text = read_card(folder)
    assert "| ncbi-disease, test | fp32 | biosyn, n-grams added | 960 | 73,024 | 91.1" in text
    assert "| ncbi-disease, test | fp32 | biosyn | 960 | 73,024 | 90.5" in text, "which stays"
    kept = [file for file in (folder / "results").iterdir() if "Jane" not in file.read_text()]
    assert len(kept) == len(list((folder / "results").iterdir())) == 3, "what is published names nobody"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(result_of("d" * 64)))
    with pytest.raises(MismatchError, match="another encoder"):
        add_to_card(folder, results=[other])
    other.write_text(json.dumps(result_of("d" * 64, model={"kind": "linker", "name": "x", "fingerprint": "d" * 64})))
    with pytest.raises(MismatchError, match="measured with a linker"):
        add_to_card(folder, results=[other])
    other.write_text("[]")
    with pytest.raises(InputError, match="no result of a benchmark"):
        add_to_card(folder, results=[other])
    other.write_text(json.dumps({**result_of(fingerprints["fp32"]), "task": "../../x"}))
    with pytest.raises(InputError, match="no result of a benchmark"):
        add_to_card(folder, results=[other])
    for change, said in (
        ({"confidence_interval_95": 3}, "confidence_interval_95: "),
        ({"confidence_interval_95": {"acc@1": [1]}}, r"confidence_interval_95\.acc@1"),
        ({"n_queries": "many"}, "n_queries: "),
        ({"acc@1": 90.5}, "acc@1: "),
        ({"acc@5": None}, "acc@5: "),
        ({"doubts": 1}, "doubts: "),
    ):
        other.write_text(json.dumps({**result_of(fingerprints["fp32"]), **change}))
        with pytest.raises(InputError, match=rf"no result of a benchmark \({said}"):
            add_to_card(folder, results=[other])


@pytest.mark.parametrize(
    ("change", "said"),
    [({"name": None}, "name"), ({"weights_sha256": 1.5}, "weights_sha256"), ({"origin": {"base": 3}}, "origin")],
)
def test_an_encoder_json_of_another_form_is_refused(
    trained: Path, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(trained, folder)
    about = json.loads((folder / "encoder.json").read_text())
    (folder / "encoder.json").write_text(json.dumps({**about, **change}))
    refit(folder)
    with pytest.raises(DamagedArtifactError, match=f"does not describe an encoder: {said} is missing"):
        locate_encoder(folder)


def test_results_of_another_format_are_refused(trained: Path, tmp_path: Path) -> None:
    text = json.dumps(result_of(locate_encoder(trained).fingerprint))
    for version in (RESULTS_FORMAT - 1, RESULTS_FORMAT + 1):
        folder = tmp_path / str(version)
        with write_artifact(folder, RESULTS_KIND, format_version=version) as aside:
            (aside / "results.json").write_text(text)
        for given in (folder, folder / "results.json"):
            with pytest.raises(ArtifactError, match=f"format {version}"):
                add_to_card(trained, results=[given])


def test_what_it_was_trained_on_and_its_licence(trained: Path, tmp_path: Path) -> None:
    mondo = {"source": "MON|DO", "format": "obo", "source_files": {"mondo.obo": "e" * 64}, "licence": "CC-BY-4.0"}
    snomed = {
        "source": "SNOMEDCT_US", "name": "SNOMED CT, US Edition", "version": "2026_03", "restriction_level": "9",
        "citation": "IHTSDO",
    }  # fmt: skip
    mesh = {"source": "MSH", "restriction_level": "0"}
    umls = {"source": "2026AA", "format": "umls", "usual_licence": "terms", "source_vocabularies": [mesh, snomed]}
    folder = tmp_path / "encoder"
    pairs = {"mentions": {"in_all": 1_234}}
    config = {
        "training": {"steps": 1},
        "origins": [umls, mondo],
        "pairs": pairs,
        "trained_mentions": ["a" * 64, "b" * 64],
    }
    save_encoder(load_packed(trained), folder, config=config)
    _, text = read_card(folder)
    assert "### Names of MON\\|DO" in text
    assert "### Names of 2026AA" in text
    assert row(text, "SHA-256 of mondo.obo") == f"`{'e' * 64}`"
    assert row(text, "annotated mentions read") == "1,234"
    assert row(text, "sets of annotated mentions that it, its base or its teacher learned") == "2"
    assert "| licence | CC-BY-4.0 |" in text
    assert "| licence | not said; usually terms |" in text
    assert "| SNOMEDCT\\_US | 2026\\_03 | 9 | SNOMED CT, US Edition | IHTSDO |" in text
    assert "| MSH |  | 0 |  |  |" in text
    assert "**Restricted:** SNOMEDCT\\_US (level 9): see section 12" in text
    assert encoder_info(folder).learnt_from == [umls, mondo]
    add_to_card(folder, licence="MIT")
    add_to_card(folder)
    head, text = read_card(folder)
    assert head["license"] == "mit"
    assert "### Names of 2026AA" in text
    add_to_card(folder, licence="mine: ask me")
    head, _ = read_card(folder)
    assert (head["license"], head["license_name"]) == ("other", "mine: ask me")
    with pytest.raises(ConfigError, match="not a folder that you wrote with Onoma"):
        add_to_card(trained.parent / "base")
    add_to_card(folder, licence=" ")
    card = (folder / "README.md").read_text("utf-8")
    assert "license" not in card
    assert "mine" not in card


def test_transformers_loads_the_folder(trained: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(trained), AutoModel.from_pretrained(trained)
    tokens = tokenizer(["fever", "heart attack"], padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        states = model(**tokens).last_hidden_state
    real = tokens["attention_mask"][:, :, None]
    vectors = (states * real).sum(1) / real.sum(1)
    expected = open_encoder(trained).encode(["fever", "heart attack"], unit_length=False)
    np.testing.assert_allclose(vectors.numpy(), expected, atol=1e-5)


def test_an_edited_card_is_no_damage_but_told_by_verifying(tmp_path: Path) -> None:
    folder = save(tmp_path)
    before = open_encoder(folder).encode(["fever"])
    (folder / "README.md").write_text("language: en\n")
    np.testing.assert_array_equal(open_encoder(folder).encode(["fever"]), before)
    for told in (lambda: verify_artifact(folder), lambda: add_to_card(folder, licence="mit")):
        with pytest.raises(DamagedArtifactError, match=r"README\.md is another.*all other files are as .*--force"):
            told()
    assert (folder / "README.md").read_text() == "language: en\n"
    add_to_card(folder, licence="mit", overwrite=True)
    assert read_card(folder)[0]["license"] == "mit"
    verify_artifact(folder)
    (folder / "README.md").write_text("language: en\n")
    (folder / "tokenizer.json").write_text("{}")  # after the card in the manifest
    with pytest.raises(DamagedArtifactError, match=r"tokenizer\.json"):
        verify_artifact(folder)


def test_a_card_that_is_missing_is_written_anew_on_request(tmp_path: Path) -> None:
    folder = save(tmp_path)
    (folder / "README.md").unlink()
    open_encoder(folder)
    with pytest.raises(DamagedArtifactError, match=r"README\.md is missing.*--force"):
        add_to_card(folder)
    add_to_card(folder, overwrite=True)
    verify_artifact(folder)


def test_the_licence_of_weights_that_are_anothers_stays(tmp_path: Path) -> None:
    made = export_encoder("all-MiniLM-L6-v2", tmp_path / "copy", onnx_only=True).path
    for licence in ("mit", ""):
        with pytest.raises(ConfigError, match=r"weights of .* are those of .*MiniLM.*licence: Apache-2\.0"):
            add_to_card(made, licence=licence)
    add_to_card(made, licence="Apache-2.0")
    assert read_card(made)[0]["license"] == "apache-2.0"


@pytest.mark.parametrize(
    ("licence", "on_the_hub"),
    [
        ("GPL-3.0-only", "gpl-3.0"),
        ("LGPL-2.1-or-later", "lgpl-2.1"),
        ("CC-BY-4.0", "cc-by-4.0"),
        ("LicenseRef-x", "other"),
    ],
)
def test_licences_as_the_hub_calls_them(tmp_path: Path, licence: str, on_the_hub: str) -> None:
    head, text = read_card(save(tmp_path, licence=licence))
    assert head["license"] == on_the_hub
    assert head.get("license_name") == (licence if on_the_hub == "other" else None)
    assert f"| {licence} |" in text


def test_what_a_base_had_learnt_is_told(tmp_path: Path) -> None:
    """Whoever measures it must know that it has seen a benchmark's mentions."""
    before = {"corpora": ["BC5CDR"], "vocabularies": ["MeSH"]}
    for number, (more, whose) in enumerate([({}, "its base"), ({"teacher": "large"}, "its base or teacher")]):
        _, text = read_card(save(tmp_path / str(number), config={**CONFIG, "before": before, **more}))
        assert f"| {whose}: annotated mentions of | BC5CDR |" in text
        assert f"| {whose}: names of | MeSH |" in text


def test_a_copy_in_python_tells_what_its_source_tells(tmp_path: Path) -> None:
    folder = save(tmp_path)
    for options in ({}, {"onnx_only": True}):
        copy = export_encoder(folder, tmp_path / f"copy-{len(options)}", **options).path
        assert read_manifest(copy).config == read_manifest(folder).config
        assert read_manifest(copy).parents == read_manifest(folder).parents
        assert "## How it was trained" in read_card(copy)[1]
        assert "12,345" in read_card(copy)[1]


def test_languages_of_merged_pairs_are_told_if_all_say_them(tmp_path: Path) -> None:
    for number, (second, expected) in enumerate([(["de", "en"], ["en", "de"]), (None, None)]):
        pairs = {"merged": [{"languages": ["en"]}, {"languages": second}]}
        folder = save(tmp_path / str(number), config={**CONFIG, "pairs": pairs})
        assert read_card(folder)[0].get("language") == expected


def test_weights_in_half_precision_are_computed_with_in_fp32_by_all(tmp_path: Path) -> None:
    """Their vectors are the same then, as the card says."""
    from safetensors.torch import load_file, save_file
    from transformers import AutoModel

    base = write_tiny(tmp_path / "base", "bert")
    weights = {name: weight.half() for name, weight in load_file(base / "model.safetensors").items()}
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps({**config, "torch_dtype": "float16"}))
    made = export_encoder(base, tmp_path / "made").path
    automatic: Any = AutoModel
    assert automatic.from_pretrained(made).dtype == torch.float32
    kept = json.loads((made / "config.json").read_text())
    assert (kept["dtype"], kept.get("torch_dtype")) == ("float32", None)


def test_padding_comes_behind_whatever_the_source_says(tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "base", "bert")
    file = base / "tokenizer_config.json"
    said = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**said, "padding_side": "left"}))
    made = export_encoder(base, tmp_path / "made").path
    assert json.loads((made / "tokenizer_config.json").read_text())["padding_side"] == "right"
