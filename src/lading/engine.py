"""The line every request follows: admit, compact, allocate, assemble, encode, record.

An ``Engine`` is one session's line. It holds the log, its view and the growing request; a call costs what
is new since the last one. Messages go in with ``append``, a request comes out of ``pack``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from lading.addresses import relative
from lading.compaction import Arrival, Compaction, Pressure, admitted, compacted, strategy, unsound
from lading.compaction.emergency import emergency
from lading.effects import Asking, attempted
from lading.errors import IllegalRequest, InputError, PackError, Violation, WindowExceeded
from lading.events import Event, RuleBroken, StrategyOverruled, ToolsReduced
from lading.history.history import History
from lading.history.log import Draft, Reported
from lading.history.validity import newest_block
from lading.history.view import View
from lading.messages import Message, Template, Tool
from lading.models.profiles import Detail
from lading.request.builder import Request
from lading.request.counting import counter_on
from lading.request.manifest import Cause, Frame, Manifest, totals
from lading.request.pack import Pack, applied, layer_counts, window_exceeded
from lading.request.recorder import Last, Receipts, Standing, recent_manifests
from lading.request.tools import LADDER, Offer, least
from lading.settings import Settings
from lading.stores import SessionStore, Stored, check_unused
from lading.tokens.calibration import Calibration
from lading.wire import find_wire
from lading.wire.fitting import needs_on

Decided = TypeVar("Decided")


class Engine:
    """The request pipeline of one session: messages in, requests and manifests out."""

    def __init__(self, settings: Settings, store: SessionStore | None = None) -> None:
        """``store`` None: nothing is kept beyond the process.

        Raises StoreError when the store already holds the session: ``reopen`` continues it.
        """
        check_unused(store, settings.tenant, session=settings.session)
        self.settings = settings
        self._wire = find_wire(settings.wire)
        self.count = counter_on(self._wire, card=settings.card, meter=settings.meter)
        """Tokens of a message as its wire will write it, by the session's counter."""
        self.history = History(needs_on(self._wire, settings.card), self.count, session=settings.owner)
        self._strategy = strategy(settings.strategy)
        self._asking = Asking(settings.summarizer, output_price=settings.card.prices.output, count=self.count)
        self._request = Request(self._wire, settings.card, strict=settings.strict)
        self._offer = Offer((), None, settings.meter)
        self._detail: Detail = settings.tool_detail
        self._events: list[Event] = []
        self._receipts = Receipts(settings, store)
        self._account = 0.0
        self._room = settings.budget.room_tokens
        self._undecided = 0

    @property
    def call(self) -> int:
        """Number of the next call, from 1."""
        return self._last.call + 1

    @property
    def shown(self) -> int:
        """Number of log entries that the last request could show."""
        return self._last.entries

    @property
    def changes_requests(self) -> bool:
        """Whether the strategy can remove anything from a request."""
        return self._strategy.changes_requests

    @property
    def room_tokens(self) -> int:
        """Token budget of the conversation after its opening messages, tools included, for any next request."""
        view = self.history.view
        return max(min(self._receipts.rooms(items=len(view))) - view.tokens_before(view.head), 0)

    @property
    def calibration(self) -> Calibration:
        """The calibration of the session's counter from reported usage."""
        return self._receipts.calibration

    @property
    def frame(self) -> Frame | None:
        """Settings, tools and fields of the last request; None when there was none."""
        return self._receipts.frame

    @property
    def is_behind(self) -> bool:
        """Whether another writer has stored something of the session since."""
        return self._receipts.is_behind

    def start_from(self, calibration: Calibration) -> None:
        """Start from the calibration of another session of the same model."""
        self._receipts.start_from(calibration)

    def change(self, settings: Settings) -> None:
        """Use these settings, with another budget, from the next request on."""
        self.settings = self._receipts.settings = settings

    def resume(self, stored: Stored, recent: Sequence[Manifest], *, store: SessionStore) -> None:
        """Continue a stored session; ``recent``: its last manifests. For ``reopen``."""
        self._receipts = Receipts(self.settings, store)
        last = self._receipts.resume(stored, recent, history=self.history)
        if last is not None:
            self._account, self._detail = last.account, last.tool_detail

    def append(
        self,
        messages: Iterable[Message],
        *,
        at_s: float | None = None,
        usage: Reported | None = None,
        known_as: Sequence[str] = (),
    ) -> None:
        """Append messages to the log, in order. They are stored with the next ``pack``, or at once by ``save``.

        ``usage``: the usage of the last call, when the messages are the reply to it; it calibrates the counts.
        ``known_as``: for each message the digest by which the caller knows it. Raises IllegalRequest for a message
        with a number that is NaN or infinite; the messages before it are appended.
        """
        for position, message in enumerate(messages):
            name = known_as[position] if known_as else None
            self._events += self.history.append(message, call=self.call, at_s=at_s, usage=usage, known_as=name)
        self._events += self._receipts.learn(usage, self.history)

    def restate(self, entry: int, message: Message) -> None:
        """Replace an opening message by the caller's new version, from the next request on."""
        self.history.restate(entry, message, call=self.call)
        self._request.forget(0)

    def withdraw(self, entry: int) -> None:
        """Hide this entry and all later ones from the next request on: the caller continues from before it."""
        self._request.forget(self.history.withdraw(entry, call=self.call))
        self._receipts.shortened(len(self.history.view))

    def save(self) -> None:
        """Store the messages appended since the last ``pack``. Raises StoreError."""
        self._receipts.save(self.history)

    def pack(
        self,
        *,
        tools: Sequence[Tool] = (),
        template: Template | None = None,
        at_s: float | None = None,
        most_tokens: int | None = None,
        cause: Cause = "",
        refused_tokens: int | None = None,
    ) -> Pack:
        """Build and record the request for the next call.

        ``template`` holds the body's other fields (model, temperature). ``at_s`` is the time of the call in
        seconds, for prompt caches that expire. ``most_tokens``: an additional limit by the session's counter.
        ``cause`` is recorded in the manifest. ``refused_tokens``: the provider rejected the last request as too
        long and counted this many tokens (0: unknown). Raises WindowExceeded, IllegalRequest for input that cannot
        be encoded, PackError, StoreError; after an error the log is unchanged, decisions and calibration of this
        call are discarded, and the call may be repeated.
        """
        if at_s is not None and not math.isfinite(at_s):
            raise InputError(f"at_s is {at_s}; give seconds since 1970, or leave it out.")
        detail, events, before = self._detail, len(self._events), len(self.history.edits)
        recorded, learned = False, None
        self._asking.begin()
        try:
            self._events += self.history.close(call=self.call, fields=template)
            mark, self._undecided = len(self.history.edits), len(self.history.view)
            if all(item.message.role == "system" for item in self.history.view.items):
                raise PackError("There is no message to answer yet. Append a user message first.")
            self._offer = self._offer.changed(tuple(tools), template)
            self._recall()
            if refused_tokens is not None:
                learned = self._receipts.refused(refused_tokens, self.history)
            account = self._compact(at_s, most_tokens, refused=refused_tokens is not None)
            violations = self._assemble(mark)
            standing = Standing(self._counts(), self._detail, account, at_s, cause, self._asking.spent)
            pack = self._record(violations, standing)
            recorded = True
        finally:
            if not recorded:
                self._take_back(before)
                self._detail = detail
                del self._events[events:]
                if learned is not None:
                    self._receipts.last, self._receipts.calibration = learned
        return pack

    def _recall(self) -> None:
        """After reopening: show the last request again, whose messages the new one shares, to know its chain."""
        last = self._last
        if last.chain or not last.call:
            return
        self._encode(self._request, self.history.rebuilt(last.entries, last.edits))
        if self._request.chain[-1] == last.digest:
            self._receipts.last = replace(last, chain=tuple(self._request.prompt))
        if since := self.history.edits[last.edits :]:
            entry = min(edit.first for edit in since)
            self._request.forget(self.history.view.span(entry, entry)[0])

    def _compact(self, at_s: float | None, most_tokens: int | None, *, refused: bool) -> float:
        """Make the view fit. Where it does not by what a few reports have taught, they are not believed."""
        try:
            return self._fit(at_s, most_tokens, refused=refused)
        except WindowExceeded:
            known = self._receipts.doubted()
            if known is None:
                raise
        try:
            return self._fit(at_s, most_tokens, refused=refused)
        except WindowExceeded:
            self._receipts.last, self._receipts.calibration = known
            raise

    def _fit(self, at_s: float | None, most_tokens: int | None, *, refused: bool) -> float:
        """Let the strategy decide; climb down the tool ladder while the view does not fit. The new account."""
        mark, most = len(self.history.edits), least(self._detail, self.settings.tool_detail)
        rungs = LADDER[LADDER.index(most) :] if self._strategy.changes_requests else (most,)
        for detail in rungs:
            tools_tokens = self._offer.tokens(detail)
            kept, repacked = self._rooms(tools_tokens, most_tokens)
            # A request that goes another way than the last is counted with less certainty.
            for room in dict.fromkeys((kept, min(kept, repacked))):
                account = self._decide(self._pressure(room, at_s, refused=refused))
                # A shorter list leaves more room: each message has a price of its own.
                fits = self._rooms(tools_tokens, most_tokens)[self._changes_sent() or detail != self._detail]
                if self.history.view.tokens <= fits:
                    self._reduce(detail)
                    self._room = max(room, fits) + tools_tokens
                    return account
                counts = layer_counts(self.history.view, tools_tokens=tools_tokens, room_tokens=room + tools_tokens)
                self._take_back(mark)
        raise window_exceeded(counts, totals(counts) + counts["slack"], strategy=self.settings.strategy_name)

    def _rooms(self, tools_tokens: int, most_tokens: int | None) -> tuple[int, int]:
        """What the view may count as a request that extends the last one, and as one that goes another way."""
        rooms = self._receipts.rooms(items=len(self.history.view), most_tokens=most_tokens)
        return rooms[0] - tools_tokens, rooms[1] - tools_tokens

    def _changes_sent(self) -> bool:
        """Whether an edit since the last request changes what that one showed."""
        return any(edit.first < self._last.entries for edit in self.history.edits[self._last.edits :])

    def _pressure(self, room_tokens: int, at_s: float | None, *, refused: bool = False) -> Pressure:
        settings = self.settings
        return Pressure(
            room_tokens=room_tokens,
            sent_items=self._last.counted.messages,
            rates=settings.rates,
            account=self._account,
            cache_cold=self._receipts.is_cold(at_s),
            count=self.count,
            address=relative,
            invariants=self._wire.invariants(settings.card),
            tier=settings.card.tier,
            output_price=settings.card.prices.output if settings.summarizer else None,
            past=self._receipts.past(self.history, refused=refused),
        )

    def _decide(self, pressure: Pressure) -> float:
        view, refused = self.history.view, pressure.past.is_refused
        if not refused and self._receipts.are_of(self.history) and view.tokens <= pressure.room_tokens:
            # Nothing was answered since: no call has paid rent, and the request stays what it is.
            return pressure.account
        position = min(pressure.sent_items, len(view))
        if refused:
            # The model saw nothing of what was new in a request that was too long.
            position = min(position, newest_block(view.messages))
        while position < len(view):
            arrival, items = Arrival(view.items[position], view), len(view)
            draft = self._guarded(partial(admitted, self._strategy, arrival, pressure=pressure), None)
            if draft is not None:
                self._apply(draft, pressure)
            position += 1 + len(view) - items
        decide = partial(compacted, self._strategy, view, pressure=pressure, run=self._asking.run)
        compaction = self._guarded(decide, Compaction())
        self._events = compaction.events(self.call, self._events)
        for draft in compaction.drafts:
            self._apply(draft, pressure)
        if view.tokens > pressure.room_tokens and self._strategy.changes_requests:
            rescue = emergency(view, pressure)
            if rescue is not None:
                self._overrule("they did not fit the window")
                self._apply(rescue, pressure)
        return compaction.rent if compaction.drafts else pressure.account + compaction.rent

    def _guarded(self, decide: Callable[[], Decided], otherwise: Decided) -> Decided:
        """What a strategy decides; one that fails decides nothing. A strategy may be a user's own code."""
        outcome = attempted(decide)
        if not isinstance(outcome, Exception):
            return outcome
        if self.settings.strict:
            raise outcome
        self._overrule(f"it failed: {type(outcome).__name__}: {outcome}")
        return otherwise

    def _apply(self, draft: Draft, pressure: Pressure) -> None:
        entries = len(self.history.entries)
        if fault := unsound(draft, self.history.view, entries=entries, session=self.settings.owner):
            if self.settings.strict:
                raise PackError(f"The strategy {self.settings.strategy_name} drafted an edit that {fault}.")
            self._overrule(f"an edit of its {fault}")
            return
        self._request.forget(self.history.apply(draft, call=self.call, room_tokens=pressure.room_tokens))

    def _assemble(self, mark: int) -> list[Violation]:
        """Encode what is new and check it; a strategy whose edits broke a rule is overruled."""
        violations = self._encode(self._request, self.history.view)
        if not violations or len(self.history.edits) == mark or not self._made_worse(violations, mark):
            return violations
        if self.settings.strict:
            raise IllegalRequest(
                f"The strategy {self.settings.strategy_name} made an illegal request: {violations[0].rule} at "
                f"{violations[0].path}: {violations[0].detail}.",
                violations=tuple(violations),
            )
        self._take_back(mark)
        self._overrule(f"they broke rule {violations[0].rule}")
        room = min(self._receipts.rooms(items=len(self.history.view))) - self._offer.tokens(self._detail)
        if self.history.view.tokens <= room:
            return self._encode(self._request, self.history.view)
        pressure = self._pressure(room, None)
        rescue = emergency(self.history.view, pressure)
        if rescue is None:
            raise window_exceeded(self._counts(), self._room, strategy=self.settings.strategy_name)
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
        return len(self._encode(plain, self.history.rebuilt(len(self.history.entries), mark))) < len(violations)

    def _encode(self, request: Request, view: View) -> list[Violation]:
        tools, tools_tokens = self._offer.at(self._detail), self._offer.tokens(self._detail)
        request.open(view, tools=tools, tools_tokens=tools_tokens, template=self._offer.template)
        request.show(view)
        return request.violations()

    def _record(self, violations: list[Violation], standing: Standing) -> Pack:
        request, decided, call = self._request, self.history.edits[self._last.edits :], self.call
        chain, ends, body = tuple(request.prompt), tuple(request.ends), request.body()
        built = (request.chain[-1], chain, ends, len(body))
        manifest = self._receipts.record(standing, self.history, offer=self._offer, built=built)
        broken = (RuleBroken(call, item.rule, item.path, item.detail) for item in violations)
        events = (*self._events, *broken, *applied(decided, before=self._undecided, after=len(self.history.view)))
        self._events, self._account = [], standing.account
        return Pack(body, manifest, chain, ends, tuple(violations), events)

    @property
    def _last(self) -> Last:
        return self._receipts.last

    def _counts(self) -> dict[str, int]:
        tools_tokens = self._offer.tokens(self._detail)
        return layer_counts(self.history.view, tools_tokens=tools_tokens, room_tokens=self._room)

    def _reduce(self, detail: Detail) -> None:
        if detail != self._detail:
            tokens = self._offer.tokens
            self._events.append(ToolsReduced(self.call, detail, tokens(self._detail), tokens(detail)))
            self._detail = detail

    def _overrule(self, why: str) -> None:
        self._events.append(StrategyOverruled(self.call, self.settings.strategy_name, why))

    def _take_back(self, mark: int) -> None:
        if len(self.history.edits) > mark:
            self.history.take_back(mark)
            self._request.forget(0)


def reopen(settings: Settings, store: SessionStore) -> Engine:
    """Continue a stored session: same log, same edits, and so the same bytes.

    Raises StoreError when the store has no such session, TamperedError when it was changed.
    """
    stored = store.load(settings.tenant, settings.session)
    engine = Engine(settings)
    recent = recent_manifests(store, tenant=settings.tenant, session=settings.session, calls=stored.calls)
    engine.resume(stored, recent, store=store)
    return engine
