"""``onoma benchmark``: published tasks, by their published protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from onoma.cli.asking import ExpectTypes, Languages, SemanticTypes, Sources, Stages, Under, asked_stages
from onoma.cli.commands import Commands
from onoma.cli.options import (
    CodeColumn,
    Database,
    Force,
    Json,
    MentionColumn,
    MentionEncoding,
    Precision,
    Settings,
    check_changed,
    mention_format,
    parse_assignments,
)
from onoma.cli.preparing import Spelling
from onoma.errors import ConfigError
from onoma.quantities import quantity

app = Commands(help="Measure encoders, linkers and baselines.", no_args_is_help=True)

Task = Annotated[str, typer.Argument(metavar="TASK", help="See: onoma benchmark list.")]
Split = Annotated[
    str | None, typer.Option(metavar="SPLIT", help="Such as dev. Default: the one that papers report (test).")
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the resampling.")]


@app.command("list")
def list_tasks() -> None:
    """List the tasks.

    Shows their splits and licences, where to get the data and what to cite.
    """
    from onoma.benchmarks import TASKS, own_task
    from onoma.cli import show

    for task in (*TASKS.values(), own_task()):
        show.out.print(f"{task.name}: {task.description}", style="bold")
        show.out.print(f"  splits   {_shown(task.splits)}\n  licence  {task.licence}")
        show.out.print(f"  data     {task.data_source}\n  to cite  {task.citation}")


@app.command()
def run(
    task: Task,
    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", help="The folder with the task's files; for task own, the file."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="RESULTS", help="Where to write results.json.")],
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", "-e", metavar="ENCODER", help="Rank the task's dictionary with this encoder."),
    ] = None,
    linker: Annotated[
        Path | None,
        typer.Option("--linker", metavar="LINKER", help="Link the queries with this linker, to its own dictionary."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Rank the task's dictionary without an encoder: exact, tfidf, bm25, fuzzy, word-vectors.",
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="TERMINOLOGY",
            help="For task own: the names that --encoder and --baseline rank, a terminology or a UTF-8 file with a "
            "line id||name for each name.",
        ),
    ] = None,
    sparse: Annotated[
        bool,
        typer.Option(
            "--sparse",
            help="For an encoder with an n-gram weight (BioSyn's, onoma-mini): add the cosine of character "
            "1-2-grams, times this weight, to that of the vectors.",
        ),
    ] = False,
    spelling: Spelling = False,
    stages: Stages = None,
    semantic_type: SemanticTypes = None,
    source: Sources = None,
    language: Languages = None,
    under: Under = None,
    expect_type: ExpectTypes = None,
    settings: Settings = None,
    successors: Annotated[
        Path | None,
        typer.Option(
            metavar="TERMINOLOGY",
            help="Count retired codes of the mentions as the codes that have replaced them in this terminology.",
        ),
    ] = None,
    learned_from: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Mentions that were trained or tuned on, in the format of task own; may be repeated. Also "
            "measures separately the queries that are among these mentions, other queries of their concepts, "
            "and all others.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="For task own: the column with independent units, such as document or patient; intervals are over "
            "these. Default: over distinct mentions.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="For task own: also measure accuracy separately for each value of this column, such as semantic "
            "type or section.",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="For task own with --linker: the column with the text around each mention, for a reranker that "
            "reads it.",
        ),
    ] = None,
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    encoding: MentionEncoding = "utf-8",
    split: Split = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the confidence intervals.")] = 0,
    precision: Precision = "fp32",
    database: Database = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Measure an encoder, a baseline or a linker on a task.

    Encoders and baselines rank the task's own dictionary, a linker its own. Task own measures on mentions that you
    have annotated: a table with the columns mention and concept_id (or others: --column, --code-column; NIL or 0: no
    such concept), or lines id||mention.

    With --linker and --baseline, the baseline ranks the linker's concepts by its names, so that you can compare them.

    Give a baseline's settings with --set: ngrams=2-4 for tfidf; k1=0.9 and b=0.4 for bm25; scorer=ratio (wratio,
    jaro, jaro-winkler) for fuzzy; vectors=FILE for word-vectors, which needs it; normalisation=PRESET for all.
    """
    from onoma.benchmarks import own_task, run_benchmark
    from onoma.benchmarks.tasks import get_task
    from onoma.cli import show
    from onoma.encoders import open_encoder
    from onoma.linking import Asking, Filters, Linker, Preparation
    from onoma.linking.baselines import get_baseline

    if (encoder is not None) == (linker is not None or baseline is not None):
        raise ConfigError(
            "give one of --encoder, --linker and --baseline, or the last two: the baseline then ranks the linker's "
            "concepts."
        )
    if encoder is None and precision != "fp32":
        raise ConfigError(
            "--precision is for --encoder; a linker keeps the one that it was built with, and a baseline has none."
        )
    if linker is None and database is not None:
        raise ConfigError("--database is for --linker.")
    if encoder is None and sparse:
        raise ConfigError(
            "--sparse is for --encoder; a linker searches n-grams if it was built so, and tfidf is a baseline of them."
        )
    if linker is None and spelling:
        raise ConfigError("--spelling is for --linker: it goes by the words of the linker's names.")
    if names is not None and (task != "own" or linker is not None):
        raise ConfigError("--names is for task own with --encoder or --baseline; a linker has its own.")
    if cluster is not None and task != "own":
        raise ConfigError("--cluster is for task own: intervals of published tasks are over distinct mentions.")
    if group is not None and task != "own":
        raise ConfigError("--group is for task own: published tasks have no such columns.")
    if context is not None and (task != "own" or linker is None or baseline is not None):
        raise ConfigError("--context is for task own with --linker: nothing else reads contexts.")
    if task != "own":
        get_task(task)  # an unknown one is refused before anything is opened, or looked for on the hub
    learned = learned_from or []
    if task != "own" and not learned and (column is not None or code_column is not None or encoding != "utf-8"):
        raise ConfigError(
            "--column, --code-column and --encoding are for task own and --learned-from: the files of published tasks "
            "are read as they are published."
        )
    written = mention_format(column, code_column, encoding, [*([data] if task == "own" else []), *learned])
    filters = Filters.of(semantic_types=semantic_type, sources=source, languages=language, under=under)
    asking = Asking(stages=asked_stages(stages), filters=filters, expected_types=tuple(expect_type or ()))
    if linker is None and asking != Asking():
        raise ConfigError(
            "--stages, --semantic-type, --source, --language, --under and --expect-type are for --linker."
        )
    if baseline is None and settings:
        raise ConfigError("--set is for --baseline; an encoder and a linker carry their own settings.")
    opened = None if encoder is None else open_encoder(encoder, precision=precision)
    chosen = None if baseline is None else get_baseline(baseline, parse_assignments(settings or []))
    linking = None if linker is None else Linker.open(linker, database=database)
    if linking is not None and chosen is None:
        asked = asking.stages or linking.settings.stages
        show.calibration_out_of_force(linking.settings, asked)
        if filters.are_set:
            show.confidences_under_filters(linking.settings, asked)
    own = None
    if task == "own":
        own = own_task(names, cluster=cluster, context=context, group=group, mention_format=written.fitting(data))
    with show.progress_bar("encoding", "names") as update:
        result = run_benchmark(
            task if own is None else own,
            data,
            encoder=opened,
            linker=None if linking is None else linking.preparing(Preparation(spelling=spelling)),
            baseline=chosen,
            sparse=sparse,
            asking=None if linking is None else asking,
            successors=successors,
            learned_from=learned,
            mention_format=written,
            out=out,
            split=split,
            seed=seed,
            overwrite=force,
            progress=update,
        )
    show.result(result, {"path": result.path, **result.as_json()}, as_json=as_json)
    weight = None if opened is None else opened.folder.sparse_weight
    if opened is not None and weight is not None and weight > 0 and not sparse:
        show.remark(
            f"names are ranked by the cosine of their vectors alone: the weight of n-grams that {opened.name} has, "
            f"{weight:.3g}, is left out (--sparse adds them)"
        )
    if weight is not None and weight <= 0 and sparse:
        show.remark(f"training left n-grams a weight of {weight:.3g}, which adds nothing to the vectors")
    answering = (
        None if linking is None or chosen is not None else linking.tuned(linking.settings.replaced(stages=asked))
    )
    if answering is not None and answering.reads_contexts and context is None:
        none = "none are given (--context COLUMN)" if task == "own" else "the queries of a benchmark have none"
        show.remark(f"the linker's cross-encoder reads contexts, and {none}")
    if answering is not None and answering.answers_nil:
        show.remark("the linker's cross-encoder may answer that no concept is meant, which counts as wrong if one is")
    for doubt in result.doubts:
        show.remark(doubt)


