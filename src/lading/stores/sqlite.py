"""Store sessions in one SQLite file, ``FOLDER/lading.db``, and large values in ``FOLDER/artifacts``.

A row has the JSON of a value and a checksum, which every read compares, so that a damaged byte is noticed at once.
A value larger than ``INLINE_BYTES`` is in the artifact store, and its row has the digest. Rows are not compressed:
on recorded sessions zlib at level 1 made the file a seventh smaller, and the rows unreadable to other SQLite tools.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.addresses import LAST, Address, Names
from lading.errors import AddressError, InputError, SessionBusy, StoreFormatError, TamperedError
from lading.history.log import Edit, Entry
from lading.stores import NO_BLOBS, SessionStore, Stored, checking, refusals
from lading.stores.artifacts import FilesystemArtifacts, check_digest
from lading.stores.leases import Lease, Release, acquire, check_lease_request
from lading.stores.lockfiles import LockFile, try_lock
from lading.stores.sqlite_connection import StoreConnection
from lading.stores.sqlite_file import REPLIES, Durability, connect

V = TypeVar("V", Entry, Edit)

INLINE_BYTES = 32 * 1024
_BATCH = 256
_MAX_ITEMS = 1 << 62
"""A larger count is damage; SQLite's largest integer is about twice this."""

Counts: TypeAlias = dict[str, int]
"""Number of items of each kind in a session."""

_KINDS = ("entry", "edit", "manifest")


