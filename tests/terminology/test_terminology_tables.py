from __future__ import annotations

import dataclasses
import errno
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.artifacts import write_artifact
from onoma.errors import DamagedArtifactError, FormatVersionError, InputError, MismatchError, NotAnArtifactError
from onoma.terminology import Terminology, TerminologyTables, import_terminology, write_terminology
from onoma.terminology.tables import CONCEPTS, DEFINITIONS, NAMES, RELATIONS

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def tables(
    concepts: list[tuple[str, list[str]]],
    *,
    status: str = "active",
    replaced_by: dict[str, str] | None = None,
    types: list[str] | None = None,
) -> TerminologyTables:
    """Concepts with their names."""
    return TerminologyTables(
        concepts=pl.DataFrame(
            [
                (concept_id, names[0] if names else "", types or [], status, (replaced_by or {}).get(concept_id))
                for concept_id, names in concepts
            ],
            schema=CONCEPTS,
            orient="row",
        ),
        names=pl.DataFrame(
            [
                (row, text, "en", "S", "T", position == 0, False)
                for row, (_, names) in enumerate(concepts)
                for position, text in enumerate(names)
            ],
            schema=NAMES,
            orient="row",
        ),
        relations=pl.DataFrame(schema=RELATIONS),
    )


SMALL = [("A", ["Heart attack", "MI"]), ("B", ["heart  ATTACK", "Angina"]), ("C", [])]


