"""What onoma-mini and its weight of n-grams were chosen by: development figures of encoders and updates.

    python benchmarks/choosing_onoma_mini.py UPDATE_OR_ENCODER ... --ncbi DIR --bc5cdr DIR --askapatient DIR
        [--weights 0 0.1 0.15 0.25]

An update is a file that ``benchmarks/onoma_mini.py publish`` writes; everything else is an encoder, as all
commands take it. The folders hold the tasks' files (docs/benchmarks.md), those of the first two MEDIC as
``dictionary.txt`` too, whose names alone are the rows "ontology". Dictionary lines are ranked, by vectors of bf16;
printed are acc@1 / acc@5, and the same with each distinct mention counted once.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onoma.benchmarks import accuracy_at, get_task, macro_accuracy_at
from onoma.benchmarks.biosyn import DictionaryLine, ontology_file, read_dictionary
from onoma.benchmarks.candidates import nearest_lines
from onoma.benchmarks.run import query_ranks
from onoma.encoders import Encoder, open_encoder
from onoma.encoders.loading import load_packed
from onoma.encoders.saving import save_encoder
from onoma.encoders.updates import add_update
from onoma.pairs.mentions import cased_alike
from onoma.types import FloatArray

_SPLITS = {"ncbi-disease": "dev", "bc5cdr-disease": "dev", "askapatient": "validation"}
_CUTOFFS = (1, 5)


class _Remembering:
    """An encoder that encodes each name once, however many dictionaries and weights it is asked for."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, FloatArray] = {}

    def encode(self, texts: Sequence[str], **options: Any) -> FloatArray:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encoder.encode(new, **options), strict=True))
        return np.stack([self._known[text] for text in texts])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


def opened(what: str, aside: Path) -> Encoder:
    """An encoder, or the one that an update makes of all-MiniLM-L6-v2."""
    if not what.endswith(".safetensors"):
        return open_encoder(what, precision="bf16")
    encoder = load_packed("all-MiniLM-L6-v2")
    about = add_update(encoder, what)
    folder = aside / Path(what).stem
    save_encoder(encoder, folder, config=about["config"], max_tokens=about["config"]["training"]["max_tokens"])
    return open_encoder(folder, precision="bf16")


def dictionaries(task: str, folder: Path) -> Iterator[tuple[str, list[DictionaryLine]]]:
    """The task's own, and MEDIC alone where there is one."""
    yield task, get_task(task).dictionary(folder, _SPLITS[task])[0]
    if task != "askapatient":
        yield f"{task}, ontology", read_dictionary(ontology_file(folder))


def measure(encoder: Encoder, task: str, folder: Path, weights: Sequence[float]) -> Iterator[str]:
    """A line for each dictionary and weight."""
    queries, _ = get_task(task).queries(folder, _SPLITS[task])
    mentions = [cased_alike(query.text) for query in queries]
    parts = list(dict.fromkeys(part for query in queries for part in query.parts))
    for label, lines in dictionaries(task, folder):
        for weight in weights:
            ranks = query_ranks(queries, nearest_lines(encoder, lines, parts, k=max(_CUTOFFS), sparse_weight=weight))
            as_they_occur = [accuracy_at(ranks, k, clusters=mentions).value for k in _CUTOFFS]
            once = [macro_accuracy_at(ranks, k, clusters=mentions) for k in _CUTOFFS]
            yield f"{label}, {weight:g}: {_shown(as_they_occur)}; each mention once {_shown(once)}"


def _shown(shares: Sequence[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoders", nargs="+", metavar="UPDATE_OR_ENCODER")
    parser.add_argument("--ncbi", type=Path, required=True)
    parser.add_argument("--bc5cdr", type=Path, required=True)
    parser.add_argument("--askapatient", type=Path, required=True)
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0], help="of the n-grams (default: 0)")
    given = parser.parse_args()
    folders = dict(zip(_SPLITS, (given.ncbi, given.bc5cdr, given.askapatient), strict=True))
    with tempfile.TemporaryDirectory() as aside:
        for what in given.encoders:
            encoder = _Remembering(opened(what, Path(aside)))
            for task, folder in folders.items():
                for line in measure(encoder, task, folder, given.weights):
                    print(f"{Path(what).name}, {line}", flush=True)


if __name__ == "__main__":
    main()
