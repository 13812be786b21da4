"""Tables that are mapped with other stages, names and confidences than the linker has by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mapping_data import make_linker, make_parts_small, read_table, rows_of, write_table

from onoma.artifacts import amend_artifact
from onoma.cli.map import map_
from onoma.errors import ConfigError, InputError, MismatchError
from onoma.linking import Asking, Linker, build_linker
from onoma.linking.calibration import Calibration
from onoma.linking.confidence_features import FEATURE_NAMES
from onoma.linking.confidence_metrics import threshold_in_words
from onoma.linking.filters import Filters
from onoma.linking.folder import FORMAT_VERSION, KIND
from onoma.linking.mentions import Preparation
from onoma.mapping import map_table
from onoma.terminology import import_terminology

ROWS = rows_of(60)


@pytest.fixture
def linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With confidences for its stages, exact and dense, that have nothing to do with anything."""
    make_parts_small(monkeypatch)
    folder = make_linker(tmp_path)
    random = np.random.default_rng(0)
    calibration = Calibration.fit(random.standard_normal((60, len(FEATURE_NAMES))), random.random(60) < 0.5)
    settings = Linker.open(folder).settings
    with amend_artifact(folder, KIND, format_version=FORMAT_VERSION) as aside:
        settings.replaced(calibration=calibration.to_json(), calibrated_stages=settings.stages).save(aside)
    assert Linker.open(folder).is_calibrated
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_table(tmp_path / "x.csv", ROWS)


def middle_confidence(linker: Path) -> float:
    mentions = [row["mention"] or "" for row in ROWS]
    found = [links[0].confidence for links in Linker.open(linker).link(mentions, top_k=1) if links]
    return float(np.median([confidence for confidence in found if confidence is not None]))


@pytest.mark.parametrize("what", ["stages", "language", "confidence", "all answered"])
def test_answers_are_those_of_a_linker_that_is_asked_so(what: str, linker: Path, source: Path, tmp_path: Path) -> None:
    opened, options = Linker.open(linker), dict[str, Any]()
    least = middle_confidence(linker)
    asking = {
        "stages": Asking(stages=("exact",)),
        "language": Asking(filters=Filters.of(languages="en")),
        "confidence": Asking(no_concept_below=least),
        "all answered": Asking(no_concept_below=0.0),
    }[what]
    if what == "stages":
        options["stages"] = ["exact"]
    elif what == "language":
        opened = opened.only(languages="en")
    else:
        options["no_concept_below"] = asking.no_concept_below
    report = map_table(linker, source, tmp_path / "y.csv", column="mention", asking=asking)
    found = read_table(tmp_path / "y.csv")
    for row, answer in zip(ROWS, found, strict=True):
        (links,) = opened.link([row["mention"] or ""], top_k=1, **options)
        assert answer["concept_id"] == (links[0].concept_id if links else None)
    assert ("confidence" in found[0]) == (what != "stages"), "confidences are of the linker's own stages"
    assert report.no_concept_below == (asking.no_concept_below or None), "nothing lies below 0"
    assert (report.development_confidence is None) == (what in {"stages", "language"}), "with filters others are given"
    by_itself = map_table(linker, source, tmp_path / "z.csv", column="mention")
    assert (report.n_linked < by_itself.n_linked) == (what in {"stages", "confidence"})


@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize("least", [0.0, None])
def test_confidences_are_summed_up_over_different_mentions(
    least: float | None, is_stopped: bool, linker: Path, source: Path, tmp_path: Path
) -> None:
    least = middle_confidence(linker) if least is None else least
    asking, output = Asking(no_concept_below=least), tmp_path / "y.csv"
    if is_stopped:

        def interrupt(_done: int, _total: int | None, what: str) -> None:
            if what == "writing":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            map_table(linker, source, output, column="mention", top_k=2, asking=asking, progress=interrupt)
    report = map_table(linker, source, output, column="mention", top_k=2, asking=asking)
    mentions = sorted({row["mention"] for row in ROWS if row["mention"]})
    found = [
        links[0].confidence for links in Linker.open(linker).link(mentions, top_k=1, no_concept_below=least) if links
    ]
    confidences = [one for one in found if one is not None]
    assert report.mean_confidence == pytest.approx(sum(confidences) / len(confidences))
    tenths = [sum(n / 10 <= one < (n + 1) / 10 + (n == 9) for one in confidences) for n in range(10)]
    assert report.n_by_confidence == tenths
    settings = Linker.open(linker).settings
    assert settings.calibration is not None
    development = Calibration.from_json(settings.calibration).development
    answered, n_before = list[float](), 0
    for threshold, n_kept in zip(development.thresholds, development.n_kept, strict=True):
        answered += [threshold] * (n_kept - n_before) if threshold >= least else []
        n_before = n_kept
    assert report.development_confidence == pytest.approx(sum(answered) / len(answered))


def test_confidences_of_parts_are_summed_up(linker: Path, tmp_path: Path) -> None:
    source = write_table(tmp_path / "x.csv", [{**ROWS[0], "mention": "cold and sugar disease"}])
    wanted = Preparation(composites=True)
    found = Linker.open(linker).preparing(wanted).link(["cold and sugar disease"], top_k=2)[0]
    confidences = [link.confidence for link in found if link.confidence is not None]
    assert len(confidences) == 2
    report = map_table(linker, source, tmp_path / "y.csv", column="mention", top_k=2, preparation=wanted)
    assert (report.n_mentions, sum(report.n_by_confidence)) == (1, 2)
    assert report.mean_confidence == pytest.approx(sum(confidences) / 2)


