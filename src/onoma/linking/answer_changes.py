"""What an update changes for mentions that were linked before, and why.

================  ===================================================================================================
reason            the earlier answer's concept and the name that it was found by; the first that holds is given
================  ===================================================================================================
replaced          the concept is obsolete now, and the new answer is what the terminology leads to in its place
successor_missed  likewise, and the new answer is another one, or none
retired           it is obsolete now, and the terminology leads to none in its place
removed           its code is gone
unnamed           it is active, and has no name any more that could be found (all suppressed, or gone)
name_gone         the concept is there, and this name of it is not
new_concept       both are there; the new answer is a concept that was not there before
new_name          both are there; the new answer was found by a name that its concept did not have before
other             both pairs were there before and are there still. What decided between them depends on all names:
                  ranks and weights of n-grams, candidates of an index, confidence, the order of equal scores
================  ===================================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from onoma.artifacts import write_file
from onoma.code_columns import codes_of_concept_expr
from onoma.codes import NO_CONCEPT, meant_codes, other_forms
from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.reading import Reading
from onoma.files.table_rows import LINE, MissingColumnError, is_table, table_rows
from onoma.files.text_files import only_file, text_lines
from onoma.linking.concept_changes import GONE, choices_in_words
from onoma.linking.linker import Linker
from onoma.linking.links import Link, checked_mentions
from onoma.linking.lookup import NameLookup
from onoma.terminology import Terminology, normalise
from onoma.terminology.tables import ACTIVE
from onoma.types import Progress, no_progress

REASONS = ("replaced", "successor_missed", *GONE[1:], "name_gone", "new_concept", "new_name", "other")
CHANGED_ANSWERS = pl.Schema(
    {
        "mention": pl.String(),
        "n": pl.Int64(),
        "old_concept_id": pl.String(),
        "old_preferred_name": pl.String(),
        "old_matched_name": pl.String(),
        "old_score": pl.Float64(),
        "new_concept_id": pl.String(),
        "new_preferred_name": pl.String(),
        "new_matched_name": pl.String(),
        "new_score": pl.Float64(),
        "reason": pl.String(),
        "replaced_by": pl.String(),
        "consider": pl.String(),
    }
)
"""Columns of `AnswerChanges.changed`: one row per distinct mention, asked ``n`` times; behind them one for each answer
that was given with one so often and is gone. Cells of an answer that there is not are null; ``replaced_by`` is what
takes the place of the old concept (`Terminology.successors`), ``consider`` codes of which one may, divided by ``|``
(`Terminology.to_consider`)."""
_MENTIONS_AT_ONCE = 4096
_ANSWER = "concept_id"
_RANK = "rank"
"""Column of the answers, in what ``onoma map`` writes."""


@dataclass(frozen=True, eq=False)
class AnswerChanges:
    """First answers before and after.

    Attributes:
        n_mentions: How many there were.
        n_distinct: Of them distinct.
        n_changed: Mentions whose first answer is another concept, or is one where there was none, or the reverse.
        reasons: How many of these for each reason, in the order of `REASONS`, zero included.
        changed: Columns `CHANGED_ANSWERS`, in the order in which the mentions first occur; given answers behind.
    """

    n_mentions: int
    n_distinct: int
    n_changed: int
    reasons: dict[str, int]
    changed: pl.DataFrame
    answered: dict[str, int] | None = None
    """Of the answers that were given with the mentions, those whose concept is no answer any more, for each change of
    `GONE`, zero included; unset: none were given. They stand in ``changed`` too, with the concept's name alone."""
    other_forms: dict[str, str] = field(default_factory=dict)
    """Codes of these that the linker has in another form (`onoma.codes.other_forms`), and those."""

    def figures(self) -> dict[str, object]:
        """All but the table, JSON-serialisable."""
        return {
            "n_mentions": self.n_mentions,
            "n_distinct": self.n_distinct,
            "n_changed": self.n_changed,
            "reasons": self.reasons,
            "answered": self.answered,
            "other_forms": self.other_forms,
        }

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the changed answers as CSV, whole or not at all.

        Raises:
            ArtifactExistsError: ``path`` is taken.
        """
        with write_file(path, overwrite=overwrite) as aside:
            self.changed.write_csv(aside)


class EarlierAnswers:
    """First answers of a linker, to be compared with those of its successor.

    Args:
        linker: As it is before.
        mentions: Any text, repeats allowed.
        answered: The codes that each was answered with, however it was asked; "" or one of
            `onoma.codes.NO_CONCEPT` for none. Unset: not known.
        progress: Called with distinct mentions linked, their number, and "linking".

    Raises:
        InputError: a mention is not text, or there are not as many answers as mentions.
    """

    def __init__(
        self,
        linker: Linker,
        mentions: Iterable[str],
        *,
        answered: Sequence[str | None] | None = None,
        progress: Progress = no_progress,
    ) -> None:
        asked = checked_mentions(mentions)
        self._answered = given_answers(asked, answered)
        self._counts = Counter(asked)
        self._progress = progress
        # Now, since the successor may take the place of the folder.
        self._names = _ConceptNames(linker)
        self._concept_ids = frozenset(linker.dictionary.concept_ids)
        self._answers = self._first_answers(linker)

    def compare(self, linker: Linker, concepts: pl.DataFrame, terminology: Terminology) -> AnswerChanges:
        """What became of the answers.

        Args:
            linker: The successor.
            concepts: What changed, see `onoma.linking.concept_changes`.
            terminology: That of the successor.
        """
        gone = concepts.filter(pl.col("change").is_in(GONE)).select("concept_id", "change", "replaced_by", "consider")
        changes = {code: (change, successor) for code, change, successor, _ in gone.iter_rows()}
        why = _Reasons(self._names, _ConceptNames(linker), changes)
        instead = {code: (successor, choices) for code, _, successor, choices in gone.iter_rows()}
        rows = []
        for (mention, n), old, new in zip(
            self._counts.items(), self._answers, self._first_answers(linker), strict=True
        ):
            if (old and old.concept_id) != (new and new.concept_id):
                others = (None, None) if old is None else instead.get(old.concept_id, (None, None))
                rows.append((mention, n, *_cells(old), *_cells(new), why(old, new), *others))
        changed = pl.DataFrame(rows, schema=CHANGED_ANSWERS, orient="row")
        counted = dict(changed.group_by("reason").agg(pl.col("n").sum()).iter_rows())
        answered, lost = lost_answers(self._answered, linker, terminology, before=self._concept_ids)
        told = changed.select("mention", "old_concept_id")
        return AnswerChanges(
            n_mentions=self._counts.total(),
            n_distinct=len(self._counts),
            n_changed=int(changed["n"].sum()),
            reasons={reason: counted.get(reason, 0) for reason in REASONS},
            changed=pl.concat([changed, lost.join(told, on=told.columns, how="anti", maintain_order="left")]),
            answered=answered,
            other_forms=_other_forms(lost, linker),
        )

    def _first_answers(self, linker: Linker) -> list[Link | None]:
        """Of each distinct mention, with the linker's own stages."""
        distinct = list(self._counts)
        answers: list[Link | None] = []
        for start in range(0, len(distinct), _MENTIONS_AT_ONCE):
            part = distinct[start : start + _MENTIONS_AT_ONCE]
            answers += [links[0] if links else None for links in linker.link(part, top_k=1)]
            self._progress(len(answers), len(distinct), "linking")
        return answers


