"""Run a strategy, in the engine, or an arm over a recorded session, call by call: requests, bills, broken rules."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Strategy
from lading.economics import OwnCalls, Rates, Usage
from lading.engine import Engine
from lading.errors import InputError, PackError
from lading.evaluate.arms import ArmInput, ArmRequest
from lading.evaluate.replay import ReplayPlan, feed_recording, find_calls
from lading.history.history import History
from lading.history.log import NO_COMPACTIONS
from lading.history.view import View, append_message
from lading.messages import Message, Tool
from lading.request.builder import RequestBuilder
from lading.request.counting import counter_for
from lading.request.tools import make_offer
from lading.sources import Recording, ToolsSoFar, restated
from lading.wire import find_wire
from lading.wire.fitting import find_needs

OUTPUT_RATE = 5.0
"""Price of an output token of an arm's own model call, in base input tokens."""

Clock = Callable[[], float]
"""Returns seconds of a monotonic clock."""


class SummaryTokens(Struct, frozen=True):
    """Tokens of the model calls that wrote a request's summary."""

    read_tokens: int = 0
    fresh_tokens: int = 0
    output_tokens: int = 0
    written_tokens: int = 0

    def cost(self, rates: Rates) -> float:
        """Compute the cost in base input tokens."""
        used = Usage(self.read_tokens, self.written_tokens, self.fresh_tokens)
        return used.cost(rates) + self.output_tokens * OUTPUT_RATE


class RunCall(Struct, frozen=True):
    """One call of a run."""

    shown: Sequence[Message]
    """Messages of the request; empty without a request. Restated system messages have their first wording."""
    tokens: int
    """Tokens of the request, tools included; 0 without a request."""
    usage: Usage | None
    """Bill of the request; None without a request, which is charged as append-only."""
    own: SummaryTokens = SummaryTokens()
    forced_edits: int = 0
    voluntary_edits: int = 0
    broken_rules: tuple[str, ...] = ()
    reshaped: tuple[tuple[Message, Message], ...] = ()
    """Messages shown from this call on, each with the recorded message that it reshapes without loss."""
    seconds: float = 0.0
    """Seconds to decide and build the request."""
    body: bytes = b""
    """Body of the request; empty for arms unless requested."""


class RecordedSession(Struct, frozen=True):
    """A recorded session, prepared for runs. Its calls are the recorded replies after the first user message."""

    name: str
    recording: Recording
    plan: ReplayPlan
    messages: tuple[Message, ...]
    """As recorded, with the repairs of ``history/repair.py``."""
    calls: tuple[int, ...]
    """Position of each call's reply among ``messages``."""
    raw_calls: tuple[int, ...]
    """Position of each call's reply among the recording's messages, which are the entries of the log."""
    tools: tuple[tuple[Tool, ...], ...]
    """Tools of each call."""

    def at_s(self, call: int) -> float | None:
        """Return the time of a call in seconds since 1970, where recorded."""
        times = self.recording.times_s
        return times[self.raw_calls[call]] if times else None


def prepare_session(recording: Recording, plan: ReplayPlan, *, name: str) -> RecordedSession:
    """Prepare a recording for runs. Raises IllegalRequest for a number that JSON cannot represent."""
    settings = plan.settings
    history = History(find_needs(find_wire(settings.wire), settings.card), lambda _message: 0)
    so_far = ToolsSoFar(recording)
    calls: list[int] = []
    raw_calls = find_calls(recording.messages)
    due = set(raw_calls)
    for position, message in enumerate(recording.messages):
        if position in due:
            history.commit(history.plan(call=len(calls) + 1, fields=plan.template))
            calls.append(len(history.view))
        history.append(message, call=len(calls) + 1)
    tools = tuple(so_far.at(position) for position in raw_calls)
    offer = make_offer((), None, meter=settings.meter)
    for offered in tools:
        offer = make_offer(offered, plan.template, meter=settings.meter, last=offer)
    return RecordedSession(
        name, recording, plan, tuple(history.view.messages), tuple(calls), tuple(raw_calls), tools
    )


def make_counter(session: RecordedSession) -> Callable[[Message], int]:
    """Make a function that counts a message as the session's provider format encodes it, and caches its counts."""
    settings = session.plan.settings
    count = counter_for(find_wire(settings.wire), card=settings.card, meter=settings.meter)
    known: dict[int, tuple[int, Message]] = {}

    def count_once(message: Message) -> int:
        if id(message) not in known:
            # The message is referenced, so that no other gets its identity.
            known[id(message)] = count(message), message
        return known[id(message)][0]

    return count_once


