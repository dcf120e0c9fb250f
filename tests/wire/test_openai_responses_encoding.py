from __future__ import annotations

from typing import Any

import pytest

from lading.history.repair import Repairer
from lading.history.validity import legal_cuts
from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    tool_result,
    user_text,
)
from lading.wire import check, encode, find_wire
from lading.wire.fitting import find_needs
from lading.wire.layout import CERTAINLY
from tests.wire.codec_cards import PLAIN
from tests.wire.responses_requests import CALL, OUTPUT, REASONING, SAID

WIRE = find_wire("openai_responses")


def decoded(*items: dict[str, Any]) -> tuple[Message, ...]:
    return WIRE.read_items(items)


def written(*messages: Message) -> list[Any]:
    return list(encode(Conversation(messages, origin=WIRE.name), WIRE, card=PLAIN)["input"])


def test_neighbouring_items_of_the_model_are_one_message() -> None:
    user = {"role": "user", "content": "hi"}
    found = decoded(user, REASONING, CALL, OUTPUT, SAID, user)
    assert [message.role for message in found] == ["user", "assistant", "tool", "assistant", "user"]
    thought, asked = found[1].parts
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.data) == ("Look at the file.", "gAAAAB+/=")
    assert isinstance(asked, ToolCall)
    assert (asked.id, asked.name, asked.arguments) == ("call_1", "read", '{"path": "a"}')
    assert found[2].results[0].text == "text of a"


def test_a_text_in_place_of_the_list_is_a_message_of_the_user() -> None:
    body = {"model": "gpt-5", "instructions": "Be brief.", "input": "hi"}
    read = WIRE.decode(body)
    assert [(message.role, message.text) for message in read.messages] == [("system", "Be brief."), ("user", "hi")]
    assert encode(read, WIRE, card=PLAIN) == body


def test_ids_go_with_the_reasoning_that_they_need() -> None:
    (message,) = decoded(REASONING, SAID, CALL)
    without = message.with_parts(message.parts[1:])
    assert written(message) == [REASONING, SAID, CALL]
    assert written(without) == [{key: value for key, value in item.items() if key != "id"} for item in (SAID, CALL)]


def test_reasoning_goes_with_the_item_that_it_led_to() -> None:
    (message,) = decoded(REASONING, CALL)
    assert written(message.with_parts(message.parts[:1])) == []


def test_reasoning_that_nothing_follows_is_left_out_with_an_event() -> None:
    repaired = Repairer(find_needs(WIRE, PLAIN)).repair(decoded(SAID, REASONING)[0])
    assert [repair.rule for repair in repaired.repairs] == ["reasoning_left_out"]
    # What was said before the reasoning does not need it: its id stays.
    assert written(*repaired.messages) == [SAID]


def test_an_output_is_of_the_type_of_its_call() -> None:
    custom = {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "x"}
    (asks,) = decoded(custom, CALL)
    ours = [tool_result("call_1", "one"), tool_result("call_2", "two")]
    for messages in ((asks, *ours), (asks, *reversed(ours))):
        kinds = {item["call_id"]: item["type"] for item in written(*messages)[2:]}
        assert kinds == {"call_1": "function_call_output", "call_2": "custom_tool_call_output"}
    body = {"model": "m", "input": written(asks, *ours)}
    assert check(body, WIRE, card=PLAIN, strict=True) == []


def test_a_shortened_output_keeps_its_fields() -> None:
    given = OUTPUT | {
        "id": "fco_1",
        "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
    }
    (message,) = decoded(given)
    (result,) = message.results
    short = message.with_parts((ToolResult(result.call_id, (Text("[cleared]"),), template=result.template),))
    assert written(short) == [given | {"output": [{"type": "input_text", "text": "[cleared]"}]}]


