"""The UMLS by the codes of its sources: concepts are SNOMED CT, MeSH or ICD codes instead of CUIs.

What belongs to a CUI (names, types, definitions) goes to the codes whose atoms are in it; what belongs to an atom goes
to its code.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from onoma.errors import InputError
from onoma.files.reading import Check, Reading
from onoma.terminology.assembly import (
    SOURCE_CONCEPTS,
    SOURCE_CROSS_REFERENCES,
    SOURCE_DEFINITIONS,
    SOURCE_NAMES,
    SOURCE_TYPES,
)
from onoma.terminology.readers.rrf import NO_CODE, column_check, weighted
from onoma.terminology.readers.rrf_relations import TRADE_NAME, check_size
from onoma.terminology.readers.rrf_release import Release
from onoma.terminology.tables import ACTIVE, OBSOLETE

_NOT_OWN = 128
_WORST_RANK = 31
_ATOMS = pl.Schema({**dict.fromkeys(("CUI", "AUI", "SAB", "CODE", "code"), pl.String()), "is_obsolete": pl.Boolean()})


class SourceAtoms:
    """Watches for the atoms of the chosen sources.

    Args:
        sources: SABs.
        flags: SUPPRESS flags of the atoms that count.
        shared_codes: What to do with a code that two of the sources have: refuse, merge or prefix.
    """

    columns: tuple[str, ...] = ("CUI", "AUI", "SAB", "CODE", "SUPPRESS")

    def __init__(self, sources: Sequence[str], flags: Sequence[str], shared_codes: str) -> None:
        self.sources = list(sources)
        self._flags = list(flags)
        self._shared_codes = shared_codes
        self._parts = [pl.DataFrame(schema=_ATOMS)]
        self._n_without_code = 0
        self._atoms: pl.DataFrame | None = None

    @property
    def is_of_source(self) -> pl.Expr:
        """Whether a row of MRCONSO is of one of the sources."""
        return pl.col("SAB").is_in(self.sources)

    @property
    def code(self) -> pl.Expr:
        """The code of a row of MRCONSO; null if it has none in the sources."""
        has_code = self.is_of_source & (pl.col("CODE").str.strip_chars() != "") & (pl.col("CODE") != NO_CODE)
        prefixed = pl.concat_str("SAB", "CODE", separator=":")
        return pl.when(has_code).then(prefixed if self._shared_codes == "prefix" else pl.col("CODE"))

    def see(self, rows: pl.DataFrame) -> None:
        """Note the atoms of the sources."""
        own = rows.filter(self.is_of_source, pl.col("SUPPRESS").is_in(self._flags)).with_columns(code=self.code)
        self._n_without_code += own["code"].null_count()
        own = own.filter(pl.col("code").is_not_null())
        self._parts.append(own.with_columns(is_obsolete=pl.col("SUPPRESS") == "O").select(_ATOMS.names()))

    def finish(self, release: Release, reading: Reading, kept_cuis: pl.Series | None) -> None:
        """To be called when all rows were seen.

        Args:
            release: Where errors point.
            reading: Told of atoms without a code.
            kept_cuis: Those that a filter of semantic types kept; ``None``: all.

        Raises:
            InputError: two sources share a code, and nobody said what that means.
        """
        atoms = pl.concat(self._parts)
        self._parts = []
        if self._shared_codes == "refuse" and len(self.sources) > 1:
            owners = atoms.select("code", "SAB").unique()
            shared = owners.filter(pl.col("code").is_duplicated()).sort("code", "SAB")
            if len(shared):
                code, n_more = shared["code"][0], shared["code"].n_unique() - 1
                raise InputError(
                    f"{' and '.join(shared.filter(code=code)['SAB'])} share the code '{code}'"
                    + (f" (and {n_more:,} more)" if n_more else ""),
                    path=release.path("CONSO"),
                    field="CODE",
                    fix="import with shared_codes=merge if they mean the same, or with shared_codes=prefix to write "
                    "every code with its source (SAB:CODE)",
                )
        reading.note("atoms of the chosen sources that have no code", self._n_without_code)
        self.all_codes = atoms["code"].unique()
        self._atoms = atoms if kept_cuis is None else atoms.filter(pl.col("CUI").is_in(kept_cuis.implode()))
        self._pairs = self._atoms.select("CUI", "code").unique(maintain_order=True)

    @property
    def atoms(self) -> pl.DataFrame:
        """CUI, AUI, SAB, CODE, code, is_obsolete of the atoms that count, when all rows were seen."""
        if self._atoms is None:
            raise ValueError("not all rows were seen")
        return self._atoms

    def names(self, names: pl.DataFrame, *, of_concepts: bool, release: Release) -> pl.DataFrame:
        """`SOURCE_NAMES` of codes, from those of CUIs that have a column ``own_code``.

        Args:
            names: Of CUIs.
            of_concepts: Give a code the names of its CUIs too; else only its own, and names of trade names.
            release: Where errors point.
        """
        is_kept = pl.col("own_code").is_in(self.atoms["code"].unique().implode())
        own = names.filter(is_kept).with_columns(concept_id="own_code").select(SOURCE_NAMES.names())
        others = names if of_concepts else names.filter(pl.col("term_type") == TRADE_NAME, pl.col("own_code").is_null())
        check_size(others["concept_id"], self._pairs["CUI"], release)
        others = (
            others.join(self._pairs, left_on="concept_id", right_on="CUI", how="inner", maintain_order="left_right")
            .filter(pl.col("own_code").ne_missing(pl.col("code")))
            .with_columns(concept_id="code", preference=pl.col("preference") | pl.lit(_NOT_OWN, dtype=pl.UInt8))
            .select(SOURCE_NAMES.names())
        )
        return pl.concat([own, others])

    def concepts(self, names: pl.DataFrame) -> pl.DataFrame:
        """`SOURCE_CONCEPTS`: the codes that have names; obsolete if all their atoms are."""
        named = names.select(code="concept_id").unique()
        return (
            self.atoms.group_by("code", maintain_order=True)
            .agg(pl.col("is_obsolete").all())
            .join(named, on="code", how="semi", maintain_order="left")
            .select(
                concept_id="code",
                status=pl.when("is_obsolete").then(pl.lit(OBSOLETE)).otherwise(pl.lit(ACTIVE)),
                replaced_by=pl.lit(None, dtype=pl.String),
            )
            .select(SOURCE_CONCEPTS.names())
        )

    def types(self, types: pl.DataFrame) -> pl.DataFrame:
        """`SOURCE_TYPES` of codes from those of CUIs."""
        return self._of_codes(types).select(SOURCE_TYPES.names())

    def definitions(self, definitions: pl.DataFrame, *, of_concepts: bool) -> pl.DataFrame:
        """`SOURCE_DEFINITIONS` of codes from those of CUIs, which have a column AUI."""
        if of_concepts:
            return self._of_codes(definitions).select(SOURCE_DEFINITIONS.names())
        own = definitions.join(self.atoms.select("AUI", "code"), on="AUI", how="inner", maintain_order="left")
        return own.with_columns(concept_id="code").select(SOURCE_DEFINITIONS.names())

    def ends(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Relations between codes: rows of MRREL of which both atoms are of the sources."""
        code_of = self.atoms.select("AUI", "code").unique("AUI", keep="first", maintain_order=True)
        for end in ("1", "2"):
            rows = rows.join(
                code_of.rename({"AUI": f"AUI{end}", "code": f"code{end}"}), on=f"AUI{end}", maintain_order="left"
            )
        return rows.with_columns(CUI1="code1", CUI2="code2")

    def references(self, codes: pl.DataFrame) -> pl.DataFrame:
        """`SOURCE_CROSS_REFERENCES` to CUIs, and to the codes that other sources have for them.

        Args:
            codes: Those of CUIs.
        """
        is_alone = pl.col("CUI").n_unique().over("code") == 1
        exact, unsure = pl.lit("exactMatch"), pl.lit("xref")
        cuis = self._pairs.select(
            concept_id="code",
            code=pl.lit("UMLS:") + pl.col("CUI"),
            relation=pl.when(is_alone).then(exact).otherwise(unsure),
            source=pl.lit("UMLS"),
            line=pl.lit(None, dtype=pl.UInt32),
        )
        own = self.atoms.select(concept_id="code", code=pl.concat_str("SAB", "CODE", separator=":")).unique()
        pairs = self._pairs.with_columns(is_alone=is_alone)
        others = (
            codes.join(
                pairs, left_on="concept_id", right_on="CUI", how="inner", suffix="_own", maintain_order="left_right"
            )
            .with_columns(
                concept_id="code_own",
                relation=pl.when((pl.col("relation") == exact) & pl.col("is_alone")).then(exact).otherwise(unsure),
            )
            .join(own, on=["concept_id", "code"], how="anti", maintain_order="left")
        )
        return pl.concat([cuis, others.select(SOURCE_CROSS_REFERENCES.names())])

    def _of_codes(self, rows: pl.DataFrame) -> pl.DataFrame:
        joined = rows.join(self._pairs, left_on="concept_id", right_on="CUI", how="inner", maintain_order="left_right")
        return joined.with_columns(concept_id="code")


