"""Prices, the prompt cache, and when an edit pays. Pure: prices come in as arguments.

Prices are relative to one base input token: ``read`` for a token read from the cache, ``write`` for one
written to it, 1 for one that passes uncached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct


class Rates(Struct, frozen=True):
    """What a cached read and a cache write cost, relative to base input. Equal rates: no cache."""

    read: float
    write: float


def edit_price(rates: Rates, *, cached_suffix_tokens: int, inserted_tokens: int, own_calls: float = 0.0) -> float:
    """What an edit costs once: (w - r)(b + e) + C, in base input tokens.

    ``cached_suffix_tokens`` (b) stand after the first changed byte and were sent before;
    ``inserted_tokens`` (e) are new; ``own_calls`` (C) is what the edit's own model calls cost. The kept
    prefix cancels. Zero where there is no cache price.
    """
    return max(rates.write - rates.read, 0.0) * (cached_suffix_tokens + inserted_tokens) + own_calls


def rent(rates: Rates, *, removable_tokens: int) -> float:
    """What one more call pays for carrying tokens that could be gone: r x removable, in base input tokens."""
    return rates.read * removable_tokens


def due(account: float, price: float, *, regret: float = 1.0) -> bool:
    """Whether the rent paid so far has reached the price of the edit (ski rental, 2-competitive).

    ``regret`` above 1 waits longer: dearer on average, closer to never editing at the worst.
    """
    return account >= regret * price


def worth_waiting(rates: Rates, *, removable_tokens: int, ageing_tokens: Iterable[int]) -> bool:
    """Whether an edit that is due had better wait for what is about to become removable too.

    ``ageing_tokens``: of what stands in the kept tail now, how much (net of digests) becomes removable at each of
    the next calls, in order. It waits while, some calls on, that has taken more off the price than the rent until
    then; growth to come is left out. ``due`` with twice the regret should end any wait, which bounds it.
    """
    saved = paid = 0.0
    for tokens in ageing_tokens:
        saved += max(rates.write - rates.read, 0.0) * tokens
        paid += rent(rates, removable_tokens=removable_tokens)
        if saved > paid:
            return True
    return False


class Usage(Struct, frozen=True):
    """What one request is billed for its input, in tokens by kind."""

    read_tokens: int = 0
    written_tokens: int = 0
    fresh_tokens: int = 0
    """Passed through uncached: the prefix is shorter than the provider caches."""

    @property
    def tokens(self) -> int:
        """All input tokens."""
        return self.read_tokens + self.written_tokens + self.fresh_tokens

    def cost(self, rates: Rates) -> float:
        """The bill in base input tokens."""
        return self.read_tokens * rates.read + self.written_tokens * rates.write + self.fresh_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.read_tokens + other.read_tokens,
            self.written_tokens + other.written_tokens,
            self.fresh_tokens + other.fresh_tokens,
        )


class OwnCalls(Struct, frozen=True, omit_defaults=True):
    """What compaction's own model calls took, in tokens, and their bill."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """In base input tokens of the session's model."""

    def __add__(self, other: OwnCalls) -> OwnCalls:
        return OwnCalls(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )


class PrefixCache:
    """A provider's prompt cache: it holds every prefix it has seen, by unit, until its time is up.

    A request is a chain: ``chain[i]`` names the prefix that ends with unit ``i`` (envelope first, then one
    unit for each wire message), and ``ends[i]`` is its length in tokens. Because a longer prefix is only
    ever stored together with all shorter ones, the longest hit is found by bisection.
    """

    def __init__(self, *, min_prefix_tokens: int = 0, ttl_s: float | None = None) -> None:
        """``ttl_s`` None: the cache never cools."""
        self._min_prefix = min_prefix_tokens
        self._ttl_s = ttl_s
        self._used_at: dict[str, float] = {}
        self._now = 0.0

    def bill(self, chain: Sequence[str], ends: Sequence[int], *, at_s: float | None = None) -> Usage:
        """What this request is billed; the cache remembers it.

        ``at_s`` is when it is sent (seconds). Not given, or earlier than before: no time has passed.
        """
        self._now = now = self._now if at_s is None else max(self._now, at_s)
        hits = self._longest_hit(chain, now)
        cached = ends[hits - 1] if hits else 0
        total = ends[-1] if ends else 0
        if total < self._min_prefix:
            return Usage(fresh_tokens=total)
        if cached < self._min_prefix:
            cached = 0
        fresh_from = hits if self._ttl_s is None else 0
        self._used_at |= dict.fromkeys(chain[fresh_from:], now)
        return Usage(read_tokens=cached, written_tokens=total - cached)

    def _longest_hit(self, chain: Sequence[str], now: float) -> int:
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high + 1) // 2
            if self._warm(chain[middle - 1], now):
                low = middle
            else:
                high = middle - 1
        return low

    def _warm(self, link: str, now: float) -> bool:
        used_at = self._used_at.get(link)
        return used_at is not None and (self._ttl_s is None or now - used_at <= self._ttl_s)


def is_cold(*, idle_s: float | None, ttl_s: float | None) -> bool:
    """Whether the cache has certainly cooled before a call: idle for longer than its time to live."""
    return idle_s is not None and ttl_s is not None and idle_s > ttl_s


def rates_for(read: float, write: Mapping[int, float], *, ttl_s: float) -> Rates:
    """The rates of a price row: the write price of the shortest lifetime that covers ``ttl_s``.

    The dearest where none covers it; 1 where the row has no write prices.
    """
    covering = [price for lifetime, price in sorted(write.items()) if lifetime >= ttl_s]
    return Rates(read, covering[0] if covering else max(write.values(), default=1.0))
