"""Several real processes against one, on the CPU (gloo) and on GPUs (NCCL; gloo where fewer than processes)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from joint_steps import CASES, config_for, first_gradients, make_step
from safetensors.torch import load_file

from onoma.encoders.packed import pack
from onoma.errors import TrainingError
from onoma.pairs import PairSet, build_pairs
from onoma.training import distributed
from onoma.training.objective import objective
from tiny import make_terminology, small_tokenizer, tiny_encoder

WORLD = 3  # shares of ten names then differ, and of two names one is empty
NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
WORDS = ["heart", "lung", "liver", "bone", "skin", "eye"]


def start(world: int, *command: str) -> list[subprocess.Popen[str]]:
    """Start processes as torchrun does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        subprocess.Popen(
            [sys.executable, *command],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]


def finish(started: list[subprocess.Popen[str]]) -> list[str]:
    """Wait for all, and give back what each said on standard error."""
    try:
        return [process.communicate(timeout=300)[1] for process in started]
    finally:
        for process in started:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher",
    [
        ["torch.distributed.run", "--nproc-per-node", "2", "--no-python"],
        ["accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--no_python"],
    ],
)
def test_launchers_that_the_guide_names(launcher: list[str], tmp_path: Path) -> None:
    """On a CPU too: what a launcher does is to set the variables of each process."""
    tiny_encoder(tmp_path / "base")
    make_terminology(tmp_path / "t", {f"X:{word}": [f"{word} disease", f"disease of {word}"] for word in WORDS})
    settings = [
        f"--set={s}" for s in (f"base={tmp_path / 'base'}", "steps=2", "batch_pairs=8", "max_tokens=16", "device=cpu")
    ]
    run = ["train", "quickstart", "-t", str(tmp_path / "t"), "-o", str(tmp_path / "e"), *settings]
    command = [sys.executable, "-m", *launcher, sys.executable, "-m", "onoma", *run]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "on cpu in" in done.stderr
    assert "in 2 processes" in done.stderr
    assert (tmp_path / "e" / "onoma.json").exists()


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=NO_GPU)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> PairSet:
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "tokenizer.json").write_text(small_tokenizer().to_str())
    concepts = {f"X:{word}": [f"{word} disease", f"disease of the {word}", f"{word}s ill"] for word in WORDS}
    terminology = make_terminology(folder / "t", {**concepts, "X:other": ["heart disease", "cor"]})
    return build_pairs(terminology, folder / "tokenizer.json", folder / "p", max_tokens=16, ambiguous="mark")


@pytest.fixture(scope="module")
def together(
    pairs: PairSet, device: str, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[dict[str, Any], dict[str, torch.Tensor]]]:
    """What each of several processes saw."""
    out = tmp_path_factory.mktemp("together")
    script = str(Path(__file__).with_name("joint_steps.py"))
    said = finish(started := start(WORLD, script, str(pairs.path), str(out), device))
    assert [process.returncode for process in started] == [0] * WORLD, said
    return [
        (json.loads((out / f"{rank}.json").read_text()), load_file(out / f"{rank}.safetensors"))
        for rank in range(WORLD)
    ]


def under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(f"{prefix}/"): t for name, t in tensors.items() if name.startswith(f"{prefix}/")}


def assert_close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-5, atol=1e-6)
    assert max(tensor.abs().max() for tensor in expected.values()) > 1e-3


Together = list[tuple[dict[str, Any], dict[str, torch.Tensor]]]


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_one_process_on_the_joint_batch(
    together: Together, pairs: PairSet, device: str, case: str
) -> None:
    alone, loss = first_gradients(config_for(device=device, **CASES[case]), pairs)
    assert not any("unused" in name for name in alone)
    for told, tensors in together:
        assert_close(under(case, tensors), alone)
        assert told[case] == pytest.approx(loss, rel=1e-6)


def test_each_process_has_dropout_of_its_own(together: Together, pairs: PairSet, device: str) -> None:
    config = config_for(device=device, dropout=0.3, chunk_names=3)
    _, model = make_step(config, pairs)
    step_batches = [_oracle_rows(pairs, number) for number in range(2)]
    for number, rows in enumerate(step_batches):
        lengths = pairs.store.offsets[rows + 1] - pairs.store.offsets[rows]
        order = np.argsort(lengths, kind="stable")
        parts, places = [], []
        for rank in range(WORLD):
            seed = np.random.SeedSequence([config.seed, number, rank]).generate_state(1, np.uint64)[0]
            torch.manual_seed(int(seed))
            share = order[rank::WORLD]
            for chunk in (share[:3], share[3:]):
                if len(chunk):
                    parts.append(
                        model(pack(pairs.store.offsets, pairs.store.ids, rows=rows[chunk]).to(torch.device(device)))
                    )
                    places.append(chunk)
        vectors = torch.cat(parts)[torch.from_numpy(np.argsort(np.concatenate(places))).to(device)]
        assert pairs.text_labels is not None
        texts, labels = (torch.from_numpy(of[rows]).to(device) for of in (pairs.text_labels, pairs.labels))
        loss, _ = objective(config.loss, config.mining, vectors, labels, text_labels=texts)
        (loss / 2).backward()  # type: ignore[no-untyped-call]
    expected = {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}
    for _, tensors in together:
        assert_close(under("dropout", tensors), expected)


def _oracle_rows(pairs: PairSet, number: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    from onoma.training.batches import PairBatches

    return PairBatches(pairs.pairs, batch_pairs=5, seed=0).names_of_step(number)


@pytest.mark.parametrize("what", ["trained", "halved"])
def test_all_processes_come_to_the_same_weights(together: Together, pairs: PairSet, what: str) -> None:
    first, *others = [under(what, tensors) for _, tensors in together]
    begun = make_step(config_for(), pairs)[1].state_dict()
    assert any(not torch.equal(first[name], begun[name]) for name in begun)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)


