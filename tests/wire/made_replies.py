"""Replies as both providers write them: whole, and as the events of a stream cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import httpx2
from hypothesis import strategies as st

from lading.wire.replies import ReplyStream, SseEvent, SseReader, make_event

Body = dict[str, Any]

NAMES = st.sampled_from(["restore", "ls", "rest", "restore_file", "cat"])
WORDS = st.text(max_size=12)
COIN = st.booleans()
INPUTS = st.dictionaries(WORDS, WORDS | st.integers(0, 9) | st.lists(WORDS, max_size=2), max_size=3)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The bytes in pieces."""
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


def events_of(data: bytes) -> list[SseEvent]:
    """The events of a whole stream."""
    reader = SseReader()
    return [*reader.feed(data), *reader.end()]


def feed(stream: ReplyStream, data: bytes) -> bytes:
    """What a stream passes on of these bytes."""
    return b"".join(piece for event in events_of(data) for piece in stream.feed(event))


class Tape:
    """An HTTP client whose server answers every request with the bytes on it, in pieces."""

    def __init__(self) -> None:
        self.data = b""
        self.client = httpx2.Client(transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        kind = {"content-type": "text/event-stream"}
        content = iter(cut(self.data, range(0, len(self.data), 37)))
        return httpx2.Response(200, headers=kind, content=content, request=request)


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[str]:
    """A text in up to four pieces; none for an empty one."""
    edges = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=3))})
    return [text[start:end] for start, end in pairwise(edges)]


# Chat Completions

CHAT_USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 7,
    "total_tokens": 57,
    "prompt_tokens_details": {"cached_tokens": 20},
}


def chat_body(reasoning: str, content: str | None, *, calls: Sequence[tuple[str, str]]) -> Body:
    """A whole response."""
    message: Body = {"role": "assistant", "content": content, "refusal": None, "annotations": []}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for index, (name, arguments) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    identity = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-x"}
    return identity | {"choices": [choice], "usage": CHAT_USAGE}


