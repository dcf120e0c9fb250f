"""Sum up runs of sessions: the figures of one contestant at one window and one set of prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lading.economics import Rates, Usage
from lading.evaluate.evidence import EvidenceScore, ProbeScore, sum_evidence
from lading.evaluate.guards import GuardMeasures
from lading.evaluate.session_runs import RunCall
from lading.evaluate.tally import quantile
from lading.evaluate.value_recall import RecalledValues

HARMED = 1.03
"""A session that costs more than this multiple of append-only counts as harmed."""
LEAST_RUN_SHARE = 0.2
"""Share of the window; a contestant with a shorter median run of newest messages fails a guard."""
_SHOWN_INVENTED = 20


class CallScore(Struct, frozen=True):
    """Figures of one call: its run without the messages, recalled values, guards and probes."""

    step: RunCall
    full_tokens: int
    """Tokens of the append-only request."""
    full_usage: Usage
    found: RecalledValues
    kept: GuardMeasures | None
    """None without a request."""
    scored: tuple[ProbeScore, ...] = ()


class SessionScore(Struct, frozen=True):
    """Calls of one session, run by one contestant at one window."""

    session: str
    window_tokens: int
    judged: tuple[CallScore, ...]

    def cost(self, rates: Rates) -> float:
        """Compute the input cost in base input tokens, including the contestant's own model calls. A call without a
        request is charged as append-only."""
        usages = (call.step.usage or call.full_usage for call in self.judged)
        return sum(usage.cost(rates) for usage in usages) + self.own_cost(rates)

    def own_cost(self, rates: Rates) -> float:
        """Compute the cost of the contestant's own model calls."""
        return sum(call.step.own.cost(rates) for call in self.judged)

    def full_cost(self, rates: Rates) -> float:
        """Compute the input cost of append-only."""
        return sum(call.full_usage.cost(rates) for call in self.judged)

    @property
    def exceeds(self) -> bool:
        """An append-only request is larger than the window."""
        return any(call.full_tokens > self.window_tokens for call in self.judged)


class RequestTokens(Struct, frozen=True):
    """Sizes of requests in tokens, tools included."""

    mean: float
    p95: int
    peak: int


class CostFigures(Struct, frozen=True):
    """Input cost relative to unbounded append-only at the same prices."""

    ratio: float
    worst: float
    """Highest ratio of one session."""
    worst_session: str
    harmed: float
    """Share of the sessions above ``HARMED``."""
    within: float | None
    """Ratio of the sessions whose full history fits the window at every call; None where there is none."""
    over: float | None
    """Ratio of the other sessions."""
    own: float
    """Part of ``ratio``: the contestant's own model calls."""


class EditCounts(Struct, frozen=True):
    """Numbers of forced and voluntary edits; arms make none."""

    forced: int
    voluntary: int


class RecallShares(Struct, frozen=True):
    """Shares of recalled values, over the calls whose full history exceeds the window; None where such calls use no
    value, or no far one."""

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
    """Guards over all calls. Runs and generated shares are over the calls whose full history exceeds the window;
    None where there is none."""

    head_whole: float | None
    newest_whole: float | None
    """Share of the calls with unread results."""
    run_p10_tokens: int | None
    run_median_tokens: int | None
    generated_share: float | None
    """Mean share of the window."""
    generated_peak: float | None
    invented: int
    """Number of different invented values, per session."""
    invented_values: tuple[str, ...]
    """The first invented values."""
    violations: dict[str, int]
    """Calls that broke each rule."""
    over_window: int
    """Number of requests larger than the window."""
    errors: int
    """Number of calls without a request."""


class ContestantScore(Struct, frozen=True):
    """The figures of one contestant at one window and one set of prices."""

    strategy: str
    window_tokens: int
    prices: str
    calls: int
    exceeding_calls: int
    """Calls whose full history exceeds the window."""
    tokens: RequestTokens
    cost: CostFigures
    edits: EditCounts
    evidence: EvidenceScore | None
    """None without probes."""
    recall: RecallShares
    guards: GuardFigures
    ms_per_call: float
    """Milliseconds to decide and build a request; for strategies including admission and the manifest."""


