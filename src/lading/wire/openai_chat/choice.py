"""The choice of tools in requests of OpenAI: a limit to some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lading.messages import Template, Tool
from lading.wire.layout import Object
from lading.wire.tool_choice import ToolChoice

MODELS = r"gpt-[5-9](?!.*chat)"
_FIELD, _KIND = "tool_choice", "allowed_tools"


def make_limit(
    fields: Object, tools: Sequence[Tool], *, write: Callable[[str, Sequence[Tool]], Any]
) -> Template | None:
    """Return the fields with the limit that ``write`` makes of its mode and the tools; None where the caller forces
    one tool, none, or has a limit of his own."""
    mode = fields.get(_FIELD, "auto")
    return {**fields, _FIELD: write(mode, tools)} if mode in ("auto", "required") else None


def find_limit(body: Object) -> str:
    """Return the field that limits the tools, if it does."""
    choice = body.get(_FIELD)
    return _FIELD if isinstance(choice, dict) and choice.get("type") == _KIND else ""


def _write(mode: str, tools: Sequence[Tool]) -> Template:
    return {"type": _KIND, _KIND: {"mode": mode, "tools": [_name(tool) for tool in tools]}}


def _name(tool: Tool) -> Template:
    kind = "function" if tool.schema is not None else str((tool.template or {}).get("type"))
    return {"type": kind, kind: {"name": tool.name}}


CHOICE = ToolChoice(
    provider="openai",
    models=MODELS,
    limit=lambda fields, tools: make_limit(fields, tools, write=_write),
    find=find_limit,
)
