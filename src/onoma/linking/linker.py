"""Mentions to ranked concepts by the nearest name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from onoma.artifacts import Manifest, open_artifact
from onoma.encoders import Encoder, open_encoder
from onoma.errors import DamagedArtifactError, MismatchError
from onoma.indexes import ExactIndex
from onoma.linking.dictionary import NameDictionary
from onoma.linking.exact_match import ExactMatcher
from onoma.linking.links import Link, check_request
from onoma.linking.strings import StringColumn
from onoma.terminology import normalise
from onoma.types import FloatArray, RowArray

KIND = "linker"
FORMAT_VERSION = 1
ENCODER_FOLDER = "encoder"
VECTORS_FILE = "vectors.npy"
MAX_NORM = 1.001
"""Bound on the length of a stored vector, checked when a linker is built: unit length but for rounding."""
_TEXTS_PER_CONCEPT = 4
"""Texts looked at first for each concept wanted; if they turn out to be too few, more are."""
_MENTIONS_AT_ONCE = 4096


class Linker:
    """Ranks the concepts of a terminology for mentions: a concept's score is that of its nearest name.

    Homonyms stay apart: each concept that carries the matched name is an answer of its own, with the same
    score. Of equal scores (compared to six decimals, below which lies rounding) the concept whose preferred
    name the matched text is comes first, then the one that stands earlier in the terminology.

    A linker is opened from its folder by `Linker.open` and made by `build_linker`. It needs no torch; several
    processes that open one folder share its memory map.

    Attributes:
        path: Its folder.
        manifest: What it was made from, and how.
        dictionary: The names and concepts it knows.
        encoder: What turns mentions into vectors.
        normalisation: Preset that names and mentions go through.
    """

    def __init__(
        self,
        *,
        path: Path,
        manifest: Manifest,
        dictionary: NameDictionary,
        encoder: Encoder,
        index: ExactIndex,
        normalisation: str,
    ) -> None:
        self.path, self.manifest, self.dictionary = path, manifest, dictionary
        self.encoder, self.normalisation = encoder, normalisation
        self._index = index

    @classmethod
    def open(cls, path: str | Path) -> Linker:
        """Open a linker's folder; its vectors are mapped, not read.

        Raises:
            InputError: there is nothing at ``path``.
            ArtifactError: it is no linker, damaged, or written by a newer Onoma.
            MismatchError: the encoder inside is not the one that made the vectors.
        """
        folder = Path(path)
        manifest = open_artifact(folder, KIND, format_version=FORMAT_VERSION)
        precision = manifest.config.get("precision", "fp32")
        encoder = open_encoder(folder / ENCODER_FOLDER, backend="onnx", precision=precision)
        made_by = manifest.config.get("encoder_fingerprint")
        if encoder.fingerprint != made_by:
            raise MismatchError(
                f"{folder}: its vectors were made by the encoder {str(made_by)[:12]}, but the encoder inside is "
                f"{encoder.fingerprint[:12]}. Build the linker again."
            )
        try:
            vectors = np.load(folder / VECTORS_FILE, mmap_mode="r")
            dictionary = NameDictionary.open(folder)
        except (OSError, ValueError) as error:
            raise DamagedArtifactError(f"{folder} cannot be read ({error}). Build the linker again.") from None
        if vectors.shape != (dictionary.n_texts, encoder.width):
            raise DamagedArtifactError(
                f"{folder}: {VECTORS_FILE} has the shape {vectors.shape}; {dictionary.n_texts} names and a width of "
                f"{encoder.width} need {(dictionary.n_texts, encoder.width)}. Build the linker again."
            )
        return cls(
            path=folder,
            manifest=manifest,
            dictionary=dictionary,
            encoder=encoder,
            index=ExactIndex(vectors, max_norm=MAX_NORM),
            normalisation=str(manifest.config["normalisation"]),
        )

    @property
    def n_concepts(self) -> int:
        """Concepts that can be an answer."""
        return self.dictionary.n_concepts

    @property
    def n_names(self) -> int:
        """Names by which they can be found: distinct normalised texts of each concept."""
        return len(self.dictionary.entry_names)

    @property
    def n_texts(self) -> int:
        """Vectors: distinct normalised texts."""
        return self.dictionary.n_texts

    @property
    def concept_ids(self) -> StringColumn:
        """Codes of all concepts that can be an answer."""
        return self.dictionary.concept_ids

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that the answers depend on: names, concepts, vectors, encoder."""
        digest = hashlib.sha256(f"{KIND}/{self.manifest.format_version} {self.encoder.fingerprint}".encode())
        digest.update(self.normalisation.encode())
        # The encoder's folder counts by its fingerprint: its manifest has a date.
        for name, entry in sorted(self.manifest.files.items()):
            if not name.startswith(f"{ENCODER_FOLDER}/"):
                digest.update(f"\n{name} {entry.sha256}".encode())
        return digest.hexdigest()

    def without(self, name_rows: Sequence[int] | RowArray) -> Linker:
        """The same linker as if some names were unknown to it, to measure how well it finds them.

        Args:
            name_rows: Rows of the terminology's table of names; see `NameDictionary.without`.
        """
        return Linker(
            path=self.path,
            manifest=self.manifest,
            dictionary=self.dictionary.without(name_rows),
            encoder=self.encoder,
            index=self._index,
            normalisation=self.normalisation,
        )

    def exact_matcher(self) -> ExactMatcher:
        """Exact match alone over the same names, for comparison."""
        return ExactMatcher(self.dictionary, normalisation=self.normalisation)

    def link(self, mentions: Iterable[str], *, top_k: int = 5) -> list[list[Link]]:
        """The ``top_k`` best concepts of each mention, best first.

        Equal mentions are encoded once. Each mention gets ``top_k`` links, or as many as there are concepts;
        a mention that is blank after normalisation, or of which the tokeniser leaves nothing, gets none. What
        lies beyond the encoder's longest name is cut off.

        Args:
            mentions: Any text; order and number are kept.
            top_k: From 1.

        Raises:
            InputError: a mention is not text, or ``top_k`` is less than 1.
        """
        texts = [normalise(mention, self.normalisation) for mention in check_request(mentions, top_k)]
        distinct = [text for text in dict.fromkeys(texts) if text]
        answers: dict[str, list[Link]] = {}
        for start in range(0, len(distinct), _MENTIONS_AT_ONCE):
            part = distinct[start : start + _MENTIONS_AT_ONCE]
            vectors = self.encoder.encode(part)
            # What has no tokens has the vector zero, which is equally near to everything.
            meant = np.flatnonzero(np.any(vectors != 0, axis=1))
            answers.update(zip((part[row] for row in meant), self._rank(vectors[meant], top_k), strict=True))
        return [list(answers.get(text, [])) for text in texts]

    def _rank(self, queries: FloatArray, top_k: int) -> list[list[Link]]:
        """Search ever deeper until no text further down could change a mention's answer."""
        answers: list[list[Link]] = [[] for _ in queries]
        waiting: RowArray = np.arange(len(queries))
        depth = _TEXTS_PER_CONCEPT * top_k
        while len(waiting):
            complete = depth >= self.n_texts
            rows, scores = self._index.search(queries[waiting], k=depth)
            still_waiting = []
            for position, text_rows, text_scores in zip(waiting.tolist(), rows, scores, strict=True):
                links = self.dictionary.rank_concepts(text_rows, text_scores, top_k=top_k, complete=complete)
                if links is None:
                    still_waiting.append(position)
                else:
                    answers[position] = links
            waiting = np.array(still_waiting, np.int64)
            depth *= 4
        return answers
