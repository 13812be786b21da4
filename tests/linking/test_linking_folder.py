"""What can lie in a linker's folder: kinds of index, precisions, n-grams, a cross-encoder; and what does not fit."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linking_data import write_small_linker

from manifests import refit
from onoma.artifacts import MANIFEST_NAME, read_manifest, verify_artifact
from onoma.encoders import export_encoder, kept_parts, open_encoder
from onoma.errors import ConfigError, DamagedArtifactError, FormatVersionError, NotAnArtifactError
from onoma.indexes import SignBitIndex
from onoma.indexes.records import IndexKind
from onoma.indexes.vector_store import VectorPrecision
from onoma.linking import Linker, add_reranker, build_linker
from onoma.linking.dictionary import NameDictionary
from onoma.linking.folder import fingerprint, fingerprint_of_folder
from tiny import make_terminology, tiny_encoder
from tiny_rerankers import write_reranker

MENTIONS = ["cold", "the common cold", "diabetes", "sugar", "心臓", "zzz", "COLD temperature!", "lung disease chronic"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folder")
    write_small_linker(folder)
    write_reranker(folder / "reranker", tiny_encoder(folder / "bert", weight_std=0.3), contexts=True)
    return folder


def test_a_linker_that_is_replaced_while_it_is_opened_is_all_of_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"C1": ["heart attack"], "C2": ["measles"], "C3": ["asthma"]}
    make_terminology(tmp_path / "old", names)
    make_terminology(tmp_path / "new", {"C0": ["appendicitis"], **{code: names[code] for code in ("C1", "C3")}})
    build_linker(tmp_path / "old", None, tmp_path / "linker", sparse=True)
    new = build_linker(tmp_path / "new", None, tmp_path / "other", sparse=True)
    replaced = list[Path]()
    open_dictionary = NameDictionary.open

    def replace_and_open(folder: Path, *, normalisation: str) -> NameDictionary:
        opened = open_dictionary(folder, normalisation=normalisation)
        if not replaced:
            replaced.append(folder)
            shutil.rmtree(folder)
            shutil.copytree(tmp_path / "other", folder)
        return opened

    monkeypatch.setattr("onoma.linking.folder.NameDictionary.open", replace_and_open)
    linker = Linker.open(tmp_path / "linker")
    assert linker.fingerprint == new.fingerprint
    assert [links[0].concept_id for links in linker.link(["asthma", "appendicitis"])] == ["C3", "C0"]


@pytest.mark.parametrize("kind", ["exact", "sign-bits", "approximate"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_indexes_and_precisions(place: Path, tmp_path: Path, kind: IndexKind, precision: VectorPrecision) -> None:
    linker = build_linker(
        place / "t", place / "letters", tmp_path / "linker", index=kind, vectors=precision, sparse=True
    )
    about = linker.manifest.config["index"]
    assert (about["kind"], about["vectors"], about["recall"]["at_1"]) == (kind, precision, 1.0)
    assert Linker.open(tmp_path / "linker").fingerprint == linker.fingerprint
    for stages in (["dense"], ["exact", "dense", "sparse"]):
        theirs = Linker.open(place / "linker").link(MENTIONS, stages=stages, top_k=3)
        for ours, other in zip(linker.link(MENTIONS, stages=stages, top_k=3), theirs, strict=True):
            compared = 1 if precision == "int8" else 3
            assert [link.concept_id for link in ours[:compared]] == [link.concept_id for link in other[:compared]]
            np.testing.assert_allclose(
                [link.score for link in ours],
                [link.score for link in other],
                atol=1e-6 if precision == "fp32" else 0.02,
            )
    assert linker.link(["COLD"], top_k=1)[0][0].score == 1.0, "look-up does not see the rounding of vectors"


def test_what_there_is_not(place: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'sign-bits'"):
        build_linker(place / "t", place / "letters", tmp_path / "linker", index="sign-bit")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="precision"):
        build_linker(place / "t", place / "letters", tmp_path / "linker", vectors="fp8")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_weight_that_the_encoder_brings(place: Path, tmp_path: Path) -> None:
    class Biosyn:
        """An encoder that was trained beside n-grams."""

        def __init__(self, weight: float) -> None:
            self._encoder = open_encoder(place / "letters", backend="onnx")
            self.folder = dataclasses.replace(self._encoder.folder, sparse_weight=weight)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._encoder, name)

    def weights(weight: float, **options: Any) -> Any:
        return build_linker(
            place / "t", Biosyn(weight), tmp_path / "linker", overwrite=True, **options
        ).settings.weights

    assert weights(0.25, sparse=True) == pytest.approx({"dense": 0.8, "sparse": 0.2})
    assert weights(-1.0, sparse=True) == {"dense": 1.0, "sparse": 0.0}
    assert weights(0.25) is None
    assert weights(0.25, sparse=True, ngrams=(2, 3)) is None, "it was learned for others"


def test_a_cross_encoder_is_added_and_replaced(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "linker", tmp_path / "linker")
    before = Linker.open(tmp_path / "linker")
    inode = (tmp_path / "linker" / "vectors.npy").stat().st_ino
    shutil.copytree(place / "reranker", tmp_path / "reranker")
    (tmp_path / "reranker" / "notes.txt").write_text("not of the reranker")
    after = add_reranker(tmp_path / "linker", tmp_path / "reranker")
    assert not (tmp_path / "linker" / "reranker" / "notes.txt").exists()
    assert after.settings.stages == ("exact", "variants", "dense", "sparse", "rerank")
    assert (tmp_path / "linker" / "vectors.npy").stat().st_ino == inode
    verify_artifact(tmp_path / "linker")
    assert after.fingerprint != before.fingerprint
    manifest = read_manifest(tmp_path / "linker")
    assert fingerprint_of_folder(tmp_path / "linker", manifest) == after.fingerprint
    assert after.fingerprint != fingerprint(manifest, reranker=None), "it is that of its reranker too"
    assert after.reranker is not None
    for mention in MENTIONS:
        assert after.link([mention], stages=["exact", "variants", "dense", "sparse"]) == before.link([mention])
        (reranked,) = after.link([mention], top_k=3)
        (alone,) = after.link([mention], top_k=1)
        assert alone == reranked[:1]
        explained = after.explain(mention, top_k=3)
        assert [(reason.concept_id, reason.score) for reason in explained.links] == [
            (link.concept_id, link.score) for link in reranked
        ]
        for reason in explained.links:
            assert sum(reason.contributions.values()) == pytest.approx(reason.score, abs=2e-6)
    context = after.link(["sugar"], contexts=["too much <tgt>sugar</tgt>"], stages=["dense", "rerank"])
    assert {link.concept_id for link in context[0]} == {
        link.concept_id for link in after.link(["sugar"], stages=["dense", "rerank"])[0]
    }
    again = add_reranker(tmp_path / "linker", place / "reranker")
    assert again.fingerprint == after.fingerprint
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.move(tmp_path / "linker", tmp_path / "elsewhere" / "moved")
    assert Linker.open(moved).link(MENTIONS) == after.link(MENTIONS)
    with pytest.raises(NotAnArtifactError, match="one of kind linker is needed"):
        add_reranker(place / "reranker", place / "reranker")
    with pytest.raises(NotAnArtifactError, match="one of kind reranker is needed"):
        add_reranker(moved, place / "letters")


_NO_HEAD = b"\x93NUMPY\x01\x00\x06\x00,,,,,\n"
"""The beginning of an array's file, and then no Python, as which NumPy reads what follows."""


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("settings.json", b'{"stages": ["dense", "dens"]}', "settings.json cannot be read"),
        ("settings.json", b"{}}", "settings.json cannot be read"),
        ("settings.json", b'{"unheard_of": 1}', "unheard_of"),
        ("facts.json", b"[", "cannot be read"),
        ("facts.json", b"[" * 100_000, "cannot be read"),
        ("facts.json", b'{"type_sets": [[1]], "label_sets": []}', r"facts\.json cannot be read \(type_sets\.0\.0: "),
        ("facts.json", b'{"type_sets": []}', r"facts\.json cannot be read \(label_sets: "),
        ("settings.json", b"[" * 100_000, "settings.json cannot be read"),
        ("index.json", b"[" * 100_000, "index.json is not readable"),
        ("concept_types.npy", None, "facts are of another dictionary"),
        ("entry_labels.npy", None, "facts are of another dictionary"),
        ("vectors.npy", None, "Build the"),
        ("index.json", b"{}", "index.json is not readable"),
        ("text_order.npy", None, "look-up is of other names"),
        *((file, _NO_HEAD, "Build") for file in ("entry_offsets.npy", "text_order.npy", "vectors.npy", "children.npy")),
    ],
)
def test_files_that_do_not_fit_are_refused_in_words(
    place: Path, tmp_path: Path, file: str, content: bytes | None, said: str
) -> None:
    shutil.copytree(place / "linker", tmp_path / "linker")
    path = tmp_path / "linker" / file
    if content is None:
        np.save(path, np.load(path)[:-1])
    else:
        path.write_bytes(content)
    refit(tmp_path / "linker")
    with pytest.raises(DamagedArtifactError, match=said):
        Linker.open(tmp_path / "linker")


