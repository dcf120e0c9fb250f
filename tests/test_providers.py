"""Context providers and transforms: where what they tell comes to stand."""

from __future__ import annotations

from collections.abc import Sequence

from lading.messages import Image, Message, Text, user_text
from lading.providers import (
    RequestContext,
    compose_transform_contexts,
    create_transform_context,
    with_context,
)
from lading.session import Session
from tests.histories import answered, called, said


def identity(context: RequestContext, _messages: Sequence[Message]) -> list[Message]:
    return [user_text(f"Tenant: {context.tenant_id}\nUser: {context.user_id}")]


def counting(_context: RequestContext, messages: Sequence[Message]) -> list[Message]:
    return [user_text(f"{len(messages)} messages so far")]


def dropping(messages: Sequence[Message]) -> Sequence[Message]:
    return messages[1:]


def test_what_providers_tell_stands_in_the_newest_message_before_what_the_user_says() -> None:
    transform = create_transform_context([identity, counting], RequestContext("acme", "ada"))
    history = [user_text("hi"), said("hello"), user_text("what now?")]
    *earlier, newest = transform(history)
    assert earlier == history[:2]
    texts = [part.text for part in newest.parts if isinstance(part, Text)]
    assert "Tenant: acme\nUser: ada" in texts[0]
    assert "3 messages so far" in texts[1]
    assert texts[2] == "what now?"
    assert all(text.startswith("<<<context") for text in texts[:2])
    assert history[2] == user_text("what now?")


def test_providers_see_the_rewritten_history_and_transforms_run_from_left_to_right() -> None:
    def marked(messages: Sequence[Message]) -> Sequence[Message]:
        return [*messages[:-1], user_text(f"{messages[-1].text}, {len(messages)} left")]

    both = compose_transform_contexts([dropping, None, marked])
    assert both([said("a"), said("b"), user_text("c")])[-1].text == "c, 2 left"
    told = create_transform_context([counting], base_transform=both)([said("a"), user_text("c")])
    assert "1 messages so far" in told[-1].text
    assert told[-1].text.endswith("c, 1 left")


def test_behind_a_result_what_is_told_is_a_message_of_its_own() -> None:
    history = [user_text("go"), called("a"), answered("a")]
    assert [message.role for message in with_context(history, [user_text("new")])] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert with_context([], [user_text("new")])[0].role == "user"


def test_nothing_told_changes_nothing_and_pictures_are_kept() -> None:
    history = [user_text("go")]
    assert with_context(history, [user_text("  ")]) == history
    picture = Image(data="aGk=", media_type="image/png")
    assert with_context(history, [Message("user", (picture,))])[0].parts == (picture, Text("go"))


def test_a_shortening_transform_loses_nothing_that_a_provider_tells() -> None:
    """Agentrail took a transform for a provider: it kept the first messages that were more than before, and so
    nothing of a transform that shortens."""

    def as_described(messages: Sequence[Message]) -> Sequence[Message]:
        after = dropping(messages)
        return [*after[: max(len(after) - len(messages), 0)], *messages]

    history = [said("old"), user_text("go")]
    assert as_described(history) == history
    assert create_transform_context([counting], base_transform=dropping)(history)[0].text.endswith("go")


def test_the_prefix_of_a_session_stays_while_what_providers_tell_changes() -> None:
    def clock(_context: RequestContext, messages: Sequence[Message]) -> list[Message]:
        return [user_text(f"It is {len(messages) + len(session.entries)} o'clock.")]

    with Session("gpt-4o") as session:
        transform = create_transform_context([clock])
        session.add(transform([user_text("first")]))
        before = session.pack().request["messages"]
        session.add(said("answer"))
        session.add(transform([user_text("second")]))
        after = session.pack().request["messages"]
    assert after[: len(before)] == before
    assert "It is 3 o'clock." in str(after[-1])
    in_front = [{"role": "user", "content": "It is 3 o'clock."}, *before]
    assert in_front[: len(before)] != before
