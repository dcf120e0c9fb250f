"""Shorten texts to one line: cut between words, and list the values of JSON with their keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

VALUE_CHARS = 60
MOST_VALUE_CHARS = 160
"""A longer value without a space (an id, a hash, an address) is left out; a shorter one is shown whole."""
MOST_READ_CHARS = 200_000
"""Of longer JSON only the start is read."""
MOST_STARTED_CHARS = 4_000
UNSPACED = r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60"
"""Characters of scripts without spaces between words, for a class of a pattern."""
_UNSPACED = re.compile(f"(?<=[{UNSPACED}])")
"""Position after a character of a script without spaces between words."""
_TOKEN = re.compile(
    r'"(?P<key>(?:[^"\\]|\\.){0,80})"\s{0,9}:|(?P<open>[{\[])|(?P<close>[}\]])'
    r'|(?:"(?:[^"\\]|\\.)*+"|-?\d[\d.eE+-]*|true|false)(?=\s{0,9}[,}\]])'
)
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
    each object has the outer key too. Numbers keep their spelling; ``null`` and empty values are left out. A text
    that is not JSON is one value without a key."""
    try:
        found = [*_walk(json.loads(text, parse_int=str, parse_float=str, parse_constant=str))]
    except (ValueError, RecursionError):
        found = [((), text)]
    return [*_add_keys(found, text)]


def read_first_values(text: str) -> list[tuple[str, str]]:
    """Return the values at the start of a long JSON text, else all of them."""
    if len(text) <= MOST_READ_CHARS:
        return read_values(text)
    return [*_add_keys([*_scan(text[:MOST_STARTED_CHARS])], text)]


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


def _add_keys(found: Sequence[tuple[KeyPath, str]], text: str) -> Iterator[tuple[str, str]]:
    """Yield each value with its key, the first of an object inside another behind that of the object: its status
    is not that of the whole. The values of the outermost object come first."""
    named: KeyPath = ()
    is_object = text.lstrip()[:1] == "{"
    for path, value in sorted(found, key=lambda one: is_object and len(one[0]) > 1):
        around = path[:-1]
        # A map of objects by their ids has each id twice.
        if not value.strip() or (value,) == around == named:
            continue
        is_named = around not in ((), named)
        named = around
        yield ".".join(path if is_named else path[-1:]), value


def _walk(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Yield the values of parsed JSON, each with its key and the outer one."""
    stack: list[tuple[KeyPath, Any]] = [((), value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [((*path[-1:], name), inner) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(path, inner) for inner in reversed(value)]
        elif isinstance(value, bool):
            yield path, str(value).lower()
        elif isinstance(value, str):
            yield path, value


def _scan(text: str) -> Iterator[tuple[KeyPath, str]]:
    """Yield the values at the start of an incomplete JSON text, each with its key and the outer one."""
    around, key = [""], ""
    for token in _TOKEN.finditer(text):
        if token["key"] is not None:
            key = token["key"]
        elif token["open"]:
            around.append(key if token[0] == "{" else around[-1])
        elif token["close"]:
            before = around.pop() if len(around) > 1 else ""
            key = before if token[0] == "}" else key
        else:
            try:
                value = json.loads(token[0], parse_int=str, parse_float=str)
            except ValueError:
                value = token[0]
            path = tuple(filter(None, (around[-1], key)))
            yield from ((path, leaf) for _, leaf in _walk(value))
