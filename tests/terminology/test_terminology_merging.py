from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_terminologies import Name, Record, content, record, small_terminologies, tables, write

from onoma.artifacts import write_artifact
from onoma.errors import ArtifactExistsError, ConfigError, InputError, NotAnArtifactError
from onoma.terminology import Terminology, import_terminology, merge_terminologies
from onoma.terminology.merging import tables as merged_tables

TERMINOLOGY = small_terminologies()
Place = pytest.TempPathFactory


def merged(parts: list[list[Record]], factory: Place, **options: object) -> Path:
    folder = factory.mktemp("merge")
    written = [write(folder / f"part{number}", part) for number, part in enumerate(parts)]
    merge_terminologies(written, folder / "out", **options)  # type: ignore[arg-type]
    return folder / "out"


def united(parts: list[list[Record]]) -> list[Record]:
    """Concepts, names and definitions of what a merge without joining is: an oracle over plain lists."""
    codes = dict.fromkeys(entry.code for part in parts for entry in part)
    whole = []
    for code in codes:
        records = [entry for part in parts for entry in part if entry.code == code]
        names: list[Name] = []
        definitions: list[tuple[str, str]] = []
        for number, entry in enumerate(records):
            earlier = {name[:4] for other in records[:number] for name in other.names}
            names += [name for name in entry.names if name[:4] not in earlier]
            told = {text for other in records[:number] for text in other.definitions}
            definitions += [text for text in entry.definitions if text not in told]
        whole.append(
            Record(
                code,
                names,
                list(dict.fromkeys(kind for entry in records for kind in entry.types)),
                records[0].status,
                records[0].replaced_by,
                definitions=definitions,
            )
        )
    return whole


