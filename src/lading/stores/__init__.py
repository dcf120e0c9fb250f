"""Store the entries, edits, manifests and blobs of each session of each tenant.

Stores are append-only. To add one, write a file with a class that implements ``SessionStore`` and a function that
opens it at a location; one line in ``STORES`` lets ``open_store`` open it by name. Knows no strategy and no content
of a manifest. Start with ``SessionStore`` below, then ``memory.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from threading import Lock
from types import MappingProxyType, TracebackType
from typing import Protocol, Self
from weakref import WeakSet

from msgspec import Struct

from lading.addresses import Names, check_name
from lading.errors import InputError, StoreError, TamperedError
from lading.history.log import Edit, Entry
from lading.registry import lookup
from lading.stores.leases import Lease

STORES: dict[str, str] = {
    "memory": "lading.stores.memory:open_memory",
    "sqlite": "lading.stores.sqlite:open_sqlite",
}
"""By the name that ``open_store`` takes. A ``Session`` takes a store or a folder; commands read SQLite alone."""

NO_BLOBS: Mapping[str, bytes] = MappingProxyType({})


class Stored(Struct, frozen=True):
    """The stored state of a session: its whole log, and the number of its manifests."""

    entries: tuple[Entry, ...]
    edits: tuple[Edit, ...]
    calls: int = 0
    """Number of stored manifests, one for each call; the index of the next one."""
    last_manifest: bytes | None = None
    """The newest manifest, on which the next one builds."""


class SessionStore(Protocol):
    """A store of sessions. Thread-safe; a context manager that closes it.

    Tenant and session must be legal names (``addresses.check_name``), else AddressError. Every method raises
    StoreError once the store is closed, and when the storage fails.
    """

    def append(
        self,
        tenant: str,
        session: str,
        *,
        entries: Sequence[Entry] = (),
        edits: Sequence[Edit] = (),
        manifest: bytes | None = None,
        call: int | None = None,
        blobs: Mapping[str, bytes] = NO_BLOBS,
        artifacts: Sequence[bytes] = (),
    ) -> None:
        """Append to a session, all or nothing; the first append creates the session.

        Entries and edits must continue the stored indexes. ``call`` is the required index of the manifest; without
        it the manifest gets the next one. ``blobs`` are keyed by their SHA-256; an existing blob is kept.
        ``artifacts``: records of named artifacts, as JSON. Raises StoreError when an index does not continue what
        is stored (another writer was faster, or a write was lost), AddressError when a blob has another digest than
        its key, InputError when a value cannot be written as JSON.
        """

    def load(self, tenant: str, session: str, *, verify: bool = False) -> Stored:
        """Load the session as of one moment. ``verify`` also checks each message against its digest.

        Raises StoreError when there is no such session, TamperedError when the data differ from what was written.
        """

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        """Iterate over the manifests in call order, from index ``start`` on, in batches. Raises like ``load``."""

    def entries(self, tenant: str, session: str, *, start: int = 0) -> Iterator[Entry]:
        """Iterate over the entries in order, from index ``start`` on, in batches. Raises like ``load``."""

    def artifacts(self, tenant: str, session: str) -> list[bytes]:
        """Return the records of named artifacts, in order. Raises like ``load``."""

    def blob(self, tenant: str, session: str, *, digest: str) -> bytes:
        """Read the blob of that digest, and verify it.

        Raises AddressError when the session has no such blob, otherwise like ``load``.
        """

    def exists(self, tenant: str, session: str) -> bool:
        """Whether the session holds anything, at a cost that does not grow with the number of sessions."""
        return any(self.counts(tenant, session))

    def sessions(self, tenant: str = "", *, prefix: str = "", limit: int | None = None) -> Names:
        """List every (tenant, session), sorted: those of one tenant where it is given, with names that start with
        ``prefix``, and of these the newest ``limit``."""

    def find_reply(self, tenant: str, reply_id: str) -> tuple[str, int] | None:
        """Find the newest entry of a tenant with that ``reply_id``, at a cost that does not grow with the number of
        sessions. Return its session and its index; None if no session has it, or several have, or if this is not
        supported."""
        del tenant, reply_id
        return None

    def counts(self, tenant: str, session: str) -> tuple[int, int, int]:
        """Count the entries, edits and manifests of a session without reading them; zeros for a missing session."""

    def lease(self, tenant: str, session: str, *, wait_s: float | None = 0.0) -> Lease:
        """Acquire the exclusive right to write a session, which need not exist yet.

        It is advisory: ``append`` does not check leases. ``wait_s`` is how many seconds to wait while another
        writer holds it, None: no limit. Raises SessionBusy when the time is over, InputError for an invalid time.
        """

    def close(self) -> None:
        """Close files, connections and leases. Closing twice is harmless."""

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()


class SharedStore:
    """A store and its users. A user that is no longer referenced is removed."""

    def __init__(self, store: SessionStore, *, is_owned: bool) -> None:
        """``is_owned``: the last user's removal closes the store; otherwise the caller closes it."""
        self.store = store
        self._is_owned = is_owned
        self._lock = Lock()
        self._users: WeakSet[object] = WeakSet()

    def add_user(self, user: object) -> None:
        """Add a user."""
        with self._lock:
            self._users.add(user)

    def remove_user(self, user: object) -> None:
        """Remove a user, and close an owned store after the last one. Removing twice is harmless."""
        with self._lock:
            self._users.discard(user)
            is_last = self._is_owned and not self._users
        if is_last:
            self.store.close()


def open_store(name: str, location: str) -> SessionStore:
    """Open a store by its short name or dotted path, at a location: a folder for ``sqlite``, created if missing;
    only a label for ``memory``.

    Raises UnknownName when there is no such kind of store, StoreError when it cannot be opened.
    """
    open_at: Callable[[str], SessionStore] = lookup(STORES, name, kind="store")
    return open_at(location)


def read_manifests(store: SessionStore, owner: tuple[str, str], *, calls: int, start: int = 0) -> Iterator[bytes]:
    """Iterate over the manifests of a loaded session, from index ``start`` to its number of ``calls``. Those that a
    writer adds after ``SessionStore.load`` show entries and edits that were not loaded, and are left out.
    ``owner``: tenant and session.

    Raises like ``SessionStore.load``, TamperedError when there are fewer.
    """
    found = start
    for data in islice(store.manifests(*owner, start=start), calls - start):
        found += 1
        yield data
    if found < calls:
        name = "/".join(owner)
        raise TamperedError(f"The store has {found:,} of the {calls:,} manifests of {name}; restore a copy.")


def check_unused(store: SessionStore | None, tenant: str, *, session: str) -> None:
    """Raise AddressError for an illegal name, StoreError when the store already holds the session."""
    check_name(tenant, what="tenant")
    check_name(session, what="session")
    if store is not None and store.exists(tenant, session):
        raise StoreError(
            f"The store already holds the session {session!r}. Continue it with lading.engine.reopen, or choose "
            "another session name."
        )


def resolve_store(store: SessionStore | str | os.PathLike[str] | None) -> SessionStore:
    """Return a store unchanged, open the SQLite store of a folder, or create a store in memory for None. Raises
    StoreError when it cannot be opened, InputError for an object that lacks a method of ``SessionStore``."""
    if store is None:
        return open_store("memory", "")
    if isinstance(store, str | os.PathLike):
        return open_store("sqlite", os.fspath(store))
    if lacking := [name for name in dir(SessionStore) if not name.startswith("_") and not hasattr(store, name)]:
        raise InputError(
            f"The store {type(store).__name__} has no {', '.join(lacking)}; see lading.stores.SessionStore."
        )
    return store
