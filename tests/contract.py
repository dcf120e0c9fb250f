"""What every preset promises, judged from outside by the table of ``tests/promises.py``: one history through one
preset, in two engines at once.

The second engine keeps its session in a store of its own and is reopened on the way; both must say the same, byte
for byte. A request that is made again without anything new must be the same, and without a further edit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Strategy
from lading.effects import Summarizer
from lading.engine import Engine, reopen
from lading.events import StrategyOverruled
from lading.guard import attempt
from lading.history.log import Reported
from lading.jsonbytes import digest, dump
from lading.messages import Message, Tool, user_text
from lading.models.card import Conduct
from lading.request.pack import Pack
from lading.settings import Settings
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS, settings, template
from tests.promises import PROMISES, REFUSED, Moment, Outcome, When, texts

KINDS = tuple(PROMISES)
PINNED = "The password of the staging host is {}-heron."
MOST_PINNED_CHARS = 1_000
RULES = (
    "Never push to the branch release-{}.",
    "You must not push release-{}!",
    "Please do not guess at release-{}.",
    "Always run it \ud83d\\ release-{}.",
)


class Preset(NamedTuple):
    """A strategy as somebody configures it."""

    strategy: str | Strategy
    summarizer: Summarizer | None = None
    strict: bool = True
    """Its own failures are errors; False for functions of a caller's, which may fail."""
    keeps_newest: bool = True
    """False where its numbers allow less of the newest results than the newest block has."""


class Step(NamedTuple):
    """What is said before one request."""

    messages: tuple[Message, ...]
    pin: bool = False
    """The last of them is pinned when it comes in."""
    rules: tuple[str, ...] = ()
    """What the user lays down in them."""
    tools: tuple[Tool, ...] = TOOLS
    at_s: float | None = None


class Fault(NamedTuple):
    """A promise that was not kept, by its name."""

    kind: str
    what: str


class Verdict(Struct, frozen=True):
    """What one play came to."""

    requests: int = 0
    edits: int = 0
    """Decided by the strategy, or in its place."""
    refused: int = 0
    """Requests in place of which there was a typed error."""
    faults: tuple[Fault, ...] = ()
    compactions: int = 0
    """Requests for which something was edited that had been sent."""
    overruled: int = 0
    """Events that say that the strategy's own edits could not be used."""
    rules: int = 0
    removed: int = 0
    """Entries that the last request does not show as they were said."""

    @property
    def by_kind(self) -> Counter[str]:
        """How many faults there are of each kind."""
        return Counter(fault.kind for fault in self.faults)


