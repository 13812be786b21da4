"""RxNorm Rich Release Format: RXNCONSO, RXNREL, RXNSTY, RXNATOMARCHIVE.

Lines of fields, each followed by ``|``, without quoting; specification: RxNorm Technical Documentation, section 12
(https://www.nlm.nih.gov/research/umls/rxnorm/docs/techdoc.html). The columns are those of the UMLS (`umls`), with RXCUI
and RXAUI for CUI and AUI.

==============  ==================================================================================================
file            becomes
==============  ==================================================================================================
RXNCONSO        a concept for each RXCUI, a name for each row: STR, LAT as BCP 47, SAB as source, TTY as term type
                (IN ingredient, BN brand name, SCD and SBD generic and branded drug, ...); ``is_suppressed`` unless
                SUPPRESS is N. With ``cross_references=yes``, also SAB:CODE of the rows of other sources
RXNSTY          semantic types: STY
RXNREL          relations. As in MRREL, the SECOND is something to the first: RXCUI1|REL|RXCUI2|RELA becomes "RXCUI2
                RELA RXCUI1". RxNorm's own relations are between RXCUIs, those of other sources between atoms (RXAUI1,
                RXAUI2), and count for the atoms' concepts. Rows of releases before 2013 with REL SY and a CUI of the
                UMLS as the second are cross-references (``UMLS:C0004057``)
RXNATOMARCHIVE  retired RXCUIs: those with names of RxNorm there and none in RXNCONSO become obsolete concepts with
                their former names. They are replaced by MERGED_TO_RXCUI, or by what that was merged into and so on, if
                this ends with one concept that is there; of several, each is a choice, a relation "consider".
                ``retired=no`` leaves them out. RXNCUI, which says the same but only for drugs and packs, is not read
RXNSAB          for each source: name, version, level of restriction, citation, as MRSAB of `umls`
==============  ==================================================================================================

The preferred name of a concept: not suppressed before suppressed, then English, then RxNorm's own, then its normalised
name before its synonyms (SY, TMSY, PSN, ET), then the order of the file.

The monthly full release is a zip archive with ``rrf`` and, for what can be prescribed in the USA, ``prescribe/rrf``;
only ``rrf`` is read. RXNSTY and RXNATOMARCHIVE are not in the prescribable content. Not read: RXNSAT (attributes such
as NDC codes), RXNDOC, RXNCUI, RXNCUICHANGES. ``sources=RXNORM`` keeps RxNorm's own names and relations only; trade
names (``trade_names=yes``) and semantic filters work as in `umls`.
"""

from __future__ import annotations

import polars as pl

from onoma.files.reading import Reading
from onoma.terminology.assembly import SOURCE_CROSS_REFERENCES, SourceTables, named_concepts
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.rrf import (
    RrfOptions,
    SourceCodes,
    Vocabularies,
    Watcher,
    column_check,
    names_of,
    read_names,
    read_types,
    retired_choices,
    retired_concepts,
    weighted,
)
from onoma.terminology.readers.rrf_relations import add_trade_names, note_trade_names, read_relations
from onoma.terminology.readers.rrf_release import Family, Release, open_release

FAMILY = Family("RxNorm", "RXN", "RX", ("CONSO", "STY", "REL"), ("ATOMARCHIVE", "SAB"))
_OWN = "RXNORM"
_SYNONYMS = ("SY", "TMSY", "PSN", "ET")
_LONGEST_SUCCESSION = 16
_PREFERENCE = weighted(
    [
        pl.col("is_suppressed"),
        pl.col("LAT") != "en",
        pl.col("SAB") != _OWN,
        pl.col("TTY").is_in(_SYNONYMS),
    ]
)


def read_rxnorm(source: str, options: RrfOptions, reading: Reading) -> SourceTables:
    """Read a release of RxNorm, full or prescribable content.

    Args:
        source: The folder or archive with the files, or the RXNCONSO file.
        options: Filters.
        reading: Where bad rows go.

    Raises:
        InputError: no RXNCONSO there; a filter names what the release does not have; under "strict" also a bad row.
    """
    with open_release(source, FAMILY, reading) as release:
        types, kept = read_types(release, options, reading)
        atoms, codes, vocabularies = _Atoms(release, reading), SourceCodes(options), Vocabularies()
        watchers: list[Watcher] = [atoms, vocabularies, *([codes] if options.cross_references else [])]
        found = read_names(release, options, reading, preference=_PREFERENCE, watchers=watchers)
        relations = read_relations(release, options, reading, resolve=atoms.resolve, allow_no_flag=True)
        names = found.table
        if options.trade_names:
            names = add_trade_names(names, relations.trade_names, release)
        if kept is not None:
            names = names.filter(pl.col("concept_id").is_in(kept.implode()))
        note_trade_names(names, reading)
        left_out = found.left_out(names)
        concepts = named_concepts(names)
        choices = []
        if options.retired and "ATOMARCHIVE" in release:
            successors, archived = _archive(release, options, reading, atoms)
            # Semantic types are those of living concepts: a filter by them keeps no name of a retired one.
            named = concepts if kept is not None else pl.concat([concepts, named_concepts(archived)])
            retired = retired_concepts(successors, named, reading, options)
            # A code keeps its names when only some of its atoms were archived; it is not retired.
            concepts = pl.concat([concepts, retired.join(concepts, on="concept_id", how="anti", maintain_order="left")])
            choices.append(retired_choices(successors, concepts, reading, _OWN))
            names = pl.concat([names, archived.join(concepts, on="concept_id", how="semi", maintain_order="left")])
        references = codes.table().filter(pl.col("source") != _OWN)
        paths = {"semantic_types": "STY", "relations": "REL", "cross_references": "REL"}
        return SourceTables(
            path=release.path("CONSO"),
            names=names,
            concepts=concepts,
            semantic_types=types,
            relations=pl.concat([relations.table, *choices]),
            cross_references=pl.concat([references, *atoms.references]),
            known_elsewhere=left_out,
            paths={table: release.path(name) for table, name in paths.items() if name in release},
            source_vocabularies=vocabularies.told(release, reading),
        )


