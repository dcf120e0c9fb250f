"""The transport under a wrapped client: conversation calls go through ``Call``, everything else as it is.

OpenAI's and Anthropic's SDKs use httpx or its successor; which one is asked of the client, so that neither is
imported here. Requests are sent by the client that was wrapped, with its connections, proxies and hooks.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Generator
from functools import partial
from typing import Any

from lading import jsonbytes
from lading.exchange.call import Call, begin
from lading.exchange.conversations import Conversations
from lading.exchange.unpacked import wire_of
from lading.session.async_session import in_thread
from lading.wire.sse import event_of

SESSION_HEADER = "x-lading-session"
"""Names the session of a request; taken off before it is sent."""
_REPLACED = frozenset({"content-length", "transfer-encoding"})
_ERROR_CHARS = 2_000
_DECODED = frozenset({"content-length", "content-encoding", "transfer-encoding"})


def carried_by(inner: Any, conversations: Conversations) -> Any:
    """An HTTP client that packs conversation calls and sends everything by ``inner``."""
    http, is_async = _library(inner)
    # What a client adds when a request is made is not added again when it is sent.
    made = {"headers": inner.headers, "cookies": inner.cookies, "params": inner.params, "timeout": inner.timeout}
    if is_async:
        return http.AsyncClient(transport=AsyncTransport(inner, http, conversations), **made)
    return http.Client(transport=Transport(inner, http, conversations), **made)


def _library(client: Any) -> tuple[Any, bool]:
    """The HTTP library that a client is of, and whether it is asynchronous."""
    for kind in type(client).__mro__:
        package = kind.__module__.partition(".")[0]
        if package.startswith("httpx") and kind.__name__ in ("Client", "AsyncClient"):
            return importlib.import_module(package), kind.__name__ == "AsyncClient"
    raise TypeError(f"{type(client).__name__} is no client of httpx")


class Transport:
    """What an ``httpx.Client`` sends by."""

    def __init__(self, inner: Any, http: Any, conversations: Conversations) -> None:
        self._inner, self._http, self.conversations = inner, http, conversations

    def handle_request(self, request: Any) -> Any:
        """Send one request, packed where it is a conversation call."""
        wire = wire_of(self.conversations, request.method, path=request.url.path)
        name = request.headers.pop(SESSION_HEADER, "")
        call = begin(self.conversations, request.read(), wire=wire, name=name) if wire else None
        if call is None:
            return self._inner.send(request, stream=True)
        with _Held(call) as held:
            response = self._send(request, call.body)
            if response.is_client_error:
                smaller = call.retry(response.status_code, response.read().decode("utf-8", "replace"))
                response = response if smaller is None else self._send(request, smaller)
            if not response.is_success:
                return _whole(self._http, response, response.read())
            if _is_stream(response):
                held.keep()
                call.stream()
                return self._streamed(request, call, response)
            shown, again = call.take(response.read())
            while again is not None:
                response = self._send(request, again)
                if not response.is_success:
                    return _whole(self._http, response, response.read())
                shown, again = call.take(response.read())
            return _whole(self._http, response, shown)

    def _send(self, request: Any, body: bytes) -> Any:
        return self._inner.send(_with_body(self._http, request, body), stream=True)

    def _streamed(self, request: Any, call: Call, response: Any) -> Any:
        chunks = self._relay(request, call, response)

        def close(_: Any) -> None:
            chunks.close()
            # One that was never read has not begun, and its end is not run.
            response.close()
            call.done()

        methods = {"__iter__": lambda _: chunks, "close": close}
        return _streamed(self._http, response, kind="SyncByteStream", methods=methods)

    def _relay(self, request: Any, call: Call, response: Any) -> Generator[bytes, None, None]:
        """The bytes of a streamed answer, which may be made of several responses."""
        try:
            while True:
                for chunk in response.iter_bytes():
                    yield call.feed(chunk)
                response.close()
                rest, again = call.end()
                yield rest
                if again is None:
                    return
                response = self._send(request, again)
                if not response.is_success:
                    yield _error_event(response.read())
                    return
        except Exception:
            call.lost()
            raise
        finally:
            response.close()
            call.done()

    def close(self) -> None:
        """Close the client that sends, and let go of the sessions."""
        self._inner.close()
        self.conversations.close()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncTransport:
    """What an ``httpx.AsyncClient`` sends by; packing and storing run in threads."""

    def __init__(self, inner: Any, http: Any, conversations: Conversations) -> None:
        self._inner, self._http, self.conversations = inner, http, conversations

    async def handle_async_request(self, request: Any) -> Any:
        """Send one request, packed where it is a conversation call."""
        wire = wire_of(self.conversations, request.method, path=request.url.path)
        name, call = request.headers.pop(SESSION_HEADER, ""), None
        if wire:
            sent = await request.aread()
            packing = partial(begin, self.conversations, sent, wire=wire, name=name)
            call = await in_thread(packing, undo=_let_go)
        if call is None:
            return await self._inner.send(request, stream=True)
        with _Held(call) as held:
            response = await self._send(request, call.body)
            if not response.is_success:
                text = (await response.aread()).decode("utf-8", "replace")
                smaller = await in_thread(partial(call.retry, response.status_code, text))
                response = response if smaller is None else await self._send(request, smaller)
            if not response.is_success:
                return _whole(self._http, response, await response.aread())
            if _is_stream(response):
                held.keep()
                call.stream()
                return self._streamed(request, call, response)
            shown, again = await in_thread(partial(call.take, await response.aread()))
            while again is not None:
                response = await self._send(request, again)
                if not response.is_success:
                    return _whole(self._http, response, await response.aread())
                shown, again = await in_thread(partial(call.take, await response.aread()))
            return _whole(self._http, response, shown)

    async def _send(self, request: Any, body: bytes) -> Any:
        return await self._inner.send(_with_body(self._http, request, body), stream=True)

    def _streamed(self, request: Any, call: Call, response: Any) -> Any:
        chunks = self._relay(request, call, response)

        async def aclose(_: Any) -> None:
            await chunks.aclose()
            # One that was never read has not begun, and its end is not run.
            await response.aclose()
            call.done()

        methods = {"__aiter__": lambda _: chunks, "aclose": aclose}
        return _streamed(self._http, response, kind="AsyncByteStream", methods=methods)

    async def _relay(self, request: Any, call: Call, response: Any) -> AsyncGenerator[bytes, None]:
        """The bytes of a streamed answer, which may be made of several responses."""
        try:
            while True:
                async for chunk in response.aiter_bytes():
                    yield call.feed(chunk)
                await response.aclose()
                rest, again = await in_thread(call.end)
                yield rest
                if again is None:
                    return
                response = await self._send(request, again)
                if not response.is_success:
                    yield _error_event(await response.aread())
                    return
        except Exception:
            call.lost()
            raise
        finally:
            await response.aclose()
            call.done()

    async def aclose(self) -> None:
        """Close the client that sends, and let go of the sessions."""
        await self._inner.aclose()
        await asyncio.to_thread(self.conversations.close)

    async def __aenter__(self) -> AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _let_go(call: Call | None) -> None:
    """End a call whose caller is gone, so that the next one finds the conversation free."""
    if call is not None:
        call.done()


class _Held:
    """A call that is over when this is left, unless a stream keeps it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._kept = False

    def keep(self) -> None:
        self._kept = True

    def __enter__(self) -> _Held:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._kept:
            self._call.done()


