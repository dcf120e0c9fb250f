"""The recorder of a session: it seals each request's manifest and stores it with the new part of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Account
from lading.economics import OwnCalls
from lading.history.history import History
from lading.history.log import Edit, Entry
from lading.history.plan import Plan
from lading.history.view import rebuild
from lading.models.card import is_same_model
from lading.models.profiles import Detail
from lading.request.builder import count_shared_links
from lading.request.known import Known, Last
from lading.request.manifest import (
    FORMAT,
    KEYFRAME_EVERY,
    Cause,
    Expected,
    Frame,
    LogExtent,
    Manifest,
    Prefix,
    RequestPlace,
    Sent,
    counts_like,
    decision,
    frame,
    seal,
    totals,
    unseal,
)
from lading.request.tools import Offer
from lading.settings import Settings
from lading.stores import NO_BLOBS, SessionStore, Stored
from lading.tokens.calibration import Calibration, RequestCount


class Facts(Struct, frozen=True):
    """The facts of a request that its manifest records beside its bytes."""

    counts: Mapping[str, int]
    """Tokens by layer."""
    tool_detail: Detail
    account: Account
    """Carrying cost since the last edit, in base input tokens."""
    at_s: float | None
    cause: Cause
    own: OwnCalls | None = None
    """Usage of compaction's own model calls."""


class Built(NamedTuple):
    """Digests and sizes of a built request."""

    digest: str
    without_tail: str
    """The digest of the request without its tail."""
    chain: tuple[str, ...]
    """Digest chain of its prompt."""
    ends: tuple[int, ...]
    """Tokens of the prefix that ends with each link."""
    body_bytes: int
    marks_end: bool


