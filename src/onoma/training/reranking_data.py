"""What a reranker is trained and measured on: annotated mentions with the candidates that a linker finds for them.

The wrong candidates are hard negatives by themselves: what the linker takes for the mention's concept, or nearly.

A mention without a right candidate teaches that none is meant, NIL, if that is to be learned; it teaches nothing else.
Whether the linker does not have the concept or only finds it too far down makes no difference there: the model sees the
candidates, and of both it must not take one. In what is measured it does make one: NIL is the right answer to mentions
of concepts that the linker does not have (`without_concept`).

A training mention that is a name of the linker, spelt alike, is found by look-up, and from such mentions a model
learns only to compare letters. If `find_candidates` is asked to, it is therefore linked as if nothing in the linker
were called so: its concept has to be found by another name, as that of an unknown mention has to. Hiding is done for a
part of the mentions at a time, so that a mention loses its own name and, of the other mentions' names, only those of
its part.

Shapes: M mentions, C candidates over all of them; those of mention ``i`` stand at ``offsets[i]:offsets[i + 1]``, in the
order of the linker.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from onoma.artifacts.arrays import hash_arrays
from onoma.codes import codes_of_concept, meant_codes, other_forms, other_forms_in_words
from onoma.encoders.cross_encoder_tokens import PairTokeniser, candidate_text
from onoma.errors import ConfigError, InputError
from onoma.linking import Link, Linker, MentionLinker
from onoma.linking.variants import variants_of
from onoma.pairs import NameStore
from onoma.terminology import normalise
from onoma.types import BoolArray, Progress, RowArray, Tell

OwnNames: TypeAlias = Literal["hide", "keep", "both"]
"""What becomes of the name of a training mention that is spelt like it; see `find_candidates`."""

N_PARTS = 8
"""Parts into which mentions whose names are hidden are divided."""

_LOOSE = "loose"
"""The looser look-up and its preset."""
_MENTIONS_AT_ONCE = 1024


@runtime_checkable
class ConceptLinker(MentionLinker, Protocol):
    """A linker that says which concepts it has; `onoma.linking.Linker` is one."""

    @property
    def concept_ids(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Mentions with their candidates."""

    mentions: list[str]
    """M texts."""
    contexts: list[str | None] | None
    """Of each mention, where it stands; None: nothing is known of any."""
    offsets: RowArray
    """int64, shape (M + 1,)."""
    names: list[str]
    """What is read of each of the C candidates."""
    first_scores: npt.NDArray[np.float64]
    """The linker's, shape (C,)."""
    is_right: BoolArray
    """Whether a candidate is one of the mention's concepts, shape (C,)."""
    n_hits: RowArray
    """How many of a mention's candidates look-up found, shape (M,): they come first, and in use stay there."""

    def __len__(self) -> int:
        return len(self.mentions)

    def telling(self, *, nil: bool = False) -> Candidates:
        """The mentions that there is something to learn of: those with a right candidate and a wrong one.

        Args:
            nil: That none is meant is learned too: then all that have a candidate.
        """
        n_right, n_all = self._n_right(), np.diff(self.offsets)
        kept = n_all > 0 if nil else (n_right > 0) & (n_right < n_all)
        return self._only(np.flatnonzero(kept).tolist())

    def n_without_right(self) -> int:
        """Mentions of which no candidate is right."""
        return int((self._n_right() == 0).sum())

    def _n_right(self) -> RowArray:
        return np.diff(np.concatenate([[0], self.is_right.cumsum()])[self.offsets])

    def _only(self, rows: list[int]) -> Candidates:
        kept = np.concatenate(
            [np.arange(self.offsets[row], self.offsets[row + 1]) for row in rows] or [np.empty(0, int)]
        )
        return Candidates(
            mentions=[self.mentions[row] for row in rows],
            contexts=None if self.contexts is None else [self.contexts[row] for row in rows],
            offsets=np.concatenate([[0], np.diff(self.offsets)[rows].cumsum()]).astype(np.int64),
            names=[self.names[place] for place in kept.tolist()],
            first_scores=self.first_scores[kept],
            is_right=self.is_right[kept],
            n_hits=self.n_hits[rows],
        )


