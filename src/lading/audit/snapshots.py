"""Snapshots of single requests: what the model saw, the place of each message in the body, and the body's bytes.

An ``AuditTrail`` is a session as stored. ``build_snapshot`` rebuilds one of its requests without the earlier ones;
the digest in the manifest proves the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.audit.replay import find_loaded_wire, load_frame, rebuild_request
from lading.errors import InputError, StoreFormatError, TamperedError
from lading.history.log import Edit, Entry
from lading.history.view import View, rebuild
from lading.messages import Message, Template, Tool, own_words
from lading.request.builder import RequestBuilder
from lading.request.manifest import ENCODER, Frame, Manifest, unseal
from lading.request.tail import add_tail
from lading.request.tool_record import ToolRecord, load_tool_record
from lading.request.tools import reduce_tools
from lading.request.transient import read_transient
from lading.stores import SessionStore, read_manifests
from lading.validation import check_count
from lading.wire.layout import Layout

Layer: TypeAlias = Literal["system", "tools", "front", "conversation", "tail", "fields"]
"""Part of a request; ``front`` and ``tail`` are text for it alone, ``fields`` the body's fields other than system,
tools and messages."""


class AuditTrail(Struct, frozen=True):
    """Log, edits and manifests of a session."""

    tenant: str
    session: str
    entries: Sequence[Entry]
    edits: Sequence[Edit]
    manifests: Sequence[Manifest]
    """One for each call, in order."""
    blobs: Mapping[str, bytes]
    """Tools and other fields of the frames, records of tools, and text for single requests, by digest."""

    def frame(self, call: int) -> Frame:
        """Return the frame in force at a call. Raises TamperedError when none was written by then."""
        for manifest in reversed(self.manifests[:call]):
            if manifest.frame is not None:
                return manifest.frame
        raise TamperedError("The session's first manifest is not a keyframe.")

    def first_call(self, entry: int) -> int | None:
        """Return the first call made with the entry in the log; None when there is none."""
        seen = (manifest.place.call for manifest in self.manifests if manifest.seen.entries > entry)
        return next(seen, None)


class SentMessage(Struct, frozen=True):
    """A message as the model saw it."""

    message: Message
    tokens: int
    layer: Layer
    entry: int
    """Index of the log entry it shows; the first one when it replaces a span; -1: it is for this request alone."""
    edit: int
    """Index of the edit that wrote it; -1: none."""
    start: int
    """Index of the body's item in which it begins; -1: it is outside the items."""
    end: int
    """Index after the body's item in which it ends."""
    path: str
    """Path of its beginning in the body, such as ``messages.N`` or ``system``."""


class Snapshot(Struct, frozen=True):
    """One request of a session."""

    manifest: Manifest
    frame: Frame
    entries: Sequence[Entry]
    """The log up to this request."""
    edits: Sequence[Edit]
    shown: tuple[SentMessage, ...]
    tools: tuple[Tool, ...]
    """At the detail that was sent."""
    template: Template | None
    """The body's fields other than items, system and tools, as the caller gave them."""
    envelope: Mapping[str, Any]
    """The body without its items."""
    messages: tuple[dict[str, Any], ...]
    """The body's items."""

    body: bytes
    layout: Layout
    """Where things are in it."""
    offered: ToolRecord | None = None
    """Why it offers these tools; None: they are those that were given."""

    @property
    def call(self) -> int:
        """Number of the call, from 1."""
        return self.manifest.place.call


def load_trail(store: SessionStore, *, tenant: str, session: str) -> AuditTrail:
    """Load a stored session. Raises StoreError when there is none, TamperedError when it was changed."""
    stored = store.load(tenant, session, verify=True)
    manifests, parent = [], ""
    for data in read_manifests(store, (tenant, session), calls=stored.calls):
        manifest = unseal(data)
        if manifest.parent != parent:
            raise TamperedError("A manifest does not follow the one before it: one was changed or is missing.")
        manifests.append(manifest)
        parent = manifest.checksum

    frames = (manifest.frame for manifest in manifests if manifest.frame is not None)
    digests = dict.fromkeys(digest for frame in frames for digest in (frame.tools, frame.template))
    digests |= dict.fromkeys(manifest.place.tools for manifest in manifests if manifest.place.tools)
    digests |= dict.fromkeys(manifest.sent.transient for manifest in manifests if manifest.sent.transient)
    blobs = {digest: store.blob(tenant, session, digest=digest) for digest in digests}
    return AuditTrail(tenant, session, stored.entries, stored.edits, manifests, blobs)


