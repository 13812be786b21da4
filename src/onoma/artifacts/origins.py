"""Of which published files and vocabularies a folder was made, under which licences: its *origins*.

An import notes them in its manifest; what is made of terminologies (merged ones, pairs, encoders, linkers, exports)
carries them on under the key ``origins``, so that whoever gets any of these folders can tell what is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onoma.artifacts.manifest import MANIFEST_NAME, Manifest, read_manifest

_OF_AN_IMPORT = ("source", "format", "release", "source_files", "licence", "usual_licence", "source_vocabularies")


def origins_of(*configs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The origins that manifests name, each once.

    Args:
        configs: Of the manifests.

    Returns:
        ``source`` (name of the file or folder that was read), ``format``, ``release`` (as the source itself says it),
        ``source_files`` (name -> SHA-256), ``licence`` (as who imported it said, else as the source itself says),
        ``usual_licence`` (of what is read in this format) and ``source_vocabularies`` (of releases that unite several:
        ``source``, ``name``, ``version``, ``restriction_level``, ``citation``); what is not known is missing, but for
        the level in formats that have one, which is "".
    """
    found: list[dict[str, Any]] = []
    for config in configs:
        own = [{key: config[key] for key in _OF_AN_IMPORT if config.get(key)}] if "source_files" in config else []
        found += [one for one in config.get("origins", own) if one not in found]
    return found


def carried_origins(*configs: Mapping[str, Any]) -> dict[str, Any]:
    """The origins of manifests, as a part of the manifest of what is made of their folders."""
    found = origins_of(*configs)
    return {"origins": found} if found else {}


def without_origins(config: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest's settings, for a manifest that carries their origins for all of its parts together."""
    return {key: value for key, value in config.items() if key != "origins"}


def licence_in_words(origin: Mapping[str, Any]) -> str:
    """The licence, or that nobody said it, and what is usual where that is known."""
    usual = origin.get("usual_licence")
    return str(origin.get("licence") or (f"not said; usually {usual}" if usual else "not said"))


def restrictions_in_words(origins: Iterable[Mapping[str, Any]]) -> str:
    """Which source vocabularies have a level of restriction (SRL) other than 0, or none that is known; "" if none.

    Of formats without levels, such as OMOP's, nothing is told.
    """
    levels: dict[str, str] = {}
    for one in (one for origin in origins for one in origin.get("source_vocabularies", ())):
        if "restriction_level" in one:
            levels[one["source"]] = max(one["restriction_level"], levels.get(one["source"], ""))
    restricted = [f"{source} (level {level})" for source, level in sorted(levels.items()) if level not in {"", "0"}]
    unknown = [source for source, level in sorted(levels.items()) if not level]
    parts = [f"{', '.join(restricted)}: see section 12 of the UMLS licence and its appendices"] if restricted else []
    return "; ".join([*parts, *([f"level not known of {', '.join(unknown)}"] if unknown else [])])


def origins_in_rows(origins: Sequence[Mapping[str, Any]], label: str = "read from") -> list[tuple[str, str]]:
    """Rows of a table for a person: each origin with its licence, and what is restricted."""
    rows = []
    for one in origins:
        release = f", release {one['release']}" if one.get("release") else ""
        rows.append((label, f"{one['source']} ({one['format']}{release}), licence: {licence_in_words(one)}"))
    restricted = restrictions_in_words(origins)
    return [*rows, ("restricted", restricted)] if restricted else rows


def manifests_within(path: Path, manifest: Manifest) -> dict[str, Manifest]:
    """The manifest of a folder, as "", and those of folders in it (a linker's encoder), by name.

    An encoder's adapter is left out: what it learned is what the encoder has learned.
    """
    names = sorted(name for name in manifest.files if name.endswith(f"/{MANIFEST_NAME}"))
    found = {name.rpartition("/")[0]: read_manifest((path / name).parent) for name in names}
    return {"": manifest, **{name: inner for name, inner in found.items() if inner.kind != "adapter"}}
