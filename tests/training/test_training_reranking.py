from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file

from onoma.artifacts import open_artifact, verify_artifact
from onoma.encoders.cross_encoder_model import new_cross_encoder
from onoma.encoders.folders import Origin
from onoma.encoders.reranker_card import reranker_card
from onoma.errors import ArtifactExistsError, ConfigError, InputError, OnomaError
from onoma.linking import Link, Linker, add_reranker, build_linker
from onoma.linking.reranking import Reranked, Reranker
from onoma.linking.settings import Stage
from onoma.pairs.mentions import mentions_fingerprint
from onoma.training.development import PARTLY_LEARNT_TOO
from onoma.training.reranking import train_reranker
from onoma.training.reranking_config import RerankingConfig, RerankingRecipe
from onoma.training.reranking_data import OwnNames, find_candidates
from onoma.training.reranking_step import RerankingStepReport, make_optimiser
from tiny import WORDS, make_terminology, tiny_encoder
from tiny_rerankers import TableLinker, links, write_reranker

# The name spelt most alike is always a wrong one, and the right one is spelt otherwise: letters mislead.
MISLEADING = TableLinker(
    {
        f"{word} x": links((f"{word}-1", f"{word} y"), (f"{word}-2", f"{word} xx"), (word, f"ill {word}"))
        for word in WORDS
    }
)
MENTIONS = pl.DataFrame({"mention": list(MISLEADING.answers), "concept_id": WORDS})


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert", extra_tokens=[*WORDS, "ill", "cold"], weight_std=0.1)


def config_for(base: Path, **changes: object) -> RerankingConfig:
    values = {
        "base": str(base),
        "steps": 10,
        "batch_mentions": 4,
        "max_tokens": 32,
        "max_name_tokens": 10,
        "learning_rate": 3e-3,
        "head_learning_rate": 1e-2,
        "own_names": "keep",
        "dropout": 0.1,
        "precision": "fp32",
        "device": "cpu",
    }
    return RerankingConfig.model_validate({**values, **changes})


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return {**load_file(folder / "model" / "model.safetensors"), **load_file(folder / "head.safetensors")}


def first_codes(answers: Sequence[Reranked]) -> list[str]:
    return [answer.links[0].concept_id for answer in answers]


def test_it_learns_what_letters_do_not_say(base: Path, tmp_path: Path) -> None:
    steps: list[RerankingStepReport] = []
    config = config_for(base, steps=60, dropout=0.0, keep="best", evaluate_steps=20)
    report = train_reranker(config, MISLEADING, MENTIONS, tmp_path / "r", development=[MENTIONS], on_step=steps.append)
    assert report.last_loss < 0.2 * report.first_loss
    assert steps[-1].right_first == 1.0
    assert report.best is not None
    assert report.best["at_1"] == 1.0
    assert report.data["development"][0]["linker"]["at_1"] == 0.0
    reranker = Reranker.open(tmp_path / "r", threads=1)
    mentions = list(MISLEADING.answers)
    assert first_codes(reranker.rerank(mentions, MISLEADING.link(mentions))) == WORDS
    assert 0 < reranker.about.weight <= 1
    assert (reranker.about.depth, reranker.about.contexts, reranker.about.base) == (10, False, "bert")


def test_random_numbers_are_not_chosen(base: Path, tmp_path: Path) -> None:
    """Where no step made anything better, what was drawn before the first is not kept for having been lucky."""
    answers = {m: links((m[:-2], m), (f"{m[:-2]}-1", f"{m} y")) for m in MISLEADING.answers}
    right_first = TableLinker({**answers, "?": links(("a", "a x"))})
    mentions = pl.DataFrame({"mention": [*answers, "?"], "concept_id": [*WORDS, "none"]})
    config = config_for(base, steps=1, keep="best", evaluate_steps=1)
    report = train_reranker(config, right_first, mentions, tmp_path / "r", development=[mentions])
    alone = report.data["development"][0]["linker"]["at_1"]
    assert [report.evaluations[0][key] for key in ("step", "at_1")] == [0, alone]
    assert report.saved_step == 0
    about = Reranker.open(tmp_path / "r").about
    assert (about.weight, about.nil_score) == (0.0, None)


