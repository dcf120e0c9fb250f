"""What the caller of a session gave last, as items: to find new ones, and those that go on with an answer."""

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

    def split(self, given: object) -> tuple[int, object]:
        """Return how many of the known messages the given list starts with for sure, and its other items."""
        # Where items unite, an item may go on with the message before it.
        return split(given, [] if self._wire.layout.items.unites else self._list)

    def continue_answer(self, given: object, history: History, known: int) -> list[object] | None:
        """Return the given items after those of the last answer, where they go on with it; None where they do not,
        or it is not the last of the ``known`` messages any more, or is shown in one with earlier messages."""
        place, answer = self._answer
        found = continue_answer(given, answer, wire=self._wire) if place == known and answer else None
        is_alone = found and not history.is_replaced_with_earlier(history.list_newest_known(1)[0].index)
        return found if is_alone else None

    def keep(self, given: object, messages: Sequence[Message], *, start: int | None, known: int) -> None:
        """Keep a copy of given items, which are these messages after the first ``start`` known ones (None: they are
        not the rest of the history) and make them ``known`` ones. Raises InputError."""
        if start is not None:
            copied = copy_list(given)
            # An item that is no message of its own cannot be counted.
            is_counted = len(copied) == len(messages) and len(self._list) >= start
            self._list[start:] = copied if is_counted else []
        self._answer = known, read_answer(given, wire=self._wire)
