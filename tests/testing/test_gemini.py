"""The strict provider's generateContent as google-genai sees it, streamed or not, sync or async."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from lading.testing import FakeModel, Fault, Say, StrictProvider, Use
from tests.waiting import PATIENCE_S

MODEL = "gemini-3-pro-preview"
SAID = Say("I look.", (Use("read", {"path": "a"}), Use("read", {"path": "b"})), thinking="First this.")
THINKING = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider(FakeModel([SAID])) as running:
        yield running


def client_of(provider: StrictProvider) -> Any:
    options = types.HttpOptions(base_url=provider.url, timeout=int(PATIENCE_S * 1000))
    return genai.Client(api_key="local", http_options=options)


def parts_of(responses: list[Any]) -> list[Any]:
    return [part for response in responses for part in response.candidates[0].content.parts or ()]


def told(responses: list[Any]) -> tuple[str, str, list[Any]]:
    """Thoughts, text and arguments of calls."""
    parts = parts_of(responses)
    thoughts = "".join(part.text for part in parts if part.text and part.thought)
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return thoughts, text, [part.function_call.args for part in parts if part.function_call]


EXPECTED = (SAID.thinking, SAID.text, [use.arguments for use in SAID.calls])


def test_a_stream_gives_what_the_whole_answer_gives(provider: StrictProvider) -> None:
    client = client_of(provider)
    whole = client.models.generate_content(model=MODEL, contents="Hello.", config=THINKING)
    chunks = list(client.models.generate_content_stream(model=MODEL, contents="Hello.", config=THINKING))
    assert told([whole]) == told(chunks) == EXPECTED
    assert len(chunks) > 3
    assert whole.usage_metadata.prompt_token_count == provider.answers[0].prompt_tokens
    assert chunks[-1].usage_metadata.candidates_token_count == whole.usage_metadata.candidates_token_count
    assert provider.violations == []


def test_asynchronous_clients(provider: StrictProvider) -> None:
    async def asked() -> tuple[Any, list[Any]]:
        client = client_of(provider).aio
        whole = await client.models.generate_content(model=MODEL, contents="Hello.", config=THINKING)
        stream = await client.models.generate_content_stream(model=MODEL, contents="Hello.", config=THINKING)
        return whole, [chunk async for chunk in stream]

    whole, chunks = asyncio.run(asked())
    assert told([whole]) == told(chunks) == EXPECTED


def test_a_chat_sends_back_what_was_issued(provider: StrictProvider) -> None:
    client = client_of(provider)
    chat = client.chats.create(model=MODEL)
    chat.send_message("Hello.")
    answers = [types.Part.from_function_response(name="read", response={"output": "ok"}) for _ in SAID.calls]
    chat.send_message(answers)
    assert provider.violations == []
    with pytest.raises(errors.ClientError):
        chat.send_message("And now?")
    assert {violation.rule for violation in provider.violations} == {"G3"}


def test_a_prompt_that_was_sent_before_is_read_from_the_cache(provider: StrictProvider) -> None:
    client = client_of(provider)
    first, second = (client.models.generate_content(model=MODEL, contents="word " * 2_000) for _ in range(2))
    assert first.usage_metadata.cached_content_token_count is None
    assert second.usage_metadata.cached_content_token_count == second.usage_metadata.prompt_token_count


@pytest.mark.parametrize(
    ("fault", "code", "status"),
    [
        (Fault(overflow=True), 400, "INVALID_ARGUMENT"),
        (Fault(status=429), 429, "RESOURCE_EXHAUSTED"),
        (Fault(status=503), 503, "UNAVAILABLE"),
    ],
)
def test_errors_have_the_shape_of_the_provider(fault: Fault, code: int, status: str) -> None:
    with StrictProvider(FakeModel([SAID]), faults={1: fault}) as provider:
        client = client_of(provider)
        with pytest.raises(errors.APIError) as caught:
            client.models.generate_content(model=MODEL, contents="Hello.")
    assert (caught.value.code, caught.value.status) == (code, status)
    assert ("exceeds the maximum number of tokens allowed" in str(caught.value)) == fault.overflow


def test_a_call_that_came_without_an_id_may_come_back_with_one_of_the_clients(provider: StrictProvider) -> None:
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}, "id": "read_1"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "id": "read_1", "response": {}}}]},
        ]
    }
    client = client_of(provider)
    client.models.generate_content(model="gemini-2.5-flash", contents="hi")
    client.models.generate_content(model="gemini-2.5-flash", contents=body["contents"])
    assert provider.violations == []
