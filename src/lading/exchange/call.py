"""A packed call: the body to send, and its answer taken into the session.

What fails on the way never reaches the caller, unless it asked for errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.audit.restore import address_asked
from lading.errors import LadingError, LoopStopped, WireError
from lading.events import LoopDetected, PackingFailed, ReplyLost, Restored
from lading.exchange.conversations import Conversation, Conversations
from lading.exchange.history import GivenMessages, read_body
from lading.exchange.unpacked import is_kept
from lading.exchange.wrapping import Given, guarded, words
from lading.messages import Message, Text, ToolResult
from lading.request.pack import Pack
from lading.session.matching import fingerprint
from lading.stores.leases import Lease
from lading.wire import Wire
from lading.wire.replies import Reply, summed
from lading.wire.streams import object_at

Answered: TypeAlias = tuple[bytes, bytes | None]
"""Bytes for the caller, and the next body to send, if any."""

MOST_RESTORES = 8
"""How often ``restore`` is answered within one call before the model has to go on with what it has."""
_ENOUGH = "Nothing more is restored in this step. Go on with what you have."


class Call:
    """A packed call. ``begin`` makes it."""

    def __init__(self, conversations: Conversations, held: Conversation, *, body: bytes, lease: Lease) -> None:
        self.conversations, self.conversation, self.session = conversations, held, held.session
        self.body, self._lease = body, lease
        self.restores = 0
        """How many answers that asked for ``restore`` were answered unseen by the caller."""
        self.is_broken = False
        """Whether the answer is not recorded, because taking it in failed."""
        self._is_unsure = False
        """Whether an unknown error may have left the session half changed."""

    def retry(self, error: bytes) -> bytes | None:
        """Make a smaller request, where the provider refused this one as too long and it can be made smaller."""
        return self.guard(lambda: self._shrink(error.decode("utf-8", "replace")), lambda: None)

    def take(self, data: bytes) -> Answered:
        """Take in a whole response. Return its bytes for the caller, and the next body to send in its place where
        the model only asked for ``restore``."""

        def without_restore() -> Answered:
            return guarded(lambda: self._remove_restore(data), lambda _: data, fail_open=True), None

        return self.guard(lambda: self._take(data), without_restore)

    def release(self) -> None:
        """Let the next call of the conversation begin. Releasing twice is harmless."""
        if self._is_unsure:
            self.conversations.drop(self.session)
        self.guard(self._lease.release, lambda: None)

    def guard(self, step: Callable[[], Given], otherwise: Callable[[], Given]) -> Given:
        """Run a step. Where it fails, report that the reply is lost and return ``otherwise()``."""

        def failed(error: Exception) -> Given:
            self._is_unsure = self._is_unsure or not isinstance(error, LadingError)
            if not self.is_broken:
                self.is_broken = True
                self.conversations.tell(ReplyLost(self.session.name, words(error)))
            return otherwise()

        return guarded(step, failed, fail_open=self.conversations.wrapping.fail_open)

    def count_restores(self, reply: Reply) -> tuple[int, int]:
        """Count the calls for the session to answer, and those for the caller."""
        ours = sum(call.name == RESTORE for call in reply.message.calls) if self.session.offers_restore else 0
        return ours, len(reply.message.calls) - ours

    def restore(self, reply: Reply) -> bytes:
        """Answer a reply that the caller does not see; return the body of the request that continues it."""
        self.record(reply, "")
        self.answer(reply)
        self.restores += 1
        return self._tell(self.session.request(at_s=self.conversations.clock(), cause="restore"))

    def record(self, reply: Reply, known_as: str) -> None:
        """Add a reply to the log, unless it is there; ``known_as``: the fingerprint of what the caller sees."""
        if not known_as or self.session.known[-1:] != [known_as]:
            self.session.extend([reply.message], known_as=[known_as], usage=reply.usage)

    def answer(self, reply: Reply) -> None:
        """Add the results of a reply's calls of ``restore`` to the log."""
        calls = [call for call in reply.message.calls if call.name == RESTORE]
        if self.restores < MOST_RESTORES:
            results: Sequence[Message] = self.session.handle(reply)
        else:
            refused = [ToolResult(call.id, (Text(_ENOUGH),), is_error=True, name=RESTORE) for call in calls]
            results = [Message("tool", (result,)) for result in refused]
        self.session.extend(results, known_as=[""] * len(results))
        addresses = [address_asked(call, self.session.settings.owner) for call in calls]
        for message, asked in zip(results, addresses, strict=True):
            self.conversations.tell(Restored(self.session.name, asked, message.results[0].is_error))

    def _tell(self, pack: Pack) -> bytes:
        """Report the events of a pack; return its body."""
        for event in pack.events:
            self.conversations.tell(event)
        return pack.body

    def _shrink(self, error: str) -> bytes | None:
        try:
            body, budget = self._tell(self.session.retry(error)), self.session.settings.budget
        except LadingError:
            # No overflow, or nothing left to take out: the provider's own error says it best.
            return None
        if budget.is_learned:
            self.conversations.windows[self.session.model] = budget.window_tokens
        return body

    def _take(self, data: bytes) -> Answered:
        try:
            value = jsonbytes.load(data)
        except ValueError as error:
            raise WireError(f"The response is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise WireError("The response is no JSON object.")
        replies = self.session.wire.replies
        reply = replies.read(value)
        restores, others = self.count_restores(reply)
        if reply.choices > 1:
            return data, None
        if not restores:
            self.record(reply, fingerprint(reply.message))
            return self._bill(value) or data, None
        if not others and self.restores <= MOST_RESTORES:
            self.conversation.spent = summed(self.conversation.spent, object_at(value, "usage"))
            return b"", self.restore(reply)
        shown = replies.without(value, RESTORE)
        self.record(reply, fingerprint(replies.read(shown).message))
        self.answer(reply)
        return self._bill(shown) or jsonbytes.dump(shown), None

    def _bill(self, value: dict[str, Any]) -> bytes:
        """Write a response with the usage of all requests that it took; empty where it took one."""
        spent = self.conversation.spent
        if not spent or not (usage := object_at(value, "usage")):
            return b""
        self.conversation.spent = {}
        return jsonbytes.dump(value | {"usage": summed(spent, usage)})

    def _remove_restore(self, data: bytes) -> bytes:
        """Remove the calls of ``restore`` from a response."""
        replies, value = self.session.wire.replies, jsonbytes.load(data)
        restores, _ = self.count_restores(replies.read(value))
        return jsonbytes.dump(replies.without(value, RESTORE)) if restores else data


def begin(conversations: Conversations, body: bytes, *, wire: Wire, name: str = "") -> Call | None:
    """Pack a client's request. None when it has to go out as it is: it is no conversation, or packing failed and
    that is no error."""
    return guarded(
        lambda: _pack(conversations, body, wire, name),
        lambda error: conversations.tell(PackingFailed(name, words(error))),
        fail_open=conversations.wrapping.fail_open,
    )


def _pack(conversations: Conversations, body: bytes, wire: Wire, name: str) -> Call | None:
    value = read_body(body)
    if not isinstance(value, dict) or not isinstance(value.get("messages"), GivenMessages) or not value["messages"]:
        return None
    if is_kept(conversations, value):
        return None
    conversation, lease = conversations.begin(value, wire, name=name)
    session = conversation.session
    with ExitStack() as undo:
        undo.callback(lease.release)
        try:
            with conversations.dropping(session):
                pack = session.request(at_s=conversations.clock())
        except LoopStopped as stopped:
            conversations.tell(next(event for event in reversed(session.events) if isinstance(event, LoopDetected)))
            raise conversations.wrapping.stopped(kind=stopped.kind, times=stopped.times) from None
        for event in pack.events:
            conversations.tell(event)
        undo.pop_all()
    return Call(conversations, conversation, body=pack.body, lease=lease)