def related(parts: list[list[Record]]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Relations and cross-references by code, distinct, in the order of the parts."""
    relations, references = [], []
    for part in parts:
        codes = {entry.code for entry in part}
        for entry in part:
            relations += [(entry.code, kind, tail, source) for kind, tail, source in entry.relations if tail in codes]
            references += [(entry.code, *reference) for reference in entry.references]
    return list(dict.fromkeys(relations)), list(dict.fromkeys(references))


@settings(max_examples=15)
@given(parts=st.lists(TERMINOLOGY, min_size=1, max_size=3))
def test_a_merge_is_the_union(parts: list[list[Record]], tmp_path_factory: Place) -> None:
    found = content(merged(parts, tmp_path_factory))
    wanted = tables(united(parts))
    assert found["concepts"] == wanted.concepts.rows()
    assert found["names"] == wanted.names.rows()
    assert sorted(found["definitions"], key=lambda row: row[:1]) == wanted.definitions.rows()
    code = [str(row[0]) for row in found["concepts"]]
    relations, references = related(parts)
    assert [(code[row[0]], row[1], code[row[2]], row[3]) for row in found["relations"]] == relations  # type: ignore[call-overload]
    assert [(code[row[0]], *row[1:]) for row in found["cross_references"]] == references  # type: ignore[call-overload]


@settings(max_examples=6)
@given(parts=st.lists(TERMINOLOGY, min_size=3, max_size=3))
def test_merging_is_idempotent_and_associative(parts: list[list[Record]], tmp_path_factory: Place) -> None:
    folder = tmp_path_factory.mktemp("merge")
    a, b, c = (write(folder / name, part) for name, part in zip("abc", parts, strict=True))

    def merge(*folders: Path) -> Path:
        out = folder / f"({'+'.join(path.name for path in folders)})"
        merge_terminologies(folders, out)
        return out

    assert content(merge(a)) == content(a)
    assert content(merge(a, write(folder / "copy", parts[0]))) == content(a)
    all_at_once = content(merge(a, b, c))
    assert content(merge(merge(a, b), c)) == all_at_once
    assert content(merge(a, merge(b, c))) == all_at_once


def test_names_are_united_in_runs_as_in_one(tmp_path_factory: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [[record(f"A:{n}", *f"{n}{part}xyz"[: n % 4]) for n in range(20)] for part in "pq"]
    whole = content(merged(parts, tmp_path_factory))
    monkeypatch.setattr(merged_tables, "_NAMES_AT_ONCE", 3)
    assert content(merged(parts, tmp_path_factory)) == whole


def test_who_has_the_say(tmp_path: Path) -> None:
    first = write(
        tmp_path / "first",
        [
            record("X:1", "Heart attack", types=["disease"]),
            record("X:2", status="obsolete", replaced_by="X:1"),
            record("X:3", "Angina"),
        ],
    )
    second = write(
        tmp_path / "second",
        [
            record("X:9", "Stroke", relations=[("is_a", "X:1", "S")]),
            record("X:1", "Infarct", "Heart attack", types=["finding", "disease"], status="obsolete"),
            record("X:2", "Cardiac failure"),
        ],
    )
    report = merge_terminologies([first, second], tmp_path / "out")
    out = Terminology.open(tmp_path / "out")
    assert out.concepts().collect()["concept_id"].to_list() == ["X:1", "X:2", "X:3", "X:9"]
    one, two = out.concept("X:1"), out.concept("X:2")
    assert (one.preferred_name, one.names, one.status) == ("Heart attack", ("Heart attack", "Infarct"), "active")
    assert one.semantic_types == ("disease", "finding")
    assert (two.preferred_name, two.status, two.replaced_by) == ("Cardiac failure", "obsolete", "X:1")
    assert out.names().filter("is_preferred").collect()["text"].to_list() == [
        "Heart attack",
        "Cardiac failure",
        "Angina",
        "Stroke",
    ]
    assert (report.n_shared, report.n_strangers, report.n_joined) == (2, 0, 0)
    assert [(part.n_concepts, part.n_shared) for part in report.parts] == [(3, 0), (3, 2)]
    assert report.notes == {
        "names that an earlier terminology had": 1,
        "concepts that a later terminology has as active: obsolete, as the first says": 1,
        "concepts that a later terminology has as obsolete: active, as the first says": 1,
    }
    assert out.manifest.parents == tuple(Terminology.open(path).manifest.as_parent() for path in (first, second))
    assert out.manifest.config["merged"] == ["first", "second"]
    assert out.search("stroke")[0].concept_id == "X:9"
    assert out.info().n_relations == 1
    assert json.loads(json.dumps(dataclasses.asdict(report), default=str))["n_names"] == 5


def test_codes_that_mean_different_things_are_kept_apart(tmp_path: Path) -> None:
    ours = write(tmp_path / "ours", [record("1", "heart"), record("2", "lung")])
    theirs = write(
        tmp_path / "theirs",
        [
            record("1", "apple", relations=[("is_a", "2", "S")], references=[("1", "xref", "S")]),
            record("2", "Lung", "pear"),
            record("3", status="obsolete", replaced_by="1"),
            record("4", status="obsolete", replaced_by="7"),
        ],
    )
    report = merge_terminologies([ours, theirs], tmp_path / "one")
    assert (report.n_shared, report.n_strangers) == (2, 1)
    assert "1 of 2 shared codes have no name in common" in str(report)
    assert "--prefix" in str(report)

    report = merge_terminologies([ours, theirs], tmp_path / "two", prefixes={"theirs": "T:"})
    assert (report.n_shared, report.n_strangers) == (0, 0)
    out = Terminology.open(tmp_path / "two")
    concepts = out.concepts().collect()
    assert concepts["concept_id"].to_list() == ["1", "2", "T:1", "T:2", "T:3", "T:4"]
    assert concepts["replaced_by"].to_list() == [None, None, None, None, "T:1", "7"]
    assert out.relations().collect().rows() == [(2, "is_a", 3, "S")]
    assert out.cross_references().collect().rows() == [(2, "1", "xref", "S")]
    assert out.manifest.config["prefixes"] == {"theirs": "T:"}
    by_path = merge_terminologies([ours, theirs], tmp_path / "three", prefixes={str(theirs): "T:"})
    assert content(tmp_path / "three") == content(tmp_path / "two")
    assert by_path.n_concepts == 6


def test_a_code_of_a_table_gets_the_prefix_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,name\nK|2,cold\nK|3,flu\n")
    import_terminology("table", tmp_path / "t.csv", tmp_path / "ours", options={"id": "id", "name": "name"})
    theirs = write(tmp_path / "theirs", [record("T1", "cough")])
    merge_terminologies([tmp_path / "ours", theirs], tmp_path / "out", prefixes={"ours": "O:"})
    concepts = Terminology.open(tmp_path / "out").concepts().collect()
    assert concepts["concept_id"].to_list() == ["O:K|2", "O:K|3", "T1"]


def test_each_of_a_concepts_codes_gets_the_prefix(tmp_path: Path) -> None:
    ours = write(
        tmp_path / "ours", [record("a|b", "asthma"), record("c", "cold", status="obsolete", replaced_by="a|b")]
    )
    theirs = write(tmp_path / "theirs", [record("b", "bronchitis")])
    merge_terminologies([ours, theirs], tmp_path / "out", prefixes={"ours": "O:"})
    concepts = Terminology.open(tmp_path / "out").concepts().collect()
    assert concepts["concept_id"].to_list() == ["O:a|O:b", "O:c", "b"]
    assert concepts["replaced_by"].to_list() == [None, "O:a|O:b", None]
    odd = write(tmp_path / "odd", [record("a|", "asthma"), record("|d e", "cold"), record("x | $y", "lung")])
    merge_terminologies([odd, theirs], tmp_path / "two", prefixes={"odd": "$1:"})
    found = Terminology.open(tmp_path / "two").concepts().collect()["concept_id"].to_list()
    assert found == ["$1:a|", "|$1:d e", "$1:x | $1:$y", "b"]


def test_a_circle_of_successors_is_broken(tmp_path: Path) -> None:
    one = write(tmp_path / "one", [record("X:1", status="obsolete", replaced_by="X:2")])
    two = write(
        tmp_path / "two", [record("X:2", status="obsolete", replaced_by="X:1"), record("X:3", replaced_by="X:1")]
    )
    report = merge_terminologies([one, two], tmp_path / "out")
    assert Terminology.open(tmp_path / "out").concepts().collect()["replaced_by"].to_list() == [None, None, "X:1"]
    assert report.notes == {"successions that went round in a circle, dropped": 2}


def test_the_same_parts_give_the_same_folder(tmp_path: Path) -> None:
    parts = [write(tmp_path / name, [record("X:1", name), record(f"Y:{name}", "y")]) for name in ("a", "b")]
    for name in ("one", "two"):
        merge_terminologies(parts, tmp_path / name)
    first, second = (Terminology.open(tmp_path / name).manifest for name in ("one", "two"))
    assert first.fingerprint == second.fingerprint
    assert first.config == second.config


def test_what_cannot_be_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (write(tmp_path / name, [record("X:1", "x")]) for name in ("a", "b"))
    with write_artifact(tmp_path / "linker", "linker"):
        pass
    monkeypatch.chdir(tmp_path)

    def refused(
        error: type[Exception], said: str, *folders: str | Path, out: str | Path = "out", **rest: object
    ) -> None:
        with pytest.raises(error, match=said):
            merge_terminologies(list(folders), out, **rest)  # type: ignore[arg-type]
        assert not (tmp_path / "out").exists()

    refused(InputError, "nothing to merge")
    refused(InputError, "given twice", a, b, "./b/../a")
    refused(InputError, "there is nothing here", a, "nowhere")
    refused(NotAnArtifactError, "linker", a, "linker")
    refused(InputError, "where one of its parts lies", a, b, out="b/inner")
    refused(InputError, "where one of its parts lies", a, b, out=b, overwrite=True)
    refused(ArtifactExistsError, "exists already", a, out=b)
    refused(ConfigError, r"by 'exactmatch'.*Did you mean 'exactMatch'", a, b, join_by_cross_references=["exactmatch"])
    refused(ConfigError, "by 'broadMatch'", a, b, join_by_cross_references=["broadMatch"])
    refused(ConfigError, "Known: prefixes, exact", a, b, match_codes="loose")
    refused(ConfigError, "no terminology 'aa' to give a prefix.*Did you mean 'a'", a, b, prefixes={"aa": "A:"})
    refused(ConfigError, "blank", a, b, prefixes={"a": " "})
    refused(ConfigError, "given two", a, b, prefixes={"a": "A:", str(a): "B:"})
    refused(ConfigError, "matters only", a, b, vocabularies={"a": "MESH"})
    refused(ConfigError, "matters only", a, b, match_codes="exact")
    exact: dict[str, Any] = {"join_by_cross_references": ["xref"], "match_codes": "exact"}
    refused(ConfigError, "take no vocabulary", a, b, vocabularies={"a": "MESH"}, **exact)
    same_name = write(tmp_path / "sub" / "a", [record("X:1", "x")])
    refused(ConfigError, "Several terminologies are called 'a'", a, same_name, prefixes={"a": "A:"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "linker", "sub"]


def test_progress_ends_at_the_last_name(tmp_path: Path) -> None:
    parts = [write(tmp_path / name, [record("X:1", "x", name)]) for name in ("a", "b")]
    told: list[tuple[int, int | None, str]] = []
    merge_terminologies(parts, tmp_path / "out", progress=lambda *now: told.append(now))
    assert told
    assert all(total is None or done <= total for done, total, _ in told)


@pytest.mark.parametrize(("language", "n_strangers"), [("es", 0), ("en-GB", 1), ("und", 1)])
def test_names_in_other_languages_are_no_strangers(language: str, n_strangers: int, tmp_path: Path) -> None:
    parts = []
    for folder, text, tag in (("a", "Heart attack", "en"), ("b", "Infarto", language)):
        (tmp_path / f"{folder}.csv").write_text(f"id,name\nX:1,{text}\n", encoding="utf-8")
        options = {"id": "id", "name": "name", "default_language": tag}
        import_terminology("table", tmp_path / f"{folder}.csv", tmp_path / folder, options=options)
        parts.append(tmp_path / folder)
    report = merge_terminologies(parts, tmp_path / "out")
    assert (report.n_shared, report.n_strangers) == (1, n_strangers)


def test_one_folder_is_not_several(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="field terminologies: several are meant here, not one"):
        merge_terminologies("symp", tmp_path / "out")
