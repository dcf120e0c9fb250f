"""System messages that a recording's requests restate: agents put the date there."""

from __future__ import annotations

from bisect import bisect_left
from itertools import takewhile
from typing import NamedTuple

from lading.messages import Message
from lading.sources.recording import Recording


class Restated(NamedTuple):
    """How the system messages at the start of a recording change from request to request."""

    at: dict[int, list[tuple[int, Message]]]
    """By the position of the reply (the number of messages, where none is recorded): the positions of the system
    messages that its request states anew, each with what it says from then on."""
    left_out: int
    """Requests that start with more or fewer system messages, which nothing can stand in for."""


def restated(recording: Recording) -> Restated:
    """The changes that a replay can make, and how many it cannot."""
    now = list(takewhile(lambda message: message.role == "system", recording.messages))
    found: dict[int, list[tuple[int, Message]]] = {}
    left_out = 0
    for request in recording.requests:
        if request.system is None:
            continue
        if len(request.system) != len(now):
            left_out += 1
            continue
        changes = [
            (position, message) for position, message in enumerate(request.system) if message != now[position]
        ]
        found.setdefault(bisect_left(recording.raw_indices, request.message_index), []).extend(changes)
        now = list(request.system)
    return Restated(found, left_out)
