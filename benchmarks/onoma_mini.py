"""How onoma-mini was made: its training names, and the file that Onoma carries.

    python benchmarks/onoma_mini.py names names.csv --wordnet /usr/share/wordnet --tables
        open_cui_names.tsv.gz mesh_descriptors.tsv.gz mondo doid hpo orphanet efo icd10cm.tsv.gz symp
    onoma terminology import table names.csv -o names --set id=concept_id --set name=name --set source=source
    onoma train onoma-mini --terminology names -o first

    onoma terminology enrich mesh --from mondo --from doid --by name -o enriched
    onoma pairs mentions bc5cdr_train_queries.txt -t enriched -e all-MiniLM-L6-v2 --max-pairs 8 --on-unknown skip
        -o mentions
    onoma pairs build -t mondo -e all-MiniLM-L6-v2 --max-pairs 2 --ambiguous mark -o synonyms
    onoma pairs merge mentions synonyms -o both
    onoma train onoma-mini-finetune --pairs both --set base=first --set tuning=layers --set base_share=0.5 -o trained

    (the two commands "pairs" with -e LARGE, merged as both-large; LARGE: benchmarks/joined_base.py)
    onoma train onoma-mini-finetune --pairs both-large --set base=LARGE --set learning_rate=6e-5
        --set batch_pairs=256 --set warmup_steps=20 --set steps=400 -o all-mpnet-base-v2-mentions
    onoma linker build -t names -e all-mpnet-base-v2-mentions --precision bf16 --index sign-bits --vectors fp16
        -o teacher
    onoma distil distil --linker teacher --set base=trained --set steps=2200 -o small
    python benchmarks/onoma_mini.py publish small onoma-mini.safetensors

First names, then mentions: those of diseases in the training part of BC5CDR (BioSyn's ``train_queries.txt``), with the
names that MeSH, MONDO and DOID have for them. ``mesh`` (descriptors and supplementary concepts), ``mondo`` and ``doid``
are folders that ``onoma terminology import`` made. Last from an encoder of BERT-base's size that learnt these mentions,
which of all names are near one another.

A table is the folder of a terminology (``onoma terminology fetch mondo``, ``import``), or has lines ``id<TAB>name``,
preferred name first. The tables of the release: MeSH descriptors, MONDO (2026-05), DOID, HPO (2025-01), Orphanet, EFO,
ICD-10-CM (April 2026), SYMP, and names by UMLS codes from the cross-references of five of them, a table that was made
outside of Onoma: no command here makes it, and an encoder without it is another one. WordNet 3.0: the files ``data.*``
of Princeton (Debian's package wordnet-base). Concepts of two tables are one where they share a name that is no homonym
in either. From WordNet come synonyms, derived words and the first clause of each gloss. Added by rule: inverted MeSH
headings the right way round, British spellings, and misspellings of one name in five.
"""

from __future__ import annotations

import argparse
import collections
import csv
import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from onoma.encoders.loading import load_packed
from onoma.encoders.updates import write_update
from onoma.terminology import Terminology
from onoma.terminology.tables import ACTIVE

Row = tuple[str, str, str]
"""Concept, name, source."""

_SHORTEST_SHARED = 6
"""Characters of a name by which concepts of two tables are joined."""
_WORDNET_FILES = {
    *range(5),  # adjectives, adverbs; all, acts, animals' kinds left out below
    *(6, 7, 8, 9, 12, 13, 19, 22, 23, 26, 27),  # artifacts, attributes, body, cognition, feelings, food, states, ...
    *(29, 30, 31, 32, 34, 35, 37, 38, 39, 42),  # verbs of body, change, cognition, ..., emotion, motion, perception
}
"""Lexicographers' files that have something to do with health; places, persons, animals and plants do not."""
# As the release was trained: a name that is British already may become a word that nobody writes (ooesophagus).
_BRITISH = [
    (r"\bhem(?=[aio])", "haem"),
    (r"(?<=[a-z])emia\b", "aemia"),
    (r"(?<=[a-z])emic\b", "aemic"),
    (r"esophag", "oesophag"),
    (r"\bedema", "oedema"),
    (r"(?<=[a-z])edema", "oedema"),
    (r"rrhea\b", "rrhoea"),
    (r"pediatric", "paediatric"),
    (r"gynec", "gynaec"),
    (r"orthoped", "orthopaed"),
    (r"tumor", "tumour"),
    (r"color\b", "colour"),
    (r"\bestrogen", "oestrogen"),
    (r"\bfet(?=al|us)", "foet"),
    (r"fiber", "fibre"),
    (r"\bcenter", "centre"),
    (r"ization\b", "isation"),
    (r"celiac", "coeliac"),
    (r"\bfec(?=al|es)", "faec"),
    (r"paresthes", "paraesthes"),
    (r"anesth", "anaesth"),
    (r"pnea\b", "pnoea"),
    (r"ischem", "ischaem"),
    (r"\bcec(?=um|al)", "caec"),
    (r"etiolog", "aetiolog"),
    (r"sulf", "sulph"),
    (r"ized\b", "ised"),
    (r"izing\b", "ising"),
    (r"uresis", "uresis"),
    (r"hemorrh", "haemorrh"),
    (r"leukemi", "leukaemi"),
    (r"anemi", "anaemi"),
]
_CONFUSED = {
    **{"a": "eo", "e": "ai", "i": "ey", "o": "au", "u": "oi", "y": "i", "s": "cz", "c": "sk", "k": "c"},
    **{"f": "v", "t": "d", "d": "t", "m": "n", "n": "m"},
}


