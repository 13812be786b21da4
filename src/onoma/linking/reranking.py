"""The candidates of a linker reranked by a cross-encoder, which reads mention and candidate together.

`onoma.training.reranking` trains one from the candidates of a linker. `onoma.linking.rerank_scores` says how its scores
and those of the linker are combined into one ranking.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from onoma.encoders.cross_encoder import CrossEncoder, CrossEncoderAbout
from onoma.encoders.cross_encoder_tokens import candidate_text
from onoma.errors import ShapeError, real_number, whole_number
from onoma.linking.likelihood import LabelledPool, maximise_likelihood
from onoma.linking.links import Link, checked_mentions
from onoma.linking.rerank_scores import answers_nil, interpolated, probabilities
from onoma.terminology import normalise
from onoma.types import SCORE_DECIMALS, CountProgress, FloatArray


@dataclass(frozen=True, slots=True)
class Reranked:
    """What a reranker makes of a mention's candidates.

    Attributes:
        links: In their new order, with their new scores and ranks.
        no_concept: Probability that none of those reranked is meant (NIL); unset if the reranker gives none.
        is_nil: Whether that is the answer: more probable than not.
    """

    links: list[Link]
    no_concept: float | None
    is_nil: bool


class Reranker:
    """Reranks the first candidates of a mention.

    Opened by `Reranker.open`; needs no torch. The answer to a mention depends only on that mention, its context and its
    candidates.

    Args:
        model: The cross-encoder.
    """

    def __init__(self, model: CrossEncoder) -> None:
        self._model = model
        self._known: dict[tuple[str, str, str | None], np.float32] | None = None
        """Scores of pairs, of one that remembers."""

    @classmethod
    def open(cls, path: str | Path, *, threads: int | None = None) -> Reranker:
        """Open a reranker's folder.

        Args:
            path: The folder, see `onoma.encoders.cross_encoder`.
            threads: Of ONNX Runtime; all usable processors if not given.

        Raises:
            InputError: there is nothing at ``path``.
            ArtifactError: it is not a reranker, is damaged, or was written by a newer Onoma.
        """
        return cls(CrossEncoder.open(path, prepare=_preset, threads=threads))

    def __repr__(self) -> str:
        return f"Reranker({self.about.name}: the first {self.about.depth} candidates, {self.path})"

    @property
    def about(self) -> CrossEncoderAbout:
        """What its folder says: name, normalisation, how many candidates it reranks, its weight."""
        return self._model.about

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._model.path

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that its rankings depend on."""
        return self._model.fingerprint

    @property
    def uses_contexts(self) -> bool:
        """Whether it was trained on mentions in their context; others refuse contexts."""
        return self.about.contexts

    @property
    def says_nil(self) -> bool:
        """Whether it may answer that none of the candidates is meant."""
        return self.about.nil_score is not None

    def remembering(self) -> Reranker:
        """The same reranker, which scores each pair once, for mentions that are reranked repeatedly."""
        other = Reranker(self._model)
        other._known = {}
        return other

    def scores(
        self,
        mentions: Sequence[str],
        names: Sequence[str],
        contexts: Sequence[str | None] | None = None,
        *,
        progress: CountProgress | None = None,
    ) -> FloatArray:
        """Scores of pairs of mention and name, float32, shape (n,); see `CrossEncoder.scores`."""
        known = self._known
        if known is None:
            return self._model.scores(mentions, names, contexts, progress=progress)
        pairs = list(zip(mentions, names, contexts or [None] * len(mentions), strict=True))
        new = list({pair: None for pair in pairs if pair not in known})
        found = self._model.scores(
            [mention for mention, _, _ in new],
            [name for _, name, _ in new],
            None if contexts is None else [context for _, _, context in new],
            progress=progress,
        )
        known.update(zip(new, found, strict=True))
        return np.array([known[pair] for pair in pairs], np.float32)

    def rerank(
        self,
        mentions: Sequence[str],
        candidates: Sequence[Sequence[Link]],
        *,
        contexts: Sequence[str | None] | None = None,
        depth: int | None = None,
        weight: float | None = None,
        progress: CountProgress | None = None,
    ) -> list[Reranked]:
        """Candidates in their new order, and how probable it is that none of them is meant.

        A candidate's score becomes ``(1 - weight) x its score + weight x its probability`` among the first ``depth``
        candidates of its mention, and NIL if that was learned; the others have probability 0 and stay behind these.
        Among equal scores, to six decimals, the earlier order is kept.

        Args:
            mentions: The mentions.
            candidates: For each mention, best first; may be empty.
            contexts: For each mention, see `CrossEncoder.scores`.
            depth: How many candidates of a mention to rerank; unset: as many as it was trained with.
            weight: Share of the reranker, 0 (nothing changes but ties and digits) to 1; unset: the one that was best on
                the development mentions of its training.
            progress: See `scores`.

        Raises:
            InputError: an option has a value that is not allowed, an entry is not text, or there are contexts and the
                reranker was trained without.
            ShapeError: their numbers differ.
        """
        depth = self.about.depth if depth is None else depth
        weight = self.about.weight if weight is None else weight
        depth = whole_number(depth, "depth", "too few candidates to rerank")
        weight = real_number(
            weight,
            "weight",
            "no share of a score",
            expected="a number from 0 to 1",
            holds=lambda share: 0 <= share <= 1,
        )
        mentions = checked_mentions(mentions)
        if len(candidates) != len(mentions) or (contexts is not None and len(contexts) != len(mentions)):
            raise ShapeError(
                f"{len(mentions)} mentions need as many lists of candidates and, if there are any, contexts; found "
                f"{len(candidates)} lists" + ("." if contexts is None else f" and {len(contexts)} contexts.")
            )
        lengths = np.array([min(depth, len(links)) for links in candidates], np.int64)
        offsets = np.concatenate([[0], lengths.cumsum()])
        of_mention = np.repeat(np.arange(len(mentions)), lengths).tolist()
        reranked = [link for links in candidates for link in links[:depth]]
        scores = self.scores(
            [mentions[row] for row in of_mention],
            [self._text(link) for link in reranked],
            None if contexts is None else [contexts[row] for row in of_mention],
            progress=progress,
        )
        shares, of_nil = probabilities(scores, offsets, nil_score=self.about.nil_score)
        is_nil = answers_nil(of_nil)
        answers = []
        for row, links in enumerate(candidates):
            share = np.zeros(len(links))
            share[: lengths[row]] = shares[offsets[row] : offsets[row + 1]]
            final = interpolated(np.array([link.score for link in links]), share, weight)
            order = [*np.argsort(-final[: lengths[row]], kind="stable").tolist(), *range(int(lengths[row]), len(links))]
            answers.append(
                Reranked(
                    links=[
                        # A confidence is of the stages that it was learned with.
                        dataclasses.replace(links[place], score=float(final[place]), rank=rank, confidence=None)
                        for rank, place in enumerate(order, 1)
                    ],
                    no_concept=round(float(of_nil[row]), SCORE_DECIMALS) if self.says_nil else None,
                    is_nil=self.says_nil and bool(is_nil[row]),
                )
            )
        return answers

    def _text(self, link: Link) -> str:
        return candidate_text(link.matched_name, link.preferred_name, both=self.about.candidate_text == "both")


def learn_share(pools: Sequence[LabelledPool]) -> float | None:
    """The share of the cross-encoder under which the right candidates of development mentions are most probable.

    The probability of a candidate is a softmax of ``a s + b p``, and the share b / (a + b); see
    `onoma.linking.likelihood`. That share which most mentions are right with is no better on others: few mentions
    hang on it.

    Args:
        pools: Of the mentions, with the score s before the cross-encoder and its probability p, shape (n, 2).

    Returns:
        ``None`` if they show nothing.
    """
    weights = maximise_likelihood(pools)
    return None if weights is None else float(weights[1] / weights.sum())


def _preset(about: CrossEncoderAbout) -> Callable[[str], str]:
    return partial(normalise, preset=about.normalisation)
