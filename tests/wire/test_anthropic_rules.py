from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from lading.models.card import Card, Conduct, Limits, Prices, TokenFacts
from lading.wire.anthropic.rules import RULES, walk
from lading.wire.checking import Checker, Violation, WireMessage

Blocks = list[dict[str, Any]]

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
SIGNED = {"type": "thinking", "thinking": "", "signature": "Eq+/="}
REDACTED = {"type": "redacted_thinking", "data": "Eq+/="}
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
ENABLED = {"type": "enabled", "budget_tokens": 1024}


def card(**conduct: Any) -> Card:
    return Card(
        name="m",
        provider="anthropic",
        tier="frontier",
        limits=Limits(200_000, 8_000),
        tokens=TokenFacts("cl100k"),
        prices=Prices(3.0),
        conduct=Conduct(**{"dialect": "strict", **conduct}),
    )


CURRENT = card(mid_system=True, prefill=False, thinking_budget=False)
"""A model that takes system messages in the list, but no prefill and no thinking budget."""
BEFORE = card()
"""A model the other way round."""


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "read", "input": {}, **more}


def result(name: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


def search(name: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}


def found(name: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": name, "content": []}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content) or "hi"}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content) or "hello"}


def system(*content: Any) -> dict[str, Any]:
    return {"role": "system", "content": list(content) or "be brief"}


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 4096, "tools": TOOLS, **fields, "messages": list(messages)}


def check(request: Mapping[str, Any], row: Card = BEFORE, *, strict: bool = True) -> list[Violation]:
    checker = Checker(RULES, walk(request, row), row, strict=strict)
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        checker.feed(message)
    return checker.violations()


def broken(request: Mapping[str, Any], row: Card = BEFORE) -> set[str]:
    return {violation.rule for violation in check(request, row)}


def without(request: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != field}


LOOP = (user(), assistant(call("a")), user(result("a")))

LEGAL: dict[str, dict[str, tuple[dict[str, Any], Card]]] = {
    "A1": {"the least there can be": (without(body(user()), "tools"), BEFORE)},
    "A2": {"user first": (body(user(), assistant(), user()), BEFORE)},
    "A3": {"alternating, with a system message": (body(user(), system(), assistant(), user()), CURRENT)},
    "A4": {
        "system last": (body(user(), system()), CURRENT),
        "system after results": (body(*LOOP, system()), CURRENT),
        "system after a server tool": (body(user(), assistant(search("s"), found("s")), system()), CURRENT),
        "system with tool changes": (
            body(
                user(),
                system(text("x"), {"type": "tool_addition"}, {"type": "tool_removal"}),
                assistant(),
                user(),
            ),
            CURRENT,
        ),
    },
    "A5": {
        "parallel calls": (
            body(user(), assistant(call("a"), call("b")), user(result("b"), result("a"))),
            BEFORE,
        ),
        "two loops": (body(*LOOP, assistant(call("b")), user(result("b"))), BEFORE),
    },
    "A6": {
        "result after text and call": (
            body(user(), assistant(text("x"), call("a")), user(result("a"))),
            BEFORE,
        )
    },
    "A7": {
        "text after the results": (body(user(), assistant(call("a")), user(result("a"), text("x"))), BEFORE)
    },
    "A8": {"different ids": (body(*LOOP, assistant(call("b")), user(result("b"))), BEFORE)},
    "A9": {
        "same message": (body(user(), assistant(search("s"), found("s"), text("x")), user()), BEFORE),
        "MCP": (
            body(
                user(),
                assistant(
                    {"type": "mcp_tool_use", "id": "m", "name": "x", "server_name": "s", "input": {}},
                    {"type": "mcp_tool_result", "tool_use_id": "m", "content": []},
                ),
                user(),
            ),
            BEFORE,
        ),
        "deferred until the results of the caller's own tools": (
            body(user(), assistant(search("s"), call("a")), user(result("a")), assistant(found("s")), user()),
            BEFORE,
        ),
    },
    "A10": {
        "all allowed characters": (body(user(), assistant(call("aZ_-9")), user(result("aZ_-9"))), BEFORE)
    },
    "A11": {
        "empty final assistant message": (body(user(), said("assistant", "")), BEFORE),
        "no final assistant blocks": (body(user(), said("assistant", [])), BEFORE),
        "empty result": (body(user(), assistant(call("a")), user(result("a", ""))), BEFORE),
        "result of blocks": (body(user(), assistant(call("a")), user(result("a", [text("x")]))), BEFORE),
        "result without content": (
            body(user(), assistant(call("a")), user({"type": "tool_result", "tool_use_id": "a"})),
            BEFORE,
        ),
        "system of blocks": (body(user(), system=[text("x")]), BEFORE),
    },
    "A12": {
        "prefill": (body(user(), said("assistant", "{")), BEFORE),
        "space in an earlier message": (body(user(), said("assistant", "x "), user()), BEFORE),
    },
    "A13": {
        "user last": (body(user(), assistant(), user()), CURRENT),
        "prefill where it is taken": (body(user(), assistant()), BEFORE),
        "paused at a server tool": (body(user(), assistant(search("s"))), CURRENT),
    },
    "A14": {
        "thinking first": (
            body(user(), assistant(SIGNED, call("a")), user(result("a")), thinking=ENABLED),
            BEFORE,
        ),
        "redacted first": (
            body(user(), assistant(REDACTED, call("a")), user(result("a")), thinking=ENABLED),
            BEFORE,
        ),
        "none later in the loop": (
            body(
                user(),
                assistant(SIGNED, call("a")),
                user(result("a")),
                assistant(call("b")),
                user(result("b"), text("x")),
                thinking=ENABLED,
            ),
            BEFORE,
        ),
        "none in a closed turn": (body(*LOOP, assistant(), user(), thinking=ENABLED), BEFORE),
        "none under adaptive": (body(*LOOP, thinking={"type": "adaptive"}), CURRENT),
    },
    "A16": {"signature and data": (body(user(), assistant(SIGNED, REDACTED, text("x")), user()), BEFORE)},
    "A19": {
        "in bounds": (body(user(), thinking={"type": "enabled", "budget_tokens": 4095}), BEFORE),
        "interleaved": (
            body(
                user(),
                thinking={"type": "enabled", "budget_tokens": 9000},
                anthropic_beta=["interleaved-thinking-2025-05-14"],
            ),
            BEFORE,
        ),
        "disabled": (body(user(), thinking={"type": "disabled"}), CURRENT),
    },
    "A20": {
        "four": (
            body(
                user(text("x", cache_control=MARK)),
                tools=[{**TOOLS[0], "cache_control": MARK}],
                system=[text("x", cache_control=MARK), text("y", cache_control=MARK)],
            ),
            BEFORE,
        ),
        "the top level's stands on the last block": (
            body(
                user(*(text("x", cache_control=MARK) for _ in range(4))),
                cache_control=MARK,
            ),
            BEFORE,
        ),
    },
    "A21": {
        "an hour, then five minutes": (
            body(
                user(text("x", cache_control=MARK)),
                system=[text("x", cache_control=HOUR)],
                cache_control=MARK,
            ),
            BEFORE,
        ),
    },
    "A22": {"on text": (body(user(text("x", cache_control=MARK))), BEFORE)},
    "A23": {"tools declared": (body(*LOOP), BEFORE)},
}

ILLEGAL: dict[str, dict[str, tuple[dict[str, Any], Card]]] = {
    "A1": {
        "no messages": (body(), BEFORE),
        "messages missing": (without(body(user()), "messages"), BEFORE),
        "messages not a list": ({**body(), "messages": "hi"}, BEFORE),
        "messages a number": ({**body(), "messages": 5}, BEFORE),
        "no model": (without(body(user()), "model"), BEFORE),
        "no max_tokens": (without(body(user()), "max_tokens"), BEFORE),
        "max_tokens true": (body(user(), max_tokens=True), BEFORE),
        "max_tokens zero": (body(user(), max_tokens=0), BEFORE),
        "tools not a list": (body(user(), tools={}), BEFORE),
        "a tool that is no object": (body(user(), tools=[None]), BEFORE),
    },
    "A2": {"assistant first": (body(assistant(), user()), BEFORE)},
    "A3": {
        "two user messages": (body(user(), user()), BEFORE),
        "two assistant messages": (body(user(), assistant(), assistant(), user()), BEFORE),
    },
    "A4": {
        "unknown role": (body(user(), said("tool", "x")), BEFORE),
        "role that is no string": (body(user(), {"role": ["user"], "content": "x"}), BEFORE),
        "message that is no object": (body(user(), "hi"), BEFORE),
        "system where the model takes none": (body(user(), system()), BEFORE),
        "two system messages": (body(user(), system(), system()), CURRENT),
        "system after an assistant": (body(user(), assistant(), system()), CURRENT),
        "system between call and result": (
            body(user(), assistant(call("a")), system(), user(result("a"))),
            CURRENT,
        ),
        "system among parallel results": (
            body(user(), assistant(call("a"), call("b")), user(result("a")), system(), user(result("b"))),
            CURRENT,
        ),
        "image in a system message": (body(user(), system({"type": "image"})), CURRENT),
    },
    "A5": {
        "never answered": (body(user(), assistant(call("a")), user(text("x"))), BEFORE),
        "last": (body(user(), assistant(call("a"))), BEFORE),
        "one of two": (
            body(user(), assistant(call("a"), call("b")), user(result("a")), assistant(), user()),
            BEFORE,
        ),
        "call of a user": (body(user(call("a"))), BEFORE),
        "no id to answer": (body(user(), assistant(call("a", id=None)), user()), BEFORE),
    },
    "A6": {
        "history cut inside a pair": (body(user(result("a"))), BEFORE),
        "a turn too late": (body(*LOOP, assistant(), user(result("a"))), BEFORE),
        "result of an assistant": (body(user(), assistant(result("a")), user()), BEFORE),
        "id that cannot be hashed": (body(*LOOP, assistant(), user(result("a", tool_use_id={}))), BEFORE),
    },
    "A7": {
        "text before the result": (body(user(), assistant(call("a")), user(text("x"), result("a"))), BEFORE),
        "text between results": (
            body(user(), assistant(call("a"), call("b")), user(result("a"), text("x"), result("b"))),
            BEFORE,
        ),
        "message before the result's": (
            body(user(), assistant(call("a")), user(), user(result("a"))),
            BEFORE,
        ),
    },
    "A8": {
        "id used again": (body(*LOOP, assistant(call("a")), user(result("a"))), BEFORE),
        "id twice in one message": (body(user(), assistant(call("a"), call("a")), user(result("a"))), BEFORE),
        "two results": (body(user(), assistant(call("a")), user(result("a"), result("a"))), BEFORE),
        "two results in two messages": (
            body(user(), assistant(call("a")), user(result("a")), user(result("a"))),
            BEFORE,
        ),
    },
    "A9": {
        "result without call": (body(user(), assistant(found("s")), user()), BEFORE),
        "result before call": (body(user(), assistant(found("s"), search("s")), user()), BEFORE),
        "a second result": (body(user(), assistant(search("s"), found("s"), found("s")), user()), BEFORE),
        "in a later turn": (
            body(user(), assistant(search("s")), user(), assistant(found("s")), user()),
            BEFORE,
        ),
        "deferred, but the user spoke": (
            body(
                user(),
                assistant(search("s"), call("a")),
                user(result("a"), text("x")),
                assistant(found("s")),
                user(),
            ),
            BEFORE,
        ),
        "in a user message": (body(user(), assistant(search("s")), user(found("s"))), BEFORE),
        "id that is no string": (
            body(user(), assistant(search("s"), {**found("s"), "tool_use_id": []})),
            BEFORE,
        ),
    },
    "A10": {
        "id with a colon": (body(user(), assistant(call("a:1")), user(result("a:1"))), BEFORE),
        "id ending in a newline": (body(user(), assistant(call("a\n")), user(result("a\n"))), BEFORE),
        "input as a string": (body(user(), assistant(call("a", input="{}")), user(result("a"))), BEFORE),
        "server tool without id": (body(user(), assistant({**search("s"), "id": None}), user()), BEFORE),
    },
    "A11": {
        "empty text block": (body(user(text(""))), BEFORE),
        "whitespace only": (body(user(text("\n "))), BEFORE),
        "whitespace string": (body(said("user", " ")), BEFORE),
        "empty user message": (body(said("user", "")), BEFORE),
        "no user blocks": (body(said("user", [])), BEFORE),
        "empty assistant message before the end": (body(user(), said("assistant", []), user()), BEFORE),
        "empty text in a result": (body(user(), assistant(call("a")), user(result("a", [text("")]))), BEFORE),
        "empty text in a search result in a result": (
            body(
                user(),
                assistant(call("a")),
                user(result("a", [{"type": "search_result", "content": [text("")]}])),
            ),
            BEFORE,
        ),
        "empty text in system": (body(user(), system=[text("")]), BEFORE),
        "system a number": (body(user(), system=5), BEFORE),
        "no content": (body({"role": "user"}), BEFORE),
        "content an object": (body(said("user", {})), BEFORE),
        "block without type": (body(user({"text": "x"})), BEFORE),
        "block that is no object": (body(user(5)), BEFORE),
        "type that cannot be hashed": (body(user({"type": {}})), BEFORE),
        "text that is no string": (body(user({"type": "text", "text": None})), BEFORE),
        "result with an object": (body(user(), assistant(call("a")), user(result("a", {}))), BEFORE),
    },
    "A12": {
        "string": (body(user(), said("assistant", "x ")), BEFORE),
        "last block": (body(user(), assistant(text("x"), text("y\n"))), BEFORE),
    },
    "A13": {"assistant last": (body(user(), assistant()), CURRENT)},
    "A14": {
        "no thinking": (body(*LOOP, thinking=ENABLED), BEFORE),
        "text first": (
            body(user(), assistant(text("x"), SIGNED, call("a")), user(result("a")), thinking=ENABLED),
            BEFORE,
        ),
        "none where the loop starts": (
            body(*LOOP, assistant(SIGNED, call("b")), user(result("b"), text("x")), thinking=ENABLED),
            BEFORE,
        ),
    },
    "A16": {
        "no signature": (
            body(user(), assistant({"type": "thinking", "thinking": "x"}, text("x")), user()),
            BEFORE,
        ),
        "empty signature": (body(user(), assistant({**SIGNED, "signature": ""}, text("x")), user()), BEFORE),
        "no data": (body(user(), assistant({"type": "redacted_thinking"}, text("x")), user()), BEFORE),
    },
    "A19": {
        "not taken": (body(user(), thinking=ENABLED), CURRENT),
        "too small": (body(user(), thinking={"type": "enabled", "budget_tokens": 1023}), BEFORE),
        "missing": (body(user(), thinking={"type": "enabled"}), BEFORE),
        "all of max_tokens": (body(user(), thinking={"type": "enabled", "budget_tokens": 4096}), BEFORE),
        "not an object": (body(user(), thinking="enabled"), BEFORE),
    },
    "A20": {
        "five": (
            body(
                user(),
                assistant(call("a")),
                user(result("a", [text("x", cache_control=MARK)], cache_control=MARK)),
                tools=[{**TOOLS[0], "cache_control": MARK}],
                system=[text("x", cache_control=MARK), text("y", cache_control=MARK)],
            ),
            BEFORE,
        ),
        "four and the top level": (
            body(user(*(text("x", cache_control=MARK) for _ in range(4)), text("y")), cache_control=MARK),
            BEFORE,
        ),
    },
    "A21": {
        "system after tools": (
            body(
                user(),
                tools=[{**TOOLS[0], "cache_control": MARK}],
                system=[text("x", cache_control=HOUR)],
            ),
            BEFORE,
        ),
        "message after system": (
            body(user(text("x", cache_control=HOUR)), system=[text("x", cache_control=MARK)]),
            BEFORE,
        ),
        "message after message": (
            body(user(text("x", cache_control=MARK)), assistant(), user(text("x", cache_control=HOUR))),
            BEFORE,
        ),
        "result after its own content": (
            body(
                user(),
                assistant(call("a")),
                user(result("a", [text("x", cache_control=MARK)], cache_control=HOUR)),
            ),
            BEFORE,
        ),
        "top level after a block": (
            body(user(text("x", cache_control=MARK), text("y")), cache_control=HOUR),
            BEFORE,
        ),
        "top level against the last block": (
            body(user(text("x", cache_control=HOUR)), cache_control=MARK),
            BEFORE,
        ),
        "mark that is no object": (body(user(text("x", cache_control=True))), BEFORE),
        "top level that is no object": (body(user(), cache_control=True), BEFORE),
    },
    "A22": {
        "on thinking": (
            body(user(), assistant({**SIGNED, "cache_control": MARK}, text("x")), user()),
            BEFORE,
        ),
    },
    "A23": {
        "tools missing": (without(body(*LOOP), "tools"), BEFORE),
        "tools empty": (body(*LOOP, tools=[]), BEFORE),
    },
}

ALSO: dict[tuple[str, str], set[str]] = {
    ("A4", "system among parallel results"): {"A3"},
    ("A5", "no id to answer"): {"A10"},
    ("A6", "id that cannot be hashed"): {"A10"},
    ("A7", "message before the result's"): {"A3"},
    ("A8", "two results in two messages"): {"A3"},
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
MESSAGES = st.lists(
    st.one_of(st.builds(said, ROLES, CONTENTS), st.sampled_from([None, "hi", [], {}])), max_size=8
)
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


@settings(max_examples=150, deadline=None)
@given(FIELDS, MESSAGES, CARDS)
def test_a_check_that_grows_says_at_every_point_what_a_whole_check_says(
    fields: dict[str, Any], messages: list[WireMessage], row: Card
) -> None:
    growing = Checker(RULES, walk(fields, row), row, strict=True)
    for end in range(len(messages) + 1):
        assert growing.violations() == check({**fields, "messages": messages[:end]}, row)
        if end < len(messages):
            growing.feed(messages[end])


@settings(max_examples=100, deadline=None)
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
            st.sampled_from(
                ["role", "content", "type", "text", "id", "tool_use_id", "cache_control", "input"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["model", "max_tokens", "messages", "system", "tools", "thinking"]), JSON)
)
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
    assert check(request) == []
