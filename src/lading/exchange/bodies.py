"""Read request bodies. A client sends its whole history each time: messages whose bytes an earlier body had are not
decoded again."""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from lading import jsonbytes
from lading.exchange.marks import GivenMarks, find_marks
from lading.lazy import lazy
from lading.wire.layout import Layout

DIGEST_BYTES = 16
NOTHING: Mapping[str, Any] = MappingProxyType({})
_SEPARATORS = b", \t\r\n"
_STAND_IN = b'"messages that were read before"'
_MOST_EARLIER = 32  # Remembered bodies: that many conversations can alternate without decoding anew.
_MOST_BYTES = 32_000_000  # Total size of the remembered bodies.
_BLOCK_BYTES = 1 << 16


class EarlierBody(NamedTuple):
    """The messages of an earlier body."""

    blocks: Sequence[bytes] = ()
    """The bytes up to the end of the last message, in pieces, so that only the last piece is copied to append."""
    start: int = 0
    """Offset of the first byte after the bracket that opens the list of messages."""
    ends: Sequence[int] = ()
    """Offset of each message's end, but not of a last one whose items unite: it may go on in the next body."""
    digests: bytes = b""
    """``DIGEST_BYTES`` for each message."""
    marked: Sequence[int] = ()
    """Indices of the messages with cache marks."""
    layout: Layout | None = None

    def find_shared(self, data: bytes) -> EarlierBody:
        """Return the part up to the last message that ``data`` shares, where all bytes up to there are equal."""
        at, block = 0, b""
        for block in self.blocks:
            if not data.startswith(block, at):
                break
            at += len(block)
        else:
            return self
        low, high = (bisect_right(self.ends, end) for end in (at, at + len(block)))
        known = bisect_left(self.ends, True, low, high, key=lambda end: not data.startswith(block[: end - at], at))
        if self.layout and self.layout.items.unites:
            known = max(known - 1, 0)  # What follows that message is not equal, and may be a part of it.
        marked, digests = [at for at in self.marked if at < known], self.digests[: known * DIGEST_BYTES]
        return self._replace(ends=self.ends[:known], digests=digests, marked=marked)


NONE = EarlierBody()


class GivenMessages(Sequence[Any]):
    """The messages of a request as received, each decoded on first access. An element is an item, or a list of
    items that form one message."""

    def __init__(
        self, raws: list[Any], layout: Layout, *, envelope: bytes, data: bytes = b"", shared: EarlierBody = NONE
    ) -> None:
        """``raws``: the JSON of each item after those of ``shared``. ``envelope``: the JSON of the other fields
        that identify a conversation. ``data``: the body; empty if it cannot be shared."""
        self._layout, self._envelope, self._data = layout, envelope, data
        self.runs = _unite(raws, layout.items.unites)
        self.shared, self.known = shared, len(shared.ends)
        self._decoded: dict[int, Any] = {}

    def __len__(self) -> int:
        return self.known + len(self.runs)

    def __getitem__(self, at: Any) -> Any:
        at = range(len(self))[at]
        if at not in self._decoded:
            if at < self.known:
                start = self.shared.ends[at - 1] if at else self.shared.start
                raw = self._data[start : self.shared.ends[at]].lstrip(_SEPARATORS)
            else:
                raw = b",".join(self.runs[at - self.known])
            self._decoded[at] = jsonbytes.load(b"[%s]" % raw if self._layout.items.unites else raw)
        return self._decoded[at]

    def find(self, is_wanted: Callable[[str], bool]) -> int:
        """Return the index of the first message whose role is wanted, or the length."""
        items = self._layout.items
        roles = (items.role(one[0] if items.unites else one) for one in self)
        return next((at for at, role in enumerate(roles) if is_wanted(role)), len(self))

    @lazy
    def unmarked(self) -> Mapping[int, Any]:
        """The messages with cache marks, by index, without these marks."""
        if (scheme := self._layout.marks) is None:
            return {}
        may, mark = [*self.shared.marked], scheme.field.encode()
        may += (at for at, run in enumerate(self.runs, start=self.known) if mark in run[0])
        return {at: bare for at in may if (bare := scheme.strip(self[at])) is not self[at]}

    @lazy
    def digests(self) -> bytes:
        """``DIGEST_BYTES`` for the envelope, and for the bytes of each message without cache marks."""
        raws = [self._envelope, *map(b",".join, self.runs)]
        for at, bare in self.unmarked.items():
            if at >= self.known:
                raws[1 + at - self.known] = jsonbytes.dump(bare)
        envelope, *new = [sha256(raw).digest()[:DIGEST_BYTES] for raw in raws]
        return b"".join([envelope, self.shared.digests, *new])

    @lazy
    def marks(self) -> GivenMarks:
        """The caller's cache marks by their paths."""
        scheme = self._layout.marks
        return find_marks(self, scheme, bearing=self.unmarked) if scheme and self.unmarked else {}

    def select(self, start: int, end: int) -> list[Any]:
        """Return the items of the messages from ``start`` to ``end`` without cache marks."""
        found = [self.unmarked.get(at, self[at]) for at in range(start, end)]
        return [item for run in found for item in run] if self._layout.items.unites else found

    def to_earlier_body(self) -> EarlierBody:
        """Return this body as an earlier one for the next request."""
        data, shared = self._data, self.shared
        ends = array("Q", shared.ends)
        field = re.escape(self._layout.items.field.encode())
        if (opened := re.search(rb'"%s"[ \t\r\n]*:[ \t\r\n]*\[' % field, data)) is None:
            return NONE
        at = ends[-1] if ends else opened.end()
        for run in self.runs:
            for raw in run:
                while data[at] in _SEPARATORS:
                    at += 1
                if not data.startswith(raw, at):
                    # The regular expression found another field of the same name.
                    return NONE
                at += len(raw)
            ends.append(at)
        whole = (shared.ends[-1] if self.known else 0) // _BLOCK_BYTES
        new = [data[one : min(one + _BLOCK_BYTES, at)] for one in range(whole * _BLOCK_BYTES, at, _BLOCK_BYTES)]
        blocks = (*shared.blocks[:whole], *new)
        del ends[len(ends) - 1 if self._layout.items.unites else len(ends) :]
        digests = self.digests[DIGEST_BYTES : (1 + len(ends)) * DIGEST_BYTES]
        return EarlierBody(blocks, opened.end(), ends, digests, [*self.unmarked], self._layout)


