"""FHIR code systems: the little ontology of `sample` as a CodeSystem in JSON and XML, an expansion, and a package."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sample import DEFINITION, NAMES, Sample, write_text

_TYPES = {"semantic_types": "kind"}


def designation(value: str, language: str | None = None, use: str | None = None, display: str | None = None) -> Any:
    told = {"language": language, "use": use and {"system": "http://x.org", "code": use, "display": display}}
    return {**{name: one for name, one in told.items() if one}, "value": value}


def concept(code: str, display: str | None, *inner: Any, **members: Any) -> dict[str, Any]:
    said = {"code": code, "display": display, **members, "concept": list(inner)}
    return {name: value for name, value in said.items() if value not in (None, [])}


def code_system(*concepts: Any, **members: Any) -> dict[str, Any]:
    head = {"resourceType": "CodeSystem", "url": "http://x.org/cs", "name": "X", "language": "en"}
    return {**head, "status": "active", "content": "complete", **members, "concept": list(concepts)}


def value_set(*contains: Any, **expansion: Any) -> dict[str, Any]:
    return {
        "resourceType": "ValueSet",
        "url": "http://x.org/vs",
        "expansion": {**expansion, "contains": list(contains)},
    }


def properties(**values: Any) -> list[dict[str, Any]]:
    """Each by its name, ``__`` and the kind of its value."""
    return [{"code": name.split("__")[0], f"value{name.split('__')[1]}": value} for name, value in values.items()]


def write_tar(path: Path, files: Mapping[str, bytes], mode: Any = "w:gz") -> str:
    with tarfile.open(path, mode) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return str(path)


_KIND = properties(kind__String="disease")
CONTENT = code_system(
    concept(
        "X:1",
        NAMES["X:1"][0],
        definition=DEFINITION,
        designation=[designation(name) for name in NAMES["X:1"][1:]],
        property=[*_KIND, *properties(parent__Code="X:2")],
    ),
    concept("X:2", NAMES["X:2"][0], designation=[designation(NAMES["X:2"][1])], property=_KIND),
    concept("X:3", NAMES["X:3"][0], designation=[designation(NAMES["X:3"][1], "ja")], property=_KIND),
    concept(
        "X:4",
        "obsolete coronary",
        property=[*_KIND, *properties(status__Code="retired", replacedBy__Code="X:1")],
    ),
    version="2026-01",
    copyright="(c) X",
)
JSON = json.dumps(CONTENT, ensure_ascii=False, indent=1)
NDJSON = "".join(
    json.dumps(one, ensure_ascii=False) + "\n" for one in ({"resourceType": "Patient", "id": "somebody"}, CONTENT)
)
XML = """\
<?xml version="1.0" encoding="UTF-8"?>
<CodeSystem xmlns="http://hl7.org/fhir">
<url value="http://x.org/cs"/><version value="2026-01"/><name value="X"/><copyright value="(c) X"/>
<content value="complete"/><property><code value="oberklasse"/>
<uri value="http://hl7.org/fhir/concept-properties#parent"/><type value="code"/></property>
<concept><code value="X:1"/><display value="Heart attack"/>
<definition value="Death of &quot;heart&quot; muscle."/>
<designation><language value="en"/><value value="Myocardial infarction"/></designation>
<designation><value value="MI"/></designation>
<property><code value="oberklasse"/><valueCode value="X:2"/></property>
<property><code value="kind"/><valueString value="disease"/></property></concept>
<concept><code value="X:2"/><display value="Heart disease"/><designation><value value="Cardiopathy"/></designation>
<property><code value="kind"/><valueString value="disease"/></property></concept>
<concept><code value="X:3"/><display value="Ménière's &quot;vertigo&quot; #2"/>
<designation><language value="ja"/><value value="メニエール病"/></designation>
<property><code value="kind"/><valueString value="disease"/></property></concept>
<concept><code value="X:4"/><display value="obsolete coronary"/>
<property><code value="inactive"/><valueBoolean value="true"/></property>
<property><code value="replacedBy"/><valueCode value="X:1"/></property>
<property><code value="kind"/><valueString value="disease"/></property></concept>
</CodeSystem>
"""
_FIRST = {**concept("X:1", NAMES["X:1"][0], designation=[designation(name) for name in NAMES["X:1"][1:]])}
_EXPANSION = value_set(
    {
        **concept("X:2", NAMES["X:2"][0], designation=[designation(NAMES["X:2"][1])]),
        "system": "http://x.org/cs",
        "contains": [{**_FIRST, "system": "http://x.org/cs"}],
    },
    {
        **concept("X:3", NAMES["X:3"][0], designation=[designation(NAMES["X:3"][1], "ja")]),
        "system": "http://x.org/cs",
    },
    parameter=[{"name": "displayLanguage", "valueCode": "en"}],
)


def _write_package(folder: Path) -> str:
    others = {
        "package/package.json": {"name": "x.codes", "version": "1.0.0"},
        "package/.index.json": {"files": []},
        "package/StructureDefinition-x.json": {"resourceType": "StructureDefinition", "id": "x"},
        "package/CodeSystem-other.json": code_system(concept("a", "b"), url="http://x.org/other"),
        "package/CodeSystem-x.json": CONTENT,
    }
    return write_tar(folder / "package.tgz", {name: json.dumps(one).encode() for name, one in others.items()})


SAMPLES = {
    "fhir": Sample("fhir", write_text("x.json", JSON), _TYPES, "x.json", 12, True, True, True, is_document=True),
    "fhir-xml": Sample("fhir", write_text("x.xml", XML), _TYPES, has_relations=True, has_types=True, has_obsolete=True),
    "fhir-ndjson": Sample(
        "fhir", write_text("x.ndjson", NDJSON), _TYPES, "x.ndjson", 2, True, True, True, is_document=True
    ),
    "fhir-expansion": Sample(
        "fhir",
        write_text("expansion.json", json.dumps(_EXPANSION)),
        has_relations=True,
        has_definitions=False,
        order=("X:2", "X:1", "X:3"),
    ),
    "fhir-package": Sample(
        "fhir",
        _write_package,
        {**_TYPES, "code_system": "http://x.org/cs"},
        has_relations=True,
        has_types=True,
        has_obsolete=True,
    ),
}
