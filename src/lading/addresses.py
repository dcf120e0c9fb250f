"""Addresses of content that was removed from requests: ``artifact://tenant/session/kind/item``.

Three kinds: ``log`` names raw entries by index (``log/17`` one entry, ``log/17-42`` a span with both ends,
``log/17.2`` one part of an entry), ``blob`` names content by its sha256, ``tasks`` names an artifact of a step
(``tasks/42/step-3/report.md``; ``report.md@2`` is its second version). Addresses in requests are relative to the
session: ``artifact://log/17``. So equal histories give equal requests.
An address is a name, never a file path: its pieces are checked against a small alphabet and looked up as values.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from lading.errors import AddressError

SCHEME = "artifact://"
Names: TypeAlias = tuple[tuple[str, str], ...]
"""Tenants, each with the name of a session."""
LAST = "\U0010ffff"
"""Sorts after every character of a name."""
RESTORE = "restore"
"""Name of the tool by which a model reads the content of an address."""
REMEMBER, RECALL = "remember", "recall"
"""Names of the tools by which a model uses its memory."""
SEARCH_TOOLS = "search_tools"
"""Name of the tool by which a model finds the schema of another one."""
OWN_TOOLS = frozenset([RESTORE, REMEMBER, RECALL, SEARCH_TOOLS])
_NAME_CHARS = 128
_FORK_DIGITS = 9
_FORK = "~"
"""Before the number of a fork. No caller can choose a name with it, so none is taken for a fork by its form."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:~[0-9]{1,9})*", re.ASCII)
_LOG_ITEM = re.compile(r"(\d{1,9})(?:-(\d{1,9})|\.(\d{1,6}))?", re.ASCII)
_PIECE = r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
# A step named like another kind would read as that kind of a tenant called tasks.
_TASK_ITEM = re.compile(rf"{_PIECE}/(?!(?:log|blob|tasks)/){_PIECE}/{_PIECE}(?:@[1-9][0-9]{{0,5}})?", re.ASCII)
_ITEMS = {"log": _LOG_ITEM, "blob": re.compile(r"[0-9a-f]{64}"), "tasks": _TASK_ITEM}


class Address(Struct, frozen=True):
    """A place to read content from, in one session of one tenant."""

    tenant: str
    session: str
    kind: str
    item: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.tenant}/{self.session}/{self.kind}/{self.item}"

    @property
    def relative(self) -> str:
        """The address as models of its session read it."""
        return f"{SCHEME}{self.kind}/{self.item}"

    def log_span(self) -> tuple[int, int, int | None]:
        """Return first entry, last entry (both included) and part index or None of a ``log`` address. Raises
        AddressError for another kind."""
        match = _LOG_ITEM.fullmatch(self.item)
        if self.kind != "log" or match is None:
            raise AddressError(
                f"{self.relative} does not name log entries, and only these are shown: .../log/N, log/N-M, log/N.P."
            )
        first, last, part = match.groups()
        if last is not None and int(last) < int(first):
            raise AddressError(f"{self.relative} ends before it begins; give the lower entry first.")
        return int(first), int(last or first), None if part is None else int(part)


def relative(item: str) -> str:
    """Return the relative address of log entries: ``17``, ``17-42`` or ``17.2``."""
    return f"{SCHEME}log/{item}"


def parse(text: str, *, within: tuple[str, str] | None = None) -> Address:
    """Parse an address. A relative one belongs to the tenant and session ``within``. Raises AddressError for a
    malformed address, and for a relative one without ``within``."""
    path = text.removeprefix(SCHEME) if text.startswith(SCHEME) else ""
    pieces = _split(path)
    is_relative = len(pieces) == 2 and pieces[0] in _ITEMS
    if is_relative and within is None:
        named = f"{SCHEME}TENANT/SESSION/{text.removeprefix(SCHEME)[:80]}"
        raise AddressError(f"{text[:200]!r} does not say of which session; give {named}.")
    if len(pieces) != 4 and not is_relative:
        forms = f"{SCHEME}log/N, or {SCHEME}tenant/session/log/N"
        raise AddressError(f"{text[:200]!r} is not an address; expected {forms}.")
    tenant, session, kind, item = (*within, *pieces) if is_relative and within else pieces
    check_name(tenant, what="tenant")
    check_name(session, what="session")
    if kind not in _ITEMS or not _ITEMS[kind].fullmatch(item):
        raise AddressError(
            f"{text[:200]!r} is not an address: kind must be log, blob or tasks, with a fitting item."
        )
    return Address(tenant, session, kind, item)


def _split(path: str) -> list[str]:
    """Split into kind and item, with tenant and session before them in a full address."""
    pieces = path.split("/")
    if pieces[0] == "tasks" and _TASK_ITEM.fullmatch("/".join(pieces[1:])):
        return ["tasks", "/".join(pieces[1:])]
    return [*pieces[:3], "/".join(pieces[3:])] if pieces[2:3] == ["tasks"] else pieces


def check_name(name: object, *, what: str) -> str:
    """Return the name if it is legal in an address: letters, digits, ``_ . -``, no ``..``, and for a fork
    ``~`` and its number. Raises AddressError."""
    if not isinstance(name, str) or len(name) > _NAME_CHARS or not _NAME.fullmatch(name) or ".." in name:
        raise AddressError(
            f"{str(name)[:140]!r} cannot be the name of a {what}: use 1 to 128 of A-Z a-z 0-9 _ . -, "
            "starting with a letter or digit, without '..'."
        )
    return name


def check_own_name(name: object, *, what: str) -> str:
    """Return a legal name that a caller chose: none of a fork. Raises AddressError."""
    checked = check_name(name, what=what)
    if _FORK in checked:
        raise AddressError(f"{checked!r} is the name of a fork. Name the {what} that it was forked from.")
    return checked


def fork_name(name: str, number: int) -> str:
    """Return the name of a fork by its number; the end of a long name is cut."""
    suffix = f"{_FORK}{number}"
    return name[: _NAME_CHARS - len(suffix)].rstrip(_FORK) + suffix


def is_fork_name(name: str, of: str) -> bool:
    """Whether ``name`` is the name ``of`` or that of a fork of it."""
    digits = name.rpartition(_FORK)[2]
    return name == of or (digits.isdecimal() and name == fork_name(of, int(digits)))


def fork_prefix(name: str) -> str:
    """Return the common prefix of the names of all forks."""
    return f"{name}{_FORK}"[: _NAME_CHARS - 1 - _FORK_DIGITS]


def free_names(name: str, is_taken: Callable[[str], bool]) -> Iterator[str]:
    """Iterate over free names: this one and those of forks of it, found by bisection."""
    if not is_taken(name):
        yield name
    number = 1
    while True:
        end = number + 1
        while is_taken(fork_name(name, end)):
            end *= 2
        number = bisect_left(range(end), True, lo=number + 1, key=lambda at: not is_taken(fork_name(name, at)))
        yield fork_name(name, number)


def make_name(text: str) -> str:
    """Make a legal name from any text."""
    cleaned = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")[:_NAME_CHARS]
    return cleaned or "session"
