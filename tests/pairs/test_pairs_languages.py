"""Sets of languages: their names, and which names are paired under each."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairs_oracles import texts_of

from onoma.errors import ConfigError, InputError
from onoma.pairs import build_pairs, parse_languages
from tiny import Name, make_terminology, small_tokenizer

NAMES: list[str | Name] = ["heart", "hearts", Name("corazon", "es"), Name("cardio", "es-MX"), Name("herz", "de")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all", None),
        (" ALL ", None),
        ("en", ("en",)),
        ("en+es", ("en", "es")),
        ("EN, pt_BR", ("en", "pt-BR")),
        ("zh-Hant+und", ("zh-Hant", "und")),
    ],
)
def test_names_of_sets(text: str, expected: tuple[str, ...] | None) -> None:
    assert parse_languages(text) == expected


@pytest.mark.parametrize("text", ["", "+", "en+", "en es", "all+en", "english!", "en++de"])
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="no set of languages"):
        parse_languages(text)


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ("all", {"heart", "hearts", "corazon", "cardio", "herz"}),
        ("en", {"heart", "hearts"}),
        ("es", {"corazon", "cardio"}),
        ("en+es", {"heart", "hearts", "corazon", "cardio"}),
        ("de+en", {"heart", "hearts", "herz"}),
    ],
)
def test_all_names_of_a_set_are_paired_with_each_other(tmp_path: Path, languages: str, expected: set[str]) -> None:
    terminology = make_terminology(tmp_path / "t", {"C:1": NAMES})
    made = build_pairs(terminology, small_tokenizer(), tmp_path / "p", languages=parse_languages(languages))
    texts = texts_of(made, ["heart", "hearts", "corazon", "cardio", "herz"])
    pairs = {frozenset((texts[a], texts[b])) for a, b in made.pairs.tolist()}
    assert pairs == {frozenset((a, b)) for a in expected for b in expected if a != b}


def test_a_language_without_any_name_is_refused_even_beside_another(tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {"C:1": NAMES})
    with pytest.raises(InputError, match=r"no name is of the language 'th'; expected some of de, en, es, es-MX"):
        build_pairs(terminology, small_tokenizer(), tmp_path / "p", languages=["en", "th"])
