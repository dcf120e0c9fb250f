"""JSON read with every number as it was written, and written without spaces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from msgspec import Struct

MOST_LEVELS = 100
"""Objects and lists inside each other; what is nested deeper is not read."""

quoted: Callable[[str], str] = json.encoder.encode_basestring
"""A string as JSON, other scripts as they are. Surrogates must be escaped, see ``as_string``."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_OPENING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{\]}]', re.DOTALL)


class Number(Struct, frozen=True):
    """A number as it was written: 1.0 stays 1.0, 1e5 stays 1e5. Equal to no string."""

    literal: str


def read(text: str) -> Any:
    """The value, numbers as ``Number``. Raises ValueError for what is no JSON, repeats a key, names NaN, is
    nested more than ``MOST_LEVELS`` deep or holds a surrogate that is not escaped."""
    if not text.isascii() and _SURROGATE.search(text):
        raise ValueError("a surrogate that is not escaped")
    _check_levels(text)
    return json.loads(
        text, parse_int=Number, parse_float=Number, parse_constant=_refuse, object_pairs_hook=_unrepeated
    )


def read_lines(text: str) -> list[Any]:
    """The values of JSON lines, empty lines left out. Raises like ``read``, and for less than two values."""
    values = [read(line) for line in text.split("\n") if line.strip()]
    if len(values) < 2:
        raise ValueError("no JSON lines")
    return values


def as_string(text: str) -> str:
    """A string as JSON."""
    return json.dumps(text) if _SURROGATE.search(text) else quoted(text)


def minified(value: Any) -> str:
    """A value that ``read`` gave, as JSON without spaces."""
    if type(value) is str:
        return as_string(value)
    if type(value) is Number:
        return value.literal
    if type(value) is dict:
        return "{" + ",".join([f"{as_string(key)}:{minified(item)}" for key, item in value.items()]) + "}"
    if type(value) is list:
        return "[" + ",".join(map(minified, value)) + "]"
    return scalar_name(value)


def scalar_name(value: bool | None) -> str:
    """True, false and null as JSON names them."""
    return "null" if value is None else "true" if value else "false"


def _check_levels(text: str) -> None:
    # Asked of the text, not of the parser: how deep that can go depends on who calls.
    if text.count("{") + text.count("[") <= MOST_LEVELS:
        return
    level = 0
    for mark in _OPENING.findall(text):
        if mark in "[{":
            level += 1
            if level > MOST_LEVELS:
                raise ValueError("nested too deeply")
        elif mark in "]}":
            level -= 1


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key that is given twice")
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
