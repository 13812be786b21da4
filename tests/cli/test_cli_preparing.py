"""``onoma link`` and ``onoma map`` with contexts, short forms and composite mentions."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import invoke, run
from onoma.errors import ConfigError, InputError, UnavailableError
from tiny import make_terminology

CONCEPTS = {
    "D1": ["hydroxychloroquine"],
    "D2": ["colorectal cancer"],
    "D3": ["ovarian cancer"],
    "D4": ["systemic lupus erythematosus", "lupus"],
}
NOTE = "Hydroxychloroquine (HCQ) was given for lupus."


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    make_terminology(folder / "t", CONCEPTS)
    run("linker", "build", "-t", folder / "t", "--no-encoder", "-o", folder / "linker")
    (folder / "table.tsv").write_text("SLE\tsystemic lupus erythematosus\nHCQ\thot cold quiver\nMS\ta b\nMS\tc d\n")
    return folder


def records(place: Path, *words: str | Path, stdin: str | None = None) -> list[dict[str, Any]]:
    lines = run("link", place / "linker", *words, "-k", "1", "--json", stdin=stdin).splitlines()
    return [json.loads(line) for line in lines]


def first_ids(found: list[dict[str, Any]]) -> list[list[str]]:
    return [[link["concept_id"] for link in record["links"]] for record in found]


def test_short_forms_of_the_context_and_of_a_table(place: Path) -> None:
    expand = ("--context", NOTE, "--expand", "schwartz-hearst")
    (one,) = records(place, "HCQ", *expand)
    assert one["mention"] == "HCQ"
    assert one["expansions"] == [{"short_form": "HCQ", "long_form": "Hydroxychloroquine", "source": "context"}]
    assert one["parts"] == ["Hydroxychloroquine"]
    assert [(link["concept_id"], link["read_as"], link["score"]) for link in one["links"]] == [
        ("D1", "Hydroxychloroquine", 1.0)
    ]
    found = records(place, "HCQ", "SLE", "lupus", *expand, "--abbreviations", place / "table.tsv")
    assert first_ids(found) == [["D1"], ["D4"], ["D4"]]
    assert [expansion["source"] for record in found[:2] for expansion in record["expansions"]] == ["context", "table"]
    assert set(found[2]) == {"mention", "links"}
    assert "read_as" not in found[2]["links"][0]


def test_short_forms_of_several_long_forms_are_told(place: Path, tmp_path: Path) -> None:
    done = invoke("link", place / "linker", "MS", "--abbreviations", place / "table.tsv")
    assert "1 short form with several long forms left as they are: MS\n" in done.stderr
    (tmp_path / "more.tsv").write_text("".join(f"{letter}S\ta b\n{letter}S\tc d\n" for letter in "ABCDEF"))
    done = invoke("link", place / "linker", "MS", "--abbreviations", tmp_path / "more.tsv")
    assert "6 short forms with several long forms left as they are: AS, BS, CS, DS, ES, ...\n" in done.stderr


def test_each_line_with_its_context(place: Path) -> None:
    lines = f"HCQ\t{NOTE}\nHCQ\nHCQ\tHandy colorectal cancer\tq (HCQ)\n"
    found = records(place, "--tabbed", "--expand", "schwartz-hearst", stdin=lines)
    assert [record["mention"] for record in found] == ["HCQ"] * 3
    assert [record.get("parts") for record in found] == [["Hydroxychloroquine"], None, ["Handy colorectal cancer q"]]


def test_composites(place: Path) -> None:
    mention = "colorectal and ovarian cancer"
    (found,) = records(place, mention, "--composites")
    assert found["parts"] == ["colorectal cancer", "ovarian cancer"]
    assert [(link["concept_id"], link["read_as"], link["rank"]) for link in found["links"]] == [
        ("D2", "colorectal cancer", 1),
        ("D3", "ovarian cancer", 1),
    ]
    told = run("link", place / "linker", mention, "lupus and 99 pain", "--composites", "-k", "1", "--stages", "exact")
    rows = [re.split(r"\s{2,}", line) for line in told.splitlines()]
    assert rows[0][:3] == ["mention", "read as", "concept"]
    assert rows[1][:3] == [mention, "colorectal cancer", "D2"]
    assert rows[2][:3] == ["", "ovarian cancer", "D3"]
    assert "99 pain" in told
    assert told.count("no such concept") == 1
    assert "read as" not in run("link", place / "linker", mention)


def test_spelling(place: Path) -> None:
    (found,) = records(place, "lupsu", "--spelling")
    assert found["corrections"] == [{"written": "lupsu", "read": "lupus"}]
    assert [(link["concept_id"], link["read_as"]) for link in found["links"]] == [("D4", "lupus")]
    (found,) = records(place, "colrectal and ovarian cancer", "--spelling", "--composites")
    assert found["parts"] == ["colorectal cancer", "ovarian cancer"]
    told = run("link", place / "linker", "lupsu", "--spelling", "--explain")
    assert "lupsu: 'lupsu' was read as 'lupus'. D4 (systemic lupus erythematosus): the mention is a name of it" in told


def test_strengths(place: Path) -> None:
    mention = "Hydroxychloroquin 200 mg tab, bid"
    (found,) = records(place, mention, "--strengths", "--spelling")
    assert found["without_strengths"] == "Hydroxychloroquin"
    assert found["parts"] == ["Hydroxychloroquine"]
    assert [(link["concept_id"], link["read_as"]) for link in found["links"][:1]] == [("D1", "Hydroxychloroquine")]
    (found,) = records(place, "lupus", "--strengths")
    assert "without_strengths" not in found
    told = run("link", place / "linker", "lupus 5 mg / ovarian cancer 5 mg", "--strengths", "--composites", "--explain")
    assert (
        "Without strengths and dose forms it is 'lupus / ovarian cancer'. It stands for several names: 'lupus'" in told
    )
    told = run("link", place / "linker", "lupus 5 mg", "--strengths", "--explain")
    assert "lupus 5 mg: Without strengths and dose forms it is 'lupus'. D4 (systemic lupus erythematosus): the" in told
    explained = json.loads(run("link", place / "linker", "lupus 5 mg", "--strengths", "--explain", "--json"))
    assert explained["without_strengths"] == "lupus"


def test_explanations(place: Path) -> None:
    told = run("link", place / "linker", "HCQ", "--context", NOTE, "--expand", "schwartz-hearst", "--explain")
    assert "HCQ: 'HCQ' was read as 'Hydroxychloroquine' (defined in the context). D1 (hydroxychloroquine): the" in told
    mention = "colorectal and ovarian cancer"
    told = run("link", place / "linker", mention, "--composites", "--explain")
    assert "It stands for several names: 'colorectal cancer'; 'ovarian cancer'." in told
    assert "ovarian cancer: D3 (ovarian cancer): the mention is a name of it" in told
    record = json.loads(run("link", place / "linker", mention, "--composites", "--explain", "--json"))
    assert [part["links"][0]["concept_id"] for part in record["parts"]] == ["D2", "D3"]


def test_a_table_is_mapped(place: Path, tmp_path: Path) -> None:
    rows = [{"m": "HCQ", "note": NOTE}, {"m": "SLE", "note": ""}, {"m": "colorectal and ovarian cancer", "note": None}]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files: list[str | Path] = ["-i", tmp_path / "x.jsonl", "-c", "m", "-o", tmp_path / "y.jsonl"]
    options: list[str | Path] = [
        "--context",
        "note",
        "--expand",
        "schwartz-hearst",
        "--abbreviations",
        place / "table.tsv",
    ]
    run("map", place / "linker", *files, *options, "--composites")
    mapped = [json.loads(line) for line in (tmp_path / "y.jsonl").read_text().splitlines()]
    assert [(row["m"], row["read_as"], row["concept_id"]) for row in mapped] == [
        ("HCQ", "Hydroxychloroquine", "D1"),
        ("SLE", "systemic lupus erythematosus", "D4"),
        ("colorectal and ovarian cancer", "colorectal cancer", "D2"),
        ("colorectal and ovarian cancer", "ovarian cancer", "D3"),
    ]


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (("x", "--context", "an x"), InputError, "does not read contexts"),
        (("x", "--context", "an x", "--explain"), InputError, "does not read contexts"),
        (("x", "--expand", "schwartz-hearst"), ConfigError, "give --context or --tabbed"),
        (("x", "--tabbed"), ConfigError, "from stdin"),
        (("--tabbed", "--context", "an x"), ConfigError, "from stdin"),
        (("x", "--abbreviations", "nowhere.tsv"), InputError, "nowhere.tsv"),
    ],
)
def test_what_is_refused(place: Path, words: tuple[str, ...], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        run("link", place / "linker", *words)


def test_without_ab3p_the_extra_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onoma.linking import abbreviations

    abbreviations._ab3p.cache_clear()
    monkeypatch.setitem(sys.modules, "pyab3p", None)
    with pytest.raises(UnavailableError, match=r"pip install 'onoma\[abbreviations\]'"):
        run("link", place / "linker", "HCQ", "--context", NOTE, "--expand", "ab3p")


def test_codes(place: Path, tmp_path: Path) -> None:
    without, code, name = records(place, "D9", "d1", "lupus", "--codes")
    assert "code" not in without
    assert "code" not in name
    assert (code["mention"], code["code"], code["parts"]) == ("d1", "D1", ["hydroxychloroquine"])
    assert first_ids([code, name]) == [["D1"], ["D4"]]
    assert "code" not in records(place, "d1")[0]
    table = tmp_path / "x.csv"
    table.write_text("id,mention\n1,D2\n2,ovarian cancer\n3,D2\n")
    run("map", place / "linker", "--input", table, "--column", "mention", "--output", tmp_path / "y.csv", "--codes")
    lines = (tmp_path / "y.csv").read_text().splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [
        ["1", "D2", "colorectal cancer", "D2"],
        ["2", "ovarian cancer", "", "D3"],
        ["3", "D2", "colorectal cancer", "D2"],
    ]
