from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from lading import jsonbytes
from lading.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, user_text
from tests.histories import histories


def test_a_message_tells_its_calls_results_and_text_apart() -> None:
    call, result = ToolCall("a", "read", "{}"), ToolResult("a", (Text("inside"),))
    message = Message("assistant", (Reasoning("hm"), Text("one"), call, Text("two"), result))
    assert message.calls == (call,)
    assert message.results == (result,)
    assert message.text == "one\ntwo"


def test_the_text_of_a_result_joins_its_texts_and_leaves_pictures_out() -> None:
    result = ToolResult("a", (Text("one"), Image(url="https://example.org/a.png"), Text("two"), Opaque(1)))
    assert result.text == "one\ntwo"


def test_other_parts_leave_everything_else_and_the_original_as_they_were() -> None:
    message = Message("user", (Text("a"),), name="ann", origin="anthropic", template={"content": "s"})
    other = message.with_parts((Text("b"),))
    assert other.text == "b"
    assert (other.name, other.origin, other.template) == ("ann", "anthropic", {"content": "s"})
    assert message.text == "a"


def test_values_are_frozen() -> None:
    for value in (user_text("hi"), Text("hi"), ToolCall("a", "read", "{}"), ToolResult("a")):
        for field in value.__struct_fields__:
            with pytest.raises(AttributeError):
                setattr(value, field, None)


def test_user_text_is_a_user_message_of_no_wire() -> None:
    assert user_text("hi") == Message("user", (Text("hi"),), origin="")


@given(histories())
def test_messages_survive_storing(history: list[Message]) -> None:
    stored = jsonbytes.dump(msgspec.to_builtins(history))
    again = msgspec.convert(jsonbytes.load(stored), list[Message])
    assert jsonbytes.dump(msgspec.to_builtins(again)) == stored
    assert [message.role for message in again] == [message.role for message in history]
