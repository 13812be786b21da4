"""Merge several pair sets into one, to train on them together: synonyms with mentions, or with translations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onoma.artifacts import Parent, carried_origins, ensure_writable, without_origins, write_artifact
from onoma.errors import InputError, MismatchError, check_several
from onoma.pairs.labelled_names import merge_labelled_names
from onoma.pairs.pair_set import FORMAT_VERSION, KIND, PairSet
from onoma.terminology.tables import KIND as TERMINOLOGY

_ALIKE = ("tokenizer", "max_tokens", "normalisation")


def merge_pairs(sets: Sequence[PairSet | str | Path], out: str | Path, *, overwrite: bool = False) -> PairSet:
    """Merge pair sets: all names, all pairs.

    Sets made from one terminology share its concepts, so that a mention and the synonyms of its concept are of one
    class. Classes of other sets stay separate. If equal names are marked, they are marked across the sets: here texts
    are equal if their tokens are, which is all that an encoder sees of them. (They are compared by hashes of 64 bits;
    among 17 million names, two different ones are taken for equal once in 100,000 merges.)

    Args:
        sets: Two or more, or their folders; none of them merged before.
        out: The folder to write.
        overwrite: Replace a pair set that is there.

    Raises:
        InputError: fewer than two sets, one that was merged before, or one that ``out`` is in.
        MismatchError: made with different tokenisers, lengths or normalisation, or some marked and some not.
        ArtifactExistsError: ``out`` is taken.
    """
    check_several(sets, "sets")
    opened = [given if isinstance(given, PairSet) else PairSet.open(given) for given in sets]
    _check_mergeable(opened)
    for one in opened:
        if Path(out).resolve().is_relative_to(one.path.resolve()):
            raise InputError(
                "the merged pairs cannot lie where one of their parts lies", path=Path(out), fix="choose another place"
            )
    ensure_writable(out, KIND, overwrite=overwrite)
    row_offsets = np.cumsum([0, *(len(one.store) for one in opened)])
    parents = {parent: None for one in opened for parent in one.manifest.parents if parent.kind == TERMINOLOGY}
    settings = {key: opened[0].manifest.config[key] for key in _ALIKE}
    with write_artifact(
        out,
        KIND,
        format_version=FORMAT_VERSION,
        config={
            **settings,
            "merged": [without_origins(one.manifest.config) for one in opened],
            **carried_origins(*(one.manifest.config for one in opened)),
        },
        parents=[*parents, *(one.manifest.as_parent() for one in opened)],
        overwrite=overwrite,
    ) as aside:
        shifted = [one.pairs + np.int32(offset) for one, offset in zip(opened, row_offsets, strict=False)]
        np.save(aside / "pairs.npy", np.concatenate(shifted))
        merge_labelled_names(
            aside,
            [one.store for one in opened],
            _labels(opened),
            mark_equal=opened[0].text_labels is not None,
        )
    return PairSet.open(out)


def _check_mergeable(sets: Sequence[PairSet]) -> None:
    if len(sets) < 2:
        raise InputError("there is nothing to merge", expected="two pair sets or more", found=str(len(sets)))
    first = sets[0]
    for one in sets:
        if "merged" in one.manifest.config:
            raise InputError("this pair set was merged before", path=one.path, fix="merge all sets at once")
        for key in _ALIKE:
            if one.manifest.config[key] != first.manifest.config[key]:
                raise MismatchError(
                    f"{one.path} was made with another {key} than {first.path} ({one.manifest.config[key]} against "
                    f"{first.manifest.config[key]}): one encoder cannot learn from both. Make one of them again."
                )
        if (one.text_labels is None) != (first.text_labels is None):
            raise MismatchError(
                f"equal names are marked in only one of {first.path} and {one.path}. "
                "Make both with the same setting of 'ambiguous'."
            )


def _labels(sets: Sequence[PairSet]) -> npt.NDArray[np.int32]:
    """Classes of all names: shared by sets of one terminology, shifted past each other for the rest."""
    offsets: dict[Parent | int, int] = {}
    n_classes, shifted = 0, []
    for number, one in enumerate(sets):
        key = next((parent for parent in one.manifest.parents if parent.kind == TERMINOLOGY), number)
        own = [other for other in sets if key in other.manifest.parents] or [one]
        if key not in offsets:
            offsets[key] = n_classes
            n_classes += max(int(other.labels.max()) for other in own) + 1
        shifted.append(one.labels + np.int32(offsets[key]))
    return np.concatenate(shifted)
