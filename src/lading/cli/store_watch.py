"""A store that another process writes, looked at again and again: it may come late, go, or be damaged."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from lading.cli.request_names import open_existing
from lading.errors import LadingError, StoreError
from lading.evaluate.watching import SessionWatch, Watched
from lading.stores.sqlite import SqliteStore
from lading.stores.sqlite_file import FILE_NAME


class Active(Struct, frozen=True):
    """A session, and when it was last seen to do something."""

    watched: Watched
    age_s: float | None
    """Seconds since then; None where the session carries no times and nothing happened while it was watched."""


class Glance(Struct, frozen=True):
    """What a look at a store gave."""

    sessions: tuple[Active, ...]
    """The most recently active first."""
    troubles: tuple[str, ...] = ()
    """What could not be read, in words."""


class StoreWatch:
    """Follows the sessions of the store in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._store: SqliteStore | None = None
        self._file: tuple[int, int] | None = None
        self._watches: dict[tuple[str, str], SessionWatch] = {}
        self._active: dict[tuple[str, str], float] = {}
        self._looks = 0

    def look(self) -> Glance:
        """The sessions as they are now. Where something cannot be read, what was last known of it, and why."""
        troubles: list[str] = []
        try:
            store = self._opened()
            names = store.sessions()
        except LadingError as error:
            return Glance(self._sorted(), (str(error),))
        for name in names:
            watch = self._watches.get(name)
            is_first_sight = watch is None
            if watch is None:
                watch = self._watches[name] = SessionWatch(store, tenant=name[0], session=name[1])
            try:
                is_changed = watch.look()
            except LadingError as error:
                troubles.append(str(error))
                continue
            # What stood there when the watch began happened at a time nobody saw.
            if is_changed and not (is_first_sight and self._looks == 0):
                self._active[name] = time.time()
        self._looks += 1
        return Glance(self._sorted(), tuple(troubles))

    def close(self) -> None:
        """Let go of the store."""
        store, self._store = self._store, None
        if store is not None:
            with suppress(StoreError):
                store.close()

    def _opened(self) -> SqliteStore:
        """The store as it lies there now: a file that took another's place is another store."""
        try:
            status = os.stat(Path(self._folder) / FILE_NAME)
            file = (status.st_dev, status.st_ino)
        except OSError:
            file = None
        if self._store is None or file != self._file:
            self.close()
            self._store = open_existing(self._folder)
            self._file, self._looks = file, 0
            self._watches, self._active = {}, {}
        return self._store

    def _sorted(self) -> tuple[Active, ...]:
        now = time.time()
        found = []
        for name, watch in self._watches.items():
            times = [at_s for at_s in (watch.seen.last_at_s, self._active.get(name)) if at_s is not None]
            found.append(Active(watch.seen, max(now - max(times), 0.0) if times else None))
        return tuple(sorted(found, key=lambda item: (item.age_s is None, item.age_s or 0.0)))
