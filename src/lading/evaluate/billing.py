"""Bills of recorded sessions: simulated append-only, and as the provider really billed them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading import economics
from lading.evaluate.prices import find_price
from lading.evaluate.recorded import ReplayPlan
from lading.evaluate.simulated import bill_request
from lading.models.card import Card
from lading.sources import Recording, Request, Usage

MISSED_SHARE = 0.1
"""A call misses the cache when more than this share of the prefix before it was not read from the cache."""

Cause: TypeAlias = Literal["idle", "model changed", "request changed", "history shortened", "unexplained"]

CAUSES: dict[str, str] = {
    "idle": "idle for longer than the cache lives",
    "model changed": "another model than before",
    "request changed": "the request was changed",
    "history shortened": "the history was shortened",
    "unexplained": "neither idle nor shortened",
}
"""Why a call missed the cache, in words."""

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
        added = economics.fieldwise(self, other)
        return replace(added, peak_tokens=fuller.peak_tokens, window_tokens=fuller.window_tokens)


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
    """``idle``: longer than the cache lives by the model's card. ``request changed``: the requests are known, and
    this one says something else from ``changed_index`` on. ``history shortened``: the input is smaller than the
    prefix, so it was cut or compacted."""
    changed_index: int | None = None
    """Where in the list of messages, from 0, the request first differs from the one before it; -1: in the system
    text or the tools outside of the list. None: it only grows, or the requests are not known."""


class RequestChange(Struct, frozen=True):
    """A request that says something else than the one before it, whether or not its call missed the cache."""

    session: str
    message_index: int
    """Of the reply, as in ``Miss``."""
    changed_index: int
    """As in ``Miss``."""


def find_changes(recording: Recording) -> tuple[RequestChange, ...]:
    """The changes of a recording's requests; none where they are not known."""
    return tuple(
        RequestChange(recording.id, item.message_index, item.changed_index)
        for item in recording.requests
        if item.changed_index is not None
    )


class Billed(Struct, frozen=True):
    """The recorded bill of the provider. The token counts do not overlap."""

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
        return economics.fieldwise(self, other)


def bill_append_only(
    tokens: Sequence[int],
    calls: Sequence[int],
    *,
    plan: ReplayPlan,
    tools_tokens: int,
    replies: Sequence[int],
    restated: Mapping[int, Sequence[tuple[int, int]]] = MappingProxyType({}),
) -> AppendOnly:
    """The append-only bill of one session.

    ``tokens``: of each message. ``calls``: where the model was called. ``replies``: output tokens of each
    call. ``restated``: messages that are others from a position on, each with its tokens from then on. All tools
    are offered from the first call on.
    """
    price = find_price(plan.settings.card, plan.settings.rates)
    bill, sizes = economics.Usage(), list[int]()
    for size, shared in _requests(tokens, calls, tools_tokens, restated):
        bill += bill_request(size, min(shared, size), least=plan.min_prefix_tokens)
        sizes.append(size)
    output, window = sum(replies), plan.settings.budget.window_tokens
    return AppendOnly(
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


def sum_bills(recording: Recording, plan: ReplayPlan, *, card_of: CardOf) -> Billed | None:
    """Add up the recorded bills; None when there are none."""
    if not recording.usage:
        return None
    caches = any(bill.cache_read_tokens or bill.cache_write_tokens for bill in recording.usage)
    known = {model: card_of(model) for model in {bill.model for bill in recording.usage} if model}
    cards = [known.get(bill.model, plan.settings.card) for bill in recording.usage]
    total = sum(map(_billed, recording.usage, cards), Billed())
    return replace(total, misses=tuple(_misses(recording, cards)) if caches else ())


def _billed(bill: Usage, card: Card) -> Billed:
    cost = _cost(bill, card)
    return Billed(
        calls=1,
        input_tokens=bill.input_tokens,
        output_tokens=bill.output_tokens,
        cache_read_tokens=bill.cache_read_tokens,
        cache_write_tokens=bill.cache_write_tokens,
        cost_usd=cost or 0.0,
        calls_priced_by_card=int(bill.cost_usd is None and cost is not None),
        unpriced_calls=int(cost is None),
    )


def _requests(
    tokens: Sequence[int],
    calls: Sequence[int],
    tools_tokens: int,
    restated: Mapping[int, Sequence[tuple[int, int]]],
) -> Iterator[tuple[int, int]]:
    """Tokens of the request of each call, and of what it shares with the one before."""
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


def _misses(recording: Recording, cards: Sequence[Card]) -> Iterator[Miss]:
    before: Usage | None = None
    for bill, card in zip(recording.usage, cards, strict=True):
        if before is not None and _is_missed(before, bill, card):
            yield _miss(recording, before, bill, card)
        before = bill


def _is_missed(before: Usage, bill: Usage, card: Card) -> bool:
    prefix = read_input(before).tokens
    return prefix - bill.cache_read_tokens > max(MISSED_SHARE * prefix, card.cache.min_prefix_tokens)


def _miss(recording: Recording, before: Usage, bill: Usage, card: Card) -> Miss:
    prefix, size = read_input(before).tokens, read_input(bill).tokens
    changed_index = _first_change(recording.requests, before, bill)
    idle_s = None if bill.at_s is None or before.at_s is None else bill.at_s - before.at_s
    rewritten = min(prefix, size) - bill.cache_read_tokens
    price = find_price(card)
    return Miss(
        session=recording.id,
        message_index=bill.message_index,
        prefix_tokens=prefix,
        read_tokens=bill.cache_read_tokens,
        rewritten_tokens=max(rewritten, 0),
        extra_usd=price.rewriting(max(rewritten, 0)) if price else None,
        idle_s=idle_s,
        cause=_cause(before, bill, idle_s=idle_s, ttl_s=card.cache.ttl_s, is_changed=changed_index is not None),
        changed_index=changed_index,
    )


def _first_change(requests: Sequence[Request], before: Usage, bill: Usage) -> int | None:
    """The earliest change of any request since the last one billed."""
    since = (item for item in requests if before.message_index < item.message_index <= bill.message_index)
    return min((item.changed_index for item in since if item.changed_index is not None), default=None)


def _cause(before: Usage, bill: Usage, *, idle_s: float | None, ttl_s: float, is_changed: bool) -> Cause:
    if before.model != bill.model:
        return "model changed"
    if economics.is_cold(idle_s=idle_s, ttl_s=ttl_s):
        return "idle"
    if is_changed:
        return "request changed"
    return "history shortened" if read_input(bill).tokens < read_input(before).tokens else "unexplained"


def _cost(bill: Usage, card: Card) -> float | None:
    if bill.cost_usd is not None:
        return bill.cost_usd
    price = find_price(card)
    return None if price is None else price.input(read_input(bill)) + price.output(bill.output_tokens)


def read_input(bill: Usage) -> economics.Usage:
    """The input of a recorded bill."""
    return economics.Usage(bill.cache_read_tokens, bill.cache_write_tokens, bill.input_tokens)
