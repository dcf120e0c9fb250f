"""Context providers and transforms: where what they tell comes to stand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from lading import SessionOptions, resolve, verify
from lading.effects import RequestContext
from lading.errors import InputError
from lading.events import StrategyOverruled
from lading.messages import Message, Part, Text, ToolCall, ToolResult, user_text
from lading.presets.agentrail import compose_transform_contexts, create_transform_context, transforming
from lading.session.session import Session
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS
from tests.histories import answered, said


def identity(context: RequestContext, _messages: Sequence[Message]) -> list[Message]:
    return [user_text(f"Tenant: {context.tenant_id}\nUser: {context.user_id}")]


def counting(_context: RequestContext, messages: Sequence[Message]) -> list[Message]:
    return [user_text(f"{len(messages)} messages so far")]


def dropping(messages: Sequence[Message]) -> Sequence[Message]:
    return messages[1:]


def test_called_with_messages_a_transform_gives_what_the_document_says() -> None:
    transform = create_transform_context([identity, counting], RequestContext("acme", "ada"))
    history = [user_text("hi"), said("hello"), user_text("what now?")]
    who, number, *rest = transform(history)
    assert rest == history
    assert who.text == "Tenant: acme\nUser: ada"
    assert number.text == "3 messages so far"


def test_providers_see_the_rewritten_history_and_transforms_run_from_left_to_right() -> None:
    def marked(messages: Sequence[Message]) -> Sequence[Message]:
        return [*messages[:-1], user_text(f"{messages[-1].text}, {len(messages)} left")]

    both = compose_transform_contexts([dropping, None, marked])
    assert both([said("a"), said("b"), user_text("c")])[-1].text == "c, 2 left"
    told = create_transform_context([counting], base_transform=both)([said("a"), user_text("c")])
    assert [message.text for message in told] == ["1 messages so far", "c, 1 left"]


def test_from_an_async_function_on_what_a_transform_returns_is_awaited_in_order() -> None:
    asked: list[str] = []

    def first() -> str:
        asked.append("first")
        return "first"

    async def later(_context: RequestContext, messages: Sequence[Message]) -> list[Message]:
        asked.append("later")
        return [user_text(f"{len(messages)} later")]

    def last(_context: RequestContext, messages: Sequence[Message]) -> str:
        asked.append("last")
        return f"{len(messages)} last"

    async def dropping_later(messages: Sequence[Message]) -> Sequence[Message]:
        return messages[1:]

    async def shown(transform: Any) -> list[str]:
        return [message.text for message in await transform([said("old"), user_text("go")])]

    one = create_transform_context([first, later, last], base_transform=dropping)
    assert asyncio.run(shown(one)) == ["first", "1 later", "1 last", "go"]
    assert asked == ["first", "later", "last"]
    both = create_transform_context([last], base_transform=dropping_later)
    assert asyncio.run(shown(both)) == ["1 last", "go"]
    with Session("gpt-4o", providers=both) as session:
        session.add([said("old"), user_text("go")])
        assert "1 last" in session.pack().body.decode()


def test_with_nothing_to_say_a_transform_changes_nothing() -> None:
    history = [user_text("go")]
    assert create_transform_context([])(history) == history
    with pytest.raises(InputError, match="gives messages here"):
        create_transform_context([lambda: [3]])(history)


def test_a_shortening_transform_loses_nothing_that_a_provider_tells() -> None:
    """Agentrail took a transform for a provider: it kept the first messages that were more than before, and so
    nothing of a transform that shortens."""

    def as_described(messages: Sequence[Message]) -> Sequence[Message]:
        after = dropping(messages)
        return [*after[: max(len(after) - len(messages), 0)], *messages]

    history = [said("old"), user_text("go")]
    assert as_described(history) == history
    transform = compose_transform_contexts([create_transform_context([counting], base_transform=dropping), None])
    assert [message.text for message in transform(history)] == ["1 messages so far", "go"]


def test_the_prefix_of_a_session_stays_while_what_providers_tell_changes() -> None:
    def clock(context: RequestContext, messages: Sequence[Message]) -> list[Message]:
        return [user_text(f"It is {len(messages)} o'clock in {context.tenant_id}.")]

    transform = create_transform_context([clock], RequestContext("acme"), base_transform=dropping)
    with Session("gpt-4o", providers=transform) as session:
        session.add(user_text("first"))
        *before, told = session.pack().request["messages"]
        assert "It is 0 o'clock in acme." in told["content"]
        session.add([said("answer"), user_text("second")])
        *after, told = session.pack().request["messages"]
    assert after[: len(before)] == before
    assert "o'clock" not in str(after)
    assert "It is 2 o'clock in acme." in told["content"]


# A transform over what was sent before, as a strategy.

SECRET = "sk-4711"
WIRES = {"openai_chat": "gpt-4o", "anthropic": "claude-sonnet-5"}


def redacting(messages: Sequence[Message]) -> Sequence[Message]:
    """Shows no secret; a message without one stays the same object."""

    def shown(part: Part) -> Part:
        if isinstance(part, Text):
            return replace(part, text=part.text.replace(SECRET, "[redacted]"))
        if isinstance(part, ToolResult):
            return replace(part, parts=(Text(part.text.replace(SECRET, "[redacted]")),))
        return part

    return [
        message.with_parts(tuple(map(shown, message.parts))) if SECRET in str(message) else message
        for message in messages
    ]


def newest_six(messages: Sequence[Message]) -> Sequence[Message]:
    return [*messages[:1], *messages[-6:]] if len(messages) > 7 else messages


def step(number: int) -> list[Message]:
    call = ToolCall(f"c{number}", "read", f'{{"n": {number}}}')
    return [Message("assistant", (call,)), answered(f"c{number}", f"result-{number} holds {SECRET}")]


@pytest.mark.parametrize("wire", WIRES)
def test_a_transform_over_what_was_sent_is_a_strategy(wire: str) -> None:
    store = MemoryStore()
    both = transforming(compose_transform_contexts([redacting, None, newest_six]), name="mine")
    with Session(WIRES[wire], store=store, strategy=both, options=SessionOptions(strict=True)) as session:
        session.add("Find the key.")
        session.pack(TOOLS)
        for number in range(8):
            session.add(step(number))
            pack = session.pack(TOOLS)
            assert pack.violations == ()
            assert SECRET not in pack.body.decode()
            assert f"result-{number} holds [redacted]" in pack.body.decode()
        shown = pack.body.decode()
        assert "Find the key." in shown
        assert "result-1 " not in shown
        assert "result-5 " in shown
        assert "were rewritten by mine" in shown
        assert [SECRET in str(entry.message) for entry in session.entries[2::2]] == [True] * 8
        pointers = {pointer for edit in session._engine.history.edits for pointer in edit.pointers}
        assert any("result-1 holds sk-4711" in str(resolve(store, pointer)) for pointer in pointers)
    assert [outcome.problem for outcome in verify(store, tenant="default", session="session")] == [""] * 9


@pytest.mark.parametrize("wire", WIRES)
def test_a_transform_that_changes_nothing_makes_no_edit_and_one_that_settled_makes_no_more(wire: str) -> None:
    with Session(WIRES[wire], strategy=transforming(lambda messages: list(messages))) as session:
        session.add([user_text("Find the key."), *step(0), *step(1)])
        assert session.pack(TOOLS).manifest.decisions == ()
    with Session(WIRES[wire], strategy=transforming(redacting)) as session:
        session.add([user_text("Find the key."), *step(0), *step(1)])
        assert session.pack(TOOLS).manifest.decisions
        session.add(said("Found."))
        session.add("Thanks.")
        assert session.pack(TOOLS).manifest.decisions == ()


def test_what_the_user_said_is_transformed_where_it_is_carried_on_and_the_head_stays_as_it_was_added() -> None:
    with Session("gpt-4o", strategy=transforming(compose_transform_contexts([redacting, newest_six]))) as session:
        session.add([user_text(f"The key is {SECRET}."), said("Which one?"), user_text(f"Use {SECRET}, always.")])
        session.pack(TOOLS)
        for number in range(6):
            session.add(step(number))
            pack = session.pack(TOOLS)
        first, *rest = pack.request["messages"]
        assert first["content"] == f"The key is {SECRET}."
        assert "Use [redacted], always." in str(rest)
        assert SECRET not in str(rest)


def test_a_transform_that_fails_or_gives_nothing_decides_nothing_and_is_told_of() -> None:
    def failing(messages: Sequence[Message]) -> Sequence[Message]:
        if len(messages) > 1:
            raise RuntimeError("no idea")
        return messages

    for transform, why in ((failing, "no idea"), (lambda _: [], "transform gave no messages")):
        with Session("gpt-4o", strategy=transforming(transform)) as session:
            session.add([user_text("Find the key."), *step(0), *step(1)])
            pack = session.pack(TOOLS)
            assert [event for event in pack.events if isinstance(event, StrategyOverruled) and why in event.why]
            assert len(pack.request["messages"]) == 5


def test_what_providers_tell_is_refused_as_a_strategy() -> None:
    telling = create_transform_context([identity])
    for transform in (
        telling,
        compose_transform_contexts([redacting, telling]),
        create_transform_context([], base_transform=telling),
    ):
        with pytest.raises(InputError, match=r"Session\(providers=transform\)"):
            transforming(transform)
    with Session(
        "gpt-4o", strategy=transforming(create_transform_context([], base_transform=redacting))
    ) as session:
        session.add([user_text("Find the key."), *step(0)])
        assert SECRET not in session.pack(TOOLS).body.decode()


def test_what_only_says_the_same_as_the_head_is_not_taken_for_it() -> None:
    with Session("gpt-4o", strategy=transforming(lambda messages: list(messages)[-3:])) as session:
        session.add([user_text("continue"), said("a1"), user_text("q2")])
        session.pack()
        session.add([said("a2"), user_text("continue"), said("a3"), user_text("q4")])
        shown = [message["content"] for message in session.pack().request["messages"]]
    assert [text for text in shown if not text.startswith("[")] == ["continue", "continue", "a3", "q4"]


def test_a_head_that_is_given_back_in_part_is_not_shown_twice() -> None:
    def without_the_first(messages: Sequence[Message]) -> Sequence[Message]:
        return [replace(message) for message in messages[1:]]

    with Session("gpt-4o", strategy=transforming(without_the_first)) as session:
        session.add([user_text("go"), user_text("on"), said("a1"), user_text("q2")])
        assert [item["content"] for item in session.pack().request["messages"]] == ["go", "on", "a1", "q2"]


def test_at_a_call_a_transform_is_asked_once_about_the_whole_history() -> None:
    asked: list[int] = []

    def listening(messages: Sequence[Message]) -> Sequence[Message]:
        asked.append(len(messages))
        return redacting(messages)

    with Session("gpt-4o", strategy=transforming(listening)) as session:
        session.add("Find the key.")
        for number in range(4):
            session.add(step(number))
            assert SECRET not in session.pack(TOOLS).body.decode()
    assert asked == [3, 5, 7, 9]
