"""The arguments of a tool call: an ``input`` object on this wire, a string in our values.

The code is "json" when the string reads back as the very input. Else (a NaN, a number as key, a bare
string) the template holds ``{"raw": the input}``, which stands as long as the arguments are not changed.
"""

from __future__ import annotations

import json
from typing import Any

from lading import jsonbytes
from lading.errors import WireError
from lading.messages import ToolCall
from lading.wire.shapes import copied


def read_input(value: Any, path: str) -> tuple[str, Any]:
    """The arguments, as compact JSON in key order, and their code. Raises WireError for no JSON value."""
    raw = copied(value, path)
    try:
        text = jsonbytes.dump(raw).decode()
        if isinstance(raw, dict) and jsonbytes.load(text) == raw:
            return text, "json"
    except ValueError:
        pass
    except TypeError as error:
        raise WireError(f"{path}: expected a JSON value; {error}.") from error
    try:
        return _loose(raw), {"raw": raw}
    except ValueError as error:
        raise WireError(f"{path}: expected a JSON value; {error}.") from error


def write_input(call: ToolCall, *, native: bool) -> Any:
    """The input object of a call, whatever its arguments look like."""
    code = call.template.get("input") if native and call.template else None
    if isinstance(code, dict) and _loose(code["raw"]) == call.arguments:
        return copied(code["raw"], "input")
    if not call.arguments.strip():
        return {}
    try:
        value = jsonbytes.load(call.arguments)
        jsonbytes.dump(value)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"raw_arguments": call.arguments}


def _loose(value: Any) -> str:
    """JSON that also spells NaN and infinity, as Python does."""
    return json.dumps(value, separators=(",", ":"))
