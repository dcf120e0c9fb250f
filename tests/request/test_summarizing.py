"""The driver of steps: answers come from the caller's function, in time, or the step is told why not."""

from __future__ import annotations

from asyncio import CancelledError
from threading import Event, Thread, active_count
from typing import Any

import pytest
from msgspec.structs import replace

from lading.compaction.strategy_run import CompactCall
from lading.economics import OwnCalls
from lading.effects import Steps, Summarize, Summarizer, Summary, SummaryRequest, ask
from lading.errors import InputError, PackError, SummaryFailed
from lading.history.history import History
from lading.history.repair_rules import Needs
from lading.history.view import View
from lading.messages import Message
from lading.models.catalog import find_card
from lading.request.builder import RequestBuilder
from lading.request.summarizing import MOST_REQUESTS, SummaryRunner
from lading.wire import find_wire
from tests.views import pressure
from tests.waiting import PATIENCE_S, happened, until

OUTPUT_PRICE = 5.0
NOTHING: Any = None


def count(message: Message) -> int:
    """One token a character."""
    return len(message.text)


class Driver:
    """A runner with a pressure, for one request of the agent after the other."""

    def __init__(self, whom: Summarizer | None) -> None:
        request = RequestBuilder(find_wire("openai_chat"), find_card("gpt-4o")[0])
        self.runner = SummaryRunner(whom, request, history=History(Needs(), count))
        self.pressure = replace(pressure(1_000, counter=count), output_price=OUTPUT_PRICE)

    def run(self, steps: Steps[Any]) -> Any:
        return self.runner.run(steps, CompactCall(NOTHING, View(), self.pressure))

    def begin(self) -> None:
        self.runner.spent = None

    @property
    def spent(self) -> OwnCalls | None:
        return self.runner.spent


def asking(summarize: Summarize | None, *, timeout_s: float = PATIENCE_S) -> Driver:
    return Driver(Summarizer(summarize, timeout_s) if summarize else None)


def step(*texts: str) -> Steps[list[str]]:
    """Asks for each text in turn, and notes what came of it."""
    noted: list[str] = []
    for text in texts:
        try:
            answer = yield from ask(SummaryRequest("Say it.", text))
        except SummaryFailed as failure:
            noted.append(f"failed: {failure}")
        else:
            noted.append("nobody" if answer is None else answer.text)
    return noted


def test_a_prompt_has_all_that_is_given_in_order() -> None:
    whole = SummaryRequest("Say it.", "work", earlier="before", context="task", keep="keep")
    assert whole.prompt == "Say it.\n\ntask\n\nbefore\n\nwork\n\nkeep"
    assert SummaryRequest("Say it.", "work").prompt == "Say it.\n\nwork"


def test_answers_are_sent_and_charged_by_what_they_say_or_by_the_counter() -> None:
    driver = asking(lambda request: request.text.upper() if request.text == "one" else Summary("two!", 70, 7))
    assert driver.run(step("one", "two")) == ["ONE", "two!"]
    assert driver.spent == OwnCalls(2, 12 + 70, 3 + 7, 82 + 10 * OUTPUT_PRICE)


def test_without_a_summarizer_nobody_is_asked() -> None:
    driver = asking(None)
    assert driver.run(step("one")) == ["nobody"]
    assert driver.spent is None


def test_the_same_request_is_asked_once_for_one_pack() -> None:
    asked: list[str] = []

    def summarize(request: SummaryRequest) -> str:
        asked.append(request.text)
        return "said"

    driver = asking(summarize)
    for _ in range(3):
        assert driver.run(step("one")) == ["said"]
    driver.begin()
    assert driver.spent is None
    assert driver.run(step("one", "two", "one")) == ["said", "said", "said"]
    assert asked == ["one", "one", "two"]


def _raise(_request: SummaryRequest) -> str:
    raise ConnectionError("no route")


def _end_with(ending: type[BaseException]) -> Summarize:
    def summarize(_request: SummaryRequest) -> str:
        raise ending

    return summarize


