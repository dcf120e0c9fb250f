"""The effects of a call of a client, which its driver performs, and their results."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias

from msgspec import Struct


class Send(Struct, frozen=True):
    """Send the caller's request with this body. The result is a ``Response``."""

    body: bytes


class Read(Struct, frozen=True):
    """Read the response to its end. The result is its content."""


class Chunk(Struct, frozen=True):
    """Read the next bytes of a streamed response. The result is these bytes, or None at the end."""


class Pause(Struct, frozen=True):
    """Wait. No result."""

    seconds: float


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
    retry_after_s: float | None = None
    """When the provider asks to send the request again, if it says so."""


Effect: TypeAlias = Send | Read | Chunk | Pause | Fetch | Deliver
ExchangeSteps: TypeAlias = Generator[Effect, Any, None]
"""A call in progress. It packs and stores before its first effect and after the results of ``Read`` and of the last
``Chunk``; it ends after a ``Deliver``. Without any effect it is not packed: send the caller's request unchanged."""
