"""Prepare mentions for linking: read codes, leave out strengths, replace short forms, correct misspelt words, split.

These stages come before all others of a linker (`Linker.preparing`). Each is off by default. A mention that is a
**code** of a concept is read as its preferred name, and goes through no other of these stages. For all other mentions,

1. **strengths** and dose forms of drugs are left out;
2. **short forms** are replaced by what the mention's context defines, then by what a table says;
3. **misspelt words** are corrected, by the words of the linker's names;
4. **composites** are split into the names that they stand for; each is linked separately.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from onoma.encoders.cross_encoder_tokens import END_MARK, START_MARK
from onoma.errors import ConfigError, InputError, check_several
from onoma.linking.abbreviations import Finder, finder_named
from onoma.linking.composites import split_composite
from onoma.linking.expansion import AbbreviationTable, Expansion, expand_with_trace
from onoma.linking.links import Link, check_text, checked_mentions
from onoma.linking.spelling import Correction, Spelling
from onoma.linking.strengths import without_strengths


@dataclass(frozen=True, slots=True)
class PreparedMention:
    """What to link in place of a mention.

    Attributes:
        original: The mention as it was given.
        text: The mention without strengths, with its short forms replaced and its misspelt words corrected; the
            original if it has none.
        parts: The names it stands for, at least one; ``(text,)`` unless it was split.
        expansions: Short forms that were replaced, by what, and where that was defined.
        context: The text around the mention, as it was given.
        corrections: Misspelt words, and what they were read as; of long forms too.
        without_strengths: The mention without strengths and dose forms; unset: nothing was left out.
        code: The code of the concept whose preferred name the text is; unset: the mention was not read as a code.
    """

    original: str
    text: str
    parts: tuple[str, ...]
    expansions: tuple[Expansion, ...] = ()
    context: str | None = None
    corrections: tuple[Correction, ...] = ()
    without_strengths: str | None = None
    code: str | None = None

    @property
    def is_changed(self) -> bool:
        """Whether anything other than the mention itself is linked."""
        return self.parts != (self.original,)

    def by_part(self, links: Sequence[Link]) -> list[tuple[str | None, list[Link]]]:
        """The mention's links by what was read in its place (``Link.read_as``), including parts without any."""
        read = [None if part == self.original else part for part in self.parts]
        return [(part, [link for link in links if link.read_as == part]) for part in read]


