"""One call of a client as a generator of effects, so that the sync and async transports share the order of steps.

Pack and send; send a smaller request if the provider finds this one too long; deliver the answer, whole or as a
stream; answer the session's own tools and send again. A driver performs each effect and sends its result into the
generator, or throws its error, and closes or drops the generator when the caller leaves: ``Endings`` then ends the
call. The conversation is released in every case.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from lading.exchange.call import PackedCall, begin
from lading.exchange.continued import send_continued
from lading.exchange.conversations import Conversations
from lading.exchange.effects import Chunk, Deliver, Effect, ExchangeSteps, Pause, Read, Response, Send
from lading.exchange.streamed import StreamedAnswer
from lading.wire import Wire

_TRANSIENT, _SERVER_ERROR = (408, 409, 429), 500
_PAUSES_S, _MOST_PAUSE_S = (0.5, 1.0), 8.0
"""As in the SDKs of Anthropic and OpenAI: two retries."""


def exchange(
    conversations: Conversations, body: bytes, *, wire: Wire, name: str = "", path: str = ""
) -> ExchangeSteps:
    """Pack a request, send it, and pass the answer to the caller. ``name``: of the session, if known. ``path``: of
    the endpoint, which may contain fields of the request."""
    call = begin(conversations, body, wire=wire, name=name, path=path)
    if call is None:
        yield from send_continued(conversations, body, wire=wire)
        return
    end = call.release
    try:
        packed: bytes | None = call.body
        while packed is not None:
            response, content = yield from _send(call, packed)
            is_stream = call.is_streamed if response.is_stream is None else response.is_stream
            if _is_success(response) and is_stream:
                stream = call.guard(lambda: StreamedAnswer(call), lambda: None)
                end = stream.leave if stream else end
                yield from _forward(call, stream)
                return
            content, packed = call.take((yield Read())) if _is_success(response) else (content, None)
        yield Deliver(content)
    except GeneratorExit:
        # The caller left, or the garbage collector closes what it dropped; nobody receives an error.
        call.fail_open, end = True, partial(conversations.endings.add, end)
        raise
    finally:
        end()


def _is_success(response: Response) -> bool:
    return 200 <= response.status < 300


def _send(call: PackedCall, body: bytes) -> Generator[Effect, Any, tuple[Response, bytes]]:
    """Send a body, and a smaller one if the provider finds it too long. Return the response, and its content if it
    is an error."""
    response: Response = yield Send(body)
    content: bytes = b"" if _is_success(response) else (yield Read())
    if 400 <= response.status < 500 and (smaller := call.retry(content)) is not None:
        response = yield Send(smaller)
        content = b"" if _is_success(response) else (yield Read())
    return response, content


def _send_patiently(call: PackedCall, body: bytes) -> Generator[Effect, Any, tuple[Response, bytes]]:
    """Send a body like ``_send``, and again after an error that SDKs retry: the caller's SDK, which has a part of
    its answer, cannot."""
    for pause_s in _PAUSES_S:
        response, content = yield from _send(call, body)
        if response.status not in _TRANSIENT and response.status < _SERVER_ERROR:
            return response, content
        yield Pause(pause_s if response.retry_after_s is None else min(response.retry_after_s, _MOST_PAUSE_S))
    return (yield from _send(call, body))


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
                response, content = yield from _send_patiently(call, again)
                if not _is_success(response):
                    yield Deliver(call.session.wire.replies.error_event(content))
                    return
    except Exception:
        if stream and (rest := stream.lose()):
            yield Deliver(rest)
        raise
