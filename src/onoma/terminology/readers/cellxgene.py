"""Ontologies in the package ``cellxgene-ontology-guide``: zstd-compressed JSON, in dated releases.

A file is one JSON object that maps term ids to terms:

=================  ===============================================================================================
key                becomes
=================  ===============================================================================================
label              the preferred name; a retired code may have none
synonyms           names of term type "exact_synonym" (the package has exact synonyms only)
description        a definition
deprecated         status "obsolete"
replaced_by        ``replaced_by``
consider           a relation "consider"
ancestors          {id: distance}; those at distance 1 are the parents: relation "is_a"
=================  ===============================================================================================

Terms that an ontology borrows from another (ids with another prefix) are left out unless ``foreign=yes``.

Source: https://github.com/chanzuckerberg/cellxgene-ontology-guide
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from onoma.errors import InputError, did_you_mean, missing_extra
from onoma.files.reading import Reading
from onoma.files.text_files import check_is_file
from onoma.terminology.assembly import SourceTables
from onoma.terminology.iris import OBO, code_maker
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import OntologyTerm, Synonym, source_of, tables_from_terms
from onoma.terminology.readers.options import ReaderOptions

PACKAGE = "cellxgene_ontology_guide"
MAX_BYTES = 4 << 30
"""Of a file once decompressed; the largest in the bundle (NCBITaxon) has 0.9 GB."""
_PIECE_BYTES = 1 << 12
"""Of compressed data at a time: some hundred MB at most once decompressed."""

_CODE_OF = code_maker()
_FILE_NAME = re.compile(r"(?P<ontology>.+)-ontology-(?P<version>.+)\.json\.zst")


class CellxgeneOptions(ReaderOptions):
    """Options of the cellxgene reader."""

    foreign: bool = Field(default=False, description="keep terms borrowed from other ontologies too (yes or no)")


def read_cellxgene(source: str, options: CellxgeneOptions, reading: Reading) -> SourceTables:
    """Read an ontology of the bundle.

    Args:
        source: "MONDO" (the newest release), "MONDO@v2025-09-02", or the path of such a file.
        options: What to keep.
        reading: Where bad terms go.

    Raises:
        UnavailableError: the package is needed and not installed.
        InputError: no such ontology or release; the file is damaged; under "strict" also a bad term.
    """
    path = locate(source)
    reading.files.append(path)
    reading.tell(0, None, path.name)
    content = _load(path, reading)
    terms = _terms(content, path, options, reading)
    return tables_from_terms(terms, path=path, language="en", reading=reading)


def locate(source: str) -> Path:
    """The file that a source means.

    Raises:
        UnavailableError: a name is given and the package is not installed.
        InputError: no such file, ontology or release.
    """
    if source.endswith((".json", ".zst")) or "/" in source:
        check_is_file(Path(source))
        return Path(source)
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise missing_extra("cellxgene-ontology-guide", "ontologies", f"The ontology {source}")
    ontology, _, version = source.partition("@")
    releases: dict[str, dict[str, Path]] = {}
    for file in Path(spec.submodule_search_locations[0], "data").glob("*-ontology-*.json.zst"):
        match = _FILE_NAME.fullmatch(file.name)
        if match:
            releases.setdefault(match["ontology"], {})[match["version"]] = file
    by_lower = {name.lower(): name for name in releases}
    if ontology.lower() not in by_lower:
        raise InputError(
            f"the package has no ontology '{source}'.{did_you_mean(ontology.upper(), releases)}".rstrip("."),
            field="source",
            expected=f"a file, or one of {', '.join(sorted(releases))}",
        )
    versions = releases[by_lower[ontology.lower()]]
    if not version:
        return versions[max(versions, key=_version_key)]
    wanted = version if version in versions else f"v{version}"
    if wanted not in versions:
        raise InputError(
            f"the package has no release '{version}' of {by_lower[ontology.lower()]}",
            field="source",
            expected=f"one of {', '.join(sorted(versions, key=_version_key))}",
        )
    return versions[wanted]


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _terms(content: dict[str, Any], path: Path, options: CellxgeneOptions, reading: Reading) -> Iterator[OntologyTerm]:
    own = Counter(map(source_of, content)).most_common(1)[0][0]
    n_foreign = 0
    for done, (term_id, entry) in enumerate(content.items()):
        if not options.foreign and source_of(term_id) != own:
            n_foreign += 1
            continue
        problem = _entry_problem(entry)
        if problem:
            reading.reject(problem, path=path, text=f"{term_id}: {json.dumps(entry)}", expected="a term of the bundle")
            continue
        term = OntologyTerm(term_id, is_obsolete=entry.get("deprecated", False))
        term.labels = [label] if (label := entry["label"].strip()) else []
        term.synonyms = [Synonym(text.strip(), "exact_synonym") for text in entry.get("synonyms", ())]
        term.definition = (entry.get("description") or "").strip()
        term.replaced_by = [entry["replaced_by"]] if entry.get("replaced_by") else []
        term.relations = [
            ("is_a", parent) for parent, distance in (entry.get("ancestors") or {}).items() if distance == 1
        ]
        term.relations += [("consider", _code(other)) for other in entry.get("consider", ())]
        yield term
        reading.tell(done, len(content), path.name)
    reading.note("terms of other ontologies, left out", n_foreign)


def _code(reference: str) -> str:
    """The code in a reference: for MONDO:0021094 some have obo.MONDO_0021094, or its IRI."""
    return _CODE_OF(re.sub(r"^obo\.", OBO, reference))


def _entry_problem(entry: object) -> str | None:
    if not isinstance(entry, dict):
        return "a term that is no object"
    checks: tuple[tuple[str, type], ...] = (
        ("deprecated", bool),
        ("description", str),
        ("replaced_by", str),
        ("ancestors", dict),
    )
    if not isinstance(entry.get("label"), str):
        return "a term without a label"
    for key, wanted in checks:
        if entry.get(key) is not None and not isinstance(entry[key], wanted):
            return f"a term whose {key} is not of type {wanted.__name__}"
    for key in ("synonyms", "consider"):
        if not isinstance(entry.get(key, []), list) or not all(isinstance(text, str) for text in entry.get(key, [])):
            return f"a term whose {key} are not texts"
    return None


def _load(path: Path, reading: Reading) -> dict[str, Any]:
    data = _decompressed(path)
    repeated: list[str] = []

    def gather(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        gathered = dict(pairs)
        if len(gathered) != len(pairs):
            repeated.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        if pairs and all(type(value) is int for value in gathered.values()):
            # Ancestors: only the parents are wanted, and the others are most of a large file.
            return {key: value for key, value in gathered.items() if value == 1}
        return gathered

    try:
        content = json.loads(data.decode(), object_pairs_hook=gather)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8", path=path, line=line, fix="get the file again") from None
    except (json.JSONDecodeError, RecursionError) as error:
        where = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise InputError(f"not JSON, or cut off ({error})", path=path, line=where, fix="get the file again") from None
    if not isinstance(content, dict) or not content:
        raise InputError("there is no term in it", path=path, expected="a JSON object, term id to term")
    for key in repeated:
        reading.reject("an id or key that occurs twice", path=path, text=key, field="id", fix="get the file again")
    return content


def _decompressed(path: Path) -> bytes:
    import zstandard

    data = path.read_bytes()
    try:
        if data.startswith(b"\x28\xb5\x2f\xfd"):
            decompressor = zstandard.ZstdDecompressor().decompressobj()
            pieces = (data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES))
            unpacked = bytearray()
            for piece in pieces:
                unpacked += decompressor.decompress(piece)
                if len(unpacked) > MAX_BYTES or decompressor.eof:
                    break
            else:
                raise InputError("the zstd file is cut off", path=path, fix="get the file again")
            data = bytes(unpacked)
        elif data.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as handle:
                data = handle.read(MAX_BYTES + 1)
    except (zstandard.ZstdError, EOFError, OSError, zlib.error) as error:
        raise InputError(f"the file is damaged ({error})", path=path, fix="get the file again") from None
    if not data:
        raise InputError("the file is empty", path=path, fix="get the file again")
    if len(data) > MAX_BYTES:
        raise InputError(
            f"the file has more than {MAX_BYTES:,} bytes once decompressed (a bomb?)",
            path=path,
            fix="get the file from its publisher",
        )
    return data.removeprefix(b"\xef\xbb\xbf")


FORMAT = Format(
    name="cellxgene",
    description="dated releases of MONDO, Uberon, CL, EFO, ... in the package cellxgene-ontology-guide",
    source="a name (MONDO: the newest release; MONDO@v2025-09-02: a dated one), or a .json.zst file of the package",
    obtain="pip install 'onoma[ontologies]'; no download besides the package",
    licence="each ontology's own (MONDO, CL: CC BY 4.0; Uberon: CC BY 3.0)",
    options=CellxgeneOptions,
    read=read_cellxgene,
)
