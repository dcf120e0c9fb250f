"""Read request bodies and lists of items of OpenAI's Responses API, with replies, as JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lading.sources.conversations import parse_call, read_bodies
from lading.sources.recording import Source
from lading.wire import find_wire
from lading.wire.layout import CERTAINLY, SURELY

_NAME = "openai_responses"


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values is a body of this API, or a list with one of its items."""
    return any(map(_is_call, values))


def _is_call(value: Any) -> bool:
    wire = find_wire(_NAME)
    if (found := parse_call(value, wire)) is None:
        return False
    items = [item for run in found.messages for item in run if isinstance(item, dict)]
    if not isinstance(value, list):
        return any(map(wire.layout.items.claim, items))
    is_certain = any(wire.layout.items.claim(item) == CERTAINLY for item in items)
    return is_certain and not any(map(_is_of_other_format, items))


def _is_of_other_format(item: Mapping[str, Any]) -> bool:
    """Whether a message has what only Chat Completions or Anthropic has; its type may be of any."""
    is_chat = item.get("role") in ("tool", "function") or bool(item.get("tool_calls"))
    return is_chat or find_wire("anthropic").layout.items.claim(item) >= SURELY


SOURCE = Source(_NAME, recognises, partial(read_bodies, wire_name=_NAME))
