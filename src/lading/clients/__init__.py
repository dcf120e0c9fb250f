"""Clients of provider SDKs, wrapped: their requests are packed on the way out, their replies recorded on the
way back.

The seam is the HTTP request, because every form of a call (create, stream, raw response, the helpers on top)
comes to one there, and because there the bytes are ours.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from lading.clients.lading import Lading
from lading.clients.transport import carried_by
from lading.compaction import DEFAULT, Strategy, When, configured
from lading.errors import InputError, LoopStopped
from lading.events import Event
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import Wrapping
from lading.session.options import DEFAULTS, SessionOptions, check_opening
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
def wrap(client: C, **options: Unpack[Options]) -> C: ...
def wrap(
    client: Any,
    *,
    store: SessionStore | str | os.PathLike[str] | None = None,
    window: int | None = None,
    strategy: str | Strategy = DEFAULT,
    when: When | None = None,
    verbatim: float | None = None,
    output_reserve: int | None = None,
    options: SessionOptions = DEFAULTS,
    fail_open: bool = True,
    on_event: Callable[[Event], None] | None = None,
) -> Any:
    """Return the same client, with every conversation call packed; for ``OpenAI``, ``AsyncOpenAI``, ``Anthropic``,
    ``AsyncAnthropic`` and subclasses. The original client is unchanged; the wrapped one uses its connections, and
    closing either closes them.

    A conversation is recognised by the start of its history; ``client.lading.session(name)`` returns a client for
    one of them by name. ``store``, ``window``, ``strategy``, ``when``, ``verbatim``, ``output_reserve``,
    ``options``: as for ``Session``. When packing fails, the request is sent as the caller made it and ``on_event``
    gets an event; with ``fail_open=False`` the error is raised instead. LoopStopped is raised in any case, if
    ``loop_detection`` is set. Raises InputError for a client of another type, one that is wrapped already, and
    invalid options; UnknownName, StoreError.
    """
    kind: Any = type(client)
    http_client = getattr(client, "_client", None)
    sdks = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if sdks.isdisjoint({"openai", "anthropic"}) or http_client is None:
        raise InputError(
            f"A {kind.__name__} cannot be wrapped. Give an OpenAI, AsyncOpenAI, Anthropic or "
            "AsyncAnthropic client, or use lading.Session with any other."
        )
    if hasattr(client, "lading"):
        raise InputError("This client is wrapped already. Wrap the one it was made from.")
    strategy = configured(strategy, when=when, verbatim=verbatim)
    check_opening(strategy, window=window, output_reserve=output_reserve, options=options)
    wrapping = Wrapping(window, strategy, output_reserve, options, fail_open, _stopped(kind))
    conversations = Conversations(store, wrapping, clock=time.time, on_event=on_event)
    packed: Any = client.copy(http_client=carried_by(http_client, conversations))
    # The SDKs copy a client by calling its class: what belongs to it must be found there.
    own = {
        "lading": property(lambda self: Lading(self, self._client._transport.conversations)),
        "__module__": kind.__module__,
    }
    packed.__class__ = type(kind.__name__, (kind,), own)
    return packed


def _stopped(kind: type[Any]) -> type[LoopStopped]:
    """LoopStopped as an SDK passes it on: Anthropic's takes what is no error of its own for a lost connection, and
    tries again. A copy in another process, which may know nothing of that SDK, is plain."""
    packages = {base.__module__.partition(".")[0] for base in kind.__mro__}
    own = getattr(sys.modules.get("anthropic"), "AnthropicError", None) if "anthropic" in packages else None
    return LoopStopped if own is None else type("LoopStopped", (LoopStopped, own), {"__reduce__": _plainly})


def _plainly(stopped: LoopStopped) -> tuple[Any, ...]:
    make, (_, *args), known = LoopStopped.__reduce__(stopped)
    return make, (LoopStopped, *args), known
