"""The requests by which summaries are asked for: where they go, what they keep, and when a prompt alone is sent."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from hypothesis import given, reject
from hypothesis import strategies as st
from openai import AzureOpenAI, OpenAI

from lading import AsyncSession, Session, Summarizer, SummaryRequest, jsonbytes, wrap
from lading.engine import Engine
from lading.errors import LadingError
from lading.messages import Message
from lading.models.card import Conduct
from lading.models.catalog import find_card
from lading.request.summary_calls import LastRequest
from lading.testing.legality import find_violations
from lading.wire import check, find_wire, list_wires
from tests.engines import TOOLS, settings
from tests.replies import CHAT_TOOLS, chat_reply, chat_result, messages_reply
from tests.views import paired, pressure

TEXT = "The fixture waited for a lock. " * 30


def seen_by(kind: type[Any], **options: Any) -> tuple[Any, list[httpx2.Request]]:
    """A client whose provider answers with calls of a tool, and the requests that it sent."""
    sent: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        reply = chat_reply("I read.", (f"c{len(sent)}", "read", {"path": "a"}), number=len(sent))
        return httpx2.Response(200, json=reply)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return kind(api_key="none", max_retries=0, http_client=http, **options), sent


def play(session: Session, fields: dict[str, Any], rounds: range) -> list[dict[str, Any]]:
    """Hand rounds of a tool loop to the session; return its requests."""
    made = []
    for number in rounds:
        made.append(jsonbytes.load(session.pack(CHAT_TOOLS, fields=fields).body))
        session.reply(chat_reply("I read.", (f"c{number}", "read", {"path": f"file-{number}"}), number=number))
        session.add(chat_result(f"c{number}", f"{number}: {TEXT}"))
    return made


def asked_by(model: str, fields: dict[str, Any]) -> tuple[list[Any], Any]:
    """The requests of a session with these fields, and its first one for a summary."""
    client, sent = seen_by(OpenAI)
    whom = Summarizer("self", client=client)
    with Session(model, window=24_000, when=0.5, summarizer=whom) as session:
        session.add("Which test is slow?")
        made = play(session, fields, range(60))
    return made, jsonbytes.load(sent[0].content)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({}, {}),
        ({"max_tokens": 200}, {"max_tokens": 200}),
        ({"temperature": 0.5, "user": "me", "n": 1, "stop": ["."]}, {"temperature": 0.5, "user": "me"}),
        ({"stream": True, "stream_options": {"include_usage": True}, "store": False}, {"store": False}),
    ],
)
def test_it_is_the_last_request_with_one_more_text(fields: dict[str, Any], kept: dict[str, Any]) -> None:
    made, asked = asked_by("gpt-4o", fields)
    messages = asked.pop("messages")
    last = next(one for one in made if one["messages"] == messages[:-1])
    assert messages[-1]["role"] == "user"
    assert asked == {"model": "gpt-4o", "tools": last["tools"], **kept}


def test_the_limit_of_the_answer_is_lowered() -> None:
    _, asked = asked_by("gpt-4o", {"max_tokens": 16_000})
    assert 4_096 < asked["max_tokens"] < 8_000


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "read"}}},
        {"response_format": {"type": "json_object"}},
    ],
)
def test_a_request_that_wants_no_text_is_not_extended(fields: dict[str, Any]) -> None:
    _, asked = asked_by("gpt-4o", fields)
    assert list(asked) == ["model", "messages"]
    assert len(asked["messages"]) == 1


NUMBERS = st.integers(1, 64_000)
SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "max_tokens": NUMBERS,
        "max_completion_tokens": NUMBERS,
        "thinking": st.one_of(
            st.just({"type": "adaptive"}), st.builds(lambda n: {"type": "enabled", "budget_tokens": n}, NUMBERS)
        ),
        "stream": st.booleans(),
        "temperature": st.floats(0, 1),
        "metadata": st.just({"user_id": "x"}),
        "tool_choice": st.sampled_from([{"type": "auto"}, "auto", {"type": "any"}, "required"]),
        "output_config": st.sampled_from([{"effort": "low"}, {"format": {"type": "json_schema"}}]),
    },
)


ASKED = [one for one in list_wires() if "stream" in one.layout.unread]
"""The formats whose clients can be asked for summaries: not Gemini's, whose path says what is streamed."""


