"""Compare the forms of a known message and of the same message as its caller gives it now.

``match`` finds a message by its meaning; its form is what the provider reads. What the caller gives is sent, so
another form replaces the known one. These differences are no other form, of all messages: the order of keys, cache
marks (``exchange/marks.py`` places them), and for Anthropic a text in place of a list of one. Of replies, which
SDKs write in ways of their own: empty fields, fields that only answers have and fields added inside the content, 1
for true, and how the JSON of arguments is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from lading import jsonbytes
from lading.errors import InputError
from lading.history.history import History
from lading.history.log import Entry
from lading.messages import Conversation, Message, Part, Reasoning, Text, ToolCall
from lading.models.card import Card
from lading.session.matching import fingerprint, normalize_arguments
from lading.wire import Wire, encode
from lading.wire.reasoning import find_adapter, name_issuer
from lading.wire.translation import strip_content

_EMPTY: tuple[Any, ...] = ("", [], {})


def find_reformed(
    given: Sequence[Message],
    known: Sequence[Entry],
    *,
    history: History,
    wire: Wire,
    card: Card,
    marked: bool = False,
) -> Iterator[tuple[int, Message]]:
    """Find the given messages whose form differs from that of the known entry at their place, which has the same
    meaning. Yields the place and the message to send: a reply gets the calls back that its caller was not shown. A
    reply that ends an answer of several keeps its form.
    ``marked``: other cache marks count. Raises InputError for what is no ``Message``."""
    if not {Message}.issuperset(map(type, given)):
        raise InputError("Give values of lading.Message here; Session.add takes any other form.")
    adapter = find_adapter(wire.name, card)
    for at, (given_one, entry) in enumerate(zip(given, known, strict=False)):
        message = name_issuer(given_one, wire.name, adapter=adapter)
        asked, shown = entry.message.calls, {call.id: call for call in message.calls}
        form, message = history.find_form(entry), _drop_earlier_reasoning(message, entry, history)
        if len(shown) < len(asked):
            form, message = _drop_hidden(form, shown), _drop_hidden(message, shown)
        if has_form(message, form, wire=wire, card=card, marked=marked) or _continues_answer(entry, shown):
            continue
        if len(shown) < len(asked):
            message = _put_back(message, entry.message, shown)
        yield at, message


def _put_back(message: Message, reply: Message, shown: Mapping[str, ToolCall]) -> Message:
    """Return the caller's form of a reply with the calls that the caller was not shown."""
    said = [part for part in message.parts if not isinstance(part, ToolCall)]
    is_whole = len(said) == len(reply.parts) - len(reply.calls)
    if not is_whole:
        calls = (shown.get(call.id) or _fit_hidden(call, message, reply, is_whole=False) for call in reply.calls)
        return message.with_parts((*said, *calls))
    left = iter(said)
    parts = (
        (shown.get(part.id) or _fit_hidden(part, message, reply)) if isinstance(part, ToolCall) else next(left)
        for part in reply.parts
    )
    return message.with_parts(tuple(parts))


def _fit_hidden(call: ToolCall, message: Message, reply: Message, *, is_whole: bool = True) -> ToolCall:
    """Return a call that the caller was not shown for the caller's form of its reply. ``is_whole``: that form has
    all that the reply says."""
    if message.origin != reply.origin:
        return replace(call, template=None)
    if is_whole:
        return call
    # The id of an item demands the reasoning right before it.
    return replace(call, template={key: code for key, code in (call.template or {}).items() if key != "id"})


def _continues_answer(entry: Entry, shown: Mapping[str, ToolCall]) -> bool:
    """Whether the caller received more in one answer than this reply: what replies before it said, whose only calls
    were answered here. These are messages of their own, so the answer's form is not the reply's."""
    if not entry.known_as or entry.message.role != "assistant":
        return False
    reply = entry.message.with_parts(tuple(part for part in entry.message.parts if not _is_hidden(part, shown)))
    return fingerprint(reply) != entry.known_as


def _is_hidden(part: Part, shown: Mapping[str, ToolCall]) -> bool:
    return isinstance(part, ToolCall) and part.id not in shown


def _drop_hidden(message: Message, shown: Mapping[str, ToolCall]) -> Message:
    """Return a reply without calls that its caller was not shown, and Gemini's empty text in their place, which in
    a stream is the last piece of another text."""
    parts = (part for part in message.parts if not _is_hidden(part, shown))
    return message.with_parts(tuple(_drop_empty_piece(part) for part in parts if part != Text("")))


