"""FHIR resources in JSON, XML and NDJSON, by themselves or in a Bundle, as places and values of JSON.

FHIR says for each element how it is written in JSON (https://hl7.org/fhir/R4/json.html) and XML
(https://hl7.org/fhir/R4/xml.html); what is read here of XML is given as it would stand in JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onoma.files.archives import SourceFile, files_opened
from onoma.files.json_stream import JsonValue, Place, json_values
from onoma.files.reading import Reading
from onoma.files.text_files import read_bytes
from onoma.files.xml_files import Element, line_of, with_root, xml_elements, xml_root

CONCEPTS = {"CodeSystem": ("concept",), "ValueSet": ("expansion", "contains")}
"""Where a resource has its concepts; within a concept others stand under the last of these names."""
_KINDS = (*CONCEPTS, "Bundle")
_HEAD = frozenset(
    {
        *("resourceType", "id", "url", "version", "name", "title", "language", "copyright", "issue"),
        *("content", "supplements", "hierarchyMeaning", "property", "count"),
    }
)
"""What is kept of a resource besides its concepts; ``issue`` is what a server says that could not answer."""
_XML = "{http://hl7.org/fhir}"
_LISTS = frozenset({"concept", "contains", "designation", "property", "parameter", "issue"})
"""Elements of these names are a list in JSON, even if there is one; others that are lists are not read."""
_TRUTH_VALUES = frozenset({"valueBoolean", "inactive", "abstract"})


@dataclass
class Resource:
    """A resource, of which the concepts were passed.

    Attributes:
        file: That it is in.
        place: In the file; () if the file is it.
        line: Where it begins, or its first member.
        members: What it says of itself.
        expansion: Of a value set: what stands beside the concepts.
        n_concepts: With all within others.
        systems: Code systems of an expansion, and the first version of each.
        n_of: How many concepts it has of each.
    """

    file: SourceFile
    place: Place
    line: int
    members: dict[str, Any] = field(default_factory=dict)
    expansion: dict[str, Any] = field(default_factory=dict)
    n_concepts: int = 0
    systems: dict[str, str] = field(default_factory=dict)
    n_of: Counter[str] = field(default_factory=Counter)

    @property
    def kind(self) -> str:
        """Its type; "" if it has none."""
        return self.text("resourceType")

    def text(self, member: str) -> str:
        """A member that is text; "" if it is not there or something else."""
        value = self.members.get(member)
        return " ".join(value.split()) if isinstance(value, str) else ""

    def concepts(self, reading: Reading) -> Iterator[JsonValue]:
        """Its outermost concepts.

        Raises:
            InputError: as `onoma.files.json_stream.json_values`.
        """
        where = CONCEPTS[self.kind]
        for value in _values(self.file, reading):
            place, rest = _parted(value.place)
            if place == self.place and rest[: len(where)] == where:
                yield value


@contextmanager
def files_of(source: Path) -> Iterator[Sequence[SourceFile]]:
    """The files of a source that may be resources: of a folder, a zip or tar archive, or the one file.

    Raises:
        InputError: there is nothing at ``source``, or it is an archive that cannot be read or trusted.
    """
    with files_opened(source) as files:
        if len(files) == 1 and not source.is_dir():
            yield files
        else:
            endings = tuple(ending + gz for ending in (".json", ".xml", ".ndjson", ".jsonl") for gz in ("", ".gz"))
            is_index = ("package.json", ".index.json", ".index.db")
            yield [file for file in files if file.base.lower().endswith(endings) and file.base.lower() not in is_index]


def resources_of(file: SourceFile, reading: Reading, *, is_single: bool) -> list[Resource]:
    """All resources of a file, without their concepts.

    Args:
        file: JSON, NDJSON (by its name) or XML, plain or gzip.
        reading: Told of the progress.
        is_single: Whether it was named, so that XML of another kind is an error.

    Raises:
        InputError: it cannot be read.
    """
    if not is_single and _is_xml(file) and not _is_fhir(xml_root(file).root):
        return []
    found: dict[Place, Resource] = {}
    for value in _values(file, Reading(progress=reading.progress)):
        place, rest = _parted(value.place)
        resource = found.setdefault(place, Resource(file, place, value.line))
        if rest[:1] == ("concept",):
            resource.n_concepts += _count(value.value, "concept")
        elif rest[:2] == ("expansion", "contains"):
            resource.n_concepts += _count(value.value, "contains")
            _add_systems(value.value, resource)
        elif rest[:1] == ("expansion",) and len(rest) == 2:
            resource.expansion[str(rest[1])] = value.value
        elif len(rest) == 1 and rest[0] in _HEAD:
            resource.members[str(rest[0])] = value.value
    return list(found.values())


def _is_fhir(root: str) -> bool:
    return root in {_XML + kind for kind in _KINDS}


def _parted(place: Place) -> tuple[Place, Place]:
    """The place of a resource, and that of a value in it: a line of NDJSON and an entry of a Bundle lead to one."""
    begin = 1 if place and isinstance(place[0], int) else 0
    if place[begin : begin + 1] == ("entry",) and place[begin + 2 : begin + 3] == ("resource",):
        begin += 3
    return place[:begin], place[begin:]


def _is_value(place: Place) -> bool:
    _, rest = _parted(place)
    match rest:
        case ():
            return False
        case ("entry", *others):
            return len(others) == 2
        case ("concept", *others):
            return len(others) == 1
        case ("expansion", *others):
            return len(others) == (2 if others[:1] == ["contains"] else 1)
    return True


def _values(file: SourceFile, reading: Reading) -> Iterator[JsonValue]:
    if _is_xml(file):
        yield from _xml_values(file, reading)
    else:
        is_lines = file.base.lower().removesuffix(".gz").endswith((".ndjson", ".jsonl"))
        yield from json_values(file, reading, depth=_is_value, has_several=is_lines)


def _is_xml(file: SourceFile) -> bool:
    block = next(read_bytes(file, block_bytes=1 << 10))
    return block.data.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1] == b"<"


def _xml_values(file: SourceFile, reading: Reading) -> Iterator[JsonValue]:
    root = with_root(file, [_XML + kind for kind in _KINDS]).root
    tag = _XML + "resource" if root == _XML + "Bundle" else root
    too_large = "XML of FHIR is read up to this size: get it as JSON (Accept: application/fhir+json)"
    for number, element in enumerate(xml_elements(file, tag, reading, if_too_large=too_large)):
        if tag == root:
            yield from _resource_values(element, ())
        elif len(element):
            yield from _resource_values(element[0], ("entry", number, "resource"))
    if tag != root:
        yield JsonValue(("resourceType",), 1, "Bundle")


def _resource_values(resource: Element, place: Place) -> Iterator[JsonValue]:
    yield JsonValue((*place, "resourceType"), line_of(resource) or 1, _local(resource))
    for name, children in _by_name(resource):
        if name == "concept":
            yield from _numbered((*place, name), children)
        elif name == "expansion":
            for inner, within in _by_name(children[0]):
                if inner == "contains":
                    yield from _numbered((*place, name, inner), within)
                else:
                    yield JsonValue((*place, name, inner), line_of(within[0]) or 1, _as_in_json(inner, within))
        elif name in _HEAD:
            yield JsonValue((*place, name), line_of(children[0]) or 1, _as_in_json(name, children))


def _numbered(place: Place, elements: Sequence[Element]) -> Iterator[JsonValue]:
    for number, element in enumerate(elements):
        yield JsonValue((*place, number), line_of(element) or 1, _json_of(element))


def _by_name(element: Element) -> list[tuple[str, list[Element]]]:
    """The elements in one, those of the same name together."""
    found: dict[str, list[Element]] = {}
    for child in element:
        found.setdefault(_local(child), []).append(child)
    return list(found.items())


def _as_in_json(name: str, elements: Sequence[Element]) -> Any:
    return [_json_of(one) for one in elements] if name in _LISTS else _json_of(elements[0])


def _json_of(element: Element) -> Any:
    value = element.get("value")
    if value is not None:
        is_truth_value = _local(element) in _TRUTH_VALUES
        return {"true": True, "false": False}.get(value, value) if is_truth_value else value
    return {name: _as_in_json(name, children) for name, children in _by_name(element)}


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _all_within(value: Any, name: str) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            inner = one.get(name)
            waiting += inner if isinstance(inner, list) else []


def _count(value: Any, name: str) -> int:
    """How many concepts; what is none counts too, so that it is read and told of."""
    if not isinstance(value, dict):
        return value is not None
    return sum(1 for _ in _all_within(value, name))


def _add_systems(value: Any, resource: Resource) -> None:
    for one in _all_within(value, "contains"):
        system, version = one.get("system"), one.get("version")
        if isinstance(system, str):
            resource.systems.setdefault(system, version if isinstance(version, str) else "")
            resource.n_of[system] += 1
