"""What recorded sessions cost: simulated append-only, and as the provider really billed them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lading import economics
from lading.evaluate.recorded import Plan
from lading.messages import Message
from lading.models.card import Card
from lading.sources import Recording, Usage

MISSED_SHARE = 0.1
"""A call misses the cache when more than this share of the prefix before it was not read from the cache."""

UNPRICED = "unknown"
"""Provider of the card that stands in for a model without one; its price is a unit, not a price."""

Cause: TypeAlias = Literal["idle", "model changed", "history shortened", "unexplained"]

CardOf: TypeAlias = Callable[[str], Card]
"""The card for a model's name."""


class AppendOnly(Struct, frozen=True):
    """The bill of sessions whose every request is the whole history so far, with a cache that is always warm."""

    calls: int = 0
    input: economics.Usage = economics.Usage()
    output_tokens: int = 0
    input_usd: float = 0.0
    output_usd: float = 0.0
    """Of the calls whose model has a known price."""
    unpriced_calls: int = 0
    peak_tokens: int = 0
    window_tokens: int = 0
    """Of the model whose session comes closest to it."""
    calls_over_window: int = 0

    @property
    def window_share(self) -> float:
        """The largest request as a share of the window."""
        return self.peak_tokens / self.window_tokens if self.window_tokens else 0.0

    def __add__(self, other: AppendOnly) -> AppendOnly:
        fuller = self if self.window_share >= other.window_share else other
        return AppendOnly(
            calls=self.calls + other.calls,
            input=self.input + other.input,
            output_tokens=self.output_tokens + other.output_tokens,
            input_usd=self.input_usd + other.input_usd,
            output_usd=self.output_usd + other.output_usd,
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
            peak_tokens=fuller.peak_tokens,
            window_tokens=fuller.window_tokens,
            calls_over_window=self.calls_over_window + other.calls_over_window,
        )


class Miss(Struct, frozen=True):
    """A call that paid again for what the cache should have held.

    The prefix is all input of the previous recorded call: read, written and uncached. The call misses when
    it reads less than 90 % of that prefix from the cache, by more than the shortest prefix that is cached.
    """

    session: str
    message_index: int
    prefix_tokens: int
    read_tokens: int
    rewritten_tokens: int
    """Of the prefix, what was sent again at more than the price of a read."""
    extra_usd: float | None
    """What that cost beyond reading it; None without a known price."""
    idle_s: float | None
    """Since the previous call; None where the log has no times."""
    cause: Cause
    """``idle``: longer than the cache lives by the model's card. ``history shortened``: the input is smaller
    than the prefix, so it was cut or compacted."""


