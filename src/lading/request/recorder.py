"""The recorder of a session: each request is sealed as a manifest and stored with what is new in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lading.economics import OwnCalls
from lading.history.history import History
from lading.history.log import Edit, Entry
from lading.history.plan import Plan
from lading.history.view import rebuild
from lading.models.card import same_model
from lading.models.profiles import Detail
from lading.request.known import Known, Last
from lading.request.manifest import (
    FORMAT,
    KEYFRAME_EVERY,
    Cause,
    Expected,
    Frame,
    Manifest,
    Place,
    Prefix,
    Seen,
    Sent,
    counts_as,
    decision,
    frame,
    seal,
    totals,
    unseal,
)
from lading.request.pack import shared_prefix
from lading.request.tools import Offer
from lading.settings import Settings
from lading.stores import NO_BLOBS, SessionStore, Stored
from lading.tokens.calibration import Calibration, Counted


class Facts(Struct, frozen=True):
    """The facts of a request that its manifest records beside its bytes."""

    counts: Mapping[str, int]
    """Tokens by layer."""
    tool_detail: Detail
    account: float
    """Carrying cost since the last edit, in base input tokens."""
    at_s: float | None
    cause: Cause
    own: OwnCalls | None = None
    """Usage of compaction's own model calls."""


class Built(NamedTuple):
    """The bytes of a request, in short."""

    digest: str
    chain: tuple[str, ...]
    """Links of the digest of its prompt."""
    ends: tuple[int, ...]
    """Tokens of the prefix that ends with each."""
    body_bytes: int


