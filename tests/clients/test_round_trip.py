"""A reply that an SDK read and its caller tells again, however it is kept, is known as the reply it was."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import ContentBlock
from anthropic.types.beta import BetaContentBlock
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseOutputItem

from lading.clients import wrap
from lading.models.catalog import find_card
from lading.session.forms import has_form
from lading.session.matching import fingerprint
from lading.wire import find_wire
from tests.clients.agents import MODELS
from tests.replies import messages_reply
from tests.sdk_values import objects, shuffled

HELLO = {"role": "user", "content": "hi"}

DUMPS: dict[str, Callable[[Any], Any]] = {
    "object": lambda said: said,
    "to_dict": lambda said: said.to_dict(),
    "model_dump": lambda said: said.model_dump(),
    "as json": lambda said: said.model_dump(mode="json", by_alias=True),
    "without nulls": lambda said: said.model_dump(exclude_none=True),
    "without defaults": lambda said: said.model_dump(exclude_defaults=True),
    "another order": lambda said: shuffled(said.model_dump(mode="json")),
}


class Mirror:
    """Clients of both SDKs whose provider answers what it is given and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {}
        self.sent: Any = None
        http = httpx2.Client(transport=httpx2.MockTransport(self._answered))
        self.anthropic = anthropic.Anthropic(base_url="http://here", api_key="test", http_client=http)
        self.openai = openai.OpenAI(base_url="http://here", api_key="test", http_client=http)

    def _answered(self, request: httpx2.Request) -> httpx2.Response:
        self.sent = json.loads(request.read())
        return httpx2.Response(200, json=self.answer)


MIRROR = Mirror()


def check_known_again(wire: str, told: Any, create: Callable[..., Any]) -> None:
    """Check that the answer, after its caller told it again, has the meaning and the form of what was answered."""
    form, card = find_wire(wire), find_card(MODELS[wire])[0]
    expected = form.replies.read(MIRROR.answer).message
    create(model=MODELS[wire], messages=[HELLO, told, HELLO])
    (found,) = form.decode({"messages": [MIRROR.sent["messages"][1]]}).messages
    assert fingerprint(found) == fingerprint(expected)
    assert has_form(found, expected, wire=form, card=card)


BLOCKS = {
    kinds: st.lists(st.one_of([objects(kind) for kind in get_args(get_args(kinds)[0])]), min_size=1, max_size=3)
    for kinds in (ContentBlock, BetaContentBlock)
}
HOW = st.sampled_from(list(DUMPS))


@pytest.mark.fuzz
@pytest.mark.parametrize("kinds", BLOCKS, ids=["messages", "beta"])
@given(data=st.data(), how=HOW)
def test_a_block_of_any_kind_is_known_again(kinds: Any, how: str, data: st.DataObject) -> None:
    content = data.draw(BLOCKS[kinds])
    MIRROR.answer = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": content}
    messages: Any = MIRROR.anthropic.messages if kinds is ContentBlock else MIRROR.anthropic.beta.messages
    said = messages.create(model=MODELS["anthropic"], max_tokens=9, messages=[HELLO])
    told = {"role": "assistant", "content": [DUMPS[how](block) for block in said.content]}
    check_known_again("anthropic", told, partial(messages.create, max_tokens=9))


@pytest.mark.fuzz
@given(message=objects(ChatCompletionMessage), how=HOW)
def test_a_chat_message_of_any_kind_is_known_again(how: str, message: dict[str, Any]) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    MIRROR.answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "x", "choices": [choice]}
    create: Any = MIRROR.openai.chat.completions.create
    said = create(model=MODELS["openai_chat"], messages=[HELLO])
    check_known_again("openai_chat", DUMPS[how](said.choices[0].message), create)


OUTPUT_ITEMS = st.lists(
    st.one_of([objects(kind) for kind in get_args(get_args(ResponseOutputItem)[0])]), min_size=1, max_size=3
)


