"""The benchmarks that Onoma can run, as declarations."""

from __future__ import annotations

from dataclasses import dataclass

from onoma.errors import InputError, did_you_mean


@dataclass(frozen=True)
class BenchmarkTask:
    """What a benchmark is: its data, its terms, its rules.

    Attributes:
        name: For the command line.
        description: One line for people.
        queries: File of queries in the data folder (or its ``biosyn/``), possibly with ``.gz``.
        dictionary: File of names to choose from, likewise.
        data_source: Where the data come from and how to get them.
        licence: Of the data.
        citation: What to cite.
        metrics: Names of the figures in the results; all are fractions.
        protocol: Name and rules of the evaluation, for an encoder.
        linker_protocol: The same for a linker, which ranks concepts of its own terminology.
        tie_rule: Which of two equal scores comes first, and why.
        linker_tie_rule: The same for a linker.
        cutoffs: The k of each acc@k.
    """

    name: str
    description: str
    queries: str
    dictionary: str
    data_source: str
    licence: str
    citation: str
    metrics: tuple[str, ...]
    protocol: str
    linker_protocol: str
    tie_rule: str
    linker_tie_rule: str
    cutoffs: tuple[int, ...]


_NCBI_DISEASE = BenchmarkTask(
    name="ncbi-disease",
    description="NCBI disease corpus, test set, normalisation of given mentions",
    queries="test_queries.txt",
    dictionary="test_dictionary.txt",
    data_source="the processed files of BioSyn (github.com/dmis-lab/BioSyn): 960 queries, 73,024 names",
    licence="public domain (corpus); MEDIC is CTD's, with attribution",
    citation="Doğan, Leaman, Lu 2014, doi:10.1016/j.jbi.2013.12.006; protocol: Sung et al. 2020, ACL, BioSyn; "
    "Liu et al. 2021, NAACL, SapBERT",
    metrics=("acc@1", "acc@5"),
    protocol="biosyn: the dictionary is the ontology and the names of the training and development mentions; "
    "names and mentions are prepared as in the encoder's training; lines are ranked by cosine similarity; a "
    "composite mention is split on | and +, and every part must be right; a "
    "part is right at k when one of the ids of one of the k best lines is among the query's gold ids",
    linker_protocol="linker: concepts of the linker's own terminology are ranked; a composite mention is split on | "
    "and +, and every part must be right; a part is right at k when the id of one of the k best concepts (split on |) "
    "is among the query's gold ids. Not comparable with the published protocol",
    tie_rule="of equal scores the earlier dictionary line comes first: the published protocol leaves ties to the sort, "
    "and the order of the file is the one rule that depends on neither the gold ids nor the encoder",
    linker_tie_rule="scores are compared to six decimals; of equal scores the concept whose preferred name the text "
    "is comes first, then the one that stands earlier in the terminology",
    cutoffs=(1, 5),
)

TASKS: dict[str, BenchmarkTask] = {task.name: task for task in (_NCBI_DISEASE,)}
"""All benchmarks by name."""


def get_task(name: str) -> BenchmarkTask:
    """The declaration of a benchmark.

    Raises:
        InputError: there is none of this name; the message lists them.

    Example:
        >>> get_task("ncbi-disease").cutoffs
        (1, 5)
    """
    if name not in TASKS:
        raise InputError(
            f"there is no benchmark '{name}'.{did_you_mean(name, TASKS)} Known: {', '.join(sorted(TASKS))}",
            field="task",
        )
    return TASKS[name]
