"""What changed from one release of a terminology to the next.

Concepts are the same if their codes are; a change is one row of a table (`DETAILS`), of one of these kinds:

=======================  =============================================================================================
change                   what it is; ``old``, ``new``, ``qualifier``
=======================  =============================================================================================
added                    an active code that was not there; new: its preferred name
added_obsolete           a code that was not there, obsolete from the start; new: its preferred name
retired                  was active, is obsolete, without successor; old, new: preferred names; qualifier: see removed
replaced                 was active, is obsolete, with ``replaced_by``; old, new: preferred names
removed                  an active code that is gone; old: its preferred name; qualifier: the code that was added with
                         this preferred name, if there is exactly one (the code may have moved)
removed_obsolete         an obsolete code that is gone; old: its preferred name
revived                  was obsolete, is active; old, new: preferred names
successor_changed        status as before, another ``replaced_by``; old, new: successors
renamed_entirely         status as before, another preferred name, and the earlier one is no name in use any more: it
                         was another code's, or came as all names and their words went; the code may mean something
                         else now; old, new: preferred names
renamed                  status as before, another preferred name otherwise; old, new: preferred names
respelled                likewise, but only upper and lower case or white space differ
name_added, ...          a name (text and language) that is new, or gone; qualifier: the language
name_removed
name_suppressed, ...     a name that both have, all of whose rows are now marked as suppressed, or no longer are;
name_unsuppressed        old, new: the name; qualifier: the language
name_retyped             a name that both have, with another term type (the scope of a synonym), and preferred in
                         neither; old, new: its term types, with "+" between several; qualifier: the name
type_added, ...          a semantic type
type_removed
relation_added, ...      a relation; qualifier: its kind; old, new: the tail's code
relation_removed
definition_added, ...    a text
definition_removed
reference_added, ...     a cross-reference; qualifier: its relation; old, new: the other vocabulary's code
reference_removed
=======================  =============================================================================================

``replaced_by`` is that of the new release, null if the code is gone. Names, types, relations, definitions and
references are compared for codes that both releases have, whatever a relation leads to: what is added or removed with a
code is covered by that code's one row. So are the losses of a code that was retired or replaced and has no name in the
new release, such as CUIs of the UMLS. Order and sources are not compared. Rows are sorted by the kind of change (in the
table's order), then ``concept_id``, ``qualifier``, ``old``, ``new``, by code point.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from onoma.artifacts import origins_of
from onoma.quantities import quantity
from onoma.terminology.enriching.lexical_keys import SMALL_WORDS
from onoma.terminology.listing import write_list
from onoma.terminology.normalised_columns import normalise_expr
from onoma.terminology.tables import ACTIVE, OTHER_SCOPE
from onoma.terminology.terminology import Terminology, as_terminology

CHANGES = (
    "added",
    "added_obsolete",
    "retired",
    "replaced",
    "removed",
    "removed_obsolete",
    "revived",
    "successor_changed",
    "renamed_entirely",
    "renamed",
    "respelled",
    "name_added",
    "name_removed",
    "name_suppressed",
    "name_unsuppressed",
    "name_retyped",
    "type_added",
    "type_removed",
    "relation_added",
    "relation_removed",
    "definition_added",
    "definition_removed",
    "reference_added",
    "reference_removed",
)
DETAILS = pl.Schema(
    {
        "concept_id": pl.String(),
        "change": pl.String(),
        "old": pl.String(),
        "new": pl.String(),
        "qualifier": pl.String(),
        "replaced_by": pl.String(),
    }
)
EXAMPLES_SHOWN = 3
_WORD_LETTERS = 3
"""From which on a word tells what a name is about, small words aside."""
_EXAMPLE_LENGTH = 100


@dataclass(frozen=True, eq=False)
class TerminologyDiff:
    """What changed; ``str()`` is a text for a person.

    Attributes:
        old: Folder of the old release.
        new: Folder of the new one.
        releases: As the sources of each say themselves, e.g. "2026-10-01"; "" where they do not.
        n_concepts: Codes, in the old and in the new release; so the following.
        n_active: Of them active.
        n_names: Rows of the table of names.
        counts: Number of changes of each kind, in the module's order, zero included.
        details: One row per change, columns `DETAILS`; the module says what they hold.
        seconds: Wall time.
    """

    old: Path
    new: Path
    releases: tuple[str, str]
    n_concepts: tuple[int, int]
    n_active: tuple[int, int]
    n_names: tuple[int, int]
    counts: dict[str, int]
    details: pl.DataFrame
    seconds: float

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return self.details.is_empty()

    def figures(self) -> dict[str, object]:
        """All but the details, JSON-serialisable."""
        return {
            "old": str(self.old),
            "new": str(self.new),
            "releases": list(self.releases),
            "n_concepts": list(self.n_concepts),
            "n_active": list(self.n_active),
            "n_names": list(self.n_names),
            "counts": self.counts,
        }

    def write_details(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the details; see `onoma.terminology.listing.write_list`."""
        write_list(self.details, path, overwrite=overwrite)

    def __str__(self) -> str:
        (old_concepts, new_concepts), (old_active, new_active) = self.n_concepts, self.n_active
        old, new = (
            f"{folder} (release {release})" if release else str(folder)
            for folder, release in zip((self.old, self.new), self.releases, strict=True)
        )
        lines = [
            f"{old} -> {new}: {old_concepts:,} -> {quantity(new_concepts, 'concept')}, "
            f"{old_active:,} -> {new_active:,} of them active, "
            f"{self.n_names[0]:,} -> {quantity(self.n_names[1], 'name')}, in {self.seconds:.1f} s"
        ]
        if self.is_empty:
            lines.append("nothing changed")
        for change, count in self.counts.items():
            if count:
                lines.append(f"{change.replace('_', ' '):<19} {count:>9,}")
                some = self.details.filter(pl.col("change") == change).head(EXAMPLES_SHOWN)
                lines += [f"    {shortened(_told(row))}" for row in some.iter_rows(named=True)]
        return "\n".join(lines)


