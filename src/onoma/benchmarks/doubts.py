"""Why figures may not be what they are taken for: other files than the published ones, codes of another form, mentions
that a linker has learned from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from onoma.benchmarks.biosyn import Query
from onoma.benchmarks.tasks import TASKS
from onoma.codes import other_forms, other_forms_in_words
from onoma.encoders import Encoder
from onoma.linking import Linker
from onoma.linking.development import trained_on
from onoma.pairs.mentions import mentions_fingerprint

_EXPECTED_COVERAGE = 0.95
"""Share of queries whose concept is among the names, below which that is remarked on."""
_TOO_HIGH = "the figures are higher than for others"
_SHOWN = 3


def doubts_of_files(task: str, split: str, *, n_queries: int, n_names: int | None) -> Iterator[str]:
    """Why the files may not be those of the task, if their numbers of queries or names say so.

    Args:
        task: Name of the task; of one that is not Onoma's nothing is known.
        split: What of it was read.
        n_queries: Queries in its files.
        n_names: Lines of its dictionary, if that was read.
    """
    published = TASKS.get(task)
    if published is None:
        return
    expected = published.n_queries.get(split)
    if n_queries != expected:
        others = [name for name, other in TASKS.items() if name != task and n_queries == other.n_queries.get(split)]
        if others:
            yield f"{n_queries:,} queries are those of {others[0]}: are these the files of {task}?"
        elif expected is not None:
            yield f"the published files of {task}, {split}, have {expected:,} queries, these {n_queries:,}"
    expected = published.n_names.get(split)
    if n_names is not None and expected is not None and n_names != expected:
        yield (
            f"the published dictionary of {task}, {split}, has {expected:,} names, this one {n_names:,}: figures "
            "over it are not comparable with published ones"
        )


def unknown_codes(queries: Sequence[Query], known: Set[str]) -> dict[str, int]:
    """Codes of the queries none of whose codes are among the names, and in how many of these each stands; sorted."""
    found = Counter(code for query in queries if known.isdisjoint(query.gold) for code in query.gold)
    return dict(sorted(found.items()))


def doubts_of_codes(unknown: Mapping[str, int], coverage: float, known: Set[str], *, of: str) -> Iterator[str]:
    """What is to be said where many queries can have no right answer, or their codes have another form.

    Args:
        unknown: See `unknown_codes`.
        coverage: Share of queries with a code that is among the names.
        known: The names' codes.
        of: What the names are of, such as "the dictionary".
    """
    if coverage < _EXPECTED_COVERAGE:
        shown = ", ".join(sorted(unknown, key=lambda code: -unknown[code])[:_SHOWN])
        share = f"{100 * (1 - coverage):.1f} %"
        yield (
            f"{of} lacks the concepts of {share} of the queries, such as {shown}: these count as wrong (if codes are "
            "retired: --successors TERMINOLOGY takes what has replaced them)"
        )
    if found := other_forms(unknown, known):
        yield other_forms_in_words(found, where=of).replace("their codes", "the queries' codes", 1)


def doubts_of_learning(linker: Linker, queries: Sequence[Query]) -> Iterator[str]:
    """Whether a linker, or what is in it, has learned from these very mentions, composite ones aside."""
    if not {"dense", "sparse"}.intersection(linker.settings.stages):
        return  # look-up learns nothing but the order of equal names
    measured = _fingerprint_of(queries)
    learned = {"tuning": "was tuned on", "prior": "has counted"}
    for key, what in learned.items():
        if linker.manifest.config.get(key, {}).get("mentions_fingerprint") == measured:
            yield f"the linker {what} these very mentions: {_TOO_HIGH}"
    for what in trained_on(linker, linker.settings.stages, measured):
        yield f"{what} was trained on these very mentions: {_TOO_HIGH}"


def doubts_of_training(encoder: Encoder, queries: Sequence[Query]) -> Iterator[str]:
    """Whether an encoder was trained on these very mentions, composite ones aside."""
    if _fingerprint_of(queries) in encoder.folder.trained_mentions:
        yield f"{encoder.name} was trained on these very mentions: {_TOO_HIGH}"


def _fingerprint_of(queries: Sequence[Query]) -> str:
    return mentions_fingerprint(query.text for query in queries if len(query.parts) == 1)
