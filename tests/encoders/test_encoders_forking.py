"""Processes that are forked while other threads encode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_encoders import write_tiny

from onoma.encoders import export_encoder
from onoma.encoders.folders import ONNX_NAME

_FORKED_BESIDE_RUNS = """
import os, signal, sys, threading, numpy as np
from onoma.encoders import locate_encoder
from onoma.encoders.onnx_encoder import OnnxEncoder
signal.alarm(50)
encoder = OnnxEncoder(locate_encoder(sys.argv[1]), threads=3)
names = ["heart attack", "flu"]
expected = encoder.encode(names)
os.remove(sys.argv[2])  # as where another folder takes its place: what was opened is what is run
is_over = threading.Event()
def run():
    while not is_over.is_set():
        encoder.encode(names)
threads = [threading.Thread(target=run) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(8):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        # They leave as programs do, taking down what was the parent's too; some never encode.
        if number == 3:
            del encoder
        if number > 4:
            sys.exit(0 if np.allclose(encoder.encode(names), expected, atol=1e-5) else 1)
        sys.exit(0)
    if os.waitpid(child, 0)[1]:
        is_over.set()
        sys.exit(1)
is_over.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_processes_that_are_forked_while_other_threads_encode_do_so_too(tmp_path: Path) -> None:
    export_encoder(write_tiny(tmp_path / "base", "bert"), tmp_path / "own")
    command = [sys.executable, "-c", _FORKED_BESIDE_RUNS, str(tmp_path / "own"), str(tmp_path / "own" / ONNX_NAME)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