def test_all_processes_skip_the_same_overflows(together: Together) -> None:
    (first, _), *others = together
    assert first["overflowed"][0]
    assert not first["overflowed"][-1]
    assert all(told["overflowed"] == first["overflowed"] for told, _ in others)


def test_what_processes_tell_one_another(together: Together) -> None:
    assert [told["is_main"] for told, _ in together] == [True, False, False]
    assert [told["broadcast"] for told, _ in together] == [{"from": 0}] * WORLD
    assert [told["gathered"] for told, _ in together] == [torch.arange(14.0).view(7, 2).tolist()] * WORLD
    assert len({told["seconds"] for told, _ in together}) == 1


def test_gradients_are_summed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process with the same gradients is played."""
    sizes: list[int] = []

    def all_reduce(numbers: torch.Tensor, op: object = torch.distributed.ReduceOp.SUM) -> None:
        if op == torch.distributed.ReduceOp.SUM:
            sizes.append(numbers.numel())
            numbers.mul_(2)

    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    monkeypatch.setattr(distributed, "_BUCKET_NUMBERS", 10)
    shapes = [(5, 4), (2, 2), (6,), (1,), (3,), (7,)]
    weights = [torch.nn.Parameter(torch.zeros(shape)) for shape in [*shapes, (9,)]]
    gradients = [torch.rand(shape) for shape in shapes]
    for weight, gradient in zip(weights, gradients, strict=False):  # the last has none anywhere
        weight.grad = gradient.clone()
    distributed.sum_gradients(weights)
    assert sizes == [20, 10, 4, 7]  # the one that is too large by itself goes alone
    for weight, gradient in zip(weights, gradients, strict=False):
        assert weight.grad is not None
        assert torch.equal(weight.grad, 2 * gradient)
    assert weights[-1].grad is None


def test_one_process_needs_no_others() -> None:
    with distributed.processes("cpu"):
        assert (distributed.world_size(), distributed.rank(), distributed.is_main()) == (1, 0, True)
        assert distributed.broadcast("x") == "x"
        distributed.barrier()
        assert list(range(5))[distributed.share(5)] == list(range(5))
        rows = torch.ones(3, 2, requires_grad=True)
        assert not distributed.gather(rows, 3).requires_grad
        state = torch.get_rng_state()
        distributed.seed_dropout(0, 1)
        assert torch.equal(state, torch.get_rng_state())


def test_the_main_process_is_known_before_they_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, is_main in (("0", True), ("1", False)):
        monkeypatch.setenv("RANK", rank)
        assert distributed.is_main() is is_main
    monkeypatch.setenv("WORLD_SIZE", "1")  # what another launcher left behind
    assert distributed.is_main()
    monkeypatch.setenv("WORLD_SIZE", "9" * 5000)
    with pytest.raises(TrainingError, match=r"WORLD_SIZE is '9+', and no number of processes"):
        distributed.is_main()
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(TrainingError, match="WORLD_SIZE is 'two', and no number of processes"):
        distributed.is_main()


LEFT_ALONE = """
    import contextlib
    import sys
    from pathlib import Path
    from onoma.training import distributed

    try:
        with distributed.processes("cpu"), distributed.processes("cpu"):
            distributed.barrier()
            if distributed.rank() == 1:
                raise SystemExit("this one stops")
            distributed.broadcast("and waits in vain")
            distributed.barrier()
    finally:
        left = []
        for task in Path("/proc/self/task").glob("*/comm"):  # none but on Linux
            with contextlib.suppress(OSError):  # it has just ended
                left += [name for name in [task.read_text()] if "gloo" in name]
        print("threads of gloo's:", left, file=sys.stderr)
"""


def test_who_waits_for_a_process_that_stopped_is_told() -> None:
    """Threads of gloo's that are left at a process's end may abort it, now and then."""
    waiting, stopped = finish(started := start(2, "-c", textwrap.dedent(LEFT_ALONE)))
    assert stopped.splitlines()[-2:] == ["threads of gloo's: []", "this one stops"]
    assert "threads of gloo's: []" in waiting.splitlines()
    assert "PeerError: another process of this run has stopped" in waiting
    assert [process.returncode for process in started] == [1, 1]


GIVEN_ONE_GPU = """
    import os
    import sys
    from types import SimpleNamespace
    import torch
    from torch import distributed as group
    from onoma.training import distributed

    join = group.init_process_group
    group.init_process_group = lambda backend, **given: join("gloo", **given)
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.set_device = lambda number: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda number: SimpleNamespace(uuid=sys.argv[1 + int(os.environ["RANK"])])
    with distributed.processes("cuda"):
        print(distributed.world_size(), file=sys.stderr)
"""


@pytest.mark.parametrize("gpus", [("GPU-1", "GPU-1"), ("GPU-1", "GPU-2")])
def test_two_processes_that_were_shown_one_gpu_are_refused(
    gpus: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher may show each process its own GPU as the first: which it is, is told by its identity."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    said = finish(started := start(2, "-c", textwrap.dedent(GIVEN_ONE_GPU), *gpus))
    assert [process.returncode for process in started] == [int(len(set(gpus)) == 1)] * 2, said
    for words in said:
        assert ("2 processes have 1 GPUs between them" in words) is (len(set(gpus)) == 1)


def test_processes_that_no_launcher_started_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(TrainingError, match=r"could not be joined.*torchrun"), distributed.processes("cpu"):
        pass


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(TrainingError, match=r"4 processes .* 2 GPUs.*nproc-per-node 2"), distributed.processes("auto"):
        pass
