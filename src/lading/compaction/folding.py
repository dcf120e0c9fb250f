"""Folding: older rounds become one message that holds their state, beside a pointer to all of them.

Folds stand one behind the other after the head, so that a new one leaves the older bytes in the provider's
cache. When they take too much together they are merged into one.
"""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from lading.compaction import Draft, Pressure
from lading.compaction.cutting import carried
from lading.compaction.identifiers import mentions
from lading.compaction.ledger import Ledger
from lading.compaction.pins import RESTATED
from lading.compaction.state import EVERYTHING, Holds, State
from lading.messages import Message, user_text
from lading.view import View

FOLD_TOKENS = 60
"""About what a fold takes beside its state."""

MOST_LEAVING = 200
"""So many values are told of as leaving."""
_WRITTEN = re.compile(
    r"\[(?:Folded: [\d,]+ |[\d,]+ earlier )messages\b.{0,1000}\bartifact://"
    rf"|{re.escape(RESTATED)}|\[Pinned: said by \w+\]"
)
_STATES: WeakKeyDictionary[View, State] = WeakKeyDictionary()
"""What was drawn already of each view: the same as drawing it anew, at the cost of what is new."""


def folds(view: View) -> int:
    """The position behind the folds that stand after the head."""
    position = view.head
    while position < len(view) and view.items[position].kind == "summarised":
        position += 1
    return position


def is_written(message: Message) -> bool:
    """Whether strategies wrote the message in place of others: a fold, a stub, rules of the user stated again."""
    return message.role == "user" and _WRITTEN.match(message.text) is not None


def fold(
    view: View,
    position: int,
    *,
    start: int,
    most_tokens: int,
    reason: str,
    pressure: Pressure,
    holds: Holds = EVERYTHING,
) -> Draft:
    """The draft that shows everything from ``start`` to ``position`` as its state; folds there are merged."""
    first, last = view.items[start].entry, view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    tokens = view.tokens_before(position) - view.tokens_before(start)
    note = f"[Folded: {last - first + 1} messages, {tokens:,} tokens as last shown. Whole: {pointer}]"
    text = _state(view, last).written(
        most_tokens=most_tokens - pressure.count(user_text(note)),
        count=lambda text: pressure.count(user_text(text)),
        since=first,
        shown=_shown(view, start, position),
        holds=holds,
    )
    shown = (
        user_text(f"{note}\n{text}" if text else note),
        *carried(view, position, start=start, pressure=pressure),
    )
    return Draft("summarised", first, last, shown, reason, (pointer,))


def leaving(view: View, position: int, *, start: int) -> tuple[list[str], list[str]]:
    """What a fold from ``start`` to ``position`` takes out of view: values, the likeliest to be named again
    first, and the failures and open tasks, the newest first."""
    first = view.items[start].entry
    state = _state(view, view.last_entry(position))
    values = state.likeliest(first, _shown(view, start, position), most=MOST_LEAVING)
    return values, state.unresolved(first)


def _state(view: View, last: int) -> State:
    state = _STATES.get(view)
    if state is None or state.upto > last:
        _STATES[view] = state = State()
    for entry, message in view.raw_between(state.upto + 1, last):
        state.add(entry, message)
    return state


def _shown(view: View, start: int, position: int) -> dict[str, frozenset[str]]:
    """The values that stand in the view anyway, each with the words it stands under in the folds before
    ``start``; with none where it stands in the head or from ``position`` on, as it was said, beside words."""
    shown: dict[str, frozenset[str]] = {}
    for item in view.items[view.head : start]:
        for line in item.message.text.splitlines():
            for value, word in Ledger.read(line):
                shown[value] = shown.get(value, frozenset()) | {word}
    said = (*view.items[: view.head], *view.items[position:])
    named = (mention for item in said for mention in mentions(item.message))
    return shown | {mention.value: frozenset() for mention in named if mention.words}
