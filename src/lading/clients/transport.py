"""The HTTP transport of a wrapped client: it performs the effects of ``exchange`` and sends other requests
unchanged.

OpenAI's and Anthropic's SDKs use httpx or its successor; the client's class shows which one, so that neither is
imported here. The original client sends the requests, with its connections, proxies and hooks.
"""

from __future__ import annotations

import asyncio
import importlib
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Any
from urllib.parse import quote
from weakref import finalize

from lading.clients.pieces import derive
from lading.exchange.call import find_wire_by_path, report_unpacked
from lading.exchange.conversations import Conversations
from lading.exchange.effects import Deliver, Effect, ExchangeSteps, Fetch, Pause, Read, Response, Send
from lading.exchange.exchange import exchange
from lading.request.summary_calls import CALLER, Caller
from lading.session.async_session import in_thread
from lading.wire import Wire

SESSION_HEADER = "x-lading-session"
"""Header with the session name of a request; removed before the request is sent."""
_ERROR = 400
_REPLACED = frozenset({"content-length", "transfer-encoding"})
_OF_CONTENT = _REPLACED | {"content-type", "content-encoding", "idempotency-key"}
_DECODED = frozenset({"content-length", "content-encoding", "transfer-encoding"})
_ONE: Mapping[str, Any] = MappingProxyType({"stream": True, "follow_redirects": False})
"""How the original client sends: the packing client follows redirects, so that its responses have their history."""
_SIGNING_SCHEME = re.compile(r"aws4-|tc3-|acs3-|signature\b|[\w-]*hmac\b", re.IGNORECASE)
_OF_SIGNED_BODY = frozenset(
    {
        "content-digest",
        "digest",
        "content-md5",
        "x-amz-content-sha256",
        "x-content-sha256",
        "x-ms-content-sha256",
        "x-acs-content-sha256",
    }
)
"""Headers with a digest of the body."""


