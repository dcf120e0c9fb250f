"""Strategies: each turns (view, pressure) into drafts of edits. One file per strategy.

To add one, write a module with a ``Strategy`` value and one line in ``STRATEGIES``. A strategy reads the
view and never changes it; the engine turns its drafts into frozen edits, checks the outcome, and overrules
a strategy whose drafts break a rule or do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from lading import jsonbytes
from lading.addresses import parse
from lading.economics import Rates
from lading.errors import AddressError
from lading.log import EditKind
from lading.messages import Message
from lading.tables import lookup
from lading.validity import Invariant
from lading.view import Item, View

STRATEGIES: dict[str, str] = {
    "append-only": "lading.compaction.append_only:STRATEGY",
    "basic": "lading.compaction.basic:STRATEGY",
}


class Pressure(Struct, frozen=True):
    """What presses on a view at this call, and the tools to answer it."""

    room_tokens: int
    """What the view may take: window less reserve, margin and tool schemas."""
    sent_items: int
    """How many first items of the view stood in the last request; they are in the provider's cache."""
    rates: Rates
    account: float
    """Rent paid since the last edit, in base input tokens (``economics.rent``)."""
    cache_cold: bool
    count: Callable[[Message], int]
    """Tokens of a message, framing included."""
    address: Callable[[str], str]
    """The address of a log item: ``"17"`` or ``"17-42"``."""
    invariants: tuple[Invariant, ...] = ()
    """The legality the wire adds (``validity.legal_cuts``)."""


class Draft(Struct, frozen=True):
    """An edit as a strategy proposes it; the fields are those of ``log.Edit``."""

    kind: EditKind
    first: int
    last: int
    replacement: tuple[Message, ...]
    reason: str
    pointers: tuple[str, ...]


class Compaction(Struct, frozen=True):
    """What a strategy decides at one call."""

    drafts: tuple[Draft, ...] = ()
    rent: float = 0.0
    """What this call pays for tokens the strategy would remove if it were cheaper."""


class Arrival(Struct, frozen=True):
    """A message that was never sent, in the view that shows it."""

    item: Item
    view: View


def keep(_arrival: Arrival, _pressure: Pressure) -> None:
    """Admit every message as it is."""


class Strategy(Struct, frozen=True):
    """A compaction strategy, as functions."""

    name: str
    compact: Callable[[View, Pressure], Compaction]
    """Drafts for what stands in the view. Must leave head and newest block in place."""
    admit: Callable[[Arrival, Pressure], Draft | None] = keep
    """A draft for a message that was never sent, and for its entry only, before anything else is decided."""
    changes_requests: bool = True
    """False: the strategy never changes anything, so the tool ladder must not either."""


def strategy(name: str) -> Strategy:
    """The strategy of that name, or at that dotted path. Raises UnknownName."""
    found = lookup(STRATEGIES, name, kind="strategy", type_=Strategy)
    assert isinstance(found, Strategy)
    return found


def admitted(chosen: Strategy, arrival: Arrival, *, pressure: Pressure) -> Draft | None:
    """What the strategy's ``admit`` decides. Raises TypeError or ValueError when that is no draft that can be
    stored, or when it touches other entries than the one that arrived."""
    draft = chosen.admit(arrival, pressure)
    if draft is None:
        return None
    _check_storable(draft)
    if not draft.first == draft.last == arrival.item.entry:
        raise ValueError(f"entry {arrival.item.entry} arrived, the draft touches {draft.first} to {draft.last}")
    return draft


def compacted(chosen: Strategy, view: View, *, pressure: Pressure) -> Compaction:
    """What the strategy's ``compact`` decides. Raises TypeError or ValueError when that is no Compaction with
    a finite rent and drafts that can be stored."""
    decided: object = chosen.compact(view, pressure)
    if not isinstance(decided, Compaction):
        raise TypeError(f"compact gave a {type(decided).__name__}, not a Compaction")
    if not math.isfinite(decided.rent):
        raise ValueError(f"the rent is {decided.rent}")
    for draft in decided.drafts:
        _check_storable(draft)
    return decided


def _check_storable(draft: object) -> None:
    if not isinstance(draft, Draft):
        raise TypeError(f"a {type(draft).__name__} stands in place of a Draft")
    jsonbytes.load_value(jsonbytes.dump_value(draft), Draft)


def unsound(draft: Draft, view: View, *, entries: int, session: tuple[str, str]) -> str:
    """What is wrong with a draft whatever the wire: completes "an edit that ..."; empty when nothing is.

    ``session``: the tenant and the session that its pointers must lead to.
    """
    if not 0 <= draft.first <= draft.last < entries:
        return "names entries that the log does not have"
    start, end = view.span(draft.first, draft.last)
    if start < view.head:
        return "touches the pinned head"
    if draft.kind == "dropped" and end == len(view):
        return "drops the newest message"
    if draft.kind in ("repaired", "restated"):
        return f"calls itself {draft.kind}, which only the border and the caller may"
    if not draft.pointers:
        return "leaves no pointer"
    if not all(_holds(pointer, draft, entries=entries, session=session) for pointer in draft.pointers):
        return "leaves a pointer that does not lead to what it removes"
    return ""


def _holds(pointer: str, draft: Draft, *, entries: int, session: tuple[str, str]) -> bool:
    try:
        place = parse(pointer)
        first, last, part = place.log_span()
    except AddressError:
        return False
    whole = part is None and first <= draft.first and draft.last <= last < entries
    return whole and (place.tenant, place.session) == session
