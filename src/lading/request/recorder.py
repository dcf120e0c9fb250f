"""The recorder of a session: it seals each request's manifest and stores it with the new part of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Account
from lading.economics import OwnCalls
from lading.errors import TamperedError
from lading.history.history import History
from lading.history.log import Edit, Entry
from lading.history.plan import Plan
from lading.history.replaying import CLOSING
from lading.history.view import View
from lading.messages import Template
from lading.models.profiles import Detail
from lading.request.builder import count_shared_links
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
    unseal,
)
from lading.request.marks import PlacedMark
from lading.request.reopening import find_frame, recall_state
from lading.request.state import Last, RequestState, start_state
from lading.request.tools import Offer, fields_from
from lading.settings import Settings
from lading.stores import NO_BLOBS, SessionStore, Stored
from lading.tokens.plausibility import RequestCount


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
    marks: tuple[PlacedMark, ...]
    """As in ``Sent``."""


class Recorder:
    """The manifests of one session, in call order."""

    def __init__(self, settings: Settings, store: SessionStore | None) -> None:
        """``store`` None: nothing is stored."""
        self.settings = settings
        self._store = store
        self._saved_entries = self._saved_edits = 0
        self.state = start_state(settings)
        self.frame: Frame | None = None
        """Settings, tools and fields of the last request."""
        self.task = ""
        """Digest of the stored record of the newest payload; empty: there is none, or its task has ended."""
        self.tools = ""
        """Digest of the stored record of the tools that the next requests offer; empty: all that were given."""
        self.has_step_tools = False
        """Whether the next requests offer the tools of a step alone."""
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
        self.state = recall_state(recent, self.settings, history=history)
        return last

    def find_payload(self, history: History) -> None:
        """Name the payload that is the newest after entries were withdrawn. Raises StoreError, TamperedError."""
        if not self.task or self._store is None:
            return
        payloads = (edit for edit in reversed(history.edits) if edit.kind == "payload")
        newest = next((edit for edit in payloads if edit.first == history.view.payload), None)
        # It has its record since the call for which it was made.
        sent = self._store.manifests(*self.settings.owner, start=newest.call - 1) if newest else ()
        self.task = next((unseal(data).place.task for data in sent), "")

    def record(
        self, facts: Facts, history: History, *, plan: Plan, state: RequestState, offer: Offer, built: Built
    ) -> Manifest:
        """Seal and store the manifest of a request that shows the plan's view. Raises StoreError; the recorder is
        then unchanged."""
        settings, last, calibration = self.settings, state.last, state.calibration
        framed = frame(settings, tools=offer.tools_digest, template=offer.template_digest)
        is_keyframe = framed != self.frame or last.call % KEYFRAME_EVERY == 0
        decided = plan.edits[last.edits :]
        prefix = self._compare(built, plan, last, front=offer.transient.text.front, tools=framed.tools)
        transient, tail_tokens = offer.transient.digest, offer.transient.counts.get("tail", 0)
        counted = RequestCount(built.ends[-1] + tail_tokens, len(plan.view))
        kept = state.extends_learned and not prefix.first_changed and not transient
        is_learned = calibration.seen or calibration.is_doubted
        expected = Expected(calibration.predict(counted, kept=kept), calibration, kept) if is_learned else None
        call, task = last.call + 1, self.task if _has_payload(plan.view) else ""
        log = LogExtent(len(history.entries), len(plan.edits), history.log, history.is_recounted)
        manifest, data = seal(
            Manifest(
                format=FORMAT,
                place=RequestPlace(*settings.owner, call, facts.at_s, facts.cause, task, self.tools, self.memory),
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
                    built.marks,
                ),
                tool_detail=facts.tool_detail,
                decisions=tuple(map(decision, decided)),
                account=facts.account,
                frame=framed if is_keyframe else None,
            )
        )
        blobs = {**(offer.blobs if is_keyframe else NO_BLOBS), **offer.transient.blobs}
        self.save(history.entries, plan.edits, manifest=data, blobs=blobs)
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
        self.state = replace(state, last=last, had_tail=bool(transient))
        return manifest

    def save(
        self,
        entries: Sequence[Entry],
        edits: Sequence[Edit],
        *,
        manifest: bytes | None = None,
        blobs: Mapping[str, bytes] = NO_BLOBS,
    ) -> None:
        """Store what is new of the log and the edits, and a manifest. Raises StoreError."""
        if self._store is None:
            return
        self._store.append(
            self.settings.tenant,
            self.settings.session,
            entries=entries[self._saved_entries :],
            edits=edits[self._saved_edits :],
            manifest=manifest,
            call=None if manifest is None else self.state.last.call,
            blobs=blobs,
        )
        self._saved_entries, self._saved_edits = len(entries), len(edits)

    def load_fields(self, fields: Template | None, *, digest: str) -> Template | None:
        """Return the other body fields of the last request: these, unless it was stored with others. Raises
        StoreError, TamperedError."""
        if self._store is None or self.frame is None or self.frame.template == digest:
            return fields
        try:
            return fields_from(self._store.blob(*self.settings.owner, digest=self.frame.template))
        except ValueError as error:
            raise TamperedError(f"Other fields cannot be read: {error}.") from error

    @property
    def is_behind(self) -> bool:
        """Whether the store has anything of the session that was not loaded or saved here."""
        own = self._saved_entries, self._saved_edits, self.state.last.call
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
        # Repairs of what was sent before are decided, too; those at its end give way to what follows.
        decided = (
            edit.reason.rstrip(": ")
            for edit in plan.edits[last.edits :]
            if edit.kind != "repaired" or (edit.last < last.entries and not edit.reason.startswith(CLOSING))
        )
        reasons = "; ".join(dict.fromkeys(decided))
        if not shared and self.has_step_tools and self.frame is not None and self.frame.tools != tools:
            return Prefix(shared, tokens, "envelope", "the tools of the step changed", price)
        if not shared:
            return Prefix(shared, tokens, "envelope", reasons or "tools, system or other fields changed", price)
        otherwise = "the text before the history changed" if front else "new messages joined the last one"
        return Prefix(shared, tokens, f"messages.{shared - 1}", reasons or otherwise, price)


def _has_payload(view: View) -> bool:
    """Whether the newest payload is of the current turn: no request of the user follows it."""
    asked, _ = view.newest_request or (-1, None)
    return max(asked, 0) <= view.payload
