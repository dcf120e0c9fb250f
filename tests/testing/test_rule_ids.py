"""Every rule of the providers is judged somewhere: by a check of the body, by the provider that issued what comes
back, by counting, or it permits something."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from lading.jsonbytes import dump, load
from lading.testing import FakeModel, Fault, Request, Say, StrictProvider, Use
from lading.wire import check, find_wire, list_wires
from lading.wire.words import PROVIDER_WORDS
from tests.testing.test_legality import CASES, LETTERS, PAGE, PATHS
from tests.wire import anthropic_bodies, gemini_cases, test_openai_responses_rules
from tests.wire.codec_cards import PLAIN

LAST = {"A": 26, "C": 12, "R": 14, "G": 14}
"""The number of the last rule of each format."""
KNOWN = {f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)}
CHECKED = {rule.id for wire in list_wires() for rule in wire.rules}
COUNTED = {"A24": "prompt is too long", "C10": "context_length_exceeded", "R10": "context_length_exceeded"} | {
    "G12": "exceeds the maximum number of tokens allowed"
}
PERMITTING = {
    "A17": anthropic_bodies.body(
        anthropic_bodies.user(),
        anthropic_bodies.assistant({"type": "thinking", "thinking": "", "signature": "c2ln"}),
        anthropic_bodies.user(),
    ),
    "A18": anthropic_bodies.body(
        anthropic_bodies.user(),
        anthropic_bodies.assistant(),
        anthropic_bodies.user(),
        thinking={"type": "adaptive"},
    ),
    "G10": gemini_cases.body(
        gemini_cases.USER,
        gemini_cases.content("model", gemini_cases.call(signature="skip_thought_signature_validator")),
        gemini_cases.ANSWERS,
    ),
    "R9": test_openai_responses_rules.body(
        test_openai_responses_rules.USER,
        test_openai_responses_rules.call("a"),
        test_openai_responses_rules.SAID,
        test_openai_responses_rules.output("a"),
    ),
}
CARDS = {"A": anthropic_bodies.CURRENT, "G": gemini_cases.SIGNING, "R": PLAIN}


def send(provider: StrictProvider, wire: str, body: dict[str, Any]) -> Any:
    """What the provider answers."""
    path = "/v1beta/models/gemini-3-pro-preview:generateContent" if wire == "gemini" else PATHS[wire]
    return load(provider.answer(Request("POST", path, dict.fromkeys(("x-api-key",), "k"), dump(body))).raw)


class Issued(NamedTuple):
    """One call that a provider issued: how it is asked for, sent back, and altered so that a rule is broken."""

    wire: str
    asked: dict[str, Any]
    sent: Callable[[Any], list[Any]]
    """The new items, from the reply."""
    alter: Callable[[list[Any]], None]
    broken: str = ""
    """The rule by which the provider names it, where it is another."""


TOOL = {"name": "read", "input_schema": {"type": "object"}}
TALK = {"model": "claude-sonnet-4-6", "max_tokens": 4_000, "thinking": {"type": "adaptive"}, "tools": [TOOL]}
RESPONSE = {"model": "gpt-5", "reasoning": {"effort": "low"}, "input": [{"role": "user", "content": "hi"}]}


def _blocks(reply: Any) -> list[Any]:
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
        for block in reply["content"]
        if block["type"] == "tool_use"
    ]
    return [{"role": "assistant", "content": reply["content"]}, {"role": "user", "content": results}]


def _items(reply: Any) -> list[Any]:
    calls = [item["call_id"] for item in reply["output"] if item["type"] == "function_call"]
    return [
        *reply["output"],
        *({"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls),
    ]


def _contents(reply: Any) -> list[Any]:
    content = reply["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    answers = [
        {"functionResponse": {"name": call["name"], "id": call["id"], "response": {"output": "ok"}}}
        for call in calls
    ]
    return [content, {"role": "user", "parts": answers}]


def _sign_again(sent: list[Any]) -> None:
    [part] = [part for part in sent[0]["parts"] if "thoughtSignature" in part]
    part["thoughtSignature"] = "AAAA" + part["thoughtSignature"][4:]


ISSUED = {
    "A15": Issued(
        "anthropic",
        {**TALK, "messages": [{"role": "user", "content": "hi"}]},
        _blocks,
        lambda sent: sent[0]["content"].pop(0),
    ),
    "G9": Issued("gemini", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, _contents, _sign_again),
    "R5": Issued("openai_responses", RESPONSE, _items, lambda sent: sent.pop(0)),
    "R6": Issued("openai_responses", RESPONSE, _items, lambda sent: sent[0].update(encrypted_content="gAAA")),
}
FIELDS = {"anthropic": "messages", "gemini": "contents", "openai_responses": "input"}
SAID = Say("I look.", (Use("read", {"path": "a"}),), thinking="Hm.")


def test_every_rule_is_judged_once() -> None:
    sets = (CHECKED, set(ISSUED), set(COUNTED), set(PERMITTING), {"R8"})
    assert set().union(*sets) == KNOWN, set().union(*sets) ^ KNOWN
    assert sum(map(len, sets)) == len(KNOWN)
    assert set(PROVIDER_WORDS) <= CHECKED | set(ISSUED)


def test_the_page_has_every_rule_once() -> None:
    rows = re.findall(r"^\| ([ACGR]\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(KNOWN)


def test_every_rule_that_a_body_shows_has_a_legal_and_an_illegal_case() -> None:
    for which in ("LEGAL", "ILLEGAL"):
        cases = {rule for module in CASES.values() for rule, named in getattr(module, which).items() if named}
        assert cases == CHECKED, cases ^ CHECKED


@pytest.mark.parametrize("rule", ISSUED)
def test_what_was_issued_comes_back_as_it_was(rule: str) -> None:
    issued, provider = ISSUED[rule], StrictProvider(FakeModel([SAID]))
    sent, field = issued.sent(send(provider, issued.wire, issued.asked)), FIELDS[issued.wire]
    send(provider, issued.wire, {**issued.asked, field: [*issued.asked[field], *sent]})
    assert provider.violations == []
    altered = copy.deepcopy(sent)
    issued.alter(altered)
    refused = send(provider, issued.wire, {**issued.asked, field: [*issued.asked[field], *altered]})
    assert rule in {violation.rule for violation in provider.violations}
    assert PROVIDER_WORDS[rule] in refused["error"]["message"]


def test_with_a_stored_response_only_new_items_are_sent() -> None:
    """R8, which the provider names by the ids that come twice (R3)."""
    provider = StrictProvider(FakeModel([SAID]))
    first = send(provider, "openai_responses", RESPONSE)
    items = _items(first)
    send(provider, "openai_responses", {**RESPONSE, "previous_response_id": first["id"], "input": items[-1:]})
    assert provider.violations == []
    send(provider, "openai_responses", {**RESPONSE, "previous_response_id": first["id"], "input": items})
    assert "R3" in {violation.rule for violation in provider.violations}


@pytest.mark.parametrize("rule", COUNTED)
def test_a_prompt_that_is_too_long_is_refused_and_breaks_no_rule(rule: str) -> None:
    wire = LETTERS[rule[0]]
    [(body, card), *_] = CASES[wire].LEGAL[f"{rule[0]}1"].values()
    for provider in (
        StrictProvider(FakeModel([SAID]), window_tokens=1, card=card, foreign=True),
        StrictProvider(FakeModel([SAID]), faults={1: Fault(overflow=True)}, card=card, foreign=True),
    ):
        assert COUNTED[rule] in str(send(provider, wire, body))
        assert provider.violations == []


@pytest.mark.parametrize("rule", PERMITTING)
def test_what_is_permitted_breaks_no_rule(rule: str) -> None:
    wire = find_wire(LETTERS[rule[0]])
    assert check(PERMITTING[rule], wire, card=CARDS[rule[0]], strict=True) == []
