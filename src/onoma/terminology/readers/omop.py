r"""OMOP Standardized Vocabularies: CONCEPT, CONCEPT_SYNONYM, CONCEPT_RELATIONSHIP.

Athena's files are called ``.csv``, but their fields are separated by tabs and never quoted: a quote belongs to a name.
If databases, R or Eunomia export the tables of a CDM, fields are separated by commas and may be quoted, or the files
are Parquet. The first line names the columns, in upper or lower case; specification:
https://ohdsi.github.io/CommonDataModel/cdm54.html (vocabulary tables). SOURCE is the zip or folder of an Athena
download, the folder of such tables, or CONCEPT.csv or CONCEPT.parquet; the case of file names does not matter.

=====================  =============================================================================================
file                   becomes
=====================  =============================================================================================
CONCEPT                a concept and its preferred name for each row: concept_name (English by convention), source
                       vocabulary_id, term type "name"; the semantic type is domain_id (``semantic_type=class``:
                       concept_class_id). The code is concept_id, or what ``codes`` says. Beside a concept_id,
                       vocabulary_id and concept_code are a cross-reference ("SNOMED:22298006", exactMatch), which
                       connects it with other terminologies. With an invalid_reason the concept is obsolete; "NA",
                       "NULL" and "\N", which some exports write for nothing, do not count as one.
                       Concept 0, "No matching concept", is left out and counted
CONCEPT_SYNONYM        names of term type "synonym", except those that only repeat another name of the concept in
                       the same language. The language comes from language_concept_id: from `LANGUAGES`, or from
                       the name of that concept in CONCEPT ("Danish language"); else it is "und"
CONCEPT_RELATIONSHIP   relations: rows of the relationship_ids in ``relations`` without invalid_reason, as sentences
                       "concept_id_1 relationship_id concept_id_2", in snake case: ``is_a``, ``has_finding_site``. The
                       file has every fact in both directions ("Is a" and "Subsumes"), so name the one you want. The
                       default is "Is a" alone, because all would be 40 million rows in a full download.
                       "Concept replaced by", or else "Concept same_as to", gives ``replaced_by`` if it names just one.
                       If neither does, several of these, "Concept poss_eq to" and "Concept alt_to to" are choices,
                       whatever ``relations`` says: ``replaced_by``, ``same_as``, ``possibly_equivalent_to``,
                       ``alternative``.
                       "Maps to" becomes a cross-reference of the concept that is mapped, with vocabulary_id and
                       concept_code of the standard concept ("SNOMED:22298006"). The relation is "xref": OMOP maps to
                       an equivalent concept or, if there is none, to a wider one, and does not say which
VOCABULARY             the vocabularies, with name and version; the release (that of vocabulary "None")
=====================  =============================================================================================

Relationships to or from concepts that are not in CONCEPT are counted and left out. Downloads have such rows, because
the names of CPT-4 must be added by a tool of Athena's, which does not find all.

Not read: CONCEPT_ANCESTOR (it follows from the relationships), DRUG_STRENGTH, DOMAIN, CONCEPT_CLASS,
RELATIONSHIP, dates of validity, standard_concept (except for ``standard_only``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.reading import Check, Reading, check_chosen, first_of_each
from onoma.terminology.assembly import (
    SOURCE_CROSS_REFERENCES,
    SOURCE_NAMES,
    SOURCE_RELATIONS,
    SourceTables,
)
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.omop_options import LANGUAGE_NAMES, LANGUAGES, OmopOptions
from onoma.terminology.readers.omop_tables import find_tables, table_rows
from onoma.terminology.readers.relationships import clear_successors, name_of_relationship
from onoma.terminology.tables import ACTIVE, OBSOLETE

MAPS_TO, REPLACED_BY, SAME_AS = "Maps to", "Concept replaced by", "Concept same_as to"
_CHOICES = {
    REPLACED_BY: "replaced_by",
    SAME_AS: "same_as",
    "Concept poss_eq to": "possibly_equivalent_to",
    "Concept alt_to to": "alternative",
}
"""Relationships to what may be used in place of a retired concept, by the names of `onoma.terminology.tables`."""
_WHOLE = "None"
"""The vocabulary whose version is that of all of them together."""
_NO_MATCH = 0
"""The concept_id that says that there is no concept."""
_NOTHING = ("", "NA", "NULL", r"\N")
_CONCEPT_ID = "^(0|[1-9][0-9]{0,17})$"
_VOCABULARY_CODE = pl.concat_str([pl.col("vocabulary_id").cast(pl.String), pl.col("concept_code")], separator=":")
_IS_VALID = pl.col("invalid_reason").is_in(_NOTHING)
_LINKS = pl.Schema(
    {"concept_id_1": pl.Int64(), "concept_id_2": pl.Int64(), "relationship_id": pl.Categorical(), "line": pl.UInt32()}
)


@dataclass(frozen=True)
class _Concepts:
    """CONCEPT: ``rows`` that the filters keep; ``codes`` of all (id, vocabulary:code); the languages among them."""

    rows: pl.DataFrame
    codes: pl.DataFrame
    languages: dict[int, str]


def read_omop(source: str, options: OmopOptions, reading: Reading) -> SourceTables:
    """Read the vocabulary tables of an Athena download or a CDM.

    Args:
        source: Their zip, their folder, or CONCEPT alone.
        options: Which code, which concepts, which relations.
        reading: Where bad rows go.

    Raises:
        InputError: no CONCEPT there; a filter names what it does not have; under "strict" also a bad row.
    """
    files = find_tables(Path(source))
    concept_file = files["concept"]
    for name in ("concept_synonym", "concept_relationship"):
        if name not in files:
            reading.note(f"tables that are missing: {name.upper()}", 1)
    found = _read_concepts(concept_file, options, reading)
    rows = found.rows.with_columns(code=_code(options))
    if options.codes != "concept_id":
        rows = _with_distinct_codes(rows, options, concept_file.path, reading)
    names = [pl.DataFrame(schema=SOURCE_NAMES), _concept_names(rows, options)]
    if "concept_synonym" in files:
        names.append(_read_synonyms(files["concept_synonym"], rows, found.languages, options, reading))
    elif options.languages:
        check_chosen("languages", options.languages, ["en"], path=concept_file.path)
    all_names = pl.concat(names)
    links = pl.DataFrame(schema=_LINKS)
    if "concept_relationship" in files:
        links = _read_links(files["concept_relationship"], options, reading)
    if options.languages:
        rows = rows.filter(pl.col("code").is_in(all_names["concept_id"].unique().implode()))
    successors = _successors(links, rows, found.codes, options, reading)
    vocabularies = _read_vocabularies(files["vocabulary"], reading) if "vocabulary" in files else {}
    return SourceTables(
        path=concept_file.path,
        concepts=rows.join(successors, left_on="concept_id", right_on="old", how="left", maintain_order="left").select(
            concept_id="code",
            status=pl.when("is_valid").then(pl.lit(ACTIVE)).otherwise(pl.lit(OBSOLETE)),
            replaced_by="replaced_by",
        ),
        names=all_names,
        semantic_types=rows.select(
            concept_id="code",
            semantic_type="domain_id" if options.semantic_type == "domain" else "concept_class_id",
            line="line",
        ).filter(pl.col("semantic_type") != ""),
        relations=_relations(links, rows, successors["old"], options, reading),
        cross_references=pl.concat(
            [
                _own_codes(rows) if options.codes == "concept_id" else _no_references(),
                _maps(links, rows, found.codes, reading) if options.maps else _no_references(),
            ]
        ),
        may_refer_outside=True,
        source_vocabularies=[one for source, one in vocabularies.items() if source != _WHOLE],
        release=vocabularies.get(_WHOLE, {}).get("version", ""),
    )


def _code(options: OmopOptions) -> pl.Expr:
    """The code of a concept, from ``concept_id``, ``vocabulary_id`` and ``concept_code``."""
    if options.codes == "concept_id":
        return pl.col("concept_id").cast(pl.String)
    if options.codes == "concept_code":
        return pl.col("concept_code")
    return _VOCABULARY_CODE


def _read_concepts(file: SourceFile, options: OmopOptions, reading: Reading) -> _Concepts:
    columns = (
        "concept_id", "concept_name", "domain_id", "vocabulary_id", "concept_class_id", "standard_concept",
        "concept_code", "invalid_reason",
    )  # fmt: skip
    checks = (
        _id_check("concept_id", "concept_name"),
        *(_text_check(name, "concept_id") for name in ("concept_name", "vocabulary_id", "concept_code")),
    )
    filters = {
        "vocabulary_id": ("vocabularies", options.vocabularies),
        "domain_id": ("domains", options.domains),
        "concept_class_id": ("concept_classes", options.concept_classes),
    }
    seen: dict[str, set[str]] = {column: set() for column in filters}
    kept, codes, languages, n_none = [], [], dict(LANGUAGES), 0
    for block in table_rows(file, reading, columns):
        rows = reading.keep_valid(block, checks, path=file.path).with_columns(
            pl.col("concept_id").cast(pl.Int64),
            pl.col("domain_id", "vocabulary_id", "concept_class_id").cast(pl.Categorical),
        )
        n_read = len(rows)
        rows = rows.filter(pl.col("concept_id") != _NO_MATCH)
        n_none += n_read - len(rows)
        codes.append(rows.select("concept_id", "vocabulary_id", "concept_code"))
        of_language = rows.filter(pl.col("domain_id") == "Language").select("concept_id", "concept_name")
        for concept_id, name in of_language.iter_rows():
            word = name.lower().removesuffix(" language")
            if word in LANGUAGE_NAMES:
                languages.setdefault(concept_id, LANGUAGE_NAMES[word])
        for column, (_, wanted) in filters.items():
            if wanted:
                seen[column].update(rows[column].cast(pl.String).unique())
                rows = rows.filter(pl.col(column).cast(pl.String).is_in(wanted))
        if options.standard_only:
            rows = rows.filter(pl.col("standard_concept") == "S")
        kept.append(rows.with_columns(is_valid=_IS_VALID).drop("standard_concept", "invalid_reason"))
    for column, (name, wanted) in filters.items():
        check_chosen(name, wanted, seen[column], path=file.path)
    if not kept:
        raise InputError("there is no concept in it", path=file.path, fix="check that it was downloaded in full")
    reading.note("concept 0 (No matching concept), left out", n_none)
    first, differing, n_same = first_of_each(pl.concat(kept), "concept_id")
    reading.note("rows of CONCEPT that stand there twice", n_same)
    reading.reject_rows(
        differing.select("line", text=pl.col("concept_id").cast(pl.String)),
        "a concept_id that occurred before, with something else",
        path=file.path,
        field="concept_id",
        expected="one row for each concept",
    )
    return _Concepts(first, first_of_each(pl.concat(codes), "concept_id")[0], languages)


def _id_check(field: str, shown: str) -> Check:
    return Check(pl.col(field).str.contains(_CONCEPT_ID), field, "a number", shown)


def _text_check(field: str, shown: str) -> Check:
    return Check(pl.col(field).str.strip_chars() != "", field, "a text", shown)


def _with_distinct_codes(rows: pl.DataFrame, options: OmopOptions, path: Path, reading: Reading) -> pl.DataFrame:
    """One concept for each code: the current one, where vocabularies use a code again that they had retired."""
    is_shared = rows["code"].is_duplicated()
    if not is_shared.any():
        return rows
    shared = rows.filter(is_shared).sort("is_valid", descending=True, maintain_order=True)
    again = shared.filter(~pl.col("code").is_first_distinct())
    reading.note("retired concepts whose code another concept has, left out", len(again.filter(~pl.col("is_valid"))))
    reading.reject_rows(
        again.filter("is_valid").sort("line").select("line", text="code"),
        "several concepts have this code",
        path=path,
        field="concept_code",
        expected="one current concept for each code",
        fix="choose codes=vocabulary:code or codes=concept_id, or filter by vocabularies"
        if options.codes == "concept_code"
        else "choose codes=concept_id",
    )
    return rows.filter(~pl.col("concept_id").is_in(again["concept_id"].implode()))


def _keeps_concept_names(options: OmopOptions) -> bool:
    return not options.languages or "en" in options.languages


def _concept_names(rows: pl.DataFrame, options: OmopOptions) -> pl.DataFrame:
    if not _keeps_concept_names(options):
        rows = rows.clear()
    return rows.select(
        concept_id="code",
        text="concept_name",
        language=pl.lit("en"),
        source=pl.col("vocabulary_id").cast(pl.String),
        term_type=pl.lit("name"),
        preference=pl.lit(0, dtype=pl.UInt8),
        is_suppressed=pl.lit(False),
    )


def _read_synonyms(
    file: SourceFile, rows: pl.DataFrame, languages: dict[int, str], options: OmopOptions, reading: Reading
) -> pl.DataFrame:
    columns = ("concept_id", "concept_synonym_name", "language_concept_id")
    checks = (
        _id_check("concept_id", "concept_synonym_name"),
        _id_check("language_concept_id", "concept_synonym_name"),
    )
    parts, seen = [], {"en"}  # the language of the names in CONCEPT
    for block in table_rows(file, reading, columns):
        language = pl.col("language_concept_id").cast(pl.Int64)
        rows_here = reading.keep_valid(block, checks, path=file.path)
        named = rows_here.filter(pl.col("concept_synonym_name").str.strip_chars() != "")
        reading.note("synonyms that are blank, left out", len(rows_here) - len(named))
        synonyms = named.select(
            pl.col("concept_id").cast(pl.Int64),
            text="concept_synonym_name",
            language=language.replace_strict(languages, default="und", return_dtype=pl.String),
        )
        if options.languages:
            seen.update(synonyms["language"].unique())
            synonyms = synonyms.filter(pl.col("language").is_in(options.languages))
        parts.append(synonyms)
    check_chosen("languages", options.languages, seen, path=file.path)
    if not parts:
        return pl.DataFrame(schema=SOURCE_NAMES)
    n_read = sum(map(len, parts))
    kept = pl.concat(parts).join(
        rows.select("concept_id", "code", "vocabulary_id", "concept_name"), on="concept_id", maintain_order="left"
    )
    reading.note("synonyms of concepts that are not there or were filtered out", n_read - len(kept))
    distinct = kept.unique(["concept_id", "text", "language"], keep="first", maintain_order=True)
    if _keeps_concept_names(options):
        is_other_language = ~pl.col("language").is_in(["en", "und"])
        distinct = distinct.filter((pl.col("text") != pl.col("concept_name")) | is_other_language)
    reading.note("synonyms spelled as another name of their concept, left out", len(kept) - len(distinct))
    reading.note("synonyms in a language that is not known (und)", int((distinct["language"] == "und").sum()))
    return distinct.select(
        concept_id="code",
        text="text",
        language="language",
        source=pl.col("vocabulary_id").cast(pl.String),
        term_type=pl.lit("synonym"),
        preference=pl.lit(1, dtype=pl.UInt8),
        is_suppressed=pl.lit(False),
    )


def _read_links(file: SourceFile, options: OmopOptions, reading: Reading) -> pl.DataFrame:
    """The rows of CONCEPT_RELATIONSHIP that become anything."""
    columns = ("concept_id_1", "concept_id_2", "relationship_id", "invalid_reason")
    checks = (
        _id_check("concept_id_1", "concept_id_2"),
        _id_check("concept_id_2", "concept_id_1"),
        _text_check("relationship_id", "concept_id_1"),
    )
    wanted = {*options.chosen_relations, *_CHOICES, *([MAPS_TO] if options.maps else [])}
    parts, seen = [pl.DataFrame(schema=_LINKS)], set[str]()
    for block in table_rows(file, reading, columns):
        rows = reading.keep_valid(block, checks, path=file.path)
        seen.update(rows["relationship_id"].unique())
        rows = rows.filter(_IS_VALID)
        if not options.reads_all_relations:
            rows = rows.filter(pl.col("relationship_id").is_in(wanted))
        parts.append(rows.select(_LINKS.names()).cast(_LINKS))
    named = [word for word in options.chosen_relations if word != "Is a"]  # the default, which RxNorm has none of
    check_chosen("relations", named, seen, path=file.path)
    return pl.concat(parts)


def _read_vocabularies(file: SourceFile, reading: Reading) -> dict[str, dict[str, str]]:
    """Name and version of each vocabulary, by its id."""
    found: dict[str, dict[str, str]] = {}
    columns = ("vocabulary_id", "vocabulary_name", "vocabulary_version")
    for block in table_rows(file, reading, columns):
        rows = reading.keep_valid(block, (_text_check("vocabulary_id", "vocabulary_name"),), path=file.path)
        for source, name, version in rows.select(columns).iter_rows():
            said = {"source": source, "name": name.strip(), "version": version.strip()}
            found.setdefault(source, {key: value for key, value in said.items() if value})
    return found


def _is(*relationships: str) -> pl.Expr:
    return pl.col("relationship_id").cast(pl.String).is_in(relationships)


def _successors(
    links: pl.DataFrame, rows: pl.DataFrame, codes: pl.DataFrame, options: OmopOptions, reading: Reading
) -> pl.DataFrame:
    """``old`` (concept_id) and the code ``replaced_by`` of each retired concept that has one."""
    retired = rows.filter(~pl.col("is_valid"))["concept_id"]
    clear = clear_successors(
        links.filter(_is(REPLACED_BY, SAME_AS) & pl.col("concept_id_1").is_in(retired.implode())).select(
            old="concept_id_1", new="concept_id_2", rank=_is(SAME_AS).cast(pl.Int32)
        )
    )
    known = codes
    if options.codes == "concept_code":  # in another vocabulary the same code is another concept
        known = codes.filter(pl.col("vocabulary_id").is_in(rows["vocabulary_id"].unique().implode()))
    found = clear.rename({"new": "concept_id"}).join(known, on="concept_id").with_columns(replaced_by=_code(options))
    # Of several concepts with a code one was kept, and to the code of another this one would be the successor.
    is_other = pl.col("replaced_by").is_in(rows["code"].implode()) & ~pl.col("concept_id").is_in(
        rows["concept_id"].implode()
    )
    reading.note("concepts replaced by one whose code another concept has", len(found.filter(is_other)))
    return found.filter(~is_other).select("old", "replaced_by")


def _relations(
    links: pl.DataFrame, rows: pl.DataFrame, replaced: pl.Series, options: OmopOptions, reading: Reading
) -> pl.DataFrame:
    """What the options name, and the choices of retired concepts that nothing replaces."""
    undecided = rows.filter(~pl.col("is_valid"), ~pl.col("concept_id").is_in(replaced.implode()))["concept_id"]
    is_other = pl.col("concept_id_1") != pl.col("concept_id_2")
    is_choice = _is(*_CHOICES) & pl.col("concept_id_1").is_in(undecided.implode()) & is_other
    is_wanted = _is(*options.chosen_relations)
    if options.reads_all_relations:
        is_wanted = ~_is(MAPS_TO, REPLACED_BY, SAME_AS)
    rest = links.filter(is_wanted | is_choice)
    if rest.is_empty():
        return pl.DataFrame(schema=SOURCE_RELATIONS)
    codes = rows.select("concept_id", "code", source=pl.col("vocabulary_id").cast(pl.String))
    both = rest.join(
        codes.rename({"code": "head"}), left_on="concept_id_1", right_on="concept_id", maintain_order="left"
    ).join(
        codes.select("concept_id", tail="code"), left_on="concept_id_2", right_on="concept_id", maintain_order="left"
    )
    reading.note("relations to or from concepts that are not there or were filtered out", len(rest) - len(both))
    found = both["relationship_id"].cast(pl.String).unique()
    words = {word: _CHOICES.get(word) or name_of_relationship(word) for word in found}
    relation = pl.col("relationship_id").cast(pl.String).replace_strict(words, return_dtype=pl.String)
    return both.select("head", "tail", "source", "line", relation=relation).select(SOURCE_RELATIONS.names())


def _own_codes(rows: pl.DataFrame) -> pl.DataFrame:
    """What the vocabularies call the concepts."""
    return rows.select(
        concept_id="code",
        code=_VOCABULARY_CODE,
        relation=pl.lit("exactMatch"),
        source=pl.col("vocabulary_id").cast(pl.String),
        line="line",
    )


def _maps(links: pl.DataFrame, rows: pl.DataFrame, codes: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    maps = links.filter(_is(MAPS_TO) & (pl.col("concept_id_1") != pl.col("concept_id_2"))).join(
        rows.select("concept_id", "code", source=pl.col("vocabulary_id").cast(pl.String)),
        left_on="concept_id_1",
        right_on="concept_id",
        maintain_order="left",
    )
    found = maps.join(codes, left_on="concept_id_2", right_on="concept_id", maintain_order="left")
    reading.note("maps to concepts that are not there", len(maps) - len(found))
    return found.select(concept_id="code", code=_VOCABULARY_CODE, relation=pl.lit("xref"), source="source", line="line")


def _no_references() -> pl.DataFrame:
    return pl.DataFrame(schema=SOURCE_CROSS_REFERENCES)


FORMAT = Format(
    name="omop",
    description="OMOP Standardized Vocabularies (Athena): CONCEPT, CONCEPT_SYNONYM, CONCEPT_RELATIONSHIP",
    source="the zip or folder of an Athena download, or of a CDM's vocabulary tables (CSV, Parquet); or CONCEPT alone",
    obtain="https://athena.ohdsi.org (free account): choose vocabularies, press download",
    licence="that of each vocabulary chosen; some need a licence of their own (CPT-4, MedDRA)",
    options=OmopOptions,
    read=read_omop,
)
