"""Describe the fault of an edit that a strategy drafted."""

from __future__ import annotations

from lading.addresses import parse
from lading.errors import AddressError
from lading.history.log import NO_COMPACTIONS, Draft
from lading.history.view import View


def find_fault(draft: Draft, view: View, *, entries: int, session: tuple[str, str]) -> str:
    """Describe the fault of a draft, in any provider format, to complete "an edit that ..."; empty if it has none.

    ``session``: the tenant and the session that its pointers must belong to.
    """
    if not 0 <= draft.first <= draft.last < entries:
        return "names entries that the log does not have"
    start, end = view.span(draft.first, draft.last)
    if start < view.head:
        return "touches the pinned opening messages"
    if draft.kind == "dropped" and end == len(view):
        return "drops the newest message"
    if draft.kind in NO_COMPACTIONS:
        return f"calls itself {draft.kind}, which only repairs and the caller may"
    if not draft.pointers:
        return "leaves no pointer"
    if not all(_covers(pointer, draft, entries=entries, session=session) for pointer in draft.pointers):
        return "leaves a pointer that does not lead to what it removes"
    return ""


def _covers(pointer: str, draft: Draft, *, entries: int, session: tuple[str, str]) -> bool:
    try:
        place = parse(pointer, within=session)
        first, last, part = place.log_span()
    except AddressError:
        return False
    whole = part is None and first <= draft.first and draft.last <= last < entries
    return whole and (place.tenant, place.session) == session
