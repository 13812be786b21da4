from __future__ import annotations

import csv
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from onoma.artifacts import verify_artifact
from onoma.cli import show
from onoma.quickstart import MENTIONS, QuickstartResult, run_quickstart


def run(folder: Path, *, seed: int = 0) -> QuickstartResult:
    """The whole job on the Cell Ontology, which is small, with a few seconds of training."""
    return run_quickstart(folder, display=show, ontology="CL", n_hidden=100, minutes=0.1, seed=seed)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("cellxgene_ontology_guide") is None, reason="needs the extra onoma[quickstart]")
def test_first_run_second_run_other_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(tmp_path)
    assert "reusing" not in capsys.readouterr().err
    assert first.before.n_queries == first.after.n_queries == first.exact.n_queries == 100
    assert 0 < first.before.at_1.value <= first.before.at_5.value <= 1
    assert first.exact.at_1.value < first.before.at_1.value
    assert [mention for mention, _, _ in first.links] == [mention for mention, _ in MENTIONS]
    for name in ("terminology", "base-linker", "encoder", "linker", "results"):
        verify_artifact(tmp_path / name)
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert results["after"]["at_1"]["value"] == first.after.at_1.value
    with (tmp_path / "hidden-synonyms.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) == 101

    second = run(tmp_path)
    assert capsys.readouterr().err.count("reusing") == 4
    assert (second.before, second.after, second.links) == (first.before, first.after, first.links)

    run(tmp_path, seed=1)
    told = capsys.readouterr().err
    assert told.count("reusing") == 2, "terminology and base linker stay; encoder and linker are made anew"
