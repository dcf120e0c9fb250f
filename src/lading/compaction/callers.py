"""A function of the caller's says what is shown; what it changes becomes one edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from lading.compaction import Pressure
from lading.compaction.cutting import carried, cut_points
from lading.compaction.pins import RESTATED
from lading.history.log import Draft, EditKind
from lading.history.validity import blocks, newest_block
from lading.history.view import View
from lading.messages import Message, user_text


def rewritten_by_caller(
    view: View,
    messages: Sequence[Message],
    *,
    rewrite: Callable[[list[Message]], object],
    name: str,
    pressure: Pressure,
    carry: Callable[[Message], Message] = lambda message: message,
) -> Draft | None:
    """The draft for the blocks that ``rewrite`` shows otherwise; None where it changes nothing. ``messages``: those
    of the view, or what other decisions of this call make of them; ``name``: what edits and errors call it;
    ``carry`` says how what must stay of a user is shown.

    It is given the messages without the system prompt. The head stays whether it gives it back or not. Raises
    ValueError when it gives nothing, or changes the newest block; TypeError when it gives anything but messages.
    """
    head = messages[: view.head]
    answer = rewrite([*(message for message in head if message.role != "system"), *messages[view.head :]])
    if not isinstance(answer, Sequence) or not all(isinstance(message, Message) for message in answer):
        raise TypeError(f"{name} must give a list of messages")
    if not answer:
        raise ValueError(f"{name} gave no messages; at least one must stay")
    wanted = list(answer[_of_head(answer, head, messages[view.head :]) :])
    if wanted == messages[view.head :]:
        return None
    start, end, behind = _changed(view, messages, wanted, pressure)
    if end > newest_block(messages):
        raise ValueError(f"{name} changed messages that the model has not answered yet; they must stay whole")
    shown = list(_paired(wanted[start - view.head : len(wanted) - behind]))
    stays = map(carry, carried(view, end, start=start, pressure=pressure))
    kept = [message for message in stays if not _is_told(message, shown)]
    return _draft(view, (start, end), shown, kept=kept, name=name, pressure=pressure)


def _of_head(answer: Sequence[Message], head: Sequence[Message], rest: Sequence[Message]) -> int:
    """How many messages the answer begins with that are the head's, in its order. A later one is not, also where
    it says the same: a user may say "continue" twice."""
    later = set(map(id, rest)) - set(map(id, head))
    left = iter(head)
    return sum(1 for _ in takewhile(lambda message: id(message) not in later and message in left, answer))


def _changed(
    view: View, messages: Sequence[Message], wanted: Sequence[Message], pressure: Pressure
) -> tuple[int, int, int]:
    """The whole blocks from ``start`` to ``end`` that hold all that differs, and how many messages follow."""
    points = [view.head, *(point for point in cut_points(view, pressure)), len(messages)]
    rest = messages[view.head :]
    shared = _shared(rest, wanted)
    start = max(point for point in points if point <= view.head + shared)
    # What is shared at the start is not shared at the end a second time.
    room = min(len(messages) - start, len(wanted) - (start - view.head))
    tail = min(_shared(rest[::-1], wanted[::-1]), room)
    end = min(point for point in points if point >= len(messages) - tail)
    if start == end:
        # What is only put in shows a block anew: the one before it, or where there is none the one behind.
        start = max((point for point in points if point < start), default=start)
        end = end if start < end else min((point for point in points if point > end), default=end)
    return start, end, len(messages) - end


def _shared(one: Sequence[Message], other: Sequence[Message]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left is not right and left != right:
            break
        count += 1
    return count


def _paired(shown: Sequence[Message]) -> Iterator[Message]:
    """The messages without results whose call is not among them, and without calls that lack a result."""
    for start, end in blocks(shown):
        calls = {call.id for call in shown[start].calls}
        if calls == {result.call_id for message in shown[start:end] for result in message.results}:
            yield from shown[start:end]


def _draft(
    view: View,
    span: tuple[int, int],
    shown: Sequence[Message],
    *,
    kept: Sequence[Message],
    name: str,
    pressure: Pressure,
) -> Draft:
    start, end = span
    first, last = view.items[start].entry, view.last_entry(end)
    pointer = pressure.address(f"{first}-{last}")
    note = user_text(f"[{last - first + 1} messages were rewritten by {name}. Originals: {pointer}]")
    kind: EditKind = "summarised" if shown else "dropped"
    return Draft(kind, first, last, (note, *kept, *shown), f"{name} changed it", (pointer,))


def _is_told(message: Message, shown: Sequence[Message]) -> bool:
    """Whether what must stay stands there anyway: the message itself, or each line under the heading of rules."""
    if message in shown:
        return True
    heading, *lines = message.text.splitlines() or [""]
    told = "\n".join(other.text for other in shown)
    return heading == RESTATED and all(line in told for line in lines)
