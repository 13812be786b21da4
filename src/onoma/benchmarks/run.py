"""Run a benchmark with an encoder, a baseline or a linker and write the results."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from onoma.artifacts import ensure_writable, sha256_file, write_artifact
from onoma.benchmarks.abstention import judge_queries, measure_abstention
from onoma.benchmarks.abstention_files import write_abstention
from onoma.benchmarks.biosyn import DictionaryLine, Query
from onoma.benchmarks.candidates import Candidates, all_codes
from onoma.benchmarks.doubts import (
    doubts_of_codes,
    doubts_of_files,
    doubts_of_learning,
    doubts_of_training,
    unknown_codes,
)
from onoma.benchmarks.learned import LearnedMentions
from onoma.benchmarks.metrics import accuracy_at, composite_rank, first_hit_rank, macro_accuracy_at
from onoma.benchmarks.parts import by_group, by_names, check_groups
from onoma.benchmarks.ranking import (
    Ranking,
    ids_of,
    names_asked,
    rank_concepts_with_baseline,
    rank_with_baseline,
    rank_with_encoder,
    rank_with_linker,
    require_common_ids,
    weight_of_ngrams,
)
from onoma.benchmarks.results import (
    PREDICTIONS_NAME,
    BenchmarkResult,
    GroupSplit,
    name_of,
    told_apart,
    versions_in_use,
)
from onoma.benchmarks.tasks import BenchmarkTask, get_task
from onoma.codes import NO_CONCEPT, split_codes
from onoma.encoders import Encoder
from onoma.encoders.model_card import RESULTS_FORMAT, RESULTS_KIND, RESULTS_NAME
from onoma.encoders.opening import as_encoder
from onoma.errors import ConfigError, InputError, check_several, checked_path
from onoma.linking import Asking, Linker
from onoma.linking.baselines import Baseline, get_baseline
from onoma.pairs import MentionFormat
from onoma.pairs.mentions import cased_alike
from onoma.processors import machine
from onoma.terminology import Terminology
from onoma.terminology.terminology import as_terminology
from onoma.types import CountProgress


def run_benchmark(
    task: str | BenchmarkTask,
    data: str | Path,
    *,
    out: str | Path,
    encoder: str | Path | Encoder | None = None,
    linker: str | Path | Linker | None = None,
    baseline: str | Baseline | None = None,
    sparse: bool = False,
    asking: Asking | None = None,
    successors: Terminology | str | Path | None = None,
    learned_from: Iterable[str | Path] = (),
    mention_format: MentionFormat | None = None,
    split: str | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: CountProgress | None = None,
) -> BenchmarkResult:
    """Measure an encoder or a baseline by the published protocol, or a linker on the same queries.

    An encoder or a baseline ranks the lines of the task's dictionary. A linker ranks the concepts of its own
    terminology, which is another protocol: never compare the two. If a linker and a baseline are given, the baseline
    ranks the linker's concepts by the linker's names, for comparison with it. For a calibrated linker, the results also
    say how well it knows when to answer (see `onoma.benchmarks.abstention`).

    Args:
        task: A name from `TASKS`, or a declaration, such as `onoma.benchmarks.own_task` gives.
        data: Folder with the task's files, possibly gzipped, directly or below ``biosyn/`` (or the task's name); for
            `onoma.benchmarks.own_task` the file.
        out: Folder to write ``results.json`` and ``predictions.parquet`` to (artefact kind "benchmark-results").
        encoder: Encoder, or what `open_encoder` takes.
        linker: Linker, or its folder.
        baseline: Baseline, or its name ("exact", "tfidf", "bm25", "fuzzy"). Give one of encoder, linker and baseline,
            or the last two.
        sparse: Add to an encoder's cosine that of character 1-2-grams, times the weight that the encoder has.
        asking: For a linker: stages, filters and expected types in place of its own. What does not pass the filters is
            not a candidate, so coverage falls with it. A baseline over a linker uses only the filters.
        successors: Terminology whose retired codes count as their successors, if queries have such codes.
        learned_from: Files of mentions (as for `onoma.benchmarks.own_task`) that were learned from: queries in them are
            also measured separately from the others.
        mention_format: How the files of ``learned_from`` are written; for ``data``, see `onoma.benchmarks.own_task`.
        split: One of the task's; unset: the one to report.
        seed: Of the confidence intervals.
        overwrite: Replace earlier results at ``out``.
        progress: Called with the numbers of names encoded so far and in all.

    Raises:
        InputError: there is not exactly one thing to measure, files are missing or have bad lines, or the dictionary or
            the linker's terminology has none of the gold ids.
        ConfigError: there is no such benchmark or baseline, or it needs settings; the linker splits composite mentions,
            or looks for short forms and there are no contexts; ``sparse`` is requested for what has no weight of
            n-grams; or the linker does not allow these settings, or any threshold.
        ArtifactExistsError: ``out`` is taken.
    """
    declared = task if isinstance(task, BenchmarkTask) else get_task(task)
    ensure_writable(out, RESULTS_KIND, overwrite=overwrite)
    started = time.perf_counter()
    chosen = declared.split(split)
    queries, files = declared.queries(checked_path(data), chosen)
    check_groups(queries, declared.group, Path(data))
    if not queries:
        raise InputError(f"{declared.name} has no queries to measure on", path=Path(data), field=f"split {chosen}")
    if (encoder is not None) == (linker is not None or baseline is not None):
        raise InputError(
            "give one of encoder, linker and baseline, or a baseline and the linker whose concepts it ranks"
        )
    check_several(learned_from, "learned_from")
    if (linker is None or baseline is not None) and any(query.context is not None for query in queries):
        raise ConfigError("contexts are read by a linker alone: an encoder and a baseline are asked without.")
    if sparse and encoder is None:
        raise ConfigError("n-grams by an encoder's weight are for encoders: a linker and a baseline have their own.")
    if asking is not None and linker is None:
        raise ConfigError("stages, filters and expected types are asked of a linker.")
    if asking is not None and asking.no_concept_below is not None:
        raise ConfigError(
            "a benchmark ranks all answers, whatever their confidence, and measures every threshold: leave "
            "no_concept_below out."
        )
    doubts: list[str] = []
    replaced, terminologies = "", {} if linker is not None else dict(declared.terminologies)
    current: dict[str, str] = {}
    if successors is not None:
        release = as_terminology(successors)
        current = release.successors()
        queries, n_replaced = _with_successors(queries, current)
        terminologies[f"successors: {release.path.name}"] = release.manifest.fingerprint
        replaced = f"; codes that {release.path.name} has retired stand for what has replaced them"
        if n_replaced:
            what = "has a code" if n_replaced == 1 else "have codes"
            doubts += [f"{n_replaced:,} of the queries {what} that {release.path.name} has retired: successors count"]
    learned = None
    if files_learned := [checked_path(file) for file in learned_from]:
        learned = LearnedMentions.read(files_learned, current, mention_format)
    if linker is not None:
        ranked = _ranked_by_linker(declared, chosen, queries, linker, baseline, asking or Asking())
    else:
        ranked = _ranked_in_dictionary(declared, Path(data), chosen, queries, encoder, baseline, sparse, progress)
    ranking, queries = ranked.ranking, ranked.queries
    if learned is not None:
        learned = learned.meant_among(ranked.concept_ids)
        doubts += learned.doubts(queries)
    doubts += ranked.doubts
    abstention = None
    if ranking.confidences is not None:
        abstention = measure_abstention(
            judge_queries(queries, ranking.found, ranking.confidences, ranking.known_ids),
            thresholds=ranking.thresholds,
            no_concept_below=ranking.no_concept_below,
            clusters_are=declared.clusters,
            seed=seed,
        )
    predictions = predictions_table(queries, ranking, may_be_nil=declared.may_be_nil)
    n_read, groups = len(queries), {query.group or "" for query in queries}
    if declared.may_be_nil:
        queries = [query for query in queries if not _is_nil(query, ranking.known_ids)]
    ranks, exact_ranks = query_ranks(queries, ranking.found), query_ranks(queries, ranking.exact)
    unknown = unknown_codes(queries, ranking.known_ids)
    coverage = sum(not ranking.known_ids.isdisjoint(query.gold) for query in queries) / len(queries)
    doubts += doubts_of_codes(unknown, coverage, ranking.known_ids, of=ranked.names_of)
    texts, clusters = [cased_alike(query.text) for query in queries], [query.cluster_key for query in queries]
    result = BenchmarkResult(
        task=declared.name,
        split=chosen,
        protocol=ranked.protocol + replaced,
        tie_rule=ranked.tie_rule,
        accuracy={k: accuracy_at(ranks, k, clusters=clusters, seed=seed) for k in declared.cutoffs},
        accuracy_once={k: macro_accuracy_at(ranks, k, clusters=texts) for k in declared.cutoffs},
        exact_match={k: accuracy_at(exact_ranks, k, clusters=clusters, seed=seed) for k in declared.cutoffs},
        by_names=by_names(queries, ranks, ranking.exact, cutoffs=declared.cutoffs, seed=seed),
        by_group=None
        if declared.group is None
        else GroupSplit(declared.group, by_group(queries, ranks, groups, cutoffs=declared.cutoffs, seed=seed)),
        n_queries=len(queries),
        n_nil=n_read - len(queries),
        n_distinct_mentions=len(set(texts)),
        clusters=declared.clusters,
        n_dictionary=ranking.n_dictionary,
        dictionary_sha256=ranked.dictionary_sha256,
        coverage=coverage,
        unknown_gold=unknown,
        doubts=tuple(doubts),
        model=ranking.model,
        abstention=abstention,
        learned=None if learned is None else learned.split(queries, ranks, cutoffs=declared.cutoffs, seed=seed),
        seed=seed,
        versions=versions_in_use(),
        machine=machine(),
        terminologies=terminologies,
        data={
            name: {"sha256": sha256_file(file), "bytes": file.stat().st_size}
            for name, file in told_apart([*files, *ranked.files]).items()
        },
        seconds=round(time.perf_counter() - started, 3),
        path=Path(out),
    )
    _write(result, predictions, overwrite=overwrite)
    return result


@dataclass(frozen=True)
class _Ranked:
    """What the queries got for answers, and by which rules.

    Attributes:
        ranking: The answers.
        queries: As they are meant among the concepts that there were to choose from.
        concept_ids: Of all of these.
        protocol: The rules in words.
        tie_rule: Which of two equal scores comes first.
        names_of: Whose names there were to choose from, in words.
        dictionary_sha256: Of these names.
        files: That were read for it.
        doubts: Why figures may not be what they are taken for.
    """

    ranking: Ranking
    queries: list[Query]
    concept_ids: Set[str]
    protocol: str
    tie_rule: str
    names_of: str
    dictionary_sha256: str
    files: Sequence[Path]
    doubts: Sequence[str]


def _ranked_by_linker(
    task: BenchmarkTask,
    split: str,
    queries: Sequence[Query],
    linker: str | Path | Linker,
    baseline: str | Baseline | None,
    asking: Asking,
) -> _Ranked:
    """Concepts of a linker, ranked by it or by a baseline."""
    linking = asking.applied(linker if isinstance(linker, Linker) else Linker.open(linker))
    doubts = list(doubts_of_files(task.name, split, n_queries=len(queries), n_names=None))
    files: Sequence[Path] = ()
    k = max(task.cutoffs)
    concept_ids = set(linking.dictionary.concept_ids)
    queries = [query.meant_among(concept_ids) for query in queries]
    if baseline is None:
        ranking = rank_with_linker(linking, queries, asking, k=k)
        doubts += doubts_of_learning(linking, queries)
    else:
        measured = baseline if isinstance(baseline, Baseline) else get_baseline(baseline)
        files = measured.files
        ranking = rank_concepts_with_baseline(measured, linking, queries, asking, k=k)
    return _Ranked(
        ranking=ranking,
        queries=queries,
        concept_ids=concept_ids,
        protocol=task.linker_protocol,
        tie_rule=task.linker_tie_rule,
        names_of=names_asked(asking),
        dictionary_sha256=linking.fingerprint_of_names,
        files=files,
        doubts=doubts,
    )


def _ranked_in_dictionary(
    task: BenchmarkTask,
    data: Path,
    split: str,
    queries: Sequence[Query],
    encoder: str | Path | Encoder | None,
    baseline: str | Baseline | None,
    sparse: bool,
    progress: CountProgress | None,
) -> _Ranked:
    """Names of the task's dictionary, ranked by an encoder or a baseline."""
    dictionary, files = task.dictionary(data, split)
    doubts = list(doubts_of_files(task.name, split, n_queries=len(queries), n_names=len(dictionary)))
    names_of = "the dictionary"
    concept_ids = ids_of(dictionary)
    queries = [query.meant_among(concept_ids) for query in queries]
    require_common_ids(
        queries,
        all_codes(concept_ids),
        of=names_of,
        path=next(iter(files), data),
        fix="give queries and dictionary the same codes",
    )
    protocol, k = task.protocol, max(task.cutoffs)
    if encoder is not None:
        opened = as_encoder(encoder)
        doubts += doubts_of_training(opened, queries)
        weight = weight_of_ngrams(opened) if sparse else None
        if weight is not None and weight <= 0:
            protocol += f"; the weight of n-grams that training left, {weight:.3g}, counts as nothing"
            weight = None
        elif weight is not None:
            protocol += f"; here the cosine of character 1-2-grams, times {weight:.3g}, is added"
        elif (opened.folder.sparse_weight or 0) > 0:
            protocol += f"; the encoder's weight of n-grams, {opened.folder.sparse_weight:.3g}, is left out"
        ranking = rank_with_encoder(opened, dictionary, queries, k=k, sparse_weight=weight, progress=progress)
    else:
        measured = baseline if isinstance(baseline, Baseline) else get_baseline(str(baseline))
        files = [*files, *measured.files]
        ranking = rank_with_baseline(measured, dictionary, queries, k=k)
        protocol += (
            "; here names and mentions are prepared by the baseline's preset of normalisation, and its own score "
            "stands in the place of the cosine similarity"
        )
    return _Ranked(
        ranking=ranking,
        queries=queries,
        concept_ids=concept_ids,
        protocol=protocol,
        tie_rule=task.tie_rule,
        names_of=names_of,
        dictionary_sha256=_sha256_of(dictionary),
        files=files,
        doubts=doubts,
    )


