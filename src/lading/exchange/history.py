"""Read the history that a request gives: the whole conversation, of which only what is new is decoded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.exchange.marks import Place, kept_places, marks_in
from lading.messages import Message
from lading.session.coercion import MARK, unmarked
from lading.session.matching import fingerprint
from lading.wire import Wire

DIGEST_BYTES = 16
_MARK = MARK.encode()
_FORCING = frozenset({"required", "any", "tool"})
_NAMING = ("model", "system")
_SYSTEM = ("system", "developer")

Read: TypeAlias = tuple[Message, str]
"""A message with its fingerprint."""


class GivenMessages(Sequence[Any]):
    """The messages of a request as they came, each decoded when it is asked for."""

    def __init__(self, raws: Sequence[Any], *, may_bear: bool, envelope: bytes) -> None:
        """``raws``: the JSON of each. ``may_bear``: whether a cache mark may be in them. ``envelope``: the JSON of
        the other fields that name a conversation."""
        self.raws = raws
        self._may_bear, self._envelope = may_bear, envelope
        self._decoded: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.raws)

    def __getitem__(self, at: Any) -> Any:
        at = range(len(self.raws))[at]
        if at not in self._decoded:
            self._decoded[at] = jsonbytes.load(self.raws[at])
        return self._decoded[at]

    def find(self, is_wanted: Callable[[object], bool]) -> int:
        """Return the index of the first message with such a role, or the length."""
        roles = (item.get("role") if isinstance(item, dict) else None for item in self)
        return next((at for at, role in enumerate(roles) if is_wanted(role)), len(self))

    @cached_property
    def unmarked(self) -> Mapping[int, Any]:
        """Those that bear cache marks, without them."""
        may = (at for at, raw in enumerate(self.raws) if _MARK in bytes(raw)) if self._may_bear else ()
        return {at: bare for at in may if (bare := unmarked(self[at])) is not self[at]}

    @cached_property
    def digests(self) -> bytes:
        """``DIGEST_BYTES`` for the envelope, and for the bytes of each message without cache marks."""
        raws = [self._envelope, *self.raws]
        for at, bare in self.unmarked.items():
            raws[1 + at] = jsonbytes.dump(bare)
        return b"".join([sha256(raw).digest()[:DIGEST_BYTES] for raw in raws])

    def select(self, start: int, end: int, *, kept: Set[Place] = frozenset()) -> list[Any]:
        """Return the messages between two indices with marks only at the places ``kept``."""
        marked = self.unmarked
        return [
            unmarked(self[at], place=(at,), kept=kept) if at in marked else self[at] for at in range(start, end)
        ]


def read_body(data: bytes) -> Any:
    """Read a request's body, with its list of messages as ``GivenMessages``. Raises ValueError."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        raws = msgspec.json.decode(fields.pop("messages"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError, KeyError):
        value = jsonbytes.load(data)
        if isinstance(value, dict) and isinstance(items := value.get("messages"), list):
            written = [json.dumps(item).encode() for item in items]
            envelope = json.dumps([value.get(name) for name in _NAMING]).encode()
            return value | {"messages": GivenMessages(written, may_bear=True, envelope=envelope)}
        return value
    values = {name: jsonbytes.load(raw) for name, raw in fields.items()}
    envelope = b",".join([bytes(fields.get(name, b"")) for name in _NAMING])
    return values | {"messages": GivenMessages(raws, may_bear=_MARK in data, envelope=envelope)}


class Opening(Struct, frozen=True):
    """The messages before the first reply: a conversation is found by them."""

    leading: list[Read]
    """The system messages at the start."""
    start: int
    """Index of the first other message in the request's list; one provider format has ``leading`` elsewhere."""
    reply: int
    """Index of the first reply, or the length of the list."""
    head: str
    """Digest of model, provider format and the messages between ``leading`` and the first reply."""
    digests: bytes
    """Of all these bytes and the first reply, as ``GivenMessages.digests``; empty where there is no reply yet."""


class History:
    """The history that a request gives. Positions in it count the system messages at its start."""

    def __init__(self, body: Mapping[str, Any], wire: Wire, *, openings: Iterable[Opening] = ()) -> None:
        """``openings``: of earlier requests; one that this history starts with is not decoded again. Raises
        WireError when the opening cannot be decoded."""
        given = self._given = body["messages"]
        self._wire = wire
        self._start, self._read = 0, list[Read]()
        self.marks = marks_in(given, given.unmarked)
        """The caller's cache marks by their places."""
        known = next((one for one in openings if one.digests and given.digests.startswith(one.digests)), None)
        reply = known.reply if known else given.find(lambda role: role == "assistant")
        self._kept = kept_places(given, self.marks, head=reply, wire=wire.name)
        self.opening = known or self._open(body, reply)
        self._offset = self.opening.start - len(self.opening.leading)

    def __len__(self) -> int:
        return len(self._given) - self._offset

    @cached_property
    def digests(self) -> bytes:
        """``DIGEST_BYTES`` for each message after those at the start."""
        digests: bytes = self._given.digests
        return digests[(1 + self.opening.start) * DIGEST_BYTES :]

    def has_reply_before(self, position: int) -> bool:
        """Whether a reply is before a position."""
        return self.opening.reply < position + self._offset

    def read(self, position: int) -> list[Read]:
        """Decode the messages from a position after those at the start on. Raises WireError, InputError."""
        return self._decode(position + self._offset, len(self._given))

    def _decode(self, start: int, end: int) -> list[Read]:
        """Decode the messages between two indices at most once, with the cache marks that stay."""
        if not self._start <= start <= end <= self._start + len(self._read):
            messages = self._wire.decode({"messages": self._given.select(start, end, kept=self._kept)}).messages
            self._start, self._read = start, [(message, fingerprint(message)) for message in messages]
        return self._read[start - self._start : end - self._start]

    def _open(self, body: Mapping[str, Any], reply: int) -> Opening:
        given, wire = self._given, self._wire
        has_field = wire.name == "anthropic"
        start = 0 if has_field else given.find(lambda role: role not in _SYSTEM)
        system = {"system": body["system"]} if has_field and body.get("system") is not None else {}
        leading = wire.decode({"messages": given.select(0, start), **system}).messages
        first = [known_as for _, known_as in self._decode(start, reply)]
        head = jsonbytes.digest(jsonbytes.dump([wire.name, str(body.get("model", "")), *first]))
        digests = given.digests[: (2 + reply) * DIGEST_BYTES] if reply < len(given) else b""
        return Opening([(message, fingerprint(message)) for message in leading], start, reply, head, digests)


class Asked:
    """A request whose conversation is looked for."""

    def __init__(self, body: Mapping[str, Any], wire: Wire, name: str, *, openings: Iterable[Opening] = ()) -> None:
        """Raises WireError when the messages at the start cannot be read."""
        self.model, self.wire, self.name = str(body.get("model", "")), wire, name
        self.history = History(body, wire, openings=openings)
        self.wanted = name or f"c-{self.history.opening.head[:16]}"
        self.may_be_stored = bool(name) or self.history.has_reply_before(len(self.history))
        """Whether it may go on with what another process has begun."""
        self.held: set[str] = set()
        """Sessions that others hold, and for longer than can be waited."""


def forces(body: Mapping[str, Any]) -> bool:
    """Whether the caller forces a tool choice, or asks for several answers at once."""
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    forced = kind in _FORCING or (isinstance(choice, dict) and kind not in ("auto", "none"))
    return forced or body.get("n") not in (None, 1)
