"""Sessions in one SQLite file: ``FOLDER/lading.db``, with what is large in ``FOLDER/artifacts``.

A row holds the JSON of a value and a checksum, which every read compares, so that a damaged byte is noticed
at once. What is larger than ``INLINE_BYTES`` lies in the artifact store, and its row keeps the digest.
Rows are not compressed: on recorded sessions zlib at level 1 made the file a seventh smaller, and the rows
unreadable to any other SQLite tool.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

import msgspec
from msgspec import Struct

from lading import jsonbytes, stores
from lading.addresses import LAST, Address, Names
from lading.errors import AddressError, InputError, SessionBusy, StoreError, StoreFormatError, TamperedError
from lading.history.log import Edit, Entry
from lading.stores import NO_BLOBS, SessionStore, Stored
from lading.stores.artifacts import check_digest
from lading.stores.artifacts.filesystem import FilesystemArtifacts
from lading.stores.leases import Lease, LetGo, check_lease, wait_for
from lading.stores.lockfiles import LockFile, try_lock
from lading.stores.sqlite_file import Durability, connect, reported

V = TypeVar("V", Entry, Edit)

INLINE_BYTES = 32 * 1024
_BATCH = 256
_MOST_ITEMS = 1 << 62
"""SQLite has no larger numbers than twice that."""

Counts: TypeAlias = dict[str, int]
"""How many items of each kind a session holds."""

_KINDS = ("entry", "edit", "manifest")


class SqliteStore(SessionStore):
    """A SessionStore in a folder; ``open_sqlite`` makes it.

    Several processes may use the folder at once. An append that does not continue what another process
    has stored meanwhile raises StoreError and changes nothing.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, *, fsync: bool) -> None:
        self._folder = folder
        self._artifacts_root = folder / "artifacts"
        self._connection: sqlite3.Connection | None = connection
        self._fsync = fsync
        self._process = os.getpid()
        self._lock = Lock()
        self._locks: WeakSet[LockFile] = WeakSet()

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
        stores.check_blobs(blobs)
        bodies = {
            "entry": [_dump(entry, what="Entry") for entry in entries],
            "edit": [_dump(edit, what="Edit") for edit in edits],
            "manifest": [] if manifest is None else [manifest],
        }
        artifacts = self._artifacts(tenant, session)
        with self._transaction("BEGIN IMMEDIATE") as sql:
            number, counts = _record(sql, tenant, session) or _new_record(sql, tenant, session)
            found = _Session(sql, artifacts, tenant, session, number, counts)
            stores.check_continues([entry.index for entry in entries], stored=counts["entry"], what="Entry")
            stores.check_continues([edit.index for edit in edits], stored=counts["edit"], what="Edit")
            if call is not None:
                stores.check_continues([call], stored=counts["manifest"], what="Manifest")
            sql.executemany(
                "INSERT INTO item (session, kind, idx, crc, artifact, body) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (number, kind, index, found.crc(kind, index, body), *_placed(body, artifacts))
                    for kind in _KINDS
                    for index, body in enumerate(bodies[kind], start=counts[kind])
                ],
            )
            sql.executemany(
                "INSERT OR IGNORE INTO blob (session, digest, artifact, body) VALUES (?, ?, ?, ?)",
                [(number, digest, *_placed(data, artifacts)) for digest, data in blobs.items()],
            )
            sql.execute(
                "UPDATE session SET entries = ?, edits = ?, manifests = ? WHERE id = ?",
                (*(counts[kind] + len(bodies[kind]) for kind in _KINDS), number),
            )

    def load(self, tenant: str, session: str, *, verify: bool = False) -> Stored:
        """The session as of one moment; see SessionStore."""
        with self._reading(tenant, session) as found:
            calls = found.counts["manifest"]
            entry_bodies = found.bodies("entry", 0, found.counts["entry"])
            edit_bodies = found.bodies("edit", 0, found.counts["edit"])
            newest = found.bodies("manifest", max(calls - 1, 0), calls)
        entries = tuple(_value(body, Entry, found.place("entry", at)) for at, body in enumerate(entry_bodies))
        edits = tuple(_value(body, Edit, found.place("edit", at)) for at, body in enumerate(edit_bodies))
        if verify:
            for entry in entries:
                stores.check_message(entry, tenant=tenant, session=session)
        return Stored(entries, edits, calls, newest[0] if newest else None)

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        """The manifests in call order; see SessionStore."""
        return (body for _, body in self._bodies(tenant, session, "manifest", start=start))

    def entries(self, tenant: str, session: str, *, start: int = 0) -> Iterator[Entry]:
        """The entries in order; see SessionStore."""
        bodies = self._bodies(tenant, session, "entry", start=start)
        return (_value(body, Entry, place) for place, body in bodies)

    def blob(self, tenant: str, session: str, *, digest: str) -> bytes:
        """The blob of that digest; see SessionStore."""
        check_digest(digest)
        with self._reading(tenant, session) as found:
            return found.blob(digest)

    def sessions(self, tenant: str = "", *, prefix: str = "", limit: int | None = None) -> Names:
        """The (tenant, session) that are asked for, sorted; see SessionStore."""
        with self._transaction("BEGIN") as sql:
            return _sessions(sql, tenant, prefix=prefix, limit=limit)

    def counts(self, tenant: str, session: str) -> tuple[int, int, int]:
        """How much of a session is stored; see SessionStore."""
        with self._transaction("BEGIN") as sql:
            _, counts = _record(sql, tenant, session) or (0, dict.fromkeys(_KINDS, 0))
        return counts["entry"], counts["edit"], counts["manifest"]

    def lease(self, tenant: str, session: str, *, wait_s: float | None = 0.0) -> Lease:
        """The exclusive right to write a session, among all stores of this folder; see SessionStore."""
        check_lease(tenant, session, wait_s=wait_s)
        # Names are never used as file paths.
        path = self._folder / "locks" / jsonbytes.digest(f"{tenant}/{session}".encode())[:32]

        def attempt() -> LetGo | SessionBusy:
            with self._lock, reported(self._folder):
                self._open()
                path.parent.mkdir(mode=0o700, exist_ok=True)
                found = try_lock(path)
                if isinstance(found, str):
                    return stores.busy(tenant, session, holder=found)
                self._locks.add(found)
                return found.release

        return wait_for(attempt, wait_s=wait_s)

    def close(self) -> None:
        """Close the file. Its write-ahead log is folded into it unless another process uses it."""
        with self._lock, reported(self._folder):
            for lock in self._locks:
                lock.release()
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError(f"The store in {self._folder} is closed; open it again.")
        if self._process != os.getpid():  # SQLite's locks do not survive a fork.
            raise StoreError(f"The store in {self._folder} was opened before a fork; open it again here.")
        return self._connection

    def _artifacts(self, tenant: str, session: str) -> FilesystemArtifacts:
        return FilesystemArtifacts(self._artifacts_root, tenant=tenant, session=session, fsync=self._fsync)

    def _bodies(self, tenant: str, session: str, kind: str, *, start: int) -> Iterator[tuple[str, bytes]]:
        """What to call each item in an error, and its JSON; the session is looked for at once."""
        with self._reading(tenant, session) as found:
            items = range(max(start, 0), found.counts[kind])

        def read() -> Iterator[tuple[str, bytes]]:
            for first in items[::_BATCH]:
                last = min(first + _BATCH, items.stop)
                with self._reading(tenant, session) as found:
                    bodies = found.bodies(kind, first, last)
                yield from zip(map(partial(found.place, kind), range(first, last)), bodies, strict=True)

        return read()

    @contextmanager
    def _reading(self, tenant: str, session: str) -> Iterator[_Session]:
        artifacts = self._artifacts(tenant, session)
        with self._transaction("BEGIN") as sql:
            record = _record(sql, tenant, session)
            if record is None:
                raise stores.no_session(tenant, session, known=_sessions(sql))
            yield _Session(sql, artifacts, tenant, session, *record)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, reported(self._folder):
            connection = self._open()
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")


