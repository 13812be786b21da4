"""Corpora in brat's format: where the codes are, mentions in pieces, files that are not there, bad lines."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.pairs import read_corpus
from onoma.pairs.corpora import corpus_annotations
from tiny import tarred

TEXT = "Боль и chronic\nback pain.\nNausea, citalopram"
ANNOTATIONS = """\
N1\tReference T1 UMLS:C0030193\tБоль
T1\tDISO 0 4\tБоль
T2\tDISO 7 14;15 24\tchronic back pain
N2\tReference T2 UMLS:C0150055\t
T3\tDISO 7 14;20 24\tchronic pain
N3\tReference T3 UMLS:NULL
T4\tDISO 26 32\tNausea
N4\tReference T4 UMLS:C1
N5\tReference T4 UMLS:C2
T5\tCHEM 34 44\tcitalopram
N6\tReference T5 MeSH:D015283\tcitalopram
T6\tPERSON 0 1\tБ
R1\tCAUSE Arg1:T1 Arg2:T2\t
*\tEquiv T1 T2
A1\tNegation T1
#1\tAnnotatorNotes T1\tto be checked
"""


def write(folder: Path, annotations: str = ANNOTATIONS, text: str | bytes | None = TEXT, name: str = "1.ann") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(annotations, encoding="utf-8", newline="")
    if text is not None:
        data = text.encode() if isinstance(text, str) else text
        (folder / name).with_suffix(".txt").write_bytes(data)
    return folder


def test_normalisations(tmp_path: Path) -> None:
    reading = Reading()
    found = read_corpus(write(tmp_path / "c"), reading, strip_prefix="UMLS:")
    text = TEXT.replace("\n", " ")
    assert found.rows() == [
        ("Боль", "C0030193", "DISO", "1", 0, 4, "<tgt> Боль </tgt>" + text[4:]),
        ("chronic back pain", "C0150055", "DISO", "1", 7, 24, text[:7] + "<tgt> chronic back pain </tgt>" + text[24:]),
        ("chronic pain", "NIL", "DISO", "1", 7, 24, text[:7] + "<tgt> chronic back pain </tgt>" + text[24:]),
        ("citalopram", "MeSH:D015283", "CHEM", "1", 34, 44, text[:34] + "<tgt> citalopram </tgt>"),
    ]
    assert reading.notes == {
        "mentions of several concepts, left out": 1,
        "mentions without a code, nor said to be of no concept, left out": 1,
        "lines of relations, events, attributes and the like, which are not read": 4,
    }


def test_one_resource_of_several(tmp_path: Path) -> None:
    assert read_corpus(write(tmp_path / "c"), codes_in="MeSH")["mention"].to_list() == ["citalopram"]
    with pytest.raises(InputError, match=r"no mention has a code.*a line N for it of MESH.*--codes-in") as caught:
        read_corpus(tmp_path / "c", codes_in="MESH")
    assert caught.value.path == tmp_path / "c"


def test_codes_in_notes(tmp_path: Path) -> None:
    annotations = (
        "T1\tMORFOLOGIA 0 4\tБоль\n#1\tAnnotatorNotes T1\t8000/6/H\nT2\tX 26 32\tNausea\n#2\tAnnotatorNotes T2\tC1 C2\n"
        "T3\tX 34 44\tcitalopram\n#3\tAnnotatorNotes T3\t-1\n#4\tAnnotatorNotes R3\n"
        "R1\tCAUSE Arg1:T1 Arg2:T2\nE1\tPain:T9\nE2\nA1\tNegation T1\n"
    )
    write(tmp_path / "c", annotations)
    found = read_corpus(tmp_path / "c", codes_in="notes")
    assert found.select("mention", "concept_id").rows() == [("Боль", "8000/6/H"), ("citalopram", "NIL")]
    with pytest.raises(InputError, match=r"no mention has a code; expected a line N for it\. "):
        read_corpus(tmp_path / "c")
    write(tmp_path / "c", "T1\tMORFOLOGIA 0 4\tБоль\n#1\tAnnotatorNotes T2\t8000/6/H\n")
    with pytest.raises(InputError, match=r"no mention has a code; expected a note for it\. "):
        read_corpus(tmp_path / "c", codes_in="notes")


@pytest.mark.parametrize("line", ["#9", "#9\tAnnotatorNotes", "#9\tAnnotatorNotes T1 T2"])
def test_bad_notes(line: str, tmp_path: Path) -> None:
    write(tmp_path / "c", f"T1\tX 0 4\tБоль\n{line}\n#1\tAnnotatorNotes T1\tC1\n")
    with pytest.raises(InputError, match=r"no line of brat's format.*ID, KIND MENTION and the note") as caught:
        read_corpus(tmp_path / "c", codes_in="notes")
    assert caught.value.line == 2
    assert len(read_corpus(tmp_path / "c", Reading(on_error="skip"), codes_in="notes")) == 1


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("10028294", ("10028294",)),
        ("10028294 + 10012345", ("10028294", "10012345")),
        ("10028294/10012345", ("10028294", "10012345")),
        ("271782001 | Drowsy |", ("271782001",)),
        ("21499005|Feeling agitated", ("21499005",)),
        ("2297011000036108 | magnesium | (substance)", ("2297011000036108",)),
        ("76948002 | Severe pain | + 57676002 Arthralgia |", ("76948002", "57676002")),
        ("76948002|Severe pain|or 57676002|Arthralgia", ("76948002", "57676002")),
        ("417746004 | Type 2/3 trauma", ("417746004",)),
        ("CONCEPT_LESS", ()),
    ],
)
def test_codes_in_the_place_of_the_type(kind: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path / "c", f"TT1\t{kind} 0 4;7 14\tБоль chronic\n")
    (found,) = corpus_annotations(tmp_path / "c", codes_in="type")
    assert (found.codes, found.types, found.pieces, found.line) == (expected, (), ((0, 4), (7, 14)), 1)


def test_files_of_the_shared_tasks(tmp_path: Path) -> None:
    write(tmp_path / "c", "T1\tHabitat 0 4\tБоль\nT2\tMicroorganism 26 32\tNausea\n", name="train/1.a1")
    (tmp_path / "c" / "train" / "1.a2").write_text(
        "N1\tOntoBiotope Annotation:T1 Referent:OBT:001480\nN2\tNCBI_Taxonomy Annotation:T2 Referent:1280\n"
        "T3\tLives 7 14\tchronic\nE1\tLives:T3 Bacterium:T2\nT4\tLives 26 32\tNausea\n"
    )
    write(tmp_path / "c", "T1\tHabitat 0 4\tБоль\n", name="train/2.a1")
    reading = Reading()
    found = read_corpus(tmp_path / "c", reading)
    assert found.select("mention", "concept_id", "document").rows() == [
        ("Боль", "OBT:001480", "train/1"), ("Nausea", "1280", "train/1"),
    ]  # fmt: skip
    assert reading.notes == {
        "triggers of events, left out": 2,
        "lines of relations, events, attributes and the like, which are not read": 1,
        "mentions without a code, nor said to be of no concept, left out": 1,
    }
    assert read_corpus(tmp_path / "c", codes_in="NCBI_Taxonomy")["concept_id"].to_list() == ["1280"]


def test_several_codes_on_a_line(tmp_path: Path) -> None:
    write(tmp_path / "c", "T1\tX 0 4\tБоль\nN1\tReference T1 UMLS:C1|UMLS:C2\nN2\tReference T1 UMLS:C2,UMLS:C3\n")
    (found,) = corpus_annotations(tmp_path / "c")
    assert found.codes == ("UMLS:C1", "UMLS:C2", "UMLS:C3")


def test_pieces_in_another_order(tmp_path: Path) -> None:
    write(tmp_path / "c", "T1\tX 15 24;7 14\tchronic back pain\nN1\tReference T1 C1\n")
    assert read_corpus(tmp_path / "c").select("start", "end").row(0) == (7, 24)


def test_codes_of_what_is_no_mention(tmp_path: Path) -> None:
    reading = Reading()
    write(tmp_path / "c", "N1\tReference T1 C1\nT2\tX 0 4\tБоль\nN2\tReference T2 C2\nN3\tReference T3 C3\n")
    assert read_corpus(tmp_path / "c", reading)["concept_id"].to_list() == ["C2"]
    assert reading.notes == {"codes of what is no mention, left out": 2}


def test_triggers_of_events_are_no_mentions(tmp_path: Path) -> None:
    reading = Reading()
    write(tmp_path / "c", ANNOTATIONS + "E1\tPain:T1 Theme:T2\nR2\tCAUSE:T5\n")
    assert read_corpus(tmp_path / "c", reading)["mention"].to_list() == [
        "chronic back pain", "chronic pain", "citalopram",
    ]  # fmt: skip
    assert reading.notes["triggers of events, left out"] == 1
    write(tmp_path / "c", "T1\tX 0 4\tБоль\nE1\tPain:T1\n")
    with pytest.raises(InputError, match="no mention of one concept here"):
        read_corpus(tmp_path / "c")


def test_blank_lines_and_blanks_around_a_mention(tmp_path: Path) -> None:
    write(tmp_path / "c", "\n \nT1\tX 0 4\t Боль \n\nN1\tReference T1 C1\n")
    (found,) = corpus_annotations(tmp_path / "c")
    assert (found.mention, found.line) == ("Боль", 3)


def test_the_context_in_a_long_text_is_what_is_around(tmp_path: Path) -> None:
    write(tmp_path / "c", "T1\tX 21000 21004\tpain\nN1\tReference T1 C1\n", "ab\n" * 7_000 + "pain\nx")
    assert read_corpus(tmp_path / "c")["context"].to_list() == ["ab " * 666 + "<tgt> pain </tgt> x"]


@pytest.mark.parametrize("text", ["", "\n"])
def test_nothing_annotated(text: str, tmp_path: Path) -> None:
    write(tmp_path / "c", text)
    with pytest.raises(InputError, match=r"no mention of one concept here.*found none at all"):
        read_corpus(tmp_path / "c")


@pytest.mark.parametrize("form", ["folder", "file", "zip", "tar"])
def test_forms(form: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "c.ann", name="1.ann")
    write(folder, "", "", name="2.ann")
    path = folder
    if form == "file":
        path = folder / "1.ann"
        write(folder, name="2.ann")
        (folder / "1.a2").mkdir()
    elif form == "zip":
        path = tmp_path / "c.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for one in folder.iterdir():
                archive.write(one, f"corpus/{one.name}")
    elif form == "tar":
        path = tmp_path / "c.tar.gz"
        path.write_bytes(tarred({f"./corpus/{one.name}": one.read_bytes() for one in folder.iterdir()}))
    found = read_corpus(path)
    assert found["mention"].to_list() == ["Боль", "chronic back pain", "chronic pain", "citalopram"]
    assert found["document"].unique().to_list() == ["corpus/1" if form in ("zip", "tar") else "1"]


@pytest.mark.parametrize("path", ["c", "c/A.ANN"])
def test_endings_in_capital_letters(path: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "c", name="A.ann")
    (folder / "A.ann").rename(folder / "A.ANN")
    (folder / "A.txt").rename(folder / "A.Txt")
    assert read_corpus(tmp_path / path)["document"].to_list() == ["A"] * 4


def test_line_ends_of_windows_count(tmp_path: Path) -> None:
    text = "Pain.\r\n\ufeffNausea"
    write(tmp_path / "c", "T1\tX 8 14\tNausea\r\nN1\tReference T1 C1\tNausea\r\n", text)
    assert read_corpus(tmp_path / "c")["context"].to_list() == ["Pain.   <tgt> Nausea </tgt>"]


def test_other_encodings(tmp_path: Path) -> None:
    folder = write(tmp_path / "c", text="Übelkeit\nda".encode("cp1252"))
    (folder / "1.ann").write_bytes("T1\tX 0 8\tÜbelkeit\nN1\tReference T1 C1\n".encode("cp1252"))
    found = read_corpus(folder, Reading(encoding="cp1252"))
    assert found.select("mention", "context").rows() == [("Übelkeit", "<tgt> Übelkeit </tgt> da")]
    with pytest.raises(InputError, match=r"not UTF-8 \(byte 0xdc\)") as caught:
        read_corpus(folder)
    assert (caught.value.path, caught.value.line) == (folder / "1.txt", 1)
    write(folder, text=b"\n\x81\x81")
    with pytest.raises(InputError, match=r"not cp1252 \(byte 0x81\)") as caught:
        read_corpus(folder, Reading(encoding="cp1252"))
    assert (caught.value.path, caught.value.line) == (folder / "1.txt", 2)


def test_a_text_that_is_not_there(tmp_path: Path) -> None:
    folder = write(tmp_path / "c", text=None)
    write(folder, name="2.ann")
    with pytest.raises(
        InputError, match=r"no text beside the annotations; expected 1\.txt\. .*put the texts"
    ) as caught:
        read_corpus(folder)
    assert caught.value.path == folder / "1.ann"
    reading = Reading(on_error="skip")
    assert read_corpus(folder, reading)["document"].unique().to_list() == ["2"]
    assert len(reading.rejects) == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("T9\tDISO 0 4", "no line of brat's format.*TYPE START END"),
        ("T9\tDISO 0 4\t ", "no line of brat's format.*TYPE START END"),
        ("T9\tDISO 0 x\tБоль", "no line of brat's format.*TYPE START END"),
        ("T9\t0 4\tБоль", "no line of brat's format.*TYPE START END"),
        ("N9\tReference T1", "no line of brat's format.*RESOURCE:CODE"),
        ("N9", "no line of brat's format.*RESOURCE:CODE"),
        ("nothing", "no line of brat's format.*an id"),
        ("X1\tDISO 0 4\tБоль", "no line of brat's format.*an id"),
        ("Боль", "no line of brat's format.*an id"),
        ("\tБоль", "no line of brat's format.*an id"),
    ],
)
def test_bad_lines(line: str, problem: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "c", line + "\n" + ANNOTATIONS)
    with pytest.raises(InputError, match=problem) as caught:
        read_corpus(folder)
    assert (caught.value.path, caught.value.line) == (folder / "1.ann", 1)
    reading = Reading(on_error="skip")
    assert len(read_corpus(folder, reading)) == 4
    assert reading.rejects.select("file", "line", "text").rows() == [("1.ann", 1, line)]


def test_an_id_that_comes_twice(tmp_path: Path) -> None:
    folder = write(tmp_path / "c", ANNOTATIONS + "T4\tDISO 34 44\tcitalopram\n")
    with pytest.raises(InputError, match=r"no line of brat's format.*an id that no line before has") as caught:
        read_corpus(folder)
    assert caught.value.line == 17
    assert len(read_corpus(folder, Reading(on_error="skip"))) == 4


@pytest.mark.parametrize("places", ["0 45", "4 4", "9 7", "0 4;40 99"])
def test_places_outside_the_text(places: str, tmp_path: Path) -> None:
    line = f"T9\tDISO {places}\tБоль"
    folder = write(tmp_path / "c", f"{line}\nN9\tReference T9 C1\n{ANNOTATIONS}")
    with pytest.raises(InputError, match=r"a place outside the document.*at most 44") as caught:
        read_corpus(folder)
    assert (caught.value.path, caught.value.line) == (folder / "1.ann", 1)
    reading = Reading(on_error="skip")
    assert len(read_corpus(folder, reading)) == 4
    assert reading.rejects.select("file", "line", "text").rows() == [("1.ann", 1, line)]


def test_an_empty_text(tmp_path: Path) -> None:
    folder = write(tmp_path / "c", text="")
    with pytest.raises(InputError, match="END at most 0"):
        read_corpus(folder)


def test_a_mention_at_another_place_is_not_marked(tmp_path: Path) -> None:
    reading = Reading()
    write(tmp_path / "c", "T1\tX 1 5\tБоль\nN1\tReference T1 C1\n")
    assert read_corpus(tmp_path / "c", reading)["context"].to_list() == [TEXT.replace("\n", " ")]
    assert reading.notes == {
        "mentions that do not stand where their annotation says, whose place in the context is not marked": 1
    }


def test_a_folder_without_a_corpus(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("1|t|a\n")
    with pytest.raises(InputError, match=r"no corpus here.*\.ann with \.txt.*name the file") as caught:
        read_corpus(tmp_path)
    assert caught.value.path == tmp_path