class Transport:
    """The transport of an ``httpx.Client``."""

    def __init__(self, inner: Any, http: Any, conversations: Conversations, *, is_copy: bool = False) -> None:
        """``is_copy``: of a client whose sessions stay open when this one is closed."""
        self._inner, self._http, self.conversations, self._is_copy = inner, http, conversations, is_copy

    def handle_request(self, request: Any) -> Any:
        """Send one request, packed where it is a conversation call."""
        wire = _find_wire(self.conversations, request)
        name = _take_name(request)
        if wire is None:
            return self._inner.send(request, **_ONE)
        steps = exchange(self.conversations, request.read(), wire=wire, name=name, path=request.url.path)
        flight = _HttpExchange(self._http, request, steps, self.conversations)
        if (effect := self._advance(flight, None)) is None:
            return self._inner.send(request, **_ONE)
        while isinstance(effect, Send | Read | Fetch):
            effect = self._advance(flight, effect)
        if isinstance(effect, Deliver):
            next(steps, None)
            return flight.answer(content=effect.data)
        pieces = self._relay(flight, effect)
        methods = {"__iter__": lambda _: pieces, "close": lambda _: flight.close()}
        return flight.answer(stream=type("Answer", (self._http.SyncByteStream,), methods)())

    def _advance(self, flight: _HttpExchange, effect: Effect | None) -> Effect | None:
        """Perform an effect and return the next."""
        try:
            if isinstance(effect, Send):
                response = self._inner.send(flight.request(effect.body), **_ONE)
                return flight.step(flight.receive(response, response.iter_bytes()))
            if isinstance(effect, Fetch):
                found = self._inner.send(flight.find(effect.id))
                return flight.step(found.content if found.is_success else b"")
            if isinstance(effect, Pause):
                time.sleep(effect.seconds)
            if effect is None or isinstance(effect, Pause):
                return flight.step(None)
            return flight.step(flight.response.read() if isinstance(effect, Read) else next(flight.chunks, None))
        except BaseException as error:  # noqa: BLE001 - raised again by the exchange
            return flight.step(error)

    def _relay(self, flight: _HttpExchange, effect: Effect | None) -> Generator[bytes, None, None]:
        """Yield the bytes of a streamed answer."""
        try:
            while effect:
                if isinstance(effect, Deliver):
                    yield effect.data
                    effect = next(flight.steps, None)
                else:
                    effect = self._advance(flight, effect)
        finally:
            flight.close()

    def close(self) -> None:
        """Close the original client and all sessions."""
        self._inner.close()
        if not self._is_copy:
            self.conversations.close()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncTransport:
    """The transport of an ``httpx.AsyncClient``; packing and storing run in threads."""

    def __init__(self, inner: Any, http: Any, conversations: Conversations, *, is_copy: bool = False) -> None:
        """``is_copy``: as for ``Transport``."""
        self._inner, self._http, self.conversations, self._is_copy = inner, http, conversations, is_copy

    async def handle_async_request(self, request: Any) -> Any:
        """Send one request, packed where it is a conversation call."""
        wire = _find_wire(self.conversations, request)
        name = _take_name(request)
        if wire is None:
            return await self._inner.send(request, **_ONE)
        steps = exchange(self.conversations, await request.aread(), wire=wire, name=name, path=request.url.path)
        flight = _HttpExchange(self._http, request, steps, self.conversations)
        if (effect := await self._advance(flight, None)) is None:
            return await self._inner.send(request, **_ONE)
        while isinstance(effect, Send | Read | Fetch):
            effect = await self._advance(flight, effect)
        if isinstance(effect, Deliver):
            next(steps, None)
            return flight.answer(content=effect.data)
        stream = derive(self._http.AsyncByteStream)(partial(self._advance, flight), flight, effect)
        # Keeps the provider's answer until the caller's is gone: an event loop closes generators that are collected
        # together in any order, and some of them twice.
        finalize(stream, id, flight).atexit = False
        return flight.answer(stream=stream)

    async def _advance(self, flight: _HttpExchange, effect: Effect | None) -> Effect | None:
        """Perform an effect and return the next. Steps that pack or store run in a thread."""
        try:
            if isinstance(effect, Send):
                response = await self._inner.send(flight.request(effect.body), **_ONE)
                return flight.step(flight.receive(response, response.aiter_bytes()))
            if isinstance(effect, Fetch):
                found = await self._inner.send(flight.find(effect.id))
                return await in_thread(partial(flight.step, found.content if found.is_success else b""))
            if isinstance(effect, Read):
                return await in_thread(partial(flight.step, await flight.response.aread()))
            if isinstance(effect, Pause):
                await asyncio.sleep(effect.seconds)
            elif effect and (chunk := await anext(flight.chunks, None)) is not None:
                return flight.step(chunk)
            return await in_thread(partial(flight.step, None))
        except BaseException as error:  # noqa: BLE001 - raised again by the exchange
            return flight.step(error)

    async def aclose(self) -> None:
        """Close the original client and all sessions."""
        await self._inner.aclose()
        if not self._is_copy:
            await asyncio.to_thread(self.conversations.close)

    async def __aenter__(self) -> AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _HttpExchange:
    """One call over an HTTP library: the caller's request and the newest response."""

    def __init__(self, http: Any, request: Any, steps: ExchangeSteps, conversations: Conversations) -> None:
        self._http, self._request, self.steps = http, request, steps
        self.caller = Caller(conversations, request.url, request.headers, CALLER.get())
        self.response: Any = None
        self.chunks: Any = None

    def step(self, value: Any) -> Effect | None:
        """Take the next step with what the last effect gave (None, an error). Functions of the caller that run in
        it see which request it is a part of; nothing else does, also where tasks share a context."""
        token = CALLER.set(self.caller)
        try:
            if isinstance(value, BaseException):
                return self.steps.throw(value)
            return next(self.steps, None) if value is None else self.steps.send(value)
        finally:
            CALLER.reset(token)

    def request(self, body: bytes) -> Any:
        """Return the caller's request with another body."""
        made = self._request
        headers = [(key, value) for key, value in made.headers.multi_items() if key.lower() not in _REPLACED]
        return self._http.Request(made.method, made.url, headers=headers, content=body, extensions=made.extensions)

    def find(self, response_id: str) -> Any:
        """Return the request for a stored response of this endpoint."""
        made = self._request
        headers = [(key, value) for key, value in made.headers.multi_items() if key.lower() not in _OF_CONTENT]
        url = made.url.copy_with(path=f"{made.url.path}/{quote(response_id, safe='')}")
        return self._http.Request("GET", url, headers=headers, extensions=made.extensions)

    def receive(self, response: Any, chunks: Any) -> Response:
        """Keep a response and its byte iterator; return its status and type."""
        self.response, self.chunks = response, chunks
        kind = response.headers.get("content-type", "").lower()
        # Some servers stream with another type, or none.
        is_stream = True if "text/event-stream" in kind else False if "json" in kind else None
        if response.status_code < _ERROR:
            return Response(response.status_code, is_stream)
        return Response(response.status_code, is_stream, _read_retry_after(response.headers))

    def answer(self, *, content: bytes = b"", stream: Any = None) -> Any:
        """Return the response for the caller: the newest one with another body, which is already decoded."""
        made = self.response
        headers = [(key, value) for key, value in made.headers.multi_items() if key.lower() not in _DECODED]
        if stream is None:
            # A response with content counts as read, and its timer would never end.
            stream = self._http.ByteStream(content)
            headers.append(("content-length", str(len(content))))
        # The extensions carry the reason phrase and the version of the protocol.
        return self._http.Response(made.status_code, headers=headers, stream=stream, extensions=made.extensions)

    def close(self) -> None:
        """End the exchange and close its newest response."""
        with closing(self.response):
            self.steps.close()

    async def aclose(self) -> None:
        """End the exchange and close its newest response."""
        with closing(self.steps):
            await self.response.aclose()
            if not self.chunks.ag_running:
                await self.chunks.aclose()