class Bodies:
    """The newest bodies of a client."""

    def __init__(self) -> None:
        self._earlier: list[EarlierBody] = []

    def read(self, data: bytes, layout: Layout, *, named: Mapping[str, Any] = NOTHING) -> Any:
        """Read a body, reusing the earlier one that shares most messages. Raises like ``read_body``."""
        found = [one.find_shared(data) for one in reversed(self._earlier) if one.layout is layout]
        shared = max(found, key=lambda one: len(one.ends), default=NONE)
        return read_body(data, layout, named=named, shared=shared)

    def remember(self, messages: GivenMessages) -> None:
        """Remember a body; it replaces the earlier one that it continues."""
        earlier = [one for one in self._earlier if one is not messages.shared]
        earlier = [*earlier, messages.to_earlier_body()][-_MOST_EARLIER:]
        while sum(len(block) for one in earlier for block in one.blocks) > _MOST_BYTES:
            del earlier[0]
        self._earlier = earlier


def read_body(
    data: bytes, layout: Layout, *, named: Mapping[str, Any] = NOTHING, shared: EarlierBody = NONE
) -> Any:
    """Read a body, its messages as ``GivenMessages`` that begin with those of ``shared``. ``named``: fields given
    in the path of the request. Raises ValueError."""
    # One string replaces the shared messages, so that the rest is parsed as JSON in the same context.
    read = data[: shared.start] + _STAND_IN + data[shared.ends[-1] :] if shared.ends else data
    field, naming = layout.items.field, ("model", layout.system)
    try:
        fields = layout.respell(msgspec.json.decode(read, type=dict[str, msgspec.Raw]))
        raws: list[Any] = msgspec.json.decode(fields.pop(field), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError, KeyError):
        if shared.ends:
            return read_body(data, layout, named=named)
        value = jsonbytes.load(data)
        if not isinstance(value, dict) or not isinstance(items := layout.items.read(value.get(field)), list):
            return value
        value = layout.respell(value)
        values, data, raws = value, b"", [json.dumps(item).encode() for item in items]
        envelope = json.dumps([value.get(name) for name in naming]).encode()
    else:
        if shared.ends and (read.count(_STAND_IN) > 1 or list(map(bytes, raws[:1])) != [_STAND_IN]):
            # The list of messages is another field of the same name.
            return read_body(data, layout, named=named)
        values = {name: jsonbytes.load(bytes(raw)) for name, raw in fields.items()}
        envelope = b",".join([bytes(fields.get(name, b"")) for name in naming])
        raws = raws[1:] if shared.ends else raws
    if named:
        values, envelope = {**named, **values}, jsonbytes.dump(dict(named)) + envelope
    return values | {field: GivenMessages(raws, layout, envelope=envelope, data=data, shared=shared)}


def _unite(raws: list[Any], unites: Callable[[Any, Any], bool] | None) -> list[list[bytes]]:
    """Return the JSON of the items of each message: items that unite form one."""
    items = [jsonbytes.load(bytes(raw)) for raw in raws] if unites else []
    runs: list[list[bytes]] = []
    for at, raw in enumerate(raws):
        if unites and at and unites(items[at - 1], items[at]):
            runs[-1].append(bytes(raw))
        else:
            runs.append([bytes(raw)])
    return runs
