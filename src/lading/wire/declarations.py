"""Convert the tools that a caller gives, in any provider's declarations, to values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from lading.errors import IllegalRequest, InputError
from lading.jsontypes import DEEPEST_LEVELS
from lading.messages import Tool
from lading.validation import check_count
from lading.wire import Wire, list_wires
from lading.wire.coercion import plain, to_dict

_OUTPUT_LIMIT = ("maxOutputChars", "max_output_chars")
_FUNCTIONS = ("function", "functionDeclarations", "function_declarations")
"""Fields of a declaration that hold others."""


class Declared(NamedTuple):
    """Tools, and a copy of the list that they were read from; None if they were given in another form."""

    given: object
    tools: tuple[Tool, ...]


def declare(given: Iterable[object], *, wire: Wire) -> Declared:
    """Convert ``Tool`` values or dicts of any wire to tools. Raises InputError, WireError, and IllegalRequest for
    another provider's own tool."""
    if not isinstance(given, Iterable):
        raise InputError(f"tools is of the type {type(given).__name__}; give a list of declarations.")
    tools: list[Tool] = []
    for item in given:
        if isinstance(item, Tool):
            found: tuple[Tool, ...] = (item,)
        else:
            declaration = to_dict(item)
            chosen = next((one for one in (wire, *list_wires()) if one.layout.tools.claims(declaration)), wire)
            found = read_tools([declaration], wire=chosen)
        tools += found
    foreign = next((tool for tool in tools if tool.schema is None and tool.origin not in ("", wire.name)), None)
    if foreign is not None:
        raise IllegalRequest(
            f"The tool {foreign.name!r} is one of {foreign.origin}'s own, and {wire.name} has no form for it. "
            "Offer it as a function with a schema, or leave it out."
        )
    # What is nested deeper was refused above.
    return Declared(plain(given, levels=2 * DEEPEST_LEVELS) if isinstance(given, list) else None, tuple(tools))


def read_tools(given: Any, *, wire: Wire) -> tuple[Tool, ...]:
    """Read the declarations of a request's body. Raises WireError, and InputError for an invalid output limit."""
    limits: dict[str, int] = {}
    taken = _take_output_limits(given, limits)
    tools = wire.read_tools(taken if limits else given)
    return tuple(replace(tool, max_output_chars=limits.get(tool.name)) for tool in tools) if limits else tools


def _take_output_limits(value: Any, limits: dict[str, int], *, levels: int = 4) -> Any:
    """Take open-multi-agent's ``maxOutputChars`` out of declarations, which providers would refuse with it;
    ``limits`` gets it by the name of the function. ``levels``: of lists and objects that may declare one."""
    if isinstance(value, list) and levels:
        return [_take_output_limits(item, limits, levels=levels - 1) for item in value]
    if not isinstance(value, dict) or not levels:
        return value
    inner = {key: _take_output_limits(value[key], limits, levels=levels - 1) for key in _FUNCTIONS if key in value}
    function = value.get("function")
    named = function if isinstance(function, dict) and "name" not in value else value
    for name in _OUTPUT_LIMIT:
        if name in value:
            check_count(value[name], name=name, least=1)
            limits[str(named.get("name"))] = value[name]
    return {key: inner.get(key, item) for key, item in value.items() if key not in _OUTPUT_LIMIT}
