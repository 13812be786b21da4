from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from importing import imported
from test_terminology_umls_concepts import named

from onoma.errors import InputError
from onoma.terminology import ImportReport, Terminology


def atom(
    rxaui: str, rxcui: str, text: str, tty: str = "IN", sab: str = "RXNORM", code: str = "c", suppress: str = "N"
) -> str:
    return f"{rxcui}|ENG||||||{rxaui}||||{sab}|{tty}|{code}|{text}||{suppress}|4096|\n"


def related(first: str, rela: str, second: str, rel: str = "RO", suppress: str = "") -> str:
    """Between RXCUIs; an end such as "#7" is an atom."""
    ends = [(f"|{end[1:]}|AUI" if end.startswith("#") else f"{end}||CUI") for end in (first, second)]
    return f"{ends[0]}|{rel}|{ends[1]}|{rela}|1||RXNORM||||{suppress}|4096|\n"


def archived(
    rxcui: str, text: str, merged_to: str = "", sab: str = "RXNORM", tty: str = "SCD", lat: str = "ENG"
) -> str:
    return f"9||{text}|2020|2006|2020|c||{lat}|2020||V|{rxcui}|{sab}|{tty}|{merged_to}|\n"


CONSO = (
    atom("1", "5640", "ibuprofen", "IN", "MMSL")
    + atom("2", "5640", "Ibuprofen tablet name", "PSN")
    + atom("3", "5640", "ibuprofen", "IN")
    + atom("4", "153010", "Advil", "BN")
    + atom("5", "153010", "ADVIL", "BN", "MMSL", code="d")
    + atom("6", "310", "ibuprofen 200 MG", "SCD", suppress="O")
)


def read(
    tmp_path: Path, files: dict[str, str], *, on_error: str = "strict", options: dict[str, str] | None = None
) -> tuple[Terminology, ImportReport]:
    place = tmp_path / "in" / "rrf"
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (place / f"{name}.RRF").write_bytes(text.encode())
    return imported("rxnorm", tmp_path / "in", tmp_path / "out", on_error=on_error, **(options or {}))


def said(terminology: Terminology) -> list[str]:
    ids = terminology.concepts().collect()["concept_id"].to_list()
    return [f"{ids[head]} {what} {ids[tail]}" for head, what, tail, _ in terminology.relations().collect().rows()]


def test_preferred_name_is_rxnorms_normalised_one(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, {"RXNCONSO": CONSO})
    assert named(terminology) == {
        "5640": ["ibuprofen", "ibuprofen", "Ibuprofen tablet name"],
        "153010": ["Advil", "ADVIL"],
        "310": ["ibuprofen 200 MG"],
    }
    preferred = terminology.names().filter("is_preferred").select("source", "term_type", "is_suppressed").collect()
    assert preferred.rows() == [("RXNORM", "IN", False), ("RXNORM", "BN", False), ("RXNORM", "SCD", True)]
    missing = {f"files that the release does not have: RXN{name}.RRF" for name in ("STY", "REL")}
    assert missing <= set(report.notes)


def test_own_names_only(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, {"RXNCONSO": CONSO}, options={"sources": "RXNORM", "suppress": "N"})
    assert named(terminology) == {"5640": ["ibuprofen", "Ibuprofen tablet name"], "153010": ["Advil"]}


def test_relations_between_concepts_and_between_atoms(tmp_path: Path) -> None:
    rel = (
        related("5640", "tradename_of", "153010", "RN")
        + related("153010", "has_tradename", "5640", "RB", "N")
        + related("#1", "ingredient_of", "#5")
        + related("5640", "form_of", "#6")
        + related("5640", "", "310", "RB", "O")
    )
    files = {"RXNCONSO": CONSO, "RXNREL": rel}
    terminology, _ = read(tmp_path, files)
    assert said(terminology) == [
        "153010 tradename_of 5640",
        "5640 has_tradename 153010",
        "153010 ingredient_of 5640",
        "310 form_of 5640",
        "310 RB 5640",
    ]
    # Of atoms and concepts that a filter left out nothing is said, and that is no error.
    terminology, report = read(tmp_path, files, options={"sources": "RXNORM", "suppress": "N"})
    assert said(terminology) == ["153010 tradename_of 5640", "5640 has_tradename 153010", "153010 ingredient_of 5640"]
    assert report.notes["relations of concepts that a filter left out"] == 1


