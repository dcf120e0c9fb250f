"""Blank texts, which Anthropic refuses anywhere, in sessions of either provider that change their model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.audit.replay import verify
from lading.events import Repaired
from lading.stores.memory import MemoryStore
from lading.wire import check

TOOLS = [{"name": "run", "input_schema": {"type": "object"}}]
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "run", "input": {}}]}
texts = st.sampled_from(["", " ", "\n", "x"]).map(lambda words: {"type": "text", "text": words})
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
found = st.lists(texts, max_size=2).map(
    lambda content: {"type": "search_result", "source": "s", "title": "t", "content": content}
)
results = st.lists(texts | found | st.just(IMAGE), max_size=3).map(
    lambda content: {"type": "tool_result", "tool_use_id": "c1", "content": content}
)
contents = st.lists(texts | found | st.just(IMAGE), max_size=3)
MODELS = ["claude-sonnet-5", "gpt-5-mini"]


@given(models=st.lists(st.sampled_from(MODELS), max_size=2), result=results, others=contents, said=contents)
def test_no_blank_text_is_sent(
    models: list[str], result: dict[str, Any], others: list[dict[str, Any]], said: list[dict[str, Any]]
) -> None:
    store = MemoryStore()
    session = Session(models[0] if models else "claude-sonnet-5", store=store)
    session.add([{"role": "user", "content": "Task"}, CALL, {"role": "user", "content": [result, *others]}])
    session.add([{"role": "assistant", "content": "ok"}, {"role": "user", "content": said or "on"}])
    session.pack(TOOLS)
    for model in (*models[1:], "claude-sonnet-5"):
        session.close()
        session = Session(model, store=store)
        pack = session.pack(TOOLS, fields={"max_tokens": 100})
    assert [one for one in check(pack.request, session.wire, card=session.settings.card) if one.rule == "A11"] == []


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "\n"}, IMAGE]}, [IMAGE]),
        (
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "\n"}]},
            None,
        ),
    ],
)
def test_a_blank_text_inside_a_result_is_left_out_with_an_event(
    part: dict[str, Any], shown: list[Any] | None
) -> None:
    session = Session("claude-sonnet-5")
    session.add([{"role": "user", "content": "Task"}, CALL, {"role": "user", "content": [part]}])
    pack = session.pack(TOOLS, fields={"max_tokens": 100})
    assert pack.request["messages"][-1]["content"][0].get("content") == shown
    assert [event.rule for event in pack.events if isinstance(event, Repaired)] == ["empty_text"]


@pytest.mark.parametrize("said", [{}, {"name": "Ann"}])
def test_an_empty_answer_of_chat_is_written_as_a_text_for_responses(said: dict[str, Any]) -> None:
    with Session("gpt-5-mini", wire="openai_responses") as session:
        session.add("Task").add([{"role": "assistant", "content": None, **said}]).add("Go on.")
        pack = session.pack()
        assert check(pack.request, session.wire, card=session.settings.card, strict=True) == []
        assert b"[empty message]" in pack.body
        assert "empty_text" in [event.rule for event in pack.events if isinstance(event, Repaired)]


HELLO = {"role": "user", "content": "Hello"}


def blank(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("", ""),
        ([], []),
        ([blank("")], None),
        ([blank(" "), blank("")], None),
        ([blank("") | {"cache_control": {"type": "ephemeral"}}], None),
        ("  ", None),
        ([blank(""), blank("Be brief.")], [blank("Be brief.")]),
    ],
)
def test_an_empty_prompt_of_anthropic_says_nothing(given: Any, sent: Any) -> None:
    store = MemoryStore()
    for _ in range(2):
        with Session("claude-sonnet-5", store=store) as session:
            session.add([*session.wire.read_system({"system": given}), *session.wire.read_items([HELLO])])
            pack = session.pack(fields={"max_tokens": 100})
            assert pack.request.get("system") == sent
            assert check(pack.request, session.wire, card=session.settings.card, strict=True) == []
    assert [outcome.problem for outcome in verify(store, tenant="default", session="session")] == ["", ""]


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize(
    ("content", "sent"), [("", ""), (" ", " "), ([blank("")], [blank("")]), ([], ""), (None, "")]
)
def test_an_empty_prompt_of_chat_says_nothing(role: str, content: Any, sent: Any) -> None:
    prompt = {"role": role, "content": content}
    with Session("gpt-5-mini") as session:
        pack = session.add([prompt, HELLO]).pack()
        assert pack.request["messages"] == [prompt | {"content": sent}, HELLO]
        assert check(pack.request, session.wire, card=session.settings.card, strict=True) == []


@pytest.mark.parametrize("given", ["", [blank("")], " "])
def test_an_empty_prompt_says_nothing_to_a_model_of_another_format(given: Any) -> None:
    store = MemoryStore()
    with Session("gpt-5-mini", store=store) as session:
        session.add([{"role": "system", "content": given}, HELLO]).pack()
    with Session("claude-sonnet-5", store=store) as session:
        pack = session.pack(fields={"max_tokens": 100})
        assert "system" not in pack.request
        assert check(pack.request, session.wire, card=session.settings.card, strict=True) == []


@pytest.mark.parametrize("model", MODELS)
def test_an_empty_message_of_the_user_says_so(model: str) -> None:
    with Session(model) as session:
        pack = session.add([{"role": "user", "content": ""}]).pack(fields={"max_tokens": 100})
        assert pack.request["messages"] == [{"role": "user", "content": "[empty message]"}]
