"""The tools and other fields of a call: declarations at three levels of detail (full, types, names), for windows
too small for full schemas, and the fields that the messages allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.errors import InputError
from lading.events import FieldLeftOut
from lading.history.view import View
from lading.jsontypes import check_json
from lading.messages import Template, Tool
from lading.models.profiles import Detail
from lading.request.transient import NO_TEXT, CountedTransient
from lading.settings import Settings
from lading.structs import convert
from lading.tokens.meter import Meter
from lading.wire import Wire

LADDER: tuple[Detail, ...] = ("full", "types", "names")
"""Levels of detail, from most to least."""

_OPEN = {"type": "object"}
_VALUES = frozenset({"type", "required", "enum", "const", "$ref"})
_SCHEMAS = frozenset({"items", "additionalProperties"})
_SCHEMA_LISTS = frozenset({"items", "prefixItems", "anyOf", "oneOf", "allOf"})
_SCHEMA_MAPS = frozenset({"properties", "$defs", "definitions"})


def lower_detail(*details: Detail) -> Detail:
    """Return the level with the least detail."""
    return max(details, key=LADDER.index)


def reduce_tools(tools: tuple[Tool, ...], detail: Detail) -> tuple[Tool, ...]:
    """Return the tools at a level of detail. A provider's own tool (no schema) is unchanged."""
    return tools if detail == "full" else tuple(_reduce(tool, detail) for tool in tools)


def _reduce(tool: Tool, detail: Detail) -> Tool:
    if tool.schema is None:
        return tool
    schema = _strip_schema(tool.schema) if detail == "types" else dict(_OPEN)
    return replace(tool, description="", schema=schema)


def _strip_schema(schema: Any) -> Any:
    """Return a schema without descriptions, titles, examples and defaults."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _SCHEMA_MAPS and isinstance(value, dict):
            kept[key] = {name: _strip_schema(inner) for name, inner in value.items()}
        elif key in _SCHEMA_LISTS and isinstance(value, list):
            kept[key] = [_strip_schema(inner) for inner in value]
        elif key in _SCHEMAS:
            kept[key] = _strip_schema(value)
        elif key in _VALUES:
            kept[key] = value
    return kept


class Level(NamedTuple):
    """The tools of a call at one level of detail."""

    tools: tuple[Tool, ...]
    tokens: int


class Offer(Struct, frozen=True):
    """Tools, other body fields, and text for one call."""

    tools: tuple[Tool, ...]
    template: Template | None
    levels: Mapping[Detail, Level]
    """The tools at each level of detail."""
    tools_digest: str
    template_digest: str
    blobs: Mapping[str, bytes]
    """Tools and fields as stored, by their digests."""
    transient: CountedTransient = NO_TEXT
    """Text for this call alone."""

    def count_beside(self, detail: Detail) -> dict[str, int]:
        """Return the tokens, by layer, of all that is not in the view, with the tools at that detail."""
        return {"tools": self.levels[detail].tokens, **self.transient.counts}


def make_offer(
    tools: tuple[Tool, ...],
    template: Template | None,
    *,
    meter: Meter,
    last: Offer | None = None,
    transient: CountedTransient = NO_TEXT,
) -> Offer:
    """Reduce, count and digest the tools and fields of a call; those of ``last`` where they are equal.

    Raises IllegalRequest when a number in them is NaN or infinite, WireError for other values that JSON cannot
    carry, InputError for a value that is no Tool.
    """
    if last is not None and (last.tools, last.template) == (tools, template):
        return last if last.transient is transient else replace(last, transient=transient)
    _check_tools(tools)
    tools = jsonbytes.as_stored("tools", tools, type_=tuple[Tool, ...])
    check_json("body", template)
    reduced = {detail: reduce_tools(tools, detail) for detail in LADDER}
    levels = {detail: Level(shown, meter.count_tools(shown)) for detail, shown in reduced.items()}
    blobs = jsonbytes.dump_at("tools", msgspec.to_builtins(tools)), jsonbytes.dump_at("body", template)
    tools_digest, template_digest = map(jsonbytes.digest, blobs)
    stored = dict(zip((tools_digest, template_digest), blobs, strict=True))
    return Offer(tools, template, levels, tools_digest, template_digest, stored, transient)


def tools_from(blob: bytes) -> tuple[Tool, ...]:
    """Decode the tools of a stored blob."""
    return convert(jsonbytes.load(blob), tuple[Tool, ...])


def fields_from(blob: bytes) -> Template | None:
    """Decode the body's other fields of a stored blob."""
    return convert(jsonbytes.load(blob), Template | None)


def _check_tools(tools: tuple[object, ...]) -> None:
    odd = [type(tool).__name__ for tool in tools if not isinstance(tool, Tool)]
    if odd:
        raise InputError(f"A {odd[0]} was given as a tool. Give lading.Tool(name, description, schema).")


def suit(
    offer: Offer, view: View, *, wire: Wire, settings: Settings, call: int
) -> tuple[Offer, list[FieldLeftOut]]:
    """Return the offer without the fields that are illegal beside these messages, and an event for each."""
    fields, newest_first = offer.template or {}, (item.message for item in reversed(view.items))
    if not (found := wire.find_unsuited(fields, newest_first, card=settings.card)):
        return offer, []
    kept = {key: value for key, value in fields.items() if key not in found}
    suited = make_offer(offer.tools, kept, meter=settings.meter, transient=offer.transient)
    return suited, [FieldLeftOut(call, field, why) for field, why in found.items()]
