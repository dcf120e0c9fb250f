"""Make open schemas for tools whose schemas a session did not record, so that requests can offer them.

An open schema has the tool's name and, where known, its arguments' names; other arguments are allowed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

from lading.messages import Tool
from lading.sources.recording import Recording

_LEGAL_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LEGAL_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def open_tool(name: str, keys: Iterable[str] = ()) -> Tool:
    """Make a synthetic tool that accepts these and other arguments. Keys that no provider accepts are left out."""
    legal: dict[str, Any] = {key: {} for key in keys if _LEGAL_KEY.fullmatch(key)}
    schema = {"type": "object", "properties": legal, "additionalProperties": True}
    return Tool(name, schema=schema, synthetic=True)


def is_legal_name(name: str) -> bool:
    """Whether every provider format accepts it as a tool's name."""
    return _LEGAL_TOOL.fullmatch(name) is not None


def make_open_tools(observed: Any) -> tuple[Tool, ...]:
    """Make open tools for a list of names, or for names with lists of argument names, in the order given.

    Illegal tool names are left out.
    """
    if isinstance(observed, list):
        observed = dict.fromkeys(name for name in observed if isinstance(name, str))
    named = observed.items() if isinstance(observed, dict) else ()
    return tuple(
        open_tool(name, [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else ())
        for name, keys in named
        if is_legal_name(name)
    )


class ToolsSoFar:
    """The tools of a recording at each of its points: those its requests list, otherwise those used so far."""

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
        """Return the tools at the message index ``upto``.

        Without recorded schemas these are ``Recording.tools`` and open ones for other names called in
        ``messages[:upto]``, in order of first use.
        """
        if self._offered:
            return self._offered[max(bisect_right(self._offered_at, upto) - 1, 0)]
        return tuple(self._tools[: self._recorded + bisect_left(self._first_uses, upto)])


def tools_at(recording: Recording, upto: int) -> tuple[Tool, ...]:
    """Return ``ToolsSoFar(recording).at(upto)``; for many points of one recording keep the ``ToolsSoFar``."""
    return ToolsSoFar(recording).at(upto)
