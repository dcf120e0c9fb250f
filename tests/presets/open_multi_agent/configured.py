"""Histories shown as a configuration of open-multi-agent shows them."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from msgspec.structs import replace

from lading.compaction import Arrival, Compaction, Pressure
from lading.effects import Summary, SummaryRequest
from lading.errors import SummaryFailed
from lading.history.history import History
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from lading.presets.open_multi_agent import agent_config, strategy_for
from tests.views import admitted, pressure

ROOM_TOKENS = 1_000_000


def decided(
    options: dict[str, object],
    history: History,
    *,
    pressed: Pressure | None = None,
    answer: Summary | SummaryFailed | None = None,
    asked: list[SummaryRequest] | None = None,
) -> Compaction:
    """What a configuration decides of a history after its first request; ``answer`` is what a summarizer gives."""
    pressed = pressed or replace(pressure(ROOM_TOKENS), sent_items=1)
    if answer is not None:
        pressed = replace(pressed, output_price=5.0)
    steps = strategy_for(agent_config(options)).compact(history.view, pressed)
    assert isinstance(steps, Generator)
    try:
        request = next(steps)
        if asked is not None:
            asked.append(request)
        if isinstance(answer, SummaryFailed):
            steps.throw(answer)
        else:
            steps.send(answer)
    except StopIteration as ended:
        compaction = ended.value
        assert isinstance(compaction, Compaction)
        return compaction
    raise AssertionError("it asked twice")


def applied(options: dict[str, object], history: History, *, call: int = 2) -> list[Message]:
    """The messages that a request shows after a configuration decided; the history goes on from there."""
    for draft in decided(options, history).drafts:
        history.apply(draft, call=call, room_tokens=ROOM_TOKENS)
    return history.view.messages


def shown(options: dict[str, object], messages: Sequence[Message]) -> list[Message]:
    """The messages that a request shows of these."""
    return applied(options, admitted(messages))


def arrived(
    options: dict[str, object], messages: Sequence[Message], *, room_tokens: int = ROOM_TOKENS
) -> list[Message]:
    """The messages as they come in, one after the other."""
    strategy, pressed = strategy_for(agent_config(options)), pressure(room_tokens)
    history = admitted(messages)
    for entry in range(len(messages)):
        position = history.view.span(entry, entry)[0]
        draft = strategy.admit(Arrival(history.view.items[position], history.view), pressed)
        if draft is not None:
            history.apply(draft, call=1, room_tokens=room_tokens)
    return history.view.messages


def loop(rounds: int, *, chars: int = 60, tool: str = "read", start: int = 0) -> list[Message]:
    """A task, then so many rounds of one call and its result of so many characters."""
    history = [] if start else [user_text("Find the slow test.")]
    for number in range(start, start + rounds):
        history += call_and_result(f"c{number}", "x" * chars, tool=tool)
    return history


def call_and_result(call_id: str, text: str, *, tool: str = "read", is_error: bool = False) -> list[Message]:
    """A round of one call."""
    call = Message("assistant", (ToolCall(call_id, tool, "{}"),))
    return [call, Message("tool", (ToolResult(call_id, (Text(text),), is_error=is_error),))]


def texts(messages: Sequence[Message]) -> list[str]:
    """What each message says, results included."""
    return [message.text or "".join(result.text for result in message.results) for message in messages]
