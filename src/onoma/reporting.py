"""What libraries report about whoever uses them: nothing.

Mentions are health data, and which models and tables somebody works on is nobody else's business. Some libraries tell
their makers of each start, of the machine and of the models that are opened, unless they are told not to. They are told
so here, by the variables that each of them documents, before any of them is imported. A variable that is set already
stays as it is: who wants to report may.
"""

from __future__ import annotations

import os

UNREPORTED = {
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""Variables that make ONNX Runtime, huggingface_hub, Ray and MLflow report nothing."""


def report_nothing() -> None:
    """Set the variables of `UNREPORTED`, for this process and those that it starts."""
    for name, value in UNREPORTED.items():
        os.environ.setdefault(name, value)
