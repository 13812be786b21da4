"""A few spoilt inputs for every reader; `make fuzz` tries as many as one has time for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fuzz_readers
import pytest
from fuzz_readers import files_of, read_spoilt, spoilt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from terminology_samples import SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_spoilt_input_is_read_or_refused_in_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    source, files = files_of(SAMPLES[name], folder)
    if SAMPLES[name].package:
        monkeypatch.syspath_prepend(folder)
    assert read_spoilt(SAMPLES[name], source, files, folder) == {"strict: read": 1, "skip: read": 1}

    @settings(max_examples=5, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        read_spoilt(SAMPLES[name], source, data.draw(spoilt(files)), folder)

    run()
    capfd.readouterr()  # Polars tells of its panics on standard error


def test_the_script_starts_by_itself() -> None:
    """Without the folders that pytest looks for modules in."""
    subprocess.run([sys.executable, fuzz_readers.__file__, "--help"], check=True, capture_output=True)
