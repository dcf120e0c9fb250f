"""A recorded bill beside simulated ones of the same calls, and what the difference is made of.

The recording says what a provider billed for requests nobody kept; the simulation bills requests built from what
was said, counted here, with a cache that works as the card says. Both are priced alike, so their difference is
one of tokens and of caching. It is taken apart step by step, each step priced, so that the parts add up:

1. the provider counts more or fewer tokens for the same text;
2. every request held something that was not recorded, such as a system prompt and tool schemas;
3. the requests were not the whole history: shortened, or with other things in them;
4. the cache held less than the request before, or more.

1 and 2 come from a line through counted and billed tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.economics import Usage, fieldwise
from lading.evaluate import billing
from lading.evaluate.prices import Price, find_price
from lading.evaluate.recorded import ReplayedCall, ReplayPlan
from lading.evaluate.simulated import bill_request
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.sources import Recording
from lading.sources.recording import Usage as Bill
from lading.tokens.affine import NOTHING, Observation, fitted, observed

YARDSTICK = "append-only"
"""Name of the simulated bill that the recorded one is compared with: everything is sent, no window ends."""

_SHORTENED = 0.9
"""A request below this share of the one before was cut: from there on the line does not hold."""
_NOISE, _NOISE_TOKENS = 0.04, 10.0
"""How far a billed size may be off the line: a share of it, and some tokens."""

Part: TypeAlias = Literal[
    "counts", "not recorded", "other requests", "read before it was sent", "missed", "otherwise cached"
]


class BillRow(Struct, frozen=True):
    """The input of one bill."""

    input: Usage = Usage()
    cost: float = 0.0
    """Of the input, in the unit of the comparison."""
    scaled_cost: float = 0.0
    """The same had the provider counted the requests, with what was not recorded in each."""

    def __add__(self, other: BillRow) -> BillRow:
        return fieldwise(self, other)


class CostPart(Struct, frozen=True):
    """A part of what the recorded input cost beyond the simulated append-only one; negative: less."""

    part: Part
    cause: str = ""
    """Of misses: why, as ``billing.Miss`` says. Of what was not recorded: what that is known to be, in words."""
    tokens: int = 0
    """Of input that there is more; of caching, tokens that were billed at another price."""
    cost: float = 0.0
    calls: int = 0
    """In how many calls."""
    turn_starts: int = 0
    """Of misses, how many came with the first call of a turn."""
    nothing_read: int = 0
    """Of misses, how many read nothing at all: not even what is first in every request."""

    def __add__(self, other: CostPart) -> CostPart:
        return replace(fieldwise(self, other), part=self.part, cause=self.cause)


class SideBySide(Struct, frozen=True):
    """Bills of the same calls of one session, or of several added up."""

    sessions: int
    calls: int
    """Both billed and replayed."""
    unbilled_calls: int
    """Replayed, not billed."""
    unreplayed_bills: int
    is_priced: bool
    """Costs are USD; else the model has no known price, and they are base input tokens."""
    recorded: BillRow
    """What was billed, at the prices of the cards."""
    simulated: dict[str, BillRow]
    """The yardstick, then each strategy."""
    scaled_tokens: int
    """Of the append-only requests, as the provider would count them, without what was not recorded."""
    unrecorded_tokens: int
    """Of all requests together, what each held that was not recorded."""
    output: tuple[int, float]
    """Tokens and cost of the recorded output, the same in all."""
    paid: tuple[int, float, float]
    """Of the calls whose cost the recording says: how many, what it says, what it is at the prices of the cards."""
    differences: tuple[CostPart, ...]

    @property
    def factor(self) -> float:
        """Tokens of the provider for one counted here."""
        counted = self.simulated[YARDSTICK].input.tokens
        return self.scaled_tokens / counted if counted else 1.0


def compare_bills(
    recording: Recording, plan: ReplayPlan, *, walks: Mapping[str, Sequence[ReplayedCall]]
) -> SideBySide | None:
    """The bills of a recording and of its replays, by strategy, each walk with the same plan but for that.

    None where no replayed call was billed.
    """
    bills = {bill.message_index: bill for bill in recording.usage}
    places = [at for at, call in enumerate(next(iter(walks.values()), ())) if call.upto in bills]
    if not places:
        return None
    walk = next(iter(walks.values()))
    matched = [bills[walk[at].upto] for at in places]
    cards = _cards(recording, plan)
    prices, is_priced = _prices(matched, cards, plan)
    counted = [walk[at].append_only for at in places]
    factor, constant = _line(
        [usage.tokens for usage in counted], [billing.read_input(bill).tokens for bill in matched]
    )
    held = [1.0, *(_held(one, two, plan.min_prefix_tokens) for one, two in pairwise(counted))]
    unrecorded = [_constant(round(constant), is_first=not (at and share)) for at, share in enumerate(held)]
    extra = _cost(unrecorded, prices)

    def row(usages: Sequence[Usage]) -> BillRow:
        cost = _cost(usages, prices)
        return BillRow(_sum(usages), cost, factor * cost + extra)

    recorded, indexes = [billing.read_input(bill) for bill in matched], [bill.message_index for bill in matched]
    warm = _warm(recorded, held, least=plan.min_prefix_tokens)
    simulated = {YARDSTICK: row(counted)}
    for name, calls in walks.items():
        simulated.setdefault(name, row([calls[at].billed for at in places]))
    cost = _cost(recorded, prices)
    stated = [(bill, price) for bill, price in zip(matched, prices, strict=True) if bill.cost_usd is not None]
    return SideBySide(
        sessions=1,
        calls=len(places),
        unbilled_calls=len(walk) - len(places),
        unreplayed_bills=len(recording.usage) - len(places),
        is_priced=is_priced,
        recorded=BillRow(_sum(recorded), cost, cost),
        simulated=simulated,
        scaled_tokens=round(factor * _sum(counted).tokens),
        unrecorded_tokens=_sum(unrecorded).tokens,
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
            *_of_requests((counted, unrecorded, warm), prices, factor=factor, missing=_missing(recording)),
            *_of_caching((warm, recorded), prices, misses=_misses(recording, plan, cards), indexes=indexes),
        ),
    )


def add_bills(found: Iterable[SideBySide | None]) -> SideBySide | None:
    """All of them added up; where some are priced in USD, these alone."""
    items = [item for item in found if item is not None]
    items = [item for item in items if item.is_priced] or items
    if not items:
        return None
    merged: dict[tuple[Part, str], CostPart] = {}
    for part in (part for item in items for part in item.differences):
        key = (part.part, part.cause)
        merged[key] = merged[key] + part if key in merged else part
    return SideBySide(
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


def describe(part: CostPart, found: SideBySide) -> str:
    """A part of the difference, as a person reads it."""
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
            return f"cache missed: {billing.CAUSES.get(part.cause, part.cause)}{_where(part)}"
        case "otherwise cached":
            return "smaller misses, and ends that were not written to the cache"


def _where(part: CostPart) -> str:
    places = {"at the first call of a turn": part.turn_starts, "reading nothing at all": part.nothing_read}
    said = [f"{'all' if calls == part.calls else f'{calls:,}'} {place}" for place, calls in places.items() if calls]
    return f" ({', '.join(said)})" if said else ""


def _of_requests(
    bills: tuple[Sequence[Usage], Sequence[Usage], Sequence[Usage]],
    prices: Sequence[Price],
    *,
    factor: float,
    missing: str,
) -> Iterator[CostPart]:
    """From the counted requests to those that were billed, had the cache held exactly the request before."""
    counted = bills[0]
    tokens, held, sent = (_sum(usages).tokens for usages in bills)
    base, constant, kept = (_cost(usages, prices) for usages in bills)
    calls, more = len(counted), round((factor - 1) * tokens)
    yield CostPart("counts", "", more, (factor - 1) * base, calls)
    yield CostPart("not recorded", missing, held, constant, calls)
    yield CostPart("other requests", "", sent - tokens - more - held, kept - factor * base - constant, calls)


def _of_caching(
    bills: tuple[Sequence[Usage], Sequence[Usage]],
    prices: Sequence[Price],
    *,
    misses: Mapping[int, tuple[billing.Miss, bool]],
    indexes: Sequence[int],
) -> Iterator[CostPart]:
    """From a cache that held the request before to what it really held. ``indexes``: of the calls' replies."""
    warm, recorded = bills
    early = [max(was.read_tokens - had.read_tokens, 0) for had, was in zip(warm, recorded, strict=True)]
    saved = -sum(price.rewriting(tokens) for price, tokens in zip(prices, early, strict=True))
    yield CostPart("read before it was sent", "", sum(early), saved, sum(map(bool, early)))
    groups: dict[str, CostPart] = {}
    for had, price, index in zip(warm, prices, indexes, strict=True):
        # What the simulated cache did not hold either is no difference.
        if index not in misses or had.read_tokens <= misses[index][0].read_tokens:
            continue
        miss, is_turn_start = misses[index]
        tokens = min(miss.rewritten_tokens, had.read_tokens - miss.read_tokens)
        cost, nothing = price.rewriting(tokens), int(not miss.read_tokens)
        found = CostPart("missed", miss.cause, tokens, cost, 1, int(is_turn_start), nothing)
        groups[miss.cause] = groups[miss.cause] + found if miss.cause in groups else found
    yield from sorted(groups.values(), key=lambda group: -group.cost)
    known = saved + sum(group.cost for group in groups.values())
    rest = _cost(recorded, prices) - _cost(warm, prices) - known
    yield CostPart("otherwise cached", "", 0, rest, len(recorded))