def find_candidates(
    linker: MentionLinker,
    mentions: pl.DataFrame,
    *,
    depth: int,
    text: Literal["matched", "both"],
    own_names: OwnNames = "keep",
    progress: Progress | None = None,
) -> Candidates:
    """Link annotated mentions.

    Args:
        linker: Finds the candidates.
        mentions: Columns ``mention`` and ``concept_id`` (String), ``|`` between the codes of a mention, and perhaps
            ``context``.
        depth: Candidates of a mention, at most.
        text: What is read of a candidate, see `onoma.encoders.cross_encoder_tokens.candidate_text`.
        own_names: What becomes of mentions that are a name of the linker, spelt alike after normalisation (that of its
            looser look-up too, where that is on): they are linked as if nothing was called so ("hide"), as any other
            ("keep"), or once in each way ("both").
        progress: Called with (mentions linked, mentions in all, what).

    Returns:
        One entry for each row of ``mentions``, in their order; with "both" the hidden ones follow.

    Raises:
        ConfigError: names shall be hidden, and the linker cannot be asked without them.
    """
    texts = mentions["mention"].to_list()
    ways = [(linker, list(range(len(texts))))]
    if own_names != "keep":
        ways = _ways_without_own_names(linker, texts, keep_too=own_names == "both")
    in_all, done = sum(len(rows) for _, rows in ways), 0
    found: list[tuple[int, Sequence[Link], int]] = []
    for asked, rows in ways:
        for begin in range(0, len(rows), _MENTIONS_AT_ONCE):
            part = rows[begin : begin + _MENTIONS_AT_ONCE]
            mentioned = [texts[row] for row in part]
            links = asked.link(mentioned, top_k=depth)
            found += zip(part, links, _n_looked_up(asked, mentioned, links), strict=True)
            done += len(part)
            if progress is not None:
                progress(done, in_all, "finding candidates")
    if own_names == "hide":
        found.sort(key=lambda one: one[0])
    # A linker that does not say which concepts it has shows those that it finds.
    found_ids = {link.concept_id for _, links, _ in found for link in links}
    concept_ids = set(linker.concept_ids) if isinstance(linker, ConceptLinker) else found_ids
    codes = [meant_codes(label, concept_ids) for label in mentions["concept_id"].to_list()]
    contexts = mentions["context"].to_list() if "context" in mentions.columns else None
    return Candidates(
        mentions=[texts[row] for row, _, _ in found],
        contexts=None if contexts is None else [contexts[row] for row, _, _ in found],
        offsets=np.concatenate([[0], np.cumsum([len(links) for _, links, _ in found])]).astype(np.int64),
        names=[
            candidate_text(link.matched_name, link.preferred_name, both=text == "both")
            for _, links, _ in found
            for link in links
        ],
        first_scores=np.array([link.score for _, links, _ in found for link in links], np.float64),
        is_right=np.array(
            [not codes_of_concept(link.concept_id).isdisjoint(codes[row]) for row, links, _ in found for link in links],
            np.bool_,
        ),
        n_hits=np.array([n_hits for _, _, n_hits in found], np.int64),
    )


def other_forms_of(linker: MentionLinker, mentions: pl.DataFrame) -> str:
    """What is to be said of codes of mentions that the linker has in another form; blank if there are none."""
    if not isinstance(linker, ConceptLinker):
        return ""
    concept_ids = set(linker.concept_ids)
    codes = {code for label in mentions["concept_id"].to_list() for code in meant_codes(label, concept_ids)}
    found = other_forms(codes, {code for concept_id in concept_ids for code in codes_of_concept(concept_id)})
    return other_forms_in_words(found, where="the linker") if found else ""


