"""FHIR code systems: concepts, names, hierarchies and states; which of several is read; what is refused."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from importing import imported
from sample_fhir import code_system, concept, designation, properties, value_set, write_tar

from onoma.errors import InputError
from onoma.terminology import ImportReport, Terminology
from onoma.terminology.readers import fhir

SCT = "900000000000003001"
A = concept("a", "A")


def read(folder: Path, resource: object, name: str = "x.json", **options: Any) -> tuple[Terminology, ImportReport]:
    (folder / name).write_text(resource if isinstance(resource, str) else json.dumps(resource), encoding="utf-8")
    return imported("fhir", folder / name, folder / "out", **options)


def refused(folder: Path, resource: object, name: str = "x.json", **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(folder, resource, name, **options)
    return caught.value


def names(terminology: Terminology) -> dict[str, list[tuple[str, str, str]]]:
    """(text, language, term type), the preferred one first."""
    codes = terminology.concepts().collect()["concept_id"]
    found: dict[str, list[tuple[str, str, str]]] = {}
    rows = terminology.names().select("concept_row", "text", "language", "term_type").collect().rows()
    for row, *name in rows:
        found.setdefault(codes[row], []).append((name[0], name[1], name[2]))
    return found


def relations(terminology: Terminology) -> set[tuple[str, str, str]]:
    codes = terminology.concepts().collect()["concept_id"]
    rows = terminology.relations().select("head_row", "relation", "tail_row").collect().rows()
    assert len(set(rows)) == len(rows)
    return {(codes[head], relation, codes[tail]) for head, relation, tail in rows}


def states(terminology: Terminology) -> dict[str, tuple[str, str | None]]:
    rows = terminology.concepts().select("concept_id", "status", "replaced_by").collect().rows()
    return {code: (status, successor) for code, status, successor in rows}


def test_names_with_their_languages_and_uses(tmp_path: Path) -> None:
    terminology, report = read(
        tmp_path,
        code_system(
            concept(
                "I21",
                "Akuter Myokardinfarkt",
                designation=[
                    designation("Herzinfarkt"),
                    designation("Acute myocardial infarction", "EN", SCT),
                    designation("Infarctus", "fr_ch", "900000000000013009"),
                    designation("AMI", "de", "short-name", "Kurzname"),
                    designation("Infarto", "it", "123456", "Nome  breve"),
                    designation("Definition: ein Infarkt", "de", "definition"),
                    designation("Akuter Myokardinfarkt", "de", "preferredForLanguage"),
                ],
            ),
            language="de",
        ),
    )
    assert names(terminology) == {
        "I21": [
            ("Akuter Myokardinfarkt", "de", "label"),
            ("Herzinfarkt", "de", "designation"),
            ("Acute myocardial infarction", "en", "fully_specified_name"),
            ("Infarctus", "fr-CH", "synonym"),
            ("AMI", "de", "short-name"),
            ("Infarto", "it", "Nome breve"),
        ]
    }
    assert set(terminology.names().collect()["source"]) == {"X"}
    assert report.notes == {
        "designations that are definitions, left out": 1,
        "synonyms spelled as another name of their term, left out": 1,
    }


@pytest.mark.parametrize(
    ("display", "designations", "preferred"),
    [
        (None, [("b", "en", "x"), ("a", "de", "x")], ("a", "de")),
        (" ", [("a", "de", "x"), ("b", "de", "preferredForLanguage")], ("b", "de")),
        ("", [("a", "fr", "x"), ("b", "en", "preferredForLanguage")], ("b", "en")),
        ("c", [("b", "de", "preferredForLanguage")], ("c", "de")),
    ],
)
def test_preferred_name_of_a_concept_with_a_blank_display(
    display: str | None, designations: list[tuple[str, str, str]], preferred: tuple[str, str], tmp_path: Path
) -> None:
    one = concept("a", display, designation=[designation(*told) for told in designations])
    terminology, _ = read(tmp_path, code_system(one, concept("b", "B"), language="de"))
    assert names(terminology)["a"][0] == (*preferred, "label")
    assert len(names(terminology)["a"]) == len(designations) + bool((display or "").strip())


def test_concepts_without_any_name_are_counted(tmp_path: Path) -> None:
    retired = concept("c", None, property=properties(inactive__Boolean=True))
    content = code_system(concept("a", None, concept("b", "B")), retired)
    terminology, report = read(tmp_path, content)
    assert list(states(terminology)) == ["b", "c"]
    assert report.notes["concepts without a display or designation, left out"] == 1
    assert report.n_rejected == 0


def test_languages_wanted(tmp_path: Path) -> None:
    content = code_system(
        concept("a", "A", designation=[designation("Ä", "de-CH"), designation("À", "fr")]),
        concept("b", "B", designation=[designation("Bé", "fr")]),
    )
    terminology, report = read(tmp_path, content, languages="de")
    assert names(terminology) == {"a": [("Ä", "de-CH", "label")]}
    assert report.notes == {
        "names in other languages, left out": 4,
        "concepts without a display or designation in these languages, left out": 1,
    }
    assert names(read(tmp_path, content, languages="fr,en")[0])["b"] == [
        ("B", "en", "label"),
        ("Bé", "fr", "designation"),
    ]
    assert "nothing of 'it'" in str(refused(tmp_path, content, languages="it"))


@pytest.mark.parametrize(
    ("members", "options", "language", "n_notes"),
    [
        ({"language": "de-AT"}, {}, "de-AT", 0),
        ({"language": "de-AT"}, {"language": "fr"}, "fr", 0),
        ({"language": None}, {}, "en", 1),
        ({"language": None}, {"language": "de"}, "de", 0),
    ],
)
def test_language_of_displays(
    members: dict[str, Any], options: dict[str, str], language: str, n_notes: int, tmp_path: Path
) -> None:
    terminology, report = read(tmp_path, code_system(concept("a", "A"), **members), **options)
    assert names(terminology) == {"a": [("A", language, "label")]}
    assert len(report.notes) == n_notes
    error = refused(tmp_path, code_system(concept("a", "A"), language="german"))
    assert (error.field, error.found) == ("language", '"german"')


def test_hierarchy_by_nesting_and_by_properties(tmp_path: Path) -> None:
    content = code_system(
        concept(
            "a",
            "A",
            concept("b", "B", concept("c", "C", property=properties(parent__Code="b"))),
            concept("d", "D", property=properties(oberklasse__Code="e", teil__Code="b")),
            property=properties(child__Code="e"),
        ),
        concept("e", "E", property=properties(subsumedBy__Code="b", partOf__Code="c")),
        property=[
            {"code": "oberklasse", "uri": "http://hl7.org/fhir/concept-properties#parent", "type": "code"},
            {"code": "teil", "uri": "http://x.org/concept-properties#part", "type": "code"},
        ],
    )
    expected = {("b", "a"), ("c", "b"), ("d", "a"), ("d", "e"), ("e", "a"), ("e", "b")}
    terminology, _ = read(tmp_path, content)
    assert relations(terminology) == {(one, "is_a", two) for one, two in expected} | {("e", "part_of", "c")}
    assert list(states(terminology)) == ["a", "b", "c", "d", "e"]
    terminology, _ = read(tmp_path, dict(sorted({**content, "hierarchyMeaning": "part-of"}.items())))
    assert relations(terminology) == {(one, "part_of", two) for one, two in expected} | {("e", "part_of", "c")}


@pytest.mark.parametrize(
    ("told", "is_obsolete"),
    [
        ({"status__Code": "active"}, False),
        ({"status__Code": "deprecated"}, True),
        ({"STATUS__String": "DEPRECATED"}, True),
        ({"status__Code": "experimental"}, False),
        ({"status__Coding": {"system": "http://x.org", "code": "retired"}}, True),
        ({"inactive__Boolean": True}, True),
        ({"inactive__Boolean": False}, False),
        ({"deprecated__DateTime": "2020-01-01"}, True),
        ({"deprecated__Boolean": False}, False),
        ({"deprecated__Code": "2.7"}, True),
        ({"retirementDate__DateTime": "2020"}, True),
        ({"deprecationDate__DateTime": "2099", "status__Code": "active"}, False),
        ({"zustand__Code": "retired"}, True),
    ],
)
def test_which_concepts_are_obsolete(told: dict[str, Any], is_obsolete: bool, tmp_path: Path) -> None:
    declared = [{"code": "zustand", "uri": "http://hl7.org/fhir/concept-properties#status", "type": "code"}]
    terminology, _ = read(tmp_path, code_system(concept("a", "A", property=properties(**told)), property=declared))
    assert states(terminology) == {"a": ("obsolete" if is_obsolete else "active", None)}


def test_successors_further_codes_and_synonyms_among_the_properties(tmp_path: Path) -> None:
    old = properties(status__Code="retired", replacedBy__Code="a")
    content = code_system(
        concept("a", "A", property=properties(synonymCode__Code="a1", synonym__String="Alpha", Kind__String="letter")),
        concept("old", "Old", property=old),
        concept("A", "another", property=properties(Kind__Coding={"code": "other"})),
    )
    terminology, _ = read(tmp_path, content, semantic_types="Kind")
    assert states(terminology) == {
        "a": ("active", None),
        "old": ("obsolete", "a"),
        "A": ("active", None),
        "a1": ("obsolete", "a"),
    }
    assert names(terminology)["a"] == [("A", "en", "label"), ("Alpha", "en", "synonym")]
    types = terminology.concepts().collect()["semantic_types"].to_list()
    assert types == [["letter"], [], ["other"], []]
    assert "has nothing of 'kind'. Did you mean 'Kind'?" in str(refused(tmp_path, content, semantic_types="kind"))


def test_concepts_that_only_group(tmp_path: Path) -> None:
    content = code_system(concept("a", "A", concept("b", "B"), property=properties(notSelectable__Boolean=True)))
    assert relations(read(tmp_path, content)[0]) == {("b", "is_a", "a")}
    terminology, report = read(tmp_path, content, not_selectable="no")
    assert list(states(terminology)) == ["b"]
    assert report.notes == {
        "concepts that only group others, left out": 1,
        "relations of concepts that a filter left out": 1,
    }


def supplement(*concepts: Any, **members: Any) -> dict[str, Any]:
    told = {"url": "http://x.org/it", "name": "It", "content": "supplement", "supplements": "http://x.org/cs"}
    return code_system(*concepts, **{**told, "language": "it", **members})


def test_supplements(tmp_path: Path) -> None:
    italian = supplement(concept("a", "Ah", designation=[designation("Aha", "it-CH")]), concept("z", "Zeta"))
    newer = supplement(concept("a", "nuovo"), url="http://x.org/newer", supplements="http://x.org/cs|3")
    bundle = {
        "resourceType": "Bundle",
        "entry": [{"resource": one} for one in (italian, code_system(concept("a", "A"), version="2"), newer)],
    }
    terminology, report = read(tmp_path, bundle)
    assert names(terminology) == {"a": [("A", "en", "label"), ("Ah", "it", "display"), ("Aha", "it-CH", "designation")]}
    assert report.notes == {
        "supplements of other versions of the code system, left out": 1,
        "codes of supplements that the code system does not have, left out": 1,
    }
    terminology, report = read(tmp_path, italian)
    assert names(terminology)["a"] == [("Ah", "it", "label"), ("Aha", "it-CH", "designation")]
    assert report.notes == {"concepts of a supplement to http://x.org/cs, to be merged with it": 2}


@pytest.mark.parametrize("content", ["fragment", "example"])
def test_a_part_of_a_code_system(content: str, tmp_path: Path) -> None:
    one = concept("a", "A", property=properties(parent__Code="elsewhere"))
    _, report = read(tmp_path, code_system(one, content=content))
    assert report.notes == {
        f"concepts of what is only a part of the code system (content: {content})": 1,
        "relations to or from terms that are not among the concepts, left out": 1,
    }


def test_concepts_that_are_counted_and_missing(tmp_path: Path) -> None:
    _, report = read(tmp_path, code_system(concept("a", "A", concept("b", "B")), count=5))
    assert report.notes == {"concepts that the code system counts and does not have": 3}


def contained(code: str, display: str, system: str = "http://x.org/cs", **members: Any) -> dict[str, Any]:
    return {"system": system, "code": code, "display": display, **members}


def test_expansions(tmp_path: Path) -> None:
    pages = [
        value_set(
            {"display": "a group", "abstract": True, "contains": [contained("a", "A", version="7")]},
            contained("b", "B", inactive=True, contains=[contained("c", "C")]),
            contained("1", "one", "http://x.org/other/"),
            total=5,
        ),
        value_set(contained("d", "D", designation=[designation("Dé", "fr")]), total=5),
    ]
    (tmp_path / "pages").mkdir()
    for number, page in enumerate(pages):
        (tmp_path / "pages" / f"{number}.json").write_text(json.dumps({**page, "language": "de"}))

    def run(**options: str) -> tuple[Terminology, ImportReport]:
        return imported("fhir", tmp_path / "pages", tmp_path / "out", **options)

    terminology, report = run(code_system="http://x.org/cs")
    assert states(terminology) == {
        code: ("obsolete" if code == "b" else "active", None) for code in ("a", "b", "c", "d")
    }
    assert relations(terminology) == {("c", "is_a", "b")}
    assert names(terminology)["d"] == [("D", "de", "label"), ("Dé", "fr", "designation")]
    assert set(terminology.names().collect()["source"]) == {"cs"}
    assert terminology.manifest.config["release"] == "7"
    assert report.notes == {
        "groups of an expansion, which have no code, left out": 1,
        "concepts of other code systems, left out": 1,
    }
    assert list(states(run(code_system="http://x.org/other/")[0])) == ["1"]
    with pytest.raises(InputError, match="2 code systems here") as caught:
        run()
    assert "--set code_system='http://x.org/cs'" in str(caught.value)
    assert "http://x.org/vs (codes of http://x.org/other/), 1 concept" in str(caught.value)


def test_codes_that_stand_in_an_expansion_again(tmp_path: Path) -> None:
    again = contained("c", "C", property=properties(ober__Code="d"))
    content = value_set(
        contained("a", "A", contains=[again]),
        contained("b", "B", contains=[again]),
        contained("d", "D"),
        property=[{"code": "ober", "uri": "http://hl7.org/fhir/concept-properties#parent"}],
    )
    terminology, report = read(tmp_path, content, language="en")
    assert relations(terminology) == {("c", "is_a", "a"), ("c", "is_a", "b"), ("c", "is_a", "d")}
    assert report.notes == {"concepts that stand in an expansion again": 1}


def test_names_are_on_one_line(tmp_path: Path) -> None:
    one = concept("a", " A\r\n  and b ", designation=[designation("a\n")], property=properties(synonym__String="b\nc"))
    assert [text for text, *_ in names(read(tmp_path, code_system(one))[0])["a"]] == ["A and b", "a", "b c"]


@pytest.mark.parametrize(
    ("members", "source"),
    [
        ({"name": "N", "id": "i"}, "N"),
        ({"name": None, "id": "i"}, "i"),
        ({"name": None}, "cs"),
        ({"name": None, "url": "urn:oid:1.2.3"}, "1.2.3"),
        ({"name": None, "url": None}, "FHIR"),
    ],
)
def test_source_of_the_names(members: dict[str, Any], source: str, tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, code_system(A, **members))
    assert set(terminology.names().collect()["source"]) == {source}


def test_codes_of_an_expansion_without_a_system(tmp_path: Path) -> None:
    terminology, _ = read(
        tmp_path,
        value_set(
            {"code": "a", "display": "A"}, parameter=[{"name": "displayLanguage", "valueCode": "de-CH,de;q=0.5"}]
        ),
    )
    assert names(terminology) == {"a": [("A", "de-CH", "label")]}


def test_one_of_several_code_systems(tmp_path: Path) -> None:
    def of(letter: str, version: str) -> dict[str, Any]:
        head = {"url": f"http://x.org/{letter}", "id": f"id-{letter}", "name": letter.upper(), "version": version}
        return code_system(concept(f"{letter}{version}", "name"), **head)

    resources = [of("a", "1"), of("a", "2"), of("b", "1"), code_system(url="http://x.org/n", content="not-present")]
    files = {f"package/{number}.json": json.dumps(one).encode() for number, one in enumerate(resources)}
    files["package/x.json"] = gzip.compress(b'{"resourceType": "ConceptMap"}')
    files["package/odd.json"] = b'{"nothing": "of FHIR"}'
    package = write_tar(tmp_path / "package.tgz", files)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    for source in (package, tmp_path / "x.zip"):
        for wanted, code in (("http://x.org/a|2", "a2"), ("http://x.org/b", "b1"), ("id-b", "b1"), ("B", "b1")):
            terminology, _ = imported("fhir", source, tmp_path / "out", code_system=wanted)
            assert list(states(terminology)) == [code]
        for wanted, problem in (
            (
                "",
                r"3 code systems here; expected one of them: http://x.org/a\|1, 1 concept; http://x.org/a\|2.*"
                r"code_system='http://x.org/a\|1'",
            ),
            ("A", r"2 code systems here.*--set code_system='http://x.org/a\|1'"),
            ("http://x.org/bb", "no code system 'http://x.org/bb'.*Did you mean 'http://x.org/b'"),
            ("http://x.org/n", "published without its concepts"),
        ):
            with pytest.raises(InputError, match=problem):
                imported("fhir", source, tmp_path / "out", code_system=wanted)


def test_copies_of_a_code_system_are_told_by_their_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.json", "b.json"):
        (tmp_path / "in" / name).write_text(json.dumps(code_system(concept("a", "A"))))
    with pytest.raises(InputError, match=r"2 code systems here.*name the file of one of them"):
        imported("fhir", tmp_path / "in", tmp_path / "out")
    assert list(states(imported("fhir", tmp_path / "in" / "b.json", tmp_path / "out")[0])) == ["a"]


def test_nested_concepts_of_xml(tmp_path: Path) -> None:
    body = (
        '<CodeSystem xmlns="http://hl7.org/fhir"><text><div xmlns="http://www.w3.org/1999/xhtml"><p>x</p></div></text>'
        '<language value="de"/><concept><code value="a"/><display value="A"/><concept><code value="b"/>'
        '<display value="B &amp; b"><extension url="u"><valueString value="c"/></extension></display><property>'
        '<code value="notSelectable"/><valueBoolean value="true"/></property></concept></concept></CodeSystem>'
    )
    bundle = (
        '<Bundle xmlns="http://hl7.org/fhir"><entry><resource><Patient><id value="p"/></Patient></resource></entry>'
        f"<entry><resource>{body}</resource></entry></Bundle>"
    )
    for text in (body, bundle):
        terminology, report = read(tmp_path, text, "x.xml")
        assert names(terminology) == {"a": [("A", "de", "label")], "b": [("B & b", "de", "label")]}
        assert relations(terminology) == {("b", "is_a", "a")}
        assert report.notes == {}
        assert list(states(read(tmp_path, text, "x.xml", not_selectable="no")[0])) == ["a"]
    expansion = (
        '<ValueSet xmlns="http://hl7.org/fhir"><expansion><parameter><name value="displayLanguage"/>'
        '<valueCode value="fr"/></parameter><contains><system value="s"/><code value="a"/><display value="A"/>'
        '<contains><system value="s"/><inactive value="true"/><code value="b"/><display value="B"/></contains>'
        "</contains></expansion></ValueSet>"
    )
    terminology, _ = read(tmp_path, expansion, "x.xml")
    assert names(terminology) == {"a": [("A", "fr", "label")], "b": [("B", "fr", "label")]}
    assert states(terminology)["b"] == ("obsolete", None)
    assert relations(terminology) == {("b", "is_a", "a")}


@pytest.mark.parametrize(
    ("second", "field", "told"),
    [
        ({"display": "B"}, "concept.code", "expected a code; found concept[1].code: null"),
        ({"code": " ", "display": "B"}, "concept.code", 'expected a code; found concept[1].code: " "'),
        (
            concept("a", "B"),
            "concept.code",
            "a code that occurred before; expected each code once; found concept[1].code",
        ),
        ({"code": 7}, "concept.code", "expected a valid string; found concept[1].code: 7"),
        (
            concept("b", "B", designation=[{"language": "de"}]),
            "concept.designation.value",
            "found concept[1].designation[0].value",
        ),
        (
            concept("b", "B", designation=[designation("x", "german")]),
            "concept.designation.language",
            'this is no language; expected a BCP 47 tag, e.g. de; found concept[1].designation[0].language: "german"',
        ),
        ("b", "concept", 'found concept[1]: "b"'),
        ({**concept("b", "B"), "concept": {"code": "c"}}, "concept.concept", "expected an array of concept"),
        (concept("b", "B", 7), "concept.concept", "found concept[1].concept[0]: 7"),
        (concept("b", "B", property=properties(parent__Code="z")), None, "found b is_a z"),
        (concept("b", "B", property=properties(parent__Code="b")), "parent", "in a circle.*found b is_a b"),
    ],
)
def test_bad_concepts(second: Any, field: str | None, told: str, tmp_path: Path) -> None:
    content = code_system(A, second, concept("last", "L"))
    error = refused(tmp_path, json.dumps(content, indent=1))
    assert error.field == field
    assert error.line == json.dumps(content, indent=1)[: json.dumps(content, indent=1).index('"A"')].count("\n") + 3
    for part in told.split(".*"):
        assert part in str(error)
    terminology, report = read(tmp_path, content, on_error="skip")
    assert report.n_rejected == 1
    assert {"a", "last"} <= states(terminology).keys()


def test_circles_of_several_concepts(tmp_path: Path) -> None:
    content = code_system(
        concept("a", "A", property=properties(parent__Code="b")),
        concept("b", "B", property=properties(parent__Code="c")),
        concept("c", "C", property=properties(parent__Code="a")),
        concept("d", "D", property=properties(parent__Code="c")),
    )
    assert "a is_a b" in str(refused(tmp_path, content))
    terminology, report = read(tmp_path, content, on_error="skip")
    assert relations(terminology) == {("d", "is_a", "c")}
    assert report.n_rejected == 3


def test_what_is_on_a_circle() -> None:
    tree = [("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")]
    assert fhir._circular(tree) == []
    assert fhir._circular([*tree, ("x", "y"), ("y", "x"), ("x", "d"), ("e", "x")]) == [("x", "y"), ("y", "x")]


@pytest.mark.parametrize(
    ("resource", "problem"),
    [
        ({"resourceType": "ConceptMap"}, "no code system in it, but ConceptMap"),
        ({"resourceType": "ValueSet", "compose": {}}, r"only says which codes belong to it.*\$expand"),
        ({"resourceType": "Bundle", "entry": [{"fullUrl": "x"}]}, "there is no FHIR code system"),
        ({"resourceType": "OperationOutcome", "issue": [{"code": "not-found"}]}, 'server answers.*"not-found"'),
        (code_system(content="not-present"), r"published without its concepts \(content: not-present\).*\$expand"),
        (code_system(), "the code system has no concepts.*_summary=false"),
        ({"hello": "world"}, "there is no FHIR code system.*resourceType"),
        ([], "there is no FHIR code system"),
        ("text", "this is not JSON"),
        (json.dumps(code_system(A))[:-30], "the JSON is cut off"),
        ({**code_system(), "concept": "a"}, 'field concept.*found concept: "a"'),
    ],
)
def test_what_has_no_code_system_in_it(resource: Any, problem: str, tmp_path: Path) -> None:
    for on_error in ("strict", "skip"):
        with pytest.raises(InputError) as caught:
            read(tmp_path, resource, on_error=on_error)
    error = refused(tmp_path, resource)
    assert caught.value.path == error.path == tmp_path / "x.json"
    assert re.search(problem, str(error))


def test_xml_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.files.xml_files._MAX_BYTES_BETWEEN", 1000)
    monkeypatch.setattr("onoma.files.xml_files._BLOCK_BYTES", 1000)
    concepts = "".join(f'<concept><code value="{i}"/><display value="{i}"/></concept>' for i in range(100))
    text = f'<CodeSystem xmlns="http://hl7.org/fhir">{concepts}</CodeSystem>'
    assert "get it as JSON" in str(refused(tmp_path, text, "x.xml"))


def test_of_many_code_systems_some_are_listed(tmp_path: Path) -> None:
    def of(number: int) -> dict[str, Any]:
        url = f"http://terminology.example.org/CodeSystem/a-long-name-{number}"
        return {"resource": code_system(A, url=url, id=str(number), name=f"N{number}", version="1.0.0")}

    error = refused(tmp_path, {"resourceType": "Bundle", "entry": [of(number) for number in range(1000)]})
    assert "there are 1,000 code systems here" in str(error)
    assert "a-long-name-5|1.0.0, 1 concept; and 994 more. To mend it" in str(error)
