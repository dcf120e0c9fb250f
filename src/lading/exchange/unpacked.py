"""Which requests are packed. A conversation that goes out as its caller made it is told of once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.events import Unpacked
from lading.exchange.conversations import Conversations
from lading.wire import Wire, find_wire

_PACKED = {"/chat/completions": "openai_chat", "/messages": "anthropic"}
_UNPACKED = (
    "/responses",
    "/responses/compact",
    "/completions",
    "/complete",
    "/messages/batches",
    "/threads/runs",
    "/runs",
    "/invoke",
    "/invoke-with-response-stream",
    ":rawPredict",
    ":streamRawPredict",
)
_KEPT = ("thread", "previous_response_id", "conversation", "container")
"""Fields of a request that goes on with what the provider keeps."""


def wire_of(conversations: Conversations, method: str, *, path: str) -> Wire | None:
    """The wire of a request by its path; None where it is not packed."""
    if method != "POST":
        return None
    if name := next((name for end, name in _PACKED.items() if path.endswith(end)), ""):
        return find_wire(name)
    if end := next((end for end in _UNPACKED if path.endswith(end)), ""):
        advice = "Use chat.completions or messages to have it packed, or lading.Session."
        conversations.tell_once(Unpacked(f"the endpoint ...{end}", advice))
    return None


def is_kept(conversations: Conversations, body: Mapping[str, Any]) -> bool:
    """Whether the provider keeps the conversation of a request, or files that it works on: what it keeps and what
    is sent must fit."""
    field = next((field for field in _KEPT if body.get(field) and _names_state(body[field])), "")
    if field:
        advice = f"Leave {field} out and send the whole history to have the request packed."
        if field == "thread":
            advice += " With tool_runner: thread=False."
        conversations.tell_once(Unpacked(f"the field {field}", advice))
    return bool(field)


def _names_state(value: Any) -> bool:
    """Whether a field names what is kept. A container may only be asked for, with the skills it is to have."""
    return not isinstance(value, dict) or bool(value.get("id") or value.get("type"))