# ---- Names of several vocabularies.


def joined_tables(files: Sequence[Path]) -> list[Row]:
    """The names of all tables, concepts that share a name under one id."""
    if same := [stem for stem, count in collections.Counter(map(_stem, files)).items() if count > 1]:
        raise SystemExit(f"two tables are called {same[0]}, and their codes would be one: rename one")
    tables = [
        _read_table(file)
        .select(
            source=pl.lit(_stem(file)), id=pl.concat_str([pl.lit(f"{_stem(file)}/"), pl.col("id")]), name=pl.col("name")
        )
        .drop_nulls()
        for file in files
    ]
    names = pl.concat(tables).with_columns(
        key=pl.col("name").str.to_lowercase().str.replace_all(r"[^\w]+", " ").str.strip_chars()
    )
    names = names.filter(pl.col("key") != "")
    shared = (
        names.filter(pl.col("key").str.len_chars() >= _SHORTEST_SHARED)
        .group_by("key", maintain_order=True)
        .agg(pl.col("id").unique(maintain_order=True))
        .filter(pl.col("id").list.len() > 1)
        .sort("key")
    )
    concept_of = _joined(shared["id"].to_list())
    rows = names.with_columns(concept_id=pl.col("id").replace(concept_of))
    return list(rows.select("concept_id", "name", "source").unique(maintain_order=True).iter_rows())


def _read_table(file: Path) -> pl.DataFrame:
    """Columns ``id`` and ``name``, of a file or a terminology's folder."""
    if not file.is_dir():
        columns = ["id", "name"]
        return pl.read_csv(
            file, separator="\t", has_header=False, quote_char=None, new_columns=columns, infer_schema=False
        )
    terminology = Terminology.open(file)
    concepts = terminology.concepts().with_row_index("concept_row").filter(pl.col("status") == ACTIVE)
    names = terminology.names().filter(~pl.col("is_suppressed"))
    return (
        names.join(concepts, on="concept_row")
        .sort("concept_row", pl.col("is_preferred").not_(), maintain_order=True)
        .select(id="concept_id", name="text")
        .collect()
    )


