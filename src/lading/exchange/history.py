"""What a request tells of its conversation: the whole of it, from the first message on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from hashlib import sha256
from itertools import takewhile
from typing import Any

import msgspec

from lading import jsonbytes
from lading.exchange.marks import Place, kept_places, marks_in
from lading.messages import Message
from lading.session.coercion import MARK, unmarked
from lading.session.matching import essence
from lading.wire import Wire

MARKED_LEVELS = 3
"""Messages, their blocks, and the blocks of results in them bear cache marks."""
DIGEST_BYTES = 16
_MARK = MARK.encode()
_FORCING = frozenset({"required", "any", "tool"})


class GivenMessages(Sequence[Any]):
    """The messages of a request as they came, each decoded when it is asked for."""

    def __init__(self, raws: Sequence[Any], *, may_bear: bool) -> None:
        """``raws``: the JSON of each. ``may_bear``: whether a cache mark may stand in them."""
        self.raws = raws
        self._may_bear = may_bear
        self._decoded: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.raws)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        if at not in self._decoded:
            self._decoded[at] = jsonbytes.load(self.raws[at])
        return self._decoded[at]

    @cached_property
    def bearing(self) -> Set[int]:
        """Those that bear a cache mark."""
        may = (at for at, raw in enumerate(self.raws) if _MARK in bytes(raw)) if self._may_bear else ()
        return {at for at in may if _bear_mark((self[at],), levels=MARKED_LEVELS)}


def read_body(data: bytes) -> Any:
    """A request's body, with its list of messages as ``GivenMessages``. Raises ValueError."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        raws = msgspec.json.decode(fields.pop("messages"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError, KeyError):
        value = jsonbytes.load(data)
        if isinstance(value, dict) and isinstance(items := value.get("messages"), list):
            written = [json.dumps(item).encode() for item in items]
            return value | {"messages": GivenMessages(written, may_bear=True)}
        return value
    values = {name: jsonbytes.load(raw) for name, raw in fields.items()}
    return values | {"messages": GivenMessages(raws, may_bear=_MARK in data)}


class History:
    """What a request tells: the system messages at its start, and the messages after them as they came."""

    def __init__(self, body: Mapping[str, Any], wire: Wire) -> None:
        """Raises WireError when the messages at the start cannot be read."""
        given = self._given = body["messages"]
        self.marks = marks_in(given, given.bearing)
        """The caller's cache marks, by where they stand."""
        self._kept = kept_places(given, self.marks, wire=wire.name)
        self._wire = wire
        self._start = 0 if wire.name == "anthropic" else _systems(given)
        self.leading = _leading(body, self._items(0, self._start), wire)
        first = takewhile(lambda at: self.role(at) != "assistant", range(len(self)))
        before = sum(1 for _ in first)
        self.has_replies = before < len(self)
        self.head = _head(str(body.get("model", "")), wire, self._items(self._start, self._start + before))

    def __len__(self) -> int:
        """How many messages stand after those at the start."""
        return len(self._given) - self._start

    def role(self, position: int) -> object:
        """The role of the message at a position after those at the start."""
        item = self._given[self._start + position]
        return item.get("role") if isinstance(item, dict) else None

    @cached_property
    def digests(self) -> bytes:
        """``DIGEST_BYTES`` for each message after those at the start, of its bytes without cache marks."""
        raws, bearing = list(self._given.raws), self._given.bearing
        for at in bearing:
            raws[at] = jsonbytes.dump(unmarked(self._given[at]))
        return b"".join([sha256(raw).digest()[:DIGEST_BYTES] for raw in raws[self._start :]])

    @cached_property
    def messages(self) -> list[Message]:
        """The messages after those at the start. Raises WireError."""
        return self.messages_from(0)

    @cached_property
    def essences(self) -> list[str]:
        """Their essences."""
        return list(map(essence, self.messages))

    @cached_property
    def leads(self) -> list[str]:
        """The essences of the messages at the start."""
        return list(map(essence, self.leading))

    def messages_from(self, position: int) -> list[Message]:
        """The messages from a position after those at the start on, with the cache marks that stay."""
        items = self._items(self._start + position, len(self._given), self._kept)
        return list(self._wire.decode({"messages": items}).messages)

    def _items(self, start: int, end: int, kept: Set[Place] = frozenset()) -> list[Any]:
        """The messages between two places with marks only at the places ``kept``."""
        given = self._given
        return [
            unmarked(given[at], place=(at,), kept=kept) if at in given.bearing else given[at]
            for at in range(start, end)
        ]


class Asked:
    """A request whose conversation is looked for."""

    def __init__(self, body: Mapping[str, Any], wire: Wire, name: str) -> None:
        """Raises WireError when the messages at the start cannot be read."""
        self.model, self.wire, self.name = str(body.get("model", "")), wire, name
        self.history = History(body, wire)
        self.wanted = name or f"c-{self.history.head[:16]}"
        self.may_be_stored = bool(name) or self.history.has_replies
        """Whether it may go on with what another process has begun."""
        self.held: set[str] = set()
        """Sessions that others hold, and for longer than can be waited."""


def forces(body: Mapping[str, Any]) -> bool:
    """Whether the caller forces a tool choice, or asks for several answers at once."""
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    forced = kind in _FORCING or (isinstance(choice, dict) and kind not in ("auto", "none"))
    return forced or body.get("n") not in (None, 1)


def _bear_mark(items: Sequence[Any], *, levels: int) -> bool:
    """Whether one of these or a block in them bears a cache mark."""
    for item in items:
        if isinstance(item, dict):
            if MARK in item:
                return True
            content = item.get("content")
            if isinstance(content, list) and levels > 1 and _bear_mark(content, levels=levels - 1):
                return True
    return False


def _systems(given: Iterable[Any]) -> int:
    """How many system messages stand at the start."""
    is_system = (isinstance(item, dict) and item.get("role") in ("system", "developer") for item in given)
    return sum(1 for _ in takewhile(bool, is_system))


def _leading(body: Mapping[str, Any], systems: list[Any], wire: Wire) -> list[Message]:
    """The system messages at the start, which one wire has in a field of their own."""
    system = {"system": body["system"]} if wire.name == "anthropic" and body.get("system") is not None else {}
    return list(wire.decode({"messages": systems, **system}).messages)


def _head(model: str, wire: Wire, items: list[Any]) -> str:
    """The digest of what a conversation starts with: model, wire, and the messages before the first reply."""
    first = wire.decode({"messages": items}).messages
    return jsonbytes.digest(jsonbytes.dump([wire.name, model, *map(essence, first)]))
