"""Sort request bodies and message lists by conversation: the requests of one become one recording.

Accepted values: a body with its list of messages or items; that list; ``{"request": body, "response": reply}``,
where the reply is a provider's response or its message; a body with its own ``response`` or ``choices``. Each may
have an ``id``; ``session`` beside ``request`` names the conversation.

A request continues a conversation when it begins with all messages of that conversation's last request and has
more; leading system messages may differ if their number is the same. After one such request, a request may also be
rewritten, for example by a compaction: it belongs to the conversation if it still has one of the assistant's
messages. A recorded ``session`` alone decides. Fields other than content, such as cache marks, are ignored.

The recording has each message in its first form: of a rewritten request, the messages after the last known one are
new. ``Recording.requests`` has the content of each request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat, takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction.folding import is_replacement
from lading.messages import (
    Conversation,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.session.matching import count_shared, match
from lading.sources.agents import rewrite_other_agents
from lading.sources.billing import read_usage
from lading.sources.decoding import decode_envelope, decode_messages, report_other_formats
from lading.sources.recording import JsonLine, RecordedRequest, RecordedUsage, Recording, Report
from lading.sources.times import parse_time
from lading.wire import Wire, find_wire
from lading.wire.layout import Items
from lading.wire.replies import text_or_empty

# No provider format has any of these as a field of a request.
_RECORD_FIELDS = ("id", "response", "choices", "object", "created", "usage", "system_fingerprint")
_MODELS = ("model", "modelVersion")
"""Fields of a response with the model."""
MAX_OPEN = 32
"""A conversation counts as ended when this many others have continued since."""


def read_bodies(lines: Iterable[JsonLine], report: Report, *, wire_name: str) -> Iterator[Recording]:
    """Read one recording per conversation, in the order in which they end; see ``MAX_OPEN``."""
    wire = find_wire(wire_name)
    opened: list[_OpenConversation] = []
    for line in lines:
        found = parse_call(line.value, wire)
        if found is None:
            report(line.number, "Left out: neither a body with messages nor a list of messages.")
            continue
        request = _parse_request(found, wire, report, line=line)
        if not request.messages and not request.reply:
            report(line.number, "Left out: there is no message in it.")
            continue
        conversation = _find_conversation(opened, request)
        if conversation is None:
            opened.append(_OpenConversation(request))
        else:
            conversation.add(request, report)
            opened.remove(conversation)
            opened.append(conversation)
        if len(opened) > MAX_OPEN:
            yield opened.pop(0).build_recording(wire)
    for conversation in opened:
        yield conversation.build_recording(wire)


class RecordedCall(Struct, frozen=True):
    """A recorded call: the request and, where known, its reply."""

    body: Mapping[str, Any]
    """The request."""
    messages: Sequence[Any]
    """Its messages: items, or lists of items where several may form one message."""
    reply: Mapping[str, Any]
    """The response, empty if none is recorded."""
    id: str = ""
    session: str = ""
    """The name of its conversation, empty if not recorded."""


class _ParsedRequest(Struct, frozen=True, eq=False):
    """A decoded request of a file."""

    call: RecordedCall
    line: int
    content: tuple[Message | None, ...]
    """The content of each message; None for one that cannot be decoded."""
    system: tuple[Message, ...]
    """The content of the system text outside the list."""
    tools: tuple[Tool, ...]
    """The tools without fields that models do not read."""
    envelope: Conversation
    messages: tuple[Message, ...]
    indices: tuple[int, ...]
    reply: tuple[Message, ...]

    @property
    def leading(self) -> tuple[Message, ...]:
        """The system messages at its start."""
        return (*self.envelope.messages, *takewhile(_is_system, self.messages))


def _parse_request(call: RecordedCall, wire: Wire, report: Report, *, line: JsonLine) -> _ParsedRequest:
    envelope = decode_envelope(call.body, wire, report=report, line=line.number)
    raw, reply = call.messages, find_reply(call.reply)
    lines = _find_lines(raw, wire, line=line)
    messages, indices = decode_messages(raw if reply is None else [*raw, reply], wire, report=report, lines=lines)
    if isinstance(line.value, list):
        decoded = dict(zip(indices, messages, strict=True))
        report_other_formats(raw, decoded, wire=wire, report=report, lines=lines)
    sent = sum(index < len(raw) for index in indices)
    content: list[Message | None] = [None] * len(raw)
    for index, message in zip(indices[:sent], messages, strict=False):
        content[index] = _normalize(message)
    tools = [replace(tool, template=None if tool.schema else tool.template) for tool in envelope.tools]
    return _ParsedRequest(
        call=call,
        line=line.number,
        content=tuple(content),
        system=tuple(map(_normalize, envelope.messages)),
        tools=tuple(tools),
        envelope=envelope,
        messages=messages[:sent],
        indices=indices[:sent],
        reply=messages[sent:],
    )


def _find_lines(raw: Sequence[Any], wire: Wire, *, line: JsonLine) -> list[int]:
    """Return the line of each message, and of a reply after them."""
    sizes = map(len, raw) if wire.layout.items.unites else repeat(1, len(raw))
    starts = accumulate(sizes, initial=0)
    return [line.item_numbers[at] if at < len(line.item_numbers) else line.number for at in starts]


def _find_conversation(opened: Sequence[_OpenConversation], request: _ParsedRequest) -> _OpenConversation | None:
    """Find the conversation that the request continues: of several the one that was continued last."""
    newest_first = opened[::-1]
    extended = (known for known in newest_first if known.is_extended_by(request))
    instructed = (known for known in newest_first if known.is_extended_by(request, instructed=True))
    rewritten = (known for known in newest_first if known.is_rewritten_by(request))
    return next(extended, None) or next(instructed, None) or next(rewritten, None)


class _OpenConversation:
    """A conversation whose requests are being read."""

    def __init__(self, request: _ParsedRequest) -> None:
        self._first = self._last = request
        self._messages: list[Message] = []
        self._indices: list[int] = []
        self._length = 0
        """Length of the list that the indices point into."""
        self._seen: set[Message | None] = set()
        self._answered: set[str] = set()
        self._requests: list[RecordedRequest] = []
        self._usage: list[RecordedUsage] = []
        self._times_s: dict[int, float | None] = {}
        self._append_request(request, kept=0, first_new=0, changed_index=None, grows=True)

    def is_extended_by(self, request: _ParsedRequest, *, instructed: bool = False) -> bool:
        """Whether the request begins with all messages of the last one and has more. ``instructed`` compares only
        the messages after the system messages, and requires the reply where one is recorded."""
        known = self._last.content
        if request.call.session != self._last.call.session or not 0 < len(known) < len(request.content):
            return False
        if not instructed:
            return count_shared(known, request.content) == len(known)
        reply = tuple(map(_normalize, self._last.reply))
        return _is_continuation(known, request.content) and request.content[len(known) :][: len(reply)] == reply

    def is_rewritten_by(self, request: _ParsedRequest) -> bool:
        """Whether the request belongs to this conversation although it lacks messages of the last one."""
        if request.call.session or self._last.call.session:
            return request.call.session == self._last.call.session
        if len(self._requests) < 2:
            return False
        last = tuple(map(_normalize, self._last.reply))
        return any(_is_reply(item) and (item in self._seen or item in last) for item in request.content)

    def add(self, request: _ParsedRequest, report: Report) -> None:
        """Add the next request."""
        before = self._last
        kept = count_shared(before.content, request.content)
        grows = _is_continuation(before.content, request.content)
        first_new = len(before.content) if grows else self._find_first_new(request)
        if before.reply and not any(map(_is_reply, request.content[first_new:])):
            report(before.line, "The reply was left out: the next request does not hold it.")
        changed_index = None if kept == len(before.content) else kept
        if (request.system, request.tools) != (before.system, before.tools):
            changed_index = -1
        self._append_request(request, kept=kept, first_new=first_new, changed_index=changed_index, grows=grows)

    def _append_request(
        self, request: _ParsedRequest, *, kept: int, first_new: int, changed_index: int | None, grows: bool
    ) -> None:
        for index, message in self._select_new(request, first_new, grows=grows):
            self._messages.append(message)
            self._indices.append(index - first_new + self._length)
            self._answered.update(_answered_ids(message))
        new_messages = request.content[first_new:]
        self._length += len(new_messages)
        self._seen.update(new_messages)
        self._add_usage(request)
        added = [message for index, message in zip(request.indices, request.messages, strict=True) if index >= kept]
        is_first = not self._requests
        is_same_system = _normalize_all(request.leading) == _normalize_all(self._last.leading)
        system = None if is_first or is_same_system else request.leading
        tools = request.envelope.tools if is_first or request.tools != self._last.tools else None
        self._requests.append(RecordedRequest(self._length, kept, tuple(added), changed_index, system, tools))
        self._last = request

    def _select_new(self, request: _ParsedRequest, first_new: int, *, grows: bool) -> Iterator[tuple[int, Message]]:
        """Yield the messages from ``first_new`` on, each with its index in the request.

        Of a rewritten request, messages written by Lading's strategies are left out, and so are results of calls
        that were answered before.
        """
        is_answered = not grows
        for index, message in zip(request.indices, request.messages, strict=True):
            if index < first_new:
                continue
            is_answered = is_answered and message.role != "assistant"
            again = is_answered and message.results and self._answered.issuperset(_answered_ids(message))
            if not again and (grows or not is_replacement(message)):
                yield index, message

    def _find_first_new(self, request: _ParsedRequest) -> int:
        """Find the index after the last known message of the request."""
        known = [position for position, item in enumerate(request.content) if item in self._seen]
        return known[-1] + 1 if known else 0

    def _add_usage(self, request: _ParsedRequest) -> None:
        reply = request.call.reply
        named = (*(text_or_empty(reply, key) for key in _MODELS), text_or_empty(request.call.body, "model"))
        model = next(filter(None, named), "")
        self._times_s[self._length] = at_s = parse_time(reply.get("created"))
        usage = read_usage(
            reply.get("usage", reply.get("usageMetadata")), message_index=self._length, model=model, at_s=at_s
        )
        if usage is not None and request.reply:
            self._usage.append(usage)

    def build_recording(self, wire: Wire) -> Recording:
        """Return what was read as a recording."""
        before = self._first.envelope.messages
        reply = self._last.reply
        messages = (*self._messages, *reply)
        indices = (*self._indices, *(self._length for _ in reply))
        tools = self._last.envelope.tools
        call = self._first.call
        named = (text_or_empty(call.body, "model"), *(text_or_empty(call.reply, key) for key in _MODELS))
        return Recording(
            id=self._first.call.session or self._first.call.id,
            messages=(*before, *rewrite_other_agents(messages)),
            raw_indices=(*(-1 for _ in before), *indices),
            tools=tools,
            tools_recorded=bool(tools),
            model=next(filter(None, named), ""),
            times_s=(*(None for _ in before), *(self._times_s.get(index) for index in indices)),
            usage=tuple(bill for bill in self._usage if bill.message_index in indices),
            origin=wire.name,
            params=self._first.envelope.template,
            requests=tuple(self._requests) if len(self._requests) > 1 else (),
        )


def _answered_ids(message: Message) -> list[str]:
    return [result.call_id for result in message.results]


def _is_continuation(known: Sequence[Message | None], given: Sequence[Message | None]) -> bool:
    """Whether a request starts with the last one; leading system messages may differ if there are as many."""
    leading = sum(1 for _ in takewhile(_is_system, known))
    is_alike = leading == sum(1 for _ in takewhile(_is_system, given[: len(known)]))
    start = leading if is_alike and leading < len(known) else 0
    return match(known, given[start:], start=start).kind == "continues"


def _normalize_all(messages: Iterable[Message]) -> list[Message]:
    return list(map(_normalize, messages))


def _is_system(message: Message | None) -> bool:
    return message is not None and message.role == "system"


def _is_reply(message: Message | None) -> bool:
    return message is not None and message.role == "assistant"


def _normalize(message: Message) -> Message:
    """Remove templates and other fields that models do not read, so that messages of equal content are equal."""
    return Message(message.role, tuple(map(_normalize_part, message.parts)), name=message.name)


def _normalize_part(part: Part) -> Part:
    if isinstance(part, ToolResult):
        parts = tuple(map(_normalize_result_part, part.parts))
        return ToolResult(part.call_id, parts, is_error=part.is_error, name=part.name)
    if isinstance(part, ToolCall | Reasoning):
        return part if part.template is None else replace(part, template=None)
    return _normalize_result_part(part)


def _normalize_result_part(part: ResultPart) -> ResultPart:
    if isinstance(part, Opaque):
        return Text(repr(part.value))
    return part if part.template is None else replace(part, template=None)


def parse_call(value: Any, wire: Wire) -> RecordedCall | None:
    """Parse a value of a file as a call. None when it has none of the accepted forms."""
    items = wire.layout.items
    if isinstance(value, list):
        return RecordedCall({}, _split(value, items), {})
    if not isinstance(value, Mapping):
        return None
    is_beside = isinstance(value.get("request"), Mapping)
    body = value["request"] if is_beside else value
    given = items.read(body.get(items.field))
    if not isinstance(given, list):
        return None
    reply = value.get("response", value if "choices" in value else {})
    kept = {key: field for key, field in body.items() if key not in _RECORD_FIELDS}
    session = text_or_empty(value, "session") if is_beside else ""
    found = reply if isinstance(reply, Mapping) else {}
    return RecordedCall(kept, _split(given, items), found, text_or_empty(value, "id"), session)


def _split(given: list[Any], items: Items) -> list[Any]:
    return items.split(given) if items.unites else given


def find_reply(reply: Mapping[str, Any]) -> dict[str, Any] | list[Any] | None:
    """Find the assistant message of a response: OpenAI's first choice, or its items, Google's first candidate,
    Anthropic's message, or a bare message.

    None when there is none. An Anthropic message is reduced to its role and content.
    """
    if isinstance(output := reply.get("output"), list):
        return output or None
    candidates = reply.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], Mapping):
        content = candidates[0].get("content")
        return [{"role": "model", **content}] if isinstance(content, Mapping) and content.get("parts") else None
    choices = reply.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        return dict(message) if isinstance(message, Mapping) else None
    if reply.get("role") != "assistant":
        return None
    if reply.get("type") == "message":
        return {"role": "assistant", "content": reply.get("content")}
    return dict(reply)