class SqliteStore(SessionStore):
    """A SessionStore in a folder, made by ``open_sqlite``.

    Several processes may use the folder at once. An append that conflicts with one of another process raises
    StoreError and changes nothing.
    """

    def __init__(self, folder: Path, connection: StoreConnection, *, fsync: bool) -> None:
        self._folder = folder
        self._artifacts_root = folder / "artifacts"
        self._connection = connection
        self._fsync = fsync
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
        artifacts: Sequence[bytes] = (),
    ) -> None:
        """Append to a session, all or nothing; see SessionStore."""
        checking.check_blobs(blobs)
        bodies = {
            "entry": [_dump(entry, what="Entry") for entry in entries],
            "edit": [_dump(edit, what="Edit") for edit in edits],
            "manifest": [] if manifest is None else [manifest],
            "artifact": artifacts,
        }
        files = self._artifacts(tenant, session)
        with self._connection.use("BEGIN IMMEDIATE") as sql:
            number, counts = _find_record(sql, tenant, session) or _insert_record(sql, tenant, session)
            found = _StoredSession(sql, files, tenant, session, number, counts)
            checking.check_continues(entries, edits, call=call, stored=tuple(counts[kind] for kind in _KINDS))
            sql.executemany(
                "INSERT INTO item (session, kind, idx, crc, artifact, body) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (number, kind, index, found.checksum(kind, index, body), *_store_content(body, files))
                    for kind in bodies
                    for index, body in enumerate(bodies[kind], start=counts[kind])
                ],
            )
            sql.executemany(
                "INSERT OR IGNORE INTO blob (session, digest, artifact, body) VALUES (?, ?, ?, ?)",
                [(number, digest, *_store_content(data, files)) for digest, data in blobs.items()],
            )
            if replies := [(_digest(one.reply_id), number, one.index) for one in entries if one.reply_id]:
                sql.execute(REPLIES)
                sql.executemany("INSERT OR REPLACE INTO reply (digest, session, idx) VALUES (?, ?, ?)", replies)
            sql.execute(
                "UPDATE session SET entries = ?, edits = ?, manifests = ? WHERE id = ?",
                (*(counts[kind] + len(bodies[kind]) for kind in _KINDS), number),
            )

    def load(self, tenant: str, session: str, *, verify: bool = False) -> Stored:
        """Load the session as of one moment; see SessionStore."""
        with self._open_session(tenant, session) as found:
            calls = found.counts["manifest"]
            entry_bodies = found.bodies("entry", 0, found.counts["entry"])
            edit_bodies = found.bodies("edit", 0, found.counts["edit"])
            newest = found.bodies("manifest", max(calls - 1, 0), calls)
        entries = tuple(_decode(body, Entry, found.describe("entry", at)) for at, body in enumerate(entry_bodies))
        edits = tuple(_decode(body, Edit, found.describe("edit", at)) for at, body in enumerate(edit_bodies))
        if verify:
            for entry in entries:
                checking.check_message(entry, tenant=tenant, session=session)
        return Stored(entries, edits, calls, newest[0] if newest else None)

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        """Iterate over the manifests in call order; see SessionStore."""
        return (body for _, body in self._read_bodies(tenant, session, "manifest", start=start))

    def entries(self, tenant: str, session: str, *, start: int = 0) -> Iterator[Entry]:
        """Iterate over the entries in order; see SessionStore."""
        bodies = self._read_bodies(tenant, session, "entry", start=start)
        return (_decode(body, Entry, place) for place, body in bodies)

    def artifacts(self, tenant: str, session: str) -> list[bytes]:
        """Return the records of named artifacts; see SessionStore."""
        with self._open_session(tenant, session) as found:
            return found.bodies("artifact", 0, found.counts["artifact"])

    def blob(self, tenant: str, session: str, *, digest: str) -> bytes:
        """Read the blob of that digest; see SessionStore."""
        check_digest(digest)
        with self._open_session(tenant, session) as found:
            return found.blob(digest)

    def sessions(self, tenant: str = "", *, prefix: str = "", limit: int | None = None) -> Names:
        """List the requested (tenant, session), sorted; see SessionStore."""
        with self._connection.use("BEGIN") as sql:
            return _list_names(sql, tenant, prefix=prefix, limit=limit)

    def find_reply(self, tenant: str, reply_id: str) -> tuple[str, int] | None:
        """Find the entry of a reply; see SessionStore."""
        with self._connection.use("BEGIN") as sql:
            if not sql.execute("SELECT 1 FROM sqlite_master WHERE name = 'reply'").fetchone():
                return None
            query = "SELECT name, idx FROM reply JOIN session ON session = id WHERE digest = ? AND tenant = ?"
            found = sql.execute(query, (_digest(reply_id), tenant)).fetchmany(2)
        is_one = len(found) == 1 and isinstance(found[0][1], int)
        return (str(found[0][0]), found[0][1]) if is_one else None

    def counts(self, tenant: str, session: str) -> tuple[int, int, int]:
        """Count the stored items of a session; see SessionStore."""
        with self._connection.use("BEGIN") as sql:
            _, counts = _find_record(sql, tenant, session) or (0, dict.fromkeys(_KINDS, 0))
        return counts["entry"], counts["edit"], counts["manifest"]

    def count_orphans(self) -> int:
        """Count the stored items of sessions that the store does not list. Raises StoreError."""
        with self._connection.use("BEGIN") as sql:
            (count,) = sql.execute("SELECT COUNT(*) FROM pragma_foreign_key_check").fetchone()
            return int(count)

    def lease(self, tenant: str, session: str, *, wait_s: float | None = 0.0) -> Lease:
        """Acquire the exclusive right to write a session, among all stores of this folder; see SessionStore."""
        check_lease_request(tenant, session, wait_s=wait_s)
        # Names are never used as file paths.
        path = self._folder / "locks" / jsonbytes.digest(f"{tenant}/{session}".encode())[:32]

        def attempt() -> Release | SessionBusy:
            with self._connection.use():
                path.parent.mkdir(mode=0o700, exist_ok=True)
                found = try_lock(path)
                if isinstance(found, str):
                    return refusals.make_busy_error(tenant, session, holder=found)
                self._locks.add(found)
                return found.release

        return acquire(attempt, wait_s=wait_s)

    def close(self) -> None:
        """Close the file and release the leases; in a forked child they stay with its parent."""
        try:
            self._connection.close()
        finally:
            for lock in self._locks:
                lock.release()

    def _artifacts(self, tenant: str, session: str) -> FilesystemArtifacts:
        return FilesystemArtifacts(self._artifacts_root, tenant=tenant, session=session, fsync=self._fsync)

    def _read_bodies(self, tenant: str, session: str, kind: str, *, start: int) -> Iterator[tuple[str, bytes]]:
        """Iterate over each item's description for errors and its JSON. A missing session raises at once."""
        with self._open_session(tenant, session) as found:
            items = range(max(start, 0), found.counts[kind])

        def read() -> Iterator[tuple[str, bytes]]:
            for first in items[::_BATCH]:
                last = min(first + _BATCH, items.stop)
                with self._open_session(tenant, session) as found:
                    bodies = found.bodies(kind, first, last)
                yield from zip(map(partial(found.describe, kind), range(first, last)), bodies, strict=True)

        return read()

    @contextmanager
    def _open_session(self, tenant: str, session: str) -> Iterator[_StoredSession]:
        artifacts = self._artifacts(tenant, session)
        with self._connection.use("BEGIN") as sql:
            record = _find_record(sql, tenant, session)
            if record is None:
                raise refusals.make_missing_session_error(tenant, session, known=_list_names(sql, tenant))
            yield _StoredSession(sql, artifacts, tenant, session, *record)


def open_sqlite(folder: str | Path, *, durability: Durability = "full", create: bool = True) -> SqliteStore:
    """Open the store of a folder. With ``create`` a missing folder (not its parents) and store are made.

    Without ``create`` nothing is made, and a store in a folder that cannot be written is opened for reading: its
    ``append`` raises StoreError. ``durability`` applies to the returned object, not to the file. Raises StoreError
    when the folder cannot be used, StoreFormatError when its file is foreign, damaged or of a newer format,
    InputError for an unknown durability.
    """
    connection = connect(Path(folder), durability=durability, create=create)
    return SqliteStore(Path(folder).absolute(), connection, fsync=durability != "off")


