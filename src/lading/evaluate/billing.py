"""Bills of recorded sessions: simulated append-only bills, and the provider's recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading import economics
from lading.evaluate.prices import Price, find_price
from lading.evaluate.replay import ReplayPlan
from lading.evaluate.simulated import bill_request
from lading.models.card import Card
from lading.sources import RecordedRequest, RecordedUsage, Recording

HOUR_S = 3600
MISSED_SHARE = 0.1
"""A call misses the cache when it did not read more than this share of the previous input from the cache."""

Cause: TypeAlias = Literal["idle", "model changed", "request changed", "history shortened", "unexplained"]

CAUSES: dict[str, str] = {
    "idle": "idle for longer than the cache lives",
    "model changed": "another model than before",
    "request changed": "the request was changed",
    "history shortened": "the history was shortened",
    "unexplained": "neither idle nor shortened",
}
"""Causes of cache misses in words."""

CardOf: TypeAlias = Callable[[str], Card]
"""Returns the card of a model by name."""


class AppendOnlyBill(Struct, frozen=True):
    """Bill of sessions whose every request is the whole history so far, with a cache that is always warm."""

    calls: int = 0
    input: economics.Usage = economics.Usage()
    output_tokens: int = 0
    input_usd: float = 0.0
    output_usd: float = 0.0
    """Cost of the calls whose model has a known price."""
    unpriced_calls: int = 0
    peak_tokens: int = 0
    window_tokens: int = 0
    """Window of the model whose session comes closest to filling it."""
    calls_over_window: int = 0

    @property
    def window_share(self) -> float:
        """The largest request as a share of the window."""
        return self.peak_tokens / self.window_tokens if self.window_tokens else 0.0

    def __add__(self, other: AppendOnlyBill) -> AppendOnlyBill:
        fuller = self if self.window_share >= other.window_share else other
        added = economics.add_fields(self, other)
        return replace(added, peak_tokens=fuller.peak_tokens, window_tokens=fuller.window_tokens)


class Miss(Struct, frozen=True):
    """A call that paid again for tokens that the cache should have held.

    The prefix is all input of the previous recorded call: read, written and uncached. The call misses when it reads
    less than 90 % of that prefix from the cache, and the missing tokens exceed the shortest prefix that is cached.
    """

    session: str
    message_index: int
    prefix_tokens: int
    read_tokens: int
    rewritten_tokens: int
    """Tokens of the prefix that were sent again at more than the price of a read."""
    extra_usd: float | None
    """Cost of these tokens beyond reading them; None without a known price."""
    idle_s: float | None
    """Seconds since the previous call; None where the log has no times."""
    cause: Cause
    """``idle``: longer than the cache lives by the model's card. ``request changed``: the requests are known, and
    this one differs from ``changed_index`` on. ``history shortened``: the input is smaller than the prefix, so it
    was cut or compacted."""
    changed_index: int | None = None
    """Index, from 0, of the first message that differs from the previous request; -1: the system text or the tools
    outside the list of messages differ. None: the request only grows, or the requests are not known."""


class RequestChange(Struct, frozen=True):
    """A request whose start differs from the previous request, whether or not its call missed the cache."""

    session: str
    message_index: int
    """Index of the reply, as in ``Miss``."""
    changed_index: int
    """As in ``Miss``."""


def find_changes(recording: Recording) -> tuple[RequestChange, ...]:
    """Find the changes between a recording's requests; none where the requests are not known."""
    return tuple(
        RequestChange(recording.id, item.message_index, item.changed_index)
        for item in recording.requests
        if item.changed_index is not None
    )


