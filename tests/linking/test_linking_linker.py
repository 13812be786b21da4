"""Building, opening and asking a linker."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from linking_data import small_terminology, write_letter_encoder

from manifests import read_fields, write_fields
from onoma.artifacts import verify_artifact
from onoma.encoders import Encoder, export_encoder, open_encoder
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    MismatchError,
    NotAnArtifactError,
    OnomaError,
)
from onoma.linking import Link, Linker, build_linker
from onoma.linking.dictionary import NameDictionary
from onoma.linking.dictionary_building import build_dictionary
from onoma.linking.mentions import Preparation
from onoma.terminology import Terminology, normalise
from onoma.types import BoolArray, FloatArray
from tiny import make_terminology, tiny_encoder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A terminology, an encoder and the linker of both, to copy."""
    folder = tmp_path_factory.mktemp("made")
    write_letter_encoder(folder / "letters")
    encoder = open_encoder(folder / "letters", backend="onnx")
    build_linker(small_terminology(folder / "terminology"), encoder, folder / "linker")
    return folder


@pytest.fixture
def terminology(made: Path, tmp_path: Path) -> Terminology:
    return Terminology.open(shutil.copytree(made / "terminology", tmp_path / "terminology"))


@pytest.fixture
def encoder_folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "letters", tmp_path / "letters"))


@pytest.fixture
def encoder(encoder_folder: Path) -> Encoder:
    return open_encoder(encoder_folder, backend="onnx")


@pytest.fixture
def linker(made: Path, terminology: Terminology, tmp_path: Path) -> Linker:
    return Linker.open(shutil.copytree(made / "linker", tmp_path / "linker"))


class Watched:
    """An encoder that remembers what it was asked."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self.asked = encoder, list[list[str]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None, unit_length: bool = True
    ) -> FloatArray:
        self.asked.append(list(texts))
        return self._encoder.encode(texts, progress=progress, unit_length=unit_length)


def rank_by_loops(terminology: Terminology, encoder: Encoder, mention: str, top_k: int) -> list[tuple[str, float]]:
    """The oracle: every name of every active concept against the mention, the best kept, a plain sort."""
    concepts, names = terminology.concepts().collect().to_dicts(), terminology.names().collect().to_dicts()
    query = encoder.encode([normalise(mention, "sapbert")])[0].astype(float)
    best: dict[int, tuple[float, int]] = {}
    for name in names:
        text = normalise(name["text"], "sapbert")
        row = name["concept_row"]
        if concepts[row]["status"] != "active" or name["is_suppressed"] or not text:
            continue
        score = float(encoder.encode([text])[0].astype(float) @ query)
        key = (-round(score, 5), 0 if name["is_preferred"] else 1)
        best[row] = min(key, best.get(row, key))
    ordered = sorted((score, preferred, row) for row, (score, preferred) in best.items())
    return [(concepts[row]["concept_id"], -score) for score, _, row in ordered[:top_k]]


MENTIONS = ["cold", "the common cold", "diabetes", "sugar", "心臓", "zzz", "COLD temperature!", "lung disease chronic"]


class Otherwise:
    """An encoder of one's own: another one, whose vectors are made into something else."""

    def __init__(self, encoder: Encoder, change: Callable[[FloatArray], Any]) -> None:
        self._encoder, self._change = encoder, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, texts: Sequence[str], **options: Any) -> Any:
        return self._change(self._encoder.encode(texts, **options))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda vectors: 2 * vectors, "not of unit length"),
        (lambda vectors: vectors + np.float32(np.nan), "not of unit length"),
        (lambda vectors: vectors[:-1], "gives no vectors that can be; expected an array of the shape"),
        (lambda vectors: vectors[:, :-1], "gives no vectors that can be"),
        (lambda vectors: vectors.tolist(), "found list"),
        (lambda vectors: None, "found NoneType"),
    ],
)
def test_vectors_of_an_own_encoder_are_looked_at(
    linker: Linker, encoder: Encoder, change: Callable[[FloatArray], Any], said: str
) -> None:
    """Scores are cosines, and cut at 1: nothing would show that they are none."""
    with pytest.raises(InputError, match=said):
        linker.encoding_with(Otherwise(encoder, change)).link(["cold fever", "hot fever"])
    same = linker.encoding_with(Otherwise(encoder, lambda vectors: vectors if len(vectors) else np.array([])))
    assert same.link(["cold"], top_k=1) == linker.link(["cold"], top_k=1)  # found by look-up alone
    assert same.link(["cold fever"]) == linker.link(["cold fever"])