def test_the_folder_says_where_it_comes_from(base: Path, tmp_path: Path) -> None:
    report = train_reranker(config_for(base, steps=2), MISLEADING, MENTIONS, tmp_path / "r")
    manifest = open_artifact(tmp_path / "r", "reranker")
    assert [parent.kind for parent in manifest.parents] == ["encoder"]  # the table has no fingerprint
    assert manifest.config["trained_mentions"] == [mentions_fingerprint(MENTIONS["mention"])]
    assert manifest.seed == 0
    written = json.loads((tmp_path / "r" / "train.json").read_text())
    assert [line["loss"] for line in written["log"]] == [line["loss"] for line in report.log]
    assert written["data"]["mentions"] == len(WORDS)
    assert not (tmp_path / "r.run").exists()
    assert Reranker.open(tmp_path / "r").about.weight == 0.5
    train_reranker(config_for(base, steps=2, weight=0.25), MISLEADING, MENTIONS, tmp_path / "s")
    assert Reranker.open(tmp_path / "s").about.weight == 0.25


def test_the_card_says_what_the_folder_holds(base: Path, tmp_path: Path) -> None:
    config = config_for(base, steps=2, depth=3, weight=0.25)
    train_reranker(config, MISLEADING, MENTIONS, tmp_path / "odd | *name*", development={"a | b": MENTIONS})
    (folder,) = tmp_path.iterdir()
    card = ModelCard.load(folder / "README.md")
    assert (card.data.pipeline_tag, card.data.base_model) == ("text-ranking", None)
    assert {"reranker", "entity-linking"} <= set(card.data.tags or [])
    rows = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", card.text, re.MULTILINE))
    parameters = sum(tensor.numel() for tensor in weights(folder).values())
    assert rows["parameters"] == f"{parameters:,}"
    assert (rows["base"], rows["candidates of a mention"]) == (base.name, "the first 3")
    assert (rows["share of the final score"], rows["no such concept"]) == ("0.25", "is never its answer")
    assert (rows["mentions"], rows["candidates"]) == (str(len(WORDS)), str(3 * len(WORDS)))
    assert "| 2 | a \\| b | " in card.text
    assert str(tmp_path) not in card.content
    assert "\n# odd \\| \\*name\\*\n" in card.text


ORIGINS = {
    "of the hub": (Origin(hub_id="a/b", licence="mit"), "tiny (a/b), licence mit", None),
    "trained from one of the hub": (
        Origin(base="b", base_hub_id="a/b", base_licence="mit"),
        "tiny",
        "a/b, licence mit",
    ),
    "unknown": (Origin(), "tiny", None),
}


@pytest.mark.parametrize("case", ORIGINS)
def test_the_card_tells_the_base_from_what_that_was_trained_from(case: str, base: Path, tmp_path: Path) -> None:
    origin, said, ancestor = ORIGINS[case]
    write_reranker(tmp_path / "r", base)
    about = Reranker.open(tmp_path / "r").about
    card = reranker_card(about, origin, parameters=1, config={}, report={}, parents=(), seed=None)
    rows = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", card, re.MULTILINE))
    assert (rows["base"], rows.get("which goes back to")) == (said, ancestor)
    assert ('base_model: "a/b"' in card) == (case != "unknown")


def test_a_card_goes_into_the_linker_unless_it_was_edited(linker: Linker, base: Path, tmp_path: Path) -> None:
    write_reranker(tmp_path / "r", base)
    copied = shutil.copytree(linker.path, tmp_path / "copied")
    add_reranker(copied, tmp_path / "r")
    verify_artifact(copied)
    verify_artifact(copied / "reranker")
    (tmp_path / "r" / "README.md").write_text("mine", encoding="utf-8")
    add_reranker(copied, tmp_path / "r")
    verify_artifact(copied)
    assert not (copied / "reranker" / "README.md").exists()


def test_a_context_decides_between_homonyms(base: Path, tmp_path: Path) -> None:
    homonyms = [Link("D1", "ill heart", "cold", 0.9, 1), Link("D2", "ill lung", "cold", 0.9, 2)]
    linker = TableLinker({"cold": homonyms})
    table = pl.DataFrame(
        {
            "mention": ["cold"] * 4,
            "concept_id": ["D1", "D1", "D2", "D2"],
            "context": ["heart cold", "a cold of the heart", "lung cold", "a cold of the lung"],
        }
    )
    config = config_for(base, steps=60, dropout=0.0, max_name_tokens=6, keep="best")
    report = train_reranker(config, linker, table, tmp_path / "r", development=[table])
    assert report.best is not None
    assert report.best["at_1"] == 1.0
    reranker = Reranker.open(tmp_path / "r", threads=1)
    contexts = ["the heart is cold", "the lung is cold"]
    assert first_codes(reranker.rerank(["cold"] * 2, [homonyms] * 2, contexts=contexts)) == ["D1", "D2"]
    assert reranker.uses_contexts


