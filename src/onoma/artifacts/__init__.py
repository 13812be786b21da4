"""Artefact folders: written under a temporary name, checked, renamed into place; opened only if complete.

Every step of Onoma writes a folder that the next one opens. Such a folder contains ``onoma.json``, its manifest: what
kind of thing it is, the version of its format, the size and SHA-256 of every file, what it was made from (parents, by
fingerprint), with which settings and seed.

The manifest is the last file written before the folder is renamed into place, so a process killed at any moment leaves
either the old folder or the new one. Its unfinished work is in a hidden ``.NAME.partial-…``, which nothing opens, and
which the next write to the same place removes once no process holds it (`onoma.artifacts.locking`). (A folder that is
being replaced is moved aside first; if the process dies just then, the next look at the place puts it back.)
"""

from onoma.artifacts.amending import amend_artifact, changed_meanwhile, telling_of_changes
from onoma.artifacts.files import copy_files, holds, is_same, sha256_file, write_file, write_text_atomically
from onoma.artifacts.manifest import (
    CARD_NAME,
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    Parent,
    is_still,
    open_artifact,
    read_manifest,
    read_while_unchanged,
    verify_artifact,
)
from onoma.artifacts.origins import (
    carried_origins,
    licence_in_words,
    manifests_within,
    origins_in_rows,
    origins_of,
    restrictions_in_words,
    without_origins,
)
from onoma.artifacts.unfinished import leftovers, remove_leftovers, remove_spent
from onoma.artifacts.writing import (
    ensure_file_writable,
    ensure_named,
    ensure_outside,
    ensure_plain_name,
    ensure_writable,
    write_artifact,
)

__all__ = [
    "CARD_NAME",
    "MANIFEST_NAME",
    "FileEntry",
    "Manifest",
    "Parent",
    "amend_artifact",
    "carried_origins",
    "changed_meanwhile",
    "copy_files",
    "ensure_file_writable",
    "ensure_named",
    "ensure_outside",
    "ensure_plain_name",
    "ensure_writable",
    "holds",
    "is_same",
    "is_still",
    "leftovers",
    "licence_in_words",
    "manifests_within",
    "open_artifact",
    "origins_in_rows",
    "origins_of",
    "read_manifest",
    "read_while_unchanged",
    "remove_leftovers",
    "remove_spent",
    "restrictions_in_words",
    "sha256_file",
    "telling_of_changes",
    "verify_artifact",
    "without_origins",
    "write_artifact",
    "write_file",
    "write_text_atomically",
]