def steps(
    messages: Sequence[Message],
    *,
    tools: Sequence[tuple[Tool, ...]] = (),
    times_s: Sequence[float | None] = (),
    laid_down: bool = True,
) -> list[Step]:
    """A request before each assistant message after the first user message, and one at the end. ``tools``: those
    known before each message. ``laid_down``: at a quarter and at half of them the user states a rule, and
    something that is pinned; what comes in at a third is pinned where it is short."""
    cuts = [
        position
        for position, message in enumerate(messages)
        if message.role == "assistant" and any(earlier.role == "user" for earlier in messages[:position])
    ]
    made: list[Step] = []
    before = 0
    for cut in [*cuts, len(messages)]:
        known = tools[min(cut, len(tools) - 1)] if tools else TOOLS
        at_s = times_s[min(cut, len(times_s) - 1)] if times_s else None
        made.append(Step(tuple(messages[before:cut]), tools=known, at_s=at_s))
        before = cut
    if laid_down:
        third = made[len(made) // 3]
        is_short = 0 < sum(len(text) for last in third.messages[-1:] for text in texts(last)) <= MOST_PINNED_CHARS
        made[len(made) // 3] = third._replace(pin=is_short)
        for number, place in enumerate(sorted({len(made) // 4, len(made) // 2})):
            rule = RULES[(number + len(messages)) % len(RULES)].format(number)
            note = user_text(PINNED.format(number))
            added = (user_text(f"Good. {rule}"), note)
            made[place] = made[place]._replace(messages=(*made[place].messages, *added), pin=True, rules=(rule,))
    return made


class _Line:
    """One engine on its way through a script."""

    def __init__(self, chosen: Settings, *, reopened_at: Collection[int] = ()) -> None:
        self.store = MemoryStore()
        self.engine = Engine(chosen, self.store)
        self.reopened_at = reopened_at
        self.tokens = 0

    def take(self, step: Step, number: int) -> list[str]:
        """Take in what a step says; the texts that are pinned with it."""
        engine = self.engine
        if number in self.reopened_at:
            engine.save()
            if self.store.sessions():
                self.engine = engine = reopen(engine.settings, self.store)
        for message in step.messages:
            answers = message.role == "assistant" and self.tokens
            engine.append([message], usage=Reported(self.tokens) if answers else None)
            self.tokens = 0 if answers else self.tokens
        if not step.pin:
            return []
        pinned = len(engine.history.entries) - 1
        engine.history.pin(pinned, call=engine.call)
        start, end = engine.history.view.span(pinned, pinned)
        shown = engine.history.view.messages[start:end]
        return [text for message in shown for text in texts(message) if text.strip()]

    def request(self, step: Step) -> Outcome:
        """The next request, or the typed error in its place."""
        fields = template(self.engine.settings.wire)
        made = attempt(partial(self.engine.pack, tools=step.tools, template=fields, at_s=step.at_s))
        if isinstance(made, Exception):
            return f"{type(made).__name__}: {made}"
        self.tokens = made.tokens
        return made


def play(
    script: Sequence[Step],
    preset: Preset,
    *,
    window: int,
    wire: str,
    twice: bool = True,
    every: int = 1,
    conduct: Conduct | None = None,
    reopened_at: Collection[int] = (),
) -> Verdict:
    """A script through a preset. ``twice``: beside a second engine that is reopened before the steps
    ``reopened_at``, or in the midst. ``every``: of the requests that extend the one before them, each so-manieth is
    looked at; all others always are."""
    made = settings(window, wire=wire, strategy=preset.strategy, strict=preset.strict, conduct=conduct)
    chosen = replace(made, summarizer=preset.summarizer)
    reopened_at = (reopened_at or {max(len(script) // 2, 1)}) if twice else ()
    return play_with(chosen, script, reopened_at=reopened_at, every=every, keeps_newest=preset.keeps_newest)


def play_with(
    chosen: Settings, script: Sequence[Step], *, reopened_at: Collection[int], every: int, keeps_newest: bool = True
) -> Verdict:
    """A script at settings of the caller's. ``reopened_at``: none, and there is no second engine."""
    twin = _Line(chosen, reopened_at=reopened_at) if reopened_at else None
    before = _fingerprint(script)
    playing = _Play(_Line(chosen), twin, keeps_newest=keeps_newest)
    for number, step in enumerate(script):
        playing.step(step, number, is_looked_at=(len(script) - 1 - number) % every == 0)
    return playing.end(is_input_kept=_fingerprint(script) == before)


class _Play:
    """A script at work in two engines."""

    def __init__(self, line: _Line, twin: _Line | None, *, keeps_newest: bool) -> None:
        self.line, self.twin, self.keeps_newest = line, twin, keeps_newest
        self.requests = self.edits = self.refused = self.compactions = self.overruled = 0
        self.faults: list[Fault] = []
        self.pinned: list[str] = []
        self.rules: list[str] = []
        self.last: Outcome = ""

    def step(self, step: Step, number: int, *, is_looked_at: bool) -> None:
        """Make the next request, judge it, and where it was decided anew make it again."""
        history, shown = self.line.engine.history, self.line.engine.shown
        mark = len(history.edits)
        self.pinned += self.line.take(step, number)
        self.rules += step.rules
        if self.twin:
            self.twin.take(step, number)
        moment = self._request(step, mark, last=self.last)
        is_new = any(edit.reason != "the caller pinned it" for edit in moment.edits)
        self._judge(moment, "decided")
        if isinstance(moment.outcome, Pack):
            self._judge(moment, "sent")
            if is_new or is_looked_at:
                self._judge(moment, "looked at")
            self.requests += 1
            self.last = moment.outcome
            self.edits += len(moment.outcome.manifest.decisions)
            self.compactions += any(edit.first < shown for edit in moment.edits)
            self.overruled += sum(isinstance(event, StrategyOverruled) for event in moment.outcome.events)
        else:
            self._judge(moment, "refused")
            self.refused += moment.outcome.startswith(REFUSED)
        if is_new or moment.outcome is not self.last:
            self._judge(self._request(step, len(history.edits), last=moment.outcome), "again")

    def end(self, *, is_input_kept: bool) -> Verdict:
        """Judge what is stored, and where the last request leads."""
        self.line.engine.save()
        engine, rules = self.line.engine, len(set(self.rules))
        self._judge(Moment(engine, self.line.store, self.last, is_input_kept=is_input_kept), "end")
        removed = engine.shown - len({item.entry for item in engine.history.view.items if item.edit < 0})
        counts = self.compactions, self.overruled, rules, removed
        return Verdict(self.requests, self.edits, self.refused, tuple(self.faults), *counts)

    def _request(self, step: Step, mark: int, *, last: Outcome) -> Moment:
        outcome = self.line.request(step)
        return Moment(
            self.line.engine,
            self.line.store,
            outcome,
            last,
            self.twin.request(step) if self.twin else None,
            self.line.engine.history.edits[mark:],
            self.pinned,
            self.rules,
            keeps_newest=self.keeps_newest,
        )

    def _judge(self, moment: Moment, when: When) -> None:
        call = self.line.engine.call - 1
        for kind, promise in PROMISES.items():
            if when in promise.when:
                self.faults += [Fault(kind, f"call {call}: {what}") for what in promise.broken(moment)]


def _fingerprint(script: Sequence[Step]) -> str:
    """A digest of all that is handed in."""
    return digest(dump([msgspec.to_builtins((step.messages, step.tools)) for step in script]))