@pytest.mark.parametrize(
    ("summarize", "why"),
    [
        (_raise, "failed: ConnectionError: no route"),
        *(
            (_end_with(ending), "failed: it ended its thread")
            for ending in (SystemExit, KeyboardInterrupt, GeneratorExit, CancelledError)
        ),
        (lambda _request: NOTHING, "failed: it gave a NoneType that is neither text nor a valid Summary"),
        (lambda _request: Summary(NOTHING), "failed: it gave a Summary that is neither text nor a valid Summary"),
        (
            lambda _request: Summary("said", -1),
            "failed: it gave a Summary that is neither text nor a valid Summary",
        ),
    ],
)
def test_what_is_no_answer_is_thrown_into_the_step_and_not_asked_again(summarize: Summarize, why: str) -> None:
    driver = asking(summarize)
    assert driver.run(step("one", "two")) == [why, why]
    assert driver.spent is not None
    assert driver.spent.calls == 1


def test_a_coroutine_without_a_loop_to_await_it_is_closed_and_refused() -> None:
    async def summarize(_request: SummaryRequest) -> str:
        return "never"

    [noted] = asking(summarize).run(step("one"))
    assert "use AsyncSession" in noted


def test_one_that_hangs_is_left_and_nothing_else_is_asked_until_it_is_back() -> None:
    free, threads = Event(), active_count()

    def summarize(request: SummaryRequest) -> str:
        if request.text == "hang":
            happened(free, "the test lets go")
        return "quick"

    def again() -> bool:
        driver.begin()
        return bool(driver.run(step("quick")) == ["quick"])

    driver = asking(summarize, timeout_s=0.05)
    # That this returns at all shows that nobody waits for the call: it is free only further down.
    assert driver.run(step("hang")) == ["failed: no answer within 0.05 s"]
    assert driver.spent is not None
    assert driver.spent.output_tokens == 0
    for _ in range(5):
        driver.begin()
        assert driver.run(step("quick")) == ["failed: the previous call has not returned yet"]
        assert driver.spent is None
    assert active_count() <= threads + 1
    free.set()
    until("the end of the thread", lambda: active_count() <= threads)
    until("a quick answer", again)


def test_where_no_thread_can_be_had_the_next_request_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    driver = asking(lambda request: request.text)
    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", start)
        assert driver.run(step("one")) == ["failed: no call could be started: RuntimeError: can't start new thread"]
    driver.begin()
    assert driver.run(step("one")) == ["one"]


def test_a_step_that_asks_too_often_is_stopped() -> None:
    closed: list[bool] = []

    def greedy() -> Steps[None]:
        try:
            for number in range(100):
                yield from ask(SummaryRequest("Say it.", str(number)))
        finally:
            closed.append(True)

    asked: list[str] = []

    def summarize(request: SummaryRequest) -> str:
        asked.append(request.text)
        return "said"

    with pytest.raises(PackError, match=f"more than {MOST_REQUESTS} summaries"):
        asking(summarize).run(greedy())
    assert len(asked) == MOST_REQUESTS
    assert closed == [True]


def test_a_step_may_ask_as_often_as_is_allowed() -> None:
    texts = [str(number) for number in range(MOST_REQUESTS)]
    assert asking(lambda request: request.text).run(step(*texts)) == texts


def test_a_step_that_asks_for_something_else_fails() -> None:
    def odd() -> Steps[None]:
        yield NOTHING

    with pytest.raises(TypeError, match="asked for a NoneType"):
        asking(lambda _request: "said").run(odd())


def test_a_driver_that_sends_something_else_is_refused() -> None:
    steps = ask(SummaryRequest("Say it.", "one"))
    next(steps)
    with pytest.raises(TypeError, match="a str was sent"):
        steps.send("text")


def test_an_interrupt_closes_the_step() -> None:
    closed: list[bool] = []

    def careful() -> Steps[None]:
        try:
            yield from ask(SummaryRequest("Say it.", "one"))
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        asking(lambda _request: "said").run(careful())
    assert closed == [True]


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_timeout_is_a_time(timeout_s: float) -> None:
    with pytest.raises(InputError, match="give seconds above 0"):
        asking(lambda _request: "said", timeout_s=timeout_s)