@pytest.mark.parametrize(
    "file",
    ["entry_offsets.npy", "vectors.npy", "signs.npy", "char_ngrams.json", "char_ngrams.counts.npy", "reranker.json"],
)
@pytest.mark.parametrize(
    ("number", "is_of_system"),
    [(errno.EMFILE, True), (errno.ENOMEM, True), (errno.EACCES, True), (errno.EINVAL, False)],
)
def test_a_system_that_lets_no_file_be_read_is_not_told_as_damage(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, number: int, is_of_system: bool
) -> None:
    build_linker(place / "t", place / "letters", tmp_path / "linker", index="sign-bits", sparse=True)
    add_reranker(tmp_path / "linker", place / "reranker")
    load, read_text = np.load, Path.read_text

    def refuse(path: Path) -> None:
        if path.name == file:
            raise OSError(number, os.strerror(number))

    def load_array(path: Path, **options: Any) -> Any:
        refuse(path)
        return load(path, **options)

    def read(path: Path, **options: Any) -> str:
        refuse(path)
        return read_text(path, **options)

    monkeypatch.setattr(np, "load", load_array)
    monkeypatch.setattr(Path, "read_text", read)
    with pytest.raises(OSError if is_of_system else DamagedArtifactError, match=os.strerror(number)):
        Linker.open(tmp_path / "linker")