class _Atoms:
    """Watches for the concept of each atom, and fills it in where a relation names atoms only."""

    columns: tuple[str, ...] = ("CUI", "AUI")

    def __init__(self, release: Release, reading: Reading) -> None:
        self._release, self._reading = release, reading
        self._parts = [pl.DataFrame(schema={"CUI": pl.String(), "AUI": pl.String()})]
        self.references: list[pl.DataFrame] = []

    def see(self, rows: pl.DataFrame) -> None:
        """Note the atoms."""
        self._parts.append(rows.select("CUI", "AUI"))

    @property
    def table(self) -> pl.DataFrame:
        """CUI and AUI of all atoms."""
        if len(self._parts) > 1:
            self._parts = [pl.concat(self._parts)]
        return self._parts[0]

    def resolve(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of RXNREL with both RXCUIs; those to concepts of the UMLS become cross-references."""
        concept_of = self.table.filter(pl.col("AUI") != "").unique("AUI", keep="first", maintain_order=True)
        for end in ("1", "2"):
            resolved = concept_of.rename({"CUI": f"of_atom{end}", "AUI": f"AUI{end}"})
            rows = rows.join(resolved, on=f"AUI{end}", how="left", maintain_order="left").with_columns(
                pl.when(pl.col(f"CUI{end}") == "").then(f"of_atom{end}").otherwise(f"CUI{end}").alias(f"CUI{end}")
            )
        is_whole = pl.col("CUI1").is_not_null() & pl.col("CUI2").is_not_null()
        shown = pl.concat_str("AUI1", "REL", "AUI2", "RELA", separator=" ")
        self._reading.reject_rows(
            rows.filter(~is_whole).select("line", text=shown),
            "this refers to an atom that the release does not have",
            path=self._release.path("REL"),
            expected="an RXCUI, or an RXAUI of RXNCONSO",
        )
        rows = rows.filter(is_whole)
        is_reference = (pl.col("REL") == "SY") & pl.col("CUI2").str.contains(r"^C\d{7}$")
        self.references.append(
            rows.filter(is_reference)
            .select(
                concept_id="CUI1",
                code=pl.lit("UMLS:") + pl.col("CUI2"),
                relation=pl.lit("exactMatch"),
                source="SAB",
                line="line",
            )
            .select(SOURCE_CROSS_REFERENCES.names())
        )
        return rows.filter(~is_reference)


def _archive(
    release: Release, options: RrfOptions, reading: Reading, atoms: _Atoms
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Retired codes: (concept_id, successor, choice), and `SOURCE_NAMES`."""
    checks = (column_check(FAMILY, "CUI", "a code", "STR"), column_check(FAMILY, "STR", "a name", "CUI"))
    columns = ("CUI", "STR", "LAT", "SAB", "TTY", "MERGED_TO_CUI")
    parts = [pl.DataFrame(schema={"line": pl.UInt32(), **dict.fromkeys(columns, pl.String())})]
    for rows in release.rows("ATOMARCHIVE", columns, reading):
        own = rows.filter(pl.col("SAB") == _OWN)
        parts.append(reading.keep_valid(own, checks, path=release.path("ATOMARCHIVE")))
    alive = atoms.table["CUI"].unique()
    archive = pl.concat(parts).filter(~pl.col("CUI").is_in(alive.implode()))
    merged = pl.col("MERGED_TO_CUI")
    successors = archive.select(
        concept_id="CUI", successor=pl.when((merged != "") & (merged != pl.col("CUI"))).then(merged)
    ).unique(maintain_order=True)
    names = archive.unique(["CUI", "STR"], keep="first", maintain_order=True).with_columns(
        pl.col("LAT").replace("", "ENG"), SUPPRESS=pl.lit("O")
    )
    successors = _followed(successors, alive).with_columns(choice="successor")
    return successors, names_of(names, options, _PREFERENCE)


def _followed(successors: pl.DataFrame, alive: pl.Series) -> pl.DataFrame:
    """(concept_id, successor) where a successor that was itself merged gives way to what it was merged into."""
    is_alive = pl.col("successor").is_in(alive.implode())
    given = successors.filter(pl.col("successor").is_not_null())
    step = given.filter(~pl.col("concept_id").is_duplicated()).rename({"concept_id": "successor", "successor": "next"})
    for _ in range(_LONGEST_SUCCESSION):
        if successors.select((pl.col("successor").is_null() | is_alive).all()).item():
            break
        successors = (
            successors.join(step, on="successor", how="left", maintain_order="left")
            .with_columns(successor=pl.when(is_alive).then("successor").otherwise("next"))
            .drop("next")
        )
    return successors.with_columns(successor=pl.when(is_alive).then("successor")).unique(maintain_order=True)


FORMAT = Format(
    name="rxnorm",
    description="RxNorm in Rich Release Format (RXNCONSO, RXNREL, RXNSTY, RXNATOMARCHIVE)",
    source="the monthly zip, or the folder with the .RRF files or one above (plain or gzip)",
    obtain="https://www.nlm.nih.gov/research/umls/rxnorm/docs/rxnormfiles.html: full monthly release (free UMLS "
    "licence) or current prescribable content (no licence)",
    licence="names with SAB=RXNORM are free to use; other sources under the UMLS licence and their own terms",
    options=RrfOptions,
    read=read_rxnorm,
)