def _line(counted: Sequence[int], billed: Sequence[int]) -> tuple[float, float]:
    """Factor and constant between counted and billed tokens: the constant of a line through them, and the factor
    with which the sums agree."""
    until = next((at for at, (one, two) in enumerate(pairwise(billed), 1) if two < _SHORTENED * one), len(billed))
    observations = [
        Observation((float(tokens), 0.0, 1.0), float(size), _NOISE * size + _NOISE_TOKENS)
        for tokens, size in zip(counted[:until], billed[:until], strict=True)
    ]
    factors = fitted(observed(NOTHING, observations, older=1.0))
    constant = min(factors.constant, min(billed))
    seen = sum(counted[:until])
    return (sum(billed[:until]) - constant * until) / seen if seen else 1.0, constant


def _constant(tokens: int, *, is_first: bool) -> Usage:
    """Bill what was not recorded: it is at the start, so written once, then read."""
    return Usage(written_tokens=tokens) if is_first else Usage(read_tokens=tokens)


def _missing(recording: Recording) -> str:
    has_system = any(message.role == "system" for message in recording.messages)
    missing = [] if has_system else ["system prompt"]
    return " and ".join(missing if recording.tools_recorded else [*missing, "tool schemas"])


def _held(before: Usage, usage: Usage, least: int) -> float:
    """The share of an append-only request that the next one reads: 1, unless the simulated cache had cooled or the
    system messages were changed."""
    return min(usage.read_tokens / before.tokens, 1.0) if before.tokens >= max(least, 1) else 1.0