def _read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which to send a request again; None: they are not given as a number."""
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            if 0 <= (seconds := float(headers.get(name, "")) / per_second) < inf:
                return seconds
    return None


def _find_wire(conversations: Conversations, request: Any) -> Wire | None:
    """Return the provider format of a request; None if it is sent as it came."""
    wire = find_wire_by_path(conversations, request.method, path=request.url.path)
    if wire is None:
        return None
    if (around := CALLER.get()) and around.is_of(conversations):
        # Packing it would ask the same function again, and so on without end.
        advice = "Ask with lading.Session or another wrapped client in such a function to have it packed."
        report_unpacked(conversations, "a call by a function that a request waits for", advice=advice)
        return None
    if _has_signed_body(request.headers):
        advice = "Use an API key, which signs nothing, to have it packed, or lading.Session."
        report_unpacked(conversations, "a request with a signed body", advice=advice)
        return None
    return wire


def _has_signed_body(headers: Mapping[str, str]) -> bool:
    """Whether a request is signed for its body, such as by AWS's SigV4: with another body it would be refused."""
    scheme = _SIGNING_SCHEME.match(headers.get("authorization", ""))
    return scheme is not None or not _OF_SIGNED_BODY.isdisjoint(headers)


def _take_name(request: Any) -> str:
    """Move the header with the session's name to the extensions, where the request that follows a redirect finds it
    too."""
    if name := request.headers.pop(SESSION_HEADER, ""):
        request.extensions[SESSION_HEADER] = name
    return str(request.extensions.get(SESSION_HEADER, ""))


_TRANSPORTS = {"Client": Transport, "AsyncClient": AsyncTransport}


def make_packing_client(inner: Any, conversations: Conversations, *, is_copy: bool = False) -> Any:
    """Return an HTTP client that packs conversation calls and sends all requests through ``inner``. ``is_copy``:
    closing it closes no session. Raises TypeError if ``inner`` is not a client of httpx."""
    # A client adds these when it makes a request, and ``inner`` does not add them again when it sends one.
    made = {"headers": inner.headers, "cookies": inner.cookies, "params": inner.params, "timeout": inner.timeout}
    # It makes the caller's responses; httpx has no public name for their encoding.
    made |= {"follow_redirects": inner.follow_redirects, "max_redirects": inner.max_redirects}
    made["default_encoding"] = getattr(inner, "_default_encoding", "utf-8")
    for kind in type(inner).__mro__:
        package, transport = kind.__module__.partition(".")[0], _TRANSPORTS.get(kind.__name__)
        if package.startswith("httpx") and transport:
            http = importlib.import_module(package)
            return kind(transport=transport(inner, http, conversations, is_copy=is_copy), **made)
    raise TypeError(f"{type(inner).__name__} is not a client of httpx")


def make_preparing(kind: Any, conversations: Conversations) -> Mapping[str, Callable[[Any, Any], Any]]:
    """Return the methods by which an SDK's client prepares each URL and each request. Only the first sees a
    websocket's, such as that of ``responses.connect``: what goes over it is no HTTP request, and is not packed. The
    second removes the session's name, which is not sent, before some clients sign the headers."""

    def prepare_url(client: Any, url: str) -> Any:
        prepared = kind._prepare_url(client, url)
        if prepared.scheme in ("ws", "wss"):
            report_unpacked(conversations, f"the websocket .../{prepared.path.rpartition('/')[2]}")
        return prepared

    def prepare_request(client: Any, request: Any) -> Any:
        _take_name(request)
        return kind._prepare_request(client, request)

    return {"_prepare_url": prepare_url, "_prepare_request": prepare_request}