class Billed(Struct, frozen=True):
    """What the log says the provider billed. The token counts do not overlap."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    """As recorded, or else from the card; of the calls that have either."""
    calls_priced_by_card: int = 0
    """Calls whose cost was not recorded and comes from the card."""
    unpriced_calls: int = 0
    """Calls whose cost was not recorded, and whose model has no known price."""
    misses: tuple[Miss, ...] = ()

    def __add__(self, other: Billed) -> Billed:
        return Billed(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            calls_priced_by_card=self.calls_priced_by_card + other.calls_priced_by_card,
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
            misses=self.misses + other.misses,
        )


def model_calls(messages: Sequence[Message]) -> list[int]:
    """Where the model was called: each assistant message after the first user message, as in a replay."""
    users = (position for position, message in enumerate(messages) if message.role == "user")
    first = next(users, len(messages))
    return [
        position for position, message in enumerate(messages) if position > first and message.role == "assistant"
    ]


def append_only(
    tokens: Sequence[int], calls: Sequence[int], *, plan: Plan, tools_tokens: int, replies: Sequence[int]
) -> AppendOnly:
    """The append-only bill of one session.

    ``tokens``: of each message. ``calls``: where the model was called. ``replies``: output tokens of each
    call. All tools are offered from the first call on.
    """
    card, rates = plan.settings.card, plan.settings.rates
    bill, sizes = economics.Usage(), _prefixes(tokens, calls, tools_tokens)
    cached = 0
    for size in sizes:
        bill += _billed(size, cached, least=plan.min_prefix_tokens)
        cached = size
    output, window = sum(replies), plan.settings.budget.window_tokens
    priced = _is_priced(card)
    return AppendOnly(
        calls=len(calls),
        input=bill,
        output_tokens=output,
        input_usd=bill.cost(rates) * card.prices.input_usd / 1e6 if priced else 0.0,
        output_usd=output * (card.prices.output_usd or 0.0) / 1e6 if priced else 0.0,
        unpriced_calls=0 if priced else len(calls),
        peak_tokens=max(sizes, default=0),
        window_tokens=window,
        calls_over_window=sum(size > window for size in sizes),
    )


def billed(recording: Recording, plan: Plan, *, card_of: CardOf) -> Billed | None:
    """What the log says was billed; None when it says nothing."""
    if not recording.usage:
        return None
    caches = any(bill.cache_read_tokens or bill.cache_write_tokens for bill in recording.usage)
    cards = [card_of(bill.model) if bill.model else plan.settings.card for bill in recording.usage]
    costs = [_cost(bill, card) for bill, card in zip(recording.usage, cards, strict=True)]
    return Billed(
        calls=len(recording.usage),
        input_tokens=sum(bill.input_tokens for bill in recording.usage),
        output_tokens=sum(bill.output_tokens for bill in recording.usage),
        cache_read_tokens=sum(bill.cache_read_tokens for bill in recording.usage),
        cache_write_tokens=sum(bill.cache_write_tokens for bill in recording.usage),
        cost_usd=sum(cost for cost in costs if cost is not None),
        calls_priced_by_card=sum(
            bill.cost_usd is None and cost is not None for bill, cost in zip(recording.usage, costs, strict=True)
        ),
        unpriced_calls=costs.count(None),
        misses=tuple(_misses(recording, cards)) if caches else (),
    )


def _prefixes(tokens: Sequence[int], calls: Sequence[int], tools_tokens: int) -> list[int]:
    """Tokens of the request of each call."""
    sizes: list[int] = []
    total, position = tools_tokens, 0
    for call in calls:
        total += sum(tokens[position:call])
        position = call
        sizes.append(total)
    return sizes


def _billed(size: int, cached: int, *, least: int) -> economics.Usage:
    if size < least:
        return economics.Usage(fresh_tokens=size)
    read = cached if cached >= least else 0
    return economics.Usage(read_tokens=read, written_tokens=size - read)


def _misses(recording: Recording, cards: Sequence[Card]) -> Iterator[Miss]:
    before: Usage | None = None
    for bill, card in zip(recording.usage, cards, strict=True):
        if before is not None and (miss := _miss(recording.id, before, bill, card)):
            yield miss
        before = bill


def _miss(session: str, before: Usage, bill: Usage, card: Card) -> Miss | None:
    prefix, size = _input(before), _input(bill)
    missing = prefix - bill.cache_read_tokens
    if missing <= max(MISSED_SHARE * prefix, card.cache.min_prefix_tokens):
        return None
    idle_s = None if bill.at_s is None or before.at_s is None else bill.at_s - before.at_s
    rewritten = min(prefix, size) - bill.cache_read_tokens
    rates = _rates(card)
    beyond = max(rates.write - rates.read, 0.0) * card.prices.input_usd / 1e6
    return Miss(
        session=session,
        message_index=bill.message_index,
        prefix_tokens=prefix,
        read_tokens=bill.cache_read_tokens,
        rewritten_tokens=max(rewritten, 0),
        extra_usd=max(rewritten, 0) * beyond if _is_priced(card) else None,
        idle_s=idle_s,
        cause=_cause(before, bill, idle_s=idle_s, ttl_s=card.cache.ttl_s),
    )


def _cause(before: Usage, bill: Usage, *, idle_s: float | None, ttl_s: float) -> Cause:
    if before.model != bill.model:
        return "model changed"
    if economics.is_cold(idle_s=idle_s, ttl_s=ttl_s):
        return "idle"
    return "history shortened" if _input(bill) < _input(before) else "unexplained"


def _input(bill: Usage) -> int:
    return bill.cache_read_tokens + bill.cache_write_tokens + bill.input_tokens


def _cost(bill: Usage, card: Card) -> float | None:
    if bill.cost_usd is not None:
        return bill.cost_usd
    if not _is_priced(card):
        return None
    spent = economics.Usage(bill.cache_read_tokens, bill.cache_write_tokens, bill.input_tokens)
    output = bill.output_tokens * (card.prices.output_usd or 0.0)
    return (spent.cost(_rates(card)) * card.prices.input_usd + output) / 1e6


def _rates(card: Card) -> economics.Rates:
    return economics.rates_for(card.prices.read, card.prices.write, ttl_s=card.cache.ttl_s)


def _is_priced(card: Card) -> bool:
    return card.provider != UNPRICED and card.prices.output_usd is not None
