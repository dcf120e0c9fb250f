from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from lading.errors import Violation
from lading.models.card import Card, Conduct, Dialect, Limits, Prices, TokenFacts
from lading.wire import Wire, check
from lading.wire.anthropic.rules import RULES as ANTHROPIC_RULES
from lading.wire.checking import PORTABILITY, Checker, Finding, Rule, WireMessage, is_counted, quote_value
from lading.wire.gemini.rules import RULES as GEMINI_RULES
from lading.wire.layout import Items, Layout, ToolFields
from lading.wire.openai_chat.rules import RULES as CHAT_RULES
from lading.wire.openai_responses.rules import RULES as RESPONSES_RULES
from lading.wire.replies import Replies

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "wire-rules.md"


class Count(Struct):
    """A walk that knows how many messages went by, and how many of them were bad."""

    position: int = 0
    bad: int = 0

    def advance(self, message: WireMessage) -> None:
        self.position += 1
        self.bad += bool(message.get("bad"))


def bad_start(walk: Count) -> Iterator[Finding]:
    yield Finding("model", f"seen before message {walk.position}")


def bad_message(walk: Count, message: WireMessage) -> Iterator[Finding]:
    if message.get("bad"):
        yield Finding(f"messages.{walk.position}", f"is bad, after {walk.bad} bad ones")


def odd_end(walk: Count) -> Iterator[Finding]:
    if walk.position % 2:
        yield Finding("messages", f"{walk.position} are odd")


E_RULE = Rule("X1", "E", "start", at_start=bad_start)
UNVERIFIED = Rule("X2", "E", "message", verified=False, at_message=bad_message)
P_RULE = Rule("A2", "P", "end", at_end=odd_end)
LINT = Rule("X4", "L", "message", at_message=bad_message)


def card(dialect: Dialect = "first_party") -> Card:
    return Card(
        name="m",
        provider="p",
        tier="large",
        limits=Limits(200_000, 8_000),
        tokens=TokenFacts("o200k"),
        prices=Prices(3.0),
        conduct=Conduct(dialect=dialect),
    )


def test_a_checker_reports_what_its_rules_find_and_looks_at_the_end_anew_each_time() -> None:
    checker = Checker([E_RULE, UNVERIFIED, P_RULE], Count(), card("bedrock"), strict=True)
    start = Violation("X1", "E", "model", "seen before message 0")
    assert checker.violations() == [start]
    checker.feed({"bad": True})
    bad = Violation("X2", "E", "messages.0", "is bad, after 0 bad ones")
    odd = Violation("A2", "P", "messages", "1 are odd")
    assert checker.violations() == [start, bad, odd]
    assert checker.violations() == [start, bad, odd]
    checker.feed({})
    assert checker.violations() == [start, bad]


@pytest.mark.parametrize("dialect", ["first_party", "bedrock", "chat_template", "strict"])
@pytest.mark.parametrize("strict", [True, False])
def test_which_rules_count(dialect: Dialect, strict: bool) -> None:
    row = card(dialect)
    assert is_counted(E_RULE, row, strict=strict)
    assert is_counted(UNVERIFIED, row, strict=strict) is strict
    assert is_counted(LINT, row, strict=strict) is strict
    assert is_counted(P_RULE, row, strict=strict) is (dialect in ("bedrock", "strict"))


@pytest.mark.parametrize("value", ["short", "x" * 1000, "\ud83d", None, 5, [[]], {"a": 1}])
def test_a_quoted_value_is_short_and_printable(value: object) -> None:
    text = quote_value(value)
    assert 0 < len(text) < 80
    text.encode()


def test_a_value_nested_too_deep_to_print_can_be_quoted() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert quote_value(deep) == "list"


def not_asked(*arguments: Any, **named: Any) -> Any:
    raise AssertionError(arguments, named)


COUNTING = Wire(
    name="counting",
    decode=not_asked,
    envelope=not_asked,
    layout=Layout(
        not_asked,
        Items("messages", not_asked, not_asked),
        ToolFields(not_asked),
        frozenset(),
        (),
        leading=not_asked,
    ),
    joins=not_asked,
    encode_group=not_asked,
    start_check=lambda *_: Count(),
    rules=(UNVERIFIED, P_RULE),
    invariants=not_asked,
    replies=Replies(not_asked, not_asked, not_asked),
)


@pytest.mark.parametrize("messages", [None, 5, "bad", {"bad": True}, True])
def test_messages_that_are_no_list_are_not_walked(messages: object) -> None:
    assert check({"messages": messages}, COUNTING, card=card("bedrock"), strict=True) == []
    assert check({}, COUNTING, card=card("bedrock"), strict=True) == []


def test_a_whole_body_is_checked_message_by_message() -> None:
    found = check({"messages": [{}, {}, {"bad": True}]}, COUNTING, card=card("bedrock"), strict=True)
    assert [(violation.rule, violation.path) for violation in found] == [
        ("X2", "messages.2"),
        ("A2", "messages"),
    ]


OF_LETTERS = {"A": ANTHROPIC_RULES, "C": CHAT_RULES, "G": GEMINI_RULES, "R": RESPONSES_RULES}
EVERY = [rule for rules in OF_LETTERS.values() for rule in rules]


def page_rows() -> dict[str, tuple[str, bool]]:
    rows = re.findall(r"^\| ([A-Z]\d+) \| ([EPL]) \| (yes|no) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == len({row[0] for row in rows})
    return {name: (level, verified == "yes") for name, level, verified in rows}


@pytest.mark.parametrize(("letter", "rules"), OF_LETTERS.items())
def test_code_and_page_state_the_same_rules(letter: str, rules: tuple[Rule, ...]) -> None:
    stated = {rule.id: (rule.level, rule.verified) for rule in rules}
    assert len(stated) == len(rules)
    assert stated == {name: row for name, row in page_rows().items() if name.startswith(letter)}


def test_the_page_lists_the_rules_that_have_no_check() -> None:
    section = PAGE.read_text("utf-8").partition("## Rules without a check")[2]
    listed = re.findall(r"^\| ([A-Z]\d+) \|", section, re.MULTILINE)
    assert listed == ["A15", "A17", "A18", "A24", "C10", "G9", "G10", "G12", "R5", "R6", "R8", "R9", "R10"]
    assert not set(listed) & set(page_rows())


def test_each_rule_looks_somewhere_and_says_what_it_is_about() -> None:
    for rule in EVERY:
        looks = [look for look in (rule.at_start, rule.at_message, rule.at_end) if look]
        assert looks, rule.id
        for look in looks:
            assert re.match(rf"{rule.id}\b", look.__doc__ or ""), rule.id


def test_every_portability_rule_belongs_to_a_dialect() -> None:
    known = {rule.id for rule in EVERY if rule.level == "P"}
    assert set().union(*PORTABILITY.values()) == known
