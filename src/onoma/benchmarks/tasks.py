"""The benchmarks that Onoma can run, as declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from onoma.benchmarks import askapatient
from onoma.benchmarks.biosyn import (
    DictionaryLine,
    Query,
    find_file,
    has_file,
    merged,
    ontology_file,
    query_files,
    read_dictionary,
    read_mentions_as_names,
    read_queries,
)
from onoma.benchmarks.metrics import DISTINCT
from onoma.errors import ConfigError, InputError, check_several, did_you_mean, one_of, whole_number

T = TypeVar("T")


Read: TypeAlias = Callable[[Path, str], tuple[list[T], list[Path]]]
"""(folder with the task's files, which may be gzip; split) -> what is in them, and the files that were read."""


@dataclass(frozen=True)
class BenchmarkTask:
    """What a benchmark is: its data, its terms, its rules.

    Attributes:
        name: For the command line.
        description: One line for people.
        splits: The parts that can be measured on, the one to report first.
        queries: Reads the mentions of a split and their right ids.
        dictionary: Reads the names to choose from.
        data_source: Where the data come from and how to get them.
        licence: Of the data.
        citation: What to cite.
        protocol: Name and rules of the evaluation, for an encoder.
        linker_protocol: The same for a linker, which ranks concepts of its own terminology.
        tie_rule: Which of two equal scores comes first, and why.
        linker_tie_rule: The same for a linker.
        cutoffs: The k of each acc@k.
        n_queries: How many queries the published files have, for splits with a known number.
        n_names: How many lines their dictionary has, likewise.
        may_be_nil: Whether a mention may be annotated as meaning no concept (`onoma.codes.NO_CONCEPT`).
        clusters: What queries of one cluster share (`Query.cluster_key`), in words.
        group: The column by whose values queries are also measured separately (`Query.group`); unset: none.
        terminologies: Fingerprints of those whose names are the dictionary, by name.
    """

    name: str
    description: str
    splits: tuple[str, ...]
    queries: Read[Query] = field(repr=False)
    dictionary: Read[DictionaryLine] = field(repr=False)
    data_source: str = field(repr=False)
    licence: str
    citation: str = field(repr=False)
    protocol: str = field(repr=False)
    linker_protocol: str = field(repr=False)
    tie_rule: str = field(repr=False)
    linker_tie_rule: str = field(repr=False)
    cutoffs: tuple[int, ...]
    n_queries: Mapping[str, int] = field(default_factory=dict)
    n_names: Mapping[str, int] = field(default_factory=dict)
    may_be_nil: bool = False
    clusters: str = DISTINCT
    group: str | None = None
    terminologies: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be measured.

        Raises:
            InputError: there is no split or no k.
        """
        check_several(self.splits, "splits")
        check_several(self.cutoffs, "cutoffs")
        if not self.splits:
            raise InputError(f"the benchmark {self.name} has no part to measure on", field="splits")
        if not self.cutoffs:
            raise InputError(f"the benchmark {self.name} has no k to measure acc@k at", field="cutoffs")
        for k in self.cutoffs:
            whole_number(k, "cutoffs", "a number of answers")

    def split(self, name: str | None) -> str:
        """The name of a split; unset: the one to report.

        Raises:
            InputError: there is none of this name.
        """
        if name is None:
            return self.splits[0]
        if name not in self.splits:
            raise InputError(
                f"{self.name} has no split '{name}'.{did_you_mean(name, self.splits)} Known: {', '.join(self.splits)}",
                field="split",
            )
        return name


def biosyn_queries(folder: Path, split: str) -> tuple[list[Query], list[Path]]:
    """``test_queries.txt`` or ``dev_queries.txt``, or the documents of ``processed_test`` or ``processed_dev``."""
    files = query_files(folder, split)
    return [query for file in files for query in read_queries(file)], files


def biosyn_dictionary(folder: Path, split: str) -> tuple[list[DictionaryLine], list[Path]]:
    """``test_dictionary.txt`` or ``dev_dictionary.txt``.

    Where the latter is missing it is made as BioSyn makes it: the names of the ontology (``dictionary.txt``) and the
    training mentions (``train_queries.txt``, or documents), one line for each name with all its ids. A composite
    mention is one name, its parts with a space between, that has the ids of all of them (where ``+`` stands between
    them they are one id).
    """
    if split != "dev" or has_file(folder, "dev_dictionary.txt"):
        file = find_file(folder, f"{split}_dictionary.txt")
        return read_dictionary(file), [file]
    instead = "dev_dictionary.txt, which is made of dictionary.txt and the training mentions"
    ontology = ontology_file(folder, instead=instead)
    mentions = query_files(folder, "train", instead=instead)
    names = [name for file in mentions for name in read_mentions_as_names(file)]
    return merged([*read_dictionary(ontology), *names]), [ontology, *mentions]


def askapatient_queries(folder: Path, split: str) -> tuple[list[Query], list[Path]]:
    """All folds of "test" or "validation", or of one fold: "fold-0" its test part, "fold-0-validation" the other."""
    folds, part = _folds_and_part(split)
    files = [askapatient.fold_file(folder, fold, part) for fold in folds]
    return askapatient.as_queries([row for file in files for row in askapatient.read_fold(file)]), files


def askapatient_dictionary(folder: Path, split: str) -> tuple[list[DictionaryLine], list[Path]]:
    """One name for each concept of the corpus, whatever the split."""
    (fold, *_), _ = _folds_and_part(split)  # each fold holds all concepts
    files = [askapatient.fold_file(folder, fold, part) for part in askapatient.PARTS]
    return askapatient.concept_names([row for file in files for row in askapatient.read_fold(file)]), files


def _folds_and_part(split: str) -> tuple[list[int], str]:
    if not split.startswith("fold-"):
        return list(range(askapatient.N_FOLDS)), split
    fold, _, part = split.removeprefix("fold-").partition("-")
    return [int(fold)], part or "test"


LINKER_TIES = (
    "scores are compared to six decimals; of equal scores the concept that annotated mentions mean more often comes "
    "first, if the linker has such counts, then the one whose preferred name the text is, then the one that stands "
    "earlier in the terminology"
)
_TIES = (
    "of equal scores the earlier dictionary line comes first: the published protocol leaves ties to the sort, "
    "and the order of the file is the one rule that depends on neither the gold ids nor the encoder"
)
_BIOSYN_PROTOCOL = (
    "biosyn: the dictionary is the ontology and the names of the training and development mentions (for the "
    "development set: of the training mentions); names and mentions are prepared as in the encoder's training; lines "
    "are ranked by cosine similarity; a composite mention is split on | and +, and every part must be right; a "
    "part is right at k when one of the ids of one of the k best lines is among the query's gold ids"
)
_BIOSYN_LINKER_PROTOCOL = (
    "linker: concepts of the linker's own terminology are ranked; a composite mention is split on | "
    "and +, and every part must be right; a part is right at k when the id of one of the k best concepts (split on |) "
    "is among the query's gold ids. Not comparable with the published protocol"
)

_NCBI_DISEASE = BenchmarkTask(
    name="ncbi-disease",
    description="NCBI disease corpus, normalisation of given mentions to MEDIC",
    splits=("test", "dev"),
    queries=biosyn_queries,
    dictionary=biosyn_dictionary,
    data_source="the processed files of BioSyn (github.com/dmis-lab/BioSyn): 960 queries, 73,024 names",
    licence="public domain (corpus); MEDIC is CTD's, with attribution",
    citation="Doğan, Leaman, Lu 2014, doi:10.1016/j.jbi.2013.12.006; protocol: Sung et al. 2020, ACL, BioSyn; "
    "Liu et al. 2021, NAACL, SapBERT",
    protocol=_BIOSYN_PROTOCOL,
    linker_protocol=_BIOSYN_LINKER_PROTOCOL,
    tie_rule=_TIES,
    linker_tie_rule=LINKER_TIES,
    cutoffs=(1, 5),
    n_queries={"test": 960, "dev": 787},
    n_names={"test": 73_024, "dev": 72_887},
)
_BC5CDR_DISEASE = BenchmarkTask(
    name="bc5cdr-disease",
    description="BioCreative V CDR corpus, normalisation of given disease mentions to MEDIC",
    splits=("test", "dev"),
    queries=biosyn_queries,
    dictionary=biosyn_dictionary,
    data_source="the processed files of BioSyn (github.com/dmis-lab/BioSyn), folder bc5cdr-disease",
    licence="NCBI's public domain notice (corpus); MEDIC is CTD's, with attribution",
    citation="Li et al. 2016, doi:10.1093/database/baw068; protocol: Sung et al. 2020, ACL, BioSyn",
    protocol=_BIOSYN_PROTOCOL,
    linker_protocol=_BIOSYN_LINKER_PROTOCOL,
    tie_rule=_TIES,
    linker_tie_rule=LINKER_TIES,
    cutoffs=(1, 5),
    n_queries={"dev": 4178},
    n_names={"dev": 72_636},
)
_FOLDS = range(askapatient.N_FOLDS)
_FOLD_QUERIES = (867, 867, 866, 866, 866, 866, 866, 866, 866, 866)
_FOLD_VALIDATION_QUERIES = (845, 826, 758, 786, 828, 783, 748, 799, 811, 742)
_ASKAPATIENT_QUERIES = {
    "test": sum(_FOLD_QUERIES),
    "validation": sum(_FOLD_VALIDATION_QUERIES),
    **{f"fold-{fold}": _FOLD_QUERIES[fold] for fold in _FOLDS},
    **{f"fold-{fold}-validation": _FOLD_VALIDATION_QUERIES[fold] for fold in _FOLDS},
}
_ASKAPATIENT = BenchmarkTask(
    name="askapatient",
    description="AskAPatient: what patients write of drugs, to 1,036 concepts of SNOMED CT and AMT",
    splits=tuple(_ASKAPATIENT_QUERIES),
    queries=askapatient_queries,
    dictionary=askapatient_dictionary,
    data_source="https://doi.org/10.5281/zenodo.55013: AskAPatient.fold-0.train.txt ... fold-9.test.txt",
    licence="CC BY 4.0",
    citation="Limsopatham and Collier 2016, ACL, doi:10.18653/v1/P16-1096",
    protocol="askapatient: the dictionary is one name for each of the concepts of the corpus; names and mentions are "
    "prepared as in the encoder's training; names are ranked by cosine similarity; a mention is right at k when one of "
    "the k best names is its concept's. The test parts of the ten folds are put together, each mention as often as it "
    "occurs. They share most of their mentions with the validation parts of other folds; fold-K and fold-K-validation "
    "are of one fold, for what was trained and chosen on the rest of it",
    linker_protocol="linker: concepts of the linker's own terminology are ranked. Not comparable with the "
    "published figures",
    tie_rule="of equal scores the concept with the smaller code (as text) comes first",
    linker_tie_rule=LINKER_TIES,
    cutoffs=(1, 5),
    n_queries=_ASKAPATIENT_QUERIES,
    n_names=dict.fromkeys(_ASKAPATIENT_QUERIES, askapatient.N_CONCEPTS),
)

OWN = "own"
"""Name of the benchmark of one's own mentions (`onoma.benchmarks.own`)."""
TASKS: dict[str, BenchmarkTask] = {task.name: task for task in (_NCBI_DISEASE, _BC5CDR_DISEASE, _ASKAPATIENT)}
"""All benchmarks by name."""


def get_task(name: str) -> BenchmarkTask:
    """The declaration of a benchmark.

    Raises:
        ConfigError: there is none of this name; the message lists them.

    Example:
        >>> get_task("ncbi-disease").cutoffs
        (1, 5)
    """
    if one_of(name, sorted([*TASKS, OWN]), "benchmark") == OWN:
        raise ConfigError(
            "task own has no files of its own: use onoma benchmark run own --data FILE, or in Python own_task(...)."
        )
    return TASKS[name]