def group_by_window(scores: Iterable[ContestantScore]) -> list[list[ContestantScore]]:
    """Group scores by window, in order."""
    found: dict[int, list[ContestantScore]] = {}
    for item in scores:
        found.setdefault(item.window_tokens, []).append(item)
    return list(found.values())


def group_by_strategy(scores: Iterable[ContestantScore]) -> list[list[ContestantScore]]:
    """Group scores by contestant, in order."""
    found: dict[str, list[ContestantScore]] = {}
    for item in scores:
        found.setdefault(item.strategy, []).append(item)
    return list(found.values())


def list_failed_guards(found: ContestantScore) -> tuple[str, ...]:
    """List the guards that a contestant fails, in words; if there are any, its cost is not comparable."""
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


def sum_scores(scores: Sequence[SessionScore], rates: Rates, *, name: tuple[str, int, str]) -> ContestantScore:
    """Sum up the scores of sessions; ``name``: the contestant, the window and the prices."""
    window = name[1]
    calls = [call for score in scores for call in score.judged]
    exceeding = [call for call in calls if call.full_tokens > window]
    tokens = sorted(call.step.tokens for call in calls if call.step.usage)
    seconds = sum(call.step.seconds for call in calls)
    return ContestantScore(
        *name,
        calls=len(calls),
        exceeding_calls=len(exceeding),
        tokens=RequestTokens(_mean(tokens) or 0.0, quantile(tokens, 0.95), tokens[-1] if tokens else 0),
        cost=_sum_cost(scores, rates),
        edits=EditCounts(
            sum(call.step.forced_edits for call in calls), sum(call.step.voluntary_edits for call in calls)
        ),
        evidence=sum_evidence([item for call in calls for item in call.scored]),
        recall=_build_recall(sum((call.found for call in exceeding), RecalledValues())),
        guards=_sum_guards(scores, exceeding, window),
        ms_per_call=1000 * seconds / len(calls) if calls else 0.0,
    )


def _sum_cost(scores: Sequence[SessionScore], rates: Rates) -> CostFigures:
    bills = [(score, score.cost(rates), score.full_cost(rates)) for score in scores if score.judged]
    ratios = [(_ratio(cost, full), score.session) for score, cost, full in bills]
    worst, session = max(ratios, default=(1.0, ""), key=lambda pair: pair[0])
    parts: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for score, cost, full in bills:
        parts[score.exceeds].append((cost, full))
    return CostFigures(
        ratio=_sum_ratio([*parts[False], *parts[True]]) or 1.0,
        worst=worst,
        worst_session=session,
        harmed=_mean([ratio > HARMED for ratio, _ in ratios]) or 0.0,
        within=_sum_ratio(parts[False]),
        over=_sum_ratio(parts[True]),
        own=_sum_ratio([(score.own_cost(rates), full) for score, _, full in bills]) or 0.0,
    )


def _sum_ratio(bills: Sequence[tuple[float, float]]) -> float | None:
    """Return costs as a share of full costs; None for no bills."""
    return _ratio(sum(cost for cost, _ in bills), sum(full for _, full in bills)) if bills else None


def _ratio(cost: float, full: float) -> float:
    return cost / full if full else 1.0


def _build_recall(found: RecalledValues) -> RecallShares:
    return RecallShares(
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


def _sum_guards(scores: Sequence[SessionScore], exceeding: Sequence[CallScore], window: int) -> GuardFigures:
    calls = [call for score in scores for call in score.judged]
    kept = [call.kept for call in calls if call.kept]
    long = [call.kept for call in exceeding if call.kept]
    runs = sorted(item.run_tokens for item in long)
    generated = [item.generated_tokens / window for item in long]
    invented = list(
        dict.fromkeys(
            (score.session, value)
            for score in scores
            for call in score.judged
            if call.kept
            for value in call.kept.invented
        )
    )
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


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
