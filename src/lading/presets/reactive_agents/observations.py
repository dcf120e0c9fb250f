"""Tool results as typed observations, in the words of Reactive Agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

Category: TypeAlias = Literal[
    "file-write",
    "file-read",
    "web-search",
    "http-get",
    "code-execute",
    "agent-delegate",
    "scratchpad",
    "custom",
    "error",
]
ResultKind: TypeAlias = Literal["data", "side-effect", "error"]

_CATEGORIES: Mapping[str, Category] = {
    "file-write": "file-write",
    "file-read": "file-read",
    "web-search": "web-search",
    "http-get": "http-get",
    "code-execute": "code-execute",
    "agent-delegate": "agent-delegate",
    "scratchpad": "scratchpad",
    "recall": "scratchpad",
    "spawn-agent": "agent-delegate",
}
_SIDE_EFFECTS: frozenset[Category] = frozenset({"file-write", "code-execute", "scratchpad"})


class ObservationResult(Struct, frozen=True):
    """What a tool call came to."""

    success: bool
    tool_name: str
    display_text: str
    category: Category
    """``error`` for a failure, as the document says; the document's code kept the tool's own category."""
    result_kind: ResultKind
    preserve_on_compaction: bool
    """Whether it keeps a line of its own at every level of compaction."""
    original_category: Category
    """The tool's own category, for failures too."""


def categorize_tool_name(tool_name: str, own: Mapping[str, Category] | None = None) -> Category:
    """The category of a tool; ``own`` names further tools, as they are called. ``file_write`` is ``file-write``."""
    if own and tool_name in own:
        return own[tool_name]
    name = tool_name.replace("_", "-")
    return _CATEGORIES.get(name, "agent-delegate" if name.startswith("agent-") else "custom")


def derive_result_kind(category: Category, success: bool) -> ResultKind:
    """Whether a result is an error, something done, or data to read."""
    if not success or category == "error":
        return "error"
    return "side-effect" if category in _SIDE_EFFECTS else "data"


def observation_result(
    tool_name: str, display_text: str, *, success: bool, own: Mapping[str, Category] | None = None
) -> ObservationResult:
    """The observation of a tool's answer. ``preserve_on_compaction`` says what can be said of it alone: whether
    it failed; that it is the first write of a file is known from the steps around it (``steps``)."""
    category = categorize_tool_name(tool_name, own)
    kind = derive_result_kind(category, success)
    failed = kind == "error"
    return ObservationResult(
        success, tool_name, display_text, "error" if failed else category, kind, failed, category
    )
