"""A cross-encoder on disk, and scoring with it by ONNX Runtime, without torch.

Its folder (artefact kind ``reranker``)::

    onoma.json              manifest: checksums, parents, settings, seed
    reranker.json           what it is and how pairs are made for it
    onnx/model.onnx         pairs of token rows to scores, head inside
    model/                  the Hugging Face model with its tokeniser, as torch opens it
    head.safetensors        the linear layer that makes a score of a pair's vector
    train.json              how it was trained
    README.md               its model card

It is written by `onoma.encoders.cross_encoder_saving`; `onoma.linking.Reranker` is what linking uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onoma.artifacts import Manifest, open_artifact
from onoma.artifacts.system import is_of_system
from onoma.encoders.cross_encoder_tokens import PairRows, PairTokeniser
from onoma.encoders.encoding import WINDOW_NAMES, length_batches
from onoma.encoders.folders import ONNX_NAME
from onoma.encoders.onnx_encoder import BATCH_TOKENS, padded_rows
from onoma.encoders.onnx_session import ATTENTION_MASK, INPUT_IDS, PAIR_SCORES, TOKEN_TYPES, OnnxSession
from onoma.encoders.tokens import load_tokenizer
from onoma.errors import DamagedArtifactError, InputError, ShapeError, checked_path, first_line
from onoma.types import CountProgress, FloatArray, RowArray

RERANKER_KIND = "reranker"
RERANKER_ABOUT_NAME = "reranker.json"
MODEL_FOLDER = "model"
HEAD_NAME = "head.safetensors"
_SCORED_BY = (ONNX_NAME, f"{MODEL_FOLDER}/tokenizer.json")
_WEIGHTS_BESIDE = f"{ONNX_NAME}.data"
"""Files that scores depend on, besides what ``reranker.json`` says; only a very large model has weights beside it."""


class CrossEncoderAbout(BaseModel):
    """What a cross-encoder says about itself (file ``reranker.json``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    base: str
    """Name of the encoder that training began with."""
    pooling: Literal["cls", "mean"]
    normalisation: str
    """Preset that mentions, contexts and names go through."""
    candidate_text: Literal["matched", "both"]
    """What is read of a candidate; see `onoma.encoders.cross_encoder_tokens.candidate_text`."""
    contexts: bool
    """Whether mentions are marked in a context."""
    max_tokens: int
    """Longest pair, special tokens included."""
    max_name_tokens: int
    """Longest name."""
    padding_id: int
    depth: int = Field(ge=1)
    """Candidates of a mention that are reranked."""
    weight: float = Field(ge=0, le=1)
    """Share of the cross-encoder in the final score; see `onoma.linking.rerank_scores`."""
    nil_score: float | None = None
    """Score of NIL beside those of the candidates; None: it says nothing of NIL."""


class CrossEncoder:
    """Scores pairs of mention and name: the higher, the likelier the name's concept is meant.

    Scores compare the candidates of one mention; they mean nothing from one mention to another, unless NIL was learned.
    The score of a pair depends on that pair alone, up to rounding.

    Args:
        path: Its folder.
        manifest: Of the folder.
        about: What the folder says.
        tokeniser: Of its pairs.
        session: That runs its ONNX model.
    """

    def __init__(
        self,
        *,
        path: Path,
        manifest: Manifest,
        about: CrossEncoderAbout,
        tokeniser: PairTokeniser,
        session: OnnxSession,
    ) -> None:
        self.path, self.manifest, self.about = path, manifest, about
        self._tokeniser, self._session = tokeniser, session

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        prepare: Callable[[CrossEncoderAbout], Callable[[str], str]],
        threads: int | None = None,
    ) -> CrossEncoder:
        """Open a folder.

        Args:
            path: The folder.
            prepare: From what the folder says to what prepares every text: its normalisation.
            threads: Of ONNX Runtime; all usable processors if not given.

        Raises:
            InputError: there is nothing at ``path``.
            ArtifactError: it is no reranker, damaged, or written by a newer Onoma.
        """
        folder = checked_path(path)
        manifest = open_artifact(folder, RERANKER_KIND)
        about = read_about(folder)
        session = OnnxSession(folder / ONNX_NAME, threads=threads)
        if PAIR_SCORES not in session.outputs:
            raise DamagedArtifactError(f"{folder / ONNX_NAME} gives no scores of pairs. Make the folder again.")
        tokeniser = pair_tokeniser(folder, about, prepare=prepare(about))
        return cls(path=folder, manifest=manifest, about=about, tokeniser=tokeniser, session=session)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that its scores and rankings depend on: model, tokeniser, settings."""
        return fingerprint_of(self.manifest, self.about)

    def scores(
        self,
        mentions: Sequence[str],
        names: Sequence[str],
        contexts: Sequence[str | None] | None = None,
        *,
        progress: CountProgress | None = None,
    ) -> FloatArray:
        """Scores of pairs, float32, shape (n,).

        Equal pairs are scored once, so that they have exactly equal scores.

        Args:
            mentions: Mention of each pair; repeated for each of its candidates.
            names: Name of each pair, see `onoma.encoders.cross_encoder_tokens.candidate_text`.
            contexts: Context of each pair's mention, see `onoma.encoders.cross_encoder_tokens.split_context`; None
                where there is none.
            progress: Called with (distinct pairs done, distinct pairs in all).

        Raises:
            InputError: an entry is no text, or there are contexts and the model was trained without.
            ShapeError: there are not as many of each.
        """
        if isinstance(mentions, str) or isinstance(names, str) or isinstance(contexts, str):
            raise InputError("scores takes lists of mentions and names, not one string", fix="write scores([..], [..])")
        if len(mentions) != len(names) or (contexts is not None and len(contexts) != len(mentions)):
            raise ShapeError(
                f"every pair needs a mention, a name and, if there are any, a context; found {len(mentions)} mentions "
                f"and {len(names)} names" + ("." if contexts is None else f" and {len(contexts)} contexts.")
            )
        if len(mentions) == 0:
            return np.empty(0, np.float32)
        for field, texts in (("mentions", mentions), ("names", names), ("contexts", contexts or ())):
            for text in texts:
                if not (isinstance(text, str) or (text is None and field == "contexts")):
                    raise InputError("an entry is no text", field=field, found=repr(text))
        sides = list(zip(mentions, contexts or [None] * len(mentions), strict=True))
        left, left_rows = _distinct(sides)
        right, right_rows = _distinct(names)
        mention_tokens = self._tokeniser.mentions(
            [mention for mention, _ in left], None if contexts is None else [context for _, context in left]
        )
        name_tokens = self._tokeniser.names(right)
        codes, places = np.unique(left_rows * len(right) + right_rows, return_inverse=True)
        found = np.empty(len(codes), np.float32)
        for begin in range(0, len(codes), WINDOW_NAMES):
            window = codes[begin : begin + WINDOW_NAMES]
            pairs = self._tokeniser.pairs(mention_tokens, window // len(right), name_tokens, window % len(right))
            done = begin
            for rows in length_batches(pairs.lengths, batch_tokens=BATCH_TOKENS):
                found[begin + rows] = run_pairs(self._session, pairs, rows, padding_id=self.about.padding_id)
                done += len(rows)
                if progress is not None:
                    progress(done, len(codes))
        scores: FloatArray = found[places.reshape(-1)]
        return scores


def run_pairs(session: OnnxSession, pairs: PairRows, rows: RowArray, *, padding_id: int) -> FloatArray:
    """Scores of some pairs by a session of an ONNX model that `onoma.encoders.onnx_graph` wrote, shape (len(rows),)."""
    ids, mask = padded_rows(pairs.offsets, pairs.ids, rows, padding_id=padding_id)
    feeds: dict[str, Any] = {INPUT_IDS: ids, ATTENTION_MASK: mask}
    if TOKEN_TYPES in session.inputs:
        feeds[TOKEN_TYPES], _ = padded_rows(pairs.offsets, pairs.types.astype(np.int32), rows, padding_id=0)
    found: FloatArray = session.run(PAIR_SCORES, feeds)
    return found


def fingerprint_of(manifest: Manifest, about: CrossEncoderAbout) -> str:
    """SHA-256 over all that scores and rankings of a folder's model depend on: model, tokeniser, settings."""
    digest = hashlib.sha256(f"{RERANKER_KIND}/{manifest.format_version}".encode())
    digest.update(about.model_dump_json(exclude={"name", "base"}, exclude_none=True).encode())
    for name in (*_SCORED_BY, *([_WEIGHTS_BESIDE] if _WEIGHTS_BESIDE in manifest.files else [])):
        digest.update(f"\n{name} {manifest.files[name].sha256}".encode())
    return digest.hexdigest()


def read_about(folder: Path) -> CrossEncoderAbout:
    """What a folder that was checked before says about its cross-encoder."""
    file = folder / RERANKER_ABOUT_NAME
    try:
        return CrossEncoderAbout.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        if is_of_system(error):
            raise
        raise DamagedArtifactError(
            f"{file} is not what describes a reranker ({first_line(error)}). Make the folder again."
        ) from None


def pair_tokeniser(folder: Path, about: CrossEncoderAbout, *, prepare: Callable[[str], str]) -> PairTokeniser:
    """The tokeniser of a folder's pairs."""
    return PairTokeniser(
        load_tokenizer(folder / MODEL_FOLDER, alone=True),
        max_tokens=about.max_tokens,
        max_name_tokens=about.max_name_tokens,
        marks=about.contexts,
        prepare=prepare,
    )


def _distinct(values: Sequence[Any]) -> tuple[list[Any], RowArray]:
    """Values once each, in the order of their first, and the place of each among them."""
    place: dict[Any, int] = {}
    rows = np.fromiter((place.setdefault(value, len(place)) for value in values), np.int64, len(values))
    return list(place), rows
