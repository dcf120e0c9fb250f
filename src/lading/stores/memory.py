"""Store sessions in memory: for tests, and for sessions that need not outlive their process."""

from __future__ import annotations

import zlib
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from threading import Lock

from lading.addresses import LAST, Names, check_name
from lading.errors import SessionBusy, StoreError
from lading.history.log import Edit, Entry, Log
from lading.stores import NO_BLOBS, SessionStore, Stored, checking, refusals
from lading.stores.artifacts import check_digest
from lading.stores.leases import Lease, Release, acquire, check_lease_request


class _MemorySession:
    def __init__(self) -> None:
        self.entries = Log()
        self.edits: list[Edit] = []
        self.manifests: list[bytes] = []
        self.blobs: dict[str, bytes] = {}
        self.artifacts: list[bytes] = []


class MemoryStore(SessionStore):
    """A SessionStore in memory, lost when the process ends."""

    def __init__(self, label: str = "memory") -> None:
        self._label = label
        self._lock = Lock()
        self._sessions: dict[tuple[str, str], _MemorySession] | None = {}
        self._names: list[tuple[str, str, int]] = []
        """The keys of ``_sessions``, sorted, each with the number of sessions that are older."""
        self._replies: dict[tuple[str, str], dict[str, int]] = {}
        """By tenant and id of a reply, the entry that it is in each session."""
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
        artifacts: Sequence[bytes] = (),
    ) -> None:
        """Append to a session, all or nothing; see SessionStore."""
        if blobs:
            checking.check_blobs(blobs)
        with self._lock:
            sessions = self._check_open()
            if (target := sessions.get((tenant, session))) is None:
                check_name(tenant, what="tenant")
                check_name(session, what="session")
                target = _MemorySession()
            stored = len(target.entries), len(target.edits), len(target.manifests)
            checking.check_continues(entries, edits, call=call, stored=stored)
            for entry in entries:
                target.entries.append(entry)
                if entry.reply_id:
                    self._replies.setdefault((tenant, entry.reply_id), {})[session] = entry.index
            target.entries.compress()
            target.edits.extend(edits)
            target.manifests.extend([zlib.compress(manifest, 1)] if manifest is not None else [])
            target.blobs = {**blobs, **target.blobs}
            target.artifacts.extend(artifacts)
            if (tenant, session) not in sessions:
                insort(self._names, (tenant, session, len(sessions)))
            sessions[tenant, session] = target

    def load(self, tenant: str, session: str, *, verify: bool = False) -> Stored:
        """Load the current state of the session; see SessionStore."""
        with self._lock:
            found = self._find_session(tenant, session)
            last = zlib.decompress(found.manifests[-1]) if found.manifests else None
            stored = Stored(tuple(found.entries), tuple(found.edits), len(found.manifests), last)
        if verify:
            for entry in stored.entries:
                checking.check_message(entry, tenant=tenant, session=session)
        return stored

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        """Iterate over the manifests in call order; see SessionStore."""
        with self._lock:
            return map(zlib.decompress, self._find_session(tenant, session).manifests[max(start, 0) :])

    def entries(self, tenant: str, session: str, *, start: int = 0) -> Iterator[Entry]:
        """Iterate over the entries in order; see SessionStore."""
        with self._lock:
            return iter(self._find_session(tenant, session).entries[max(start, 0) :])

    def artifacts(self, tenant: str, session: str) -> list[bytes]:
        """Return the records of named artifacts; see SessionStore."""
        with self._lock:
            return [*self._find_session(tenant, session).artifacts]

    def blob(self, tenant: str, session: str, *, digest: str) -> bytes:
        """Read the blob of that digest; see SessionStore."""
        check_digest(digest)
        with self._lock:
            found = self._find_session(tenant, session).blobs.get(digest)
        if found is None:
            raise refusals.make_missing_blob_error(tenant, session, digest=digest)
        return found

    def sessions(self, tenant: str = "", *, prefix: str = "", limit: int | None = None) -> Names:
        """List the requested (tenant, session), sorted; see SessionStore."""
        with self._lock:
            self._check_open()
            ends = (tenant, prefix), (tenant or LAST, prefix + LAST)
            start, end = (bisect_left(self._names, at) for at in ends)
            found = [name for name in self._names[start:end] if name[1].startswith(prefix)]
        newest = sorted(found, key=itemgetter(2), reverse=True)[:limit]
        return tuple(sorted((of, name) for of, name, _ in newest))

    def find_reply(self, tenant: str, reply_id: str) -> tuple[str, int] | None:
        """Find the entry of a reply; see SessionStore."""
        with self._lock:
            self._check_open()
            found = [*self._replies.get((tenant, reply_id), {}).items()]
        return found[0] if len(found) == 1 else None

    def counts(self, tenant: str, session: str) -> tuple[int, int, int]:
        """Count the stored items of a session; see SessionStore."""
        with self._lock:
            found = self._check_open().get((tenant, session)) or _MemorySession()
            return len(found.entries), len(found.edits), len(found.manifests)

    def lease(self, tenant: str, session: str, *, wait_s: float | None = 0.0) -> Lease:
        """Acquire the exclusive right to write a session; see SessionStore."""
        check_lease_request(tenant, session, wait_s=wait_s)

        def attempt() -> Release | SessionBusy:
            with self._lock:
                self._check_open()
            mine, leased = object(), self._leased
            if leased.setdefault((tenant, session), mine) is not mine:
                return refusals.make_busy_error(tenant, session, holder="this process")
            return lambda: leased.pop((tenant, session), None)

        return acquire(attempt, wait_s=wait_s)

    def close(self) -> None:
        """Delete all sessions."""
        with self._lock:
            self._sessions = None
            self._names.clear()

    def _check_open(self) -> dict[tuple[str, str], _MemorySession]:
        if self._sessions is None:
            raise StoreError(f"The store {self._label!r} is closed; open a new one.")
        return self._sessions

    def _find_session(self, tenant: str, session: str) -> _MemorySession:
        check_name(tenant, what="tenant")
        check_name(session, what="session")
        sessions = self._check_open()
        found = sessions.get((tenant, session))
        if found is None:
            raise refusals.make_missing_session_error(tenant, session, known=sorted(sessions))
        return found


def open_memory(location: str = "") -> MemoryStore:
    """Make a new, empty store; the location is only its label in errors."""
    return MemoryStore(location or "memory")
