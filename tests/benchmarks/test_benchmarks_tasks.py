"""The files of each task, from the awkward forms in which people have them."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import pytest

from onoma.benchmarks import TASKS, get_task
from onoma.benchmarks.askapatient import N_FOLDS
from onoma.benchmarks.biosyn import read_dictionary, write_dictionary
from onoma.errors import InputError


@pytest.fixture
def askapatient(tmp_path: Path) -> Path:
    """Two concepts in every fold; fold 3 is gzip and has a line of Windows-1252, fold 4 has carriage returns."""
    for fold in range(N_FOLDS):
        for part in ("train", "validation", "test"):
            line = f"22253000\tPain\tpain {fold} {part}\n"
            (tmp_path / f"AskAPatient.fold-{fold}.{part}.txt").write_text(line)
    (tmp_path / "AskAPatient.fold-0.train.txt").write_text("1001\tTired\talways tired\n22253000\tPain\tpain\n")
    third = tmp_path / "AskAPatient.fold-3.test.txt"
    third.unlink()
    content = b"22253000\tPain\tcouldn\x92t sit\n22253000\tPain\tcaf\xc3\xa9\n"
    third.with_name(third.name + ".gz").write_bytes(gzip.compress(content))
    (tmp_path / "AskAPatient.fold-4.test.txt").write_bytes(b"\xef\xbb\xbf1001\tTired\tTIRED\r\n1001\tTired\tTIRED\r\n")
    return tmp_path


def test_askapatient(askapatient: Path) -> None:
    task = get_task("askapatient")
    queries, files = task.queries(askapatient, "test")
    assert len(files) == 10
    assert [query.text for query in queries] == [
        "pain 0 test", "pain 1 test", "pain 2 test", "couldn\u2019t sit", "café", "TIRED", "TIRED",
        *(f"pain {fold} test" for fold in range(5, 10)),
    ]  # fmt: skip
    assert queries[5].gold == {"1001"}
    assert [query.text for query in task.queries(askapatient, "fold-7")[0]] == ["pain 7 test"]
    assert len(task.queries(askapatient, "validation")[0]) == 10
    dictionary, _ = task.dictionary(askapatient, "test")
    assert [(line.ids, line.name) for line in dictionary] == [(("1001",), "Tired"), (("22253000",), "Pain")]


def test_a_byte_order_mark_before_windows_1252(askapatient: Path) -> None:
    file = askapatient / "AskAPatient.fold-4.test.txt"
    file.write_bytes(b"\xef\xbb\xbf1001\tTired\tcouldn\x92t wake\r\n1001\tTired\tTIRED\r\n")
    queries, _ = get_task("askapatient").queries(askapatient, "fold-4")
    assert [(query.text, set(query.gold)) for query in queries] == [
        ("couldn\u2019t wake", {"1001"}),
        ("TIRED", {"1001"}),
    ]


def test_a_header_is_no_mention(askapatient: Path) -> None:
    file = askapatient / "AskAPatient.fold-4.test.txt"
    file.write_text("concept\tname\tmention\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(InputError, match=r"fold-4.test.txt, line 1: a line that .* found concept"):
        get_task("askapatient").queries(askapatient, "fold-4")


def test_one_fold_of_askapatient_needs_its_own_files_alone(askapatient: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for file in list(askapatient.glob("AskAPatient.fold-2.*")):
        file.rename(own / file.name)
    task = get_task("askapatient")
    assert [query.text for query in task.queries(own, "fold-2-validation")[0]] == ["pain 2 validation"]
    assert [line.name for line in task.dictionary(own, "fold-2-validation")[0]] == ["Pain"]
    with pytest.raises(InputError, match=r"AskAPatient\.fold-0"):
        task.dictionary(own, "test")


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"1\tA\ta\n1\tA\n", "another form"), (b"1\tA\t\x81\xff\n", "neither UTF-8"), (b"1\tA\t \n", "another form")],
)
def test_askapatient_bad_line(askapatient: Path, content: bytes, problem: str) -> None:
    (askapatient / "AskAPatient.fold-1.test.txt").write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        get_task("askapatient").queries(askapatient, "test")
    assert caught.value.line == content.count(b"\n")


def test_development_dictionary_is_made_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "dev_queries.txt").write_text("D1||a\n")
    with pytest.raises(InputError, match=r"file dictionary.txt is not here.*, or dev_dictionary.txt, which is made of"):
        get_task("ncbi-disease").dictionary(tmp_path, "dev")
    (tmp_path / "dictionary.txt").write_text("D1|9||fever\nD2||pain\n")
    (tmp_path / "train_queries.txt").write_text("D2||ache\nD1+D2||fever|pain\nD2||ache\nD1|D3||hot\nD3||pain\n")
    task = get_task("ncbi-disease")
    lines, files = task.dictionary(tmp_path, "dev")
    expected = [
        ("fever", ("D1", "9")),
        ("pain", ("D2", "D3")),  # one line for each name, as the published dictionaries have it
        ("ache", ("D2",)),
        ("fever pain", ("D1+D2",)),
        ("hot", ("D1", "D3")),
    ]
    assert [(line.name, line.ids) for line in lines] == expected
    assert [file.name for file in files] == ["dictionary.txt", "train_queries.txt"]
    write_dictionary(lines, tmp_path / "written.txt")
    assert read_dictionary(tmp_path / "written.txt") == lines
    (tmp_path / "dev_dictionary.txt").write_text("D1||flu\n")
    assert [line.name for line in task.dictionary(tmp_path, "dev")[0]] == ["flu"]
    with pytest.raises(InputError, match="test_dictionary"):
        task.dictionary(tmp_path, "test")


def test_unknown_split() -> None:
    task = get_task("ncbi-disease")
    assert task.split(None) == "test"
    assert task.split("dev") == "dev"
    with pytest.raises(InputError, match=r"no split 'tset'\. Did you mean 'test'"):
        task.split("tset")


def test_a_declaration_that_cannot_be_measured() -> None:
    task = get_task("ncbi-disease")
    with pytest.raises(InputError, match="no part to measure on"):
        dataclasses.replace(task, splits=())
    with pytest.raises(InputError, match="no k to measure acc@k at"):
        dataclasses.replace(task, cutoffs=())
    with pytest.raises(InputError, match="from 1; found 0"):
        dataclasses.replace(task, cutoffs=(5, 0))
    with pytest.raises(InputError, match="several are meant"):
        dataclasses.replace(task, splits="test")  # type: ignore[arg-type]


def test_every_task_is_complete() -> None:
    for name, task in TASKS.items():
        assert task.name == name
        assert task.splits[0] == "test"
        assert task.cutoffs == (1, 5)
