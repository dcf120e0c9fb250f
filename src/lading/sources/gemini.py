"""Read request bodies and lists of contents of Gemini's generateContent, with replies, as JSON or JSON lines.

A recorded body names its model where the recorder wrote it: in ``model``, or in the reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lading.sources.conversations import parse_call, read_bodies
from lading.sources.recording import Source
from lading.wire import find_wire

_NAME = "gemini"


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values has contents, which are objects with parts."""
    return any(map(_holds_contents, values))


def _holds_contents(value: Any) -> bool:
    found = parse_call(value, find_wire(_NAME))
    return found is not None and any(is_content(item) for run in found.messages for item in run)


def is_content(item: Any) -> bool:
    """Whether a value is a content of this format. Parts with a type are those of other tools."""
    if not isinstance(item, dict) or not find_wire(_NAME).layout.items.claim(item):
        return False
    return not any(isinstance(part, dict) and "type" in part for part in item.get("parts") or ())


SOURCE = Source(_NAME, recognises, partial(read_bodies, wire_name=_NAME))
