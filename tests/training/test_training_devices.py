"""What must hold on every device: run on the CPU, and on a GPU where there is one, where nothing is bit-equal.

Where there is none, a slow test runs what is for GPUs on a stand-in (`tests/stand_in_gpu`).
"""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from biosyn_tasks import MENTIONS, NAMES, config_for, recipe_of, write_lines

from onoma.encoders import attention
from onoma.encoders.loading import load_packed
from onoma.encoders.packed import PackedBatch, PackedEncoder, pack
from onoma.encoders.torch_encoder import TorchEncoder
from onoma.errors import ConfigError, TrainingError
from onoma.linking import build_linker
from onoma.linking.reranking import Reranker
from onoma.pairs import PairSet
from onoma.training import clock
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import TrainingConfig
from onoma.training.alignment_step import Step, make_optimiser
from onoma.training.batches import PairBatches
from onoma.training.biosyn import train_biosyn
from onoma.training.checkpoints import Progress, load_checkpoint, save_checkpoint
from onoma.training.distillation import distil_encoder
from onoma.training.distillation_config import DistillationConfig
from onoma.training.precision import autocast, compile_encoder, training_precision
from onoma.training.reranking import train_reranker
from onoma.training.reranking_config import RerankingConfig
from tiny import WORDS, make_terminology, tiny_encoder
from tiny_rerankers import TableLinker, links

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
STEPS = 6


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=NO_GPU)])
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert", weight_std=0.25)


def made(
    base: Path, pairs: PairSet, device: torch.device, **changes: object
) -> tuple[Step, PackedEncoder, torch.optim.Optimizer]:
    values = {"base": str(base), "steps": STEPS, "batch_pairs": 8, "max_tokens": 16, "learning_rate": 1e-3}
    config = TrainingConfig.model_validate({**values, "dropout": 0.1, "device": device.type, **changes})
    model = load_packed(base, pooling=config.pooling, dropout=config.dropout, max_tokens=16).to(device).train()
    compile_encoder(config, model)
    optimiser = make_optimiser(config, model)
    batches = PairBatches(pairs.pairs, batch_pairs=config.batch_pairs, seed=0)
    return (
        Step(config, pairs, model, optimiser, batches, training_precision(config, device), device),
        model,
        optimiser,
    )


def flat(model: PackedEncoder) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().cpu() for parameter in model.parameters()])


def gradient(model: PackedEncoder) -> torch.Tensor:
    return torch.cat([one.grad.flatten().cpu() for one in model.parameters() if one.grad is not None])


def watched(step: Step, monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """What the step will encode, as it does."""
    seen: list[torch.Tensor] = []
    encode = step._encode

    def watch(batch: PackedBatch) -> torch.Tensor:
        seen.append(encode(batch))
        return seen[-1]

    monkeypatch.setattr(step, "_encode", watch)
    return seen


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "mean-nospec", "mean-all"])
def test_steps_move_the_weights(base: Path, pairs: PairSet, device: torch.device, precision: str, pooling: str) -> None:
    if (precision, device.type) == ("fp16", "cpu"):
        pytest.skip("fp16 is for GPUs")
    step, model, _ = made(base, pairs, device, precision=precision, pooling=pooling, max_gradient_norm=1.0)
    before = flat(model)
    reports = [step(number, STEPS) for number in range(STEPS)]
    assert all(np.isfinite(report.loss) for report in reports)
    after = flat(model)
    assert torch.isfinite(after).all()
    assert not torch.equal(before, after)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 3e-2)])
