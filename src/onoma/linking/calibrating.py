"""Learn how far to trust answers, and how to fuse searches, without annotated mentions: from a linker's own names.

Some names are hidden and linked as if they were mentions; what they are names of is the right answer. A tenth as many
that are not hidden show how far a name that is found by look-up can be trusted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from onoma.artifacts import amend_artifact, ensure_writable, read_manifest
from onoma.errors import InputError, whole_number
from onoma.indexes.pgvector_replacing import drop_unfinished
from onoma.linking.calibration import MIN_OF_EACH, Method, check_method
from onoma.linking.development import MIN_MENTIONS, Development, label_mentions
from onoma.linking.dictionary import NameDictionary
from onoma.linking.folder import ENCODER_FOLDER, FORMAT_VERSION, KIND, is_of_earlier_release
from onoma.linking.fusion import learn_weights
from onoma.linking.linker import Linker
from onoma.linking.settings import SEARCHES, LinkerSettings, Stage
from onoma.linking.trials import Accuracies, CalibrationReport, Trial, Wish
from onoma.randomness import random_from
from onoma.types import CountProgress, RowArray

N_NAMES = 2000
_SHOWN_SHARE = 0.1
"""Names that are not hidden for each that is; see EXPERIMENTS.md."""
_LEFT = 2
"""Names that a concept keeps at least."""
_N_FOLDS = 5


@dataclass(frozen=True)
class NamesReport:
    """What a linker's own names showed.

    Attributes:
        stages: Those that are on, for which confidences were learned.
        n_hidden: Names that were hidden and linked, each of another concept.
        n_shown: Names that were linked and not hidden.
        hidden: How many of the hidden names were answered rightly.
        weights: Of two searches that are on, if they were learned now.
        hidden_by_ranks: How many were answered rightly by reciprocal ranks; unset without ``weights``.
        calibration: How well confidences hold on names that they were not learned from, hidden and shown.
        no_concept_below: Confidence that an answer now needs, if a precision was requested.
        had_calibration: Whether the linker had other confidences before.
        without_contexts: Whether a cross-encoder that is on reads contexts, of which names have none.
        trained_on_names: Whether the encoder was trained on this very terminology: it has learned the hidden names too,
            so that confidences are too high.
    """

    stages: tuple[Stage, ...]
    n_hidden: int
    n_shown: int
    hidden: Accuracies
    weights: dict[Stage, float] | None
    hidden_by_ranks: Accuracies | None
    calibration: CalibrationReport
    no_concept_below: float | None
    had_calibration: bool
    without_contexts: bool
    trained_on_names: bool


def calibrate_linker(
    linker: str | Path,
    *,
    n_names: int = N_NAMES,
    seed: int = 0,
    method: Method = "platt",
    wished_precision: float | None = None,
    certainty: float | None = None,
    database: str | None = None,
    progress: CountProgress | None = None,
) -> NamesReport:
    """Learn confidences from a linker's own names and write them to its folder.

    Where two searches are on, and no cross-encoder, their weights are learned too, unless these are the encoder's or
    from annotated mentions. What was learned from annotated mentions stays, confidences aside.

    Hidden are synonyms of concepts that keep two other names, at most one of each concept, never the preferred name,
    another concept's name, or a broad, narrow or related synonym.

    Args:
        linker: The folder.
        n_names: How many names to hide; fewer if the linker has fewer that can be hidden.
        seed: Of the choice.
        method: See `onoma.linking.calibration.Calibration.fit`.
        wished_precision: As in `onoma.linking.tune_linker`, of names: other mentions may have a lower one.
        certainty: See there.
        database: For a linker with its vectors in PostgreSQL, see `Linker.open`.
        progress: Called with the numbers of names linked so far and in all.

    Raises:
        InputError: a number is not allowed; or too few names can be hidden, or too few are answered rightly, or
            wrongly, to say anything; or no confidence reaches the precision.
        ConfigError: an option has a value that is not allowed.
        ArtifactError: the folder is not a linker, is damaged, or was changed by another process meanwhile.
        OnomaError: the linker cannot be opened, see `Linker.open`.
    """
    wish = Wish.of(wished_precision, certainty)
    check_method(method)
    n_names = whole_number(n_names, "n_names", "not a possible number of names", least=MIN_MENTIONS)
    opened = Linker.open(linker, database=database)
    ensure_writable(linker, KIND, overwrite=True)
    dictionary = opened.dictionary
    hidden, shown = _choose(dictionary, n_names, random_from(seed))
    knowing_less = opened.without(dictionary.entry_name_rows[hidden])
    settings = opened.settings.replaced(calibration=None, calibrated_stages=(), no_concept_below=None)
    development = label_mentions(knowing_less, _as_mentions(dictionary, np.concatenate([hidden, shown])), _N_FOLDS)
    tuning = opened.manifest.config.get("tuning", {})
    learns_weights = _may_learn_weights(settings, tuning)
    if learns_weights:
        settings = settings.replaced(weights=None)
    trial = Trial(knowing_less, development, progress, n_runs=2 if learns_weights else 1)
    outcomes = by_ranks = trial.outcomes(settings)
    if learns_weights:
        settings = settings.replaced(weights=learn_weights(trial.pools(by_ranks)))
        outcomes = trial.outcomes(settings)
    _, is_right, _ = trial.first_answers(outcomes)
    n_right = int(is_right.sum())
    if min(n_right, len(is_right) - n_right) < MIN_OF_EACH:
        raise InputError(
            "the linker's own names do not show how far its answers can be trusted",
            path=linker,
            expected=f"at least {MIN_OF_EACH} names that are answered rightly, and as many wrongly",
            found=f"{n_right} and {len(is_right) - n_right}",
            fix="hide more names, or learn from annotated mentions (onoma linker tune)",
        )
    calibration, held = trial.calibrated(outcomes, method, wish)
    no_concept_below = None if wish is None else wish.threshold(calibration)
    were_hidden = {dictionary.texts[int(row)] for row in _text_rows(dictionary)[hidden]}
    of_hidden = Development([one for one in development.mentions if one.text in were_hidden], {})
    hidden_alone = Trial(knowing_less, of_hidden, None, n_runs=0)
    report = NamesReport(
        stages=settings.stages,
        n_hidden=len(hidden),
        n_shown=len(shown),
        hidden=hidden_alone.accuracy(outcomes),
        weights=settings.weights if learns_weights else None,
        hidden_by_ranks=hidden_alone.accuracy(by_ranks) if learns_weights else None,
        calibration=held,
        no_concept_below=no_concept_below,
        had_calibration=opened.settings.calibration is not None,
        without_contexts=opened.tuned(settings).reads_contexts,
        trained_on_names="dense" in settings.stages and _is_trained_on_names(opened),
    )
    learned = settings.replaced(
        calibration=calibration.to_json(), calibrated_stages=settings.stages, no_concept_below=no_concept_below
    )
    kept = settings.replaced(weights=None) if learns_weights else settings
    if not is_of_earlier_release(kept, opened.manifest.config):  # no weights that were learned with one stay
        tuning = {key: value for key, value in tuning.items() if key not in ("terminology", "has_other_counts")}
    told = {"calibration": dataclasses.asdict(held), "no_concept_below": no_concept_below, "n_names": len(hidden)}
    of_weights = {"weights": settings.weights} if learns_weights else {}
    drop_unfinished(linker, database)
    config = {"tuning": {**tuning, **told, **of_weights}}
    with amend_artifact(linker, KIND, format_version=FORMAT_VERSION, config=config, expected=opened.manifest) as folder:
        learned.save(folder)
    return report


def _may_learn_weights(settings: LinkerSettings, tuning: Mapping[str, Any]) -> bool:
    """Whether two searches are on, and their weights are neither the encoder's nor from annotated mentions.

    A cross-encoder's share was learned for the scores as they are.
    """
    are_from_names = "n_mentions" not in tuning and settings.weights == tuning.get("weights")
    is_fused = set(SEARCHES) <= set(settings.stages)
    return is_fused and "rerank" not in settings.stages and (settings.weights is None or are_from_names)


def _choose(dictionary: NameDictionary, n_names: int, random: np.random.Generator) -> tuple[RowArray, RowArray]:
    """Entries to hide, each of another concept, and others that stay.

    Raises:
        InputError: too few can be hidden.
    """
    concepts, is_unique = dictionary.entry_concepts, np.diff(dictionary.entry_offsets)[_text_rows(dictionary)] == 1
    n_texts = np.bincount(concepts, minlength=dictionary.n_concepts)
    can = is_unique & ~dictionary.entry_is_preferred & (n_texts[concepts] > _LEFT)
    if dictionary.entry_is_other_scope is not None:
        can &= ~dictionary.entry_is_other_scope
    shuffled = random.permutation(np.flatnonzero(can))
    _, first = np.unique(concepts[shuffled], return_index=True)
    if len(first) < MIN_MENTIONS:
        raise InputError(
            "the linker has too few names that could be hidden",
            expected=f"at least {MIN_MENTIONS} concepts with more than {_LEFT} names, and one of these neither "
            "preferred nor another concept's",
            found=str(len(first)),
            fix="learn from annotated mentions (onoma linker tune), or add synonyms (onoma terminology enrich)",
        )
    hidden = np.sort(random.permutation(shuffled[first])[:n_names])
    left = np.delete(np.arange(len(concepts)), hidden)
    return hidden, random.choice(left, max(1, int(len(hidden) * _SHOWN_SHARE)), replace=False)


def _is_trained_on_names(linker: Linker) -> bool:
    """Whether its encoder was trained on the terminology that it links to, in this release."""
    seen = read_manifest(linker.path / ENCODER_FOLDER).config.get("terminology", ())
    return any(parent.kind == "terminology" and parent.fingerprint in seen for parent in linker.manifest.parents)


def _text_rows(dictionary: NameDictionary) -> RowArray:
    """Row of the text of each entry, shape (E,)."""
    return np.repeat(np.arange(dictionary.n_texts), np.diff(dictionary.entry_offsets))


def _as_mentions(dictionary: NameDictionary, entries: RowArray) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "mention": [dictionary.entry_names[int(entry)] for entry in entries],
            "concept_id": [dictionary.concept_ids[int(dictionary.entry_concepts[entry])] for entry in entries],
        }
    )
