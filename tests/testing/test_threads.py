"""The strict provider keeps threads."""

from __future__ import annotations

from typing import Any

from lading.testing.answers import Refusal
from lading.testing.provider import Threads

ASK: dict[str, Any] = {"role": "user", "content": "hi"}
AGAIN: dict[str, Any] = {"type": "continue", "previous_message_id": "m"}


def test_a_request_that_continues_a_thread_is_whole_again() -> None:
    threads = Threads()
    begun = {"system": "s", "messages": [ASK], "thread": {"type": "create"}}
    whole = threads.whole(begun)
    assert whole == {"system": "s", "messages": [ASK]}
    threads.keep(begun, whole, reply={"id": "m", "content": "yes"})
    said = {"role": "assistant", "content": "yes"}
    assert threads.whole({"messages": [ASK], "thread": AGAIN}) == {"system": "s", "messages": [ASK, said, ASK]}
    assert isinstance(threads.whole({"system": "s", "messages": [ASK], "thread": AGAIN}), Refusal)


def test_a_thread_that_nobody_began_is_refused() -> None:
    assert isinstance(Threads().whole({"messages": [ASK], "thread": AGAIN}), Refusal)
