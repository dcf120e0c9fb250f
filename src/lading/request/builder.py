"""Build the growing request of a session: each wire message is encoded, checked and digested once.

The digest is a chain. Each link covers the link before it and new bytes: first those of the envelope, then those of
each group of messages that share wire messages. Equal last links mean equal bytes, but for the cache marks of
``mark``.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lading import jsonbytes
from lading.errors import Violation
from lading.history.view import Item, View
from lading.messages import Conversation, Message, Template, Tool
from lading.models.card import Card
from lading.request.marks import EncodedGroup, PlacedMark, Places, Written, find_position, write_marked
from lading.wire import Wire, group_messages
from lading.wire.checking import Checker
from lading.wire.layout import CacheMarks, list_blocks


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
        self._marked: Written = {}
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
    def envelope(self) -> Mapping[str, Any]:
        """Every field of the body but its items."""
        return self._envelope

    @property
    def _length(self) -> int:
        return self._starts[-1] + len(self.groups[-1].messages) if self._starts else 0

    def mark(self, view: View, marks: Sequence[PlacedMark], *, at_last_end: bool | None = None) -> bool:
        """Set the cache marks of the request that shows this view. ``at_last_end``: whether the end of the request
        before bears one too; None: where the provider would not find that end without. Return whether it does."""
        if (scheme := self.wire.layout.marks) is None:
            return False
        places: Places = {}
        for one in marks:
            position = find_position(one, view)
            position += (len(self.front) if position >= self._systems else 0) - self._leading
            if 0 <= position < self._length:
                at = bisect_right(self._starts, position) - 1
                places.setdefault(at, []).append((position - self._starts[at], one))
        own = self._envelope.get(scheme.field) or next((one.mark for one in marks if one.entry is None), None)
        if at_last_end is None:
            at_last_end = bool(own) and self._needs_mark(own, scheme, places)
        if at_last_end:
            end = self._find_reply() - 1
            places.setdefault(end, []).append((len(self.groups[end].messages) - 1, PlacedMark(own)))
        if places:
            write = partial(self.wire.write, card=self.card)
            self._marked = write_marked(self.groups, places, scheme=scheme, last=self._marked, write=write)
            self.sent = [self._marked[at][-1] if at in places else one for at, one in enumerate(self.groups)]
        return at_last_end

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

    def _needs_mark(self, own: Any, scheme: CacheMarks, places: Places) -> bool:
        """Whether the end of the last request has to bear this mark of the request's end too, and there is room for
        it: the provider looks for a cached end only in some blocks before a mark. ``places``: of other marks."""
        if not (start := self._find_reply()):
            return False
        blocks = sum(
            max(len(list_blocks(item)), 1) for group in self.groups[start:] for item in group.wire_messages
        )
        if not 0 < scheme.look_back <= blocks:
            return False
        # Only behind a long round: the whole request is searched.
        field, mark = jsonbytes.dump(scheme.field) + b":", jsonbytes.dump(own)
        data = (self._opening, *(group.data for group in self.groups))
        # Marks of another lifetime behind it might be illegal (A21).
        same = all(one.count(field) == one.count(field + mark) for one in data[start + 1 :]) and all(
            one.mark == own for at, found in places.items() if at >= start for _, one in found
        )
        return same and sum(one.count(field) for one in data) + sum(map(len, places.values())) < scheme.most

    def _find_reply(self) -> int:
        """Return the index of the group with the last reply; 0: none."""
        groups = self.groups
        return next((at for at in range(len(groups) - 1, 0, -1) if groups[at].messages[0].role == "assistant"), 0)

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
