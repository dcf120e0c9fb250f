"""The strict provider keeps threads."""

from __future__ import annotations

from typing import Any

from lading.testing.answers import ErrorResponse
from lading.testing.provider import MessageThreads

ASK: dict[str, Any] = {"role": "user", "content": "hi"}
AGAIN: dict[str, Any] = {"type": "continue", "previous_message_id": "m"}


def test_a_request_that_continues_a_thread_is_whole_again() -> None:
    threads = MessageThreads()
    begun = {"system": "s", "messages": [ASK], "thread": {"type": "create"}}
    whole = threads.expand(begun)
    assert whole == {"system": "s", "messages": [ASK]}
    threads.keep(begun, whole, reply={"id": "m", "content": "yes"})
    said = {"role": "assistant", "content": "yes"}
    assert threads.expand({"messages": [ASK], "thread": AGAIN}) == {"system": "s", "messages": [ASK, said, ASK]}
    assert isinstance(threads.expand({"system": "s", "messages": [ASK], "thread": AGAIN}), ErrorResponse)


def test_a_thread_that_nobody_began_is_refused() -> None:
    assert isinstance(MessageThreads().expand({"messages": [ASK], "thread": AGAIN}), ErrorResponse)
