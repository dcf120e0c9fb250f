"""Rebuild requests from manifest, log and edits, and compare them with the bytes that were sent.

No strategy runs and no token is counted. The view is built from the log and the edits; the frame holds the tools,
the body's other fields and the provider format.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from msgspec import Struct

from lading.addresses import parse
from lading.errors import InputError, PackError, StoreFormatError, TamperedError
from lading.history.log import Edit, Entry, log_chain
from lading.history.view import View, append_message, apply_edit, rebuild
from lading.messages import Template, Tool
from lading.request.builder import RequestBuilder
from lading.request.manifest import ENCODER, Frame, Manifest, decision, unseal
from lading.request.tail import add_tail
from lading.request.tools import fields_from, reduce_tools, tools_from
from lading.request.transient import list_front, read_transient
from lading.stores import SessionStore, read_manifests
from lading.wire import Wire, find_wire

_DIFFERENCES = (TamperedError, StoreFormatError, PackError, InputError)


class Outcome(Struct, frozen=True):
    """Result of comparing one manifest with its rebuilt request."""

    tenant: str
    session: str
    call: int
    problem: str = ""
    """The difference; empty when there is none."""


class Rebuilder:
    """Rebuilds the requests of one stored session in call order, encoding only the new messages of each."""

    def __init__(self, store: SessionStore, tenant: str, session: str) -> None:
        self._store, self._tenant, self._session = store, tenant, session
        stored = store.load(tenant, session, verify=True)
        self._entries: tuple[Entry, ...] = stored.entries
        self._edits: tuple[Edit, ...] = stored.edits
        self.manifests = read_manifests(store, (tenant, session), calls=stored.calls)
        """The stored bytes of the manifests, as of the same moment; ``step`` takes them in order."""
        self._view = View()
        self._shown_entries = self._shown_edits = 0
        self._call = 0
        self._log = self._checksum = ""
        self._frame: Frame | None = None
        self._tools: tuple[Tool, ...] = ()
        self._template: Template | None = None
        self._request: RequestBuilder | None = None

    def step(self, data: bytes) -> tuple[Manifest, bytes]:
        """Decode the next manifest from its stored bytes and rebuild the body of its request.

        Raises TamperedError when log, edits, tools or the rebuilt bytes differ from the manifest.
        """
        manifest = unseal(data)
        place, before = manifest.place, (self._checksum, self._call)
        # After one that differs, the next ones are compared too.
        self._checksum, self._call = manifest.checksum, place.call
        if (place.tenant, place.session) != (self._tenant, self._session):
            raise TamperedError(f"A manifest of {place.tenant}/{place.session} is stored in this session.")
        if manifest.parent != before[0]:
            raise TamperedError("The manifest does not follow the one before it: one was changed or is missing.")
        if place.call != before[1] + 1:
            raise TamperedError(f"The manifest is of call {place.call}; expected call {before[1] + 1}.")
        if "tools" not in manifest.counts:
            raise TamperedError("The manifest lacks the token count of the tools.")
        for record in filter(None, (place.task, place.tools)):
            self._blob(record)  # Of the payload that the request shows, and of its tools.
        request = self._apply_frame(manifest)
        self._extend_view(manifest, request)
        body = rebuild_request(
            request, self._view, manifest=manifest, tools=self._tools, template=self._template, blob=self._blob
        )
        if len(body) != manifest.sent.body_bytes:
            raise TamperedError("The rebuilt request has other bytes than the one that was sent.")
        return manifest, body

    def _blob(self, digest: str) -> bytes:
        return self._store.blob(self._tenant, self._session, digest=digest)

    def _apply_frame(self, manifest: Manifest) -> RequestBuilder:
        if manifest.frame is not None and manifest.frame != self._frame:
            frame = manifest.frame
            if frame.encoder != ENCODER:
                raise StoreFormatError(f"The request was encoded by {frame.encoder}, this version has {ENCODER}.")
            self._frame = frame
            self._tools, self._template = load_frame(frame, self._blob)
            self._request = RequestBuilder(find_loaded_wire(frame.wire), frame.card)
        if self._request is None:
            raise TamperedError("The session's first manifest is not a keyframe.")
        return self._request

    def _extend_view(self, manifest: Manifest, request: RequestBuilder) -> None:
        """Add the entries and edits since the previous manifest to the view, checked against this manifest."""
        seen = manifest.seen
        if seen.entries > len(self._entries) or seen.edits > len(self._edits):
            raise TamperedError("The log has fewer entries than the manifest lists.")
        if seen.entries < self._shown_entries or seen.edits < self._shown_edits:
            raise TamperedError("The manifest lists fewer entries than the previous one.")
        for entry in self._entries[self._shown_entries : seen.entries]:
            append_message(self._view, entry.message, entry=entry.index, tokens=entry.tokens)
            self._log = log_chain(self._log, entry)
            self._shown_entries += 1
        if self._log != seen.log:
            raise TamperedError("The log's entries are not those the manifest lists.")
        edits = self._edits[self._shown_edits : seen.edits]
        if tuple(map(decision, edits)) != manifest.decisions:
            raise TamperedError("The edits are not those the manifest names.")
        for edit in edits:
            self._shown_edits += 1
            in_log = 0 <= edit.first <= edit.last < seen.entries
            if not in_log or len(edit.replacement) != len(edit.replacement_tokens):
                raise TamperedError(f"Edit {edit.index} is not a valid edit.")
            request.forget(apply_edit(self._view, edit))
            self._check_pointers(edit)
        if any(edit.withdraws for edit in edits):
            # Entries that are hidden no longer count, as in the session: its opening messages may be others.
            self._view = rebuild(self._entries[: self._shown_entries], self._edits[: self._shown_edits])

    def _check_pointers(self, edit: Edit) -> None:
        for pointer in edit.pointers:
            place = parse(pointer, within=(self._tenant, self._session))
            first, last, _ = place.log_span()
            if (place.tenant, place.session) != (self._tenant, self._session):
                raise TamperedError(f"{pointer} points outside the session.")
            if not (first <= edit.first and edit.last <= last < len(self._entries)):
                raise TamperedError(f"{pointer} does not hold what edit {edit.index} removed.")


def verify(store: SessionStore, *, tenant: str, session: str) -> Iterator[Outcome]:
    """Compare every manifest of a session with its rebuilt request; stop where the store cannot be read.

    Raises StoreError when there is no such session.
    """
    call = 0
    try:
        rebuilder = Rebuilder(store, tenant, session)
        for call, data in enumerate(rebuilder.manifests, start=1):
            yield Outcome(tenant, session, call, _find_difference(rebuilder, data))
    except _DIFFERENCES as error:
        yield Outcome(tenant, session, call, str(error))


def _find_difference(rebuilder: Rebuilder, data: bytes) -> str:
    try:
        rebuilder.step(data)
    except _DIFFERENCES as error:
        return str(error)
    return ""


def load_frame(frame: Frame, blob: Callable[[str], bytes]) -> tuple[tuple[Tool, ...], Template | None]:
    """Load the tools of a frame at full detail, and the body's other fields; ``blob`` returns a blob by digest.

    Raises TamperedError when they cannot be decoded.
    """
    try:
        return tools_from(blob(frame.tools)), fields_from(blob(frame.template))
    except ValueError as error:
        raise TamperedError(f"Tools or other fields cannot be read: {error}.") from error


def rebuild_request(
    request: RequestBuilder,
    view: View,
    *,
    manifest: Manifest,
    tools: tuple[Tool, ...],
    template: Template | None,
    blob: Callable[[str], bytes],
) -> bytes:
    """Build the request of a manifest again, with its text for it alone; return its body. ``tools``: at full
    detail. ``blob`` returns a blob by digest. Raises TamperedError when the bytes are not those that were sent."""
    text = read_transient(manifest.sent.transient, blob)
    request.open(
        view,
        tools=reduce_tools(tools, manifest.tool_detail),
        tools_tokens=manifest.counts.get("tools", 0),
        template=template,
        front=list_front(text, manifest.counts.get("front", 0)),
    )
    request.show(view)
    request.mark(manifest.sent.marks, view)
    tailed = add_tail(request, text.tail) if text.tail else None
    if (tailed.digest if tailed else request.body_chain[-1]) != manifest.sent.digest:
        raise TamperedError(f"The rebuilt request of call {manifest.place.call} has other bytes than the one sent.")
    return tailed.body if tailed else request.body()


def rebuild_body(store: SessionStore, *, tenant: str, session: str, call: int) -> bytes:
    """Rebuild the body of one call, byte for byte. Raises PackError when the session has no such call."""
    rebuilder = Rebuilder(store, tenant, session)
    for data in rebuilder.manifests:
        manifest, body = rebuilder.step(data)
        if manifest.place.call == call:
            return body
    raise PackError(f"The session {tenant}/{session} has no call {call}.")


def find_loaded_wire(name: str) -> Wire:
    """Return the provider format that a stored frame names.

    Raises StoreFormatError when that would import a module: a name in a store must not cause code to run.
    """
    module, separator, _ = name.partition(":")
    if separator and module not in sys.modules:
        raise StoreFormatError(
            f"The request was made for the provider format {name!r}. Import {module} first if you trust it, "
            "or register the format under a short name."
        )
    return find_wire(name)
