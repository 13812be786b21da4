"""Make a pair set from a terminology."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts import carried_origins, ensure_writable
from onoma.encoders.tokens import tokenizer_fingerprint
from onoma.errors import ArtifactError, DamagedArtifactError, InputError, MismatchError, checked_path
from onoma.pairs.languages import check_languages
from onoma.pairs.name_store import own_tokenizer
from onoma.pairs.pair_set import KIND, PairSet, write_pair_set
from onoma.pairs.selection import Ambiguous, rows_fingerprint, training_names
from onoma.pairs.synonyms import synonym_pairs
from onoma.terminology import Terminology
from onoma.terminology.terminology import as_terminology
from onoma.types import Progress


def build_pairs(
    terminology: Terminology | str | Path,
    tokenizer: Tokenizer | str | Path,
    out: str | Path,
    *,
    max_tokens: int = 25,
    normalisation: str = "sapbert",
    max_pairs_per_concept: int = 50,
    languages: Sequence[str] | None = None,
    include_suppressed: bool = False,
    ambiguous: Ambiguous = "mark",
    hidden_names: npt.ArrayLike | None = None,
    seed: int = 0,
    reuse: bool = False,
    part_of: Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> PairSet:
    """Make the synonym pairs of a terminology, tokenise the names, and write both as a folder.

    Args:
        terminology: Its active concepts and names that are not suppressed are used.
        tokenizer: The base encoder's tokeniser or its ``tokenizer.json``.
        out: The folder to write.
        max_tokens: Longest name, special tokens included; longer ones are truncated.
        normalisation: Preset by which names are normalised first, see `onoma.terminology.normalise`.
        max_pairs_per_concept: Random cap, see `synonym_pairs`.
        languages: BCP 47 tags to train on, see `onoma.pairs.languages`. Unset: all.
        include_suppressed: Use suppressed names too, as the papers' preparation of the UMLS did.
        ambiguous: See `training_names`.
        hidden_names: Rows of the terminology's table of names to leave out.
        seed: Of the sample of pairs.
        reuse: Use what is at ``out`` if it was made from the same things with the same settings.
        part_of: The run's folder, which an error names as what to remove.
        overwrite: Replace a pair set that is there.
        progress: Called with (names tokenised, number of names, "tokenising names").

    Raises:
        InputError: no concept has two names to pair, no name is in one of the languages, a hidden name does not exist,
            or the tokeniser is unreadable.
        ConfigError: a setting has a value that is not allowed.
        ArtifactExistsError: ``out`` is taken.
        MismatchError: with ``reuse``, the pair set at ``out`` is another one and may not be replaced.
    """
    out = checked_path(out)
    terminology = as_terminology(terminology)
    own = own_tokenizer(tokenizer)
    config = {
        "tokenizer": tokenizer_fingerprint(own),
        "max_tokens": max_tokens,
        "normalisation": normalisation,
        "max_pairs_per_concept": max_pairs_per_concept,
        "languages": None if languages is None else sorted(languages),
        "include_suppressed": include_suppressed,
        "ambiguous": ambiguous,
        "hidden_names": rows_fingerprint(hidden_names),
    }
    if reuse and out.exists():
        try:
            found = PairSet.open(out)
        except ArtifactError as error:
            if part_of is None:
                raise
            said = str(error).removesuffix(" Make the folder again.")
            raise DamagedArtifactError(f"{said} Remove {part_of} to begin anew.") from None
        differing = _differences(found, terminology, config, seed)
        if not differing:
            return found
        if not overwrite:
            raise MismatchError(
                f"{out} holds pairs made otherwise: {'; '.join(differing)}. "
                "Go on with the old settings, choose another place, or remove "
                f"{'that folder' if part_of is None else f'{part_of} to begin anew'}."
            )
    ensure_writable(out, KIND, overwrite=overwrite)

    check_languages(terminology, languages)
    names = training_names(
        terminology,
        normalisation=normalisation,
        languages=languages,
        include_suppressed=include_suppressed,
        hidden_names=hidden_names,
        ambiguous=ambiguous,
    ).rename({"concept_row": "label"})
    pairs = synonym_pairs(names["label"].to_numpy(), max_per_concept=max_pairs_per_concept, seed=seed)
    if len(pairs) == 0:
        raise _no_pairs(terminology, names, languages, ambiguous)
    return write_pair_set(
        out,
        names,
        pairs,
        own,
        config={**config, **carried_origins(terminology.manifest.config)},
        parents=[terminology.manifest.as_parent()],
        seed=seed,
        overwrite=overwrite,
        progress=progress,
    )


def _differences(found: PairSet, terminology: Terminology, config: dict[str, Any], seed: int) -> list[str]:
    known = {**found.manifest.config, "seed": found.manifest.seed}
    differing = [
        "other names hidden (--hide)" if key == "hidden_names" else f"{key} (there {known.get(key)!r}, now {value!r})"
        for key, value in {**config, "seed": seed}.items()
        if known.get(key) != value
    ]
    if found.manifest.parents != (terminology.manifest.as_parent(),):
        differing.append("another terminology")
    return differing


def _no_pairs(
    terminology: Terminology, names: pl.DataFrame, languages: Sequence[str] | None, ambiguous: Ambiguous
) -> InputError:
    """The error for a terminology without synonyms, with what a person needs to see why."""
    of_languages = f" of the languages {', '.join(languages)}" if languages is not None else ""
    drops = ambiguous == "drop"
    return InputError(
        f"no concept has two names{of_languages}{' that no other concept has' if drops else ''}, "
        "so there are no pairs to train on",
        path=terminology.path,
        expected="active concepts with two or more different names that are not suppressed",
        found=f"{len(names):,} usable names of {names['label'].n_unique():,} concepts",
        fix="import the vocabulary with its synonyms, or widen the filters"
        + (" (ambiguous=mark keeps homonyms, never as negatives of each other)" if drops else ""),
    )
