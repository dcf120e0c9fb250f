"""Sessions in memory: for tests, and for sessions that need not outlive their process."""

from __future__ import annotations

import zlib
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from threading import Lock

from lading import stores
from lading.addresses import LAST, Names, check_name
from lading.errors import SessionBusy, StoreError
from lading.history.log import Edit, Entry
from lading.stores import NO_BLOBS, SessionStore, Stored
from lading.stores.artifacts import check_digest
from lading.stores.leases import Lease, LetGo, check_lease, wait_for


class _Session:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.edits: list[Edit] = []
        self.manifests: list[bytes] = []
        self.blobs: dict[str, bytes] = {}


class MemoryStore(SessionStore):
    """A SessionStore that is gone when the process ends."""

    def __init__(self, label: str = "memory") -> None:
        self._label = label
        self._lock = Lock()
        self._sessions: dict[tuple[str, str], _Session] | None = {}
        self._names: list[tuple[str, str, int]] = []
        """The keys of ``_sessions``, sorted, each with its place in time."""
        self._leased: dict[tuple[str, str], object] = {}

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
        """Add to a session, all or nothing; see SessionStore."""
        check_name(tenant, what="tenant")
        check_name(session, what="session")
        stores.check_blobs(blobs)
        with self._lock:
            sessions = self._open()
            target = sessions.get((tenant, session)) or _Session()
            stores.check_continues([entry.index for entry in entries], stored=len(target.entries), what="Entry")
            stores.check_continues([edit.index for edit in edits], stored=len(target.edits), what="Edit")
            if call is not None:
                stores.check_continues([call], stored=len(target.manifests), what="Manifest")
            target.entries.extend(entries)
            target.edits.extend(edits)
            target.manifests.extend([zlib.compress(manifest, 1)] if manifest is not None else [])
            target.blobs = {**blobs, **target.blobs}
            if (tenant, session) not in sessions:
                insort(self._names, (tenant, session, len(sessions)))
            sessions[tenant, session] = target

    def load(self, tenant: str, session: str, *, verify: bool = False) -> Stored:
        """The session as of now; see SessionStore."""
        with self._lock:
            found = self._session(tenant, session)
            last = zlib.decompress(found.manifests[-1]) if found.manifests else None
            stored = Stored(tuple(found.entries), tuple(found.edits), len(found.manifests), last)
        if verify:
            for entry in stored.entries:
                stores.check_message(entry, tenant=tenant, session=session)
        return stored

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        """The manifests in call order; see SessionStore."""
        with self._lock:
            return map(zlib.decompress, self._session(tenant, session).manifests[max(start, 0) :])

    def entries(self, tenant: str, session: str, *, start: int = 0) -> Iterator[Entry]:
        """The entries in order; see SessionStore."""
        with self._lock:
            return iter(self._session(tenant, session).entries[max(start, 0) :])

    def blob(self, tenant: str, session: str, *, digest: str) -> bytes:
        """The blob of that digest; see SessionStore."""
        check_digest(digest)
        with self._lock:
            found = self._session(tenant, session).blobs.get(digest)
        if found is None:
            raise stores.no_blob(tenant, session, digest=digest)
        return found

    def sessions(self, tenant: str = "", *, prefix: str = "", limit: int | None = None) -> Names:
        """The (tenant, session) that are asked for, sorted; see SessionStore."""
        with self._lock:
            self._open()
            ends = (tenant, prefix), (tenant or LAST, prefix + LAST)
            start, end = (bisect_left(self._names, at) for at in ends)
            found = [name for name in self._names[start:end] if name[1].startswith(prefix)]
        newest = sorted(found, key=itemgetter(2), reverse=True)[:limit]
        return tuple(sorted((of, name) for of, name, _ in newest))

    def counts(self, tenant: str, session: str) -> tuple[int, int, int]:
        """How much of a session is stored; see SessionStore."""
        with self._lock:
            found = self._open().get((tenant, session)) or _Session()
            return len(found.entries), len(found.edits), len(found.manifests)

    def lease(self, tenant: str, session: str, *, wait_s: float | None = 0.0) -> Lease:
        """The exclusive right to write a session; see SessionStore."""
        check_lease(tenant, session, wait_s=wait_s)

        def attempt() -> LetGo | SessionBusy:
            with self._lock:
                self._open()
            mine, leased = object(), self._leased
            if leased.setdefault((tenant, session), mine) is not mine:
                return stores.busy(tenant, session, holder="this process")
            return lambda: leased.pop((tenant, session), None)

        return wait_for(attempt, wait_s=wait_s)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._sessions = None
            self._names.clear()

    def _open(self) -> dict[tuple[str, str], _Session]:
        if self._sessions is None:
            raise StoreError(f"The store {self._label!r} is closed; open a new one.")
        return self._sessions

    def _session(self, tenant: str, session: str) -> _Session:
        check_name(tenant, what="tenant")
        check_name(session, what="session")
        sessions = self._open()
        found = sessions.get((tenant, session))
        if found is None:
            raise stores.no_session(tenant, session, known=sorted(sessions))
        return found


def open_memory(location: str = "") -> MemoryStore:
    """A new, empty store; the location is only its label in errors."""
    return MemoryStore(location or "memory")
