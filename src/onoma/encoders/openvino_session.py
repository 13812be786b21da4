"""Running ONNX models with OpenVINO: bf16 without torch, on processors that multiply it natively."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.errors import DamagedArtifactError, UnavailableError, missing_extra
from onoma.types import FloatArray


class OpenVinoSession:
    """An ONNX model compiled for this processor; several threads may ask it, one after the other.

    Args:
        file: The model, in fp32.
        threads: For one call; all processors this process may use if not given.
        bf16: Multiply and keep states in bfloat16.

    Raises:
        UnavailableError: OpenVINO is not installed, or bf16 is asked of a processor that does not have it.
        DamagedArtifactError: the model cannot be run.
    """

    def __init__(self, file: Path, *, threads: int | None = None, bf16: bool = False) -> None:
        try:
            import openvino
        except ImportError:
            raise missing_extra("openvino", "openvino", "Running an encoder with OpenVINO") from None
        core = openvino.Core()
        if bf16 and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise UnavailableError("this processor does not multiply bfloat16; use precision='fp32'.")
        options: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": "bf16" if bf16 else "f32",
            "PERFORMANCE_HINT": "LATENCY",  # all threads for one call
        }
        if threads:
            options["INFERENCE_NUM_THREADS"] = threads
        try:
            model = core.read_model(str(file))
            self._request = core.compile_model(model, "CPU", options).create_infer_request()
        except Exception as error:  # the runtime's own exceptions share no public base
            words = " ".join(str(error).split())[:300]
            raise DamagedArtifactError(f"{file} is not an ONNX model that OpenVINO can run ({words}).") from None
        self._one_at_a_time = threading.Lock()
        self.inputs = {str(value.any_name) for value in model.inputs}
        """Names of what it reads."""
        self.outputs = [str(value.any_name) for value in model.outputs]
        """Names of what it gives."""

    def run(self, output: str, feeds: Mapping[str, npt.NDArray[np.int64]]) -> FloatArray:
        """One output, float32.

        Args:
            output: Its name.
            feeds: Inputs by name.
        """
        with self._one_at_a_time:  # it writes into the same memory each time
            self._request.infer(feeds)
            return np.array(self._request.get_tensor(output).data, np.float32)
