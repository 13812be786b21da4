"""What training reads: names tokenised once, and which of them mean the same, as row numbers.

A *training name* is a distinct (class, normalised text); the class is the concept, or the translation. Training
names, tokens, labels and pairs refer to one another by row; no text is stored here. `PairSet` is what training opens,
whichever of `build_pairs`, `build_mention_pairs`, `build_bitext_pairs` and `merge_pairs` made it; `TripleSet` adds the
relations between concepts.
"""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.pairs.bitext import build_bitext_pairs
    from onoma.pairs.building import build_pairs
    from onoma.pairs.held_out import HeldOut, hold_out_synonyms
    from onoma.pairs.languages import parse_languages
    from onoma.pairs.mentions import build_mention_pairs, read_mentions
    from onoma.pairs.merging import merge_pairs
    from onoma.pairs.name_store import NameStore
    from onoma.pairs.pair_set import PairSet
    from onoma.pairs.selection import Ambiguous, rows_fingerprint, training_names
    from onoma.pairs.synonyms import synonym_pairs
    from onoma.pairs.triples import TripleSet, build_triples

__all__ = [
    "Ambiguous",
    "HeldOut",
    "NameStore",
    "PairSet",
    "TripleSet",
    "build_bitext_pairs",
    "build_mention_pairs",
    "build_pairs",
    "build_triples",
    "hold_out_synonyms",
    "merge_pairs",
    "parse_languages",
    "read_mentions",
    "rows_fingerprint",
    "synonym_pairs",
    "training_names",
]

if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "onoma.pairs.bitext": ["build_bitext_pairs"],
            "onoma.pairs.building": ["build_pairs"],
            "onoma.pairs.held_out": ["HeldOut", "hold_out_synonyms"],
            "onoma.pairs.languages": ["parse_languages"],
            "onoma.pairs.mentions": ["build_mention_pairs", "read_mentions"],
            "onoma.pairs.merging": ["merge_pairs"],
            "onoma.pairs.name_store": ["NameStore"],
            "onoma.pairs.pair_set": ["PairSet"],
            "onoma.pairs.selection": ["Ambiguous", "rows_fingerprint", "training_names"],
            "onoma.pairs.synonyms": ["synonym_pairs"],
            "onoma.pairs.triples": ["TripleSet", "build_triples"],
        },
    )
