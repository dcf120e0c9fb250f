"""Compare a recorded bill with simulated bills of the same calls, and split the difference into priced parts.

The recording holds what a provider billed for requests that were not kept. The simulation bills requests built from
the recorded messages, with Lading's token counts and a cache that follows the model card. Both are priced alike, so
they differ in tokens and caching only. The parts add up:

1. the provider counts more or fewer tokens for the same text;
2. every request held something that was not recorded, such as a system prompt and tool schemas;
3. the requests were not the whole history: shortened, or with other content;
4. the cache held less than the previous request, or more.

1 and 2 are estimated by a line fitted to counted and billed tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.economics import Usage, add_fields
from lading.evaluate import billing
from lading.evaluate.prices import Price, find_price
from lading.evaluate.replay import ReplayedCall, ReplayPlan
from lading.evaluate.simulated import bill_request
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.sources import Recording
from lading.sources.recording import RecordedUsage
from lading.tokens.affine import NO_SUMS, Observation, add_observations, fit

YARDSTICK = "append-only"
"""Name of the simulated bill that the recorded one is compared with: everything sent, in an unlimited window."""

_SHORTENED = 0.9
"""A request below this share of the previous one was shortened; the line is fitted to the calls before it."""
_NOISE, _NOISE_TOKENS = 0.04, 10.0
"""Expected deviation of a billed size from the line: a share of it, plus tokens."""

Part: TypeAlias = Literal[
    "counts", "not recorded", "other requests", "read before it was sent", "missed", "otherwise cached"
]


class BillRow(Struct, frozen=True):
    """The input of one bill."""

    input: Usage = Usage()
    cost: float = 0.0
    """Cost of the input, in the unit of the comparison."""
    scaled_cost: float = 0.0
    """The cost with the provider's token counts and the unrecorded part of each request."""

    def __add__(self, other: BillRow) -> BillRow:
        return add_fields(self, other)


class CostPart(Struct, frozen=True):
    """A part of the recorded input cost in excess of the simulated append-only cost; negative: less."""

    part: Part
    cause: str = ""
    """For misses, the cause as in ``billing.Miss``; for unrecorded content, a description of it where known."""
    tokens: int = 0
    """Additional input tokens; for caching, tokens billed at another price."""
    cost: float = 0.0
    calls: int = 0
    """Number of calls it occurs in."""
    turn_starts: int = 0
    """Misses at the first call of a turn."""
    nothing_read: int = 0
    """Misses that read nothing from the cache, not even the start of the request."""

    def __add__(self, other: CostPart) -> CostPart:
        return replace(add_fields(self, other), part=self.part, cause=self.cause)


class BillComparison(Struct, frozen=True):
    """Recorded and simulated bills of the same calls of one session, or of several added up."""

    sessions: int
    calls: int
    """Calls both billed and replayed."""
    unbilled_calls: int
    """Calls replayed, but not billed."""
    unreplayed_bills: int
    is_priced: bool
    """Costs are in USD; otherwise the model has no known price, and costs are in base input tokens."""
    recorded: BillRow
    """The recorded bill, at the prices of the cards."""
    simulated: dict[str, BillRow]
    """Bills of everything sent (``YARDSTICK``) and of each strategy, by name."""
    scaled_tokens: int
    """Tokens of the append-only requests as the provider would count them, without unrecorded content."""
    unrecorded_tokens: int
    """Tokens of unrecorded content over all requests."""
    output: tuple[int, float]
    """Tokens and cost of the recorded output, which is the same on all sides."""
    paid: tuple[int, float, float]
    """Calls with a recorded cost: their number, that cost, and their cost at the prices of the cards."""
    differences: tuple[CostPart, ...]

    @property
    def factor(self) -> float:
        """Provider tokens for each token counted here."""
        counted = self.simulated[YARDSTICK].input.tokens
        return self.scaled_tokens / counted if counted else 1.0


