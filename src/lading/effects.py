"""Functions of the caller: summarizers, which strategies ask, and context providers, which sessions ask.

A step that needs a summary is a generator (``Steps``): it yields a request and is sent the answer. Its driver may
answer from a model, with nothing, or from a test. It throws ``SummaryFailed`` into the step when there is no
answer, and closes a step that it abandons. ``lading.request.summarizing`` drives the steps of a session.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar, copy_context
from inspect import Parameter
from threading import Thread
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lading.errors import InputError
from lading.guard import Result, attempt
from lading.messages import Message
from lading.validation import check

SELF = "self"
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
TIMEOUT_S = 60.0
"""Seconds to wait for the answer of a function of the caller."""


class SummaryRequest(Struct, frozen=True):
    """A request for a summary. All but ``instructions`` is data, fenced as such, without reasoning, signatures,
    bytes and what looks like a secret."""

    instructions: str
    text: str
    """The messages to summarize."""
    earlier: str = ""
    """The sections of earlier summaries that the answer replaces; empty if there are none."""
    context: str = ""
    """The task, which stays in view."""
    keep: str = ""
    """Values, open tasks and failures that the answer must name, one per line."""
    reason: str = ""
    """Why the messages are removed, as recorded in the edit."""
    most_tokens: int = 0
    """Limit in tokens, by the session's counter; a longer answer is cut."""
    model: str = ""
    """The model to ask, if the strategy names one; empty: your choice."""
    provider: str = ""
    """The provider of that model, if the strategy names one."""
    temperature: float | None = None
    """The sampling temperature, if the strategy sets one."""
    span: tuple[int, int] | None = None
    """The first and last entry of the log that the summary replaces; None: it is not of messages alone."""
    instruction_for_self: str = ""
    """The request for a model that has read the conversation itself, as its next user message; empty where the last
    request did not show all of the messages."""

    @property
    def prompt(self) -> str:
        """The whole request as one text, for one user message."""
        return "\n\n".join(
            part for part in (self.instructions, self.context, self.earlier, self.text, self.keep) if part
        )


class Summary(Struct, frozen=True):
    """A summary, with its token usage if the provider reported it."""

    text: str
    input_tokens: int | None = None
    """All input, cached or not; None: counted by the session's counter, as is ``output_tokens``."""
    output_tokens: int | None = None
    read_tokens: int = 0
    """Of the input, read from the prompt cache."""
    written_tokens: int = 0
    """Of the input, written to the prompt cache."""


SummaryAnswer: TypeAlias = str | Summary
Summarize: TypeAlias = (
    Callable[[SummaryRequest], SummaryAnswer | Awaitable[SummaryAnswer]]
    | Callable[[list[dict[str, Any]], dict[str, str]], SummaryAnswer | Awaitable[SummaryAnswer]]
    | Callable[[list[dict[str, Any]]], SummaryAnswer | Awaitable[SummaryAnswer]]
)
"""A function of the caller that asks a model. With two positional parameters, or one named ``messages``, it is
given the messages to summarize as dicts of the session's provider format, and as the second ``{"reason": ...}``. If
it returns an awaitable, that is awaited on the event loop of the waiting coroutine (``AsyncSession``)."""
Steps: TypeAlias = Generator[SummaryRequest, object, Result]
"""A step that may yield requests, and its result."""


class Summarizer(Struct, frozen=True):
    """Who writes summaries, and the timeout."""

    summarize: Summarize | str
    """A function; ``"provider:model"``, which ``client`` asks; or ``"self"`` with ``lading.wrap``: the model of the
    conversation, after the last request, which its prompt cache holds."""
    timeout_s: float = TIMEOUT_S
    """Seconds to wait for an answer."""
    client: Any = None
    """A client of OpenAI's or Anthropic's SDK, sync or async; None: the wrapped one."""
    background: bool = False
    """Ask shortly before a compaction is due, while the agent goes on."""

    @property
    def is_self(self) -> bool:
        """Whether the model of the conversation writes the summaries, or wrote those that a function gives."""
        return self.summarize == SELF or getattr(self.summarize, "is_self", False) is True


