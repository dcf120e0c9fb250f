"""A recorded session walked call by call: by a strategy, in the engine, or by an arm; what each request shows,
is billed and breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Strategy
from lading.economics import Rates, Usage
from lading.engine import Engine
from lading.errors import InputError, PackError
from lading.evaluate.recorded import ReplayPlan, feed, find_calls
from lading.evaluate.showings import Case, Showing
from lading.history.history import History
from lading.history.log import NO_COMPACTIONS, Edit
from lading.history.view import View
from lading.messages import Message, Tool
from lading.request.builder import Request
from lading.request.counting import counter_on
from lading.request.tools import Offer
from lading.sources import Recording, ToolsSoFar, restated
from lading.wire import find_wire
from lading.wire.fitting import needs_on

OUTPUT_RATE = 5.0
"""What a token costs that an arm's own model call writes, in base input tokens."""

Clock = Callable[[], float]
"""Seconds, of any clock that only goes forward."""


class Own(Struct, frozen=True):
    """The tokens of a request's own model call, a summary."""

    read_tokens: int = 0
    fresh_tokens: int = 0
    output_tokens: int = 0

    def cost(self, rates: Rates) -> float:
        """In base input tokens."""
        return self.read_tokens * rates.read + self.fresh_tokens + self.output_tokens * OUTPUT_RATE


class WalkedCall(Struct, frozen=True):
    """One call of a walk."""

    shown: Sequence[Message]
    """The messages of the request; none where there is no request. System messages that the recording restates
    are here as they were first."""
    tokens: int
    """Of the request, tools included; 0 where there is none."""
    usage: Usage | None
    """None where there is no request: it is charged as the append-only request."""
    own: Own = Own()
    forced_edits: int = 0
    voluntary_edits: int = 0
    broken_rules: tuple[str, ...] = ()
    reshaped: tuple[tuple[Message, Message], ...] = ()
    """Messages shown from this call on, each with the recorded one that it says without loss."""
    seconds: float = 0.0
    """Spent on deciding and building the request."""
    body: bytes = b""
    """Of the request; of an arm's where it is asked for."""


class RecordedSession(Struct, frozen=True):
    """A recorded session as it is walked. Calls are the recorded replies after the first user message."""

    name: str
    recording: Recording
    plan: ReplayPlan
    messages: tuple[Message, ...]
    """As recorded, mended at the border."""
    calls: tuple[int, ...]
    """For each call the position of its reply among ``messages``."""
    raw_calls: tuple[int, ...]
    """The same among the recording's messages, which are the entries of the log."""
    tools: tuple[tuple[Tool, ...], ...]
    """What each call offers."""

    def at_s(self, call: int) -> float | None:
        """When a call was made, in seconds since 1970, where it is recorded."""
        times = self.recording.times_s
        return times[self.raw_calls[call]] if times else None


def prepare(recording: Recording, plan: ReplayPlan, *, name: str) -> RecordedSession:
    """The session of a recording. Raises IllegalRequest for a number that JSON cannot carry."""
    settings = plan.settings
    history = History(needs_on(find_wire(settings.wire), settings.card), lambda _message: 0)
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
    return RecordedSession(
        name, recording, plan, tuple(history.view.messages), tuple(calls), tuple(raw_calls), tools
    )


def make_counter(session: RecordedSession) -> Callable[[Message], int]:
    """A function that counts a message as the session's wire will write it; what it counted once it knows."""
    settings = session.plan.settings
    count = counter_on(find_wire(settings.wire), card=settings.card, meter=settings.meter)
    known: dict[int, tuple[int, Message]] = {}

    def counted(message: Message) -> int:
        if id(message) not in known:
            # With the message, so that no other gets its identity.
            known[id(message)] = count(message), message
        return known[id(message)][0]

    return counted


