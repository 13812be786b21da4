"""``onoma pairs``: training pairs, made once and kept; `onoma train --pairs` trains on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from onoma.cli import pairs_info
from onoma.cli.commands import Commands
from onoma.cli.options import (
    ANNOTATED,
    CodeColumn,
    Encoder,
    Force,
    LeaveOut,
    MentionColumn,
    MentionEncoding,
    OnError,
    TerminologyFolder,
    divided,
    mention_format,
)
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.pairs import PairSet

app = Commands(help="Make training pairs (for onoma train --pairs).", no_args_is_help=True)

Out = Annotated[Path, typer.Option("--out", "-o", metavar="PAIRS", help="Where to write the folder.")]
Preset = Annotated[
    str, typer.Option("--normalisation", metavar="PRESET", help="sapbert, exact, loose, biosyn or coder.")
]
MaxTokens = Annotated[
    int, typer.Option(min=3, max=512, help="Truncate names to this many tokens, special tokens included.")
]
Languages = Annotated[
    str, typer.Option(metavar="SET", help="Languages of the names: all, en, en+es ... (BCP 47 tags joined by +).")
]
Ambiguity = Annotated[
    Literal["keep", "mark", "drop"],
    typer.Option(help="Equal names of different concepts: negatives (keep), never negatives (mark), left out (drop)."),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the sample of pairs.")]


app.command("info")(pairs_info.info)


@app.command()
def build(
    terminology: TerminologyFolder,
    encoder: Encoder,
    out: Out,
    languages: Languages = "all",
    max_pairs: Annotated[int, typer.Option(min=1, help="At most this many pairs per concept, drawn at random.")] = 50,
    include_suppressed: Annotated[
        bool, typer.Option("--include-suppressed", help="Also use suppressed names, as the papers did with the UMLS.")
    ] = False,
    normalisation: Preset = "sapbert",
    max_tokens: MaxTokens = 25,
    ambiguous: Ambiguity = "mark",
    leave_out: LeaveOut = None,
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    encoding: MentionEncoding = "utf-8",
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Pair the synonyms of every concept.

    You need not do this for onoma train --terminology, which does it with the recipe's settings.
    """
    from onoma.cli import show
    from onoma.encoders import locate_tokenizer
    from onoma.pairs import build_pairs, names_of_mentions, parse_languages
    from onoma.terminology import Terminology

    written = mention_format(column, code_column, encoding, leave_out or [])
    opened = Terminology.open(terminology)
    hidden = None
    if leave_out:
        hidden = names_of_mentions(opened, leave_out, normalisation=normalisation, mention_format=written)
        show.names_left_out(len(hidden), opened.n_names)
    with show.progress_bar("tokenising", "names") as update:
        made = build_pairs(
            opened,
            locate_tokenizer(encoder),
            out,
            max_tokens=max_tokens,
            normalisation=normalisation,
            max_pairs_per_concept=max_pairs,
            languages=parse_languages(languages),
            include_suppressed=include_suppressed,
            ambiguous=ambiguous,
            hidden_names=hidden,
            seed=seed,
            overwrite=force,
            progress=update,
        )
    _show(made)


