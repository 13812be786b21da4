"""How many names of a terminology an encoder cuts, or takes for one another as its tokeniser does not know their signs.

    python benchmarks/unread_names.py onoma-mini HPO_ZH HPO_JA HPO_CS

For each terminology: different names; those that are longer than the encoder's ``max_tokens``, and so cut; those that
have the same tokens as another one, the unknown token among them, and so the same vector; how many of these are left
where names of which the tokeniser knows nothing are not searched by vectors, and how many where those are not of which
it knows half or less (`onoma.encoders.Encoder.can_read`); and how many that rule takes from the search.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from onoma.encoders import open_encoder
from onoma.encoders.tokens import known_shares, tokenise, unknown_id
from onoma.terminology import Terminology, normalise_expr


def count(encoder: str, terminology: Path) -> dict[str, int]:
    """The figures of one terminology."""
    opened = open_encoder(encoder)
    tokenizer = opened.folder.load_tokenizer()
    normalised = normalise_expr(pl.col("text"), opened.folder.normalisation)
    names = Terminology.open(terminology).names().select(normalised).collect()["text"].unique(maintain_order=True)
    texts = [name for name in names if name]
    unknown = unknown_id(tokenizer)
    shares = known_shares(tokenizer, texts, unknown)
    offsets, ids = tokenise(tokenizer, texts, special_tokens=False)
    keys = [ids[begin:end].tobytes() for begin, end in itertools.pairwise(offsets)]
    n_of_key = Counter(keys)
    has_unknown = [unknown in ids[begin:end] for begin, end in itertools.pairwise(offsets)]
    is_confused = np.array([n_of_key[key] > 1 for key in keys]) & has_unknown
    can_read = opened.can_read(texts)
    return {
        "names": len(texts),
        "cut": int((np.diff(offsets) + sum(opened.folder.special_tokens) > opened.max_tokens).sum()),
        "confused": int(is_confused.sum()),
        "left if nothing is known": int((is_confused & (shares > 0)).sum()),
        "left if half is known": int((is_confused & can_read).sum()),
        "not read": int((~can_read).sum()),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder")
    parser.add_argument("terminologies", nargs="+", type=Path)
    asked = parser.parse_args(arguments)
    for terminology in asked.terminologies:
        figures = count(asked.encoder, terminology)
        print(terminology.name, *(f"{what} {n:,}" for what, n in figures.items()), sep="; ")


if __name__ == "__main__":
    main()