def _drop_empty_piece(part: Part) -> Part:
    pieces = (part.template or {}).get("pieces") if isinstance(part, Text) else None
    return replace(part, template={"pieces": [size for size in pieces if size]}) if pieces else part


def has_form(given: Message, known: Message, *, wire: Wire, card: Card, marked: bool = False) -> bool:
    """Whether a message is given in its known form; both have the same meaning. ``marked``: cache marks count."""
    if given.role != "assistant":
        now, before = (_encode(one, wire, card, marked=marked) for one in (given, known))
        if wire.layout.marks and wire.layout.marks.look_back:
            # A text is a list of one block while it has a mark: the same prompt.
            now, before = (_list_texts(one, wire.layout.items.field) for one in (now, before))
        return jsonbytes.canonical(now) == jsonbytes.canonical(before)
    if given.parts == known.parts and given.template == known.template:
        return True
    said, kept = (_encode_reply(one, wire, card) for one in (given, known))
    if _adds(said, kept, wire):
        return False
    if _keeps(given.template or {}, known.template or {}):
        # A caller may keep the pieces of a stream apart: their sizes are in the template.
        kept = _encode_reply(replace(known, template=given.template), wire, card)
    return _keeps(said, kept)


def _drop_earlier_reasoning(given: Message, entry: Entry, history: History) -> Message:
    """Return a given reply without reasoning that its caller received before it, of replies whose only calls were
    answered here."""
    if given.role != "assistant" or not any(isinstance(part, Reasoning) for part in given.parts):
        return given
    before = takewhile(lambda at: history.entries[at].known_as == "", range(entry.index - 1, -1, -1))
    earlier = {one for at in before for part in history.entries[at].message.parts for one in _identify(part)}
    earlier -= {one for part in entry.message.parts for one in _identify(part)}
    kept = tuple(part for part in given.parts if earlier.isdisjoint(_identify(part)))
    return replace(given, parts=kept, template=entry.message.template) if len(kept) < len(given.parts) else given


def _identify(part: Part) -> Iterator[str]:
    """Yield what tells reasoning from others: its id and what the provider checks, which callers may leave out."""
    if isinstance(part, Reasoning):
        named = ((part.template or {}).get("id"), part.signature, part.data)
        yield from map(str, [*filter(None, named)] or [part.text])


def _encode(message: Message, wire: Wire, card: Card, *, marked: bool) -> dict[str, Any]:
    """Return a body with this message alone. ``marked``: with its cache marks."""
    body, layout = encode(Conversation((message,), origin=wire.name), wire, card=card), wire.layout
    if marked:
        return body
    beside = layout.strip({"content": body.get(layout.system)})["content"]
    return {layout.system: beside, layout.items.field: list(map(layout.strip, body[layout.items.field]))}


def _list_texts(body: dict[str, Any], field: str) -> dict[str, Any]:
    """Return a body whose items have lists of blocks in place of texts."""
    items = [
        {**one, "content": [{"type": "text", "text": one["content"]}]} if isinstance(one["content"], str) else one
        for one in body[field]
    ]
    return {**body, field: items}


def _encode_reply(message: Message, wire: Wire, card: Card) -> list[Any]:
    """Return the items of a reply, without what SDKs and callers add or omit."""
    body = _encode(_normalize_calls(message), wire, card, marked=False)
    return [strip_content(item) for item in body[wire.layout.items.field]]


def _adds(given: list[Any], known: list[Any], wire: Wire) -> bool:
    """Whether an item of a reply is given with a field that the known one does not have, or has empty, and that a
    request may have."""
    return any(
        key not in wire.replies.answer_only and inner not in _EMPTY and before.get(key, "") in _EMPTY
        for item, before in zip(given, known, strict=False)
        for key, inner in item.items()
    )


def _normalize_calls(message: Message) -> Message:
    parts = (
        replace(part, arguments=normalize_arguments(part.arguments)) if isinstance(part, ToolCall) else part
        for part in message.parts
    )
    return message.with_parts(tuple(parts))


def _keeps(given: Any, known: Any) -> bool:
    """Whether a given value has everything that the known one has."""
    if isinstance(known, dict) and isinstance(given, dict):
        return all(inner in _EMPTY or _keeps(given.get(key), inner) for key, inner in known.items())
    if isinstance(known, list) and isinstance(given, list):
        return len(given) == len(known) and all(map(_keeps, given, known))
    return bool(given == known)
