"""Rules of the Messages wire about text, thinking and cache marks: A11, A14, A16, A19 to A22, A26."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lading.wire.anthropic.walking import (
    SERVER_CALLS,
    THINKING,
    AnthropicWalk,
    Block,
    Reading,
    is_server_result,
    read_content,
    ttl_of,
)
from lading.wire.checking import Finding, WireMessage, shown

MAX_CACHE_MARKS = 4
BLOCK_TYPES = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use", "container_upload", "compaction"},
}
"""What the messages of each role may hold, beside the calls and results of servers in the assistant's."""
RESULT_TYPES = {"text", "image", "document", "search_result", "tool_reference"}
MIN_THINKING_TOKENS = 1024


def system_texts(walk: AnthropicWalk) -> Iterator[Finding]:
    """A11 for the field system."""
    yield from walk.system.faults
    yield from _blank_texts(walk.system)


def texts(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A11: content is well formed and says something; only a final assistant message may be empty."""
    reading = walk.read(message)
    if walk.last.role == "assistant" and _empty(walk.last):
        yield Finding(f"messages.{walk.position - 1}", "only a final assistant message may be empty")
    yield from reading.faults
    yield from _blank_texts(reading)
    if isinstance(message, dict) and reading.role != "assistant" and _empty(reading):
        yield Finding(walk.here, "the content must not be empty")


def system_types(walk: AnthropicWalk) -> Iterator[Finding]:
    """A26 for the field system."""
    yield from (_wrong_type(block, "the field system") for block in walk.system.blocks if block.kind != "text")


def block_types(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A26: blocks are of the types that their role takes, and so are those inside a tool result."""
    reading = walk.read(message)
    for block in reading.blocks if reading.role in BLOCK_TYPES else ():
        is_servers = block.kind in SERVER_CALLS or (is_server_result(block.kind) and block.kind != "tool_result")
        if block.kind not in BLOCK_TYPES[reading.role] and not (is_servers and reading.role == "assistant"):
            yield _wrong_type(block, f"{reading.role} messages")
        if block.kind == "tool_result":
            inner = read_content(f"{block.path}.content", block.value.get("content") or "")
            yield from (_wrong_type(part, "tool results") for part in inner.blocks if part.kind not in RESULT_TYPES)


def _wrong_type(block: Block, where: str) -> Finding:
    return Finding(block.path, f"a block of type {shown(block.kind)} does not belong into {where}")


def _blank_texts(reading: Reading) -> Iterator[Finding]:
    for block in reading.texts:
        if block.blank:
            yield Finding(block.path, "a text block must hold more than whitespace")


def _empty(reading: Reading) -> bool:
    return not reading.blocks and not reading.faults


def loop_starts_with_thinking(walk: AnthropicWalk) -> Iterator[Finding]:
    """A14: with thinking enabled, the assistant's part of the running tool loop starts with thinking."""
    if _thinking(walk).get("type") == "enabled" and walk.loop_calls and not walk.loop_thinks:
        detail = "thinking is enabled, so the running tool loop must start with a thinking block"
        yield Finding(f"{walk.loop_opening}.content.0", detail)


def thinking_signed(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A16, as far as a body shows: a thinking block has its signature, a redacted one its data."""
    for block in walk.read(message).of(*THINKING):
        field = "signature" if block.kind == "thinking" else "data"
        value = block.value.get(field)
        if not isinstance(value, str) or not value:
            yield Finding(f"{block.path}.{field}", f"a {block.kind} block must come back with its {field}")


def thinking_budget(walk: AnthropicWalk) -> Iterator[Finding]:
    """A19: a thinking budget where the model takes one, from 1024 tokens to below max_tokens."""
    thinking = walk.envelope.get("thinking")
    if thinking is not None and not isinstance(thinking, dict):
        yield Finding("thinking", f"must be an object, not {shown(thinking)}")
    if _thinking(walk).get("type") != "enabled":
        return
    if not walk.card.conduct.thinking_budget:
        yield Finding("thinking.type", "this model takes no thinking budget; use adaptive")
        return
    budget, max_tokens = _thinking(walk).get("budget_tokens"), walk.envelope.get("max_tokens")
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < MIN_THINKING_TOKENS:
        yield Finding("thinking.budget_tokens", f"must be a whole number of at least {MIN_THINKING_TOKENS}")
    elif isinstance(max_tokens, int) and budget >= max_tokens and not _interleaved(walk.envelope):
        yield Finding("thinking.budget_tokens", "must be less than max_tokens")


def _thinking(walk: AnthropicWalk) -> Mapping[str, Any]:
    thinking = walk.envelope.get("thinking")
    return thinking if isinstance(thinking, dict) else {}


def _interleaved(body: Mapping[str, Any]) -> bool:
    """Whether the body itself asks for interleaved thinking; a header that does is not seen here."""
    betas = [body.get("betas"), body.get("anthropic_beta")]
    names = [name for listed in betas if isinstance(listed, list) for name in listed]
    return any(isinstance(name, str) and name.startswith("interleaved-thinking") for name in names)


def few_cache_marks(walk: AnthropicWalk) -> Iterator[Finding]:
    """A20: at most four cache marks. One at the top level counts, unless the last block has it already."""
    top, last = ttl_of(walk.envelope.get("cache_control")), _last_ttl(walk)
    marks = walk.cache_marks + (top is not None and top != last)
    if marks > MAX_CACHE_MARKS:
        yield Finding("messages", f"{marks} blocks with cache_control; at most {MAX_CACHE_MARKS} are allowed")


def head_cache_order(walk: AnthropicWalk) -> Iterator[Finding]:
    """A21 for tools and system."""
    yield from _rising(walk.head_marks, short_mark=False)


def cache_order(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A21: from tools over system to messages, no cache mark lives longer than one before it."""
    yield from _rising(walk.read(message).marked, short_mark=walk.short_mark)


def top_cache_order(walk: AnthropicWalk) -> Iterator[Finding]:
    """A21 for a mark at the top level, which stands for one on the last block."""
    mark = walk.envelope.get("cache_control")
    top, last = ttl_of(mark), _last_ttl(walk)
    if mark is not None and not isinstance(mark, dict):
        yield Finding("cache_control", "must be an object")
    if top is not None and last is not None and top != last:
        yield Finding("cache_control", f"the last block is marked for {last}, the request for {top}")
    elif top == "1h" and walk.short_mark:
        yield Finding("cache_control", "a mark of 1h must not come after one of 5m")


def _rising(marked: Iterable[Block], *, short_mark: bool) -> Iterator[Finding]:
    for block in marked:
        if not isinstance(block.value["cache_control"], dict):
            yield Finding(f"{block.path}.cache_control", "must be an object")
        if block.ttl == "1h" and short_mark:
            yield Finding(block.path, "a cache mark of 1h must not come after one of 5m")
        short_mark = short_mark or block.ttl == "5m"


def _last_ttl(walk: AnthropicWalk) -> str | None:
    return walk.last.blocks[-1].ttl if walk.last.blocks else None


def system_cacheable(walk: AnthropicWalk) -> Iterator[Finding]:
    """A22 for the field system."""
    yield from _not_cacheable(walk.system)


def cacheable(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A22: no cache mark on an empty text or on thinking."""
    yield from _not_cacheable(walk.read(message))


def _not_cacheable(reading: Reading) -> Iterator[Finding]:
    for block in reading.marked:
        if block.kind in THINKING or block.blank:
            yield Finding(block.path, "a cache mark must not stand on thinking or an empty text")
