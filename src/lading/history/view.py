"""The log with its edits applied, in order: what the model sees.

A view grows at its end at the cost of the new messages. Applying an edit in the middle costs the view's length;
that happens at epochs only. Running sums make the questions a strategy asks on every call (how much is there, how
much could be removed) cheap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

from msgspec import Struct

from lading.addresses import RESTORE
from lading.history.log import Edit, EditKind, Entry
from lading.messages import Message, is_spoken

ADMITTED: frozenset[EditKind] = frozenset({"repaired", "reshaped", "clipped"})
"""Kinds of edits that say how one entry is shown where nothing takes it out of view."""
RESTORED_TOKENS = 2_500
"""What was restored stays as it is up to this size; no answer of the restore tool is larger."""


class Item(Struct, frozen=True):
    """One message of the view."""

    message: Message
    entry: int
    """The log entry it shows; the first one of a span."""
    tokens: int
    edit: int = -1
    """Index of the edit that produced it; -1 for the raw message."""
    clearable_tokens: int = 0
    """Tokens of tool results in it that an edit may still shorten: those that are no notes."""
    kind: EditKind | None = None
    """Kind of the edit that produced it; None for the raw message."""


class View:
    """The messages of a session as the next request would show them."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.rounds = 0
        """How many replies of the assistant were taken in, shown or not."""
        self.edits = 0
        """How many edits were applied."""
        self.readings: dict[object, Any] = {}
        """What strategies keep of reading each raw message once, under keys of theirs. The next view of the log
        takes it over; when entries are withdrawn, its ``forget(entry)`` is called, and what has none is dropped."""
        self.derived: dict[object, Any] = {}
        """What strategies computed of the view as it is. Emptied by each change."""
        self._entries: list[int] = []
        self._total = 0
        # Running sums, valid as far as they reach; edits cut them back, the next question extends them.
        self._tokens = [0]
        self._clearable = [0]
        self._first_assistant: int | None = None
        self._newest_request: tuple[int, Message] | None = None
        self._last_entry = -1
        self._raw: dict[int, Message] = {}
        self._users: list[int] = []
        self._admitted: dict[int, tuple[Message, ...]] = {}
        """Entries that are not shown as they came: how they are shown instead."""
        self._pinned: dict[int, tuple[Message, ...]] = {}
        self._restoring: set[str] = set()
        """Ids that now stand for a call that asked for something to be restored."""
        self._restored: set[int] = set()
        """Entries that answer such a call."""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return self._total

    @property
    def head(self) -> int:
        """Number of items before the log's first assistant message: the opening messages, which are pinned."""
        return len(self) if self._first_assistant is None else bisect_left(self._entries, self._first_assistant)

    @property
    def newest_request(self) -> tuple[int, Message] | None:
        """The newest raw message written by the user, with its entry, whether shown or not."""
        return self._newest_request

    @property
    def messages(self) -> list[Message]:
        """The messages without their entries."""
        return [item.message for item in self.items]

    def raw_between(self, first: int, last: int) -> Iterator[tuple[int, Message]]:
        """The raw messages of the entries ``first`` to ``last``, each with its entry, without withdrawn ones."""
        return ((entry, self._raw[entry]) for entry in range(first, last + 1) if entry in self._raw)

    def users_between(self, first: int, last: int) -> Iterator[tuple[int, Message]]:
        """The user's messages of ``raw_between``, the newest first, at the cost of their number."""
        start, end = bisect_left(self._users, first), bisect_right(self._users, last)
        return ((entry, self._raw[entry]) for entry in reversed(self._users[start:end]))

    def admitted_between(self, first: int, last: int) -> Iterator[tuple[int, tuple[Message, ...]]]:
        """The entries ``first`` to ``last``, each as shown before any clearing, record or drop, without withdrawn
        ones."""
        return ((entry, self._admitted.get(entry, (message,))) for entry, message in self.raw_between(first, last))

    def pinned_between(self, first: int, last: int) -> Iterator[Message]:
        """The pinned messages of the entries ``first`` to ``last``, as shown."""
        pinned = sorted(entry for entry in self._pinned if first <= entry <= last)
        return (message for entry in pinned for message in self._pinned[entry])

    def tokens_before(self, position: int) -> int:
        """Tokens of the items before ``position``."""
        self._sum_up(position)
        return self._tokens[position]

    def clearable_before(self, position: int) -> int:
        """Clearable tokens of the items before ``position``."""
        self._sum_up(position)
        return self._clearable[position]

    def first_clearable(self, start: int) -> int:
        """The first position from ``start`` on that holds clearable tokens; the length when there is none."""
        self._sum_up(len(self))
        return bisect_right(self._clearable, self._clearable[start], lo=start) - 1

    def position_with_tail(self, tail_tokens: int) -> int:
        """The first position with at most ``tail_tokens`` tokens from there on."""
        self._sum_up(len(self))
        return bisect_left(self._tokens, self.tokens - max(tail_tokens, 0))

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The half-open range of positions of the entries ``first`` to ``last``."""
        return bisect_left(self._entries, first), bisect_right(self._entries, last)

    def with_message(self, item: Item, message: Message) -> tuple[Message, ...]:
        """The messages of the item's entry, with this one in place of the item's own."""
        start, end = self.span(item.entry, item.entry)
        return tuple(message if sibling is item else sibling.message for sibling in self.items[start:end])

    def starts_entry(self, position: int) -> bool:
        """Whether the item at this position is the first of its entry."""
        return position == 0 or self._entries[position - 1] != self._entries[position]

    def last_entry(self, position: int) -> int:
        """The last log entry before ``position``, spans included; -1 for none. ``position`` is the length, or the
        first of its entry."""
        return self._entries[position] - 1 if position < len(self.items) else self._last_entry

    def copy(self) -> View:
        """Return a view to which edits can be applied without changing this one. The log is the same: messages go
        into one of the two only."""
        same = copy(self)
        same.items, same._entries = self.items.copy(), self._entries.copy()
        same._tokens, same._clearable = self._tokens.copy(), self._clearable.copy()
        same._admitted, same._pinned = self._admitted.copy(), self._pinned.copy()
        same.derived = {}
        return same

    def append(self, message: Message, *, entry: int, tokens: int) -> None:
        """Append one more raw message."""
        self.derived.clear()
        self._note(message, entry)
        self._push(self._item(message, tokens, entry=entry))

    def apply(self, edit: Edit) -> int:
        """Apply an edit to a span of entries; returns the first position that changed."""
        self.edits += 1
        self.derived.clear()
        self._note_edit(edit)
        self._pin(edit)
        start, end = self.span(edit.first, edit.last)
        replacement = [self._item(*shown, edit=edit) for shown in _shown(edit)]
        self._total += sum(item.tokens for item in replacement) - sum(item.tokens for item in self.items[start:end])
        self.items[start:end] = replacement
        self._entries[start:end] = [item.entry for item in replacement]
        del self._tokens[start + 1 :], self._clearable[start + 1 :]
        return start

    def _note(self, message: Message, entry: int) -> None:
        self._last_entry = entry
        self.rounds += message.role == "assistant"
        self._raw[entry] = message
        if message.role == "user":
            self._users.append(entry)
        if self._first_assistant is None and message.role == "assistant":
            self._first_assistant = entry
        if is_spoken(message) and message.text.strip():
            self._newest_request = entry, message
        for call in message.calls:
            (self._restoring.add if call.name == RESTORE else self._restoring.discard)(call.id)
        if any(result.call_id in self._restoring for result in message.results):
            self._restored.add(entry)

    def _pin(self, edit: Edit) -> None:
        if edit.kind == "pinned":
            self._pinned[edit.first] = edit.replacement

    def _note_edit(self, edit: Edit) -> None:
        if edit.first == edit.last and edit.kind in ADMITTED:
            self._admitted[edit.first] = edit.replacement

    def _item(self, message: Message, tokens: int, *, entry: int = -1, edit: Edit | None = None) -> Item:
        # What the model asked to see again is not taken from it a second time, or it would ask again.
        restored = tokens <= RESTORED_TOKENS and (edit.first if edit else entry) in self._restored
        clearable = tokens if message.results and not restored else 0
        if edit is None:
            return Item(message, entry, tokens, clearable_tokens=clearable)
        left = 0 if edit.kind in ("cleared", "pinned") else clearable
        return Item(message, edit.first, tokens, edit.index, left, edit.kind)

    def _push(self, item: Item) -> None:
        self.items.append(item)
        self._entries.append(item.entry)
        self._total += item.tokens

    def _sum_up(self, position: int) -> None:
        for item in self.items[len(self._tokens) - 1 : position]:
            self._tokens.append(self._tokens[-1] + item.tokens)
            self._clearable.append(self._clearable[-1] + item.clearable_tokens)


def rebuild(entries: Sequence[Entry], edits: Sequence[Edit]) -> View:
    """The view of a whole log, at the cost of its length: for reopening, verifying, and epochs."""
    view = View()
    shown: dict[int, Edit | None] = {}
    gone = {entry for edit in edits if edit.withdraws for entry in range(edit.first, edit.last + 1)}
    for edit in edits:
        view._note_edit(edit)
        if edit.first not in gone:
            view._pin(edit)
        shown |= dict.fromkeys(range(edit.first, edit.last + 1))
        shown[edit.first] = edit
    for entry in entries:
        if entry.index in gone:
            view._last_entry = entry.index
        else:
            view._note(entry.message, entry.index)
        if entry.index not in shown:
            view._push(view._item(entry.message, entry.tokens, entry=entry.index))
        elif (edit_here := shown[entry.index]) is not None:
            for message, tokens in _shown(edit_here):
                view._push(view._item(message, tokens, edit=edit_here))
    return view


def _shown(edit: Edit) -> Iterator[tuple[Message, int]]:
    """What an edit shows, with the tokens of each message."""
    return zip(edit.replacement, edit.replacement_tokens, strict=True)
