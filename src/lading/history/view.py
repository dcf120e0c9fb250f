"""The view: the log with its edits applied, as the model sees it.

A view is handed to strategies, which may be users' own code: it has no method that changes it. The functions
``append_message`` and ``apply_edit`` do, for the history and its plans.
Appending costs what is new; applying an edit costs the length of the view, which happens only at compactions.
Prefix sums answer what a strategy asks on every call: how many tokens there are and how many could be removed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from operator import attrgetter
from typing import Any

from msgspec import Struct

from lading.addresses import RESTORE
from lading.frozen import FrozenList
from lading.history.log import Edit, EditKind, Entry
from lading.history.repair import is_late
from lading.messages import Message, extract_words, has_summary, is_spoken

_FOLDED: frozenset[EditKind] = frozenset({"summarised", "dropped"})
"""Kinds of edits that show little or nothing of the raw messages, and from which strategies do not make others."""
ADMITTED: frozenset[EditKind] = frozenset({"repaired", "reshaped", "clipped"})
"""Kinds of edits that change how one entry is shown without removing it."""
LARGE_TOKENS = 1_000
"""Results with at least this many tokens are looked at one by one, to be shortened alone."""
RESTORED_TOKENS = 2_500
"""Restored content up to this size is not compacted again; no answer of a tool of the session's own is larger."""
ONLY_RESTORE = frozenset({RESTORE})
"""The own tools of a session without a memory."""


class Item(Struct, frozen=True, gc=False):
    """One message of the view."""

    message: Message
    entry: int
    """Index of the log entry that it shows; the first one where it shows several."""
    tokens: int
    edit: int = -1
    """Index of the edit that produced it; -1 for the raw message."""
    clearable_tokens: int = 0
    """Tokens of its tool results that an edit may still shorten."""
    kind: EditKind | None = None
    """Kind of the edit that produced it; None for the raw message."""

    @property
    def is_late_result(self) -> bool:
        """Whether it shows, as text, a result that came after a request was sent without it."""
        return self.kind in ("repaired", "clipped") and is_late(self.message)


def _read(name: str) -> Any:
    """Make a property that only reads the slot of that name, without a call in Python: strategies read it often."""
    return property(attrgetter(name))


