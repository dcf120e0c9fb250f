"""Sort request bodies by conversation: the requests of one become one recording.

A request continues a conversation when it begins with all messages of that conversation's last request and
has more; as many system messages at the start may differ. In a conversation that has grown so, a
request may also be rewritten, by a compaction say: it belongs there when it still holds one of the assistant's
messages. A ``session`` that the file names decides alone. Fields beside what is said, such as marks for the cache,
make no difference.

The recording's messages are what was said first: of a rewritten request those messages are new that stand after
the last one said before. What each request really held is in ``Recording.requests``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction.folding import is_written
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
from lading.sources.agents import own_words
from lading.sources.billing import read_usage
from lading.sources.bodies import Exchange, exchange, reply_message
from lading.sources.decoding import decode_envelope, decode_messages
from lading.sources.recording import Line, Recording, Report, Request, Usage
from lading.sources.times import seconds
from lading.wire import Wire, find_wire
from lading.wire.replies import text_or_empty

MOST_OPEN = 32
"""A conversation is taken as ended when so many others have gone on since."""


def read_bodies(lines: Iterable[Line], report: Report, *, wire_name: str) -> Iterator[Recording]:
    """One recording for each conversation; those of the end of the file in the order in which they went on."""
    spoken = find_wire(wire_name)
    opened: list[_Thread] = []
    for line in lines:
        found = exchange(line.value)
        if found is None:
            report(line.number, "Left out: neither a body with messages nor a list of messages.")
            continue
        asked = _read(found, spoken, report, line=line.number)
        if not asked.messages and not asked.replied:
            report(line.number, "Left out: there is no message in it.")
            continue
        thread = _continued(opened, asked)
        if thread is None:
            opened.append(_Thread(asked))
        else:
            thread.add(asked, report)
            opened.remove(thread)
            opened.append(thread)
        if len(opened) > MOST_OPEN:
            yield opened.pop(0).recording(spoken)
    for thread in opened:
        yield thread.recording(spoken)


class _Asked(Struct, frozen=True, eq=False):
    """One request as read."""

    call: Exchange
    line: int
    plain: tuple[Message | None, ...]
    """What each of its messages says; None for what is no message."""
    system: tuple[Message, ...]
    """What the system text outside of the list says."""
    tools: tuple[Tool, ...]
    """What the tools say."""
    envelope: Conversation
    messages: tuple[Message, ...]
    indices: tuple[int, ...]
    replied: tuple[Message, ...]

    @property
    def leading(self) -> tuple[Message, ...]:
        """The system messages at its start."""
        return (*self.envelope.messages, *takewhile(_is_system, self.messages))


def _read(call: Exchange, wire: Wire, report: Report, *, line: int) -> _Asked:
    envelope = decode_envelope(call.body, wire, report=report, line=line)
    asked, reply = call.body["messages"], reply_message(call.reply)
    messages, indices = decode_messages(asked if reply is None else [*asked, reply], wire, report=report, line=line)
    sent = sum(index < len(asked) for index in indices)
    plain: list[Message | None] = [None] * len(asked)
    for index, message in zip(indices[:sent], messages, strict=False):
        plain[index] = _plain(message)
    tools = [replace(tool, template=None if tool.schema else tool.template) for tool in envelope.tools]
    return _Asked(
        call=call,
        line=line,
        plain=tuple(plain),
        system=tuple(map(_plain, envelope.messages)),
        tools=tuple(tools),
        envelope=envelope,
        messages=messages[:sent],
        indices=indices[:sent],
        replied=messages[sent:],
    )


def _continued(opened: Sequence[_Thread], asked: _Asked) -> _Thread | None:
    """Find the conversation that the request continues: of several the one that was continued last."""
    newest_first = opened[::-1]
    growing = (thread for thread in newest_first if thread.is_grown_by(asked))
    instructed = (thread for thread in newest_first if thread.is_grown_by(asked, instructed=True))
    rewritten = (thread for thread in newest_first if thread.is_rewritten_by(asked))
    return next(growing, None) or next(instructed, None) or next(rewritten, None)


class _Thread:
    """A conversation while its requests come in."""

    def __init__(self, asked: _Asked) -> None:
        self._first = self._last = asked
        self._messages: list[Message] = []
        self._indices: list[int] = []
        self._length = 0
        """Of the list that the indices point into."""
        self._said: set[Message | None] = set()
        self._answered: set[str] = set()
        self._requests: list[Request] = []
        self._usage: list[Usage] = []
        self._times_s: dict[int, float | None] = {}
        self._take(asked, kept=0, first_new=0, changed_index=None, grows=True)

    def is_grown_by(self, asked: _Asked, *, instructed: bool = False) -> bool:
        """Whether the request begins with all of the last one and has more; ``instructed``: with all after the
        system messages, and with the reply where that is recorded."""
        known = self._last.plain
        if asked.call.session != self._last.call.session or not 0 < len(known) < len(asked.plain):
            return False
        if not instructed:
            return count_shared(known, asked.plain) == len(known)
        reply = tuple(map(_plain, self._last.replied))
        return _continues(known, asked.plain) and asked.plain[len(known) :][: len(reply)] == reply

    def is_rewritten_by(self, asked: _Asked) -> bool:
        """Whether the request is one of this conversation, though not all of the last one is in it."""
        if asked.call.session or self._last.call.session:
            return asked.call.session == self._last.call.session
        if len(self._requests) < 2:
            return False
        last = tuple(map(_plain, self._last.replied))
        return any(_is_reply(item) and (item in self._said or item in last) for item in asked.plain)

    def add(self, asked: _Asked, report: Report) -> None:
        """Takes in the next request."""
        before = self._last
        kept = count_shared(before.plain, asked.plain)
        grows = _continues(before.plain, asked.plain)
        first_new = len(before.plain) if grows else self._first_new(asked)
        if before.replied and not any(map(_is_reply, asked.plain[first_new:])):
            report(before.line, "The reply was left out: the next request does not hold it.")
        changed_index = None if kept == len(before.plain) else kept
        if (asked.system, asked.tools) != (before.system, before.tools):
            changed_index = -1
        self._take(asked, kept=kept, first_new=first_new, changed_index=changed_index, grows=grows)

    def _take(self, asked: _Asked, *, kept: int, first_new: int, changed_index: int | None, grows: bool) -> None:
        for index, message in self._new(asked, first_new, grows=grows):
            self._messages.append(message)
            self._indices.append(index - first_new + self._length)
            self._answered.update(_answers(message))
        new_plain = asked.plain[first_new:]
        self._length += len(new_plain)
        self._said.update(new_plain)
        self._bill(asked)
        added = [message for index, message in zip(asked.indices, asked.messages, strict=True) if index >= kept]
        is_first = not self._requests
        said = None if is_first or _says(asked.leading) == _says(self._last.leading) else asked.leading
        tools = asked.envelope.tools if is_first or asked.tools != self._last.tools else None
        self._requests.append(Request(self._length, kept, tuple(added), changed_index, said, tools))
        self._last = asked

    def _new(self, asked: _Asked, first_new: int, *, grows: bool) -> Iterator[tuple[int, Message]]:
        """The messages from there on, each with its index in the request; of a rewritten one without what our
        strategies wrote there, and without results in a new form of calls answered before."""
        is_answered = not grows
        for index, message in zip(asked.indices, asked.messages, strict=True):
            if index < first_new:
                continue
            is_answered = is_answered and message.role != "assistant"
            again = is_answered and message.results and self._answered.issuperset(_answers(message))
            if not again and (grows or not is_written(message)):
                yield index, message

    def _first_new(self, asked: _Asked) -> int:
        """Where the request goes on to what was not said before."""
        known = [position for position, item in enumerate(asked.plain) if item in self._said]
        return known[-1] + 1 if known else 0

    def _bill(self, asked: _Asked) -> None:
        reply = asked.call.reply
        model = text_or_empty(reply, "model") or text_or_empty(asked.call.body, "model")
        self._times_s[self._length] = at_s = seconds(reply.get("created"))
        usage = read_usage(reply.get("usage"), message_index=self._length, model=model, at_s=at_s)
        if usage is not None and asked.replied:
            self._usage.append(usage)

    def recording(self, wire: Wire) -> Recording:
        """The conversation as read."""
        before = self._first.envelope.messages
        replied = self._last.replied
        messages = (*self._messages, *replied)
        indices = (*self._indices, *(self._length for _ in replied))
        tools = self._last.envelope.tools
        model = text_or_empty(self._first.call.body, "model") or text_or_empty(self._first.call.reply, "model")
        return Recording(
            id=self._first.call.session or self._first.call.id,
            messages=(*before, *own_words(messages)),
            raw_indices=(*(-1 for _ in before), *indices),
            tools=tools,
            tools_recorded=bool(tools),
            model=model,
            times_s=(*(None for _ in before), *(self._times_s.get(index) for index in indices)),
            usage=tuple(bill for bill in self._usage if bill.message_index in indices),
            origin=wire.name,
            params=self._first.envelope.template,
            requests=tuple(self._requests) if len(self._requests) > 1 else (),
        )


def _answers(message: Message) -> list[str]:
    return [result.call_id for result in message.results]


def _continues(known: Sequence[Message | None], given: Sequence[Message | None]) -> bool:
    """Whether a request starts with the last one, whatever as many system messages at the start say."""
    leading = sum(1 for _ in takewhile(_is_system, known))
    is_alike = leading == sum(1 for _ in takewhile(_is_system, given[: len(known)]))
    start = leading if is_alike and leading < len(known) else 0
    return match(known, given[start:], start=start).kind == "continues"


def _says(messages: Iterable[Message]) -> list[Message]:
    return list(map(_plain, messages))


def _is_system(message: Message | None) -> bool:
    return message is not None and message.role == "system"


def _is_reply(message: Message | None) -> bool:
    return message is not None and message.role == "assistant"


def _plain(message: Message) -> Message:
    """What a message says, without how it was written: equal for equal words."""
    return Message(message.role, tuple(map(_plain_part, message.parts)), name=message.name)


def _plain_part(part: Part) -> Part:
    if isinstance(part, ToolResult):
        parts = tuple(map(_plain_result_part, part.parts))
        return ToolResult(part.call_id, parts, is_error=part.is_error, name=part.name)
    if isinstance(part, ToolCall | Reasoning):
        return part if part.template is None else replace(part, template=None)
    return _plain_result_part(part)


def _plain_result_part(part: ResultPart) -> ResultPart:
    if isinstance(part, Opaque):
        return Text(repr(part.value))
    return part if part.template is None else replace(part, template=None)
