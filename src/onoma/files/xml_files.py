"""XML files of any size, an element at a time.

A file is read in blocks by lxml and forgotten element by element, so that memory does not grow with it. Nothing outside
the file is ever read: a DTD may be named (MeSH does) and is not loaded, and a file that declares entities of its own is
refused, since no terminology does and bombs are made of them. What is not well-formed cannot be read past the place, so
that it ends the import whatever ``on_error`` says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lxml import etree

from onoma.errors import InputError
from onoma.files.archives import SourceFile, is_zip, source_files
from onoma.files.reading import Reading
from onoma.files.text_files import ByteBlock, read_bytes

Element = etree._Element

FORMAT_OF_ROOT = {
    "DescriptorRecordSet": "mesh",
    "QualifierRecordSet": "mesh",
    "SupplementalRecordSet": "mesh",
    "ICD10CM.tabular": "icd10cm",
    "JDBOR": "orphanet",
    "ClaML": "claml",
    "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF": "owl",
    "{http://www.w3.org/2002/07/owl#}Ontology": "owl",
    **{f"{{http://hl7.org/fhir}}{kind}": "fhir" for kind in ("CodeSystem", "ValueSet", "Bundle")},
}
"""Root elements of the XML files that some reader takes."""

_BLOCK_BYTES = 1 << 17
_MAX_BYTES_BETWEEN = 64 << 20
"""More than this without an element of the kind sought is another kind of file, or one made to fill the memory."""
_WRAP = re.compile(r"[ \t]*[\r\n][ \t\r\n]*")
_WHITE = " \t\r\n"


@dataclass(frozen=True)
class XmlFile:
    """A file whose beginning has been looked at.

    Attributes:
        file: On disk or in an archive.
        root: Tag of its root element.
        attributes: Of the root element.
    """

    file: SourceFile
    root: str
    attributes: Mapping[str, str]

    @property
    def path(self) -> Path:
        """What errors call it."""
        return self.file.path


def find_xml(source: Path, roots: Collection[str]) -> list[XmlFile]:
    """The XML files of a source that have one of these root elements, by name.

    In a folder or an archive of several files, ``.xml``, ``.gz`` and ``.zip`` are looked at (the files of a zip in a
    folder too) and files with other roots passed over. A single file must have one of the roots.

    Args:
        source: A folder, a zip archive, or a file, plain or gzip.
        roots: Tags of the root elements.

    Raises:
        InputError: there is no such file, a file called ``.xml`` is not XML, or the source is a single file of another
            kind.
    """
    files = [file for listed in source_files(source) for file in _unpacked(listed)]
    if len(files) == 1 and not source.is_dir():
        return [with_root(files[0], roots)]
    found = []
    for file in files:
        name = file.base.lower()
        if not name.endswith((".xml", ".xml.gz", ".gz")):
            continue
        try:
            looked_at = xml_root(file)
        except InputError:
            if not name.endswith((".xml", ".xml.gz")):
                continue
            raise
        if looked_at.root in roots:
            found.append(looked_at)
    if not found:
        raise InputError(
            "there is no such XML file here",
            path=source,
            expected=f"an .xml, .gz or .zip file with the root element {_listed(roots)}",
            found=", ".join(file.name for file in files[:5]) or "no file at all",
            fix="name the file, or the folder that holds it",
        )
    return found


def xml_root(file: SourceFile) -> XmlFile:
    """Look at the beginning of a file.

    Raises:
        InputError: it is no XML, or declares entities.
    """
    for elements, _ in _parsed(file, "start"):
        for element in elements:
            _refuse_entities(element, file)
            return XmlFile(file, str(element.tag), {str(key): str(value) for key, value in element.attrib.items()})
    raise InputError("the file has no element", path=file.path)


def xml_elements(
    file: SourceFile, tag: str | tuple[str, ...], reading: Reading, *, if_too_large: str = "get the file again"
) -> Iterator[Element]:
    """Yield the elements of one tag or of several, in order; each is gone when the next is asked for.

    An element with a reference to an entity that the file does not declare is rejected.

    Args:
        file: Plain or gzip.
        tag: It does not stand within itself, nor one of several within another.
        reading: Told of the file, of bad elements and of the progress.
        if_too_large: What to do about a file that has nothing of this tag for `_MAX_BYTES_BETWEEN`.

    Raises:
        InputError: the file is no XML, is cut off, is not in the encoding that it says, or has nothing of this tag
            for `_MAX_BYTES_BETWEEN`; under "strict" also an element with an undeclared entity.
    """
    reading.files.extend(file.containers)
    n_elements = n_bytes = 0
    for elements, block in _parsed(file, "end", tag):
        n_bytes += len(block.data)
        for element in elements:
            n_elements += 1
            n_bytes = 0
            if _is_whole(element, file, reading):
                yield element
            element.clear()
            parent = element.getparent()
            while parent is not None and element.getprevious() is not None:
                del parent[0]
        if n_bytes > _MAX_BYTES_BETWEEN:
            raise InputError(
                f"no {_listed((tag,) if isinstance(tag, str) else tag)} within {_MAX_BYTES_BETWEEN >> 20} MiB",
                path=file.path,
                fix=if_too_large,
            )
        reading.tell_share(n_elements, block.share, file.base)
    reading.tell(n_elements, n_elements, file.base, last=True)


def text_of(element: Element, path: str = ".") -> str:
    r"""The text of an element below, or "" if there is none; where a line is wrapped stands one space.

    Example:
        >>> text_of(etree.fromstring("<Term><String> Heart\n   attack </String></Term>"), "String")
        'Heart attack'
    """
    found = element.find(path)
    if found is None:
        return ""
    text = "".join(str(part) for part in found.itertext()) if len(found) else found.text or ""
    text = text.strip(_WHITE)
    return _WRAP.sub(" ", text) if "\n" in text or "\r" in text else text


def texts_of(element: Element, path: str) -> list[str]:
    """The texts of all elements below at this path that have one."""
    return [text for found in element.iterfind(path) if (text := text_of(found))]


def line_of(element: Element) -> int | None:
    """The line on which an element begins."""
    line: Any = element.sourceline
    return line if isinstance(line, int) else None


def _unpacked(file: SourceFile) -> tuple[SourceFile, ...]:
    """The files of a zip archive that lies in a folder; any other file is itself."""
    is_archive = file.member is None and file.base.lower().endswith(".zip") and is_zip(file.container)
    return source_files(file.container) if is_archive else (file,)


def with_root(file: SourceFile, roots: Collection[str]) -> XmlFile:
    """A file that must have one of these root elements.

    Raises:
        InputError: it has another, or is no XML.
    """
    found = xml_root(file)
    if found.root in roots:
        return found
    shown = f"<{_local_name(found.root)}>"
    other = FORMAT_OF_ROOT.get(found.root)
    fix = "check that this is the file that is meant"
    if other:
        fix = f"import it with format {other}"
    elif found.root.lower().endswith("html"):
        fix = "this is a web page; get the file that it offers"
    elif _local_name(found.root) in roots:
        shown, fix = f"{shown} of a namespace", "take the namespace (xmlns) out"
    raise InputError(
        "this is another kind of XML file",
        path=file.path,
        line=1,
        expected=f"the root element {_listed(roots)}",
        found=shown,
        fix=fix,
    )


def _listed(roots: Collection[str]) -> str:
    return " or ".join(f"<{_local_name(root)}>" for root in roots)


def _local_name(tag: str) -> str:
    """Of ``{http://...}name`` the name; lxml's QName refuses names such as ``:x``, which its parser takes."""
    return tag.rpartition("}")[2]


def _parsed(
    file: SourceFile, event: Literal["start", "end"], tag: str | tuple[str, ...] | None = None
) -> Iterator[tuple[Iterator[Element], ByteBlock]]:
    """Elements that begin or end, with the block of which they are known; some only when the file has ended."""
    parser: Any = etree.XMLPullParser(
        events=(event,),
        tag=tag,
        load_dtd=False,
        no_network=True,
        resolve_entities=False,
        remove_comments=True,
        remove_pis=True,
    )
    for block in read_bytes(file, block_bytes=_BLOCK_BYTES):
        try:
            parser.feed(block.data)
        except etree.LxmlError as error:
            raise _syntax_error(parser, error, file) from None
        if len(parser.feed_error_log.filter_from_fatals()):  # lxml does not raise for all of them
            raise _syntax_error(parser, None, file)
        yield _elements(parser), block
    try:
        parser.close()
    except etree.LxmlError as error:
        raise _syntax_error(parser, error, file, at_end=True) from None
    yield _elements(parser), ByteBlock(b"", 0, 1.0)


def _elements(parser: Any) -> Iterator[Element]:
    return (element for _, element in parser.read_events())


def _syntax_error(parser: Any, error: etree.LxmlError | None, file: SourceFile, *, at_end: bool = False) -> InputError:
    entries = parser.feed_error_log.filter_from_fatals()
    if len(entries):
        message, line = entries[0].message.strip(), entries[0].line
    else:
        message, line = str(getattr(error, "msg", error)).strip(), getattr(error, "lineno", None)
    fix = "get the file again"
    if "Premature end" in message or "no element found" in message:
        problem = "the XML is cut off"
    elif "encoding" in message or "UTF-8" in message:
        problem = "the bytes are not in the encoding that the XML declares"
        fix = "get the file again, or write the encoding that it has into its first line"
    elif "Maximum entity amplification" in message:
        problem = "the file swells by entities within entities (a bomb?)"
        fix = "get the file from its publisher"
    elif "Start tag expected" in message and not at_end:
        problem, fix = "this is not XML", "name the format that the file has, or give another file"
    else:
        problem = "this is not well-formed XML" + (", or cut off" if at_end else "")
    return InputError(problem, path=file.path, line=line or None, found=message, fix=fix)


def _refuse_entities(root: Element, file: SourceFile) -> None:
    dtd: Any = root.getroottree().docinfo.internalDTD
    declared = [] if dtd is None else [entity.name for entity in dtd.iterentities()]
    if declared:
        raise InputError(
            "the file declares entities of its own (a bomb?)",
            path=file.path,
            field="DOCTYPE",
            expected="none",
            found=", ".join(str(name) for name in declared[:5]),
            fix="get the file from its publisher",
        )


def _is_whole(element: Element, file: SourceFile, reading: Reading) -> bool:
    unresolved = next(element.iter(etree.Entity), None)
    if unresolved is None:
        return True
    reading.reject(
        "the text has an entity that the file does not declare",
        path=file.path,
        line=line_of(element),
        text=" ".join(str(part) for part in element.itertext())[:200],
        found=str(unresolved.text),
    )
    return False
