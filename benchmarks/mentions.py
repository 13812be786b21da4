"""What preparing mentions does on an annotated corpus: short forms resolved, spelling put right, composites split.

    python benchmarks/mentions.py FOLDER --dictionary dictionary.txt.gz [--split dev] [--linker LINKER] [-o FILE.json]

``FOLDER`` holds a corpus in PubTator format and BioSyn's processed queries of the same corpus (``*queries*``); of
both, the file with the split's name in its own is taken ("dev" in NCBIdevelopset_corpus.txt). The dictionary is that of
the ontology alone, in BioSyn's format (``id||name``).

Short forms. BioSyn's queries had theirs expanded by Ab3P; a mention counts as expanded when its query shares
less than four fifths of its letters (the others have corrected spellings).

===========  ======================================================================================
definitions  found in all documents
same         BioSyn expands the mention, and so do we, to the same text
other        we expand it to another text
left         we do not expand it
only ours    we change a mention that BioSyn does not expand
named        of all mentions, those whose text is then a name of their concept in the dictionary
===========  ======================================================================================

Composites, by the rules alone and with the names of the dictionary:

===========  ======================================================================================
composite    mentions to which the annotation or the query gives several texts
coordinated  those of them with "and", "or" or "/": the others no rule can find ("cholestatic hepatitis")
split        mentions that we split
right        mentions that we split and that are composite (precision: of split; recall: of coordinated)
several ids  mentions that we split and that have several ids
same parts   split into the very same texts
parts        of the mentions split rightly
parts named  those of them that are a name of one of the mention's concepts
===========  ======================================================================================

The precision is a lower bound: corpora give one concept, or several without texts, to many a mention that names
two ("unilateral and bilateral retinoblastoma").

The stages of a linker, with ``--linker``: mentions as they stand in their documents, these as contexts:

===========  ======================================================================================
right        mentions of one concept of which each part (mostly there is one) has the right answer
composites   composite mentions that were split into as many parts, each with a right answer
changed      mentions of which something else was linked than they themselves
won, lost    mentions that became right, and wrong, against the mentions as they are
===========  ======================================================================================
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.benchmarks.biosyn import Query, read_dictionary, read_queries
from onoma.errors import UnavailableError
from onoma.linking import Linker
from onoma.linking.abbreviations import FINDERS
from onoma.linking.composites import split_composite
from onoma.linking.expansion import expand
from onoma.linking.mentions import Preparation
from onoma.pairs.corpora import corpus_annotations
from onoma.terminology import normalise

Names = dict[str, frozenset[str]]
"""Ids by name."""
_SAME_WORDS = 0.8
_COORDINATED = re.compile(r"\b(?:and|or)\b|/")


@dataclass(frozen=True)
class Mention:
    """A mention in its document.

    Attributes:
        text: As in the document.
        document: Title and abstract, with one character between them.
        start: Of the mention in the document, in characters.
        gold: Ids.
        parts: The texts that annotators split it into; empty if they did not.
        query: BioSyn's form of it, if it has one.
    """

    text: str
    document: str
    start: int
    gold: frozenset[str]
    parts: tuple[str, ...]
    query: Query | None


def align(path: Path, queries: list[Query]) -> list[Mention]:
    """Mentions with their queries: both are in the order of the corpus, but some mentions have no query."""
    mentions, at = [], 0
    for one in corpus_annotations(path):
        if "Chemical" in one.types:
            continue
        gold = frozenset(code.removeprefix("OMIM:") for code in one.codes)
        query = queries[at] if at < len(queries) else None
        matches = query is not None and query.gold <= gold  # some ids were dropped from queries
        if matches:
            at += 1
        mentions.append(Mention(one.mention, one.text, one.start, gold, one.parts, query if matches else None))
    if at != len(queries):
        sys.exit(f"{path}: only {at} of {len(queries)} queries follow the order of the corpus")
    return mentions


def abbreviations(mentions: list[Mention], names: Names) -> dict[str, Any]:
    """Counts for each finder, and without one."""
    single = [(mention, mention.query.text) for mention in mentions if mention.query and len(mention.query.parts) == 1]
    definitions: dict[str, dict[str, dict[str, str]]] = {"none": {}}
    documents = list(dict.fromkeys(mention.document for mention in mentions))
    for finder, find in FINDERS.items():
        try:
            definitions[finder] = {document: find(document) for document in documents}
        except UnavailableError as error:
            print(error)
    rows = {}
    for name, found in definitions.items():
        row = dict.fromkeys(("definitions", "same", "other", "left", "only ours", "named"), 0)
        row["definitions"] = sum(map(len, found.values()))
        for mention, query in single:
            plain, theirs = normalise(mention.text, "biosyn"), normalise(query, "biosyn")
            ours = normalise(expand(mention.text, found.get(mention.document, {})), "biosyn")
            row["named"] += is_named(ours, mention.gold, names)
            if _is_expanded(plain, theirs):
                row["same" if ours == theirs else "left" if ours == plain else "other"] += 1
            else:
                row["only ours"] += ours != plain
        rows[name] = row
    return {
        "mentions": len(single),
        "expanded by BioSyn": sum(_is_expanded(normalise(mention.text, "biosyn"), query) for mention, query in single),
        "named as BioSyn has them": sum(is_named(query, mention.gold, names) for mention, query in single),
        "finders": rows,
    }


def composites(mentions: list[Mention], names: Names) -> dict[str, Any]:
    """Counts without and with the names of the dictionary."""
    rows = {}
    for label, is_name in (("rules", None), ("rules and names", lambda text: normalise(text, "biosyn") in names)):
        row = dict.fromkeys(
            ("composite", "coordinated", "split", "right", "several ids", "same parts", "parts", "parts named"), 0
        )
        for mention in mentions:
            theirs = _parts(mention)
            ours = [normalise(part, "biosyn") for part in split_composite(mention.text, is_name=is_name)]
            row["composite"] += len(theirs) > 1
            row["coordinated"] += len(theirs) > 1 and _COORDINATED.search(mention.text) is not None
            row["split"] += len(ours) > 1
            row["several ids"] += len(ours) > 1 and len(mention.gold) > 1
            if len(theirs) > 1 and len(ours) > 1:
                row["right"] += 1
                row["same parts"] += sorted(ours) == sorted(theirs)
                row["parts"] += len(ours)
                row["parts named"] += sum(is_named(part, mention.gold, names) for part in ours)
        rows[label] = row
    return {"mentions": len(mentions), "splitters": rows}


def linked(mentions: list[Mention], linker: Linker) -> dict[str, Any]:
    """Counts for each stage of preparation alone, and for all."""
    rows: dict[str, dict[str, int]] = {}
    plain: list[bool] = []
    stages: dict[str, dict[str, Any]] = {
        "none": {},
        **{finder: {"finder": finder} for finder in FINDERS},
        "spelling": {"spelling": True},
        "composites": {"composites": True},
        "all but ab3p": {"finder": "schwartz-hearst", "spelling": True, "composites": True},
    }
    for label, options in stages.items():
        try:
            preparing = linker.preparing(Preparation(**options))
        except UnavailableError as error:
            print(error)
            continue
        contexts = [mention.document for mention in mentions] if "finder" in options else None
        prepared = preparing.prepare([mention.text for mention in mentions], contexts=contexts)
        answers = [[link.concept_id for link in links] for links in preparing.link(prepared, top_k=1)]
        n_wanted = [max(1, len(_parts(mention))) for mention in mentions]
        right = [
            len(ids) == len(read.parts) and (n == 1 or len(ids) == n) and all(_is_right(one, mention) for one in ids)
            for mention, read, ids, n in zip(mentions, prepared, answers, n_wanted, strict=True)
        ]
        plain = plain or right
        rows[label] = {
            "right": sum(is_right for is_right, n in zip(right, n_wanted, strict=True) if n == 1),
            "composites": sum(is_right for is_right, n in zip(right, n_wanted, strict=True) if n > 1),
            "changed": sum(mention.is_changed for mention in prepared),
            "won": sum(now and not before for now, before in zip(right, plain, strict=True)),
            "lost": sum(before and not now for now, before in zip(right, plain, strict=True)),
        }
    n_composite = sum(len(_parts(mention)) > 1 for mention in mentions)
    return {"mentions": len(mentions), "composite": n_composite, "stages": rows}


def _is_right(concept_id: str, mention: Mention) -> bool:
    return not mention.gold.isdisjoint(concept_id.split("|"))


def is_named(text: str, gold: frozenset[str], names: Names) -> bool:
    """Whether the dictionary has the text as a name of a gold concept."""
    return not gold.isdisjoint(names.get(text, frozenset()))


def _is_expanded(plain: str, query: str) -> bool:
    """Whether BioSyn put words for a short form; a corrected spelling ("tumor" for "tumour") leaves most letters."""
    return difflib.SequenceMatcher(None, plain, query, autojunk=False).ratio() < _SAME_WORDS


def _parts(mention: Mention) -> list[str]:
    """The texts that the corpus gives for a composite mention."""
    parts = mention.parts or (mention.query.parts if mention.query is not None else ())
    return [normalise(part, "biosyn") for part in parts]


def print_table(title: str, rows: dict[str, dict[str, int]]) -> None:
    """A row of counts for each variant."""
    columns = list(next(iter(rows.values())))
    print(f"\n{title}\n{'':16}" + "".join(f"{column:>13}" for column in columns))
    for name, row in rows.items():
        print(f"{name:16}" + "".join(f"{row[column]:13,}" for column in columns))


def find_file(folder: Path, split: str, *, queries: bool) -> Path:
    """The file of the split in the folder: BioSyn's queries, or else the corpus."""
    found = [
        file
        for file in sorted(folder.rglob("*.txt*"))
        if split in file.name.lower() and ("queries" in file.name.lower()) == queries
    ]
    if len(found) != 1:
        kind = "file of queries" if queries else "corpus"
        sys.exit(f"{folder}: {len(found)} files could be the {kind} of the split '{split}': {[*map(str, found)]}")
    return found[0]


