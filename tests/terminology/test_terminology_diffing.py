from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from small_terminologies import Name, Record, record, small_terminologies, write

from onoma.errors import ArtifactExistsError, InputError, NotAnArtifactError
from onoma.terminology import Terminology, TerminologyDiff, diff_terminologies
from onoma.terminology.diffing import CHANGES, DETAILS

TERMINOLOGY = small_terminologies()
ONE_NAME = [record("A:1", "x")]
NAMED_BY_TWO = [Record("A:1", [Name("x"), Name("y", source="S"), Name("y", source="R")])]
Row = tuple[str, str, str | None, str | None, str | None, str | None]


def diff(tmp_path: Path, old: list[Record], new: list[Record]) -> TerminologyDiff:
    return diff_terminologies(write(tmp_path / "old", old), write(tmp_path / "new", new))


def alike(name: str) -> str:
    return " ".join(name.lower().split())


def words(name: str) -> list[str]:
    return [word for word in alike(name).split() if len(word) >= 3]


def changes(old: list[Record], new: list[Record]) -> Iterator[Row]:
    """The changes between two releases, by plain sets."""
    before, after = ({entry.code: entry for entry in side} for side in (old, new))
    added = [entry for entry in new if entry.code not in before and entry.status == "active"]

    def moved_to(entry: Record) -> str | None:
        name = alike(entry.preferred_name)
        found = [other.code for other in added if alike(other.preferred_name) == name != ""]
        return found[0] if len(found) == 1 else None

    for code in before.keys() | after.keys():
        was, now = before.get(code), after.get(code)
        if now is None:
            assert was is not None
            change = "removed" if was.status == "active" else "removed_obsolete"
            yield code, change, was.preferred_name, None, moved_to(was) if change == "removed" else None, None
            continue
        if was is None:
            change = "added" if now.status == "active" else "added_obsolete"
            yield code, change, None, now.preferred_name, None, now.replaced_by
            continue
        old_name, name = was.preferred_name, now.preferred_name
        if was.status != now.status:
            change = "revived" if now.status == "active" else "replaced" if now.replaced_by else "retired"
            yield code, change, old_name, name, moved_to(was) if change == "retired" else None, now.replaced_by
        else:
            if was.replaced_by != now.replaced_by:
                yield code, "successor_changed", was.replaced_by, now.replaced_by, None, now.replaced_by
            if old_name != name:
                said = [
                    {text for one in entry.names for text in (alike(one.text), *words(one.text))}
                    for entry in (was, now)
                ]
                is_known = bool(said[0] & said[1])
                was_of_another = alike(name) in {alike(one.preferred_name) for one in old if one.status == "active"}
                in_use = {alike(one.text) for one in now.names if not one.is_suppressed}
                has_old_name = not old_name or alike(old_name) in in_use
                change = "renamed" if has_old_name or (is_known and not was_of_another) else "renamed_entirely"
                change = "respelled" if alike(old_name) == alike(name) else change
                yield code, change, old_name, name, None, now.replaced_by
        contents: dict[str, list[set[tuple[str, str | None]]]] = {
            "name": [{(name.text, name.language) for name in entry.names} for entry in (was, now)],
            "type": [{(kind, None) for kind in entry.types} for entry in (was, now)],
            "relation": [
                {(tail, kind) for kind, tail, _ in entry.relations if tail in side}
                for entry, side in ((was, before), (now, after))
            ],
            "definition": [{(text, None) for text, _ in entry.definitions} for entry in (was, now)],
            "reference": [{(other, kind) for other, kind, _ in entry.references} for entry in (was, now)],
        }
        for kind, (formerly, lately) in contents.items():
            for value, qualifier in lately - formerly:
                yield code, f"{kind}_added", None, value, qualifier, now.replaced_by
            went = was.status == "active" != now.status and not now.names
            for value, qualifier in set() if went else formerly - lately:
                yield code, f"{kind}_removed", value, None, qualifier, now.replaced_by
        for text, language in contents["name"][0] & contents["name"][1]:
            rows = [[name for name in entry.names if name[:2] == (text, language)] for entry in (was, now)]
            was_suppressed, is_suppressed = (all(name.is_suppressed for name in some) for some in rows)
            if was_suppressed != is_suppressed:
                change = "name_suppressed" if is_suppressed else "name_unsuppressed"
                yield code, change, text, text, language, now.replaced_by
            types, types_now = ("+".join(sorted({name.term_type for name in some})) for some in rows)
            if types != types_now and text not in (old_name, name):
                yield code, "name_retyped", types, types_now, text, now.replaced_by


