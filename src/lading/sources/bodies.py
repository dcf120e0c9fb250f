"""Request bodies and bare message lists of a wire, with the reply where the file holds it too.

Forms of one value: a body ``{"messages": [...], ...}``; the messages alone; ``{"request": body,
"response": reply}``, where the reply is a provider's response or its message; a body that holds its own
``response`` or ``choices``. Each may carry an ``id``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from lading.sources.agents import own_words
from lading.sources.billing import read_usage
from lading.sources.decoding import decode_envelope, decode_messages
from lading.sources.recording import Line, Recording, Report
from lading.sources.times import seconds
from lading.wire import Wire, find_wire

# None of these is a field of a request on any wire.
_RECORD_FIELDS = ("id", "response", "choices", "object", "created", "usage", "system_fingerprint")


class Exchange(Struct, frozen=True):
    """One call as recorded: what was asked and, where known, what came back."""

    body: Mapping[str, Any]
    """The request; holds a list of messages."""
    reply: Mapping[str, Any]
    """The response, empty where there is none."""
    id: str = ""


def exchange(value: Any) -> Exchange | None:
    """The exchange that a value of a file spells, or None when it is of none of the forms."""
    if isinstance(value, list):
        return Exchange({"messages": value}, {})
    if not isinstance(value, Mapping):
        return None
    body = value["request"] if isinstance(value.get("request"), Mapping) else value
    if not isinstance(body.get("messages"), list):
        return None
    reply = value.get("response", value if "choices" in value else {})
    kept = {key: field for key, field in body.items() if key not in _RECORD_FIELDS}
    return Exchange(kept, reply if isinstance(reply, Mapping) else {}, _text(value.get("id")))


def read_bodies(lines: Iterable[Line], report: Report, *, wire_name: str) -> Iterator[Recording]:
    """One recording for each value of the file."""
    spoken = find_wire(wire_name)
    for line in lines:
        found = exchange(line.value)
        if found is None:
            report(line.number, "Left out: neither a body with messages nor a list of messages.")
        elif recording := _recording(found, spoken, report, line=line.number):
            yield recording


def _recording(call: Exchange, wire: Wire, report: Report, *, line: int) -> Recording | None:
    envelope = decode_envelope(call.body, wire, report=report, line=line)
    asked = call.body["messages"]
    reply = reply_message(call.reply)
    messages, indices = decode_messages(asked if reply is None else [*asked, reply], wire, report=report, line=line)
    if not messages:
        report(line, "Left out: there is no message in it.")
        return None
    usage = read_usage(call.reply.get("usage"), message_index=len(asked), model=_text(call.reply.get("model")))
    replied_s = seconds(call.reply.get("created"))
    return Recording(
        id=call.id,
        messages=(*envelope.messages, *own_words(messages)),
        raw_indices=(*(-1 for _ in envelope.messages), *indices),
        tools=envelope.tools,
        tools_recorded=bool(envelope.tools),
        model=_text(call.body.get("model")) or _text(call.reply.get("model")),
        times_s=(
            *(None for _ in envelope.messages),
            *(replied_s if index == len(asked) else None for index in indices),
        ),
        usage=() if usage is None or reply is None else (usage,),
        origin=wire.name,
        params=envelope.template,
    )


def reply_message(reply: Mapping[str, Any]) -> dict[str, Any] | None:
    """The assistant message of a response: OpenAI's first choice, Anthropic's message, or a bare message.

    None when there is none. A provider's fields about the response are no part of the message.
    """
    choices = reply.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        return dict(message) if isinstance(message, Mapping) else None
    if reply.get("role") != "assistant":
        return None
    if reply.get("type") == "message":
        return {"role": "assistant", "content": reply.get("content")}
    return dict(reply)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
