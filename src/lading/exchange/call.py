"""A packed call: choose which requests are packed, make the body to send, add its answer to the session.

Failures are reported as events and do not reach the caller, unless it asked for errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.audit.restore import read_requested_address
from lading.errors import LadingError, LoopStopped, WireError
from lading.events import PackingFailed, ReplyLost, Restored, Unpacked
from lading.exchange.bodies import GivenMessages
from lading.exchange.chains import make_whole
from lading.exchange.client_conversation import ClientConversation
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import T, attempt
from lading.guard import describe_error
from lading.history.validity import list_kept_calls
from lading.messages import Message, Text, ToolResult
from lading.request.manifest import Cause
from lading.session.matching import fingerprint
from lading.stores.leases import Lease
from lading.wire import Wire, list_plugged_wires, list_wires
from lading.wire.layout import Layout
from lading.wire.replies import Reply, add_usage

AnswerStep: TypeAlias = tuple[bytes, bytes | None]
"""Bytes for the caller, and the next body to send, if any."""

MOST_UNSEEN = 8
"""Requests sent to answer the session's own tools within one call; after that the model has to continue without."""
_ENOUGH = "Nothing more is restored or remembered in this step. Go on with what you have."


_OTHER_ENDPOINTS = "Use chat.completions, responses or messages to have it packed, or lading.Session."
_OTHER_OF_GOOGLE = "Use models.generate_content or chats to have it packed, or lading.Session."
_IN_OWN_LOOP = (
    "Pack with lading.Session and send by this client: messages.create(**session.pack(tools).request). "
    "If the cloud refuses its cache_control, set it on the last block."
)
_UNPACKED = {
    **dict.fromkeys(("/responses/compact", "/completions", "/complete", "/messages/batches"), _OTHER_ENDPOINTS),
    **dict.fromkeys(("/threads/runs", "/runs"), _OTHER_ENDPOINTS),
    **dict.fromkeys(("/interactions", ":batchGenerateContent"), _OTHER_OF_GOOGLE),
    **dict.fromkeys(("/invoke", "/invoke-with-response-stream", ":rawPredict", ":streamRawPredict"), _IN_OWN_LOOP),
}
"""Path endings of conversation endpoints that no provider format supports, each with the advice for its client. The
last ones are of Anthropic's clients for Bedrock and Vertex: the path has the model, which the body lacks, and the
streams of Bedrock are in a format of AWS."""


