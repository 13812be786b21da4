"""Corpora in PubTator's format, and mentions in their places in every format: what is left out, what is no corpus."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.pairs import read_corpus, read_mentions
from onoma.pairs.corpora import corpus_annotations

CORPUS = """\
1|t|Type 1 and 2 diabetes, and MI.
1|a|After β-blockers: MI again.
1\t0\t21\tType 1 and 2 diabetes\tDisease\tD003922|D003924\tType 1 diabetes|type 2 diabetes
1\t27\t29\tMI\tDisease\tD009203
1\t37\t47\tβ-blockers\tChemical\t-1
1\t49\t51\tMI\tDisease\tMESH:D009203
1\tCID\tD000319\tD009203

2|t|Colds
2|a|
2\t0\t5\tColds\tT047,T184\tUMLS:C0009443
2\t0\t5\tcolds\tT047\t
"""


def write(folder: Path, text: str, name: str = "corpus.txt") -> Path:
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["corpus.txt", "CDR.PubTator.txt.gz", "corpus"])
def test_mentions_and_their_places(name: str, tmp_path: Path) -> None:
    reading = Reading()
    found = read_corpus(write(tmp_path, CORPUS, name), reading)
    first, second = "Type 1 and 2 diabetes, and MI. After β-blockers: MI again.", "Colds "
    rows = [
        ("MI", "D009203", "Disease", "1", 27, 29, first[:27] + "<tgt> MI </tgt>" + first[29:]),
        ("β-blockers", "NIL", "Chemical", "1", 37, 47, first[:37] + "<tgt> β-blockers </tgt>" + first[47:]),
        ("MI", "MESH:D009203", "Disease", "1", 49, 51, first[:49] + "<tgt> MI </tgt>" + first[51:]),
        ("Colds", "UMLS:C0009443", "T047,T184", "2", 0, 5, "<tgt> Colds </tgt> "),
        ("colds", "NIL", "T047", "2", 0, 5, second),
    ]
    assert found.rows() == rows
    assert reading.notes == {
        "mentions of several concepts, left out": 1,
        "relations, which are not read": 1,
        "mentions that do not stand where their annotation says, whose place in the context is not marked": 1,
    }


def test_every_annotation(tmp_path: Path) -> None:
    first, *_, last = corpus_annotations(write(tmp_path, CORPUS))
    assert (first.codes, first.parts, first.line) == (
        ("D003922", "D003924"), ("Type 1 diabetes", "type 2 diabetes"), 3,
    )  # fmt: skip
    assert (last.codes, last.types, last.is_in_place) == ((), ("T047",), False)


def test_types_and_prefixes(tmp_path: Path) -> None:
    path = write(tmp_path, CORPUS)
    reading = Reading()
    found = read_corpus(path, reading, types=["T184", "Chemical"], strip_prefix="UMLS:", add_prefix="X:")
    assert found["concept_id"].to_list() == ["NIL", "X:C0009443"]
    assert reading.notes["mentions of other types, left out"] == 4
    found = read_corpus(path, types=["Disease"], add_prefix="MESH:")
    assert found["concept_id"].to_list() == ["MESH:D009203", "MESH:D009203"]
    with pytest.raises(InputError, match=r"'T04'.*T047") as caught:
        read_corpus(path, types=["T04"])
    assert (caught.value.path, caught.value.field) == (path, "type")


@pytest.mark.parametrize(
    "code", ["c|SUB|A|118|G", "p|DEL|508|F ", "c|INS|1+2|A", "tmVar:p|SUB|V|600|E", "HGVS:c.88+2T>G", "rs642961"]
)
def test_a_variant_is_one_concept(code: str, tmp_path: Path) -> None:
    found = read_corpus(write(tmp_path, f"1|t|a b\n1\t0\t1\ta\tSequenceVariant\t{code}\n"))
    assert found["concept_id"].to_list() == [code.strip()]


@pytest.mark.parametrize(
    "said", ["", "-", "-1", "NIL", "NULL", "None", "CUI-less", "MESH:-1", "MESH:NIL", "UMLS:", "-1|-"]
)
def test_mentions_of_no_concept(said: str, tmp_path: Path) -> None:
    found = read_corpus(write(tmp_path, f"1|t|a b\n1\t0\t1\ta\tGene\t{said}\n"), add_prefix="X:")
    assert found["concept_id"].to_list() == ["NIL"]


@pytest.mark.parametrize("codes", ["D1|D2", "D1+D2", "D1,D2", "1;2", "D1|-1", "c|SUB|A|118|G;c|SUB|A|119|G"])
def test_mentions_of_several_concepts(codes: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"1|t|a b\n1\t0\t1\ta\tGene\t{codes}\n")
    with pytest.raises(
        InputError, match=r"no mention of one concept.*found mentions of several concepts.*: 1"
    ) as caught:
        read_corpus(path)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1\t0\t2\tab\tDisease", "no line of a corpus"),
        ("nothing", "no line of a corpus"),
        ("1\tCID", "no line of a corpus"),
        ("9\t0\t2\tab\tDisease\tD1", "an annotation of another document"),
        ("1\t0\t8\tab cd ef\tDisease\tD1", "a place outside the document; expected START below END, and END at most 5"),
        ("1\t2\t2\tab\tDisease\tD1", "a place outside the document"),
        ("1\t0\tx\tab\tDisease\tD1", "a place outside the document"),
        ("1\t-1\t2\tab\tDisease\tD1", "a place outside the document"),
        ("1\t\t2\tab\tDisease\tD1", "a place outside the document"),
        ("1\t٠\t2\tab\tDisease\tD1", "a place outside the document"),
        ("1\t0\t2\t \tDisease\tD1", "a blank mention"),
    ],
)
def test_bad_lines(line: str, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"1|t|ab\n1|a|cd\n{line}\n1\t3\t5\tcd\tDisease\tD2\n")
    with pytest.raises(InputError, match=problem) as caught:
        read_corpus(path)
    assert (caught.value.path, caught.value.line) == (path, 3)
    reading = Reading(on_error="skip")
    assert read_corpus(path, reading)["mention"].to_list() == ["cd"]
    assert reading.rejects.select("file", "line", "text").rows() == [("corpus.txt", 3, line)]
    assert reading.rejects["line"].to_list() == [3]


def test_documents_without_a_title(tmp_path: Path) -> None:
    found = read_corpus(write(tmp_path, "1|a|ab\n1\t0\t2\tab\tDisease\tD1\n2|a|cd\n2\t0\t2\tcd\tDisease\tD2\n"))
    assert found.select("document", "context").rows() == [("1", "<tgt> ab </tgt>"), ("2", "<tgt> cd </tgt>")]


def test_a_document_that_comes_twice(tmp_path: Path) -> None:
    text = "1|t|ab\n1|a|cd\n1\t3\t5\tcd\tDisease\tD1\n"
    found = read_corpus(write(tmp_path, text + text.replace("cd", "ef")))
    assert found["context"].to_list() == ["ab <tgt> cd </tgt>", "ab <tgt> ef </tgt>"]


def test_blanks_around_fields_and_a_short_relation(tmp_path: Path) -> None:
    reading = Reading()
    text = "1|t|ab\n  \n 1\t 0\t2 \tab\t Disease , T047\t D1 \n1\tR\tD1\n"
    found = read_corpus(write(tmp_path, text), reading, with_context=False)
    assert found.rows() == [("ab", "D1", "Disease,T047", "1", 0, 2)]
    assert reading.notes == {"relations, which are not read": 1}


@pytest.mark.parametrize(("parts", "n_mentions"), [("ab", 1), (" ", 1), ("a|b", 0), ("a|b|c", 0)])
def test_mentions_whose_parts_are_written_out(parts: str, n_mentions: int, tmp_path: Path) -> None:
    text = f"1|t|ab cd\n1\t0\t2\tab\tDisease\tD1\t{parts}\n1\t3\t5\tcd\tDisease\tD2\n"
    path = write(tmp_path, text)
    assert len(read_corpus(path)) == n_mentions + 1
    assert next(corpus_annotations(path)).parts == tuple(filter(str.strip, parts.split("|")))


def test_one_concept_however_often_it_is_named(tmp_path: Path) -> None:
    text = "1|t|ab\n1\t0\t2\tab\tDisease\tD1|D1\n1\t0\t2\tab\tDisease\tX:\n"
    found = read_corpus(write(tmp_path, text), strip_prefix="X:", add_prefix="MESH:")
    assert found["concept_id"].to_list() == ["MESH:D1", "NIL"]


def test_an_annotation_before_any_document(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"another document.*its title first"):
        read_corpus(write(tmp_path, "1\t0\t2\tab\tDisease\tD1\n"))


def test_documents_in_two_files_and_files_without_any(tmp_path: Path) -> None:
    infons = {"type": "T", "identifier": "C1"}
    annotation = {"text": "it", "infons": infons, "locations": [{"offset": 0, "length": 2}]}
    for name, ids in (("a.json", "12"), ("b.json", "345"), ("c.json", "256")):
        documents = [{"id": one, "passages": [{"offset": 0, "text": "it"}], "annotations": [annotation]} for one in ids]
        write(tmp_path, json.dumps(documents), name)
    write(tmp_path, '{"version": 2}', "about.json")
    reading = Reading()
    assert "".join(read_corpus(tmp_path, reading)["document"]) == "12345256"
    assert reading.notes == {
        "files that gave no mention": 1,
        "documents that came in another file too, read again": 2,
    }


VARIANTS = """\
1|t|a b c d e f
1\t0\t1\ta\tVariant\ttmVar:p|SUB|V|600|E;HGVS:c.88+2T>G;VariantGroup:0;CorrespondingGene:673;RS#:113488022;CA#:7
1\t2\t3\tb\tVariant\ttmVar:rs64;VariantGroup:1;RS#:64; RS#:64
1\t4\t5\tc\tVariant\tRS#:1;RS#:2
1\t6\t7\td\tGene\t673
1\t8\t9\te\tDisease\tMESH:-1
1\t10\t11\tf\tDisease\tMESH:D1,MESH:D2
"""


@pytest.mark.parametrize(
    ("prefix", "codes", "n_several", "n_without"),
    [
        ("RS#", {"a": "RS#:113488022", "b": "RS#:64"}, 1, 2),
        ("tmVar", {"a": "tmVar:p|SUB|V|600|E", "b": "tmVar:rs64"}, 0, 3),
        ("HGVS", {"a": "HGVS:c.88+2T>G"}, 0, 4),
        ("MESH", {}, 1, 4),
        ("", {"d": "673"}, 4, 0),
    ],
)
def test_codes_with_a_prefix(
    prefix: str, codes: dict[str, str], n_several: int, n_without: int, tmp_path: Path
) -> None:
    reading = Reading()
    found = read_corpus(write(tmp_path, VARIANTS), reading, codes_in=prefix)
    assert dict(found.select("mention", "concept_id").rows()) == {**codes, "e": "NIL"}
    assert reading.notes.get("mentions of several concepts, left out", 0) == n_several
    assert reading.notes.get("mentions without a code, nor said to be of no concept, left out", 0) == n_without


def test_a_prefix_that_no_code_has(tmp_path: Path) -> None:
    path = write(tmp_path, CORPUS)
    with pytest.raises(InputError, match=r"the corpus has nothing of 'mesh'.*some of MESH, UMLS") as caught:
        read_corpus(path, codes_in="mesh")
    assert (caught.value.path, caught.value.field) == (path, "codes_in")
    path = write(tmp_path, "1|t|ab\n1\t0\t1\ta\tGene\t673\n1\t0\t1\ta\tGene\t-1\n")
    with pytest.raises(InputError, match="no codes_in, as the corpus has none"):
        read_corpus(path, codes_in="GENE")
    path = write(tmp_path, "1|t|ab\n1\t0\t1\ta\tGene\t-1\n")
    assert read_corpus(path, codes_in="GENE")["concept_id"].to_list() == ["NIL"]


def test_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes("1|t|Übel\n1\t0\t4\tÜbel\tD\tD1\n".encode("cp1252"))
    assert read_corpus(path, Reading(encoding="cp1252"))["context"].to_list() == ["<tgt> Übel </tgt>"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_table_is_one_of_annotated_mentions(ending: str, tmp_path: Path) -> None:
    found = read_corpus(write(tmp_path, CORPUS))
    table = tmp_path / f"mentions.{ending}"
    found.write_csv(table) if ending == "csv" else found.write_parquet(table)
    again = read_mentions(table, context="context", cluster="document", group="type")
    assert again.select("mention", "concept_id", "context").equals(found.select("mention", "concept_id", "context"))
    assert again["cluster"].to_list() == found["document"].to_list()


WORDS = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)


@given(
    documents=st.lists(st.lists(WORDS, min_size=2, max_size=6), min_size=1, max_size=4),
    choose=st.randoms(use_true_random=False),
)
def test_places_are_found_again(
    documents: list[list[str]], choose: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    lines, bioc, expected = [], [], []
    for number, words in enumerate(documents):
        at = choose.randrange(1, len(words))
        title, abstract = " ".join(words[:at]), " ".join(words[at:])
        text = f"{title} {abstract}"
        lines += [f"{number}|t|{title}", f"{number}|a|{abstract}"]
        start = choose.randrange(len(text))
        end = choose.randrange(start + 1, len(text) + 1)
        if text[start:end].strip():
            mention = text[start:end]
            lines.append(f"{number}\t{start}\t{end}\t{mention}\tT\tC{number}")
            expected.append((mention, f"C{number}", text))
            infons, places = {"type": "T", "identifier": f"C{number}"}, [{"offset": start, "length": end - start}]
            annotations = [{"text": mention, "infons": infons, "locations": places}]
            passages = [{"offset": 0, "text": title}, {"offset": len(title) + 1, "text": abstract}]
            bioc.append({"id": str(number), "passages": passages, "annotations": annotations})
            (folder / f"{number}.txt").write_text(text, encoding="utf-8")
            written = f"T1\tT {start} {end}\t{mention}\nN1\tReference T1 C{number}\n"
            (folder / f"{number}.ann").write_text(written, encoding="utf-8")
    if not expected:
        return
    found = read_corpus(write(folder, "\n".join(lines) + "\n", "corpus.pubtator"))
    (folder / "corpus").write_text(json.dumps(bioc))
    assert read_corpus(folder / "corpus").equals(found)
    stripped = found.with_columns(pl.col("mention").str.strip_chars())
    assert read_corpus(folder).with_columns(pl.col("mention").str.strip_chars()).equals(stripped)
    plain = pl.col("context").str.replace("<tgt> ", "", literal=True).str.replace(" </tgt>", "", literal=True)
    assert found.select("mention", "concept_id", plain).rows() == expected


def test_progress_is_told_in_bytes_of_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.files.reading._SECONDS_BETWEEN_PROGRESS", 0.0)
    rows = [
        {
            "document_id": str(number),
            "passages": [{"text": ["MI."], "offsets": [[0, 3]]}],
            "entities": [
                {
                    "type": "Disease",
                    "text": ["MI"],
                    "offsets": [[0, 2]],
                    "normalized": [{"db_name": "MESH", "db_id": "D009203"}],
                }
            ],
        }
        for number in range(4)
    ]
    folder, brat, single = tmp_path / "shards", tmp_path / "brat", write(tmp_path, CORPUS)
    folder.mkdir()
    brat.mkdir()
    pl.DataFrame(rows).write_parquet(folder / "a.parquet")
    write(folder, json.dumps(rows[0]) + "\n", "b.jsonl")
    first, last = ((folder / name).stat().st_size for name in ("a.parquet", "b.jsonl"))
    for name, size in (("1", 30), ("2", 40)):
        write(brat, "MI", f"{name}.txt")
        write(brat, "T1\tDisease 0 2\tMI\nN1\tReference T1 MESH:D1".ljust(size, " ") + "\n", f"{name}.ann")
    sizes = [file.stat().st_size for file in sorted(brat.glob("*.ann"))]
    expected = {
        single: {single.stat().st_size: single.stat().st_size},
        folder: dict.fromkeys([*(first * share // 4 for share in (1, 2, 3, 4)), first + last], first + last),
        brat: dict.fromkeys([sizes[0], sum(sizes)], sum(sizes)),
    }
    for corpus, steps in expected.items():
        told: list[tuple[int, int | None, str]] = []
        reading = Reading(progress=lambda *what, told=told: told.append(what))
        before = reading.progress
        read_corpus(corpus, reading)
        assert list(dict.fromkeys(told)) == [(done, total, corpus.name) for done, total in steps.items()]
        assert reading.progress is before
