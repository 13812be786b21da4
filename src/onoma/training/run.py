"""Train an encoder from a terminology, or from pairs of any origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from onoma.artifacts import verify_artifact
from onoma.encoders import locate_tokenizer
from onoma.errors import ConfigError, MismatchError, check_several, checked_path
from onoma.pairs import MentionFormat, PairSet, build_pairs, hold_out_synonyms
from onoma.terminology import Terminology
from onoma.terminology.name_rows import checked_name_rows
from onoma.terminology.terminology import as_terminology
from onoma.training.alignment import check_concepts, train_encoder
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.alignment_step import StepReport
from onoma.training.checkpoints import CHECKPOINT_NAME
from onoma.training.development import HIDDEN, DevelopmentSet, hidden_synonyms, read_development
from onoma.training.distributed import barrier, by_main, is_main, processes
from onoma.training.evaluating import GIVE_WITH_TERMINOLOGY, HIDE_OR_GIVE, check_development
from onoma.training.report import TrainingReport
from onoma.training.run_folder import check_settings, claimed_run, ensure_encoder_writable
from onoma.training.tuning import check_base
from onoma.training.watching import Watching, check_watching
from onoma.types import RowArray, Tell


def train_on_terminology(
    recipe: Recipe | TrainingConfig | str,
    terminology: Terminology | str | Path,
    out: str | Path,
    *,
    hidden_names: RowArray | None = None,
    names_left_out: RowArray | None = None,
    development_synonyms: int = 0,
    development: Sequence[str | Path] = (),
    development_terminology: Terminology | str | Path | None = None,
    mention_format: MentionFormat | None = None,
    pairs_folder: str | Path | None = None,
    overwrite: bool = False,
    **watching: Unpack[Watching[StepReport]],
) -> TrainingReport:
    """Train an encoder on the synonyms of a terminology by a recipe.

    Args:
        recipe: What to do: the name or file of a recipe, what `Recipe.load` gives, or settings.
        terminology: A terminology or its folder.
        out: The encoder folder to write. Until it is finished, pairs, checkpoints and log are kept in ``OUT.run``; the
            same call resumes from there.
        hidden_names: Rows of names to leave out of training, e.g. those that will measure it at the end. Measurements
            during training do not have them either.
        names_left_out: Rows of names not to learn from (`onoma.pairs.names_of_mentions`), which may still be found as
            answers.
        development_synonyms: Hide this many further synonyms, and measure during training how many are found among all
            other names. They are the same whatever the recipe's seed, so that runs can be compared.
        development: Files of queries to measure on during training, see `read_development`.
        development_terminology: The terminology whose names these queries are looked for in; unset: the names of
            ``terminology`` that are not hidden.
        mention_format: How these files are written: other columns of those that are tables, or another encoding.
        pairs_folder: Where pairs are read from, or written to and kept; unset: in ``OUT.run``.
        overwrite: Replace an encoder that is there.
        watching: Who follows the run, see `onoma.training.watching.Watching`.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: a setting needs development data and there are none, there is no such tracker, or the base cannot
            be trained or saved with these settings (`onoma.training.tuning.check_base`).
        TrainingError: the device is not there, or the run fails.
        InputError: the terminology has no concept with two names, so many synonyms cannot be hidden, or a file of
            queries cannot be used.
        UnavailableError: the base encoder, or the package of a tracker, is not available.
        MismatchError: ``OUT.run`` holds an unfinished run with other settings.
    """
    recipe = Recipe.of(recipe)
    config = recipe.config
    out = checked_path(out)
    ensure_encoder_writable(out, "encoder", config, overwrite=overwrite)
    check_run(config, development, development_terminology, watching, out=out, hides=development_synonyms > 0)
    with processes(config.device):
        check_base(config)
        tell = by_main(watching.get("on_event"))
        opened = _opened(terminology)
        hidden = checked_name_rows(hidden_names, opened.n_names)
        sets: list[DevelopmentSet] = []
        if development_synonyms:
            held_out = hold_out_synonyms(
                opened,
                n_names=development_synonyms,
                normalisation=config.normalisation,
                languages=config.languages,
                hidden_names=hidden,
            )
            hidden = np.union1d(hidden, held_out.name_rows)
            sets.append(hidden_synonyms(opened, held_out, languages=config.languages, hidden_names=hidden))
        if development_terminology is None:
            sets += _read(development, opened, config, mention_format, hidden_names=hidden, tell=tell)
        else:
            sets += _read(development, _opened(development_terminology), config, mention_format, tell=tell)
        with claimed_run(out, config) as run:  # before pairs are made in it, which another run may be reading
            folder = Path(pairs_folder) if pairs_folder is not None else run / "pairs"
            if is_main():
                check_settings(run, config)
                build_pairs(
                    opened,
                    locate_tokenizer(config.base),
                    folder,
                    max_tokens=config.max_tokens,
                    normalisation=config.normalisation,
                    max_pairs_per_concept=config.max_pairs_per_concept,
                    languages=config.languages,
                    include_suppressed=config.include_suppressed,
                    ambiguous=config.ambiguous,
                    hidden_names=np.union1d(hidden, checked_name_rows(names_left_out, opened.n_names)),
                    seed=config.seed,
                    reuse=True,
                    part_of=run if pairs_folder is None else None,
                    overwrite=pairs_folder is None and not (run / CHECKPOINT_NAME).exists(),
                    progress=watching.get("progress"),
                )
            barrier()
            pairs = PairSet.open(folder)
            check_concepts(pairs, opened.path)
            return train_encoder(
                recipe,
                pairs,
                out,
                development=sets,
                overwrite=overwrite,
                **watching,
            )


def train_on_pairs(
    recipe: Recipe | TrainingConfig | str,
    pairs: PairSet | str | Path,
    out: str | Path,
    *,
    development: Sequence[str | Path] = (),
    development_terminology: Terminology | str | Path | None = None,
    mention_format: MentionFormat | None = None,
    overwrite: bool = False,
    **watching: Unpack[Watching[StepReport]],
) -> TrainingReport:
    """Train an encoder on pairs that were made before: from mentions, from translations, or merged.

    Args:
        recipe: What to do: the name or file of a recipe, what `Recipe.load` gives, or settings. The pairs determine how
            names are prepared, and the recipe must agree; its `SETTINGS_OF_PAIRS` have no effect, except that
            development queries are looked for among the names in its ``languages``.
        pairs: A pair set or its folder.
        out: As in `train_on_terminology`.
        development: Files of queries to measure on during training, see `read_development`.
        development_terminology: The terminology whose names these queries are looked for in.
        mention_format: As in `train_on_terminology`.
        overwrite: Replace an encoder that is there.
        watching: Who follows the run, see `onoma.training.watching.Watching`.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: there are queries and no terminology to look for them in, or a setting needs queries and there are
            none, there is no such tracker, or the base cannot be trained or saved with these settings.
        TrainingError: the device is not there, or the run fails.
        InputError: a file of queries cannot be used.
        MismatchError: the pairs were made with another normalisation, length or tokeniser than the recipe's, or
            ``OUT.run`` holds an unfinished run with other settings.
        UnavailableError: the base encoder, or the package of a tracker, is not available.
    """
    recipe = Recipe.of(recipe)
    config = recipe.config
    ensure_encoder_writable(Path(out), "encoder", config, overwrite=overwrite)
    check_run(config, development, development_terminology, watching, out=Path(out), on_pairs=True)
    opened = pairs if isinstance(pairs, PairSet) else PairSet.open(pairs)
    verify_artifact(opened.path)
    made = opened.manifest.config
    for key in ("normalisation", "max_tokens"):
        if made[key] != getattr(config, key):
            raise MismatchError(
                f"{opened.path} was made with {key} {made[key]}, and the recipe says {getattr(config, key)}. "
                f"Set {key}={made[key]}, or make the pairs again."
            )
    with processes(config.device):
        check_base(config)
        tell = by_main(watching.get("on_event"))
        sets: list[DevelopmentSet] = []
        if development_terminology is not None:
            sets = _read(development, _opened(development_terminology), config, mention_format, tell=tell)
        return train_encoder(
            recipe,
            opened,
            out,
            development=sets,
            overwrite=overwrite,
            **watching,
        )


def check_run(
    config: TrainingConfig,
    development: Sequence[str | Path],
    development_terminology: Terminology | str | Path | None,
    watching: Mapping[str, Any],
    *,
    out: Path | None = None,
    hides: bool = False,
    on_pairs: bool = False,
) -> None:
    """Refuse what cannot be, before pairs are made for minutes.

    Args:
        config: Settings of the run.
        development: As in `train_on_terminology`.
        development_terminology: As there.
        watching: As there.
        out: The encoder folder to be written, if that is known.
        hides: Synonyms are hidden to measure on.
        on_pairs: Trained on pairs that were made before.

    Raises:
        ConfigError: the settings do not go together, or there is no such tracker, or it keeps its own at ``out``.
        UnavailableError: the package of a tracker is not to be had.
    """
    check_watching(watching, out)
    check_several(development, "development")
    if development_terminology is not None and not development:
        raise ConfigError("development_terminology is where development files are looked for, and there are none.")
    check_development(
        config,
        [*([HIDDEN] if hides else []), *(Path(file).name for file in development)],
        fix=GIVE_WITH_TERMINOLOGY if on_pairs else HIDE_OR_GIVE,
    )
    if on_pairs and development and development_terminology is None:
        raise ConfigError(
            "pairs do not say which names a concept has: give the terminology to look for the queries in "
            "(development_terminology, --development-terminology DIR)."
        )


def _opened(terminology: Terminology | str | Path) -> Terminology:
    opened = as_terminology(terminology)
    verify_artifact(opened.path)
    return opened


def _read(
    files: Sequence[str | Path],
    terminology: Terminology,
    config: TrainingConfig,
    mention_format: MentionFormat | None,
    *,
    hidden_names: RowArray | None = None,
    tell: Tell,
) -> list[DevelopmentSet]:
    return [
        read_development(
            file,
            terminology,
            languages=config.languages,
            hidden_names=hidden_names,
            mention_format=mention_format,
            tell=tell,
        )
        for file in files
    ]
