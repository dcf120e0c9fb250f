"""Calls that wait for their results, found by id and by name in time that does not grow with their number."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from lading.messages import ToolCall


class OpenCalls:
    """Calls without a result, in order. The id that finds a call may differ from the one it is shown with."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[str, ToolCall]] = {}
        self._ids: Counter[str] = Counter()
        """How many calls wait under each id."""
        self._queues: dict[tuple[str | None, str | None], deque[int]] = {}
        """Numbers of calls by id and name, by one of them, and of all; those taken from another queue as well."""
        self._added = 0

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, call_id: str) -> bool:
        return self._ids[call_id] > 0

    def __iter__(self) -> Iterator[ToolCall]:
        return (call for _, call in self._calls.values())

    def add(self, call_id: str, call: ToolCall) -> None:
        """Add a call, found by this id and by its name."""
        self._added += 1
        self._calls[self._added] = call_id, call
        self._ids[call_id] += 1
        for key in ((call_id, call.name), (call_id, None), (None, call.name), (None, None)):
            self._queues.setdefault(key, deque()).append(self._added)

    def take(self, call_id: str | None, name: str) -> ToolCall | None:
        """Remove and return the first call with this id, one of this name if there is any. ``call_id`` None: with
        any id. Returns None where no call has the id."""
        for key in ((call_id, name), (call_id, None)) if name else ((call_id, None),):
            queue = self._queues.get(key, deque())
            while queue:
                if found := self._calls.pop(queue.popleft(), None):
                    self._ids[found[0]] -= 1
                    if not self._calls:
                        self.clear()  # Forget the ids of calls with results.
                    return found[1]
        return None

    def clear(self) -> None:
        """Remove all calls."""
        self._calls.clear()
        self._ids.clear()
        self._queues.clear()
