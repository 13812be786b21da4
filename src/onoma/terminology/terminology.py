"""A terminology folder, opened: counts, tables, single concepts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from onoma.artifacts import Manifest, is_still, open_artifact, origins_of
from onoma.artifacts.parquet import scan_parquet
from onoma.artifacts.system import is_of_system
from onoma.codes import digits_of
from onoma.errors import DamagedArtifactError, InputError, MismatchError, checked_path, did_you_mean
from onoma.quantities import quantity
from onoma.terminology.information import TerminologyInfo, gather_information
from onoma.terminology.search import SearchHit, search_names
from onoma.terminology.tables import ACTIVE, CHOICE_RELATIONS, FORMAT_VERSION, KIND, REQUIRED, SCHEMAS

_MOST_SUGGESTED_FROM = 2000


@dataclass(frozen=True)
class Concept:
    """One concept.

    Attributes:
        concept_id: The source's own code.
        preferred_name: "" for a retired code without names.
        names: All texts, preferred one first; a text can occur several times (languages, sources, term types).
        semantic_types: As the source calls them.
        status: "active" or "obsolete".
        replaced_by: Code of the concept to use instead, which may be in another terminology.
    """

    concept_id: str
    preferred_name: str
    names: tuple[str, ...]
    semantic_types: tuple[str, ...]
    status: str
    replaced_by: str | None


@dataclass(frozen=True)
class Terminology:
    """A terminology folder; only its manifest is read at once, everything else when needed.

    Make one with `Terminology.open`. Row numbers are positions in the tables, see `onoma.terminology.tables`.

    Attributes:
        path: The folder, absolute.
        manifest: What it says about itself.

    Raises:
        MismatchError: a table is needed, and the folder was replaced since it was opened.
    """

    path: Path
    manifest: Manifest = field(hash=False)

    @classmethod
    def open(cls, path: str | Path) -> Terminology:
        """Open a folder that `import_terminology` or `write_terminology` wrote.

        Raises:
            InputError: there is nothing at ``path``.
            ArtifactError: it is not a terminology, is damaged, or has a newer format.
        """
        folder = checked_path(path).absolute()
        manifest = open_artifact(folder, KIND, format_version=FORMAT_VERSION, in_full=True)
        for name, schema in SCHEMAS.items():
            file = f"{name}.parquet"
            if file not in manifest.files:
                if name in REQUIRED:
                    raise DamagedArtifactError(f"{folder} has no {file}. Import the terminology again.")
                continue
            try:
                found = scan_parquet(folder / file).collect_schema()
            except (pl.exceptions.PolarsError, OSError) as error:
                if is_of_system(error):
                    raise
                raise DamagedArtifactError(
                    f"{folder / file} cannot be read ({error}). Import the terminology again."
                ) from None
            if found != schema:
                raise DamagedArtifactError(
                    f"{folder / file} has other columns than it should. Import the terminology again."
                )
        return cls(folder, manifest)

    @cached_property
    def n_concepts(self) -> int:
        """Concepts, obsolete ones included."""
        return self._count("concepts")

    @cached_property
    def n_names(self) -> int:
        """Names, suppressed ones included."""
        return self._count("names")

    @cached_property
    def n_relations(self) -> int:
        """Relations."""
        return self._count("relations")

    @cached_property
    def n_definitions(self) -> int:
        """Definitions."""
        return self._count("definitions")

    @cached_property
    def n_cross_references(self) -> int:
        """Codes of other vocabularies."""
        return self._count("cross_references")

    def concepts(self) -> pl.LazyFrame:
        """concept_id, preferred_name, semantic_types, status, replaced_by."""
        return self._scan("concepts")

    def names(self) -> pl.LazyFrame:
        """concept_row, text, language, source, term_type, is_preferred, is_suppressed."""
        return self._scan("names")

    def relations(self) -> pl.LazyFrame:
        """head_row, relation, tail_row, source."""
        return self._scan("relations")

    def definitions(self) -> pl.LazyFrame:
        """concept_row, text, source; empty if the terminology has none."""
        return self._scan("definitions")

    def cross_references(self) -> pl.LazyFrame:
        """concept_row, code, relation, source; empty if the terminology has none."""
        return self._scan("cross_references")

    def concept(self, concept_id: str) -> Concept:
        """The concept with this code.

        Raises:
            InputError: there is none; the message names one that is spelled alike.
        """
        if not isinstance(concept_id, str):
            raise InputError("a code is text", path=self.path, field="concept_id", found=repr(concept_id))
        ids = self.concepts().select("concept_id").with_row_index("row")
        found = ids.filter(pl.col("concept_id") == concept_id).collect()
        if found.is_empty():
            raise InputError(
                f"there is no concept '{concept_id}'.{did_you_mean(concept_id, self._similar_ids(concept_id))}",
                path=self.path,
                field="concept_id",
            )
        row = int(found["row"][0])
        entry = self.concepts().slice(row, 1).collect().row(0, named=True)
        names = self.names().filter(pl.col("concept_row") == row).select("text").collect()["text"]
        return Concept(
            concept_id=entry["concept_id"],
            preferred_name=entry["preferred_name"],
            names=tuple(names),
            semantic_types=tuple(entry["semantic_types"]),
            status=entry["status"],
            replaced_by=entry["replaced_by"],
        )

    def successors(self) -> dict[str, str]:
        """What to use in place of retired codes: where ``replaced_by`` finally leads.

        That is an active code, or one that is not in this terminology. Codes that lead to neither are left out.
        """
        concepts = self.concepts().select("concept_id", "status", "replaced_by")
        retired = {code: to for code, _, to in concepts.filter(pl.col("status") != ACTIVE).collect().iter_rows()}
        ends: dict[str, str | None] = {}
        for code in retired:
            passed = dict[str, None]()
            last: str | None = code
            while last is not None and last in retired and last not in ends and last not in passed:
                passed[last] = None
                last = retired[last]
            if last in passed:  # a circle
                last = None
            ends.update(dict.fromkeys(passed, last if last is None else ends.get(last, last)))
        return {code: end for code, end in ends.items() if end is not None}

    def to_consider(self) -> dict[str, tuple[str, ...]]:
        """What may be used in place of retired codes that have no entry in `successors`, by their relations.

        These are "consider", SNOMED CT's "possibly_equivalent_to" and others (`onoma.terminology.tables`). A person has
        to choose: each is right for some uses of the retired one. A choice that was itself retired later stands for its
        successor, or for its own choices.
        """
        codes = self.concepts().select("concept_id", "status").with_row_index("row")
        is_choice = pl.col("relation").is_in(CHOICE_RELATIONS)
        said = self.relations().filter(is_choice).select("head_row", "tail_row")
        retired = codes.filter(pl.col("status") != ACTIVE).select("row", head="concept_id")
        pairs = said.join(retired, left_on="head_row", right_on="row", maintain_order="left")
        found = pairs.join(
            codes.select("row", tail="concept_id"), left_on="tail_row", right_on="row", maintain_order="left"
        )
        successors = self.successors()
        choices: dict[str, dict[str, None]] = {}
        for code, other in found.select("head", "tail").collect().iter_rows():
            if code not in successors:
                choices.setdefault(code, {})[other] = None
        retired_codes = set(retired.select("head").collect().to_series())
        replaced = self.concepts().filter(pl.col("status") != ACTIVE).select("concept_id", "replaced_by")
        for code, other in replaced.collect().iter_rows():
            if code not in successors and other in retired_codes:  # it has that one's choices
                choices.setdefault(code, {})[other] = None

        def usable(code: str, passed: set[str]) -> Iterator[str]:
            passed.add(code)
            for other in choices.get(code, {}):
                if other not in retired_codes:
                    yield other
                elif other in successors:
                    yield successors[other]
                elif other not in passed:
                    yield from usable(other, passed)

        found_for = {code: tuple(dict.fromkeys(usable(code, set()))) for code in choices}
        return {code: others for code, others in found_for.items() if others}

    def info(self) -> TerminologyInfo:
        """Its figures at a glance; see `TerminologyInfo`."""
        return gather_information(
            self.concepts(),
            self.names(),
            self.relations(),
            self.cross_references(),
            n_definitions=self.n_definitions,
            origins=origins_of(self.manifest.config),
        )

    def search(self, text: str, *, limit: int = 20) -> list[SearchHit]:
        """Find concepts by code (their own, or that of a cross-reference) or name; see `onoma.terminology.search`.

        Raises:
            InputError: ``text`` is blank, or ``limit`` is less than 1.
        """
        hits = search_names(self.concepts(), self.names(), self.cross_references(), text, limit=limit)
        if all(hit.status == ACTIVE for hit in hits):
            return hits
        successors = self.successors()
        ends = {hit.concept_id: successors[hit.concept_id] for hit in hits if hit.concept_id in successors}
        is_end = pl.col("concept_id").is_in(list(ends.values()))
        here = set(self.concepts().select("concept_id").filter(is_end).collect().to_series())
        hits = [
            replace(hit, successor=end, is_successor_here=end in here)
            if (end := ends.get(hit.concept_id)) is not None
            else hit
            for hit in hits
        ]
        if all(hit.status == ACTIVE or hit.successor is not None for hit in hits):
            return hits
        choices = self.to_consider()
        return [replace(hit, consider=choices.get(hit.concept_id, ())) for hit in hits]

    def __repr__(self) -> str:
        try:
            concepts, names = quantity(self.n_concepts, "concept"), quantity(self.n_names, "name")
            return f"Terminology({str(self.path)!r}: {concepts}, {names})"
        except MismatchError:
            return f"Terminology({str(self.path)!r}: replaced or removed since it was opened)"

    def _scan(self, name: str) -> pl.LazyFrame:
        # Else what is made from it would be said to come from the one that lay here before.
        if not is_still(self.path, self.manifest):
            raise MismatchError(f"{self.path} was replaced or removed since it was opened. Open it again.")
        if f"{name}.parquet" not in self.manifest.files:
            return pl.LazyFrame(schema=SCHEMAS[name])
        return scan_parquet(self.path / f"{name}.parquet")

    def _count(self, name: str) -> int:
        return int(self._scan(name).select(pl.len()).collect().item())

    def _similar_ids(self, concept_id: str) -> list[str]:
        # One slip of the pen leaves one half of a code as it was; comparing with all of a million would take minutes.
        lower = pl.col("concept_id").str.to_lowercase()
        wanted, half = concept_id.lower(), (len(concept_id) + 1) // 2
        alike = lower.str.starts_with(wanted[:half]) | lower.str.ends_with(wanted[-half:])
        close = (pl.col("concept_id").str.len_chars().cast(pl.Int64) - len(concept_id)).abs() <= 2
        candidates = self.concepts().select("concept_id").filter(alike & close).collect()["concept_id"]
        same = (code for code in candidates if digits_of(code) == digits_of(concept_id))
        return list(itertools.islice(same, _MOST_SUGGESTED_FROM))


def as_terminology(terminology: Terminology | str | Path) -> Terminology:
    """A terminology as it is, or opened if its folder is given; see `Terminology.open`."""
    return terminology if isinstance(terminology, Terminology) else Terminology.open(terminology)
