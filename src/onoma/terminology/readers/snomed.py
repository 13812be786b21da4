"""SNOMED CT in Release Format 2 (RF2): International Edition, national editions and extensions.

Tab-separated text with a line of column names, without quoting; specification:
https://docs.snomed.org/snomed-ct-specifications/snomed-ct-release-file-specification. SOURCE is the release zip, its
unpacked folder, or one of its Snapshot and Full folders. All files below it that match by name are read together, so an
extension may be beside the International Edition that it needs, as the same type of release (another is refused, or
left out and noted with ``release=...``). If several files have a component, its latest state counts. A Full release
gives the state on any day (``date=20230731``). A Delta alone is refused.

==============================  ====================================================================================
file                            becomes
==============================  ====================================================================================
sct2_Concept                    a concept for each id; inactive ones are obsolete and keep their names
sct2_Description                names: term, languageCode (as BCP 47), term type FSN (fully specified name), PT
                                (preferred in a chosen language reference set) or SY (any other synonym); the tag of
                                the FSN, "disorder" of "Ague (disorder)", is the semantic type. Inactive descriptions
                                are left out, or suppressed names with ``inactive_descriptions=yes``
sct2_TextDefinition             definitions
sct2_Relationship               relations: active, inferred rows as sentences "sourceId typeId destinationId". The name
                                of a relation is the English FSN of its type without tag, in snake case: ``is_a``,
                                ``finding_site``. Role groups are not kept: what two groups say counts once
der2_cRefset_Language           which names are preferred (PT), and with ``language_refset`` also which are kept
der2_cRefset_Association        successors and historical relations (below)
der2_...Map                     SimpleMap, ExtendedMap and ComplexMap become cross-references: mapTarget with a prefix
                                for the other vocabulary ("ICD10:I21.9", "CTV3:X200E"; for maps not in `MAP_PREFIXES`,
                                the id of the map). The relation comes from correlationId: exactMatch, broadMatch
                                (narrow to broad), narrowMatch, relatedMatch (overlap); "xref" if the map does not say,
                                as in the ICD-10 map: a classification puts a concept into a class, which may be wider.
                                Rules, groups and priorities are not kept: all codes to which a concept may be mapped
                                are there
==============================  ====================================================================================

Preferred name: the synonym that is preferred in the main language reference set, else in another chosen one, else any
synonym, else the FSN; never an inactive description if there is another. The main one is the first of
``language_refset``. If that is unset, it is the United Kingdom's if the release has its own, else US English, else GB
English, else the largest.

Successors: an inactive concept is ``replaced_by`` the one target of SAME AS; if there are none or several, the one
target of REPLACED BY; then the concept that was MOVED FROM it. All other associations become relations of the inactive
concept: ``same_as``, ``replaced_by``, ``possibly_equivalent_to``, ``partially_equivalent_to``,
``possibly_replaced_by``, ``alternative``, ``was_a``, ``similar_to``. For a concept without a successor, all but the
last two are shown as choices (``consider``). MOVED TO (whose target is a namespace), REFERS TO (of descriptions) and
associations of national editions are counted and left out.

Not read: stated relationships, OWL axioms, concrete values, other reference sets, caseSignificanceId,
definitionStatusId, moduleId.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.terminology.assembly import SourceTables
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.relationships import clear_successors, name_of_relationship
from onoma.terminology.readers.rf2 import REFERS_TO_CONCEPT, KnownConcepts, Release, as_text, find_release, read_state
from onoma.terminology.readers.snomed_names import definitions, read_descriptions, read_names, semantic_tags
from onoma.terminology.readers.snomed_options import (
    ASSOCIATIONS,
    CORRELATIONS,
    INFERRED,
    IS_A,
    MAP_PREFIXES,
    MOVED_FROM,
    NOT_MAPPABLE,
    REPLACED_BY,
    ROOT,
    SAME_AS,
    SOURCE,
    SnomedOptions,
)
from onoma.terminology.tables import ACTIVE, OBSOLETE


def read_snomed(source: str, options: SnomedOptions, reading: Reading) -> SourceTables:
    """Read a release.

    Args:
        source: Release zip, its folder, or a folder in it.
        options: Which release, which names, which concepts.
        reading: Where bad rows go.

    Raises:
        InputError: no release there; a filter names what it does not have; under "strict" also a bad row.
    """
    release = find_release(Path(source), options.release, reading)
    path = release.of("Concept")[0].path
    if options.date and release.kind != "full":
        raise InputError(
            "only a Full release has the state of other days", path=source, field="date", found=f"a {release.kind}"
        )
    for content in ("Relationship", "Language", "Association"):
        if not release.of(content):
            reading.note(f"files that the release does not have: {content}", 1)
    concepts = read_state(release.of("Concept"), reading, date=options.date)
    known = KnownConcepts(concepts["id"], ROOT, reading)
    descriptions = read_descriptions(release, options, known, reading)
    tags = semantic_tags(descriptions)
    relation_names = dict(tags.select("conceptId", "name").iter_rows())
    names = read_names(descriptions, tags, release, options, path, reading)
    named = names["conceptId"].unique()
    is_kept = pl.lit(True)
    if options.filters_names or options.semantic_types:
        is_kept = pl.col("id").is_in(named.implode())
        tags = tags.filter(pl.col("conceptId").is_in(named.implode()))
    replaced, relations = _read_associations(release, concepts, known, options, reading)
    if options.relations:
        relations = pl.concat([_read_relations(release, known, relation_names, options, reading), relations])
    concepts = concepts.join(replaced, left_on="id", right_on="old", how="left", maintain_order="left")
    return SourceTables(
        path=path,
        concepts=concepts.filter(is_kept).select(
            concept_id=as_text("id"),
            status=pl.when("active").then(pl.lit(ACTIVE)).otherwise(pl.lit(OBSOLETE)),
            replaced_by=as_text("new"),
        ),
        names=names.with_columns(concept_id=as_text("conceptId")).drop("conceptId"),
        semantic_types=tags.select(concept_id=as_text("conceptId"), semantic_type="tag", line="line"),
        relations=relations,
        definitions=definitions(descriptions, options),
        cross_references=_read_maps(release, known, options, reading),
        known_elsewhere=concepts.filter(~is_kept).select(concept_id=as_text("id")).to_series(),
        may_refer_outside=not known.is_whole,
        release=", ".join(part for part in (release.named(), options.date and f"as of {options.date}") if part),
    )


def _read_relations(
    release: Release, known: KnownConcepts, names: dict[int, str], options: SnomedOptions, reading: Reading
) -> pl.DataFrame:
    files = release.of("Relationship")
    codes = ("sourceId", "destinationId", "typeId", "characteristicTypeId")
    rows = read_state(files, reading, codes=codes, date=options.date).filter("active")
    is_inferred = pl.col("characteristicTypeId") == INFERRED
    reading.note("relationships that are not inferred, left out", len(rows.filter(~is_inferred)))
    rows = rows.filter(is_inferred).unique(["sourceId", "typeId", "destinationId"], keep="first", maintain_order=True)
    rows = known.only(rows, "relationships", files, "sourceId", "destinationId")
    types = rows["typeId"].unique()
    words = {type_id: name_of_relationship(names[type_id]) for type_id in types if type_id in names}
    words[IS_A] = "is_a"
    reading.note("relation types without a name, called by their id", len(set(types) - set(words)))
    return rows.select(
        head=as_text("sourceId"),
        relation=pl.col("typeId").replace_strict(words, default=as_text("typeId"), return_dtype=pl.String),
        tail=as_text("destinationId"),
        source=pl.lit(SOURCE),
        line="line",
    )


def _read_associations(
    release: Release, concepts: pl.DataFrame, known: KnownConcepts, options: SnomedOptions, reading: Reading
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Successors (``old``, ``new``) and the relations that are left."""
    files = release.of("Association")
    codes = ("refsetId", "referencedComponentId", "targetComponentId")
    rows = read_state(files, reading, codes=codes, date=options.date).filter("active")
    is_used = pl.col("refsetId").is_in([*ASSOCIATIONS, MOVED_FROM]) & REFERS_TO_CONCEPT
    reading.note("associations that are not read (MOVED TO, REFERS TO, national ones)", len(rows.filter(~is_used)))
    moved = pl.col("refsetId") == MOVED_FROM  # of those a part is in another extension by nature
    moves, rows = rows.filter(is_used & moved), rows.filter(is_used & ~moved)
    if known.is_whole:  # an extension's concepts may be replaced by those of the edition that it extends
        rows = known.only(rows, "associations", files, "referencedComponentId", "targetComponentId")
    links = (
        pl.concat([rows, moves])
        .select(
            old=pl.when(moved).then("targetComponentId").otherwise("referencedComponentId"),
            new=pl.when(moved).then("referencedComponentId").otherwise("targetComponentId"),
            rank=pl.col("refsetId").replace_strict({SAME_AS: 0, REPLACED_BY: 1, MOVED_FROM: 2}, default=None),
        )
        .filter(pl.col("rank").is_not_null())
    )
    retired = concepts.filter(~pl.col("active"))["id"]
    successors = clear_successors(links.filter(pl.col("old").is_in(retired.implode())))
    rest = rows.join(
        successors.with_columns(refsetId=pl.col("rank").replace_strict({0: SAME_AS, 1: REPLACED_BY}, default=None)),
        left_on=["refsetId", "referencedComponentId"],
        right_on=["refsetId", "old"],
        how="anti",
        maintain_order="left",
    )
    rest = known.only(rest, "associations", files, "referencedComponentId", "targetComponentId")
    relations = rest.select(
        head=as_text("referencedComponentId"),
        relation=pl.col("refsetId").replace_strict(ASSOCIATIONS, return_dtype=pl.String),
        tail=as_text("targetComponentId"),
        source=pl.lit(SOURCE),
        line="line",
    )
    return successors.select("old", "new"), relations


