"""Several processes that train one model: who they are, and what they tell one another.

Each process holds the whole model and encodes its share of every batch; vectors are exchanged, so that each name has
the names of all processes as negatives. Started on one machine, a process for each GPU, by::

    torchrun --nproc-per-node 2 --no-python onoma train RECIPE --terminology DIR --out ENCODER

or ``accelerate launch --multi_gpu --num_processes 2 --no_python onoma train ...``; on several machines see torchrun's
``--nnodes`` and ``--rdzv-endpoint``. The machines share the disk that ``ENCODER`` lies on. Any launcher will do that
sets ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, ``MASTER_ADDR`` and ``MASTER_PORT``. Without them, and outside
`processes`, every function here does what one process needs: nothing.

Shapes: n things dealt out to the processes, W processes, D width.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import traceback
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed

from onoma.errors import TrainingError, first_line

T = TypeVar("T")
P = ParamSpec("P")

_PATIENCE = timedelta(hours=1)
"""How long a process waits for another, which may be building the pairs of a large terminology meanwhile."""

_BUCKET_NUMBERS = 2**24
"""Numbers that are summed over the processes at a time: 64 MiB, so that the copy stays small beside the model."""


class PeerError(TrainingError):
    """This process has not failed: another one is gone."""


@contextlib.contextmanager
def processes(device: str = "auto") -> Iterator[None]:
    """Join the processes that a launcher started, and leave them at the block's end.

    Does nothing when there is one process or the processes were joined before, so it may be nested.

    Args:
        device: As in `TrainingConfig`. On GPUs each process takes that of its ``LOCAL_RANK``.

    Raises:
        TrainingError: there are fewer GPUs than processes, two have the same one, or the others are not to be reached.
    """
    if _joined() or _started() == 1:
        yield
        return
    on_gpus = device != "cpu" and torch.cuda.is_available()
    try:
        _join(on_gpus=on_gpus)
        yield
    except BaseException:
        # gloo waits for nobody, and its threads abort a process that ends with them. NCCL would wait for processes that
        # have not failed; they notice that this one ends.
        if _joined() and not on_gpus:
            distributed.destroy_process_group()
        raise
    distributed.destroy_process_group()


def world_size() -> int:
    """Number of processes, W."""
    return distributed.get_world_size() if _joined() else 1


def rank() -> int:
    """This process's number, 0..W-1."""
    return distributed.get_rank() if _joined() else 0


def is_main() -> bool:
    """Whether this is the process that writes files and speaks to the user; known outside `processes` too."""
    return rank() == 0 if _joined() or _started() == 1 else os.environ.get("RANK") == "0"


def by_main(callback: Callable[P, None] | None) -> Callable[P, None]:
    """What is called in the main process only."""
    return callback if callback is not None and is_main() else lambda *_, **__: None


def broadcast(value: T) -> T:
    """The main process's value; each process waits here until the main one has come by."""
    if world_size() == 1:
        return value
    told = [value]
    with _failures_in_words():
        distributed.broadcast_object_list(told, src=0, device=torch.device("cpu"))
    return told[0]


def barrier() -> None:
    """Wait until every process has come here."""
    if world_size() > 1:
        with _failures_in_words():
            distributed.all_reduce(torch.zeros(1))


def share(n: int) -> slice:
    """Which of n things are this process's: one in turn for each, so that sorted things are dealt out evenly."""
    return slice(rank(), n, world_size())