class Recorder:
    """The manifests of one session, in call order."""

    def __init__(self, settings: Settings, store: SessionStore | None) -> None:
        """``store`` None: nothing is stored."""
        self.settings = settings
        self._store = store
        self._saved_entries = self._saved_edits = 0
        self.known = Known(Calibration().for_model(settings.card.provider, settings.card.name))
        self.frame: Frame | None = None
        """Settings, tools and fields of the last request."""
        self.task = ""
        """Digest of the stored record of the payload that the next requests show; empty: they show none."""
        self.tools = ""
        """Digest of the stored record of the tools that the next requests offer; empty: all that were given."""
        self.memory = ""
        """Digest of the records of the memory in the next request's tail, as stored; empty: there are none."""

    def resume(self, stored: Stored, recent: Sequence[Manifest], *, history: History) -> Manifest | None:
        """Restore the history of a stored session, and learn the usage reported since its last manifest. Returns
        that manifest. ``recent``: the last manifests, starting with a keyframe."""
        self.frame = find_frame(recent)
        # Before the first request no frame names the counter of the log; the log is short then.
        is_same = self.frame is not None and counts_like(self.settings, self.frame)
        recount = not is_same or recent[-1].seen.recounted
        history.restore(stored.entries, stored.edits, recount=recount)
        self._saved_entries, self._saved_edits = len(history.entries), len(history.edits)
        if not recent:
            return None
        last = recent[-1]
        self.task, self.tools = last.place.task, last.place.tools
        shown = rebuild(history.entries[: last.seen.entries], history.edits[: last.seen.edits])
        known = Known(last.sent.expected.calibration if last.sent.expected else self.known.calibration)
        seen = Last(
            call=last.place.call,
            checksum=last.checksum,
            entries=last.seen.entries,
            edits=last.seen.edits,
            at_s=last.place.at_s,
            digest=last.sent.without_tail or last.sent.digest,
            counted=RequestCount(totals(last.counts), len(shown)),
            kept=last.sent.expected is not None and last.sent.expected.kept,
            tools_tokens=last.counts.get("tools", 0),
        )
        known = replace(known, last=seen, had_tail=bool(last.sent.transient))
        for entry in history.entries[last.seen.entries :]:
            known = known.with_usage(entry.usage, self.settings, history=history)
        is_own = all(
            is_same_model(manifest.frame.card, self.settings.card) for manifest in recent if manifest.frame
        )
        for entry in history.entries[recent[0].seen.entries :] if is_own else ():
            known = known.with_accepted(entry.usage, self.settings)
        if any(edit.withdraws for edit in history.edits[last.seen.edits :]):
            known = known.cut(len(history.view))
        if self.frame is not None and not (is_same and is_same_model(self.frame.card, self.settings.card)):
            known = self._changed_model(known, recent)
        self.known = known
        return last

    def _changed_model(self, known: Known, recent: Sequence[Manifest]) -> Known:
        """Return the state after a change of model or counter: with the last calibration of the current one, if it
        was used before."""
        card, framed, found = self.settings.card, self.frame, Calibration()
        for manifest in recent:
            framed = manifest.frame or framed
            if framed is None or self.frame is None or framed.tools != self.frame.tools:
                continue
            is_own = is_same_model(framed.card, card) and counts_like(self.settings, framed)
            if is_own and manifest.sent.expected is not None:
                found = manifest.sent.expected.calibration
        known = known.start_from(found.for_model(card.provider, card.name))
        # Usage of that request, reported later, says nothing about this model.
        is_foreign = self.frame is not None and not is_same_model(self.frame.card, card)
        return replace(known, last=replace(known.last, learned=True, is_foreign=is_foreign))

    def record(
        self, facts: Facts, history: History, *, plan: Plan, known: Known, offer: Offer, built: Built
    ) -> Manifest:
        """Seal and store the manifest of a request that shows the plan's view. Raises StoreError; the recorder is
        then unchanged."""
        settings, last, calibration = self.settings, known.last, known.calibration
        framed = frame(settings, tools=offer.tools_digest, template=offer.template_digest)
        is_keyframe = framed != self.frame or last.call % KEYFRAME_EVERY == 0
        decided = plan.edits[last.edits :]
        prefix = self._compare(built, plan, last, front=offer.transient.text.front, tools=framed.tools)
        transient, tail_tokens = offer.transient.digest, offer.transient.counts.get("tail", 0)
        counted = RequestCount(built.ends[-1] + tail_tokens, len(plan.view))
        kept = known.extends_learned and not prefix.first_changed and not transient
        expected: Expected | None = None
        if calibration.seen or calibration.is_doubted:
            expected = Expected(calibration.predict(counted, kept=kept), calibration, kept)
        call, shown = last.call + 1, (len(history.entries), len(plan.edits))
        log = LogExtent(*shown, history.log, history.is_recounted)
        manifest, data = seal(
            Manifest(
                format=FORMAT,
                place=RequestPlace(
                    *settings.owner, call, facts.at_s, facts.cause, self.task, self.tools, self.memory
                ),
                parent=last.checksum,
                seen=log,
                counts=dict(facts.counts),
                prefix=prefix,
                sent=Sent(
                    built.digest,
                    built.body_bytes,
                    expected,
                    facts.own,
                    transient,
                    built.without_tail if transient else "",
                    built.marks_end,
                ),
                tool_detail=facts.tool_detail,
                decisions=tuple(map(decision, decided)),
                account=facts.account,
                frame=framed if is_keyframe else None,
            )
        )
        blobs = {**(offer.blobs if is_keyframe else NO_BLOBS), **offer.transient.blobs}
        self._append(history.entries, plan.edits, manifest=data, blobs=blobs)
        self.frame = framed
        last = Last(
            call,
            manifest.checksum,
            built.chain,
            log.entries,
            log.edits,
            facts.at_s,
            built.without_tail,
            counted=counted,
            kept=kept,
            tools_tokens=facts.counts["tools"],
        )
        self.known = replace(known, last=last, had_tail=bool(transient))
        return manifest

    def save(self, history: History) -> None:
        """Store the new part of the history. Raises StoreError."""
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
        """Whether the store has anything of the session that was not loaded or saved here."""
        own = self._saved_entries, self._saved_edits, self.known.last.call
        return self._store is not None and own != self._store.counts(self.settings.tenant, self.settings.session)

    def _compare(self, built: Built, plan: Plan, last: Last, *, front: str, tools: str) -> Prefix:
        """Compare a request with the last one: the prefix that they share, and where, why and at which price they
        diverge. ``tools``: its digest. Messages that were never sent cost nothing extra."""
        # After reopening, a chain that could not be built again shares nothing.
        earlier, view, rates = last.chain or (("",) if last.call else ()), plan.view, self.settings.rates
        shared = count_shared_links(built.chain, earlier)
        tokens = built.ends[shared - 1] if shared else 0
        if shared == len(earlier):
            return Prefix(shared, tokens)
        first_new, _ = view.span(last.entries, last.entries)
        new_tokens = view.tokens - view.tokens_before(first_new)
        price = max(rates.write - rates.read, 0.0) * max(built.ends[-1] - tokens - new_tokens, 0)
        decided = (edit.reason for edit in plan.edits[last.edits :] if edit.kind != "repaired")
        reasons = "; ".join(dict.fromkeys(decided))
        if not shared and self.tools and self.frame is not None and self.frame.tools != tools:
            return Prefix(shared, tokens, "envelope", "the tools of the step changed", price)
        if not shared:
            return Prefix(shared, tokens, "envelope", reasons or "tools, system or other fields changed", price)
        otherwise = "the text before the history changed" if front else "new messages joined the last one"
        return Prefix(shared, tokens, f"messages.{shared - 1}", reasons or otherwise, price)


def recent_manifests(store: SessionStore, *, tenant: str, session: str, calls: int) -> list[Manifest]:
    """Return the last manifests of a session with ``calls`` calls, starting with a keyframe. Raises TamperedError,
    StoreError."""
    start = max(calls - 1, 0) // KEYFRAME_EVERY * KEYFRAME_EVERY
    return [unseal(data) for data in islice(store.manifests(tenant, session, start=start), calls - start)]


def find_frame(recent: Sequence[Manifest]) -> Frame | None:
    """Return the newest frame in these manifests; None when no manifest has one."""
    return next((manifest.frame for manifest in reversed(recent) if manifest.frame is not None), None)
