"""The main road by hand, through the command line, on a terminology and an encoder made here."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from commands import invoke, run
from onoma.artifacts import read_manifest
from onoma.encoders import open_encoder
from onoma.encoders.loading import load_packed
from onoma.encoders.saving import save_encoder
from onoma.errors import ConfigError, DamagedArtifactError, OnomaError
from tiny import make_terminology, tiny_encoder

WORDS = ["heart", "lung", "liver", "bone", "skin", "eye", "ear", "brain"]


def onoma(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, where its status and how it tells errors matter."""
    return subprocess.run(
        [sys.executable, "-c", "from onoma.cli import main; main()", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "160", "OMP_NUM_THREADS": "2"},
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with base encoder, terminology, trained encoder and linker, made by the commands."""
    folder = tmp_path_factory.mktemp("road")
    tiny_encoder(folder / "base")
    rows = [("code", "term")]
    for word in WORDS:
        rows += [(f"X:{word}", f"{word} disease"), (f"X:{word}", f"disease of {word}"), (f"X:{word}", f"bad {word}")]
    (folder / "mine.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    run(
        "terminology",
        "import",
        "table",
        folder / "mine.tsv",
        "-o",
        folder / "t",
        "--set",
        "id=code",
        "--set",
        "name=term",
    )
    trained = run(
        *("train", "quickstart", "--terminology", folder / "t", "-o", folder / "encoder"),
        *("--set", f"base={folder / 'base'}", "--set", "steps=20", "--set", "batch_pairs=8", "--set", "max_tokens=16"),
        *("--set", "learning_rate=1e-3"),
    )
    assert "trained 20 steps" in trained
    run("linker", "build", "--terminology", folder / "t", "--encoder", folder / "encoder", "-o", folder / "linker")
    return folder


def test_info_and_search(place: Path) -> None:
    told = json.loads(run("terminology", "info", place / "t", "--json"))
    assert (told["n_concepts"], told["n_names"]) == (8, 24)
    assert "concepts" in run("terminology", "info", place / "t")
    assert "X:heart" in run("terminology", "search", place / "t", "heart dis")
    assert json.loads(run("terminology", "search", place / "t", "X:eye", "--json"))[0]["concept_id"] == "X:eye"


def test_search_says_what_is_obsolete_and_that_there_is_more(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"X:1": ["eye"], "X:2": ["eyelid"], "X:3": ["eyebrow"]}, obsolete=["X:1"])
    told = run("terminology", "search", tmp_path / "t", "eye")
    assert [line.split()[-1] for line in told.splitlines()] == ["status", "obsolete", "active", "active"]
    assert "only the first 2 are shown" in invoke("terminology", "search", tmp_path / "t", "eye", "-n", "2").stderr
    assert invoke("terminology", "search", tmp_path / "t", "eye", "-n", "3").stderr == ""


def test_a_recipe_is_shown_as_it_is_set(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('steps = 5\nlanguages = "en+pt-BR"\ndecay_all = true\n')
    shown = dict(line.split()[:2] for line in run("recipes", "show", own).splitlines() if len(line.split()) > 1)
    assert (shown["languages"], shown["decay_all"], shown["include_suppressed"]) == ("en+pt-BR", "true", "false")


def test_link_as_table_and_as_json(place: Path) -> None:
    table = run("link", place / "linker", "Heart Disease", "bad liver", "--top-k", "2")
    assert "X:heart" in table
    assert "1.000" in table
    lines = run("link", place / "linker", "--json", "-", stdin="heart disease\n\n心臓\n").splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["mention"] for answer in answers] == ["heart disease", "", "心臓"]
    assert answers[0]["links"][0] == {
        "concept_id": "X:heart",
        "preferred_name": "heart disease",
        "matched_name": "heart disease",
        "score": 1.0,
        "rank": 1,
    }
    assert answers[1]["links"] == []


def test_what_a_user_writes_is_no_markup(place: Path) -> None:
    table = run("link", place / "linker", "[/red] heart", "[bold]eye", "a\x1b[31mb", "-k", "1")
    assert "[/red] heart" in table
    assert "[bold]eye" in table
    assert "\x1b" not in table
    assert "'A:x:1'" in invoke("terminology", "search", place / "t", "A:x:1").stderr, "no emoji"


def test_lines_of_stdin_are_answered_as_they_come(place: Path) -> None:
    command = [sys.executable, "-c", "from onoma.cli import main; main()", "link", str(place / "linker"), "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for line, mentions in (("\ufeffbad heart\r\nbad e", ["bad heart"]), ("ye\n", ["bad eye"])):
            process.stdin.write(line.encode())
            process.stdin.flush()
            assert [json.loads(process.stdout.readline())["mention"] for _ in mentions] == mentions
        process.stdin.write(b"last line")
        rest, told = process.communicate()
        assert [json.loads(line)["mention"] for line in rest.splitlines()] == ["last line"]
        assert told == b""
    for content, problem, n_answered in (
        (b"eye\n" + b"x" * (3 << 12) + b"\nR\xfccken\nbone\n", b"line 3: not UTF-8", 2),
        ("eye\n".encode("utf-16-le"), b"line 1: NUL byte", 0),
        (b"heart\reye\r", b"line 1: a carriage return (CR)", 0),
    ):
        done = subprocess.run(command, input=content, check=False, capture_output=True)
        assert problem in done.stderr
        assert len(done.stdout.splitlines()) == n_answered
    refused = subprocess.run(
        [*command, "--stages", "bogus"], stdin=subprocess.DEVNULL, check=False, capture_output=True
    )
    assert b"no stage 'bogus'" in refused.stderr.lower()
    closed = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], check=False, capture_output=True)
    assert b"standard input is closed" in closed.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes that do not block")
def test_a_pause_on_stdin_that_does_not_block_is_not_its_end(place: Path) -> None:
    command = [sys.executable, "-c", "from onoma.cli import main; main()", "link", str(place / "linker"), "--json"]
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with subprocess.Popen(command, stdin=reading, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for mention in ("heart", "eye"):
            os.write(writing, f"{mention}\n".encode())
            assert json.loads(process.stdout.readline())["mention"] == mention
        os.close(writing)
        os.close(reading)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_ctrl_c_ends_the_wait_for_a_line_of_stdin(place: Path) -> None:
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in the background
    command = [sys.executable, "-c", f"{heeding}; from onoma.cli import main; main()"]
    command += ["link", str(place / "linker"), "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"heart\n")
        process.stdin.flush()
        process.stdout.readline()
        time.sleep(0.2)  # until it waits for the next one
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_line_of_stdin_that_is_not_utf8_is_named(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from onoma.cli import main; main()", "link", str(place / "linker")],
        input=b"eye\nR\xfccken\n",
        check=False,
        capture_output=True,
    )
    assert done.returncode == 1
    assert b"standard input, line 2" in done.stderr
    assert b"R" not in done.stderr.partition(b"line 2")[2].partition(b"To mend")[0], "a mention may be a patient's"


def test_a_linker_prepares_names_as_its_encoder_was_trained(place: Path) -> None:
    run(
        *("train", "quickstart", "-t", place / "t", "-o", place / "loose", "--set", f"base={place / 'base'}"),
        *("--set", "steps=1", "--set", "batch_pairs=4", "--set", "max_tokens=16", "--set", "normalisation=loose"),
    )
    run("linker", "build", "-t", place / "t", "-e", place / "loose", "-o", place / "loose-linker")
    links = json.loads(run("link", place / "loose-linker", "(Heart) disease!", "--json"))["links"]
    assert (links[0]["concept_id"], links[0]["score"]) == ("X:heart", 1.0)


def test_a_damaged_terminology_is_not_linked_to(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "t", tmp_path / "t")
    names = tmp_path / "t" / "names.parquet"
    names.write_bytes(names.read_bytes()[:-8] + b"12345678")
    with pytest.raises(DamagedArtifactError, match="has changed"):
        run("linker", "build", "-t", tmp_path / "t", "-e", place / "encoder", "-o", tmp_path / "l")


def test_encode(place: Path) -> None:
    (place / "names.txt").write_text("heart disease\nHEART  disease\n")
    run("encode", place / "encoder", "--input", place / "names.txt", "--output", place / "v.npy")
    run("encode", place / "encoder", "--input", place / "names.txt", "--output", place / "v.parquet")
    vectors = np.load(place / "v.npy")
    np.testing.assert_array_equal(vectors[0], vectors[1])
    table = pl.read_parquet(place / "v.parquet")
    assert table["name"].to_list() == ["heart disease", "HEART  disease"]
    np.testing.assert_array_equal(table["vector"].to_numpy(), vectors)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    with pytest.raises(OnomaError, match="--force"):
        run("encode", place / "encoder", "--input", place / "names.txt", "--output", place / "v.npy")
    (place / "names.txt").write_text("heart (disease)\n")
    again = ("encode", place / "encoder", "--input", place / "names.txt", "--output", place / "v.npy", "--force")
    encoder = open_encoder(place / "encoder")
    run(*again, "--no-unit-length")
    np.testing.assert_allclose(np.load(place / "v.npy"), encoder.encode(["heart (disease)"], unit_length=False))
    said = invoke(*again, "--normalisation", "biosyn").stderr
    assert f"v.npy: 1 vector of width {encoder.width}, by encoder" in " ".join(said.split())
    np.testing.assert_allclose(np.load(place / "v.npy"), encoder.encode(["heart disease"]))
    with pytest.raises(ConfigError, match="biosin"):
        run(*again, "--normalisation", "biosin")


def test_benchmark(place: Path) -> None:
    data = place / "ncbi"
    data.mkdir()
    (data / "test_queries.txt").write_text("X:heart||bad heart\nX:eye|X:ear||bad eye|bad ear\n")
    (data / "test_dictionary.txt").write_text(
        "".join(f"X:{word}||{word} disease\nX:{word}||bad {word}\n" for word in WORDS)
    )
    run("benchmark", "run", "ncbi-disease", "--data", data, "--encoder", place / "encoder", "-o", place / "results")
    results = json.loads((place / "results" / "results.json").read_text())
    assert (results["acc@1"], results["acc@5"], results["n_queries"]) == (1.0, 1.0, 2)
    of_task = ("benchmark", "dictionary", "ncbi-disease", "--data", data)
    run(*of_task, "-o", place / "names-of-task.txt")
    kept = {file: file.read_bytes() for file in data.rglob("*") if file.is_file()}
    for file in kept:
        with pytest.raises(OnomaError, match=r"files in|without \.gz"):
            run(*of_task, "-o", file, "--force")
    assert {file: file.read_bytes() for file in data.rglob("*") if file.is_file()} == kept
    with pytest.raises(OnomaError, match=r"without \.gz"):
        run(*of_task, "-o", place / "names.txt.gz")
    assert (place / "names-of-task.txt").read_text() == (data / "test_dictionary.txt").read_text()
    run("benchmark", "run", "ncbi-disease", "--data", data, "--linker", place / "linker", "-o", place / "results2")
    assert json.loads((place / "results2" / "results.json").read_text())["acc@1"] == 1.0


def test_verify(place: Path) -> None:
    assert "a whole linker" in run("verify", place / "linker")


def test_verify_for_programs(place: Path, tmp_path: Path) -> None:
    whole = json.loads(run("verify", place / "linker", "--json"))
    assert (whole["path"], whole["kind"], whole["is_whole"]) == (str(place / "linker"), "linker", True)
    assert whole["n_files"] == len(read_manifest(place / "linker").files)
    assert "problem" not in whole
    assert sorted(parent["kind"] for parent in whole["made_from"]) == ["encoder", "terminology"]
    shutil.copytree(place / "linker", tmp_path / "linker")
    for missing in ("texts.utf8", "encoder/onoma.json"):  # the latter says what the encoder learned
        (tmp_path / "linker" / missing).rename(tmp_path / "aside")
        damaged = onoma("verify", tmp_path / "linker", "--json")
        told = json.loads(damaged.stdout)
        assert damaged.returncode == 1
        assert (told["kind"], told["is_whole"], told["n_files"]) == ("linker", False, whole["n_files"])
        assert f"{missing} is missing" in told["problem"]
        assert told["problem"] in damaged.stderr
        (tmp_path / "aside").rename(tmp_path / "linker" / missing)
    nothing = json.loads(onoma("verify", tmp_path / "none", "--json").stdout)
    assert set(nothing) == {"path", "is_whole", "problem"}


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("terminology",),
        ("terminology", "import"),
        ("terminology", "info"),
        ("terminology", "search"),
        ("terminology", "merge"),
        ("terminology", "enrich"),
        ("terminology", "diff"),
        ("train",),
        ("linker", "build"),
        ("link",),
        ("encode",),
        ("benchmark", "run"),
        ("benchmark", "dictionary"),
        ("quickstart",),
        ("verify",),
    ],
)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    told = run(*command, "--help")
    assert "Usage: " in told
    assert len(told) > 200
    assert "─" not in told  # no boxes, in which paths and examples would be broken


@pytest.mark.parametrize("group", ["", "terminology", "pairs", "recipes", "linker", "reranker", "encoder", "benchmark"])
def test_a_group_of_commands_alone_explains_itself(group: str) -> None:
    told = invoke(*group.split()).output
    assert "Usage: " in told
    listed = told.partition("Commands:\n")[2].splitlines()
    assert listed
    # Each summary is whole in a terminal of 80 columns, which cuts it short behind 76.
    assert not [line for line in listed if line.endswith("...") or len(line) > 76]


def test_lists(place: Path) -> None:
    assert "cellxgene" in run("terminology", "formats")
    assert "sapbert-paper" in run("recipes", "list")
    assert "learning_rate" in run("recipes", "show", "quickstart")
    assert "ncbi-disease" in run("benchmark", "list")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("link", "nowhere", "x"), "there is nothing here"),
        (("terminology", "info", "nowhere"), "there is nothing here"),
        (("terminology", "import", "obi", "x", "-o", "y"), "Did you mean 'obo'"),
        (("train", "sapbert-papr", "-t", "x", "-o", "y"), "Did you mean 'sapbert-paper'"),
        (("train", "quickstart", "-t", "x", "-o", "y", "--set", "stepps=1"), "Did you mean 'steps'"),
        (("train", "quickstart", "-t", "x", "-o", "y", "--set", "steps"), "--set takes KEY=VALUE"),
        (
            ("benchmark", "run", "ncbi-disease", "--data", "x", "-o", "y"),
            "give one of --encoder, --linker and --baseline",
        ),
        (("encode", "all-MiniLM-L6-v3", "-i", "x", "-o", "y.npy"), "Did you mean 'all-MiniLM-L6-v2'"),
    ],
)
def test_an_error_says_what_to_do_and_leaves_nothing(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=re.escape(said)):
        run(*(str(tmp_path / a) if a in {"x", "y", "y.npy", "nowhere"} else a for a in arguments))
    assert list(tmp_path.iterdir()) == []


def test_errors_are_one_sentence_with_status_1(tmp_path: Path) -> None:
    done = onoma("train", "quickstart", "-t", tmp_path / "t", "-o", tmp_path / "e", "--set", "stepps=1")
    assert done.returncode == 1
    assert "Did you mean 'steps'" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_usage_is_status_2() -> None:
    assert onoma("link").returncode == 2
    assert onoma("nonsense").returncode == 2


def test_an_interrupted_training_goes_on(place: Path, tmp_path: Path) -> None:
    command = [
        *("train", "quickstart", "--terminology", place / "t", "-o", tmp_path / "e", "--set", f"base={place / 'base'}"),
        *(
            "--set",
            "steps=3000",
            "--set",
            "batch_pairs=4",
            "--set",
            "max_tokens=16",
            "--set",
            "checkpoint_minutes=1e-6",
        ),
    ]
    # Also where the tests run in the background of a shell, which has its children ignore SIGINT.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    running = subprocess.Popen(
        [sys.executable, "-c", f"{heeding}; from onoma.cli import main; main()", *map(str, command)],
        stderr=subprocess.PIPE,
        text=True,
    )
    checkpoint = tmp_path / "e.run" / "checkpoint.safetensors"
    while not checkpoint.exists() and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 130, told
    assert "stopped" in told
    assert not (tmp_path / "e").exists()
    # The rest of so long a run is not waited for: that it goes on is all that is asked here.
    again = subprocess.Popen(
        [sys.executable, "-c", "from onoma.cli import main; main()", *map(str, command)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert again.stderr is not None
    lines = []
    for line in again.stderr:
        lines.append(line)
        if "resuming from step" in line:
            break
    again.kill()
    again.communicate()
    assert "resuming from step" in lines[-1], lines


@pytest.mark.parametrize(
    ("before", "number", "processes", "status"),
    [
        ("SIG_DFL", "SIGTERM", "1", 143),
        ("SIG_DFL", "SIGHUP", "1", 129),
        ("SIG_IGN", "SIGHUP", "1", 0),  # nohup
        ("SIG_DFL", "SIGTERM", "2", -signal.SIGTERM),  # one of torchrun's
    ],
)
def test_a_command_asked_to_end_ends_in_order(
    tmp_path: Path, before: str, number: str, processes: str, status: int
) -> None:
    program = f"""
import pathlib, signal, sys
signal.signal(signal.{number}, signal.{before})
import onoma.cli.app
def app():
    try:
        signal.raise_signal(signal.{number})
    finally:
        pathlib.Path(sys.argv[1]).touch()
onoma.cli.app.app = app
onoma.cli.main()
"""
    undone = tmp_path / "undone"
    environment = {**os.environ, "WORLD_SIZE": processes}
    done = subprocess.run(
        [sys.executable, "-c", program, str(undone)], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == status
    assert ("stopped" in done.stderr) is (status > 0)
    assert undone.exists() is (status >= 0)


@pytest.mark.parametrize("raised", ["ImportError('initialization failed')", "PanicException('SystemExit(143)')"])
def test_what_a_library_makes_of_a_request_to_end(raised: str) -> None:
    program = f"""
import signal
signal.signal(signal.SIGTERM, signal.SIG_DFL)
class PanicException(BaseException):
    pass
import onoma.cli.app
def app():
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        pass
    raise {raised}
onoma.cli.app.app = app
onoma.cli.main()
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 143
    assert "stopped" in done.stderr
    assert "Traceback" not in done.stderr


def test_importing_the_library_or_the_command_loads_no_torch() -> None:
    code = (
        "import sys, onoma, onoma.cli.app, onoma.linking, onoma.terminology, onoma.pairs, onoma.indexes;"
        "print(sorted({'torch', 'transformers'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_a_setting_that_is_not_is_told_before_torch_is_loaded() -> None:
    """Loading torch takes seconds."""
    program = """
import sys
from typer.testing import CliRunner
from onoma.cli.app import app
for words in (
    "train onoma-mini --terminology none",
    "train-biosyn biosyn --mentions none --dictionary none",
    "distil distil --linker none",
    "reranker train --linker none --mentions none",
):
    done = CliRunner().invoke(app, [*words.split(), "--out", "none", "--set", "sed=1"])
    assert "Did you mean 'seed'?" in str(done.exception), (words, done.output, done.exception)
    assert "torch" not in sys.modules, words
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_made_of_a_terminology_tells_its_licence(place: Path, tmp_path: Path) -> None:
    """Pairs of mentions, an encoder trained from another, its adapter, linker and reranker, and `verify` of each."""
    (tmp_path / "ours.csv").write_text("code,label\n" + "".join(f"Y:{word},{word} trouble\n" for word in WORDS))
    named = ("--set", "id=code", "--set", "name=label", "--licence", "house rules")
    run("terminology", "import", "table", tmp_path / "ours.csv", "-o", tmp_path / "ours", *named)
    (tmp_path / "mentions.txt").write_text("".join(f"Y:{word}||my {word} aches\n" for word in WORDS))
    ours = ("-t", tmp_path / "ours", "-e", place / "encoder")
    run("pairs", "mentions", tmp_path / "mentions.txt", *ours, "-o", tmp_path / "of-mentions")
    run(
        "pairs", "build", "-t", place / "t", "-e", place / "encoder", "-o", tmp_path / "of-names", "--ambiguous", "mark"
    )
    run("pairs", "merge", tmp_path / "of-mentions", tmp_path / "of-names", "-o", tmp_path / "pairs")
    steps = ("--set", "steps=1", "--set", f"base={place / 'encoder'}", "--set", "batch_pairs=4", "--set", "tuning=lora")
    run("train", "quickstart", "--pairs", tmp_path / "of-mentions", "-o", tmp_path / "tuned", *steps)
    run("linker", "build", "-t", tmp_path / "ours", "-e", tmp_path / "tuned", "-o", tmp_path / "linker")
    learn = ("--linker", tmp_path / "linker", "--mentions", tmp_path / "mentions.txt", "--set", "keep=last")
    base = ("--set", f"base={place / 'encoder'}", "--set", "steps=1")
    short = ("--set", "max_tokens=24", "--set", "max_name_tokens=8")
    run("reranker", "train", *learn, *base, *short, "-o", tmp_path / "reranker")
    base_names = "mine.tsv (table), licence: not said; usually that of the vocabulary"
    own = "ours.csv (table), licence: house rules"
    for made, expected in {
        "of-mentions": [f"names of: {own}"],
        "pairs": [f"names of: {own}", f"names of: {base_names}"],
        "tuned": [f"learned names of: {base_names}", f"learned names of: {own}"],
        "tuned/adapter": [f"learned names of: {base_names}", f"learned names of: {own}"],
        "linker": [
            f"names of: {own}", f"encoder learned names of: {base_names}", f"encoder learned names of: {own}"
        ],
        "reranker": [f"learned names of: {base_names}", f"learned names of: {own}"],
    }.items():  # fmt: skip
        told = [line.strip() for line in run("verify", tmp_path / made).splitlines() if "names of" in line]
        assert told == expected, made
    found = json.loads(run("verify", tmp_path / "linker", "--json"))["origins"]
    assert [list(found), [one["source"] for one in found["encoder"]]] == [["", "encoder"], ["mine.tsv", "ours.csv"]]
    assert own in run("linker", "info", tmp_path / "linker")
    assert own in run("pairs", "info", tmp_path / "pairs")
    for card in ("tuned", "tuned/adapter"):
        text = (tmp_path / card / "README.md").read_text()
        assert "### Names of mine.tsv" in text
        assert "| licence | house rules |" in text
        assert "| annotated mentions read | 8 |" in text


def test_verify_tells_what_an_encoder_of_the_catalogue_learnt(place: Path, tmp_path: Path) -> None:
    """One trained from it too, and a linker's that learned the names of the linker's terminology."""
    data = {"vocabularies": ["MeSH (NLM's terms)", "HPO (HPO licence)"], "corpora": ["BC5CDR"]}
    origins = read_manifest(place / "encoder").config["origins"]
    config = {"training": {}, "before": data, "origins": [{**origins[0], "licence": "\x1b[31mours"}]}
    save_encoder(load_packed(place / "base"), tmp_path / "encoder", config=config)
    run("linker", "build", "--terminology", place / "t", "--encoder", tmp_path / "encoder", "-o", tmp_path / "linker")
    learned = [
        "learned names of: MeSH (NLM's terms), HPO (HPO licence)",
        "learned annotated mentions of: BC5CDR",
        "learned names of: mine.tsv (table), licence: \ufffd[31mours",
    ]
    for folder, expected in (("encoder", learned), ("linker", [f"encoder {line}" for line in learned])):
        told = [line.strip() for line in run("verify", tmp_path / folder).splitlines() if "learned" in line]
        assert told == expected
    found = json.loads(run("verify", tmp_path / "linker", "--json"))
    assert found["learnt"] == {"encoder": data}
    same = tmp_path / "same"
    run("linker", "build", "--terminology", place / "t", "--encoder", place / "encoder", "-o", same)
    assert json.loads(run("verify", same, "--json"))["origins"] == {"": origins, "encoder": origins}


def test_no_word_of_mentions_and_no_path_in_what_is_published(place: Path, tmp_path: Path) -> None:
    names = [f"{word} unheardof" for word in WORDS]
    (tmp_path / "mentions.txt").write_text("".join(f"X:{name.split()[0]}||{name}\n" for name in names))
    made = ("-t", place / "t", "-e", place / "encoder", "-o", tmp_path / "pairs")
    run("pairs", "mentions", tmp_path / "mentions.txt", *made)
    steps = ("--set", "steps=1", "--set", f"base={place / 'encoder'}", "--set", "batch_pairs=4", "--set", "tuning=lora")
    tuned = ("--pairs", tmp_path / "pairs", "-o", tmp_path / "tuned", "--set", "keep=best")
    against = ("--development", tmp_path / "mentions.txt", "--development-terminology", place / "t")
    run("train", "quickstart", *tuned, *against, *steps)
    measured = ("--names", place / "t", "--encoder", tmp_path / "tuned", "-o", tmp_path / "results")
    run("benchmark", "run", "own", "--data", tmp_path / "mentions.txt", *measured)
    run("encoder", "card", tmp_path / "tuned", "--results", tmp_path / "results")
    assert (
        "* own: tuned was trained on these very mentions: the figures" in (tmp_path / "tuned" / "README.md").read_text()
    )
    for file in [*(tmp_path / "tuned").rglob("*"), tmp_path / "results" / "results.json"]:
        if file.is_file():
            content = file.read_bytes()
            assert b"unheardof" not in content, file
            assert str(tmp_path).encode() not in content, file
            assert str(place).encode() not in content, file
