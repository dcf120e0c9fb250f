"""The strict check of Anthropic's Messages wire: the rows A1 to A26 of docs/reference/wire-rules.md.

This module has the rules for the envelope, turns (A1 to A4, A12, A13) and tools (A5 to A10, A23), and the table of
all rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lading.wire.anthropic import content_rules
from lading.wire.anthropic.state import (
    SERVER_CALLS,
    THINKING,
    MessagesState,
    Reading,
    is_server_result,
    read_id,
    start_check,
)
from lading.wire.anthropic.thinking import find_unsuited
from lading.wire.checking import Finding, Rule, WireMessage, quote_value

SYSTEM_BLOCKS = ("text", "tool_addition", "tool_removal")


def required_fields(state: MessagesState) -> Iterator[Finding]:
    """A1, the envelope: model and max_tokens are present and of their type; tools and messages are lists."""
    body = state.envelope
    model, max_tokens = body.get("model"), body.get("max_tokens")
    if not isinstance(model, str) or not model:
        yield Finding("model", "must name a model")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        yield Finding("max_tokens", "must be a whole number of at least 1")
    for field in ("tools", "messages"):
        value = body.get(field)
        if value is not None and not isinstance(value, list):
            yield Finding(field, f"must be a list, not {quote_value(value)}")
    tools = body.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        if not isinstance(tool, dict):
            yield Finding(f"tools.{index}", f"must be an object, not {quote_value(tool)}")


def some_message(state: MessagesState) -> Iterator[Finding]:
    """A1, the messages: at least one."""
    if state.position == 0:
        yield Finding("messages", "at least one message is required")


def user_first(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A2: the first message is the user's."""
    if state.position == 0 and state.read(message).role != "user":
        yield Finding(state.here, "the first message must have role user")


