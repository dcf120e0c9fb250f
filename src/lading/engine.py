"""The pipeline of every request: admit, compact, fit, encode, check, record.

An ``Engine`` is the pipeline of one session. It owns the history and the growing request; a call costs time in
proportion to what is new since the last one. Messages go in by ``append``, a request comes out of ``pack``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress

from msgspec.structs import replace

from lading.addresses import relative
from lading.compaction import Account, Pressure, find_strategy
from lading.compaction.composed_run import ComposedRun
from lading.compaction.cutting import draft_emergency_cut
from lading.compaction.strategy_run import StrategyRun
from lading.errors import PackError, Violation, WindowExceeded
from lading.events import ContextInFront, Event, FieldLeftOut, RuleBroken, ToolsReduced, UsageDoubted
from lading.history.history import History
from lading.history.log import Reported
from lading.history.plan import Plan
from lading.history.view import ONLY_RESTORE, View
from lading.messages import Message, Template, Tool
from lading.models.profiles import Detail
from lading.request.background import make_runner
from lading.request.builder import RequestBuilder
from lading.request.counting import counter_for
from lading.request.fitting import Conditions, FittedPlan
from lading.request.known import Known, check_time
from lading.request.layers import layer_counts, make_window_error
from lading.request.manifest import Cause, Frame, Manifest, totals
from lading.request.pack import Pack
from lading.request.recorder import Built, Facts, Recorder, recent_manifests
from lading.request.tail import add_tail
from lading.request.tools import LADDER, Offer, lower_detail, make_offer
from lading.request.transient import NO_TEXT, CountedTransient, count_transient
from lading.request.unsuited import suit
from lading.settings import Settings
from lading.stores import SessionStore, Stored, check_unused
from lading.subscribers import Subscribers
from lading.tokens.calibration import Calibration
from lading.wire import find_wire
from lading.wire.checking import find_added, illegal
from lading.wire.fitting import find_needs


class Engine:
    """The request pipeline of one session: messages in, requests and manifests out."""

    def __init__(
        self, settings: Settings, store: SessionStore | None = None, *, own_tools: frozenset[str] = ONLY_RESTORE
    ) -> None:
        """``store`` None: nothing is stored; one that holds the session raises StoreError: use ``reopen``."""
        check_unused(store, settings.tenant, session=settings.session)
        self.settings, card, owner = settings, settings.card, settings.owner
        self.wire = wire = find_wire(settings.wire)
        self.count = counter_for(wire, card=card, meter=settings.meter)
        """Counts the tokens of a message as its wire will write it."""
        self._strategy = chosen = find_strategy(settings.strategy)
        needs, self.recorder = find_needs(wire, card, policy=chosen.reasoning), Recorder(settings, store)
        self.history = History(needs, self.count, session=owner, own_tools=own_tools)
        self._request = RequestBuilder(wire, card, strict=settings.strict)
        self.subscribers = to = Subscribers()
        """They are given the events of each pack, and those that happen while it is made."""
        self.subscribe = to.subscribe
        self.asking = make_runner(settings.summarizer, self._request, history=self.history, publish=to.publish)
        self._offer = make_offer((), None, meter=settings.meter)
        self._detail: Detail = settings.tool_detail
        self.pending: list[Event] = []
        """Events to report with the next pack."""
        self._account: Account = 0.0

    @property
    def call(self) -> int:
        """Number of the next call, from 1."""
        return self.recorder.known.last.call + 1

    @property
    def shown(self) -> int:
        """Number of log entries that the last request could show."""
        return self.recorder.known.last.entries

    @property
    def changes_requests(self) -> bool:
        """Whether the strategy can remove anything from a request."""
        return self._strategy.changes_requests

    @property
    def room_tokens(self) -> int:
        """Token budget of the conversation after its opening messages, tools included, for any next request."""
        view = self.history.view
        rooms = self.recorder.known.rooms(self.settings, items=len(view))
        return max(min(rooms) - view.tokens_before(view.head), 0)

    @property
    def calibration(self) -> Calibration:
        """The calibration of the session's counter from reported usage."""
        return self.recorder.known.calibration

    @property
    def accepted_tokens(self) -> int:
        """The largest input that the provider has taken, by its own count."""
        return self.recorder.known.accepted_tokens

    @property
    def frame(self) -> Frame | None:
        """Settings, tools and fields of the last request; None when there was none."""
        return self.recorder.frame

    @property
    def is_behind(self) -> bool:
        """Whether another writer has stored anything of the session since."""
        return self.recorder.is_behind

    def start_from(self, calibration: Calibration) -> None:
        """Start from another session's calibration for the same model."""
        self.recorder.known = self.recorder.known.start_from(calibration)

    def change(self, settings: Settings) -> None:
        """Use these settings from the next request on. Only budget, rates and cache lifetime may differ."""
        self.settings = self.recorder.settings = settings

    def resume(self, stored: Stored, recent: Sequence[Manifest], *, store: SessionStore) -> None:
        """Continue a stored session; ``recent``: its last manifests. For ``reopen``."""
        self.recorder = Recorder(self.settings, store)
        last = self.recorder.resume(stored, recent, history=self.history)
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
        """Append messages to the log, in order; they are stored with the next ``pack``, or at once by ``save``.
        ``usage``: of the last call, if the messages are its reply. ``known_as``: for each the digest by which the
        caller knows it. Raises IllegalRequest for a NaN or infinite number.
        """
        call, known = self.call, self.recorder.known
        for position, message in enumerate(messages):
            name = known_as[position] if known_as else None
            self.pending += self.history.append(message, call=call, at_s=at_s, usage=usage, known_as=name)
        self._request.forget(self.history.take_refitted())
        if usage is None:
            return
        self.recorder.known = known.with_usage(usage, self.settings, history=self.history)
        if self.recorder.known.has_doubted and not known.has_doubted:
            self.pending.append(UsageDoubted(known.last.call, usage.input_tokens, known.last.counted.tokens))
        if any(self.subscribers.groups):
            self.subscribers.publish(known.measure_usage(self.settings, usage))

    def restate(self, entry: int, message: Message) -> bool:
        """Replace a message by the caller's new version, from the next request on; False: it is not shown alone."""
        position = self.history.restate(entry, message, call=self.call)
        self._request.forget(len(self.history.view) if position is None else position)
        return position is not None

    def withdraw(self, entry: int) -> bool:
        """Hide this entry and later ones from the next request on; False: one edit replaces both sides of it."""
        if (position := self.history.withdraw(entry, call=self.call)) is not None:
            self._request.forget(position)
            self.recorder.known = self.recorder.known.cut(len(self.history.view))
        return position is not None

    def save(self) -> None:
        """Store the messages appended since the last ``pack``. Raises StoreError."""
        self.recorder.save(self.history)

    def pack(
        self,
        *,
        tools: Sequence[Tool] = (),
        template: Template | None = None,
        at_s: float | None = None,
        most_tokens: int | None = None,
        cause: Cause = "",
        refused_tokens: int | None = None,
        tail: str = "",
        front: str = "",
    ) -> Pack:
        """Build and record the request for the next call.
        ``template`` holds the body's other fields (model, temperature). ``at_s`` is the time of the call in
        seconds, for prompt caches that expire. ``most_tokens``: an additional limit by the session's counter.
        ``cause`` is recorded in the manifest. ``refused_tokens``: the provider rejected the last request as too
        long and counted this many tokens (0: unknown). ``tail``, ``front``: text for this request alone, at its end
        and before its history. Raises WindowExceeded, IllegalRequest for input that cannot be encoded, PackError,
        StoreError; after an error nothing has changed, and the call may be repeated.
        """
        check_time(at_s)
        self.asking.spent, plan = None, self.history.plan(call=self.call, fields=template)
        if all(item.message.role == "system" for item in plan.view.items):
            raise PackError("There is no message to answer yet. Append a user message first.")
        text = self._count_text(tail, front=front) if tail or front else NO_TEXT
        deciding, meter = self._start_run(plan, tuple(tools)), self.settings.meter
        self._offer = make_offer(tuple(tools), template, meter=meter, last=self._offer, transient=text)
        with ExitStack() as undo:
            undo.callback(self._request.forget, 0)
            known = self._recall()
            if refused_tokens is not None:
                known = known.with_refusal(refused_tokens, self.history)
            now = Conditions(deciding, known, at_s, most_tokens, refused_tokens is not None)
            fit = self._fit_with_text if self._strategy.write_tail else self._fit_or_distrust
            fitted, violations = self._assemble(plan, fit(plan, now), deciding)
            beside = self._offer.count_beside(fitted.detail)
            counts = layer_counts(fitted.plan.view, beside=beside, room_tokens=fitted.room_tokens)
            facts = Facts(counts, fitted.detail, fitted.account, at_s, cause, self.asking.spent)
            shown = len(plan.view.items)
            pack = self._record(fitted, facts, violations=violations, shown=shown, events=deciding.events)
            undo.pop_all()
        self.history.commit(fitted.plan)
        self.pending, self._account, self._detail = [], fitted.account, fitted.detail
        if any(self.subscribers.groups):
            self.subscribers.publish(*pack.events, self.recorder.known.measure_usage(self.settings, pack.tokens))
        return pack

    def _start_run(self, plan: Plan, tools: tuple[Tool, ...]) -> StrategyRun:
        return (ComposedRun if self._strategy.parts else StrategyRun)(
            self._strategy,
            name=self.settings.strategy_name,
            call=self.call,
            session=self.settings.owner,
            strict=self.settings.strict,
            events=[*self.pending, *plan.repairs],
            tools=tools,
        )

    def _recall(self) -> Known:
        """Return the state of the last request. After reopening, build it again for its digest chain."""
        known, last = self.recorder.known, self.recorder.known.last
        if last.chain or not last.call:
            return known
        self._encode(self._request, self.history.rebuild_view(last.entries, last.edits), self._detail)
        is_same = self._request.chain[-1] == last.digest
        if since := self.history.edits[last.edits :]:
            entry = min(edit.first for edit in since)
            self._request.forget(self.history.view.span(entry, entry)[0])
        return replace(known, last=replace(last, chain=tuple(self._request.prompt))) if is_same else known

    def _fit_with_text(self, plan: Plan, now: Conditions) -> FittedPlan:
        """Make the view fit beside the strategy's text for this request, or without it."""
        given = self._offer.transient
        if text := now.deciding.write_tail(plan.view, self.settings.card.tier):
            with suppress(WindowExceeded):
                both = self._count_text(text, given.text.tail, front=given.text.front)
                self._offer = replace(self._offer, transient=both)
                return self._fit_or_distrust(plan, now)
            self._offer = replace(self._offer, transient=given)
        return self._fit_or_distrust(plan, now)

    def _count_text(self, *tails: str, front: str) -> CountedTransient:
        return count_transient(tails, front, count=self.count, room_tokens=self.settings.budget.room_tokens)

    def _fit_or_distrust(self, plan: Plan, now: Conditions) -> FittedPlan:
        """Make the view fit. Where a calibration from a few reports leaves no room, try without it."""
        try:
            return self._fit(plan, now)
        except WindowExceeded:
            distrust = now.known.distrust()
            if distrust is None:
                raise
        return self._fit(plan, now._replace(known=distrust))

    def _fit(self, plan: Plan, now: Conditions) -> FittedPlan:
        """Let the strategy decide; lower the detail of the tools while the view does not fit."""
        last, framed = now.known.last, self.recorder.frame
        most = lower_detail(self._detail, self.settings.tool_detail)
        rungs = LADDER[LADDER.index(most) :] if self._strategy.changes_requests else (most,)
        for detail in rungs:
            beside = self._offer.count_beside(detail)
            if framed and (framed.tools, self._detail) != (self._offer.tools_digest, detail):
                now = now._replace(known=now.known.for_other_tools())
            kept, repacked = rooms = self._rooms(plan, now, beside_tokens := sum(beside.values()))
            # The count of a request that diverges from the last one is less certain.
            for room in dict.fromkeys((kept, min(kept, repacked))):
                tried, events = plan.branch(), [*now.deciding.events]
                account = self._decide(tried, room, now)
                # Fewer messages leave more room: each has a fixed cost.
                changes_sent = any(edit.first < last.entries for edit in tried.edits[last.edits :])
                left = rooms if tried.view is plan.view else self._rooms(tried, now, beside_tokens)
                fits = left[changes_sent or detail != self._detail]
                if tried.view.tokens <= fits:
                    if detail != self._detail:
                        before, after = self._offer.levels[self._detail].tokens, self._offer.levels[detail].tokens
                        now.deciding.events.append(ToolsReduced(self.call, detail, before, after))
                    return FittedPlan(tried, now.known, detail, account, max(room, fits) + beside_tokens)
                counts = layer_counts(tried.view, beside=beside, room_tokens=room + beside_tokens)
                now.deciding.drop_events(since=events)
        raise make_window_error(counts, totals(counts) + counts["slack"], strategy=self.settings.strategy_name)

    def _rooms(self, plan: Plan, now: Conditions, beside_tokens: int) -> tuple[int, int]:
        """Return the most tokens that the view may count: where the request extends the last one, and where it
        diverges."""
        has_tail, items = bool(self._offer.transient.counts), len(plan.view.items)
        rooms = now.known.rooms(self.settings, items=items, most_tokens=now.most_tokens, has_tail=has_tail)
        return rooms[0] - beside_tokens, rooms[1] - beside_tokens

    def _decide(self, plan: Plan, room_tokens: int, now: Conditions) -> Account:
        is_unchanged = now.known.is_unchanged(entries=len(self.history.entries), edits=len(plan.edits))
        if is_unchanged and not now.is_refused and plan.view.tokens <= room_tokens:
            # Nothing was answered since: no call has cost anything, and the request stays the same.
            return self._account
        press = self._pressure(plan, room_tokens, now)
        return now.deciding.decide(plan, press, account=self._account, run=self.asking.run)

    def _pressure(self, plan: Plan, room_tokens: int, now: Conditions) -> Pressure:
        settings, known = self.settings, now.known
        return Pressure(
            room_tokens=room_tokens,
            sent_items=known.last.counted.messages,
            rates=settings.rates,
            cache_cold=known.is_cold(settings, now.at_s),
            count=self.count,
            address=relative,
            invariants=self.wire.invariants(settings.card),
            tier=settings.card.tier,
            output_price=settings.card.prices.output if settings.summarizer else None,
            asks_itself=bool(settings.summarizer and settings.summarizer.is_self),
            past=known.past(settings, self.history, edits=plan.edits, refused=now.is_refused),
        )

    def _assemble(
        self, plan: Plan, fitted: FittedPlan, deciding: StrategyRun
    ) -> tuple[FittedPlan, list[Violation]]:
        """Encode new messages and check them. Edits of a strategy that break a rule are dropped."""
        self._request.forget(fitted.plan.changed)
        violations = self._encode(self._request, fitted.plan.view, fitted.detail)
        is_edited = len(fitted.plan.edits) > len(plan.edits)
        # What a strategy adds has no excuse, even where a rule is not verified yet.
        if not is_edited or not (broken := self._request.violations(strict=True)):
            return fitted, violations
        plain = RequestBuilder(self.wire, self.settings.card, strict=self.settings.strict)
        unavoidable = len(self._encode(plain, plan.view, fitted.detail))
        if not (broken := find_added(broken, plain.violations(strict=True))):
            return fitted, violations
        if self.settings.strict:
            raise illegal(f"The strategy {self.settings.strategy_name} made an illegal request:", broken)
        deciding.overrule(f"they broke rule {broken[0].rule}")
        fitted = fitted._replace(plan=plan.branch())
        self._cut_to_fit(fitted, deciding)
        self._request.forget(0)
        violations = self._encode(self._request, fitted.plan.view, fitted.detail)
        if len(violations) > unavoidable:
            raise illegal(
                "No cut leaves a request that is legal and fits. Use a model with a larger window:", violations
            )
        return fitted, violations

    def _cut_to_fit(self, fitted: FittedPlan, deciding: StrategyRun) -> None:
        """Cut a plan that does not fit without the edits that were dropped."""
        now, plan = Conditions(deciding, fitted.known, None, None, False), fitted.plan
        beside = self._offer.count_beside(fitted.detail)
        room = min(self._rooms(plan, now, sum(beside.values())))
        if plan.view.tokens > room:
            pressure = self._pressure(plan, room, now)
            rescue = draft_emergency_cut(plan.view, pressure)
            if rescue is None:
                counts = layer_counts(plan.view, beside=beside, room_tokens=fitted.room_tokens)
                raise make_window_error(counts, fitted.room_tokens, strategy=self.settings.strategy_name)
            deciding.apply(rescue, plan, pressure=pressure)

    def _encode(self, request: RequestBuilder, view: View, detail: Detail) -> list[Violation]:
        tools, tokens = (offer := self._suit(view)[0]).levels[detail]
        request.open(view, tools=tools, tools_tokens=tokens, template=offer.template, front=offer.transient.front)
        request.show(view)
        return request.violations()

    def _suit(self, view: View) -> tuple[Offer, list[FieldLeftOut]]:
        return suit(self._offer, view, wire=self.wire, settings=self.settings, call=self.call)

    def _record(
        self, fitted: FittedPlan, facts: Facts, *, violations: list[Violation], shown: int, events: Sequence[Event]
    ) -> Pack:
        """``shown``: number of messages without the strategy's edits."""
        request, plan, known, digest = self._request, fitted.plan, fitted.known, self._request.chain[-1]
        offer, left_out = self._suit(plan.view)
        tail, front = offer.transient.text.tail, offer.transient.front
        marks_end = not tail and request.marks_end
        body, whole = add_tail(request, tail)[:2] if tail else (request.body(marks_end=marks_end), digest)
        broken = [RuleBroken(self.call, item.rule, item.path, item.detail) for item in violations]
        edited = plan.list_applied(self.recorder.known.last.edits, before=shown)
        built = Built(whole, digest, tuple(request.prompt), tuple(request.ends), len(body), marks_end)
        manifest = self.recorder.record(facts, self.history, plan=plan, known=known, offer=offer, built=built)
        placed = [ContextInFront(known.last.call + 1, text.tokens, manifest.prefix.price) for text in front]
        told = (*events, *broken, *edited, *placed, *left_out)
        return Pack(body, manifest, built.chain, built.ends, tuple(violations), told)


def reopen(settings: Settings, store: SessionStore, *, own_tools: frozenset[str] = ONLY_RESTORE) -> Engine:
    """Continue a stored session: same log, same edits, and so the same bytes. Raises StoreError when the store has
    no such session, TamperedError when it was changed."""
    stored = store.load(settings.tenant, settings.session)
    engine = Engine(settings, own_tools=own_tools)
    recent = recent_manifests(store, tenant=settings.tenant, session=settings.session, calls=stored.calls)
    engine.resume(stored, recent, store=store)
    return engine
