"""Artifacts as files: ``ROOT/<scope>/ab/cdef...``, each named by its SHA-256.

The scope folder is named by a hash of tenant and session: two names never share a folder, also where the
file system ignores case or forbids some names. Below the root no link is followed, and nothing but a
checked digest becomes part of a path. Files are readable by their owner only.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from lading import jsonbytes
from lading.addresses import Address, check_name
from lading.errors import AddressError, StoreError, TamperedError
from lading.stores.artifacts import check_digest, is_digest

# Flags that some systems lack. Without O_NONBLOCK, opening a planted pipe would wait for ever.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CAN_SYNC_FOLDERS = hasattr(os, "O_DIRECTORY")


class FilesystemArtifacts:
    """The artifacts of one session of one tenant, in files below ``root``.

    A file appears whole or not at all: it is written beside its place and renamed. With ``fsync`` a
    returned ``put`` also survives loss of power. Folders are made by the first ``put``; the parent of
    ``root`` must exist. Raises AddressError when tenant or session is not a legal name.
    """

    def __init__(self, root: Path, *, tenant: str, session: str, fsync: bool = True) -> None:
        check_name(tenant, what="tenant")
        check_name(session, what="session")
        self._tenant = tenant
        self._session = session
        self._root = root
        self._fsync = fsync

    @cached_property
    def _scope(self) -> Path:
        # Not made for an append that puts nothing here: paths are a good part of the time one takes.
        return self._root / jsonbytes.digest(f"{self._tenant}/{self._session}".encode())[:32]

    def put(self, data: bytes) -> str:
        """Keep the bytes and return their SHA-256 in hex. Putting the same bytes again changes nothing.

        Raises StoreError when they cannot be kept, TamperedError when other bytes lie under that digest.
        """
        digest = jsonbytes.digest(data)
        if digest in self:
            self.get(digest)
            return digest
        shard = self._scope / digest[:2]
        with _reported("write", shard / digest[2:]):
            for folder in (self._root, self._scope, shard):
                self._make_folder(folder)
            self._write(shard / digest[2:], data)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of that digest, checked against it.

        Raises AddressError when the digest is malformed or was never put, TamperedError when what lies
        there is not what was put, StoreError when it cannot be read.
        """
        path = self._find(check_digest(digest))
        address = Address(self._tenant, self._session, "blob", digest)
        if path is None:
            raise AddressError(f"{address} points nowhere; check the address, or restore {self._scope}.")
        with _reported("read", path):
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
            with _reported("read", place):
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
    """Make what was created or renamed in a folder survive loss of power, where the system can do that."""
    if _CAN_SYNC_FOLDERS:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _reported(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"Cannot {verb} {path}: {error.strerror}; check free space and permissions of that folder."
        ) from error
