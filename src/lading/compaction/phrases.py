"""Texts on one line: shortened between words, and the values of JSON with their keys."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

VALUE_CHARS = 60
MOST_VALUE_CHARS = 160
"""A longer value without a blank (an id, a hash, an address) is left out; a shorter one is whole."""
MOST_READ_CHARS = 200_000
"""Of longer JSON only the start is read."""
MOST_STARTED_CHARS = 4_000
_UNSPACED = re.compile(
    r"(?<=[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60])"
)
"""Behind a character of a script that puts no blanks between words."""
_TOKEN = re.compile(
    r'"(?P<key>(?:[^"\\]|\\.){0,80})"\s{0,9}:|(?P<open>[{\[])|(?P<close>[}\]])'
    r'|(?:"(?:[^"\\]|\\.)*+"|-?\d[\d.eE+-]*|true|false)(?=\s{0,9}[,}\]])'
)
Path = tuple[str, ...]


def one_line(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())


def clip(text: str, most_chars: int) -> str:
    """The start of a text on one line, cut between words, with … where it goes on."""
    start = text.lstrip()[: 4 * most_chars]
    line = one_line(start)
    if len(line) <= most_chars and len(start) < 4 * most_chars:
        return line
    blank = line.rfind(" ", 0, most_chars)
    unspaced = max((found.end() for found in _UNSPACED.finditer(line, 0, most_chars)), default=0)
    # Half a path or a number is none.
    return f"{line[:unspaced]}…" if unspaced > blank + 1 else f"{line[:blank]} …" if blank > 0 else "…"


def values(text: str) -> list[tuple[str, str]]:
    """The values of a JSON text, each with its key: with the key around it too, where the key alone stands for
    several things. Numbers are as they were written; ``null`` and empty values are none. A text that is no JSON
    is a value without a key."""
    try:
        found = [*_leaves(json.loads(text, parse_int=str, parse_float=str, parse_constant=str))]
    except (ValueError, RecursionError):
        found = [((), text)]
    return _keyed(found)


def first_values(text: str) -> list[tuple[str, str]]:
    """The values at the start of a long JSON text, else all of them."""
    return _keyed([*_first_leaves(text[:MOST_STARTED_CHARS])]) if len(text) > MOST_READ_CHARS else values(text)


def pair(key: str, value: str) -> str:
    """A value with its key on one line; a value that is one word is whole or left out."""
    is_word = len(value) <= MOST_VALUE_CHARS and len(value.split()) == 1
    return f"{one_line(key)} {value.strip() if is_word else clip(value, VALUE_CHARS)}".strip()


def listed(pairs: Iterable[str], most_chars: int) -> str:
    """As many of the pairs as fit, with … where there are more."""
    shown: list[str] = []
    left = most_chars
    for one in pairs:
        left -= len(one) + 2
        if left < 0:
            return ", ".join([*shown, "…"])
        shown.append(one)
    return ", ".join(shown)


def _keyed(found: Sequence[tuple[Path, str]]) -> list[tuple[str, str]]:
    owners = Counter(path[-1:] for path in {path for path, _ in found})
    named = ((path if owners[path[-1:]] > 1 else path[-1:], value) for path, value in found if value.strip())
    return [(".".join(path), value) for path, value in named]


def _leaves(value: Any) -> Iterator[tuple[Path, str]]:
    """The values of parsed JSON, each with its key and the one around it."""
    stack: list[tuple[Path, Any]] = [((), value)]
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


def _first_leaves(text: str) -> Iterator[tuple[Path, str]]:
    """The values at the start of a JSON text that goes on, each with its key and the one around it."""
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
            yield from ((path, leaf) for _, leaf in _leaves(value))
