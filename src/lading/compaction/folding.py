"""Fold older rounds of a view into records, each with a pointer to the originals.

Records follow the opening messages, one after the other, so that a new one keeps the older bytes in the provider's
cache. When they use too much together they are merged into one, written again from the log.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lading.compaction import Pressure
from lading.compaction.cutting import carry_over, carry_request
from lading.compaction.identifiers import find_mentions, read_leaves
from lading.compaction.notes import Notes
from lading.compaction.record import list_changed, list_unresolved, write_record
from lading.compaction.record_lines import extract_verbatim
from lading.compaction.user_rules import read_statements
from lading.compaction.value_ranking import ValueRanking
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Text, user_text

FOLD_TOKENS = 120
"""Approximate tokens of a record beside its notes."""
MOST_LEAVING = 200
"""Most values that are listed as leaving the view."""
MOST_LEAF_CHARS, MOST_DATA_CHARS = 120, 2_000
"""Values of longer arguments and results are not listed, nor those of results that are not JSON."""
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
    notes = [note for note in read_notes(view, pressure).between(first, last) if note.speaker in speakers]
    if view.newest_request and carry_request(view, first, last=last, pressure=pressure):
        # The whole message follows the record.
        newest = view.newest_request[0]
        notes = [note.shorten() if note.is_verbatim and note.entry == newest else note for note in notes]
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
    notes.upto = upto
    read_statements(view, upto)
    return notes


def list_leaving(view: View, position: int, *, start: int, pressure: Pressure) -> tuple[list[str], list[str]]:
    """Return what a record from ``start`` to ``position`` does not show by itself: values, those most likely to be
    named again first, and the failures and open tasks, the newest first."""
    first, last = view.items[start].entry, view.last_entry(position)
    ranking = ValueRanking()
    for entry, message in view.raw_between(first, last):
        ranking.add(entry, find_mentions(_keep_said(message)))
    notes = read_notes(view, pressure).between(first, last)
    changed = list_changed(notes)
    values = ranking.rank(most=MOST_LEAVING, shown=_find_shown_values(view, position))
    hidden = [value for value in values if not any(path.endswith(value) for path in changed)]
    return hidden, list_unresolved(notes)


def _keep_said(message: Message) -> Message:
    """Return the message with texts, short arguments and data: values inside files are named by the file."""
    said = [part for part in message.parts if isinstance(part, Text)]
    leaves = (text for call in message.calls for _, text in read_leaves(call.arguments))
    results = (result.text for result in message.results)
    data = (text for text in results if len(text) <= MOST_DATA_CHARS and text.lstrip()[:1] in ("{", "["))
    return user_text("\n".join([*(part.text for part in said), *filter(_is_short, leaves), *data]))


def _is_short(text: str) -> bool:
    return len(text) <= MOST_LEAF_CHARS


def _write_opening(first: int, last: int, tokens: int, pointer: str) -> str:
    span = f"{first}-{last}" if last > first else str(first)
    return (
        f"[Record of messages {span} (was {tokens:,} tokens), in order. The user's words are verbatim, "
        f"cut only at […]; the rest is shortened. #{last} is message {last}. To read more, restore #{last} "
        f"or all of {pointer}.]"
    )


def _find_shown_values(view: View, position: int) -> set[str]:
    """Return the values that the opening messages or those from ``position`` on name beside plain words."""
    remaining = (*view.items[: view.head], *view.items[position:])
    named = (mention for item in remaining for mention in find_mentions(item.message))
    return {mention.value for mention in named if mention.words}
