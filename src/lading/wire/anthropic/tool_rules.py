"""Rules of the Messages wire about tools: A5 to A10, A23."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lading.wire.anthropic.walking import SERVER_CALLS, AnthropicWalk, id_of, is_server_result
from lading.wire.checking import Finding, WireMessage, shown

ID = re.compile("[a-zA-Z0-9_-]+")


def calls_answered(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A5: the calls of an assistant turn have their results before the next; users make no calls."""
    reading = walk.read(message)
    if reading.role == "assistant" and walk.turn == "user":
        yield from calls_answered_at_end(walk)
    for block in reading.of("tool_use"):
        if reading.role == "user":
            yield Finding(block.path, "a tool_use in a user message is never answered")
        elif id_of(block, "id") is None:
            yield Finding(block.path, "a tool_use without a string id is never answered")


def calls_answered_at_end(walk: AnthropicWalk) -> Iterator[Finding]:
    """A5 at the end: the newest assistant turn's calls have their results."""
    for call in walk.unanswered():
        yield Finding(walk.calls[call], f"tool_use {shown(call)} has no tool_result in the next user turn")


def results_asked_for(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A6: each result answers a call of the assistant turn right before it."""
    reading = walk.read(message)
    for block in reading.of("tool_result"):
        call = id_of(block, "tool_use_id")
        if reading.role == "assistant":
            yield Finding(block.path, "a tool_result belongs into a user message")
        elif reading.role == "user" and (call is None or call not in walk.calls):
            named = shown(block.value.get("tool_use_id"))
            yield Finding(block.path, f"no tool_use {named} in the assistant turn right before")


def results_first(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A7: in the user turn that answers calls, the results come before all else."""
    reading = walk.read(message)
    if reading.role != "user" or not walk.calls:
        return
    late = walk.turn == "user" and walk.other_blocks
    for block in reading.blocks:
        if block.kind != "tool_result":
            late = True
        elif late:
            yield Finding(block.path, "tool results must come before the other blocks of their turn")


def ids_unique(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A8: an id names one call of the request, and has one result."""
    reading = walk.read(message)
    here: set[str] = set()
    for block in reading.of("tool_use"):
        call = id_of(block, "id")
        if call is not None and (call in walk.seen_calls or call in here):
            yield Finding(block.path, f"the tool_use id {shown(call)} is used before")
        here.add(call or "")
    answered: set[str] = set()
    for block in reading.of("tool_result"):
        call = id_of(block, "tool_use_id")
        if call is not None and (call in walk.answered or call in answered):
            yield Finding(block.path, f"a second tool_result for {shown(call)}")
        answered.add(call or "")


def server_results_follow(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A9: the result of a server tool follows its call in the same assistant turn."""
    reading = walk.read(message)
    if not any(is_server_result(block.kind) for block in reading.blocks):
        return
    waiting: set[str | None] = set(walk.open_server_calls()) if reading.role == "assistant" else set()
    for block in reading.blocks:
        if block.kind in SERVER_CALLS:
            waiting.add(id_of(block, "id"))
        elif is_server_result(block.kind):
            call = id_of(block, "tool_use_id")
            if call is None or call not in waiting or reading.role != "assistant":
                named = shown(block.value.get("tool_use_id"))
                yield Finding(block.path, f"no open server tool call {named} before it in this turn")
            waiting.discard(call)


def call_shapes(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A10: ids keep to the pattern, and a call's input is an object."""
    for block in walk.read(message).blocks:
        if block.kind == "tool_use" or block.kind in SERVER_CALLS:
            yield from _bad_id(block.path, block.value.get("id"))
            if not isinstance(block.value.get("input"), dict):
                yield Finding(f"{block.path}.input", "must be an object")
        elif block.kind == "tool_result":
            yield from _bad_id(block.path, block.value.get("tool_use_id"))


def _bad_id(path: str, value: object) -> Iterator[Finding]:
    if not isinstance(value, str) or not ID.fullmatch(value):
        yield Finding(path, f"an id must consist of letters, digits, _ and -, not {shown(value)}")


def tools_declared(walk: AnthropicWalk) -> Iterator[Finding]:
    """A23: a history with tool calls comes with tools."""
    if walk.uses_tools and not walk.envelope.get("tools"):
        yield Finding("tools", "the history holds tool calls, so tools must be declared")
