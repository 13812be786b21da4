"""``onoma encoder``: what training puts out, looked at, made smaller, described."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onoma.cli.commands import Commands
from onoma.cli.options import EncoderName, EncoderOut, Force, Json
from onoma.errors import ConfigError, one_of
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.encoders import Agreement

app = Commands(help="Inspect, shrink, average, centre and describe encoders.", no_args_is_help=True)

OfTerminology = Annotated[
    Path | None, typer.Option("--terminology", "-t", metavar="DIR", help="Use names of this terminology.")
]
OfFile = Annotated[
    Path | None, typer.Option("--names", metavar="FILE", help="Use these names: UTF-8 text, one name per line.")
]
Sample = Annotated[int, typer.Option(min=100, help="How many names to use, drawn at random if there are more.")]

_COLUMNS = ("precision", "size", "speed", "cosine mean", "cosine 1st percentile", "same neighbour")


@app.command()
def info(encoder: EncoderName, as_json: Json = False) -> None:
    """Show an encoder's size, pooling, origin, files and precisions."""
    from onoma.artifacts import origins_in_rows
    from onoma.cli import show
    from onoma.encoders.information import encoder_info
    from onoma.encoders.model_card import data_in_rows

    found = encoder_info(encoder)
    if as_json:
        show.json_document(found)
        return
    origin = found.origin
    rows = [
        ("name", found.name),
        ("folder", str(found.path)),
        ("architecture", found.architecture),
        ("parameters", f"{found.n_parameters:,}" if found.n_parameters else "the ONNX model only"),
        ("vector", f"{found.width} numbers"),
        ("pooling", found.pooling),
        ("longest name", f"{found.max_tokens} tokens"),
        ("weight of n-grams", _of_biosyn(found.path) if found.sparse_weight is None else f"{found.sparse_weight:.4g}"),
        ("names prepared by", found.normalisation or ""),
        ("same weights on the hub", origin.hub_id or ""),
        ("licence", origin.licence or ""),
        (
            "trained from",
            " ".join(filter(None, (origin.base, f"({origin.base_hub_id})" if origin.base_hub_id else ""))),
        ),
        ("licence of that", origin.base_licence or "" if origin.base else ""),
        ("precision", "" if found.precision == "fp32" else f"{found.precision}, no fp32"),
        ("fingerprint", found.fingerprint),
        *((f"made from {parent.kind}", parent.fingerprint) for parent in found.made_from),
        *data_in_rows(found.data),
        *origins_in_rows(found.learnt_from, "learned names of"),
        ("written", found.created or ""),
        ("benchmark results", ", ".join(found.results)),
    ]
    show.table(["", ""], [row for row in rows if row[1]])
    show.out.print()
    show.table(["file", "bytes"], [[file, f"{size:,}"] for file, size in found.files.items()], numeric=["bytes"])
    if found.agreements:
        show.out.print()
        _show_agreements(list(found.agreements.values()))


def _of_biosyn(folder: Path) -> str:
    """What becomes of the weight that BioSyn's released code lays beside an encoder."""
    there = any((folder / name).is_file() for name in ("sparse_weight.pt", "sparse_encoder.pk"))
    return "that of BioSyn's pickles is not read; onoma linker tune learns it anew" if there else ""


@app.command()
def export(
    encoder: EncoderName,
    precision: Annotated[
        list[str],
        typer.Option(
            "--precision",
            metavar="PRECISION",
            help="fp16-weights: half the size, the same speed and nearly the same vectors. int8-weights: a quarter "
            "of the size, the same speed; about one nearest name in a hundred changes. int8: also 8-bit "
            "arithmetic, faster on processors that support it (VNNI, AMX); about one nearest name in sixteen "
            "changes. A precision is opened only if you name it. May be repeated.",
        ),
    ],
    terminology: OfTerminology = None,
    names: OfFile = None,
    sample: Sample = 4096,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="ENCODER", help="Write a new folder. Default: add to ENCODER itself."),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processors to measure with. Default: all.")] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Make smaller ONNX models of an encoder.

    Measures how well each agrees with the one in fp32. The table shows, for each precision: size of the model; names
    per second as a multiple of fp32; cosine of a name's two vectors; share of names whose nearest other name stays
    the same. It is stored in the folder and its card. Open a precision with --precision of onoma encode, onoma linker
    build and onoma benchmark run.
    """
    from onoma.cli import show
    from onoma.encoders import add_precisions
    from onoma.encoders.folders import LOWER_PRECISIONS

    wanted = [one_of(name, LOWER_PRECISIONS, "lower precision") for name in precision]
    texts = _names(encoder, terminology, names, sample, "agreement is measured on the names that will be searched")
    with show.progress_bar("measuring", "names") as update:
        measured = add_precisions(encoder, wanted, texts, out=out, overwrite=force, threads=threads, progress=update)
    if as_json:
        show.json_document(measured)
        return
    _show_agreements(measured)
    show.remark(f"measured on {quantity(measured[0].n_names, 'name')}; written to {out or encoder}")


@app.command()
def join(
    adapter: Annotated[
        Path,
        typer.Argument(metavar="ADAPTER", help="An adapter's folder, or that of an encoder that was trained with one."),
    ],
    out: EncoderOut,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="The encoder that it was trained on: folder, catalogue name or hub id. Default: as the adapter says.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Join an adapter and its base into a whole encoder.

    The base is the encoder that it was trained on; any other encoder is refused. LoRA is merged into the weights; a
    bottleneck stays a separate part.
    """
    from onoma.cli import show
    from onoma.encoders.adapter_folders import join_adapter

    made = join_adapter(adapter, out, base=base, overwrite=force)
    show.remark(f"{out}: {made.name}, {made.width} numbers a vector")


