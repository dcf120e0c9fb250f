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
    """What a model is asked to summarise. All but ``instructions`` is data, fenced as such: no reasoning, no
    signatures, no bytes and no secrets stand in it."""

    instructions: str
    text: str
    """What is to be summarised."""
    earlier: str = ""
    """The sections of earlier summaries that the answer takes the place of; empty when there are none."""
    context: str = ""
    """What the work is about, which stays in view."""
    keep: str = ""
    """Values, open tasks and failures that the answer must still name, one a line."""
    reason: str = ""
    """Why the messages leave the view, as their edit says it."""
    most_tokens: int = 0
    """An answer of more tokens, by the session's counter, is not used."""
    model: str = ""
    """The model to ask, where the strategy names one; empty: whichever you choose."""
    provider: str = ""
    """Whose model that is, where the strategy says so."""
    temperature: float | None = None
    """To sample the answer at, where the strategy says so."""

    @property
    def prompt(self) -> str:
        """All of it as one text, for one message of a user."""
        return "\n\n".join(
            part for part in (self.instructions, self.context, self.earlier, self.text, self.keep) if part
        )


class Summary(Struct, frozen=True):
    """An answer, with what it took where the provider said so."""

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
    """Whom to ask for summaries."""

    summarize: Summarize
    timeout_s: float = 60.0
    """An answer that takes longer is not waited for."""


def ask(request: SummaryRequest) -> Steps[Summary | None]:
    """The answer to a request, for use with ``yield from``; None where nobody can be asked.

    Raises SummaryFailed when there was no answer, TypeError when the driver sends something else.
    """
    answer = yield request
    if answer is None or isinstance(answer, Summary):
        return answer
    raise TypeError(f"a {type(answer).__name__} was sent in place of a Summary")
