"""The choice of tools in requests of the Responses API: a limit to some of them."""

from __future__ import annotations

from collections.abc import Sequence

from lading.messages import Template, Tool
from lading.wire.openai_chat.choice import MODELS, find_limit, make_limit
from lading.wire.tool_choice import ToolChoice


def _write(mode: str, tools: Sequence[Tool]) -> Template:
    return {"type": "allowed_tools", "mode": mode, "tools": [_name(tool) for tool in tools]}


def _name(tool: Tool) -> Template:
    if tool.schema is not None:
        return {"type": "function", "name": tool.name}
    own = tool.template or {}
    return {key: own[key] for key in ("type", "name", "server_label") if isinstance(own.get(key), str)}


CHOICE = ToolChoice(
    provider="openai",
    models=MODELS,
    limit=lambda fields, tools: make_limit(fields, tools, write=_write),
    find=find_limit,
)
