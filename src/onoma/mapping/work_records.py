"""What the files of a work folder say: what the work is, how far it is, what the run came to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from onoma.linking.abbreviations import Finder


@dataclass(frozen=True)
class Settings:
    """What decides the bytes of an output.

    Attributes:
        input: SHA-256 of the file.
        linker: Its fingerprint.
        column: Of the mentions.
        context: Column of the contexts, if there is one.
        encoding: Of the input, where it is not UTF-8.
        top_k: Links of a mention, or of each of its parts.
        answer_prefix: Before the names of the answers' columns.
        abbreviations: SHA-256 of the table of abbreviations, if there is one.
        finder: What finds the short forms that contexts define, if they are looked for.
        composites: Whether composite mentions are split.
        spelling: Whether misspelt words are put right.
        strengths: Whether strengths and dose forms of drugs are left out.
        codes: Whether mentions that are codes are read as such.
        asking: How the linker is asked, where it is not as it would be by itself (`onoma.linking.asking`), as JSON.
        input_format: Ending of the input's name.
        quoting: Whether cells of an input of text may stand in double quotes.
        output_format: Ending of the output's name.
        onoma: Version.
        polars: Version.
        sizes: Bounds of parts and tasks.
    """

    input: str
    linker: str
    column: str
    context: str | None
    encoding: str | None
    top_k: int
    answer_prefix: str
    abbreviations: str | None
    finder: Finder | None
    composites: bool
    spelling: bool
    strengths: bool
    codes: bool
    asking: str | None
    input_format: str
    quoting: str
    output_format: str
    onoma: str
    polars: str
    sizes: str

    def differences(self, other: Settings) -> str:
        """What is different in ``other``, for a person."""
        ours, theirs = self._said(), other._said()
        return ", ".join(
            f"{name}: {_shown(ours.get(name))}, now {_shown(theirs.get(name))}"
            for name in {**ours, **theirs}
            if ours.get(name) != theirs.get(name)
        )

    def _said(self) -> dict[str, object]:
        """All of it by name, with each thing that the linker is asked for by itself."""
        asking: dict[str, Any] = json.loads(self.asking or "{}")
        said = {**asdict(self), **asking, **asking.get("filters", {})}
        return {
            name: None if value == [] else value for name, value in said.items() if name not in {"asking", "filters"}
        }


@dataclass(frozen=True)
class ReadInput:
    """What is known once all of the input was read.

    Attributes:
        n_rows: Of the input.
        n_parts: Into which it was read.
        n_mentions: Mentions to be linked; beyond `onoma.mapping.collecting.MAX_REMEMBERED` one may count twice.
        n_tasks: Into which they are divided.
        columns: Of the input.
    """

    n_rows: int
    n_parts: int
    n_mentions: int
    n_tasks: int
    columns: list[str]


@dataclass(frozen=True)
class WrittenPart:
    """A part of the output: the rows of the input in it, those of them that were linked, and the rows and bytes of the
    output.
    """

    n_rows: int
    n_linked: int
    n_written: int
    n_bytes: int


@dataclass(frozen=True)
class Counts:
    """Of a whole table.

    Attributes:
        n_rows: Of the input.
        n_mentions: Different ones, with their contexts, if these were given.
        n_linked: Rows of the input that have a link.
        n_written: Rows of the output.
        n_quoted: Rows of an input with tabs whose mention stands in double quotes, which were taken for a part of it.
        mean_confidence: Of the best links of different mentions, or of their parts: the share of them that is right, as
            far as the calibration holds for these mentions. Unset: none has a confidence.
        n_by_confidence: How many of these links have a confidence below 0.1, from 0.1 to below 0.2, ..., from 0.9 on.
    """

    n_rows: int
    n_mentions: int
    n_linked: int
    n_written: int
    n_quoted: int
    mean_confidence: float | None
    n_by_confidence: list[int]


@dataclass(frozen=True)
class Finished:
    """Work whose output is in its place.

    Attributes:
        settings: Of the work.
        size, modified_ns: Of the output.
        counts: Of the table.
    """

    settings: Settings
    size: int
    modified_ns: int
    counts: Counts


def _shown(value: object) -> str:
    if value is None or value in ([], ""):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "+".join(map(str, value))
    return str(value)[:12] if len(str(value)) == 64 else str(value)  # of a checksum the beginning says enough