@app.command()
def mentions(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help=f"Annotated mentions: {ANNOTATED}. Mentions of NIL, CUI-less, -1 and 0 are left out, unless the "
            "terminology has a concept of that code.",
        ),
    ],
    terminology: TerminologyFolder,
    encoder: Encoder,
    out: Out,
    languages: Languages = "all",
    max_pairs: Annotated[
        int | None,
        typer.Option(min=1, help="At most this many pairs per mention, drawn at random. Default: all names."),
    ] = None,
    on_unknown: Annotated[
        Literal["refuse", "skip"],
        typer.Option(
            help="Mentions of concepts that the terminology does not have: refuse them, or skip and count them."
        ),
    ] = "refuse",
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    on_error: OnError = "strict",
    encoding: MentionEncoding = "utf-8",
    normalisation: Preset = "sapbert",
    max_tokens: MaxTokens = 25,
    ambiguous: Ambiguity = "mark",
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Pair annotated mentions with the names of their concepts.

    For fine-tuning.
    """
    from onoma.cli import show
    from onoma.encoders import locate_tokenizer
    from onoma.pairs import build_mention_pairs, parse_languages, read_mentions
    from onoma.pairs.pair_set import REJECTS_FILE
    from onoma.terminology import Terminology

    written = mention_format(column, code_column, encoding, [file])
    reading = written.reading(on_error)
    annotated = read_mentions(file, reading, mention_format=written)
    with show.progress_bar("tokenising", "names") as update:
        made = build_mention_pairs(
            Terminology.open(terminology),
            annotated,
            locate_tokenizer(encoder),
            out,
            max_tokens=max_tokens,
            normalisation=normalisation,
            max_pairs_per_mention=max_pairs,
            languages=parse_languages(languages),
            ambiguous=ambiguous,
            on_unknown=on_unknown,
            rejects=reading.rejects,
            seed=seed,
            overwrite=force,
            tell=show.remark,
            progress=update,
        )
    _show(made)
    show.left_out(reading.rejects, kept_in=made.path / REJECTS_FILE)
    counts = {**{what.replace("_", " "): n for what, n in made.manifest.config["mentions"].items()}, **reading.notes}
    if n_rejected := len(reading.rejects):
        counts[f"bad lines left out ({REJECTS_FILE})"] = n_rejected
    show.remark("mentions: " + ", ".join(f"{count:,} {what}" for what, count in counts.items()))


@app.command()
def bitext(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Translations: english, tab, other[, tab, class]; or label||english||other; or MUSE. Or SapBERT's "
            "concept||name||name (--classes listed). In UTF-8.",
        ),
    ],
    encoder: Encoder,
    out: Out,
    classes: Annotated[
        Literal["pair", "column", "listed"],
        typer.Option(
            help="Classes: each translation pair its own (as published); or from the class column, paired anew; or "
            "only the pairs listed."
        ),
    ] = "pair",
    max_pairs: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --classes column: at most this many pairs per class, drawn at random. Default: 50."
        ),
    ] = None,
    on_error: OnError = "strict",
    normalisation: Preset = "sapbert",
    max_tokens: MaxTokens = 25,
    ambiguous: Ambiguity = "mark",
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Pair translations, or read pairs of synonyms from a file.

    Pairs the two sides of translations, as cross-lingual SapBERT does.
    """
    from onoma.artifacts.parquet import scan_parquet
    from onoma.cli import show
    from onoma.encoders import locate_tokenizer
    from onoma.pairs import build_bitext_pairs
    from onoma.pairs.labelled_names import counts_in_words
    from onoma.pairs.pair_set import REJECTS_FILE

    with show.progress_bar("tokenising", "names") as update:
        made = build_bitext_pairs(
            files,
            locate_tokenizer(encoder),
            out,
            classes=classes,
            max_pairs_per_class=max_pairs,
            max_tokens=max_tokens,
            normalisation=normalisation,
            ambiguous=ambiguous,
            on_error=on_error,
            seed=seed,
            overwrite=force,
            progress=update,
        )
    _show(made)
    if (rejects := made.path / REJECTS_FILE).exists():
        show.left_out(scan_parquet(rejects).collect(), kept_in=rejects)
    counts = made.manifest.config["lines"]
    show.remark(f"lines: {counts_in_words(counts)}")
    if again := counts.get("of_a_class_again"):
        show.remark(
            f"{quantity(again, 'line')} of a class that occurred before; each line is now a class of its own, and "
            "training pushes their names apart. If a class is a concept, as in SapBERT's training file, give "
            "--classes listed (these pairs) or column (paired anew)."
        )


@app.command()
def merge(
    sets: Annotated[
        list[Path],
        typer.Argument(metavar="PAIRS...", help="Two or more folders of pairs; a folder given twice counts twice."),
    ],
    out: Out,
    force: Force = False,
) -> None:
    """Merge pairs, to train on all of them together.

    Pairs of one terminology share its concepts.
    """
    from onoma.pairs import merge_pairs

    _show(merge_pairs(sets, out, overwrite=force))


@app.command()
def triples(
    terminology: TerminologyFolder,
    encoder: Encoder,
    out: Out,
    languages: Languages = "all",
    relations: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Kinds of relations to use, separated by commas. Default: all.")
    ] = None,
    normalisation: Preset = "sapbert",
    max_tokens: MaxTokens = 25,
    ambiguous: Ambiguity = "mark",
    force: Force = False,
) -> None:
    """Make triples of relations, on which CODER trains.

    For CODER itself, give --normalisation coder --max-tokens 32.
    """
    import numpy as np

    from onoma.cli import show
    from onoma.encoders import locate_tokenizer
    from onoma.pairs import build_triples, parse_languages
    from onoma.pairs.labelled_names import counts_in_words
    from onoma.terminology import Terminology

    with show.progress_bar("tokenising", "names") as update:
        made = build_triples(
            Terminology.open(terminology),
            locate_tokenizer(encoder),
            out,
            max_tokens=max_tokens,
            normalisation=normalisation,
            languages=parse_languages(languages),
            relations=divided(relations),
            ambiguous=ambiguous,
            overwrite=force,
            progress=update,
        )
    show.out.print(
        f"{made.path}: {quantity(len(made.triples), 'triple')} of "
        f"{quantity(len(np.unique(made.triples[:, 1])), 'kind')}, {quantity(len(made.store), 'name')}",
    )
    show.remark(f"relations: {counts_in_words(made.manifest.config['relations_found'])}")


def _show(made: PairSet) -> None:
    from onoma.cli import show

    show.out.print(f"{made.path}: {quantity(len(made.pairs), 'pair')} of {quantity(len(made.store), 'name')}")
