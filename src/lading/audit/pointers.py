"""Resolve addresses to the raw log entries in a store."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import Address, parse
from lading.errors import AddressError
from lading.history.log import Entry
from lading.messages import Message, Opaque, Part, Text, ToolCall, ToolResult
from lading.stores import SessionStore
from lading.validation import check

_MOST_ENCODED_CHARS = 1_000
"""A longer string without a space, in an ``Opaque`` part, is treated as encoded data."""


def resolve(
    store: SessionStore, address: str | Address, *, within: tuple[str, str] | None = None
) -> tuple[Entry, ...]:
    """Return the entries that a ``log`` address names, checked against their digests.

    For the address of a part, return its entry with that part alone. ``within`` is the tenant and session of a
    relative address, as a request shows it.

    Raises AddressError for a malformed address or one that points past the log or the entry, StoreError when the
    store has no such session, TamperedError when an entry differs from what was written.
    """
    check(address, (str, Address), advice="give an address, such as artifact://log/17")
    place = parse(address, within=within) if isinstance(address, str) else address
    first, last, part = place.log_span()
    entries = store.load(place.tenant, place.session, verify=True).entries
    if not first <= last < len(entries):
        raise AddressError(f"{place} points past the log, which holds entries 0 to {len(entries) - 1}.")
    if part is None:
        return entries[first : last + 1]
    message = entries[first].message
    if part >= len(message.parts):
        held = f"parts 0 to {len(message.parts) - 1}" if message.parts else "no parts"
        raise AddressError(f"{place} points past the entry, which has {held}.")
    return (replace(entries[first], message=message.with_parts((message.parts[part],))),)


def render_text(message: Message) -> str:
    """Render a message for people: its texts, calls and results, unshortened."""
    pieces: list[str] = []
    for part in message.parts:
        match part:
            case Text():
                pieces.append(part.text)
            case ToolCall():
                pieces.append(f"{part.name}({part.arguments})")
            case ToolResult():
                pieces += [inner.text if isinstance(inner, Text) else _render_part(inner) for inner in part.parts]
            case _:
                pieces.append(_render_part(part))
    return "\n".join(pieces)


def _render_part(part: Part) -> str:
    """Render an ``Opaque`` part as JSON, and any other part without text as a placeholder."""
    if isinstance(part, Opaque):
        return jsonbytes.dump(_elide_data(part.value)).decode()
    return f"[{type(part).__name__.lower()}]"


def _elide_data(value: Any) -> Any:
    """Replace encoded data in a JSON value by its length."""
    if isinstance(value, dict):
        return {key: _elide_data(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_elide_data(inner) for inner in value]
    is_data = isinstance(value, str) and len(value) > _MOST_ENCODED_CHARS and len(value.split(maxsplit=1)) == 1
    return f"[{len(value):,} characters]" if is_data else value
