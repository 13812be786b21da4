"""From a terminology, or from pairs made of whatever, to an encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from onoma.artifacts import ensure_writable, verify_artifact
from onoma.encoders import locate_tokenizer
from onoma.errors import MismatchError
from onoma.pairs import PairSet, build_pairs
from onoma.terminology import Terminology
from onoma.training.checkpoints import CHECKPOINT_NAME
from onoma.training.config import Recipe
from onoma.training.loop import StepReport, TrainingReport, train_encoder
from onoma.training.run_folder import run_folder
from onoma.types import RowArray

SETTINGS_OF_PAIRS = ("languages", "include_suppressed", "max_pairs_per_concept", "ambiguous")
"""Settings of a recipe that say which pairs are made; `train_on_pairs` takes the pairs as they are."""


def train_on_terminology(
    recipe: Recipe,
    terminology: Terminology | str | Path,
    out: str | Path,
    *,
    hidden_names: RowArray | None = None,
    overwrite: bool = False,
    on_step: Callable[[StepReport], None] | None = None,
    on_event: Callable[[str], None] | None = None,
    progress: Callable[..., None] | None = None,
) -> TrainingReport:
    """Train an encoder on the synonyms of a terminology by a recipe.

    Args:
        recipe: See `load_recipe`.
        terminology: A terminology or its folder.
        out: The encoder folder to write. Until it is finished, pairs, checkpoints and log lie in ``OUT.run``;
            the same call goes on from there.
        hidden_names: Rows of names to leave out of training, e.g. those that will measure it.
        overwrite: Replace an encoder that is there.
        on_step: Called after every step.
        on_event: Called with sentences worth telling.
        progress: Called with (done, total, what) while the pairs are made.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        InputError: the terminology has no concept with two names.
        UnavailableError: the base encoder is not to be had.
        MismatchError: ``OUT.run`` holds an unfinished run with other settings.
    """
    config = recipe.config
    out = Path(out)
    ensure_writable(out, "encoder", overwrite=overwrite)
    opened = terminology if isinstance(terminology, Terminology) else Terminology.open(terminology)
    verify_artifact(opened.path)
    tokenizer = locate_tokenizer(config.base)
    pairs = build_pairs(
        opened,
        tokenizer,
        run_folder(out) / "pairs",
        max_tokens=config.max_tokens,
        normalisation=config.normalisation,
        max_pairs_per_concept=config.max_pairs_per_concept,
        languages=config.languages,
        include_suppressed=config.include_suppressed,
        ambiguous=config.ambiguous,
        hidden_names=hidden_names,
        seed=config.seed,
        reuse=True,
        overwrite=not (run_folder(out) / CHECKPOINT_NAME).exists(),
        progress=progress,
    )
    return train_encoder(config, pairs, out, overwrite=overwrite, on_step=on_step, on_event=on_event)


def train_on_pairs(
    recipe: Recipe,
    pairs: PairSet | str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
    on_step: Callable[[StepReport], None] | None = None,
    on_event: Callable[[str], None] | None = None,
) -> TrainingReport:
    """Train an encoder on pairs that were made before: of mentions, of translations, merged ones.

    Args:
        recipe: See `load_recipe`. How names are prepared is a matter of the pairs, and the recipe must agree; what it
            says of `SETTINGS_OF_PAIRS` plays no part.
        pairs: A pair set or its folder.
        out: As in `train_on_terminology`.
        overwrite: Replace an encoder that is there.
        on_step: Called after every step.
        on_event: Called with sentences worth telling.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        MismatchError: the pairs were made with another normalisation, length or tokeniser than the recipe's, or
            ``OUT.run`` holds an unfinished run with other settings.
        UnavailableError: the base encoder is not to be had.
    """
    opened = pairs if isinstance(pairs, PairSet) else PairSet.open(pairs)
    verify_artifact(opened.path)
    made = opened.manifest.config
    for key in ("normalisation", "max_tokens"):
        if made[key] != getattr(recipe.config, key):
            raise MismatchError(
                f"{opened.path} was made with {key} {made[key]}, and the recipe says {getattr(recipe.config, key)}. "
                f"Set {key}={made[key]}, or make the pairs again."
            )
    return train_encoder(recipe.config, opened, out, overwrite=overwrite, on_step=on_step, on_event=on_event)
