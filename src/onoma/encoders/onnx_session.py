"""Sessions of ONNX Runtime, which processes that are forked can use too.

The threads of a session are those of the process that began it, and what one of them holds in the instant of a fork
nobody gives back in the other process. So a forked process begins a session of its own, from the file that was opened,
whatever lies at its place by then; and no fork happens while a session runs or begins.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Never

import numpy.typing as npt
import onnxruntime

from onoma.encoders.onnx_files import linked_weights, with_weights_in_file
from onoma.errors import DamagedArtifactError, InputError, MismatchError
from onoma.forking import Turns, without_fork
from onoma.processors import usable_processors

INPUT_IDS, ATTENTION_MASK, TOKEN_TYPES = "input_ids", "attention_mask", "token_type_ids"
"""Inputs of a model, as transformers call them; the last is left out by many."""
NAME_VECTORS, PAIR_SCORES = "name_vectors", "pair_scores"
"""Output of the graphs that Onoma writes, which pool inside; see `onoma.encoders.onnx_graph`."""
_SHORT_OF_MEMORY = ("bad_alloc", "Failed to allocate memory")
"""What the runtime says that has no memory left; its exceptions tell it in their text alone."""
_FOLDER_OF_WEIGHTS = "session.model_external_initializers_file_folder_path"
_TAKES_WEIGHTS = "add_external_initializers_from_files_in_memory"
_BEYOND_TABLE = "indices element out of data bounds"


@contextlib.contextmanager
def _memory_errors_as_such() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the runtime's own exceptions share no public base
        if any(sign in str(error) for sign in _SHORT_OF_MEMORY):
            raise MemoryError(f"ONNX Runtime: {' '.join(str(error).split())[:300]}") from None
        raise


class OnnxSession:
    """Runs an ONNX model on this machine's processors.

    Args:
        file: The model.
        threads: For one call; as many as processors that this process may use (`onoma.processors`) if not given.
        unpacks_weights: Whether the model keeps its weights smaller than fp32.

    Raises:
        DamagedArtifactError: it cannot be run.
        MemoryError: there is too little memory for it.
    """

    def __init__(self, file: Path, *, threads: int | None = None, unpacks_weights: bool = False) -> None:
        if os.environ.get("ORT_DISABLE_TELEMETRY") == "1":  # also where it was imported before Onoma could say so
            onnxruntime.disable_telemetry_events()
        self._file, self._folder = file, file.absolute().parent
        self._threads = threads or usable_processors()
        levels = onnxruntime.GraphOptimizationLevel
        self._level = levels.ORT_ENABLE_ALL
        if _is_written_fused(file):
            # Onoma's graphs are written fused; looking for more costs half the start and changes no speed.
            # Small weights are made fp32 once, when the session starts, by the runtime's folding of constants.
            self._level = levels.ORT_ENABLE_BASIC if unpacks_weights else levels.ORT_DISABLE_ALL
        self._turns = Turns()
        if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
            self._descriptor = os.open(file, os.O_RDONLY)
            weakref.finalize(self, os.close, self._descriptor)
            self._session, self._process = self._begin_opened(), os.getpid()
            _sessions.add(self)
        else:
            self._session, self._process = self._begin(str(file)), os.getpid()
        self.inputs = tuple(value.name for value in self._session.get_inputs())
        self.outputs = tuple(value.name for value in self._session.get_outputs())

    def __reduce__(self) -> Never:
        raise InputError(
            "an encoder or reranker that is open is not copied or sent to another process",
            path=self._folder,
            fix="open it there: onoma.open_encoder(FOLDER), Reranker.open(FOLDER)",
        )

    def run(self, output: str, feeds: dict[str, npt.NDArray[Any]]) -> Any:
        """One output of the model for these inputs.

        Raises:
            MemoryError: there is too little memory for it.
            MismatchError: a token has a number that the model has no embedding for.
        """
        session = self._session if self._process == os.getpid() else self._of_this_process()
        try:
            with without_fork(), _memory_errors_as_such():
                return session.run([output], feeds)[0]
        except Exception as error:  # the runtime's own exceptions share no public base
            if _BEYOND_TABLE not in str(error):
                raise
            raise MismatchError(
                f"{self._file} has no embedding for a token of these names: the tokeniser beside it is of another "
                "model, or tokens were added to it. Take the two that belong together."
            ) from None

    def _of_this_process(self) -> onnxruntime.InferenceSession:
        with self._turns.lock:
            if self._process != os.getpid():
                self._session, self._process = self._begin_opened(), os.getpid()
            return self._session

    def _begin_opened(self) -> onnxruntime.InferenceSession:
        """A session of the file that was opened, whatever lies at its place by now."""
        if os.fstat(self._descriptor).st_size == 0:  # which cannot be mapped
            return self._begin(b"")
        with mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as model:
            # The runtime takes weights from the folder of the model alone; what links out of it lead to, it is handed.
            if self._lies_there():
                refers = None if self._file.is_symlink() else with_weights_in_file(model, self._file.name)
                with contextlib.suppress(DamagedArtifactError):
                    session = self._begin(refers or str(self._file))
                    if self._lies_there():
                        return session
            with linked_weights(model, self._folder) as linked:
                return self._begin(bytes(model), linked)

    def _lies_there(self) -> bool:
        try:
            return os.path.samestat(self._file.stat(), os.fstat(self._descriptor))
        except OSError:  # gone, or not to be seen by whom this process has become
            return False

    def _begin(self, model: str | bytes, linked: Mapping[str, mmap.mmap] | None = None) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        options.graph_optimization_level = self._level
        # Its threads wait for work by turning; after a run they would do so in the way of the search that comes next.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.add_session_config_entry(_FOLDER_OF_WEIGHTS, str(self._folder))
        if linked and hasattr(options, _TAKES_WEIGHTS):  # before 1.24 it followed links
            getattr(options, _TAKES_WEIGHTS)(list(linked), list(linked.values()), list(map(len, linked.values())))
        try:
            with without_fork(), _memory_errors_as_such():
                return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except MemoryError:
            raise
        except Exception as error:  # the runtime's own exceptions share no public base
            raise DamagedArtifactError(f"{self._file} is not an ONNX model that can be run ({error}).") from None


_sessions: weakref.WeakSet[OnnxSession] = weakref.WeakSet()


def _keep_those_of_the_parent() -> None:
    """In a process that was forked a session of its parent, taken down, would wait for threads that are not there."""
    for session in list(_sessions):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session._session))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_those_of_the_parent)


def _is_written_fused(file: Path) -> bool:
    """Whether `onoma.encoders.onnx_graph` wrote this model; a model begins with its producer's name."""
    with file.open("rb") as handle:
        return b"onoma" in handle.read(64)
