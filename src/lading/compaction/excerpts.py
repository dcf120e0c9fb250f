"""Shorten texts to one line: cut between words, and list the values of JSON with their keys."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

VALUE_CHARS = 60
MOST_VALUE_CHARS = 160
"""A longer value without a space (an id, a hash, an address) is left out; a shorter one is shown whole."""
MOST_READ_CHARS = 200_000
"""Of longer JSON only the start is read."""
MOST_STARTED_CHARS = 4_000
MOST_KEYS = 4
"""Keys around a value that may be named."""
UNSPACED = r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60"
"""Characters of scripts without spaces between words, for a class of a pattern."""
_UNSPACED = re.compile(f"(?<=[{UNSPACED}])")
"""Position after a character of a script without spaces between words."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[][{},"]')
_STRAY = re.compile(r'\\(["\\/bfnrtu])?')
_CLOSINGS = {"{": "}", "[": "]"}
KeyPath = tuple[str, ...]


def collapse_spaces(text: str) -> str:
    """Replace each run of white space by one space. Returns the same object where that changes nothing."""
    collapsed = " ".join(text.split())
    return text if collapsed == text else collapsed


def clip(text: str, most_chars: int) -> str:
    """Return the start of a text on one line, cut between words, with … if it is shortened."""
    start = text.lstrip()[: 4 * most_chars]
    line = collapse_spaces(start)
    if len(line) <= most_chars and len(start) < 4 * most_chars:
        return line
    blank = line.rfind(" ", 0, most_chars)
    unspaced = max((found.end() for found in _UNSPACED.finditer(line, 0, most_chars)), default=0)
    # A part of a path or a number would be a wrong value.
    return f"{line[:unspaced]}…" if unspaced > blank + 1 else f"{line[:blank]} …" if blank > 0 else "…"


def read_values(text: str) -> list[tuple[str, str]]:
    """Return the values of a JSON text, each with its key. If a key alone would be ambiguous, the first value of
    each object has outer keys too. Numbers keep their spelling; a list in a list is one value; objects are shown
    without ``null`` and empty values. A text that is not JSON is one value without a key."""
    found = _parse(text)
    return ([("", text)] if text.strip() else []) if found is None else found


def read_first_values(text: str) -> list[tuple[str, str]]:
    """Return the values at the start of a long JSON text, else all of them."""
    return read_values(text) if len(text) <= MOST_READ_CHARS else _parse(_close(text[:MOST_STARTED_CHARS])) or []


def join_pair(key: str, value: str) -> str:
    """Write a key and its value on one line; a value of one word is shown whole or left out."""
    is_word = len(value) <= MOST_VALUE_CHARS and len(value.split()) == 1
    return f"{collapse_spaces(key)} {value.strip() if is_word else clip(value, VALUE_CHARS)}".strip()


def join_fitting(texts: Iterable[str], most_chars: int) -> str:
    """Join as many of the texts as fit, with … if there are more."""
    shown: list[str] = []
    left = most_chars
    for one in texts:
        left -= len(one) + 2
        if left < 0:
            return ", ".join([*shown, "…"])
        shown.append(one)
    return ", ".join(shown)


def _parse(text: str) -> list[tuple[str, str]] | None:
    try:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        return [*_add_keys([*_walk(found)], is_object=isinstance(found, dict))]
    except (ValueError, RecursionError):
        return None


def _add_keys(found: Sequence[tuple[KeyPath, str]], *, is_object: bool) -> Iterator[tuple[str, str]]:
    """Yield each value with its key, the first of an object inside another behind that of the object: its status
    is not that of the whole. The values of the outermost object come first."""
    owners = _name_owners({path[:-1] for path, _ in found})
    named: KeyPath = ()
    for path, value in sorted(found, key=lambda one: is_object and len(one[0]) > 1):
        around = path[:-1]
        # A map of objects by their ids has each id twice.
        if not value.strip() or (around == named and around[-1:] == (value,)):
            continue
        is_named = around == named
        named = around
        yield ".".join(path[-1:] if is_named else (*owners[around], *path[-1:])), value


def _name_owners(paths: Set[KeyPath]) -> dict[KeyPath, KeyPath]:
    """Return for the path of each object its last key, or as many as no other object has."""
    ends = Counter(path[-size:] for path in paths for size in range(1, len(path) + 1))
    return {
        path: next((path[-size:] for size in range(1, len(path)) if ends[path[-size:]] == 1), path)
        for path in paths
    }


def _walk(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Yield the values of parsed JSON, each with its key and those around it."""
    stack: list[tuple[KeyPath, Any]] = [((), value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [((*path[-MOST_KEYS:], name), inner) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(path, _join_row(inner)) for inner in reversed(value)]
        elif value is not None:
            yield path, _spell(value)


def _join_row(item: Any) -> Any:
    """Return an item of a list: a list of single values, such as the row of a table, as one text. The position of
    a value may say what it is, so absent ones have a mark."""
    if isinstance(item, list):
        return item if any(isinstance(one, dict | list) for one in item) else f"[{', '.join(map(_join_row, item))}]"
    return item if isinstance(item, dict) else _spell(item) or '""'


def _spell(value: str | bool | None) -> str:
    return value if isinstance(value, str) else "null" if value is None else str(value).lower()


def _close(start: str) -> str:
    """Return the start of a JSON text up to its last whole value, with what is open closed."""
    opened, closed = "", ""
    for token in _TOKEN.finditer(start):
        if token[0] == '"':
            break
        if token[0] in _CLOSINGS:
            opened = _CLOSINGS[token[0]] + opened
        elif token[0] in "}]":
            opened = opened[1:]
        if token[0][0] != '"':
            closed = start[: token.start() if token[0] == "," else token.end()] + opened
    return _STRAY.sub(lambda found: found[0] if found[1] else r"\\", closed)