class View:
    """The messages of a session as the next request would show them."""

    # Without a dict of its own, no method can be replaced either.
    __slots__ = (
        *("_items", "_head", "_rounds", "_edits", "_readings", "_derived", "_entries", "_total", "_tokens"),
        *("_clearable", "_first_assistant", "_newest_request", "_last_entry", "_log", "_withdrawn", "_users"),
        *("_said", "_admitted", "_pinned", "_restoring", "_only_restoring", "_restored", "_payload", "_own_tools"),
        *("_large", "_replies", "_summaries", "_newest_words", "_lasts", "_changed"),
        "__weakref__",
    )
    items: Sequence[Item] = _read("_items")
    """The shown messages, in order, each with its entry and tokens."""
    head: int = _read("_head")
    """Number of opening messages: those before the first assistant message, which are never compacted."""
    rounds: int = _read("_rounds")
    """Number of replies of the assistant in the log, shown or not."""
    edits: int = _read("_edits")
    """Number of applied edits."""
    readings: dict[object, Any] = _read("_readings")
    """Values that strategies derive from raw messages, each read once, under keys of their own. The next view of
    the log keeps them. When entries are withdrawn, ``forget(entry)`` is called; values without it are dropped."""
    derived: dict[object, Any] = _read("_derived")
    """Values that strategies derive from the view. Cleared by each change."""
    tokens: int = _read("_total")
    """Tokens of all messages."""
    newest_request: tuple[int, Message] | None = _read("_newest_request")
    """Entry and raw text message of the user's newest request, shown or not; None when there is none."""
    changed: Mapping[int, Message] = _read("_changed")
    """By entry, the newest version of a message that the caller changed."""
    payload: int = _read("_payload")
    """Entry of the newest payload of a task's step; -1: there is none."""

    def __init__(self, log: Sequence[Entry] = (), *, own_tools: frozenset[str] = ONLY_RESTORE) -> None:
        """``log``: where the raw messages are read, entries that are not appended yet included. ``own_tools``: the
        names of the tools that the session answers itself."""
        self._log, self._own_tools = log, own_tools
        self._items: list[Item] = FrozenList()  # Changed here alone, by the methods of ``list``.
        self._head = self._rounds = self._edits = 0
        self._readings: dict[object, Any] = {}
        self._derived: dict[object, Any] = {}
        self._entries: list[int] = []
        self._total = 0
        # Prefix sums, valid up to their length. An edit truncates them, the next query extends them.
        self._tokens = [0]
        self._clearable = [0]
        self._replies = [0]
        self._large: list[int] = []
        """Positions of large results, as far as the sums go."""
        self._first_assistant: int | None = None
        self._newest_request: tuple[int, Message] | None = None
        self._newest_words: tuple[int, Message] | None = None
        """The same for the user's newest words, in a message of their own or beside tool results."""
        self._last_entry = -1
        self._withdrawn: set[int] = set()
        self._users: list[int] = []
        """Entries with the user's words,"""
        self._said: list[Message] = []
        """and their messages, which are often read again."""
        self._summaries: list[int] = []
        """Entries with a provider's own summary; some twice."""
        self._admitted: dict[int, tuple[Message, ...]] = {}
        """How entries with a repair or a cut of their own are shown."""
        self._pinned: dict[int, tuple[Message, ...]] = {}
        self._lasts: dict[int, int] = {}
        """By first entry, the last one of the newest edit of several."""
        self._changed: dict[int, Message] = {}
        self._payload = -1
        self._restoring: set[str] = set()
        """Ids of calls of the session's own tools; an id means the newest call that has it."""
        self._only_restoring: set[int] = set()
        """Entries of the assistant whose calls are all of these tools."""
        self._restored: set[int] = set()
        """Entries with the results of such calls."""

    def __len__(self) -> int:
        return len(self._items)

    @property
    def requests(self) -> dict[int, Message]:
        """The newest request, and the newest words beside tool results since, by entry: what the user asks for."""
        return dict(filter(None, (self._newest_request, self._newest_words)))

    @property
    def records_end(self) -> int:
        """Position after the records that follow the opening messages."""
        items = self._items
        return next((at for at in range(self._head, len(items)) if items[at].kind != "summarised"), len(items))

    @property
    def messages(self) -> list[Message]:
        """The messages of the items."""
        return [item.message for item in self._items]

    def raw_between(self, first: int, last: int) -> Iterator[tuple[int, Message]]:
        """Iterate over (entry, raw message) from entry ``first`` to ``last``, without withdrawn ones; a changed one
        in its newest version."""
        entries = range(max(first, 0), min(last, self._last_entry) + 1)
        shown = (entry for entry in entries if entry not in self._withdrawn)
        return ((entry, self._changed.get(entry) or self._log[entry].message) for entry in shown)

    def users_between(self, first: int, last: int) -> Iterator[tuple[int, Message]]:
        """Iterate over the user's messages of ``raw_between`` that have a text, newest first, in time proportional
        to them."""
        start, end = bisect_left(self._users, first), bisect_right(self._users, last)
        return ((self._users[at], self._said[at]) for at in range(end - 1, start - 1, -1))

    def admitted_between(self, first: int, last: int) -> Iterator[tuple[int, tuple[Message, ...]]]:
        """Iterate over the entries ``first`` to ``last`` as they were shown before any compaction, without
        withdrawn ones."""
        return ((entry, self._admitted.get(entry, (message,))) for entry, message in self.raw_between(first, last))

    def summaries_between(self, first: int, last: int) -> Iterator[Message]:
        """Iterate over the messages of ``admitted_between`` with a provider's own summary, newest first, in time
        proportional to them."""
        start, end = bisect_left(self._summaries, first), bisect_right(self._summaries, last)
        for entry in reversed(self._summaries[start:end]):
            for _, shown in self.admitted_between(entry, entry):
                yield from filter(has_summary, reversed(shown))

    def pinned_between(self, first: int, last: int) -> Iterator[Message]:
        """Iterate over the pinned messages of the entries ``first`` to ``last``."""
        pinned = sorted(entry for entry in self._pinned if first <= entry <= last)
        return (message for entry in pinned for message in self._pinned[entry])

    def tokens_before(self, position: int) -> int:
        """Return the tokens of the items before ``position``."""
        if position >= len(self._tokens):
            self._extend_sums(position)
        return self._tokens[position]

    def clearable_before(self, position: int) -> int:
        """Return the clearable tokens of the items before ``position``."""
        self._extend_sums(position)
        return self._clearable[position]

    def first_clearable(self, start: int) -> int:
        """Return the first position from ``start`` on with clearable tokens; the length when there is none."""
        self._extend_sums(len(self._items))
        return bisect_right(self._clearable, self._clearable[start], lo=start) - 1

    def replies_before(self, position: int) -> int:
        """Return the number of items of the assistant before ``position``."""
        self._extend_sums(position)
        return self._replies[position]

    def list_large(self, start: int, end: int) -> list[int]:
        """List the positions from ``start`` to ``end`` with ``LARGE_TOKENS`` or more clearable ones, newest first,
        in time proportional to them."""
        if end >= len(self._tokens):
            self._extend_sums(end)
        return self._large[bisect_left(self._large, start) : bisect_left(self._large, end)][::-1]

    def find_tail(self, tail_tokens: int) -> int:
        """Return the first position from which on the view has at most ``tail_tokens`` tokens."""
        self._extend_sums(len(self._items))
        return bisect_left(self._tokens, self._total - max(tail_tokens, 0))

    def find_consumed_end(self, rounds: int = 1) -> int:
        """Return the position before which at least ``rounds`` assistant messages follow every result. One that
        only calls the session's own tools is no answer to a result yet."""
        position = len(self._items)
        while position and rounds:
            position -= 1
            item = self._items[position]
            rounds -= item.message.role == "assistant" and item.entry not in self._only_restoring
        return position

    def find_unfolded(self) -> int:
        """Return the first entry behind the opening messages that is not shown by a record, or left out."""
        behind = islice(self._items, self._head, None)
        unfolded = (item.entry for item in behind if item.kind not in _FOLDED)
        return next(unfolded, self._last_entry + 1)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the half-open range of positions that show the entries ``first`` to ``last``."""
        return bisect_left(self._entries, first), bisect_right(self._entries, last)

    def last_shown(self, entry: int) -> int:
        """Return the last log entry that the items of an entry show: a later one where an edit of several wrote
        them."""
        return min(self._lasts.get(entry, entry), self.last_entry(self.span(entry, entry)[1]))

    def with_message(self, item: Item, message: Message) -> tuple[Message, ...]:
        """Return the messages of the item's entry, with ``message`` in place of the item's own."""
        start, end = self.span(item.entry, item.entry)
        return tuple(message if sibling is item else sibling.message for sibling in self._items[start:end])

    def starts_entry(self, position: int) -> bool:
        """Whether the item at this position is the first of its entry."""
        return position == 0 or self._entries[position - 1] != self._entries[position]

    def last_entry(self, position: int) -> int:
        """Return the last log entry shown before ``position``; -1 for none. ``position`` must be the length of the
        view or the first position of an entry."""
        return self._entries[position] - 1 if position < len(self._items) else self._last_entry

    def copy(self) -> View:
        """Return a copy to which edits can be applied. It shares the log, so append to only one of the two."""
        same = copy(self)
        same._items, same._entries = FrozenList(self._items), self._entries.copy()
        same._tokens, same._clearable = self._tokens.copy(), self._clearable.copy()
        same._replies, same._large = self._replies.copy(), self._large.copy()
        same._admitted, same._pinned = self._admitted.copy(), self._pinned.copy()
        same._summaries, same._lasts, same._changed = self._summaries.copy(), self._lasts.copy(), {**self._changed}
        same._derived = {}
        return same

    def _track(self, message: Message, entry: int) -> None:
        self._last_entry = entry
        self._rounds += message.role == "assistant"
        self._track_summary(entry, message)
        if message.role == "user" and message.text.strip():
            self._users.append(entry)
            self._said.append(message)
            if is_spoken(message):
                self._newest_request = entry, message
            if words := extract_words(message):
                self._newest_words = entry, words
        if self._first_assistant is None and message.role == "assistant":
            self._first_assistant = entry
        calls = message.calls
        for call in calls:
            (self._restoring.add if call.name in self._own_tools else self._restoring.discard)(call.id)
        if calls and self._own_tools.issuperset(call.name for call in calls):
            self._only_restoring.add(entry)
        if any(result.call_id in self._restoring for result in message.results):
            self._restored.add(entry)

    def _track_summary(self, entry: int, *shown: Message) -> None:
        if any(map(has_summary, shown)):
            insort(self._summaries, entry)

    def _track_pin(self, edit: Edit) -> None:
        if edit.kind == "payload":
            self._pinned.pop(self._payload, None)  # Strategies may compact what it supersedes.
            self._payload = edit.first
        if edit.kind in ("pinned", "payload"):
            self._pinned[edit.first] = edit.replacement

    def _track_edit(self, edit: Edit) -> None:
        if edit.kind == "restated" and not edit.withdraws:
            self._changed[edit.first] = edit.replacement[0]
        if edit.first < edit.last:
            self._lasts[edit.first] = edit.last
        if edit.first == edit.last and (edit.kind in ADMITTED or (edit.kind == "restated" and not edit.withdraws)):
            self._admitted[edit.first] = edit.replacement
            self._track_summary(edit.first, *edit.replacement)

    def _make_item(self, message: Message, tokens: int, *, entry: int = -1, edit: Edit | None = None) -> Item:
        # The model asked to see what its own tools returned; compacting it again would make it ask again.
        restored = tokens <= RESTORED_TOKENS and (edit.first if edit else entry) in self._restored
        clearable = tokens if message.results and not restored else 0
        if edit is None:
            return Item(message, entry, tokens, clearable_tokens=clearable)
        # A strategy may show a pinned message again in an edit of its own.
        stays = edit.kind == "cleared" or any(self.pinned_between(edit.first, edit.last))
        left = 0 if stays else clearable
        return Item(message, edit.first, tokens, edit.index, left, edit.kind)

    def _push(self, item: Item) -> None:
        list.append(self._items, item)
        if self._first_assistant is None or item.entry < self._first_assistant:
            self._head = len(self._items)
        self._entries.append(item.entry)
        self._total += item.tokens

    def _extend_sums(self, position: int) -> None:
        for at, item in enumerate(self._items[len(self._tokens) - 1 : position], start=len(self._tokens) - 1):
            self._tokens.append(self._tokens[-1] + item.tokens)
            self._clearable.append(self._clearable[-1] + item.clearable_tokens)
            self._replies.append(self._replies[-1] + (item.message.role == "assistant"))
            if item.clearable_tokens >= LARGE_TOKENS:
                self._large.append(at)


def append_message(view: View, message: Message, *, entry: int, tokens: int) -> None:
    """Append one more raw message to the view."""
    view._derived.clear()
    view._track(message, entry)
    view._push(view._make_item(message, tokens, entry=entry))


def apply_edit(view: View, edit: Edit) -> int:
    """Apply an edit to a span of the view's entries; return the first position that changed."""
    view._edits += 1
    view._derived.clear()
    view._track_edit(edit)
    view._track_pin(edit)
    start, end = view.span(edit.first, edit.last)
    replacement = [view._make_item(*shown, edit=edit) for shown in _replacement(edit)]
    view._total += sum(item.tokens for item in replacement) - sum(item.tokens for item in view._items[start:end])
    list.__setitem__(view._items, slice(start, end), replacement)
    view._entries[start:end] = [item.entry for item in replacement]
    first = view._first_assistant
    view._head = len(view._items) if first is None else bisect_left(view._entries, first)
    del view._tokens[start + 1 :], view._clearable[start + 1 :], view._replies[start + 1 :]
    del view._large[bisect_left(view._large, start) :]
    return start


