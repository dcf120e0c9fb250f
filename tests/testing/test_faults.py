"""What can go wrong with a provider goes wrong on demand, as the SDKs know it."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event, Thread
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from lading.testing import FakeModel, Fault, Say, StrictProvider, Use
from tests.testing.test_provider import CHAT, TALK
from tests.testing.tool_loops import anthropic_client, openai_client
from tests.waiting import PATIENCE_S, until

SAID = Say("One two three four five six seven.", (Use("f", {"a": "b" * 30}),))


def provider(**faults: Fault) -> StrictProvider:
    """With these faults, named by number: call_1, call_2 ..."""
    numbered = {int(name.removeprefix("call_")): fault for name, fault in faults.items()}
    return StrictProvider(FakeModel([SAID]), faults=numbered)


@pytest.mark.parametrize("status", [429, 500, 529])
def test_the_sdks_try_again_at_once(status: int) -> None:
    refused = Fault(status=status)
    running = provider(call_1=refused, call_3=refused, call_4=refused)
    with running, openai_client(running) as chat, anthropic_client(running) as talk:
        completion = chat.chat.completions.create(**CHAT)
        message = talk.messages.create(**TALK)
    assert completion.choices[0].message.content == SAID.text
    assert message.stop_reason == "tool_use"
    assert [answer.status for answer in running.answers] == [status, 200, status, status, 200]
    assert running.violations == []


def test_errors_have_the_shape_of_their_provider() -> None:
    limited, overloaded = Fault(status=429), Fault(status=529)
    with provider(call_1=limited, call_2=limited, call_3=overloaded) as running:
        with openai_client(running) as chat, pytest.raises(openai.RateLimitError) as of_chat:
            chat.with_options(max_retries=0).chat.completions.create(**CHAT)
        with anthropic_client(running) as talk:
            once = talk.with_options(max_retries=0)
            with pytest.raises(anthropic.RateLimitError) as of_talk:
                once.messages.create(**TALK)
            with pytest.raises(anthropic.APIStatusError) as of_load:
                once.messages.create(**TALK)
    assert of_chat.value.code == "rate_limit_exceeded"
    assert of_chat.value.response.headers["retry-after"] == "0"
    bodies: list[Any] = [of_talk.value.body, of_load.value.body]
    assert [body["error"]["type"] for body in bodies] == ["rate_limit_error", "overloaded_error"]


def test_a_stream_breaks_in_the_middle() -> None:
    running = provider(call_1=Fault(cut_after=4), call_2=Fault(cut_after=4))
    with running, openai_client(running) as chat, anthropic_client(running) as talk:
        chunks = chat.chat.completions.create(**CHAT, stream=True)
        assert len([next(chunks) for _ in range(4)]) == 4
        with pytest.raises(openai.APIConnectionError):
            next(chunks)
        events = talk.messages.create(**TALK, stream=True)
        assert len([next(events) for _ in range(3)]) == 3  # the ping shows nowhere
        with pytest.raises(httpx2.RemoteProtocolError):
            next(events)


def test_a_reply_may_tell_no_usage() -> None:
    silent = Fault(usage=False)
    asked = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    with provider(call_1=silent, call_2=silent, call_3=silent) as running:
        with openai_client(running) as chat:
            created = chat.chat.completions.create(**CHAT)
            with chat.chat.completions.create(**asked) as chunks:
                streamed = [chunk.usage for chunk in chunks]
        with anthropic_client(running) as talk:
            message = talk.messages.create(**TALK)
    assert created.usage is None
    assert set(streamed) == {None}
    assert "usage" not in message.model_fields_set


def test_an_event_comes_twice() -> None:
    with provider(call_1=Fault(repeat=1)) as running, openai_client(running) as chat:
        chunks = chat.chat.completions.create(**CHAT, stream=True)
        words = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(words) == SAID.text[:12] + SAID.text


class Pauses(Event):
    """Notes how long somebody would have waited for it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seen.append(timeout)
        return self.is_set()


def test_a_stream_comes_in_small_pieces_and_slowly() -> None:
    pauses = Pauses()
    slow = Fault(chunk_bytes=700, delay_s=0.02)
    with provider(call_1=slow, call_2=Fault(chunk_bytes=7)) as running, openai_client(running) as chat:
        assert running._server is not None
        running._server.closing = pauses
        with chat.chat.completions.stream(**CHAT) as stream:
            first = stream.get_final_completion().choices[0].message
        with chat.chat.completions.stream(**CHAT) as stream:
            second = stream.get_final_completion().choices[0].message
    pieces = len(running.answers[0].raw) // 700
    assert pieces >= 3
    assert pauses.seen == [0.02] * pieces
    assert first.content == second.content == SAID.text


def test_closing_does_not_wait_for_a_slow_stream() -> None:
    with ExitStack() as clients:
        with provider(call_1=Fault(delay_s=PATIENCE_S)) as running:
            stream = clients.enter_context(openai_client(running)).chat.completions.create(**CHAT, stream=True)
            next(stream)
        with pytest.raises(openai.APIConnectionError):
            next(stream)


def test_a_call_hangs_and_the_provider_ends_without_waiting_for_it() -> None:
    running, ended = provider(call_1=Fault(hang=True)), list[Exception]()

    def call() -> None:
        with openai_client(running) as chat, pytest.raises(openai.APIConnectionError) as caught:
            chat.with_options(max_retries=0).chat.completions.create(**CHAT)
        ended.append(caught.value)

    with running:
        asking = Thread(target=call)
        asking.start()
        until("the call", lambda: running.answers)
        assert ended == []
    asking.join()
    assert len(ended) == 1


def test_a_prompt_of_any_length_is_refused_as_too_long() -> None:
    with provider(call_1=Fault(overflow=True)) as running, openai_client(running) as chat:
        with pytest.raises(openai.BadRequestError) as caught:
            chat.chat.completions.create(**CHAT)
        chat.chat.completions.create(**CHAT)
    assert caught.value.code == "context_length_exceeded"
    assert running.violations == []
