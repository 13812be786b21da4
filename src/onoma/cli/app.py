"""The tree of commands. Each command's module is small; what is heavy is imported when a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from onoma._version import __version__
from onoma.cli import (
    benchmark,
    distil,
    encode,
    encoder,
    link,
    linker,
    map,
    mentions,
    pairs,
    quickstart,
    recipes,
    reranker,
    terminology,
    train,
    train_biosyn,
    verify,
)
from onoma.cli.commands import Commands

app = Commands(
    name="onoma",
    help="From any biomedical name to the concept it means.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"onoma {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app.command("quickstart")(quickstart.quickstart)
app.add_typer(terminology.app, name="terminology")
app.command("mentions")(mentions.mentions)
app.add_typer(pairs.app, name="pairs")
app.add_typer(recipes.app, name="recipes")
app.command("train")(train.train)
app.command("train-biosyn")(train_biosyn.train_biosyn)
app.command("distil")(distil.distil)
app.add_typer(linker.app, name="linker")
app.add_typer(reranker.app, name="reranker")
app.command("link")(link.link)
app.command("map")(map.map_)
app.command("encode")(encode.encode)
app.add_typer(encoder.app, name="encoder")
app.add_typer(benchmark.app, name="benchmark")
app.command("verify")(verify.verify)