def open_sqlite(folder: str | Path, *, durability: Durability = "full", create: bool = True) -> SqliteStore:
    """The store of a folder. With ``create`` a missing folder (not its parents) and store are made.

    Without ``create`` nothing is made, and a store in a folder that cannot be written is opened for
    reading: its ``append`` then raises StoreError. ``durability`` says what an append survives; it belongs
    to this opening, not to the file. Raises StoreError when the place cannot be used, StoreFormatError when
    what lies there is foreign, damaged or of a newer format, InputError for an unknown durability.
    """
    path = Path(folder)
    return SqliteStore(path, connect(path, durability=durability, create=create), fsync=durability != "off")


class _Session(Struct, frozen=True):
    """One session within a transaction; reads and checks its rows."""

    sql: sqlite3.Connection
    artifacts: FilesystemArtifacts
    tenant: str
    session: str
    number: int
    counts: Counts

    def place(self, kind: str, index: int) -> str:
        """What to call an item in an error."""
        if kind == "entry":
            return str(Address(self.tenant, self.session, "log", str(index)))
        return f"The {kind} {index} of {self.tenant}/{self.session}"

    def crc(self, kind: str, index: int, body: bytes) -> int:
        """The checksum of an item: of its JSON and of where it belongs, as a damaged SQLite index can lead
        to the row of another item."""
        return zlib.crc32(body, zlib.crc32(f"{self.tenant}/{self.session}/{kind}/{index}".encode()))

    def bodies(self, kind: str, start: int, end: int) -> list[bytes]:
        """The JSON of the items ``start`` to ``end`` (excluded). Raises TamperedError."""
        # Where the last item is asked for, one row more is too: there must be none beyond the count.
        limit = end - start + (end == self.counts[kind])
        rows = self.sql.execute(
            "SELECT idx, crc, artifact, body FROM item "
            "WHERE session = ? AND kind = ? AND idx >= ? ORDER BY idx LIMIT ?",
            (self.number, kind, start, limit),
        ).fetchall()
        if len(rows) != end - start or any(row[0] != at for at, row in enumerate(rows, start)):
            raise TamperedError(
                f"Records {start} to {end - 1} ({kind}) of {self.tenant}/{self.session} are incomplete or "
                "duplicated; restore the store from a copy."
            )
        found = []
        for index, crc, artifact, body in rows:
            content = self._content(artifact, body, self.place(kind, index))
            if self.crc(kind, index, content) != crc:
                raise _changed(self.place(kind, index))
            found.append(content)
        return found

    def blob(self, digest: str) -> bytes:
        """The blob of that digest. Raises AddressError, TamperedError."""
        row = self.sql.execute(
            "SELECT artifact, body FROM blob WHERE session = ? AND digest = ?", (self.number, digest)
        ).fetchone()
        if row is None:
            raise stores.no_blob(self.tenant, self.session, digest=digest)
        place = str(Address(self.tenant, self.session, "blob", digest))
        artifact, body = row
        content = self._content(artifact, body, place)
        if jsonbytes.digest(content) != digest:
            raise _changed(place)
        return content

    def _content(self, artifact: Any, body: Any, place: str) -> bytes:
        if isinstance(artifact, str):
            try:
                return self.artifacts.get(artifact)
            except (AddressError, TamperedError) as error:
                raise TamperedError(f"{place} cannot be read as it was written: {error}") from error
        if not isinstance(body, bytes):
            raise _changed(place)
        return body


