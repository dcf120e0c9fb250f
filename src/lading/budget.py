"""The token budget of a request: the window less the reserve for the answer and the margin of the count."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lading.errors import InputError
from lading.models.card import Card


class Budget(Struct, frozen=True, omit_defaults=True):
    """The token budget of every request of a session."""

    window_tokens: int
    output_reserve_tokens: int
    margin_tokens: int
    unused_tokens: int = 0
    """Tokens of the window that are not used (``within``)."""
    is_learned: bool = False
    """Whether the window is the limit that the provider named when it refused a request."""

    @property
    def limit_tokens(self) -> int:
        """Limit of a request in tokens, by the provider's count."""
        return self.window_tokens - self.unused_tokens - self.output_reserve_tokens

    @property
    def room_tokens(self) -> int:
        """The input budget: tokens for system, tools and messages together."""
        return self.limit_tokens - self.margin_tokens


def allocate(
    card: Card,
    *,
    window_tokens: int | None = None,
    output_reserve_tokens: int | None = None,
    margin_tokens: int | None = None,
) -> Budget:
    """Compute the budget for a model; omitted values come from its card.

    The reserve is absolute and capped by the card's max output (default: the max output, at most a quarter of the
    window). Raises InputError when nothing is left for input.
    """
    window = card.limits.window_tokens if window_tokens is None else window_tokens
    most = card.limits.max_output_tokens
    reserve = min(most, window // 4) if output_reserve_tokens is None else min(output_reserve_tokens, most)
    margin = int(card.tokens.margin * window) if margin_tokens is None else margin_tokens
    budget = Budget(window, reserve, margin)
    if window <= 0 or reserve < 0 or margin < 0 or budget.room_tokens <= 0:
        raise InputError(
            f"A window of {window} tokens with an output reserve of {reserve} and a margin of {margin} leaves "
            "no room for input. Give a larger window or a smaller reserve."
        )
    return budget


def used_pct(input_tokens: int, window_tokens: int) -> int:
    """Return the input of one request as a percentage of the whole window, with halves rounded up."""
    return int(100 * input_tokens / max(window_tokens, 1) + 0.5)


def within(budget: Budget, percent: int) -> Budget:
    """Reduce a budget so that a request and its reply use at most this share of the window.

    Raises InputError when nothing is left for input.
    """
    unused = budget.window_tokens - budget.window_tokens * percent // 100
    if (shared := replace(budget, unused_tokens=unused)).room_tokens <= 0:
        raise InputError(
            f"{percent} % of a window of {budget.window_tokens} tokens, with an output reserve of "
            f"{budget.output_reserve_tokens} and a margin of {budget.margin_tokens}, leave no room for input. "
            "Give a larger share, a larger window or a smaller reserve."
        )
    return shared
