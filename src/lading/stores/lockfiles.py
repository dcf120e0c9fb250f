"""Lock sessions between processes: one file per lease, locked by the system, which unlocks it when its holder dies.

``flock`` is used because ``fcntl`` locks end as soon as anything in the process, such as a backup, opens and closes
the file, and do not exclude a second store of the same process. A file exists only while its lock is held, or after
its holder was killed.
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

    def _try_lock_descriptor(descriptor: int) -> bool:
        # Far behind the signature: other processes cannot read a locked byte.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _try_lock_descriptor(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class LockFile:
    """A lock that is held, made by ``try_lock``."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Remove the file and unlock it. Does nothing the second time or in a forked child."""
        try:
            _held.remove(self)
        except KeyError:
            return
        # Removed while it is still locked: a process that opened it meanwhile notices in ``_is_current``.
        if sys.platform != "win32" and _is_current(self._path, self._descriptor):
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Close the file and leave the lock to the process that shares it."""
        os.close(self._descriptor)


_held: set[LockFile] = set()


def try_lock(path: Path) -> LockFile | str:
    """Lock that path, or return a description of the process that holds it.

    The folder must exist. Raises OSError.
    """
    while True:
        descriptor = os.open(path, _FLAGS, 0o600)
        lock = None
        try:
            if not _try_lock_descriptor(descriptor):
                return _read_holder(descriptor)
            if _is_current(path, descriptor):
                lock = LockFile(path, descriptor)
        finally:
            if lock is None:
                os.close(descriptor)
        if lock is not None:
            _write_signature(lock, descriptor)
            return lock


def _read_holder(descriptor: int) -> str:
    found = _SIGNATURE.fullmatch(os.read(descriptor, 300))
    if found is None:  # It has not written its signature yet.
        return "another process"
    return "this process" if found[0] == _make_signature() else found[0].decode()


def _is_current(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one at that path; its last holder may just have removed it."""
    try:
        return sys.platform == "win32" or os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _write_signature(lock: LockFile, descriptor: int) -> None:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.ftruncate(descriptor, os.write(descriptor, _make_signature()))
    except OSError:
        lock.release()
        raise


def _make_signature() -> bytes:
    host = re.sub(r"[^A-Za-z0-9_.-]", "", platform.node())[:255]
    return f"process {os.getpid()} on {host}".encode()


def _abandon_all() -> None:
    # A child shares its parent's open files, and with them the locks: they would outlive the parent.
    while _held:
        _held.pop().abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
