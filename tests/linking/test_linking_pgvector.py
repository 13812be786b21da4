"""Linkers with their vectors in PostgreSQL: they answer as others do, tell no secrets, refuse what is not theirs."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from linking_data import WIDTH, write_letter_encoder

from manifests import refit
from onoma.artifacts import verify_artifact
from onoma.encoders import open_encoder
from onoma.errors import (
    ConfigError,
    DamagedArtifactError,
    InputError,
    MismatchError,
    NotAnArtifactError,
    OnomaError,
    UnavailableError,
)
from onoma.files.reading import Reading
from onoma.indexes import read_index_record
from onoma.indexes.pgvector import PgVectorIndex
from onoma.indexes.pgvector_folder import DATABASE_VARIABLE, TABLE_FILE, prepare_table
from onoma.linking import Link, Linker, add_reranker, build_linker, tune_linker
from onoma.pairs import read_mentions
from tiny import Name, make_terminology, tiny_encoder
from tiny_rerankers import write_reranker

if TYPE_CHECKING:
    from postgres_database import Schema

pytest_plugins = ["postgres_database"]

SYLLABLES = ["car", "di", "o", "my", "pa", "thy", "neu", "ro", "der", "ma", "ti", "tis", "hep", "al", "gia", "phro"]
STAGES = [["dense"], ["exact", "dense"], ["exact", "loose", "dense", "sparse"]]


def concepts(n: int) -> dict[str, list[str | Name]]:
    """Made-up names, each tenth of them that of two concepts, some in German."""
    rng = random.Random(n)
    names = ["".join(rng.choices(SYLLABLES, k=3)) + " " + "".join(rng.choices(SYLLABLES, k=2)) for _ in range(n)]
    made: dict[str, list[str | Name]] = {}
    for row, name in enumerate(names):
        made[f"C{row}"] = [name, Name(f"{name} {row % 7}", "de"), *([names[row // 2]] if row % 10 == 0 else [])]
    return made


CONCEPTS = concepts(60)
MENTIONS = ["cardio", "neuro pathy", "derma", "C12", "titis hepal", "   ", "gia gia", "心臓", "cardio"]
MENTIONS += [str(names[0])[:-2] for names in list(CONCEPTS.values())[::6]] + [str(CONCEPTS["C3"][0]).upper()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pgvector")
    write_letter_encoder(folder / "letters")
    write_letter_encoder(folder / "others", seed=1)
    types = {code: ["Disease or Syndrome" if int(code[1:]) % 3 else "Finding"] for code in CONCEPTS}
    relations = [(f"C{row}", "is_a", "C7") for row in (9, 10, 20)]
    make_terminology(folder / "t", CONCEPTS, semantic_types=types, relations=relations)
    make_terminology(folder / "tiny", {"C1": ["cardio"], "C2": ["neuro"]})
    build_linker(folder / "t", folder / "letters", folder / "exact", sparse=True)
    return folder


def told(folder: Path) -> bytes:
    """All that stands in a folder."""
    return b"\n".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def build(place: Path, out: Path, schema: Schema, **options: Any) -> Linker:
    chosen: dict[str, Any] = {"index": "pgvector", "sparse": True, "database": schema.string, **options}
    return build_linker(place / "t", place / "letters", out, **chosen)


@pytest.fixture
def linker(place: Path, tmp_path: Path, schema: Schema) -> Path:
    build(place, tmp_path / "linker", schema)
    return tmp_path / "linker"


# Answers


@pytest.mark.parametrize("kind", ["pgvector", "pgvector-hnsw"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_answers_are_those_of_the_exact_index(
    place: Path, tmp_path: Path, schema: Schema, kind: str, precision: str
) -> None:
    """Of a terminology so small that the graph is not used, so that it must be so of both."""
    options: dict[str, Any] = {"vectors": precision, "sparse": True}
    exact = build_linker(place / "t", place / "letters", tmp_path / "exact", **options)
    build(place, tmp_path / "linker", schema, index=kind, **options)
    ours = Linker.open(tmp_path / "linker", database=schema.string)
    for stages in STAGES:
        for top_k in (1, 50):
            assert ours.link(MENTIONS, top_k=top_k, stages=stages) == exact.link(MENTIONS, top_k=top_k, stages=stages)
        explained = [one.explain("cardio", stages=stages) for one in (ours, exact)]
        assert explained[0] == explained[1]
    assert ours.link(MENTIONS, top_k=3) == ours.link(MENTIONS, top_k=3)
    by_one = [ours.link([mention], top_k=3)[0] for mention in MENTIONS[:5]]
    assert ours.link(MENTIONS, top_k=3)[:5] == by_one, "what else is asked for does not matter"


FILTERS: list[dict[str, Any]] = [
    {"languages": "de"},
    {"languages": "en", "semantic_types": "Finding"},
    {"under": "C7"},  # few: they are read and searched alone
]


@pytest.mark.parametrize("filters", FILTERS)
def test_filters(place: Path, linker: Path, schema: Schema, filters: dict[str, Any]) -> None:
    ours = Linker.open(linker, database=schema.string).only(**filters)
    exact = Linker.open(place / "exact").only(**filters)
    assert ours.n_concepts == exact.n_concepts < len(CONCEPTS) or ours.n_names < 150
    for stages in STAGES:
        assert ours.link(MENTIONS, top_k=4, stages=stages) == exact.link(MENTIONS, top_k=4, stages=stages)
    hidden = list(range(0, 60, 3))
    with_hidden = [one.without(hidden).link(MENTIONS, top_k=4) for one in (ours, exact)]
    assert with_hidden[0] == with_hidden[1]


def test_expected_types_and_ties(place: Path, linker: Path, schema: Schema) -> None:
    homonym = str(CONCEPTS["C20"][-1])
    answers = [
        one.link([homonym, f"{homonym}x"], top_k=6, expected_types="Finding")
        for one in (Linker.open(linker, database=schema.string), Linker.open(place / "exact"))
    ]
    assert answers[0] == answers[1]
    assert answers[0][0][0].score == answers[0][0][1].score == 1.0


def test_a_graph_is_measured(place: Path, tmp_path: Path, schema: Schema) -> None:
    many = {f"N{row}": [" ".join(random.Random(row).choices(SYLLABLES, k=4)) + f" {row}"] for row in range(5000)}
    make_terminology(tmp_path / "many", many)
    linker = build_linker(
        tmp_path / "many", place / "letters", tmp_path / "linker", index="pgvector-hnsw", database=schema.string
    )
    recall = linker.manifest.config["index"]["recall"]
    assert recall["n_queries"] == 1000
    assert 0.95 < recall["at_1"] <= 1
    exact = build_linker(tmp_path / "many", place / "letters", tmp_path / "exact")
    mentions = ["".join(random.Random(row).choices(SYLLABLES, k=3)) for row in range(40)]
    found, best = (one.link(mentions, top_k=1, stages=["dense"]) for one in (linker, exact))
    same = [ours == theirs for ours, theirs in zip(found, best, strict=True)]
    assert np.mean(same) > 0.9
    again = Linker.open(tmp_path / "linker", database=schema.string)
    assert again.link(mentions, top_k=3) == linker.link(mentions, top_k=3), "one table, one answer"


def test_threads_and_processes_read_at_once(place: Path, linker: Path, schema: Schema) -> None:
    opened, expected = Linker.open(linker, database=schema.string), Linker.open(place / "exact").link(MENTIONS)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: opened.link(MENTIONS), range(8))) == [expected] * 8
    code = (
        "import dataclasses, json, sys; from onoma.linking import Linker\n"
        "linker = Linker.open(sys.argv[1])\n"
        "for _ in range(5): found = linker.link(json.loads(sys.argv[2]))\n"
        "print(json.dumps([[dataclasses.asdict(link) for link in links] for links in found]))"
    )
    reading = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(linker), json.dumps(MENTIONS)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, DATABASE_VARIABLE: schema.string},
        )
        for _ in range(2)
    ]
    for process in reading:
        said, _ = process.communicate()
        assert [[Link(**link) for link in links] for links in json.loads(said)] == expected


# What stands in the folder, and what does not


def test_the_folder_says_which_table_and_no_secrets(linker: Path, schema: Schema) -> None:
    opened = Linker.open(linker, database=schema.string)
    about = opened.manifest.config["index"]
    assert [about["table"]] == schema.tables()
    assert about["table"].startswith(f"{schema.name}.onoma_t_")
    assert (about["kind"], about["vectors"]) == ("pgvector", "fp32")
    assert about["recall"] == {"n_queries": 100, "queries": "left-out", "at_1": 1.0, "at_10": 1.0}
    with PgVectorIndex.open(schema.string, about["table"], fingerprint=about["fingerprint"]) as index:
        assert (len(index), index.width) == (opened.n_texts, WIDTH)
        assert read_index_record(linker).fingerprint == index.record.fingerprint
    assert not (linker / "vectors.npy").exists()
    verify_artifact(linker)
    written = told(linker)
    for secret in (schema.password, "search_path", schema.string, schema.plain.split()[0]):
        assert secret.encode() not in written
    assert schema.password not in repr(opened)


def test_the_same_content_has_the_same_fingerprint(place: Path, tmp_path: Path, linker: Path, schema: Schema) -> None:
    other = build(place, tmp_path / "other", schema)
    assert Linker.open(linker, database=schema.string).fingerprint == other.fingerprint
    assert len(schema.tables()) == 2, "each has a table of its own"
    half = build(place, tmp_path / "half", schema, vectors="fp16")
    assert half.fingerprint != other.fingerprint


def test_a_closed_linker_gives_its_connection_back_and_opens_another(linker: Path, schema: Schema) -> None:
    with Linker.open(linker, database=schema.string) as opened:
        before = opened.link(["cardio 1"])
        index = opened._components.index
        assert isinstance(index, PgVectorIndex)
        is_closed = [index._session._connection.closed]
    is_closed.append(index._session._connection.closed)
    assert is_closed == [False, True]
    assert opened.link(["cardio 1"]) == before
    opened.close()


def test_where_the_database_is_said(
    place: Path, tmp_path: Path, linker: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=rf"linker .*{schema.name}\.onoma_t_.*--database CONNINFO.*ONOMA_DATABASE"):
        Linker.open(linker)
    with pytest.raises(ConfigError, match="index of the kind pgvector needs a database"):
        build_linker(place / "t", place / "letters", tmp_path / "new", index="pgvector")
    monkeypatch.setenv(DATABASE_VARIABLE, schema.string)
    assert Linker.open(linker).link(MENTIONS) == Linker.open(place / "exact").link(MENTIONS)
    build_linker(place / "t", place / "letters", tmp_path / "new", index="pgvector")
    assert len(schema.tables()) == 2
    Linker.open(place / "exact"), build_linker(place / "tiny", place / "letters", tmp_path / "files")
    monkeypatch.setenv(DATABASE_VARIABLE, "host=/nowhere")
    with pytest.raises(UnavailableError, match="cannot be reached"):
        Linker.open(linker)
    assert Linker.open(linker, database=schema.string).n_concepts == len(CONCEPTS), "what is said counts more"
    refused(place / "exact", schema, ConfigError, "leave the database out")
    for encoder in (place / "letters", None):
        with pytest.raises(ConfigError, match="a database is for pgvector and pgvector-hnsw") as raised:
            build_linker(place / "t", encoder, tmp_path / "x", sparse=True, database=schema.string)
        assert schema.password not in str(raised.value)


def test_settings_and_a_reranker_are_put_beside_it(place: Path, tmp_path: Path, linker: Path, schema: Schema) -> None:
    table = schema.tables()
    write_reranker(tmp_path / "reranker", tiny_encoder(tmp_path / "bert", weight_std=0.3))
    lines = [f"{code}||{str(names[0])[:-1]}x" for code, names in CONCEPTS.items()]
    lines += [f"C{row}||{str(CONCEPTS[f'C{row + 1}'][0])[1:]}" for row in range(20)]  # which the linker gets wrong
    (tmp_path / "mentions.txt").write_text("\n".join(lines) + "\n")
    mentions = read_mentions(tmp_path / "mentions.txt", Reading())
    shutil.copytree(place / "exact", tmp_path / "exact")
    tuned = tune_linker(linker, mentions, database=schema.string)
    assert tuned == tune_linker(tmp_path / "exact", mentions)
    reranking = add_reranker(linker, tmp_path / "reranker", database=schema.string)
    assert reranking.settings.stages[-1] == "rerank"
    assert reranking.link(MENTIONS) == add_reranker(tmp_path / "exact", tmp_path / "reranker").link(MENTIONS)
    assert schema.tables() == table
    verify_artifact(linker)
    assert schema.password.encode() not in told(linker)


# What is refused


class Counting:
    """An encoder that says how often it was asked."""

    def __init__(self, folder: Path) -> None:
        self._encoder, self.n_calls = open_encoder(folder, backend="onnx"), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, texts: Sequence[str], **options: Any) -> Any:
        self.n_calls += 1
        return self._encoder.encode(texts, **options)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"index": "pgvectr"}, ConfigError, "Did you mean 'pgvector'"),
        ({"vectors": "int8"}, ConfigError, "PostgreSQL stores vectors in fp32 or fp16; found 'int8'"),
        ({"database": "host=/nowhere password=geheim"}, UnavailableError, "cannot be reached"),
        ({"database": "postgresql://me:ge@heim@127.0.0.1/names"}, ConfigError, "%40"),
        ({"database": "postgresql://me:ge/heim@127.0.0.1/names"}, ConfigError, "%2F"),
        ({"database": "geheim"}, ConfigError, "cannot be read"),
    ],
)
def test_what_is_refused_before_anything_is_encoded(
    place: Path, tmp_path: Path, schema: Schema, options: dict[str, Any], error: type[OnomaError], match: str
) -> None:
    encoder = Counting(place / "letters")
    with pytest.raises(error, match=match) as raised:
        build_linker(
            place / "t", encoder, tmp_path / "x", **{"index": "pgvector", "database": schema.string, **options}
        )
    assert encoder.n_calls == 0
    assert "heim" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
    assert schema.tables() == []


def test_a_database_that_cannot_be_written_to(place: Path, tmp_path: Path, schema: Schema) -> None:
    encoder = Counting(place / "letters")
    read_only = schema.string.replace("-c search_path", "-c default_transaction_read_only=on -c search_path")
    with pytest.raises(UnavailableError, match=r"can only be read .*: name the primary server, or another user"):
        build_linker(place / "t", encoder, tmp_path / "x", index="pgvector", database=read_only)
    elsewhere = schema.string.replace(f"search_path={schema.name}", "search_path=pg_catalog")
    with pytest.raises(UnavailableError, match="does not allow it"):
        build_linker(place / "t", encoder, tmp_path / "x", index="pgvector", database=elsewhere)
    assert encoder.n_calls == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["psycopg", "pgvector"])
def test_a_package_that_is_not_there(
    place: Path, tmp_path: Path, linker: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.psycopg", None)
    refused(linker, schema, UnavailableError, r"onoma\[pgvector\]")
    with pytest.raises(UnavailableError, match=r"onoma\[pgvector\]"):
        build(place, tmp_path / "x", schema)
    assert not (tmp_path / "x").exists()


def refused(linker: Path, schema: Schema, error: type[OnomaError], match: str) -> None:
    with pytest.raises(error, match=match) as raised:
        Linker.open(linker, database=schema.string)
    assert schema.password not in str(raised.value)


def test_a_table_that_is_not_there(linker: Path, schema: Schema) -> None:
    table = schema.tables()[0]
    elsewhere = dataclasses.replace(schema, string=schema.string.replace("dbname=postgres", "dbname=template1"))
    refused(linker, elsewhere, UnavailableError, "'template1' does not have the extension")
    schema.run(f"ALTER TABLE {table} RENAME TO kept")
    refused(
        linker, schema, InputError, rf"there is no table '{table}' in the database 'postgres'.*ONOMA_DATABASE.*build"
    )


@pytest.mark.parametrize("options", [{"terminology": "tiny"}, {"encoder": "others"}, {"vectors": "fp16"}])
def test_a_table_of_another_linker(
    place: Path, tmp_path: Path, linker: Path, schema: Schema, options: dict[str, Any]
) -> None:
    table = schema.tables()[0]
    schema.run(f"ALTER TABLE {table} RENAME TO kept")
    names = {"terminology": "t", "encoder": "letters", "vectors": "fp32", **options}
    other = build_linker(
        place / names["terminology"],
        place / names["encoder"],
        tmp_path / "other",
        index="pgvector",
        vectors=names["vectors"],
        database=schema.string,
    )
    schema.run(f"ALTER TABLE {other.manifest.config['index']['table']} RENAME TO {table.split('.')[1]}")
    refused(linker, schema, MismatchError, "fingerprint .* another encoder, terminology or build")


@pytest.mark.parametrize(
    ("statement", "error", "match"),
    [
        ("DELETE FROM {} WHERE id > 30", DamagedArtifactError, "should have the rows 0 to"),
        ("TRUNCATE {}", DamagedArtifactError, "should have the rows 0 to"),
        ("COMMENT ON TABLE {} IS NULL", NotAnArtifactError, "not written by Onoma"),
        ('COMMENT ON TABLE {} IS \'{{"kind": "onoma-vectors"}}\'', DamagedArtifactError, "comment .* changed"),
        ("ALTER TABLE {} DROP COLUMN embedding", DamagedArtifactError, "no columns id"),
        ("DROP INDEX {}_graph", DamagedArtifactError, "lost its HNSW index"),
    ],
)
def test_a_table_that_is_not_whole(
    place: Path, tmp_path: Path, schema: Schema, statement: str, error: type[OnomaError], match: str
) -> None:
    build(place, tmp_path / "linker", schema, index="pgvector-hnsw")
    schema.run(statement.format(schema.tables()[0]))
    refused(tmp_path / "linker", schema, error, match)


def test_a_table_without_a_graph_for_a_linker_with_one(place: Path, tmp_path: Path, schema: Schema) -> None:
    """The vectors are the same, and their fingerprint."""
    build(place, tmp_path / "graph", schema, index="pgvector-hnsw")
    graph = schema.tables()[0]
    plain = build(place, tmp_path / "plain", schema).manifest.config["index"]["table"]
    schema.run(f"DROP TABLE {graph}; ALTER TABLE {plain} RENAME TO {graph.split('.')[1]}")
    refused(tmp_path / "graph", schema, MismatchError, "not the one that .*graph was built with")


def test_a_folder_that_does_not_name_its_table(linker: Path, schema: Schema) -> None:
    def rewrite(text: str) -> None:
        (linker / TABLE_FILE).write_text(text)
        refit(linker)

    (linker / TABLE_FILE).write_text("{}")
    refused(linker, schema, DamagedArtifactError, TABLE_FILE)
    for text in ("{}", "[]", "", '{"table": 3}'):
        rewrite(text)
        refused(linker, schema, DamagedArtifactError, f"{TABLE_FILE} .*Build the index again")
    rewrite('{"table": "a.b.c", "written_in": []}')
    refused(linker, schema, ConfigError, "cannot be the name of a table")


def test_a_table_that_goes_while_it_is_searched(linker: Path, schema: Schema) -> None:
    opened = Linker.open(linker, database=schema.string)
    schema.run(f"DROP TABLE {schema.tables()[0]}")
    with pytest.raises(MismatchError, match="replaced, changed or removed"):
        opened.link(["cardi"])


def test_names_of_tables(database: str, schema: Schema) -> None:
    def name(stem: str) -> str:
        return prepare_table(schema.string, stem=stem, kind="pgvector", precision="fp32", width=4)

    assert name("Mondo 2026-01").startswith(f"{schema.name}.onoma_mondo_2026_01_")
    assert len(name("心臓")) == len(f"{schema.name}.onoma_") + 12
    assert len(name("x" * 300)) < 63
    assert name("a") != name("a")
    assert schema.tables() == [], "tried, and taken back"
