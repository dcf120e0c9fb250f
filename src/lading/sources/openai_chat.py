"""Read request bodies and message lists of OpenAI chat completions, with replies, as JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lading.sources.conversations import parse_call, read_bodies
from lading.sources.recording import Source
from lading.wire import find_wire


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values has messages, which are objects with a role."""
    return any(_holds_messages(value) for value in values)


def _holds_messages(value: Any) -> bool:
    found = parse_call(value, find_wire("openai_chat"))
    return found is not None and any(isinstance(message, dict) and "role" in message for message in found.messages)


SOURCE = Source("openai_chat", recognises, partial(read_bodies, wire_name="openai_chat"))
