"""Names to vectors: open, run and save encoders. Torch is imported only where it runs."""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.encoders.agreement import Agreement as Agreement
    from onoma.encoders.folders import LOWER_PRECISIONS as LOWER_PRECISIONS
    from onoma.encoders.folders import EncoderFolder as EncoderFolder
    from onoma.encoders.opening import open_encoder as open_encoder
    from onoma.encoders.pooling import Pooling as Pooling
    from onoma.encoders.protocol import Encoder as Encoder
    from onoma.encoders.rewriting import add_precisions as add_precisions
    from onoma.encoders.rewriting import add_to_card as add_to_card
    from onoma.encoders.saving import export_encoder as export_encoder
    from onoma.encoders.saving import save_encoder as save_encoder
    from onoma.encoders.sources import locate_encoder as locate_encoder
    from onoma.encoders.sources import locate_tokenizer as locate_tokenizer
    from onoma.encoders.tokens import tokenizer_fingerprint as tokenizer_fingerprint


if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "onoma.encoders.agreement": ["Agreement"],
            "onoma.encoders.folders": ["LOWER_PRECISIONS", "EncoderFolder"],
            "onoma.encoders.opening": ["open_encoder"],
            "onoma.encoders.pooling": ["Pooling"],
            "onoma.encoders.protocol": ["Encoder"],
            "onoma.encoders.rewriting": ["add_precisions", "add_to_card"],
            "onoma.encoders.saving": ["export_encoder", "save_encoder"],
            "onoma.encoders.sources": ["locate_encoder", "locate_tokenizer"],
            "onoma.encoders.tokens": ["tokenizer_fingerprint"],
        },
    )