def test_packed_and_padded_agree(
    base: Path, pairs: PairSet, device: torch.device, precision: str, tolerance: float
) -> None:
    _, model, _ = made(base, pairs, device, precision=precision)
    model.eval()
    batch = pack(pairs.store.offsets, pairs.store.ids).to(device)
    with torch.no_grad(), autocast(device, torch.float32 if precision == "fp32" else torch.bfloat16):
        found = model(batch).float()
        wanted = []
        for row in range(len(pairs.store.offsets) - 1):
            name = pairs.store.ids[pairs.store.offsets[row] : pairs.store.offsets[row + 1]]
            ids = torch.from_numpy(np.asarray(name, np.int64))[None].to(device)
            wanted.append(model.model(input_ids=ids).last_hidden_state[0, 0].float())
    apart = torch.nn.functional.normalize(found) - torch.nn.functional.normalize(torch.stack(wanted))
    assert float(apart.abs().max()) <= tolerance


def test_chunks_give_the_gradient_of_the_batch(base: Path, pairs: PairSet, device: torch.device) -> None:
    found = []
    for chunk_names in (None, 5):
        step, model, _ = made(base, pairs, device, precision="fp32", dropout=0.0, chunk_names=chunk_names)
        step._gradients([0])
        found.append(gradient(model))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-5


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_chunks_meet_the_same_dropout_again(
    base: Path, pairs: PairSet, device: torch.device, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, _, _ = made(base, pairs, device, precision=precision, chunk_names=5)
    seen = watched(step, monkeypatch)
    step._gradients([0])
    half = len(seen) // 2
    assert half > 1
    for first, second in zip(seen[:half], seen[half:], strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-6)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_run_that_was_broken_off_goes_on(
    base: Path, pairs: PairSet, device: torch.device, precision: str, tmp_path: Path
) -> None:
    ends = []
    for cut in (None, 3):
        step, model, optimiser = made(base, pairs, device, precision=precision, max_gradient_norm=1.0)
        torch.manual_seed(1)  # of dropout; a checkpoint has the state
        for number in range(STEPS):
            if number == cut:
                save_checkpoint(tmp_path, model, optimiser, Progress(number, 0.0), run="r", parts={"step": step})
                step, model, optimiser = made(base, pairs, device, precision=precision, max_gradient_norm=1.0)
                load_checkpoint(tmp_path, model, optimiser, run="r", parts={"step": step})
            step(number, STEPS)
        ends.append(flat(model))
    # A GPU adds up in an order of its own each time.
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=0 if device.type == "cpu" else 1e-3)


def test_names_may_be_encoded_before_they_are_trained_on(base: Path, pairs: PairSet, device: torch.device) -> None:
    _, model, _ = made(base, pairs, device)
    batch = pack(pairs.store.offsets, pairs.store.ids).to(device)
    with torch.inference_mode(), autocast(device, torch.bfloat16):
        model.eval()(batch)
    with autocast(device, torch.bfloat16):
        model.train()(batch).float().sum().backward()
    assert torch.isfinite(gradient(model)).all()


@pytest.mark.filterwarnings("ignore")  # torch warns of itself as it compiles
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=NO_GPU, id="needs_triton")])
def test_a_run_from_end_to_end(
    base: Path, pairs: PairSet, device: torch.device, compiled: bool, tmp_path: Path
) -> None:
    if compiled and device.type == "cpu":
        pytest.skip("layers are compiled for GPUs")
    if compiled:
        pytest.importorskip("triton")
    config = {"base": str(base), "steps": STEPS, "batch_pairs": 8, "max_tokens": 16, "device": device.type}
    report = train_encoder(TrainingConfig.model_validate({**config, "compile": compiled}), pairs, tmp_path / "e")
    assert all(np.isfinite(line["loss"]) for line in report.log)
    assert report.versions["torch"] == torch.__version__
    texts = ["heart disease", "lung"]
    model = load_packed(tmp_path / "e")
    on_cpu = TorchEncoder(copy.deepcopy(model)).encode(texts)
    on_device = TorchEncoder(model.to(device)).encode(texts)
    np.testing.assert_allclose(on_device, on_cpu, rtol=0, atol=1e-4)