class _Reasons:
    """Why answers changed.

    Args:
        before: Names of the earlier linker.
        after: Of the new one.
        gone: What became of concepts that are no answer any more, and the code that takes the place of each.
    """

    def __init__(self, before: _ConceptNames, after: _ConceptNames, gone: dict[str, tuple[str, str | None]]) -> None:
        self._before, self._after, self._gone = before, after, gone
        self._known, self._there = set(before.concept_ids), set(after.concept_ids)

    def __call__(self, old: Link | None, new: Link | None) -> str:
        """One of `REASONS`."""
        if old is not None:
            if old.concept_id in self._gone:
                change, successor = self._gone[old.concept_id]
                is_missed = (
                    change == "replaced" and successor in self._there and (new is None or new.concept_id != successor)
                )
                return "successor_missed" if is_missed else change
            if not self._after.has(old):
                return "name_gone"
        if new is not None:
            if new.concept_id not in self._known:
                return "new_concept"
            if not self._before.has(new):
                return "new_name"
        return "other"


class _ConceptNames:
    """Which concept has which name."""

    def __init__(self, linker: Linker) -> None:
        self._dictionary, self._preset = linker.dictionary, linker.normalisation
        self._lookup = NameLookup.open(linker.path, linker.dictionary.texts)

    @property
    def concept_ids(self) -> Sequence[str]:
        """Of all concepts that have a name."""
        return self._dictionary.concept_ids

    def has(self, link: Link) -> bool:
        """Whether the linked concept has the matched name, normalised."""
        dictionary = self._dictionary
        for row in self._lookup.exact(normalise(link.matched_name, self._preset)):
            entries = slice(int(dictionary.entry_offsets[row]), int(dictionary.entry_offsets[row + 1]))
            if any(dictionary.concept_ids[int(at)] == link.concept_id for at in dictionary.entry_concepts[entries]):
                return True
        return False


