"""Requests that continue a response by its id and are sent as they are: no log has it, or they cannot be whole.

The provider refuses one if the model had also called own tools in that response, which the caller cannot answer, as
it never saw them. It is sent once more, with their outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lading import jsonbytes
from lading.exchange.chains import FoundLog
from lading.exchange.conversations import Conversations
from lading.exchange.effects import Chunk, Deliver, ExchangeSteps, Fetch, Read, Response, Send
from lading.messages import Conversation, Message, Text, ToolResult
from lading.models.catalog import find_card
from lading.session.own_tools import ALL
from lading.wire import Wire, encode
from lading.wire.declarations import read_tools

_GONE = "The result is not available any more. Go on with what you have, or read it again from its source."
_OWN = frozenset([tool.name for tool in ALL])


def send_continued(conversations: Conversations, body: bytes, *, wire: Wire) -> ExchangeSteps:
    """Send a request that is not packed, if it continues a response by its id; once more if that has own calls."""
    previous = _read_previous(body, wire)
    if not previous:
        return
    response: Response = yield Send(body)
    if response.status == 400:
        refusal: bytes = yield Read()
        try:
            answered = _answer_own(body, (yield Fetch(previous)), wire=wire, find_log=conversations.find_log_with)
        except Exception:  # noqa: BLE001 - the provider's error tells the caller more than ours
            answered = None
        if answered is None:
            yield Deliver(refusal)
            return
        yield Send(answered)
    while (chunk := (yield Chunk())) is not None:
        yield Deliver(chunk)
    yield Deliver(b"")


def _read_previous(body: bytes, wire: Wire) -> str:
    """Return the id of the response that a request continues; empty if it continues none."""
    field = wire.layout.items.continues
    if not field or f'"{field}"'.encode() not in body:
        return ""
    try:
        value = jsonbytes.load(body)
    except ValueError:
        return ""
    previous = value.get(field) if isinstance(value, dict) else ""
    return previous if isinstance(previous, str) else ""


def _answer_own(
    body: bytes, response: bytes, *, wire: Wire, find_log: Callable[[str], FoundLog | None]
) -> bytes | None:
    """Return the request with outputs for the own calls of the response that it continues; None if it has none.
    Raises ValueError, LadingError."""
    value, items = jsonbytes.load(body), wire.layout.items
    reply = wire.replies.read(jsonbytes.load(response))
    log = find_log(reply.id)
    known = {result.call_id: result for entry in log.entries for result in entry.message.results} if log else {}
    # No own tool was offered beside one of the caller's that has its name.
    own = _OWN - {tool.name for tool in read_tools(value.get(wire.layout.tools.field), wire=wire)}
    outputs = [
        known.get(call.id) or ToolResult(call.id, (Text(_GONE),), is_error=True, name=call.name)
        for call in reply.message.calls
        if call.name in own
    ]
    given: Any = items.read(value[items.field])
    if not outputs or not isinstance(given, list):
        return None
    conversation = Conversation(tuple(Message("tool", (output,)) for output in outputs), origin=wire.name)
    added = encode(conversation, wire, card=find_card(str(value.get("model", "")))[0])[items.field]
    return jsonbytes.dump(value | {items.field: [*added, *given]})
