"""The requests of an arm of a comparison: one value for each recorded call, whoever decided it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from lading.messages import Message


class Case(Struct, frozen=True):
    """A recorded session at a window."""

    messages: tuple[Message, ...]
    """As recorded, mended at the border."""
    calls: tuple[int, ...]
    """For each call how many first messages were before it: call i may use ``messages[:calls[i]]``."""
    room_tokens: int
    """What the messages of a request may count: window less reserve and tools."""
    window_tokens: int
    count: Callable[[Message], int]
    """Tokens of a message, framing included."""


class Showing(Struct, frozen=True):
    """One request: what was before it, and what is shown of it."""

    upto: int
    """How many first messages of the session were before the call."""
    messages: tuple[Message, ...]
    """What the model sees, in order."""
    summary_read_tokens: int = 0
    """Of the arm's own model call before this request: read from the cache."""
    summary_fresh_tokens: int = 0
    summary_output_tokens: int = 0


class Arm(Struct, frozen=True):
    """A simple strategy, literally as described, for comparison: values in, values out, no log, no edits."""

    name: str
    show: Callable[[Case], Iterator[Showing]]
