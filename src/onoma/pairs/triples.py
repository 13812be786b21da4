"""Relation triples to train on, as CODER does: head concept, relation, tail concept, and the names to sample."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts import Manifest, carried_origins, ensure_writable, open_artifact, write_artifact
from onoma.artifacts.arrays import load_array
from onoma.encoders.tokens import tokenizer_fingerprint
from onoma.errors import DamagedArtifactError, InputError, check_several, checked_path, did_you_mean
from onoma.pairs.labelled_names import counts_in_words, open_labelled_names, write_labelled_names
from onoma.pairs.languages import check_languages
from onoma.pairs.name_store import NameStore, own_tokenizer
from onoma.pairs.selection import Ambiguous, rows_fingerprint, training_names
from onoma.terminology import Terminology
from onoma.terminology.terminology import as_terminology
from onoma.types import Progress, RowArray

KIND = "triples"
FORMAT_VERSION = 1
_VOCABULARY = "vocabulary.json"


@dataclass(frozen=True, slots=True, eq=False)
class TripleSet:
    """Triples, the names of all concepts, their tokens and semantic types; arrays are memory-mapped.

    Concepts are numbered as in the terminology. The names of concept c are rows ``name_offsets[c]`` up to
    ``name_offsets[c + 1]`` of the store; a concept that is retired, or whose names are all left out, has none and
    is in no triple.

    Shapes: T triples, n training names, C concepts.
    """

    path: Path
    manifest: Manifest
    store: NameStore
    """Token ids of the n training names."""
    triples: npt.NDArray[np.int32]
    """Head concept, number of the relation, tail concept, shape (T, 3), each once; "head relation tail" reads as a
    sentence."""
    labels: npt.NDArray[np.int32]
    """Concept of each training name, ascending, shape (n,)."""
    text_labels: npt.NDArray[np.int32] | None
    """As in `PairSet`, shape (n,)."""
    name_offsets: RowArray
    """Where the names of each concept begin and the last one's end, shape (C + 1,)."""
    semantic_types: npt.NDArray[np.int32]
    """Number of each concept's first semantic type, -1 where it has none, shape (C,)."""
    relation_names: tuple[str, ...]
    """What the numbers of relations mean, in alphabetical order."""
    semantic_type_names: tuple[str, ...]
    """What the numbers of semantic types mean, in alphabetical order."""

    def __repr__(self) -> str:
        return f"TripleSet({str(self.path)!r}: {len(self.triples):,} triples, {len(self.store):,} names)"

    @classmethod
    def open(cls, path: str | Path) -> TripleSet:
        """Open what `build_triples` wrote.

        Raises:
            InputError: there is nothing at ``path``.
            ArtifactError: it is not a whole triple set of a format this Onoma reads.
        """
        folder = checked_path(path)
        manifest = open_artifact(folder, KIND, format_version=FORMAT_VERSION, in_full=True)
        store, labels, text_labels = open_labelled_names(folder, manifest)
        triples = load_array(folder / "triples.npy", (np.int32,), 2)
        name_offsets = load_array(folder / "name_offsets.npy", (np.int64,), 1)
        semantic_types = load_array(folder / "semantic_types.npy", (np.int32,), 1)
        if triples.shape[1] != 3 or len(name_offsets) != len(semantic_types) + 1 or name_offsets[-1] != len(store):
            raise DamagedArtifactError(f"{folder}: its arrays do not fit one another. Make it again.")
        vocabulary = json.loads((folder / _VOCABULARY).read_text(encoding="utf-8"))
        return cls(
            path=folder,
            manifest=manifest,
            store=store,
            triples=triples,
            labels=labels,
            text_labels=text_labels,
            name_offsets=name_offsets,
            semantic_types=semantic_types,
            relation_names=tuple(vocabulary["relations"]),
            semantic_type_names=tuple(vocabulary["semantic_types"]),
        )

    @property
    def tokenizer_fingerprint(self) -> str:
        """Of the tokeniser that made the tokens, see `onoma.encoders.tokens.tokenizer_fingerprint`."""
        return str(self.manifest.config["tokenizer"])


