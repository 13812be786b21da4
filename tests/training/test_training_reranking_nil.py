"""Rerankers that learn that none of the candidates is meant (NIL)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from test_training_reranking import MENTIONS, MISLEADING, config_for

from onoma.artifacts import open_artifact
from onoma.errors import ConfigError, InputError
from onoma.linking import Link
from onoma.linking.reranking import Reranker
from onoma.training import reranking
from onoma.training.reranking import train_reranker
from onoma.training.reranking_data import find_candidates, without_concept
from tiny import WORDS, tiny_encoder
from tiny_rerankers import TableLinker, links


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert", extra_tokens=[*WORDS, "ill", "cold"], weight_std=0.1)


# Half of the concepts are not in the linker, which finds something else for their mentions.
KNOWN, UNKNOWN = WORDS[:4], WORDS[4:]
HALF = TableLinker(
    {
        **{f"{word} x": links((f"{word}-1", f"{word} y"), (word, f"ill {word}")) for word in KNOWN},
        **{f"{word} x": links((f"{word}-1", f"{word} y"), (f"{word}-2", f"cold {word}")) for word in UNKNOWN},
    }
)


@dataclass(frozen=True)
class Silent:
    """As another linker, and does not say which concepts it has."""

    other: TableLinker

    def link(self, mentions: Iterable[str], *, top_k: int = 5) -> list[list[Link]]:
        return self.other.link(mentions, top_k=top_k)


@pytest.fixture(scope="module")
def nil_reranker(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("nil") / "r"
    config = config_for(base, steps=60, dropout=0.0, nil=True)
    report = train_reranker(config, HALF, MENTIONS, out, development=[MENTIONS])
    assert report.data["mentions"] == len(WORDS)
    assert report.data["development"][0]["nil"] == len(UNKNOWN)
    assert report.evaluations[-1]["at_1"] == 1.0
    assert report.data["development"][0]["linker"]["at_1"] == 0.0
    return out


def test_it_learns_that_none_is_meant(nil_reranker: Path) -> None:
    reranker = Reranker.open(nil_reranker, threads=1)
    assert reranker.about.nil_score is not None
    mentions = list(HALF.answers)
    found = reranker.rerank(mentions, HALF.link(mentions))
    answers = [None if one.is_nil else one.links[0].concept_id for one in found]
    assert answers == [*KNOWN, *[None] * len(UNKNOWN)]
    assert all(len(one.links) == 2 for one in found)
    for mention, one in zip(mentions, found, strict=True):
        texts = [f"{link.matched_name}" for link in one.links]
        odds = np.exp(reranker.scores([mention] * 2, texts).astype(float))
        of_nil = np.exp(reranker.about.nil_score)
        assert one.no_concept == pytest.approx(of_nil / (of_nil + odds.sum()), abs=2e-6)


def test_the_loss_has_nil_as_one_candidate_more(base: Path, tmp_path: Path) -> None:
    config = config_for(base, steps=1, batch_mentions=8, dropout=0.0, nil=True, learning_rate=1e-30)
    report = train_reranker(config.model_copy(update={"head_learning_rate": 1e-30}), HALF, MENTIONS, tmp_path / "r")
    reranker = Reranker.open(tmp_path / "r", threads=1)
    assert reranker.about.nil_score == 0.0
    losses = []
    for (mention, answer), code in zip(HALF.answers.items(), WORDS, strict=True):
        odds = np.exp(reranker.scores([mention] * 2, [link.matched_name for link in answer]).astype(float)).tolist()
        right = [odd for odd, link in zip(odds, answer, strict=True) if link.concept_id == code] or [1.0]
        losses.append(-np.log(sum(right) / (sum(odds) + 1.0)))
    assert report.log[0]["loss"] == pytest.approx(np.mean(losses), abs=1e-5)


def test_what_was_not_learnt_is_not_in_the_folder(base: Path, tmp_path: Path) -> None:
    train_reranker(config_for(base, steps=1), MISLEADING, MENTIONS, tmp_path / "r", development=[MENTIONS])
    assert "nil_score" not in json.loads((tmp_path / "r" / "reranker.json").read_text())
    assert open_artifact(tmp_path / "r", "reranker").format_version == 1
    reranker = Reranker.open(tmp_path / "r", threads=1)
    (one,) = reranker.rerank(["heart x"], MISLEADING.link(["heart x"]))
    assert (one.no_concept, one.is_nil) == (None, False)


def test_nil_that_is_never_right_is_never_said(base: Path, tmp_path: Path) -> None:
    events: list[str] = []
    train_reranker(
        config_for(base, steps=2, nil=True), HALF, MENTIONS, tmp_path / "r",
        development=[MENTIONS[: len(KNOWN)]], on_event=events.append,
    )  # fmt: skip
    assert "the linker has the concepts of all development mentions, so that NIL will never be its answer" in events
    assert Reranker.open(tmp_path / "r").about.nil_score is None


def test_nil_that_is_never_right_is_not_said_to_help_other_answers(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first mention needs the cross-encoder, the second must not have it. By the probabilities of their candidates
    # they are alike; those of the second are less likely than many a NIL.
    linker = TableLinker(
        {
            "heart x": [Link("near", "a", "a", 0.62, 1), Link("heart", "b", "b", 0.5, 2)],
            "lung x": [Link("lung", "c", "c", 0.62, 1), Link("far", "d", "d", 0.5, 2)],
        }
    )
    scores = torch.tensor([6.0, 8.0, -7.0, -5.0])
    monkeypatch.setattr(reranking, "pair_scores", lambda _model, _store, rows, **_: scores[torch.from_numpy(rows)])
    table = pl.DataFrame({"mention": ["heart x", "lung x"], "concept_id": ["heart", "lung"]})
    config = config_for(base, steps=1, nil=True)
    mentions = pl.concat([table, pl.DataFrame({"mention": ["lung x"], "concept_id": ["NIL"]})])
    report = train_reranker(config, linker, mentions, tmp_path / "r", development=[table])
    assert report.evaluations[-1]["at_1"] == 0.5
    assert Reranker.open(tmp_path / "r").about.nil_score is None


def test_several_sets_are_measured_with_one_weight_as_is_saved(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The linker is right of the first mention, the cross-encoder of the second: no weight is right of both.
    linker = TableLinker({name: links(("A", f"{name} a", 0.9), ("B", f"{name} b", 0.8)) for name in ("near", "far")})
    scores = torch.tensor([0.0, 3.0] * 2)
    monkeypatch.setattr(reranking, "pair_scores", lambda _model, _store, rows, **_: scores[torch.from_numpy(rows)])
    tables = {
        name: pl.DataFrame({"mention": [name], "concept_id": [code]}) for name, code in (("near", "A"), ("far", "B"))
    }
    config = config_for(base, steps=1)
    report = train_reranker(config, linker, pl.concat(tables.values()), tmp_path / "r", development=tables)
    assert report.evaluations[-1]["at_1"] == 0.5
    assert [report.evaluations[-1]["sets"][name]["at_1"] for name in tables] == [1.0, 0.0]
    assert Reranker.open(tmp_path / "r").about.weight == 0.0


def test_nil_cannot_be_learnt_from_everything(base: Path, tmp_path: Path) -> None:
    config = config_for(base, nil=True)
    with pytest.raises(InputError, match="NIL cannot be learned: one of the linker's candidates is right for every"):
        train_reranker(config, MISLEADING, MENTIONS, tmp_path / "r")
    with pytest.raises(InputError, match="there is nothing to learn"):  # all codes are wrong
        train_reranker(config, HALF, MENTIONS[len(KNOWN) :], tmp_path / "r")

    with pytest.raises(ConfigError, match=r"does not say which concepts it has \(concept_ids\)"):
        train_reranker(config, Silent(HALF), MENTIONS, tmp_path / "r", development=[MENTIONS])


def test_a_linker_that_does_not_say_its_concepts_has_those_that_it_finds(base: Path, tmp_path: Path) -> None:
    config = config_for(base, steps=1, own_names="keep")
    silent, half = (
        train_reranker(config, linker, MENTIONS, tmp_path / "r", overwrite=True) for linker in (Silent(HALF), HALF)
    )
    assert {**silent.data, "fingerprint": ""} == {**half.data, "fingerprint": ""}
    table = pl.DataFrame({"mention": ["m"], "concept_id": ["K|1171"]})  # one concept's own code, not two
    kinds = Silent(TableLinker({"m": links(("K|1172", "b"), ("K|1171", "a"))}))
    assert find_candidates(kinds, table, depth=2, text="both").is_right.tolist() == [False, True]


def test_which_mentions_mean_no_concept() -> None:
    table = pl.DataFrame({"mention": list("abcde"), "concept_id": ["A", "X|B", "X", "NIL", "C"]})
    linker = TableLinker({"m": links(("A", "a"), ("B|C", "b"))})
    assert without_concept(linker, table).tolist() == [False, False, True, True, False]
