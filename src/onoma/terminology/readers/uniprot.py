"""UniProt: entries of Swiss-Prot or TrEMBL in UniProt's text format (``uniprot_sprot.dat.gz``).

Lines begin with two letters that say what they hold, and ``//`` ends an entry. Evidence (``{ECO:...}``) is left out.
Specification: https://web.expasy.org/docs/userman.html

====== ===============================================================================================================
line   becomes
====== ===============================================================================================================
AC     the first accession is the code. The others are obsolete, replaced by it; if several entries have one, each entry
       is a choice, a relation "consider"
DE     names of the protein. The preferred name is RecName, or SubName in TrEMBL. Term types: recommended_name,
       alternative_name, submitted_name, with ``_short`` for short ones; allergen, biotech, cd_antigen, inn. EC numbers
       are of reactions, not of proteins, and not read; nor are names of domains and chains (Includes, Contains)
GN     names of the gene: gene_name, gene_synonym, ordered_locus_name, orf_name; none with ``genes=no``
OS     the organism is the semantic type: "Homo sapiens (Human)"
OX     the organism as ``taxa`` chooses it
====== ===============================================================================================================

All names are English, with source "UniProt". Names are shared by the same protein of many organisms: choose these with
``taxa`` if the texts do not say which is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from pydantic import Field

from onoma.files.archives import SourceFile
from onoma.files.delimited import filled_lines
from onoma.files.reading import Check, Reading, check_chosen
from onoma.files.text_files import only_file
from onoma.terminology.assembly import SOURCE_CONCEPTS, SOURCE_NAMES, SOURCE_RELATIONS, SOURCE_TYPES, SourceTables
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.options import ReaderOptions, Words
from onoma.terminology.tables import ACTIVE, OBSOLETE

_SOURCE = "UniProt"
_END = "//"
_LINES = ("AC", "DE", "GN", "OS", "OX", _END)
_EVIDENCE = r"\s*\{ECO:[^}]*\}"
_CATEGORIES = {"RecName": "recommended_name", "AltName": "alternative_name", "SubName": "submitted_name"}
_OTHER_NAMES = {"Allergen": "allergen", "Biotech": "biotech", "CD_antigen": "cd_antigen", "INN": "inn"}
_GENE_NAMES = {
    "Name": "gene_name",
    "Synonyms": "gene_synonym",
    "OrderedLocusNames": "ordered_locus_name",
    "ORFNames": "orf_name",
}
_PREFERENCE = {"recommended_name": 0, "submitted_name": 1}
_NAMES = pl.Schema({"entry": pl.UInt32(), "text": pl.String(), "term_type": pl.String()})
_ENTRIES = pl.Schema(
    {
        "entry": pl.UInt32(),
        "line": pl.UInt32(),
        "concept_id": pl.String(),
        "others": pl.List(pl.String()),
        "organism": pl.String(),
        "taxon": pl.String(),
    }
)


class UniprotOptions(ReaderOptions):
    """Options of the reader of UniProt."""

    taxa: Words = Field(
        default=(), description="keep only entries of these organisms, by NCBI's tax_id, e.g. 9606,10090; empty: all"
    )
    genes: bool = Field(default=True, description="keep names of genes (yes or no)")


def read_uniprot(source: str, options: UniprotOptions, reading: Reading) -> SourceTables:
    """Read entries of UniProt.

    Args:
        source: The file, plain, gzip, or alone in a zip archive.
        options: Filters.
        reading: Where bad entries go.

    Raises:
        InputError: no such file; a filter names what the file does not have; under "strict" also an entry without
            accession or name, a code of two entries, or text after the last entry.
    """
    file = only_file(Path(source))
    names = [pl.DataFrame(schema=_NAMES)]
    entries = [pl.DataFrame(schema=_ENTRIES)]
    organisms: set[str] = set()
    for lines in _whole_entries(file, reading):
        found = _entries(lines)
        organisms.update(found["taxon"].drop_nulls())
        if options.taxa:
            is_wanted = found["taxon"].is_in(options.taxa).fill_null(False)
            reading.note("entries of other organisms, left out", int((~is_wanted).sum()))
            found = found.filter(is_wanted)
        named = _names(lines.join(found, on="entry", how="semi", maintain_order="left"), options)
        entries.append(_checked(found, named, file, reading))
        names.append(named)
    check_chosen("taxa", options.taxa, organisms, path=file.path, among="the file")
    all_entries = _distinct(pl.concat(entries), file, reading)
    concepts, choices = _concepts(all_entries)
    all_names = pl.concat(names).join(all_entries.select("entry", "concept_id"), on="entry", maintain_order="left")
    return SourceTables(
        path=file.path,
        concepts=concepts,
        names=all_names.with_columns(
            language=pl.lit("en"),
            source=pl.lit(_SOURCE),
            preference=pl.col("term_type").replace_strict(_PREFERENCE, default=2, return_dtype=pl.UInt8),
            is_suppressed=pl.lit(False),
        ).select(SOURCE_NAMES.names()),
        semantic_types=all_entries.filter(pl.col("organism") != "")
        .select("concept_id", pl.col("organism").alias("semantic_type"), "line")
        .select(SOURCE_TYPES.names()),
        relations=choices,
    )


def _whole_entries(file: SourceFile, reading: Reading) -> Iterator[pl.DataFrame]:
    """Lines that are read, of whole entries: ``line``, ``tag``, ``text``, and ``entry``, its number."""
    waiting: pl.DataFrame | None = None
    n_entries = 0
    for lines in filled_lines(file, reading):
        rows = lines.select("line", tag=pl.col("whole").str.slice(0, 2), text=pl.col("whole").str.slice(5)).filter(
            pl.col("tag").is_in(_LINES)
        )
        rows = rows if waiting is None else pl.concat([waiting, rows])
        ends = rows.select(pl.arg_where(pl.col("tag") == _END)).to_series()
        n_whole = int(ends[-1]) + 1 if len(ends) else 0
        waiting = rows[n_whole:]
        n_before = (pl.col("tag") == _END).shift(1, fill_value=False).cum_sum()
        if n_whole:
            yield rows[:n_whole].with_columns(entry=(n_before + n_entries).cast(pl.UInt32))
        n_entries += len(ends)
    if waiting is not None and not waiting.is_empty():
        reading.reject(
            "the last entry does not end",
            path=file.path,
            line=waiting["line"][0],
            text=waiting["text"][0],
            expected=f"a line {_END}",
            fix="get the file again",
        )


def _joined(lines: pl.DataFrame, tag: str) -> pl.DataFrame:
    """``entry`` and the text of its lines with this tag, joined by blanks."""
    return (
        lines.filter(pl.col("tag") == tag)
        .group_by("entry", maintain_order=True)
        .agg(pl.col("text").str.strip_chars().str.join(" ").str.replace_all(_EVIDENCE, "").alias(tag))
    )


def _entries(lines: pl.DataFrame) -> pl.DataFrame:
    """`_ENTRIES`; an entry without accession has ``concept_id`` ""."""
    found = lines.group_by("entry", maintain_order=True).agg(pl.col("line").first())
    for tag in ("AC", "OS", "OX"):
        found = found.join(_joined(lines, tag), on="entry", how="left", maintain_order="left")
    codes = (pl.col("AC").fill_null("").str.split(";").list.eval(pl.element().str.strip_chars())).list.eval(
        pl.element().filter(pl.element() != "")
    )
    return found.select(
        "entry",
        "line",
        concept_id=codes.list.get(0, null_on_oob=True).fill_null(""),
        others=codes.list.slice(1),
        organism=pl.col("OS").fill_null("").str.strip_chars_end("."),
        taxon=pl.col("OX").str.extract(r"NCBI_TaxID=([0-9]+)"),
    ).cast(_ENTRIES)


def _names(lines: pl.DataFrame, options: UniprotOptions) -> pl.DataFrame:
    """``entry``, ``text``, ``term_type``: of proteins, then of genes, those of an entry together."""
    text = pl.col("text").str.replace_all(_EVIDENCE, "")
    proteins = (
        lines.filter(pl.col("tag") == "DE")
        .with_columns(
            category=pl.col("text").str.extract(r"^(RecName|AltName|SubName):").forward_fill().over("entry"),
            is_of_part=pl.col("text").is_in(["Includes:", "Contains:"]).cum_max().over("entry"),
            kind=pl.col("text").str.extract(r"^(?:\w+:)?\s*(\w+)="),
            text=text.str.extract(r"^(?:\w+:)?\s*\w+=(.*?);?$").str.strip_chars(),
        )
        .filter(~pl.col("is_of_part") & pl.col("kind").is_in(["Full", "Short", *_OTHER_NAMES]))
        .with_columns(category=pl.col("category").replace_strict(_CATEGORIES, default=None, return_dtype=pl.String))
        .select(
            "entry",
            "text",
            term_type=pl.when(pl.col("kind") == "Full")
            .then("category")
            .when(pl.col("kind") == "Short")
            .then(pl.col("category") + "_short")
            .otherwise(pl.col("kind").replace_strict(_OTHER_NAMES, default=None, return_dtype=pl.String)),
        )
    )
    parts = [proteins]
    if options.genes:
        genes = (
            _joined(lines, "GN")
            .select("entry", piece=pl.col("GN").str.split(";"))
            .explode("piece")
            .select(
                "entry",
                text=pl.col("piece").str.extract(r"\w+=(.*)$").str.split(", "),
                term_type=pl.col("piece")
                .str.extract(r"(\w+)=")
                .replace_strict(_GENE_NAMES, default=None, return_dtype=pl.String),
            )
            .explode("text")
            .with_columns(pl.col("text").str.strip_chars())
        )
        parts.append(genes)
    return pl.concat(parts).drop_nulls().filter(pl.col("text") != "").sort("entry", maintain_order=True)


def _checked(entries: pl.DataFrame, names: pl.DataFrame, file: SourceFile, reading: Reading) -> pl.DataFrame:
    """Entries with a code and a name; the others are rejected."""
    has_name = pl.col("entry").is_in(names["entry"].unique().implode())
    checks = (
        Check(pl.col("concept_id") != "", "AC", "an accession", "organism"),
        Check(has_name, "DE", "a name of the protein or its gene", "concept_id", "an entry without name"),
    )
    return reading.keep_valid(entries, checks, path=file.path)


def _distinct(entries: pl.DataFrame, file: SourceFile, reading: Reading) -> pl.DataFrame:
    is_first = entries["concept_id"].is_first_distinct()
    reading.reject_rows(
        entries.filter(~is_first).select("line", text="concept_id"),
        "two entries have one accession",
        path=file.path,
        field="AC",
        expected="one entry for each first accession",
    )
    return entries.filter(is_first)


def _concepts(entries: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`SOURCE_CONCEPTS` of the entries and of accessions that were replaced; "consider" where several replace one."""
    gone = (
        entries.select("concept_id", "others", "line")
        .explode("others")
        .drop_nulls("others")
        .unique(("concept_id", "others"), keep="first", maintain_order=True)
        .join(entries.select(others="concept_id"), on="others", how="anti", maintain_order="left")
        .with_columns(n=pl.len().over("others"))
    )
    retired = gone.group_by("others", maintain_order=True).agg(pl.col("concept_id").first(), pl.col("n").first())
    concepts = pl.concat(
        [
            entries.select("concept_id", status=pl.lit(ACTIVE), replaced_by=pl.lit(None, dtype=pl.String)),
            retired.select(
                concept_id="others",
                status=pl.lit(OBSOLETE),
                replaced_by=pl.when(pl.col("n") == 1).then("concept_id"),
            ),
        ]
    ).select(SOURCE_CONCEPTS.names())
    choices = gone.filter(pl.col("n") > 1).select(
        head="others", relation=pl.lit("consider"), tail="concept_id", source=pl.lit(_SOURCE), line="line"
    )
    return concepts, choices.select(SOURCE_RELATIONS.names()).cast(SOURCE_RELATIONS)


FORMAT = Format(
    name="uniprot",
    description="UniProt: names of proteins and their genes, from entries in UniProt's text format",
    source="uniprot_sprot.dat, or entries downloaded as text (plain, gzip or zip)",
    obtain="https://ftp.uniprot.org/pub/databases/uniprot/current_release/knowledgebase/ "
    "(complete/uniprot_sprot.dat.gz, or one of taxonomic_divisions/)",
    licence="CC BY 4.0",
    options=UniprotOptions,
    read=read_uniprot,
)