@app.command()
def dictionary(
    task: Task,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder with the task's files.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Lines ids||name.")],
    split: Split = None,
    force: Force = False,
) -> None:
    """Write the names that a task ranks.

    Writes them as the task measures them: lines of ids, separated by |, and a name. Use the file with
    onoma train-biosyn --development-dictionary, or in other tools.
    """
    from onoma.artifacts import ensure_file_writable, ensure_plain_name
    from onoma.benchmarks.biosyn import write_dictionary
    from onoma.benchmarks.tasks import get_task
    from onoma.cli import show

    ensure_plain_name(out)
    if out.exists() and data.resolve() in out.resolve().parents:
        raise ConfigError(f"{out} is one of the files in {data}, which are read: choose another file.")
    ensure_file_writable(out, overwrite=force)
    declared = get_task(task)
    lines, _ = declared.dictionary(data, declared.split(split))
    write_dictionary(lines, out, overwrite=force)
    show.out.print(f"{out}: {quantity(len(lines), 'name')}")


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="Results of onoma benchmark run.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Results of another system on the same split.")],
    seed: Seed = 0,
    changed: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the queries for which only one has the right first answer, with both answers, to this CSV.",
        ),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Show how much better SECOND is than FIRST.

    Compares them on the same queries, with confidence interval and p-value.
    """
    from onoma.artifacts import ensure_file_writable, write_file
    from onoma.benchmarks import changed_answers, compare_results
    from onoma.cli import show

    if changed is not None:
        check_changed(changed)
        ensure_file_writable(changed, overwrite=force)
    found = compare_results(first, second, seed=seed)
    if changed is not None:
        rows = changed_answers(first, second)
        with write_file(changed, overwrite=force) as aside:
            rows.write_csv(aside)
        show.remark(f"{changed}: {quantity(rows['query'].n_unique(), 'query', 'queries')} that only one has right")
    show.result(found, found.as_json(), as_json=as_json)


@app.command()
def table(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=RESULTS...",
            help="Results of onoma benchmark run, each after a name; a name given several times has several runs, "
            "such as several seeds.",
        ),
    ],
    against: Annotated[
        str | None, typer.Option(metavar="NAME", help="The system to compare the others with; adds p-values.")
    ] = None,
    kind: Annotated[
        Literal["markdown", "latex", "csv", "json"], typer.Option("--format", help="Format of the table.")
    ] = "markdown",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the table to this file. Default: to the screen."),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Compare several systems in a table for a paper.

    They must have been measured on the same queries. For several runs, shows the mean and the standard deviation;
    with --against, differences with intervals, p-values, and p-values corrected for the number of comparisons (Holm).
    """
    from onoma.artifacts import ensure_file_writable, write_text_atomically
    from onoma.benchmarks import tabulate_results
    from onoma.cli import show

    if out is not None:
        ensure_file_writable(out, overwrite=force)
    folders: dict[str, list[str]] = {}
    for one in systems:
        name, is_named, folder = one.partition("=")
        if not (is_named and name.strip() and folder):
            raise ConfigError(f"a system is given as NAME=RESULTS, such as 'BM25=results/bm25'; found '{one}'.")
        folders.setdefault(name.strip(), []).append(folder)
    written = tabulate_results(folders, against=against, seed=seed).written(kind)
    if out is None:
        show.out.print(written, end="")
    else:
        write_text_atomically(out, written)
        show.out.print(f"{out}: {quantity(len(folders), 'system')}")


def _shown(splits: tuple[str, ...]) -> str:
    return ", ".join(splits) if len(splits) < 5 else f"{', '.join(splits[:2])}, {splits[2]} ... {splits[-1]}"
