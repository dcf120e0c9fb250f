"""What a session file gives: recordings, the usage billed in them, and the problems met on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from lading.messages import Message, Template, Tool


class Problem(Struct, frozen=True):
    """Something in a file could not be taken as it stands."""

    file: str
    """The file as the caller named it."""
    line: int
    """Counted from 1; 0 where it concerns the whole file."""
    text: str
    """What is wrong, and what was done about it."""


class Usage(Struct, frozen=True):
    """What the provider billed for one call. The four token counts do not overlap."""

    message_index: int
    """The raw index (see ``Recording.raw_indices``) of the assistant message that the call gave."""
    model: str = ""
    input_tokens: int = 0
    """Input at base price: neither read from the cache nor written to it."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    at_s: float | None = None
    """Seconds since 1970."""


class Request(Struct, frozen=True):
    """What one call really sent, told by what the call before it sent."""

    message_index: int
    """The raw index of the reply that the call gave, as in ``Usage``; where none was recorded, of what stands
    in its place."""
    kept: int
    """How many of its messages, from the first on, are those of the request before it. Where a mark for the
    cache stands is no difference."""
    added: tuple[Message, ...]
    """The messages after these."""
    changed_index: int | None = None
    """Where in the list of messages, from 0, it first says something else than the request before it, or ends
    before that one does; -1: in the system text or the tools outside of the list. None: it only grows."""
    system: tuple[Message, ...] | None = None
    """The system messages at its start, those outside of the list first. None: those of the request before it."""
    tools: tuple[Tool, ...] | None = None
    """None: those of the request before it."""


class Recording(Struct, frozen=True):
    """One recorded session.

    A message says nothing that only later messages told, with one exception: which agents take part
    (see ``lading.sources.agents``), like the model and the tools, is taken as known from the start.
    """

    id: str
    """Unique within its file."""
    messages: tuple[Message, ...]
    raw_indices: tuple[int, ...]
    """For each message, where it stands in the raw list of the file, so that one left out does not shift the
    others. In a log of one message a line: the index of its first line, from 0. -1: it stands outside
    the list, as the system text of an Anthropic body does."""
    tools: tuple[Tool, ...] = ()
    """The recorded schemas, or open ones for the tools the file names; see also ``tools_at``."""
    tools_recorded: bool = False
    """Whether ``tools`` are schemas that the session recorded."""
    model: str = ""
    times_s: tuple[float | None, ...] = ()
    """For each message, when it was written, in seconds since 1970, where the file says so."""
    usage: tuple[Usage, ...] = ()
    origin: str = ""
    """Name of the format it was read from."""
    params: Template | None = None
    """The other fields of a request body, temperature and the like, as ``Conversation.template``."""
    requests: tuple[Request, ...] = ()
    """The requests in order, where the file holds more than one of them as they were sent."""


class Line(Struct, frozen=True):
    """One JSON value of a file and the line it starts on, counted from 1."""

    number: int
    value: Any


Report: TypeAlias = Callable[[int, str], None]
"""Takes note of a problem: its line (0 for the whole file), and what is wrong and was done about it."""


class Source(Struct, frozen=True):
    """One format of session files."""

    name: str
    recognises: Callable[[Sequence[Any]], bool]
    """Whether a file that starts with these JSON values (one or more) is of this format."""
    read: Callable[[Iterable[Line], Report], Iterator[Recording]]
    """The recordings, as soon as each is complete. An id that the file does not state is left empty. What
    cannot be read is reported and left out, never raised."""
