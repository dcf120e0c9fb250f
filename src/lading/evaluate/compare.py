"""Compare strategies and arms on recorded sessions, at each window and each set of prices.

docs/reference/compare.md defines the measures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from lading.budget import allocate
from lading.compaction import OLD_NAMES, STRATEGIES, Strategy, When, name_of
from lading.compaction.priced import WITHOUT
from lading.economics import Rates, Usage
from lading.effects import Summarizer
from lading.errors import UnknownName
from lading.evaluate.arms import Arm
from lading.evaluate.baselines import ARMS, OTHER_NAMES
from lading.evaluate.evidence import weigh_words
from lading.evaluate.guards import Guards
from lading.evaluate.probes import Probe, SessionProbes
from lading.evaluate.scores import CallScore, ContestantScore, SessionScore, sum_scores
from lading.evaluate.session_runs import (
    Clock,
    RecordedSession,
    RunCall,
    make_counter,
    run_arm,
    run_strategy,
    show_everything,
)
from lading.evaluate.value_recall import MessageTexts, RecalledValues, find_values, follow_addresses, measure_recall
from lading.messages import Message
from lading.registry import lookup

Advance = Callable[[int], None]
"""Receives the number of calls just completed."""


class Contestant(Struct, frozen=True):
    """A strategy, run by the engine, or an arm."""

    name: str
    arm: Arm | None = None
    strategy: str | Strategy = ""
    """Strategy or its name, for the engine; empty for an arm."""
    summarizer: Summarizer | None = None
    """Answers the strategy's requests for summaries; None: its summaries are rule-based."""


class NamedRates(Struct, frozen=True):
    """A set of prices by a short name."""

    name: str
    rates: Rates


class Grid(Struct, frozen=True):
    """The contestants, windows and prices of a comparison."""

    contestants: tuple[Contestant, ...]
    windows: tuple[int, ...]
    """Windows in tokens."""
    prices: tuple[NamedRates, ...]

    @property
    def runs(self) -> int:
        """Maximum number of runs of each session."""
        strategies = sum(contestant.arm is None for contestant in self.contestants)
        arms = len(self.contestants) - strategies
        return 1 + len(self.windows) * (strategies * len(self.prices) + arms)


def find_contestant(name: str, *, when: When | None = None, verbatim: float | None = None) -> Contestant:
    """Find a strategy or an arm by name or dotted path; a strategy has precedence. The options apply where the
    strategy has them. Raises UnknownName, and InputError for invalid options."""
    table = {**ARMS, **WITHOUT, **STRATEGIES}
    name = OTHER_NAMES.get(name, name_of(name))
    found: object = lookup(table, name, kind="strategy", old=OLD_NAMES | OTHER_NAMES)
    if isinstance(found, Strategy):
        if found.with_options is not None and (when, verbatim) != (None, None):
            found = found.with_options(when, verbatim)
            return Contestant(found.name, strategy=found)
        # A strategy that changes no request runs faster without the engine.
        arm = None if found.changes_requests else Arm(name, show_everything)
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
    scores: dict[tuple[str, int, str], list[SessionScore]] = {}
    for session in sessions:
        scorer = _SessionScorer(session, clock, SessionProbes(session, probes), weight)
        advance(len(session.calls))
        for window in grid.windows:
            for key, score in scorer.score_contestants(grid, window, advance=advance):
                scores.setdefault(key, []).append(score)
    names = [contestant.name for contestant in grid.contestants]
    return [
        sum_scores(scores.get((name, window, prices.name), []), prices.rates, name=(name, window, prices.name))
        for window, name, prices in product(grid.windows, names, grid.prices)
    ]


class _SessionScorer:
    """Scores contestants on one session, with its values, guards and append-only run, which all of them share."""

    def __init__(
        self, session: RecordedSession, clock: Clock, probes: SessionProbes, weight: Mapping[str, float]
    ) -> None:
        self._session, self._clock, self._probes, self._weight = session, clock, probes, weight
        self._texts = MessageTexts()
        self._count = make_counter(session)
        self._values = list(find_values(session.messages, session.calls, texts=self._texts))
        self._guards = Guards(session.messages, count=self._count, texts=self._texts)
        full = run_arm(session, show_everything, count=self._count, clock=clock)
        self._full = [replace(step, shown=()) for step in full]

    def score_contestants(
        self, grid: Grid, window: int, *, advance: Advance
    ) -> Iterator[tuple[tuple[str, int, str], SessionScore]]:
        """Yield the score of each contestant at a window, by name, window and prices."""
        session = _set_window(self._session, window)
        for contestant in grid.contestants:
            score = None
            for prices in grid.prices:
                if score is None or contestant.arm is None:
                    score = self._score(self._run(session, contestant, prices.rates), window)
                    advance(len(session.calls))
                yield (contestant.name, window, prices.name), score

    def _run(self, session: RecordedSession, contestant: Contestant, rates: Rates) -> Iterator[RunCall]:
        if contestant.arm is not None:
            bodies = self._probes.calls
            return run_arm(session, contestant.arm.show, count=self._count, clock=self._clock, bodies=bodies)
        settings = replace(session.plan.settings, summarizer=contestant.summarizer)
        session = replace(session, plan=replace(session.plan, settings=settings))
        return run_strategy(session, contestant.strategy, rates=rates, clock=self._clock)

    def _score(self, steps: Iterable[RunCall], window: int) -> SessionScore:
        judged = tuple(self._score_call(step, call, window) for call, step in enumerate(steps))
        return SessionScore(self._session.name, window, judged)

    def _score_call(self, step: RunCall, call: int, window: int) -> CallScore:
        exceeds = self._full[call].tokens > window
        for shown, original in step.reshaped:
            self._guards.add_reshaped(shown, original)
        return CallScore(
            # The messages of all steps together are far larger than the session, and are not needed any more.
            replace(step, shown=(), reshaped=(), body=b""),
            self._full[call].tokens,
            self._full[call].usage or Usage(),
            self._measure_recall(step.shown, call) if exceeds else RecalledValues(),
            self._guards.measure(step.shown, self._session.calls[call]) if step.usage else None,
            tuple(self._probes.score(call, step.body, weight=self._weight, full=self._full)),
        )

    def _measure_recall(self, shown: Sequence[Message], call: int) -> RecalledValues:
        session = self._session
        place = f"{session.plan.settings.tenant}/{session.name}"
        entries = session.recording.messages[: session.raw_calls[call]]
        reachable = follow_addresses(shown, entries, texts=self._texts, place=place)
        return measure_recall(self._values[call], shown, texts=self._texts, reachable=reachable)


def _set_window(session: RecordedSession, window: int) -> RecordedSession:
    settings = session.plan.settings
    reserve = settings.budget.output_reserve_tokens
    budget = allocate(settings.card, window_tokens=window, output_reserve_tokens=reserve, margin_tokens=0)
    return replace(session, plan=replace(session.plan, settings=replace(settings, budget=budget)))
