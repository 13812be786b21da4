"""Codes that are written as one: ``D001|D002`` of an annotation, or of a concept that two vocabularies share.

A user's own code may have a ``|`` as well (``K|1171``). So a label that is the code of a concept as it stands means
that concept; only others are several codes.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

NO_CONCEPT = ("NIL", "CUI-less", "-1", "0")
"""What stands for "no such concept" among annotated mentions, unless a concept is called so; OMOP and Usagi write 0."""


def split_codes(codes: str) -> list[str]:
    """Each code once, in the order they are written; blank ones are none."""
    return list(dict.fromkeys(code for part in codes.split("|") if (code := part.strip())))


def codes_of_concept(concept_id: str) -> set[str]:
    """By which a concept is meant: its own, and, of ``a|b``, each of the two."""
    return {concept_id, *split_codes(concept_id)}


def meant_codes(label: str, concept_ids: Container[str]) -> list[str]:
    """The codes that a label means.

    Args:
        label: Of an annotated mention.
        concept_ids: Of all concepts.

    Example:
        >>> meant_codes("D001|D002", {"D001", "D002"}), meant_codes("K|1171", {"K|1171", "K|1172"})
        (['D001', 'D002'], ['K|1171'])
    """
    return [label.strip()] if "|" in label and label.strip() in concept_ids else split_codes(label)


def digits_of(code: str) -> str:
    """The digits of a code in their order of size, without zeros.

    A misspelt code has those of the one that is meant; one with other digits is that of another concept.
    """
    return "".join(sorted(re.sub("[^1-9]", "", code)))


def other_forms(codes: Iterable[str], concept_ids: Iterable[str]) -> dict[str, str]:
    """Codes of no concept that are those of one in another form, and these.

    What may differ: case, a prefix that one of the two lacks or that is an address, ``_`` for ``:``, dots that one of
    them lacks, and zeros before a number, which spreadsheets lose; and ``.0`` behind a number, if all numbers have it,
    as pandas writes a column with empty cells. Of several concepts the one is meant that differs in least; if they are
    equal in that, none.

    Example:
        >>> other_forms(["1013750", "mesh:d1", "E119", "77"], ["01013750", "D1", "E11.9", "88"])
        {'1013750': '01013750', 'E119': 'E11.9', 'mesh:d1': 'D1'}
    """
    wanted: dict[str, dict[str, tuple[str, str]]] = {}
    distinct = sorted(set(codes))
    are_floats = all(code.endswith(".0") for code in distinct if re.fullmatch(r"[0-9.]+", code))
    for code in distinct:
        prefix, core = _form(code)
        wanted.setdefault(_bare(core), {})[code] = prefix, core
        if are_floats and re.fullmatch(r"[0-9]+\.0", code):
            whole = code.removesuffix(".0")
            wanted.setdefault(_bare(whole), {})[code] = prefix, whole
    if not wanted:
        return {}
    found: dict[str, tuple[int, str | None]] = {}
    for one in concept_ids:
        prefix, core = _form(one)
        for code, (its_prefix, its_core) in wanted.get(_bare(core), {}).items():
            is_other_prefix = prefix != its_prefix
            has_other_dots = ("." in core) != ("." in its_core)
            is_another = (is_other_prefix and prefix and its_prefix) or (
                "." in core and "." in its_core and core.lstrip("0") != its_core.lstrip("0")
            )
            n_differences = is_other_prefix + has_other_dots + (core.replace(".", "") != its_core.replace(".", ""))
            if code == one:
                found[code] = -1, None
            elif not is_another and (code not in found or n_differences < found[code][0]):
                found[code] = n_differences, one
            elif not is_another and n_differences == found[code][0]:
                found[code] = n_differences, None
    return {code: one for code, (_, one) in sorted(found.items()) if one is not None}


def _form(code: str) -> tuple[str, str]:
    """The prefix of a code, which may be blank, and what stands behind it, both as they are compared."""
    code = code.strip().casefold()
    if "://" in code:
        code = re.split("[/#]", code)[-1]
    prefix, _, core = code.replace("_", ":", 1).rpartition(":")
    return prefix, core


def _bare(core: str) -> str:
    """Without dots, and of a number without zeros at the front."""
    core = core.replace(".", "")
    return core.lstrip("0") or "0" if core.isdecimal() else core


def other_forms_in_words(found: Mapping[str, str], *, where: str) -> str:
    """What is to be said of codes that `other_forms` found, at least one.

    Args:
        found: The codes.
        where: Their concepts are, such as "the linker".
    """
    code, one = next(iter(found.items()))
    lost = " (spreadsheets lose zeros at the front)" if code.isdecimal() and one.isdecimal() else ""
    if code.endswith(".0") and one.lstrip("0") == code.removesuffix(".0").lstrip("0"):
        lost = " (the codes were read as numbers, as pandas does: read them as text)"
    have = "has" if len(found) == 1 else "have"
    return f"{len(found):,} of their codes {have} another form in {where}: {code} is {one} there{lost}"
