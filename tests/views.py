"""Views and pressures for tests: logs made of histories, a plain counter, histories that are paired."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence

import pytest
from hypothesis import strategies as st

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.composed_run import ComposedRun
from lading.compaction.strategy_run import CompactCall, StrategyRun
from lading.economics import Rates
from lading.history.history import History
from lading.history.log import Edit, Entry
from lading.history.repair_rules import Needs
from lading.history.validity import Invariant
from lading.history.view import View
from lading.messages import Image, Message, Part, Reasoning, Text, ToolCall, ToolResult, user_text
from tests.histories import set_apart


def count(message: Message) -> int:
    """Four tokens for the message and for each result, one for each four characters, 1000 for a picture."""
    parts = [*message.parts, *(part for result in message.results for part in result.parts)]
    texts = [part.text for part in parts if isinstance(part, Text)]
    texts += [piece for call in message.calls for piece in (call.name, call.arguments)]
    pictures = sum(isinstance(part, Image) for part in parts)
    return 4 + 4 * len(message.results) + sum(map(len, texts)) // 4 + 1000 * pictures


def address(item: str) -> str:
    """The address of a log item in a session of short names."""
    return f"artifact://t/s/log/{item}"


def pressure(
    room_tokens: int = 1000,
    *,
    counter: Callable[[Message], int] = count,
    address: Callable[[str], str] = address,
    invariants: tuple[Invariant, ...] = (),
) -> Pressure:
    """A pressure under which nothing was sent and nothing is paid yet."""
    return Pressure(room_tokens, 0, Rates(0.1, 1.25), False, counter, address, invariants)


def decided(strategy: Strategy, view: View, *, pressure: Pressure) -> Compaction:
    """What a strategy that asks for nothing decides."""
    compaction = strategy.compact(view, pressure)
    assert isinstance(compaction, Compaction)
    return compaction


def decide(strategy: Strategy, history: History, *, pressure: Pressure) -> list[Edit]:
    """The edits of a strategy, or of its parts, for a history, with nobody to ask."""
    plan = history.plan(call=1)
    start = ComposedRun if strategy.parts else StrategyRun
    running = start(strategy, name=strategy.name, call=1, session=("t", "s"), strict=True, events=[], tools=())
    running.decide(plan, pressure, account=0.0, answer=unasked)
    return plan.edits[len(history.edits) :]


def unasked(decided: object, _call: CompactCall) -> object:
    """The result of a step that asks for nothing."""
    assert isinstance(decided, Generator)
    with pytest.raises(StopIteration) as ended:
        next(decided)
    return ended.value.value


def admitted(messages: Iterable[Message]) -> History:
    """The log of these messages as they pass the repairer, closed for a request."""
    history = History(Needs(), count, session=("t", "s"))
    for message in messages:
        history.append(message, call=1)
    history.commit(history.plan(call=1))
    return history


def entries_of(messages: Sequence[Message]) -> list[Entry]:
    """Log entries of these messages, nothing mended; round and turn stay 0."""
    return [Entry(index, message, f"{index}", count(message)) for index, message in enumerate(messages)]


def pairing_faults(messages: Sequence[Message]) -> list[str]:
    """What is wrong with how calls and results stand: each call answered once, before anything else is said."""
    faults: list[str] = []
    waiting: set[str] = set()
    for position, message in enumerate(messages):
        answered = {result.call_id for result in message.results}
        if answered - waiting:
            faults.append(f"{position}: a result without its call")
        if waiting and not answered:
            faults.append(f"{position}: a call without its result")
        waiting = (waiting - answered) | {call.id for call in message.calls}
    return faults + (["a call without its result at the end"] if waiting else [])


@st.composite
def paired(draw: st.DrawFn) -> list[Message]:
    """A sound history: tool loops with parallel calls, results apart or in one message, reasoning, users."""
    history: list[Message] = [Message("system", (Text("Be brief."),))] if draw(st.booleans()) else []
    history.append(user_text("Do the task."))
    for number in range(draw(st.integers(0, 7))):
        ids = [f"{number}-{index}" for index in range(draw(st.sampled_from([0, 1, 1, 2, 3])))]
        thoughts: list[Part] = [Reasoning("hm", "c2ln")] if draw(st.booleans()) else []
        history.append(Message("assistant", (*thoughts, Text("so"), *(ToolCall(i, "read", "{}") for i in ids))))
        results = [ToolResult(call_id, (Text("word " * draw(st.integers(0, 120))),)) for call_id in ids]
        if draw(st.booleans()):
            history += [Message("tool", (result,)) for result in results]
        elif results:
            more: list[Part] = [Text("and go on")] if draw(st.booleans()) else []
            history.append(Message("user", (*results, *more)))
        if not draw(st.integers(0, 3)):
            history.append(user_text("One more thing."))
    return history


@st.composite
def apart(draw: st.DrawFn) -> list[Message]:
    """A sound history whose results come later than right after their calls."""
    history = draw(paired())
    return set_apart(history, [draw(st.integers(0, 5)) for _ in history])
