"""Tables of vectors in PostgreSQL: whole or not there, refused in words, and exact whatever the server computes."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np
import pytest
from index_data import in_precision, unit_vectors

from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    MismatchError,
    NotAnArtifactError,
    OnomaError,
    UnavailableError,
)
from onoma.indexes import ExactIndex, VectorStore, pgvector, pgvector_server, pgvector_tables
from onoma.indexes.pgvector import PgVectorIndex
from onoma.indexes.pgvector_folder import prepare_table
from onoma.types import FloatArray

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from postgres_server import BIN_VARIABLE, NoServerError, private_server

if TYPE_CHECKING:
    import psycopg

pytest_plugins = ["postgres_database"]

Sql = Callable[..., list[tuple[Any, ...]]]

_numbers = itertools.count()


VECTORS, QUERIES = unit_vectors(40, 6), unit_vectors(5, 6, seed=1)


@pytest.fixture
def table() -> str:
    return f"vectors {next(_numbers)}"


@pytest.fixture
def sql(database: str) -> Iterator[Sql]:
    """Statements of somebody else."""
    import psycopg

    with psycopg.connect(database, autocommit=True) as connection:

        def run(statement: str, *names: str) -> list[tuple[Any, ...]]:
            quoted = [psycopg.sql.Identifier(*name.split(".")) for name in names]
            cursor = connection.execute(psycopg.sql.SQL(statement).format(*quoted))
            return cursor.fetchall() if cursor.description else []

        yield run


def with_options(database: str, options: str) -> str:
    import psycopg

    return psycopg.conninfo.make_conninfo(database, options=options)


def tables(sql: Sql) -> set[str]:
    return {name for (name,) in sql("SELECT relname::text FROM pg_class WHERE relname ~ '^(vectors|onoma)'")}


# What is found


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_scores_are_those_of_the_exact_index(
    database: str, table: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "_QUERIES_AT_ONCE", 13)
    vectors, queries = unit_vectors(3000, 48), unit_vectors(30, 48, seed=1)
    stored = in_precision(precision, vectors)
    with PgVectorIndex.build(database, table, vectors, precision=precision, queries=queries[:3]) as index:
        found = index.search(queries, k=12)
    expected = ExactIndex(stored).search(queries, k=12)
    assert np.array_equal(found[0], expected[0])
    assert found[1].tobytes() == expected[1].tobytes()


def test_rows_equal_but_for_the_servers_rounding_are_told_apart(database: str, table: str) -> None:
    rng = np.random.default_rng(0)
    vectors = np.repeat(unit_vectors(1, 200), 400, axis=0)
    vectors += rng.choice(np.array([0, 1e-8, 2e-8], np.float32), vectors.shape)
    with PgVectorIndex.build(database, table, vectors) as index:
        rows, scores = index.search(vectors[:3], k=5)
    expected = ExactIndex(vectors).search(vectors[:3], k=5)
    assert np.array_equal(rows, expected[0])
    assert np.array_equal(scores, expected[1])


def test_more_equally_good_rows_than_are_asked_for_at_first(database: str, table: str) -> None:
    vectors = np.repeat(unit_vectors(1, 4), 300, axis=0)
    vectors[200:] *= 0.5
    with PgVectorIndex.build(database, table, vectors) as index:
        assert index.search(vectors[:1], k=3)[0].tolist() == [[0, 1, 2]]
        assert index.search(-vectors[:1], k=3)[0].tolist() == [[200, 201, 202]]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_graph_finds_most_and_scores_exactly(database: str, table: str, precision: str) -> None:
    vectors, queries = unit_vectors(2000, 24), unit_vectors(40, 24, seed=1)
    stored = in_precision(precision, vectors)
    exact_rows, _ = ExactIndex(stored).search(queries, k=10)
    with PgVectorIndex.build(
        database, table, vectors, approximate="hnsw", precision=precision, candidates=100, queries=queries
    ) as index:
        rows, scores = index.search(queries, k=10)
        again = index.search(queries[7:8], k=10)
    assert np.array_equal(again[0][0], rows[7])
    for query, found, said in zip(queries, rows, scores, strict=True):
        true = (stored.take(found).astype(np.float64) * query).sum(axis=1).astype(np.float32)
        assert said.tolist() == true.tolist() == sorted(true.tolist(), reverse=True)
    recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(rows.tolist(), exact_rows.tolist(), strict=True)])
    assert recall > 0.9
    measured = index.record.recall
    assert measured is not None
    assert (measured.n_queries, measured.queries) == (40, "given")
    assert measured.at_10 == pytest.approx(recall, abs=0.01)
    with PgVectorIndex.open(database, table, candidates=8) as fewer:
        rows, _ = fewer.search(queries, k=1)
        assert (rows[:, 0] != exact_rows[:, 0]).any(), "the graph was not used"
        assert np.array_equal(fewer.search(queries, k=120)[0][:, :10], exact_rows), "too many for the graph"


def test_recall_is_measured_when_nothing_is_given(database: str, table: str) -> None:
    with PgVectorIndex.build(database, table, VECTORS, approximate="hnsw") as index:
        recall = index.record.recall
    assert recall is not None
    assert (recall.n_queries, recall.queries, recall.at_1, recall.at_10) == (40, "left-out", 1.0, 1.0)


def test_half_precision_says_how_near_it_is(database: str, table: str) -> None:
    vectors = VECTORS.copy()
    vectors[3] = [1, 1e-4, 0, 0, 0, 0]
    with PgVectorIndex.build(database, table, vectors, precision="fp16") as index:
        record = index.record
        assert index.take(np.arange(40)).tobytes() == vectors.astype(np.float16).astype(np.float32).tobytes()
    a, b = vectors.astype(np.float64), vectors.astype(np.float16).astype(np.float64)
    cosines = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert record.agreement.mean_cosine == pytest.approx(cosines.mean(), abs=1e-6)
    assert record.agreement.lowest_cosine == pytest.approx(cosines.min(), abs=1e-6)
    assert record.max_norm == pytest.approx(np.linalg.norm(b, axis=1).max())


def test_take_gives_the_vectors_in_the_order_asked_for(database: str, table: str) -> None:
    rows = np.array([7, 0, 7, 39])
    with PgVectorIndex.build(database, table, VECTORS) as index:
        assert index.take(rows).tobytes() == VECTORS[rows].tobytes()
        assert index.take(rows[:0]).shape == (0, 6)
        with pytest.raises(InputError, match="from 0 to 39"):
            index.take(np.array([40]))


def test_wide_vectors(database: str, table: str) -> None:
    vectors = unit_vectors(9, 2500)  # more than a page holds
    with PgVectorIndex.build(database, table, vectors) as index:
        rows, scores = index.search(vectors[:2], k=3)
    assert np.array_equal(rows, ExactIndex(vectors).search(vectors[:2], k=3)[0])
    assert scores[0][0] == pytest.approx(1)


def test_products_too_large_for_single_precision_are_refused(database: str, table: str) -> None:
    with (
        PgVectorIndex.build(database, table, VECTORS * np.float32(1e20)) as index,
        pytest.raises(InputError, match="too large"),
    ):
        index.search(QUERIES * np.float32(1e20))


def test_threads_take_turns(database: str, table: str) -> None:
    vectors, queries = unit_vectors(300, 6), unit_vectors(40, 6, seed=1)
    with PgVectorIndex.build(database, table, vectors) as index, ThreadPoolExecutor(4) as threads:
        expected = index.search(queries, k=3)[0]
        found = list(threads.map(lambda query: index.search(query[None], k=3)[0][0], queries))
    assert np.array_equal(np.stack(found), expected)


# Opening


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("approximate", [None, "hnsw"])
def test_what_was_built_is_opened(database: str, table: str, precision: str, approximate: Any) -> None:
    with PgVectorIndex.build(database, table, VECTORS, precision=precision, approximate=approximate) as built:
        expected = built.search(QUERIES, k=4)
    mark = built.record.fingerprint
    with PgVectorIndex.open(database, table, width=6, fingerprint=mark) as index:
        assert index.record == built.record
        assert (len(index), index.width) == (40, 6)
        found = index.search(QUERIES, k=4)
        index.verify()
    assert found[0].tobytes() == expected[0].tobytes()
    assert found[1].tobytes() == expected[1].tobytes()


def test_the_fingerprint_is_of_the_vectors(database: str, table: str) -> None:
    def mark(vectors: FloatArray, precision: str = "fp32") -> str:
        built = PgVectorIndex.build(database, table, vectors, precision=precision, overwrite=True, queries=vectors[:0])
        with built:
            return built.record.fingerprint

    changed = VECTORS.copy()
    changed[11, 2] += 1e-6
    marks = [mark(VECTORS), mark(changed), mark(VECTORS[::-1].copy())]
    marks += [mark(VECTORS, "fp16"), mark(VECTORS[:, :5].copy())]
    assert len(set(marks)) == 5
    assert mark(VECTORS) == marks[0]


def test_other_vectors_than_needed_are_refused(database: str, table: str) -> None:
    PgVectorIndex.build(database, table, VECTORS).close()
    with pytest.raises(MismatchError, match="width 6, where 7 is needed"):
        PgVectorIndex.open(database, table, width=7)
    with pytest.raises(MismatchError, match=r"fingerprint .* where 00000000"):
        PgVectorIndex.open(database, table, fingerprint="0" * 64)


def test_no_such_table(database: str) -> None:
    with pytest.raises(InputError, match="no table 'nothing' in the database 'postgres'"):
        PgVectorIndex.open(database, "nothing")
    with pytest.raises(InputError, match=r"no table 'nowhere\.nothing'"):
        PgVectorIndex.open(database, "nowhere.nothing")


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ("COMMENT ON TABLE {} IS NULL", NotAnArtifactError, "not written by Onoma"),
        ("COMMENT ON TABLE {} IS 'names of diseases'", NotAnArtifactError, "not written by Onoma"),
        ("COMMENT ON TABLE {} IS '[1]'", NotAnArtifactError, "not written by Onoma"),
        ('COMMENT ON TABLE {} IS \'{{"kind": "onoma-vectors"}}\'', DamagedArtifactError, "comment .* changed"),
        (
            'COMMENT ON TABLE {} IS \'{{"kind": "onoma-vectors", "format_version": 9, "new": 1}}\'',
            FormatVersionError,
            "format 9; this Onoma reads up to 1",
        ),
        ("DELETE FROM {} WHERE id = 39", DamagedArtifactError, "rows 0 to 39; it has 0 to 38"),
        ("ALTER TABLE {} RENAME embedding TO vector", DamagedArtifactError, r"embedding of type vector\(6\)"),
        ("ALTER TABLE {} ALTER embedding TYPE vector", DamagedArtifactError, r"embedding of type vector\(6\)"),
        ("ALTER TABLE {} ALTER id TYPE int", DamagedArtifactError, "id of type bigint"),
    ],
)
def test_a_changed_table_is_refused(
    database: str, table: str, sql: Sql, change: str, error: type[OnomaError], match: str
) -> None:
    PgVectorIndex.build(database, table, VECTORS).close()
    sql(change, table)
    with pytest.raises(error, match=match):
        PgVectorIndex.open(database, table)


def test_a_lost_graph_is_refused(database: str, table: str, sql: Sql) -> None:
    PgVectorIndex.build(database, table, VECTORS, approximate="hnsw").close()
    sql("DROP INDEX {}", f"{table}_graph")
    with pytest.raises(DamagedArtifactError, match="lost its HNSW"):
        PgVectorIndex.open(database, table)


def test_a_changed_vector_is_found_by_reading_all(
    database: str, table: str, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector_tables, "PART_ROWS", 7)  # the last part is shorter
    with PgVectorIndex.build(database, table, VECTORS) as index:
        index.verify()
        sql("UPDATE {} SET embedding = '[1,0,0,0,0,0]' WHERE id = 17", table)
        with pytest.raises(MismatchError, match=r"rows were changed, added or removed\. Build the index"):
            index.verify()


def test_a_row_that_others_add_is_noticed(database: str, table: str, sql: Sql) -> None:
    with PgVectorIndex.build(database, table, VECTORS) as index:
        sql(f"INSERT INTO {{}} VALUES ({len(VECTORS)}, '[9,0,0,0,0,0]')", table)
        with pytest.raises(MismatchError, match="replaced, changed or removed"):
            index.search(np.eye(1, 6, dtype=np.float32))
        with pytest.raises(MismatchError, match=r"rows were changed, added or removed\. Build the index"):
            index.verify()


def test_a_table_replaced_or_removed_meanwhile_is_noticed(database: str, table: str, sql: Sql) -> None:
    with PgVectorIndex.build(database, table, VECTORS) as index:
        with PgVectorIndex.build(database, table, VECTORS[::-1].copy(), overwrite=True) as second:
            with pytest.raises(MismatchError, match="replaced, changed or removed"):
                index.search(QUERIES)
            sql("DELETE FROM {} WHERE id > 1", table)
            with pytest.raises(MismatchError, match="replaced, changed or removed"):
                second.search(QUERIES)
            with pytest.raises(MismatchError, match="replaced, changed or removed"):
                second.take(np.array([5]))
        sql("DROP TABLE {}", table)
        with pytest.raises(MismatchError, match="replaced, changed or removed"):
            index.search(QUERIES)


# Writing


def test_a_table_that_is_there_is_not_replaced_unasked(database: str, table: str) -> None:
    PgVectorIndex.build(database, table, VECTORS).close()
    with pytest.raises(ArtifactExistsError, match="exists already"):
        PgVectorIndex.build(database, table, VECTORS)
    with PgVectorIndex.build(database, table, VECTORS[:7], approximate="hnsw", overwrite=True) as index:
        assert len(index) == 7


@pytest.mark.parametrize("kind", ["TABLE {} (id bigint)", "VIEW {} AS SELECT 1", "SEQUENCE {}"])
def test_what_others_made_is_never_replaced(database: str, table: str, sql: Sql, kind: str) -> None:
    sql(f"CREATE {kind}", table)
    with pytest.raises(ArtifactExistsError, match="not written by Onoma"):
        PgVectorIndex.build(database, table, VECTORS, overwrite=True)
    with pytest.raises(NotAnArtifactError):
        PgVectorIndex.open(database, table)


def test_a_table_that_others_build_on_is_not_replaced(database: str, table: str, sql: Sql) -> None:
    PgVectorIndex.build(database, table, VECTORS).close()
    sql("CREATE VIEW {} AS SELECT id FROM {}", f"{table} view", table)
    with pytest.raises(ArtifactExistsError, match="depends on it"):
        PgVectorIndex.build(database, table, VECTORS, overwrite=True)
    PgVectorIndex.open(database, table).close()


@pytest.mark.parametrize("stopped_by", ["an error", "a lost connection"])
def test_an_unfinished_table_is_never_seen(
    database: str, table: str, sql: Sql, monkeypatch: pytest.MonkeyPatch, stopped_by: str
) -> None:
    seen: list[set[str]] = []

    def stop(connection: psycopg.Connection[Any], *_: Any, **__: Any) -> None:
        seen.append(tables(sql))
        if stopped_by == "an error":
            raise KeyboardInterrupt
        sql(f"SELECT pg_terminate_backend({connection.info.backend_pid})")

    before = tables(sql)
    for overwrite in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(pgvector, "write_record", stop)
            with pytest.raises((KeyboardInterrupt, UnavailableError)):
                PgVectorIndex.build(database, table, VECTORS[:9], overwrite=overwrite)
        assert seen.pop() == tables(sql) == before
        if not overwrite:
            PgVectorIndex.build(database, table, VECTORS).close()
            before = tables(sql)
            assert {table, f"{table}_id"} <= before
    with PgVectorIndex.open(database, table) as index:
        assert len(index) == 40


@pytest.mark.parametrize("name", ['a"; DROP TABLE x; --', "Ä {} % 'é", "select", "x" * 57])
def test_any_name_is_quoted(database: str, sql: Sql, name: str) -> None:
    sql("CREATE TABLE IF NOT EXISTS x (id int)")
    with PgVectorIndex.build(database, name, VECTORS, approximate="hnsw") as index:
        assert np.array_equal(index.search(QUERIES)[0], ExactIndex(VECTORS).search(QUERIES)[0])
        index.verify()
    assert sql("SELECT count(*) FROM {}", name) == [(40,)]
    assert sql("SELECT count(*) FROM x") == [(0,)]


def test_a_schema_can_be_named(database: str, sql: Sql) -> None:
    sql('CREATE SCHEMA "my schema"')
    for overwrite in (False, True):
        with PgVectorIndex.build(database, "my schema.v", VECTORS, approximate="hnsw", overwrite=overwrite) as index:
            assert len(index) == 40
    with PgVectorIndex.open(database, "my schema.v") as index:
        assert index.search(QUERIES, k=1)[0].shape == (5, 1)
    with pytest.raises(InputError):
        PgVectorIndex.open(database, "v")
    with pytest.raises(UnavailableError, match="nowhere"):
        PgVectorIndex.build(database, "nowhere.v", VECTORS)


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a.b.c", "x" * 58, "é" * 29, "a\0b"])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name"):
        PgVectorIndex.open("host=nowhere", name)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"precision": "int8"}, "fp32 or fp16; found 'int8'"),
        ({"approximate": "ivfflat"}, "'hnsw'; found 'ivfflat'"),
        ({"candidates": 50}, "exact index has no candidates"),
        ({"candidates": 1001, "approximate": "hnsw"}, "at most 1,000"),
        ({"width": 16_001}, "at most 16,000"),
        ({"width": 2001, "approximate": "hnsw"}, "2,000 components in fp32; these have 2,001.*store them as fp16"),
        ({"width": 4001, "approximate": "hnsw"}, "have 4,001. To mend it: build an exact index"),
        ({"width": 4001, "approximate": "hnsw", "precision": "fp16"}, "4,000 components in fp16"),
    ],
)
def test_what_pgvector_cannot_do_is_refused_before_connecting(options: dict[str, Any], match: str) -> None:
    vectors = np.zeros((2, options.pop("width", 6)), np.float32)
    with pytest.raises(ConfigError, match=match):
        PgVectorIndex.build("host=nowhere", "table", vectors, **options)


def test_pgvectors_limits_are_those_refused(database: str, table: str) -> None:
    for precision, width in (("fp32", 2000), ("fp16", 4000)):
        with PgVectorIndex.build(
            database, table, unit_vectors(3, width), approximate="hnsw", precision=precision, overwrite=True
        ) as index:
            assert index.width == width


def test_vectors_that_cannot_be_stored_are_refused(database: str, table: str, sql: Sql) -> None:
    vectors = VECTORS.copy()
    vectors[3, 3] = 70_000
    with pytest.raises(InputError, match="65,504"):
        PgVectorIndex.build(database, table, vectors, precision="fp16")
    vectors[3, 3] = np.nan
    with pytest.raises(InputError, match="vector 3"):
        PgVectorIndex.build(database, table, VectorStore(vectors, max_norm=1.0))
    with pytest.raises(InputError, match="fp32"):
        PgVectorIndex.build(database, table, VectorStore(VECTORS.astype(np.float16)))
    assert table not in tables(sql)


# Servers


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(UnavailableError, match=r"cannot be reached.*No such file") as raised:
        PgVectorIndex.open(f"host={tmp_path} user=me password=secret dbname=names", "table")
    assert "secret" not in str(raised.value)


def test_a_statement_that_takes_longer_than_the_server_allows(database: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with (
        psycopg.connect(database, options="-c statement_timeout=20") as connection,
        pytest.raises(UnavailableError, match=r"broke a statement off \(.*timeout\).*raise statement_timeout"),
        pgvector_server.in_words(),
    ):
        connection.execute("SELECT pg_sleep(20)")


def test_an_unreadable_connection_string() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(ConfigError, match="postgresql://") as raised:
        PgVectorIndex.open("secret", "table")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("package", ["psycopg", "pgvector"])
def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.psycopg", None)
    with pytest.raises(UnavailableError, match=r"onoma\[pgvector\]"):
        PgVectorIndex.open("host=nowhere", "table")


def test_a_database_without_the_extension(database: str, sql: Sql) -> None:
    sql("CREATE DATABASE bare")
    with pytest.raises(UnavailableError, match=r"'bare' does not have .*: CREATE EXTENSION vector\."):
        PgVectorIndex.build(database.replace("dbname=postgres", "dbname=bare"), "table", VECTORS)


def with_extension_in(schema: LiteralString, name: str, database: str, sql: Sql) -> str:
    """The connection string of a new database whose extension lies in a schema that is not searched."""
    import psycopg

    sql(f"CREATE DATABASE {name}")
    made = database.replace("dbname=postgres", f"dbname={name}")
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{schema}"')
        connection.execute(f'CREATE EXTENSION vector SCHEMA "{schema}"')
    return made


def test_an_extension_in_a_schema_of_its_own(database: str, sql: Sql) -> None:
    elsewhere = with_extension_in("an extension", "apart", database, sql)
    sql("ALTER DATABASE apart SET search_path = ''")
    with PgVectorIndex.build(elsewhere, "public.vectors", VECTORS, approximate="hnsw") as index:
        assert np.array_equal(index.search(QUERIES)[0], ExactIndex(VECTORS).search(QUERIES)[0])


def test_nothing_is_set_for_longer_than_a_transaction(database: str, sql: Sql) -> None:
    """A pooler such as PgBouncer gives each transaction another connection of the server, and this one to others."""
    pooled = with_extension_in("extensions", "pooled", database, sql)
    PgVectorIndex.build(pooled, "vectors", VECTORS, approximate="hnsw").close()
    with PgVectorIndex.open(pooled, "vectors") as index:
        connection = index._session.connection()
        assert connection.execute("SHOW search_path").fetchone() == ('"$user", public',)
        connection.execute("DISCARD ALL")
        assert np.array_equal(index.search(QUERIES)[0], ExactIndex(VECTORS).search(QUERIES)[0])
        assert np.array_equal(index.take(np.array([3, 1])), VECTORS[[3, 1]])
        index.verify()
        assert connection.execute("SHOW search_path").fetchone() == ('"$user", public',)
    sql("CREATE ROLE outsider LOGIN")
    with pytest.raises(UnavailableError, match=r"'outsider' may not use the schema 'extensions'.*GRANT USAGE"):
        PgVectorIndex.open(pooled.replace("user=onoma", "user=outsider"), "vectors")


def test_an_old_pgvector(database: str, sql: Sql) -> None:
    import psycopg

    sql("CREATE DATABASE old")
    old = database.replace("dbname=postgres", "dbname=old")
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("ALTER TYPE halfvec RENAME TO not_yet")
        connection.execute("UPDATE pg_am SET amname = 'not yet' WHERE amname = 'hnsw'")
    with pytest.raises(UnavailableError, match=r"has pgvector [\d.]+; vectors in half precision \(fp16\) needs 0\.7"):
        PgVectorIndex.build(old, "vectors", VECTORS, precision="fp16")
    with pytest.raises(UnavailableError, match=r"HNSW needs 0\.5"):
        PgVectorIndex.build(old, "vectors", VECTORS, approximate="hnsw")
    PgVectorIndex.build(old, "vectors", VECTORS).close()


def test_a_user_who_may_not_write(database: str, table: str, sql: Sql) -> None:
    sql("CREATE ROLE reader LOGIN")
    reader = database.replace("user=onoma", "user=reader")
    with pytest.raises(UnavailableError, match=r"does not allow it .*permission denied"):
        PgVectorIndex.build(reader, table, VECTORS)
    PgVectorIndex.build(database, table, VECTORS).close()
    sql("GRANT SELECT ON {} TO reader", table)
    with PgVectorIndex.open(reader, table) as index:
        assert index.search(QUERIES)[0].shape == (5, 5)


def test_a_full_disk_of_the_server_is_told_as_such(
    database: str, table: str, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(connection: Any, *_: object, **__: object) -> None:
        connection.execute("DO $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$")

    monkeypatch.setattr(pgvector, "write_graph", full)
    with pytest.raises(UnavailableError, match=r"short of disk or memory \(No space left on device\)\. Make room"):
        PgVectorIndex.build(database, table, VECTORS, approximate="hnsw")
    with pytest.raises(InputError, match="there is no table"):
        PgVectorIndex.open(database, table)


def test_a_lost_connection_is_opened_again(
    database: str, table: str, sql: Sql, capfd: pytest.CaptureFixture[str]
) -> None:
    with PgVectorIndex.build(database, table, VECTORS) as index:
        expected = index.search(QUERIES)
        process = index._session.connection().info.backend_pid
        sql(f"SELECT pg_terminate_backend({process})")
        found = index.search(QUERIES)
        assert index._session.connection().info.backend_pid != process
        index.close()
        again = index.search(QUERIES)
        sql(f"SELECT pg_terminate_backend({index._session.connection().info.backend_pid})")
        index.verify()
    assert capfd.readouterr().err == ""  # psycopg's log has the user's name
    assert found[0].tobytes() == again[0].tobytes() == expected[0].tobytes()


def test_a_forked_process_has_a_connection_of_its_own(
    database: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PgVectorIndex.build(database, table, VECTORS)
    parents = index._session.connection()
    expected = index.search(QUERIES)[0]
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        assert np.array_equal(index.search(QUERIES)[0], expected)
        assert index._session.connection() is not parents
        index.close()
    assert not parents.closed
    parents.close()


def test_an_index_that_is_dropped_gives_its_connection_back(database: str, table: str) -> None:
    index = PgVectorIndex.build(database, table, VECTORS)
    connection = index._session.connection()
    del index
    assert connection.closed


def test_a_table_of_another_schema_is_neither_replaced_nor_in_the_way(database: str, table: str, sql: Sql) -> None:
    PgVectorIndex.build(database, table, VECTORS).close()
    sql("CREATE SCHEMA {}", "onoma_own")
    own = with_options(database, r"-c search_path=onoma_own")
    for overwrite in (False, True):
        PgVectorIndex.build(own, table, VECTORS[:9], overwrite=overwrite).close()
        with PgVectorIndex.open(database, table) as index:
            assert len(index) == 40
        with PgVectorIndex.open(own, table) as index:
            assert len(index) == 9
    sql("DROP SCHEMA {} CASCADE", "onoma_own")


def test_a_search_path_without_a_schema_is_refused(database: str, table: str) -> None:
    mistaken = with_options(database, "-c search_path=pubic")
    with pytest.raises(ConfigError, match=r"none of the search path \(pubic\) exists"):
        PgVectorIndex.build(mistaken, table, VECTORS)
    with pytest.raises(ConfigError, match="no schema to make a table in"):
        prepare_table(mistaken, stem="x", kind="pgvector", precision="fp32", width=6)


def test_a_schema_that_no_folder_could_name_is_refused_at_once(database: str, sql: Sql) -> None:
    sql('CREATE SCHEMA "jane.doe"')
    named = with_options(database, '-c search_path="jane.doe"')
    with pytest.raises(ConfigError, match="without further dots"):
        prepare_table(named, stem="x", kind="pgvector", precision="fp32", width=6)
    sql('DROP SCHEMA "jane.doe"')


@pytest.mark.parametrize("setting", ["enable_seqscan=off", "enable_sort=off", "enable_indexscan=off"])
def test_what_a_role_prefers_does_not_matter(setting: str, database: str, table: str) -> None:
    vectors, queries = unit_vectors(3000, 24), unit_vectors(20, 24, seed=1)
    PgVectorIndex.build(database, table, vectors, approximate="hnsw", queries=queries[:2]).close()
    with PgVectorIndex.open(with_options(database, f"-c {setting}"), table) as index:
        found = index.search(queries, k=200)  # of which the graph is not asked
        assert np.array_equal(found[0], ExactIndex(vectors).search(queries, k=200)[0])
        assert index.search(queries, k=5)[0].shape == (20, 5)


def test_a_database_without_an_encoding(database: str, sql: Sql) -> None:
    sql("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    import psycopg

    plain = psycopg.conninfo.make_conninfo(database, dbname="plain")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    with PgVectorIndex.build(plain, "väctors", VECTORS) as index:
        assert np.array_equal(index.search(QUERIES, k=3)[0], ExactIndex(VECTORS).search(QUERIES, k=3)[0])
    sql("DROP DATABASE plain WITH (FORCE)")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_forked_while_another_thread_searches_has_its_turn(database: str, table: str) -> None:
    index = PgVectorIndex.build(database, table, VECTORS)
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with index._session.lock:
            taken.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that several threads are there
        child = os.fork()
    if not child:
        signal.alarm(30)
        code = 1
        try:
            code = int(len(index.search(QUERIES, k=1)[0]) != len(QUERIES))
        finally:
            os._exit(code)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    index.close()


def test_the_server_of_the_tests_says_why_it_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    with pytest.raises(NoServerError, match="initdb is not here"), private_server():
        pass
    (tmp_path / "initdb").touch()
    settings = tmp_path / "pg_config"
    settings.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    settings.chmod(0o755)
    with pytest.raises(NoServerError, match="without pgvector"), private_server():
        pass
    (tmp_path / "extension").mkdir()
    (tmp_path / "extension" / "vector.control").touch()
    with pytest.raises(NoServerError, match="initdb cannot be run"), private_server():
        pass  # it is no program


def test_the_benchmark_measures_each_way_of_searching(database: str, sql: Sql) -> None:
    import postgresql  # not above: it wants the extra

    vectors = unit_vectors(60, 8)
    lines = list(postgresql.measure(database, vectors[:50], vectors[50:]))
    sql("DROP TABLE {}", postgresql.TABLE)
    names = [line.index for line in lines]
    assert [names[0], names[1], names[6]] == ["exact, in this process", "pgvector fp32, exact", "pgvector fp16, exact"]
    assert len(set(names)) == 11
    assert all(line.recall_at_10 > 0.95 for line in lines)
    assert all(line.recall_at_10 == 1 for line in lines if "fp16" not in line.index)


def test_names_in_messages() -> None:
    assert str(pgvector_server.TableName.parse("a.b")) == "a.b"
    assert str(pgvector_server.TableName.parse("b")) == "b"
