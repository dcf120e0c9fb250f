"""A store that several sessions use: it is closed with the last of them, where one of them opened it."""

from __future__ import annotations

from threading import Lock
from weakref import WeakSet

from lading.stores import SessionStore


class Shared:
    """Who uses a store. One that is no longer referred to uses it no more."""

    def __init__(self, store: SessionStore, *, is_owned: bool) -> None:
        """``is_owned``: it was opened here, and is closed here. False: its caller closes it."""
        self.store = store
        self._is_owned = is_owned
        self._lock = Lock()
        self._users: WeakSet[object] = WeakSet()

    def enter(self, user: object) -> None:
        """One more uses it."""
        with self._lock:
            self._users.add(user)

    def leave(self, user: object) -> None:
        """One uses it no more; leaving twice is harmless."""
        with self._lock:
            self._users.discard(user)
            is_last = self._is_owned and not self._users
        if is_last:
            self.store.close()