class RecordedBill(Struct, frozen=True):
    """The provider's recorded bill. The token counts do not overlap."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    """Recorded cost, else the cost by the card, of the calls that have either."""
    calls_priced_by_card: int = 0
    """Calls whose cost was not recorded and comes from the card."""
    unpriced_calls: int = 0
    """Calls whose cost was not recorded, and whose model has no known price."""
    misses: tuple[Miss, ...] = ()

    def __add__(self, other: RecordedBill) -> RecordedBill:
        return economics.add_fields(self, other)


def bill_append_only(
    tokens: Sequence[int],
    calls: Sequence[int],
    *,
    plan: ReplayPlan,
    tools_tokens: int,
    replies: Sequence[int],
    restated: Mapping[int, Sequence[tuple[int, int]]] = MappingProxyType({}),
) -> AppendOnlyBill:
    """Compute the append-only bill of one session.

    ``tokens``: tokens of each message. ``calls``: positions of the model calls. ``replies``: output tokens of each
    call. ``restated``: by position, the index and new tokens of messages that change from that position on. All
    tools are offered from the first call on.
    """
    price = find_price(plan.settings.card, plan.settings.rates)
    bill, sizes = economics.Usage(), list[int]()
    for size, shared in _measure_requests(tokens, calls, tools_tokens, restated):
        bill += bill_request(size, min(shared, size), least=plan.min_prefix_tokens)
        sizes.append(size)
    output, window = sum(replies), plan.settings.budget.window_tokens
    return AppendOnlyBill(
        calls=len(calls),
        input=bill,
        output_tokens=output,
        input_usd=price.input(bill) if price else 0.0,
        output_usd=price.output(output) if price else 0.0,
        unpriced_calls=0 if price else len(calls),
        peak_tokens=max(sizes, default=0),
        window_tokens=window,
        calls_over_window=sum(size > window for size in sizes),
    )


def sum_bills(recording: Recording, plan: ReplayPlan, *, card_of: CardOf) -> RecordedBill | None:
    """Add up the recorded bills; return None when there are none."""
    if not recording.usage:
        return None
    caches = any(bill.cache_read_tokens or bill.cache_write_tokens for bill in recording.usage)
    known = {model: card_of(model) for model in {bill.model for bill in recording.usage} if model}
    cards = [known.get(bill.model, plan.settings.card) for bill in recording.usage]
    total = sum(map(_bill_call, recording.usage, cards), RecordedBill())
    return replace(total, misses=tuple(_find_misses(recording, cards)) if caches else ())


def _bill_call(bill: RecordedUsage, card: Card) -> RecordedBill:
    price, cost = _find_price(bill, card), bill.cost_usd
    if cost is None and price is not None:
        cost = price.input(read_input(bill)) + price.output(bill.output_tokens)
    return RecordedBill(
        calls=1,
        input_tokens=bill.input_tokens,
        output_tokens=bill.output_tokens,
        cache_read_tokens=bill.cache_read_tokens,
        cache_write_tokens=bill.cache_write_tokens,
        cost_usd=cost or 0.0,
        calls_priced_by_card=int(bill.cost_usd is None and cost is not None),
        unpriced_calls=int(cost is None),
    )


def _measure_requests(
    tokens: Sequence[int],
    calls: Sequence[int],
    tools_tokens: int,
    restated: Mapping[int, Sequence[tuple[int, int]]],
) -> Iterator[tuple[int, int]]:
    """Yield the tokens of each call's request, and of the prefix it shares with the previous one."""
    now = list(tokens)
    total, position, shared = tools_tokens, 0, 0
    changes = sorted(restated.items())
    for call in calls:
        total += sum(now[position:call])
        position = call
        while changes and changes[0][0] <= call:
            for index, size in changes.pop(0)[1]:
                total += size - now[index]
                now[index] = size
                shared = min(shared, tools_tokens + sum(now[:index]))
        yield total, shared
        shared = total


def _find_misses(recording: Recording, cards: Sequence[Card]) -> Iterator[Miss]:
    for before, bill, card in zip(recording.usage, recording.usage[1:], cards[1:], strict=False):
        prefix = read_input(before).tokens
        if prefix - bill.cache_read_tokens > max(MISSED_SHARE * prefix, card.cache.min_prefix_tokens):
            yield _build_miss(recording, before, bill, card)


def _build_miss(recording: Recording, before: RecordedUsage, bill: RecordedUsage, card: Card) -> Miss:
    prefix, size = read_input(before).tokens, read_input(bill).tokens
    changed_index = _find_first_change(recording.requests, before, bill)
    idle_s = None if bill.at_s is None or before.at_s is None else bill.at_s - before.at_s
    rewritten = min(prefix, size) - bill.cache_read_tokens
    ttl_s = HOUR_S if 0 < before.cache_write_tokens == before.hour_write_tokens else card.cache.ttl_s
    price = _find_price(bill, card)
    return Miss(
        session=recording.id,
        message_index=bill.message_index,
        prefix_tokens=prefix,
        read_tokens=bill.cache_read_tokens,
        rewritten_tokens=max(rewritten, 0),
        extra_usd=price.rewrite(max(rewritten, 0)) if price else None,
        idle_s=idle_s,
        cause=_find_cause(before, bill, idle_s=idle_s, ttl_s=ttl_s, is_changed=changed_index is not None),
        changed_index=changed_index,
    )


def _find_first_change(
    requests: Sequence[RecordedRequest], before: RecordedUsage, bill: RecordedUsage
) -> int | None:
    """Return the earliest changed index of the requests since the last one billed."""
    since = (item for item in requests if before.message_index < item.message_index <= bill.message_index)
    return min((item.changed_index for item in since if item.changed_index is not None), default=None)


def _find_cause(
    before: RecordedUsage, bill: RecordedUsage, *, idle_s: float | None, ttl_s: float, is_changed: bool
) -> Cause:
    if before.model != bill.model:
        return "model changed"
    if economics.is_cold(idle_s=idle_s, ttl_s=ttl_s):
        return "idle"
    if is_changed:
        return "request changed"
    return "history shortened" if read_input(bill).tokens < read_input(before).tokens else "unexplained"


def _find_price(bill: RecordedUsage, card: Card) -> Price | None:
    """Return the prices of a call; that of a cache write is the mean over the lifetimes of its writes."""
    prices, share = card.prices, bill.hour_write_tokens / max(bill.cache_write_tokens, 1)
    short, hour = (economics.rates_for(prices.read, prices.write, ttl_s=s) for s in (card.cache.ttl_s, HOUR_S))
    return find_price(card, replace(short, write=(1 - share) * short.write + share * hour.write))


def read_input(bill: RecordedUsage) -> economics.Usage:
    """Return the input usage of a recorded bill."""
    return economics.Usage(bill.cache_read_tokens, bill.cache_write_tokens, bill.input_tokens)
