"""What training reads: names tokenised once, and which of them are synonyms, as row numbers.

A *training name* is a distinct (concept, normalised text) of an active concept. Training names, tokens,
labels and pairs refer to one another by row; no text is stored here.
"""

from onoma.pairs.building import build_pairs, pairs_config
from onoma.pairs.held_out import HeldOut, hold_out_synonyms
from onoma.pairs.name_store import NameStore
from onoma.pairs.pair_set import PairSet
from onoma.pairs.selection import Ambiguous, rows_fingerprint, training_names
from onoma.pairs.synonyms import synonym_pairs

__all__ = [
    "Ambiguous",
    "HeldOut",
    "NameStore",
    "PairSet",
    "build_pairs",
    "hold_out_synonyms",
    "pairs_config",
    "rows_fingerprint",
    "synonym_pairs",
    "training_names",
]