def chunk(delta: Body, *, reason: str | None = None, number: int = 1) -> Body:
    """One chunk of a streamed response."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    identity = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": number, "model": "gpt-x"}
    return identity | {"choices": [choice]}


def streamed(*deltas: Body, reason: str | None = "stop") -> bytes:
    """A stream of these deltas."""
    values = [chunk(delta) for delta in deltas] + [chunk({}, reason=reason)]
    return b"".join(make_event(value).raw for value in values) + b"data: [DONE]\n\n"


@st.composite
def chat_streams(draw: st.DrawFn, body: Body, *, number: int = 1) -> bytes:
    """The response as a stream: deltas of any size, several things in one chunk or not."""
    message = body["choices"][0]["message"]
    deltas: list[Body] = [{"role": "assistant", "content": None if message["content"] is None else ""}]
    deltas += [{"reasoning_content": text} for text in draw(pieces(message.get("reasoning_content", "")))]
    deltas += [{"content": text} for text in draw(pieces(message["content"] or ""))]
    for index, call in enumerate(message.get("tool_calls", ())):
        words = draw(pieces(call["function"]["arguments"]))
        first = words.pop(0) if draw(COIN) and words else ""
        start = call | {"index": index, "function": call["function"] | {"arguments": first}}
        deltas.append({"tool_calls": [start]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": text}}]} for text in words]
    joined: list[Body] = []
    for delta in deltas:
        if draw(COIN) and joined and (joined[-1].keys() | delta.keys() == {"tool_calls"}):
            joined[-1] = {"tool_calls": [*joined[-1]["tool_calls"], *delta["tool_calls"]]}
        elif draw(COIN) and joined and not joined[-1].keys() & delta.keys():
            joined[-1] = joined[-1] | delta
        else:
            joined.append(delta)
    reason = body["choices"][0]["finish_reason"]
    ends_apart = draw(COIN)
    chunks = [chunk(delta, number=number) for delta in joined]
    if ends_apart:
        chunks.append(chunk({}, reason=reason, number=number))
    else:
        chunks[-1]["choices"][0]["finish_reason"] = reason
    chunks.append(chunk({}, number=number) | {"choices": [], "usage": body["usage"]})
    return b"".join(make_event(item).raw for item in chunks) + b"data: [DONE]\n\n"


@st.composite
def chat_bodies(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES, *, min_calls: int = 0) -> Body:
    """Any reply."""
    arguments = INPUTS.map(json.dumps)
    calls = draw(st.lists(st.tuples(names, arguments), min_size=min_calls, max_size=4))
    content = draw(WORDS) if not calls or draw(COIN) else None
    return chat_body(draw(WORDS), content, calls=calls)


# Messages

MESSAGES_USAGE = {
    "input_tokens": 30,
    "cache_read_input_tokens": 20,
    "cache_creation_input_tokens": 5,
    "output_tokens": 9,
}


def messages_body(blocks: Sequence[Body]) -> Body:
    """A whole response; calls get their ids."""
    content = [
        block | {"id": f"toolu_{index}"} if "input" in block else dict(block) for index, block in enumerate(blocks)
    ]
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": MESSAGES_USAGE,
    }


def use(name: str, value: Body) -> Body:
    """A call of a tool."""
    return {"type": "tool_use", "id": "", "name": name, "input": value}


CITATION = {
    "type": "web_search_result_location",
    "url": "u",
    "title": None,
    "encrypted_index": "x",
    "cited_text": "y",
}
SEARCH: Body = {"type": "server_tool_use", "id": "", "name": "web_search", "input": {"query": "q"}}
FOUND: Body = {"type": "web_search_tool_result", "tool_use_id": "toolu_0", "content": []}

OTHER_BLOCKS = st.one_of(
    WORDS.map(lambda text: {"type": "text", "text": text}),
    WORDS.map(lambda text: {"type": "text", "text": text, "citations": [CITATION, CITATION]}),
    WORDS.map(lambda text: {"type": "thinking", "thinking": text, "signature": "c2ln"}),
    st.just({"type": "redacted_thinking", "data": "ZGF0YQ=="}),
    st.just(SEARCH),
    st.just(FOUND),
)


@st.composite
def messages_bodies(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES, *, min_calls: int = 0) -> Body:
    """Any reply, its blocks in any order."""
    calls = draw(st.lists(st.builds(use, names, INPUTS), min_size=min_calls, max_size=3))
    return messages_body(draw(st.permutations([*calls, *draw(st.lists(OTHER_BLOCKS, max_size=4))])))


@st.composite
def messages_streams(draw: st.DrawFn, body: Body) -> bytes:
    """The response as a stream, with pings."""
    start = body | {"content": [], "stop_reason": None, "usage": body["usage"] | {"output_tokens": 1}}
    events: list[Body] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(body["content"]):
        opening, deltas = _block(block, draw)
        events.append({"type": "content_block_start", "index": index, "content_block": opening})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
        if draw(COIN):
            events.append({"type": "ping"})
    ending = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": body["usage"]["output_tokens"]}}
    )
    events.append({"type": "message_stop"})
    return b"".join(make_event(event, name=event["type"]).raw for event in events)


def _block(block: Body, draw: st.DrawFn) -> tuple[Body, list[Body]]:
    """How a block opens, and what follows."""
    if "input" in block:
        words = draw(pieces(json.dumps(block["input"]))) if block["input"] or draw(COIN) else [""]
        return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": text} for text in words]
    if block["type"] == "text":
        deltas: list[Body] = [{"type": "text_delta", "text": text} for text in draw(pieces(block["text"]))]
        deltas += [{"type": "citations_delta", "citation": citation} for citation in block.get("citations", ())]
        return {"type": "text", "text": ""} | ({"citations": []} if "citations" in block else {}), deltas
    if block["type"] == "thinking":
        thoughts = draw(pieces(block["thinking"]))
        deltas = [{"type": "thinking_delta", "thinking": text} for text in thoughts]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    return block, []