@settings(max_examples=15)
@given(
    concepts=st.lists(st.tuples(TEXT, st.lists(TEXT, max_size=4)), min_size=1, max_size=6, unique_by=lambda c: c[0]),
    types=st.lists(TEXT, max_size=3),
)
def test_any_text_comes_back(
    concepts: list[tuple[str, list[str]]], types: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "t"
    content = tables(concepts, types=types, replaced_by={concepts[0][0]: concepts[-1][0]})
    last = len(concepts) - 1
    content = dataclasses.replace(
        content,
        relations=pl.DataFrame([(0, "is\0a", last, "é")], schema=RELATIONS, orient="row"),
        definitions=pl.DataFrame([(last, concepts[0][0], "")], schema=DEFINITIONS, orient="row"),
    )
    write_terminology(path, content)
    opened = Terminology.open(path)
    assert opened.concepts().collect().equals(content.concepts)
    assert opened.names().collect().equals(content.names)
    assert opened.relations().collect().equals(content.relations)
    assert opened.definitions().collect().equals(content.definitions)
    for concept_id, names in concepts:
        concept = opened.concept(concept_id)
        assert list(concept.names) == names
        assert list(concept.semantic_types) == types
    assert opened.n_names == sum(len(names) for _, names in concepts)


@pytest.mark.parametrize("name", ["vocabulary [2026]", "a*", "what?"])
def test_folders_whose_names_would_be_patterns(tmp_path: Path, name: str) -> None:
    write_terminology(tmp_path / name, tables(SMALL), config={})
    assert Terminology.open(tmp_path / name).concept("A").preferred_name == "Heart attack"
    pl.DataFrame({"code": ["x"], "name": ["a"]}).write_parquet(tmp_path / f"{name}.parquet")
    options = {"id": "code", "name": "name"}
    import_terminology("table", tmp_path / f"{name}.parquet", tmp_path / "read", options=options)
    assert Terminology.open(tmp_path / "read").concept("x").preferred_name == "a"


def test_successors_are_what_can_be_used(tmp_path: Path) -> None:
    fates = {
        "A": ("active", None),
        "B": ("obsolete", "C"),
        "C": ("obsolete", "A"),
        "D": ("obsolete", "E"),
        "E": ("obsolete", None),
        "F": ("obsolete", "other:1"),
        "G": ("obsolete", "F"),
        "H": ("active", "A"),  # which some ontologies have
        "I": ("obsolete", "J"),
        "J": ("obsolete", "I"),
    }
    content = tables([(code, [code]) for code in fates])
    concepts = content.concepts.with_columns(
        status=pl.Series([status for status, _ in fates.values()]),
        replaced_by=pl.Series([code for _, code in fates.values()]),
    )
    write_terminology(tmp_path / "t", dataclasses.replace(content, concepts=concepts.cast(CONCEPTS)))
    assert Terminology.open(tmp_path / "t").successors() == {"B": "A", "C": "A", "F": "other:1", "G": "other:1"}


def test_single_concept(tmp_path: Path) -> None:
    write_terminology(tmp_path / "t", tables(SMALL, replaced_by={"C": "A"}), config={"made": "by hand"})
    terminology = Terminology.open(tmp_path / "t")
    concept = terminology.concept("A")
    assert dataclasses.asdict(concept) == {
        "concept_id": "A",
        "preferred_name": "Heart attack",
        "names": ("Heart attack", "MI"),
        "semantic_types": (),
        "status": "active",
        "replaced_by": None,
    }
    assert terminology.concept("C").names == ()
    assert terminology.concept("C").replaced_by == "A"
    assert terminology.n_definitions == 0
    assert terminology.definitions().collect().is_empty()
    assert terminology.manifest.config == {"made": "by hand"}


def test_unknown_concept_suggests(tmp_path: Path) -> None:
    write_terminology(tmp_path / "t", tables([("MONDO:0005148", ["x"]), ("MONDO:0000001", ["y"])]))
    terminology = Terminology.open(tmp_path / "t")
    for wrong in ("MONDO:0005184", "mondo:0005148", "MOND:0005148", "MONDO:00005148"):
        with pytest.raises(InputError, match="Did you mean 'MONDO:0005148'"):
            terminology.concept(wrong)
    # With another digit it is the code of something else.
    for hopeless in ("", "zzz", "\0", "MONDO:0005147", "MONDO:000514"):
        with pytest.raises(InputError, match="there is no concept") as caught:
            terminology.concept(hopeless)
        assert "Did you mean" not in str(caught.value)


def _replaced(content: TerminologyTables, table: str, **columns: pl.Expr) -> TerminologyTables:
    return dataclasses.replace(content, **{table: getattr(content, table).with_columns(**columns)})


def test_tables_that_do_not_hold_together_are_refused(tmp_path: Path) -> None:
    good = tables(SMALL)
    relation = pl.DataFrame([(0, "r", 3, "")], schema=RELATIONS, orient="row")
    bad = {
        "columns are not those": dataclasses.replace(good, names=good.names.drop("language")),
        "a value is missing": _replaced(good, "names", language=pl.lit(None, dtype=pl.String)),
        "occurs twice": _replaced(good, "concepts", concept_id=pl.lit("A")),
        "unknown status": _replaced(good, "concepts", status=pl.lit("retired")),
        "not sorted": dataclasses.replace(good, names=good.names.reverse()),
        "that is not there": dataclasses.replace(good, relations=relation),
    }
    for problem, content in bad.items():
        with pytest.raises(InputError, match=problem):
            write_terminology(tmp_path / "t", content)
        assert not (tmp_path / "t").exists()
    with pytest.raises(InputError, match="that is not there"):
        write_terminology(tmp_path / "t", _replaced(good, "names", concept_row=pl.lit(3, dtype=pl.UInt32)))


def test_what_is_no_whole_terminology_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing here"):
        Terminology.open(tmp_path / "none")
    with write_artifact(tmp_path / "other", "linker"):
        pass
    with pytest.raises(NotAnArtifactError, match="linker"):
        Terminology.open(tmp_path / "other")
    with write_artifact(tmp_path / "newer", "terminology", format_version=2):
        pass
    with pytest.raises(FormatVersionError):
        Terminology.open(tmp_path / "newer")
    with write_artifact(tmp_path / "hollow", "terminology"):
        pass
    with pytest.raises(DamagedArtifactError, match=r"no concepts\.parquet"):
        Terminology.open(tmp_path / "hollow")
    with write_artifact(tmp_path / "foreign", "terminology") as aside:
        for name in ("concepts", "names", "relations"):
            pl.DataFrame({"x": [1]}).write_parquet(aside / f"{name}.parquet")
    with pytest.raises(DamagedArtifactError, match="other columns"):
        Terminology.open(tmp_path / "foreign")
    with write_artifact(tmp_path / "garbage", "terminology") as aside:
        for name in ("concepts", "names", "relations"):
            (aside / f"{name}.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DamagedArtifactError, match="cannot be read"):
        Terminology.open(tmp_path / "garbage")


@pytest.mark.parametrize(
    ("error", "is_of_system"),
    [
        (OSError(errno.EMFILE, "Too many open files"), True),
        (pl.exceptions.ComputeError("Too many open files (os error 24)"), True),
        (OSError(errno.EINVAL, "Invalid argument"), False),
    ],
)
def test_a_system_that_lets_no_file_be_read_is_not_told_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, is_of_system: bool
) -> None:
    def refuse(_: Path) -> pl.LazyFrame:
        raise error

    write_terminology(tmp_path / "t", tables(SMALL))
    monkeypatch.setattr("onoma.terminology.terminology.scan_parquet", refuse)
    with pytest.raises(type(error) if is_of_system else DamagedArtifactError):
        Terminology.open(tmp_path / "t")


def test_truncated_or_changed_file(tmp_path: Path) -> None:
    write_terminology(tmp_path / "t", tables(SMALL))
    file = tmp_path / "t" / "names.parquet"
    data = file.read_bytes()
    for spoilt in (data[:-1], data[:10] + b"x" + data[11:], b""):
        file.write_bytes(spoilt)
        with pytest.raises(DamagedArtifactError):
            Terminology.open(tmp_path / "t")


def test_information(tmp_path: Path) -> None:
    content = tables(SMALL, types=["disease", "finding"])
    suppressed = pl.Series([False, True, False, False])
    content = dataclasses.replace(
        content,
        names=content.names.with_columns(is_suppressed=suppressed, language=pl.Series(["en", "en", "de", "en"])),
        relations=pl.DataFrame(
            [(0, "is_a", 1, ""), (1, "is_a", 2, ""), (2, "of", 1, "")], schema=RELATIONS, orient="row"
        ),
    )
    write_terminology(tmp_path / "t", content)
    info = Terminology.open(tmp_path / "t").info()
    assert (info.n_concepts, info.n_active, info.n_names, info.n_suppressed) == (3, 3, 4, 1)
    assert (info.n_distinct_names, info.names_per_concept, info.concepts_by_names) == (4, 2.0, {0: 1, 2: 2})
    assert info.n_homonyms == 1  # "Heart attack" and "heart  ATTACK"
    assert info.languages == {"en": 3, "de": 1}
    assert list(info.languages) == ["en", "de"]
    assert info.semantic_types == {"disease": 3, "finding": 3}
    assert info.relations == {"is_a": 2, "of": 1}
    assert info.n_relations == 3
    assert "homonyms           1 name " in str(info)
    assert json.loads(json.dumps(dataclasses.asdict(info)))["languages"] == {"en": 3, "de": 1}


def test_information_of_next_to_nothing(tmp_path: Path) -> None:
    write_terminology(tmp_path / "t", tables([("A", [])], status="obsolete"))
    info = Terminology.open(tmp_path / "t").info()
    assert (info.n_active, info.n_names, info.names_per_concept, info.concepts_by_names) == (0, 0, 0.0, {0: 1})
    assert "concepts           1 (0 active" in str(info)


def test_a_folder_that_was_replaced_is_told(tmp_path: Path) -> None:
    write_terminology(tmp_path / "t", tables([("X:1", ["a"])]))
    opened = Terminology.open(tmp_path / "t")
    assert (opened.n_names, repr(opened)) == (1, f"Terminology('{tmp_path / 't'}': 1 concept, 1 name)")
    assert len({opened, Terminology.open(tmp_path / "t")}) == 1
    write_terminology(tmp_path / "t", tables([("X:2", ["b", "c"])]), overwrite=True)
    with pytest.raises(MismatchError, match="replaced or removed since it was opened"):
        opened.names()
    assert Terminology.open(tmp_path / "t").n_names == 2


def test_codes_and_searches_that_are_no_text(tmp_path: Path) -> None:
    write_terminology(tmp_path / "t", tables([("X:1", ["a"])]))
    opened = Terminology.open(tmp_path / "t")
    for wrong in (5, None):
        with pytest.raises(InputError, match="a code is text"):
            opened.concept(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="is no text"):
            opened.search(wrong)  # type: ignore[arg-type]
