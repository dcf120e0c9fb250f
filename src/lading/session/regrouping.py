"""Compare histories of two provider formats: one has a message for each result, the other all results in one
message, also with words beside them.

A *unit* is one result, or what else a message says. Neighbouring units say the same in one message or in several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from lading.messages import Message, ToolResult


class Run(NamedTuple):
    """Neighbouring given messages that are known as other messages."""

    first: int
    """Index of the first given message."""
    end: int
    """Index behind the last given message."""
    position: int
    """Index of the first known message."""
    units: tuple[int, ...]
    """Units of each known message."""

    @property
    def known_end(self) -> int:
        """Index behind the last known message."""
        return self.position + len(self.units)

    def regroup(self, given: Iterable[Message]) -> list[Message]:
        """Return its given messages grouped like the known ones."""
        units = (unit for message in given for unit in _split(message))
        return [_join([*islice(units, count)]) for count in self.units]


def find_runs(given: Sequence[Message], known: Sequence[Message], *, first: int, position: int) -> Iterator[Run]:
    """Yield the runs in two lists of messages; ``first`` and ``position``: the indices of their first messages."""
    at = other = 0
    while at < len(given) and other < len(known):
        if run := _find_run(given, known, at, other):
            yield run._replace(first=first + run.first, end=first + run.end, position=position + other)
        at, other = (run.end, run.known_end) if run else (at + 1, other + 1)


def _find_run(given: Sequence[Message], known: Sequence[Message], first: int, position: int) -> Run | None:
    """Return the run that begins at these indices; None where both have the same messages, or one format."""
    if not given[first].results or not known[position].results or given[first].origin == known[position].origin:
        return None
    counts, end, left = list[int](), first, 0
    for at in range(position, len(known)):
        if known[at].role == "assistant":
            # What is left was said in addition: the last of them is changed.
            counts[-1], left = counts[-1] + left, 0
            break
        wanted = len(_split(known[at]))
        while left < wanted and end < len(given) and (given[end].results or (left and given[end].role == "user")):
            left, end = left + len(_split(given[end])), end + 1
        counts, left = [*counts, min(left, wanted)], max(left - wanted, 0)
        if not left and not (end < len(given) and given[end].results):
            break
    counts += [left] if left else []
    is_same = counts == [len(_split(one)) for one in given[first:end]]
    return None if is_same else Run(first, end, position, tuple(counts))


def _split(message: Message) -> list[Message]:
    """Return a message's units: each result, and the rest."""
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if len(message.results) + bool(rest) < 2:
        return [message]
    return [message.with_parts(parts) for parts in (*((one,) for one in message.results), rest) if parts]


def _join(units: Sequence[Message]) -> Message:
    """Return units as one message, written as its format writes such a message."""
    parts = tuple(part for unit in units for part in unit.parts)
    return units[0] if len(units) == 1 else replace(units[-1], parts=parts, template=None)
