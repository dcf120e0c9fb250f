"""The data of a report. Each message and edit is stored once, with the calls that show it (``timeline.py``); a call
has only the numbers of entries and edits in its request."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lading.compaction import Account
from lading.compaction.record_lines import RecordText
from lading.economics import OwnCalls, Usage
from lading.evaluate.bill_reconciliation import BillComparison
from lading.history.log import EditKind, Reported
from lading.request.manifest import Cause, Frame, Prefix
from lading.task.recalled import RecalledMemory
from lading.task.record import PayloadRecord

FORMAT = 1
"""Version of the data's structure."""

PieceKind: TypeAlias = Literal["text", "call", "result", "reasoning", "image", "file", "opaque"]


class PartData(Struct, frozen=True, omit_defaults=True):
    """A part of a message for people; images and other bytes are described, not included."""

    kind: PieceKind
    text: str = ""
    """Text, arguments of a call, reasoning, or an opaque part as JSON."""
    name: str = ""
    """Name of the tool or file."""
    id: str = ""
    """Id of the tool call."""
    pieces: tuple[PartData, ...] = ()
    """Parts of a result."""
    is_error: bool = False
    note: str = ""
    """Description of content that is sent and not included here: an image's type and size, a signature."""


class MessageData(Struct, frozen=True, omit_defaults=True):
    """A message."""

    role: str
    pieces: tuple[PartData, ...]
    name: str = ""


class EntryData(Struct, frozen=True, omit_defaults=True):
    """An entry of the log; its index is its position in the list."""

    message: MessageData
    tokens: int
    turn: int = 0
    at_s: float | None = None
    shown: tuple[int, int] | None = None
    """Positions of the first call that shows it and of the next call that does not; None: no call shows it."""


class EditData(Struct, frozen=True, omit_defaults=True):
    """An edit; its index is its position in the list."""

    kind: EditKind
    first: int
    last: int
    messages: tuple[MessageData, ...]
    tokens: tuple[int, ...]
    """Tokens of the record, where there is one, and of each of ``messages``."""
    tokens_before: int
    reason: str
    forced_tokens: int = 0
    pointers: tuple[str, ...] = ()
    record: RecordText | None = None
    """The record, shown before ``messages``."""
    shown: tuple[int, int] | None = None
    """As in ``EntryData``."""


class ShownCounts(Struct, frozen=True):
    """The part of a session that a request shows: numbers of entries and edits, indexes of frame and tools."""

    entries: int
    edits: int
    frame: int
    tools: int
    conversation: tuple[int, ...] = ()
    """Tokens of the conversation layer: messages, tool results, and replacements by edits."""


class StepData(Struct, frozen=True, omit_defaults=True):
    """The step of a task that a request is for."""

    payload: str
    """Digest of its payload's record."""
    record: PayloadRecord | None = None
    """The record, in the first request that shows the payload."""
    outcomes: tuple[dict[str, Any], ...] = ()
    """Outcomes of acceptance of the reply, oldest first."""


class RequestData(Struct, frozen=True, omit_defaults=True):
    """A request as it was sent."""

    digest: str
    body_bytes: int
    cause: Cause = ""
    expected_tokens: int | None = None
    """Expected token count of the provider, from its earlier reports; None: nothing was reported yet."""
    learned_from: int = 0
    """Number of reports used for this expectation."""
    own: OwnCalls | None = None
    """Compaction's own model calls for it."""
    step: StepData | None = None
    memories: tuple[RecalledMemory, ...] = ()
    """Records of a memory that it shows, without their texts."""


class CallData(Struct, frozen=True, omit_defaults=True):
    """One call of a session."""

    call: int
    shows: ShownCounts
    layers: dict[str, int]
    """Tokens of the request by layer; empty without a request."""
    simulated: Usage
    """Simulated bill of its input, with a prompt cache that follows the model card; zero where the provider refused
    the request as too long."""
    append_only: Usage
    """The same for everything sent, in an unlimited window; zero where the caller did not make the call."""
    prefix: Prefix | None = None
    sent: RequestData | None = None
    account: Account = 0.0
    at_s: float | None = None
    reported: Reported | None = None
    """Usage that the provider reported for this request."""
    recorded: Reported | None = None
    """Usage of the recorded call at this position, whose request differs from the replayed one."""
    error: str = ""
    """Error that prevented the request."""


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
    """Store or file it was read from, as named by the caller."""
    is_replay: bool
    """The requests were built by a replay of a recording; they are not the recorded ones."""
    frames: tuple[Frame, ...]
    tools: tuple[tuple[ToolData, ...], ...]
    templates: dict[str, Any]
    """The bodies' other fields, by the digest in frames."""
    entries: tuple[EntryData, ...]
    edits: tuple[EditData, ...]
    calls: tuple[CallData, ...]
    bill: BillComparison | None = None
    """Recorded bill compared with the simulated ones; None where the recording has no bill."""
    bill_words: tuple[str, ...] = ()
    """Description of each of the bill's differences."""


class ReportData(Struct, frozen=True):
    """The data of a page."""

    format: int
    sessions: tuple[SessionData, ...]