def alternation(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A3: user and assistant alternate; system messages in the list do not count."""
    role = state.read(message).role
    if role in ("user", "assistant") and role == state.turn:
        yield Finding(state.here, f"a second {role} message in a row; merge the two")


def roles(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A4: user, assistant and, if the model accepts it, system in a legal place."""
    reading = state.read(message)
    if reading.role == "system":
        yield from _check_system_message(state, reading)
    elif reading.role not in ("user", "assistant"):
        role = quote_value(message.get("role") if isinstance(message, dict) else message)
        yield Finding(state.here, f"must be an object with role user or assistant, not {role}")
    elif reading.role == "user" and state.last.role == "system" and state.card.conduct.mid_system:
        yield Finding(state.here, "after a system message only an assistant message may follow")


def _check_system_message(state: MessagesState, reading: Reading) -> Iterator[Finding]:
    if not state.card.conduct.mid_system:
        yield Finding(state.here, "this model takes no role system here; use the field system")
        return
    if state.list_unanswered():
        yield Finding(state.here, "a system message must not be between a tool_use and its tool_result")
    elif state.last.role == "system":
        yield Finding(state.here, "two system messages in a row; merge the two")
    elif state.last.role != "user" and not (state.last.role == "assistant" and state.last.ends_in_server_tool):
        yield Finding(state.here, "a system message must follow a user turn or one that ended in a server tool")
    for block in reading.blocks:
        if block.kind not in SYSTEM_BLOCKS:
            yield Finding(block.path, f"a system message must not hold a {quote_value(block.kind)} block")


def no_trailing_space(state: MessagesState) -> Iterator[Finding]:
    """A12: an assistant message at the end does not end in whitespace."""
    if state.last.role == "assistant" and state.last.blocks:
        block = state.last.blocks[-1]
        if block.kind == "text" and block.value["text"][-1:].isspace():
            yield Finding(block.path, "a final assistant message must not end in whitespace")


def no_prefill(state: MessagesState) -> Iterator[Finding]:
    """A13: if the model accepts no prefill, a user message is last; no model continues a message with thinking. A
    turn that paused at a server tool is sent back unchanged and is not prefill; nor is a compaction."""
    if state.last.role != "assistant" or state.last.is_continued:
        return
    if not state.card.conduct.prefill:
        yield Finding(f"messages.{state.position - 1}", "this model needs a user message at the end")
    elif any(state.last.of(*THINKING)):
        yield Finding(f"messages.{state.position - 1}", "a final assistant message must not contain thinking")


ID = re.compile("[a-zA-Z0-9_-]+")


def calls_answered(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A5: the calls of an assistant turn have their results before the next turn; users make no calls."""
    reading = state.read(message)
    if reading.role == "assistant" and state.turn == "user":
        yield from calls_answered_at_end(state)
    for block in reading.of("tool_use"):
        if reading.role == "user":
            yield Finding(block.path, "a tool_use in a user message is never answered")
        elif read_id(block, "id") is None:
            yield Finding(block.path, "a tool_use without a string id is never answered")


def calls_answered_at_end(state: MessagesState) -> Iterator[Finding]:
    """A5 at the end: the newest assistant turn's calls have their results."""
    for call in state.list_unanswered():
        yield Finding(state.calls[call], f"tool_use {quote_value(call)} has no tool_result in the next user turn")


def results_asked_for(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A6: each result answers a call of the assistant turn directly before it."""
    reading = state.read(message)
    for block in reading.of("tool_result"):
        call = read_id(block, "tool_use_id")
        if reading.role == "assistant":
            yield Finding(block.path, "a tool_result belongs in a user message")
        elif reading.role == "user" and (call is None or call not in state.calls):
            named = quote_value(block.value.get("tool_use_id"))
            yield Finding(block.path, f"no tool_use {named} in the assistant turn right before")


def results_first(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A7: in the user turn that answers calls, the results come before all other blocks."""
    reading = state.read(message)
    if reading.role != "user" or not state.calls:
        return
    late = state.turn == "user" and state.other_blocks
    for block in reading.blocks:
        if block.kind != "tool_result":
            late = True
        elif late:
            yield Finding(block.path, "tool results must come before the other blocks of their turn")


def ids_unique(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A8: an id belongs to one call of the request and has one result."""
    reading = state.read(message)
    here: set[str] = set()
    for block in reading.of("tool_use"):
        call = read_id(block, "id")
        if call is not None and (call in state.seen_calls or call in here):
            yield Finding(block.path, f"the tool_use id {quote_value(call)} is used before")
        here.add(call or "")
    answered: set[str] = set()
    for block in reading.of("tool_result"):
        call = read_id(block, "tool_use_id")
        if call is not None and (call in state.answered or call in answered):
            yield Finding(block.path, f"a second tool_result for {quote_value(call)}")
        answered.add(call or "")


def server_results_follow(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A9: the result of a server tool follows its call in the same assistant turn, before the user speaks again."""
    reading = state.read(message)
    if reading.role == "user" and state.turn == "assistant" and not state.calls:
        # A server tool that was called beside the caller's tools may run later; it is not documented when.
        for waiting_call in sorted(state.server_calls - state.deferred):
            named = quote_value(waiting_call)
            yield Finding(state.here, f"no result of the server tool call {named} before this turn")
    if not any(is_server_result(block.kind) for block in reading.blocks):
        return
    waiting: set[str | None] = set(state.find_open_server_calls()) if reading.role == "assistant" else set()
    for block in reading.blocks:
        if block.kind in SERVER_CALLS:
            waiting.add(read_id(block, "id"))
        elif is_server_result(block.kind):
            call = read_id(block, "tool_use_id")
            if call is None or call not in waiting or reading.role != "assistant":
                named = quote_value(block.value.get("tool_use_id"))
                yield Finding(block.path, f"no open server tool call {named} before it in this turn")
            waiting.discard(call)


def call_shapes(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A10: ids match the pattern, and a call's input is an object."""
    for block in state.read(message).blocks:
        if block.kind == "tool_use" or block.kind in SERVER_CALLS:
            yield from _check_id(block.path, block.value.get("id"))
            if not isinstance(block.value.get("input"), dict):
                yield Finding(f"{block.path}.input", "must be an object")
        elif block.kind == "tool_result":
            yield from _check_id(block.path, block.value.get("tool_use_id"))


def _check_id(path: str, value: object) -> Iterator[Finding]:
    if not isinstance(value, str) or not ID.fullmatch(value):
        yield Finding(path, f"an id must consist of letters, digits, _ and -, not {quote_value(value)}")


def tools_declared(state: MessagesState) -> Iterator[Finding]:
    """A23: a history with tool calls comes with tools."""
    if state.uses_tools and not state.envelope.get("tools"):
        yield Finding("tools", "the history holds tool calls, so tools must be declared")


__all__ = ["RULES", "start_check"]

RULES: tuple[Rule, ...] = (
    Rule("A1", "E", verified=False, at_start=required_fields, at_end=some_message),
    Rule("A2", "P", at_message=user_first),
    Rule("A3", "P", at_message=alternation),
    Rule("A4", "E", at_message=roles),
    Rule("A5", "E", at_message=calls_answered, at_end=calls_answered_at_end),
    Rule("A6", "E", at_message=results_asked_for),
    Rule("A7", "E", at_message=results_first),
    Rule("A8", "E", verified=False, at_message=ids_unique),
    Rule("A9", "E", at_message=server_results_follow),
    Rule("A10", "E", verified=False, at_message=call_shapes),
    Rule("A11", "E", at_start=content_rules.system_texts, at_message=content_rules.texts),
    Rule("A12", "E", at_end=no_trailing_space),
    Rule("A13", "E", at_end=no_prefill),
    Rule("A14", "E", at_end=content_rules.loop_starts_with_thinking, unsuited=find_unsuited),
    Rule("A16", "E", at_message=content_rules.thinking_signed),
    Rule("A19", "E", at_start=content_rules.thinking_budget),
    Rule("A20", "E", at_end=content_rules.few_cache_marks),
    Rule(
        "A21",
        "E",
        at_start=content_rules.head_cache_order,
        at_message=content_rules.cache_order,
        at_end=content_rules.top_cache_order,
    ),
    Rule("A22", "E", verified=False, at_start=content_rules.system_cacheable, at_message=content_rules.cacheable),
    Rule("A23", "E", at_end=tools_declared),
    Rule("A25", "E", verified=False, at_start=content_rules.thinking_cleared_first),
    Rule("A26", "E", verified=False, at_start=content_rules.system_types, at_message=content_rules.block_types),
)
"""The rules in the order of the page, which also lists those that cannot be checked on a body alone."""
