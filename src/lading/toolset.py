"""Tool schemas with less detail, for windows in which the full ones do not fit: full, types, names."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lading.messages import Tool
from lading.models.profiles import Detail

LADDER: tuple[Detail, ...] = ("full", "types", "names")
"""From most to least."""

_OPEN = {"type": "object"}
_VALUES = frozenset({"type", "required", "enum", "const", "$ref"})
_SCHEMAS = frozenset({"items", "additionalProperties"})
_SCHEMA_LISTS = frozenset({"items", "prefixItems", "anyOf", "oneOf", "allOf"})
_SCHEMA_MAPS = frozenset({"properties", "$defs", "definitions"})


def least(*details: Detail) -> Detail:
    """The one that tells least."""
    return max(details, key=LADDER.index)


def reduce_tools(tools: tuple[Tool, ...], detail: Detail) -> tuple[Tool, ...]:
    """The tools at a level of detail. A provider's own tool (no schema) stays as it is."""
    return tools if detail == "full" else tuple(_reduced(tool, detail) for tool in tools)


def _reduced(tool: Tool, detail: Detail) -> Tool:
    if tool.schema is None:
        return tool
    schema = _types(tool.schema) if detail == "types" else dict(_OPEN)
    return replace(tool, description="", schema=schema)


def _types(schema: Any) -> Any:
    """Structure without words: descriptions, titles, examples and defaults are left out."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _SCHEMA_MAPS and isinstance(value, dict):
            kept[key] = {name: _types(inner) for name, inner in value.items()}
        elif key in _SCHEMA_LISTS and isinstance(value, list):
            kept[key] = [_types(inner) for inner in value]
        elif key in _SCHEMAS:
            kept[key] = _types(value)
        elif key in _VALUES:
            kept[key] = value
    return kept