def test_trade_names(tmp_path: Path) -> None:
    files = {"RXNCONSO": CONSO, "RXNREL": related("#3", "tradename_of", "#4", "RN")}
    terminology, _ = read(tmp_path, files, options={"trade_names": "yes"})
    assert named(terminology)["5640"] == ["ibuprofen", "ibuprofen", "Ibuprofen tablet name", "Advil", "ADVIL"]
    assert named(terminology)["153010"] == ["Advil", "ADVIL"]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (related("#77", "ingredient_of", "#5"), "refers to an atom that the release does not have"),
        (related("", "ingredient_of", "5640"), "refers to an atom that the release does not have"),
        (related("77", "ingredient_of", "5640"), "refers to a concept that the release does not have"),
        (related("310", "x", "5640", rel=""), "field REL"),
        (related("310", "x", "5640", suppress="?"), "field SUPPRESS"),
        (related("310", "x", "5640")[:-2] + "\n", "expected 16 fields"),
    ],
)
def test_bad_relations(bad: str, problem: str, tmp_path: Path) -> None:
    good = related("5640", "tradename_of", "153010", "RN")
    files = {"RXNCONSO": CONSO, "RXNREL": good + bad + good}
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, files)
    assert (caught.value.path, caught.value.line) == (tmp_path / "in" / "rrf" / "RXNREL.RRF", 2)
    terminology, report = read(tmp_path, files, on_error="skip")
    assert (terminology.n_relations, report.n_rejected) == (1, 1)


def test_columns_are_called_as_in_the_specification(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="field RXCUI"):
        read(tmp_path, {"RXNCONSO": atom("1", " ", "x")})


def test_retired_codes(tmp_path: Path) -> None:
    archive = (
        archived("1", "ibuprofen, old", "5640")
        + archived("1", "ibuprofen, old", "5640", tty="SY")
        + archived("1", "ibuprofen, older", lat="")
        + archived("2", "merged into what was merged", "1")
        + archived("3", "split", "5640")
        + archived("3", "split up", "153010")
        + archived("4", "gone", "4")
        + archived("5", "round", "6")
        + archived("6", "and round", "5")
        + archived("7", "only a source's", "5640", sab="MMSL")
        + archived("8", "to nowhere", "99")
        + archived("5640", "an atom of a concept that is there", "153010")
    )
    files = {"RXNCONSO": CONSO, "RXNATOMARCHIVE": archive}
    terminology, report = read(tmp_path, files)
    rows = (
        terminology.concepts()
        .filter(pl.col("status") == "obsolete")
        .select("concept_id", "preferred_name", "replaced_by")
        .collect()
        .rows()
    )
    assert rows == [
        ("1", "ibuprofen, old", "5640"),
        ("2", "merged into what was merged", "5640"),
        ("3", "split", None),
        ("4", "gone", None),
        ("5", "round", None),
        ("6", "and round", None),
        ("8", "to nowhere", None),
    ]
    assert named(terminology)["1"] == ["ibuprofen, old", "ibuprofen, older"]
    assert report.n_rejected == 0
    assert report.notes["retired codes with several successors, of which none is taken"] == 1
    assert said(terminology) == ["3 consider 5640", "3 consider 153010"]
    assert read(tmp_path, files, options={"retired": "no"})[0].n_concepts == 3
    filtered, _ = read(tmp_path, files, options={"suppress": "N"})
    assert named(filtered).keys() == {"5640", "153010", "1", "2", "3"}
    assert filtered.concepts().collect()["preferred_name"].to_list()[2:] == ["", "", ""]


def test_cross_references(tmp_path: Path) -> None:
    rel = related("5640", "", "C0020740", "SY") + related("5640", "", "153010", "SY")
    files = {"RXNCONSO": CONSO, "RXNREL": rel}

    def references(terminology: Terminology) -> list[tuple[object, ...]]:
        return terminology.cross_references().select("concept_row", "code", "relation").collect().rows()

    terminology, _ = read(tmp_path, files)
    assert references(terminology) == [(0, "UMLS:C0020740", "exactMatch")]
    assert said(terminology) == ["153010 SY 5640"]
    terminology, _ = read(tmp_path, files, options={"cross_references": "yes"})
    assert references(terminology) == [
        (0, "MMSL:c", "exactMatch"),
        (1, "MMSL:d", "exactMatch"),
        (0, "UMLS:C0020740", "exactMatch"),
    ]


def test_semantic_types(tmp_path: Path) -> None:
    types = "5640|T109|A|Organic Chemical|AT||\n153010|T200|A|Clinical Drug|AT||\n"
    terminology, _ = read(tmp_path, {"RXNCONSO": CONSO, "RXNSTY": types}, options={"semantic_types": "T200"})
    assert named(terminology) == {"153010": ["Advil", "ADVIL"]}
    assert terminology.concepts().collect()["semantic_types"].to_list() == [["Clinical Drug"]]


def test_a_filter_keeps_retired_codes_whose_names_pass_it(tmp_path: Path) -> None:
    archive = archived("998", "Oldol", "5640") + archived("999", "Elderol") + archived("997", "Altol", lat="GER")
    files = {"RXNCONSO": CONSO, "RXNATOMARCHIVE": archive}
    for option, value in (("sources", "RXNORM"), ("languages", "en")):
        filtered, _ = read(tmp_path, files, options={option: value})
        assert {"998", "999"} <= named(filtered).keys()
        assert ("997" in named(filtered)) == (option == "sources")