@pytest.mark.parametrize("kind", ["exact", "sign-bits", "approximate"])
def test_a_damaged_vector_is_refused_when_it_is_read(place: Path, tmp_path: Path, kind: IndexKind) -> None:
    """Of a large file, opening sees a sample only."""
    linker = build_linker(place / "t", place / "letters", tmp_path / "linker", index=kind, stages=["dense"])
    row, text = 1, list(linker.dictionary.texts)[1]
    vectors = np.load(tmp_path / "linker" / "vectors.npy", mmap_mode="r+")
    vectors.view(np.uint8)[row, 1] ^= 1
    vectors.flush()
    refit(tmp_path / "linker")
    with pytest.raises(DamagedArtifactError, match=rf"vectors\.npy: the vector in row {row} has changed"):
        Linker.open(tmp_path / "linker").link([text])


def test_damaged_sign_bits_are_refused_when_they_are_read(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the manifest's checksum. So few names are all compared, without the bits, unless fewer candidates will do."""
    build_linker(place / "t", place / "letters", tmp_path / "linker", index="sign-bits", stages=["dense"])
    signs = tmp_path / "linker" / "signs.npy"
    content = bytearray(signs.read_bytes())
    content[-1] ^= 1
    signs.write_bytes(content)
    monkeypatch.setattr("onoma.artifacts.manifest._ALWAYS_VERIFIED_BYTES", -1)  # as if it were large
    monkeypatch.setattr("onoma.artifacts.manifest.sha256_of_sample", lambda _: None)  # and changed between the samples
    index = Linker.open(tmp_path / "linker")._components.index
    assert isinstance(index, SignBitIndex)
    with pytest.raises(DamagedArtifactError, match=r"signs\.npy has changed since it was written\. Build"):
        index.rescoring(1)


def test_a_damaged_encoder_is_not_built_into_a_linker(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy would get a checksum of its own, and nothing would tell any more."""
    shutil.copytree(place / "letters", tmp_path / "encoder")
    file = tmp_path / "encoder" / "onnx" / "model.onnx"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    monkeypatch.setattr("onoma.artifacts.manifest._ALWAYS_VERIFIED_BYTES", -1)  # as if it were large
    monkeypatch.setattr("onoma.artifacts.manifest.sha256_of_sample", lambda _: None)  # and changed between the samples
    said = r"encoder: the content of onnx/model\.onnx has changed"
    with pytest.raises(DamagedArtifactError, match=said):
        build_linker(place / "t", tmp_path / "encoder", tmp_path / "linker")
    opened = open_encoder(tmp_path / "encoder", in_full=False)
    with pytest.raises(DamagedArtifactError, match=said):
        build_linker(place / "t", opened, tmp_path / "linker")
    with pytest.raises(DamagedArtifactError, match=said):
        export_encoder(tmp_path / "encoder", tmp_path / "copy")
    assert not (tmp_path / "linker").exists()


def test_n_grams_of_other_names(place: Path, tmp_path: Path) -> None:
    from onoma.indexes.char_ngrams import CharNgramIndex

    shutil.copytree(place / "linker", tmp_path / "linker")
    CharNgramIndex.build(["one", "two"]).save(tmp_path / "linker")
    refit(tmp_path / "linker")
    with pytest.raises(DamagedArtifactError, match="n-grams are of other names"):
        Linker.open(tmp_path / "linker")


def test_a_calibration_from_a_newer_onoma(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "linker", tmp_path / "linker")
    settings = json.loads((tmp_path / "linker" / "settings.json").read_text())
    settings["calibration"] = json.dumps({"format_version": 99})
    (tmp_path / "linker" / "settings.json").write_text(json.dumps(settings))
    refit(tmp_path / "linker")
    with pytest.raises(FormatVersionError, match="format 99"):
        Linker.open(tmp_path / "linker").link(["cold"])


def test_stages_of_the_settings_that_are_not_there(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "linker", tmp_path / "linker")
    settings = json.loads((tmp_path / "linker" / "settings.json").read_text())
    settings["stages"] = ["dense", "rerank"]
    (tmp_path / "linker" / "settings.json").write_text(json.dumps(settings))
    refit(tmp_path / "linker")
    with pytest.raises((ConfigError, DamagedArtifactError), match="no stage 'rerank'"):
        Linker.open(tmp_path / "linker").link(["cold"])


_KILLED = """
import os, signal, sys
from onoma.encoders import kept_parts
from onoma.linking import build_linker

kept_parts.PART_NAMES = 3

def progress(done, total):
    if done > 6:
        os.kill(os.getpid(), signal.SIGKILL)

build_linker(sys.argv[1], sys.argv[2], sys.argv[3], index="sign-bits", vectors="fp16", progress=progress)
"""


def test_a_build_that_was_killed_goes_on(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_parts, "PART_NAMES", 3)
    given = (str(place / "t"), str(place / "letters"))
    done = subprocess.run([sys.executable, "-c", _KILLED, *given, str(tmp_path / "linker")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "linker").exists()
    assert len(list((tmp_path / "linker.encoded").iterdir())) == 2
    told = list[int]()
    for name in ("plain", "linker"):
        told.clear()
        build_linker(
            *given,
            tmp_path / name,
            index="sign-bits",
            vectors="fp16",
            progress=lambda done, _total: told.append(done),
        )
    assert told[0] > 6
    assert sorted(file.name for file in tmp_path.iterdir()) == ["linker", "plain"]
    written = [
        {
            file.relative_to(tmp_path / name): file.read_bytes()
            for file in (tmp_path / name).rglob("*")
            if file.is_file() and file.name != MANIFEST_NAME
        }
        for name in ("plain", "linker")
    ]
    assert written[0] == written[1]
    verify_artifact(tmp_path / "linker")


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells what is mapped")
@pytest.mark.parametrize("kind", ["exact", "sign-bits"])
def test_what_grows_with_the_names_is_mapped_and_shared(place: Path, tmp_path: Path, kind: IndexKind) -> None:
    """Processes that open one folder have it in memory once: pages of its files, and of vectors none of their own."""
    build_linker(place / "t", place / "letters", tmp_path / "linker", index=kind, sparse=True)
    code = """if True:
        import pathlib, re, sys
        from onoma import Linker
        from onoma.linking import Preparation
        linker = Linker.open(sys.argv[1])
        linker.preparing(Preparation(spelling=True)).link(["cold", "diabtes"])
        blocks = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read())
        mapped = [block for block in blocks if "vectors.npy" in block.partition("\\n")[0]]
        assert mapped
        read = 0
        for block in mapped:
            kilobytes = {key: int(n) for key, n in re.findall(r"(\\w+):\\s+(\\d+) kB", block)}
            assert block.split()[1] == "r--s", block
            assert kilobytes["Anonymous"] == 0, block
            read += kilobytes["Rss"]
        assert read > 0
        names = {pathlib.Path(block.partition("\\n")[0].split()[-1]).name for block in blocks if block.strip()}
        arrays = {file.name for file in pathlib.Path(sys.argv[1]).iterdir()
                  if file.suffix in {".npy", ".utf8"} and file.stat().st_size}
        assert len(arrays) > 30
        assert arrays - names <= {"centre.npy"}, arrays - names
    """
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "linker")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
