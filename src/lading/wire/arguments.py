"""Arguments of calls as JSON objects, for formats that write objects where ours are texts.

The code of an object is "json" if its text decodes to an equal object; else (a NaN, a number as key, a bare string)
``{"raw": the value}``, which is written while the text is unchanged.
"""

from __future__ import annotations

import json
from typing import Any

from lading import jsonbytes
from lading.errors import WireError
from lading.wire.templates import copy_json


def read_arguments(value: Any, path: str) -> tuple[str, Any]:
    """Return the arguments, as compact JSON in key order, and their code. Raises WireError if not JSON."""
    raw = copy_json(value, path)
    try:
        text = jsonbytes.dump(raw).decode()
        if isinstance(raw, dict) and jsonbytes.load(text) == raw:
            return text, "json"
    except ValueError:
        pass
    except TypeError as error:
        raise WireError(f"{path}: expected a JSON value; {error}.") from error
    try:
        return _dump_loosely(raw), {"raw": raw}
    except ValueError as error:
        raise WireError(f"{path}: expected a JSON value; {error}.") from error


def write_arguments(arguments: str, code: Any = None) -> Any:
    """Return the object of the arguments; text that is not a JSON object is wrapped in one."""
    if isinstance(code, dict) and _dump_loosely(code["raw"]) == arguments:
        return copy_json(code["raw"], "arguments")
    if not arguments.strip():
        return {}
    value = parse_object(arguments)
    return {"raw_arguments": arguments} if value is None else value


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text; None for any other text."""
    try:
        value = jsonbytes.load(text)
        jsonbytes.dump(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _dump_loosely(value: Any) -> str:
    """Return JSON that may contain NaN and infinity."""
    return json.dumps(value, separators=(",", ":"))
