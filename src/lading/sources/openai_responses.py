"""Read request bodies and lists of items of OpenAI's Responses API, with replies, as JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lading.sources.conversations import parse_call, read_bodies
from lading.sources.recording import Source
from lading.wire import find_wire
from lading.wire.layout import CERTAINLY, MAY

_NAME = "openai_responses"


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values is a body of this API, or a list with one of its items."""
    return any(map(_is_call, values))


def _is_call(value: Any) -> bool:
    wire = find_wire(_NAME)
    if (found := parse_call(value, wire)) is None:
        return False
    least = CERTAINLY if isinstance(value, list) else MAY
    return any(
        isinstance(item, dict) and wire.layout.items.claim(item) >= least for run in found.messages for item in run
    )


SOURCE = Source(_NAME, recognises, partial(read_bodies, wire_name=_NAME))