def diff_terminologies(old: str | Path | Terminology, new: str | Path | Terminology) -> TerminologyDiff:
    """Compare two releases of a terminology; the module says what is compared.

    Args:
        old: The older one, a folder or opened.
        new: The newer one.

    Raises:
        InputError: there is nothing at one of the places.
        ArtifactError: one is not a complete terminology.
    """
    started = time.perf_counter()
    before, after = as_terminology(old), as_terminology(new)
    concepts = _both(before, after)
    kept = concepts.drop_nulls(["row", "row_new"])
    details = pl.concat([*_concept_changes(before, after, concepts), *_content_changes(before, after, kept)])
    order = pl.DataFrame({"change": CHANGES}).with_row_index("order")
    details = (
        details.join(order, on="change", maintain_order="left")
        .sort("order", "concept_id", "qualifier", "old", "new")
        .select(DETAILS.names())
        .cast(DETAILS)
    )
    counted = dict(details["change"].value_counts().iter_rows())
    return TerminologyDiff(
        old=before.path,
        new=after.path,
        releases=(_release(before), _release(after)),
        n_concepts=(before.n_concepts, after.n_concepts),
        n_active=(_n_active(before), _n_active(after)),
        n_names=(before.n_names, after.n_names),
        counts={change: counted.get(change, 0) for change in CHANGES},
        details=details,
        seconds=time.perf_counter() - started,
    )


def _release(terminology: Terminology) -> str:
    releases = (one.get("release") for one in origins_of(terminology.manifest.config))
    return ", ".join(dict.fromkeys(release for release in releases if release))


def _n_active(terminology: Terminology) -> int:
    return int(terminology.concepts().select((pl.col("status") == ACTIVE).sum()).collect().item())


def _both(before: Terminology, after: Terminology) -> pl.DataFrame:
    """Concepts of either, side by side; those of the new release in columns with the ending _new."""
    old, new = (side.concepts().with_row_index("row").collect() for side in (before, after))
    return old.join(new, on="concept_id", how="full", coalesce=True, suffix="_new")


