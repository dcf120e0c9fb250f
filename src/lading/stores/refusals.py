"""Errors for what a store does not have, or does not give away."""

from __future__ import annotations

from collections.abc import Sequence

from lading.addresses import Address
from lading.errors import AddressError, SessionBusy, StoreError


def make_missing_session_error(tenant: str, session: str, *, known: Sequence[tuple[str, str]]) -> StoreError:
    """Make the error for a missing session; it lists some existing ones of the tenant, and of no other."""
    names = [name for of, name in known if of == tenant]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    holds = f"It has: {', '.join(names[:8])}{more}." if names else "It has none yet."
    return StoreError(f"The store has no session {session!r} of tenant {tenant!r}. {holds}")


def make_busy_error(tenant: str, session: str, *, holder: str) -> SessionBusy:
    """Make the error for a session that another writer holds. ``holder`` describes that writer."""
    return SessionBusy(
        f"The session {session!r} of tenant {tenant!r} is being written by {holder}. Close it there, wait for "
        "it with a larger wait_s, or use another session name."
    )


def make_missing_blob_error(tenant: str, session: str, *, digest: str) -> AddressError:
    """Make the error for a missing blob."""
    address = Address(tenant, session, "blob", digest)
    return AddressError(f"{address} points nowhere: the session has no such blob; check the address.")
