"""One request as it was: what the model saw, where each message stood in the body, and the body's bytes.

A ``Record`` is a session as a store holds it. ``snapshot`` builds one of its requests at the cost of that
request alone: no earlier one is rebuilt, and the digest in the manifest proves the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lading.audit.replay import loaded_wire, offered
from lading.errors import InputError, StoreFormatError, TamperedError
from lading.history.log import Edit, Entry
from lading.history.view import View, rebuild
from lading.messages import Message, Template, Tool
from lading.request.builder import Request
from lading.request.manifest import ENCODER, Frame, Manifest, unseal
from lading.request.tools import reduce_tools
from lading.stores import SessionStore

Layer: TypeAlias = Literal["system", "tools", "conversation", "fields"]
"""Where in a request something stands; ``fields`` are those of the body besides system, tools, messages."""


class Record(Struct, frozen=True):
    """A session's log, edits and receipts, as values."""

    tenant: str
    session: str
    entries: Sequence[Entry]
    edits: Sequence[Edit]
    manifests: Sequence[Manifest]
    """One for each call, in order."""
    blobs: Mapping[str, bytes]
    """Tools and other fields of the frames, by digest."""

    def frame(self, call: int) -> Frame:
        """The frame that stands at a call. Raises TamperedError when none was written by then."""
        for manifest in reversed(self.manifests[:call]):
            if manifest.frame is not None:
                return manifest.frame
        raise TamperedError("The session's first manifest is not a keyframe.")

    def first_call(self, entry: int) -> int | None:
        """The first call whose request was made with the entry in the log; None when none was."""
        seen = (manifest.place.call for manifest in self.manifests if manifest.seen.entries > entry)
        return next(seen, None)


class Shown(Struct, frozen=True):
    """A message as the model saw it."""

    message: Message
    tokens: int
    layer: Layer
    entry: int
    """The log entry it stands for; the first one when it stands for a span."""
    edit: int
    """The edit that made it so; -1: it is shown as it came."""
    start: int
    """The body's message in which it begins; -1: it stands in the body's ``system``."""
    end: int
    """The body's message before which it ends."""

    @property
    def path(self) -> str:
        """Where it begins in the body: ``messages.N`` or ``system``."""
        return "system" if self.start < 0 else f"messages.{self.start}"


class Snapshot(Struct, frozen=True):
    """One request of a session."""

    manifest: Manifest
    frame: Frame
    entries: Sequence[Entry]
    """The log up to this request."""
    edits: Sequence[Edit]
    shown: tuple[Shown, ...]
    tools: tuple[Tool, ...]
    """At the level of detail that was sent."""
    template: Template | None
    """The body's fields besides messages, system and tools, as they were handed in."""
    envelope: Mapping[str, Any]
    """The body but its messages."""
    messages: tuple[dict[str, Any], ...]
    """The body's messages."""
    body: bytes

    @property
    def call(self) -> int:
        """Which call it was, from 1."""
        return self.manifest.place.call


def recorded(store: SessionStore, *, tenant: str, session: str) -> Record:
    """A stored session. Raises StoreError when there is none, TamperedError when it is not as written."""
    stored = store.load(tenant, session, verify=True)
    manifests, parent = [], ""
    for data in store.manifests(tenant, session):
        manifest = unseal(data)
        if manifest.parent != parent:
            raise TamperedError("A manifest does not follow the one before it: one was changed or is missing.")
        manifests.append(manifest)
        parent = manifest.checksum

    frames = (manifest.frame for manifest in manifests if manifest.frame is not None)
    digests = dict.fromkeys(digest for frame in frames for digest in (frame.tools, frame.template))
    blobs = {digest: store.blob(tenant, session, digest=digest) for digest in digests}
    return Record(tenant, session, stored.entries, stored.edits, manifests, blobs)


def snapshot(record: Record, call: int | None = None) -> Snapshot:
    """The request of a call (None: the newest).

    Raises InputError when the session has no such call, StoreFormatError for another version's request,
    TamperedError when the rebuilt bytes are not those that were sent.
    """
    manifest = _manifest(record, call)
    frame = record.frame(manifest.place.call)
    if frame.encoder != ENCODER:
        raise StoreFormatError(f"The request was encoded by {frame.encoder}, this version has {ENCODER}.")
    seen = manifest.seen
    entries, edits = record.entries[: seen.entries], record.edits[: seen.edits]
    tools, template = offered(frame, record.blobs.__getitem__)
    tools = reduce_tools(tools, manifest.tool_detail)
    view = rebuild(entries, edits)
    request = Request(loaded_wire(frame.wire), frame.card)
    request.open(view, tools=tools, tools_tokens=manifest.counts.get("tools", 0), template=template)
    request.show(view)
    if request.chain[-1] != manifest.sent.digest:
        raise TamperedError(f"The rebuilt request of call {manifest.place.call} has other bytes than the one sent.")
    return Snapshot(
        manifest,
        frame,
        entries,
        edits,
        tuple(_shown(view, request)),
        tools,
        template,
        request.envelope,
        tuple(item for _, wire_messages in request.runs() for item in wire_messages),
        request.body(),
    )


def _manifest(record: Record, call: int | None) -> Manifest:
    calls = len(record.manifests)
    if not calls:
        raise InputError(f"The session {record.session!r} has no request yet; pack one first.")
    if call is not None and not 1 <= call <= calls:
        raise InputError(f"The session {record.session!r} has no call {call}; it has calls 1 to {calls}.")
    return record.manifests[(call or calls) - 1]


def _shown(view: View, request: Request) -> Iterator[Shown]:
    items = iter(view.items)
    runs = [(len(messages), len(wire_messages)) for messages, wire_messages in request.runs()]
    leading = len(view) - sum(messages for messages, _ in runs)
    start, in_front = 0, True
    for messages, wire_messages in [(leading, -1), *runs]:
        outside = wire_messages < 0
        for _ in range(messages):
            item = next(items)
            in_front = in_front and item.message.role == "system"
            layer: Layer = "system" if in_front else "conversation"
            place = (-1, -1) if outside else (start, start + wire_messages)
            yield Shown(item.message, item.tokens, layer, item.entry, item.edit, *place)
        start += 0 if outside else wire_messages
