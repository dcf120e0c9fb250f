"""Drive the steps of a strategy that ask for summaries: ask the caller's function or a model, in a thread, in time.

At most one call is running: until a hanging one returns, nothing else is asked, and rules write the summary.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from queue import Empty
from threading import Lock
from typing import TypeGuard, TypeVar

from lading.compaction import Pressure
from lading.economics import OwnCalls, Usage
from lading.effects import (
    Steps,
    Summarizer,
    Summary,
    SummaryAnswer,
    SummaryRequest,
    describe_error,
    resolve,
    start_thread,
)
from lading.errors import InputError, PackError, SummaryFailed
from lading.events import CompactionEnded, CompactionStarted, Event
from lading.history.history import History
from lading.request.builder import RequestBuilder
from lading.request.summary_calls import LastRequest, start_call

Result = TypeVar("Result")

MOST_REQUESTS = 4
"""A step that asks more often for one request of the agent is stopped."""
_MOST_TOKENS = 2**53
_REASON_CHARS = 400


class SummaryRunner:
    """Drives a session's steps with its summarizer, and counts the cost of the calls."""

    def __init__(
        self,
        summarizer: Summarizer | None,
        request: RequestBuilder,
        *,
        history: History,
        publish: Callable[[Event], None] = lambda _: None,
    ) -> None:
        """``request``: the session's last one. ``publish`` gets an event before and after each call. Raises
        InputError unless ``timeout_s`` is positive and finite."""
        if summarizer is not None and not 0 < summarizer.timeout_s < math.inf:
            raise InputError(f"A summarizer's timeout_s is {summarizer.timeout_s}; give seconds above 0.")
        self._summarizer = summarizer
        self._last = LastRequest(request, history)
        self._publish = publish
        self._busy = Lock()
        self.spent: OwnCalls | None = None
        """Tokens and cost of the calls for this request of the agent; None, to which a new one sets it: there were
        none."""
        self._known: dict[SummaryRequest, Summary] = {}
        self._failure = ""

    def run(self, steps: Steps[Result], pressure: Pressure) -> Result:
        """Run a step to its end and return its result. Raises the errors of the step, and PackError when it asks
        more than ``MOST_REQUESTS`` times."""
        if self.spent is None:
            self._known, self._failure = {}, ""
        try:
            request = next(steps)
            for _ in range(MOST_REQUESTS):
                try:
                    answer = self._answer(request, pressure)
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

    def _answer(self, request: SummaryRequest, pressure: Pressure) -> Summary | None:
        """Answer a request, from memory if it was asked before. After a failure nothing more is asked for this
        pack."""
        if not isinstance(request, SummaryRequest):
            raise TypeError(f"a step asked for a {type(request).__name__}, not for a summary")
        if self._summarizer is None:
            return None
        if self._failure:
            raise SummaryFailed(self._failure)
        if request not in self._known:
            call, reason = pressure.past.calls + 1, request.reason.partition(":")[0]
            messages = request.span[1] - request.span[0] + 1 if request.span else 0
            failed = "it was interrupted"
            self._publish(CompactionStarted(call, reason, messages))
            try:
                self._known[request] = self._call(request, self._summarizer, pressure)
                failed = ""
            except SummaryFailed as failure:
                self._failure = failed = str(failure)
                raise
            finally:
                self._publish(CompactionEnded(call, reason, messages, failed))
        return self._known[request]

    def _call(self, request: SummaryRequest, summarizer: Summarizer, pressure: Pressure) -> Summary:
        if not self._busy.acquire(blocking=False):
            raise SummaryFailed("the previous call has not returned yet")
        start = partial(start_call, summarizer, request, last=self._last, pressure=pressure)
        call = partial(_call_summarizer, summarizer, start)
        try:
            ended = SummaryFailed("it ended its thread")
            answers = start_thread(call, name="lading-summary", ended=self._busy.release, otherwise=ended)
        except RuntimeError as error:
            self._busy.release()
            raise SummaryFailed(f"no thread could be started: {error}") from error
        try:
            answer = answers.get(timeout=summarizer.timeout_s)
        except Empty:
            answer = _make_timeout(summarizer)
        summary = Summary(answer) if isinstance(answer, str) else answer
        if _is_sound(summary):
            self._charge(request, summary, pressure)
            return summary
        self._charge(request, Summary("", output_tokens=0), pressure)
        if isinstance(summary, SummaryFailed):
            raise summary
        if isinstance(summary, Exception):
            raise SummaryFailed(describe_error(summary)[:_REASON_CHARS]) from summary
        raise SummaryFailed(f"it gave a {type(summary).__name__} that is neither text nor a valid Summary")

    def _charge(self, request: SummaryRequest, summary: Summary, pressure: Pressure) -> None:
        """Add the cost of a call, also of one whose answer was rejected."""
        count, read, written = pressure.count_text, summary.read_tokens, summary.written_tokens
        taken = count(request.prompt) if summary.input_tokens is None else summary.input_tokens
        given = count(summary.text) if summary.output_tokens is None else summary.output_tokens
        cost = Usage(read, written, max(taken - read - written, 0)).cost(pressure.rates)
        call = OwnCalls(1, taken, given, cost + given * (pressure.output_price or 0.0), read, written)
        self.spent = call if self.spent is None else self.spent + call


def _is_sound(answer: object) -> TypeGuard[Summary]:
    if not isinstance(answer, Summary):
        return False
    given = answer.input_tokens, answer.output_tokens, answer.read_tokens, answer.written_tokens
    fields: tuple[object, ...] = answer.text, *given
    text, *counts = fields
    are_counts = (count is None or (isinstance(count, int) and 0 <= count < _MOST_TOKENS) for count in counts)
    return isinstance(text, str) and all(are_counts)


def _call_summarizer(
    summarizer: Summarizer, start: Callable[[], SummaryAnswer | Awaitable[SummaryAnswer]]
) -> SummaryAnswer:
    answer = start()
    try:
        resolved: SummaryAnswer = resolve(answer, timeout_s=summarizer.timeout_s)
    except TimeoutError as error:
        raise _make_timeout(summarizer) from error
    except InputError as error:
        raise SummaryFailed(str(error)) from error
    return resolved


def _make_timeout(summarizer: Summarizer) -> SummaryFailed:
    return SummaryFailed(f"no answer within {summarizer.timeout_s:g} s")
