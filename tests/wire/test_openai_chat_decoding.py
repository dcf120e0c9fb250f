"""What Chat Completions bodies mean, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import WireError
from lading.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from lading.wire.openai_chat import WIRE
from tests.wire.chat_requests import OLD_AND_ODD, QWEN_CODE


def messages(*items: Any) -> tuple[Message, ...]:
    return WIRE.decode({"messages": list(items)}).messages


def message(**fields: Any) -> Message:
    return messages(fields)[0]


def call(arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


def test_roles_read_as_ours() -> None:
    roles = [item.role for item in WIRE.decode(OLD_AND_ODD).messages]
    assert roles[:4] == ["system", "user", "assistant", "user"]
    assert roles[5] == "tool"
    assert {item.origin for item in WIRE.decode(OLD_AND_ODD).messages} == {"openai_chat"}


def test_an_assistant_message_reads_as_reasoning_words_and_calls() -> None:
    item = message(role="assistant", content="hm", reasoning_content="why", tool_calls=[call("{broken")])
    assert item.parts == (Reasoning("why", provenance="openai"), Text("hm"), ToolCall("c", "f", "{broken"))


def test_an_old_style_call_and_its_answer_share_an_id() -> None:
    asked, answered = messages(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    )
    assert answered.results == (ToolResult(asked.calls[0].id, (Text("1"),), name="f"),)


def test_a_custom_call_keeps_its_words() -> None:
    item = {"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    (made,) = message(role="assistant", tool_calls=[item]).calls
    assert (made.id, made.name, made.arguments) == ("c", "sh", "ls")


def test_media_read_as_pictures_and_documents() -> None:
    parts = WIRE.decode(OLD_AND_ODD).messages[1].parts
    assert [type(part) for part in parts[:6]] == [Image, Image, Image, Opaque, Opaque, Opaque]
    assert isinstance(parts[0], Image)
    assert (parts[0].media_type, parts[0].data) == ("image/png", "iVBORw0KGgo=")
    assert isinstance(parts[6], File)
    assert (parts[6].media_type, parts[6].data, parts[6].name) == ("application/pdf", "JVBERi0=", "a.pdf")
    assert isinstance(parts[7], File)
    assert parts[7].file_id == "file-1"


def test_names_and_developers_are_kept() -> None:
    conversation = WIRE.decode(OLD_AND_ODD)
    assert [item.name for item in conversation.messages[:2]] == ["dev", "ann"]


def test_tools_read_with_their_schema() -> None:
    shell, function, search, nameless = WIRE.decode(OLD_AND_ODD).tools
    assert (shell.name, shell.schema) == ("sh", None)
    assert (function.name, function.schema) == ("f", {"type": "object", "properties": {}})
    assert (search.name, search.schema) == ("web_search", None)
    assert (nameless.name, nameless.schema) == ("", None)
    assert WIRE.decode(QWEN_CODE).tools[0].schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ([], "body: expected an object, found a list."),
        ("{}", "body: expected an object, found a string."),
        ({}, "messages: expected a list, found null."),
        ({"messages": "hi"}, "messages: expected a list, found a string."),
        ({"messages": [], "tools": "all"}, "tools: expected a list, found a string."),
        ({"messages": [], "tools": [1]}, "tools.0: expected an object, found a number."),
    ],
)
def test_a_body_of_another_shape_is_refused(body: Any, says: str) -> None:
    with pytest.raises(WireError) as error:
        WIRE.decode(body)
    assert str(error.value) == says


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ("hi", "messages.0: expected an object"),
        ({"content": "hi"}, "messages.0: expected the field 'role'"),
        ({"role": 1}, "messages.0.role: expected a string"),
        ({"role": "critic"}, "messages.0.role: expected one of system, developer"),
        ({"role": "user", "content": 1}, "messages.0.content: expected a string or a list"),
        ({"role": "user", "content": {"a": 1}}, "messages.0.content: expected a string or a list"),
        ({"role": "user", "content": ["hi"]}, "messages.0.content.0: expected an object"),
        ({"role": "user", "content": [{"text": "hi"}]}, "messages.0.content.0: expected the field 'type'"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages.0.content.0: expected the field 'text'"),
        ({"role": "user", "name": 1}, "messages.0.name: expected a string or null"),
        ({"role": "tool", "content": "hi"}, "messages.0: expected the field 'tool_call_id'"),
        ({"role": "tool", "tool_call_id": None}, "messages.0.tool_call_id: expected a string, found null"),
        ({"role": "assistant", "reasoning_content": []}, "messages.0.reasoning_content: expected a string"),
        ({"role": "assistant", "tool_calls": {}}, "messages.0.tool_calls: expected a list"),
        ({"role": "assistant", "tool_calls": [1]}, "messages.0.tool_calls.0: expected an object"),
        ({"role": "assistant", "tool_calls": [{}]}, "messages.0.tool_calls.0.function: expected an object"),
        (
            {"role": "assistant", "tool_calls": [call({})]},
            "tool_calls.0.function.arguments: expected",
        ),
        ({"role": "assistant", "tool_calls": [call(id=1)]}, "messages.0.tool_calls.0.id: expected a string"),
        ({"role": "assistant", "function_call": "f"}, "messages.0.function_call: expected an object"),
        ({"role": "assistant", "function_call": {}}, "messages.0.function_call: expected the field 'name'"),
    ],
)
def test_a_message_of_another_shape_is_refused(fields: Any, path: str) -> None:
    with pytest.raises(WireError) as error:
        messages(fields)
    assert path in str(error.value)


@pytest.mark.parametrize(
    ("function", "path"),
    [
        ({"name": "f", "parameters": []}, "tools.0.function.parameters: expected an object"),
        ({"name": "f", "description": 1}, "tools.0.function.description: expected a string or null"),
    ],
)
def test_a_tool_of_another_shape_is_refused(function: Any, path: str) -> None:
    with pytest.raises(WireError) as error:
        WIRE.decode({"messages": [], "tools": [{"type": "function", "function": function}]})
    assert path in str(error.value)


def test_nesting_without_end_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = [endless]
    with pytest.raises(WireError, match="body: nested deeper than 200 levels"):
        WIRE.decode({"messages": [], "extra": endless})