def ask(request: SummaryRequest) -> Steps[Summary | None]:
    """Request a summary, for use with ``yield from``; None without a summarizer.

    Raises SummaryFailed when there was no answer, TypeError when the driver sends anything else.
    """
    answer = yield request
    if answer is None or isinstance(answer, Summary):
        return answer
    raise TypeError(f"a {type(answer).__name__} was sent instead of a Summary")


class RequestContext(Struct, frozen=True):
    """Tenant, user and session that a provider is asked for."""

    tenant_id: str = "default"
    user_id: str = ""
    session_id: str = "session"


Provide: TypeAlias = Callable[..., Any]
"""A function of the ``RequestContext`` and of the messages so far, or of the first or none of them, sync or async.
It returns a text, messages of any form that ``Session.add`` takes, or None."""


class ContextProvider(Struct, frozen=True):
    """A context provider. Raises InputError for a value of another type."""

    provide: Provide
    kind: Literal["volatile", "stable"] = "volatile"
    """volatile: asked anew for each request; stable: said once."""
    place: Literal["tail", "front"] = "tail"
    """Of volatile text. front: before the history, so that no prompt cache holds what follows a changed text."""
    timeout_s: float = 5.0
    most_chars: int = 8_000
    """The rest of a longer text is left out."""
    name: str = ""
    """In events; empty: the function's name."""

    def __post_init__(self) -> None:
        check(self.provide, Callable, advice="a context provider is a function")  # type: ignore[arg-type]
        if self.kind not in ("volatile", "stable") or self.place not in ("tail", "front"):
            raise InputError('kind is "volatile" or "stable", and place is "tail" or "front".')
        if not 0 < self.timeout_s < math.inf or self.most_chars < 1:
            raise InputError("Give a timeout_s above 0, and most_chars from 1 on.")

    @property
    def label(self) -> str:
        """The provider's name in events and in its text."""
        return self.name or str(getattr(self.provide, "__name__", type(self.provide).__name__))


def ask_provider(provide: Provide, context: RequestContext, *, messages: Sequence[Message]) -> object:
    """Call a context provider with as many of the two as it takes."""
    return provide(*(context, messages)[: count_taken(provide)])


def count_taken(provide: Provide) -> int:
    """Return how many of context and messages a provider takes."""
    try:
        kinds = [parameter.kind for parameter in inspect.signature(provide).parameters.values()]
    except (TypeError, ValueError):
        kinds = [Parameter.VAR_POSITIONAL]
    return 2 if Parameter.VAR_POSITIONAL in kinds else min(sum(kind in _POSITIONAL for kind in kinds), 2)


Await: TypeAlias = Callable[[Awaitable[Any] | Future[Any], float], Future[Any]]
AWAIT: ContextVar[Await | None] = ContextVar("AWAIT", default=None)
"""Starts to await an answer on the event loop of the coroutine that waits for this call, for at most the given
seconds; a future is not cancelled with it. None: there is no such loop."""


def resolve(
    answer: Any, *, timeout_s: float = TIMEOUT_S, on_start: Callable[[Future[Any]], None] = lambda _: None
) -> Any:
    """Return the answer of a function of the caller; that of an async one is awaited on the loop of the coroutine
    that waits for this call, which ``on_start`` may cancel. Raises TimeoutError, and InputError where nothing waits
    that could await it."""
    if not isinstance(answer, Awaitable):
        return answer
    if (start := AWAIT.get()) is not None:
        on_start(future := start(answer, timeout_s))
        try:
            # The loop of a call in the background may have ended.
            return future.result(timeout_s)
        finally:
            future.cancel()
    if close := getattr(answer, "close", None):
        close()
    raise InputError("it is an async function and this request is synchronous: use AsyncSession")


def start_thread(
    call: Callable[[], object], *, name: str, ended: Callable[[], None], otherwise: object
) -> Future[object]:
    """Start a user's function in a daemon thread, with the context variables of this one; call ``ended`` after it.
    The future gets its result or exception as a value, ``otherwise`` if it ended its thread. Raises RuntimeError
    when no thread can be started."""
    outcome_of: Future[object] = Future()

    def work() -> None:
        outcome = otherwise
        try:
            # What ends a program or a task ends this thread alone.
            with suppress(BaseException):
                outcome = attempt(call)
        finally:
            ended()
            outcome_of.set_result(outcome)

    Thread(target=copy_context().run, args=(work,), name=name, daemon=True).start()
    return outcome_of
