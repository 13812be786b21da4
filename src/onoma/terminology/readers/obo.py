"""OBO 1.4: the text format of the OBO Foundry, https://owlcollab.github.io/oboformat/doc/obo-syntax.html.

=====================  ===========================================================================================
clause                 becomes
=====================  ===========================================================================================
name                   the preferred name, term type "label"
synonym                a name of term type "exact_synonym", "broad_synonym", ...; with a synonym type,
                       "exact_synonym/abbreviation", ...; option ``scopes`` says which are kept. One without a scope
                       (OBO 1.2 allows that) counts as RELATED. The older tags of OBO 1.2 mean the same as today's:
                       exact_synonym, narrow_synonym, ..., xref_analog, xref_unknown, use_term (consider)
alt_id                 an obsolete concept without names, replaced by the term (it was merged into it)
is_obsolete            status "obsolete"
replaced_by            ``replaced_by``, as does ``property_value: IAO:0100001`` (term replaced by). Several that do not
                       lead to one concept are choices, each a relation "consider", and counted (if all are outside
                       the file, the first is taken)
consider               a relation "consider"
is_a, relationship     a relation: the term, "is_a" or the relationship's id, the other term. Counted and left out if a
                       qualifier says that not every instance of the term need have it: only some (gci_filler), if at
                       all then only to such terms (all_only), none or perhaps none (maxCardinality, cardinality 0)
equivalent_to          a relation "equivalent_to"; a cross-reference "exactMatch" if the other is no concept here
xref                   a cross-reference: exactMatch, broadMatch, narrowMatch or relatedMatch if the qualifier
                       ``source`` (MONDO:equivalentTo, skos:narrowMatch) or the header (treat-xrefs-as-equivalent,
                       -is_a, -has-subclass) says so, else "xref"
property_value         skos:exactMatch, closeMatch, ...: cross-references; IAO:0000118 (alternative term),
                       skos:altLabel, EFO:alternative_term: a name, as an exact synonym; skos:hiddenLabel: as a related
                       one. Of the others, only IAO:0100001 is read
namespace              the semantic type (for a term without one, the header's default-namespace)
def                    a definition
=====================  ===========================================================================================

Typedef and Instance frames are not concepts. A term frame that has no name and is not obsolete mostly refers to a term
of another ontology; it is counted and left out. ``source`` is the prefix of the term's id. Comments (``!``), escapes
and trailing qualifiers are read as the specification says. Releases contain clauses that are not valid OBO. They are
counted and skipped if nothing is read from them, and so are invalid references after a text; blanks in namespaces are
read as if they were escaped. Any other invalid clause is an error; with ``--on-error skip``, it is rejected alone, or
with its frame if it is the id, the name or is_obsolete.

Not read: ``intersection_of``, ``union_of``, ``disjoint_from``, ``subset``, ``comment``, the references of definitions
and synonyms, and what the header imports (which is counted). The header gives the ontology's release
(``data-version``, ``property_value: owl:versionInfo``) and licence (``property_value: dcterms:license``).
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.byte_order_marks import without_byte_order_mark
from onoma.files.reading import Reading
from onoma.files.text_files import (
    marked_lines,
    only_file,
    read_blocks,
    read_bytes,
    reject_line,
)
from onoma.terminology.assembly import SourceTables
from onoma.terminology.iris import code_maker, mapping_relation, relation_name, scope_of_values, synonym_type
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import (
    XREF,
    OntologyOptions,
    OntologyTerm,
    Synonym,
    WantedPrefixes,
    add_successor,
    note_imports,
    tables_from_terms,
    with_equivalents,
    with_head,
)


def read_obo(source: str, options: OntologyOptions, reading: Reading) -> SourceTables:
    """Read an OBO file.

    Args:
        source: The file, plain, gzip or in a zip archive by itself.
        options: What to keep.
        reading: Where bad frames go.

    Raises:
        InputError: no such file, nothing in it, or RDF or OBO Graphs JSON; under "strict" also a frame that is not OBO,
            an id used twice, a blank name.
    """
    file = only_file(Path(source))
    _refuse_other_formats(file)
    equivalents: list[tuple[list[str], int | None]] = []
    said: list[tuple[str, str]] = []
    wanted = WantedPrefixes(options, reading)
    terms = _terms(file, equivalents, said, options, wanted, reading)
    tables = tables_from_terms(
        terms, path=file.path, language=options.language, reading=reading, without_types=options.without_types
    )
    wanted.check(file.path)
    return with_head(with_equivalents(tables, equivalents, reading), said)


def _refuse_other_formats(file: SourceFile) -> None:
    """Refuse an ontology in another format, as its first bytes tell.

    Raises:
        InputError: it is RDF, or OBO Graphs JSON.
    """
    start = next(read_bytes(file, block_bytes=_SNIFFED_BYTES)).data
    text = _BEFORE_FIRST.sub(b"", without_byte_order_mark(start, file.path), 1)
    for pattern, problem, fix in _OTHER_FORMATS:
        if pattern.match(text):
            found = text.partition(b"\n")[0].decode("utf-8", "backslashreplace")
            raise InputError(problem, path=file.path, expected=_BEGINNING, found=found, fix=fix)


def _terms(
    file: SourceFile,
    equivalents: list[tuple[list[str], int | None]],
    said: list[tuple[str, str]],
    options: OntologyOptions,
    wanted: WantedPrefixes,
    reading: Reading,
) -> Iterator[OntologyTerm]:
    import fastobo

    scopes = {scope.upper(): scope for scope in options.scopes}
    header = _Header(())
    for part in _parts(file, reading):
        line_of = _id_lines(part)
        for frame in _frames(part, reading):
            if isinstance(frame, fastobo.header.HeaderFrame):
                header = _Header(frame)
                note_imports(header.imports, reading)
                said += header.said
            if isinstance(frame, fastobo.instance.InstanceFrame):
                reading.note("individuals (instances of concepts), left out", 1)
            if not isinstance(frame, fastobo.term.TermFrame):
                continue
            written, term_id = _unescaped(frame.id), _code(frame.id)
            if not wanted.keep(term_id):
                continue
            numbers = line_of.get(written, [])
            line = numbers.pop(0) if len(numbers) > 1 else (numbers[0] if numbers else None)
            term = OntologyTerm(term_id, line=line)
            for clause in frame:
                _add(term, clause, header, scopes, reading)
                if clause.raw_tag() == "equivalent_to":
                    equivalents.append(([term_id, _code(clause.term)], line))
            if header.namespace and not term.semantic_types:
                term.semantic_types.append(header.namespace)
            yield term


@dataclass(frozen=True)
class _Part:
    """Whole frames of the file, in the first part after the header; ``first_line`` counts from 1."""

    path: Path
    lines: list[str]
    first_line: int


def _parts(file: SourceFile, reading: Reading) -> Iterator[_Part]:
    """The file a few MiB at a time: the parsed frames of a whole one take ten times its size."""
    pending: list[str] = []
    first_line = 1
    bad: dict[int, tuple[bytes, str]] = {}
    for block in read_blocks(file, reading):
        lines, bad_here = marked_lines(block, reading.encoding)
        bad |= bad_here
        last_frame = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].startswith("[")), None)
        if last_frame is None:
            pending += lines
            continue
        yield _without_bad(_Part(file.path, [*pending, *lines[:last_frame]], first_line), bad, reading)
        pending, first_line = lines[last_frame:], block.first_line + last_frame
    yield _without_bad(_Part(file.path, pending, first_line), bad, reading)


def _without_bad(part: _Part, bad: dict[int, tuple[bytes, str]], reading: Reading) -> _Part:
    """The part without the frames that have a line which is no text, and without such lines of the header."""
    lines = part.lines
    for number in [number for number in bad if number < part.first_line + len(lines)]:
        reject_line(reading, part.path, number, *bad.pop(number))
        at = number - part.first_line
        begin = next((row for row in range(at, -1, -1) if lines[row].startswith("[")), None)
        end = next((row for row in range(at + 1, len(lines)) if lines[row].startswith("[")), len(lines))
        left_out = range(at, at + 1) if begin is None else range(begin, end)
        for row in left_out:
            lines[row] = ""
    return part


class _Header:
    """What the header says of all terms."""

    def __init__(self, clauses: Any) -> None:
        import fastobo

        self.namespace = ""
        self.relation_of: dict[str, str] = {}
        """How cross-references relate, by the prefix of their code."""
        self.imports: list[str] = []
        self.said: list[tuple[str, str]] = []
        """Of the ontology itself, by property."""
        for clause in clauses:
            tag = clause.raw_tag()
            if isinstance(clause, fastobo.header.UnreservedClause):  # a tag of their own, however it is spelt
                continue
            if tag == "default-namespace":
                self.namespace = _unescaped(clause.namespace)
            elif tag == "import":
                self.imports.append(_unescaped(clause.reference))
            elif tag in _RELATION_OF_MACRO:
                self.relation_of[clause.idspace] = _RELATION_OF_MACRO[tag]
            elif tag == "data-version":
                self.said.append((tag, clause.version))
            elif tag == "property_value":
                statement = clause.property_value
                self.said.append((str(statement.relation), str(statement.value)))


def _add(term: OntologyTerm, clause: Any, header: _Header, scopes: Mapping[str, str], reading: Reading) -> None:
    tag = clause.raw_tag()
    if tag == "name":
        term.labels.append(clause.name.strip())
    elif tag == "synonym":
        synonym = clause.synonym
        if synonym.scope in scopes:
            type_of_synonym = "" if synonym.type is None else _unescaped(synonym.type)
            term.synonyms.append(Synonym(synonym.desc.strip(), synonym_type(scopes[synonym.scope], type_of_synonym)))
    elif tag == "def":
        if term.definition:
            reading.note("second and further definitions of a term, left out", 1)
        else:
            term.definition = clause.definition.strip()
    elif tag == "namespace":
        term.semantic_types = [_unescaped(clause.namespace)]
    elif tag == "is_obsolete":
        term.is_obsolete = clause.obsolete
    elif tag == "alt_id":
        term.alternative_ids.append(_code(clause.alt_id))
    elif tag == "replaced_by":
        term.replaced_by.append(_code(clause.term))
    elif tag in {"is_a", "relationship"} and not _holds(clause):
        reading.note(_HOLDS_NOT, 1)
    elif tag in {"is_a", "consider"}:
        term.relations.append((tag, _code(clause.term)))
    elif tag == "relationship":
        term.relations.append((relation_name(_unescaped(clause.typedef), _CODE_OF), _code(clause.term)))
    elif tag == "xref":
        code = _code(clause.xref.id)
        relation = mapping_relation(qualifier.value for qualifier in clause.qualifiers or ())
        if relation == XREF:
            relation = header.relation_of.get(code.partition(":")[0], XREF)
        term.cross_references.append((relation, code))
    elif tag == "property_value":
        relation = mapping_relation([_unescaped(clause.property_value.relation)])
        if _code(clause.property_value.relation) == _TERM_REPLACED_BY:
            add_successor(term, _unescaped(clause.property_value.value), _CODE_OF, reading)
        elif relation != XREF:
            term.cross_references.append((relation, _code(clause.property_value.value)))
        else:
            _add_alternative_term(term, clause.property_value, scopes)


def _add_alternative_term(term: OntologyTerm, statement: Any, scopes: Mapping[str, str]) -> None:
    import fastobo

    scope = (scope_of_values(_unescaped(statement.relation)) or "").upper()
    if scope in scopes and isinstance(statement, fastobo.pv.LiteralPropertyValue):
        term.synonyms.append(Synonym(statement.value.strip(), synonym_type(scopes[scope])))


def _holds(clause: Any) -> bool:
    """Whether a relation says that every instance of the term has it to some of the other (OBO 1.4, section 5.9.3)."""
    said = {_unescaped(qualifier.key): qualifier.value for qualifier in clause.qualifiers or ()}
    if "gci_filler" in said:
        return False
    at_least = said.get("cardinality", said.get("minCardinality"))
    if at_least is not None or "maxCardinality" in said:
        return (at_least or "0").strip() != "0"
    return said.get("all_only") != "true" or said.get("all_some") == "true"


def _frames(part: _Part, reading: Reading) -> Iterator[Any]:
    """The header, if it is here, and each frame that is OBO; the others are rejected."""
    import fastobo

    try:
        with _panic_as_syntax_error():
            reader = fastobo.iter(io.BytesIO(_document(part.lines)), ordered=True)
            frames = [reader.header(), *reader]
    except SyntaxError:
        if _rewrite_old_ways(part.lines, reading):
            yield from _frames(part, reading)
            return
        yield from _frames_one_by_one(part, reading)
    else:
        yield from frames if frames[0] else frames[1:]


def _rewrite_old_ways(lines: list[str], reading: Reading) -> bool:
    """Write what OBO 1.2 allows and the parser does not take as OBO 1.4 has it; whether there was any."""
    is_rewritten = False
    for at, line in enumerate(lines):
        if found := _WITHOUT_SCOPE.match(line):
            tag, text = found.groups()
            scope = "RELATED" if tag == "synonym" else tag.removesuffix("_synonym").upper()
            lines[at] = f"synonym: {text} {scope} {line[found.end() :]}"
            reading.note("synonyms without a scope, which counts as RELATED", tag == "synonym")
        elif found := _OLD_TAG.match(line):
            lines[at] = f"{_OLD_TAGS[found[1]]}:{line[found.end() :]}"
        is_rewritten |= found is not None
    return is_rewritten


def _frames_one_by_one(part: _Part, reading: Reading) -> Iterator[Any]:
    starts = [number for number, line in enumerate(part.lines) if line.startswith("[")]
    for begin, end in itertools.pairwise([0, *starts, len(part.lines)]):
        document = _frame(part, range(begin, end), reading)
        if document is None:
            continue
        if document.header:
            yield document.header
        yield from document


def _frame(part: _Part, rows: range, reading: Reading) -> Any:
    """The frame that these rows are, without clauses that are not OBO; ``None``: it is rejected as a whole.

    A clause that nothing is read from is passed over, and so are the references behind a text; another one is rejected,
    and the frame with it if it says which term this is.
    """
    import fastobo

    written = part.lines[rows.start : rows.stop]
    tags_mended: dict[int, str] = {}
    while True:
        try:
            with _panic_as_syntax_error():
                frame = fastobo.load(io.BytesIO(_document(part.lines[rows.start : rows.stop])), threads=1)
            for tag in tags_mended.values():
                reading.note(f"clauses that are not quite OBO ({tag}), read anyway", 1)
            return frame
        except SyntaxError as error:
            row = min(rows.start + (error.lineno or 1), rows.stop) - 1
            line, said = part.lines[row], written[row - rows.start]
            tag = _tag(line) if error.lineno else ""
            if _KIND_OF_NO_TERM.match(written[0]):
                reading.note("Typedef and Instance frames that are not OBO, left out", 1)
                return None
            if tag in _NOT_READ:
                reading.note(f"clauses that are not OBO, from which nothing is read ({tag}), skipped", 1)
                part.lines[row] = ""
            elif tag and (mended := _mended(line)) != line:
                tags_mended[row] = tag
                part.lines[row] = mended
            else:
                tags_mended.pop(row, None)
                is_clause = bool(tag) and tag not in _OF_THE_WHOLE
                _reject_syntax(error, part, row, said, reading, what="clause" if is_clause else "frame")
                if not is_clause:
                    return None
                part.lines[row] = ""


def _tag(line: str) -> str:
    found = _TAG.match(line)
    return found[1] if found else ""


def _mended(line: str) -> str:
    """A clause with what is often wrong and means one thing only put right; the same, where there is no such thing."""
    if found := _WITH_REFERENCES.match(line):  # nothing is read from them, nor from what stands behind
        return f"{found[1]} []"
    if found := _NAMESPACE.match(line):
        return found[1] + re.sub(r"(?<!\\) (?=\S)", r"\\ ", found[2])
    if found := _TRUTH.match(line):
        return found[0].lower()
    return line


def _document(lines: list[str]) -> bytes:
    r"""The lines as fastobo takes them.

    It knows no lines that are comments (OBO 1.2 has them anywhere), nor ``\W``, which is a space: a W to it. Of a
    default namespace it takes the first word alone.
    """
    texts = ("" if line.lstrip().startswith("!") else _with_spaces(line) for line in lines)
    return ("\n".join(texts) + "\n").encode()


def _with_spaces(line: str) -> str:
    r"""A line of which the text has spaces where it says ``\W``, and the default namespace has them escaped."""
    if line.startswith("default-namespace:"):
        return _mended(line)
    match = _TEXT.match(line) if "\\W" in line else None
    if match is None:
        return line
    return _ESCAPE.sub(_space_or_same, match[0]) + line[match.end() :]


def _space_or_same(escape: re.Match[str]) -> str:
    return " " if escape[1] == "W" else escape[0]


@contextlib.contextmanager
def _panic_as_syntax_error() -> Iterator[None]:
    """Fastobo panics on some bad values instead of raising; here that is a syntax error without a line."""
    try:
        yield
    except BaseException as error:  # the panics of a Rust library are no Exception, and have no name to import
        if type(error).__name__ != "PanicException":
            raise
        raise SyntaxError("a value that its tag can have") from None


def _reject_syntax(error: SyntaxError, part: _Part, row: int, said: str, reading: Reading, *, what: str) -> None:
    """Reject a line that an error is about, or the frame that it is in."""
    reading.reject(
        f"this is not OBO; the {what} cannot be read",
        path=part.path,
        line=part.first_line + row,
        text=said,
        expected=_in_words(error),
        fix=None if any(text.startswith("[") for text in part.lines[: row + 1]) or part.first_line > 1 else _SEE_FORMAT,
    )


def _in_words(error: SyntaxError) -> str:
    """What the parser expects: it names rules of its grammar, which are told in words where files often break them."""
    rules = str(error.msg).removeprefix("expected ")
    if rules == "Comment" and error.offset == 1:
        return "an id: line first in its frame"
    return _WORDS.get(rules) or _WORDS.get(rules.rpartition(" ")[2]) or rules


def _id_lines(part: _Part) -> dict[str, list[int]]:
    """Where each id is given, 1-based; usually once."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(part.lines, part.first_line):
        if line.startswith("id:"):
            match = _ID.match(line)
            if match:
                found.setdefault(match[1], []).append(number)
    return found


