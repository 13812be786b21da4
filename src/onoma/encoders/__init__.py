"""Names to vectors: open, run and save encoders. Torch is imported only where it runs."""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.encoders.agreement import Agreement
    from onoma.encoders.catalogue import CATALOGUE, CatalogueEncoder
    from onoma.encoders.folders import LOWER_PRECISIONS, EncoderFolder, Precision, read_folder
    from onoma.encoders.opening import open_encoder
    from onoma.encoders.pooling import POOLINGS, Pooling
    from onoma.encoders.protocol import Encoder
    from onoma.encoders.rewriting import add_precisions, add_to_card
    from onoma.encoders.saving import export_encoder, save_encoder
    from onoma.encoders.sources import locate_encoder, locate_tokenizer
    from onoma.encoders.tokens import tokenise, tokenizer_fingerprint

__all__ = [
    "CATALOGUE",
    "LOWER_PRECISIONS",
    "POOLINGS",
    "Agreement",
    "CatalogueEncoder",
    "Encoder",
    "EncoderFolder",
    "Pooling",
    "Precision",
    "add_precisions",
    "add_to_card",
    "export_encoder",
    "locate_encoder",
    "locate_tokenizer",
    "open_encoder",
    "read_folder",
    "save_encoder",
    "tokenise",
    "tokenizer_fingerprint",
]

if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "onoma.encoders.agreement": ["Agreement"],
            "onoma.encoders.catalogue": ["CATALOGUE", "CatalogueEncoder"],
            "onoma.encoders.folders": ["LOWER_PRECISIONS", "EncoderFolder", "Precision", "read_folder"],
            "onoma.encoders.opening": ["open_encoder"],
            "onoma.encoders.pooling": ["POOLINGS", "Pooling"],
            "onoma.encoders.protocol": ["Encoder"],
            "onoma.encoders.rewriting": ["add_precisions", "add_to_card"],
            "onoma.encoders.saving": ["export_encoder", "save_encoder"],
            "onoma.encoders.sources": ["locate_encoder", "locate_tokenizer"],
            "onoma.encoders.tokens": ["tokenise", "tokenizer_fingerprint"],
        },
    )