@dataclass(frozen=True)
class Preparation:
    """Which stages mentions go through before they are linked; each is off by default.

    Attributes:
        table: Definitions of short forms that hold in every text.
        finder: What finds definitions in the context of a mention, one of `onoma.linking.abbreviations.FINDERS`; these
            take precedence over the table's.
        composites: Whether composite mentions are split, after all other stages.
        spelling: Whether misspelt words are corrected, after short forms were replaced; see `onoma.linking.spelling`.
        strengths: Whether strengths and dose forms of drugs are left out, before short forms are replaced; see
            `onoma.linking.strengths`.
        codes: Whether a mention that is the code of a concept is read as the concept's preferred name.

    Raises:
        ConfigError: there is no such finder, the table is not one, or a value that must be true or false is neither.
        UnavailableError: Ab3P is requested and not installed.

    Example:
        >>> preparation = Preparation(finder="schwartz-hearst", composites=True)
        >>> (prepared,) = preparation.prepare(["HCC and FED"], contexts=["She has fish-eye disease (FED)."])
        >>> prepared.text, prepared.parts
        ('HCC and fish-eye disease', ('HCC', 'fish-eye disease'))
    """

    table: AbbreviationTable | None = None
    finder: Finder | None = None
    composites: bool = False
    spelling: bool = False
    strengths: bool = False
    codes: bool = False

    def __post_init__(self) -> None:
        self._definitions_in("")  # is there such a finder, and can it work?
        if not isinstance(self.table, AbbreviationTable | None):
            raise ConfigError(
                f"the table of short forms is a {type(self.table).__name__}, where an AbbreviationTable is needed: "
                "AbbreviationTable.from_file(FILE)."
            )
        for name in ("composites", "spelling", "strengths", "codes"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} is True or False; found {getattr(self, name)!r}.")

    @property
    def is_on(self) -> bool:
        """Whether there is any stage."""
        return self != Preparation()

    def __str__(self) -> str:
        stages = {
            "codes": self.codes,
            "strengths": self.strengths,
            f"short forms ({self.finder})": self.finder is not None,
            "abbreviations": self.table is not None,
            "spelling": self.spelling,
            "composites": self.composites,
        }
        return ", ".join(name for name, is_on in stages.items() if is_on)

    def prepare(
        self,
        mentions: Iterable[str],
        *,
        contexts: Iterable[str | None] | None = None,
        is_name: Callable[[str], bool] | None = None,
        spelling: Spelling | None = None,
        concept_of_code: Callable[[str], tuple[str, str] | None] | None = None,
    ) -> list[PreparedMention]:
        """Read codes, leave out strengths, replace short forms, correct misspelt words, split composite mentions.

        Args:
            mentions: Order and number are kept.
            contexts: The text around each mention: a sentence or the whole document; None for a mention without one.
                The marks ``<tgt>`` and ``</tgt>`` are not part of it.
            is_name: Whether a text is a name of the terminology: from a name nothing is left out (see
                `without_strengths`), it is not corrected or split (see `split_composite`), and a short form in it is
                not replaced if it also has the long form.
            spelling: What corrects misspelt words; a linker has one, made from its names.
            concept_of_code: Code and preferred name of the concept whose code a text is, if there is one; a linker
                knows.

        Raises:
            InputError: a mention or context is not text, or there is not one context for each mention.
            ConfigError: misspelt words are to be corrected, or codes read, and nothing is given that can.
        """
        if self.spelling and spelling is None:
            raise ConfigError("spelling needs the words of a linker's names: prepare mentions with Linker.preparing.")
        if self.codes and concept_of_code is None:
            raise ConfigError("codes are those of a linker's concepts: prepare mentions with Linker.preparing.")
        checked = checked_mentions(mentions)
        around = _checked_contexts(contexts, len(checked))
        defined = {context: self._definitions_in(context) for context in {*around} if context}
        return [
            self._read_as_code(mention, context, is_name, concept_of_code)
            or self._prepared(mention, context, defined.get(context or "", {}), is_name, spelling)
            for mention, context in zip(checked, around, strict=True)
        ]

    def _read_as_code(
        self,
        mention: str,
        context: str | None,
        is_name: Callable[[str], bool] | None,
        concept_of_code: Callable[[str], tuple[str, str] | None] | None,
    ) -> PreparedMention | None:
        """The mention read as a code; ``None``: it is none, or a name."""
        if not self.codes or concept_of_code is None:
            return None
        concept = concept_of_code(mention)  # few mentions are codes, and names take longer to look up
        if concept is None or (is_name is not None and is_name(mention)):
            return None
        code, name = concept
        return PreparedMention(mention, name, (name,), context=context, code=code)

    def _prepared(
        self,
        mention: str,
        context: str | None,
        defined: dict[str, str],
        is_name: Callable[[str], bool] | None,
        spelling: Spelling | None,
    ) -> PreparedMention:
        def is_known(some: str) -> bool:
            return is_name is not None and is_name(some)

        in_table = {} if self.table is None else self.table.definitions

        def is_said(some: str) -> bool:  # a short form too: "NaCl 0.9%"
            return is_known(some) or some in defined or some in in_table

        drug = without_strengths(mention, is_name=is_said) if self.strengths else mention
        text, expansions, corrections = drug, tuple[Expansion, ...](), tuple[Correction, ...]()
        if defined or in_table:
            text, expansions = expand_with_trace(drug, defined, in_table)
            is_spelt_out = any(one.long_form.casefold() in drug.casefold() for one in expansions)
            if is_spelt_out and is_known(drug):  # a name, its short form in brackets
                text, expansions = drug, ()
        if self.spelling and spelling is not None and not is_known(text):
            text, corrections = spelling.correct(text)
        parts = [text]
        if self.composites:
            wholes = [one.long_form for one in expansions]
            if self.spelling and spelling is not None:
                wholes = [spelling.correct(long)[0] for long in wholes]
            parts = split_composite(text, is_name=is_name, wholes=wholes)
        traced = [
            dataclasses.replace(one, source="context" if one.short_form in defined else "table") for one in expansions
        ]
        return PreparedMention(
            mention,
            text,
            tuple(parts),
            tuple(traced),
            context,
            corrections,
            without_strengths=None if drug == mention else drug,
        )

    def _definitions_in(self, context: str) -> dict[str, str]:
        if self.finder is None:
            return {}
        return finder_named(self.finder)(context.replace(START_MARK, "").replace(END_MARK, ""))


def _checked_contexts(contexts: Iterable[str | None] | None, n_mentions: int) -> Sequence[str | None]:
    if contexts is None:
        return [None] * n_mentions
    check_several(contexts, "contexts")
    checked = list(contexts)
    if len(checked) != n_mentions:
        raise InputError(
            "there must be one context for each mention",
            field="contexts",
            expected=str(n_mentions),
            found=str(len(checked)),
        )
    for position, context in enumerate(checked):
        if context is not None:
            check_text(context, "a context", field=f"contexts[{position}]", instead="None")
    return checked
