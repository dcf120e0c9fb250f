"""Old messages that a caller changed at their places: results or arguments that it cleared, tasks at the start.

They are recognised by the replies behind them, and the conversation goes on with what is given now. Else a caller
that does so at every call would begin a conversation with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lading.exchange.history import FingerprintedMessage, RequestHistory
from lading.exchange.wrapping import SharedSession
from lading.history.log import Entry
from lading.messages import Message, is_named
from lading.session.matching import count_shared

_LEAST_ID_CHARS = 20
"""Shorter ids of calls may be counted, and those of two conversations equal. The tool's name does not count: some
servers write ``functions.read_file:0``."""


def skip_changed(history: RequestHistory, session: SharedSession, *, at: int, named: bool) -> int:
    """Return the position up to which a history is the session's with old messages changed at their places from
    ``at`` on; 0 if it is another one. ``named``: whether the caller named the conversation."""
    leading = len(history.opening.leading)
    known = session.list_newest_known(len(session.known) - at)
    # All of it is decoded once: ids that calls have by their places depend on where one begins.
    given = history.read(leading)[at - leading :]

    def may_change(entry: Entry, message: Message) -> bool:
        return not session.is_fixed(entry) and _is_same_place(session.without_own(entry.message), message)

    skipped = _count_changed(known, session.known[at:], given=given, may_change=may_change, named=named)
    rest = [known_as for _, known_as in given[skipped:]]
    return count_shared(session.known, rest, start=at + skipped) if skipped else 0


def _count_changed(
    known: Sequence[Entry],
    known_as: Sequence[str],
    *,
    given: Sequence[FingerprintedMessage],
    may_change: Callable[[Entry, Message], bool],
    named: bool,
) -> int:
    """Count the given messages that are the known ones at their places, equal or changed, up to the last equal
    reply. 0 without a reply whose calls have long ids, or two others where the caller ``named`` the conversation:
    another one may have a reply alike. ``may_change``: whether an entry may be this message now."""
    end = said = 0
    for at, (entry, before, (message, now)) in enumerate(zip(known, known_as, given, strict=False)):
        if before != now:
            if not may_change(entry, message):
                break
        elif message.role == "assistant":
            said += 2 if list_unique_calls(message) else named
            end = at + 1
    return end if said > 1 else 0


def list_unique_calls(reply: Message) -> tuple[str, ...]:
    """List the ids of a reply's calls, which an edit of its text or arguments has as well; none if other replies
    may have the same."""
    own_chars = [len(call.id.replace(call.name, "")) for call in reply.calls if is_named(call.id)]
    return tuple(call.id for call in reply.calls) if max(own_chars, default=0) >= _LEAST_ID_CHARS else ()


def _is_same_place(known: Message, given: Message) -> bool:
    """Whether a message may be another version of a known one: it has the same calls, or answers the same."""
    pairs = [
        *((call.id, one.id) for call, one in zip(known.calls, given.calls, strict=False)),
        *((result.call_id, one.call_id) for result, one in zip(known.results, given.results, strict=False)),
    ]
    # Formats give results other roles.
    counts = [("tool" if one.results else one.role, len(one.calls), len(one.results)) for one in (known, given)]
    return counts[0] == counts[1] and all(now == before or not is_named(now) for before, now in pairs)
