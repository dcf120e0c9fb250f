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
    wire = find_wire(_NAME)
    found = parse_call(value, wire)
    return found is not None and any(
        isinstance(item, dict) and wire.layout.items.claim(item) for run in found.messages for item in run
    )


SOURCE = Source(_NAME, recognises, partial(read_bodies, wire_name=_NAME))
