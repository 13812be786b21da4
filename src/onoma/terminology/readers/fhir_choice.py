"""Which code system of a source of FHIR resources is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onoma.errors import InputError, did_you_mean
from onoma.files.json_stream import shown_json
from onoma.quantities import quantity
from onoma.terminology.readers.fhir_resources import Resource

_MOST_LISTED = 6
"""As an error shows not more than some hundred characters of what it expected."""


@dataclass
class Chosen:
    """What is read.

    Attributes:
        parts: A code system; or the pages of an expansion.
        system: Of an expansion: the code system of the concepts; else "".
        supplements: Of the code system.
        n_left_out: Supplements of other versions of it.
    """

    parts: list[Resource]
    system: str = ""
    supplements: list[Resource] = field(default_factory=list)
    n_left_out: int = 0

    @property
    def first(self) -> Resource:
        """Which speaks for all parts."""
        return self.parts[0]

    @property
    def url(self) -> str:
        """Of the code system."""
        supplemented = self.first.text("supplements") if self.first.text("content") == "supplement" else ""
        return self.system or supplemented.partition("|")[0] or self.first.text("url")

    @property
    def version(self) -> str:
        """Of the code system."""
        return self.first.systems.get(self.system, "") if self.system else self.first.text("version")

    def names(self) -> set[str]:
        """By which option ``code_system`` may call it."""
        found = {self.first.text(member) for member in ("url", "id", "name")} | {self.url}
        versions = {self.first.text("version"), self.version} - {""}
        return (found | {f"{url}|{version}" for url in (self.first.text("url"), self.url) for version in versions}) - {
            ""
        }

    def __str__(self) -> str:
        what = "|".join(filter(None, (self.first.text("url") or self.first.text("id"), self.first.text("version"))))
        of_system = f" (codes of {self.system})" if self.system else ""
        n_concepts = sum(part.n_of[self.system] if self.system else part.n_concepts for part in self.parts)
        return f"{what or self.first.file.name}{of_system}, {quantity(n_concepts, 'concept')}"


def choose(resources: Sequence[Resource], path: Path, wanted: str) -> Chosen:
    """The code system that option ``code_system`` names, or the only one.

    Args:
        resources: All of the source.
        path: Of the source, for errors.
        wanted: The option; "": not set.

    Raises:
        InputError: there is none with concepts, none of this name, or there are several.
    """
    systems = [one for one in resources if one.kind == "CodeSystem"]
    full = [Chosen([one]) for one in systems if one.n_concepts and one.text("content") != "supplement"]
    supplements = [Chosen([one]) for one in systems if one.n_concepts and one.text("content") == "supplement"]
    kinds = (full, _expansions(resources), supplements)
    if wanted:
        named = [[one for one in those if wanted in one.names()] for those in kinds]
        if not any(named):
            raise _nothing_named(wanted, kinds, systems, path)
        kinds = (named[0], named[1], named[2])
    candidates = next((those for those in kinds if those), [])
    if not candidates:
        raise _nothing_in(resources, path)
    if len(candidates) > 1:
        raise _several(candidates, path)
    chosen = candidates[0]
    if chosen.first.text("content") == "supplement":
        return chosen
    of_it = [one.first for one in supplements if one.url == chosen.url]
    fitting = [one for one in of_it if one.text("supplements").partition("|")[2] in {"", chosen.version}]
    return replace(chosen, supplements=fitting, n_left_out=len(of_it) - len(fitting))


def _several(candidates: Sequence[Chosen], path: Path) -> InputError:
    times = Counter(name for one in candidates for name in one.names())
    own = [[name for name in one.names() if times[name] == 1] for one in candidates]
    told = next((min(names, key=_by_use) for names in own if names), None)
    fix = f"say which, e.g. --set code_system='{told}'" if told else "name the file of one of them"
    return InputError(
        f"there are {len(candidates):,} code systems here",
        path=path,
        field="code_system",
        expected=f"one of them: {_listed(candidates)}",
        fix=fix,
    )


def _nothing_named(
    wanted: str, kinds: Sequence[Sequence[Chosen]], systems: Sequence[Resource], path: Path
) -> InputError:
    every = [one for those in kinds for one in those]
    without = [one for one in systems if wanted in Chosen([one]).names()]
    if without or not every:
        return _nothing_in(without or systems, path)
    hint = did_you_mean(wanted, sorted({name for one in every for name in one.names()}))
    return InputError(
        f"there is no code system '{wanted}' with concepts here.{hint}".rstrip("."),
        path=path,
        field="code_system",
        expected=f"one of them: {_listed(every)}",
    )


def _by_use(name: str) -> tuple[bool, int, str]:
    """URLs first, which say most, and of these the short ones."""
    return ("://" not in name and not name.startswith("urn:"), len(name), name)


def _expansions(resources: Sequence[Resource]) -> list[Chosen]:
    """Expanded value sets, the pages of one together, for each code system that they have codes of."""
    found: dict[tuple[str, ...], Chosen] = {}
    for one in resources:
        if one.kind == "ValueSet" and one.n_concepts:
            what = [one.text("url"), one.text("version")] if one.text("url") else [str(one.file.path), str(one.place)]
            for system in one.systems or {"": ""}:
                found.setdefault((*what, system), Chosen([], system)).parts.append(one)
    return list(found.values())


def _listed(those: Sequence[Chosen]) -> str:
    more = f"; and {len(those) - _MOST_LISTED:,} more" if len(those) > _MOST_LISTED else ""
    return "; ".join(map(str, those[:_MOST_LISTED])) + more


def _nothing_in(resources: Sequence[Resource], path: Path) -> InputError:
    """Why there is no concept to read."""
    by_kind: dict[str, Resource] = {}
    for one in resources:
        by_kind.setdefault(one.kind, one)
    expected = "a CodeSystem with concepts, or a ValueSet with an expansion"
    other_forms = (
        "get its content from its publisher (in a format of its own), or an expansion of it from a terminology"
    )
    first = by_kind.get("CodeSystem")
    if first is not None and first.text("content") == "not-present":
        problem = "the code system is published without its concepts (content: not-present)"
        fix = f"{other_forms} server (ValueSet/$expand)"
    elif first is not None:
        problem, fix = "the code system has no concepts", "if a server gave a summary, ask it for all (_summary=false)"
    elif "ValueSet" in by_kind:
        first = by_kind["ValueSet"]
        problem = "the value set only says which codes belong to it: it has no expansion with concepts"
        fix = "get it expanded from a terminology server (ValueSet/$expand), or import the CodeSystem it is made of"
    elif "OperationOutcome" in by_kind:
        first = by_kind["OperationOutcome"]
        problem, fix = "this is what a server answers instead of what it was asked for", "ask it again"
        return InputError(
            problem, path=first.file.path, line=first.line, found=shown_json(first.members.get("issue")), fix=fix
        )
    else:
        kinds = [kind for kind in by_kind if kind not in {"", "Bundle"}]
        first = next(iter(by_kind.values()), None)
        problem = (
            f"there is no code system in it, but {', '.join(kinds[:5])}" if kinds else "there is no FHIR code system"
        )
        fix = "name the file of a CodeSystem" if kinds else "check that this is FHIR: a resource says its resourceType"
    return InputError(
        problem, path=first.file.path if len(resources) == 1 and first else path, expected=expected, fix=fix
    )
