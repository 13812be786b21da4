"""What a linker links with."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from onoma.encoders import Encoder
from onoma.errors import ConfigError, InputError, check_several
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.indexes.protocol import StoredIndex
from onoma.linking.confidence import Confidence
from onoma.linking.dictionary import NameDictionary
from onoma.linking.facts import TerminologyFacts
from onoma.linking.filters import Filters, allowed_entries, expected_concepts, filter_words
from onoma.linking.lookup import NameLookup, SortedStrings
from onoma.linking.mentions import Preparation, PreparedMention
from onoma.linking.prior import WeightedPrior, checked_prior
from onoma.linking.remembering import RememberingEncoder, SearchMemory
from onoma.linking.reranking import Reranker
from onoma.linking.searching import FEW_SHARE, AllowedTexts, DenseSearch, SparseSearch
from onoma.linking.settings import SEARCHES, LinkerSettings, Stage, ordered_stages
from onoma.linking.spelling import NameWords, Spelling
from onoma.linking.variants import variants_of
from onoma.terminology import normalise
from onoma.types import BoolArray, RowArray

_OBO_ADDRESS = re.compile(r"(?:https?://\S+[/#])?([A-Za-z][A-Za-z0-9.]*)_([0-9][A-Za-z0-9]*)")
"""As ontologies' addresses end: MONDO_0005068."""
_HOW_TO_GET: dict[Stage, str] = {
    "dense": "build it with an encoder (onoma linker build --encoder)",
    "sparse": "build it with character n-grams (onoma linker build --sparse)",
    "prior": "count how often concepts are meant, and learn what that counts for (onoma linker tune --prior)",
    "rerank": "give it a cross-encoder (onoma linker add-reranker)",
}


