"""Usage that cannot be true teaches nothing: requests keep to the window by an independent count."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.events import UsageDoubted, UsageMissing
from lading.tokens.exact import O200K
from tests.examples import quick_diagonal, quick_first, share_of_examples

WINDOW = 6_000
RESERVE = 500
Reporting = Callable[[int, int, int], int]
KINDS: dict[str, Reporting] = {
    "zero": lambda _true, _call, _window: 0,
    "constant": lambda _true, _call, window: window // 4,
    "a small constant": lambda _true, _call, _window: 100,
    "most of the window": lambda _true, _call, window: window * 85 // 100,
    "nearly the window": lambda _true, _call, window: window * 95 // 100,
    "the window": lambda _true, _call, window: window,
    "about the window": lambda _true, call, window: window - call % 2,
    "from the window down": lambda _true, call, window: window - call,
    "a quarter": lambda true, _call, _window: true // 4,
    "half": lambda true, _call, _window: true // 2,
    "tenfold": lambda true, _call, _window: true * 10,
    "doubling": lambda true, call, _window: true << min(call, 20),
    "half and twice": lambda true, call, _window: true * 2 if call % 2 else true // 2,
    "true and threefold": lambda true, call, _window: true if call % 3 else true * 3,
    "drifting down": lambda true, call, _window: round(true * max(0.2, 1 - 0.02 * call)),
    "what the cache did not hold": lambda true, call, _window: true if call == 1 else 90,
    "less each time": lambda _true, call, _window: max(2_000 - 20 * call, 1),
    "true, then a tenth": lambda true, call, _window: true if call < 10 else true // 10,
}
"""What a provider reports, by what a request took, the number of the call and the window."""
FORMATS = [("gpt-4o", "openai_chat"), ("claude-sonnet-4-5", "openai_chat"), ("claude-sonnet-4-5", "anthropic")]


def content(number: int) -> str:
    return "".join(f"{number}.{line}: the value of part_{line} is {number * line}\n" for line in range(20))


def texts(value: Any) -> list[str]:
    """All that a model reads of the messages of a body."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in texts(item)]