def test_without_confidences_none_are_summed_up(linker: Path, source: Path, tmp_path: Path) -> None:
    asking = Asking(stages=("exact",))
    report = map_table(linker, source, tmp_path / "y.csv", column="mention", asking=asking)
    assert (report.mean_confidence, report.development_confidence, sum(report.n_by_confidence)) == (None, None, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_homonyms_are_ranked_by_the_type_that_is_expected(workers: int, tmp_path: Path) -> None:
    table = "id,name,type\nA,cold,Finding\nB,cold,Disease or Syndrome\nC,cold,Phenomenon\nA,flu,Finding\n"
    (tmp_path / "t.csv").write_text(table)
    options = {"id": "id", "name": "name", "semantic_type": "type"}
    import_terminology("table", tmp_path / "t.csv", tmp_path / "t", options=options)
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    source = write_table(tmp_path / "x.csv", [{"mention": "cold"}, {"mention": "flu"}])
    asking = Asking(expected_types=("Disease or Syndrome",))
    map_table(
        tmp_path / "linker", source, tmp_path / "y.csv", column="mention", top_k=3, asking=asking, workers=workers
    )
    assert [row["concept_id"] for row in read_table(tmp_path / "y.csv")] == ["B", "A", "C", "A", "B", "C"]
    map_table(tmp_path / "linker", source, tmp_path / "z.csv", column="mention")
    assert [row["concept_id"] for row in read_table(tmp_path / "z.csv")] == ["A", "A"]
    asked = Asking(expected_types=("Diseas",))
    with pytest.raises(InputError, match="Diseas"):
        map_table(tmp_path / "linker", source, tmp_path / "w.csv", column="mention", asking=asked)


def test_order_of_what_is_asked_for_is_no_matter() -> None:
    asked = Asking(stages=("dense", "exact"), filters=Filters.of(languages=["en", "de"], sources=["B", "A"]))
    assert asked == Asking(stages=("exact", "dense"), filters=Filters.of(languages=["de", "en"], sources=["A", "B"]))
    assert Asking(expected_types=("B", "A")) == Asking(expected_types=("A", "B", "A"))
    with pytest.raises(ConfigError, match="no stage 'exakt'"):
        Asking(stages=("exakt",))


def test_several_processes_are_asked_the_same(linker: Path, source: Path, tmp_path: Path) -> None:
    asking = Asking(stages=("exact",), filters=Filters.of(languages="en"))
    for workers in (1, 2):
        map_table(linker, source, tmp_path / f"{workers}.csv", column="mention", asking=asking, workers=workers)
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


def test_unfinished_work_that_was_asked_otherwise_is_not_gone_on_with(
    linker: Path, source: Path, tmp_path: Path
) -> None:
    def stop(done: int, _total: int | None, what: str) -> None:
        if what == "linking" and done > 5:  # once a task is done
            raise KeyboardInterrupt

    def mapped(asking: Asking | None, **options: Any) -> None:
        map_table(linker, source, tmp_path / "y.csv", column="mention", asking=asking, **options)

    with pytest.raises(KeyboardInterrupt):
        mapped(Asking(stages=("exact",)), progress=stop)
    for asking in (None, Asking(stages=("dense",))):
        with pytest.raises(MismatchError, match=r"\(stages: exact, now (none|dense)\)"):
            mapped(asking)
    mapped(Asking(stages=("exact",)))
    with pytest.raises(KeyboardInterrupt):
        map_table(linker, source, tmp_path / "z.csv", column="mention", progress=stop)
    map_table(linker, source, tmp_path / "z.csv", column="mention", asking=Asking())  # asks for nothing


@pytest.mark.parametrize(
    ("asking", "error", "match"),
    [
        (Asking(stages=("sparse",)), ConfigError, "no stage 'sparse'"),
        (
            Asking(stages=("exact",), no_concept_below=0.5),
            ConfigError,
            "calibrated for the stages exact, variants, dense",
        ),
        (Asking(no_concept_below=2.0), ConfigError, "from 0 to 1"),
        (Asking(filters=Filters.of(languages="tlh")), InputError, "tlh"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_read(
    asking: Asking, error: type[Exception], match: str, linker: Path, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(error, match=match):
        map_table(linker, source, tmp_path / "y.csv", column="mention", asking=asking)
    assert not (tmp_path / ".y.csv.map").exists()


def test_the_command(linker: Path, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    least = middle_confidence(linker)
    map_(linker, source, tmp_path / "a.csv", "mention", min_confidence=least)
    assert f"below a confidence of {threshold_in_words(least)}; rows without a link" in capsys.readouterr().err.replace(
        "\n", " "
    )
    map_(linker, source, tmp_path / "b.csv", "mention", stages="exact, loose", language=["en"])
    assert "no confidences are given: they were learned for the stages exact, variants, dense" in (
        capsys.readouterr().err.replace("\n", " ")
    )
    for name, asking in (
        ("a", Asking(no_concept_below=least)),
        ("b", Asking(stages=("exact", "loose"), filters=Filters.of(languages="en"))),
    ):
        map_table(linker, source, tmp_path / f"{name}2.csv", column="mention", asking=asking)
        assert (tmp_path / f"{name}.csv").read_bytes() == (tmp_path / f"{name}2.csv").read_bytes()
    with pytest.raises(ConfigError, match="either --min-confidence or --min-precision"):
        map_(linker, source, tmp_path / "c.csv", "mention", min_confidence=0.5, min_precision=0.5)
