"""The data of a report, as small as it can be: each message of a log once, each edit once, and of each call
only how much of both its request shows, and the calls that show each (``timeline.py``)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lading.compaction.record_lines import RecordText
from lading.economics import OwnCalls, Usage
from lading.evaluate.bill_reconciliation import SideBySide
from lading.history.log import EditKind, Reported
from lading.request.manifest import Cause, Frame, Prefix

FORMAT = 1
"""Version of the data's form."""

PieceKind: TypeAlias = Literal["text", "call", "result", "reasoning", "image", "file", "opaque"]


class PartData(Struct, frozen=True, omit_defaults=True):
    """A part of a message as a person reads it. Pictures and other bytes are named, not carried."""

    kind: PieceKind
    text: str = ""
    """Words, arguments of a call, reasoning, or an opaque part as JSON."""
    name: str = ""
    """Of the tool, or of the file."""
    id: str = ""
    """Of the tool call."""
    pieces: tuple[PartData, ...] = ()
    """What a result holds."""
    is_error: bool = False
    note: str = ""
    """What is sent and not shown here: a picture's type and size, a signature."""


class MessageData(Struct, frozen=True, omit_defaults=True):
    """A message."""

    role: str
    pieces: tuple[PartData, ...]
    name: str = ""


class EntryData(Struct, frozen=True, omit_defaults=True):
    """An entry of the log; its index is its place in the list."""

    message: MessageData
    tokens: int
    turn: int = 0
    at_s: float | None = None
    shown: tuple[int, int] | None = None
    """Positions of the calls from which and until which requests show it; None: no call saw it."""


class EditData(Struct, frozen=True, omit_defaults=True):
    """A frozen decision; its index is its place in the list."""

    kind: EditKind
    first: int
    last: int
    messages: tuple[MessageData, ...]
    tokens: tuple[int, ...]
    """Of the record, where there is one, and of each of ``messages``."""
    tokens_before: int
    reason: str
    forced_tokens: int = 0
    pointers: tuple[str, ...] = ()
    record: RecordText | None = None
    """What is before ``messages``."""
    shown: tuple[int, int] | None = None
    """As of entries."""


class ShownCounts(Struct, frozen=True):
    """The part of a session that a request shows: counts of its lists, and places in them."""

    entries: int
    edits: int
    frame: int
    tools: int
    conversation: tuple[int, ...] = ()
    """Of the layer: tokens of what was said, of results of tools, of what edits left in their place."""


class RequestData(Struct, frozen=True, omit_defaults=True):
    """A request as it was sent."""

    digest: str
    body_bytes: int
    cause: Cause = ""
    expected_tokens: int | None = None
    """What the provider was expected to count, after what it had reported; None: nothing was reported yet."""
    learned_from: int = 0
    """How many reports that expectation rests on."""
    own: OwnCalls | None = None
    """What compaction's own model calls for it took."""


class CallData(Struct, frozen=True, omit_defaults=True):
    """One call of a session."""

    call: int
    shows: ShownCounts
    layers: dict[str, int]
    """Tokens of the request by layer; empty where none could be built."""
    simulated: Usage
    """What its input would be billed by a prompt cache that works as the card says; nothing where the provider
    refused it as too long."""
    append_only: Usage
    """The same for sending everything, in a window without end; nothing where the caller did not make the call."""
    prefix: Prefix | None = None
    sent: RequestData | None = None
    account: float = 0.0
    """Rent paid since the last edit, in base input tokens."""
    at_s: float | None = None
    reported: Reported | None = None
    """What the provider said this very request took."""
    recorded: Reported | None = None
    """What the recording says its own call took at this place: another request than the one replayed."""
    error: str = ""
    """Why no request could be built."""


class ToolData(Struct, frozen=True, omit_defaults=True):
    """A tool as a request offers it."""

    name: str
    description: str = ""
    schema: Any = None


class SessionData(Struct, frozen=True):
    """One session."""

    tenant: str
    name: str
    source: str
    """The store or file it was read from, as the caller named it."""
    is_replay: bool
    """Built from a recording of another run, not the requests of that run."""
    frames: tuple[Frame, ...]
    tools: tuple[tuple[ToolData, ...], ...]
    templates: dict[str, Any]
    """The bodies' other fields, by the digest that frames name."""
    entries: tuple[EntryData, ...]
    edits: tuple[EditData, ...]
    calls: tuple[CallData, ...]
    bill: SideBySide | None = None
    """What the recorded run was billed, beside what was simulated; None where its recording does not say."""
    bill_words: tuple[str, ...] = ()
    """Each of the bill's differences in words."""


class ReportData(Struct, frozen=True):
    """The data of a page."""

    format: int
    sessions: tuple[SessionData, ...]