def gather(own: Tensor, n: int) -> Tensor:
    """The rows of all processes in the order before `share` dealt them out, without gradient, shape (n, D).

    Args:
        own: Rows of this process's share, shape (its size, D); sizes differ by one at most, and may be zero.
        n: Rows over all processes.
    """
    world = world_size()
    if world == 1:
        return own.detach()
    turns = -(-n // world)
    filled = own.new_zeros(turns, own.shape[1])
    filled[: len(own)] = own.detach()
    received = [torch.empty_like(filled) for _ in range(world)]
    with _failures_in_words():
        distributed.all_gather(received, filled)
    return torch.stack(received, dim=1).flatten(0, 1)[:n]  # (turns, W, D): things were dealt out in turn


def sum_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Give every process the sum of all processes' gradients, equal to the bit on each.

    A parameter that has a gradient on some processes only counts as zero on the others; one that has none anywhere
    keeps none, so that the optimiser passes over it as it would in a single process.
    """
    if world_size() == 1:
        return
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    known = torch.tensor([parameter.grad is not None for parameter in trained], dtype=torch.int32)
    with _failures_in_words():
        distributed.all_reduce(known, op=distributed.ReduceOp.MAX)
        gradients = []
        for parameter, somewhere in zip(trained, known.tolist(), strict=True):
            if somewhere:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            distributed.all_reduce(flat)
            for gradient, summed in zip(bucket, flat.split_with_sizes([g.numel() for g in bucket]), strict=True):
                gradient.copy_(summed.view_as(gradient))


def seed_dropout(seed: int, batch: int) -> None:
    """Give each of several processes its own dropout, a pure function of seed, batch and process.

    A resumed run needs no random state of the other processes for it. A single process goes on in its own stream of
    random numbers, which the checkpoint holds.
    """
    if world_size() > 1:
        drawn = np.random.SeedSequence([seed, batch, rank()]).generate_state(1, np.uint64)
        torch.manual_seed(int(drawn[0]))


def _started() -> int:
    """Number of processes that the launcher says it started."""
    return _said_by_launcher("WORLD_SIZE", 1)


def _said_by_launcher(variable: str, otherwise: int) -> int:
    said = os.environ.get(variable, str(otherwise))
    if not said.isdecimal() or len(said) > 9:
        raise TrainingError(
            f"the environment's {variable} is {said[:80]!r}, and no number of processes. Start them with torchrun or "
            "accelerate, which set it, or unset it."
        )
    return int(said)


def _joined() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _join(*, on_gpus: bool) -> None:
    world = _started()
    if on_gpus:
        wanted, found = _said_by_launcher("LOCAL_WORLD_SIZE", world), torch.cuda.device_count()
        # Some launchers show each process a GPU of its own, which it then knows as the first.
        has_its_own = found == 1 and "CUDA_VISIBLE_DEVICES" in os.environ
        if wanted > found and not has_its_own:
            raise TrainingError(
                f"{wanted} processes were started on this machine, which has {found} GPUs. Start one for each GPU "
                f"(--nproc-per-node {found}), or set device=cpu."
            )
        torch.cuda.set_device(0 if has_its_own else _said_by_launcher("LOCAL_RANK", 0))
    # Whoever imports this module later (transformers does) would keep the group alive in the defaults of its functions:
    # leaving it would then not end its threads, and a process that exits with them running may abort.
    importlib.import_module("torch.distributed.nn.functional")
    try:
        # Small things (decisions, what is known) travel between the CPUs also where vectors travel between GPUs.
        distributed.init_process_group("cpu:gloo,cuda:nccl" if on_gpus else "gloo", timeout=_PATIENCE)
    except (ValueError, RuntimeError) as error:
        raise TrainingError(
            f"WORLD_SIZE says that {world} processes train together, but they could not be joined "
            f"({first_line(error)}). Start them with torchrun or accelerate launch; for one process unset WORLD_SIZE."
        ) from None
    if on_gpus:
        _refuse_shared_gpus(world)


def _refuse_shared_gpus(world: int) -> None:
    """NCCL takes no two processes for one GPU; that says so on all of them, before any of them waits."""
    own = (socket.gethostname(), str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid))
    taken = [own] * world
    with _failures_in_words():
        distributed.all_gather_object(taken, own)  # between the CPUs
    if len(set(taken)) < world:
        distributed.destroy_process_group()  # as all of them do: NCCL has not begun, so none waits
        shown = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise TrainingError(
            f"{world} processes have {len(set(taken))} GPUs between them: each needs one of its own. "
            + ("Start one for each GPU." if shown is None else f"Here CUDA_VISIBLE_DEVICES={shown}: show more of them.")
        )


def _buckets(gradients: list[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    for gradient in gradients:
        if bucket and sum(held.numel() for held in bucket) + gradient.numel() > _BUCKET_NUMBERS:
            yield bucket
            bucket = []
        bucket.append(gradient)
    if bucket:
        yield bucket


@contextlib.contextmanager
def _failures_in_words() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # gloo has no error of its own
        traceback.clear_frames(error.__traceback__)  # which would keep the group alive, and with it gloo's threads
        raise PeerError(
            "another process of this run has stopped, or has not answered for an hour; what it said last tells why "
            f"({first_line(error)})."
        ) from None
