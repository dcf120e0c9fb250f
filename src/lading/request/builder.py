"""Build the growing request of a session: each wire message is encoded, checked and digested once.

The digest is a chain. Each link covers the link before it and new bytes: first those of the envelope, then those of
each group of messages that share wire messages. Equal last links mean equal bytes, but for the cache marks of
``mark``.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from lading import jsonbytes
from lading.errors import Violation
from lading.history.view import Item, View
from lading.messages import Conversation, Message, Template, Tool
from lading.models.card import Card
from lading.request.marks import (
    EncodedGroup,
    GroupEnd,
    LocatedMarks,
    MarkedGroups,
    PlacedMark,
    count_blocks,
    find_position,
    write_marked,
)
from lading.wire import Wire, group_messages
from lading.wire.checking import Checker
from lading.wire.layout import LAST_BLOCK


class RequestBuilder:
    """Builds the request bodies of one session: ``open`` sets the envelope, ``show`` adds new messages."""

    def __init__(self, wire: Wire, card: Card, *, strict: bool = False) -> None:
        """``strict``: rules that are not verified yet count as violations, for tests."""
        self.wire, self.card, self._strict = wire, card, strict
        self._opened: tuple[object, ...] = ()
        self._leading = self._systems = 0
        self.front: Sequence[Item] = ()
        """Messages in front of the history that are not in the view."""
        self._envelope: dict[str, Any] = {}
        self._opening = self._bare = b""
        """The body up to its items; and without one of its fields, once that is needed."""
        self.groups: list[EncodedGroup] = []
        """Those behind the envelope."""
        self.sent: Sequence[EncodedGroup] = self.groups
        """The same with the cache marks of ``mark``."""
        self._marked: MarkedGroups = {}
        self.cached: set[str] = set()
        """Links of ``prompt_chain`` at whose ends requests that were answered had cache marks,"""
        self.marked_ends: dict[str, None] = {}
        """and those of the newest request, in order."""
        self._ends_stay = True
        """Whether requests begin with all of the one before; not where each has a reminder that the next lacks."""
        self._starts: list[int] = []
        self._kept: dict[tuple[int, ...], EncodedGroup] = {}
        """Groups removed since the last ``show``, by the identity of their messages, for reuse."""
        self._checkers: dict[bool, tuple[Checker, int]] = {}
        """Whether it is strict: the checker, and the number of groups that it has read."""
        self.body_chain: list[str] = []
        """One link for the envelope, then one for each group."""
        self.prompt_chain: list[str] = []
        """The same without fields that are no part of the prompt: one link for each cacheable prefix."""
        self.ends: list[int] = []
        """Tokens of the prefix that ends with each link."""

    def open(
        self,
        view: View,
        *,
        tools: tuple[Tool, ...],
        tools_tokens: int,
        template: Template | None,
        front: Sequence[Item] = (),
    ) -> None:
        """Set the envelope: leading messages of the view, tools, other fields; and the messages in front of the
        history that are not in the view. A changed one restarts the request.

        Raises IllegalRequest when a number in it is NaN or infinite.
        """
        head = [item.message for item in view.items[: view.head]]
        leading = tuple(head[: self.wire.layout.leading(head)])
        opened = (leading, tools, template, front)
        if opened == self._opened:
            return
        envelope = self.wire.envelope(Conversation(leading, tools, self.wire.name, template))
        envelope.pop(self.wire.layout.items.field, None)
        data = jsonbytes.dump_at("body", envelope)
        self._opened, self._leading, self.front = opened, len(leading), front
        self._systems = next((at for at, message in enumerate(head) if message.role != "system"), len(head))
        self._envelope, self._opening, self._bare = envelope, self._begin(data), b""
        self._truncate(0)
        read = {name: envelope[name] for name in sorted(envelope.keys() - self.wire.layout.list_unread(envelope))}
        self.body_chain, self.prompt_chain = [_link("", data)], [_link("", jsonbytes.dump_at("body", read))]
        self.ends = [view.tokens_before(len(leading)) + tools_tokens]

    def show(self, view: View) -> None:
        """Add the new messages of the view. Raises like ``open``."""
        shown, self.sent = self.list_shown(view) if self.front else view.items, self.groups
        new = shown[self._leading + self._length :]
        self._extend([item.message for item in new], [item.tokens for item in new])
        self._kept = {}

    def list_shown(self, view: View) -> Sequence[Item]:
        """Return the items of the view, with those in front of the history after the system messages."""
        return [*view.items[: self._systems], *self.front, *view.items[self._systems :]]

    def forget(self, position: int) -> None:
        """Drop the messages from a position of the view on, because they changed."""
        position += len(self.front) if position >= self._systems else 0
        self._truncate(max(position - self._leading, 0))

    def _truncate(self, position: int) -> None:
        keep = len(self._starts)
        while keep and self._starts[keep - 1] + len(self.groups[keep - 1].messages) > position:
            keep -= 1
            self._kept[_identity(self.groups[keep].messages)] = self.groups[keep]
        del self.groups[keep:], self._starts[keep:]
        del self.body_chain[keep + 1 :], self.prompt_chain[keep + 1 :], self.ends[keep + 1 :]
        for strict, (_, checked) in [*self._checkers.items()]:
            if keep < checked or not keep:
                del self._checkers[strict]

    def _extend(self, messages: list[Message], tokens: list[int]) -> None:
        # A message that joins the last wire message re-opens it.
        joins = self.wire.joins
        if messages and self.groups and joins(self.groups[-1].messages, messages[0], card=self.card):
            reopened = self.groups[-1].messages
            messages = reopened + messages
            tokens = [self.ends[-1] - self.ends[-2], *[0] * (len(reopened) - 1), *tokens]
            self._truncate(self._starts[-1])
        position, taken = self._length, 0
        for group in group_messages(messages, self.wire, card=self.card):
            self._append_group(group, sum(tokens[taken : taken + len(group)]), position + taken)
            taken += len(group)

    def _append_group(self, messages: list[Message], tokens: int, position: int) -> None:
        group = self._kept.get(_identity(messages)) if self._kept else None
        if group is None:
            items, field = self.wire.write(messages, self.card), self.wire.layout.items.field
            data = b",".join(jsonbytes.dump_at(f"{field}.{position}", item) for item in items)
            group = EncodedGroup(messages, items, data)
        self.groups.append(group)
        self._starts.append(position)
        self.body_chain.append(_link(self.body_chain[-1], group.data))
        self.prompt_chain.append(_link(self.prompt_chain[-1], group.data))
        self.ends.append(self.ends[-1] + tokens)

    @property
    def own_mark(self) -> Any:
        """The cache mark in a field of its own, for all of the request; None without one."""
        return self._envelope.get(self.wire.layout.marks.field) if self.wire.layout.marks else None

    @property
    def envelope(self) -> Mapping[str, Any]:
        """Every field of the body but its items."""
        return self._envelope

    @property
    def _length(self) -> int:
        return self._starts[-1] + len(self.groups[-1].messages) if self._starts else 0

    def mark(self, marks: Sequence[PlacedMark], view: View) -> None:
        """Set the cache marks of the request that shows this view."""
        if (scheme := self.wire.layout.marks) is None:
            return
        self.marked_ends = {}
        if marks:
            located, write = self._locate(marks, view), partial(self.wire.write, card=self.card)
            self._marked = write_marked(self.groups, located, scheme=scheme, last=self._marked, write=write)
            self.sent = [self._marked[at][-1] if at in self._marked else one for at, one in enumerate(self.groups)]
            self.marked_ends = dict.fromkeys(self._link_end(end) for end, one in located if one.path == LAST_BLOCK)
        if self.own_mark:
            self.marked_ends[self.prompt_chain[-1]] = None

    def remember(self, positions: Iterable[int]) -> None:
        """Treat these positions of the view as ends of earlier requests that are in the cache."""
        ends = filter(None, (self._find_end(position - 1) for position in positions))
        self.cached.update(map(self._link_end, ends))

    def add_mark(self, marks: tuple[PlacedMark, ...], view: View, *, may_replace: bool) -> tuple[PlacedMark, ...]:
        """Return these marks with one at the end of the longest cached prefix, if the provider would not find that:
        it looks for such ends only in some blocks before each mark. ``may_replace``: where there is no room for one
        more, it is in place of the one that is of least use in this request and the next."""
        scheme, own = self.wire.layout.marks, self.own_mark
        if scheme is None or not scheme.look_back or not self.cached or not (marks or own):
            return marks
        ends = (
            GroupEnd(at, messages)
            for at in range(len(self.groups) - 1, -1, -1)
            for messages in range(len(self.groups[at].messages), 0, -1)
            # Others, such as changes of the tools, may not bear a mark.
            if self.groups[at].messages[messages - 1].role in ("user", "tool")
        )
        if (end := next((one for one in ends if self._link_end(one) in self.cached), None)) is None:
            return marks
        if not may_replace and self.marked_ends:
            self._ends_stay = self._link_end(end) == [*self.marked_ends][-1]
        located = self._locate(marks, view) if marks else []
        later = [one for one in located if one[0] > end or (one[0] == end and one[1].path == LAST_BLOCK)]
        searched = later[0][0].group if later else len(self.groups) - 1
        position = self._starts[end.group] + end.messages + self._leading - len(self.front) - 1
        # Without a mark behind it, the caller has what follows neither read from the cache nor written to it.
        is_wanted = (later or own) and self._count_blocks(end, searched) >= scheme.look_back
        if not is_wanted or position < self._systems:
            return marks
        # None before it lives shorter, and none behind it longer (A21).
        mark = later[0][1].mark if later else jsonbytes.dump(own).decode()
        added = PlacedMark(mark, entry=view.items[position].entry)
        if scheme.count([self._envelope, *self._envelope.values()]) + len(marks) < scheme.most:
            return (*marks, added)
        # A mark behind what changed is not read; one before it is not needed here.
        spare = [one for _, one in (*later, *located) if own or one is not located[-1][1]]
        # The next request reads up to the last mark, unless it will not have that end.
        spare = spare if self._ends_stay else [one for _, one in located[-1:]]
        return (*(one for one in marks if one is not spare[0]), added) if may_replace and spare else marks

    def _locate(self, marks: Sequence[PlacedMark], view: View) -> LocatedMarks:
        """Return the marks with the messages at whose ends, or in which, they are, in the order of these."""
        ends = ((self._find_end(find_position(one, view)), one) for one in marks)
        return sorted(((end, one) for end, one in ends if end), key=itemgetter(0))

    def _find_end(self, position: int) -> GroupEnd | None:
        """Return the end of the item at a position of the view; None in the envelope."""
        position += (len(self.front) if position >= self._systems else 0) - self._leading
        if not 0 <= position < self._length:
            return None
        at = bisect_right(self._starts, position) - 1
        return GroupEnd(at, position - self._starts[at] + 1)

    def _link_end(self, end: GroupEnd) -> str:
        """Return the link of the prompt that ends there."""
        group = self.groups[end.group]
        if end.messages == len(group.messages):
            return self.prompt_chain[end.group + 1]
        items = self.wire.write(group.messages[: end.messages], self.card)
        return _link(self.prompt_chain[end.group], b",".join(map(jsonbytes.dump, items)))

    def _count_blocks(self, end: GroupEnd, last: int) -> int:
        """Count the blocks from there to the end of a group."""
        known = self.wire.write(self.groups[end.group].messages[: end.messages], self.card)
        items = [item for group in self.groups[end.group : last + 1] for item in group.wire_messages]
        return sum(map(count_blocks, items)) - sum(map(count_blocks, known))

    def body(self, groups: Sequence[bytes] | None = None, opening: bytes = b"") -> bytes:
        """Return the body: the fields of the envelope, then the items. ``groups`` and ``opening``: in place of its
        own, as bytes."""
        groups = [group.data for group in self.sent] if groups is None else groups
        return b"".join((opening or self._opening, b",".join([data for data in groups if data]), b"]}"))

    def _open_without_mark(self) -> bytes:
        """Return the body up to its items, without the request's own mark."""
        if not self._bare and (scheme := self.wire.layout.marks):
            rest = {name: value for name, value in self._envelope.items() if name != scheme.field}
            self._bare = self._begin(jsonbytes.dump_at("body", rest))
        return self._bare

    def _begin(self, envelope: bytes) -> bytes:
        comma = b"," if envelope != b"{}" else b""
        return envelope[:-1] + comma + jsonbytes.dump(self.wire.layout.items.field) + b":["

    def close(self, start: int, items: Sequence[dict[str, Any]], *, unmarked: bool = False) -> tuple[bytes, str]:
        """Return the body with these items in place of the groups from ``start`` on, and the link of these items to
        the chain. ``unmarked``: without the request's own mark."""
        data = b",".join(jsonbytes.dump_at(self.wire.layout.items.field, item) for item in items)
        groups = [*(group.data for group in self.sent[:start]), data]
        body = self.body(groups, self._open_without_mark() if unmarked else b"")
        return body, _link(self.body_chain[start], data)

    def violations(self, *, strict: bool = False) -> list[Violation]:
        """List the violations of the wire's rules; ``strict``: also of those that are not verified yet. Only groups
        that are new to this check are read."""
        strict = strict or self._strict
        checker, checked = self._checkers.get(strict) or (None, 0)
        if checker is None:
            walk = self.wire.start_check(self._envelope, self.card)
            checker = Checker(self.wire.rules, walk, self.card, strict=strict)
        for group in self.groups[checked:]:
            for message in group.wire_messages:
                checker.feed(message)
        self._checkers[strict] = checker, len(self.groups)
        return checker.violations()


def _identity(messages: list[Message]) -> tuple[int, ...]:
    return tuple(map(id, messages))


def _link(previous: str, data: bytes) -> str:
    state = hashlib.sha256(previous.encode())
    state.update(data)
    return state.hexdigest()


def count_shared_links(chain: Sequence[str], earlier: Sequence[str]) -> int:
    """Count the links at the start that two chains share, by bisection: each link covers all before it."""
    low, high = 0, min(len(chain), len(earlier))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if chain[middle - 1] == earlier[middle - 1] else (low, middle - 1)
    return low
