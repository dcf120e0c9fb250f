"""Leases: the exclusive right to write one session, and waiting for it."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeAlias

from lading.addresses import check_name
from lading.errors import InputError, SessionBusy

Release: TypeAlias = Callable[[], object]

_LONGEST_S = 2**53
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05


class Lease:
    """The exclusive right to write one session. A context manager that releases it.

    It ends with ``release``, when it is no longer referenced, when its store is closed, and when the process ends
    for any reason. A forked child does not hold its parent's leases.
    """

    def __init__(self, release: Release) -> None:
        """``release`` is called once, from any thread; it must not refer to the lease."""
        self._end = weakref.finalize(self, release)

    def release(self) -> None:
        """Release the lease. Releasing twice is harmless."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def check_lease_request(tenant: str, session: str, *, wait_s: float | None) -> None:
    """Raise AddressError for an illegal name, InputError for an invalid ``wait_s``."""
    check_name(tenant, what="tenant")
    check_name(session, what="session")
    given: object = wait_s
    if given is not None and not (isinstance(given, int | float) and 0 <= given < _LONGEST_S):
        raise InputError(f"wait_s is {wait_s!r}; give seconds from 0 on, or None to wait as long as it takes.")


def acquire(attempt: Callable[[], Release | SessionBusy], *, wait_s: float | None) -> Lease:
    """Repeat an attempt for ``wait_s`` seconds, the first time at once, and return the lease it acquires.

    An attempt returns a function that releases the session, or the error that names its holder. Raises the last
    error when the time is over.
    """
    end = math.inf if wait_s is None else time.monotonic() + wait_s
    pause_s = _FIRST_PAUSE_S
    while True:
        outcome = attempt()
        if not isinstance(outcome, SessionBusy):
            return Lease(outcome)
        left_s = end - time.monotonic()
        if left_s <= 0:
            raise outcome
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
