"""Runs of distillation: batches, the step against plain torch, resuming, what comes out, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import rel_entr, softmax

from onoma.artifacts import open_artifact, read_manifest
from onoma.encoders import locate_tokenizer, open_encoder
from onoma.encoders.folders import read_folder
from onoma.encoders.loading import load_packed
from onoma.encoders.saving import save_encoder
from onoma.errors import ConfigError, InputError
from onoma.linking import Linker, build_linker
from onoma.training.alignment_config import Recipe
from onoma.training.alignment_step import make_optimiser
from onoma.training.distillation import distil_encoder
from onoma.training.distillation_config import (
    DistillationConfig,
    DistillationRecipe,
)
from onoma.training.distillation_data import NeighbourhoodBatches, TaughtNames, taught_names
from onoma.training.distillation_step import DistillationStep, DistillationStepReport
from onoma.training.report import TrainingReport
from onoma.training.run_folder import run_folder
from tiny import WORDS, Name, make_terminology, tiny_encoder

KINDS = ("disease", "illness", "pain", "ache", "cancer")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "student", weight_std=0.25)


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    """Built with another encoder, whose tokeniser has other tokens too."""
    folder = tmp_path_factory.mktemp("teacher")
    teacher = tiny_encoder(folder / "teacher", extra_tokens=[*WORDS, *KINDS], seed=7, weight_std=0.25)
    concepts: dict[str, list[str | Name]] = {
        f"D{row}": [*(f"{word} {kind}" for kind in KINDS), Name(f"{word}leiden", language="de")]
        for row, word in enumerate(WORDS)
    }
    return build_linker(make_terminology(folder / "t", concepts), teacher, folder / "linker")


def config_for(base: Path, **changes: Any) -> DistillationConfig:
    values: dict[str, Any] = {
        "base": str(base),
        "steps": 10,
        "batch_names": 12,
        "neighbours": 2,
        "nearest": 4,
        "max_tokens": 16,
        "learning_rate": 3e-3,
        "dropout": 0.0,
        "precision": "fp32",
        "device": "cpu",
    }
    return DistillationConfig.model_validate({**values, **changes})


def names_of(linker: Linker, base: Path) -> TaughtNames:
    return taught_names(linker, locate_tokenizer(base), normalisation="sapbert", max_tokens=16)


def distil(config: DistillationConfig, linker: Linker | Path, out: Path, **options: Any) -> TrainingReport:
    return distil_encoder(DistillationRecipe(name="tiny", description="", config=config), linker, out, **options)


def test_a_batch_is_some_names_and_some_of_those_nearest_for_the_teacher(linker: Linker, base: Path) -> None:
    config, names = config_for(base), names_of(linker, base)
    assert len(names.rows) == 48
    vectors = linker.encoder.encode(list(linker.dictionary.texts))
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -2)
    nearest = np.argsort(-similarity, axis=1)[:, :4]
    batches = NeighbourhoodBatches(names, config)
    assert batches.steps_per_epoch == 12  # 48 names, 4 at once
    drawn_in_a_pass, came = [], set[int]()
    for number in range(60):
        found = batches.of_batch(number)
        drawn = np.random.default_rng([0, number // 12]).permutation(48)[4 * (number % 12) :][:4]
        drawn_in_a_pass.extend(drawn.tolist())
        texts = [linker.dictionary.texts[int(row)] for row in names.text_rows[found]]
        assert np.array_equal(found, np.unique(found))
        assert set(drawn.tolist()) <= set(found.tolist())
        near = {int(names.name_of_text[row]) for row in nearest[names.text_rows[drawn]].ravel()}
        assert set(found.tolist()) - set(drawn.tolist()) <= near
        came |= set(found.tolist()) - set(drawn.tolist())
        assert len(found) <= 12
        assert len(found) > 6
        rows = batches.names_of_step(number)
        tokenizer = locate_tokenizer(base)
        for row, text in zip(rows.tolist(), texts, strict=True):
            begin, end = names.store.offsets[row : row + 2]
            assert names.store.ids[begin:end].tolist() == tokenizer.encode(text).ids[:16]
    assert sorted(drawn_in_a_pass) == sorted([*range(48)] * 5)
    assert came == set(names.name_of_text[np.unique(nearest)].tolist())  # each name that is near to one, the first too
    assert 0 in came
    again = NeighbourhoodBatches(names, config)
    assert all(np.array_equal(again.of_batch(number), batches.of_batch(number)) for number in (5, 3, 20))
    alone = NeighbourhoodBatches(names, config_for(base, neighbours=0))
    assert [len(alone.of_batch(number)) for number in range(4)] == [12] * 4


def test_names_that_the_student_cannot_tell_apart_are_one(base: Path, tmp_path: Path) -> None:
    teacher = tiny_encoder(tmp_path / "teacher", extra_tokens=["£", "¥"], seed=7, weight_std=0.25)
    concepts = {"A": ["heart £", "heart ¥"], "B": ["lung"], "C": ["***", "bone"]}
    linker = build_linker(make_terminology(tmp_path / "t", concepts), teacher, tmp_path / "l")
    texts = list(linker.dictionary.texts)
    assert texts == ["heart £", "heart ¥", "lung", "***", "bone"]
    names = taught_names(linker, locate_tokenizer(base), normalisation="exact", max_tokens=16)
    taught = [texts[row] for row in names.text_rows.tolist()]
    assert taught == ["heart £", "lung", "***", "bone"]
    assert names.name_of_text.tolist() == [0, 0, 1, 2, 3]
    names = taught_names(linker, locate_tokenizer(base), normalisation="biosyn", max_tokens=16)
    assert [texts[row] for row in names.text_rows.tolist()] == ["heart £", "lung", "bone"]
    assert names.name_of_text.tolist() == [0, 0, 1, -1, 2]  # of *** nothing is left


def test_names_that_a_linker_may_not_answer_take_no_part(linker: Linker, base: Path) -> None:
    german = names_of(linker.only(languages="de"), base)
    texts = [linker.dictionary.texts[int(row)] for row in german.text_rows]
    assert texts == [f"{word}leiden" for word in WORDS]
    assert (german.name_of_text >= 0).sum() == len(WORDS)
    batches = NeighbourhoodBatches(german, config_for(base, batch_names=6))
    assert all(len(batches.of_batch(number)) > 2 for number in range(4))
    assert german.fingerprint != names_of(linker, base).fingerprint


def test_names_that_the_teacher_cannot_read_take_no_part(base: Path, tmp_path: Path) -> None:
    teacher = tiny_encoder(tmp_path / "teacher", seed=7, weight_std=0.25)
    concepts = {"A": ["\u5fc3"], "B": ["\u80ba"], **{word: [word] for word in WORDS}}
    linker = build_linker(make_terminology(tmp_path / "t", concepts), teacher, tmp_path / "l")
    student = tiny_encoder(tmp_path / "student", extra_tokens=["\u5fc3", "\u80ba"])
    names = names_of(linker, student)
    assert len(names.rows) == len(WORDS) + 2
    assert not linker.dense_search.vectors.take(np.array([0, 1])).any()
    batches = NeighbourhoodBatches(names, config_for(student, neighbours=2, nearest=9, batch_names=3))
    found = [batches.of_batch(number) for number in range(batches.steps_per_epoch)]
    assert sorted(len(one) for one in found) == [0, 0, *[3] * len(WORDS)]
    assert not {0, 1} & {int(row) for one in found for row in one}
    steps: list[DistillationStepReport] = []
    config = config_for(student, neighbours=2, nearest=9, batch_names=3, steps=10)
    report = distil(config, linker, tmp_path / "e", on_step=steps.append)
    assert sorted(one.names for one in steps) == [0, 0, *[3] * len(WORDS)]
    assert report.steps == 10


def test_a_step_has_the_loss_and_the_gradient_of_its_batch(linker: Linker, base: Path) -> None:
    config, names = config_for(base, temperature=0.2), names_of(linker, base)
    model = load_packed(base, dropout=0.0).train()
    batches, optimiser = NeighbourhoodBatches(names, config), make_optimiser(config, model)
    words: Any = model.model.embeddings.word_embeddings.weight
    seen: list[torch.Tensor] = []
    optimiser.register_step_pre_hook(lambda *_: seen.append(words.grad.clone()))
    report = DistillationStep(config, names, model, optimiser, batches, torch.float32, torch.device("cpu"))(0, 10)

    plain: Any = load_packed(base, dropout=0.0).model
    tokenizer = locate_tokenizer(base)
    texts = [linker.dictionary.texts[int(row)] for row in names.text_rows[batches.of_batch(0)]]
    vectors = [plain(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0, 0].double() for text in texts]
    taught = torch.from_numpy(linker.encoder.encode(texts)).double()
    losses, same = [], []
    for one in range(len(texts)):
        others = [other for other in range(len(texts)) if other != one]
        own = torch.stack([torch.cosine_similarity(vectors[one], vectors[other], dim=0) for other in others])
        wanted = torch.softmax((taught[others] @ taught[one]) / 0.2, 0)
        losses.append((wanted * (wanted.log() - torch.log_softmax(own / 0.2, 0))).sum())
        assert float(losses[-1].detach()) == pytest.approx(
            rel_entr(wanted.numpy(), softmax(own.detach().numpy() / 0.2)).sum(), rel=1e-6
        )
        same.append(int(own.argmax()) == int(wanted.argmax()))
    loss = torch.stack(losses).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    assert report.names == len(texts)
    assert report.loss == pytest.approx(float(loss.detach()), rel=1e-4)
    assert report.same_nearest == pytest.approx(sum(same) / len(same))
    torch.testing.assert_close(seen[0], plain.embeddings.word_embeddings.weight.grad, rtol=1e-3, atol=1e-5)


def test_a_small_encoder_comes_to_see_names_as_the_teacher_does(linker: Linker, base: Path, tmp_path: Path) -> None:
    steps: list[DistillationStepReport] = []
    mentions = tmp_path / "m.txt"
    mentions.write_text("".join(f"D{row}||{word} ache\n" for row, word in enumerate(WORDS)))
    report = distil(
        config_for(base, steps=200, schedule="linear"),
        linker.path,
        tmp_path / "e",
        development=[mentions],
        on_step=steps.append,
    )
    assert report.last_loss < 0.3 * report.first_loss
    assert np.mean([one.same_nearest for one in steps[-20:]]) > np.mean([one.same_nearest for one in steps[:20]]) + 0.2
    assert [line["step"] for line in report.evaluations] == list(range(0, 201, 20))
    assert report.data["names"] == 48
    assert not run_folder(tmp_path / "e").exists()

    texts = list(linker.dictionary.texts)

    def agreement(encoder: str | Path) -> float:
        """Of the similarities of all names, with the teacher's."""
        upper = np.triu_indices(len(texts), 1)
        own, taught = (one @ one.T for one in (open_encoder(encoder).encode(texts), linker.encoder.encode(texts)))
        return float(np.corrcoef(own[upper], taught[upper])[0, 1])

    assert agreement(tmp_path / "e") > agreement(base) + 0.3
    manifest = open_artifact(tmp_path / "e", "encoder")
    assert manifest.config["teacher"] == linker.encoder_name
    assert manifest.parents == (linker.manifest.as_parent(),)
    assert manifest.config["terminology"] == [linker.manifest.parents[0].fingerprint]
    written = json.loads((tmp_path / "e" / "train.json").read_text())
    assert written["log"][0].keys() >= {"same_nearest", "loss"}
    assert f"the vectors of {linker.encoder_name}" in (tmp_path / "e" / "README.md").read_text()


