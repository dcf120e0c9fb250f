"""Records in a view: older rounds become one message, beside a pointer to all of them.

Records stand one behind the other after the head, so that a new one leaves the older bytes in the provider's
cache. When they take too much together they are merged into one, drawn anew from the log.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from lading.compaction import Pressure
from lading.compaction.cutting import carried, carried_request
from lading.compaction.identifiers import mentions
from lading.compaction.ledger import Ledger
from lading.compaction.notes import Notes
from lading.compaction.pins import read_statements
from lading.compaction.record import unresolved, write
from lading.compaction.record_lines import verbatim
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, user_text

FOLD_TOKENS = 120
"""About what a record takes beside its notes."""
MOST_LEAVING = 200
"""So many values are told of as leaving."""
EVERYBODY = frozenset({"User", "System", "Assistant", ""})
"""Whose notes a record holds; "" are calls."""
_WRITTEN = re.compile(
    r"\[(?:(?:Folded: [\d,]+ |[\d,]+ earlier )messages|Record of messages)\b.{0,1000}\bartifact://"
    r"|\[Standing instructions of the user from (?:earlier )?messages|\[Pinned(?:: said by| message of the) \w+\]"
)
"""As stores have it, too: earlier versions wrote ``Folded``, ``from messages``, ``said by``."""


def folds(view: View) -> int:
    """The position behind the records that stand after the head."""
    position = view.head
    while position < len(view) and view.items[position].kind == "summarised":
        position += 1
    return position


def is_written(message: Message) -> bool:
    """Whether strategies wrote the message in place of others: a record, a stub, rules of the user stated again."""
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
    """The draft that shows everything from ``start`` to ``position`` as its record; records there are merged.

    ``instead``: a model's lines, which stand in the place of all but the user's words.
    """
    first, last = view.items[start].entry, view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    tokens = view.tokens_before(position) - view.tokens_before(start)
    opening = _opening(first, last, tokens, pointer)
    notes = [note for note in note_down(view, pressure).between(first, last) if note.speaker in speakers]
    if view.newest_request and carried_request(view, first, last=last, pressure=pressure):
        # It stands behind the record as it was said.
        newest = view.newest_request[0]
        notes = [note.shortest() if note.is_verbatim and note.entry == newest else note for note in notes]
    text = write(
        notes,
        most_tokens=most_tokens - pressure.count(user_text(opening)),
        count=lambda text: pressure.count(user_text(text)),
        instead=instead,
    )
    shown = (
        user_text(f"{opening}\n{text}" if text else opening),
        *carried(view, position, start=start, pressure=pressure, told=verbatim(text)),
    )
    return Draft("summarised", first, last, shown, reason, (pointer,))


def note_down(view: View, pressure: Pressure, *, most: int = sys.maxsize) -> Notes:
    """The notes of the view's log, at the cost of what is new; of at most ``most`` entries more than before."""
    notes: Notes = view.readings.setdefault(Notes, Notes())
    upto = min(notes.upto + most, view.last_entry(len(view)))
    for entry, message in view.raw_between(notes.upto + 1, upto):
        notes.add(entry, message, count=lambda text: pressure.count(user_text(text)))
    notes.upto = upto
    read_statements(view, upto)
    return notes


def leaving(view: View, position: int, *, start: int, pressure: Pressure) -> tuple[list[str], list[str]]:
    """What a record from ``start`` to ``position`` takes out of view: values, the likeliest to be named again
    first, and the failures and open tasks, the newest first."""
    first, last = view.items[start].entry, view.last_entry(position)
    ledger = Ledger()
    for entry, message in view.raw_between(first, last):
        ledger.add(entry, mentions(message))
    values = ledger.ranked(most=MOST_LEAVING, shown=_shown(view, position))
    return values, unresolved(note_down(view, pressure).between(first, last))


def _opening(first: int, last: int, tokens: int, pointer: str) -> str:
    span = f"{first}-{last}" if last > first else str(first)
    return (
        f"[Record of messages {span} (was {tokens:,} tokens), in order. The user's words are verbatim, "
        f"cut only at […]; the rest is shortened. #{last} is message {last}. To read more, restore #{last} "
        f"or all of {pointer}.]"
    )


def _shown(view: View, position: int) -> dict[str, frozenset[str]]:
    """The values that stand in the head or from ``position`` on: as they were said, beside words."""
    said = (*view.items[: view.head], *view.items[position:])
    named = (mention for item in said for mention in mentions(item.message))
    return {mention.value: frozenset() for mention in named if mention.words}
