"""Old messages that a caller changed at their places: results or arguments that it cleared, tasks at the start.

They are recognised by the messages between them, and the conversation goes on with what is given now. Else a
caller that does so at every call would begin a conversation with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lading.exchange.history import FingerprintedMessage
from lading.history.log import Entry
from lading.messages import Message, is_named

_MOST_NOTE_CHARS = 300
"""Length of a note in place of what was cleared."""


def skip_changed(
    known: Sequence[Entry],
    known_as: Sequence[str],
    *,
    given: Sequence[FingerprintedMessage],
    is_folded: Callable[[int], bool],
    may_shorten: bool,
) -> int:
    """Count the given messages that are the known ones at their places, equal or changed, up to the last equal
    reply. 0 without a reply whose calls have ids, or two others: other histories may have one alike. ``is_folded``:
    whether a strategy shows an entry with others, which stays so; then only a note may be given for it
    (``may_shorten``)."""
    end = said = 0
    for at, (entry, before, (message, now)) in enumerate(zip(known, known_as, given, strict=False)):
        if before != now:
            if not _is_same_place(entry.message, message):
                break
            if is_folded(entry.index) and not (may_shorten and _is_cleared(entry.message, message)):
                break
        elif message.role == "assistant":
            said += 2 if any(is_named(call.id) for call in message.calls) else 1
            end = at + 1
    return end if said > 1 else 0


def _is_same_place(known: Message, given: Message) -> bool:
    """Whether a message may be another version of a known one: it has the same calls, or answers the same."""
    pairs = [
        *((call.id, one.id) for call, one in zip(known.calls, given.calls, strict=False)),
        *((result.call_id, one.call_id) for result, one in zip(known.results, given.results, strict=False)),
    ]
    counts = [(one.role, len(one.calls), len(one.results)) for one in (known, given)]
    return counts[0] == counts[1] and all(now == before or not is_named(now) for before, now in pairs)


def _is_cleared(known: Message, given: Message) -> bool:
    """Whether a message has a note in place of what the known one said."""
    return _count_chars(given) <= min(_MOST_NOTE_CHARS, _count_chars(known) - 1)


def _count_chars(message: Message) -> int:
    arguments = sum(len(call.arguments) for call in message.calls)
    return len(message.text) + sum(len(result.text) for result in message.results) + arguments