def _with_body(http: Any, request: Any, body: bytes) -> Any:
    """The request with another body, and without what is ours alone."""
    headers = [(key, value) for key, value in request.headers.multi_items() if key.lower() not in _REPLACED]
    return http.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)


def _whole(http: Any, response: Any, content: bytes) -> Any:
    return http.Response(response.status_code, content=content, **_opening(response))


def _streamed(http: Any, response: Any, *, kind: str, methods: dict[str, Any]) -> Any:
    """A response whose body is a stream of that kind of the library, made of these methods."""
    stream = type("Answer", (getattr(http, kind),), methods)()
    return http.Response(response.status_code, stream=stream, **_opening(response))


def _opening(response: Any) -> dict[str, Any]:
    """What of a response stands before its body; that is decoded already."""
    headers = [(key, value) for key, value in response.headers.multi_items() if key.lower() not in _DECODED]
    # The extensions carry the reason phrase and the version of the protocol.
    return {"headers": headers, "extensions": response.extensions}


def _is_stream(response: Any) -> bool:
    return "text/event-stream" in response.headers.get("content-type", "")


def _error_event(data: bytes) -> bytes:
    """An error in the middle of a stream, as both providers send it."""
    try:
        error = jsonbytes.load(data)
    except ValueError:
        error = None
    if not isinstance(error, dict):
        text = data.decode("utf-8", "replace")[:_ERROR_CHARS]
        error = {"type": "error", "error": {"type": "api_error", "message": text}}
    return event_of(error, name="error").raw