def run_strategy(
    session: RecordedSession, strategy: str | Strategy, *, rates: Rates, clock: Clock
) -> Iterator[RunCall]:
    """Run a strategy at these rates; yield each call."""
    plan = session.plan
    settings = replace(plan.settings, session=session.name, strategy=strategy, rates=rates)
    engine, cache = Engine(settings), plan.new_cache()
    changes = (change for group in restated(session.recording).at.values() for change in group)
    firsts = {id(message): session.recording.messages[first] for first, message in changes}
    fed = feed_recording(session.recording, engine)
    for tools in session.tools:
        edits_before, started = len(engine.history.edits), clock()
        _, at_s = next(fed)
        try:
            pack = engine.pack(tools=tools, template=plan.template, at_s=at_s)
        except PackError:
            yield RunCall((), 0, None, seconds=clock() - started)
            continue
        seconds = clock() - started
        edits = [edit for edit in engine.history.edits[edits_before:] if edit.kind not in NO_COMPACTIONS]
        forced = sum(edit.forced_tokens > 0 for edit in edits)
        yield RunCall(
            [firsts.get(id(message), message) for message in engine.history.view.messages],
            pack.tokens,
            cache.bill(pack.chain, pack.ends, at_s=at_s),
            own=_count_own(pack.manifest.sent.own or OwnCalls()),
            forced_edits=forced,
            voluntary_edits=len(edits) - forced,
            broken_rules=tuple(dict.fromkeys(item.rule for item in pack.violations)),
            reshaped=tuple(
                (message, session.recording.messages[edit.first])
                for edit in edits
                if edit.kind == "reshaped"
                for message in edit.replacement
            ),
            seconds=seconds,
            body=pack.body,
        )


def _count_own(own: OwnCalls) -> SummaryTokens:
    fresh = own.input_tokens - own.read_tokens - own.written_tokens
    return SummaryTokens(own.read_tokens, fresh, own.output_tokens, own.written_tokens)


def run_arm(
    session: RecordedSession,
    show: Callable[[ArmInput], Iterator[ArmRequest]],
    *,
    count: Callable[[Message], int],
    clock: Clock,
    bodies: Container[int] = (),
) -> Iterator[RunCall]:
    """Run an arm; yield each call, encoded, checked and billed. ``bodies``: calls, from 0, that need a body."""
    plan = session.plan
    builder, cache = _ArmRequests(session, count), plan.new_cache()
    requests = show(make_arm_input(session, count=count))
    for call in range(len(session.calls)):
        started = clock()
        arm_request = next(requests, None)
        if arm_request is None:
            raise InputError(
                f"The arm gave {call} requests for {len(session.calls)} calls. Give one request for each call."
            )
        request = builder.build(arm_request.messages, call)
        seconds = clock() - started
        yield RunCall(
            arm_request.messages,
            request.ends[-1],
            cache.bill(request.prompt_chain, request.ends, at_s=session.at_s(call)),
            own=SummaryTokens(
                arm_request.summary_read_tokens,
                arm_request.summary_fresh_tokens,
                arm_request.summary_output_tokens,
            ),
            broken_rules=tuple(dict.fromkeys(item.rule for item in request.violations())),
            seconds=seconds,
            body=request.body() if call in bodies else b"",
        )


def make_arm_input(session: RecordedSession, *, count: Callable[[Message], int]) -> ArmInput:
    """Make the input of an arm from a session; the tools of the last call are offered at every call."""
    settings = session.plan.settings
    tools = settings.meter.count_tools(session.tools[-1]) if session.tools else 0
    return ArmInput(
        session.messages,
        session.calls,
        room_tokens=settings.budget.room_tokens - tools,
        window_tokens=settings.budget.window_tokens,
        count=count,
    )


def show_everything(case: ArmInput) -> Iterator[ArmRequest]:
    """Show all messages in every request (append-only)."""
    return (ArmRequest(upto, case.messages[:upto]) for upto in case.calls)


class _ArmRequests:
    """Builds the requests of an arm, each from the prefix it shares with the previous one."""

    def __init__(self, session: RecordedSession, count: Callable[[Message], int]) -> None:
        settings = session.plan.settings
        self._session, self._count = session, count
        self._request = RequestBuilder(find_wire(settings.wire), settings.card, strict=settings.strict)
        self._offer = make_offer((), None, meter=settings.meter)
        self._view = View()
        self._changes = sorted(restated(session.recording).at.items())
        self._now: dict[int, Message] = {}
        """Current wording of restated system messages, by the identity of the original."""

    def build(self, shown: Sequence[Message], call: int) -> RequestBuilder:
        """Build the request of a call with these messages, system messages in their wording at that call. The next
        request reuses the returned object."""
        while self._changes and self._changes[0][0] <= self._session.raw_calls[call]:
            for position, message in self._changes.pop(0)[1]:
                self._now[id(self._session.messages[position])] = message
        shown = [self._now.get(id(message), message) for message in shown]
        pairs = zip(self._view.items, shown, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0].message is pair[1], pairs))
        if shared < len(self._view):
            self._request.forget(shared)
            self._view = View()
        for position in range(len(self._view), len(shown)):
            append_message(self._view, shown[position], entry=position, tokens=self._count(shown[position]))
        plan = self._session.plan
        tools, meter = self._session.tools[call], plan.settings.meter
        self._offer = make_offer(tools, plan.template, meter=meter, last=self._offer)
        tools, tokens = self._offer.levels["full"]
        self._request.open(self._view, tools=tools, tools_tokens=tokens, template=plan.template)
        self._request.show(self._view)
        return self._request
