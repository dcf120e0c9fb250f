"""Judge whether a reported figure can be true of a request, by its counted size."""

from __future__ import annotations

from msgspec import Struct

MOST_TOKENS = 1 << 40
"""A larger figure is not a count."""
_MOST_UNSEEN_TOKENS = 50_000
_MOST_FACTOR = 5
"""A possible report is at least a fifth of the counted tokens, and at most five times as many plus
``_MOST_UNSEEN_TOKENS`` added by the provider."""
_FRAMING_TOKENS = 8
"""Largest part of a message's count that a provider may not count at all."""
_SPARE_TOKENS = 50
"""Largest difference between a provider's fixed additions to two requests."""
_SAME_SHARE = 0.1
"""Largest difference between the counts of two requests whose true sizes are the same, as a share of them."""


class RequestCount(Struct, frozen=True):
    """The counted size of a whole request before it was sent: system, tools and messages."""

    tokens: int
    """By the session's meter."""
    messages: int
    """As in the provider's format."""


class Figure(Struct, frozen=True):
    """A reported figure and the count of its request."""

    tokens: int = 0
    counted: RequestCount = RequestCount(0, 0)

    def follow(self, tokens: int, counted: RequestCount) -> Figure:
        """Return the figure of a later request; this one while reports stay about the same."""
        return self if abs(tokens - self.tokens) <= _SPARE_TOKENS else Figure(tokens, counted)

    def contradicts(self, tokens: int, counted: RequestCount) -> bool:
        """Return whether another request differs so much that the provider's figure must differ more."""
        text = _count_text(abs(counted.tokens - self.counted.tokens), abs(counted.messages - self.counted.messages))
        noise = _SPARE_TOKENS + _SAME_SHARE * max(counted.tokens, self.counted.tokens)
        return text > _MOST_FACTOR * abs(tokens - self.tokens) + noise


class PlausibleShares(Struct, frozen=True):
    """Plausible shares of the counted text in a report: smallest of a request and of messages added to it, and
    largest of these."""

    whole: float
    new: float
    most_new: float = _MOST_FACTOR

    def allows(self, reported_tokens: int, counted: RequestCount, *, tools_tokens: int = 0) -> bool:
        """Return whether the report can be true of a whole request."""
        return reported_tokens >= _count_text(counted.tokens - tools_tokens, counted.messages) * self.whole

    def allows_more(self, reported_tokens: int, *, tokens: int, messages: int) -> bool:
        """Return whether the increase of the report can be true of new messages."""
        least = _count_text(tokens, messages) * self.new - _SPARE_TOKENS
        return least <= reported_tokens <= tokens * self.most_new + _SPARE_TOKENS


EXACT = PlausibleShares(0.95, 0.9)
"""The counter is the model's own tokenizer."""
ESTIMATED = PlausibleShares(0.6, 0.2)
"""The counter is an estimate, which may be far off for a single text."""
UNSENT = PlausibleShares(0.2, -1.0, MOST_TOKENS)
"""The history holds reasoning, any part of which the provider may drop or store."""


def is_possible(counted: RequestCount, reported_tokens: int) -> bool:
    """Return whether any provider can have reported that many tokens for a request of this size."""
    if not (0 < counted.tokens <= MOST_TOKENS and 0 < counted.messages <= counted.tokens):
        return False
    most = _MOST_FACTOR * counted.tokens + _MOST_UNSEEN_TOKENS
    return counted.tokens <= reported_tokens * _MOST_FACTOR and 0 < reported_tokens <= most


def _count_text(tokens: int, messages: int) -> int:
    return max(0, min(tokens - _FRAMING_TOKENS * messages, MOST_TOKENS))
