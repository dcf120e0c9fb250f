"""Recall the state of a stored session from its last manifests and its log, so that its next request continues."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lading.history.history import History
from lading.history.view import rebuild
from lading.models.card import is_same_model
from lading.request.manifest import KEYFRAME_EVERY, Frame, Manifest, counts_like, totals, unseal
from lading.request.state import Last, RequestState, start_state
from lading.settings import Settings
from lading.stores import SessionStore, read_manifests
from lading.tokens.calibration import Calibration
from lading.tokens.plausibility import RequestCount


def recent_manifests(store: SessionStore, *, tenant: str, session: str, calls: int) -> list[Manifest]:
    """Return the last manifests of a session with ``calls`` calls, starting with a keyframe. Raises TamperedError,
    StoreError."""
    start = max(calls - 1, 0) // KEYFRAME_EVERY * KEYFRAME_EVERY
    return [*map(unseal, read_manifests(store, (tenant, session), calls=calls, start=start))]


def find_frame(recent: Sequence[Manifest]) -> Frame | None:
    """Return the newest frame in these manifests; None when no manifest has one."""
    return next((manifest.frame for manifest in reversed(recent) if manifest.frame is not None), None)


def recall_state(recent: Sequence[Manifest], settings: Settings, *, history: History) -> RequestState:
    """Return the state after the last of these manifests and the usage reported since, for the restored history."""
    state, since = _read_last(recent[-1], history, settings), recent[-1].seen
    for entry in history.entries[since.entries :]:
        state = state.with_usage(entry.usage, settings, history=history)
    is_own = all(is_same_model(manifest.frame.card, settings.card) for manifest in recent if manifest.frame)
    for entry in history.entries[recent[0].seen.entries :] if is_own else ():
        state = state.with_accepted(entry.usage, settings)
    if any(edit.withdraws for edit in history.edits[since.edits :]):
        state = state.cut(len(history.view))
    frame = find_frame(recent)
    if frame is None or (counts_like(settings, frame) and is_same_model(frame.card, settings.card)):
        return state
    return _change_model(state, recent, settings, frame=frame)


def _read_last(manifest: Manifest, history: History, settings: Settings) -> RequestState:
    """Return the state as the request of this manifest left it."""
    seen, sent = manifest.seen, manifest.sent
    shown = rebuild(history.entries[: seen.entries], history.edits[: seen.edits])
    last = Last(
        call=manifest.place.call,
        checksum=manifest.checksum,
        entries=seen.entries,
        edits=seen.edits,
        at_s=manifest.place.at_s,
        digest=sent.without_tail or sent.digest,
        counted=RequestCount(totals(manifest.counts), len(shown)),
        kept=sent.expected is not None and sent.expected.kept,
        tools_tokens=manifest.counts.get("tools", 0),
    )
    state = RequestState(sent.expected.calibration) if sent.expected else start_state(settings)
    return replace(state, last=last, had_tail=bool(sent.transient), has_doubted=state.calibration.is_doubted)


def _change_model(
    state: RequestState, recent: Sequence[Manifest], settings: Settings, *, frame: Frame
) -> RequestState:
    """Return the state after a change of model or counter: with the last calibration of the current one, if it was
    used before."""
    card, framed, found = settings.card, frame, Calibration()
    for manifest in recent:
        framed = manifest.frame or framed
        if framed.tools != frame.tools:
            continue
        is_own = is_same_model(framed.card, card) and counts_like(settings, framed)
        if is_own and manifest.sent.expected is not None:
            found = manifest.sent.expected.calibration
    state = state.start_from(found.for_model(card.provider, card.name))
    # Usage of that request, reported later, says nothing about this model.
    is_foreign = not is_same_model(frame.card, card)
    return replace(state, last=replace(state.last, learned=True, is_foreign=is_foreign))
