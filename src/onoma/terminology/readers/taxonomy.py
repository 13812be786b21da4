r"""NCBI Taxonomy: the dump ``taxdump`` or ``new_taxdump``, https://ftp.ncbi.nlm.nih.gov/pub/taxonomy/.

Lines of fields with ``\t|\t`` between them and ``\t|`` behind the last, without quoting; both dumps describe them in
their readme. Other tools write dumps of this kind for taxonomies of their own, whose codes need not be numbers.

===========  =====================================================================================================
file         becomes
===========  =====================================================================================================
nodes.dmp    a concept for each taxon, ``tax_id`` being its code; the rank is its semantic type ("species"), the parent
             a relation "is_a". The other fields are not read
names.dmp    names; the name class is the term type, and the scientific name the preferred one. The unique name, which
             tells namesakes apart (``Bacteria <bacteria>``), is not read: nobody writes it
merged.dmp   obsolete concepts without names, replaced by the taxon they were merged into
delnodes.dmp obsolete concepts without names
===========  =====================================================================================================

Name classes: unless ``name_classes`` chooses, all are kept but "authority" (the name with author and year), "type
material" (numbers of specimens and strains), "in-part" and "includes" (names of more, or less, than the taxon) and
"misnomer". They are counted by class. All names have the language English, as in the UMLS, and the source "NCBITaxon".

Filters (``ranks``, ``below``, ``name_classes``): a taxon is kept if it has one of the ranks, is at or below one of the
taxa, and has a name of one of the classes. If the parent of a taxon is left out, the relation leads to the nearest one
above it that is kept, so that a species without its subgenus is still below its genus. With ``ranks`` or ``below``,
only retired codes that lead to a taxon that is kept are read.

merged.dmp and delnodes.dmp may be missing. The files may be plain or gzip, in a folder or one below it, or in an
archive (``taxdump.tar.gz``, ``taxdmp.zip``). What is offered as OBO or OWL (NCBITaxon) is read by ``obo`` and ``owl``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from onoma.errors import InputError
from onoma.files.archives import SourceFile, files_opened
from onoma.files.delimited import first_line, read_delimited
from onoma.files.reading import Check, Reading, check_chosen, first_of_each
from onoma.terminology.assembly import SOURCE_CONCEPTS, SOURCE_NAMES, SourceTables
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.options import ReaderOptions, Words
from onoma.terminology.tables import ACTIVE, OBSOLETE
from onoma.types import RowArray

_SOURCE = "NCBITaxon"
_FIELDS = {
    "nodes": ("tax_id", "parent tax_id", "rank"),
    "names": ("tax_id", "name_txt", "unique name", "name class"),
    "merged": ("old_tax_id", "new_tax_id"),
    "delnodes": ("tax_id",),
}
"""Table to the first fields of its lines; nodes have more, and not always as many."""
_MAY_BE_EMPTY = ("rank", "unique name")
_CLASSES_LEFT_OUT = ("authority", "type material", "in-part", "includes", "misnomer")
_SCIENTIFIC, _COMMON = "scientific name", "genbank common name"
_WHAT_TO_GIVE = "give the folder or archive with nodes.dmp and names.dmp, e.g. taxdump.tar.gz or taxdmp.zip"


class TaxonomyOptions(ReaderOptions):
    """Options of the reader of NCBI Taxonomy."""

    name_classes: Words = Field(
        default=(),
        description="classes of names to keep, e.g. scientific name,synonym, or all; unset: all but "
        + ", ".join(_CLASSES_LEFT_OUT),
    )
    ranks: Words = Field(default=(), description="keep only taxa of these ranks, e.g. species,strain; empty: all")
    below: Words = Field(
        default=(), description="keep only these taxa and those below them, e.g. 7742,10239 (tax_id); empty: all"
    )
    retired: bool = Field(default=True, description="read merged and deleted taxa (yes or no)")


def read_taxonomy(source: str, options: TaxonomyOptions, reading: Reading) -> SourceTables:
    """Read a dump of NCBI Taxonomy.

    Args:
        source: The folder or archive with the files, or one of them.
        options: Filters.
        reading: Where bad rows go.

    Raises:
        InputError: nodes.dmp or names.dmp is missing; a filter names what the dump does not have; under "strict" also
            a bad line, a taxon that is there twice, or a line that refers to a taxon that is not there.
    """
    path = Path(source)
    given = path.parent if path.is_file() and _table(path.name) else path
    with files_opened(given) as files:
        tables = _highest(files, given)
        for table in ("merged", "delnodes"):
            if table not in tables:
                reading.note(f"files that the release does not have: {table}.dmp", 1)
        nodes = _read(tables, "nodes", reading).rename({"parent tax_id": "parent"})
        nodes = _once(nodes, "tax_id", tables["nodes"].path, reading)
        names = _read(tables, "names", reading).rename({"name_txt": "text", "name class": "term_type"})
        retired = _read_retired(tables, reading) if options.retired else pl.DataFrame(schema=_RETIRED)
    nodes_path, names_path = tables["nodes"].path, tables["names"].path
    names = _of_classes(names, options, names_path, reading)
    # Codes are compared once; from here on a taxon is its row in nodes.dmp.
    rows = nodes.select("tax_id").with_row_index("row")
    names = names.join(rows, on="tax_id", how="left", maintain_order="left")
    is_nowhere = names["row"].is_null()
    reading.reject_rows(
        names.filter(is_nowhere).select("line", text="tax_id"),
        "this refers to a taxon that nodes.dmp does not have",
        path=names_path,
        field="tax_id",
        expected="a tax_id of nodes.dmp",
    )
    names = names.filter(~is_nowhere)
    own_rows = np.arange(len(nodes))
    found_parents = nodes.join(rows, left_on="parent", right_on="tax_id", how="left", maintain_order="left")["row"]
    parents = found_parents.fill_null(pl.Series(own_rows)).to_numpy().astype(np.int64)

    kept = _kept(nodes, parents, options, nodes_path, retired, reading)
    has_name = np.zeros(len(nodes), np.bool_)
    has_name[names["row"].to_numpy()] = True
    reading.note("taxa without a name of the classes that are kept, left out", int((kept & ~has_name).sum()))
    kept &= has_name
    names = names.filter(pl.Series(kept)[names["row"]])

    targets = _nearest(parents, kept)
    reading.note(
        "parents that are left out, in whose place the nearest above them stands",
        int((kept & ~kept[parents] & kept[targets]).sum()),
    )
    is_unknown = found_parents.is_null()
    has_parent = pl.Series(kept & (targets != own_rows) & kept[targets]) | (pl.Series(kept) & is_unknown)
    above = nodes["tax_id"].gather(targets)
    taxa = nodes.filter(pl.Series(kept))
    return SourceTables(
        path=names_path,
        concepts=_concepts(nodes, taxa, retired, options, reading),
        names=names.select(
            concept_id="tax_id",
            text="text",
            language=pl.lit("en"),
            source=pl.lit(_SOURCE),
            term_type="term_type",
            preference=pl.when(pl.col("term_type") == _SCIENTIFIC)
            .then(0)
            .when(pl.col("term_type") == _COMMON)
            .then(1)
            .otherwise(2)
            .cast(pl.UInt8),
            is_suppressed=pl.lit(False),
        ).select(SOURCE_NAMES.names()),
        semantic_types=taxa.filter(pl.col("rank") != "").select(concept_id="tax_id", semantic_type="rank", line="line"),
        relations=nodes.select(
            head="tax_id",
            relation=pl.lit("is_a"),
            tail=pl.when(is_unknown).then("parent").otherwise(above),
            source=pl.lit(_SOURCE),
            line="line",
        ).filter(has_parent),
        paths={"semantic_types": nodes_path, "relations": nodes_path},
    )


def _table(name: str) -> str | None:
    """Which table a file is, by its name."""
    table, dot, _ = name.removesuffix(".gz").rpartition(".dmp")
    return table if dot and table in _FIELDS else None


def _highest(files: Sequence[SourceFile], source: Path) -> dict[str, SourceFile]:
    """The tables in the highest folder that has nodes.dmp and names.dmp; a plain file before one in gzip."""
    folders: dict[str, dict[str, SourceFile]] = {}
    for file in files:
        table = _table(file.base)
        if table:
            folders.setdefault(file.folder, {}).setdefault(table, file)
    whole = [folder for folder, tables in folders.items() if {"nodes", "names"} <= tables.keys()]
    if not whole:
        there = sorted({table for tables in folders.values() for table in tables})
        raise InputError(
            "there is no folder with nodes.dmp and names.dmp here",
            path=source,
            found=", ".join(f"{table}.dmp" for table in there) if there else "no file of a taxonomy dump",
            fix=_WHAT_TO_GIVE,
        )
    depth = min(len(PurePosixPath(folder).parts) for folder in whole)
    highest = sorted(folder for folder in whole if len(PurePosixPath(folder).parts) == depth)
    if len(highest) > 1:
        raise InputError(f"there are several dumps here: {', '.join(highest[:5])}", path=source, fix="name one of them")
    return folders[highest[0]]


def _read(tables: dict[str, SourceFile], table: str, reading: Reading) -> pl.DataFrame:
    """The fields of a table and ``line``; none if it is not there, or has no bytes."""
    fields = [field for field in _FIELDS[table] if field != "unique name"]
    schema = pl.Schema({**dict.fromkeys(fields, pl.String()), "line": pl.UInt32()})
    file = tables.get(table)
    is_missing = file is None or (table not in ("nodes", "names") and not file.size())
    parts = [] if file is None or is_missing else _blocks(file, table, fields, reading)
    return pl.concat([pl.DataFrame(schema=schema), *(part.select(schema.names()) for part in parts)])


def _n_fields_of_nodes(file: SourceFile, reading: Reading) -> int:
    """As many as the first line has: 13 in taxdump, more in new_taxdump, fewer in dumps of other tools."""
    line, text = first_line(file, reading)
    n_fields = text.count("\t|")
    if n_fields < len(_FIELDS["nodes"]) or not text.endswith("\t|"):
        raise InputError(
            "this is no nodes.dmp of a taxonomy dump",
            path=file.path,
            line=line,
            expected=f"{', '.join(_FIELDS['nodes'])}, with a tab and a bar behind each",
            found=text[:200],
            fix=_WHAT_TO_GIVE,
        )
    return n_fields


def _blocks(file: SourceFile, table: str, keep: list[str], reading: Reading) -> Iterator[pl.DataFrame]:
    n_fields = _n_fields_of_nodes(file, reading) if table == "nodes" else len(_FIELDS[table])
    # Divided by tabs, every other field is a bar.
    known = [*_FIELDS[table], *(f"field {place}" for place in range(len(_FIELDS[table]), n_fields))]
    bars = {field: f"{field}|" for field in known}
    checks = [
        Check(pl.col(field).str.strip_chars() != "", field, "a value", keep[0])
        for field in keep
        if field not in _MAY_BE_EMPTY
    ]
    is_barred = pl.all_horizontal(pl.col(bars[field]) == "|" for field in keep)
    checks.append(Check(is_barred, None, "a tab and a bar behind each field", keep[0], "fields without a bar"))
    fields = [part for field in known for part in (field, bars[field])]
    blocks = read_delimited(
        file,
        reading,
        separator="\t",
        fields=fields,
        keep=[part for field in keep for part in (field, bars[field])],
        skip_blank_lines=True,
    )
    for block in blocks:
        yield reading.keep_valid(block, checks, path=file.path)


def _once(rows: pl.DataFrame, key: str, path: Path, reading: Reading) -> pl.DataFrame:
    first, differing, _ = first_of_each(rows, key)
    reading.reject_rows(
        differing.select("line", text=key),
        "an earlier line of this taxon says another thing, which holds",
        path=path,
        field=key,
        expected="one line for each",
    )
    return first


_RETIRED = pl.Schema({"concept_id": pl.String(), "replaced_by": pl.String()})


def _read_retired(tables: dict[str, SourceFile], reading: Reading) -> pl.DataFrame:
    """`_RETIRED`: merged taxa, then deleted ones."""
    merged = _read(tables, "merged", reading)
    if not merged.is_empty():
        merged = _once(merged, "old_tax_id", tables["merged"].path, reading)
    deleted = _read(tables, "delnodes", reading)
    return pl.concat(
        [
            merged.select(concept_id="old_tax_id", replaced_by="new_tax_id"),
            deleted.select(concept_id="tax_id", replaced_by=pl.lit(None, dtype=pl.String)),
        ]
    ).unique("concept_id", keep="first", maintain_order=True)


def _of_classes(names: pl.DataFrame, options: TaxonomyOptions, path: Path, reading: Reading) -> pl.DataFrame:
    """Names of the classes that are wanted; the others are counted."""
    counts = dict(names["term_type"].value_counts(sort=True).iter_rows())
    wanted = options.name_classes
    if wanted == ("all",):
        return names
    check_chosen("name_classes", wanted, counts, path=path)
    left_out = [one for one in counts if (one not in wanted if wanted else one in _CLASSES_LEFT_OUT)]
    for one in left_out:
        reading.note(f"names of the class {one}, left out", counts[one])
    return names.filter(~pl.col("term_type").is_in(left_out))


def _kept(
    nodes: pl.DataFrame,
    parents: RowArray,
    options: TaxonomyOptions,
    path: Path,
    retired: pl.DataFrame,
    reading: Reading,
) -> npt.NDArray[np.bool_]:
    """Which taxa ``ranks`` and ``below`` keep."""
    kept = np.ones(len(nodes), np.bool_)
    if options.ranks:
        check_chosen("ranks", options.ranks, nodes["rank"].unique(), path=path)
        kept &= nodes["rank"].is_in(options.ranks).to_numpy()
    if options.below:
        is_named = nodes["tax_id"].is_in(options.below)
        there = set(nodes["tax_id"].filter(is_named))
        for code in options.below:
            if code not in there:
                successor = dict(retired.filter(pl.col("concept_id") == code).iter_rows()).get(code)
                raise InputError(
                    f"there is no taxon '{code}'",
                    path=path,
                    field="below",
                    expected="the tax_id of a taxon",
                    fix=f"name {successor}, into which it was merged" if successor else None,
                )
        kept &= _below(parents, is_named.to_numpy())
    reading.note("taxa that a filter leaves out", int((~kept).sum()))
    return kept


def _below(parents: RowArray, is_named: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which taxa are named or have one above them that is. Each step looks twice as far up as the one before."""
    found, above = is_named.copy(), parents
    for _ in range(len(parents).bit_length()):
        found |= found[above]
        above = above[above]
    return found


