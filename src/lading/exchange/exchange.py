"""One call of a client, there and back, as a generator of effects: the order of steps is written here only.

Pack and send; send a smaller request where the provider finds this one too long; hand on the answer, whole or as a
stream; answer ``restore`` and send again. A driver performs each effect and sends in its result, or throws in its
error, and closes the generator when the caller goes. The conversation is released in every case.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias

from msgspec import Struct

from lading.exchange.call import Call, begin
from lading.exchange.conversations import Conversations
from lading.exchange.streamed import StreamedAnswer
from lading.wire import Wire
from lading.wire.replies import SseEvent
from lading.wire.sse import event_of, object_of

_ERROR_CHARS = 2_000


class Send(Struct, frozen=True):
    """Send the caller's request with this body. The result is a ``Response``."""

    body: bytes


class Read(Struct, frozen=True):
    """Read the response to its end. The result is its content."""


class Chunk(Struct, frozen=True):
    """Read on in a streamed response. The result is the next bytes, or None at the end."""


class Deliver(Struct, frozen=True):
    """Hand bytes to the caller: the next piece of a stream after a ``Chunk``, else the whole answer. No result."""

    data: bytes


class Response(Struct, frozen=True):
    """Describe a response whose content is not read yet."""

    status: int
    is_stream: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the provider took the request."""
        return 200 <= self.status < 300


Effect: TypeAlias = Send | Read | Chunk | Deliver
Exchange: TypeAlias = Generator[Effect, Any, None]
"""A call on its way. It packs and stores before its first effect and after the results of ``Read`` and of a last
``Chunk``; it ends after a ``Deliver``. One without any effect is not packed: send the caller's request as it is."""


def exchange(conversations: Conversations, body: bytes, *, wire: Wire, name: str = "") -> Exchange:
    """Pack a request, send it, and hand the answer to the caller. ``name``: of the session, if known."""
    call = begin(conversations, body, wire=wire, name=name)
    if call is None:
        return
    try:
        packed: bytes | None = call.body
        while packed is not None:
            response, content = yield from _send(call, packed)
            if response.is_success and response.is_stream:
                yield from _forward(call)
                return
            content, packed = call.take((yield Read())) if response.is_success else (content, None)
        yield Deliver(content)
    finally:
        call.release()


def _send(call: Call, body: bytes) -> Generator[Effect, Any, tuple[Response, bytes]]:
    """Send a body, and a smaller one where the provider finds it too long; return the response, and the content of
    one that is no success."""
    response: Response = yield Send(body)
    content: bytes = b"" if response.is_success else (yield Read())
    if 400 <= response.status < 500 and (smaller := call.retry(content)) is not None:
        response = yield Send(smaller)
        content = b"" if response.is_success else (yield Read())
    return response, content


def _forward(call: Call) -> Exchange:
    """Forward a streamed answer, which several responses may make up."""
    stream = call.guard(lambda: StreamedAnswer(call), lambda: None)
    try:
        again: bytes | None = call.body
        while again is not None:
            chunk: bytes | None
            while (chunk := (yield Chunk())) is not None:
                yield Deliver(stream.feed(chunk) if stream else chunk)
            rest, again = stream.end() if stream else (b"", None)
            yield Deliver(rest)
            if again is not None:
                response, content = yield from _send(call, again)
                if not response.is_success:
                    yield Deliver(_error_event(content))
                    return
    except Exception:
        if stream:
            stream.lose()
        raise
    finally:
        if stream:
            stream.leave()


def _error_event(content: bytes) -> bytes:
    """Write an error response as both providers report one in the middle of a stream."""
    text = content.decode("utf-8", "replace")
    error = object_of(SseEvent(content, "error", text))
    plain = {"type": "error", "error": {"type": "api_error", "message": text[:_ERROR_CHARS]}}
    return event_of(plain if error is None else error, name="error").raw
