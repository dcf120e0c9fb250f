"""The types of wrapped clients, for type checkers: ``wrap`` gives an OpenAI client that also has ``lading``.

Nothing imports this when a program runs, so neither SDK need be installed. What ``wrap`` takes is described by
what the clients have, not by their classes: a class of an SDK that is not installed is ``Any``, and a parameter
of that type would match the clients of the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypedDict, TypeVar

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from lading.clients.lading import Lading
from lading.compaction import Strategy, When
from lading.events import Event
from lading.session.options import SessionOptions
from lading.stores import SessionStore

Closed = TypeVar("Closed", covariant=True)
Awaited = Coroutine[Any, Any, None]


class Options(TypedDict, total=False):
    """The options of ``wrap``."""

    store: SessionStore | str | os.PathLike[str] | None
    window: int | None
    strategy: str | Strategy
    when: When | None
    verbatim: float | None
    output_reserve: int | None
    options: SessionOptions
    fail_open: bool
    on_event: Callable[[Event], None] | None


class OpenAIClient(Protocol[Closed]):
    """A client of the OpenAI SDK; ``close`` gives None, or something to await."""

    @property
    def chat(self) -> object:
        """Chat Completions."""

    @property
    def responses(self) -> object:
        """Responses, which pass through."""

    def close(self) -> Closed:
        """Close it."""


class AnthropicClient(Protocol[Closed]):
    """A client of the Anthropic SDK."""

    @property
    def messages(self) -> object:
        """Messages."""

    @property
    def auth_token(self) -> object:
        """A client for another cloud has none."""

    def close(self) -> Closed:
        """Close it."""


class WrappedOpenAI(OpenAI):
    """What ``wrap`` makes of an ``OpenAI``."""

    lading: Lading[WrappedOpenAI]


class WrappedAsyncOpenAI(AsyncOpenAI):
    """What ``wrap`` makes of an ``AsyncOpenAI``."""

    lading: Lading[WrappedAsyncOpenAI]


class WrappedAnthropic(Anthropic):
    """What ``wrap`` makes of an ``Anthropic``."""

    lading: Lading[WrappedAnthropic]


class WrappedAsyncAnthropic(AsyncAnthropic):
    """What ``wrap`` makes of an ``AsyncAnthropic``."""

    lading: Lading[WrappedAsyncAnthropic]
