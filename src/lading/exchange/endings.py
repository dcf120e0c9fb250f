"""End calls whose callers left before the answer did, apart from the code that closes the answer.

Python's garbage collector closes an answer that nobody reads, in whatever thread and place it runs: this thread may
hold the lock of a session or a store, for which recording the reply would wait forever.
"""

from __future__ import annotations

import atexit
import os
import sys
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import RLock


class Endings:
    """The calls of one client that have to be ended."""

    def __init__(self) -> None:
        self.due: deque[Callable[[], None]] = deque()
        """The calls whose end is not done."""
        self.last: object = None
        """The newest that was added."""
        self._lock = RLock()
        self._is_working = False

    def add(self, end: Callable[[], None]) -> None:
        """End a call soon, in a thread. Takes no lock, so it may be called while objects are being collected."""
        self.last = end
        self.due.append(end)
        _working.add(self)
        if not sys.is_finalizing():
            # Not a threading.Thread, whose start waits for locks. If none can be started, the next call does it.
            with suppress(RuntimeError):
                start_new_thread(self.finish, ())
        elif self._lock.acquire(blocking=False):
            # Other threads were stopped, perhaps with locks that they hold.
            self._work()
            self._lock.release()

    def finish(self) -> None:
        """End all calls that were added; return when this is done."""
        with self._lock:
            self._work()

    def _work(self) -> None:
        if self._is_working:
            return  # A listener made a call, or an answer was collected meanwhile.
        self._is_working = True
        try:
            while self.due:
                self.due[0]()
                self.due.popleft()
        finally:
            self._is_working = False
        _working.discard(self)


_working: set[Endings] = set()


@atexit.register
def _finish_all() -> None:
    for endings in tuple(_working):
        endings.finish()


# A child has no call to end, and would wait for a thread that it does not have.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_working.clear)