def _cells(link: Link | None) -> tuple[str | float | None, ...]:
    return (None,) * 4 if link is None else (link.concept_id, link.preferred_name, link.matched_name, link.score)


def read_asked_mentions(
    file: str | Path, reading: Reading | None = None, *, column: str = "mention"
) -> tuple[list[str], list[str] | None]:
    """Mentions that were asked before: a list, or what ``onoma map`` or ``onoma link --json`` wrote.

    Args:
        file: ``.parquet``, ``.csv``, ``.tsv`` or ``.jsonl`` with a column, or key, of mentions; any other text is a
            list with a mention on each line, behind its codes and ``||`` if all lines have these. All but Parquet may
            be gzip.
        reading: Says in which encoding a text is.
        column: The column.

    Returns:
        The mentions in their order, blank ones left out, and of several answers in a column ``rank`` all but the first;
        and the code that each was answered with, of the column
        ``concept_id``, "" where there is none, or ``None`` without such a column.

    Raises:
        InputError: the file or the column is missing, or a line is bad.
    """
    path = Path(file)
    reading = reading or Reading(may_skip=False, quotes=False)
    asked = only_file(path)
    if not is_table(asked):
        found = [line for _, lines in text_lines(asked, reading) for line in lines]
        if all("||" in line for line in found if line.strip()):
            found = [line.partition("||")[2] for line in found]
        return [mention for mention in found if mention.strip()], None
    try:
        others = [name for name in (_ANSWER, _RANK) if name != column and _has_column(asked, reading, name)]
        rows = _rows(asked, reading, [column, *others])
    except MissingColumnError as error:
        raise InputError(
            error.problem, path=path, field=column, expected=error.expected, fix="name the column of the mentions"
        ) from None
    mentions = rows[column].alias("mention")  # by its own name, such as "*" or "^a$", an expression might find others
    rows = rows.filter(mentions.str.strip_chars() != "")
    if {_ANSWER, _RANK}.issubset(rows.columns) and rows[_RANK].str.contains("^[0-9]*$").all():
        rows = rows.filter(pl.col(_RANK).is_in(["1", ""]))  # the others are no first answers
    return rows[column].to_list(), rows[_ANSWER].to_list() if _ANSWER in others else None


def _has_column(file: SourceFile, reading: Reading, column: str) -> bool:
    """Whether there is such a column, good or bad."""
    try:
        return next(table_rows(file, reading, columns=[column]), None) is not None
    except MissingColumnError:
        return False
    except InputError:
        return True


def _rows(file: SourceFile, reading: Reading, columns: Sequence[str]) -> pl.DataFrame:
    parts = table_rows(file, reading, columns=columns)
    return pl.concat([pl.DataFrame(schema=dict.fromkeys(columns, pl.String)), *(part.drop(LINE) for part in parts)])


Given = Counter[tuple[str, str]]
"""How often a mention was answered so."""


def given_answers(mentions: Sequence[str], answered: Sequence[str | None] | None) -> Given | None:
    """Mentions with their answers, "" for none.

    Raises:
        InputError: there are not as many answers as mentions, or one is neither text nor None.
    """
    if answered is None:
        return None
    if len(answered) != len(mentions):
        raise InputError(
            "each mention has an answer, or none has",
            field="answered",
            expected=f"{len(mentions):,} codes, of as many mentions",
            found=f"{len(answered):,}",
        )
    for place, answer in enumerate(answered):
        if not isinstance(answer, str | None):
            raise InputError(
                "not an answer",
                field=f"answered[{place}]",
                expected='a concept\'s code, or None or "" where there was none',
                found=repr(answer),
            )
    return Counter((mention, answer or "") for mention, answer in zip(mentions, answered, strict=True))