def order(row: Row) -> tuple[object, ...]:
    code, change, old, new, qualifier, _ = row
    return CHANGES.index(change), code, *((text is not None, text or "") for text in (qualifier, old, new))


@settings(max_examples=25)
@given(old=TERMINOLOGY, new=TERMINOLOGY)
@example(old=NAMED_BY_TWO, new=ONE_NAME)
@example(old=ONE_NAME, new=NAMED_BY_TWO)
def test_a_diff_is_what_sets_say(
    old: list[Record], new: list[Record], tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = diff(tmp_path_factory.mktemp("diff"), old, new)
    wanted = sorted(changes(old, new), key=order)
    assert found.details.rows() == wanted
    assert found.details.schema == DETAILS
    assert found.counts == {change: sum(row[1] == change for row in wanted) for change in CHANGES}
    assert found.is_empty == (not wanted)
    count = found.counts
    grown = count["added"] + count["added_obsolete"] - count["removed"] - count["removed_obsolete"]
    assert found.n_concepts[0] + grown == found.n_concepts[1] == len(new)
    gone = count["removed"] + count["retired"] + count["replaced"]
    assert found.n_active[0] + count["added"] + count["revived"] - gone == found.n_active[1]
    assert len(str(found).splitlines()) >= 2
    assert json.loads(json.dumps(found.figures()))["counts"] == found.counts


@settings(max_examples=5)
@given(content=TERMINOLOGY)
def test_nothing_changes_by_itself(content: list[Record], tmp_path_factory: pytest.TempPathFactory) -> None:
    found = diff(tmp_path_factory.mktemp("diff"), content, content[::-1])  # the order of concepts is no change
    assert found.is_empty
    assert not any(found.counts.values())
    assert "nothing changed" in str(found)


def test_what_goes_with_a_retired_code_that_has_no_name_any_more_has_no_rows(tmp_path: Path) -> None:
    whole = Record(
        "", [Name("a"), Name("b")], ["t"], "active", None, [("isa", "X:4", "S")], [("d", "S")], [("M:1", "xref", "S")]
    )
    old = [
        whole._replace(code="X:1"),
        whole._replace(code="X:2"),
        record("X:3", "c", "d", status="obsolete"),
        record("X:4", "e", "f"),
        record("X:5", "g", relations=[("isa", "X:1", "S")]),
    ]
    new = [
        Record("X:1", status="obsolete", replaced_by="X:4"),
        Record("X:2", status="obsolete", relations=[("consider", "X:4", "MTH")]),
        Record("X:3", status="obsolete"),
        Record("X:4"),
        record("X:5", "g"),
    ]
    found = diff(tmp_path, old, new)
    assert found.details.select("concept_id", "change").rows() == [
        ("X:2", "retired"),
        ("X:1", "replaced"),
        ("X:3", "renamed_entirely"),
        ("X:4", "renamed_entirely"),
        ("X:3", "name_removed"),
        ("X:3", "name_removed"),
        ("X:4", "name_removed"),
        ("X:4", "name_removed"),
        ("X:2", "relation_added"),
        ("X:5", "relation_removed"),
    ]


def test_kinds_of_change_as_a_person_reads_them(tmp_path: Path) -> None:
    old = [
        record("X:1", "Heart attack", "MI"),
        record("X:2", "Angina"),
        record("X:3", "Stroke"),
        record("X:4", "Cold"),
        record("X:5", "flu "),
        record("X:6", status="obsolete"),
        record("X:7", "Gone"),
        record("X:9", "Pain", "Ache", relations=[("is_a", "X:7", "S")]),
        Record("X:10", [Name("Diabetes"), Name("Sugar disease", term_type="exact_synonym")]),
        record("X:11", "Cough"),
        record("X:13", "Gamma fever"),
        record("X:15", "Fracture of the arm"),
        record("X:14", "Delta fever"),
    ]
    new = [
        record("X:1", "Myocardial infarction", "MI"),
        record("X:2", "obsolete Angina", status="obsolete", replaced_by="X:1"),
        record("X:3", "obsolete Stroke", status="obsolete"),
        record("X:4", "Cold", relations=[("is_a", "X:5", "S")]),
        record("X:5", "Flu"),
        record("X:6", "Back"),
        record("X:8", "New\nname"),
        record("X:9", "Fever", "Pyrexia", relations=[("is_a", "X:12", "S")]),
        Record("X:10", [Name("Diabetes"), Name("Sugar disease", term_type="broad_synonym")]),
        record("X:12", "cough"),
        record("X:13", "Delta fever"),
        record("X:15", "Infection of the lung"),
        record("X:14", "Delta fevers"),
    ]
    found = diff(tmp_path, old, new)
    told = str(found)
    assert {change: count for change, count in found.counts.items() if count} == {
        "added": 2,
        "retired": 1,
        "replaced": 1,
        "removed": 2,
        "revived": 1,
        "renamed_entirely": 3,
        "renamed": 2,
        "respelled": 1,
        "name_added": 10,
        "name_removed": 9,
        "name_retyped": 1,
        "relation_added": 2,
        "relation_removed": 1,
    }
    for line in (
        "X:8 New name",
        "X:2 Angina -> X:1",
        "X:3 Stroke",
        "X:1: Heart attack -> Myocardial infarction",
        "X:5: flu  -> Flu",
        "X:4 is_a X:5",
        "X:6 Back",
        "X:7 Gone",
        "X:9: Pain -> Fever",
        "X:13: Gamma fever -> Delta fever",
        "X:15: Fracture of the arm -> Infection of the lung",
        "X:9 is_a X:7",
        "X:9 is_a X:12",
        "X:10 Sugar disease: exact_synonym -> broad_synonym",
        "X:11 Cough (that is X:12 now?)",
    ):
        assert f"    {line}\n" in told + "\n"
    assert "name added" in told
    assert "type added" not in told


def test_details_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = diff(tmp_path, [record("X:1", "x")], [record("X:1", "y")])
    file = tmp_path / "deep" / "details.parquet"
    found.write_details(file)
    assert pl.read_parquet(file).equals(found.details)
    with pytest.raises(ArtifactExistsError, match="--force"):
        found.write_details(file)
    before = file.read_bytes()

    def fail(_frame: pl.DataFrame, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(OSError, match="disk full"):
        found.write_details(file, overwrite=True)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    folder = write(tmp_path / "old", [record("X:1", "x")])
    with pytest.raises(InputError, match="nothing here"):
        diff_terminologies(folder, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotAnArtifactError):
        diff_terminologies(tmp_path / "empty", folder)
    opened = Terminology.open(folder)
    assert diff_terminologies(opened, folder).is_empty


def test_a_code_that_keeps_its_name_means_what_it_meant(tmp_path: Path) -> None:
    old = [record("X:1", "Cold", "Coryza"), record("X:2", "Gout"), record("X:3"), record("X:4", "Flu")]
    new = [
        record("X:1", "Gout", "cold"),  # X:2 was merged into it
        record("X:2", "Gout", status="obsolete", replaced_by="X:1"),
        record("X:3", "Ague"),  # had no name
        record("X:4", "Rash"),
    ]
    found = diff(tmp_path, old, new)
    kinds = found.details.filter(pl.col("change").str.starts_with("renamed")).select("concept_id", "change")
    assert kinds.rows() == [("X:4", "renamed_entirely"), ("X:1", "renamed"), ("X:3", "renamed")]
