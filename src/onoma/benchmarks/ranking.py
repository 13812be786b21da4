"""What a system is judged by: its candidates for every part of every query, ranked by encoder, baseline or linker."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from onoma.benchmarks.abstention import WISHED_PRECISIONS
from onoma.benchmarks.biosyn import Asked, DictionaryLine, Query
from onoma.benchmarks.candidates import Candidates, all_codes, as_candidates, best_lines, equal_lines, nearest_lines
from onoma.benchmarks.results import CONCEPTS
from onoma.codes import NO_CONCEPT, other_forms, other_forms_in_words
from onoma.encoders import Encoder
from onoma.errors import ConfigError, InputError
from onoma.linking import Asking, Linker
from onoma.linking.baselines import Baseline, SearchLinker
from onoma.types import CountProgress


@dataclass(frozen=True)
class Ranking:
    """Candidates of every part of every query, and what they were chosen from."""

    found: Candidates
    exact: Candidates
    known_ids: Set[str]
    n_dictionary: int
    model: dict[str, str]
    confidences: dict[Asked, float | None] | None = None
    """Of the first candidate of each part, if the linker is calibrated."""
    thresholds: dict[float, float] = field(default_factory=dict)
    """Confidence from which the linker's tuning had so large a share right."""
    no_concept_below: float | None = None
    """Confidence below which the linker gives no concept."""


def rank_with_encoder(
    encoder: Encoder,
    dictionary: Sequence[DictionaryLine],
    queries: Sequence[Query],
    *,
    k: int,
    sparse_weight: float | None,
    progress: CountProgress | None,
) -> Ranking:
    """By the cosine of names and mentions over the task's dictionary.

    Args:
        encoder: Of both.
        dictionary: The names.
        queries: The mentions.
        k: Candidates of each part.
        sparse_weight: What the cosine of character 1-2-grams is multiplied with before it is added; unset: not added.
        progress: Called with names encoded so far and in all.
    """
    texts = _distinct_parts(queries)
    return Ranking(
        found=nearest_lines(encoder, dictionary, texts, k=k, sparse_weight=sparse_weight or 0.0, progress=progress),
        exact=equal_lines(dictionary, texts, k=k, normalisation=encoder.folder.normalisation),
        known_ids=all_codes(ids_of(dictionary)),
        n_dictionary=len(dictionary),
        model={
            "kind": "encoder",
            "name": encoder.name,
            "fingerprint": encoder.fingerprint,
            "precision": encoder.precision,
            **({} if sparse_weight is None else {"sparse_weight": f"{sparse_weight:.4g}"}),
        },
    )


def weight_of_ngrams(encoder: Encoder) -> float:
    """What n-grams are worth beside the encoder's cosine."""
    weight = encoder.folder.sparse_weight
    if weight is None:
        raise ConfigError(
            f"{encoder.name} has no weight of n-grams: encoders that onoma train-biosyn trained have one, and "
            "onoma-mini. Leave n-grams out, or build a linker with --sparse and learn one (onoma linker tune)."
        )
    return weight


def rank_with_baseline(
    baseline: Baseline, dictionary: Sequence[DictionaryLine], queries: Sequence[Query], *, k: int
) -> Ranking:
    """By a baseline's own score over the task's dictionary, the ``k`` best of each part."""
    texts = _distinct_parts(queries)
    return Ranking(
        found=best_lines(baseline, dictionary, texts, k=k),
        exact=equal_lines(dictionary, texts, k=k, normalisation=baseline.normalisation),
        known_ids=all_codes(ids_of(dictionary)),
        n_dictionary=len(dictionary),
        model=_model_of(baseline),
    )


def _model_of(baseline: Baseline) -> dict[str, str]:
    return {
        "kind": "baseline",
        "name": baseline.name,
        "fingerprint": baseline.fingerprint,
        "settings": json.dumps(baseline.settings),
    }


def rank_concepts_with_baseline(
    baseline: Baseline, linker: Linker, queries: Sequence[Query], asking: Asking, *, k: int
) -> Ranking:
    """By all names of the linker: those that its filters leave out are no answers, and count in weights of words."""
    of_linker = {
        "stages (--stages)": asking.stages is not None,
        "expected types (--expect-type)": bool(asking.expected_types),
        "what mentions go through (--spelling)": linker.preparation.is_on,
    }
    if any(of_linker.values()):
        raise ConfigError(
            "a baseline that ranks a linker's concepts has its filters alone: leave out "
            f"{', '.join(what for what, is_given in of_linker.items() if is_given)}."
        )
    dictionary = linker.exact_matcher().dictionary
    if baseline.normalisation != dictionary.normalisation:
        raise ConfigError(
            f"the linker's names are normalised by the preset {dictionary.normalisation}, and the baseline would have "
            f"mentions normalised by {baseline.normalisation}: give it normalisation={dictionary.normalisation}."
        )
    known = _known_to(linker, queries, asking)
    texts = _distinct_parts(queries)
    answers = SearchLinker(baseline.search(dictionary.texts), dictionary).link(texts, top_k=k)
    return Ranking(
        found=as_candidates(texts, answers),
        exact=as_candidates(texts, linker.exact_matcher().link(texts, top_k=k)),
        known_ids=known,
        n_dictionary=linker.n_texts,
        model={**_model_of(baseline), "ranks": CONCEPTS, **_filters_of(asking)},
    )