def test_a_reranker_is_the_same_on_every_device(base: Path, device: torch.device, tmp_path: Path) -> None:
    linker = TableLinker({f"{word} x": links((f"{word}-1", f"{word} y"), (word, f"ill {word}")) for word in WORDS})
    mentions = pl.DataFrame({"mention": list(linker.answers), "concept_id": WORDS})
    values = {"base": str(base), "steps": 3, "max_tokens": 16, "max_name_tokens": 8, "own_names": "keep"}
    scores = []
    for where in ("cpu", device.type):
        config = RerankingConfig.model_validate({**values, "dropout": 0.0, "precision": "fp32", "device": where})
        train_reranker(config, linker, mentions, tmp_path / where, development=[mentions], overwrite=True)
        answers = Reranker.open(tmp_path / where).rerank(list(linker.answers), linker.link(linker.answers))
        scores.append([link.score for answer in answers for link in answer.links])
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-4)


def test_biosyn_is_the_same_on_every_device(base: Path, device: torch.device, tmp_path: Path) -> None:
    files = write_lines(tmp_path / "mentions.txt", MENTIONS), write_lines(tmp_path / "names.txt", NAMES)
    losses = []
    for where in ("cpu", device.type):
        recipe = recipe_of(config_for(base, steps=4, learning_rate=1e-4, device=where))
        report = train_biosyn(recipe, *files, tmp_path / where, development=[files[0]], overwrite=True)
        losses.append([line["loss"] for line in report.log])
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-4)


def test_distillation_is_the_same_on_every_device(base: Path, device: torch.device, tmp_path: Path) -> None:
    teacher = tiny_encoder(tmp_path / "teacher", extra_tokens=WORDS, seed=7, weight_std=0.25)
    concepts = {word: [f"{word} pain", f"{word} disease"] for word in WORDS}
    linker = build_linker(make_terminology(tmp_path / "t", concepts), teacher, tmp_path / "linker")
    values = {"base": str(base), "steps": 4, "batch_names": 12, "neighbours": 2, "nearest": 4, "tuning": "layers"}
    losses = []
    for where in ("cpu", device.type):
        set_here = {**values, "learning_rate": 1e-4, "dropout": 0.0, "precision": "fp32", "device": where}
        report = distil_encoder(DistillationConfig.model_validate(set_here), linker, tmp_path / where, overwrite=True)
        losses.append([line["loss"] for line in report.log])
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-4)


def test_the_clock_counts_every_phase(base: Path, pairs: PairSet, device: torch.device) -> None:
    step, _, _ = made(base, pairs, device)
    assert not any(step.phases.values())
    for number in range(20):  # more phases than a GPU is asked about at once
        step(number, 20)
    assert all(seconds > 0 for seconds in step.phases.values())
    assert step.phases == step.phases
    step.seconds_per_step()
    assert not any(step.phases.values())


class Passed:
    """A GPU that comes by an event when it is told to, a second after the one before."""

    now, is_done = 0.0, True

    def record(self, stream: object) -> None:
        Passed.now += 1
        self.at = Passed.now

    def query(self) -> bool:
        return Passed.is_done

    def elapsed_time(self, later: Passed) -> float:
        return 1000 * (later.at - self.at)


def test_the_clock_of_a_gpu_waits_for_it_only_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[object] = []
    monkeypatch.setattr(clock, "_event", Passed)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: device)
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    monkeypatch.setattr(Passed, "is_done", False)
    made = clock.PhaseClock(torch.device("cuda"), "a", "b")
    for _ in range(100):
        with made.timing("a"):
            pass
    with pytest.raises(ZeroDivisionError), made.timing("b"):
        _ = 1 / 0
    assert not waited
    monkeypatch.setattr(Passed, "is_done", True)
    assert made.seconds() == {"a": 100, "b": 0}
    assert len(waited) == 1
    with made.timing("b"):
        pass
    made.reset()
    assert made.seconds() == {"a": 0, "b": 0}


