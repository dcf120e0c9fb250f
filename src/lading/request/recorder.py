"""A session's receipts: each request sealed as a manifest and stored, and what the next must know of the last.

What a provider reports of a request comes back here and calibrates the counts of the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Past
from lading.economics import OwnCalls, is_cold
from lading.events import UsageDoubted
from lading.history.history import History, holds_media
from lading.history.log import Reported
from lading.history.view import rebuild
from lading.models.card import same_model
from lading.models.profiles import Detail
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
from lading.tokens.calibration import ENOUGH, ESTIMATED, EXACT, UNSENT, Calibration, Counted


class Last(Struct, frozen=True):
    """What the next call must know of the one before."""

    call: int = 0
    checksum: str = ""
    chain: tuple[str, ...] = ()
    """The links of its prompt. Empty after reopening, until the next call shows that request again."""
    entries: int = 0
    edits: int = 0
    at_s: float | None = None
    digest: str = ""
    """Of the whole request."""
    counted: Counted = Counted(0, 0)
    """What was counted of it: tokens, and items of the view."""
    kept: bool = False
    """Whether it extends the one that was learned from last."""
    learned: bool = False
    """Whether what it took was reported."""
    tools_tokens: int = 0
    """Of what was counted, the tools."""
    is_foreign: bool = False
    """Whether it was made for another model, whose prompt cache is of no use to this one."""


class Standing(Struct, frozen=True):
    """How a request stands when it is recorded."""

    counts: Mapping[str, int]
    """Tokens by layer."""
    tool_detail: Detail
    account: float
    """Rent paid since the last edit, in base input tokens."""
    at_s: float | None
    cause: Cause
    own: OwnCalls | None = None
    """What compaction's own model calls took."""