def _with_successors(queries: Sequence[Query], successors: Mapping[str, str]) -> tuple[list[Query], int]:
    """Queries with what has replaced their retired codes, and of how many that is true."""
    current = [query.led_on(successors) for query in queries]
    return current, sum(query.gold != one.gold for query, one in zip(queries, current, strict=True))


def _is_nil(query: Query, known_ids: Set[str]) -> bool:
    """Whether a query says that it means no concept; a concept may be called so."""
    return query.gold.issubset(NO_CONCEPT) and query.gold.isdisjoint(known_ids)


def _sha256_of(dictionary: Sequence[DictionaryLine]) -> str:
    """Of the names and their codes, whatever they came from: a file divides the id ``a|b`` that a terminology has."""
    digest = hashlib.sha256()
    for line in dictionary:
        codes = dict.fromkeys(code for one in line.ids for code in split_codes(one))
        digest.update(json.dumps([line.name, *codes]).encode())
    return digest.hexdigest()


def query_ranks(queries: Sequence[Query], found: Candidates) -> list[int | None]:
    """For each query, the smallest k at which all its parts are right; ``None`` where there is none."""
    return [
        composite_rank([first_hit_rank((c.codes for c in found[part]), query.gold) for part in query.asked])
        for query in queries
    ]


def predictions_table(queries: Sequence[Query], ranking: Ranking, *, may_be_nil: bool = False) -> pl.DataFrame:
    """One row per part of a query, for the analysis of errors.

    Columns: ``query`` (its position among the mentions of the file, from 0), ``mention`` (whole text), ``cluster``
    (null if equal mentions are one), ``group`` (null if there is none), ``no_concept`` (whether it is annotated as
    meaning none, so that nothing is right; acc@k leaves these out), ``part``, ``gold`` (ids), ``candidate_ids`` (joined
    with ``|``), ``candidate_names`` and ``scores`` (best first), ``confidence`` (of the first; null if the linker is
    not calibrated, or has no answer), ``part_rank``, ``query_rank`` (null if nothing is right), ``exact_rank`` (of the
    query, exact match alone).

    Args:
        queries: All of them.
        ranking: Candidates of their parts.
        may_be_nil: Whether queries may mean no concept.
    """
    found, confidences = ranking.found, ranking.confidences or {}
    ranks, exact_ranks = query_ranks(queries, found), query_ranks(queries, ranking.exact)
    rows = [
        (
            position,
            query.text,
            query.cluster,
            query.group,
            may_be_nil and _is_nil(query, ranking.known_ids),
            part,
            sorted(query.gold),
            ["|".join(candidate.ids) for candidate in found[asked]],
            [candidate.name for candidate in found[asked]],
            [candidate.score for candidate in found[asked]],
            confidences.get(asked),
            first_hit_rank((candidate.codes for candidate in found[asked]), query.gold),
            rank,
            exact_rank,
        )
        for position, (query, rank, exact_rank) in enumerate(zip(queries, ranks, exact_ranks, strict=True))
        for part, asked in zip(query.parts, query.asked, strict=True)
    ]
    return pl.DataFrame(
        rows,
        orient="row",
        schema={
            "query": pl.UInt32,
            "mention": pl.String,
            "cluster": pl.String,
            "group": pl.String,
            "no_concept": pl.Boolean,
            "part": pl.String,
            "gold": pl.List(pl.String),
            "candidate_ids": pl.List(pl.String),
            "candidate_names": pl.List(pl.String),
            "scores": pl.List(pl.Float32),
            "confidence": pl.Float32,
            "part_rank": pl.UInt32,
            "query_rank": pl.UInt32,
            "exact_rank": pl.UInt32,
        },
    )


def _write(result: BenchmarkResult, predictions: pl.DataFrame, *, overwrite: bool) -> None:
    with write_artifact(
        result.path,
        RESULTS_KIND,
        format_version=RESULTS_FORMAT,
        config={"task": result.task, "split": result.split, "model": dict(result.model)},
        seed=result.seed,
        overwrite=overwrite,
    ) as folder:
        text = json.dumps(result.as_json(), indent=1, ensure_ascii=False)
        (folder / RESULTS_NAME).write_text(text + "\n", encoding="utf-8")
        predictions.write_parquet(folder / PREDICTIONS_NAME)
        if result.abstention is not None:
            title = f"{result.task}, {result.split}: {name_of(result.model)}"
            write_abstention(folder, result.abstention, title=title)
