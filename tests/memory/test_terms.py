"""The terms of texts in several scripts, and the stems of English words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.memory.stemming import stem
from lading.memory.terms import count_terms, query_terms

STEMS = """
caresses caress ponies poni ties ti cats cat feed feed agreed agre plastered plaster bled bled motoring motor
sing sing conflated conflat troubled troubl sized size hopping hop tanned tan falling fall hissing hiss fizzed fizz
failing fail filing file happy happi sky sky relational relat conditional condit rational ration digitizer digit
operator oper feudalism feudal decisiveness decis hopefulness hope triplicate triplic formative form
formalize formal electrical electr goodness good revival reviv
allowance allow inference infer airliner airlin adjustable adjust
defensible defens replacement replac adjustment adjust dependent depend adoption adopt activate activ effective
effect probate probat rate rate cease ceas controll control roll roll generalizations gener oscillation oscil
""".split()  # noqa: SIM905 - a list of words reads as words


@pytest.mark.parametrize(("word", "expected"), list(zip(STEMS[::2], STEMS[1::2], strict=True)))
def test_stems_are_those_of_porter(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Order_ID=42, order-id!", {"order": 2, "id": 2, "42": 1}),
        ("CAFÉ cafe\u0301 Straße", {"cafe": 2, "strass": 1}),
        ("東京都", {"東": 1, "京": 1, "都": 1, "東京": 1, "京都": 1}),
        ("iPhone用", {"iphon": 1, "用": 1}),
        ("हिन्दी", {"हिन्दी": 1}),
        ("\ud800\x00 \u200d", {}),
        ("x" * 1_000, {"x" * 64: 1}),
    ],
)
def test_terms_of_a_text(text: str, terms: dict[str, int]) -> None:
    assert count_terms(text) == terms


def test_a_query_asks_for_pairs_where_it_can() -> None:
    assert query_terms("東京 猫 running") == ["東京", "猫", "run"]


@given(st.text())
def test_every_term_of_a_query_is_in_the_text_itself(text: str) -> None:
    terms = count_terms(text)
    assert set(query_terms(text)) <= terms.keys()
    assert all(term.isascii() <= term.isalnum() and '"' not in term and " " not in term for term in terms)