def _unescaped(identifier: Any) -> str:
    """An id as its owner writes it; OBO escapes spaces and colons in it."""
    if hasattr(identifier, "prefix"):
        return f"{identifier.prefix}:{identifier.local}"
    return str(getattr(identifier, "unescaped", identifier))


def _code(identifier: Any) -> str:
    """The code that an id stands for, which may be an IRI."""
    return _CODE_OF(_unescaped(identifier))


_HOLDS_NOT = "relations that do not hold for every instance (gci_filler, all_only, maxCardinality), left out"
_SNIFFED_BYTES = 1 << 16
_BEFORE_FIRST = re.compile(rb"(?:\s+|[#!][^\n]*\n)*")
_OTHER_FORMATS = (
    (re.compile(rb'\{\s*"(?:graphs|meta)"'), "this is OBO Graphs JSON", "use format obographs"),
    (
        re.compile(rb"[<{]|\[\s*\{|(?i:@?(?:prefix|base)\s)"),
        "this is no OBO file",
        "use format owl if this is RDF (RDF/XML, Turtle, JSON-LD); onoma terminology formats lists what else is read",
    ),
)
"""How files begin, what is wrong with them, what to do."""
_BEGINNING = "a line of the header, such as format-version: 1.4, or [Term]"
_SEE_FORMAT = "see that it is an OBO file (onoma terminology formats lists what else is read)"
_END_OF_LINE = "the end of the line: an id has no blank in it, and a comment has ! before it"
_WORDS = {
    "SynonymScopeSingle": (
        "EXACT, BROAD, NARROW or RELATED after the text, then references in brackets, [] where there are none"
    ),
    "XrefList": "references in brackets, without blanks in them and with commas between them; [] where there are none",
    "QuotedString": "a text in double quotes",
    "EOL or QuotedString": "an id without a blank in it; words about it stand in double quotes",
    "UnquotedPropertyValueTarget": "an id, or a text in double quotes",
    "UnquotedString": "a text, in which a { has a \\ before it",
    "Qualifier": 'NAME="VALUE" in braces; a { that belongs to the text has a \\ before it',
    "EOL": _END_OF_LINE,
    "Comment": _END_OF_LINE,
    "Id": "an id",
    "Boolean": "true or false",
    "CreationDate": "a date such as 2024-01-31",
    **dict.fromkeys(
        ("TermClause", "TypedefClause", "InstanceClause"),
        "a tag of OBO with its colon, such as name: or is_a:, and before each id: a line [Term]",
    ),
    "EntityFrame": "[Term], [Typedef] or [Instance] alone on its line",
    "HeaderClause": _BEGINNING,
}
"""Rules of the parser, fastobo; of several it names the last one counts."""
_WITHOUT_SCOPE = re.compile(r'\s*((?:(?:exact|narrow|broad|related)_)?synonym):\s*("(?:[^"\\]|\\.)*")\s*(?=\[)')
_OLD_TAGS = {"use_term": "consider", **dict.fromkeys(("xref_analog", "xref_unk", "xref_unknown"), "xref")}
_OLD_TAG = re.compile(rf"\s*({'|'.join(_OLD_TAGS)}):")
_TAG = re.compile(r"\s*([\w-]+):")
_KIND_OF_NO_TERM = re.compile(r"\[(Typedef|Instance)\]")
_NOT_READ = frozenset(
    (
        "auto-generated-by", "builtin", "comment", "created_by", "creation_date", "date",
        "default-relationship-id-prefix", "disjoint_from", "id-mapping", "idspace", "intersection_of", "is_anonymous",
        "namespace-id-rule", "owl-axioms", "remark", "saved-by", "subset", "subsetdef", "synonymtypedef",
        "treat-xrefs-as-genus-differentia", "treat-xrefs-as-relationship", "treat-xrefs-as-reverse-genus-differentia",
        "union_of",
    )
)  # fmt: skip
"""Tags of the header and of terms."""
_OF_THE_WHOLE = frozenset(("id", "is_obsolete", "name"))
"""Tags without which a term would be another one."""
_WITH_REFERENCES = re.compile(r'(\s*(?:def|synonym):\s*"(?:[^"\\]|\\.)*"[^\[{]*?)\s*(?:\[.*)?$')
_NAMESPACE = re.compile(r"(\s*(?:default-)?namespace:\s*)([^!{]*[^!{\s])")
_TRUTH = re.compile(r"\s*is_obsolete:\s*(?i:true|false)\b")
_ID = re.compile(r"id:\s*(\S+)")
_TEXT = re.compile(r'\s*(?:name:.*|(?:synonym|def):\s*"(?:[^"\\]|\\.)*")')
_ESCAPE = re.compile(r"\\(.)")
_CODE_OF = code_maker()
_TERM_REPLACED_BY = "IAO:0100001"
_RELATION_OF_MACRO = {
    "treat-xrefs-as-equivalent": "exactMatch",
    "treat-xrefs-as-is_a": "broadMatch",
    "treat-xrefs-as-has-subclass": "narrowMatch",
}

FORMAT = Format(
    name="obo",
    description="OBO 1.4, the text format of the OBO Foundry (HPO, MONDO, DOID, GO, Uberon, ChEBI, ...)",
    source="an .obo file, plain, gzip, or zipped",
    obtain="http://purl.obolibrary.org/obo/NAME.obo, e.g. hp.obo, mondo.obo, doid.obo; overview: https://obofoundry.org",
    licence="each ontology's own (mostly CC BY 4.0 or CC0)",
    options=OntologyOptions,
    read=read_obo,
)
