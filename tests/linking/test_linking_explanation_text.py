"""Explanations as text: what each part of one adds, and what is left away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onoma.linking.explanation import Explanation, Reason
from onoma.linking.explanation_text import sections

EXACT = Reason(
    concept_id="D1",
    preferred_name="common cold",
    matched_name="Cold",
    matched_text="cold",
    is_preferred_name=False,
    is_other_scope=False,
    prior=None,
    rank=1,
    stage="exact",
    score=1.0,
    scores={},
    ranks={},
    contributions={"exact": 1.0},
    n_homonyms=0,
    homonyms=(),
)
SEARCHED = replace(
    EXACT,
    concept_id="D20",
    is_other_scope=True,
    rank=12,
    stage="dense",
    score=0.7654321,
    scores={"dense": 0.7654321},
    contributions={"dense": 0.7654321},
)
FUSED = replace(
    EXACT,
    stage="fusion",
    score=0.5,
    scores={"dense": 0.9, "sparse": 0.25},
    ranks={"dense": 1, "sparse": 3},
    contributions={"dense": 0.3, "sparse": 0.2},
)
PLAIN = Explanation(
    mention="The Cold",
    text="cold",
    stages=("exact", "dense"),
    fusion=None,
    weights=None,
    n_candidates=0,
    links=(SEARCHED,),
    near_misses=(),
    confidence=None,
    no_concept_below=None,
    outcome="It is near.",
)


def test_scores_of_one_search_have_no_column_of_what_they_are_made_of() -> None:
    assert str(replace(PLAIN, near_misses=(replace(SEARCHED, rank=13, is_other_scope=False),))).splitlines() == [
        "The Cold: It is near.",
        "  compared as 'cold'; stages exact, dense",
        "           rank  concept  preferred name  matched name                     by     score",
        "answer       12  D20      common cold     Cold (broad, narrow or related)  dense  0.765",
        "near miss    13  D20      common cold     Cold                             dense  0.765",
    ]


@pytest.mark.parametrize(
    ("reason", "made_of"),
    [
        (EXACT, "exact 1.000"),
        (FUSED, "dense 0.300 + sparse 0.200 (cosines dense 0.900, sparse 0.250; dense 1., sparse 3.)"),
        (replace(FUSED, scores={}), "dense 0.300 + sparse 0.200 (dense 1., sparse 3.)"),
        (replace(FUSED, ranks={}), "dense 0.300 + sparse 0.200 (cosines dense 0.900, sparse 0.250)"),
        (replace(SEARCHED, stage="rerank"), "dense 0.765 (cosines dense 0.765)"),
        (replace(SEARCHED, ranks={"dense": 2}), "dense 0.765 (cosines dense 0.765; dense 2.)"),
        (replace(SEARCHED, contributions={"dense": 0.5}), "dense 0.500 (cosines dense 0.765)"),
    ],
)
def test_what_scores_are_made_of(reason: Reason, made_of: str) -> None:
    ((_, rows),) = sections(replace(PLAIN, links=(reason, SEARCHED)))
    assert [row[7] for row in rows] == ["made of", made_of, ""]


@pytest.mark.parametrize(
    ("explanation", "said"),
    [
        (replace(PLAIN, fusion="reciprocal ranks", n_candidates=1), "; fused: reciprocal ranks of 1 candidate"),
        (
            replace(PLAIN, fusion="weights", weights={"dense": 0.75, "sparse": 0.25}, n_candidates=40),
            "; fused: 0.750 x dense, 0.250 x sparse of 40 candidates",
        ),
        (replace(PLAIN, confidence=0.0), "; confidence 0.000"),
    ],
)
def test_how_searches_were_fused_and_how_sure_the_answer_is(explanation: Explanation, said: str) -> None:
    assert str(explanation).splitlines()[1] == f"  compared as 'cold'; stages exact, dense{said}"


def test_without_a_candidate_there_is_no_table() -> None:
    assert str(replace(PLAIN, links=())) == "The Cold: It is near.\n  compared as 'cold'; stages exact, dense"


def test_parts_and_long_texts() -> None:
    long, cut = "x" * 300, "x" * 299 + "…"
    named = replace(EXACT, preferred_name=long, matched_name=long + "x")
    part = replace(PLAIN, mention=long, text=long + "x", links=(named,))
    ((lines, rows), (further, _)) = sections(replace(PLAIN, mention=long + "xx", parts=(part, PLAIN)))
    assert lines == [
        f"{cut}: It is near.",
        f"{long}: It is near.",
        f"  compared as '{cut}'; stages exact, dense",
    ]
    assert further == str(PLAIN).splitlines()[:2]
    assert rows[1] == ["answer", "1", "D1", long, cut, "exact", "1.000", "exact 1.000"]