def _concept_changes(before: Terminology, after: Terminology, concepts: pl.DataFrame) -> Iterator[pl.DataFrame]:
    was_there, is_there = pl.col("row").is_not_null(), pl.col("row_new").is_not_null()
    was_active, is_active = pl.col("status") == ACTIVE, pl.col("status_new") == ACTIVE
    change = (
        pl.when(~was_there)
        .then(pl.when(is_active).then(pl.lit("added")).otherwise(pl.lit("added_obsolete")))
        .when(~is_there)
        .then(pl.when(was_active).then(pl.lit("removed")).otherwise(pl.lit("removed_obsolete")))
        .when(was_active & ~is_active)
        .then(pl.when(pl.col("replaced_by_new").is_null()).then(pl.lit("retired")).otherwise(pl.lit("replaced")))
        .when(~was_active & is_active)
        .then(pl.lit("revived"))
    )
    old, new = pl.col("preferred_name"), pl.col("preferred_name_new")
    changed = _with_moved(concepts.with_columns(change=change).drop_nulls("change"))
    yield _rows(changed, pl.col("change"), old, new, pl.col("moved_to"))
    as_before = concepts.filter(pl.col("status") == pl.col("status_new"))
    old_successor, successor = pl.col("replaced_by"), pl.col("replaced_by_new")
    led_elsewhere = as_before.filter(old_successor.ne_missing(successor))
    yield _rows(led_elsewhere, pl.lit("successor_changed"), old_successor, successor)
    is_same = normalise_expr(old) == normalise_expr(new)  # lower case, white space collapsed
    differing = as_before.filter(old != new)
    was_of_another = normalise_expr(new).is_in(
        concepts.filter(was_active).select(normalise_expr(old)).to_series().implode()
    )
    has_old_name = pl.col("row_new").is_in(_with_old_name(after, differing).implode())
    strange = _strangers(before, after, differing.filter(~is_same).select("row", "row_new"))
    kind = (
        pl.when(is_same)
        .then(pl.lit("respelled"))
        .when((old == "") | has_old_name)
        .then(pl.lit("renamed"))
        .when(was_of_another | pl.col("row_new").is_in(strange.implode()))
        .then(pl.lit("renamed_entirely"))
        .otherwise(pl.lit("renamed"))
    )
    yield _rows(differing, kind, old, new)


def _with_moved(changed: pl.DataFrame) -> pl.DataFrame:
    """The same with ``moved_to``: of what is gone, the one code that was added with its preferred name."""
    name = normalise_expr(pl.coalesce("preferred_name", "preferred_name_new"))
    named = changed.with_columns(name=name)
    added = named.filter((pl.col("change") == "added") & (pl.col("name") != ""))
    only = (
        added.group_by("name").agg(pl.col("concept_id").first().alias("moved_to"), n=pl.len()).filter(pl.col("n") == 1)
    )
    is_gone = pl.col("change").is_in(["removed", "retired"])
    return named.join(only, on="name", how="left").with_columns(moved_to=pl.when(is_gone).then("moved_to"))


def _with_old_name(after: Terminology, differing: pl.DataFrame) -> pl.Series:
    """Of concepts with another preferred name, those that still have the earlier one: their rows in the new release."""
    means_it = ~pl.col("is_suppressed") & ~pl.col("term_type").fill_null("").str.contains(OTHER_SCOPE)
    names = after.names().filter(means_it).join(differing.lazy(), left_on="concept_row", right_on="row_new")
    still = names.filter(normalise_expr(pl.col("text")) == normalise_expr(pl.col("preferred_name")))
    return still.select("concept_row").collect()["concept_row"]


def _strangers(before: Terminology, after: Terminology, rows: pl.DataFrame) -> pl.Series:
    """Of concepts by their row in either, those of the new release without a name or word that they had before."""
    name = normalise_expr(pl.col("text"), "loose")
    tells = (pl.element().str.len_chars() >= _WORD_LETTERS) & ~pl.element().is_in(SMALL_WORDS)
    words = name.str.split(" ").list.eval(pl.element().filter(tells))
    said = [
        side.names()
        .join(rows.lazy().with_columns(at=row), left_on="concept_row", right_on="at")
        .select("row_new", said=pl.concat_list(name, words))
        .explode("said")
        .unique()
        for side, row in ((before, "row"), (after, "row_new"))
    ]
    known = said[0].join(said[1], on=["row_new", "said"], how="semi").collect()["row_new"]
    return rows.filter(~pl.col("row_new").is_in(known.implode()))["row_new"]


def _rows(
    concepts: pl.DataFrame, change: pl.Expr, old: pl.Expr, new: pl.Expr, qualifier: pl.Expr | None = None
) -> pl.DataFrame:
    return concepts.select(
        "concept_id",
        change=change,
        old=old,
        new=new,
        qualifier=pl.lit(None, dtype=pl.String) if qualifier is None else qualifier,
        replaced_by="replaced_by_new",
    )


