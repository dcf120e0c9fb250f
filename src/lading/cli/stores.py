"""Find the store, session or recorded request that a command names: ``STORE@CALL`` or ``STORE@SESSION:CALL``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from lading import addresses
from lading.addresses import Address
from lading.audit.snapshots import Snapshot, build_snapshot, load_trail
from lading.cli import terminal
from lading.errors import AddressError, InputError, StoreError
from lading.stores import SessionStore
from lading.stores.sqlite import SqliteStore, open_sqlite
from lading.stores.sqlite_file import FILE_NAME
from lading.validation import did_you_mean

_SHOWN_STORES = 8
_SHOWN_SESSIONS = 8
REQUEST_FORM = "STORE@CALL or STORE@SESSION:CALL"
_NAME = re.compile(r"(?P<folder>.+)@(?:(?:(?P<tenant>[^@:/]+)/)?(?P<session>[^@:/]+):)?(?P<call>[0-9]{1,9}|last)")

T = TypeVar("T")


class RequestName(Struct, frozen=True):
    """A parsed ``STORE@CALL`` or ``STORE@SESSION:CALL``."""

    folder: str
    call: int | None
    """None: the newest."""
    session: str = ""
    """Empty: the only one."""
    tenant: str = ""


def open_existing(folder: str) -> SqliteStore:
    """Open the existing store in ``folder``.

    Raises StoreError and StoreFormatError as ``open_sqlite`` does. If only folders in ``folder`` hold
    stores, as after a replay of several strategies, the error lists them.
    """
    place = Path(folder)
    # os.path.exists does not raise for an unreadable folder; open_sqlite reports it.
    if not os.path.exists(place / FILE_NAME):
        found = sorted(str(path.parent) for path in place.glob(f"*/{FILE_NAME}"))
        if found:
            shown = ", ".join(found[:_SHOWN_STORES])
            more = f" and {len(found) - _SHOWN_STORES} more" if len(found) > _SHOWN_STORES else ""
            raise StoreError(f"There is no store in {folder} itself, but in {shown}{more}. Name one of these.")
    return open_sqlite(folder, create=False)


def read_each(
    sessions: Sequence[tuple[str, str]], read: Callable[..., T], *, problems: list[str], doing: str
) -> Iterator[T]:
    """Yield ``read(tenant=, session=)`` of each session; add the errors of unreadable ones to ``problems``."""
    with terminal.show_progress(doing, len(sessions)) as advance:
        for tenant, session in sessions:
            try:
                yield read(tenant=tenant, session=session)
            except (StoreError, AddressError) as error:
                name, text = f"{tenant}/{session}", str(error)
                problems.append(text if name in text else f"{name}: {text}")
            advance(1)


def fail_if_damaged(problems: Sequence[str]) -> None:
    """Exit with an error if sessions could not be read. Call it after printing those that could."""
    if problems:
        those = f"It and {len(problems) - 1:,} more are" if len(problems) > 1 else "This session is"
        terminal.fail(f"{problems[0]} {those} left out; lading verify reports what is wrong with each.")


def parse_request_name(text: str) -> RequestName | None:
    """Parse the name of a request; None if the text is not one."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    call = None if match["call"] == "last" else int(match["call"])
    return RequestName(match["folder"], call, match["session"] or "", match["tenant"] or "")


def find_snapshot(text: str) -> Snapshot:
    """Read the request of this name from its store.

    Raises InputError for a text of another form and for an ambiguous session; otherwise like ``build_snapshot``.
    """
    name = parse_request_name(text)
    if name is None:
        raise InputError(f"{text[:200]!r} names no request; give {REQUEST_FORM}, where CALL is a number or last.")
    with open_existing(name.folder) as store:
        tenant, session = find_session(store, tenant=name.tenant, session=name.session)
        return build_snapshot(load_trail(store, tenant=tenant, session=session), name.call)


def complete_address(store: SessionStore, address: str) -> Address:
    """Parse an address; a relative one belongs to the only session. Raises AddressError, and InputError if it is
    ambiguous."""
    known = store.sessions()
    place = addresses.parse(address, within=known[0] if known else None)
    if address == place.relative and len(known) > 1:
        names = _join_sessions(known)
        raise InputError(
            f"The store holds {len(known)} sessions: {names}. Name one in the address, such as {place}."
        )
    return place


def find_session(store: SessionStore, *, tenant: str = "", session: str = "") -> tuple[str, str]:
    """Find the one session with these names. Raises InputError for none or several."""
    found = find_sessions(store, tenant=tenant, session=session)
    if len(found) > 1:
        raise InputError(f"The store holds {len(found)} such sessions: {_join_sessions(found)}. Name one of them.")
    return found[0]


def find_sessions(store: SessionStore, *, tenant: str = "", session: str = "") -> list[tuple[str, str]]:
    """Find the sessions with these names, of which the second may be a pattern such as ``nightly-*``; an empty name
    matches all. Raises InputError for none."""
    known = store.sessions()
    found = [
        (of, name)
        for of, name in known
        if tenant in ("", of) and (session in ("", name) or fnmatchcase(name, session))
    ]
    if not found:
        wanted = "/".join(filter(None, (tenant, session)))
        meant = did_you_mean(session, [name for _, name in known])
        problem = f"The store has no session {wanted!r}.{meant}" if wanted else "The store holds no session."
        advice = f"It holds: {_join_sessions(known)}." if known else "Record one with --store first."
        raise InputError(f"{problem} {advice}")
    return found


def _join_sessions(found: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(f"{of}/{name}" for of, name in found[:_SHOWN_SESSIONS])
    return f"{shown}, ..." if len(found) > _SHOWN_SESSIONS else shown
