"""What a long session holds in memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from itertools import islice

import pytest

from lading import Session
from lading.messages import Message, Text, ToolCall, ToolResult, user_text


def rounds() -> Iterator[list[Message]]:
    number = 0
    while True:
        lines = "".join(f"{number}.{line}: the value of part_{line} is {number * line}\n" for line in range(100))
        yield [
            Message("assistant", (Text(f"Step {number}."), ToolCall(f"c{number}", "read", '{"path": "a.py"}'))),
            Message("tool", (ToolResult(f"c{number}", (Text(lines),)),)),
        ]
        number += 1


@pytest.mark.full
def test_a_session_holds_little_of_what_records_replaced() -> None:
    raw = 0
    with Session("gpt-4o", window=16_000) as session:
        session.add(user_text("Go."))
        for number, new in enumerate(islice(rounds(), 300)):
            if number == 50:
                gc.collect()
                tracemalloc.start()
            session.add(new).pack()
            raw += sum(len(str(part)) for message in new for part in message.parts) if number >= 50 else 0
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(session.entries) == 601
    assert held < 1.9 * raw, f"{held / raw:.2f}"