@app.command()
def average(
    encoders: Annotated[
        list[str],
        typer.Argument(metavar="ENCODER", help="Two or more: folders, catalogue names or hub ids."),
    ],
    out: EncoderOut,
    shares: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Weight of each, in their order, separated by commas: 2,1,1. Default: all the same.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Average the weights of several encoders.

    They must have been trained from the same one: for example, in runs with different seeds or data. The average is
    as fast as one of them, and may be better than each: measure it. Encoders with different tokenisers, pooling or
    architectures are refused, and so are encoders whose weights have little in common.
    """
    from onoma.cli import show
    from onoma.encoders.averages import average_encoders

    made = average_encoders(encoders, out, shares=None if shares is None else _numbers(shares), overwrite=force)
    show.remark(f"{out}: the average of {quantity(len(encoders), 'encoder')}, {made.width} numbers a vector")


@app.command()
def centre(
    encoder: EncoderName,
    out: EncoderOut,
    terminology: OfTerminology = None,
    names: OfFile = None,
    sample: Sample = 20_000,
    force: Force = False,
) -> None:
    """Centre an encoder: subtract the mean of names' vectors.

    Training with multi-similarity loss leaves such a common part in every vector, and answers are better without it;
    after BioSyn, or without training, they are not: measure it. The encoder is as fast as before. Build linkers with
    it anew: thresholds and weights that were chosen before do not fit its scores.
    """
    from onoma.cli import show
    from onoma.encoders.centring import centre_encoder

    texts = _names(encoder, terminology, names, sample, "the mean is of the names that are compared")
    with show.progress_bar("encoding", "names") as update:
        made = centre_encoder(encoder, texts, out, overwrite=force, progress=update)
    show.remark(f"{out}: {made.share:.0%} of a vector's length was common to {quantity(made.n_names, 'name')}")


@app.command()
def card(
    encoder: Annotated[Path, typer.Argument(metavar="ENCODER", help="A folder that Onoma wrote.")],
    results: Annotated[
        list[Path] | None,
        typer.Option(
            "--results", metavar="RESULTS", help="Results of a benchmark with this encoder (onoma benchmark run)."
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            metavar="SPDX",
            help="Licence of the encoder, which you decide: apache-2.0, cc-by-4.0; '' removes it. Default: unchanged.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a card that was edited.")] = False,
) -> None:
    """Rewrite an encoder's model card (README.md).

    Adds scores and licence. The card says only what the folder contains. Results of another encoder are refused.
    """
    from onoma.cli import show
    from onoma.encoders import add_to_card

    found = add_to_card(encoder, results=results or [], licence=licence, overwrite=force)
    show.out.print(f"{found.path / 'README.md'}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ConfigError(f"--shares: expected numbers divided by commas, such as 2,1,1; found '{text}'.") from None


def _names(encoder: str, terminology: Path | None, file: Path | None, sample: int, why: str) -> list[str]:
    """Distinct names as the encoder has them prepared, a sample of them if there are many; the same ones every time."""
    import random

    from onoma.encoders import locate_encoder
    from onoma.files.text_files import read_lines
    from onoma.linking.dictionary_building import build_dictionary
    from onoma.terminology import Terminology, normalise

    if terminology is not None and file is None:
        preset = locate_encoder(encoder).normalisation
        texts = list(build_dictionary(Terminology.open(terminology), normalisation=preset).texts)
    elif file is not None and terminology is None:
        preset = locate_encoder(encoder).normalisation
        texts = [text for text in dict.fromkeys(normalise(line, preset) for line in read_lines(file)) if text]
    else:
        raise ConfigError(f"give either --terminology DIR or --names FILE: {why}.")
    return texts if len(texts) <= sample else random.Random(0).sample(texts, sample)


def _show_agreements(agreements: list[Agreement]) -> None:
    from onoma.cli import show
    from onoma.files.sizes import size_in_words

    fp32 = agreements[0].fp32_bytes
    show.table(
        _COLUMNS,
        [
            ["fp32", size_in_words(fp32), "1.00", "1.00000", "1.00000", "1.0000"],
            *(
                [
                    one.precision,
                    size_in_words(one.bytes),
                    f"{one.speed:.2f}",
                    f"{one.mean_cosine:.5f}",
                    f"{one.percentile_1_cosine:.5f}",
                    f"{one.same_neighbour:.4f}",
                ]
                for one in agreements
            ),
        ],
        numeric=_COLUMNS[1:],
    )
