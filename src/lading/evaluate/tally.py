"""Sum up the calls of a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lading.economics import OwnCalls, add_fields
from lading.errors import WindowExceeded
from lading.evaluate.prices import Price, find_price
from lading.evaluate.replay import ReplayedCall, ReplayPlan
from lading.events import Repaired
from lading.history.log import Edit
from lading.request.manifest import Decision


class TypedError(Struct, frozen=True):
    """A call for which no request could be built."""

    session: str
    call: int
    upto: int
    error: str
    layer: str
    text: str


class EditTotals(Struct, frozen=True):
    """Forced and voluntary edits."""

    forced: int
    voluntary: int
    forced_tokens: int
    """Tokens removed because the request would not have fit otherwise."""
    voluntary_tokens: int
    """Tokens removed beyond that, by any edit."""

    def __add__(self, other: EditTotals) -> EditTotals:
        return add_fields(self, other)


class RestoreCost(Struct, frozen=True):
    """Cost of offering the tool ``restore``. In a replay no model calls it."""

    requests: int
    """Requests that offer it."""
    tokens_per_request: float
    cost_share: float
    """Share of its schema in the input cost of all calls."""


class Tally(Struct, frozen=True):
    """Figures of a replay; token figures are over the calls that have a request."""

    calls: int
    tokens_mean: float
    tokens_p95: int
    tokens_peak: int
    append_only_share: float
    """Tokens of the requests relative to everything sent, over the same calls."""
    cost_ratio: float
    """Input cost, compaction's own model calls included, relative to everything sent; typed errors are charged
    alike in both."""
    edits: EditTotals
    repairs: dict[str, int]
    """Number of repairs by rule of ``lading.history.repair``."""
    violations: dict[str, int]
    """Calls that broke each rule."""
    typed_errors: tuple[TypedError, ...]
    restore: RestoreCost | None = None
    """None where no request offers the tool."""
    own: OwnCalls | None = None
    """Compaction's own model calls; None where there were none."""


class StrategyTally(Struct, frozen=True):
    """Figures of one strategy over all sessions."""

    strategy: str
    settings: dict[str, Any]
    """Settings; a list where they differ between sessions."""
    total: Tally
    sessions: dict[str, Tally]


def tally_strategy(
    strategy: str, replays: Mapping[str, tuple[ReplayPlan, Sequence[ReplayedCall]]]
) -> StrategyTally:
    """Sum up calls by session and over all; each session is priced at its own model's price."""
    plans = {session: plan for session, (plan, _) in replays.items()}
    prices = _find_prices(plans)
    priced = {session: [(call, prices[session]) for call in calls] for session, (_, calls) in replays.items()}
    total = tally([pair for pairs in priced.values() for pair in pairs])
    sessions = {session: tally(pairs) for session, pairs in priced.items()}
    return StrategyTally(strategy, _merge_settings(plans), total, sessions)


def tally(priced: Sequence[tuple[ReplayedCall, Price]]) -> Tally:
    """Sum up calls, each at its session's price; all prices are in one unit."""
    calls = [call for call, _ in priced]
    sent = [call for call in calls if call.pack is not None]
    tokens = sorted(call.pack.tokens for call in sent if call.pack)
    events = [event for call in sent if call.pack for event in call.pack.events]
    edits = [edit for call in calls for edit in call.edits]
    own = [(used, price) for call, price in priced if (used := call.pack and call.pack.manifest.sent.own)]
    billed = sum(price.input(call.billed) for call, price in priced)
    billed += sum(used.cost * price.base_usd for used, price in own)
    full = sum(price.input(call.append_only) for call, price in priced)
    full_tokens = sum(call.append_only_tokens for call in sent)
    return Tally(
        calls=len(calls),
        tokens_mean=sum(tokens) / len(tokens) if tokens else 0.0,
        tokens_p95=quantile(tokens, 0.95),
        tokens_peak=tokens[-1] if tokens else 0,
        append_only_share=sum(tokens) / full_tokens if full_tokens else 1.0,
        cost_ratio=billed / full if full else 1.0,
        edits=count_edits(edits),
        repairs=dict(Counter(event.rule for event in events if isinstance(event, Repaired))),
        violations=dict(
            Counter(rule for call in sent if call.pack for rule in {item.rule for item in call.pack.violations})
        ),
        typed_errors=tuple(_describe_error(call) for call in calls if call.error is not None),
        restore=_sum_restore_cost(priced, billed),
        own=sum((used for used, _ in own), OwnCalls()) if own else None,
    )