def preference(release: Release, atoms: SourceAtoms, reading: Reading) -> pl.Expr:
    """Smaller is better: names of the code itself, not suppressed, English, then by MRRANK.

    MRRANK says which term types of a source its makers prefer; TS, STT and ISPREF, which are about the CUI, stand in if
    it is not there.
    """
    ranks = _ranks(release, atoms, reading)
    if ranks:
        key = pl.concat_str("SAB", "TTY", separator="|")
        rank = key.replace_strict(ranks, default=_WORST_RANK, return_dtype=pl.UInt8)
    else:
        rank = weighted([pl.col("TS") != "P", pl.col("STT") != "PF", pl.col("ISPREF") != "Y"])
    drawbacks = [~atoms.is_of_source, pl.col("is_suppressed"), pl.col("LAT") != "en"]
    return weighted(drawbacks) * pl.lit(32, dtype=pl.UInt8) + rank


def _ranks(release: Release, atoms: SourceAtoms, reading: Reading) -> dict[str, int]:
    """``SAB|TTY`` to its place among the term types of the source, 0 the best."""
    checks = (
        Check(pl.col("RANK").str.contains(r"^\d{1,9}$"), "RANK", "a number", "RANK"),
        column_check(release.family, "TTY", "a term type", "SAB"),
    )
    parts = [
        good.filter(atoms.is_of_source)
        for good in release.rows("RANK", ("RANK", "SAB", "TTY", "SUPPRESS"), reading, checks)
    ]
    if not parts:
        return {}
    ranked = (
        pl.concat(parts)
        .sort(pl.col("RANK").cast(pl.UInt32), descending=True, maintain_order=True)
        .unique(["SAB", "TTY"], keep="first", maintain_order=True)
        .with_columns(place=pl.int_range(pl.len()).over("SAB").clip(upper_bound=_WORST_RANK - 1))
    )
    return dict(ranked.select(pl.concat_str("SAB", "TTY", separator="|"), "place").iter_rows())
