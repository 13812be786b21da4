"""Merge several terminologies into one.

Concepts with the same code become one. The first terminology (in the order given) that has it determines the status and
``replaced_by``, and the first that has a name for it the preferred name; names, semantic types, relations, definitions
and cross-references of all are combined. A name is not added again if an earlier terminology has it for the concept in
the same language, from the same source and with the same term type; the earlier one determines whether it is
suppressed. Concepts are in the order of the terminologies.

If a code means different things in two terminologies (two tables that both count 1, 2, 3), a prefix keeps the codes of
one apart. The report says how many codes were shared, and how many of those have no name in common.

Cross-references join concepts with different codes only on request; `onoma.terminology.merging.cross_references` has
the rules. The first of these concepts gives the joined one its code, and the codes of the others become
cross-references "exactMatch" to it (source "merge"), so that every code can still be found. ``replaced_by`` follows its
concept to the new code. Relations within one joined concept are left out, and successions that a merge closes to a
circle are dropped; both are counted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np

from onoma.artifacts import carried_origins, ensure_writable
from onoma.errors import ConfigError, InputError, check_several, checked_path, did_you_mean, one_of
from onoma.files.reading import Reading
from onoma.quantities import quantity
from onoma.terminology.code_keys import vocabulary_of
from onoma.terminology.given_folders import by_folder, check_places, folder_name, paths_of, vocabularies_by_folder
from onoma.terminology.merging.concepts import Concordance, MergeSource, concord
from onoma.terminology.merging.cross_references import JOINING_RELATIONS
from onoma.terminology.merging.tables import United, unite
from onoma.terminology.tables import KIND, TableCounts, write_terminology
from onoma.terminology.terminology import Terminology, as_terminology
from onoma.types import Progress, no_progress

MatchCodes: TypeAlias = Literal["prefixes", "exact"]
_SHOWN_REFUSED = 5


@dataclass(frozen=True)
class MergedPart:
    """What one terminology contributed.

    Attributes:
        path: Its folder.
        n_concepts: Concepts it has.
        n_shared: Of these, those whose code an earlier one has.
        n_joined: Of the others, those that a cross-reference joined to a concept with another code.
    """

    path: Path
    n_concepts: int
    n_shared: int
    n_joined: int


@dataclass(frozen=True)
class MergeReport(TableCounts):
    """What a merge did; ``str()`` is a text for people. Has the counts of `TableCounts` too.

    Attributes:
        path: The folder of the merged terminology.
        parts: The terminologies, in their order.
        n_shared: Codes that several terminologies have.
        n_strangers: Of these, those with names in several terminologies, and none in common (ignoring case).
        n_joined: Concepts that became part of one with another code.
        n_refused: References not followed, because they would have united two concepts of one terminology.
        refused: The first of them: code of the concept, and the code referred to, as it was compared.
        notes: Counts of what else is worth knowing.
        seconds: Wall time.
    """

    path: Path
    parts: tuple[MergedPart, ...]
    n_shared: int
    n_strangers: int
    n_joined: int
    n_refused: int
    refused: tuple[tuple[str, str], ...]
    notes: dict[str, int]
    seconds: float

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.counts_in_words()} in {self.seconds:.1f} s"]
        for part in self.parts:
            met = f"{part.n_shared:,} with a code of an earlier one" + (
                f", {part.n_joined:,} joined to one with another code" if self.n_joined or self.n_refused else ""
            )
            lines.append(f"  {part.path}: {quantity(part.n_concepts, 'concept')}, {met}")
        lines += [f"  {what}: {count:,}" for what, count in self.notes.items()]
        if self.n_strangers:
            lines.append(
                f"  warning: {self.n_strangers:,} of {self.n_shared:,} shared codes have no name in common; if they "
                "mean different things, keep them apart with --prefix NAME=..."
            )
        if self.n_refused:
            shown = "; ".join(f"{concept} to {code}" for concept, code in self.refused)
            lines.append(
                f"  {quantity(self.n_refused, 'reference')} not followed, where following would unite two concepts of "
                f"one terminology: {shown}{' ...' if self.n_refused > len(self.refused) else ''}"
            )
        return "\n".join(lines)


def merge_terminologies(
    terminologies: Sequence[Terminology | str | Path],
    out: str | Path,
    *,
    join_by_cross_references: Sequence[str] = (),
    match_codes: MatchCodes = "prefixes",
    prefixes: Mapping[str, str] | None = None,
    vocabularies: Mapping[str, str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> MergeReport:
    """Write several terminologies as one; the module says by which rules.

    Args:
        terminologies: Terminologies, or their folders; the first takes precedence.
        out: Where to write the merged folder. It appears complete or not at all.
        join_by_cross_references: Relations that make two concepts with different codes one: "exactMatch", "closeMatch",
            "xref", the more trusted first. None: only equal codes do.
        match_codes: How the code of a cross-reference finds a concept: "exact", as written; "prefixes", whatever the
            spelling of its prefix, see `onoma.terminology.code_keys`.
        prefixes: Name of a folder to the prefix to put before its codes, e.g. ``{"mine": "MINE:"}``.
        vocabularies: Name of a folder to the vocabulary of its codes without a prefix, e.g. ``{"ours": "MESH"}``, so
            that "MESH:D009203" finds the concept "D009203". The codes stay as they are. For folders imported from a
            format with such codes (UMLS, MeSH, ...) it is known.
        overwrite: Replace a terminology at ``out``.
        progress: Called with (names done, names in all, what is done).

    Raises:
        InputError: there is nothing to merge, a folder is given twice, or ``out`` is in one of them.
        ConfigError: an option has a value that is not allowed.
        ArtifactError: a folder is not a complete terminology, or ``out`` is taken.
    """
    started = time.perf_counter()
    check_several(terminologies, "terminologies")
    paths = paths_of(terminologies)
    if not paths:
        raise InputError("there is nothing to merge", expected="terminology folders")
    check_places(paths, checked_path(out))
    relations = _checked_relations(join_by_cross_references)
    one_of(match_codes, get_args(MatchCodes), "match_codes")
    if not relations and (vocabularies or match_codes == "exact"):
        raise ConfigError(
            "How codes are matched matters only if cross-references join concepts; say by which (--join)."
        )
    if vocabularies and match_codes == "exact":
        raise ConfigError("Codes that are matched exactly take no vocabulary: it would be a prefix to them.")
    prefix_of = by_folder(prefixes or {}, paths, "prefix")
    named_vocabulary = vocabularies_by_folder(vocabularies or {}, paths)
    ensure_writable(out, KIND, overwrite=overwrite)
    sources = []
    for path, terminology in zip(paths, map(as_terminology, terminologies), strict=True):
        prefix = prefix_of.get(path, "")
        known = None if prefix else vocabulary_of(terminology.manifest.config)
        sources.append(MergeSource(terminology, prefix, named_vocabulary.get(path, known), match_codes == "prefixes"))
    reading = Reading(progress=progress or no_progress)
    concordance = concord(sources, relations)
    united = unite(concordance, reading)
    write_terminology(
        out,
        united.tables,
        config={
            "merged": [folder_name(path) for path in paths],
            "join_by_cross_references": list(relations),
            "match_codes": match_codes,
            "prefixes": {folder_name(path): prefix for path, prefix in prefix_of.items()},
            "vocabularies": {folder_name(path): vocabulary for path, vocabulary in named_vocabulary.items()},
            **carried_origins(*(source.terminology.manifest.config for source in sources)),
        },
        parents=[source.terminology.manifest.as_parent() for source in sources],
        overwrite=overwrite,
    )
    return _report(Path(out), concordance, united, reading, time.perf_counter() - started)


def _checked_relations(relations: Sequence[str]) -> tuple[str, ...]:
    check_several(relations, "join_by_cross_references")
    relations = tuple(relations)
    for relation in relations:
        if relation not in JOINING_RELATIONS:
            raise ConfigError(
                f"Concepts cannot be joined by '{relation}'.{did_you_mean(relation, JOINING_RELATIONS)} "
                f"What may say that two codes are one concept: {', '.join(JOINING_RELATIONS)}."
            )
    return tuple(dict.fromkeys(relations))


def _report(path: Path, concordance: Concordance, united: United, reading: Reading, seconds: float) -> MergeReport:
    code_of, codes = concordance.code_of, concordance.codes
    is_first = np.zeros(len(code_of), np.bool_)
    is_first[np.unique(code_of, return_index=True)[1]] = True
    is_joined = np.isin(code_of, concordance.joined_codes)
    parts = []
    for source, start, end in zip(concordance.sources, concordance.offsets, concordance.offsets[1:], strict=False):
        is_new = is_first[start:end]
        n_joined = int((is_new & is_joined[start:end]).sum())
        parts.append(MergedPart(source.terminology.path, int(end - start), int((~is_new).sum()), n_joined))
    refused = [] if concordance.joining is None else list(concordance.joining.refused.iter_rows())
    notes = dict(reading.notes)
    if concordance.joining is not None and concordance.joining.n_to_retired:
        notes["cross-references to retired concepts, not followed"] = concordance.joining.n_to_retired
    if concordance.joining is not None and not len(concordance.joined_codes):
        notes["concepts that cross-references joined"] = 0  # it was asked for; the codes may want a vocabulary
    return MergeReport(
        path=path,
        parts=tuple(parts),
        **united.tables.counts(),
        n_shared=int(concordance.is_shared.sum()),
        n_strangers=united.n_strangers,
        n_joined=len(concordance.joined_codes),
        n_refused=len(refused),
        refused=tuple((str(codes[concept]), key) for concept, key in refused[:_SHOWN_REFUSED]),
        notes=notes,
        seconds=seconds,
    )
