"""What is older than some entry becomes one message of text, with what the user said there kept beside it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msgspec import Struct

from lading.compaction import Pressure
from lading.compaction.cutting import cut_points, plain
from lading.compaction.pins import restated, statements
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Part, Text, ToolResult, is_own, user_text

KEPT_SHARE = 0.25
"""Of the room: what the user said takes no more, nor what the user's rules take."""


class Aged(Struct, frozen=True):
    """An edit of the older part of a history."""

    draft: Draft | None
    """None where it would save nothing."""
    remaining: int
    """Tokens of the room that are left with it."""


def points_before(view: View, pressure: Pressure, *, entry: int) -> list[int]:
    """Where the older part may end: at the last legal cut before ``entry`` or at it, if there is one. When the
    window is full, also later: where half of the room is left to the rest, and as late as may be."""
    points = cut_points(view, pressure)
    aged = bisect_right(points, entry, key=lambda point: view.items[point].entry)
    chosen = points[max(aged - 1, 0) : aged]
    if view.tokens > pressure.room_tokens and aged < len(points):
        halved = view.position_with_tail((pressure.room_tokens - view.tokens_before(view.head)) // 2)
        chosen += [points[min(max(bisect_left(points, halved), aged), len(points) - 1)], points[-1]]
    return list(dict.fromkeys(chosen))


def aged_to(
    view: View, point: int, *, told: Sequence[str], said: Sequence[Message], reason: str, pressure: Pressure
) -> Aged:
    """Everything from the head to ``point`` as these lines, and then what was ``said_before`` it. Empty lines are
    left out; the first one begins a note in brackets, which the pointer ends."""
    first, last = view.items[view.head].entry, view.last_entry(point)
    pointer = pressure.address(f"{first}-{last}")
    text = "\n".join(filter(None, [f"{told[0]}. Original: {pointer}]", *told[1:]]))
    shown = (user_text(text), *said)
    before = view.tokens_before(point) - view.tokens_before(view.head)
    saved = before - sum(map(pressure.count, shown))
    draft = Draft("summarised", first, last, shown, reason, (pointer,)) if saved > 0 else None
    return Aged(draft, pressure.room_tokens - view.tokens + max(saved, 0))


def said_by_user(message: Message) -> Message | None:
    """What the user says in a message, without tool results beside it; None when that is nothing."""
    if message.role != "user" or not message.text.strip() or is_own(message):
        return None
    kept = tuple(part for part in message.parts if not _is_silent(part))
    return message.with_parts(kept) if len(kept) < len(message.parts) else message


def said_before(view: View, point: int, *, pressure: Pressure) -> tuple[Message, ...]:
    """What must stay of what stands between the head and ``point``: what the caller pinned, and what the user
    said, as much of it as may, the newest first; of the rest the rules, before it."""
    first, last = view.items[view.head].entry, view.last_entry(point)
    most_tokens = left = int(pressure.room_tokens * KEPT_SHARE)
    kept: list[Message] = []
    gone: list[Message] = []
    for _, message in view.users_between(first, last):
        spoken = said_by_user(message)
        if spoken is None:
            continue
        tokens = pressure.count(spoken)
        (kept if tokens <= left else gone).append(spoken)
        left -= tokens if tokens <= left else 0
    without = "\n".join(message.text for message in kept)
    stated = statements(reversed(gone))
    rules = restated(stated, most_tokens=most_tokens, count=pressure.count, without=without)
    pinned = tuple(map(plain, view.pinned_between(first, last)))
    said = (message for message in reversed(kept) if message not in pinned)
    return (*((rules,) if rules else ()), *pinned, *said)


def _is_silent(part: Part) -> bool:
    return isinstance(part, ToolResult) or (isinstance(part, Text) and not part.text.strip())