def _joined(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Each id's concept; a concept never holds two ids of one vocabulary."""
    concept: dict[str, str] = {}
    members: dict[str, set[str]] = {}
    for group in groups:
        roots = {concept.get(one, one) for one in group}
        together = set().union(*(members.get(root, {root}) for root in roots))
        # Two ids of one vocabulary: the name is a homonym there, or two of its concepts would become one.
        if any(_has_two_of_one(ids) for ids in (group, together)):
            continue
        first = min(roots)
        members[first] = together
        concept.update(dict.fromkeys(together, first))
    return concept


def _has_two_of_one(ids: Iterable[str]) -> bool:
    return max(collections.Counter(one.partition("/")[0] for one in ids).values()) > 1


def _stem(file: Path) -> str:
    return file.name.partition(".")[0]


# ---- WordNet.


@dataclasses.dataclass(frozen=True)
class _Synset:
    file: int
    words: list[str]
    gloss: str
    pointers: list[tuple[str, str, str, str]]


def wordnet_rows(folder: Path) -> Iterator[Row]:
    """Synonyms and glosses by synset, and derived words by pair."""
    synsets = dict(_synsets(folder))
    pairs: dict[tuple[str, str], None] = {}
    for (part, offset), synset in synsets.items():
        if synset.file not in _WORDNET_FILES:
            continue
        concept = f"wn/{part}{offset}"
        yield from ((concept, word, "wordnet") for word in dict.fromkeys(synset.words))
        if 2 <= len(synset.gloss.split()) <= 18:
            yield concept, synset.gloss, "wordnet"
        for kind, target, target_part, positions in synset.pointers:
            if kind in {"+", "\\"} and positions != "0000":
                other = synsets[_part(target_part), target].words[int(positions[2:], 16) - 1]
                word = synset.words[int(positions[:2], 16) - 1]
                pair = (word, other) if word.lower() <= other.lower() else (other, word)
                if word.lower() == other.lower() or (pair[0].lower(), pair[1].lower()) in pairs:
                    continue
                pairs[pair[0].lower(), pair[1].lower()] = None
                derived = f"wnd/{len(pairs)}"
                yield derived, word, "wordnet-derived"
                yield derived, other, "wordnet-derived"


def _synsets(folder: Path) -> Iterator[tuple[tuple[str, str], _Synset]]:
    """The format of wndb(5WN): offset, file, part of speech, words, pointers, gloss."""
    for part, name in (("n", "noun"), ("v", "verb"), ("a", "adj"), ("r", "adv")):
        for line in (folder / f"data.{name}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue  # the licence
            head, _, gloss = line.partition(" | ")
            fields = head.split(" ")
            n_words = int(fields[3], 16)
            words = [re.sub(r"\((a|p|ip)\)$", "", word).replace("_", " ") for word in fields[4 : 4 + 2 * n_words : 2]]
            first = 4 + 2 * n_words
            n_pointers = int(fields[first])
            cells = fields[first + 1 : first + 1 + 4 * n_pointers]
            pointers = [(a, b, c, d) for a, b, c, d in zip(*[iter(cells)] * 4, strict=True)]
            yield (part, fields[0]), _Synset(int(fields[1]), words, _first_clause(gloss), pointers)


def _first_clause(gloss: str) -> str:
    without_examples = re.sub(r'"[^"]*"(\s*-\s*[\w .]+)?', "", gloss).strip().strip(";").strip()
    return re.sub(r"^\([^)]*\)\s*", "", without_examples.split(";")[0].strip())


def _part(letter: str) -> str:
    return "a" if letter == "s" else letter


# ---- Other spellings.


def spellings(rows: Sequence[Row], rng: np.random.Generator) -> Iterator[Row]:
    """Names in natural order, British spellings, misspellings."""
    for concept, name, source in rows:
        parts = name.split(", ")
        if source == "mesh_descriptors" and len(parts) == 2 and not re.search(r"\b(and|or|with|NOS)\b", name):
            yield concept, f"{parts[1]} {parts[0]}", "inverted"
    for concept, name, _ in rows:
        if (british := _british(name)) != name.lower():
            yield concept, british, "british"
    chosen = [row for row in rows if row[2] != "wordnet-derived"]
    for (concept, name, _), is_chosen in zip(chosen, rng.random(len(chosen)) < 0.2, strict=True):
        if is_chosen and len(name) < 60 and (wrong := misspelt(name, rng)) not in {None, name.lower()}:
            yield concept, str(wrong), "misspelt"


def _british(name: str) -> str:
    text = name.lower()
    for american, british in _BRITISH:
        text = re.sub(american, british, text)
    return text


def misspelt(name: str, rng: np.random.Generator) -> str | None:
    """One or two slips in words of five letters or more; None where there is no such word."""
    words = name.lower().split(" ")
    long = [position for position, word in enumerate(words) if len(word) >= 5 and word.isalpha()]
    if not long:
        return None
    for _ in range(1 + (rng.random() < 0.35)):
        position = long[rng.integers(len(long))]
        words[position] = _slip(words[position], rng)
    return " ".join(words)


def _slip(word: str, rng: np.random.Generator) -> str:
    at, kind = int(rng.integers(1, len(word))), rng.random()
    before, letter, after = word[:at], word[at], word[at + 1 :]
    if kind < 0.3:
        return before + after
    if kind < 0.5 and after:
        return before + after[0] + letter + after[1:]
    if kind < 0.65:
        return before + letter + letter + after
    if kind < 0.9:
        others = _CONFUSED.get(letter, "e")
        return before + others[rng.integers(len(others))] + after
    return before + "aeiou"[rng.integers(5)] + letter + after


# ---- Commands.


def write_names(out: Path, tables: Sequence[Path], wordnet: Path | None) -> None:
    """The training table of onoma-mini; without WordNet the names of the tables as they are."""
    rows = joined_tables(tables)
    if wordnet is not None:
        rows += wordnet_rows(wordnet)
        rows += list(spellings(rows, np.random.default_rng(0)))
    distinct = {(concept, name): source for concept, name, source in reversed(rows)}
    kept = [(concept, name, source) for concept, name, source in rows if distinct.pop((concept, name), None) == source]
    kept.sort(key=lambda row: row[0])
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["concept_id", "name", "source"])
        writer.writerows(kept)
    print(f"{out}: {len({row[0] for row in kept}):,} concepts, {len(kept):,} names")


def publish(trained: Path, out: Path) -> None:
    """The file that Onoma carries, from an encoder that ``onoma train`` wrote."""
    config: Mapping[str, object] = json.loads((trained / "onoma.json").read_text(encoding="utf-8"))["config"]
    report = json.loads((trained / "train.json").read_text(encoding="utf-8"))
    report.pop("log", None)
    about = {"config": config, "train": json.dumps(report, indent=1)}
    write_update(load_packed("all-MiniLM-L6-v2"), load_packed(trained), out, about=about)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    names = commands.add_parser("names", help="write the training names")
    names.add_argument("out", type=Path)
    names.add_argument("--tables", type=Path, nargs="+", required=True)
    names.add_argument(
        "--wordnet", type=Path, help="folder of data.noun, data.verb, ...; unset: the tables' names alone, as spelt"
    )
    names.set_defaults(run=lambda given: write_names(given.out, given.tables, given.wordnet))
    published = commands.add_parser("publish", help="write the update that Onoma carries")
    published.add_argument("trained", type=Path)
    published.add_argument("out", type=Path)
    published.set_defaults(run=lambda given: publish(given.trained, given.out))
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
