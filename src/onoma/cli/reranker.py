"""``onoma reranker``: train rerankers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.commands import Commands
from onoma.cli.options import (
    CodeColumn,
    Database,
    Development,
    Force,
    Json,
    MentionColumn,
    MentionEncoding,
    Settings,
    Track,
    TrainingMentions,
    mention_format,
    parse_assignments,
)

app = Commands(help="Train rerankers, which reorder a linker's candidates.", no_args_is_help=True)


@app.command()
def train(
    linker: Annotated[
        Path,
        typer.Option(
            "--linker", metavar="LINKER", help="The linker whose candidates to learn from (onoma linker build)."
        ),
    ],
    mentions: TrainingMentions,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="RERANKER", help="Where to write the folder.")],
    development: Development = None,
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    encoding: MentionEncoding = "utf-8",
    context: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the files with the sentence around each mention."),
    ] = None,
    recipe: Annotated[
        str, typer.Option(metavar="RECIPE", help="Settings to start from: 'reranker', or a .toml file.")
    ] = "reranker",
    settings: Settings = None,
    track: Track = None,
    database: Database = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Train a cross-encoder on a linker's candidates.

    It learns to distinguish right candidates from wrong ones. Needs --development, unless you give --set keep=last.
    Measure on mentions that the linker has neither learned from nor been given as names. If the run is stopped, give
    the same command again: it resumes from the last checkpoint, which is kept with the unfinished run in
    RERANKER.run.
    """
    from onoma.cli import show
    from onoma.encoders.cross_encoder import read_about
    from onoma.linking import Linker
    from onoma.training.reranking_config import RerankingRecipe

    loaded = RerankingRecipe.load(recipe, parse_assignments(settings or []))
    written = mention_format(column, code_column, encoding, [mentions, *(development or [])])
    opened = Linker.open(linker, database=database)

    # torch takes seconds to load: what is wrong with what was given is told before.
    from onoma.training.distributed import is_main
    from onoma.training.reranking import train_reranker

    with show.training_bar(track or []) as watching:
        report = train_reranker(
            loaded,
            opened,
            mentions,
            out,
            development=development or [],
            context=context,
            mention_format=written,
            overwrite=force,
            **watching,
        )
    if not is_main():
        return
    show.training_report(report, out, as_json=as_json)
    alone = [data["linker"]["at_1"] for data in report.data["development"]]
    before = f"; the linker alone has acc@1 {sum(alone) / len(alone):.4f}" if alone else ""
    about = read_about(out)
    precision = report.ran_on.get("precision", "fp32")
    # A share that was given is not chosen; with NIL its score still is.
    is_same = precision == "fp32" or not alone or (loaded.config.weight is not None and not loaded.config.nil)
    in_use = "" if is_same else f" (chosen in fp32, as it is used; measured above in {precision})"
    show.remark(f"share of the reranker in the final score: {about.weight:.3g}{in_use}{before}")
    if report.saved_step == 0:
        show.remark("it has learned nothing that helps: train longer, or on more mentions")
    if loaded.config.nil:
        show.remark("NIL is never its answer" if about.nil_score is None else f"score of NIL: {about.nil_score:g}")
