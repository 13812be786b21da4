"""Names to vectors: open, run and save encoders. Torch is imported only where it runs."""

from onoma.encoders.catalogue import CATALOGUE, CatalogueEncoder
from onoma.encoders.folders import POOLINGS, EncoderFolder, Pooling, read_folder
from onoma.encoders.opening import open_encoder
from onoma.encoders.protocol import Encoder, ProgressCallback
from onoma.encoders.saving import export_encoder, save_encoder
from onoma.encoders.sources import locate_encoder, locate_tokenizer
from onoma.encoders.tokens import tokenise, tokenizer_fingerprint

__all__ = [
    "CATALOGUE",
    "POOLINGS",
    "CatalogueEncoder",
    "Encoder",
    "EncoderFolder",
    "Pooling",
    "ProgressCallback",
    "export_encoder",
    "locate_encoder",
    "locate_tokenizer",
    "open_encoder",
    "read_folder",
    "save_encoder",
    "tokenise",
    "tokenizer_fingerprint",
]