@dataclass(frozen=True)
class Components:
    """The parts of a linker; what it does not have is unset.

    Attributes:
        dictionary: Names and concepts.
        settings: Stages that are on, and what was learned for them.
        lookup: Texts by what a mention is.
        facts: What filters ask for.
        words: How many of the texts have each word.
        encoder: Mentions to vectors.
        index: Search of the texts' vectors, and these.
        ngrams: Search of the texts' character n-grams.
        reranker: The cross-encoder.
        prior: How often each concept is meant, int64, shape (C,); unset: not known.
        entries: Which entries may be an answer, bool, shape (E,); unset: all.
        preparation: What mentions go through before they are linked.
        memory: What the searches found; unset: it is not kept.
    """

    dictionary: NameDictionary
    settings: LinkerSettings
    lookup: NameLookup
    facts: TerminologyFacts
    words: NameWords
    encoder: Encoder | None = None
    index: StoredIndex | None = None
    ngrams: CharNgramIndex | None = None
    reranker: Reranker | None = None
    prior: RowArray | None = None
    entries: BoolArray | None = None
    preparation: Preparation = field(default_factory=Preparation)
    memory: SearchMemory | None = None

    @functools.cached_property
    def texts(self) -> AllowedTexts:
        """Texts that may be an answer."""
        few_share = 1.0 if self.index is not None and self.index.is_approximate else FEW_SHARE
        return AllowedTexts.of(self.entries, self.dictionary, few_share=few_share)

    @functools.cached_property
    def dense(self) -> DenseSearch | None:
        """Search by vectors among these texts."""
        return None if self.index is None else DenseSearch(self.index, self.texts)

    @functools.cached_property
    def sparse(self) -> SparseSearch | None:
        """Search by character n-grams among these texts."""
        return None if self.ngrams is None else SparseSearch(self.ngrams, self.texts)

    @functools.cached_property
    def spelling(self) -> Spelling:
        """Corrections by the words of these texts; words that the encoder's tokeniser has whole are right too."""
        texts, mask = self.dictionary.texts, self.texts.mask
        words = self.words if mask is None else NameWords.of(texts[int(row)] for row in np.flatnonzero(mask))
        return Spelling(
            words.as_dict(),
            is_known=None if self.encoder is None else self.encoder.has_whole,
            as_in_names=lambda word: normalise(word, self.dictionary.normalisation),
        )

    @functools.cached_property
    def weighted_prior(self) -> WeightedPrior | None:
        """What it adds to scores how often each concept is meant, if that was counted and learned."""
        if self.prior is None or self.settings.prior_weight is None:
            return None
        return WeightedPrior(self.prior, self.settings.prior_weight)

    @property
    def rerank_weight(self) -> float:
        """Share of the cross-encoder, if there is one, in the final score."""
        if self.settings.rerank_weight is not None:
            return self.settings.rerank_weight
        return 0.0 if self.reranker is None else self.reranker.about.weight

    @functools.cached_property
    def confidence(self) -> Confidence | None:
        """What the settings say of it."""
        return Confidence.of(self.settings)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What can be switched on."""
        has: dict[Stage, bool] = {
            "exact": True,
            "loose": True,
            "variants": True,
            "dense": self.index is not None,
            "sparse": self.ngrams is not None,
            "prior": self.weighted_prior is not None,
            "rerank": self.reranker is not None,
        }
        return tuple(stage for stage, is_there in has.items() if is_there)

    def remembering(self) -> Components:
        """The same with models and searches that answer what they were asked before."""
        return dataclasses.replace(
            self,
            encoder=None if self.encoder is None else RememberingEncoder(self.encoder),
            reranker=None if self.reranker is None else self.reranker.remembering(),
            memory=SearchMemory(),
        )

    def keeping(self, entries: BoolArray) -> Components:
        """The same without some entries, besides those that are left out already.

        Args:
            entries: Those that may stay, bool, shape (E,).
        """
        return dataclasses.replace(
            self,
            entries=entries if self.entries is None else entries & self.entries,
            memory=None if self.memory is None else SearchMemory(),
        )

    def filtered(self, filters: Filters) -> Components:
        """The same with what passes the filters.

        Raises:
            InputError: there are no facts such as are asked for, or nothing passes.
        """
        components = self.keeping(allowed_entries(filters, self.dictionary, self.facts))
        if components.entries is None or not components.entries.any():
            raise InputError(
                "no name passes these filters together",
                field=", ".join(name for name, wanted in dataclasses.asdict(filters).items() if wanted),
                fix="ask for less",
            )
        return components

    def expected(self, semantic_types: str | Iterable[str] | None) -> BoolArray | None:
        """Which concepts are of one of these types or groups, bool, shape (C,); ``None`` if none is given.

        Raises:
            InputError: there is no such type.
        """
        wanted = filter_words(semantic_types, "expected_types")
        return expected_concepts(wanted, self.facts, field="expected_types") if wanted else None

    def prepare(
        self,
        mentions: Iterable[str | PreparedMention],
        contexts: Iterable[str | None] | None,
        stages: tuple[Stage, ...],
    ) -> list[PreparedMention]:
        """Mentions made ready, if they are not; names are those that these stages look up, and that can be an answer.

        Raises:
            InputError: a mention or context is not text, these are not as many, or only some mentions are ready.
        """
        check_several(mentions, "mentions")
        given = list(mentions)
        prepared = [mention for mention in given if isinstance(mention, PreparedMention)]
        texts = [mention for mention in given if not isinstance(mention, PreparedMention)]
        if prepared and (texts or contexts is not None):
            raise InputError(
                "mentions that are ready go with no others, and have their contexts already",
                field="mentions" if contexts is None else "contexts",
                fix="prepare all of them, with their contexts",
            )
        if prepared:
            return prepared
        return self.preparation.prepare(
            texts,
            contexts=contexts,
            is_name=functools.partial(self._is_name, stages=stages),
            spelling=self.spelling if self.preparation.spelling else None,
            concept_of_code=self._concept_of_code if self.preparation.codes else None,
        )

    def _concept_of_code(self, text: str) -> tuple[str, str] | None:
        """Code and preferred name of the concept with this code, also in capitals or as the end of an OBO address."""
        written = text.strip()
        address = _OBO_ADDRESS.fullmatch(written)
        curie = f"{address[1]}:{address[2]}" if address else written
        forms = dict.fromkeys([written, written.upper(), curie, curie.upper()])
        codes = SortedStrings(self.facts.concept_ids, self.facts.concept_order)
        found = next((rows for form in forms if len(rows := codes.rows(form))), None)
        if found is None:
            return None
        return self.dictionary.concept_ids[int(found[0])], self.dictionary.preferred_names[int(found[0])]

    def _is_name(self, text: str, *, stages: tuple[Stage, ...]) -> bool:
        normalisation = self.dictionary.normalisation
        normalised = normalise(text, normalisation)
        written = [normalised]
        if "variants" in stages:
            written += [normalise(variant.text, normalisation) for variant in variants_of(text)]
        look_ups = [self.lookup.exact, self.lookup.loose] if "loose" in stages else [self.lookup.exact]
        found = (look_up(way) for way in written for look_up in look_ups)
        return any(len(rows) if self.texts.mask is None else self.texts.mask[rows].any() for rows in found)

    def with_prior(self, prior: npt.ArrayLike | None) -> Components:
        """The same with other counts; without any the stage "prior" is off.

        Raises:
            ShapeError: see `onoma.linking.prior.checked_prior`.
        """
        if prior is not None:
            kept = np.array(checked_prior(prior, self.dictionary))  # what is given may change
            return dataclasses.replace(self, prior=kept)
        stages = tuple(stage for stage in self.settings.stages if stage != "prior")
        return dataclasses.replace(self, prior=None, settings=self.settings.replaced(stages=stages, prior_weight=None))

    def reads_contexts(self, stages: tuple[Stage, ...]) -> bool:
        """Whether a cross-encoder reads contexts."""
        return "rerank" in stages and self.reranker is not None and self.reranker.uses_contexts

    def check_contexts(self, stages: tuple[Stage, ...]) -> None:
        """Refuse contexts that nothing reads.

        Raises:
            InputError: short forms are not looked for in them, and the cross-encoder is not on or was trained without.
        """
        if self.reads_contexts(stages) or self.preparation.finder is not None:
            return
        raise InputError(
            "this linker does not read contexts with the stages that are on",
            field="contexts",
            expected="short forms to be looked for in them, or a cross-encoder trained with contexts (stage rerank)",
            found=("a cross-encoder trained without contexts, " if "rerank" in stages else "")
            + f"stages {', '.join(stages)}",
            fix="leave the contexts out, or have the short forms expanded that they define (onoma link, onoma map: "
            "--expand schwartz-hearst)",
        )

    def check_settings(self) -> None:
        """Refuse settings that do not go with the other parts.

        Raises:
            ConfigError: a stage is on that the linker does not have.
            InputError: the calibration cannot be read.
        """
        self.check_stages(self.settings.stages)
        _ = self.confidence

    def chosen_stages(self, stages: Iterable[str] | None) -> tuple[Stage, ...]:
        """The stages that are asked for, or else those of the settings, in their order.

        Raises:
            ConfigError: there is no such stage, or the linker does not have it.
        """
        if stages is None:
            return self.settings.stages
        chosen = ordered_stages(stages)
        self.check_stages(chosen)
        return chosen

    def check_stages(self, stages: tuple[Stage, ...]) -> None:
        """Refuse stages that the linker does not have.

        Raises:
            ConfigError: naming the first, and how to get it; or two of them do not go together.
        """
        for stage in stages:
            if stage not in self.stages:
                raise ConfigError(
                    f"this linker has no stage '{stage}'; it has {', '.join(self.stages)}. To have it, "
                    f"{_HOW_TO_GET[stage]}."
                )
        if "prior" in stages and self.settings.weights is None and all(search in stages for search in SEARCHES):
            raise ConfigError(
                "the stage 'prior' adds to cosines, and these stages fuse reciprocal ranks: learn weights of the "
                "searches (onoma linker tune), or leave dense or sparse out."
            )
