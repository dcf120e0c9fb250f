"""The strict check of generateContent, case by case."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.models.card import Card
from lading.wire import check, find_wire
from lading.wire.checking import Checker
from lading.wire.gemini.rules import RULES, ContentsState
from tests.wire.gemini_cases import ANSWERS, ASKS, ILLEGAL, LEGAL, MODEL, PLAIN, SIGNING, USER, Body, answer, call

WIRE = find_wire("gemini")


def cases(which: dict[str, dict[str, tuple[Body, Card]]]) -> list[Any]:
    return [
        pytest.param(rule, *case, id=f"{rule}-{name}")
        for rule, named in which.items()
        for name, case in named.items()
    ]


@pytest.mark.parametrize(("rule", "body", "card"), cases(LEGAL))
def test_legal_bodies(rule: str, body: Body, card: Card) -> None:
    assert check(body, WIRE, card=card, strict=True) == [], rule


@pytest.mark.parametrize(("rule", "body", "card"), cases(ILLEGAL))
def test_illegal_bodies(rule: str, body: Body, card: Card) -> None:
    found = check(body, WIRE, card=card, strict=True)
    assert rule in {violation.rule for violation in found}
    assert all(violation.path and violation.detail for violation in found)


def test_every_rule_has_a_case_that_keeps_and_one_that_breaks_it() -> None:
    assert [*LEGAL] == [*ILLEGAL] == [rule.id for rule in RULES]


ODD: st.SearchStrategy[Any] = st.sampled_from([None, 5, [], {}, "", [1], {"name": []}, "x"])
PARTS = st.sampled_from([call(), call("b", id="1"), answer(), answer("b", id="2"), {"text": "hi"}, {}, 7, None])
ITEMS = st.one_of(
    ODD,
    st.sampled_from([USER, MODEL, ASKS, ANSWERS]),
    st.builds(
        lambda role, parts: {"role": role, "parts": parts}, ODD | st.just("model"), st.lists(PARTS, max_size=3)
    ),
    st.builds(lambda one: {"role": "model", "parts": [{"functionCall": one}, {"functionResponse": one}]}, ODD),
)


@given(
    st.fixed_dictionaries({}, optional={"tools": ODD, "systemInstruction": ODD}),
    st.lists(ITEMS, max_size=6),
    st.sampled_from([PLAIN, SIGNING]),
)
def test_a_check_that_grows_says_what_a_whole_check_says_of_any_json(
    fields: Body, items: list[Any], card: Card
) -> None:
    before = copy.deepcopy(items)
    growing = Checker(RULES, ContentsState(fields, card), card, strict=True)
    for end in range(len(items) + 1):
        assert growing.violations() == check({**fields, "contents": items[:end]}, WIRE, card=card, strict=True)
        if end < len(items):
            growing.feed(items[end])
    assert items == before