def without_concept(linker: MentionLinker, mentions: pl.DataFrame) -> BoolArray:
    """Whether a linker has none of a mention's concepts, so that the right answer is NIL, shape (n,).

    Args:
        linker: Says which concepts it has.
        mentions: As in `find_candidates`; any code that the linker does not have will do for "no concept".

    Raises:
        ConfigError: it does not say.
    """
    if not isinstance(linker, ConceptLinker):
        raise ConfigError(
            "this linker does not say which concepts it has (concept_ids), so that nobody knows for which development "
            "mentions NIL is right; set nil=false, or train without development mentions."
        )
    concept_ids = set(linker.concept_ids)
    codes = [meant_codes(label, concept_ids) for label in mentions["concept_id"].to_list()]
    wanted = set().union(*codes)
    known = {code for concept_id in concept_ids for code in codes_of_concept(concept_id) if code in wanted}
    return np.array([known.isdisjoint(of_mention) for of_mention in codes], np.bool_)


def check_concepts(
    linker: MentionLinker, tables: Mapping[str, pl.DataFrame], *, nil: bool, tell: Tell
) -> dict[str, BoolArray | None]:
    """For which mentions of each development set NIL is right, where that is to be learned; tells of unknown concepts.

    Raises:
        InputError: the linker has the concept of none of a set, and NIL is no answer.
        ConfigError: NIL is to be learned, and the linker does not say which concepts it has.
    """
    is_unknown: dict[str, BoolArray] = {}
    if nil or isinstance(linker, ConceptLinker):
        is_unknown = {name: without_concept(linker, data) for name, data in tables.items()}
    if nil:
        if any(of_set.any() for of_set in is_unknown.values()):
            return {**is_unknown}
        if tables:
            tell("the linker has the concepts of all development mentions, so that NIL will never be its answer")
        return dict.fromkeys(tables)
    for name, of_set in is_unknown.items():
        first = tables[name]["concept_id"].to_list()[int(of_set.argmax())]
        if of_set.all():
            raise InputError(
                "the linker has the concept of none of the development mentions",
                field="development",
                found=f"{name}: {first}",
                fix="give mentions that were annotated with the linker's codes"
                + (f"; {said}" if (said := other_forms_of(linker, tables[name])) else ""),
            )
        if of_set.any():
            tell(
                f"{name}: {of_set.sum():,} of {len(of_set):,} development mentions mean a concept that the linker does "
                f"not have ({first}); they count as wrong"
            )
    return dict.fromkeys(tables)


def _n_looked_up(linker: MentionLinker, mentions: Sequence[str], found: Sequence[Sequence[Link]]) -> list[int]:
    """How many of the first links of each mention are what look-up found."""
    if not isinstance(linker, Linker) or not linker.settings.look_ups:
        return [0] * len(mentions)
    depth = max(1, *map(len, found))
    looked_up = linker.link(mentions, top_k=depth, stages=linker.settings.look_ups)
    return [_n_equal(hits, links) for hits, links in zip(looked_up, found, strict=True)]


def _n_equal(hits: Sequence[Link], links: Sequence[Link]) -> int:
    """With how many links of one list another begins."""
    pairs = zip(hits, links, strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0].concept_id == pair[1].concept_id, pairs)))


