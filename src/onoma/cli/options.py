"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from onoma.errors import ConfigError, InputError

if TYPE_CHECKING:
    from onoma.pairs import MentionFormat

Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting; may be repeated.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite an existing file, or an existing folder of the same kind.")
]
OnError = Annotated[
    Literal["strict", "skip"],
    typer.Option("--on-error", help="Stop at the first bad line, or skip, count and list them."),
]
Encoding = Annotated[
    str,
    typer.Option("--encoding", metavar="NAME", help="Encoding of a text file: cp1252, latin-1, utf-16, ..."),
]
MentionColumn = Annotated[
    str | None,
    typer.Option(
        "--column",
        "-c",
        metavar="NAME",
        help="Column of the mentions, in all tables of annotated mentions. Default: mention.",
    ),
]
CodeColumn = Annotated[
    str | None,
    typer.Option(
        "--code-column", metavar="NAME", help="Column of their codes, in the same tables. Default: concept_id."
    ),
]
MentionEncoding = Annotated[
    str,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text files of annotated mentions: cp1252, latin-1, utf-16, ...",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TerminologyFolder = Annotated[
    Path, typer.Option("--terminology", "-t", metavar="DIR", help="A terminology folder (onoma terminology import).")
]
LinkerFolder = Annotated[
    Path, typer.Argument(readable=False, metavar="LINKER", help="A linker folder (onoma linker build).")
]
_AN_ENCODER = "A folder, a catalogue name (all-MiniLM-L6-v2) or a hub id."
_ENCODER = typer.Option("--encoder", "-e", metavar="ENCODER", help=_AN_ENCODER)
Encoder = Annotated[str, _ENCODER]
EncoderIfAny = Annotated[str | None, _ENCODER]
EncoderName = Annotated[str, typer.Argument(metavar="ENCODER", help=_AN_ENCODER)]
EncoderOut = Annotated[Path, typer.Option("--out", "-o", metavar="ENCODER", help="Where to write the encoder folder.")]
RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe (onoma recipes list) or a .toml file.")]
PrecisionName = Literal["fp32", "bf16", "fp16-weights", "int8-weights", "int8"]
PRECISION_HELP = (
    "bf16 is several times as fast on processors that support it; needs torch (onoma[train]). The last three "
    "are ONNX models made and measured by onoma encoder export; int8 changes some nearest names."
)
Precision = Annotated[PrecisionName, typer.Option(help=PRECISION_HELP)]
Dimensions = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Keep only the first N numbers of each vector, for encoders trained with --set matryoshka=[N, ...].",
    ),
]
Normalisation = Annotated[
    str | None,
    typer.Option(
        metavar="PRESET",
        help="How to normalise names: sapbert, exact, loose, biosyn or coder. Default: as in the encoder's training.",
    ),
]
Track = Annotated[
    list[str] | None,
    typer.Option(
        "--track",
        metavar="NAME",
        help="Also show the curves in tensorboard, wandb or mlflow; may be repeated.",
    ),
]
ANNOTATED = (
    "lines id||mention, or a .csv, .tsv, .parquet or .jsonl with the columns mention and concept_id (or others: "
    "--column, --code-column)"
)
"""What files of annotated mentions are."""
TrainingMentions = Annotated[
    Path, typer.Option("--mentions", metavar="FILE", help=f"Annotated mentions to learn from: {ANNOTATED}.")
]
Development = Annotated[
    list[Path] | None,
    typer.Option("--development", metavar="FILE", help=f"Measure on these mentions: {ANNOTATED}; may be repeated."),
]
LeaveOut = Annotated[
    list[Path] | None,
    typer.Option(
        "--leave-out",
        metavar="FILE",
        help="Exclude names that equal these mentions, such as a test set's, from training: "
        f"{ANNOTATED}; may be repeated.",
    ),
]
Database = Annotated[
    str | None,
    typer.Option(
        metavar="CONNINFO",
        help="For a linker with its vectors in PostgreSQL: the database, in the form of libpq "
        "(postgresql://user@host/database). Default: the environment variable ONOMA_DATABASE, the better "
        "place for a password.",
    ),
]
TopK = Annotated[int, typer.Option("--top-k", "-k", min=1, help="How many concepts to return for a mention.")]


def mention_format(
    column: str | None, code_column: str | None, encoding: str, files: Iterable[Path | None]
) -> MentionFormat:
    """How the files of annotated mentions of a command are written, by `MentionColumn` and what goes with it.

    Args:
        column: As given.
        code_column: Likewise.
        encoding: Likewise.
        files: All that the command was given.

    Raises:
        ConfigError: the columns or the encoding cannot be, or are named and there is no file.
        InputError: columns are named and no file is a table, or an encoding and none is text.
    """
    from onoma.files.table_rows import NO_ENCODING
    from onoma.pairs import MentionFormat
    from onoma.pairs.mention_format import no_columns

    usual = MentionFormat()
    named = MentionFormat(
        usual.mention if column is None else column,
        usual.concept_id if code_column is None else code_column,
        encoding,
    )
    names_columns = column is not None or code_column is not None
    names_encoding = encoding != usual.encoding
    given = [file for file in files if file is not None]
    if not given and (names_columns or names_encoding):
        raise ConfigError(
            "--column, --code-column and --encoding are of files of annotated mentions, and none are given."
        )
    fitting = [named.fitting(file) for file in given] if names_columns or names_encoding else []
    if names_columns and not any(one.columns == named.columns for one in fitting):
        raise no_columns(given[0], named)
    if names_encoding and not any(one.encoding == encoding for one in fitting):
        raise InputError(NO_ENCODING, path=given[0], field="encoding", found=encoding, fix="leave it out")
    return named


def check_changed(file: Path) -> None:
    """Refuse a name for the list of ``--changed`` that says that it is no CSV.

    Raises:
        ConfigError: the name ends otherwise.
    """
    if file.suffix.lower() != ".csv":
        raise ConfigError(f"--changed writes CSV, so give a name that ends in .csv; found {file}.")


def divided(words: str | None) -> tuple[str, ...] | None:
    """What an option names, divided by commas."""
    return None if words is None else tuple(word.strip() for word in words.split(","))


def parse_assignments(assignments: Sequence[str], option: str = "--set") -> dict[str, str]:
    """``["a=1", "b=x"]`` to ``{"a": "1", "b": "x"}``; ``option`` is what an error calls them.

    Blanks around a value are no part of it, but of one that is nothing but signs: names may be divided by " / ", and
    cells by a tab.

    Raises:
        ConfigError: an entry has no ``=``, or a key is given twice.
    """
    pairs = {}
    for assignment in assignments:
        key, sign, value = assignment.partition("=")
        if not sign or not key.strip():
            form = "KEY=VALUE" if option == "--set" else "NAME=PREFIX"
            raise ConfigError(f"{option} takes {form}; found '{assignment}'.")
        if key.strip() in pairs:
            raise ConfigError(f"{option} {key.strip()} is given twice.")
        is_sign = not any(map(str.isalnum, value)) and (value.strip() or "\t" in value)
        pairs[key.strip()] = value if is_sign else value.strip()
    return pairs