def test_compiling_is_refused_where_it_cannot_be(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    values = {"base": str(base), "steps": 1, "max_tokens": 16, "compile": True}
    with pytest.raises(TrainingError, match="compile=true is for GPUs, and this run is on a CPU"):
        train_encoder(TrainingConfig.model_validate({**values, "device": "cpu"}), pairs, tmp_path / "e")
    padded = TrainingConfig.model_validate({**values, "pooling": "mean-all"})
    with pytest.raises(ConfigError, match="this encoder does not run packed"):
        compile_encoder(padded, load_packed(base, pooling="mean-all"))


@NO_GPU
@pytest.mark.filterwarnings("ignore")  # torch warns of itself as it traces
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("bf16", 3e-2)])
def test_compiled_layers_on_a_gpu(base: Path, pairs: PairSet, precision: str, tolerance: float) -> None:
    found = []
    for compiled in (False, True):
        step, model, _ = made(base, pairs, torch.device("cuda"), precision=precision, dropout=0.0, compile=compiled)
        step._gradients([0])
        found.append(gradient(model))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < tolerance


@NO_GPU
@pytest.mark.filterwarnings("ignore")
def test_compiled_layers_drop_on_a_gpu_and_meet_it_again(
    base: Path, pairs: PairSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, _, _ = made(base, pairs, torch.device("cuda"), precision="bf16", chunk_names=5, compile=True)
    seen = watched(step, monkeypatch)
    step._gradients([0])
    half = len(seen) // 2
    for first, second in zip(seen[:half], seen[half:], strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-6)
    step._gradients([0])  # and another time it draws others
    assert not all(torch.equal(first, later) for first, later in zip(seen[:half], seen[2 * half :], strict=False))


@NO_GPU
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_recorded_steps_on_a_gpu(base: Path, pairs: PairSet, precision: str, compiled: bool) -> None:
    """The same batch again and again, until it is recorded, with weights that move and gradients that are cut."""
    ends, recordings = [], 0
    for is_recorded in (False, True):
        changes = {"dropout": 0.0, "max_gradient_norm": 0.1, "batch_pairs": 24, "compile": compiled}
        step, model, _ = made(base, pairs, torch.device("cuda"), precision=precision, **changes)
        if not is_recorded:
            step._recorded = None
        before = flat(model)
        for number in range(3 * STEPS):
            step(number, 3 * STEPS)
        ends.append(flat(model) - before)
        if step._recorded is not None:
            recordings = len(step._recorded._recordings)
    if attention.tile_on_gpu(16, 8) is not None:
        assert recordings >= 1
    assert float((ends[0] - ends[1]).norm() / ends[0].norm()) < 0.1  # AdamW makes much of little


@NO_GPU
@pytest.mark.filterwarnings("ignore")
def test_recorded_steps_drop_on_a_gpu(base: Path, pairs: PairSet) -> None:
    step, model, optimiser = made(base, pairs, torch.device("cuda"), precision="bf16", dropout=0.3, compile=True)
    found = []
    for seed in (0, 0, 1, 1, 2):  # the first two before it is recorded
        torch.manual_seed(seed)
        step._gradients([0])
        found.append(gradient(model))
        optimiser.zero_grad()
    assert float((found[2] - found[3]).norm() / found[2].norm()) < 1e-2
    assert float((found[2] - found[4]).norm() / found[2].norm()) > 0.1


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, or what stands in for it")
@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is for GPUs, and the stand-in for the CPU's")
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("g++") is None, reason="the stand-in needs Linux and g++")
def test_what_is_for_gpus_on_a_stand_in() -> None:
    stand_in = Path(__file__).parents[1] / "stand_in_gpu"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "stand_in_gpu",
        "-p",
        "no:cacheprovider",
        "-q",
        "-k",
        "(cuda or gpu) and not needs_triton",
    ]
    run = subprocess.run(
        [*command, "-rs", __file__],
        env={**os.environ, "PYTHONPATH": str(stand_in)},
        cwd=stand_in.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert "skipped" not in run.stdout.replace("1 skipped", "", 1), run.stdout[-3000:]  # but this test
