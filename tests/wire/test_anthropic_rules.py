from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from lading.errors import Violation
from lading.history.validity import legal_cuts
from lading.models.card import Card
from lading.wire import find_wire
from lading.wire.anthropic.rules import RULES, start_check
from lading.wire.checking import Checker, WireMessage
from tests.wire.anthropic_bodies import (
    BEFORE,
    CURRENT,
    ENABLED,
    HOUR,
    MARK,
    REDACTED,
    SIGNED,
    TOOLS,
    assistant,
    body,
    call,
    card,
    found,
    result,
    said,
    search,
    text,
    user,
)
from tests.wire.anthropic_cases import ILLEGAL, LEGAL
from tests.wire.codec_cards import PLAIN


def check(request: Mapping[str, Any], row: Card = BEFORE, *, strict: bool = True) -> list[Violation]:
    checker = Checker(RULES, start_check(request, row), row, strict=strict)
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        checker.feed(message)
    return checker.violations()


def broken(request: Mapping[str, Any], row: Card = BEFORE) -> set[str]:
    return {violation.rule for violation in check(request, row)}


ALSO: dict[tuple[str, str], set[str]] = {
    ("A4", "system among parallel results"): {"A3"},
    ("A5", "call of a user"): {"A26"},
    ("A5", "no id to answer"): {"A10"},
    ("A6", "result of an assistant"): {"A26"},
    ("A9", "in a user message"): {"A26"},
    ("A6", "id that cannot be hashed"): {"A10"},
    ("A7", "message before the result's"): {"A3"},
    ("A8", "two results in two messages"): {"A3"},
    ("A22", "on an empty text"): {"A11"},
    ("A22", "on an empty text in system"): {"A11"},
}
"""What else a case breaks; every other illegal case breaks its own rule alone."""


class Case(Struct, frozen=True):
    rule: str
    name: str
    body: dict[str, Any]
    card: Card


def cases(table: Mapping[str, Mapping[str, tuple[dict[str, Any], Card]]]) -> list[Any]:
    return [
        pytest.param(Case(rule, name, request, row), id=f"{rule} {name}")
        for rule, named in table.items()
        for name, (request, row) in named.items()
    ]


@pytest.mark.parametrize("case", cases(LEGAL))
def test_legal(case: Case) -> None:
    assert check(case.body, case.card) == []


@pytest.mark.parametrize("case", cases(ILLEGAL))
def test_illegal(case: Case) -> None:
    request = copy.deepcopy(case.body)
    assert broken(request, case.card) == {case.rule} | ALSO.get((case.rule, case.name), set())
    assert request == case.body


def test_every_rule_has_a_legal_and_an_illegal_case() -> None:
    known = [rule.id for rule in RULES]
    assert list(LEGAL) == known
    assert list(ILLEGAL) == known


@pytest.mark.parametrize("case", cases({rule.id: ILLEGAL[rule.id] for rule in RULES if not rule.verified}))
def test_unverified_rules_count_only_when_strict(case: Case) -> None:
    lenient = {violation.rule for violation in check(case.body, case.card, strict=False)}
    assert case.rule not in lenient


@pytest.mark.parametrize(
    ("dialect", "counted"),
    [("first_party", set()), ("bedrock", {"A2", "A3"}), ("chat_template", set()), ("strict", {"A2", "A3"})],
)
def test_portability_rules_count_under_their_dialects(dialect: str, counted: set[str]) -> None:
    request = body(assistant(), assistant(), user())
    assert broken(request, card(dialect=dialect)) == counted


def test_a_turn_may_be_spread_over_messages() -> None:
    request = body(
        user(),
        assistant(text("x")),
        assistant(call("a"), call("b")),
        user(result("b")),
        user(result("a"), text("y")),
    )
    assert broken(request, card(dialect="first_party")) == set()


def test_paths_name_the_message_and_the_block() -> None:
    [unanswered] = check(body(user(), assistant(text("x"), call("a")), user()))
    assert (unanswered.rule, unanswered.path) == ("A5", "messages.1")
    assert "'a'" in unanswered.detail
    [orphan] = check(body(user(text("x"), result("a"))))
    assert (orphan.rule, orphan.path) == ("A6", "messages.0.content.1")
    [blank] = check(body(user(), assistant(call("a")), user(result("a", [text("x"), text(" ")]))))
    assert (blank.rule, blank.path) == ("A11", "messages.2.content.0.content.1")