class _StoredSession(Struct, frozen=True):
    """One session within a transaction; reads and checks its rows."""

    sql: sqlite3.Connection
    artifacts: FilesystemArtifacts
    tenant: str
    session: str
    number: int
    counts: Counts

    def describe(self, kind: str, index: int) -> str:
        """Describe an item for an error."""
        if kind == "entry":
            return str(Address(self.tenant, self.session, "log", str(index)))
        return f"The {kind} {index} of {self.tenant}/{self.session}"

    def checksum(self, kind: str, index: int, body: bytes) -> int:
        """Compute the checksum of an item's JSON and address; without the address, a damaged SQLite index could
        return the row of another item unnoticed."""
        return zlib.crc32(body, zlib.crc32(f"{self.tenant}/{self.session}/{kind}/{index}".encode()))

    def bodies(self, kind: str, start: int, end: int) -> list[bytes]:
        """Read the JSON of the items ``start`` to ``end`` (excluded). Raises TamperedError."""
        # After the last item, query one more row: there must be none beyond the count.
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
        for index, checksum, artifact, body in rows:
            content = self._read_content(artifact, body, self.describe(kind, index))
            if self.checksum(kind, index, content) != checksum:
                raise _make_tampered_error(self.describe(kind, index))
            found.append(content)
        return found

    def blob(self, digest: str) -> bytes:
        """Read the blob of that digest. Raises AddressError, TamperedError."""
        row = self.sql.execute(
            "SELECT artifact, body FROM blob WHERE session = ? AND digest = ?", (self.number, digest)
        ).fetchone()
        if row is None:
            raise refusals.make_missing_blob_error(self.tenant, self.session, digest=digest)
        place = str(Address(self.tenant, self.session, "blob", digest))
        artifact, body = row
        content = self._read_content(artifact, body, place)
        if jsonbytes.digest(content) != digest:
            raise _make_tampered_error(place)
        return content

    def _read_content(self, artifact: Any, body: Any, place: str) -> bytes:
        if isinstance(artifact, str):
            try:
                return self.artifacts.get(artifact)
            except (AddressError, TamperedError) as error:
                raise TamperedError(f"{place} cannot be read as it was written: {error}") from error
        if not isinstance(body, bytes):
            raise _make_tampered_error(place)
        return body


def _digest(reply_id: str) -> str:
    # An id may be of any length, and hold what is not UTF-8.
    return jsonbytes.digest(reply_id.encode("utf-8", "surrogatepass"))


def _find_record(sql: sqlite3.Connection, tenant: str, session: str) -> tuple[int, Counts] | None:
    row = sql.execute(
        "SELECT id, entries, edits, manifests, "
        "(SELECT COUNT(*) FROM item WHERE item.session = session.id AND kind = 'artifact') "
        "FROM session WHERE tenant = ? AND name = ?",
        (tenant, session),
    ).fetchone()
    if row is None:
        return None
    if not all(isinstance(count, int) and 0 <= count < _MAX_ITEMS for count in row):
        raise _make_tampered_error(f"The record of session {tenant}/{session}")
    return row[0], dict(zip((*_KINDS, "artifact"), row[1:], strict=True))


def _insert_record(sql: sqlite3.Connection, tenant: str, session: str) -> tuple[int, Counts]:
    sql.execute(
        "INSERT INTO session (tenant, name, entries, edits, manifests) VALUES (?, ?, 0, 0, 0)", (tenant, session)
    )
    return sql.execute("SELECT last_insert_rowid()").fetchone()[0], dict.fromkeys((*_KINDS, "artifact"), 0)


def _list_names(sql: sqlite3.Connection, tenant: str = "", *, prefix: str = "", limit: int | None = None) -> Names:
    given = {"tenant = ?": tenant, "name >= ?": prefix, "name < ?": prefix and prefix + LAST}
    wanted = {condition: value for condition, value in given.items() if value}
    query = f"SELECT tenant, name FROM session WHERE {' AND '.join(wanted) or '1'} ORDER BY id DESC LIMIT ?"
    rows = sql.execute(query, (*wanted.values(), -1 if limit is None else limit)).fetchall()
    return tuple(sorted((str(tenant), str(name)) for tenant, name in rows))


def _store_content(body: bytes, artifacts: FilesystemArtifacts) -> tuple[str | None, bytes | None]:
    """Put a large content into the artifact store; return the columns ``artifact`` and ``body``."""
    return (None, body) if len(body) <= INLINE_BYTES else (artifacts.put(body), None)


def _dump(value: Entry | Edit, *, what: str) -> bytes:
    # Rows do not need the canonical JSON of digests, and msgspec's own is eight times as fast. It rejects lone
    # surrogates, though, and writes NaN as null: such values go to the canonical writer.
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


def _decode(body: bytes, type_: type[V], place: str) -> V:
    try:
        return jsonbytes.load_value(body, type_)
    except ValueError as error:
        raise StoreFormatError(
            f"{place} cannot be read by this version of Lading ({error}); use the version that wrote it."
        ) from error


def _make_tampered_error(place: str) -> TamperedError:
    return TamperedError(f"{place} is not as it was written; restore the store from a copy.")