def compare_bills(
    recording: Recording, plan: ReplayPlan, *, replays: Mapping[str, Sequence[ReplayedCall]]
) -> BillComparison | None:
    """Compare the bills of a recording and of its replays, by strategy; the plans differ in the strategy only.
    Returns None where no replayed call was billed."""
    bills = {bill.message_index: bill for bill in recording.usage}
    replayed = next(iter(replays.values()), ())
    places = [at for at, call in enumerate(replayed) if call.upto in bills]
    if not places:
        return None
    matched = [bills[replayed[at].upto] for at in places]
    cards = _find_cards(recording, plan)
    prices, is_priced = _find_prices(matched, cards, plan)
    counted = [replayed[at].append_only for at in places]
    recorded = [billing.read_input(bill) for bill in matched]
    factor, constant = _fit_line([usage.tokens for usage in counted], [usage.tokens for usage in recorded])
    held = [1.0, *(_measure_cached_share(one, two, plan.min_prefix_tokens) for one, two in pairwise(counted))]
    unrecorded = [_bill_unrecorded(round(constant), is_first=not (at and share)) for at, share in enumerate(held)]
    extra = _sum_cost(unrecorded, prices)

    def row(usages: Sequence[Usage]) -> BillRow:
        cost = _sum_cost(usages, prices)
        return BillRow(_sum_usage(usages), cost, factor * cost + extra)

    indexes = [bill.message_index for bill in matched]
    warm = _bill_warm(recorded, held, least=plan.min_prefix_tokens)
    simulated = {YARDSTICK: row(counted)}
    for name, calls in replays.items():
        simulated.setdefault(name, row([calls[at].billed for at in places]))
    cost = _sum_cost(recorded, prices)
    stated = [(bill, price) for bill, price in zip(matched, prices, strict=True) if bill.cost_usd is not None]
    return BillComparison(
        sessions=1,
        calls=len(places),
        unbilled_calls=len(replayed) - len(places),
        unreplayed_bills=len(recording.usage) - len(places),
        is_priced=is_priced,
        recorded=BillRow(_sum_usage(recorded), cost, cost),
        simulated=simulated,
        scaled_tokens=round(factor * _sum_usage(counted).tokens),
        unrecorded_tokens=_sum_usage(unrecorded).tokens,
        output=(
            sum(bill.output_tokens for bill in matched),
            sum(price.output(bill.output_tokens) for bill, price in zip(matched, prices, strict=True)),
        ),
        paid=(
            len(stated),
            sum(bill.cost_usd or 0.0 for bill, _ in stated),
            sum(price.input(billing.read_input(bill)) + price.output(bill.output_tokens) for bill, price in stated),
        ),
        differences=(
            *_explain_requests(
                (counted, unrecorded, warm), prices, factor=factor, missing=_describe_unrecorded(recording)
            ),
            *_explain_caching(
                (warm, recorded), prices, misses=_find_misses(recording, plan, cards), indexes=indexes
            ),
        ),
    )


def add_bills(found: Iterable[BillComparison | None]) -> BillComparison | None:
    """Add comparisons up; if any is priced in USD, only those."""
    items = [item for item in found if item is not None]
    items = [item for item in items if item.is_priced] or items
    if not items:
        return None
    merged: dict[tuple[Part, str], CostPart] = {}
    for part in (part for item in items for part in item.differences):
        key = (part.part, part.cause)
        merged[key] = merged[key] + part if key in merged else part
    return BillComparison(
        sessions=sum(item.sessions for item in items),
        calls=sum(item.calls for item in items),
        unbilled_calls=sum(item.unbilled_calls for item in items),
        unreplayed_bills=sum(item.unreplayed_bills for item in items),
        is_priced=items[0].is_priced,
        recorded=sum((item.recorded for item in items), BillRow()),
        simulated={name: sum((item.simulated[name] for item in items), BillRow()) for name in items[0].simulated},
        scaled_tokens=sum(item.scaled_tokens for item in items),
        unrecorded_tokens=sum(item.unrecorded_tokens for item in items),
        output=(sum(item.output[0] for item in items), sum(item.output[1] for item in items)),
        paid=(
            sum(item.paid[0] for item in items),
            sum(item.paid[1] for item in items),
            sum(item.paid[2] for item in items),
        ),
        differences=tuple(merged.values()),
    )


def describe_part(part: CostPart, found: BillComparison) -> str:
    """Describe a part of the difference in words."""
    match part.part:
        case "counts":
            return f"the provider counts {found.factor:.3f} tokens for one counted here"
        case "not recorded":
            what = part.cause or "framing by the provider"
            return f"about {part.tokens / part.calls:,.0f} tokens in each request that were not recorded: {what}"
        case "other requests":
            return "requests that were not the whole history so far"
        case "read before it was sent":
            return "read from the cache though this session had not sent it: others had"
        case "missed":
            return f"cache missed: {billing.CAUSES.get(part.cause, part.cause)}{_describe_places(part)}"
        case "otherwise cached":
            return "smaller misses, and ends that were not written to the cache"


def _describe_places(part: CostPart) -> str:
    places = {"at the first call of a turn": part.turn_starts, "reading nothing at all": part.nothing_read}
    words = [f"{'all' if n == part.calls else f'{n:,}'} {place}" for place, n in places.items() if n]
    return f" ({', '.join(words)})" if words else ""


def _explain_requests(
    bills: tuple[Sequence[Usage], Sequence[Usage], Sequence[Usage]],
    prices: Sequence[Price],
    *,
    factor: float,
    missing: str,
) -> Iterator[CostPart]:
    """Explain the difference of the requests; the cache is assumed to hold the previous one."""
    counted = bills[0]
    tokens, held, sent = (_sum_usage(usages).tokens for usages in bills)
    base, constant, kept = (_sum_cost(usages, prices) for usages in bills)
    calls, more = len(counted), round((factor - 1) * tokens)
    yield CostPart("counts", "", more, (factor - 1) * base, calls)
    yield CostPart("not recorded", missing, held, constant, calls)
    yield CostPart("other requests", "", sent - tokens - more - held, kept - factor * base - constant, calls)


