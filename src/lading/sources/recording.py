"""Recordings of sessions, their billed usage, and the problems found in a session file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from lading.messages import Message, Template, Tool


class Problem(Struct, frozen=True):
    """A part of a file that could not be read unchanged."""

    file: str
    """The file as the caller named it."""
    line: int
    """Counted from 1; 0 where it concerns the whole file."""
    text: str
    """A description of the problem and how it was handled."""


class RecordedUsage(Struct, frozen=True):
    """Usage that the provider billed for one call. The four token counts do not overlap."""

    message_index: int
    """The raw index (see ``Recording.raw_indices``) of the reply."""
    model: str = ""
    input_tokens: int = 0
    """Input at base price: neither read from the cache nor written to it."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    at_s: float | None = None
    """Seconds since 1970."""
    hour_write_tokens: int = 0
    """Of the cache writes, those that the cache keeps for an hour, at a price of their own."""


class RecordedRequest(Struct, frozen=True):
    """One recorded request, as a difference from the request before it."""

    message_index: int
    """The raw index of the reply, as in ``RecordedUsage``; if none is recorded, the index it would have."""
    kept: int
    """Number of leading messages equal to those of the request before it. Cache marks are ignored."""
    added: tuple[Message, ...]
    """The other messages."""
    changed_index: int | None = None
    """Index of the first message that differs from the request before it or is missing; -1 for a difference in the
    system text or the tools outside the list, None if messages were only added."""
    system: tuple[Message, ...] | None = None
    """The leading system messages, those outside the list first; None if equal to the request before it."""
    tools: tuple[Tool, ...] | None = None
    """The tools; None if equal to the request before it."""


class Recording(Struct, frozen=True):
    """A recorded session.

    A message depends on earlier ones only, except that the agents' names (see ``lading.sources.agents``), the model
    and the tools are taken as known from the start.
    """

    id: str
    """Unique within its file."""
    messages: tuple[Message, ...]
    raw_indices: tuple[int, ...]
    """For each message, its index in the raw list of the file, so that one left out does not shift the others. In a
    log with one event a line: the index of its first line, from 0. -1: it is outside the list, as the system
    text of an Anthropic body is."""
    tools: tuple[Tool, ...] = ()
    """The recorded schemas, or open ones for the tools that the file names; see also ``tools_at``."""
    tools_recorded: bool = False
    """Whether ``tools`` are schemas that the session recorded."""
    model: str = ""
    times_s: tuple[float | None, ...] = ()
    """For each message its time in seconds since 1970, None where not recorded."""
    usage: tuple[RecordedUsage, ...] = ()
    origin: str = ""
    """Name of the format of the file."""
    params: Template | None = None
    """The other fields of a request body, temperature and the like, as ``Conversation.template``."""
    requests: tuple[RecordedRequest, ...] = ()
    """The requests in order, if the file has more than one complete request."""


class JsonLine(Struct, frozen=True):
    """One JSON value of a file and the line it starts on, counted from 1."""

    number: int
    value: Any
    item_numbers: tuple[int, ...] = ()
    """Of a list with one item a line: the line of each item."""


Report: TypeAlias = Callable[[int, str], None]
"""A callback for problems: the line (0 for the whole file), and the text of a ``Problem``."""


class Source(Struct, frozen=True):
    """One format of session files."""

    name: str
    recognises: Callable[[Sequence[Any]], bool]
    """Whether a file that starts with these JSON values (one or more) is of this format."""
    read: Callable[[Iterable[JsonLine], Report], Iterator[Recording]]
    """Read the recordings, each as soon as it is complete. An id that the file lacks is left empty. Unreadable
    parts are reported and left out, never raised."""


class SystemChanges(NamedTuple):
    """Changes of the leading system messages of a recording."""

    at: dict[int, list[tuple[int, Message]]]
    """The positions of the system messages that a request changes, each with its new message; by the position of
    the request's reply, or the number of messages if it has no recorded reply."""
    left_out: int
    """Number of requests that start with more or fewer system messages, which cannot be replayed."""


def restated(recording: Recording) -> SystemChanges:
    """Find the changes of system messages that a replay can apply, and count those it cannot."""
    now = list(takewhile(lambda message: message.role == "system", recording.messages))
    found: dict[int, list[tuple[int, Message]]] = {}
    left_out = 0
    for request in recording.requests:
        if request.system is None:
            continue
        if len(request.system) != len(now):
            left_out += 1
            continue
        changes = [(at, message) for at, message in enumerate(request.system) if message != now[at]]
        found.setdefault(bisect_left(recording.raw_indices, request.message_index), []).extend(changes)
        now = list(request.system)
    return SystemChanges(found, left_out)
