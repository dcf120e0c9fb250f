"""Texts that make careless programs slow: how long they take where history is read, the slowest of each.

The tests hold the same functions to linear time (``tests/growth.py``); a constant that is absurd shows here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

from bench.arms.identifiers import identifiers
from bench.figures import Figure, below, plain
from lading.compaction.fencing import redact
from lading.compaction.identifiers import find_mentions
from lading.compaction.notes import Notes
from lading.compaction.record import write_record
from lading.compaction.user_rules import find_statements, restate
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from lading.tokens import exact
from tests.compaction.hostile import HOSTILE

RUNS = 3
SHOWN = 3


def run() -> list[Figure]:
    """Medians in milliseconds: the slowest texts of each function, and all texts together."""
    return [figure for name, (read, most_ms) in READERS.items() for figure in _figures(name, read, most_ms=most_ms)]


def _figures(name: str, read: Callable[[str], object], *, most_ms: float) -> list[Figure]:
    taken_ms = {text: _median_ms(read, HOSTILE[text]) for text in HOSTILE}
    slowest = sorted(taken_ms, key=lambda text: -taken_ms[text])[:SHOWN]
    return [
        *(
            below(f"{name}: {_size(text)} of {text}", taken_ms[text], most_ms, unit="ms", digits=0)
            for text in slowest
        ),
        plain(f"{name}: all {len(HOSTILE)} texts", f"{sum(taken_ms.values()):,.0f} ms"),
    ]


def _note_down(text: str) -> None:
    notes = Notes()
    history = (
        user_text(text),
        Message("assistant", (Text(text), ToolCall("c", text, text))),
        Message("tool", (ToolResult("c", (Text(text),), is_error=True),)),
    )
    for entry, message in enumerate(history):
        notes.add(entry, message, count=_tokens)
    write_record(notes.between(0, len(history)), most_tokens=500, count=_tokens)


def _mentioned(text: str) -> None:
    for message in (user_text(text), Message("assistant", (ToolCall("c", "read", text),))):
        list(find_mentions(message))


def _tokens(text: str) -> int:
    return len(text) // 4


READERS: Mapping[str, tuple[Callable[[str], object], float]] = {
    "values named": (_mentioned, 1_000),
    "records written": (_note_down, 4_000),
    "rules restated": (
        lambda text: restate(find_statements([user_text(text)]), most_tokens=500, count=lambda _: 1),
        1_000,
    ),
    "secrets removed": (redact, 1_500),
    "identifiers of a transcript": (lambda text: list(identifiers(text, words=6)), 4_000),
}
"""What reads a text, and how many milliseconds it may take."""


def _size(text: str) -> str:
    return f"{len(HOSTILE[text]) / 1_000_000:.1f} MB"


def _median_ms(read: Callable[[str], object], text: str) -> float:
    times = []
    for _ in range(RUNS):
        exact.remembered.clear()
        started = time.perf_counter()
        read(text)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)