def walk_strategy(
    session: RecordedSession, strategy: str | Strategy, *, rates: Rates, clock: Clock
) -> Iterator[WalkedCall]:
    """The calls as the engine answers them with this strategy at these rates."""
    plan = session.plan
    settings = replace(plan.settings, session=session.name, strategy=strategy, rates=rates)
    line, cache = Engine(settings), plan.cache()
    changes = (change for said in restated(session.recording).at.values() for change in said)
    firsts = {id(message): session.recording.messages[first] for first, message in changes}
    fed = feed(session.recording, line)
    for tools in session.tools:
        edits_before, started = len(line.history.edits), clock()
        _, at_s = next(fed)
        try:
            pack = line.pack(tools=tools, template=plan.template, at_s=at_s)
        except PackError:
            yield WalkedCall((), 0, None, seconds=clock() - started)
            continue
        seconds = clock() - started
        edits = [edit for edit in line.history.edits[edits_before:] if edit.kind not in NO_COMPACTIONS]
        forced = sum(edit.forced_tokens > 0 for edit in edits)
        yield WalkedCall(
            [firsts.get(id(message), message) for message in line.history.view.messages],
            pack.tokens,
            cache.bill(pack.chain, pack.ends, at_s=at_s),
            forced_edits=forced,
            voluntary_edits=len(edits) - forced,
            broken_rules=tuple(dict.fromkeys(item.rule for item in pack.violations)),
            reshaped=tuple(_reshaped(edits, session.recording)),
            seconds=seconds,
            body=pack.body,
        )


def walk_arm(
    session: RecordedSession,
    show: Callable[[Case], Iterator[Showing]],
    *,
    count: Callable[[Message], int],
    clock: Clock,
    bodies: Container[int] = (),
) -> Iterator[WalkedCall]:
    """The calls as an arm answers them: encoded, checked, billed. ``bodies``: calls, from 0, that need a body."""
    plan = session.plan
    builder, cache = _Builder(session, count), plan.cache()
    showings = show(make_case(session, count=count))
    for call in range(len(session.calls)):
        started = clock()
        showing = next(showings, None)
        if showing is None:
            raise InputError(
                f"The arm gave {call} requests for {len(session.calls)} calls. Give one request for each call."
            )
        request = builder.request(showing.messages, call)
        seconds = clock() - started
        yield WalkedCall(
            showing.messages,
            request.ends[-1],
            cache.bill(request.prompt, request.ends, at_s=session.at_s(call)),
            own=Own(showing.summary_read_tokens, showing.summary_fresh_tokens, showing.summary_output_tokens),
            broken_rules=tuple(dict.fromkeys(item.rule for item in request.violations())),
            seconds=seconds,
            body=request.body() if call in bodies else b"",
        )


def make_case(session: RecordedSession, *, count: Callable[[Message], int]) -> Case:
    """The session as an arm takes it: the tools of its last call are there from the first."""
    settings = session.plan.settings
    tools = settings.meter.count_tools(session.tools[-1]) if session.tools else 0
    return Case(
        session.messages,
        session.calls,
        room_tokens=settings.budget.room_tokens - tools,
        window_tokens=settings.budget.window_tokens,
        count=count,
    )


def everything(case: Case) -> Iterator[Showing]:
    """The yardstick: every request shows all that was said."""
    return (Showing(upto, case.messages[:upto]) for upto in case.calls)


class _Builder:
    """The requests of an arm, each built from what it shares with the one before."""

    def __init__(self, session: RecordedSession, count: Callable[[Message], int]) -> None:
        settings = session.plan.settings
        self._session, self._count = session, count
        self._request = Request(find_wire(settings.wire), settings.card, strict=settings.strict)
        self._offer = Offer((), None, settings.meter)
        self._view = View()
        self._changes = sorted(restated(session.recording).at.items())
        self._now: dict[int, Message] = {}
        """What a system message of the session says in this call, by its identity."""

    def request(self, shown: Sequence[Message], call: int) -> Request:
        """The request of a call that shows these messages, the system messages among them as that call states them;
        it changes with the next."""
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
            self._view.append(shown[position], entry=position, tokens=self._count(shown[position]))
        plan = self._session.plan
        self._offer = self._offer.changed(self._session.tools[call], plan.template)
        tools, tokens = self._offer.at("full"), self._offer.tokens("full")
        self._request.open(self._view, tools=tools, tools_tokens=tokens, template=plan.template)
        self._request.show(self._view)
        return self._request


def _reshaped(edits: Iterable[Edit], recording: Recording) -> Iterator[tuple[Message, Message]]:
    for edit in edits:
        if edit.kind == "reshaped":
            yield from ((message, recording.messages[edit.first]) for message in edit.replacement)
