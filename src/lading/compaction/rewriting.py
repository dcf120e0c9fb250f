"""Let a function of the caller rewrite the messages of a view; its changes become one edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from lading.compaction import Pressure
from lading.compaction.cutting import carry_over, find_cut_points
from lading.compaction.user_rules import RESTATED
from lading.errors import LadingError
from lading.history.log import Draft, EditKind
from lading.history.validity import blocks, is_paired, newest_block
from lading.history.view import View
from lading.messages import Message, user_text
from lading.wire.coercion import as_messages


def draft_rewrite(
    view: View,
    messages: Sequence[Message],
    *,
    rewrite: Callable[[list[Message]], object],
    name: str,
    pressure: Pressure,
    carry: Callable[[Message], Message] = lambda message: message,
) -> Draft | None:
    """Draft an edit of the blocks that ``rewrite`` changes; None if it changes nothing.

    ``messages``: those of the view, as changed by other decisions of this call; ``name``: of the function, in edits
    and errors; ``carry`` changes how the user's rules, pins and newest request are shown.

    ``rewrite`` gets the messages without the system prompt. The opening messages stay, also if it leaves them out.
    Raises ValueError if it returns no messages or changes the newest block, TypeError if it returns anything but
    messages.
    """
    head = messages[: view.head]
    given = rewrite([*(message for message in head if message.role != "system"), *messages[view.head :]])
    answer = read_answer(given)
    if not isinstance(answer, list):
        raise TypeError(f"{name} must give a list of messages{f'. {answer}' if answer else ''}")
    if not answer:
        raise ValueError(f"{name} gave no messages; at least one must stay")
    wanted = list(answer[_count_head(answer, head, messages[view.head :]) :])
    if wanted == messages[view.head :]:
        return None
    start, end, behind = _find_change(view, messages, wanted, pressure)
    if end > newest_block(messages):
        raise ValueError(f"{name} changed messages that the model has not answered yet; they must stay whole")
    shown = list(_drop_unpaired(wanted[start - view.head : len(wanted) - behind]))
    carried = map(carry, carry_over(view, end, start=start, pressure=pressure))
    kept = [message for message in carried if not _is_shown(message, shown)]
    first, last = view.items[start].entry, view.last_entry(end)
    pointer = pressure.address(f"{first}-{last}")
    note = user_text(f"[{last - first + 1} messages were rewritten by {name}. Originals: {pointer}]")
    kind: EditKind = "summarised" if shown else "dropped"
    return Draft(kind, first, last, (note, *kept, *shown), f"{name} changed it", (pointer,))


def read_answer(answer: object) -> list[Message] | LadingError | None:
    """Convert the answer of a function of the caller to messages, of which some may be dicts of any wire; return
    the error that says why one is none, None for what is no list."""
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
        return None
    try:
        return as_messages(answer)
    except LadingError as error:
        return error


def _count_head(answer: Sequence[Message], head: Sequence[Message], rest: Sequence[Message]) -> int:
    """Return how many opening messages the answer begins with, in their order. Later messages do not count, even
    equal ones: a user may say "continue" twice."""
    later = set(map(id, rest)) - set(map(id, head))
    left = iter(head)
    return sum(1 for _ in takewhile(lambda message: id(message) not in later and message in left, answer))


def _find_change(
    view: View, messages: Sequence[Message], wanted: Sequence[Message], pressure: Pressure
) -> tuple[int, int, int]:
    """Return the whole blocks, ``start`` to ``end``, with all changes, and the number of messages after them."""
    points = [view.head, *find_cut_points(view, pressure), len(messages)]
    rest = messages[view.head :]
    shared = _count_shared(rest, wanted)
    start = max(point for point in points if point <= view.head + shared)
    # A message that is shared at the start does not count again at the end.
    room = min(len(messages) - start, len(wanted) - (start - view.head))
    tail = min(_count_shared(rest[::-1], wanted[::-1]), room)
    end = min(point for point in points if point >= len(messages) - tail)
    if start == end:
        # Only insertions: an edit needs a block, so take the one before, or, if there is none, the one after.
        start = max((point for point in points if point < start), default=start)
        end = end if start < end else min((point for point in points if point > end), default=end)
    return start, end, len(messages) - end


def _count_shared(one: Sequence[Message], other: Sequence[Message]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left is not right and left != right:
            break
        count += 1
    return count


def _drop_unpaired(shown: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages without results whose call is missing, and without calls that lack a result."""
    for start, end in blocks(shown):
        if is_paired(shown[start:end]):
            yield from shown[start:end]


def _is_shown(message: Message, shown: Sequence[Message]) -> bool:
    """Return whether a carried message is shown anyway: the message itself, or each of the restated rules."""
    if message in shown:
        return True
    heading, *lines = message.text.splitlines() or [""]
    text = "\n".join(other.text for other in shown)
    return heading == RESTATED and all(line in text for line in lines)