@given(fields=SHAPES, tokens=st.integers(100, 4_000), wire=st.sampled_from(ASKED))
def test_only_what_is_no_part_of_the_prompt_changes(fields: dict[str, Any], tokens: int, wire: Any) -> None:
    asked = wire.layout.ask_text(fields, tokens, thinking_tokens=4_096)
    wants_other = fields.get("tool_choice") in ({"type": "any"}, "required")
    if wants_other or "format" in fields.get("output_config", {}):
        assert asked is None
        return
    changed = {name for name in fields if asked.get(name) != fields[name]}
    assert changed <= wire.layout.unread
    for name in ("max_tokens", "max_completion_tokens"):
        if name in fields:
            assert asked[name] <= fields[name]
            budget = fields.get("thinking", {}).get("budget_tokens", 0)
            assert asked[name] == fields[name] or asked[name] >= tokens + budget


def test_it_goes_where_the_callers_request_goes_with_its_headers() -> None:
    options = {"azure_endpoint": "https://here.example", "api_version": "2024-10-21"}
    azure, sent = seen_by(AzureOpenAI, **options)
    client: Any = wrap(azure, window=8_000, summarizer="self")
    history: list[Any] = [{"role": "user", "content": "Which test is slow?"}]
    while (
        not (own := [one for one in sent if "Answer this message with text alone" in one.content.decode()])
        and len(sent) < 100
    ):
        extra = {"extra_headers": {"X-Team": "red", "Idempotency-Key": "k"}, "extra_query": {"tag": "7"}}
        said = client.chat.completions.create(model="gpt-4o", messages=history, tools=CHAT_TOOLS, **extra)
        message = said.choices[0].message
        history += [message, chat_result(message.tool_calls[0].id, TEXT * 2)]
    callers = sent[sent.index(own[0]) - 1]
    assert own[0].url == callers.url
    assert dict(own[0].url.params) == {"api-version": "2024-10-21", "tag": "7"}
    ours, theirs = dict(own[0].headers), dict(callers.headers)
    assert ours["x-team"] == "red"
    for name in ("content-length", "idempotency-key", "x-stainless-read-timeout"):
        ours.pop(name, None)
        theirs.pop(name, None)
    assert ours == theirs


def test_a_provider_that_caches_nothing_is_sent_the_prompt_alone() -> None:
    asked = [_ask_anthropic(marks) for marks in ({}, {"cache_control": {"type": "ephemeral"}})]
    assert [len(body["messages"]) > 1 for body in asked] == [False, True]
    assert asked[1]["cache_control"] == {"type": "ephemeral"}


def test_thinking_stays_as_it_was_and_leaves_room_for_the_answer() -> None:
    thinking = {"type": "enabled", "budget_tokens": 5_000}
    asked = _ask_anthropic({"cache_control": {"type": "ephemeral"}, "thinking": thinking}, most=12_000)
    assert asked["thinking"] == thinking
    assert 5_000 < asked["max_tokens"] < 12_000


def _ask_anthropic(fields: dict[str, Any], *, most: int = 1_000) -> Any:
    """The first request for a summary of a wrapped client, in which the instruction joins the results."""
    sent_bodies: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent_bodies.append(body := jsonbytes.load(request.content))
        if "ummari" in str(body["messages"][-1]):
            return httpx2.Response(500, json={})
        use = {"type": "tool_use", "id": f"t{len(sent_bodies)}", "name": "read", "input": {}}
        use = use if len(sent_bodies) % 4 else {"type": "text", "text": "That is read."}
        signed = [{"type": "thinking", "thinking": "", "signature": "s"}] if "thinking" in fields else []
        return httpx2.Response(200, json=messages_reply(*signed, use))

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    anthropic = Anthropic(api_key="none", max_retries=0, http_client=http)
    client: Any = wrap(anthropic, window=24_000, when=0.5, summarizer="self")
    tools = [{"name": "read", "input_schema": {"type": "object", "properties": {}}}]
    history: list[Any] = [{"role": "user", "content": "Which test is slow?"}]
    while "ummari" not in str(sent_bodies[-2:-1]) and len(sent_bodies) < 100:
        said = client.messages.create(
            model="claude-haiku-4-5", max_tokens=most, messages=history, tools=tools, **fields
        )
        last = said.content[-1]
        result = (
            {"type": "tool_result", "tool_use_id": last.id, "content": TEXT} if last.type == "tool_use" else None
        )
        history += [{"role": "assistant", "content": said.content}]
        history += [{"role": "user", "content": [result] if result else "Go on."}]
    body = sent_bodies[-2]
    assert not check(body, find_wire("anthropic"), card=find_card("claude-haiku-4-5")[0], strict=True)
    return body


