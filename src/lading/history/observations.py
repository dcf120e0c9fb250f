"""Structured observations: what each result of a tool is, by the tool's name and its success."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.history.log import Entry

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
    """The typed result of a tool call."""

    success: bool
    tool_name: str
    display_text: str
    category: Category
    """``error`` for a failure, as in Reactive Agents' document; its code keeps the tool's own category."""
    result_kind: ResultKind
    preserve_on_compaction: bool
    """Whether it keeps a line at every level of compaction."""
    original_category: Category
    """The tool's own category, also for a failure."""
    entry: int = -1
    """The log entry that has the result."""
    call_id: str = ""


def categorize_tool_name(tool_name: str, own: Mapping[str, Category] | None = None) -> Category:
    """Return the category of a tool, first by ``own``. ``file_write`` equals ``file-write``."""
    if own and tool_name in own:
        return own[tool_name]
    name = tool_name.replace("_", "-")
    return _CATEGORIES.get(name, "agent-delegate" if name.startswith("agent-") else "custom")


def derive_result_kind(category: Category, success: bool = True) -> ResultKind:
    """Return whether a result is an error, a side effect or data."""
    if not success or category == "error":
        return "error"
    return "side-effect" if category in _SIDE_EFFECTS else "data"


def observation_result(
    tool_name: str,
    display_text: str,
    *,
    success: bool,
    own: Mapping[str, Category] | None = None,
    entry: int = -1,
    call_id: str = "",
) -> ObservationResult:
    """Build the observation of a tool's answer. ``preserve_on_compaction`` is set for failures only: the first
    write of a file is known from earlier steps."""
    category = categorize_tool_name(tool_name, own)
    kind = derive_result_kind(category, success)
    failed = kind == "error"
    return ObservationResult(
        success,
        tool_name,
        display_text,
        "error" if failed else category,
        kind,
        failed,
        category,
        entry,
        call_id,
    )


def list_observations(
    entries: Iterable[Entry], own: Mapping[str, Category] | None = None
) -> Iterator[ObservationResult]:
    """Iterate over the results of a log as observations, in order. A result belongs to the last call of its id."""
    names: dict[str, str] = {}
    for entry in entries:
        names.update((call.id, call.name) for call in entry.message.calls)
        for result in entry.message.results:
            yield observation_result(
                names.get(result.call_id, result.name),
                result.text,
                success=not result.is_error,
                own=own,
                entry=entry.index,
                call_id=result.call_id,
            )
