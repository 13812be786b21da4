"""Runs of BioSyn: the step against plain torch, resuming, what comes out, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from biosyn_tasks import MENTIONS, NAMES, config_for, data_of, recipe_of, tables, write_lines
from sklearn.feature_extraction.text import TfidfVectorizer
from training_runs import interrupt_at, weights

from onoma.artifacts import open_artifact
from onoma.encoders import export_encoder, locate_tokenizer, open_encoder
from onoma.encoders.adapter_folders import join_adapter
from onoma.encoders.folders import read_folder
from onoma.encoders.information import encoder_info
from onoma.encoders.loading import load_packed
from onoma.errors import ConfigError, InputError
from onoma.pairs.mentions import mentions_fingerprint
from onoma.training.biosyn import train_biosyn
from onoma.training.biosyn_candidates import CandidateBatches
from onoma.training.biosyn_config import BiosynConfig
from onoma.training.biosyn_measure import BiosynMeasure
from onoma.training.biosyn_step import BiosynModel, BiosynStep, BiosynStepReport, make_optimiser
from onoma.training.measuring import Scores
from onoma.training.report import TrainingReport
from onoma.training.run_folder import run_folder
from onoma.training.vectors import name_vectors
from onoma.types import RowArray
from tiny import WORDS, make_terminology, tiny_encoder

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert", weight_std=0.25)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Mentions and dictionary."""
    folder = tmp_path_factory.mktemp("files")
    return write_lines(folder / "mentions.txt", MENTIONS), write_lines(folder / "names.txt", NAMES)


def train(config: BiosynConfig, files: tuple[Path, Path], out: Path, **options: Any) -> TrainingReport:
    return train_biosyn(recipe_of(config), *files, out, **options)