def _explain_caching(
    bills: tuple[Sequence[Usage], Sequence[Usage]],
    prices: Sequence[Price],
    *,
    misses: Mapping[int, tuple[billing.Miss, bool]],
    indexes: Sequence[int],
) -> Iterator[CostPart]:
    """Explain the difference between that assumed cache and the real one. ``indexes``: of the calls' replies."""
    warm, recorded = bills
    early = [max(was.read_tokens - had.read_tokens, 0) for had, was in zip(warm, recorded, strict=True)]
    saved = -sum(price.rewrite(tokens) for price, tokens in zip(prices, early, strict=True))
    yield CostPart("read before it was sent", "", sum(early), saved, sum(map(bool, early)))
    groups: dict[str, CostPart] = {}
    for had, price, index in zip(warm, prices, indexes, strict=True):
        # The simulated cache missed these tokens too, so they make no difference.
        if index not in misses or had.read_tokens <= misses[index][0].read_tokens:
            continue
        miss, is_turn_start = misses[index]
        tokens = min(miss.rewritten_tokens, had.read_tokens - miss.read_tokens)
        cost, nothing = price.rewrite(tokens), int(not miss.read_tokens)
        found = CostPart("missed", miss.cause, tokens, cost, 1, int(is_turn_start), nothing)
        groups[miss.cause] = groups[miss.cause] + found if miss.cause in groups else found
    yield from sorted(groups.values(), key=lambda group: -group.cost)
    known = saved + sum(group.cost for group in groups.values())
    rest = _sum_cost(recorded, prices) - _sum_cost(warm, prices) - known
    yield CostPart("otherwise cached", "", 0, rest, len(recorded))


def _fit_line(counted: Sequence[int], billed: Sequence[int]) -> tuple[float, float]:
    """Fit a line through counted and billed tokens; return the factor by which the sums agree, and its constant."""
    until = next((at for at, (one, two) in enumerate(pairwise(billed), 1) if two < _SHORTENED * one), len(billed))
    observations = [
        Observation((float(tokens), 0.0, 1.0), float(size), _NOISE * size + _NOISE_TOKENS)
        for tokens, size in zip(counted[:until], billed[:until], strict=True)
    ]
    factors = fit(add_observations(NO_SUMS, observations, older=1.0))
    constant = min(factors.constant, min(billed))
    seen = sum(counted[:until])
    return (sum(billed[:until]) - constant * until) / seen if seen else 1.0, constant


def _bill_unrecorded(tokens: int, *, is_first: bool) -> Usage:
    """Bill the unrecorded tokens of a request: they are at its start, so written once and then read."""
    return Usage(written_tokens=tokens) if is_first else Usage(read_tokens=tokens)


def _describe_unrecorded(recording: Recording) -> str:
    has_system = any(message.role == "system" for message in recording.messages)
    missing = [] if has_system else ["system prompt"]
    return " and ".join(missing if recording.tools_recorded else [*missing, "tool schemas"])


def _measure_cached_share(before: Usage, usage: Usage, least: int) -> float:
    """Return the share of an append-only request that the next one reads from the cache: 1, unless the simulated
    cache had expired or the system messages had changed."""
    return min(usage.read_tokens / before.tokens, 1.0) if before.tokens >= max(least, 1) else 1.0


def _find_cards(recording: Recording, plan: ReplayPlan) -> Mapping[str, Card]:
    """Find the card of each billed model; for the recording's own model, the plan's, which callers may override."""
    own = {"", recording.model}
    return {
        bill.model: plan.settings.card if bill.model in own else find_card(bill.model)[0]
        for bill in recording.usage
    }


def _find_prices(
    bills: Sequence[RecordedUsage], cards: Mapping[str, Card], plan: ReplayPlan
) -> tuple[list[Price], bool]:
    own = plan.settings.card
    found = [
        find_price(cards[bill.model], plan.settings.rates if cards[bill.model] is own else None) for bill in bills
    ]
    known = [price for price in found if price is not None]
    if len(known) == len(found):
        return known, True
    return [Price(plan.settings.rates, 1.0, 0.0)] * len(bills), False


def _find_misses(
    recording: Recording, plan: ReplayPlan, cards: Mapping[str, Card]
) -> dict[int, tuple[billing.Miss, bool]]:
    """Find the misses by index of the reply, each with a flag: the reply answers a user message."""
    found = billing.sum_bills(recording, plan, card_of=lambda model: cards[model])
    roles = dict(zip(recording.raw_indices, ("", *(message.role for message in recording.messages)), strict=False))
    misses = found.misses if found else ()
    return {miss.message_index: (miss, roles.get(miss.message_index) == "user") for miss in misses}


def _bill_warm(recorded: Sequence[Usage], held: Sequence[float], *, least: int) -> list[Usage]:
    """Bill the recorded requests with a cache that holds the share ``held`` of each previous request."""
    sizes = [usage.tokens for usage in recorded]
    befores = [round(share * before) for share, before in zip(held, (0, *sizes), strict=False)]
    return [bill_request(size, min(size, before), least=least) for size, before in zip(sizes, befores, strict=True)]


def _sum_cost(usages: Sequence[Usage], prices: Sequence[Price]) -> float:
    return sum(price.input(usage) for usage, price in zip(usages, prices, strict=True))


def _sum_usage(usages: Iterable[Usage]) -> Usage:
    return sum(usages, Usage())