class Recorder:
    """The manifests of one session, in call order."""

    def __init__(self, settings: Settings, store: SessionStore | None) -> None:
        """``store`` None: nothing is kept."""
        self.settings = settings
        self._store = store
        self._saved_entries = self._saved_edits = 0
        self.known = Known(Calibration().for_model(settings.card.provider, settings.card.name))
        self.frame: Frame | None = None
        """Settings, tools and fields of the last request."""

    def resume(self, stored: Stored, recent: Sequence[Manifest], *, history: History) -> Manifest | None:
        """Continue the stored session, its history too, and learn what was reported since its last manifest.
        ``recent``: the last manifests, from a keyframe on."""
        self.frame = last_frame(recent)
        # Before the first request nothing says what counted the log, and there is little of it.
        is_same = self.frame is not None and counts_as(self.settings, self.frame)
        recount = not is_same or recent[-1].seen.recounted
        history.restore(stored.entries, stored.edits, recount=recount)
        self._saved_entries, self._saved_edits = len(history.entries), len(history.edits)
        if not recent:
            return None
        last = recent[-1]
        shown = rebuild(history.entries[: last.seen.entries], history.edits[: last.seen.edits])
        known = Known(last.sent.expected.calibration if last.sent.expected else self.known.calibration)
        seen = Last(
            call=last.place.call,
            checksum=last.checksum,
            entries=last.seen.entries,
            edits=last.seen.edits,
            at_s=last.place.at_s,
            digest=last.sent.digest,
            counted=Counted(totals(last.counts), len(shown)),
            kept=last.sent.expected is not None and last.sent.expected.kept,
            tools_tokens=last.counts.get("tools", 0),
        )
        known = replace(known, last=seen)
        for entry in history.entries[last.seen.entries :]:
            known = known.reported(entry.usage, self.settings, history=history)
        is_own = all(same_model(manifest.frame.card, self.settings.card) for manifest in recent if manifest.frame)
        for entry in history.entries[recent[0].seen.entries :] if is_own else ():
            known = known.accepted(entry.usage, self.settings)
        if any(edit.withdraws for edit in history.edits[last.seen.edits :]):
            known = known.shortened(len(history.view))
        if self.frame is not None and not (is_same and same_model(self.frame.card, self.settings.card)):
            known = self._changed_model(known, recent)
        self.known = known
        return last

    def _changed_model(self, known: Known, recent: Sequence[Manifest]) -> Known:
        """Return what is known where the last request was another model's, or counted by another counter: what was
        learned of this one, if it was used before."""
        card, framed, found = self.settings.card, self.frame, Calibration()
        for manifest in recent:
            framed = manifest.frame or framed
            is_own = framed is not None and same_model(framed.card, card) and counts_as(self.settings, framed)
            if is_own and manifest.sent.expected is not None:
                found = manifest.sent.expected.calibration
        known = known.started_from(found.for_model(card.provider, card.name))
        # A report of that request that is still to come says nothing about this model.
        is_foreign = self.frame is not None and not same_model(self.frame.card, card)
        return replace(known, last=replace(known.last, learned=True, is_foreign=is_foreign))

    def record(
        self,
        facts: Facts,
        history: History,
        *,
        plan: Plan,
        known: Known,
        offer: Offer,
        built: Built,
    ) -> Manifest:
        """Seal and store the manifest of a request that shows the plan's view. Raises StoreError, and then nothing
        has changed."""
        settings, last, calibration = self.settings, known.last, known.calibration
        framed = frame(settings, tools=offer.tools_digest, template=offer.template_digest)
        is_keyframe = framed != self.frame or last.call % KEYFRAME_EVERY == 0
        decided, prefix = plan.edits[last.edits :], self._prefix(built, plan, last)
        counted = Counted(built.ends[-1], len(plan.view))
        kept = known.extends_learned and not prefix.first_changed
        expected: Expected | None = None
        if calibration.seen or calibration.is_doubted:
            expected = Expected(calibration.predicted(counted, kept=kept), calibration, kept)
        call, log = last.call + 1, Seen(len(history.entries), len(plan.edits), history.log, history.is_recounted)
        manifest, data = seal(
            Manifest(
                format=FORMAT,
                place=Place(settings.tenant, settings.session, call, facts.at_s, facts.cause),
                parent=last.checksum,
                seen=log,
                counts=dict(facts.counts),
                prefix=prefix,
                sent=Sent(built.digest, built.body_bytes, expected, facts.own),
                tool_detail=facts.tool_detail,
                decisions=tuple(map(decision, decided)),
                account=facts.account,
                frame=framed if is_keyframe else None,
            )
        )
        self._append(history.entries, plan.edits, manifest=data, blobs=offer.blobs if is_keyframe else NO_BLOBS)
        self.frame = framed
        last = Last(
            call,
            manifest.checksum,
            built.chain,
            log.entries,
            log.edits,
            facts.at_s,
            built.digest,
            counted=counted,
            kept=kept,
            tools_tokens=facts.counts["tools"],
        )
        self.known = replace(known, last=last)
        return manifest

    def save(self, history: History) -> None:
        """Store what is new in the history. Raises StoreError."""
        self._append(history.entries, history.edits)

    def _append(
        self,
        entries: Sequence[Entry],
        edits: Sequence[Edit],
        *,
        manifest: bytes | None = None,
        blobs: Mapping[str, bytes] = NO_BLOBS,
    ) -> None:
        if self._store is None:
            return
        self._store.append(
            self.settings.tenant,
            self.settings.session,
            entries=entries[self._saved_entries :],
            edits=edits[self._saved_edits :],
            manifest=manifest,
            call=None if manifest is None else self.known.last.call,
            blobs=blobs,
        )
        self._saved_entries, self._saved_edits = len(entries), len(edits)

    @property
    def is_behind(self) -> bool:
        """Whether the store holds something else of the session than was loaded and saved here."""
        own = self._saved_entries, self._saved_edits, self.known.last.call
        return self._store is not None and own != self._store.counts(self.settings.tenant, self.settings.session)

    def _prefix(self, built: Built, plan: Plan, last: Last) -> Prefix:
        view = plan.view
        first_new, _ = view.span(last.entries, last.entries)
        return shared_prefix(
            built.chain,
            built.ends,
            # After reopening, a chain that could not be built again shares nothing.
            earlier=last.chain or (("",) if last.call else ()),
            new_tokens=view.tokens - view.tokens_before(first_new),
            decided=plan.edits[last.edits :],
            rates=self.settings.rates,
        )


def recent_manifests(store: SessionStore, *, tenant: str, session: str, calls: int) -> list[Manifest]:
    """The last manifests of a session of so many calls, from a keyframe on. Raises TamperedError, StoreError."""
    start = max(calls - 1, 0) // KEYFRAME_EVERY * KEYFRAME_EVERY
    return [unseal(data) for data in islice(store.manifests(tenant, session, start=start), calls - start)]


def last_frame(recent: Sequence[Manifest]) -> Frame | None:
    """The frame of the last of these manifests."""
    return next((manifest.frame for manifest in reversed(recent) if manifest.frame is not None), None)
