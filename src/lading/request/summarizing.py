"""Drive the steps of a strategy that ask for summaries: ask the caller's function or a model, in a thread, in time.

At most one call is running: until a hanging one returns, nothing else is asked, and rules write the summary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from threading import Lock
from typing import Any, TypeGuard

from lading.compaction import Compaction, Pressure
from lading.compaction.strategy_run import CompactCall
from lading.economics import OwnCalls, Usage
from lading.effects import Steps, Summarizer, Summary, SummaryRequest
from lading.errors import InputError, PackError, SummaryFailed
from lading.events import CompactionEnded, CompactionStarted, Event
from lading.guard import attempt, describe_error
from lading.history.history import History
from lading.request.builder import RequestBuilder
from lading.request.summary_calls import LastRequest, SummaryCall, prepare_call

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
        self._answers: dict[SummaryRequest, Summary] = {}
        self._failure = ""

    def run(self, decided: object, compact_call: CompactCall) -> object:
        """Return what a strategy decided; steps are run to their end. Raises the errors of the steps, and PackError
        when they ask more than ``MOST_REQUESTS`` times."""
        if self.spent is None:
            self._answers, self._failure = {}, ""
        return self._decide(decided, compact_call)

    def close(self) -> None:
        """Leave what is asked in the background."""

    def _decide(self, decided: object, compact_call: CompactCall) -> object:
        return self._drive(decided, compact_call) if isinstance(decided, Generator) else decided

    def _drive(self, steps: Steps[Any], compact_call: CompactCall) -> object:
        try:
            request = next(steps)
            for _ in range(MOST_REQUESTS):
                try:
                    answer = self._answer(request, compact_call)
                except SummaryFailed as failure:
                    request = steps.throw(failure)
                else:
                    if isinstance(answer, Compaction):
                        return answer
                    request = steps.send(answer)
        except StopIteration as ended:
            return ended.value
        finally:
            steps.close()
        raise PackError(f"The strategy asked for more than {MOST_REQUESTS} summaries for one request.")

    def _answer(self, request: SummaryRequest, compact_call: CompactCall) -> Summary | Compaction | None:
        """Answer a request, from memory if it was asked before, or by a decision in place of that of the steps.
        After a failure nothing more is asked for this pack."""
        if not isinstance(request, SummaryRequest):
            raise TypeError(f"a step asked for a {type(request).__name__}, not for a summary")
        if self._summarizer is None:
            return None
        if self._failure:
            raise SummaryFailed(self._failure)
        if request not in self._answers:
            pressure = compact_call.pressure
            call = self._start(request, self._summarizer, pressure)
            self._answers[request] = self._take(request, call, pressure)
        return self._answers[request]

    def _start(self, request: SummaryRequest, summarizer: Summarizer, pressure: Pressure) -> SummaryCall:
        if not self._busy.acquire(blocking=False):
            raise SummaryFailed("the previous call has not returned yet")

        def start() -> SummaryCall:
            ask = prepare_call(summarizer, request, last=self._last, pressure=pressure)
            return SummaryCall(summarizer, ask, ended=self._busy.release)

        number, reason, messages = described = _describe_request(request, pressure)
        self._publish(CompactionStarted(number, reason, messages))
        started = attempt(start)
        if isinstance(started, SummaryCall):
            return started
        self._busy.release()
        failed = f"no call could be started: {describe_error(started)}"[:_REASON_CHARS]
        self._publish(CompactionEnded(*described, failed))
        raise SummaryFailed(failed) from started

    def _take(self, request: SummaryRequest, call: SummaryCall, pressure: Pressure) -> Summary:
        """Wait for the answer of a call and charge it. Raises SummaryFailed, and remembers why until the next
        request of the agent."""
        described, failed = _describe_request(request, pressure), "it was interrupted"
        try:
            answer = call.wait()
            failed = "" if _is_sound(answer) or isinstance(answer, str) else _describe_failure(answer)
        finally:
            self._publish(CompactionEnded(*described, failed))
        summary = Summary(answer) if isinstance(answer, str) else answer
        if _is_sound(summary):
            self._charge(request, summary, pressure)
            return summary
        self._charge(request, Summary("", output_tokens=0), pressure)
        self._failure = _describe_failure(summary)
        raise SummaryFailed(self._failure) from (summary if isinstance(summary, Exception) else None)

    def _charge(self, request: SummaryRequest, summary: Summary, pressure: Pressure) -> None:
        """Add the cost of a call, also of one whose answer was rejected."""
        count, taken = pressure.count_text, summary.input_tokens
        read, written = summary.read_tokens, summary.written_tokens
        if taken is None and pressure.asks_itself and request.instruction_for_self and not pressure.cache_cold:
            read = self._last.count_cached(pressure)
            taken = read + count(request.instruction_for_self)
        elif taken is None:
            taken = count(request.prompt)
        given = count(summary.text) if summary.output_tokens is None else summary.output_tokens
        cost = Usage(read, written, max(taken - read - written, 0)).cost(pressure.rates)
        call = OwnCalls(1, taken, given, cost + given * (pressure.output_price or 0.0), read, written)
        self.spent = call if self.spent is None else self.spent + call


def _describe_request(request: SummaryRequest, pressure: Pressure) -> tuple[int, str, int]:
    """Return the number of the agent's call, why it is asked, and of how many messages."""
    first, last = request.span or (0, -1)
    return pressure.past.calls + 1, request.reason.partition(":")[0], last - first + 1


def _is_sound(answer: object) -> TypeGuard[Summary]:
    if not isinstance(answer, Summary):
        return False
    given = answer.input_tokens, answer.output_tokens, answer.read_tokens, answer.written_tokens
    fields: tuple[object, ...] = answer.text, *given
    text, *counts = fields
    are_counts = (count is None or (isinstance(count, int) and 0 <= count < _MOST_TOKENS) for count in counts)
    return isinstance(text, str) and all(are_counts)


def _describe_failure(answer: object) -> str:
    if isinstance(answer, SummaryFailed):
        return str(answer)
    if isinstance(answer, Exception):
        return describe_error(answer)[:_REASON_CHARS]
    return f"it gave a {type(answer).__name__} that is neither text nor a valid Summary"
