"""Forward a streamed answer: events are passed to the caller as they arrive, and the reply is recorded at the end.

Events are held back from the first call of an own tool on. After an event that cannot be read, the rest is passed
on unread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import WeakMethod

from lading.events import ReplyLost
from lading.exchange.call import MOST_UNSEEN, AnswerStep, PackedCall
from lading.wire.replies import Reply, SseEvent, SseReader
from lading.wire.streams import DONE


class StreamedAnswer:
    """The streamed answer to a call; it may consist of several responses."""

    def __init__(self, call: PackedCall) -> None:
        self._call = call
        self._stream = call.session.wire.replies.stream(call.session.own_tools)
        self._parser = SseReader()
        self._unread = bytearray()
        """Bytes of the event that is not complete yet."""
        self._splits = True
        """Whether bytes are split into events."""
        self._is_open = True
        """Whether the answer has not ended yet."""
        self._is_done = False
        """Whether the provider's mark of the end was read."""
        call.conversation.leave = WeakMethod(self.leave)

    def feed(self, chunk: bytes) -> bytes:
        """Read the next bytes; return the bytes for the caller."""
        self._unread += chunk
        out = self._read(partial(self._parser.feed, chunk))
        self._call.guard(self._finish_at_mark, lambda: None)
        return out

    def _finish_at_mark(self) -> None:
        if self._is_done and self._is_open and not self._stream.held and not self._call.is_broken:
            # Callers stop reading here.
            self._is_open = False
            self._call.guard(self._finish, lambda: None)
            self._call.release()

    def end(self) -> AnswerStep:
        """End a response. Return the last bytes for the caller, and the next body to send if its stream continues
        the answer."""
        call, is_open, self._is_open = self._call, self._is_open, False
        out = self._read(self._parser.end)
        again = call.guard(self._ask_again, lambda: None) if is_open and not call.is_broken else None
        if again is None:
            out += self._release()
            if is_open and not call.is_broken:
                call.guard(self._finish, lambda: None)
        self._is_open = again is not None
        return out, again

    def lose(self) -> bytes:
        """Report that the stream broke, unless the reply was recorded. Return the last bytes for the caller: they
        waited for the end of their event."""
        rest = self._read(self._parser.end)
        self._call.guard(self._finish_at_mark, lambda: None)
        if self._is_open:
            self._is_open = False
            self._report_lost()
        return rest

    def _report_lost(self) -> None:
        self._call.conversations.report(ReplyLost(self._call.session.name, "the stream ended before the reply did"))

    def leave(self) -> None:
        """End the call of a caller that left; it may have read all that it needs, so the reply so far is recorded.
        Later events are passed on unread."""
        if self._is_open and not self._call.is_broken:
            self._is_open = False
            self._call.guard(self._leave, lambda: None)
        self._call.release()
        self._call.is_broken = True

    def _read(self, events: Callable[[], list[SseEvent]]) -> bytes:
        """Return the bytes of new events for the caller. Bytes that cannot be split into events are unchanged."""
        found = self._call.guard(events, lambda: None) if self._splits else None
        if found is None:
            self._splits, found = False, [SseEvent(bytes(self._unread), "", "")]
        out = b"".join(map(self._pass, found))
        self._is_done = self._is_done or any(event.data.strip() == DONE for event in found)
        del self._unread[: sum(len(event.raw) for event in found)]
        return out

    def _pass(self, event: SseEvent) -> bytes:
        """Return the bytes of one event for the caller. After a failure, events are still edited in the
        continuation of an answer, whose parts have to be renumbered."""
        if self._call.is_broken and not self._call.unseen:
            return self._release_raw() + event.raw
        return self._call.guard(lambda: b"".join(self._stream.feed(event)), lambda: self._release_raw() + event.raw)

    def _ask_again(self) -> bytes | None:
        """Return the body of the request that continues a stream which only called own tools; else None."""
        reply = self._read_reply()
        ours, others = self._call.count_own(reply)
        is_final = others or not ours or not reply.complete or reply.choices > 1
        if is_final or self._call.unseen > MOST_UNSEEN:
            return None
        stream, parser = self._stream.continue_answer(), SseReader()
        body = self._call.answer_unseen(reply)
        self._stream, self._parser, self._is_done = stream, parser, False
        return body

    def _leave(self) -> None:
        if self._call.count_own(self._stream.reply())[0]:
            self._report_lost()
        else:
            self._finish()

    def _finish(self) -> None:
        """Record the reply of a finished stream."""
        reply = self._read_reply()
        if not reply.complete:
            self._report_lost()
            return
        self._call.record(reply, self._stream.shown_message())
        if reply.choices == 1 and self._call.count_own(reply)[0]:
            self._call.answer(reply)

    def _read_reply(self) -> Reply:
        """Return the reply so far; report a complete one without usage, once per session."""
        reply = self._stream.reply()
        if reply.complete and reply.usage is None:
            self._call.session.report_missing_usage()
        return reply

    def _release(self) -> bytes:
        """Return the held events without the calls of own tools, or unchanged if that fails."""
        held, release = self._stream.held, self._stream.release
        released = self._call.guard(
            lambda: b"".join(piece for one in held for piece in release(one)), self._release_raw
        )
        self._stream.held = []
        return released

    def _release_raw(self) -> bytes:
        """Return the held events unchanged."""
        held, self._stream.held = self._stream.held, []
        return b"".join([one.event.raw for one in held])
