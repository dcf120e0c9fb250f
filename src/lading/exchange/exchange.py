"""One call of a client as a generator of effects, so that the sync and async transports share the order of steps.

Pack and send; send a smaller request if the provider finds this one too long; deliver the answer, whole or as a
stream; answer the session's own tools and send again. A driver performs each effect and sends its result into the
generator, or throws its error, and closes or drops the generator when the caller leaves: ``Endings`` then ends the
call. The conversation is released in every case.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from lading.exchange.call import PackedCall, begin
from lading.exchange.continued import answer_own, read_previous
from lading.exchange.conversations import Conversations
from lading.exchange.streamed import StreamedAnswer
from lading.wire import Wire


class Send(Struct, frozen=True):
    """Send the caller's request with this body. The result is a ``Response``."""

    body: bytes


class Read(Struct, frozen=True):
    """Read the response to its end. The result is its content."""


class Chunk(Struct, frozen=True):
    """Read the next bytes of a streamed response. The result is these bytes, or None at the end."""


class Fetch(Struct, frozen=True):
    """Get the stored response of this id from the provider. The result is its content; empty if there is none."""

    id: str


class Deliver(Struct, frozen=True):
    """Pass bytes to the caller: the next piece of a stream after a ``Chunk``, else the whole answer. No result."""

    data: bytes


class Response(Struct, frozen=True):
    """A response whose content is not read yet."""

    status: int
    is_stream: bool | None = False
    """None: its type does not say; it is what the request asked for."""

    @property
    def is_success(self) -> bool:
        """Whether the provider accepted the request."""
        return 200 <= self.status < 300


Effect: TypeAlias = Send | Read | Chunk | Fetch | Deliver
ExchangeSteps: TypeAlias = Generator[Effect, Any, None]
"""A call in progress. It packs and stores before its first effect and after the results of ``Read`` and of the last
``Chunk``; it ends after a ``Deliver``. Without any effect it is not packed: send the caller's request unchanged."""


def exchange(
    conversations: Conversations, body: bytes, *, wire: Wire, name: str = "", path: str = ""
) -> ExchangeSteps:
    """Pack a request, send it, and pass the answer to the caller. ``name``: of the session, if known. ``path``: of
    the endpoint, which may contain fields of the request."""
    call = begin(conversations, body, wire=wire, name=name, path=path)
    if call is None:
        yield from _continue(conversations, body, wire)
        return
    end = call.release
    try:
        packed: bytes | None = call.body
        while packed is not None:
            response, content = yield from _send(call, packed)
            is_stream = call.is_streamed if response.is_stream is None else response.is_stream
            if response.is_success and is_stream:
                stream = call.guard(lambda: StreamedAnswer(call), lambda: None)
                end = stream.leave if stream else end
                yield from _forward(call, stream)
                return
            content, packed = call.take((yield Read())) if response.is_success else (content, None)
        yield Deliver(content)
    except GeneratorExit:
        # The caller left, or the garbage collector closes what it dropped; nobody receives an error.
        call.fail_open, end = True, partial(conversations.endings.add, end)
        raise
    finally:
        end()


def _continue(conversations: Conversations, body: bytes, wire: Wire) -> ExchangeSteps:
    """Send a request that is not packed, if it continues a response by its id; once more if that has own calls."""
    previous = read_previous(body, wire)
    if not previous:
        return
    response: Response = yield Send(body)
    if response.status == 400:
        refusal: bytes = yield Read()
        try:
            answered = answer_own(body, (yield Fetch(previous)), wire=wire, find_log=conversations.find_log_with)
        except Exception:  # noqa: BLE001 - the provider's error tells the caller more than ours
            answered = None
        if answered is None:
            yield Deliver(refusal)
            return
        yield Send(answered)
    while (chunk := (yield Chunk())) is not None:
        yield Deliver(chunk)
    yield Deliver(b"")


def _send(call: PackedCall, body: bytes) -> Generator[Effect, Any, tuple[Response, bytes]]:
    """Send a body, and a smaller one if the provider finds it too long. Return the response, and its content if it
    is an error."""
    response: Response = yield Send(body)
    content: bytes = b"" if response.is_success else (yield Read())
    if 400 <= response.status < 500 and (smaller := call.retry(content)) is not None:
        response = yield Send(smaller)
        content = b"" if response.is_success else (yield Read())
    return response, content


def _forward(call: PackedCall, stream: StreamedAnswer | None) -> ExchangeSteps:
    """Forward a streamed answer, which may consist of several responses."""
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
                    yield Deliver(call.session.wire.replies.error_event(content))
                    return
    except Exception:
        if stream and (rest := stream.lose()):
            yield Deliver(rest)
        raise