def main() -> None:
    """Read, count, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds the corpus and BioSyn's queries")
    parser.add_argument("--dictionary", type=Path, required=True, help="names of the ontology alone, id||name")
    parser.add_argument("--split", default="dev", help="part of the names of both files (default: dev)")
    parser.add_argument("--linker", type=Path, help="folder of a linker of that dictionary")
    parser.add_argument("-o", "--output", type=Path, help="the counts as JSON")
    options = parser.parse_args()
    queries = read_queries(find_file(options.folder, options.split, queries=True))
    mentions = align(find_file(options.folder, options.split, queries=False), queries)
    names: Names = {}
    for line in read_dictionary(options.dictionary):
        names[line.name] = names.get(line.name, frozenset()).union(line.ids)
    counts = {"abbreviations": abbreviations(mentions, names), "composites": composites(mentions, names)}
    short, split = counts["abbreviations"], counts["composites"]
    print_table(
        f"Short forms: {short['mentions']:,} mentions of one concept; BioSyn expands {short['expanded by BioSyn']:,}, "
        f"and then {short['named as BioSyn has them']:,} are names of their concept",
        short["finders"],
    )
    print_table(f"Composites: {split['mentions']:,} mentions", split["splitters"])
    if options.linker is not None:
        counts["linker"] = answered = linked(mentions, Linker.open(options.linker))
        print_table(
            f"Linked: {answered['mentions'] - answered['composite']:,} mentions of one concept, "
            f"{answered['composite']:,} composite",
            answered["stages"],
        )
    if options.output is not None:
        options.output.write_text(json.dumps(counts, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