def rank_with_linker(linker: Linker, queries: Sequence[Query], asking: Asking, *, k: int) -> Ranking:
    """With a linker that answers as it is asked, but for expected types.

    Raises:
        ConfigError: it splits composite mentions, or looks for short forms in contexts, of which there are none.
        InputError: it has none of the queries' concepts, or they have contexts, which it does not read.
    """
    if linker.preparation.composites:
        raise ConfigError(
            "a benchmark says itself which mentions are composite, and how: measure the linker without splitting them."
        )
    known = _known_to(linker, queries, asking)
    asked = list(dict.fromkeys(one for query in queries for one in query.asked))
    texts = [one if isinstance(one, str) else one[0] for one in asked]
    contexts = [None if isinstance(one, str) else one[1] for one in asked]
    if linker.preparation.finder is not None and not any(contexts):
        raise ConfigError(
            "this linker looks for short forms in contexts, and the queries have none: give own_task(context=COLUMN), "
            "or measure the linker without looking for them."
        )
    calibrated = linker.is_calibrated
    # What a tuned linker holds back as "no such concept" is ranked too: that it abstains is measured by itself. A
    # cross-encoder's NIL is an answer, wrong where there is a concept.
    links = linker.link(
        texts,
        top_k=k,
        contexts=contexts if any(contexts) else None,
        no_concept_below=0.0 if calibrated else None,
        expected_types=asking.expected_types,
    )
    first = {one: answers[0].confidence if answers else None for one, answers in zip(asked, links, strict=True)}
    return Ranking(
        found=as_candidates(asked, links),
        exact=as_candidates(asked, linker.exact_matcher().link(texts, top_k=k)),
        known_ids=known,
        n_dictionary=linker.n_texts,
        model={
            "kind": "linker",
            "name": linker.encoder_name,
            "fingerprint": linker.fingerprint,
            "stages": ", ".join(linker.settings.stages),
            "settings_sha256": _sha256_of_settings(linker),
            **(
                {"contexts": f"of {sum(query.context is not None for query in queries):,} queries"}
                if any(contexts)
                else {}
            ),
            **(
                {"names_in_use": f"{linker.n_names} of {len(linker.dictionary.entry_names)}"}
                if linker.allowed_entries is not None
                else {}
            ),
            **({"preparation": str(linker.preparation)} if linker.preparation.is_on else {}),
            **_filters_of(asking),
            **({"expected_types": ", ".join(asking.expected_types)} if asking.expected_types else {}),
        },
        confidences=first if calibrated else None,
        thresholds=_thresholds(linker) if calibrated else {},
        no_concept_below=linker.settings.no_concept_below if calibrated else None,
    )


def _known_to(linker: Linker, queries: Sequence[Query], asking: Asking) -> frozenset[str]:
    """Codes of what can be an answer, some of which must be among the queries'."""
    known = all_codes(linker.concept_ids)
    require_common_ids(
        queries,
        known,
        of=names_asked(asking),
        path=linker.path,
        fix="ask for less: what does not pass the filters is no candidate"
        if asking.filters.are_set
        else "build the linker from a terminology with the benchmark's kind of codes, e.g. from its own dictionary "
        "(onoma terminology import biosyn)",
    )
    return known


def names_asked(asking: Asking) -> str:
    """Whose names a linker chooses from, in words."""
    return "what passes the filters" if asking.filters.are_set else "the linker's terminology"


def _filters_of(asking: Asking) -> dict[str, str]:
    return {what: ", ".join(words) for what, words in vars(asking.filters).items() if words}


def _sha256_of_settings(linker: Linker) -> str:
    """Of the settings and counts in use, which need not be those in the folder."""
    counts = b"" if linker.prior is None else linker.prior.tobytes()
    return hashlib.sha256(linker.settings.model_dump_json().encode() + counts).hexdigest()


def _thresholds(linker: Linker) -> dict[float, float]:
    """Of the wished precisions that the linker's tuning reached."""
    found = {}
    for wish in WISHED_PRECISIONS:
        with contextlib.suppress(InputError):
            found[wish] = linker.threshold_for(wish)
    return found


def _distinct_parts(queries: Sequence[Query]) -> list[str]:
    return list(dict.fromkeys(part for query in queries for part in query.parts))


def ids_of(dictionary: Sequence[DictionaryLine]) -> set[str]:
    """All ids of its names, as they are."""
    return {concept_id for line in dictionary for concept_id in line.ids}


def require_common_ids(queries: Sequence[Query], known: Set[str], *, of: str, path: Path, fix: str) -> None:
    """Where nothing can be right the codes are of another kind, which an accuracy of 0 would not say."""
    gold = {concept_id for query in queries for concept_id in query.gold}
    if gold.issubset(NO_CONCEPT) and known.isdisjoint(gold):
        raise InputError("all mentions are of no concept", path=path, expected="some that mean one", fix="add some")
    if known.isdisjoint(gold):
        meant_by = other_forms(gold, known)
        raise InputError(
            f"{of} has none of the benchmark's concepts",
            path=path,
            expected=f"codes such as {', '.join(sorted(gold)[:3])}",
            found=", ".join(sorted(known)[:3]),
            fix=fix if not meant_by else f"{fix}; {other_forms_in_words(meant_by, where=of)}",
        )
