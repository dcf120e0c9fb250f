"""How our values are written for generateContent."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    tool_result,
    user_text,
)
from lading.request.tools import reduce_tools
from lading.wire import check, encode, find_wire
from tests.wire.codec_cards import PLAIN, card
from tests.wire.gemini_cases import answer, body, call, content, text

WIRE = find_wire("gemini")
USER = content("user", text())
ASKED = Message("assistant", (Text("I look."), ToolCall("c1", "look", '{"at":1}'), ToolCall("c2", "read", "x")))


def written(*messages: Message, **fields: Any) -> list[Any]:
    made = encode(Conversation(messages, **fields), WIRE, card=PLAIN)
    assert check(made, WIRE, card=PLAIN, strict=True) == []
    return list(made["contents"])


def test_results_of_other_formats_are_one_content_that_names_the_functions() -> None:
    results = (tool_result("c1", "seen"), tool_result("c2", "none", is_error=True))
    found = written(user_text("hi"), ASKED, *results, user_text("go on"))
    assert found[1]["parts"][1:] == [
        {"functionCall": {"name": "look", "args": {"at": 1}, "id": "c1"}},
        {"functionCall": {"name": "read", "args": {"raw_arguments": "x"}, "id": "c2"}},
    ]
    assert found[2] == content(
        "user",
        {"functionResponse": {"name": "look", "response": {"output": "seen"}, "id": "c1"}},
        {"functionResponse": {"name": "read", "response": {"error": "none"}, "id": "c2"}},
        text("go on"),
    )


def test_a_result_of_ours_is_written_as_its_call_came() -> None:
    asked = WIRE.decode(body(USER, content("model", call("restore")))).messages
    ours = Message("tool", (ToolResult(asked[1].calls[0].id, (Text("all of it"),), name="restore"),))
    response = {"functionResponse": {"name": "restore", "response": {"output": "all of it"}}}
    assert written(*asked, ours)[2] == content("user", response)
    named = WIRE.decode(body(USER, content("model", call("restore", id="x")))).messages
    found = written(*named, tool_result("x", "all of it"))[2]["parts"][0]["functionResponse"]
    assert (found["name"], found["id"]) == ("restore", "x")


def test_a_result_that_was_cut_keeps_its_field() -> None:
    for response, wanted in (
        ({"result": "a long text"}, {"result": "cut"}),
        ({"rows": [1, 2]}, {"output": "cut"}),
        ({"error": "a long text"}, {"error": "cut"}),
    ):
        messages = WIRE.decode(
            body(USER, content("model", call()), content("user", answer(response=response)))
        ).messages
        (result,) = messages[2].results
        cut = messages[2].with_parts((replace(result, parts=(Text("cut"),)),))
        assert written(*messages[:2], cut)[2]["parts"][0]["functionResponse"]["response"] == wanted


def test_media_of_other_formats_are_inline_and_those_of_results_beside_them() -> None:
    shown = Message(
        "user", (Image(data="AA==", media_type="image/png"), File(data="JV", media_type="application/pdf"))
    )
    blob = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    assert written(shown)[0]["parts"] == [blob, {"inlineData": {"mimeType": "application/pdf", "data": "JV"}}]
    far = Message("user", (Image(url="https://a.b/c.png"), File(file_id="f", name="a.pdf")))
    assert [part["text"][:5] for part in written(far)[0]["parts"]] == ["[imag", "[docu"]
    result = ToolResult("c1", (Text("a picture"), Image(data="AA==", media_type="image/png")))
    asked = Message("assistant", (ToolCall("c1", "look", "{}"),))
    parts = written(user_text("hi"), asked, Message("tool", (result,)))[2]["parts"]
    assert [*parts[0], *parts[1]] == ["functionResponse", "inlineData"]


def test_calls_of_another_model_get_the_general_signature_where_the_model_signs() -> None:
    signing = card(reasoning_echo="signed")
    results = (tool_result("c1", "seen"), tool_result("c2", "none"))
    made = encode(Conversation((user_text("hi"), ASKED, *results)), WIRE, card=signing)
    assert check(made, WIRE, card=signing, strict=True) == []
    assert [part.get("thoughtSignature") for part in made["contents"][1]["parts"]] == [
        None,
        "skip_thought_signature_validator",
        None,
    ]


def test_reasoning_of_another_model_is_left_out() -> None:
    found = written(
        user_text("hi"), Message("assistant", (Reasoning("hm", signature="s"), Text("Yes."))), user_text("a")
    )
    assert found[1]["parts"] == [text("Yes.")]


def test_system_messages_are_the_instruction_and_later_ones_are_marked() -> None:
    made = encode(
        Conversation((Message("system", (Text("a"),)), user_text("hi"), Message("system", (Text("b"),)))),
        WIRE,
        card=PLAIN,
    )
    assert made["systemInstruction"] == {"parts": [text("a")]}
    assert made["contents"] == [content("user", text("hi"), text("<system>\nb\n</system>"))]


def test_functions_of_other_formats_join_the_declared_ones() -> None:
    declared = {"functionDeclarations": [{"name": "a", "parameters": {"type": "OBJECT"}}]}
    tools = (*WIRE.read_tools([{"googleSearch": {}}, declared]), Tool("restore", "Read.", {"type": "object"}))
    made = WIRE.envelope(Conversation((), tools, "gemini"))["tools"]
    restore = {"name": "restore", "description": "Read.", "parametersJsonSchema": {"type": "object"}}
    assert made == [{"googleSearch": {}}, {"functionDeclarations": [*declared["functionDeclarations"], restore]}]
    assert WIRE.envelope(Conversation((), tools[2:], "gemini"))["tools"] == [{"functionDeclarations": [restore]}]


def test_a_declaration_with_less_detail_stays_a_declaration() -> None:
    schema = {"type": "OBJECT", "properties": {"p": {"type": "STRING", "description": "long"}}}
    tools = WIRE.read_tools([{"functionDeclarations": [{"name": "a", "description": "d", "parameters": schema}]}])
    (made,) = WIRE.envelope(Conversation((), reduce_tools(tools, "types"), "gemini"))["tools"]
    assert made["functionDeclarations"] == [
        {"name": "a", "parameters": {"type": "object", "properties": {"p": {"type": "string"}}}}
    ]


def test_fields_of_other_formats_are_carried_over_and_the_path_has_the_model() -> None:
    fields = {"model": "gpt-4o", "max_tokens": 5, "stop": "x", "stream": True, "seed": 1}
    made = WIRE.envelope(Conversation((), (), "openai_chat", fields))
    assert made == {"generationConfig": {"maxOutputTokens": 5, "stopSequences": ["x"]}, "contents": []}
    assert WIRE.envelope(Conversation((), (), "gemini", {"model": "gemini-3-pro", "labels": {}})) == {
        "labels": {},
        "contents": [],
    }


def test_a_text_for_one_request_is_put_behind_the_responses() -> None:
    extend = WIRE.layout.items.extend
    assert extend(content("user", answer()), "now", card=PLAIN) == content("user", answer(), text("now"))
    assert extend(content("model", text()), "now", card=PLAIN) is None


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini-3-pro"),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent", "gemini-3-pro"),
        ("/v1/projects/p/locations/l/publishers/google/models/gemini-3-pro:generateContent", "gemini-3-pro"),
        ("/v1beta/models/gemini-3-pro:countTokens", None),
        ("/v1beta/models/gemini-3-pro:generateContent/x", None),
        ("/v1/chat/completions", None),
    ],
)
def test_the_model_is_in_the_path(path: str, model: str | None) -> None:
    assert WIRE.layout.named(path) == ({"model": model} if model else None)


@pytest.mark.parametrize(
    ("fields", "forced"),
    [
        ({}, False),
        ({"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}}, False),
        ({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, True),
        ({"toolConfig": {"function_calling_config": {"mode": "ANY"}}}, True),
        ({"generationConfig": {"candidateCount": 2}}, False),
    ],
)
def test_a_forced_call_is_seen(fields: dict[str, Any], forced: bool) -> None:
    assert WIRE.layout.demands(fields).is_forced is forced


@pytest.mark.parametrize(
    ("fields", "several"),
    [
        ({}, False),
        ({"generationConfig": {"candidateCount": 1}}, False),
        ({"generationConfig": {"candidateCount": 2}}, True),
        ({"generationConfig": {"candidate_count": 2}}, True),
    ],
)
def test_a_request_for_several_answers_is_seen(fields: dict[str, Any], several: bool) -> None:
    assert WIRE.layout.demands(fields).is_several is several


@pytest.mark.parametrize(
    ("config", "most"),
    [
        ({"maxOutputTokens": 5}, 5),
        ({"max_output_tokens": 6}, 6),
        ({"maxOutputTokens": 5, "thinkingConfig": {"thinkingBudget": 9}}, 9),
        ({"thinking_config": {"thinking_budget": 9}}, 9),
        ({"thinkingConfig": {"thinkingBudget": -1}}, 0),
    ],
)
def test_the_limits_of_the_answer_are_reserved(config: dict[str, Any], most: int) -> None:
    assert WIRE.layout.find_most_tokens({"generationConfig": config})[1] == most


def test_a_result_that_is_missing_is_one_of_the_named_responses() -> None:
    named = WIRE.decode(body(USER, content("model", call("a"), call("b")), content("user", answer("a")))).messages
    missing = Message("tool", (ToolResult(named[1].calls[1].id, (Text("lost"),), is_error=True),), origin="gemini")
    response = {"functionResponse": {"name": "b", "response": {"error": "lost"}}}
    assert written(*named, missing)[2] == content("user", answer("a"), response)