IDS: st.SearchStrategy[Any] = st.sampled_from(["a", "b", "c", "a:1", "", None, 5, [], {}])
MARKS = st.sampled_from([None, MARK, HOUR, True])
BLOCKS = st.one_of(
    st.builds(text, st.sampled_from(["x", "x ", "", " "]), cache_control=MARKS),
    st.builds(call, IDS),
    st.builds(result, IDS, st.one_of(st.sampled_from(["", "ok", None, 7]), st.just([text("")]))),
    st.builds(search, IDS),
    st.builds(found, IDS),
    st.sampled_from([SIGNED, REDACTED, {"type": "thinking"}, {"type": []}, {}, None, 5]),
)
CONTENTS = st.one_of(
    st.sampled_from(["x", "x ", "", " ", None, 5, {}]),
    st.lists(BLOCKS, max_size=4),
)
ROLES: st.SearchStrategy[Any] = st.sampled_from(
    ["user", "assistant", "user", "assistant", "system", "tool", None, []]
)
MESSAGES = st.lists(st.one_of(st.builds(said, ROLES, CONTENTS), st.sampled_from([None, "hi", [], {}])), max_size=8)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["m", "", None, 5]),
        "max_tokens": st.sampled_from([1, 4096, -1, "1", 1.5]),
        "tools": st.sampled_from([TOOLS, [], None, "x", [None, 5], [{"cache_control": HOUR}]]),
        "system": st.sampled_from(["x", "", [text("x", cache_control=MARK)], [None], 5]),
        "thinking": st.sampled_from([ENABLED, {"type": "adaptive"}, {"type": []}, "x", None]),
        "cache_control": MARKS,
        "betas": st.sampled_from([None, [], [None, "interleaved-thinking-1"], "x"]),
    },
)
CARDS = st.sampled_from([BEFORE, CURRENT])


@given(FIELDS, MESSAGES, CARDS)
def test_a_check_that_grows_says_at_every_point_what_a_whole_check_says(
    fields: dict[str, Any], messages: list[WireMessage], row: Card
) -> None:
    growing = Checker(RULES, start_check(fields, row), row, strict=True)
    for end in range(len(messages) + 1):
        assert growing.violations() == check({**fields, "messages": messages[:end]}, row)
        if end < len(messages):
            growing.feed(messages[end])


@given(FIELDS, MESSAGES, CARDS)
def test_a_check_changes_nothing_of_its_input(
    fields: dict[str, Any], messages: list[WireMessage], row: Card
) -> None:
    request = {**fields, "messages": messages}
    before = copy.deepcopy(request)
    check(request, row)
    assert request == before


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "id", "tool_use_id", "cache_control", "input"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["model", "max_tokens", "messages", "system", "tools", "thinking"]), JSON))
def test_any_json_gives_violations_and_no_exception(request: dict[str, Any]) -> None:
    found_wrong = check(request)
    assert all(violation.path and violation.detail for violation in found_wrong)
    if not isinstance(request.get("messages"), list):
        assert "A1" in {violation.rule for violation in found_wrong}


def test_content_nested_without_end_is_read_to_its_second_level() -> None:
    inner: Any = "deep"
    for _ in range(50_000):
        inner = [{"type": "tool_result", "tool_use_id": "a", "content": inner}]
    request = body(user(), assistant(call("a")), user(result("a", inner)))
    assert broken(request) == {"A26"}


def test_no_cut_parts_a_server_tool_from_its_result_in_the_next_answer() -> None:
    """One that runs after the caller's tools (A9)."""
    asked: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "x"},
    }
    ended: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    read: dict[str, Any] = {"type": "tool_use", "name": "read", "input": {}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    parts: list[list[dict[str, Any]]] = [[], [asked], [ended], []]
    for at, before in enumerate(parts):
        messages.append({"role": "assistant", "content": [*before, {**read, "id": f"toolu_{at}"}]})
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": "ok"}
        messages.append({"role": "user", "content": [answer]})
    wire = find_wire("anthropic")
    history = wire.decode({"model": "m", "messages": messages}).messages
    assert legal_cuts(history, wire.invariants(PLAIN)) == [0, 1, 3, 7]
    asked["id"], ended["tool_use_id"] = [], {}
    assert legal_cuts(wire.decode({"model": "m", "messages": messages}).messages, wire.invariants(PLAIN))