def lost_answers(
    given: Given | None, linker: Linker, terminology: Terminology, *, before: Container[str] = frozenset()
) -> tuple[dict[str, int] | None, pl.DataFrame]:
    """Which answers are none of a linker any more: their number for each of `GONE`, and rows as `CHANGED_ANSWERS`.

    Args:
        given: How often each mention was answered with which codes.
        linker: That is asked from now on.
        terminology: Its own.
        before: Codes of the concepts that there were when the answers were given.
    """
    if given is None:
        return None, pl.DataFrame(schema=CHANGED_ANSWERS)
    there = set(linker.dictionary.concept_ids)
    answers = pl.Series("concept_id", sorted({answer for _, answer in given}), pl.String)
    in_release = set(terminology.concepts().join(answers.to_frame().lazy(), on="concept_id").collect()["concept_id"])
    whole = {answer for answer in answers if answer in there or answer in before or answer in in_release}
    given_codes = [(mention, n, code) for (mention, answer), n in given.items() for code in meant_codes(answer, whole)]
    unknown = {code for _, _, code in given_codes}.difference(there, NO_CONCEPT)
    known = _concepts_of(unknown, terminology)
    if others := {code for code in unknown if code not in known or known[code][0] != code}:
        unknown -= linker.dictionary.concept_rows(others).keys()  # of ``a|b`` one answered by one of the two
    lost = [one for one in given_codes if one[2] in unknown]
    successors = terminology.successors() if lost else {}
    choices = choices_in_words(terminology) if lost else {}
    rows = []
    for mention, n, code in lost:
        concept_id, status, name = known.get(code, (code, None, None))
        by = successors.get(concept_id)
        change = "removed" if status is None else "unnamed" if status == ACTIVE else "replaced" if by else "retired"
        rows.append((mention, n, code, name, *[None] * 6, change, by, choices.get(concept_id)))
    found = pl.DataFrame(rows, schema=CHANGED_ANSWERS, orient="row")
    counted = dict(found.group_by("reason").agg(pl.col("n").sum()).iter_rows())
    return {change: counted.get(change, 0) for change in GONE}, found


def _concepts_of(codes: set[str], terminology: Terminology) -> dict[str, tuple[str, str, str | None]]:
    """Code, status and preferred name of the concept that each code is of; one's own code before ``a|b``'s."""
    if not codes:
        return {}
    wanted = pl.Series("code", sorted(codes), pl.String)
    own = pl.col("concept_id")
    concepts = terminology.concepts().filter(own.is_in(wanted.implode()) | own.str.contains("|", literal=True))
    coded = concepts.select("concept_id", "status", "preferred_name", code=codes_of_concept_expr()).explode("code")
    found = coded.join(wanted.to_frame().lazy(), on="code", maintain_order="left").collect()
    own_last = found.sort(pl.col("concept_id") == pl.col("code"), maintain_order=True)
    return {code: (concept_id, status, name) for concept_id, status, name, code in own_last.iter_rows()}


def unchanged(
    linker: Linker, mentions: Sequence[str], *, answered: Sequence[str | None] | None, terminology: Terminology
) -> AnswerChanges:
    """What is to say where the linker is of the terminology already: of its own answers nothing changed."""
    counts, lost = lost_answers(given_answers(mentions, answered), linker, terminology)
    return AnswerChanges(
        n_mentions=len(mentions),
        n_distinct=len(set(mentions)),
        n_changed=0,
        reasons=dict.fromkeys(REASONS, 0),
        changed=lost,
        answered=counts,
        other_forms=_other_forms(lost, linker),
    )


def _other_forms(lost: pl.DataFrame, linker: Linker) -> dict[str, str]:
    removed = lost.filter(pl.col("reason") == "removed")["old_concept_id"]
    return other_forms(removed.unique().to_list(), linker.dictionary.concept_ids)
