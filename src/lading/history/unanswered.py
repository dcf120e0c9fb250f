"""Calls that wait for their results, found by id and name in time that does not grow with their number."""

from __future__ import annotations

from collections import deque
from itertools import count

from lading.messages import ToolCall


class UnansweredCalls:
    """Calls without a result, in order, each under an id that may differ from the one it is shown with."""

    def __init__(self) -> None:
        self.calls: dict[int, ToolCall] = {}
        self._numbers = count()
        self._queues: dict[tuple[str | None, str], deque[int]] = {}
        """Numbers of calls by id (None: any) and name (empty: any)."""

    def __contains__(self, call_id: str) -> bool:
        return bool(self._find(call_id, ""))

    def add(self, call_id: str, call: ToolCall) -> None:
        """Add a call under this id."""
        self.calls[number := next(self._numbers)] = call
        for key in {(found, name) for found in (call_id, None) for name in (call.name, "")}:
            self._queues.setdefault(key, deque()).append(number)

    def take(self, call_id: str | None, name: str) -> ToolCall | None:
        """Remove and return the first call with this id (None: any), preferably of this name; None without one."""
        queue = self._find(call_id, name) or self._find(call_id, "")
        return self.calls.pop(queue.popleft()) if queue else None

    def _find(self, call_id: str | None, name: str) -> deque[int]:
        queue = self._queues.get((call_id, name), deque())
        while queue and queue[0] not in self.calls:
            queue.popleft()
        return queue
