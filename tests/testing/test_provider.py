"""The strict provider as the real SDKs see it."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from lading.errors import LadingError
from lading.testing import FakeModel, Say, Seen, StrictProvider, Use
from tests.testing.tool_loops import CLAUDE, GPT, MAX_TOKENS, anthropic_client, openai_client
from tests.waiting import PATIENCE_S

SAID = Say(
    'Ünï 😀 "words"\nand more of them.',
    (Use("read_file", {"path": 'a\\b\n"c"', "é": [1, None]}), Use("run")),
    thinking="First this, then that.",
)
ARGUMENTS = [{"path": 'a\\b\n"c"', "é": [1, None]}, {}]
HELLO: Any = [{"role": "user", "content": "Hello."}]
CHAT: Any = {"model": GPT, "messages": HELLO}
TALK: Any = {"model": CLAUDE, "max_tokens": MAX_TOKENS, "messages": HELLO, "thinking": {"type": "adaptive"}}


@pytest.fixture
def provider() -> Any:
    with StrictProvider(FakeModel([SAID])) as running:
        yield running
    assert running.violations == []


def chat_said(message: Any) -> tuple[str, list[Any]]:
    return message.content, [json.loads(call.function.arguments) for call in message.tool_calls]


def talk_said(message: Any) -> tuple[str, str, list[Any]]:
    thinking, text, *calls = message.content
    assert len(thinking.signature) > 100
    return thinking.thinking, text.text, [call.input for call in calls]


def test_openai_create(provider: StrictProvider) -> None:
    with openai_client(provider) as client:
        completion = client.chat.completions.create(**CHAT)
    [choice] = completion.choices
    assert chat_said(choice.message) == (SAID.text, ARGUMENTS)
    assert (choice.finish_reason, completion.model) == ("tool_calls", GPT)
    usage = completion.usage
    assert usage is not None
    assert usage.prompt_tokens == 3 + 4 + 2
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


@pytest.mark.parametrize("asked", [True, False])
def test_openai_streams_what_it_would_have_created(provider: StrictProvider, asked: bool) -> None:
    with openai_client(provider) as client:
        with client.chat.completions.stream(**CHAT, stream_options={"include_usage": asked}) as stream:
            events = list(stream)
            streamed = stream.get_final_completion()
        created = client.chat.completions.create(**CHAT)
    assert chat_said(streamed.choices[0].message) == (SAID.text, ARGUMENTS) == chat_said(created.choices[0].message)
    assert streamed.choices[0].finish_reason == "tool_calls"
    assert streamed.usage == (created.usage if asked else None)
    assert len([event for event in events if event.type == "content.delta"]) > 1
    assert provider.answers[0].raw.endswith(b"data: [DONE]\n\n")


def test_anthropic_create(provider: StrictProvider) -> None:
    with anthropic_client(provider) as client:
        message = client.messages.create(**TALK)
    assert talk_said(message) == (SAID.thinking, SAID.text, ARGUMENTS)
    assert (message.stop_reason, message.model, message.usage.input_tokens) == ("tool_use", CLAUDE, 3 + 4 + 2)


def test_anthropic_streams_what_it_would_have_created(provider: StrictProvider) -> None:
    with anthropic_client(provider) as client:
        with client.messages.stream(**TALK) as stream:
            kinds = [event.type for event in stream]
            streamed = stream.get_final_message()
        created = client.messages.create(**TALK)
    assert talk_said(streamed) == (SAID.thinking, SAID.text, ARGUMENTS) == talk_said(created)
    assert streamed.stop_reason == "tool_use"
    assert (streamed.usage.input_tokens, streamed.usage.output_tokens) == (9, created.usage.output_tokens)
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    assert b"event: ping\n" in provider.answers[0].raw


def test_thinking_is_said_only_where_it_is_on_and_shown_only_where_it_is_wanted(provider: StrictProvider) -> None:
    with anthropic_client(provider) as client:
        silent = client.messages.create(**{**TALK, "thinking": {"type": "disabled"}})
        hidden = client.messages.create(**{**TALK, "thinking": {"type": "adaptive", "display": "omitted"}})
    assert [block.type for block in silent.content] == ["text", "tool_use", "tool_use"]
    assert talk_said(hidden)[0] == ""


def test_a_model_that_wants_its_reasoning_back_says_it(provider: StrictProvider) -> None:
    request = {**CHAT, "model": "deepseek-v4-pro"}
    with openai_client(provider) as client:
        [choice] = client.chat.completions.create(**request).choices
        with client.chat.completions.create(**request, stream=True) as stream:
            deltas = [chunk.choices[0].delta.to_dict() for chunk in stream]
    assert choice.message.to_dict()["reasoning_content"] == SAID.thinking
    assert "".join(str(delta.get("reasoning_content", "")) for delta in deltas) == SAID.thinking


def test_raw_responses(provider: StrictProvider) -> None:
    with openai_client(provider) as chat, anthropic_client(provider) as talk:
        of_chat = chat.chat.completions.with_raw_response.create(**CHAT)
        of_talk = talk.messages.with_raw_response.create(**TALK)
    assert of_chat.headers["content-type"] == of_talk.headers["content-type"] == "application/json"
    assert of_talk.headers["request-id"]
    assert chat_said(of_chat.parse().choices[0].message)[0] == SAID.text
    assert talk_said(of_talk.parse())[1] == SAID.text


def test_asynchronous_clients(provider: StrictProvider) -> None:
    async def talked() -> list[str]:
        async with (
            AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="local", timeout=PATIENCE_S) as chat,
            AsyncAnthropic(base_url=provider.url, api_key="local", timeout=PATIENCE_S) as talk,
        ):
            [choice] = (await chat.chat.completions.create(**CHAT)).choices
            async with chat.chat.completions.stream(**CHAT) as chunks:
                completion = await chunks.get_final_completion()
            message: Any = await talk.messages.create(**TALK)
            async with talk.messages.stream(**TALK) as events:
                final: Any = await events.get_final_message()
            words = [choice.message.content, completion.choices[0].message.content]
            return [*map(str, words), message.content[1].text, final.content[1].text]

    assert asyncio.run(talked()) == [SAID.text] * 4


def test_models_are_listed_on_both_wires(provider: StrictProvider) -> None:
    with openai_client(provider) as chat, anthropic_client(provider) as talk:
        assert [model.id for model in chat.models.list()] == [model.id for model in talk.models.list()]


def test_requests_are_recorded_without_keys(provider: StrictProvider) -> None:
    with openai_client(provider) as chat, anthropic_client(provider) as talk:
        chat.chat.completions.create(**CHAT)
        chat.models.list()
        talk.messages.create(**TALK)
    paths = ["/v1/chat/completions", "/v1/models", "/v1/messages"]
    assert [request.path for request in provider.requests] == paths
    assert [request.call for request in provider.requests] == [1, 0, 2]
    assert provider.requests[0].body == CHAT == json.loads(provider.requests[0].raw)
    assert provider.requests[2].headers["anthropic-version"]
    assert "local" not in {value for request in provider.requests for value in request.headers.values()}
    assert [answer.status for answer in provider.answers] == [200, 200, 200]
    assert [issue.say for issue in provider.issues] == [SAID, SAID]


def test_what_is_no_request_is_refused() -> None:
    with StrictProvider(FakeModel([SAID])) as provider:
        with openai_client(provider) as chat, pytest.raises(openai.NotFoundError, match="Invalid URL"):
            chat.embeddings.create(model="m", input="x")
        with anthropic_client(provider) as talk, pytest.raises(anthropic.NotFoundError):
            talk.messages.count_tokens(model=CLAUDE, messages=HELLO)
        connection = http.client.HTTPConnection(provider.url.removeprefix("http://"))
        answered: list[tuple[int, str]] = []
        for raw, headers in ((b"{", {"x-api-key": "k"}), (b"[]", {"x-api-key": "k"}), (b"{}", {"x-api-key": ""})):
            connection.request("POST", "/v1/messages", raw, headers)
            with connection.getresponse() as response:
                answered.append((response.status, json.loads(response.read())["error"]["type"]))
        connection.close()
    assert answered == [
        (400, "invalid_request_error"),
        (400, "invalid_request_error"),
        (401, "authentication_error"),
    ]


def test_a_failing_script_ends_the_call_at_once_and_the_with_statement_raises_it() -> None:
    def failing(seen: Seen) -> Say:
        raise LookupError(seen.wire)

    provider = StrictProvider(failing)
    with pytest.raises(LookupError, match="openai_chat"):
        _call_in_vain(provider)
    assert len(provider.requests) == 1


def _call_in_vain(provider: StrictProvider) -> None:
    raises = pytest.raises(openai.InternalServerError, match="LookupError")
    with provider, openai_client(provider) as client, raises:
        client.chat.completions.create(**CHAT)


def test_it_runs_within_a_with_statement_only() -> None:
    provider = StrictProvider(FakeModel([SAID]))
    with pytest.raises(LadingError, match="with statement"):
        _ = provider.url


def test_many_calls_at_once_get_ids_of_their_own_and_leave_no_thread() -> None:
    before = set(threading.enumerate())
    with StrictProvider(FakeModel([SAID])) as provider, openai_client(provider) as client:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: client.chat.completions.create(**CHAT), range(40)))
        with client.chat.completions.create(**CHAT, stream=True) as left_early:
            next(iter(left_early))
    ids = {call.id for one in found for call in one.choices[0].message.tool_calls or ()}
    assert len(ids) == 80
    assert [request.call for request in provider.requests] == list(range(1, 42))
    assert set(threading.enumerate()) - before == set()


def test_it_is_imported_without_any_sdk() -> None:
    without = "import sys; sys.modules.update(dict.fromkeys(['openai', 'anthropic', 'httpx', 'httpx2']))"
    done = subprocess.run([sys.executable, "-c", f"{without}; import lading.testing"], check=False)
    assert done.returncode == 0