def test_messages_of_another_format_are_written() -> None:
    asked = ToolCall("call_1", "read", "{}")
    picture, paper = Image(data="AAAA", media_type="image/png"), File(data="BBBB", media_type="application/pdf")
    answer = ToolResult("call_1", (Text("see"), picture))
    body = encode(
        Conversation(
            (
                Message("system", (Text("Be brief."),)),
                Message("user", (Text("hi"), paper)),
                Message("assistant", (Reasoning("secret", "sig"), Text("I look."), asked)),
                Message("user", (answer, Text("more"))),
                Message("system", (Text("And polite."),)),
            ),
            (Tool("read", "Read.", {"type": "object", "properties": {}}),),
        ),
        WIRE,
        card=PLAIN,
    )
    assert body["instructions"] == "Be brief."
    assert body["tools"] == [
        {
            "type": "function",
            "name": "read",
            "description": "Read.",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]
    text = "input_text"
    assert body["input"] == [
        {
            "role": "user",
            "content": [
                {"type": text, "text": "hi"},
                {"type": "input_file", "filename": "document", "file_data": "data:application/pdf;base64,BBBB"},
            ],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [
                {"type": text, "text": "see"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"},
            ],
        },
        {"role": "user", "content": "more"},
        {"role": "system", "content": "And polite."},
    ]
    assert check({"model": "m", **body}, WIRE, card=PLAIN, strict=True) == []


def test_instructions_are_beside_the_items_and_developer_messages_among_them() -> None:
    rules = {"role": "developer", "content": "Rules."}
    body = {"model": "m", "instructions": "Be brief.", "input": [rules, {"role": "user", "content": "hi"}]}
    read = WIRE.decode(body)
    assert [message.role for message in read.messages] == ["system", "system", "user"]
    assert WIRE.layout.leading(read.messages) == 1
    assert encode(read, WIRE, card=PLAIN) == body


def test_outputs_of_hosted_tools_stay_with_their_calls() -> None:
    asked, shot = (
        {"type": "computer_call", "call_id": "c", "id": "cu"},
        {"type": "computer_call_output", "call_id": "c"},
    )
    found = [user_text("go"), *decoded(asked, shot, SAID), user_text("more"), *decoded(SAID)]
    assert [message.role for message in found[1:4]] == ["assistant", "tool", "assistant"]
    assert 2 not in legal_cuts(found, WIRE.invariants(PLAIN))
    assert 3 in legal_cuts(found, WIRE.invariants(PLAIN))


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "shell_call_output", "call_id": "c"}, "tool"),
        ({"type": "shell_call_output", "call_id": "c", "id": "sho"}, "assistant"),
        ({"type": "tool_search_output", "id": "t", "execution": "client"}, "tool"),
        ({"type": "tool_search_output", "id": "t", "execution": "server"}, "assistant"),
        ({"type": "program_output", "id": "p"}, "assistant"),
        ({"id": "msg_1"}, "assistant"),
        ({"type": "additional_tools", "role": "developer"}, "system"),
        ({"role": []}, ""),
        ({"type": 5}, ""),
        (None, ""),
    ],
)
def test_whose_an_item_is(item: Any, role: str) -> None:
    assert WIRE.layout.items.role(item) == role


def test_a_compaction_is_the_providers_summary() -> None:
    (message,) = decoded({"type": "compaction", "encrypted_content": "gAAA"}, SAID)
    assert isinstance(message.parts[0], Opaque)
    assert message.parts[0].is_summary


@pytest.mark.parametrize(
    ("item", "is_sure"),
    [(CALL, True), (OUTPUT, True), (REASONING, True), (SAID, True), ({"role": "user", "content": "hi"}, False)],
)
def test_how_surely_an_item_is_of_this_format(item: Any, is_sure: bool) -> None:
    assert (WIRE.layout.items.claim(item) == CERTAINLY) is is_sure


def test_tools_of_this_format_are_known() -> None:
    claims = WIRE.layout.tools.claims
    assert claims({"type": "function", "name": "read"})
    assert claims({"type": "web_search"})
    assert not claims({"type": "function", "function": {"name": "read"}})
    assert not claims({"name": "read", "input_schema": {}})