def build_snapshot(trail: AuditTrail, call: int | None = None) -> Snapshot:
    """Rebuild the request of a call (None: the newest).

    Raises InputError when the session has no such call, StoreFormatError for another version's request,
    TamperedError when the rebuilt bytes are not those that were sent.
    """
    manifest = _find_manifest(trail, call)
    frame = trail.frame(manifest.place.call)
    if frame.encoder != ENCODER:
        raise StoreFormatError(f"The request was encoded by {frame.encoder}, this version has {ENCODER}.")
    seen = manifest.seen
    entries, edits = trail.entries[: seen.entries], trail.edits[: seen.edits]
    blob = trail.blobs.__getitem__
    tools, template = load_frame(frame, blob)
    view = rebuild(entries, edits)
    wire = find_loaded_wire(frame.wire)
    request = RequestBuilder(wire, frame.card)
    body = rebuild_request(request, view, manifest=manifest, tools=tools, template=template, blob=blob)
    items = [item for group in request.sent for item in group.wire_messages]
    shown = [*_locate_messages(view, request, wire.layout)]
    envelope = dict(request.envelope)
    if tail := read_transient(manifest.sent.transient, blob).tail:
        _, _, closing, start, at, moved = add_tail(request, tail)
        envelope = {name: value for name, value in envelope.items() if name != moved}
        first = sum(len(group.wire_messages) for group in request.groups[:start])
        items[first:] = closing
        shown = _insert_tail(
            shown, tail, manifest.counts.get("tail", 0), at=first + at, field=wire.layout.items.field
        )
    return Snapshot(
        manifest,
        frame,
        entries,
        edits,
        tuple(shown),
        reduce_tools(tools, manifest.tool_detail),
        template,
        envelope,
        tuple(items),
        body,
        wire.layout,
        load_tool_record(blob(manifest.place.tools)) if manifest.place.tools else None,
    )


def _find_manifest(trail: AuditTrail, call: int | None) -> Manifest:
    calls = len(trail.manifests)
    if not calls:
        raise InputError(f"The session {trail.session!r} has no request yet; pack one first.")
    if call is not None:
        check_count(call, name="call", least=1)
    if call is not None and call > calls:
        raise InputError(f"The session {trail.session!r} has no call {call}; it has calls 1 to {calls}.")
    return trail.manifests[(call or calls) - 1]


def _locate_messages(view: View, request: RequestBuilder, layout: Layout) -> Iterator[SentMessage]:
    items = iter(request.list_shown(view))
    groups = [(len(group.messages), len(group.wire_messages)) for group in request.groups]
    leading = len(view) + len(request.front) - sum(messages for messages, _ in groups)
    start, in_front = 0, True
    for messages, wire_messages in [(leading, -1), *groups]:
        outside = wire_messages < 0
        for _ in range(messages):
            item = next(items)
            in_front = in_front and item.message.role == "system"
            layer: Layer = "system" if in_front else "conversation" if item.entry >= 0 else "front"
            path = layout.system if outside else f"{layout.items.field}.{start}"
            place = (-1, -1, path) if outside else (start, start + wire_messages, path)
            yield SentMessage(item.message, item.tokens, layer, item.entry, item.edit, *place)
        start += 0 if outside else wire_messages


def _insert_tail(shown: list[SentMessage], tail: str, tokens: int, *, at: int, field: str) -> list[SentMessage]:
    """Insert the tail where its item ``at`` puts it; later messages move where it has an item of its own."""
    before = [
        item for item in shown if item.start < at or (item.start == at and item.message.role in ("user", "tool"))
    ]
    after = shown[len(before) :]
    own = not any(item.start <= at < item.end for item in before)
    moved = [
        replace(item, start=item.start + own, end=item.end + own, path=f"{field}.{item.start + own}")
        for item in after
    ]
    message = SentMessage(own_words(tail), tokens, "tail", -1, -1, at, at + 1, f"{field}.{at}")
    return [*before, message, *moved]
