"""The same names and mentions through the tools that people link with today: accuracy, time, memory, disk.

    python benchmarks/other_tools.py build TOOL dictionary.txt FOLDER
    python benchmarks/other_tools.py answer TOOL dictionary.txt FOLDER queries.txt [-o answers.json]

TOOL is one of

* ``onoma``: a linker with onoma-mini; ``onoma-sign-bits``: with that index; ``onoma-characters``: one without an
  encoder, by character n-grams;
* ``scispacy``: its candidate generator, of this dictionary (TF-IDF of 3-grams in an HNSW graph; ``pip install scispacy
  'scipy<1.11'``), the concepts by their best name, as its linker ranks them, without that one's threshold;
* ``gilda``: its grounder, of this dictionary (``pip install gilda``);
* ``quickumls``: its matcher, of this dictionary as ``MRCONSO.RRF`` and ``MRSTY.RRF``, installed with ``-L -U`` (``pip
  install quickumls``, spaCy's ``en_core_web_sm``, NLTK's list of stop words), with longer matches before better ones;
* ``sentence-transformers``: all-MiniLM-L6-v2 (``--model FOLDER``), names in batches of 128, and a flat FAISS index.

Each tool runs in an environment of its own: this file and ``memory.py`` need nothing else. Other settings are the
tools' own. Dictionary and queries are in BioSyn's format, ``id||name`` with ``|`` between several ids. A mention of
several concepts is left out, and each different one is asked once. It is answered right at k if one of the first k
concepts has an id that it was annotated with.

``build`` prints seconds, the most memory and what lies on the disk; ``answer`` opens that in a process of its own.
Mentions are asked one by one, then all in one call where the tool has such a call.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory import peak_mib

Ask = Callable[[list[str]], list[list[str]]]
"""Mentions to up to five concepts each, best first; a concept is named as the dictionary's lines do, ``D1|D2``."""

TOP_K = 5


def read_lines(path: Path) -> list[tuple[str, str]]:
    """The ids and the name of each line."""
    parts = [
        line.partition("||") for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()
    ]
    return [(ids, name) for ids, _, name in parts]


def concepts_of(dictionary: Path) -> dict[str, list[str]]:
    """The names of each concept."""
    found: dict[str, list[str]] = {}
    for ids, name in read_lines(dictionary):
        found.setdefault(ids, []).append(name)
    return found


def build_onoma(tool: str, dictionary: Path, folder: Path) -> None:
    """A terminology and a linker, as the commands make them."""
    import onoma

    terminology, linker = folder / "terminology", folder / "linker"
    onoma.import_terminology("biosyn", dictionary, terminology)
    if tool == "onoma-characters":
        onoma.build_linker(terminology, None, linker, sparse=True)
    elif tool == "onoma-sign-bits":
        onoma.build_linker(terminology, "onoma-mini", linker, index="sign-bits")
    else:
        onoma.build_linker(terminology, "onoma-mini", linker)


def open_onoma(folder: Path) -> Ask:
    """The linker's first concepts."""
    import onoma

    linker = onoma.Linker.open(folder / "linker")
    return lambda mentions: [[link.concept_id for link in links] for links in linker.link(mentions, top_k=TOP_K)]


def build_scispacy(dictionary: Path, folder: Path) -> None:
    """A knowledge base and its index, by the tool's own function."""
    from scispacy.candidate_generation import create_tfidf_ann_index
    from scispacy.linking_utils import KnowledgeBase

    lines = [
        json.dumps({"concept_id": concept, "canonical_name": names[0], "aliases": names[1:], "types": []})
        for concept, names in concepts_of(dictionary).items()
    ]
    (folder / "kb.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    create_tfidf_ann_index(str(folder), KnowledgeBase(str(folder / "kb.jsonl")))


def open_scispacy(folder: Path) -> Ask:
    """Candidates by their best similarity, of the 30 nearest names, as the tool's linker takes them."""
    from scispacy.candidate_generation import CandidateGenerator, LinkerPaths
    from scispacy.linking_utils import KnowledgeBase

    names, vectoriser, index = LinkerPaths.from_directory(folder).load()
    generator = CandidateGenerator(index, vectoriser, names, KnowledgeBase(str(folder / "kb.jsonl")))

    def ask(mentions: list[str]) -> list[list[str]]:
        ranked = [
            sorted(candidates, key=lambda candidate: -max(candidate.similarities))
            for candidates in generator(mentions, 30)
        ]
        return [[candidate.concept_id for candidate in candidates[:TOP_K]] for candidates in ranked]

    return ask


def build_gilda(dictionary: Path, folder: Path) -> None:
    """A table of terms, as the tool reads it."""
    from gilda.process import normalize
    from gilda.term import Term, dump_terms

    terms = [
        Term(normalize(name), name, "own", concept, names[0], "name" if name == names[0] else "synonym", "own")
        for concept, names in concepts_of(dictionary).items()
        for name in names
        if normalize(name).strip()
    ]
    dump_terms(terms, folder / "terms.tsv.gz")


def open_gilda(folder: Path) -> Ask:
    """Matches by their score; one mention at a time, as there is no other call."""
    from gilda.grounder import Grounder

    grounder = Grounder(folder / "terms.tsv.gz")
    return lambda mentions: [[match.term.id for match in grounder.ground(m)[:TOP_K]] for m in mentions]


def build_quickumls(dictionary: Path, folder: Path) -> None:
    """The two files of the UMLS that the tool reads, and its own installation of them."""
    from quickumls import install

    concepts = concepts_of(dictionary)
    release, installed = folder / "release", folder / "installed"
    release.mkdir()
    installed.mkdir()
    with (release / "MRCONSO.RRF").open("w", encoding="utf-8") as file:
        for number, names in enumerate(concepts.values()):
            for rank, name in enumerate(names):
                preferred = "N" if rank else "Y"
                file.write(f"C{number:07}|ENG|P|L|PF|S|{preferred}|A||||OWN|PT||{name.replace('|', ' ')}|0|N||\n")
    with (release / "MRSTY.RRF").open("w", encoding="utf-8") as file:
        for number in range(len(concepts)):
            file.write(f"C{number:07}|T047|B2.2.1.2.1|Disease or Syndrome|||\n")
    sys.argv = ["quickumls.install", "-L", "-U", str(release), str(installed)]
    install.main()
    shutil.rmtree(release)
    (folder / "concepts.json").write_text(json.dumps(list(concepts)), encoding="utf-8")


def open_quickumls(folder: Path) -> Ask:
    """Concepts of its matches in their order; one mention at a time, as there is no other call."""
    from quickumls import QuickUMLS

    matcher = QuickUMLS(str(folder / "installed"), overlapping_criteria="length")
    concepts = json.loads((folder / "concepts.json").read_text(encoding="utf-8"))

    def ask(mention: str) -> list[str]:
        found = [match for matches in matcher.match(mention) for match in matches]
        return list(dict.fromkeys(concepts[int(match["cui"][1:])] for match in found))[:TOP_K]

    return lambda mentions: [ask(mention) for mention in mentions]


def build_sentence_transformers(dictionary: Path, folder: Path, *, model: str) -> None:
    """Vectors of all names in a flat index."""
    import faiss
    from sentence_transformers import SentenceTransformer

    rows = [(concept, name) for concept, names in concepts_of(dictionary).items() for name in names]
    encoder = SentenceTransformer(model, device="cpu")
    vectors = encoder.encode([name for _, name in rows], normalize_embeddings=True, batch_size=128)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(folder / "names.faiss"))
    (folder / "rows.json").write_text(json.dumps({"model": model, "rows": rows}), encoding="utf-8")