def _read_maps(release: Release, known: KnownConcepts, options: SnomedOptions, reading: Reading) -> pl.DataFrame:
    files = release.of("Map") if options.maps else ()
    rows = read_state(
        files,
        reading,
        codes=("refsetId", "referencedComponentId"),
        texts=("mapTarget",),
        optional=("correlationId",),
        date=options.date,
    ).filter("active")
    target = pl.col("mapTarget").str.strip_chars()
    # "#NC" and the like in place of a code: there is none.
    is_mapped = (target != "") & ~target.str.starts_with("#") & ~pl.col("correlationId").is_in(NOT_MAPPABLE)
    reading.note("rows of maps without a code", len(rows.filter(~is_mapped)))
    rows = known.only(rows.filter(is_mapped & REFERS_TO_CONCEPT), "maps", files, "referencedComponentId")
    prefix = pl.col("refsetId").replace_strict(MAP_PREFIXES, default=as_text("refsetId"), return_dtype=pl.String)
    return rows.select(
        concept_id=as_text("referencedComponentId"),
        code=pl.concat_str([prefix, target], separator=":"),
        relation=pl.col("correlationId").replace_strict(CORRELATIONS, default="xref", return_dtype=pl.String),
        source=pl.lit(SOURCE),
        line="line",
    ).unique(["concept_id", "code", "relation"], keep="first", maintain_order=True)


FORMAT = Format(
    name="snomed",
    description="SNOMED CT in Release Format 2: International Edition, national editions, extensions",
    source="the release zip, its unpacked folder, or the Snapshot or Full folder in it",
    obtain="https://www.snomed.org/get-snomed (members' national release centres; US: https://www.nlm.nih.gov/healthit/snomedct)",
    licence="SNOMED CT Affiliate Licence: free in member countries after registration, else for a fee",
    options=SnomedOptions,
    read=read_snomed,
)
