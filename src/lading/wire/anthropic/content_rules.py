"""Rules of the Messages wire for text, thinking and cache marks: A11, A14, A16, A19 to A22, A25, A26."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lading.wire.anthropic.state import (
    SERVER_CALLS,
    THINKING,
    ContentBlock,
    MessagesState,
    Reading,
    is_server_result,
    read_content,
)
from lading.wire.checking import Finding, WireMessage, quote_value
from lading.wire.layout import read_ttl

MAX_CACHE_MARKS = 4
BLOCK_TYPES = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use", "container_upload", "compaction"},
}
"""Types of blocks in messages of each role; the assistant's also have server calls and their results."""
RESULT_TYPES = {"text", "image", "document", "search_result", "tool_reference"}
MIN_THINKING_TOKENS = 1024


def system_texts(state: MessagesState) -> Iterator[Finding]:
    """A11 for the field system."""
    yield from state.system.faults
    yield from _find_blank_texts(state.system)


def texts(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A11: content is well formed and not blank; only a final assistant message may be empty."""
    reading = state.read(message)
    if state.last.role == "assistant" and _is_empty(state.last):
        yield Finding(f"messages.{state.position - 1}", "only a final assistant message may be empty")
    yield from reading.faults
    yield from _find_blank_texts(reading)
    if isinstance(message, dict) and reading.role != "assistant" and _is_empty(reading):
        yield Finding(state.here, "the content must not be empty")


def system_types(state: MessagesState) -> Iterator[Finding]:
    """A26 for the field system."""
    yield from (_wrong_type(block, "the field system") for block in state.system.blocks if block.kind != "text")


def block_types(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A26: blocks are of the types that their role allows, and so are those inside a tool result."""
    reading = state.read(message)
    for block in reading.blocks if reading.role in BLOCK_TYPES else ():
        is_servers = block.kind in SERVER_CALLS or (is_server_result(block.kind) and block.kind != "tool_result")
        if block.kind not in BLOCK_TYPES[reading.role] and not (is_servers and reading.role == "assistant"):
            yield _wrong_type(block, f"{reading.role} messages")
        if block.kind == "tool_result":
            inner = read_content(f"{block.path}.content", block.value.get("content") or "")
            yield from (_wrong_type(part, "tool results") for part in inner.blocks if part.kind not in RESULT_TYPES)


def _wrong_type(block: ContentBlock, where: str) -> Finding:
    return Finding(block.path, f"a block of type {quote_value(block.kind)} is not allowed in {where}")


def _find_blank_texts(reading: Reading) -> Iterator[Finding]:
    for block in reading.texts:
        if block.is_blank:
            yield Finding(block.path, "a text block must hold more than whitespace")


def _is_empty(reading: Reading) -> bool:
    return not reading.blocks and not reading.faults


def loop_starts_with_thinking(state: MessagesState) -> Iterator[Finding]:
    """A14: with thinking enabled, the assistant's part of the running tool loop starts with thinking."""
    if _read_thinking(state).get("type") == "enabled" and state.loop_calls and not state.loop_thinks:
        detail = "thinking is enabled, so the running tool loop must start with a thinking block"
        yield Finding(f"{state.loop_opening}.content.0", detail)


def thinking_signed(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A16, as far as a body shows: a thinking block has its signature, a redacted one its data."""
    for block in state.read(message).of(*THINKING):
        field = "signature" if block.kind == "thinking" else "data"
        value = block.value.get(field)
        if not isinstance(value, str) or not value:
            yield Finding(f"{block.path}.{field}", f"a {block.kind} block must come back with its {field}")


def thinking_budget(state: MessagesState) -> Iterator[Finding]:
    """A19: a thinking budget only if the model accepts one, from 1024 tokens to below max_tokens."""
    thinking = state.envelope.get("thinking")
    if thinking is not None and not isinstance(thinking, dict):
        yield Finding("thinking", f"must be an object, not {quote_value(thinking)}")
    if _read_thinking(state).get("type") != "enabled":
        return
    if not state.card.conduct.thinking_budget:
        yield Finding("thinking.type", "this model takes no thinking budget; use adaptive")
        return
    budget, max_tokens = _read_thinking(state).get("budget_tokens"), state.envelope.get("max_tokens")
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < MIN_THINKING_TOKENS:
        yield Finding("thinking.budget_tokens", f"must be a whole number of at least {MIN_THINKING_TOKENS}")
    elif isinstance(max_tokens, int) and budget >= max_tokens and not _is_interleaved(state.envelope):
        yield Finding("thinking.budget_tokens", "must be less than max_tokens")


def _read_thinking(state: MessagesState) -> Mapping[str, Any]:
    thinking = state.envelope.get("thinking")
    return thinking if isinstance(thinking, dict) else {}


def _is_interleaved(body: Mapping[str, Any]) -> bool:
    """Whether the body asks for interleaved thinking; a header that does so cannot be seen here."""
    betas = [body.get("betas"), body.get("anthropic_beta")]
    names = [name for listed in betas if isinstance(listed, list) for name in listed]
    return any(isinstance(name, str) and name.startswith("interleaved-thinking") for name in names)


def few_cache_marks(state: MessagesState) -> Iterator[Finding]:
    """A20: at most four cache marks. One at the top level counts, unless the last block has the same."""
    top, last = read_ttl(state.envelope.get("cache_control")), _read_last_ttl(state)
    marks = state.cache_marks + (top is not None and top != last)
    if marks > MAX_CACHE_MARKS:
        yield Finding("messages", f"{marks} blocks with cache_control; at most {MAX_CACHE_MARKS} are allowed")


def head_cache_order(state: MessagesState) -> Iterator[Finding]:
    """A21 for tools and system."""
    yield from _check_order(state.head_marks, short_mark=False)


def cache_order(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A21: from tools through system to messages, no cache mark has a longer lifetime than one before it."""
    yield from _check_order(state.read(message).marked, short_mark=state.short_mark)


def top_cache_order(state: MessagesState) -> Iterator[Finding]:
    """A21 for a mark at the top level, which is equivalent to one on the last block."""
    mark = state.envelope.get("cache_control")
    top, last = read_ttl(mark), _read_last_ttl(state)
    if mark is not None and not isinstance(mark, dict):
        yield Finding("cache_control", "must be an object")
    if top is not None and last is not None and top != last:
        yield Finding("cache_control", f"the last block is marked for {last}, the request for {top}")
    elif top == "1h" and state.short_mark:
        yield Finding("cache_control", "a mark of 1h must not come after one of 5m")


def _check_order(marked: Iterable[ContentBlock], *, short_mark: bool) -> Iterator[Finding]:
    for block in marked:
        if not isinstance(block.value["cache_control"], dict):
            yield Finding(f"{block.path}.cache_control", "must be an object")
        if block.ttl == "1h" and short_mark:
            yield Finding(block.path, "a cache mark of 1h must not come after one of 5m")
        short_mark = short_mark or block.ttl == "5m"


def _read_last_ttl(state: MessagesState) -> str | None:
    return state.last.blocks[-1].ttl if state.last.blocks else None


def system_cacheable(state: MessagesState) -> Iterator[Finding]:
    """A22 for the field system."""
    yield from _find_uncacheable(state.system)


def cacheable(state: MessagesState, message: WireMessage) -> Iterator[Finding]:
    """A22: no cache mark on an empty text or on thinking."""
    yield from _find_uncacheable(state.read(message))


def _find_uncacheable(reading: Reading) -> Iterator[Finding]:
    for block in reading.marked:
        if block.kind in THINKING or block.is_blank:
            yield Finding(block.path, "a cache mark must not be on thinking or an empty text")


def thinking_cleared_first(state: MessagesState) -> Iterator[Finding]:
    """A25: of the edits of context_management, the one that clears thinking comes first."""
    management = state.envelope.get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else None
    for index, edit in enumerate(edits if isinstance(edits, list) else ()):
        kind = edit.get("type") if isinstance(edit, dict) else None
        if index and isinstance(kind, str) and kind.startswith("clear_thinking"):
            yield Finding(f"context_management.edits.{index}", "clearing thinking must be the first edit")
