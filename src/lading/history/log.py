"""The log of a session: raw messages, append-only, and the frozen edits of them.

An ``Entry`` is a message as it arrived. An ``Edit`` replaces a span of entries by other messages, or by none, in
all requests from one call on. The log is never rewritten; ``view.py`` applies the edits. A ``Log`` holds old
entries compressed: they are only restored, searched and replayed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Literal, TypeAlias, overload
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.messages import Message
from lading.structs import convert

_Kept: TypeAlias = Literal["repaired", "restated", "pinned", "payload"]
EditKind: TypeAlias = Literal[_Kept, "reshaped", "clipped", "cleared", "digested", "summarised", "dropped"]
"""``repaired`` by the repairer, ``restated``, ``pinned`` and (for a task's step) ``payload`` by the caller; others
are a strategy's."""

NO_COMPACTIONS: tuple[EditKind, ...] = ("repaired", "restated", "pinned", "payload")
"""Kinds of edits that are no compaction; strategies may not use them."""

_BLOCK_ENTRIES = 32
"""Entries that are compressed together: digests apart, more of them are no smaller."""
_COMPRESSION_LEVEL = 3


class Reported(Struct, frozen=True, omit_defaults=True):
    """The usage that the provider reported for one call, with its reply."""

    input_tokens: int
    """All input: read from the cache, written to it, and neither."""
    output_tokens: int = 0
    read_tokens: int = 0
    """Of the input, read from the prompt cache."""
    written_tokens: int = 0
    """Of the input, written to the prompt cache."""


class Entry(Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of the log, as it arrived."""

    index: int
    message: Message
    digest: str
    """SHA-256 of the message as stored (``jsonbytes.dump_value``)."""
    tokens: int
    """Tokens of the raw message by the session's counter, framing included."""
    round: int = 0
    """Number of assistant messages before this entry, itself included when it is one."""
    turn: int = 0
    """Number of user messages before this entry, itself included when it is one."""
    at_s: float | None = None
    """Time of the message in seconds since 1970, if the source recorded it."""
    usage: Reported | None = None
    """Reported usage of the call that this message answers, if any."""
    known_as: str | None = None
    """Fingerprint (``matching.fingerprint``) of the message in the caller's history; empty: it is not in there;
    None: that of ``message``."""
    reply_id: str = ""
    """The provider's id of this reply, where a caller may continue from it by its id."""


class Log(Sequence[Entry]):
    """The entries of a session, only appended. ``compress`` packs old ones; they are read again when needed."""

    def __init__(self) -> None:
        self._entries: list[Entry | None] = []
        """None: it is compressed."""
        self._blocks: dict[int, _Packed] = {}
        # The opening messages are read at each call of a wrapped client: the first block stays.
        self._next = 1
        self._read: tuple[int, list[Entry]] = -1, []
        """The compressed block that was read last."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return (entry or self._unpack(at) for at, entry in enumerate(self._entries))

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> list[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | list[Entry]:
        if isinstance(at, slice):
            return [self._entries[index] or self._unpack(index) for index in range(len(self._entries))[at]]
        return self._entries[at] or self._unpack(range(len(self._entries))[at])

    def __eq__(self, other: object) -> bool:
        return [*self] == [*other] if isinstance(other, list | Log) else NotImplemented

    def append(self, entry: Entry) -> None:
        """Append an entry."""
        self._entries.append(entry)

    def compress(self, end: int | None = None) -> None:
        """Compress the entries before ``end`` (default: all), up to a block, unless JSON cannot carry them."""
        for number in range(self._next, (len(self._entries) if end is None else end) // _BLOCK_ENTRIES):
            span = slice(number * _BLOCK_ENTRIES, (number + 1) * _BLOCK_ENTRIES)
            with suppress(TypeError, ValueError):
                self._blocks[number] = _pack(self[span])
                self._entries[span] = [None] * _BLOCK_ENTRIES
            self._next = number + 1

    def _unpack(self, index: int) -> Entry:
        number, at = divmod(index, _BLOCK_ENTRIES)
        known, entries = self._read
        if known != number:
            data = zlib.decompress(self._blocks[number].data)
            entries = convert(jsonbytes.load(data), list[Entry])
            self._read = number, entries
        return entries[at]


class _Packed:
    """Compressed entries."""

    def __init__(self, data: bytes) -> None:
        self.data = data


_all_packed: WeakValueDictionary[str, _Packed] = WeakValueDictionary()
"""By digest. A session and its store in memory have equal logs, and hold one copy of what is compressed."""


def _pack(entries: list[Entry]) -> _Packed:
    packed = _Packed(zlib.compress(jsonbytes.dump(msgspec.to_builtins(entries)), _COMPRESSION_LEVEL))
    return _all_packed.setdefault(jsonbytes.digest(packed.data), packed)


class Edit(Struct, frozen=True, omit_defaults=True):
    """A decision, made once and applied identically at each later call.

    The entries ``first`` to ``last`` (both included) are shown as ``replacement``.
    """

    index: int
    call: int
    """The call from whose request on it applies."""
    kind: EditKind
    first: int
    last: int
    replacement: tuple[Message, ...]
    replacement_tokens: tuple[int, ...]
    """Tokens of each message of ``replacement``."""
    tokens_before: int
    """Tokens of the replaced messages in the view."""
    reason: str
    forced_tokens: int = 0
    """How many of the removed tokens the window required; the rest is voluntary."""
    pointers: tuple[str, ...] = ()
    """Addresses under which the removed bytes can be read again."""
    summary: str = ""
    """Of a model in the replacement: the version of its instructions, such as ``prompt 3``; ``failed`` if it could
    not be used, ``skipped`` if none was asked for after failures."""

    @property
    def withdraws(self) -> bool:
        """Whether the caller removed its entries from the history."""
        return self.kind == "restated" and not self.replacement

    @property
    def tokens_after(self) -> int:
        """Tokens of the replacement."""
        return sum(self.replacement_tokens)


class Draft(Struct, frozen=True):
    """An edit proposed by a strategy; the fields are those of ``Edit``."""

    kind: EditKind
    first: int
    last: int
    replacement: tuple[Message, ...]
    reason: str
    pointers: tuple[str, ...]
    summary: str = ""


def log_chain(previous: str, entry: Entry) -> str:
    """Return the next link of the digest chain over a log's entries: message, position, counts, time, usage, id."""
    facts: tuple[object, ...] = (entry.digest, entry.index, entry.tokens, entry.round, entry.turn, entry.at_s)
    if entry.usage is not None or entry.known_as is not None:
        facts = (*facts, msgspec.to_builtins(entry.usage), entry.known_as)
    if entry.reply_id:
        facts = (*facts, entry.reply_id)
    return jsonbytes.digest(previous.encode() + jsonbytes.dump(facts))