def plain_loss(config: BiosynConfig, base: Path, *, batch_number: int, sparse_weight: torch.Tensor) -> torch.Tensor:
    """The loss of a batch, every name alone through the Hugging Face model; the first candidates are sparse ones."""
    data = data_of(base, tables())
    order = np.random.default_rng([config.seed, 0]).permutation(len(data.queries))
    batches = CandidateBatches(data, config, Path(), tell=lambda _: None)
    tokenizer = locate_tokenizer(base)
    model: Any = load_packed(base, dropout=0.0).model

    def vector(text: str) -> torch.Tensor:
        output: torch.Tensor = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0, 0]
        return output

    losses = []
    for query in order[5 * batch_number :][:5].tolist():
        sparse, right_names = batches._index.search([data.queries[query]], k=config.candidates), data.queries[query]
        scores, right = [], []
        for name, similarity in zip(sparse[0][0].tolist(), sparse[1][0].tolist(), strict=True):
            one, other = vector(data.queries[query]), vector(data.names[name])
            if config.similarity.name == "cosine":
                dense = config.similarity.scale * torch.cosine_similarity(one, other, dim=0)
                scores.append(dense + config.similarity.scale * sparse_weight * similarity)
            else:
                scores.append(one @ other + sparse_weight * similarity)
            right.append(data.names[name].split()[0] == right_names.split()[1])
        if any(right):
            probabilities = torch.softmax(torch.stack(scores), 0)
            losses.append(-torch.log(probabilities[torch.tensor(right)].sum()))
    loss = torch.stack(losses).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    plain_loss.gradient = model.embeddings.word_embeddings.weight.grad  # type: ignore[attr-defined]
    return loss.detach()


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_a_step_has_the_loss_and_the_gradient_of_its_batch(base: Path, similarity: str) -> None:
    config = config_for(base, similarity=similarity, sparse_weight=0.3, learning_rate=1e-9)
    data = data_of(base, tables())
    model = BiosynModel(load_packed(base, dropout=0.0), config.similarity, sparse_weight=config.sparse_weight).train()
    batches = CandidateBatches(data, config, Path(), tell=lambda _: None)
    optimiser = make_optimiser(config, model)
    seen: list[torch.Tensor] = []
    words = model.encoder.model.embeddings.word_embeddings.weight
    optimiser.register_step_pre_hook(
        lambda *_: seen.extend([words.grad.clone(), model.sparse_weight.grad.clone()])  # type: ignore[union-attr]
    )
    step = BiosynStep(config, data, model, optimiser, batches, torch.float32, CPU)
    report = step(0, 10)

    weight = torch.tensor(0.3, requires_grad=True)
    expected = plain_loss(config, base, batch_number=0, sparse_weight=weight)
    assert report.loss == pytest.approx(float(expected), rel=1e-5)
    assert weight.grad is not None
    torch.testing.assert_close(seen[1], weight.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(seen[0], plain_loss.gradient, rtol=1e-4, atol=1e-6)  # type: ignore[attr-defined]
    # Adam's first step goes by its rate, in the direction of the gradient.
    assert report.sparse_weight == pytest.approx(0.3 - 0.01 * math.copysign(1, weight.grad), abs=1e-6)


def test_a_sparse_weight_ends_at_nought(base: Path) -> None:
    model = BiosynModel(load_packed(base), config_for(base).similarity, sparse_weight=0.005)
    optimiser = make_optimiser(config_for(base, sparse_learning_rate=0.01), model)
    for gradient, expected in ((1.0, 0.0), (1.0, 0.0), (-9.0, 0.01)):  # Adam forgets the first two by the third
        model.sparse_weight.grad = torch.tensor(gradient)
        optimiser.step()
        assert float(model.sparse_weight.detach()) == pytest.approx(expected, abs=5e-3)
        assert float(model.sparse_weight.detach()) >= 0


def test_the_encoder_decays_by_l2_and_the_sparse_weight_does_not(base: Path) -> None:
    config = config_for(base, weight_decay=0.5, sparse_learning_rate=0.02)
    model = BiosynModel(load_packed(base), config.similarity, sparse_weight=1.0)
    optimiser = make_optimiser(config, model)
    assert isinstance(optimiser, torch.optim.Adam)
    groups = {group["params"][0] is model.sparse_weight: group for group in optimiser.param_groups}
    assert (groups[True]["lr"], groups[True]["weight_decay"]) == (0.02, 0.0)
    assert (groups[False]["lr"], groups[False]["weight_decay"]) == (1e-3, 0.5)
    assert len(groups[False]["params"]) == sum(p.requires_grad for p in model.encoder.parameters())


def test_steps_from_which_nothing_is_learned_have_no_share_in_mean_losses(
    base: Path, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = CandidateBatches.names_of_step

    def sometimes(self: CandidateBatches, number: int) -> RowArray:
        rows = batches(self, number)
        return rows[:0] if number in {0, 1, 3} else rows

    monkeypatch.setattr(CandidateBatches, "names_of_step", sometimes)
    steps: list[BiosynStepReport] = []
    report = train(
        config_for(base, steps=4, accumulation=2, learning_rate=1e-12), files, tmp_path / "e", on_step=steps.append
    )
    nothing, half, *whole = steps
    assert (nothing.loss, nothing.names) == (0, 0)
    assert "loss" not in nothing.figures()
    assert half.loss > 0.6 * min(step.loss for step in whole)
    assert report.first_loss == half.loss
    assert report.last_loss == pytest.approx(sum(step.loss for step in whole) / 2)


def test_a_small_task_is_learnt_and_an_encoder_comes_out(base: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    steps: list[BiosynStepReport] = []
    told: list[str] = []
    report = train(
        config_for(base, steps=60),
        files,
        tmp_path / "e",
        development=[files[0]],
        on_step=steps.append,
        on_event=told.append,
    )
    assert report.last_loss < 0.5 * report.first_loss
    assert report.evaluations[-1]["at_1"] > report.evaluations[0]["at_1"] + 0.2
    # The first one counts too; its seconds are written down in whole milliseconds.
    assert report.phases["evaluate"] >= sum(line["seconds"] - 0.0005 for line in report.evaluations)
    assert [line["step"] for line in report.evaluations] == list(range(0, 61, 5))  # once a pass
    assert [step.step for step in steps] == list(range(1, 61))
    assert any("have a right name among their 6 candidates" in line for line in told)
    assert any(line.startswith(f"{files[0].name}: all of these mentions are learned from") for line in told)
    assert not run_folder(tmp_path / "e").exists()

    encoder = open_encoder(tmp_path / "e")
    assert encoder.folder.normalisation == "biosyn"
    assert encoder.folder.sparse_weight == pytest.approx(steps[-1].sparse_weight)
    assert steps[-1].sparse_weight != 0
    config = open_artifact(tmp_path / "e", "encoder").config
    assert config["sparse_weight"] == config["learnt_sparse_weight"] == encoder.folder.sparse_weight
    written = json.loads((tmp_path / "e" / "train.json").read_text())
    assert written["data"]["queries"] == 24
    assert written["log"][0].keys() >= {"queries", "right_first", "sparse_weight", "loss"}
    assert f"add {encoder.folder.sparse_weight:.4g} x cosine" in (tmp_path / "e" / "README.md").read_text()


def test_a_weight_learnt_beside_dot_products_is_kept_as_what_it_is_beside_cosines(
    base: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    report = train(config_for(base, similarity="dot"), files, tmp_path / "e")
    encoder = open_encoder(tmp_path / "e")
    data = data_of(base, tables())
    lengths = [
        np.linalg.norm(encoder.encode(texts, unit_length=False), axis=1).mean() for texts in (data.queries, data.names)
    ]
    learned = report.log[-1]["sparse_weight"]
    assert learned > 0
    assert encoder.folder.sparse_weight == pytest.approx(learned / (lengths[0] * lengths[1]), rel=1e-4)


def test_the_weight_goes_with_the_adapter(base: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    train(config_for(base, steps=3, tuning={"name": "adapter"}), files, tmp_path / "e")
    weight = read_folder(tmp_path / "e").sparse_weight
    assert weight
    assert join_adapter(tmp_path / "e" / "adapter", tmp_path / "joined", base=base).sparse_weight == weight
    assert encoder_info(tmp_path / "joined").sparse_weight == weight


def test_the_weight_goes_with_the_encoder_until_it_is_trained_again(
    base: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    train(config_for(base, steps=3), files, tmp_path / "e")
    export_encoder(tmp_path / "e", tmp_path / "onnx", onnx_only=True)
    weight = read_folder(tmp_path / "e").sparse_weight
    assert weight
    assert read_folder(tmp_path / "onnx").sparse_weight == weight
    assert read_folder(tmp_path / "onnx").fingerprint == read_folder(tmp_path / "e").fingerprint
    assert read_folder(base).sparse_weight is None


def test_it_says_which_mentions_it_and_its_base_were_trained_on(
    base: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    train(config_for(base, steps=1), files, tmp_path / "e")
    first = mentions_fingerprint(mention for mention, _ in MENTIONS)
    assert read_folder(tmp_path / "e").trained_mentions == {first}
    others = write_lines(tmp_path / "m.txt", MENTIONS[:9])
    train(config_for(tmp_path / "e", steps=1), (others, files[1]), tmp_path / "again")
    second = mentions_fingerprint(mention for mention, _ in MENTIONS[:9])
    assert read_folder(tmp_path / "again").trained_mentions == {first, second}


def test_the_sparse_weight_may_be_fixed(base: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    report = train(config_for(base, steps=3, sparse_weight=0.5, sparse_learning_rate=1e-12), files, tmp_path / "e")
    assert {line["sparse_weight"] for line in report.log} == {0.5}


@pytest.mark.parametrize(
    ("killed", "changes"),
    [
        ([3, 6], {"average": 0.9}),  # within a pass, and at the first step of the next
        ([8], {"similarity": "dot", "keep": "best"}),
    ],
)
def test_a_stopped_run_goes_on_to_the_same_weights(
    base: Path, files: tuple[Path, Path], tmp_path: Path, killed: list[int], changes: dict[str, Any]
) -> None:
    config = config_for(base, dropout=0.1, checkpoint_minutes=1e-9, **changes)
    options: dict[str, Any] = {"development": [files[0]] if "keep" in changes else []}
    straight = train(config, files, tmp_path / "straight", **options)
    for step in killed:
        with pytest.raises(KeyboardInterrupt):
            train(config, files, tmp_path / "killed", on_step=interrupt_at(step), **options)
    resumed = train(config, files, tmp_path / "killed", **options)
    assert resumed.resumed_at == (killed[-1] - 1 or None)
    expected, found = weights(tmp_path / "straight"), weights(tmp_path / "killed")
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert read_folder(tmp_path / "straight").sparse_weight == read_folder(tmp_path / "killed").sparse_weight
    assert [line["loss"] for line in straight.log] == [line["loss"] for line in resumed.log]


def test_the_best_on_development_data_is_kept_with_its_sparse_weight(
    base: Path, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = iter([0.1, 0.9, 0.2, 0.2])
    monkeypatch.setattr(BiosynMeasure, "__call__", lambda *_: Scores(next(coming), 1.0, 1.0, 8))
    report = train(
        config_for(base, steps=6, evaluate_steps=2, keep="best"), files, tmp_path / "e", development=[files[0]]
    )
    assert report.saved_step == 2
    assert read_folder(tmp_path / "e").sparse_weight == pytest.approx(report.log[1]["sparse_weight"])


def test_a_terminology_is_a_dictionary_too(base: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    concepts = {
        f"D{number}": [f"{word} disease", f"{word} illness", f"{word} pain"] for number, word in enumerate(WORDS)
    }
    terminology = make_terminology(tmp_path / "t", concepts)
    config = config_for(base, steps=2)
    train(config, files, tmp_path / "lines")
    train(config, (files[0], terminology.path), tmp_path / "folder")
    train_biosyn(config, files[0], terminology, tmp_path / "opened")
    lines, *others = (open_artifact(tmp_path / name, "encoder") for name in ("lines", "folder", "opened"))
    assert lines.parents == ()
    for other in others:
        assert lines.config["queries_and_dictionary"] == other.config["queries_and_dictionary"]
        assert other.config["terminology"] == [terminology.manifest.fingerprint]
        assert other.parents == (terminology.manifest.as_parent(),)
    with pytest.raises(ConfigError, match="does not say of what language"):
        train(config_for(base, languages="en"), files, tmp_path / "e")
    with pytest.raises(InputError, match="no name is of the language 'de'"):
        train(config_for(base, languages="de"), (files[0], terminology.path), tmp_path / "e")


def test_what_is_left_out_is_told(base: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    rows = [*MENTIONS, ("bad heart|bad lung", "D0|D1"), ("bad toe", "d2"), ("***", "D0")]
    mentions = write_lines(tmp_path / "m.txt", rows)
    told: list[str] = []
    report = train(config_for(base, steps=1), (mentions, files[1]), tmp_path / "e", on_event=told.append)
    assert report.data["queries"] == 25
    assert "m.txt: 1 composite mentions left out" in told
    assert "m.txt: 1 of 26 mentions are blank after normalisation and left out" in told
    unknown = "m.txt: 1 of 26 queries mean a concept that the dictionary does not have (d2); nothing is learned of them"
    assert f"{unknown}; 1 of their codes has another form in the dictionary: d2 is D2 there" in told
    counted = "m.txt: 25 mentions, 25 distinct ones, 24 of them of concepts that the dictionary has; of the others"
    assert any(line.startswith(counted) for line in told)


def test_what_cannot_be_is_refused(base: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    config = config_for(base)
    with pytest.raises(InputError, match="has the concept of none of the"):
        train(config, (write_lines(tmp_path / "other.txt", [("heart", "D")]), files[1]), tmp_path / "e")
    with pytest.raises(InputError, match="another form in the dictionary: d0 is D0 there"):
        train(config, (write_lines(tmp_path / "lower.txt", [("heart", "d0")]), files[1]), tmp_path / "e")
    alike = (
        write_lines(tmp_path / "alike.txt", [("bad heart", "D0")]),
        write_lines(tmp_path / "n.txt", [("heart", "D0")]),
    )
    with pytest.raises(InputError, match=r"all names of the dictionary are right for every query of 'alike\.txt'"):
        train(config, alike, tmp_path / "e")
    with pytest.raises(InputError, match="put it in a list"):
        train(config, files, tmp_path / "e", development=str(files[0]))
    with pytest.raises(ConfigError, match="there are none"):
        train(config, files, tmp_path / "e", development_dictionary=files[1])
    (tmp_path / "bad.txt").write_text("D1||a\nno line\n")
    with pytest.raises(InputError, match=r"bad\.txt, line 2.*correct the line"):
        train(config, (files[0], tmp_path / "bad.txt"), tmp_path / "e")
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("depth", [100, 3])
@pytest.mark.parametrize("weight", [0.0, 0.7, -0.4])
def test_development_queries_are_ranked_by_both_scores_together(
    base: Path, weight: float, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.training.biosyn_measure.DEPTH", depth)
    names = [*NAMES, ("heart pain", "D7"), ("skin rash", "D4|X")]
    mentions = [*MENTIONS, ("heart pain", "D7"), ("rash of skin", "X|Y"), ("toe", "D99")]
    model = load_packed(base, max_tokens=16)
    measure = BiosynMeasure(
        tables(mentions, names),
        locate_tokenizer(base),
        sparse_weight=torch.tensor(weight),
        normalisation="biosyn",
        max_tokens=16,
    )
    scores = measure(lambda store, rows: name_vectors(model, store, rows, precision=torch.float32))

    encoder = open_encoder(base, backend="torch", max_tokens=16)
    vectoriser = TfidfVectorizer(analyzer="char", ngram_range=(1, 2)).fit([text for text, _ in names])
    sparse = (vectoriser.transform([t for t, _ in mentions]) @ vectoriser.transform([t for t, _ in names]).T).toarray()
    dense = encoder.encode([text for text, _ in mentions]) @ encoder.encode([text for text, _ in names]).T
    ranks = []
    for row, (_, gold) in enumerate(mentions):
        best: dict[str, float] = {}
        proposed = {
            int(column)
            for scores_of in (dense[row], sparse[row])
            for column in np.argsort(-np.round(scores_of, 5), kind="stable")[:depth]
        }
        for column, (_, ids) in enumerate(names):
            if column not in proposed:
                continue
            score = float(dense[row, column] + weight * sparse[row, column])
            best[ids] = max(score, best.get(ids, -math.inf))
        ranked = sorted(best, key=lambda ids: -round(best[ids], 5))
        hits = [place for place, ids in enumerate(ranked, 1) if set(ids.split("|")) & set(gold.split("|"))]
        ranks.append(min(hits, default=0))
    assert scores.n_queries == len(mentions)
    assert scores.at_1 == pytest.approx(np.mean([rank == 1 for rank in ranks]))
    assert scores.at_5 == pytest.approx(np.mean([0 < rank <= 5 for rank in ranks]))
    assert scores.mrr == pytest.approx(np.mean([1 / rank if rank else 0.0 for rank in ranks]))
