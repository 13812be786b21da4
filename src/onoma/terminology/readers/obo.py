"""OBO 1.4: the text format of the OBO Foundry, https://owlcollab.github.io/oboformat/doc/obo-syntax.html.

=====================  ===========================================================================================
clause                 becomes
=====================  ===========================================================================================
name                   the preferred name, term type "label"
synonym                a name of term type "exact_synonym", "broad_synonym", ...; option ``scopes`` says which are kept
alt_id                 an obsolete concept without names, replaced by the term (it was merged into it)
is_obsolete            status "obsolete"
replaced_by            ``replaced_by``; from the second on (rare) a relation "replaced_by"
consider               a relation "consider"
is_a, relationship     a relation: term, "is_a" or the relationship's id, the other term
namespace              the semantic type (the header's default-namespace where a term has none)
def                    a definition
=====================  ===========================================================================================

Typedef and Instance frames are no concepts. A term frame without a name that is not obsolete only refers to a term of
another ontology; it is counted and left out. ``source`` is the prefix of the term's id.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from onoma.terminology.assembly import SourceTables
from onoma.terminology.formats import Format
from onoma.terminology.options import ReaderOptions, Words, split_words
from onoma.terminology.readers.ontology import OntologyTerm, tables_from_terms
from onoma.terminology.reading import Reading
from onoma.terminology.text_files import text_lines

Scope = Literal["exact", "narrow", "broad", "related"]
SCOPES = get_args(Scope)


def _scopes(value: Any) -> Any:
    words = split_words(value)
    return SCOPES if words == ("all",) else words


class OboOptions(ReaderOptions):
    """Options of the OBO reader."""

    scopes: Annotated[tuple[Scope, ...], BeforeValidator(_scopes)] = Field(
        default=("exact",),
        description="scopes of synonyms to keep besides labels: exact, narrow, broad, related, or all",
    )
    prefixes: Words = Field(default=(), description="keep only terms with these id prefixes, e.g. HP; empty: all")
    language: str = Field(default="en", description="language of the names (BCP 47); OBO Foundry labels are English")


def read_obo(source: str, options: OboOptions, reading: Reading) -> SourceTables:
    """Read an OBO file.

    Args:
        source: The file, plain or gzip.
        options: What to keep.
        reading: Where bad frames go.

    Raises:
        InputError: no such file, or nothing in it; under "strict" also a frame that is not OBO, an id used twice, a
            blank name.
    """
    path = Path(source)
    lines: list[str] = []
    for _, block in text_lines(path, reading):
        lines += block
    terms = _terms(lines, path, options, reading)
    return tables_from_terms(terms, path=path, language=options.language, reading=reading)


def _terms(lines: list[str], path: Path, options: OboOptions, reading: Reading) -> Iterator[OntologyTerm]:
    import fastobo

    scopes = {scope.upper(): f"{scope}_synonym" for scope in options.scopes}
    line_of = _id_lines(lines)
    n_foreign = 0
    for header, frame in _frames(lines, path, reading):
        if not isinstance(frame, fastobo.term.TermFrame):
            continue
        term_id = _unescaped(frame.id)
        if options.prefixes and term_id.partition(":")[0] not in options.prefixes:
            n_foreign += 1
            continue
        numbers = line_of.get(term_id, [])
        line = numbers.pop(0) if len(numbers) > 1 else (numbers[0] if numbers else None)
        yield _term(frame, term_id, header, scopes, line)
    reading.note("terms with other prefixes, left out", n_foreign)


def _term(frame: Any, term_id: str, header: Any, scopes: dict[str, str], line: int | None) -> OntologyTerm:
    term = OntologyTerm(term_id, line=line)
    namespace = ""
    for clause in frame:
        tag = clause.raw_tag()
        if tag == "name":
            term.labels.append(clause.name.strip())
        elif tag == "synonym":
            term_type = scopes.get(clause.synonym.scope)
            if term_type:
                term.synonyms.append((clause.synonym.desc.strip(), term_type))
        elif tag == "def":
            term.definition = clause.definition.strip()
        elif tag == "namespace":
            namespace = _unescaped(clause.namespace)
        elif tag == "is_obsolete":
            term.is_obsolete = clause.obsolete
        elif tag == "alt_id":
            term.alternative_ids.append(_unescaped(clause.alt_id))
        elif tag == "replaced_by":
            term.replaced_by.append(_unescaped(clause.term))
        elif tag in {"is_a", "consider"}:
            term.relations.append((tag, _unescaped(clause.term)))
        elif tag == "relationship":
            term.relations.append((_unescaped(clause.typedef), _unescaped(clause.term)))
    namespace = namespace or _default_namespace(header)
    if namespace:
        term.semantic_types.append(namespace)
    return term


def _frames(lines: list[str], path: Path, reading: Reading) -> Iterator[tuple[Any, Any]]:
    """(header, frame) for each frame that is OBO; the others are rejected."""
    import fastobo

    document = ("\n".join(lines) + "\n").encode()
    n_frames = sum(1 for line in lines if line.startswith("["))
    try:
        reader = fastobo.iter(io.BytesIO(document), ordered=True)
        header = reader.header()
        frames = []
        for frame in reader:
            frames.append((header, frame))
            reading.tell(len(frames), n_frames, path.name)
    except SyntaxError as error:
        if reading.on_error == "strict":
            _reject_syntax(error, 0, lines, path, reading)
        yield from _frames_one_by_one(lines, path, reading)
    else:
        yield from frames


def _frames_one_by_one(lines: list[str], path: Path, reading: Reading) -> Iterator[tuple[Any, Any]]:
    import fastobo

    header: Any = ()
    starts = [number for number, line in enumerate(lines) if line.startswith("[")]
    for begin, end in itertools.pairwise([0, *starts, len(lines)]):
        try:
            document = fastobo.loads("\n".join(lines[begin:end]) + "\n")
        except SyntaxError as error:
            _reject_syntax(error, begin, lines[:end], path, reading)
            continue
        if begin == 0 and document.header:
            header = document.header
        for frame in document:
            yield header, frame
        reading.tell(begin, len(lines), path.name)


def _reject_syntax(error: SyntaxError, n_before: int, lines: list[str], path: Path, reading: Reading) -> None:
    line = min(n_before + (error.lineno or 1), len(lines))
    reading.reject(
        "this is not OBO; the frame cannot be read",
        path=path,
        line=line,
        text=lines[line - 1],
        expected=str(error.msg).removeprefix("expected "),
    )


def _id_lines(lines: list[str]) -> dict[str, list[int]]:
    """Where each id is given, 1-based; usually once."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        if line.startswith("id:"):
            match = _ID.match(line)
            if match:
                found.setdefault(match[1], []).append(number)
    return found


def _default_namespace(header: Any) -> str:
    for clause in header:
        if clause.raw_tag() == "default-namespace":
            return _unescaped(clause.namespace)
    return ""


def _unescaped(identifier: Any) -> str:
    """An id as its owner writes it; OBO escapes spaces and colons in it."""
    if hasattr(identifier, "prefix"):
        return f"{identifier.prefix}:{identifier.local}"
    return str(getattr(identifier, "unescaped", identifier))


_ID = re.compile(r"id:\s*(\S+)")

FORMAT = Format(
    name="obo",
    description="OBO 1.4, the text format of the OBO Foundry (HPO, MONDO, DOID, GO, Uberon, ChEBI, ...)",
    source="an .obo file, plain or gzip",
    obtain="http://purl.obolibrary.org/obo/NAME.obo, e.g. hp.obo, mondo.obo, doid.obo; overview: https://obofoundry.org",
    licence="each ontology's own (mostly CC BY 4.0 or CC0)",
    options=OboOptions,
    read=read_obo,
)