def test_every_index_gives_the_same_neighbours(linker: Linker, base: Path, tmp_path: Path) -> None:
    teacher = linker.path / "encoder"
    terminology = Path(linker.path.parent / "t")
    signs = build_linker(terminology, teacher, tmp_path / "signs", index="sign-bits")
    names, other = names_of(linker, base), names_of(signs, base)
    config = config_for(base)
    for number in range(6):
        exact, by_signs = (NeighbourhoodBatches(one, config).of_batch(number) for one in (names, other))
        assert np.array_equal(exact, by_signs)


def test_what_cannot_be_is_refused(linker: Linker, base: Path, tmp_path: Path) -> None:
    config = config_for(base)
    with pytest.raises(ConfigError, match="there are none"):
        distil(config, linker, tmp_path / "e", development_dictionary=tmp_path)
    terminology = make_terminology(tmp_path / "t", {"A": ["heart"], "B": ["lung"]})
    lookup = build_linker(terminology, None, tmp_path / "lookup", sparse=True)
    with pytest.raises(InputError, match="built without an encoder"):
        distil(config, lookup, tmp_path / "e")
    one = build_linker(make_terminology(tmp_path / "t1", {"A": ["heart"]}), base, tmp_path / "one")
    with pytest.raises(InputError, match=r"too few names.*1 text, 1 after"):
        distil(config, one, tmp_path / "e")
    with pytest.raises(InputError, match="nothing"):
        distil(config, tmp_path / "nothing", tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_a_student_is_known_to_have_learnt_what_its_teacher_had(base: Path, tmp_path: Path) -> None:
    taught, before = "a" * 64, "b" * 64
    plain = tiny_encoder(tmp_path / "plain", extra_tokens=WORDS, seed=7)
    for name, source, mentions in (("teacher", plain, taught), ("student", base, before)):
        config = {"trained_mentions": [mentions], "vocabularies": [name], "before": {"corpora": ["BC5CDR"]}}
        save_encoder(load_packed(source), tmp_path / name, config=config)
    terminology = make_terminology(tmp_path / "t", {word: [word] for word in WORDS})
    linker = build_linker(terminology, tmp_path / "teacher", tmp_path / "l")
    distil(config_for(tmp_path / "student", steps=1), linker, tmp_path / "e")
    assert read_folder(tmp_path / "e").trained_mentions == {taught, before}
    told = read_manifest(tmp_path / "e").config["before"]
    assert told == {"vocabularies": ["student", "teacher"], "corpora": ["BC5CDR"]}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"neighbours": "600"}, "do not fit into a batch of 512 names"),
        ({"batch_names": "2", "neighbours": "0"}, "batch_names"),
        ({"batch_names": "3", "neighbours": "1"}, "teach nothing.*batch_names to 4 at least"),
        ({"neighbours": "20"}, "cannot be drawn from the 16 nearest"),
        ({"temperature": "0"}, "temperature"),
        ({"languages": "en"}, "languages"),
        ({"neighbors": "3"}, "neighbours"),
        ({"batch_size": "64"}, "batch_names"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DistillationRecipe.load("distil", settings)


def test_every_recipe_is_valid_and_says_what_it_is() -> None:
    assert DistillationRecipe.names() == ["distil"]
    recipe = DistillationRecipe.load("distil")
    assert (recipe.name, recipe.config.base, recipe.config.temperature) == ("distil", "onoma-mini", 0.05)
    with pytest.raises(InputError, match="is for onoma distil"):
        Recipe.load("distil")
