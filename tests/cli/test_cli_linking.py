"""``onoma link`` and ``onoma linker`` with stages, filters, explanations and confidence."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from linking_data import MANY_NAMES, write_letter_encoder, write_letter_linker
from rich.console import Console

from commands import invoke, run
from onoma.artifacts import read_manifest, verify_artifact
from onoma.cli import show
from onoma.cli.asking import least_confidence
from onoma.cli.linker_tune import _show_confidence, _show_learned, _show_mentions
from onoma.errors import ConfigError, InputError, OnomaError
from onoma.files.reading import Reading
from onoma.linking import Linker, TuningReport, tune_linker
from onoma.linking.confidence_metrics import threshold_in_words
from onoma.linking.folder import open_components
from onoma.linking.trials import AbstentionReport, Accuracies, CalibrationReport, Wish
from onoma.linking.tuning import BY_WEIGHTS
from onoma.pairs.mentions import mentions_fingerprint, read_mentions
from tiny import Name, make_terminology, tiny_encoder
from tiny_rerankers import write_reranker

CONCEPTS: dict[str, list[str | Name]] = {
    "D1": ["Diabetes Mellitus", "sugar disease", Name("Zuckerkrankheit", "de", source="UMLS")],
    "D2": ["Cold"],
    "D3": ["Chronic Obstructive Lung Disease", "COLD"],
    "D4": ["Common Cold", "cold", "head-cold"],
}
TYPES = {"D1": ["Disease"], "D2": ["Phenomenon"], "D3": ["Disease"], "D4": ["Disease"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    write_letter_encoder(folder / "letters")
    many = {f"N{row}": [f"{'abcdefghij'[row // 10]}{'klmnopqrst'[row % 10]} syndrome"] for row in range(60)}
    relations = [("D3", "is_a", "D4")]
    make_terminology(folder / "t", {**CONCEPTS, **many}, semantic_types=TYPES, relations=relations)
    told = run("linker", "build", "-t", folder / "t", "-e", folder / "letters", "--sparse", "-o", folder / "linker")
    assert "links to 64 concepts by 69 names" in told
    return folder


def links(place: Path, *words: str, linker: str = "linker") -> list[dict[str, Any]]:
    (line,) = run("link", place / linker, *words, "--json").splitlines()
    found: list[dict[str, Any]] = json.loads(line)["links"]
    return found


def ids(place: Path, *words: str) -> list[str]:
    return [link["concept_id"] for link in links(place, *words)]


def test_filters_and_stages(place: Path) -> None:
    assert ids(place, "cold", "-k", "3") == ["D2", "D3", "D4"]
    assert ids(place, "cold", "-k", "3", "--expect-type", "Disease") == ["D3", "D4", "D2"]
    assert ids(place, "cold", "--semantic-type", "Phenomenon") == ["D2"]
    assert ids(place, "cold", "--under", "D4") == ["D3", "D4"]
    assert ids(place, "krankheit", "--language", "de") == ["D1"]
    assert ids(place, "krankheit", "--source", "UMLS", "--stages", "sparse") == ["D1"]
    assert ids(place, "head cold", "--stages", "exact") == []
    assert ids(place, "head cold", "--stages", "exact,loose") == ["D4"]
    assert ids(place, "head cold", "--stages", "exact, loose") == ["D4"]


def test_without_calibration_there_is_no_confidence(place: Path) -> None:
    assert "confidence" not in links(place, "cold")[0]
    heading = run("link", place / "linker", "cold").splitlines()[0]
    assert re.split(" {2,}", heading.strip()) == ["mention", "concept", "preferred name", "matched name", "score"]


def test_explanations(place: Path) -> None:
    told = run("link", place / "linker", "the colds", "COLD", "--explain", "-k", "2")
    for words in ("the mention is a name of it", "near miss", "fused: reciprocal ranks", "cosines dense", "dense 1."):
        assert words in told
    explained = [Linker.open(place / "linker").explain(mention, top_k=2) for mention in ("the colds", "COLD")]
    assert [line.rstrip() for line in told.splitlines()] == [*"\n\n".join(map(str, explained)).splitlines(), ""]
    (line,) = run("link", place / "linker", "COLD", "--explain", "--json").splitlines()
    record = json.loads(line)
    assert record["links"][0]["contributions"] == {"exact": 1.0}
    assert record["links"][0]["homonyms"] == ["D3", "D4"]
    assert record["mention"] == "COLD"


def test_a_linker_without_an_encoder(place: Path, tmp_path: Path) -> None:
    run("linker", "build", "-t", place / "t", "--no-encoder", "--ngrams", "2-3", "-o", tmp_path / "linker")
    assert links(tmp_path, "comon cold", "-k", "1")[0]["concept_id"] == "D4"
    with pytest.raises(ConfigError, match="either --encoder or --no-encoder"):
        run("linker", "build", "-t", place / "t", "-o", tmp_path / "other")
    for lengths in ("2", "1-" + "9" * 5000):
        with pytest.raises(ConfigError, match=f"such as 1-2; found '{lengths}'"):
            run("linker", "build", "-t", place / "t", "--no-encoder", "--ngrams", lengths, "-o", tmp_path / "other")
    for option in (["--index", "sign-bits"], ["--vectors", "fp16"], ["--precision", "int8"], ["--dimensions", "8"]):
        with pytest.raises(ConfigError, match=f"{option[0]}.* leave them out with --no-encoder"):
            run("linker", "build", "-t", place / "t", "--no-encoder", *option, "-o", tmp_path / "other")


def test_concepts_without_a_name_are_told(tmp_path: Path) -> None:
    concepts: dict[str, list[str | Name]] = {"A1": ["cold"], "A2": ["+", "(-)"], "A3": ["-", "flu"], "A4": ["()"]}
    suppressed = {"A5": [Name("x", is_suppressed=True)]}
    make_terminology(tmp_path / "t", {**concepts, **suppressed, "A6": ["-"]}, obsolete={"A6"})
    make_terminology(tmp_path / "u", {**concepts, "A2": ["plus"], "A4": ["zero"]})
    linker = tmp_path / "linker"

    def told(*words: str | Path) -> str:
        done = invoke("linker", *words)
        assert done.exit_code == 0, done.output
        return " ".join(done.stderr.split())

    build = ("build", "-t", tmp_path / "t", "--no-encoder", "-o")
    said = told(*build, linker, "--normalisation", "biosyn")
    assert "3 active concepts will never be an answer" in said
    assert "blank after normalisation biosyn (A2, A4, A5)" in said
    assert json.loads(run("linker", "info", linker, "--json"))["n_concepts_without_name"] == 3
    assert "1 active concept will never be" in told(*build, tmp_path / "other", "--normalisation", "exact")
    figures = json.loads(run("linker", "update", linker, "-t", tmp_path / "t", "--json"))
    assert (figures["is_current"], figures["n_concepts_without_name"]) == (True, 3)
    assert "never be an answer" not in told("update", linker, "-t", tmp_path / "u")
    assert json.loads(run("linker", "info", linker, "--json"))["n_concepts_without_name"] == 0


def test_an_index_says_how_many_names_it_scores(place: Path, tmp_path: Path) -> None:
    index = ("--index", "sign-bits", "--vectors", "int16")
    run("linker", "build", "-t", place / "t", "-e", place / "letters", *index, "-o", tmp_path / "linker")
    told = json.loads(run("linker", "info", tmp_path / "linker", "--json"))
    assert (told["index"], told["vectors"], told["n_candidates_scored_exactly"]) == (
        "sign-bits",
        "int16",
        told["n_texts"],
    )
    assert "n_candidates_scored_exactly" not in json.loads(run("linker", "info", place / "linker", "--json"))


@pytest.fixture
def mentions(tmp_path: Path) -> Path:
    lines = [f"N{row}||the {'abcdefghij'[row // 10]}{'klmnopqrst'[row % 10]} syndrome" for row in range(60)]
    lines += [f"N{row}||{'klmnopqrst'[row % 10]}{'abcdefghij'[row // 10]} syndroem" for row in range(60)]
    lines += ["NIL||nothing of the kind", "D9||unheard of", "no separator"]
    (tmp_path / "dev.txt").write_text("\n".join(lines) + "\n")
    return tmp_path / "dev.txt"


def test_tuning(place: Path, mentions: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "linker", tmp_path / "linker")
    tune: list[str | Path] = ["linker", "tune", tmp_path / "linker", "--mentions", mentions]
    with pytest.raises(InputError, match="line 123"):
        run(*tune)
    wish = ["--min-precision", "0.3", "--certainty", "0.9"]
    done = invoke(*tune, "--on-error", "skip", *wish)
    assert done.exit_code == 0, done.output
    for words in (
        "122 mentions, 1 of them without a concept",
        "reciprocal ranks",
        "weights: dense",
        "calibration error",
        "(perfect confidences: 0.",
        "of the distinct mentions answered\nit was learned from ",
        "\nthresholds learned without a fifth of them, on that fifth: 0.",
    ):
        assert words in done.stdout
    assert "mean a concept that the linker has" not in done.stderr
    assert "line 123: left out" in done.stderr
    assert "1 mention of concepts that the linker does not have, such as D9" in done.stderr
    verify_artifact(tmp_path / "linker")
    first, *others = links(tmp_path, "the ak syndrome")
    assert 0 < first["confidence"] < 1
    assert all("confidence" not in link for link in others)
    assert "confidence" in run("link", tmp_path / "linker", "the ak syndrome")
    assert links(tmp_path, "the ak syndrome", "--min-confidence", "1") == []
    assert "no such concept" in run("link", tmp_path / "linker", "zzz", "--min-confidence", "1")
    told = invoke("link", tmp_path / "linker", "zzz", " ", "--min-confidence", "1")
    assert "2 mentions without a link; --explain says why" in told.stderr
    assert "there were no mentions" in invoke("link", tmp_path / "linker", stdin="").stderr
    assert links(tmp_path, "the ak syndrome", "--min-precision", "0.1")
    told = json.loads(run("linker", "info", tmp_path / "linker", "--json"))
    assert told["confidence_with_stages"] == told["stages"]
    assert 0 < told["no_concept_below"] < 1
    assert told["confidence_in_force"] is True
    assert (told["no_concept_for_precision"], told["no_concept_for_certainty"]) == (0.3, 0.9)
    below = threshold_in_words(told["no_concept_below"])
    assert re.search(rf"no concept below +{below}\b", run("linker", "info", tmp_path / "linker"))
    wished = [str(one) for one in ("link", tmp_path / "linker", "zzz", "--min-precision", "0.3")]
    assert "learned with a certainty of 0.9" in " ".join(invoke(*wished).stderr.split())
    as_tuned = invoke(*wished, "--certainty", "0.9", "--explain")
    assert "certainty" not in as_tuned.stderr
    tuned = Linker.open(tmp_path / "linker")
    least = [least_confidence(tuned, None, 0.6, certainty) for certainty in (None, 0.9)]
    assert least == [tuned.threshold_for(0.6), tuned.threshold_for(0.6, certainty=0.9)]
    assert least[0] != least[1]
    with pytest.raises(ConfigError, match="give both"):
        run("link", tmp_path / "linker", "zzz", "--certainty", "0.9")
    other = invoke("link", tmp_path / "linker", "zzz", "--stages", "exact,dense")
    assert "no confidences are given, and nothing is 'no such concept' below 0." in other.stderr
    assert f"learned for the stages {', '.join(told['stages'])} (onoma linker tune" in other.stderr
    said = invoke("link", tmp_path / "linker", "zzz").stderr
    assert said == "1 mention without a link; --explain says why\n"
    assert invoke("link", tmp_path / "linker", "zzz", "--stages", ",".join(told["stages"])).stderr == said
    assert invoke("link", place / "linker", "cold", "--stages", "exact").stderr == "", "it never had confidences"
    write_reranker(tmp_path / "reranker", tiny_encoder(tmp_path / "bert"))
    shutil.copytree(tmp_path / "linker", tmp_path / "reranked")
    done = invoke("linker", "add-reranker", tmp_path / "reranked", tmp_path / "reranker")
    assert "no confidences are given" in done.stderr
    assert json.loads(run("linker", "info", tmp_path / "reranked", "--json"))["confidence_in_force"] is False
    assert "no: other stages are on" in run("linker", "info", tmp_path / "reranked")
    (tmp_path / "notes.csv").write_text("m\nthe ak syndrome\nzzz\n")
    mapping = ["map", tmp_path / "linker", "-i", tmp_path / "notes.csv", "-c", "m", "-o", tmp_path / "mapped.csv"]
    done = invoke(*mapping)
    assert f"No link is given below a confidence of {threshold_in_words(told['no_concept_below'])}" in " ".join(
        done.stderr.split()
    )
    mean = r"Mean confidence of the best links: 0\.\d{3}"
    compared = rf"{mean} \(0\.\d{{3}} for the mentions it was calibrated on\)\."
    assert re.search(compared, " ".join(done.stderr.split()))
    done = invoke(*mapping, "--force", "--language", "en")
    assert re.search(rf"{mean}\.", " ".join(done.stderr.split())), "other answers are given under filters"
    for command in (["link", tmp_path / "linker", "zzz"], [*mapping, "--force"]):
        done = invoke(*command, "--language", "en")
        assert "confidences were learned without filters" in done.stderr, done.output
        done = invoke(*command, "--language", "en", "--stages", "dense")
        assert "without filters" not in done.stderr
    with pytest.raises(ConfigError, match="either --min-confidence or --min-precision"):
        run("link", tmp_path / "linker", "x", "--min-confidence", "1", "--min-precision", "1")
    again = [*map(str, tune), "--on-error", "skip"]
    done = invoke(*again)
    assert f"as it did below a confidence of {threshold_in_words(told['no_concept_below'])}" in " ".join(
        done.stderr.split()
    )
    assert "confidences are dropped" not in done.stderr
    done = invoke(*again, "--calibration", "none")
    assert "the linker's confidences are dropped" in done.stderr
    assert "no such concept" not in done.stderr


def test_models_are_opened_once(place: Path, mentions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a linker's settings say needs no models, which of large encoders take seconds and memory."""
    linker = shutil.copytree(place / "linker", tmp_path / "linker")
    (tmp_path / "notes.csv").write_text("m\nsugar disease\n")
    opened: list[Path] = []

    def counting(folder: Path, *rest: Any, **options: Any) -> Any:
        opened.append(folder)
        return open_components(folder, *rest, **options)

    monkeypatch.setattr("onoma.linking.linker.open_components", counting)
    mapping = ("map", linker, "-i", tmp_path / "notes.csv", "-c", "m", "-o", tmp_path / "mapped.csv")
    run(*mapping, "--language", "en")
    assert len(opened) == 1
    opened.clear()
    tune_linker(linker, read_mentions(mentions, Reading(on_error="skip")), calibrate=False)
    n_of_library = len(opened)
    opened.clear()
    run("linker", "tune", linker, "--mentions", mentions, "--on-error", "skip", "--calibration", "none")
    assert len(opened) == n_of_library
    for command in (["info", "onoma-mini"], ["tune", "onoma-mini", "--mentions", mentions, "--on-error", "skip"]):
        with pytest.raises(InputError, match="onoma-mini is the name of an encoder"):
            run("linker", *command)