def test_what_is_no_folder_encoder_or_reranker_is_told_so(
    linker: Linker, terminology: Terminology, tmp_path: Path
) -> None:
    wrong: Any = linker
    with pytest.raises(InputError, match=r"a linker that is open is given .* give its path"):
        Linker.open(wrong)
    for wrong in ("letters", None, object()):
        with pytest.raises(InputError, match=r"an encoder that was opened is needed; found .* onoma.open_encoder"):
            linker.encoding_with(wrong)
        with pytest.raises(InputError, match="a reranker that was opened"):
            linker.reranking_with(wrong)
    with pytest.raises(InputError, match="an encoder that was opened"):
        build_linker(terminology, wrong, tmp_path / "new")
    wrong = 3
    with pytest.raises(InputError, match="no lengths of n-grams"):
        build_linker(terminology, None, tmp_path / "new", sparse=True, ngrams=wrong)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("table", [{"cold": ["flu"]}, pl.DataFrame({"cold": ["flu"]}), pl.LazyFrame({"cold": ["flu"]})])
def test_a_table_is_not_taken_for_the_names_of_its_columns(linker: Linker, table: Any) -> None:
    with pytest.raises(InputError, match=r"mentions: a list or column is meant here, not a table; found .* one of its"):
        linker.link(table)
    with pytest.raises(InputError, match="several are meant here, not one"):
        linker.link(np.array("flu"))


@pytest.mark.parametrize("mention", MENTIONS)
@pytest.mark.parametrize("top_k", [1, 3, 5, 50])
def test_equals_loops(linker: Linker, terminology: Terminology, encoder: Encoder, mention: str, top_k: int) -> None:
    (links,) = linker.link([mention], top_k=top_k)
    expected = rank_by_loops(terminology, encoder, mention, top_k)
    assert [link.concept_id for link in links] == [concept_id for concept_id, _ in expected]
    np.testing.assert_allclose([link.score for link in links], [score for _, score in expected], atol=2e-5)
    assert [link.rank for link in links] == list(range(1, len(links) + 1))


def test_homonyms_stay_apart(linker: Linker) -> None:
    (links,) = linker.link(["COLD"], top_k=4)
    assert [link.concept_id for link in links] == ["D2", "D3", "D4", "D6"]
    assert {link.score for link in links} == {1.0}
    assert [link.matched_name for link in links] == ["Cold", "COLD", "cold", "cold"]


def test_every_concept_is_found_when_all_are_wanted(linker: Linker) -> None:
    (links,) = linker.link(["disease"], top_k=1000)
    assert sorted(link.concept_id for link in links) == ["D1", "D2", "D3", "D4", "D6", "D8"]
    assert linker.n_concepts == 6
    assert linker.n_texts == 7
    assert linker.n_names == 10
    assert linker.manifest.config["n_nameless"] == 1, "D7"


def test_as_many_concepts_as_wanted_though_one_has_all_the_nearest_names(encoder: Encoder, tmp_path: Path) -> None:
    names = {"C0": [f"heart attack {number}" for number in range(300)]}
    names |= {f"C{row}": [f"something else {'x' * row}"] for row in range(1, 6)}
    terminology = make_terminology(tmp_path / "terminology", names)
    (links,) = build_linker(terminology, encoder, tmp_path / "linker").link(["heart attack 7"], top_k=3)
    assert [link.concept_id for link in links[:1]] == ["C0"]
    assert len({link.concept_id for link in links}) == 3


