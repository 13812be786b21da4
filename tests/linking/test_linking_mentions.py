"""Mentions made ready: expansion and splitting together."""

from __future__ import annotations

import pytest

from onoma.errors import ConfigError, InputError
from onoma.linking.expansion import AbbreviationTable, Expansion
from onoma.linking.mentions import PreparedMention, prepare_mentions

DOCUMENT = "Duchenne muscular dystrophy (DMD) and Becker muscular dystrophy (BMD) are not multiple sclerosis (MS)."
TABLE = AbbreviationTable({"MS": "mitral stenosis", "MI": "myocardial infarction"}, {"HD": ("a", "b")})


def texts(prepared: list[PreparedMention]) -> list[str]:
    return [mention.text for mention in prepared]


def test_the_document_goes_before_the_table() -> None:
    mentions = ["MS", "MI", "HD", "MS"]
    assert texts(prepare_mentions(mentions, document=DOCUMENT, table=TABLE)) == [
        "multiple sclerosis",
        "myocardial infarction",
        "HD",
        "multiple sclerosis",
    ]
    assert texts(prepare_mentions(mentions, table=TABLE))[0] == "mitral stenosis"
    assert texts(prepare_mentions(mentions, document=DOCUMENT, table=TABLE, finder=None))[0] == "mitral stenosis"
    assert texts(prepare_mentions(iter(mentions))) == mentions
    assert prepare_mentions([]) == []


def test_expanded_then_split() -> None:
    (prepared,) = prepare_mentions(["DMD/BMD"], document=DOCUMENT, split=True)
    assert prepared == PreparedMention(
        original="DMD/BMD",
        text="Duchenne muscular dystrophy/Becker muscular dystrophy",
        parts=("Duchenne muscular dystrophy", "Becker muscular dystrophy"),
        expansions=(
            Expansion("DMD", "Duchenne muscular dystrophy"),
            Expansion("BMD", "Becker muscular dystrophy"),
        ),
    )
    (whole,) = prepare_mentions(["DMD/BMD"], document=DOCUMENT)
    assert whole.parts == (whole.text,)


def test_names_of_the_terminology_stay_whole() -> None:
    mention = "spinal and bulbar muscular atrophy"
    (split,) = prepare_mentions([mention], split=True)
    assert split.parts == ("spinal muscular atrophy", "bulbar muscular atrophy")
    (whole,) = prepare_mentions([mention], split=True, is_name=lambda text: text == mention)
    assert whole.parts == (mention,)


def test_refused() -> None:
    with pytest.raises(ConfigError, match="schwartz-hearst"):
        prepare_mentions(["MS"], finder="schwarz-hearst")
    with pytest.raises(InputError, match="not one"):
        prepare_mentions("MS")
    with pytest.raises(InputError, match=r"mentions\[1\]"):
        prepare_mentions(["MS", None])  # type: ignore[list-item]
