"""Open schemas for tools whose schemas a session did not record, so that a request can still name them.

They say no more than the name and, where known, the names of the arguments; anything else is allowed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from lading.messages import Tool
from lading.sources.recording import Recording

_LEGAL_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LEGAL_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def open_tool(name: str, keys: Iterable[str] = ()) -> Tool:
    """A synthetic tool that takes the given arguments and any other. Keys no provider takes are left out."""
    legal: dict[str, Any] = {key: {} for key in keys if _LEGAL_KEY.fullmatch(key)}
    schema = {"type": "object", "properties": legal, "additionalProperties": True}
    return Tool(name, schema=schema, synthetic=True)


def is_legal_name(name: str) -> bool:
    """Whether every wire takes it as the name of a tool."""
    return _LEGAL_TOOL.fullmatch(name) is not None


def observed_tools(observed: Any) -> tuple[Tool, ...]:
    """Open tools for a list of names, or for names with lists of argument names; in the order given.

    What is not a legal tool name is left out.
    """
    named = observed.items() if isinstance(observed, dict) else _named(observed)
    return tuple(
        open_tool(name, [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else ())
        for name, keys in dict(named).items()
        if is_legal_name(name)
    )


def _named(observed: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(observed, list):
        yield from ((name, None) for name in observed if isinstance(name, str))


class ToolsSoFar:
    """The tools of a recording as known at each point of it: those of its requests, else an array that grows."""

    def __init__(self, recording: Recording) -> None:
        self._tools = list(recording.tools)
        self._recorded = len(self._tools)
        self._first_uses: list[int] = []
        self._offered: list[tuple[Tool, ...]] = []
        self._offered_at: list[int] = []
        if recording.tools_recorded:
            for request in recording.requests:
                if request.tools is not None:
                    self._offered.append(request.tools)
                    self._offered_at.append(bisect_left(recording.raw_indices, request.message_index))
            return
        known = {tool.name for tool in self._tools}
        for position, message in enumerate(recording.messages):
            for call in message.calls:
                if call.name not in known and is_legal_name(call.name):
                    known.add(call.name)
                    self._tools.append(open_tool(call.name))
                    self._first_uses.append(position)

    def at(self, upto: int) -> tuple[Tool, ...]:
        """The tools of the recording and, where it recorded no schemas, open ones for further names called
        in ``messages[:upto]``, in order of first use."""
        if self._offered:
            return self._offered[max(bisect_right(self._offered_at, upto) - 1, 0)]
        return tuple(self._tools[: self._recorded + bisect_left(self._first_uses, upto)])


def tools_at(recording: Recording, upto: int) -> tuple[Tool, ...]:
    """``ToolsSoFar(recording).at(upto)``; for many points of one recording keep the ``ToolsSoFar``."""
    return ToolsSoFar(recording).at(upto)
