"""``onoma pairs info``: what a folder of pairs or triples holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onoma.cli.options import Json
from onoma.errors import ConfigError, MismatchError

if TYPE_CHECKING:
    from onoma.pairs import PairSet, TripleSet

_EXAMPLES = 5


def info(
    folder: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="A folder of pairs or triples (onoma pairs), or OUT.run/pairs.")
    ],
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder", "-e", metavar="ENCODER", help="The encoder whose tokeniser made them, to show examples."
        ),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help=f"Number of examples, drawn at random; with --encoder. Default: {_EXAMPLES}."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show numbers, origin and examples of pairs.

    Shows how many pairs and names there are, and what the pairs were made from and how.
    """
    from onoma.artifacts import origins_in_rows, read_manifest
    from onoma.cli import show
    from onoma.pairs import PairSet, TripleSet
    from onoma.pairs.triples import KIND as TRIPLES

    if encoder is None and examples is not None:
        raise ConfigError("--examples are read with a tokeniser: give --encoder too.")
    kind = TripleSet if read_manifest(folder).kind == TRIPLES else PairSet
    opened: PairSet | TripleSet = kind.open(folder)
    facts = _facts(opened)
    shown = None if encoder is None else _examples(opened, encoder, examples or _EXAMPLES)
    if as_json:
        found = {**facts, **({} if shown is None else {"examples": shown})}
        show.json_document({name: value for name, value in found.items() if value is not None})
        return
    rows = [
        row
        for name, value in facts.items()
        if value is not None
        for row in (origins_in_rows(value) if name == "read_from" else [(show.in_words(name), _shown(value))])
    ]
    show.table(["", opened.manifest.kind], rows)
    if shown is not None:
        show.out.print()
        show.table([show.in_words(column) for column in shown[0]], [list(one.values()) for one in shown])


def _facts(opened: PairSet | TripleSet) -> dict[str, Any]:
    import numpy as np

    from onoma.artifacts import origins_of
    from onoma.pairs import PairSet

    manifest, config = opened.manifest, opened.manifest.config
    classes = np.unique(opened.labels)
    facts: dict[str, Any] = {"n_names": len(opened.store), "n_concepts": len(classes)}
    if isinstance(opened, PairSet):
        facts = {"n_pairs": len(opened.pairs), **facts}
    else:
        counts = np.bincount(opened.triples[:, 1], minlength=len(opened.relation_names)).tolist()
        by_relation = dict(zip(opened.relation_names, counts, strict=True))
        facts = {"n_triples": len(opened.triples), "triples_by_relation": by_relation, **facts}
    if opened.text_labels is not None:
        each = np.unique(np.stack([opened.text_labels, opened.labels]), axis=1)
        facts["n_texts_of_several_concepts"] = int((np.bincount(each[0]) > 1).sum())
    lengths = np.diff(opened.store.offsets)
    facts["tokens_per_name"], facts["tokens_of_the_longest"] = round(float(lengths.mean()), 1), int(lengths.max())
    known = {name: value for name, value in config.items() if name not in {"merged", "relations_found", "origins"}}
    return {
        **facts,
        **known,
        "n_merged_from": len(config["merged"]) if "merged" in config else None,
        "seed": manifest.seed,
        "read_from": origins_of(config) or None,
        "made_from": [parent.model_dump() for parent in manifest.parents] or None,
        "created": manifest.created,
        "onoma": manifest.onoma_version,
    }


def _examples(opened: PairSet | TripleSet, encoder: str, n_wanted: int) -> list[dict[str, str]]:
    """Some pairs or triples in words: a triple as first names of its concepts."""
    import numpy as np
    from tokenizers import Tokenizer

    from onoma.encoders import locate_tokenizer
    from onoma.encoders.tokens import tokenizer_fingerprint
    from onoma.pairs import PairSet
    from onoma.pairs.name_store import own_tokenizer

    tokenizer: Tokenizer = own_tokenizer(locate_tokenizer(encoder))
    if tokenizer_fingerprint(tokenizer) != opened.manifest.config["tokenizer"]:
        raise MismatchError(f"{opened.path} was tokenised with another tokeniser than that of {encoder}.")
    store = opened.store

    def name(row: int) -> str:
        return str(tokenizer.decode(store.ids[store.offsets[row] : store.offsets[row + 1]].tolist()))

    rows = opened.pairs if isinstance(opened, PairSet) else opened.triples
    drawn = np.sort(np.random.default_rng(0).permutation(len(rows))[:n_wanted])
    if isinstance(opened, PairSet):
        return [{"name": name(first), "means_the_same_as": name(second)} for first, second in rows[drawn].tolist()]
    return [
        {
            "head": name(int(opened.name_offsets[head])),
            "relation": opened.relation_names[relation],
            "tail": name(int(opened.name_offsets[tail])),
        }
        for head, relation, tail in rows[drawn].tolist()
    ]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(" ".join(one.values()) if isinstance(one, dict) else str(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return str(value)
