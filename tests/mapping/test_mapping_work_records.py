"""What is said of settings that differ from those of unfinished work."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from onoma.mapping.work_records import Settings

SETTINGS = Settings(
    input="0123456789ab" + "c" * 52,
    linker="d" * 64,
    column="mention",
    context=None,
    encoding=None,
    top_k=2,
    answer_prefix="",
    abbreviations=None,
    finder=None,
    composites=True,
    spelling=False,
    strengths=False,
    codes=False,
    asking=None,
    input_format=".csv",
    quoting="minimal",
    output_format=".csv",
    onoma="1.0",
    polars="1.30",
    sizes="e" * 65,
)


def asking(**filters: object) -> str:
    return json.dumps({"stages": ["exact", "dense"], "min_confidence": 0.5, "filters": filters})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"input": "fedcba987654" + "c" * 52}, "input: 0123456789ab, now fedcba987654"),
        ({"sizes": "f" * 65}, f"sizes: {'e' * 65}, now {'f' * 65}"),
        ({"top_k": 0}, "top_k: 2, now 0"),
        ({"answer_prefix": "my_", "context": "note"}, "context: none, now note, answer_prefix: none, now my_"),
        ({"composites": False, "codes": True}, "composites: yes, now no, codes: no, now yes"),
        ({"asking": asking()}, "stages: none, now exact+dense, min_confidence: none, now 0.5"),
        (
            {"asking": asking(languages=["de", "en"], scopes=[])},
            "stages: none, now exact+dense, min_confidence: none, now 0.5, languages: none, now de+en",
        ),
    ],
)
def test_differences(change: dict[str, object], expected: str) -> None:
    assert SETTINGS.differences(replace(SETTINGS, **change)) == expected  # type: ignore[arg-type]


def test_differences_of_what_the_linker_is_asked_for() -> None:
    one = replace(SETTINGS, asking=asking(languages=["de"], branches=["D1"]))
    other = replace(SETTINGS, asking=asking(languages=[], branches=["D1"], sources=["X"]))
    assert one.differences(other) == "languages: de, now none, sources: none, now X"
    assert one.differences(SETTINGS).startswith("stages: exact+dense, now none, ")
