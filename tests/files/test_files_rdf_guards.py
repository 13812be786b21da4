from __future__ import annotations

import itertools
import json
from typing import Any

import pyoxigraph
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat

from onoma.files import rdf_guards
from onoma.files.rdf_guards import Guard, JsonGuard, TripleTermGuard, XmlGuard, XmlTexts

MOST = 8
HEAD = '<!DOCTYPE rdf:RDF [<!ENTITY o "http://o#">]>\n<rdf:RDF xmlns:a="http://a#" xmlns:b="http://b#" '
HEAD += 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
VALUES = ("'1'", '"/>"', "'></a:p>'", '"></a:p></rdf:Description>"', "'\"' a:r=\"'></a:p>'\"", '"<a:p><b:p>"', '"="')
BETWEEN = (
    "",
    "\n",
    "<!-- </a:p> <a:p> -->",
    "<?x <a:p> </a:p> ?>",
    '<!DOCTYPE x [<!FOO "</a:p>"> <!BAR " > ]>',
    "<!DOCTYPE x [<!FOO '<b \">]]>>",
)
TEXTS = ("", "a /> b > c", " =\"/> '", "Crohn's \"disease", "<![CDATA[</a:p></rdf:Description><a:p>]]>", "&o;")
NAMES = ("a:p", "a:p/ ", "a:p</b", 'b:"', "b:p/x")
"""The parser takes them all, though XML lets no name have these signs."""
LEVELS = st.tuples(*map(st.sampled_from, (BETWEEN, VALUES, BETWEEN, NAMES, VALUES, TEXTS, BETWEEN)), st.integers(0, 2))


def level(between: str, value: str, within: str, name: str, other: str, text: str, last: str, n_empty: int) -> str:
    """A node with properties, the last of which is open."""
    closed = f"<{name}>{text}</{name.rstrip(' ')}>" if '"' not in name else ""
    return f"{between}<rdf:Description a:q={value} >{within}{closed}{f'<b:e a:q={other}/>' * n_empty}<b:p >{last}"


def problem_of(guard: Guard, text: bytes, n_bytes: int) -> str | None:
    return next(filter(None, (guard.problem(text[at : at + n_bytes]) for at in range(0, len(text), n_bytes))), None)


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for what in rdf_guards.MAX_DEPTH:
        monkeypatch.setitem(rdf_guards.MAX_DEPTH, what, MOST)


@settings(max_examples=200)
@given(levels=st.lists(LEVELS, min_size=1, max_size=6), n_closed=st.integers(0, 6), n_bytes=st.integers(1, 400))
def test_depth_of_xml_whatever_stands_in_it(levels: list[Any], n_closed: int, n_bytes: int) -> None:
    n_closed = min(n_closed, len(levels))
    end = "</b:p></rdf:Description >"
    said = HEAD + "".join(level(*one) for one in levels) + end * n_closed
    depth = 1 + 2 * (len(levels) - n_closed)
    plain = XmlTexts().plain((said + end * (len(levels) - n_closed) + "</rdf:RDF>\n").encode())
    assert list(pyoxigraph.parse(plain, format=RdfFormat.RDF_XML, lenient=True))  # as deep as is said here
    problem = problem_of(XmlGuard(), XmlTexts().plain(said.encode()), n_bytes)
    if depth > MOST:
        assert problem == "XML nested more than 8 deep"
    if 1 + 2 * len(levels) + 1 <= MOST:
        assert problem is None


BEFORE = (
    "",
    '<?xml version="1.0"?>',
    "<!DOCTYPE r>",
    '<?xml version="1.0"?>\n<!DOCTYPE r [\n<!ENTITY a "</b>">]>',
    "<a/ ></a/><a/ ></a/>",
    "<a></a><a b='>'></a>",
)


@pytest.mark.parametrize("n_bytes", [1, 2, 7, 1000])
@pytest.mark.parametrize("before", BEFORE)
def test_depth_of_xml_to_the_element(before: str, n_bytes: int) -> None:
    for opening in (b"<a>", b"<a b='>'>", b"<a>x > y"):
        said = before.encode() + opening * MOST
        assert problem_of(XmlGuard(), said, n_bytes) is None
        assert problem_of(XmlGuard(), said + opening, n_bytes) == "XML nested more than 8 deep"


@pytest.mark.parametrize("n_bytes", [1, 10, 99, 100, 101, 1000])
@pytest.mark.parametrize("text", ["{}<a/>", "<a>{}</a>", "<a><b/>{}", "<a>{}"])
def test_texts_without_end(text: str, n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdf_guards, "MAX_TEXT_BYTES", 100)
    for length in (90, 101):  # with the tag before it
        problem = problem_of(XmlGuard(), text.format("x" * length).encode(), n_bytes)
        assert (problem is None) == (length == 90), problem


