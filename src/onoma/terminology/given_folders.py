"""Several folders of terminologies that are given at once: their names and places, and what is said of single ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from onoma.errors import ConfigError, InputError, checked_path, did_you_mean
from onoma.terminology.terminology import Terminology


def paths_of(terminologies: Sequence[Terminology | str | Path]) -> list[Path]:
    """Their folders, as given."""
    return [given.path if isinstance(given, Terminology) else checked_path(given) for given in terminologies]


def check_places(paths: Sequence[Path], out: Path) -> None:
    """Refuse a folder that is given twice, and a place for the result inside of one.

    Raises:
        InputError: it is so.
    """
    seen: set[Path] = set()
    for path in paths:
        place = path.resolve()
        if place in seen:
            raise InputError("this folder is given twice", path=path, fix="give each terminology once")
        seen.add(place)
    for path in paths:
        if path.is_dir() and out.resolve().is_relative_to(path.resolve()):
            raise InputError(
                "the new terminology cannot lie where one of its parts lies", path=out, fix="choose another place"
            )


def by_folder(given: Mapping[str, str], paths: Sequence[Path], what: str) -> dict[Path, str]:
    """Settings of single terminologies by their folder; a folder goes by its name, or by its path as given.

    Raises:
        ConfigError: a name is of none or of several, or the setting is blank; ``what`` it is called.
    """
    if not isinstance(given, Mapping) or not all(isinstance(value, str) for value in given.values()):
        raise ConfigError(
            f'What each terminology has of {what} is a mapping of names to text, e.g. {{"mine": "MINE"}}.'
        )
    found = {}
    for name, value in given.items():
        meant = [path for path in paths if name in {str(path), folder_name(path)}]
        if not meant:
            names = [folder_name(path) for path in paths]
            raise ConfigError(
                f"There is no terminology '{name}' to give a {what}.{did_you_mean(name, names)} "
                f"There are: {', '.join(names)}."
            )
        if len(meant) > 1:
            raise ConfigError(f"Several terminologies are called '{name}'; give the {what} by the path of the folder.")
        if not value.strip():
            raise ConfigError(f"The {what} of '{name}' is blank.")
        if meant[0] in found:
            raise ConfigError(f"The terminology '{name}' is given two of: {what}.")
        found[meant[0]] = value
    return found


def vocabularies_by_folder(given: Mapping[str, str], paths: Sequence[Path]) -> dict[Path, str]:
    """The same of vocabularies, whose prefix may be written with its colon ("MESH:") or without."""
    return by_folder({name: value.strip().removesuffix(":") for name, value in given.items()}, paths, "vocabulary")


def folder_name(folder: Path) -> str:
    """What a folder is called: the same for the same terminology wherever it lies."""
    return folder.resolve().name
