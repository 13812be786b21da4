"""``onoma benchmark``: published tasks, by their published protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import Force, Precision
from onoma.errors import ConfigError

app = typer.Typer(help="Measure encoders and linkers on published tasks.", no_args_is_help=True)


@app.command("list")
def list_tasks() -> None:
    """List the tasks, with licence and where to get the data."""
    from onoma.benchmarks import TASKS
    from onoma.cli import show

    show.table(
        ["task", "what it is", "splits", "licence", "data"],
        [[task.name, task.description, _shown(task.splits), task.licence, task.data_source] for task in TASKS.values()],
    )


@app.command()
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="See: onoma benchmark list.")],
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder with the task's files.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="RESULTS", help="Where to write results.json.")],
    encoder: Annotated[
        str | None, typer.Option("--encoder", "-e", metavar="ENCODER", help="Rank the task's dictionary with it.")
    ] = None,
    linker: Annotated[
        Path | None, typer.Option("--linker", metavar="LINKER", help="Link the queries with it, to its own dictionary.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="E.g. dev; unset: the one that is reported (test).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the confidence intervals.")] = 0,
    precision: Precision = "fp32",
    force: Force = False,
) -> None:
    """Run a task with an encoder (the task's own dictionary) or with a linker (the linker's dictionary)."""
    from onoma.benchmarks import run_benchmark
    from onoma.cli import show
    from onoma.encoders import open_encoder

    if (encoder is None) == (linker is None):
        raise ConfigError("give either --encoder or --linker.")
    if linker is not None and precision != "fp32":
        raise ConfigError("--precision is for --encoder; a linker's encoder runs in fp32.")
    opened = None if encoder is None else open_encoder(encoder, precision=precision)
    with show.progress_bar("encoding", "names") as update:
        result = run_benchmark(
            task,
            data,
            encoder=opened,
            linker=linker,
            out=out,
            split=split,
            seed=seed,
            overwrite=force,
            progress=update,
        )
    show.out.print(str(result), markup=False)


def _shown(splits: tuple[str, ...]) -> str:
    return ", ".join(splits) if len(splits) < 5 else f"{', '.join(splits[:2])}, {splits[2]} ... {splits[-1]}"
