"""Fold older rounds of a view into records, each with a pointer to the originals.

Records follow the opening messages, one after the other, so that a new one keeps the older bytes in the provider's
cache. When they use too much together they are merged into one, written again from the log.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lading.compaction import Pressure
from lading.compaction.cutting import carry_over, carry_requests
from lading.compaction.notes import Notes, drop_repeated
from lading.compaction.record import list_unresolved, write_record
from lading.compaction.record_lines import extract_verbatim
from lading.compaction.user_rules import read_statements
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, user_text

FOLD_TOKENS = 120
"""Approximate tokens of a record beside its notes."""
EVERYBODY = frozenset({"User", "System", "Assistant", ""})
"""Speakers whose notes a record holds; "" for calls."""
_WRITTEN = re.compile(
    r"\[(?:(?:Folded: [\d,]+ |[\d,]+ earlier )messages|Record of messages)\b.{0,1000}\bartifact://"
    r"|\[Standing instructions of the user from (?:earlier )?messages|\[Pinned(?:: said by| message of the) \w+\]"
)
"""Start of a replacement. Stores may have those of earlier versions: ``Folded``, ``from messages``, ``said by``."""


def is_replacement(message: Message) -> bool:
    """Return whether a strategy wrote the message in place of others: a record, stub, restated rules or pin."""
    return message.role == "user" and _WRITTEN.match(message.text) is not None


def fold(
    view: View,
    position: int,
    *,
    start: int,
    most_tokens: int,
    reason: str,
    pressure: Pressure,
    instead: Sequence[str] = (),
    speakers: frozenset[str] = EVERYBODY,
) -> Draft:
    """Draft a record of everything from ``start`` to ``position``; records there are merged.

    ``instead``: a model's lines, which replace all but the user's words. Notes of other ``speakers`` are left out.
    """
    first, last = view.items[start].entry, view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    tokens = view.tokens_before(position) - view.tokens_before(start)
    opening = _write_opening(first, last, tokens, pointer)
    found = drop_repeated(read_notes(view, pressure).between(first, last))
    notes = [note for note in found if note.speaker in speakers]
    carried = carry_requests(view, first, last=last, pressure=pressure)
    # These messages follow the record whole.
    notes = [note.shorten() if note.is_verbatim and note.entry in carried else note for note in notes]
    text = write_record(
        notes,
        most_tokens=most_tokens - pressure.count_text(opening),
        count=pressure.count_text,
        instead=instead,
    )
    shown = (
        user_text(f"{opening}\n{text}" if text else opening),
        *carry_over(view, position, start=start, pressure=pressure, shown=extract_verbatim(text)),
    )
    return Draft("summarised", first, last, shown, reason, (pointer,))


def read_notes(view: View, pressure: Pressure) -> Notes:
    """Read the messages since the last record into the notes of the view's log, and return them."""
    notes: Notes = view.readings.setdefault(Notes, Notes())
    upto = view.last_entry(len(view))
    for entry, message in view.raw_between(notes.upto + 1, upto):
        notes.add(entry, message, count=pressure.count_text)
    notes.upto = max(notes.upto, upto)
    read_statements(view, upto)
    return notes


def list_leaving(view: View, position: int, *, start: int, pressure: Pressure) -> list[str]:
    """Return the open tasks, and the failures that a record from ``start`` to ``position`` does not show by itself,
    the newest first."""
    first, last = view.items[start].entry, view.last_entry(position)
    return list_unresolved(read_notes(view, pressure).between(first, last))


def _write_opening(first: int, last: int, tokens: int, pointer: str) -> str:
    span = f"{first}-{last}" if last > first else str(first)
    return (
        f"[Record of messages {span} (was {tokens:,} tokens), in order. The user's words are verbatim, "
        f"cut only at […]; the rest is shortened. #{last} is message {last}. To read more, restore #{last} "
        f"or all of {pointer}.]"
    )
