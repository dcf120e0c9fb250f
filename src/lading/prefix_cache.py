"""A model of a provider's prompt cache, by which a replay bills requests. Pure: times are arguments."""

from __future__ import annotations

from collections.abc import Sequence

from lading.economics import Usage


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
