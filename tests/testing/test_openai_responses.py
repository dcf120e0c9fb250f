"""The strict provider's Responses API as the real SDK sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from lading.testing import FakeModel, Fault, Say, StrictProvider, Use
from tests.testing.tool_loops import GPT, openai_client

SAID = Say("I look.", (Use("read", {"path": "a"}), Use("read", {"path": "b"})), thinking="First this, then that.")
ASKED: dict[str, Any] = {"model": GPT, "input": "Hello.", "reasoning": {"effort": "low"}}


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider(FakeModel([SAID])) as running:
        yield running


def outputs(items: list[Any]) -> list[Any]:
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls]


def test_a_stream_gives_what_the_whole_response_gives(provider: StrictProvider) -> None:
    with openai_client(provider) as client:
        whole = client.responses.create(**ASKED)
        with client.responses.stream(**ASKED) as events:
            kinds = [event.type for event in events]
            streamed: Any = events.get_final_response()
    assert [item.type for item in whole.output] == ["reasoning", "message", "function_call", "function_call"]
    assert whole.output_text == streamed.output_text == SAID.text
    asked = [json.loads(item.arguments) for item in streamed.output if item.type == "function_call"]
    assert asked == [use.arguments for use in SAID.calls]
    assert "response.output_text.delta" in kinds
    assert "response.reasoning_summary_text.delta" in kinds
    assert whole.usage is not None
    assert whole.usage.input_tokens == provider.answers[0].prompt_tokens
    assert provider.violations == []


def test_a_prompt_that_was_sent_before_is_read_from_the_cache() -> None:
    with StrictProvider(FakeModel([Say("yes")])) as provider, openai_client(provider) as client:
        first, second = (client.responses.create(model=GPT, input="word " * 2_000) for _ in range(2))
    assert first.usage is not None
    assert second.usage is not None
    assert first.usage.input_tokens_details.cached_tokens == 0
    assert second.usage.input_tokens_details.cached_tokens == second.usage.input_tokens


def test_a_stored_response_is_continued(provider: StrictProvider) -> None:
    with openai_client(provider) as client:
        first = client.responses.create(**ASKED)
        new = outputs([item.to_dict() for item in first.output])
        client.responses.create(**ASKED | {"input": new, "previous_response_id": first.id})
        assert provider.violations == []
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(**ASKED | {"previous_response_id": "resp_other"})
    assert caught.value.code == "previous_response_not_found"


def without_reasoning(items: list[Any]) -> list[Any]:
    return items[1:]


def without_reasoning_and_ids(items: list[Any]) -> list[Any]:
    return [{key: value for key, value in item.items() if key != "id"} for item in items[1:]]


def with_other_content(items: list[Any]) -> list[Any]:
    return [items[0] | {"encrypted_content": "gAAA"}, *items[1:]]


def with_other_arguments(items: list[Any]) -> list[Any]:
    return [*items[:-1], items[-1] | {"arguments": "{}"}]


def with_another_call(items: list[Any]) -> list[Any]:
    return [*items[:-1], items[-1] | {"call_id": "call_other"}]


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (list, set()),
        (without_reasoning, {"R5"}),
        (without_reasoning_and_ids, set()),
        (with_other_content, {"R6"}),
        (with_other_arguments, set()),
        (with_another_call, {"issued"}),
    ],
)
def test_what_was_issued_comes_back_as_issued(
    provider: StrictProvider, change: Callable[[list[Any]], list[Any]], rules: set[str]
) -> None:
    with openai_client(provider) as client:
        items = change([item.to_dict() for item in client.responses.create(**ASKED).output])
        history: Any = [{"role": "user", "content": "Hello."}, *items, *outputs(items)]
        if rules:
            with pytest.raises(openai.BadRequestError):
                client.responses.create(**ASKED | {"input": history})
        else:
            client.responses.create(**ASKED | {"input": history})
    assert {violation.rule for violation in provider.violations} == rules


def test_a_prompt_that_is_too_long_is_refused() -> None:
    with (
        StrictProvider(FakeModel([Say("yes")]), window_tokens=50) as provider,
        openai_client(provider) as client,
        pytest.raises(openai.BadRequestError) as caught,
    ):
        client.responses.create(model=GPT, input="word " * 90)
    assert caught.value.code == "context_length_exceeded"
    assert provider.violations == []


def test_a_stream_that_is_cut_breaks() -> None:
    with (
        StrictProvider(FakeModel([SAID]), faults={1: Fault(cut_after=6)}) as provider,
        openai_client(provider) as client,
        pytest.raises(openai.APIConnectionError),
    ):
        list(client.responses.create(**ASKED, stream=True))


def test_an_answer_that_is_cut_short_says_so() -> None:
    say = Say("hel", stop="max_output_tokens")
    with StrictProvider(FakeModel([say])) as provider, openai_client(provider) as client:
        response = client.responses.create(model=GPT, input="hi")
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