def test_answers_do_not_depend_on_the_batch(linker: Linker) -> None:
    mentions = [f"{mention} {suffix}" for mention in MENTIONS for suffix in ("", "of the heart", "x" * 200)]
    together = linker.link(mentions)
    alone = [linker.link([mention])[0] for mention in mentions]
    for links, links_alone in zip(together, alone, strict=True):
        assert [link.concept_id for link in links] == [link.concept_id for link in links_alone]
        # An encoder rounds by the shape of its batch.
        np.testing.assert_allclose(
            [link.score for link in links], [link.score for link in links_alone], rtol=0, atol=2e-6
        )


def test_equal_mentions_are_encoded_once(linker: Linker) -> None:
    watched = Watched(linker.encoder)
    answers = linker.encoding_with(watched).link(["Cold", "cold", " COLD ", "", "  "])
    assert watched.asked == [["cold"]]
    assert answers[0] == answers[1] == answers[2]
    assert answers[3] == answers[4] == []
    answers[0].clear()
    assert answers[1]


def test_what_an_encoder_remembers_is_left_as_it_is(linker: Linker) -> None:
    """Its vectors may be shared with others, or not be writable, as of mentions that it cannot read too."""
    mentions = ["cold", "unread"]
    expected = linker.link(mentions)
    remembered = linker.encoder.encode(mentions).copy()
    remembered.flags.writeable = False
    kept = remembered.copy()

    class Remembering(Watched):
        def encode(self, texts: Sequence[str], **options: Any) -> FloatArray:
            return remembered

        def can_read(self, texts: Sequence[str]) -> BoolArray:
            return np.array([True, False])

    expected[1] = []
    assert linker.encoding_with(Remembering(linker.encoder)).link(mentions) == expected
    np.testing.assert_array_equal(remembered, kept)


@pytest.mark.parametrize(
    "mention",
    ["a" * 10_000, "cold " * 2_000, "\x00", "co\x00ld", "心臓発作", "الزكام", "🧠", "---", "\u200b", "\n", "ß"],
    ids=range(11),
)
def test_any_text_has_a_defined_answer(linker: Linker, mention: str) -> None:
    (links,) = linker.link([mention])
    (again,) = linker.link([mention])
    assert links == again
    text = normalise(mention, "sapbert")
    assert len(links) == (5 if text and linker.encoder.can_read([text])[0] else 0)
    assert all(np.isfinite(link.score) for link in links)


def test_what_the_encoder_cannot_read_is_no_answer_by_vectors(encoder: Encoder, tmp_path: Path) -> None:
    """To the encoder each of the unknown signs is the same one: all these names have one vector."""
    concepts = {"D1": ["肺炎", "pneumonia"], "D2": ["骨折"], "D3": ["癌症", "cancer"], "D4": ["heart 炎"]}
    terminology = make_terminology(tmp_path / "t", concepts)
    assert (encoder.encode(["肺炎"]) @ encoder.encode(["骨折"]).T).item() == pytest.approx(1)
    linker = build_linker(terminology, encoder, tmp_path / "l", sparse=True)
    stored = dict(zip(linker.dictionary.texts, np.load(tmp_path / "l" / "vectors.npy"), strict=True))
    assert {text for text, vector in stored.items() if not vector.any()} == {"肺炎", "骨折", "癌症"}
    assert linker.manifest.config["n_unread"] == 3
    assert linker.link(["尿急", "骨折"], stages=["dense"]) == [[], []]
    assert linker.link(["尿急"]) == [[]]
    assert [links[0].concept_id for links in linker.link(["骨折", "cancers"])] == ["D2", "D3"]
    (links,) = linker.link(["癌症 病"], stages=["dense", "sparse"], top_k=1)
    assert links[0].concept_id == "D3"
    assert links[0].score < 1
    assert linker.link(["pneumonia 🧠"], top_k=1)[0][0].concept_id == "D1"
    assert "does not know most of its characters" in linker.explain("尿急").outcome
    assert "does not know" not in linker.explain("").outcome
    known = make_terminology(tmp_path / "k", {"D1": ["pneumonia"]})
    assert build_linker(known, encoder, tmp_path / "m").manifest.config["n_unread"] == 0


def test_no_mentions(linker: Linker) -> None:
    assert linker.link([]) == []
    assert linker.link(iter([])) == []