def build_triples(
    terminology: Terminology | str | Path,
    tokenizer: Tokenizer | str | Path,
    out: str | Path,
    *,
    max_tokens: int = 25,
    normalisation: str = "sapbert",
    languages: Sequence[str] | None = None,
    relations: Sequence[str] | None = None,
    ambiguous: Ambiguous = "mark",
    hidden_names: npt.ArrayLike | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> TripleSet:
    """Make the triples of a terminology's relations, tokenise the names, and write both as a folder.

    Relations are used in the directions in which the terminology gives them; UMLS gives both ("A isa B" and "B
    inverse_isa A"), most ontologies one. A concept is never related to itself, and a triple that several sources give
    counts once.

    Args:
        terminology: Its active concepts and names that are not suppressed are used, and the relations between concepts
            that have a name left.
        tokenizer: The base encoder's tokeniser or its ``tokenizer.json``.
        out: The folder to write. Its manifest counts the relations (``config["relations_found"]``): in all, of other
            kinds than ``relations``, with a concept without names, from a concept to itself, and repeated.
        max_tokens: Longest name, special tokens included; longer ones are truncated. CODER truncates at 32.
        normalisation: Preset by which names are normalised first; CODER's is "coder".
        languages: BCP 47 tags to train on, see `onoma.pairs.languages`. Unset: all.
        relations: Kinds of relations to use. Unset: all.
        ambiguous: See `training_names`.
        hidden_names: Rows of the terminology's table of names to leave out.
        overwrite: Replace a triple set that is there.
        progress: See `Progress`.

    Raises:
        InputError: no relation is left, or one of ``relations`` does not exist.
        ConfigError: a setting has a value that is not allowed.
        ArtifactExistsError: ``out`` is taken.

    Source:
        CODER (Yuan et al. 2020), section 3.2: triples of MRREL, with names of head, tail and of corrupted tails.
        Its released code takes one semantic type of each concept, the last in the file; here it is the first.
    """
    out = checked_path(out)
    terminology = as_terminology(terminology)
    own = own_tokenizer(tokenizer)
    ensure_writable(out, KIND, overwrite=overwrite)
    check_languages(terminology, languages)
    relation_names = _relation_names(terminology, relations)
    names = training_names(
        terminology,
        normalisation=normalisation,
        languages=languages,
        hidden_names=hidden_names,
        ambiguous=ambiguous,
    ).rename({"concept_row": "label"})
    labels = names["label"].to_numpy()
    name_offsets = np.searchsorted(labels, np.arange(terminology.n_concepts + 1)).astype(np.int64)
    triples, counts = _triples(terminology, relation_names, np.diff(name_offsets) > 0)
    if len(triples) == 0:
        raise InputError(
            "there is no relation to train on",
            path=terminology.path,
            expected="relations between active concepts with names",
            found=counts_in_words(counts),
        )
    semantic_types, semantic_type_names = _semantic_types(terminology)
    with write_artifact(
        out,
        KIND,
        format_version=FORMAT_VERSION,
        config={
            "tokenizer": tokenizer_fingerprint(own),
            "max_tokens": max_tokens,
            "normalisation": normalisation,
            "languages": None if languages is None else sorted(languages),
            "relations": None if relations is None else sorted(relations),
            "ambiguous": ambiguous,
            "hidden_names": rows_fingerprint(hidden_names),
            "relations_found": counts,
            **carried_origins(terminology.manifest.config),
        },
        parents=[terminology.manifest.as_parent()],
        overwrite=overwrite,
    ) as aside:
        np.save(aside / "triples.npy", triples)
        np.save(aside / "name_offsets.npy", name_offsets)
        np.save(aside / "semantic_types.npy", semantic_types)
        vocabulary = {"relations": relation_names, "semantic_types": semantic_type_names}
        (aside / _VOCABULARY).write_text(json.dumps(vocabulary, ensure_ascii=False, indent=1), encoding="utf-8")
        write_labelled_names(
            aside, names, own, max_tokens=max_tokens, mark_equal=ambiguous == "mark", progress=progress
        )
    return TripleSet.open(out)


def _relation_names(terminology: Terminology, wanted: Sequence[str] | None) -> list[str]:
    check_several([] if wanted is None else wanted, "relations")
    known = terminology.relations().select(pl.col("relation").unique().sort()).collect()["relation"].to_list()
    for relation in () if wanted is None else wanted:
        if relation not in known:
            raise InputError(
                f"there is no relation '{relation}'.{did_you_mean(relation, known)}",
                path=terminology.path,
                field="relations",
                expected="some of " + ", ".join(known[:20]) + (" ..." if len(known) > 20 else "")
                if known
                else "a terminology that has relations",
            )
    return known if wanted is None else sorted(set(wanted))


def _triples(
    terminology: Terminology, relation_names: list[str], has_name: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], dict[str, int]]:
    """Distinct triples, sorted, and the counts of what was left out."""
    n_concepts, n_relations = len(has_name), len(relation_names)
    every = (
        terminology.relations()
        .filter(pl.col("relation").is_in(relation_names))
        .select(
            pl.col("head_row", "tail_row").cast(pl.Int64),
            pl.col("relation").cast(pl.Enum(relation_names)).to_physical().cast(pl.Int64),
        )
        .collect(engine="streaming")
    )
    named = pl.Series(has_name)
    between_named = every.filter(named.gather(every["head_row"]) & named.gather(every["tail_row"]))
    # One number for each triple is sorted at once; there is room for 10,000 relations of 30 million concepts.
    kept = between_named.filter(pl.col("head_row") != pl.col("tail_row")).select(
        (pl.col("head_row") * n_relations + pl.col("relation")) * n_concepts + pl.col("tail_row")
    )
    numbers = np.sort(kept.to_series().to_numpy())
    numbers = numbers[np.diff(numbers, prepend=-1) > 0]  # np.unique takes a hundred times as long
    heads_and_relations, tails = np.divmod(numbers, max(n_concepts, 1))
    triples = np.empty((len(numbers), 3), np.int32)
    triples[:, 0], triples[:, 1] = np.divmod(heads_and_relations, max(n_relations, 1))
    triples[:, 2] = tails
    counts = {
        "in_all": terminology.n_relations,
        "of_other_kinds": terminology.n_relations - len(every),
        "without_names": len(every) - len(between_named),
        "to_itself": len(between_named) - len(kept),
        "repeated": len(kept) - len(numbers),
    }
    return triples, counts


def _semantic_types(terminology: Terminology) -> tuple[npt.NDArray[np.int32], list[str]]:
    first = terminology.concepts().select(pl.col("semantic_types").list.first()).collect().to_series()
    known = first.unique().drop_nulls().sort().to_list()
    numbers = first.cast(pl.Enum(known)).to_physical().cast(pl.Int32).fill_null(-1)
    return numbers.to_numpy(), known
