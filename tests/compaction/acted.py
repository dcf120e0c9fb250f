"""The actions of calls that tests make."""

from __future__ import annotations

import json

from lading.compaction.actions import Action, read_action
from lading.messages import Text, ToolCall, ToolResult


def acted(tool: str, arguments: object, result: str | None = "ok", *, is_error: bool = False) -> Action:
    """The action of a call; arguments that are no text become JSON."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    answer = None if result is None else ToolResult("c", (Text(result),), is_error=is_error)
    return read_action(ToolCall("c", tool, raw), answer)
