"""What every encoder offers, whatever runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from onoma.encoders.folders import EncoderFolder
from onoma.types import BoolArray, CountProgress, FloatArray


@runtime_checkable
class Encoder(Protocol):
    """Turns names into vectors."""

    @property
    def folder(self) -> EncoderFolder:
        """Where it is and how its vectors are made."""
        ...

    @property
    def name(self) -> str:
        """Its name in tables and logs."""
        ...

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest name in tokens, special tokens included; longer ones are truncated."""
        ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides a name's vector up to rounding; equal for every back end and precision."""
        ...

    @property
    def precision(self) -> str:
        """The precision of its arithmetic: ``"fp32"``, ``"bf16"``, or that of an ONNX model in a lower one."""
        ...

    def can_read(self, texts: Sequence[str]) -> BoolArray:
        """Whether its tokeniser knows more than half of the letters and digits of each text, shape (n,).

        For a text without any, more than half of the tokens.

        An encoder cannot tell apart characters that its tokeniser does not know: two Chinese names of four characters
        may have the same vector, which then says nothing. Linking takes such vectors for zero; `encode` gives them as
        they are.

        Raises:
            InputError: an entry is not a string.
        """
        ...

    def has_whole(self, word: str) -> bool:
        """Whether its tokeniser has a word as one token."""
        ...

    def encode(
        self, texts: Sequence[str], *, progress: CountProgress | None = None, unit_length: bool = True
    ) -> FloatArray:
        """Vectors of names, exactly as given.

        Commands and linkers first normalise names as the encoder's training did:
        ``onoma.normalise(text, encoder.folder.normalisation)``. Do the same if you compare vectors with theirs.

        Args:
            texts: Names in any script and of any length, empty ones included. Equal texts get equal vectors up to
                rounding, which the rest of their batch may change: for ties to be ties, encode each text once.
            progress: Called with (done, total) as names are finished.
            unit_length: Scale every vector to length 1, so that a dot product is a cosine.

        Returns:
            One row per text, in their order, shape (n, width).

        Raises:
            InputError: an entry is not a string.
        """
        ...
