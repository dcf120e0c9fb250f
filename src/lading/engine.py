"""The line every request follows: admit, compact, allocate, assemble, encode, record.

An ``Engine`` is one session's line. It holds the log, its view and the growing request; a call costs what
is new since the last one. Messages go in with ``append``, a request comes out of ``pack``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import Address, check_name
from lading.compaction import Arrival, Compaction, Draft, Pressure, admitted, compacted, strategy, unsound
from lading.compaction.emergency import emergency
from lading.counting import counter_on
from lading.economics import is_cold
from lading.errors import IllegalRequest, InputError, PackError, StoreError
from lading.events import CompactionApplied, Event, StrategyOverruled, ToolsReduced
from lading.history import History
from lading.jsonbytes import CANONICAL_FORM
from lading.log import Edit
from lading.manifest import (
    FORMAT,
    KEYFRAME_EVERY,
    Frame,
    Manifest,
    Place,
    Prefix,
    Seen,
    Sent,
    decision,
    seal,
    unseal,
)
from lading.messages import Message, Template, Tool
from lading.offer import Offer
from lading.pack import Pack, layer_counts, window_exceeded
from lading.request import ENCODER, Request, shared_links
from lading.settings import Settings
from lading.stores import SessionStore
from lading.toolset import LADDER, Detail
from lading.view import View, rebuild
from lading.wire import find_wire
from lading.wire.checking import Violation

Decided = TypeVar("Decided")


class Engine:
    """One session's line from messages to requests."""

    def __init__(self, settings: Settings, store: SessionStore | None = None) -> None:
        """``store`` None: nothing is kept beyond the process.

        Raises StoreError when the store already holds the session: ``reopen`` continues it.
        """
        check_name(settings.tenant, what="tenant")
        check_name(settings.session, what="session")
        if store is not None and (settings.tenant, settings.session) in store.sessions():
            raise StoreError(
                f"The store already holds the session {settings.session!r}. Continue it with lading.reopen, "
                "or choose another session name."
            )
        self.settings = settings
        self._wire = find_wire(settings.wire)
        self._count = counter_on(self._wire, card=settings.card, meter=settings.meter)
        self.history = History(self._wire.needs(settings.card), self._count)
        self._store = store
        self._strategy = strategy(settings.strategy)
        self._request = Request(self._wire, settings.card, strict=settings.strict)
        self._offer = Offer((), None, settings.meter)
        self._detail: Detail = "full"
        self._events: list[Event] = []
        self._last = Last()
        self._account = 0.0
        self._saved_entries = self._saved_edits = 0

    @property
    def call(self) -> int:
        """Number of the next call, from 1."""
        return self._last.call + 1

    def resume(self, manifest: bytes | None, *, store: SessionStore) -> None:
        """Go on after the last recorded request (None: there was none). For ``reopen``."""
        history, self._store = self.history, store
        self._saved_entries, self._saved_edits = len(history.entries), len(history.edits)
        if manifest is None:
            return
        last = unseal(manifest)
        self._account, self._detail = last.account, last.tool_detail
        items, _ = history.view.span(last.seen.entries, last.seen.entries)
        sent, place = last.seen, last.place
        self._last = Last(
            call=place.call,
            checksum=last.checksum,
            items=items,
            entries=sent.entries,
            edits=sent.edits,
            at_s=place.at_s,
            digest=last.sent.digest,
        )

    def append(self, messages: Iterable[Message], *, at_s: float | None = None) -> None:
        """Admit messages to the log, in order, as they happened. They are stored with the next ``pack``, or
        at once by ``save``.

        Raises IllegalRequest for a message with a number that is NaN or infinite; those before it are in.
        """
        for message in messages:
            self._events += self.history.append(message, call=self.call, at_s=at_s)

    def save(self) -> None:
        """Store what was appended since the last ``pack``. Raises StoreError."""
        self._save(None, {})

    def pack(
        self, *, tools: Sequence[Tool] = (), template: Template | None = None, at_s: float | None = None
    ) -> Pack:
        """The request for the next call, recorded.

        ``template`` holds the body's other fields (model, temperature). ``at_s`` is when the call is made,
        for prompt caches that cool. Raises WindowExceeded, IllegalRequest for input that cannot be encoded,
        PackError, StoreError; after an error the log stands, no edit of this call remains, and the call may
        be made again.
        """
        if at_s is not None and not math.isfinite(at_s):
            raise InputError(f"at_s is {at_s}; give seconds since 1970, or leave it out.")
        self._events += self.history.close(call=self.call)
        if all(item.message.role == "system" for item in self.history.view.items):
            raise PackError("There is no message to answer yet. Append a user message first.")
        self._offer = self._offer.changed(tuple(tools), template)
        mark, detail, events, recorded = len(self.history.edits), self._detail, len(self._events), False
        try:
            self._recall()
            account = self._compact(at_s)
            violations = self._assemble(mark)
            pack = self._record(violations, account=account, at_s=at_s)
            recorded = True
        finally:
            if not recorded:
                self._take_back(mark)
                self._detail = detail
                del self._events[events:]
        return pack

    def _recall(self) -> None:
        """After reopening: show the last request again, whose messages the new one shares, to know its chain."""
        last = self._last
        if last.chain or not last.call:
            return
        earlier = rebuild(self.history.entries[: last.entries], self.history.edits[: last.edits])
        self._encode(self._request, earlier)
        chain = tuple(self._request.chain)
        if chain[-1] == last.digest:
            self._last = replace(last, chain=chain)

    def _compact(self, at_s: float | None) -> float:
        """Let the strategy decide; climb down the tool ladder while the view does not fit. The new account."""
        mark = len(self.history.edits)
        rungs = LADDER[LADDER.index(self._detail) :] if self._strategy.changes_requests else (self._detail,)
        for detail in rungs:
            room = self.settings.budget.room_tokens - self._offer.tokens(detail)
            account = self._decide(self._pressure(room, at_s))
            if self.history.view.tokens <= room:
                self._reduce(detail)
                return account
            tools_tokens = self._offer.tokens(detail)
            counts = layer_counts(self.history.view, tools_tokens=tools_tokens, budget=self.settings.budget)
            self._take_back(mark)
        raise window_exceeded(counts, self.settings.budget, strategy=self.settings.strategy)

    def _pressure(self, room_tokens: int, at_s: float | None) -> Pressure:
        settings, last = self.settings, self._last
        idle_s = None if at_s is None or last.at_s is None else at_s - last.at_s
        return Pressure(
            room_tokens=room_tokens,
            sent_items=last.items,
            rates=settings.rates,
            account=self._account,
            cache_cold=is_cold(idle_s=idle_s, ttl_s=settings.cache_ttl_s),
            count=self._count,
            address=lambda item: str(Address(settings.tenant, settings.session, "log", item)),
            invariants=self._wire.invariants(settings.card),
        )

    def _decide(self, pressure: Pressure) -> float:
        view = self.history.view
        position = min(pressure.sent_items, len(view))
        while position < len(view):
            arrival, items = Arrival(view.items[position], view), len(view)
            draft = self._guarded(partial(admitted, self._strategy, arrival, pressure=pressure), None)
            if draft is not None:
                self._apply(draft, pressure)
            position += 1 + len(view) - items
        compaction = self._guarded(partial(compacted, self._strategy, view, pressure=pressure), Compaction())
        for draft in compaction.drafts:
            self._apply(draft, pressure)
        if view.tokens > pressure.room_tokens and self._strategy.changes_requests:
            rescue = emergency(view, pressure)
            if rescue is not None:
                self._overrule("they did not fit the window")
                self._apply(rescue, pressure)
        return 0.0 if compaction.drafts else pressure.account + compaction.rent

    def _guarded(self, decide: Callable[[], Decided], otherwise: Decided) -> Decided:
        """What a strategy decides; one that fails decides nothing. A strategy may be a user's own code."""
        try:
            return decide()
        except Exception as error:
            if self.settings.strict:
                raise
            self._overrule(f"it failed: {type(error).__name__}: {error}")
            return otherwise

    def _apply(self, draft: Draft, pressure: Pressure) -> None:
        session = (self.settings.tenant, self.settings.session)
        if fault := unsound(draft, self.history.view, entries=len(self.history.entries), session=session):
            if self.settings.strict:
                raise PackError(f"The strategy {self.settings.strategy} drafted an edit that {fault}.")
            self._overrule(f"an edit of its {fault}")
            return
        changed = self.history.apply(draft, call=self.call, room_tokens=pressure.room_tokens)
        self._request.forget(changed)

    def _assemble(self, mark: int) -> list[Violation]:
        """Encode what is new and check it; a strategy whose edits broke a rule is overruled."""
        violations = self._encode(self._request, self.history.view)
        if not violations or len(self.history.edits) == mark or not self._made_worse(violations, mark):
            return violations
        if self.settings.strict:
            raise IllegalRequest(
                f"The strategy {self.settings.strategy} made an illegal request: {violations[0].rule} at "
                f"{violations[0].path}: {violations[0].detail}.",
                violations=tuple(violations),
            )
        self._take_back(mark)
        self._overrule(f"they broke rule {violations[0].rule}")
        room = self.settings.budget.room_tokens - self._offer.tokens(self._detail)
        if self.history.view.tokens <= room:
            return self._encode(self._request, self.history.view)
        pressure = self._pressure(room, None)
        rescue = emergency(self.history.view, pressure)
        if rescue is None:
            raise window_exceeded(self._counts(), self.settings.budget, strategy=self.settings.strategy)
        self._apply(rescue, pressure)
        violations = self._encode(self._request, self.history.view)
        if violations and self._made_worse(violations, mark):
            raise IllegalRequest(
                f"No cut leaves a request that is legal and fits: {violations[0].rule} at {violations[0].path}: "
                f"{violations[0].detail}. Use a model with a larger window.",
                violations=tuple(violations),
            )
        return violations

    def _made_worse(self, violations: Sequence[Violation], mark: int) -> bool:
        """Whether the same history without the edits since ``mark`` breaks fewer rules."""
        plain = Request(self._wire, self.settings.card, strict=self.settings.strict)
        view = rebuild(self.history.entries, self.history.edits[:mark])
        return len(self._encode(plain, view)) < len(violations)

    def _encode(self, request: Request, view: View) -> list[Violation]:
        tools, tools_tokens = self._offer.at(self._detail), self._offer.tokens(self._detail)
        request.open(view, tools=tools, tools_tokens=tools_tokens, template=self._offer.template)
        request.show(view)
        return request.violations()

    def _record(self, violations: list[Violation], *, account: float, at_s: float | None) -> Pack:
        chain, ends, body = tuple(self._request.chain), tuple(self._request.ends), self._request.body()
        history, last = self.history, self._last
        frame = self._frame()
        is_keyframe = frame != last.frame or last.call % KEYFRAME_EVERY == 0
        decided = history.edits[last.edits :]
        manifest, data = seal(
            Manifest(
                format=FORMAT,
                place=Place(self.settings.tenant, self.settings.session, self.call, at_s),
                parent=last.checksum,
                seen=Seen(len(history.entries), len(history.edits), history.log),
                counts=self._counts(),
                prefix=self._prefix(chain, ends, decided),
                sent=Sent(chain[-1], len(body)),
                tool_detail=self._detail,
                decisions=tuple(map(decision, decided)),
                account=account,
                frame=frame if is_keyframe else None,
            )
        )
        self._save(data, self._offer.blobs if is_keyframe else {})
        events = (*self._events, *(_applied(edit) for edit in decided if edit.kind != "repaired"))
        self._events, self._account = [], account
        shown = (len(history.view), len(history.entries), len(history.edits))
        self._last = Last(self.call, manifest.checksum, chain, *shown, frame, at_s, chain[-1])
        return Pack(body, manifest, chain, ends, tuple(violations), events)

    def _counts(self) -> dict[str, int]:
        tools_tokens = self._offer.tokens(self._detail)
        return layer_counts(self.history.view, tools_tokens=tools_tokens, budget=self.settings.budget)

    def _frame(self) -> Frame:
        settings, meter = self.settings, self.settings.meter
        return Frame(
            wire=settings.wire,
            strategy=settings.strategy,
            encoder=ENCODER,
            canonical=CANONICAL_FORM,
            card=settings.card,
            counter=meter.counter.name,
            multiplier=meter.multiplier,
            budget=settings.budget,
            rates=settings.rates,
            cache_ttl_s=settings.cache_ttl_s,
            tools=self._offer.tools_digest,
            template=self._offer.template_digest,
        )

    def _prefix(self, chain: tuple[str, ...], ends: tuple[int, ...], decided: list[Edit]) -> Prefix:
        last = self._last
        shared = shared_links(chain, last.chain)
        tokens = ends[shared - 1] if shared else 0
        if shared == len(last.chain) and (last.chain or not last.call):
            return Prefix(shared, tokens)
        first_new, _ = self.history.view.span(last.entries, last.entries)
        new_tokens = self.history.view.tokens - self.history.view.tokens_before(first_new)
        rates = self.settings.rates
        price = max(rates.write - rates.read, 0.0) * max(ends[-1] - tokens - new_tokens, 0)
        reasons = dict.fromkeys(edit.reason for edit in decided if edit.kind != "repaired")
        why = "; ".join(reasons) or "new messages joined the last one"
        if not shared:
            why = "tools, system or other fields changed"
        return Prefix(shared, tokens, f"messages.{shared - 1}" if shared else "envelope", why, price)

    def _reduce(self, detail: Detail) -> None:
        if detail != self._detail:
            before, after = self._offer.tokens(self._detail), self._offer.tokens(detail)
            self._events.append(ToolsReduced(self.call, detail, before, after))
            self._detail = detail

    def _overrule(self, why: str) -> None:
        self._events.append(StrategyOverruled(self.call, self.settings.strategy, why))

    def _take_back(self, mark: int) -> None:
        if len(self.history.edits) > mark:
            self.history.take_back(mark)
            self._request.forget(0)

    def _save(self, manifest: bytes | None, blobs: Mapping[str, bytes]) -> None:
        if self._store is None:
            return
        entries, edits = self.history.entries, self.history.edits
        self._store.append(
            self.settings.tenant,
            self.settings.session,
            entries=entries[self._saved_entries :],
            edits=edits[self._saved_edits :],
            manifest=manifest,
            blobs=blobs,
        )
        self._saved_entries, self._saved_edits = len(entries), len(edits)


class Last(Struct, frozen=True):
    """What the next call must know of the one before."""

    call: int = 0
    checksum: str = ""
    chain: tuple[str, ...] = ()
    """Empty after reopening, until the next call shows that request again."""
    items: int = 0
    entries: int = 0
    edits: int = 0
    frame: Frame | None = None
    at_s: float | None = None
    digest: str = ""
    """The last link of its chain."""


def reopen(settings: Settings, store: SessionStore) -> Engine:
    """The line of a stored session where it stopped: same log, same edits, and so the same bytes.

    Raises StoreError when the store has no such session, TamperedError when it was changed.
    """
    stored = store.load(settings.tenant, settings.session)
    engine = Engine(settings)
    engine.history.restore(stored.entries, stored.edits)
    engine.resume(stored.last_manifest, store=store)
    return engine


def _applied(edit: Edit) -> CompactionApplied:
    return CompactionApplied(
        edit.call, edit.index, edit.kind, edit.reason, edit.tokens_before, edit.tokens_after, edit.forced_tokens
    )
