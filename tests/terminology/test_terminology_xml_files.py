"""XML of any size and any sort: what is read, and how what cannot be is refused."""

from __future__ import annotations

import contextlib
import copy
import gzip
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from sample import NAMES
from sample_fhir import XML as FHIR
from sample_xml import CLAML, ICD10CM, MESH, ORPHANET, mesh_concept, mesh_file, mesh_record

from onoma.errors import InputError, OnomaError
from onoma.files import xml_files
from onoma.files.archives import SourceFile
from onoma.files.reading import Reading
from onoma.files.xml_files import find_xml, line_of, text_of, texts_of, xml_elements, xml_root
from onoma.terminology import Terminology, import_terminology
from onoma.terminology.assembly import assemble
from onoma.terminology.formats import get_format
from onoma.terminology.readers.options import parse_options
from onoma.terminology.tables import check_tables

DOCUMENTS = {"mesh": MESH, "icd10cm": ICD10CM, "claml": CLAML, "orphanet": ORPHANET, "fhir": FHIR}


def source_file(path: Path, data: bytes | str) -> SourceFile:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return SourceFile(path.name, path)


def texts(file: SourceFile, tag: str = "a", on_error: str = "strict") -> list[str]:
    reading = Reading(on_error="skip" if on_error == "skip" else "strict")
    return [text_of(found) for found in xml_elements(file, tag, reading)]


def refused(path: Path, data: bytes | str) -> InputError:
    """Refused under both policies, in the same way."""
    errors = []
    for on_error in ("strict", "skip"):
        with pytest.raises(InputError) as caught:
            texts(source_file(path, data), on_error=on_error)
        errors.append(str(caught.value))
        assert caught.value.path == path
    assert errors[0] == errors[1]
    return caught.value


def test_elements_come_one_by_one_and_are_forgotten(tmp_path: Path) -> None:
    n = 20_000
    file = source_file(
        tmp_path / "x.xml", "<r>\n" + "".join(f"<b/><a><b>{i}</b></a><!-- {i} -->\n" for i in range(n)) + "</r>"
    )
    reading = Reading()
    told: list[tuple[int, int | None]] = []
    reading.progress = lambda done, total, what: told.append((done, total))
    numbers, most_siblings = [], 0
    for found in xml_elements(file, "a", reading):
        numbers.append((text_of(found, "b"), line_of(found)))
        parent = found.getparent()
        assert parent is not None
        if len(numbers) % 1000 == 0:
            most_siblings = max(most_siblings, len(parent))
    assert numbers == [(str(i), i + 2) for i in range(n)]
    assert most_siblings < n / 2
    assert told[-1] == (n, n)
    assert all(total is not None and done <= total for done, total in told)
    assert reading.files == [tmp_path / "x.xml"]


def test_lines_beyond_two_bytes(tmp_path: Path) -> None:
    file = source_file(tmp_path / "x.xml", "<r>" + "\n" * 70_000 + "<a>1</a>\n<a>2</a></r>")
    assert [line_of(found) for found in xml_elements(file, "a", Reading())] == [70_001, 70_002]


def test_text_of_an_element(tmp_path: Path) -> None:
    data = (
        "<r><a> two  words\n\t and <b>a</b> third&amp;last\u00a0</a><a><![CDATA[<raw>]]> &#x4E2D;</a>"
        "<a/><a>one<!-- not this -->two<?nor this?>three</a></r>"
    )
    assert texts(source_file(tmp_path / "x.xml", data)) == [
        "two  words and a third&last\u00a0",
        "<raw> 中",
        "",
        "onetwothree",
    ]
    root = next(xml_elements(source_file(tmp_path / "y.xml", "<r><b>1</b><b/><b>2</b></r>"), "r", Reading()))
    assert texts_of(root, "b") == ["1", "2"]
    assert text_of(root, "nothing") == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1", "utf-16", "windows-1252"])
