"""Locks between processes: a file for each lease, locked by the system, which frees it when its holder dies.

``flock`` and not ``fcntl`` locks: those would end as soon as anything in the process, such as a backup,
opened the file and closed it again, and would not keep two stores of one process apart. A file is there
only while its lock is held, or after its holder was killed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from pathlib import Path

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_SIGNATURE = re.compile(rb"process \d{1,10} on [A-Za-z0-9_.-]{0,255}")

if sys.platform == "win32":
    import msvcrt

    def _locked(descriptor: int) -> bool:
        # Far behind the signature: what is locked there cannot be read by others.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _locked(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class LockFile:
    """A lock that is held. ``try_lock`` makes it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Remove the file and let go of it; the second time, and in a forked child, nothing."""
        try:
            _held.remove(self)
        except KeyError:
            return
        # While it is still locked: who opened it meanwhile finds out in ``_stands``.
        if sys.platform != "win32" and _stands(self._path, self._descriptor):
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Close the file and leave the lock to the process that shares it."""
        os.close(self._descriptor)


_held: set[LockFile] = set()


def try_lock(path: Path) -> LockFile | str:
    """The lock of that path; while somebody else has it, who that is, in words.

    The folder must exist. Raises OSError.
    """
    while True:
        descriptor = os.open(path, _FLAGS, 0o600)
        lock = None
        try:
            if not _locked(descriptor):
                return _holder(descriptor)
            if _stands(path, descriptor):
                lock = LockFile(path, descriptor)
        finally:
            if lock is None:
                os.close(descriptor)
        if lock is not None:
            _sign(lock, descriptor)
            return lock


def _holder(descriptor: int) -> str:
    found = _SIGNATURE.fullmatch(os.read(descriptor, 300))
    if found is None:  # It has not come to signing yet.
        return "another process"
    return "this process" if found[0] == _signature() else found[0].decode()


def _stands(path: Path, descriptor: int) -> bool:
    """Whether the open file is the one at that path: who held it before may just have removed it."""
    try:
        return sys.platform == "win32" or os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sign(lock: LockFile, descriptor: int) -> None:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.ftruncate(descriptor, os.write(descriptor, _signature()))
    except OSError:
        lock.release()
        raise


def _signature() -> bytes:
    host = re.sub(r"[^A-Za-z0-9_.-]", "", platform.node())[:255]
    return f"process {os.getpid()} on {host}".encode()


def _abandon_all() -> None:
    # A child shares its parent's open files, and with them the locks: they would outlive the parent.
    while _held:
        _held.pop().abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
