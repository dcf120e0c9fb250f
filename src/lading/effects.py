"""Summaries that a strategy asks for: it yields a request and is sent the answer.

A step that needs a model is a generator (``Steps``). Its driver may answer from a model, with nothing, or from a
test. It throws ``SummaryFailed`` into the step when there is no answer, and closes a step that it abandons.
``SummaryRunner`` drives steps with the caller's own function, in a thread of its own and with a timeout. At most
one call is running: until a hanging one returns, nothing else is asked, and rules write the summary.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeAlias, TypeGuard, TypeVar

from msgspec import Struct

from lading.economics import OwnCalls
from lading.errors import InputError, PackError, SummaryFailed
from lading.messages import Message, user_text

Result = TypeVar("Result")


class SummaryRequest(Struct, frozen=True):
    """A request for a summary. All but ``instructions`` is data, fenced as such, without reasoning, signatures,
    bytes and secrets."""

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
    """Limit in tokens, by the session's counter; a longer answer is rejected."""
    model: str = ""
    """The model to ask, if the strategy names one; empty: your choice."""
    provider: str = ""
    """The provider of that model, if the strategy names one."""
    temperature: float | None = None
    """The sampling temperature, if the strategy sets one."""
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
    """None: counted by the session's counter, as is ``output_tokens``."""
    output_tokens: int | None = None


SummaryAnswer: TypeAlias = str | Summary
Summarize: TypeAlias = Callable[[SummaryRequest], SummaryAnswer | Awaitable[SummaryAnswer]]
"""A function of the caller that asks a model. If it returns an awaitable, that is awaited on the event loop of the
waiting coroutine (``AsyncSession``)."""
Steps: TypeAlias = Generator[SummaryRequest, object, Result]
"""A step that may yield requests, and its result."""


class Summarizer(Struct, frozen=True):
    """The summarization callback and its timeout."""

    summarize: Summarize
    timeout_s: float = 60.0
    """Seconds to wait for an answer."""


def ask(request: SummaryRequest) -> Steps[Summary | None]:
    """Request a summary, for use with ``yield from``; None without a summarizer.

    Raises SummaryFailed when there was no answer, TypeError when the driver sends anything else.
    """
    answer = yield request
    if answer is None or isinstance(answer, Summary):
        return answer
    raise TypeError(f"a {type(answer).__name__} was sent instead of a Summary")


Await: TypeAlias = Callable[[Awaitable[SummaryAnswer], float], SummaryAnswer]
MOST_REQUESTS = 4
"""A step that asks more often for one request of the agent is stopped."""
_MOST_TOKENS = 2**53
_REASON_CHARS = 400
AWAIT: ContextVar[Await | None] = ContextVar("AWAIT", default=None)
"""Awaits an answer on the event loop of the coroutine that waits for this call, for at most the given seconds;
None: there is no such loop."""


