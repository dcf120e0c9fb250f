"""Add up walks of sessions: the figures of one contestant at one window and one set of prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lading.economics import Rates, Usage
from lading.evaluate.evidence import Evidence, Scored, sum_evidence
from lading.evaluate.guards import Kept
from lading.evaluate.tally import quantile
from lading.evaluate.value_recall import RecalledValues
from lading.evaluate.walks import WalkedCall

HARMED = 1.03
"""A session that costs more than this times append-only was harmed."""
LEAST_RUN_SHARE = 0.2
"""Of the window: a request whose newest unbroken run is shorter in the median keeps too little to count."""
_SHOWN_INVENTED = 20


class Judged(Struct, frozen=True):
    """One call as it was walked, without what it showed, and what was found in that."""

    step: WalkedCall
    full_tokens: int
    """Of the request with everything in it."""
    full_usage: Usage
    found: RecalledValues
    kept: Kept | None
    """None where there is no request."""
    scored: tuple[Scored, ...] = ()


class Score(Struct, frozen=True):
    """One session walked by one contestant at one window."""

    session: str
    window_tokens: int
    judged: tuple[Judged, ...]

    def cost(self, rates: Rates) -> float:
        """The input bill in base input tokens, calls of its own included; a call without a request is charged as
        one with everything in it."""
        bills = ((call.step.usage or call.full_usage, call.step.own) for call in self.judged)
        return sum(usage.cost(rates) + own.cost(rates) for usage, own in bills)

    def full_cost(self, rates: Rates) -> float:
        """The bill of append-only."""
        return sum(call.full_usage.cost(rates) for call in self.judged)

    @property
    def exceeds(self) -> bool:
        """Whether any request with everything in it is over the window."""
        return any(call.full_tokens > self.window_tokens for call in self.judged)


class Tokens(Struct, frozen=True):
    """Of the requests, tools included."""

    mean: float
    p95: int
    peak: int


class Cost(Struct, frozen=True):
    """Input cost relative to unbounded append-only at the same prices."""

    ratio: float
    worst: float
    """Of one session."""
    worst_session: str
    harmed: float
    """Share of the sessions above 1.03."""
    within: float | None
    """Of the sessions of which every full history fits the window; None where there is none."""
    over: float | None
    """Of the others."""


class EditCounts(Struct, frozen=True):
    """Edits that the window forced, and edits made to save. An arm makes none: it shows what it likes."""

    forced: int
    voluntary: int


class Recall(Struct, frozen=True):
    """Shares of the values that are there, over the calls of which the full history exceeds the window; None
    where such calls use no value, or no far one."""

    values: int
    far_values: int
    far_steps: int
    present: float | None
    bound: float | None
    available: float | None
    far_present: float | None
    far_bound: float | None
    far_available: float | None
    far_bound_steps: float | None


class GuardFigures(Struct, frozen=True):
    """The guards, added up. Runs and generated shares are over the calls of which the full history exceeds
    the window; None where there is none."""

    head_whole: float | None
    newest_whole: float | None
    """Of the calls with unread results."""
    run_p10_tokens: int | None
    run_median_tokens: int | None
    generated_share: float | None
    """Mean, of the window."""
    generated_peak: float | None
    invented: int
    """Different values, by session."""
    invented_values: tuple[str, ...]
    """The first of them."""
    violations: dict[str, int]
    """How often each rule was broken, by calls."""
    over_window: int
    """Requests larger than the window."""
    errors: int
    """Calls without a request."""


class ContestantScore(Struct, frozen=True):
    """The figures of one contestant at one window and one set of prices."""

    strategy: str
    window_tokens: int
    prices: str
    calls: int
    exceeding_calls: int
    """Calls of which the full history exceeds the window."""
    tokens: Tokens
    cost: Cost
    edits: EditCounts
    evidence: Evidence | None
    """None where no probe asks for any."""
    recall: Recall
    guards: GuardFigures
    ms_per_call: float
    """Spent on deciding and building a request; a strategy's includes admission and the receipt."""


def group_by_window(standings: Iterable[ContestantScore]) -> list[list[ContestantScore]]:
    """The standings at each window, in order."""
    found: dict[int, list[ContestantScore]] = {}
    for item in standings:
        found.setdefault(item.window_tokens, []).append(item)
    return list(found.values())


def group_by_strategy(standings: Iterable[ContestantScore]) -> list[list[ContestantScore]]:
    """The standings of each contestant, in order."""
    found: dict[str, list[ContestantScore]] = {}
    for item in standings:
        found.setdefault(item.strategy, []).append(item)
    return list(found.values())


