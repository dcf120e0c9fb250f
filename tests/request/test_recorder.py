"""Usage that cannot be true teaches nothing: requests keep to the window by an independent count."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.events import UsageDoubted, UsageMissing
from lading.tokens.exact import O200K
from tests.examples import share_of_examples

WINDOW = 6_000
KINDS: dict[str, Callable[[int, int], int]] = {
    "zero": lambda _true, _call: 0,
    "constant": lambda _true, _call: 1_500,
    "a small constant": lambda _true, _call: 100,
    "a quarter": lambda true, _call: true // 4,
    "half": lambda true, _call: true // 2,
    "what the cache did not hold": lambda true, call: true if call == 1 else 90,
    "less each time": lambda _true, call: max(2_000 - 20 * call, 1),
    "true, then a tenth": lambda true, call: true if call < 10 else true // 10,
}
"""What a provider reports, by what a request took and the number of the call."""


def content(number: int) -> str:
    return "".join(f"{number}.{line}: the value of part_{line} is {number * line}\n" for line in range(20))


def texts(value: Any) -> list[str]:
    """All that a model reads of the messages of a body."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in texts(item)]


def played(reported: Callable[[int, int], int], *, model: str = "gpt-4o", calls: int = 60) -> tuple[list[int], int]:
    """The independent counts of the requests of a session, and how many events doubted what was reported."""
    counts, doubts = [], 0
    with Session(model, window=WINDOW, output_reserve=500, wire="openai_chat") as session:
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
            function = {"name": "read", "arguments": json.dumps({"path": f"part_{call}.txt"})}
            answer = {"role": "assistant", "content": None} | {
                "tool_calls": [{"id": f"c{call}", "type": "function", "function": function}]
            }
            session.reply(
                {
                    "id": f"r{call}",
                    "choices": [{"index": 0, "message": answer, "finish_reason": "tool_calls"}],
                    "usage": {"prompt_tokens": reported(counts[-1], call), "completion_tokens": 9},
                }
            )
            session.add([{"role": "tool", "tool_call_id": f"c{call}", "content": content(call)}])
    return counts, doubts


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_request_exceeds_the_window_whatever_is_reported_and_one_event_says_so(kind: str, model: str) -> None:
    counts, doubts = played(KINDS[kind], model=model)
    assert [count for count in counts if count > WINDOW - 500] == []
    assert max(counts) > WINDOW / 3
    assert doubts == 1


def test_true_usage_is_learned_from_without_a_word() -> None:
    counts, doubts = played(lambda true, _call: true + 40)
    assert [count for count in counts if count > WINDOW - 500] == []
    assert doubts == 0


@pytest.mark.fuzz
@share_of_examples(0.3)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1_500)), min_size=1, max_size=8))
def test_no_reports_below_the_truth_make_a_request_exceed_the_window(reports: list[tuple[float, int]]) -> None:
    def reported(true: int, call: int) -> int:
        share, more = reports[call % len(reports)]
        return min(true, round(true * share) + more)

    counts, _ = played(reported, calls=25)
    assert [count for count in counts if count > WINDOW] == []
