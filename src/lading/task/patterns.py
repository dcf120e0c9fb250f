"""Search with a regular expression of the caller in time linear in the text: a subset of ``re`` without
backtracking.

Literals, classes, ``.``, ``^``, ``$``, groups, alternatives and repeats; no references, no looking around. Letters
match in any case, ``^`` and ``$`` at the ends of lines. The expression becomes states, and all of them are followed
at once.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

from lading.errors import InputError

MOST_PATTERN_CHARS = 500
MOST_STATES = 2_000
"""Repeats with counts are written out."""
_MATCH = -1


def search(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text. Raises InputError for a pattern outside of the subset."""
    program = _compile(pattern)
    known: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}
    states: frozenset[int] = frozenset()
    before = "\n"
    for letter in text:
        key = states, before, letter
        if key not in known:
            started = program.follow({*states, 0}, before, letter)
            if _MATCH in started:
                return True
            known[key] = frozenset(program.step(started, letter))
        states, before = known[key], letter
    # The end of the text is also the end of a line, and no character.
    return _MATCH in program.follow({*states, 0}, before, "\n")


class _Program:
    """States by number: ``("char", test, next)``, ``("at", sign, next)``, ``("fork", nexts)``, ``("end",)``."""

    def __init__(self) -> None:
        self.states: list[tuple[Any, ...]] = []

    def add(self, *state: Any) -> int:
        if len(self.states) >= MOST_STATES:
            raise InputError(f"The pattern has more than {MOST_STATES:,} states. Use smaller repeats.")
        self.states.append(state)
        return len(self.states) - 1

    def follow(self, states: Iterable[int], before: str, after: str) -> set[int]:
        """Return the states that are reached without a character, between these two."""
        seen: set[int] = set()
        waiting = [*states]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            kind, *rest = self.states[at]
            if kind == "fork":
                waiting += rest[0]
            elif kind == "at" and (before if rest[0] == "start" else after) == "\n":
                waiting.append(rest[1])
            elif kind == "end":
                seen.add(_MATCH)
        return seen

    def step(self, states: Iterable[int], letter: str) -> set[int]:
        """Return the states behind the letter."""
        found = (self.states[at] for at in states if at != _MATCH)
        return {state[2] for state in found if state[0] == "char" and state[1].fullmatch(letter)}


def _compile(pattern: str) -> _Program:
    if len(pattern) > MOST_PATTERN_CHARS:
        raise InputError(f"The pattern has {len(pattern):,} characters; at most {MOST_PATTERN_CHARS}. Shorten it.")
    # The parser of ``re`` has no public name.
    parser = importlib.import_module("re._parser")
    try:
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"The pattern {pattern[:80]!r} is no regular expression: {error}.") from error
    if tree.state.flags & ~int(re.UNICODE):
        raise InputError("A pattern cannot set flags: letters match in any case, ^ and $ at the ends of lines.")
    program = _Program()
    program.add("fork", [])
    end = program.add("end")
    program.states[0] = ("fork", [_build(program, tree, end)])
    return program


def _build(program: _Program, tree: Iterable[Any], end: int) -> int:
    """Add the states of a sequence that continues at ``end``; return the first."""
    for code, value in reversed([*tree]):
        name = str(code)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            end = program.add("char", re.compile(_write_class(name, value), re.IGNORECASE), end)
        elif name == "AT" and str(value) in ("AT_BEGINNING", "AT_END"):
            end = program.add("at", "start" if str(value) == "AT_BEGINNING" else "end", end)
        elif name == "SUBPATTERN":
            if value[1] or value[2]:
                raise InputError("A group of a pattern cannot set flags. Remove them.")
            end = _build(program, value[-1], end)
        elif name == "BRANCH":
            end = program.add("fork", [_build(program, branch, end) for branch in value[1]])
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            end = _repeat(program, value, end)
        else:
            raise InputError(f"A pattern cannot have {name.lower()}. Use literals, classes, groups and repeats.")
    return end


def _repeat(program: _Program, value: tuple[int, Any, list[Any]], end: int) -> int:
    least, most, body = value
    if "MAXREPEAT" in repr(most):
        loop = program.add("fork", [])
        program.states[loop] = ("fork", [_build(program, body, loop), end])
        end = loop
    else:
        for _ in range(min(most - least, MOST_STATES + 1)):
            end = program.add("fork", [_build(program, body, end), end])
    for _ in range(min(least, MOST_STATES + 1)):
        # A body without states would be repeated without end.
        program.add("fork", [])
        end = _build(program, body, end)
    return end


_CATEGORIES = {"DIGIT": r"\d", "NOT_DIGIT": r"\D", "SPACE": r"\s", "NOT_SPACE": r"\S", "WORD": r"\w"}


def _write_class(name: str, value: Any) -> str:
    """Write one character of the parsed pattern as a pattern again."""
    if name == "ANY":
        return "[^\n]"
    if name in ("LITERAL", "NOT_LITERAL"):
        return f"[{'^' if name == 'NOT_LITERAL' else ''}{re.escape(chr(value))}]"
    pieces = []
    for code, item in value:
        kind = str(code)
        if kind == "NEGATE":
            pieces.append("^")
        elif kind == "RANGE":
            pieces.append(f"{re.escape(chr(item[0]))}-{re.escape(chr(item[1]))}")
        elif kind == "CATEGORY":
            pieces.append(_CATEGORIES.get(str(item).removeprefix("CATEGORY_"), r"\W"))
        else:
            pieces.append(re.escape(chr(item)))
    return f"[{''.join(pieces)}]"
