"""A session's receipts: each request sealed as a manifest and stored, and what the next must know of the last.

What a provider reports of a request comes back here and calibrates the counts of the next.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from lading.history import History, holds_media
from lading.log import Reported
from lading.manifest import (
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
    decision,
    seal,
    totals,
    unseal,
)
from lading.offer import Offer
from lading.pack import shared_prefix
from lading.settings import Settings, frame
from lading.stores import NO_BLOBS, SessionStore
from lading.tokens.calibration import ENOUGH, Calibration, Counted
from lading.toolset import Detail
from lading.view import rebuild


class Last(Struct, frozen=True):
    """What the next call must know of the one before."""

    call: int = 0
    checksum: str = ""
    chain: tuple[str, ...] = ()
    """Empty after reopening, until the next call shows that request again."""
    entries: int = 0
    edits: int = 0
    frame: Frame | None = None
    at_s: float | None = None
    digest: str = ""
    """The last link of its chain."""
    counted: Counted = Counted(0, 0)
    """What was counted of it: tokens, and items of the view."""
    kept: bool = False
    """Whether it extends the one that was learned from last."""
    learned: bool = False
    """Whether what it took was reported."""


class Standing(Struct, frozen=True):
    """How a request stands when it is recorded."""

    counts: Mapping[str, int]
    """Tokens by layer."""
    tool_detail: Detail
    account: float
    """Rent paid since the last edit, in base input tokens."""
    at_s: float | None
    cause: Cause


class Receipts:
    """The manifests of one session, in call order."""

    def __init__(self, settings: Settings, store: SessionStore | None) -> None:
        """``store`` None: nothing is kept."""
        self._settings = settings
        self._store = store
        self._saved_entries = self._saved_edits = 0
        self.last = Last()
        self.calibration = Calibration().for_model(settings.card.provider, settings.card.name)

    def resume(self, manifest: bytes | None, history: History) -> Manifest | None:
        """Stand where the stored session stood, and learn what was reported since its last manifest."""
        self._saved_entries, self._saved_edits = len(history.entries), len(history.edits)
        if manifest is None:
            return None
        last = unseal(manifest)
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
        )
        for entry in history.entries[last.seen.entries :]:
            self.learn(entry.usage, history)
        if any(edit.withdraws for edit in history.edits[last.seen.edits :]):
            self.shortened(len(history.view))
        return last

    def learn(self, usage: Reported | None, history: History) -> None:
        """Calibrate by what the last request took; once, and not where it held pictures or documents. What
        took more than the window was not this request alone."""
        if usage is not None:
            is_more = usage.input_tokens > self._settings.budget.window_tokens
            self._learn(0 if is_more else usage.input_tokens, history)

    def refused(self, tokens: int, history: History) -> tuple[Last, Calibration]:
        """The provider found the last request too long and counted so many tokens (0: it does not say, and
        what made the request seem to fit is forgotten). Returns what was known before: to be put back when no
        request follows, because nothing of this is stored but with a request."""
        known = self.last, self.calibration
        if tokens:
            self._learn(tokens, history, certain=True)
        else:
            card = self._settings.card
            self.last, self.calibration = replace(self.last, learned=True), Calibration(card.provider, card.name)
        return known

    def doubted(self) -> tuple[Last, Calibration] | None:
        """Forget what was learned when that is little, and return it; None when it is enough to be believed. A
        single wrong report must not end a session: the next answer teaches anew."""
        if not 0 < self.calibration.seen < ENOUGH:
            return None
        known, card = (self.last, self.calibration), self._settings.card
        self.last, self.calibration = replace(self.last, kept=False), Calibration(card.provider, card.name)
        return known

    def _learn(self, tokens: int, history: History, *, certain: bool = False) -> None:
        last = self.last
        if not last.call or last.learned:
            return
        self.last = replace(last, learned=True)
        shown = history.view.items[: last.counted.messages]
        has_media = history.holds_media and any(holds_media(item.message) for item in shown)
        tokens = 0 if has_media else tokens
        self.calibration = self.calibration.learned(last.counted, tokens, kept=last.kept, certain=certain)

    def shortened(self, items: int) -> None:
        """Of what the last request showed no more than so many items are shown still."""
        counted = self.last.counted
        if items < counted.messages:
            self.last = replace(self.last, counted=replace(counted, messages=items))

    def rooms(self, *, items: int, most_tokens: int | None = None) -> tuple[int, int]:
        """What a request of so many items may count when it extends the last one, and when it goes another
        way; never more than ``most_tokens``."""
        budget = self._settings.budget
        limit, margin = budget.window_tokens - budget.output_reserve_tokens, budget.margin_tokens
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
        built: tuple[tuple[str, ...], tuple[int, ...], int],
    ) -> Manifest:
        """Seal and store the manifest of a request that shows the history; ``built``: its chain, the tokens
        at each link, and its length in bytes."""
        chain, ends, body_bytes = built
        settings, last, view = self._settings, self.last, history.view
        framed = frame(settings, tools=offer.tools_digest, template=offer.template_digest)
        is_keyframe = framed != last.frame or last.call % KEYFRAME_EVERY == 0
        decided, prefix = history.edits[last.edits :], self._prefix(chain, ends, history)
        counted = Counted(ends[-1], len(view))
        kept = self._extends_learned and not prefix.first_changed
        call, log = last.call + 1, Seen(len(history.entries), len(history.edits), history.log)
        manifest, data = seal(
            Manifest(
                format=FORMAT,
                place=Place(settings.tenant, settings.session, call, standing.at_s, standing.cause),
                parent=last.checksum,
                seen=log,
                counts=dict(standing.counts),
                prefix=prefix,
                sent=Sent(chain[-1], body_bytes, self._expected(counted, kept)),
                tool_detail=standing.tool_detail,
                decisions=tuple(map(decision, decided)),
                account=standing.account,
                frame=framed if is_keyframe else None,
            )
        )
        self.save(history, manifest=data, blobs=offer.blobs if is_keyframe else NO_BLOBS)
        self.last = Last(
            call,
            manifest.checksum,
            chain,
            log.entries,
            log.edits,
            framed,
            standing.at_s,
            chain[-1],
            counted=counted,
            kept=kept,
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
            self._settings.tenant,
            self._settings.session,
            entries=entries[self._saved_entries :],
            edits=edits[self._saved_edits :],
            manifest=manifest,
            call=None if manifest is None else self.last.call,
            blobs=blobs,
        )
        self._saved_entries, self._saved_edits = len(entries), len(edits)

    def _expected(self, counted: Counted, kept: bool) -> Expected | None:
        if not self.calibration.seen:
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
            rates=self._settings.rates,
        )
