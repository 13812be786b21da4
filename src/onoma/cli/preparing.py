"""Options for what mentions go through before they are linked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.linking.abbreviations import Finder
    from onoma.linking.mentions import Preparation

Abbreviations = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE",
        help="Replace short forms by the long forms of this table: lines short<TAB>long, or short,long in a .csv, in "
        "UTF-8.",
    ),
]
Expand = Annotated[
    Literal["schwartz-hearst", "ab3p"] | None,
    typer.Option(
        help="Replace short forms that the context of a mention defines, before those of a table; ab3p needs "
        "onoma[abbreviations]."
    ),
]
Composites = Annotated[
    bool,
    typer.Option(
        "--composites",
        help='Split mentions that stand for several names ("colorectal and ovarian cancer"), and link each part.',
    ),
]


Spelling = Annotated[
    bool,
    typer.Option(
        "--spelling",
        help='Correct misspelt words ("heart attak") that differ by one letter from a word of the linker\'s names.',
    ),
]


Strengths = Annotated[
    bool,
    typer.Option(
        "--strengths",
        help='For columns of drugs: leave out strengths, dose forms and directions ("plaquenil 200mg tab, bid" is read '
        'as "plaquenil"), unless the whole is a name.',
    ),
]


Codes = Annotated[
    bool,
    typer.Option(
        "--codes",
        help='Link mentions that are codes of the terminology to their concepts ("HP:0001250", "hp:0001250" and '
        '"HP_0001250" are read as "Seizure").',
    ),
]


def preparation(
    abbreviations: Path | None, expand: Finder | None, *, composites: bool, spelling: bool, strengths: bool, codes: bool
) -> Preparation:
    """What the options ask for; says which short forms of the table have several long forms.

    Raises:
        InputError: the table cannot be read.
        UnavailableError: Ab3P is asked for and not installed.
    """
    from onoma.cli import show
    from onoma.linking.expansion import AbbreviationTable
    from onoma.linking.mentions import Preparation

    table = None if abbreviations is None else AbbreviationTable.from_file(abbreviations)
    if table is not None and table.ambiguous:
        some = ", ".join(list(table.ambiguous)[:5]) + (", ..." if len(table.ambiguous) > 5 else "")
        n_left = quantity(len(table.ambiguous), "short form")
        show.remark(f"{abbreviations}: {n_left} with several long forms left as they are: {some}")
    return Preparation(
        table=table, finder=expand, composites=composites, spelling=spelling, strengths=strengths, codes=codes
    )
