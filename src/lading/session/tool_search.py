"""The tool ``search_tools``, by which a model gets the whole schema of a tool by its name or by words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import SEARCH_TOOLS
from lading.messages import Opaque, Template, Text, Tool, ToolCall, ToolResult
from lading.request.tool_index import ToolIndex

MOST_FOUND = 5
"""Tools in one answer."""
_NOTHING = "No tool matches. Give a tool's name, or other words for what it should do."
SCHEMA = Tool(
    SEARCH_TOOLS,
    "Get the full schema of a tool by its name, or of the tools that fit some words. Call it before the first call "
    "of a tool whose parameters you have not seen; then call that tool.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "a tool's name, or words for what it should do"}},
        "required": ["query"],
    },
)
"""The tool as offered to a model."""


def name_deferred(tools: Iterable[Tool]) -> Tool:
    """Return the tool for a request whose other tools are deferred: the prompt has their names only in here."""
    names = ", ".join(tool.name for tool in tools if tool.deferred)
    return replace(SCHEMA, description=f"{SCHEMA.description} There are: {names}.")


def answer_search(
    call: ToolCall,
    index: ToolIndex,
    *,
    used: Collection[str],
    among: Collection[str] | None,
    refer: Callable[[str], Template] | None,
) -> ToolResult:
    """Answer a call of the tool. ``refer``: makes the block that shows a deferred tool; None: the result has the
    schemas, one JSON object in a line each."""
    found = index.search(_read_query(call), used=used, among=among, limit=MOST_FOUND)
    if not found:
        return ToolResult(call.id, (Text(_NOTHING),), name=SEARCH_TOOLS)
    if refer is not None:
        return ToolResult(call.id, tuple(Opaque(refer(tool.name)) for tool in found), name=SEARCH_TOOLS)
    return ToolResult(call.id, (Text("\n".join(map(write_schema, found))),), name=SEARCH_TOOLS)


def write_schema(tool: Tool) -> str:
    """Write a tool with its whole schema, in one line of JSON."""
    declared = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return jsonbytes.dump(declared).decode("utf-8", "replace")


def list_found(results: Iterable[ToolResult], known: Collection[str], *, asked: Collection[str]) -> Iterator[str]:
    """Yield the names of known tools in the answers to the calls of these ids."""
    for result in results:
        for part in result.parts if result.call_id in asked else ():
            names: Sequence[Any] = ()
            if isinstance(part, Opaque) and isinstance(part.value, dict):
                names = [*part.value.values()]
            elif isinstance(part, Text):
                names = [_read_name(line) for line in part.text.splitlines()]
            yield from (name for name in names if isinstance(name, str) and name in known)


def _read_name(line: str) -> Any:
    try:
        declared = jsonbytes.load(line)
    except ValueError:
        return None
    return declared.get("name") if isinstance(declared, dict) else None


def _read_query(call: ToolCall) -> str:
    try:
        given = jsonbytes.load(call.arguments or "{}")
    except ValueError:
        return call.arguments
    query = given.get("query") if isinstance(given, dict) else given
    return query if isinstance(query, str) else ""
