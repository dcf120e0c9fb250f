"""Count the tokens of a message as its wire will write it.

Another wire's message gains text in translation: a wrapper around arguments that are no object, tags around a
system message, a note in place of a moved image. The count must not be below what is sent.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lading.messages import Message, Text
from lading.models.card import Card
from lading.tokens import Counter
from lading.tokens.meter import Meter
from lading.wire import Wire


def counter_for(wire: Wire, *, card: Card, meter: Meter) -> Callable[[Message], int]:
    """Make a function that counts a message as this wire will write it, framing included."""
    writes_as_it_came = card.conduct.dialect == "first_party"

    def count(message: Message) -> int:
        if writes_as_it_came and (message.origin == wire.name or _is_a_users_text(message)):
            return meter.count_message(message)
        written = wire.read_items(wire.write([message], card))
        # Most texts are equal in both.
        once = replace(meter, counter=_CachedCounter(meter.counter))
        return max(once.count_message(message), sum(map(once.count_message, written)))

    return count


def _is_a_users_text(message: Message) -> bool:
    """Whether every wire writes the message as its only text. Some replace an empty one."""
    [first, *others] = message.parts or (None,)
    if message.role != "user" or others or not isinstance(first, Text):
        return False
    return bool(first.text) and not first.text.isspace()


class _CachedCounter:
    """A counter that remembers the count of each text."""

    def __init__(self, counter: Counter) -> None:
        self.name = counter.name
        self._counter = counter
        self._counts: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Count a text, the first time by the counter."""
        known = self._counts.get(text)
        if known is None:
            known = self._counts[text] = self._counter.count(text)
        return known
