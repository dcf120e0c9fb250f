"""One call of a client on its way: packed, sent, answered, asked again where the model wants something back.

Nothing here knows of HTTP: a body goes out, a response body or the events of a stream come in. What fails on
the way never reaches the caller unless it asked for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakMethod

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.audit.restore import address_asked
from lading.clients.conversations import Conversation, Conversations
from lading.clients.history import GivenMessages, read_body
from lading.clients.unpacked import is_kept
from lading.clients.wrapping import Given, guarded, words
from lading.errors import LadingError, LoopStopped, WireError
from lading.events import LoopDetected, PackingFailed, ReplyLost, Restored
from lading.messages import Message, Text, ToolResult
from lading.request.pack import Pack
from lading.session.matching import essence
from lading.stores.leases import Lease
from lading.wire import Wire
from lading.wire.replies import Reply, SseEvent, summed
from lading.wire.sse import SseReader

Answered: TypeAlias = tuple[bytes, bytes | None]
"""What goes to the caller, and the next body to send, if any."""

MOST_RESTORES = 8
"""How often one call of the caller is answered for the model before it has to do with what it has."""
_ENOUGH = "Nothing more is restored in this step. Go on with what you have."


class Call:
    """A call that was packed. ``begin`` makes it."""

    def __init__(self, conversations: Conversations, held: Conversation, *, pack: Pack, lease: Lease) -> None:
        self._conversations = conversations
        self._conversation, self._session = held, held.session
        self._lease = lease
        self._replies = self._session.wire.replies
        self._restores = 0
        self._spent: dict[str, Any] = {}
        """What the requests before this one took, of a response that is made of several."""
        self._stream = self._replies.stream(RESTORE if self._session.offers_restore else "")
        self._parser = SseReader()
        self._streams = False
        """Whether a stream began whose end has not been seen."""
        self._unread = bytearray()
        """What came of the stream and is no event yet."""
        self._splits = True
        """Whether what comes is split into events."""
        self._is_broken = False
        """Whether the answer is not recorded, because it could not be taken in."""
        self._is_unsure = False
        """Whether something failed that no error is known for: what the session holds may be half of a step."""
        self.body = pack.body
        """What is sent."""

    def retry(self, status: int, text: str) -> bytes | None:
        """A smaller request, when the provider refused this one as too long and it can be made smaller."""
        if not 400 <= status < 500:
            return None
        return self._guarded(lambda: self._smaller(text), lambda: None)

    def take(self, data: bytes) -> Answered:
        """Take in a whole response: what the caller gets of it, and the next body to send in its place, if the
        model only wanted something restored."""
        return self._guarded(lambda: self._taken(data), lambda: (self._without_restore(data), None))

    def stream(self) -> None:
        """A streamed response begins."""
        self._streams = True
        self._conversation.leave = WeakMethod(self.done)

    def feed(self, chunk: bytes) -> bytes:
        """Take in a piece of a streamed response; what goes on to the caller now."""
        self._unread += chunk
        return self._read(partial(self._parser.feed, chunk))

    def end(self) -> Answered:
        """The stream ended: what goes to the caller still, and the next body to send, whose stream goes on
        with the same answer."""
        self._streams = False
        out = self._read(self._parser.end)
        again = None if self._is_broken else self._guarded(self._asked_again, lambda: None)
        if again is not None:
            self.stream()
            return out, again
        out += self._released()
        if not self._is_broken:
            self._guarded(self._ended, lambda: None)
        return out, None

    def lost(self) -> None:
        """The stream broke before the reply was whole."""
        self._streams = False
        self._conversations.tell(ReplyLost(self._session.name, "the stream ended before the reply did"))

    def done(self) -> None:
        """The caller has its answer, or an error, or went away, maybe in the middle of a stream."""
        if self._streams and not self._is_broken:
            # A client may go once it has read all that matters to it.
            self._streams = False
            self._guarded(self._left, lambda: None)
        if self._is_unsure:
            self._conversations.drop(self._session)
        self._guarded(self._lease.release, lambda: None)
        self._is_broken = True  # What still comes of the stream goes by.

    def _smaller(self, text: str) -> bytes | None:
        try:
            body, budget = self._session.retry(text).body, self._session.settings.budget
        except LadingError:
            # No overflow, or nothing left to take out: the provider's own error says it best.
            return None
        if budget.is_learned:
            self._conversations.windows[self._session.model] = budget.window_tokens
        return body

    def _taken(self, data: bytes) -> Answered:
        try:
            value = jsonbytes.load(data)
        except ValueError as error:
            raise WireError(f"The response is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise WireError("The response is no JSON object.")
        reply = self._replies.read(value)
        restores, others = self._restoring(reply)
        if reply.choices > 1:
            return data, None
        if not restores:
            self._record(reply, essence(reply.message))
            return self._billed(value) or data, None
        if not others and self._restores <= MOST_RESTORES:
            self._spent = summed(self._spent, _usage_of(value))
            return b"", self._restored(reply)
        shown = self._replies.without(value, RESTORE)
        self._record(reply, essence(self._replies.read(shown).message))
        self._answer(reply)
        return self._billed(shown) or jsonbytes.dump(shown), None

    def _billed(self, value: dict[str, Any]) -> bytes:
        """The response with the usage of all requests that it took; empty where it took one."""
        if not self._spent or not _usage_of(value):
            return b""
        return jsonbytes.dump(value | {"usage": summed(self._spent, _usage_of(value))})

    def _read(self, events: Callable[[], list[SseEvent]]) -> bytes:
        """What goes on to the caller now. Bytes that cannot be split into events go on as they came."""
        found = self._guarded(events, lambda: None) if self._splits else None
        if found is None:
            self._splits, found = False, [SseEvent(bytes(self._unread), "", "")]
        out = b"".join(map(self._fed, found))
        del self._unread[: sum(len(event.raw) for event in found)]
        return out

    def _fed(self, event: SseEvent) -> bytes:
        """What goes on of an event. Where one cannot be taken in, all that follows goes on as it came. In what
        continues an answer each is tried: its parts have to be renumbered."""
        if self._is_broken and not self._restores:
            return event.raw
        return self._guarded(lambda: b"".join(self._stream.feed(event)), lambda: self._as_it_came() + event.raw)

    def _asked_again(self) -> bytes | None:
        """The request that goes on, where the stream that ended only wanted something restored."""
        reply = self._heard()
        restores, others = self._restoring(reply)
        if others or not restores or not reply.complete or reply.choices > 1 or self._restores > MOST_RESTORES:
            return None
        stream, parser = self._stream.again(), SseReader()
        body = self._restored(reply)
        self._stream, self._parser = stream, parser
        return body

    def _left(self) -> None:
        """Take in the reply of a stream that the caller left."""
        if self._restoring(self._stream.reply())[0]:
            self.lost()
        else:
            self._ended()

    def _ended(self) -> None:
        """Take in the reply of a stream of which no more is read."""
        reply = self._heard()
        if reply.choices > 1:
            return
        if not reply.complete:
            self.lost()
            return
        self._record(reply, essence(self._stream.shown()))
        if self._restoring(reply)[0]:
            self._answer(reply)

    def _heard(self) -> Reply:
        """The reply of a stream that ended; a whole one that does not say what it took is told of, once."""
        reply = self._stream.reply()
        if reply.complete and reply.usage is None and (missing := self._session.untold_usage()):
            self._conversations.tell(missing)
        return reply

    def _released(self) -> bytes:
        """The end of what was held back; as it came, where the calls of ``restore`` cannot be taken out."""
        held, release = self._stream.held, self._stream.release
        released = self._guarded(
            lambda: b"".join(piece for one in held for piece in release(one)), self._as_it_came
        )
        self._stream.held = []
        return released

    def _as_it_came(self) -> bytes:
        """What was held back, as it came."""
        held, self._stream.held = self._stream.held, []
        return b"".join([one.event.raw for one in held])

    def _without_restore(self, data: bytes) -> bytes:
        """A response that could not be taken in, as the caller may see it."""

        def without() -> bytes:
            value = jsonbytes.load(data)
            restores, _ = self._restoring(self._replies.read(value))
            return jsonbytes.dump(self._replies.without(value, RESTORE)) if restores else data

        return guarded(without, lambda _: data, fail_open=True)

    def _restoring(self, reply: Reply) -> tuple[int, int]:
        """How many calls are for the session to answer, and how many for the caller."""
        ours = sum(call.name == RESTORE for call in reply.message.calls) if self._session.offers_restore else 0
        return ours, len(reply.message.calls) - ours

    def _restored(self, reply: Reply) -> bytes:
        """Answer what the model asked for, unseen by the caller; the request that goes on from there."""
        self._record(reply, "")
        self._answer(reply)
        self._restores += 1
        return self._session.request(at_s=self._conversations.clock(), cause="restore").body

    def _record(self, reply: Reply, known_as: str) -> None:
        if known_as and self._session.told.ends_with(known_as):
            return
        self._session.extend([reply.message], known_as=[known_as], usage=reply.usage)

    def _answer(self, reply: Reply) -> None:
        if self._restores < MOST_RESTORES:
            results: Sequence[Message] = self._session.handle(reply)
        else:
            calls = [call for call in reply.message.calls if call.name == RESTORE]
            results = [
                Message("tool", (ToolResult(call.id, (Text(_ENOUGH),), is_error=True, name=RESTORE),))
                for call in calls
            ]
        self._session.extend(results, known_as=[""] * len(results))
        addresses = [
            address_asked(call, self._session.settings.owner)
            for call in reply.message.calls
            if call.name == RESTORE
        ]
        for message, asked in zip(results, addresses, strict=True):
            self._conversations.tell(Restored(self._session.name, asked, message.results[0].is_error))

    def _guarded(self, step: Callable[[], Given], otherwise: Callable[[], Given]) -> Given:
        """What a step gives; where it fails the provider's answer goes on as it is, and an event says so."""

        def failed(error: Exception) -> Given:
            self._is_unsure = self._is_unsure or not isinstance(error, LadingError)
            if not self._is_broken:
                self._is_broken = True
                self._conversations.tell(ReplyLost(self._session.name, words(error)))
            return otherwise()

        return guarded(step, failed, fail_open=self._conversations.wrapping.fail_open)


def begin(conversations: Conversations, body: bytes, *, wire: Wire, name: str = "") -> Call | None:
    """Pack a client's request; None when it has to go out as it is, because it is no conversation or (where
    that is wanted) because packing failed."""

    def failed(error: Exception) -> None:
        conversations.tell(PackingFailed(name, words(error)))

    return guarded(
        lambda: _packed(conversations, body, wire, name), failed, fail_open=conversations.wrapping.fail_open
    )


def _packed(conversations: Conversations, body: bytes, wire: Wire, name: str) -> Call | None:
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
    return Call(conversations, conversation, pack=pack, lease=lease)


def _usage_of(value: dict[str, Any]) -> dict[str, Any]:
    usage = value.get("usage")
    return usage if isinstance(usage, dict) else {}
