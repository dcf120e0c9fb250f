"""Check whether a request is legal, and make the error of its provider for one that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lading.errors import Violation, WireError
from lading.messages import Conversation
from lading.models.card import Card
from lading.testing.answers import ErrorResponse
from lading.testing.issued import IssuedReplies
from lading.wire import check, find_wire
from lading.wire.words import PROVIDER_WORDS

_CODES = {"C7": "string_above_max_length", "R6": "invalid_encrypted_content"}


def find_violations(
    wire: str, body: dict[str, Any], *, card: Card, issued: IssuedReplies | None
) -> list[Violation]:
    """Find the violations of a body, with three checks: rules, pairs, and ``issued`` replies (None: unchecked)."""
    checked = check(body, find_wire(wire), card=card, strict=True)
    found = [violation for violation in checked if violation.level != "L"]
    rules = {violation.rule for violation in found}
    found += [violation for violation in find_unpaired(wire, body) if violation.rule not in rules]
    if not found and issued is not None:
        found = issued.find_alterations(wire, body)
    return found


def decode_conversation(wire: str, body: Mapping[str, Any]) -> Conversation | Violation:
    """Decode a body that passed the checks; return a violation if it cannot be decoded."""
    try:
        return find_wire(wire).decode(body)
    except WireError as error:
        return Violation("shape", "E", "messages", str(error))


def make_error(violation: Violation) -> ErrorResponse:
    """Make the provider's error 400 for a violation."""
    known = PROVIDER_WORDS.get(violation.rule)
    text = f"{known}: {violation.detail}" if known else violation.detail
    return ErrorResponse(400, text, path=violation.path, code=_CODES.get(violation.rule))


def find_unpaired(wire: str, body: Mapping[str, Any]) -> list[Violation]:
    """Find the places of a body where a call lacks its result, or a result its call.

    It shares no code with the check of ``lading.wire``, so that one mistake cannot be in both, and has only the
    rule of all providers: each call has one result, right after it, and no result is without a call.
    """
    if wire == "openai_responses":
        return list(_check_items(body.get("input")))
    messages = body.get("contents" if wire == "gemini" else "messages")
    listed = [item for item in messages if isinstance(item, dict)] if isinstance(messages, list) else []
    return list(_CHECKS[wire](listed))


def _check_items(given: Any) -> Iterator[Violation]:
    waiting: dict[Any, int] = {}
    for index, item in enumerate(given if isinstance(given, list) else ()):
        kind, call = (item.get("type"), item.get("call_id")) if isinstance(item, dict) else (None, None)
        if kind in ("function_call", "custom_tool_call"):
            waiting[str(call)] = index
        elif kind in ("function_call_output", "custom_tool_call_output") and waiting.pop(str(call), None) is None:
            yield Violation("R1", "E", f"input.{index}.call_id", f"{call!r} is not being waited for here")
    for call, index in waiting.items():
        yield Violation("R2", "E", f"input.{index}", f"not answered: {call}")


def _check_messages(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    open_calls: list[Any] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            call = message.get("tool_call_id")
            if call in open_calls:
                open_calls.remove(call)
            else:
                yield Violation("C2", "E", f"messages.{index}.role", f"{call!r} is not being waited for here")
            continue
        if open_calls:
            yield Violation("C1", "E", f"messages.{index - 1}", f"not answered: {open_calls}")
        open_calls = [call.get("id") for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if open_calls:
        yield Violation("C1", "E", f"messages.{len(messages) - 1}", f"not answered at the end: {open_calls}")


def _check_turns(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    turns: list[tuple[str, int, list[Any]]] = []
    for index, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        if turns and turns[-1][0] == role:
            turns[-1][2].extend(blocks)
        elif role in ("user", "assistant"):
            turns.append((str(role), index, blocks))
    calls: list[Any] = []
    for role, index, blocks in turns:
        results = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if role == "assistant":
            calls = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
            continue
        missing = [call for call in calls if call not in results]
        extra = [call for call in results if call not in calls]
        if missing:
            yield Violation("A5", "E", f"messages.{index - 1}", f"not answered: {missing}")
        if extra or len(results) != len({str(call) for call in results}):
            yield Violation("A6", "E", f"messages.{index}", f"not asked for, or answered twice: {extra or results}")
        calls = []
    if calls:
        yield Violation("A5", "E", f"messages.{len(messages) - 1}", f"not answered at the end: {calls}")


def _check_contents(contents: list[dict[str, Any]]) -> Iterator[Violation]:
    waiting: list[Any] = []
    for index, content in enumerate(contents):
        parts = [part for part in content.get("parts") or () if isinstance(part, dict)]
        calls = [call for part in parts if isinstance(call := part.get("functionCall"), dict)]
        found = [one for part in parts if isinstance(one := part.get("functionResponse"), dict)]
        if content.get("role") == "model":
            waiting += calls
            continue
        field = "id" if all(item.get("id") for item in (*found, *waiting)) else "name"
        called, answered = ([str(item.get(field)) for item in items] for items in (waiting, found))
        # A result whose function nobody knows is named so.
        if len(called) != len(answered) or not {*answered} - {"tool"} <= {*called}:
            yield Violation("G3", "E", f"contents.{index}", f"the calls {called} have responses {answered}")
        waiting = []
    if waiting:
        yield Violation("G3", "E", f"contents.{len(contents) - 1}", f"not answered at the end: {waiting}")


_CHECKS: dict[str, Callable[[list[dict[str, Any]]], Iterator[Violation]]] = {
    "anthropic": _check_turns,
    "gemini": _check_contents,
    "openai_chat": _check_messages,
}
