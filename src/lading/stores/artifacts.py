"""Store artifacts, which are immutable bytes, as files ``ROOT/<scope>/ab/cdef...`` named by SHA-256.

The scope is a hash of tenant and session: two sessions never share a folder, even where the file system ignores
case or forbids some names, and knowing a digest never gives access to another tenant's content. Below the root no
link is followed, and only checked digests become part of a path. Files are readable by their owner only.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lading import jsonbytes
from lading.addresses import Address, check_name
from lading.errors import AddressError, StoreError, TamperedError
from lading.lazy import lazy

# Some systems lack some flags. Without O_NONBLOCK, opening a planted pipe would block without end.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CAN_SYNC_FOLDERS = hasattr(os, "O_DIRECTORY")


_DIGEST = re.compile(r"[0-9a-f]{64}")


class FilesystemArtifacts:
    """The artifacts of one session of one tenant, in files below ``root``.

    A file appears whole or not at all: it is written under another name and renamed. With ``fsync`` a finished
    ``put`` also survives loss of power. Folders are made by the first ``put``; the parent of ``root`` must exist.
    Raises AddressError when tenant or session is not a legal name.
    """

    def __init__(self, root: Path, *, tenant: str, session: str, fsync: bool = True) -> None:
        check_name(tenant, what="tenant")
        check_name(session, what="session")
        self._tenant = tenant
        self._session = session
        self._root = root
        self._fsync = fsync

    @lazy
    def _scope(self) -> Path:
        # Computed only when needed: paths are a good part of the time of an append.
        return self._root / jsonbytes.digest(f"{self._tenant}/{self._session}".encode())[:32]

    def put(self, data: bytes) -> str:
        """Store the bytes and return their SHA-256 in hex. Putting the same bytes again changes nothing.

        Raises StoreError when they cannot be stored, TamperedError when that digest has other bytes.
        """
        digest = jsonbytes.digest(data)
        if digest in self:
            self.get(digest)
            return digest
        shard = self._scope / digest[:2]
        with _translate_errors("write", shard / digest[2:]):
            for folder in (self._root, self._scope, shard):
                self._make_folder(folder)
            self._write(shard / digest[2:], data)
        return digest

    def get(self, digest: str) -> bytes:
        """Read the bytes of that digest, and verify them.

        Raises AddressError when the digest is malformed or unknown, TamperedError when the bytes were changed,
        StoreError when they cannot be read.
        """
        path = self._find(check_digest(digest))
        address = Address(self._tenant, self._session, "blob", digest)
        if path is None:
            raise AddressError(f"{address} points nowhere; check the address, or restore {self._scope}.")
        with _translate_errors("read", path):
            data = _read(path)
        if jsonbytes.digest(data) != digest:
            raise TamperedError(f"{address} was changed after it was written; restore {path} from a copy.")
        return data

    def __contains__(self, digest: str) -> bool:
        return is_digest(digest) and self._find(digest) is not None

    def _find(self, digest: str) -> Path | None:
        shard = self._scope / digest[:2]
        path = shard / digest[2:]
        for place, fits in ((self._scope, stat.S_ISDIR), (shard, stat.S_ISDIR), (path, stat.S_ISREG)):
            with _translate_errors("read", place):
                try:
                    mode = os.lstat(place).st_mode
                except FileNotFoundError:
                    return None
            if not fits(mode):
                raise TamperedError(f"{place} is not what Lading wrote there (a link?); remove it.")
        return path

    def _make_folder(self, folder: Path) -> None:
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            return
        if self._fsync:
            sync_folder(folder.parent)

    def _write(self, path: Path, data: bytes) -> None:
        descriptor, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if self._fsync:
                    os.fsync(descriptor)
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
        if self._fsync:
            sync_folder(path.parent)


def _read(path: Path) -> bytes:
    descriptor = os.open(path, _READ)
    with open(descriptor, "rb") as file:
        return file.read()


def sync_folder(folder: Path) -> None:
    """Make files created or renamed in a folder survive loss of power, where the system supports that."""
    if _CAN_SYNC_FOLDERS:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _translate_errors(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"Cannot {verb} {path}: {error.strerror}; check free space and permissions of that folder."
        ) from error


def is_digest(text: str) -> bool:
    """Whether the text is a SHA-256 in Lading's form: 64 characters of 0-9 a-f."""
    return _DIGEST.fullmatch(text) is not None


def check_digest(text: str) -> str:
    """Return the digest. Raises AddressError for any other text, so that none is used as a path."""
    if not is_digest(text):
        raise AddressError(f"{text[:100]!r} does not name an artifact; give a SHA-256: 64 of 0-9 a-f.")
    return text
