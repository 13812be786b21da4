from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from onoma.errors import InputError
from onoma.files import rdf_stream, reading
from onoma.files.rdf_stream import line_of, rdf_triples
from onoma.files.reading import Reading
from onoma.files.text_files import only_file

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF xmlns:a="http://a#" '
HEAD += 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n'
ITEM = '<rdf:Description rdf:about="http://x/{0}">\n<!-- of {0} -->\n<a:p>é {0} &amp; <![CDATA[<b>]]></a:p>\n'
ITEM += "</rdf:Description>\n"


def written(tmp_path: Path, text: str | bytes, name: str = "x.owl") -> Path:
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return tmp_path / name


def triples(path: Path) -> list[Quad]:
    return list(rdf_triples(only_file(path), Reading()))


def is_about(iri: str) -> Callable[[Quad], bool]:
    return lambda triple: triple.subject == NamedNode(iri)


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 16])
@pytest.mark.parametrize("name", ["x.owl", "x.owl.gz", "x.ttl", "x.nt"])
def test_blocks_of_any_size(name: str, block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xml = HEAD + "".join(ITEM.format(number) for number in range(30)) + "</rdf:RDF>\n"
    expected = [(f"http://x/{number}", f"é {number} & <b>") for number in range(30)]
    text = xml
    if not name.startswith("x.owl"):
        text = "".join(f'<{iri}> <http://a#p> "{value}" .\n' for iri, value in expected)
    monkeypatch.setattr(rdf_stream, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(rdf_stream, "_TAIL_BYTES", max(block_bytes, 16))
    path = written(tmp_path, text, name)
    assert triples(path) == [Quad(NamedNode(iri), NamedNode("http://a#p"), Literal(value)) for iri, value in expected]
    line = {"owl": 2 + 2 * 4 + 3, "ttl": 3, "nt": 3}[name.removesuffix(".gz").partition(".")[2]]
    assert line_of(only_file(path), is_about("http://x/2")) == line
    assert line_of(only_file(path), is_about("http://x/99")) is None


def test_how_far_the_reading_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdf_stream, "_TRIPLES_PER_TELL", 50)
    monkeypatch.setattr(rdf_stream, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(reading, "_SECONDS_BETWEEN_PROGRESS", 0.0)
    text = "".join(f'<http://x/{number}> <http://a#p> "{"x" * 500}" .\n' for number in range(1000))
    told: list[tuple[int, int | None, str]] = []
    path = written(tmp_path, text, "x.nt")
    read = Reading(progress=lambda done, total, what: told.append((done, total, what)))
    assert sum(1 for _ in rdf_triples(only_file(path), read)) == 1000
    assert read.files == [path]
    assert [done for done, _, _ in told] == [*range(50, 1001, 50), 1000]
    assert all(900 < (total or 0) < 1100 for _, total, _ in told)
    assert told[-1] == (1000, 1000, "x.nt")


def hidden_triples(depth: int) -> str:
    return "<a:s> <a:p> " + "<<( <a:s> <a:p> # )>>\n" * depth + "<a:o> " + ")>>" * depth + " .\n"


def test_depth_that_comments_and_values_hide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdf_stream, "_BLOCK_BYTES", 1 << 10)
    with pytest.raises(InputError, match="triples within triples nested more than 100 deep"):
        triples(written(tmp_path, hidden_triples(300), "x.ttl"))
    xml = HEAD + '<rdf:Description a:q="/>"><a:p>' * 2600 + "</a:p></rdf:Description>" * 2600 + "</rdf:RDF>"
    with pytest.raises(InputError, match="XML nested more than 5000 deep"):
        triples(written(tmp_path, xml))


def test_many_triples_about_triples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdf_stream, "_BLOCK_BYTES", 1 << 10)
    text = "".join(hidden_triples(3).replace("a:s", f"a:{number}") for number in range(300))
    path = written(tmp_path, text, "x.ttl")
    assert len(triples(path)) == 300
    assert line_of(only_file(path), is_about("a:299")) == 299 * 4 + 4


