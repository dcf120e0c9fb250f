"""Prices, the prompt cache, and break-even of an edit (price rule): ``is_due(account, edit_price(...))``.

Pure: prices are arguments, relative to one base input token: ``read`` for a token read from the cache, ``write``
for one written to it, 1 for an uncached one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def is_cold(*, idle_s: float | None, ttl_s: float | None) -> bool:
    """Return whether the cache has certainly expired before a call: idle for longer than its time to live."""
    return idle_s is not None and ttl_s is not None and idle_s > ttl_s


def rates_for(read: float, write: Mapping[int, float], *, ttl_s: float) -> Rates:
    """Return the rates of a price row: the write price of the shortest lifetime that covers ``ttl_s``.

    The most expensive if none covers it; 1 if the row has no write prices.
    """
    covering = [price for lifetime, price in sorted(write.items()) if lifetime >= ttl_s]
    return Rates(read, covering[0] if covering else max(write.values(), default=1.0))