@pytest.mark.parametrize("top_k", [0, -3, 2.0, None])
def test_bad_top_k(linker: Linker, top_k: Any) -> None:
    with pytest.raises(InputError, match="top_k"):
        linker.link(["cold"], top_k=top_k)


@pytest.mark.parametrize("mentions", ["cold", ["cold", None], [b"cold"], ["half \ud83e"]])
def test_bad_mentions(linker: Linker, mentions: Any) -> None:
    with pytest.raises(InputError, match="mention"):
        linker.link(mentions)


def test_links_are_ready_for_json(linker: Linker) -> None:
    (links,) = linker.link(["diabetes mellitus"], top_k=1)
    record = json.loads(json.dumps(dataclasses.asdict(links[0])))
    assert record == {
        "concept_id": "D1",
        "preferred_name": "Diabetes Mellitus",
        "matched_name": "Diabetes Mellitus",
        "score": 1.0,
        "rank": 1,
        "confidence": None,
        "read_as": None,
    }
    assert Link(**record) == links[0]


def test_hidden_names_are_not_found(terminology: Terminology, encoder: Encoder, tmp_path: Path) -> None:
    whole = build_linker(terminology, encoder, tmp_path / "linker")
    hidden = whole.without([3])
    assert [link.concept_id for link in hidden.link(["cold"], top_k=4)[0]][:3] == ["D3", "D4", "D6"]
    assert hidden.exact_matcher().link(["cold"])[0][0].concept_id == "D3"
    assert hidden.n_names == whole.n_names - 1
    assert whole.link(["cold"])[0][0].concept_id == "D2", "the linker itself still knows it"


@pytest.mark.parametrize("hidden", [[], [0, 1, 2], [3, 5, 7, 12], [14]])
def test_without_is_a_dictionary_that_never_had_the_names(terminology: Terminology, hidden: list[int]) -> None:
    known = build_dictionary(terminology)
    less, never = known.without(hidden), build_dictionary(terminology, hidden_names=hidden)

    def entries(dictionary: NameDictionary) -> list[tuple[str, str, str, bool]]:
        return [
            (
                dictionary.texts[text],
                dictionary.concept_ids[int(dictionary.entry_concepts[entry])],
                dictionary.entry_names[entry],
                bool(dictionary.entry_is_preferred[entry]),
            )
            for text in range(dictionary.n_texts)
            for entry in range(int(dictionary.entry_offsets[text]), int(dictionary.entry_offsets[text + 1]))
        ]

    assert sorted(entries(less)) == sorted(entries(never))


def test_a_moved_linker_answers_the_same_on_its_own(
    linker: Linker, terminology: Terminology, encoder_folder: Path, tmp_path: Path
) -> None:
    expected = linker.link(MENTIONS)
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.move(linker.path, tmp_path / "elsewhere" / "moved")
    shutil.rmtree(terminology.path)
    shutil.rmtree(encoder_folder)
    assert Linker.open(moved).link(MENTIONS) == expected
    verify_artifact(moved)


def test_from_folders(terminology: Terminology, encoder_folder: Path, linker: Linker, tmp_path: Path) -> None:
    other = build_linker(terminology.path, str(encoder_folder), tmp_path / "other")
    assert other.link(MENTIONS) == linker.link(MENTIONS)


def test_building_twice_gives_the_same_files(
    terminology: Terminology, encoder: Encoder, linker: Linker, tmp_path: Path
) -> None:
    assert build_linker(terminology, encoder, tmp_path / "again").fingerprint == linker.fingerprint


def test_parents(linker: Linker, terminology: Terminology, encoder: Encoder) -> None:
    kinds = {parent.kind: parent.fingerprint for parent in linker.manifest.parents}
    assert kinds == {"terminology": terminology.manifest.fingerprint, "encoder": encoder.fingerprint}


