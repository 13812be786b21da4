"""What an update of a linker did, as figures and as a text for a person."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from onoma.codes import other_forms_in_words
from onoma.linking.answer_changes import AnswerChanges
from onoma.linking.prior_counting import CarriedPrior
from onoma.quantities import quantity
from onoma.terminology.diffing import EXAMPLES_SHOWN, shortened

_MANY_REMOVED, _REMOVED_SHARE = 20, 0.05
"""Concepts that are gone, and their share of those before, from which that is remarked on: releases retire concepts."""


@dataclass(frozen=True, eq=False)
class UpdateReport:
    """What an update did; ``str()`` is a text for people.

    Attributes:
        linker: The linker that was updated.
        out: The folder of the new one; the same unless another was given.
        is_current: The linker already had this release, and nothing was done.
        n_concepts: Concepts that can be an answer, before and after;
        n_texts: likewise distinct normalised names.
        n_kept: Texts that both have.
        n_encoded: Texts that were encoded; 0 without an encoder. All new ones, and see `onoma.linking.known_vectors`.
        n_unread: Texts that the encoder cannot read, which have no vector; unset: without an encoder.
        n_nameless: Active concepts that cannot be an answer, because they have no name.
        concepts: What became of concepts, see `onoma.linking.concept_changes`.
        counts: Of each kind of change, zero included.
        is_tuned: Settings were learned with the names of an earlier release.
        prior: What became of the counts of how often concepts are meant; unset: the linker has none, or nothing was
            done.
        answers: What changed for mentions, if any were given.
        seconds: Wall time.
    """

    linker: Path
    out: Path
    is_current: bool
    n_concepts: tuple[int, int]
    n_texts: tuple[int, int]
    n_kept: int
    n_encoded: int
    n_unread: int | None
    n_nameless: int
    concepts: pl.DataFrame
    counts: dict[str, int]
    is_tuned: bool
    prior: CarriedPrior | None
    answers: AnswerChanges | None
    seconds: float

    def figures(self) -> dict[str, object]:
        """All but the tables, JSON-serialisable."""
        return {
            "linker": str(self.linker),
            "path": str(self.out),
            "is_current": self.is_current,
            "n_concepts": list(self.n_concepts),
            "n_texts": list(self.n_texts),
            "n_texts_kept": self.n_kept,
            "n_texts_new": self.n_texts[1] - self.n_kept,
            "n_texts_gone": self.n_texts[0] - self.n_kept,
            "n_encoded": self.n_encoded,
            "n_texts_not_read": self.n_unread,
            "n_concepts_without_name": self.n_nameless,
            "counts": self.counts,
            "tuned_with_earlier_terminology": self.is_tuned,
            "counted_mentions": None
            if self.prior is None
            else {"kept": self._n_counted, "moved": self.prior.n_moved, "gone": self.prior.n_gone},
            "answers": None if self.answers is None else self.answers.figures(),
        }

    @property
    def _n_counted(self) -> int:
        """Concepts that mentions are counted for now; a mention of several counts for each."""
        return 0 if self.prior is None else int(self.prior.counts.sum())

    def __str__(self) -> str:
        if self.is_current:
            lines = [f"{self.linker} already has this terminology: there is nothing to do"]
            return "\n".join([*lines, *self._answers_gone()])
        lines = [
            f"{self.out}: {self.n_concepts[0]:,} -> {quantity(self.n_concepts[1], 'concept')}, "
            f"{self.n_texts[0]:,} -> {quantity(self.n_texts[1], 'text')} ({self.n_kept:,} kept, "
            f"{self.n_texts[1] - self.n_kept:,} new, {self.n_texts[0] - self.n_kept:,} gone), "
            f"{self.n_encoded:,} encoded, in {self.seconds:.1f} s"
        ]
        for change, count in self.counts.items():
            if count:
                lines.append(f"{change:<11} {count:>9,}")
                some = self.concepts.filter(pl.col("change") == change).head(EXAMPLES_SHOWN)
                lines += [f"    {shortened(_told(row))}" for row in some.iter_rows(named=True)]
        n_removed = self.counts.get("removed", 0)
        if n_removed >= _MANY_REMOVED and n_removed > _REMOVED_SHARE * self.n_concepts[0]:
            lines.append(
                f"{n_removed:,} of {self.n_concepts[0]:,} concepts are not in this terminology at all, not even as "
                "retired ones.\nWas the linker built from several merged? Then merge them again, and update with that"
            )
        if self.answers is not None:
            changed = self.answers
            lines.append(f"{changed.n_changed:,} of {changed.n_mentions:,} mentions have another first answer")
            lines += [f"{reason.replace('_', ' '):<16} {n:>9,}" for reason, n in changed.reasons.items() if n]
            lines += self._answers_gone()
        if self.prior is not None and (self.prior.n_moved or self.prior.n_gone):
            lines.append(
                f"of {self._n_counted + self.prior.n_gone:,} meanings of counted mentions {self.prior.n_gone:,} were "
                f"of concepts that are gone, and {self.prior.n_moved:,} went to a successor: count anew with onoma "
                "linker add-prior, or onoma linker tune --prior"
            )
        if self.is_tuned:
            lines.append(
                "its weights and confidences were learned with an earlier release"
                + ("" if self.prior is None else " or its counts")
                + ": learn them again with onoma linker tune, or confidences alone with onoma linker calibrate"
            )
        return "\n".join(lines)

    def _answers_gone(self) -> list[str]:
        gone = None if self.answers is None else self.answers.answered
        if gone is None:
            return []
        first = f"{sum(gone.values()):,} of the answers given with them are of concepts that are gone"
        lost = {} if self.answers is None else self.answers.other_forms
        said = [other_forms_in_words(lost, where="the linker")] if lost else []
        return [first, *(f"{change:<11} {n:>9,}" for change, n in gone.items() if n), *said]


def _told(row: dict[str, str | None]) -> str:
    """A change as a person reads it."""
    change, concept_id, old, new = row["change"], row["concept_id"], row["old"], row["new"]
    if change in {"renamed", "respelled"}:
        return f"{concept_id}: {old} -> {new}"
    if change == "replaced":
        return f"{concept_id} {old} -> {row['replaced_by']}"
    advice = f" (consider {', '.join(row['consider'].split('|'))})" if row["consider"] else ""
    return f"{concept_id} {new if change == 'added' else old}{advice}"
