"""A streamed answer passing by: events go on to the caller as they come, and the reply is recorded at the end.

Events are held back from where the model calls ``restore``. Where one cannot be taken in, the rest goes on unread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import WeakMethod

from lading.addresses import RESTORE
from lading.events import ReplyLost
from lading.exchange.call import MOST_RESTORES, Answered, Call
from lading.session.matching import essence
from lading.wire.replies import Reply, SseEvent
from lading.wire.sse import SseReader


class StreamedAnswer:
    """The streamed answer to a call. Several responses may make it up."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._stream = call.session.wire.replies.stream(RESTORE if call.session.offers_restore else "")
        self._parser = SseReader()
        self._unread = bytearray()
        """Bytes that complete no event yet."""
        self._splits = True
        """Whether bytes are split into events."""
        self._is_open = True
        """Whether the end of the answer is still to come."""
        call.conversation.leave = WeakMethod(self.leave)

    def feed(self, chunk: bytes) -> bytes:
        """Take in the next bytes; return those for the caller."""
        self._unread += chunk
        return self._read(partial(self._parser.feed, chunk))

    def end(self) -> Answered:
        """End a response. Return the last bytes for the caller, and the next body to send, whose stream continues
        the answer."""
        call, self._is_open = self._call, False
        out = self._read(self._parser.end)
        again = None if call.is_broken else call.guard(self._ask_again, lambda: None)
        if again is None:
            out += self._release()
            if not call.is_broken:
                call.guard(self._finish, lambda: None)
        self._is_open = again is not None
        return out, again

    def lose(self) -> None:
        """Report that the stream broke before the reply was whole."""
        self._is_open = False
        self._call.conversations.tell(ReplyLost(self._call.session.name, "the stream ended before the reply did"))

    def leave(self) -> None:
        """End the call of a caller that left, which may have read all that matters to it: take in what came. What
        still comes goes on unread."""
        if self._is_open and not self._call.is_broken:
            self._is_open = False
            self._call.guard(self._leave, lambda: None)
        self._call.release()
        self._call.is_broken = True

    def _read(self, events: Callable[[], list[SseEvent]]) -> bytes:
        """Pass events on. Bytes that cannot be split into events go on as they came."""
        found = self._call.guard(events, lambda: None) if self._splits else None
        if found is None:
            self._splits, found = False, [SseEvent(bytes(self._unread), "", "")]
        out = b"".join(map(self._pass, found))
        del self._unread[: sum(len(event.raw) for event in found)]
        return out

    def _pass(self, event: SseEvent) -> bytes:
        """Pass an event on. In the continuation of an answer each is tried: its parts have to be renumbered."""
        if self._call.is_broken and not self._call.restores:
            return event.raw
        return self._call.guard(lambda: b"".join(self._stream.feed(event)), lambda: self._release_raw() + event.raw)

    def _ask_again(self) -> bytes | None:
        """Return the request that continues a stream which only asked for ``restore``."""
        reply = self._hear()
        restores, others = self._call.count_restores(reply)
        is_final = others or not restores or not reply.complete or reply.choices > 1
        if is_final or self._call.restores > MOST_RESTORES:
            return None
        stream, parser = self._stream.again(), SseReader()
        body = self._call.restore(reply)
        self._stream, self._parser = stream, parser
        return body

    def _leave(self) -> None:
        if self._call.count_restores(self._stream.reply())[0]:
            self.lose()
        else:
            self._finish()

    def _finish(self) -> None:
        """Record the reply of a stream of which no more is read."""
        reply = self._hear()
        if reply.choices > 1:
            return
        if not reply.complete:
            self.lose()
            return
        self._call.record(reply, essence(self._stream.shown()))
        if self._call.count_restores(reply)[0]:
            self._call.answer(reply)

    def _hear(self) -> Reply:
        """Read the reply so far; report a whole one without usage, once for each session."""
        reply = self._stream.reply()
        if reply.complete and reply.usage is None and (missing := self._call.session.untold_usage()):
            self._call.conversations.tell(missing)
        return reply

    def _release(self) -> bytes:
        """Release the end that was held back without the calls of ``restore``, or else as it came."""
        held, release = self._stream.held, self._stream.release
        released = self._call.guard(
            lambda: b"".join(piece for one in held for piece in release(one)), self._release_raw
        )
        self._stream.held = []
        return released

    def _release_raw(self) -> bytes:
        """Release what was held back as it came."""
        held, self._stream.held = self._stream.held, []
        return b"".join([one.event.raw for one in held])
