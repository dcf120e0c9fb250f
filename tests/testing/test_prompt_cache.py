"""What a request is billed, against figures worked out by hand: each word below is one token."""

from __future__ import annotations

from typing import Any

import pytest

from lading.jsonbytes import dump, load
from lading.testing import FakeModel, Request, Say, Scale, StrictProvider
from lading.testing.prompt_cache import list_texts
from tests.testing.tool_loops import CLAUDE, GPT

MARK = {"type": "ephemeral"}
SCALE = Scale(1.0, message_tokens=5, request_tokens=10)


def said(role: str, count: int) -> dict[str, Any]:
    """A message of so many tokens, without its five of framing."""
    return {"role": role, "content": " word" * count}


def marked(role: str, count: int) -> dict[str, Any]:
    """The same with a cache mark."""
    return {"role": role, "content": [{"type": "text", "text": " word" * count, "cache_control": MARK}]}


def block(count: int, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": " word" * count, **more}


class Till:
    """A provider that caches prefixes from 100 tokens on, asked without HTTP."""

    def __init__(self) -> None:
        self._provider = StrictProvider(FakeModel([Say("Yes.")]), scale=SCALE, min_prefix_tokens=100, foreign=True)

    def chat(self, *messages: dict[str, Any]) -> tuple[int, int]:
        """Prompt tokens, and those of them read from the cache."""
        usage = self._usage("/v1/chat/completions", {"model": GPT, "messages": messages})
        return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    def talk(self, *messages: dict[str, Any], **fields: Any) -> tuple[int, int, int]:
        """Tokens read from the cache, written to it, and neither."""
        usage = self._usage("/v1/messages", {"model": CLAUDE, "max_tokens": 9, "messages": messages, **fields})
        return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"], usage["input_tokens"]

    def _usage(self, path: str, body: Any) -> Any:
        headers = {"authorization": "Bearer k", "x-api-key": "k"}
        answer = self._provider.answer(Request("POST", path, headers, dump(body)))
        assert answer.status == 200, answer.raw
        return load(answer.raw)["usage"]


@pytest.mark.parametrize(("model", "factor"), [(GPT, 1.0), ("claude-sonnet-5", 1.62), ("claude-sonnet-4-6", 1.25)])
def test_a_model_with_an_estimated_counter_counts_by_the_multiplier_of_its_card(model: str, factor: float) -> None:
    provider = StrictProvider(FakeModel([Say("Yes.")]))
    body = {"model": model, "max_tokens": 9, "messages": [said("user", 1_000)]}
    answer = provider.answer(Request("POST", "/v1/messages", {"x-api-key": "k"}, dump(body)))
    assert answer.prompt_tokens == round(1_000 * factor) + 4 + 3


@pytest.fixture
def till() -> Till:
    return Till()


def test_openai_caches_every_prefix_without_being_asked(till: Till) -> None:
    start = (said("system", 200), said("user", 50))
    assert till.chat(*start) == (10 + 205 + 55, 0)
    assert till.chat(*start) == (270, 270)
    assert till.chat(*start, said("assistant", 20), said("user", 30)) == (270 + 25 + 35, 270)
    assert till.chat(start[0], said("user", 51)) == (271, 215)
    assert till.chat(said("system", 201), start[1]) == (271, 0)


def test_openai_caches_nothing_short(till: Till) -> None:
    assert [till.chat(said("user", 84)) for _ in range(2)] == [(99, 0), (99, 0)]
    assert [till.chat(said("user", 85)) for _ in range(2)] == [(100, 0), (100, 100)]


def test_anthropic_caches_nothing_that_is_not_marked(till: Till) -> None:
    assert [till.talk(said("user", 300)) for _ in range(2)] == [(0, 0, 315), (0, 0, 315)]


def test_anthropic_caches_up_to_a_mark(till: Till) -> None:
    system = [block(200, cache_control=MARK)]
    assert till.talk(said("user", 50), system=system) == (0, 210, 55)
    assert till.talk(said("user", 60), system=system) == (210, 0, 65)


def test_a_mark_that_moves_on_finds_the_one_before(till: Till) -> None:
    history = [said("user", 200), said("assistant", 40), said("user", 30)]
    assert till.talk(marked("user", 200)) == (0, 215, 0)
    assert till.talk(*history[:2], marked("user", 30)) == (215, 45 + 35, 0)
    more = (said("assistant", 1), said("user", 2))
    assert till.talk(*history, *more, cache_control=MARK) == (295, 6 + 7, 0)


def test_a_mark_looks_back_over_twenty_blocks_itself_included(till: Till) -> None:
    def request(blocks: int) -> dict[str, Any]:
        inner = [block(1) for _ in range(blocks - 1)]
        return {"role": "user", "content": [block(200), *inner, block(1, cache_control=MARK)]}

    assert till.talk(marked("user", 200)) == (0, 215, 0)
    assert till.talk(request(19)) == (215, 19, 0)
    fresh = Till()
    assert fresh.talk(marked("user", 200)) == (0, 215, 0)
    assert fresh.talk(request(20)) == (0, 215 + 20, 0)


def test_short_prefixes_are_not_cached_even_where_they_are_marked(till: Till) -> None:
    assert [till.talk(marked("user", 84)) for _ in range(2)] == [(0, 0, 99), (0, 0, 99)]


def test_marks_on_tools_and_inside_results_count(till: Till) -> None:
    tool = {"name": "read", "description": " word" * 200, "input_schema": {}, "cache_control": MARK}
    first = till.talk(said("user", 50), tools=[tool])
    assert first[0] == 0
    assert first[1] + first[2] == 10 + 1 + 200 + 1 + 55
    assert till.talk(said("user", 51), tools=[tool]) == (first[1], 0, 56)
    call = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [block(200, cache_control=MARK)]}
    loop = [said("user", 50), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    assert till.talk(*loop, tools=[tool])[1:] == (55 + 5 + 1 + 1 + 5 + 200, 0)


def test_what_a_model_reads_is_counted() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"a": "b"}'}}
    assert list(list_texts({"role": "assistant", "content": "x", "tool_calls": [call]})) == [
        "x",
        "read",
        '{"a": "b"}',
    ]
    use = {"type": "tool_use", "id": "t", "name": "read", "input": {"id": "b"}}
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "EqRk"}
    assert list(list_texts({"role": "assistant", "of": [signed, use]})) == ["Hm.", "read", '{"id":"b"}']
    assert list(list_texts({"type": "image", "source": {"type": "base64", "media_type": "", "data": "AAAA"}})) == [
        ""
    ]
