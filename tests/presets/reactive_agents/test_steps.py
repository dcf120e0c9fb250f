"""Steps: what a history is in thoughts, actions and observations, and which of them are preserved."""

from __future__ import annotations

import json

from lading.history.observations import Category
from lading.messages import Image, Message, Text, ToolCall, ToolResult, extract_words, user_text
from lading.presets.reactive_agents.steps import STEPS, steps_of
from tests.histories import answered, said


def wrote(call_id: str, path: str, *, name: str = "file-write", is_error: bool = False) -> list[Message]:
    """A call that writes a file, and its result."""
    call = ToolCall(call_id, name, json.dumps({"content": "text", "path": path}))
    return [
        Message("assistant", (call,)),
        Message("tool", (ToolResult(call_id, (Text("ok"),), is_error=is_error),)),
    ]


def test_a_message_gives_a_thought_its_actions_and_each_result_an_observation() -> None:
    calls = (ToolCall("a", "read", '{"path": "x.py"}'), ToolCall("b", "shell", "{broken"))
    history = [
        user_text("Go."),
        Message("assistant", (Text("Look."), *calls)),
        answered("b", "two"),
        answered("a", "one"),
    ]
    steps = steps_of([*history, said("Done.")])
    assert [(step.kind, step.content, step.tool, step.subject, step.iteration, step.entry) for step in steps] == [
        ("user", "Go.", "", "", 0, 0),
        ("thought", "Look.", "", "", 0, 1),
        ("action", 'read({"path": "x.py"})', "read", "x.py", 0, 1),
        ("action", "shell({broken)", "shell", "{broken", 0, 1),
        ("observation", "two", "shell", "{broken", 0, 2),
        ("observation", "one", "read", "x.py", 0, 3),
        ("thought", "Done.", "", "", 1, 4),
    ]
    assert [step.pinned for step in steps] == [True, *[False] * 6]
    assert steps[0].kind not in STEPS


def test_the_first_write_of_each_path_is_preserved_and_so_are_failures() -> None:
    history = [
        *wrote("1", "a.md"),
        *wrote("2", "a.md"),
        *wrote("3", "b.md", is_error=True),
        *wrote("4", "b.md"),
        *wrote("5", "c.md", name="save"),
    ]
    assert [step.preserved for step in steps_of(history) if step.kind == "observation"] == [
        True,
        False,
        True,
        True,
        False,
    ]
    own: dict[str, Category] = {"save": "file-write"}
    assert [step.preserved for step in steps_of(history, own)][-1]


def test_the_subject_is_the_path_else_the_first_value() -> None:
    def subject(arguments: str) -> str:
        return steps_of([Message("assistant", (ToolCall("a", "t", arguments),))])[0].subject

    assert subject('{"content": "long", "file_path": "a.md"}') == "a.md"
    assert subject('{"query": "cats", "limit": 3}') == "cats"
    assert subject('{"path": " ", "limit": 3}') == "3"
    assert subject("{}") == ""


def test_what_the_user_says_is_read_without_results_beside_it() -> None:
    picture = Image(data="aGk=", media_type="image/png")
    mixed = Message("user", (ToolResult("a", (Text("data"),)), Text(" "), Text("and go on"), picture))
    found = extract_words(mixed)
    assert found is not None
    assert found.parts == (Text("and go on"), picture)
    asked = user_text("as it is")
    assert extract_words(asked) is asked
    assert extract_words(said("no user")) is None
    assert extract_words(Message("user", (ToolResult("a", ()),))) is None
