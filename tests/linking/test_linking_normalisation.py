"""One preset from training over the dictionary to the query, whichever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from onoma.linking import ExactMatcher
from onoma.pairs import training_names
from onoma.terminology import NORMALISATION_PRESETS, normalise
from tiny import make_terminology

SPELLINGS = ["Renal-Cell  Carcinoma (disorder), NOS", " renal-cell carcinoma nos", "RENAL CELL CARCINOMA", "ﬁbrosis"]


@pytest.mark.parametrize("preset", NORMALISATION_PRESETS)
def test_training_dictionary_and_query_agree(tmp_path: Path, preset: str) -> None:
    terminology = make_terminology(tmp_path / "t", {f"C:{row}": [name] for row, name in enumerate(SPELLINGS)})
    matcher = ExactMatcher.from_terminology(terminology, normalisation=preset)
    trained = training_names(terminology, normalisation=preset)["text"].to_list()
    for name, links in zip(SPELLINGS, matcher.link(SPELLINGS), strict=True):
        assert normalise(name, preset) in trained
        assert normalise(name, preset) in list(matcher.dictionary.texts)
        assert {link.matched_name for link in links} == {
            other for other in SPELLINGS if normalise(other, preset) == normalise(name, preset)
        }
