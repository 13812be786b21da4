from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_encoders import byte_level, wordpiece
from tokenizers import Tokenizer

from onoma.encoders.cross_encoder_tokens import (
    END_MARK,
    START_MARK,
    PairTokeniser,
    TokenRows,
    add_marks,
    candidate_text,
    split_context,
)
from onoma.errors import ConfigError, InputError, ShapeError


def make(
    tokenizer: Tokenizer | None = None, *, max_tokens: int = 24, max_name_tokens: int = 8, marks: bool = False
) -> PairTokeniser:
    own = tokenizer or wordpiece()
    return PairTokeniser(
        add_marks(own) if marks else own,
        max_tokens=max_tokens,
        max_name_tokens=max_name_tokens,
        marks=marks,
        prepare=str.lower,
    )


def row(rows: TokenRows, number: int) -> list[int]:
    return [int(token) for token in rows.ids[rows.offsets[number] : rows.offsets[number + 1]]]


def bare(text: str) -> list[int]:
    """Ids of a text without special tokens."""
    return list(add_marks(wordpiece()).encode(text, add_special_tokens=False).ids)


TEXTS = ["fever", "", "heart attack", "diabetes", "x" * 60, "心肌梗死", "a, b - c"]


@pytest.mark.parametrize("tokenizer", [wordpiece(), byte_level()], ids=["wordpiece", "byte-level"])
@given(
    rows=st.lists(st.tuples(st.integers(0, len(TEXTS) - 1), st.integers(0, len(TEXTS) - 1)), min_size=0, max_size=12)
)
def test_pairs_equal_a_plain_loop(tokenizer: Tokenizer, rows: list[tuple[int, int]]) -> None:
    tokeniser = make(tokenizer)
    before, after = tokenizer.encode("a").ids[:1], tokenizer.encode("a").ids[-1:]
    mentions, names = tokeniser.mentions(TEXTS), tokeniser.names(TEXTS)
    left, right = (np.array([pair[side] for pair in rows], np.int64) for side in (0, 1))
    found = tokeniser.pairs(mentions, left, names, right)
    for number, (mention, name) in enumerate(rows):
        ids = [tokenizer.encode(TEXTS[side].lower(), add_special_tokens=False).ids for side in (mention, name)]
        first = [*before, *ids[0][: 24 - 3 - 8], *after]
        second = [*ids[1][:8], *after]
        place = slice(found.offsets[number], found.offsets[number + 1])
        assert found.ids[place].tolist() == first + second
        assert found.types[place].tolist() == [0] * len(first) + [1] * len(second)
    assert len(found.offsets) == len(rows) + 1
    assert found.offsets[-1] == len(found.ids)
    assert found.lengths.max(initial=0) <= 24


def test_a_mention_is_marked_in_its_context() -> None:
    tokeniser = make(marks=True)
    found = tokeniser.mentions(["Fever", "fever"], ["heart fever attack", None])
    assert row(found, 0) == bare(f"heart {START_MARK} fever {END_MARK} attack")
    assert row(found, 1) == bare(f"{START_MARK} fever {END_MARK}")


def test_of_a_long_context_what_is_near_stays() -> None:
    tokeniser = make(max_tokens=21, marks=True)  # 3 special, 8 for the name, 2 marks: 8 for mention and context
    many = "a " * 30
    start, end, fever = bare(START_MARK)[0], bare(END_MARK)[0], bare("fever")[0]
    a, b = bare("a")[0], bare("b")[0]
    contexts = [f"{many}b fever b {many}", f"fever b {many}", f"{many}b fever", f"b fever {many}", None]
    found = tokeniser.mentions(["fever"] * 5, contexts)
    assert row(found, 0) == [a, a, b, start, fever, end, b, a, a, a]
    assert row(found, 1) == [start, fever, end, b, *[a] * 6]
    assert row(found, 2) == [*[a] * 6, b, start, fever, end]
    assert row(found, 3) == [b, start, fever, end, *[a] * 6]
    assert row(found, 4) == [start, fever, end]
    assert len(row(tokeniser.mentions(["x" * 60], [f"{'x' * 60} b"]), 0)) <= 10


@pytest.mark.parametrize(
    ("mention", "context", "expected"),
    [
        ("cold", "Coldness and a COLD.", ("Coldness and a ", ".")),
        ("cold", "Coldness", ("", "ness")),
        ("cold", "warm", ("", "warm")),
        ("cold", "", ("", "")),
        ("cold", None, ("", "")),
        ("", "warm", ("", "warm")),
        ("myocardial infarction", "an <tgt>MI</tgt>, cold", ("an ", ", cold")),
        ("a+b (c)", "x A+B (C) y", ("x ", " y")),
    ],
)
def test_where_a_mention_stands(mention: str, context: str | None, expected: tuple[str, str]) -> None:
    assert split_context(mention, context) == expected


def test_a_candidate_has_its_preferred_name_once() -> None:
    assert candidate_text("MI", "Myocardial Infarction", both=True) == "MI ; Myocardial Infarction"
    assert candidate_text("MI", "Myocardial Infarction", both=False) == "MI"
    assert candidate_text("cold", "COLD", both=True) == "cold"


def test_marks_are_tokens_whatever_stands_around() -> None:
    marked = add_marks(wordpiece())
    assert [marked.id_to_token(token) for token in marked.encode(f"a{START_MARK}b{END_MARK}c").ids[1:-1]] == [
        "a",
        START_MARK,
        "b",
        END_MARK,
        "c",
    ]
    assert add_marks(marked).get_vocab_size() == marked.get_vocab_size() == wordpiece().get_vocab_size() + 2


def test_what_cannot_be_tokenised_is_refused() -> None:
    with pytest.raises(ConfigError, match="set max_tokens to 15 or more"):
        make(max_tokens=12)
    assert make(max_tokens=15)
    with pytest.raises(ConfigError, match="has no tokens <tgt>"):
        PairTokeniser(wordpiece(), max_tokens=24, max_name_tokens=4, marks=True, prepare=str.lower)
    bare_tokenizer = Tokenizer.from_str(wordpiece().to_str())
    bare_tokenizer.post_processor = None
    with pytest.raises(ConfigError, match="no special token after a text"):
        make(bare_tokenizer)
    with pytest.raises(InputError, match="trained without contexts"):
        make().mentions(["fever"], ["heart fever"])
    with pytest.raises(ShapeError, match="2 mentions need as many contexts"):
        make(marks=True).mentions(["fever", "cold"], ["heart fever"])
    with pytest.raises(InputError, match="text 1 is no text"):
        make().names(["fever", None])  # type: ignore[list-item]