TRIPLE = '<http://x> <http://a#p> "b" .\n'
XML = f"{HEAD.partition('?>')[2]}{ITEM}</rdf:RDF>"
JSON_LD = '{"@id": "http://x", "http://a#p": "b"}'
BEGINNINGS = {
    "Turtle that says nothing of itself": ("x.txt", TRIPLE),
    "comments before it": ("x", f"\n  # <rdf:RDF>\n\t#\n{TRIPLE}"),
    "SPARQL's prefix": ("x.rdf", f"prefix a: <http://a#>\n{TRIPLE}"),
    "a base": ("x.owl", f"@BASE <http://a#> .\n{TRIPLE}".replace("BASE", "base")),
    "a blank node": ("x.txt", '_:b <http://a#p> "b" .\n'),
    "properties in brackets": ("x.txt", '[] <http://a#p> "b" .\n'),
    "a graph": ("x.txt", f"<http://g> {{ {TRIPLE} }}\n"),
    "quads": ("x.nq", '<http://x> <http://a#p> "b" <http://g> .\n'),
    "TriG by its extension": ("x.trig", f"{{ {TRIPLE} }}\n"),
    "JSON-LD by its extension": ("x.jsonld", JSON_LD),
    "JSON-LD": ("x.json", JSON_LD),
    "JSON-LD in a list": ("x.txt", f" [\n {JSON_LD}]"),
    "XML called Turtle": ("x.ttl", f"{HEAD}{ITEM}</rdf:RDF>"),
    "XML with much before it": ("x.xml", f"<!-- {'x' * 200_000} -->\n{XML}"),
    "XML with a document type": (
        "x.owl",
        f'<!DOCTYPE a [ <!ENTITY b "c"> ] >{HEAD.partition("?>")[2]}{ITEM}</rdf:RDF>',
    ),
    "XML of one empty element": ("x.owl", '<a:RDF xmlns:a="http://www.w3.org/1999/02/22-rdf-syntax-ns#" />'),
    "a byte order mark": ("x.ttl", f"\ufeff{TRIPLE}"),
}


@pytest.mark.parametrize("case", BEGINNINGS)
def test_what_a_file_is_written_in(case: str, tmp_path: Path) -> None:
    name, text = BEGINNINGS[case]
    assert len(triples(written(tmp_path, text, name))) == ("empty" not in case)


REFUSED = {
    "functional": ("x.owl", "Prefix(a:=<http://a#>)\nOntology(<http://a>)", "OWL functional syntax is not read"),
    "Manchester": ("x.owl", "# a\nPrefix: a: <http://a#>\n", "OWL Manchester syntax is not read"),
    "OBO": ("x.ttl", "format-version: 1.2\n", "this is an OBO file"),
    "OBO without a header": ("x", "\n[Term]\nid: a\n", "this is an OBO file"),
    "OBO Graphs": ("x.json", '{ "graphs" : []}', "this is OBO Graphs JSON"),
    "words": ("x.txt", "a b c\n", "this is no RDF"),
    "OWL/XML": ("x.owl", '<?xml version="1.0"?><o:Ontology xmlns:o="a"/>', "OWL/XML is not read"),
    "other XML": ("x.xml", "<html><body/></html>", "this is another kind of XML file"),
    "a character cut off": ("x.ttl", TRIPLE + "# \udcc3", "not UTF-8"),
    "XML cut off": ("x.owl", HEAD + ITEM, "the XML is cut off"),
    "XML cut off in a comment": ("x.owl", f"{HEAD}{ITEM}</rdf:RDF><!-- ", "the XML is cut off"),
    "a context elsewhere": ("x.jsonld", '{"@context": "http://a/b.jsonld", "a": 1}', "a context elsewhere"),
    "Latin-1": ("x.owl", HEAD.replace("UTF-8", "ISO-8859-1") + ITEM + "</rdf:RDF>", "says that it is not UTF-8"),
    "a line of Turtle": ("x.ttl", TRIPLE * 3 + "oh no", "this is not Turtle"),
    "a line of XML": ("x.owl", f"{HEAD}<a:p>\n<a:q></a:p>\n</rdf:RDF>", "this is not RDF/XML"),
}
LINES = {"a line of Turtle": 4, "a line of XML": 4}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, tmp_path: Path) -> None:
    name, text, problem = REFUSED[case]
    path = written(tmp_path, text, name)
    with pytest.raises(InputError, match=problem) as caught:
        triples(path)
    assert caught.value.path == path
    assert caught.value.fix
    if case in LINES:
        assert caught.value.line == LINES[case]
        assert line_of(only_file(path), is_about("http://x/99")) is None