def _cards(recording: Recording, plan: ReplayPlan) -> Mapping[str, Card]:
    """The card of each billed model; the plan's for the recording's own, which the caller may have overridden."""
    own = {"", recording.model}
    return {
        bill.model: plan.settings.card if bill.model in own else find_card(bill.model)[0]
        for bill in recording.usage
    }


def _prices(bills: Sequence[Bill], cards: Mapping[str, Card], plan: ReplayPlan) -> tuple[list[Price], bool]:
    own = plan.settings.card
    found = [
        find_price(cards[bill.model], plan.settings.rates if cards[bill.model] is own else None) for bill in bills
    ]
    known = [price for price in found if price is not None]
    if len(known) == len(found):
        return known, True
    return [Price(plan.settings.rates, 1.0, 0.0)] * len(bills), False


def _misses(
    recording: Recording, plan: ReplayPlan, cards: Mapping[str, Card]
) -> dict[int, tuple[billing.Miss, bool]]:
    """The misses by the index of the reply, and whether that answers what a user said."""
    found = billing.sum_bills(recording, plan, card_of=lambda model: cards[model])
    roles = dict(zip(recording.raw_indices, ("", *(message.role for message in recording.messages)), strict=False))
    misses = found.misses if found else ()
    return {miss.message_index: (miss, roles.get(miss.message_index) == "user") for miss in misses}


def _warm(recorded: Sequence[Usage], held: Sequence[float], *, least: int) -> list[Usage]:
    """The recorded requests as they would be billed had the cache held that share of the request before."""
    sizes = [usage.tokens for usage in recorded]
    befores = [round(share * before) for share, before in zip(held, (0, *sizes), strict=False)]
    return [bill_request(size, min(size, before), least=least) for size, before in zip(sizes, befores, strict=True)]


def _cost(usages: Sequence[Usage], prices: Sequence[Price]) -> float:
    return sum(price.input(usage) for usage, price in zip(usages, prices, strict=True))


def _sum(usages: Iterable[Usage]) -> Usage:
    return sum(usages, Usage())
