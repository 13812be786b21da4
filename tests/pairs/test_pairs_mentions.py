"""Mention pairs against a plain reading of the rules."""

from __future__ import annotations

import gzip
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs_oracles import texts_of

from onoma.artifacts import verify_artifact
from onoma.errors import ArtifactExistsError, ConfigError, InputError
from onoma.files.reading import Reading
from onoma.pairs import MentionFormat, PairSet, build_mention_pairs, read_mentions
from onoma.pairs.mentions import mentions_fingerprint
from onoma.terminology import Terminology
from tiny import Name, make_terminology, small_tokenizer

CONCEPTS: dict[str, list[str | Name]] = {
    "C:1": ["heart attack", "MI", Name("infarctus", "fr"), Name("hidden", is_suppressed=True)],
    "C:2": ["cold", "flu"],
    "C:3": ["MI", "michigan"],
    "C:4|D:4": ["gout"],
    "C:5": ["gone", "older"],
    "C:6": ["never mentioned", "at all"],
}
TEXTS = ["heart attack", "mi", "infarctus", "cold", "flu", "michigan", "gout", "gone", "older", "bad heart", "podagra"]


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Terminology:
    return make_terminology(tmp_path_factory.mktemp("t") / "t", CONCEPTS, obsolete={"C:5"})


def table(*rows: tuple[str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"mention": pl.String, "concept_id": pl.String}, orient="row")


def pairs_of(made: PairSet) -> set[frozenset[tuple[int, str]]]:
    names = list(zip(made.labels.tolist(), texts_of(made, TEXTS), strict=True))
    assert len(set(names)) == len(names)
    pairs = [frozenset((names[a], names[b])) for a, b in made.pairs.tolist()]
    assert all(len(pair) == 2 for pair in pairs)
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


def expected_pairs(rows: list[tuple[str, str]]) -> set[frozenset[tuple[int, str]]]:
    codes = {code: row for row, concept in enumerate(CONCEPTS) for code in concept.split("|") if concept != "C:5"}
    found = set()
    for mention, ids in rows:
        for row in {codes[code] for code in ids.split("|") if code in codes}:
            for name in list(CONCEPTS.values())[row]:
                text = name if isinstance(name, str) else "" if name.is_suppressed else name.text
                if text and mention.strip() and text.lower() != mention.strip().lower():
                    found.add(frozenset(((row, mention.strip().lower()), (row, text.lower()))))
    return found


rows_strategy = st.lists(
    st.tuples(
        st.sampled_from([*TEXTS, "Bad Heart", " MI ", " "]),
        st.sampled_from(
            [
                "C:1",
                "C:2",
                "C:3",
                "C:1|C:3",
                "C:4",
                "D:4",
                "C:4|D:4",
                "C:5",
                "X",
                "X|C:2",
                " C:1 |C:1",
                "NIL",
                "NIL|C:2",
            ]
        ),
    ),
    max_size=8,
)