@pytest.mark.parametrize("pack", ["plain", "gzip", "zip"])
def test_encodings_and_containers(encoding: str, pack: str, tmp_path: Path) -> None:
    name = "iso-8859-1" if encoding == "iso-8859-1" else encoding.removesuffix("-sig")
    data = f'<?xml version="1.0" encoding="{name}"?>\r\n<r><a>M\u00e9ni\u00e8re</a></r>'.encode(encoding)
    path = tmp_path / "x.xml"
    if pack == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.xml", data)
    else:
        path.write_bytes(gzip.compress(data) if pack == "gzip" else data)
    (found,) = find_xml(path, ("r",))
    assert found.path == (path / "inner.xml" if pack == "zip" else path)
    assert texts(found.file) == ["Ménière"]


BAD = {
    "cut off": (b"<r>\n<a>b</a>\n", 3, "cut off"),
    "cut off in a tag": (b"<r>\n<a>b</", 2, "cut off"),
    "wrong end": (b"<r>\n<a>b</c></r>", 2, "not well-formed"),
    "no XML": (b"code\tname\n", 1, "not XML"),
    "two roots": (b"<r/>\n<r/>", 2, "not well-formed"),
    "NUL": (b"<r>\n<a>b\0</a></r>", 2, "not well-formed"),
    "control character": (b"<r>\n<a>b&#1;</a></r>", 2, "not well-formed"),
    "undeclared entity": (b"<r>\n<a>b&copy;</a></r>", 2, "Entity 'copy' not defined"),
    "not UTF-8": (b"<r>\n<a>\xe9</a></r>", 2, "not in the encoding that the XML declares"),
    "unknown encoding": (b'<?xml version="1.0" encoding="klingon"?><r/>', 1, "encoding"),
    "one huge text": (b"<r><a>" + b"x" * 11_000_000 + b"</a></r>", 1, "Text node too long|huge text node"),
    "deep": (b"<r>" + b"<b>" * 10_000, 1, "Excessive depth"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("block_bytes", [5, 1 << 17])
def test_what_is_not_xml(case: str, block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, line, problem = BAD[case]
    if block_bytes < 100 and len(data) > 1000:
        block_bytes = 1 << 12
    monkeypatch.setattr(xml_files, "_BLOCK_BYTES", block_bytes)
    error = refused(tmp_path / "x.xml", data)
    assert re.search(problem, str(error))  # the words of libxml2, which have changed
    assert error.line == line


@given(cut=st.integers(0, 1000), block_bytes=st.sampled_from([1, 7, 64, 100_000]))
@settings(max_examples=100)
def test_a_document_cut_off_anywhere_is_refused(
    cut: int, block_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = MESH.encode()[: cut * len(MESH) // 1001]
    file = source_file(tmp_path_factory.mktemp("cut") / "x.xml", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xml_files, "_BLOCK_BYTES", block_bytes)
        with pytest.raises(InputError):
            texts(file, "DescriptorRecord")


def test_empty_and_damaged(tmp_path: Path) -> None:
    assert "empty" in str(refused(tmp_path / "x.xml", b""))
    packed = gzip.compress(MESH.encode())
    assert "damaged or cut off" in str(refused(tmp_path / "x.xml", packed[:-20]))
    assert "not well-formed XML, or cut off" in str(refused(tmp_path / "x.xml", b"\n\n "))


BOMBS = {
    "laughs": '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>\n<r><a>&b;</a></r>',
    "in an attribute": '<!DOCTYPE r [<!ENTITY a "ha">]>\n<r><a b="&a;"/></r>',
    "external": '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hostname">]>\n<r><a>&a;</a></r>',
    "network": '<!DOCTYPE r [<!ENTITY a SYSTEM "http://127.0.0.1:9/a">]>\n<r><a>&a;</a></r>',
    "parameter": '<!DOCTYPE r [<!ENTITY % a SYSTEM "file:///etc/hostname"> %a;]>\n<r><a>b</a></r>',
}


@pytest.mark.parametrize("case", BOMBS)
def test_entities_are_refused(case: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="declares entities of its own") as caught:
        xml_root(source_file(tmp_path / "x.xml", BOMBS[case]))
    assert caught.value.path == tmp_path / "x.xml"
    for format_name in DOCUMENTS:
        with pytest.raises(InputError, match="declares entities of its own"):
            import_terminology(format_name, tmp_path / "x.xml", tmp_path / "out", on_error="skip")


def test_entity_bomb_in_the_root_element(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<!DOCTYPE r [<!ENTITY a0 "haha">{entities}]><r b="&a11;"/>'
    with pytest.raises(InputError, match="bomb"):
        xml_root(source_file(tmp_path / "x.xml", bomb))


def test_a_dtd_that_is_only_named_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "x.dtd").write_text('<!ENTITY a "from the DTD"><!ATTLIST a b CDATA "default">')
    file = source_file(tmp_path / "x.xml", '<!DOCTYPE r SYSTEM "x.dtd">\n<r>\n<a>one</a>\n<a>two &a;</a></r>')
    assert xml_root(file).root == "r"
    with pytest.raises(InputError, match="does not declare; found &a") as caught:
        texts(file)
    assert caught.value.line == 4
    reading = Reading(on_error="skip")
    kept = [(text_of(found), dict(found.attrib)) for found in xml_elements(file, "a", reading)]
    assert kept == [("one", {})]
    assert reading.rejects.select("file", "line").rows() == [("x.xml", 4)]


def test_much_of_another_kind_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_files, "_MAX_BYTES_BETWEEN", 1 << 20)
    error = refused(tmp_path / "x.xml", "<r><a>1</a>" + "<b>x</b>" * 200_000 + "</r>")
    assert "no <a> within 1 MiB" in str(error)


def test_gzip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.files.text_files.MAX_UNCHECKED_BYTES", 1 << 20)
    monkeypatch.setattr("onoma.files.text_files.MAX_SWELLING", 5)
    data = gzip.compress(b"<r>" + b"<a>                                    </a>" * 50_000 + b"</r>")
    assert "swells" in str(refused(tmp_path / "x.xml.gz", data))


def test_a_file_of_another_format_says_which(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    for format_name, document in DOCUMENTS.items():
        path.write_text(document, encoding="utf-8")
        for other in DOCUMENTS.keys() - {format_name}:
            with pytest.raises(InputError, match=f"import it with format {format_name}") as caught:
                import_terminology(other, path, tmp_path / "out")
            assert caught.value.path == path
            assert "expected the root element <" in str(caught.value)
    path.write_text('<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>')
    with pytest.raises(InputError, match=r"found <RDF>\..*import it with format owl"):
        import_terminology("mesh", path, tmp_path / "out")
    path.write_text("<html><body>Log in</body></html>")
    with pytest.raises(InputError, match="this is a web page"):
        import_terminology("mesh", path, tmp_path / "out")
    for root in ("other", ":ICD10CM.tabular"):  # the second is no name, but the parser takes it
        path.write_text(f"<{root}/>")
        with pytest.raises(InputError, match=f"found <{root}>.*check that this is the file"):
            import_terminology("mesh", path, tmp_path / "out")


def test_files_of_a_folder(tmp_path: Path) -> None:
    def write(name: str, data: bytes) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)

    write("a.xml", b"<r/>")
    write("below/b.gz", gzip.compress(b"<r/>"))
    write("other.xml", b"<s/>")
    write("table.gz", gzip.compress(b"code\tname\n"))
    write("read me.txt", b"hello")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("in/c.xml", "<r/>")
        archive.writestr("in/notes.txt", "hello")
    assert [str(file.path.relative_to(tmp_path)) for file in find_xml(tmp_path, ("r",))] == [
        "a.xml",
        "below/b.gz",
        "c.zip/in/c.xml",
    ]
    assert [file.file.name for file in find_xml(tmp_path / "c.zip", ("r",))] == ["in/c.xml"]
    with pytest.raises(InputError, match=r"no such XML file here; expected .*<t>"):
        find_xml(tmp_path, ("t",))
    write("broken.xml", b"<r>\n<")
    write("empty.xml", b"")
    with pytest.raises(InputError, match=r"empty\.xml: the file is empty"):
        find_xml(tmp_path, ("r",))
    with pytest.raises(InputError, match="there is nothing here"):
        find_xml(tmp_path / "nowhere", ("r",))


@pytest.mark.parametrize("format_name", DOCUMENTS)
@pytest.mark.parametrize("dress", ["crlf", "bom", "gzip", "zip", "latin-1", "utf-16", "comments"])
def test_dress_of_the_file_does_not_matter(format_name: str, dress: str, tmp_path: Path) -> None:
    def in_encoding(name: str) -> bytes:
        body = DOCUMENTS[format_name].partition("?>")[2]
        body = body.encode("ascii", "xmlcharrefreplace").decode() if name == "iso-8859-1" else body
        return f'<?xml version="1.0" encoding="{name}"?>{body}'.encode(name)

    document = DOCUMENTS[format_name]
    dressed: dict[str, Callable[[], bytes]] = {
        "crlf": lambda: document.replace("\n", "\r\n").encode(),
        "bom": lambda: b"\xef\xbb\xbf" + document.encode(),
        "gzip": lambda: gzip.compress(document.encode()),
        "zip": document.encode,
        "latin-1": lambda: in_encoding("iso-8859-1"),
        "utf-16": lambda: in_encoding("utf-16"),
        "comments": lambda: document.replace("\n<", "\n<!-- a <comment> --><?and more?><").encode(),
    }
    path = tmp_path / "x.xml"
    path.write_bytes(dressed[dress]())
    if dress == "zip":
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            archive.write(path, "a folder/x.xml")
        path = tmp_path / "x.zip"
    told: list[tuple[int, int | None, str]] = []
    report = import_terminology(
        format_name, path, tmp_path / "out", progress=lambda done, total, what: told.append((done, total, what))
    )
    names = set(Terminology.open(tmp_path / "out").names().collect()["text"])
    assert names >= {name for names in NAMES.values() for name in names}
    assert report.n_rejected == 0
    assert told
    assert {what for _, _, what in told} == {"x.xml"}


def test_a_name_of_a_megabyte(tmp_path: Path) -> None:
    name = "x" * (1 << 20)
    (tmp_path / "x.xml").write_text(mesh_file(mesh_record("D1", "a", mesh_concept("M1", ["a", name]))))
    import_terminology("mesh", tmp_path / "x.xml", tmp_path / "out")
    assert Terminology.open(tmp_path / "out").names().collect()["text"].to_list() == ["a", name]


def spoil(root: etree._Element, data: st.DataObject) -> None:
    """Change a document in a way that leaves it well-formed."""
    elements = list(root.iter())
    chosen = elements[data.draw(st.integers(0, len(elements) - 1))]
    other = elements[data.draw(st.integers(0, len(elements) - 1))]
    how = data.draw(st.sampled_from(["remove", "repeat", "text", "tag", "attributes", "into another"]))
    parent = chosen.getparent()
    if how == "text":
        chosen.text = data.draw(
            st.sampled_from(["", " ", "1", "-1", "9" * 5000, "x" * 1000, "\u0085", "*", "A-B", "(-)"])
        )
    elif how == "tag":
        chosen.tag = other.tag
    elif how == "attributes":
        for name in chosen.attrib:
            chosen.set(str(name), data.draw(st.sampled_from(["", "Y", "N", "AB", "é", "9" * 30])))
    elif parent is not None and how == "remove":
        parent.remove(chosen)
    elif parent is not None and how == "repeat":
        parent.append(copy.deepcopy(chosen))
    elif parent is not None and chosen not in set(other.iterancestors()):
        other.append(copy.deepcopy(chosen))


@given(data=st.data())
@settings(max_examples=20)
def test_spoilt_documents_end_well_or_with_our_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("spoilt")
    format_name = data.draw(st.sampled_from(sorted(DOCUMENTS)))
    root = etree.fromstring(DOCUMENTS[format_name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        spoil(root, data)
    (folder / "x.xml").write_bytes(etree.tostring(root, encoding="utf-8"))
    chosen = get_format(format_name)
    for on_error in ("strict", "skip"):
        reading = Reading(on_error="skip" if on_error == "skip" else "strict")
        with contextlib.suppress(OnomaError):
            options = parse_options(chosen.options, {}, format_name)
            check_tables(assemble(chosen.read(str(folder / "x.xml"), options, reading), reading))