def _nearest(parents: RowArray, kept: npt.NDArray[np.bool_]) -> RowArray:
    """The nearest taxon above each that is kept; any that is not kept if there is none."""
    up = np.where(kept, np.arange(len(parents)), parents)
    if not kept.all():
        for _ in range(len(parents).bit_length()):
            up = up[up]
    return up[parents]


def _concepts(
    nodes: pl.DataFrame, taxa: pl.DataFrame, retired: pl.DataFrame, options: TaxonomyOptions, reading: Reading
) -> pl.DataFrame:
    """`SOURCE_CONCEPTS`: taxa in the order of nodes.dmp, then merged, then deleted ones."""
    gone = retired.join(nodes, left_on="concept_id", right_on="tax_id", how="anti", maintain_order="left")
    reading.note("merged or deleted taxa that nodes.dmp has, which count as active", len(retired) - len(gone))
    if options.ranks or options.below:
        gone = gone.join(taxa, left_on="replaced_by", right_on="tax_id", how="semi", maintain_order="left")
    active = taxa.select(concept_id="tax_id", status=pl.lit(ACTIVE), replaced_by=pl.lit(None, dtype=pl.String))
    obsolete = gone.select("concept_id", status=pl.lit(OBSOLETE), replaced_by="replaced_by")
    return pl.concat([active, obsolete]).select(SOURCE_CONCEPTS.names())


FORMAT = Format(
    name="taxonomy",
    description="NCBI Taxonomy: names and ranks of organisms (nodes.dmp, names.dmp, merged.dmp, delnodes.dmp)",
    source="taxdump or new_taxdump: the archive (.tar.gz, .zip), or the folder with its files",
    obtain="https://ftp.ncbi.nlm.nih.gov/pub/taxonomy/ (taxdump.tar.gz or taxdmp.zip, which hold the same)",
    licence="public domain in the United States; NCBI asks to be cited",
    options=TaxonomyOptions,
    read=read_taxonomy,
)
