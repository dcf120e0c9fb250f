"""The lock of a session: one call at a time, and none of a function that the running call waits for."""

from __future__ import annotations

from contextvars import ContextVar, Token
from threading import RLock, get_ident

from lading.errors import InputError

WHILE_ASKED = (
    "A function that its session waits for cannot use that session: the call would wait for itself. Use what the "
    "function is given, or call the session after the request."
)
_CALLS: ContextVar[tuple[object, ...]] = ContextVar("_CALLS", default=())
"""The calls of sessions that this code is a part of, also in threads and tasks that they started."""


class SessionLock:
    """A reentrant lock of threads. Raises InputError for what its holder started and waits for."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._holder, self._depth = 0, 0
        self._call: object = None
        """The call that holds it; None: none does."""
        self._token: Token[tuple[object, ...]] | None = None

    def __enter__(self) -> None:
        if self._holder != get_ident() and self._call is not None and self._call in _CALLS.get():
            raise InputError(WHILE_ASKED)
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._holder, self._call = get_ident(), object()
            self._token = _CALLS.set((*_CALLS.get(), self._call))

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth and self._token is not None:
            _CALLS.reset(self._token)
            self._holder, self._call, self._token = 0, None, None
        self._lock.release()
