"""Read the history in a request. The request has the whole conversation; only its new messages are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.exchange.bodies import DIGEST_BYTES, GivenMessages
from lading.lazy import lazy
from lading.messages import Message
from lading.session.matching import fingerprint
from lading.session.regrouping import Run
from lading.wire import Wire

FingerprintedMessage: TypeAlias = tuple[Message, str]
"""A message with its fingerprint."""


class Opening(Struct, frozen=True):
    """The messages before the first reply; they identify a conversation."""

    leading: list[FingerprintedMessage]
    """The system messages at the start."""
    start: int
    """Index of the first other message in the request's list, which need not contain ``leading``."""
    reply: int
    """Index of the first reply, or the length of the list."""
    head: str
    """Digest of model, provider format and the messages between ``leading`` and the first reply."""
    digests: bytes
    """Digests up to and including the first reply, as in ``GivenMessages.digests``; empty without a reply."""


class RequestHistory:
    """The history in a request. Positions include the system messages at its start."""

    def __init__(self, body: Mapping[str, Any], wire: Wire, *, openings: Iterable[Opening] = ()) -> None:
        """``openings``: of earlier requests; one that starts this history is not decoded again. Raises WireError if
        the opening cannot be decoded."""
        given: GivenMessages = body[wire.layout.items.field]
        self._given = given
        self._wire = wire
        self._start, self._read = 0, list[FingerprintedMessage]()
        self.items, self.marks = given, given.marks
        self.runs: Sequence[Run] = ()  # Messages that the log has as others.
        self.regrouped: dict[object, RequestHistory] = {}  # By conversation, with the messages of its log.
        known = next((one for one in openings if one.digests and given.digests.startswith(one.digests)), None)
        reply = known.reply if known else given.find(lambda role: role == "assistant")
        self.opening = known or self._open(body, reply)
        # What is added to a position for the index of its item.
        self.offset = self.opening.start - len(self.opening.leading)

    def __len__(self) -> int:
        return len(self._given) - self.offset

    def find_position(self, item: int) -> int:
        """Return the position of the message of an item."""
        return item - self.offset

    def count_same(self, digests: bytes) -> int:
        """Count the messages at the start, if these are their digests; else those of ``leading``."""
        return len(self.opening.leading) + (len(digests) // DIGEST_BYTES if self.digests.startswith(digests) else 0)

    @lazy
    def digests(self) -> bytes:
        """``DIGEST_BYTES`` for each message after those at the start."""
        return self._given.digests[(1 + self.opening.start) * DIGEST_BYTES :]

    def has_reply_before(self, position: int) -> bool:
        """Whether there is a reply before the position."""
        return self.opening.reply < position + self.offset

    def find_last_reply(self) -> int:
        """Return the position behind the last reply; 0 without one."""
        # From the end, so that the rest of a long history is not decoded.
        starts = (max(len(self) - tail, len(self.opening.leading)) for tail in (8, 64, len(self)))
        read = (self.read(start) for start in starts if self.has_reply_before(len(self)))
        messages = next((some for some in read if any(one.role == "assistant" for one, _ in some)), [])
        asked = takewhile(lambda one: one[0].role != "assistant", reversed(messages))
        return len(self) - sum(1 for _ in asked) if messages else 0

    def read(self, position: int) -> list[FingerprintedMessage]:
        """Decode the messages from a position on, which is after ``leading``. Raises WireError, InputError."""
        return self._decode(position + self.offset, len(self._given))

    def _decode(self, start: int, end: int) -> list[FingerprintedMessage]:
        """Decode the messages from ``start`` to ``end`` once, without cache marks."""
        if not self._start <= start <= end <= self._start + len(self._read):
            messages = self._wire.read_items(self._given.select(start, end))
            self._start, self._read = start, [(message, fingerprint(message)) for message in messages]
        return self._read[start - self._start : end - self._start]

    def _open(self, body: Mapping[str, Any], reply: int) -> Opening:
        given, wire = self._given, self._wire
        start = given.find(lambda role: role != "system")
        leading = (*wire.read_system(body), *wire.read_items(given.select(0, start)))
        first = [known_as for _, known_as in self._decode(start, reply)]
        head = jsonbytes.digest(jsonbytes.dump([wire.name, str(body.get("model", "")), *first]))
        digests = given.digests[: (2 + reply) * DIGEST_BYTES] if reply < len(given) else b""
        return Opening([(message, fingerprint(message)) for message in leading], start, reply, head, digests)


def name_conversation(head: str) -> str:
    """Return the name of a conversation that its caller did not name; ``head``: as of ``Opening``."""
    return f"c-{head[:16]}"


class ConversationRequest:
    """A search for the conversation of a request."""

    def __init__(self, body: Mapping[str, Any], wire: Wire, name: str, *, openings: Iterable[Opening] = ()) -> None:
        """Raises WireError if the messages at the start cannot be read."""
        self.model, self.wire, self.name = str(body.get("model", "")), wire, name
        self.history = RequestHistory(body, wire, openings=openings)
        self.wanted = name or name_conversation(self.history.opening.head)
        self.may_be_stored = bool(name) or self.history.has_reply_before(len(self.history))
        """Whether it may continue a stored conversation, for instance of another process."""
        self.held: set[str] = set()
        """Names of the sessions that another process held for longer than the wait."""
        self.has_copied = False
        """Whether a conversation was copied for it, which is no use a second time."""
        self.last_ending: object = None
        """The newest of ``Endings`` before the search. A later one may free a conversation that was not tried."""