def test_progress(terminology: Terminology, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.encoders.kept_parts.PART_NAMES", 3)
    reported: list[tuple[int, int]] = []
    build_linker(terminology, encoder, tmp_path / "linker", progress=lambda *state: reported.append(state))
    assert reported == sorted(reported)
    assert reported[-1] == (7, 7)
    assert {total for _, total in reported} == {7}


def test_an_existing_linker_is_replaced_only_when_asked(
    linker: Linker, terminology: Terminology, encoder: Encoder
) -> None:
    watched = Watched(encoder)
    with pytest.raises(ArtifactExistsError):
        build_linker(terminology, watched, linker.path)
    assert watched.asked == []
    build_linker(terminology, encoder, linker.path, overwrite=True)


class Diverged(Watched):
    def encode(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None, unit_length: bool = True
    ) -> FloatArray:
        vectors = super().encode(texts)
        vectors[2] = np.nan
        return vectors


def test_an_encoder_that_gives_nan_is_refused(terminology: Terminology, encoder: Encoder, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="unit length"):
        build_linker(terminology, Diverged(encoder), tmp_path / "linker")
    assert sorted(tmp_path.iterdir()) == before


def test_truncated_vectors(linker: Linker) -> None:
    vectors = linker.path / "vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-8])
    with pytest.raises(DamagedArtifactError, match=r"vectors\.npy"):
        Linker.open(linker.path)


def test_changed_text(linker: Linker) -> None:
    texts = linker.path / "texts.utf8"
    texts.write_bytes(texts.read_bytes().replace(b"cold", b"gold"))
    with pytest.raises(DamagedArtifactError, match=r"texts\.utf8"):
        Linker.open(linker.path)


def test_missing_encoder(linker: Linker) -> None:
    shutil.rmtree(linker.path / "encoder")
    with pytest.raises(DamagedArtifactError, match="encoder/"):
        Linker.open(linker.path)


def edit_manifest(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    manifest = read_fields(folder)
    edit(manifest)
    write_fields(folder, manifest)


def test_vectors_of_another_encoder(linker: Linker) -> None:
    edit_manifest(linker.path, lambda manifest: manifest["config"].update(encoder_fingerprint="0" * 64))
    with pytest.raises(MismatchError, match="made by the encoder 000000000000"):
        Linker.open(linker.path)


@pytest.mark.parametrize(("version", "told"), [(99, "Update Onoma"), (5, "format 5, written by an Onoma before this")])
def test_another_format(version: int, told: str, linker: Linker) -> None:
    edit_manifest(linker.path, lambda manifest: manifest.update(format_version=version))
    with pytest.raises(FormatVersionError, match=told):
        Linker.open(linker.path)


def test_another_kind_of_folder(terminology: Terminology, tmp_path: Path) -> None:
    with pytest.raises(NotAnArtifactError, match="linker is needed"):
        Linker.open(terminology.path)
    with pytest.raises(InputError, match="nothing here"):
        Linker.open(tmp_path / "nowhere")


_LINK_AND_LIST_MODULES = """
import sys
from onoma.linking import Linker
links = Linker.open(sys.argv[1]).link(["common cold"], top_k=1)
print(links[0][0].concept_id, sorted({"torch", "transformers", "polars"} & sys.modules.keys()))
"""


def test_linking_loads_no_torch_and_no_tables(linker: Linker) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _LINK_AND_LIST_MODULES, str(linker.path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["D4", "[]"]


def test_the_encoder_inside_is_whole(linker: Linker, encoder: Encoder) -> None:
    inside = open_encoder(linker.path / "encoder", backend="onnx")
    assert inside.fingerprint == encoder.fingerprint
    np.testing.assert_allclose(inside.encode(["cold"]), encoder.encode(["cold"]), atol=1e-6)


@pytest.mark.parametrize(
    "rows",
    [{0, 1}, np.array([True, False]), [0.5], [-1], [[0], [1]], "01"],
    ids=["set", "mask", "float", "below", "2d", "text"],
)
def test_names_are_hidden_by_row_numbers_alone(linker: Linker, rows: Any) -> None:
    with pytest.raises(InputError, match="hidden name"):
        linker.without(rows)


def test_an_encoder_is_only_exchanged_for_itself(linker: Linker, encoder: Encoder, tmp_path: Path) -> None:
    write_letter_encoder(tmp_path / "other", seed=1)
    own = linker.encoder.fingerprint[:12]
    with pytest.raises(MismatchError, match=f"has the encoder .* \\({own}\\), and letters .* is another"):
        linker.encoding_with(open_encoder(tmp_path / "other", backend="onnx"))
    shorter = open_encoder(linker.encoder.folder.path, backend="onnx", max_tokens=3)
    with pytest.raises(MismatchError, match=f"\\({own}\\), and .* is the same, opened otherwise: open it in fp32"):
        linker.encoding_with(shorter)
    again = linker.encoding_with(encoder)
    assert again.link(["cold"]) == linker.link(["cold"])


def test_says_what_it_is_and_that_it_is_not_sent_about(linker: Linker) -> None:
    assert repr(linker).startswith(f"Linker('{linker.path}': {linker.n_concepts} concepts by {linker.n_names} names")
    with pytest.raises(InputError, match=r"Linker\.open"):
        pickle.dumps(linker)
    with pytest.raises(InputError, match=r"open is not copied .* onoma.open_encoder"):
        pickle.dumps(linker.encoder)


def test_another_working_directory_changes_nothing(
    linker: Linker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened, terminology = Linker.open("linker"), Terminology.open("terminology")
    monkeypatch.chdir("/")
    with pytest.raises(ConfigError, match=r"prepared by an onoma\.linking\.Preparation\(.*found NoneType"):
        opened.preparing(None)  # type: ignore[arg-type]
    spelling = opened.preparing(Preparation(spelling=True))
    assert spelling.link(["cold"]) == opened.link(["cold"])
    assert terminology.n_names == len(terminology.names().collect())


def test_numbers_and_iterators_of_others_are_taken(linker: Linker) -> None:
    assert linker.link(iter(["cold"]), top_k=np.int64(2)) == linker.link(["cold"], top_k=2)  # type: ignore[arg-type]


def test_an_encoder_whose_folder_has_become_another_builds_no_linker(tmp_path: Path, terminology: Terminology) -> None:
    """The linker would have the vectors of one and the model of the other."""
    for seed, name in ((0, "e"), (1, "other")):
        export_encoder(tiny_encoder(tmp_path / f"{name}-base", seed=seed), tmp_path / name)
    encoder = open_encoder(tmp_path / "e")
    shutil.rmtree(tmp_path / "e")
    (tmp_path / "other").rename(tmp_path / "e")
    with pytest.raises(MismatchError, match="is not what it was when this encoder was opened"):
        build_linker(terminology, encoder, tmp_path / "l")
    assert not (tmp_path / "l").exists()


def test_an_encoder_given_by_a_relative_path_stays_that_one(
    tmp_path: Path, terminology: Terminology, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    encoder = open_encoder(encoder_folder.name)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert build_linker(terminology, encoder, "l").link(["cold"]) == build_linker(
        terminology, encoder_folder, "m"
    ).link(["cold"])


@pytest.mark.parametrize("wrong", ["fingerprint", "rows", "nothing"])
def test_an_encoder_that_cannot_be_costs_no_linker(linker: Linker, tmp_path: Path, wrong: str) -> None:
    class Odd(Watched):
        @property
        def fingerprint(self) -> str:
            return "f" * 64 if wrong == "fingerprint" else linker.encoder.fingerprint

        def encode(self, texts: Sequence[str], **options: Any) -> Any:
            vectors = linker.encoder.encode(texts)
            return vectors if wrong == "fingerprint" else vectors[1:] if wrong == "rows" else None

    before = linker.link(["cold"])
    said = {"fingerprint": "is not the one in its folder", "rows": "the shape \\(6, 24\\)", "nothing": "NoneType"}
    with pytest.raises(OnomaError, match=said[wrong]):
        build_linker(tmp_path / "terminology", Odd(linker.encoder), linker.path, overwrite=True)
    assert Linker.open(linker.path).link(["cold"]) == before


def test_an_encoders_name_is_no_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"name of an encoder.*linker build -t TERMINOLOGY -e onoma-mini"):
        Linker.open("onoma-mini")
    with pytest.raises(InputError, match="there is nothing here"):
        Linker.open("onoma-maxi")