def _content_changes(before: Terminology, after: Terminology, kept: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Changes of what hangs on concepts that are in both."""
    kept_before, kept_after = (kept.lazy().select("concept_id", row=row, to="row_new") for row in ("row", "row_new"))
    concepts = kept.select(
        "concept_id",
        "replaced_by_new",
        "preferred_name",
        "preferred_name_new",
        to="row_new",
        went=(pl.col("status") == ACTIVE) & (pl.col("status_new") != ACTIVE) & (pl.col("preferred_name_new") == ""),
    )
    for (kind, was), (_, now) in zip(_contents(before, kept_before), _contents(after, kept_after), strict=True):
        old, new = was.unique().collect(), now.unique().collect()
        key = ["to", "value", "qualifier"]
        added = new.join(old, on=key, how="anti", nulls_equal=True).join(concepts, on="to")
        removed = old.join(new, on=key, how="anti", nulls_equal=True).join(concepts, on="to")
        value, qualifier, nothing = pl.col("value"), pl.col("qualifier"), pl.lit(None, dtype=pl.String)
        yield _rows(added, pl.lit(f"{kind}_added"), nothing, value, qualifier)
        yield _rows(removed.filter(~pl.col("went")), pl.lit(f"{kind}_removed"), value, nothing, qualifier)
    both = _names_that_differ(
        *(_names(side, kept) for side, kept in ((before, kept_before), (after, kept_after)))
    ).join(concepts, on="to")
    change = pl.when("is_suppressed_new").then(pl.lit("name_suppressed")).otherwise(pl.lit("name_unsuppressed"))
    differing = both.filter(pl.col("is_suppressed") != pl.col("is_suppressed_new"))
    yield _rows(differing, change, pl.col("value"), pl.col("value"), pl.col("qualifier"))
    is_preferred = value.is_in(pl.concat_list("preferred_name", "preferred_name_new"))
    retyped = both.filter((pl.col("term_types") != pl.col("term_types_new")) & ~is_preferred)
    types, types_now = pl.col("term_types"), pl.col("term_types_new")
    yield _rows(retyped, pl.lit("name_retyped"), types, types_now, value)


def _contents(side: Terminology, kept: pl.LazyFrame) -> Iterator[tuple[str, pl.LazyFrame]]:
    """What hangs on concepts that both have: kind, and a table of to (row in the new release), value, qualifier."""
    nothing = pl.lit(None, dtype=pl.String)
    tails = side.concepts().select(value="concept_id").with_row_index("tail_row")
    types = side.concepts().select(value="semantic_types").with_row_index("concept_row").explode("value")
    tables = {
        "name": side.names().select("concept_row", value="text", qualifier="language"),
        "type": types.drop_nulls("value").with_columns(qualifier=nothing),
        "relation": side.relations()
        .join(tails, on="tail_row")
        .select("value", concept_row="head_row", qualifier="relation"),
        "definition": side.definitions().select("concept_row", value="text", qualifier=nothing),
        "reference": side.cross_references().select("concept_row", value="code", qualifier="relation"),
    }
    for kind, table in tables.items():
        yield kind, table.join(kept, left_on="concept_row", right_on="row").select("to", "value", "qualifier")


def _names(side: Terminology, kept: pl.LazyFrame) -> pl.DataFrame:
    """Names of concepts that both have, as often as rows say another thing of them."""
    return (
        side.names()
        .join(kept, left_on="concept_row", right_on="row")
        .select("to", "is_suppressed", "term_type", value="text", qualifier="language")
        .unique()
        .collect()
    )


def _names_that_differ(was: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """Names that both have and say something else of: to, value, qualifier, is_suppressed (all rows), term_types.

    What the new release says has the ending _new.
    """
    name = ["to", "value", "qualifier"]
    differing = [one.join(other, on=one.columns, how="anti") for one, other in ((was, now), (now, was))]
    names = pl.concat(differing).select(name).unique()
    said = [
        side.join(names, on=name, how="semi")
        .group_by(name)
        .agg(pl.col("is_suppressed").all(), term_types=pl.col("term_type").unique().sort().str.join("+"))
        for side in (was, now)
    ]
    return said[0].join(said[1], on=name, suffix="_new")


def _told(row: dict[str, str | None]) -> str:
    """A change as a person reads it."""
    change, concept_id, old, new = row["change"] or "", row["concept_id"], row["old"], row["new"]
    if change in {"renamed_entirely", "renamed", "respelled", "successor_changed"}:
        return f"{concept_id}: {old or '-'} -> {new or '-'}"
    if change == "replaced":
        return f"{concept_id} {old} -> {row['replaced_by']}"
    if change in {"retired", "removed"}:
        return f"{concept_id} {old}" + (f" (that is {row['qualifier']} now?)" if row["qualifier"] else "")
    if change == "revived":
        return f"{concept_id} {new}"
    if change == "name_retyped":
        return f"{concept_id} {row['qualifier']}: {old or '-'} -> {new or '-'}"
    qualifier = f" {row['qualifier']}" if row["qualifier"] is not None else ""
    return f"{concept_id}{qualifier} {new if old is None else old}"


def shortened(text: str) -> str:
    """An example on one line, cut."""
    line = " ".join(text.splitlines())
    return line if len(line) <= _EXAMPLE_LENGTH else line[: _EXAMPLE_LENGTH - 3] + "..."
