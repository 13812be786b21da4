"""How files of annotated mentions are written: the names of tables' columns, and the encoding of text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from onoma.errors import ConfigError, InputError
from onoma.files.encodings import checked_encoding
from onoma.files.reading import OnError, Reading
from onoma.files.table_rows import PARQUET, ending_of, is_table
from onoma.files.text_files import only_file

LABELLED = ("mention", "concept_id")
"""Columns of a table of annotated mentions, unless others are named."""


@dataclass(frozen=True, slots=True)
class MentionFormat:
    """How files of annotated mentions are written.

    Attributes:
        mention: The column of tables with the mentions.
        concept_id: The column with their codes.
        encoding: Of text, such as ``cp1252``.

    Raises:
        ConfigError: a column has no name, both have the same one, or there is no such encoding.

    Example:
        >>> MentionFormat("span", "hpo_id").concept_id
        'hpo_id'
    """

    mention: str = "mention"
    concept_id: str = "concept_id"
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for name in self.columns:
            if not isinstance(name, str) or not name:
                raise ConfigError(f"a column is named by its text (--column, --code-column); found {name!r}.")
        if self.mention == self.concept_id:
            raise ConfigError(
                f"mentions and their codes would both be the column '{self.mention}': name two (--column, "
                "--code-column)."
            )
        checked_encoding(self.encoding)

    @property
    def columns(self) -> tuple[str, str]:
        """Mention and code."""
        return self.mention, self.concept_id

    def fitting(self, file: str | Path) -> MentionFormat:
        """What there is of it in one of several files: lines ``id||mention`` have no columns, Parquet no encoding.

        Raises:
            InputError: there is no such file.
        """
        if Path(file).is_dir():  # who reads it says what is wrong
            return self
        found = only_file(Path(file))
        if not is_table(found):
            return MentionFormat(encoding=self.encoding)
        return replace(self, encoding="utf-8") if ending_of(found) in PARQUET else self

    def reading(self, on_error: OnError | None = None) -> Reading:
        """How such a file is read; where ``on_error`` cannot be said, up to the first bad line."""
        return Reading(
            on_error=on_error or "strict",
            may_skip=on_error is not None,
            encoding=checked_encoding(self.encoding),
            encoding_option="--encoding ",
        )


def no_columns(file: str | Path, mention_format: MentionFormat) -> InputError:
    """The error for lines whose columns are named."""
    return InputError(
        "lines of mentions have no columns",
        path=file,
        expected=f"a .csv, .tsv, .parquet or .jsonl with the columns {', '.join(mention_format.columns)}",
        fix="name no columns (--column, --code-column)",
    )
