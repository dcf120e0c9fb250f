"""The choice of tools in requests of Gemini: a limit to some functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lading.messages import Template, Tool
from lading.wire.gemini.decoding import find_key
from lading.wire.layout import Object
from lading.wire.tool_choice import ToolChoice

_FIELD, _INNER, _NAMES = "toolConfig", "functionCallingConfig", "allowedFunctionNames"
_MODES = {**dict.fromkeys(("", "MODE_UNSPECIFIED", "AUTO", "VALIDATED"), "VALIDATED"), "ANY": "ANY"}
"""Only VALIDATED and ANY take names; VALIDATED lets the model answer with text, like AUTO."""


def _limit(fields: Object, tools: Sequence[Tool]) -> Template | None:
    holder = _object_at(fields, _FIELD)
    config = _object_at(holder, _INNER)
    mode = _MODES.get(str(config.get("mode", "")))
    if mode is None or find_key(config, _NAMES) in config:
        return None
    limited = {**config, "mode": mode, _NAMES: [tool.name for tool in tools if tool.schema is not None]}
    return {**fields, find_key(fields, _FIELD): {**holder, find_key(holder, _INNER): limited}}


def _find(body: Object) -> str:
    config = _object_at(_object_at(body, _FIELD), _INNER)
    return find_key(body, _FIELD) if find_key(config, _NAMES) in config else ""


def _object_at(holder: Object, name: str) -> dict[str, Any]:
    value = holder.get(find_key(holder, name))
    return value if isinstance(value, dict) else {}


CHOICE = ToolChoice(provider="google", models=r"gemini-(?:2\.5|[3-9])", limit=_limit, find=_find)
