"""Arms of a comparison: their input, a recorded session, and their output, one request for each recorded call."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from lading.messages import Message


class ArmInput(Struct, frozen=True):
    """A recorded session at a window."""

    messages: tuple[Message, ...]
    """As recorded, with the repairs of ``history/repair.py``."""
    calls: tuple[int, ...]
    """Number of messages before each call: call i may use ``messages[:calls[i]]``."""
    room_tokens: int
    """Budget for the messages of a request: window less reserve and tools."""
    window_tokens: int
    count: Callable[[Message], int]
    """Returns the tokens of a message, framing included."""


class ArmRequest(Struct, frozen=True):
    """One request of an arm."""

    upto: int
    """Number of messages of the session before the call."""
    messages: tuple[Message, ...]
    """Messages of the request, in order."""
    summary_read_tokens: int = 0
    """Tokens of the arm's own model call before this request, read from the cache."""
    summary_fresh_tokens: int = 0
    summary_output_tokens: int = 0


class Arm(Struct, frozen=True):
    """A simple strategy for comparison, implemented literally, without log and edits."""

    name: str
    show: Callable[[ArmInput], Iterator[ArmRequest]]
