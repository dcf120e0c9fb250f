"""Items that the caller of a session gave last: they show which are new, and which go on with an answer."""

from __future__ import annotations

from collections.abc import Sequence

from lading.history.history import History
from lading.messages import Message
from lading.session.matching import split
from lading.wire import Wire
from lading.wire.coercion import continue_answer, copy_list, read_answer


class GivenItems:
    """A copy of the list that was given last, and of its last answer where that is several items of the format."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.clear()

    def clear(self) -> None:
        """Forget the list: the known messages are others now."""
        self._list: list[object] = []
        self._answer: tuple[int, list[object]] = -1, []

    def find_new(self, given: object, known: list[str], *, history: History) -> tuple[int, object, list[str]]:
        """Return how many of the known messages the given ones start with for sure, the items after these, and the
        known messages: without the last where the items go on with that answer, and have all of it."""
        start, rest = split(given, self._list)
        place, answer = self._answer
        if not answer or place != len(known):
            return start, rest, known
        found = continue_answer(rest, answer, wire=self._wire)
        if not found or history.is_replaced_with_earlier(history.list_newest_known(1)[0].index):
            return start, rest, known
        return max(start - 1, 0), found, known[:-1]

    def keep(self, given: object, messages: Sequence[Message], *, start: int | None, known: int) -> None:
        """Keep a copy of given items, which are these messages after the first ``start`` known ones (None: they are
        not the rest of the history) and make them ``known`` ones. Raises InputError."""
        if start is not None and not self._wire.layout.items.unites:
            # Where items unite, an item may go on with the message before it.
            copied = copy_list(given)
            # An item that is no message of its own cannot be counted.
            is_counted = len(copied) == len(messages) and len(self._list) >= start
            self._list[start:] = copied if is_counted else []
        self._answer = known, read_answer(given, wire=self._wire)