@pytest.mark.parametrize("n_bytes", [1, 10, 99, 1000])
def test_a_tag_without_end(n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser lets a value have tags in it, which would be looked at over and over."""
    monkeypatch.setattr(rdf_guards, "MAX_TEXT_BYTES", 100)
    for count in (20, 60):
        problem = problem_of(XmlGuard(), b"<a b='" + b"<c>" * count, n_bytes)
        assert (problem is None) == (count == 20), problem


@pytest.mark.parametrize(
    ("entity", "is_refused"),
    [
        (f'<!ENTITY a "{"x" * 400}">', False),
        (f"<!ENTITY a '{'x' * 400}'>", False),
        (f'<!ENTITY a "{"x" * 401}">', True),
        ('<!ENTITY a "&#x41;&lt;&amp;">', False),
        ('<!ENTITY a "&b;">', True),
        ('<!ENTITY % a "x">', True),
        ('<!ENTITY a SYSTEM "file:///x">', True),
        ('<!ENTITY a PUBLIC "-//x" "http://x">', True),
        (f'<!ENTITY a "{"x" * 2000}', True),
    ],
)
def test_entities(entity: str, is_refused: bool) -> None:
    for n_bytes in (1, 3, 100, 10_000):
        problem = problem_of(XmlGuard(), f"<!DOCTYPE r [{entity}]><r/>".encode(), n_bytes)
        assert (problem is not None) == is_refused, n_bytes


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 5, 1000])
def test_texts_with_ends_of_tags_in_them_are_counted_in_whole_blocks(n_bytes: int) -> None:
    said = b"<a>x /> y<b/>a > b<c d='1' /></a>" * (3 * MOST)
    assert problem_of(XmlGuard(), said, n_bytes) is None
    assert problem_of(XmlGuard(), b"<a>x /> y<b/>" * (MOST + 1), n_bytes) == "XML nested more than 8 deep"


def test_an_entity_that_comes_in_two_pieces() -> None:
    said = b'<!DOCTYPE a [ <!ENTITY b "' + b"x" * 500 + b'"> ]><a>'
    for at in range(10, len(said)):
        guard = XmlGuard()
        problems = [guard.problem(said[:at]), guard.problem(said[at:])]
        assert any("an entity" in (problem or "") for problem in problems), at


@given(
    parts=st.lists(st.sampled_from(["<", ">", "!", "--", "?", "[CDATA[", "]]>", "<!--", "-->", "<?", "?>", "a&"])),
    cuts=st.lists(st.integers(0, 60)),
)
def test_texts_are_the_same_wherever_a_block_ends(parts: list[str], cuts: list[int]) -> None:
    said = "".join(["<r>", *parts]).encode()
    places = sorted({0, len(said), *(cut for cut in cuts if cut < len(said))})
    cut_up, whole = XmlTexts(), XmlTexts()
    pieces = [cut_up.plain(said[begin:end]) for begin, end in itertools.pairwise(places)]
    closed = b"-->]]>?><z>"  # ends whatever is open, and what was held back comes out
    assert b"".join([*pieces, cut_up.plain(closed)]) == whole.plain(said) + whole.plain(closed)
    assert cut_up.is_open == whole.is_open


def terms(depth: int, after: str) -> bytes:
    return f"<a:s> <a:p> {f'<<( <a:s> <a:p> {after} ' * depth}<a:o> {')>>' * depth} .\n".encode()


@pytest.mark.parametrize("n_bytes", [1, 2, 5, 1000])
def test_triples_within_triples(n_bytes: int) -> None:
    assert problem_of(TripleTermGuard(), terms(MOST, ""), n_bytes) is None
    problem = problem_of(TripleTermGuard(), terms(MOST + 1, ""), n_bytes)
    assert problem == "triples within triples nested more than 8 deep"


@pytest.mark.parametrize("hidden", ["# )>>\n", '"""x )>> """ '])
def test_triples_whose_ends_are_only_seeming(hidden: str) -> None:
    said = terms(MOST + 1, hidden)
    assert problem_of(TripleTermGuard(), said, 30) == "triples within triples nested more than 8 deep"
    guard = TripleTermGuard()
    for triple in [terms(1, "")] * (3 * MOST):  # which the parser makes triples of
        assert guard.problem(triple) is None
        guard.has_triple = True
    assert problem_of(guard, said, 30) == "triples within triples nested more than 8 deep"


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


JSON = st.recursive(
    st.one_of(st.integers(), st.text(alphabet='[]{}"\\a', max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=2)
    ),
    max_leaves=30,
)


@given(value=JSON, n_around=st.integers(0, MOST), n_bytes=st.integers(1, 50))
@example(value="\\", n_around=MOST, n_bytes=1)
@example(value='"[' * 20, n_around=MOST, n_bytes=7)
def test_depth_of_json(value: object, n_around: int, n_bytes: int) -> None:
    for _ in range(n_around):
        value = [value]
    problem = problem_of(JsonGuard(), json.dumps(value).encode(), n_bytes)
    assert problem == ("JSON nested more than 8 deep" if depth_of(value) > MOST else None)
