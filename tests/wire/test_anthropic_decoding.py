"""What Messages bodies mean, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import WireError
from lading.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall
from lading.wire import encode
from lading.wire.anthropic import WIRE
from tests.wire.anthropic_requests import (
    CLAUDE_CODE_NEW,
    CLAUDE_CODE_OLD,
    DOCUMENTS,
    OPENCODE_ANTHROPIC,
    RESULTS,
    SYSTEM_FIRST,
)
from tests.wire.codec_cards import PLAIN


def messages(*items: Any) -> tuple[Message, ...]:
    return WIRE.decode({"messages": list(items)}).messages


def call(value: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": value}
    return {"messages": [{"role": "assistant", "content": [block]}]}


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t", **fields}


def test_the_bodys_system_comes_first() -> None:
    system, *rest = WIRE.decode(CLAUDE_CODE_OLD).messages
    assert system.role == "system"
    assert [type(part) for part in system.parts] == [Text, Text, Text]
    assert [item.role for item in rest] == ["user", "assistant", "user"]


def test_a_system_message_in_the_list_stays_there() -> None:
    conversation = WIRE.decode(CLAUDE_CODE_NEW)
    assert [item.role for item in conversation.messages] == [
        *("system", "user", "system", "assistant", "user", "system")
    ]
    assert WIRE.layout.leading(conversation.messages) == 1
    assert WIRE.layout.leading(WIRE.decode(SYSTEM_FIRST).messages) == 0


def test_an_assistant_message_reads_as_its_blocks() -> None:
    assistant = WIRE.decode(CLAUDE_CODE_NEW).messages[3]
    thinking, redacted, search, found, text, made = assistant.parts
    assert thinking == Reasoning("", signature="Sig+/==", provenance="anthropic")
    assert redacted == Reasoning(data="b64+/==", provenance="anthropic")
    assert isinstance(search, Opaque)
    assert isinstance(found, Opaque)
    assert isinstance(text, Text)
    assert text.text == "A bill of lading."
    assert isinstance(made, ToolCall)
    assert (made.id, made.name, made.arguments) == ("toolu_9", "ToolSearch", "{}")


def test_arguments_are_compact_and_in_key_order() -> None:
    arguments = WIRE.decode(CLAUDE_CODE_OLD).messages[2].calls[1].arguments
    assert arguments == '{"file_path":"main.py","limit":20,"ratio":1.0,"big":1180591620717411303424}'


def test_results_read_in_every_form() -> None:
    results = WIRE.decode(RESULTS).messages[3].results
    assert [result.text for result in results] == ["", "", "", "", "\udcff", "a\nb", "c"]
    assert not any(result.is_error for result in results)
    assert WIRE.decode(CLAUDE_CODE_OLD).messages[3].results[1].is_error
    parts = WIRE.decode(OPENCODE_ANTHROPIC).messages[3].results[0].parts
    assert [type(part) for part in parts] == [Text, Image, Opaque]


def test_documents_and_pictures_are_read_and_the_odd_ones_kept() -> None:
    parts = WIRE.decode(DOCUMENTS).messages[0].parts
    assert [type(part) for part in parts] == [
        *(File, File, File, File, Opaque, Opaque, Image, Opaque, Opaque, Opaque, Opaque)
    ]
    assert isinstance(parts[0], File)
    assert (parts[0].name, parts[0].media_type, parts[0].data) == ("paper", "application/pdf", "JVBERi0=")
    assert isinstance(parts[1], File)
    assert (parts[1].media_type, parts[1].data) == ("text/plain", "plain words")


def test_tools_of_the_provider_have_no_schema() -> None:
    grep, search, tool_search, toolset = WIRE.decode(CLAUDE_CODE_NEW).tools
    assert (grep.name, grep.description, grep.schema is None) == ("Grep", "Searches.", False)
    assert [tool.name for tool in (search, tool_search, toolset)] == ["web_search", "ToolSearch", ""]
    assert {tool.schema for tool in (search, tool_search, toolset)} == {None}


@pytest.mark.parametrize(
    "value",
    [
        {"x": float("nan")},
        {"x": [float("inf")]},
        {1: "number as key"},
        {"pair": "\ud83d\ude00"},
        "bare words",
        None,
        [1],
    ],
)
def test_an_input_that_json_cannot_say_is_kept(value: Any) -> None:
    body = call(value)
    conversation = WIRE.decode(body)
    assert repr(encode(conversation, WIRE, card=PLAIN)) == repr(body)


def test_a_missing_input_reads_as_empty() -> None:
    (item,) = messages({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f"}]})
    assert item.parts[0] == ToolCall("t", "f", "{}", template={"type": "tool_use", "id": "str", "name": "str"})


@pytest.mark.parametrize("value", [{"x": {1, 2}}, {"x": b"bytes"}, {(1, 2): 3}])
def test_an_input_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(WireError, match=r"messages\.0\.content\.0\.input: expected a JSON value"):
        WIRE.decode(call(value))


def test_a_number_too_long_to_print_is_refused() -> None:
    with pytest.raises(WireError, match=r"messages\.0\.content\.0\.input: expected a JSON value"):
        WIRE.decode(call({"x": 10**5000}))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ([], "body: expected an object, found a list."),
        (None, "body: expected an object, found null."),
        ({"messages": {}}, "messages: expected a list, found an object."),
        ({"messages": [True]}, "messages.0: expected an object, found true or false."),
        ({"messages": [], "system": 3}, "system: expected a string or a list, found a number."),
        ({"messages": [], "system": ["x"]}, "system.0: expected an object, found a string."),
        ({"messages": [], "tools": {}}, "tools: expected a list, found an object."),
        ({"messages": [], "tools": [None]}, "tools.0: expected an object, found null."),
        (
            {"messages": [], "tools": [{"name": "f", "input_schema": {}, "description": 1}]},
            "tools.0.description: expected a string or null, found a number.",
        ),
    ],
)
def test_a_body_of_another_shape_is_refused(body: Any, says: str) -> None:
    with pytest.raises(WireError) as error:
        WIRE.decode(body)
    assert str(error.value) == says


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (1, "content: expected a string or a list"),
        (["hi"], "content.0: expected an object"),
        ([{"text": "hi"}], "content.0: expected the field 'type'"),
        ([{"type": "text", "text": 1}], "content.0.text: expected a string"),
        ([{"type": "tool_use", "name": "f", "input": {}}], "content.0: expected the field 'id'"),
        ([{"type": "tool_use", "id": "t", "input": {}}], "content.0: expected the field 'name'"),
        ([{"type": "tool_result"}], "content.0: expected the field 'tool_use_id'"),
        (
            [result(content=[1])],
            "content.0.content.0: expected an object",
        ),
        (
            [result(is_error=1)],
            "content.0.is_error: expected true or false",
        ),
        ([{"type": "thinking"}], "content.0: expected the field 'thinking'"),
        (
            [{"type": "thinking", "thinking": "", "signature": 1}],
            "content.0.signature: expected a string or null",
        ),
        ([{"type": "redacted_thinking"}], "content.0: expected the field 'data'"),
        (
            [{"type": "document", "source": {"type": "url", "url": "u"}, "title": 1}],
            "content.0.title: expected a string or null",
        ),
    ],
)
def test_a_message_of_another_shape_is_refused(content: Any, path: str) -> None:
    with pytest.raises(WireError) as error:
        messages({"role": "user", "content": content})
    assert f"messages.0.{path}" in str(error.value)


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(WireError, match="role: expected one of user, assistant, system, found 'tool'"):
        messages({"role": "tool", "content": "hi"})
