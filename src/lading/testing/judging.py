"""Whether a request is legal, and the words in which its provider would refuse it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.errors import Violation, WireError
from lading.messages import Conversation
from lading.models.card import Card
from lading.testing.answers import Refusal
from lading.testing.issued import Issued
from lading.testing.pairing import unpaired
from lading.wire import check, find_wire

TEXTS = {
    "A1": "Field required",
    "A2": 'first message must use the "user" role',
    "A3": 'roles must alternate between "user" and "assistant"',
    "A5": "`tool_use` ids were found without `tool_result` blocks immediately after",
    "A6": "unexpected `tool_use_id` found in `tool_result` blocks",
    "A7": "Did not find tool_result block(s) at the beginning of this message",
    "A8": "`tool_use` ids must be unique",
    "A11": "text content blocks must be non-empty",
    "A12": "final assistant content cannot end with trailing whitespace",
    "A13": "This model does not support assistant message prefill. The conversation must end with a user message",
    "A14": "Expected `thinking` or `redacted_thinking`, but found another block",
    "A15": "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
    "A16": "Invalid `signature` in `thinking` block",
    "A20": "A maximum of 4 blocks with cache_control may be provided",
    "A21": "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    "C1": "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages",
    "C2": "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
    "C4": "Duplicate value for 'tool_call_id'",
    "C5": "[] is too short: empty array. Expected an array with minimum length 1",
    "C6": "Invalid value for 'content': expected a string, got null",
    "C7": "string too long. Expected a string with maximum length 40",
    "C9": "The `reasoning_content` in the thinking mode must be passed back to the API",
}
"""What providers say, by rule, where it is known."""

_CODES = {"C7": "string_above_max_length"}


def violations(wire: str, body: dict[str, Any], *, card: Card, issued: Issued | None) -> list[Violation]:
    """What is wrong with a body: by Lading's strict check, by a second look at the pairs, and by what was
    issued (None: whatever the body says was issued)."""
    found = check(body, find_wire(wire), card=card, strict=True)
    rules = {violation.rule for violation in found}
    found += [violation for violation in unpaired(wire, body) if violation.rule not in rules]
    if not found and issued is not None:
        found = issued.altered(wire, body)
    return found


def seen(wire: str, body: Mapping[str, Any]) -> Conversation | Violation:
    """What a body that passed the checks says; what is wrong with it where it cannot be read."""
    try:
        return find_wire(wire).decode(body)
    except WireError as error:
        return Violation("shape", "E", "messages", str(error))


def refusal(violation: Violation) -> Refusal:
    """The provider's 400."""
    known = TEXTS.get(violation.rule)
    text = f"{known}: {violation.detail}" if known else violation.detail
    return Refusal(400, text, path=violation.path, code=_CODES.get(violation.rule))
