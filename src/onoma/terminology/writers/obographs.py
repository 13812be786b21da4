"""OBO Graphs JSON: one graph of nodes and edges; format and reader: `onoma.terminology.readers.obographs`.

A node for each concept, an edge for each relation, one on each line:

* Codes become IRIs as in the OBO library, ``MONDO:0005148`` to ``http://purl.obolibrary.org/obo/MONDO_0005148``; a code
  that is not a CURIE is its own id.
* The preferred name is ``lbl``, every other a synonym: for term types such as "broad_synonym" and
  "exact_synonym/abbreviation" with this scope and type, for any other an exact one.
* Semantic types become ``hasOBONamespace``, successors IAO_0100001 (term replaced by), relations "consider" and
  "replaced_by" oboInOwl's ``consider``, cross-references ``xrefs`` with a SKOS property as ``pred`` if the source says
  how they relate.
* The graph's id is made from the codes.

OBO Graphs have no language (the reader takes names for English), no sources except the prefix of a code, one definition
per concept, and no white space around texts. Read it back with ``scopes=all``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from onoma.files.reading import Check
from onoma.terminology.iris import NAMESPACES, OBO, OBO_IN_OWL, SKOS, SYNONYM_TYPES, code_maker, synonym_type
from onoma.terminology.readers.ontology import LABEL, SCOPES, XREF, is_prose, source_of
from onoma.terminology.tables import OBSOLETE
from onoma.terminology.writers.writing import Content, Writing

_LANGUAGE = "en"
_IS_A = "is_a"
_CONSIDER, _REPLACED_BY = "consider", "replaced_by"
_TYPE_IRIS = {name: OBO + code.replace(":", "_") for code, name in SYNONYM_TYPES.items()}
_CONCEPTS_AT_A_TIME = 1 << 15


def write_obographs(content: Content, file: Path, writing: Writing) -> Content:
    """Write the document.

    Args:
        content: The terminology.
        file: Where to.
        writing: Where what cannot be written goes.

    Returns:
        What was written.

    Raises:
        InputError: under "strict", for a code that would be read as another.
    """
    content = _writable(content, writing)
    iris = dict(zip(content.concepts["concept_id"], map(iri_of, content.concepts["concept_id"]), strict=True))
    with file.open("w", encoding="utf-8", newline="\n") as handle:
        handle.write(f'{{"graphs": [{{"id": "{_graph_id(content)}", "nodes": [')
        _write_list(handle.write, _nodes(content, iris))
        handle.write('], "edges": [')
        _write_list(handle.write, _edges(content, iris))
        handle.write("]}]}\n")
    return content


def _graph_id(content: Content) -> str:
    """Tools ask for one; a terminology does not say which it had."""
    codes = "\n".join(content.concepts["concept_id"])
    return f"urn:onoma:terminology:{hashlib.sha256(codes.encode()).hexdigest()[:16]}"


def iri_of(code: str) -> str:
    """The IRI that a code stands for; the code itself if it is no CURIE, or an IRI already.

    Example:
        >>> iri_of("MONDO:0005148"), iri_of("EFO:1"), iri_of("C0011860")
        ('http://purl.obolibrary.org/obo/MONDO_0005148', 'http://www.ebi.ac.uk/efo/EFO_1', 'C0011860')
    """
    prefix, colon, local = code.partition(":")
    if not colon or not local or code.startswith("http"):
        return code
    start = _STARTS.get(prefix)
    candidate = start + local if start else f"{OBO}{prefix}_{quote(local, safe=':.-+~')}"
    return candidate if _CODE_OF(candidate) == code else code


_STARTS: dict[str, str] = {}
for _start, _prefix in NAMESPACES.items():
    _STARTS.setdefault(_prefix, _start)
_CODE_OF = code_maker()


def _writable(content: Content, writing: Writing) -> Content:
    concepts = content.concepts
    is_read_back = [_CODE_OF(iri_of(code)) == code for code in concepts["concept_id"]]
    successor = [
        code is None or (_CODE_OF(iri_of(code)) == code and not is_prose(iri_of(code)))
        for code in concepts["replaced_by"]
    ]
    expected = "a code that is no IRI of the OBO library and has no white space around it"
    content = writing.keep_concepts(
        replace(
            content, concepts=concepts.with_columns(good=pl.Series(is_read_back), good_successor=pl.Series(successor))
        ),
        [
            Check(pl.col("good"), "concept_id", expected, "concept_id", "an IRI that would be read as a code"),
            Check(
                pl.col("good_successor"),
                "replaced_by",
                expected.replace("around", "in"),
                "replaced_by",
                "an IRI that would be read as a code, or a code that would be read as words",
            ),
        ],
    )
    content = replace(content, concepts=content.concepts.drop("good", "good_successor"))
    says = {"names": "text", "definitions": "text", "semantic_types": "semantic_type", "relations": "relation"}
    for table, column in says.items():
        is_text = pl.col(column).str.contains(_IS_TEXT)
        check = Check(is_text, column, "some text", column, "a value that is read as blank")
        rows = writing.keep_writable(getattr(content, table), table.replace("_", " "), [check])
        content = replace(content, **{table: rows})
    references = content.cross_references
    good = pl.Series([_CODE_OF(code) == code for code in references["code"]], dtype=pl.Boolean)
    references = writing.keep_writable(
        references.with_columns(good=good),
        "cross references",
        [Check(pl.col("good"), "code", expected, "code", "an IRI that would be read as a code")],
    ).drop("good")
    return _without_what_is_lost(replace(content, cross_references=references), writing)


def _without_what_is_lost(content: Content, writing: Writing) -> Content:
    """What the reader will find, counting what differs from what there is."""
    content = writing.without_nameless(content)
    ids = content.concepts["concept_id"]
    prefixes = pl.DataFrame(
        {"row": content.concepts["row"], "prefix": list(map(source_of, ids))}, schema_overrides={"prefix": pl.String}
    )

    def told(table: pl.DataFrame, what: str, key: list[str]) -> pl.DataFrame:
        """A table with the sources that will be read, and without rows that are then the same."""
        sourced = table.join(prefixes, on="row", how="left", maintain_order="left")
        writing.lose(f"sources of {what}", int((sourced["source"] != sourced["prefix"]).sum()))
        sourced = sourced.with_columns(source="prefix").drop("prefix")
        distinct = sourced.unique(key, keep="first", maintain_order=True)
        writing.lose(f"{what} that then are the same", len(sourced) - len(distinct))
        return distinct

    names = content.names
    is_first = names["row"].is_first_distinct()
    types_read = {name: _type_read(name) for name in names["term_type"].unique()}
    read = names.with_columns(
        text=_stripped(names["text"]),
        language=pl.lit(_LANGUAGE),
        term_type=pl.when(is_first).then(pl.lit(LABEL)).otherwise(pl.col("term_type").replace_strict(types_read)),
        is_suppressed=pl.lit(False),
    )
    for column, what in (
        ("text", "white space around names"),
        ("language", "languages of names other than English"),
        ("term_type", "term types of names that are no scope of a synonym"),
        ("is_suppressed", "marks that a name is suppressed; it is there"),
    ):
        writing.lose(what, int((read[column] != names[column]).sum()))
    texts = content.definitions["text"]
    definitions = content.definitions.with_columns(text=_stripped(texts))
    writing.lose("white space around definitions", int((definitions["text"] != texts).sum()))
    better_known = content.cross_references.filter(pl.col("relation") != XREF).select("row", "code")
    is_plain = pl.col("relation") == XREF
    plain = content.cross_references.filter(is_plain)
    known = plain.join(better_known, on=("row", "code"), how="semi")
    writing.lose("cross-references of which another says more", len(known))
    said = content.cross_references.join(known, on=known.columns, how="anti", maintain_order="left")
    is_choice = pl.col("relation") == _REPLACED_BY
    further = int(content.relations.select(is_choice.sum()).item())
    writing.lose("relations replaced_by, which are written as consider", further)
    relations = content.relations.with_columns(
        relation=pl.when(is_choice).then(pl.lit(_CONSIDER)).otherwise("relation")
    )
    return replace(
        content,
        names=told(read, "names", ["row", "text"]),
        relations=told(relations, "relations", ["row", "relation", "tail_row"]),
        definitions=told(definitions, "definitions", ["row"]),
        cross_references=told(said, "cross-references", ["row", "code", "relation"]),
    )


_IS_TEXT = r"[^\s\x1c-\x1f]"
"""White space is what `str.strip` takes for it, with which labels are read: these four signs of control too."""


def _stripped(texts: pl.Series) -> pl.Series:
    return pl.Series([text.strip() for text in texts], dtype=pl.String)


def _synonym(term_type: str) -> tuple[str, str]:
    """Scope and type that a term type is written as."""
    scope, _, kind = term_type.partition("_synonym")
    if scope not in SCOPES or (kind and not kind.startswith("/")):
        return "exact", ""
    written = _TYPE_IRIS.get(kind[1:], kind[1:])
    return scope, written if synonym_type(scope, written) == term_type else ""


def _type_read(term_type: str) -> str:
    return synonym_type(*_synonym(term_type))


def _nodes(content: Content, iris: dict[str, str]) -> Iterator[dict[str, Any]]:
    for relation in content.relations["relation"].unique(maintain_order=True):
        if relation not in {_IS_A, _CONSIDER}:
            yield {"id": relation, "lbl": relation, "type": "PROPERTY"}
    tables = {
        "names": content.names.select("row", "text", "term_type"),
        "types": content.semantic_types.select("row", "semantic_type"),
        "definitions": content.definitions.select("row", "text"),
        "references": content.cross_references.select("row", "code", "relation"),
        "choices": content.relations.filter(pl.col("relation") == _CONSIDER).select("row", "tail"),
    }
    for block in content.concepts.iter_slices(_CONCEPTS_AT_A_TIME):
        is_here = pl.col("row").is_between(block["row"][0], block["row"][-1])
        of = {name: _by_row(table.filter(is_here)) for name, table in tables.items()}
        for row, code, status, replaced_by in block.select("row", "concept_id", "status", "replaced_by").iter_rows():
            yield _node(iris[code], status, replaced_by, *(of[name].get(row, []) for name in tables))


def _by_row(table: pl.DataFrame) -> dict[int, list[tuple[str, ...]]]:
    found: dict[int, list[tuple[str, ...]]] = {}
    for row, *values in table.iter_rows():
        found.setdefault(row, []).append(tuple(values))
    return found


def _node(
    iri: str,
    status: str,
    replaced_by: str | None,
    names: list[tuple[str, ...]],
    types: list[tuple[str, ...]],
    definitions: list[tuple[str, ...]],
    references: list[tuple[str, ...]],
    choices: list[tuple[str, ...]],
) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if definitions:
        meta["definition"] = {"val": definitions[0][0]}
    synonyms = []
    for text, term_type in names[1:]:
        scope, kind = _synonym(term_type)
        synonym = {"pred": f"has{scope.capitalize()}Synonym", "val": text}
        synonyms.append({**synonym, "synonymType": kind} if kind else synonym)
    if synonyms:
        meta["synonyms"] = synonyms
    if references:
        meta["xrefs"] = [
            {"val": code} if relation == XREF else {"pred": SKOS + relation, "val": code}
            for code, relation in references
        ]
    statements = [{"pred": OBO_IN_OWL + "hasOBONamespace", "val": kind} for (kind,) in types]
    if replaced_by is not None:
        statements.append({"pred": OBO + "IAO_0100001", "val": iri_of(replaced_by)})
    statements += [{"pred": OBO_IN_OWL + _CONSIDER, "val": iri_of(other)} for (other,) in choices]
    if statements:
        meta["basicPropertyValues"] = statements
    if status == OBSOLETE:
        meta["deprecated"] = True
    node: dict[str, Any] = {"id": iri}
    if names:
        node["lbl"] = names[0][0]
    node["type"] = "CLASS"
    if meta:
        node["meta"] = meta
    return node


def _edges(content: Content, iris: dict[str, str]) -> Iterator[dict[str, Any]]:
    edges = content.relations.filter(pl.col("relation") != _CONSIDER)
    for head, relation, tail in edges.select("concept_id", "relation", "tail").iter_rows():
        yield {"sub": iris[head], "pred": relation, "obj": iris[tail]}


def _write_list(write: Callable[[str], object], values: Iterator[dict[str, Any]]) -> None:
    """Write values, each on its own line."""
    divider = "\n"
    for value in values:
        write(divider + json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))
        divider = ",\n"
    write("\n")
