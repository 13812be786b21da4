"""Run a benchmark with an encoder or a linker and write down what came out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from onoma.artifacts import ensure_writable, sha256_file, write_artifact
from onoma.benchmarks.biosyn import DictionaryLine, Query
from onoma.benchmarks.candidates import Candidates, equal_lines, linked_concepts, nearest_lines
from onoma.benchmarks.metrics import accuracy_at, composite_rank, first_hit_rank
from onoma.benchmarks.results import BenchmarkResult, versions_in_use
from onoma.benchmarks.tasks import BenchmarkTask, get_task
from onoma.encoders import Encoder, open_encoder
from onoma.errors import InputError
from onoma.linking import Linker

Progress = Callable[[int, int], None]


def run_benchmark(
    task: str | BenchmarkTask,
    data: str | Path,
    *,
    out: str | Path,
    encoder: str | Path | Encoder | None = None,
    linker: str | Path | Linker | None = None,
    split: str | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BenchmarkResult:
    """Measure an encoder by the published protocol, or a linker on the same queries.

    An encoder ranks the lines of the task's dictionary. A linker ranks the concepts of its own terminology,
    which is another protocol: never compare the two.

    Args:
        task: A name from `TASKS`, or a declaration.
        data: Folder with the task's files, possibly gzipped, directly or below ``biosyn/`` (or the task's name).
        out: Folder to write ``results.json`` and ``predictions.parquet`` to (artefact kind "benchmark-results").
        encoder: Encoder, or what `open_encoder` takes.
        linker: Linker, or its folder. Exactly one of encoder and linker is given.
        split: One of the task's; unset: the one to report.
        seed: Of the confidence intervals.
        overwrite: Replace earlier results at ``out``.
        progress: Called with names encoded so far and in all.

    Raises:
        InputError: files are missing or have bad lines, or the linker's terminology has none of the gold ids.
        ArtifactExistsError: ``out`` is taken.
    """
    declared = get_task(task) if isinstance(task, str) else task
    ensure_writable(out, "benchmark-results", overwrite=overwrite)
    started = time.perf_counter()
    chosen = declared.split(split)
    queries, files = declared.queries(Path(data), chosen)
    k = max(declared.cutoffs)
    if encoder is not None and linker is None:
        opened = open_encoder(encoder) if isinstance(encoder, str | Path) else encoder
        dictionary, dictionary_files = declared.dictionary(Path(data), chosen)
        files = list(dict.fromkeys([*files, *dictionary_files]))
        ranking = _rank_with_encoder(opened, dictionary, queries, k=k, progress=progress)
        protocol, tie_rule = declared.protocol, declared.tie_rule
    elif linker is not None and encoder is None:
        linking = Linker.open(linker) if isinstance(linker, str | Path) else linker
        ranking = _rank_with_linker(linking, queries, k=k)
        protocol, tie_rule = declared.linker_protocol, declared.linker_tie_rule
    else:
        raise InputError("give exactly one of encoder and linker")
    ranks, exact_ranks = query_ranks(queries, ranking.found), query_ranks(queries, ranking.exact)
    result = BenchmarkResult(
        task=declared.name,
        split=chosen,
        protocol=protocol,
        tie_rule=tie_rule,
        accuracy={k: accuracy_at(ranks, k, seed=seed) for k in declared.cutoffs},
        exact_match={k: accuracy_at(exact_ranks, k, seed=seed) for k in declared.cutoffs},
        n_queries=len(queries),
        n_dictionary=ranking.n_dictionary,
        coverage=sum(not ranking.known_ids.isdisjoint(query.gold) for query in queries) / len(queries),
        model=ranking.model,
        seed=seed,
        versions=versions_in_use(),
        data={file.name: {"sha256": sha256_file(file), "bytes": file.stat().st_size} for file in files},
        seconds=round(time.perf_counter() - started, 3),
        path=Path(out),
    )
    _write(result, predictions_table(queries, ranking.found, ranking.exact), overwrite=overwrite)
    return result


@dataclass(frozen=True)
class _Ranking:
    """Candidates of every part of every query, and what they were chosen from."""

    found: Candidates
    exact: Candidates
    known_ids: set[str]
    n_dictionary: int
    model: dict[str, str]


def _rank_with_encoder(
    encoder: Encoder,
    dictionary: Sequence[DictionaryLine],
    queries: Sequence[Query],
    *,
    k: int,
    progress: Progress | None,
) -> _Ranking:
    texts = _distinct_parts(queries)
    return _Ranking(
        found=nearest_lines(encoder, dictionary, texts, k=k, progress=progress),
        exact=equal_lines(dictionary, texts, k=k, normalisation=encoder.folder.normalisation),
        known_ids={concept_id for line in dictionary for concept_id in line.ids},
        n_dictionary=len(dictionary),
        model={"kind": "encoder", "name": encoder.name, "fingerprint": encoder.fingerprint},
    )


def _rank_with_linker(linker: Linker, queries: Sequence[Query], *, k: int) -> _Ranking:
    known = {part for concept_id in linker.concept_ids for part in concept_id.split("|")}
    _require_common_ids(queries, known, linker)
    texts = _distinct_parts(queries)
    return _Ranking(
        found=linked_concepts(linker, texts, k=k),
        exact=linked_concepts(linker.exact_matcher(), texts, k=k),
        known_ids=known,
        n_dictionary=linker.n_texts,
        model={"kind": "linker", "name": linker.encoder.name, "fingerprint": linker.fingerprint},
    )


def _distinct_parts(queries: Sequence[Query]) -> list[str]:
    return list(dict.fromkeys(part for query in queries for part in query.parts))


def query_ranks(queries: Sequence[Query], found: Candidates) -> list[int | None]:
    """For each query, the smallest k at which all its parts are right; ``None`` where there is none."""
    return [
        composite_rank([first_hit_rank([c.ids for c in found[part]], query.gold) for part in query.parts])
        for query in queries
    ]


def predictions_table(queries: Sequence[Query], found: Candidates, exact: Candidates) -> pl.DataFrame:
    """One row per part of a query, for the analysis of errors.

    Columns: ``query`` (position in the file), ``mention`` (whole text), ``part``, ``gold`` (ids),
    ``candidate_ids`` (joined with ``|``), ``candidate_names`` and ``scores`` (best first), ``part_rank``,
    ``query_rank`` (null where nothing is right), ``exact_rank`` (of the query, exact match alone).
    """
    ranks, exact_ranks = query_ranks(queries, found), query_ranks(queries, exact)
    rows = [
        (
            position,
            query.text,
            part,
            sorted(query.gold),
            ["|".join(candidate.ids) for candidate in found[part]],
            [candidate.name for candidate in found[part]],
            [candidate.score for candidate in found[part]],
            first_hit_rank([candidate.ids for candidate in found[part]], query.gold),
            ranks[position],
            exact_ranks[position],
        )
        for position, query in enumerate(queries)
        for part in query.parts
    ]
    return pl.DataFrame(
        rows,
        orient="row",
        schema={
            "query": pl.UInt32,
            "mention": pl.String,
            "part": pl.String,
            "gold": pl.List(pl.String),
            "candidate_ids": pl.List(pl.String),
            "candidate_names": pl.List(pl.String),
            "scores": pl.List(pl.Float32),
            "part_rank": pl.UInt32,
            "query_rank": pl.UInt32,
            "exact_rank": pl.UInt32,
        },
    )


def _write(result: BenchmarkResult, predictions: pl.DataFrame, *, overwrite: bool) -> None:
    with write_artifact(
        result.path,
        "benchmark-results",
        config={"task": result.task, "split": result.split, "model": dict(result.model)},
        seed=result.seed,
        overwrite=overwrite,
    ) as folder:
        text = json.dumps(result.as_json(), indent=1, ensure_ascii=False)
        (folder / "results.json").write_text(text + "\n", encoding="utf-8")
        predictions.write_parquet(folder / "predictions.parquet")


def _require_common_ids(queries: Sequence[Query], known: set[str], linker: Linker) -> None:
    gold = {concept_id for query in queries for concept_id in query.gold}
    if known.isdisjoint(gold):
        raise InputError(
            "the linker's terminology has none of the benchmark's concepts: their codes are of another kind",
            path=linker.path,
            expected=f"codes such as {', '.join(sorted(gold)[:3])}",
            found=", ".join(sorted(known)[:3]),
            fix="build the linker from a terminology with the benchmark's codes, e.g. from its own dictionary "
            "(onoma terminology import biosyn)",
        )