@given(rows_strategy)
@settings(max_examples=60)
def test_every_mention_is_paired_with_every_other_name_of_its_concepts(
    terminology: Terminology, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    rows = [(mention, ids.replace(" C:1 |C:1", "C:1")) for mention, ids in rows]
    out = tmp_path_factory.mktemp("p") / "p"
    expected = expected_pairs(rows)
    if not expected:
        with pytest.raises(InputError, match="no mention has a name to be paired with"):
            build_mention_pairs(terminology, table(*rows), small_tokenizer(), out, on_unknown="skip")
        return
    made = build_mention_pairs(terminology, table(*rows), small_tokenizer(), out, on_unknown="skip")
    assert pairs_of(made) == expected
    assert (np.diff(made.labels) >= 0).all()
    assert made.manifest.config["mentions_fingerprint"] == mentions_fingerprint(mention for mention, _ in rows)
    counts = made.manifest.config["mentions"]
    assert counts["in_all"] == len(rows)
    assert counts["of_no_concept"] == sum(ids == "NIL" for _, ids in rows)
    assert counts["unknown"] == sum(ids in {"C:5", "X"} for _, ids in rows)
    assert counts["partly_unknown"] == sum(ids == "X|C:2" for _, ids in rows)
    assert counts["blank"] == sum(not mention.strip() for mention, _ in rows)
    assert made.text_labels is not None
    by_text: dict[str, int] = {}
    for text, label in zip(texts_of(made, TEXTS), made.text_labels.tolist(), strict=True):
        assert by_text.setdefault(text, label) == label
    assert len(set(by_text.values())) == len(by_text)


@pytest.mark.parametrize("name", ["m.csv", "m.csv.gz", "m.zip"])
def test_a_table_of_mentions_plain_or_packed(name: str, tmp_path: Path) -> None:
    text = b"mention,concept_id\ngrippe,D1\n"
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("i.csv", text)
    else:
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert read_mentions(tmp_path / name).rows() == [("grippe", "D1")]


def test_columns_of_mentions_that_are_there_are_not_to_be_called_otherwise(tmp_path: Path) -> None:
    pl.DataFrame({"mention": ["flu"], "concept_id": [["D1"]]}).write_parquet(tmp_path / "m.parquet")
    with pytest.raises(InputError, match="a column of a type that is no text") as caught:
        read_mentions(tmp_path / "m.parquet")
    assert caught.value.found == "List(String)"
    assert caught.value.fix == "write the table again with this column as text"


def test_what_is_written_can_be_opened_and_says_what_it_is(terminology: Terminology, tmp_path: Path) -> None:
    rows = table(("bad heart", "C:1"), ("podagra", "D:4"))
    calls: list[tuple[int, int, str]] = []
    made = build_mention_pairs(
        terminology, rows, small_tokenizer(), tmp_path / "p", seed=3, progress=lambda *args: calls.append(args)
    )
    verify_artifact(made.path)
    opened = PairSet.open(made.path)
    assert opened.manifest == made.manifest
    assert np.array_equal(opened.pairs, made.pairs)
    assert made.manifest.parents == (terminology.manifest.as_parent(),)
    assert calls[-1][:2] == (len(made.store), len(made.store))
    again = build_mention_pairs(terminology, rows, small_tokenizer(), tmp_path / "q", seed=3)
    assert again.manifest.fingerprint == made.manifest.fingerprint
    with pytest.raises(ArtifactExistsError):
        build_mention_pairs(terminology, rows, small_tokenizer(), tmp_path / "p")


def test_a_cap_takes_every_name_equally_often(tmp_path: Path) -> None:
    letters = "abcdefghij"
    terminology = make_terminology(tmp_path / "t", {"C": [f"name {letter}" for letter in letters]})
    mentions = table(*((f"m{a}{b}", "C") for a in letters for b in letters))
    made = build_mention_pairs(terminology, mentions, small_tokenizer(), tmp_path / "p", max_pairs_per_mention=3)
    of_mention = Counter(made.pairs[:, 1].tolist())
    assert set(of_mention.values()) == {3}
    of_name = Counter(made.pairs[:, 0].tolist())
    assert len(of_name) == 10
    assert all(10 < count < 55 for count in of_name.values())  # 30 expected, standard deviation 4.6
    other = build_mention_pairs(
        terminology, mentions, small_tokenizer(), tmp_path / "q", max_pairs_per_mention=3, seed=1
    )
    assert not np.array_equal(other.pairs, made.pairs)


def test_languages_and_homonyms(terminology: Terminology, tmp_path: Path) -> None:
    rows = table(("bad heart", "C:1"), ("bad heart", "C:3"))
    french = build_mention_pairs(terminology, rows, small_tokenizer(), tmp_path / "a", languages=["fr"])
    assert pairs_of(french) == {frozenset(((0, "bad heart"), (0, "infarctus")))}
    assert french.manifest.config["mentions"]["without_names"] == 1
    repeated = table(*[("bad heart", "C:1"), ("bad heart", "C:3"), ("bad heart", "C:3"), ("heart", "C:1|C:3")])
    several = build_mention_pairs(terminology, repeated, small_tokenizer(), tmp_path / "c", languages=["fr"])
    assert several.manifest.config["mentions"]["without_names"] == 2  # each annotation, as in all
    dropped = build_mention_pairs(
        terminology, table(*rows.rows(), ("podagra", "C:1")), small_tokenizer(), tmp_path / "b", ambiguous="drop"
    )
    assert pairs_of(dropped) == {
        frozenset(((0, "podagra"), (0, "heart attack"))),
        frozenset(((0, "podagra"), (0, "infarctus"))),
    }
    assert dropped.text_labels is None


@pytest.mark.parametrize("code", ["X:1", "C:5", "C:1|X:1"])
def test_unknown_concepts_are_refused_unless_skipped(terminology: Terminology, tmp_path: Path, code: str) -> None:
    rows = table(("bad heart", "C:1"), ("podagra", code))
    with pytest.raises(InputError, match=r"1 of 2 mentions mean a concept that the terminology .* does not have"):
        build_mention_pairs(terminology, rows, small_tokenizer(), tmp_path / "p")
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("blank", ["", " ", "|", " | ", "\u00a0", "|\u2003|", "\t"])
def test_mentions_without_a_code_are_refused(terminology: Terminology, tmp_path: Path, blank: str) -> None:
    rows = table(("bad heart", "C:1"), ("podagra", blank))
    with pytest.raises(InputError, match=r"mentions without a code; .* found 1 blank"):
        build_mention_pairs(terminology, rows, small_tokenizer(), tmp_path / "p")
    (tmp_path / "m.csv").write_text(f"mention,concept_id\nbad heart,C:1\npodagra,{blank or '|'}\n")
    with pytest.raises(InputError, match="line 3, field concept_id"):
        read_mentions(tmp_path / "m.csv")


def test_a_quote_left_open_is_refused_with_what_can_be_done(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text('mention,concept_id\n"bad heart,C:1\npodagra,C:2\n')
    with pytest.raises(InputError, match=r"line 2.*close it") as caught:
        read_mentions(tmp_path / "m.csv")
    assert "--set" not in str(caught.value)


@pytest.mark.parametrize(
    "rows",
    [
        pl.DataFrame({"mention": ["a"]}),
        pl.DataFrame({"mention": ["a"], "concept_id": [1]}),
        pl.DataFrame({"mention": ["a", None], "concept_id": ["C:1", "C:1"]}),
    ],
    ids=str,
)
def test_other_tables_are_refused(terminology: Terminology, tmp_path: Path, rows: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="no table of mentions"):
        build_mention_pairs(terminology, rows, small_tokenizer(), tmp_path / "p")


@pytest.mark.parametrize(
    "options",
    [{"max_pairs_per_mention": 0}, {"ambiguous": "forget"}, {"normalisation": "x"}, {"on_unknown": "ignore"}],
)
def test_settings_that_cannot_be(terminology: Terminology, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        build_mention_pairs(terminology, table(("a", "C:1")), small_tokenizer(), tmp_path / "p", **options)


def test_files_of_queries(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    file.write_bytes("D1||heart attack\r\n\r\nD1+D2||a+b\nD1+D2||both\nD3|D4||e|té\nD5|D6||CD4+ cell\n".encode())
    reading = Reading()
    assert read_mentions(file, reading).rows() == [("heart attack", "D1"), ("both", "D1|D2"), ("CD4+ cell", "D5|D6")]
    assert reading.notes == {"composite mentions left out": 2}
    file.write_text("D1||x\nno divider\n||x\nD2|| \n", encoding="utf-8")
    with pytest.raises(InputError, match=r"train.txt, line 2: no '\|\|'"):
        read_mentions(file, Reading())
    skipping = Reading(on_error="skip")
    assert read_mentions(file, skipping).rows() == [("x", "D1")]
    assert skipping.rejects["line"].to_list() == [2, 3, 4]


@pytest.mark.parametrize(
    "line", ["C1||heart attack||myocardial infarction", "1||0||12||SpecificDisease||heart attack||D009203"]
)
def test_lines_of_other_files_are_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "1.concept").write_text(f"D1||x\n{line}\n")
    with pytest.raises(InputError, match=r"line 2.*SapBERT's pairs.*--classes listed.*\.concept files docs/benchmarks"):
        read_mentions(tmp_path / "1.concept")
    skipping = Reading(on_error="skip")
    assert read_mentions(tmp_path / "1.concept", skipping).rows() == [("x", "D1")]
    assert len(skipping.rejects) == 1
    with pytest.raises(InputError, match=r"a folder of \.concept files.*docs/benchmarks\.md"):
        read_mentions(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [("\n", "no mentions in the file; expected a line"), ("D1|D2||a|b\n", r"found 1 composite mentions left out")],
)
def test_a_file_without_mentions_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "m.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=rf"m\.txt: .*{said}"):
        read_mentions(file, Reading())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_context_may_be_a_column_that_is_read_anyway(tmp_path: Path, kind: str) -> None:
    rows = pl.DataFrame({"mention": ["a"], "concept_id": ["D1"]})
    rows.write_csv(tmp_path / "m.csv")
    rows.write_parquet(tmp_path / "m.parquet")
    read = read_mentions(tmp_path / f"m.{kind}", context="mention")
    assert read.rows(named=True) == [{"mention": "a", "concept_id": "D1", "context": "a"}]


@pytest.mark.parametrize("context", ["*", "^.*$"])
def test_a_context_whose_name_is_a_pattern_elsewhere(tmp_path: Path, context: str) -> None:
    rows = pl.DataFrame({"mention": ["a"], "concept_id": ["D1"], context: ["with a"]})
    rows.write_csv(tmp_path / "m.csv")
    read = read_mentions(tmp_path / "m.csv", context=context)
    assert read.rows(named=True) == [{"mention": "a", "concept_id": "D1", "context": "with a"}]


@pytest.mark.parametrize("names", [("span", "hpo_id"), ("concept_id", "mention"), ("*", "^.*$")])
@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_columns_of_other_names(tmp_path: Path, kind: str, names: tuple[str, str]) -> None:
    file, rows = (
        tmp_path / f"m.{kind}",
        pl.DataFrame([("a", "D1", "in a", "p")], [*names, "said", "paper"], orient="row"),
    )
    if kind == "parquet":
        rows.write_parquet(file)
    else:
        file.write_text(rows.write_csv() if kind == "csv" else rows.write_ndjson())
    written = MentionFormat(*names)
    assert read_mentions(file, mention_format=written).rows(named=True) == [{"mention": "a", "concept_id": "D1"}]
    read = read_mentions(file, context="said", cluster="paper", mention_format=written)
    expected = {"mention": "a", "concept_id": "D1", "context": "in a", "cluster": "p"}
    assert read.rows(named=True) == [expected]
    assert read_mentions(file, context=names[1], cluster=names[1], mention_format=written).row(0)[2:] == ("D1", "D1")


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("csv", pl.Int8), ("csv", pl.Float64), ("parquet", pl.UInt64), ("parquet", pl.String), ("jsonl", pl.Int64)],
)
def test_a_column_of_counts(tmp_path: Path, kind: str, dtype: pl.DataType) -> None:
    rows = pl.DataFrame({"mention": ["a", "b"], "concept_id": ["D1", "D2"], "n": [12, 0]}).cast({"n": dtype})
    file = tmp_path / f"m.{kind}"
    getattr(rows, {"csv": "write_csv", "parquet": "write_parquet", "jsonl": "write_ndjson"}[kind])(file)
    assert read_mentions(file, count="n").rows() == [("a", "D1", 12), ("b", "D2", 0)]
    assert read_mentions(file, count="n").schema["count"] == pl.Int64
    assert "count" not in read_mentions(file).columns


@pytest.mark.parametrize("count", ["", "-1", "1.5", "1e3", "many", "1234567890123", "1 000"])
def test_a_count_that_is_none(tmp_path: Path, count: str) -> None:
    file = tmp_path / "m.csv"
    file.write_text(f"mention,concept_id,n\na,D1, 999999999999 \nb,D2,{count}\n")
    with pytest.raises(InputError, match=r"line 3, field n: .*a whole number of at most 12 digits"):
        read_mentions(file, count="n")
    reading = Reading(on_error="skip")
    assert read_mentions(file, reading, count="n")["count"].to_list() == [10**12 - 1]
    assert len(reading.rejects) == 1


def test_a_bad_row_is_told_by_the_names_of_its_table(tmp_path: Path) -> None:
    file = tmp_path / "m.csv"
    file.write_text("span,hpo_id,paper\na,D1,p\nb,,p\n")
    with pytest.raises(InputError, match="line 3, field hpo_id: an empty cell"):
        read_mentions(file, mention_format=MentionFormat("span", "hpo_id"))
    with pytest.raises(InputError, match=r"no column 'hpo'\. Did you mean 'hpo_id'\?.*the column of their codes"):
        read_mentions(file, mention_format=MentionFormat("span", "hpo"))
    with pytest.raises(InputError, match=r"no column 'papers'\. Did you mean 'paper'\?.*clusters \(--cluster\)"):
        read_mentions(file, cluster="papers", mention_format=MentionFormat("span", "hpo_id"))


def test_an_encoding_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_bytes("mention,concept_id\nfièvre,D1\n".encode("cp1252"))
    (tmp_path / "m.txt").write_bytes("D1||fièvre\n".encode("cp1252"))
    written = MentionFormat(encoding="cp1252")
    for name in ("m.csv", "m.txt"):
        assert read_mentions(tmp_path / name, mention_format=written).rows() == [("fièvre", "D1")]
        with pytest.raises(InputError, match=r"not UTF-8.*--encoding cp1252"):
            read_mentions(tmp_path / name)
    with pytest.raises(ConfigError, match="in one encoding; found cp1252 and utf-8"):
        read_mentions(tmp_path / "m.csv", Reading(), mention_format=written)


def test_lines_have_no_columns(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("D1||x\n")
    with pytest.raises(InputError, match=r"m\.txt: lines of mentions have no columns; .*columns span, concept_id"):
        read_mentions(tmp_path / "m.txt", mention_format=MentionFormat("span"))
    with pytest.raises(InputError, match="lines of mentions have no clusters"):
        read_mentions(tmp_path / "m.txt", cluster="paper")


@pytest.mark.parametrize(
    "names", [("",), ("mention", "mention"), ("concept_id",), (3,), ("a", None), ("a", "b", "cp0")]
)
def test_names_of_columns_that_cannot_be(names: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigError, match=r"a column is named by its text|would both be the column|encoding 'cp0'"):
        MentionFormat(*names)


def test_contexts_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("mention,concept_id,sentence\nx,D1,y\n")
    with pytest.raises(InputError, match=r"no column 'sent'\. Did you mean 'sentence'\?.*name the column.*--context"):
        read_mentions(tmp_path / "m.csv", Reading(), context="sent")


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_tables_of_mentions(tmp_path: Path, kind: str) -> None:
    rows = pl.DataFrame({"concept_id": ["D1|D2", "D3"], "other": [1, 2], "mention": ["heart, bad", "x+y"]})
    file = tmp_path / f"m.{kind}"
    if kind == "parquet":
        rows.write_parquet(file)
    else:
        rows.write_csv(file, separator="," if kind == "csv" else "\t")
    assert read_mentions(file, Reading()).rows() == [("heart, bad", "D1|D2"), ("x+y", "D3")]
    if kind == "parquet":
        rows.with_columns(pl.col("mention", "concept_id").cast(pl.Categorical)).write_parquet(file)
        assert read_mentions(file, Reading()).rows() == [("heart, bad", "D1|D2"), ("x+y", "D3")]
    other = tmp_path / f"o.{kind}"
    rows = rows.rename({"mention": "text"})
    if kind == "parquet":
        rows.write_parquet(other)
    else:
        rows.write_csv(other, separator="," if kind == "csv" else "\t")
    with pytest.raises(
        InputError, match=r"no column 'mention'; expected one of .*text.*name the column of mentions \(--column\)"
    ):
        read_mentions(other, Reading())
    with pytest.raises(InputError, match="no such file"):
        read_mentions(tmp_path / f"none.{kind}", Reading())


def test_mentions_as_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "m.jsonl"
    file.write_text('{"concept_id": 7, "x": [1], "mention": "cold"}\n\n{"mention": "x+y", "concept_id": "1|2"}\n')
    assert read_mentions(file).rows() == [("cold", "7"), ("x+y", "1|2")]
    file.write_text('{"concept_id": "7", "mention": "cold"}\n{"mention": "flu"}\n')
    with pytest.raises(InputError, match="line 2, field concept_id: an empty cell"):
        read_mentions(file)
    file.write_text('{"concept_id": "7", "text": "cold"}\n')
    with pytest.raises(InputError, match=r"no line has the key 'mention'.*name the column of mentions \(--column\)"):
        read_mentions(file)


def test_a_doubled_column_and_the_first_bad_line_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("mention,concept_id,mention\na,D1,b\n")
    with pytest.raises(InputError, match=r"two columns are called 'mention'\. To mend it: rename one of them"):
        read_mentions(tmp_path / "x.csv")
    (tmp_path / "x.txt").write_bytes(b"D1||heart\nbroken\nD2||\xff\n")
    with pytest.raises(InputError, match=r"line 2: no '\|\|' in the line.*on_error='skip'"):
        read_mentions(tmp_path / "x.txt")
    (tmp_path / "x.txt").write_bytes(b"D1||heart\nD2||\xff\nbroken\n")
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        read_mentions(tmp_path / "x.txt")
    reading = Reading("skip")
    assert read_mentions(tmp_path / "x.txt", reading).rows() == [("heart", "D1")]
    assert sorted(reading.rejects["line"]) == [2, 3]


def test_joined_codes_of_tables_are_told(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("mention,concept_id\nboth,D1+D2\none,D1\n")
    reading = Reading()
    assert read_mentions(tmp_path / "m.csv", reading).rows() == [("both", "D1+D2"), ("one", "D1")]
    assert reading.notes == {"codes with a '+', which divides codes in lines id||mention alone": 1}


def test_a_concept_may_be_called_nil(tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {"NIL": ["nilpotency", "nil"], "D1": ["cold"]})
    made = build_mention_pairs(
        terminology, table(("none of it", "NIL"), ("x", "-1"), ("y", "0")), small_tokenizer(), tmp_path / "p"
    )
    counts = made.manifest.config["mentions"]
    assert (len(made.pairs), counts["of_no_concept"], counts["unknown"]) == (2, 2, 0)


def test_codes_in_another_form_are_told(terminology: Terminology, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another form in the terminology: c:1 is C:1 there"):
        build_mention_pairs(terminology, table(("x", "c:1")), small_tokenizer(), tmp_path / "p")
    told: list[str] = []
    some = table(("x", "c:1"), ("y", "C:1"))
    build_mention_pairs(terminology, some, small_tokenizer(), tmp_path / "p", on_unknown="skip", tell=told.append)
    assert told == ["1 of their codes has another form in the terminology: c:1 is C:1 there"]
    with pytest.raises(InputError, match=r"found 1 in all, 1 unknown\..*form in the terminology: c:1 is C:1 there"):
        build_mention_pairs(terminology, some[:1], small_tokenizer(), tmp_path / "none", on_unknown="skip")
