"""What training reads: names tokenised once, and which of them mean the same, as row numbers.

A *training name* is a distinct (class, normalised text); the class is the concept, or the translation. Training
names, tokens, labels and pairs refer to one another by row; no text is stored here. `PairSet` is what training opens,
whichever of `build_pairs`, `build_mention_pairs`, `build_bitext_pairs` and `merge_pairs` made it; `TripleSet` adds the
relations between concepts.
"""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.pairs.bitext import build_bitext_pairs as build_bitext_pairs
    from onoma.pairs.building import build_pairs as build_pairs
    from onoma.pairs.corpora import read_corpus as read_corpus
    from onoma.pairs.held_out import HeldOut as HeldOut
    from onoma.pairs.held_out import hold_out_synonyms as hold_out_synonyms
    from onoma.pairs.held_out import names_of_mentions as names_of_mentions
    from onoma.pairs.languages import parse_languages as parse_languages
    from onoma.pairs.mention_format import MentionFormat as MentionFormat
    from onoma.pairs.mention_pairs import build_mention_pairs as build_mention_pairs
    from onoma.pairs.mentions import read_mentions as read_mentions
    from onoma.pairs.merging import merge_pairs as merge_pairs
    from onoma.pairs.name_store import NameStore as NameStore
    from onoma.pairs.pair_set import PairSet as PairSet
    from onoma.pairs.selection import Ambiguous as Ambiguous
    from onoma.pairs.selection import rows_fingerprint as rows_fingerprint
    from onoma.pairs.selection import training_names as training_names
    from onoma.pairs.synonyms import synonym_pairs as synonym_pairs
    from onoma.pairs.triples import TripleSet as TripleSet
    from onoma.pairs.triples import build_triples as build_triples


if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "onoma.pairs.bitext": ["build_bitext_pairs"],
            "onoma.pairs.building": ["build_pairs"],
            "onoma.pairs.corpora": ["read_corpus"],
            "onoma.pairs.held_out": ["HeldOut", "hold_out_synonyms", "names_of_mentions"],
            "onoma.pairs.languages": ["parse_languages"],
            "onoma.pairs.mention_format": ["MentionFormat"],
            "onoma.pairs.mention_pairs": ["build_mention_pairs"],
            "onoma.pairs.mentions": ["read_mentions"],
            "onoma.pairs.merging": ["merge_pairs"],
            "onoma.pairs.name_store": ["NameStore"],
            "onoma.pairs.pair_set": ["PairSet"],
            "onoma.pairs.selection": ["Ambiguous", "rows_fingerprint", "training_names"],
            "onoma.pairs.synonyms": ["synonym_pairs"],
            "onoma.pairs.triples": ["TripleSet", "build_triples"],
        },
    )
