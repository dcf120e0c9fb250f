"""Compare the forms of a known message and of the same message as its caller gives it now.

``match`` finds a message by its meaning; its form is what the provider would read. What the caller gives is sent, so
another form replaces the known one. These differences are no other form, of all messages: the order of keys, and
cache marks (``exchange/marks.py`` places them). Of replies, which SDKs write in ways of their own: empty fields,
fields that are only added, and how the JSON of arguments is written.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lading import jsonbytes
from lading.messages import Conversation, Message, Reasoning, ToolCall
from lading.models.card import Card
from lading.session.matching import normalize_arguments
from lading.wire import Wire, encode
from lading.wire.translation import strip_content


def has_form(given: Message, known: Message, *, wire: Wire, card: Card, marked: bool = False) -> bool:
    """Whether a message is given in its known form; both have the same meaning. ``marked``: cache marks count."""
    if given.role != "assistant":
        forms = (jsonbytes.canonical(_encode(one, wire, card, marked=marked)) for one in (given, known))
        return next(forms) == next(forms)
    if _list_reasoning(given) != _list_reasoning(known):
        return False
    now, before = (_encode(_normalize_calls(one), wire, card, marked=False) for one in (given, known))
    return _keeps(strip_content(now), strip_content(before))


def add_hidden_calls(given: Message, known: Message) -> Message:
    """Return a reply as its caller gives it, with the calls that the caller was not shown."""
    if len(given.calls) == len(known.calls):
        return given
    shown = {call.id: call for call in given.calls}
    rest = (part for part in given.parts if not isinstance(part, ToolCall))
    return given.with_parts((*rest, *(shown.get(call.id, call) for call in known.calls)))


def drop_hidden_calls(known: Message, given: Message) -> Message:
    """Return a known reply without the calls that its caller was not shown."""
    if len(given.calls) == len(known.calls):
        return known
    shown = {call.id for call in given.calls}
    kept = (part for part in known.parts if not isinstance(part, ToolCall) or part.id in shown)
    return known.with_parts(tuple(kept))


def _encode(message: Message, wire: Wire, card: Card, *, marked: bool) -> dict[str, Any]:
    """Return a body with this message alone. ``marked``: with its cache marks."""
    body, layout = encode(Conversation((message,), origin=wire.name), wire, card=card), wire.layout
    if marked:
        return body
    beside = layout.strip({"content": body.get(layout.system)})["content"]
    return {layout.system: beside, layout.items.field: list(map(layout.strip, body[layout.items.field]))}


def _normalize_calls(message: Message) -> Message:
    parts = (
        replace(part, arguments=normalize_arguments(part.arguments)) if isinstance(part, ToolCall) else part
        for part in message.parts
    )
    return message.with_parts(tuple(parts))


def _list_reasoning(message: Message) -> list[tuple[str, str, str]]:
    """List the reasoning of a reply, which its caller may leave out."""
    parts = (part for part in message.parts if isinstance(part, Reasoning))
    return [(part.text, part.signature or "", part.data or "") for part in parts]


def _keeps(given: Any, known: Any) -> bool:
    """Whether a given value has everything that the known one has."""
    if isinstance(known, dict) and isinstance(given, dict):
        return all(inner in ("", [], {}) or _keeps(given.get(key), inner) for key, inner in known.items())
    if isinstance(known, list) and isinstance(given, list):
        return len(given) == len(known) and all(map(_keeps, given, known))
    # 1 and true are equal in Python, and not in JSON.
    return type(given) is type(known) and bool(given == known)
