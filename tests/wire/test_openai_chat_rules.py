from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from lading.errors import Violation
from lading.models.card import Card, Conduct, Limits, Prices, TokenFacts
from lading.wire.checking import Checker, WireMessage
from lading.wire.openai_chat.rules import RULES, ChatState


def card(**conduct: Any) -> Card:
    return Card(
        name="m",
        provider="openai",
        tier="large",
        limits=Limits(200_000, 8_000),
        tokens=TokenFacts("o200k"),
        prices=Prices(1.0),
        conduct=Conduct(**{"dialect": "strict", **conduct}),
    )


PLAIN = card()
ECHO = card(reasoning_echo="reasoning_content")
LONG = "c" * 41


def said(role: Any, content: Any = "hi", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def call(name: Any, /, **function: Any) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": "read", "arguments": "{", **function}}


def custom(name: Any, /, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "custom", "custom": {"name": "grep", "input": "x", **more}}


def asks(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def answer(name: Any, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": content}


def tool(name: Any, kind: str = "function") -> dict[str, Any]:
    return {"type": kind, kind: {"name": name}}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", **fields, "messages": list(messages)}


def check(request: Mapping[str, Any], row: Card = PLAIN, *, strict: bool = True) -> list[Violation]:
    checker = Checker(RULES, ChatState(request, row), row, strict=strict)
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        checker.feed(message)
    return checker.violations()


def broken(request: Mapping[str, Any], row: Card = PLAIN) -> set[str]:
    return {violation.rule for violation in check(request, row)}


USER, ASSISTANT = said("user"), said("assistant")
LOOP = (USER, asks(call("a")), answer("a"))

LEGAL: dict[str, dict[str, tuple[dict[str, Any], Card]]] = {
    "C1": {
        "parallel calls": (
            body(USER, asks(call("a"), call("b")), answer("b"), answer("a"), ASSISTANT),
            PLAIN,
        ),
        "answers last": (body(*LOOP), PLAIN),
    },
    "C2": {"two runs": (body(*LOOP, asks(call("b")), answer("b"), USER), PLAIN)},
    "C3": {"id of the run": (body(*LOOP), PLAIN)},
    "C4": {
        "different ids": (body(*LOOP, asks(call("b")), answer("b")), PLAIN),
        "id used again in a later run": (body(*LOOP, asks(call("a")), answer("a")), PLAIN),
    },
    "C5": {"no tool_calls": (body(USER, said("assistant", tool_calls=None)), PLAIN)},
    "C6": {
        "null beside calls": (body(*LOOP), PLAIN),
        "missing beside calls": (
            body(USER, {"role": "assistant", "tool_calls": [call("a")]}, answer("a")),
            PLAIN,
        ),
        "null beside an old-style call": (
            body(
                USER,
                said("assistant", None, function_call={"name": "f", "arguments": ""}),
                said("function", None, name="f"),
            ),
            PLAIN,
        ),
        "spoken answer named by its id": (body(USER, {"role": "assistant", "audio": {"id": "x"}}), PLAIN),
        "empty string": (body(*LOOP[:2], answer("a", "")), PLAIN),
        "parts": (
            body(said("user", [{"type": "text", "text": ""}, {"type": "image_url", "image_url": {"url": "x"}}])),
            PLAIN,
        ),
    },
    "C7": {"forty characters": (body(USER, asks(call(LONG[1:])), answer(LONG[1:])), PLAIN)},
    "C8": {
        "invalid JSON as arguments": (body(*LOOP), PLAIN),
        "custom tools": (
            body(USER, asks(custom("a")), answer("a"), tools=[tool("read"), tool("grep", "custom")]),
            PLAIN,
        ),
        "developer": (body(said("developer"), USER), PLAIN),
        "longest name": (body(USER, tools=[tool("aZ_-9" + "x" * 59)]), PLAIN),
    },
    "C9": {
        "on every assistant message": (
            body(
                USER,
                asks(call("a"), reasoning_content="so"),
                answer("a"),
                said("assistant", reasoning_content=""),
            ),
            ECHO,
        ),
        "not wanted": (body(USER, ASSISTANT), PLAIN),
    },
    "C11": {"system, then in turn": (body(said("system"), *LOOP, ASSISTANT, USER), PLAIN)},
    "C12": {
        "all that a user shows": (
            body({"role": "user", "content": [{"type": kind} for kind in ("image_url", "input_audio", "file")]}),
            PLAIN,
        ),
        "a refusal": (body(USER, {"role": "assistant", "content": [{"type": "refusal"}]}), PLAIN),
    },
}

ILLEGAL: dict[str, dict[str, tuple[dict[str, Any], Card]]] = {
    "C1": {
        "user before the answer": (body(*LOOP[:2], USER), PLAIN),
        "one of two": (body(USER, asks(call("a"), call("b")), answer("a"), USER), PLAIN),
        "last": (body(*LOOP[:2]), PLAIN),
        "message that is no object": (body(*LOOP[:2], None), PLAIN),
    },
    "C2": {
        "history cut inside a run": (body(answer("a")), PLAIN),
        "after a user": (body(USER, answer("a")), PLAIN),
        "after an answer in words": (body(*LOOP, ASSISTANT, answer("b")), PLAIN),
    },
    "C3": {
        "id of another run": (body(*LOOP, asks(call("b")), answer("b"), answer("c")), PLAIN),
        "no id": (body(*LOOP, {"role": "tool", "content": "x"}), PLAIN),
        "id that cannot be hashed": (body(*LOOP, answer({})), PLAIN),
    },
    "C4": {
        "right after": (body(*LOOP, answer("a")), PLAIN),
        "not right after": (
            body(USER, asks(call("a"), call("b")), answer("a"), answer("b"), answer("a")),
            PLAIN,
        ),
    },
    "C5": {"empty": (body(USER, said("assistant", tool_calls=[])), PLAIN)},
    "C6": {
        "null of a user": (body(said("user", None)), PLAIN),
        "null of an assistant without calls": (body(USER, said("assistant", None)), PLAIN),
        "null of a tool": (body(*LOOP[:2], answer("a", None)), PLAIN),
        "missing": (body({"role": "user"}), PLAIN),
        "a number": (body(said("user", 5)), PLAIN),
        "an object": (body(said("user", {})), PLAIN),
        "no parts": (body(said("user", [])), PLAIN),
        "part that is no object": (body(said("user", ["x"])), PLAIN),
        "part without type": (body(said("user", [{}])), PLAIN),
        "type that cannot be hashed": (body(said("user", [{"type": []}])), PLAIN),
        "text that is no string": (body(said("user", [{"type": "text", "text": 5}])), PLAIN),
    },
    "C7": {"forty-one characters": (body(USER, asks(call(LONG)), answer(LONG)), PLAIN)},
    "C8": {
        "no messages": (body(), PLAIN),
        "messages missing": ({"model": "m"}, PLAIN),
        "messages not a list": ({"messages": {"role": "user"}}, PLAIN),
        "messages a number": ({"messages": 5}, PLAIN),
        "message that is no object": (body(USER, "hi"), PLAIN),
        "unknown role": (body(said("model")), PLAIN),
        "role that cannot be hashed": (body(said([])), PLAIN),
        "arguments as an object": (body(USER, asks(call("a", arguments={})), answer("a")), PLAIN),
        "name with a space": (body(USER, asks(call("a", name="a b")), answer("a")), PLAIN),
        "name ending in a newline": (body(USER, asks(call("a", name="a\n")), answer("a")), PLAIN),
        "name too long": (body(USER, asks(call("a", name="x" * 65)), answer("a")), PLAIN),
        "custom input as an object": (body(USER, asks(custom("a", input={})), answer("a")), PLAIN),
        "unknown type of call": (body(USER, asks({"id": "a", "type": "other"}), answer("a")), PLAIN),
        "call that is no object": (body(USER, asks(call("a"), None), answer("a")), PLAIN),
        "call without function": (body(USER, asks({"id": "a", "type": "function"}), answer("a")), PLAIN),
        "call without id": (body(USER, asks(call("a"), call(None)), answer("a")), PLAIN),
        "calls that are no list": (body(USER, said("assistant", tool_calls={"id": "a"})), PLAIN),
        "old-style call without arguments": (
            body(USER, said("assistant", None, function_call={"name": "f"})),
            PLAIN,
        ),
        "tools not a list": (body(USER, tools="read"), PLAIN),
        "tool that is no object": (body(USER, tools=[None]), PLAIN),
        "tool without name": (body(USER, tools=[tool(None)]), PLAIN),
        "custom tool with a dot": (body(USER, tools=[tool("a.b", "custom")]), PLAIN),
    },
    "C9": {
        "missing": (body(USER, ASSISTANT), ECHO),
        "null": (body(USER, asks(call("a"), reasoning_content=None), answer("a")), ECHO),
    },
    "C11": {
        "second system": (body(said("system"), said("system"), USER), PLAIN),
        "system later": (body(USER, ASSISTANT, said("developer"), USER), PLAIN),
        "two users": (body(USER, USER), PLAIN),
        "two assistants": (body(USER, ASSISTANT, ASSISTANT), PLAIN),
        "assistant first": (body(said("system"), ASSISTANT, USER), PLAIN),
    },
    "C12": {
        "another wire's block": (body({"role": "user", "content": [{"type": "image"}]}), PLAIN),
        "a picture of a tool": (body(USER, asks(call("a")), answer("a", [{"type": "image_url"}])), PLAIN),
        "a picture said by the assistant": (
            body(USER, {"role": "assistant", "content": [{"type": "image_url"}]}),
            PLAIN,
        ),
    },
}

ALSO: dict[tuple[str, str], set[str]] = {
    ("C1", "message that is no object"): {"C8"},
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
    assert check(case.body, case.card, strict=False) == []


@pytest.mark.parametrize(
    ("dialect", "counted"),
    [("first_party", set()), ("bedrock", set()), ("chat_template", {"C11"}), ("strict", {"C11"})],
)
def test_portability_rules_count_under_their_dialects(dialect: str, counted: set[str]) -> None:
    assert broken(body(USER, USER), card(dialect=dialect)) == counted


def test_paths_name_the_message_and_the_field() -> None:
    [unanswered] = check(body(USER, asks(call("a"), call("b")), answer("b")))
    assert (unanswered.rule, unanswered.path) == ("C1", "messages.1")
    assert "'a'" in unanswered.detail
    [orphan] = check(body(USER, ASSISTANT, answer("a")))
    assert (orphan.rule, orphan.path) == ("C2", "messages.2.role")
    [second] = check(body(*LOOP, answer("a")))
    assert (second.rule, second.path) == ("C4", "messages.3.tool_call_id")
    assert "messages.2" in second.detail


IDS: st.SearchStrategy[Any] = st.sampled_from(["a", "b", "c", LONG, "", None, 5, [], {}])
CALLS = st.one_of(
    st.builds(call, IDS),
    st.builds(custom, IDS),
    st.sampled_from([None, "x", {}, {"id": "a", "type": []}, call("a", arguments=None), call("b", name=[])]),
)
CONTENTS: st.SearchStrategy[Any] = st.sampled_from(
    ["x", "", None, 5, {}, [], ["x"], [{"type": "text", "text": "x"}], [{"type": {}}]]
)
ROLES: st.SearchStrategy[Any] = st.sampled_from(
    ["system", "developer", "user", "assistant", "function", "x", None, []]
)
MESSAGES = st.lists(
    st.one_of(
        st.builds(said, ROLES, CONTENTS),
        st.lists(CALLS, max_size=3).map(lambda calls: asks(*calls)),
        st.builds(answer, IDS, CONTENTS),
        st.sampled_from(
            [None, "hi", [], {}, said("assistant", tool_calls=5), said("user", tool_calls=[call("a")])]
        ),
    ),
    max_size=8,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={"tools": st.sampled_from([None, 5, [], [None], [tool("a")], [tool(None)], [{"type": {}}]])},
)
CARDS = st.sampled_from([PLAIN, ECHO])


@given(FIELDS, MESSAGES, CARDS)
def test_a_check_that_grows_says_at_every_point_what_a_whole_check_says(
    fields: dict[str, Any], messages: list[WireMessage], row: Card
) -> None:
    growing = Checker(RULES, ChatState(fields, row), row, strict=True)
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
            st.sampled_from(["role", "content", "type", "text", "id", "tool_calls", "tool_call_id", "function"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["model", "messages", "tools"]), JSON))
def test_any_json_gives_violations_and_no_exception(request: dict[str, Any]) -> None:
    found_wrong = check(request)
    assert all(violation.path and violation.detail for violation in found_wrong)
    if not isinstance(request.get("messages"), list):
        assert "C8" in {violation.rule for violation in found_wrong}