@pytest.mark.fuzz
@given(output=OUTPUT_ITEMS, how=HOW)
def test_output_items_of_any_kind_are_known_again(how: str, output: list[dict[str, Any]]) -> None:
    form, card = find_wire("openai_responses"), find_card(MODELS["openai_responses"])[0]
    output = [item for item in output if form.layout.items.role(item) == "assistant"]
    MIRROR.answer = {"id": "r", "object": "response", "created_at": 1, "model": "x", "output": output}
    said = MIRROR.openai.responses.create(model="x", input="hi")
    expected = form.replies.read(MIRROR.answer).message
    told: Any = [HELLO, *map(DUMPS[how], said.output), HELLO]
    MIRROR.openai.responses.create(model="x", input=told)
    sent = form.decode({"input": MIRROR.sent["input"]}).messages
    if output:
        assert len(sent) == 3
        assert fingerprint(sent[1]) == fingerprint(expected)
        assert has_form(sent[1], expected, wire=form, card=card)


ROUNDS = 60


def searched(number: int) -> list[dict[str, Any]]:
    """What the API answers where its own tools ran: nulls, a field that says the default, citations."""
    use, place = f"srvtoolu_{number}", {"type": "char_location", "cited_text": "x", "document_index": 0}
    page = {
        "type": "web_search_result",
        "url": "http://a",
        "title": "A",
        "encrypted_content": "e",
        "page_age": None,
    }
    ran = {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []}
    cited = place | {"document_title": None, "start_char_index": 0, "end_char_index": 1, "file_id": None}
    caller = {"type": "direct"}
    return [
        {"type": "server_tool_use", "id": use, "name": "web_search", "input": {"q": "b", "a": 1}, "caller": caller},
        {"type": "web_search_tool_result", "tool_use_id": use, "content": [page], "caller": caller},
        {"type": "server_tool_use", "id": f"{use}c", "name": "code_execution", "input": {"code": "1"}},
        {"type": "code_execution_tool_result", "tool_use_id": f"{use}c", "content": ran},
        {"type": "mcp_tool_use", "id": f"mcptoolu_{number}", "name": "find", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": f"mcptoolu_{number}", "is_error": False, "content": []},
        {"type": "text", "text": f"Found {number}.", "citations": [cited]},
    ]


def streamed(answer: dict[str, Any]) -> bytes:
    """The answer as the API streams it."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": answer | {"content": []}}]
    for index, block in enumerate(answer["content"]):
        deltas: list[dict[str, Any]] = []
        opening = dict(block)
        if "input" in block:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            opening["input"] = {}
        elif block["type"] == "text":
            deltas = [{"type": "citations_delta", "citation": one} for one in block["citations"]]
            deltas.append({"type": "text_delta", "text": block["text"]})
            opening |= {"text": "", "citations": []}
        events.append({"type": "content_block_start", "index": index, "content_block": opening})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": "end_turn", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_replies_with_tools_of_the_server_are_known_again(stream: bool) -> None:
    numbers, ways = itertools.count(), itertools.cycle(DUMPS.values())

    def answered(_: httpx2.Request) -> httpx2.Response:
        usage = {"input_tokens": 9, "output_tokens": 9}
        answer = messages_reply(*searched(next(numbers))) | {"usage": usage}
        if stream:
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=streamed(answer))
        return httpx2.Response(200, json=answer)

    http = httpx2.Client(transport=httpx2.MockTransport(answered))
    client: Any = wrap(anthropic.Anthropic(base_url="http://here", api_key="test", http_client=http))
    told: list[Any] = [HELLO]
    for number in range(ROUNDS):
        fields: dict[str, Any] = {"model": MODELS["anthropic"], "max_tokens": 900, "messages": told}
        if stream:
            with client.beta.messages.stream(**fields) as events:
                said = events.get_final_message()
        else:
            said = client.beta.messages.create(**fields)
        told.append({"role": "assistant", "content": list(map(next(ways), said.content))})
        told.append({"role": "user", "content": f"and {number}?"})
    (session,) = client.lading.sessions
    assert len(session.entries) == 2 * ROUNDS
    assert [edit for edit in session._engine.history.edits if edit.kind == "restated"] == []
