"""Functions of the caller that are given events as they happen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from lading.effects import resolve
from lading.errors import UnknownName
from lading.events import ALL, NAMES, Event
from lading.guard import attempt, describe_error
from lading.validation import check, did_you_mean

_log = logging.getLogger("lading")
WHILE_PUBLISHING = "A subscriber cannot add to its session or make a request of it. Do that after the call."


class _Subscription(Struct, eq=False):
    """A function and the type of event that it is given; None: all of them."""

    function: Callable[[Any], object]
    kind: type[Any] | None
    has_failed: bool = False


class Subscribers:
    """The subscriptions to the events of one session or client."""

    def __init__(self) -> None:
        self.groups: list[list[_Subscription]] = [[]]
        """Its own subscriptions, then those of others that it has joined."""
        self.is_publishing = False

    def join(self, others: Subscribers) -> None:
        """Pass every event on to these subscribers too."""
        self.groups += others.groups

    def subscribe(self, of: str | type[Any], function: Callable[[Any], object]) -> Callable[[], None]:
        """Call a function with each event of a type or name (``lading.events.NAMES``; "*": all), in the thread in
        which it happens; an async one is awaited on the loop of the coroutine that waits for that thread. It cannot
        add to the session or make requests of it. The first error that it raises is logged. Return a function that
        ends the subscription. Raises UnknownName, and InputError for what is no function."""
        check(function, Callable, advice="subscribe(name, function)")  # type: ignore[arg-type]
        added = _Subscription(function, _find_type(of))
        self.groups[0].append(added)

        def unsubscribe() -> None:
            with suppress(ValueError):
                self.groups[0].remove(added)

        return unsubscribe

    def publish(self, *events: Event) -> None:
        """Pass events to their subscribers. Never raises what a subscriber raises."""
        before, self.is_publishing = self.is_publishing, True
        try:
            for event in events:
                for one in [one for group in self.groups for one in group]:
                    if one.kind is None or isinstance(event, one.kind):
                        self._give(event, one)
        finally:
            self.is_publishing = before

    def _give(self, event: Event, one: _Subscription) -> None:
        error = attempt(partial(_tell, one.function, event))
        if error is not None and not one.has_failed:
            one.has_failed = True
            attempt(partial(_log.error, "A subscriber failed: %s", describe_error(error)))


class PublishedEvents(list[Event]):
    """A list of events that passes each new one on."""

    def __init__(self, events: Iterable[Event], publish: Callable[[Event], None]) -> None:
        super().__init__(events)
        self._publish = publish

    def append(self, event: Event) -> None:
        """Add an event and pass it on."""
        super().append(event)
        self._publish(event)


def _tell(function: Callable[[Any], object], event: Event) -> None:
    resolve(function(event))


def _find_type(of: str | type[Any]) -> type[Any] | None:
    if of == ALL:
        return None
    known = NAMES.get(of, None) if isinstance(of, str) else of
    if known is None or known not in NAMES.values():
        name = of if isinstance(of, str) else getattr(of, "__name__", repr(of))
        choices = ", ".join(NAMES)
        raise UnknownName(f"There is no event {name!r}.{did_you_mean(name, NAMES)} Choose one of: {choices}.")
    return known