def test_mentions_in_another_encoding(place: Path, tmp_path: Path) -> None:
    linker = shutil.copytree(place / "linker", tmp_path / "linker")
    rows = [f"1;N{row};the {'abcdefghij'[row // 10]}{'klmnopqrst'[row % 10]} syndrome\n" for row in range(60)]
    file = tmp_path / "mentions.csv"
    file.write_bytes("".join(["Datum;concept_id;mention\n", *rows]).encode("utf-16"))
    tune: list[str | Path] = ["linker", "tune", linker, "--mentions", file, "--calibration", "none"]
    count: list[str | Path] = ["linker", "add-prior", linker, file, "--weight", "0.1"]
    for command in (tune, count):
        with pytest.raises(InputError, match=r"is UTF-16; .* say so \(--encoding UTF-16\)"):
            run(*command)
    assert "tuned on 60 mentions" in run(*tune, "--encoding", "utf-16")
    assert "prior: 60 concepts meant by 60 mentions" in run(*count, "--encoding", "UTF_16")


def test_tuning_counts_how_often_concepts_are_meant(place: Path, mentions: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "linker", tmp_path / "linker")
    (tmp_path / "train.txt").write_text("N1||this\nN1||that\nD9||unheard of\nneither\n")
    tune: list[str | Path] = ["linker", "tune", tmp_path / "linker", "--mentions", mentions, "--calibration", "none"]
    tune += ["--prior", tmp_path / "train.txt", "--on-error", "skip"]
    done = invoke(*tune)
    assert done.exit_code == 0, done.output
    assert "prior: 1 concept meant by 3 mentions, 1 of them of none that the linker has" in done.stdout
    assert "0% of the development mentions are also among those of the prior" in done.stdout
    assert "train.txt, line 4: left out" in done.stderr
    counted = {
        "n_mentions": 3,
        "n_unknown": 1,
        "n_concepts": 1,
        "mentions_fingerprint": mentions_fingerprint(["this", "That", "unheard  of"]),
    }
    assert read_manifest(tmp_path / "linker").config["prior"] == counted
    assert "stage prior off: counts only order equally good concepts" in done.stdout
    assert "with stage prior" in done.stdout
    lines = mentions.read_text().splitlines()
    (tmp_path / "most.txt").write_text("\n".join(lines[2:120]) + "\n")
    tune[tune.index(tmp_path / "train.txt")] = tmp_path / "most.txt"
    done = invoke(*tune)
    assert "98% of the development mentions are also among those of the prior" in done.stdout
    assert "nearly all development mentions were counted" in done.stderr
    heavy = invoke("linker", "add-prior", tmp_path / "linker", mentions, "--on-error", "skip", "--weight", "0.3")
    assert "with a weight of 0.3 concepts that are meant often come before more similar names" in heavy.stderr
    light = invoke("linker", "add-prior", tmp_path / "linker", mentions, "--on-error", "skip", "--weight", "0.01")
    assert light.exit_code == 0
    assert "with a weight" not in light.stderr
    wanted = ["linker", "tune", tmp_path / "linker", "--mentions", mentions, "--on-error", "skip"]
    done = invoke(*wanted, "--stages", "sparse,prior")
    counted_too = "the linker has counted each concept as often as these mentions mean it"
    assert counted_too in done.stderr, done.output
    done = invoke(*wanted, "--stages", "sparse,prior", "--json")
    assert counted_too in done.stderr  # remarks are for people, whoever reads the rest
    assert json.loads(done.stdout)["may_be_counted"] is True
    done = invoke("linker", "add-prior", tmp_path / "linker", tmp_path / "most.txt")
    assert "confidences are still those learned with the earlier counts" in done.stderr


