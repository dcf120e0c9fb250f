"""Prices, the prompt cache, and break-even of an edit (price rule): ``is_due(account, edit_price(...))``.

Pure: prices are arguments, relative to one base input token: ``read`` for a token read from the cache, ``write``
for one written to it, 1 for an uncached one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import astuple

S = TypeVar("S", bound=Struct)


class Rates(Struct, frozen=True):
    """Prices of a cache read and a cache write, relative to base input. Equal rates: no cache."""

    read: float
    write: float


def edit_price(rates: Rates, *, cached_suffix_tokens: int, inserted_tokens: int, own_calls: float = 0.0) -> float:
    """Return the one-time cost of an edit, (w - r)(b + e) + C, in base input tokens.

    ``cached_suffix_tokens`` (b) follow the first changed byte and were sent before; ``inserted_tokens`` (e) are
    new; ``own_calls`` (C) is the cost of the edit's own model calls. The unchanged prefix cancels out. Only C
    remains without a cache price.
    """
    return max(rates.write - rates.read, 0.0) * (cached_suffix_tokens + inserted_tokens) + own_calls


def rent(rates: Rates, *, removable_tokens: int) -> float:
    """Return the carrying cost of one more call, r x ``removable_tokens``, in base input tokens."""
    return rates.read * removable_tokens


def is_due(account: float, price: float, *, regret: float = 1.0) -> bool:
    """Return whether the carrying cost so far has reached the price of the edit (ski rental, 2-competitive).

    ``regret`` above 1 waits longer: more expensive on average, closer to never editing in the worst case.
    """
    return account >= regret * price


def is_worth_waiting(rates: Rates, *, removable_tokens: int, ageing_tokens: Iterable[int]) -> bool:
    """Return whether a due edit should wait for more tokens to become removable.

    ``ageing_tokens``: how many tokens of the verbatim part (net of digests) become removable at each of the next
    calls, in order. Waiting is worth it if, after some of these calls, it lowers the price by more than the
    carrying cost until then; future growth is ignored. Limit any wait by ``is_due`` with twice the regret.
    """
    saved = paid = 0.0
    for tokens in ageing_tokens:
        saved += max(rates.write - rates.read, 0.0) * tokens
        paid += rent(rates, removable_tokens=removable_tokens)
        if saved > paid:
            return True
    return False


def add_fields(one: S, other: S) -> S:
    """Add two values field by field."""
    return type(one)(*map(add, astuple(one), astuple(other)))


class Usage(Struct, frozen=True):
    """The billed input of one request, in tokens by kind."""

    read_tokens: int = 0
    written_tokens: int = 0
    fresh_tokens: int = 0
    """Uncached: the prefix is shorter than the provider's minimum."""

    @property
    def tokens(self) -> int:
        """All input tokens."""
        return self.read_tokens + self.written_tokens + self.fresh_tokens

    def cost(self, rates: Rates) -> float:
        """Return the cost in base input tokens."""
        return self.read_tokens * rates.read + self.written_tokens * rates.write + self.fresh_tokens

    def __add__(self, other: Usage) -> Usage:
        return add_fields(self, other)


class OwnCalls(Struct, frozen=True, omit_defaults=True):
    """Tokens and cost of compaction's own model calls."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """In base input tokens of the session's model."""
    read_tokens: int = 0
    """Of the input, read from the prompt cache."""
    written_tokens: int = 0
    """Of the input, written to the prompt cache."""

    def __add__(self, other: OwnCalls) -> OwnCalls:
        return add_fields(self, other)


class PrefixCache:
    """A model of a provider's prompt cache, which holds every prefix it has seen until that expires.

    A request is a chain: ``chain[i]`` names the prefix that ends with unit ``i`` (envelope first, then one unit for
    each message of the body), and ``ends[i]`` is its length in tokens. A longer prefix is stored only together with
    all shorter ones, so the longest hit is found by bisection.
    """

    def __init__(self, *, min_prefix_tokens: int = 0, ttl_s: float | None = None) -> None:
        """``min_prefix_tokens``: a shorter prefix is not cached. ``ttl_s`` None: entries do not expire."""
        self._min_prefix = min_prefix_tokens
        self._ttl_s = ttl_s
        self._used_at: dict[str, float] = {}
        self._now = 0.0

    def bill(self, chain: Sequence[str], ends: Sequence[int], *, at_s: float | None = None) -> Usage:
        """Bill this request, and remember its prefixes.

        ``at_s`` is the time of sending in seconds. Missing, or earlier than before: no time has passed.
        """
        self._now = now = self._now if at_s is None else max(self._now, at_s)
        hits = self._find_longest_hit(chain, now)
        cached = ends[hits - 1] if hits else 0
        total = ends[-1] if ends else 0
        if total < self._min_prefix:
            return Usage(fresh_tokens=total)
        if cached < self._min_prefix:
            cached = 0
        fresh_from = hits if self._ttl_s is None else 0
        self._used_at |= dict.fromkeys(chain[fresh_from:], now)
        return Usage(read_tokens=cached, written_tokens=total - cached)

    def _find_longest_hit(self, chain: Sequence[str], now: float) -> int:
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high + 1) // 2
            if self._is_warm(chain[middle - 1], now):
                low = middle
            else:
                high = middle - 1
        return low

    def _is_warm(self, link: str, now: float) -> bool:
        used_at = self._used_at.get(link)
        return used_at is not None and (self._ttl_s is None or now - used_at <= self._ttl_s)


def is_cold(*, idle_s: float | None, ttl_s: float | None) -> bool:
    """Return whether the cache has certainly expired before a call: idle for longer than its time to live."""
    return idle_s is not None and ttl_s is not None and idle_s > ttl_s


def rates_for(read: float, write: Mapping[int, float], *, ttl_s: float) -> Rates:
    """Return the rates of a price row: the write price of the shortest lifetime that covers ``ttl_s``.

    The most expensive if none covers it; 1 if the row has no write prices.
    """
    covering = [price for lifetime, price in sorted(write.items()) if lifetime >= ttl_s]
    return Rates(read, covering[0] if covering else max(write.values(), default=1.0))
