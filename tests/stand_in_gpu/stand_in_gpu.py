"""A stand-in for a GPU: what only a GPU runs is run where there is none.

``pytest -p stand_in_gpu``, with this folder in ``PYTHONPATH``, gives torch for the CPU a device "cuda" that computes on
the CPU (`stand_in_gpu.cpp`, compiled at each start for the torch that is installed, in some ten seconds). A tensor on
the wrong device is an error, autocast is that of CUDA, and what asks ``torch.cuda`` finds one card of compute
capability 9.0. It has no kernels of a GPU's own: nothing is learned of speed, memory, rounding or several GPUs; our
kernels are passed over, flash
attention is written down by its definition, and what should be compiled is traced only.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).with_suffix(".cpp")


def pytest_configure() -> None:
    """Load it before torch, which looks once whether there is a GPU."""
    assert "torch" not in sys.modules
    sys.modules["triton"] = None  # type: ignore[assignment] # not to be found: it would ask for a real GPU
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    for library in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(folder / "lib" / library), ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory() as made:
        _compile(folder, Path(made) / "gpu.so")
        ctypes.CDLL(str(Path(made) / "gpu.so"), ctypes.RTLD_GLOBAL)
    _stand_in()


def _compile(torch_folder: Path, to: Path) -> None:
    include = torch_folder / "include"
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
    libraries = [f"-L{torch_folder / 'lib'}", "-lc10", "-ltorch_cpu"]
    subprocess.run(["g++", *options, str(_SOURCE), *libraries, "-o", str(to)], check=True)


class _Event:
    """What a GPU notes as it comes by; this one has done all when it is asked."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self, stream: object = None) -> None:
        self.at = time.perf_counter()

    def query(self) -> bool:
        return True

    def elapsed_time(self, later: _Event) -> float:
        return 1000 * (later.at - self.at)


def _stand_in() -> None:
    import torch
    from attention_by_definition import flash_backward, flash_forward

    answers: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "current_stream": None,
        "get_device_capability": (9, 0),
        "get_device_name": "a stand-in for a GPU",
        "is_bf16_supported": True,
        "synchronize": None,
        "_is_in_bad_fork": False,
        "_lazy_init": None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *arguments, answer=answer, **named: answer)
    # One source of random numbers serves both devices.
    torch.cuda.get_rng_state = lambda device=None: torch.get_rng_state()
    torch.cuda.set_rng_state = lambda new_state, device=None: torch.set_rng_state(new_state)
    torch.cuda.manual_seed_all = lambda seed: None
    torch.cuda.Event = _Event  # type: ignore[assignment, misc]
    torch.compile = functools.partial(torch.compile, backend="aot_eager")
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    library.impl("_flash_attention_forward", flash_forward, "CUDA")
    library.impl("_flash_attention_backward", flash_backward, "CUDA")
    _kept.append(library)


_kept: list[Any] = []
"""What torch would forget."""
