"""Merged pair sets: nothing lost, classes shared where they are the same and apart where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pairs_oracles import tokens

from onoma.artifacts import verify_artifact
from onoma.errors import ArtifactExistsError, InputError, MismatchError
from onoma.pairs import PairSet, build_bitext_pairs, build_mention_pairs, build_pairs, merge_pairs
from onoma.terminology import Terminology
from tiny import make_terminology, small_tokenizer


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Terminology:
    return make_terminology(
        tmp_path_factory.mktemp("t") / "t", {"C:1": ["heart attack", "mi"], "C:2": ["cold", "flu", "mi"]}
    )


def synonyms(terminology: Terminology, out: Path, **options: Any) -> PairSet:
    return build_pairs(terminology, small_tokenizer(), out, **options)


def mentions(terminology: Terminology, out: Path) -> PairSet:
    rows = pl.DataFrame({"mention": ["bad heart"], "concept_id": ["C:1"]})
    return build_mention_pairs(terminology, rows, small_tokenizer(), out)


def bitext(folder: Path, **options: Any) -> PairSet:
    (folder / "x.tsv").write_text("cold\tkalt\nheart\therz\n", encoding="utf-8")
    return build_bitext_pairs([folder / "x.tsv"], small_tokenizer(), folder / "bitext", **options)


def test_all_names_and_pairs_are_there(terminology: Terminology, tmp_path: Path) -> None:
    parts = [
        synonyms(terminology, tmp_path / "s"),
        bitext(tmp_path),
        mentions(terminology, tmp_path / "m"),
    ]
    merged = merge_pairs([parts[0], parts[1].path, parts[2]], tmp_path / "all")
    verify_artifact(merged.path)
    assert tokens(merged) == [name for part in parts for name in tokens(part)]
    expected, offset = [], 0
    for part in parts:
        expected += [(tokens(part)[a], tokens(part)[b]) for a, b in part.pairs.tolist()]
        offset += len(part.store)
    assert [(tokens(merged)[a], tokens(merged)[b]) for a, b in merged.pairs.tolist()] == expected

    # Synonyms and mentions share the concepts of their terminology; translations are classes of their own.
    labels = merged.labels.tolist()
    n_synonyms, n_bitext = len(parts[0].store), len(parts[1].store)
    assert labels[:n_synonyms] == parts[0].labels.tolist()
    assert labels[n_synonyms + n_bitext :] == parts[2].labels.tolist()
    of_bitext = labels[n_synonyms : n_synonyms + n_bitext]
    assert not set(of_bitext) & {*labels[:n_synonyms], *labels[n_synonyms + n_bitext :]}
    assert len(set(of_bitext)) == 2

    # Names are marked as equal exactly when an encoder sees the same of them.
    assert merged.text_labels is not None
    by_tokens: dict[tuple[int, ...], int] = {}
    for ids, label in zip(tokens(merged), merged.text_labels.tolist(), strict=True):
        assert by_tokens.setdefault(tuple(ids), label) == label
    assert len(set(by_tokens.values())) == len(by_tokens)

    assert merged.manifest.parents == (
        terminology.manifest.as_parent(),
        *(part.manifest.as_parent() for part in parts),
    )
    assert [config.get("classes") for config in merged.manifest.config["merged"]] == [None, "pair", None]
    assert PairSet.open(merged.path).manifest == merged.manifest


def test_different_terminologies_keep_their_concepts_apart(terminology: Terminology, tmp_path: Path) -> None:
    other = make_terminology(tmp_path / "t", {"X": ["mi", "michigan"]})
    merged = merge_pairs(
        [synonyms(other, tmp_path / "a", ambiguous="keep"), synonyms(terminology, tmp_path / "b", ambiguous="keep")],
        tmp_path / "all",
    )
    assert merged.labels.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert merged.text_labels is None


def test_what_does_not_go_together(terminology: Terminology, tmp_path: Path) -> None:
    marked = synonyms(terminology, tmp_path / "s")
    longer = synonyms(terminology, tmp_path / "l", max_tokens=30)
    kept = synonyms(terminology, tmp_path / "k", ambiguous="keep")
    loose = synonyms(terminology, tmp_path / "n", normalisation="loose")
    other = build_pairs(terminology, small_tokenizer(["extra"]), tmp_path / "o")
    for one, said in ((longer, "another max_tokens"), (loose, "another normalisation"), (other, "another tokenizer")):
        with pytest.raises(MismatchError, match=said):
            merge_pairs([marked, one], tmp_path / "all")
    with pytest.raises(MismatchError, match="marked in only one"):
        merge_pairs([marked, kept], tmp_path / "all")
    with pytest.raises(InputError, match="two pair sets or more"):
        merge_pairs([marked], tmp_path / "all")
    with pytest.raises(InputError, match="field sets: several are meant here"):
        merge_pairs(str(marked.path), tmp_path / "all")
    merged = merge_pairs([marked, bitext(tmp_path)], tmp_path / "all")
    with pytest.raises(InputError, match="merged before"):
        merge_pairs([merged, marked], tmp_path / "more")
    with pytest.raises(ArtifactExistsError):
        merge_pairs([marked, marked], tmp_path / "all")
    assert len(merge_pairs([marked, marked], tmp_path / "all", overwrite=True).pairs) == 2 * len(marked.pairs)
    for place in (marked.path, marked.path / "below"):
        with pytest.raises(InputError, match="cannot lie where one of their parts lies"):
            merge_pairs([marked, marked], place, overwrite=True)
