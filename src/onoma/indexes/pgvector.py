"""Search in a table of PostgreSQL, with the extension pgvector.

The server finds candidates, by comparing all vectors with the query or by walking an HNSW graph (Malkov and Yashunin
2018); it sends the vectors of those that can be among the best, and they are scored here, as every index scores
(`onoma.indexes.scoring`). So scores and order are the same as those of the other indexes, whatever processor the server
has and however it sums.

Comparing all is exact. The server's products are rounded: rows within the bound of that error of the k-th best are sent
too, and more are asked for until none can be missing. The graph is approximate, and is
drawn at random by pgvector, whose generator has no seed: one table gives one answer, but two tables built of the same
vectors can miss different rows. Its recall is measured when it is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np

from onoma.errors import InputError, MismatchError
from onoma.indexes.candidate_search import EXHAUSTIVE_SHARE
from onoma.indexes.pgvector_limits import COLUMN_TYPES, MOST_CANDIDATES, check_candidate_number, check_choices
from onoma.indexes.pgvector_server import (
    Session,
    TableName,
    check_server,
    connect,
    in_words,
    schema_to_write,
    seeing_extension,
)
from onoma.indexes.pgvector_tables import (
    PgVectorRecord,
    read_fingerprint,
    read_record,
    write_graph,
    write_record,
    write_vectors,
    writing,
)
from onoma.indexes.recall import measure_recall
from onoma.indexes.scoring import best_rows, check_queries, rounding_slack
from onoma.indexes.vector_store import VectorStore
from onoma.types import FloatArray, RowArray

if TYPE_CHECKING:
    from psycopg import sql

    from onoma.indexes.pgvector_server import Connection

CANDIDATES = 256
"""Default number of rows that the graph is asked for."""
CANDIDATES_PER_RESULT = 8
"""Where many results are wanted, so many candidates for each of them."""

_SPARE = 32
"""Rows that are asked for beyond twice the k best, since several can be equally good."""
_QUERIES_AT_ONCE = 64

_Candidates = tuple[RowArray, FloatArray]
_Answer = TypeVar("_Answer")


class PgVectorIndex:
    """Nearest rows, found by a PostgreSQL server.

    Made by `build` or `open`. Holds one connection, which is opened again if it breaks or if the process is forked;
    threads take turns. Close it, or use it in a ``with`` block.

    Example:
        >>> index = PgVectorIndex.build("postgresql:///names", "mondo", vectors)  # doctest: +SKIP
        >>> rows, scores = index.search(queries, k=5)  # doctest: +SKIP
    """

    def __init__(
        self, connection: Connection, connection_string: str, name: TableName, record: PgVectorRecord, number: int
    ) -> None:
        self.record = record
        """What the table says about itself."""
        self._name, self._number, self._n_candidates = name, number, record.candidates
        self._session = Session(connection_string, connection)

    @classmethod
    def build(
        cls,
        connection_string: str,
        table: str,
        vectors: FloatArray | VectorStore,
        *,
        approximate: Literal["hnsw"] | None = None,
        precision: str = "fp32",
        candidates: int | None = None,
        queries: FloatArray | None = None,
        overwrite: bool = False,
    ) -> PgVectorIndex:
        """Write vectors into a new table, index them, and measure how well they are found.

        All in one transaction: until it is over, and if it fails, the database is as it was.

        Args:
            connection_string: A URL (``postgresql://user@host:5432/database``) or settings
                (``host=... dbname=...``), as libpq reads them. How much memory the server takes to build a graph is its
                setting ``maintenance_work_mem``; ``options='-c maintenance_work_mem=2GB'`` sets it here.
            table: Its name, with or without a schema (``schema.table``).
            vectors: Shape (N, W), single precision.
            approximate: "hnsw": by a graph. Unset: all vectors are compared, which is exact.
            precision: What the vectors are stored in: "fp32" or "fp16".
            candidates: Rows that the graph is asked for, at most 1,000; only with a graph. Unset: `CANDIDATES`.
            queries: Vectors of texts that are not in the index, to measure recall with; unset: see `measure_recall`.
                Nothing is measured where all vectors are compared as they were given.
            overwrite: Replace a table that Onoma wrote.

        Raises:
            ConfigError: an option has a value it cannot have, the vectors are too wide for the server, or the
                connection string cannot be read.
            InputError: a vector is not finite, or the vectors are not in single precision.
            ShapeError: ``vectors`` is no matrix or has no columns.
            ArtifactExistsError: the name is taken.
            UnavailableError: a package, the server or its extension is missing, or the server refuses.
        """
        name = TableName.parse(table)
        store = vectors if isinstance(vectors, VectorStore) else VectorStore(vectors)
        if store.precision != "fp32":
            raise InputError("vectors of the wrong type", field="vectors", expected="fp32", found=store.precision)
        stored_as = check_choices(store.width, approximate, precision, candidates)
        connection = connect(connection_string)
        index: PgVectorIndex | None = None
        try:
            with in_words():
                check_server(connection, half=stored_as == "fp16", graph=approximate is not None)
                if name.schema is None:  # or one of that name in another schema of the search path would be meant
                    name = TableName(schema_to_write(connection), name.table)
                with writing(connection, name, overwrite=overwrite) as aside:
                    record = write_vectors(connection, aside, store, precision=stored_as)
                    if approximate is not None:
                        write_graph(connection, aside, precision=stored_as)
                        record = record.model_copy(
                            update={"approximate": approximate, "candidates": candidates or CANDIDATES}
                        )
                    write_record(connection, aside, record)
                    index = cls(connection, connection_string, aside, *read_record(connection, aside))
                    if approximate is not None or stored_as != "fp32":
                        recall = measure_recall(index, store, queries=queries)
                        index.record = record.model_copy(update={"recall": recall})
                        write_record(connection, aside, index.record)
            index._name = name
        except BaseException:
            connection.close()
            raise
        return index

    @classmethod
    def open(
        cls,
        connection_string: str,
        table: str,
        *,
        width: int | None = None,
        fingerprint: str | None = None,
        candidates: int | None = None,
    ) -> PgVectorIndex:
        """What `build` wrote; only what the table says about itself is read.

        Args:
            connection_string: See `build`.
            table: Its name.
            width: What the vectors' width must be.
            fingerprint: What the vectors' fingerprint must be (``index.record.fingerprint`` of the one that was built).
            candidates: Rows that the graph is asked for; unset: as many as when its recall was measured.

        Raises:
            InputError: there is no such table.
            ArtifactError: the table is something else, damaged, or written by a newer Onoma.
            MismatchError: it has other vectors than it must.
            ConfigError: the name or the connection string cannot be one, or the candidates are too many, or of no use.
            UnavailableError: a package, the server or its extension is missing, or the server refuses.
        """
        name = TableName.parse(table)
        connection = connect(connection_string)
        try:
            with in_words(), seeing_extension(connection):
                record, number = read_record(connection, name)
            check_candidate_number(candidates, approximate=record.approximate)
            for what, wanted, found in (
                ("width", width, record.width),
                ("fingerprint", fingerprint, record.fingerprint),
            ):
                if wanted not in (None, found):
                    raise MismatchError(
                        f"The vectors in the table '{name}' have the {what} {found!s:.12}, where {wanted!s:.12} is "
                        "needed: they are of another encoder, terminology or build. Build the index again, or name "
                        "the right table."
                    )
        except BaseException:
            connection.close()
            raise
        index = cls(connection, connection_string, name, record, number)
        index._n_candidates = candidates or record.candidates
        return index

    @property
    def width(self) -> int:
        """Components of a vector."""
        return self.record.width

    @property
    def max_norm(self) -> float:
        """Bound of the lengths of the stored vectors."""
        return self.record.max_norm

    @property
    def vectors(self) -> Self:
        """See `StoredIndex.vectors`."""
        return self

    @property
    def is_approximate(self) -> bool:
        """See `Index.is_approximate`."""
        return self.record.approximate is not None

    def __len__(self) -> int:
        return self.record.n_vectors

    def search(self, queries: FloatArray, *, k: int = 5) -> tuple[RowArray, FloatArray]:
        """The ``k`` best rows of each query, or of its candidates; see `Index.search`.

        Raises:
            ShapeError: the queries have another width, or are no matrix.
            InputError: a query is not finite or too large, or ``k`` is less than 1.
            MismatchError: the table has been replaced or removed since it was opened.
            UnavailableError: the server cannot be reached, or refuses.
        """
        queries, k = check_queries(queries, width=self.width, max_norm=self.record.max_norm, k=k)
        k = min(k, len(self))
        rows = np.empty((len(queries), k), np.int64)
        scores = np.empty((len(queries), k), np.float32)
        if k == 0:
            return rows, scores
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            tile = queries[start : start + _QUERIES_AT_ONCE]
            for position, (ids, vectors) in enumerate(self._candidates(tile, k), start):
                order = np.argsort(ids)
                store = VectorStore(vectors[order], max_norm=self.record.max_norm)
                best, scores[position] = best_rows(store, queries[position], np.arange(len(ids)), k)
                rows[position] = ids[order[best]]
        return rows, scores

    def take(self, rows: RowArray) -> FloatArray:
        """Vectors of these rows, shape (n, W), as they are stored.

        Raises:
            InputError: there is no such row.
            MismatchError: the table has been replaced or removed since it was opened.
            UnavailableError: the server cannot be reached, or refuses.
        """
        rows = np.asarray(rows, np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise InputError("there is no such row", field="rows", expected=f"whole numbers from 0 to {len(self) - 1}")
        wanted, places = np.unique(rows, return_inverse=True)
        statement = self._sql("SELECT tableoid::bigint, id, embedding::vector FROM {table} WHERE id = ANY(%(rows)s)")
        ((ids, vectors),) = self._asked(
            lambda connection: self._ask(connection, statement, [{"rows": wanted.tolist()}])
        )
        if len(ids) != len(wanted):
            raise self._changed()
        return vectors[np.argsort(ids)][places]

    def verify(self) -> None:
        """Read all vectors and compare them with the fingerprint that was taken when they were written.

        Raises:
            MismatchError: they are others.
            UnavailableError: the server cannot be reached, or refuses.
        """
        found = self._asked(lambda connection: read_fingerprint(connection, self._name, self.record))
        if found != self.record.fingerprint:
            raise MismatchError(
                f"The table '{self._name}' does not hold the vectors that were written: rows were changed, added or "
                "removed. Build the index again."
            )

    def close(self) -> None:
        """Give the connection back; a later search opens it again."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _candidates(self, queries: FloatArray, k: int) -> list[_Candidates]:
        """Rows, and their vectors, that can be among the ``k`` best of each query."""
        found: dict[int, _Candidates] = {}
        missing = list(range(len(queries)))
        by_graph = self._n_by_graph(k)
        if by_graph is not None:
            found.update(enumerate(self._nearest(queries, k, by_graph, by_graph=True)))
            # The graph of pgvector can lead to fewer rows than were asked for.
            missing = [place for place in missing if len(found[place][0]) < k]
        n_rows = min(2 * k + _SPARE, len(self))
        while missing:
            found.update(zip(missing, self._nearest(queries[missing], k, n_rows, by_graph=False), strict=True))
            # If every row that was asked for is as good as the k-th best, there may be more of them.
            missing = [place for place in missing if len(found[place][0]) == n_rows < len(self)]
            n_rows = min(4 * n_rows, len(self))
        if any(len(found[place][0]) < k for place in found):
            raise self._changed()
        return [found[place] for place in range(len(queries))]

    def _n_by_graph(self, k: int) -> int | None:
        """How many rows to ask the graph for; ``None``: all rows are compared."""
        if self._n_candidates is None:
            return None
        wanted = max(self._n_candidates, CANDIDATES_PER_RESULT * k)
        return None if wanted > MOST_CANDIDATES or wanted * EXHAUSTIVE_SHARE >= len(self) else wanted

    def _nearest(self, queries: FloatArray, k: int, n_rows: int, *, by_graph: bool) -> list[_Candidates]:
        """Of the ``n_rows`` nearest rows of each query, by the server's products, those as good as the k-th."""
        statement = self._sql(
            "WITH near AS MATERIALIZED "
            "(SELECT tableoid::bigint AS number, id, embedding, embedding <#> %(direction)s::{type} AS distance "
            "FROM {table} ORDER BY distance LIMIT %(n_rows)s) "
            "SELECT number, id, embedding::vector FROM near WHERE distance <= %(slack)s::float8 + "
            "(SELECT distance FROM near ORDER BY distance OFFSET %(last)s LIMIT 1)"
        )
        parameters: list[dict[str, Any]] = []
        for query in queries:
            direction, slack = self._direction(query)
            parameters.append({"direction": direction, "slack": slack, "n_rows": n_rows, "last": min(k, n_rows) - 1})
        # All of them, whatever is set for the role or the database.
        graph, scan = ("on", "off") if by_graph else ("off", "on")
        settings = {"jit": "off", "enable_indexscan": graph, "enable_seqscan": scan, "enable_sort": scan}
        if by_graph:
            settings["hnsw.ef_search"] = str(n_rows)
        return self._asked(lambda connection: self._ask(connection, statement, parameters, settings))

    def _direction(self, query: FloatArray) -> tuple[FloatArray, float]:
        """What the server multiplies the vectors with, and by how much its products can mislead."""
        if self.record.precision == "fp32":
            return query, rounding_slack(query, max_norm=self.record.max_norm)
        # Both sides are in half precision. Scaled by a power of two, which changes no order, no component is too large.
        _, exponent = np.frexp(np.abs(query).max())
        scaled = np.ldexp(query, -exponent)
        direction = scaled.astype(np.float16).astype(np.float32)
        rounded_off = float(np.linalg.norm(scaled.astype(np.float64) - direction))
        longer = np.maximum(np.abs(scaled), np.abs(direction))
        slack = rounding_slack(longer, max_norm=self.record.max_norm)
        return direction, slack + 2 * rounded_off * self.record.max_norm

    def _asked(self, ask: Callable[[Connection], _Answer]) -> _Answer:
        """What is asked with the connection; one that has broken, as the server was started again, is opened anew."""
        import psycopg

        with self._session.lock, in_words():
            connection = self._session.connection()
            try:
                try:
                    return ask(connection)
                except psycopg.OperationalError:
                    if not connection.closed:
                        raise
                    return ask(self._session.connection())
            except psycopg.errors.UndefinedTable:
                raise self._changed() from None

    def _ask(
        self,
        connection: Connection,
        statement: sql.Composed,
        parameters: list[dict[str, Any]],
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> list[_Candidates]:
        """Rows and vectors that a statement gives, once for each set of parameters."""
        with connection.pipeline(), seeing_extension(connection):  # all are sent before the first answer is waited for
            for setting, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, true)", (setting, value))
            cursors = [connection.execute(statement, one, binary=True) for one in parameters]
            answers = [cursor.fetchall() for cursor in cursors]
        found = []
        for answer in answers:
            if any(number != self._number or not 0 <= row < len(self) for number, row, _ in answer):
                raise self._changed()
            ids = np.array([row for _, row, _ in answer], np.int64)
            vectors = np.empty((len(answer), self.width), np.float32)
            for place, (_, _, vector) in enumerate(answer):
                vectors[place] = vector.to_numpy()
            found.append((ids, vectors))
        return found

    def _sql(self, statement: str) -> sql.Composed:
        """A statement with parameters, and with the table for ``{table}`` and its type of vectors for ``{type}``."""
        from psycopg import sql

        kind = sql.SQL(COLUMN_TYPES[self.record.precision])
        return sql.SQL(statement).format(table=self._name.quoted_beside_parameters, type=kind)

    def _changed(self) -> MismatchError:
        return MismatchError(
            f"The table '{self._name}' is not the one that was opened: it has been replaced, changed or removed. Open "
            "the index again, on the command line by the same command: it may have been updated meanwhile. If that is "
            "refused too, build it again."
        )