def rebuild(
    entries: Sequence[Entry],
    edits: Sequence[Edit],
    *,
    log: Sequence[Entry] | None = None,
    readings: dict[object, Any] | None = None,
    own_tools: frozenset[str] = ONLY_RESTORE,
) -> View:
    """Build the view of a whole log: for reopening, replaying and withdrawing. ``log``: where the raw messages are
    read; without, the entries. ``readings``: to go on with."""
    view = View(entries if log is None else log, own_tools=own_tools)
    view._readings = {} if readings is None else readings
    shown: dict[int, Edit | None] = {}
    gone = {entry for edit in edits if edit.withdraws for entry in range(edit.first, edit.last + 1)}
    for edit in edits:
        view._track_edit(edit)
        if edit.first not in gone:
            view._track_pin(edit)
        shown |= dict.fromkeys(range(edit.first, edit.last + 1))
        shown[edit.first] = edit
    for entry in entries:
        if entry.index in gone:
            view._last_entry = entry.index
            view._withdrawn.add(entry.index)
        else:
            view._track(view._changed.get(entry.index, entry.message), entry.index)
        if entry.index not in shown:
            view._push(view._make_item(entry.message, entry.tokens, entry=entry.index))
        elif (edit_here := shown[entry.index]) is not None:
            for message, tokens in _replacement(edit_here):
                view._push(view._make_item(message, tokens, edit=edit_here))
    return view


def _replacement(edit: Edit) -> Iterator[tuple[Message, int]]:
    """Iterate over the messages of an edit's replacement with their tokens."""
    return zip(edit.replacement, edit.replacement_tokens, strict=True)
