"""Rules of the Messages wire about the envelope and the turns: A1 to A4, A12, A13."""

from __future__ import annotations

from collections.abc import Iterator

from lading.wire.anthropic.walking import AnthropicWalk, Reading
from lading.wire.checking import Finding, WireMessage, shown

SYSTEM_BLOCKS = ("text", "tool_addition", "tool_removal")


def required_fields(walk: AnthropicWalk) -> Iterator[Finding]:
    """A1, the envelope: model and max_tokens are there and of their type; tools and messages are lists."""
    body = walk.envelope
    model, max_tokens = body.get("model"), body.get("max_tokens")
    if not isinstance(model, str) or not model:
        yield Finding("model", "must name a model")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        yield Finding("max_tokens", "must be a whole number of at least 1")
    for field in ("tools", "messages"):
        value = body.get(field)
        if value is not None and not isinstance(value, list):
            yield Finding(field, f"must be a list, not {shown(value)}")
    tools = body.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        if not isinstance(tool, dict):
            yield Finding(f"tools.{index}", f"must be an object, not {shown(tool)}")


def some_message(walk: AnthropicWalk) -> Iterator[Finding]:
    """A1, the messages: at least one."""
    if walk.position == 0:
        yield Finding("messages", "at least one message is required")


def user_first(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A2: the first message is the user's."""
    if walk.position == 0 and walk.read(message).role != "user":
        yield Finding(walk.here, "the first message must have role user")


def alternation(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A3: user and assistant alternate; system messages in the list do not count."""
    role = walk.read(message).role
    if role in ("user", "assistant") and role == walk.turn:
        yield Finding(walk.here, f"a second {role} message in a row; merge the two")


def roles(walk: AnthropicWalk, message: WireMessage) -> Iterator[Finding]:
    """A4: user, assistant and, where the model takes it, system at the places where it may stand."""
    reading = walk.read(message)
    if reading.role == "system":
        yield from _system_message(walk, reading)
    elif reading.role not in ("user", "assistant"):
        role = shown(message.get("role") if isinstance(message, dict) else message)
        yield Finding(walk.here, f"must be an object with role user or assistant, not {role}")
    elif reading.role == "user" and walk.last.role == "system" and walk.card.conduct.mid_system:
        yield Finding(walk.here, "after a system message only an assistant message may follow")


def _system_message(walk: AnthropicWalk, reading: Reading) -> Iterator[Finding]:
    if not walk.card.conduct.mid_system:
        yield Finding(walk.here, "this model takes no role system here; use the field system")
        return
    if walk.unanswered():
        yield Finding(walk.here, "a system message must not stand between a tool_use and its tool_result")
    elif walk.last.role == "system":
        yield Finding(walk.here, "two system messages in a row; merge the two")
    elif walk.last.role != "user" and not (walk.last.role == "assistant" and walk.last.ends_in_server_tool):
        yield Finding(walk.here, "a system message must follow a user turn or one that ended in a server tool")
    for block in reading.blocks:
        if block.kind not in SYSTEM_BLOCKS:
            yield Finding(block.path, f"a system message must not hold a {shown(block.kind)} block")


def no_trailing_space(walk: AnthropicWalk) -> Iterator[Finding]:
    """A12: an assistant message at the end does not end in whitespace."""
    if walk.last.role == "assistant" and walk.last.blocks:
        block = walk.last.blocks[-1]
        if block.kind == "text" and block.value["text"][-1:].isspace():
            yield Finding(block.path, "a final assistant message must not end in whitespace")


def no_prefill(walk: AnthropicWalk) -> Iterator[Finding]:
    """A13: where the model takes no prefill, the user has the last word. A turn that paused at a server tool
    goes back as it is and is no prefill."""
    if walk.last.role == "assistant" and not walk.card.conduct.prefill and not walk.last.ends_in_server_tool:
        yield Finding(f"messages.{walk.position - 1}", "this model needs a user message at the end")