def test_records_that_are_counted_already(place: Path, mentions: Path, tmp_path: Path) -> None:
    """A table of codes and how often each was recorded is as good as its mentions one by one."""
    for name in ("one by one", "counted"):
        shutil.copytree(place / "linker", tmp_path / name)
    (tmp_path / "all.txt").write_text("N1||N1\n" * 7 + "N2||N2\n" * 2 + "D9||D9\n" * 3)
    (tmp_path / "counts.csv").write_text("code,records\nN1,7.0\nN2,2\nD9,3\nN3,many\n")
    columns = ["--column", "records", "--code-column", "code", "--count-column", "records"]
    run("linker", "add-prior", tmp_path / "one by one", tmp_path / "all.txt")
    count: list[str | Path] = ["linker", "add-prior", tmp_path / "counted", tmp_path / "counts.csv", *columns]
    with pytest.raises(InputError, match=r"line 5, field records.*whole number of at most 12 digits.*many") as caught:
        run(*count)
    assert caught.value.path == tmp_path / "counts.csv"
    done = invoke(*count, "--on-error", "skip")
    assert "prior: 2 concepts meant by 12 mentions, 3 of them of none that the linker has" in done.stdout
    made = [tmp_path / name / "prior.npy" for name in ("one by one", "counted")]
    assert made[0].read_bytes() == made[1].read_bytes()
    tune: list[str | Path] = ["linker", "tune", tmp_path / "counted", "--mentions", mentions, "--on-error", "skip"]
    with pytest.raises(ConfigError, match="--count-column is of the file of --prior, and none is given"):
        run(*tune, "--count-column", "records")
    with pytest.raises(InputError, match="lines of mentions have no counts"):
        run(*tune, "--prior", tmp_path / "all.txt", "--count-column", "records")
    with pytest.raises(InputError, match=r"name the column of counts \(--count-column\)"):
        run(*count[:-1], "times")
    (tmp_path / "prior.csv").write_text("mention,concept_id,n\na,N1,7\nb,N2,2\nc,D9,3\n")
    done = invoke(*tune, "--prior", tmp_path / "prior.csv", "--count-column", "n", "--calibration", "none")
    assert "prior: 2 concepts meant by 12 mentions" in done.stdout, done.output
    assert made[0].read_bytes() == made[1].read_bytes()


