"""Find the cache marks on a session's messages, which stay where they are; leave out those beyond the limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from lading.exchange.marks import PlacedMarks, find_barred, find_own_mark, find_within, list_lifetimes
from lading.exchange.wrapping import SharedSession
from lading.messages import Message, Opaque, Template, ToolResult
from lading.wire.layout import BlockPath, CacheMarks, read_ttl


class StoredMarks:
    """The cache marks on the messages of one session."""

    def __init__(self, session: SharedSession) -> None:
        self._session = session
        self._inner: PlacedMarks | None = None  # On messages after the first reply; None: not known.
        self._edits = 0  # Number of edits at that time: a message given in another form may have other marks.

    def forget(self) -> None:
        """Read the marks anew, because messages were withdrawn."""
        self._inner = None

    def find(self, leading: Sequence[Message]) -> PlacedMarks:
        """Return the marks by the indices of the messages' items; ``leading``: the current system messages."""
        if (scheme := self._session.wire.layout.marks) is None:
            return {}
        messages = enumerate(self._session.list_given(), start=-len(leading))
        head, reply = dict[BlockPath, Any](), list[tuple[int, Message]]()
        for one in messages:
            if one[1].role == "assistant":
                reply = [one]
                break
            head |= _find_on_messages([one], scheme)
        if self._inner is None or self._edits != len(self._session.edits):
            found = _find_on_messages(chain(reply, messages), scheme)
            self._inner, self._edits = self._select_shown(found, len(leading), scheme), len(self._session.edits)
        return {**(self._select_shown(head, len(leading), scheme) if head else head), **self._inner}

    def _select_shown(self, found: PlacedMarks, leading: int, scheme: CacheMarks) -> PlacedMarks:
        """Return the marks without those on messages that were compacted, and are shown without any."""
        messages = {place[0]: self._session.list_shown(place[0] + leading) for place in found}
        shown = {at for at, one in messages.items() if _find_on_messages(enumerate(one), scheme)}
        return {place: mark for place, mark in found.items() if place[0] in shown}

    def give_way(
        self, given: PlacedMarks, *, leading: Sequence[Message], tools: Any, fields: Template
    ) -> PlacedMarks:
        """Remove marks that the caller gives no longer: those that may not stand before or behind its others (A21),
        then the oldest, where they leave no room for the marks of tools, the request's own, and one at the end of
        the request before it, which a long round needs. Return the marks that stay. ``given``: the caller's marks
        on messages."""
        kept = self.find(leading)
        if not kept or (scheme := self._session.wire.layout.marks) is None:
            return kept
        of_tools, own = list_lifetimes(tools, scheme), find_own_mark(fields, scheme=scheme, given=given, kept=kept)
        room = scheme.most - len(of_tools)
        if own:
            room -= 1 + (0 < scheme.look_back <= self._session.count_round_blocks())
        outdated = sorted(_find_outdated(kept, given))
        barred = find_barred(kept, outdated, before=of_tools, behind=[read_ttl(own)])
        oldest = [place for place in outdated if place not in barred]
        for at, part, *_ in [*barred, *oldest[: max(len(kept) - len(barred) - room, 0)]]:
            self._session.restate(at + len(leading), lambda message: _strip_at(message, part, scheme))  # noqa: B023
        return self.find(leading)

    def strip_surplus(
        self, new: Sequence[Message], *, leading: Sequence[Message], tools: Any, given: PlacedMarks, has_own: bool
    ) -> list[Message]:
        """Return new messages, without the marks of those whose marks would not be legal: more than a request may
        have, with its own if ``has_own`` or a mark moves, or one of an hour behind one of five minutes. ``given``:
        as for ``give_way``."""
        if (scheme := self._session.wire.layout.marks) is None:
            return list(new)
        stored = self.find(leading)
        inner = {place: stored[place] for place in stored.keys() - _find_outdated(stored, given)}
        lifetimes = [*list_lifetimes(tools, scheme), *map(read_ttl, inner.values())]
        fitting: list[Message] = []
        start = len(self._session.known) - len(leading)
        stays = {*stored, *_find_on_messages(enumerate(new, start), scheme)}
        most = scheme.most - (has_own or not stays.issuperset(given))
        for at, message in enumerate(new, start):
            found = _find_on_messages([(at, message)], scheme)
            own = list(map(read_ttl, found.values()))
            is_late = "1h" in own and "5m" in lifetimes
            if own and (is_late or len(lifetimes) + len(own) > most):
                message = scheme.strip_message(message)
            else:
                lifetimes += own
                inner |= found
            fitting.append(message)
        # Only new messages are read: the next request has these marks too.
        self._inner = {**stored, **inner}
        return fitting


def _find_outdated(kept: PlacedMarks, given: PlacedMarks) -> set[BlockPath]:
    """Return the marks on messages that the caller gives no longer, or with another lifetime."""
    return {place for place, mark in kept.items() if place[0] >= 0 and read_ttl(given.get(place)) != read_ttl(mark)}


def _find_on_messages(messages: Iterable[tuple[int, Message]], scheme: CacheMarks) -> dict[BlockPath, Any]:
    return {
        place: mark
        for at, message in messages
        for part, item in enumerate(message.parts)
        for place, mark in _find_on_part(item, scheme, (at, part))
    }


def _find_on_part(part: Any, scheme: CacheMarks, place: BlockPath) -> Iterator[tuple[BlockPath, Any]]:
    if isinstance(part, Opaque):
        yield from find_within(part.value, scheme, place=place)
        return
    if (mark := (part.template or {}).get(scheme.field)) is not None:
        yield place, mark
    for at, inner in enumerate(part.parts if isinstance(part, ToolResult) else ()):
        yield from _find_on_part(inner, scheme, (*place, at))


def _strip_at(message: Message, part: int, scheme: CacheMarks) -> Message:
    parts = message.parts
    return message.with_parts((*parts[:part], scheme.strip_part(parts[part]), *parts[part + 1 :]))
