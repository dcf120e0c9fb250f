"""The pipeline of every request: admit, compact, fit, encode, check, record.

An ``Engine`` is the pipeline of one session. It owns the history and the growing request; a call costs time in
proportion to what is new since the last one. Messages go in by ``append``, a request comes out of ``pack``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from msgspec.structs import replace

from lading.compaction import Account, find_strategy
from lading.compaction.composed_run import ComposedRun
from lading.compaction.strategy_run import StrategyRun
from lading.errors import PackError, Violation
from lading.events import ContextInFront, Event, FieldLeftOut, RuleBroken, UsageDoubted
from lading.history.history import History
from lading.history.log import NO_COMPACTIONS, Reported
from lading.history.plan import Plan
from lading.history.view import ONLY_RESTORE, View
from lading.messages import Message, Template, Tool
from lading.models.card import is_same_model
from lading.models.profiles import Detail
from lading.request.background import make_runner
from lading.request.builder import RequestBuilder
from lading.request.counting import counter_for
from lading.request.fitting import Conditions, FittedPlan, Fitting
from lading.request.layers import layer_counts
from lading.request.manifest import Cause, Frame, Manifest
from lading.request.marks import PlacedMark, list_answered_ends
from lading.request.pack import Pack
from lading.request.recorder import Built, Facts, Recorder
from lading.request.reopening import recent_manifests
from lading.request.state import RequestState, check_time
from lading.request.tail import add_tail
from lading.request.tools import Offer, make_offer, suit
from lading.request.transient import NO_TEXT, count_transient
from lading.settings import Settings
from lading.stores import SessionStore, Stored, check_unused
from lading.subscribers import Subscribers
from lading.tokens.calibration import Calibration
from lading.tokens.plausibility import RequestCount
from lading.wire import find_wire
from lading.wire.checking import find_added, illegal
from lading.wire.fitting import find_needs

_log = logging.getLogger("lading")


class Encoded(NamedTuple):
    """An encoded view: the offer that suits it, the fields left out of it, and the rules that it breaks."""

    offer: Offer
    left_out: list[FieldLeftOut]
    violations: list[Violation]


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
        self._copied = (0, 0)
        """Numbers of entries and edits at the start that are those of another session."""
        self.marks: tuple[PlacedMark, ...] = ()
        """Cache marks of the next requests that are in no message."""
        self._had_end_mark = False
        """Whether the last request before the session was opened again had one at its end."""
        self.pending: list[Event] = []
        """Events to report with the next pack."""
        self._account: Account = 0.0

    @property
    def call(self) -> int:
        """Number of the next call, from 1."""
        return self.recorder.state.last.call + 1

    @property
    def shown(self) -> int:
        """Number of log entries that the last request could show."""
        return self.recorder.state.last.entries

    @property
    def sent(self) -> tuple[int, int]:
        """Numbers of the entries and edits that a request had, also one of the session of which this is a copy."""
        last, (entries, edits) = self.recorder.state.last, self._copied
        return max(last.entries, entries), max(last.edits, edits)

    @property
    def changes_requests(self) -> bool:
        """Whether the strategy can remove anything from a request."""
        return self._strategy.changes_requests

    @property
    def room_tokens(self) -> int:
        """Token budget of the conversation after its opening messages, tools included, for any next request."""
        view = self.history.view
        rooms = self.recorder.state.rooms(self.settings, items=len(view))
        return max(min(rooms) - view.tokens_before(view.head), 0)

    @property
    def calibration(self) -> Calibration:
        """The calibration of the session's counter from reported usage."""
        return self.recorder.state.calibration

    @property
    def accepted_tokens(self) -> int:
        """The largest input that the provider has taken, by its own count."""
        return self.recorder.state.accepted_tokens

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
        self.recorder.state = self.recorder.state.start_from(calibration)

    def start_as_copy(self, other: Engine) -> None:
        """Start from another session, whose first messages and their edits this one has: for the same model, they
        are in the provider's cache."""
        self._copied = len(self.history.entries), len(self.history.edits)
        if is_same_model(other.settings.card, self.settings.card):
            self._account, self._detail = other._account, other._detail
            state, view = self.recorder.state.start_from(other.calibration), self.history.view
            sent = RequestCount(view.tokens, len(view))
            self.recorder.state = replace(state, last=replace(state.last, counted=sent))
            self._request.cached |= other._request.cached

    def change(self, settings: Settings) -> None:
        """Use these settings from the next request on. Only budget, rates and cache lifetime may differ."""
        self.settings = self.recorder.settings = settings

    def resume(self, stored: Stored, recent: Sequence[Manifest], *, store: SessionStore) -> None:
        """Continue a stored session; ``recent``: its last manifests. For ``reopen``."""
        self.recorder = Recorder(self.settings, store)
        last = self.recorder.resume(stored, recent, history=self.history)
        if last is not None:
            self._account, self._detail = last.account, last.tool_detail
            self._had_end_mark = any(one.entry is None for one in last.sent.marks)

    def append(
        self,
        messages: Iterable[Message],
        *,
        at_s: float | None = None,
        usage: Reported | None = None,
        known_as: Sequence[str] = (),
        reply_id: str = "",
        is_issued: bool = False,
    ) -> None:
        """Append messages to the log, in order; they are stored with the next ``pack``, or at once by ``save``.
        ``usage``, ``reply_id``: of the last call, if the messages are its reply. ``is_issued``: they are a reply
        as a provider gave it before. ``known_as``: for each the digest by which the caller knows it. Raises
        IllegalRequest for a NaN or infinite number.
        """
        call, state = self.call, self.recorder.state
        for position, message in enumerate(messages):
            name = known_as[position] if known_as else None
            # What comes right after a request is its reply, if the assistant says it, also where nobody says so.
            follows = 0 < state.last.entries == len(self.history.entries)
            self.pending += self.history.append(
                message,
                call=call,
                at_s=at_s,
                usage=usage,
                known_as=name,
                reply_id=reply_id,
                is_issued=is_issued or usage is not None or follows,
            )
            if message.role == "assistant":
                self._request.cached.update(self._request.marked_ends)
        if (changed := self.history.take_refitted()) is not None:
            self._request.forget(changed)
        if usage is None:
            return
        self.recorder.state = state.with_usage(usage, self.settings, history=self.history)
        if self.recorder.state.has_doubted and not state.has_doubted:
            doubted = UsageDoubted(state.last.call, usage.input_tokens, state.last.counted.tokens)
            self.pending.append(doubted)
            _log.warning(
                "The session %s: %d input tokens were reported where %d were counted. That cannot be: counts are "
                "not calibrated by it.",
                self.settings.session,
                doubted.reported_tokens,
                doubted.counted_tokens,
            )
        if any(self.subscribers.groups):
            self.subscribers.publish(state.measure_usage(self.settings, usage))

    def restate(self, entry: int, message: Message, *, is_other: bool = False) -> bool:
        """Replace a message by the caller's new version, from the next request on; False: it is not shown alone.
        ``is_other``: as of ``History.restate``."""
        position = self.history.restate(entry, message, call=self.call, is_other=is_other)
        self._request.forget(len(self.history.view) if position is None else position)
        return position is not None

    def withdraw(self, entry: int) -> bool:
        """Hide this entry and later ones from the next request on; False: one edit replaces both sides of it."""
        if (position := self.history.withdraw(entry, call=self.call)) is not None:
            self._request.forget(position)
            self.recorder.state = self.recorder.state.cut(len(self.history.view))
            self.recorder.find_payload(self.history)
        return position is not None

    def save(self) -> None:
        """Store the messages appended since the last ``pack``. Raises StoreError."""
        self.recorder.save(self.history.entries, self.history.edits)

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
        self.asking.spent, step = None, self.wire.find_repair(template or {})
        plan = self.history.plan(call=self.call, fields=template, step=step)
        if all(item.message.role == "system" for item in plan.view.items):
            raise PackError("There is no message to answer yet. Append a user message first.")
        tools, text = tuple(tools), NO_TEXT
        if tail or front:
            text = count_transient([tail], front, count=self.count, room_tokens=self.settings.budget.room_tokens)
        self._offer = offer = make_offer(
            tools, template, meter=self.settings.meter, last=self._offer, transient=text
        )
        with ExitStack() as undo:
            undo.callback(self._request.forget, 0)
            state = self._recall(offer)
            if refused_tokens is not None:
                state = state.with_refusal(refused_tokens, self.history)
            run, now = self._start_run(plan, tools), Conditions(at_s, most_tokens, refused_tokens is not None)
            fitting = self._prepare(run, state, offer, now)
            fitted = fitting.fit_with_text(plan) if self._strategy.write_tail else fitting.fit(plan)
            fitted, encoded = self._assemble(plan, fitted, fitting)
            beside = fitted.offer.count_beside(fitted.detail)
            counts = layer_counts(fitted.plan.view, beside=beside, room_tokens=fitted.room_tokens)
            facts = Facts(counts, fitted.detail, fitted.account, at_s, cause, self.asking.spent)
            pack = self._record(fitted, facts, encoded, shown=len(plan.view.items), events=run.events)
            undo.pop_all()
        self.history.commit(fitted.plan)
        self.pending, self._account, self._detail = [], fitted.account, fitted.detail
        if any(self.subscribers.groups):
            self.subscribers.publish(*pack.events, self.recorder.state.measure_usage(self.settings, pack.tokens))
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

    def _prepare(self, run: StrategyRun, state: RequestState, offer: Offer, conditions: Conditions) -> Fitting:
        return Fitting(
            settings=self.settings,
            history=self.history,
            wire=self.wire,
            count=self.count,
            strategy_run=run,
            answer=self.asking.run,
            state=state,
            offer=offer,
            last_tools=self.recorder.frame.tools if self.recorder.frame else "",
            detail=self._detail,
            account=self._account,
            conditions=conditions,
        )

    def _recall(self, offer: Offer) -> RequestState:
        """Return the state of the last request. After reopening, build it again for its digest chain."""
        state, last = self.recorder.state, self.recorder.state.last
        if last.chain or not last.call:
            return state
        fields = self.recorder.load_fields(offer.template, digest=offer.template_digest)
        offer = make_offer(offer.tools, fields, meter=self.settings.meter, last=offer, transient=offer.transient)
        view = self.history.rebuild_view(last.entries, last.edits)
        self._encode(self._request, view, offer, self._detail)
        is_same, chain = self._request.body_chain[-1] == last.digest, tuple(self._request.prompt_chain)
        if is_same and (self._request.own_mark or self._had_end_mark):
            self._request.cached.add(chain[-1])
            self._request.remember(list_answered_ends(view, self.history.entries, edits=self.history.edits))
        if since := self.history.edits[last.edits :]:
            entry = min(edit.first for edit in since)
            self._request.forget(self.history.view.span(entry, entry)[0])
        return replace(state, last=replace(last, chain=chain)) if is_same else state

    def _assemble(self, plan: Plan, fitted: FittedPlan, fitting: Fitting) -> tuple[FittedPlan, Encoded]:
        """Encode new messages and check them. Edits of a strategy that break a rule are dropped."""
        self._request.forget(fitted.plan.changed)
        encoded = self._encode(self._request, fitted.plan.view, fitted.offer, fitted.detail)
        is_edited = len(fitted.plan.edits) > len(plan.edits)
        # What a strategy adds has no excuse, even where a rule is not verified yet.
        if not is_edited or not (broken := self._request.violations(strict=True)):
            return fitted, encoded
        plain = RequestBuilder(self.wire, self.settings.card, strict=self.settings.strict)
        unavoidable = len(self._encode(plain, plan.view, fitted.offer, fitted.detail).violations)
        if not (broken := find_added(broken, plain.violations(strict=True))):
            return fitted, encoded
        if self.settings.strict:
            raise illegal(f"The strategy {self.settings.strategy_name} made an illegal request:", broken)
        fitting.strategy_run.overrule(f"they broke rule {broken[0].rule}")
        fitted = fitted._replace(plan=plan.branch())
        fitting.cut(fitted)
        self._request.forget(0)
        encoded = self._encode(self._request, fitted.plan.view, fitted.offer, fitted.detail)
        if len(encoded.violations) > unavoidable:
            raise illegal(
                "No cut leaves a request that is legal and fits. Use a model with a larger window:",
                encoded.violations,
            )
        return fitted, encoded

    def _encode(self, request: RequestBuilder, view: View, offer: Offer, detail: Detail) -> Encoded:
        offer, left_out = suit(offer, view, wire=self.wire, settings=self.settings, call=self.call)
        tools, tokens = offer.levels[detail]
        request.open(view, tools=tools, tools_tokens=tokens, template=offer.template, front=offer.transient.front)
        request.show(view)
        return Encoded(offer, left_out, request.violations())

    def _record(
        self, fitted: FittedPlan, facts: Facts, encoded: Encoded, *, shown: int, events: Sequence[Event]
    ) -> Pack:
        """``shown``: number of messages without the strategy's edits."""
        request, plan, state, digest = self._request, fitted.plan, fitted.state, self._request.body_chain[-1]
        offer, violations = encoded.offer, encoded.violations
        tail, front = offer.transient.text.tail, offer.transient.front
        new = plan.edits[self.recorder.state.last.edits :]
        is_compacted = any(edit.kind not in NO_COMPACTIONS for edit in new)
        marks = request.add_mark(self.marks, plan.view, may_replace=is_compacted)
        request.mark(marks, plan.view)
        body, whole = add_tail(request, tail)[:2] if tail else (request.body(), digest)
        broken = [RuleBroken(self.call, item.rule, item.path, item.detail) for item in violations]
        edited = plan.list_applied(max(self.recorder.state.last.edits, self._copied[1]), before=shown)
        built = Built(whole, digest, tuple(request.prompt_chain), tuple(request.ends), len(body), marks)
        manifest = self.recorder.record(facts, self.history, plan=plan, state=state, offer=offer, built=built)
        placed = [ContextInFront(state.last.call + 1, text.tokens, manifest.prefix.price) for text in front]
        told = (*events, *broken, *edited, *placed, *encoded.left_out)
        return Pack(body, manifest, built.chain, built.ends, tuple(violations), told)


def reopen(settings: Settings, store: SessionStore, *, own_tools: frozenset[str] = ONLY_RESTORE) -> Engine:
    """Continue a stored session: same log, same edits, and so the same bytes. Raises StoreError when the store has
    no such session, TamperedError when it was changed."""
    stored = store.load(settings.tenant, settings.session)
    engine = Engine(settings, own_tools=own_tools)
    recent = recent_manifests(store, tenant=settings.tenant, session=settings.session, calls=stored.calls)
    engine.resume(stored, recent, store=store)
    return engine