class SummaryRunner:
    """Drives a session's steps with its summarizer, and counts the cost of the calls."""

    def __init__(
        self, summarizer: Summarizer | None, *, output_price: float, count: Callable[[Message], int]
    ) -> None:
        """``output_price``: of a token that the summarizer writes, in base input tokens. ``count``: tokens of a
        message, for answers without reported usage. Raises InputError unless ``timeout_s`` is positive and finite.
        """
        if summarizer is not None and not 0 < summarizer.timeout_s < math.inf:
            raise InputError(f"A summarizer's timeout_s is {summarizer.timeout_s}; give seconds above 0.")
        self._summarizer = summarizer
        self._count = count
        self._output_price = output_price
        self._busy = Lock()
        self.begin()

    def begin(self) -> None:
        """Start a new request of the agent: its costs, answers and failures are empty."""
        self.spent: OwnCalls | None = None
        """Tokens and cost of the calls for this request; None: there were none."""
        self._known: dict[SummaryRequest, Summary] = {}
        self._failure = ""

    def run(self, steps: Steps[Result]) -> Result:
        """Run a step to its end and return its result. Raises the errors of the step, and PackError when it asks
        more than ``MOST_REQUESTS`` times."""
        try:
            request = next(steps)
            for _ in range(MOST_REQUESTS):
                try:
                    answer = self._answer(request)
                except SummaryFailed as failure:
                    request = steps.throw(failure)
                else:
                    request = steps.send(answer)
        except StopIteration as ended:
            result: Result = ended.value
            return result
        finally:
            steps.close()
        raise PackError(f"The strategy asked for more than {MOST_REQUESTS} summaries for one request.")

    def _answer(self, request: SummaryRequest) -> Summary | None:
        """Answer a request, from memory if it was asked before. After a failure nothing more is asked for this
        pack."""
        if not isinstance(request, SummaryRequest):
            raise TypeError(f"a step asked for a {type(request).__name__}, not for a summary")
        if self._summarizer is None:
            return None
        if self._failure:
            raise SummaryFailed(self._failure)
        if request not in self._known:
            try:
                self._known[request] = self._call(request, self._summarizer)
            except SummaryFailed as failure:
                self._failure = str(failure)
                raise
        return self._known[request]

    def _call(self, request: SummaryRequest, summarizer: Summarizer) -> Summary:
        if not self._busy.acquire(blocking=False):
            raise SummaryFailed("the previous call has not returned yet")
        answers: SimpleQueue[object] = SimpleQueue()
        run, call = copy_context().run, partial(_call_summarizer, summarizer, request)
        try:
            Thread(target=run, args=(self._work, call, answers), name="lading-summary", daemon=True).start()
        except RuntimeError as error:
            self._busy.release()
            raise SummaryFailed(f"no thread could be started: {error}") from error
        try:
            answer = answers.get(timeout=summarizer.timeout_s)
        except Empty:
            answer = _make_timeout(summarizer)
        summary = Summary(answer) if isinstance(answer, str) else answer
        if _is_sound(summary):
            self._charge(request, summary)
            return summary
        self._charge(request, Summary("", output_tokens=0))
        if isinstance(summary, SummaryFailed):
            raise summary
        if isinstance(summary, Exception):
            raise SummaryFailed(f"{type(summary).__name__}: {summary}"[:_REASON_CHARS]) from summary
        raise SummaryFailed(f"it gave a {type(summary).__name__} that is neither text nor a valid Summary")

    def _work(self, call: Callable[[], SummaryAnswer], answers: SimpleQueue[object]) -> None:
        outcome: object = SummaryFailed("it ended its thread")
        try:
            with suppress(SystemExit):
                outcome = attempt(call)
        finally:
            self._busy.release()
            answers.put(outcome)

    def _charge(self, request: SummaryRequest, summary: Summary) -> None:
        """Add the cost of a call, also of one whose answer was rejected."""
        read = self._count(user_text(request.prompt)) if summary.input_tokens is None else summary.input_tokens
        written = self._count(user_text(summary.text)) if summary.output_tokens is None else summary.output_tokens
        # The prompt of such a call is not cached.
        call = OwnCalls(1, read, written, read + written * self._output_price)
        self.spent = call if self.spent is None else self.spent + call


def attempt(call: Callable[[], Result]) -> Result | Exception:
    """Call a user's function; return its result or the exception that it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - a user's own code; check_limits names this one guard
        return error


def _is_sound(answer: object) -> TypeGuard[Summary]:
    if not isinstance(answer, Summary):
        return False
    fields: tuple[object, ...] = answer.text, answer.input_tokens, answer.output_tokens
    text, *counts = fields
    are_counts = (count is None or (isinstance(count, int) and 0 <= count < _MOST_TOKENS) for count in counts)
    return isinstance(text, str) and all(are_counts)


def _call_summarizer(summarizer: Summarizer, request: SummaryRequest) -> SummaryAnswer:
    answer, awaited = summarizer.summarize(request), AWAIT.get()
    if not isinstance(answer, Awaitable):
        return answer
    if awaited is not None:
        try:
            return awaited(answer, summarizer.timeout_s)
        except TimeoutError as error:
            raise _make_timeout(summarizer) from error
    if close := getattr(answer, "close", None):
        close()
    raise SummaryFailed("it is an async function and this request is synchronous: use AsyncSession")


def _make_timeout(summarizer: Summarizer) -> SummaryFailed:
    return SummaryFailed(f"no answer within {summarizer.timeout_s:g} s")