def _record(sql: sqlite3.Connection, tenant: str, session: str) -> tuple[int, Counts] | None:
    row = sql.execute(
        "SELECT id, entries, edits, manifests FROM session WHERE tenant = ? AND name = ?", (tenant, session)
    ).fetchone()
    if row is None:
        return None
    if not all(isinstance(count, int) and 0 <= count < _MOST_ITEMS for count in row):
        raise _changed(f"The record of session {tenant}/{session}")
    return row[0], dict(zip(_KINDS, row[1:], strict=True))


def _new_record(sql: sqlite3.Connection, tenant: str, session: str) -> tuple[int, Counts]:
    sql.execute(
        "INSERT INTO session (tenant, name, entries, edits, manifests) VALUES (?, ?, 0, 0, 0)", (tenant, session)
    )
    return sql.execute("SELECT last_insert_rowid()").fetchone()[0], dict.fromkeys(_KINDS, 0)


def _sessions(sql: sqlite3.Connection, tenant: str = "", *, prefix: str = "", limit: int | None = None) -> Names:
    given = {"tenant = ?": tenant, "name >= ?": prefix, "name < ?": prefix and prefix + LAST}
    wanted = {condition: value for condition, value in given.items() if value}
    query = f"SELECT tenant, name FROM session WHERE {' AND '.join(wanted) or '1'} ORDER BY id DESC LIMIT ?"
    rows = sql.execute(query, (*wanted.values(), -1 if limit is None else limit)).fetchall()
    return tuple(sorted((str(tenant), str(name)) for tenant, name in rows))


def _placed(body: bytes, artifacts: FilesystemArtifacts) -> tuple[str | None, bytes | None]:
    """The columns ``artifact`` and ``body`` of a content."""
    return (None, body) if len(body) <= INLINE_BYTES else (artifacts.put(body), None)


def _dump(value: Entry | Edit, *, what: str) -> bytes:
    # Reading does not need the one form of JSON under digests, and msgspec writes its own eight times as
    # fast. It refuses lone surrogates, though, and makes a NaN null: then the slow way decides.
    try:
        quick = msgspec.json.encode(value)
        if b"null" not in quick:
            return quick
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    try:
        return jsonbytes.dump_value(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} {value.index} cannot be stored as JSON: {error}; correct that value.") from error


def _value(body: bytes, type_: type[V], place: str) -> V:
    try:
        return jsonbytes.load_value(body, type_)
    except ValueError as error:
        raise StoreFormatError(
            f"{place} cannot be read by this version of Lading ({error}); use the version that wrote it."
        ) from error


def _changed(place: str) -> TamperedError:
    return TamperedError(f"{place} is not as it was written; restore the store from a copy.")
