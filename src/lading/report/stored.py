"""Convert a stored session to a report's data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from lading import jsonbytes
from lading.economics import Usage
from lading.errors import TamperedError
from lading.evaluate.simulated import SimulatedBills
from lading.history.log import Entry
from lading.models.profiles import Detail
from lading.report.conversion import convert_edit, convert_entry, convert_tool
from lading.report.data import CallData, RequestData, SessionData, ShownCounts, StepData, ToolData
from lading.report.timeline import add_timeline
from lading.request.manifest import Frame, Manifest, unseal
from lading.request.tools import reduce_tools, tools_from
from lading.stores import SessionStore, Stored, read_manifests
from lading.task.citing import list_outcomes, read_record
from lading.task.recalled import RecalledMemory, list_recalled


def read_session(store: SessionStore, *, tenant: str, session: str, source: str) -> SessionData:
    """Read a stored session with its timeline. Arguments and errors are those of ``read_without_timeline``."""
    return add_timeline(read_without_timeline(store, tenant=tenant, session=session, source=source))


def read_without_timeline(store: SessionStore, *, tenant: str, session: str, source: str) -> SessionData:
    """Read a stored session. ``source`` names its store or file for people.

    Raises StoreError when there is no such session, TamperedError when its parts do not fit together.
    """
    stored = store.load(tenant, session, verify=True)
    entries, edits = stored.entries, stored.edits
    frames = _FrameTable(lambda digest: store.blob(tenant, session, digest=digest))
    steps = _StepTable(store, (tenant, session))
    bills = SimulatedBills()
    calls: list[CallData] = []
    for manifest in _iter_manifests(store, tenant, session, stored=stored):
        frame, shows = frames.add(manifest)
        for entry in entries[calls[-1].shows.entries if calls else 0 : shows.entries]:
            bills.add_entry(entry)
        bill = bills.bill(manifest, frame)
        if bill.is_unanswered:
            calls[-1] = replace(calls[-1], simulated=Usage())
        if bill.repeats:
            calls[bill.repeats - 1] = replace(calls[bill.repeats - 1], append_only=Usage())
        memories = list_recalled(store, (tenant, session), manifest=manifest, entries=entries)
        memories = tuple(replace(one, text="") for one in memories)
        calls.append(
            CallData(
                call=manifest.place.call,
                shows=shows,
                layers=manifest.layers,
                simulated=bill.sent,
                append_only=bill.everything,
                prefix=manifest.prefix,
                sent=_convert_request(manifest, steps.add(manifest), memories),
                account=manifest.account,
                at_s=manifest.place.at_s,
            )
        )
    return SessionData(
        tenant=tenant,
        name=session,
        source=source,
        is_replay=False,
        frames=tuple(frames.frames),
        tools=tuple(frames.tools),
        templates=frames.templates,
        entries=tuple(map(convert_entry, entries)),
        edits=tuple(convert_edit(edit, entries) for edit in edits),
        calls=tuple(_add_reports(calls, entries)),
    )


def _convert_request(
    manifest: Manifest, step: StepData | None, memories: tuple[RecalledMemory, ...]
) -> RequestData:
    sent, expected = manifest.sent, manifest.sent.expected
    if expected is not None and not expected.calibration.seen:
        expected = None  # No report was used: what is expected is what was counted.
    return RequestData(
        digest=sent.digest,
        body_bytes=sent.body_bytes,
        cause=manifest.place.cause,
        expected_tokens=expected.tokens if expected else None,
        learned_from=expected.calibration.seen if expected else 0,
        own=sent.own,
        step=step,
        memories=memories,
    )


def _iter_manifests(store: SessionStore, tenant: str, session: str, *, stored: Stored) -> Iterator[Manifest]:
    """Yield the manifests, each checked against the log and the previous one: counts may only grow."""
    entries, edits = stored.entries, stored.edits
    seen_entries = seen_edits = 0
    for data in read_manifests(store, (tenant, session), calls=stored.calls):
        manifest = unseal(data)
        seen = manifest.seen
        grows = seen_entries <= seen.entries <= len(entries) and seen_edits <= seen.edits <= len(edits)
        spans = (edit.first <= edit.last < seen.entries for edit in edits[seen_edits : seen.edits])
        if not (grows and all(spans)):
            raise TamperedError(
                f"The manifest of {tenant}/{session} call {manifest.place.call} does not fit the log; "
                "run lading verify for details."
            )
        seen_entries, seen_edits = seen.entries, seen.edits
        yield manifest


class _StepTable:
    """The steps of the requests; the record of each payload once."""

    def __init__(self, store: SessionStore, owner: tuple[str, str]) -> None:
        self._store, self._owner = store, owner
        self._known: set[str] = set()
        self._outcomes: dict[int, list[dict[str, Any]]] | None = None

    def add(self, manifest: Manifest) -> StepData | None:
        """Return the step that a request is for; None where it is for none."""
        payload = manifest.place.task
        if not payload:
            return None
        if self._outcomes is None:
            self._outcomes = {}
            for outcome in list_outcomes(self._store, self._owner):
                self._outcomes.setdefault(outcome["call"], []).append(outcome)
        record = None if payload in self._known else read_record(self._store, self._owner, digest=payload)
        self._known.add(payload)
        return StepData(payload, record, tuple(self._outcomes.get(manifest.place.call, ())))


class _FrameTable:
    """Distinct frames, tools and other fields of the requests, each stored once."""

    def __init__(self, blob: Callable[[str], bytes]) -> None:
        self._blob = blob
        self.frames: list[Frame] = []
        self.tools: list[tuple[ToolData, ...]] = []
        self.templates: dict[str, object] = {}
        self._places: dict[tuple[str, Detail], int] = {}
        self._current = -1

    def add(self, manifest: Manifest) -> tuple[Frame, ShownCounts]:
        """Add the frame of a request; return it with the counts of the session that the request shows."""
        if manifest.frame is not None:
            if manifest.frame not in self.frames:
                self.frames.append(manifest.frame)
            self._current = self.frames.index(manifest.frame)
        if self._current < 0:
            raise TamperedError("The session's first manifest is not a keyframe.")
        frame = self.frames[self._current]
        tools = self._add_tools(frame.tools, manifest.tool_detail)
        if frame.template not in self.templates:
            self.templates[frame.template] = self._load_json(frame.template)
        return frame, ShownCounts(manifest.seen.entries, manifest.seen.edits, self._current, tools)

    def _add_tools(self, digest: str, detail: Detail) -> int:
        if (digest, detail) not in self._places:
            try:
                tools = reduce_tools(tools_from(self._blob(digest)), detail)
            except ValueError as error:
                raise TamperedError(f"The stored tools cannot be read: {error}.") from error
            self._places[digest, detail] = len(self.tools)
            self.tools.append(tuple(map(convert_tool, tools)))
        return self._places[digest, detail]

    def _load_json(self, digest: str) -> object:
        try:
            return jsonbytes.load(self._blob(digest))
        except ValueError as error:
            raise TamperedError(f"The stored fields of the body cannot be read: {error}.") from error


def _add_reports(calls: Sequence[CallData], entries: Sequence[Entry]) -> Iterator[CallData]:
    """Yield the calls with the usage reported with the reply, the first assistant message after each call."""
    for position, call in enumerate(calls):
        end = calls[position + 1].shows.entries if position + 1 < len(calls) else len(entries)
        replies = (entry for entry in entries[call.shows.entries : end] if entry.message.role == "assistant")
        reply = next(replies, None)
        yield call if reply is None else replace(call, reported=reply.usage)
