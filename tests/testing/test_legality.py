"""Every rule's 400, in the provider's words; and the two checks of pairs against each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.jsonbytes import dump, load
from lading.models.card import Card
from lading.testing import FakeModel, Request, Say, Scale, StrictProvider
from lading.testing.legality import find_unpaired
from lading.wire import check, find_wire, list_wires
from lading.wire.words import PROVIDER_WORDS
from tests.testing.tool_loops import CLAUDE, GPT, MAX_TOKENS, anthropic_client, openai_client
from tests.wire import (
    anthropic_bodies,
    anthropic_cases,
    gemini_cases,
    test_openai_chat_rules,
    test_openai_responses_rules,
)

PATHS = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}
CASES = {
    "anthropic": anthropic_cases,
    "openai_chat": test_openai_chat_rules,
    "openai_responses": test_openai_responses_rules,
    "gemini": gemini_cases,
}
LETTERS = {"A": "anthropic", "C": "openai_chat", "R": "openai_responses", "G": "gemini"}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "wire-rules.md"


def cases(which: str) -> list[Any]:
    """Wire, rule, body and card of every case of all wires."""
    return [
        pytest.param(wire, rule, body, card, id=f"{rule}-{name}")
        for wire, module in CASES.items()
        for rule, named in getattr(module, which).items()
        for name, (body, card) in named.items()
    ]


def answered(wire: str, body: dict[str, Any], card: Card) -> tuple[int, Any, set[str]]:
    """Status and body of the answer, and the rules broken."""
    provider = StrictProvider(FakeModel([Say("Yes.")]), card=card, foreign=True)
    headers = {"authorization": "Bearer k", "x-api-key": "k"}
    answer = provider.answer(Request("POST", PATHS[wire], headers, dump(body)))
    return answer.status, load(answer.raw), {violation.rule for violation in provider.violations}


@pytest.mark.parametrize(("wire", "rule", "body", "card"), cases("LEGAL"))
def test_a_legal_request_is_answered(wire: str, rule: str, body: dict[str, Any], card: Card) -> None:
    status, said, broken = answered(wire, body, card)
    assert (status, broken) == (200, set()), (rule, said)


LINT = {rule.id for wire in list_wires() for rule in wire.rules if rule.level == "L"}


@pytest.mark.parametrize(
    ("wire", "rule", "body", "card"), [case for case in cases("ILLEGAL") if case.values[1] not in LINT]
)
def test_an_illegal_request_is_refused(wire: str, rule: str, body: dict[str, Any], card: Card) -> None:
    status, said, broken = answered(wire, body, card)
    assert status == 400
    assert rule in broken
    kind = ("status", "INVALID_ARGUMENT") if wire == "gemini" else ("type", "invalid_request_error")
    assert said["error"][kind[0]] == kind[1]
    assert said["error"]["message"]


PAGE_ROW = re.compile(r"^\| ([A-Z]\d+) \|.*\| ([^|]*) \|$", re.MULTILINE)
FRAGMENTS = {
    rule: [long or short for long, short in re.findall(r"``(.+?)``|`([^`]+)`", cell)]
    for rule, cell in PAGE_ROW.findall(PAGE.read_text(encoding="utf-8"))
}
"""The words of the page by which an error is known."""


@pytest.mark.parametrize(
    "rule", [rule for rule, fragments in FRAGMENTS.items() if fragments and rule in PROVIDER_WORDS]
)
def test_a_rule_is_refused_in_words_by_which_it_is_known(rule: str) -> None:
    wire = LETTERS[rule[0]]
    [(body, card), *_] = CASES[wire].ILLEGAL[rule].values()
    _, said, _ = answered(wire, body, card)
    assert [fragment for fragment in FRAGMENTS[rule] if fragment.strip() in said["error"]["message"]]


def test_openai_sees_the_error_of_a_result_without_a_call() -> None:
    messages: Any = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "x", "content": "y"}]
    provider = StrictProvider(FakeModel([Say("Yes.")]))
    with provider, openai_client(provider) as client, pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=GPT, messages=messages)
    assert caught.value.param == "messages.[1].role"
    assert "must be a response to a preceeding message with 'tool_calls'" in str(caught.value)
    assert [violation.rule for violation in provider.violations] == ["C2"]


def test_anthropic_sees_the_error_of_a_call_without_a_result() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    messages: Any = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": "and?"},
    ]
    tools: Any = anthropic_bodies.TOOLS
    provider = StrictProvider(FakeModel([Say("Yes.")]))
    with provider, anthropic_client(provider) as client, pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(model=CLAUDE, max_tokens=MAX_TOKENS, messages=messages, tools=tools)
    said = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after"
    assert said in str(caught.value.body)
    assert [violation.rule for violation in provider.violations] == ["A5"]


WORDS = "word " * 90
SCALE = Scale(1.5, message_tokens=5, request_tokens=4)
COUNTED = round(91 * 1.5) + 5 + 4


def test_a_prompt_beyond_the_window_is_refused_and_is_no_violation() -> None:
    provider = StrictProvider(FakeModel([Say("Yes.")]), window_tokens=COUNTED - 1, scale=SCALE)
    messages: Any = [{"role": "user", "content": WORDS}]
    with provider, openai_client(provider) as chat, anthropic_client(provider) as talk:
        with pytest.raises(openai.BadRequestError) as of_chat:
            chat.chat.completions.create(model=GPT, messages=messages)
        with pytest.raises(anthropic.BadRequestError) as of_talk:
            talk.messages.create(model=CLAUDE, max_tokens=10, messages=messages)
    assert of_chat.value.code == "context_length_exceeded"
    assert f"maximum context length is {COUNTED - 1} tokens" in str(of_chat.value)
    assert f"prompt is too long: {COUNTED} tokens > {COUNTED - 1} maximum" in str(of_talk.value.body)
    assert provider.violations == []
    assert [answer.prompt_tokens for answer in provider.answers] == [COUNTED, COUNTED]


def test_a_prompt_as_long_as_the_window_is_answered_and_billed_by_the_scale() -> None:
    provider = StrictProvider(FakeModel([Say("Yes.")]), window_tokens=COUNTED, scale=SCALE)
    with provider, openai_client(provider) as chat:
        completion = chat.chat.completions.create(model=GPT, messages=[{"role": "user", "content": WORDS}])
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == COUNTED


ids = st.sampled_from("abc")
chats = st.lists(
    st.one_of(
        st.builds(lambda: {"role": "user", "content": "x"}),
        st.lists(ids, max_size=2, unique=True).map(
            lambda names: (
                {"role": "assistant", "content": "y"}
                | ({"tool_calls": [test_openai_chat_rules.call(name) for name in names]} if names else {})
            )
        ),
        ids.map(test_openai_chat_rules.answer),
    ),
    max_size=7,
)
turns = st.lists(
    st.one_of(
        st.lists(ids.map(anthropic_bodies.result), max_size=2).map(lambda held: anthropic_bodies.user(*held)),
        st.lists(ids.map(anthropic_bodies.call), max_size=2).map(lambda held: anthropic_bodies.assistant(*held)),
    ),
    max_size=7,
)


@given(chats)
def test_both_checks_of_a_chat_agree(messages: list[dict[str, Any]]) -> None:
    body = {"model": GPT, "messages": messages}
    rules = {"C1", "C2", "C3", "C4"}
    found = check(body, find_wire("openai_chat"), card=test_openai_chat_rules.PLAIN, strict=True)
    assert bool(find_unpaired("openai_chat", body)) == any(violation.rule in rules for violation in found)


@given(turns)
def test_both_checks_of_turns_agree(messages: list[dict[str, Any]]) -> None:
    calls = [block["id"] for item in messages for block in item["content"] if "id" in block]
    body = {"model": CLAUDE, "messages": messages}
    found = {
        violation.rule
        for violation in check(body, find_wire("anthropic"), card=anthropic_bodies.BEFORE, strict=True)
    }
    plain = find_unpaired("anthropic", body)
    if len(calls) == len(set(calls)):
        assert bool(plain) == bool(found & {"A5", "A6", "A8"})
    else:
        assert "A8" in found