def test_pairs_taken_through_the_model_a_few_at_a_time_give_the_same_gradient(base: Path, tmp_path: Path) -> None:
    for name, chunk_names in (("whole", None), ("chunks", 3)):
        config = config_for(base, steps=2, dropout=0.0, learning_rate=1e-5, chunk_names=chunk_names)
        train_reranker(config, MISLEADING, MENTIONS, tmp_path / name)
    whole, chunks = weights(tmp_path / "whole"), weights(tmp_path / "chunks")
    # Adam makes much of a gradient's sign even where that is rounding.
    assert all(torch.allclose(whole[key], chunks[key], atol=5e-6) for key in whole if key != "head.weight")
    assert torch.allclose(whole["head.weight"], chunks["head.weight"], atol=1e-3)


def test_biases_and_norms_do_not_decay_and_the_head_has_its_own_rate(base: Path) -> None:
    config = config_for(base, learning_rate=0.1, head_learning_rate=0.2, weight_decay=0.5)
    model, _ = new_cross_encoder(str(base), pooling="cls", max_tokens=32, dropout=0.0, contexts=False)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimiser = make_optimiser(config, model)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)  # of which Adam makes nothing, so that what is left is decay
    optimiser.step()
    for name, weight in model.named_parameters():
        decays = weight.requires_grad and not (name.endswith(".bias") or "LayerNorm" in name)
        factor = 1 - 0.5 * (0.2 if name == "head.weight" else 0.1 * decays)
        torch.testing.assert_close(weight.detach(), factor * before[name], msg=name)


def test_mentions_that_teach_nothing_are_left_out(base: Path, tmp_path: Path) -> None:
    linker = TableLinker(
        {
            "right": links(("A", "heart"), ("B", "lung")),
            "none": links(("A", "heart")),
            "all": links(("A|C", "heart"), ("B", "lung")),
            "empty": [],
        }
    )
    table = pl.DataFrame(
        {"mention": ["right", "none", "all", "right", "empty"], "concept_id": ["A", "X", "C| B", "A", "A"]}
    )
    events: list[str] = []
    report = train_reranker(config_for(base, steps=1), linker, table, tmp_path / "r", on_event=events.append)
    assert report.data["mentions"] == 1
    assert report.data["candidates"] == 2
    assert events[0].startswith("4 distinct mentions, 1 time with candidates to learn from; 2 times none")
    with pytest.raises(InputError, match="there is nothing to learn"):
        train_reranker(config_for(base, steps=1), linker, table[1:3], tmp_path / "s")


def test_own_names_are_hidden_from_their_mentions_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_terminology(tmp_path / "t", {"A": ["Cold", "coryza"], "B": ["cold", "chill"], "C": ["fever", "pyrexia"]})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    table = pl.DataFrame({"mention": ["COLD", "feverish", "fever"], "concept_id": ["A", "C", "C"]})

    def found(own_names: OwnNames) -> list[tuple[str, list[str]]]:
        """Each mention with the names that were found for it."""
        candidates = find_candidates(linker, table, depth=6, text="matched", own_names=own_names)
        bounds = itertools.pairwise(candidates.offsets.tolist())
        return [
            (mention, candidates.names[begin:end])
            for mention, (begin, end) in zip(candidates.mentions, bounds, strict=True)
        ]

    kept, hidden = found("keep"), found("hide")
    assert [(mention, names[0]) for mention, names in kept] == [
        ("COLD", "Cold"),
        ("feverish", "fever"),
        ("fever", "fever"),
    ]
    assert kept[0][1][:2] == ["Cold", "cold"]  # homonyms
    assert [mention for mention, _ in hidden] == ["COLD", "feverish", "fever"]
    assert {"coryza", "chill"} <= set(hidden[0][1])
    assert not {"Cold", "cold"} & set(hidden[0][1])
    assert hidden[1] == kept[1]  # another mention's own name is not hidden from it
    assert "pyrexia" in hidden[2][1]
    assert "fever" not in hidden[2][1]
    assert found("both") == [*kept, hidden[0], hidden[2]]
    told: list[tuple[int, int | None, str]] = []
    monkeypatch.setattr("onoma.training.reranking_data._MENTIONS_AT_ONCE", 2)
    find_candidates(linker, table, depth=6, text="both", own_names="both", progress=lambda *of: told.append(of))
    assert told == [(done, 5, "finding candidates") for done in (2, 3, 4, 5)]  # two names are hidden by themselves


