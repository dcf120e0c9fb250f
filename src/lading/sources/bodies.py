"""Request bodies and bare message lists of a wire, with the reply where the file holds it too.

Forms of one value: a body ``{"messages": [...], ...}``; the messages alone; ``{"request": body,
"response": reply}``, where the reply is a provider's response or its message; a body that holds its own
``response`` or ``choices``. Each may carry an ``id``; a name under ``session`` beside ``request`` says which
conversation it is of. How the requests of one conversation become one recording: ``lading.sources.conversations``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lading.wire.replies import text_or_empty

# None of these is a field of a request on any wire.
_RECORD_FIELDS = ("id", "response", "choices", "object", "created", "usage", "system_fingerprint")


class Exchange(Struct, frozen=True):
    """One call as recorded: what was asked and, where known, what came back."""

    body: Mapping[str, Any]
    """The request; holds a list of messages."""
    reply: Mapping[str, Any]
    """The response, empty where there is none."""
    id: str = ""
    session: str = ""
    """The conversation it is of, where the file says so."""


def exchange(value: Any) -> Exchange | None:
    """The exchange that a value of a file spells, or None when it is of none of the forms."""
    if isinstance(value, list):
        return Exchange({"messages": value}, {})
    if not isinstance(value, Mapping):
        return None
    is_beside = isinstance(value.get("request"), Mapping)
    body = value["request"] if is_beside else value
    if not isinstance(body.get("messages"), list):
        return None
    reply = value.get("response", value if "choices" in value else {})
    kept = {key: field for key, field in body.items() if key not in _RECORD_FIELDS}
    session = text_or_empty(value, "session") if is_beside else ""
    return Exchange(kept, reply if isinstance(reply, Mapping) else {}, text_or_empty(value, "id"), session)


def reply_message(reply: Mapping[str, Any]) -> dict[str, Any] | None:
    """The assistant message of a response: OpenAI's first choice, Anthropic's message, or a bare message.

    None when there is none. A provider's fields about the response are no part of the message.
    """
    choices = reply.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        return dict(message) if isinstance(message, Mapping) else None
    if reply.get("role") != "assistant":
        return None
    if reply.get("type") == "message":
        return {"role": "assistant", "content": reply.get("content")}
    return dict(reply)
