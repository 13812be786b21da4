"""The commands over a linker with its vectors in PostgreSQL: they say where, link as any other, and tell no secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from linking_data import WIDTH, write_letter_encoder

from commands import invoke, run
from onoma.cli import warning_in_words
from onoma.errors import ConfigError, MismatchError, OnomaError, UnavailableError
from onoma.indexes import pgvector_replacing
from tiny import Name, make_terminology

if TYPE_CHECKING:
    from postgres_database import Schema

pytest_plugins = ["postgres_database"]

CONCEPTS: dict[str, list[str | Name]] = {
    "D1": ["Diabetes Mellitus", "sugar disease"],
    "D2": ["Cold"],
    "D3": ["Lung Disease", "bad lung"],
}
NEW: dict[str, list[str | Name]] = {**CONCEPTS, "D4": ["Chill", "bad cold"]}
MENTIONS = ["sugary disease", "cold", "bad lungs"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pgvector")
    write_letter_encoder(folder / "letters")
    make_terminology(folder / "t", CONCEPTS)
    make_terminology(folder / "new", NEW)
    (folder / "table.csv").write_text("id,mention\n" + "".join(f"{n},{m}\n" for n, m in enumerate(MENTIONS)))
    run("linker", "build", "-t", folder / "t", "-e", folder / "letters", "-o", folder / "exact")
    return folder


def build(place: Path, out: Path, schema: Schema, *more: str) -> str:
    what = ["-t", str(place / "t"), "-e", str(place / "letters"), "-o", str(out), "--index", "pgvector"]
    return run("linker", "build", *what, "--database", schema.string, *more)


def test_the_whole_road(place: Path, tmp_path: Path, schema: Schema) -> None:
    linker, said = tmp_path / "linker", []
    said.append(build(place, linker, schema))
    with pytest.raises(OnomaError, match="exists already"):
        build(place, linker, schema)
    said.append(build(place, linker, schema, "--force", "--vectors", "fp16"))
    said.append(build(place, linker, schema, "--force"))
    where = ["--database", schema.string]
    expected = run("link", place / "exact", *MENTIONS, "--json")
    assert run("link", linker, *MENTIONS, "--json", *where) == expected
    assert run("link", linker, *MENTIONS, "--json", ONOMA_DATABASE=schema.string) == expected
    explained = run("link", linker, "bad lungs", "--explain", *where)
    assert explained == run("link", place / "exact", "bad lungs", "--explain")
    mapped = ["--input", str(place / "table.csv"), "--column", "mention", "--top-k", "2"]
    for name, folder, more in (("ours", linker, where), ("theirs", place / "exact", [])):
        run("map", folder, *mapped, "--output", tmp_path / f"{name}.csv", *more)
    assert (tmp_path / "ours.csv").read_text() == (tmp_path / "theirs.csv").read_text()
    said.append(run("verify", linker, *where))
    assert "vectors in PostgreSQL: 5 rows" in said[-1]
    assert json.loads(run("verify", linker, "--json", *where))["n_rows_read_in_table"] == 5
    unread = invoke("verify", linker)
    assert "were not read: give --database" in unread.stderr
    other = invoke("linker", "update", linker, "-t", place / "new", "--check", *where)
    assert (other.exit_code, "another content" in other.stderr) == (3, True)
    said.append(run("linker", "update", linker, "-t", place / "new", *where))
    assert "4 concepts" in said[-1]
    said.append(run("linker", "update", linker, "-t", place / "new", "--check", *where))
    assert json.loads(run("link", linker, "bad colds", "--json", *where))["links"][0]["concept_id"] == "D4"
    about = json.loads(run("linker", "info", linker, "--json"))
    assert [about["table"]] == schema.tables()
    shown = run("linker", "info", linker)
    for fact in (about["table"], "pgvector", "letters", "exact, variants, dense", "1.0 at 1"):
        assert fact in shown
    for text in [*said, shown, explained]:
        assert schema.password not in text


def test_info_of_another_linker(place: Path) -> None:
    about = json.loads(run("linker", "info", place / "exact", "--json"))
    assert (about["index"], about["vectors"], about["n_concepts"], about["stages"]) == (
        "exact",
        "fp32",
        3,
        ["exact", "variants", "dense"],
    )
    assert about["dimensions"] == WIDTH
    assert "table" not in about
    with pytest.raises(OnomaError, match="of kind terminology"):
        run("linker", "info", place / "t")


def test_what_is_refused(place: Path, tmp_path: Path, schema: Schema) -> None:
    build(place, tmp_path / "linker", schema)
    with pytest.raises(ConfigError, match="--database CONNINFO"):
        run("link", tmp_path / "linker", "cold")
    exact, new = str(place / "exact"), str(place / "new")
    for words in (["link", exact, "cold"], ["verify", exact], ["linker", "update", exact, "--terminology", new]):
        with pytest.raises(ConfigError, match="database") as raised:
            run(*words, "--database", schema.string)
        assert schema.password not in str(raised.value)
    with pytest.raises(UnavailableError, match="cannot be reached"):
        run("link", tmp_path / "linker", "cold", "--database", "host=/nowhere")
    schema.run(f"UPDATE {schema.tables()[0]} SET embedding = embedding + embedding WHERE id = 2")
    with pytest.raises(MismatchError, match="rows were changed, added or removed"):
        run("verify", tmp_path / "linker", "--database", schema.string)
    schema.run(f"ALTER TABLE {schema.tables()[0]} RENAME TO hidden")
    with pytest.raises(OnomaError, match="there is no table"):
        run("link", tmp_path / "linker", "cold", "--database", schema.string)


def test_warnings_are_shown_without_the_program() -> None:
    of_others = warning_in_words("do this", RuntimeWarning, "elsewhere.py", 3, "do()")
    assert warning_in_words("drop it", RuntimeWarning, pgvector_replacing.__file__, 3) == "onoma: drop it\n"
    assert of_others == "elsewhere.py:3: RuntimeWarning: do this\n  do()\n"