def answer(wire: str, call: int, reported: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A reply that calls a tool, and the message with its result."""
    name, path = f"c{call}", {"path": f"part_{call}.txt"}
    if wire == "anthropic":
        used = {"type": "tool_use", "id": name, "name": "read", "input": path}
        usage = {"input_tokens": reported, "output_tokens": 9}
        reply = {"id": f"r{call}", "type": "message", "role": "assistant", "content": [used], "usage": usage}
        result = {"type": "tool_result", "tool_use_id": name, "content": content(call)}
        return reply | {"stop_reason": "tool_use"}, {"role": "user", "content": [result]}
    function = {"name": "read", "arguments": json.dumps(path)}
    calls = [{"id": name, "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {
        "id": f"r{call}",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": reported, "completion_tokens": 9},
    }, {"role": "tool", "tool_call_id": name, "content": content(call)}


def played(
    reported: Reporting, *, model: str = "gpt-4o", wire: str = "openai_chat", window: int = WINDOW, calls: int = 60
) -> tuple[list[int], int]:
    """The independent counts of the requests of a session, and how many events doubted what was reported."""
    counts, doubts = [], 0
    with Session(model, window=window, output_reserve=RESERVE, wire=wire) as session:
        session.add("Read the files, one after the other.")
        for call in range(1, calls + 1):
            pack = session.pack()
            doubts += sum(isinstance(event, UsageDoubted) for event in pack.events)
            doubts += sum(isinstance(event, UsageMissing) for event in session.events) if call == calls else 0
            said = [
                {key: message.get(key) for key in ("content", "tool_calls")}
                for message in json.loads(pack.body)["messages"]
            ]
            counts.append(sum(map(O200K.count, texts(said))))
            reply, result = answer(wire, call, reported(counts[-1], call, window))
            session.reply(reply)
            session.add([result])
    return counts, doubts


@cache
def unreported(model: str, wire: str, window: int, calls: int) -> list[int]:
    """The counts of the same session without usage."""
    return played(KINDS["zero"], model=model, wire=wire, window=window, calls=calls)[0]


@pytest.mark.parametrize(("window", "calls"), quick_first([(WINDOW, 60), (16_000, 80), (32_000, 110)], 1))
@pytest.mark.parametrize(("kind", "style"), quick_diagonal([*KINDS], FORMATS))
def test_impossible_usage_is_doubted_once_and_changes_no_request_after(
    kind: str, style: tuple[str, str], window: int, calls: int, caplog: pytest.LogCaptureFixture
) -> None:
    model, wire = style
    counts, doubts = played(KINDS[kind], model=model, wire=wire, window=window, calls=calls)
    assert sum("That cannot be" in line for line in caplog.messages) == (kind != "zero")
    assert [count for count in counts if count > window - RESERVE] == []
    without = unreported(model, wire, window, calls)
    assert min(counts[calls // 2 :]) > 0.97 * min(without[calls // 2 :])
    # Nothing contradicts the first figure: where it leaves little room, the first result is cut.
    cut = O200K.count(content(1)) if counts[1] < without[1] else 0
    assert max(counts) > 0.97 * (max(without) - cut)
    assert doubts == 1


def test_usage_is_doubted_once_in_a_session_that_is_opened_for_each_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    doubts = 0
    for call in range(1, 6):
        with Session("gpt-4o", store=tmp_path / "store") as session:
            pack = session.add(f"Question {call}: " + "word " * 500).pack()
            session.reply(answer("openai_chat", call, pack.tokens // 2)[0])
            session.add([answer("openai_chat", call, 0)[1]])
            doubts += sum(isinstance(event, UsageDoubted) for event in (*pack.events, *session.pack().events))
    assert doubts == 1
    assert sum("That cannot be" in line for line in caplog.messages) == 1


def test_true_usage_is_learned_from_without_a_word() -> None:
    counts, doubts = played(lambda true, _call, _window: true + 40)
    assert [count for count in counts if count > WINDOW - RESERVE] == []
    assert doubts == 0


@pytest.mark.parametrize(("factor", "hidden", "style"), quick_diagonal([1.0, 1.3], [0, 3_000], FORMATS))
def test_usage_with_what_the_provider_adds_is_believed(factor: float, hidden: int, style: tuple[str, str]) -> None:
    model, wire = style

    def reported(true: int, call: int, _window: int) -> int:
        return round(true * factor) + 8 * call + hidden

    counts, doubts = played(reported, model=model, wire=wire, window=16_000)
    assert [count for count in counts if reported(count, 60, 0) > 16_000] == []
    assert doubts == 0


@pytest.mark.fuzz
@share_of_examples(0.3)
@given(st.sampled_from(FORMATS), st.integers(WINDOW // 8, WINDOW), st.integers(1, 40))
def test_about_the_same_figure_each_time_makes_no_request_smaller(
    style: tuple[str, str], figure: int, spread: int
) -> None:
    model, wire = style
    counts, doubts = played(lambda _t, call, _w: figure - call * 7 % spread, model=model, wire=wire, calls=40)
    assert [count for count in counts if count > WINDOW - RESERVE] == []
    # On average: before the figure is doubted, a compaction may come a round earlier or later.
    assert sum(counts[20:]) > 0.97 * sum(unreported(model, wire, WINDOW, 40)[20:])
    assert doubts == 1


@pytest.mark.fuzz
@share_of_examples(0.3)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1_500)), min_size=1, max_size=8))
def test_no_reports_below_the_truth_make_a_request_exceed_the_window(reports: list[tuple[float, int]]) -> None:
    def reported(true: int, call: int, _window: int) -> int:
        share, more = reports[call % len(reports)]
        return min(true, round(true * share) + more)

    counts, _ = played(reported, calls=25)
    assert [count for count in counts if count > WINDOW] == []
