"""Add synonyms from other terminologies to your own concepts.

A list of local codes often has one name for each, and people use other words. If a concept of another terminology
matches one of yours (`onoma.terminology.enriching.matching` says when), its other names are added to yours, with their
source (the name of the folder, if no source is given). Nothing else changes: no concept, code, relation or definition
is added, and preferred names stay. Left out:

* concepts of the other terminology that match several of yours, or match only by a code to which several concepts refer
  (counted);
* synonyms that the other terminology calls broad, narrow or related: they mean something else;
* names that your terminology already has, for this active concept or another, in use or suppressed, and names that
  differ from one of another concept only in what ``words`` ignores;
* names that would go to several concepts. If two terminologies have a name, the first decides where it belongs.

A concept may match several of another terminology, if its names do. Added names match nothing further. Retired
concepts, including your own, and suppressed names of the others are ignored.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from onoma.artifacts import carried_origins, ensure_writable
from onoma.errors import ConfigError, InputError, check_several, checked_path
from onoma.quantities import quantity
from onoma.terminology.code_keys import vocabulary_of
from onoma.terminology.enriching.matching import (
    EVIDENCE,
    KEY,
    LEXICAL_KEY,
    UNDETERMINED,
    Compared,
    Evidence,
    Matches,
    checked_evidence,
    match_concepts,
)
from onoma.terminology.given_folders import check_places, folder_name, paths_of, vocabularies_by_folder
from onoma.terminology.tables import KIND, NAMES, TerminologyTables, of_languages, write_terminology
from onoma.terminology.terminology import Terminology, as_terminology
from onoma.types import Progress, no_progress

MATCHES = pl.Schema(
    {
        "concept_id": pl.String(),
        "preferred_name": pl.String(),
        "terminology": pl.String(),
        "other_id": pl.String(),
        "other_name": pl.String(),
        "evidence": pl.String(),
        "is_used": pl.Boolean(),
        "added": pl.List(pl.String()),
    }
)
"""An own concept, and one of another terminology (folder, code, preferred name) that is it, by what `Evidence`; whether
it was used, which it is not if it stands for several; the names that it gave."""


@dataclass(frozen=True)
class EnrichingPart:
    """What one terminology contributed.

    Attributes:
        path: Its folder.
        n_matched: Own concepts that match one of its concepts.
        n_matched_by: Their number by the kind of evidence that decided, in the order of `EVIDENCE`.
        n_ambiguous: Its concepts that match several own ones, and gave nothing.
        n_shared: Its concepts that match only by a code to which several concepts refer; they gave nothing.
        n_added: Names added from it.
    """

    path: Path
    n_matched: int
    n_matched_by: dict[Evidence, int]
    n_ambiguous: int
    n_shared: int
    n_added: int


@dataclass(frozen=True)
class EnrichReport:
    """What was added; ``str()`` is a text for people.

    Attributes:
        path: The folder of the enriched terminology.
        parts: The terminologies that gave names, in their order.
        n_concepts: Own concepts, as many as before.
        n_enriched: Of these, those that got a name.
        n_names: Names there are now.
        n_added: Of these, the new ones.
        n_contested: Names that were not added, because they would have gone to several concepts.
        n_inexact: Names that were not added, because the others call them broad, narrow or related.
        matches: Which concepts were matched, a row each, columns `MATCHES`: by the order of own concepts, then of
            terminologies, then of their concepts.
        seconds: Wall time.
    """

    path: Path
    parts: tuple[EnrichingPart, ...]
    n_concepts: int
    n_enriched: int
    n_names: int
    n_added: int
    n_contested: int
    n_inexact: int
    matches: pl.DataFrame
    seconds: float

    def figures(self) -> dict[str, object]:
        """All but the matches, JSON-serialisable."""
        parts = [{**vars(part), "path": str(part.path)} for part in self.parts]
        figures = {name: value for name, value in vars(self).items() if name != "matches"}
        return {**figures, "path": str(self.path), "parts": parts}

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {quantity(self.n_concepts, 'concept')}, {quantity(self.n_names, 'name')}, "
            f"{self.n_added:,} of them new, for {quantity(self.n_enriched, 'concept')}, in {self.seconds:.1f} s"
        ]
        for part in self.parts:
            by = ", ".join(f"{n:,} by {evidence}" for evidence, n in part.n_matched_by.items() if n)
            ambiguous = f"; {part.n_ambiguous:,} of its concepts match several, left out" if part.n_ambiguous else ""
            shared = (
                f"; {part.n_shared:,} match only by a code that several refer to, left out" if part.n_shared else ""
            )
            lines.append(
                f"  {part.path}: has {part.n_matched:,} of the concepts{f' ({by})' if by else ''}; "
                f"{quantity(part.n_added, 'name')} added{ambiguous}{shared}"
            )
        if self.n_contested:
            lines.append(f"  names that would have gone to several concepts, not added: {self.n_contested:,}")
        if self.n_inexact:
            lines.append(f"  names that the others call broad, narrow or related, not added: {self.n_inexact:,}")
        if not self.n_added and any(part.n_matched for part in self.parts):
            others = "all but these" if self.n_contested or self.n_inexact else "the other names"
            lines.append(f"  nothing was added: the concepts have {others} already")
        elif not self.n_added:
            lines.append(
                "  warning: nothing was added; check that names and languages are those of the other terminology, and "
                "--vocabulary if codes have no prefix"
            )
        return "\n".join(lines)


def enrich_terminology(
    terminology: Terminology | str | Path,
    others: Sequence[Terminology | str | Path],
    out: str | Path,
    *,
    by: Sequence[str] = EVIDENCE,
    languages: Sequence[str] | None = None,
    vocabularies: Mapping[str, str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> EnrichReport:
    """Write a terminology with the synonyms that others have for its concepts; the module says which.

    Args:
        terminology: Your own, or its folder.
        others: Terminologies that give names, or their folders; among names that say the same, the first one's are
            added.
        out: Where to write the enriched folder. It appears complete or not at all.
        by: What counts as evidence that two concepts are the same, some of `EVIDENCE`.
        languages: BCP 47 tags of the names to add; ``en`` includes ``en-GB``, and names without a stated language are
            always included. Unset: all.
        vocabularies: Name of a folder to the vocabulary of its codes without a prefix, e.g. ``{"ours": "SNOMEDCT"}``,
            so that cross-references find them. Unset: as implied by the format that it was imported from, if it is
            (`onoma.terminology.code_keys`).
        overwrite: Replace a terminology at ``out``.
        progress: Called with (terminologies done, terminologies in all, what is done).

    Raises:
        InputError: there is no other terminology, a folder is given twice, ``out`` is in one of them, or none of them
            has a name in a requested language.
        ConfigError: ``by`` names nothing, or what is not in `EVIDENCE`; a vocabulary is given for no folder here, or
            codes are not compared.
        ArtifactError: a folder is not a complete terminology, or ``out`` is taken.
    """
    started = time.perf_counter()
    tell = progress or no_progress
    check_several(others, "others")
    paths = paths_of([terminology, *others])
    if len(paths) == 1:
        raise InputError("there is no terminology to take names from", expected="terminology folders")
    evidence = checked_evidence(by)
    if vocabularies and "code" not in evidence:
        raise ConfigError(
            "Of which vocabulary codes are matters only if codes are compared (--by code); found "
            f"{', '.join(evidence)}."
        )
    check_places(paths, checked_path(out))
    ensure_writable(out, KIND, overwrite=overwrite)
    said = vocabularies_by_folder(vocabularies or {}, paths)
    opened = [as_terminology(given) for given in (terminology, *others)]
    own, *givers = opened
    own_vocabulary, *other_vocabularies = (
        said.get(path, vocabulary_of(terminology.manifest.config))
        for path, terminology in zip(paths, opened, strict=True)
    )
    _check_languages(() if languages is None else languages, givers)
    known = Compared.of(own, own_vocabulary)
    found, names_of = [], []
    for number, (giver, vocabulary) in enumerate(zip(givers, other_vocabularies, strict=True)):
        tell(number, len(givers), f"comparing with {folder_name(giver.path)}")
        other = Compared.of(giver, vocabulary)
        found.append(match_concepts(known, other, evidence))
        names = _offered(known, other, found[-1], languages, name=folder_name(giver.path))
        names_of.append(names.with_columns(part=pl.lit(number)))
    all_offered = pl.concat(names_of)
    offered = all_offered.filter("is_same")
    n_inexact = all_offered.select(KEY).unique().join(offered, on=KEY, how="anti").height
    for level in (KEY, LEXICAL_KEY):
        offered = offered.filter(pl.col("part") == pl.col("part").min().over(level))
    is_contested = pl.any_horizontal(pl.col("concept_row").n_unique().over(level) > 1 for level in (KEY, LEXICAL_KEY))
    n_contested = offered.filter(is_contested)[KEY].n_unique()
    added = offered.filter(~is_contested).unique(KEY, keep="first", maintain_order=True)
    names = _with_names(own, added)
    tables = TerminologyTables(
        concepts=own.concepts().collect(),
        names=names,
        relations=own.relations().collect(),
        definitions=own.definitions().collect(),
        cross_references=own.cross_references().collect(),
    )
    tell(len(givers), len(givers), "writing")
    write_terminology(
        out,
        tables,
        config={
            "enriched": folder_name(own.path),
            "from": [folder_name(giver.path) for giver in givers],
            "by": list(evidence),
            "languages": None if languages is None else list(languages),
            "vocabulary": own_vocabulary,
            "vocabularies": {folder_name(path): given for path, given in said.items()},
            **carried_origins(*(terminology.manifest.config for terminology in opened)),
        },
        parents=[terminology.manifest.as_parent() for terminology in opened],
        overwrite=overwrite,
    )
    return EnrichReport(
        path=Path(out),
        parts=tuple(
            _part(giver.path, matches, evidence, len(added.filter(pl.col("part") == part)))
            for part, (giver, matches) in enumerate(zip(givers, found, strict=True))
        ),
        n_concepts=len(tables.concepts),
        n_enriched=added["concept_row"].n_unique(),
        n_names=len(names),
        n_added=len(added),
        n_contested=n_contested,
        n_inexact=n_inexact,
        matches=pl.concat(
            _listed(own, giver, matches, added.filter(pl.col("part") == part))
            for part, (giver, matches) in enumerate(zip(givers, found, strict=True))
        )
        .sort("own_row", maintain_order=True)
        .select(MATCHES.names()),
        seconds=time.perf_counter() - started,
    )


def _offered(
    known: Compared, other: Compared, matches: Matches, languages: Sequence[str] | None, *, name: str
) -> pl.DataFrame:
    """Names of these languages that matched concepts have and ``known`` has not; ``concept_row`` is one's own.

    ``is_same`` says whether they mean just the concept. The source of those of which it was not said is ``name``.
    """
    owners = known.names.group_by(LEXICAL_KEY).agg(owner=pl.col("concept_row").unique())
    return (
        other.names.join(matches.pairs, on="concept_row", maintain_order="left")
        .filter(of_languages(languages) | (pl.col("primary") == UNDETERMINED))
        .join(known.keys, on=KEY, how="anti", maintain_order="left")
        .join(owners, on=LEXICAL_KEY, how="left", maintain_order="left")
        .filter(pl.col("owner").is_null() | (pl.col("owner") == pl.concat_list("own_row")))
        .with_columns(
            source=pl.when(pl.col("source") == "").then(pl.lit(name)).otherwise("source"),
            other_row="concept_row",
            concept_row="own_row",
        )
        .select(*NAMES.names(), KEY, LEXICAL_KEY, "other_row", "is_same")
    )


def _listed(own: Terminology, giver: Terminology, matches: Matches, added: pl.DataFrame) -> pl.DataFrame:
    """The matches of one terminology, columns `MATCHES` and ``own_row``."""
    sides = [
        side.concepts().select("concept_id", "preferred_name").with_row_index("row").collect() for side in (own, giver)
    ]
    given = added.group_by("concept_row", "other_row", maintain_order=True).agg(added=pl.col("text"))
    pairs = [
        pairs.with_columns(is_used=pl.lit(is_used))
        for pairs, is_used in ((matches.pairs, True), (matches.ambiguous, False))
    ]
    return (
        pl.concat(pairs)
        .sort("own_row", "concept_row")
        .join(sides[0], left_on="own_row", right_on="row", maintain_order="left")
        .join(
            sides[1].select("row", other_id="concept_id", other_name="preferred_name"),
            left_on="concept_row",
            right_on="row",
            maintain_order="left",
        )
        .join(
            given,
            left_on=["own_row", "concept_row"],
            right_on=["concept_row", "other_row"],
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("added").fill_null([]), terminology=pl.lit(folder_name(giver.path)))
        .select(*MATCHES.names(), "own_row")
    )


def _part(path: Path, matches: Matches, evidence: Sequence[Evidence], n_added: int) -> EnrichingPart:
    ranks = {kind: rank for rank, kind in enumerate(evidence)}
    rank = pl.col("evidence").replace_strict(ranks, return_dtype=pl.UInt8)
    surest = matches.pairs.group_by("own_row").agg(rank.min().alias("rank"))["rank"]
    return EnrichingPart(
        path=path,
        n_matched=len(surest),
        n_matched_by={kind: int((surest == rank).sum()) for kind, rank in ranks.items()},
        n_ambiguous=matches.n_ambiguous,
        n_shared=matches.n_shared,
        n_added=n_added,
    )


def _check_languages(languages: Sequence[str], givers: Sequence[Terminology]) -> None:
    """Refuse a language that no name is of: it would be missing without a word."""
    there = pl.concat([giver.names().select("language").unique() for giver in givers]).unique().collect()
    if there["language"].to_list() == [UNDETERMINED]:  # such names are always taken
        return
    for language in languages:
        if there.filter(of_languages([language])).is_empty():
            known = ", ".join(sorted(there["language"]))
            raise InputError("no name to add is of this language", field="languages", expected=known, found=language)


def _with_names(own: Terminology, added: pl.DataFrame) -> pl.DataFrame:
    """All names of ``own`` and the added ones, each after those its concept had."""
    new = added.with_columns(is_preferred=pl.lit(False)).select(NAMES.names()).cast(NAMES)
    # Concepts without a name in use match none, so that each has a preferred name before the new ones.
    return pl.concat([own.names().collect(), new]).sort("concept_row", maintain_order=True)
