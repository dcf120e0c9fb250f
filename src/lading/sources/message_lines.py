"""Read files with one message or item a line: the whole file is one session, read like the list of its lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from lading.sources import SOURCES, gemini, source
from lading.sources.recording import JsonLine, Recording, Report, Source
from lading.sources.response_items import is_item

NAME = "message_lines"
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values is a chat message, a content of Gemini or an item of the Responses API."""
    return any(isinstance(value, dict) and _is_message(value) for value in values)


def _is_message(value: Mapping[str, Any]) -> bool:
    is_chat = value.get("role") in _ROLES and ("content" in value or "tool_calls" in value)
    return is_chat or gemini.is_content(value) or is_item(value)


def _read(lines: Iterable[JsonLine], report: Report) -> Iterator[Recording]:
    known = list(lines)
    values = [line.value for line in known]
    # A message may be legal in several formats: all lines together decide, as for a JSON list.
    chosen = next((one for one in map(source, SOURCES) if one.recognises([values])), source("openai_chat"))
    whole = [JsonLine(line.number, values, tuple(each.number for each in known)) for line in known[:1]]
    for recording in chosen.read(whole, report):
        yield replace(recording, origin=NAME)


SOURCE = Source(NAME, recognises, _read)
