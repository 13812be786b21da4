"""``onoma linker update``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from linking_data import write_letter_encoder

from commands import invoke, run
from onoma.artifacts import MANIFEST_NAME, verify_artifact
from onoma.errors import ArtifactExistsError, ConfigError, InputError, OnomaError
from tiny import Name, make_terminology

CONCEPTS: dict[str, list[str | Name]] = {
    "D1": ["Diabetes Mellitus", "sugar disease"],
    "D2": ["Cold"],
    "D3": ["Lung Disease", "bad lung"],
}
NEW: dict[str, list[str | Name]] = {
    "D1": ["Diabetes", "Diabetes Mellitus"],
    "D2": ["Cold"],
    "D3": ["Lung Disease", "bad lung", "sugar"],
    "D4": ["[bold]Chill", "bad cold"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("update")
    write_letter_encoder(folder / "letters")
    make_terminology(folder / "t", CONCEPTS)
    make_terminology(folder / "new", NEW, obsolete=["D2"])
    run("linker", "build", "-t", folder / "t", "-e", folder / "letters", "-o", folder / "linker")
    return folder


@pytest.fixture
def linker(place: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(place / "linker", tmp_path / "linker"))


def test_in_place(place: Path, linker: Path) -> None:
    told = run("linker", "update", linker, "--terminology", place / "new")
    for words in (
        "3 -> 3 concepts, 5 -> 7 texts (3 kept, 4 new, 2 gone), 4 encoded",
        "D4 [bold]Chill",
        "retired             1",
        "D1: Diabetes Mellitus -> Diabetes",
    ):
        assert words in told
    verify_artifact(linker)
    assert "nothing to do" in run("linker", "update", linker, "-t", place / "new")
    (line,) = run("link", linker, "bad cold", "--json", "-k", "1").splitlines()
    assert json.loads(line)["links"][0]["concept_id"] == "D4"


def test_info_tells_of_what_was_learned_with_an_earlier_release(place: Path, linker: Path, tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("".join(f"D{row % 3 + 1}||lung {row}\nD3||bad lung {row}\n" for row in range(40)))
    run("linker", "tune", linker, "--mentions", tmp_path / "dev.txt")
    assert "earlier release" not in run("linker", "info", linker)
    assert "learned with an earlier release" in run("linker", "update", linker, "-t", place / "new")
    assert json.loads(run("linker", "info", linker, "--json"))["tuned_with_an_earlier_release"] is True
    assert "tuned with an earlier release" in run("linker", "info", linker)


def test_elsewhere_as_json(place: Path, linker: Path, tmp_path: Path) -> None:
    before = (linker / MANIFEST_NAME).read_bytes()
    told = json.loads(run("linker", "update", linker, "-t", place / "new", "-o", tmp_path / "out", "--json"))
    assert (told["n_texts_kept"], told["n_texts_new"], told["n_encoded"]) == (3, 4, 4)
    assert told["counts"]["retired"] == 1
    assert told["answers"] is None
    assert (linker / MANIFEST_NAME).read_bytes() == before
    with pytest.raises(ArtifactExistsError):
        run("linker", "update", linker, "-t", place / "new", "-o", tmp_path / "out")
    run("linker", "update", linker, "-t", place / "new", "-o", tmp_path / "out", "--force")


def test_with_the_same_encoder_from_its_own_folder(place: Path, linker: Path, tmp_path: Path) -> None:
    run("linker", "update", linker, "-t", place / "new", "-e", place / "letters", "-o", tmp_path / "out")
    run("linker", "update", linker, "-t", place / "new")
    assert (linker / "vectors.npy").read_bytes() == (tmp_path / "out" / "vectors.npy").read_bytes()


@pytest.mark.parametrize("written_by", ["hand", "link", "map"])
def test_changed_answers(place: Path, linker: Path, tmp_path: Path, written_by: str) -> None:
    mentions = ["cold", "sugar", "Sugar disease", "lung disease", "sugar"]
    if written_by == "hand":
        file = tmp_path / "mentions.txt"
        file.write_text("\n".join(mentions) + "\n")
    elif written_by == "link":
        file = tmp_path / "links.jsonl"
        file.write_text(run("link", linker, *mentions, "--json"))
    else:
        file = tmp_path / "mapped.parquet"
        pl.DataFrame({"row": range(5), "diagnosis": mentions}).write_csv(tmp_path / "table.csv")
        run("map", linker, "--input", tmp_path / "table.csv", "-c", "diagnosis", "--output", file)
    column = ("--column", "diagnosis") if written_by == "map" else ()
    changed = tmp_path / "changed.csv"
    told = run("linker", "update", linker, "-t", place / "new", "--mentions", file, *column, "--changed", changed)
    assert "4 of 5 mentions have another first answer" in told
    assert "retired             1" in told
    rows = pl.read_csv(changed).select("mention", "n", "old_concept_id", "new_concept_id", "reason").rows()
    assert rows[0][:3] == ("cold", 1, "D2")
    assert rows[0][4] == "retired"
    assert rows[1] == ("sugar", 2, "D1", "D3", "name_gone")


def test_what_to_consider_in_place_of_a_retired_cui(place: Path, linker: Path, tmp_path: Path) -> None:
    (tmp_path / "MRCONSO.RRF").write_text("D1|ENG|P|L|PF|S|Y|A||||S|PT|code|Diabetes|0|N||\n")
    (tmp_path / "MRCUI.RRF").write_text("D2|2003AB|RO|||D1|Y|\nD3|2003AB|DEL|||||\n")
    (tmp_path / "mentions.txt").write_text("cold\n")
    run("terminology", "import", "umls", tmp_path, "-o", tmp_path / "t")
    changed = tmp_path / "changed.csv"
    words = ("--mentions", tmp_path / "mentions.txt", "--changed", changed)
    told = run("linker", "update", linker, "-t", tmp_path / "t", *words)
    assert "D2 Cold (consider D1)" in told
    assert pl.read_csv(changed).select("mention", "reason", "consider").rows() == [("cold", "retired", "D1")]


@pytest.mark.parametrize(("name", "text"), [("a.csv", "n,mention\n1,sugar é\n"), ("a.txt", "D1||sugar é\n")])
def test_mentions_that_are_not_utf_8(place: Path, linker: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="cp1252")
    words = ("linker", "update", linker, "-t", place / "new", "--mentions", tmp_path / name)
    with pytest.raises(InputError, match=r"--encoding cp1252 .*, or convert") as caught:
        run(*words)
    assert "--on-error" not in str(caught.value)
    assert "sugar" not in str(caught.value), "it may be a patient's, and errors end in logs"
    changed = tmp_path / "changed.csv"
    run(*words, "--encoding", "cp1252", "--changed", changed)
    assert pl.read_csv(changed)["mention"].to_list() == ["sugar é"]


def test_the_mentions_are_not_written_over(place: Path, linker: Path, tmp_path: Path) -> None:
    file = tmp_path / "mentions.csv"
    file.write_text("mention\ncold\n")
    link = tmp_path / "changed.csv"
    link.symlink_to(file)
    for changed in (file, link):
        with pytest.raises(ConfigError, match="over the mentions"):
            run("linker", "update", linker, "-t", place / "new", "--mentions", file, "--changed", changed, "--force")
    assert file.read_text() == "mention\ncold\n"


def test_check(place: Path, linker: Path) -> None:
    before = (linker / MANIFEST_NAME).read_bytes()
    assert "is of this terminology" in run("linker", "update", linker, "-t", place / "t", "--check")
    other = invoke("linker", "update", linker, "-t", place / "new", "--check")
    assert (other.exit_code, other.stdout) == (3, "")
    assert "another content" in other.stderr
    assert "onoma linker update" in other.stderr
    with pytest.raises(InputError, match="nothing here"):  # status 1
        run("linker", "update", linker, "-t", place / "none", "--check")
    assert (linker / MANIFEST_NAME).read_bytes() == before


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (("--changed", "x.csv"), ConfigError, "--mentions"),
        (("--changed", "x.parquet", "--mentions", "none.txt"), ConfigError, "ends in .csv"),
        (("--precision", "bf16"), ConfigError, "--encoder"),
        (("--column", "x"), ConfigError, "--mentions"),
        (("--encoding", "cp1252"), ConfigError, "--mentions"),
        (("--check", "--encoding", "cp1252"), ConfigError, "leave out --encoding"),
        (("--mentions", "none.txt", "--encoding", "cp0"), ConfigError, "not known"),
        (("--check", "--mentions", "x.csv", "--changed", "x.csv"), ConfigError, "leave out --mentions, --changed"),
        (("--check", "--precision", "bf16", "--json"), ConfigError, "leave out --precision, --json"),
        (("--check", "--force"), ConfigError, "leave out --force"),
        (("--mentions", "none.txt"), InputError, "no such file"),
    ],
)
def test_what_is_refused(place: Path, linker: Path, words: tuple[str, ...], error: type[OnomaError], said: str) -> None:
    before = (linker / MANIFEST_NAME).read_bytes()
    with pytest.raises(error, match=said):
        run("linker", "update", linker, "-t", place / "new", *words)
    assert (linker / MANIFEST_NAME).read_bytes() == before


def test_the_file_of_changes_is_refused_before_anything_is_done(place: Path, linker: Path, tmp_path: Path) -> None:
    before = (linker / MANIFEST_NAME).read_bytes()
    for name in ("mentions.txt", "taken.csv"):
        (tmp_path / name).write_text("cold\n")
    with pytest.raises(ArtifactExistsError):
        run(
            *("linker", "update", linker, "-t", place / "new"),
            *("--mentions", tmp_path / "mentions.txt", "--changed", tmp_path / "taken.csv"),
        )
    with pytest.raises(OSError, match="Not a directory"):
        run(
            *("linker", "update", linker, "-t", place / "new"),
            *("--mentions", tmp_path / "mentions.txt", "--changed", tmp_path / "mentions.txt" / "changed.csv"),
        )
    assert (linker / MANIFEST_NAME).read_bytes() == before
    run(
        *("linker", "update", linker, "-t", place / "new", "--force"),
        *("--mentions", tmp_path / "mentions.txt", "--changed", tmp_path / "taken.csv"),
    )
    assert pl.read_csv(tmp_path / "taken.csv")["mention"].to_list() == ["cold"]