def count_edits(edits: Sequence[Edit | Decision]) -> EditTotals:
    """Count forced and voluntary edits and the tokens they removed."""
    removed = sum(edit.tokens_before - edit.tokens_after for edit in edits)
    forced_tokens = sum(edit.forced_tokens for edit in edits)
    forced = sum(edit.forced_tokens > 0 for edit in edits)
    return EditTotals(forced, len(edits) - forced, forced_tokens, removed - forced_tokens)


def quantile(ordered: Sequence[int], share: float) -> int:
    """Return the value below which ``share`` of an ascending sequence lies (nearest rank); 0 for an empty one."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0


def describe_saving(cost_ratio: float) -> str:
    """Describe a cost as a headline, such as ``62 % cheaper than everything sent``."""
    percent = 100 * abs(1 - cost_ratio)
    if percent < 0.05:
        return "as expensive as everything sent"
    if cost_ratio > 1:
        return f"{percent:.{0 if percent >= 1 else 1}f} % more expensive than everything sent"
    return f"{min(percent, 99.9):.{0 if 1 <= percent < 99.5 else 1}f} % cheaper than everything sent"


def _sum_restore_cost(priced: Sequence[tuple[ReplayedCall, Price]], billed: float) -> RestoreCost | None:
    offering = [(call.restore, price) for call, price in priced if call.restore.tokens]
    if not offering:
        return None
    tokens = sum(usage.tokens for usage, _ in offering)
    cost = sum(price.input(usage) for usage, price in offering)
    return RestoreCost(len(offering), tokens / len(offering), cost / billed if billed else 0.0)


def _describe_error(call: ReplayedCall) -> TypedError:
    layer = call.error.layer if isinstance(call.error, WindowExceeded) else ""
    return TypedError(call.session, call.call, call.upto, type(call.error).__name__, layer, str(call.error))


def _find_prices(plans: Mapping[str, ReplayPlan]) -> dict[str, Price]:
    """Find the price of each session: in USD where all models have one, else relative to a base input token."""
    rates = {session: plan.settings.rates for session, plan in plans.items()}
    found = {session: find_price(plan.settings.card, rates[session]) for session, plan in plans.items()}
    in_usd = {session: price for session, price in found.items() if price and price.base_usd > 0}
    return in_usd if len(in_usd) == len(plans) else {name: Price(rates[name], 1.0, 1.0) for name in plans}


def _merge_settings(plans: Mapping[str, ReplayPlan]) -> dict[str, Any]:
    facts = [
        {
            "model": plan.settings.card.name,
            "wire": plan.settings.wire,
            "counter": plan.settings.meter.counter.name,
            "multiplier": plan.settings.meter.multiplier,
            "prices": f"{plan.settings.rates.read:g}/{plan.settings.rates.write:g}",
            "window": plan.settings.budget.window_tokens,
            "output_reserve": plan.settings.budget.output_reserve_tokens,
            "margin": plan.settings.budget.margin_tokens,
            "ttl_s": plan.settings.cache_ttl_s,
        }
        for plan in plans.values()
    ]
    values = {key: list(dict.fromkeys(fact[key] for fact in facts)) for key in (facts[0] if facts else ())}
    return {key: found[0] if len(found) == 1 else found for key, found in values.items()}