def open_sentence_transformers(folder: Path) -> Ask:
    """Concepts of the nearest fifty names."""
    import faiss
    from sentence_transformers import SentenceTransformer

    kept = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    rows = kept["rows"]
    encoder = SentenceTransformer(kept["model"], device="cpu")
    index = faiss.read_index(str(folder / "names.faiss"))

    def ask(mentions: list[str]) -> list[list[str]]:
        _, nearest = index.search(encoder.encode(mentions, normalize_embeddings=True), 50)
        return [list(dict.fromkeys(rows[row][0] for row in found))[:TOP_K] for found in nearest]

    return ask


def build(tool: str, dictionary: Path, folder: Path, model: str) -> dict[str, Any]:
    """Build and measure."""
    folder.mkdir(parents=True)
    started = time.perf_counter()
    if tool.startswith("onoma"):
        build_onoma(tool, dictionary, folder)
    elif tool == "scispacy":
        build_scispacy(dictionary, folder)
    elif tool == "gilda":
        build_gilda(dictionary, folder)
    elif tool == "quickumls":
        build_quickumls(dictionary, folder)
    else:
        build_sentence_transformers(dictionary, folder, model=model)
    seconds = time.perf_counter() - started
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"built_s": round(seconds, 1), "most_mib": round(peak_mib()), "disk_mib": round(size / 2**20, 1)}


OPENERS: dict[str, Callable[[Path], Ask]] = {
    "onoma": open_onoma,
    "onoma-sign-bits": open_onoma,
    "onoma-characters": open_onoma,
    "scispacy": open_scispacy,
    "gilda": open_gilda,
    "quickumls": open_quickumls,
    "sentence-transformers": open_sentence_transformers,
}


def answer(tool: str, dictionary: Path, folder: Path, queries: Path) -> dict[str, Any]:
    """Open, ask and measure."""
    ids_of = {ids: set(ids.split("|")) for ids, _ in read_lines(dictionary)}
    asked: dict[str, set[str]] = {}
    for annotated, mention in read_lines(queries):
        if "|" not in annotated:
            asked.setdefault(mention, set()).add(annotated)
    mentions = list(asked)
    if not mentions:
        raise SystemExit(f"{queries} has no mention of one concept: expected lines id||mention.")
    started = time.perf_counter()
    ask = OPENERS[tool](folder)
    ask(mentions[:1])
    opened = time.perf_counter()
    times = []
    answers = []
    for mention in mentions:
        before = time.perf_counter()
        answers.extend(ask([mention]))
        times.append(1000 * (time.perf_counter() - before))
    before = time.perf_counter()
    ask(mentions)
    together = time.perf_counter() - before
    right = [
        next((rank for rank, found in enumerate(concepts, 1) if asked[mention] & ids_of[found]), 0)
        for mention, concepts in zip(mentions, answers, strict=True)
    ]
    return {
        "mentions": len(mentions),
        "acc@1": round(100 * sum(rank == 1 for rank in right) / len(right), 1),
        "acc@5": round(100 * sum(rank > 0 for rank in right) / len(right), 1),
        "answered": round(100 * sum(map(bool, answers)) / len(answers), 1),
        "open_and_first_s": round(opened - started, 2),
        "one_mention_ms": round(sorted(times)[len(times) // 2], 2),
        "mentions_per_s": round(len(mentions) / together),
        "most_mib": round(peak_mib()),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["build", "answer"])
    parser.add_argument("tool", choices=list(OPENERS))
    parser.add_argument("dictionary", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("queries", type=Path, nargs="?")
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.action == "build":
        found = build(options.tool, options.dictionary, options.folder, options.model)
    elif options.queries is None:
        parser.error("answer needs the queries")
    else:
        found = answer(options.tool, options.dictionary, options.folder, options.queries)
    text = json.dumps({"tool": options.tool, **found})
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
