"""Convert what a caller gives as a reply to one: a body, an SDK's object, or the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from lading import jsonbytes
from lading.errors import InputError, WireError
from lading.wire import Wire
from lading.wire.coercion import messages_from, plain
from lading.wire.replies import Reply, SseEvent, make_event


def reply_from(response: object, *, wire: Wire) -> Reply:
    """Convert a response body (dict, JSON or SDK object), or the events of a stream, which is read to its end, to a
    reply. Raises WireError, InputError."""
    if isinstance(response, Reply):
        return response
    value = _parse_json(response) if isinstance(response, str | bytes) else plain(response)
    if isinstance(value, dict):
        answered = wire.replies.read(jsonbytes.make_finite(value))
    elif isinstance(response, Iterable):
        stream = wire.replies.stream(frozenset())
        for item in response:
            stream.feed(_convert_event(plain(item)))
        answered = stream.reply()
    else:
        raise InputError(f"A {type(response).__name__} is no response of a provider, nor a stream of one.")
    return replace(answered, message=messages_from(answered.message, wire=wire)[0])


def is_stream(response: object) -> bool:
    """Whether a response that ``reply_from`` takes is the events of a stream."""
    return not isinstance(response, Reply | str | bytes) and not isinstance(plain(response), dict)


def error_text(error: object) -> str:
    """Return the text of an error together with the body of an SDK's exception."""
    bodies = [holder for holder in (getattr(error, "body", None), error) if isinstance(holder, dict)]
    return "\n".join([str(error), *(json.dumps(body, default=str) for body in bodies)])


def _parse_json(response: str | bytes) -> Any:
    try:
        return jsonbytes.load(response, read=jsonbytes.read_finite)
    except ValueError as error:
        raise WireError(f"The response is no JSON ({error}). Give the whole body.") from error


def _convert_event(value: Any) -> SseEvent:
    """Convert an event of an SDK's stream to the provider's form."""
    if not isinstance(value, dict):
        raise WireError(f"A stream gave a {type(value).__name__} where an event is expected.")
    return make_event(value, name=str(value.get("type", "")))