@pytest.fixture(scope="module")
def linker(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Linker:
    folder = tmp_path_factory.mktemp("linker")
    names = {word: [f"ill {word}", f"{word} cold", "cold"] for word in WORDS}
    make_terminology(folder / "t", {**names, "lung-2": ["Ill-Lung x", "cold lung"]})
    return build_linker(folder / "t", base, folder / "linker")


def with_stages(linker: Linker, *stages: Stage) -> Linker:
    return linker.tuned(linker.settings.replaced(stages=stages))


def test_candidates_know_which_of_them_look_up_found(linker: Linker) -> None:
    table = pl.DataFrame({"mention": ["cold", "ILL heart", "ill-heart", "x"], "concept_id": ["heart"] * 4})
    for stages, expected in (
        (("exact", "dense"), [6, 1, 0, 0]),
        (("exact", "loose", "dense"), [6, 1, 1, 0]),
        (("dense",), [0] * 4),
    ):
        found = find_candidates(with_stages(linker, *stages), table, depth=6, text="matched")
        assert found.n_hits.tolist() == expected
        assert found.telling().n_hits.tolist() == expected[: len(found.telling())]


def test_names_that_the_looser_look_up_finds_are_hidden_too(linker: Linker, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[set[str]] = []

    def without(asked: Linker, name_rows: Any) -> Linker:
        rows = np.flatnonzero(np.isin(asked.dictionary.entry_name_rows, name_rows))
        texts = np.searchsorted(asked.dictionary.entry_offsets, rows, side="right") - 1
        hidden.append({asked.dictionary.texts[int(row)] for row in texts})
        return original(asked, name_rows)

    original = Linker.without
    monkeypatch.setattr(Linker, "without", without)
    table = pl.DataFrame({"mention": ["ill-heart", "Cold (Lung)"], "concept_id": ["heart", "lung"]})
    for stages, expected in ((("exact", "dense"), []), (("exact", "loose", "dense"), [{"ill heart"}, {"cold lung"}])):
        found = find_candidates(with_stages(linker, *stages), table, depth=9, text="matched", own_names="hide")
        assert found.n_hits.tolist() == [0, 0]
        assert hidden == expected


@pytest.mark.parametrize("stages", [("exact", "dense"), ("exact", "loose", "dense"), ("dense",)])
def test_training_measures_what_the_linker_then_does(
    base: Path, linker: Linker, tmp_path: Path, stages: tuple[Stage, ...]
) -> None:
    told = pl.DataFrame(
        {
            "mention": [f"{word} x" for word in WORDS] + [f"cold {word}" for word in WORDS],
            "concept_id": [*WORDS, *["NIL"] * len(WORDS)],
        }
    )
    development = pl.DataFrame(
        {
            "mention": ["cold"] * 3 + ["ill heart", "Ill-Lung", "ill-lung X", "heart y", "lung y", "cold y"],
            "concept_id": [*WORDS[:3], "heart", "lung", "lung-2", "heart", "lung", "NIL"],
        }
    )
    config = config_for(base, steps=12, nil=True, keep="last", own_names="both", weight=0.9)
    chosen = with_stages(linker, *stages)
    # What an earlier reranker, a prior or a threshold would make of candidates is no matter.
    counted = chosen.with_prior(np.arange(linker.n_concepts)).tuned(
        chosen.settings.replaced(stages=[*stages, "prior"], prior_weight=0.5)
    )
    report = train_reranker(config, counted, told, tmp_path / "r", development={"own": development})
    copied = shutil.copytree(linker.path, tmp_path / "linker")
    add_reranker(copied, tmp_path / "r")
    final = with_stages(Linker.open(copied), *stages, "rerank")
    answers = final.link(development["mention"], top_k=1)
    is_right = [
        (answer[0].concept_id == code) if answer else code == "NIL"
        for answer, code in zip(answers, development["concept_id"], strict=True)
    ]
    assert report.evaluations[-1]["at_1"] == pytest.approx(sum(is_right) / len(is_right))
    alone = chosen.link(development["mention"], top_k=1)
    n_right = sum(a[0].concept_id == code for a, code in zip(alone, development["concept_id"], strict=True))
    assert report.data["development"][0]["linker"]["at_1"] == pytest.approx(n_right / len(is_right))


def test_a_linker_without_names_cannot_hide_them() -> None:
    with pytest.raises(ConfigError, match="set own_names=keep"):
        find_candidates(MISLEADING, MENTIONS, depth=2, text="both", own_names="hide")


def test_mentions_are_read_from_files(base: Path, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("heart||heart x\nlung||lung x\nliver|bone||liver x|bone x\n")
    table = pl.DataFrame({"mention": ["heart x"], "concept_id": ["heart"], "sentence": ["a heart x here"]})
    table.write_csv(tmp_path / "dev.csv")
    table.write_parquet(tmp_path / "dev.parquet")
    events: list[str] = []
    config = config_for(base, steps=1)
    files = [tmp_path / "dev.csv", tmp_path / "dev.parquet"]
    report = train_reranker(
        config, MISLEADING, tmp_path / "train.txt", tmp_path / "r", development=files, on_event=events.append
    )
    assert events[0] == "train.txt: 1 composite mentions left out"
    assert [data["name"] for data in report.data["development"]] == ["dev.csv", "dev.parquet"]
    with_contexts = train_reranker(config, MISLEADING, files[0], tmp_path / "s", development=files, context="sentence")
    assert with_contexts.data["mentions"] == 1
    assert Reranker.open(tmp_path / "s").uses_contexts
    with pytest.raises(InputError, match="lines of mentions have no contexts"):
        train_reranker(config, MISLEADING, tmp_path / "train.txt", tmp_path / "t", context="sentence")
    with pytest.raises(InputError, match="there is no column 'around'"):
        train_reranker(config, MISLEADING, files[0], tmp_path / "t", context="around")


def test_what_cannot_be_is_refused_before_work_begins(base: Path, tmp_path: Path) -> None:
    def train(**changes: Any) -> None:
        settings = {"steps": 1, "base": str(base), **changes.pop("config", {})}
        train_reranker(
            config_for(Path(settings.pop("base")), **settings),
            changes.pop("linker", None),
            MENTIONS,
            tmp_path / "r",
            **changes,
        )

    with pytest.raises(ConfigError, match="keep=best needs development data"):
        train(config={"keep": "best"})
    with pytest.raises(ConfigError, match="takes a list of files"):
        train(development="dev.csv")
    with pytest.raises(ConfigError, match="two development sets are called 'development'; give tables names"):
        train(development=[MENTIONS, MENTIONS])
    with pytest.raises(ConfigError, match=r"two development sets are called 'dev\.csv'"):
        train(development=["a/dev.csv", "b/dev.csv"])
    with pytest.raises(ConfigError, match="max_tokens must be from 3 to 32"):
        train(config={"max_tokens": 64})
    with pytest.raises(ConfigError, match=r"max_tokens=16 leaves .* set max_tokens to \d+ or more"):
        train(config={"max_tokens": 16})  # the linker, which is none here, is not asked
    with pytest.raises(OnomaError, match="no/where"):
        train(config={"base": "no/where"})
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "file").touch()
    with pytest.raises(ArtifactExistsError):
        train()


def test_tables_to_develop_on_may_have_names(base: Path, tmp_path: Path) -> None:
    report = train_reranker(
        config_for(base, steps=1),
        MISLEADING,
        MENTIONS,
        tmp_path / "r",
        development={"near": MENTIONS[:3], "far": MENTIONS[3:]},
    )
    assert [(data["name"], data["mentions"]) for data in report.data["development"]] == [("near", 3), ("far", 5)]
    assert set(report.evaluations[-1]["sets"]) == {"near", "far"}


def test_development_mentions_of_concepts_that_the_linker_lacks(base: Path, linker: Linker, tmp_path: Path) -> None:
    told = pl.DataFrame({"mention": ["ill heart", "ill lung"], "concept_id": ["heart", "lung"]})
    none = told.with_columns(concept_id=pl.lit("X"))
    config = config_for(base, steps=1)
    with pytest.raises(InputError, match=r"concept of none of the development mentions.*found far: X"):
        train_reranker(config, linker, told, tmp_path / "r", development={"near": told, "far": none})
    events: list[str] = []
    some = told.with_columns(concept_id=pl.Series(["heart", "Y"]), mention=pl.Series(["Ill  heart", "bad lung"]))
    train_reranker(config, linker, told, tmp_path / "r", development={"some": some}, on_event=events.append)
    assert any(
        "some: 1 of 2 development mentions mean a concept that the linker does not have (Y)" in e for e in events
    )
    assert PARTLY_LEARNT_TOO.format("some", 1, 2) in events


def test_codes_in_another_form_are_told(base: Path, linker: Linker, tmp_path: Path) -> None:
    right = pl.DataFrame({"mention": ["ill heart", "ill lung"], "concept_id": ["heart", "lung"]})
    other = right.with_columns(concept_id=pl.Series(["heart", "LUNG"]))
    events: list[str] = []
    config = config_for(base, steps=1, own_names="keep")
    train_reranker(config, linker, other, tmp_path / "r", development={"dev": other}, on_event=events.append)
    form = "1 of their codes has another form in the linker: LUNG is lung there"
    assert {f"mentions to learn from: {form}", f"dev: {form}"} <= set(events)
    assert (
        "dev: all of these mentions are learned from: what is measured or chosen by them says nothing of others"
        in events
    )
    config = config_for(base, steps=1, own_names="keep", nil=True)
    train_reranker(config, linker, other, tmp_path / "nil", development={"dev": right}, on_event=events.append)
    assert f"mentions to learn from: {form}, and are learned as NIL" in events
    none = right.with_columns(concept_id=pl.col("concept_id").str.to_uppercase())
    with pytest.raises(InputError, match="another form in the linker: HEART is heart there"):
        train_reranker(config_for(base, steps=1), linker, right, tmp_path / "no", development={"dev": none})


def test_tables_of_other_columns_are_refused(base: Path, tmp_path: Path) -> None:
    for table in (MENTIONS.rename({"mention": "text"}), MENTIONS.with_columns(concept_id=None)):
        with pytest.raises(InputError, match="no table of mentions"):
            train_reranker(config_for(base), MISLEADING, table, tmp_path / "r")
    with pytest.raises(InputError, match="no mentions to measure on"):
        train_reranker(config_for(base), MISLEADING, MENTIONS, tmp_path / "r", development=[MENTIONS.clear()])
    for context in (pl.lit(1), pl.when(pl.col("mention") != MENTIONS["mention"][1]).then(pl.lit("here"))):
        with pytest.raises(InputError, match="field context: this is no table of mentions"):
            train_reranker(config_for(base), MISLEADING, MENTIONS.with_columns(context=context), tmp_path / "r")
    told = MENTIONS.with_columns(context=pl.col("mention"))
    with pytest.raises(InputError, match="have contexts, and the mentions to learn from have none"):
        train_reranker(config_for(base), MISLEADING, MENTIONS, tmp_path / "r", development=[told])
    with pytest.raises(InputError, match="no mentions to train on"):
        train_reranker(config_for(base), MISLEADING, MENTIONS[:0], tmp_path / "r")


def test_settings_that_rerankers_do_not_have_are_refused() -> None:
    recipe = RerankingRecipe.load("reranker", {"epochs": "1", "weight": "none"})
    assert recipe.config.keep == "best"
    for key, value in (("pooling", "mean-all"), ("languages", "en"), ("own_names", "some"), ("weight", "2")):
        with pytest.raises(ConfigError, match=key):
            RerankingRecipe.load("reranker", {key: value})
    with pytest.raises(ConfigError, match="Did you mean 'depth'"):
        RerankingRecipe.load("reranker", {"dept": "3"})


def test_of_several_processes_the_main_one_speaks(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr("onoma.training.distributed.is_main", lambda: False)
    monkeypatch.setattr("onoma.training.reranking.take_course", lambda *_, **__: None)
    train_reranker(
        config_for(base), MISLEADING, MENTIONS, tmp_path / "r",
        on_event=told.append, progress=lambda *of: told.append(of),
    )  # fmt: skip
    assert told == []


def test_a_bad_line_is_to_be_mended(base: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("heart||heart x\nlung x\n")
    with pytest.raises(InputError, match=r"bad\.txt, line 2.*correct the line") as caught:
        train_reranker(config_for(base), MISLEADING, tmp_path / "bad.txt", tmp_path / "r")
    assert "on_error" not in str(caught.value)  # nobody could choose it here


def test_what_is_settled_by_the_linker_cannot_be_set() -> None:
    with pytest.raises(ConfigError, match="languages cannot be set here: not for rerankers"):
        RerankingRecipe.load("reranker", {"languages": "en"})