class PackedCall:
    """A packed call, made by ``begin``."""

    def __init__(
        self,
        conversations: Conversations,
        conversation: ClientConversation,
        *,
        body: bytes,
        lease: Lease,
        is_streamed: bool = False,
    ) -> None:
        """``is_streamed``: whether the request asks for a stream."""
        self.conversations, self.conversation, self.session = conversations, conversation, conversation.session
        self.body, self._lease, self.fail_open = body, lease, conversations.wrapping.fail_open
        self.is_streamed = is_streamed
        self.unseen = 0
        """Number of replies with calls of own tools that were answered without the caller seeing them."""
        self._before: Mapping[str, Any] = {}
        """The last of these as the caller would see it, of which its answer may be the rest."""
        self.is_broken = False
        """Whether reading the answer failed, so that it is not recorded."""
        self._is_unsure = False
        """Whether an unexpected error may have left the session inconsistent."""

    def retry(self, error: bytes) -> bytes | None:
        """Return a smaller body if the provider refused this one as too long and it can be made smaller."""
        return self.guard(lambda: self._shrink(error.decode("utf-8", "replace")), lambda: None)

    def take(self, data: bytes) -> AnswerStep:
        """Record a complete response. Return the bytes for the caller, and the next body to send if the model only
        called own tools."""

        def without_own() -> AnswerStep:
            return attempt(lambda: self._remove_own(data), lambda _: data, fail_open=True), None

        return self.guard(lambda: self._take(data), without_own)

    def release(self) -> None:
        """Release the conversation for its next call. Releasing twice is harmless."""
        if self._is_unsure:
            self.conversations.drop(self.session)
        self.guard(self._lease.release, lambda: None)

    def guard(self, step: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """Run a step. If it fails, report that the reply is lost and return ``otherwise()``."""

        def failed(error: Exception) -> T:
            if not self.is_broken:
                self.is_broken = True
                self.conversations.report(ReplyLost(self.session.name, describe_error(error)))
            return otherwise()

        def watched() -> T:
            try:
                return step()
            except LadingError:
                raise
            except BaseException:
                # KeyboardInterrupt too: the program may go on with this client.
                self._is_unsure = True
                raise

        return attempt(watched, failed, fail_open=self.fail_open)

    def count_own(self, reply: Reply) -> tuple[int, int]:
        """Count the reply's calls of own tools, which the session answers, and those that the caller answers."""
        own = self.session.own_tools
        ours = sum(call.name in own for call in reply.message.calls) if own else 0
        kept = list_kept_calls(reply.message) if ours else ()
        return ours, len(reply.message.calls) - ours + len(kept)

    def answer_unseen(self, reply: Reply) -> bytes:
        """Answer a reply that the caller does not see; return the body of the next request."""
        self.record(reply, None)
        self.answer(reply)
        self.unseen += 1
        cause: Cause = "restore" if any(call.name == RESTORE for call in reply.message.calls) else "memory"
        return self.session.request(at_s=self.conversations.clock(), cause=cause).body

    def record(self, reply: Reply, shown: Message | None) -> None:
        """Add a reply to the log, unless it is in it. ``shown``: the answer that the caller sees, if any. Of
        several, which have one usage, the first is added as it is shown: the caller may go on with another."""
        known_as = fingerprint(shown) if shown else ""
        message = shown if shown and reply.choices > 1 else reply.message
        if not known_as or not self.session.has_answer(known_as):
            reply_id = reply.id if self.session.wire.layout.items.continues else ""
            self.session.extend([message], known_as=[known_as], usage=reply.usage, reply_id=reply_id)

    def answer(self, reply: Reply) -> None:
        """Add the results of the reply's calls of own tools to the log."""
        calls = [call for call in reply.message.calls if call.name in self.session.own_tools]
        if self.unseen < MOST_UNSEEN:
            results: Sequence[Message] = self.session.handle(reply)
        else:
            refused = [ToolResult(call.id, (Text(_ENOUGH),), is_error=True, name=call.name) for call in calls]
            results = [Message("tool", (result,)) for result in refused]
        self.session.extend(results, known_as=[""] * len(results))
        for call, message in zip(calls, results, strict=True):
            if call.name == RESTORE:
                asked = read_requested_address(call, self.session.settings.owner)
                self.conversations.report(Restored(self.session.name, asked, message.results[0].is_error))

    def _shrink(self, error: str) -> bytes | None:
        try:
            body, budget = self.session.retry(error).body, self.session.settings.budget
        except LadingError:
            # No overflow, or nothing left to remove: the provider's own error is the better message.
            return None
        if budget.is_learned:
            self.conversations.windows[self.session.model] = budget.window_tokens
        return body

    def _take(self, data: bytes) -> AnswerStep:
        try:
            value = jsonbytes.load(data, read=jsonbytes.read_finite)
        except ValueError as error:
            raise WireError(f"The response is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise WireError("The response is not a JSON object.")
        replies = self.session.wire.replies
        reply = replies.read(value)
        if reply.complete and reply.usage is None:
            self.session.report_missing_usage(is_stream=False)
        if reply.choices > 1:
            return self._take_several(data, value, reply)
        ours, others = self.count_own(reply)
        shown = replies.go_on(self._before, value)
        if ours:
            shown = replies.without(shown, self.session.own_tools)
        if ours and not others and self.unseen <= MOST_UNSEEN:
            body, self._before = self.answer_unseen(reply), shown
            self.conversation.spent = add_usage(self.conversation.spent, replies.read_usage(value))
            return b"", body
        self.record(reply, reply.message if shown is value else replies.read(shown).message)
        if ours:
            self.answer(reply)
        return self._write_usage(shown) or (data if shown is value else jsonbytes.dump(shown)), None

    def _take_several(self, data: bytes, value: dict[str, Any], reply: Reply) -> AnswerStep:
        """Take several answers, of which the caller gives one back. If one only asks for calls of own tools, it is
        answered, and all are made anew: none may be empty."""
        replies = self.session.wire.replies
        answers = [replace(reply, message=one) for one in (reply.message, *reply.others)]
        asking = next((one for one in answers if (own := self.count_own(one))[0] and not own[1]), None)
        if asking is not None and self.unseen <= MOST_UNSEEN:
            body = self.answer_unseen(asking)
            self.conversation.spent = add_usage(self.conversation.spent, replies.read_usage(value))
            return b"", body
        shown = replies.without(value, self.session.own_tools)
        self.record(reply, replies.read(shown).message)
        return self._write_usage(shown) or (data if shown == value else jsonbytes.dump(shown)), None

    def _write_usage(self, value: dict[str, Any]) -> bytes:
        """Return the response with the usage of all its requests; empty if there was only one request."""
        spent, replies = self.conversation.spent, self.session.wire.replies
        if not spent or not (usage := replies.read_usage(value)):
            return b""
        self.conversation.spent = {}
        return jsonbytes.dump(value | {replies.usage: add_usage(spent, usage)})

    def _remove_own(self, data: bytes) -> bytes:
        """Return the response without its calls of own tools."""
        value, own = jsonbytes.load(data, read=jsonbytes.read_finite), self.session.own_tools
        shown = self.session.wire.replies.without(value, own) if own else value
        return data if shown == value else jsonbytes.dump(shown)


def begin(conversations: Conversations, body: bytes, *, wire: Wire, name: str, path: str) -> PackedCall | None:
    """Pack a client's request. None if it has to be sent unchanged: it is not a conversation, or packing failed and
    ``fail_open`` is set."""
    return attempt(
        lambda: _pack(conversations, body, wire, name=name, path=path),
        lambda error: conversations.report(PackingFailed(name, describe_error(error))),
        fail_open=conversations.wrapping.fail_open,
    )


def _pack(conversations: Conversations, body: bytes, wire: Wire, *, name: str, path: str) -> PackedCall | None:
    layout = wire.layout
    if layout.items.continues:
        conversations.endings.finish()
        body = make_whole(body, wire, find_log=conversations.find_log_with)
    value = conversations.bodies.read(body, layout, named=layout.named(path) or {})
    given = value.get(layout.items.field) if isinstance(value, dict) else None
    if not isinstance(given, GivenMessages) or not given:
        return None
    if _is_kept_by_provider(conversations, value, layout=layout):
        return None
    conversation, lease = conversations.begin(value, wire, name=name)
    session = conversation.session
    with ExitStack() as undo:
        undo.callback(lease.release)
        conversations.bodies.remember(given)
        try:
            with conversations.drop_on_error(session):
                pack = session.request(at_s=conversations.clock())
        except LoopStopped as stopped:
            raise conversations.wrapping.stopped(kind=stopped.kind, times=stopped.times) from None
        is_streamed = layout.demands(value).is_streamed
        undo.pop_all()
    return PackedCall(conversations, conversation, body=pack.body, lease=lease, is_streamed=is_streamed)


def find_wire_by_path(conversations: Conversations, method: str, *, path: str) -> Wire | None:
    """Return the provider format of a request by its path; None if the request is not packed."""
    if method != "POST":
        return None
    if found := _find_by_path(list_wires(), path) or _find_by_path(_list_plugged(conversations), path):
        return found
    if end := next((end for end in _UNPACKED if path.endswith(end)), ""):
        report_unpacked(conversations, f"the endpoint ...{end}", advice=_UNPACKED[end])
    return None


def report_unpacked(conversations: Conversations, what: str, *, advice: str = _OTHER_ENDPOINTS) -> None:
    """Report, once, that conversations over this endpoint, or requests of this kind, are not packed."""
    conversations.report_once(Unpacked(what, advice))


def _find_by_path(found: Iterable[Wire], path: str) -> Wire | None:
    return next((wire for wire in found if wire.layout.named(path) is not None), None)


def _list_plugged(conversations: Conversations) -> tuple[Wire, ...]:
    """List the provider formats of entry points, once per client because listing them is slow."""

    def failed(error: Exception) -> tuple[Wire, ...]:
        conversations.report(PackingFailed("", describe_error(error)))
        return ()

    if conversations.plugged is None:
        conversations.plugged = attempt(list_plugged_wires, failed, fail_open=conversations.wrapping.fail_open)
    return conversations.plugged


def _is_kept_by_provider(conversations: Conversations, body: Mapping[str, Any], *, layout: Layout) -> bool:
    """Whether the provider stores the conversation of a request or its working files, which a packed request would
    contradict. An object without id and type only asks for a new one."""
    given = ((name, body[name]) for name in layout.kept if body.get(name))
    field = next((name for name, it in given if not isinstance(it, dict) or it.get("id") or it.get("type")), "")
    if field:
        advice = f"Leave {field} out and send the whole history to have the request packed.{layout.kept[field]}"
        conversations.report_once(Unpacked(f"the field {field}", advice))
    return bool(field)
