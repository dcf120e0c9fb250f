"""Wrap the client of a provider's SDK: pack each request before it is sent and record each reply.

Requests are intercepted at the HTTP level: every form of a call (create, stream, raw response, helpers) ends in one
HTTP request, whose bytes are known there. Knows no provider format. Start with ``transport.py``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from lading.clients import genai
from lading.clients.lading import Lading
from lading.clients.transport import SESSION_HEADER, make_packing_client, make_preparing
from lading.compaction import DEFAULT, Strategy, When, apply_options
from lading.effects import ContextProvider, Provide, Summarize, Summarizer
from lading.errors import InputError, LoopStopped
from lading.events import Event
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import WrapOptions
from lading.memory.agent_memory import AgentMemory
from lading.request.summary_calls import find_sdk
from lading.session.options import (
    DEFAULTS,
    SessionOptions,
    add_providers,
    add_summarizer,
    bind_memory,
    check_opening,
)
from lading.stores import SessionStore

if TYPE_CHECKING:
    from lading.clients import wrapped
    from lading.clients.wrapped import Awaited, Options

C = TypeVar("C")


@overload
def wrap(client: wrapped.OpenAIClient[None], **options: Unpack[Options]) -> wrapped.WrappedOpenAI: ...
@overload
def wrap(client: wrapped.OpenAIClient[Awaited], **options: Unpack[Options]) -> wrapped.WrappedAsyncOpenAI: ...
@overload
def wrap(client: wrapped.AnthropicClient[None], **options: Unpack[Options]) -> wrapped.WrappedAnthropic: ...
@overload
def wrap(client: wrapped.AnthropicClient[Awaited], **options: Unpack[Options]) -> wrapped.WrappedAsyncAnthropic: ...
@overload
def wrap(client: wrapped.GenaiClient, **options: Unpack[Options]) -> wrapped.WrappedGenai: ...
@overload
def wrap(client: C, **options: Unpack[Options]) -> C: ...
def wrap(
    client: Any,
    *,
    store: SessionStore | str | os.PathLike[str] | None = None,
    window: int | None = None,
    strategy: str | Strategy = DEFAULT,
    when: When | None = None,
    summarizer: Summarizer | Summarize | str | None = None,
    providers: Iterable[ContextProvider | Provide] = (),
    memory: AgentMemory | None = None,
    output_reserve: int | None = None,
    options: SessionOptions = DEFAULTS,
    fail_open: bool = True,
    on_event: Callable[[Event], None] | None = None,
) -> Any:
    """Return a copy of the client that packs every conversation call; for ``OpenAI``, ``AsyncOpenAI``,
    ``Anthropic``, ``AsyncAnthropic``, google-genai's ``Client`` and subclasses. The original client is unchanged.
    Both share connections, and closing either closes them.

    A conversation is recognised by the start of its history; ``client.lading.session(name)`` returns a client for
    the conversation of that name. ``store``, ``window``, ``strategy``, ``when``, ``providers``, ``memory``,
    ``output_reserve``, ``options``: as for ``Session``; calls of own tools are answered unseen. ``summarizer``:
    also "self", the model of the conversation, which reads the prompt that its cache holds, or "provider:model"
    of the client's provider. When packing fails, the request is sent as the caller made it and ``on_event``
    receives an event; with ``fail_open=False`` the error is raised instead. LoopStopped is always raised, if
    ``loop_detection`` is set. Raises InputError for a client of another type, a client that is wrapped already,
    and invalid options; UnknownName; StoreError.
    """
    kind: Any = type(client)
    http_client = getattr(client, "_client", None)
    is_genai = genai.is_genai(client)
    sdk = find_sdk(client)
    if not is_genai and (not sdk or http_client is None):
        raise InputError(
            f"A {kind.__name__} cannot be wrapped. Give an OpenAI, AsyncOpenAI, Anthropic or AsyncAnthropic "
            "client, a Client of google-genai, or use lading.Session with any other."
        )
    if hasattr(client, "lading"):
        raise InputError("This client is wrapped already. Wrap the one it was made from.")
    check_opening(strategy, window=window, output_reserve=output_reserve, options=options)
    bind_memory(memory, (options.tenant, "session"))
    strategy = apply_options(strategy, when=when, verbatim=options.verbatim)
    options = add_providers(add_summarizer(options, summarizer, client=client), providers)
    wrapping = WrapOptions(window, strategy, output_reserve, options, fail_open, _make_stop_error(sdk), memory)
    conversations = Conversations(store, wrapping, clock=time.time, on_event=on_event)
    if is_genai:
        found = {"lading": property(_find_genai_lading)}
        return genai.replace_http(client, lambda http: make_packing_client(http, conversations), own=found)
    packed: Any = client.copy(http_client=make_packing_client(http_client, conversations))
    # The SDKs copy a client by calling its class, so the added property must be on the class.
    copy = _make_copy(kind, conversations)
    own = {
        "lading": property(_find_lading),
        "copy": copy,
        "with_options": copy,
        "__module__": kind.__module__,
        **make_preparing(kind, conversations),
    }
    packed.__class__ = type(kind.__name__, (kind,), own)
    return packed


def _make_copy(kind: Any, conversations: Conversations) -> Callable[..., Any]:
    """Return the method by which an SDK's client is copied: also with another HTTP client or other headers, the
    copy packs its calls, in the session of the client's name."""

    @wraps(kind.copy)
    def copy(client: Any, **changed: Any) -> Any:
        if (http_client := changed.get("http_client")) not in (None, client._client):
            changed["http_client"] = make_packing_client(http_client, conversations, is_copy=True)
        name = client.default_headers.get(SESSION_HEADER)
        if (headers := changed.get("set_default_headers")) is not None and name:
            changed["set_default_headers"] = {SESSION_HEADER: name, **headers}
        return kind.copy(client, **changed)

    return copy


def _find_lading(client: Any) -> Lading[Any]:
    name = client.default_headers.get(SESSION_HEADER, "")
    return Lading(client, client._client._transport.conversations, name=name)


def _find_genai_lading(client: Any) -> Lading[Any]:
    name = genai.find_headers(client).get(SESSION_HEADER, "")
    return Lading(client, genai.find_transport(client).conversations, name=name)


def _make_stop_error(sdk: str) -> type[LoopStopped]:
    """Return the subclass of LoopStopped that this SDK passes on. Anthropic's SDK treats any error that is
    not its own as a lost connection and retries. Unpickling gives a plain LoopStopped, because another process may
    not have the SDK."""
    own = getattr(sys.modules.get("anthropic"), "AnthropicError", None) if sdk == "anthropic" else None
    return LoopStopped if own is None else type("LoopStopped", (LoopStopped, own), {"__reduce__": _reduce_to_plain})


def _reduce_to_plain(stopped: LoopStopped) -> tuple[Any, ...]:
    make, (_, *args), known = LoopStopped.__reduce__(stopped)
    return make, (LoopStopped, *args), known
