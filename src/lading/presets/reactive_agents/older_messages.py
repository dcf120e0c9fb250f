"""Replace the messages before some entry by one text, followed by the user's own messages among them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msgspec import Struct

from lading.compaction import Pressure
from lading.compaction.cutting import find_cut_points, make_plain
from lading.compaction.user_rules import find_statements, restate
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, extract_words, user_text

KEPT_SHARE = 0.25
"""Share of the room: limit of the user's messages that are kept, and of the rules from those that are not."""


class OlderMessagesEdit(Struct, frozen=True):
    """An edit of the older part of a history."""

    draft: Draft | None
    """None if it would save nothing."""
    remaining: int
    """Tokens of the room that are free with it."""


def find_older_ends(view: View, pressure: Pressure, *, entry: int) -> list[int]:
    """Return the positions at which the older part may end: the last legal cut up to ``entry``, if any. If the
    window is full, also a later one that leaves half of the room to the rest, and the last."""
    points = find_cut_points(view, pressure)
    aged = bisect_right(points, entry, key=lambda point: view.items[point].entry)
    chosen = points[max(aged - 1, 0) : aged]
    if view.tokens > pressure.room_tokens and aged < len(points):
        halved = view.find_tail((pressure.room_tokens - view.tokens_before(view.head)) // 2)
        chosen += [points[min(max(bisect_left(points, halved), aged), len(points) - 1)], points[-1]]
    return list(dict.fromkeys(chosen))


def draft_replacement(
    view: View, point: int, *, lines: Sequence[str], kept: Sequence[Message], reason: str, pressure: Pressure
) -> OlderMessagesEdit:
    """Replace everything from the opening messages to ``point`` by ``lines``, then ``kept``. Empty
    lines are left out. The first line is completed to a note in brackets that ends with the pointer."""
    first, last = view.items[view.head].entry, view.last_entry(point)
    pointer = pressure.address(f"{first}-{last}")
    text = "\n".join(filter(None, [f"{lines[0]}. Original: {pointer}]", *lines[1:]]))
    shown = (user_text(text), *kept)
    before = view.tokens_before(point) - view.tokens_before(view.head)
    saved = before - sum(map(pressure.count, shown))
    draft = Draft("summarised", first, last, shown, reason, (pointer,)) if saved > 0 else None
    return OlderMessagesEdit(draft, pressure.room_tokens - view.tokens + max(saved, 0))


def collect_kept_messages(view: View, point: int, *, pressure: Pressure) -> tuple[Message, ...]:
    """Return the messages to keep from the older part: pinned ones and the user's, newest first up to a limit.
    Rules in the user's messages beyond the limit are restated in a message of their own, which comes first."""
    first, last = view.items[view.head].entry, view.last_entry(point)
    most_tokens = left = int(pressure.room_tokens * KEPT_SHARE)
    kept: list[Message] = []
    dropped: list[Message] = []
    for _, message in view.users_between(first, last):
        spoken = extract_words(message)
        if spoken is None:
            continue
        tokens = pressure.count(spoken)
        (kept if tokens <= left else dropped).append(spoken)
        left -= tokens if tokens <= left else 0
    without = "\n".join(message.text for message in kept)
    stated = find_statements(reversed(dropped))
    rules = restate(stated, most_tokens=most_tokens, count=pressure.count, without=without)
    pinned = tuple(map(make_plain, view.pinned_between(first, last)))
    others = (message for message in reversed(kept) if message not in pinned)
    return (*((rules,) if rules else ()), *pinned, *others)
