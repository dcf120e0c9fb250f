"""What a step may ask for without calling it itself: it yields a request and is sent the answer.

A step that needs a model is a generator (``Steps``). Whoever drives it may answer from a model, from nothing, or
from a test; what could not be had is thrown into it, and a step that is given up is closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TypeAlias, TypeVar

from msgspec import Struct

Result = TypeVar("Result")


class SummaryRequest(Struct, frozen=True):
    """A request for a summary. All but ``instructions`` is data, fenced as such, without reasoning, signatures,
    bytes and secrets."""

    instructions: str
    text: str
    """The messages to summarise."""
    earlier: str = ""
    """The sections of earlier summaries that the answer replaces; empty when there are none."""
    context: str = ""
    """The task, which stays in view."""
    keep: str = ""
    """Values, open tasks and failures that the answer must still name, one a line."""
    reason: str = ""
    """Why the messages are removed, as recorded in the edit."""
    most_tokens: int = 0
    """Limit in tokens, by the session's counter; a longer answer is rejected."""
    model: str = ""
    """The model to ask, if the strategy names one; empty: your choice."""
    provider: str = ""
    """The provider of that model, if the strategy names one."""
    temperature: float | None = None
    """The sampling temperature, if the strategy sets one."""

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
    """None: counted by the session's counter."""
    output_tokens: int | None = None


Summarised: TypeAlias = str | Summary
Summarize: TypeAlias = Callable[[SummaryRequest], Summarised | Awaitable[Summarised]]
"""A function of the caller's that asks a model; its awaitable is awaited where a coroutine waits for the request
(``AsyncSession``)."""
Steps: TypeAlias = Generator[SummaryRequest, object, Result]
"""A step that may ask, and what it ends with."""


class Summarizer(Struct, frozen=True):
    """The summarization callback and its timeout."""

    summarize: Summarize
    timeout_s: float = 60.0
    """Seconds to wait for an answer."""


def ask(request: SummaryRequest) -> Steps[Summary | None]:
    """Request a summary, for use with ``yield from``; None without a summarizer.

    Raises SummaryFailed when there was no answer, TypeError when the driver sends something else.
    """
    answer = yield request
    if answer is None or isinstance(answer, Summary):
        return answer
    raise TypeError(f"a {type(answer).__name__} was sent in place of a Summary")
