"""Tool schemas with less detail, for windows in which the full ones do not fit: full, types, names."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from lading import jsonbytes
from lading.errors import InputError
from lading.messages import Template, Tool
from lading.models.profiles import Detail
from lading.tokens.meter import Meter

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


class Offer:
    """Tools and other body fields of a call; reduced, counted and digested once.

    Raises IllegalRequest when a number in them is NaN or infinite.
    """

    def __init__(self, tools: tuple[Tool, ...], template: Template | None, meter: Meter) -> None:
        """Raises IllegalRequest when a number in them is NaN or infinite."""
        self.tools = tools
        self.template = template
        self._meter = meter
        self._levels: dict[Detail, tuple[tuple[Tool, ...], int]] = {}
        tools_blob = jsonbytes.dump_at("tools", msgspec.to_builtins(tools))
        template_blob = jsonbytes.dump_at("body", template)
        self.tools_digest, self.template_digest = jsonbytes.digest(tools_blob), jsonbytes.digest(template_blob)
        self.blobs = {self.tools_digest: tools_blob, self.template_digest: template_blob}

    def changed(self, tools: tuple[Tool, ...], template: Template | None) -> Offer:
        """This offer when nothing changed, else a new one. Raises InputError for what is no Tool."""
        _check_tools(tools)
        same = tools == self.tools and template == self.template
        return self if same else Offer(tools, template, self._meter)

    def at(self, detail: Detail) -> tuple[Tool, ...]:
        """The tools at a level of detail."""
        return self._level(detail)[0]

    def tokens(self, detail: Detail) -> int:
        """What the tools take at a level of detail."""
        return self._level(detail)[1]

    def _level(self, detail: Detail) -> tuple[tuple[Tool, ...], int]:
        if detail not in self._levels:
            tools = reduce_tools(self.tools, detail)
            self._levels[detail] = tools, self._meter.count_tools(tools)
        return self._levels[detail]


def tools_from(blob: bytes) -> tuple[Tool, ...]:
    """The tools that a stored blob holds."""
    return msgspec.convert(jsonbytes.load(blob), tuple[Tool, ...])


def _check_tools(tools: tuple[object, ...]) -> None:
    odd = [type(tool).__name__ for tool in tools if not isinstance(tool, Tool)]
    if odd:
        raise InputError(f"A {odd[0]} was given as a tool. Give lading.Tool(name, description, schema).")
