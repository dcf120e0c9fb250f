"""An agent of many rounds, byte by byte, whose model also writes summaries when it is asked for one."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Any, NamedTuple

from lading.jsonbytes import load
from lading.messages import Text
from lading.models.catalog import find_card
from lading.testing import Answer, Request, Say, Seen, StrictProvider, Use
from lading.wire import find_wire
from lading.wire.replies import Reply, SseReader
from tests.clients.agents import MODELS, Entered, awaited

ROUNDS = 60
WINDOW = 16_000
SYSTEM = "You look for the slow test of a large program. "
LOG = "The fixture opened the database and waited for a lock. "
_KEPT = re.compile(r"<<<to be kept (\w+)\n(.*?)\n\1", re.DOTALL)


class Worker:
    """A model that reads a part in each round, and answers an instruction to summarize by a summary."""

    def __init__(self, rounds: int = ROUNDS) -> None:
        self.rounds, self.round = rounds, 0

    def __call__(self, seen: Seen) -> Say:
        if (asked := find_instruction(seen)) is not None:
            kept = _KEPT.search(asked)
            named = " ".join(kept[2].split()) if kept else "the parts"
            return Say(f"Goal: find the slow test\nDone: read {named}")
        self.round += 1
        if self.round > self.rounds:
            return Say("No test is slow.")
        return Say(f"I read part {self.round} now.", (Use("read", {"part": self.round}),))


def find_instruction(seen: Seen) -> str | None:
    """The last text of a request, if it asks for a summary."""
    texts = [part.text for part in seen.conversation.messages[-1].parts if isinstance(part, Text)]
    return texts[-1] if texts and re.search("summari[sz]e", texts[-1], re.IGNORECASE) else None


class Exchanged(NamedTuple):
    """The requests of a provider with their answers."""

    own: list[tuple[Request, Answer]]
    """Those for summaries."""
    agents: list[tuple[Request, Answer]]


def items_of(body: Any) -> list[Any]:
    """The list of a body that has the messages, in any provider format."""
    found = next(body[field] for field in ("messages", "input", "contents") if field in body)
    return found if isinstance(found, list) else [found]


def split(provider: StrictProvider) -> Exchanged:
    """Tell the requests for summaries from the agent's, by the text at their end."""
    pairs = list(zip(provider.requests, provider.answers, strict=True))
    is_own = [re.search("summari[sz]e", str(items_of(request.body)[-1]), re.IGNORECASE) for request, _ in pairs]
    own = [pair for pair, one in zip(pairs, is_own, strict=True) if one]
    return Exchanged(own, [pair for pair in pairs if pair not in own])


def fields_of(wire: str, *, stream: bool) -> dict[str, Any]:
    """The fields of the agent's requests beside its messages."""
    schema = {"type": "object", "properties": {"part": {"type": "integer"}}}
    streamed = {"stream": True} if stream else {}
    if wire == "anthropic":
        mark = {"cache_control": {"type": "ephemeral"}}
        tool = {"name": "read", "description": "Read a part.", "input_schema": schema}
        return {
            "model": MODELS[wire],
            "max_tokens": 1_000,
            "system": SYSTEM * 100,
            "tools": [tool],
            **mark,
            **streamed,
        }
    function = {"name": "read", "description": "Read a part.", "parameters": schema}
    if wire == "openai_responses":
        kept: dict[str, Any] = {
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low"},
        }
        own = {"type": "function", "strict": False, **function}
        return {"model": MODELS[wire], "instructions": SYSTEM * 100, "tools": [own], **kept, **streamed}
    usage = {"stream_options": {"include_usage": True}} if stream else {}
    return {"model": MODELS[wire], "tools": [{"type": "function", "function": function}], **streamed, **usage}


async def work(
    client: Any, wire: str, *, stream: bool = False, later: tuple[int, Any] = (200, None)
) -> list[bytes]:
    """Run the agent to its end; return what it received for each call. ``later``: the client from a round on."""
    form, card, received = find_wire(wire), find_card(MODELS[wire])[0], list[bytes]()
    messages: list[Any] = [{"role": "user", "content": "Which test is slow?"}]
    if wire == "openai_chat":
        messages.insert(0, {"role": "system", "content": SYSTEM * 100})
    for number in range(200):
        used = later[1] if number >= later[0] else client
        create = {"anthropic": "messages", "openai_responses": "responses", "openai_chat": "chat.completions"}[wire]
        given = {form.layout.items.field: messages, **fields_of(wire, stream=stream)}
        asked = attrgetter(create)(used).with_streaming_response.create(**given)
        async with Entered(asked) as response:
            received.append(await awaited(response.read()))
        reply = _read(wire, received[-1], stream=stream)
        messages += form.encode_group([reply.message], card)
        if not reply.message.calls:
            return received
        results = [(call.id, f"{call.arguments}: {LOG * 25}") for call in reply.message.calls]
        if wire == "openai_responses":
            outputs = [{"type": "function_call_output", "call_id": id_, "output": text} for id_, text in results]
            messages += outputs
        elif wire == "anthropic":
            blocks = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in results]
            messages.append({"role": "user", "content": blocks})
        else:
            messages += [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in results]
    raise AssertionError("the agent never came to an end")


def _read(wire: str, data: bytes, *, stream: bool) -> Reply:
    replies, reader = find_wire(wire).replies, SseReader()
    if not stream:
        return replies.read(load(data))
    reading = replies.stream(frozenset())
    for event in [*reader.feed(data), *reader.end()]:
        reading.feed(event)
    return reading.reply()