def test_a_function_of_messages_gets_those_that_leave_and_the_reason() -> None:
    given: list[tuple[Any, Any]] = []

    def summarize(messages: list[dict[str, Any]], context: dict[str, str]) -> str:
        given.append((messages, context))
        return ""

    async def later(messages: list[dict[str, Any]], context: dict[str, str] | None = None) -> str:
        given.append((messages, context))
        return ""

    with Session("gpt-4o", window=8_000, strategy="agentrail", summarizer=summarize) as session:
        session.add("Which test is slow?")
        made = play(session, {}, range(60))
    messages, context = given[0]
    assert messages == made[-1]["messages"][1 : 1 + len(messages)] or messages[0]["role"] == "assistant"
    assert {one["role"] for one in messages} == {"assistant", "tool"}
    assert context["reason"].isidentifier()

    async def asked() -> None:
        async with AsyncSession(Session("gpt-4o", window=8_000, summarizer=later)) as waiting:
            await waiting.add("Which test is slow?")
            await asyncio.to_thread(play_until_full, waiting.session)
            await waiting.pack()

    def play_until_full(session: Session) -> None:
        for number in range(60):
            session.add({"role": "assistant", "tool_calls": [_call(number)]})
            session.add(chat_result(f"c{number}", f"{number}: {TEXT}"))

    given.clear()
    asyncio.run(asked())
    assert {one["role"] for one in given[0][0]} == {"assistant", "tool"}


def _call(number: int) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}


@pytest.mark.parametrize(
    "summarize",
    [
        lambda request: request.prompt,
        lambda request, limit=3: request.prompt[:limit],
        lambda *given: given[0].prompt,
    ],
)
def test_a_function_of_one_parameter_gets_the_request(summarize: Any) -> None:
    with Session("gpt-4o", window=8_000, strategy="priced", summarizer=summarize) as session:
        session.add("Which test is slow?")
        play(session, {}, range(40))


@given(
    history=paired(),
    wire=st.sampled_from(list_wires()),
    dialect=st.sampled_from(["first_party", "strict"]),
    last=st.integers(0, 30),
)
def test_a_continued_request_is_legal_and_begins_as_the_one_before(
    history: list[Message], wire: Any, dialect: Any, last: int
) -> None:
    chosen = settings(100_000, wire=wire.name, conduct=Conduct(prefill=False, dialect=dialect), strict=True)
    engine = Engine(chosen)
    engine.append(history)
    template = {"model": "test-model", "max_tokens": 1_000, "cache_control": {"type": "ephemeral"}}
    try:
        sent = engine.pack(tools=TOOLS, template=template).request
    except LadingError:
        # The history ends with open calls, or with the assistant.
        reject()
    asked = SummaryRequest(
        "", "", span=(0, min(last, len(history) - 1)), most_tokens=200, instruction_for_self="Summarise."
    )
    request = LastRequest(engine._request, engine.history)
    extended = request.extend(asked, pressure(90_000))
    assert extended is not None
    body = extended[0]
    assert not find_violations(wire.name, body, card=chosen.card, issued=None)
    items = wire.layout.items.field
    before, after = dict(sent), dict(body)
    *same, _ = before.pop(items)
    assert after.pop(items)[: len(same)] == same
    assert before == after
    assert str(body[items][len(same) :]).count("Summarise.") == 1
    # Where the room is short, the newest messages are left out, never those to summarize.
    shorter = request.extend(asked, pressure(engine.history.view.tokens_before(len(history) // 2) + 100))
    assert shorter is None or not find_violations(wire.name, shorter[0], card=chosen.card, issued=None)
