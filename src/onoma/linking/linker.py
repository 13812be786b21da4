"""Link mentions to ranked concepts."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Never, Self, TypeVar

import numpy as np
import numpy.typing as npt

from onoma.artifacts import Manifest, read_while_unchanged
from onoma.encoders import Encoder
from onoma.encoders.encoding import check_opened
from onoma.errors import ConfigError, InputError, MismatchError
from onoma.linking.answers import Answer
from onoma.linking.components import Components
from onoma.linking.confidence import TUNE, threshold
from onoma.linking.dictionary import NameDictionary
from onoma.linking.exact_match import ExactMatcher
from onoma.linking.explanation import Explanation, explain_mention
from onoma.linking.filters import Filters
from onoma.linking.folder import checked_folder, fingerprint, fingerprint_of_names, open_components, open_manifest
from onoma.linking.links import Link, checked_top_k
from onoma.linking.mentions import Preparation, PreparedMention
from onoma.linking.pipeline import Run, runs
from onoma.linking.questions import Question, questions_of_all
from onoma.linking.reranking import Reranker
from onoma.linking.searching import DenseSearch
from onoma.linking.settings import LinkerSettings, Stage
from onoma.linking.strings import StringColumn
from onoma.quantities import quantity
from onoma.terminology.name_rows import checked_name_rows
from onoma.types import BoolArray, RowArray

_Part = TypeVar("_Part")


class Linker:
    """Ranks the concepts of a terminology for mentions: a concept's score is that of its nearest name.

    Homonyms stay separate: each concept that has the matched name is an answer of its own, with the same score;
    `NameDictionary.rank_entries` says which comes first. The stages are those of `onoma.linking.pipeline`.

    `build_linker` makes a linker, `Linker.open` opens its folder. It needs no torch. Processes that open the same
    folder share its memory map, and several threads may use one linker, with the same answers.

    Attributes:
        path: Its folder.
        manifest: What it was made from, and how.
    """

    def __init__(self, path: Path, manifest: Manifest, components: Components) -> None:
        self.path, self.manifest, self._components = path, manifest, components

    @classmethod
    def open(cls, path: str | Path, *, database: str | None = None) -> Linker:
        """Open a linker's folder; its vectors are mapped, not read.

        Args:
            path: The folder.
            database: Connection string, for a linker with its vectors in PostgreSQL; unset: the value of the
                environment variable ONOMA_DATABASE.

        Raises:
            InputError: there is nothing at ``path``, or the database does not have the linker's table.
            ArtifactError: the folder is not a linker, is damaged, or has another format; or its table does.
            MismatchError: the encoder inside is not the one that made the vectors, or the table has other vectors.
            ConfigError: a database is needed and was not given, or was given and is not needed.
            UnavailableError: PostgreSQL, or what is needed to talk to it, is missing or refuses.
        """
        if isinstance(path, Linker):
            raise InputError(
                "a linker that is open is given where a linker's folder is asked for",
                path=path.path,
                fix="give its path; stages and filters go with an onoma.linking.Asking",
            )
        folder = checked_folder(path)
        manifest, components = read_while_unchanged(
            folder,
            lambda: open_manifest(folder),
            lambda manifest: open_components(folder, manifest, database=database),
        )
        return cls(folder, manifest, components)

    def __repr__(self) -> str:
        return (
            f"Linker({str(self.path)!r}: {quantity(self.n_concepts, 'concept')} by {quantity(self.n_names, 'name')}, "
            f"{self.encoder_name}, stages {', '.join(self.settings.stages)})"
        )

    def close(self) -> None:
        """Close the connection of a linker with its vectors in PostgreSQL; a later search opens it again.

        Other linkers have nothing to close.
        """
        close = getattr(self._components.index, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Never:
        raise InputError(
            "a linker is not copied or sent to another process",
            path=self.path,
            fix="open it there: Linker.open(path); processes share its memory map",
        )

    @property
    def dictionary(self) -> NameDictionary:
        """The names and concepts it knows, including those that a filter excludes from answers."""
        return self._components.dictionary

    @property
    def normalisation(self) -> str:
        """Preset by which names and mentions are normalised."""
        return self._components.dictionary.normalisation

    @property
    def settings(self) -> LinkerSettings:
        """Its stages, and what was learned for them."""
        return self._components.settings

    @property
    def reranker(self) -> Reranker | None:
        """The cross-encoder, if it has one."""
        return self._components.reranker

    @property
    def encoder(self) -> Encoder:
        """The encoder that turns mentions into vectors.

        Raises:
            InputError: this linker has only look-up and n-grams.
        """
        return self._built_with_encoder(self._components.encoder)

    @property
    def dense_search(self) -> DenseSearch:
        """The search of its texts by vectors, and these vectors.

        Raises:
            InputError: this linker has only look-up and n-grams.
        """
        return self._built_with_encoder(self._components.dense)

    @property
    def allowed_entries(self) -> BoolArray | None:
        """Which entries of its dictionary can be an answer, bool, shape (E,); unset: all."""
        return self._components.entries

    def encoding_with(self, encoder: Encoder) -> Linker:
        """The same linker with its encoder opened differently, e.g. with more threads, or in a wrapper that remembers.

        Raises:
            MismatchError: it is not the encoder that made the vectors.
            InputError: it is not an encoder.
        """
        check_opened(encoder)
        if encoder.fingerprint != self.encoder.fingerprint:
            raise other_encoder(self, encoder)
        return self._with(dataclasses.replace(self._components, encoder=encoder))

    def reranking_with(self, reranker: Reranker) -> Linker:
        """The same linker with its cross-encoder opened differently, e.g. one that remembers.

        Raises:
            MismatchError: it is another cross-encoder, or the linker has none. `onoma.linking.add_reranker` adds one.
            InputError: it is not a reranker.
        """
        if not isinstance(reranker, Reranker):
            raise InputError("a reranker that was opened is needed", found=repr(reranker), fix="Reranker.open(FOLDER)")
        own = self._components.reranker
        if own is None or reranker.fingerprint != own.fingerprint:
            has = "has none" if own is None else f"has {own.about.name}"
            raise MismatchError(f"{reranker.about.name} is not this linker's cross-encoder; it {has}. Add it first.")
        return self._with(dataclasses.replace(self._components, reranker=reranker))

    def remembering(self) -> Linker:
        """The same linker, which encodes, searches for and reranks each distinct mention only once.

        For mentions that are linked repeatedly with different settings (`tuned`). The results stay in memory.
        """
        return self._with(self._components.remembering())

    @property
    def n_concepts(self) -> int:
        """Concepts that can be an answer."""
        return self.dictionary.n_concepts if self._components.entries is None else len(self._concept_rows())

    @property
    def n_names(self) -> int:
        """Names by which they can be found: distinct normalised texts of each concept."""
        entries = self._components.entries
        return len(self.dictionary.entry_names) if entries is None else int(np.count_nonzero(entries))

    @property
    def n_texts(self) -> int:
        """Distinct normalised texts that can be found, each with one vector."""
        entries = self._components.entries
        if entries is None:
            return self.dictionary.n_texts
        return int(np.count_nonzero(np.logical_or.reduceat(entries, self.dictionary.entry_offsets[:-1])))

    @property
    def concept_ids(self) -> StringColumn:
        """Codes of all concepts that can be an answer."""
        if self._components.entries is None:
            return self.dictionary.concept_ids
        return StringColumn.from_strings(self.dictionary.concept_ids[int(row)] for row in self._concept_rows())

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages that it has; ``settings.stages`` are those that are on by default."""
        return self._components.stages

    @property
    def is_calibrated(self) -> bool:
        """Whether its answers have a confidence with the default stages."""
        return self._components.confidence is not None and self._components.confidence.stages == self.settings.stages

    @property
    def encoder_name(self) -> str:
        """The name of its encoder in tables."""
        return "no encoder" if self._components.encoder is None else self._components.encoder.name

    @property
    def fingerprint(self) -> str:
        """SHA-256 over everything in the folder that answers depend on: names, concepts, vectors, models, settings,
        prior.
        """
        return fingerprint(self.manifest, reranker=None if self.reranker is None else self.reranker.fingerprint)

    @property
    def fingerprint_of_names(self) -> str:
        """SHA-256 over the normalised names and their concepts, in order."""
        of_folder, entries = fingerprint_of_names(self.manifest), self._components.entries
        if entries is None:
            return of_folder
        return hashlib.sha256(of_folder.encode() + np.packbits(entries).tobytes()).hexdigest()

    def without(self, name_rows: Sequence[int] | RowArray) -> Linker:
        """The same linker as if some names were unknown to it, to measure how well it finds them.

        Args:
            name_rows: Rows of the terminology's table of names; see `NameDictionary.without`.

        Raises:
            InputError: these are no row numbers.
        """
        hidden = checked_name_rows(name_rows, None)
        return self._with(self._components.keeping(~np.isin(self.dictionary.entry_name_rows, hidden)))

    def only(
        self,
        *,
        semantic_types: str | Iterable[str] | None = None,
        sources: str | Iterable[str] | None = None,
        languages: str | Iterable[str] | None = None,
        under: str | Iterable[str] | None = None,
    ) -> Linker:
        """The same linker restricted to some of its names and concepts; see `onoma.linking.filters.Filters`.

        What does not pass is not a candidate: you still get as many answers as you request, if there are so many.
        Confidences were learned with all candidates: they are too high if the right concept does not pass.

        Args:
            semantic_types: The concept has one of these types or UMLS semantic groups.
            sources: The matched name has one of these sources.
            languages: The matched name has one of these languages; ``en`` includes ``en-GB``.
            under: Codes: the concept is one of these, or below one in the hierarchy.

        Raises:
            InputError: the linker was built without these facts, its terminology has no such type, source, language or
                concept (the nearest is named), or nothing passes.

        Example:
            >>> linker = Linker.open("medic")                                # doctest: +SKIP
            >>> linker.only(under="MESH:D009369").link(["ca of the breast"]) # doctest: +SKIP
        """
        filters = Filters.of(semantic_types=semantic_types, sources=sources, languages=languages, under=under)
        return self._with(self._components.filtered(filters)) if filters.are_set else self

    def tuned(self, settings: LinkerSettings) -> Linker:
        """The same linker with other settings; the folder is not changed.

        Raises:
            ConfigError: the linker does not have a stage that is on, or these are not `LinkerSettings`.
        """
        if not isinstance(settings, LinkerSettings):
            raise ConfigError(
                f"a linker is tuned by onoma.linking.LinkerSettings(stages=..., ...); found {type(settings).__name__}."
            )
        components = dataclasses.replace(self._components, settings=settings)
        components.check_settings()
        return self._with(components)

    @property
    def prior(self) -> RowArray | None:
        """How often each concept is meant, int64, shape (C,); None if unknown. See `onoma.linking.prior`."""
        return self._components.prior

    def with_prior(self, prior: npt.ArrayLike | None) -> Linker:
        """The same linker with other counts, in the form of `prior`; the folder is not changed.

        Args:
            prior: The counts. Their weight stays as it was learned, and so do confidences, which were fitted with the
                earlier counts (as in `onoma.linking.add_prior`). Unset: none; the stage "prior" is then off, and
                confidences that were fitted with it are not given.

        Raises:
            ShapeError: see `onoma.linking.prior.checked_prior`.
        """
        return self._with(self._components.with_prior(prior))

    def preparing(self, preparation: Preparation) -> Linker:
        """The same linker with stages before its own, such as replacing short forms and splitting composites.

        Raises:
            ConfigError: this is not a `Preparation`.

        Example:
            >>> linker = linker.preparing(Preparation(finder="schwartz-hearst"))    # doctest: +SKIP
            >>> linker.link(["FED"], contexts=["She has fish-eye disease (FED)."])  # doctest: +SKIP
        """
        if not isinstance(preparation, Preparation):
            raise ConfigError(
                "mentions are prepared by an onoma.linking.Preparation(finder=..., ...); found "
                f"{type(preparation).__name__}."
            )
        return self._with(dataclasses.replace(self._components, preparation=preparation))

    @property
    def preparation(self) -> Preparation:
        """The stages that mentions go through before the linker's own."""
        return self._components.preparation

    def prepare(
        self,
        mentions: Iterable[str],
        *,
        contexts: Iterable[str | None] | None = None,
        stages: Iterable[str] | None = None,
    ) -> list[PreparedMention]:
        """What `link` links in place of mentions: you can inspect it and then pass it to `link`.

        Args:
            mentions: Texts.
            contexts: The text around each mention.
            stages: Those that `link` will be given; a text that "loose" or "variants" finds counts as a name if that
                stage is on.
        """
        return self._components.prepare(mentions, contexts, self._components.chosen_stages(stages))

    @property
    def answers_nil(self) -> bool:
        """Whether a cross-encoder that is on may answer that no concept is meant."""
        reranker = self._components.reranker
        return "rerank" in self.settings.stages and reranker is not None and reranker.says_nil

    @property
    def reads_contexts(self) -> bool:
        """Whether a cross-encoder reads contexts with the default stages."""
        return self._components.reads_contexts(self.settings.stages)

    def check_contexts(self, stages: Iterable[str] | None = None) -> None:
        """Raise an `InputError`, as `link` does, if no stage would read contexts."""
        self._components.check_contexts(self._components.chosen_stages(stages))

    def exact_matcher(self) -> ExactMatcher:
        """Exact match alone over the same names, for comparison."""
        dictionary = (
            self.dictionary if self._components.entries is None else self.dictionary.keeping(self._components.entries)
        )
        return ExactMatcher(dictionary)

    def link(
        self,
        mentions: Iterable[str | PreparedMention],
        *,
        top_k: int = 5,
        contexts: Iterable[str | None] | None = None,
        stages: Iterable[str] | None = None,
        expected_types: str | Iterable[str] | None = None,
        no_concept_below: float | None = None,
    ) -> list[list[Link]]:
        """The ``top_k`` best concepts of each mention, best first.

        Equal mentions are linked once. Each mention gets ``top_k`` links, or as many as there are concepts; with
        look-up alone, only the concepts that have the mention as a name. A mention gets none if it is blank after
        normalisation, or if no search that is on can use it. Mentions longer than the encoder's longest name are
        truncated. A composite mention that was split gets the links of each part, one part after the other.

        Args:
            mentions: Any text, or what `prepare` made of all of them; order and number are kept.
            top_k: From 1.
            contexts: The text around each mention, read by the cross-encoder and, if short forms are looked for, for
                their definitions; None for a mention without one.
            stages: Those to use, of `stages`; unset: those of the settings.
            expected_types: Semantic types or UMLS groups that the mentions are more likely to have: among equal scores,
                concepts of these come first. Nothing is left out; see `only` for that.
            no_concept_below: Confidence below which there is no such concept: the mention gets no link. Unset: as in
                the settings, if the linker is calibrated for the stages.

        Raises:
            InputError: a mention is not text, ``top_k`` is less than 1, contexts do not fit the mentions or no stage
                reads them, or there is no such semantic type.
            ConfigError: there is no such stage, or the linker does not have it; or ``no_concept_below`` was given and
                the linker is not calibrated for the stages.

        Example:
            >>> linker = Linker.open("medic")                                     # doctest: +SKIP
            >>> linker.link(["heart attak"], stages=["exact", "sparse"], top_k=1) # doctest: +SKIP
        """
        top_k = checked_top_k(top_k)
        prepared, chosen, asked = questions_of_all(self._components, mentions, contexts, stages)
        least = threshold(self._components.confidence, chosen, no_concept_below)
        answers: dict[Question, list[Link]] = {}
        everything = itertools.chain.from_iterable(asked)
        for part, run in runs(self._components, everything, stages=chosen, top_k=top_k, expected_types=expected_types):
            for mention, answer in zip(part, run.answers(part), strict=True):
                answers[mention] = self._links(answer, top_k, least)
        return [
            [
                link if text == mention.original else dataclasses.replace(link, read_as=text)
                for text, part in zip(mention.parts, parts, strict=True)
                for link in answers.get(part, [])
            ]
            for mention, parts in zip(prepared, asked, strict=True)
        ]

    def explain(
        self,
        mention: str,
        *,
        top_k: int = 5,
        near_misses: int = 5,
        context: str | None = None,
        stages: Iterable[str] | None = None,
        expected_types: str | Iterable[str] | None = None,
        no_concept_below: float | None = None,
    ) -> Explanation:
        """Why `link` answers as it does: by which name and stage, with which scores; and what came close.

        A composite mention that was split is explained part by part.

        Args:
            mention: One mention.
            top_k: As in `link`.
            near_misses: How many concepts after the answer are shown too, if there are so many candidates.
            context: As in `link`.
            stages: As in `link`.
            expected_types: As in `link`.
            no_concept_below: As in `link`.

        Raises:
            InputError: as `link`.
            ConfigError: as `link`.
        """
        contexts = None if context is None else [context]
        top_k = checked_top_k(top_k)
        (prepared,), chosen, (asked,) = questions_of_all(self._components, [mention], contexts, stages)
        return explain_mention(
            prepared,
            asked,
            self._components,
            stages=chosen,
            top_k=top_k,
            near_misses=near_misses,
            expected=self._components.expected(expected_types),
            threshold=threshold(self._components.confidence, chosen, no_concept_below),
        )

    def threshold_for(self, precision: float, *, certainty: float | None = None) -> float:
        """The confidence at or above which this share of answers was right, on the mentions that it was calibrated on.

        Args:
            precision: The share, above 0, up to 1.
            certainty: How certain it is that the share is so large, from 0.5; see `onoma.linking.tuning.tune_linker`,
                whose certainty does not apply here.

        Raises:
            ConfigError: the linker is not calibrated.
            InputError: no confidence reaches it; the best one is named.
        """
        confidence = self._components.confidence
        if confidence is None:
            raise ConfigError(f"this linker is not calibrated, so that no precision can be asked for. {TUNE}")
        return confidence.calibration.threshold_for(precision, certainty=certainty)

    @property
    def development_confidence(self) -> float | None:
        """Mean confidence of the answers that it now gives to the mentions that it was calibrated on.

        Answers below its least confidence are left out, as in linking. Mentions whose mean is far from this one are
        unlike those. Unset: it has no confidence (see `is_calibrated`), has learned it from names, gives none of these
        answers, or gives others because some names are left out (`only`, `without`).
        """
        confidence = self._components.confidence
        is_of_names = "n_names" in self.manifest.config.get("tuning", {})
        if confidence is None or is_of_names or not self.is_calibrated or self._components.entries is not None:
            return None
        return confidence.calibration.development.mean_confidence(self.settings.no_concept_below or 0.0)

    def runs(
        self, mentions: Iterable[str], *, contexts: Iterable[str | None] | None = None, top_k: int
    ) -> Iterator[tuple[list[Question], Run]]:
        """Run the stages of the settings over distinct mentions, some at a time, for code that learns from intermediate
        results.

        Args:
            mentions: Any text; blank ones are left out.
            contexts: As in `link`.
            top_k: Concepts wanted for each.
        """
        top_k = checked_top_k(top_k)
        _, stages, asked = questions_of_all(self._components, mentions, contexts, None)
        everything = itertools.chain.from_iterable(asked)
        return runs(self._components, everything, stages=stages, top_k=top_k, spare=0)

    def _links(self, answer: Answer, top_k: int, least: float | None) -> list[Link]:
        if answer.is_nil or (answer.confidence is not None and least is not None and answer.confidence < least):
            return []
        links = self.dictionary.links(answer.ranked.take(slice(0, top_k)))
        return [dataclasses.replace(link, confidence=answer.confidence) if link.rank == 1 else link for link in links]

    def _built_with_encoder(self, part: _Part | None) -> _Part:
        if part is None:
            raise InputError(
                "this linker was built without an encoder",
                path=self.path,
                fix="build one with an encoder: onoma linker build -t TERMINOLOGY -e ENCODER -o LINKER",
            )
        return part

    def _with(self, components: Components) -> Linker:
        return Linker(self.path, self.manifest, components)

    def _concept_rows(self) -> RowArray:
        """Of the concepts that can be an answer, ascending."""
        return np.unique(self.dictionary.entry_concepts[self._components.entries])


def other_encoder(linker: Linker, encoder: Encoder) -> MismatchError:
    """The error for an encoder that has not the fingerprint of the linker's own."""
    own = linker.encoder.folder
    what = "another: their vectors cannot be compared. Build a linker with it (onoma linker build), or leave it out."
    if encoder.folder.weights_sha256 == own.weights_sha256:
        kept = "" if own.dimensions is None else f", and keep the first {own.dimensions} numbers of a vector"
        what = f"the same, opened otherwise: open it in {own.precision}, with its own pooling and max_tokens{kept}."
    return MismatchError(
        f"{linker.path} has the encoder {linker.encoder_name} ({linker.encoder.fingerprint[:12]}), and "
        f"{encoder.name} ({encoder.fingerprint[:12]}) is {what}"
    )