def _ways_without_own_names(
    linker: MentionLinker, texts: Sequence[str], *, keep_too: bool
) -> list[tuple[MentionLinker, list[int]]]:
    """Which linker is asked for which mentions."""
    if not isinstance(linker, Linker):
        raise ConfigError(
            "this linker cannot be asked as if it did not know some names, so the names of training mentions cannot be "
            "hidden from their candidates; set own_names=keep."
        )
    is_loose = _LOOSE in linker.settings.look_ups
    has_variants = "variants" in linker.settings.look_ups
    written = [[text, *(variant.text for variant in variants_of(text) if has_variants)] for text in texts]
    asked = [
        [_looked_up_as(normalise(way, linker.normalisation), loosely=is_loose) for way in ways] for ways in written
    ]
    rows_of_text: dict[str, list[int]] = {way: [] for ways in asked for way in ways}
    for row, name in enumerate(linker.dictionary.texts):
        if (text := _looked_up_as(name, loosely=is_loose)) in rows_of_text:
            rows_of_text[text].append(row)
    own = {row: tuple(ways) for row, ways in enumerate(asked) if any(rows_of_text[way] for way in ways)}
    part_of_text = {text: place % N_PARTS for place, text in enumerate(dict.fromkeys(own.values()))}
    ways: list[tuple[MentionLinker, list[int]]] = [
        (linker, [row for row in range(len(texts)) if keep_too or row not in own])
    ]
    offsets, name_rows = linker.dictionary.entry_offsets, linker.dictionary.entry_name_rows
    for part in range(N_PARTS):
        rows = [row for row, text in own.items() if part_of_text[text] == part]
        if rows:
            text_rows = {text_row for row in rows for way in own[row] for text_row in rows_of_text[way]}
            entries = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in sorted(text_rows)])
            ways.append((linker.without(np.asarray(name_rows[entries], np.int64)), rows))
    return ways


def _looked_up_as(text: str, *, loosely: bool) -> str:
    """What look-up compares of a normalised text."""
    return (normalise(text, _LOOSE) if loosely else "") or text


@dataclass(frozen=True, slots=True, eq=False)
class TokenisedCandidates:
    """Candidates as a model reads them."""

    store: NameStore
    """Their distinct pairs."""
    rows: RowArray
    """Pair of each candidate in the store, shape (C,)."""
    offsets: RowArray
    """int64, shape (M + 1,)."""
    first_scores: npt.NDArray[np.float64]
    """The linker's, shape (C,)."""
    is_right: BoolArray
    """Whether a candidate is a right one, shape (C,)."""
    n_hits: RowArray
    """How many of a mention's candidates look-up found, shape (M,)."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all of it."""
        digest = hashlib.sha256()
        store = self.store
        assert store.types is not None  # it holds pairs
        hash_arrays(
            digest,
            store.offsets,
            store.ids,
            store.types,
            self.rows,
            self.offsets,
            self.first_scores,
            self.is_right,
            self.n_hits,
        )
        return digest.hexdigest()


def tokenise_candidates(candidates: Candidates, tokeniser: PairTokeniser) -> TokenisedCandidates:
    """Tokenise both sides of all pairs.

    Args:
        candidates: With contexts if, and only if, the tokeniser marks mentions in them.
        tokeniser: Of the model.
    """
    contexts = candidates.contexts or [None] * len(candidates)
    sides: dict[tuple[str, str | None], int] = {}
    places = [sides.setdefault(side, len(sides)) for side in zip(candidates.mentions, contexts, strict=True)]
    left_rows = np.repeat(np.array(places, np.int64), np.diff(candidates.offsets))
    names: dict[str, int] = {}
    right_rows = np.array([names.setdefault(name, len(names)) for name in candidates.names], np.int64)
    codes, rows = np.unique(left_rows * max(1, len(names)) + right_rows, return_inverse=True)
    left = tokeniser.mentions(
        [mention for mention, _ in sides],
        [context for _, context in sides] if candidates.contexts is not None else None,
    )
    right = tokeniser.names(list(names))
    pairs = tokeniser.pairs(left, codes // max(1, len(names)), right, codes % max(1, len(names)))
    return TokenisedCandidates(
        store=NameStore(pairs.offsets, pairs.ids, pairs.types),
        rows=rows.reshape(-1).astype(np.int64),
        offsets=candidates.offsets,
        first_scores=candidates.first_scores,
        is_right=candidates.is_right,
        n_hits=candidates.n_hits,
    )


def distinct_mentions(mentions: pl.DataFrame) -> pl.DataFrame:
    """Annotations once each: what many documents repeat is learned from once.

    Raises:
        InputError: there is none.
    """
    if mentions.is_empty():
        raise InputError("there are no mentions to train on", field="mentions")
    return mentions.unique(maintain_order=True)
