"""The bytes of a streamed answer for an async caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Protocol

from lading.exchange.effects import Deliver, Effect, ExchangeSteps


class Flight(Protocol):
    """A call over an HTTP library."""

    steps: ExchangeSteps

    async def aclose(self) -> None:
        """End it."""


class Pieces:
    """The bytes of a streamed answer. No generator: an event loop closes a dropped one, also while it is closed."""

    def __init__(
        self, advance: Callable[[Effect], Awaitable[Effect | None]], flight: Flight, effect: Effect | None
    ) -> None:
        self._advance, self._flight, self._effect = advance, flight, effect
        self._is_delivered = False

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> bytes:
        try:
            if self._is_delivered:
                self._effect, self._is_delivered = next(self._flight.steps, None), False
            while (effect := self._effect) and not isinstance(effect, Deliver):
                self._effect = await self._advance(effect)
        except BaseException:
            self._effect = None
            await self.aclose()
            raise
        if not isinstance(effect, Deliver):
            await self.aclose()
            raise StopAsyncIteration
        self._is_delivered = True
        return effect.data

    async def aclose(self) -> None:
        """End the exchange."""
        await self._flight.aclose()


@cache
def derive(stream: type) -> Any:
    """Return ``Pieces`` as a stream of an HTTP library. A class for each answer would be a cycle of references."""
    return type("Answer", (Pieces, stream), {})
