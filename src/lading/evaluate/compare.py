"""Strategies and arms compared on recorded sessions: each by each window and each set of prices.

What is measured is written down in docs/reference/compare.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from lading.budget import allocate
from lading.compaction import STRATEGIES, Strategy, When
from lading.compaction.without import WITHOUT
from lading.economics import Rates, Usage
from lading.errors import UnknownName
from lading.evaluate.baselines import ARMS, OTHER_NAMES
from lading.evaluate.evidence import weigh_words
from lading.evaluate.guards import Guards
from lading.evaluate.probes import Probe, SessionProbes
from lading.evaluate.scores import ContestantScore, Judged, Score, sum_scores
from lading.evaluate.showings import Arm
from lading.evaluate.value_recall import RecalledValues, Texts, find_values, follow_addresses, look_for
from lading.evaluate.walks import (
    Clock,
    RecordedSession,
    WalkedCall,
    everything,
    make_counter,
    walk_arm,
    walk_strategy,
)
from lading.messages import Message
from lading.registry import lookup

Advance = Callable[[int], None]
"""Told of calls as they are done."""


class Contestant(Struct, frozen=True):
    """A strategy, run by the engine, or an arm."""

    name: str
    arm: Arm | None = None
    strategy: str | Strategy = ""
    """As the engine takes it; empty for an arm."""


class NamedRates(Struct, frozen=True):
    """A set of prices by a short name."""

    name: str
    rates: Rates


class Grid(Struct, frozen=True):
    """The contestants, windows and prices of a comparison."""

    contestants: tuple[Contestant, ...]
    windows: tuple[int, ...]
    """In tokens."""
    prices: tuple[NamedRates, ...]

    @property
    def walks(self) -> int:
        """How often each session is walked, at most."""
        strategies = sum(contestant.arm is None for contestant in self.contestants)
        arms = len(self.contestants) - strategies
        return 1 + len(self.windows) * (strategies * len(self.prices) + arms)


def find_contestant(name: str, *, when: When | None = None, verbatim: float | None = None) -> Contestant:
    """The strategy or the arm of that name, or at that dotted path; a strategy where both have it, with the options
    where it takes them. Raises UnknownName, InputError for options that cannot be.
    """
    table = {**ARMS, **WITHOUT, **STRATEGIES}
    name = OTHER_NAMES.get(name, name)
    found: object = lookup(table, name, kind="strategy")
    if isinstance(found, Strategy):
        if found.with_options is not None and (when, verbatim) != (None, None):
            found = found.with_options(when, verbatim)
            return Contestant(found.name, strategy=found)
        # What changes no request needs no engine to say so.
        arm = None if found.changes_requests else Arm(name, everything)
        return Contestant(name, arm, WITHOUT.get(name, name))
    if isinstance(found, Arm):
        return Contestant(name, found)
    raise UnknownName(f"{name!r} is neither a strategy nor an arm. Choose one of: {', '.join(sorted(table))}.")


def compare(
    sessions: Iterable[RecordedSession],
    grid: Grid,
    *,
    advance: Advance,
    clock: Clock = time.perf_counter,
    probes: Sequence[Probe] = (),
) -> list[ContestantScore]:
    """Score each contestant at each window and each set of prices, over all sessions, in this order."""
    weight = weigh_words([[item.quote for item in probe.evidence] for probe in probes])
    scores: dict[tuple[str, int, str], list[Score]] = {}
    for session in sessions:
        yardstick = _Yardstick(session, clock, SessionProbes(session, probes), weight)
        advance(len(session.calls))
        for window in grid.windows:
            for key, score in yardstick.scores(grid, window, advance=advance):
                scores.setdefault(key, []).append(score)
    names = [rival.name for rival in grid.contestants]
    return [
        sum_scores(scores.get((name, window, prices.name), []), prices.rates, name=(name, window, prices.name))
        for window, name, prices in product(grid.windows, names, grid.prices)
    ]


class _Yardstick:
    """A session with all that is known of it whoever walks it: its values, its guards and its bill in full."""

    def __init__(
        self, session: RecordedSession, clock: Clock, asked: SessionProbes, weight: Mapping[str, float]
    ) -> None:
        self._session, self._clock, self._asked, self._weight = session, clock, asked, weight
        self._texts = Texts()
        self._count = make_counter(session)
        self._values = list(find_values(session.messages, session.calls, texts=self._texts))
        self._guards = Guards(session.messages, count=self._count, texts=self._texts)
        full = walk_arm(session, everything, count=self._count, clock=clock)
        self._full = [replace(step, shown=()) for step in full]

    def scores(self, grid: Grid, window: int, *, advance: Advance) -> Iterator[tuple[tuple[str, int, str], Score]]:
        """The score of each contestant at a window, by name, window and prices."""
        session = _at_window(self._session, window)
        for rival in grid.contestants:
            score = None
            for prices in grid.prices:
                if score is None or rival.arm is None:
                    score = self._score(self._walk(session, rival, prices.rates), window)
                    advance(len(session.calls))
                yield (rival.name, window, prices.name), score

    def _walk(self, session: RecordedSession, rival: Contestant, rates: Rates) -> Iterator[WalkedCall]:
        if rival.arm is not None:
            bodies = self._asked.calls
            return walk_arm(session, rival.arm.show, count=self._count, clock=self._clock, bodies=bodies)
        return walk_strategy(session, rival.strategy, rates=rates, clock=self._clock)

    def _score(self, steps: Iterable[WalkedCall], window: int) -> Score:
        judged = tuple(self._judged(step, call, window) for call, step in enumerate(steps))
        return Score(self._session.name, window, judged)

    def _judged(self, step: WalkedCall, call: int, window: int) -> Judged:
        exceeds = self._full[call].tokens > window
        for shown, said in step.reshaped:
            self._guards.same(shown, said)
        return Judged(
            # What a step shows is not needed any more, and adds up to far more than the session.
            replace(step, shown=(), reshaped=(), body=b""),
            self._full[call].tokens,
            self._full[call].usage or Usage(),
            self._found(step.shown, call) if exceeds else RecalledValues(),
            self._guards.kept(step.shown, self._session.calls[call]) if step.usage else None,
            tuple(self._asked.scored(call, step.body, weight=self._weight, full=self._full)),
        )

    def _found(self, shown: Sequence[Message], call: int) -> RecalledValues:
        session = self._session
        place = f"{session.plan.settings.tenant}/{session.name}"
        entries = session.recording.messages[: session.raw_calls[call]]
        reachable = follow_addresses(shown, entries, texts=self._texts, place=place)
        return look_for(self._values[call], shown, texts=self._texts, reachable=reachable)


def _at_window(session: RecordedSession, window: int) -> RecordedSession:
    settings = session.plan.settings
    reserve = settings.budget.output_reserve_tokens
    budget = allocate(settings.card, window_tokens=window, output_reserve_tokens=reserve, margin_tokens=0)
    return replace(session, plan=replace(session.plan, settings=replace(settings, budget=budget)))