class Receipts:
    """The manifests of one session, in call order."""

    def __init__(self, settings: Settings, store: SessionStore | None) -> None:
        """``store`` None: nothing is kept."""
        self.settings = settings
        self._store = store
        self._saved_entries = self._saved_edits = 0
        self.last = Last()
        self.frame: Frame | None = None
        """What the last request was made with."""
        self.calibration = Calibration().for_model(settings.card.provider, settings.card.name)
        self._doubts_told = False

    def resume(self, stored: Stored, recent: Sequence[Manifest], *, history: History) -> Manifest | None:
        """Stand where the stored session stood, its history too, and learn what was reported since its last
        manifest. ``recent``: the last manifests, from a keyframe on."""
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
        if last.sent.expected is not None:
            self.calibration = last.sent.expected.calibration
        self.last = Last(
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
        for entry in history.entries[last.seen.entries :]:
            self.learn(entry.usage, history)
        is_own = all(same_model(manifest.frame.card, self.settings.card) for manifest in recent if manifest.frame)
        usages = (entry.usage for entry in history.entries[recent[0].seen.entries :] if is_own and entry.usage)
        most, reported = self.settings.budget.window_tokens, [usage.input_tokens for usage in usages]
        history.taken_tokens = max((tokens for tokens in reported if tokens <= most), default=0)
        if any(edit.withdraws for edit in history.edits[last.seen.edits :]):
            self.shortened(len(history.view))
        if self.frame is not None and not (is_same and same_model(self.frame.card, self.settings.card)):
            self._change_model(recent)
        return last

    def _change_model(self, recent: Sequence[Manifest]) -> None:
        """The last request was another model's, or counted by another counter: take up what was known of this one,
        if it was used before."""
        card, framed, found = self.settings.card, self.frame, Calibration()
        for manifest in recent:
            framed = manifest.frame or framed
            is_own = framed is not None and same_model(framed.card, card) and counts_as(self.settings, framed)
            if is_own and manifest.sent.expected is not None:
                found = manifest.sent.expected.calibration
        self.start_from(found.for_model(card.provider, card.name))
        # What is reported of that request still is no matter of this model.
        is_foreign = self.frame is not None and not same_model(self.frame.card, card)
        self.last = replace(self.last, learned=True, is_foreign=is_foreign)

    def start_from(self, calibration: Calibration) -> None:
        """Count on what was learned of the model's requests elsewhere."""
        self.calibration = replace(calibration, last=None, surprises=0)

    def learn(self, usage: Reported | None, history: History) -> tuple[UsageDoubted, ...]:
        """Calibrate by what the last request took; once, and not where it held pictures or documents. What
        took more than the window was not this request alone. The first report that cannot be true is an event."""
        last, calibration = self.last, self.calibration
        if usage is None or not self._is_open:
            return ()
        is_more = usage.input_tokens > self.settings.budget.window_tokens
        history.taken_tokens = max(history.taken_tokens, 0 if is_more else usage.input_tokens)
        if is_more or self._showed_media(history) or self._believes(usage.input_tokens, history):
            self._learn(0 if is_more else usage.input_tokens, history)
            return ()
        self._learn(0, history)
        self.calibration = calibration.doubted() if usage.input_tokens else self.calibration
        is_told, self._doubts_told = self._doubts_told, True
        return () if is_told else (UsageDoubted(last.call, usage.input_tokens, last.counted.tokens),)

    def _believes(self, tokens: int, history: History) -> bool:
        """Whether the last request can have taken so little."""
        meter, facts = self.settings.meter, self.settings.card.tokens
        is_exact = meter.counter.name == facts.counter != "estimate" and meter.multiplier == 1.0
        floor = UNSENT if history.holds_reasoning else EXACT if is_exact else ESTIMATED
        return tokens > 0 and self.calibration.believes(
            self.last.counted, tokens, kept=self.last.kept, floor=floor, tools_tokens=self.last.tools_tokens
        )

    def _showed_media(self, history: History) -> bool:
        shown = history.view.items[: self.last.counted.messages]
        return history.holds_media and any(holds_media(item.message) for item in shown)

    def refused(self, tokens: int, history: History) -> tuple[Last, Calibration]:
        """The provider found the last request too long and counted so many tokens (0: it does not say, and
        what made the request seem to fit is forgotten). Returns what was known before: to be put back when no
        request follows, because nothing of this is stored but with a request."""
        known = self.last, self.calibration
        if tokens:
            self._learn(tokens, history, certain=True)
        else:
            self.last, self.calibration = replace(self.last, learned=True), self.calibration.anew()
        return known

    def doubted(self) -> tuple[Last, Calibration] | None:
        """Forget what was learned when that is little, and return it; None when it is enough to be believed. A
        single wrong report must not end a session: the next answer teaches anew."""
        if not 0 < self.calibration.seen < ENOUGH:
            return None
        known = self.last, self.calibration
        self.last, self.calibration = replace(self.last, kept=False), self.calibration.anew()
        return known

    def _learn(self, tokens: int, history: History, *, certain: bool = False) -> None:
        last = self.last
        if not self._is_open:
            return
        self.last = replace(last, learned=True)
        tokens = 0 if self._showed_media(history) else tokens
        self.calibration = self.calibration.learned(last.counted, tokens, kept=last.kept, certain=certain)

    @property
    def _is_open(self) -> bool:
        """Whether nothing was learned of the last request yet."""
        return self.last.call > 0 and not self.last.learned

    def is_cold(self, at_s: float | None) -> bool:
        """Whether nothing of the last request is in a prompt cache any more that serves a call made then."""
        last = self.last
        idle_s = None if at_s is None or last.at_s is None else at_s - last.at_s
        return last.is_foreign or is_cold(idle_s=idle_s, ttl_s=self.settings.cache_ttl_s)

    def past(self, history: History, *, refused: bool) -> Past:
        """What strategies may know of the requests before; ``refused``: the last one was too long. What took more
        than the window was not one request alone, and what another model took is no matter of this one."""
        budget, new = self.settings.budget, history.entries[self.last.entries :]
        reported = next((entry.usage.input_tokens for entry in reversed(new) if entry.usage), None)
        if self.last.is_foreign or (reported or 0) > budget.window_tokens:
            reported = None
        return Past(reported, budget.limit_tokens, refused, history.edits, self.last.call)

    def shortened(self, items: int) -> None:
        """Of what the last request showed no more than so many items are shown still."""
        counted = self.last.counted
        if items < counted.messages:
            self.last = replace(self.last, counted=replace(counted, messages=items))

    def are_of(self, history: History) -> bool:
        """Whether the last request showed the history as it is now, to the same model, and nothing came since."""
        seen = self.last.entries, self.last.edits
        return (
            bool(self.last.call) and not self.last.is_foreign and seen == (len(history.entries), len(history.edits))
        )

    def rooms(self, *, items: int, most_tokens: int | None = None) -> tuple[int, int]:
        """What a request of so many items may count when it extends the last one, and when it goes another
        way; never more than ``most_tokens``."""
        budget = self.settings.budget
        limit, margin = budget.limit_tokens, budget.margin_tokens
        kept, repacked = (
            self.calibration.room(limit, initial_margin_tokens=margin, messages=items, kept=is_kept)
            for is_kept in (self._extends_learned, False)
        )
        most = 2**62 if most_tokens is None else most_tokens
        return min(kept, most), min(repacked, most)

    def record(
        self,
        standing: Standing,
        history: History,
        *,
        offer: Offer,
        built: tuple[str, tuple[str, ...], tuple[int, ...], int],
    ) -> Manifest:
        """Seal and store the manifest of a request that shows the history; ``built``: its digest, the links
        of its prompt, the tokens at each, and its length in bytes."""
        digest, chain, ends, body_bytes = built
        settings, last, view = self.settings, self.last, history.view
        framed = frame(settings, tools=offer.tools_digest, template=offer.template_digest)
        is_keyframe = framed != self.frame or last.call % KEYFRAME_EVERY == 0
        decided, prefix = history.edits[last.edits :], self._prefix(chain, ends, history)
        counted = Counted(ends[-1], len(view))
        kept = self._extends_learned and not prefix.first_changed
        call, log = last.call + 1, Seen(len(history.entries), len(history.edits), history.log, history.is_recounted)
        manifest, data = seal(
            Manifest(
                format=FORMAT,
                place=Place(settings.tenant, settings.session, call, standing.at_s, standing.cause),
                parent=last.checksum,
                seen=log,
                counts=dict(standing.counts),
                prefix=prefix,
                sent=Sent(digest, body_bytes, self._expected(counted, kept), standing.own),
                tool_detail=standing.tool_detail,
                decisions=tuple(map(decision, decided)),
                account=standing.account,
                frame=framed if is_keyframe else None,
            )
        )
        self.save(history, manifest=data, blobs=offer.blobs if is_keyframe else NO_BLOBS)
        self.frame = framed
        self.last = Last(
            call,
            manifest.checksum,
            chain,
            log.entries,
            log.edits,
            standing.at_s,
            digest,
            counted=counted,
            kept=kept,
            tools_tokens=standing.counts["tools"],
        )
        return manifest

    def save(
        self, history: History, *, manifest: bytes | None = None, blobs: Mapping[str, bytes] = NO_BLOBS
    ) -> None:
        """Store what is new in the history, with a manifest when there is one. Raises StoreError."""
        if self._store is None:
            return
        entries, edits = history.entries, history.edits
        self._store.append(
            self.settings.tenant,
            self.settings.session,
            entries=entries[self._saved_entries :],
            edits=edits[self._saved_edits :],
            manifest=manifest,
            call=None if manifest is None else self.last.call,
            blobs=blobs,
        )
        self._saved_entries, self._saved_edits = len(entries), len(edits)

    @property
    def is_behind(self) -> bool:
        """Whether the store holds something else of the session than was loaded and saved here."""
        own = self._saved_entries, self._saved_edits, self.last.call
        return self._store is not None and own != self._store.counts(self.settings.tenant, self.settings.session)

    def _expected(self, counted: Counted, kept: bool) -> Expected | None:
        if not self.calibration.seen and not self.calibration.is_doubted:
            return None
        return Expected(self.calibration.predicted(counted, kept=kept), self.calibration, kept)

    @property
    def _extends_learned(self) -> bool:
        """Whether a request that extends the last one extends the one that was learned from last."""
        return self.last.learned or self.last.kept

    def _prefix(self, chain: tuple[str, ...], ends: tuple[int, ...], history: History) -> Prefix:
        last, view = self.last, history.view
        first_new, _ = view.span(last.entries, last.entries)
        return shared_prefix(
            chain,
            ends,
            # After reopening, a chain that could not be built again shares nothing.
            earlier=last.chain or (("",) if last.call else ()),
            new_tokens=view.tokens - view.tokens_before(first_new),
            decided=history.edits[last.edits :],
            rates=self.settings.rates,
        )


def recent_manifests(store: SessionStore, *, tenant: str, session: str, calls: int) -> list[Manifest]:
    """The last manifests of a session of so many calls, from a keyframe on. Raises TamperedError, StoreError."""
    start = max(calls - 1, 0) // KEYFRAME_EVERY * KEYFRAME_EVERY
    return [unseal(data) for data in islice(store.manifests(tenant, session, start=start), calls - start)]


def last_frame(recent: Sequence[Manifest]) -> Frame | None:
    """The frame of the last of these manifests."""
    return next((manifest.frame for manifest in reversed(recent) if manifest.frame is not None), None)