def find_lapses(found: ContestantScore) -> tuple[str, ...]:
    """Which guards a contestant does not hold, in words; with any, its cost is no figure to compare with."""
    guards, least = found.guards, LEAST_RUN_SHARE * found.window_tokens
    failed = {
        "breaks rules": bool(guards.violations),
        "over the window": guards.over_window > 0,
        "no request": guards.errors > 0,
        "start not whole": guards.head_whole is not None and guards.head_whole < 1,
        "invented values": guards.invented > 0,
        "short run": guards.run_median_tokens is not None and guards.run_median_tokens < least,
    }
    return tuple(name for name, is_so in failed.items() if is_so)


def sum_scores(scores: Sequence[Score], rates: Rates, *, name: tuple[str, int, str]) -> ContestantScore:
    """The figures over sessions; ``name``: the contestant, the window and the prices."""
    window = name[1]
    calls = [call for score in scores for call in score.judged]
    exceeding = [call for call in calls if call.full_tokens > window]
    tokens = sorted(call.step.tokens for call in calls if call.step.usage)
    seconds = sum(call.step.seconds for call in calls)
    return ContestantScore(
        *name,
        calls=len(calls),
        exceeding_calls=len(exceeding),
        tokens=Tokens(_mean(tokens) or 0.0, quantile(tokens, 0.95), tokens[-1] if tokens else 0),
        cost=_cost(scores, rates),
        edits=EditCounts(
            sum(call.step.forced_edits for call in calls), sum(call.step.voluntary_edits for call in calls)
        ),
        evidence=sum_evidence([item for call in calls for item in call.scored]),
        recall=_recall(sum((call.found for call in exceeding), RecalledValues())),
        guards=_guards(scores, exceeding, window),
        ms_per_call=1000 * seconds / len(calls) if calls else 0.0,
    )


def _cost(scores: Sequence[Score], rates: Rates) -> Cost:
    bills = [(score, score.cost(rates), score.full_cost(rates)) for score in scores if score.judged]
    ratios = [(_ratio(cost, full), score.session) for score, cost, full in bills]
    worst, session = max(ratios, default=(1.0, ""), key=lambda pair: pair[0])
    parts: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for score, cost, full in bills:
        parts[score.exceeds].append((cost, full))
    return Cost(
        ratio=_added([*parts[False], *parts[True]]) or 1.0,
        worst=worst,
        worst_session=session,
        harmed=_mean([ratio > HARMED for ratio, _ in ratios]) or 0.0,
        within=_added(parts[False]),
        over=_added(parts[True]),
    )


def _added(bills: Sequence[tuple[float, float]]) -> float | None:
    """Costs as a share of full costs."""
    return _ratio(sum(cost for cost, _ in bills), sum(full for _, full in bills)) if bills else None


def _ratio(cost: float, full: float) -> float:
    return cost / full if full else 1.0


def _recall(found: RecalledValues) -> Recall:
    return Recall(
        values=found.values,
        far_values=found.far_values,
        far_steps=found.far_steps,
        present=_share(found.present, found.values),
        bound=_share(found.bound, found.values),
        available=_share(found.available, found.values),
        far_present=_share(found.far_present, found.far_values),
        far_bound=_share(found.far_bound, found.far_values),
        far_available=_share(found.far_available, found.far_values),
        far_bound_steps=_share(found.far_bound_steps, found.far_steps),
    )


def _guards(scores: Sequence[Score], exceeding: Sequence[Judged], window: int) -> GuardFigures:
    calls = [call for score in scores for call in score.judged]
    kept = [call.kept for call in calls if call.kept]
    long = [call.kept for call in exceeding if call.kept]
    runs = sorted(item.run_tokens for item in long)
    generated = [item.generated_tokens / window for item in long]
    invented = list(dict.fromkeys((score.session, value) for score in scores for value in _invented(score)))
    return GuardFigures(
        head_whole=_mean([item.head_whole for item in kept]),
        newest_whole=_mean([item.newest_whole for item in kept if item.newest_whole is not None]),
        run_p10_tokens=quantile(runs, 0.1) if runs else None,
        run_median_tokens=quantile(runs, 0.5) if runs else None,
        generated_share=_mean(generated),
        generated_peak=max(generated, default=None),
        invented=len(invented),
        invented_values=tuple(value for _, value in invented[:_SHOWN_INVENTED]),
        violations=dict(sorted(Counter(rule for call in calls for rule in call.step.broken_rules).items())),
        over_window=sum(call.step.tokens > window for call in calls),
        errors=len(calls) - len(kept),
    )


def _invented(score: Score) -> list[str]:
    return [value for call in score.judged if call.kept for value in call.kept.invented]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
