"""The types of wrapped clients, for type checkers: ``wrap`` returns an OpenAI client that also has ``lading``.

This module is never imported at run time, so no SDK need be installed. The parameters of ``wrap`` are
protocols: a class of an SDK that is not installed is ``Any``, which would match the clients of the other SDK.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol, TypedDict, TypeVar

from anthropic import Anthropic, AsyncAnthropic
from google import genai
from openai import AsyncOpenAI, OpenAI

from lading.clients.lading import Lading
from lading.compaction import Strategy, When
from lading.effects import ContextProvider, Provide, Summarize, Summarizer
from lading.events import Event
from lading.memory.agent_memory import AgentMemory
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
    summarizer: Summarizer | Summarize | str | None
    providers: Iterable[ContextProvider | Provide]
    memory: AgentMemory | None
    output_reserve: int | None
    options: SessionOptions
    fail_open: bool
    on_event: Callable[[Event], None] | None


class OpenAIClient(Protocol[Closed]):
    """A client of the OpenAI SDK; ``close`` returns None, or a coroutine."""

    @property
    def chat(self) -> object:
        """Chat Completions."""

    @property
    def responses(self) -> object:
        """Responses."""

    def close(self) -> Closed:
        """Close the client."""


class AnthropicClient(Protocol[Closed]):
    """A client of the Anthropic SDK."""

    @property
    def messages(self) -> object:
        """Messages."""

    @property
    def auth_token(self) -> object:
        """Missing from clients for other clouds."""

    def close(self) -> Closed:
        """Close the client."""


class GenaiClient(Protocol):
    """A client of google-genai, for sync and async calls."""

    @property
    def models(self) -> object:
        """Models, with ``generate_content``."""

    @property
    def aio(self) -> object:
        """The same for async calls."""

    @property
    def chats(self) -> object:
        """Chats."""


class WrappedOpenAI(OpenAI):
    """The type of a wrapped ``OpenAI``."""

    lading: Lading[WrappedOpenAI]


class WrappedAsyncOpenAI(AsyncOpenAI):
    """The type of a wrapped ``AsyncOpenAI``."""

    lading: Lading[WrappedAsyncOpenAI]


class WrappedAnthropic(Anthropic):
    """The type of a wrapped ``Anthropic``."""

    lading: Lading[WrappedAnthropic]


class WrappedAsyncAnthropic(AsyncAnthropic):
    """The type of a wrapped ``AsyncAnthropic``."""

    lading: Lading[WrappedAsyncAnthropic]


class WrappedGenai(genai.Client):
    """The type of a wrapped ``genai.Client``."""

    lading: Lading[WrappedGenai]
