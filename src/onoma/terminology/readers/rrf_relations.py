"""Relations of the UMLS and RxNorm, and the names that drugs get from their trade names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.terminology.assembly import SOURCE_NAMES, SOURCE_RELATIONS
from onoma.terminology.readers.rrf import Gathered, RrfOptions, column_check, filtered, flag_check
from onoma.terminology.readers.rrf_release import Release

TRADE_NAME = "tradename_of"
"""The term type of a name that a drug has from its trade names; also the relation it comes from."""
MAX_NAMES = 1 << 28
"""More names than that are no terminology but a mistake or an attack: all names of one concept times all of another."""
_TRADE_NAME_PREFERENCE = 255
_GATHERED_ROWS = 1 << 20
_IS_HIERARCHY_BY_REL = pl.col("REL").is_in(["CHD", "PAR"]) & ~pl.col("RELA").is_in(["", "isa", "is_a", "inverse_isa"])
"""Parents and children by RELs whose RELAs do not say it."""


@dataclass(frozen=True)
class Relations:
    """What MRREL or RXNREL gives.

    Attributes:
        table: `SOURCE_RELATIONS`.
        trade_names: (generic, brand): CUIs of drugs and of their trade names.
    """

    table: pl.DataFrame
    trade_names: pl.DataFrame


def read_relations(
    release: Release,
    options: RrfOptions,
    reading: Reading,
    *,
    resolve: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
    to_ends: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
    allow_no_flag: bool = False,
) -> Relations:
    """Read MRREL or RXNREL, as far as options ask for it.

    Args:
        release: Where it is.
        options: Filters.
        reading: Where bad rows go.
        resolve: Fills in CUI1 and CUI2 where only AUI1 and AUI2 stand; unset: CUIs must stand there.
        to_ends: Replaces CUI1 and CUI2 by what the relation shall hold between.
        allow_no_flag: Whether SUPPRESS may be empty, and N is meant.
    """
    pairs = Gathered(pl.Schema({"generic": pl.String(), "brand": pl.String()}))
    parts = [pl.DataFrame(schema=SOURCE_RELATIONS)]
    if not (options.relations or options.trade_names):
        return Relations(parts[0], pairs.table())
    for rows in _relation_rows(release, options, reading, resolve, to_ends is not None, allow_no_flag):
        if options.trade_names:
            pairs.add(_trade_names(rows))
        if options.relations:
            ends = rows
            if to_ends:
                coded = to_ends(rows)
                reading.note("relations that are not between the chosen codes", len(rows) - len(coded))
                ends = coded.filter(pl.col("CUI1") != pl.col("CUI2"))
                reading.note("relations between atoms of one code, left out", len(coded) - len(ends))
            relation = pl.when(pl.col("RELA") != "").then("RELA").otherwise("REL")
            parts += [_sentences(ends, relation), _sentences(ends.filter(_IS_HIERARCHY_BY_REL), pl.col("REL"))]
    return Relations(pl.concat(parts), pairs.table())


def _sentences(rows: pl.DataFrame, relation: pl.Expr) -> pl.DataFrame:
    return rows.select(head="CUI2", relation=relation, tail="CUI1", source="SAB", line="line")


def _relation_rows(
    release: Release,
    options: RrfOptions,
    reading: Reading,
    resolve: Callable[[pl.DataFrame], pl.DataFrame] | None,
    keep_atoms: bool,
    allow_no_flag: bool,
) -> Iterator[pl.DataFrame]:
    family = release.family
    columns = ["CUI1", "REL", "CUI2", "RELA", "SAB", "SUPPRESS"]
    checks = [column_check(family, "REL", "a relation", "CUI1"), flag_check(*([""] if allow_no_flag else []))]
    if resolve is None:
        checks = [column_check(family, end, "a code", "CUI2") for end in ("CUI1", "CUI2")] + checks
    if resolve is not None or keep_atoms:
        columns += ["AUI1", "AUI2"]

    def good_rows() -> Iterator[pl.DataFrame]:
        for good in release.rows("REL", columns, reading, checks):
            yield filtered(good.with_columns(pl.col("SUPPRESS").replace("", "N")) if allow_no_flag else good, options)

    if resolve is not None:
        yield from (resolve(rows) for rows in gathered(good_rows()))
    else:
        yield from gathered(good_rows()) if keep_atoms else good_rows()


def gathered(blocks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Blocks put together until they are worth a join with a table of millions of rows."""
    parts: list[pl.DataFrame] = []
    for block in blocks:
        parts.append(block)
        if sum(map(len, parts)) >= _GATHERED_ROWS:
            yield pl.concat(parts)
            parts = []
    if parts:
        yield pl.concat(parts)


def _trade_names(rows: pl.DataFrame) -> pl.DataFrame:
    """(generic, brand). "CUI2 tradename_of CUI1" and, the other way round, "CUI2 has_tradename CUI1"."""
    drug_first = pl.col("RELA") == TRADE_NAME
    return (
        rows.filter(pl.col("RELA").is_in([TRADE_NAME, "has_tradename"]), pl.col("CUI1") != pl.col("CUI2"))
        .select(
            generic=pl.when(drug_first).then("CUI1").otherwise("CUI2"),
            brand=pl.when(drug_first).then("CUI2").otherwise("CUI1"),
        )
        .unique(maintain_order=True)
    )


def add_trade_names(names: pl.DataFrame, pairs: pl.DataFrame, release: Release) -> pl.DataFrame:
    """The names, and those of trade names once more as names of their drugs.

    Args:
        names: With `SOURCE_NAMES`; other columns are null in the added rows.
        pairs: (generic, brand).
        release: Where errors point.

    Raises:
        InputError: there are absurdly many.
    """
    pairs = pairs.join(names.select(generic="concept_id").unique(), on="generic", how="semi", maintain_order="left")
    of_brands = names.join(
        pairs.select(concept_id="brand").unique(), on="concept_id", how="semi", maintain_order="left"
    )
    check_size(of_brands["concept_id"], pairs["brand"], release)
    added = (
        pairs.join(of_brands, left_on="brand", right_on="concept_id", how="inner", maintain_order="left_right")
        .with_columns(
            concept_id="generic",
            term_type=pl.lit(TRADE_NAME),
            preference=pl.lit(_TRADE_NAME_PREFERENCE, dtype=pl.UInt8),
        )
        .select(SOURCE_NAMES.names())
    )
    return pl.concat([names, added], how="diagonal") if len(added) else names


def note_trade_names(names: pl.DataFrame, reading: Reading) -> None:
    """Tell how many of the names that are left, when all filters were at work, `add_trade_names` added."""
    reading.note("trade names that became names of their drugs", int((names["term_type"] == TRADE_NAME).sum()))


def check_size(left: pl.Series, right: pl.Series, release: Release) -> None:
    """Refuse a join that would have more rows than a terminology can have names.

    Raises:
        InputError: it would.
    """
    n_left, n_right = (keys.alias("key").value_counts(name="n") for keys in (left, right))
    product = n_left.join(n_right, on="key").select((pl.col("n").cast(pl.UInt64) * pl.col("n_right")).sum()).item()
    if product > MAX_NAMES:
        raise InputError(
            f"that would be {product:,} names: many concepts or codes share too many names",
            path=release.path("CONSO"),
            expected=f"at most {MAX_NAMES:,}",
            fix="filter by source, language or semantic type",
        )