def test_mentions_are_counted_with_a_weight_of_ones_own(place: Path, mentions: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "linker", tmp_path / "linker")
    (tmp_path / "all.txt").write_text("N1||this\nN1||that\nneither\n")
    run("linker", "build", "-t", place / "t", "--no-encoder", "--force", "-o", tmp_path / "linker")
    count: list[str | Path] = ["linker", "add-prior", tmp_path / "linker", tmp_path / "all.txt"]
    with pytest.raises(InputError, match="line 3"):
        run(*count)
    done = invoke(*count, "--on-error", "skip")
    assert "how much they count beyond that is learned by onoma linker tune --prior" in done.stderr
    done = invoke(*count, "--on-error", "skip", "--weight", "0.03")
    assert done.exit_code == 0, done.output
    assert "prior: 1 concept meant by 2 mentions\n" in done.stdout
    assert "how much they count beyond that" not in done.stderr
    assert "stages exact, variants, sparse, prior" in done.stdout
    assert "all.txt, line 3: left out" in done.stderr
    assert "confidences" not in done.stderr
    assert json.loads(run("linker", "info", tmp_path / "linker", "--json"))["stages"][-1] == "prior"
    assert links(tmp_path, "the", "--stages", "sparse,prior") != links(tmp_path, "the", "--stages", "sparse")
    run("linker", "tune", tmp_path / "linker", "--mentions", mentions, "--on-error", "skip", "--stages", "exact,sparse")
    for is_dropped in (True, False):  # the second time there are none
        done = invoke(*count, "--on-error", "skip", "--weight", "0.02")
        assert ("learned with another weight and are dropped" in done.stderr) == is_dropped


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stages", "dens"), "Did you mean 'dense'"),
        (("-",), "'-' reads mentions from stdin: give it alone"),
        (("--expect-type", "Diseas"), "field expected_types"),
        (("--stages", "rerank,dense"), "add-reranker"),
        (("--semantic-type", "Diseas"), "Did you mean 'Disease'"),
        (("--language", "fr"), "no language 'fr'"),
        (("--under", "d4"), "Did you mean 'D4'"),
        (("--min-confidence", "0.5"), "not calibrated"),
        (("--min-precision", "0.5"), "not calibrated"),
    ],
)
def test_what_is_refused(place: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(OnomaError) as caught:
        run("link", place / "linker", "cold", *words)
    assert said in str(caught.value)


@pytest.mark.parametrize(("at_5", "said"), [(0.91, "; acc@5 is 2.00 points lower then)"), (0.93, ")"), (0.95, ")")])
def test_what_leaving_a_stage_out_costs_among_five_is_said(
    at_5: float, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fused = Accuracies(0.8, 0.93, 0.8)
    report = TuningReport(
        stages=("exact", "dense", "sparse", "prior", "rerank"),
        n_mentions=9,
        n_distinct=9,
        n_no_concept=0,
        n_unknown=0,
        unknown=(),
        accuracy={
            "dense alone": Accuracies(0.82, at_5, 0.82),
            "sparse alone": Accuracies(0.5, 0.99, 0.5),
            BY_WEIGHTS: fused,
            "without stage rerank": Accuracies(0.82, at_5, 0.82),
            "after": fused,
        },
        weights={"dense": 0.9, "sparse": 0.1},
        calibration=None,
        no_concept_below=None,
    )
    _show_learned(report)
    told = " ".join(capsys.readouterr().err.split())
    assert f"leave the other one out (--stages exact,dense,prior,rerank{said}" in told
    assert f"leave it out (--stages exact,dense,sparse,prior{said}" in told


@pytest.mark.parametrize(("right", "is_better"), [(0.9, True), (0.6, False)])
def test_a_reranker_is_judged_by_its_nil_answers_too(
    right: float, is_better: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    report = TuningReport(
        stages=("exact", "dense", "rerank"),
        n_mentions=9,
        n_distinct=9,
        n_no_concept=3,
        n_unknown=0,
        unknown=(),
        accuracy={"without stage rerank": Accuracies(0.99, 0.99, 0.66), "after": Accuracies(0.98, 0.98, right)},
        weights=None,
        calibration=None,
        no_concept_below=None,
        rerank_weight=0.0,
        answers_nil=True,
    )
    _show_learned(report)
    told = capsys.readouterr()
    assert "of no use" not in told.out, "it says NIL whatever its share"
    assert f"{100 * right:.2f} % right, 66.00 % without the stage rerank" in " ".join(told.out.split())
    assert ("right more often without its stage rerank" in told.err) != is_better


REPORT = TuningReport(
    stages=("exact", "dense", "rerank"),
    n_mentions=9,
    n_distinct=9,
    n_no_concept=1,
    n_unknown=0,
    unknown=(),
    accuracy={},
    weights=None,
    calibration=None,
    no_concept_below=None,
)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, []),
        (
            {"n_unknown": 2, "unknown": ("D7", "D8")},
            [
                "2 mentions of concepts that the linker does not have, such as D7, D8: "
                "every answer to them counts as wrong"
            ],
        ),
        (
            {"n_unknown": 1, "unknown": ("nil",)},
            [
                "1 mention of concepts that the linker does not have, such as nil: "
                "every answer to them counts as wrong (for 'no such concept' write NIL, CUI-less, -1, 0)"
            ],
        ),
        (
            {"are_concepts": ("-1", "0")},
            ["the linker has concepts of the codes -1 and 0: mentions with them mean these, not 'no such concept'"],
        ),
        (
            {"without_contexts": True},
            [
                "the cross-encoder reads contexts, and was tuned without: confidences hold for mentions "
                "without; give --context"
            ],
        ),
    ],
)
def test_what_is_to_be_known_of_development_mentions_is_said(
    known: dict[str, Any], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _show_mentions(dataclasses.replace(REPORT, **known))
    assert capsys.readouterr().err.splitlines() == said


@pytest.mark.parametrize(
    ("wish", "told", "n_no_concept", "n_unknown", "said"),
    [
        (Wish(0.9, None), (0.9, 0), 1, 0, []),
        (
            Wish(0.9, None),
            (0.8, 1),
            0,
            1,
            ["does not reach 0.9: expect less, tune on more mentions, or give --certainty"],
        ),
        (Wish(0.9, 0.95), (0.8, 0), 1, 0, ["does not reach 0.9: expect less, tune on more mentions"]),
        (Wish(0.9, None), (None, 1), 1, 0, ["it depends on few; tune on more mentions"]),
        (Wish(0.9, None), (0.95, 0), 0, 0, ["is lower than requested; tune on some of these too"]),
    ],
)
def test_a_threshold_that_rests_on_little_is_told_of(
    wish: Wish,
    told: tuple[float | None, int],
    n_no_concept: int,
    n_unknown: int,
    said: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    right, n_unfulfilled = told
    abstention = AbstentionReport(wish, 40, 38, 0.5, 0.4, right, 32, n_unfulfilled)
    report = dataclasses.replace(
        REPORT,
        n_no_concept=n_no_concept,
        n_unknown=n_unknown,
        calibration=CalibrationReport("platt", 80, 0.75, 0.7, 0.02, 0.01, abstention),
        no_concept_below=0.5,
    )
    _show_confidence(report)
    shown = capsys.readouterr()
    remarks = shown.err.splitlines()
    assert [line.endswith(words) for line, words in zip(remarks, said, strict=True)] == [True] * len(said)
    held_out = "0.400 answered" + ("" if right is None else f", {right:.3f} of the 32 right")
    unfulfilled = "; no threshold for 1 of the fifths" if n_unfulfilled else ""
    assert shown.out.endswith(f"on that fifth: {held_out}{unfulfilled}\n")


def test_confidences_are_learned_from_names(tmp_path: Path) -> None:
    write_letter_linker(tmp_path, MANY_NAMES)
    linker = tmp_path / "linker"
    done = invoke("linker", "calibrate", linker, "--names", "60", "--min-precision", "0.6")
    told = " ".join(done.stdout.split())
    assert "confidences learned from 60 hidden names and 6 others; stages exact, variants, dense, sparse" in told
    assert "first answers to 66 names" in told
    assert re.search(r"weights: dense 0\.\d+, sparse 0\.\d+ \(by reciprocal ranks: [\d.]+% first", told)
    assert "of the names answered" in told
    assert "names are not mentions in text" in " ".join(done.stderr.split())
    again = invoke("linker", "calibrate", linker, "--names", "60", "--json")
    report = json.loads(again.stdout)
    assert (report["n_hidden"], report["had_calibration"], report["no_concept_below"]) == (60, True, None)
    assert "the linker's earlier confidences are replaced" in " ".join(again.stderr.split())
    assert "no longer answers 'no such concept'" in " ".join(again.stderr.split())
    assert json.loads(invoke("linker", "info", linker, "--json").stdout)["n_names_calibrated_on"] == 60
    [first, *_] = json.loads(invoke("link", linker, "cardio", "--json").stdout)["links"]
    assert 0 < first["confidence"] < 1
    table = tmp_path / "table.csv"
    table.write_text("mention\ncardio\n")
    mapped = invoke("map", linker, "-i", table, "-c", "mention", "-o", tmp_path / "out.csv", "--json")
    assert json.loads(mapped.stdout)["mean_confidence"] == pytest.approx(first["confidence"])
    assert json.loads(mapped.stdout)["development_confidence"] is None


def test_names_that_dropped_confidences_were_learned_from_are_not_told_of(tmp_path: Path) -> None:
    write_letter_encoder(tmp_path / "letters")
    make_terminology(tmp_path / "t", MANY_NAMES)
    run("linker", "build", "-t", tmp_path / "t", "-e", tmp_path / "letters", "-o", tmp_path / "linker")
    run("linker", "calibrate", tmp_path / "linker", "--names", "60")
    assert "names calibrated on" in run("linker", "info", tmp_path / "linker")
    (tmp_path / "counted.csv").write_text("mention,concept_id\ncardio,C0\n")
    done = invoke("linker", "add-prior", tmp_path / "linker", tmp_path / "counted.csv", "--weight", "0.03")
    assert "are dropped" in done.stderr
    assert "names calibrated on" not in run("linker", "info", tmp_path / "linker")


def test_names_that_vectors_cannot_find_are_told_of(place: Path, tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D1": ["fever", "肺炎"], "D2": ["骨折"]})
    build = ("linker", "build", "-t", tmp_path / "t", "-e", place / "letters", "-o")
    told = " ".join(invoke(*build, tmp_path / "dense").stderr.split())
    assert "2 of 3 distinct names are in characters that the encoder does not know" in told
    assert told.endswith("and so do character n-grams (build it with --sparse)")
    told = " ".join(invoke(*build, tmp_path / "both", "--sparse").stderr.split())
    assert told.endswith("and so do character n-grams")
    assert "does not know" not in invoke(*build[:3], place / "t", *build[4:], tmp_path / "read").stderr


@pytest.mark.parametrize("width", [30, 60, 100])
def test_codes_are_not_broken_and_no_column_is_lost(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(show, "out", Console(width=width, file=file))
    rows = [["MONDO:0700280", "post-treatment Lyme disease syndrome", "0.799"], ["M" * 70, "x", "1.000"]]
    show.table(["concept", "preferred name", "score"], rows, numeric=["score"], whole=["concept"])
    written = file.getvalue()
    assert ("MONDO:0700280 " in written) == (width > 4 * len("MONDO:0700280"))
    assert all(number in written for number in ("0.799\n", "1.000\n"))
    assert max(map(len, written.splitlines())) <= width


def test_a_linker_that_compares_very_many_vectors_is_told_of(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.cli.show.LARGE_VECTORS", 1)
    build = ("linker", "build", "-t", place / "t", "-e", place / "letters")
    assert "with --index sign-bits it" in invoke(*build, "-o", tmp_path / "exact").stderr
    assert "sign-bits" not in invoke(*build, "--index", "sign-bits", "-o", tmp_path / "signs").stderr
    of_letters = invoke("linker", "build", "-t", place / "t", "--no-encoder", "-o", tmp_path / "letters")
    assert "sign-bits" not in of_letters.stderr
