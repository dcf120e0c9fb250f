"""The log at rest: entries, edits, manifests and blobs of each session of each tenant.

Stores are appended to and read, never rewritten. To add one, write a file with a class that fits
``SessionStore``, a function that opens it at a location, and one line in ``STORES``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Protocol, Self

from msgspec import Struct

from lading import jsonbytes
from lading.addresses import Address, check_name
from lading.errors import AddressError, SessionBusy, StoreError, TamperedError
from lading.log import Edit, Entry
from lading.stores.leases import Lease
from lading.tables import lookup

STORES: dict[str, str] = {
    "memory": "lading.stores.memory:open_memory",
    "sqlite": "lading.stores.sqlite:open_sqlite",
}

NO_BLOBS: Mapping[str, bytes] = MappingProxyType({})


class Stored(Struct, frozen=True):
    """What a session needs to go on: its whole log, and where its manifests stand."""

    entries: tuple[Entry, ...]
    edits: tuple[Edit, ...]
    calls: int = 0
    """How many manifests are stored, one for each call; the index the next one takes."""
    last_manifest: bytes | None = None
    """The newest manifest, on which the next one builds."""


class SessionStore(Protocol):
    """A place for sessions. Safe to use from several threads; a context manager that closes it.

    Tenant and session must be legal names (``addresses.check_name``), else AddressError. Every method
    raises StoreError once the store is closed, and when the place itself fails.
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
    ) -> None:
        """Add to a session, all or nothing; the first append makes the session.

        Entries and edits must continue the stored indexes. ``call`` is the index the manifest has to take;
        without it the manifest takes the next one. ``blobs`` are keyed by their SHA-256; one that is
        already there stays as it is. Raises StoreError when an index does not continue what is stored
        (another writer was faster, or a write was lost), AddressError when a blob has another digest
        than its key, InputError when a value cannot be written as JSON.
        """

    def load(self, tenant: str, session: str, *, verify: bool = False) -> Stored:
        """The session as of one moment. ``verify`` also checks each message against its digest.

        Raises StoreError when there is no such session, TamperedError when something is not as written.
        """

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        """The manifests in call order, from index ``start`` on, a few at a time. Raises like ``load``."""

    def entries(self, tenant: str, session: str, *, start: int = 0) -> Iterator[Entry]:
        """The entries in order, from index ``start`` on, a few at a time. Raises like ``load``."""

    def blob(self, tenant: str, session: str, *, digest: str) -> bytes:
        """The blob of that digest, checked against it.

        Raises AddressError when the session has no such blob, otherwise like ``load``.
        """

    def sessions(self) -> tuple[tuple[str, str], ...]:
        """Every (tenant, session), sorted."""

    def counts(self, tenant: str, session: str) -> tuple[int, int, int]:
        """How many entries, edits and manifests a session has; zeros where there is none. Reads none of them."""

    def lease(self, tenant: str, session: str, *, wait_s: float | None = 0.0) -> Lease:
        """The exclusive right to write a session, which need not exist yet.

        It is kept among those who ask for it: ``append`` does not look at leases. ``wait_s`` is how many
        seconds to wait while somebody else has it, None: as long as it takes. Raises SessionBusy when that
        time is over, InputError for a time that is none.
        """

    def close(self) -> None:
        """Let go of files, connections and leases. Closing twice is harmless."""

    def __enter__(self) -> Self:
        """The store itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""


def open_store(name: str, location: str) -> SessionStore:
    """A store by its short name or dotted path, at a location: a folder for ``sqlite``, made when missing;
    only a label for ``memory``.

    Raises UnknownName when there is no such kind of store, StoreError when it cannot be opened.
    """
    store: SessionStore = lookup(STORES, name, kind="store")(location)
    return store


def check_unused(store: SessionStore | None, tenant: str, *, session: str) -> None:
    """Raises AddressError for a name that is not allowed, StoreError when the store already holds the session."""
    check_name(tenant, what="tenant")
    check_name(session, what="session")
    if store is not None and any(store.counts(tenant, session)):
        raise StoreError(
            f"The store already holds the session {session!r}. Continue it with lading.reopen, or choose another "
            "session name."
        )


def opened(store: SessionStore | str | os.PathLike[str] | None) -> SessionStore:
    """The store itself, the SQLite store of a folder, or for None a new one in memory. Raises StoreError."""
    if store is None:
        return open_store("memory", "")
    return open_store("sqlite", os.fspath(store)) if isinstance(store, str | os.PathLike) else store


def check_continues(indexes: Sequence[int], *, stored: int, what: str) -> None:
    """Raise StoreError unless the indexes go on where ``stored`` items end. ``what`` names the items."""
    for expected, index in enumerate(indexes, start=stored):
        if index != expected:
            raise StoreError(
                f"{what} {index} cannot be added where {expected} comes next: another writer was faster or "
                "a write was lost. Load the session again and add to what is there."
            )


def check_blobs(blobs: Mapping[str, bytes]) -> None:
    """Raise AddressError unless each blob stands under its own digest."""
    for digest, data in blobs.items():
        if jsonbytes.digest(data) != digest:
            raise AddressError(f"The blob given as {digest[:80]!r} has another SHA-256; key it by its own.")


def check_message(entry: Entry, *, tenant: str, session: str) -> None:
    """Raise TamperedError unless the entry's message has the digest the entry records."""
    if jsonbytes.digest(jsonbytes.dump_value(entry.message)) != entry.digest:
        address = Address(tenant, session, "log", str(entry.index))
        raise TamperedError(f"{address} does not have the digest it was recorded with; restore a copy.")


def no_session(tenant: str, session: str, *, known: Sequence[tuple[str, str]]) -> StoreError:
    """The error for a session that is not there; names some that are."""
    shown = ", ".join(f"{known_tenant}/{name}" for known_tenant, name in known[:8])
    more = f" and {len(known) - 8} more" if len(known) > 8 else ""
    holds = f"It holds: {shown}{more}." if known else "It holds no session yet."
    return StoreError(f"The store has no session {session!r} of tenant {tenant!r}. {holds}")


def busy(tenant: str, session: str, *, holder: str) -> SessionBusy:
    """The error for a session that somebody else writes. ``holder``: who, in words."""
    return SessionBusy(
        f"The session {session!r} of tenant {tenant!r} is being written by {holder}. Close it there, wait for "
        "it with a larger wait_s, or use another session name."
    )


def no_blob(tenant: str, session: str, *, digest: str) -> AddressError:
    """The error for a blob that is not there."""
    address = Address(tenant, session, "blob", digest)
    return AddressError(f"{address} points nowhere: the session has no such blob; check the address.")
