from __future__ import annotations

from lading.messages import Image, Message, Reasoning, Text, ToolCall, user_text
from lading.sources.agents import rewrite_other_agents


def said(text: str, *, name: str = "", role: str = "assistant") -> Message:
    return Message("user" if role == "user" else "assistant", (Text(text),), name=name)


def test_one_name_or_none_is_the_sessions_own_agent() -> None:
    for name in ("", "coder"):
        messages = [said("hi", role="user", name="ann"), said("a", name=name), said("b", name=name)]
        assert rewrite_other_agents(messages) == tuple(messages)
        assert all(new is old for new, old in zip(rewrite_other_agents(messages), messages, strict=True))


def test_with_several_names_every_named_turn_is_told() -> None:
    messages = [
        said("go", role="user", name="ann"),
        said("plan", name="lead"),
        said("done", name="coder"),
        said("ok", role="user"),
    ]
    assert rewrite_other_agents(messages) == (
        user_text("ann: go"),
        user_text("lead: plan"),
        user_text("coder: done"),
        messages[3],
    )


def test_the_agent_without_a_name_is_the_own_one() -> None:
    messages = [said("mine"), said("theirs", name="critic")]
    assert rewrite_other_agents(messages) == (messages[0], user_text("critic: theirs"))


def test_calls_stay_and_pictures_come_along_without_reasoning() -> None:
    calling = Message("assistant", (ToolCall("1", "run", "{}"),), name="coder")
    picture = Image(url="https://x.example/a.png")
    showing = Message("assistant", (Reasoning("hm"), Text("see"), picture), name="lead")
    assert rewrite_other_agents([calling, showing]) == (calling, Message("user", (Text("lead: see"), picture)))
